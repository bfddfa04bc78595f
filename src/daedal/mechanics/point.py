"""Everything that the equations of a mechanical system say at one point."""

from dataclasses import dataclass

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.mechanics.assembly import Assembly
from daedal.mechanics.complaints import complaint
from daedal.mechanics.increments import typical_size
from daedal.mechanics.probes import check_point
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_vector


@dataclass(frozen=True)
class Point:
    r"""What a mechanical system has at (t, q, v).

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
        :math:`\ddot q` and :math:`\lambda` of the augmented system, and :math:`-K^T \lambda`; dependent constraints
        get the multipliers of smallest norm. Where constraints lose rank that they have beside the point (a singular
        configuration) these are not determined, and nan.
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


def evaluate_at(system: MechanicalSystem, t, q, v=None, *, r=None, w=None, lam=None) -> Point:
    """The :class:`Point` of `system` at (t, q, v)."""
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
    if statuses[0] != 0 or not np.all(np.isfinite(acceleration)) or _is_deficient(values["jacobian"]):
        acceleration, lam = least_multipliers(values)
    if system.n_lambda and _is_singular(assembly, t, q, values["jacobian"]):
        acceleration, lam = np.full_like(acceleration, np.nan), np.full_like(lam, np.nan)
    return Point(
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


def _is_deficient(jacobian: np.ndarray) -> bool:
    return jacobian.size > 0 and np.linalg.matrix_rank(scaled_rows(jacobian), tol=1e-9) < jacobian.shape[0]


def _is_singular(assembly: Assembly, t: float, q: np.ndarray, jacobian: np.ndarray) -> bool:
    """Whether the constraints have a higher rank beside the point."""
    beside = q + 1e-2 * typical_size(q) * np.cos(0.4 + 1.9 * np.arange(q.size))
    values = assembly.evaluate(t, np.concatenate([beside, np.zeros(q.size)]))
    if values is None:
        return False
    norms = np.linalg.norm(values["jacobian"], axis=1, keepdims=True)
    norms = np.where(norms > 0.0, norms, 1.0)
    here, there = (np.linalg.matrix_rank(rows / norms, tol=1e-6) for rows in (jacobian, values["jacobian"]))
    return bool(here < there)


def scaled_rows(jacobian: np.ndarray) -> np.ndarray:
    """The rows divided by their norms."""
    norms = np.linalg.norm(jacobian, axis=1, keepdims=True)
    return jacobian / np.where(norms > 0.0, norms, 1.0)


def least_multipliers(values: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations, and the multipliers of smallest norm, of an augmented system with dependent rows."""
    mass, jacobian = values["mass"], values["jacobian"]
    n, k = mass.shape[0], jacobian.shape[0]
    augmented = np.block([[mass, jacobian.T], [jacobian, np.zeros((k, k))]])
    solution = np.linalg.lstsq(augmented, np.concatenate([values["force"], -values["bias"]]), rcond=1e-12)[0]
    return solution[:n], solution[n:]
