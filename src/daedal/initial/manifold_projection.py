r"""Nearest points on the constraint manifolds of a mechanical system.

.. math::

    \min_q\; (q - q_0)^T W (q - q_0), \quad g(t, q) = 0, \qquad
    \min_v\; (v - v_0)^T W (v - v_0), \quad K v + k = 0

(Ascher and Petzold, 4.16 to 4.20). Constraints may be dependent: steps are minimum-norm least-squares solutions.
Selected coordinates and velocities are fixed.
"""

import numpy as np

from daedal.analysis.dependent_constraints import position_terms, sizes, velocity_noise, velocity_terms
from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.mechanics.point import complaint
from daedal.mechanics.setting import lengths_of
from daedal.mechanics.system_workspace import SystemWorkspace
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_weight

ROUNDOFF = 64.0 * float(np.finfo(float).eps)
_DIFFERENCES = 2e-11  # relative residual of velocities that counts as round-off if the Jacobian is a finite difference
_VANISHED = 1e-2  # size assumed for a row that is zero, as a fraction of its size in the neighbourhood
_NO_GRADIENT = 1e-6  # smallest norm of a gradient, relative to the size of its constraint
_MAX_ITERATIONS = 100
_SHORTEST = 1e-5
_RANK = 1e-9
_SAFE_PIVOT = 1e-2
_NEARLY = 1e-10  # residual, relative to its terms, up to which a double zero counts as found by Newton's method


