"""Dry friction: oscillator, block on an incline, bowed string, relay; mechanisms with several or no solutions."""

import math

import numpy as np

import daedal
from daedal.library.registry import Model, Reference, known, known_reference, model
from daedal.library.rods import Rods
from daedal.library.violin import ADHESION, SLIDING, SPEED, violin_slip

# --- the friction oscillator -----------------------------------------------------------------------------------------


def oscillator_force(t, q, v):
    return np.array([2.0 * np.cos(np.pi * t) - q[0] - 0.2 * v[0]])


@model
def friction_oscillator(t1: float = 9.0) -> Model:
    r"""A driven oscillator with dry friction, :math:`x'' + 2 D x' + \mu\,\mathrm{sgn}(x') + x = 2 \cos \pi t`.

    Notes
    -----
    D = 0.1 and mu = 4: the motion reverses at 0.563, sticks at 2.035, slips at 2.628, and so on. ``model.extra`` has
    ``events``, the times up to t = 9 from the closed-form solutions of the phases in 30-digit arithmetic, and
    ``filippov``, the same equations as a :class:`daedal.hybrid.Filippov` problem in (x, x').

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.friction_oscillator()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> bool(abs(sol.events.t - model.extra["events"]).max() < 1e-7)
    True
    """
    system = daedal.MechanicalSystem(1.0, oscillator_force, n_q=1, names=["x"])
    problem = daedal.hybrid.Friction(system, [1.0], 4.0, normal=1.0)

    def side(sigma):
        return lambda t, x: np.array([x[1], oscillator_force(t, x[:1], x[1:])[0] - 4.0 * sigma])

    entry = known("friction_oscillator", t1=9.0)
    events = entry["events"] if entry else ()
    filippov = daedal.hybrid.Filippov(side(1.0), side(-1.0), lambda t, x: x[1], 2, names=["x", "x'"])
    return Model(
        problem=problem,
        initial=("slip+", (np.array([3.0]), np.array([4.0]))),
        reference=known_reference("friction_oscillator", t1=t1),
        extra={"events": np.array(events), "filippov": filippov},
    )


# --- a block on an inclined plane ------------------------------------------------------------------------------------


def block_force(t, q, v, p):
    """Spring force minus the weight along the plane."""
    return [p["stiffness"] * (p["speed"] * t - q[0]) - p["weight"]]


def block_normal(t, q, v, p):
    """Normal force."""
    return p["normal"]


def block_mu(speed, p):
    """Coefficient of sliding friction."""
    return p["mu"]


def block_mu_static(p):
    """Coefficient of static friction."""
    return p["mu_static"]


@model
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
    r"""Stick-slip of a block pulled up an inclined plane by a spring whose end moves at constant speed.

    Notes
    -----
    With the elongation :math:`\delta = V t - x` of the spring and the normal force :math:`N = m g \cos\alpha`, the
    block slips when :math:`\delta` reaches :math:`\delta_s = (m g \sin\alpha + \mu_s N)/k`. Then, with
    :math:`\omega^2 = k/m` and :math:`A = (\mu_s - \mu) N / k`, it moves according to

    .. math:: \delta = \delta_s - A + A \cos\omega\tau + (V/\omega) \sin\omega\tau,

    until it stops after :math:`\tau = 2 (\pi - \arctan(A\omega/V))/\omega`, and sticks for :math:`2 A/V`. The run
    starts with :math:`\delta = \delta_s - A`, at rest. ``model.extra`` has ``events``, the times up to t1,
    and ``exact(t)``, the pair (x, x'). The problem has the parameters mu, mu_static, stiffness and speed, and the
    forces normal and weight.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.stick_slip_block()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> bool(abs(sol.events.t - model.extra["events"]).max() < 1e-7)
    True
    """
    normal, weight = mass * gravity * math.cos(angle), mass * gravity * math.sin(angle)
    numbers = {"mu": mu, "mu_static": mu_static, "stiffness": stiffness, "speed": speed}
    numbers |= {"normal": normal, "weight": weight}
    system = daedal.MechanicalSystem(
        mass, block_force, n_q=1, names=["x"], params={name: float(value) for name, value in numbers.items()}
    )
    problem = daedal.hybrid.Friction(system, [1.0], block_mu, normal=block_normal, mu_static=block_mu_static)
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
        problem=problem,
        initial=("stick", (np.array([jump - longest]), np.zeros(1))),
        reference=Reference(float(t1), np.array([*exact(t1), np.nan]), "closed-form solution", 1e-13),
        extra={"events": times[times < t1], "exact": exact},
    )


