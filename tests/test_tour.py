"""A tour for the quick tier: every method and every formulation solves a small problem, to what it is good for."""

import numpy as np
import pytest

import daedal
from daedal import library
from daedal.mechanics.formulations import FORMULATIONS
from daedal.methods.base import registered
from daedal.methods.named_methods import method_class

pytestmark = pytest.mark.quick
END = 1.0
METHODS = (
    daedal.methods.Collocation,
    daedal.methods.DASSL,
    daedal.methods.Extrapolation,
    daedal.methods.HalfExplicit,
    daedal.methods.HEM3,
    daedal.methods.HEM4,
)
METHODS += (
    daedal.methods.HEM5,
    daedal.methods.PHEM56,
    daedal.methods.HEDOP5,
    daedal.methods.ImplicitRungeKutta,
    daedal.methods.MEXX,
    daedal.methods.ModifiedBDF,
)
METHODS += (
    daedal.methods.Radau,
    daedal.methods.Multistep,
    daedal.methods.OneLeg,
    daedal.methods.RATTLE,
    daedal.methods.SHAKE,
    daedal.methods.Rosenbrock,
)
METHODS += (daedal.methods.DOPRI5, daedal.methods.DOP853, daedal.methods.RK4)
NO_MECHANISMS = (daedal.methods.Extrapolation, daedal.methods.Rosenbrock)
STEPS = {"multistep": 1e-3, "one_leg": 1e-3, "rattle": 1e-3, "shake": 1e-3, "rk4": 1e-2}
"""Steps of methods that have no error control."""
LOW_ORDER = {"multistep": 1e-3, "one_leg": 1e-3, "rattle": 1e-5, "shake": 1e-4}
"""Errors that steps of this size leave; those of others are some multiples of the tolerance."""
REGULARISED = {"hanke": 1e-2, "knorrenschild": 1e-3, "loetstedt": 1e-3}
"""Formulations that solve a neighbouring problem, and how far that is away."""


def test_every_method_is_on_the_tour():
    assert method_class("none of them") is None  # all files of methods are loaded then
    assert {kind for kind in registered().values() if kind.__module__.startswith("daedal.")} == set(METHODS)


def options(method):
    return {"fixed_step": STEPS[method.name]} if method.name in STEPS else {"rtol": 1e-6, "atol": 1e-6}


def pendulum_at_end():
    """Position and velocity from the equation in the angle, by SciPy."""
    from scipy.integrate import solve_ivp

    model = library.planar_pendulum()
    (x, y), (vx, vy) = model.initial
    turn = [np.arctan2(x, -y), (vx * -y + vy * x) / (x * x + y * y)]
    gravity = -model.problem.force(0.0, np.zeros(2), np.zeros(2), model.problem.params)[1]
    run = solve_ivp(
        lambda t, u: [u[1], -gravity / np.hypot(x, y) * np.sin(u[0])], (0.0, END), turn, rtol=1e-11, atol=1e-12
    )
    (angle, rate), length = run.y[:, -1], np.hypot(x, y)
    along, across = np.array([np.sin(angle), -np.cos(angle)]), np.array([np.cos(angle), np.sin(angle)])
    return np.concatenate([length * along, length * rate * across])


@pytest.fixture(scope="module")
def end():
    return pendulum_at_end()


@pytest.mark.parametrize("method", [method for method in METHODS if method not in NO_MECHANISMS])
def test_a_pendulum_swings_with_every_method_for_mechanisms(method, end):
    model = library.planar_pendulum()
    sol = daedal.solve(model.problem, (0.0, END), model.initial, method=method(), **options(method))
    found = np.concatenate([sol.q[:, -1], sol.v[:, -1]])
    np.testing.assert_allclose(found, end, rtol=0.0, atol=LOW_ORDER.get(method.name, 1e-4))


