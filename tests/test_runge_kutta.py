"""Explicit Runge-Kutta methods: their coefficients, constant steps, step control, dense output and refusals.

Source: Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, sections II.1 to II.6.
"""

import math
from itertools import pairwise

import numpy as np
import pytest

import daedal
from daedal import Event, InvalidProblemError, library
from daedal.mechanics.formulations import GGL, Baumgarte, CoordinateProjection, Index1, StateSpace
from daedal.methods import DASSL, DOPRI5, RK4
from daedal.methods.explicit.runge_kutta import _DOPRI5 as DORMAND_PRINCE
from daedal.methods.explicit.runge_kutta import _RK4 as CLASSICAL

# --- coefficients -------------------------------------------------------------------------------------------------


def trees(a, c):
    """Elementary weights Phi and densities gamma of the rooted trees up to order 5 (HNW table II.2.2), by order."""
    e = np.ones_like(c)
    ac, ac2, aac = a @ c, a @ c**2, a @ (a @ c)
    return {
        1: [(e, 1)],
        2: [(c, 2)],
        3: [(c**2, 3), (ac, 6)],
        4: [(c**3, 4), (c * ac, 8), (ac2, 12), (aac, 24)],
        5: [
            (c**4, 5),
            (c**2 * ac, 10),
            (ac**2, 20),
            (c * ac2, 15),
            (c * aac, 30),
            (a @ c**3, 20),
            (a @ (c * ac), 40),
            (a @ ac2, 60),
            (a @ aac, 120),
        ],
    }


def defect(weights, tableau, order, theta=1.0):
    """Largest violation of the conditions of one order, for the value at theta h."""
    arrays = tableau.arrays
    conditions = trees(arrays["a"], arrays["c"])[order]
    return max(abs(weights @ phi - theta**order / gamma) for phi, gamma in conditions)


METHODS = {"DOPRI5": (DORMAND_PRINCE, 5), "RK4": (CLASSICAL, 4)}


@pytest.mark.parametrize("name", METHODS)
def test_order_conditions(name):
    tableau, order = METHODS[name]
    arrays = tableau.arrays
    np.testing.assert_allclose(arrays["a"].sum(axis=1), arrays["c"], atol=1e-15)
    for p in range(1, order + 1):
        assert defect(np.array(tableau.b), tableau, p) < 1e-15
    if order < 5:
        assert defect(np.array(tableau.b), tableau, order + 1) > 1e-3
    # the last stage is the slope at the end of the step
    np.testing.assert_array_equal(arrays["a"][-1], np.array(tableau.b))
    assert arrays["c"][-1] == 1.0
    assert np.all(np.triu(arrays["a"]) == 0.0)


def test_the_embedded_method_has_order_4():
    arrays = DORMAND_PRINCE.arrays
    embedded = np.array(DORMAND_PRINCE.b) - arrays["e"]
    for p in range(1, 5):
        assert defect(embedded, DORMAND_PRINCE, p) < 1e-15
    assert defect(embedded, DORMAND_PRINCE, 5) > 1e-4
    np.testing.assert_allclose(embedded[0], 5179 / 57600, rtol=1e-14)


@pytest.mark.parametrize(("name", "order"), [("DOPRI5", 4), ("RK4", 3)])
def test_continuous_extensions(name, order):
    tableau = METHODS[name][0]
    np.testing.assert_allclose(tableau.inner(1.0), tableau.b, atol=1e-15)
    np.testing.assert_allclose(tableau.inner(0.0), 0.0, atol=1e-15)
    for theta in (0.25, 0.5, 0.75, 0.3):
        for p in range(1, order + 1):
            assert defect(tableau.inner(theta), tableau, p, theta) < 2e-15


# --- constant steps -----------------------------------------------------------------------------------------------


def oscillator(frequency=1.0, damping=0.0):
    """A free mass on a spring: a system without constraints."""
    return daedal.MechanicalSystem(1.0, lambda t, q, v: -(frequency**2) * q - damping * v, n_q=1)


