"""Inputs of a problem: external quantities that may change between runs and during a run.

Their values are stored with the parameters (:class:`Driven`), so that the same machine code works for all values.
"""

from __future__ import annotations

import inspect
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from daedal.errors import InvalidProblemError, UnknownNameError, near_names
from daedal.kernels.functions import CodedFunction
from daedal.problems.checks import check_real, set_checked
from daedal.problems.compile import last_argument, with_known_params
from daedal.problems.symbols import Driven, given_params, named_params

HOLDS = {"zero": "previous", "first": "linear"}
"""How samples are interpolated between the points of a grid, and the corresponding kind of a table."""


class Course(NamedTuple):
    r"""A polynomial in time, :math:`\sum_k c_k (t - t_0)^k`: a signal between two of its break points."""

    coefficients: np.ndarray  # (degree + 1,), or (degree + 1, m)
    since: float

    @property
    def is_course(self) -> bool:
        """True, even in a trace, in which classes are replaced."""
        return True

    def at(self, t):
        """The value at `t`."""
        s, value = t - self.since, self.coefficients[-1]
        for k in range(len(self.coefficients) - 2, -1, -1):
            value = value * s + self.coefficients[k]
        return value


class SampledCourse(NamedTuple):
    r"""A :class:`Course` as a function of the samples that determine it, :math:`\sum_k (w_k^T u) (t - t_0)^k`.

    All pieces of a signal have the same structure, so that equations differentiated with respect to samples are valid
    for all of them.
    """

    values: np.ndarray  # (n,), or (n, m): all samples
    weights: np.ndarray  # (degree + 1, n)
    since: float

    @property
    def is_course(self) -> bool:
        """True, even in a trace, in which classes are replaced."""
        return True

    def at(self, t):
        """The value at `t`."""
        weights = self.weights[0]
        if len(self.weights) > 1:
            weights = weights + (t - self.since) * self.weights[1]
        return weights @ self.values


class Signal:
    """A piecewise polynomial signal in time, continuous from the right.

    Parameters
    ----------
    times : array, shape (n,)
        Times at which one piece ends and the next begins.
    begins : array, shape (n + 1,)
        The origin of each piece.
    coefficients : array, shape (n + 1, degree + 1) or (n + 1, degree + 1, m)
    """

    def __init__(self, times, begins, coefficients):
        self.times, self.begins, self.coefficients = times, begins, coefficients
        self._search = times.tolist()

    def __call__(self, t: float):
        return _plain(self.course(t).at(t) if self.coefficients.shape[1] > 1 else self.course(t))

    def course(self, t: float) -> Any:
        """The signal from `t` to its next break point: a constant, or a :class:`Course`."""
        i = bisect_right(self._search, t)
        if self.coefficients.shape[1] == 1:
            return _plain(self.coefficients[i, 0])
        return Course(self.coefficients[i], float(self.begins[i]))

    def sampled_course(self, t: float) -> Any:
        """The signal from `t` to its next break point, in a form that can be differentiated with respect to samples, if
        the signal is given by samples.
        """
        i = bisect_right(self._search, t)
        return Course(self.coefficients[i], float(self.begins[i]))


class Samples(Signal):
    """A signal given by samples at increasing times; constant before the first and after the last time.

    Parameters
    ----------
    times : array, shape (n,)
    values : array, shape (n,) or (n, m)
    hold : {"zero", "first"}
    """

    def __init__(self, times: np.ndarray, values: np.ndarray, hold: str):
        self.values = values
        degree = 0 if hold == "zero" else 1
        coefficients = np.zeros((times.size + 1, degree + 1, *values.shape[1:]))
        coefficients[0, 0], coefficients[1:, 0] = values[0], values
        if degree:
            coefficients[1:-1, 1] = (np.diff(values, axis=0).T / np.diff(times)).T
        super().__init__(times, np.concatenate([times[:1], times]), coefficients)

    def sampled_course(self, t: float) -> SampledCourse:
        """The signal from `t` to its next break point, as a function of the samples."""
        i = bisect_right(self._search, t)
        weights = np.zeros((self.coefficients.shape[1], self.times.size))
        weights[0, max(i - 1, 0)] = 1.0
        if len(weights) > 1 and 0 < i < self.times.size:
            rate = 1.0 / (self.times[i] - self.times[i - 1])
            weights[1, i - 1 : i + 1] = -rate, rate
        return SampledCourse(self.values, weights, float(self.begins[i]))


