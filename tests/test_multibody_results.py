"""What solutions say about bodies, joints and forces, against formulas by hand and in other coordinates."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import daedal
from daedal.multibody import (
    Body,
    Contact,
    Cylindrical,
    Distance,
    Fixed,
    Free,
    Gear,
    Model,
    Motor,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Spring,
    Universal,
    UserConstraint,
    ground,
)
from daedal.multibody.poses import Start
from daedal.multibody.results import Results

G = 9.81
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def at_states(model, coordinates, t, q, v):
    """Results of a model at given states, with accelerations and multipliers from the augmented system."""
    system = model.system(coordinates)
    traced = system.compiled(backend="trace")
    points = [traced.at(*state) for state in zip(t, q, v)]
    solution = SimpleNamespace(
        t=np.asarray(t),
        q=np.array(q).T,
        v=np.array(v).T,
        r=np.zeros((0, len(t))),
        a=np.array([point.acceleration for point in points]).T,
        lam=np.array([point.multipliers for point in points]).T,
        ends=None,
    )
    return Results(model, system.layout, solution)


def absolute_states(results):
    """The same motion in absolute coordinates."""
    course = results.course()
    starts = [Start(q, v, results.model, results.layout).in_coordinates("absolute") for q, v in zip(course.q, course.v)]
    return [start.q for start in starts], [start.v for start in starts]


def assert_same(one, two, joints, bodies):
    for name in joints:
        a, b = one.joint(name), two.joint(name)
        np.testing.assert_allclose(a.coordinates, b.coordinates, atol=1e-9)
        np.testing.assert_allclose(a.rates, b.rates, atol=1e-9)
        scale = max(1.0, np.abs(a.reaction.force).max(), np.abs(a.reaction.torque).max())
        np.testing.assert_allclose(a.reaction.force, b.reaction.force, atol=1e-9 * scale)
        np.testing.assert_allclose(a.reaction.torque, b.reaction.torque, atol=1e-9 * scale)
    for name in bodies:
        a, b = one.body(name), two.body(name)
        for kind in ("position", "velocity", "acceleration", "angular_acceleration", "center", "orientation"):
            np.testing.assert_allclose(getattr(a, kind), getattr(b, kind), atol=1e-8)
    np.testing.assert_allclose(one.energy().total, two.energy().total, rtol=1e-9)


@pytest.fixture(scope="module")
def pendulum():
    bob = Body("bob", mass=2.0, inertia=0.3, center=(1.5, 0.0))
    model = Model(Revolute("pivot", ground, bob), gravity=(0.0, -G), planar=True)
    return model, daedal.solve(model.system(), (0.0, 3.0), ([0.4], [9.0]), **TIGHT)


def test_pendulum_against_formulas(pendulum):
    _, sol = pendulum
    (angle,), (rate,) = sol.q, sol.v
    along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    body = sol.body("bob")
    np.testing.assert_allclose(body.center[:2], 1.5 * along, atol=1e-12)
    np.testing.assert_allclose(body.position, 0.0, atol=1e-12)
    turning = -2.0 * G * 1.5 * np.cos(angle) / (0.3 + 2.0 * 1.5**2)
    expected = 2.0 * (1.5 * turning * across - 1.5 * rate**2 * along + np.array([[0.0], [G]]))
    reaction = sol.joint("pivot").reaction
    np.testing.assert_allclose(reaction.force[:2], expected, atol=1e-10)
    np.testing.assert_allclose(reaction.torque, 0.0, atol=1e-10)
    tension = -reaction.in_axes_of("bob").force[0]  # the rod pulls the bob towards the pivot
    np.testing.assert_allclose(tension, 2.0 * (1.5 * rate**2 - G * np.sin(angle)), atol=1e-10)
    energy = sol.energy
    np.testing.assert_allclose(energy.kinetic, 0.5 * (0.3 + 4.5) * rate**2, rtol=1e-12)
    np.testing.assert_allclose(energy.potential, 2.0 * G * 1.5 * np.sin(angle), atol=1e-12)
    assert np.ptp(energy.total) < 1e-6


def test_times_of_ones_own_and_one_time(pendulum):
    _, sol = pendulum
    t = np.linspace(0.0, 3.0, 7)
    body = sol.body("bob", t=t)
    assert body.position.shape == (3, 7) and body.orientation.shape == (7, 3, 3) and body.kinetic_energy.shape == (7,)
    tip = body.at(2.0, 0.0)
    h = 1e-4
    later, before = (sol.body("bob", t=1.0 + step).at(2.0, 0.0) for step in (h, -h))
    one = sol.body("bob", t=1.0).at(2.0, 0.0)
    assert one.position.shape == (3,) and sol.joint("pivot", t=1.0).reaction.force.shape == (3,)
    np.testing.assert_allclose(one.position, tip.position[:, t == 1.0][:, 0], atol=1e-12)
    np.testing.assert_allclose(one.velocity, (later.position - before.position) / (2 * h), atol=1e-4)
    np.testing.assert_allclose(one.acceleration, (later.velocity - before.velocity) / (2 * h), atol=1e-3)


def test_double_pendulum_tension():
    one, two = Body("one", mass=1.0, center=(1.0, 0.0)), Body("two", mass=3.0, center=(2.0, 0.0))
    model = Model(
        Revolute("A", ground, one), Revolute("B", two, one.at(1.0, 0.0)), gravity=(0.0, -G), planar=True
    )  # B is stated against the tree: `two` hangs on `one`
    results = at_states(model, "relative", [0.0], [np.array([-0.5, 0.3])], [np.array([1.0, 2.0])])
    # phi_2 = phi_1 - B; the bodies are points, so the rods carry forces along themselves only
    first, second = -0.5, -0.8
    spins = 1.0, -1.0
    assert results.joint("B").angle[0] == pytest.approx(0.3) and results.joint("B").rate[0] == pytest.approx(2.0)
    e1, e2 = (np.array([np.cos(angle), np.sin(angle)]) for angle in (first, second))
    # tensions from m1 a1 = m1 g - T1 e1 + T2 e2, m2 a2 = m2 g - T2 e2, and the centripetal parts of a along e1, e2
    gravity = np.array([0.0, -G])
    matrix = np.array([[1.0, -(e1 @ e2)], [-(e1 @ e2), 1.0 / 3.0 + 1.0]])
    right = np.array([spins[0] ** 2 + gravity @ e1, 2.0 * spins[1] ** 2])
    t1, t2 = np.linalg.solve(matrix, right)
    np.testing.assert_allclose(results.joint("A").reaction.force[:2, 0], -t1 * e1, atol=1e-10)
    np.testing.assert_allclose(results.joint("B").reaction.force[:2, 0], t2 * e2, atol=1e-10)  # on `one`


def test_tree_of_all_joints_in_both_coordinates():
    def body(name, seed):
        generator = np.random.default_rng(seed)
        half = np.diag([1.0, 1.3, 1.5]) + 0.1 * np.ones((3, 3))
        return Body(name, 1.0 + generator.random(), half, center=generator.normal(size=3))

    b = [body(f"b{i}", i) for i in range(8)]
    model = Model(
        Universal("universal", b[0], ground.at(0.1, 0.2, 0.3), axis=(1.0, 2.0, 2.0), second_axis=(2.0, 1.0, -2.0)),
        Cylindrical("cylindrical", b[0].at(0.4, 0, 0), b[1].at(0, 0.3, 0), axis=(1.0, 1.0, 0.0)),
        Prismatic("prismatic", b[2].at(0, 0, 0.2), b[1].at(0.5, 0, 0), axis=(0.0, 1.0, 1.0)),
        Spherical("spherical", b[3].at(0.2, 0.1, 0.0), b[2]),
        Revolute("first hinge", b[1].at(0, 0, 1.0), b[4], axis="y"),
        Planar("planar", b[5].at(0.1, 0, 0), b[4].at(0.0, 0.7, 0.0), axis=(0.0, 1.0, 2.0)),
        Fixed("fixed", b[6].at(0.3, 0, 0), b[5]),
        Revolute("hinge", b[7].at(0.0, 0.3, 0.0), b[5], axis=(3.0, 0.0, 4.0)),
        Spring("spring", b[3].at(0.1, 0.2, 0.3), b[6], stiffness=5.0, length=0.5, damping=0.7),
        gravity=(1.0, -2.0, -9.0),
    )
    layout = model.layout()
    generator = np.random.default_rng(3)
    q, v = generator.uniform(-1.0, 1.0, layout.n_q), generator.normal(size=layout.n_q)
    spherical = layout.names.index("spherical.p0 backwards")
    p = q[spherical : spherical + 4]
    p /= np.linalg.norm(p)
    v[spherical : spherical + 4] -= p * (p @ v[spherical : spherical + 4])
    relative = at_states(model, "relative", [0.0], [q], [v])
    absolute = at_states(model, "absolute", [0.0], *absolute_states(relative))
    assert_same(relative, absolute, [joint.name for joint in model.joints], [body.name for body in model.bodies])
    np.testing.assert_allclose(relative.force("spring").power, absolute.force("spring").power)


def test_constraints_count_in_reactions():
    a, b, c = (Body.rod(name, length=1.0, mass=1.0) for name in "abc")
    wheel = Body.cylinder("wheel", radius=0.2, length=0.1, mass=1.0)
    model = Model(
        Revolute("A", ground, a.start),
        Revolute("B", b.start, a.end),
        Revolute("C", b.end, c.start),
        Revolute("D", ground.at(0.0, 1.0), wheel),
        Distance("rod", ground.at(0.3, -0.8), b.at(0.1, 0.2), 1.5),
        Gear("gear", "D", "A", ratio=2.0),
        UserConstraint(
            "knife", lambda t, motion: [motion.rotation(c.end)[:, 1] @ motion.velocity(c.end)], 1, on="velocity"
        ),
        Motor("motor", "B", torque=0.7),
        gravity=(0.0, -G),
        planar=True,
    )
    start = model.assemble(A=0.3, C=-0.4, velocities={"A": 1.3})
    relative = at_states(model, "relative", [0.0], [start.q], [start.v])
    absolute = at_states(model, "absolute", [0.0], *absolute_states(relative))
    assert_same(relative, absolute, "ABCD", ["a", "b", "c", "wheel"])
    for name in ("B", "C"):
        assert abs(relative.joint(name).reaction.torque).max() < 1e-9  # hinges give way; motor and gear are not theirs


def crank_slider():
    crank, rod = Body.rod("crank", length=1.0, mass=1.0), Body.rod("rod", length=2.0, mass=2.0)
    slider = Body.box("slider", size=(0.2, 0.2, 0.2), mass=1.0)
    return Model(
        Revolute("A", ground, crank.start),
        Revolute("B", crank.end, rod.start),
        Revolute("C", rod.end, slider),
        Prismatic("D", ground, slider, axis="x"),
        Spring("spring", ground.at(5.0, 0.0), slider, stiffness=5.0, length=1.0, damping=0.2),
        gravity=(0.0, -G),
        planar=True,
    )


@pytest.fixture(scope="module")
def machine():
    model = crank_slider()
    angle, other = 0.3, -np.arcsin(np.sin(0.3) / 2.0)
    rates = 8.0, -8.0 * np.cos(angle) / 2.0 / np.cos(other)
    values = {"A": angle, "B": other - angle, "C": -other, "D": np.cos(angle) + 2.0 * np.cos(other)}
    speeds = {"A": rates[0], "B": rates[1] - rates[0], "C": -rates[1]}
    speeds["D"] = -np.sin(angle) * rates[0] - 2.0 * np.sin(other) * rates[1]
    system = model.system()
    start = [[group[name] for name in system.names[: system.n_q]] for group in (values, speeds)]
    return model, daedal.solve(system, (0.0, 3.0), start, **TIGHT)


def test_loop_in_both_coordinates(machine):
    model, sol = machine
    pick = np.arange(0, sol.t.size, max(1, sol.t.size // 5))
    relative = at_states(model, "relative", sol.t[pick], sol.q.T[pick], sol.v.T[pick])
    absolute = at_states(model, "absolute", sol.t[pick], *absolute_states(relative))
    for name in "ABCD":
        one, two = sol.joint(name).reaction, absolute.joint(name).reaction
        scale = np.abs(two.force).max()
        np.testing.assert_allclose(one.force[:, pick], two.force, atol=1e-9 * scale)
        np.testing.assert_allclose(one.torque[:, pick], two.torque, atol=1e-9 * scale)


def test_newton_for_the_slider(machine):
    _, sol = machine
    slider = sol.body("slider")
    spring, guide, pin = sol.force("spring").on("slider"), sol.joint("D").reaction, sol.joint("C").reaction
    weight = np.array([[0.0], [-G], [0.0]])
    np.testing.assert_allclose(slider.acceleration, spring.force + guide.force + pin.force + weight, atol=1e-7)
    assert np.abs(guide.force[0]).max() < 1e-7  # the guide holds across its axis only


def test_turns_are_counted_also_at_joints_that_close_loops(machine):
    model, sol = machine
    turns = np.max(sol.joint("A").angle) / (2.0 * np.pi)
    assert turns > 2.0
    for cut in "ABC":
        other = daedal.solve(model.system(cut=[cut]), (0.0, 3.0), start_of(model, sol, cut), **TIGHT)
        t = np.array([0.0, 1.3, 2.9])
        np.testing.assert_allclose(other.joint(cut, t=t).angle, sol.joint(cut, t=t).angle, atol=1e-6)
        np.testing.assert_allclose(other.joint(cut).angle[-1], sol.joint(cut).angle[-1], atol=1e-6)


def start_of(model, sol, cut):
    """The same start for another tree, whose joints may be stated the other way round."""
    topology = model.layout(cut=[cut]).topology
    views = [sol.joint(joint.name, t=0.0) for joint in topology.joints]
    return [view.coordinates[0] for view in views], [view.rate for view in views]


def test_power_and_energy_agree(machine):
    _, sol = machine
    t = np.linspace(0.0, 3.0, 4001)
    stored = 0.5 * 5.0 * (5.0 - sol.joint("D", t=t).displacement - 1.0) ** 2
    gravity = sol.body("rod", t=t).center[1] * 2.0 * G + sol.body("crank", t=t).center[1] * G
    kinetic = sum(sol.body(name, t=t).kinetic_energy for name in ("crank", "rod", "slider"))
    work = np.trapezoid(sol.power("spring", t=t), t)
    assert work == pytest.approx((kinetic + gravity)[-1] - (kinetic + gravity)[0], abs=1e-4)
    assert stored[0] != pytest.approx(stored[-1], abs=1e-2)


def test_stored_solution_still_knows_its_bodies(machine):
    _, sol = machine
    assert sol.body("rod").position.size
    stored = pickle.loads(pickle.dumps(sol))
    np.testing.assert_array_equal(stored.body("rod").center, sol.body("rod").center)
    np.testing.assert_allclose(stored.joint("B").reaction.force, sol.joint("B").reaction.force, rtol=1e-12)
    np.testing.assert_allclose(stored.body("rod", t=1.0).position, sol.body("rod", t=1.0).position, atol=1e-8)


def test_functions_that_cannot_be_stored_leave_the_motion():
    rod = Body.rod("rod", length=2.0, mass=1.0)
    motor = Motor("motor", "pivot", torque=lambda t, motion: np.sin(t))
    model = Model(Revolute("pivot", ground, rod.start), motor, planar=True)
    sol = daedal.solve(model.system(), (0.0, 1.0), model.assemble(pivot=0.2))
    stored = pickle.loads(pickle.dumps(sol))
    np.testing.assert_array_equal(stored.body("rod").position, sol.body("rod").position)
    np.testing.assert_allclose(stored.body("rod").acceleration, sol.body("rod").acceleration, rtol=1e-12)
    assert np.abs(sol.joint("pivot").reaction.torque).max() < 1e-9  # the motor turns, not the bearing
    with pytest.raises(daedal.InvalidProblemError, match="force 'motor' has functions that could not be stored"):
        _ = stored.joint("pivot").reaction


def test_reactions_are_refused_where_the_model_does_not_know_all_forces(pendulum):
    model, _ = pendulum
    system = model.system()
    pushed = system.replaced(force=lambda t, q, v: system.force(t, q, v) + 0.01)
    sol = daedal.solve(pushed, (0.0, 1.0), ([0.4], [0.0]))
    assert sol.body("bob").position.shape[0] == 3
    with pytest.raises(daedal.InvalidProblemError, match="forces of the model do not balance"):
        _ = sol.joint("pivot").reaction


def test_motion_through_modes():
    ball = Body.sphere("ball", radius=0.1, mass=1.0)
    floor = Contact("floor", ball, ground, normal="y", radius=0.1, restitution=0.5)
    model = Model(Free("flight", ground, ball), floor, gravity=(0.0, -G), planar=True)
    sol = daedal.solve(model.problem(), (0.0, 0.8), ([0.0, 1.1, 0.0], [1.0, 0.0, 0.0]), rtol=1e-8)
    np.testing.assert_array_equal(sol.body("ball").position[:2], sol.q[:2])
    fall = np.sqrt(2.0 / G)
    speed = sol.body("ball", t=fall + 0.1).velocity
    np.testing.assert_allclose(speed, [1.0, 0.5 * G * fall - 0.1 * G, 0.0], atol=1e-6)
    assert sol.energy.total[-1] == pytest.approx(0.5 + G * 0.1 + 0.25 * G)  # half of the speed is left after an impact
    assert sol.joint("flight").names == ("x", "y", "angle")
    stored = pickle.loads(pickle.dumps(sol))
    np.testing.assert_allclose(stored.body("ball", t=0.2).position, sol.body("ball", t=0.2).position, atol=1e-9)
    assert sol.animate(frames=10, traces=ball).t.size == 10


def test_free_body_has_no_reaction_and_ground_stands():
    ball = Body.sphere("ball", radius=0.1, mass=1.0)
    model = Model(Free("flight", ground, ball), gravity=(0.0, 0.0, -G))
    q, v = model.start()
    v[:3] = 1.0, 0.0, 5.0
    sol = daedal.solve(model.system(), (0.0, 1.0), (q, v))
    np.testing.assert_allclose(sol.joint("flight").reaction.force, 0.0, atol=1e-9)
    np.testing.assert_allclose(sol.body("ball").position[2], 5.0 * sol.t - 0.5 * G * sol.t**2, atol=1e-5)
    assert not sol.body("ground").velocity.any()
    assert sol.joint("flight").names == ("x", "y", "z", "p0", "p1", "p2", "p3")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda sol: sol.body("bobb"), r"no body 'bobb'; did you mean 'bob'\? known: bob"),
        (lambda sol: sol.joint("A"), "no joint 'A'; known: pivot"),
        (lambda sol: sol.force("wind"), "no force 'wind'; there is none"),
        (lambda sol: sol.joint("pivot").displacement, "joint 'pivot' has no displacement; its coordinates are angle"),
        (lambda sol: sol.body("bob").at(ground.at()), "on body 'ground', not on 'bob'"),
    ],
)
def test_names_that_do_not_exist(pendulum, ask, words):
    with pytest.raises(daedal.InvalidProblemError, match=words):
        ask(pendulum[1])


def test_other_systems_say_that_they_have_no_bodies():
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1)
    sol = daedal.solve(system, (0.0, 1.0), ([0.0], [0.0]))
    with pytest.raises(
        daedal.InvalidProblemError, match=r"not a multibody model.*no bodies and joints.*daedal\.multibody"
    ):
        sol.body("ball")


def test_turns_before_the_start_are_kept_in_absolute_coordinates():
    a, b = (Body.box(name, size=(0.1, 0.2, 0.3), mass=1.0) for name in "ab")
    model = Model(Revolute("hinge", ground, a, axis="x"), Screw("screw", a.at(0.1, 0.0, 0.0), b, pitch=0.2, axis="y"))
    start = model.assemble(hinge=0.3, screw=7.0, velocities={"screw": 2.0})
    sol = daedal.solve(model.system("absolute"), (0.0, 0.1), start.in_coordinates("absolute"))
    assert sol.joint("screw").angle[[0, -1]] == pytest.approx([7.0, 7.2], abs=0.01)


def test_a_screw_carries_by_its_thread_wherever_the_loop_is_cut():
    nut, stem = Body("nut", mass=1.0, inertia=(0.1, 0.1, 0.05)), Body("stem", mass=10.0, inertia=0.1)
    model = Model(
        Revolute("R", ground, nut),
        Prismatic("P", ground, stem, axis="z"),
        Screw("S", nut, stem, pitch=0.02),
        gravity=(0.0, 0.0, -G),
    )
    slide = 0.02 / (2.0 * np.pi)  # of the stem per radian; (J + m s^2) angle'' = m g s
    sink = 10.0 * G * slide / (0.05 + 10.0 * slide**2) * slide
    for cut in "RPS":
        sol = daedal.solve(model.system(cut=[cut]), (0.0, 0.5), model.start(cut=[cut]), **TIGHT)
        reaction = sol.joint("S").reaction
        np.testing.assert_allclose(reaction.force[:, -1], [0.0, 0.0, 10.0 * (G - sink)], atol=1e-7)
        np.testing.assert_allclose(reaction.torque[:, -1], [0.0, 0.0, -10.0 * (G - sink) * slide], atol=1e-7)


@pytest.mark.parametrize("coordinates", ["relative", "absolute"])
def test_what_acts_at_a_joint_acts_on_both_bodies(coordinates):
    wheel, cart = Body("wheel", mass=1.0, inertia=0.1, center=(0.1, 0.0)), Body("cart", mass=2.0, inertia=0.2)
    model = Model(
        Prismatic("rail", cart, ground, axis="x"),
        Revolute("axle", cart.at(0.0, 0.5), wheel),
        Motor("motor", "axle", 2.0),
        Motor("pull", "rail", 3.0),
        planar=True,
    )
    sol = daedal.solve(model.system(coordinates), (0.0, 0.1), model.start(coordinates))
    motor, pull = sol.force("motor"), sol.force("pull")
    np.testing.assert_allclose(motor.on("wheel").torque[2], 2.0)
    np.testing.assert_allclose(motor.on("cart").torque[2], -2.0)
    np.testing.assert_allclose(pull.on("cart").force[0], -3.0)  # the rail is stated from the cart


@pytest.mark.parametrize("joint", [Revolute, Prismatic, Cylindrical, Universal])
def test_coordinates_are_those_of_the_joint_as_it_is_stated(joint):
    body = Body("body", mass=1.0, inertia=(0.1, 0.2, 0.15))
    model = Model(joint("A", body, ground))
    given = 0.3 if joint in (Revolute, Prismatic) else (0.3, 0.4)
    start = model.assemble(A=given)
    sol = daedal.solve(model.system(), (0.0, 0.1), start)
    for name, value in zip(joint.coordinates, np.atleast_1d(given)):
        assert sol["A" if joint in (Revolute, Prismatic) else f"A.{name}"][0] == pytest.approx(value)
