"""Mass matrices, bias forces and accelerations of random trees against Pinocchio and MuJoCo, see ``.ci/oracles``.

Every joint becomes a sequence of joints that both have: shifts along x, y, z of the joint's first frame, then rotations
about z and y, or a ball. The velocities are then the same numbers; quaternions have their real part last in Pinocchio.
Both want bodies depth first.
"""

import numpy as np
import pytest

from daedal.multibody import aba, accelerations, crba, rnea
from daedal.multibody.body import parameters_of
from daedal.multibody.kinematics import ABOUT_Z, ABOUT_Z_AND_Y, ANY_ROTATION, placement
from multibody_models import JOINTS, loop_jacobian, random_machine, random_state
from oracles import oracle

TURNS = {ABOUT_Z: "z", ABOUT_Z_AND_Y: "zy", ANY_ROTATION: "b"}
WITHOUT_SCREWS = tuple(joint for joint in JOINTS if joint.__name__ != "Screw")
SIZES = (5, 20, 100)


def motions(tree, j):
    """The joint as shifts along axes 0, 1, 2, rotations "z", "y" and balls "b"; a screw is a pitch."""
    turns = list(TURNS.get(int(tree.turn[j]), ""))
    slides = tree.slide[tree.first_v[j] : tree.first_v[j + 1]]
    shifts = [int(np.argmax(slide)) for slide in slides if np.any(slide)]
    if turns == ["z"] and len(slides) == 1 and shifts:
        return [float(slides[0, 2])]
    return [*shifts, *turns]


def depth_first(tree, j=-1):
    """The bodies behind j, each followed by those behind it."""
    for child in np.flatnonzero(tree.parent == j):
        yield child
        yield from depth_first(tree, child)


def places(tree, first):
    """Where coordinates or velocities are, bodies depth first."""
    return np.concatenate([np.arange(first[j], first[j + 1]) for j in depth_first(tree)])


def assert_same(found, expected):
    assert np.allclose(found, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())


def assert_same_dynamics(layout, q, u, tau, mass, bias, accelerations):
    """The others' results have bodies depth first."""
    order = places(layout.tree, layout.tree.first_v)
    assert_same(crba(layout, q)[np.ix_(order, order)], mass)
    assert_same(rnea(layout, q, u, np.zeros(layout.n_v))[order], bias)
    assert_same(aba(layout, q, u, tau)[order], accelerations)


class Pinocchio:
    """A tree as a model of Pinocchio."""

    def __init__(self, layout):
        self.library = pin = oracle("pinocchio", minversion="4.0")
        tree = layout.tree
        self.model = pin.Model()
        self.model.gravity.linear = tree.gravity
        self.quaternions = []
        self.bodies = bodies = {-1: (0, pin.SE3.Identity())}  # joint, and where the centre of mass is in its frame
        for j in depth_first(tree):
            joint, centre = bodies[int(tree.parent[j])]
            place = centre * pin.SE3(tree.axes[j], tree.place[j])
            for k, motion in enumerate(motions(tree, j)):
                joint = self.model.addJoint(joint, self.joint(motion), place, f"{j}.{k}")
                place = pin.SE3.Identity()
                if motion == "b":
                    self.quaternions.append(self.model.idx_qs[joint])
            bodies[j] = joint, place * pin.SE3(tree.own_axes[j], tree.own_place[j]).inverse()
            self.model.appendBodyToJoint(joint, pin.Inertia(tree.mass[j], np.zeros(3), tree.inertia[j]), bodies[j][1])
        self.data = self.model.createData()

    def joint(self, motion):
        """A joint of Pinocchio."""
        pin = self.library
        if isinstance(motion, float):
            return pin.JointModelHZ(motion)
        kinds = pin.JointModelPX, pin.JointModelPY, pin.JointModelPZ
        rotations = {"z": pin.JointModelRZ, "y": pin.JointModelRY, "b": pin.JointModelSpherical}
        return rotations[motion]() if motion in rotations else kinds[motion]()

    def coordinates(self, q):
        """With the real part of quaternions last."""
        result = q.copy()
        for at in self.quaternions:
            result[at : at + 4] = np.roll(q[at : at + 4], -1)
        return result


