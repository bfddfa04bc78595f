"""Multistep and one-leg methods with constant steps against the predictions of the analyser."""

import math

import numpy as np
import pytest
from hypothesis import given as given_values
from hypothesis import settings
from hypothesis import strategies as st

import daedal
from daedal.errors import IntegrationError, InvalidProblemError
from test_predicted_orders import CLASSES, END, fully_implicit, hessenberg_2, hessenberg_3, semi_explicit, solution

TRANSFERABLE = "F(t, y, y') = 0, transferable"
# order 2, the zeros of sigma are 0 and -1/3
BLEND = (["5/4", "-3/2", "1/4"], ["3/4", "1/4", 0])
NAMES = [*(f"bdf{k}" for k in range(1, 6)), "adams_moulton1", "adams_moulton2", "adams_moulton3", BLEND]


def run(problem, method, steps, end=END, **options):
    implicit = daedal.ImplicitDAE(problem, solution(problem, 0.0)[0].size)
    return daedal.solve(implicit, (0.0, end), solution(problem, 0.0), method=method, fixed_step=end / steps, **options)


def errors(problem, kind, given, steps, **options):
    method = kind(given, starting_values=lambda t: solution(problem, t)[0], **options)
    return np.abs(run(problem, method, steps).y[:, -1] - solution(problem, END)[0])


def predictions(given, index, title, one_leg=False):
    if one_leg:
        found = daedal.methods.OneLeg(given).formula
        given = daedal.methods.MultistepFormula(found.rho, found.sigma, one_leg=True)
    return [x for x in daedal.analysis.analyse_method(given).predicted(index) if x.problem == title]


def check_orders(prediction, coarse, fine, lower=0.35):
    observed = math.log2(coarse / fine)
    assert prediction.order - lower < observed < prediction.at_most + 0.35, prediction


# --- orders -----------------------------------------------------------------------------------------------------------


def guaranteed(problem, given):
    """The predictions for every class of variables; none of index 2 and 3 but for BDF."""
    index, title, classes = CLASSES[problem]
    if problem is fully_implicit:
        [prediction] = [x for x in predictions(given, 1, TRANSFERABLE) if "3.4.21" in x.theorem]
        return {"y": prediction}
    if problem in (hessenberg_2, hessenberg_3) and isinstance(given, str) and given.startswith("bdf"):
        [prediction, *_] = daedal.analysis.analyse_method(given).predicted(index)
        return dict.fromkeys(classes, prediction)
    return {x.variables: x for x in predictions(given, index, title) if x.order is not None}


