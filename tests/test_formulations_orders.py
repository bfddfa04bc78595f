"""Orders of convergence of every formulation in positions, velocities and multipliers, with constant steps.

Sources: Ascher and Petzold, Stability of computational methods for constrained dynamics systems, section 2 (the forms
and their backward Euler steps); Brenan, Campbell and Petzold, theorems 3.1.1 and 3.2.1 to 3.2.3, section 5.4.4;
Wijckmans section 6.1.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import daedal
from daedal import DASSL, DOPRI5, RK4, library
from daedal.formulations import (
    GGL,
    Baumgarte,
    CoordinateProjection,
    EssentialODE,
    FuehrerLeimkuhler,
    Hanke,
    Index1,
    Index2,
    Index3,
    Knorrenschild,
    MinimalExtension,
    Overdetermined,
    ProjectedInvariants,
    StateSpace,
)

# --- problems with solutions from minimal coordinates -----------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A system, its end time, and exact(t) -> (q, v, lam) that no formulation was used for."""

    system: Any
    t1: float
    exact: Any

    @property
    def initial(self):
        return self.exact(0.0)[:2]


def integrated(rate, start, t1):
    return solve_ivp(rate, (0.0, t1), start, method="DOP853", rtol=1e-13, atol=1e-14, dense_output=True).sol


def chain_force(t, q, v):
    return np.array([0.0, -9.81, 0.0, -9.81 * 2.0])


