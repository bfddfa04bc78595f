r"""Linearisation about a state, on the manifold of the constraints.

About an equilibrium, displacements :math:`\delta q = Z z` in the admissible directions (K Z = 0) satisfy

.. math::

    Z^T M Z\, \ddot z - Z^T f_v Z\, \dot z + Z^T (K^T \lambda - f)_q Z\, z = 0,

with the derivative of :math:`K^T \lambda` for the multipliers of the equilibrium: the curvature of the constraints acts
like a stiffness. About a motion, or with rolling or with states of forces, the admissible perturbations :math:`\delta x
= (\delta q, \delta v, \delta r)` satisfy

.. math:: \dot y = T^+ B^+ (F_x B - \dot B) T\, y, \qquad \delta x = B T y,

where F is the right-hand side of the equations of motion, B maps perturbations in variables that do not rotate with the
bodies to those of x, and T is a basis of the admissible ones. The orientation of a joint with Euler parameters p is
perturbed by a small rotation :math:`\delta\varphi` in the axes of its first frame, and its angular velocity
:math:`\omega` accordingly:

.. math::

    \delta p = \tfrac12 E(p)^T \delta\varphi, \qquad
    \delta \dot p = \tfrac12 E(p)^T \delta\omega + \tfrac12 E(\delta p)^T \omega .

About a steadily spinning wheel or top the equations then have constant coefficients, as with angles; with Euler
parameters they would not. All other coordinates are perturbed directly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.tabular import Tabular
from daedal.errors import InvalidProblemError
from daedal.multibody.assembly_problem import nearest_zero
from daedal.multibody.driven_motion import KinematicSolution
from daedal.multibody.kinematics import ANY_ROTATION
from daedal.multibody.multibody_system import MotionEquations, null_space
from daedal.multibody.poses import Start, length_flags
from daedal.problems.checks import check_positive, check_size

_BALANCED = 1e-8
_UNDAMPED = 1e-12
_STEADY = 0.02  # relative change of the coefficients per radian, below which a motion is steady
_VOID = 1e-3  # lower bound of the gradients by which residuals are divided, relative to the machine's size


@dataclass(frozen=True, eq=False)
class Linearised:
    """Linearisation of a machine about a state.

    Attributes
    ----------
    start : Start
        The state.
    matrix : numpy.ndarray
        A of y' = A y; about an equilibrium y = (z, z').
    mass, damping, stiffness : numpy.ndarray or None
        Reduced matrices of M z'' + D z' + K z = 0; None about a motion, with rolling or with states of forces.
    basis : numpy.ndarray
        Z, or the rows of T for the coordinates: perturbations of q for y (or z) of size 1.
    eigenvalues : numpy.ndarray
        Eigenvalues of the linearised motion, the slowest oscillations first.
    is_equilibrium : bool
        Whether the state is an equilibrium.
    is_steady : bool
        Whether the coefficients are constant along the motion. If not, eigenvalues are instantaneous and do not
        determine stability.
    exact : bool
        Whether derivatives are exact instead of differences.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> model = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> small = model.linearise(model.equilibrium(guess={"pivot": -1.5}))
    >>> print(small.frequencies.round(4), small.is_equilibrium)
    [0.4317] True
    """

    start: Start
    matrix: np.ndarray
    basis: np.ndarray
    eigenvalues: np.ndarray
    pairs: list[tuple[complex, np.ndarray]] = field(repr=False)  # eigenvalues of modes with perturbations of q
    is_equilibrium: bool
    exact: bool
    is_steady: bool = True
    mass: np.ndarray | None = None
    damping: np.ndarray | None = None
    stiffness: np.ndarray | None = None

    @cached_property
    def modes(self) -> list[Mode]:
        """One mode for each conjugate pair of eigenvalues and each real one; without damping, one for each opposite
        pair."""
        return [Mode(complex(value), shape, self.start) for value, shape in self.pairs]

    @property
    def frequencies(self) -> np.ndarray:
        """Frequencies (cycles per unit of time) of the oscillating modes."""
        return np.array([mode.frequency for mode in self.modes if mode.frequency > 0.0])

    @property
    def is_stable(self) -> bool:
        """Whether no perturbation grows."""
        size = max(float(np.max(np.abs(self.eigenvalues), initial=0.0)), 1e-300)
        return bool(np.all(self.eigenvalues.real <= 1e-7 * size))

    def plot(self, **options: Any):
        """Plot the eigenvalues in the complex plane; see :func:`daedal.viz.plot_eigenvalues`."""
        from daedal.viz import plot_eigenvalues

        return plot_eigenvalues(self.eigenvalues, **options)

    def animate(self, mode: int = 0, path: Any = None, **options: Any):
        """Animate a mode, given by its index in `modes`, as a scene or a file; see :meth:`Mode.animate`."""
        return self.modes[mode].animate(path, **options)

    def __str__(self):
        rows = [
            (str(k + 1), f"{mode.eigenvalue:.6g}", f"{mode.frequency:.6g}", f"{mode.damping_ratio:.4g}", mode.joint)
            for k, mode in enumerate(self.modes)
        ]
        about = "an equilibrium" if self.is_equilibrium else "a state that is not an equilibrium"
        header = ("mode", "eigenvalue", "frequency", "damping ratio", "moves most")
        how = "" if self.exact else " (derivatives by differences)"
        how += "" if self.is_steady else "; the coefficients change along the motion: these are instantaneous values"
        return f"small motions about {about}{how}\n{Tabular('rrrrl', rows, header, indent=2)}"


def linearise(model: Any, at: Start) -> Linearised:
    """See :meth:`daedal.multibody.Model.linearise`."""
    if not isinstance(at, Start):
        raise InvalidProblemError("at must be the result of model.assemble or model.equilibrium")
    point = _MotionPoint(model, at)
    holonomic_at_rest = point.is_equilibrium and not point.conditions.n_hat and not at.r.size
    return point.second_order() if holonomic_at_rest else point.first_order()


class _MotionPoint:
    """The equations of motion and their derivatives at a state."""

    def __init__(self, model: Any, at: Start):
        self.start, self.q, self.v, self.r, self.t = at, at.q, at.v, at.r, at.t
        self.equations: MotionEquations = model.equations(at.layout)
        self.conditions = model.conditions(at.layout)
        self.n = at.q.size
        self.scale = np.where(length_flags(at.layout), at.layout_length, 1.0)
        self.M = self.equations.mass(self.t, self.q)
        self.K = self.conditions.jacobian(self.t, self.q)
        force = self.equations.force(self.t, self.q, self.v, self.r)
        self.a, self.lam = self._augmented(force, self.conditions.bias(self.t, self.q, self.v))
        self.found = self.equations.derivatives(self.t, self.q, self.v, self.r, self.a, self.lam)
        stiffness = float(np.linalg.norm(self.found.balance[:, : self.n] * self.scale))
        reach = max(float(np.linalg.norm(force)), float(np.linalg.norm(self.K.T @ self.lam)), stiffness, 1e-300)
        at_rest = not np.any(self.v) and np.linalg.norm(self.M @ self.a) <= _BALANCED * reach
        rates = self.equations.state_rate(self.t, self.q, self.v, self.r)
        self.is_equilibrium = bool(
            at_rest and np.linalg.norm(rates) <= _BALANCED * max(1.0, float(np.linalg.norm(self.r)))
        )

    def _augmented(self, force: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations and the multipliers of smallest norm; columns for several right-hand sides."""
        m = self.K.shape[0]
        matrix = np.block([[self.M, self.K.T], [self.K, np.zeros((m, m))]])
        solution = np.linalg.lstsq(matrix, np.concatenate([force, bias]), rcond=1e-12)[0]
        return solution[: self.n], solution[self.n :]

    def second_order(self) -> Linearised:
        """Linearise about an equilibrium: M z'' + D z' + K z = 0 in the admissible directions."""
        Z = null_space(self.K, self.scale, self.conditions.sizes(self.K.shape[0]))
        M = Z.T @ self.M @ Z
        stiffness, damping = (Z.T @ self.found.balance[:, part] @ Z for part in (slice(self.n), self._velocities))
        if np.max(np.abs(damping), initial=0.0) <= _UNDAMPED * np.max(np.abs(self.found.balance), initial=0.0):
            damping = np.zeros_like(damping)
        self._check_mass(M, Z)
        d = M.shape[0]
        A = np.block([[np.zeros((d, d)), np.eye(d)], [-np.linalg.solve(M, stiffness), -np.linalg.solve(M, damping)]])
        skew = float(np.max(np.abs(stiffness - stiffness.T), initial=0.0))
        if not np.any(damping) and skew <= 1e-9 * float(np.max(np.abs(stiffness), initial=0.0)):
            roots, vectors = _undamped(M, stiffness)
            values, pairs = np.concatenate([roots, -roots]), list(zip(roots, (Z @ vectors).T))
        else:
            values, vectors = np.linalg.eig(A)
            pairs = _pairs(values, Z @ vectors[:d])
        return Linearised(
            start=self.start,
            matrix=A,
            basis=Z,
            eigenvalues=_sorted(values),
            pairs=pairs,
            is_equilibrium=True,
            exact=self.equations.exact,
            mass=M,
            damping=damping,
            stiffness=stiffness,
        )

    @property
    def _velocities(self) -> slice:
        return slice(self.n, 2 * self.n)

    def first_order(self) -> Linearised:
        """Linearise about any state: y' = A y for all admissible perturbations of (q, v, r)."""
        self._check_mass(*self._reduced())
        n, layout = self.n, self.start.layout
        scale = self._perturbation_scale()
        n_g, rows = self.conditions.n_g, self.K.shape[0]
        sizes = self.conditions.sizes(rows)
        T = null_space(self._allowed(), scale, np.concatenate([sizes[:n_g], sizes]))
        A = (T / scale[:, None]).T @ (self._flow(T) / scale[:, None])  # T is orthonormal in scaled variables
        values, vectors = np.linalg.eig(A)
        shapes = perturbation_basis(layout, self.q, self.v, self.r.size)[:n] @ T
        return Linearised(
            start=self.start,
            matrix=A,
            basis=shapes,
            eigenvalues=_sorted(values),
            pairs=_pairs(values, shapes @ vectors),
            is_equilibrium=self.is_equilibrium,
            is_steady=self.is_equilibrium or self._is_steady(T, A, scale),
            exact=self.equations.exact,
        )

    def _perturbation_scale(self) -> np.ndarray:
        lengths = np.any(self.start.layout.tree.slide != 0.0, axis=1)
        one = np.where(lengths, self.start.layout_length, 1.0)
        return np.concatenate([one, one, np.ones(self.r.size)])

    def _allowed(self) -> np.ndarray:
        """The linearised conditions on perturbations, as rows."""
        n, n_g = self.n, self.conditions.n_g
        allowed = np.zeros((n_g + self.K.shape[0], 2 * n + self.r.size))
        allowed[:n_g, :n] = self.K[:n_g]
        allowed[n_g:] = self.found.speeds
        return allowed @ perturbation_basis(self.start.layout, self.q, self.v, self.r.size)

    def _flow(self, T: np.ndarray) -> np.ndarray:
        """B^+ (F_x B - B') T: rates of the perturbations T, in variables that do not rotate with the bodies."""
        n, n_r, layout = self.n, self.r.size, self.start.layout
        B = perturbation_basis(layout, self.q, self.v, n_r)
        x = B @ T
        da, _ = self._augmented(-self.found.balance @ x, -self.found.accelerations @ x)
        rates = np.concatenate([x[n : 2 * n], da, -self.found.states @ x])
        h = 1e-5 / max(1.0, float(np.max(np.abs(self.v))))
        ahead, behind = (
            perturbation_basis(layout, self.q + k * h * self.v + 0.5 * h**2 * self.a, self.v + k * h * self.a, n_r)
            for k in (1.0, -1.0)
        )
        return np.linalg.lstsq(B, rates - (ahead - behind) / (2.0 * h) @ T, rcond=None)[0]

    def _is_steady(self, T: np.ndarray, A: np.ndarray, scale: np.ndarray) -> bool:
        """Whether the perturbation equations are the same a short time later."""
        way = 1e-4
        h = way / max(1.0, float(np.max(np.abs(self.v))))
        start = self.start
        q = start.q + h * start.v + 0.5 * h**2 * self.a
        later = _MotionPoint(
            start.model, Start(q, start.v + h * self.a, start.model, start.layout, start.t + h, start.r)
        )
        there = (T / scale[:, None]).T @ (later._flow(T) / scale[:, None])
        rows = later._allowed()
        left = rows @ T / np.maximum(np.linalg.norm(rows * scale, axis=1), _VOID * start.layout_length)[:, None]
        change = float(np.max(np.abs(there - A))) / max(1.0, float(np.max(np.abs(A))))
        return max(change, float(np.max(np.abs(left), initial=0.0))) <= _STEADY * way

    def _reduced(self) -> tuple[np.ndarray, np.ndarray]:
        Z = null_space(self.K, self.scale, self.conditions.sizes(self.K.shape[0]))
        return Z.T @ self.M @ Z, Z

    def _check_mass(self, M: np.ndarray, Z: np.ndarray):
        if not M.size:
            raise InvalidProblemError("the joints leave no degree of freedom, so there are no modes")
        values, vectors = np.linalg.eigh(M)
        if values[0] <= 1e-13 * values[-1]:
            k = int(np.argmax(np.abs(Z @ vectors[:, 0]) / self.scale))
            raise InvalidProblemError(
                f"a motion of '{self.start.layout.names[k]}' moves no mass, so its frequency is undefined; give "
                "the body a mass or a moment of inertia"
            )


