r"""The functions of a mechanical system as compiled loops over bodies, for machines that are too large to be traced.

Each is a C function of (t, block, machine): the block holds its arguments and then its result, column by column, as
kernels of Daedal lay out functions, and `machine` is the address of a packed machine.

Rows of Euler parameters: the derivatives of the conditions are those along motions with |p| = 1, J N and gamma. They
differ from the derivatives with respect to all coordinates by multiples of the rows of |p|^2 = 1 only, so that motions
and reactions of joints are the same, and the multipliers of |p|^2 = 1 are zero.
"""

import numpy as np
from numba import types

from daedal.kernels.compilation import kernel, part, pointer
from daedal.kernels.records import float_rows, floats, record_at
from daedal.multibody.closure import residuals
from daedal.multibody.coordinates import joint_velocities, lifted_force, lifted_mass, lifted_rows, norms
from daedal.multibody.cut_joints import loop_bias, loop_jacobian
from daedal.multibody.dynamics import crba, rnea
from daedal.multibody.kinematics import move, place, placement, velocities
from daedal.multibody.loads import add_loads, motion_in, room_for_motion
from daedal.multibody.packed import MACHINE, chains_at, closures_at, keep, tree_at
from daedal.multibody.recursive import constrained_solution, reduction, shortest_change
from daedal.multibody.tree import ANY_ROTATION

SIGNATURE = types.int32(types.float64, types.int64, types.int64)
"""status = f(t, block, machine)."""
NOT_HERE = 2
"""The status of a function that leaves the work to matrices."""


@pointer(SIGNATURE)
def mass(t, block, machine):
    """block = [q | M]."""
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    n = record.n_q
    q = floats(block, n)
    matrix = lifted_mass(tree, q, crba(tree, placement(tree, q)), floats(record.parameter_mass, record.n))
    float_rows(block + 8 * n, n, n)[:] = matrix
    return 0


@kernel
def _loaded(machine, t, block):
    """The motion at [q | v | r] and what the forces do in it: a status, the block of the motion, and the loads."""
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    n, n_q, n_v, n_states = record.n, record.n_q, record.n_v, record.n_states
    q, u = floats(block, n_q), joint_velocities(tree, floats(block, n_q), floats(block + 8 * n_q, n_q))
    motion, loads = room_for_motion(record), np.zeros(6 * n + n_v + n_states)
    placed, moving = motion_in(record, motion)
    place(tree, q, placed)
    move(tree, placed, u, moving)
    if record.forces == 0:
        return 0, motion, loads
    behind = motion.size - n_q - n_v - n_states
    motion[behind : behind + n_q] = q
    motion[behind + n_q : behind + n_q + n_v] = u
    motion[behind + n_q + n_v :] = floats(block + 16 * n_q, n_states)
    return add_loads(record.forces, t, motion, loads), motion, loads


@pointer(SIGNATURE)
def force(t, block, machine):
    """block = [q | v | r | f]."""
    status, motion, loads = _loaded(machine, t, block)
    if status != 0:
        return status
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    n, n_q, n_v = record.n, record.n_q, record.n_v
    placed, moving = motion_in(record, motion)
    on_bodies = loads[: 6 * n].reshape((2, n, 3))
    tau = loads[6 * n : 6 * n + n_v] - rnea(tree, placed, moving, np.zeros(n_v), on_bodies[0], on_bodies[1])
    q, v, behind = floats(block, n_q), floats(block + 8 * n_q, n_q), block + 8 * (2 * n_q + record.n_states)
    floats(behind, n_q)[:] = lifted_force(tree, q, v, tau, floats(record.parameter_mass, n))
    keep(motion)
    return 0


@pointer(SIGNATURE)
def state_rate(t, block, machine):
    """block = [q | v | r | rates of r]."""
    status, _, loads = _loaded(machine, t, block)
    record = record_at(machine, MACHINE)
    n_states = record.n_states
    floats(block + 8 * (2 * record.n_q + n_states), n_states)[:] = loads[loads.size - n_states :]
    return status


@pointer(SIGNATURE)
def constraint(t, block, machine):
    """block = [q | g]: the norms of Euler parameters, then the conditions."""
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    q = floats(block, record.n_q)
    placed = placement(tree, q)
    result = floats(block + 8 * record.n_q, record.n_norms + record.m)
    result[: record.n_norms] = norms(tree, q)
    result[record.n_norms :] = residuals(closures_at(machine), placed.r, placed.rotation)
    return 0


@pointer(SIGNATURE)
def constraint_jacobian(t, block, machine):
    """block = [q | G]."""
    record = record_at(machine, MACHINE)
    n, n_c = record.n_q, record.n_norms + record.m
    matrix = _jacobian(machine, floats(block, n))
    float_rows(block + 8 * n, n, n_c)[:] = matrix.T
    return 0


@kernel
def _jacobian(machine, q):
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    matrix = np.zeros((record.n_norms + record.m, record.n_q))
    i = 0
    for j in range(record.n):
        if tree.turn[j] == ANY_ROTATION:
            p = tree.first_q[j + 1] - 4
            for k in range(4):
                matrix[i, p + k] = 2.0 * q[p + k]
            i += 1
    rows = loop_jacobian(tree, placement(tree, q), closures_at(machine))
    matrix[i:] = lifted_rows(tree, q, rows)
    return matrix


