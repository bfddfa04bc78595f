"""Model Exchange FMUs as problems."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

import daedal
from daedal.errors import InvalidProblemError, UnknownNameError, near_names
from daedal.exchange.fmu_instance import FMUInstance, has_directional_derivatives, read_description
from daedal.problems.checks import check_finite
from daedal.symbolic import Untraceable

_FIRST_NUDGE, _LAST_NUDGE = 1e-15, 1e-9  # offsets beyond a zero of an indicator, in units of max(1, |t|)
_BEFORE = 1e-7  # offset before this zero, in units of max(1, |t|)
_MODE = "fmu"


@dataclass(eq=False)
class ImportedFMU:
    """An FMU imported as a problem.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    problem : ODE or HybridProblem
        An ODE in the states; if the FMU has event indicators, a hybrid problem with one mode and transitions into it.
    initial : numpy.ndarray
        Start values of the states.
    states, parameters, inputs, outputs : tuple of str
        Names of the variables of the FMU.
    t0 : float
        Start time.

    Examples
    --------
    >>> import daedal
    >>> fmu = daedal.import_fmu("tank.fmu")  # doctest: +SKIP
    >>> sol = daedal.solve(fmu.problem, (0.0, 1.0), fmu.initial)  # doctest: +SKIP
    """

    path: Path
    t0: float
    problem: Any = field(init=False)
    initial: np.ndarray = field(init=False)

    def __post_init__(self):
        self._open()

    def _open(self):
        self._description = found = read_description(self.path)
        self._lock = RLock()
        self._instance = FMUInstance(self.path, found)
        real = [v for v in found.modelVariables if v.type in ("Real", "Float64") and not v.dimensions]
        self._references = {v.name: v.valueReference for v in real}
        by_cause = {cause: [v for v in real if v.causality == cause] for cause in ("parameter", "input", "output")}
        self._start = {
            v.name: float(v.start if v.start is not None else 0.0)
            for v in (*by_cause["parameter"], *by_cause["input"])
            if v.variability != "constant"
        }
        self.parameters = tuple(v.name for v in by_cause["parameter"] if v.name in self._start)
        self.inputs = tuple(v.name for v in by_cause["input"])
        self.outputs = tuple(v.name for v in by_cause["output"])
        self.states = tuple(unknown.variable.derivative.name for unknown in found.derivatives)
        self._has_jacobian = has_directional_derivatives(self.path)
        if not self.states:
            raise InvalidProblemError(f"{self.path} has no continuous states, so there is nothing to integrate")
        self._numbers: tuple[float, ...] | None = None  # parameters of the current run of the instance
        self._last_event = -np.inf
        self._taken: tuple[Any, np.ndarray] | None = None  # the last event, and the states after it
        self.initial = self._restarted(tuple(self._start[name] for name in self.parameters))
        self.problem = self._stated()

    def __getstate__(self):
        return {"path": self.path, "t0": self.t0}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._open()

    # --- the problem --------------------------------------------------------------------------------------------------

    def _stated(self) -> Any:
        params = {name: self._start[name] for name in self.parameters} or None
        inputs = {name: self._start[name] for name in self.inputs} or None
        jacobian = self._function("jacobian", self._jacobian) if self._has_jacobian else None
        ode = daedal.ODE(
            self._function("derivatives", self._rates),
            len(self.states),
            jacobian=jacobian,
            params=params,
            inputs=inputs,
            names=list(self.states),
        )
        if not self._instance.n_indicators and not np.isfinite(self._instance.next_event):
            return ode
        transition = daedal.hybrid.Transition(
            _MODE,
            _MODE,
            guard=self._function("event indicators", self._guards),
            direction=0,
            reset=self._function("event", self._reset),
            name="event",
            immediate=False,
        )
        return daedal.hybrid.HybridProblem({_MODE: ode}, [transition], start=self._entry)

    def _function(self, name: str, function: Any) -> _FMUFunction:
        return _FMUFunction(function, name, bool(self.parameters), bool(self.inputs))

    def _entry(self, initial: Any) -> tuple[str, Any]:
        """Begin a run: the discrete states are reset to their start values."""
        with self._lock:
            self._numbers = None
        return _MODE, self.initial if initial is None else initial

    def _restarted(self, numbers: tuple[float, ...], states: Any = None) -> np.ndarray:
        values = dict(zip([self._references[name] for name in self.parameters], numbers, strict=True))
        values |= {self._references[name]: self._start[name] for name in self.inputs}
        found = self._instance.restart(self.t0, values, states)
        self._numbers, self._last_event, self._taken = numbers, -np.inf, None
        return found

    def _place(self, t: float, y: Any, p: Any, u: Any) -> None:
        numbers = tuple(float(p[name]) for name in self.parameters)
        if self._numbers != numbers or t < self._last_event:
            self._restarted(numbers, np.asarray(y, dtype=float))
        if self.inputs:
            references = [self._references[name] for name in self.inputs]
            self._instance.set_numbers(dict(zip(references, np.asarray(u, dtype=float).tolist(), strict=True)))
        self._instance.place(t, np.asarray(y, dtype=float))

    def _rates(self, t, y, p, u) -> np.ndarray:
        with self._lock:
            self._place(t, y, p, u)
            return self._instance.derivatives()

    def _jacobian(self, t, y, p, u) -> np.ndarray:
        with self._lock:
            self._place(t, y, p, u)
            return self._instance.jacobian()

    def _guards(self, t, y, p, u) -> np.ndarray:
        with self._lock:
            self._place(t, y, p, u)
            found = self._instance.indicators()
            following = self._instance.next_event
            return np.append(found, (following if np.isfinite(following) else t + 1.0) - t)

    def _reset(self, t, y, p, u) -> np.ndarray:
        """Handle the event at a point where an indicator has its new sign."""
        with self._lock:
            key = t, np.asarray(y, dtype=float).tobytes()
            if self._taken is not None and self._taken[0] == key:  # second call: the event has already been handled
                return self._taken[1]
            self._place(t, y, p, u)
            slopes, start = self._instance.derivatives(), np.asarray(y, dtype=float)
            unit, nudge = max(1.0, abs(t)), _FIRST_NUDGE
            before, moved = self._signs(t - _BEFORE * unit, start - _BEFORE * unit * slopes), start
            while np.all(self._signs(t, moved) == before) and t < self._instance.next_event and nudge <= _LAST_NUDGE:
                moved = start + nudge * unit * slopes
                nudge *= 2.0
            states = self._instance.event(t, moved)
            self._last_event, self._taken = t, (key, states)
            return states

    def _signs(self, t: float, y: np.ndarray) -> np.ndarray:
        self._instance.place(t, y)
        return np.sign(self._instance.indicators())

    # --- outputs ------------------------------------------------------------------------------------------------------

    def output(self, name: str) -> Any:
        """Return an output as a function of the state, for example for events and :func:`daedal.linearise`.

        The function uses the current discrete states of the FMU.
        """
        if name not in self._references:
            hint = near_names(name, self.outputs)
            known = ", ".join(self.outputs)
            raise UnknownNameError(f"{name!r} is not a variable of the FMU; {hint}its outputs are {known}")
        reference = self._references[name]

        def value(t, y, p, u):
            with self._lock:
                self._place(t, y, p, u)
                return float(self._instance.numbers([reference])[0])

        return self._function(name, value)


class _FMUFunction:
    """A function of (t, y, p, u) with the arguments of the problem's functions; it is never traced."""

    def __init__(self, function: Any, name: str, has_params: bool, has_inputs: bool):
        self._function, self._has_params, self._has_inputs = function, has_params, has_inputs
        self.__name__ = name
        names = ["t", "y", *(["p"] if has_params else []), *(["u"] if has_inputs else [])]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(one, kind) for one in names])

    def __call__(self, t, y, *further):
        p = further[0] if self._has_params else {}
        return self._function(t, y, p, further[-1] if self._has_inputs else ())

    def on_symbols(self, *arguments):
        """Raise, since an FMU cannot be traced."""
        raise Untraceable(f"calls '{self.__name__}' of an FMU, which is compiled code", "")


def import_fmu(path: str | Path, *, t0: float = 0.0) -> ImportedFMU:
    """Load a Model Exchange FMU as a problem.

    Parameters
    ----------
    path : path
        An FMU of version 2.0 or 3.0 with a Model Exchange interface and a binary for this platform.
    t0 : float
        Start time.

    Returns
    -------
    ImportedFMU
        ``problem`` is an :class:`ODE` with the inputs and parameters of the FMU by name, or a
        :class:`daedal.hybrid.HybridProblem` if it has events; ``initial`` its start values.

    Notes
    -----
    FMPy (``pip install daedal[fmu]``) loads the binary. Its functions are called from Python, about 10 us each.
    Directional derivatives of the FMU, if available, are used as the Jacobian. Discrete states are stored in the FMU: a
    run through events restarts it, so a problem supports one run at a time.

    Examples
    --------
    >>> import daedal
    >>> fmu = daedal.import_fmu("pendulum.fmu")  # doctest: +SKIP
    >>> sol = daedal.solve(fmu.problem, (0.0, 1.0), fmu.initial)  # doctest: +SKIP
    """
    return ImportedFMU(Path(path), check_finite(t0, "t0"))
