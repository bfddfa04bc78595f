"""Large machines: functions as compiled loops, accelerations and projections by recursive elimination."""

import numpy as np
import pytest

import daedal
from daedal.multibody import (
    PID,
    Actuator,
    Body,
    Bushing,
    Controller,
    Cylindrical,
    Damper,
    Drag,
    GeneralForce,
    Gravitation,
    Model,
    Motor,
    Revolute,
    SmoothFriction,
    SoftContact,
    Spherical,
    Spring,
    Torque,
    TorsionSpring,
    Universal,
    force_code,
    ground,
    large,
)
from daedal.multibody.kinematics import coordinate_rates
from daedal.symbolic import trace
from multibody_models import random_machine, random_state


def chain(n, force=None, options=None):
    """A planar chain of unit length, with forces at its hinges."""
    rods = [Body.rod(f"rod {i}", length=1.0 / n, mass=1.0 / n) for i in range(n)]
    before = [ground, *(rod.end for rod in rods[:-1])]
    hinges = [Revolute(f"hinge {i}", a, rod.start) for i, (a, rod) in enumerate(zip(before, rods))]
    forces = [force(f"force {i}", hinge, **options(i)) for i, hinge in enumerate(hinges)] if force else []
    return Model(*hinges, *forces, gravity=(0.0, -9.81), planar=True)


def both(model, monkeypatch):
    """The system with compiled loops, and with traced functions."""
    monkeypatch.setattr(large, "MOST_TRACED", {True: 0, False: 0})
    looped = model.system()
    monkeypatch.setattr(large, "MOST_TRACED", {True: 1000, False: 1000})
    return looped, model.system().compiled(backend="trace")


def augmented(system, q):
    mass, rows = system.mass(0.0, q), system.constraint_jacobian(0.0, q)
    return np.block([[mass, rows.T], [rows, np.zeros((len(rows), len(rows)))]])


@pytest.fixture(scope="module")
def machine():
    model = random_machine(4, 1, loops=1)
    layout = model.layout()
    assert layout.closures.kind.size and layout.n_q > layout.n_v
    q, u, _ = random_state(layout, 1)
    return model, q, coordinate_rates(layout.tree, q, u)


def test_compiled_loops_are_the_traced_functions(machine, monkeypatch):
    model, q, v = machine
    looped, traced = both(model, monkeypatch)
    n, m = q.size, model.layout().closures.kind.size
    for name, arguments in (("mass", (q,)), ("force", (q, v)), ("constraint", (q,))):
        expected = getattr(traced, name)(0.0, *arguments)
        found = getattr(looped, name)(0.0, *arguments)
        assert np.allclose(found, expected, rtol=0.0, atol=1e-13 * np.abs(expected).max()), name
    right = np.concatenate([traced.force(0.0, q, v), traced.acceleration_bias(0.0, q, v)])
    expected = np.linalg.solve(augmented(traced, q), right)
    status, found = looped.straight_line.function("accelerations").evaluate(0.0, q, v)
    assert status == 0
    assert np.allclose(found[:n], expected[:n], rtol=0.0, atol=1e-12 * np.abs(expected[:n]).max())
    assert np.allclose(found[-m:], expected[-m:], rtol=0.0, atol=1e-11 * np.abs(expected[-m:]).max())
    # the derivatives that it states give the same
    right = np.concatenate([looped.force(0.0, q, v), looped.acceleration_bias(0.0, q, v)])
    dense = np.linalg.solve(augmented(looped, q), right)
    assert np.allclose(found, dense, rtol=0.0, atol=1e-11 * np.abs(dense).max())


def test_corrections_are_shortest_in_the_norm_of_the_mass(machine, monkeypatch):
    model, q, _ = machine
    looped, _ = both(model, monkeypatch)
    v = np.random.default_rng(2).normal(size=q.size)
    matrix, rows, zeros = augmented(looped, q), looped.constraint_jacobian(0.0, q), np.zeros(q.size)
    for name, arguments, gap in (
        ("position_correction", (q,), looped.constraint(0.0, q)),
        ("velocity_correction", (q, v), rows @ v),
    ):
        expected = np.linalg.solve(matrix, np.concatenate([zeros, -gap]))[: q.size]
        status, found = looped.straight_line.function(name).evaluate(0.0, *arguments)
        assert status == 0
        assert np.allclose(found[: q.size], expected, rtol=0.0, atol=1e-11 * np.abs(expected).max()), name
    assert np.array_equal(found[q.size :].reshape(rows.shape), rows)


