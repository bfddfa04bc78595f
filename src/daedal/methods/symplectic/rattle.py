r"""RATTLE and SHAKE: constant steps for long runs of conservative mechanisms without energy drift.

References
----------
J.-P. Ryckaert, G. Ciccotti, H.J.C. Berendsen, J. Comput. Phys. 23 (1977) 327-341 (SHAKE); H.C. Andersen, J. Comput.
Phys. 52 (1983) 24-34 (RATTLE); L. Jay, SIAM J. Numer. Anal. 33 (1996) 368-387 (general Hamilton functions); E. Hairer,
Ch. Lubich, G. Wanner: Geometric Numerical Integration, Springer 2006, section VII.1.4, and for compositions II.4
(Suzuki's method of order 4) and V.3.2 (orders 6 and 8, of Kahan and Li, Math. Comp. 66 (1997) 1089-1099).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.base import Method
from daedal.methods.run import OneStepRun
from daedal.methods.task import Equations, Task

_SUZUKI = 1.0 / (4.0 - 4.0 ** (1.0 / 3.0))

_FIRST_HALVES: dict[int, tuple[float, ...]] = {
    2: (),
    4: (_SUZUKI, _SUZUKI),
    6: (
        0.39216144400731413927925056,
        0.33259913678935943859974864,
        -0.70624617255763935980996482,
        0.08221359629355080023149045,
    ),
    8: (
        0.13020248308889008087881763,
        0.56116298177510838456196441,
        -0.38947496264484728640807860,
        0.15884190655515560089621075,
        -0.39590389413323757733623154,
        0.18453964097831570709183254,
        0.25837438768632204729397911,
        0.29501172360931029887096624,
    ),
}

ORDERS = tuple(_FIRST_HALVES)
_MOMENT = 1e-6  # increment of differences with respect to t
_TIMES = 3  # number of points of the interval at which forces are checked for dependence on velocities
_DAMPED = 1e-6  # fraction of the forces that may depend on velocities through rounding errors and differences

NOT_SYMPLECTIC = (
    "Forces depend on velocities other than through the inertia of M(q): the steps are still symmetric and keep their "
    "order, but are not symplectic, and energy may drift."
)


def composition(order: int) -> np.ndarray:
    r"""The weights of a symmetric composition of a method of order 2; their sum is 1, that of cubes 0 if order > 2.

    A step is :math:`\Phi_{\gamma_s h} \circ \dots \circ \Phi_{\gamma_1 h}` with :math:`\gamma_i = \gamma_{s+1-i}`. It
    is symmetric if the method is, and symplectic if the method is.
    """
    half = _FIRST_HALVES[order]
    return np.array([*half, 1.0 - 2.0 * sum(half), *half[::-1]])


class _Symplectic(Method):
    needs = ("mechanism",)
    controlled = False

    def require_error_estimate(self, fixed_step: float | None) -> None:
        """Require constant steps: if the step changes, energy is not conserved."""
        if fixed_step is None:
            raise InvalidProblemError(
                f"{type(self).__name__} needs constant steps, without which energy would drift: pass fixed_step"
            )

    def prepare(self, equations: Equations) -> OneStepRun:
        """Store the composition in a record, and create straight-line code and memory for matrices."""
        mechanism, name = equations.mechanism, type(self).__name__
        if mechanism.linear:
            raise InvalidProblemError(f"{name} needs a mechanical system; for a HessenbergDAE use dassl")
        system = mechanism.system
        for given, what in (
            (system.n_velocity_constraints, "velocity constraints"),
            (system.n_r, "first-order states r"),
            (system.n_w, "algebraic variables w"),
            (system.force_uses_multipliers, "forces that depend on multipliers"),
        ):
            if given:
                raise InvalidProblemError(
                    f"{name} needs a mechanism with position constraints only, but this one has {what}: such "
                    "systems are not Hamiltonian. Remedy: omit method, or use method='phem56'"
                )
        return _SymplecticRun(self, equations)


@dataclass(frozen=True)
class RATTLE(_Symplectic):
    r"""Andersen's symplectic method, Jay's method if M depends on q, and their compositions of higher order.

    Positions and velocities satisfy their constraints to round-off after every step, the steps are symmetric in time,
    and the energy of a conservative mechanism stays near its value for exponentially long times.

    Parameters
    ----------
    order : {2, 4, 6, 8}
        Order 4 is Suzuki's composition of 5 steps of RATTLE, 6 and 8 are those of Kahan and Li with 9 and 17.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.get("planar_pendulum")
    >>> sol = daedal.solve(model.problem, (0.0, 100.0), model.initial, method=daedal.methods.RATTLE(), fixed_step=0.02)
    >>> x, y, vx, vy = *sol.q, *sol.v
    >>> energy = 0.5 * (vx**2 + vy**2) + y
    >>> bool(abs(energy - energy[0]).max() < 1e-3), bool(sol.drift["position"] < 1e-14)
    (True, True)
    """

    order: int = 2

    name = "rattle"

    def __post_init__(self):
        if not isinstance(self.order, (int, np.integer)) or isinstance(self.order, bool) or self.order not in ORDERS:
            raise InvalidProblemError(f"order must be one of {', '.join(map(str, ORDERS))}, got {self.order!r}")

    @property
    def max_order(self) -> int:
        """The order of the composition."""
        return self.order

    @property
    def title(self) -> str:
        """The name of the method in solutions."""
        return f"RATTLE, order {self.order}"


@dataclass(frozen=True)
class SHAKE(_Symplectic):
    r"""The method of Ryckaert, Ciccotti and Berendsen, for constant M and forces that depend only on positions.

    .. math::

        M (q_{n+1} - 2 q_n + q_{n-1}) = h^2 (f_n - G_n^T \lambda_n), \qquad g(t_{n+1}, q_{n+1}) = 0, \qquad
        v_n = \frac{q_{n+1} - q_{n-1}}{2h}

    Positions are those of :class:`RATTLE`. The velocities in ``sol.raw.y`` violate their constraints by :math:`O(h^2)`;
    after projection, as in ``sol.v``, they equal those of RATTLE. The last velocity requires one step beyond the end.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.get("planar_pendulum")
    >>> shake, rattle = (
    ...     daedal.solve(model.problem, (0.0, 1.0), model.initial, method=method, fixed_step=0.02)
    ...     for method in ("shake", "rattle")
    ... )
    >>> bool(abs(shake.q - rattle.q).max() < 1e-13)
    True
    """

    name = "shake"
    max_order = 2

    @property
    def title(self) -> str:
        """The name of the method in solutions."""
        return "SHAKE, order 2"


class _SymplecticRun(OneStepRun):
    """A run of RATTLE or SHAKE."""

    def __init__(self, method: _Symplectic, equations: Equations):
        from daedal.kernels.dense import dense_lu
        from daedal.kernels.records import Record
        from daedal.methods.symplectic.rattle_step import DENSE, rattle_attempt
        from daedal.methods.symplectic.rattle_step import RATTLE as RECORD

        mechanism = equations.mechanism
        nx, weights = mechanism.nx, composition(method.max_order)
        layouts = {"rattle_positions": ((nx, nx, nx, nx), 2 * nx, 3), "rattle_velocities": ((nx, nx), nx, 1)}
        code = mechanism.coded(layouts)
        record = Record.allocated(
            RECORD,
            mechanism=mechanism.record,
            stages=weights.size,
            weights=weights,
            nodes=np.cumsum(weights),
            shake=isinstance(method, SHAKE),
            dense=Record.allocated(DENSE, nx=nx, n_c=mechanism.n_c, lu=dense_lu(nx)),
            **{name.removeprefix("rattle_"): callback for name, callback in code.items()},
        )
        super().__init__(
            method, equations, attempt=rattle_attempt, order=method.max_order, record=record, restored=True
        )

    def load(self, task: Task) -> None:
        """Compute accelerations at the start, the guess for the first iteration, and determine the type of forces."""
        mechanism = self.equations.mechanism
        nx, constant = mechanism.nx, not callable(mechanism.system.mass)
        times = np.linspace(*task.t_span, _TIMES)
        found = [depends_on_velocities(mechanism, float(t), task.y0) for t in times]
        damped = True if True in found else None if None in found else False
        if isinstance(self.method, SHAKE) and (damped or not constant):
            raise InvalidProblemError(
                "SHAKE needs a constant mass matrix and forces that depend only on positions. Remedy: define the "
                "mass as a constant matrix, not as a function, or use method='rattle'"
            )
        self.notes = (NOT_SYMPLECTIC,) if damped else ()
        self.own.array("push")[:] = task.yp0[nx:]
        self.own["separable"] = constant and damped is False
        self.record["slope_known"] = 1


def depends_on_velocities(mechanism, t: float, y: np.ndarray) -> bool | None:
    r"""Whether forces differ from :math:`f(q, 0) - \dot M v + \frac12 \nabla_q (v^T M v)` at a point near y.

    None if undecidable: functions may raise for these velocities, which are not those of the motion.
    """
    try:
        return _depends_on_velocities(mechanism, t, y)
    except Exception:
        return None


def _depends_on_velocities(mechanism, t: float, y: np.ndarray) -> bool:
    from daedal.mechanics.constrained import FORCE, MASS

    nx = mechanism.nx
    q, v = y[:nx], y[nx : 2 * nx]
    speed = float(np.max(np.abs(v), initial=0.0)) or 1.0
    v = v + speed * np.cos(1.0 + 2.3 * np.arange(nx))

    def at(t, q, v, what):
        found = mechanism.evaluate(t, np.concatenate([q, v]), what=what)
        if found is None:
            raise ArithmeticError("no value")
        return found["force" if what == FORCE else "mass"]

    force = at(t, q, v, FORCE)
    terms = [force - at(t, q, 0.0 * v, FORCE)]
    if callable(mechanism.system.mass):
        steps, step = mechanism.record.array("increments")[1], _MOMENT * max(1.0, abs(t))
        shifts = [(shift, np.sum(shift)) for shift in np.diag(steps)]
        by_q = np.array([(at(t, q + s, v, MASS) - at(t, q - s, v, MASS)) / (2.0 * size) for s, size in shifts])
        by_t = (at(t + step, q, v, MASS) - at(t - step, q, v, MASS)) / (2.0 * step)
        terms += [np.einsum("jik,j,k->i", by_q, v, v) + by_t @ v, -0.5 * np.einsum("jik,i,k->j", by_q, v, v)]
    size = max(float(np.max(np.abs(term), initial=0.0)) for term in [*terms, force])
    return bool(np.max(np.abs(sum(terms)), initial=0.0) > _DAMPED * size)
