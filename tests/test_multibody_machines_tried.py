"""Machines that an engineer tried: starts at zero, void conditions, axles with two wheels, prescribed motions."""

import pickle

import numpy as np
import pytest

import daedal
from daedal.multibody import (
    Actuator,
    Body,
    Bushing,
    Contact,
    Distance,
    Free,
    GeneralForce,
    Model,
    Motor,
    Planar,
    Prescribed,
    PrescribedMotion,
    Prismatic,
    Revolute,
    Rolling,
    Spherical,
    Spring,
    Torque,
    ground,
)
from daedal.viz import Plane, RodLine

TIGHT = {"rtol": 1e-9, "atol": 1e-10}

# --- round-off in units of the machine --------------------------------------------------------------------------------


def four_bar_at_zero(**kind):
    a = Body("a", mass=1.0, inertia=0.1, center=(0.2, 0.0))
    b = Body("b", mass=1.0, inertia=0.1, center=(0.05, 0.55))
    c = Body("c", mass=1.0, inertia=0.1, center=(0.325, 0.05))
    return Model(
        Revolute("A", ground, a),
        Revolute("B", a.at(0.4, 0.0), b),
        Revolute("C", ground.at(-0.15, 1.0), c),
        Revolute("D", c.at(0.65, 0.1), b.at(0.1, 1.1)),
        gravity=(0.0, -9.81),
        planar=True,
    )


@pytest.mark.parametrize("options", [{}, {"rtol": 1e-6, "atol": 1e-6}, {"rtol": 1e-4}, {"rtol": 1e-10, "atol": 1e-12}])
def test_a_four_bar_starts_with_all_angles_at_zero(options):
    model = four_bar_at_zero()
    start = model.start()
    assert not np.any(start.q)
    sol = daedal.solve(model, (0.0, 2.0), start, **options)
    beside = daedal.solve(model, (0.0, 2.0), model.assemble(A=1e-9), **TIGHT)
    np.testing.assert_allclose(sol.q[:, -1], beside.q[:, -1], atol=2e-3 if options.get("rtol", 1) > 1e-7 else 1e-6)


def test_constraints_of_functions_start_with_all_angles_at_zero():
    """The same of a mechanism that is no machine of bodies: nothing is known of its size."""

    def gap(t, q):
        a, b = q[0], q[0] + q[1]
        return [0.4 * np.cos(a) + 0.5 * np.cos(b + 1.0) - 0.4 - 0.5 * np.cos(1.0) + 0.1 * np.sin(q[2])]

    system = daedal.MechanicalSystem(
        np.diag([1.0, 0.5, 0.2]), lambda t, q, v: [-9.81, -1.0, 0.3], gap, n_q=3, n_constraints=1
    )
    sol = daedal.solve(system, (0.0, 0.1), (np.zeros(3), np.zeros(3)))
    assert sol.success and sol.drift["position"] < 1e-14


# --- conditions that hold whatever moves ------------------------------------------------------------------------------


def spatial_four_bar():
    a, b, c = (Body.rod(n, length=l, mass=1.0, radius=0.02) for n, l in (("a", 1.0), ("b", 3.0), ("c", 2.0)))
    return Model(
        Revolute("A", ground.at(0.0, 0.0, 0.1), a.start),
        Revolute("B", a.at(0.5, 0.0, 0.05), b.start),
        Revolute("C", b.end, c.end),
        Revolute("D", ground.at(3.0, 0.0, 0.15), c.start),
        gravity=(0.0, -9.81, 0.0),
    )


def test_conditions_without_gradient_are_dropped_in_words():
    model = spatial_four_bar()
    start = model.assemble(A=0.7)
    sol = daedal.solve(model, (0.0, 1.0), start, **TIGHT)
    assert "'C.3' = 0" in sol.message and "redundant" in sol.message
    other = daedal.solve(model.system("absolute"), (0.0, 1.0), start.in_coordinates("absolute"), **TIGHT)
    np.testing.assert_allclose(sol.joint("A").angle[-1], other.joint("A").angle[-1], atol=1e-6)
    assert daedal.consistent_initial(model.system(), 0.0, (start.q, start.v)).q.size == 3


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_condition_that_never_holds_is_refused_in_any_unit(scale):
    """The hinges of a chain that closes in the plane but for a way along their axes."""
    a, b = (Body.rod(name, length=scale, mass=1.0, radius=0.1 * scale) for name in "ab")
    model = Model(
        Revolute("A", ground, a.start),
        Revolute("B", a.end, b.start),
        Revolute("C", b.end, ground.at(scale, 0.0, 1e-4 * scale)),
    )
    q = np.array([np.pi / 3, -2 * np.pi / 3])
    with pytest.raises(daedal.InconsistentInitialError, match=r"C\.3"):
        daedal.solve(model.system(cut=["C"]), (0.0, 1.0), (q, np.zeros(2)))


