r"""How a constrained system is evaluated in a run: configuration, consistent start, pools of assemblies.

Configurations are derived from the start of a run and are not stored on the system, so that they do not depend on
earlier runs.

Missing derivatives of compiled constraints are computed by the complex step, exact to round-off without subtraction:

.. math:: \partial g_i / \partial q_j = \operatorname{Im} g_i(t, q + i \varepsilon e_j) / \varepsilon

This requires an analytic function that Numba compiles for complex arguments; analyticity is checked by comparison with
differences.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from daedal.kernels.five_point import DIVISOR, PLACES, WEIGHTS, five_point
from daedal.kernels.functions import is_compiled, parameter_vector
from daedal.mechanics.contact import without_contact
from daedal.problems import MechanicalSystem

_ROUNDOFF = float(np.finfo(float).eps)
# displacements, in increments, at which quotients are compared: at a point of symmetry alone, all of them agree
_OFFSETS = np.array([0.0, 0.37, -0.61])
_SHARES = 10.0 ** np.arange(-9.0, -0.5, 0.5)
_WORSE = 1e3  # multiple of the smallest disagreement above which the search ends


def best_increment(function, scale: float) -> float:
    """The increment h for which difference quotients of `function` with h and h/2 agree best.

    ``function(s)`` is a vector, evaluated at the displacement s; it may raise outside its domain.
    """
    best, smallest = 1e-3 * scale, np.inf
    for h in scale * _SHARES:
        try:
            differences = [_quotient(function, h, s) - _quotient(function, 0.5 * h, s) for s in _OFFSETS * h]
        except Exception:  # user functions may raise anything outside their domain
            break
        error = np.max(np.abs(differences), initial=0.0) + _ROUNDOFF / h
        if not np.isfinite(error) or error > _WORSE * smallest:
            break
        if error <= 2.0 * smallest:  # among equally good increments, the longest also suits second differences
            best, smallest = h, min(error, smallest)
    return float(best)


def _quotient(function, h: float, s: float) -> np.ndarray:
    """The central difference quotient of fourth order at the displacement s."""
    return five_point(lambda move: function(s + move), h)


def typical_size(q: np.ndarray) -> np.ndarray:
    """Sizes of the coordinates, all equal to the largest absolute value, or to 1 if q = 0."""
    largest = float(np.max(np.abs(q), initial=0.0))
    return np.full(q.shape, largest if largest > 0.0 else 1.0)


DERIVATIVES = ("constraint_jacobian", "constraint_t", "acceleration_bias")
_NOTHING = 1e-13  # fraction of a coordinate's size below which the coordinate counts as zero
_BESIDE = 1e-2  # value instead of zero at which increments are chosen, as a fraction of the coordinate's size
_SAME = 1e-5  # largest relative difference between complex step and differences that counts as round-off


@dataclass(frozen=True, eq=False)
class EvaluationConfig:
    """The constraints in use and how their missing derivatives are formed.

    Attributes
    ----------
    rows : numpy.ndarray of int
        The constraints in use; the others are redundant.
    increments : numpy.ndarray, shape (2, n_q)
        Initial increments along a line and with respect to single coordinates.
    time_increment : float
        Initial increment of time, along a line.
    complex_step : bool
        Whether the missing derivatives of a compiled constraint are computed by the complex step.
    autonomous : bool
        Whether the constraints are independent of time.
    weight : str
        Norm in which output is projected onto the constraints: "M", or "I".
    guess : numpy.ndarray, optional
        Algebraic variables and multipliers (w, lam) of the start, if they are found by Newton's method.
    interval : (float, float)
        Interval of the run, which bounds the increment of time.
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

    def changed(self, **values) -> EvaluationConfig:
        """A copy with other values."""
        return replace(self, **values)


def plain_setting(system: MechanicalSystem, q: np.ndarray, rows=None) -> EvaluationConfig:
    """Default setting for evaluations outside a run, with increments estimated from sizes."""
    rows = np.arange(system.n_lambda) if rows is None else np.asarray(rows, dtype=np.int64)
    return EvaluationConfig(
        rows, np.outer([1.5e-2, 1e-5], lengths_of(system, np.asarray(q, dtype=float), typical_size)), 1e-3
    )


