"""Machines in files: bodies, joints and forces after daedal.load."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import daedal
from daedal.multibody import Body, Contact, Model, Planar, Revolute, Spring, ground

ROD = Body.rod("rod", length=2.0, mass=1.0)
ARM = Body.rod("arm", length=1.0, mass=0.5)
MODEL = Model(
    Revolute("pivot", ground, ROD.start),
    Revolute("elbow", ROD.end, ARM.start),
    Spring("spring", ground.at(1.0, 0.0), ARM.end, stiffness=3.0, length=1.0),
    gravity=(0.0, -9.81),
    planar=True,
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A solution, and the same from a file."""
    sol = daedal.solve(MODEL.system(), (0.0, 1.0), MODEL.assemble(pivot=0.0, elbow=0.3))
    return sol, daedal.load(sol.save(tmp_path_factory.mktemp("files") / "arm.npz"))


def test_bodies_and_points_of_them_are_kept(pair):
    sol, again = pair
    for name in ("rod", "arm", "ground"):
        assert_array_equal(again.body(name).position, sol.body(name).position)
        assert_array_equal(again.body(name).orientation, sol.body(name).orientation)
        assert_allclose(again.body(name).center, sol.body(name).center, atol=1e-14)
        assert_array_equal(again.body(name).kinetic_energy, sol.body(name).kinetic_energy)
    for place in ((ARM.end,), (0.3, 0.1), ((0.3, 0.1, 0.2),)):
        one, other = again.body("arm").at(*place), sol.body("arm").at(*place)
        for what in ("position", "orientation", "velocity", "acceleration", "angular_velocity", "angular_acceleration"):
            assert_allclose(getattr(one, what), getattr(other, what), rtol=1e-12, atol=1e-12)


def test_joints_forces_and_energies_are_kept(pair):
    sol, again = pair
    for name in ("pivot", "elbow"):
        one, other = again.joint(name), sol.joint(name)
        assert one.names == other.names
        for what in ("coordinates", "rates", "angle", "rate", "position"):
            assert_array_equal(getattr(one, what), getattr(other, what))
        assert_array_equal(one.reaction.force, other.reaction.force)
        assert_array_equal(one.reaction.torque, other.reaction.torque)
    assert_array_equal(again.power("spring"), sol.power("spring"))
    assert_array_equal(again.force("spring").energy, sol.force("spring").energy)
    assert_array_equal(again.energy.total, sol.energy.total)
    assert_array_equal(again["energy"], sol["energy"])
    assert "energy" not in again.to_dataframe(t=[0.5])


def test_a_file_of_a_file_is_the_same(pair, tmp_path):
    sol, again = pair
    once_more = daedal.load(again.save(tmp_path / "arm.npz"))
    assert_array_equal(once_more.body("arm").acceleration, sol.body("arm").acceleration)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda sol: sol.body("arn"), "no body 'arn'; did you mean 'arm'"),
        (lambda sol: sol.joint("knee"), "no joint 'knee'"),
        (lambda sol: sol.body("arm", t=0.5), "only at its output points"),
        (lambda sol: sol.joint("elbow").displacement, "has no displacement; its coordinates are angle"),
        (lambda sol: sol.body("arm").at(ROD.end), "on body 'rod', not on 'arm'"),
        (lambda sol: sol.body("arm").at(1.0), "two or three numbers"),
        (lambda sol: sol.animate(), "cannot be animated from a file"),
    ],
)
def test_what_a_file_does_not_know_is_said(pair, ask, words):
    with pytest.raises(daedal.InvalidProblemError, match=words):
        ask(pair[1])


def test_motions_that_were_not_integrated_are_saved(tmp_path):
    motion = MODEL.kinematics(np.linspace(0.0, 1.0, 5), {"pivot": lambda t: t, "elbow": lambda t: 2.0 * t})
    again = daedal.load(motion.save(tmp_path / "motion"))
    assert again.driven == ("pivot", "elbow") and again.dead_points == ()
    for what in ("t", "q", "v", "a"):
        assert_array_equal(getattr(again, what), getattr(motion, what))
    assert_array_equal(again.body("arm").velocity, motion.body("arm").velocity)
    assert_array_equal(again.joint("pivot").reaction.torque, motion.joint("pivot").reaction.torque)
    assert_array_equal(again.energy.kinetic, motion.energy.kinetic)


def test_machines_with_contacts_are_kept_stretch_by_stretch(tmp_path):
    ball = Body.sphere("ball", radius=0.1, mass=1.0)
    model = Model(
        Planar("free", ground, ball),
        Contact("floor", ball, ground, "y", 0.5, radius=0.1),
        gravity=(0.0, -9.81),
        planar=True,
    )
    sol = daedal.solve(model.problem(), (0.0, 0.6), model.assemble(free=(0.0, 0.6, 0.0)))
    again = daedal.load(sol.save(tmp_path / "ball.npz"))
    assert len(again.segments) > 1 and again.body("ball").t.size == again.t.size
    assert_array_equal(again.body("ball").position, sol.body("ball").position)
    assert_array_equal(again.contact("floor").gap, sol.contact("floor").gap)
