r"""Kinematic analysis: driven joints determine all others, without integration.

With the coordinates c(q) of driven joints given as functions of time, positions, velocities and accelerations follow
from

.. math::

    \begin{pmatrix} g(t, q) \\ c(q) - f(t) \end{pmatrix} = 0, \qquad
    \begin{pmatrix} G \\ c_q \end{pmatrix} \dot q = \begin{pmatrix} -g_t \\ \dot f \end{pmatrix}, \qquad
    \begin{pmatrix} G \\ c_q \end{pmatrix} \ddot q =
    \begin{pmatrix} \gamma \\ \ddot f - (c_q \dot q)_q \dot q \end{pmatrix}

(Haug, *Computer Aided Kinematics and Dynamics*, 3.6). Positions are continued in time with the predictor :math:`q + h
\dot q + h^2 \ddot q / 2`; the continuation ends at dead points, where the matrix is singular.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.assembly_problem import AssemblyProblem, nearest_zero
from daedal.multibody.inverse_dynamics import MeasuredCoordinates, course_of
from daedal.multibody.kinematics import with_unit_parameters
from daedal.multibody.poses import stated_joints
from daedal.multibody.results import Results, recorded
from daedal.problems.checks import check_real
from daedal.solution.machine_record import PartsOfMotion, RecordedMachine, save

_SINGULAR = 1e-7
_NEAR = 0.05  # scaled correction of a predicted position above which the step is halved
_SHARE = 0.25  # the same threshold as a fraction of the scaled step in the coordinates
_SHORTEST = 1e-10  # shortest step, as a fraction of the whole interval


class DeadPointError(InvalidProblemError):
    """A driven mechanism reaches a position in which the drives no longer determine its motion.

    Attributes
    ----------
    t : float
        The time.
    joints : tuple of str
        The joints that move although the driven ones are at rest, in order of decreasing motion.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.multibody import Body, DeadPointError, Model, Prismatic, Revolute, ground
    >>> crank, rod = Body.rod("crank", length=1.0, mass=1.0), Body.rod("rod", length=3.0, mass=1.0)
    >>> slider = Body.box("slider", size=(0.2, 0.2, 0.2), mass=1.0)
    >>> machine = Model(
    ...     Revolute("A", ground, crank.start),
    ...     Revolute("B", crank.end, rod.start),
    ...     Revolute("C", rod.end, slider),
    ...     Prismatic("D", ground, slider, axis="x"),
    ...     planar=True,
    ... )
    >>> try:
    ...     machine.kinematics(np.linspace(0.0, 1.0, 11), {"D": lambda t: 3.5 + t})
    ... except DeadPointError as error:
    ...     print(type(error).__name__)
    DeadPointError
    """

    def __init__(self, message: str, t: float, joints: tuple[str, ...]):
        super().__init__(message)
        self.t, self.joints = t, joints

    def __reduce__(self):
        return type(self), (*self.args, self.t, self.joints)


def kinematics(model, t, driven: Mapping[str, Any], *, side, guess, cut) -> KinematicSolution:
    """See :meth:`daedal.multibody.Model.kinematics`."""
    times = np.atleast_1d(check_real(t, "t", "be a vector of times")).astype(float)
    if times.ndim != 1 or not times.size or not np.all(np.isfinite(times)):
        raise InvalidProblemError(f"t must be a vector of finite times, got shape {np.shape(t)}")
    direction = np.diff(times)
    if not (np.all(direction > 0) or np.all(direction < 0)):
        raise InvalidProblemError("t must increase or decrease throughout")
    return _Follower(model, times, driven, cut).run(side or {}, guess)


class _Follower:
    """Continuation of the positions of a driven mechanism in time."""

    def __init__(self, model: Any, times: np.ndarray, driven: Mapping[str, Any], cut):
        self.assembly = AssemblyProblem(model, cut, times[0])
        self.model, self.times, self.driven = model, times, tuple(driven)
        self.layout, self.conditions = self.assembly.layout, self.assembly.conditions
        self.scale = self.assembly.column_scale
        self.measures = MeasuredCoordinates(model, self.layout, self.assembly.joints, self.driven)
        self.courses = [course_of(key, driven[key], n, times) for key, n in self.measures.sizes.items()]
        self.n_g = self.conditions.n_g
        self.dead: list[tuple[float, str]] = []
        self._rows = np.zeros(
            0, dtype=int
        )  # indices of independent conditions, as many as coordinates, chosen at the start

    def drive(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """f and its derivatives."""
        found = [course(t) for course in self.courses]
        value, rate, second = (np.concatenate([np.zeros(0), *(one[k] for one in found)]) for k in range(3))
        return value, rate, second

    # --- the equations ------------------------------------------------------------------------------------------------

    def residual(self, t: float, q: np.ndarray) -> np.ndarray:
        """All conditions at position level."""
        wanted = self.drive(t)[0]
        return np.concatenate([self.conditions.value(t, q), self.measures.values(q, wanted) - wanted])

    def matrix(self, t: float, q: np.ndarray) -> np.ndarray:
        """Derivatives of the conditions."""
        return np.concatenate([self.conditions.jacobian(t, q)[: self.n_g], self.measures.jacobian(q)])

    def position(self, t: float, guess: np.ndarray) -> tuple[np.ndarray, bool]:
        """The position near `guess`, and whether it satisfies all conditions."""
        norms = self._norms(self.matrix(t, guess))
        found = nearest_zero(
            lambda x: self.residual(t, x * self.scale) / norms,
            lambda x: self.matrix(t, x * self.scale) * self.scale / norms[:, None],
            guess / self.scale,
        )
        return found.x * self.scale, found.found

    def _norms(self, matrix: np.ndarray) -> np.ndarray:
        norms = np.linalg.norm(matrix * self.scale, axis=1)
        return np.concatenate(
            [self.conditions.scales(norms[: self.n_g]), np.where(norms > 0.0, norms, 1.0)[self.n_g :]]
        )

    def motion(self, t: float, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, str | None]:
        """Velocities, accelerations, and the joint that moves freely if these are undetermined, otherwise None."""
        _, rate, second = self.drive(t)
        matrix = self.matrix(t, q)
        norms = self._norms(matrix)
        U, s, V = np.linalg.svd(matrix * self.scale / norms[:, None], full_matrices=True)
        if s.size < q.size or s[-1] <= _SINGULAR * s[0]:
            return np.full(q.size, np.nan), np.full(q.size, np.nan), self._named(V[-1])
        U = U[:, : s.size]

        def solved(right):
            return self.scale * (V.T @ ((U.T @ (right / norms)) / s))

        v = solved(np.concatenate([-self.conditions.speed(t, q)[: self.n_g], rate]))
        bias = self.conditions.bias(t, q, v)[: self.n_g]
        return v, solved(np.concatenate([bias, second + self.measures.bias(q, v)])), None

    def _named(self, direction: np.ndarray) -> str:
        """The joint that moves most along a direction of the coordinates."""
        k = int(np.argmax(np.abs(direction)))
        j = int(np.searchsorted(self.layout.tree.first_q, k, side="right")) - 1
        return self.layout.topology.joints[j].name

    # --- continuation -------------------------------------------------------------------------------------------------

    def run(self, side: Mapping[str, str], guess: Any) -> KinematicSolution:
        """Follow the mechanism through all times."""
        values = self._by_key(self.drive(self.times[0])[0])
        q = self.assembly.positions(values, side, guess)
        self._check_determined(q)
        v, a, loose = self.motion(self.times[0], q)
        points = [(q, v, a)]
        self._note(self.times[0], loose)
        self._rows = _independent(self.matrix(self.times[0], q) * self.scale)
        slope = (np.zeros(q.size), np.zeros(q.size)) if loose else (v, a)
        size = self._determinant(self.times[0], q)
        for before, t in zip(self.times[:-1], self.times[1:]):
            q, slope = self._advance(float(before), q, slope, float(t))
            v, a, loose = self.motion(float(t), q)
            self._note(float(t), loose)
            last, size = size, self._determinant(t, q)
            if loose is None and last * size < 0.0:
                self._note(float(before + (t - before) * last / (last - size)), self._loosest(t, q))
            points.append((q, v, a))
        q, v, a = (np.column_stack(part) for part in zip(*points))
        return KinematicSolution(self.times, q, v, a, self.driven, tuple(self.dead), self.model, self.layout)

    def _by_key(self, values: np.ndarray) -> dict[str, Any]:
        ends = np.cumsum(list(self.measures.sizes.values()))
        return {key: values[end - n : end] for (key, n), end in zip(self.measures.sizes.items(), ends)}

    def _note(self, t: float, loose: str | None):
        if loose is not None:
            self.dead.append((t, loose))

    def _determinant(self, t: float, q: np.ndarray) -> float:
        matrix = self.matrix(t, q)[self._rows] * self.scale
        return float(np.linalg.det(matrix / self._norms(matrix / self.scale)[:, None]))

    def _loosest(self, t: float, q: np.ndarray) -> str:
        """The name of the least constrained joint."""
        matrix = self.matrix(t, q)
        return self._named(np.linalg.svd(matrix * self.scale / self._norms(matrix)[:, None])[2][-1])

    def _advance(self, t: float, q: np.ndarray, slope, end: float):
        """Advance to the output time `end`; returns the position there, and the last (velocities, accelerations)."""
        h = end - t
        shortest = _SHORTEST * max(abs(self.times[-1] - self.times[0]), abs(h))
        while t != end:
            h = end - t if abs(h) >= 0.999 * abs(end - t) else h
            predicted = q + h * slope[0] + 0.5 * h * h * slope[1]
            ahead, found = self.position(t + h, predicted)
            if not found or not self._is_near(q, predicted, ahead):
                if abs(h) <= shortest:
                    raise self._stuck(t, q)
                h *= 0.5
                continue
            t = end if h == end - t else t + h
            v, a, loose = self.motion(t, ahead)
            slope = slope if loose else (v, a)
            q, h = ahead, 2.0 * h
        return q, slope

    def _is_near(self, q, predicted, ahead) -> bool:
        correction = float(np.max(np.abs(ahead - predicted) / self.scale))
        step = float(np.max(np.abs(ahead - q) / self.scale))
        return correction <= _NEAR and (correction <= 1e-6 or correction <= _SHARE * step)

    def _stuck(self, t: float, q: np.ndarray) -> DeadPointError:
        joint = self._loosest(t, q)
        driven = ", ".join(f"'{key}'" for key in self.driven) or "the model"
        return DeadPointError(
            f"the mechanism reaches a dead point at t = {t:.6g}: joint '{joint}' moves there although {driven} is "
            "at rest, and the prescribed motion cannot be continued. Remedy: end before this time, change the "
            f"motion of {driven}, or drive joint '{joint}' instead",
            t,
            (joint,),
        )

    def _check_determined(self, q: np.ndarray):
        """Raise if the drives do not determine the motion at `q` and nearby."""
        t = float(self.times[0])
        free = self._free_direction(t, q)
        if free is None:
            return
        beside, found = self._closed(t, q + 0.02 * self.scale * free)
        if found and self._free_direction(t, beside) is None:
            return
        joint = self._named(free)
        driven = ", ".join(f"'{key}'" for key in self.driven) or "nothing"
        raise InvalidProblemError(
            f"the motion is not determined: with {driven} driven, joint '{joint}' can still move. "
            "Remedy: drive it too, or solve the equations of motion with daedal.solve"
        )

    def _free_direction(self, t: float, q: np.ndarray) -> np.ndarray | None:
        matrix = self.matrix(t, q)
        _, s, V = np.linalg.svd(matrix * self.scale / self._norms(matrix)[:, None], full_matrices=True)
        is_free = s.size < q.size or s[-1] <= _SINGULAR * s[0]
        return V[-1] if is_free else None

    def _closed(self, t: float, q: np.ndarray) -> tuple[np.ndarray, bool]:
        """The position with loops closed again, ignoring the drives, and whether it was found."""
        if not self.n_g:
            return q, True
        matrix = self.conditions.jacobian(t, q)[: self.n_g]
        norms = self._norms(matrix)
        found = nearest_zero(
            lambda x: self.conditions.value(t, x * self.scale) / norms,
            lambda x: self.conditions.jacobian(t, x * self.scale)[: self.n_g] * self.scale / norms[:, None],
            q / self.scale,
        )
        return found.x * self.scale, found.found


def _independent(matrix: np.ndarray) -> np.ndarray:
    """Indices of the most independent rows, as many as columns (QR with pivoting)."""
    from scipy.linalg import qr

    pivots = qr(matrix.T, mode="r", pivoting=True)[1]
    return np.sort(pivots[: matrix.shape[1]])


@dataclass(frozen=True, eq=False, repr=False)
class KinematicSolution(PartsOfMotion):
    """The motion of a driven mechanism or of a mode; provides bodies and joints like the solution of a model.

    Attributes
    ----------
    t : numpy.ndarray, shape (nt,)
        The times.
    q, v, a : numpy.ndarray, shape (n_q, nt)
        Coordinates, velocities and accelerations.
    driven : tuple of str
        The driven joints.
    dead_points : tuple of (float, str)
        Times at which the motion is undetermined, with the joint that moves freely. Between output times such points
        are passed along the smooth branch; at an output time v and a are NaN.
    model, layout : Model, Layout
        The machine and its coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> model = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> motion = model.kinematics(np.linspace(0.0, 1.0, 3), {"pivot": lambda t: 2.0 * t})
    >>> print(motion.q[0], motion.v[0])
    [0. 1. 2.] [2. 2. 2.]
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    driven: tuple[str, ...]
    dead_points: tuple[tuple[float, str], ...]
    model: Any
    layout: Any
    attributes: dict[str, Any] = field(default_factory=dict)  # notes of the user, saved in files
    params: ClassVar[Any] = None

    @property
    def r(self) -> np.ndarray:
        """States of forces, which keep their initial values."""
        return np.repeat(np.array(self.model.initial_states, dtype=float)[:, None], self.t.size, axis=1)

    @cached_property
    def lam(self) -> np.ndarray:
        """Multipliers of the constraints, including the driving forces; see ``model.inverse_dynamics``."""
        joints = stated_joints(self.layout)
        for key in self.driven:
            name = key if key in joints else key.rpartition(".")[0]
            if joints[name].number < 0:
                other = next((joint.name for joint in self.layout.topology.joints), "")
                raise InvalidProblemError(
                    f"reactions are not available if a joint that closes a loop is driven, here '{name}'. Remedy: "
                    f"cut another joint of the loop, kinematics(..., cut=[{other!r}])"
                )
        return self.model.inverse_dynamics(self).lam

    def at(self, t: Any) -> KinematicSolution:
        """Interpolate the motion at other times between the first and the last, by Hermite polynomials."""
        times = np.atleast_1d(np.asarray(t, dtype=float))
        order = np.argsort(self.t)
        low, high = self.t[order[0]], self.t[order[-1]]
        if np.any(times < low) or np.any(times > high):
            raise InvalidProblemError(f"t must be between {low:g} and {high:g}, where the motion is known")
        if self.t.size == 1:
            q, v, a = (np.repeat(part, times.size, axis=1) for part in (self.q, self.v, self.a))
        else:
            known = np.all(np.isfinite(self.a), axis=0)[order]
            from scipy.interpolate import BPoly

            data = [
                [part[:, k] for part in ((self.q, self.v, self.a) if here else (self.q,))]
                for k, here in zip(order, known)
            ]
            curve = BPoly.from_derivatives(self.t[order], data)
            q, v, a = (curve.derivative(level)(times).T if level else curve(times).T for level in range(3))
        q = with_unit_parameters(self.layout.tree, q)
        return KinematicSolution(times, q, v, a, self.driven, self.dead_points, self.model, self.layout)

    @property
    def ends(self) -> np.ndarray:
        """First and last time of the interpolation."""
        return self.t

    # --- interface of model solutions ---------------------------------------------------------------------------------

    @cached_property
    def _results(self) -> Results:
        return _Results(self.model, self.layout, self)

    @property
    def parts(self) -> Results:
        """Provider of bodies, joints and forces."""
        return self._results

    def recorded(self) -> RecordedMachine:
        """Bodies and joints as numbers, for files."""
        return recorded(self._results)

    def save(self, path: Any) -> Path:
        """Write the motion to a file that :func:`daedal.load` reads: times, coordinates, bodies and joints as numbers.

        Returns the path, which ends in ``.npz``.
        """
        return save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_results"}

    def animate(self, path: Any = None, **options: Any):
        """Animate the motion as a scene or file, with plots of the driven joints; see :meth:`Results.animate`."""
        joints = {joint.name for joint in self.model.joints}
        driven = dict.fromkeys(key if key in joints else key.rpartition(".")[0] for key in self.driven)
        return self._results.animate(path, **({"plots": tuple(driven)} | options))


class _Results(Results):
    """Bodies and joints of an interpolated motion."""

    @property
    def output_times(self) -> None:
        """None: the motion is known at all times between the first and the last."""
        return None

    def _between(self, times, *, is_single: bool = False):
        motion = self._solution.at(times)
        return self._course(times, (motion.q, motion.v, motion.r), lambda: motion, is_single=is_single)

    def _counting(self, course):
        return course

    def _check_balance(self):
        """Do nothing: forces of the model need not balance, since the drives exert the remaining force."""
