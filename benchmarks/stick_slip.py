"""The block of `daedal.library.stick_slip_block` in SciPy, its modes by hand."""

from __future__ import annotations

import math

import numpy as np

MASS, STIFFNESS, SPEED, GRAVITY, ANGLE, MU_STATIC = 2.0, 40.0, 0.2, 9.81, 0.3, 0.5


def stick_slip_end(start: np.ndarray, t_span: tuple[float, float], params: np.ndarray, rtol: float) -> np.ndarray:
    """(x, x') at the end; ``params`` holds the coefficient of sliding friction.

    While it slips, ``solve_ivp`` looks for the moment at which it stops; it sticks, without any integration, until the
    spring is as long as static friction bears.
    """
    from scipy.integrate import solve_ivp

    normal, weight = MASS * GRAVITY * math.cos(ANGLE), MASS * GRAVITY * math.sin(ANGLE)
    longest, sliding = (weight + MU_STATIC * normal) / STIFFNESS, weight + float(params[0]) * normal

    def slip(t: float, y: np.ndarray) -> tuple[float, float]:
        return y[1], (STIFFNESS * (SPEED * t - y[0]) - sliding) / MASS

    def stops(t: float, y: np.ndarray) -> float:
        return y[1]

    stops.terminal, stops.direction = True, -1.0  # type: ignore[attr-defined]
    (t, end), x = t_span, float(start[0])
    while (t := max(t, (x + longest) / SPEED)) < end:
        run = solve_ivp(slip, (t, end), (x, 0.0), "DOP853", events=stops, rtol=rtol, atol=rtol)
        t, x = run.t[-1], run.y[0, -1]
        if run.status == 0:
            return run.y[:, -1]
    return np.array([x, 0.0])


def exact_end(t0: float, t1: float, start: np.ndarray, params: np.ndarray) -> np.ndarray:
    r"""(x, x') at the end, from the closed solution of the phases.

    From rest at t = s with the spring as long as static friction bears, it moves with :math:`\tau = t - s` like
    :math:`x = V t - (\delta_s - A) - A \cos\omega\tau - (V/\omega) \sin\omega\tau`, and stops after
    :math:`2 (\pi - \arctan(A\omega/V))/\omega`.
    """
    normal, weight = MASS * GRAVITY * math.cos(ANGLE), MASS * GRAVITY * math.sin(ANGLE)
    longest, jump = (weight + MU_STATIC * normal) / STIFFNESS, (MU_STATIC - float(params[0])) * normal / STIFFNESS
    omega = math.sqrt(STIFFNESS / MASS)
    slipping = 2.0 * (math.pi - math.atan(jump * omega / SPEED)) / omega
    x = float(start[0])
    while (begin := max(t0, (x + longest) / SPEED)) < t1:
        tau = min(slipping, t1 - begin)
        c, s = math.cos(omega * tau), math.sin(omega * tau)
        x = SPEED * (begin + tau) - (longest - jump + jump * c + SPEED / omega * s)
        if tau < slipping:
            return np.array([x, SPEED - SPEED * c + jump * omega * s])
    return np.array([x, 0.0])
