r"""F_y and F_y' of F(t, y, y') = 0, entry by entry, in compiled code.

Functions and differences give G = F_y + c F_y' for any c. With c = 0 that is F_y itself, whatever the step. F_y' is
then (G - F_y) / c, for a c = 1/h or so, with which it loses no more digits than it does in Newton's matrix. Entries of
F_y' that are zero come out as zero.
"""

from __future__ import annotations

from daedal.kernels.callbacks import is_given
from daedal.kernels.compilation import part
from daedal.kernels.matrix import JACOBIAN_UNEVALUABLE, fill
from daedal.kernels.system import residual


@part
def separate(system, matrix, run, t, y, yp, r, cj, h, place, f_y, f_yp):
    """F_y and F_y' at (t, y, y') from F_y and F_y + cj F_y'; r is room for F, and h the size of a step."""
    data, weights = matrix.data, run.inverse_weights
    if not is_given(matrix.jacobian):
        status = residual(system, t, y, yp, r)
        if status != 0:
            return status
    system.jacobians += 1
    for second in range(2):
        status = fill(system, matrix, t, y, yp, r, cj * second, h, weights)
        if status != 0:
            run.jacobian_unevaluable = status == JACOBIAN_UNEVALUABLE
            return status
        for e in range(place.size):
            if second:
                f_yp[e] = (data[place[e]] - f_y[e]) / cj
            else:
                f_y[e] = data[place[e]]
    return 0