@pytest.mark.parametrize(
    ("problem", "given"),
    [(problem, given) for problem in CLASSES for given in NAMES if guaranteed(problem, given)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_observed_orders_of_multistep_methods_are_those_predicted(problem, given):
    """For every class of variables, where the analyser predicts an order."""
    (index, _, classes), found = CLASSES[problem], guaranteed(problem, given)
    steps = 24 if problem is hessenberg_3 and given == "bdf5" else 32  # round-off is divided by h^2 there
    coarse, fine = (errors(problem, daedal.methods.Multistep, given, n) for n in (steps, 2 * steps))
    for variables, (rows, _) in classes.items():
        check_orders(found[variables], coarse[rows].max(), fine[rows].max(), 0.35 if index < 3 else 0.6)


UNSTABLE = ("adams_moulton1", "adams_moulton2", "adams_moulton3")  # as one-leg methods; the first one is neutral


@pytest.mark.parametrize("given", [given for given in NAMES if given not in UNSTABLE], ids=str)
@pytest.mark.parametrize("problem", [semi_explicit, fully_implicit], ids=lambda problem: problem.__name__)
def test_one_leg_methods_converge_where_the_analyser_says_so(problem, given):
    """Stable with the zeros of sigma inside of the unit circle."""
    [prediction] = predictions(given, 1, TRANSFERABLE, one_leg=True)
    coarse, fine = (errors(problem, daedal.methods.OneLeg, given, steps) for steps in (32, 64))
    check_orders(prediction, coarse.max(), fine.max())


@pytest.mark.parametrize("given", UNSTABLE)
def test_one_leg_methods_for_which_nothing_is_guaranteed(given):
    """With zeros of sigma outside of the unit circle errors grow with the number of steps."""
    [prediction] = predictions(given, 1, TRANSFERABLE, one_leg=True)
    assert prediction.order is None
    if given != "adams_moulton1":
        coarse, fine = (errors(fully_implicit, daedal.methods.OneLeg, given, steps) for steps in (16, 32))
        assert fine.max() > 10.0 * coarse.max() > 1e-3


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_order_where_the_kernel_of_the_derivative_turns(k):
    """Theorems 3.4.2 and 3.4.3: (3.4.21) keeps the order k + 1 of Adams and Moulton, (3.4.20) falls to 1."""
    name = f"adams_moulton{k}"
    for scheme, number in (("Px", "3.4.21"), ("x", "3.4.20")):
        [prediction] = [x for x in predictions(name, 1, TRANSFERABLE) if number in x.theorem]
        assert prediction.order == (k + 1 if scheme == "Px" else 1)
        coarse, fine = (
            errors(fully_implicit, daedal.methods.Multistep, name, n, scheme=scheme).max() for n in (40, 80)
        )
        check_orders(prediction, coarse, fine)


QUADRATURE = daedal.ImplicitDAE(
    lambda t, y, yp, p: [yp[0] - ((p[0] * t + p[1]) * t + p[2]) * t - p[3]], 1, params=[0.0] * 4
)


@pytest.mark.parametrize("kind", [daedal.methods.Multistep, daedal.methods.OneLeg])
@pytest.mark.parametrize("given", NAMES, ids=str)
@given_values(st.lists(st.floats(-2.0, 2.0), min_size=4, max_size=4))
@settings(max_examples=5, deadline=None)
def test_polynomials_up_to_the_order_are_exact(kind, given, slopes):
    """y' = f(t) with f of a degree below the order, and for f = t^p not."""
    rho_sigma = kind(given).formula
    order = min(
        4,
        daedal.analysis.analyse_method(
            daedal.methods.MultistepFormula(rho_sigma.rho, rho_sigma.sigma, one_leg=kind.one_leg)
        ).order,
    )
    used = np.array([0.0] * (4 - order) + slopes[4 - order :])
    exact = np.polynomial.Polynomial(used[::-1]).integ()
    method = kind(given, starting_values=lambda t: [exact(t)])
    sol = daedal.solve(QUADRATURE.with_params(used), (0.0, 1.0), ([0.0], [used[3]]), method=method, fixed_step=0.0625)
    np.testing.assert_allclose(sol.y[0], exact(sol.t), atol=1e-12)
    if order < 4:
        further = np.eye(4)[3 - order]
        method = kind(given, starting_values=lambda t: [t ** (order + 1) / (order + 1)])
        sol = daedal.solve(
            QUADRATURE.with_params(further), (0.0, 1.0), ([0.0], [0.0]), method=method, fixed_step=0.0625
        )
        assert abs(sol.y[0, -1] - 1.0 / (order + 1)) > 1e-6


# --- stability --------------------------------------------------------------------------------------------------------


def alternating(t, y, yp):
    """0 = y - w with w = (-1)^n / 2 at the middle of step n, h = 1."""
    return [y[0] - 0.5 * np.cos(np.pi * (t + 0.5))]


def test_the_midpoint_rule_adds_up_alternating_perturbations():
    """BCP 3.4: x_n = n (-1)^n exactly; as a multistep method it is the trapezoidal rule, and has no error."""
    problem = daedal.ImplicitDAE(alternating, 1)
    leg = daedal.solve(problem, (0.0, 1000.0), ([0.0], [0.0]), method="one_leg", fixed_step=1.0)
    np.testing.assert_allclose(leg.y[0], np.arange(1001) * (-1.0) ** np.arange(1001), atol=1e-8)
    twin = daedal.solve(
        problem, (0.0, 1000.0), ([0.0], [0.0]), method=daedal.methods.Multistep("adams_moulton1"), fixed_step=1.0
    )
    np.testing.assert_allclose(twin.y[0, 1:], 0.5 * np.cos(np.pi * (twin.t[1:] + 0.5)), atol=1e-12)
    assert not daedal.analysis.analyse_method("midpoint_one_leg").transferable
    assert daedal.analysis.analyse_method("adams_moulton1").transferable


def growth(method, size=1e-8):
    """What becomes of an error of the last starting value of an algebraic variable, for a linear problem."""
    values = np.array([solution(fully_implicit, n / 50.0)[0] for n in range(method.formula.k)]).T
    off = values.copy()
    off[1, -1] += size
    exact, wrong = (
        run(fully_implicit, type(method)(method.formula, starting_values=x), 50, end=1.0) for x in (values, off)
    )
    return abs(wrong.y[1, -1] - exact.y[1, -1]) / size


@pytest.mark.parametrize("name", ["adams_moulton2", "adams_moulton3", "adams_moulton4"])
def test_one_leg_twins_amplify_errors_of_algebraic_variables_by_the_zeros_of_sigma(name):
    """And multistep methods forget them at once: g(t_n, x_n, y_n) = 0."""
    analysis = daedal.analysis.analyse_method(name)
    assert analysis.transferable and not analysis.stable_at_infinity
    expected = analysis.stability.sigma ** (50 - daedal.methods.coefficients(name).k)
    assert 0.1 * expected < growth(daedal.methods.OneLeg(name)) < 10.0 * expected
    assert growth(daedal.methods.Multistep(name)) == 0.0


def test_one_leg_methods_with_zeros_inside_forget_errors_of_algebraic_variables():
    assert growth(daedal.methods.OneLeg(BLEND)) < 1e-7 and growth(daedal.methods.OneLeg("bdf3")) < 1e-7
    assert growth(daedal.methods.OneLeg("midpoint_one_leg")) == pytest.approx(1.0, abs=1e-6)  # neither growth nor decay


@pytest.mark.parametrize("name", ["adams_moulton2", "adams_moulton3"])
def test_multistep_methods_of_index_2_need_the_zeros_of_sigma_inside(name):
    """Hairer and Wanner VII.3: z explodes, until Newton's method fails."""
    assert {x.order for x in daedal.analysis.analyse_method(name).predicted(2)} == {None}
    try:
        coarse, fine = (errors(hessenberg_2, daedal.methods.Multistep, name, n)[2] for n in (16, 32))
    except IntegrationError:
        return
    assert fine > 10.0 * coarse


def test_trapezoidal_rule_does_not_converge_for_multipliers_of_index_3():
    coarse, fine = (errors(hessenberg_3, daedal.methods.Multistep, "adams_moulton1", n)[4] for n in (32, 64))
    assert fine > 0.9 * coarse > 0.1


def test_formulas_that_are_not_zero_stable_diverge():
    """Order 3 with a zero of rho at -5 (Dahlquist)."""
    wild = ([1, 4, -5], [0, 4, 2])
    with pytest.raises(InvalidProblemError, match="explicit"):
        daedal.methods.Multistep(wild)
    implicit = ([1, 4, -5], ["1/4", "7/2", "9/4"])  # the same rho, implicit, order 2
    assert not daedal.analysis.analyse_method(implicit).zero_stable
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1)
    found = [
        abs(
            daedal.solve(
                problem, (0.0, 1.0), ([1.0], [-1.0]), method=daedal.methods.Multistep(implicit), fixed_step=1.0 / n
            ).y[0, -1]
            - np.exp(-1.0)
        )
        for n in (10, 20)
    ]
    assert found[1] > 100.0 * found[0]


# --- BDF --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("problem", CLASSES, ids=lambda problem: problem.__name__)
def test_bdf_is_dassl_with_constant_steps(problem, k):
    start = {"starting_values": lambda t: solution(problem, t)[0]}
    name = f"bdf{k}"
    dassl, tolerance = (
        run(problem, daedal.methods.DASSL(max_order=k, **start), 40),
        1e-13 * 100.0 ** (CLASSES[problem][0] - 1),
    )
    for kind in (daedal.methods.Multistep, daedal.methods.OneLeg):
        sol = run(problem, kind(name, **start), 40)
        np.testing.assert_allclose(sol.y, dassl.y, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(sol.t, dassl.t)


def test_an_ode_by_hand():
    """Adams and Moulton with two steps for y' = -2 y, where the implicit equation is linear."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + 2.0 * y[0]], 1)
    h, method = 0.1, daedal.methods.Multistep("adams_moulton2", starting_values=lambda t: [np.exp(-2.0 * t)])
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0], [-2.0]), method=method, fixed_step=h)
    y = [1.0, np.exp(-2.0 * h)]
    for _ in range(9):
        y.append((y[-1] - 2.0 * h * (8.0 * y[-1] - y[-2]) / 12.0) / (1.0 + 10.0 * h / 12.0))
    np.testing.assert_allclose(sol.y[0], y, rtol=1e-14)
    np.testing.assert_allclose(sol.yp[0, 2:], -2.0 * np.array(y[2:]), rtol=1e-12)


# --- the rest of the house --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["adams_moulton3", "bdf4"])
@pytest.mark.parametrize("compiled", ["always", "never"])
def test_starting_values_are_computed_where_none_are_given(name, compiled):
    given = run(
        semi_explicit, daedal.methods.Multistep(name, starting_values=lambda t: solution(semi_explicit, t)[0]), 64
    )
    own = run(semi_explicit, daedal.methods.Multistep(name), 64, compile=compiled)
    np.testing.assert_allclose(own.y, given.y, atol=1e-9)


def test_semi_explicit_problems_of_any_statement():
    """x' = -x z, 0 = z - 1 - x/2, as SemiExplicitDAE and with the equations turned over."""
    semi = daedal.SemiExplicitDAE(
        lambda t, y, z: [-y[0] * z[0]], lambda t, y, z: [z[0] - 1.0 - 0.5 * y[0]], n_y=1, n_z=1
    )
    mixed = daedal.ImplicitDAE(lambda t, y, yp: [y[1] - 1.0 - 0.5 * y[0] + yp[0] + y[0] * y[1], yp[0] + y[0] * y[1]], 2)
    method = daedal.methods.Multistep("adams_moulton2")
    first = daedal.solve(semi, (0.0, 1.0), ([1.0], [1.5]), method=method, fixed_step=0.05)
    second = daedal.solve(mixed, (0.0, 1.0), ([1.0, 1.5], [-1.5, 0.75]), method=method, fixed_step=0.05)
    np.testing.assert_allclose(second.y, first.y, atol=1e-11)


def test_backwards_in_time_and_the_same_bits_again():
    implicit = daedal.ImplicitDAE(fully_implicit, 2)
    solver = daedal.prepare(implicit, method=daedal.methods.Multistep("adams_moulton2"), fixed_step=0.02)
    back = [solver.solve((1.0, 0.0), solution(fully_implicit, 1.0)) for _ in range(2)]
    np.testing.assert_allclose(back[0].y[:, -1], solution(fully_implicit, 0.0)[0], atol=1e-5)
    np.testing.assert_array_equal(back[0].y, back[1].y)


@pytest.mark.parametrize(
    "method", [daedal.methods.Multistep("adams_moulton3"), daedal.methods.OneLeg("bdf3"), daedal.methods.OneLeg(BLEND)]
)
def test_dense_output_and_events(method):
    half = daedal.Event(lambda t, y, yp: y[1] - 0.25, name="a quarter")
    sol = run(fully_implicit, method, 50, events=half)
    [event] = sol.events
    assert event.t == pytest.approx(np.arcsin(0.25), abs=1e-5)
    for t in (0.003, 0.123, 0.4567):
        np.testing.assert_allclose(sol(t), solution(fully_implicit, t)[0], atol=2e-5)
    np.testing.assert_allclose(sol.yp[:, -1], solution(fully_implicit, END)[1], atol=2e-3)


@pytest.mark.parametrize("structure", [{"bandwidth": (1, 1)}, {"sparsity": np.tri(6, k=1) * np.tri(6, k=1).T}, {}])
@pytest.mark.parametrize("formula", ["adams_moulton2", "bdf3"])
def test_banded_and_sparse_matrices(structure, formula):
    """A rod that conducts heat, its ends held at given temperatures."""

    def rod(t, y, yp):
        inner = [yp[i] - 9.0 * (y[i - 1] - 2.0 * y[i] + y[i + 1]) for i in range(1, 5)]
        return np.array([y[0] - np.sin(t), *inner, y[5] - t])

    problem = daedal.ImplicitDAE(rod, 6, **structure)
    exact = daedal.solve(daedal.ImplicitDAE(rod, 6), (0.0, 1.0), (np.zeros(6), None), rtol=1e-11, atol=1e-12)
    sol = daedal.solve(
        problem, (0.0, 1.0), (np.zeros(6), None), method=daedal.methods.Multistep(formula), fixed_step=0.01
    )
    np.testing.assert_allclose(sol.y[:, -1], exact.y[:, -1], atol=2e-5)


def test_mechanisms_in_a_first_order_form():
    model = daedal.library.get("planar_pendulum")
    exact = daedal.solve(model.problem, (0.0, 1.0), model.initial, rtol=1e-12, atol=1e-13)
    found = []
    for n in (50, 100):
        sol = daedal.solve(
            model.problem,
            (0.0, 1.0),
            model.initial,
            method=daedal.methods.Multistep("bdf3"),
            formulation="ggl",
            fixed_step=1.0 / n,
        )
        found.append(np.abs(sol.q[:, -1] - exact.q[:, -1]).max())
    assert 2.6 < np.log2(found[0] / found[1]) < 3.4


def test_other_parameters():
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p[0] * y[0]], 1, params=[1.0])
    solver = daedal.prepare(problem, method=daedal.methods.Multistep("adams_moulton2"), fixed_step=0.02)
    for rate in (1.0, 3.0, 1.0):
        sol = solver.solve((0.0, 1.0), ([1.0], [-rate]), params=[rate])
        assert sol.y[0, -1] == pytest.approx(np.exp(-rate), abs=1e-5)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: daedal.methods.Multistep("adams_bashforth2"), "is explicit"),
        (lambda: daedal.methods.Multistep("radau5"), "Runge-Kutta"),
        (lambda: daedal.methods.Multistep("bdf9"), "takes a number"),
        (lambda: daedal.methods.Multistep("midpoint_one_leg"), "OneLeg"),
        (lambda: daedal.methods.Multistep(3), "formula must be"),
        (lambda: daedal.methods.Multistep(([1, -1], [1, 0, 0])), "the same number"),
        (lambda: daedal.methods.Multistep(([1, -1], [1, -1])), "not consistent"),
        (lambda: daedal.methods.Multistep("bdf2", scheme="y"), "scheme must be"),
        (lambda: daedal.methods.OneLeg("adams_bashforth1"), "is explicit"),
    ],
)
def test_formulas_that_are_refused(make, says):
    with pytest.raises(InvalidProblemError, match=says):
        make()


