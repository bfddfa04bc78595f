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
from daedal.multibody.kinematics import ANY_ROTATION

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
