"""Initial guesses for z if a semi-explicit problem is given without it."""

from collections.abc import Iterator

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems import SemiExplicitDAE

GUESSES = (0.0, 1.0, -1.0, 1e-3, -1e-3, 1e3, -1e3)
TRIED = "z0 was not given: z = " + ", ".join(f"{z:g}" for z in GUESSES) + " were tried"
REMEDY = "Give a guess as z0 with correct_initial=True, or use daedal.consistent_initial"


def evaluable_guesses(problem: SemiExplicitDAE, t0: float, x0: np.ndarray) -> Iterator[np.ndarray]:
    """(y, z) for the guesses of z, with equal components, at which f and g can be evaluated; at least one."""
    found, trouble, complaint = False, None, ""
    for value in GUESSES:
        x = x0.copy()
        x[problem.n_y :] = value
        try:
            with np.errstate(all="ignore"):
                bad = not_finite(problem, t0, x)
        except InvalidProblemError:
            raise
        except Exception as error:  # f or g is undefined there and may raise any exception
            trouble = trouble or error
            continue
        complaint = complaint or bad or ""
        if bad is None:
            found = True
            yield x
    if found:
        return
    if trouble is not None:
        trouble.add_note(f"{TRIED}. {REMEDY}.")
        raise trouble
    raise InvalidProblemError(f"{complaint} at the initial values (t = {t0:g}). {TRIED}. {REMEDY}")


def not_finite(problem: SemiExplicitDAE, t0: float, x: np.ndarray) -> str | None:
    """Description of the component of f or g that is not finite; None if all are finite."""
    y, z = x[: problem.n_y], x[problem.n_y :]
    for name, values in (("f", problem.slope(t0, y, z)), ("g", problem.constraint(t0, y, z))):
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            return f"{name}[{bad[0]}] is {values[bad[0]]}"
    return None
