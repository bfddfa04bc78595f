"""Random machines for tests: trees with all joints of the core, with loops where asked for."""

import numpy as np

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
from daedal.multibody.closed_loops import (
    BaseProjection,
    fill_loop_bias,
    fill_loop_jacobian,
    floats_for_solution,
    reduction_in,
)
from daedal.multibody.closure import fill_biases
from daedal.multibody.dynamics import Elimination
from daedal.multibody.kinematics import ANY_ROTATION
from daedal.multibody.packed import sizes_of
from daedal.multibody.vectors import open_room

JOINTS = (Fixed, Revolute, Prismatic, Cylindrical, Screw, Universal, Spherical, Planar, Free)


def random_machine(n, seed, *, joints=JOINTS, branching=0.3, loops=0):
    """n bodies in chains that branch, and further spherical joints between any two bodies."""
    generator = np.random.default_rng(seed)

    def frame(body):
        return body.at(generator.uniform(-1.0, 1.0, 3), rotation=generator.normal(size=4))

    bodies, parts = [], []
    for i in range(n):
        spread = generator.normal(size=(3, 3))
        second_moments = spread @ spread.T + np.eye(3)
        inertia = np.trace(second_moments) * np.eye(3) - second_moments
        body = Body(f"body {i}", generator.uniform(0.5, 2.0), inertia, generator.uniform(-0.3, 0.3, 3))
        chosen = generator.random(2)
        parent = bodies[-1] if bodies and chosen[0] > branching else ground
        if bodies and chosen[0] <= branching and chosen[1] > 0.2:
            parent = bodies[generator.integers(i)]
        kind = joints[generator.integers(len(joints))]
        further = {"pitch": generator.uniform(0.1, 1.0)} if kind is Screw else {}
        parts.append(kind(f"joint {i}", frame(parent), frame(body), **further))
        bodies.append(body)
    for i in range(loops):
        one, two = generator.choice(n, 2, replace=False)
        parts.append(Spherical(f"loop {i}", frame(bodies[one]), frame(bodies[two])))
    return Model(*parts, gravity=generator.normal(size=3))


def random_state(layout, seed):
    """Coordinates with Euler parameters of length one, velocities and accelerations of the joints."""
    generator, tree = np.random.default_rng(seed), layout.tree
    q = generator.uniform(-1.0, 1.0, layout.n_q)
    for j in np.flatnonzero(tree.turn == ANY_ROTATION):
        end = tree.first_q[j + 1]
        q[end - 4 : end] /= np.linalg.norm(q[end - 4 : end])
    return q, generator.normal(size=layout.n_v), generator.normal(size=layout.n_v)


# --- kernels with arrays of their own ---------------------------------------------------------------------------------


def reduction(tree, closures, chains, placed, moving, tau, force, torque):
    """Elimination of the bodies, and the conditions carried to the base; interpreted."""
    memory = np.empty(1 + floats_for_solution(sizes_of(tree, closures, chains)))
    room = open_room(memory.ctypes.data)
    left, reduced = reduction_in(room, tree, closures.stacked, chains, placed, moving, tau, force, torque)
    return Elimination(*(array.copy() for array in left)), BaseProjection(*(array.copy() for array in reduced))


def loop_jacobian(tree, placed, closures):
    m = closures.kind.size
    matrix = np.zeros((m, tree.first_v[-1]))
    fill_loop_jacobian(tree, placed, closures.stacked, np.zeros((m, 2, 6)), matrix)
    return matrix


def loop_bias(tree, placed, moving, closures):
    n, m = tree.parent.size, closures.kind.size
    values, work = np.zeros(m), (np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((m, 2, 6)))
    fill_loop_bias(tree, placed, moving, closures.stacked, *work, values)
    return values


def biases(closures, r, rotation, linear, angular):
    values = np.zeros(closures.kind.size)
    fill_biases(closures.stacked, r, rotation, linear, angular, values)
    return values
