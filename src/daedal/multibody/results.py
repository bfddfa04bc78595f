"""Bodies, joints and forces in the solution of a model, and their record as numbers for files."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.multibody.body import GROUND, Frame, ground
from daedal.multibody.constraint import Constraint
from daedal.multibody.force import Force
from daedal.multibody.layout import Layout
from daedal.multibody.motion import MotionHistory
from daedal.multibody.reactions import JointForces
from daedal.multibody.views import BodyView, ForceView, JointView
from daedal.problems.checks import check_real
from daedal.problems.named_inputs import inputs_at
from daedal.solution.machine_record import RecordedBody, RecordedEnergy, RecordedForce, RecordedJoint, RecordedMachine
from daedal.solution.quantities import no_dense_output

if TYPE_CHECKING:
    from daedal.viz import Scene

_FRAME = (
    "t",
    "position",
    "orientation",
    "velocity",
    "angular_velocity",
    "acceleration",
    "angular_acceleration",
    "kinetic_energy",
)


def recorded(results: Any) -> RecordedMachine:
    """Bodies, joints, forces and energies of a solution at its output points, as far as they can be computed."""
    model = results.model
    names = [body.name for body in model.bodies]
    return RecordedMachine(
        str(getattr(model, "name", "") or ""),
        {name: _body(results, name) for name in (*names, GROUND)},
        {joint.name: _joint(results, joint.name) for joint in model.joints},
        {force.name: found for force in model.forces if (found := _force(results, force.name)) is not None},
        _energies(results),
    )


def _body(results: Any, name: str) -> RecordedBody:
    view = results.body(name)
    parts = {part: np.array(getattr(view, part), dtype=float) for part in _FRAME}
    count = parts["t"].size
    parts["orientation"] = np.broadcast_to(parts["orientation"], (count, 3, 3)).copy()
    center = np.zeros(3) if name == GROUND else np.array(view.body.center, dtype=float)
    return RecordedBody(**parts, local_center=center, name=name)


def _joint(results: Any, name: str) -> RecordedJoint:
    view = results.joint(name)
    force = torque = None
    try:
        force, torque = np.array(view.reaction.force), np.array(view.reaction.torque)
    except InvalidProblemError:  # other forces act than those of the model, or functions could not be stored
        pass
    return RecordedJoint(
        np.array(view.t), view.names, view.coordinates, view.rates, np.array(view.position), force, torque, name
    )


def _force(results: Any, name: str) -> RecordedForce | None:
    view = results.force(name)
    try:
        return RecordedForce(np.array(view.t), np.array(view.power), np.array(view.energy), name)
    except InvalidProblemError:
        return None


def _energies(results: Any) -> RecordedEnergy | None:
    try:
        energy = results.energy()
    except InvalidProblemError:
        return None
    return RecordedEnergy(np.array(energy.kinetic), np.array(energy.potential))


def without_functions(model: Any, layout: Layout) -> tuple[Any, Layout]:
    """A model and a layout that can be stored; placeholders replace forces and constraints that cannot be pickled."""
    kept = copy(model)
    kept.forces = tuple(force if _can_be_stored(force) else ForceLeftBehind.of(force) for force in model.forces)
    kept.constraints = tuple(_kept(constraint, layout.planar) for constraint in model.constraints)
    return kept, replace(
        layout, constraints=tuple(_kept(constraint, layout.planar) for constraint in layout.constraints)
    )


def _kept(constraint: Any, planar: bool) -> Constraint:
    return constraint if _can_be_stored(constraint) else ConstraintLeftBehind.of(constraint, planar)


def _can_be_stored(part: Any) -> bool:
    try:
        pickle.dumps(part)
    except Exception:  # pickle raises various errors: AttributeError, TypeError, PicklingError, ...
        return False
    return True


def _refuse(what: str):
    raise InvalidProblemError(
        f"{what} has functions that could not be stored with the solution, so its forces are no longer available; "
        "evaluate them before storing the solution, or define these functions in a separate module"
    )


@dataclass(frozen=True, eq=False)
class ForceLeftBehind(Force):
    """Placeholder for a force that could not be stored; raises an error if it is evaluated."""

    name: str
    frames: tuple[Frame, ...]
    joints: tuple[str, ...]
    initial: tuple[float, ...]

    @classmethod
    def of(cls, force: Force) -> ForceLeftBehind:
        return cls(force.name, tuple(force.frames), tuple(force.joints), tuple(force.initial))

    def apply(self, t, motion, loads):
        _refuse(f"force '{self.name}'")

    def energy(self, t, motion):
        _refuse(f"force '{self.name}'")


@dataclass(frozen=True, eq=False)
class ConstraintLeftBehind(Constraint):
    """Placeholder for a constraint that could not be stored, with its size; raises an error if it is evaluated."""

    name: str
    frames: tuple[Frame, ...]
    sizes: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, constraint: Constraint, planar: bool) -> ConstraintLeftBehind:
        sizes = constraint.size(planar), constraint.velocity_size(planar)
        return cls(constraint.name, tuple(constraint.frames), sizes)

    def size(self, planar):
        return self.sizes[0]

    def velocity_size(self, planar):
        return self.sizes[1]

    def residual(self, t, motion):
        _refuse(f"constraint '{self.name}'")

    velocity_residual = residual


@dataclass(frozen=True)
class Energy:
    """Energies over time.

    Attributes
    ----------
    kinetic, potential : numpy.ndarray, shape (nt,)
        Sums over all bodies; the potential energy is that of gravity, zero at the origin, and of conservative forces.

    Examples
    --------
    >>> import daedal
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> model = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> sol = daedal.solve(model, (0.0, 1.0), {"pivot": 0.3})
    >>> energy = sol.energy
    >>> print((energy.kinetic + energy.potential).round(6).std() < 1e-4)
    True
    """

    kinetic: np.ndarray
    potential: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """Sum of kinetic and potential energy."""
        return self.kinetic + self.potential


class Results:
    """Bodies, joints and forces of a solution in any coordinates.

    The solution of ``model.system()`` has the same methods, which forward to this object; its `energy` is evaluated at
    the output points.

    Examples
    --------
    >>> import daedal
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> pendulum = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> sol = daedal.solve(pendulum.system(), (0.0, 1.0), pendulum.assemble(pivot=0.0))
    >>> print(f"{sol.joint('pivot', t=0.0).reaction.force[1]:.4f}")  # a quarter of the weight
    2.4525
    >>> sol.body("rod").at(rod.end).position.shape == (3, sol.t.size)
    True
    """

    def __init__(self, model: Any, layout: Layout, solution: Any):
        self.model, self.layout, self._solution = model, layout, solution

    def body(self, name: str, t: Any = None) -> BodyView:
        """Motion of a body."""
        return BodyView(self.course(t), ground if name == GROUND else self.model.body(name))

    def joint(self, name: str, t: Any = None) -> JointView:
        """Motion and reaction of a joint."""
        course = self.course(t)
        joint = self.layout.joint_as_moved(self.model.joint(name))
        return JointView(course, joint, lambda: self._joint_forces(course), lambda: self._counting(course))

    def force(self, name: str, t: Any = None) -> ForceView:
        """Effects of a force of the model."""
        return ForceView(self.course(t), self._force(name))

    def energy(self, t: Any = None) -> Energy:
        """Kinetic and potential energy of the model."""
        course = self.course(t)
        gravity = -np.sum(self.layout.tree.mass[:, None] * course.centers * self.layout.tree.gravity, axis=(1, 2))
        stored = sum((ForceView(course, force).energies for force in self.model.forces), np.zeros(course.t.size))
        return Energy(course.values(course.kinetic_energies.sum(axis=1)), course.values(gravity + stored))

    def power(self, force: str | Force, t: Any = None) -> np.ndarray:
        """Power of a force, which is given as an object or by name."""
        return self.force(force.name if isinstance(force, Force) else force, t).power

    def animate(
        self,
        path: str | Path | None = None,
        *,
        t_span: tuple[float, float] | None = None,
        frames: int | None = None,
        seconds: float | None = None,
        title: str = "",
        traces: Any = (),
        reactions: bool | Sequence[str] = (),
        plots: Sequence[Any] = ("energy",),
    ) -> Scene | Path:
        """Animate the motion of a machine: a scene for notebooks, or a file.

        Parameters
        ----------
        path : path, optional
            ``.html`` for an interactive page, ``.gif``, or ``.png``, ``.pdf``, ``.svg`` for pictures at four times.
        t_span : tuple of float, optional
            Time interval to show.
        frames : int, optional
            Number of frames; by default as many as a smooth motion needs.
        seconds : float, optional
            Duration of the animation at normal speed.
        title : str
            Heading of the page; by default the name of the model.
        traces : Body, Frame, sequence or dict of them
            Points whose paths are drawn: ``rod.end``, ``[crank, rod.end]``, ``{"pen": rod.at(0.5, 0.1)}``.
        reactions : bool or sequence of str
            Joints whose reactions are drawn as arrows; True for all.
        plots : sequence of str or Plot
            Plots next to the picture: "energy", names of joints, user-defined plots.

        Returns
        -------
        daedal.viz.Scene or pathlib.Path
            The path of the file, or the scene if no path was given.
        """
        from daedal.multibody.picture import animate

        return animate(
            self,
            path,
            t_span=t_span,
            frames=frames,
            seconds=seconds,
            title=title,
            traces=traces,
            reactions=reactions,
            plots=plots,
        )

    @property
    def output_times(self) -> np.ndarray | None:
        """The times at which the motion is known; None if it is known at all times of an interval."""
        return self._solution.t if self._solution.ends is None else None

    @property
    def interval(self) -> tuple[float, float]:
        """First and last time of the solution, the earlier one first."""
        t = self._solution.t
        if not t.size:
            raise InvalidProblemError("the solution has no output times; there is nothing to show")
        return float(min(t[0], t[-1])), float(max(t[0], t[-1]))

    def _force(self, name: str) -> Force:
        for force in self.model.forces:
            if force.name == name:
                return force
        raise unknown_name(name, [force.name for force in self.model.forces], "force")

    # --- motions at given times -------------------------------------------------------------------------------------

    @cached_property
    def _at_output(self) -> MotionHistory:
        solution = self._solution
        rows = (solution.q, solution.v, solution.r)
        return self._course(solution.t, rows, lambda: solution)

    @cached_property
    def _forces_at_output(self) -> JointForces:
        return JointForces(self._at_output)

    @cached_property
    def _is_described(self) -> bool:
        """Whether no forces act other than those of the model, from the balance of forces at some output points."""
        some = np.unique(np.linspace(0, self._solution.t.size - 1, 5).astype(int))
        solution = self._solution
        rows = (solution.q[:, some], solution.v[:, some], solution.r[:, some])
        rest = SimpleNamespace(a=solution.a[:, some], lam=solution.lam[:, some])
        return JointForces(self._course(solution.t[some], rows, lambda: rest)).imbalance < 1e-6

    def _check_balance(self):
        """Raise for reactions if other forces act than those of the model."""
        if not self._is_described:
            raise InvalidProblemError(
                "the forces of the model do not balance in this solution, so its reactions are not available: "
                "contacts, friction or replaced functions also act"
            )

    def _joint_forces(self, course: MotionHistory) -> JointForces:
        self._check_balance()
        return self._forces_at_output if course is self._at_output else JointForces(course)

    def course(self, t: Any = None) -> MotionHistory:
        """The motion at the output points, or at the times `t`."""
        if t is None:
            return self._at_output
        times = check_real(t, "t", "be a number or a vector")
        if times.size == 0:
            raise InvalidProblemError("t holds no times")
        if np.array_equal(times, self._solution.t):
            return self._at_output
        return self._between(np.atleast_1d(times).astype(float), is_single=times.ndim == 0)

    def _between(self, times: np.ndarray, *, is_single: bool = False) -> MotionHistory:
        solution = self._solution
        if solution.ends is None:
            raise no_dense_output()
        rows = solution.states(times)
        n = self.layout.n_q
        parts = (rows[:n], rows[n : 2 * n], rows[2 * n :])
        return self._course(times, parts, lambda: solution(times), is_single=is_single)

    def _course(self, t, rows, rest, *, is_single: bool = False) -> MotionHistory:
        q, v, r = (row.T for row in rows)
        inputs = None if self.model.inputs is None else self._inputs
        return MotionHistory(self.model, self.layout, t, q, v, r, rest, inputs, is_single=is_single)

    def _inputs(self, t: float) -> dict[str, Any]:
        """Inputs of the run at t; at a jump, the values after the jump."""
        solution = self._solution
        if hasattr(solution, "segment_at"):
            solution = solution.segment_at(t).solution
        if solution.system is None:
            raise InvalidProblemError(
                "forces with inputs are not available in a pickled solution, which does not contain the inputs; "
                "evaluate the forces before pickling, or store the solution with sol.save(path)"
            )
        return inputs_at(solution.system.params, t)

    def _counting(self, course: MotionHistory) -> MotionHistory:
        """The motion in short steps through all times of `course`, from which turns are counted."""
        ends = self._solution.ends
        if ends is None:
            return course
        low, high = self.interval
        parts = ends[:-1, None] + np.diff(ends)[:, None] * np.arange(4) / 4.0
        times = np.unique(np.concatenate([np.clip(np.append(parts.ravel(), ends[-1]), low, high), course.t]))
        return self._between(times if ends[-1] >= ends[0] else times[::-1])


@dataclass(frozen=True, eq=False)
class Machine:
    """A model in the coordinates of a layout, as stored with a solution."""

    model: Any
    layout: Layout

    def results(self, solution: Any) -> Results:
        """Bodies, joints and forces of a solution."""
        return Results(self.model, self.layout, solution)

    def recorded(self, solution: Any) -> RecordedMachine:
        """The results as numbers at the output points, for files."""
        return recorded(self.results(solution))

    def __reduce__(self):
        return Machine, without_functions(self.model, self.layout)
