r"""Measurements at one point of a trajectory for the choice between formulations.

The linearised system along the trajectory (Ascher and Petzold (2.3)) is

.. math:: x^{(m)} = \sum_j A_j\, x^{(j-1)} + B y + q, \qquad 0 = C x + r,

with m = 2, :math:`C = G` and :math:`B = M^{-1} G^T` for a mechanism. A stiff method treats the frozen part
:math:`(R A_j S)_j` implicitly for any formulation, but the rotation of the constraints only if they are imposed along a
suitable direction D: with :math:`S_o` an orthonormal basis of ker C the part

.. math:: V_D = S_o^T D (C D)^{-1} C' S_o

is discretised explicitly. It vanishes for :math:`D = C^T` and can be large for :math:`D = B`.

References
----------
U. M. Ascher, L. R. Petzold: Stability of computational methods for constrained dynamics systems, SIAM J. Sci. Comput.
14 (1993), sections 2 and 4.
"""

from dataclasses import dataclass, field

import numpy as np

from daedal.analysis.thresholds import ILL_CONDITIONED_MASS
from daedal.mechanics.setting import typical_size

# increment for differences of G, in units of the assembly's increments; G may itself be a difference
_DIRECTIONAL = 0.1
_FORCE_INCREMENT = 1e-5


@dataclass(frozen=True)
class Geometry:
    """C, C', B and an orthonormal basis S_o of ker C at one time."""

    C: np.ndarray
    C_rate: np.ndarray
    B: np.ndarray
    S: np.ndarray


@dataclass(frozen=True)
class Measures:
    r"""The quantities of the decision at one time.

    Attributes
    ----------
    t : float
    order : int
        m: 2 for mechanisms with position constraints, 1 for velocity constraints alone.
    kap1 : float
        :math:`\|(C B)^{-1}\|` with constraints scaled to comparable size; infinite for dependent constraints.
    kapC : float
        :math:`\|(C C^T)^{-1}\|` with rows of C scaled to 1.
    rot : float
        :math:`\|C^+ C' S_o\|`, the rate at which ker C rotates.
    sigF : float
        Real part, with its sign, of the eigenvalue of the frozen part :math:`u^{(m)} = \sum R A_j S u^{(j-1)}` whose
        real part is largest in absolute value: stiffness if negative, growth if positive.
    omegaF : float
        Largest imaginary part of these eigenvalues.
    fc : float
        :math:`\|F C'\|`, :math:`F = B (C B)^{-1}`: a bound on V_B; a large value alone is not conclusive.
    V_B, V_CT, V_unit : float
        :math:`\|V_D\|` for D = B, :math:`C^T` and unit vectors.
    condM : float
        Condition number of the mass matrix; for information only.
    unknowns : int
        Number of unknowns of the equations of motion in second-order form, including multipliers; 0 if there is no such
        form.
    """

    t: float
    order: int
    kap1: float
    kapC: float = np.nan
    rot: float = np.nan
    sigF: float = np.nan
    omegaF: float = np.nan
    fc: float = np.nan
    V_B: float = np.nan
    V_CT: float = np.nan
    V_unit: float = np.nan
    condM: float = np.nan
    unknowns: int = 0
    geometry: Geometry | None = field(default=None, repr=False, compare=False)


def measure(assembly, t: float, state) -> Measures | None:
    """The :class:`Measures` at a point (t, (z, r)) of a trajectory; None if a function cannot be evaluated.

    The state consists of positions, velocities and first-order states; the multipliers are computed from it.

    Examples
    --------
    >>> import daedal
    >>> from daedal.mechanics.system_workspace import SystemWorkspace
    >>> model = daedal.library.stability_example3(nu=1000.0, kappa=1.0)
    >>> q, v = model.initial
    >>> at_start = measure(SystemWorkspace(model.problem, 0.0, q), 0.0, [*q, *v])
    >>> print(f"{at_start.V_B:.1f} {at_start.sigF:.1f} {at_start.rot:.2f}")
    499.9 500.0 0.20
    """
    state = np.asarray(state, dtype=float)
    if assembly.linear:
        return _measure_linear(assembly, float(t))
    return _measure_mechanical(assembly, float(t), state)


