"""Making a mechanical system ready for kernels: callbacks, arrays, and the derivatives that were not given."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from daedal.errors import InvalidProblemError, Unevaluable
from daedal.kernels.functions import is_compiled, store_matrix, store_vector
from daedal.mechanics.contact import without_contact
from daedal.mechanics.increments import best_increment, typical_size
from daedal.mechanics.start import Start
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_number, check_vector, check_weight
from daedal.problems.compile import last_argument
from daedal.problems.mechanical import FUNCTIONS

_RESULTS = {
    "constraint": "n_constraints",
    "constraint_t": "n_constraints",
    "acceleration_bias": "n_constraints",
    "velocity_constraint": "n_velocity_constraints",
    "velocity_bias": "n_velocity_constraints",
    "state_rate": "n_r",
    "algebraic": "n_w",
}
EVALUATED = tuple(name for name in FUNCTIONS if name != "contact")
"""The functions that kernels call; contact coordinates are eliminated before."""

_KEPT_RECORDS = 4
_OUTGROWN = 1e4  # coordinates so many times larger need other increments
_LONGEST_MOVE = 10.0
_FIELDS = {
    "mass": "mass_function",
    "force": "force_function",
    "algebraic": "algebraic_equation",
}


class Assembly:
    """The CONSTRAINED record of a system, with the bridge to its functions.

    Parameters
    ----------
    system : MechanicalSystem
    t, q : float, array
        A typical point, at which increments of differences are chosen.
    rows : sequence of int, optional
        The constraints to use; all of them by default.
    autonomous : bool
        Whether the constraints are known not to depend on time.
    """

    def __init__(self, system: MechanicalSystem, t: float, q: np.ndarray, *, rows=None, autonomous: bool = False):
        self.given = system
        self.system = system = without_contact(system)
        self.m, self.nx, self.n_r, self.n_w = 2, system.n_q, system.n_r, system.n_w
        self.rows = np.arange(system.n_lambda) if rows is None else np.asarray(rows, dtype=np.int64)
        self.n_c = self.rows.size
        self.n_g = int(np.sum(self.rows < system.n_constraints))
        self._shelf = system.__dict__.setdefault("_assemblies", {}).setdefault(self.rows.tobytes(), [])
        self._size = float(np.max(typical_size(np.asarray(q, dtype=float)), initial=0.0))
        try:
            self.record, self.bridge, self._mark, size = self._shelf.pop()
            if self._size > _OUTGROWN * size:
                raise IndexError  # its increments were chosen where all coordinates were nearly zero
            self._size = max(size, self._size)
            self.bridge.refresh()
            for name in ("state", "multipliers"):
                self.record.array(name)[:] = 0.0
        except IndexError:
            self.record, self.bridge = self._build(float(t), np.asarray(q, dtype=float))
            self._mark = self.bridge.mark()
        self.record["autonomous"] = autonomous

    def __del__(self):
        """Leave the record to a later assembly of the same system: it is not cheap to make."""
        if hasattr(self, "_mark") and len(self._shelf) < _KEPT_RECORDS:
            self.bridge.trim(self._mark)
            self._shelf.append((self.record, self.bridge, self._mark, self._size))

    def _build(self, t: float, q: np.ndarray):
        from daedal.kernels.callbacks import Bridge
        from daedal.kernels.dense import dense_lu
        from daedal.kernels.records import Arena, Record
        from daedal.mechanics.augmented import accelerator
        from daedal.mechanics.constrained import CONSTRAINED, MECHANICAL, array_sizes
        from daedal.mechanics.evaluation import evaluator

        system, bridge = self.system, Bridge()
        increments, time_increment = _increments(system, t, q)
        functions = _functions(system, t, q, increments, time_increment)
        all_g, all_v = system.n_constraints, system.n_velocity_constraints
        arena = Arena(array_sizes(2, self.nx, self.n_c, all_g, all_v, self.n_r, self.n_w), integers=("rows",))
        arena.arrays["rows"][:] = self.rows
        arena.arrays["increments"][:] = np.concatenate([increments, increments])
        if not callable(system.mass):
            mass = system.mass.toarray() if hasattr(system.mass, "toarray") else system.mass
            arena.arrays["mass"][:] = mass.ravel()
        record = Record(
            CONSTRAINED,
            arena,
            kind=MECHANICAL,
            evaluator=evaluator.address,
            accelerator=accelerator.address,
            m=2,
            nx=self.nx,
            n_g=self.n_g,
            n_c=self.n_c,
            n_r=self.n_r,
            n_w=self.n_w,
            all_g=all_g,
            all_v=all_v,
            n_arguments=sum(argument_sizes(system, "force")),
            constant_mass=not callable(system.mass),
            uses_multipliers=system.force_uses_multipliers,
            time_increment=time_increment,
            kkt=dense_lu(self.nx + self.n_c),
            projection=dense_lu(self.nx + self.n_c),
            inner_matrix=dense_lu(max(self.n_c + self.n_w, 1)),
            **{_FIELDS.get(name, name): _callback(bridge, system, name, f) for name, f in functions.items()},
        )
        return record, bridge

    given: Any
    system: Any
    linear = False
    output_weight: Any = "M"

    def choose_weight(self, values: dict[str, np.ndarray] | None):
        """Project in the norm of the mass matrix, unless that is singular or moves the state much farther than need be.

        The move is F g with F = M^{-1} G^T (G M^{-1} G^T)^{-1}; the shortest one is G^+ g.
        """
        self.output_weight = "I"
        if values is None or self.n_c == 0:
            return
        jacobian = values["jacobian"]
        try:
            b = np.linalg.solve(values["mass"], jacobian.T)
            move = b @ np.linalg.inv(jacobian @ b)
            shortest = np.trace(np.linalg.inv(jacobian @ jacobian.T))
            if np.sum(move * move) <= _LONGEST_MOVE**2 * shortest:
                self.output_weight = "M"
        except np.linalg.LinAlgError:
            return

    def start(self, t: float, state: np.ndarray, guess: np.ndarray | None = None) -> Start:
        """Accelerations, multipliers and algebraic variables that belong to a consistent state (z, r)."""
        n = self.m * self.nx
        if guess is not None and guess.size == self.n_w + self.rows_given:
            guess = np.concatenate([guess[: self.n_w], guess[self.n_w :][self.rows]])[None]
        elif guess is not None:
            guess = guess[None]
        a, lam, rate, w, _ = self.accelerate(t, state, guess)
        return Start(float(t), state[:n].copy(), a[0], lam[0], state[n:].copy(), rate[0], w[0])

    @property
    def rows_given(self) -> int:
        """How many constraints the system has, redundant ones included."""
        return self.given.n_lambda

    def drift(self, times: np.ndarray, states: np.ndarray, suffix: str = "") -> dict[str, float]:
        """The largest residuals of the constraints, on the position and on the velocity level."""
        from daedal.mechanics.manifold import residual_points

        largest = np.zeros((times.size, 2))
        residual_points(self.record.data, times, states, largest)
        self.bridge.raise_pending()
        position, velocity = np.fmax.reduce(largest, axis=0).tolist() if times.size else (0.0, 0.0)
        levels = {"position": position, "velocity": velocity}
        if self.m == 1:
            levels = {"position": velocity}
        elif self.n_g == 0:
            levels = {"velocity": velocity}
        return {name + suffix: value for name, value in levels.items()}

    def complete(self) -> Assembly:
        """The same system with all of its constraints, also the redundant ones."""
        return Assembly(self.given, 0.0, np.ones(self.nx), autonomous=bool(self.record["autonomous"]))

    def solution(self, **fields):
        """What came out, for the user."""
        from daedal.mechanical_solution import MechanicalSolution

        return MechanicalSolution(system=self.given, assembly=self, **fields)

    def state_names(self) -> list[str]:
        """Names of (z, r)."""
        return [self.given.label(i) for i in range(self.n_state)]

    def row_names(self) -> list[str]:
        """Names of the constraints in use."""
        return [self.given.constraint_label(int(i)) for i in self.rows]

    def projector(self, weight="M", levels: int | None = None):
        """A PROJECTOR record: projection in the norm of the mass matrix, the identity or a given matrix."""
        from daedal.kernels.records import Record
        from daedal.mechanics.manifold import GIVEN_WEIGHT, IDENTITY_WEIGHT, MASS_WEIGHT, PROJECTOR

        matrix = np.zeros(self.nx * self.nx)
        kinds = {"M": MASS_WEIGHT, "mass": MASS_WEIGHT, "I": IDENTITY_WEIGHT, "identity": IDENTITY_WEIGHT}
        if isinstance(weight, str):
            if weight not in kinds:
                raise InvalidProblemError(f"unknown weight '{weight}'; known: 'M', 'I', or a matrix")
            kind = kinds[weight]
        else:
            values = check_weight(weight, self.nx, "be 'M', 'I' or a positive definite matrix")
            kind, matrix = GIVEN_WEIGHT, np.ascontiguousarray(values).ravel()
        return Record(
            PROJECTOR,
            system=self.record.data.ctypes.data,
            weight_kind=kind,
            weight=matrix,
            levels=self.m if levels is None else levels,
        )

    def project(self, times, states, weight="M", levels: int | None = None) -> np.ndarray:
        """Project the rows of `states` (z, r) in place; returns 0 for those where it succeeded."""
        from daedal.mechanics.manifold import project_points

        statuses = np.zeros(times.size, dtype=np.int64)
        project_points(self.projector(weight, levels).data, self.record.data, times, states, statuses)
        self.bridge.raise_pending()
        return statuses

    @property
    def n_state(self) -> int:
        """Length of (z, r)."""
        return self.m * self.nx + self.n_r

    def evaluate(self, t: float, z, r=None, w=None, lam=None, what: int = 255) -> dict[str, np.ndarray] | None:
        """Evaluate at a point; copies of the arrays of the record, or None where a function cannot be evaluated."""
        from daedal.mechanics.manifold import evaluate_point

        zeros = np.zeros
        status = evaluate_point(
            self.record.data,
            float(t),
            np.asarray(z, dtype=float),
            zeros(self.n_r) if r is None else np.asarray(r, dtype=float),
            zeros(self.n_w) if w is None else np.asarray(w, dtype=float),
            zeros(self.n_c) if lam is None else np.asarray(lam, dtype=float),
            what,
        )
        self.bridge.raise_pending()
        if status != 0:
            return None
        nx, n_c, array = self.nx, self.n_c, self.record.array
        return {
            "mass": array("mass").reshape(nx, nx).copy(),
            "force": array("force").copy(),
            "jacobian": array("jacobian").reshape(n_c, nx).copy(),
            "level": array("level").reshape(self.m, n_c).copy(),
            "bias": array("bias").copy(),
            "rate": array("rate").copy(),
            "algebraic": array("algebraic").copy(),
        }

    def accelerate(self, times, states, guesses=None):
        """a, lam, r' and w at the rows of `states` (z, r); rows where they do not exist are nan."""
        from daedal.mechanics.manifold import accelerate_points

        times, states = np.atleast_1d(np.asarray(times, dtype=float)), np.ascontiguousarray(np.atleast_2d(states))
        count = times.size
        if guesses is None:
            guesses = np.zeros((count, self.n_w + self.n_c))
        results = [np.full((count, k), np.nan) for k in (self.nx, self.n_c, self.n_r, self.n_w)]
        statuses = np.zeros(count, dtype=np.int64)
        accelerate_points(self.record.data, times, states, guesses, *results, statuses)
        self.bridge.raise_pending()
        return *results, statuses


