"""Elastoplastic impact: an indentation force with hysteresis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from daedal.common.public_names import with_old_keywords
from daedal.errors import InvalidProblemError
from daedal.hybrid.hybrid_problem import HybridProblem, Transition
from daedal.hybrid.models.impact import located
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_callable, check_positive

_OFFSETS = (1.0, -1.0, 2.0, -2.0)  # nodes of the fourth-order central difference quotient
_WEIGHTS = (8.0 / 12.0, -8.0 / 12.0, -1.0 / 12.0, 1.0 / 12.0)  # weights of the same quotient
_INCREMENT = float(np.finfo(float).eps) ** 0.2


@dataclass(frozen=True)
class ElastoPlastic:
    r"""A force law with hysteresis of the indentation p: elastic up to p1, then plastic, unloading along a steep line.

    .. math::

        F = c_1 p \ (p \le p_1), \qquad F = c_1 p_1 + c_2 (p - p_1) \ (\text{plastic}), \qquad
        F = c_3 (p - p_f) \ (p_f \le p \le p_{max}),

    where :math:`p_{max}` is the deepest indentation so far, and :math:`p_f` the permanent one, at which the unloading
    line through :math:`(p_{max}, F(p_{max}))` reaches zero. Reloading follows the unloading line up to :math:`p_{max}`,
    then the plastic law. Contact after a separation begins at :math:`p_f`. As long as :math:`p_{max} \le p_1`, there is
    no permanent indentation.

    Parameters
    ----------
    c1, c2, c3 : float
        Stiffness of the elastic and the plastic range and of unloading, c3 >= c1 >= c2 > 0.
    p1 : float
        Indentation at which plastic flow begins.

    Examples
    --------
    >>> import daedal
    >>> law = daedal.hybrid.ElastoPlastic(c1=8e5, c2=1e3, c3=2e6, p1=5e-3)
    >>> print(f"{law.plastic(0.08):.0f} {law.permanent(0.08):.6f}")
    4075 0.077963
    """

    c1: float
    c2: float
    c3: float
    p1: float

    def __post_init__(self):
        for name in ("c1", "c2", "c3", "p1"):
            object.__setattr__(self, name, check_positive(getattr(self, name), name))
        if not self.c3 >= self.c1 >= self.c2:
            raise InvalidProblemError(
                f"the law needs c3 >= c1 >= c2, got c1 = {self.c1:g}, c2 = {self.c2:g}, c3 = {self.c3:g}; "
                "otherwise unloading would create energy"
            )

    def plastic(self, p: float) -> float:
        """Force of plastic loading."""
        return self.c1 * self.p1 + self.c2 * (p - self.p1)

    def permanent(self, p_max: float) -> float:
        """Permanent indentation p_f."""
        return p_max - self.plastic(p_max) / self.c3 if p_max > self.p1 else 0.0

    def force(self, mode: str, p: float, p_max: float) -> float:
        """Force in a mode: "free", "elastic", "plastic", "unloading" or "reload"."""
        if mode == "free":
            return 0.0
        if mode == "elastic":
            return self.c1 * p
        return self.plastic(p) if mode == "plastic" else self.c3 * (p - self.permanent(p_max))


@with_old_keywords(system="problem")
def elastoplastic_contact(
    problem: MechanicalSystem,
    gap: Callable[..., Any],
    law: ElastoPlastic,
    *,
    gradient: Callable[..., Any] | None = None,
) -> HybridProblem:
    r"""A mechanism that hits a deformable body, as a hybrid problem.

    The indentation is :math:`p = -g_N(t, q)`. The force of the law acts along the gradient of the gap, :math:`F \nabla
    g_N`. The deepest indentation is an additional coordinate ``p_max`` after those of the system, with zero velocity:
    initial values are ``("free", ([*q0, 0.0], [*v0, 0.0]))``.

    Modes: "free"; "elastic", below p1 as long as there was no plastic flow; "plastic"; "unloading" and "reload", the
    two directions of the steep line. See :class:`ElastoPlastic` for the reloading rule.

    Parameters
    ----------
    problem : MechanicalSystem
        System without the contact.
    gap : callable
        ``gap(t, q)``, negative during an indentation.
    law : ElastoPlastic
    gradient : callable, optional
        ``gradient(t, q)`` of the gap; computed by differences by default.

    Returns
    -------
    HybridProblem

    References
    ----------
    P. M. E. J. Wijckmans: Conditioning of differential algebraic equations and numerical solution of multibody
    dynamics, thesis, TU Eindhoven, 1996, example 7.9.

    Examples
    --------
    >>> import daedal
    >>> ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1, names=["height"])
    >>> law = daedal.hybrid.ElastoPlastic(c1=2e3, c2=1e2, c3=4e3, p1=5e-3)
    >>> problem = daedal.hybrid.elastoplastic_contact(ball, lambda t, q: q[0], law)
    >>> sol = daedal.solve(problem, (0.0, 1.0), ([1.0], [0.0]), rtol=1e-8)
    >>> [event.target for event in sol.events[:4]]
    ['elastic', 'plastic', 'unloading', 'free']
    """
    if not isinstance(problem, MechanicalSystem):
        raise InvalidProblemError(f"problem must be a MechanicalSystem, got {type(problem).__name__}")
    if not isinstance(law, ElastoPlastic):
        raise InvalidProblemError(f"law must be an ElastoPlastic, got {type(law).__name__}")
    if problem.n_s or problem.params is not None:
        raise InvalidProblemError(
            "systems with parameters or contact coordinates are not supported here; parameters can be closures"
        )
    check_callable(gap, "gap")
    if gradient is not None:
        check_callable(gradient, "gradient")
    slope = gradient or _numerical_gradient(gap)

    def depth(t, q):
        return -gap(t, q[:-1])

    def rate(t, q, v):
        return -_along(lambda s: gap(t + s, q[:-1] + s * v[:-1]), _time_scale(q[:-1], v[:-1]))

    def mode(name: str) -> MechanicalSystem:
        return _with_memory(problem, None if name == "free" else _pushed(law, name, gap, slope))

    def deepest(t, q, v):
        return np.append(q[:-1], depth(t, q)), v

    def link(source, target, guard, name, **options):
        return Transition(source, target, guard, direction=-1, name=name, **options)

    return HybridProblem(
        {name: mode(name) for name in ("free", "elastic", "plastic", "unloading", "reload")},
        [
            link(
                "free",
                lambda t, q, v: "elastic" if q[-1] <= law.p1 else "reload",
                lambda t, q, v: law.permanent(q[-1]) - depth(t, q),
                "touches",
                reset=lambda t, q, v: (located(t, q, v), v),
            ),
            link("elastic", "plastic", lambda t, q, v: law.p1 - depth(t, q), "yields"),
            link("elastic", "free", lambda t, q, v: depth(t, q), "leaves"),
            link("plastic", "unloading", rate, "turns back", reset=deepest),
            link("unloading", "free", lambda t, q, v: depth(t, q) - law.permanent(q[-1]), "separates"),
            link("unloading", "reload", lambda t, q, v: -rate(t, q, v), "is pressed again", immediate=False),
            link("reload", "plastic", lambda t, q, v: q[-1] - depth(t, q), "yields again"),
            link("reload", "unloading", rate, "turns back again", immediate=False),
        ],
        start=lambda initial: ("free", _without_dent(initial, problem.n_q)),
    )


def _without_dent(initial, n: int):
    """(q, v, ...) with the coordinate p_max, which is zero if only the coordinates of the system are given."""
    if not isinstance(initial, (tuple, list)):
        return initial
    return tuple(np.append(x, 0.0) if i < 2 and np.shape(x) == (n,) else x for i, x in enumerate(initial))


def _pushed(law: ElastoPlastic, mode: str, gap: Callable, slope: Callable) -> Callable:
    """The generalised force of the contact in a mode."""
    return lambda t, q: law.force(mode, -gap(t, q[:-1]), q[-1]) * slope(t, q[:-1])


def _with_memory(system: MechanicalSystem, push: Callable | None) -> MechanicalSystem:
    """The system with an additional constant coordinate and an additional force."""
    n = system.n_q

    def shortened(function):
        """A function of (t, q[, v, ...]) that does not receive the last coordinate."""
        takes_v = function in (system.acceleration_bias, system.velocity_constraint, system.velocity_bias)
        takes_v = takes_v or function in (system.force, system.state_rate, system.algebraic)
        if function is None:
            return None
        if takes_v:
            return lambda t, q, v, *rest: function(t, q[:-1], v[:-1], *rest)
        return lambda t, q, *rest: function(t, q[:-1], *rest)

    def widened(function):
        inner = shortened(function)
        if inner is None:
            return None
        return lambda t, q, *rest: np.pad(np.asarray(inner(t, q, *rest), dtype=float), ((0, 0), (0, 1)))

    def mass(t, q, *rest):
        full = np.eye(n + 1)
        full[:n, :n] = system.mass(t, q[:-1], *rest) if callable(system.mass) else system.mass
        return full

    applied = shortened(system.force)

    def force(t, q, v, *rest):
        f = np.append(np.asarray(applied(t, q, v, *rest), dtype=float), 0.0)
        if push is not None:
            f[:n] += push(t, q)
        return f

    names = ("constraint", "constraint_t", "acceleration_bias", "velocity_constraint", "velocity_bias")
    labels = [system.label(i) for i in range(n)]
    return system.replaced(
        mass=mass if callable(system.mass) else mass(0.0, np.zeros(n + 1)),
        force=force,
        n_q=n + 1,
        names=[*labels, "p_max"],
        force_sparsity=None,
        **{name: shortened(getattr(system, name)) for name in (*names, "state_rate", "algebraic")},
        **{name: widened(getattr(system, name)) for name in ("constraint_jacobian", "velocity_jacobian")},
    )


def _numerical_gradient(gap: Callable) -> Callable:
    def gradient(t, q):
        size = _INCREMENT * max(1.0, float(np.max(np.abs(q))))
        unit = np.eye(q.size)
        slopes = [partial(lambda e, s: gap(t, q + s * e), e) for e in unit]
        return np.array([_along(slope, size) for slope in slopes])

    return gradient


def _time_scale(q: np.ndarray, v: np.ndarray) -> float:
    """Time increment in which the coordinates change by a small fraction of their sizes."""
    return _INCREMENT * max(1.0, float(np.max(np.abs(q)))) / max(1.0, float(np.max(np.abs(v))))


def _along(function: Callable[[float], float], h: float) -> float:
    """The derivative at 0, of fourth order."""
    return sum(w * function(s * h) for s, w in zip(_OFFSETS, _WEIGHTS, strict=True)) / h