@pytest.mark.parametrize(
    ("method", "options", "says"),
    [
        ("multistep", {"fixed_step": None}, "pass fixed_step"),
        ("one_leg", {"fixed_step": None}, "pass fixed_step"),
        (daedal.methods.Multistep("bdf3", starting_values=[[1.0], [1.0]]), {"fixed_step": 0.1}, "starting_values must"),
        (daedal.methods.Multistep("bdf3"), {"fixed_step": 0.5}, "leave no step"),
    ],
)
def test_what_is_refused(method, options, says):
    implicit = daedal.ImplicitDAE(fully_implicit, 2)
    with pytest.raises(InvalidProblemError, match=says):
        daedal.solve(implicit, (0.0, 1.0), solution(fully_implicit, 0.0), method=method, **options)


def test_large_problems_are_for_formulas_without_earlier_slopes():
    problem = daedal.ImplicitDAE(lambda t, y, yp: yp + y, 401, bandwidth=(0, 0))
    start = (np.ones(401), -np.ones(401))
    sol = daedal.solve(problem, (0.0, 0.1), start, method="multistep", fixed_step=0.01)
    assert sol.y[400, -1] == pytest.approx(np.exp(-0.1), abs=1e-5)
    with pytest.raises(InvalidProblemError, match="BDF and one-leg methods do not need it"):
        daedal.solve(problem, (0.0, 0.1), start, method=daedal.methods.Multistep("adams_moulton2"), fixed_step=0.01)