def chain_rods(t, q):
    g = np.empty(2, q.dtype)
    g[0] = 0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)
    g[1] = 0.5 * ((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 1.0)
    return g


@cache
def chain():
    """Two masses, 1 and 2, on rods of length 1: M is not a multiple of the unit matrix, so that B and G^T differ."""

    def rate(t, u):
        a, b, w, z = u
        c, s = math.cos(a - b), math.sin(a - b)
        matrix = [[3.0, 2.0 * c], [2.0 * c, 2.0]]
        load = [-2.0 * s * z * z - 3.0 * 9.81 * math.sin(a), 2.0 * s * w * w - 2.0 * 9.81 * math.sin(b)]
        return [w, z, *np.linalg.solve(matrix, load)]

    angles = integrated(rate, [0.7, 1.2, 0.5, -1.0], 0.5)

    def exact(t):
        u = angles(t)
        a, b, w, z = u
        slope = rate(t, u)[2:]
        along = [np.array([math.sin(x), -math.cos(x)]) for x in (a, b)]
        across = [np.array([math.cos(x), math.sin(x)]) for x in (a, b)]
        v = [w * across[0], w * across[0] + z * across[1]]
        a1 = slope[0] * across[0] - w * w * along[0]
        a2 = a1 + slope[1] * across[1] - z * z * along[1]
        weight = np.array([0.0, -9.81])
        lam2 = 2.0 * (weight - a2) @ along[1]
        lam1 = (weight - a1) @ along[0] + lam2 * along[1] @ along[0]
        return np.concatenate([along[0], along[0] + along[1]]), np.concatenate(v), np.array([lam1, lam2])

    system = daedal.MechanicalSystem([1.0, 1.0, 2.0, 2.0], chain_force, chain_rods, n_q=4, n_constraints=2)
    return Case(system.compiled(), 0.5, exact)


def driven_force(t, q, v):
    return np.array([-0.4 * v[0], -2.0 * 9.81 - 0.4 * v[1]])


def driven_rod(t, q):
    g = np.empty(1, q.dtype)
    g[0] = (q[0] - 0.3 * np.sin(3.0 * t)) ** 2 + q[1] ** 2 - 1.0
    return g


@cache
def driven():
    """A mass of 2 with drag on a rod whose pivot moves along 0.3 sin 3t: a constraint that depends on time."""

    def pivot(t):
        return 0.3 * math.sin(3.0 * t), 0.9 * math.cos(3.0 * t), -2.7 * math.sin(3.0 * t)

    def rate(t, u):
        a, w = u
        _, x1, x2 = pivot(t)
        s, c = math.sin(a), math.cos(a)
        return [w, -9.81 * s - x2 * c - 0.2 * (w + x1 * c)]

    angle = integrated(rate, [1.0, -0.5], 0.5)

    def exact(t):
        a, w = angle(t)
        x0, x1, x2 = pivot(t)
        s, c, slope = math.sin(a), math.cos(a), rate(t, (a, w))[1]
        v = np.array([x1 + w * c, w * s])
        acceleration = np.array([x2 + slope * c - w * w * s, slope * s + w * w * c])
        free = np.array([-0.4 * v[0], -2.0 * 9.81 - 0.4 * v[1]]) - 2.0 * acceleration
        return np.array([x0 + s, -c]), v, np.array([0.5 * (free @ np.array([s, -c]))])

    return Case(daedal.MechanicalSystem(2.0, driven_force, driven_rod, n_q=2, n_constraints=1).compiled(), 0.5, exact)


@cache
def edge():
    """The knife edge on an incline: one velocity constraint, closed solution."""
    model = library.knife_edge(compiled=True)

    def exact(t):
        y = model.extra["exact"](t)
        return y[:3], y[3:], model.extra["exact_lam"](t)

    return Case(model.problem, 1.0, exact)


@cache
def bowl():
    """The knife edge on a paraboloid: a position constraint and a velocity constraint."""
    model = library.knife_edge_on_paraboloid(compiled=True)
    system = model.problem

    def rate(t, y):
        return np.concatenate([y[4:], system.at(t, y[:4], y[4:]).acceleration])

    run = integrated(rate, np.concatenate(model.initial), 1.0)
    np.testing.assert_allclose(run(1.0), model.reference.y, rtol=1e-11)

    def exact(t):
        y = run(t)
        return y[:4], y[4:], system.at(t, y[:4], y[4:]).multipliers

    return Case(system, 1.0, exact)


CASES = {"chain": chain, "driven": driven, "edge": edge, "bowl": bowl}
HOLONOMIC = ("chain", "driven")

# --- formulations, and which unknowns follow (q, v) -----------------------------------------------------------------

IMPLICIT = {
    "index3": (Index3(), "lam"),
    "index2": (Index2(), "lam"),
    "index2-gamma": (Index2(gamma=1.0), "lam"),
    "ggl-GT": (GGL(), "lam mu"),
    "ggl-B": (GGL("B"), "lam mu"),
    "pi2-CT": (ProjectedInvariants(), "tau mu"),
    "pi2-B": (ProjectedInvariants(projection="B"), "tau mu"),
    "pi2-unit": (ProjectedInvariants(projection="unit"), "tau mu"),
    "pi1-CT": (ProjectedInvariants(1), "top mu"),
    "pi1-B": (ProjectedInvariants(1, "B"), "top mu"),
    "pi1-unit": (ProjectedInvariants(1, "unit"), "top mu"),
    "fuehrer-leimkuhler": (FuehrerLeimkuhler(), "tau mu"),
    "overdetermined": (Overdetermined(), "tau mu"),
    "overdetermined-R": (Overdetermined("essential"), "lam mu"),
    "index1": (Index1(), ""),
    "baumgarte": (Baumgarte(gamma=1.0), ""),
    "baumgarte-6": (Baumgarte(alpha=6.0, beta=6.0), ""),
    "projection-M": (CoordinateProjection(), ""),
    "projection-I": (CoordinateProjection("I"), ""),
    "minimal-extension": (MinimalExtension(), None),
    "state-space-qr": (StateSpace(), None),
    "state-space-lu": (StateSpace("lu"), None),
    "state-space-svd": (StateSpace("svd"), None),
    "essential": (EssentialODE(), None),
    "ggl-derivative": (GGL(multipliers="derivative"), None),
    "index2-derivative": (Index2(multipliers="derivative"), None),
    "fl-derivative": (FuehrerLeimkuhler(multipliers="derivative"), None),
}
ORDINARY = [
    name
    for name in IMPLICIT
    if name in ("index1", "baumgarte", "baumgarte-6", "projection-M", "projection-I", "essential")
    or name.startswith("state-space")
]
STEPS = {1: 100, 2: 100, 3: 50, 4: 50}


def unknowns(case, layout):
    """The exact unknowns of a formulation, as starting values; None lets the method find them."""
    if layout is None:
        return None
    n_g, n_v = case.system.n_constraints, case.system.n_velocity_constraints
    zeros = {"mu": n_g, "tau": n_g + n_v, "top": n_v}

    def values(t):
        q, v, lam = case.exact(t)
        parts = [lam if name == "lam" else np.zeros(zeros[name]) for name in layout.split()]
        return np.concatenate([q, v, *parts])

    return values


@cache
def errors(case_name, name, method, count):
    """Largest errors of q, v, lam over the last half; of the unknowns themselves as well, where they are (q, v, lam)."""
    case, (form, layout) = CASES[case_name](), IMPLICIT[name]
    if method in ("RK4", "DOPRI5"):
        chosen = {"RK4": RK4(), "DOPRI5": DOPRI5()}[method]
    else:
        k = int(method[3:])
        chosen = DASSL(max_order=k, starting_values=unknowns(case, layout) if k > 1 else None)
    sol = daedal.solve(
        case.system, (0.0, case.t1), case.initial, formulation=form, method=chosen, fixed_step=case.t1 / count
    )
    assert sol.t.size == count + 1
    late = np.arange(count // 2, count + 1)
    exact = [np.array(part).T for part in zip(*[case.exact(sol.t[i]) for i in late])]
    found = {"q": sol.q, "v": sol.v, "lam": sol.lam}
    result = {key: np.max(np.abs(found[key][:, late] - e)) for key, e in zip("q v lam".split(), exact)}
    if layout is not None:
        n = case.system.n_q
        result["raw q"] = np.max(np.abs(sol.raw.y[:n, late] - exact[0]))
        result["raw v"] = np.max(np.abs(sol.raw.y[n : 2 * n, late] - exact[1]))
        if layout.startswith("lam"):
            result["raw lam"] = np.max(np.abs(sol.raw.y[2 * n : 2 * n + case.system.n_lambda, late] - exact[2]))
    return result


def orders(case, name, method, count):
    coarse, fine = errors(case, name, method, count), errors(case, name, method, 2 * count)
    return {key: math.log2(coarse[key] / fine[key]) for key in coarse if fine[key] > 1e-12}


def applies(case, name):
    """Positions of a system with velocity constraints alone follow from the velocities; some forms need others."""
    return case in HOLONOMIC or name not in ("pi2-unit", "pi1-unit")


PAIRS = [(case, name) for case in CASES for name in IMPLICIT if applies(case, name)]


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize(("case", "name"), PAIRS, ids=[f"{case}-{name}" for case, name in PAIRS])
def test_bdf_has_its_order_in_every_variable(case, name, k):
    found = orders(case, name, f"BDF{k}", STEPS[k])
    assert found and all(k - 0.3 < p < k + 1.0 for p in found.values()), found


@pytest.mark.parametrize(("method", "order", "count"), [("RK4", 4, 20), ("DOPRI5", 5, 16)])
@pytest.mark.parametrize("name", ORDINARY)
@pytest.mark.parametrize("case", CASES)
def test_explicit_methods_have_their_order(case, name, method, order, count):
    found = orders(case, name, method, count)
    assert found and all(order - 0.35 < p < order + 1.8 for p in found.values()), found
