"""What forces ask and what they answer: the motion of frames, and loads on bodies."""

import numpy as np

from daedal.multibody.kinematics import cross


class Motion:
    """Where frames are and how they move, in the axes of the ground; for numbers and while functions are traced."""

    def __init__(self, layout, q, u, placed, moving):
        self._layout, self._q, self._u, self._placed, self._moving = layout, q, u, placed, moving

    def _arm(self, frame):
        place = frame.position - frame.body.center
        body = self._layout.index[frame.body.name]
        return body, place if body < 0 else self._placed.rotation[body] @ place

    def position(self, frame):
        """Where the frame is."""
        body, arm = self._arm(frame)
        return arm + 0.0 if body < 0 else self._placed.r[body] + arm

    def velocity(self, frame):
        """How fast its origin moves."""
        body, arm = self._arm(frame)
        return np.zeros(3) if body < 0 else self._moving.linear[body] + cross(self._moving.angular[body], arm)

    def rotation(self, frame):
        """The matrix from the axes of the frame to those of the ground."""
        body = self._layout.index[frame.body.name]
        return frame.rotation if body < 0 else self._placed.rotation[body] @ frame.rotation

    def angular_velocity(self, frame):
        """How fast it turns."""
        body = self._layout.index[frame.body.name]
        return np.zeros(3) if body < 0 else self._moving.angular[body]


class Loads:
    """Forces and torques on the centres of mass, in the axes of the ground, and on the joints of the tree."""

    def __init__(self, layout, placed):
        n = layout.tree.father.size
        self._layout, self._placed = layout, placed
        self.forces, self.torques = np.zeros((n, 3)), np.zeros((n, 3))
        self.joint_forces = np.zeros(layout.n_v)

    def force(self, frame, vector):
        """A force on the origin of a frame."""
        body = self._layout.index[frame.body.name]
        if body < 0:
            return
        arm = self._placed.rotation[body] @ (frame.position - frame.body.center)
        self.forces[body] += vector
        self.torques[body] += cross(arm, vector)

    def torque(self, frame, vector):
        """A torque on the body of a frame."""
        body = self._layout.index[frame.body.name]
        if body >= 0:
            self.torques[body] += vector