@pytest.mark.parametrize(("method", "order"), [(RK4(), 4), (DOPRI5(), 5)], ids=["RK4", "DOPRI5"])
def test_order_without_constraints(method, order):
    errors = []
    for count in (10, 20, 40):
        sol = daedal.solve(
            oscillator(), (0.0, 2.0), ([1.0], [0.0]), formulation="index1", method=method, fixed_step=2.0 / count
        )
        assert sol.t.size == count + 1 and sol.t[-1] == 2.0
        np.testing.assert_allclose(sol.t, np.linspace(0.0, 2.0, count + 1), atol=1e-15)
        errors.append(np.hypot(sol.q[0, -1] - math.cos(2.0), sol.v[0, -1] + math.sin(2.0)))
    assert order - 0.3 < math.log2(errors[1] / errors[2]) < order + 0.6


def test_one_step_of_the_classical_method():
    sol = daedal.solve(oscillator(), (0.0, 0.5), ([1.0], [0.0]), formulation="index1", method="rk4", fixed_step=0.5)
    h = 0.5
    assert sol.q[0, -1] == pytest.approx(1.0 - h**2 / 2.0 + h**4 / 24.0, abs=1e-15)
    assert sol.v[0, -1] == pytest.approx(-h + h**3 / 6.0, abs=1e-15)


def test_constant_steps_back_in_time():
    there = daedal.solve(oscillator(), (0.0, 2.0), ([1.0], [0.0]), formulation="index1", method="rk4", fixed_step=0.01)
    end = (there.q[:, -1], there.v[:, -1])
    back = daedal.solve(oscillator(), (2.0, 0.0), end, formulation="index1", method="rk4", fixed_step=0.01)
    assert back.t[-1] == 0.0
    np.testing.assert_allclose(back.y[:, -1], [1.0, 0.0], atol=1e-9)


@pytest.mark.parametrize(
    ("gamma", "smallest", "largest"), [(1.0, 1e-10, 4e-10), (100.0, 2e-9, 8e-9), (270.0, 1e-6, 1e-3), (290.0, 1e2, 1e6)]
)
def test_large_baumgarte_parameters_are_unstable(gamma, smallest, largest):
    """Example 2, nu = 1, RK4 with h = 0.01: stable up to gamma h = 2.785 (printed 2.0e-10, 4.0e-9, 3.2e-5, 6.7e3)."""
    model = library.stability_example2(nu=1.0)
    sol = daedal.solve(
        model.problem, (0.0, 1.0), model.initial, formulation=Baumgarte(gamma=gamma), method=RK4(), fixed_step=0.01
    )
    error = np.max(np.abs(sol.raw.y[:, -1] - model.extra["exact"](1.0)[: sol.raw.y.shape[0]]))
    assert smallest < error < largest


def whirl():
    """The double pendulum of Ascher and Petzold's restarts: unit masses and rods, fast."""
    system = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: np.array([0.0, -9.81, 0.0, -9.81]),
        lambda t, q: np.array(
            [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0), 0.5 * ((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 1.0)]
        ),
        n_q=4,
        n_constraints=2,
    )
    a, b = 0.7, 1.2
    q = [math.sin(a), -math.cos(a), math.sin(a) + math.sin(b), -math.cos(a) - math.cos(b)]
    v = [3.0 * math.cos(a), 3.0 * math.sin(a)]
    return system, (np.array(q), np.array([*v, v[0] + 8.0 * math.cos(b), v[1] + 8.0 * math.sin(b)]))


def test_charts_must_be_changed_in_time():
    """200 steps of RK4 on [0, 2]: new charts early enough are accurate, late ones less so, one chart breaks down."""
    system, initial = whirl()
    reference = daedal.solve(system, (0.0, 2.0), initial, rtol=1e-11, atol=1e-12, dense_output=False)
    errors = {}
    for restart in (4.0, 10.0, 1e9):
        try:
            sol = daedal.solve(
                system, (0.0, 2.0), initial, formulation=StateSpace(restart=restart), method="rk4", fixed_step=0.01
            )
            errors[restart] = np.max(np.abs(sol.q[:, -1] - reference.q[:, -1]))
        except daedal.DaedalError:
            errors[restart] = math.inf
    assert errors[4.0] < 1e-3 < errors[1e9]
    assert errors[4.0] < errors[10.0]


