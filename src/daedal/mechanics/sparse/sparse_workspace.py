r"""Large mechanical systems with sparse mass matrix and constraint Jacobian.

A system takes this path if `mass` or `constraint_jacobian` returns scipy.sparse matrices. All computations then use
sparse matrices: projections and accelerations by the augmented matrix

    [ M  G^T ]
    [ G   0  ]

(SuperLU, factors kept while iterative refinement converges), the steps by DASSL with a sparse iteration matrix.
"""

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError, Unevaluable
from daedal.kernels.five_point import five_point
from daedal.kernels.functions import is_compiled, store_vector
from daedal.mechanics.setting import ConsistentStart, best_increment, typical_size
from daedal.mechanics.sparse.structure import AugmentedSystem, SingularMatrix, Structure, checked
from daedal.problems import MechanicalSystem
from daedal.problems.compile import last_argument

_ROUNDOFF = 4.0 * float(np.finfo(float).eps)
_MAX_ITERATIONS = 60
_CONTRACTION = 0.2  # ratio of successive chord corrections above which the matrix is factored again
_UNSUPPORTED = {
    "velocity_constraint": "velocity constraints",
    "state_rate": "first-order states r",
    "algebraic": "algebraic variables w",
    "contact": "contact coordinates s",
}


def is_sparse(system, t: float, initial) -> bool:
    """Whether a mechanical system has sparse matrices; they are evaluated at the start to find out."""
    if not isinstance(system, MechanicalSystem):
        return False
    if hasattr(system.mass, "tocsr"):
        return True
    q = getattr(initial, "q", None)
    try:
        q = np.array(initial[0] if q is None else q, dtype=float)
    except (TypeError, ValueError, IndexError, KeyError):
        return False  # rejected later, with a message that names the argument
    if q.shape != (system.n_q,):
        return False
    return any(_yields_sparse(f, t, q, system.params) for f in (system.constraint_jacobian, system.mass))


def _yields_sparse(function, t: float, q: np.ndarray, params) -> bool:
    if not callable(function) or is_compiled(function) or getattr(function, "is_derivative", False):
        return False  # compiled functions return dense matrices
    try:
        return hasattr(function(t, q.copy(), *last_argument(function, params)), "tocsr")
    except Exception:  # the dense path raises a more detailed error
        return False


def check_supported(system: MechanicalSystem):
    """Raise for features without a sparse form."""
    for name, what in _UNSUPPORTED.items():
        if getattr(system, name) is not None:
            raise InvalidProblemError(
                f"{what} have no sparse form: a system with sparse matrices has positions, velocities and position "
                "constraints. Let mass and constraint_jacobian return dense arrays"
            )
    if system.force_uses_multipliers:
        raise InvalidProblemError(
            "forces that depend on the multipliers have no sparse form; "
            "let mass and constraint_jacobian return dense arrays"
        )
    if system.n_constraints and system.constraint_jacobian is None:
        raise InvalidProblemError(
            "a system with a sparse mass matrix needs constraint_jacobian(t, q), which returns the matrix G as a "
            f"scipy.sparse matrix of shape ({system.n_constraints}, {system.n_q})"
        )


