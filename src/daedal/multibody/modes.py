"""A mode: how a machine moves at one eigenvalue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.closing import nearest_zero
from daedal.multibody.kinematic_solution import KinematicSolution
from daedal.multibody.poses import length_flags
from daedal.multibody.start import Start
from daedal.problems.checks import check_positive, check_size

_FEWEST = 6  # points of a period through which there is no periodic spline of order 5


@dataclass(frozen=True, eq=False)
class Mode:
    """A small motion in which all coordinates have the same rhythm.

    Attributes
    ----------
    eigenvalue : complex
        Its real part tells how it grows, its imaginary part how fast it oscillates.
    shape : numpy.ndarray of complex, shape (n_q,)
        The perturbation of the coordinates; its largest entry is real and positive.
    start : Start
        The state about which it moves.
    """

    eigenvalue: complex
    shape: np.ndarray
    start: Start

    def __post_init__(self):
        k = int(np.argmax(np.abs(self.shape) / self._scale))
        if self.shape[k] != 0.0:
            object.__setattr__(self, "shape", self.shape / self.shape[k] * self._scale[k])

    @property
    def _scale(self) -> np.ndarray:
        return np.where(length_flags(self.start.layout), self.start.layout_length, 1.0)

    @property
    def frequency(self) -> float:
        """Oscillations per unit of time; zero if it does not oscillate."""
        return abs(self.eigenvalue.imag) / (2.0 * np.pi)

    @property
    def damping_ratio(self) -> float:
        """Damping as part of the critical one: 1 if the motion fades without oscillating, -1 if it grows so."""
        size = abs(self.eigenvalue)
        return -self.eigenvalue.real / size if size > 0.0 else 0.0

    @property
    def joint(self) -> str:
        """The joint (or body, in absolute coordinates) that moves most."""
        layout = self.start.layout
        k = int(np.argmax(np.abs(self.shape) / self._scale))
        return layout.topology.joints[int(np.searchsorted(layout.tree.first_q, k, side="right")) - 1].name

    def motion(self, n: int = 60, amplitude: float = 0.2) -> KinematicSolution:
        """The machine over a period, at `n` times, for drawings.

        `amplitude` is how far the coordinate that moves most goes: an angle, or a displacement as part of the size of
        the machine. Loops stay closed, also where it is not small. A mode that does not oscillate swings once there and
        back in unit time.
        """
        n, amplitude = check_size(n, "n"), check_positive(amplitude, "amplitude")
        rate = abs(self.eigenvalue.imag) or 2.0 * np.pi
        t = np.linspace(0.0, 2.0 * np.pi / rate, n)
        turning = np.exp(1j * rate * t) * (1.0 if self.eigenvalue.imag else -1j)
        moved = amplitude * np.outer(self.shape, turning)
        q = np.column_stack([self._closed(self.start.q + part.real) for part in moved.T])
        v, a = (1j * rate * moved).real, -(rate**2) * moved.real
        if n > _FEWEST:  # loops and rotations in space have bent the way
            from scipy.interpolate import make_interp_spline

            q[:, -1] = q[:, 0]
            way = make_interp_spline(t, q, k=5, bc_type="periodic", axis=1)
            v, a = way(t, 1), way(t, 2)
        return KinematicSolution(t, q, v, a, (), (), self.start.model, self.start.layout)

    def animate(self, path: Any = None, *, amplitude: float = 0.2, **options: Any):
        """The motion over a period as a scene or a file; see :func:`daedal.multibody.animation.animate`."""
        return self.motion(121, amplitude).animate(path, **({"plots": ()} | options))

    def _closed(self, q: np.ndarray) -> np.ndarray:
        conditions: Any = self.start.model.conditions(self.start.layout)
        if not conditions.n_g:
            return q
        scale, t = self._scale, self.start.t
        found = nearest_zero(
            lambda x: conditions.value(t, x * scale),
            lambda x: conditions.jacobian(t, x * scale)[: conditions.n_g] * scale,
            q / scale,
        )
        if found.size > 1e-8 * max(1.0, self.start.layout_length):
            raise InvalidProblemError("the loops cannot be closed at this amplitude; choose a smaller one")
        return found.x * scale

    def __repr__(self):
        return f"Mode({self.eigenvalue:.6g}, frequency={self.frequency:.6g}, damping_ratio={self.damping_ratio:.4g})"
