"""Sensitivities of first-order problems: closed forms of index 1 to 3, stiff problems, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal import InvalidProblemError
from daedal.driver.solver import STAGES
from daedal.sensitivity.sensitivity_plan import PLANS
from run_differences import derivative, relative_error

RATES = {"k1": 0.04, "k2": 1e4, "k3": 3e7}


def robertson_residual(t, y, yp, p):
    return [
        yp[0] + p["k1"] * y[0] - p["k2"] * y[1] * y[2],
        yp[1] - p["k1"] * y[0] + p["k2"] * y[1] * y[2] + p["k3"] * y[1] ** 2,
        y[0] + y[1] + y[2] - 1.0,
    ]


def robertson(**options):
    return daedal.ImplicitDAE(robertson_residual, 3, params=dict(RATES), names=["A", "B", "C"], **options)


START = ([1.0, 0.0, 0.0], None)
TIMES = np.array([0.4, 4.0, 40.0])


@pytest.fixture(scope="module")
def robertson_reference():
    solver = daedal.prepare(robertson(), method="radau", rtol=1e-12, atol=1e-16)

    def run(name, value):
        return solver.solve((0.0, 40.0), START, params={**RATES, name: value}, t_eval=TIMES).y

    return {name: derivative(lambda value, name=name: run(name, value), RATES[name]) for name in RATES}


@pytest.mark.parametrize("method", ["auto", "dassl", "radau"])
@pytest.mark.parametrize("control", [True, False])
def test_robertson(method, control, robertson_reference):
    options = {"rtol": 1e-6, "atol": 1e-10, "method": method, "sensitivity_errors": control}
    sol = daedal.solve(robertson(), (0.0, 40.0), START, sensitivities=True, t_eval=TIMES, **options)
    for name, expected in robertson_reference.items():
        assert relative_error(sol.sensitivity(name), expected) < 1e-4
    assert sol.y.shape == (3, 3) and sol.names == ("A", "B", "C")


def test_differences_where_functions_are_not_traced(robertson_reference):
    sol = daedal.solve(
        robertson(), (0.0, 40.0), START, sensitivities=True, t_eval=TIMES, rtol=1e-6, atol=1e-10, compile="never"
    )
    for name, expected in robertson_reference.items():
        assert relative_error(sol.sensitivity(name), expected) < 1e-4
    assert sol.functions["sensitivities"] == "differences"
    assert "difference quotients" in sol.message


def test_prepared_solver_is_the_same_bit_for_bit():
    problem = robertson()
    solver = daedal.prepare(problem, sensitivities=["k3", "k1"], rtol=1e-7)
    other = {"k1": 0.05, "k2": 9e3, "k3": 2e7}
    solver.solve((0.0, 1.0), START)
    one = solver.solve((0.0, 40.0), START, params=other, t_eval=TIMES)
    two = daedal.solve(problem, (0.0, 40.0), START, sensitivities=["k3", "k1"], rtol=1e-7, params=other, t_eval=TIMES)
    for name in ("k1", "k3"):
        assert np.array_equal(one.sensitivity(name), two.sensitivity(name))
    assert np.array_equal(one.y, two.y)


def test_order_of_parameters_does_not_matter():
    problem = robertson()
    runs = [
        daedal.solve(problem, (0.0, 40.0), START, sensitivities=names, method=method, t_eval=TIMES, rtol=1e-6)
        for method in ("dassl", "radau")
        for names in (["k1", "k2", "k3"], ["k3", "k1", "k2"])
    ]
    for first, second in (runs[:2], runs[2:]):
        for name in RATES:
            assert relative_error(first.sensitivity(name), second.sensitivity(name)) < 1e-11


@pytest.mark.parametrize("power", [-20, 30])
def test_units_of_parameters_do_not_matter(power):
    unit = 2.0**power

    def problem(size):
        return daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + size * p[0] * y[0] ** 2], 1, params=[3.0 / size])

    one, other = (
        daedal.solve(problem(size), (0.0, 2.0), ([1.0], [-3.0]), sensitivities=[0], t_eval=[1.0, 2.0])
        for size in (1.0, unit)
    )
    assert np.array_equal(one.sensitivity(0), other.sensitivity(0) / unit)
    assert relative_error(one.sensitivity(0), -np.array([1.0, 2.0]) / (1 + 3.0 * np.array([1.0, 2.0])) ** 2) < 1e-4


@settings(max_examples=15, deadline=None)
@given(rate=st.floats(0.1, 5.0), start=st.floats(0.1, 10.0))
def test_decay(rate, start):
    sol = DECAY.solve((0.0, 2.0), ([start], None), params={"k": rate}, t_eval=[1.0, 2.0])
    exact = -sol.t * start * np.exp(-rate * sol.t)
    assert relative_error(sol.sensitivity("k"), exact) < 1e-5
    assert relative_error(sol.sensitivity("x(0)"), np.exp(-rate * sol.t)) < 1e-5


DECAY = daedal.prepare(
    daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0}, names=["x"]),
    sensitivities=["k", "x(0)"],
    rtol=1e-8,
)


# --- linear problems of index 1, 2 and 3 with known sensitivities -----------------------------------------------------


def index_1():
    """x' = -k x + z, 0 = z - a sin t: z = a sin t, x by variation of constants; x(0) = 0."""
    f, g = (lambda t, y, z, p: [-p["k"] * y[0] + z[0]]), (lambda t, y, z, p: [z[0] - p["a"] * np.sin(t)])
    problem = daedal.SemiExplicitDAE(f, g, 1, 1, params={"k": 2.0, "a": 3.0})

    def exact(t):
        k, a, s, c, e = 2.0, 3.0, np.sin(t), np.cos(t), np.exp(-2.0 * t)
        x = (k * s - c + e) / (k * k + 1)
        by_k = a * ((s - t * e) / (k * k + 1) - 2 * k * (k * s - c + e) / (k * k + 1) ** 2)
        return {"k": [by_k, 0 * t], "a": [x, s]}

    return problem, ([0.0], [0.0]), exact


