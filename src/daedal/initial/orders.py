"""The highest derivative of each variable that occurs in F(t, x, x', x'')."""

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems import SecondOrderDAE

_SHIFTS = (0.0, 1e-2, 1e-1)
_LARGER = np.array([1e8, 1e16, 1e24])  # changes of a derivative, where one of its own size is lost beside other terms
_LARGEST = 1e150  # unit of such changes


def detect_order(problem: SecondOrderDAE, t0: float, x0: np.ndarray, xp0: np.ndarray) -> np.ndarray:
    """The highest derivative of each variable that F responds to, at the start and at two points beside it.

    F need not be defined beside the start: what happens there is not passed on.
    """
    n = problem.n
    generator = np.random.default_rng(0)
    order = np.zeros(n, dtype=np.int64)
    for shift in _SHIFTS:
        point = [values + shift * _sizes(values) * generator.uniform(-1.0, 1.0, n) for values in (x0, xp0, np.zeros(n))]
        if shift == 0.0 and _start_residual(problem, t0, point) is None:
            continue
        base = _residual(problem, t0, point)  # compared with others to the last digit: of the same code
        if base is None:
            continue
        unit = min(max(1.0, max(float(np.max(np.abs(values))) for values in point)), _LARGEST)
        for level in (2, 1):
            missing = np.flatnonzero(order < level)
            order[[i for i in missing if _responds(problem, t0, point, base, level, [i])]] = level
            for larger in unit * _LARGER:
                missing = np.flatnonzero(order < level)
                if missing.size and _responds(problem, t0, point, base, level, missing, larger):
                    order[[i for i in missing if _responds(problem, t0, point, base, level, [i], larger)]] = level
    return order


def check_order(problem: SecondOrderDAE, found: np.ndarray) -> np.ndarray:
    """The orders that the user gives, which must not be too low, or the ones found."""
    if problem.order is None:
        return found
    low = np.flatnonzero(problem.order < found)
    if low.size:
        i = int(low[0])
        raise InvalidProblemError(
            f"order[{i}] = {problem.order[i]} is too low: the residual responds to {problem.label(i)}"
            f"{chr(39) * int(found[i])}, so that {problem.label(i)} has order {found[i]}. Give order={found.tolist()}, "
            "or leave it out"
        )
    return problem.order


def _sizes(values: np.ndarray) -> np.ndarray:
    """The size of each value; zeros get that of the largest one."""
    size = np.abs(values)
    return np.where(size > 0.0, size, np.max(size) if np.any(size) else 1.0)


def _responds(problem: SecondOrderDAE, t, point, base, level: int, which, factor: float = 1.0) -> bool:
    """Whether F changes with some derivatives; leaving the domain of F is a change as well."""
    changed = [values.copy() for values in point]
    changed[level][which] += factor * np.maximum(1.0, np.abs(changed[level][which]))
    values = _residual(problem, t, changed)
    return values is None or not np.array_equal(values, base)


def _start_residual(problem: SecondOrderDAE, t, point) -> np.ndarray | None:
    """F at the initial values, where exceptions are the user's."""
    with np.errstate(all="ignore"):
        return _finite(problem.evaluate(t, *point))


def _finite(values: np.ndarray) -> np.ndarray | None:
    return values if np.all(np.isfinite(values)) else None


def _residual(problem: SecondOrderDAE, t, point) -> np.ndarray | None:
    """F, or None where it is not defined."""
    try:
        with np.errstate(all="ignore"):
            return _finite(problem.sample(t, *point))
    except Exception:  # beside the start the residual may raise anything
        return None
