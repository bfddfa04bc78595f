r"""Static equilibrium: positions in which the forces are balanced by reactions,

.. math:: f(t, q, 0) - K^T \lambda = 0, \qquad g(t, q) = 0.

In the admissible directions Z, the force :math:`Z^T f` vanishes; its derivative is minus the reduced stiffness
:math:`Z^T (K^T \lambda - f)_q Z`. Newton steps use the absolute values of its eigenvalues, so that they descend
(Nocedal and Wright, *Numerical Optimization*, 3.4), and are halved until the forces do positive work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from daedal.errors import DaedalError
from daedal.multibody.assembly_problem import AssemblyProblem, nearest_zero
from daedal.multibody.inverse_dynamics import MeasuredCoordinates
from daedal.multibody.kinematics import ANY_ROTATION
from daedal.multibody.linearised import linearise
from daedal.multibody.multibody_system import null_space
from daedal.multibody.poses import Start, held_values, pose_of

STABLE, NEUTRAL, UNSTABLE = "stable", "neutral", "unstable"
_MOST = 300
_LONGEST = 0.3
_BALANCED = 1e-11
_NEUTRAL = 1e-9


class NoEquilibriumError(DaedalError):
    """No equilibrium was found; the message names the joint along which a force remains.

    Examples
    --------
    >>> from daedal.multibody import Body, Free, Model, NoEquilibriumError, ground
    >>> model = Model(Free("free", ground, Body.particle("stone", mass=1.0)), gravity=(0.0, -9.81), planar=True)
    >>> try:
    ...     model.equilibrium()
    ... except NoEquilibriumError:
    ...     print("a free body has none")
    a free body has none
    """


class Equilibrium(Start):
    """A position in which all forces are balanced; also a start at rest.

    Attributes
    ----------
    stability : {"stable", "neutral", "unstable"}
        Determined by the smallest eigenvalue of the reduced stiffness; velocity-dependent forces are ignored. If forces
        have states (controllers), it is determined by the eigenvalues of the linearised motion.
    stiffness : numpy.ndarray
        Eigenvalues of the reduced stiffness, smallest first, in coordinates of the joints.
    lam : numpy.ndarray
        The multipliers of the constraints.
    holding : dict
        Forces required at the joints with given values; for a joint with spatial rotation, the torque in the axes of
        its second frame.

    Examples
    --------
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> model = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> rest = model.equilibrium(guess={"pivot": -1.0})
    >>> print(f"{rest.joint('pivot'):.4f}", rest.stability)
    -1.5708 stable
    """

    stability: str
    stiffness: np.ndarray
    lam: np.ndarray
    holding: dict[str, np.ndarray]

    def __repr__(self):
        return f"Equilibrium({self.stability}; {super().__repr__()[6:]}"


def equilibrium(model, values: Mapping[str, Any], *, side, guess, coordinates, cut, t) -> Equilibrium:
    """See :meth:`daedal.multibody.Model.equilibrium`."""
    search = _BalanceSearch(model, values, cut if coordinates == "relative" else (), t)
    q, lam, stiffness = search.run(side or {}, guess)
    found = Start(q, np.zeros(q.size), model, search.layout, t, search.r).in_coordinates(coordinates, cut=cut)
    result = Equilibrium(found.q, found.v, model, found.layout, t, search.r)
    largest = max(float(np.max(np.abs(stiffness), initial=0.0)), 1e-300)
    lowest = float(stiffness[0]) / largest if stiffness.size else 1.0
    if search.r.size:
        result.stability = STABLE if linearise(model, result).is_stable else UNSTABLE
    else:
        result.stability = STABLE if lowest > _NEUTRAL else UNSTABLE if lowest < -_NEUTRAL else NEUTRAL
    result.stiffness, result.lam = stiffness, lam[: search.n_lambda]
    result.holding = search.holding(lam)
    return result


class _BalanceSearch:
    """Search for an equilibrium on the manifold of closed positions."""

    def __init__(self, model: Any, values: Mapping[str, Any], cut, t: float):
        self.assembly = AssemblyProblem(model, cut, t)
        self.layout, self.conditions, self.t = self.assembly.layout, self.assembly.conditions, float(t)
        self.equations, self.scale = model.equations(self.layout), self.assembly.column_scale
        self.values = values
        joints = self.assembly.joints
        turned = {
            one.key: pose_of(one.joint, one.values)[1]
            for one in held_values(joints, values)
            if one.is_whole and one.joint.turn == ANY_ROTATION
        }
        self.measures = MeasuredCoordinates(model, self.layout, joints, tuple(values), turned)
        self.n_lambda = self.conditions.n_g + self.conditions.n_hat
        self.r = np.array(model.initial_states, dtype=float)
        self.has_integrators = False
        self._rest = np.zeros(self.layout.n_q)

    def run(self, side, guess) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Coordinates, multipliers and eigenvalues of the reduced stiffness."""
        q = self.assembly.positions(self.values, side, guess)
        held = self.measures.values(q, np.zeros(len(self.measures.rows)))
        for _ in range(_MOST):
            f, lam, Z = self._balance(q)
            if self.has_integrators:
                return self._together(q, held)
            H = self._stiffness(q, lam)
            reduced = Z.T @ H @ Z
            size = np.linalg.norm(Z.T @ f)
            if not Z.shape[1] or size <= _BALANCED * max(self._size(q, f, lam, H), 1e-300):
                return q, lam, np.sort(np.linalg.eigvals(reduced).real)
            moved = self._step(q, f, Z, reduced, held)
            if moved is None:
                if size <= 1e-7 * self._size(q, f, lam, H):
                    return q, lam, np.sort(np.linalg.eigvals(reduced).real)
                break
            q = moved
        raise self._none(q)

    def _step(self, q, f, Z, reduced, held) -> np.ndarray | None:
        """A position with a smaller remaining force, or reached with positive work of the forces; None if not found."""
        force = Z.T @ f
        values, vectors = np.linalg.eigh(0.5 * (reduced + reduced.T))
        floor = max(1e-8 * float(np.max(np.abs(values))), 1e-6 * float(np.linalg.norm(force)))
        for trial in (np.linalg.lstsq(reduced, force, rcond=1e-12)[0] if values[0] > floor else None, "downhill"):
            if trial is None:
                continue
            if isinstance(trial, str):
                trial = vectors @ ((vectors.T @ force) / np.maximum(np.abs(values), floor))
            longest = float(np.max(np.abs(Z @ trial) / self.scale))
            share = min(1.0, _LONGEST / longest) if longest > 0.0 else 1.0
            while share * longest > 1e-15:
                ahead, found = self._closed(q + share * (Z @ trial), held)
                if found:
                    f_ahead, _, Z_ahead = self._balance(ahead)
                    work = 0.5 * float((f + f_ahead) @ (ahead - q))
                    if np.linalg.norm(Z_ahead.T @ f_ahead) < (1.0 - 1e-4 * share) * np.linalg.norm(force) or (
                        work > 0.0 and share * longest > 1e-9
                    ):
                        return ahead
                share *= 0.5
        return None

    def _conditions_at(self, q: np.ndarray) -> np.ndarray:
        return np.concatenate([self.conditions.jacobian(self.t, q), self.measures.jacobian(q)])

    def _balance(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Settle the force states; return forces, multipliers of smallest norm, and the free directions."""
        self._settle(q)
        f = self.equations.force(self.t, q, self._rest, self.r)
        K = self._conditions_at(q)
        lam = np.linalg.lstsq(K.T, f, rcond=1e-12)[0] if K.size else np.zeros(K.shape[0])
        return f, lam, null_space(K, self.scale, self.conditions.sizes(K.shape[0]))

    def _settle(self, q: np.ndarray):
        """Replace the force states by a solution of f_d = 0 (Newton's method), unless they are undetermined."""
        lam, rest = np.zeros(self.n_lambda), self._rest
        for _ in range(50 if self.r.size and not self.has_integrators else 0):
            rate = self.equations.state_rate(self.t, q, rest, self.r)
            if np.linalg.norm(rate) <= 1e-13 * max(1.0, float(np.linalg.norm(self.r))):
                return
            slopes = self.equations.derivatives(self.t, q, rest, self.r, rest, lam).states[:, 2 * q.size :]
            if np.linalg.matrix_rank(slopes) < self.r.size:
                self.has_integrators = True
                return
            self.r = self.r + np.linalg.solve(slopes, rate)

    def _together(self, q: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Solve for positions and force states simultaneously, if the states alone are undetermined (integrators)."""
        n, rest = q.size, self._rest
        for _ in range(_MOST):
            f, lam, Z = self._balance(q)
            rate = self.equations.state_rate(self.t, q, rest, self.r)
            found = self.equations.derivatives(self.t, q, rest, self.r, rest, lam[: self.n_lambda])
            H = found.balance[:, :n] + self.measures.curvature(q, lam[self.n_lambda :])
            small = _BALANCED * max(self._size(q, f, lam, H), 1e-300)
            if np.linalg.norm(Z.T @ f) <= small and np.linalg.norm(rate) <= 1e-11 * max(
                1.0, float(np.linalg.norm(self.r))
            ):
                return q, lam, np.sort(np.linalg.eigvals(Z.T @ H @ Z).real)
            matrix = np.block(
                [[Z.T @ H @ Z, Z.T @ found.balance[:, 2 * n :]], [found.states[:, :n] @ Z, found.states[:, 2 * n :]]]
            )
            step = np.linalg.lstsq(matrix, np.concatenate([Z.T @ f, rate]), rcond=1e-13)[0]
            move = Z @ step[: Z.shape[1]]
            longest = float(np.max(np.abs(move) / self.scale, initial=0.0))
            share = min(1.0, _LONGEST / longest) if longest > 0.0 else 1.0
            q, closes = self._closed(q + share * move, held)
            self.r = self.r + share * step[Z.shape[1] :]
            if not closes:
                break
        raise self._none(q)

    def _stiffness(self, q: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """Minus the derivative of the remaining force, with stationary force states."""
        rest, n = self._rest, q.size
        found = self.equations.derivatives(self.t, q, rest, self.r, rest, lam[: self.n_lambda])
        H = found.balance[:, :n]
        if self.r.size:
            H = H - found.balance[:, 2 * n :] @ np.linalg.solve(found.states[:, 2 * n :], found.states[:, :n])
        return H + self.measures.curvature(q, lam[self.n_lambda :])

    def _size(self, q: np.ndarray, f: np.ndarray, lam: np.ndarray, H: np.ndarray) -> float:
        """Scale of forces with which the remaining force is compared, from weights and stiffness of the machine."""
        K = self._conditions_at(q)
        tree = self.layout.tree
        weight = float(np.sum(tree.mass) * np.linalg.norm(tree.gravity)) * self.assembly.length
        elastic = float(np.linalg.norm(self.scale[:, None] * H * self.scale))
        held = float(np.linalg.norm((K.T @ lam) * self.scale))
        return max(weight, elastic, float(np.linalg.norm(f * self.scale)), held)

    def _closed(self, q: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, bool]:
        n_g, n_hat, scale = self.conditions.n_g, self.conditions.n_hat, self.scale
        if not n_g and not held.size:
            return q, True

        def matrix(x):
            rows = self._conditions_at(x * scale)
            return np.concatenate([rows[:n_g], rows[n_g + n_hat :]]) * scale

        def residual(x):
            now = self.measures.values(x * scale, held)
            return np.concatenate([self.conditions.value(self.t, x * scale), now - held])

        found = nearest_zero(residual, matrix, q / scale)
        return found.x * scale, found.size <= 1e-9 * max(1.0, self.assembly.length)

    def holding(self, lam: np.ndarray) -> dict[str, np.ndarray]:
        """Forces required to hold joints at given values, on their second bodies."""
        forces = -lam[self.n_lambda :]
        ends = np.cumsum(list(self.measures.sizes.values()))
        return {key: forces[end - n : end] for (key, n), end in zip(self.measures.sizes.items(), ends)}

    def _none(self, q: np.ndarray) -> NoEquilibriumError:
        f, _, Z = self._balance(q)
        remaining = np.linalg.lstsq(Z.T, Z.T @ f, rcond=None)[0]
        k = int(np.argmax(np.abs(remaining) * self.scale))
        return NoEquilibriumError(
            f"no equilibrium was found: along '{self.layout.names[k]}' the force {remaining[k]:.4g} remains at "
            f"{q[k]:.4g}. Remedy: give a guess nearer to the equilibrium, or check that springs or stops balance this "
            f"force"
        )
