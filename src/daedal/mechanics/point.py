"""All quantities of a mechanical system at one point."""

from dataclasses import dataclass

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.mechanics.assembly import Assembly
from daedal.mechanics.complaints import complaint
from daedal.mechanics.increments import typical_size
from daedal.mechanics.probes import check_point
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_vector

_DEPENDENT = 1e-9  # singular value of normalised rows that counts as zero on the manifold
_OFF, _LARGEST = 100.0, 1e-6  # increase of this threshold per distance from the manifold, and its limit
_WEAK, _ITERATIONS = 1e-3, 8  # relative singular values ignored by projections onto the manifold; largest number


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
    assembly = Assembly(system, t, q)
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
    """Threshold for singular values of normalised rows: at distance d from the manifold, they have errors of order
    d."""
    norms = np.linalg.norm(values["jacobian"][:n_constraints], axis=1)
    away = np.abs(values["level"][0, :n_constraints]) / np.where(norms > 0.0, norms, 1.0)
    return _DEPENDENT + min(_OFF * float(np.max(away, initial=0.0)), _LARGEST)


def _rank(jacobian: np.ndarray, noise: float) -> int:
    return int(np.linalg.matrix_rank(scaled_rows(jacobian), tol=noise)) if jacobian.size else 0


def _is_singular(assembly: Assembly, t: float, q: np.ndarray, values: dict[str, np.ndarray], rank: int) -> bool:
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

    The normalised rows K = U S V^T are replaced by U_r^T K, with the singular values above `noise`.
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
