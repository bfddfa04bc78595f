"""Linear models of problems of any class and index against closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal import circuits
from daedal.hybrid import HybridProblem, Transition
from daedal.multibody import Body, Model, Revolute, ground

G = 9.81


def cartesian(t, s, sp, force):
    x, y, u, v, lam = s
    return [sp[0] - u, sp[1] - v, sp[2] + lam * x - force, sp[3] + lam * y + G, x**2 + y**2 - 1]


PENDULUM = daedal.ImplicitDAE(cartesian, 5, names=["x", "y", "u", "v", "lam"], inputs=["force"])
MECHANISM = daedal.MechanicalSystem(
    1.0,
    lambda t, q, v, f: [f, -G + 0.0 * q[0]],
    lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1],
    n_q=2,
    n_constraints=1,
    names=["x", "y"],
    inputs=["f"],
)


def in_x(x, v):
    """x'' = -x v^2 / (1 - x^2) - g x sqrt(1 - x^2) + f (1 - x^2), linearised at f = 0."""
    c = 1.0 - x**2
    return (
        [[0.0, 1.0], [-(v**2) * (1 + x**2) / c**2 - G * (np.sqrt(c) - x**2 / np.sqrt(c)), -2.0 * x * v / c]],
        [[0.0], [c]],
    )


def test_pendulum_on_a_cart_has_the_matrices_of_the_textbook():
    """Cart M = 2, pendulum m = 0.5 at l = 0.8, hanging at phi = 0; force on the cart."""
    M, m, length = 2.0, 0.5, 0.8
    problem = daedal.MechanicalSystem(
        lambda t, q: [[M + m, m * length * np.cos(q[1])], [m * length * np.cos(q[1]), m * length**2]],
        lambda t, q, v, force: [force + m * length * np.sin(q[1]) * v[1] ** 2, -m * G * length * np.sin(q[1])],
        n_q=2,
        names=["s", "phi"],
        inputs=["force"],
    )
    found = daedal.linearise(problem, ([0.3, 0.0], [0.0, 0.0]), outputs=["s", "phi"])
    assert found.is_equilibrium and found.exact
    assert found.states == ("s", "phi", "s'", "phi'")
    expected = np.zeros((4, 4))
    expected[:2, 2:] = np.eye(2)
    expected[2, 1], expected[3, 1] = m * G / M, -(M + m) * G / (M * length)
    np.testing.assert_allclose(found.A, expected, atol=1e-13)
    np.testing.assert_allclose(found.B.ravel(), [0.0, 0.0, 1 / M, -1 / (M * length)], atol=1e-14)
    np.testing.assert_allclose(found.C, np.eye(4)[:2], atol=1e-14)
    np.testing.assert_allclose(found.D, np.zeros((2, 1)), atol=1e-16)
    s = 0.3 + 1.2j
    denominator = M * length * s**2 + (M + m) * G
    closed = [(length * s**2 + G) / (s**2 * denominator), -1.0 / denominator]
    np.testing.assert_allclose(found.transfer(s).ravel(), closed, rtol=1e-12)


@pytest.mark.parametrize("x, v", [(0.0, 0.0), (0.6, 0.8), (-0.3, 1.7)])
@pytest.mark.parametrize("kind", ["residual", "mechanism", "second order"])
def test_cartesian_pendulum_equals_the_minimal_coordinates(kind, x, v):
    y = -np.sqrt(1 - x**2)
    q, rates = [x, y], [v, -x * v / y]
    if kind == "residual":
        found = daedal.linearise(PENDULUM, ([*q, *rates, 0.0], None))
    elif kind == "mechanism":
        found = daedal.linearise(MECHANISM, (q, rates))
    else:

        def equations(t, s, sp, spp, f):
            return [spp[0] + s[2] * s[0] - f, spp[1] + s[2] * s[1] + G, s[0] ** 2 + s[1] ** 2 - 1]

        problem = daedal.SecondOrderDAE(equations, 3, names=["x", "y", "lam"], inputs=["f"])
        found = daedal.linearise(problem, ([*q, 0.0], [*rates, 0.0]))
    assert found.states[0] == "x"
    A, B = in_x(x, v)
    np.testing.assert_allclose(found.A, A, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.B, B, rtol=1e-9, atol=1e-9)


def test_linearisation_along_a_solution_predicts_its_neighbour():
    """The product of the exponentials of A over short intervals carries a small change from start to end."""
    from scipy.linalg import expm

    times = np.linspace(0.0, 0.5, 401)
    mean = 0.5 * (times[1:] + times[:-1])

    def run(x, v):
        y = -np.sqrt(1 - x**2)
        return daedal.solve(MECHANISM, (0.0, 0.5), ([x, y], [v, -x * v / y]), rtol=1e-11, atol=1e-12)

    sol = run(0.2, 0.9)
    models = daedal.linearise(MECHANISM, sol, t=mean)
    assert len(models) == 400 and all(model.states == ("x", "x'") for model in models)
    change = np.array([1e-6, -2e-6])
    for model in models:
        change = expm(model.A * (times[1] - times[0])) @ change
    other = run(0.2 + 1e-6, 0.9 - 2e-6)
    moved = [other.q[0, -1] - sol.q[0, -1], other.v[0, -1] - sol.v[0, -1]]
    np.testing.assert_allclose(change, moved, rtol=1e-3)


def test_rlc_circuit_of_index_2():
    """A voltage input across C0 parallel to R, L and C in series: the current through the source is improper."""
    R, L, C, C0 = 2.0, 0.5, 0.25, 0.1

    def equations(t, x, xp, u):
        i, v, source, v0 = x  # through L, over C, through the source, over C0
        v0p = xp[3]
        return [L * xp[0] + R * i + v - v0, C * xp[1] - i, C0 * v0p + i + source, v0 - u]

    names = ["i", "v", "source", "v0"]
    problem = daedal.ImplicitDAE(equations, 4, names=names, inputs=["u"])
    found = daedal.linearise(problem, (np.zeros(4), None), inputs={"u": 0.0}, outputs=["v", "source"])
    assert set(found.states) == {"i", "v"}
    np.testing.assert_allclose(np.sort_complex(found.poles), np.sort_complex(np.roots([L * C, R * C, 1.0])), rtol=1e-12)
    s = 0.7 - 2.0j
    admittance = 1.0 / (R + L * s + 1.0 / (C * s))
    np.testing.assert_allclose(found.transfer(s).ravel(), [admittance / (C * s), -admittance - C0 * s], rtol=1e-12)
    np.testing.assert_allclose(found.input_derivatives[0].ravel(), [0.0, -C0], atol=1e-14)
    with pytest.raises(daedal.InvalidProblemError, match="output 'source' depends on derivative 1 of input 'u'"):
        tuple(found)
    E, A, B, _ = found.descriptor
    values = np.linalg.solve(s * E - A, B).ravel()
    np.testing.assert_allclose(values[1:3], found.transfer(s).ravel(), rtol=1e-12)


def test_feedthrough_of_an_algebraic_output():
    """y' = -2 y + z, 0 = z - 3 y - 4 u: z = 3 y + 4 u."""
    problem = daedal.SemiExplicitDAE(
        lambda t, y, z, u: [-2.0 * y[0] + z[0]], lambda t, y, z, u: [z[0] - 3.0 * y[0] - 4.0 * u], 1, 1, inputs=["u"]
    )
    outputs = {"z": lambda t, y, z: z[0], "both": lambda t, y, z, u: y[0] * z[0] + 5.0 * u}
    found = daedal.linearise(problem, ([1.0], [3.0]), outputs=outputs)
    np.testing.assert_allclose(np.block([[found.A, found.B], [found.C, found.D]]), [[1, 4], [3, 4], [6, 9]], rtol=1e-14)
    import scipy.signal

    system = scipy.signal.StateSpace(*found)
    assert system.A.shape == (1, 1)