# --- step control -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pendulum():
    return library.planar_pendulum(t1=10.0)


def run(model, **options):
    options = {"formulation": "projection", "method": "dopri5", "rtol": 1e-6, "atol": 1e-8} | options
    return daedal.solve(model.problem, model.t_span, model.initial, **options)


def test_errors_follow_the_tolerance(pendulum):
    exact = pendulum.extra["exact"](10.0)
    errors, steps = [], []
    for rtol in (1e-4, 1e-6, 1e-8, 1e-10):
        sol = run(pendulum, rtol=rtol, atol=rtol)
        errors.append(np.max(np.abs(sol.y[:, -1] - exact)))
        steps.append(sol.stats.steps)
    assert all(error < 100.0 * rtol for error, rtol in zip(errors, (1e-4, 1e-6, 1e-8, 1e-10)))
    assert all(fine < 0.1 * coarse for coarse, fine in pairwise(errors))
    # order 5: two digits cost a factor of 100^(1/5) = 2.5
    assert all(1.9 < fine / coarse < 3.2 for coarse, fine in pairwise(steps))


def test_six_evaluations_for_a_step_of_an_ode():
    """The last slope of a step is the first of the next."""
    sol = daedal.solve(oscillator(), (0.0, 20.0), ([1.0], [0.0]), formulation="index1", method="dopri5", rtol=1e-6)
    attempts = sol.stats.steps + sol.stats.rejected
    assert 6 * attempts <= sol.stats.residual_evaluations <= 6 * attempts + 3


def test_steps_respect_their_limits(pendulum):
    sol = run(pendulum, max_step=0.05, first_step=0.01)
    steps = np.diff(sol.t)
    assert steps[0] <= 0.01 * (1.0 + 1e-12)
    assert np.max(steps) <= 0.05 * (1.0 + 1e-12)
    with pytest.raises(daedal.IntegrationError) as caught:
        run(pendulum, max_step=0.01, max_steps=50)
    assert 0.4 < caught.value.solution.t[-1] <= 0.5 * (1.0 + 1e-12)


def test_nothing_is_evaluated_beyond_the_end():
    seen = []

    def force(t, q, v):
        seen.append(t)
        return -q

    daedal.solve(
        daedal.MechanicalSystem(1.0, force, n_q=1), (0.0, 1.0), ([1.0], [0.0]), formulation="index1", method="dopri5"
    )
    assert max(seen) <= 1.0


def test_dense_output_has_the_accuracy_of_the_steps(pendulum):
    times = np.linspace(0.0, 10.0, 301)
    exact = np.array([pendulum.extra["exact"](t) for t in times]).T
    for rtol in (1e-5, 1e-8):
        sol = run(pendulum, rtol=rtol, atol=rtol)
        at_steps = np.max(np.abs(sol.y - np.array([pendulum.extra["exact"](t) for t in sol.t]).T))
        state = sol(times)
        assert np.max(np.abs(np.vstack([state.q, state.v]) - exact)) < 3.0 * at_steps + 10.0 * rtol


def test_events_are_located(pendulum):
    """The pendulum passes the vertical after a quarter of its period, 7.4163."""
    sol = run(pendulum, rtol=1e-9, atol=1e-9, events=Event(lambda t, q, v: q[0], terminal=True, name="vertical"))
    assert sol.status == "event"
    assert sol.t[-1] == pytest.approx(7.416298709205487 / 4.0, abs=1e-7)
    assert sol.events[0].name == "vertical"


def test_points_that_cannot_be_evaluated_shorten_the_step():
    """sqrt(q) for q >= 0 only: the solution stays positive, trial steps may not."""
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [-v[0] * 50.0 * (1.0 if q[0] > 0.0 else math.nan)], n_q=1)
    sol = daedal.solve(
        system, (0.0, 1.0), ([0.021], [-1.0]), formulation="index1", method="dopri5", first_step=0.5, rtol=1e-6
    )
    assert sol.q[0, -1] == pytest.approx(0.021 - (1.0 - math.exp(-50.0)) / 50.0, abs=1e-6)


