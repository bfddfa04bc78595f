"""Models that cannot be meant so: each is refused with a message that names the part."""

import numpy as np
import pytest

import daedal
from daedal import InvalidProblemError
from daedal.multibody import (
    Body,
    Cylindrical,
    Fixed,
    Force,
    Frame,
    Free,
    Model,
    Motor,
    Planar,
    Prescribed,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Spring,
    Universal,
    ground,
)

NAN = float("nan")


def box(name, **others):
    return Body.box(name, size=(1.0, 1.0, 1.0), mass=1.0, **others)


class Magnet(Force):
    """A force of a user, who checks nothing."""

    def __init__(self, name, a, b, strength):
        self.name, self.frames, self.strength = name, (a.at(), b.at()), strength


def one_joint(kind, **options):
    return lambda: Model(kind("A", ground, box("b"), **options), planar=True)


def refused(make, *words):
    with pytest.raises(daedal.InvalidProblemError) as caught:
        make()
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Model(Revolute("A", ground, box("b")), Revolute("A", ground, box("c"))), ["two joints", "'A'"]),
        (lambda: Model(Revolute("A", ground, box("b")), Revolute("B", ground, box("b"))), ["two different", "'b'"]),
        (lambda: Model(box("ground")), ["'ground'", "rename"]),
        (lambda: Model(Revolute("A", box("ground"), box("b"))), ["joint 'A'", "'ground'"]),
        (lambda: Model("crank"), ["not of 'crank'"]),
        (lambda: Revolute("A", ground, box("b"), axis=(0, 0, 0)), ["axis of joint 'A'", "length zero"]),
        (lambda: Revolute("A", ground, box("b"), axis=(0, NAN, 0)), ["axis of joint 'A'", "finite"]),
        (lambda: (lambda b: Revolute("A", b, b.at(1, 0)))(box("b")), ["joint 'A'", "'b' to itself"]),
        (lambda: Body("b", mass=1.0, inertia=(1.0, 1.0, 3.0)), ["body 'b'", "triangle"]),
        (lambda: Body("b", mass=1.0, inertia=(1.0, 1.0, -0.1)), ["body 'b'", "negative"]),
        (lambda: Body("b", mass=-1.0), ["mass of body 'b'"]),
        (lambda: Body("b", mass=NAN), ["mass of body 'b'"]),
        (lambda: Body("b", mass=1.0, inertia=NAN), ["inertia of body 'b'"]),
        (lambda: Body("b", mass=1.0, center=(NAN, 0)), ["centre of body 'b'"]),
        (lambda: box("b", orientation=NAN), ["orientation of body 'b'"]),
        (lambda: Model(Spring("s", ground, box("b"), stiffness=NAN)), ["stiffness of Spring 's'"]),
        (lambda: Model(Magnet("m", ground, box("b"), strength=NAN)), ["strength of Magnet 'm'", "nan"]),
        (lambda: Model(Revolute("A", ground, Frame(box("b"), np.array([NAN, 0, 0])))), ["joint 'A'", "'b'", "finite"]),
        (lambda: Model(Revolute("A", ground, Frame(box("b"), rotation=2 * np.eye(3)))), ["joint 'A'", "orthonormal"]),
        (lambda: Model(gravity=(0, NAN)), ["gravity"]),
    ],
)
def test_parts_that_no_machine_has(make, words):
    refused(make, *words)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (one_joint(Revolute, axis="x"), ["joint 'A' (Revolute)", "(1, 0, 0)", "along z"]),
        (one_joint(Prismatic, axis="z"), ["joint 'A' (Prismatic)", "out of the plane"]),
        (one_joint(Prismatic, axis=(1, 0, 1)), ["joint 'A'", "out of the plane"]),
        (one_joint(Planar, axis="y"), ["joint 'A' (Planar)", "along z"]),
        (one_joint(Free, axis="y"), ["joint 'A' (Free)", "along z"]),
        (one_joint(Cylindrical), ["joint 'A' (Cylindrical)", "out of the plane"]),
        (one_joint(Spherical), ["joint 'A' (Spherical)", "use Revolute"]),
        (one_joint(Universal), ["joint 'A' (Universal)", "use Revolute"]),
        (lambda: Model(Fixed("A", ground.at(axis="x"), box("b")), planar=True), ["joint 'A' (Fixed)", "tilts"]),
        (lambda: Model(Revolute("A", ground.at(0, 0, 1), box("b")), planar=True), ["joint 'A'", "'ground'", "z = 1"]),
        (
            lambda: Model(Revolute("A", ground, box("b", center=(0, 0, 2))), planar=True),
            ["centre of body 'b'", "z = 2"],
        ),
        (lambda: Model(Spring("s", ground.at(0, 0, 1), box("b")), planar=True), ["Spring 's'", "z = 1"]),
        (lambda: Model(gravity=(0, 0, -9.81), planar=True), ["gravity", "-9.81", "along z"]),
    ],
)
def test_parts_that_leave_the_plane(make, words):
    refused(make, *words)


