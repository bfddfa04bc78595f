"""Couplings, rolling, paths, rods and drives against closed forms, and bad ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.errors import InconsistentInitialError, InvalidProblemError, Unevaluable
from daedal.multibody import (
    Belt,
    Body,
    Cartesian,
    Coupling,
    Cylindrical,
    Distance,
    Free,
    Gear,
    Model,
    PointOnCurve,
    PointOnSurface,
    Prescribed,
    PrescribedMotion,
    Prismatic,
    Rack,
    Revolute,
    Rolling,
    RollingSphere,
    Screw,
    Spherical,
    Universal,
    UserConstraint,
    ground,
)
from daedal.multibody.algorithms import accelerations
from daedal.multibody.body import of_parameters, parameters_of
from daedal.multibody.kinematics import coordinate_rates

G = 9.81


def wheel(name="wheel", radius=0.5, mass=2.0):
    return Body.cylinder(name, radius=radius, length=1e-6, mass=mass)


def geared_pendulum(planar):
    """A rod under gravity geared to a flywheel: moments of inertia 1 and 0.25, the flywheel turns -3 times as fast."""
    rod, disc = Body.rod("rod", length=1.0, mass=3.0), wheel(mass=2.0)
    return Model(
        Revolute("A", ground, rod.start),
        Revolute("B", ground.at(1.5, 0.0), disc),
        Gear("gear", "A", "B", teeth=(30, 10)),
        gravity=(0.0, -G),
        planar=planar,
    )


def in_absolute(model, q, v):
    """The same state in absolute coordinates, for joints about axes along z; angles count turns."""
    layout, absolute = model.layout(), model.layout("absolute")
    tree = layout.tree
    new, rate = absolute.zero.copy(), np.zeros(absolute.n_v)
    for body, one in zip(model.bodies, layout.topology.joints):
        j, i = layout.index[body.name], absolute.index[body.name]
        angle, speed = q[tree.first_q[j]], v[tree.first_v[j]]
        at, first = absolute.tree.first_q[i], absolute.tree.first_v[i]
        turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1.0]])
        arm = turn @ (body.center - one.b.position)
        if model.planar:
            new[at : at + 3] = [*(one.a.position + arm)[:2], angle]
            rate[first : first + 3] = [-speed * arm[1], speed * arm[0], speed]
        else:
            new[at : at + 7] = [*(one.a.position + arm), *parameters_of(turn)]
            rate[first : first + 6] = [-speed * arm[1], speed * arm[0], 0.0, 0.0, 0.0, speed]
        name = f"angle of {one.name}"
        if name in absolute.massless:
            new[absolute.massless[name]], rate[absolute.tree.first_v[absolute.index[name]]] = angle, speed
    return new, coordinate_rates(absolute.tree, new, rate)


@pytest.mark.parametrize("planar", [True, False])
def test_gears_in_all_coordinates(planar):
    model = geared_pendulum(planar)
    state = np.array([1.2, -3.6]), np.array([-2.0, 6.0])
    expected = -3.0 * G * 0.5 * np.cos(1.2) / (1.0 + 9.0 * 0.25)
    point = model.system().at(0.0, *state)
    np.testing.assert_allclose(point.acceleration, [expected, -3.0 * expected], atol=1e-9)
    absolute = model.system("absolute")
    sols = [
        daedal.solve(model.system(), (0.0, 3.0), state, rtol=1e-9, atol=1e-9, compile="always"),
        daedal.solve(absolute, (0.0, 3.0), in_absolute(model, *state), rtol=1e-9, atol=1e-9, compile="always"),
    ]
    angle = sols[0].q[0, -1]
    assert abs(sols[0].q[1, -1] + 3.0 * angle) < 1e-9
    k = absolute.names.index("rod.angle" if planar else "angle of A")
    assert abs(sols[1].q[k, -1] - angle) < 1e-6
    energy = 0.5 * 3.25 * sols[0].v[0] ** 2 + 3.0 * G * 0.5 * np.sin(sols[0].q[0])
    assert np.ptp(energy) < 1e-6


def test_wheels_of_gears_may_turn_often_in_space():
    model = Model(
        Revolute("A", ground, wheel("one")),
        Revolute("B", ground.at(2.0, 0.0), wheel("two")),
        Gear("gear", "A", "B", ratio=-2.5),
    )
    start = in_absolute(model, np.zeros(2), np.array([5.0, -2.0]))
    sol = daedal.solve(model.system("absolute"), (0.0, 10.0), start, rtol=1e-8, compile="always")
    np.testing.assert_allclose(sol.q[-2:, -1], [50.0, -20.0], atol=1e-4)


@given(st.floats(0.2, 3.0), st.floats(0.2, 3.0), st.booleans(), st.booleans())
@settings(max_examples=15, deadline=None)
def test_belts_and_couplings_do_not_depend_on_how_joints_are_stated(first, second, crossed, flip):
    one, two = wheel("one"), wheel("two")
    hinge = Revolute("B", two, ground.at(2.0, 0.0)) if flip else Revolute("B", ground.at(2.0, 0.0), two)
    joints = Revolute("A", ground, one), hinge
    belt = Model(*joints, Belt("belt", "A", hinge, radii=(first, second), crossed=crossed), planar=True)
    factor = second if crossed else -second
    plain = Model(*joints, Coupling("belt", {"A": first, "B": factor}), planar=True)
    q = np.array([0.3, -0.7])
    values = [model.system().at(0.0, q).constraint[0] for model in (belt, plain)]
    expected = first * q[0] + factor * q[1]  # coordinates are those of the joints as they are stated
    np.testing.assert_allclose(values, [expected, expected], atol=1e-12)


def test_rack_and_pinion():
    slider = Body.box("slider", size=(1.0, 0.1, 0.1), mass=3.0)
    pinion = wheel(mass=2.0, radius=0.5)  # moment of inertia 0.25
    model = Model(
        Prismatic("slide", ground, slider, axis="x"),
        Revolute("pinion", ground.at(0.0, 0.5), pinion),
        Rack("rack", "pinion", "slide", radius=0.5, offset=0.1),
        gravity=(2.0, 0.0),
        planar=True,
    )
    point = model.system().at(0.0, [0.6, 1.0])
    assert abs(point.constraint[0]) < 1e-12
    a = 3.0 * 2.0 / (3.0 + 0.25 / 0.25)
    np.testing.assert_allclose(point.acceleration, [a, 2.0 * a], atol=1e-9)
    np.testing.assert_allclose(point.multipliers, [3.0 * (2.0 - a)], atol=1e-9)  # the force on the teeth


def test_screw_and_universal_joints_may_be_cut():
    """A nut that two joints lead to: a guide and a thread; turns are counted along 5 pitches."""
    nut = Body("nut", 1.0, 0.01)
    model = Model(Cylindrical("guide", ground, nut), Screw("thread", ground, nut, pitch=0.2), gravity=(0.0, 0.0, -G))
    system = model.system(cut=["thread"])
    assert system.constraint_names[-1] == "thread.5" and system.n_q == 3
    sol = daedal.solve(system, (0.0, 1.0), model.start(cut=["thread"]), rtol=1e-8, compile="always")
    k = 0.2 / (2.0 * np.pi)
    way = -0.5 * G * k**2 / (k**2 + 0.01)
    assert way < -0.4  # more than two turns
    np.testing.assert_allclose(sol.q[:, -1], [way, way / k, way / k], rtol=1e-5)


def test_second_angles_of_universal_joints_are_measured():
    arm = Body.rod("arm", length=1.0, mass=1.0, radius=0.1)
    joint = Universal("joint", ground, arm.start, axis="z", second_axis="y")
    model = Model(joint, Prescribed("lock", "joint.second_angle", 0.4), Prescribed("drive", "joint.angle", -0.3))
    absolute = model.layout("absolute")
    about_z, about_y = np.array([np.cos(0.15), 0.0, 0.0, -np.sin(0.15)]), np.array([np.cos(0.2), 0.0, np.sin(0.2), 0.0])
    turn = of_parameters(about_z) @ of_parameters(about_y)
    q = absolute.zero.copy()
    q[:7] = [*(turn @ [0.5, 0.0, 0.0]), *parameters_of(turn)]
    q[absolute.massless["second angle of joint"]] = 0.4
    q[absolute.massless["angle of joint"]] = -0.3
    assert np.abs(model.system("absolute").at(0.0, q).constraint).max() < 1e-12


# --- rolling ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("planar", [True, False])
def test_a_wheel_rolls_down_a_slope(planar):
    slope = 0.3
    down, normal = [np.cos(slope), -np.sin(slope), 0.0], [np.sin(slope), np.cos(slope), 0.0]
    body = wheel(radius=0.4)
    model = Model(
        Free("motion", ground, body),
        Rolling("contact", body, ground, radius=0.4, normal=normal),
        gravity=(0.0, -G),
        planar=planar,
    )
    q, v = model.start()
    place = 0.4 * np.array(normal)
    q[: 2 if planar else 3] = place[:2] if planar else place
    point = model.system().at(0.0, q, v)
    assert np.abs(point.constraint).max() < 1e-12
    expected = 2.0 / 3.0 * G * np.sin(slope)
    np.testing.assert_allclose(point.acceleration[:2], expected * np.array(down[:2]), atol=1e-8)
    sol = daedal.solve(model.system(), (0.0, 2.0), (q, v), rtol=1e-8, compile="always")
    np.testing.assert_allclose(sol.q[:2, -1] - place[:2], 2.0 * expected * np.array(down[:2]), rtol=1e-6)


def test_rolling_on_a_body_that_moves_and_turns():
    """A wheel between two plates: one at rest, the other drawn along, goes half as fast (and half as far)."""
    plate, roller = Body.box("plate", size=(9.0, 0.1, 1.0), mass=1.0), wheel(radius=0.5)
    model = Model(
        Prismatic("plate", ground, plate.at(0.0, -1.0), axis="x"),
        Free("roller", ground, roller),
        Rolling("below", roller, radius=0.5),
        Rolling("above", roller, plate, radius=0.5, normal="-y", offset=0.0),
        gravity=(0.0, 0.0),
        planar=True,
    )
    system = model.system()
    q, v = np.array([0.8, 0.4, 0.5, -0.8]), np.array([2.0, 1.0, 0.0, -2.0])
    point = system.at(0.0, q, v)
    assert np.abs(point.constraint).max() < 1e-12 and np.abs(point.velocity).max() < 1e-8
    assert system.n_constraints - np.linalg.matrix_rank(point.jacobian) == 1  # the height is stated twice


def coin_state(model, lean, spin):
    """A disc on the origin of the plane, leaning, with an angular velocity, rolling."""
    radius = 0.5
    q = model.layout().zero.copy()
    q[3:7] = [np.cos(lean / 2), np.sin(lean / 2), 0.0, 0.0]
    q[2] = radius * np.sin(lean)
    turn = of_parameters(q[3:7])
    down = -(np.array([0.0, 0.0, 1.0]) - np.cos(lean) * turn[:, 2]) / np.sin(lean)
    u = np.concatenate([-np.cross(spin, radius * down), turn.T @ spin])
    return q, coordinate_rates(model.layout().tree, q, u)


def coin_model():
    coin = wheel("coin")
    return Model(Free("coin", ground, coin), Rolling("table", coin, radius=0.5), gravity=(0.0, 0.0, -G))


def test_a_coin_wobbles_about_its_centre():
    """With the centre at rest and no spin about its axis, the coin precesses by Omega^2 = 4 g / (R sin(lean))."""
    lean = 0.4
    model = coin_model()
    rate = np.sqrt(4.0 * G / (0.5 * np.sin(lean)))
    axis = np.array([0.0, -np.sin(lean), np.cos(lean)])
    q, v = coin_state(model, lean, rate * (np.array([0.0, 0.0, 1.0]) - np.cos(lean) * axis))
    sol = daedal.solve(model.system(), (0.0, 2.0 * np.pi / rate), (q, v), rtol=1e-9, atol=1e-9, compile="always")
    np.testing.assert_allclose(sol.q[:3, -1], q[:3], atol=1e-7)
    np.testing.assert_allclose(of_parameters(sol.q[3:7, -1])[:, 2], axis, atol=1e-6)
    halfway = of_parameters(sol(np.pi / rate).q[3:7])[:, 2]
    np.testing.assert_allclose(halfway, [0.0, np.sin(lean), np.cos(lean)], atol=1e-4)


def test_a_coin_keeps_its_energy_and_does_not_slip():
    model = coin_model()
    system = model.system()
    q, v = coin_state(model, 1.2, np.array([3.0, -1.0, 0.5]))
    sol = daedal.solve(system, (0.0, 2.0), (q, v), rtol=1e-9, atol=1e-9)

    energy, slip = [], []
    for q, v in zip(sol.q.T[::5], sol.v.T[::5]):
        q, v = q.copy(), v.copy()
        energy.append(0.5 * v @ system.mass(0.0, q) @ v + 2.0 * G * q[2])
        slip.append(np.abs(system.velocity_constraint(0.0, q, v)).max())
    assert np.ptp(energy) < 1e-6 * energy[0]
    assert np.linalg.norm(sol.q[:2, -1]) > 0.2
    assert max(slip) < 1e-10


def test_a_ball_rolls_down_a_slope():
    ball = Body.sphere("ball", radius=0.3, mass=1.0)
    model = Model(
        Free("ball", ground, ball), RollingSphere("table", ball, radius=0.3), gravity=(G * 0.3, 0.0, -G * 0.9)
    )
    q, v = model.start()
    q[2] = 0.3
    v[4:7] = 1.0, 0.5, 0.7  # half of the angular velocity: it rolls and spins
    v[:2] = 2.0 * 0.5 * 0.3, -2.0 * 1.0 * 0.3
    point = model.system().at(0.0, q, v)
    assert np.abs(point.velocity).max() < 1e-8
    np.testing.assert_allclose(point.acceleration[:3], [5.0 / 7.0 * G * 0.3, 0.0, 0.0], atol=1e-8)


# --- paths and rods ---------------------------------------------------------------------------------------------------


def test_a_bead_on_a_wire_given_in_two_ways():
    bead = Body.particle("bead", mass=1.5)
    free = Cartesian("bead", ground, bead)
    on_curve = Model(free, PointOnCurve("wire", bead, lambda s: (s, s**2)), gravity=(0.0, -G), planar=True)
    on_surface = Model(free, PointOnSurface("wire", bead, lambda x, y, z: y - x**2), gravity=(0.0, -G), planar=True)
    curve = daedal.solve(on_curve.system(), (0.0, 2.0), ([1.0, 1.0, 1.0], np.zeros(3)), rtol=1e-9, compile="always")
    surface = daedal.solve(on_surface.system(), (0.0, 2.0), ([1.0, 1.0], np.zeros(2)), rtol=1e-9, compile="always")
    np.testing.assert_allclose(curve.q[:2, -1], surface.q[:, -1], atol=1e-6)
    np.testing.assert_allclose(curve.q[2, -1], curve.q[0, -1], atol=1e-12)
    energy = 0.5 * np.sum(surface.v**2, axis=0) + G * surface.q[1]
    assert np.ptp(energy) < 1e-6


def test_a_groove_in_a_body_that_turns():
    """A pin in a straight groove through the axis of a disc that turns steadily: r'' = omega^2 r."""
    disc, pin = wheel("disc"), Body.particle("pin", mass=1.0)
    model = Model(
        Revolute("shaft", ground, disc),
        Cartesian("pin", ground, pin),
        PointOnCurve("groove", pin, lambda s: (s, 0.0), disc, start=0.2),
        Prescribed("motor", "shaft", lambda t: 2.0 * t),
        planar=True,
    )
    names = model.system().names
    q, v = model.assemble(pin=(0.2, 0.0))
    assert abs(q[names.index("s of groove")] - 0.2) < 1e-9
    v[names.index("shaft")], v[names.index("pin.y")] = 2.0, 0.4
    sol = daedal.solve(model.system(), (0.0, 1.0), (q, v), rtol=1e-9, compile="always")
    assert abs(sol.q[names.index("s of groove"), -1] - 0.2 * np.cosh(2.0)) < 1e-6


def test_rods_without_mass_are_pulled():
    bob = Body.particle("bob", mass=2.0)
    rod = Distance("rod", ground, bob, 1.25)
    own = UserConstraint("rod", lambda t, m: [m.position(bob.at()) @ m.position(bob.at()) - 1.25**2], 1)
    q, v = np.array([0.75, 0.0, -1.0]), np.array([0.8, 0.5, 0.6])
    points = [
        Model(Cartesian("bob", ground, bob), part, gravity=(0.0, 0.0, -G)).system().at(0.0, q, v) for part in (rod, own)
    ]
    np.testing.assert_allclose(points[0].acceleration, points[1].acceleration, atol=1e-8)
    pull = 2.0 * (G * 1.0 / 1.25 + v @ v / 1.25)
    np.testing.assert_allclose(points[0].multipliers, [pull], rtol=1e-8)


# --- drives -----------------------------------------------------------------------------------------------------------


def test_a_crane_driven_in_two_ways():
    """A pendulum on a carriage that is moved as a function of time; the reaction is the force of the drive."""
    carriage, rod = Body.box("carriage", size=(1.0, 1.0, 1.0), mass=5.0), Body.rod("rod", length=1.0, mass=2.0)
    joints = Prismatic("rail", ground, carriage, axis="x"), Revolute("pin", carriage, rod.start)

    def way(t):
        return 0.3 * np.sin(2.0 * t)

    def model(*parts):
        return Model(*joints, *parts, gravity=(0.0, -G), planar=True)

    by_joint = model(Prescribed("drive", "rail", way))
    by_frame = model(PrescribedMotion("drive", carriage, lambda t: (way(t), 0.0)))
    start = [0.0, -0.5 * np.pi], [0.6, 0.0]
    sols = [daedal.solve(one.system(), (0.0, 2.0), start, rtol=1e-9, atol=1e-9) for one in (by_joint, by_frame)]
    np.testing.assert_allclose(sols[0].q[:, -1], sols[1].q[:, -1], atol=1e-6)
    assert abs(sols[0].q[0, -1] - way(2.0)) < 1e-9
    t, q, v = 0.7, np.array([way(0.7), -1.0]), np.array([0.6 * np.cos(1.4), 0.5])
    point = by_joint.system().at(t, q, v)
    a, alpha = point.acceleration
    centre = a + 0.5 * (-np.sin(-1.0) * alpha - np.cos(-1.0) * 0.25)
    np.testing.assert_allclose(-point.multipliers, [5.0 * a + 2.0 * centre], rtol=1e-8)


def test_a_frame_led_along_a_spatial_motion():
    body = Body("tool", 1.0, (0.1, 0.2, 0.3))

    def orientation(t):
        return np.array([np.cos(t / 2), 0.0, np.sin(t / 2), 0.0])  # about y

    drive = PrescribedMotion("hand", body, lambda t: (t, t**2, 0.0), orientation)
    model = Model(Free("tool", ground, body), drive, gravity=(0.0, 0.0, -G))
    q, v = model.start()
    v[0], v[5] = 1.0, 0.5
    sol = daedal.solve(model.system(), (0.0, 1.0), (q, v), compile="always")
    np.testing.assert_allclose(sol.q[:, -1], [1.0, 1.0, 0.0, *orientation(1.0)], atol=1e-6)
    multipliers = model.system().at(0.0, q, v).multipliers
    np.testing.assert_allclose(-multipliers[1:4], [0.0, 2.0, G], atol=1e-7)


def four_bar(*drives):
    """A parallelogram."""
    crank, coupler, rocker = (Body.rod(n, length=1.0, mass=1.0) for n in ("crank", "coupler", "rocker"))
    return Model(
        Revolute("A", ground, crank.start),
        Revolute("B", crank.end, coupler.start),
        Revolute("C", coupler.end, rocker.start),
        Revolute("D", rocker.end, ground.at(1.0, 0.0)),
        *drives,
        planar=True,
    )


def test_drives_that_fight_are_named():
    drives = Prescribed("motor", "A", lambda t: t), Prescribed("brake", "A.angle", 0.0)
    with pytest.raises(InvalidProblemError, match="'motor' and 'brake' both prescribe the motion of joint 'A'"):
        four_bar(*drives)
    model = four_bar(Prescribed("motor", "A", lambda t: 1.0 + t), Prescribed("brake", "D", lambda t: -1.0 - 2.0 * t))
    names = model.system(cut=["D"]).names
    q = dict(A=1.0, B=-1.0, C=-np.pi + 1.0)
    start = [q[name] for name in names], np.zeros(3)
    with pytest.raises(InconsistentInitialError, match=r"'motor'.*'brake'|'brake'.*'motor'"):
        daedal.solve(model.system(cut=["D"]), (0.0, 1.0), start)


def test_drives_that_fight_are_named_when_the_machine_is_assembled():
    motor = Prescribed("motor", "A", lambda t: 1.0 + t)
    both = r"'motor' \(joint 'A'\) and 'brake' \(joint 'D'\)"
    with pytest.raises(InconsistentInitialError, match=f"cannot be closed.* prescribed by {both}"):
        four_bar(motor, Prescribed("brake", "D", 0.5)).assemble()
    with pytest.raises(InconsistentInitialError, match=f"no motion satisfies {both} at t = 0: they are incompatible"):
        four_bar(motor, Prescribed("brake", "D", np.pi - 1.0)).assemble()
    start = four_bar(motor, Prescribed("second", "D", lambda t: np.pi - 1.0 - t)).assemble()  # a parallelogram
    assert abs(start.rate("D") + 1.0) < 1e-9


def test_bad_constraints_are_refused_by_name():
    rod = Body.rod("rod", length=1.0, mass=1.0)
    hinge, ball = Revolute("A", ground, rod.start), Spherical("A", ground, rod.start)
    with pytest.raises(InvalidProblemError, match="constraint 'gear': there is no joint 'Z'; known: A"):
        Model(hinge, Gear("gear", "A", "Z", ratio=2.0))
    with pytest.raises(InvalidProblemError, match="constraint 'gear' refers to joint 'A' twice"):
        Model(hinge, Gear("gear", "A", hinge, ratio=2.0))
    with pytest.raises(InvalidProblemError, match=r"constraint 'motor'.*no angle"):
        Model(ball, Prescribed("motor", "A", lambda t: t))
    with pytest.raises(InvalidProblemError, match=r"constraint 'motor'.*several coordinates"):
        Model(Cylindrical("A", ground, rod), Prescribed("motor", "A", lambda t: t))
    with pytest.raises(InvalidProblemError, match="have the name 'A'"):
        Model(hinge, Prescribed("A", "A", lambda t: t))
    with pytest.raises(InvalidProblemError, match="the model also has 'motor'"):
        accelerations(Model(hinge, Prescribed("motor", "A", lambda t: t)), [0.0], [1.0])
    with pytest.raises(InvalidProblemError, match="the ratio of gear 'gear' must not be zero"):
        Gear("gear", "A", "B", ratio=0.0)
    with pytest.raises(InvalidProblemError, match="the length of rod 'tie' must be positive"):
        Distance("tie", ground, rod.end, 0.0)
    with pytest.raises(InvalidProblemError, match="axis of the wheel of constraint 'roll' must be z"):
        Model(hinge, Rolling("roll", rod, radius=1.0, axis="x"), planar=True)
    for part, message in (
        (Prescribed("motor", "A", lambda t: [t, t]), r"function of drive 'motor' returned \[.*\]; expected a number"),
        (UserConstraint("own", lambda t, motion: [0.0, 0.0], 1), r"function of constraint 'own' returned"),
        (PointOnCurve("wire", rod.end, lambda s: s), "curve of constraint 'wire' returned .* two or three"),
    ):
        model = Model(hinge, part, planar=True)
        with pytest.raises(InvalidProblemError, match=message):
            daedal.solve(model.system(), (0.0, 1.0), model.start())


def test_machines_with_constraints_are_assembled_in_all_coordinates():
    model = geared_pendulum(planar=False)
    start = model.assemble(A=7.0, velocities={"A": 1.0})
    np.testing.assert_allclose([start.joint("B"), start.rate("B")], [-21.0, -3.0], atol=1e-9)
    absolute = start.in_coordinates("absolute")
    assert np.abs(model.system("absolute").at(0.0, *absolute).constraint).max() < 1e-9
    back = absolute.in_coordinates("relative")
    np.testing.assert_allclose([back.q, back.v], [start.q, start.v], atol=1e-9)
    plane = geared_pendulum(planar=True).assemble(A=7.0).in_coordinates("absolute")
    assert np.abs(plane.model.system("absolute").at(0.0, *plane).constraint).max() < 1e-9
    coin = coin_model()
    with pytest.raises(Unevaluable, match="the wheel of constraint 'table' lies flat"):
        coin.start()
    bead = Body.particle("bead", mass=1.0)
    circle = PointOnCurve("wire", bead, lambda s: (np.cos(s), np.sin(s)), start=2.0)
    free = Model(Cartesian("bead", ground, bead), circle, planar=True).assemble(hold={"s of wire": 2.0})
    np.testing.assert_allclose(free.q, [np.cos(2.0), np.sin(2.0), 2.0], atol=1e-9)
