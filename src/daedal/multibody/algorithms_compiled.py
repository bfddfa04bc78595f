"""Compiled entry points of the recursive algorithms.

Their arguments are the address of a packed machine, vectors, results and workspace; `loads` is the address of the
forces and torques on the bodies. The status is -1 for vectors of wrong length.
"""

from daedal.kernels.compilation import entry, part
from daedal.kernels.records import data_of, floats, record_at
from daedal.kernels.signatures import i64
from daedal.multibody.closed_loops import constrained_solution, floats_for_solution, reduction_in
from daedal.multibody.dynamics import Composite, Sweep, accelerate, composite_bodies, eliminate, newton_euler
from daedal.multibody.kinematics import move, place
from daedal.multibody.packed import (
    ELIMINATION,
    MACHINE,
    PLACEMENT,
    VELOCITIES,
    MachineSizes,
    chains_at,
    closures_at,
    elimination_at,
    floats_for,
    matrices,
    placement_at,
    rows,
    tree_at,
    velocities_at,
)
from daedal.multibody.vectors import ROWS, VECTOR, open_room, taken

REFUSED = -1


def room_for_accelerations(sizes: MachineSizes) -> int:
    """Workspace of :func:`accelerations`, in floats; ``Prepared.room`` is that of the other entry points."""
    n, n_v = sizes.n, sizes.n_v
    return 1 + floats_for(n, n_v, PLACEMENT) + floats_for(n, n_v, VELOCITIES) + floats_for_solution(sizes)


@part
def _fit(record, q, u, third):
    return q.shape == (record.n_q,) and u.shape == (record.n_v,) and third.shape == (record.n_v,)


@entry(i64(i64, VECTOR, VECTOR, VECTOR, i64, VECTOR, VECTOR))
def rnea(machine, q, u, a, loads, result, room):
    record = record_at(machine, MACHINE)
    if not _fit(record, q, u, a):
        return REFUSED
    n, n_v, at = record.n, record.n_v, data_of(room)
    tree, placed = tree_at(machine), placement_at(at, n, n_v)
    at += 8 * floats_for(n, n_v, PLACEMENT)
    moving = velocities_at(at, n)
    at += 8 * floats_for(n, n_v, VELOCITIES)
    sweep = Sweep(rows(at, n), rows(at + 24 * n, n), rows(at + 48 * n, n), rows(at + 72 * n, n))
    place(tree, q, placed)
    move(tree, placed, u, moving)
    newton_euler(tree, placed, moving, a, rows(loads, n), rows(loads + 24 * n, n), sweep, result)
    return 0


@entry(i64(i64, VECTOR, ROWS, VECTOR))
def crba(machine, q, result, room):
    record = record_at(machine, MACHINE)
    if q.shape != (record.n_q,):
        return REFUSED
    n, n_v, at = record.n, record.n_v, data_of(room)
    tree, placed = tree_at(machine), placement_at(at, n, n_v)
    at += 8 * floats_for(n, n_v, PLACEMENT)
    place(tree, q, placed)
    composite_bodies(tree, placed, Composite(floats(at, n), rows(at + 8 * n, n), matrices(at + 32 * n, n)), result)
    return 0


@entry(i64(i64, VECTOR, VECTOR, VECTOR, i64, VECTOR, VECTOR))
def aba(machine, q, u, tau, loads, result, room):
    record = record_at(machine, MACHINE)
    if not _fit(record, q, u, tau):
        return REFUSED
    n, n_v, at = record.n, record.n_v, data_of(room)
    tree, placed = tree_at(machine), placement_at(at, n, n_v)
    at += 8 * floats_for(n, n_v, PLACEMENT)
    moving = velocities_at(at, n)
    at += 8 * floats_for(n, n_v, VELOCITIES)
    left = elimination_at(at, n, n_v)
    at += 8 * floats_for(n, n_v, ELIMINATION)
    place(tree, q, placed)
    move(tree, placed, u, moving)
    eliminate(tree, placed, moving, tau, rows(loads, n), rows(loads + 24 * n, n), left)
    accelerate(tree, placed, moving, left, (rows(at, n), rows(at + 24 * n, n)), result)
    return 0


@entry(i64(i64, VECTOR, VECTOR, VECTOR, i64, VECTOR, VECTOR, VECTOR))
def accelerations(machine, q, u, tau, loads, result, multipliers, room):
    """Accelerations and multipliers of a machine with loops; returns the number of dependent conditions."""
    record = record_at(machine, MACHINE)
    if not _fit(record, q, u, tau):
        return REFUSED
    n, n_v, at = record.n, record.n_v, open_room(data_of(room))
    tree, chains, force, torque = tree_at(machine), chains_at(machine), rows(loads, n), rows(loads + 24 * n, n)
    placed = placement_at(taken(at, floats_for(n, n_v, PLACEMENT)), n, n_v)
    moving = velocities_at(taken(at, floats_for(n, n_v, VELOCITIES)), n)
    place(tree, q, placed)
    move(tree, placed, u, moving)
    left, reduced = reduction_in(at, tree, closures_at(machine), chains, placed, moving, tau, force, torque)
    return constrained_solution(tree, chains, placed, moving, left, reduced, result, multipliers, at)
