"""Assembly of machines: branches, velocities, other coordinates, and what cannot be closed."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.multibody import (
    Body,
    Cylindrical,
    Free,
    Model,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
    ground,
)

CRANK, COUPLER, ROCKER, BASE = 1.0, 3.0, 2.5, 3.5


def four_bar(coupler=COUPLER, **options):
    a, b, c = (
        Body.rod(name, length=length, mass=1.0)
        for name, length in (("crank", CRANK), ("coupler", coupler), ("rocker", ROCKER))
    )
    return Model(
        Revolute("A", ground, a.start),
        Revolute("B", a.end, b.start),
        Revolute("C", b.end, c.end),
        Revolute("D", ground.at(BASE, 0.0), c.start),
        gravity=(0.0, -9.81),
        planar=True,
        **options,
    )


def rocker_angle(crank, sign):
    """The angle of the rocker of the four-bar: two circles meet (law of cosines in the triangle over the diagonal)."""
    end = CRANK * np.array([np.cos(crank), np.sin(crank)])
    d = end - np.array([BASE, 0.0])
    length = np.hypot(*d)
    at_d = np.arccos((length**2 + ROCKER**2 - COUPLER**2) / (2.0 * length * ROCKER))
    return np.arctan2(d[1], d[0]) - sign * at_d


def crank_slider(planar=True):
    crank = Body.rod("crank", length=2.0, mass=1.0)
    rod = Body.rod("rod", length=5.0, mass=1.0)
    slider = Body.box("slider", size=(0.2, 0.2, 0.2), mass=1.0)
    return Model(
        Revolute("A", ground, crank.start),
        Revolute("B", crank.end, rod.start),
        Revolute("C", rod.end, slider),
        Prismatic("D", ground, slider, axis="x"),
        planar=planar,
    )


@pytest.fixture(scope="module")
def four():
    return four_bar()


@pytest.fixture(scope="module")
def slider():
    return crank_slider()


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("crank", [0.7, 2.5, -1.2])
def test_both_ways_to_close_a_four_bar(four, crank, sign):
    start = four.assemble(A=crank, side={"C": "+" if sign > 0 else "-"})
    expected = rocker_angle(crank, sign)
    assert np.sin(start.joint("D") - expected) == pytest.approx(0.0, abs=1e-12)
    assert np.cos(start.joint("D") - expected) == pytest.approx(1.0, abs=1e-12)
    assert start.joint("A") == crank


def test_the_nearest_branch_is_taken_and_a_guess_chooses_it(four):
    for sign in (1.0, -1.0):
        goal = rocker_angle(0.7, sign)
        start = four.assemble(A=0.7, guess={"D": goal + 0.2})
        assert start.joint("D") == pytest.approx(goal, abs=1e-12)
        moved = four.assemble(A=0.9, guess=start)
        assert moved.joint("D") == pytest.approx(rocker_angle(0.9, sign), abs=1e-12)


@pytest.mark.parametrize("planar", [True, False])
def test_velocities_follow(slider, planar):
    """x = r cos a + sqrt(l^2 - r^2 sin^2 a), differentiated; in space some conditions are redundant."""
    machine = slider if planar else crank_slider(planar=False)
    start = machine.assemble(A=0.5, velocities={"A": 2.0})
    s, c = 2.0 * np.sin(0.5), 2.0 * np.cos(0.5)
    assert start.joint("D") == pytest.approx(c + np.sqrt(25.0 - s**2), abs=1e-12)
    assert start.rate("D") == pytest.approx(2.0 * (-s - s * c / np.sqrt(25.0 - s**2)), abs=1e-12)


def test_values_of_joints_that_close_loops(slider):
    cut = {joint.name for joint in slider.layout().topology.cut}
    assert cut == {"C"}
    start = slider.assemble(C=-0.2, velocities={"C": 1.5}, guess={"A": -0.4})
    assert start.joint("C") == pytest.approx(-0.2, abs=1e-12)
    assert start.rate("C") == pytest.approx(1.5, abs=1e-11)
    assert 2.0 * np.sin(start.joint("A")) == pytest.approx(5.0 * np.sin(-0.2), abs=1e-12)


def test_the_drawing_is_where_the_assembly_starts():
    """A square drawn with joints at points of the ground is assembled as it stands, all angles zero."""
    sides = [
        Body.rod(name, length=1.0, mass=1.0, position=place, orientation=angle)
        for name, place, angle in (
            ("left", (0.0, 0.5), np.pi / 2),
            ("top", (0.5, 1.0), 0.0),
            ("right", (1.0, 0.5), np.pi / 2),
        )
    ]
    joints = [
        Revolute("A", ground, sides[0], at=(0, 0)),
        Revolute("B", sides[0], sides[1], at=(0, 1)),
        Revolute("C", sides[1], sides[2], at=(1, 1)),
        Revolute("D", sides[2], ground, at=(1, 0)),
    ]
    square = Model(*joints, planar=True)
    drawn = square.assemble()
    np.testing.assert_allclose(drawn.q, 0.0, atol=1e-14)
    turned = square.assemble(A=0.3)  # a parallelogram, not the crossed one
    np.testing.assert_allclose([turned.joint(name) for name in "ABCD"], [0.3, -0.3, 0.3, -0.3], atol=1e-12)


KINDS = (Revolute, Prismatic, Cylindrical, Universal, Spherical, Planar, Free, Screw)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_every_joint_keeps_what_is_given_whichever_way_it_is_stated_and_in_all_coordinates(seed):
    rng = np.random.default_rng(seed)
    last, parts, values, rates = ground, [], {}, {}
    for kind in rng.permutation(np.array(KINDS, dtype=object)):
        body = Body(kind.__name__, mass=1.0, inertia=(1.0, 1.2, 1.4), center=rng.uniform(-1, 1, 3))
        frames = [x.at(*rng.uniform(-1, 1, 3), rotation=rng.uniform(-1, 1, 4)) for x in (last, body)]
        if rng.uniform() < 0.5:
            frames.reverse()
        joint = kind(f"J{kind.__name__}", *frames, **({"pitch": 0.7} if kind is Screw else {}))
        n, last = joint.n_free, body
        parts.append(joint)
        rates[joint.name] = rng.uniform(-1, 1, n)
        values[joint.name] = rng.uniform(-1, 1, n)
        if kind in (Spherical, Free):
            p = rng.normal(size=4)
            p *= np.sign(p[0]) / np.linalg.norm(p)
            values[joint.name] = np.concatenate([values[joint.name][: n - 3], p])
    values["JScrew"] = 9.0  # more than a turn, which its displacement tells
    model = Model(*parts)
    start = model.assemble(hold=values, velocities=rates)
    there = start.in_coordinates("absolute")
    back = there.in_coordinates("relative")
    for name in values:
        for state in (start, there, back):
            np.testing.assert_allclose(state.joint(name), np.squeeze(values[name]), atol=1e-11)
            np.testing.assert_allclose(state.rate(name), np.squeeze(rates[name]), atol=1e-11)
    system = model.system("absolute")
    assert np.max(np.abs(system.constraint(0.0, there.q))) < 1e-12


def test_single_coordinates_of_a_joint_are_held():
    body = Body("b", mass=1.0, inertia=1.0)
    model = Model(Cylindrical("nut and bolt", ground, body))
    start = model.assemble(hold={"nut and bolt.angle": 0.4}, velocities={"nut and bolt.displacement": 2.0})
    np.testing.assert_allclose(start.joint("nut and bolt"), [0.0, 0.4], atol=1e-14)
    np.testing.assert_allclose(start.rate("nut and bolt"), [2.0, 0.0], atol=1e-14)


def test_a_run_takes_the_start_and_the_pair_can_be_stored(slider):
    start = slider.assemble(A=0.5, velocities={"A": 2.0})
    q, v = start
    sol = daedal.solve(slider.system(), (0.0, 0.2), start)
    assert sol.success
    np.testing.assert_allclose(sol.q[:, 0], q, rtol=4e-16)  # a consistent start moves by round-off at most
    again = pickle.loads(pickle.dumps(tuple(start)))
    np.testing.assert_array_equal(again[1], v)
    assert "A=0.5" in repr(start) and "A'=2" in repr(start)


def test_a_loop_that_cannot_close_names_joint_and_gap():
    short = four_bar(coupler=0.6)
    with pytest.raises(daedal.InconsistentInitialError, match=r"joint 'C' between 'coupler' and 'rocker' stays open"):
        short.assemble(A=np.pi)  # the ends are 4.5 apart, of which 3.1 can be bridged
    with pytest.raises(daedal.InconsistentInitialError, match=r"a gap of 1\.4\b"):
        short.assemble(A=np.pi)
    with pytest.raises(daedal.InconsistentInitialError, match=r"one of these is released, .*: A \("):
        short.assemble(A=np.pi)


def test_values_that_fight_are_named(slider):
    with pytest.raises(
        daedal.InconsistentInitialError, match=r"A = 0\.5, D = 6\.8.*released, .*: A \(0\.38\d+\), D \(6\.66"
    ):
        slider.assemble(A=0.5, D=6.8)
    with pytest.raises(daedal.InconsistentInitialError, match="omit one of A, D"):
        slider.assemble(A=0.5, velocities={"A": 1.0, "D": 1.0})
    with pytest.raises(daedal.InconsistentInitialError, match=r"dead point|omit one of D"):
        slider.assemble(A=0.0, velocities={"D": 1.0})
    with pytest.raises(daedal.InconsistentInitialError, match=r"no assembly with D < 0 .*closes with D = 6\.9"):
        slider.assemble(C=0.1, side={"D": "-"})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"Q": 1.0}, "there is no joint 'Q'; known: A"),
        ({"A": [1.0, 2.0]}, "the value of 'A' must be 1 finite number"),
        ({"A": np.nan}, "the value of 'A' must be 1 finite number"),
        ({"side": {"B": "up"}}, "side of joint 'B' must be '\\+' or '-'"),
        ({"guess": 3.0}, "guess must be a dictionary"),
        ({"velocities": {"A.speed": 1.0}}, "joint 'A' has no coordinate 'speed'; it has 'A.angle'"),
    ],
)
def test_bad_arguments(slider, arguments, words):
    with pytest.raises(daedal.InvalidProblemError, match=words):
        slider.assemble(**arguments)
