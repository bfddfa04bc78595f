"""Gradients by adjoint equations (daedal.gradient) against closed forms and forward sensitivities."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal


def robertson():
    def residual(t, y, yp, p):
        a, b, c = y
        slow = p["k1"] * a - p["k3"] * b * c
        return [yp[0] + slow, yp[1] - slow + p["k2"] * b**2, a + b + c - 1.0]

    return daedal.ImplicitDAE(residual, 3, params={"k1": 0.04, "k2": 3e7, "k3": 1e4}, names=["a", "b", "c"])


def decay(k=2.0):
    return daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": k}, names=["x"])


@settings(max_examples=15)
@given(st.floats(0.1, 5.0), st.floats(0.2, 3.0), st.floats(-2.0, 2.0))
def test_integral_and_final_cost_of_decay_have_their_closed_form(k, T, start):
    """J = int x^2 dt + 3 x(T) with x = x0 exp(-k t)."""
    found = daedal.gradient(
        decay(k),
        (0.0, T),
        ([start], None),
        cost=lambda t, y, p: y[0] ** 2,
        final_cost=lambda t, y, p: 3.0 * y[0],
        parameters=["k", "x(0)"],
        rtol=1e-9,
        atol=1e-11,
    )
    end, square = np.exp(-k * T), np.exp(-2.0 * k * T)
    integral = (1.0 - square) / (2.0 * k)
    by_k = start**2 * (T * square / k - (1.0 - square) / (2.0 * k**2)) - 3.0 * T * start * end
    assert found.value == pytest.approx(start**2 * integral + 3.0 * start * end, rel=1e-7, abs=1e-9)
    assert found["k"] == pytest.approx(by_k, rel=1e-6, abs=1e-8)
    assert found["x(0)"] == pytest.approx(2.0 * start * integral + 3.0 * end, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("variable", [0, 1, 2], ids=["a", "b", "c, algebraic"])
def test_final_costs_of_a_stiff_dae_agree_with_forward_sensitivities(variable):
    """c is algebraic: its terminal value needs the multiplier nu of the conservation law."""
    problem, start = robertson(), ([1.0, 0.0, 0.0], None)
    found = daedal.gradient(problem, (0.0, 1e3), start, final_cost=lambda t, y, p: y[variable], rtol=1e-8, atol=1e-12)
    forward = daedal.solve(problem, (0.0, 1e3), start, sensitivities=True, rtol=1e-9, atol=1e-13)
    expected = [forward.sensitivity(name)[variable, -1] for name in found.names]
    assert found.gradient == pytest.approx(expected, rel=1e-6)


def test_a_semi_explicit_problem_whose_cost_depends_on_algebraic_variables():
    """y' = -k y, z = y^2 + c: J = int z dt."""
    problem = daedal.SemiExplicitDAE(
        lambda t, y, z, p: [-p["k"] * y[0]],
        lambda t, y, z, p: [z[0] - y[0] ** 2 - p["c"]],
        1,
        1,
        params={"k": 0.5, "c": 0.3},
    )
    found = daedal.gradient(problem, (0.0, 2.0), ([1.0], None), cost=lambda t, y, z, p: z[0], rtol=1e-9, atol=1e-11)
    k, T = 0.5, 2.0
    square = np.exp(-2.0 * k * T)
    assert found.value == pytest.approx((1.0 - square) / (2.0 * k) + 0.3 * T, rel=1e-8)
    assert found["k"] == pytest.approx(T * square / k - (1.0 - square) / (2.0 * k**2), rel=1e-7)
    assert found["c"] == pytest.approx(T, rel=1e-8)


def pendulum():
    return daedal.MechanicalSystem(
        mass=1.0,
        force=lambda t, q, v, p: [-p["c"] * v[0], -p["g"] - p["c"] * v[1]],
        constraint=lambda t, q, p: [0.5 * (q[0] ** 2 + q[1] ** 2 - p["length"] ** 2)],
        n_q=2,
        n_constraints=1,
        params={"g": 9.81, "c": 0.1, "length": 1.0},
        names=["x", "y"],
    )