# --- two wheels on an axle --------------------------------------------------------------------------------------------


def wheelset(joint):
    axle = Body("axle", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.0, 0.0, 0.1))
    wheels = [
        Body(f"wheel {i}", mass=0.5, inertia=(0.02, 0.01, 0.02), position=(0.0, y, 0.1))
        for i, y in ((1, 0.25), (2, -0.25))
    ]
    hubs = [
        Revolute(f"hub {i}", axle.at(0.0, y, 0.0), w, axis="y") for i, (w, y) in enumerate(zip(wheels, (0.25, -0.25)))
    ]
    rolling = [Rolling(f"rolling {i}", wheel, radius=0.1, axis="y") for i, wheel in enumerate(wheels)]
    motors = [Motor("left", "hub 0", lambda t, motion: 0.2 * np.sin(t)), Motor("right", "hub 1", 0.3)]
    return Model(joint(axle), *hubs, *rolling, *motors, gravity=(0.0, 0.0, -9.81))


@pytest.mark.parametrize("kind", ["planar", "free"])
@pytest.mark.parametrize("coordinates", ["relative", "absolute"])
def test_two_wheels_on_an_axle_turn_all_around(kind, coordinates):
    joints = {
        "planar": lambda axle: Planar("axle", ground.at(0.0, 0.0, 0.1), axle),
        "free": lambda axle: Free("axle", ground, axle),
    }
    model = wheelset(joints[kind])
    sol = daedal.solve(model, (0.0, 3.0), model.start(coordinates), rtol=1e-8, atol=1e-9)
    assert "singular" not in sol.message
    # Lagrange's equations in the angles of the wheels: m v' = (F1 + F2), J w' = b (F2 - F1), J1 phi'' = tau - R F
    r, b, own, mass, moment = 0.1, 0.25, 0.01, 2.0, 0.1 + 2 * (0.02 + 0.5 * 0.25**2)
    m, j = mass * r**2 / 4 + moment * r**2 / (4 * b**2), mass * r**2 / 4 - moment * r**2 / (4 * b**2)
    inverse = np.linalg.inv([[m + own, j], [j, m + own]])

    def rates(t, y):
        phi = y[3:5]
        accelerations = inverse @ [0.2 * np.sin(t), 0.3]
        v, turn = 0.5 * r * (phi[0] + phi[1]), 0.5 * r / b * (phi[1] - phi[0])
        return [v * np.cos(y[2]), v * np.sin(y[2]), turn, *accelerations]

    from scipy.integrate import solve_ivp

    exact = solve_ivp(rates, (0.0, 3.0), np.zeros(5), rtol=1e-11, atol=1e-12).y[:, -1]
    assert exact[2] > 2 * np.pi * 0.5
    np.testing.assert_allclose(sol.body("axle").position[:2, -1], exact[:2], atol=1e-5)


# --- forces of prescribed motions -------------------------------------------------------------------------------------


def test_forces_of_prescribed_motions_belong_to_the_joints_asked_for():
    rod, t = Body.rod("rod", length=2.0, mass=3.0), np.linspace(0.0, 1.0, 5)

    def model(*drives):
        return Model(Revolute("A", ground, rod.start), *drives, gravity=(0.0, -10.0), planar=True)

    def ahead(t):
        return 0.5 * t * t

    driven = model().kinematics(t, {"A": ahead})
    expected = 4.0 + 30.0 * np.cos(ahead(t))
    joint = model(Prescribed("motor", "A", ahead))
    led = model(PrescribedMotion("hand", rod.end, lambda t: (2 * np.cos(0.5 * t * t), 2 * np.sin(0.5 * t * t))))
    for one, motion, by in (
        (model(), driven, None),
        (joint, joint.kinematics(t), None),
        (joint, joint.kinematics(t), ["A"]),
        (led, led.kinematics(t), ["A"]),
        (model(), joint.kinematics(t), ["A"]),
        (model(), led.kinematics(t), ["A"]),
    ):
        found = one.inverse_dynamics(motion, by=by)
        np.testing.assert_allclose(found["A"], expected, rtol=1e-9)
        assert not np.any(np.abs(found.lam) > 1e-9)
    with pytest.raises(daedal.InvalidProblemError, match="cannot produce this motion"):
        joint.inverse_dynamics(joint.kinematics(t), by=[])
    other = Model(Prismatic("x", ground, rod, axis="x"), planar=True)
    with pytest.raises(daedal.InvalidProblemError, match="Remedy: use the original model"):
        other.inverse_dynamics(driven)


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_modes_that_turn_a_ball_joint_are_animated(tmp_path):
    bob = Body.box("bob", size=(0.2, 0.3, 0.4), mass=1.0)
    model = Model(
        Spherical("s", ground, bob.at(0.0, 0.0, 1.0)),
        Bushing("k", ground, bob.at(0.0, 0.0, 1.0), torsional_stiffness=5.0),
        gravity=(0.0, 0.0, -9.81),
    )
    small = model.linearise(model.equilibrium())
    motion = small.modes[0].motion(61)
    h = 1e-6
    at = motion.at([0.3 * motion.t[-1] - h, 0.3 * motion.t[-1], 0.3 * motion.t[-1] + h])
    np.testing.assert_allclose(np.sum(at.q**2, axis=0), 1.0, atol=1e-14)
    np.testing.assert_allclose((at.q[:, 2] - at.q[:, 0]) / (2 * h), at.v[:, 1], atol=1e-6)
    assert small.animate(0, tmp_path / "mode.html").stat().st_size > 10_000


