"""RNEA, CRBA and ABA of trees beside Pinocchio: ``python -m benchmarks.multibody``; it is part of `make bench`.

Trees of hinges in space, called from Python with NumPy arrays. The two take turns, and the shortest call counts.
Pinocchio (``pip install pin``) is left out where it is not installed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.fixed_cost import shortest
from benchmarks.worker import limit_threads

COMPARED = (7, 30, 100)
ALONE = (1_000, 10_000)
HEADS = ("degrees of freedom", "algorithm", "Daedal [us]", "Pinocchio [us]", "Pinocchio / Daedal")
_LARGEST_MATRIX = 1_000
_ROUNDS = 5


def tree(n: int) -> Any:
    """A machine of n bodies on hinges, three branches from the ground."""
    from daedal.multibody import Body, Model, Revolute, ground

    random = np.random.default_rng(0)
    bodies: list[Body] = []
    joints = []
    for i in range(n):
        body = Body.box(f"body {i}", size=random.uniform(0.1, 0.5, 3), mass=random.uniform(0.5, 2.0))
        parent = bodies[i - 3] if i >= 3 else ground
        frames = [b.at(random.uniform(-0.5, 0.5, 3), rotation=random.normal(size=4)) for b in (parent, body)]
        joints.append(Revolute(f"joint {i}", *frames))
        bodies.append(body)
    return Model(*joints, gravity=(0.0, 0.0, -9.81))


def algorithms(layout: Any, q: np.ndarray, u: np.ndarray, a: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Calls of Daedal's functions."""
    from daedal.multibody import aba, crba, rnea

    calls: dict[str, Callable[[], Any]] = {"RNEA": lambda: rnea(layout, q, u, a), "ABA": lambda: aba(layout, q, u, a)}
    if layout.n_v <= _LARGEST_MATRIX:
        calls["CRBA"] = lambda: crba(layout, q)
    return calls


def pinocchio_calls(layout: Any, q: np.ndarray, u: np.ndarray, a: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Calls of Pinocchio's functions for the same tree, numbered depth first as it wants; none without it."""
    try:
        import pinocchio as pin
    except ImportError:
        return {}
    arrays, model = layout.tree, pin.Model()
    model.gravity.linear = arrays.gravity
    bodies: dict[int, tuple[int, Any]] = {-1: (0, pin.SE3.Identity())}
    order = []
    waiting = [int(j) for j in np.flatnonzero(arrays.parent == -1)[::-1]]
    while waiting:
        j = waiting.pop()
        waiting += [int(child) for child in np.flatnonzero(arrays.parent == j)[::-1]]
        order.append(j)
        parent, centre = bodies[int(arrays.parent[j])]
        joint = model.addJoint(parent, pin.JointModelRZ(), centre * pin.SE3(arrays.axes[j], arrays.place[j]), f"{j}")
        bodies[j] = joint, pin.SE3(arrays.own_axes[j], arrays.own_place[j]).inverse()
        inertia = pin.Inertia(arrays.mass[j], np.zeros(3), arrays.inertia[j])
        model.appendBodyToJoint(joint, inertia, bodies[j][1])
    data, (q, u, a) = model.createData(), (values[order].copy() for values in (q, u, a))
    return {
        "RNEA": lambda: pin.rnea(model, data, q, u, a),
        "CRBA": lambda: pin.crba(model, data, q),
        "ABA": lambda: pin.aba(model, data, q, u, a),
    }


def rows(quick: bool = False) -> list[list[str]]:
    """The table under `HEADS`."""
    found = []
    for n in (*COMPARED, *(() if quick else ALONE)):
        layout = tree(n).layout()
        random = np.random.default_rng(1)
        q, u, a = (random.uniform(-1.0, 1.0, n) for _ in range(3))
        ours = algorithms(layout, q, u, a)
        theirs = pinocchio_calls(layout, q, u, a) if n in COMPARED else {}
        for name, call in ours.items():
            times = [[shortest(one, 0.1) for one in (call, theirs.get(name)) if one] for _ in range(_ROUNDS)]
            best = np.min(times, axis=0)
            compared = [f"{best[1]:.2f}", f"{best[1] / best[0]:.2f}"] if best.size > 1 else ["", ""]
            found.append([str(n), name, f"{best[0]:.2f}", *compared])
    return found


def main() -> None:
    """Print the table."""
    limit_threads()
    for row in (HEADS, *rows("--quick" in sys.argv)):
        print("".join(f"{cell:>20}" for cell in row))


if __name__ == "__main__":
    main()
