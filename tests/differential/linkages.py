"""Planar linkages in Cartesian coordinates against the same in angles: chains of rods, and crank-sliders."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

import daedal
from differential.case import Case
from differential.signals import Clock, tolerance, unit

PAIRS = (
    ("auto", "auto"),
    ("auto", "auto"),
    ("phem56", "auto"),
    ("hem4", "auto"),
    ("hem5", "auto"),
    ("hedop5", "auto"),
    ("modified_bdf", "auto"),
    ("collocation", "auto"),
    ("dassl", "ggl"),
    ("dassl", "index2"),
    ("dassl", "projected_invariants"),
    ("dassl", "minimal_extension"),
    ("dassl", "overdetermined"),
    ("dassl", "fuehrer_leimkuhler"),
    ("dopri5", "projection"),
    ("dopri5", "state_space"),
    ("dopri5", "essential"),
)


def chain(rng: np.random.Generator) -> Case:
    """Point masses on rods, the first one hung up: n angles, 2 n coordinates, n constraints."""
    n = int(rng.integers(1, 4))
    mass, length = rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 1.5, n)
    damping, turns = rng.uniform(0.0, 0.3), int(rng.choice([0, 0, 1, 3])) * 2.0 * np.pi
    above = np.array([[np.sum(mass[max(i, j) :]) for j in range(n)] for i in range(n)])

    def acceleration(angle, rate):
        difference = angle[:, None] - angle[None, :]
        M = above * np.outer(length, length) * np.cos(difference)
        right = -above * np.outer(length, length) * np.sin(difference) @ rate**2
        right -= np.diag(above) * length * np.sin(angle)
        velocity = _positions(length, angle, rate)[1]
        drag = -damping * velocity
        cumulated = np.cumsum(drag.reshape(n, 2)[::-1], axis=0)[::-1]
        right += length * (np.cos(angle) * cumulated[:, 0] + np.sin(angle) * cumulated[:, 1])
        return np.linalg.solve(M, right)

    def rods(q):
        ends = q.reshape(n, 2)
        return ends - np.vstack([np.zeros((1, 2)), ends[:-1]])

    start = np.concatenate([rng.uniform(-1.2, 1.2, n) + turns, rng.normal(size=n)])
    return _against_angles(
        rng,
        f"chain of {n}",
        np.repeat(mass, 2),
        lambda q, v: np.repeat(mass, 2) * np.tile([0.0, -1.0], n) - damping * v,
        lambda q: 0.5 * (np.sum(rods(q) ** 2, axis=1) - length**2),
        n,
        lambda x: np.concatenate([x[n:], acceleration(x[:n], x[n:])]),
        lambda x: np.concatenate(_positions(length, x[:n], x[n:])),
        start,
    )


def crank_slider(rng: np.random.Generator) -> Case:
    """A crank and a rod with masses at their ends, the second one on a line: one angle, four coordinates."""
    crank, rod = rng.uniform(0.3, 0.8), rng.uniform(1.2, 2.5)
    mass = rng.uniform(0.5, 2.0, 2)
    spring, offset = rng.uniform(0.0, 2.0), rng.uniform(-0.2, 0.2)

    def position(angle):
        foot = np.sqrt(rod**2 - (crank * np.sin(angle) - offset) ** 2)
        return np.array([crank * np.cos(angle), crank * np.sin(angle), crank * np.cos(angle) + foot])

    def slope(angle):
        return np.array([z.imag for z in position(angle + 1e-30j)]) / 1e-30

    def curvature(angle):
        h = 1e-3
        return (8.0 * (slope(angle + h) - slope(angle - h)) - slope(angle + 2 * h) + slope(angle - 2 * h)) / (12.0 * h)

    weights = np.array([mass[0], mass[0], mass[1]])
    rest = crank + rod

    def rate(x):
        angle, omega = x
        along, bend, where = slope(angle), curvature(angle), position(angle)
        force = np.array([0.0, -mass[0], -spring * (where[2] - rest)])
        return np.array([omega, along @ (force - weights * bend * omega**2) / (along @ (weights * along))])

    def observed(x):
        angle, omega = x
        where, along = position(angle), slope(angle) * omega
        return np.concatenate([where, [offset], along, [0.0]])

    return _against_angles(
        rng,
        "crank-slider",
        np.append(weights, mass[1]),
        lambda q, v: np.array([0.0, -mass[0], -spring * (q[2] - rest), -mass[1]]),
        lambda q: np.array(
            [
                0.5 * (q[0] ** 2 + q[1] ** 2 - crank**2),
                0.5 * ((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - rod**2),
                q[3] - offset,
            ]
        ),
        3,
        rate,
        observed,
        np.array([rng.uniform(-3.0, 3.0), rng.normal()]),
    )


def _positions(length, angle, rate):
    """Positions and velocities of the ends of the rods, x and y in turn."""
    along = np.column_stack([length * np.sin(angle), -length * np.cos(angle)])
    across = np.column_stack([length * np.cos(angle), length * np.sin(angle)]) * rate[:, None]
    return np.cumsum(along, axis=0).ravel(), np.cumsum(across, axis=0).ravel()


def _against_angles(rng, name, mass, force, constraint, n_constraints, rate, observed, start) -> Case:
    """The linkage in units of mass, length and time, with its motion from the equations in angles."""
    n = mass.size
    clock, share = Clock(rng, rng.uniform(0.5, 4.0)), tolerance(rng)
    kilogram, metre, second = unit(rng, 6.0), unit(rng, 6.0), clock.second
    rows = np.array([unit(rng, 3.0) for _ in range(n_constraints)])
    method, formulation = PAIRS[int(rng.integers(len(PAIRS)))]
    s = clock.s(clock.t_eval)

    def motion(x0):
        span = (0.0, clock.s(clock.t_span[1]))
        found = solve_ivp(lambda _, x: rate(x), span, x0, method="DOP853", t_eval=s, rtol=1e-12, atol=1e-12)
        return np.array([observed(x) for x in found.y.T]).T

    units = np.concatenate([np.full(n, metre), np.full(n, metre / abs(second))])
    signs = np.concatenate([np.ones(n), np.full(n, np.sign(second))])
    exact = motion(start)
    shifts = [1e-6 * np.sign(rng.normal(size=start.size)) for _ in range(3)]
    condition = 1.0 + max(np.max(np.abs(motion(start + shift) - exact)) / 1e-6 for shift in shifts)
    values = (units * signs)[:, None] * exact
    first = units * signs * observed(start)
    problem = daedal.MechanicalSystem(
        kilogram * mass,
        lambda t, q, v: kilogram * metre / second**2 * force(q / metre, v * second / metre),
        lambda t, q: rows * constraint(q / metre),
        n_q=n,
        n_constraints=n_constraints,
    )
    return Case(
        label=f"{name}, {method}, {formulation}",
        problem=problem,
        t_span=clock.t_span,
        initial=(first[:n], first[n:]),
        options={"rtol": share, "atol": share * units, "method": method, "formulation": formulation},
        t_eval=clock.t_eval,
        exact=lambda t: values,
        observed=lambda sol: np.vstack([sol.q, sol.v]),
        sizes=units,
        share=share,
        condition=condition,
    )