def index_2():
    f, g = (lambda t, y, z, p: [-p["k"] * y[0] + z[0]]), (lambda t, y, z, p: [y[0] - p["a"] * np.sin(p["w"] * t)])
    problem = daedal.SemiExplicitDAE(f, g, 1, 1, params={"k": 2.0, "a": 3.0, "w": 1.5})

    def exact(t):
        k, a, w = 2.0, 3.0, 1.5
        s, c = np.sin(w * t), np.cos(w * t)
        by_w = a * c - a * w * t * s + k * a * t * c
        return {"k": [0 * t, a * s], "a": [s, w * c + k * s], "w": [a * t * c, by_w]}

    return problem, ([0.0], [4.5]), exact


def index_3():
    def residual(t, y, yp, p):
        return [yp[0] - y[1], p["m"] * yp[1] + p["k"] * y[0] - y[2], y[0] - p["a"] * np.sin(p["w"] * t)]

    problem = daedal.ImplicitDAE(residual, 3, params={"m": 2.0, "k": 5.0, "a": 3.0, "w": 1.5})

    def exact(t):
        m, k, a, w = 2.0, 5.0, 3.0, 1.5
        s, c, stiff = np.sin(w * t), np.cos(w * t), k - m * w * w
        by_w = -2 * m * w * a * s + stiff * a * t * c
        return {
            "m": [0 * t, 0 * t, -w * w * a * s],
            "k": [0 * t, 0 * t, a * s],
            "a": [s, w * c, stiff * s],
            "w": [a * t * c, a * c - a * w * t * s, by_w],
        }

    return problem, ([0.0, 4.5, 0.0], None), exact


@pytest.mark.parametrize(
    ("case", "method"),
    [
        (index_1, "auto"),
        (index_1, "dassl"),
        (index_1, "radau"),
        (index_2, "auto"),
        (index_2, "dassl"),
        (index_3, "auto"),
    ],
)
def test_linear_problems_with_known_sensitivities(case, method):
    problem, start, exact = case()
    sol = daedal.solve(problem, (0.0, 2.0), start, sensitivities=True, method=method, rtol=1e-8, atol=1e-10)
    for name, expected in exact(sol.t).items():
        assert relative_error(sol.sensitivity(name), np.array(expected)) < 1e-6
    at = np.linspace(0.0, 2.0, 17)
    for name, expected in exact(at).items():
        assert relative_error(sol.sensitivity(name, at), np.array(expected)) < 1e-6
    assert sol.sensitivity(0, 1.0).shape == (problem.n,)


@pytest.mark.parametrize(("method", "order"), [("radau", 5), ("dassl", 3)])
def test_orders_are_preserved(method, order):
    problem = daedal.ImplicitDAE(
        lambda t, y, yp, p: [yp[0] + p[0] * y[0] ** 2 - y[1], y[1] - p[0] * np.sin(t) * y[0]], 2, params=[1.3]
    )
    options = {"stages": 3} if method == "radau" else {"max_order": 3}
    start = ([1.0, 0.0], [-1.3, 1.3])
    accurate = daedal.solve(problem, (0.0, 2.0), start, sensitivities=[0], rtol=1e-12, atol=1e-13, t_eval=[2.0])
    errors = []
    for h in (0.1, 0.05):
        sol = daedal.solve(problem, (0.0, 2.0), start, sensitivities=[0], method=method, fixed_step=h, **options)
        errors.append(np.max(np.abs(sol.sensitivity(0)[:, -1] - accurate.sensitivity(0)[:, -1])))
    assert np.log2(errors[0] / errors[1]) > order - 0.4


