"""Friction with a known normal force: brakes and joints, several of them, and beside contacts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import daedal
from daedal.multibody import Body, Contact, JointFriction, Model, Prismatic, Revolute, ground

G = 9.81
MASSES, STIFFNESS = (1.0, 2.0), 30.0


def spring(a, b):
    return STIFFNESS * (a - b + 1.0)


@pytest.fixture(scope="module")
def blocks():
    """Two blocks with a spring between them, pressed on a table by their weights."""
    system = daedal.MechanicalSystem(
        MASSES, lambda t, q, v: [-spring(q[0], q[1]), spring(q[0], q[1])], n_q=2, names=["a", "b"]
    )
    contacts = [
        daedal.hybrid.Contact(tangent=[1.0, 0.0], mu=0.3, mu_static=0.4, normal=MASSES[0] * G, name="A"),
        daedal.hybrid.Contact(tangent=[0.0, 1.0], mu=0.3, normal=lambda t, q, v: MASSES[1] * G, name="B"),
    ]
    problem = daedal.hybrid.UnilateralProblem(system, contacts)
    return problem, daedal.solve(problem, (0.0, 3.0), ([0.0, 1.3], [2.0, 0.0]), rtol=1e-9, atol=1e-11)


def test_a_known_force_acts_as_that_of_a_floor_does(blocks):
    """The same blocks with heights: floors find the normal forces that are given above."""
    _, sol = blocks
    m1, m2 = MASSES
    system = daedal.MechanicalSystem(
        [m1, m1, m2, m2],
        lambda t, q, v: [-spring(q[0], q[2]), -m1 * G, spring(q[0], q[2]), -m2 * G],
        n_q=4,
    )
    floors = [
        daedal.hybrid.Contact(lambda t, q: q[1], tangent=[1.0, 0.0, 0.0, 0.0], mu=0.3, mu_static=0.4, name="A"),
        daedal.hybrid.Contact(lambda t, q: q[3], tangent=[0.0, 0.0, 1.0, 0.0], mu=0.3, name="B"),
    ]
    problem = daedal.hybrid.UnilateralProblem(system, floors)
    other = daedal.solve(problem, (0.0, 3.0), ([0.0, 0.0, 1.3, 0.0], [2.0, 0.0, 0.0, 0.0]), rtol=1e-9, atol=1e-11)
    assert [(e.name, e.source, e.target) for e in sol.events] == [(e.name, e.source, e.target) for e in other.events]
    assert_allclose(sol.events.t, other.events.t, atol=1e-8)
    assert_allclose(sol.q[:, -1], other.q[[0, 2], -1], atol=1e-8)


def test_coulombs_law_holds_for_each_of_them(blocks):
    _, sol = blocks
    for name, row, weight, static in (("A", 0, MASSES[0] * G, 0.4), ("B", 1, MASSES[1] * G, 0.3)):
        history = sol.contact(name)
        assert_allclose(history.normal, weight)
        assert_allclose(history.slip, sol.v[row], atol=1e-12)
        slides = np.char.startswith(history.state.astype(str), "slip")
        assert_allclose(history.friction[slides], np.where(history.state[slides] == "slip+", -0.3, 0.3) * weight)
        assert np.all(np.abs(history.friction[~slides]) <= static * weight * (1.0 + 1e-9))
    forces = np.array([-spring(*sol.q), spring(*sol.q)])
    friction = np.array([sol.contact("A").friction, sol.contact("B").friction])
    assert_allclose(np.array(MASSES)[:, None] * sol.a, forces + friction, atol=1e-7)


def test_an_impact_does_not_change_what_a_brake_holds():
    """A force that is limited has no impulse: the second block is hit, and slides in spite of its brake."""
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, 0.0], n_q=2, names=["a", "b"])
    parts = [
        daedal.hybrid.Contact(lambda t, q: q[1] - q[0], 0.0, name="hit"),
        daedal.hybrid.Contact(tangent=[0.0, 1.0], mu=0.5, normal=10.0, name="brake"),
    ]
    problem = daedal.hybrid.UnilateralProblem(system, parts)
    assert problem.entry((0.0, 1.0), ([0.0, 1.0], [4.0, 0.0]))[0] == "brake sticks"
    sol = daedal.solve(problem, (0.0, 2.0), ([0.0, 1.0], [4.0, 0.0]), rtol=1e-9, atol=1e-11)
    impact = sol.events[0]
    assert impact.name == "hit closes" and impact.t == pytest.approx(0.25)
    assert_allclose(impact.y_after[2:], [2.0, 2.0], atol=1e-9)  # momentum is shared, nothing is lost to the brake
    # b is braked by 5, a goes on at 2: they part only if the contact can pull, so they slow down together by 2.5
    stopped = next(
        event for event in sol.events if event.target and event.target.endswith("brake sticks") and event.t > 0.3
    )
    assert stopped.t == pytest.approx(0.25 + 2.0 / 2.5, abs=1e-6)
    assert sol.q[1, -1] == pytest.approx(1.0 + 2.0**2 / (2.0 * 2.5), abs=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tangent": [1.0, 0.0], "mu": 0.3, "normal": -1.0}, "normal of contact 'x' must be a positive force"),
        ({"gap": lambda t, q: q[0], "tangent": [1.0, 0.0], "mu": 0.3, "normal": 1.0}, "omit gap"),
        ({"normal": 1.0}, "no friction"),
        ({"tangent": [1.0, 0.0], "mu": 0.3}, "gap"),
    ],
)
def test_what_makes_no_sense_is_refused(options, words):
    with pytest.raises(daedal.InvalidProblemError, match=words):
        daedal.hybrid.Contact(name="x", **options)


# --- joints -----------------------------------------------------------------------------------------------------------


def test_friction_at_two_joints_brings_a_double_pendulum_to_rest():
    rod, arm = Body.rod("rod", length=1.0, mass=1.0), Body.rod("arm", length=1.0, mass=1.0)
    model = Model(
        Revolute("A", ground, rod.start),
        Revolute("B", rod.end, arm.start),
        JointFriction("brake A", "A", torque=6.0),
        JointFriction("brake B", "B", torque=2.0, static=2.5),
        gravity=(0.0, -G),
        planar=True,
    )
    sol = daedal.solve(model.problem(), (0.0, 4.0), model.assemble(A=0.0, B=0.5), rtol=1e-7, atol=1e-9)
    assert sol.mode[-1] == "brake A sticks + brake B sticks"
    for name, torque, static in (("A", 6.0, 6.0), ("B", 2.0, 2.5)):
        history, rates = sol.contact(f"brake {name}"), sol.joint(name).rates[0]
        slides = np.char.startswith(history.state.astype(str), "slip")
        assert slides.any() and np.all(history.friction[slides] * rates[slides] <= 1e-9)
        assert_allclose(np.abs(history.friction[slides]), torque)
        assert np.max(np.abs(history.friction)) <= static * (1.0 + 1e-7)
    energy = sol.energy.total
    assert np.all(np.diff(energy) <= 1e-7) and energy[-1] < energy[0]


def test_two_brakes_on_one_axle_share_the_work():
    wheel = Body.cylinder("wheel", radius=0.5, length=0.1, mass=4.0)
    axle = Revolute("axle", ground, wheel)
    brakes = [JointFriction(name, axle, torque=1.0) for name in ("left", "right")]
    sol = daedal.solve(Model(axle, *brakes).problem(), (0.0, 4.0), ([0.0], [8.0]), rtol=1e-8)
    assert sol.mode[-1] == "left sticks + right sticks" and sol.events[-1].t == pytest.approx(0.5 * 8.0 / 2.0)


def test_a_joint_with_friction_beside_a_contact():
    """A rod falls about a rough hinge onto a stop, and stays there."""
    rod = Body.rod("rod", length=1.0, mass=3.0)
    parts = [Revolute("hinge", ground, rod.start), JointFriction("rust", "hinge", torque=2.0)]
    stop = Contact("stop", rod.end, ground.at(0.0, -0.5), "y", 0.0)
    model = Model(*parts, stop, gravity=(0.0, -G), planar=True)
    sol = daedal.solve(model.problem(), (0.0, 2.0), model.assemble(hinge=0.0), rtol=1e-9, atol=1e-11)
    hit = sol.events[0]
    assert hit.name == "stop closes"
    # energy at the stop: J w^2 / 2 = m g l / 2 sin(30) - torque * angle
    speed = np.sqrt(2.0 * (3.0 * G * 0.5 * 0.5 - 2.0 * np.pi / 6.0))
    assert abs(hit.y[-1]) == pytest.approx(speed, rel=1e-6)
    assert sol.joint("hinge").angle[-1] == pytest.approx(-np.pi / 6.0, abs=1e-8)


def test_levels_that_are_not_known_in_advance_are_refused_beside_others():
    slide, rod = Body.sphere("slide", radius=0.1, mass=1.0), Body.rod("rod", length=1.0, mass=1.0)
    joints = [Prismatic("rail", ground, slide, axis="x"), Revolute("hinge", slide, rod.start)]
    brake = JointFriction("brake", "hinge", torque=1.0)
    for other, words in (
        (JointFriction("rub", "rail", coefficient=0.2), "not a coefficient"),
        (JointFriction("rub", "rail", torque=0.2, static=0.3, stribeck=0.1), "not stribeck"),
    ):
        model = Model(*joints, brake, other, gravity=(0.0, -G), planar=True)
        with pytest.raises(daedal.InvalidProblemError, match=words):
            model.problem()