# --- the bowed string ------------------------------------------------------------------------------------------------


@model
def bowed_string(N: int = 20, t1: float = 12.0, compiled: bool = False) -> Model:
    """A bowed violin string from rest, with all phases of slip and stick; see :func:`play_violin`.

    Notes
    -----
    A :class:`daedal.hybrid.Friction` problem: the direction selects the middle node, the speed is that of the bow. Near
    t = 4.18 the string comes within 1e-3 of the bow speed; use tolerances of 1e-4 or less.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.bowed_string(t1=1.0)
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print([f"{t:.6f}" for t in sol.events.t])
    ['0.027709', '0.966044']
    """
    free = violin_slip(N, t1=t1)
    system = free.problem.with_params(np.array([0.0, SPEED]))  # without the bow force
    m = N // 2 - 1
    direction = np.zeros(N - 1)
    direction[m] = 1.0
    problem = daedal.hybrid.Friction(
        system,
        direction,
        SLIDING,
        mu_static=ADHESION,
        normal=1.0,
        speed=SPEED,
        slip_method=daedal.methods.DOPRI5(),
        stick_method=daedal.methods.PHEM56(norm="max"),
    )
    problem = problem.compiled() if compiled else problem
    known = np.full(2 * N - 1, np.nan)
    known[[m, N - 1 + m]] = 0.057060129372, -0.256444867199
    return Model(
        problem=problem,
        initial=("slip-", (np.zeros(N - 1), np.zeros(N - 1))),
        reference=Reference(12.0, known, "normal modes, 40 digits", 1e-11) if N == 20 and t1 == 12.0 else None,
        plot={"variables": [f"u{N // 2}"]},
    )


# --- a relay ---------------------------------------------------------------------------------------------------------


@model
def relay_control(start: tuple[float, float] = (0.5, 0.0), t1: float = 3.0) -> Model:
    r"""A mass brought to rest by a relay: :math:`x_1' = x_2,\; x_2' = -\mathrm{sgn}(x_1 + x_2)`.

    Notes
    -----
    From the first switching point on the solution slides along x1 + x2 = 0, where :math:`x_1' = -x_1` and
    :math:`\nu = (1 + x_2)/2`. ``model.extra`` has ``switch``, the time of that point, and ``exact(t)``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.relay_control()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(sol.mode[-1], f"{sol['x1'][-1]:.6f}")
    sliding 0.031206
    """
    x1, x2 = (float(x) for x in start)
    # x1 + x2 t - t^2/2 + x2 - t = 0
    switch = x2 - 1.0 + math.sqrt((x2 - 1.0) ** 2 + 2.0 * (x1 + x2)) if x1 + x2 > 0.0 else math.nan
    if not switch > 0.0 or abs(x2 - switch) >= 1.0:
        raise daedal.InvalidProblemError(f"start={start!r} does not lead from above to a point where the relay slides")
    problem = daedal.hybrid.Filippov(
        lambda t, x: np.array([x[1], -1.0]),
        lambda t, x: np.array([x[1], 1.0]),
        lambda t, x: x[0] + x[1],
        2,
        names=["x1", "x2"],
    )

    def exact(t: float) -> np.ndarray:
        if t < switch:
            return np.array([x1 + x2 * t - 0.5 * t * t, x2 - t, 1.0])
        x = (switch - x2) * math.exp(switch - t)
        return np.array([x, -x, 0.5 * (1.0 - x)])

    return Model(
        problem=problem,
        initial=("above", (np.array([x1, x2]), np.ones(1))),
        reference=Reference(float(t1), np.append(exact(t1), np.nan), "closed-form solution", 1e-14),
        extra={"switch": switch, "exact": exact},
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
