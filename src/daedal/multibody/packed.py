"""A machine as a single record with workspace, so that calls from Python have few arguments.

Passing the three dozen arrays of a machine takes longer than a computation with a tree of seven bodies. Kernels
therefore receive the address of a record with the addresses of the arrays, and take their workspace from one block of
memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daedal.kernels.compilation import part
from daedal.kernels.records import (
    INTEGER,
    Record,
    Struct,
    at,
    float_blocks,
    float_rows,
    floats,
    record_at,
)
from daedal.kernels.signatures import f64, i64
from daedal.multibody.closure import Chains, Closures
from daedal.multibody.dynamics import Elimination
from daedal.multibody.kinematics import (
    ANY_ROTATION,
    BodyTree,
    Placement,
    Velocities,
    in_axes_of_joints,
    parameter_masses,
)


class MachineSizes(NamedTuple):
    """Sizes of the arrays of a machine."""

    n: int  # bodies
    n_q: int
    n_v: int  # velocities of joints
    m: int  # conditions of joints that close loops
    places: int  # pairs of such a condition and a body of its chains
    products: int  # pairs of a place and a velocity of the joint of its body
    sets: int  # sets of coupled conditions
    entries: int  # entries of the matrices of these sets
    n_norms: int  # joints with Euler parameters
    n_states: int  # states of forces


def sizes_of(tree: BodyTree, closures: Closures, chains: Chains, n_states: int = 0) -> MachineSizes:
    """Sizes of a machine whose forces have `n_states` states."""
    return MachineSizes(
        n=tree.parent.size,
        n_q=int(tree.first_q[-1]),
        n_v=int(tree.first_v[-1]),
        m=closures.kind.size,
        places=chains.condition.size,
        products=int(chains.first_product[-1]),
        sets=chains.first_entry.size - 1,
        entries=int(chains.first_entry[-1]),
        n_norms=int(np.sum(tree.turn == ANY_ROTATION)),
        n_states=n_states,
    )


_ARRAYS = {
    "Tree_parent": i64["n"],
    "Tree_turn": i64["n"],
    "Tree_first_q": i64["n + 1"],
    "Tree_first_v": i64["n + 1"],
    "Tree_place": f64["n", 3],
    "Tree_axes": f64["n", 3, 3],
    "Tree_own_place": f64["n", 3],
    "Tree_own_axes": f64["n", 3, 3],
    "Tree_slide": f64["n_v", 3],
    "Tree_mass": f64["n"],
    "Tree_inertia": f64["n", 3, 3],
    "Tree_gravity": f64[3],
    "Closures_kind": i64["m"],
    "Closures_k": i64["m"],
    "Closures_l": i64["m"],
    "Closures_body": i64["m", 2],
    "Closures_place": f64["m", 2, 3],
    "Closures_axes": f64["m", 6, 3],
    "Chains_first_place": i64["n + 1"],
    "Chains_condition": i64["places"],
    "Chains_up": i64["places"],
    "Chains_first_product": i64["n + 1"],
    "Chains_side": i64["m", 2],
    "Chains_group": i64["m"],
    "Chains_within": i64["m"],
    "Chains_member": i64["m"],
    "Chains_first_member": i64["sets + 1"],
    "Chains_first_entry": i64["sets + 1"],
}
FORCES = Struct(
    "FORCES",
    [
        ("groups", INTEGER),
        ("n_loads", INTEGER),
        ("longest", INTEGER),  # length of the longest block, in floats
        # for each group: address of its code, members, arguments, results, constants, block
        ("sizes", i64["groups", 6]),
        ("n_arguments", INTEGER),
        ("n_constants", INTEGER),
        ("n_targets", INTEGER),
        ("arguments", i64["n_arguments"]),
        ("constants", f64["n_constants"]),
        ("targets", i64["n_targets"]),
    ],
)
"""Groups of forces with the same code, in sequence; for each force, its arguments, constants and targets."""

MACHINE = Struct(
    "MACHINE",
    [
        *((name, INTEGER) for name in MachineSizes._fields),
        ("parameter_mass", f64["n"]),
        ("forces", at(FORCES)),  # 0 without forces
        *_ARRAYS.items(),
    ],
)
"""Sizes, and the addresses of the arrays of a tree, of its loop-closing conditions, and of their chains."""

PLACEMENT, VELOCITIES, ELIMINATION = (18, 9), (12, 0), (33, 8)
"""Numbers of floats for each body and for each velocity of a joint."""


class LoadBlock:
    """Forces and torques on n bodies, stored at an address."""

    def __init__(self, n: int):
        self.values = np.zeros((2, n, 3))
        self.address: int = self.values.ctypes.data


def packed(tree: BodyTree, closures: Closures, chains: Chains, forces: int = 0, n_states: int = 0) -> Record:
    """The record of a machine, which keeps the arrays alive.

    `forces` is the address of the record of the forces, which have `n_states` states.
    """
    arrays: dict[str, Any] = {
        f"{prefix}_{name}": np.ascontiguousarray(values)
        for prefix, group in (("Tree", tree), ("Closures", closures), ("Chains", chains))
        for name, values in group._asdict().items()
    }
    return Record(
        MACHINE,
        **sizes_of(tree, closures, chains, n_states)._asdict(),
        parameter_mass=parameter_masses(tree),
        forces=forces,
        **arrays,
    )


class Prepared(NamedTuple):
    """Addresses and sizes of a machine for calls of rnea, crba and aba."""

    address: int  # address of the record of the machine
    no_loads: int  # address of zero forces and torques on its bodies
    n_v: int
    room: int  # workspace of one of the algorithms, in floats
    alive: tuple[Any, ...]  # objects stored at these addresses


def prepared(tree: BodyTree, closures: Closures, chains: Chains) -> Prepared:
    """A machine for rnea, crba and aba, in the axes of the joints, which saves one rotation per body."""
    machine, loads = packed(in_axes_of_joints(tree), closures, chains), LoadBlock(tree.parent.size)
    n, n_v = int(machine["n"]), int(machine["n_v"])
    room = sum(floats_for(n, n_v, shares) for shares in (PLACEMENT, VELOCITIES, ELIMINATION)) + 6 * n
    return Prepared(machine.address, loads.address, n_v, room, (machine, loads))


@part
def tree_at(address):
    """The tree of a machine, given the address of its record."""
    record = record_at(address, MACHINE)
    return BodyTree(
        record.Tree_parent,
        record.Tree_turn,
        record.Tree_first_q,
        record.Tree_first_v,
        record.Tree_place,
        record.Tree_axes,
        record.Tree_own_place,
        record.Tree_own_axes,
        record.Tree_slide,
        record.Tree_mass,
        record.Tree_inertia,
        record.Tree_gravity,
    )


@part
def closures_at(address):
    record = record_at(address, MACHINE)
    return Closures(
        record.Closures_kind,
        record.Closures_k,
        record.Closures_l,
        record.Closures_body,
        record.Closures_place,
        record.Closures_axes,
    )


@part
def chains_at(address):
    record = record_at(address, MACHINE)
    return Chains(
        record.Chains_first_place,
        record.Chains_condition,
        record.Chains_up,
        record.Chains_first_product,
        record.Chains_side,
        record.Chains_group,
        record.Chains_within,
        record.Chains_member,
        record.Chains_first_member,
        record.Chains_first_entry,
    )


@part
def rows(address, n):
    return float_rows(address, n, 3)


@part
def matrices(address, n):
    return float_blocks(address, n, 3, 3)


@part
def placement_at(address, n, n_v):
    a, b = address, address + 8 * 18 * n
    return Placement(
        rows(a, n),
        matrices(a + 24 * n, n),
        rows(a + 96 * n, n),
        rows(a + 120 * n, n),
        rows(b, n_v),
        rows(b + 24 * n_v, n_v),
        rows(b + 48 * n_v, n_v),
    )


@part
def velocities_at(address, n):
    return Velocities(rows(address, n), rows(address + 24 * n, n), rows(address + 48 * n, n), rows(address + 72 * n, n))


@part
def elimination_at(address, n, n_v):
    a, b = address, address + 8 * 33 * n
    return Elimination(
        matrices(a, n),
        matrices(a + 72 * n, n),
        matrices(a + 144 * n, n),
        rows(a + 216 * n, n),
        rows(a + 240 * n, n),
        rows(b, n_v),
        rows(b + 24 * n_v, n_v),
        floats(b + 48 * n_v, n_v),
        floats(b + 56 * n_v, n_v),
    )


@part
def floats_for(n, n_v, shares):
    """Number of floats of the arrays described by `shares`, such as :data:`PLACEMENT` or :data:`VELOCITIES`."""
    return shares[0] * n + shares[1] * n_v
