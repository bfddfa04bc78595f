"""Evaluation of a mechanical system at one point, its constraints as functions, and diagnosis of failing functions."""

from dataclasses import dataclass

import numpy as np

from daedal.errors import InvalidProblemError, Unevaluable
from daedal.kernels.functions import store_vector
from daedal.mechanics.contact import without_contact
from daedal.mechanics.setting import typical_size
from daedal.mechanics.system_workspace import EVALUATED, SystemWorkspace, argument_sizes
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_number, check_vector
from daedal.problems.compile import last_argument

SOME_TIMES = np.sort((0.6180339887498949 * np.arange(1, 65)) % 1.0)
"""Fractions of an interval, with gaps of at most 2.5 %, at which time dependence of constraints is tested."""


def constraint_probe(system: MechanicalSystem, q: np.ndarray, v: np.ndarray | None = None):
    """All constraints as one vector function of (t, q), at the velocities v, by default of the size of q.

    Exceptions of the user's functions are not caught. None without constraints.
    """
    system = without_contact(system)
    if system.n_lambda == 0:
        return None
    if v is None:
        v = np.where(np.arange(q.size) % 2, 0.7, 1.0) * typical_size(q)
    parts = []
    if system.constraint is not None:
        parts.append(vector_function(system, "constraint", system.n_constraints))
    if system.velocity_constraint is not None:
        velocity = vector_function(system, "velocity_constraint", system.n_velocity_constraints)
        parts.append(lambda t, q: velocity(t, q, v))
    return lambda t, q: np.concatenate([part(t, q) for part in parts])


def vector_function(system: MechanicalSystem, name: str, size: int):
    """A function of the system that copies its arguments and checks its result."""
    function, store = getattr(system, name), store_vector(name, size)
    last = last_argument(function, system.params)

    def evaluate(t, *arrays):
        result = np.empty(size)
        store(function(float(t), *[array.copy() for array in arrays], *last), result)
        return result

    return evaluate


def looks_autonomous(system: MechanicalSystem, span: tuple[float, float], q: np.ndarray, v: np.ndarray) -> bool:
    """Whether the constraints agree at many times of the interval, so that no differences in t are needed."""
    if not asks_for_time(system):
        return False
    times = span[0] + (span[1] - span[0]) * np.concatenate([[0.0], SOME_TIMES])
    return _same_at(constraint_probe(system, q, v), times, q)


def asks_for_time(system: MechanicalSystem) -> bool:
    """Whether time dependence of the constraints matters, since their time derivative was not given."""
    return system.n_lambda > 0 and (system.constraint_t is None or system.velocity_constraint is not None)


def _same_at(probe, times, q: np.ndarray) -> bool:
    """Whether the constraints at the first time equal those at all other times at which they can be evaluated."""
    first = _values_or_nan(probe, times[0], q)
    others = (_values_or_nan(probe, t, q) for t in times[1:])
    return bool(np.all(np.isfinite(first))) and all(
        np.array_equal(values, first) for values in others if np.all(np.isfinite(values))
    )


def _values_or_nan(probe, t: float, q: np.ndarray) -> np.ndarray:
    try:
        return probe(float(t), q)
    except Exception:  # the run may end earlier, and raises a better error if it reaches this time
        return np.full(1, np.nan)


def check_point(system: MechanicalSystem, t, q, v) -> tuple[float, np.ndarray, np.ndarray]:
    """Check (t, q, v) and convert them to floats; v is zero if it is None."""
    n = system.n_q
    if q is None:
        raise InvalidProblemError("q is missing")
    q = check_vector(q, n, "q", label=system.label)
    v = np.zeros(n) if v is None else check_vector(v, n, "v", label=lambda i: system.label(n + i))
    return check_number(t, "t"), q, v


_DEPENDENT = 1e-9  # singular value of normalised rows below which it counts as zero, on the manifold
_OFF, _LARGEST = 100.0, 1e-6  # increase of this threshold per distance from the manifold, and its limit
# for projections onto the manifold: relative size below which singular values are ignored; number of Newton steps
_WEAK, _ITERATIONS = 1e-3, 8