def amplification(before: Measures, now: Measures, direction: str = "B") -> float:
    r"""The one-step indicator :math:`a_D = \|H_D(t_n) S_o(t_{n-1})\|`, :math:`H_D = I - D (C D)^{-1} C`.

    A value above 1 for several steps means that a method imposing the constraint along D behaves like an explicit one.
    For D = C^T it never exceeds 1.

    Parameters
    ----------
    before, now : Measures
        Measures at the ends of a step.
    direction : {"B", "CT", "unit"}
    """
    if before.geometry is None or now.geometry is None:
        return np.inf
    here, S = now.geometry, before.geometry.S
    return _norm(S - _along(here.C, _direction(here, direction), here.C @ S))


# --- linear Hessenberg DAEs ---


def _measure_linear(assembly, t: float) -> Measures:
    m, nx, ny = assembly.m, assembly.nx, assembly.n_c
    flat, position = assembly.given.coefficients(t), 0

    def take(*shape):
        nonlocal position
        size = int(np.prod(shape))
        position += size
        return flat[position - size : position].reshape(shape)

    A, B, _ = take(m, nx, nx), take(nx, ny), take(nx)
    C = take(m + 1, ny, nx)
    lengths = np.linalg.norm(B, axis=0)
    scaled = _scaled_rows(C[0]) @ (B / np.where(lengths > 0.0, lengths, 1.0))
    S, upper = _kernel(C[0])
    geometry = Geometry(C[0], C[1], B, S)
    kap1 = _inverse_norm(scaled)
    if not kap1 < 1.0 / np.finfo(float).eps:
        return Measures(t, m, kap1, geometry=geometry)
    blocks = [_restrict(geometry, A[j] @ S) for j in range(m)]
    k = S.shape[1]
    companion = np.zeros((m * k, m * k))
    companion[: (m - 1) * k, k:] = np.eye((m - 1) * k)
    companion[(m - 1) * k :] = np.hstack(blocks)
    return _measures(t, m, kap1, geometry, upper, companion)


# --- mechanical systems ---


def _measure_mechanical(assembly, t: float, state: np.ndarray) -> Measures | None:
    from daedal.mechanics.constrained import DYNAMICS

    order, n = (2 if assembly.n_g or not assembly.n_c else 1), 2 * assembly.nx
    z, r = state[:n], state[n:]
    a, lam, _, w, statuses = assembly.accelerate(t, state)
    if statuses[0] != 0 or not np.all(np.isfinite(a)):
        values = assembly.evaluate(t, z, r, what=DYNAMICS)
        return None if values is None else Measures(t, order, np.inf)
    point = _Point(assembly, t, z, r, w[0], lam[0], a[0])
    values, C_rate = point.evaluate(z, DYNAMICS), point.jacobian_rate()
    if values is None or C_rate is None:
        return None
    M, C = values["mass"], values["jacobian"]
    condM = float(np.linalg.cond(M))
    if not condM < ILL_CONDITIONED_MASS:
        # adding C^T C does not change M on ker C, nor D (C D)^-1 for D = M^-1 C^T
        M = M + np.trace(M) / max(float(np.sum(C * C)), 1e-300) * (C.T @ C)
    S, upper = _kernel(C)
    columns = point.columns(values, S)
    solved = np.linalg.solve(M, np.hstack([point.influence(values), columns[: assembly.nx]]))
    B = solved[:, : C.shape[0]]
    CB = C @ B
    size = np.sqrt(np.abs(np.diag(CB)))
    size = np.where(size > 0.0, size, 1.0)
    kap1 = _inverse_norm(CB / np.outer(size, size))
    geometry = Geometry(C, C_rate, B, S)
    if not kap1 < 1.0 / np.finfo(float).eps:
        return Measures(t, order, kap1, condM=condM, geometry=geometry)
    companion = _companion(_restrict(geometry, solved[:, C.shape[0] :]), columns[assembly.nx :], S.shape[1], assembly)
    unknowns = assembly.nx + C.shape[0] + r.size + w[0].size
    return _measures(t, order, kap1, geometry, upper, companion, condM, unknowns)


