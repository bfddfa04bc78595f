"""Conversion of the starts and parameters given by the user into columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.driver.request import Settings
from daedal.ensembles.columns import SHARED, DrivenColumns, Listed, MemberColumn, Named, Streamed, Vectors
from daedal.ensembles.part import StateLayout
from daedal.errors import InvalidProblemError
from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.problems import HessenbergDAE, LinearDAE, MechanicalSystem, Quasilinear, SecondOrderDAE, SemiExplicitDAE
from daedal.problems.checks import check_real
from daedal.problems.named_inputs import require_inputs
from daedal.problems.symbols import given_params, renewed, symbol_name

# --- starts -----------------------------------------------------------------------------------------------------------


def read_starts(problem: Any, initial: Any) -> Any:
    """`initial` of :func:`daedal.solve_many` as columns, a list or a stream."""
    if hasattr(initial, "read_before"):
        return initial.read_before
    if initial is None:
        raise InvalidProblemError("initial is missing: give the initial values of one run, or of each run")
    if hasattr(initial, "columns") and hasattr(initial, "to_dict"):
        initial = _frame(initial)
    if isinstance(initial, Mapping):
        return _by_label(problem, _named(initial, "initial"))
    if isinstance(problem, Quasilinear) and isinstance(initial, list) and not _is_list_of_members(initial):
        if not any(x is None for x in initial):  # y0 alone suffices, for one run or for each member
            initial = check_real(initial, "initial", "hold y0 of one run, or of each member")
    if isinstance(initial, np.ndarray):
        return _stacked(problem, initial)
    if _is_list_of_members(initial):
        return _arranged_starts(problem, list(initial))
    if isinstance(initial, Iterator):
        return Streamed("initial", initial, lambda entries: _arranged_starts(problem, entries))
    if not isinstance(initial, (tuple, list)):
        raise InvalidProblemError(
            "initial must be the initial values of one run with a leading axis for the members, a mapping of names to "
            f"arrays, a frame, a list with one entry for each member or an iterator, got {type(initial).__name__}"
        )
    if isinstance(problem, HybridProblem) or (initial and isinstance(initial[0], str)):
        return _of_mode(problem, initial)
    return Vectors(_vectors(problem, initial))


def _by_label(problem: Any, starts: Any) -> Any:
    """Starts by name as vectors, if every variable of a mechanism is given."""
    if not isinstance(starts, Named) or not isinstance(problem, MechanicalSystem):
        return starts
    labels = [problem.label(i) for i in range(problem.n)]
    if set(starts.columns) != set(labels) or any(c.values.dtype != float for c in starts.columns.values()):
        return starts
    lengths = {column.values.shape[0] for column in starts.columns.values()}
    if len(lengths - {SHARED}) > 1:
        return starts
    values = [np.broadcast_to(starts.columns[label].values, max(lengths)) for label in labels]
    return _stacked(problem, np.column_stack(values))


def _arranged_starts(problem: Any, entries: list[Any]) -> Any:
    """Convert starts given by member to columns, if they are vectors of the same form or have the same names."""
    if isinstance(problem, HybridProblem) or not all(isinstance(entry, tuple) for entry in entries):
        return _by_label(problem, _listed("initial", entries))
    if len({tuple(value is None for value in entry) for entry in entries}) > 1:
        return Listed("initial", entries)
    try:
        columns = [None if part[0] is None else np.stack([np.asarray(x) for x in part]) for part in zip(*entries)]
        return Vectors(_vectors(problem, columns))
    except (ValueError, InvalidProblemError):
        return Listed("initial", entries)  # errors are reported by the member


def _arranged_params(before: Any, entries: list[Any]) -> Any:
    """Convert parameters given by member to columns, if they are numbers of the same form."""
    if isinstance(before, Mapping) or before is None or np.ndim(before) != 1:
        return _listed("params", entries)
    try:
        rows = np.stack([np.asarray(entry, dtype=float) for entry in entries])
        return Vectors([MemberColumn("params", _parameter_rows(rows, np.size(before)))], bare=True)
    except (TypeError, ValueError, InvalidProblemError):
        return Listed("params", entries)


def _is_list_of_members(initial: Any) -> bool:
    return isinstance(initial, list) and bool(initial) and all(isinstance(x, (tuple, dict)) for x in initial)


def _of_mode(problem: Any, initial: Any) -> Any:
    """(mode, initial values in the mode)."""
    if len(initial) != 2 or not isinstance(initial[0], str):
        raise InvalidProblemError(
            "initial of a problem with modes must be (mode, initial values of the mode), a list of such pairs or an "
            "iterator"
        )
    mode, inner = initial
    modes = getattr(problem, "modes", {})
    if mode not in modes:
        raise unknown_name(mode, modes, "mode", "initial")
    of_mode = modes[mode].problem
    if isinstance(inner, np.ndarray):
        stacked = _stacked(of_mode, inner)
        return Vectors(stacked.columns, stacked.bare, mode)
    if not isinstance(inner, (tuple, list)):
        raise InvalidProblemError(f"initial[1] must be the initial values of mode {mode!r}, got {inner!r}")
    return Vectors(_vectors(of_mode, inner), mode=mode)


def _sizes(problem: Any) -> list[tuple[str, int | None]]:
    """Names of the entries of the initial values, and their lengths if known."""
    if isinstance(problem, MechanicalSystem):
        return [("q0", problem.n_q), ("v0", problem.n_q), ("r0", problem.n_r), ("w0", problem.n_w), ("lam0", None)]
    if isinstance(problem, SemiExplicitDAE):
        return [("y0", problem.n_y), ("z0", problem.n_z)]
    if isinstance(problem, SecondOrderDAE):
        return [("x0", problem.n), ("xp0", problem.n)]
    if isinstance(problem, HessenbergDAE):
        return [("z0", None), ("y0", None)]
    n = getattr(problem, "n", None)
    return [("y0", n), ("yp0", n)]


def _vectors(problem: Any, initial: Sequence[Any]) -> list[MemberColumn | None]:
    sizes = _sizes(problem)
    if len(initial) > len(sizes):
        raise InvalidProblemError(f"initial has length {len(initial)}; expected {', '.join(n for n, _ in sizes)}")
    columns: list[MemberColumn | None] = []
    for values, (name, size) in zip(initial, sizes):
        columns.append(
            None if values is None else MemberColumn(f"initial ({name})", _rows(values, f"initial ({name})", size))
        )
    if not columns or columns[0] is None:
        raise InvalidProblemError(f"initial ({sizes[0][0]}) is missing")
    return columns


def _rows(values: Any, name: str, size: int | None) -> np.ndarray:
    """A vector or a stack of vectors as an array of shape (N or 1, size)."""
    array = _numbers(values, name)
    if array.ndim not in (1, 2):
        raise InvalidProblemError(f"{name} must have shape (n,) or (members, n), got {array.shape}")
    if size is not None and array.shape[-1] != size:
        hint = f"; for {array.size} members use shape ({array.size}, 1)" if size == 1 and array.ndim == 1 else ""
        raise InvalidProblemError(f"{name} has shape {array.shape}; the last axis must have length {size}{hint}")
    return np.ascontiguousarray(array if array.ndim == 2 else array[None])


def _numbers(values: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise ValueError
        return array.astype(float)
    except (TypeError, ValueError):
        raise InvalidProblemError(f"{name} must hold real numbers, got {_brief(values)}") from None


def _brief(values: Any) -> str:
    text = repr(values)
    return text if len(text) < 80 else text[:77] + "..."


def _stacked(problem: Any, array: np.ndarray) -> Vectors:
    """Complete states in rows: (q, v, r) of a mechanism, y of others."""
    if isinstance(problem, HybridProblem):
        raise InvalidProblemError("initial of a problem with modes must be (mode, initial values of the mode)")
    rows = _rows(array, "initial", None)
    sizes = [size for _, size in _sizes(problem)]
    if isinstance(problem, (HessenbergDAE, LinearDAE)):
        return Vectors([MemberColumn("initial", rows)], bare=True)
    whole = {MechanicalSystem: 3, SemiExplicitDAE: 2, SecondOrderDAE: 2}
    parts = next((number for kind, number in whole.items() if isinstance(problem, kind)), 1)
    lengths = [size or 0 for size in sizes[:parts]]
    if rows.shape[1] != sum(lengths):
        names = ", ".join(name for (name, _), length in zip(_sizes(problem), lengths) if length)
        raise InvalidProblemError(
            f"initial has shape {array.shape}; the last axis must have length {sum(lengths)} ({names})"
        )
    ends = np.cumsum(lengths)
    cut = [np.ascontiguousarray(rows[:, end - length : end]) for end, length in zip(ends, lengths)]
    columns: list[MemberColumn | None] = [MemberColumn("initial", part) for part in cut if part.shape[1]]
    return Vectors(columns if len(columns) > 1 else [*columns, None])


# --- parameters -------------------------------------------------------------------------------------------------------


def read_params(problem: Any, params: Any) -> Any:
    """`params` of :func:`daedal.solve_many` as columns, a list or a stream; None if there are none."""
    if params is None:
        return None
    if hasattr(params, "read_before"):
        return params.read_before
    is_factory = callable(problem)
    before: Any = None if is_factory else given_params(getattr(problem, "params", None))
    if before is None and not is_factory:
        raise InvalidProblemError(
            "params is given, but the problem was defined without parameters: define it with params=..., as the "
            "last argument of its functions, or pass a function of the parameters that returns the problem"
        )
    if hasattr(params, "columns") and hasattr(params, "to_dict"):
        params = _frame(params)
    if isinstance(params, Mapping):
        return _mapped(params, before, is_factory)
    if isinstance(params, list) and params and all(isinstance(entry, dict) for entry in params):
        return _listed("params", params)
    if isinstance(params, Iterator):
        return Streamed("params", params, lambda entries: _arranged_params(before, entries))
    if is_factory or isinstance(before, Mapping):
        raise InvalidProblemError(
            "params must be a mapping of names to arrays, a frame, a list of mappings or an iterator of them, "
            f"got {_brief(params)}"
        )
    width = np.size(before) if np.ndim(before) <= 1 else None
    return Vectors([MemberColumn("params", _parameter_rows(params, width))], bare=True, scalar=np.ndim(before) == 0)


def read_inputs(problem: Any, inputs: Any, hold: str, params: Any) -> tuple[Any, Any]:
    """The problem with the `inputs` of :func:`daedal.solve_many` shared by all members, and its converted parameters.

    If inputs vary between members, each member has separate parameters that contain them.
    """
    known = require_inputs(problem)
    if isinstance(inputs, list) and inputs and all(isinstance(entry, Mapping) for entry in inputs):
        entries = [known.signals(entry, hold) for entry in inputs]
    else:
        if not isinstance(inputs, Mapping):
            inputs = {known.names[0]: inputs} if len(known) == 1 else known.signals(inputs, hold)
        for name in inputs:
            _ = known[name]  # raises an error for unknown names
        varying = {name: split for name, value in inputs.items() if (split := _of_each(value, known.shapes[name]))}
        problem = problem.with_inputs({name: x for name, x in inputs.items() if name not in varying}, hold=hold)
        if not varying:
            return problem, params
        counts = {f"inputs[{name!r}]": len(values) for name, values in varying.items()}
        if len(set(counts.values())) > 1:
            raise InvalidProblemError(
                f"inputs have different numbers of members: {', '.join(f'{n} of {name}' for name, n in counts.items())}"
            )
        members = zip(*varying.values(), strict=True)
        entries = [known.signals(dict(zip(varying, values, strict=True)), hold) for values in members]
    if isinstance(params, Streamed):
        raise InvalidProblemError(
            "params is an iterator, which cannot be combined with inputs of each member: convert it to a list"
        )
    count = _common_length(len(entries), params)
    before, found = problem.params, []
    constant = not any(callable(x) for entry in entries for x in entry.values())
    if constant and len({frozenset(entry) for entry in entries}) == 1 and not isinstance(params, Listed):
        columns = {name: np.array([entry[name] for entry in entries]) for name in entries[0]}
        return problem, DrivenColumns(before, params, columns)
    for i in range(count):
        given = before if params is None else renewed(before, params.member(i))
        found.append(given._replace(inputs={**given.inputs, **entries[i if len(entries) > 1 else 0]}))
    return problem, Listed("params and inputs", found)


def _common_length(count: int, params: Any) -> int:
    """The number of members, from inputs and parameters."""
    for name, size in ({} if params is None else params.sizes).items():
        if size != SHARED and count not in (SHARED, size):
            raise InvalidProblemError(
                f"{name} has {size} members and inputs {count}: their lengths must be equal, or 1 for a value "
                "shared by all members"
            )
        count = max(count, size)
    return count


def _of_each(value: Any, shape: tuple[int, ...]) -> list[Any] | None:
    """Values of an input for each member; None if all members share them."""
    if callable(value) or hasattr(type(value), "polynomial_pieces"):
        return None
    if isinstance(value, (tuple, list)) and len(value) == 2 and np.ndim(value[0]) == 1:
        times, values = value
        return [(times, own) for own in values] if np.ndim(values) == 2 + len(shape) else None
    return list(value) if np.ndim(value) == 1 + len(shape) else None


def _parameter_rows(params: Any, width: int | None) -> np.ndarray:
    array = _numbers(params, "params")
    if width == 1 and array.ndim == 1:
        array = array[:, None]
    return _rows(array, "params", width)


def _mapped(params: Mapping, before: Any, is_factory: bool) -> Any:
    """Parameters by name, or by number if the problem's parameters are a vector."""
    if is_factory or isinstance(before, Mapping):
        known = before if isinstance(before, Mapping) else None
        return _named(params, "params", known)
    base, columns = np.atleast_1d(np.asarray(before, dtype=float)), []
    for key, values in params.items():
        if isinstance(key, bool) or not isinstance(key, (int, np.integer)) or not 0 <= key < base.size:
            raise InvalidProblemError(
                f"params: {key!r} is not among the parameters of the problem, which are numbered 0 to {base.size - 1}"
            )
        columns.append((int(key), _named({key: values}, "params").columns[key].values.reshape(-1)))
    count = max((values.size for _, values in columns), default=1)
    rows = np.tile(base, (count, 1))
    for key, values in columns:
        if values.size not in (SHARED, count):
            raise InvalidProblemError(f"params[{key}] has {values.size} members and another parameter has {count}")
        rows[:, key] = values
    return Vectors([MemberColumn("params", rows)], bare=True)