@dataclass(frozen=True)
class MechanicalPoint:
    r"""Quantities of a mechanical system at (t, q, v).

    Attributes
    ----------
    mass, force : numpy.ndarray
        M and f.
    constraint : numpy.ndarray
        g(t, q).
    jacobian : numpy.ndarray
        K, the rows of G and of :math:`\hat G`.
    velocity : numpy.ndarray
        :math:`G v + g_t` and :math:`\hat G v + \hat g`.
    bias : numpy.ndarray
        :math:`\gamma`, so that :math:`K \ddot q = \gamma`.
    acceleration, multipliers, reaction : numpy.ndarray
        :math:`\ddot q` and :math:`\lambda` of the augmented system, and :math:`-K^T \lambda`; dependent constraints get
        the multipliers of smallest norm. In a singular configuration, where the rank is lower than at nearby points,
        these are undetermined and NaN.
    rate, algebraic : numpy.ndarray
        :math:`\dot r`, and w.
    """

    t: float
    q: np.ndarray
    v: np.ndarray
    mass: np.ndarray
    force: np.ndarray
    constraint: np.ndarray
    jacobian: np.ndarray
    velocity: np.ndarray
    bias: np.ndarray
    acceleration: np.ndarray
    multipliers: np.ndarray
    rate: np.ndarray
    algebraic: np.ndarray

    @property
    def reaction(self) -> np.ndarray:
        """The constraint forces."""
        return -self.jacobian.T @ self.multipliers


def evaluate_at(system: MechanicalSystem, t, q, v=None, *, r=None, w=None, lam=None) -> MechanicalPoint:
    """The :class:`MechanicalPoint` of `system` at (t, q, v)."""
    t, q, v = check_point(system, t, q, v)
    r = np.zeros(system.n_r) if r is None else check_vector(r, system.n_r, "r")
    w = np.zeros(system.n_w) if w is None else check_vector(w, system.n_w, "w")
    lam = np.zeros(system.n_lambda) if lam is None else check_vector(lam, system.n_lambda, "lam")
    assembly = SystemWorkspace(system, t, q)
    z = np.concatenate([q, v])
    values = assembly.evaluate(t, z, r, w, lam)
    state = np.concatenate([z, r])
    if values is None:
        found = complaint(assembly, t, state, w, lam) or "a function of the system cannot be evaluated"
        raise InvalidProblemError(f"{found} at t = {t:g}")
    a, multipliers, rate, algebraic, statuses = assembly.accelerate(t, state, np.concatenate([w, lam])[None])
    acceleration, lam = a[0], multipliers[0]
    noise = _noise(values, system.n_constraints)
    rank = _rank(values["jacobian"], noise)
    if statuses[0] != 0 or not np.all(np.isfinite(acceleration)) or rank < system.n_lambda:
        acceleration, lam = least_multipliers(values, noise)
    if rank < system.n_lambda and _is_singular(assembly, t, q, values, rank):
        acceleration, lam = np.full_like(acceleration, np.nan), np.full_like(lam, np.nan)
    return MechanicalPoint(
        t=t,
        q=q,
        v=v,
        mass=values["mass"],
        force=values["force"],
        constraint=values["level"][0, : system.n_constraints],
        jacobian=values["jacobian"],
        velocity=values["level"][1],
        bias=-values["bias"],
        acceleration=acceleration,
        multipliers=lam,
        rate=rate[0],
        algebraic=algebraic[0],
    )


def _noise(values: dict[str, np.ndarray], n_constraints: int) -> float:
    """Threshold below which singular values of normalised rows count as zero; it grows with the distance from g = 0."""
    norms = np.linalg.norm(values["jacobian"][:n_constraints], axis=1)
    away = np.abs(values["level"][0, :n_constraints]) / np.where(norms > 0.0, norms, 1.0)
    return _DEPENDENT + min(_OFF * float(np.max(away, initial=0.0)), _LARGEST)


def _rank(jacobian: np.ndarray, noise: float) -> int:
    return int(np.linalg.matrix_rank(scaled_rows(jacobian), tol=noise)) if jacobian.size else 0


