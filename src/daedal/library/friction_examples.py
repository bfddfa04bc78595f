"""Dry friction and sliding: an oscillator, a block on an incline, a crank-slider, a string, Painleve's rod, a relay."""

from __future__ import annotations

import math

import numpy as np

import daedal
from daedal.library.model import Model, Reference, check_positive
from daedal.library.switching_examples import SOURCE
from daedal.library.violin import ADHESION, SLIDING, SPEED, _check_intervals, _names, string_force
from daedal.library.violin import SOURCE as VIOLIN

# --- the friction oscillator -----------------------------------------------------------------------------------------

OSCILLATOR_EVENTS = (
    0.562805325245349,
    2.03520043404347673,
    2.62812675580974115,
    3.72719652274195277,
    4.68488217537248554,
    5.61794646556525165,
    6.71935368621800621,
    7.55135189420334537,
    8.74367507972375407,
)


def oscillator_force(t, q, v):
    f = np.empty(1)
    f[0] = 2.0 * np.cos(np.pi * t) - q[0] - 0.2 * v[0]
    return f


def friction_oscillator(t1: float = 9.0) -> Model:
    r"""A driven oscillator with dry friction, :math:`x'' + 2 D x' + \mu\,\mathrm{sgn}(x') + x = 2 \cos \pi t`.

    Parameters
    ----------
    t1 : float
        End time.

    Notes
    -----
    D = 0.1 and mu = 4: it turns round at 0.563, sticks at 2.035, slips at 2.628, and so on. ``model.extra`` has
    ``events``, the times up to t = 9 from the closed solutions of the phases in 30-digit arithmetic, and ``filippov``,
    the same equations as a :class:`daedal.Filippov` problem in (x, x').

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.friction_oscillator()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> bool(abs(sol.events.t - model.extra["events"]).max() < 1e-7)
    True
    """
    check_positive(t1=t1)
    system = daedal.MechanicalSystem(1.0, oscillator_force, n_q=1, names=["x"])
    problem = daedal.Friction(system, [1.0], 4.0, normal=1.0)

    def side(sigma):
        return lambda t, x: np.array([x[1], oscillator_force(t, x[:1], x[1:])[0] - 4.0 * sigma])

    filippov = daedal.Filippov(side(1.0), side(-1.0), lambda t, x: x[1], 2, names=["x", "x'"])
    return Model(
        name="friction_oscillator",
        title="Oscillator with dry friction",
        problem=problem,
        t_span=(0.0, float(t1)),
        initial=problem.entry((0.0, t1), ([3.0], [4.0])),
        index=2,
        source=SOURCE.format("7.10"),
        description="A driven oscillator that slips and sticks in turn: an ordinary differential equation while it "
        "slips, a constraint on the velocity while it sticks.",
        equations=r"x'' + 2 D x' + \mu\,\mathrm{sgn}(x') + x = 2 \cos(\pi t)",
        reference=Reference(9.0, np.array([2.604430697825605, -0.1011779608361604, np.nan]), "closed solution", 1e-14)
        if t1 == 9.0
        else None,
        options={"rtol": 1e-9, "atol": 1e-9},
        plot={"variables": ["x"]},
        extra={"events": np.array(OSCILLATOR_EVENTS), "filippov": filippov},
    )


# --- a block on an inclined plane ------------------------------------------------------------------------------------


