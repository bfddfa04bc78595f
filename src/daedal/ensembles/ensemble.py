"""The result of :func:`daedal.solve_many`."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from daedal.common.messages import unknown_name
from daedal.common.tabular import Tabular
from daedal.ensembles.columns import Listed, Members, Named
from daedal.ensembles.part import EVENT, EVENT_FIELDS, FINISHED, NOT_RUN, STATUS, StateLayout
from daedal.errors import InvalidProblemError
from daedal.solution.schema import (
    ArrayFormat,
    Integer,
    ListOf,
    MappingOf,
    NumberFormat,
    Optional,
    Plain,
    RecordFormat,
    Text,
)


@dataclass(eq=False)
class Ensemble:
    """Many runs of one problem.

    Attributes
    ----------
    members : int
        Number of members.
    t : numpy.ndarray or None
        The output times, `t_eval`.
    final : namespace
        ``final.t`` (members,), ``final.y`` (members, n) and, for mechanisms, ``final.q``, ``final.v`` (members, n_q),
        at the end of each run: the end of the interval, or the event that stopped it. NaN for failed runs.
    y, q, v : numpy.ndarray, shape (members, n, nt)
        States at `t`, NaN after the end of a run.
    outputs : dict of numpy.ndarray
        The outputs requested by ``outputs=``, with a leading axis for the members.
    reduced : dict
        ``reduced["mean"]["y"]`` and so on: the reductions of each quantity. States have the name ``y``.
    status : numpy.ndarray of str
        ``"finished"``, ``"event"``, ``"failed"``, ``"timed out"`` or ``"not run"``.
    failed : numpy.ndarray of int
        The failed members, excluding those that were not run.
    messages : dict of int to str
        Messages of members that failed or timed out, by member.
    events : dict of numpy.ndarray
        The events of all members: columns ``member``, ``t``, ``name``, ``direction``, ``terminal``.
    names : tuple of str
        Names of the entries of a state.
    message : str
        Number of runs and of successes, and the backend with the reason for its choice.
    seconds : float
        Duration of the computation.

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0})
    >>> runs = daedal.solve_many(decay, (0.0, 1.0), ([1.0], None), params={"k": np.array([0.5, 1.0, 2.0])})
    >>> print(runs.final.y[:, 0].round(4), runs.failed.size)
    [0.6065 0.3679 0.1353] 0
    """

    members: int
    t: np.ndarray | None
    t_final: np.ndarray
    arrays: dict[str, np.ndarray]
    reduced: dict[str, dict[str, Any]]
    code: np.ndarray
    messages: dict[int, str]
    failed: np.ndarray
    message: str
    seconds: float
    layout: StateLayout | None = None
    event_rows: list[tuple[Any, ...]] = field(default_factory=list)
    inputs: Members | None = None
    varied: dict[str, np.ndarray] | None = None  # varying quantities, if their names differ from the inputs
    again: Any = None  # solves some of the members again with other options
    attributes: dict[str, Any] = field(default_factory=dict)  # user's notes, saved in files
    params: ClassVar[Any] = None

    # --- states -----------------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries of a state."""
        return () if self.layout is None else self.layout.names

    @property
    def final(self) -> SimpleNamespace:
        """Time and states at the end of each run."""
        return SimpleNamespace(t=self.t_final, **self._parts("final"))

    def _parts(self, name: str) -> dict[str, np.ndarray]:
        values = self.arrays.get(name)
        if values is None or self.layout is None:
            if self.reduced:
                raise InvalidProblemError("with reduce= the members are not stored; see ensemble.reduced")
            raise InvalidProblemError(
                "no run was successful; see ensemble.messages for the reasons"
                if name == "final" or self.layout is None
                else "states are stored at t_eval, which was not given, or outputs were chosen instead"
            )
        return self.layout.parts(values)

    def _state(self, name: str) -> np.ndarray:
        parts = self._parts("y")
        if name not in parts:
            raise AttributeError(f"{name} is available for mechanisms only; use y")
        return parts[name]

    @property
    def y(self) -> np.ndarray:
        """States, shape (members, n, nt)."""
        return self._state("y")

    @property
    def q(self) -> np.ndarray:
        """Positions, shape (members, n_q, nt)."""
        return self._state("q")

    @property
    def v(self) -> np.ndarray:
        """Velocities, shape (members, n_q, nt)."""
        return self._state("v")

    @property
    def outputs(self) -> dict[str, np.ndarray]:
        """The chosen outputs."""
        return {n.removeprefix("output:"): values for n, values in self.arrays.items() if n.startswith("output:")}

    def __getitem__(self, name: str) -> np.ndarray:
        """An output, or a variable by name: at `t`, or at the end if no times were given."""
        if name in self.outputs:
            return self.outputs[name]
        if name not in self.names:
            raise unknown_name(name, [*self.outputs, *self.names], "output or variable")
        values = self._parts("y" if "y" in self.arrays else "final")["y"]
        return values[:, self.names.index(name)]

    # --- how the runs ended ----------------------------------------------------------------------------------------

    @property
    def status(self) -> np.ndarray:
        """How each run ended, as text."""
        return np.array(STATUS, dtype=object)[self.code]

    @property
    def success(self) -> bool:
        """Whether all runs were successful."""
        return bool(np.all(np.isin(self.code, (FINISHED, EVENT))))

    @property
    def not_run(self) -> np.ndarray:
        """The members that were not run because of an interrupt."""
        return np.flatnonzero(self.code == NOT_RUN)

    @property
    def events(self) -> dict[str, np.ndarray]:
        """The events of all members, as columns."""
        rows = sorted(self.event_rows, key=lambda row: (row[0], row[1]))
        kinds = (np.int64, float, object, np.int64, bool)
        columns = list(zip(*rows)) or [()] * len(EVENT_FIELDS)
        return {name: np.array(c, dtype=kind) for name, c, kind in zip(EVENT_FIELDS, columns, kinds)}

    def parameters(self) -> dict[str, np.ndarray]:
        """The varying starts and parameters, by name: columns of numbers with one row for each member."""
        if self.varied is not None:
            return self.varied
        return {} if self.inputs is None else varying(self.inputs, self.members)

    def retry(self, **options: Any) -> Ensemble:
        """Rerun the members that failed or were not run, with other options, and insert the results.

        The options are those of :func:`daedal.solve_many` except starts, parameters and output. Successful members are
        unchanged.
        """
        if self.again is None or self.reduced:
            raise InvalidProblemError(
                "retry needs the members: it is not possible with reduce= or after loading from a file"
            )
        rows = np.union1d(self.failed, self.not_run)
        if not rows.size:
            return self
        other = self.again(rows, options)
        return _merged(self, other, rows)

    # --- tables -----------------------------------------------------------------------------------------------------

    def to_dataframe(self) -> Any:
        """Return a pandas frame with a row for each member: varying inputs, final states, numeric outputs, status."""
        return to_dataframe(self)

    def to_xarray(self) -> Any:
        """An xarray data set with the dimensions member, variable and time."""
        return to_xarray(self)

    def save(self, path: Any) -> Path:
        """Write the ensemble to a file for :func:`daedal.load`: an archive of NumPy arrays (.npz), without code.

        ``numpy.load`` also reads its arrays ``t``, ``final``, ``y`` and ``t_final``. Returns the path, which ends in
        ``.npz``. A loaded ensemble has everything except ``retry``. A name that ends in ``.zarr`` creates a Zarr group
        of the same arrays instead, which other programs can read in parts.
        """
        if Path(path).suffix == ".zarr":
            return save_zarr(self, Path(path))
        from daedal.solution.file import save

        return save(self, path)

    def plot(self, kind: str = "auto", **options: Any) -> Any:
        """Bands, lines or a scatter matrix; see :func:`daedal.viz.plot_ensemble`."""
        from daedal.viz import plot_ensemble

        return plot_ensemble(self, kind, **options)

    def summary(self) -> list[tuple[str, str]]:
        """Rows of the summary table of an ensemble."""
        counts = {word: int(np.sum(self.code == k)) for k, word in enumerate(STATUS)}
        kept = [name.removeprefix("output:") for name in self.arrays] or [f"{name} of all" for name in self.reduced]
        rate = self.members / self.seconds if self.seconds > 0.0 else 0.0
        return [
            ("members", str(self.members)),
            ("status", ", ".join(f"{count} {word}" for word, count in counts.items() if count)),
            ("kept", ", ".join(kept) or "nothing"),
            ("seconds", f"{self.seconds:.4g} ({rate:.4g} runs a second)"),
        ]

    def __repr__(self) -> str:
        return f"Ensemble\n{Tabular('ll', self.summary(), indent=2)}\n  {self.message}"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"again": None}


