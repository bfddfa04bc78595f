r"""The functions of a mechanical system as compiled loops over bodies, for machines too large to trace.

Each is a C function of (t, block, machine): the block holds its arguments and then its result, by columns, in the
layout of kernels, followed by workspace (:mod:`daedal.multibody.vectors`); `machine` is the address of a packed
machine. :func:`rooms` computes the sizes of the workspaces.

For Euler parameters, the derivatives of the conditions are those along motions with |p| = 1: J N and gamma. They
differ from the derivatives with respect to all coordinates only by multiples of the rows of |p|^2 = 1, so that motions
and reactions of joints are the same, and the multipliers of |p|^2 = 1 are zero.

The loads of all forces are computed by a compiled loop over shared machine code.
"""

from __future__ import annotations

from math import prod
from typing import Any

from daedal.kernels.compilation import caller, entry, part
from daedal.kernels.records import address_of, data_of, float_rows, floats, record_at
from daedal.kernels.signatures import f64, i32, i64
from daedal.kernels.vectors import copy
from daedal.multibody.closed_loops import (
    constrained_solution,
    fill_loop_bias,
    fill_loop_jacobian,
    floats_for_change,
    floats_for_solution,
    reduction_in,
    shortest_change,
)
from daedal.multibody.closure import fill_residuals
from daedal.multibody.dynamics import Composite, Sweep, composite_bodies, newton_euler
from daedal.multibody.kinematics import (
    ANY_ROTATION,
    fill_joint_velocities,
    fill_lifted_force,
    fill_lifted_mass,
    fill_lifted_rows,
    fill_norms,
    move,
    place,
)
from daedal.multibody.packed import (
    MACHINE,
    PLACEMENT,
    VELOCITIES,
    MachineSizes,
    chains_at,
    closures_at,
    floats_for,
    placement_at,
    rows,
    tree_at,
    velocities_at,
)
from daedal.multibody.vectors import blocks, matrix, open_room, taken, vector, zeros

SIGNATURE = i32(f64, i64, i64)
"""status = f(t, block, machine)."""
NOT_HERE = 2
"""Status of a function that is unavailable by recursion, so that callers must use matrices."""


def rooms(sizes: MachineSizes, longest: int) -> dict[str, int]:
    """Workspace of each function after its result, in floats; `longest` is the longest block of a force."""
    n, n_v, n_q, m, n_norms = sizes.n, sizes.n_v, sizes.n_q, sizes.m, sizes.n_norms
    placed, moving = floats_for(n, n_v, PLACEMENT), floats_for(n, n_v, VELOCITIES)
    loaded = placed + moving + n_q + n_v + sizes.n_states + 6 * n + n_v + sizes.n_states + longest
    jacobian = 12 * m + m * n_v
    needed = {
        "mass": placed + 13 * n + n_v * n_v + n_v * n_q,
        "force": loaded + 12 * n + 2 * n_v,
        "state_rate": loaded,
        "constraint": placed,
        "constraint_jacobian": placed + jacobian,
        "constraint_t": 0,
        "acceleration_bias": placed + moving + n_v + 6 * n + 12 * m,
        "accelerations": loaded + floats_for_solution(sizes) + n_v + n_norms,
        "position_correction": placed + n_norms + m + n_v + floats_for_change(sizes),
        "velocity_correction": placed + jacobian + 2 * n_norms + m + n_v + floats_for_change(sizes),
        "stage": 0,
    }
    return {name: 1 + count for name, count in needed.items()}


@part
def _placement(tree, q, n_v, room):
    """Compute the positions of the bodies in newly reserved workspace."""
    n = tree.parent.size
    placed = placement_at(taken(room, floats_for(n, n_v, PLACEMENT)), n, n_v)
    place(tree, q, placed)
    return placed


@entry(SIGNATURE)
def mass(t, block, machine):
    """block = [q | M]."""
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    n, n_q, n_v = record.n, record.n_q, record.n_v
    q, room = floats(block, n_q), open_room(block + 8 * (n_q + n_q * n_q))
    placed = _placement(tree, q, n_v, room)
    inner, lifted = matrix(room, n_v, n_v), matrix(room, n_v, n_q)
    composite_bodies(tree, placed, Composite(vector(room, n), matrix(room, n, 3), blocks(room, n, 3, 3)), inner)
    parameter_mass = record.parameter_mass
    fill_lifted_mass(tree, q, inner, parameter_mass, lifted, float_rows(block + 8 * n_q, n_q, n_q))
    return 0