def lengths_of(system: MechanicalSystem, q: np.ndarray, otherwise: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Sizes of the coordinates; for machines, at least their typical sizes.

    Joint coordinates may be zero at positions in which the terms of constraints do not vanish. For other systems,
    sizes are ``otherwise(q)``.
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
) -> EvaluationConfig:
    """The setting of a run over an interval that starts at (t, q).

    `analytic` is False if the complex step is known to fail. `assembly` is an existing assembly of the system.
    """
    q = np.asarray(q, dtype=float)
    interval = interval or (float(t), float(t) + max(1.0, 1e-3 * abs(float(t))))
    setting = plain_setting(system, q, rows).changed(autonomous=autonomous, interval=interval)
    reduced = without_contact(system)
    if not _is_differenced(reduced, autonomous):
        return setting
    if assembly is None:
        from daedal.mechanics.system_workspace import SystemWorkspace

        assembly = SystemWorkspace(system, setting=setting)
    else:
        assembly.adopt(setting)
    from daedal.mechanics.differences import find_increments

    record = assembly.record
    # Velocity constraints reveal changes with the coordinates only at nonzero velocities.
    lengths = lengths_of(system, q, typical_size)
    # At zero, or at a rounding error, the terms of constraints vanish, and with them the scale of their rounding
    # errors.
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
    """Whether a constraint needs differences in coordinates or time."""
    if system.velocity_constraint is not None and system.velocity_bias is None:
        return True
    return any(not autonomous or name != "constraint_t" for name in missing_derivatives(system))


def _forget_errors(assembly):
    """Discard an exception of a user function outside its domain; the run raises it again if it matters."""
    pending, assembly.bridge.exception = assembly.bridge.exception, None
    if isinstance(pending, KeyboardInterrupt):
        raise pending


# --- the complex step -------------------------------------------------------------------------------------------------

_complex_functions: WeakKeyDictionary = WeakKeyDictionary()


def complex_functions(system: MechanicalSystem) -> dict[str, Any]:
    """Compiled complex-step derivatives, functions of (t, q[, v], tuning); cached per constraint, without numbers."""
    known = _complex_functions.setdefault(system.constraint, {})
    n_p = -1 if system.params is None else parameter_vector(system.params).size
    key = system.n_q, system.n_constraints, n_p
    if key not in known:
        known[key] = dict(zip(DERIVATIVES, complex_derivatives(system.constraint, *key), strict=True))
    return known[key]


def tuning(system: MechanicalSystem, setting: EvaluationConfig) -> np.ndarray:
    """Parameters of the complex-step functions: the user's parameters, then increments for differences of slopes."""
    numbers = np.zeros(0) if system.params is None else parameter_vector(system.params)
    return np.concatenate([numbers, _SHARE * setting.increments[0], [_SHARE * setting.time_increment]])


_SHARE = 0.05  # increments of fourth-order differences of slopes, relative to the increments of second differences


def _complex_step_holds(system: MechanicalSystem, assembly, t: float, z: np.ndarray) -> bool:
    """Whether the complex step provides missing derivatives: it compiles, and agrees with differences."""
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


_STEP = 1e-30


