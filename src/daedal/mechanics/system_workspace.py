"""Preparation of a mechanical system for kernels: callbacks, arrays, and the derivatives that were not given.

A friction law that divides by the normal force is undefined at lambda = 0. Other multipliers are then tried in this
order: 1 and -1 for all of them, and those that balance the forces found there,

    M a + K^T lambda = f(..., +-1),   K a = -bias.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from daedal.common import first_use
from daedal.errors import InvalidProblemError
from daedal.kernels.functions import store_matrix, store_vector
from daedal.mechanics.contact import contact_coordinates, without_contact
from daedal.mechanics.setting import (
    ConsistentStart,
    EvaluationConfig,
    complex_functions,
    missing_derivatives,
    setting_at,
    tuning,
)
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_weight
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
"""The functions called by kernels, after elimination of contact coordinates."""

_LONGEST_MOVE = 10.0
_FIELDS = {"mass": "mass_function", "force": "force_function", "algebraic": "algebraic_equation"}


class SystemWorkspace:
    """The CONSTRAINED record of a system with its callbacks; not thread-safe.

    Parameters
    ----------
    system : MechanicalSystem
    t, q : float, array
        Start of a run: the point at which difference increments are chosen.
    rows : sequence of int, optional
        The constraints to use; all of them by default.
    autonomous : bool
        Whether the constraints are known to be independent of time.
    setting : EvaluationConfig, optional
        The configuration of an evaluation, instead of the other arguments.
    """

    def __init__(
        self,
        system: MechanicalSystem,
        t: float = 0.0,
        q: np.ndarray | None = None,
        *,
        rows=None,
        autonomous: bool = False,
        setting: EvaluationConfig | None = None,
    ):
        if setting is None:
            point = np.ones(system.n_q) if q is None else q
            setting = setting_at(system, t, point, rows=rows, autonomous=autonomous)
        self.given = system
        self.system = system = without_contact(system)
        self.m, self.nx, self.n_r, self.n_w = 2, system.n_q, system.n_r, system.n_w
        self.rows = setting.rows
        self.n_c = self.rows.size
        self.n_g = int(np.sum(self.rows < system.n_constraints))
        self._tuning = tuning(system, setting) if setting.complex_step else None
        self._made_with = system.params
        with first_use.counted():
            self.record, self.bridge = self._build(setting)
        self.prepared: dict[Any, Any] = {}  # objects that the driver caches with this assembly
        self.linearisations: dict[int, Any] = {}  # LINEARISATION records, by the number of constraint levels
        self.adopt(setting)

    @property
    def address(self) -> int:
        """Address of the record, for kernels."""
        return self.record.address

    sensitivities_at_start: Any = None  # sensitivities of the current run, and whether named values are held

    def adopt(self, setting: EvaluationConfig, system: MechanicalSystem | None = None) -> SystemWorkspace:
        """Adopt another `setting` with the same rows. All state of earlier uses is discarded.

        `system` may be the same system with other parameters.
        """
        record = self.record
        if system is not None and system is not self.given:
            self.given, self.system = system, without_contact(system)
            self.bridge.replace(self._made_with, system.params)
        if self._tuning is not None:
            self._tuning[:] = tuning(self.system, setting)
        self.bridge.refresh()
        record.array("state").fill(0.0)
        record.array("multipliers").fill(0.0)
        record.array("all_jacobian").fill(0.0)
        record.array("all_bias").fill(0.0)
        record.array("increments")[:] = setting.increments
        record["time_increment"] = setting.time_increment
        record["t_first"], record["t_last"] = setting.interval
        record["searches"], record["patience"], record["evaluations"] = 0, 0, 0
        if setting is not self.setting:
            record["autonomous"] = setting.autonomous
            self.setting, self.output_weight = setting, setting.weight
        return self

    def _build(self, setting: EvaluationConfig):
        from daedal.kernels.callbacks import Bridge
        from daedal.kernels.dense import dense_lu
        from daedal.kernels.records import Record
        from daedal.mechanics.augmented import accelerator
        from daedal.mechanics.constrained import CONSTRAINED, MECHANICAL
        from daedal.mechanics.evaluation import evaluator

        system, bridge = self.system, Bridge()
        record = Record.allocated(
            CONSTRAINED,
            kind=MECHANICAL,
            evaluator=evaluator.address,
            accelerator=accelerator.address,
            m=2,
            nx=self.nx,
            n_g=self.n_g,
            n_c=self.n_c,
            n_r=self.n_r,
            n_w=self.n_w,
            all_g=system.n_constraints,
            all_v=system.n_velocity_constraints,
            n_state=self.n_state + self.n_w + system.n_lambda,
            n_arguments=sum(argument_sizes(system, "force")),
            constant_mass=not callable(system.mass),
            uses_multipliers=system.force_uses_multipliers,
            length=self.given.typical_length,
            kkt=dense_lu(self.nx + self.n_c),
            projection=dense_lu(self.nx + self.n_c),
            inner_matrix=dense_lu(max(self.n_c + self.n_w, 1)),
            **{_FIELDS.get(name, name): callback for name, callback in self._callbacks(bridge, setting).items()},
        )
        record.array("rows")[:] = self.rows
        if not callable(system.mass):
            record.array("mass")[:] = system.mass.toarray() if hasattr(system.mass, "toarray") else system.mass
        return record, bridge

    def linearisation(self, levels: int):
        """LINEARISATION record for Newton's method; None if the functions were not traced.

        Constraints are differentiated at velocity level (`levels` = 1) or at both velocity and acceleration level.
        """
        if levels not in self.linearisations:
            self.linearisations[levels] = self._linearisation(levels)
        return self.linearisations[levels]

    def _linearisation(self, levels: int):
        system = self.system
        code = system.linearisation
        function = code.function(levels) if code is not None and code.belongs_to(system) else None
        if function is None:
            return None
        from daedal.kernels.records import Record
        from daedal.mechanics.constrained import LINEARISATION

        sizes = [size for size in (self.nx, self.nx, self.n_r, self.n_w, system.n_lambda, self.nx) if size]
        columns = 2 * self.nx + self.n_r + self.n_w + (system.n_lambda if system.force_uses_multipliers else 0)
        rows = self.nx + self.n_r + self.n_w + levels * system.n_lambda
        store = store_matrix("linearisation", rows, columns)
        callback = self.bridge.function(function, sizes, (rows, columns), store, self._made_with)
        return Record(LINEARISATION, function=callback, rows=rows, columns=columns, n_arguments=sum(sizes))

    def _callbacks(self, bridge, setting: EvaluationConfig) -> dict[str, Any]:
        """The user's functions, and complex-step derivatives of compiled constraints where needed."""
        system = self.system
        callbacks = {
            name: _callback(bridge, system, name, getattr(system, name), system.params)
            for name in EVALUATED
            if callable(getattr(system, name))
        }
        if setting.complex_step:
            functions = complex_functions(system)
            for name in missing_derivatives(system):
                callbacks[name] = _callback(bridge, system, name, functions[name], self._tuning)
        return callbacks | self._straight_line(bridge)

    def _straight_line(self, bridge) -> dict[str, Any]:
        """Callbacks of the system's straight-line code, for all kernels."""
        n, n_c, state = self.nx, self.n_c, argument_sizes(self.system, "force")
        layouts = {"accelerations": (state, n + n_c, 0)}
        if n_c:
            layouts["velocity_correction"] = ((n, n), n + n_c * n, 0)
            layouts["stage"] = ((*state, n, n), n + n_c, 2)
        if self.n_g:
            layouts["position_correction"] = ((n,), n, 0)
        return self.coded(layouts, bridge)

    def coded(self, layouts: dict[str, tuple[tuple[int, ...], int, int]], bridge=None) -> dict[str, Any]:
        """Callbacks of the system's straight-line code; empty without code that covers exactly the rows in use.

        A layout consists of the lengths of the array arguments, the length of the result, and the number of scalar
        arguments.
        """
        system, code, bridge = self.system, self.system.straight_line, bridge or self.bridge
        if code is None or self.n_c < system.n_lambda or not code.belongs_to(system):
            return {}
        made = {name: code.function(name) for name in layouts}
        if None in made.values():
            return {}
        return {
            name: bridge.function(
                made[name], shapes, (size,), store_vector(name, size), self._made_with, scalars=numbers
            )
            for name, (shapes, size, numbers) in layouts.items()
        }

    given: Any
    system: Any
    linear, is_sparse = False, False
    output_weight: Any = "M"
    setting: Any = None

    @property
    def is_coupled(self) -> bool:
        """Whether multipliers and algebraic variables are computed iteratively, which requires initial guesses."""
        return bool(self.n_w or self.record["uses_multipliers"])

    @property
    def has_straight_line(self) -> bool:
        """Whether accelerations are computed by the system's straight-line code."""
        return bool(self.record["accelerations"]["kind"])

    def weigh(self, weight: str):
        """Set the norm of output projections to that of the mass matrix ("M") or of the identity ("I")."""
        if weight != self.setting.weight:
            self.setting = self.setting.changed(weight=weight)
        self.output_weight = weight

    @property
    def is_autonomous(self) -> bool:
        """Whether the constraints are treated as independent of time."""
        return self.setting.autonomous

    def choose_weight(self, values: dict[str, np.ndarray] | None):
        """Choose the norm of M for projections, unless M is singular or moves the state much farther than necessary.

        The displacement is F g with F = M^{-1} G^T (G M^{-1} G^T)^{-1}; the shortest one is G^+ g.
        """
        self.weigh("I")
        if values is None or self.n_c == 0:
            return
        jacobian = values["jacobian"]
        try:
            b = np.linalg.solve(values["mass"], jacobian.T)
            move = b @ np.linalg.inv(jacobian @ b)
            shortest = np.trace(np.linalg.inv(jacobian @ jacobian.T))
            if np.sum(move * move) <= _LONGEST_MOVE**2 * shortest:
                self.weigh("M")
        except np.linalg.LinAlgError:
            return

    def start(self, t: float, state: np.ndarray, guess: np.ndarray | None = None) -> ConsistentStart:
        """Accelerations, multipliers and algebraic variables of a consistent state (z, r)."""
        n = self.m * self.nx
        if guess is not None and guess.size == self.n_w + self.rows_given:
            guess = np.concatenate([guess[: self.n_w], guess[self.n_w :][self.rows]])[None]
        elif guess is not None:
            guess = guess[None]
        a, lam, rate, w, _ = self.accelerate(t, state, guess)
        return ConsistentStart(float(t), state[:n].copy(), a[0], lam[0], state[n:].copy(), rate[0], w[0])

    @property
    def rows_given(self) -> int:
        """Number of constraints, including redundant ones."""
        return self.given.n_lambda

    def drift(self, times: np.ndarray, states: np.ndarray, suffix: str = "") -> dict[str, float]:
        """Largest residuals of the constraints, at position and velocity level."""
        found = self.drifts(times, states)
        return {name + suffix: float(np.fmax.reduce(rows)) if rows.size else 0.0 for name, rows in found.items()}

    def drifts(self, times: np.ndarray, states: np.ndarray) -> dict[str, np.ndarray]:
        """Largest residuals of the constraints at each time."""
        from daedal.mechanics.manifold import residual_points

        largest = np.zeros((times.size, 2))
        residual_points(self.record.address, times, states, largest)
        self.bridge.raise_pending()
        position, velocity = largest.T
        if self.m == 1:
            return {"position": velocity}
        return {"velocity": velocity} if self.n_g == 0 else {"position": position, "velocity": velocity}

    def complete(self) -> SystemWorkspace:
        """A new assembly of the system with all constraints, including redundant ones."""
        return SystemWorkspace(self.given, setting=self.setting.changed(rows=np.arange(self.given.n_lambda)))

    def state_names(self) -> list[str]:
        """Names of (z, r)."""
        return [self.given.label(i) for i in range(self.n_state)]

    def row_names(self) -> list[str]:
        """Names of the constraints in use."""
        return [self.given.constraint_label(int(i)) for i in self.rows]

    def projector(self, weight="M", levels: int | None = None):
        """PROJECTOR record: projection in the norm of the mass matrix, the identity or a given matrix."""
        from daedal.kernels.records import Record
        from daedal.mechanics.manifold import GIVEN_WEIGHT, IDENTITY_WEIGHT, MASS_WEIGHT, PROJECTOR

        matrix = np.zeros((self.nx, self.nx))
        kinds = {"M": MASS_WEIGHT, "mass": MASS_WEIGHT, "I": IDENTITY_WEIGHT, "identity": IDENTITY_WEIGHT}
        if isinstance(weight, str):
            if weight not in kinds:
                raise InvalidProblemError(f"unknown weight '{weight}'; known: 'M', 'I', or a matrix")
            kind = kinds[weight]
        else:
            values = check_weight(weight, self.nx, "be 'M', 'I' or a positive definite matrix")
            kind, matrix = GIVEN_WEIGHT, np.ascontiguousarray(values)
        return Record(
            PROJECTOR,
            system=self.record,
            weight_kind=kind,
            weight=matrix,
            levels=self.m if levels is None else levels,
        )

    def project(self, times, states, weight="M", levels: int | None = None) -> np.ndarray:
        """Project the rows of `states` (z, r) in place; returns 0 for rows that succeeded."""
        from daedal.mechanics.manifold import project_points

        statuses = np.zeros(times.size, dtype=np.int64)
        projector = self.projector(weight, levels)
        project_points(projector.address, self.record.address, times, states, statuses)
        self.bridge.raise_pending()
        return statuses

    @property
    def n_state(self) -> int:
        """Length of (z, r)."""
        return self.m * self.nx + self.n_r

    def evaluate(self, t: float, z, r=None, w=None, lam=None, what: int = 255) -> dict[str, np.ndarray] | None:
        """Evaluate the quantities `what` at a point: arrays by name, or None if a function cannot be evaluated."""
        from daedal.mechanics.constrained import ACCURATE
        from daedal.mechanics.manifold import evaluate_point

        zeros = np.zeros
        status = evaluate_point(
            self.record.address,
            float(t),
            np.ascontiguousarray(z, dtype=float),
            zeros(self.n_r) if r is None else np.ascontiguousarray(r, dtype=float),
            zeros(self.n_w) if w is None else np.ascontiguousarray(w, dtype=float),
            zeros(self.n_c) if lam is None else np.ascontiguousarray(lam, dtype=float),
            what | ACCURATE,
        )
        self.bridge.raise_pending()
        if status != 0:
            return None
        names = ("mass", "force", "jacobian", "level", "bias", "rate", "algebraic")
        return {name: self.record.array(name).copy() for name in names}

    def gradients(self, t: float, state: np.ndarray) -> np.ndarray | None:
        """Rows of K at a state (z, r), without evaluating forces; None if they cannot be evaluated."""
        from daedal.mechanics.constrained import JACOBIAN

        n = self.m * self.nx
        values = self.evaluate(t, state[:n], state[n:], what=JACOBIAN)
        return None if values is None else values["jacobian"]

    def contact_coordinates(self, times, q) -> np.ndarray:
        """s at the rows of q, as columns."""
        points = [contact_coordinates(self.given, t, x) for t, x in zip(times.tolist(), q, strict=True)]
        return np.array(points).reshape(times.size, self.given.n_s).T

    def accelerate(self, times, states, guesses=None):
        """a, lam, r' and w at the rows of `states` (z, r); rows without a solution are NaN."""
        from daedal.mechanics.manifold import accelerate_points

        times, states = np.atleast_1d(np.asarray(times, dtype=float)), np.ascontiguousarray(np.atleast_2d(states))
        count, searches = times.size, guesses is None and bool(self.record["uses_multipliers"] or self.n_w)
        if guesses is None:
            guesses = np.zeros((count, self.n_w + self.n_c))
        results = [np.full((count, k), np.nan) for k in (self.nx, self.n_c, self.n_r, self.n_w)]
        statuses = np.ones(count, dtype=np.int64)
        try:
            accelerate_points(self.record.address, times, states, guesses, *results, statuses)
            self.bridge.raise_pending()
        except ArithmeticError:
            if not searches:
                raise
        if searches and statuses.any():
            accelerate_from_elsewhere(self, times, states, results, statuses)
        return *results, statuses