@part
def _loaded(machine, t, block, room):
    """Compute the motion at [q | v | r] and its loads; returns a status, the block of the motion, and the loads."""
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    n, n_q, n_v, n_states = record.n, record.n_q, record.n_v, record.n_states
    q, behind = floats(block, n_q), floats_for(n, n_v, PLACEMENT) + floats_for(n, n_v, VELOCITIES)
    motion, loads = vector(room, behind + n_q + n_v + n_states), zeros(room, 6 * n + n_v + n_states)
    u = floats(data_of(motion) + 8 * (behind + n_q), n_v)
    copy(motion[behind:], q)
    copy(motion[behind + n_q + n_v :], floats(block + 16 * n_q, n_states))
    fill_joint_velocities(tree, q, floats(block + 8 * n_q, n_q), u)
    placed, moving = motion_at(data_of(motion), record)
    place(tree, q, placed)
    move(tree, placed, u, moving)
    status = 0
    if address_of(record.forces) != 0:
        status = add_loads(record.forces, t, motion, loads, room)
    return status, motion, loads


@entry(SIGNATURE)
def force(t, block, machine):
    """block = [q | v | r | f]."""
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    n, n_q, n_v = record.n, record.n_q, record.n_v
    behind = block + 8 * (2 * n_q + record.n_states)
    room = open_room(behind + 8 * n_q)
    status, motion, loads = _loaded(machine, t, block, room)
    if status != 0:
        return status
    placed, moving = motion_at(data_of(motion), record)
    on_bodies, tau, still = data_of(loads), vector(room, n_v), zeros(room, n_v)
    sweep = Sweep(matrix(room, n, 3), matrix(room, n, 3), matrix(room, n, 3), matrix(room, n, 3))
    newton_euler(tree, placed, moving, still, rows(on_bodies, n), rows(on_bodies + 24 * n, n), sweep, tau)
    for k in range(n_v):
        tau[k] = loads[6 * n + k] - tau[k]
    q, v = floats(block, n_q), floats(block + 8 * n_q, n_q)
    fill_lifted_force(tree, q, v, tau, record.parameter_mass, floats(behind, n_q))
    return 0


@entry(SIGNATURE)
def state_rate(t, block, machine):
    """block = [q | v | r | rates of r]."""
    record = record_at(machine, MACHINE)
    n_states = record.n_states
    behind = block + 8 * (2 * record.n_q + n_states)
    status, _, loads = _loaded(machine, t, block, open_room(behind + 8 * n_states))
    copy(floats(behind, n_states), loads[loads.size - n_states :])
    return status


@entry(SIGNATURE)
def constraint(t, block, machine):
    """block = [q | g]: the norms of Euler parameters, then the conditions."""
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    q, behind = floats(block, record.n_q), block + 8 * record.n_q
    placed = _placement(tree, q, record.n_v, open_room(behind + 8 * (record.n_norms + record.m)))
    fill_norms(tree, q, floats(behind, record.n_norms))
    values = floats(behind + 8 * record.n_norms, record.m)
    fill_residuals(closures_at(machine), placed.r, placed.rotation, values)
    return 0


@entry(SIGNATURE)
def constraint_jacobian(t, block, machine):
    """block = [q | G]."""
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    n, n_c = record.n_q, record.n_norms + record.m
    q, room = floats(block, n), open_room(block + 8 * (n + n * n_c))
    placed = _placement(tree, q, record.n_v, room)
    _jacobian(machine, q, placed, float_rows(block + 8 * n, n, n_c).T, room)
    return 0


@part
def _jacobian(machine, q, placed, result, room):
    record, tree = record_at(machine, MACHINE), tree_at(machine)
    i = 0
    for j in range(record.n):
        if tree.turn[j] == ANY_ROTATION:
            p = tree.first_q[j + 1] - 4
            result[i, :] = 0.0
            for k in range(4):
                result[i, p + k] = 2.0 * q[p + k]
            i += 1
    m = record.m
    gradients, inner = blocks(room, m, 2, 6), matrix(room, m, record.n_v)
    fill_loop_jacobian(tree, placed, closures_at(machine), gradients, inner)
    fill_lifted_rows(tree, q, inner, result[i:])


