r"""The equations of motion of a model as a mechanical system, and their derivatives at a point.

Derivatives are those of the balance :math:`M a + K^T \lambda - f`, of :math:`-f_d`, of :math:`K v + k` and of
:math:`K a - \gamma` with respect to q, v and r, for given a and :math:`\lambda`. They include the second derivatives of
the constraints, :math:`(K^T \lambda)_q`, and are exact if the functions can be traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import CodedFunction
from daedal.multibody.closure import ACROSS, residuals
from daedal.multibody.dynamics import crba, rnea
from daedal.multibody.force import Force
from daedal.multibody.kinematics import (
    ANY_ROTATION,
    joint_velocities,
    lifted_force,
    lifted_mass,
    norms,
    parameter_masses,
    placement,
    velocities,
)
from daedal.multibody.large import RecursiveCode, compiled_functions, large_machine
from daedal.multibody.layout import Layout
from daedal.multibody.motion import Loads, Motion, states_by_force
from daedal.multibody.results import Machine
from daedal.problems import MechanicalSystem
from daedal.problems.compile import last_argument

_NO_GRADIENT = 1e-10  # relative size below which the gradient of a condition counts as a rounding error
_OF_CONSTRAINT = ("constraint_jacobian", "constraint_t", "acceleration_bias")


@dataclass(frozen=True, eq=False)
class MultibodySystem(MechanicalSystem):
    """A mechanical system with a reference to its model."""

    model: Any = None
    layout: Any = None

    how_to_take_inputs: ClassVar[str] = (
        "let a force of the model name one, Motor('drive', 'hip', torque='tau'), or Model(..., inputs=['tau'])"
    )

    @property
    def machine(self) -> Machine:
        """Data from which solutions provide bodies and joints."""
        return Machine(self.model, self.layout)

    def planar_drawing(self) -> Any:
        """The :class:`daedal.viz.Drawing` of a planar machine; None for one in space."""
        from daedal.multibody.picture import planar_drawing

        return planar_drawing(self.model, self.layout)

    @property
    def typical_sizes(self) -> np.ndarray:
        """Scales of the coordinates: 1 for angles, the size of the machine for displacements."""
        return self.layout.typical_sizes

    @property
    def condition_sizes(self) -> np.ndarray:
        """Scales of the constraint residuals: 1 for products of axes, otherwise the size of the machine."""
        layout = self.layout
        lengths = np.where(layout.closures.kind == ACROSS, 1.0, layout.length)
        n_norms = int(np.sum(layout.tree.turn == ANY_ROTATION))
        others = self.n_lambda - n_norms - lengths.size
        return np.concatenate([np.ones(n_norms), lengths, np.full(others, layout.length)])

    def replaced(self, **changes) -> MultibodySystem:
        """A copy with some arguments replaced.

        If the constraint is replaced, its compiled derivatives are dropped.
        """
        if "constraint" in changes:
            derived = (name for name in _OF_CONSTRAINT if isinstance(getattr(self, name), CodedFunction))
            changes = dict.fromkeys(derived) | changes
        return super().replaced(**changes)  # type: ignore[return-value]

    def motion(self, q, v, r=()) -> Motion:
        """Positions and velocities with the interface for forces; `r` are the states of forces.

        Examples
        --------
        >>> from daedal.multibody import Body, Model, Revolute, ground
        >>> rod = Body.rod("rod", length=2.0, mass=1.0)
        >>> system = Model(Revolute("pivot", ground, rod.start)).system()
        >>> print(system.motion([0.0], [3.0]).velocity(rod.end))
        [0. 6. 0.]
        """
        return motion_at(
            self.model.forces, self.layout, np.array(q, dtype=float), np.array(v, dtype=float), np.array(r)
        )


def motion_at(forces: Sequence[Force], layout: Layout, q, v, states, inputs=None) -> Motion:
    """Placement and velocities of all bodies, the states of each force, and the inputs by name."""
    tree = layout.tree
    u = joint_velocities(tree, q, v) if layout.n_v < layout.n_q else v
    placed = placement(tree, q)
    return Motion(layout, q, u, placed, velocities(tree, placed, u), states_by_force(forces, states), inputs)


def system_of(model: Any, layout: Layout) -> MultibodySystem:
    """The equations of motion in the coordinates of a layout.

    The functions are traced when the problem is solved; those of a large machine are compiled loops.
    """
    tree, closures = layout.tree, layout.closures
    forces = model.forces  # traced functions must not refer to the model and its caches
    n_norms = int(np.sum(tree.turn == ANY_ROTATION))
    n_closures = closures.kind.size
    n_states = sum(len(element.initial) for element in forces)
    planar, others = layout.planar, layout.constraints
    n_others = sum(other.size(planar) for other in others)
    rolling = [other for other in others if other.velocity_size(planar)]
    n_rolling = sum(other.velocity_size(planar) for other in rolling)
    layout.remember()
    parameter_mass = parameter_masses(tree)

    def mass(t, q):
        matrix = crba(tree, placement(tree, q))
        return lifted_mass(tree, q, matrix, parameter_mass) if n_norms else matrix

    inputs = model.inputs
    places = (
        {}
        if inputs is None
        else {name: where if inputs.shapes[name] else where.start for name, where in inputs.slices.items()}
    )

    def motion_with(q, v, further):
        """The motion at (q, v); `further` consists of the force states and the vector of inputs, if there are any."""
        given = {name: further[-1][where] for name, where in places.items()}
        return motion_at(forces, layout, q, v, further[0] if n_states else (), given)

    def force(t, q, v, *further):
        motion = motion_with(q, v, further)
        loads = Loads(layout, motion.placed)
        for element in forces:
            element.apply(t, motion, loads)
        tau = loads.joint_forces - rnea(
            tree, motion.placed, motion.moving, np.zeros(layout.n_v), loads.forces, loads.torques
        )
        return lifted_force(tree, q, v, tau, parameter_mass) if n_norms else tau

    def state_rate(t, q, v, *further):
        motion = motion_with(q, v, further)
        return [rate for element in forces for rate in element.state_rate(t, motion)]

    def constraint(t, q):
        placed = placement(tree, q)
        parts = [norms(tree, q)] if n_norms else []
        parts.append(residuals(closures, placed.r, placed.rotation))
        motion = Motion(layout, q, None, placed, None)
        for other in others:
            if other.size(planar):
                parts.append(np.array(other.residual(t, motion)))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def velocity_constraint(t, q, v):
        u = joint_velocities(tree, q, v) if n_norms else v
        placed = placement(tree, q)
        motion = Motion(layout, q, u, placed, velocities(tree, placed, u))
        return np.concatenate([np.array(other.velocity_residual(t, motion)) for other in rolling])

    n_constraints = n_norms + n_closures + n_others
    named = [other.name for other in others for _ in range(other.size(planar))]
    named += [other.name for other in rolling for _ in range(other.velocity_size(planar))]
    turning = [joint.name for joint in layout.topology.joints if joint.turn == ANY_ROTATION]
    functions: dict[str, Any] = {"mass": mass, "force": force, "constraint": constraint if n_constraints else None}
    large = large_machine(model, layout)
    if large is not None:
        functions = compiled_functions(large, {"force": force, "state_rate": state_rate})
    elif n_states:
        functions["state_rate"] = state_rate
    system = MultibodySystem(
        **functions,
        n_q=layout.n_q,
        n_constraints=n_constraints,
        n_r=n_states,
        velocity_constraint=velocity_constraint if n_rolling else None,
        n_velocity_constraints=n_rolling,
        names=layout.names,
        constraint_names=[*(f"norm of {name}" for name in turning), *_numbered([*layout.closing_joints, *named])],
        model=model,
        layout=layout,
        inputs=inputs,
    )
    if large is not None:
        object.__setattr__(system, "straight_line", RecursiveCode(large, functions))
    return system


def _numbered(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(f"{name}.{seen[name]}" if names.count(name) > 1 else name)
    return result


class Conditions:
    r"""g(t, q) = 0 and :math:`\hat G(t, q) v + \hat g(t, q) = 0` of a system, with their derivatives.

    Attributes
    ----------
    exact : bool
        Whether derivatives come from traced functions or compiled loops instead of differences.
    """

    def __init__(self, system: Any):
        self.n_q, self.n_g, self.n_hat = system.n_q, system.n_constraints, system.n_velocity_constraints
        self.names = list(system.constraint_names or ())
        self._sizes = getattr(system, "condition_sizes", np.ones(self.n_g + self.n_hat))
        self._parameters: list[slice] = []
        if not self.n_hat and isinstance(system.constraint_jacobian, CodedFunction):  # loops of a large machine
            tree = system.layout.tree
            self._parameters = [slice(end - 4, end) for end in tree.first_q[1:][tree.turn == ANY_ROTATION]]
            self._system, self.exact = system, True
            return
        bare = system.replaced(mass=1.0, force=_no_force(system.n_q), **_NO_STATES)
        self._system, self.exact = bare, not self.n_g + self.n_hat
        if not self.exact:
            try:
                self._system, self.exact = bare.compiled(backend="trace"), True
            except InvalidProblemError:  # too many operations, or branches
                pass

    def scales(self, norms: np.ndarray) -> np.ndarray:
        """Scales of the conditions: norms of their gradients, or sizes of values if no motion changes them.

        Additional rows may follow those of the conditions.
        """
        sizes = self.sizes(norms.size)
        return np.where(norms > _NO_GRADIENT * sizes, norms, sizes)

    def sizes(self, rows: int) -> np.ndarray:
        """Sizes of the values of the conditions, and 1 for additional rows."""
        return np.concatenate([self._sizes[:rows], np.ones(max(0, rows - self._sizes.size))])

    def value(self, t: float, q: np.ndarray) -> np.ndarray:
        """Values g(t, q)."""
        if not self.n_g:
            return np.zeros(0)
        if not self.exact:
            return self._ask("constraint", t, q)
        values = self._ask("constraint", t, self._with_unit_parameters(q))
        values[: len(self._parameters)] = [q[own] @ q[own] - 1.0 for own in self._parameters]
        return values

    def _with_unit_parameters(self, q: np.ndarray) -> np.ndarray:
        """A copy of q with Euler parameters of length 1, since compiled loops provide derivatives along rotations."""
        q = np.array(q, dtype=float)
        for own in self._parameters:
            q[own] /= np.linalg.norm(q[own])
        return q

    def jacobian(self, t: float, q: np.ndarray) -> np.ndarray:
        r"""K, the rows of G and of :math:`\hat G`."""
        if not self.exact:
            return self._system.at(t, q).jacobian
        rows = [self._ask("constraint_jacobian", t, self._with_unit_parameters(q))] if self.n_g else []
        for i, own in enumerate(self._parameters):
            rows[0][:, own] /= np.linalg.norm(q[own])
            rows[0][i, own] = 2.0 * q[own]
        rows += [self._ask("velocity_jacobian", t, q)] if self.n_hat else []
        return np.concatenate([np.zeros((0, self.n_q)), *rows])

    def speed(self, t: float, q: np.ndarray) -> np.ndarray:
        r"""k, with K v + k = 0: :math:`g_t` and :math:`\hat g`."""
        if not self.exact:
            return self._system.at(t, q).velocity
        rows = [self._ask("constraint_t", t, q)] if self.n_g else []
        rows += [self._ask("velocity_constraint", t, q, np.zeros(self.n_q))] if self.n_hat else []
        return np.concatenate([np.zeros(0), *rows])

    def bias(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        r""":math:`\gamma`, with :math:`K \ddot q = \gamma`."""
        if not self.exact:
            return self._system.at(t, q, v).bias
        rows = [self._ask("acceleration_bias", t, q, v)] if self.n_g else []
        rows += [self._ask("velocity_bias", t, q, v)] if self.n_hat else []
        return np.concatenate([np.zeros(0), *rows])

    def _ask(self, name: str, t: float, *arguments: np.ndarray) -> np.ndarray:
        function = getattr(self._system, name)
        arguments = (*arguments, *last_argument(function, self._system.params))
        if not hasattr(function, "evaluate"):
            return np.asarray(function(t, *arguments), dtype=float)
        status, values = function.evaluate(t, *arguments)
        return values if status == 0 else np.asarray(function(t, *arguments), dtype=float)


_NO_STATES = {
    "state_rate": None,
    "n_r": 0,
    "algebraic": None,
    "n_w": 0,
    "force_uses_multipliers": False,
    "force_sparsity": None,
}


def _no_force(n: int):
    def force(t, q, v, *further):
        return np.zeros(n)

    return force


class Derivatives(NamedTuple):
    """Blocks of rows, each with columns for q, v and r."""

    balance: np.ndarray
    states: np.ndarray  # derivatives of -f_d
    speeds: np.ndarray  # derivatives of K v + k
    accelerations: np.ndarray  # derivatives of K a - gamma


class MotionEquations:
    """Mass, forces and conditions of a system, and their derivatives.

    Attributes
    ----------
    exact : bool
        Whether derivatives are exact instead of differences.
    """

    def __init__(self, system: Any, conditions: Conditions):
        if system.n_w or system.n_s or system.force_uses_multipliers:
            raise InvalidProblemError(
                "this analysis does not support algebraic variables and forces that depend on reactions, such as dry "
                "friction in joints; omit these forces"
            )
        self.system, self.conditions = system, conditions
        self.n, self.n_r = system.n_q, system.n_r
        self._function = self._traced()
        self.exact = self._function is not None
        self._params = last_argument(system.force, system.params)

    def _traced(self) -> Any:
        try:
            linearisation = self.system.compiled(backend="trace").linearisation
        except InvalidProblemError:
            return None
        return None if linearisation is None else linearisation.function(2)

    def mass(self, t: float, q: np.ndarray) -> np.ndarray:
        mass = self.system.mass
        matrix = mass(t, q, *self._params) if callable(mass) else mass
        return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=float)

    def force(self, t: float, q: np.ndarray, v: np.ndarray, r: np.ndarray) -> np.ndarray:
        return np.asarray(self.system.force(t, q, v, *self._given(r), *self._params), dtype=float)

    def state_rate(self, t: float, q: np.ndarray, v: np.ndarray, r: np.ndarray) -> np.ndarray:
        r""":math:`f_d`, the rate of r."""
        rates = self.system.state_rate(t, q, v, r, *self._params) if self.n_r else ()
        return np.asarray(rates, dtype=float)

    def _given(self, r: np.ndarray) -> tuple:
        return (r,) if self.n_r else ()

    def derivatives(self, t: float, q, v, r, a, lam) -> Derivatives:
        """All blocks at a point."""
        if self._function is not None:
            multipliers = (lam,) if lam.size else ()
            rows = self._function(t, q, v, *self._given(r), *multipliers, a, *self._params)
        else:
            rows = self._differences(t, q, v, r, a, lam)
        ends = np.cumsum([self.n, self.n_r, lam.size, lam.size])
        return Derivatives(*(rows[end - size : end] for end, size in zip(ends, (self.n, self.n_r, lam.size, lam.size))))

    def _differences(self, t: float, q, v, r, a, lam) -> np.ndarray:
        x, n = np.concatenate([q, v, r]), self.n

        def rows(x):
            q, v, r = x[:n], x[n : 2 * n], x[2 * n :]
            K = self.conditions.jacobian(t, q)
            balance = self.mass(t, q) @ a + K.T @ lam - self.force(t, q, v, r)
            speeds = K @ v + self.conditions.speed(t, q)
            return np.concatenate(
                [balance, -self.state_rate(t, q, v, r), speeds, K @ a - self.conditions.bias(t, q, v)]
            )

        columns = []
        for k in range(x.size):
            h = 6e-6 * max(1.0, abs(x[k]))
            step = np.zeros(x.size)
            step[k] = h
            columns.append((rows(x + step) - rows(x - step)) / (2.0 * h))
        return np.column_stack(columns)


def null_space(matrix: np.ndarray, scale: np.ndarray, sizes: np.ndarray | float = 0.0) -> np.ndarray:
    """Admissible directions of the coordinates: an orthonormal basis in coordinates divided by `scale`.

    `sizes` of the conditions identify rows that consist of rounding errors, such as those of a loop within a rigid
    group.
    """
    if not matrix.size:
        return np.diag(scale)
    scaled = matrix * scale
    norms = np.linalg.norm(scaled, axis=1)
    least = np.maximum(1e-12 * norms.max(), _NO_GRADIENT * np.asarray(sizes))
    scaled = scaled / np.where(norms > least, norms, np.inf)[:, None]
    _, s, V = np.linalg.svd(scaled, full_matrices=True)
    rank = int(np.sum(s > 1e-9 * max(float(s.max(initial=0.0)), 1e-300)))
    return scale[:, None] * V[rank:].T
