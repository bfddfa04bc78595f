"""Mechanisms in which Coulomb's law has several solutions, or none: a crank-slider, Painleve's rod."""

import math

import numpy as np

import daedal
from daedal.library.registry import Model, model
from daedal.library.rods import Rods

# --- a crank-slider with friction in its guide -----------------------------------------------------------------------

L1, L2 = 10.0, 20.0


def driven_slider(t, q, v):
    slider, rate = q[3] + L2 * np.cos(q[5]), v[3] - L2 * np.sin(q[5]) * v[5]
    push = slider + 5.9 * rate + 70.0 * np.cos(np.pi * t)
    f = np.zeros(6)
    f[3], f[5] = -push, push * L2 * np.sin(q[5])
    return f


def crank_and_guide(t, q):
    g = np.empty(5, q.dtype)
    g[0] = q[0] - L1 * np.cos(q[2])
    g[1] = q[1] - L1 * np.sin(q[2])
    g[2] = q[3] - 2.0 * L1 * np.cos(q[2]) - L2 * np.cos(q[5])
    g[3] = q[4] - 2.0 * L1 * np.sin(q[2]) - L2 * np.sin(q[5])
    g[4] = q[4] + L2 * np.sin(q[5])
    return g


def along_guide(t, q):
    e = np.zeros(6, q.dtype)
    e[3], e[5] = 1.0, -L2 * np.sin(q[5])
    return e


@model
def friction_crank_slider(t1: float = 1.0) -> Model:
    r"""A crank-slider with friction in its guide, with the normal force given by the multiplier of the guide.

    Notes
    -----
    Rods of length 2 l1 = 20 and 2 l2 = 40, masses 1, no gravity, a spring (1), a damper (5.9) and the force
    70 cos(pi t) on the slider, mu = 20. For such a large coefficient the law of friction is ill-posed: at the start two
    multipliers, -2.32 and 81.65, are consistent with it. The smaller one is used, which leads to the first event of
    the source, 0.843: here 0.84282. The other events of the source (slip at 1.86, 3.35, stick at 4.15) do not follow
    from its equations. In the source the slider sticks at 0.843. However, the accelerations for slip in either
    direction, each with the corresponding normal force, are positive there (0.08 and 0.51), so the velocity passes
    through zero, next at 1.5258, 2.8492 (a dead point) and 3.6975. Sticking is impossible in any case: at rest the
    normal force in the guide is due to inertia only, and ``|lambda_s| < mu |N|`` cannot hold.

    ``model.extra`` has ``branches``, the two multipliers at the start, and ``turns``, the times up to t = 4 at which
    the slider is at rest.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.friction_crank_slider()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol.events.named('end of slip-')[0].t:.4f}")
    0.8428
    >>> print(model.problem.notes(sol)[0][:55])
    At t = 0 the normal force for slip to the negative side
    """
    inertia = [1.0, 1.0, L1**2 / 3.0, 1.0, 1.0, L2**2 / 3.0]
    system = daedal.MechanicalSystem(
        inertia,
        driven_slider,
        crank_and_guide,
        n_q=6,
        n_constraints=5,
        names=["x1", "y1", "phi1", "x2", "y2", "phi2"],
        constraint_names=["pivot x", "pivot y", "joint x", "joint y", "guide"],
    )
    problem = daedal.hybrid.Friction(system, along_guide, 20.0, constraint="guide")
    phi1, rate1 = 3.0, 1e-3
    phi2 = -math.asin(L1 / L2 * math.sin(phi1))
    rate2 = -L1 / L2 * math.cos(phi1) / math.cos(phi2) * rate1
    start = Rods(1.0, 1.0, L1, L2, 0.0).configuration((phi1, phi2), (rate1, rate2))
    return Model(
        problem=problem,
        initial=("slip- (lam < 0)", start),
        extra={"branches": (-2.316192, 81.651241), "turns": (0.842818, 1.525841, 2.849194, 3.697512)},
    )


# --- Painleve's rod --------------------------------------------------------------------------------------------------


GRAVITY = 9.81


def rod_weight(t, q, v):
    return np.array([0.0, -GRAVITY, 0.0])


def rod_on_floor(t, q):
    return np.array([q[1] - np.sin(q[2])])


def along_floor(t, q):
    e = np.zeros(3, q.dtype)
    e[0], e[2] = 1.0, np.sin(q[2])
    return e


@model
def painleve_rod(
    mu: float = 2.0, angle: float = 1.0, slip: float = 1.0, rate: float = 0.0, unilateral: bool = True, t1: float = 0.5
) -> Model:
    r"""A rod sliding on a rough floor: Painleve's paradox.

    Notes
    -----
    A homogeneous rod of mass 1 and length 2, with its lower end A on the floor. While A slides in the direction
    :math:`\sigma`, the normal force satisfies

    .. math:: N\,(1 + 3 \cos^2\alpha + 3 \sigma \mu \sin\alpha \cos\alpha) = g - \dot\alpha^2 \sin\alpha.

    The factor is negative for :math:`\sigma = -1` and a large mu: then no N > 0 is consistent, and the run ends
    immediately with a corresponding error. ``model.extra`` has ``normal``, N from this formula, and ``paradox``,
    whether it has the wrong sign.

    References
    ----------
    F. Genot, B. Brogliato, New results on Painleve paradoxes, Eur. J. Mech. A/Solids 18 (1999) 653-677.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.painleve_rod(slip=-1.0)
    >>> model.extra["paradox"]
    True
    >>> q, v = model.initial[1]
    >>> model.problem.at(0.0, q, v).branches[-1]
    ()
    """
    if not 0.0 < angle < math.pi or slip == 0.0:
        raise daedal.InvalidProblemError(f"angle={angle!r} must lie between 0 and pi, and slip={slip!r} not be zero")
    system = daedal.MechanicalSystem(
        [1.0, 1.0, 1.0 / 3.0],
        rod_weight,
        rod_on_floor,
        n_q=3,
        n_constraints=1,
        names=["x", "y", "alpha"],
        constraint_names=["floor"],
    )
    problem = daedal.hybrid.Friction(system, along_floor, mu, constraint="floor", unilateral=unilateral)
    c, s, sigma = math.cos(angle), math.sin(angle), math.copysign(1.0, slip)
    q, v = np.array([c, s, angle]), np.array([slip - s * rate, c * rate, rate])
    normal = (GRAVITY - rate**2 * s) / (1.0 + 3.0 * c * c + 3.0 * sigma * mu * s * c)
    side = "slip+" if slip > 0.0 else "slip-"
    return Model(
        problem=problem,
        initial=(side if unilateral else f"{side} (lam < 0)", (q, v)),
        extra={"normal": normal, "paradox": bool(normal < 0.0)},
    )
