"""Contacts, impacts and friction of machines against closed forms; what cannot be combined is refused."""

import numpy as np
import pytest

import daedal
from daedal.errors import InvalidProblemError
from daedal.multibody import (
    Body,
    Contact,
    Frame,
    Free,
    JointFriction,
    Model,
    Prismatic,
    Revolute,
    SmoothFriction,
    SoftContact,
    Spring,
    ground,
)

G = 9.81


def ball_model(*parts, **options):
    ball = Body.sphere("ball", radius=0.1, mass=2.0)
    return Model(
        Free("flight", ground, ball), *(part(ball) for part in parts), gravity=(0.0, -G), planar=True, **options
    )


@pytest.mark.parametrize("height", [0.0, 0.1, 0.3])  # of the floor; at 0.1 a step ends on the very zero of the gap
def test_a_ball_bounces_until_it_rests(height):
    model = ball_model(lambda ball: Contact("floor", ball, ground.at(0.0, height), "y", restitution=0.5, radius=0.1))
    start = [0.0, height + 1.1, 0.0], [1.0, 0.0, 0.0]
    sol = daedal.solve(model.problem(), (0.0, 2.0), start, rtol=1e-8, atol=1e-10)
    fall = np.sqrt(2.0 / G)
    hits = sol.events.t
    for k in range(6):  # t_k = T (1 + 2 (e + ... + e^k))
        assert hits[k] == pytest.approx(fall * (1.0 + 2.0 * (1.0 - 0.5**k)), abs=1e-6)
    assert hits[-1] == pytest.approx(3.0 * fall, abs=1e-4)
    assert sol.mode[-1] == "floor"
    assert np.allclose(sol.y[:, -1], [2.0, height + 0.1, 0.0, 1.0, 0.0, 0.0], atol=1e-7)


def test_a_ball_in_space_hits_a_tilted_plane():
    """The velocity is turned back along the normal: v+ = v - (1 + e) (n . v) n."""
    ball = Body.sphere("ball", radius=0.1, mass=1.0)
    n = np.array([0.6, 0.0, 0.8])
    wall = Contact("wall", ball, ground, n, restitution=0.5, radius=0.1)
    model = Model(Free("flight", ground, ball), wall)
    start = model.assemble(flight=((0.0, 0.0, 1.0), None), velocities={"flight": (0.0, 1.0, -2.0, 0.0, 3.0, 0.0)})
    sol = daedal.solve(model.problem(), (0.0, 0.6), start, rtol=1e-9)
    v = np.array([0.0, 1.0, -2.0])
    assert sol.events.t == pytest.approx([(0.8 - 0.1) / 1.6], abs=1e-8)
    assert sol.y[7:10, -1] == pytest.approx(v - 1.5 * (n @ v) * n, abs=1e-8)


def test_a_contact_with_a_moving_body():
    """A plate of 4 kg that rises with 3 m/s meets a ball of 1 kg, elastically: it leaves with 2 * 3 * 4 / 5."""
    lift = Body.box("lift", size=(1.0, 0.2, 1.0), mass=4.0)
    ball = Body.sphere("ball", radius=0.1, mass=1.0)
    model = Model(
        Prismatic("shaft", ground, lift, axis="y"),
        Free("flight", ground, ball),
        Contact("top", ball, lift.at(0.0, 0.1), (0.0, 1.0), restitution=1.0, radius=0.1),
        planar=True,
    )
    problem = model.problem()
    names = problem.modes["free"].problem.names
    q, v = np.zeros(4), np.zeros(4)
    q[names.index("flight.y")], v[names.index("shaft")] = 0.5, 3.0
    sol = daedal.solve(problem, (0.0, 0.2), (q, v), rtol=1e-9)
    assert sol.events[0].t == pytest.approx(0.1, abs=1e-8)
    assert sol.y[4 + names.index("flight.y"), -1] == pytest.approx(4.8, rel=1e-6)
    assert sol.y[4 + names.index("shaft"), -1] == pytest.approx(1.8, rel=1e-6)


