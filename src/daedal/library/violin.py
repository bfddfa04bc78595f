"""A bowed violin string: an ordinary differential equation while it slips, of index 2 while it sticks.

The wave equation with dry friction, by the method of lines on N intervals; the bow touches the middle node. With m =
N/2 and the friction z in units of the sliding friction rho_s,

    u_i'' = N^2 (u_{i-1} - 2 u_i + u_{i+1}) - rho_s z delta_{i,m},    u_0 = u_N = 0.

Slipping: z = sign(u_m' - v). Sticking: z is such that u_m' = v, as long as |z| <= rho_a/rho_s.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import daedal
from daedal.library.registry import Model, check_positive, mechanical_model, model

# (6.4): bow speed, sliding and adhesive friction
SPEED, SLIDING, ADHESION = 0.3, 12.0, 16.0
STICKING_LIMIT = ADHESION / SLIDING


# q = (u_1, ..., u_{N-1}), p = (friction force on the middle node, bow speed)


def string_force(t, q, v, p):
    n = q.size
    f = -2.0 * q
    f[1:] += q[:-1]
    f[:-1] += q[1:]
    f *= (n + 1.0) ** 2
    f[n // 2] -= p[0]
    return f


def bow(t, q, v, p):
    return np.array([v[v.size // 2] - p[1]])


def bow_jacobian(t, q, p):
    jacobian = np.zeros((1, q.size))
    jacobian[0, q.size // 2] = 1.0
    return jacobian


def bow_bias(t, q, v, p):
    return np.zeros(1)


def needed_friction(q):
    """The z that keeps the speed of the middle node constant, (3.6); q may have the shape (n_q,) or (n_q, nt)."""
    q = np.asarray(q)
    m = q.shape[0] // 2
    return (q.shape[0] + 1.0) ** 2 * (q[m - 1] - 2.0 * q[m] + q[m + 1]) / SLIDING


def _modes(nodes: int, N: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal modes (in rows) and frequencies of a number of nodes between two fixed ends."""
    k = np.arange(1, nodes + 1)
    shapes = math.sqrt(2.0 / (nodes + 1)) * np.sin(math.pi / (nodes + 1) * np.outer(k, k))
    return shapes, 2.0 * N * np.sin(0.5 * math.pi * k / (nodes + 1))


