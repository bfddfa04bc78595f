"""Inputs by name of machines (motors, forces, controllers) and of circuits (sources)."""

import numpy as np
import pytest

import daedal
from daedal import circuits
from daedal.multibody import (
    PID,
    Actuator,
    Body,
    Controller,
    Free,
    GeneralForce,
    Hydraulics,
    JointFriction,
    Model,
    Motor,
    Prismatic,
    Revolute,
    Torque,
    ground,
)

TIGHT = {"rtol": 1e-9, "atol": 1e-11}
ROD = Body.rod("rod", length=1.0, mass=3.0)  # 1 kg m^2 about its end
CART = Body.particle("cart", mass=1.0)


def pendulum(torque, *more, **options):
    hinge = Revolute("hip", ground, ROD.start)
    return Model(hinge, Motor("drive", "hip", torque), *more, gravity=(0.0, -9.81), planar=True, **options)


def test_a_motor_takes_samples_as_its_torque_and_results_have_its_power():
    samples = {"tau": ([0.0, 0.3, 0.7], [1.0, -2.0, 3.0])}
    sol = daedal.solve(pendulum("tau"), (0.0, 1.0), {"hip": 0.2}, inputs=samples, **TIGHT)
    stated = pendulum(lambda t, motion: 1.0 if t < 0.3 else (-2.0 if t < 0.7 else 3.0))
    other = daedal.solve(stated, (0.0, 1.0), {"hip": 0.2}, breakpoints=[0.3, 0.7], **TIGHT)
    assert sol["hip"][-1] == pytest.approx(other["hip"][-1], abs=1e-10)
    assert sol.force("drive").power[-1] == pytest.approx(3.0 * sol["hip'"][-1])
    assert sol.joint("hip").reaction.force[:, -1] == pytest.approx(other.joint("hip").reaction.force[:, -1])
    sim = daedal.Simulation(pendulum("tau"), {"hip": 0.2}, **TIGHT)
    for dt, tau in ((0.3, 1.0), (0.4, -2.0), (0.3, 3.0)):
        sim.step(dt, u=[tau])
    assert sim["hip"] == pytest.approx(sol["hip"][-1], abs=1e-9) and sim["tau"] == 3.0
    assert sim.state.solution.force("drive").power[-1] == pytest.approx(3.0 * sim["hip'"])


def test_samples_of_a_motor_have_derivatives_and_equilibria():
    model, samples = pendulum("tau"), {"tau": ([0.0, 0.5], [1.0, 2.0])}
    sol = daedal.solve(model, (0.0, 1.0), {"hip": 0.2}, inputs=samples, sensitivities=True, **TIGHT)
    cost = {"final_cost": lambda t, q, v: q[0]}
    adjoint = daedal.gradient(model, (0.0, 1.0), {"hip": 0.2}, inputs=samples, **cost, **TIGHT)
    assert adjoint.names == ("tau[0]", "tau[1]")
    assert adjoint.gradient == pytest.approx([sol.sensitivity(name)[0, -1] for name in adjoint.names], abs=1e-6)
    rest = daedal.linearise(model, {"hip": -1.0}, equilibrium=True, inputs={"tau": 4.0})
    assert rest.B.ravel() == pytest.approx([0.0, 1.0])
    assert 3.0 * 9.81 * 0.5 * np.cos(rest.point["hip"]) == pytest.approx(4.0)


def one_step(model, **options):
    sim = daedal.Simulation(model, {}, rtol=1e-9, **options)
    sim.step(1.0)
    return sim


def test_all_forces_with_values_take_inputs():
    rail = Prismatic("rail", ground, CART, axis="x")
    assert one_step(Model(rail, Actuator("push", ground.at(-1.0, 0.0), CART, "f")), inputs={"f": 2.0})[
        "rail"
    ] == pytest.approx(1.0)
    servo = PID("servo", "rail", target="w", proportional=100.0, derivative=20.0)
    assert one_step(Model(rail, servo), inputs={"w": 0.7})["rail"] == pytest.approx(0.7 * (1.0 - 11.0 * np.exp(-10.0)))
    valve = Hydraulics("valve", "rail", area=1.0, volume=4e-6, bulk_modulus=1.0, flow="q")
    assert one_step(Model(rail, valve), inputs={"q": 0.3})["rail"] == pytest.approx(0.3, abs=4e-4)
    winding = Controller(
        "winding", "rail", torque=lambda t, m, x: x[0], rate=lambda t, m, x: [m.input("volt")], initial=[0.0]
    )
    assert one_step(Model(rail, winding, inputs={"volt": 6.0}))["rail"] == pytest.approx(1.0)
    ball = Body.sphere("ball", radius=0.5, mass=1.0)  # 0.1 kg m^2
    for planar in (True, False):
        given = {"w": [2.0, 0.0], "s": 0.2} if planar else {"w": [2.0, 0.0, 0.0], "s": [0.0, 0.0, 0.2]}
        parts = Free("fly", ground, ball), GeneralForce("wind", ball, "w"), Torque("spin", ball, "s")
        sim = one_step(Model(*parts, planar=planar), inputs=given)
        assert sim["fly.x"] == pytest.approx(1.0)
        assert sim.state.solution.body("ball").angular_velocity[2, 0] == pytest.approx(2.0)


