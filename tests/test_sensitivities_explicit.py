"""Sensitivities by explicit and half-explicit methods, and of linear Hessenberg problems."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal import InvalidProblemError
from run_differences import derivative, relative_error

HALF_EXPLICIT = ["hem3", "hem4", "hem5", "phem56", "hedop5"]


# --- y' = f, 0 = g of index 2 -----------------------------------------------------------------------------------------


def linear(k=0.9, c=1.5):
    """x1' = -k x1 + z, x2' = 2 z, x1 + x2 = c: z = k x1 / 3 and x1 = x1(0) exp(-2 k t / 3)."""
    return daedal.SemiExplicitDAE(
        lambda t, y, z, p: [-p["k"] * y[0] + z[0], 2.0 * z[0]],
        lambda t, y, z, p: [y[0] + y[1] - p["c"]],
        2,
        1,
        params={"k": k, "c": c},
        names=["x1", "x2", "z"],
    )


def circle(**options):
    """A point on a circle of radius r, pushed around by a force that z turns."""

    def f(t, y, z, p):
        return np.array([-p["a"] * y[0] + z[0] * y[1], -y[1] * z[0] + p["b"] * np.sin(t)])

    def g(t, y, z, p):
        return np.array([y[0] * y[0] + y[1] ** 2 - p["r"] ** 2])

    return daedal.SemiExplicitDAE(f, g, 2, 1, params={"a": 0.5, "b": 1.0, "r": 1.0}, **options)


@pytest.mark.parametrize("method", HALF_EXPLICIT)
def test_a_linear_problem_of_index_2(method):
    k, c, t = 0.9, 1.5, np.linspace(0.0, 2.0, 5)
    run = {"method": method, "rtol": 1e-5 if method == "hem3" else 1e-8, "atol": 1e-9}
    sol = daedal.solve(linear(k, c), (0.0, 2.0), ([1.0, 0.5], None), sensitivities=["k", "c", "x1(0)"], t_eval=t, **run)
    decay = np.exp(-2.0 * k * t / 3.0)
    by_k = -2.0 * t / 3.0 * decay
    expected = {
        "k": [by_k, -by_k, (decay + k * by_k) / 3.0],
        "c": [0.5 * decay, 1.0 - 0.5 * decay, k / 6.0 * decay],  # the start moves to both sides as little as it can
        "x1(0)": [0.5 * decay, -0.5 * decay, k / 6.0 * decay],
    }
    for name, values in expected.items():
        assert np.allclose(sol.sensitivity(name), values, rtol=0.0, atol=100.0 * run["rtol"])
        constraint = sol.sensitivity(name)[:2].sum(axis=0)
        assert np.abs(constraint - (name == "c")).max() < 1e-13


@pytest.mark.parametrize("method", ["hem4", "phem56"])
def test_differences_of_runs_of_index_2(method):
    run = {"method": method, "rtol": 1e-6 if method == "hem4" else 1e-8, "atol": 1e-9, "t_eval": [0.2, 0.5]}
    start = ([0.6, 0.8], None)
    sol = daedal.solve(circle(), (0.0, 0.5), start, sensitivities=["a", "b"], **run)
    for name in ("a", "b"):

        def one(value, name=name):
            problem = circle().with_params({name: value})
            return daedal.solve(problem, (0.0, 0.5), start, **{**run, "method": "hem5", "rtol": 1e-10}).y

        expected = derivative(one, circle().params[name])
        assert relative_error(sol.sensitivity(name), expected) < 100.0 * run["rtol"]


def turning():
    """A point that moves on the unit circle by itself; z keeps it there."""
    return daedal.SemiExplicitDAE(
        lambda t, y, z, p: np.array([-p["a"] * y[0] + z[0] * y[0] + y[1], np.sin(t) * y[0] + z[0] * y[1]]),
        lambda t, y, z, p: np.array([y[0] * y[0] + y[1] ** 2 - 1.0]),
        *(2, 1),
        params={"a": 0.5},
    )


@pytest.mark.parametrize("method", HALF_EXPLICIT)
def test_orders_are_those_of_the_method(method):
    """The methods of Murua and Arnold have order 3 on problems that are no mechanisms, and so have sensitivities."""
    run = {"sensitivities": ["a"], "method": "hem5", "rtol": 1e-11, "atol": 1e-12}
    reference = daedal.solve(turning(), (0.0, 2.0), ([0.6, 0.8], None), **run).sensitivity("a")[:2, -1]
    errors = []
    for h in (0.05, 0.025):
        sol = daedal.solve(turning(), (0.0, 2.0), ([0.6, 0.8], None), sensitivities=["a"], method=method, fixed_step=h)
        errors.append(np.abs(sol.sensitivity("a")[:2, -1] - reference).max())
    assert np.log2(errors[0] / errors[1]) > {"hem4": 4, "hem5": 5}.get(method, 3) - 0.2


def test_functions_that_are_not_traced():
    run = {"method": "phem56", "sensitivities": ["a", "r"], "compile": "never"}
    with pytest.raises(InvalidProblemError, match=r"PHEM56 need exact derivatives.*radau"):
        daedal.solve(circle(), (0.0, 0.5), ([0.6, 0.8], None), **run)
    decay = daedal.ODE(lambda t, y, p: [-p["k"] * y[0]], 1, params={"k": 1.0})
    sol = daedal.solve(decay, (0.0, 1.0), [1.0], sensitivities=["k"], method="dopri5", compile="never", rtol=1e-8)
    assert sol.functions["sensitivities"] == "differences"
    assert np.allclose(sol.sensitivity("k")[0], -sol.t * np.exp(-sol.t), atol=1e-7)


def test_dense_output_prepared_solvers_and_their_bits():
    solver = daedal.prepare(circle(), method="hem5", sensitivities=["a"])
    first = solver.solve((0.0, 0.5), ([0.6, 0.8], None))
    other = solver.solve((0.0, 0.5), ([0.6, 0.8], None), params={"a": 0.7, "b": 1.0, "r": 1.0})
    again = solver.solve((0.0, 0.5), ([0.6, 0.8], None))
    assert np.array_equal(first.sensitivity("a"), again.sensitivity("a"))
    assert not np.allclose(first.sensitivity("a")[:, -1], other.sensitivity("a")[:, -1])
    middle = first.t[2]
    assert np.allclose(first.sensitivity("a", middle), first.sensitivity("a")[:, 2], atol=1e-10)


def test_sensitivities_may_be_left_out_of_the_error_test():
    run = {"method": "hem5", "rtol": 1e-7, "atol": 1e-9}
    alone = daedal.solve(circle(), (0.0, 0.5), ([0.6, 0.8], None), **run)
    free = daedal.solve(circle(), (0.0, 0.5), ([0.6, 0.8], None), sensitivities=["a"], sensitivity_errors=False, **run)
    both = daedal.solve(circle(), (0.0, 0.5), ([0.6, 0.8], None), sensitivities=["a"], **run)
    assert free.stats.steps <= 1.2 * alone.stats.steps + 2 and free.stats.steps < both.stats.steps


# --- ordinary differential equations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["dopri5", "dop853"])
def test_an_oscillator_by_explicit_methods(method):
    problem = daedal.ODE(lambda t, y, p: [y[1], -p["k"] * y[0]], 2, params={"k": 4.0}, names=["x", "v"])
    run = {"method": method, "rtol": 1e-8, "atol": 1e-10}
    sol = daedal.solve(problem, (0.0, 3.0), [1.0, 0.0], sensitivities=["k", "v(0)"], **run)
    t, w = sol.t, 2.0
    assert np.allclose(sol.sensitivity("k")[0], -t * np.sin(w * t) / (2.0 * w), atol=1e-6)
    assert np.allclose(sol.sensitivity("v(0)"), [np.sin(w * t) / w, np.cos(w * t)], atol=1e-6)
    assert sol.method.startswith(method.upper())


def test_rk4_keeps_its_order():
    problem = daedal.ODE(lambda t, y, p: [-p["k"] * y[0] ** 2], 1, params={"k": 1.0})
    errors = []
    for h in (0.1, 0.05):
        sol = daedal.solve(problem, (0.0, 1.0), [1.0], sensitivities=["k"], method="rk4", fixed_step=h)
        errors.append(abs(sol.sensitivity("k")[0, -1] + 0.25))  # y = 1 / (1 + k t)
    assert 3.7 < np.log2(errors[0] / errors[1]) < 4.4


def test_exceptions_of_the_functions_arrive():
    def f(t, y, p):
        if t > 0.5:
            raise KeyError("no table beyond 0.5")
        return [-p["k"] * y[0]]

    problem = daedal.ODE(f, 1, params={"k": 1.0})
    with pytest.raises(KeyError, match="no table"):
        daedal.solve(problem, (0.0, 1.0), [1.0], sensitivities=["k"], method="dopri5", compile="never")


# --- mechanisms -------------------------------------------------------------------------------------------------------


def pendulum(**params):
    return daedal.MechanicalSystem(
        lambda t, q, p: p["m"] * np.eye(2),
        lambda t, q, v, p: np.array([-p["c"] * v[0], -p["m"] * p["g"] - p["c"] * v[1]]),
        lambda t, q, p: np.array([q[0] ** 2 + q[1] ** 2 - p["L"] ** 2]),
        n_q=2,
        n_constraints=1,
        params={"m": 1.0, "g": 9.81, "L": 1.0, "c": 0.3} | params,
    )


START = ([1.0, 0.0], [0.0, 0.0])


@pytest.mark.parametrize("method", ["hem4", "hem5", "phem56", "hedop5"])
def test_half_explicit_and_explicit_methods_agree_on_mechanisms(method):
    names, tolerance = ["m", "g", "L", "c"], 1e-5 if method == "hem4" else 1e-7
    expected = daedal.solve(
        pendulum(), (0.0, 2.0), START, sensitivities=names, rtol=1e-11, atol=1e-12, t_eval=[1.0, 2.0]
    )
    sol = daedal.solve(
        *(pendulum(), (0.0, 2.0), START),
        **{"sensitivities": names, "rtol": tolerance, "t_eval": [1.0, 2.0], "method": method},
    )
    for name in names:
        found, known = sol.sensitivity(name), expected.sensitivity(name)
        for part in ("q", "v", "lam"):
            assert relative_error(getattr(found, part), getattr(known, part)) < 100.0 * tolerance
        # the differentiated constraints, q . s_q = L dL/dp and q . s_v + v . s_q = 0
        assert np.abs(np.sum(sol.q * found.q, axis=0) - (name == "L")).max() < 1e-13
        assert np.abs(np.sum(sol.q * found.v + sol.v * found.q, axis=0)).max() < 1e-12


@pytest.mark.parametrize("method", ["hem4", "hem5", "phem56"])
def test_half_explicit_methods_keep_their_order_on_mechanisms(method):
    reference = daedal.solve(pendulum(), (0.0, 1.0), START, sensitivities=["L"], rtol=1e-12, atol=1e-13)
    expected, errors = np.asarray(reference.sensitivity("L"))[:, -1], []
    for h in (0.02, 0.01):
        sol = daedal.solve(pendulum(), (0.0, 1.0), START, sensitivities=["L"], method=method, fixed_step=h)
        errors.append(np.abs(np.asarray(sol.sensitivity("L"))[:, -1] - expected).max())
    assert np.log2(errors[0] / errors[1]) > (4 if method == "hem4" else 5) - 0.4


@settings(max_examples=15, deadline=None)
@given(unit=st.floats(1e-3, 1e3), mass=st.floats(0.1, 10.0))
def test_units_of_length_do_not_matter(unit, mass):
    """Lengths in another unit: sensitivities to L stay as they are, those of multipliers change with theirs."""
    sol, other = (
        daedal.solve(
            pendulum(m=mass, g=9.81 * scale, L=scale, c=0.0),
            (0.0, 0.5),
            ([scale, 0.0], [0.0, 0.0]),
            **{"sensitivities": ["L"], "method": "phem56", "rtol": 1e-7, "atol": 1e-9 * scale, "t_eval": [0.5]},
        )
        for scale in (1.0, unit)
    )
    assert np.allclose(np.asarray(sol.sensitivity("L")), np.asarray(other.sensitivity("L")), rtol=1e-4, atol=1e-4)


def test_a_mechanism_without_constraints_is_for_explicit_methods():
    free = daedal.MechanicalSystem(lambda t, q, p: [[1.0]], lambda t, q, v, p: [-p["g"]], n_q=1, params={"g": 9.81})
    with pytest.raises(InvalidProblemError, match=r"HEM5 is for constrained mechanisms.*dopri5"):
        daedal.solve(free, (0.0, 1.0), ([1.0], [0.0]), sensitivities=["g"], method="hem5")


# --- linear Hessenberg problems ---------------------------------------------------------------------------------------


def hessenberg(order):
    if order == 1:
        return daedal.HessenbergDAE(
            [[-0.9, 0.0], [0.0, 0.0]], [[1.0], [2.0]], [[1.0, 1.0]], [0.0, 0.0], [-1.5], n_x=2, n_y=1, names=["a", "b"]
        )
    return daedal.HessenbergDAE(
        [[[0.0, 0.3], [-1.0, 0.0]], [[0.0, 0.0], [0.2, -0.1]]],
        [[1.0], [1.0]],
        lambda t: [[1.0 + t, 2.0]],
        lambda t: [-np.sin(t), 0.0],
        lambda t: [-(1.0 + t) * np.sin(t)],
        **{"n_x": 2, "n_y": 1, "order": 2, "names": ["a", "b"]},
    )


@pytest.mark.parametrize("formulation", ["index1", "ggl", "projected_invariants"])
def test_initial_values_of_a_hessenberg_problem(formulation):
    run = {"formulation": formulation, "rtol": 1e-8, "atol": 1e-10}
    sol = daedal.solve(hessenberg(1), (0.0, 2.0), [1.0, 0.5], sensitivities=["a(0)"], **run)
    found, decay = sol.sensitivity("a(0)"), np.exp(-0.6 * sol.t)
    assert np.allclose(found, [0.5 * decay, -0.5 * decay], atol=1e-6) and np.asarray(found).shape == sol.y.shape
    assert np.allclose(found.lam, [0.15 * decay], atol=1e-6)
    assert np.allclose(sol.sensitivity("a(0)", 1.0), 0.5 * np.exp(-0.6) * np.array([1.0, -1.0]), atol=1e-6)


def test_initial_values_of_index_3_against_runs():
    run = {"rtol": 1e-10, "atol": 1e-12, "t_eval": [0.5, 2.0]}
    z0 = np.array([0.0, 0.0, 1.0, 0.0])
    sol = daedal.solve(hessenberg(2), (0.0, 2.0), z0, sensitivities=["a(0)", "b'(0)"], **run)
    for name in ("a(0)", "b'(0)"):
        found = sol.sensitivity(name)
        start = np.asarray(sol.sensitivity(name, 0.0))
        assert abs(start[0] + 2.0 * start[1]) < 1e-14 and abs(start[2] + 2.0 * start[3] + start[0]) < 1e-14
        plus, minus = (daedal.solve(hessenberg(2), (0.0, 2.0), z0 + h * start, **run) for h in (0.5, -0.5))
        assert np.allclose(found, plus.y - minus.y, atol=1e-7) and np.allclose(
            found.lam, plus.lam - minus.lam, atol=1e-7
        )


def test_a_hessenberg_problem_has_no_parameters():
    with pytest.raises(InvalidProblemError, match="name initial values, such as 'a\\(0\\)'"):
        daedal.solve(hessenberg(1), (0.0, 1.0), [1.0, 0.5], sensitivities=True)