def _plain(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value


@dataclass(frozen=True)
class Inputs(Mapping[str, Any]):
    """The inputs of a problem: their names and defaults, in order.

    Attributes
    ----------
    defaults : dict
        A number, or a vector, for each name.

    Examples
    --------
    >>> import daedal
    >>> problem = daedal.ODE(lambda t, y, torque: [y[1], torque - y[0]], 2, inputs=["torque"])
    >>> problem.inputs.names, problem.inputs.size, problem.inputs["torque"]
    (('torque',), 1, 0.0)
    """

    defaults: dict[str, Any]

    @classmethod
    def of(cls, given: Any, names: Sequence[str] | None = None) -> Inputs:
        """Create inputs from a name, a list of names, or a mapping from names to defaults."""
        if isinstance(given, Inputs) and not set(given) & set(names or ()):
            return given
        if isinstance(given, str):
            given = given.replace(",", " ").split()
        try:
            pairs = list(given.items()) if isinstance(given, Mapping) else [(name, 0.0) for name in given]
        except TypeError:
            raise InvalidProblemError(
                f"inputs must be a list of names, or a mapping from names to default values, got {given!r}"
            ) from None
        defaults: dict[str, Any] = {}
        for name, value in pairs:
            if not isinstance(name, str) or not name:
                raise InvalidProblemError(f"inputs must have names, got {name!r}")
            if name in defaults:
                raise InvalidProblemError(f"inputs has '{name}' twice; use distinct names")
            if name in (names or ()):
                raise InvalidProblemError(f"inputs: '{name}' is the name of a variable; give the input another one")
            defaults[name] = _values(value, f"the default of input '{name}'")
        if not defaults:
            raise InvalidProblemError("inputs is empty; omit it, or name at least one input")
        return cls(defaults)

    def __getitem__(self, name: str) -> Any:
        if name not in self.defaults:
            raise UnknownNameError(self._unknown(name))
        return self.defaults[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.defaults)

    def __len__(self) -> int:
        return len(self.defaults)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(self.defaults)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each input, by name: ``()`` for a number, ``(m,)`` for a vector."""
        return {name: np.shape(value) for name, value in self.defaults.items()}

    @property
    def size(self) -> int:
        """Total number of values."""
        return sum(np.size(value) for value in self.defaults.values())

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of these values, in order: ``u`` for a number, ``w[0]``, ``w[1]`` for a vector."""
        return tuple(
            label
            for name, shape in self.shapes.items()
            for label in ([name] if not shape else [f"{name}[{k}]" for k in range(shape[0])])
        )

    @property
    def slices(self) -> dict[str, slice]:
        """Position of each input in the vector of all values."""
        found, end = {}, 0
        for name, value in self.defaults.items():
            found[name] = slice(end, end + np.size(value))
            end = found[name].stop
        return found

    def vector(self, values: Mapping[str, Any]) -> np.ndarray:
        """All values as one vector, in order."""
        return np.concatenate([np.ravel(values[name]) for name in self.defaults]).astype(float)

    def split(self, vector) -> dict[str, Any]:
        """The values by name, from a vector of all values."""
        return {
            name: _plain(vector[where.start]) if not self.shapes[name] else np.array(vector[where], dtype=float)
            for name, where in self.slices.items()
        }

    def signals(self, given: Any, hold: str = "zero") -> dict[str, Any]:
        """Check the values given for a run; return a constant, a function of time or a :class:`Signal` for each name.

        Parameters
        ----------
        given : mapping, array or number
            By name: a number or vector, a function of time, a table, or a pair (times, values). Without names:
            the vector of all values, or the value of a single input.
        hold : {"zero", "first"}
            Interpolation of a pair between its times: constant up to the next time, or linear.
        """
        if hold not in HOLDS:
            raise InvalidProblemError(f"hold must be 'zero' or 'first', got {hold!r}")
        if not isinstance(given, Mapping):
            if len(self) > 1:
                if callable(given) or np.shape(given) != (self.size,):
                    raise InvalidProblemError(
                        f"inputs must be a mapping from names to values, or a vector of {self.size} numbers for "
                        f"{', '.join(self.labels)}; got {given!r}"
                    )
                given = self.split(check_real(given, "inputs", f"hold {self.size} real numbers"))
            else:
                given = {self.names[0]: given}
        for name in given:
            if name not in self.defaults:
                raise UnknownNameError(self._unknown(name))
        return {name: self._signal(name, value, hold) for name, value in given.items()}

    def _unknown(self, name: Any) -> str:
        known = ", ".join(map(repr, self.defaults))
        return f"inputs: {name!r} is not an input of the problem; {near_names(name, self.defaults)}known: {known}"

    def _signal(self, name: str, value: Any, hold: str) -> Any:
        shape, what = self.shapes[name], f"input '{name}'"
        if hasattr(type(value), "polynomial_pieces"):
            times, begins, coefficients = value.polynomial_pieces()
            _check_shape(coefficients.shape[2:], shape, f"the table of {what}")
            return Signal(times, begins, coefficients)
        if isinstance(value, Signal):
            return value
        if callable(value):
            _check_function(value, shape, what)
            return value
        if _is_samples(value, shape):
            return _held(value, shape, hold, what)
        number = _values(value, what)
        if shape == (1,) and np.ndim(number) == 0:
            number = np.array([number])
        if shape == () and np.shape(number) == (1,):
            number = float(number[0])
        _check_shape(np.shape(number), shape, what)
        return number


def _values(value: Any, what: str) -> Any:
    """A number or a vector of finite numbers."""
    array = check_real(value, what, "be a number or a vector of numbers")
    if array.ndim > 1 or (array.ndim == 1 and not array.size):
        raise InvalidProblemError(f"{what} must be a number or a vector of numbers, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidProblemError(f"{what} is not finite: {value!r}")
    return float(array) if array.ndim == 0 else array


def _check_shape(found: tuple[int, ...], shape: tuple[int, ...], what: str):
    if found != shape:
        wanted = "a number" if not shape else f"a vector of {shape[0]}"
        given = "a number" if not found else f"shape {found}"
        raise InvalidProblemError(f"{what} is {wanted}, got {given}")


def _check_function(function: Callable[..., Any], shape: tuple[int, ...], what: str):
    try:
        signature = inspect.signature(getattr(function, "py_func", function))
        signature.bind(0.0)
    except ValueError:
        return
    except TypeError:
        raise InvalidProblemError(f"{what}: a function of time is called with t only, got {signature}") from None


def _is_samples(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether `value` is a pair (times, values) of sequences of equal length."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return False
    times, values = value
    return np.ndim(times) == 1 and np.ndim(values) == 1 + len(shape)


def _held(pair: Any, shape: tuple[int, ...], hold: str, what: str) -> Signal:
    times = check_real(pair[0], f"times of {what}", "be a vector of increasing numbers")
    values = check_real(pair[1], f"values of {what}", "hold real numbers")
    if values.shape[:1] != times.shape:
        raise InvalidProblemError(
            f"{what} has {times.size} times and {values.shape[0]} values; give one value for each time"
        )
    if not times.size or not np.isfinite(times).all() or not np.isfinite(values).all():
        raise InvalidProblemError(f"{what}: times and values must be finite and not empty")
    if not np.all(np.diff(times) > 0.0):
        i = int(np.flatnonzero(np.diff(times) <= 0.0)[0])
        raise InvalidProblemError(
            f"{what}: times must increase, but times[{i}] = {times[i]:g} is followed by {times[i + 1]:g}"
        )
    _check_shape(values.shape[1:], shape, f"each value of {what}")
    return Samples(times, values, hold)


# --- functions of problems with inputs --------------------------------------------------------------------------------


class DrivenFunction:
    """A user's function of a problem with inputs, called with an additional last argument :class:`Driven`.

    Parameters
    ----------
    function : callable
    n : int
        Number of arguments before parameters and inputs.
    places : tuple
        The following arguments: ``"p"`` for the parameters, ``"u"`` for the vector of all inputs, or ``(name,)`` for
        one input.
    """

    def __init__(self, function: Callable[..., Any], n: int, places: tuple[Any, ...], names: Sequence[str]):
        self.function, self.n, self.places = function, n, places
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in (*names, "driven")]
        )

    def __call__(self, t, *arguments):
        driven = arguments[-1]
        return self.function(t, *arguments[:-1], *further_arguments(self.function, self.places, t, driven))


def further_arguments(function: Any, places: Sequence[Any], t, driven: Driven) -> list[Any]:
    """Parameters and inputs that a function receives as its last arguments, in the order of `places`."""
    further: list[Any] = []
    for place in places:
        if place == "p":
            further.extend(last_argument(function, driven.given))
        elif place == "u":
            further.append(_stacked([value_of(signal, t) for signal in driven.inputs.values()]))
        else:
            further.append(value_of(driven.inputs[place[0]], t))
    return further


def value_of(signal: Any, t) -> Any:
    """Value of a signal at `t`, which may be a symbol."""
    if getattr(signal, "is_course", False):
        return signal.at(t)
    return signal(t) if callable(signal) else signal


def inputs_at(params: Driven, t: float) -> dict[str, Any]:
    """Values of all inputs at time t, by name."""
    return {name: value_of(signal, t) for name, signal in params.inputs.items()}


def starting_values(problem: Any, given: Any, hold: str, t: float) -> dict[str, Any]:
    """Values at the start of a run for the inputs that are given."""
    if given is None:
        return {}
    return {name: value_of(signal, t) for name, signal in require_inputs(problem).signals(given, hold).items()}


def in_driven_form(function: Any, params: Any) -> Any:
    """Convert a user's function of the state (an event, a guard, a reset) with parameters or inputs to one with a
    single additional argument `p`; other functions, and those of problems without inputs, are unchanged."""
    if not isinstance(params, Driven) or isinstance(function, (DrivenFunction, DrivenEvent)):
        return function
    try:
        parameters = inspect.signature(getattr(function, "py_func", function)).parameters.values()
    except (TypeError, ValueError):
        return function
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    places: list[Any] = []
    for i, name in enumerate(names):
        if name in params.inputs and i > 1:
            places.append((name,))
        elif i > 1 and name in _PARAMS and params.given is not None:
            places.append("p")
        elif i > 1 and name == "u":
            places.append("u")
        else:
            places.append(None)
    return function if not any(places) else DrivenEvent(function, names, tuple(places))


_PARAMS = ("p", "par", "pars", "param", "params", "parameters")


class DrivenEvent:
    """A function of the state with parameters or inputs, converted to one with a single last argument `p` for both."""

    def __init__(self, function: Callable[..., Any], names: Sequence[str], places: tuple[Any, ...]):
        self.function, self.places = function, places
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        state = [name for name, place in zip(names, places, strict=True) if place is None]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in (*state, "p")])

    def __call__(self, t, *arguments):
        driven, state = arguments[-1], iter([t, *arguments[:-1]])
        given = []
        for place in self.places:
            given.extend([next(state)] if place is None else further_arguments(self.function, (place,), t, driven))
        return self.function(*given)