def test_a_mechanism_of_index_3_whose_constraint_has_a_parameter():
    start = ([1.0, 0.0], [0.0, 0.0])
    found = daedal.gradient(
        pendulum(), (0.0, 2.0), start, final_cost=lambda t, q, v, p: q[0] + 0.5 * v[1], rtol=1e-9, atol=1e-11
    )
    forward = daedal.solve(pendulum(), (0.0, 2.0), start, sensitivities=True, rtol=1e-10, atol=1e-12)
    expected = [forward.sensitivity(name).q[0, -1] + 0.5 * forward.sensitivity(name).v[1, -1] for name in found.names]
    assert found.gradient == pytest.approx(expected, rel=1e-6)


def test_checkpoints_give_the_same_gradient():
    options = {"cost": lambda t, y, p: y[1] * 1e4, "final_cost": lambda t, y, p: y[0], "rtol": 1e-8, "atol": 1e-12}
    start = ([1.0, 0.0, 0.0], None)
    whole = daedal.gradient(robertson(), (0.0, 40.0), start, **options)
    pieces = daedal.gradient(robertson(), (0.0, 40.0), start, checkpoints=5, **options)
    assert pieces.value == pytest.approx(whole.value, rel=1e-6)
    assert pieces.gradient == pytest.approx(whole.gradient, rel=1e-5)


def heat(n, p):
    """A heated rod: one parameter for each cell, the heat that it receives."""

    def residual(t, y, yp, p):
        left = np.concatenate([[0.0], y[:-1]])
        right = np.concatenate([y[1:], [0.0]])
        return yp - n**2 * (left - 2.0 * y + right) - p

    return daedal.ImplicitDAE(residual, n, params=p, bandwidth=(1, 1))


@pytest.mark.parametrize("n", [20, 100], ids=["dense", "sparse"])
def test_many_parameters_of_a_linear_problem_agree_with_its_adjoint_matrix_exponential(n):
    """J = sum of y(T): dJ/dp = int_0^T exp(A^T s) 1 ds = A^-T (exp(A^T T) - I) 1."""
    from scipy.linalg import expm

    T, matrix = 0.02, n**2 * (np.diag(np.full(n, -2.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1))
    expected = np.linalg.solve(matrix.T, (expm(matrix.T * T) - np.eye(n)) @ np.ones(n))
    problem = heat(n, np.linspace(0.0, 1.0, n))
    found = daedal.gradient(problem, (0.0, T), (np.zeros(n), None), final_cost=lambda t, y, p: y.sum(), rtol=1e-8)
    assert found.gradient == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "give cost, final_cost, or both"),
        ({"cost": 3.0}, "must be a function"),
        ({"cost": lambda t, y, yp: yp[0]}, "takes yp, but it is a function of the state; expected (t, y) or (t, y, p)"),
        ({"cost": lambda t, y, p: np.linalg.eigvals(np.outer(y, y))[0]}, "cost cannot be differentiated"),
        ({"cost": lambda t, y, p: y[0], "parameters": ["kk"]}, "did you mean 'k'"),
        ({"cost": lambda t, y, p: y[0], "checkpoints": 0}, "checkpoints must be a positive"),
        ({"cost": lambda t, y, p: y[0], "t_eval": [0.0, 0.5]}, "t_eval cannot be given"),
        ({"cost": lambda t, y, p: y[0], "events": lambda t, y, yp: y[0]}, "runs with events"),
    ],
)
def test_bad_input_is_named(options, words):
    with pytest.raises(daedal.InvalidProblemError) as caught:
        daedal.gradient(decay(), (0.0, 1.0), ([1.0], None), **options)
    assert words in str(caught.value)


def test_equations_that_switch_are_refused_with_the_time():
    problem = daedal.ImplicitDAE(
        lambda t, y, yp, p: [yp[0] + p["k"] * (1.0 if y[0] > 0.5 else 3.0)], 1, params={"k": 1.0}, names=["x"]
    )
    with pytest.raises(daedal.InvalidProblemError, match=r"switch at t = 0\.5"):
        daedal.gradient(problem, (0.0, 1.0), ([1.0], None), final_cost=lambda t, y, p: y[0])


