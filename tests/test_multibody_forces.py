"""Force elements: closed forms, the same motion in all coordinates, energy and power, messages."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.errors import InvalidProblemError
from daedal.multibody import (
    PID,
    Actuator,
    Body,
    Bushing,
    Controller,
    Cylindrical,
    Damper,
    Drag,
    Frame,
    Free,
    GeneralForce,
    Gravitation,
    Hydraulics,
    Model,
    Motor,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Spring,
    Torque,
    TorsionSpring,
    Universal,
    ground,
)
from daedal.multibody.body import parameters_of
from daedal.multibody.spring import energy_of

TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def in_absolute_coordinates(model, q, v, r=()):
    """The state of a relative layout, as the absolute one has it."""
    motion = model.system().motion(q, v, r)
    places, speeds = [], []
    for body in model.bodies:
        frame = Frame(body, body.center)
        x, u = motion.position(frame), motion.velocity(frame)
        turn, spin = motion.rotation(frame), motion.angular_velocity(frame)
        if model.planar:
            places += [*x[:2], np.arctan2(turn[1, 0], turn[0, 0])]
            speeds += [*u[:2], spin[2]]
        else:
            p = parameters_of(turn)
            w = turn.T @ spin
            places += [*x, *p]
            rate = 0.5 * np.array(
                [-p[1:] @ w, *(p[0] * w + np.cross(p[1:], w))]  # p' = p (0, w) / 2
            )
            speeds += [*u, *rate]
    return (np.array(places), np.array(speeds)) if not len(r) else (np.array(places), np.array(speeds), np.array(r))


def kinetic_and_potential(system, t, q, v, r=()):
    motion = system.motion(q, v, r)
    model = system.model
    heights = [body.mass * model.gravity @ motion.position(Frame(body, body.center)) for body in model.bodies]
    stored = sum(force.energy(t, motion) for force in model.forces)
    energy = 0.5 * v @ system.at(t, q).mass @ v - sum(heights) + stored
    return energy, sum(force.power(t, motion) for force in model.forces)


def rich_model():
    """All elements at joints of all kinds, some of which the spanning tree passes backwards."""
    base = Body.box("base", size=(0.4, 0.3, 0.2), mass=3.0)
    arm = Body.rod("arm", length=1.0, mass=1.5, radius=0.05)
    hand = Body("hand", 0.8, (0.02, 0.03, 0.04), center=(0.05, 0.02, 0.0))
    stick = Body.rod("stick", length=0.6, mass=0.5, radius=0.03)
    stone = Body.sphere("stone", radius=0.2, mass=2.0)
    return Model(
        Prismatic("rail", base, ground, axis=(1.0, 0.5, 0.0)),
        Universal("shoulder", arm.start, base.at(0.1, 0.1, 0.0), axis="y", second_axis="z"),
        Cylindrical("wrist", arm.end, hand, axis="x"),
        Revolute("finger", stick.start, hand.at(0.1, 0.0, 0.1), axis=(0.0, 1.0, 1.0)),
        Free("flight", ground, stone),
        Spring("spring", ground.at(-2, 0, 0.5), arm.end, [(-1, -30), (0.0, 0.0), (0.5, 10.0), (4.0, 150.0)], 1.5, 0.3),
        Damper("damper", arm.end, stone, lambda x: 0.0 * x, damping=lambda rate: 0.2 * rate + 0.1 * rate**3),
        TorsionSpring("hinge", "finger", stiffness=lambda x: 2.0 * x + x**3, angle=0.2, damping=0.05),
        TorsionSpring("cross", "shoulder", stiffness=6.0, damping=0.1, which="second_angle"),
        TorsionSpring("axial", "wrist", stiffness=40.0, which="displacement"),
        Bushing("mount", ground.at(0.3, 0.2, 0.0), stone, (50, 40, 30), (5, 4, 3), 0.5, (0.1, 0.2, 0.3)),
        Motor("motor", "shoulder", lambda t, motion: np.sin(t) - 0.1 * motion.rate("wrist", "angle"), which="angle"),
        Actuator("push", ground.at(0, -2, 0), hand, lambda t, motion: 2.0 * np.cos(3.0 * t)),
        PID("servo", "wrist", 0.3, proportional=2.0, integral=1.0, derivative=0.2, which="angle"),
        Hydraulics("drive", "rail", area=0.02, volume=1e-3, bulk_modulus=1e3, flow=1e-3, leakage=1e-6),
        GeneralForce("thrust", hand.at(0, 0, 0.1), lambda t, motion: (1.0, 0.0, t), follows=True),
        Torque("twist", stick, lambda t, motion: (0.01, 0.0, 0.02 * motion.coordinate("finger"))),
        Gravitation("pull", base, stone, constant=0.7),
        Drag("air", stick.end, linear=0.02, quadratic=0.05, wind=(1.0, 0.0, 0.0)),
        gravity=(0.0, 0.0, -3.0),
    )


@pytest.fixture(scope="module")
def rich():
    model = rich_model()
    system = model.system()
    at = [system.names.index(f"flight.p{k}") for k in range(4)]
    x = system.names.index("flight.x")
    q = np.linspace(-0.3, 0.4, system.n_q)
    q[x : x + 3] = 1.2, 0.3, -0.2
    q[at] = np.array([0.9, 0.1, -0.2, 0.3]) / np.linalg.norm([0.9, 0.1, -0.2, 0.3])
    v = np.linspace(0.5, -0.4, system.n_q)
    v[at] -= q[at] * (q[at] @ v[at])
    start = q, v, np.array([0.1, 0.2])
    return model, system, start, daedal.solve(system, (0.0, 0.2), start, **TIGHT)


def test_all_elements_are_traced(rich):
    system = rich[1]
    kinds = str(system.functions)
    assert "Python" not in kinds and "traced" in kinds


def test_relative_and_absolute_coordinates_give_the_same_motion(rich):
    model, system, start, sol = rich
    other = model.system("absolute")
    assert "Python" not in str(other.functions)
    run = daedal.solve(other, (0.0, 0.2), in_absolute_coordinates(model, *start), **TIGHT)
    one = system.motion(sol.q[:, -1], sol.v[:, -1], sol.r[:, -1])
    two = other.motion(run.q[:, -1], run.v[:, -1], run.r[:, -1])
    for body in model.bodies:
        assert np.allclose(one.position(body.at()), two.position(body.at()), atol=1e-7)
        assert np.allclose(one.rotation(body.at()), two.rotation(body.at()), atol=1e-7)
        assert np.allclose(one.velocity(body.at()), two.velocity(body.at()), atol=1e-6)
    assert np.allclose(sol.r[:, -1], run.r[:, -1], atol=1e-8)


def test_energy_grows_by_the_power_of_what_has_no_potential(rich):
    _, system, _, sol = rich
    nodes, weights = np.polynomial.legendre.leggauss(30)
    times = 0.1 * (nodes + 1.0)
    states = sol(times)
    powers = [
        kinetic_and_potential(system, t, states.q[:, i], states.v[:, i], states.r[:, i])[1] for i, t in enumerate(times)
    ]
    work = 0.1 * float(weights @ powers)
    ends = [kinetic_and_potential(system, sol.t[k], sol.q[:, k], sol.v[:, k], sol.r[:, k])[0] for k in (0, -1)]
    assert abs(work) > 0.1
    assert abs(ends[1] - ends[0] - work) < 1e-6


JOINTS = {
    "revolute": (lambda a, b: Revolute("j", a, b, axis=(1, 2, 0.5)), ("angle",)),
    "prismatic": (lambda a, b: Prismatic("j", a, b, axis=(1, 2, 0.5)), ("displacement",)),
    "cylindrical": (lambda a, b: Cylindrical("j", a, b, axis="y"), ("angle", "displacement")),
    "universal": (lambda a, b: Universal("j", a, b, axis="x", second_axis="y"), ("angle", "second_angle")),
    "planar": (lambda a, b: Planar("j", a, b, axis="x"), ("x", "y", "angle")),
}


@settings(max_examples=10, deadline=None)
@given(values=st.lists(st.floats(-1.4, 1.4), min_size=12, max_size=12))
@pytest.mark.parametrize("kind", JOINTS)
def test_coordinates_of_joints_do_not_depend_on_the_coordinates_of_the_model(kind, values):
    make, names = JOINTS[kind]
    first = Body("first", 1.0, (1.0, 1.2, 1.3), center=(0.1, 0.2, 0.3))
    second = Body("second", 2.0, (0.5, 0.4, 0.6), center=(0.0, -0.1, 0.2))
    frames = first.at(0.3, 0.1, 0.0, axis=(1, 1, 0)), second.at(0.0, 0.2, 0.1, axis="x")
    for a, b in (frames, frames[::-1]):  # the second time, the tree passes the joint backwards
        model = Model(Revolute("base", ground, first, axis="x"), make(a, b))
        system, other = model.system(), model.system("absolute")
        q, v = np.array(values[: system.n_q]), np.array(values[-system.n_q :])
        one, two = system.motion(q, v), other.motion(*in_absolute_coordinates(model, q, v))
        for name in names:
            assert one.coordinate("j", name) == pytest.approx(two.coordinate("j", name), abs=1e-12)
            assert one.rate("j", name) == pytest.approx(two.rate("j", name), abs=1e-12)
        # the rate is the derivative, and a load on the coordinate has the power load times rate
        step = 1e-6
        later, before = system.motion(q + step * v, v), system.motion(q - step * v, v)
        for name in names:
            difference = (later.coordinate("j", name) - before.coordinate("j", name)) / (2.0 * step)
            assert one.rate("j", name) == pytest.approx(difference, abs=1e-7)
            push = Motor("push", "j", 3.0, which=name)
            assert push.power(0.0, one) == pytest.approx(3.0 * one.rate("j", name), abs=1e-12)
            assert push.power(0.0, two) == pytest.approx(3.0 * one.rate("j", name), abs=1e-12)


@pytest.mark.parametrize("coordinates", ["relative", "absolute"])
def test_damped_torsional_oscillator(coordinates):
    disc = Body.cylinder("disc", radius=0.5, length=0.1, mass=4.0)  # J = 0.5
    model = Model(
        Revolute("axle", disc, ground), TorsionSpring("bar", "axle", stiffness=8.0, angle=0.3, damping=0.4), planar=True
    )
    start = np.array([0.7]), np.array([0.0])  # also in the tree, which passes the joint backwards
    q, v = start if coordinates == "relative" else in_absolute_coordinates(model, *start)
    system = model.system(coordinates)
    assert system.motion(q, v).angle("axle") == pytest.approx(0.7)
    sol = daedal.solve(system, (0.0, 2.0), (q, v), **TIGHT)
    angle = system.motion(sol.q[:, -1], sol.v[:, -1]).angle("axle")
    decay, swing = 0.4, np.sqrt(16.0 - 0.16)
    exact = 0.3 + 0.4 * np.exp(-decay * 2.0) * (np.cos(2.0 * swing) + decay / swing * np.sin(2.0 * swing))
    assert angle == pytest.approx(exact, abs=1e-8)


def test_eigenfrequencies_of_a_bushing():
    block = Body("block", 2.0, (0.3, 0.4, 0.5))
    model = Model(Free("free", ground, block), Bushing("mount", ground, block, (8, 18, 32), (1.2, 3.6, 8.0)))
    system = model.system()
    h = 1e-4
    rates = []
    for k in range(6):  # about each axis: Euler parameters of an angle h are (1, h/2)
        q = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
        q[k if k < 3 else k + 1] = h if k < 3 else 0.5 * h
        acceleration = system.at(0.0, q, np.zeros(7)).acceleration
        rates.append(-acceleration[k if k < 3 else k + 1] / q[k if k < 3 else k + 1])
    assert np.allclose(rates, [4, 9, 16, 4, 9, 16], rtol=1e-6)


def test_zero_length_spring_passes_through_the_origin():
    mass = Body.sphere("mass", radius=0.1, mass=1.0)
    model = Model(Free("free", ground, mass), Spring("spring", ground, mass, stiffness=4.0), planar=True)
    sol = daedal.solve(model.system(), (0.0, np.pi), ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]), **TIGHT)
    assert np.allclose(sol.q[:2, -1], [1.0, 0.0], atol=1e-8)


def test_hydraulic_resonance():
    table = Body.particle("table", mass=500.0)
    drive = Hydraulics("drive", "guide", area=2e-3, volume=1e-3, bulk_modulus=1.4e9)
    model = Model(Prismatic("guide", ground, table, axis="x"), drive)
    swing = np.sqrt(4.0 * 1.4e9 * 2e-3**2 / (1e-3 * 500.0))
    sol = daedal.solve(model.system(), (0.0, np.pi / swing), ([0.0], [0.01]), rtol=1e-10, atol=1e-12)
    assert sol.v[0, -1] == pytest.approx(-0.01, rel=1e-7)


def test_kepler_orbit():
    planet = Body.sphere("planet", radius=0.1, mass=3.0)
    pull = Gravitation("sun", ground, planet, constant=1.0, mass=1.0)
    model = Model(Free("orbit", ground, planet), pull, planar=True)
    start = [0.5, 0.0, 0.0], [0.0, np.sqrt(3.0), 0.0]  # semi-major axis 1, eccentricity 0.5
    sol = daedal.solve(model.system(), (0.0, 2.0 * np.pi), start, **TIGHT)
    assert np.allclose(sol.q[:, -1], start[0], atol=1e-6)


def test_energy_of_tables_and_functions():
    table = daedal.Table([0.0, 1.0, 2.0], [0.0, 4.0, 4.0])
    assert energy_of(table, 3.0) == pytest.approx(10.0, abs=1e-12)  # constant beyond the last point
    assert energy_of(table, 0.5) == pytest.approx(0.5, abs=1e-12)
    assert energy_of(lambda x: x**3, -2.0) == pytest.approx(4.0, rel=1e-12)


def test_states_of_several_controllers_are_told_apart():
    rotor = Body.cylinder("rotor", radius=1.0, length=0.1, mass=2.0)
    model = Model(
        Revolute("shaft", ground, rotor),
        Controller("one", "shaft", lambda t, m, x: x[1], lambda t, m, x: [x[1], -x[0]], initial=[0.0, 1.0]),
        Motor("motor", "shaft", lambda t, motion: motion.state("two")[0]),
        Controller("two", "shaft", lambda t, m, x: 0.0 * x[0], lambda t, m, x: [1.0], initial=[2.0]),
    )
    assert np.array_equal(model.start()[2], [0.0, 1.0, 2.0])
    sol = daedal.solve(model.system(), (0.0, 1.0), model.start(), **TIGHT)
    assert np.allclose(sol.r[:, -1], [np.sin(1.0), np.cos(1.0), 3.0], atol=1e-8)
    assert sol.v[0, -1] == pytest.approx(np.sin(1.0) + 2.5, abs=1e-8)  # J = 1: integral of cos t + 2 + t


MASS = Body.sphere("mass", mass=1.0, radius=0.1)
HINGE = Revolute("hinge", ground, MASS)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Spring("s", ground, MASS, stiffness=np.nan), ["stiffness of Spring 's'", "finite"]),
        (lambda: Spring("s", ground, MASS, stiffness=[(0, 0), (0, 1)]), ["stiffness of Spring 's'", "increase"]),
        (lambda: Spring("s", ground, MASS, stiffness=[1.0, 2.0]), ["stiffness of Spring 's'", "pairs"]),
        (lambda: Spring("s", MASS, MASS.at(1, 0)), ["Spring 's'", "both ends", "'mass'"]),
        (lambda: Spring("s", ground, "mass"), ["b of Spring 's'"]),
        (lambda: Damper("", ground, MASS), ["name of a force"]),
        (lambda: Bushing("b", ground, MASS, stiffness=(1, 2)), ["stiffness of Bushing 'b'"]),
        (lambda: Motor("m", 3), ["joint of Motor 'm'"]),
        (lambda: Motor("m", "hinge", [1.0, 2.0]), ["torque of Motor 'm'"]),
        (lambda: Controller("c", "hinge", lambda t, m, x: 0, None), ["rate of Controller 'c'"]),
        (lambda: Gravitation("g", ground, MASS), ["Gravitation 'g'", "'ground'", "mass="]),
        (lambda: Hydraulics("h", "hinge", area=0.0, volume=1.0, bulk_modulus=1.0), ["area", "'h'", "positive"]),
        (lambda: Model(HINGE, Motor("m", "elbow")), ["Motor('m')", "'elbow'", "known: hinge"]),
        (lambda: Model(HINGE, Motor("m", "hinge", which="displacement")), ["Motor('m')", "displacement", "angle"]),
        (lambda: Model(Spherical("ball", ground, MASS), Motor("m", "ball")), ["Motor('m')", "no angle"]),
        (lambda: Model(Cylindrical("c", ground, MASS), PID("p", "c")), ["PID('p')", "several", "'angle'"]),
    ],
)
def test_messages_name_the_force(make, words):
    with pytest.raises(InvalidProblemError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), caught.value


def test_wrong_results_of_functions_are_named():
    model = Model(HINGE, GeneralForce("wind", MASS, lambda t, motion: 3.0))
    with pytest.raises(InvalidProblemError, match="GeneralForce 'wind' must be two or three numbers"):
        model.system().at(0.0, [0.0], [0.0])
    model = Model(HINGE, Controller("c", "hinge", lambda t, m, x: x[0], lambda t, m, x: [0.0, 1.0]))
    with pytest.raises(InvalidProblemError, match="rate of Controller 'c' returned 2 numbers, but initial has 1"):
        daedal.solve(model.system(), (0.0, 1.0), model.start())


def test_exceptions_of_functions_arrive_unchanged():
    def broken(t, motion):
        raise KeyError("fuse")

    model = Model(HINGE, Motor("m", "hinge", broken))
    with pytest.raises(KeyError, match="fuse"):
        daedal.solve(model.system(), (0.0, 1.0), model.start())
