"""Implicit Runge-Kutta methods by their coefficients, with constant and variable steps.

Orders of all named tableaux on problems of index 1, 2 and 3 are in test_predicted_orders.py, events in
test_event_matrix.py, constrained problems in test_projected_runge_kutta.py.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array

import daedal
from daedal import ImplicitDAE, InvalidProblemError
from daedal.methods import ImplicitRungeKutta, RungeKuttaTableau
from daedal.methods.implicit_rk.implicit_stages import Stages

# --- constant steps ---------------------------------------------------------------------------------------------------


def p15(t, y, yp):
    """Brenan, Campbell and Petzold (4.3.33): x = exp(-t) + t sin t, y = sin t."""
    return [yp[0] - t * yp[1] + y[0] - (1.0 + t) * y[1], y[1] - np.sin(t)]


P15 = ImplicitDAE(p15, 2)


def p15_error(name, steps):
    sol = daedal.solve(
        P15, (0.0, 1.0), ([1.0, 0.0], [-1.0, 1.0]), method=ImplicitRungeKutta(name), fixed_step=1.0 / steps
    )
    return abs(sol.y[0, -1] - math.exp(-1.0) - math.sin(1.0))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("backward_euler", [6.708e-2, 3.403e-2, 1.714e-2]),
        ("sirk2", [5.572e-4, 1.390e-4, 3.471e-5]),
        ("dirk5", [2.590e-4, 6.276e-5, 1.547e-5]),
        ("sdirk4", [1.354e-4, 3.437e-5, 8.654e-6]),
        ("sirk3", [2.246e-5, 2.999e-6, 3.872e-7]),
        ("sirk3_collocation", [4.213e-5, 5.323e-6, 6.686e-7]),
        ("extrapolation_124", [2.943e-5, 4.068e-6, 5.354e-7]),
        ("lobatto_iiic3", [4.130e-7, 2.619e-8, 1.649e-9]),
        ("implicit_midpoint", [5.242e-4, 1.307e-4, 3.264e-5]),
        ("gauss2", [2.340e-4, 5.845e-5, 1.461e-5]),
        ("radau3", [2.309e-5, 2.924e-6, 3.679e-7]),
        ("radau5", [3.697e-9, 1.158e-10, 3.622e-12]),
    ],
)
def test_errors_on_the_fully_implicit_problem_are_those_computed_independently(name, expected):
    """With 10, 20 and 40 steps; the orders are those of Table 4.3.1 of the book."""
    np.testing.assert_allclose([p15_error(name, steps) for steps in (10, 20, 40)], expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "stiff", "nonstiff"),
    [
        ("gauss2", 2, 4),
        ("gauss3", 4, 6),
        ("radau5", 3, 5),
        ("radau_ia3", 3, 5),
        ("sdirk4", 1, 4),
        ("lobatto_iiic3", 2, 4),
    ],
)
def test_order_reduction_on_the_problem_of_prothero_and_robinson(name, stiff, nonstiff):
    """y' = lambda (y - cos t) - sin t (Hairer and Wanner II, IV.15).

    For stiff lambda a stage order q gives h^(q+1); methods with r = 1 sum that up to h^q, those with r = -1 do not, and
    methods whose last stage is the end have h^q / lambda.
    """
    for rate, order, counts in ((-1e6, stiff, (16, 32)), (-1.0, nonstiff, (4, 8))):
        problem = ImplicitDAE(lambda t, y, yp, rate=rate: [yp[0] - rate * (y[0] - np.cos(t)) + np.sin(t)], 1)
        errors = []
        for steps in counts:
            sol = daedal.solve(
                problem, (0.0, 1.5), ([1.0], [0.0]), method=ImplicitRungeKutta(name), fixed_step=1.5 / steps
            )
            errors.append(np.max(np.abs(sol.y[0] - np.cos(sol.t))))
        assert abs(math.log2(errors[0] / errors[1]) - order) < 0.35


NAMES = ["gauss2", "radau_ia3", "radau5", "lobatto_iiia3", "lobatto_iiic3", "sdirk4", "sirk3", "extrapolation_124"]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(NAMES), st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=6))
def test_polynomials_up_to_the_order_of_the_quadrature_are_integrated_exactly(name, slopes):
    analysis = daedal.analysis.analyse_method(name)
    slopes = slopes[: int(analysis.B)]
    solution = np.polynomial.Polynomial(slopes).integ()
    problem = ImplicitDAE(lambda t, y, yp: [yp[0] - sum(a * t**k for k, a in enumerate(slopes))], 1)
    sol = daedal.solve(problem, (0.0, 2.0), ([0.0], [slopes[0]]), method=ImplicitRungeKutta(name), fixed_step=0.5)
    np.testing.assert_allclose(sol.y[0], solution(sol.t), atol=1e-9 * max(1.0, *np.abs(slopes)))


@pytest.mark.parametrize("name", NAMES)
def test_combinations_of_equations_and_of_variables_change_nothing(name):
    """F -> P(t) F and y = Q u with a constant Q leave the solution of every step as it is."""
    q = np.array([[2.0, 1.0], [1.0, 1.0]])

    def mixed(t, u, up):
        f, g = p15(t, q @ u, q @ up)
        return [f + np.cos(t) * g, 3.0 * g - t * f]

    start = np.array([1.0, 0.0]), np.array([-1.0, 1.0])
    method = ImplicitRungeKutta(name)
    plain = daedal.solve(P15, (0.0, 1.0), start, method=method, fixed_step=0.1)
    other = daedal.solve(
        ImplicitDAE(mixed, 2), (0.0, 1.0), [np.linalg.solve(q, x) for x in start], method=method, fixed_step=0.1
    )
    np.testing.assert_allclose(q @ other.y, plain.y, atol=1e-12)


def test_a_step_forgets_the_algebraic_variables_where_r_is_zero():
    def step(name, z):
        sol = daedal.solve(P15, (0.0, 0.1), ([1.0, z], [-1.0, 1.0]), method=ImplicitRungeKutta(name), fixed_step=0.1)
        return sol.y[1, -1]

    for name in ("radau5", "lobatto_iiic3", "sdirk4", "sirk2", "sdirk2", "extrapolation_124"):
        assert step(name, 1e-3) == pytest.approx(step(name, 0.0), abs=1e-14)
    assert step("gauss2", 1e-3) - step("gauss2", 0.0) == pytest.approx(1e-3, rel=1e-9)  # r = 1
    assert step("implicit_midpoint", 1e-3) - step("implicit_midpoint", 0.0) == pytest.approx(-1e-3, rel=1e-9)


def test_methods_whose_last_stage_is_the_end_of_the_step_end_on_the_constraints():
    for name in ("radau5", "lobatto_iiia3", "lobatto_iiic3", "sdirk4", "alexander2", "sirk2", "trapezoidal"):
        sol = daedal.solve(P15, (0.0, 1.0), ([1.0, 0.0], [-1.0, 1.0]), method=ImplicitRungeKutta(name), fixed_step=0.1)
        np.testing.assert_allclose(sol.y[1], np.sin(sol.t), atol=1e-14)


@pytest.mark.parametrize("name", ["gauss2", "radau5", "lobatto_iiia3", "sdirk4", "extrapolation_124"])
def test_structured_matrices_give_what_dense_ones_give(name):
    """A chain with an algebraic end; banded and sparse, the latter with and without a given matrix."""
    n = 8

    def residual(t, y, yp):
        inner = [yp[i] - y[i - 1] + 2.0 * y[i] - y[i + 1] + y[i] ** 3 for i in range(1, n - 1)]
        return [yp[0] + y[0] - y[1], *inner, y[n - 1] - np.sin(t) + 0.1 * y[n - 2]]

    pattern = csc_array(np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1))
    start = np.zeros(n)
    method = ImplicitRungeKutta(name)
    dense, banded, sparse = (
        daedal.solve(ImplicitDAE(residual, n, **structure), (0.0, 1.0), (start, None), method=method, fixed_step=0.1)
        for structure in ({}, {"bandwidth": (1, 1)}, {"sparsity": pattern})
    )
    np.testing.assert_allclose(banded.y, dense.y, atol=1e-12)
    np.testing.assert_allclose(sparse.y, dense.y, atol=1e-12)


def test_coefficients_may_be_given_in_three_ways():
    a, b = [["5/12", "-1/12"], ["3/4", "1/4"]], ["3/4", "1/4"]
    runs = [
        daedal.solve(P15, (0.0, 1.0), ([1.0, 0.0], [-1.0, 1.0]), method=ImplicitRungeKutta(given), fixed_step=0.1).y
        for given in (
            "radau3",
            RungeKuttaTableau(a, b),
            (a, b),
            (np.array([[5, -1], [9, 3]]) / 12, [0.75, 0.25], [1 / 3, 1]),
        )
    ]
    for y in runs[1:]:
        np.testing.assert_allclose(y, runs[0], atol=1e-14)


def test_stages_are_grouped_as_they_depend_on_each_other():
    def sizes(name):
        return [block.size for block in Stages(daedal.methods.coefficients(name)).blocks]

    assert sizes("gauss3") == [3] and sizes("lobatto_iiia3") == [1, 2] and sizes("sdirk4") == [1] * 5
    extrapolation = Stages(daedal.methods.coefficients("extrapolation_124"))
    assert [block.matrix for block in extrapolation.blocks] == [0, 1, 1, 2, 2, 2, 2]
    mixed = RungeKuttaTableau([["1/2"], ["1/2", "1/4", "1/4"], ["1/2", "1/8", "1/4"]], ["1/2", "1/4", "1/4"])
    assert [(block.first, block.size) for block in Stages(mixed).blocks] == [(0, 1), (1, 2)]
    assert (
        Stages(daedal.methods.coefficients("trapezoidal")).known
        and not Stages(daedal.methods.coefficients("rk4")).known
    )


# --- variable steps ---------------------------------------------------------------------------------------------------


def stiff(t, y, yp):
    """y0 = cos t, y1 = exp(-t), y2 = y0 y1: a fast rate and an algebraic variable."""
    return [
        yp[0] + 1e4 * (y[0] - np.cos(t)) + np.sin(t),
        yp[1] + y[2] / np.cos(t) + (y[0] - np.cos(t)) ** 2,
        y[2] - y[0] * y[1],
    ]


STIFF = ImplicitDAE(stiff, 3)


def stiff_solution(t):
    return np.array([np.cos(t), np.exp(-t), np.cos(t) * np.exp(-t)])


METHODS = ["radau5", "radau_ia3", "gauss3", "lobatto_iiia3", "lobatto_iiic3", "sdirk4", "dirk5", "sirk2", "alexander2"]


@pytest.mark.parametrize("name", METHODS)
def test_errors_follow_the_tolerance_at_steps_and_between_them(name):
    times = np.linspace(0.0, 1.0, 97)
    errors = []
    for rtol in (1e-3, 1e-5, 1e-7):
        method = ImplicitRungeKutta(name)
        sol = daedal.solve(
            STIFF, (0.0, 1.0), (stiff_solution(0.0), [0.0, -1.0, -1.0]), method=method, rtol=rtol, atol=rtol
        )
        assert sol.success and sol.stats.rejected <= 0.5 * sol.stats.steps + 5
        errors.append(np.max(np.abs(sol.y - stiff_solution(sol.t))))
        assert errors[-1] < 20.0 * rtol
        assert np.max(np.abs(sol(times) - stiff_solution(times))) < 200.0 * rtol
    assert errors[2] < 0.05 * errors[0]


def test_embedded_weights_spare_the_second_solution():
    tableau = daedal.methods.coefficients("sdirk4")
    without = RungeKuttaTableau(tableau.a, tableau.b, tableau.c)
    embedded, doubled = (
        daedal.solve(STIFF, (0.0, 1.0), (stiff_solution(0.0), None), method=ImplicitRungeKutta(given), rtol=1e-5)
        for given in (tableau, without)
    )
    per_step = [sol.stats.newton_iterations / (sol.stats.steps + sol.stats.rejected) for sol in (embedded, doubled)]
    assert per_step[0] < 0.6 * per_step[1]


def test_runs_go_backward_in_time_and_give_the_same_bits_again():
    for name in ("radau5", "gauss2", "sdirk4", "lobatto_iiia3"):
        problem = ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0], y[2] - y[0] * y[1]], 3)
        y0 = [np.sin(2.0), np.cos(2.0), np.sin(2.0) * np.cos(2.0)]
        method = ImplicitRungeKutta(name)
        runs = [daedal.solve(problem, (2.0, 0.0), (y0, None), method=method, rtol=1e-8, atol=1e-8) for _ in range(2)]
        assert np.array_equal(runs[0].y, runs[1].y) and np.array_equal(runs[0].t, runs[1].t)
        np.testing.assert_allclose(runs[0].y[:, -1], [0.0, 1.0, 0.0], atol=3e-6)


def test_events_are_found_inside_of_steps():
    sol = daedal.solve(
        ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 2),
        (0.0, 10.0),
        ([0.0, 1.0], [1.0, 0.0]),
        method=ImplicitRungeKutta("gauss3"),
        events=lambda t, y: y[0],
        rtol=1e-9,
        atol=1e-9,
    )
    np.testing.assert_allclose([event.t for event in sol.events], np.pi * np.arange(1, 4), atol=1e-7)


@pytest.mark.parametrize("name", ["radau3", "radau5", "lobatto_iiic4"])
@pytest.mark.parametrize("problem", ["transistor_amplifier", "tppc2"])
def test_hard_problems_of_index_1_and_2(name, problem):
    model = daedal.library.get(problem)
    method = ImplicitRungeKutta(name)
    sol = daedal.solve(model.problem, model.t_span, model.initial, method=method, rtol=1e-5, atol=1e-8)
    reference = model.reference.y
    assert np.max(np.abs(sol.y[: reference.size, -1] - reference) / (1e-3 + np.abs(reference))) < 1e-5


BETWEEN = [
    *("gauss2", "gauss3", "radau_ia3", "radau3", "radau5", "lobatto_iiia3", "lobatto_iiic3"),
    *("sdirk4", "sirk3", "extrapolation_124", "implicit_midpoint"),
]
WITH_STIFFNESS = ImplicitDAE(
    lambda t, y, yp: [
        yp[0] - y[1],
        y[1] - np.cos(3.0 * t) - 0.1 * (y[0] - np.sin(3.0 * t) / 3.0),
        yp[2] + 1e4 * (y[2] - np.sin(2.0 * t)) - 2.0 * np.cos(2.0 * t),
    ],
    3,
)


@pytest.mark.parametrize("name", BETWEEN)
def test_errors_between_steps_are_those_at_steps_or_the_tolerance(name):
    """A differential, an algebraic and a stiff variable: the defect of the polynomial takes part in the error test."""

    def exact(t):
        return np.array([np.sin(3.0 * t) / 3.0, np.cos(3.0 * t), np.sin(2.0 * t)])

    for tolerance in (1e-4, 1e-6):
        sol = daedal.solve(
            WITH_STIFFNESS,
            (0.0, 3.0),
            (exact(0.0), [1.0, 0.0, 2.0]),
            method=ImplicitRungeKutta(name),
            rtol=tolerance,
            atol=tolerance,
        )
        times = np.linspace(0.0, 3.0, 3001)
        between, at_steps = (np.abs(y - exact(t)).max(axis=1) for t, y in ((times, sol(times)), (sol.t, sol.y)))
        assert np.all(between < 1.1 * at_steps + 6.0 * tolerance)


@pytest.mark.parametrize(("name", "order"), [("trapezoidal", 3), ("lobatto_iiia3", 3), ("lobatto_iiia4", 5)])
@pytest.mark.parametrize("stated", ["semi-explicit", "implicit"])
def test_slopes_of_algebraic_variables_at_the_start_are_computed(name, order, stated):
    """z = sin(3t + 1) has the slope 3 cos 1 at the start; an error of it would stay in the slopes of all steps."""
    if stated == "implicit":
        problem, start = (
            ImplicitDAE(lambda t, y, yp: [yp[0] + y[0], y[1] - np.sin(3.0 * t + 1.0)], 2),
            [1.0, np.sin(1.0)],
        )
        initial = start, None
    else:
        problem = daedal.SemiExplicitDAE(lambda t, y, z: [-y[0]], lambda t, y, z: [z[0] - np.sin(3.0 * t + 1.0)], 1, 1)
        initial = [1.0], [np.sin(1.0)]
    times, errors = np.linspace(0.0, 1.0, 301), []
    for steps in (10, 20):
        sol = daedal.solve(problem, (0.0, 1.0), initial, method=ImplicitRungeKutta(name), fixed_step=1.0 / steps)
        errors.append(np.abs(sol(times)[1] - np.sin(3.0 * times + 1.0)).max())
    assert abs(sol.yp[1, 0] - 3.0 * math.cos(1.0)) < 1e-8
    assert abs(math.log2(errors[0] / errors[1]) - order) < 0.3


def test_slopes_that_cannot_be_computed_are_asked_for():
    n = 600
    problem = ImplicitDAE(lambda t, y, yp: np.append(yp[:-1] + y[:-1], y[-1] - np.sin(t + 1.0)), n, bandwidth=(0, 0))
    initial = np.append(np.ones(n - 1), np.sin(1.0)), None
    with pytest.raises(InvalidProblemError, match=r"that of y\[599\] could not be computed: give yp0, or use"):
        daedal.solve(problem, (0.0, 1.0), initial, method=ImplicitRungeKutta("trapezoidal"), fixed_step=0.1)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tableau": "bdf2"}, "'bdf2' is a multistep method"),
        ({"tableau": "gauss22"}, "gauss takes a number from 1 to 9"),
        ({"tableau": 3}, "tableau must be a name such as 'gauss2'"),
        ({"tableau": ([[1.0]], [1.0], [1.0], [1.0])}, "tableau must be a name"),
        ({"tableau": ([[np.nan]], [1.0])}, "finite numbers"),
        ({"linear_solver": "gmres"}, "GMRES requires DASSL"),
        ({"error_test": "some"}, "unknown error_test"),
        ({"projection": "sometimes"}, "projection must be one of"),
        ({"variable_index": [0, 1]}, "variable_index must hold 1, 2 or 3"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(InvalidProblemError, match=message):
        ImplicitRungeKutta(**options)


def test_embedded_weights_must_be_as_many_as_stages():
    with pytest.raises(InvalidProblemError, match="embedded must have 2 weights, but has 1"):
        RungeKuttaTableau([["1/2"], ["1/2", "1/2"]], ["1/2", "1/2"], embedded=[1])


def test_an_exception_of_the_residual_arrives_unchanged():
    def residual(t, y, yp):
        if t > 0.4:
            raise LookupError("no data beyond 0.4")
        return [float(yp[0]) + float(y[0])]

    with pytest.raises(LookupError, match=r"no data beyond 0\.4"):
        daedal.solve(ImplicitDAE(residual, 1), (0.0, 1.0), ([1.0], [-1.0]), method=ImplicitRungeKutta("radau5"))


def test_inconsistent_coefficients_are_refused():
    with pytest.raises(daedal.InvalidProblemError, match="sum to 2 instead of 1"):
        daedal.methods.ImplicitRungeKutta(([[1.0]], [2.0]))
    with pytest.raises(daedal.InvalidProblemError, match="embedded weights equal b"):
        daedal.methods.ImplicitRungeKutta(daedal.methods.RungeKuttaTableau([[1.0]], [1.0], embedded=[1.0]))


PENDULUM = daedal.library.get("planar_pendulum")


@pytest.mark.parametrize(
    ("name", "formulation", "index"), [("sdirk4", "index3", 3), ("gauss2", "ggl", 2), ("trapezoidal", "index2", 2)]
)
def test_mechanisms_for_which_no_order_is_predicted_are_refused_or_noted(name, formulation, index):
    assert any(x.order is None for x in daedal.analysis.analyse_method(name).predicted(index))
    options = {"method": ImplicitRungeKutta(name), "formulation": formulation}
    if index == 3:
        with pytest.raises(InvalidProblemError, match=r"has index 3, for which this method need not converge"):
            daedal.solve(PENDULUM.problem, (0.0, 0.1), PENDULUM.initial, **options)
    sol = daedal.solve(PENDULUM.problem, (0.0, 0.1), PENDULUM.initial, fixed_step=0.01, **options)
    assert f"The problem has index {index}, for which" in str(sol) and "no guaranteed order in" in sol.message


@pytest.mark.parametrize(("name", "formulation"), [("radau5", "ggl"), ("sdirk4", "index2"), ("gauss2", "index1")])
def test_mechanisms_for_which_orders_are_predicted_run_without_a_note(name, formulation):
    options = {"method": ImplicitRungeKutta(name), "formulation": formulation, "fixed_step": 0.01}
    sol = daedal.solve(PENDULUM.problem, (0.0, 0.1), PENDULUM.initial, **options)
    assert "guaranteed" not in sol.message


def test_index_2_without_a_prediction_is_noted_with_constant_steps():
    jay = daedal.SemiExplicitDAE(
        lambda t, y, z: [y[0] * y[1] ** 2 * z[0] ** 2, y[0] ** 2 * y[1] ** 2 - 3.0 * y[1] ** 2 * z[0]],
        lambda t, y, z: [y[0] ** 2 * y[1] - 1.0],
        2,
        1,
    )
    messages = [
        daedal.solve(jay, (0.0, 0.1), ([1.0, 1.0], [1.0]), method=ImplicitRungeKutta(name), fixed_step=0.05).message
        for name in ("gauss2", "radau5")
    ]
    assert ["no guaranteed order in" in message for message in messages] == [True, False]
