"""A machine of `daedal.multibody` in MuJoCo: the tree of its joints, and equality constraints that close loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from daedal.multibody import Motor, Spring

INTEGRATORS = ("RK4", "implicitfast")


def numbers(values: Iterable[float]) -> str:
    return " ".join(repr(float(value)) for value in values)


class InMujoco:
    """A machine with its start (q, v), ready to be simulated; hinges, slides, springs and constant motors."""

    def __init__(self, machine: Any, layout: Any, q: np.ndarray, v: np.ndarray, t1: float):
        self.machine, self.layout, self.q, self.v, self.t1 = machine, layout, q, v, t1
        self.sites: dict[int, list[str]] = {}
        self.ends = [self._ends(joint) for joint in layout.topology.cut]
        self.springs = [
            (force, self._site(force.a, np.zeros(3)), self._site(force.b, np.zeros(3)))
            for force in machine.forces
            if isinstance(force, Spring)
        ]

    def _ends(self, joint) -> list[tuple[str, str]]:
        """The points that a hinge holds together: one in the plane, two on its axis in space."""
        offsets = [np.zeros(3)] if self.machine.planar else [np.array([0.0, 0.0, z]) for z in (-0.5, 0.5)]
        return [(self._site(joint.a, offset), self._site(joint.b, offset)) for offset in offsets]

    def _site(self, frame, offset: np.ndarray) -> str:
        """A point on a body, in the axes of its joint in the tree."""
        tree, j = self.layout.tree, self.layout.index[frame.body.name]
        place = frame.position + frame.rotation @ offset
        if j >= 0:
            place = tree.own_axes[j].T @ (place - frame.body.center - tree.own_place[j])
        name = f"s{sum(map(len, self.sites.values()))}"
        self.sites.setdefault(j, []).append(f'<site name="{name}" pos="{numbers(place)}"/>')
        return name

    def _body(self, j: int, axes: np.ndarray, place: np.ndarray) -> str:
        """`axes` and `place` take the centre of mass of the parent to its frame."""
        tree = self.layout.tree
        back, turn = axes.T @ (tree.place[j] - place), axes.T @ tree.axes[j]
        own, centre = tree.own_axes[j], -tree.own_axes[j].T @ tree.own_place[j]
        inertia = own.T @ tree.inertia[j] @ own
        if self.machine.planar:
            inertia = inertia[2, 2] * np.eye(3)  # a solid; the others do not count
        full = [*np.diag(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2]]
        slides = tree.turn[j] == 0
        axis = tree.slide[tree.first_v[j]] if slides else np.eye(3)[2]
        x, y, z, w = Rotation.from_matrix(turn).as_quat()
        return (
            f'<body name="b{j}" pos="{numbers(back)}" quat="{numbers((w, x, y, z))}">'
            f'<joint name="j{j}" type="{"slide" if slides else "hinge"}" axis="{numbers(axis)}"/>'
            f'<inertial pos="{numbers(centre)}" mass="{float(tree.mass[j])!r}" fullinertia="{numbers(full)}"/>'
            + "".join(self.sites.get(j, []))
            + "".join(self._body(child, own, tree.own_place[j]) for child in np.flatnonzero(tree.parent == j))
            + "</body>"
        )

    def text(self, integrator: str, step: float) -> str:
        """The model; constraints are as stiff as the step allows."""
        tree = self.layout.tree
        roots = "".join(self._body(j, np.eye(3), np.zeros(3)) for j in np.flatnonzero(tree.parent == -1))
        firm = f'solref="{2.0 * step!r} 1" solimp="0.9999 0.9999 0.001"'
        loops = "".join(f'<connect site1="{a}" site2="{b}" {firm}/>' for pairs in self.ends for a, b in pairs)
        tendons = "".join(
            f'<spatial stiffness="{force.stiffness!r}" damping="{force.damping!r}" springlength="{force.length!r}">'
            f'<site site="{a}"/><site site="{b}"/></spatial>'
            for force, a, b in self.springs
        )
        option = f'gravity="{numbers(tree.gravity)}" timestep="{step!r}" integrator="{integrator}"'
        return (
            f'<mujoco><compiler angle="radian" boundinertia="1e-14"/><option {option}/>'
            f"<worldbody>{''.join(self.sites.get(-1, []))}{roots}</worldbody>"
            f"<equality>{loops}</equality><tendon>{tendons}</tendon></mujoco>"
        )

    def run(self, integrator: str, steps: int) -> Callable[[], None]:
        """A simulation with a number of steps."""
        import mujoco

        mujoco.set_mju_user_warning(lambda message: None)  # otherwise it writes a file
        model = mujoco.MjModel.from_xml_string(self.text(integrator, self.t1 / steps))
        data = mujoco.MjData(model)
        tree = self.layout.tree
        self.model, self.data = model, data
        # MuJoCo numbers bodies depth first
        order = [model.joint(f"j{j}").qposadr[0] for j in range(tree.parent.size)]
        torques = np.zeros(model.nv)
        for force in self.machine.forces:
            if isinstance(force, Motor):
                torques[order[self.layout.names.index(force.joint)]] = force.torque

        def simulate() -> None:
            mujoco.mj_resetData(model, data)
            data.qpos[order], data.qvel[order] = self.q, self.v
            data.qfrc_applied[:] = torques
            mujoco.mj_step(model, data, steps)
            if any(warning.number for warning in data.warning):
                raise RuntimeError("MuJoCo became unstable")

        return simulate

    def centres(self) -> np.ndarray:
        """Where the centres of mass are at the end."""
        import mujoco

        mujoco.mj_kinematics(self.model, self.data)
        return np.array([self.data.body(f"b{j}").xipos for j in range(self.layout.tree.parent.size)])