def bound(n_extra=0):
    """x' = -k x + z, y' = -y + z, 0 = x + c y - sin t: index 2, with z = (cos t + k x + c y) / (1 + c).

    With `n_extra`, so many further variables that decay, one after the other, with rates of their own.
    """

    def f(t, y, z, p):
        rest = [p["rates"][i] * (y[1 + i] - y[2 + i]) for i in range(n_extra)]
        own = [-p["k"] * y[0] + z[0], -y[1] + z[0]]
        return np.array([*own, *[x + 0.0 * y[0] for x in rest]])

    params = {"k": 0.7, "c": 0.4, "rates": np.linspace(1.0, 2.0, n_extra)} if n_extra else {"k": 0.7, "c": 0.4}
    return daedal.SemiExplicitDAE(
        f, lambda t, y, z, p: [y[0] + p["c"] * y[1] - np.sin(t)], 2 + n_extra, 1, params=params
    )


@pytest.mark.parametrize("n_extra", [0, 30, 62], ids=["small", "split", "sparse"])
def test_hessenberg_index_2_agrees_with_the_reduced_problem(n_extra):
    """On the constraint x = sin t - c y, so that y' = (cos t + k sin t - (k c + 1) y) / (1 + c) - ... is an ODE."""
    T, names = 1.5, ["k", "c"]
    start = np.concatenate([[0.0, 0.0], np.zeros(n_extra)])
    found = daedal.gradient(
        bound(n_extra),
        (0.0, T),
        (start, None),
        cost=lambda t, y, z, p: z[0] ** 2,
        final_cost=lambda t, y, z, p: y[0] + y[1 + n_extra],
        parameters=names,
        rtol=1e-8,
        atol=1e-10,
    )

    def cost(k, c):
        rates = np.linspace(1.0, 2.0, n_extra)

        def motion(t, y):
            x = np.sin(t) - c * y[0]
            z = (np.cos(t) + k * x + c * y[0]) / (1.0 + c)
            chain = rates * (y[:n_extra] - y[1 : 1 + n_extra]) if n_extra else []
            return np.concatenate([[-y[0] + z], chain, [z * z]])

        from scipy.integrate import solve_ivp

        y = solve_ivp(motion, (0.0, T), np.zeros(2 + n_extra), rtol=1e-11, atol=1e-13).y[:, -1]
        return y[-1] + np.sin(T) - c * y[0] + y[n_extra]

    h = 1e-4
    assert found.value == pytest.approx(cost(0.7, 0.4), rel=1e-6)
    assert found["k"] == pytest.approx((cost(0.7 + h, 0.4) - cost(0.7 - h, 0.4)) / (2.0 * h), rel=1e-5)
    assert found["c"] == pytest.approx((cost(0.7, 0.4 + h) - cost(0.7, 0.4 - h)) / (2.0 * h), rel=1e-5)


@pytest.mark.parametrize("n", [40, 150], ids=["dense", "sparse"])
def test_problems_without_a_band_agree_with_forward_sensitivities(n):
    """Cells on a ring, in an order that has no band, each with an algebraic flux."""
    order = np.random.default_rng(1).permutation(n)
    following = np.empty(n, dtype=int)
    following[order] = np.roll(order, -1)

    def f(t, y, z, p):
        return np.array([z[following[i]] - z[i] - 0.1 * p["loss"] * y[i] ** 2 for i in range(n)])

    def g(t, y, z, p):
        return np.array([z[i] - p["flow"] * (y[i] - y[following[i]]) for i in range(n)])

    problem = daedal.SemiExplicitDAE(f, g, n, n, params={"flow": 2.0, "loss": 0.5})
    start = (1.0 + np.sin(np.arange(n)), None)
    found = daedal.gradient(
        problem, (0.0, 1.0), start, final_cost=lambda t, y, z, p: y[0] ** 2 + z[3], rtol=1e-8, atol=1e-10
    )
    sol = daedal.solve(problem, (0.0, 1.0), start, sensitivities=True, rtol=1e-9, atol=1e-11, t_eval=[1.0])
    for name in found.names:
        s = sol.sensitivity(name)[:, -1]
        assert found[name] == pytest.approx(2.0 * sol.y[0, -1] * s[0] + s[n + 3], rel=1e-6)


