"""Compiled loops stay within the memory that they are given, and belong to the constraints that they were made for."""

import ctypes
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import daedal
from daedal.multibody import (
    PID,
    Body,
    Damper,
    Model,
    Prismatic,
    Revolute,
    Spherical,
    Spring,
    Universal,
    algorithms,
    ground,
    large,
    rnea,
)
from daedal.multibody.kinematics import coordinate_rates
from daedal.multibody.packed import LoadBlock, sizes_of
from multibody_models import random_machine, random_state

GUARD = 64
AS_C = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, ctypes.c_int64)


def guarded(n):
    """Memory for n floats that are not set, and behind them what nobody may touch."""
    return np.full(n + GUARD, np.nan)


def is_whole(memory):
    return np.all(memory[-GUARD:].view(np.int64) == np.full(GUARD, np.nan).view(np.int64))


def loops_of(model, monkeypatch):
    """All compiled loops of a machine, and the system."""
    monkeypatch.setattr(large, "MOST_TRACED", {True: 0, False: 0})
    system = model.system()
    found = [value for value in vars(system).values() if isinstance(value, large.CompiledLoops)]
    return system, found + list(system.straight_line._made.values())


def check_room(function, arguments):
    """The same result in a block whose working memory is not set; how much of that is used."""
    status, expected = function.evaluate(0.3, *arguments)
    given, size = np.concatenate([*arguments, np.zeros(0)]), expected.size
    block = guarded(given.size + size + function.workspace)
    block[: given.size] = given
    assert AS_C(function.address)(0.3, block.ctypes.data) == status
    assert is_whole(block)
    if status == 0:
        np.testing.assert_array_equal(block[given.size :][:size], expected.ravel(order="F"))
    if function.workspace > 1:
        used = int(block[given.size + size :][:1].view(np.int64)[0])
        assert 1 < used <= function.workspace
    return status


def with_forces(model):
    """A machine with springs between bodies, and a controller that has states."""
    joints = [joint for joint in model.joints if isinstance(joint, Revolute)]
    bodies = [joint.b.body for joint in model.joints]
    springs = [
        Spring(f"spring {i}", ground.at(1.0, 2.0, 3.0), body, stiffness=1.0 + i, length=0.5)
        for i, body in enumerate(bodies)
    ]
    dampers = [Damper(f"damper {i}", ground.at(1.0, 2.0, 3.0), body, damping=1.0) for i, body in enumerate(bodies)]
    controlled = [PID("pid", joints[0], 1.0, proportional=2.0, integral=0.5, derivative=0.1)] if joints else []
    return Model(*model.joints, *springs, *dampers, *controlled, gravity=model.gravity)


@pytest.mark.parametrize("seed", range(10))
def test_loops_keep_within_their_rooms(seed, monkeypatch):
    model = random_machine(2 + seed, seed, branching=0.2 + 0.1 * (seed % 4), loops=seed % 4)
    system, loops = loops_of(with_forces(model) if seed % 2 else model, monkeypatch)
    layout = system.layout
    q, u, _ = random_state(layout, seed)
    v, r = coordinate_rates(layout.tree, q, u), np.linspace(0.1, 0.2, system.n_r)
    given = {
        "force": (q, v, r),
        "state_rate": (q, v, r),
        "accelerations": (q, v, r),
        "stage": (q, v, r, q, v, [0.1], [1]),
    }
    given |= {"acceleration_bias": (q, v), "velocity_correction": (q, v)}
    for function in loops:
        check_room(function, given.get(function.__name__, (q,)))


def test_rooms_of_conditions_that_follow_from_others(monkeypatch):
    names = ("crank", "coupler", "rocker", "beside")
    crank, coupler, rocker, beside = (Body.rod(name, length=2.0, mass=1.0, radius=0.1) for name in names)
    model = Model(  # a parallelogram in space with a further crank: three and five conditions to spare
        Revolute("A", ground, crank.start),
        Revolute("B", crank.end, coupler.start),
        Revolute("C", rocker.end, coupler.end),
        Revolute("D", ground.at(2.0, 0.0), rocker.start),
        Revolute("E", beside.end, coupler.at(0.0, 0.0)),
        Revolute("F", ground.at(1.0, 0.0), beside.start),
    )
    _, loops = loops_of(model, monkeypatch)
    q = np.array([0.7, -0.7, 0.7, 0.7])
    corrections = {one.__name__: one for one in loops if one.__name__.endswith("correction")}
    statuses = {"position_correction": check_room(corrections["position_correction"], (q,))}
    statuses["velocity_correction"] = check_room(corrections["velocity_correction"], (q, q))
    assert statuses == {"position_correction": 2, "velocity_correction": 2}


@pytest.mark.parametrize("seed", range(4))
def test_algorithms_keep_within_their_rooms(seed):
    layout = random_machine(3 + seed, seed, loops=seed).layout()
    q, u, a = random_state(layout, seed)
    ready, sizes = layout.prepared, sizes_of(*layout.arrays)
    result, room, loads = guarded(ready.n_v), guarded(ready.room), LoadBlock(sizes.n)
    for kernel in (algorithms.rnea_at, algorithms.aba_at):
        assert kernel(ready.address, q, u, a, ready.no_loads, result[: ready.n_v], room) == 0
        assert is_whole(result) and is_whole(room) and np.all(np.isfinite(result[: ready.n_v]))
        assert kernel(ready.address, q[1:], u, a, ready.no_loads, result[: ready.n_v], room) < 0
    matrix = guarded(ready.n_v**2)
    assert algorithms.crba_at(ready.address, q, matrix[:-GUARD].reshape(ready.n_v, -1), room) == 0
    assert is_whole(matrix) and is_whole(room)
    multipliers, room = guarded(sizes.m), guarded(algorithms.room_for_accelerations(sizes))
    given = layout.packed.address, q, u, a, loads.address
    assert algorithms.accelerations_at(*given, result[: ready.n_v], multipliers[: sizes.m], room) >= 0
    assert is_whole(result) and is_whole(multipliers) and is_whole(room)
    assert room[:1].view(np.int64)[0] <= room.size - GUARD


