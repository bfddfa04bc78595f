"""Initial values and parameters by name or by symbol; what is left out follows, or is named."""

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy.physics.mechanics import dynamicsymbols

import daedal
from daedal.initial.by_name import initial_by_name

t = dynamicsymbols._t
m, g = sympy.symbols("m g")
x, y = dynamicsymbols("x y")


def pendulum(**options):
    energy = m * (x.diff(t) ** 2 + y.diff(t) ** 2) / 2
    return daedal.lagrange(energy, m * g * y, [x, y], constraints=[x**2 + y**2 - 1], **options)


def plain_pendulum():
    return daedal.MechanicalSystem(
        lambda t, q, p: p["m"] * np.eye(2),
        lambda t, q, v, p: [0.0, -p["m"] * p["g"]],
        lambda t, q, p: [q @ q - 1.0],
        n_q=2,
        n_constraints=1,
        params={"m": 2.0, "g": 9.81},
        names=["x", "y"],
    )


# --- parameters -------------------------------------------------------------------------------------------------------


def test_parameters_without_numbers_are_named():
    system = pendulum(params={m: 2.0})
    with pytest.raises(daedal.InvalidProblemError, match=r"g has no value: give params=\{'g'"):
        daedal.solve(system, (0.0, 1.0), {x: 1.0, y: 0.0})
    with pytest.raises(daedal.InvalidProblemError, match="m, g have no value"):
        daedal.solve(pendulum(), (0.0, 1.0), ([1.0, 0.0], None))
    with pytest.raises(daedal.InvalidProblemError, match="m, g have no value"):
        daedal.consistent_initial(pendulum(), 0.0, ([1.0, 0.0], None))
    assert pendulum().functions["force"] == "traced, 2 operations"
    sol = daedal.prepare(pendulum()).solve((0.0, 1.0), {x: 1.0, y: 0.0}, params={m: 1.0, g: 9.81})
    assert sol.q[1, -1] == pytest.approx(-0.1650, abs=1e-3)


@pytest.mark.parametrize("key", [g, "g"])
@pytest.mark.parametrize("make", [lambda: pendulum(params={m: 2.0, g: 1.0}), plain_pendulum])
def test_a_run_takes_other_parameters_by_symbol_or_name(make, key):
    system = make()
    moon = daedal.solve(system, (0.0, 1.0), {"x": 1.0, "y": 0.0}, params={key: 2})
    same = daedal.solve(system.with_params({key: 2.0}), (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]))
    prepared = daedal.prepare(system).solve((0.0, 1.0), ([1.0, 0.0], None), params={key: 2.0})
    assert system.with_params({key: 2}).params == {"m": 2.0, "g": 2.0}
    np.testing.assert_array_equal(moon.q, same.q)
    np.testing.assert_array_equal(prepared.q, same.q)
    assert system.params["g"] != 2.0


def test_unknown_parameters_are_named():
    with pytest.raises(
        daedal.InvalidProblemError, match="'h' is not among the parameters of the problem; available are 'm', 'g'"
    ):
        daedal.solve(pendulum(params={m: 1.0, g: 1.0}), (0.0, 1.0), {x: 1.0, y: 0.0}, params={"h": 1.0})
    with pytest.raises(daedal.InvalidProblemError, match="must be a number"):
        pendulum(params={m: "heavy"})
    with pytest.raises(daedal.InvalidProblemError, match="two symbols of the same name"):
        pendulum(params={m: 1.0, sympy.Symbol("m", positive=True): 1.0})


def test_parameters_of_any_kind_are_replaced_for_one_run():
    decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p[0] * y[0]], 1, params=[1.0])
    sol = daedal.solve(decay, (0.0, 1.0), ([1.0], None), params=[2.0], rtol=1e-9)
    assert sol.y[0, -1] == pytest.approx(np.exp(-2.0), rel=1e-7)


# --- initial values ---------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.floats(0.1, 3.0), st.floats(-2.0, 2.0))
def test_positions_and_velocities_that_follow_are_found(angle, rate):
    """x from y on a circle, and both velocities from one of them."""
    system = plain_pendulum()
    q, v = np.array([np.sin(angle), -np.cos(angle)]), rate * np.array([np.cos(angle), np.sin(angle)])
    found = initial_by_name(system, 0.0, {"y": q[1], "y'": v[1]})
    side = np.sign(found[0][0])
    np.testing.assert_allclose(found[0], [side * q[0], q[1]], atol=1e-9)
    np.testing.assert_allclose(found[1], [side * v[0], v[1]], atol=1e-7)


def test_velocities_are_zero_as_far_as_the_constraints_allow():
    sol = daedal.solve(plain_pendulum(), (0.0, 0.1), {"x": 0.6, "y": -0.8})
    np.testing.assert_array_equal(sol.v[:, 0], [0.0, 0.0])
    moved = daedal.lagrange(lambda q, v: v @ v, None, 2, constraints=lambda q, t: [q[0] - 3.0 * t], names=["a", "b"])
    sol = daedal.solve(moved, (0.0, 0.1), {"a": 0.0, "b": 1.0})
    np.testing.assert_allclose(sol.v[:, 0], [3.0, 0.0], atol=1e-12)


