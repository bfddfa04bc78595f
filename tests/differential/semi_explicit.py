"""Semi-explicit problems y' = f, 0 = g of index 1 and 2 made to have a given solution."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

import daedal
from differential.case import Case
from differential.signals import Clock, Signals, damped, regular, tolerance, unit

NONLINEARITY = 0.2
METHODS = {1: ("auto",), 2: ("auto", "phem56", "hem4", "hem5", "hem3", "hedop5")}


def manufactured(rng: np.random.Generator) -> Case:
    """f0(y, z) - f0(y*, z*) + y*' with a solution y*, z* chosen beforehand, and so for the constraint."""
    index = int(rng.integers(1, 3))
    n_z = int(rng.integers(1, 3))
    n_y = int(rng.integers(n_z, n_z + 3))
    method = str(rng.choice(METHODS[index]))
    A = damped(rng, n_y) if method == "auto" else damped(rng, n_y) / 30.0
    B, C = regular(rng, n_y, 2.0)[:, :n_z], regular(rng, n_y, 2.0)[:n_z]
    D = regular(rng, n_z, 2.0) if index == 1 else np.zeros((n_z, n_z))
    if index == 2:
        C = 0.2 * C + B.T  # so that C B is regular
    exact_y, exact_z = Signals(rng, n_y), Signals(rng, n_z)
    clock, share = Clock(rng, rng.uniform(1.0, 6.0)), tolerance(rng)
    length, force = np.array([unit(rng, 6.0) for _ in range(n_y)]), np.array([unit(rng, 6.0) for _ in range(n_z)])
    rows = np.array([unit(rng, 6.0) for _ in range(n_z)])

    def right_hand_side(y, z):
        return A @ y + B @ z + NONLINEARITY * np.sin(y) * np.cos(np.sum(z))

    def constraint(y, z):
        return C @ y + D @ z + 0.05 * np.sin(C @ y)

    def f(t, y, z):
        s = clock.s(t)
        y_s, z_s = exact_y(s), exact_z(s)
        rate = right_hand_side(y / length, z / force) - right_hand_side(y_s, z_s) + exact_y(s, 1)
        return length * rate / clock.second

    def g(t, y, z):
        s = clock.s(t)
        return rows * (constraint(y / length, z / force) - constraint(exact_y(s), exact_z(s)))

    start = length * exact_y(0.0), force * exact_z(0.0)
    units = np.concatenate([length, force])
    return Case(
        label=f"semi-explicit, index {index}, {method}",
        problem=daedal.SemiExplicitDAE(f, g, n_y, n_z),
        t_span=clock.t_span,
        initial=start if rng.random() < 0.5 else (start[0], None),
        options={"rtol": share, "atol": share * units, "method": method},
        t_eval=clock.t_eval,
        exact=lambda t: units[:, None] * np.vstack([exact_y(clock.s(t)), exact_z(clock.s(t))]),
        observed=lambda sol: sol.y,
        sizes=units,
        share=share,
        condition=_condition(A, B, C, D, index, clock.length),
    )


def _condition(A, B, C, D, index, length) -> float:
    """How perturbations of f and g reach y and z at once, times how they grow along the interval."""
    core = np.linalg.inv(D if index == 1 else C @ B)
    onto = np.eye(len(A)) - B @ core @ C if index == 2 else np.eye(len(A))
    inherent = onto @ A @ onto if index == 2 else A - B @ core @ C
    growth = max(np.linalg.norm(expm(s * inherent), 2) for s in np.linspace(0.0, length, 20))
    through = 1.0 + np.linalg.norm(B, 2) * np.linalg.norm(core, 2) * np.linalg.norm(C, 2)
    hidden = 1.0 if index == 1 else 1.0 + np.linalg.norm(core @ C @ A, 2)
    return np.exp(NONLINEARITY * length) * growth * through * hidden
