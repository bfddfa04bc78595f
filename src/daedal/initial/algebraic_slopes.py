"""y' at the start of all variables, also of those whose derivative does not occur in the equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.initial.difference_array import difference_array_initial
from daedal.initial.structure import LARGEST_DENSE, algebraic_variables


def all_slopes(
    problem: Any, t: float, y: np.ndarray, yp: np.ndarray, weights: np.ndarray, sign: int, method: Any
) -> np.ndarray:
    """The y' that satisfies F = 0 and dF/dt = 0 with y as it is.

    For index 1 it is unique (Brenan, Campbell and Petzold 5.3.4). `yp` satisfies F = 0 but for algebraic variables; the
    equations are evaluated on the side of t that `sign` says, and `method` needs the result.
    """
    if np.any(weights <= 0.0):
        return yp  # the integrator reports the vanishing weight with the name of the variable
    if problem.n <= LARGEST_DENSE:
        everything = np.ones(problem.n, dtype=bool)
        found = difference_array_initial(problem, t, y, yp, fixed=everything, weights=weights, index=2, side=sign)
        if found.converged:
            return found.yp
    unknown = algebraic_variables(problem, t, y, yp)
    if not unknown.any():
        return yp
    names = [problem.label(int(i)) for i in np.flatnonzero(unknown)]
    raise InvalidProblemError(
        f"{method.title} begins with y' of all variables at t = {t:g}, and that of {', '.join(names[:5])}"
        f"{' and others' if len(names) > 5 else ''} could not be computed: give yp0, or take a method whose first "
        "stage is not the start of the step, such as 'radau5' or 'lobatto_iiic3'"
    )