def test_addresses_stay_in_their_process():
    layout = random_machine(4, 1, loops=1).layout()
    q, u, a = random_state(layout, 1)
    found = rnea(layout, q, u, a)
    other = pickle.loads(pickle.dumps(layout))
    assert not {"packed", "prepared"} & vars(other).keys()
    np.testing.assert_array_equal(rnea(other, q, u, a), found)


# --- functions of a large machine with other constraints --------------------------------------------------------------


def closed_chain(n):
    """A closed chain of hinges, more of them than are traced."""
    before, parts = ground.at(0.0, 0.0, 0.0), []
    for i in range(n):
        body = Body.box(f"body {i}", size=(0.3, 0.1, 0.1), mass=1.0)
        parts.append(Revolute(f"hinge {i}", before, body.at(-0.15, 0.0, 0.0), axis="xyz"[i % 3]))
        before = body.at(0.15, 0.05, 0.0)
    return Model(*parts, Spherical("end", before, ground.at(0.5, 0.1, 0.1)), gravity=(0.0, 0.0, -9.81))


def test_compiled_derivatives_go_with_their_constraint():
    system = closed_chain(14).system()
    assert isinstance(system.constraint_jacobian, large.CompiledLoops)
    other = system.replaced(constraint=lambda t, q: [q[0]], n_constraints=1, constraint_names=None)
    assert other.constraint_jacobian is other.constraint_t is other.acceleration_bias is None
    q = np.full(14, 0.3)
    np.testing.assert_allclose(other.at(0.0, q).jacobian, np.eye(14)[:1], atol=1e-7)
    assert system.replaced(mass=1.0).constraint_jacobian is system.constraint_jacobian


def test_machine_code_of_a_problem_of_another_size_is_refused():
    """A traced Jacobian of two rows would write beyond the memory of one."""
    two = daedal.MechanicalSystem(
        1.0, lambda t, q, v: [0.0] * 8, lambda t, q: [q[0] * q[1], q[2] * q[3]], n_q=8, n_constraints=2
    ).compiled()
    one = replace(two, constraint=lambda t, q: [q[0]], n_constraints=1)
    with pytest.raises(daedal.InvalidProblemError, match="was compiled for a problem of another size"):
        daedal.solve(one, (0.0, 1.0), (np.zeros(8), np.zeros(8)))


def test_analyses_of_a_closed_chain_that_is_not_traced():
    model = closed_chain(14)
    start = model.assemble(guess={f"hinge {i}": 0.3 for i in range(14)})
    found = model.inverse_dynamics(start, by=[f"hinge {i}" for i in range(14)])
    system = model.system()
    at = system.at(0.0, start.q, start.v)
    torques = np.array([found[f"hinge {i}"][0] for i in range(14)])
    left = torques + system.force(0.0, start.q, start.v) - at.jacobian.T @ found.lam[:, 0]
    np.testing.assert_allclose(left, 0.0, atol=1e-9)  # at rest
    held = model.equilibrium(guess=start, **{f"hinge {i}": start.q[i] for i in range(11)})
    np.testing.assert_allclose(held.q[:11], start.q[:11], atol=1e-9)


def test_kinematics_of_a_platform_on_six_legs():
    top, parts = Body.box("top", size=(1.0, 1.0, 0.1), mass=5.0), []
    for i in range(6):
        below, above = np.pi / 3 * i, np.pi / 3 * i + 0.4 * (-1) ** i
        lower, upper = (Body.box(f"{name} {i}", size=(0.1, 0.1, 0.5), mass=1.0) for name in ("lower", "upper"))
        parts += [
            Universal(f"foot {i}", ground.at(np.cos(below), np.sin(below), 0.0), lower, axis="x", second_axis="y"),
            Prismatic(f"leg {i}", lower, upper, axis="z"),
            Spherical(f"head {i}", upper, top.at(0.5 * np.cos(above), 0.5 * np.sin(above), 0.0)),
        ]
    model, t = Model(*parts), np.linspace(0.0, 1.0, 5)
    assert model.layout().n_v > large.MOST_TRACED[False]
    legs = {f"leg {i}": (lambda t: 1.1 + 0.1 * t) for i in range(6)}
    motion = model.kinematics(t, legs, guess={name: 1.1 for name in legs})
    for i in range(6):
        head = motion.body("top").at(*parts[3 * i + 2].b.position).position
        foot = parts[3 * i].a.position
        np.testing.assert_allclose(np.linalg.norm(head - foot[:, None], axis=0), 1.1 + 0.1 * t, rtol=1e-9)


@pytest.mark.slow
def test_analyses_of_random_machines_keep_within_their_memory():
    """Interpreted kernels, with the bounds of every view checked, have the results of dense matrices."""
    code = (
        "from soak.machines import checked\n"
        "for seed in (57, 60, 73, 88):\n"
        "    errors = checked(seed, True, runs=False, most=6)\n"
        "    wrong = {name: error for name, error in errors.items() if not error <= 1.0}\n"
        "    assert not wrong, (seed, wrong)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "DAEDAL_KERNELS": "python"},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
