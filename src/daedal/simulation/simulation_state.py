"""States of a simulation: values and outputs at one time, and saved copies of the memory of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.driver.plan_stages import Plan
from daedal.errors import InvalidProblemError
from daedal.kernels.records import Record
from daedal.problems.checks import check_real
from daedal.solution.quantities import row_named

_CHANGING = (
    *("daedal.methods", "daedal.kernels", "daedal.events", "daedal.mechanics", "daedal.driver", "daedal.hybrid"),
    *("daedal.simulation", "daedal.symbolic.tracing.function.Modal", "daedal.symbolic.tracing.function.SwitchedParams"),
)  # prefixes of the full names of classes whose objects may change during a run
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
        if f"{kind.__module__}.{kind.__name__}".startswith(_CHANGING) and hasattr(one, "__dict__"):
            yield one
            waiting += vars(one).values()


@dataclass(frozen=True, eq=False)
class SimulationState:
    """The state of a simulation at one time; for a mechanism also with q, v, lam and so on.

    Attributes
    ----------
    t : float
    y, yp : numpy.ndarray
        The variables of the problem and their derivatives: (q, v, r) of a mechanism, (y, z), or y.
    solution : Solution
        The point as a solution of one output time, with all quantities by name.

    Examples
    --------
    >>> import daedal
    >>> tank = daedal.ODE(lambda t, y, flow: [flow - 0.5 * y[0]], 1, names=["level"], inputs=["flow"])
    >>> sim = daedal.Simulation(tank, [0.0])
    >>> _ = sim.step(1.0, u=[1.0])
    >>> print(sim.state.t, sim.state.y.round(4), round(sim.state["level"], 4))
    1.0 [0.7869] 0.7869
    """

    t: float
    solution: Any

    @property
    def y(self) -> np.ndarray:
        """The variables."""
        return self.solution.y[:, 0]

    @property
    def yp(self) -> np.ndarray:
        """Derivatives of the variables."""
        return self.solution.yp[:, 0]

    def __getattr__(self, name: str) -> Any:
        if name in ("q", "v", "a", "lam", "r", "w", "s", "reaction", "z", "x", "xp", "xpp"):
            return np.asarray(getattr(self.solution, name))[:, 0]
        raise AttributeError(f"the state of a simulation has no attribute {name!r}")

    def __getitem__(self, name: str) -> Any:
        """A quantity by its name, as in ``sol[name]``."""
        values = np.asarray(row_named(self.solution.quantities(), name))
        return float(values[0]) if values.ndim == 1 else values[..., 0]

    def __repr__(self) -> str:
        pairs = zip(self.solution.names, self.y.tolist(), strict=False)
        return f"<t = {self.t:.6g}: {', '.join(f'{name} = {value:.6g}' for name, value in pairs)}>"


Chosen = tuple[tuple[str, ...], Any, list[Callable[[], Any]]]


def chosen_outputs(simulation: Any, wanted: Any) -> Chosen:
    """The names of the outputs, and their indices in y if all are entries of y, otherwise the functions that
    compute them."""
    labels, has_modes = simulation.names, simulation.mode is not None
    if wanted is None:
        return labels, None if has_modes else slice(0, len(labels)), [lambda: simulation.y]
    if callable(wanted) or isinstance(wanted, str):
        wanted = [wanted]
    if isinstance(wanted, Mapping):
        pairs = list(wanted.items())
    elif isinstance(wanted, Sequence):
        pairs = [(x if isinstance(x, str) else getattr(x, "__name__", f"output {i}"), x) for i, x in enumerate(wanted)]
    else:
        raise InvalidProblemError(
            f"outputs must be names of quantities, or functions f(t, y), or a mapping of both, got {wanted!r}"
        )
    if not has_modes and all(isinstance(x, str) and x in labels for _, x in pairs):
        return tuple(name for name, _ in pairs), np.array([labels.index(x) for _, x in pairs], dtype=np.int64), []
    names: list[str] = []
    functions: list[Callable[[], Any]] = []
    for name, what in pairs:
        function = _function(simulation, name, what)
        values = check_real(function(), f"output '{name}'", "return numbers")
        if values.ndim > 1:
            raise InvalidProblemError(f"output '{name}' must return a number or a vector, got shape {values.shape}")
        names += [name] if values.ndim == 0 else [f"{name}[{i}]" for i in range(values.size)]
        functions.append(function)
    return tuple(names), None, functions


def _function(simulation: Any, name: str, what: Any) -> Callable[[], Any]:
    if isinstance(what, str):
        return lambda: simulation[what]
    if not callable(what):
        raise InvalidProblemError(f"outputs: '{name}' must be the name of a quantity or a function, got {what!r}")
    return lambda: what(simulation.t, simulation.y)