@entry(SIGNATURE)
def constraint_t(t, block, machine):
    """block = [q | zeros]."""
    record = record_at(machine, MACHINE)
    floats(block + 8 * record.n_q, record.n_norms + record.m)[:] = 0.0
    return 0


@entry(SIGNATURE)
def acceleration_bias(t, block, machine):
    """block = [q | v | gamma]."""
    record, tree, closures = record_at(machine, MACHINE), tree_at(machine), closures_at(machine)
    n, n_q, n_v, m = record.n, record.n_q, record.n_v, record.m
    q, v, behind = floats(block, n_q), floats(block + 8 * n_q, n_q), block + 16 * n_q
    room = open_room(behind + 8 * (record.n_norms + m))
    squares, i = floats(behind, record.n_norms), 0
    for j in range(n):
        if tree.turn[j] == ANY_ROTATION:
            squares[i] = -2.0 * _square(v, tree.first_q[j + 1] - 4)
            i += 1
    placed, u = _placement(tree, q, n_v, room), vector(room, n_v)
    moving = velocities_at(taken(room, floats_for(n, n_v, VELOCITIES)), n)
    fill_joint_velocities(tree, q, v, u)
    move(tree, placed, u, moving)
    linear, angular, gradients = matrix(room, n, 3), matrix(room, n, 3), blocks(room, m, 2, 6)
    values = floats(behind + 8 * record.n_norms, m)
    fill_loop_bias(tree, placed, moving, closures, linear, angular, gradients, values)
    return 0


@part
def _square(x, p):
    return x[p] * x[p] + x[p + 1] * x[p + 1] + x[p + 2] * x[p + 2] + x[p + 3] * x[p + 3]


@part
def _lift(tree, q, change, radial, result):
    r"""Write the coordinate changes for joint velocities `change`, :math:`N^T / (4 |p|^2)` for Euler parameters, plus
    the component `radial` along p, to `result`."""
    i = 0
    for j in range(tree.parent.size):
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


@entry(SIGNATURE)
def accelerations(t, block, machine):
    """block = [q | v | r | a | lam]."""
    record, tree, chains = record_at(machine, MACHINE), tree_at(machine), chains_at(machine)
    n, n_q, n_v, n_norms, m = record.n, record.n_q, record.n_v, record.n_norms, record.m
    behind = block + 8 * (2 * n_q + record.n_states)
    room = open_room(behind + 8 * (n_q + n_norms + m))
    status, motion, loads = _loaded(machine, t, block, room)
    if status != 0:
        return status
    placed, moving = motion_at(data_of(motion), record)
    on_bodies, found = data_of(loads), vector(room, n_v)
    force, torque, tau = rows(on_bodies, n), rows(on_bodies + 24 * n, n), floats(on_bodies + 48 * n, n_v)
    left, reduced = reduction_in(room, tree, closures_at(machine), chains, placed, moving, tau, force, torque)
    multipliers = floats(behind + 8 * (n_q + n_norms), m)
    if constrained_solution(tree, chains, placed, moving, left, reduced, found, multipliers, room) > 0:
        return NOT_HERE
    q, v = floats(block, n_q), floats(block + 8 * n_q, n_q)
    radial, i = vector(room, n_norms), 0
    for j in range(n):
        if tree.turn[j] == ANY_ROTATION:
            p = tree.first_q[j + 1] - 4
            radial[i] = -_square(v, p) / _square(q, p)
            i += 1
    _lift(tree, q, found, radial, floats(behind, n_q))
    floats(behind + 8 * n_q, n_norms)[:] = 0.0
    return 0


@entry(SIGNATURE)
def position_correction(t, block, machine):
    """block = [q | dq]: the smallest linearised correction to g = 0 in the norm of M."""
    record, tree, closures = record_at(machine, MACHINE), tree_at(machine), closures_at(machine)
    n, n_v = record.n_q, record.n_v
    q, room = floats(block, n), open_room(block + 16 * n)
    placed, radial = _placement(tree, q, n_v, room), vector(room, record.n_norms)
    gap, change = vector(room, record.m), vector(room, n_v)
    fill_residuals(closures, placed.r, placed.rotation, gap)
    if shortest_change(tree, closures, chains_at(machine), placed, gap, change, room) > 0:
        return NOT_HERE
    fill_norms(tree, q, radial)
    for i in range(radial.size):
        radial[i] *= -0.5 / (1.0 + radial[i])
    _lift(tree, q, change, radial, floats(block + 8 * n, n))
    return 0