def test_a_chain_falls_on_the_floor_and_comes_to_rest():
    links = [Body.rod(f"link{i}", length=0.3, mass=1.0) for i in range(2)]
    model = Model(
        Free("fall", ground, links[0]),
        Revolute("joint", links[0].end, links[1].start),
        Contact("left", links[0].start, ground, "y", restitution=0.2),
        Contact("middle", links[0].end, ground, "y", restitution=0.2),
        Contact("right", links[1].end, ground, "y", restitution=0.2),
        gravity=(0.0, -G),
        planar=True,
    )
    problem = model.problem(rest_speed=0.1)
    names = problem.modes["free"].problem.names
    q = np.zeros(4)
    q[[names.index("fall.y"), names.index("fall.angle"), names.index("joint")]] = 0.3, 0.2, -0.5
    sol = daedal.solve(problem, (0.0, 1.0), (q, np.zeros(4)), rtol=1e-7, atol=1e-9)
    assert sol.mode[-1] == "left + middle + right"
    system = problem.modes["free"].problem
    motion = system.motion(sol.y[:4, -1], sol.y[4:8, -1])
    for frame in (links[0].start, links[0].end, links[1].end):
        assert motion.position(frame)[1] == pytest.approx(0.0, abs=1e-8)
    energies = []
    for column in range(sol.t.size):
        q, v = sol.y[:4, column], sol.y[4:8, column]
        heights = [system.motion(q, v).position(Frame(link))[1] for link in links]
        energies.append(0.5 * v @ system.at(0.0, q).mass @ v + G * sum(heights))
    assert np.all(np.diff(energies) < 1e-6)


def incline(angle, coefficient, static):
    block = Body.box("block", size=(0.4, 0.2, 0.2), mass=3.0)
    rail = Prismatic("rail", ground, block, axis=(np.cos(angle), -np.sin(angle)))
    return Model(
        rail, JointFriction("friction", "rail", coefficient=coefficient, static=static), gravity=(0, -G), planar=True
    )


def test_a_block_on_an_incline_sticks_or_slides():
    angle = np.deg2rad(25.0)  # tan = 0.466
    for static, sticks in ((0.5, True), (0.4, False)):
        model = incline(angle, 0.3, static)
        start = model.start("absolute")
        sol = daedal.solve(model.problem(), (0.0, 1.0), (start.q, start.v), rtol=1e-9, atol=1e-11)
        way = float(np.hypot(*(sol.y[:2, -1] - sol.y[:2, 0])))
        expected = 0.0 if sticks else 0.5 * G * (np.sin(angle) - 0.3 * np.cos(angle))
        assert way == pytest.approx(expected, abs=1e-7)
        assert sol.mode[-1].startswith("stick" if sticks else "slip")


def test_a_block_that_is_pushed_up_the_incline_comes_to_rest_and_stays():
    angle, mu, speed = np.deg2rad(20.0), 0.5, 2.0
    model = incline(angle, mu, None)
    start = model.assemble(velocities={"rail": -speed}, coordinates="absolute")
    sol = daedal.solve(model.problem(), (0.0, 1.0), (start.q, start.v), rtol=1e-9, atol=1e-11)
    brake = G * (np.sin(angle) + mu * np.cos(angle))
    assert sol.events[0].t == pytest.approx(speed / brake, abs=1e-7)
    assert np.hypot(*(sol.y[:2, -1] - sol.y[:2, 0])) == pytest.approx(0.5 * speed**2 / brake, abs=1e-7)
    assert sol.mode[-1] == "stick"


def test_joint_friction_stops_an_oscillator_where_the_spring_cannot_pull():
    """Each half swing loses 2 F / k of the amplitude."""
    mass = Body.particle("mass", mass=1.0)
    model = Model(
        Prismatic("rail", ground, mass, axis="x"),
        Spring("spring", ground, mass, stiffness=100.0),
        JointFriction("friction", "rail", torque=10.0),
    )
    sol = daedal.solve(model.problem(), (0.0, 3.0), ([1.05], [0.0]), rtol=1e-9, atol=1e-11)
    assert sol.mode[-1] == "stick"
    assert sol.y[0, -1] == pytest.approx(-0.05, abs=1e-7)  # after 5 half swings, 1.05 - 5 * 0.2 < F / k
    assert sol.events[0].t == pytest.approx(np.pi / 10.0, abs=1e-7)