@pytest.mark.parametrize("axis", ["z", "-z"])
def test_parts_that_stay_in_the_plane_are_taken(axis):
    a, b, c = box("a"), box("b"), box("c")
    model = Model(
        Revolute("A", ground, a, axis=axis),
        Prismatic("B", a, b, axis=(1.0, 2.0)),
        Planar("C", ground, c, axis=axis),
        Fixed("D", b.at(1.0, 0.0), ground.at(2.0, 0.0, rotation=0.3)),
        planar=True,
        gravity=(0.0, -9.81),
    )
    layout = model.layout()
    assert model.planar and layout.n_q == 1 + 3  # the angle of A, and the body in the plane; B closes the loop


def test_a_body_without_mass_that_moves_freely_is_named():
    bob, arm = Body("bob"), box("arm")
    refused(
        Model(Revolute("A", ground, arm), Revolute("B", arm, bob.at(1.0, 0.0)), planar=True).system,
        *("body 'bob' has no mass", "joint 'B'", "give a mass"),
    )


def test_a_body_without_mass_is_taken_where_others_move_it():
    """The coupler of a four-bar without mass follows the cranks, and one fixed to a body moves with it."""
    crank, rocker = Body.rod("crank", length=1.0, mass=1.0), Body.rod("rocker", length=2.0, mass=1.0)
    coupler, plate = Body("coupler"), Body("plate")
    model = Model(
        Revolute("A", ground, crank.start),
        Revolute("B", crank.end, coupler),
        Revolute("C", coupler.at(3.0, 0.0), rocker.end),
        Revolute("D", ground.at(3.0, 0.0), rocker.start),
        Fixed("E", crank.end, plate),
        planar=True,
    )
    assert model.system().n_q == 3
    assert model.report().without_inertia == ()


def test_a_thin_rod_that_spins_about_itself_is_named():
    def model(**options):
        rod = Body.rod("rod", length=1.0, mass=1.0, **options)
        crank, slider = box("crank"), box("slider")
        return Model(
            Revolute("A", ground, crank),
            Spherical("B", crank.at(0.3, 0.0, 0.0), rod.start),
            Spherical("C", rod.end, slider),
            Prismatic("D", ground.at(1.0, 0.2, 0.3), slider, axis="x"),
        )

    refused(model().system, "body 'rod' can turn", "'B'", "Universal instead of Spherical", "radius")
    report = model(radius=0.01).report()
    assert (report.without_inertia, report.degrees_of_freedom) == ((), 2)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Model(), "the model has no bodies"),
        (lambda: Screw("nut", ground, Body("b", mass=1.0, inertia=0.1)), "joint 'nut' needs a pitch"),
        (lambda: Motor("m", "A", lambda t: 1.0), "torque of Motor 'm' has the arguments"),
        (lambda: driven(Motor("m", "A", lambda t, motion: (1.0, 2.0))), "torque of Motor 'm' returned"),
        (lambda: driven(Prescribed("p", "A", lambda t: None)), "drive 'p' returned None"),
        (lambda: driven(Prescribed("p", "A", lambda t: "x")), "drive 'p' returned 'x'"),
        (lambda: Spring("s", ground, Body("b", mass=1.0), stiffness=1.0, length=-1.0), "length of Spring 's'"),
    ],
)
def test_what_is_wrong_is_named(make, message):
    with pytest.raises(InvalidProblemError, match=message):
        make()