@pytest.mark.parametrize("method", ["multistep", "dassl"])
def test_a_step_that_is_too_long_is_named(method):
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[0] ** 2], 1)  # 1 / (1 - t)
    with pytest.raises(IntegrationError, match=r"step of the constant size 0\.1\..*Remedy: use a smaller fixed_step"):
        daedal.solve(problem, (0.0, 2.0), ([1.0], [1.0]), method=method, fixed_step=0.1)


def test_exceptions_arrive_unchanged():
    def residual(t, y, yp):
        if t > 0.5:
            raise LookupError("no more data")
        return [yp[0] + y[0]]

    problem = daedal.ImplicitDAE(residual, 1)
    with pytest.raises(LookupError, match="no more data"):
        daedal.solve(
            problem, (0.0, 1.0), ([1.0], [-1.0]), method=daedal.methods.Multistep("adams_moulton2"), fixed_step=0.1
        )


@pytest.mark.parametrize("given", [([1, -2], [1, 1]), ([1, -1], [1, 1]), ([2, -1], [1, 0])], ids=str)
@pytest.mark.parametrize("method", [daedal.methods.Multistep, daedal.methods.OneLeg])
def test_inconsistent_coefficients_are_refused(method, given):
    with pytest.raises(InvalidProblemError, match="is not consistent"):
        method(given)


