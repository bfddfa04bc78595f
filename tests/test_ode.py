"""Plain differential equations y' = f(t, y): explicit methods, the choice that notices stiffness, the whole house."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal import ODE, InvalidProblemError, library
from daedal.methods import DOPRI5
from plain_problems import (
    ARENSTORF_0,
    ARENSTORF_PERIOD,
    HIRES_0,
    ROBERTSON_40,
    VAN_DER_POL_2000,
    arenstorf,
    heat,
    hires,
    lorenz,
    pleiades,
    pleiades_start,
    robertson,
    van_der_pol,
)

EXPLICIT, STIFF = ("DOPRI5", "DOP853"), ("Rosenbrock", "Radau", "DASSL")

# --- problems with references -----------------------------------------------------------------------------------------


def test_lorenz_with_all_methods():
    problem = ODE(lorenz, 3)
    ends = [
        daedal.solve(problem, (0.0, 5.0), [1.0, 1.0, 1.0], method=method, rtol=1e-11, atol=1e-12).y[:, -1]
        for method in ("auto", "dopri5", "dop853", "radau")
    ]
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], rtol=2e-7)


@pytest.mark.parametrize("rtol", [1e-6, 1e-10])
def test_arenstorf_orbit_is_periodic(rtol):
    sol = daedal.solve(ODE(arenstorf, 4), (0.0, ARENSTORF_PERIOD), ARENSTORF_0, rtol=rtol, atol=rtol)
    assert sol.method.startswith(EXPLICIT)
    assert np.max(np.abs(sol.y[:2, -1] - ARENSTORF_0[:2])) < 3e4 * rtol  # errors grow a thousandfold near the moon


def test_pleiades():
    sol = daedal.solve(ODE(pleiades, 28), (0.0, 3.0), pleiades_start(), rtol=1e-10, atol=1e-10)
    assert sol.method == "DOP853, order 8"
    np.testing.assert_allclose(sol.y[:14, -1], library.get("pleiades").reference.y[:14], atol=1e-6)


def test_there_and_back_again():
    problem = ODE(arenstorf, 4)
    there = daedal.solve(problem, (0.0, 5.0), ARENSTORF_0, rtol=1e-12, atol=1e-12)
    back = daedal.solve(problem, (5.0, 0.0), there.y[:, -1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(back.y[:, -1], ARENSTORF_0, atol=1e-6)
    assert back.t[0] == 5.0 and back.t[-1] == 0.0


@pytest.mark.parametrize("compile", ["auto", "never"])
def test_van_der_pol_is_handed_over(compile):
    problem = ODE(van_der_pol, 2, params=1000.0)
    sol = daedal.solve(problem, (0.0, 2000.0), [2.0, 0.0], compile=compile)
    first, then = sol.method.split(", then ")
    assert first == "DOPRI5" and then in STIFF
    assert "the equations are stiff" in sol.message
    assert sol.stats.steps < 3000
    np.testing.assert_allclose(sol.y[:, -1], VAN_DER_POL_2000, rtol=1e-3)
    assert not daedal.solve(problem, (0.0, 20.0), [2.0, 0.0], params=1.0, compile=compile).method.count("then")


def test_robertson_and_hires():
    sol = daedal.solve(ODE(robertson, 3), (0.0, 40.0), [1.0, 0.0, 0.0], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(sol.y[:, -1], ROBERTSON_40, rtol=1e-6)
    assert sol.method.endswith(STIFF)
    model = library.get("hires")
    sol = daedal.solve(ODE(hires, 8), model.t_span, HIRES_0, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, rtol=1e-5)


@pytest.mark.parametrize(
    ("n", "structure", "compile"),
    [(100, {}, "auto"), (100, {"bandwidth": (1, 1)}, "never"), (1200, "sparsity", "auto")],
)
def test_heat_equation(n, structure, compile):
    f, start, rate = heat(n)
    if structure == "sparsity":
        import scipy.sparse as sp

        structure = {"sparsity": sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(n, n))}  # the diagonal is added
    sol = daedal.solve(ODE(f, n, **structure), (0.0, 0.1), start, rtol=1e-6, atol=1e-8, compile=compile)
    assert sol.method.endswith(STIFF) and sol.stats.steps < 200
    np.testing.assert_allclose(sol.y[:, -1], start * np.exp(-0.1 * rate), atol=1e-5)


def test_smooth_problems_are_not_handed_over():
    """A wave of 40 points: frequencies, and nothing that decays."""
    n = 40
    wave = ODE(lambda t, y: np.concatenate([y[n:], -(np.linspace(1.0, 20.0, n) ** 2) * y[:n]]), 2 * n)
    sol = daedal.solve(wave, (0.0, 20.0), np.ones(2 * n), rtol=1e-5)
    assert sol.method == "DOPRI5, order 5"


# --- the call ---------------------------------------------------------------------------------------------------------

OSCILLATOR = ODE(lambda t, y, p: [y[1], -(p["w"] ** 2) * y[0]], 2, params={"w": 2.0}, names=["x", "v"])


@given(rate=st.floats(-3.0, 3.0), y0=st.floats(-1e3, 1e3), t1=st.floats(0.1, 2.0), back=st.booleans())
@settings(max_examples=25, deadline=None)
def test_linear_equations_in_both_directions(rate, y0, t1, back):
    span = (t1, 0.0) if back else (0.0, t1)
    sol = daedal.solve(DECAY, span, [y0], params=[rate], rtol=1e-9, atol=1e-9)
    expected = y0 * np.exp(rate * (span[1] - span[0]))
    assert abs(sol.y[0, -1] - expected) <= 1e-6 * (abs(expected) + abs(y0) + 1e-3)


DECAY = ODE(lambda t, y, p: [p[0] * y[0]], 1, params=[1.0])


def test_initial_values_are_y0_alone_a_pair_or_by_name():
    runs = [
        daedal.solve(OSCILLATOR, (0.0, 1.0), initial)
        for initial in ([1.0, 0.5], np.array([1.0, 0.5]), ([1.0, 0.5], None), {"x": 1.0, "v": 0.5}, (1.0, 0.5))
    ]
    for run in runs[1:]:
        assert np.array_equal(run.y, runs[0].y)
    given = daedal.solve(OSCILLATOR, (0.0, 1.0), ([1.0, 0.5], [0.5, -4.0]))
    np.testing.assert_allclose(given.y[:, -1], runs[0].y[:, -1], rtol=1e-9)
    with pytest.raises(daedal.InconsistentInitialError):
        daedal.solve(OSCILLATOR, (0.0, 1.0), ([1.0, 0.5], [0.5, 4.0]))
    _, yp0 = daedal.consistent_initial(OSCILLATOR, 0.0, [1.0, 0.5])
    np.testing.assert_allclose(yp0, [0.5, -4.0])


def test_prepared_solvers_parameters_and_pickles():
    solver = daedal.prepare(OSCILLATOR_BY_NAME, rtol=1e-8)
    other = pickle.loads(pickle.dumps(solver))
    for w in (2.0, 3.0):
        sol = solver.solve((0.0, 1.0), [1.0, 0.0], params={"w": w})
        assert abs(sol["x"][-1] - np.cos(w)) < 1e-7
        assert np.array_equal(other.solve((0.0, 1.0), [1.0, 0.0], params={"w": w}).y, sol.y)
        assert np.array_equal(
            daedal.solve(OSCILLATOR_BY_NAME.with_params({"w": w}), (0.0, 1.0), [1.0, 0.0], rtol=1e-8).y, sol.y
        )


def oscillation(t, y, p):
    return [y[1], -(p["w"] ** 2) * y[0]]


OSCILLATOR_BY_NAME = ODE(oscillation, 2, params={"w": 2.0}, names=["x", "v"])


def test_constant_steps():
    sol = daedal.solve(OSCILLATOR, (0.0, 1.0), [1.0, 0.0], fixed_step=0.05)
    assert sol.method == "DOPRI5, order 5" and sol.stats.steps == 20
    assert abs(sol.y[0, -1] - np.cos(2.0)) < 1e-6
    assert daedal.solve(OSCILLATOR, (0.0, 1.0), [1.0, 0.0], fixed_step=0.05, method="rk4").stats.steps == 20


def test_compiled_functions():
    def f(t, y, p):
        return np.array([y[1], -p[0] * y[0]])

    problem = ODE(f, 2, params=[4.0])
    for compiled in (problem.compiled("numba"), problem.compiled(backend="trace")):
        for method in ("dopri5", "dassl"):
            sol = daedal.solve(compiled, (0.0, 1.0), [1.0, 0.0], method=method, rtol=1e-8, compile="never")
            assert abs(sol.y[0, -1] - np.cos(2.0)) < 1e-5
    assert "traced" in problem.functions["f"]


def test_given_jacobians_in_all_forms():
    n = 50
    f, start, rate = heat(n)
    full = np.diag(np.full(n, -2.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    full *= (n + 1) ** 2
    band = np.zeros((3, n))
    band[0, 1:], band[1], band[2, :-1] = full[0, 1], full[0, 0], full[1, 0]
    from scipy.sparse import csc_array

    forms = [
        {"jacobian": lambda t, y: full},
        {"jacobian": lambda t, y: band, "bandwidth": (1, 1)},
        {"jacobian": lambda t, y: csc_array(full), "sparsity": csc_array(full)},
    ]
    for structure in forms:
        for compile in ("auto", "never"):
            sol = daedal.solve(ODE(f, n, **structure), (0.0, 0.1), start, method="dassl", compile=compile)
            np.testing.assert_allclose(sol.y[:, -1], start * np.exp(-0.1 * rate), atol=1e-5)
            assert sol.stats.jacobian_residual_evaluations == 0


def test_a_wrong_jacobian_is_noticed():
    problem = ODE(
        lambda t, y: [-y[0] + y[1], -2.0 * y[1]], 2, jacobian=lambda t, y: np.array([[1.0, 1.0], [0.0, -2.0]])
    )
    with pytest.warns(Warning, match="jacobian is not the derivative"):
        daedal.solve(problem, (0.0, 1.0), [1.0, 1.0], method="dassl")


# --- events, switches, modes ------------------------------------------------------------------------------------------

BALL = ODE(lambda t, y: [y[1], -9.81], 2, names=["height", "speed"])


@pytest.mark.parametrize("method", ["auto", "dopri5", "dop853", "radau"])
def test_events(method):
    ground = daedal.Event(lambda t, y: y[0], terminal=True, direction=-1, name="ground")
    sol = daedal.solve(BALL, (0.0, 10.0), [1.0, 0.0], events=ground, method=method)
    assert sol.status == "event"
    assert abs(sol.t[-1] - np.sqrt(2.0 / 9.81)) < 1e-9


def test_events_are_counted_across_the_hand_over():
    """The third zero of x ends the run, behind the change of the method."""
    zero = daedal.Event(lambda t, y: y[0], terminal=3)
    sol = daedal.solve(ODE(van_der_pol, 2, params=100.0), (0.0, 1000.0), [2.0, 0.0], events=zero)
    assert sol.status == "event" and len(sol.events) == 3 and ", then " in sol.method


def test_hidden_switches_are_followed():
    problem = ODE(lambda t, y: [-np.sign(y[0] - 0.5) - 0.2], 1)  # slides along y = 0.5
    sol = daedal.solve(problem, (0.0, 2.0), [1.0])
    assert [event.kind for event in sol.events] == ["slides"]
    assert abs(sol.y[0, -1] - 0.5) < 1e-12
    kink = daedal.solve(ODE(lambda t, y: [-1.0 if y[0] > 0.5 else -0.25], 1), (0.0, 1.5), [1.0])
    assert abs(kink.y[0, -1] - 0.25) < 1e-12 and kink.stats.rejected == 0


def test_break_points_and_modes():
    pulse = ODE(lambda t, y: [1.0 if t >= 1.0 else 0.0], 1)
    assert abs(daedal.solve(pulse, (0.0, 2.0), [0.0], breakpoints=[1.0]).y[0, -1] - 1.0) < 1e-12
    bounce = daedal.hybrid.Transition(
        "fall", "fall", lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.0, -0.5 * y[1]]
    )
    sol = daedal.solve(daedal.hybrid.HybridProblem({"fall": BALL}, [bounce]), (0.0, 0.8), ("fall", [1.0, 0.0]))
    fall = np.sqrt(2.0 / 9.81)
    assert abs(sol.events[0].t - fall) < 1e-9
    rest = 0.8 - fall
    assert abs(sol.y[0, -1] - (0.5 * 9.81 * fall * rest - 0.5 * 9.81 * rest**2)) < 1e-6


def test_analysis():
    analysis = daedal.analyse(BALL)
    assert (analysis.index, analysis.degrees_of_freedom) == (0, 2)
    assert daedal.reduce_index(BALL).problem.n == 2


def test_derivatives_and_many_runs():
    """x = exp(-k t): with respect to k, by variational equations and by the adjoint."""
    decay = ODE(lambda t, y, p: [-p["k"] * y[0]], 1, params={"k": 2.0}, names=["x"])
    sol = daedal.solve(decay, (0.0, 1.0), [1.0], sensitivities=["k"], rtol=1e-8)
    assert abs(sol.sensitivity("k")[0, -1] + np.exp(-2.0)) < 1e-7
    found = daedal.gradient(decay, (0.0, 1.0), [1.0], final_cost=lambda t, y, p: y[0])
    np.testing.assert_allclose(found.gradient, [-np.exp(-2.0)], atol=1e-6)
    for starts in ([[1.0], [2.0], [3.0]], np.array([[1.0], [2.0], [3.0]])):
        many = daedal.solve_many(decay, (0.0, 1.0), starts, rtol=1e-8)
        np.testing.assert_allclose(many.final.y[:, 0], np.exp(-2.0) * np.array([1.0, 2.0, 3.0]), rtol=1e-6)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ODE(None, 2), "f must be a function"),
        (lambda: ODE(lambda t: [0.0], 1), r"called as f\(t, y\); params is not given"),
        (lambda: ODE(lambda t, y: [0.0], 1, params=3.0), r"called as f\(t, y, p\); params is given"),
        (lambda: ODE(lambda t, y: [0.0], 0), "n must be an integer of at least 1"),
        (lambda: ODE(lambda t, y: [0.0], 1, names=["a", "b"]), "names has 2 entries"),
        (lambda: ODE(lambda t, y: [0.0], 1, jacobian=lambda t: 0.0), r"called as jacobian\(t, y\)"),
        (lambda: ODE(lambda t, y: [0.0] * 3, 3, bandwidth=(1, 1), sparsity=np.eye(3)), "not both"),
        (lambda: ODE(lambda t, y: [0.0] * 3, 3, sparsity=np.eye(2)), "sparsity has shape"),
    ],
)
def test_wrong_statements_are_refused(make, message):
    with pytest.raises(InvalidProblemError, match=message):
        make()


@pytest.mark.parametrize("method", ["auto", "dop853", "dassl"])
@pytest.mark.parametrize(
    ("f", "y0", "message"),
    [
        (lambda t, y: [y[0]], [1.0, 2.0], r"f returned an array of shape \(1,\); expected \(2,\)"),
        (lambda t, y: None, [1.0, 2.0], "f returned None"),
        (lambda t, y: [np.nan, y[0]], [1.0, 2.0], "not finite at the initial values"),
        (lambda t, y: [y[1], y[0]], [1.0, np.nan], r"y0 is not finite: y0\[1\] = nan"),
        (lambda t, y: [y[1], y[0]], [1.0], r"y0 has shape \(1,\); expected \(2,\)"),
    ],
)
def test_wrong_values_are_refused(f, y0, message, method):
    with pytest.raises(InvalidProblemError, match=message):
        daedal.solve(ODE(f, 2), (0.0, 1.0), y0, method=method)


def test_explicit_methods_want_an_ode():
    implicit = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1)
    with pytest.raises(InvalidProblemError, match="define the problem as an ODE"):
        daedal.solve(implicit, (0.0, 1.0), ([1.0], None), method="dop853")


def test_a_run_that_is_to_stop_where_it_is_stiff():
    with pytest.raises(daedal.IntegrationError, match="the equations are stiff there") as error:
        daedal.solve(ODE(van_der_pol, 2, params=1e3), (0.0, 2.0), [2.0, 0.0], method=DOPRI5(stop_when_stiff=True))
    assert error.value.solution.t[-1] > 0.0


def test_solutions_that_end_in_finite_time():
    with pytest.raises(daedal.IntegrationError, match="singularity") as error:
        daedal.solve(ODE(lambda t, y: [y[0] ** 2], 1), (0.0, 2.0), [1.0])
    assert abs(error.value.solution.t[-1] - 1.0) < 1e-3


def test_exceptions_come_through_unchanged():
    def f(t, y):
        if t > 0.5:
            raise KeyError("mine")
        return [1.0]

    with pytest.raises(KeyError, match="mine") as error:
        daedal.solve(ODE(f, 1), (0.0, 1.0), [0.0])
    assert error.value.solution.t[-1] <= 0.5


def test_points_that_cannot_be_evaluated_shorten_the_step():
    def f(t, y):
        if y[0] < 0.0:
            raise daedal.Unevaluable("negative")
        return [-np.sqrt(y[0])]

    sol = daedal.solve(ODE(f, 1), (0.0, 1.9), [1.0], first_step=1.9)
    assert abs(sol.y[0, -1] - 0.0025) < 1e-5