def _frame(frame: Any) -> dict[Any, np.ndarray]:
    """The columns of a pandas frame."""
    return {name: frame[name].to_numpy() for name in frame.columns}


def _listed(name: str, entries: list[Any]) -> Any:
    """Convert a list of mappings to columns if they have the same names and contain numbers; otherwise return it
    unchanged."""
    first = entries[0]
    if isinstance(first, dict) and all(isinstance(e, dict) and e.keys() == first.keys() for e in entries):
        columns = {key: [entry[key] for entry in entries] for key in first}
        if all(
            isinstance(v, (float, int, np.floating)) and not isinstance(v, bool) for c in columns.values() for v in c
        ):
            return _named({key: np.array(values, dtype=float) for key, values in columns.items()}, name)
    return Listed(name, entries)


def _named(values: Mapping, what: str, known: Mapping | None = None) -> Named:
    columns = {}
    for key, entry in values.items():
        label = f"{what}[{key!r}]"
        name = symbol_name(key) if known is not None and hasattr(key, "free_symbols") else key
        if known is not None and name not in known:
            raise InvalidProblemError(
                f"params: {name!r} is not among the parameters of the problem, which are {', '.join(map(repr, known))}"
            )
        columns[name] = MemberColumn(label, _of_name(entry, label, None if known is None else known[name]))
    if not columns:
        raise InvalidProblemError(f"{what} is empty")
    return Named(columns)


