"""A motion that was not integrated: of a driven mechanism, or of a mode."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.coordinates import with_unit_parameters
from daedal.multibody.held import stated_joints
from daedal.multibody.recorded import recorded
from daedal.multibody.results import Results
from daedal.solution.machine_record import PartsOfMotion, RecordedMachine, save


@dataclass(frozen=True, eq=False, repr=False)
class KinematicSolution(PartsOfMotion):
    """The motion of a driven mechanism; it is asked for bodies and joints as a solution of a model is.

    Attributes
    ----------
    t : numpy.ndarray, shape (nt,)
        The times.
    q, v, a : numpy.ndarray, shape (n_q, nt)
        Coordinates, velocities and accelerations.
    driven : tuple of str
        The joints that were driven.
    dead_points : tuple of (float, str)
        Times at which the motion is not determined, with the joint that moves by itself. Between the output times they
        were passed on the smooth way; at an output time v and a are nan there.
    model, layout : Model, Layout
        Whose motion, in which coordinates.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    driven: tuple[str, ...]
    dead_points: tuple[tuple[float, str], ...]
    model: Any
    layout: Any
    attributes: dict[str, Any] = field(default_factory=dict)  # notes of the user, which files keep
    params: ClassVar[Any] = None

    @property
    def r(self) -> np.ndarray:
        """The states of forces, which stay where they start."""
        return np.repeat(np.array(self.model.initial_states, dtype=float)[:, None], self.t.size, axis=1)

    @cached_property
    def lam(self) -> np.ndarray:
        """The multipliers of the constraints, with the forces that drive the motion; see ``model.inverse_dynamics``."""
        joints = stated_joints(self.layout)
        for key in self.driven:
            name = key if key in joints else key.rpartition(".")[0]
            if joints[name].number < 0:
                other = next((joint.name for joint in self.layout.topology.joints), "")
                raise InvalidProblemError(
                    f"reactions are not known where a joint that closes a loop is driven, here '{name}'. "
                    f"Remedy: cut another joint of the loop, kinematics(..., cut=[{other!r}])"
                )
        return self.model.inverse_dynamics(self).lam

    def at(self, t: Any) -> KinematicSolution:
        """The motion at other times between the first and the last, by interpolation of positions to accelerations."""
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
        """The times between which positions are interpolated."""
        return self.t

    # --- as a solution of a model -----------------------------------------------------------------------------------

    @cached_property
    def _results(self) -> Results:
        return _Results(self.model, self.layout, self)

    @property
    def parts(self) -> Results:
        """What answers for bodies, joints and forces."""
        return self._results

    def recorded(self) -> RecordedMachine:
        """Bodies and joints as numbers, for a file."""
        return recorded(self._results)

    def save(self, path: Any) -> Path:
        """Write the motion to a file that :func:`daedal.load` reads: times, coordinates, bodies and joints as numbers.

        Returns the path, which ends in ``.npz``.
        """
        return save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_results"}

    def animate(self, path: Any = None, **options: Any):
        """The motion as a scene or a file, driven joints beside it; see :func:`daedal.multibody.animation.animate`."""
        joints = {joint.name for joint in self.model.joints}
        driven = dict.fromkeys(key if key in joints else key.rpartition(".")[0] for key in self.driven)
        return self._results.animate(path, **({"plots": tuple(driven)} | options))


class _Results(Results):
    """Bodies and joints of a motion that is interpolated."""

    @property
    def output_times(self) -> None:
        """None: it is known at all times between the first and the last."""
        return None

    def _between(self, times, *, is_single: bool = False):
        motion = self._solution.at(times)
        return self._course(times, (motion.q, motion.v, motion.r), lambda: motion, is_single=is_single)

    def _counting(self, course):
        return course

    def _check_balance(self):
        """The force of the drives is what is left, and part of the reactions."""