def test_a_chain_moves_as_its_traced_equations_say(monkeypatch):
    model = chain(25)
    system, start = model.system(), model.start()
    assert set(system.functions.values()) == {"machine code"}
    found = daedal.solve(system, (0.0, 0.2), start, rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(large, "MOST_TRACED", {True: 1000, False: 1000})
    traced = model.system()
    # functions as they are: matrices that are factored
    expected = daedal.solve(traced, (0.0, 0.2), start, rtol=1e-9, atol=1e-9, compile="never")
    assert np.allclose(found.q[:, -1], expected.q[:, -1], rtol=0.0, atol=1e-7)


def test_a_loop_of_balls_moves_as_its_traced_equations_say(monkeypatch):
    """Three boxes with balls between them, from the ground up, across and down to it: a swing with Euler parameters."""
    lengths = (1.0, 2.0, 1.0)
    boxes = [Body.box(f"box {i}", size=(length, 0.1, 0.2), mass=length) for i, length in enumerate(lengths)]
    places = [ground, *(box.at(0.5 * length, 0.0) for box, length in zip(boxes, lengths))]
    balls = [
        Spherical(f"ball {i}", places[i], box.at(-0.5 * length, 0.0))
        for i, (box, length) in enumerate(zip(boxes, lengths))
    ]
    model = Model(*balls, Spherical("end", ground.at(2.0, 0.0), places[3]), gravity=(0.5, 9.0, 1.0))
    half = np.sqrt(0.5)
    q = np.array([half, 0.0, -half, 0.0, half, 0.0, half, 0.0, half, 0.0, half, 0.0])
    monkeypatch.setattr(large, "MOST_TRACED", {True: 0, False: 0})
    system = model.system(cut=["end"])
    assert np.abs(system.constraint(0.0, q)).max() < 1e-15
    monkeypatch.setattr(large, "MOST_TRACED", {True: 1000, False: 1000})
    runs = [
        daedal.solve(one, (0.0, 1.0), (q, 0.0 * q), rtol=1e-9, atol=1e-9) for one in (system, model.system(cut=["end"]))
    ]
    assert set(system.functions.values()) == {"machine code"}
    assert np.abs(runs[0].q[:, -1] - q).max() > 0.5
    assert np.allclose(runs[0].q[:, -1], runs[1].q[:, -1], rtol=0.0, atol=1e-7)
    assert runs[0].drift["position"] < 1e-12
    assert runs[0].drift["velocity"] < 1e-12


def forced(n=4, seed=0):
    """A chain in space with every kind of force, tables, functions and states among them."""
    random = np.random.default_rng(seed)
    boxes = [Body.box(f"box {i}", size=random.uniform(0.1, 0.5, 3), mass=random.uniform(0.5, 2.0)) for i in range(n)]
    kinds = (Revolute, Universal, Cylindrical, Spherical)
    frames = [(a, b) for a, b in zip([ground, *boxes], boxes)]
    joints = [
        kinds[i % 4](
            f"joint {i}", *(body.at(random.uniform(-0.5, 0.5, 3), rotation=random.normal(size=4)) for body in pair)
        )
        for i, pair in enumerate(frames)
    ]
    table = [(-1.0, -3.0), (0.0, 0.0), (1.0, 9.0)]
    frame = boxes[2].at(0.1, 0.2, 0.3)
    forces = [
        *(
            Spring(f"spring {i}", ground.at(1.0, i, 0.0), box.at(0.1, 0.0, i), stiffness=i, length=1.0, damping=0.1 * i)
            for i, box in enumerate(boxes, 1)
        ),
        Spring("rubber", boxes[0], boxes[3], stiffness=2.0),
        Damper("strut", boxes[0], boxes[2], damping=table),
        TorsionSpring("closer", "joint 0", stiffness=lambda x: x**3, damping=0.3),
        TorsionSpring("cross", "joint 1", stiffness=3.0, angle=0.1, which="second_angle"),
        Bushing(
            "bushing",
            boxes[1].at(0.1, 0.0),
            boxes[3].at(0.2, 0.0),
            stiffness=(1.0, 2.0, 3.0),
            torsional_stiffness=0.2,
            damping=0.1,
        ),
        Motor("motor", "joint 0", lambda t, motion: np.sin(t) - motion.rate("joint 0")),
        Actuator(
            "push", ground.at(0.0, 2.0), boxes[1], lambda t, motion: 4.0 if motion.position(frame)[0] > 0.0 else t
        ),
        GeneralForce(
            "wind", boxes[3].at(0.3, 0.0), lambda t, motion: (t, motion.velocity(frame)[1], 2.0), follows=True
        ),
        Torque("twist", boxes[2], lambda t, motion: (1.0, t, motion.angular_velocity(frame)[0])),
        Gravitation("pull", boxes[0], boxes[2], constant=5.0),
        Drag("air", boxes[3], linear=0.1, quadratic=0.5, wind=(1.0, 0.0, 0.0)),
        SmoothFriction("brake", "joint 2", torque=0.3, speed=0.2, which="angle"),
        SoftContact("floor", boxes[3], ground.at(0.0, 0.0, 5.0), normal="z", stiffness=50.0),
        PID("pid", "joint 0", 1.0, proportional=2.0, integral=0.5, derivative=0.1),
        Controller(
            "own", "joint 0", lambda t, m, x: x[0], lambda t, m, x: [t - x[0], x[0] * m.rate("joint 0")], [0.1, 0.2]
        ),
    ]
    return Model(*joints, *forces, gravity=(0.0, 0.0, -9.81))


def test_forces_in_compiled_loops_are_those_that_were_stated(monkeypatch):
    model = forced()
    monkeypatch.setattr(large, "MOST_TRACED", {True: 0, False: 0})
    looped = model.system()
    assert set(looped.functions.values()) == {"machine code"}
    monkeypatch.setattr(large, "MOST_TRACED", {True: 1000, False: 1000})
    stated = model.system()
    random = np.random.default_rng(3)
    for t in (0.0, 0.7):
        q, u, _ = random_state(model.layout(), 5)
        v, r = coordinate_rates(model.layout().tree, q, u), random.normal(size=stated.n_r)
        for name in ("force", "state_rate"):
            expected = getattr(stated, name)(t, q, v, r)
            assert np.allclose(getattr(looped, name)(t, q, v, r), expected, rtol=1e-13, atol=1e-13), name
        found = looped.straight_line.function("accelerations")(t, q, v, r)[: q.size]
        bias = looped.acceleration_bias(t, q, v)
        dense = np.linalg.solve(augmented(looped, q), np.concatenate([looped.force(t, q, v, r), bias]))[: q.size]
        assert np.allclose(found, dense, rtol=0.0, atol=1e-10 * np.abs(dense).max())


def test_forces_that_differ_in_numbers_share_code():
    model = chain(30, TorsionSpring, lambda i: {"stiffness": 0.01 + i, "damping": 0.1 * i + 0.07})
    machine = model.system().force.machine
    assert [group.constants.shape for group in machine.code.groups] == [(30, 2)]


def test_equal_forces_are_traced_once(monkeypatch):
    """Springs of one kind at all links, and two others: three traces, and the same loads."""
    traced = []
    monkeypatch.setattr(force_code, "trace", lambda *a: traced.append(1) or trace(*a))
    links = chain(30)
    wires = [
        Spring(f"wire {i}", ground.at(0.3, 1.0), body.end, stiffness=1.0 + (i == 7), length=0.3, damping=0.1)
        for i, body in enumerate(links.bodies)
    ]
    twists = [TorsionSpring(f"twist {i}", joint, stiffness=0.2) for i, joint in enumerate(links.joints)]
    system = Model(*links.joints, *wires, *twists, planar=True).system()
    assert len(traced) == 3
    random = np.random.default_rng(4)
    q, v = random.normal(size=30), random.normal(size=30)
    expected = system.force._stated(0.0, q, v)
    assert np.allclose(system.force(0.0, q, v), expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())


def test_a_chain_with_springs_moves_as_its_traced_equations_say(monkeypatch):
    model = chain(25, TorsionSpring, lambda i: {"stiffness": 0.1, "damping": 0.01})
    system, start = model.system(), model.start()
    found = daedal.solve(system, (0.0, 0.2), start, rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(large, "MOST_TRACED", {True: 1000, False: 1000})
    expected = daedal.solve(model.system(), (0.0, 0.2), start, rtol=1e-9, atol=1e-9, compile="never")
    assert np.allclose(found.q[:, -1], expected.q[:, -1], rtol=0.0, atol=1e-7)


def test_what_forces_of_large_machines_read_outside_may_change():
    level = {"torque": 1.0}
    rods = chain(25)
    model = Model(*rods.joints, Motor("motor", "hinge 0", lambda t, motion: level["torque"]), planar=True)
    system, start = model.system(), model.start()
    before = daedal.solve(system, (0.0, 0.1), start).q[0, -1]
    level["torque"] = -1.0
    assert daedal.solve(system, (0.0, 0.1), start).q[0, -1] == pytest.approx(-before, rel=1e-6)


def test_exceptions_of_forces_of_large_machines_arrive_unchanged():
    def torque(t, motion):
        if t > 0.05:
            raise OverflowError("the fuse has blown")
        return 1.0

    model = Model(*chain(25).joints, Motor("motor", "hinge 0", torque), planar=True)
    assert set(model.system().functions.values()) == {"machine code"}
    with pytest.raises(OverflowError, match="the fuse has blown"):
        daedal.solve(model.system(), (0.0, 0.1), model.start())


def test_forces_that_cannot_be_traced_are_called():
    seen = []

    def torque(t, motion):
        seen.append(t)
        return 1.0

    model = Model(*chain(25).joints, Motor("motor", "hinge 0", torque), planar=True)
    assert model.system().at(0.0, *model.start()).force[0] == pytest.approx(1.0)
    assert seen