def _stacked(values: list[Any]) -> np.ndarray:
    entries: list[Any] = []
    for value in values:
        entries.extend(value if np.ndim(value) else [value])
    return np.array(entries)


def driven_function(name: str, function: Any, arguments: Sequence[str], inputs: Inputs, has_params: bool) -> Any:
    """Convert a function of a problem with inputs to a :class:`DrivenFunction`; other objects are unchanged."""
    if not callable(function) or isinstance(function, (DrivenFunction, CodedFunction)):
        return function
    places: tuple[Any, ...]
    try:
        parameters = inspect.signature(getattr(function, "py_func", function)).parameters.values()
    except (TypeError, ValueError):
        return DrivenFunction(function, len(arguments), ("p", "u") if has_params else ("u",), arguments)
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        places = ("p", "u") if has_params else ("u",)
    else:
        further = [x for x in positional[len(arguments) :] if x in inputs or x in required]
        others = [x for x in further if x not in inputs]
        kinds = (["p"] if has_params else []) + ["u"]
        named = [x for x in further if x in inputs]
        if len(positional) < len(arguments) or len(others) > len(kinds) or (named and others[1:]):
            _refuse(name, function, arguments, inputs, has_params)
        meant = iter(kinds)
        places = tuple((x,) if x in inputs else next(meant) for x in further)
    return DrivenFunction(function, len(arguments), places, arguments)


