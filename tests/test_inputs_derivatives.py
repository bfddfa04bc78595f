"""Derivatives of solutions and costs by inputs: constants and samples, forward and by adjoint equations."""

import numpy as np
import pytest

import daedal

TIGHT = {"rtol": 1e-9, "atol": 1e-11}
TIMES = [0.1, 0.5, 0.8]


def differences(f, x, h=1e-5):
    """Central differences of a function of a vector."""
    units = h * np.eye(len(x))
    return np.array([(f(x + unit) - f(x - unit)) / (2.0 * h) for unit in units]).T


def lag():
    return daedal.ODE(lambda t, y, p, u: [p["k"] * (u - y[0])], 1, params={"k": 1}, inputs=["u"])


def semi_explicit():
    """Of index 1, with the input in the constraint, so that z jumps."""
    return daedal.SemiExplicitDAE(
        lambda t, y, z, p: [-p["k"] * z[0]],
        lambda t, y, z, p, u: [y[0] - z[0] ** 3 - u],
        1,
        1,
        params={"k": 2},
        inputs=["u"],
    )


def of_index_2():
    """With the input in f_z, so that adjoint variables jump with it."""
    return daedal.SemiExplicitDAE(
        lambda t, y, z, p, u: [-p["k"] * y[0] + u * z[0], z[0] + y[0] * y[1]],
        lambda t, y, z: [y[0] + y[1] - 1.0],
        2,
        1,
        params={"k": 2.0},
        inputs=["u"],
    )


def cart():
    """A pendulum on a cart that is pushed, in Cartesian coordinates."""
    return daedal.MechanicalSystem(
        [2.0, 0.5, 0.5],
        lambda t, q, v, p, u: [u - 0.1 * v[0], 0.0, -0.5 * p["k"]],
        lambda t, q: [(q[1] - q[0]) ** 2 + q[2] ** 2 - 1.0],
        n_q=3,
        n_constraints=1,
        params={"k": 9.81},
        inputs=["u"],
    )


CASES = {
    "ODE": (lag, [0.3], 1.0),
    "index 1": (semi_explicit, ([2.0], None), 2.0),
    "index 2": (of_index_2, ([0.3, 0.7], None), 2.0),
    "mechanism": (cart, ([0.0, 0.6, -0.8], [0.0, 0.0, 0.0]), 9.81),
}
SAMPLES = [1.0, 0.9, 0.5]


@pytest.mark.parametrize("hold", ["zero", "first"])
@pytest.mark.parametrize("name", CASES)
def test_forward_and_adjoint_derivatives_by_samples_are_those_of_differences(name, hold):
    make, initial, k = CASES[name]
    problem, span = make(), (0.0, 1.0)
    options = {"hold": hold, "correct_initial": True, **TIGHT}

    def final(x):
        given = {"params": {"k": x[0]}, "inputs": {"u": (TIMES, x[1:])}}
        return daedal.solve(problem, span, initial, **given, **options).y[:, -1]

    expected = differences(final, np.array([k, *SAMPLES]))
    given = {"inputs": {"u": (TIMES, SAMPLES)}}
    sol = daedal.solve(problem, span, initial, sensitivities=True, **given, **options)
    assert sol.sensitivities.names == ("k", "u[0]", "u[1]", "u[2]")
    forward = np.array([np.asarray(sol.sensitivity(name))[:, -1] for name in sol.sensitivities.names]).T
    differential = [0] if name == "index 1" else [0, 1] if name == "index 2" else range(len(expected))
    assert forward[differential] == pytest.approx(expected[differential], abs=1e-6)
    adjoint = daedal.gradient(problem, span, initial, final_cost=lambda t, y: y[0], **given, **options)
    assert adjoint.names == sol.sensitivities.names
    assert adjoint.gradient == pytest.approx(expected[0], abs=1e-6)


def test_costs_take_inputs_and_checkpoints_do_not_change_the_gradient():
    def found(x, **options):
        given = {"params": {"k": x[0]}, "inputs": {"u": (TIMES, x[1:])}, "hold": "first"}
        cost = {"cost": lambda t, y, u: (y[0] - u) ** 2}
        return daedal.gradient(lag(), (0.0, 1.0), [0.3], **cost, **given, **TIGHT, **options)

    x = np.array([1.0, *SAMPLES])
    expected = differences(lambda x: found(x).value, x)
    assert found(x).gradient == pytest.approx(expected, abs=1e-6)
    assert found(x, checkpoints=3).gradient == pytest.approx(expected, abs=1e-6)