class Manifold:
    """The constraints of `system` at time `t`, and projections onto them.

    Parameters
    ----------
    system : MechanicalSystem
    t, q : float, numpy.ndarray
        The time, and a typical position.
    weight : "mass", "identity" or matrix
        W.
    held : numpy.ndarray of bool, optional
        Which of (q, v) are fixed.
    """

    def __init__(self, system: MechanicalSystem, t: float, q: np.ndarray, weight="mass", held=None):
        self.system, self.t = system, t
        self.assembly = SystemWorkspace(system, t, q)
        self.n, self.n_g, self.n_lambda = system.n_q, system.n_constraints, system.n_lambda
        self.held = np.zeros(2 * self.n, dtype=bool) if held is None else held
        self.weight = _checked_weight(weight, self.n)
        exact = system.constraint is None or system.constraint_jacobian is not None
        exact = exact and (system.constraint is None or system.constraint_t is not None)
        self.velocity_roundoff = ROUNDOFF if exact else _DIFFERENCES
        self.typical = self._typical_norms(q)

    # --- evaluation -------------------------------------------------------------------------------------------------

    def _evaluate(self, q, v, what):
        return self.assembly.evaluate(self.t, np.concatenate([q, v]), what=what)

    def _unevaluable(self, q) -> InconsistentInitialError:
        state = np.concatenate([q, np.zeros(self.n + self.system.n_r)])
        return unevaluable(self.assembly, self.t, state)

    def position(self, q) -> np.ndarray | None:
        """g(t, q), or None if it cannot be evaluated."""
        from daedal.mechanics.constrained import POSITION

        values = self._evaluate(q, np.zeros(self.n), POSITION)
        return None if values is None else values["level"][0, : self.n_g]

    def jacobian(self, q) -> np.ndarray | None:
        """K(t, q), all rows."""
        from daedal.mechanics.constrained import JACOBIAN

        values = self._evaluate(q, np.zeros(self.n), JACOBIAN)
        return None if values is None else values["jacobian"]

    def velocity(self, q, v) -> tuple[np.ndarray, np.ndarray]:
        """K v + k and K."""
        from daedal.mechanics.constrained import JACOBIAN, POSITION, VELOCITY

        values = self._evaluate(q, v, JACOBIAN | VELOCITY | POSITION)
        if values is None:
            raise self._unevaluable(q)
        return values["level"][1], values["jacobian"]

    def mass(self, q) -> np.ndarray:
        """M(t, q)."""
        from daedal.mechanics.constrained import MASS

        values = self._evaluate(q, np.zeros(self.n), MASS)
        if values is None:
            raise self._unevaluable(q)
        return values["mass"]

    def sizes(self, q) -> np.ndarray:
        """Sizes of the coordinates."""
        return lengths_of(self.system, q, sizes)

    def position_scale(self, q) -> np.ndarray:
        """The size of the terms of g."""
        rates, K = self.velocity(q, np.zeros(self.n))
        terms = position_terms(K[: self.n_g], q, rates[: self.n_g], self.t, self.sizes(q))
        return np.maximum(terms + _VANISHED * self.typical[: self.n_g] * np.max(self.sizes(q)), self._constant_terms(q))

    def _constant_terms(self, q) -> np.ndarray:
        """Sizes of the terms of g that do not change with q, which may be all terms of a condition."""
        known = getattr(self.system, "condition_sizes", None)
        if known is None:
            return np.where(self.typical[: self.n_g] > 0.0, 0.0, np.max(self.sizes(q)))
        return known[: self.n_g]

    def velocity_limits(self, q, v, relative: float) -> np.ndarray:
        """Limits of the residuals of K v + k: the given fraction of their terms, and errors of differences in time."""
        rates, K = self.velocity(q, np.zeros(self.n))
        limits = relative * (velocity_terms(K, v, rates) + _VANISHED * self.typical * np.max(np.abs(v)))
        known = getattr(self.system, "condition_sizes", None)
        if known is not None:
            limits += relative * known * np.max(np.abs(v) / self.sizes(q))
        if self.n_g and self.system.constraint_t is None:
            terms = position_terms(K[: self.n_g], q, rates[: self.n_g], self.t, self.sizes(q))
            limits += velocity_noise(terms, float(self.assembly.record.data["time_increment"][0]), self.n_lambda)
        return limits

    def _typical_norms(self, q) -> np.ndarray:
        """Norms of the rows of K here and in the neighbourhood, to detect rows that vanish."""
        K = self.jacobian(q)
        if K is None:
            raise self._unevaluable(q)
        norms = np.linalg.norm(K, axis=1)
        known = getattr(self.system, "condition_sizes", None)
        if known is not None:  # gradients that are round-off everywhere
            norms = np.maximum(norms, _NO_GRADIENT * known / np.max(self.sizes(q)))
        beside = self.jacobian(q + 1e-2 * self.sizes(q) * np.where(np.arange(self.n) % 2, -0.8, 1.0))
        return norms if beside is None else np.maximum(norms, np.linalg.norm(beside, axis=1))

    # --- projection -------------------------------------------------------------------------------------------------

    def is_consistent(self, q) -> bool:
        """Whether g(t, q) vanishes to round-off."""
        g = self.position(q)
        return g is not None and bool(np.all(np.abs(g) <= ROUNDOFF * self.position_scale(q)))

    def nearest_position(self, q0: np.ndarray) -> tuple[np.ndarray, bool]:
        """The nearest q with g(t, q) = 0 and True; if none is found, the best one and False."""
        if self.n_g == 0 or self.is_consistent(q0):
            return q0, True
        W, free = self._weight_at(q0), ~self.held[: self.n]
        rows = np.arange(self.n_g)
        q, found = self.newton(q0, rows, W, free)
        if not found:
            q, _ = self.newton(self._least_squares(q, free), rows, W, free)
            found = bool(np.all(np.abs(self._rows_of_g(q, rows)) <= _NEARLY * self.position_scale(q)))
        return (self._closest(q0, q, W, free), True) if found else (q, False)

    def newton(self, q, rows, W=None, free=None) -> tuple[np.ndarray, bool]:
        """Newton's method for some rows of g, with minimal steps, which are damped if g increases."""
        if free is None:
            free = np.ones(self.n, dtype=bool)
        if W is None:
            W = np.diag(self.sizes(q) ** -2.0)
        reference = np.where(self.typical[rows] > 0.0, self.typical[rows], 1.0)
        g, before = self._rows_of_g(q, rows), np.inf
        for _ in range(_MAX_ITERATIONS):
            size, G = np.linalg.norm(g / reference), self.jacobian(q)
            if not 0.0 < size < np.inf or G is None:
                break
            step = np.zeros(self.n)
            step[free] = _least_change(W[np.ix_(free, free)], G[rows][:, free], -g)
            change = float(np.max(np.abs(step) / self.sizes(q)))
            if change <= 0.25 * ROUNDOFF and change >= 0.3 * before:
                break
            share = 1.0
            ahead = self._rows_of_g(q + step, rows)
            while not np.linalg.norm(ahead / reference) < (1.0 - 1e-4 * share) * size:
                share *= 0.5
                if share < _SHORTEST or change <= 1e-10:
                    break
                ahead = self._rows_of_g(q + share * step, rows)
            else:
                q, g, before = q + share * step, ahead, change
                continue
            break
        return q, bool(np.all(np.abs(g) <= 16.0 * ROUNDOFF * self.position_scale(q)[rows]))

    def _rows_of_g(self, q, rows) -> np.ndarray:
        """Some rows of g; infinite if they cannot be evaluated."""
        g = self.position(q)
        return np.full(len(rows), np.inf) if g is None else g[rows]

    def _least_squares(self, q, free) -> np.ndarray:
        """Minimise the sum of squared constraints, for distant starting points."""
        from scipy.optimize import least_squares

        lengths = self.sizes(q)
        reference = np.where(self.typical[: self.n_g] > 0.0, self.typical[: self.n_g], 1.0)

        def full(x):
            moved = q.copy()
            moved[free] = x
            return moved

        def residual(x):
            g = self.position(full(x))
            return np.full(self.n_g, 1e150) if g is None else g / reference

        def jacobian(x):
            K = self.jacobian(full(x))
            return np.zeros((self.n_g, x.size)) if K is None else K[: self.n_g, free] / reference[:, None]

        if not np.any(free):
            return q
        found = least_squares(residual, q[free], jacobian, x_scale=lengths[free], xtol=1e-14, ftol=1e-14, gtol=1e-14)
        return full(found.x)

    def _closest(self, q0, q, W, free) -> np.ndarray:
        """Move along the manifold until q0 - q is orthogonal to it.

        The step length accounts for the curvature (Barzilai and Borwein).
        """
        rows, share, before = np.arange(self.n_g), 1.0, np.zeros(self.n)
        Wf = W[np.ix_(free, free)]
        best, smallest = q, np.inf
        for _ in range(60):
            K = self.jacobian(q)
            if K is None:
                break
            towards, G = (q0 - q)[free], K[: self.n_g, free]
            step = np.zeros(self.n)
            step[free] = towards - _least_change(Wf, G, G @ towards)
            change = float(np.max(np.abs(step) / self.sizes(q)))
            if change < smallest:
                best, smallest = q, change
            if change <= 1e-12 or change > 10.0 * smallest:
                break
            turned = before @ (before - step)
            if turned > 0.0:
                share = float(np.clip(share * (before @ before) / turned, 0.1, 2.0))
            q, found = self.newton(q + share * step, rows, W, free)
            if not found:
                break
            before = step
        return best

    def nearest_velocity(self, q, v0: np.ndarray, rows) -> np.ndarray:
        """The nearest v that satisfies the `rows` of K v + k = 0; the residual shows whether such a v exists."""
        residual, K = self.velocity(q, v0)
        if np.all(np.abs(residual) <= self.velocity_limits(q, v0, self.velocity_roundoff)):
            return v0
        free = ~self.held[self.n :]
        W = self._weight_at(q)[np.ix_(free, free)]
        v = v0.copy()
        for _ in range(3):
            v[free] += _least_change(W, K[rows][:, free], -residual[rows])
            residual, K = self.velocity(q, v)
            if np.all(np.abs(residual[rows]) <= self.velocity_limits(q, v, 0.05 * ROUNDOFF)[rows]):
                break
        return v

    def _weight_at(self, q) -> np.ndarray:
        if isinstance(self.weight, str):
            return self.mass(q) if self.weight == "mass" else np.eye(self.n)
        return self.weight

    def neighbours(self, q, rows):
        """Points near q that satisfy the given position rows of g = 0, reached along their kernel."""
        K = self.jacobian(q)
        lengths = self.sizes(q)
        scaled = (K if K is not None else np.zeros((self.n_lambda, self.n)))[rows] * lengths
        if len(rows):
            norms = np.linalg.norm(scaled, axis=1, keepdims=True)
            _, values, vectors = np.linalg.svd(scaled / np.where(norms > 0.0, norms, 1.0))
            basis = vectors[int(np.sum(values > 1e-8)) :]
        else:
            basis = np.eye(self.n)
        if basis.shape[0] == 0:
            return
        for phase in (0.6, 2.1):
            direction = basis.T @ np.cos(phase + 1.7 * np.arange(basis.shape[0]))
            direction /= np.max(np.abs(direction))
            for share in (1e-2, -1e-3):
                moved, found = self.newton(q + share * lengths * direction, rows)
                if found:
                    yield moved


