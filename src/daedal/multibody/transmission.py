"""Accelerations of bodies and what joints transmit, by the recursion of Newton and Euler."""

import numpy as np

from daedal.kernels.compilation import kernel
from daedal.multibody.dynamics import newton_euler


@kernel
def transmission(tree, placed, moving, accelerations, force, torque):
    """What ``rnea`` finds on its way, for accelerations of joints and loads on the centres of mass.

    Accelerations of the centres of mass and angular accelerations; forces and torques about the centres of mass that
    the joint of each body exerts on it; and their parts along the velocities of the joints, what ``rnea`` returns.
    """
    n = tree.father.size
    result = np.zeros(tree.first_v[-1])
    linear, angular, pull, twist = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3))
    newton_euler(tree, placed, moving, accelerations, force, torque, (linear, angular, pull, twist), result)
    return linear, angular, pull, twist, result
