"""Accelerations of bodies and what joints transmit, by the recursion of Newton and Euler."""

import numpy as np

from daedal.kernels.compilation import kernel
from daedal.multibody.dynamics import newton_euler


@kernel
def transmission(tree, placed, moving, accelerations, force, torque):
    """What ``rnea`` finds on its way, (n, 3) each, for accelerations of joints and loads on the centres of mass.

    Accelerations of the centres of mass and angular accelerations; forces and torques about the centres of mass that
    the joint of each body exerts on it.
    """
    n = tree.father.size
    work = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3))
    newton_euler(tree, placed, moving, accelerations, force, torque, work, np.zeros(tree.first_v[-1]))
    return work
