"""The inputs of a simulation: constant between two calls, and changed in place for machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from daedal.common.tabular import plural
from daedal.errors import InvalidProblemError, UnknownNameError, near_names
from daedal.problems.checks import check_real
from daedal.problems.compile import with_known_params
from daedal.problems.named_inputs import Inputs, Signal, value_of
from daedal.problems.symbols import Driven

# factor of the values by which inputs are found in memory; parameters are unlikely to equal these values
_UNUSUAL = 0.6180339887498949


class HeldInputs:
    """The values of a problem that change between calls: its inputs, and parameters named as inputs.

    Parameters
    ----------
    problem : object
        The user's problem.
    given : mapping or sequence of str, optional
        Values by name, or only names, in the order of vectors. By default all inputs of the problem.
    hold : {"zero", "first"}
        Interpolation of inputs given as samples (times, values).

    Attributes
    ----------
    problem : object
        The same problem, with parameters owned by this object.
    numbers : list of float
        The current values; always replaced as a whole.
    """

    def __init__(self, problem: Any, given: Any = None, hold: str = "zero"):
        if isinstance(given, str):
            given = given.replace(",", " ").split()
        stated = getattr(problem, "inputs", None)
        stated = stated if isinstance(stated, Inputs) else None
        params = getattr(problem, "params", None)
        values = dict(given) if isinstance(given, Mapping) else {}
        names = list(given) if given is not None else list(stated or ())
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidProblemError(f"inputs has {twice!r} twice; use distinct names")
        own, others = {} if hasattr(problem, "in_each") else _named_parameters(params), dict(stated or {})
        for name in names:
            if name not in others and name not in own:
                known = [*others, *own]
                there = f"there are {', '.join(map(repr, known))}" if known else "the problem has neither"
                hint = near_names(name, known) if isinstance(name, str) else ""
                raise UnknownNameError(f"inputs: {name!r} is neither an input nor a parameter; {hint}{there}")
        self.signals: dict[str, Any] = {}
        self._held: dict[str, tuple[dict, Any]] = {}
        self._boxes: dict[str, dict] = {}
        self._bridges: list[Any] = []
        self.problem = problem
        if names or others:
            self._own(problem, params, stated, names, values, own, hold)
        self.names = tuple(self._held)
        self.inputs = Inputs({name: box[name] for name, (box, _) in self._held.items()}) if self._held else None
        self.numbers: list[float] = []
        if self.inputs is not None:
            self.numbers = self.inputs.vector({name: box[name] for name, (box, _) in self._held.items()}).tolist()
        self.size = len(self.numbers)
        self._places: list[tuple[np.ndarray, int, int]] = []
        self._refreshed: list[Any] = []

    def _own(self, problem, params, stated, names, values, own, hold):
        """Copy the dictionaries that contain the values, and create a problem that uses these copies."""
        driven = isinstance(params, Driven)
        given = params.given if driven else params
        boxes = self._boxes
        if own:
            mine = {name: float(v) if type(v) is int and name in names else v for name, v in own.items()}
            given = mine
            boxes |= dict.fromkeys(own, mine)
        if driven:
            inputs = dict(params.inputs)
            boxes |= dict.fromkeys(inputs, inputs)
            params = Driven(given, inputs)
        else:
            params = given
        for name in dict.fromkeys([*(stated or ()), *names]):
            box = boxes[name]
            if name in values and stated is not None and name in stated:
                box[name] = stated.signals({name: values[name]}, hold)[name]
            elif name in values:
                box[name] = Inputs({name: box[name]}).signals({name: values[name]})[name]
            if callable(box[name]):
                self.signals[name] = box[name]
            elif name in names or not names:
                self._held[name] = box, np.shape(box[name])
        self._held = {name: self._held[name] for name in [*names, *self._held] if name in self._held}
        if hasattr(problem, "in_each"):  # all modes read the same dictionary of inputs
            self.problem = problem.in_each(
                lambda mode: with_known_params(mode, Driven(mode.params.given, params.inputs))
            )
        else:
            self.problem = with_known_params(problem, params)

    def jump_after(self, t: float) -> float:
        """The next time at which an input given by samples or a table jumps or has a kink."""
        signals = [signal for signal in self.signals.values() if isinstance(signal, Signal)]
        return min((float(time) for signal in signals for time in signal.times[signal.times > t][:1]), default=np.inf)

    def take_pieces(self, t: float) -> None:
        """Set inputs given by samples or tables to their values from t to the next break point."""
        for name, signal in self.signals.items():
            if isinstance(signal, Signal):
                self._boxes[name][name] = signal.course(t)
        for bridge in self._bridges:
            bridge.refresh()

    def levels(self, t: float) -> dict[str, Any]:
        """The values at t of all named inputs."""
        return {name: value_of(self._boxes[name][name], t) for name in (*self._held, *self.signals)}

    # --- values -------------------------------------------------------------------------------------------------------

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the numbers."""
        return () if self.inputs is None else self.inputs.labels

    def __getitem__(self, name: str) -> Any:
        return self._held[name][0][name]

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def checked(self, u: Any) -> np.ndarray:
        """Convert values by name, or a vector of all values, to a vector; omitted values are unchanged."""
        if self.inputs is None:
            raise InvalidProblemError(
                "u is given, but the simulation has no inputs: state the problem with inputs=['u'], or pass names of "
                "its parameters as inputs=... to the simulation"
            )
        if isinstance(u, Mapping):
            for name in u:
                if name in self.signals:
                    raise InvalidProblemError(
                        f"u: input '{name}' was given as a function of time or as samples; give the simulation a "
                        "number for it if steps are to set it"
                    )
            values = {name: self[name] for name in self.names} | self.inputs.signals(u)
            for name in u:
                if callable(values[name]):
                    raise InvalidProblemError(
                        f"u: input '{name}' of a step must be a number or a vector, got {u[name]!r}"
                    )
            return self.inputs.vector(values)
        numbers = plural(self.size, "number")
        vector = check_real(u, "u", f"hold {numbers}").reshape(-1)
        if vector.size != self.size:
            raise InvalidProblemError(f"u must hold {numbers} for {', '.join(self.labels)}, got {vector.size}")
        if not np.isfinite(vector).all():
            bad = int(np.flatnonzero(~np.isfinite(vector))[0])
            raise InvalidProblemError(f"u is not finite: {self.labels[bad]} = {vector[bad]}")
        return vector

    def set(self, numbers: list[float]) -> None:
        """Write the numbers to the parameters, and to the memory that machine code reads."""
        self.numbers, k = numbers, 0
        for name, (box, shape) in self._held.items():
            if shape:
                box[name] = np.array(numbers[k : k + shape[0]])
                k += shape[0]
            else:
                box[name] = numbers[k]
                k += 1
        for array, i, k in self._places:
            array[i] = numbers[k]
        for bridge in self._bridges:
            bridge.forget_parameters()
        for bridge in self._refreshed:
            bridge.refresh()

    def bind(self, bridges: Sequence[Any]) -> None:
        """Find the inputs in the memory of machine code; if they are not found, :meth:`set` copies all parameters."""
        self._bridges, self._refreshed, self._places = list(bridges), [], []
        if not self.size:
            return
        markers = _UNUSUAL * (1.0 + np.arange(self.size)) * np.pi
        for bridge in bridges:
            found = self._places_in(bridge, markers)
            if found is None:
                self._refreshed.append(bridge)
            else:
                self._places += found

    def _places_in(self, bridge: Any, markers: np.ndarray) -> list[tuple[np.ndarray, int, int]] | None:
        places = []
        entries = [(target, cell, read, read(cell[0]).copy()) for target, cell, read in bridge.parameters]
        self._write(markers)
        try:
            for target, cell, read, base in entries:
                marked = read(cell[0])
                changed = np.flatnonzero(marked != base)
                source = [np.flatnonzero(markers == marked[i]) for i in changed]
                if any(len(k) != 1 for k in source):
                    return None
                places += [(target, int(i), int(k[0])) for i, k in zip(changed, source, strict=True)]
        finally:
            self._write(np.array(self.numbers))
        return places

    def _write(self, vector: np.ndarray):
        for name, value in self.inputs.split(vector).items() if self.inputs is not None else ():
            self._held[name][0][name] = value


def _named_parameters(params: Any) -> dict[str, Any]:
    """The parameters as a dictionary; only dictionaries can be changed by name."""
    given = params.given if isinstance(params, Driven) else params
    return dict(given) if isinstance(given, dict) else {}
