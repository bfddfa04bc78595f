"""Saved states of a simulation: copies of the memory of its method and of the driver's data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.driver.plan_stages import Plan
from daedal.errors import InvalidProblemError
from daedal.kernels.records import Record

_CHANGING = (
    *("daedal.methods", "daedal.kernels", "daedal.events", "daedal.mechanics", "daedal.driver", "daedal.hybrid"),
    *("daedal.simulation", "daedal.symbolic.tracing.modal"),
)  # modules whose objects may change during a run
_CONTAINERS = (list, dict, set)
_CONSTANT = ("Settings", "Request", "SavedState", "Pool", "HybridProblem", "Mode", "Transition", "_OneThread")


@dataclass(frozen=True, eq=False)
class SavedState:
    """A state returned by :meth:`daedal.Simulation.save_state`, valid for that simulation.

    Attributes
    ----------
    owner : int
        Identity of the simulation.
    t : float
        The time.
    image : object
        Copies of the memory that a run changes.

    Examples
    --------
    >>> import daedal
    >>> tank = daedal.ODE(lambda t, y, flow: [flow - 0.5 * y[0]], 1, names=["level"], inputs=["flow"])
    >>> sim = daedal.Simulation(tank, [0.0])
    >>> saved = sim.save_state()
    >>> first = sim.step(1.0, u=[1.0])
    >>> sim.restore(saved)
    >>> print(saved.t, sim.t, bool(sim.step(1.0, u=[1.0]) == first))
    0.0 0.0 True
    """

    owner: int
    t: float
    image: Any

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise InvalidProblemError("a saved state belongs to its simulation and cannot be copied or pickled")

    def __repr__(self) -> str:
        return f"<state of a simulation at t = {self.t:.10g}>"


def image_of(simulation: Any) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[tuple[Any, Any]]]:
    """Copies of all arrays that compiled code writes to, and of the attributes of the objects that contain them."""
    arrays: dict[tuple[int, int], np.ndarray] = {}
    objects: dict[int, Any] = {}
    for found in _reached(simulation):
        if isinstance(found, np.ndarray):
            arrays[found.__array_interface__["data"][0], found.nbytes] = found
        else:
            objects[id(found)] = found
    return (
        [(array, array.copy()) for array in arrays.values()],
        [(one, (one if isinstance(one, _CONTAINERS) else vars(one)).copy()) for one in objects.values()],
    )


def restore_image(simulation: Any, image: Any) -> None:
    """Write all copies back to their original locations."""
    arrays, objects = image
    for one, contents in objects:
        if isinstance(one, list):
            one[:] = contents
        elif isinstance(one, (dict, set)):
            one.clear()
            one.update(contents)
        else:
            vars(one).clear()
            vars(one).update(contents)
    for array, contents in arrays:
        array[...] = contents


def _reached(start: Any) -> Iterator[Any]:
    """Arrays, containers and objects that can change during a run."""
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        kind = type(one)
        if kind is np.ndarray:
            if one.flags.writeable and one.dtype != object:
                yield one
            continue
        if kind is Record:
            yield one.data
            waiting += [one.block, *one._alive.values()]
            continue
        if kind is tuple:
            waiting += one
            continue
        if kind in _CONTAINERS:
            yield one
            waiting += one.values() if kind is dict else one
            continue
        if kind.__name__ in _CONSTANT or issubclass(kind, (Plan, type)) or callable(one):
            continue
        if kind.__module__.startswith(_CHANGING) and hasattr(one, "__dict__"):
            yield one
            waiting += vars(one).values()