def _of_name(entry: Any, label: str, before: Any) -> np.ndarray:
    """Values of one name: numbers shared by all members, or with a leading axis; other objects are shared."""
    array = np.asarray(entry)
    if array.dtype.kind not in "fiub":
        if array.dtype.kind in "OUS" and array.ndim:
            return array.astype(object)
        if before is None and array.ndim == 0 and array.dtype.kind not in "US":
            raise InvalidProblemError(f"{label} must hold real numbers, got {_brief(entry)}")
        return np.array([entry], dtype=object)
    if array.dtype.kind != "b" and not (array.dtype.kind == "i" and isinstance(before, (int, np.integer))):
        array = array.astype(float)
    inner = 0 if before is None else np.ndim(before)
    if array.ndim == inner:
        return array[None]
    if array.ndim != inner + 1:
        shape = np.shape(before) if before is not None else ()
        raise InvalidProblemError(f"{label} has shape {array.shape}; expected {shape} or (members, *{shape})")
    return array


# --- the checked arguments of :func:`daedal.solve_many` ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EnsembleRequest:
    """The data shared by all members. Starts and parameters are passed in chunks."""

    problem: Any  # the problem, or a function of the parameters that returns it
    settings: Settings  # method, formulation, tolerances, events: the options of `prepare`
    span: tuple[float, float]
    t_eval: np.ndarray | None = None  # the output times requested by the user
    t_stop: float | None = None
    # Stored quantities of each run, by name or as a function of its solution; None for the states
    outputs: tuple[str, ...] | Callable[[Any], Any] | None = None
    keeps_states: bool = True  # whether the states at `t_eval` are stored
    keeps_events: bool = False  # whether the events of all members are stored
    member_timeout: float | None = None  # allowed seconds for one run
    layout: StateLayout | None = field(default=None)

    @property
    def is_factory(self) -> bool:
        """Whether the problem is a function of the parameters."""
        return callable(self.problem)

    @property
    def needs_solutions(self) -> bool:
        """Whether an output is computed from the whole solution, so that arrays of states do not suffice."""
        if self.outputs is None:
            return False
        return callable(self.outputs) or self.layout is None or any(n not in self.layout.names for n in self.outputs)

    @cached_property
    def times(self) -> np.ndarray:
        """The times at which states are computed: `t_eval`, and the end if it is not included."""
        end = np.array([self.span[1]])
        if self.t_eval is None or self.t_eval.size == 0:
            return end
        return self.t_eval if self.t_eval[-1] == end[0] else np.concatenate([self.t_eval, end])

    @property
    def n_times(self) -> int:
        """The number of times requested by the user."""
        return 0 if self.t_eval is None else self.t_eval.size