def stick_slip_block(
    mu: float = 0.3,
    mu_static: float = 0.5,
    angle: float = 0.3,
    mass: float = 2.0,
    stiffness: float = 40.0,
    speed: float = 0.2,
    gravity: float = 9.81,
    t1: float = 10.0,
) -> Model:
    r"""A block that is drawn up an inclined plane by a spring whose end moves evenly: stick-slip.

    Parameters
    ----------
    mu, mu_static : float
        Coefficients of sliding and of static friction.
    angle : float
        Inclination of the plane.
    mass, stiffness, speed, gravity : float
        Of the block, of the spring, of the end of the spring, and of the earth.
    t1 : float
        End time.

    Notes
    -----
    With the elongation :math:`\delta = V t - x` of the spring and the normal force :math:`N = m g \cos\alpha` it slips
    when :math:`\delta` reaches :math:`\delta_s = (m g \sin\alpha + \mu_s N)/k`. Then, with :math:`\omega^2 = k/m` and
    :math:`A = (\mu_s - \mu) N / k`, it moves like

    .. math:: \delta = \delta_s - A + A \cos\omega\tau + (V/\omega) \sin\omega\tau,

    until it stops after :math:`\tau = 2 (\pi - \arctan(A\omega/V))/\omega`, and sticks for :math:`2 A/V`. The run begins
    with :math:`\delta = \delta_s - A`, at rest. ``model.extra`` has ``events``, the times up to t1, and ``exact(t)``,
    the pair (x, x').

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.stick_slip_block()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> bool(abs(sol.events.t - model.extra["events"]).max() < 1e-7)
    True
    """
    check_positive(mass=mass, stiffness=stiffness, speed=speed, gravity=gravity, t1=t1)
    normal, weight = mass * gravity * math.cos(angle), mass * gravity * math.sin(angle)
    system = daedal.MechanicalSystem(
        mass, lambda t, q, v: [stiffness * (speed * t - q[0]) - weight], n_q=1, names=["x"]
    )
    problem = daedal.Friction(system, [1.0], mu, normal=normal, mu_static=mu_static)
    omega = math.sqrt(stiffness / mass)
    longest, jump = (weight + mu_static * normal) / stiffness, (mu_static - mu) * normal / stiffness
    slipping, sticking = 2.0 * (math.pi - math.atan(jump * omega / speed)) / omega, 2.0 * jump / speed
    period, first = slipping + sticking, jump / speed

    def exact(t: float) -> tuple[float, float]:
        if t < first:
            return jump - longest, 0.0
        tau = (t - first) % period
        if tau > slipping:
            elongation = longest - 2.0 * jump + speed * (tau - slipping)
            return speed * t - elongation, 0.0
        c, s = math.cos(omega * tau), math.sin(omega * tau)
        elongation = longest - jump + jump * c + speed / omega * s
        return speed * t - elongation, speed - speed * c + jump * omega * s

    count = math.ceil(max(t1 - first, 0.0) / period) + 1
    times = np.concatenate([[first + k * period, first + k * period + slipping] for k in range(count)])
    return Model(
        name="stick_slip_block",
        title="Block on an inclined plane",
        problem=problem,
        t_span=(0.0, float(t1)),
        initial=problem.entry((0.0, t1), ([jump - longest], [0.0])),
        index=2,
        source="closed solution",
        description="A block that a spring draws up an inclined plane. Static friction is larger than sliding friction, "
        "so that it moves by jerks.",
        equations=r"m x'' = k (V t - x) - m g \sin\alpha - \mu N\,\mathrm{sgn}(x')",
        reference=Reference(float(t1), np.array([*exact(t1), np.nan]), "closed solution", 1e-13),
        options={"rtol": 1e-9, "atol": 1e-9},
        plot={"variables": ["x"]},
        extra={"events": times[times < t1], "exact": exact},
    )


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


def friction_crank_slider(t1: float = 1.0) -> Model:
    r"""A crank-slider whose slider rubs in its guide, with the normal force from the multiplier of the guide.

    Parameters
    ----------
    t1 : float
        End time.

    Notes
    -----
    Rods of length 2 l1 = 20 and 2 l2 = 40, masses 1, no gravity, a spring (1), a damper (5.9) and the force
    70 cos(pi t) on the slider, mu = 20. With so large a coefficient the law of friction is not well posed: at the start
    two multipliers, -2.32 and 81.65, agree with it. The smaller one is taken, which leads to the first event of the
    source, 0.843: here 0.84282. The others of the source (slip at 1.86, 3.35, stick at 4.15) do not follow from its
    equations. It lets the slider stick at 0.843; but the accelerations of both slips, each with its own normal force,
    are positive there (0.08 and 0.51), so that it passes through zero, next at 1.5258, 2.8492 (a dead centre) and
    3.6975. Even if it stuck: at rest there is no normal force in the guide but that of inertia, and |lambda_s| < mu |N|
    cannot hold.

    ``model.extra`` has ``branches``, the two multipliers at the start, and ``turns``, the times at which the slider
    stands still up to t = 4.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.friction_crank_slider()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol.events.named('end of slip-')[0].t:.4f}")
    0.8428
    >>> print(model.problem.notes(sol)[0][:55])
    At t = 0 the normal force of the slip to the negative s
    """
    check_positive(t1=t1)
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
    problem = daedal.Friction(system, along_guide, 20.0, constraint="guide")
    phi1, rate1 = 3.0, 1e-3
    phi2 = -math.asin(L1 / L2 * math.sin(phi1))
    rate2 = -L1 / L2 * math.cos(phi1) / math.cos(phi2) * rate1
    c1, s1, c2, s2 = math.cos(phi1), math.sin(phi1), math.cos(phi2), math.sin(phi2)
    q = [L1 * c1, L1 * s1, phi1, 2.0 * L1 * c1 + L2 * c2, 2.0 * L1 * s1 + L2 * s2, phi2]
    v = [-L1 * s1 * rate1, L1 * c1 * rate1, rate1]
    v += [-2.0 * L1 * s1 * rate1 - L2 * s2 * rate2, 2.0 * L1 * c1 * rate1 + L2 * c2 * rate2, rate2]
    return Model(
        name="friction_crank_slider",
        title="Crank-slider with dry friction",
        problem=problem,
        t_span=(0.0, float(t1)),
        initial=("slip- (lam < 0)", (np.array(q), np.array(v))),
        index=3,
        source=SOURCE.format("7.11"),
        description="A crank-slider with dry friction in the guide of the slider. The coefficient is so large that the "
        "normal force is not unique (Painleve's paradox).",
        equations=r"M \ddot q = f - \mu |\lambda_5|\,\mathrm{sgn}(e^T \dot q)\,e - G^T \lambda,\qquad 0 = g(q)",
        options={"rtol": 1e-6, "atol": 1e-6},
        plot={"variables": ["phi1", "phi2"]},
        extra={"branches": (-2.316192, 81.651241), "turns": (0.842818, 1.525841, 2.849194, 3.697512)},
    )


