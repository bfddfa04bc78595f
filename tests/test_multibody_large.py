"""Large machines: functions as compiled loops, accelerations and projections by recursive elimination."""

import numpy as np
import pytest

import daedal
from daedal.multibody import Body, Model, Revolute, Spherical, ground, large
from daedal.multibody.coordinates import coordinate_rates
from multibody_models import random_machine, random_state


def chain(n):
    """A planar chain of unit length."""
    rods = [Body.rod(f"rod {i}", length=1.0 / n, mass=1.0 / n) for i in range(n)]
    before = [ground, *(rod.end for rod in rods[:-1])]
    hinges = [Revolute(f"hinge {i}", a, rod.start) for i, (a, rod) in enumerate(zip(before, rods))]
    return Model(*hinges, gravity=(0.0, -9.81), planar=True)


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