def _undamped(M: np.ndarray, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One eigenvalue of each opposite pair, slow oscillations first, with the mode shapes."""
    from scipy.linalg import eigh

    squares, vectors = eigh(0.5 * (K + K.T), 0.5 * (M + M.T))
    return np.sqrt(-squares.astype(complex)), vectors.astype(complex)  # i omega, or a real number for a growing mode


def _sorted(values: np.ndarray) -> np.ndarray:
    return values[np.lexsort([values.imag, values.real, np.abs(values.imag)])]


def _pairs(values: np.ndarray, shapes: np.ndarray) -> list[tuple[complex, np.ndarray]]:
    order = np.lexsort([values.real, np.abs(values.imag)])
    return [(complex(values[k]), shapes[:, k]) for k in order if values[k].imag >= 0.0]


def first_axes_rates(p: np.ndarray) -> np.ndarray:
    r"""E(p), 3 by 4, with :math:`\omega = 2 E(p) \dot p` in the axes of the first frame."""
    a, b, c, d = p
    return np.array([[-b, a, -d, c], [-c, d, a, -b], [-d, -c, b, a]])


def perturbation_basis(layout: Any, q: np.ndarray, v: np.ndarray, n_r: int) -> np.ndarray:
    """The matrix from perturbations of positions, velocities and states of forces to those of (q, v, r)."""
    tree, n, n_v = layout.tree, layout.n_q, layout.n_v
    W, X = np.zeros((n, n_v)), np.zeros((n, n_v))
    for j, turn in enumerate(tree.turn):
        at, first, end = tree.first_q[j], tree.first_v[j], tree.first_v[j + 1]
        plain = end - first - (3 if turn == ANY_ROTATION else 0)
        W[at : at + plain, first : first + plain] = np.eye(plain)
        if turn == ANY_ROTATION:
            place, own = slice(at + plain, at + plain + 4), slice(end - 3, end)
            E = first_axes_rates(q[place])
            spin = 2.0 * E @ v[place]
            W[place, own] = 0.5 * E.T
            X[place, own] = np.column_stack([0.5 * first_axes_rates(0.5 * row).T @ spin for row in E])
    B = np.zeros((2 * n + n_r, 2 * n_v + n_r))
    B[:n, :n_v], B[n : 2 * n, :n_v], B[n : 2 * n, n_v : 2 * n_v] = W, X, W
    B[2 * n :, 2 * n_v :] = np.eye(n_r)
    return B


_FEWEST = 6  # maximum number of points for which there is no periodic spline of order 5


@dataclass(frozen=True, eq=False)
class Mode:
    """A mode of the linearised motion.

    Attributes
    ----------
    eigenvalue : complex
        Its real part is the growth rate, its imaginary part the angular frequency.
    shape : numpy.ndarray of complex, shape (n_q,)
        The perturbation of the coordinates; its largest entry is real and positive.
    start : Start
        The state of the linearisation.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> model = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> mode = model.linearise(model.equilibrium(guess={"pivot": -1.5})).modes[0]
    >>> print(f"{abs(mode.eigenvalue):.4f}")
    2.7125
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
        """Cycles per unit of time; zero for a mode without oscillation."""
        return abs(self.eigenvalue.imag) / (2.0 * np.pi)

    @property
    def damping_ratio(self) -> float:
        """Damping as a fraction of critical damping: 1 for decay without oscillation, -1 for growth without."""
        size = abs(self.eigenvalue)
        return -self.eigenvalue.real / size if size > 0.0 else 0.0

    @property
    def joint(self) -> str:
        """The joint (or body, in absolute coordinates) that moves most."""
        layout = self.start.layout
        k = int(np.argmax(np.abs(self.shape) / self._scale))
        return layout.topology.joints[int(np.searchsorted(layout.tree.first_q, k, side="right")) - 1].name

    def motion(self, n: int = 60, amplitude: float = 0.2) -> KinematicSolution:
        """The motion of the machine during one period, at `n` times, for drawings.

        `amplitude` is the maximum of the coordinate that moves most: an angle, or a displacement as a fraction of the
        size of the machine. Loops stay closed, even for large amplitudes. A mode without oscillation is shown as one
        swing in unit time.
        """
        n, amplitude = check_size(n, "n"), check_positive(amplitude, "amplitude")
        rate = abs(self.eigenvalue.imag) or 2.0 * np.pi
        t = np.linspace(0.0, 2.0 * np.pi / rate, n)
        turning = np.exp(1j * rate * t) * (1.0 if self.eigenvalue.imag else -1j)
        moved = amplitude * np.outer(self.shape, turning)
        q = np.column_stack([self._closed(self.start.q + part.real) for part in moved.T])
        v, a = (1j * rate * moved).real, -(rate**2) * moved.real
        if n > _FEWEST:  # with loops and spatial rotations, q is not a linear function of the amplitude
            from scipy.interpolate import make_interp_spline

            q[:, -1] = q[:, 0]
            way = make_interp_spline(t, q, k=5, bc_type="periodic", axis=1)
            v, a = way(t, 1), way(t, 2)
        return KinematicSolution(t, q, v, a, (), (), self.start.model, self.start.layout)

    def animate(self, path: Any = None, *, amplitude: float = 0.2, **options: Any):
        """Animate one period as a scene or a file; see :meth:`Results.animate`."""
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