def _refuse(name: str, function: Any, arguments: Sequence[str], inputs: Inputs, has_params: bool):
    signature = inspect.signature(getattr(function, "py_func", function))
    before = [*arguments, "p"] if has_params else [*arguments]
    raise InvalidProblemError(
        f"{name} has the arguments {signature}, but it is called as {name}({', '.join([*before, 'u'])}), with the "
        f"vector of all inputs, or as {name}({', '.join([*before, *inputs.names])}), with inputs by name"
    )


def take_inputs(problem: Any, arguments: Mapping[str, Sequence[str]]):
    """Prepare the functions of a new problem for its inputs, and store the values of the inputs in its parameters.

    Parameters
    ----------
    problem : object
        A problem with `inputs`, `params` and `names` as given.
    arguments : mapping
        For each function, the arguments of its calls.
    """
    if problem.inputs is not None:
        functions = {name: (getattr(problem, name), stated) for name, stated in arguments.items()}
        inputs, params, taken = with_driven(problem.inputs, problem.params, problem.names, functions)
        set_checked(problem, inputs=inputs, params=params, **taken)


def with_driven(
    inputs: Any, params: Any, names: Any, functions: Mapping[str, tuple[Any, Sequence[str]]]
) -> tuple[Any, Any, dict[str, Any]]:
    """Checked inputs, parameters that contain them, and functions, given as (function, arguments), converted by
    :func:`driven_function`."""
    if inputs is None:
        return None, params, {name: function for name, (function, _) in functions.items()}
    inputs = Inputs.of(inputs, _names(names))
    _check_distinct(inputs, given_params(params))
    is_stated = isinstance(params, Driven)  # a function that replaces another one may be Daedal's or the user's
    driven = params if is_stated else Driven(params, dict(inputs.defaults))
    taken = {
        name: function
        if is_stated and str(getattr(function, "__module__", "")).startswith("daedal.")
        else driven_function(name, function, stated, inputs, driven.given is not None)
        for name, (function, stated) in functions.items()
    }
    return inputs, driven, taken