def test_a_rough_contact_slides_and_stops():
    """The contact carries the weight, and brakes with mu g."""
    cart = Body.box("cart", size=(0.4, 0.2, 0.2), mass=3.0)
    model = Model(
        Free("slide", ground, cart),
        Contact("foot", cart, ground, "y", friction=0.4),
        gravity=(0.0, -G),
        planar=True,
    )
    problem = model.problem()
    sol = daedal.solve(problem, (0.0, 0.6), (np.zeros(3), [2.0, 0.0, 0.0]), rtol=1e-9, atol=1e-11)
    assert sol.events[0].t == pytest.approx(2.0 / (0.4 * G), abs=1e-7)
    assert sol.mode[-1] == "foot sticks"


def test_soft_contacts_rest_bounce_and_brake():
    hertz = ball_model(lambda ball: SoftContact("floor", ball, ground, "y", stiffness=1e5, exponent=1.5, radius=0.1))
    depth = (2.0 * G / 1e5) ** (2.0 / 3.0)
    assert hertz.system().at(0.0, [0.0, 0.1 - depth, 0.0], np.zeros(3)).force == pytest.approx(np.zeros(3), abs=1e-9)
    # elastic: it comes back to the height from which it fell
    sol = daedal.solve(hertz.system(), (0.0, 0.9), ([0.0, 0.2, 0.0], np.zeros(3)), rtol=1e-9, atol=1e-11)
    assert sol.q[1].max() == pytest.approx(0.2, abs=1e-6)
    assert sol.q[1].min() < 0.1 - depth
    # damping of Hunt and Crossley: restitution by d = 1.5 (1 - e) / v for e near 1
    speed, e = 1.0, 0.95
    soft = ball_model(
        lambda ball: SoftContact("floor", ball, ground, "y", 1e8, 1.5, damping=1.5 * (1.0 - e) / speed, radius=0.1)
    )
    sol = daedal.solve(soft.system(), (0.0, 0.01), ([0.0, 0.1 + 1e-5, 0.0], [0.0, -speed, 0.0]), rtol=1e-9, atol=1e-12)
    assert sol.v[1].max() == pytest.approx(e * speed, abs=0.005)
    # a ball that slides starts to roll: at the end v = 5/7 of its first speed
    rough = ball_model(lambda ball: SoftContact("floor", ball, ground, "y", 1e5, radius=0.1, friction=0.5, speed=1e-3))
    rest = 0.1 - 2.0 * G / 1e5
    sol = daedal.solve(rough.system(), (0.0, 0.5), ([0.0, rest, 0.0], [1.0, 0.0, 0.0]), rtol=1e-7, atol=1e-9)
    assert sol.v[0, -1] == pytest.approx(5.0 / 7.0, rel=2e-3)
    assert sol.v[2, -1] == pytest.approx(-sol.v[0, -1] / 0.1, rel=2e-3)


def test_what_cannot_be_combined_is_refused():
    wheel = Body.cylinder("wheel", radius=0.5, length=0.1, mass=4.0)
    axle = Revolute("axle", ground, wheel)
    brake = JointFriction("brake", axle, torque=1.0)
    with pytest.raises(InvalidProblemError, match=r"JointFriction\('brake'\), so it has modes; use problem\(\)"):
        Model(axle, brake).system()
    with pytest.raises(InvalidProblemError, match="prismatic joint in a planar model"):
        Model(axle, JointFriction("brake", axle, coefficient=0.1)).problem("relative")
    with pytest.raises(InvalidProblemError, match="torque or coefficient"):
        JointFriction("brake", axle)
    with pytest.raises(InvalidProblemError, match="static of JointFriction 'brake' must not be less than torque"):
        JointFriction("brake", axle, torque=2.0, static=1.0)
    with pytest.raises(InvalidProblemError, match="restitution of Contact 'c' must be between 0 and 1"):
        Contact("c", wheel, ground, "y", restitution=1.5)
    with pytest.raises(InvalidProblemError, match="two forces have the name 'brake'"):
        Model(axle, brake, SmoothFriction("brake", axle, torque=1.0, speed=0.1))