def _callback(bridge, system: MechanicalSystem, name: str, function, params):
    """The record through which kernels call a function of the system."""
    n, shapes = system.n_q, argument_sizes(system, name)
    if name == "mass":
        return bridge.function(function, shapes, (n, n), store_matrix("mass", n, n), params)
    if name in ("constraint_jacobian", "velocity_jacobian"):
        rows = system.n_constraints if name == "constraint_jacobian" else system.n_velocity_constraints
        return bridge.function(function, shapes, (rows, n), store_matrix(name, rows, n), params)
    size = n if name == "force" else getattr(system, _RESULTS[name])
    return bridge.function(function, shapes, (size,), store_vector(name, size), params)


def argument_sizes(system: MechanicalSystem, name: str) -> tuple[int, ...]:
    """Lengths of the array arguments of a function."""
    n = system.n_q
    if name in ("mass", "constraint", "constraint_jacobian", "constraint_t", "velocity_jacobian"):
        return (n,)
    if name in ("acceleration_bias", "velocity_constraint", "velocity_bias"):
        return (n, n)
    extra = (system.n_r, system.n_w, system.n_lambda if system.force_uses_multipliers else 0)
    return (n, n, *[size for size in extra if size])


TRIED = "lam = 0, 1 and -1, and the multipliers that balance the forces found there"


