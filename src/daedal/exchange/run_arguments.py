"""Conversion of the arguments of a differentiable run (initial values, parameters, inputs) to a vector and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.problems import HessenbergDAE, MechanicalSystem, SecondOrderDAE, SemiExplicitDAE
from daedal.problems.named_inputs import require_inputs
from daedal.problems.symbols import given_params, named_params
from daedal.sensitivity.differentiation import ParameterNumbers, entries_of, with_floats

INITIAL, PARAMS, INPUTS = "initial", "params", "inputs"


@dataclass(frozen=True)
class Leaf:
    """One array among the arguments of a run.

    Attributes
    ----------
    kind : str
        The argument that contains the array.
    path : tuple of str
        Position of the array in that argument.
    shape : tuple of int
    labels : tuple of str or None
        Names of the entries in sensitivities; None for guesses, which do not affect solutions.
    """

    kind: str
    path: tuple[Any, ...]
    shape: tuple[int, ...]
    labels: tuple[str, ...] | None

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape))

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.kind}[{', '.join(map(repr, self.path))}]" if self.path else self.kind


class ArgumentForm:
    """The structure of the arguments of a run: its numbers, and the values common to all runs.

    Parameters
    ----------
    problem : object
    initial, params, inputs
        As for :func:`daedal.solve`.
    varies : callable
        Whether a value is an array of the package (such as JAX); other values outside of batches are constants.

    Attributes
    ----------
    leaves : list of Leaf
    values : list
        The given value of each leaf.
    """

    def __init__(
        self, problem: Any, initial: Any, params: Any, inputs: Any, varies: Callable[[Any], bool] = lambda value: True
    ):
        self.problem, self._varies = with_floats(problem), varies
        self.leaves: list[Leaf] = []
        self.values: list[Any] = []
        self.constants: dict[Leaf, np.ndarray] = {}
        self.fixed: dict[tuple[Any, ...], Any] = {}  # values that are not leaves, by kind and path
        self._params_before = given_params(getattr(self.problem, "params", None))
        self._labels = ParameterNumbers.of(self.problem).labels if hasattr(self.problem, "params") else []
        self._mode: str | None = None
        self._read_initial(initial)
        self._is_mapping = isinstance(initial, Mapping)
        if params is not None:
            self._read_params(params)
        if inputs is not None:
            self._read_inputs(inputs)
        self.has_params, self.has_inputs = params is not None, inputs is not None

    @property
    def key(self) -> tuple[Any, ...]:
        """Key of forms with the same machine code and constants."""
        fixed = tuple(
            (where, value.tobytes() if isinstance(value, np.ndarray) else id(value))
            for where, value in self.fixed.items()
        )
        constants = tuple((leaf, value.tobytes()) for leaf, value in self.constants.items())
        return (tuple(self.leaves), constants, fixed, self._mode, self.has_params, self.has_inputs)

    @property
    def labels(self) -> list[str | None]:
        """Names of the numbers of all leaves."""
        return [
            label for leaf in self.leaves for label in (leaf.labels if leaf.labels is not None else [None] * leaf.size)
        ]

    def is_start(self, k: int) -> bool:
        """Whether number k is an initial value."""
        ends = np.cumsum([leaf.size for leaf in self.leaves])
        return self.leaves[int(np.searchsorted(ends, k, side="right"))].kind == INITIAL

    def _add(self, kind: str, path: tuple[Any, ...], value: Any, shape: tuple[int, ...], labels: Any) -> None:
        leaf = Leaf(kind, path, shape, None if labels is None else tuple(labels))
        found = shape_of(value)
        for part in (found, found[1:]) if len(found) == len(shape) + 1 else (found,):
            if len(part) == len(shape) and all(a in (None, b) for a, b in zip(part, shape)):
                break
        else:
            raise InvalidProblemError(
                f"{leaf.name} has shape {found}; expected {shape}, or (members, {', '.join(map(str, shape))}) for a "
                "batch"
            )
        if not self._varies(value):
            if len(found) == len(shape):
                self.constants[leaf] = np.array(value, dtype=float)
                return
            leaf = replace(leaf, labels=None)  # a batch of constants, which are not differentiated
        self.leaves.append(leaf)
        self.values.append(value)

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read_initial(self, initial: Any) -> None:
        problem = self.problem
        if hasattr(problem, "modes"):
            if not isinstance(initial, (tuple, list)) or len(initial) != 2 or not isinstance(initial[0], str):
                raise InvalidProblemError("initial of a problem with modes must be (mode, initial values of the mode)")
            self._mode, initial = initial
            if self._mode not in problem.modes:
                raise unknown_name(self._mode, list(problem.modes), "mode", INITIAL)
            problem = problem.modes[self._mode].problem
        variables = [problem.label(i) for i in range(problem.n)]
        if isinstance(initial, Mapping):
            for name, value in initial.items():
                if name not in variables:
                    raise unknown_name(name, variables, "variable", INITIAL)
                self._add(INITIAL, (name,), value, (), [f"{name}(0)"])
            return
        parts = list(initial) if _is_in_parts(initial) else [initial]
        known = _initial_parts(problem, variables)
        if len(parts) > len(known):
            names = ", ".join(name for name, *_ in known)
            raise InvalidProblemError(f"initial has {len(parts)} entries; expected at most {names}")
        for value, (name, size, labels) in zip(parts, known):
            if value is None:
                self.fixed[INITIAL, name] = None
            else:
                starts = None if labels is None else [f"{label}(0)" for label in labels]
                self._add(INITIAL, (name,), value, (int(shape_of(value)[-1] or 0) if size is None else size,), starts)

    def _read_params(self, params: Any) -> None:
        before = self._params_before
        if before is None:
            raise InvalidProblemError("params is given, but the problem was stated without parameters")
        if not isinstance(params, Mapping):
            if named_params(before) is not None:
                raise InvalidProblemError(
                    "params must be a mapping from names to numbers, like params of the problem, got "
                    f"{type(params).__name__}"
                )
            labels = [label for label in self._labels if label.split("[")[0] == "p"]
            self._add(PARAMS, (), params, np.shape(before), labels)
            return
        self._read_named(params, before, ())

    def _read_named(self, params: Mapping, before: Any, path: tuple[str, ...]) -> None:
        known = named_params(before) or {}
        for name, value in params.items():
            if name not in known:
                raise unknown_name(name, list(map(str, known)), "parameter", PARAMS)
            own, place = known[name], (*path, name)
            if isinstance(value, Mapping):
                self._read_named(value, own, place)
                continue
            labels = entries_of(".".join(map(str, place)), self._labels)
            if len(labels) != np.size(own):
                raise InvalidProblemError(
                    f"params[{name!r}] is {own!r}, which is not a number or an array of numbers, so it cannot vary"
                )
            self._add(PARAMS, place, value, np.shape(own), labels)

    def _read_inputs(self, inputs: Any) -> None:
        known = require_inputs(self.problem)
        if not isinstance(inputs, Mapping):
            if len(known) > 1:
                raise InvalidProblemError(f"inputs must be a mapping from names to values; the names are {known.names}")
            inputs = {known.names[0]: inputs}
        labels = dict(zip(known.slices, (known.labels[where] for where in known.slices.values())))
        for name, value in inputs.items():
            shape = np.shape(known[name])
            if hasattr(type(value), "polynomial_pieces") or (callable(value) and not hasattr(value, "shape")):
                self.fixed[INPUTS, name] = value
            elif isinstance(value, (tuple, list)) and len(value) == 2 and len(shape_of(value[0])) == 1:
                try:
                    times = np.array(value[0], dtype=float)
                except Exception:  # frameworks raise various exceptions for numbers that are not yet known
                    raise InvalidProblemError(
                        f"inputs[{name!r}]: the times of samples must be known numbers; only their values can vary"
                    ) from None
                self.fixed[INPUTS, name] = times
                places = np.ndindex(times.size, *shape)
                names = [f"{name}[{', '.join(map(str, place))}]" for place in places]
                self._add(INPUTS, (name,), value[1], (times.size, *shape), names)
            else:
                self._add(INPUTS, (name,), value, shape, labels[name])

    # --- back ---------------------------------------------------------------------------------------------------------

    def arguments(self, theta: np.ndarray) -> dict[str, Any]:
        """`initial`, `params` and `inputs` for :func:`daedal.solve`, from all numbers."""
        found: dict[str, dict[tuple[Any, ...], Any]] = {INITIAL: {}, PARAMS: {}, INPUTS: {}}
        for leaf, constant in self.constants.items():
            found[leaf.kind][leaf.path] = constant.copy() if leaf.shape else float(constant)
        end = 0
        for leaf in self.leaves:
            begin, end = end, end + leaf.size
            value = theta[begin:end].reshape(leaf.shape)
            found[leaf.kind][leaf.path] = value.copy() if leaf.shape else float(value)
        inputs = {
            path[0]: (self.fixed[INPUTS, path[0]], value) if (INPUTS, path[0]) in self.fixed else value
            for path, value in found[INPUTS].items()
        }
        inputs |= {
            name: value for (kind, name), value in self.fixed.items() if kind == INPUTS and (name,) not in found[INPUTS]
        }
        return {
            "initial": self._initial(found[INITIAL]),
            "params": self._params(found[PARAMS]) if self.has_params else None,
            "inputs": inputs if self.has_inputs else None,
        }

    def _initial(self, found: Mapping[tuple[Any, ...], Any]) -> Any:
        if self._is_mapping:
            inner: Any = {path[0]: value for path, value in found.items()}
        else:
            parts = {path[0]: value for path, value in found.items()}
            parts |= {name: None for kind, name in self.fixed if kind == INITIAL}
            problem = self.problem if self._mode is None else self.problem.modes[self._mode].problem
            order = [name for name, *_ in _initial_parts(problem, [])]
            inner = tuple(parts[name] for name in order if name in parts)
            inner = (*inner, None) if len(inner) == 1 else inner
        return inner if self._mode is None else (self._mode, inner)

    def _params(self, found: Mapping[tuple[Any, ...], Any]) -> Any:
        if () in found:
            return found[()]
        params: dict[str, Any] = {}
        for path, value in found.items():
            _put(params, path, value, self._params_before)
        return params


def _put(params: dict[str, Any], path: tuple[Any, ...], value: Any, before: Any) -> None:
    """Store a value at a path; mappings along it keep their other entries."""
    name, *rest = path
    if rest:
        own = (named_params(before) or {})[name]
        inner = params.setdefault(name, dict(own))
        _put(inner, tuple(rest), value, own)
    else:
        params[name] = value


def _is_in_parts(initial: Any) -> bool:
    if not isinstance(initial, (tuple, list)):
        return False
    return any(entry is None or len(shape_of(entry)) for entry in initial)


def _initial_parts(problem: Any, variables: Sequence[str]) -> list[tuple[str, int | None, Sequence[str] | None]]:
    """Name, length and variables of each entry of the initial values; no variables for guesses."""
    n = problem.n
    if isinstance(problem, MechanicalSystem):
        n_q, n_r = problem.n_q, problem.n_r
        q, v, r = variables[:n_q], variables[n_q : 2 * n_q], variables[2 * n_q : 2 * n_q + n_r]
        return [("q0", n_q, q), ("v0", n_q, v), ("r0", n_r, r), ("w0", problem.n_w, None), ("lam0", None, None)]
    if isinstance(problem, SemiExplicitDAE):
        return [("y0", problem.n_y, variables[: problem.n_y]), ("z0", problem.n_z, variables[problem.n_y :])]
    if isinstance(problem, SecondOrderDAE):
        return [("x0", n, variables), ("xp0", n, [f"{name}'" for name in variables])]
    if isinstance(problem, HessenbergDAE):
        return [("z0", n, variables), ("y0", None, None)]
    return [("y0", n, variables), ("yp0", n, None)]


def shape_of(value: Any) -> tuple[int | None, ...]:
    """The shape of a number, a list, or an array of any package; None for unknown lengths."""
    kind = getattr(value, "type", None)
    shape = getattr(kind, "shape", None) if not callable(kind) or hasattr(kind, "shape") else None
    if not isinstance(shape, tuple):
        shape = getattr(value, "shape", None)
    if shape is not None:
        return tuple(shape)
    if isinstance(value, (list, tuple)):
        return (len(value), *(shape_of(value[0]) if value else ()))
    return ()


def has(value: Any, kind: type) -> bool:
    """Whether a value is an instance of a class, or a list that contains one."""
    if isinstance(value, (list, tuple)):
        return any(has(entry, kind) for entry in value)
    return isinstance(value, kind)


def as_vector(form: ArgumentForm, array: Callable, reshape: Callable, broadcast: Callable, join: Callable) -> Any:
    """The numbers of all leaves as one vector, or as rows of a batch, in the arrays of a package.

    Parameters
    ----------
    array, reshape, broadcast, join : callable
        ``array(value)``, ``reshape(x, shape)``, ``broadcast(x, shape)`` and ``join(list)`` along the last axis.
    """
    if not form.values:
        return array(np.zeros(0))
    arrays = [array(value) for value in form.values]
    batch = [x for x, leaf in zip(arrays, form.leaves) if x.ndim > len(leaf.shape)]
    if not batch:
        return join([reshape(x, (leaf.size,)) for x, leaf in zip(arrays, form.leaves)])
    counts = {shape_of(x)[0] for x in batch if shape_of(x)[0] is not None}
    if len(counts) > 1:
        sizes = [f"{leaf.name} {shape_of(x)[0]}" for x, leaf in zip(arrays, form.leaves) if x.ndim > len(leaf.shape)]
        raise InvalidProblemError(f"arguments have batches of different lengths: {', '.join(sizes)}")
    count = counts.pop() if counts else batch[0].shape[0]
    rows = [
        reshape(x, (count, leaf.size))
        if x.ndim > len(leaf.shape)
        else broadcast(reshape(x, (1, leaf.size)), (count, leaf.size))
        for x, leaf in zip(arrays, form.leaves)
    ]
    return join(rows)