@pytest.mark.parametrize("method", NO_MECHANISMS)
def test_a_semi_explicit_problem_is_solved_with_the_other_methods(method):
    problem = daedal.SemiExplicitDAE(lambda t, y, z: z - y, lambda t, y, z: z + y - 2.0 * np.cos(t), 1, 1)
    sol = daedal.solve(problem, (0.0, END), ([1.0], [1.0]), method=method(), **options(method))
    # y' = -2 y + 2 cos t
    y = 0.8 * np.cos(END) + 0.4 * np.sin(END) + 0.2 * np.exp(-2.0 * END)
    np.testing.assert_allclose(sol.y[:, -1], [y, 2.0 * np.cos(END) - y], atol=1e-4)


@pytest.mark.parametrize("formulation", FORMULATIONS.values(), ids=FORMULATIONS)
def test_a_pendulum_swings_in_every_formulation(formulation, end):
    model = library.planar_pendulum()
    sol = daedal.solve(model.problem, (0.0, END), model.initial, formulation=formulation, rtol=1e-6, atol=1e-6)
    found = np.concatenate([sol.q[:, -1], sol.v[:, -1]])
    np.testing.assert_allclose(found, end, rtol=0.0, atol=REGULARISED.get(formulation.name, 1e-4))


# --- what functions return --------------------------------------------------------------------------------------------


def decay(t, y):
    return -y


def ball():
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1)
    return daedal.hybrid.UnilateralProblem(system, [daedal.hybrid.Contact(lambda t, q: q[0], restitution=0.5)])


def test_results_are_of_the_classes_that_are_public():
    ode, model, times = daedal.ODE(decay, 1), library.planar_pendulum(), np.linspace(0.1, 1.0, 8)
    implicit = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0}, names=["y"])
    data = {"t": times, "y": np.exp(-2.0 * times)}
    rubbed = daedal.hybrid.Friction(
        daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0], n_q=1), [1.0], mu=0.5, normal=9.81
    )
    semi = daedal.LinearDAE([[-1.0]], [[1.0]], [[1.0]], [[1.0]], [0.0], [0.0], n_x=1, n_y=1)
    sol = daedal.solve(semi, (0.0, 1.0), ([1.0], [-1.0]))
    line = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 1.0], 1)
    found = daedal.fit(implicit, data, ["k"], initial=([1.0], None), t_span=(0.0, 1.0))
    assert isinstance(found, daedal.sensitivity.Fit) and found.params["k"] == pytest.approx(2.0, rel=1e-4)
    assert isinstance(daedal.analyse(model.problem, (0.0, model.initial)), daedal.analysis.Analysis)
    assert isinstance(daedal.analysis.analyse_along(line, lambda t: [t], (0.0, 1.0)), daedal.analysis.StructureAlong)
    assert isinstance(daedal.analysis.analyse_conditioning(semi, sol), daedal.analysis.Conditioning)
    assert isinstance(daedal.prepare(ode), daedal.Solver)
    assert isinstance(daedal.solve_ivp(decay, (0.0, 1.0), [1.0]), daedal.solution.IVPResult)
    assert isinstance(daedal.solve_many(ode, (0.0, 1.0), [[1.0], [2.0]]), daedal.Ensemble)
    assert isinstance(rubbed.at(0.0, [0.0], [1.0]), daedal.hybrid.ContactState)
    [event] = daedal.solve(ode, (0.0, 1.0), [1.0], events=lambda t, y: y[0] - 0.5).events
    assert isinstance(event, daedal.solution.EventRecord) and event.t == pytest.approx(np.log(2.0), rel=1e-4)


def test_a_ball_bounces():
    problem = ball()
    assert isinstance(problem, daedal.hybrid.UnilateralProblem)
    assert isinstance(daedal.hybrid.Impact(problem.system, problem.contacts[0]), daedal.hybrid.Impact)
    sol = daedal.solve(problem, (0.0, 0.6), ([1.0], [0.0]))
    [bounce] = sol.events
    assert isinstance(bounce, daedal.hybrid.HybridEvent) and bounce.t == pytest.approx(np.sqrt(2.0 / 9.81), rel=1e-6)