@pointer(SIGNATURE)
def constraint_t(t, block, machine):
    """block = [q | zeros]."""
    record = record_at(machine, MACHINE)
    floats(block + 8 * record.n_q, record.n_norms + record.m)[:] = 0.0
    return 0


@pointer(SIGNATURE)
def acceleration_bias(t, block, machine):
    """block = [q | v | gamma]."""
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    n = record.n_q
    q, v = floats(block, n), floats(block + 8 * n, n)
    result = floats(block + 16 * n, record.n_norms + record.m)
    i = 0
    for j in range(record.n):
        if tree.turn[j] == ANY_ROTATION:
            result[i] = -2.0 * _square(v, tree.first_q[j + 1] - 4)
            i += 1
    placed = placement(tree, q)
    moving = velocities(tree, placed, joint_velocities(tree, q, v))
    result[i:] = loop_bias(tree, placed, moving, closures_at(machine))
    return 0


@part
def _square(x, p):
    return x[p] * x[p] + x[p + 1] * x[p + 1] + x[p + 2] * x[p + 2] + x[p + 3] * x[p + 3]


@part
def _lift(tree, q, change, radial, result):
    r"""Coordinates from velocities of joints, :math:`N^T / (4 |p|^2)` of them, and the share of p that is given."""
    i = 0
    for j in range(tree.father.size):
        at, first, end = tree.first_q[j], tree.first_v[j], tree.first_v[j + 1]
        for k in range(first, end):
            if tree.turn[j] != ANY_ROTATION or k < end - 3:
                result[at + k - first] = change[k]
        if tree.turn[j] == ANY_ROTATION:
            p = at + end - 3 - first
            a, b, c, d = q[p], q[p + 1], q[p + 2], q[p + 3]
            x, y, z = change[end - 3], change[end - 2], change[end - 1]
            half = 0.5 / _square(q, p)
            result[p] = radial[i] * a - half * (b * x + c * y + d * z)
            result[p + 1] = radial[i] * b + half * (a * x - d * y + c * z)
            result[p + 2] = radial[i] * c + half * (d * x + a * y - b * z)
            result[p + 3] = radial[i] * d + half * (b * y - c * x + a * z)
            i += 1


@pointer(SIGNATURE)
def accelerations(t, block, machine):
    """block = [q | v | r | a | lam]."""
    status, motion, loads = _loaded(machine, t, block)
    if status != 0:
        return status
    record, tree, chains = record_at(machine, MACHINE), tree_at(machine), chains_at(machine)
    n, n_bodies, n_norms = record.n_q, record.n, record.n_norms
    placed, moving = motion_in(record, motion)
    on_bodies, tau = loads[: 6 * n_bodies].reshape((2, n_bodies, 3)), loads[6 * n_bodies : 6 * n_bodies + record.n_v]
    left, reduced = reduction(tree, closures_at(machine), chains, placed, moving, tau, on_bodies[0], on_bodies[1])
    found, multipliers, redundant = constrained_solution(tree, chains, placed, moving, left, reduced)
    keep(motion)
    if redundant > 0:
        return NOT_HERE
    q, v, behind = floats(block, n), floats(block + 8 * n, n), block + 8 * (2 * n + record.n_states)
    radial, i = np.zeros(n_norms), 0
    for j in range(n_bodies):
        if tree.turn[j] == ANY_ROTATION:
            p = tree.first_q[j + 1] - 4
            radial[i] = -_square(v, p) / _square(q, p)
            i += 1
    _lift(tree, q, found, radial, floats(behind, n))
    result = floats(behind + 8 * n, n_norms + record.m)
    result[:n_norms] = 0.0
    result[n_norms:] = multipliers
    return 0


@pointer(SIGNATURE)
def position_correction(t, block, machine):
    """block = [q | dq]: the shortest way to g = 0, linearised, in the norm of M."""
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    n = record.n_q
    q, closures = floats(block, n), closures_at(machine)
    placed, radial = placement(tree, q), norms(tree, q)
    gap = residuals(closures, placed.r, placed.rotation)
    change, redundant = shortest_change(tree, closures, chains_at(machine), placed, gap)
    if redundant > 0:
        return NOT_HERE
    for i in range(radial.size):
        radial[i] *= -0.5 / (1.0 + radial[i])
    _lift(tree, q, change, radial, floats(block + 8 * n, n))
    return 0


@pointer(SIGNATURE)
def velocity_correction(t, block, machine):
    """block = [q | v | dv | G, row by row]: the shortest way to G v = 0 in the norm of M."""
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    n, n_c = record.n_q, record.n_norms + record.m
    q, v, closures = floats(block, n), floats(block + 8 * n, n), closures_at(machine)
    matrix = _jacobian(machine, q)
    gap = np.zeros(n_c)
    for i in range(n_c):
        for k in range(n):
            gap[i] += matrix[i, k] * v[k]
    placed, radial = placement(tree, q), norms(tree, q)
    change, redundant = shortest_change(tree, closures, chains_at(machine), placed, gap[record.n_norms :])
    if redundant > 0:
        return NOT_HERE
    for i in range(radial.size):
        radial[i] = -0.5 * gap[i] / (1.0 + radial[i])
    _lift(tree, q, change, radial, floats(block + 16 * n, n))
    float_rows(block + 24 * n, n_c, n)[:] = matrix
    return 0


@pointer(SIGNATURE)
def stage(t, block, machine):
    """Half-explicit stages have constraints at another point: their matrix is not that of a machine."""
    return NOT_HERE