# --- the bowed string ------------------------------------------------------------------------------------------------


def bowed_string(N: int = 20, t1: float = 12.0, compiled: bool = False) -> Model:
    """A violin string under the bow, from rest, through all its slips and sticks; see :func:`play_violin`.

    Parameters
    ----------
    N : int
        Number of intervals, even; 20 in the source.
    t1 : float
        End time.
    compiled : bool
        Whether the functions are compiled.

    Notes
    -----
    A :class:`daedal.Friction` problem: the direction is that of the middle node, the speed that of the bow. Near
    t = 4.18 the string comes within 1e-3 of the speed of the bow; use tolerances of 1e-4 or less.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.bowed_string(t1=1.0)
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print([f"{t:.6f}" for t in sol.events.t])
    ['0.027709', '0.966044']
    """
    _check_intervals(N)
    check_positive(t1=t1)
    m = N // 2 - 1
    system = daedal.MechanicalSystem(1.0, string_force, n_q=N - 1, params=np.zeros(2), names=_names(N))
    direction = np.zeros(N - 1)
    direction[m] = 1.0
    problem = daedal.Friction(
        system,
        direction,
        SLIDING,
        mu_static=ADHESION,
        normal=1.0,
        speed=SPEED,
        slip_method=daedal.DOPRI5(),
        stick_method=daedal.PHEM56(norm="max"),
    )
    problem = problem.compiled() if compiled else problem
    known = np.full(2 * N - 1, np.nan)
    known[[m, N - 1 + m]] = 0.057060129372, -0.256444867199
    return Model(
        name="bowed_string",
        title="Bowed violin string",
        problem=problem,
        t_span=(0.0, float(t1)),
        initial=("slip-", (np.zeros(N - 1), np.zeros(N - 1))),
        index=2,
        source=VIOLIN,
        description="A bowed string that slips and sticks in turn: the wave equation on lines with dry friction in the "
        "middle. Close to t = 4.18 it nearly sticks, a trap for loose tolerances.",
        equations=r"u_i'' = N^2\,(u_{i-1} - 2 u_i + u_{i+1}) - \varrho\,\mathrm{sgn}(u_i' - v)\,\delta_{i,N/2}",
        reference=Reference(12.0, known, "normal modes, 40 digits", 1e-11) if N == 20 and t1 == 12.0 else None,
        options={"rtol": 1e-8, "atol": 1e-8},
        plot={"variables": [f"u{N // 2}"]},
    )


# --- Painleve's rod --------------------------------------------------------------------------------------------------


def painleve_rod(
    mu: float = 2.0, angle: float = 1.0, slip: float = 1.0, rate: float = 0.0, unilateral: bool = True, t1: float = 0.5
) -> Model:
    r"""A rod that slides on a rough floor: Painleve's paradox.

    Parameters
    ----------
    mu : float
        Coefficient of friction; the paradox needs more than 4/3.
    angle : float
        Angle of the rod with the floor.
    slip : float
        Velocity of the end that touches the floor, x_A = x - l cos(angle).
    rate : float
        Angular velocity.
    unilateral : bool
        Whether the rod can lift off.
    t1 : float
        End time.

    Notes
    -----
    A homogeneous rod of mass 1 and length 2. While A slides to the side -1 the normal force is that without friction
    divided by :math:`1 - 3 \cos\alpha\,(\mu \sin\alpha - \cos\alpha)`-like terms, which change their sign for a large mu:
    then no motion agrees with the law of friction. ``model.initial`` is (q, v), to be given to
    ``model.problem.entry``, which says so. ``model.extra`` has ``paradox``, whether this is the case.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.painleve_rod(slip=-1.0)
    >>> model.extra["paradox"]
    True
    >>> model.problem.entry(model.t_span, model.initial)
    Traceback (most recent call last):
    ...
    daedal.errors.InconsistentInitialError: initial: no motion agrees with the law of friction at t = 0 ...
    """