class _Point:
    """A mechanical system near one point, for finite differences."""

    def __init__(self, assembly, t, z, r, w, lam, a):
        self.assembly, self.t = assembly, t
        self.z, self.r, self.w, self.lam, self.a = z, r, w, lam, a

    def evaluate(self, z, what, t=None, r=None, w=None, lam=None):
        return self.assembly.evaluate(
            self.t if t is None else t,
            z,
            self.r if r is None else r,
            self.w if w is None else w,
            self.lam if lam is None else lam,
            what,
        )

    def jacobian_rate(self) -> np.ndarray | None:
        """C' = (G v)_q + G_t: the central difference of C along (1, v)."""
        from daedal.mechanics.constrained import JACOBIAN

        assembly, nx = self.assembly, self.assembly.nx
        v, record = self.z[nx:], assembly.record
        speed = float(np.max(np.abs(v) / record.array("increments")[0], initial=0.0))
        if not record["autonomous"]:
            speed = max(speed, 1.0 / float(record["time_increment"]))
        if speed == 0.0 or assembly.n_c == 0:
            return np.zeros((assembly.n_c, nx))
        s = _DIRECTIONAL / speed
        move = s * np.concatenate([v, np.zeros(nx)])
        ahead = self.evaluate(self.z + move, JACOBIAN, t=self.t + s)
        behind = self.evaluate(self.z - move, JACOBIAN, t=self.t - s)
        if ahead is None or behind is None:
            return None
        return (ahead["jacobian"] - behind["jacobian"]) / (2.0 * s)

    def influence(self, values) -> np.ndarray:
        """C^T minus the contribution of friction: how multipliers enter the forces."""
        from daedal.mechanics.constrained import FORCE

        C = values["jacobian"]
        if not self.assembly.record["uses_multipliers"]:
            return C.T
        columns = C.T.copy()
        h = _FORCE_INCREMENT * max(float(np.max(np.abs(self.lam), initial=0.0)), 1e-6)
        for i in range(C.shape[0]):
            pair = [self.evaluate(self.z, FORCE, lam=self.lam + sign * h * np.eye(C.shape[0])[i]) for sign in (1, -1)]
            if pair[0] is not None and pair[1] is not None:
                columns[:, i] -= (pair[0]["force"] - pair[1]["force"]) / (2.0 * h)
        return columns

    def columns(self, values, S: np.ndarray) -> np.ndarray:
        r"""Derivatives of :math:`(f - C^T \lambda - M a,\; f_d)` along S in q, along S in v, and in r.

        a and the multipliers are fixed; algebraic variables w satisfy their equation.
        """
        from daedal.mechanics.constrained import ALGEBRAIC, DYNAMICS, FORCE, RATE

        nx, n_r, n_w = self.assembly.nx, self.r.size, self.w.size
        size = typical_size(self.z[:nx])
        speed = np.max(np.abs(self.z[nx:]), initial=0.0)
        speed = max(float(speed), float(np.sqrt(np.max(np.abs(self.a), initial=0.0) * np.max(size))))
        position = _FORCE_INCREMENT * float(np.max(size))
        velocity = _FORCE_INCREMENT * (speed or float(np.max(size)))
        own, rest = FORCE | RATE | ALGEBRAIC, (S.shape[1], n_r, n_w)

        def difference(h, what, dz=0.0, dr=0.0, dw=0.0):
            ends = [
                self.evaluate(self.z + sign * h * dz, what, r=self.r + sign * h * dr, w=self.w + sign * h * dw)
                for sign in (1.0, -1.0)
            ]
            if ends[0] is None or ends[1] is None:
                return np.full(nx + n_r + n_w, np.nan)
            pair = [self._residual(end if what & DYNAMICS == DYNAMICS else values | _forces(end)) for end in ends]
            return (pair[0] - pair[1]) / (2.0 * h)

        zero = np.zeros(nx)
        found = [difference(position, own | DYNAMICS, dz=np.concatenate([s, zero])) for s in S.T]
        found += [difference(velocity, own, dz=np.concatenate([zero, s])) for s in S.T]
        for name, values_of, count in (("dr", self.r, rest[1]), ("dw", self.w, rest[2])):
            for i in range(count):
                h = _FORCE_INCREMENT * max(1.0, abs(values_of[i]))
                found.append(difference(h, own, **{name: np.eye(count)[i]}))
        matrix = np.array(found).T.reshape(nx + n_r + n_w, -1)
        if n_w == 0:
            return matrix
        first, last = nx + n_r, matrix.shape[1] - n_w
        follow = np.linalg.lstsq(matrix[first:, last:], matrix[first:, :last], rcond=None)[0]
        return matrix[:first, :last] - matrix[:first, last:] @ follow

    def _residual(self, values) -> np.ndarray:
        force = values["force"] - values["jacobian"].T @ self.lam - values["mass"] @ self.a
        return np.concatenate([force, values["rate"], values["algebraic"]])