def test_states_of_first_order_have_names_too():
    spring = daedal.MechanicalSystem(
        1.0, lambda t, q, v, r: [-r[0]], n_q=1, state_rate=lambda t, q, v, r: [q[0] - r[0]], n_r=1, names=["x"]
    )
    with pytest.raises(daedal.InvalidProblemError, match=r"no values for r\[0\]"):
        daedal.solve(spring, (0.0, 0.1), {"x": 1.0})
    sol = daedal.solve(spring, (0.0, 0.1), {"x": 1.0, "r[0]": 0.5})
    assert (sol.q[0, 0], sol.v[0, 0], sol.r[0, 0]) == (1.0, 0.0, 0.5)


def test_first_order_problems_take_names_too():
    k = sympy.Symbol("k")
    z = dynamicsymbols("z")
    problem = daedal.from_sympy([x.diff(t) + k * z, z - x - y, y - x**2], [x, y, z], params={k: 1.0})
    sol = daedal.solve(problem, (0.0, 0.5), {x: 1.0})
    np.testing.assert_allclose(sol.y[:, 0], [1.0, 1.0, 2.0], rtol=1e-12)
    semi = daedal.SemiExplicitDAE(
        lambda t, y, z: [-z[0]], lambda t, y, z: [z[0] - y[0]], 1, 1, names=["charge", "current"]
    )
    assert daedal.solve(semi, (0.0, 0.5), {"charge": 2.0}).z[0, 0] == pytest.approx(2.0)
    assert daedal.solve(semi, (0.0, 0.5), {"charge": 2.0, "current": 2.0}).z[0, 0] == pytest.approx(2.0)


def test_second_order_problems_take_names_too():
    problem = daedal.SecondOrderDAE(
        lambda t, x, xp, xpp: [xpp[0] + x[0] * x[2], xpp[1] + x[1] * x[2] + 9.81, x[0] ** 2 + x[1] ** 2 - 1.0],
        3,
        names=["x", "y", "lam"],
    )
    sol = daedal.solve(problem, (0.0, 0.5), {"x": 0.6, "y": -0.8, "x'": 0.4}, rtol=1e-8)
    assert sol.split(0)[1][1] == pytest.approx(0.6 * 0.4 / 0.8)
    assert sol.split(0)[0][2] == pytest.approx(0.8 * 9.81 + 0.4**2 + 0.3**2)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"x": 1.0}, "initial has no values for b, and the equations do not determine them"),
        ({"b": 1.0}, "initial has no values for x, y, and the equations do not determine them"),
        ({"x": 1.0, "c": 1.0}, "initial has 'c', which is not a variable; .*known: x, y, b, x', y', b'"),
        ({"x": 1.0, x: 1.0}, "initial has 'x' twice"),
        ({"x": np.nan, "b": 1.0}, r"initial\['x'\]"),
        ({1: 1.0}, "neither a name nor a symbol"),
    ],
)
def test_what_nothing_determines_is_named(start, message):
    system = daedal.lagrange(lambda q, v: v @ v, None, 3, constraints=lambda q: [q[1] - q[0] ** 2], names="x y b")
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.solve(system, (0.0, 1.0), start)


def test_values_that_cannot_be_completed_are_refused():
    with pytest.raises(daedal.InconsistentInitialError, match="no values of y consistent"):
        daedal.solve(plain_pendulum(), (0.0, 1.0), {"x": 2.0})
    with pytest.raises(daedal.InvalidProblemError, match="cannot be given by name"):
        daedal.solve(
            daedal.LinearDAE([[-1.0]], [[1.0]], [[1.0]], [[1.0]], [0.0], [0.0], n_x=1, n_y=1), (0.0, 1.0), {"x": 2.0}
        )


# --- compiled for good ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [pendulum, plain_pendulum])
def test_compiled_by_trace(make):
    system = make().with_params({"m": 2.0, "g": 9.81})
    fast = system.compiled(backend="trace")
    assert all(words.startswith(("traced", "exact")) for words in fast.functions.values())
    expected = daedal.solve(system, (0.0, 1.0), {"x": 1.0, "y": 0.0}, compile="never", rtol=1e-9)
    sol = daedal.solve(fast, (0.0, 1.0), {"x": 1.0, "y": 0.0}, rtol=1e-9)
    np.testing.assert_allclose(sol.q[:, -1], expected.q[:, -1], atol=1e-7)


def test_what_numba_cannot_compile_is_said():
    with pytest.raises(daedal.InvalidProblemError, match=r"Numba compiles plain functions only, .*backend='trace'"):
        pendulum(params={m: 1.0, g: 1.0}).compiled(backend="numba")
    equations = daedal.from_sympy([x.diff(t) + x], [x])
    with pytest.raises(daedal.InvalidProblemError, match="plain functions only, got <residual, 1 operations>"):
        equations.compiled("numba")
    sol = daedal.solve(equations.compiled(backend="trace"), (0.0, 1.0), {x: 1.0}, rtol=1e-9)
    assert sol.y[0, -1] == pytest.approx(np.exp(-1.0), rel=1e-7)