@given(st.permutations(range(5)), st.lists(st.integers(-3, 3), min_size=10, max_size=10))
@settings(max_examples=10, deadline=None)
def test_poles_do_not_change_with_permutation_and_scaling(order, powers):
    order, scale = np.array(order), 2.0 ** np.array(powers)

    def other(t, s, sp, force):
        x, xp = np.array([0.0 * s[0]] * 5), np.array([0.0 * s[0]] * 5)
        for k, j in enumerate(order):
            x[j], xp[j] = scale[k] * s[k], scale[k] * sp[k]
        rows = cartesian(t, x, xp, force)
        return [scale[5 + k] * rows[j] for k, j in enumerate(order[::-1])]

    problem = daedal.ImplicitDAE(other, 5, inputs=["force"])
    point = np.array([0.0, -1.0, 0.0, 0.0, G])[order] / scale[:5]
    found = daedal.linearise(problem, (point, np.zeros(5)))
    np.testing.assert_allclose(found.poles, [-1j * np.sqrt(G), 1j * np.sqrt(G)], atol=1e-12)


def test_equilibrium_is_found_from_a_guess():
    found = daedal.linearise(PENDULUM, {"x": 0.1, "y": -1.3}, equilibrium=True, inputs={"force": 4.0})
    assert found.is_equilibrium and found.is_stable
    angle = math.atan2(4.0, G)
    np.testing.assert_allclose([found.point["x"], found.point["y"]], [math.sin(angle), -math.cos(angle)], rtol=1e-12)
    np.testing.assert_allclose(abs(found.poles), math.sqrt(math.hypot(4.0, G)), rtol=1e-12)
    with pytest.raises(daedal.InvalidProblemError, match="no equilibrium was found"):
        daedal.linearise(daedal.ODE(lambda t, y: [1.0 + y[0] ** 2], 1), [3.0], equilibrium=True)


