"""Joints in the tree and cut: the same motions, whichever way they are stated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daedal.multibody import (
    Body,
    Cylindrical,
    Fixed,
    Free,
    Model,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
    ground,
)
from daedal.multibody.body import of_parameters, parameters_of
from daedal.multibody.closure import ACROSS, ALONG, OFFSET, Closures, gradients, residuals
from daedal.multibody.dynamics import crba, rnea
from daedal.multibody.kinematics import coordinate_rates, joint_velocities, placement, velocities
from daedal.multibody.motion import Motion
from daedal.multibody.vectors import rows_of_rates
from daedal.symbolic import Graph, scalar_argument, trace, vector_argument
from daedal.symbolic.derivative import acceleration_bias, jacobian
from daedal.symbolic.machine import compile_function
from multibody_models import biases

KINDS = {
    "cylindrical": Cylindrical,
    "fixed": Fixed,
    "free": Free,
    "planar": Planar,
    "prismatic": Prismatic,
    "revolute": Revolute,
    "screw": lambda name, a, b: Screw(name, a, b, pitch=0.7),
    "spherical": Spherical,
    "universal": lambda name, a, b: Universal(name, a, b, second_axis="y"),
}


def random_rotation(rng):
    p = rng.normal(size=4)
    return of_parameters(p / np.linalg.norm(p))


def random_chain(kinds, flips, rng):
    """Bodies one behind the other, joined by joints of the given kinds, some stated from the tip to the ground."""
    joints, before = [], ground
    for i, (kind, flip) in enumerate(zip(kinds, flips)):
        turn = random_rotation(rng)
        moments = turn @ np.diag(rng.uniform(0.5, 0.9, 3)) @ turn.T
        body = Body(f"body{i}", rng.uniform(0.5, 2.0), moments, center=rng.normal(size=3))
        ends = [one.at(rng.normal(size=3), rotation=random_rotation(rng)) for one in (before, body)]
        joints.append(KINDS[kind](f"joint{i}", *(ends[::-1] if flip else ends)))
        before = body
    return Model(*joints, gravity=rng.normal(size=3))


def random_state(layout, rng):
    """Coordinates and their rates."""
    tree, q = layout.tree, rng.uniform(-1.0, 1.0, layout.n_q)
    for j in np.flatnonzero(tree.turn == 3):
        p = q[tree.first_q[j + 1] - 4 : tree.first_q[j + 1]]
        p /= np.linalg.norm(p)
    return q, coordinate_rates(tree, q, rng.normal(size=layout.n_v))


def moving(layout, q, rate):
    placed = placement(layout.tree, q)
    return placed, velocities(layout.tree, placed, joint_velocities(layout.tree, q, rate))


def free_state(layout, q, rate, absolute):
    """The same places and velocities of bodies in absolute coordinates; pointers at the angles of their joints."""
    placed, speeds = moving(layout, q, rate)
    q_free, u_free = absolute.zero.copy(), np.zeros(absolute.n_v)
    for name, j in layout.index.items():
        if j < 0 or name not in absolute.index:
            continue
        i = absolute.index[name]
        at, first = absolute.tree.first_q[i], absolute.tree.first_v[i]
        q_free[at : at + 7] = [*placed.r[j], *parameters_of(placed.rotation[j])]
        u_free[first : first + 6] = [*speeds.linear[j], *(placed.rotation[j].T @ speeds.angular[j])]
    for name in absolute.pointers:
        which, joint = name.split(" of ")
        kept = layout.joint_coordinates[joint, which.replace(" ", "_")]
        q_free[absolute.massless[name]] = q[kept.q]
        u_free[absolute.tree.first_v[absolute.index[name]]] = rate[kept.q]
    return q_free, coordinate_rates(absolute.tree, q_free, u_free)


def body_accelerations(layout, q, rate, second):
    """Linear and angular accelerations of all bodies from the second derivatives of the coordinates (2.26)."""
    tree = layout.tree
    placed, speeds = moving(layout, q, rate)
    acceleration = joint_velocities(tree, q, second)  # the map of velocities serves accelerations as well
    linear, angular = np.zeros((tree.parent.size, 3)), np.zeros((tree.parent.size, 3))
    for j, i in enumerate(tree.parent):
        own = slice(tree.first_v[j], tree.first_v[j + 1])
        if i >= 0:
            linear[j] = linear[i] + np.cross(angular[i], placed.arm[j])
            angular[j] = angular[i]
        linear[j] += acceleration[own] @ placed.linear[own] + speeds.linear_bias[j]
        angular[j] += acceleration[own] @ placed.angular[own] + speeds.angular_bias[j]
    return np.hstack([linear, angular])


def by_augmented_system(layout, absolute, placed, speeds):
    """Newton and Euler for free bodies, with the gradients and biases of all joints: dense, in the axes of the ground.

    Also returns the gradients and the residuals on the levels of position and velocity.
    """
    order = [layout.index[body.name] for body in absolute.topology.bodies]
    r, rotation = placed.r[order], placed.rotation[order]
    linear, angular = speeds.linear[order], speeds.angular[order]
    closures, n, tree = absolute.closures, len(order), absolute.tree
    m = closures.kind.size
    G = np.zeros((m, 6 * n))
    for row, pair, sides in zip(G, closures.body, gradients(closures, r, rotation)):
        for body, part in zip(pair, sides):
            if body >= 0:
                row[6 * body : 6 * body + 6] += part
    M, f = np.zeros((6 * n, 6 * n)), np.zeros(6 * n)
    for j in range(n):
        at = 6 * j
        inertia = rotation[j] @ tree.inertia[j] @ rotation[j].T
        M[at : at + 3, at : at + 3] = tree.mass[j] * np.eye(3)
        M[at + 3 : at + 6, at + 3 : at + 6] = inertia
        f[at : at + 3] = tree.mass[j] * tree.gravity
        f[at + 3 : at + 6] = -np.cross(angular[j], inertia @ angular[j])
    full = np.block([[M, G.T], [G, np.zeros((m, m))]])
    solved = np.linalg.solve(full, np.concatenate([f, biases(closures, r, rotation, linear, angular)]))
    velocity = G @ np.hstack([linear, angular]).ravel()
    accelerations = np.zeros((n, 6))
    accelerations[order] = solved[: 6 * n].reshape(n, 6)
    return accelerations, G, residuals(closures, r, rotation), velocity


chains = st.integers(1, 3).flatmap(
    lambda n: st.tuples(
        st.lists(st.sampled_from(sorted(set(KINDS) - {"screw"})), min_size=n, max_size=n),
        st.lists(st.booleans(), min_size=n, max_size=n),
        st.integers(0, 2**32 - 1),
    )
)


@settings(max_examples=60, deadline=None)
@given(chains)
def test_joints_in_the_tree_and_cut_give_the_same_accelerations(chain):
    kinds, flips, seed = chain
    rng = np.random.default_rng(seed)
    model = random_chain(kinds, flips, rng)
    layout, absolute = model.layout(), model.layout("absolute")
    tree = layout.tree
    q, rate = random_state(layout, rng)
    placed, speeds = moving(layout, q, rate)
    expected, G, position, velocity = by_augmented_system(layout, absolute, placed, speeds)
    assert np.abs(position).max(initial=0.0) < 1e-12
    assert np.abs(velocity).max(initial=0.0) < 1e-12
    assert np.linalg.matrix_rank(G) == len(G) == 6 * len(kinds) - layout.n_v
    zero = np.zeros((len(kinds), 3))
    bias = rnea(tree, placed, speeds, np.zeros(layout.n_v), zero, zero)
    u = np.linalg.solve(crba(tree, placed), -bias) if layout.n_v else np.zeros(0)
    found = body_accelerations(layout, q, rate, coordinate_rates(tree, q, u))
    scale = 1.0 + np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=1e-9 * scale)


@settings(max_examples=40, deadline=None)
@given(chains)
def test_coordinates_of_joints_are_what_their_frames_say(chain):
    kinds, flips, seed = chain
    rng = np.random.default_rng(seed)
    model = random_chain(kinds, flips, rng)
    layout, absolute = model.layout(), model.layout("absolute")
    states = random_state(layout, rng)
    in_tree, free = (
        Motion(one, q, joint_velocities(one.tree, q, rate), *moving(one, q, rate))
        for one, (q, rate) in ((layout, states), (absolute, free_state(layout, *states, absolute)))
    )
    for joint, which in layout.joint_coordinates:
        assert abs(in_tree.coordinate(joint, which) - free.coordinate(joint, which)) < 1e-9
        assert abs(in_tree.rate(joint, which) - free.rate(joint, which)) < 1e-9


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_freedoms_and_conditions_of_a_joint_are_six(kind):
    joint = KINDS[kind]("joint", ground, Body("body", 1.0, 1.0))
    system = Model(joint).system("absolute")
    extra = system.layout.tree.parent.size - 1  # a screw is measured by a body without mass, one condition each
    assert joint.n_free + system.n_constraints - 1 - extra == 6
    assert joint.n_free == len(joint.coordinates) == Model(joint).layout().n_v


def test_gradients_and_biases_of_all_conditions_are_the_derivatives():
    rng = np.random.default_rng(7)
    kinds = [(OFFSET, k, 0) for k in range(3)] + [(ALONG, k, 0) for k in range(3)]
    kinds += [(ACROSS, k, l) for k in range(3) for l in range(3)]
    m = len(kinds)
    kind, k, l = (np.array(column) for column in zip(*kinds))
    turns = np.array([[random_rotation(rng) for _ in range(2)] for _ in range(m)])
    closures = Closures(kind, k, l, np.tile([0, 1], (m, 1)), rng.normal(size=(m, 2, 3)), turns)

    def value(t, q):
        r, rotation = np.zeros((2, 3)), np.zeros((2, 3, 3))
        for body in range(2):
            r[body] = q[7 * body : 7 * body + 3]
            rotation[body] = of_parameters(q[7 * body + 3 : 7 * body + 7])
        return residuals(closures, r, rotation)

    graph = Graph()
    t, q, v = scalar_argument(graph, "t"), vector_argument(graph, "q", 14), vector_argument(graph, "v", 14)
    g = trace(value, (t, q))
    positions, speeds = [x.node for x in q], [x.node for x in v]
    rows = [[row.get(i, graph.zero) for i in range(14)] for row in jacobian(graph, g.nodes, positions)]
    gamma = acceleration_bias(graph, g.nodes, t.node, positions, speeds)
    code = compile_function(graph, {"q": 14, "v": 14}, {"G": rows, "gamma": gamma})
    for _ in range(20):
        at, rate, second = rng.normal(size=14), rng.normal(size=14), np.zeros(14)
        r, rotation, linear, angular = np.zeros((2, 3)), np.zeros((2, 3, 3)), np.zeros((2, 3)), np.zeros((2, 3))
        for body in range(2):
            own = slice(7 * body + 3, 7 * body + 7)
            at[own] /= np.linalg.norm(at[own])
            rate[own] -= (at[own] @ rate[own]) * at[own]
            second[own] = -(rate[own] @ rate[own]) * at[own]  # stays on |p| = 1, no angular acceleration
            r[body], linear[body] = at[7 * body : 7 * body + 3], rate[7 * body : 7 * body + 3]
            rotation[body] = of_parameters(at[own])
            angular[body] = rotation[body] @ (np.array(rows_of_rates(at[own], 0)) @ rate[own])
        _, exact = code(0.0, q=at, v=rate)
        along = np.einsum("mbi,bi->m", gradients(closures, r, rotation), np.hstack([linear, angular]))
        np.testing.assert_allclose(along, exact["G"] @ rate, atol=1e-12)
        bias = biases(closures, r, rotation, linear, angular)
        np.testing.assert_allclose(bias, exact["gamma"] - exact["G"] @ second, atol=1e-11)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("kind", ["screw", "universal", "spherical"])
def test_systems_in_both_coordinates_agree(kind, flip):
    rng = np.random.default_rng(3)
    model = random_chain([kind, "revolute"], [flip, False], rng)
    relative, absolute = model.system(), model.system("absolute")
    q, rate = random_state(relative.layout, rng)
    start = free_state(relative.layout, q, rate, absolute.layout)
    expected = body_accelerations(relative.layout, q, rate, relative.at(0.0, q, rate).acceleration)
    point = absolute.at(0.0, *start)
    assert np.abs(point.constraint).max() < 1e-12 and np.abs(point.velocity).max() < 1e-7
    found = body_accelerations(absolute.layout, *start, point.acceleration)
    np.testing.assert_allclose(found[:2], expected, atol=1e-5)
