"""Machines from URDF, against kinematics that this file reads from the XML by itself."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import daedal
from daedal.multibody import Motor, Revolute, Spherical, from_urdf

FILE = Path(__file__).parent / "robots" / "gripper_arm.urdf"
TEXT = FILE.read_text(encoding="utf-8")
G = 9.81


def floats(element, tag, name, default):
    found = element.find(tag)
    return np.array((default if found is None else found.get(name, default)).split(), dtype=float)


def turned(axis, angle):
    """Rodrigues' formula."""
    x, y, z = axis / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def origin(element):
    roll, pitch, yaw = floats(element, "origin", "rpy", "0 0 0")
    turn = turned((0, 0, 1), yaw) @ turned((0, 1, 0), pitch) @ turned((1, 0, 0), roll)
    return floats(element, "origin", "xyz", "0 0 0"), turn


def placed(values):
    """{link: (mass, centre, moments in the axes of the ground, rotation)} for values of joints."""
    robot = ElementTree.fromstring(TEXT)
    links = {link.get("name"): link for link in robot.findall("link")}
    frames = {"stand": (np.zeros(3), np.eye(3))}
    for joint in robot.findall("joint"):  # parents come first in this file
        r, A = frames[joint.find("parent").get("link")]
        place, turn = origin(joint)
        r, A = r + A @ place, A @ turn
        axis, value = floats(joint, "axis", "xyz", "1 0 0"), values[joint.get("name")]
        if joint.get("type") == "prismatic":
            r = r + A @ axis / np.linalg.norm(axis) * value
        else:
            A = A @ turned(axis, value)
        frames[joint.find("child").get("link")] = r, A
    found = {}
    for name, (r, A) in frames.items():
        inertial = links[name].find("inertial")
        if inertial is not None:
            place, turn = origin(inertial)
            entry = {key: float(value) for key, value in inertial.find("inertia").attrib.items()}
            J = np.array([[entry["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])
            mass = float(inertial.find("mass").get("value"))
            found[name] = mass, r + A @ place, A @ turn @ J @ turn.T @ A.T, A
    return found


def energies(names, q, v):
    """Kinetic energy by differences of the positions above, and potential energy."""
    h = 1e-5
    ahead, here, behind = (placed(dict(zip(names, q + s * h * v))) for s in (1, 0, -1))
    kinetic = potential = 0.0
    for name, (mass, r, J, A) in here.items():
        speed = (ahead[name][1] - behind[name][1]) / (2 * h)
        W = (ahead[name][3] - behind[name][3]) / (2 * h) @ A.T
        omega = np.array([W[2, 1], W[0, 2], W[1, 0]])
        kinetic += 0.5 * mass * speed @ speed + 0.5 * omega @ J @ omega
        potential += mass * G * r[2]
    return kinetic, potential


def test_masses_and_forces_of_the_arm():
    system = from_urdf(FILE).system()
    assert system.names == ("turn", "lift", "elbow", "roll", "grip", "follow")
    rng = np.random.default_rng(3)
    for _ in range(2):
        q, v = rng.uniform(-1, 1, 6), rng.uniform(-1, 1, 6)
        kinetic, _ = energies(system.names, q, v)
        assert 0.5 * v @ system.mass(0.0, q) @ v == pytest.approx(kinetic, rel=1e-8)
        step = 1e-4 * np.eye(6)
        ahead, behind = ([energies(system.names, q + s * e, v)[1] for e in step] for s in (1, -1))
        weight = -(np.array(ahead) - behind) / 2e-4
        np.testing.assert_allclose(system.force(0.0, q, 0 * v), weight, atol=1e-6)


def test_mimic_is_a_constraint_and_damping_a_force():
    robot = from_urdf(TEXT, gravity=(0, 0, 0))
    system = robot.system()
    assert system.constraint_names == ("follow mimics grip",)
    q = np.zeros(6)
    q[4:] = 0.02, -0.02 + 0.001
    assert system.constraint(0.0, q) == pytest.approx(0.0, abs=1e-15)
    report = robot.report()
    assert (report.degrees_of_freedom, report.redundant, report.without_inertia) == (5, (), ())
    speeds = 1e-7 * np.array([1.0, 1.0, 1.0, 0, 0, 0])  # so slow that nothing but damping counts
    np.testing.assert_allclose(system.force(0.0, q, speeds)[:3], -1e-7 * np.array([0.5, 0.2, 0.0]), atol=1e-12)


def test_friction_is_a_force_where_a_speed_is_given():
    system = from_urdf(TEXT, gravity=(0, 0, 0), friction_speed=1e-9).system()
    speeds = 1e-7 * np.array([1.0, 1.0, 1.0, 0, 0, 0])
    expected = [-0.5e-7, -0.2e-7 - 0.1, 0.0]
    np.testing.assert_allclose(system.force(0.0, np.zeros(6), speeds)[:3], expected, atol=1e-12)
    planar = TEXT.replace('type="revolute"', 'type="planar"', 1)
    with pytest.raises(daedal.InvalidProblemError, match="'lift' of the URDF is planar, but damping and friction"):
        from_urdf(planar)


def test_the_arm_falls_with_both_fingers_at_the_same_opening():
    robot = from_urdf(FILE)
    start = robot.assemble(lift=0.3, grip=0.02)
    sol = daedal.solve(robot.system(), (0.0, 0.2), start, rtol=1e-6)
    np.testing.assert_allclose(sol["follow"], 0.001 - sol["grip"], atol=1e-9)
    assert sol["lift"][-1] > 0.31


def test_shapes_and_the_base():
    robot = from_urdf(FILE)
    kinds = {body.name: [type(shape).__name__ for shape in body.shapes] for body in robot.bodies}
    assert kinds["stand"] == ["Cylinder"] and kinds["shoulder"] == ["Sphere"] and kinds["forearm"] == ["Box"]
    (mesh,) = robot.body("hand").shapes
    assert mesh.file == "package://gripper_arm/meshes/hand.stl" and mesh.pieces(1.0) == []
    np.testing.assert_allclose(robot.body("upper arm").shapes[0].corners.max(axis=0), [0.4, 0.04, 0.04], atol=1e-12)
    assert type(robot.joint("base")).__name__ == "Fixed"
    assert robot.name == "gripper arm" and from_urdf(FILE, name="other").name == "other"


def test_a_free_base_has_six_more_coordinates():
    text = TEXT.replace(
        '<link name="stand">',
        '<link name="stand"><inertial><mass value="1"/><inertia ixx="1" ixy="0" '
        'ixz="0" iyy="1" iyz="0" izz="1"/></inertial>',
    )
    assert from_urdf(text, base="free").report().degrees_of_freedom == 11
    with pytest.raises(daedal.InvalidProblemError, match="'stand' has no mass"):
        from_urdf(FILE, base="free").system()


def test_loops_and_motors_by_extra_parts():
    def more(link):
        rod = daedal.multibody.Body.rod("strut", length=0.35, radius=0.01, mass=0.3)
        return [
            Spherical("low", link["shoulder"].at(0.1, 0.0, 0.0), rod.start),
            Spherical("high", rod.end, link["upper arm"].at(0.3, 0.0, 0.0)),
            Motor("drive", "turn", 2.0),
        ]

    report = from_urdf(FILE, extra=more).report()
    assert [set(loop.joints) for loop in report.loops] == [{"lift", "low", "high"}]
    assert report.degrees_of_freedom == 5  # the lift is held by the strut, which spins
    assert from_urdf(FILE, extra=[Motor("drive", "turn", 2.0)]).system().force(0.0, np.zeros(6), np.zeros(6))[0] == (
        pytest.approx(2.0, abs=1e-12)
    )


def test_all_types_of_joints():
    inertial = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    kinds = ["revolute", "continuous", "prismatic", "fixed", "floating", "planar"]
    text = '<robot name="all"><link name="0"/>' + "".join(
        f'<link name="{i}">{inertial}</link><joint name="{kind}" type="{kind}"><parent link="{i - 1}"/>'
        f'<child link="{i}"/><axis xyz="0 0 1"/></joint>'
        for i, kind in enumerate(kinds, 1)
    )
    robot = from_urdf(text + "</robot>")
    assert [type(joint).__name__ for joint in robot.joints[1:]] == [
        *("Revolute", "Revolute", "Prismatic", "Fixed", "Free", "Planar"),
    ]
    assert isinstance(robot.joint("revolute"), Revolute) and robot.report().degrees_of_freedom == 1 + 1 + 1 + 6 + 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("</robot>", "", ["not well-formed"]),
        ("<robot", "<sdf", ["not well-formed"]),
        ('type="prismatic"', 'type="slider"', ["joint 'grip'", "'slider'", "prismatic"]),
        ('<link name="hand">', '<link name="forearm">', ["two links", "'forearm'"]),
        ('<child link="hand"/>', '<child link="head"/>', ["joint 'roll'", "'head'"]),
        ('<child link="hand"/>', "", ["joint 'roll'", "<child>"]),
        ('<child link="right finger"/>', '<child link="left finger"/>', ["'left finger'", "two joints", "`extra`"]),
        ('mimic joint="grip"', 'mimic joint="grab"', ["'follow'", "'grab'"]),
        ('xyz="0.08 0.02 0"', 'xyz="0.08 0.02"', ["joint 'grip'", "3 finite numbers", "0.08 0.02"]),
        ('mass value="0.5"', 'mass value="heavy"', ["link 'hand'", "heavy"]),
        ('mass value="0.5"', 'mass value="nan"', ["link 'hand'", "nan"]),
        ('mass value="0.5"', 'mass value="-0.5"', ["body 'hand'", "negative"]),
        ('ixx="0.02"', 'ixx="0.9"', ["body 'shoulder'", "triangle"]),
        ('xyz="0 0 1"', 'xyz="0 0 0"', ["joint 'turn'", "length zero"]),
        ('<robot name="gripper arm">', '<robot xmlns:x="http://www.ros.org/wiki/xacro"><x:macro/>', ["xacro"]),
    ],
)
def test_bad_files_name_what_is_wrong(old, new, words):
    text = TEXT.replace(old, new, 1)
    assert text != TEXT
    with pytest.raises(daedal.InvalidProblemError) as caught:
        from_urdf(text)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_file_that_is_not_there():
    with pytest.raises(daedal.InvalidProblemError, match=r"'no\.urdf' cannot be read: No such file"):
        from_urdf("no.urdf")
    with pytest.raises(daedal.InvalidProblemError, match="here it is <sdf>"):
        from_urdf("<sdf/>")
    with pytest.raises(daedal.InvalidProblemError, match="base='loose'"):
        from_urdf(FILE, base="loose")