def complex_derivatives(constraint, n_q: int, n_g: int, n_p: int):
    r"""Compiled ``jacobian(t, q, tuning)``, ``partial_t(t, q, tuning)`` and ``bias(t, q, v, tuning)`` of a constraint.

    The bias is :math:`\gamma = -d^2/ds^2\, g(t + s, q + s v)`: a fourth-order difference of complex-step slopes.
    `tuning` holds the `n_p` parameters of the constraint (-1 if it takes none), followed by the increments of the
    coordinates and of time.
    """
    import numba

    if n_p < 0:

        @numba.njit
        def complex_constraint(t, x, tuning):
            return constraint(t, x)

    else:

        @numba.njit
        def complex_constraint(t, x, tuning):
            return constraint(t, x, tuning[:n_p])

    first = max(n_p, 0)

    @numba.njit
    def imaginary(values):
        result = np.empty(n_g)
        for i in range(n_g):
            result[i] = values[i].imag / _STEP
        return result

    @numba.njit
    def jacobian(t, q, tuning):
        result = np.empty((n_g, n_q))
        x = q.astype(np.complex128)
        for j in range(n_q):
            x[j] = complex(q[j], _STEP)
            column = imaginary(complex_constraint(complex(t, 0.0), x, tuning))
            x[j] = q[j]
            for i in range(n_g):
                result[i, j] = column[i]
        return result

    @numba.njit
    def partial_t(t, q, tuning):
        return imaginary(complex_constraint(complex(t, _STEP), q.astype(np.complex128), tuning))

    @numba.njit
    def bias(t, q, v, tuning):
        speed = 1.0 / tuning[first + n_q]
        for j in range(n_q):
            speed = max(speed, abs(v[j]) / tuning[first + j])
        result = np.zeros(n_g)
        x = np.empty(n_q, dtype=np.complex128)
        for side in range(4):
            move = PLACES[side] / speed
            weight = WEIGHTS[side] / DIVISOR * speed
            for j in range(n_q):
                x[j] = complex(q[j] + move * v[j], _STEP * v[j])
            slope = imaginary(complex_constraint(complex(t + move, _STEP), x, tuning))
            for i in range(n_g):
                result[i] -= weight * slope[i]
        return result

    return jacobian, partial_t, bias


@dataclass
class ConsistentStart:
    """Consistent values at the start of a run: z = (q, v), r, w, accelerations, and multipliers of the rows in use."""

    t: float
    z: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    r: np.ndarray = field(default_factory=lambda: np.zeros(0))
    rate: np.ndarray = field(default_factory=lambda: np.zeros(0))
    w: np.ndarray = field(default_factory=lambda: np.zeros(0))
    direction: int = 1  # direction of time: -1 for backward integration, which changes the sign of damping

    def towards(self, sign: float) -> ConsistentStart:
        """A copy with the given direction of time."""
        return self if sign * self.direction > 0 else replace(self, direction=int(sign))

    @property
    def slope(self) -> np.ndarray:
        """z'."""
        nx = self.a.size
        return np.concatenate([self.z[nx:], self.a])


_KEPT = 4  # maximum number of idle assemblies of each kind in the pool


class Pool:
    """A pool of assemblies, created by ``kind(system, setting=...)``, of systems that differ only in their parameters.

    No state of an earlier use survives: `adopt` resets everything that a run changes in an assembly.
    """

    def __init__(self, kind):
        self._kind = kind
        self._shelves: dict[Any, list] = {}

    def take(self, system, setting):
        """An assembly of the system with this setting, for exclusive use."""
        shelf = self._shelves.setdefault(setting.key, [])
        try:
            return shelf.pop().adopt(setting, system)
        except IndexError:  # none is free: another thread may have taken the last one
            return self._kind(system, setting=setting)

    def give_back(self, assembly):
        """Return an assembly to the pool, unless the pool is full."""
        shelf = self._shelves.setdefault(assembly.setting.key, [])
        if len(shelf) < _KEPT:
            shelf.append(assembly)

    @contextmanager
    def lend(self, system, setting):
        """Context manager that borrows an assembly from the pool."""
        assembly = self.take(system, setting)
        try:
            yield assembly
        finally:
            self.give_back(assembly)

    def __getstate__(self) -> dict[str, Any]:
        return {"_kind": self._kind, "_shelves": {}}


class WorkspacePool:
    """Assemblies of one system with one setting, for solutions that evaluate it from any thread."""

    def __init__(self, pool: Pool, system, setting):
        self.pool, self.system, self.setting = pool, system, setting

    def lend(self):
        """Context manager that borrows an assembly."""
        return self.pool.lend(self.system, self.setting)


class LockedWorkspace:
    """One assembly shared by several threads under a lock."""

    def __init__(self, assembly):
        self._assembly, self._lock = assembly, RLock()

    @contextmanager
    def lend(self):
        """Context manager that locks the assembly."""
        with self._lock:
            yield self._assembly