def test_exceptions_of_the_model_come_through():
    def force(t, q, v):
        if t > 0.5:
            raise ZeroDivisionError("too late")
        return -q

    with pytest.raises(ZeroDivisionError, match="too late"):
        daedal.solve(
            daedal.MechanicalSystem(1.0, force, n_q=1),
            (0.0, 1.0),
            ([1.0], [0.0]),
            formulation="index1",
            method="dopri5",
        )


# --- what goes together -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["ggl", "index2", "index3", "projected_invariants", "minimal_extension"])
@pytest.mark.parametrize("method", ["dopri5", "rk4"])
def test_explicit_methods_refuse_equations_with_constraints(form, method, pendulum):
    options = {"fixed_step": 0.1} if method == "rk4" else {}
    with pytest.raises(InvalidProblemError, match=r"explicit.*index1, baumgarte, projection"):
        run(pendulum, formulation=form, method=method, **options)


def test_rk4_needs_a_step(pendulum):
    with pytest.raises(InvalidProblemError, match="fixed_step"):
        run(pendulum, method="rk4")


def test_options_belong_to_their_method(pendulum):
    with pytest.raises(InvalidProblemError, match="max_order"):
        run(pendulum, max_order=3)
    with pytest.raises(InvalidProblemError, match=r"pass them to DOPRI5"):
        run(pendulum, method=DOPRI5(), stop_when_stiff=True)


def test_a_method_alone_chooses_its_formulation(pendulum):
    assert run(pendulum, formulation="auto", method="dopri5").formulation == "CoordinateProjection"
    assert run(pendulum, formulation="auto", method="dassl").formulation == "GGL"
    assert run(pendulum, formulation="baumgarte", method="auto").method == "DOPRI5"
    assert run(pendulum, formulation="ggl", method="auto").method == "DASSL"


def stiff_pendulum():
    """A pendulum with a strong damper along one direction."""
    model = library.planar_pendulum(t1=20.0)
    return model, model.problem.replaced(
        force=lambda t, q, v, p: np.array([0.0, -1.0]) - 2000.0 * (q[1] * v[0] - q[0] * v[1]) * np.array([q[1], -q[0]])
    )


def test_stiff_problems_are_handed_over():
    """The automatic choice begins with an explicit method and notices where that does not pay."""
    model, system = stiff_pendulum()
    sol = daedal.solve(system, (0.0, 20.0), model.initial, rtol=1e-5, atol=1e-7)
    assert sol.method.endswith(", then DASSL")
    explicit = daedal.solve(
        system, (0.0, 20.0), model.initial, formulation="projection", method="dopri5", rtol=1e-5, atol=1e-7
    )
    assert sol.stats.steps < 0.2 * explicit.stats.steps
    np.testing.assert_allclose(sol.y[:, -1], explicit.y[:, -1], atol=1e-4)
    assert np.all(np.diff(sol.t) > 0.0)
    middle = sol(10.0)
    np.testing.assert_allclose(middle.q, explicit(10.0).q, atol=1e-4)


def test_all_levels_of_projection_and_both_methods(pendulum):
    """Explicit steps with projection are as good as implicit ones at equal tolerance, and cheaper."""
    explicit = run(pendulum, formulation=CoordinateProjection(), method=DOPRI5(), rtol=1e-8, atol=1e-8)
    implicit = run(pendulum, formulation=GGL(), method=DASSL(), rtol=1e-8, atol=1e-8)
    plain = run(pendulum, formulation=Index1(), method=DOPRI5(), rtol=1e-8, atol=1e-8)
    exact = pendulum.extra["exact"](10.0)
    errors = [np.max(np.abs(sol.y[:, -1] - exact)) for sol in (explicit, implicit, plain)]
    assert errors[0] < 2.0 * min(errors[1:])
    assert explicit.stats.steps < 0.5 * implicit.stats.steps