def test_rods_and_planes_are_drawn():
    ball, bob = Body.sphere("ball", radius=0.1, mass=1.0), Body.particle("bob", mass=1.0)
    model = Model(
        Free("flight", ground, ball),
        Free("swing", ground, bob),
        Distance("rope", ground.at(0.0, 2.0), bob, 1.0),
        Contact("floor", ball, ground, normal="y", radius=0.1),
        Contact("same floor", bob, ground, normal="y"),
        planar=True,
    )
    scene = model.draw(model.assemble(flight=(0.0, 1.0, 0.0), swing=(0.0, 1.0, 0.0), coordinates="relative"))
    from daedal.multibody.motion import MotionHistory
    from daedal.multibody.picture import scene_of

    start = model.assemble(flight=(0.0, 1.0, 0.0), swing=(0.6, 1.2, 0.0))
    course = MotionHistory(
        model, start.layout, np.zeros(1), start.q[None], start.v[None], np.zeros((1, 0)), lambda: None
    )
    parts = {part.name: part for part in scene_of(course).parts}
    rope = parts["rope"]
    assert scene is not None and isinstance(rope, RodLine)
    np.testing.assert_allclose(np.ravel(rope.start), (0.0, 2.0, 0.0))
    np.testing.assert_allclose(np.ravel(rope.end), (0.6, 1.2, 0.0), atol=1e-12)
    (plane,) = [shape for part in parts.values() for shape in getattr(part, "shapes", ()) if isinstance(shape, Plane)]
    np.testing.assert_allclose(plane.direction, (0.0, 1.0, 0.0))


# --- small ones -------------------------------------------------------------------------------------------------------


def pendulum(length):
    model = Model(
        Revolute("A", ground, Body.rod("rod", length=length, mass=1.0).start), gravity=(0.0, -9.81), planar=True
    )
    return model.system(), model.assemble(A=0.3)


def test_ensembles_of_machines_that_a_function_makes_have_positions():
    runs = daedal.solve_many(
        pendulum, (0.0, 1.0), None, params=[{"length": 1.0}, {"length": 2.0}], t_eval=np.linspace(0.0, 1.0, 3)
    )
    assert runs.q.shape == runs.v.shape == (2, 1, 3) and runs.final.q.shape == (2, 1)
    system, start = pendulum(2.0)
    one = daedal.solve(system, (0.0, 1.0), start)
    np.testing.assert_allclose(runs.q[1, 0, -1], one.q[0, -1], atol=1e-9)


def test_ensembles_of_which_every_machine_fails_refer_to_the_reasons():
    runs = daedal.solve_many(pendulum, (0.0, 1.0), None, params=[{"length": -1.0}], t_eval=[0.0, 1.0])
    assert "length" in runs.messages[0]
    with pytest.raises(daedal.InvalidProblemError, match="no run was successful"):
        runs.q  # noqa: B018


def test_models_are_solved_as_they_are():
    model = spatial_four_bar()
    for coordinates in ("relative", "absolute"):
        start = model.assemble(A=0.7, coordinates=coordinates)
        sol = daedal.solve(model, (0.0, 0.1), start)
        assert sol.n_q == model.system(coordinates).n_q
    cut = model.assemble(A=0.7, cut=["A"])
    assert daedal.solve(model, (0.0, 0.1), cut).names[:3] == tuple(model.system(cut=["A"]).names)
    with pytest.raises(daedal.InvalidProblemError, match="got dict"):
        daedal.solve({}, (0.0, 1.0), [0.0])