@pytest.mark.parametrize("n", SIZES)
def test_trees_of_all_joints_against_pinocchio(n):
    layout = random_machine(n, n).layout()
    other = Pinocchio(layout)
    pin, model, data = other.library, other.model, other.data
    q, u, tau = random_state(layout, n)
    order = places(layout.tree, layout.tree.first_v)
    theirs = other.coordinates(q[places(layout.tree, layout.tree.first_q)])
    mass = np.triu(pin.crba(model, data, theirs))
    mass += np.triu(mass, 1).T
    bias = pin.nonLinearEffects(model, data, theirs, u[order]).copy()
    assert_same_dynamics(layout, q, u, tau, mass, bias, pin.aba(model, data, theirs, u[order], tau[order]))


@pytest.mark.parametrize("n", (6, 20))
def test_loops_against_pinocchio(n):
    """Balls that close loops, at velocities that keep them closed."""
    layout = random_machine(n, n, loops=2).layout(cut=["loop 0", "loop 1"])
    other = Pinocchio(layout)
    pin, model, data, tree = other.library, other.model, other.data, layout.tree
    q, u, tau = random_state(layout, n)
    jacobian = loop_jacobian(tree, placement(tree, q), layout.closures)
    u -= np.linalg.pinv(jacobian) @ (jacobian @ u)
    loops, states = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for joint in layout.topology.cut:
        sides = []
        for frame in joint.frames:
            number, centre = other.bodies[layout.index[frame.body.name]]
            sides += [number, centre * pin.SE3(frame.rotation, frame.position - frame.body.center)]
        loops.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *sides, pin.ReferenceFrame.LOCAL))
    order = places(tree, tree.first_v)
    theirs = other.coordinates(q[places(tree, tree.first_q)])
    states.extend([loop.createData() for loop in loops])
    pin.initConstraintDynamics(model, data, loops, states)
    expected = pin.constraintDynamics(model, data, theirs, u[order], tau[order], loops, states)
    found = accelerations(layout, q, u, tau)
    assert found.redundant == 0
    assert_same(found.u[order], expected)


def as_mujoco(layout):
    """The tree in MuJoCo's language; the frame of a body is that of its joint."""
    tree = layout.tree
    children = {j: np.flatnonzero(tree.parent == j) for j in range(-1, tree.parent.size)}

    def numbers(values):
        return " ".join(repr(float(value)) for value in values)

    def joint(motion):
        if motion == "b":
            return '<joint type="ball"/>'
        kind, axis = ("hinge", {"z": 2, "y": 1}[motion]) if isinstance(motion, str) else ("slide", motion)
        return f'<joint type="{kind}" axis="{numbers(np.eye(3)[axis])}"/>'

    def body(j, axes, place):
        """`axes` and `place` take the centre of mass of the parent to its frame."""
        back, turn = axes.T @ (tree.place[j] - place), axes.T @ tree.axes[j]
        own, centre = tree.own_axes[j], -tree.own_axes[j].T @ tree.own_place[j]
        inertia = own.T @ tree.inertia[j] @ own
        full = [inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2]]
        inside = "".join(joint(motion) for motion in motions(tree, j))
        inside += f'<inertial pos="{numbers(centre)}" mass="{float(tree.mass[j])!r}" fullinertia="{numbers(full)}"/>'
        inside += "".join(body(child, own, tree.own_place[j]) for child in children[j])
        return f'<body pos="{numbers(back)}" quat="{numbers(parameters_of(turn))}">{inside}</body>'

    bodies = "".join(body(j, np.eye(3), np.zeros(3)) for j in children[-1])
    option = f'<compiler angle="radian"/><option gravity="{numbers(tree.gravity)}"/>'
    return f"<mujoco>{option}<worldbody>{bodies}</worldbody></mujoco>"


@pytest.mark.parametrize("n", SIZES)
def test_trees_without_screws_against_mujoco(n):
    mujoco = oracle("mujoco")
    layout = random_machine(n, n, joints=WITHOUT_SCREWS).layout()
    model = mujoco.MjModel.from_xml_string(as_mujoco(layout))
    data = mujoco.MjData(model)
    q, u, tau = random_state(layout, n)
    order = places(layout.tree, layout.tree.first_v)
    data.qpos[:] = q[places(layout.tree, layout.tree.first_q)]
    data.qvel[:], data.qfrc_applied[:] = u[order], tau[order]
    mujoco.mj_forward(model, data)
    mass = np.zeros((layout.n_v, layout.n_v))
    for line, unit in zip(mass, np.eye(layout.n_v)):
        mujoco.mj_mulM(model, data, line, unit)
    assert_same_dynamics(layout, q, u, tau, mass, data.qfrc_bias, data.qacc)