def _is_singular(assembly: SystemWorkspace, t: float, q: np.ndarray, values: dict[str, np.ndarray], rank: int) -> bool:
    """Whether the rank of the constraints is higher nearby, on the manifold if the point lies on it."""
    n_g, size = assembly.system.n_constraints, 1e-2 * typical_size(q)
    _, _, directions = np.linalg.svd(scaled_rows(values["jacobian"][:n_g] * size))
    along = directions[_rank(values["jacobian"][:n_g] * size, _LARGEST) :]
    beside = q + size * (along.T @ (along @ np.cos(0.4 + 1.9 * np.arange(q.size))))
    found: dict[str, np.ndarray] | None = values
    for _ in range(_ITERATIONS):
        found = assembly.evaluate(t, np.concatenate([beside, np.zeros(q.size)]))
        if found is None:
            return False
        if _noise(found, n_g) <= 2.0 * _DEPENDENT:
            break
        rows = found["jacobian"][:n_g] * size
        beside = beside - size * (np.linalg.pinv(rows, rcond=_WEAK) @ found["level"][0, :n_g])
    assert found is not None
    return bool(np.linalg.matrix_rank(scaled_rows(found["jacobian"]), tol=_LARGEST) > rank)


def scaled_rows(jacobian: np.ndarray) -> np.ndarray:
    """The rows divided by their norms."""
    norms = np.linalg.norm(jacobian, axis=1, keepdims=True)
    return jacobian / np.where(norms > 0.0, norms, 1.0)


def least_multipliers(values: dict[str, np.ndarray], noise: float = 1e-9) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations and smallest multipliers of an augmented system with dependent rows.

    The normalised rows K = U S V^T are replaced by U_r^T K, where U_r belongs to the singular values above `noise`.
    """
    mass, jacobian = values["mass"], values["jacobian"]
    norms = np.linalg.norm(jacobian, axis=1)
    norms = np.where(norms > 0.0, norms, 1.0)
    left, singular, _ = np.linalg.svd(jacobian / norms[:, None], full_matrices=False)
    kept = left[:, singular > noise].T / norms
    n, rows = mass.shape[0], kept @ jacobian
    augmented = np.block([[mass, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    right = np.concatenate([values["force"], -kept @ values["bias"]])
    solution = np.linalg.lstsq(augmented, right, rcond=1e-14)[0]
    multipliers = kept.T @ solution[n:]
    dependent = left[:, singular <= noise].T / norms  # combinations of multipliers that exert no force
    return solution[:n], multipliers - np.linalg.pinv(dependent) @ (dependent @ multipliers)


def complaint(assembly: SystemWorkspace, t: float, state: np.ndarray, w=None, lam=None) -> str | None:
    """Description of the function that fails at a state (q, v, r); None if all can be evaluated.

    By default, the algebraic variables w and the multipliers are zero.
    """
    system, n = assembly.system, assembly.nx
    lam = np.zeros(system.n_lambda) if lam is None or np.size(lam) != system.n_lambda else np.asarray(lam)
    w = np.zeros(system.n_w) if w is None else np.asarray(w)
    extra = [values for values in (state[2 * n :], w, lam if system.force_uses_multipliers else lam[:0]) if values.size]
    for name in EVALUATED:
        function = getattr(system, name)
        if not callable(function):
            continue
        arrays = [state[:n], state[n : 2 * n], *extra][: len(argument_sizes(system, name))]
        try:
            result = function(float(t), *[array.copy() for array in arrays], *last_argument(function, system.params))
            values = np.asarray(getattr(result, "data", result) if hasattr(result, "tocsr") else result, dtype=float)
        except Unevaluable as error:
            return f"{name} raises Unevaluable: {error}".rstrip(": ")
        except Exception as error:  # only described here; the run re-raises the exception
            return f"{name} raises {type(error).__name__}: {error}".rstrip(": ")
        if not np.all(np.isfinite(values)):
            return f"{name} returns NaN or infinity"
    return None
