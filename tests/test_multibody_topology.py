"""The graph of bodies and joints: tree, cut joints, chains, loops; none of it depends on order and names of parts."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.multibody import (
    Body,
    Coupling,
    Fixed,
    Free,
    Model,
    Motor,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
    ground,
)
from daedal.multibody.topology import independent_loops, spanning_tree


def bodies_of(count):
    return [Body(f"b{i}", mass=1.0, inertia=(1.0, 1.0, 1.0)) for i in range(1, count + 1)]


def ten_bodies():
    """Figure 2.2 of the thesis: beta = [0, 1, 2, 3, 4, 5, 6, 5, 3, 9]."""
    bodies = bodies_of(10)
    parents = [0, 1, 2, 3, 4, 5, 6, 5, 3, 9]
    return bodies, [Revolute(f"j{i}", [ground, *bodies][f], bodies[i - 1]) for i, f in enumerate(parents, 1)]


def test_connection_array_junctions_and_chains_of_the_thesis():
    topology = spanning_tree(*ten_bodies())
    assert topology.connection_array == (0, 1, 2, 3, 4, 5, 6, 5, 3, 9)
    assert [topology.bodies[i].name for i in topology.junctions] == ["b3", "b5"]
    named = [tuple(i + 1 for i in chain) for chain in topology.chains]
    assert named == [(0, 1, 2, 3), (3, 4, 5), (3, 9, 10), (5, 6, 7), (5, 8)]
    assert topology.cut == ()


def test_joints_stated_the_other_way_round_are_seen_from_the_parent():
    one, two = bodies_of(2)
    topology = spanning_tree([one, two], [Revolute("A", one, ground), Revolute("B", one.at(1, 0), two)])
    assert topology.reversed == (True, False)
    assert [joint.bodies for joint in topology.joints] == [("ground", "b1"), ("b1", "b2")]


def test_the_joint_with_the_fewest_conditions_is_cut():
    one, two, three = bodies_of(3)
    joints = [
        Spherical("A", ground, one),
        Revolute("B", one, two),
        Universal("C", two, three),
        Fixed("D", three, ground),
    ]
    for order in itertools.permutations(joints):
        assert [joint.name for joint in spanning_tree([one, two, three], order).cut] == ["A"]


def test_loops_are_short():
    """Of equal joints the tree has those near the ground: each loop of a row of four-bars has four joints."""
    rods = [Body.rod(f"rod{i}", length=1.0, mass=1.0) for i in range(6)]
    bars = [Body.rod(f"bar{i}", length=1.0, mass=1.0) for i in range(5)]
    joints = [Revolute(f"A{i}", ground.at(i, 0), rods[i].start) for i in range(6)]
    joints += [Revolute(f"B{i}", rods[i].end, bars[i].start) for i in range(5)]
    joints += [Revolute(f"C{i}", bars[i].end, rods[i + 1].end) for i in range(5)]
    topology = spanning_tree(rods + bars, joints)
    assert sorted(joint.name for joint in topology.cut) == [f"C{i}" for i in range(5)]
    loops = independent_loops(joints, [joint.name for joint in topology.cut])
    assert sorted(loop.joints for loop in loops) == [(f"A{i}", f"B{i}", f"C{i}", f"A{i + 1}") for i in range(5)]
    assert all(loop.bodies[0] == "ground" for loop in loops)


def test_loops_are_shorter_than_those_of_the_tree():
    """A long way round that a short cut divides: the basis has the two short loops, whatever is cut."""
    bodies = bodies_of(7)
    around = [ground, *bodies]
    joints = [Revolute(f"j{i}", around[i], around[(i + 1) % 8]) for i in range(8)]
    joints.append(Revolute("across", ground, bodies[3]))
    loops = independent_loops(joints, ["j0", "j7"])
    assert sorted(len(loop.joints) for loop in loops) == [5, 5]
    assert all("across" in loop.joints for loop in loops)


def test_two_joints_between_the_same_bodies_are_a_loop():
    one, two = bodies_of(2)
    joints = [Revolute("A", ground, one), Revolute("upper", one.at(0, 0, 1), two), Revolute("lower", one, two)]
    topology = spanning_tree([one, two], joints)
    assert [joint.name for joint in topology.cut] == ["upper"]
    assert [set(loop.joints) for loop in independent_loops(joints, ["upper"])] == [{"upper", "lower"}]


def test_given_cuts_and_kept_joints_are_respected():
    one, two = bodies_of(2)
    joints = [Revolute("A", ground, one), Revolute("B", one, two), Revolute("C", two, ground)]
    assert [joint.name for joint in spanning_tree([one, two], joints, cut=["A"]).cut] == ["A"]
    assert [joint.name for joint in spanning_tree([one, two], joints, keep=["B", "C"]).cut] == ["A"]


def test_joints_that_constraints_and_forces_read_stay_in_the_tree():
    one, two, three = bodies_of(3)
    ring = [
        Revolute("A", ground, one),
        Revolute("B", one, two),
        Revolute("C", two, three),
        Revolute("D", three, ground),
    ]
    assert [joint.name for joint in Model(*ring).topology().cut] == ["C"]
    gear, motor = Coupling("gear", {"B": 1.0, "C": 2.0}), Motor("motor", "D", 1.0)
    assert [joint.name for joint in Model(*ring, gear, motor).topology().cut] == ["A"]


def test_cuts_that_leave_bodies_without_a_way_to_the_ground_are_refused():
    one, two, three = bodies_of(3)
    joints = [
        Revolute("A", ground, one),
        Revolute("B", one, two),
        Revolute("C", two, ground),
        Revolute("D", two, three),
    ]
    model = Model(*joints)
    with pytest.raises(
        daedal.InvalidProblemError, match=r"'b1', 'b2' and 'b3' to the ground; remove one of 'A' and 'C' from"
    ):
        model.system(cut=["A", "C"])
    with pytest.raises(daedal.InvalidProblemError, match=r"'b3' to the ground; remove 'D' from cut"):
        model.system(cut="D")
    with pytest.raises(daedal.InvalidProblemError, match="there is no joint 'E'"):
        model.system(cut=["E"])


def test_disconnected_parts_are_named():
    one, two, three = bodies_of(3)
    model = Model(Revolute("A", ground, one), Revolute("B", two, three))
    with pytest.raises(daedal.InvalidProblemError, match=r"'b2' and 'b3' to the ground; add one, Free\(\.\.\.\)"):
        model.system()
    with pytest.raises(daedal.InvalidProblemError, match=r"'b2' and 'b3' to the ground"):
        model.report()


def test_a_free_joint_beside_others_is_no_loop():
    one = bodies_of(1)[0]
    report = Model(Free("free", ground, one), Revolute("A", ground, one)).report()
    assert report.loops == () and report.degrees_of_freedom == 1


@st.composite
def machines(draw):
    """Plane machines, closed where they are drawn: (bodies' names, [(name, kind, body, body, point)])."""
    n = draw(st.integers(1, 6))
    pairs = [(draw(st.integers(0, i - 1)), i) for i in range(1, n + 1)]
    extra = draw(st.lists(st.tuples(st.integers(0, n), st.integers(0, n)), max_size=3))
    pairs += [(a, b) for a, b in extra if a != b]
    generator = np.random.default_rng(draw(st.integers(0, 1000)))
    kinds = draw(st.lists(st.sampled_from(["turn", "slide"]), min_size=len(pairs), max_size=len(pairs)))
    return n, [(kind, *pair, generator.uniform(-1, 1, 2), generator.uniform(0, 3)) for kind, pair in zip(kinds, pairs)]


def built(n, stated, body_names, joint_names, order):
    bodies = [ground, *(Body(name, mass=1.0, inertia=1.0) for name in body_names[:n])]
    joints = []
    for name, (kind, a, b, at, angle) in zip(joint_names, stated):
        if kind == "turn":
            joints.append(Revolute(name, bodies[a], bodies[b], at=at))
        else:
            joints.append(Prismatic(name, bodies[a], bodies[b], at=at, axis=(np.cos(angle), np.sin(angle))))
    return Model(*(joints[k] for k in order), planar=True)


@settings(max_examples=15, deadline=None)
@given(machines(), st.randoms(use_true_random=False))
def test_order_and_names_of_parts_do_not_matter(machine, random):
    n, stated = machine
    letters = list("abcdefghijkl")
    numbers = [f"part {k}" for k in range(len(letters))]
    random.shuffle(numbers)
    order = list(range(len(stated)))
    one = built(n, stated, letters, letters, order).report()
    random.shuffle(order)
    two = built(n, stated, numbers, numbers, order).report()
    for report in (one, two):
        assert len(report.loops) == len(report.topology.cut) == len(stated) - n
        cut = {joint.name for joint in report.topology.cut}
        assert all(cut & set(loop.joints) for loop in report.loops)
        assert all(parent < body for body, parent in enumerate(report.topology.parents))
    assert one.gruebler == two.gruebler
    assert one.degrees_of_freedom == two.degrees_of_freedom
    assert len(one.redundant) == len(two.redundant)
    assert sorted(len(loop.joints) for loop in one.loops) == sorted(len(loop.joints) for loop in two.loops)
    assert one.degrees_of_freedom == one.gruebler + len(one.redundant)
