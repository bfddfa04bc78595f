"""Vector loops for kernels; sums are evaluated in the order of the components."""

from daedal.kernels.compilation import part


@part
def copy(target, source):
    """Write `source` to the beginning of `target`."""
    for i in range(source.size):
        target[i] = source[i]


@part
def copy_matrix(target, source):
    """target = source."""
    rows, columns = source.shape
    for i in range(rows):
        for j in range(columns):
            target[i, j] = source[i, j]


@part
def transpose(target, source):
    """target = source^T."""
    rows, columns = source.shape
    for i in range(rows):
        for j in range(columns):
            target[j, i] = source[i, j]


@part
def add_product(value, a, b):
    """value + a^T b, with the number of components of `b`."""
    for i in range(b.size):
        value += a[i] * b[i]
    return value


@part
def squares(v):
    """v^T v."""
    return add_product(0.0, v, v)


@part
def largest(v):
    """max |v_i|."""
    value = 0.0
    for i in range(v.size):
        value = max(value, abs(v[i]))
    return value


@part
def smallest(v):
    """min v_i."""
    value = v[0]
    for i in range(1, v.size):
        value = min(value, v[i])
    return value


@part
def power(x, k):
    """x to an integer power, by repeated squaring."""
    left, factor, result = abs(k), x, 1.0
    while left != 0:
        if left & 1:
            result *= factor
        left >>= 1
        factor *= factor
    return 1.0 / result if k < 0 else result
