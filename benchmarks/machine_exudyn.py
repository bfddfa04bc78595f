"""A machine of `daedal.multibody` in Exudyn: rigid bodies in absolute coordinates, 2D ones in the plane, and joints."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container
from typing import Any

import numpy as np

from daedal.multibody import Motor, Prismatic, Revolute, Spring
from daedal.multibody.kinematics import placement, velocities

SOLVERS = ("TrapezoidalIndex2", "GeneralizedAlpha")
_ALONG_X = np.eye(3)[:, [2, 0, 1]]  # Exudyn slides along x, Daedal along z


class InExudyn:
    """A machine with its start (q, v), ready to be simulated; hinges, slides, springs and constant motors.

    `loose` names hinges that are not held along their axes, where one condition of a loop follows from the others.
    """

    def __init__(self, machine: Any, layout: Any, q: np.ndarray, v: np.ndarray, t1: float, loose: Container[str] = ()):
        sys.exudynFast = True  # type: ignore[attr-defined]  # the build without range checks
        import exudyn
        from exudyn import itemInterface

        self.exu, self.item, self.t1 = exudyn, itemInterface, t1
        self.container = exudyn.SystemContainer()
        self.mbs = self.container.AddSystem()
        self.planar, self.loose, tree = machine.planar, loose, layout.tree
        placed = placement(tree, q)
        moving = velocities(tree, placed, v)
        self.bodies = {"ground": self.mbs.AddObject(itemInterface.ObjectGround())}
        self.nodes = []
        for i, body in enumerate(layout.topology.bodies):
            pose = placed.r[i], placed.rotation[i], moving.linear[i], moving.angular[i]
            self.nodes.append(self._node(*pose))
            self.bodies[body.name] = self._body(body, self.nodes[-1], tree.gravity)
        for joint in machine.joints:
            self._join(joint)
        for force in machine.forces:
            self._act(force, machine)
        self.mbs.Assemble()

    def _node(self, r, rotation, velocity, omega) -> Any:
        if self.planar:
            place = [r[0], r[1], np.arctan2(rotation[1, 0], rotation[0, 0])]
            rates = [velocity[0], velocity[1], omega[2]]
            return self.mbs.AddNode(self.item.NodeRigidBody2D(referenceCoordinates=place, initialVelocities=rates))
        from exudyn.utilities import AngularVelocity2EulerParameters_t, RotationMatrix2EulerParameters

        parameters = RotationMatrix2EulerParameters(rotation)
        turning = AngularVelocity2EulerParameters_t(omega, parameters)
        return self.mbs.AddNode(
            self.item.NodeRigidBodyEP(
                referenceCoordinates=[*r, *parameters], initialVelocities=[*velocity, *np.ravel(turning)]
            )
        )

    def _body(self, body, node, gravity) -> Any:
        moments = body.inertia.moments
        if self.planar:
            made = self.item.ObjectRigidBody2D(mass=body.mass, inertia=moments[2, 2], nodeNumber=node)
        else:
            six = [moments[0, 0], moments[1, 1], moments[2, 2], moments[1, 2], moments[0, 2], moments[0, 1]]
            made = self.item.ObjectRigidBody(mass=body.mass, inertia=six, nodeNumber=node)
        number = self.mbs.AddObject(made)
        if np.any(gravity):
            marker = self.mbs.AddMarker(self.item.MarkerBodyMass(bodyNumber=number))
            self.mbs.AddLoad(self.item.LoadMassProportional(markerNumber=marker, loadVector=list(gravity)))
        return number

    def _marker(self, frame, kind: str) -> Any:
        place = frame.position if frame.body.is_ground else frame.position - frame.body.center
        body = self.bodies[frame.body.name]
        if kind == "Rigid":
            pose = self.exu.HT(rotation=frame.rotation, translation=place)
            return self.mbs.AddMarker(self.item.MarkerBodyRigid(bodyNumber=body, localHT=pose))
        return self.mbs.AddMarker(self.item.MarkerBodyPosition(bodyNumber=body, localPosition=list(place)))

    def _join(self, joint) -> None:
        if self.planar and isinstance(joint, Revolute):
            markers = [self._marker(frame, "Position") for frame in (joint.a, joint.b)]
            self.mbs.AddObject(self.item.ObjectJointRevolute2D(markerNumbers=markers))
            return
        turn = _ALONG_X if isinstance(joint, Prismatic) else np.eye(3)
        markers = [self._marker(frame.turned(turn), "Rigid") for frame in (joint.a, joint.b)]
        if isinstance(joint, Prismatic):
            self.mbs.AddObject(self.item.ObjectJointPrismaticX(markerNumbers=markers))
        elif joint.name in self.loose:
            self.mbs.AddObject(self.item.ObjectJointGeneric(markerNumbers=markers, constrainedAxes=[1, 1, 0, 1, 1, 0]))
        else:
            self.mbs.AddObject(self.item.ObjectJointRevoluteZ(markerNumbers=markers))

    def _act(self, force, machine) -> None:
        if isinstance(force, Spring):
            markers = [self._marker(frame, "Position") for frame in (force.a, force.b)]
            law = {"stiffness": force.stiffness, "damping": force.damping, "referenceLength": force.length}
            self.mbs.AddObject(self.item.ObjectConnectorSpringDamper(markerNumbers=markers, **law))
        elif isinstance(force, Motor):  # from the ground
            joint = machine.joint(force.joint)
            marker = self._marker(joint.b, "Rigid")
            torque = [0.0, 0.0, force.torque]
            self.mbs.AddLoad(self.item.LoadTorqueVector(markerNumber=marker, loadVector=torque))

    def run(self, solver: str, linear: str, steps: int) -> Callable[[], None]:
        """A simulation with a number of steps, without output."""
        settings = self.exu.SimulationSettings()
        settings.timeIntegration.endTime = self.t1
        settings.timeIntegration.numberOfSteps = steps
        settings.timeIntegration.verboseMode = 0
        settings.timeIntegration.newton.useModifiedNewton = True
        settings.solution.file.write = False
        settings.linearSolver.solverType = getattr(self.exu.LinearSolverType, linear)
        settings.timeIntegration.adaptiveStep = False
        settings.parallel.numberOfThreads = 1
        kind = getattr(self.exu.DynamicSolverType, solver)

        def simulate() -> None:
            if not self.exu.SolveDynamic(self.mbs, settings, solverType=kind):
                raise RuntimeError("Exudyn gave up")

        return simulate

    def centres(self) -> np.ndarray:
        """Where the centres of mass are at the end."""
        position = self.exu.OutputVariableType.Position
        return np.array([self.mbs.GetNodeOutput(node, position) for node in self.nodes])
