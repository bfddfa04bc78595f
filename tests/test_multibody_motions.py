"""Whole motions of random machines: the same in all coordinates, orders, names and units, with what is conserved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.multibody import Body, Free, Model, Prismatic, Revolute, ground

FEW = settings(max_examples=2, deadline=None)  # the equations of each are compiled
seeds = st.integers(0, 10**6)
TOLERANCE = {"rtol": 1e-9, "atol": 1e-10}


def planar_machine(seed, *, floating=False, loop=True, names="body {}", order=None, unit=1.0):
    """Rods in chains that branch, hinged or sliding, and a hinge that closes a loop as they are drawn.

    `order` permutes the parts as they are stated, `unit` is the length of what was a metre.
    """
    generator = np.random.default_rng(seed)
    n = int(generator.integers(3, 6))
    places = unit * np.cumsum(generator.uniform(0.5, 1.5, (n, 2)), axis=0)
    parents = [-1, 0, 1, *(int(generator.integers(0, i)) for i in range(3, n))]
    bodies = [
        Body(
            names.format(i),
            generator.uniform(0.5, 2.0),
            unit**2 * generator.uniform(0.1, 0.5),
            unit * np.append(generator.uniform(-0.2, 0.2, 2), 0.0),
            position=(*places[i], 0.0),
            orientation=float(generator.uniform(-1.0, 1.0)),
        )
        for i in range(n)
    ]
    parts = []
    for i, parent in enumerate(parents):
        at = (*(places[i] + unit * generator.uniform(-0.5, 0.5, 2)), 0.0)
        one = ground if parent < 0 else bodies[parent]
        slides = i > 2 and generator.random() < 0.3
        along = (np.cos(angle := generator.uniform(0.0, 6.0)), np.sin(angle), 0.0)
        if floating and parent < 0:
            parts.append(Free(f"joint {i}", ground, bodies[i]))
        elif slides:
            parts.append(Prismatic(f"joint {i}", one, bodies[i], at=at, axis=along))
        else:
            parts.append(Revolute(f"joint {i}", one, bodies[i], at=at))
    if loop:
        parts.append(Revolute("loop", bodies[2], bodies[0] if floating else ground, at=(2.5 * unit, 0.3 * unit, 0.0)))
    parts = [parts[k] for k in order] if order is not None else parts
    down = (0.0, 0.0) if floating else (0.0, -9.81 * unit)
    return Model(*parts, gravity=down, planar=True)


def started(machine, seed):
    """A rate of one hinge of the loop, and what follows from it."""
    return machine.assemble(velocities={"joint 1": float(np.random.default_rng(seed + 1).uniform(0.5, 2.0))})


def solved(machine, start, coordinates="relative", t1=0.2, **options):
    given = {**TOLERANCE, **options}
    return daedal.solve(machine.system(coordinates), (0.0, t1), start.in_coordinates(coordinates), **given)


def ends(machine, sol, t1=0.2):
    return {body.name: np.array(sol.body(body.name, t1).position) for body in machine.bodies}


@FEW
@given(seeds, st.booleans())
def test_absolute_and_relative_coordinates_give_the_same_motion_and_keep_the_energy(seed, loop):
    machine = planar_machine(seed, loop=loop)
    start = started(machine, seed)
    one, two = (solved(machine, start, coordinates) for coordinates in ("relative", "absolute"))
    for sol in (one, two):
        size = np.max(np.abs(sol.energy.kinetic)) + np.ptp(sol.energy.potential)
        np.testing.assert_allclose(sol.energy.total, sol.energy.total[0], atol=1e-6 * (size + 1e-6))
    for name, place in ends(machine, one).items():
        np.testing.assert_allclose(ends(machine, two)[name], place, atol=1e-6)


@FEW
@given(seeds)
def test_order_of_parts_and_names_do_not_matter(seed):
    machine = planar_machine(seed)
    n = len(machine.joints)
    other = planar_machine(seed, names="part number {}", order=np.random.default_rng(seed).permutation(n))
    motions = [list(ends(m, solved(m, started(m, seed))).items()) for m in (machine, other)]
    places = [dict((name.split()[-1], place) for name, place in motion) for motion in motions]
    for name, place in places[0].items():
        np.testing.assert_allclose(places[1][name], place, atol=1e-6)


@FEW
@given(seeds, st.sampled_from([1e-3, 39.37, 1e4]))
def test_units_of_length_do_not_matter(seed, unit):
    """Lengths in other units, with moments of inertia and gravity in them; angles and rates are the same."""
    one, two = planar_machine(seed, loop=False), planar_machine(seed, loop=False, unit=unit)
    first = {"joint 0": 1.0, "joint 1": -2.0}
    a = solved(one, one.assemble(velocities=first))
    b = solved(two, two.assemble(velocities=first), atol=1e-10 * min(1.0, unit))
    for name, place in ends(one, a).items():
        np.testing.assert_allclose(ends(two, b)[name] / unit, place, atol=1e-5)


@FEW
@given(seeds, st.booleans())
def test_a_machine_that_floats_keeps_its_momentum_and_its_angular_momentum(seed, loop):
    machine = planar_machine(seed, floating=True, loop=loop)
    start = machine.assemble(velocities={"joint 0.x": 0.3, "joint 0.angle": 1.0})
    sol = solved(machine, start)
    linear, angular = np.zeros((2, sol.t.size)), np.zeros(sol.t.size)
    for body in machine.bodies:
        view = sol.body(body.name)
        arm = np.einsum("tij,j->it", view.orientation, body.center)[:2]
        w = view.angular_velocity[2]
        x, v = view.position[:2] + arm, view.velocity[:2] + w * np.array([-arm[1], arm[0]])
        linear += body.mass * v
        angular += body.mass * (x[0] * v[1] - x[1] * v[0]) + body.inertia.moments[2, 2] * w
    size = 1.0 + np.max(np.abs(angular))
    np.testing.assert_allclose(linear, linear[:, :1] * np.ones(sol.t.size), atol=1e-6 * size)
    np.testing.assert_allclose(angular, angular[0], atol=1e-6 * size)


@pytest.mark.parametrize("seed", [3, 4])
def test_recursive_loops_and_the_dense_system_give_the_same_motion(seed):
    """The compiled recursive elimination of a chain of 30 links against its dense matrices, called as functions."""
    generator = np.random.default_rng(seed)
    links = [Body.rod(f"link {i}", length=0.1, mass=float(generator.uniform(0.5, 2.0))) for i in range(30)]
    joints = [Revolute("joint 0", ground, links[0].start)]
    joints += [Revolute(f"joint {i}", links[i - 1].end, links[i].start) for i in range(1, 30)]
    machine = Model(*joints, gravity=(0.0, -9.81), planar=True)
    system = machine.system()
    dense = daedal.MechanicalSystem(system.mass, system.force, n_q=system.n_q)
    initial = generator.normal(0.0, 0.05, 30), np.zeros(30)
    one, two = (daedal.solve(each, (0.0, 0.1), initial, rtol=1e-9, atol=1e-9) for each in (system, dense))
    np.testing.assert_allclose(one.q[:, -1], two.q[:, -1], atol=1e-6)