# --- starting values --------------------------------------------------------------------------------------------------

CIRCLE = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 2, names=["a", "b"])


def on_the_circle(t):
    return np.array([np.sin(t), np.cos(t)])


@pytest.mark.parametrize(
    "kind", [daedal.methods.Multistep, daedal.methods.OneLeg, lambda f, **k: daedal.methods.DASSL(max_order=3, **k)]
)
def test_starting_values_that_contradict_the_initial_values_are_refused(kind):
    method = kind("bdf3", starting_values=lambda t: on_the_circle(t) + [0.0, 0.1])
    with pytest.raises(
        InvalidProblemError, match=r"starting_values contradict.*t = 0, b is 1.1 in starting_values and 1 in y0\."
    ):
        daedal.solve(CIRCLE, (0.0, 2.0), ([0.0, 1.0], None), method=method, fixed_step=0.1)


@pytest.mark.parametrize("given", [None, on_the_circle], ids=["computed", "given"])
@pytest.mark.parametrize("kind", [daedal.methods.Multistep, daedal.methods.OneLeg])
def test_events_among_the_starting_values_are_found(kind, given):
    """sin t = 0.1 long before the fourth starting value at t = 0.24."""
    method, start = kind("bdf4", starting_values=given), ([0.0, 1.0], None)
    for terminal in (True, False):
        event = daedal.Event(lambda t, y, yp: y[0] - 0.1, terminal=terminal)
        sol = daedal.solve(CIRCLE, (0.0, 1.2), start, method=method, fixed_step=0.08, events=event)
        [found] = sol.events
        assert found.t == pytest.approx(np.arcsin(0.1), abs=1e-9) and found.terminal == terminal
        assert sol.t[-1] == pytest.approx(found.t if terminal else 1.2)
        np.testing.assert_allclose(sol.y, on_the_circle(sol.t), atol=1e-5)
    later = daedal.Event(lambda t, y, yp: y[0] - 0.5, terminal=True)
    sol = daedal.solve(CIRCLE, (0.0, 1.2), start, method=method, fixed_step=0.08, events=later)
    assert sol.t[-1] == pytest.approx(np.arcsin(0.5), abs=1e-5)


def test_bdf_as_scheme_3_4_21_is_another_method_of_the_same_order():
    """BCP 3.4: BDF of y itself, (3.4.20), is the default; where the kernel of F_y' turns (3.4.21) differs from it."""
    found = {
        scheme: [
            errors(fully_implicit, daedal.methods.Multistep, "bdf2", steps, scheme=scheme).max() for steps in (40, 80)
        ]
        for scheme in ("auto", "x", "Px")
    }
    assert found["auto"] == found["x"] and abs(found["Px"][1] / found["x"][1] - 1.0) > 0.1
    for coarse, fine in found.values():
        assert abs(math.log2(coarse / fine) - 2.0) < 0.2