def _callback(bridge, system: MechanicalSystem, name: str, function):
    """The record by which kernels call a function of the system."""
    n, shapes = system.n_q, argument_sizes(system, name)
    if name == "mass":
        return bridge.function(function, shapes, (n, n), store_matrix("mass", n, n), system.params)
    if name in ("constraint_jacobian", "velocity_jacobian"):
        rows = system.n_constraints if name == "constraint_jacobian" else system.n_velocity_constraints
        return bridge.function(function, shapes, (rows, n), store_matrix(name, rows, n), system.params)
    size = n if name == "force" else getattr(system, _RESULTS[name])
    return bridge.function(function, shapes, (size,), store_vector(name, size), system.params)


def argument_sizes(system: MechanicalSystem, name: str) -> tuple[int, ...]:
    """Lengths of the array arguments of a function."""
    n = system.n_q
    if name in ("mass", "constraint", "constraint_jacobian", "constraint_t", "velocity_jacobian"):
        return (n,)
    if name in ("acceleration_bias", "velocity_constraint", "velocity_bias"):
        return (n, n)
    extra = (system.n_r, system.n_w, system.n_lambda if system.force_uses_multipliers else 0)
    return (n, n, *[size for size in extra if size])


def _functions(system: MechanicalSystem, t, q, increments, time_increment) -> dict[str, Any]:
    """The user's functions, and for compiled constraints the missing derivatives by the complex step."""
    functions = {name: getattr(system, name) for name in EVALUATED if callable(getattr(system, name))}
    missing = [name for name in ("constraint_jacobian", "constraint_t", "acceleration_bias") if name not in functions]
    if missing and "constraint" in functions and is_compiled(system.constraint):
        functions |= _by_complex_step(system, t, q, increments, time_increment, missing)
    return functions