def test_algebraic_variables_of_index_2_in_the_final_cost_are_refused_with_a_remedy():
    problem = daedal.ImplicitDAE(
        lambda t, y, yp, p: [yp[0] - y[1], y[0] - p["k"] * np.sin(t)], 2, params={"k": 1.0}, names=["x", "z"]
    )
    with pytest.raises(daedal.InvalidProblemError, match=r"index 2 or more.*reduce_index"):
        daedal.gradient(problem, (0.0, 1.0), ([0.0, 1.0], None), final_cost=lambda t, y, p: y[1])


def test_a_second_call_gives_the_same_bits_and_other_parameters_other_ones():
    problem, start, options = decay(), ([1.0], None), {"final_cost": lambda t, y, p: y[0] ** 2}
    first = daedal.gradient(problem, (0.0, 1.0), start, **options)
    other = daedal.gradient(problem, (0.0, 1.0), start, params={"k": 1.0}, **options)
    again = daedal.gradient(problem, (0.0, 1.0), start, **options)
    assert first == again or (first.value == again.value and np.array_equal(first.gradient, again.gradient))
    assert other["k"] == pytest.approx(-2.0 * np.exp(-2.0), rel=1e-5)


def test_states_of_first_order_beside_a_mechanism_survive_checkpoints():
    system = daedal.MechanicalSystem(
        mass=1.0,
        force=lambda t, q, v, r, p: [r[0] - p["k"] * q[0]],
        n_q=1,
        n_r=1,
        state_rate=lambda t, q, v, r, p: [-r[0] + v[0]],
        params={"k": 2},
        names=["x"],
    )
    options = {"final_cost": lambda t, q, v, r, p: q[0] + r[0], "rtol": 1e-9, "atol": 1e-11}
    start = ([1.0], [0.0], [0.5])
    whole = daedal.gradient(system, (0.0, 2.0), start, **options)
    pieces = daedal.gradient(system, (0.0, 2.0), start, checkpoints=2, **options)
    assert whole.names == ("k",)
    assert pieces.value == pytest.approx(whole.value, rel=1e-7)
    assert pieces.gradient == pytest.approx(whole.gradient, rel=1e-6)


def test_a_cost_that_jumps_is_refused_and_one_that_bends_is_not():
    """int max(x - 1/2, 0) dt with x = exp(-k t): up to t* = log(2) / k, where the integrand vanishes."""
    problem, start = decay(1.0), ([1.0], None)
    with pytest.raises(daedal.InvalidProblemError, match=r"cost is not differentiable: it jumps .* at t = 0\.693"):
        daedal.gradient(problem, (0.0, 2.0), start, cost=lambda t, y, p: 1.0 if y[0] > 0.5 else 0.0)
    for cost in (
        lambda t, y, p: np.maximum(y[0] - 0.5, 0.0),
        lambda t, y, p: np.where(y[0] > 0.5, y[0] - 0.5, 0.0),
    ):
        found = daedal.gradient(problem, (0.0, 2.0), start, cost=cost, rtol=1e-8, atol=1e-10)
        end = np.log(2.0)
        assert found["k"] == pytest.approx(end * 0.5 - 0.5, abs=1e-5)  # -int t exp(-t) dt up to t*


def test_vectors_of_parameters_stand_for_their_numbers():
    problem = daedal.ODE(lambda t, y, p: [-p["k"][0] * y[0] + p["k"][1]], 1, params={"k": [2.0, 0.5], "m": 1.0})
    found = daedal.gradient(
        problem, (0.0, 1.0), ([1.0], None), final_cost=lambda t, y, p: p["m"] * y[0], parameters=["k"]
    )
    assert found.names == ("k[0]", "k[1]")


def test_what_gradients_keep_goes_with_the_problem():
    problem = decay()
    daedal.gradient(problem, (0.0, 1.0), ([1.0], None), final_cost=lambda t, y, p: y[0])
    kept = weakref.ref(problem)
    del problem
    gc.collect()
    assert kept() is None
