r"""The components of y' that occur in an implicit problem: the projector P(t) along the kernel of F_{y'}.

For transferable problems the kernel depends on t alone (Brenan, Campbell, Petzold, definition 3.4.1). P is the
orthogonal projector onto the row space of F_{y'}, computed by Gram-Schmidt.
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import is_given
from daedal.kernels.compilation import part
from daedal.kernels.records import FLOAT, INTEGER, Struct
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import residual
from daedal.kernels.vectors import add_product, copy_matrix, squares
from daedal.methods.partial_derivatives import separate

_EXACT, _BY_DIFFERENCES = 1e-12, 1e-6  # relative size below which row components count as zero
_SHARE = 2e-3  # increment of differences in t, as a fraction of the interval, unless steps are shorter

SPACE = Struct(
    "SPACE",
    [
        ("n", INTEGER),
        ("projector", f64["n", "n"]),  # P, then P at earlier and shifted times
        ("before", f64["n", "n"]),
        ("shifted", f64["n", "n"]),
        ("rate", f64["n", "n"]),  # P'
        ("rows", f64["n", "n"]),
        ("residual", f64["n"]),
        ("rest", f64["n"]),
        ("solution", f64["n"]),
        ("entries", INTEGER),  # iteration matrix: rows, columns, and positions in its storage
        ("entry_rows", i64["entries"]),
        ("entry_columns", i64["entries"]),
        ("place", i64["entries"]),
        ("f_y", f64["entries"]),
        ("f_yp", f64["entries"]),
        ("varies", INTEGER),  # whether P' is not zero
        ("known", INTEGER),  # whether an earlier P exists
        ("span", FLOAT),
    ],
)


@part
def find_space(space, system, linear, run, t, y, yp, projector):
    """P at (t, y, y') in `projector`, and the minimum-norm correction of y' for the linearised F = 0 in `solution`."""
    n, matrix, cj, entries = y.size, linear.matrix, run.cj, space.entries
    r, rows, sizes = space.residual, space.rows, space.rest
    of_rows, of_columns = space.entry_rows, space.entry_columns
    f_y, f_yp = space.f_y, space.f_yp
    status = separate(system, matrix, run, t, y, yp, r, cj, run.h, space.place, f_y, f_yp)
    if status == 0:
        status = residual(system, t, y, yp, r)
    if status != 0:
        return status
    for i in range(n):
        sizes[i] = 0.0
        for j in range(n):
            rows[i, j] = 0.0
    for e in range(entries):
        sizes[of_rows[e]] += abs(f_y[e]) + abs(cj * f_yp[e])
        rows[of_rows[e], of_columns[e]] = f_yp[e]
    tolerance = _EXACT if is_given(matrix.jacobian) else _BY_DIFFERENCES
    _orthonormalise(space, n, tolerance, cj, projector)
    return 0


@part
def _orthonormalise(space, n, tolerance, cj, projector):
    """P from the rows of F_y', largest remaining row first; the right-hand sides -F are transformed with them."""
    rows, r, sizes, solution = space.rows, space.residual, space.rest, space.solution
    for i in range(n):
        solution[i] = 0.0
        norm = np.sqrt(squares(rows[i]))
        scale = 0.0 if abs(cj) * norm <= tolerance * sizes[i] else 1.0 / norm
        r[i] *= -scale
        for j in range(n):
            rows[i, j] *= scale
            projector[i, j] = 0.0
    for _ in range(n):
        best, size = -1, tolerance
        for i in range(n):
            norm = np.sqrt(squares(rows[i]))
            if norm > size:
                best, size = i, norm
        if best < 0:
            return
        q, value = rows[best], r[best] / size
        for j in range(n):
            q[j] /= size
        for i in range(n):
            solution[i] += value * q[i]
            for j in range(n):
                projector[i, j] += q[i] * q[j]
        for i in range(n):
            if i != best:
                product = add_product(0.0, rows[i], q)
                r[i] -= product * value
                for j in range(n):
                    rows[i, j] -= product * q[j]
        for j in range(n):
            q[j] = 0.0


@part
def look(space, system, linear, run, t, y, yp):
    """Compute P at (t, y, y'), and P' by fourth-order differences if P differs from the previous one."""
    n = y.size
    here, before, shifted, rate = space.projector, space.before, space.shifted, space.rate
    status = find_space(space, system, linear, run, t, y, yp, here)
    if status != 0:
        return status
    change = 0.0
    for i in range(n):
        for j in range(n):
            change = max(change, abs(here[i, j] - before[i, j]))
            rate[i, j] = 0.0
    tolerance = 100.0 * (_EXACT if is_given(linear.matrix.jacobian) else _BY_DIFFERENCES)
    copy_matrix(before, here)
    space.varies = 1 if space.varies or not space.known or change > tolerance else 0
    space.known = 1
    if not space.varies:
        return 0
    s = min(_SHARE * space.span, abs(run.h))
    largest = 0.0
    for k in (-2, -1, 1, 2):
        status = find_space(space, system, linear, run, t + k * s, y, yp, shifted)
        if status != 0:
            return status
        weight = (8.0 if abs(k) == 1 else -1.0) * (1.0 if k > 0 else -1.0) / (12.0 * s)
        for i in range(n):
            for j in range(n):
                rate[i, j] += weight * (shifted[i, j] - here[i, j])
                largest = max(largest, abs(shifted[i, j] - here[i, j]))
    if largest <= tolerance:
        space.varies = 0
        for i in range(n):
            for j in range(n):
                rate[i, j] = 0.0
    return 0


@part
def apply(matrix, v, target):
    """target = matrix v."""
    for i in range(v.size):
        target[i] = add_product(0.0, matrix[i], v)