_complex_step: WeakKeyDictionary = WeakKeyDictionary()


def _by_complex_step(system, t, q, increments, time_increment, missing) -> dict[str, Any]:
    """Those of the missing derivatives that the complex step gives; none if it disagrees with differences."""
    known = _complex_step.setdefault(system.constraint, {})
    key = system.n_q, system.n_constraints
    if key not in known:  # kept with the function: systems that differ in their parameters only share it
        known[key] = _complex_functions(system, t, q, increments, time_increment)
    return {name: function for name, function in known[key].items() if name in missing}


def _complex_functions(system, t, q, increments, time_increment) -> dict[str, Any]:
    from numba.core.errors import NumbaError

    from daedal.mechanics.complex_step import complex_derivatives

    jacobian, partial_t, bias = complex_derivatives(
        system.constraint, system.n_q, system.n_constraints, increments, time_increment
    )
    last = last_argument(system.constraint, system.params)
    constraint = vector_function(system, "constraint", system.n_constraints)
    try:
        constraint(t, q)
        exact = jacobian(t, q, *last)
        partial_t(t, q, *last)
        differences = np.empty_like(exact)
        for j, h in enumerate(increments):
            unit = h * np.eye(q.size)[j]
            differences[:, j] = (constraint(t, q + unit) - constraint(t, q - unit)) / (2.0 * h)
    except (NumbaError, ArithmeticError, LookupError, ValueError, TypeError, Unevaluable):
        return {}
    scale = np.max(np.abs(differences), initial=0.0) + np.max(np.abs(exact), initial=0.0)
    if not np.max(np.abs(exact - differences), initial=0.0) <= 1e-2 * scale:
        return {}
    return {"constraint_jacobian": jacobian, "constraint_t": partial_t, "acceleration_bias": bias}


