"""Problems from SymPy: equations, Lagrange's and Kane's method, against their closed or hand-written forms."""

import numpy as np
import pytest
import sympy
from sympy.physics.mechanics import KanesMethod, LagrangesMethod, Particle, Point, ReferenceFrame, dynamicsymbols

import daedal

t = dynamicsymbols._t
m, g, length = sympy.symbols("m g l")


def test_equations_of_first_order_become_an_implicit_problem_with_its_jacobian():
    x, y, z = dynamicsymbols("x y z")
    k = sympy.Symbol("k")
    equations = [x.diff(t) + k * x - y * z, sympy.Eq(y.diff(t) * (1 + x**2), z), x + y + z - 1]
    problem = daedal.from_sympy(equations, [x, y, z], params={k: 0.5})
    assert isinstance(problem, daedal.ImplicitDAE) and problem.names == ("x", "y", "z")
    values, rates = np.array([0.2, 0.3, 0.5]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(
        problem.evaluate(0.0, values, rates), [1.0 + 0.1 - 0.15, 2.0 * 1.04 - 0.5, 0.0], atol=1e-15
    )
    matrix = problem.jacobian(0.0, values, rates, 10.0, problem.params)
    expected = [[10.5, -0.5, -0.3], [2 * 2.0 * 0.2, 10.0 * 1.04, -1.0], [1.0, 1.0, 1.0]]
    np.testing.assert_allclose(matrix, expected, rtol=1e-14)


def test_equations_of_second_order():
    x = dynamicsymbols("x")
    w = sympy.Symbol("w")
    problem = daedal.from_sympy([x.diff(t, 2) + w**2 * x], [x], params={w: 2.0})
    assert isinstance(problem, daedal.SecondOrderDAE)
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0], [0.0]), rtol=1e-8, atol=1e-10)
    assert sol.y[0, -1] == pytest.approx(np.cos(2.0), abs=1e-5)


def lagrangian_pendulum():
    x, y = dynamicsymbols("x y")
    energy = m * (x.diff(t) ** 2 + y.diff(t) ** 2) / 2 - m * g * y
    method = LagrangesMethod(energy, [x, y], hol_coneqs=[x**2 + y**2 - length**2])
    return method


def test_the_method_of_lagrange_with_a_holonomic_constraint():
    method = lagrangian_pendulum()
    method.form_lagranges_equations()
    system = daedal.from_sympy(method, params={m: 2.0, g: 9.81, length: 1.0})
    assert (system.n_q, system.n_constraints, system.names) == (2, 1, ("x", "y"))
    sol = daedal.solve(system, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), rtol=1e-8)
    by_hand = daedal.MechanicalSystem(
        2.0, lambda t, q, v: [0.0, -2.0 * 9.81], lambda t, q: [q @ q - 1.0], n_q=2, n_constraints=1
    )
    reference = daedal.solve(by_hand, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), rtol=1e-8)
    np.testing.assert_allclose(sol.q[:, -1], reference.q[:, -1], atol=1e-6)
    np.testing.assert_allclose(sol.lam[:, -1], reference.lam[:, -1], rtol=1e-5)


def test_the_method_of_lagrange_with_a_nonholonomic_constraint():
    x, y, angle = dynamicsymbols("x y angle")
    speeds = [z.diff(t) for z in (x, y, angle)]
    energy = sum(s**2 for s in speeds) / 2 + g * x
    method = LagrangesMethod(
        energy, [x, y, angle], nonhol_coneqs=[speeds[0] * sympy.sin(angle) - speeds[1] * sympy.cos(angle)]
    )
    method.form_lagranges_equations()
    system = daedal.from_sympy(method, params={g: 2.0})
    sol = daedal.solve(system, (0.0, 2.0), ([0.0, 0.0, 0.0], [0.0, 0.0, 1.5]), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(sol.q[0], 2.0 / (2 * 1.5**2) * np.sin(1.5 * sol.t) ** 2, atol=1e-6)


def test_the_method_of_kane():
    q, u = dynamicsymbols("q u")
    frame, origin, bob = ReferenceFrame("N"), Point("O"), Point("B")
    turned = frame.orientnew("A", "Axis", [q, frame.z])
    origin.set_vel(frame, 0)
    bob.set_pos(origin, -length * turned.y)
    bob.set_vel(frame, length * u * turned.x)
    kane = KanesMethod(frame, q_ind=[q], u_ind=[u], kd_eqs=[q.diff(t) - u])
    kane.kanes_equations([Particle("bob", bob, m)], [(bob, -m * g * frame.y)])
    problem = daedal.from_sympy(kane, params={m: 1.0, g: 9.81, length: 2.0})
    assert problem.names == ("q", "u")
    sol = daedal.solve(problem, (0.0, 1.0), ([0.1, 0.0], None), rtol=1e-8, atol=1e-10)
    ode = daedal.solve_dae(
        lambda t, y, yp: [yp[0] - y[1], yp[1] + 9.81 / 2.0 * np.sin(y[0])],
        (0.0, 1.0),
        [0.1, 0.0],
        None,
        rtol=1e-8,
        atol=1e-10,
    )
    np.testing.assert_allclose(sol.y[:, -1], ode.y[:, -1], atol=1e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([dynamicsymbols("x").diff(t, 3)], [dynamicsymbols("x")]), "beyond the second"),
        (([dynamicsymbols("x")], [dynamicsymbols("x"), dynamicsymbols("y")]), "1 equations for 2 unknowns"),
        (([dynamicsymbols("x") + dynamicsymbols("y")], [dynamicsymbols("x")]), r"y\(t\) is neither an unknown"),
        (([dynamicsymbols("x") + sympy.gamma(m)], [dynamicsymbols("x")]), r"gamma\(m\) is neither an unknown"),
        (([m], [m]), "functions of time"),
        (([m],), "unknowns must list"),
        ((lagrangian_pendulum(),), "form_lagranges_equations"),
        ((KanesMethod(ReferenceFrame("N"), [dynamicsymbols("x")], [dynamicsymbols("u")], []),), "kanes_equations"),
    ],
)
def test_what_is_incomplete_is_refused(arguments, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.from_sympy(*arguments)
