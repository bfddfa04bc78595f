"""How a mechanical system is evaluated in one run: what follows from where the run starts.

Nothing of it is kept on the system: the same start gives the same setting, whatever ran before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from daedal.errors import Unevaluable
from daedal.kernels.functions import is_compiled, parameter_vector
from daedal.mechanics.contact import without_contact
from daedal.mechanics.increments import best_increment, typical_size
from daedal.mechanics.probes import constraint_probe, vector_function
from daedal.problems import MechanicalSystem

DERIVATIVES = ("constraint_jacobian", "constraint_t", "acceleration_bias")


@dataclass(frozen=True, eq=False)
class Setting:
    """Which constraints are used, and how their missing derivatives are formed.

    Attributes
    ----------
    rows : numpy.ndarray of int
        The constraints in use; the others are redundant.
    increments, time_increment : numpy.ndarray, float
        For differences with respect to the coordinates and to the time.
    complex_step : bool
        Whether the missing derivatives of a compiled constraint come from the complex step.
    autonomous : bool
        Whether the constraints do not depend on time.
    weight : str
        The norm in which output is projected onto the constraints: "M", or "I".
    guess : numpy.ndarray, optional
        Algebraic variables and multipliers (w, lam) of the start, where they are found by Newton's method.
    """

    rows: np.ndarray
    increments: np.ndarray
    time_increment: float
    complex_step: bool
    autonomous: bool = False
    weight: Any = "M"
    guess: np.ndarray | None = None
    key: tuple = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "key", (self.rows.tobytes(), self.complex_step))

    def changed(self, **values) -> Setting:
        """The setting with other values."""
        return replace(self, **values)


def setting_at(system: MechanicalSystem, t: float, q: np.ndarray, *, rows=None, autonomous: bool = False) -> Setting:
    """The setting of a run that starts at (t, q)."""
    system, q = without_contact(system), np.asarray(q, dtype=float)
    rows = np.arange(system.n_lambda) if rows is None else np.asarray(rows, dtype=np.int64)
    increments, time_increment = _increments(system, float(t), q, autonomous)
    by_complex_step = _complex_step_holds(system, float(t), q, increments)
    return Setting(rows, increments, time_increment, by_complex_step, autonomous)


def missing_derivatives(system: MechanicalSystem) -> list[str]:
    """The derivatives of the position constraints that were not given."""
    return [] if system.constraint is None else [name for name in DERIVATIVES if getattr(system, name) is None]


def _increments(system: MechanicalSystem, t: float, q: np.ndarray, autonomous: bool) -> tuple[np.ndarray, float]:
    """Increments of the coordinates and of the time for differences of the constraints."""
    sizes, missing = typical_size(q), missing_derivatives(system)
    along_velocities = system.velocity_constraint is not None and system.velocity_bias is None
    by_position = along_velocities or any(name != "constraint_t" for name in missing)
    by_time = not autonomous and (along_velocities or missing)
    if not by_position and not by_time:
        return 1e-3 * sizes, 1e-3
    probe, unit = constraint_probe(system, q), np.eye(q.size)
    increments, time_increment = 1e-3 * sizes, 1e-3
    if by_position:
        # Along an axis through the point a constraint may happen to be linear, so it is looked at beside it as well.
        beside = q + 0.2 * sizes * np.cos(0.4 + 1.9 * np.arange(q.size))
        points = [q, beside] if _is_evaluable(probe, t, beside) else [q]
        increments = np.array(
            [
                best_increment(lambda s, j=j: np.concatenate([probe(t, p + s * unit[j]) for p in points]), sizes[j])
                for j in range(q.size)
            ]
        )
    if by_time:
        time_increment = best_increment(lambda s: probe(t + s, q), 1.0)
    return increments, time_increment


def _is_evaluable(probe, t: float, q: np.ndarray) -> bool:
    try:
        return bool(np.all(np.isfinite(probe(t, q))))
    except Exception:  # beyond the domain of the user's function anything may be raised
        return False


# --- the complex step -------------------------------------------------------------------------------------------------

_complex_functions: WeakKeyDictionary = WeakKeyDictionary()


def complex_functions(system: MechanicalSystem) -> dict[str, Any]:
    """Compiled derivatives by the complex step, of (t, q[, v], tuning); made once for a constraint, without numbers."""
    from daedal.mechanics.complex_step import complex_derivatives

    known = _complex_functions.setdefault(system.constraint, {})
    n_p = -1 if system.params is None else parameter_vector(system.params).size
    key = system.n_q, system.n_constraints, n_p
    if key not in known:
        known[key] = dict(zip(DERIVATIVES, complex_derivatives(system.constraint, *key), strict=True))
    return known[key]


def tuning(system: MechanicalSystem, increments: np.ndarray, time_increment: float) -> np.ndarray:
    """What the functions of the complex step get as parameters: the user's, then the increments."""
    numbers = np.zeros(0) if system.params is None else parameter_vector(system.params)
    return np.concatenate([numbers, increments, [time_increment]])


def _complex_step_holds(system: MechanicalSystem, t: float, q: np.ndarray, increments: np.ndarray) -> bool:
    """Whether derivatives are missing that the complex step gives: it compiles, and agrees with differences."""
    if not missing_derivatives(system) or not is_compiled(system.constraint):
        return False
    from numba.core.errors import NumbaError

    functions = complex_functions(system)
    numbers = tuning(system, increments, 1e-3)
    constraint = vector_function(system, "constraint", system.n_constraints)
    try:
        constraint(t, q)
        exact = functions["constraint_jacobian"](t, q, numbers)
        functions["constraint_t"](t, q, numbers)
        differences = np.empty_like(exact)
        for j, h in enumerate(increments):
            unit = h * np.eye(q.size)[j]
            differences[:, j] = (constraint(t, q + unit) - constraint(t, q - unit)) / (2.0 * h)
    except (NumbaError, ArithmeticError, LookupError, ValueError, TypeError, Unevaluable):
        return False
    scale = np.max(np.abs(differences), initial=0.0) + np.max(np.abs(exact), initial=0.0)
    return bool(np.max(np.abs(exact - differences), initial=0.0) <= 1e-2 * scale)