def test_models_are_pickled_after_all_analyses():
    model = spatial_four_bar()
    rest = model.equilibrium(guess={"A": -1.5})
    model.linearise(rest)
    daedal.solve(model, (0.0, 0.01), rest)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.equilibrium(guess={"A": -1.5}).q, rest.q)


def test_equilibrium_holds_a_free_body_with_its_orientation():
    box = Body.box("box", size=(0.1, 0.2, 0.3), mass=1.0)
    spring = Bushing("k", ground, box.at(0.0, 0.0, 0.1), stiffness=100.0, torsional_stiffness=5.0)
    model = Model(Free("f", ground, box), spring, gravity=(0.0, 0.0, -9.81))
    angle = 0.3
    held = model.equilibrium(f=((0.0, 0.0, 0.3), (np.cos(angle / 2), np.sin(angle / 2), 0.0, 0.0)))
    np.testing.assert_allclose(held.q, [0.0, 0.0, 0.3, np.cos(angle / 2), np.sin(angle / 2), 0.0, 0.0], atol=1e-12)
    lift = 9.81 + 100.0 * (0.3 + 0.1 * np.cos(angle))
    np.testing.assert_allclose(held.holding["f"][:3], [0.0, -100.0 * 0.1 * np.sin(angle), lift], atol=1e-9)
    system = model.system()
    torque = held.holding["f"][3:]
    turning = system.at(0.0, held.q, np.zeros(7)).force[3:]  # along Euler parameters: 2 L^T times the torque
    c, s = np.cos(angle / 2), np.sin(angle / 2)
    L = 2 * np.array([[-s, c, 0.0, 0.0], [0.0, 0.0, c, s], [0.0, 0.0, -s, c]])
    np.testing.assert_allclose(L.T @ torque, -turning, atol=1e-9)


def test_ends_of_springs_at_one_point_are_named():
    mass = Body.particle("mass", mass=1.0)
    for force in (
        Spring("limp", ground, mass, stiffness=3.0, length=1.0),
        Actuator("push", ground, mass, 2.0),
    ):
        model = Model(Prismatic("x", ground, mass, axis="x"), force)
        with pytest.raises(daedal.InconsistentInitialError, match=f"'{force.name}': its ends coincide"):
            daedal.solve(model, (0.0, 1.0), model.start())


def test_a_rod_with_a_density_needs_a_radius():
    with pytest.raises(daedal.InvalidProblemError, match="has a density but no radius"):
        Body.rod("rod", length=1.0, density=7800.0)


def test_forces_and_torques_are_numbers_too():
    disc = Body.cylinder("disc", radius=0.5, length=0.1, mass=4.0)
    axle = Revolute("axle", ground, disc)
    for torque in (3.0, (0.0, 0.0, 3.0), lambda t, motion: 3.0):
        assert Model(axle, Torque("twist", disc, torque)).system().at(0.0, [0.0], [0.0]).force == [3.0]
    for force in ((0.0, 2.0), [0.0, 2.0, 0.0], lambda t, motion: (0.0, 2.0)):
        pull = GeneralForce("pull", disc.at(0.5, 0.0), force)
        assert Model(axle, pull).system().at(0.0, [0.0], [0.0]).force == [1.0]
    with pytest.raises(daedal.InvalidProblemError, match="force of GeneralForce 'pull' must be two or three"):
        GeneralForce("pull", disc, 3.0)


# --- found by random machines -----------------------------------------------------------------------------------------


def two_bearings():
    """A free body on an axle in two bearings, and one that flies: all conditions of the second bearing are void."""
    wheel, stone = Body.cylinder("wheel", radius=0.3, length=0.1, mass=2.0), Body.box("stone", size=(1, 2, 3), mass=1.0)
    turn = np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])
    place = np.array([0.3, -0.7, 0.2])
    drawn = Body("wheel", wheel.mass, wheel.inertia.moments, position=place, orientation=turn)
    axle, arm = ground.at(*place, rotation=turn), Body.rod("arm", length=1.0, mass=1.0, radius=0.1)
    return Model(
        Free("shaft", ground, drawn),
        Revolute("one", axle, drawn.at()),
        Revolute("two", axle, drawn.at()),
        Planar("end", axle, drawn.at()),
        Free("flight", drawn, stone),
        Revolute("left", stone.at(1, 0, 0), arm),
        Revolute("right", stone.at(1, 0, 0), arm),
    )


def test_void_conditions_do_not_spoil_assembly_and_report():
    model = two_bearings()
    start = model.start()
    np.testing.assert_allclose(start.position("wheel"), [0.3, -0.7, 0.2], atol=1e-14)
    found = model.report()
    assert found.degrees_of_freedom == 8 and len(found.redundant) == 13
    assert len(found.loops) == 3  # of the axle two, and one in what flies