def starting_points(assembly, t: float, state: np.ndarray, w: np.ndarray) -> Iterator[np.ndarray]:
    """Candidates for multipliers at which the forces can be evaluated, best first."""
    ones = np.ones(assembly.n_c)
    for lam in (np.zeros(assembly.n_c), ones, -ones):
        values = evaluated(assembly, t, state, w, lam)
        if values is None:
            continue
        if lam.any():
            balancing = _balancing(values)
            if balancing is not None and evaluated(assembly, t, state, w, balancing) is not None:
                yield balancing
        yield lam


def evaluated(assembly, t: float, state: np.ndarray, w: np.ndarray, lam: np.ndarray):
    """Values of the system's functions with the given multipliers; None if the forces are undefined."""
    n = assembly.m * assembly.nx
    try:
        values = assembly.evaluate(t, state[:n], state[n:], w, lam)
    except ArithmeticError:
        return None
    return values if values is not None and np.all(np.isfinite(values["force"])) else None


def accelerate_from_elsewhere(assembly, times, states, results, statuses):
    """Repeat failed points with other guesses: the multipliers of the previous point or of the start, or candidates."""
    n_w, before = assembly.n_w, assembly.setting.guess
    for k, t in enumerate(times):
        if statuses[k] == 0:
            before = np.concatenate([results[3][k], results[1][k]])
            continue
        w = np.zeros(n_w) if before is None else before[:n_w]
        others = (np.concatenate([w, lam]) for lam in starting_points(assembly, float(t), states[k], w))
        for guess in chain(() if before is None else (before,), others):
            try:
                found = assembly.accelerate(t, states[k], guess[None])
            except ArithmeticError:
                continue
            if found[4][0] == 0 and np.all(np.isfinite(found[1])):
                for target, values in zip(results, found, strict=False):
                    target[k] = values[0]
                statuses[k] = 0
                before = np.concatenate([results[3][k], results[1][k]])
                break


def _balancing(values: dict[str, np.ndarray]) -> np.ndarray | None:
    M, K = values["mass"], values["jacobian"]
    n, count = M.shape[0], K.shape[0]
    matrix = np.block([[M, K.T], [K, np.zeros((count, count))]])
    right = np.concatenate([values["force"], -values["bias"]])
    lam = np.linalg.lstsq(matrix, right, rcond=None)[0][n:]
    return lam if np.all(np.isfinite(lam)) else None
