"""Results of a simulation: its state at one time, and the outputs returned by steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_real
from daedal.solution.quantities import row_named


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
    """The names of the outputs, and their indices in y if all are entries of y, otherwise functions."""
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