def driven(part):
    wheel = Body("wheel", mass=1.0, inertia=0.1)
    model = Model(Revolute("A", ground, wheel), part, planar=True)
    return daedal.solve(model.system(), (0.0, 0.1), ([0.0], [0.0]))


def test_parts_are_asked_for_by_themselves_or_by_name_and_single_ones_without_a_list():
    wheel = Body("wheel", mass=1.0, inertia=0.1)
    hinge = Revolute("A", ground, wheel)
    model = Model(hinge, planar=True)
    sol = daedal.solve(model.system(), (0.0, 0.1), model.start())
    np.testing.assert_array_equal(sol.joint(hinge).angle, sol.joint("A").angle)
    np.testing.assert_array_equal(sol.body(wheel).position, sol.body("wheel").position)
    scene = sol.animate(traces="wheel", plots="energy", reactions="A")
    assert [trace.name for trace in scene.traces] == ["wheel"] and len(scene.plots) == 1
    with pytest.raises(InvalidProblemError, match="no body 'other'"):
        sol.animate(traces=Body("other", mass=1.0))
    with pytest.raises(InvalidProblemError, match="t holds no times"):
        sol.joint("A", t=[])


@pytest.mark.parametrize("coordinates", ["relative", "absolute"])
def test_a_free_body_without_mass_is_named(coordinates):
    model = Model(Free("flight", ground, Body("ghost")), Revolute("A", ground, box("arm")))
    refused(lambda: model.system(coordinates), "body 'ghost' has no mass", "give a mass")


def test_forces_and_constraints_with_the_same_name_are_named():
    arm = box("arm")
    hinge = Revolute("A", ground, arm)
    springs = [Spring("s", ground.at(x, 1.0), arm, stiffness=1.0) for x in (0.0, 1.0)]
    refused(lambda: Model(hinge, *springs), "two forces", "'s'")
    refused(lambda: Model(hinge, Prescribed("A", "A", lambda t: t)), "two joint", "'A'")
    refused(lambda: Model(hinge, *(Prescribed(f"p{i}", "A", lambda t: t) for i in range(2))), "'p0' and 'p1'", "'A'")


def test_an_over_constrained_four_bar_in_space_is_told_and_moves():
    """Three of the five conditions of its last hinge follow from the others: reactions are those of least norm."""
    crank, coupler, rocker = (Body.rod(n, length=x, mass=1.0) for n, x in (("a", 1.0), ("b", 3.0), ("c", 2.0)))
    model = Model(
        Revolute("A", ground, crank.start),
        Revolute("B", crank.end, coupler.start),
        Revolute("C", coupler.end, rocker.end),
        Revolute("D", ground.at(3.0, 0.0), rocker.start),
        gravity=(0.0, -9.81),
    )
    report = model.report()
    assert (report.gruebler, report.degrees_of_freedom, len(report.redundant)) == (-2, 1, 3)
    assert "redundant" in str(report)
    sol = daedal.solve(model.system(), (0.0, 0.5), model.assemble(A=1.0), rtol=1e-8, atol=1e-8)
    assert sum("redundant" in note for note in sol.notes) == 3
    assert np.ptp(sol["energy"]) < 1e-5
    for joint in "ABCD":
        reaction = sol.joint(joint).reaction
        assert np.abs(reaction.force[2]).max() < 1e-9  # nothing presses out of the plane
        assert np.abs(reaction.torque).max() < 1e-9  # and nothing twists