def varying(inputs: Members, count: int) -> dict[str, np.ndarray]:
    """Columns of numbers that differ between members."""
    found: dict[str, np.ndarray] = {}
    for values in (inputs.starts, inputs.params):
        if values is None or isinstance(values, Listed) or not hasattr(values, "columns"):
            continue
        columns = values.columns.items() if isinstance(values, Named) else ((None, c) for c in values.columns)
        for key, column in columns:
            if column is None or column.values.shape[0] != count or column.values.dtype == object or count == 1:
                continue
            name = str(key) if key is not None else column.name.removeprefix("initial ").strip("()")
            flat = column.values.reshape(count, -1)
            labels = [name] if column.values.ndim == 1 else [f"{name}[{k}]" for k in range(flat.shape[1])]
            found |= {label: flat[:, k] for k, label in enumerate(labels) if np.any(flat[:, k] != flat[0, k])}
    return found


def _merged(old: Ensemble, new: Ensemble, rows: np.ndarray) -> Ensemble:
    arrays = {name: values.copy() for name, values in old.arrays.items()}
    for name, values in new.arrays.items():
        if name not in arrays:
            arrays[name] = np.full((old.members, *values.shape[1:]), np.nan)
        arrays[name][rows] = values
    code, t_final = old.code.copy(), old.t_final.copy()
    code[rows], t_final[rows] = new.code, new.t_final
    messages = {k: text for k, text in old.messages.items() if k not in set(rows.tolist())}
    messages |= {int(rows[k]): text for k, text in new.messages.items()}
    events = [row for row in old.event_rows if row[0] not in set(rows.tolist())]
    events += [(int(rows[row[0]]), *row[1:]) for row in new.event_rows]
    left = rows.size - new.failed.size - new.not_run.size
    return replace(
        old,
        arrays=arrays,
        code=code,
        t_final=t_final,
        messages=messages,
        failed=rows[new.failed],
        event_rows=events,
        layout=old.layout or new.layout,
        seconds=old.seconds + new.seconds,
        message=f"{old.message} Of {rows.size} that had failed or were not run, {left} succeeded when run again.",
    )