def runs_of(model, span, position, times, **options):
    """y at `times` as a function of one parameter of a model of the library."""
    solver = daedal.prepare(model.problem, method="radau", **options)

    def run(value):
        params = np.array(model.problem.params)
        params[position] = value
        y0, _ = model.initial
        return solver.solve(span, (y0, None), params=params, t_eval=times).y

    return run


@pytest.mark.parametrize(
    ("name", "end", "positions"),
    [
        ("chemical_akzo_nobel", 10.0, (0, 4, 8)),
        # Resistances on which its constraints do not depend at the start: y0 stays consistent
        pytest.param("transistor_amplifier", 0.02, (1, 20), marks=pytest.mark.slow),
    ],
)
def test_models_of_the_library(name, end, positions):
    model = daedal.library.get(name)
    times = np.array([0.1, 1.0]) * end
    y0 = model.initial[0]
    sol = daedal.solve(
        model.problem, (0.0, end), (y0, None), sensitivities=positions, t_eval=times, rtol=1e-6, atol=1e-9
    )
    for k, position in enumerate(positions):
        run = runs_of(model, (0.0, end), position, times, rtol=1e-11, atol=1e-13)
        expected = derivative(run, model.problem.params[position])
        assert relative_error(sol.sensitivity(k), expected) < 1e-4


# --- input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (["k4"], "known: k1, k2, k3"),
        ([7], "the problem has 3, numbered from 0"),
        (["x(0)"], "no parameter or initial value 'x(0)'"),
        (["k1", "k1"], "twice"),
        ([], "names no parameter"),
        (3.5, "must be True"),
    ],
)
def test_unknown_parameters_are_named(wanted, says):
    with pytest.raises(InvalidProblemError, match=says.replace("(", r"\(").replace(")", r"\)")):
        daedal.solve(robertson(), (0.0, 1.0), START, sensitivities=wanted)


def test_without_parameters():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1, names=["x"])
    with pytest.raises(InvalidProblemError, match="has no parameters"):
        daedal.solve(problem, (0.0, 1.0), ([1.0], None), sensitivities=True)
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0], None), sensitivities="x(0)", rtol=1e-8)
    assert sol.sensitivity("x(0)")[0, -1] == pytest.approx(np.exp(-1.0), rel=1e-6)
    with pytest.raises(InvalidProblemError, match="the solution has no sensitivities"):
        daedal.solve(problem, (0.0, 1.0), ([1.0], None)).sensitivity("x(0)")
    with pytest.raises(InvalidProblemError, match="known: x"):
        sol.sensitivity("k")


def test_parameters_without_influence_are_zero_and_named():
    problem = daedal.ImplicitDAE(
        lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0, "idle": 2.0, "whole": 3}
    )
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0], None), sensitivities=["idle", "whole", "k"])
    assert not sol.sensitivity("idle").any() and not sol.sensitivity("whole").any()
    assert "idle, whole" in sol.message and "zero" in sol.message


def test_whole_numbers_are_parameters_too():
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1})
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0], None), sensitivities=["k"], rtol=1e-8)
    assert sol.sensitivity("k")[0, -1] == pytest.approx(-np.exp(-1.0), rel=1e-6)


def test_initial_values_that_depend_on_parameters():
    """x(0) = k: x = k exp(-k t)."""
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.5})
    sol = daedal.solve(
        problem, (0.0, 1.0), ([1.5], None), sensitivities=["k"], initial_sensitivities={"k": [1.0]}, rtol=1e-8
    )
    assert relative_error(sol.sensitivity("k"), (1.0 - 1.5 * sol.t) * np.exp(-1.5 * sol.t)) < 1e-6
    with pytest.raises(InvalidProblemError, match="initial_sensitivities"):
        daedal.solve(
            problem, (0.0, 1.0), ([1.5], None), sensitivities=["k"], initial_sensitivities={"q": [1.0]}, rtol=1e-8
        )


def test_exceptions_of_functions_arrive_unchanged():
    class Ownership(Exception):
        pass

    def residual(t, y, yp, p):
        if t > 0.5:
            raise Ownership("mine")
        return [yp[0] + p["k"] * y[0]]

    problem = daedal.ImplicitDAE(residual, 1, params={"k": 1.0})
    with pytest.raises(Ownership, match="mine"):
        daedal.solve(problem, (0.0, 1.0), ([1.0], None), sensitivities=True)


def test_a_solution_with_sensitivities_is_shown_as_a_table():
    decay = daedal.ODE(lambda t, y, p: [-p["k"] * y[0]], 1, params={"k": 1.0})
    sol = daedal.solve(decay, (0.0, 1.0), [1.0], sensitivities=["k"])
    assert "functions" in str(sol) and "<table" in sol._repr_html_()


