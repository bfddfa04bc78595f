"""Error weights and the weighted root-mean-square norm, BCP section 5.2."""

from math import isinf, sqrt

from daedal.kernels.callbacks import call, is_given
from daedal.kernels.compilation import part
from daedal.kernels.records import floats


@part
def set_weights(y, rtol, atol, inverse):
    """inverse[i] = 1 / (rtol[i] |y[i]| + atol[i]); returns the index of a vanishing weight, or -1."""
    for i in range(y.size):
        weight = rtol[i] * abs(y[i]) + atol[i]
        if weight <= 0.0:
            return i
        inverse[i] = 1.0 / weight
    return -1


@part
def wrms(v, inverse):
    """sqrt(1/n sum (v_i / w_i)^2), protected against overflow."""
    total = 0.0
    for i in range(v.size):
        scaled = v[i] * inverse[i]
        total += scaled * scaled
    if isinf(total):
        largest = 0.0
        for i in range(v.size):
            largest = max(largest, abs(v[i] * inverse[i]))
        if isinf(largest):
            return largest
        total = 0.0
        for i in range(v.size):
            scaled = v[i] * inverse[i] / largest
            total += scaled * scaled
        return largest * sqrt(total / v.size)
    return sqrt(total / v.size)


@part
def norm(system, t, v, inverse):
    """The norm of error and Newton tests: weighted RMS, or the user's ``norm(v, w)``."""
    if not is_given(system.norm):
        return wrms(v, inverse)
    n = system.n
    block = floats(system.norm.block, 2 * n + 1)
    for i in range(n):
        # A component whose inverse weight is zero is excluded from the test.
        block[i] = v[i] if inverse[i] != 0.0 else 0.0
        block[n + i] = 1.0 / inverse[i] if inverse[i] != 0.0 else 1.0
    if call(system.norm, t) != 0:
        system.norm_failed = 1
        return -1.0
    return block[2 * n]
