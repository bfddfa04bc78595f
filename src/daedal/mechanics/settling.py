"""Compiled projection of a state onto the constraints of the mode that it enters.

Most transitions lead to a state with correct positions and nearly correct velocities, or remove a constraint. The
nearest velocity in the norm of M is then that of the output projection, and the search for consistent values, redundant
constraints and singular configurations is skipped.
"""

from daedal.kernels.compilation import entry
from daedal.kernels.records import record_at
from daedal.kernels.signatures import boolean, f64, i64
from daedal.kernels.vectors import copy, largest
from daedal.mechanics.constrained import CONSTRAINED
from daedal.mechanics.manifold import PROJECTOR, project_point
from daedal.mechanics.readiness import is_ready

_ATTEMPTS = 4  # largest number of projections
_STAYS = 1e-9  # largest change of q by a projection, as a fraction of its size


@entry(boolean(i64, i64, f64, f64[:]))
def settle(system, projector, t, y):
    """Project y = (q, v, r) onto the constraints; False unless it is near them and they are clearly regular."""
    c, p = record_at(system, CONSTRAINED), record_at(projector, PROJECTOR)
    nx = c.nx
    given = c.given
    copy(given, y[:nx])
    for _ in range(_ATTEMPTS):
        if is_ready(system, t, y[: 2 * nx], y[2 * nx :]) != 0:
            return True
        if project_point(p, c, t, y) != 0:
            break
        size = _STAYS * largest(given)
        for i in range(nx):
            if not abs(y[i] - given[i]) <= size:
                copy(y, given)
                return False
    return is_ready(system, t, y[: 2 * nx], y[2 * nx :]) != 0