def _forces(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values[name] for name in ("force", "rate", "algebraic")}


def _companion(accelerations: np.ndarray, rates: np.ndarray, k: int, assembly) -> np.ndarray:
    """The frozen part as a first-order system for (u, u', r)."""
    n_r = assembly.n_r
    first = np.zeros((k, 2 * k + n_r))
    first[:, k : 2 * k] = np.eye(k)
    return np.vstack([first, accelerations, rates])


# --- helpers ---


def _measures(t, order, kap1, geometry: Geometry, upper, companion, condM=np.nan, unknowns=0) -> Measures:
    C, S = geometry.C, geometry.S
    turning = geometry.C_rate @ S
    V = {name: _norm(S.T @ _along(C, _direction(geometry, name), turning)) for name in ("B", "CT", "unit")}
    eigenvalues = np.linalg.eigvals(companion) if companion.size and np.all(np.isfinite(companion)) else np.zeros(1)
    real = eigenvalues.real[np.argmax(np.abs(eigenvalues.real))]
    return Measures(
        t=t,
        order=order,
        kap1=kap1,
        kapC=_inverse_norm(_scaled_rows(C)) ** 2,
        rot=_norm(np.linalg.solve(upper.T, turning)),
        sigF=float(real),
        omegaF=float(np.max(np.abs(eigenvalues.imag))),
        fc=_norm(_along(C, geometry.B, geometry.C_rate)),
        V_B=V["B"],
        V_CT=V["CT"],
        V_unit=V["unit"],
        condM=condM,
        unknowns=unknowns,
        geometry=geometry,
    )


def _kernel(C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """S_o, an orthonormal basis of ker C, and U with C^T = Q [U; 0]."""
    Q, U = np.linalg.qr(C.T, mode="complete")
    return Q[:, C.shape[0] :], U[: C.shape[0]]


def _direction(geometry: Geometry, name: str) -> np.ndarray:
    if name == "B":
        return geometry.B
    if name == "CT":
        return geometry.C.T
    from scipy.linalg import qr

    ny, nx = geometry.C.shape
    unit = np.zeros((nx, ny))
    if ny:
        unit[qr(geometry.C, mode="r", pivoting=True)[1][:ny], np.arange(ny)] = 1.0
    return unit


def _along(C: np.ndarray, D: np.ndarray, values: np.ndarray) -> np.ndarray:
    """:math:`D (C D)^{-1}` times `values`."""
    return D @ np.linalg.solve(C @ D, values)


def _restrict(geometry: Geometry, values: np.ndarray) -> np.ndarray:
    """R times `values`, where R = S_o^T H and H = I - B (C B)^-1 C."""
    return geometry.S.T @ (values - _along(geometry.C, geometry.B, geometry.C @ values))


def _scaled_rows(C: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(C, axis=1, keepdims=True)
    return C / np.where(lengths > 0.0, lengths, 1.0)


def _norm(matrix: np.ndarray) -> float:
    if min(matrix.shape) <= 1:
        return float(np.sqrt(np.vdot(matrix, matrix)))
    return float(np.linalg.svd(matrix, compute_uv=False)[0])


def _inverse_norm(matrix: np.ndarray) -> float:
    """The norm of the inverse, infinite for a singular matrix; 1 for an empty one."""
    if matrix.size == 0:
        return 1.0
    smallest = float(np.linalg.svd(matrix, compute_uv=False)[-1])
    return 1.0 / smallest if smallest > 0.0 else np.inf
