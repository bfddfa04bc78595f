r"""Second-order equations, F(t, x, x', x'') = 0, in kernels.

A method for such equations has the unknown x alone. With its formulas for the derivatives of x at the end of a step,

    x' = x'_0 + c_1 e,    x'' = x''_0 + c_2 e,    e = x - x_0,

the equations become a nonlinear system for x. Newton's method treats it as a residual with the block [x | e | F] and
with cj = 1: a correction changes both x and e. Storing e in addition to x preserves the digits of x'' that the
difference of nearly equal values would lose.

The stored, interpolated and tested vector is y: components of x and of x', in the order of `source`.
"""

from daedal.kernels.callbacks import CALLBACK, NATIVE, UNEVALUABLE, fetch, fetch_at, owner
from daedal.kernels.compilation import entry, part
from daedal.kernels.records import FLOAT, INTEGER, Struct, float_rows, floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.vectors import copy

SECOND_ORDER = Struct(
    "SECOND_ORDER",
    [
        ("n", INTEGER),
        ("n_y", INTEGER),
        ("residual", CALLBACK),  # block [x | x' | x'' | F]
        ("jacobian", CALLBACK),  # block [x | x' | x'' | c1 | c2 | matrix], if given
        ("entries", INTEGER),  # number of entries in the matrix
        ("source", i64["n_y"]),  # component j of y is x_i with i = source_j < n, or x'_i with n + i = source_j
        ("order", i64["n"]),  # highest derivative of each variable
        ("c1", FLOAT),
        ("c2", FLOAT),
        ("base", f64[3, "n"]),  # x_0, x'_0, x''_0
        ("slopes", f64[2, "n"]),  # memory for x' and x''
    ],
)


@part
def evaluate_second_order(form, t, x, xp, xpp, result):
    """result = F(t, x, x', x''); NaN and infinity count as 'cannot be evaluated here'."""
    status = fetch(form.residual, t, x, xp, xpp, result)
    return UNEVALUABLE if status > 0 else status


@part
def derivatives(form, e, xp, xpp):
    """x' and x'' as functions of e."""
    base = form.base
    for i in range(form.n):
        xp[i] = base[1, i] + form.c1 * e[i]
        xpp[i] = base[2, i] + form.c2 * e[i]


@entry(NATIVE)
def discretised_residual(t, block):
    """F with the derivatives computed from e; the block is [x | e | F]."""
    form = record_at(owner(block), SECOND_ORDER)
    slopes, rows = form.slopes, float_rows(block, 3, form.n)
    derivatives(form, rows[1], slopes[0], slopes[1])
    return evaluate_second_order(form, t, rows[0], slopes[0], slopes[1], rows[2])


@part
def evaluate_matrix(form, t, x, xp, xpp, c1, c2, result):
    """result = dF/dx + c1 dF/dx' + c2 dF/dx'' as returned by the function."""
    n, block = form.n, floats(form.jacobian.block, 3 * form.n + 2)
    block[3 * n], block[3 * n + 1] = c1, c2
    copy(block, x)
    copy(block[n:], xp)
    copy(block[2 * n :], xpp)
    address, size = form.jacobian.block, 3 * n + 2
    status = fetch_at(form.jacobian, t, address, size, 0, 0, 0, 0, address + 8 * size, form.entries)
    copy(result, floats(address + 8 * size, form.entries))
    return UNEVALUABLE if status > 0 else status


@entry(NATIVE)
def discretised_jacobian(t, block):
    """dF/dx with x' and x'' depending on x through e; the block is [x | e | 1 | matrix]."""
    form = record_at(owner(block), SECOND_ORDER)
    slopes, rows, result = form.slopes, float_rows(block, 2, form.n), floats(block + 16 * form.n + 8, form.entries)
    derivatives(form, rows[1], slopes[0], slopes[1])
    return evaluate_matrix(form, t, rows[0], slopes[0], slopes[1], form.c1, form.c2, result)


@part
def gather(form, x, xp, y):
    """Set y from x and x'."""
    source = form.source
    for j in range(form.n_y):
        i = source[j]
        y[j] = x[i] if i < form.n else xp[i - form.n]


@part
def scatter(form, y, x, xp):
    """Set the entries of x and x' that y contains."""
    source = form.source
    for j in range(form.n_y):
        i = source[j]
        if i < form.n:
            x[i] = y[j]
        else:
            xp[i - form.n] = y[j]