@pytest.mark.parametrize("equilibrium", [False, True])
def test_untraceable_functions_are_differenced(equilibrium):
    def f(t, y, u):
        return [y[1], -math.sin(float.fromhex(float(y[0]).hex())) - 0.2 * y[1] + u]

    plain = daedal.ODE(f, 2, inputs=["u"], names=["x", "v"])
    point = [0.4, 0.0]
    found = daedal.linearise(plain, point, equilibrium=equilibrium, outputs=["v", "v'"])
    c = 1.0 if equilibrium else math.cos(0.4)
    assert not found.exact and found.states == ("x", "v")
    np.testing.assert_allclose(found.A, [[0, 1], [-c, -0.2]], atol=1e-8)
    np.testing.assert_allclose(found.C, [[0, 1], [-c, -0.2]], atol=1e-8)
    np.testing.assert_allclose(np.c_[found.B, found.D], [[0, 0], [1, 1]], atol=1e-8)


def test_misleading_structure_is_linearised_from_its_pencil():
    """x' + y' = -x + u, x' + y' - x - y = 0 with structural index 0: x + y is the only state."""
    problem = daedal.ImplicitDAE(
        lambda t, y, yp, u: [yp[0] + yp[1] + y[0] - u, yp[0] + yp[1] - y[0] - y[1]], 2, inputs=["u"]
    )
    found = daedal.linearise(problem, ([0.0, 0.0], [0.0, 0.0]))
    np.testing.assert_allclose(found.poles, [1.0], rtol=1e-12)
    s = 2.0 + 1.0j
    E, A, B, _ = found.descriptor
    np.testing.assert_allclose(found.transfer(s), np.linalg.solve(s * E - A, B), rtol=1e-12)


def test_linear_and_hessenberg_problems():
    linear = daedal.LinearDAE([[-1.0]], [[1.0]], [[1.0]], [[-2.0]], [0.0], [0.0], n_x=1, n_y=1)
    np.testing.assert_allclose(daedal.linearise(linear, ([1.0], [0.5])).A, [[-0.5]], rtol=1e-14)
    hessenberg = daedal.HessenbergDAE(
        [[-3.0, 0.0], [1.0, -2.0]], [[1.0], [0.0]], [[1.0, 0.0]], [0.0, 0.0], [0.0], n_x=2, n_y=1
    )
    found = daedal.linearise(hessenberg, [0.0, 1.0])
    np.testing.assert_allclose(found.poles, [-2.0], rtol=1e-14)


def test_model_with_a_loop_agrees_with_its_own_linearisation():
    rods = [Body.rod(name, length=length, mass=1.0) for name, length in (("a", 1.0), ("b", 3.0), ("c", 2.0))]
    model = Model(
        Revolute("A", ground, rods[0].start),
        Revolute("B", rods[0].end, rods[1].start),
        Revolute("C", rods[1].end, rods[2].end),
        Revolute("D", ground.at(3.0, 0.0), rods[2].start),
        gravity=(0.0, -G),
        planar=True,
    )
    rest = model.equilibrium(guess={"A": -1.0})
    found, own = daedal.linearise(model, rest), model.linearise(rest)
    assert len(found.states) == 2 and found.is_equilibrium
    np.testing.assert_allclose(np.abs(found.poles), np.abs(own.eigenvalues), rtol=1e-8)