def with_corrector(corrector, method, **options):
    model = daedal.library.get("robertson")
    start = (model.initial[0], None)
    return daedal.solve(
        model.problem,
        (0.0, 40.0),
        start,
        sensitivities=True,
        method=method,
        sensitivity_method=corrector,
        rtol=1e-7,
        atol=1e-11,
        t_eval=[40.0],
        **options,
    )


@pytest.mark.parametrize("control", [True, False], ids=["controlled", "free"])
@pytest.mark.parametrize("method", ["dassl", "radau"])
def test_correctors_agree(method, control):
    """Maly and Petzold's simultaneous corrector, Feehery's staggered one, and DASSAC's staggered direct method."""
    correctors = ["simultaneous", "staggered", *(["staggered direct"] if method == "dassl" else [])]
    found = [with_corrector(one, method, sensitivity_errors=control) for one in correctors]
    exact = with_corrector("simultaneous", "radau").sensitivities.values
    for sol in found:
        assert relative_error(sol.sensitivities.values[:, :, -1], exact[:, :, -1]) < 1e-5


def test_correctors_take_the_iterations_that_they_should():
    """One matrix for many steps, with further iterations for sensitivities; or a matrix and one solve in each step."""
    together, after, direct = (
        with_corrector(one, "dassl").stats for one in ("simultaneous", "staggered", "staggered direct")
    )
    assert together.factorisations == after.factorisations < 0.3 * together.steps
    assert after.newton_iterations > 1.5 * together.newton_iterations
    assert direct.factorisations > direct.steps
    rest = direct.newton_iterations - direct.steps  # one linear solve for the sensitivities of a step
    assert abs(rest - together.newton_iterations) < 0.1 * together.newton_iterations


def test_correctors_are_refused_where_there_are_none():
    with pytest.raises(InvalidProblemError, match="no staggered direct method"):
        with_corrector("staggered direct", "radau")
    with pytest.raises(InvalidProblemError, match="applies to 'dassl' and 'radau', not to Rosenbrock"):
        with_corrector("staggered", "rosenbrock")
    with pytest.raises(InvalidProblemError, match="unknown sensitivity_method 'quick'"):
        with_corrector("quick", "dassl")


def test_a_large_problem_begins_consistently_without_dense_matrices():
    """260 cells of a rod, each with an algebraic flux; against runs with other conductivities."""
    n = 260

    def f(t, y, z, p):
        return p["k"] * (np.concatenate([z[1:], [-z[-1]]]) - z) + 1.0

    def g(t, y, z, p):
        return z - (y - np.concatenate([[0.0], y[:-1]]))

    problem = daedal.SemiExplicitDAE(f, g, n, n, params={"k": 50.0})
    start, options = (np.zeros(n), None), {"t_eval": [0.1], "rtol": 1e-8, "atol": 1e-11}
    sol = daedal.solve(problem, (0.0, 0.1), start, sensitivities=["k"], **options)
    ahead, behind = (
        daedal.solve(problem, (0.0, 0.1), start, params={"k": 50.0 + h}, **options).y[:, -1] for h in (0.5, -0.5)
    )
    assert np.abs(sol.sensitivity("k")[:, -1] - (ahead - behind)).max() < 1e-4 * np.abs(ahead - behind).max()


# --- index judged at the start ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("index", "seed"), [(2, 0), (3, 1), (4, 9)])
def test_sensitivities_where_terms_that_vanish_on_the_solution_hide_the_index(index, seed):
    """A chain of integrators from y[0] = p sin t, its rows mixed by a matrix of y; dy/dp = y / p."""
    random = np.random.default_rng(seed)
    rotation, mixture = np.linalg.qr(random.normal(size=(index, index)))[0], 0.2 * random.normal(size=(index, index))

    def residual(t, y, yp, p):
        chain = rotation @ np.array([y[0] - p[0] * np.sin(t), *(yp[k] - y[k + 1] for k in range(index - 1))])
        return chain + mixture @ (chain * np.cos(y))

    start = np.sin(0.5 * np.pi * np.arange(index + 1))
    problem = daedal.ImplicitDAE(residual, index, params=[1.0])
    sol = daedal.solve(problem, (0.0, 2.0), (start[:-1], start[1:]), sensitivities=True, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(sol.sensitivity(0), sol.y, atol=1e-7)
    np.testing.assert_allclose(sol.y[0], np.sin(sol.t), atol=1e-7)


def test_every_class_of_problems_that_is_solved_is_differentiated():
    assert set(PLANS) == set(STAGES) - {daedal.LinearDAE}  # which is stated as a SemiExplicitDAE