# --- contents of a file -----------------------------------------------------------------------------------------------

_OUTPUT = "output:"
_EVENTS = RecordFormat(
    {
        "member": ArrayFormat("i8", ("events",)),
        "t": ArrayFormat("f8", ("events",)),
        "name": ListOf(Text(), "events"),
        "direction": ArrayFormat("i8", ("events",)),
        "terminal": ArrayFormat("i8", ("events",)),
    },
    dict,
    take=dict,
)
_FIELDS = {
    "members": Integer(),
    "code": ArrayFormat("i8", (None,)),
    "failed": ArrayFormat("i8", (None,)),
    "t": Optional(ArrayFormat("f8", (None,))),
    "t_final": ArrayFormat("f8", (None,)),
    "final": Optional(ArrayFormat("f8", (None, None))),
    "y": Optional(ArrayFormat("f8", (None, None, None))),
    "outputs": Plain(),
    "reduced": Plain(),
    "varied": Plain(),
    "messages": MappingOf(Text()),
    "message": Text(),
    "seconds": NumberFormat(),
    "names": Optional(ListOf(Text(), None, tuple)),
    "n_q": Optional(Integer(1)),
    "events": _EVENTS,
}


def _taken(ensemble: Ensemble) -> dict[str, Any]:
    arrays, layout = ensemble.arrays, ensemble.layout
    same = ("members", "code", "failed", "t", "t_final", "messages", "message", "seconds", "events")
    return {name: getattr(ensemble, name) for name in same} | {
        "final": arrays.get("final"),
        "y": arrays.get("y"),
        "outputs": ensemble.outputs,
        "reduced": ensemble.reduced,
        "varied": ensemble.parameters(),
        "names": None if layout is None else layout.names,
        "n_q": None if layout is None else layout.n_q,
    }


def _wrong(given: dict[str, Any]) -> str | None:
    """Inconsistencies in the sizes of the parts or in their references."""
    members, code, names = given["members"], given["code"], given["names"]
    if code.size and not 0 <= code.min() <= code.max() < len(STATUS):
        return "has members with an unknown status"
    rows = [given["failed"], given["events"]["member"]]
    if any(row.size and not 0 <= row.min() <= row.max() < members for row in rows):
        return "refers to members that do not exist"
    if not all(text.isdecimal() and int(text) < members for text in given["messages"]):
        return "has messages of members that do not exist"
    kept = [array for array in (given["final"], given["y"]) if array is not None]
    if kept and names is None:
        return "has states without names"
    if any(array.shape[0] != members or array.shape[1] != len(names) for array in kept):
        return "has states of different members or variables"
    if given["y"] is not None and (given["t"] is None or given["y"].shape[2] != given["t"].size):
        return "has states at different times"
    if given["n_q"] is not None and (names is None or 2 * given["n_q"] > len(names)):
        return "has more coordinates than names"
    if not all(isinstance(given[name], dict) for name in ("outputs", "reduced", "varied")):
        return "has outputs, reductions or parameters without names"
    for name in ("outputs", "varied"):
        if not all(isinstance(array, np.ndarray) and array.shape[:1] == (members,) for array in given[name].values()):
            return f"has {name} of different members"
    return None


