"""How fast the velocities of bodies change."""

import numpy as np

from daedal.kernels.compilation import kernel
from daedal.multibody.kinematics import cross


@kernel
def accelerations(tree, placed, moving, rates):
    r"""Accelerations (2.25) of the centres of mass and angular accelerations, for accelerations of the joints."""
    n = tree.father.size
    linear, angular = np.zeros((n, 3)), np.zeros((n, 3))
    for j in range(n):
        i = tree.father[j]
        linear[j] = moving.linear_bias[j]
        angular[j] = moving.angular_bias[j]
        if i >= 0:
            linear[j] += linear[i] + cross(angular[i], placed.arm[j])
            angular[j] += angular[i]
        for k in range(tree.first_v[j], tree.first_v[j + 1]):
            linear[j] += placed.linear[k] * rates[k]
            angular[j] += placed.angular[k] * rates[k]
    return linear, angular
