"""Linear DAEs E x' + A x = f(t) of index 1 and 2, mixed from Weierstrass form."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

import daedal
from differential.case import Case
from differential.signals import Clock, Signals, damped, regular, tolerance, unit


def weierstrass(rng: np.random.Generator) -> Case:
    """E = P diag(I, N) Q and A = P diag(-J, I) Q, with N = 0 (index 1) or pairs of nilpotent blocks (index 2)."""
    n_differential, n_algebraic, n_pairs = rng.integers(0, 4), rng.integers(0, 3), rng.integers(0, 2)
    n_differential += n_differential + n_algebraic + 2 * n_pairs == 0
    n = int(n_differential + n_algebraic + 2 * n_pairs)
    E, A = np.zeros((n, n)), np.eye(n)
    E[:n_differential, :n_differential] = np.eye(n_differential)
    A[:n_differential, :n_differential] = -damped(rng, n_differential)
    for k in range(n_pairs):
        first = n_differential + n_algebraic + 2 * k
        E[first, first + 1] = 1.0
    P, Q = regular(rng, n), regular(rng, n)
    E, A = P @ E @ Q, P @ A @ Q
    clock, x = Clock(rng, rng.uniform(1.0, 6.0)), Signals(rng, n)
    columns = np.array([unit(rng, 6.0) for _ in range(n)])
    rows = np.array([unit(rng, 6.0) for _ in range(n)])

    def residual(t, y, yp):
        s = clock.s(t)
        return rows * (E @ (yp / columns * clock.second - x(s, 1)) + A @ (y / columns - x(s)))

    share = tolerance(rng)
    # A perturbation of any entry of Q x reaches all of x; in the pairs its derivative does, which steps divide by h.
    condition = np.max(np.abs(np.linalg.inv(Q)) @ np.abs(Q) @ np.ones(n)) * np.linalg.cond(P)
    given = rng.random() < 0.5
    y0, yp0 = columns * x(0.0), columns * x(0.0, 1) / clock.second
    return Case(
        label=f"linear, index {1 + n_pairs}" if n_algebraic + n_pairs else "linear, index 0",
        problem=daedal.ImplicitDAE(residual, n),
        t_span=clock.t_span,
        initial=(y0, yp0 if given or n_pairs else None),
        options={"rtol": share, "atol": share * columns},
        t_eval=clock.t_eval,
        exact=lambda t: columns[:, None] * x(clock.s(t)),
        observed=lambda sol: sol.y,
        sizes=columns,
        share=share,
        condition=condition,
    )


def constrained(rng: np.random.Generator) -> Case:
    """x' = A x + B y + p, 0 = C x + D y + q with coefficients that turn in time, as it stands or stabilised."""
    index = int(rng.integers(1, 3))
    n_y = int(rng.integers(1, 3))
    n_x = int(rng.integers(n_y, n_y + 3))
    clock, share, speed = Clock(rng, rng.uniform(1.0, 4.0)), tolerance(rng), rng.uniform(0.0, 3.0)
    A, B, C = damped(rng, n_x), regular(rng, n_x, 2.0)[:, :n_y], regular(rng, n_x, 2.0)[:n_y]
    C = 0.2 * C + B.T if index == 2 else C
    D = regular(rng, n_y, 2.0) if index == 1 else np.zeros((n_y, n_y))
    solution = Signals(rng, n_x + n_y)

    def wave(s):
        return 1.0 + 0.2 * np.sin(speed * s)

    def p(t):
        s = clock.s(t)
        x, y, rate = solution(s)[:n_x], solution(s)[n_x:], solution(s, 1)[:n_x]
        return (rate - A @ x - wave(s) * B @ y) / clock.second

    def q(t):
        s = clock.s(t)
        return -wave(s) * C @ solution(s)[:n_x] - D @ solution(s)[n_x:]

    stabilised = rng.random() < 0.5
    n = n_x + n_y
    core = np.linalg.inv(D if index == 1 else C @ B)
    through = 1.0 + np.linalg.norm(B, 2) * np.linalg.norm(core, 2) * np.linalg.norm(C, 2)
    inherent = A - B @ core @ C if index == 1 else (np.eye(n_x) - B @ core @ C) @ A
    growth = max(np.linalg.norm(expm(s * inherent), 2) for s in np.linspace(0.0, clock.length, 20))
    return Case(
        label=f"linear with constraints, index {index}" + (", stabilised" if stabilised else ""),
        problem=daedal.LinearDAE(
            A / clock.second,
            lambda t: wave(clock.s(t)) * B / clock.second,
            lambda t: wave(clock.s(t)) * C,
            D,
            p,
            q,
            n_x=n_x,
            n_y=n_y,
        ),
        t_span=clock.t_span,
        initial=(solution(0.0)[:n_x], solution(0.0)[n_x:] if rng.random() < 0.5 else None),
        options={"rtol": share, "atol": share} | ({"formulation": "stabilised_reduction"} if stabilised else {}),
        t_eval=clock.t_eval,
        exact=lambda t: solution(clock.s(t)),
        observed=lambda sol: sol.y[:n],
        sizes=np.ones(n),
        share=share,
        condition=through * growth * (1.0 if index == 1 else 1.0 + np.linalg.norm(core @ C @ A, 2)),
    )