def test_vectors_of_samples_are_named_by_time_and_entry():
    problem = daedal.ODE(lambda t, y, w: [w[0] - y[0] * w[1]], 1, inputs={"w": [0.0, 0.0]})
    values = np.array([[1.0, 2.0], [0.5, 1.0], [2.0, 0.3]])

    def final(x):
        return daedal.solve(problem, (0.0, 1.0), [0.3], inputs={"w": (TIMES, x.reshape(3, 2))}, **TIGHT).y[:, -1]

    expected = differences(final, values.ravel())[0]
    names = tuple(f"w[{i}, {j}]" for i in range(3) for j in range(2))
    given = {"inputs": {"w": (TIMES, values)}, **TIGHT}
    adjoint = daedal.gradient(problem, (0.0, 1.0), [0.3], final_cost=lambda t, y: y[0], **given)
    sol = daedal.solve(problem, (0.0, 1.0), [0.3], sensitivities=["w"], **given)
    assert adjoint.names == sol.sensitivities.names == names
    assert adjoint.gradient == pytest.approx(expected, abs=1e-6)
    assert [sol.sensitivity(name)[0, -1] for name in names] == pytest.approx(expected, abs=1e-6)


def test_transitions_and_initial_values_of_modes_are_differentiated_with_samples():
    fall = daedal.MechanicalSystem(
        1.0, lambda t, q, v, p, lift: [lift - p["g"]], n_q=1, params={"g": 10.0}, inputs=["lift"], names=["h"]
    )
    bounce = daedal.hybrid.Transition(
        "air", "air", lambda t, q, v: q[0], direction=-1, reset=lambda t, q, v: (q, -0.9 * v)
    )
    ball = daedal.hybrid.HybridProblem({"air": fall}, [bounce])

    def final(x):
        start = ("air", ([x[0]], [0.0]))
        given = {"lift": ([0.0, 0.2, 0.3], x[2:])}
        return daedal.solve(ball.with_params({"g": x[1]}), (0.0, 1.0), start, inputs=given, **TIGHT).y[:, -1]

    x = np.array([1.0, 10.0, *SAMPLES])
    names = ["h(0)", "g", "lift[0]", "lift[1]", "lift[2]"]
    inputs = {"lift": ([0.0, 0.2, 0.3], SAMPLES)}
    sol = daedal.solve(ball, (0.0, 1.0), ("air", ([1.0], [0.0])), inputs=inputs, sensitivities=names, **TIGHT)
    found = np.array([sol.sensitivity(name)[:, -1] for name in names]).T
    assert found == pytest.approx(differences(final, x), abs=1e-5)


def test_break_points_do_not_take_sensitivities_away():
    sol = daedal.solve(lag(), (0.0, 1.0), [0.3], inputs={"u": 2.0}, sensitivities=["k"], breakpoints=[0.5], **TIGHT)
    assert sol.sensitivity("k")[0, -1] == pytest.approx(1.7 * np.exp(-1.0), abs=1e-8)


def test_what_is_no_number_is_no_derivative():
    table = {"u": daedal.Table([0.0, 0.5], [1.0, 3.0], kind="previous")}
    for given in (table, {"u": np.sin}):
        with pytest.raises(daedal.errors.UnknownNameError, match="there is no parameter or initial value 'u'"):
            daedal.solve(lag(), (0.0, 1.0), [0.3], inputs=given, sensitivities=["u"])
        with pytest.raises(daedal.errors.UnknownNameError, match="there is no parameter or initial value 'u'"):
            daedal.gradient(lag(), (0.0, 1.0), [0.3], inputs=given, parameters=["u"], final_cost=lambda t, y: y[0])
    with pytest.raises(daedal.InvalidProblemError, match="'k' is the name of a parameter"):
        daedal.ODE(lambda t, y, p, k: [k], 1, params={"k": 1.0}, inputs=["k"])