def _check_distinct(inputs: Inputs, params: Any):
    """Reject inputs that have the name of a parameter."""
    named = named_params(params)
    known = named if named is not None else () if params is None else ("p",)
    for name in inputs:
        if name in known:
            raise InvalidProblemError(f"inputs: '{name}' is the name of a parameter; give the input another one")


def _names(names: Any) -> Sequence[str]:
    return names.replace(",", " ").split() if isinstance(names, str) else tuple(names or ())


class TakesInputs:
    """A problem that may have inputs."""

    inputs: Any
    params: Any

    def with_inputs(self, values: Any = None, /, *, hold: str = "zero", **named: Any):
        """The same problem with other inputs: constants, functions of time, tables, samples (times, values).

        Parameters
        ----------
        values : mapping, array or number, optional
            Inputs by name, or all of them as a vector; see `inputs` of :func:`daedal.solve`.
        hold : {"zero", "first"}
            Interpolation of samples between their times.
        **named
            Inputs as keywords.

        Examples
        --------
        >>> import daedal
        >>> heater = daedal.ODE(lambda t, y, power: [power - y[0]], 1, inputs=["power"])
        >>> sol = daedal.solve(heater.with_inputs(power=2.0), (0.0, 1.0), [0.0], rtol=1e-9)
        >>> print(f"{sol.y[0, -1]:.5f}")
        1.26424
        """
        inputs = require_inputs(self)
        given = {} if values is None else inputs.signals(values, hold)
        given |= inputs.signals(named, hold) if named else {}
        return with_known_params(self, self.params._replace(inputs={**self.params.inputs, **given}))


def require_inputs(problem: Any) -> Inputs:
    """The inputs of a problem; raises if it has none."""
    inputs = getattr(problem, "inputs", None)
    if not isinstance(inputs, Inputs):
        remedy = getattr(
            problem,
            "how_to_take_inputs",
            "name them in its definition, as in inputs=['u'], and add u as the last argument of its functions; for a "
            "circuit, name its sources: circuits.parse(text, inputs=['V1'])",
        )
        raise InvalidProblemError(f"the {type(problem).__name__} was defined without inputs: {remedy}")
    return inputs


# --- signals in pieces ------------------------------------------------------------------------------------------------


def jumps_of(problem: Any) -> list[np.ndarray]:
    """The break points of each input that is a signal."""
    return [x.times for x in _signals(problem) if isinstance(x, Signal)]


def at_piece(problem: Any, low: float, *, by_samples: bool = False) -> Any:
    """The problem with its inputs between `low` and their next break point; the problem itself if no input is a
    signal.

    If `by_samples`, inputs given by samples are functions of these samples, so that they can be differentiated.
    """
    if not any(isinstance(x, Signal) for x in _signals(problem)):
        return problem
    if hasattr(problem, "in_each"):
        return problem.in_each(lambda mode: at_piece(mode, low, by_samples=by_samples))
    params = problem.params
    courses = {name: _course(x, low, by_samples) for name, x in params.inputs.items()}
    return with_known_params(problem, params._replace(inputs=courses))


def _course(signal: Any, low: float, by_samples: bool) -> Any:
    if not isinstance(signal, Signal):
        return signal
    return signal.sampled_course(low) if by_samples else signal.course(low)


def _signals(problem: Any) -> list[Any]:
    """Values of all inputs of a problem: constants, functions of time and signals."""
    params = getattr(problem, "params", None)
    return list(params.inputs.values()) if isinstance(params, Driven) else []
