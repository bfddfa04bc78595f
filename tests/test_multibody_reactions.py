"""Accelerations and reactions of machines with loops against augmented systems written by hand."""

import numpy as np
import pytest
from scipy.linalg import block_diag

import daedal
from daedal import library
from daedal.multibody import Body, Model, Prismatic, Revolute, Spring, ground

G = 9.81


def planar_system(bodies, joints, q, v, force):
    """Accelerations and joint forces of bodies (m, J) at (x, y, angle), by Newton and Euler for each body alone.

    A joint is ((body, point), (body, point)); its two conditions say that the points coincide, -1 is the ground.
    """
    n = len(bodies)
    M = block_diag(*(np.diag([m, m, J]) for m, J in bodies))
    rows, gamma = [], []
    for ends in joints:
        block, bias = np.zeros((2, 3 * n)), np.zeros(2)
        for (body, point), sign in zip(ends, (1.0, -1.0)):
            if body < 0:
                continue
            c, s = np.cos(q[3 * body + 2]), np.sin(q[3 * body + 2])
            arm = np.array([c * point[0] - s * point[1], s * point[0] + c * point[1]])
            block[:, 3 * body : 3 * body + 2] += sign * np.eye(2)
            block[:, 3 * body + 2] += sign * np.array([-arm[1], arm[0]])
            bias += sign * v[3 * body + 2] ** 2 * arm
        rows.append(block)
        gamma.append(bias)
    K, gamma = np.vstack(rows), np.concatenate(gamma)
    k = K.shape[0]
    a = np.linalg.solve(np.block([[M, K.T], [K, np.zeros((k, k))]]), np.concatenate([force, gamma]))
    return a[: 3 * n], -a[3 * n :].reshape(-1, 2)  # the force on the first body of each joint


@pytest.mark.parametrize("coordinates", ["relative", "absolute"])
@pytest.mark.parametrize("cut", ["A", "B", "C", "D"])
def test_reactions_of_a_four_bar_with_a_spring(coordinates, cut):
    """Every joint may be the one that is cut; forces on the crank and on the rods are the same."""
    lengths, masses = (1.0, 3.0, 2.0), (1.0, 3.0, 2.0)
    crank, rod, rocker = (
        Body.rod(name, length=length, mass=mass)
        for name, length, mass in zip(("crank", "rod", "rocker"), lengths, masses)
    )
    machine = Model(
        Revolute("A", ground, crank.start),
        Revolute("B", crank.end, rod.start),
        Revolute("C", rod.end, rocker.end),
        Revolute("D", ground.at(3.0, 0.0), rocker.start),
        Spring("spring", ground, rod.end, stiffness=100.0, length=3.0, damping=3.0),
        gravity=(0.0, -G),
        planar=True,
    )
    chosen = (cut,) if coordinates == "relative" else ()
    start = machine.assemble(A=1.1, velocities={"A": 2.0}, guess={"B": -0.7}, cut=chosen)
    system = machine.system(coordinates, cut=chosen)
    sol = daedal.solve(system, (0.0, 0.3), start.in_coordinates(coordinates, cut=chosen), rtol=1e-9, atol=1e-9)

    for t in (0.0, 0.17, 0.3):
        views = [sol.body(name, t) for name in ("crank", "rod", "rocker")]
        angles = [np.arctan2(view.orientation[1, 0], view.orientation[0, 0]) for view in views]
        q = np.concatenate([[*view.position[:2], angle] for view, angle in zip(views, angles)])
        v = np.concatenate([[*view.velocity[:2], view.angular_velocity[2]] for view in views])
        force = np.concatenate([[0.0, -mass * G, 0.0] for mass in masses])
        arm = 1.5 * np.array([np.cos(angles[1]), np.sin(angles[1])])
        end, rate = q[3:5] + arm, v[3:5] + v[5] * np.array([-arm[1], arm[0]])
        length = np.linalg.norm(end)
        pull = -(100.0 * (length - 3.0) + 3.0 * (end @ rate) / length) * end / length
        force[3:6] += [*pull, arm[0] * pull[1] - arm[1] * pull[0]]
        joints = [
            ((0, (-0.5, 0.0)), (-1, ())),
            ((1, (-1.5, 0.0)), (0, (0.5, 0.0))),
            ((2, (1.0, 0.0)), (1, (1.5, 0.0))),
            ((2, (-1.0, 0.0)), (-1, ())),
        ]
        _, expected = planar_system([(m, m * l**2 / 12.0) for m, l in zip(masses, lengths)], joints, q, v, force)
        for name, one in zip("ABCD", expected):
            np.testing.assert_allclose(sol.joint(name, t).reaction.force[:2], one, atol=2e-6, err_msg=f"{name} at {t}")


@pytest.mark.parametrize("coordinates", ["relative", "absolute"])
def test_multipliers_of_redundant_constraints_are_those_of_least_norm(coordinates):
    """Bricard's mechanism: one condition follows from the others along the whole motion, not beside the manifold."""
    model = library.bricard(coordinates=coordinates)
    q, v = model.initial
    point = model.problem.at(0.0, q, v)
    assert np.linalg.matrix_rank(point.jacobian, tol=1e-9) == point.jacobian.shape[0] - 1
    left = point.mass @ point.acceleration + point.jacobian.T @ point.multipliers
    np.testing.assert_allclose(left, point.force, atol=1e-8)
    np.testing.assert_allclose(point.jacobian @ point.acceleration, point.bias, atol=1e-8)
    shortest = np.linalg.lstsq(point.jacobian.T, point.force - point.mass @ point.acceleration, rcond=1e-9)[0]
    np.testing.assert_allclose(point.multipliers, shortest, atol=1e-8)
    off = model.problem.at(0.0, q + 1e-9 * np.cos(np.arange(q.size)), v)  # a little off the manifold
    np.testing.assert_allclose(off.multipliers, point.multipliers, atol=1e-5)


def test_a_bar_on_two_parallel_guides_shares_its_load():
    """The second guide says nothing new: the multipliers stay of the size of the weight."""
    bar = Body.box("bar", size=(1.0, 0.1, 0.1), mass=2.0)
    machine = Model(
        Prismatic("left", ground.at(-0.5, 0.0), bar.at(-0.5, 0.0), axis="x"),
        Prismatic("right", ground.at(0.5, 0.0), bar.at(0.5, 0.0), axis="x"),
        gravity=(0.0, -G),
        planar=True,
    )
    point = machine.system("absolute").at(0.0, [0.0, 0.0, 0.0])
    np.testing.assert_allclose(point.acceleration, 0.0, atol=1e-12)
    assert np.max(np.abs(point.multipliers)) < 2.0 * G


def test_a_singular_position_is_told_from_redundant_constraints():
    """Bars in line: dependent here, not beside on the manifold."""
    model = library.four_bars(n=1)
    q = np.zeros(model.problem.n_q)
    assert np.all(np.isnan(model.problem.at(0.0, q).multipliers))
    assert np.all(np.isfinite(model.problem.at(0.0, *model.initial).multipliers))