def test_circuit_is_linearised_at_its_operating_point():
    circuit = circuits.parse("V1 a 0 1\nR1 a b 1k\nC1 b 0 1u")
    found = daedal.linearise(circuit)
    np.testing.assert_allclose(found.poles, [-1e3], rtol=1e-12)


def test_vector_inputs_and_parameters_are_columns():
    problem = daedal.ODE(
        lambda t, y, p, u: [-p["k"] * y[0] + u[0] + 3.0 * u[1] + u[2]],
        1,
        params={"k": 2.0},
        inputs={"w": [0.0, 0.0], "h": 1.0},
    )
    found = daedal.linearise(problem, [0.0], params={"k": 5.0})
    assert found.inputs == ("w[0]", "w[1]", "h")
    np.testing.assert_allclose(np.c_[found.A, found.B], [[-5, 1, 3, 1]])
    assert daedal.linearise(problem, [0.0], inputs=["h"]).B.tolist() == [[1.0]]


def test_modes_and_sampled_inputs_along_a_solution():
    modes = {
        "on": daedal.ODE(lambda t, y, power: [power - y[0]], 1, inputs={"power": 2.0}),
        "off": daedal.ODE(lambda t, y, power: [-3.0 * y[0] ** 2], 1, inputs={"power": 2.0}),
    }
    problem = HybridProblem(modes, [Transition("on", "off", lambda t, y: 1.2 - y[0], direction=-1)])
    sol = daedal.solve(problem, (0.0, 1.0), ("on", [1.0]))
    first, second = daedal.linearise(problem, sol, t=[0.1, 0.9])
    np.testing.assert_allclose([first.A, first.B], [[[-1.0]], [[1.0]]])
    np.testing.assert_allclose([second.A, second.B], [[[-6.0 * float(sol(0.9)[0])]], [[0.0]]], rtol=1e-6)
    assert daedal.linearise(problem, ("off", [0.5])).A == pytest.approx(-3.0)
    with pytest.raises(daedal.InvalidProblemError, match=r"at=\(mode, values\), with a mode of on, off"):
        daedal.linearise(problem, [0.5])
    samples = {"f": ([0.0, 0.25], [0.0, 3.0])}
    run = daedal.solve(MECHANISM, (0.0, 0.5), ([0.0, -1.0], [0.0, 0.0]), inputs=samples)
    before, after = daedal.linearise(MECHANISM, run, t=[0.1, 0.4], inputs=samples)
    assert before.is_equilibrium and not after.is_equilibrium


def test_bad_input_is_refused_with_a_remedy():
    with pytest.raises(daedal.errors.UnknownNameError, match="did you mean 'force'"):
        daedal.linearise(PENDULUM, ([0.0, -1.0, 0, 0, G], None), inputs=["froce"])
    with pytest.raises(daedal.errors.UnknownNameError, match="'z' is not an unknown"):
        daedal.linearise(PENDULUM, ([0.0, -1.0, 0, 0, G], None), outputs=["z"])
    with pytest.raises(daedal.InvalidProblemError, match="at is missing"):
        daedal.linearise(PENDULUM)
    with pytest.raises(daedal.InconsistentInitialError):
        daedal.linearise(daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] ** 2 + 1], 2), ([1.0, 0.0], None))
    with pytest.raises(daedal.InvalidProblemError, match="defined without inputs"):
        daedal.linearise(daedal.ODE(lambda t, y: [-y[0]], 1), [0.0], inputs=["u"])


def test_modes_and_text_name_what_moves():
    found = daedal.linearise(PENDULUM, ([0.0, -1.0, 0.0, 0.0, G], None))
    [mode] = found.modes
    assert mode.frequency == pytest.approx(np.sqrt(G) / (2 * np.pi))
    assert abs(mode.shape["u'"] / mode.shape["x"] + G) < 1e-12
    assert "states  x and u" in str(found)


def test_model_of_one_rod_has_the_frequency_of_the_pendulum():
    """A rod hanging from its end: omega^2 = 3 g / (2 L)."""
    rod = Body.rod("rod", length=2.0, mass=1.0)
    model = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -G), planar=True)
    found = daedal.linearise(model, model.assemble(pivot=-np.pi / 2))
    np.testing.assert_allclose(found.poles, [-1j * np.sqrt(0.75 * G), 1j * np.sqrt(0.75 * G)], atol=1e-10)