class SparseWorkspace:
    """A system with sparse matrices prepared for formulations and projections: the counterpart of `SystemWorkspace`.

    Parameters
    ----------
    system : MechanicalSystem
    t, q : float, array
        A typical point, near which the structure of M and G is determined and increments are chosen.
    autonomous : bool
        Whether the constraints are known to be independent of time.
    """

    m, n_r, n_w, linear, output_weight = 2, 0, 0, False, "M"
    has_straight_line = False
    is_sparse, is_autonomous, is_coupled = True, False, False
    bridge = None  # functions are called from Python

    def __init__(self, system: MechanicalSystem, t: float, q: np.ndarray, *, autonomous: bool = False):
        check_supported(system)
        self.given = self.system = system
        self.nx = system.n_q
        self.n_c = self.n_g = system.n_constraints
        self.rows = np.arange(self.n_c)
        self.autonomous = autonomous or self.n_c == 0
        self.prepared: dict[Any, Any] = {}  # always empty, since every run has a separate assembly
        self._store_force = store_vector("force", self.nx)
        self._last = {
            name: last_argument(getattr(system, name), system.params)
            for name in ("mass", "force", "constraint", "constraint_jacobian", "constraint_t", "acceleration_bias")
            if callable(getattr(system, name))
        }
        points = _points_near(q)
        self.mass_structure = self._structure_of_mass(t, points)
        self.jacobian_structure = self._structure_of_jacobian(t, points)
        self._constant_mass = None
        if not callable(system.mass):
            self._constant_mass = self.mass_structure.aligned(system.mass, "mass")
        self.augmented = AugmentedSystem(self.mass_structure, self.jacobian_structure)
        self._typical = typical_size(q)
        self._share, self._time_increment = self._increments(t, q)

    # --- structure ---------------------------------------------------------------------------------------------------

    def _structure_of_mass(self, t: float, points) -> Structure:
        from scipy.sparse import csr_array, eye_array

        shape = (self.nx, self.nx)
        matrices = [self.system.mass] if not callable(self.system.mass) else [self._call("mass", t, q) for q in points]
        pattern = csr_array(eye_array(self.nx))
        for matrix in matrices:
            pattern = pattern + _ones(checked(matrix, "mass", shape))
        return Structure(pattern)

    def _structure_of_jacobian(self, t: float, points) -> Structure:
        from scipy.sparse import csr_array

        shape = (self.n_c, self.nx)
        pattern = csr_array(shape)
        if self.n_c:
            for q in points:
                pattern = pattern + _ones(
                    checked(self._call("constraint_jacobian", t, q), "constraint_jacobian", shape)
                )
        return Structure(pattern)

    def force_structures(self) -> tuple[Structure, Structure]:
        """The structure of the derivatives of M a - f + G^T lam with respect to q and to v."""
        ones = np.ones
        mass = self.mass_structure.matrix(ones(self.mass_structure.nnz))
        jacobian = self.jacobian_structure.matrix(ones(self.jacobian_structure.nnz))
        coupled = mass + jacobian.T @ jacobian
        if self.system.force_sparsity is None:
            return Structure(coupled), Structure(coupled)
        return Structure(coupled + self.system.force_sparsity), Structure(mass + self.system.force_sparsity)

    def _increments(self, t: float, q: np.ndarray) -> tuple[float, float]:
        """Increment along a direction, as a fraction of the size of the coordinates, and in time."""
        if self.n_c == 0 or (
            self.system.acceleration_bias is not None and (self.autonomous or self.system.constraint_t is not None)
        ):
            return 1e-3, 1e-3
        direction = self._typical * np.cos(0.4 + 1.9 * np.arange(self.nx))

        def along(s):
            return self.jacobian(t, q + s * direction) @ direction

        share = best_increment(along, 1.0)
        if self.autonomous:
            return share, 1e-3
        return share, best_increment(lambda s: self.position(t + s, q), 1.0)

    # --- evaluation --------------------------------------------------------------------------------------------------

    def _call(self, name: str, *arguments):
        return getattr(self.system, name)(*[_copied(x) for x in arguments], *self._last[name])

    def _vector(self, name: str, *arguments) -> np.ndarray:
        result = np.empty(self.n_c)
        store_vector(name, self.n_c)(self._call(name, *arguments), result)
        return result

    def mass(self, t: float, q: np.ndarray):
        """M as a CSR matrix."""
        if self._constant_mass is not None:
            return self._constant_mass
        return self.mass_structure.aligned(self._call("mass", t, q), "mass")

    def force(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        result = np.empty(self.nx)
        self._store_force(self._call("force", t, q, v), result)
        return result

    def position(self, t: float, q: np.ndarray) -> np.ndarray:
        return self._vector("constraint", t, q) if self.n_c else np.zeros(0)

    def jacobian(self, t: float, q: np.ndarray):
        """G as a CSR matrix."""
        if self.n_c == 0:
            return self.jacobian_structure.matrix(np.zeros(0))
        return self.jacobian_structure.aligned(self._call("constraint_jacobian", t, q), "constraint_jacobian")

    def position_rate(self, t: float, q: np.ndarray) -> np.ndarray:
        """Partial derivative of g with respect to t, by fourth-order differences if not given."""
        if self.autonomous:
            return np.zeros(self.n_c)
        if self.system.constraint_t is not None:
            return self._vector("constraint_t", t, q)
        return five_point(lambda s: self.position(t + s, q), self._time_increment)

    def bias(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(G v)_q v + 2 G_t v + g_tt = d^2/ds^2 g(t + s, q + s v) at s = 0.

        If g_t is known, the first derivative of G v + g_t along this line is computed, to fourth order; otherwise the
        second derivative of g, to sixth order.
        """
        if self.n_c == 0:
            return np.zeros(0)
        if self.system.acceleration_bias is not None:
            return -self._vector("acceleration_bias", t, q, v)
        speed = float(np.max(np.abs(v) / self._typical, initial=0.0)) / self._share
        if not self.autonomous:
            speed = max(speed, 1.0 / self._time_increment)
        if speed == 0.0:
            return np.zeros(self.n_c)
        if self.autonomous or self.system.constraint_t is not None:
            return five_point(lambda s: self.velocity(t + s, q + s * v, v), 1.0 / speed)
        return _second_derivative(lambda s: self.position(t + s, q + s * v), 4.0 / speed)

    def velocity(self, t: float, q: np.ndarray, v: np.ndarray, jacobian=None) -> np.ndarray:
        """G v + g_t."""
        jacobian = self.jacobian(t, q) if jacobian is None else jacobian
        return jacobian @ v + self.position_rate(t, q)

    def evaluate(self, t: float, z, r=None, w=None, lam=None, what: int = 255) -> dict[str, Any] | None:
        """Evaluate all quantities at a point, with sparse matrices; None if a function cannot be evaluated."""
        q, v = z[: self.nx], z[self.nx :]
        try:
            jacobian = self.jacobian(t, q)
            values = {
                "mass": self.mass(t, q),
                "force": self.force(t, q, v),
                "jacobian": jacobian,
                "level": np.array([self.position(t, q), self.velocity(t, q, v, jacobian)]),
                "bias": self.bias(t, q, v),
                "rate": np.zeros(0),
                "algebraic": np.zeros(0),
            }
        except Unevaluable:
            return None
        arrays = [values["mass"].data, jacobian.data, *[values[name] for name in ("force", "level", "bias")]]
        return values if all(np.all(np.isfinite(array)) for array in arrays) else None

    def gradients(self, t: float, state: np.ndarray):
        """G at a state (q, v), or None if it cannot be evaluated."""
        try:
            jacobian = self.jacobian(t, state[: self.nx])
        except Unevaluable:
            return None
        return jacobian if np.all(np.isfinite(jacobian.data)) else None

    # --- augmented system and projection -----------------------------------------------------------------------------

    def augmented_solution(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """a and lam from M a + G^T lam = f, G a = -bias."""
        return self.augmented.solve(self.mass(t, q), self.jacobian(t, q), self.force(t, q, v), -self.bias(t, q, v))

    def accelerate(self, times, states, guesses=None):
        """a, lam, r' and w at the rows of `states`; rows without a solution are NaN."""
        times, states = np.atleast_1d(np.asarray(times, dtype=float)), np.atleast_2d(states)
        a, lam = np.full((times.size, self.nx), np.nan), np.full((times.size, self.n_c), np.nan)
        statuses = np.zeros(times.size, dtype=np.int64)
        for i, t in enumerate(times):
            try:
                a[i], lam[i] = self.augmented_solution(float(t), states[i, : self.nx], states[i, self.nx :])
            except (SingularMatrix, Unevaluable):
                statuses[i] = 1
        return a, lam, np.zeros((times.size, 0)), np.zeros((times.size, 0)), statuses

    def project(self, times, states, weight="M", levels: int | None = None) -> np.ndarray:
        """Project the rows of `states` onto the constraints in the norm of M, in place; returns 0 where successful."""
        statuses = np.zeros(times.size, dtype=np.int64)
        for i, t in enumerate(times):
            try:
                q = self.projected_position(float(t), states[i, : self.nx])
                states[i, self.nx :] = self.projected_velocity(float(t), q, states[i, self.nx :])
                states[i, : self.nx] = q
            except (SingularMatrix, Unevaluable):
                statuses[i] = 1
        return statuses

    def projected_position(self, t: float, q: np.ndarray) -> np.ndarray:
        """A point with g(t, q) = 0 near q."""
        sizes = abs(self.jacobian(t, q))
        return self._projected(t, q, lambda x: self.position(t, x), lambda x: sizes @ np.abs(x), lambda x: x)

    def projected_velocity(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """A velocity with G v + g_t = 0 near v."""
        jacobian, rate = self.jacobian(t, q), self.position_rate(t, q)
        sizes = abs(jacobian)
        return self._projected(
            t, v, lambda x: jacobian @ x + rate, lambda x: sizes @ np.abs(x) + np.abs(rate), lambda x: q
        )

    def _projected(self, t: float, x: np.ndarray, residual, terms, place) -> np.ndarray:
        """Chord iterations x := x + dx with M dx + G^T nu = 0, G dx = -residual, down to the round-off of the `terms`.

        The augmented matrix is factored again, at q = ``place(x)``, when the old factors converge too slowly.
        """
        if self.n_c == 0:
            return x
        last = np.inf
        for _ in range(_MAX_ITERATIONS):
            rest = residual(x)
            size = float(np.max(np.abs(rest) / np.maximum(_ROUNDOFF * terms(x), np.finfo(float).tiny)))
            if not np.isfinite(size):
                raise Unevaluable("the constraints cannot be evaluated near this point")
            slow = size > _CONTRACTION * last
            if size <= 1.0 or (slow and size <= 100.0):
                return x
            factors = self.augmented.factors
            if factors is None or slow:
                q = place(x)
                factors = self.augmented.factor(self.mass(t, q).data, self.jacobian(t, q).data)
            x, last = x + factors.solve(np.concatenate([np.zeros(self.nx), -rest]))[: self.nx], size
        raise Unevaluable("the projection onto the constraints does not converge")

    # --- interface for the driver and the solution --------------------------------------------------------------------

    def start(self, t: float, state: np.ndarray, guess=None) -> ConsistentStart:
        """Accelerations and multipliers of a consistent state."""
        a, lam, *_ = self.accelerate(t, state)
        return ConsistentStart(float(t), state.copy(), a[0], lam[0])

    def drift(self, times: np.ndarray, states: np.ndarray, suffix: str = "") -> dict[str, float]:
        """Largest residuals of the constraints, on position and velocity level."""
        found = self.drifts(times, states)
        return {name + suffix: float(np.fmax.reduce(rows)) if rows.size else 0.0 for name, rows in found.items()}

    def drifts(self, times: np.ndarray, states: np.ndarray) -> dict[str, np.ndarray]:
        """Largest residuals of the constraints at each time."""
        largest = np.zeros((2, times.size))
        for i, (t, state) in enumerate(zip(times, states, strict=True)):
            q, v = state[: self.nx], state[self.nx :]
            largest[0, i] = np.max(np.abs(self.position(float(t), q)), initial=0.0)
            largest[1, i] = np.max(np.abs(self.velocity(float(t), q, v)), initial=0.0)
        return {"position": largest[0], "velocity": largest[1]}

    def state_names(self) -> list[str]:
        """Names of (q, v)."""
        return [self.given.label(i) for i in range(self.n_state)]

    def row_names(self) -> list[str]:
        """Names of the constraints."""
        return [self.given.constraint_label(i) for i in range(self.n_c)]

    @property
    def n_state(self) -> int:
        """Length of (q, v)."""
        return 2 * self.nx


def _copied(x):
    return x.copy() if isinstance(x, np.ndarray) else x


def _ones(matrix):
    """The structure of a matrix with all stored entries 1."""
    from scipy.sparse import csr_array

    result = csr_array(matrix, copy=True)
    result.data = np.ones(result.nnz)
    return result


def _points_near(q: np.ndarray) -> list[np.ndarray]:
    """q, and nearby points at which entries that vanish accidentally at q are nonzero."""
    size = typical_size(q)
    return [
        q,
        *[q + share * size * np.cos(phase + 1.9 * np.arange(q.size)) for share, phase in ((1e-3, 0.4), (1e-2, 1.1))],
    ]


def _second_derivative(function, h: float) -> np.ndarray:
    """Central second difference of sixth order at 0."""
    weights = (-490.0, 270.0, -27.0, 2.0)
    total = weights[0] * function(0.0)
    for k in (1, 2, 3):
        total = total + weights[k] * (function(k * h) + function(-k * h))
    return total / (180.0 * h * h)
