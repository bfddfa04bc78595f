"""The recursive algorithms against each other, against dense matrices and against the printed formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daedal.errors import InvalidProblemError
from daedal.multibody import Body, Model, Revolute, aba, accelerations, crba, ground, rnea
from daedal.multibody.closure import OFFSET, Closures, chains_of
from daedal.multibody.kinematics import coordinate_rates, map_matrix, placement, velocities
from multibody_models import loop_bias, loop_jacobian, random_machine, random_state, reduction


def dense_solution(layout, q, u, tau, forces=None, torques=None):
    """The augmented system (2.14) with minimal-norm multipliers: accelerations, multipliers, matrix J."""
    tree, closures = layout.tree, layout.closures
    placed = placement(tree, q)
    jacobian = loop_jacobian(tree, placed, closures)
    gamma = loop_bias(tree, placed, velocities(tree, placed, u), closures)
    rest = tau - rnea(layout, q, u, np.zeros(layout.n_v), forces=forces, torques=torques)
    m = gamma.size
    matrix = np.block([[crba(layout, q), jacobian.T], [jacobian, np.zeros((m, m))]])
    solution = np.linalg.lstsq(matrix, np.concatenate([rest, gamma]), rcond=1e-13)[0]
    return solution[: layout.n_v], solution[layout.n_v :], jacobian


@given(st.integers(1, 25), st.integers(0, 10**6))
def test_rnea_crba_and_aba_agree_on_random_trees(n, seed):
    layout = random_machine(n, seed).layout()
    q, u, a = random_state(layout, seed)
    forces, torques = np.random.default_rng(seed).normal(size=(2, n, 3))
    tau = rnea(layout, q, u, a, forces=forces, torques=torques)
    mass, bias = crba(layout, q), rnea(layout, q, u, np.zeros_like(a), forces=forces, torques=torques)
    size = np.abs(mass).max(initial=0.0) * np.abs(a).max(initial=0.0) + np.abs(bias).max(initial=0.0)
    assert np.allclose(mass @ a + bias, tau, rtol=0.0, atol=1e-13 * n * size)
    found = aba(layout, q, u, tau, forces=forces, torques=torques)
    assert np.allclose(mass @ (found - a), 0.0, rtol=0.0, atol=1e-13 * n * size)


@pytest.mark.parametrize("seed", range(7))
def test_recursive_elimination_is_the_augmented_solve(seed):
    n, loops = 6 + 4 * seed, seed % 4
    layout = random_machine(n, seed, loops=loops).layout(cut=[f"loop {i}" for i in range(loops)])
    q, u, tau = random_state(layout, seed)
    forces, torques = np.random.default_rng(seed).normal(size=(2, n, 3))
    found = accelerations(layout, q, u, tau, forces=forces, torques=torques)
    a, multipliers, jacobian = dense_solution(layout, q, u, tau, forces, torques)
    assert found.redundant == 0
    assert np.allclose(found.u, a, rtol=0.0, atol=1e-12 * np.abs(a).max())
    assert np.allclose(found.multipliers, multipliers, rtol=0.0, atol=1e-12 * np.abs(multipliers).max(initial=1.0))
    assert len(jacobian) == 3 * loops


@pytest.mark.parametrize("seed", (1, 2))
def test_conditions_of_loops_have_the_derivatives_of_their_residuals(seed):
    model = random_machine(4, seed, loops=1)
    layout = model.layout()
    tree, closures = layout.tree, layout.closures
    q, u, _ = random_state(layout, seed)
    traced = model.system().compiled(backend="trace")
    m, v, placed = closures.kind.size, coordinate_rates(tree, q, u), placement(tree, q)
    jacobian = loop_jacobian(tree, placed, closures) @ map_matrix(tree, q)
    gamma = loop_bias(tree, placed, velocities(tree, placed, u), closures)
    exact = traced.constraint_jacobian(0.0, q)[-m:]
    # q is of unit length where it has Euler parameters: along them the rows of J N are zero, those of g are not
    along = map_matrix(tree, q)
    back = np.linalg.pinv(along)
    assert np.allclose(jacobian @ back, exact @ back, rtol=0.0, atol=1e-12)
    radial = v - back @ (along @ v)
    assert np.allclose(radial, 0.0, atol=1e-13)
    # q'' of zero accelerations of the joints is -|p'|^2 p
    bend = second_derivative_at_rest(layout, q, v)
    assert np.allclose(gamma, traced.acceleration_bias(0.0, q, v)[-m:] - exact @ bend, rtol=0.0, atol=1e-11)


def second_derivative_at_rest(layout, q, v):
    """The second derivatives of the coordinates where the velocities of the joints do not change."""
    tree, result = layout.tree, np.zeros(layout.n_q)
    for j in np.flatnonzero(np.diff(tree.first_q) > np.diff(tree.first_v)):
        p = slice(tree.first_q[j + 1] - 4, tree.first_q[j + 1])
        result[p] = -(v[p] @ v[p]) * q[p]
    return result


def two_rods(l1, l2, m1, m2, g):
    """Rods of lengths 2 l1 and 2 l2 (example 2.4); gravity along x."""
    one, two = Body.rod("one", length=2 * l1, mass=m1), Body.rod("two", length=2 * l2, mass=m2)
    hinges = Revolute("phi1", ground, one.start), Revolute("phi2", one.end, two.start)
    return Model(*hinges, gravity=(g, 0.0), planar=True)


def test_double_pendulum_satisfies_the_printed_equation():
    l1, l2, m1, m2, g = 1.0, 2.0, 1.0, 2.0, 9.81
    (p1, p2), (w1, _) = q, u = np.array([0.4, -0.9]), np.array([1.3, -0.7])
    a1, a2 = accelerations(two_rods(l1, l2, m1, m2, g), q, u).u
    j2 = m2 * l2**2 / 3.0
    left = (m2 * l2**2 + j2) * (a1 + a2) + 2 * m2 * l1 * l2 * (a1 * np.cos(p2) + w1**2 * np.sin(p2))
    assert abs(left + m2 * g * l2 * np.sin(p1 + p2)) < 1e-13 * m2 * g * l2  # (2.38)


def test_reduction_of_the_crank_slider_step_by_step():
    """Appendices A and B in the plane for example 2.6: the end of the second rod stays on the x axis."""
    l, m, g = (1.0, 2.0), (1.0, 2.0), 9.81
    q, u = np.array([0.5, -0.8]), np.array([1.1, 0.6])
    layout = two_rods(*l, *m, g).layout()
    tree = layout.tree
    closures = Closures(  # r_2y + l_2 sin(phi_1 + phi_2) = 0
        np.array([OFFSET]),
        np.array([1]),
        np.array([0]),
        np.array([[-1, 1]]),
        np.array([[[0.0, 0.0, 0.0], [l[1], 0.0, 0.0]]]),
        np.tile(np.eye(3), (1, 2, 1, 1)),
    )
    placed = placement(tree, q)
    moving = velocities(tree, placed, u)
    left, reduced = reduction(
        tree, closures, chains_of(tree, closures), placed, moving, np.zeros(2), np.zeros((2, 3)), np.zeros((2, 3))
    )

    angles, rates = np.cumsum(q), np.cumsum(u)
    half = [l[k] * np.array([np.cos(angles[k]), np.sin(angles[k])]) for k in range(2)]
    turned = [np.array([-h[1], h[0]]) for h in half]
    way = half[0] + half[1]
    b = [np.append(turned[k], 1.0) for k in range(2)]
    shift = np.array([[1.0, 0.0, -way[1]], [0.0, 1.0, way[0]], [0.0, 0.0, 1.0]])
    c = [np.append(-(rates[0] ** 2) * half[0], 0.0)]
    c += [np.append(-(rates[0] ** 2) * half[0] - rates[1] ** 2 * half[1], 0.0)]
    mass = [np.diag([m[k], m[k], m[k] * l[k] ** 2 / 3.0]) for k in range(2)]
    load = [np.array([m[k] * g, 0.0, 0.0]) for k in range(2)]
    phi, psi, gamma = np.array([0.0, 1.0, half[1][0]]), 0.0, 0.0
    bias = rates[1] ** 2 * half[1][1]
    for j in (1, 0):
        d = 1.0 / (b[j] @ mass[j] @ b[j])
        pi = np.eye(3) - d * np.outer(mass[j] @ b[j], b[j])
        assert np.allclose([left.pivot[j], left.drive[j]], [1.0 / d, b[j] @ (load[j] - mass[j] @ c[j])], rtol=1e-14)
        psi -= d * (phi @ b[j]) ** 2
        gamma += -phi @ c[j] + d * (phi @ b[j]) * (b[j] @ (mass[j] @ c[j] - load[j]))
        assert np.isclose(reduced.product[j], phi @ b[j], rtol=1e-13)
        if j == 1:
            phi = shift.T @ pi @ phi
            mass[0] = mass[0] + shift.T @ pi @ mass[1] @ shift
            load[0] = load[0] - shift.T @ pi @ (mass[1] @ c[1] - load[1])
    assert np.allclose(-reduced.psi, psi, rtol=1e-13)
    assert np.allclose(-reduced.gamma, gamma + bias, rtol=1e-12)


def four_bar(axis=(0.0, 0.0, 1.0)):
    crank, rocker = Body.rod("crank", length=1.0, mass=1.0), Body.rod("rocker", length=1.0, mass=1.5)
    coupler = Body.rod("coupler", length=2.0, mass=2.0)
    return (
        Revolute("A", ground, crank.start, axis=axis),
        Revolute("B", crank.end, coupler.start, axis=axis),
        Revolute("C", rocker.end, coupler.end, axis=axis),
        Revolute("D", ground.at(2.0, 0.0), rocker.start, axis=axis),
    )


def test_redundant_loops_get_the_shortest_reactions():
    spatial, planar = (Model(*four_bar(), gravity=(0.0, -9.81), planar=planar) for planar in (False, True))
    angles = {"A": 0.7, "B": -0.7, "C": -0.7, "D": 0.7}
    layout = spatial.layout()
    q = np.array([angles[name] for name in layout.names])
    u = 1.3 * np.sign(q) * np.where(np.abs(q) > 0, 1.0, 0.0)
    found = accelerations(spatial, q, u)
    a, multipliers, _ = dense_solution(layout, q, u, np.zeros(layout.n_v))
    assert found.redundant == 3
    assert np.allclose(found.u, a, rtol=0.0, atol=1e-12 * np.abs(a).max())
    assert np.allclose(found.multipliers, multipliers, rtol=0.0, atol=1e-12 * np.abs(multipliers).max())
    plane = accelerations(planar, q, u)
    assert plane.redundant == 0
    assert np.allclose(found.u, plane.u, rtol=0.0, atol=1e-12 * np.abs(a).max())


def test_loops_that_share_no_body_are_solved_apart():
    parts = []
    for k in range(3):
        crank, rocker = Body.rod(f"crank {k}", length=1.0, mass=1.0), Body.rod(f"rocker {k}", length=1.0, mass=1.0)
        coupler = Body.rod(f"coupler {k}", length=2.0, mass=1.0)
        parts += [
            Revolute(f"A{k}", ground, crank.start),
            Revolute(f"B{k}", crank.end, coupler.start),
            Revolute(f"C{k}", coupler.end, rocker.end),
            Revolute(f"D{k}", ground.at(2.0, 0.0), rocker.start),
        ]
    layout = Model(*parts, planar=True).layout()
    chains = chains_of(layout.tree, layout.closures)
    assert np.array_equal(np.diff(chains.first_member), [2, 2, 2])
    assert chains.first_entry[-1] == 12


def test_arguments_of_wrong_size_are_named():
    rod = Body.rod("rod", length=1.0, mass=1.0)
    pendulum = Model(Revolute("pivot", ground, rod.start))
    with pytest.raises(InvalidProblemError, match=r"q has shape \(2,\); expected \(1,\)"):
        rnea(pendulum, [0.0, 0.0], [0.0], [0.0])
    with pytest.raises(InvalidProblemError, match=r"tau has shape \(3,\)"):
        aba(pendulum, [0.0], [0.0], [0.0, 0.0, 0.0])
    with pytest.raises(InvalidProblemError, match=r"forces has shape \(3,\); expected \(1, 3\)"):
        accelerations(pendulum, [0.0], [0.0], forces=[0.0, 0.0, 0.0])


def test_algorithms_take_whatever_holds_the_numbers_and_name_what_does_not_fit():
    layout = random_machine(5, 3).layout()
    q, u, a = random_state(layout, 1)
    expected = rnea(layout, q, u, a), crba(layout, q), aba(layout, q, u, a)
    fixed = q.copy()
    fixed.flags.writeable = False
    for same in (q.tolist(), np.repeat(q, 2)[::2], fixed):
        assert np.array_equal(rnea(layout, same, list(u), tuple(a)), expected[0])
        assert np.array_equal(crba(layout, same), expected[1])
        assert np.array_equal(aba(layout, same, u, a.tolist()), expected[2])
    whole = np.zeros(layout.n_v, dtype=int)
    assert np.array_equal(aba(layout, q, whole, whole), aba(layout, q, 0.0 * u, 0.0 * u))
    for call, name in (
        (lambda: rnea(layout, q[:-1], u, a), "q"),
        (lambda: rnea(layout, q, np.append(u, 0.0), a), "u"),
        (lambda: aba(layout, q, u, 1.0), "tau"),
        (lambda: crba(layout, q[:, None]), "q"),
        (lambda: crba(layout, None), "q"),
        (lambda: rnea(layout, q, u, "ab"), "a"),
    ):
        with pytest.raises(InvalidProblemError, match=f"^{name} (has shape|must be)"):
            call()