def _increments(system: MechanicalSystem, t: float, q: np.ndarray) -> tuple[np.ndarray, float]:
    """Increments of the coordinates and of the time for differences of the constraints, found once for a system.

    They are looked for again when the coordinates have become much larger than those for which they were found.
    """
    kept, size = system.__dict__.get("_increments", (None, 0.0))
    largest = float(np.max(typical_size(q), initial=0.0))
    if kept is None or largest > _OUTGROWN * size:
        kept = _find_increments(system, t, q)
        object.__setattr__(system, "_increments", (kept, largest))
    return kept


def _find_increments(system: MechanicalSystem, t: float, q: np.ndarray) -> tuple[np.ndarray, float]:
    sizes = typical_size(q)
    given = (system.constraint_jacobian, system.constraint_t, system.acceleration_bias)
    complete = system.constraint is None or all(function is not None for function in given)
    if complete and (system.velocity_constraint is None or system.velocity_bias is not None):
        return 1e-3 * sizes, 1e-3
    probe, unit = constraint_probe(system, q), np.eye(q.size)
    # Along an axis through the point a constraint may happen to be linear, so that it is looked at beside it as well.
    beside = q + 0.2 * sizes * np.cos(0.4 + 1.9 * np.arange(q.size))
    points = [q, beside] if _is_evaluable(probe, t, beside) else [q]
    increments = [
        best_increment(lambda s, j=j: np.concatenate([probe(t, p + s * unit[j]) for p in points]), sizes[j])
        for j in range(q.size)
    ]
    return np.array(increments), best_increment(lambda s: probe(t + s, q), 1.0)


def _is_evaluable(probe, t: float, q: np.ndarray) -> bool:
    try:
        return bool(np.all(np.isfinite(probe(t, q))))
    except Exception:  # beyond the domain of the user's function anything may be raised
        return False


def constraint_probe(system: MechanicalSystem, q: np.ndarray, v: np.ndarray | None = None):
    """All constraints as one vector function of (t, q), at the velocities v or some of the size of q.

    It raises what the user's functions raise.
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


def same_at(probe, times, q: np.ndarray) -> bool:
    """Whether the constraints have the same values at the first and at all other times at which they have any."""
    first = _values_or_nan(probe, times[0], q)
    others = (_values_or_nan(probe, t, q) for t in times[1:])
    return bool(np.all(np.isfinite(first))) and all(
        np.array_equal(values, first) for values in others if np.all(np.isfinite(values))
    )


def _values_or_nan(probe, t: float, q: np.ndarray) -> np.ndarray:
    try:
        return probe(float(t), q)
    except Exception:  # the run may end before that time, and says it properly if it gets there
        return np.full(1, np.nan)


def check_point(system: MechanicalSystem, t, q, v) -> tuple[float, np.ndarray, np.ndarray]:
    """(t, q, v) as floats, checked; v is zero if it is None."""
    labels = tuple(system.label(i) for i in range(2 * system.n_q))
    n = system.n_q
    if q is None:
        raise InvalidProblemError("q is missing")
    q = check_vector(q, n, "q", names=labels[:n])
    v = np.zeros(n) if v is None else check_vector(v, n, "v", names=labels[n:])
    return check_number(t, "t"), q, v