def _made(outputs, final, y, names, n_q, events, messages, code, **given) -> Ensemble:
    arrays = {name: array for name, array in (("final", final), ("y", y)) if array is not None}
    return Ensemble(
        arrays=arrays | {f"{_OUTPUT}{name}": array for name, array in outputs.items()},
        code=code,
        messages={int(member): text for member, text in messages.items()},
        layout=None if names is None else StateLayout(names, n_q),
        event_rows=[(*row[:-1], bool(row[-1])) for row in zip(*(list(events[name]) for name in EVENT_FIELDS))],
        **given,
    )


LAYOUTS = {"Ensemble": RecordFormat(_FIELDS, _made, _wrong, _taken)}


# --- an ensemble as a frame or a data set -----------------------------------------------------------------------------


def to_dataframe(ensemble: Any) -> Any:
    """A row for each member."""
    pandas = imported("pandas", "to_dataframe")
    columns: dict[str, Any] = dict(ensemble.parameters())
    if "final" in ensemble.arrays:
        final = ensemble.arrays["final"]
        columns |= {_free(columns, name): final[:, k] for k, name in enumerate(ensemble.names)}
        columns["t_final"] = ensemble.t_final
    for name, values in ensemble.outputs.items():
        if values.ndim == 1:
            columns[name] = values
    columns["status"] = ensemble.status
    frame = pandas.DataFrame(columns)
    frame.index.name = "member"
    return frame


def _free(columns: dict[str, Any], name: str) -> str:
    return f"{name} (final)" if name in columns else name


def to_xarray(ensemble: Any) -> Any:
    """A data set with the dimensions member, variable and time."""
    xarray = imported("xarray", "to_xarray")
    coordinates: dict[str, Any] = {"member": np.arange(ensemble.members)}
    coordinates |= {name: ("member", values) for name, values in ensemble.parameters().items()}
    data: dict[str, Any] = {"status": ("member", ensemble.status.astype(str))}
    if ensemble.t_final.size:
        data["t_final"] = ("member", ensemble.t_final)
    if ensemble.names:
        coordinates["variable"] = list(ensemble.names)
    if ensemble.t is not None:
        coordinates["time"] = ensemble.t
    if "final" in ensemble.arrays:
        data["final"] = (("member", "variable"), ensemble.arrays["final"])
    if "y" in ensemble.arrays:
        data["y"] = (("member", "variable", "time"), ensemble.arrays["y"])
    for name, values in ensemble.outputs.items():
        timed = values.ndim == 2 and ensemble.t is not None and values.shape[1] == ensemble.t.size
        inner = ("time",) if timed else tuple(f"{name}_{k}" for k in range(1, values.ndim))
        data[name] = (("member", *inner), values)
    return xarray.Dataset(data, coordinates, {"message": ensemble.message})


def _arrays(ensemble: Any) -> dict[tuple[str, ...], np.ndarray]:
    """All arrays of numbers by name: inputs, states, outputs, reductions."""
    found: dict[tuple[str, ...], Any] = {("parameter", name): v for name, v in ensemble.parameters().items()}
    found |= {(name.removeprefix("output:"),): values for name, values in ensemble.arrays.items()}
    for name, quantities in ensemble.reduced.items():
        for quantity, value in quantities.items():
            parts = {(k,): v for k, v in value.items()} if isinstance(value, dict) else {(): value}
            found |= {(name, quantity, *map(str, k)): v for k, v in parts.items()}
    if ensemble.t is not None:
        found["t",] = ensemble.t
    found["t_final",] = ensemble.t_final
    return {key: np.asarray(values) for key, values in found.items()}


def save_zarr(ensemble: Any, target: Path) -> Path:
    """Write a Zarr group completely or not at all: it is written under a temporary name and then replaces an older
    one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    zarr = imported("zarr", f"saving {target.name}")
    beside, old = (target.with_name(f".{target.name}.{os.getpid()}{end}") for end in ("", ".old"))
    if target.exists() and not (target / "zarr.json").exists():
        raise InvalidProblemError(f"{target} exists, and is not a Zarr group: choose another name")
    try:
        group = zarr.open_group(beside, mode="w")
        for key, values in _arrays(ensemble).items():
            group.create_array("/".join(key), data=values)
        group.create_array("status", data=ensemble.code)
        group.create_array("failed", data=ensemble.failed)
        group.attrs["names"], group.attrs["status"] = list(ensemble.names), list(STATUS)
        group.attrs["messages"] = {str(member): text for member, text in ensemble.messages.items()}
        group.attrs["message"] = ensemble.message
        if target.exists():
            target.rename(old)
        beside.rename(target)
    finally:
        for left in (beside, old):
            shutil.rmtree(left, ignore_errors=True)
    return target


def imported(package: str, what: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError:
        extra = "zarr" if package == "zarr" else "data"
        raise InvalidProblemError(f"{what} needs {package}: pip install 'daedal[{extra}]'") from None