@model
def violin_slip(N: int = 20, z: float = -1.0, t1: float = 1.0, compiled: bool = False) -> Model:
    """A violin string that slips under the bow, from rest: a constant force on the middle node.

    Notes
    -----
    A mechanical system without constraints. The model does not detect when the string reaches the bow speed;
    :func:`play_violin` does. ``model.extra`` has ``exact``, ``exact_lam`` (empty), ``energy``, ``lam`` (empty) and
    ``needed_friction(q)``, the z that would keep the speed of the middle node constant.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.violin_slip()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, method="dopri5", rtol=1e-8, atol=1e-8)
    >>> bool(abs(sol.y[:, -1] - model.reference.y).max() < 1e-5)
    True
    """
    _check_intervals(N)
    problem = daedal.MechanicalSystem(
        1.0, string_force, n_q=N - 1, params=np.array([SLIDING * z, SPEED]), names=_names(N)
    )
    shapes, w = _modes(N - 1, N)
    push = -SLIDING * z * shapes[:, N // 2 - 1]

    def exact(t: float) -> np.ndarray:
        return np.concatenate([(push / w**2 * (1.0 - np.cos(w * t))) @ shapes, (push / w * np.sin(w * t)) @ shapes])

    def energy(q, v):
        stretched = np.sum(np.diff(q, axis=0, prepend=0.0, append=0.0) ** 2, axis=0)
        return 0.5 * np.sum(np.square(v), axis=0) + 0.5 * N**2 * stretched + SLIDING * z * q[N // 2 - 1]

    return mechanical_model(
        problem,
        (np.zeros(N - 1), np.zeros(N - 1)),
        t1,
        compiled,
        exact=exact,
        exact_lam=lambda t: np.empty(0),
        energy=energy,
        extra={"needed_friction": needed_friction},
        plot={"variables": [f"u{N // 2}"]},
    )


@model
def violin_stick(N: int = 20, t1: float = 1.0, compiled: bool = False) -> Model:
    """A violin string that sticks to the bow: the speed of the middle node is given, and the friction on it unknown.

    Notes
    -----
    Initially the string is straight, and all nodes except the bowed one are at rest. The multiplier is
    rho_s z. ``model.extra`` has ``exact``, ``exact_lam``, ``lam`` and ``needed_friction(q)``, which returns z.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.violin_stick()
    >>> model.problem.n_constraints, model.problem.n_velocity_constraints, model.index
    (0, 1, 2)
    """
    _check_intervals(N)
    problem = daedal.MechanicalSystem(
        1.0,
        string_force,
        n_q=N - 1,
        velocity_constraint=bow,
        n_velocity_constraints=1,
        velocity_jacobian=bow_jacobian,
        velocity_bias=bow_bias,
        params=np.array([0.0, SPEED]),
        names=_names(N),
        constraint_names=["bow"],
    )
    # each half oscillates about the straight line to the middle node, which moves uniformly
    m = N // 2
    shapes, w = _modes(m - 1, N)
    line = np.arange(1, m) / m
    kick = -SPEED * (shapes @ line)

    def exact(t: float) -> np.ndarray:
        q = SPEED * t * line + (kick / w * np.sin(w * t)) @ shapes
        v = SPEED * line + (kick * np.cos(w * t)) @ shapes
        return np.concatenate([q, [SPEED * t], q[::-1], v, [SPEED], v[::-1]])

    start = exact(0.0)
    return mechanical_model(
        problem,
        (start[: N - 1], start[N - 1 :]),
        t1,
        compiled,
        exact=exact,
        exact_lam=lambda t: np.array([SLIDING * needed_friction(exact(t)[: N - 1])]),
        extra={"needed_friction": needed_friction},
        plot={"variables": [f"u{m}"]},
    )


def _names(N: int) -> list[str]:
    return [f"u{i}" for i in range(1, N)]


def _check_intervals(N: int) -> None:
    if not (isinstance(N, (int, np.integer)) and N >= 4 and N % 2 == 0):
        raise daedal.InvalidProblemError(f"N={N!r} must be an even number, 4 or more")


# --- transitions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BowSwitch:
    """A transition between slipping and sticking."""

    t: float
    kind: str  # "stick", "slip", or "pass" if the bow speed was exceeded without sticking
    u: float  # displacement of the middle node
    z: float  # friction required for sticking, in units of the sliding friction


@dataclass(frozen=True)
class StringState:
    """The string at one or several times: displacements `u` and speeds `v` of all nodes, friction `z`."""

    t: Any
    u: np.ndarray
    v: np.ndarray
    z: Any


@dataclass(frozen=True)
class ViolinRun:
    """Result of :func:`play_violin`. Called with times, it returns the :class:`StringState` at these times.

    Attributes
    ----------
    switches : list of BowSwitch
        The transitions between slipping and sticking, in order.
    solutions : list of daedal.MechanicalSolution
        One solution for each phase between transitions.
    signs : list of float
        For each phase, 0 if the string sticks, otherwise its z.
    t : numpy.ndarray, shape (nt,)
        All output times; times of transitions occur twice, since z jumps there.
    u, v : numpy.ndarray, shape (N - 1, nt)
        Displacements and speeds.
    z : numpy.ndarray, shape (nt,)
        Friction in units of the sliding friction.

    Examples
    --------
    >>> import daedal
    >>> run = daedal.library.play_violin(0.5)
    >>> state = run(0.25)
    >>> print(f"{state.v[9]:.3f}")  # the middle of the string moves with the bow
    0.300
    """

    switches: list[BowSwitch]
    solutions: list[Any] = field(repr=False)
    signs: list[float] = field(repr=False)
    t: np.ndarray = field(repr=False)
    u: np.ndarray = field(repr=False)
    v: np.ndarray = field(repr=False)
    z: np.ndarray = field(repr=False)

    @property
    def middle(self) -> np.ndarray:
        """Displacement of the bowed node, shape (nt,)."""
        return self.u[self.u.shape[0] // 2]

    def __call__(self, t) -> StringState:
        """The string at `t` from the dense output; at a transition, in the new phase."""
        times = np.atleast_1d(np.asarray(t, dtype=float))
        n = self.u.shape[0]
        u, v, z = np.empty((n, times.size)), np.empty((n, times.size)), np.empty(times.size)
        begins = np.array([solution.t[0] for solution in self.solutions])
        phases = np.maximum(np.searchsorted(begins, times, side="right") - 1, 0)
        for phase in np.unique(phases):
            here = phases == phase
            state = self.solutions[phase](times[here])
            u[:, here], v[:, here], z[here] = state.q, state.v, _friction(state.q, self.signs[phase])
        if np.ndim(t) == 0:
            return StringState(float(t), u[:, 0], v[:, 0], float(z[0]))
        return StringState(times, u, v, z)


def _friction(q: np.ndarray, sign: float) -> np.ndarray:
    return needed_friction(q) if sign == 0.0 else np.full(q.shape[1], sign)


def _joined(switches: list[BowSwitch], solutions: list[Any], signs: list[float]) -> ViolinRun:
    t = np.concatenate([solution.t for solution in solutions])
    u, v = (np.concatenate([getattr(solution, part) for solution in solutions], axis=1) for part in "qv")
    z = np.concatenate([_friction(solution.q, sign) for solution, sign in zip(solutions, signs, strict=True)])
    return ViolinRun(switches, solutions, signs, t, u, v, z)


def play_violin(
    t_end: float,
    rtol: float = 1e-6,
    atol: float | None = None,
    *,
    slip_method: Any = None,
    stick_method: Any = None,
    N: int = 20,
    initial: tuple[Any, Any] | None = None,
    compiled: bool = False,
) -> ViolinRun:
    r"""Simulate a bowed violin string: slip, stick, slip, ..., with transitions located on the dense output.

    The string begins to stick when :math:`u_m'` reaches the bow speed, provided that the required friction is
    less than the adhesion, :math:`|z| < \varrho_a/\varrho_s = 4/3`; otherwise it continues to slip in the other
    direction. It begins to slip when :math:`|z|` reaches 4/3.

    Parameters
    ----------
    t_end : float
        End time.
    rtol, atol : float
        Tolerances; `atol` is `rtol` if omitted. Near t = 4.18 the string comes within 1e-3 of the bow speed.
        With a tolerance of 1e-3 it sticks too early, and the rest is wrong: use 1e-4 or less.
    slip_method, stick_method : method, optional
        By default ``daedal.methods.DOPRI5()`` and ``daedal.methods.PHEM56(norm="max")``: a single node determines the
        transitions, so its error must be controlled, not a mean over all nodes.
    N : int
        Number of intervals, even; 20 in the source.
    initial : tuple of array_like, optional
        Displacements and speeds at t = 0, of N - 1 nodes each; at rest if omitted.
    compiled : bool
        Whether the functions are compiled, which is worthwhile for long runs.

    Returns
    -------
    ViolinRun

    References
    ----------
    V. Brasey, E. Hairer, SIAM J. Numer. Anal. 30 (1993) 538-552, section 6.3.

    Examples
    --------
    >>> import daedal
    >>> run = daedal.library.play_violin(2.5, rtol=1e-8)
    >>> for switch in run.switches:
    ...     print(f"{switch.kind:5} {switch.t:.6f}")
    stick 0.027709
    slip  0.966044
    stick 2.123164
    """
    check_positive(t_end=t_end, rtol=rtol)
    systems = _systems(N, compiled)
    tolerances: Any = {"rtol": rtol, "atol": rtol if atol is None else atol}
    methods = {
        True: daedal.methods.PHEM56(norm="max") if stick_method is None else stick_method,
        False: daedal.methods.DOPRI5() if slip_method is None else slip_method,
    }
    t, m = 0.0, N // 2 - 1
    q, v = _start(initial, N)
    switches: list[BowSwitch] = []
    solutions: list[Any] = []
    signs: list[float] = []
    sign = math.copysign(1.0, v[m] - SPEED) if v[m] != SPEED else _sign_at_bow_speed(q)
    while True:
        solution: Any = daedal.solve(
            systems(sign), (t, t_end), (q, v), method=methods[sign == 0.0], events=_end_of_phase(m, sign), **tolerances
        )
        solutions.append(solution)
        signs.append(sign)
        if solution.status != "event":
            return _joined(switches, solutions, signs)
        t, q, v = float(solution.t[-1]), solution.q[:, -1].copy(), solution.v[:, -1].copy()
        v[m] = SPEED  # exactly, so that the event function of this phase is zero at the start of the next one
        z = float(needed_friction(q))
        sticks, sign = sign == 0.0, math.copysign(1.0, z) if sign == 0.0 else _sign_at_bow_speed(q)
        kind = "stick" if sign == 0.0 else "slip" if sticks else "pass"
        switches.append(BowSwitch(t, kind, float(q[m]), z))
        if t >= t_end:
            return _joined(switches, solutions, signs)


def _systems(N: int, compiled: bool) -> Callable[[float], Any]:
    """A function that returns the equations for sign 0 (sticking) or z, created when first needed."""
    made: dict[float, Any] = {}

    def system(sign: float):
        if sign not in made:
            model = violin_slip(N, sign, compiled=compiled) if sign else violin_stick(N, compiled=compiled)
            made[sign] = model.problem
        return made[sign]

    return system


def _start(initial, N: int) -> tuple[np.ndarray, np.ndarray]:
    _check_intervals(N)
    if initial is None:
        return np.zeros(N - 1), np.zeros(N - 1)
    q, v = (np.array(part, dtype=float) for part in initial)
    if q.shape != (N - 1,) or v.shape != (N - 1,):
        raise daedal.InvalidProblemError(f"initial must be two vectors of {N - 1} nodes, got {q.shape} and {v.shape}")
    return q, v


def _sign_at_bow_speed(q: np.ndarray) -> float:
    """0 if the string sticks to the bow, otherwise the direction in which it slips."""
    z = float(needed_friction(q))
    return 0.0 if abs(z) < STICKING_LIMIT else math.copysign(1.0, z)


def _end_of_phase(m: int, sign: float):
    """The event that ends a phase: required friction at its limit, or middle node of a slipping string at bow speed."""
    if sign == 0.0:
        return daedal.Event(
            lambda t, q, v: abs(needed_friction(q)) - STICKING_LIMIT, terminal=True, direction=1, name="slip"
        )
    return daedal.Event(lambda t, q, v: v[m] - SPEED, terminal=True, direction=-int(sign), name="stick")
