"""The loads of all forces of a large machine: a compiled loop over machine code that many of them share."""

from __future__ import annotations

from math import prod
from typing import Any

from daedal.kernels.compilation import caller, part
from daedal.kernels.records import data_of
from daedal.kernels.signatures import f64, i32, i64
from daedal.multibody.packed import PLACEMENT, VELOCITIES, floats_for, placement_at, velocities_at
from daedal.multibody.room import vector

_call = caller(i32(f64, i64))


class Places:
    """Where forces find what they read: in a block [placement | velocities | q | u | states].

    Attributes
    ----------
    arrays : dict
        For each array where it begins, how many rows it has, and the shape of a row.
    n_loads : int
        Of the loads [forces | torques | forces of joints | rates of states].
    """

    def __init__(self, layout: Any, n_states: int):
        n, n_q, n_v = layout.tree.father.size, layout.n_q, layout.n_v
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
        """For each array of bodies, coordinates or velocities: of which, where it begins, rows, and their length."""
        kinds = {"r": "body", "rotation": "body", "linear": "body", "angular": "body", "q": "q", "u": "v"}
        return [(kind, *self.arrays[name][:2], prod(self.arrays[name][2])) for name, kind in kinds.items()]


@part
def motion_at(address, record):
    """Placement and velocities in a block that is laid out as :class:`Places` says."""
    n, n_v = record.n, record.n_v
    return placement_at(address, n, n_v), velocities_at(address + 8 * floats_for(n, n_v, PLACEMENT), n)


@part
def add_loads(forces, t, motion, loads, room):
    """Add what all forces do in a motion, laid out as :class:`Places` says; 0, or the status of one that failed."""
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
        block[: sizes[group, 5]] = 0.0  # code does not write results that vanish identically
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