@entry(SIGNATURE)
def velocity_correction(t, block, machine):
    """block = [q | v | dv | G, row by row]: the smallest correction to G v = 0 in the norm of M."""
    record, tree, closures = record_at(machine, MACHINE), tree_at(machine), closures_at(machine)
    n, n_v, n_norms, m = record.n_q, record.n_v, record.n_norms, record.m
    n_c = n_norms + m
    q, v, jacobian = floats(block, n), floats(block + 8 * n, n), float_rows(block + 24 * n, n_c, n)
    room = open_room(block + 24 * n + 8 * n_c * n)
    placed, gap = _placement(tree, q, n_v, room), zeros(room, n_c)
    _jacobian(machine, q, placed, jacobian, room)
    for i in range(n_c):
        for k in range(n):
            gap[i] += jacobian[i, k] * v[k]
    change, radial = vector(room, n_v), vector(room, n_norms)
    if shortest_change(tree, closures, chains_at(machine), placed, gap[n_norms:], change, room) > 0:
        return NOT_HERE
    fill_norms(tree, q, radial)
    for i in range(n_norms):
        radial[i] = -0.5 * gap[i] / (1.0 + radial[i])
    _lift(tree, q, change, radial, floats(block + 16 * n, n))
    return 0


@entry(SIGNATURE)
def stage(t, block, machine):
    """Unavailable: half-explicit stages combine M and K of different points, to which recursion does not apply."""
    return NOT_HERE


_call = caller(i32(f64, i64))


class Places:
    """Places of a force's inputs in a block [placement | velocities | q | u | states].

    Attributes
    ----------
    arrays : dict
        For each array its start, number of rows, and shape of a row.
    n_loads : int
        Number of floats of the loads [forces | torques | forces of joints | rates of states].
    """

    def __init__(self, layout: Any, n_states: int):
        n, n_q, n_v = layout.tree.parent.size, layout.n_q, layout.n_v
        moving = PLACEMENT[0] * n + PLACEMENT[1] * n_v
        q = moving + VELOCITIES[0] * n
        self.n_loads = 6 * n + n_v + n_states
        self.arrays: dict[str, tuple[int, int, tuple[int, ...]]] = {
            "r": (0, n, (3,)),
            "rotation": (3 * n, n, (3, 3)),
            "linear": (moving, n, (3,)),
            "angular": (moving + 3 * n, n, (3,)),
            "q": (q, n_q, ()),
            "u": (q + n_q, n_v, ()),
            "states": (q + n_q + n_v, n_states, ()),
        }

    @property
    def rows(self) -> list[tuple[str, int, int, int]]:
        """Kind ("body", "q" or "v"), start, number and length of the rows of each array, without the states."""
        kinds = {"r": "body", "rotation": "body", "linear": "body", "angular": "body", "q": "q", "u": "v"}
        return [(kind, *self.arrays[name][:2], prod(self.arrays[name][2])) for name, kind in kinds.items()]


@part
def motion_at(address, record):
    """Placement and velocities in a block with the layout of :class:`Places`."""
    n, n_v = record.n, record.n_v
    return placement_at(address, n, n_v), velocities_at(address + 8 * floats_for(n, n_v, PLACEMENT), n)


@part
def add_loads(forces, t, motion, loads, room):
    """Add the loads of all forces in a motion laid out as in :class:`Places`; 0, or the status of a failure."""
    sizes, places, constants, targets = forces.sizes, forces.arguments, forces.constants, forces.targets
    argument, constant, target = 0, 0, 0
    block = vector(room, forces.longest)
    at = data_of(block)
    for group in range(forces.groups):
        code, members, n_x, n_y, n_c = (
            sizes[group, 0],
            sizes[group, 1],
            sizes[group, 2],
            sizes[group, 3],
            sizes[group, 4],
        )
        block[: sizes[group, 5]] = 0.0  # generated code does not write results that vanish identically
        for _ in range(members):
            for k in range(n_x):
                block[k] = motion[places[argument + k]]
            for k in range(n_c):
                block[n_x + n_y + k] = constants[constant + k]
            status = _call(code, t, at)
            if status != 0:
                return status
            for k in range(n_y):
                loads[targets[target + k]] += block[n_x + k]
            argument, constant, target = argument + n_x, constant + n_c, target + n_y
    return 0
