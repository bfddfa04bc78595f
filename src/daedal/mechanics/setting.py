"""How a mechanical system is evaluated in one run: what follows from where the run starts.

Nothing of it is kept on the system: the same start gives the same setting, whatever ran before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from daedal.kernels.functions import is_compiled, parameter_vector
from daedal.mechanics.contact import without_contact
from daedal.mechanics.increments import typical_size
from daedal.problems import MechanicalSystem

DERIVATIVES = ("constraint_jacobian", "constraint_t", "acceleration_bias")
_NOTHING = 1e-13  # part of a coordinate's size that may be a rounding error
_BESIDE = 1e-2  # part of a coordinate's size by which increments are looked for beside its zero
_SAME = 1e-5  # relative disagreement of the complex step and differences that is taken for rounding errors


@dataclass(frozen=True, eq=False)
class Setting:
    """Which constraints are used, and how their missing derivatives are formed.

    Attributes
    ----------
    rows : numpy.ndarray of int
        The constraints in use; the others are redundant.
    increments : numpy.ndarray, shape (2, n_q)
        With which differences begin: along a line, and with respect to single coordinates.
    time_increment : float
        The same for the time, along a line.
    complex_step : bool
        Whether the missing derivatives of a compiled constraint come from the complex step.
    autonomous : bool
        Whether the constraints do not depend on time.
    weight : str
        The norm in which output is projected onto the constraints: "M", or "I".
    guess : numpy.ndarray, optional
        Algebraic variables and multipliers (w, lam) of the start, where they are found by Newton's method.
    interval : (float, float)
        The interval of the run: how slow the constraints may be.
    """

    rows: np.ndarray
    increments: np.ndarray
    time_increment: float
    complex_step: bool = False
    autonomous: bool = False
    weight: Any = "M"
    guess: np.ndarray | None = None
    interval: tuple[float, float] = (0.0, 1.0)
    key: tuple = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "key", (self.rows.tobytes(), self.complex_step))

    def changed(self, **values) -> Setting:
        """The setting with other values."""
        return replace(self, **values)


def plain_setting(system: MechanicalSystem, q: np.ndarray, rows=None) -> Setting:
    """A setting to look at a system with: increments are guessed from sizes."""
    rows = np.arange(system.n_lambda) if rows is None else np.asarray(rows, dtype=np.int64)
    return Setting(rows, np.outer([1.5e-2, 1e-5], lengths_of(system, np.asarray(q, dtype=float), typical_size)), 1e-3)


def lengths_of(system: MechanicalSystem, q: np.ndarray, otherwise: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Sizes of the coordinates; those of machines are no smaller than what their joints are known for.

    Coordinates of joints count from a zero position, in which the terms of constraints do not vanish. Of other systems
    nothing is known but q: `otherwise` tells its sizes.
    """
    typical = getattr(system, "typical_sizes", None)
    return otherwise(q) if typical is None else np.maximum(np.abs(q), typical)


def setting_at(
    system: MechanicalSystem,
    t: float,
    q: np.ndarray,
    *,
    rows=None,
    autonomous: bool = False,
    interval: tuple[float, float] | None = None,
    analytic: bool = True,
    assembly=None,
) -> Setting:
    """The setting of a run over an interval that starts at (t, q).

    `analytic` is False if the complex step is known not to hold. `assembly` is one of the system that may be used.
    """
    q = np.asarray(q, dtype=float)
    interval = interval or (float(t), float(t) + max(1.0, 1e-3 * abs(float(t))))
    setting = plain_setting(system, q, rows).changed(autonomous=autonomous, interval=interval)
    reduced = without_contact(system)
    if not _is_differenced(reduced, autonomous):
        return setting
    if assembly is None:
        from daedal.mechanics.assembly import Assembly

        assembly = Assembly(system, setting=setting)
    else:
        assembly.adopt(setting)
    from daedal.mechanics.differences import find_increments

    record = assembly.record
    # Where the coordinates change, velocity constraints only show it if something moves.
    lengths = lengths_of(system, q, typical_size)
    # At zero, or at a rounding error, terms of constraints vanish, beside which their own rounding errors are judged.
    near = np.where(np.abs(q) > _NOTHING * lengths, q, _BESIDE * lengths) if hasattr(system, "typical_sizes") else q
    z = np.concatenate([near, np.where(np.arange(q.size) % 2, 0.7, 1.0) * lengths])
    status = find_increments(record.address, float(t), z)
    _forget_errors(assembly)
    if status == 0:
        setting = setting.changed(
            increments=record.array("increments").copy(), time_increment=float(record["time_increment"])
        )
    by_complex_step = analytic and _complex_step_holds(reduced, assembly, float(t), z)
    return setting.changed(complex_step=by_complex_step)


def missing_derivatives(system: MechanicalSystem) -> list[str]:
    """The derivatives of the position constraints that were not given."""
    return [] if system.constraint is None else [name for name in DERIVATIVES if getattr(system, name) is None]


def _is_differenced(system: MechanicalSystem, autonomous: bool) -> bool:
    """Whether a constraint has to be moved along coordinates or time."""
    if system.velocity_constraint is not None and system.velocity_bias is None:
        return True
    return any(not autonomous or name != "constraint_t" for name in missing_derivatives(system))


def _forget_errors(assembly):
    """Beyond the domain of the user's functions anything may be raised; the run says it properly if it gets there."""
    pending, assembly.bridge.exception = assembly.bridge.exception, None
    if isinstance(pending, KeyboardInterrupt):
        raise pending


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


def tuning(system: MechanicalSystem, setting: Setting) -> np.ndarray:
    """What the functions of the complex step get as parameters: the user's, then increments for their differences."""
    numbers = np.zeros(0) if system.params is None else parameter_vector(system.params)
    return np.concatenate([numbers, _SHARE * setting.increments[0], [_SHARE * setting.time_increment]])


_SHARE = 0.05  # fourth-order differences of slopes move less far than sixth-order second differences


def _complex_step_holds(system: MechanicalSystem, assembly, t: float, z: np.ndarray) -> bool:
    """Whether derivatives are missing that the complex step gives: it compiles, and agrees with differences."""
    if not missing_derivatives(system) or not is_compiled(system.constraint):
        return False
    from daedal.mechanics.constrained import JACOBIAN, VELOCITY

    q, v = np.split(z, 2)
    try:
        values = assembly.evaluate(t, z, what=JACOBIAN | VELOCITY)
        functions, numbers = complex_functions(system), tuning(system, assembly.setting)
        jacobian = functions["constraint_jacobian"](t, q, numbers)
        partial_t = functions["constraint_t"](t, q, numbers)
        functions["acceleration_bias"](t, q, v, numbers)
    except Exception:  # functions that Numba cannot compile for complex arguments fail in many ways
        _forget_errors(assembly)
        return False
    if values is None:
        return False
    used = assembly.rows[assembly.rows < system.n_constraints]
    moves = assembly.record.array("increments")[0]
    exact, differences = jacobian[used] * moves, values["jacobian"][: used.size] * moves
    allowed = _SAME * np.max(np.abs(exact) + np.abs(differences), axis=1, initial=0.0)
    wrong = np.abs(exact - differences) > allowed[:, None]
    rate = values["level"][1, : used.size]
    sizes = np.abs(jacobian[used]) @ np.abs(v) + np.abs(partial_t[used]) + np.abs(rate)
    wrong_rate = np.abs((jacobian @ v + partial_t)[used] - rate) > _SAME * sizes
    return not (np.any(wrong) or np.any(wrong_rate))