def test_a_motor_works_against_dry_friction():
    hinge, brake = Revolute("hip", ground, ROD.start), JointFriction("brake", "hip", torque=3.0)
    model = Model(hinge, Motor("drive", "hip", "tau"), brake, planar=True)
    sim = daedal.Simulation(model, {})
    sim.step(0.5, u=[2.0])
    assert sim.mode == "stick" and sim["hip"] == 0.0
    sim.step(0.5, u=[5.0])
    assert sim.mode == "slip+" and sim["hip"] == pytest.approx(0.25)
    sol = daedal.solve(model, (0.0, 1.0), {}, inputs={"tau": ([0.0, 0.5], [2.0, 5.0])})
    assert sol["hip"][-1] == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pendulum("tau", inputs=["tua"]), "takes the input 'tau'.*did you mean 'tua'"),
        (lambda: pendulum("tau", inputs={"tau": [1.0, 2.0]}), "'tau' of .* is a number, got"),
        (lambda: pendulum("3 Nm"), "must be a number, a function, or the name of an input, got '3 Nm'"),
        (lambda: pendulum("hip").problem(), "'hip' is the name of a variable"),
        (lambda: daedal.solve(pendulum(1.0), (0.0, 1.0), {}, inputs={"tau": 1.0}), "let a force of the model name one"),
        (
            lambda: daedal.solve(pendulum(lambda t, m: m.input("tua"), inputs=["tau"]), (0.0, 1.0), {}),
            "no input 'tua'; did you mean 'tau'",
        ),
    ],
)
def test_wrong_inputs_of_a_machine_are_refused(make, words):
    with pytest.raises((daedal.InvalidProblemError, KeyError), match=words):
        make()


FILTER = "V1 in 0 3\nR1 in out 1k\nC1 out 0 1u\nI1 0 out 0"


def charged(t):
    return 5.0 * (1.0 - np.exp(-t / 1e-3))


def test_a_source_takes_samples_and_the_start_is_consistent_with_them():
    circuit = circuits.parse(FILTER, inputs=["V1"])
    options = {"rtol": 1e-8, "atol": 1e-9}
    sol = daedal.solve(circuit, (0.0, 2e-3), {"C1": 0.0}, inputs={"V1": 5.0}, **options)
    assert sol["v(out)"][-1] == pytest.approx(charged(2e-3), abs=1e-7)
    samples = {"V1": ([0.0, 1e-3], [0.0, 5.0])}
    for sol in (
        circuit.solve((0.0, 2e-3), inputs=samples, rtol=1e-8),
        daedal.prepare(circuit, **options).solve((0.0, 2e-3), None, inputs=samples),
    ):
        assert sol["v(out)"][0] == 0.0 and sol["v(out)"][-1] == pytest.approx(charged(1e-3), abs=1e-7)
    assert daedal.solve(circuit, (0.0, 1e-3), None)["v(out)"][-1] == pytest.approx(3.0)
    sim = daedal.Simulation(circuit, inputs={"V1": 0.0}, **options)
    for _ in range(10):
        sim.step(1e-4, u=[5.0])
    assert sim["v(out)"] == pytest.approx(charged(1e-3), abs=1e-7)
    assert daedal.linearise(circuit, inputs={"V1": 7.0}).point["v(out)"] == pytest.approx(7.0)


def test_values_of_elements_are_inputs_of_a_simulation():
    sim = daedal.Simulation(circuits.parse(FILTER), inputs={"V1": 5.0, "R1": 1e3}, rtol=1e-8, atol=1e-9)
    assert sim["v(out)"] == pytest.approx(5.0)
    sim.step(1e-3, u=[0.0, 500.0])
    assert sim["v(out)"] == pytest.approx(5.0 * np.exp(-2.0), abs=1e-7)


def test_wrong_inputs_of_a_circuit_are_refused():
    message = "'R1' is not an independent source; it has V1 and I1"
    with pytest.raises(daedal.errors.UnknownNameError, match=message):
        circuits.parse(FILTER, inputs=["R1"])
    with pytest.raises(daedal.InvalidProblemError, match=r"circuits\.parse\(text, inputs="):
        daedal.solve(circuits.parse(FILTER), (0.0, 1e-3), None, inputs={"V1": 1.0})