def _least_change(W: np.ndarray, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The x with A x = b, in the least-squares sense, that minimises x^T W x."""
    if A.shape[1] == 0:
        return np.zeros(0)
    norms = np.linalg.norm(A, axis=1)
    norms = np.where(norms > 0.0, norms, 1.0)
    A, b = A / norms[:, None], b / norms
    T = _inverse_root(W)
    if T is None:  # on A x = b, this changes x^T W x by a constant
        T = _inverse_root(W + np.linalg.norm(W, 2) * A.T @ A)
    if T is None:
        T = np.eye(A.shape[1])
    transformed = A @ T
    rows = np.linalg.norm(transformed, axis=1)
    rows = np.where(rows > 0.0, rows, 1.0)
    return T @ _smallest_solution(transformed / rows[:, None], b / rows)


def _smallest_solution(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The minimum-norm least-squares solution for rows of norm 1, from the normal equations if well conditioned."""
    from scipy.linalg import cho_solve

    if A.shape[0] <= A.shape[1]:
        try:
            factor = np.linalg.cholesky(A @ A.T)
        except np.linalg.LinAlgError:
            factor = np.zeros((1, 1))
        if np.min(np.diag(factor), initial=1.0) > _SAFE_PIVOT:
            return A.T @ cho_solve((factor, True), b)
    return np.linalg.lstsq(A, b, rcond=_RANK)[0]


def _inverse_root(W: np.ndarray) -> np.ndarray | None:
    """T with T^T W T = I, or None if W is not positive definite."""
    diagonal = np.diag(W)
    if not np.all(diagonal > 0.0):
        return None
    scale = 1.0 / np.sqrt(diagonal)
    if np.count_nonzero(W) == diagonal.size:
        return np.diag(scale)
    scaled = W * np.outer(scale, scale)
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    return scale[:, None] * vectors / np.sqrt(values) if values[0] > 1e-12 else None


def _checked_weight(weight, n: int):
    if isinstance(weight, str):
        if weight not in ("mass", "identity"):
            raise InvalidProblemError(f"weight={weight!r} is unknown; use 'mass', 'identity' or a matrix")
        return weight
    return check_weight(weight, n, "be 'mass', 'identity' or a positive definite matrix")


def unevaluable(assembly: SystemWorkspace, t: float, state: np.ndarray, w=None) -> InconsistentInitialError:
    """The error for initial values (q, v, r) at which a function cannot be evaluated."""
    found = complaint(assembly, t, state, w) or "a function of the system cannot be evaluated"
    return InconsistentInitialError(f"{found} at the initial values, t = {t:g}")
