"""The constraints of a mechanical system as Python functions, for checks."""

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import store_vector
from daedal.mechanics.contact import without_contact
from daedal.mechanics.increments import typical_size
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_number, check_vector
from daedal.problems.compile import last_argument

SOME_TIMES = np.sort((0.6180339887498949 * np.arange(1, 65)) % 1.0)
"""Fractions of an interval, with gaps of at most 2.5 %, at which time dependence of constraints is tested."""


def constraint_probe(system: MechanicalSystem, q: np.ndarray, v: np.ndarray | None = None):
    """All constraints as one vector function of (t, q), at the velocities v, by default of the size of q.

    Exceptions of the user's functions are not caught. None without constraints.
    """
    system = without_contact(system)
    if system.n_lambda == 0:
        return None
    if v is None:
        v = np.where(np.arange(q.size) % 2, 0.7, 1.0) * typical_size(q)
    parts = []
    if system.constraint is not None:
        parts.append(vector_function(system, "constraint", system.n_constraints))
    if system.velocity_constraint is not None:
        velocity = vector_function(system, "velocity_constraint", system.n_velocity_constraints)
        parts.append(lambda t, q: velocity(t, q, v))
    return lambda t, q: np.concatenate([part(t, q) for part in parts])


def vector_function(system: MechanicalSystem, name: str, size: int):
    """A function of the system that copies its arguments and checks its result."""
    function, store = getattr(system, name), store_vector(name, size)
    last = last_argument(function, system.params)

    def evaluate(t, *arrays):
        result = np.empty(size)
        store(function(float(t), *[array.copy() for array in arrays], *last), result)
        return result

    return evaluate


def looks_autonomous(system: MechanicalSystem, span: tuple[float, float], q: np.ndarray, v: np.ndarray) -> bool:
    """Whether the constraints agree at many times of the interval, so that no differences in t are needed."""
    if not asks_for_time(system):
        return False
    times = span[0] + (span[1] - span[0]) * np.concatenate([[0.0], SOME_TIMES])
    return _same_at(constraint_probe(system, q, v), times, q)


def asks_for_time(system: MechanicalSystem) -> bool:
    """Whether time dependence of the constraints matters, since their time derivative was not given."""
    return system.n_lambda > 0 and (system.constraint_t is None or system.velocity_constraint is not None)


def _same_at(probe, times, q: np.ndarray) -> bool:
    """Whether the constraints at the first time equal those at all other times at which they can be evaluated."""
    first = _values_or_nan(probe, times[0], q)
    others = (_values_or_nan(probe, t, q) for t in times[1:])
    return bool(np.all(np.isfinite(first))) and all(
        np.array_equal(values, first) for values in others if np.all(np.isfinite(values))
    )


def _values_or_nan(probe, t: float, q: np.ndarray) -> np.ndarray:
    try:
        return probe(float(t), q)
    except Exception:  # the run may end earlier, and raises a better error if it reaches this time
        return np.full(1, np.nan)


def check_point(system: MechanicalSystem, t, q, v) -> tuple[float, np.ndarray, np.ndarray]:
    """Check (t, q, v) and convert them to floats; v is zero if it is None."""
    n = system.n_q
    if q is None:
        raise InvalidProblemError("q is missing")
    q = check_vector(q, n, "q", label=system.label)
    v = np.zeros(n) if v is None else check_vector(v, n, "v", label=lambda i: system.label(n + i))
    return check_number(t, "t"), q, v
