"""The result of :func:`daedal.solve_many`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from daedal.ensembles.columns import Listed, Members, Named
from daedal.ensembles.layout import StateLayout
from daedal.ensembles.part import EVENT, EVENT_FIELDS, FINISHED, NOT_RUN, STATUS
from daedal.errors import InvalidProblemError
from daedal.messages import unknown_name
from daedal.tabular import Tabular


@dataclass(eq=False)
class Ensemble:
    """Many runs of one problem.

    Attributes
    ----------
    members : int
        How many there are.
    t : numpy.ndarray or None
        The output times, `t_eval`.
    final : namespace
        ``final.t`` (members,), ``final.y`` (members, n) and, of mechanisms, ``final.q``, ``final.v`` (members, n_q), at
        the end of each run: the end of the interval, or the event that stopped it. Nan for runs that failed.
    y, q, v : numpy.ndarray, shape (members, n, nt)
        States at `t`, nan behind the end of a run.
    outputs : dict of numpy.ndarray
        The outputs that were chosen, with a leading axis for the members.
    reduced : dict
        ``reduced["mean"]["y"]`` and so on: what the reductions gave of each quantity. States are called ``y``.
    status : numpy.ndarray of str
        ``"finished"``, ``"event"``, ``"failed"``, ``"timed out"`` or ``"not run"``.
    failed : numpy.ndarray of int
        The members that did not come through, without those that were not run.
    messages : dict of int to str
        Why, by member.
    events : dict of numpy.ndarray
        The events of all members: columns ``member``, ``t``, ``name``, ``direction``, ``terminal``.
    names : tuple of str
        Names of the entries of a state.
    message : str
        Where the runs were made, how many, how long it took.
    seconds : float
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
    varied: dict[str, np.ndarray] | None = None  # what varies, where it has other names than the inputs
    again: Any = None  # solves some of the members with other options
    attributes: dict[str, Any] = field(default_factory=dict)  # notes of the user, which files keep
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
                raise InvalidProblemError("with reduce= the members themselves are not kept; see ensemble.reduced")
            raise InvalidProblemError(
                "no member came through; ensemble.messages says why"
                if name == "final"
                else "states are kept at t_eval, which was not given, or outputs were chosen in their place"
            )
        return self.layout.parts(values)

    def _state(self, name: str) -> np.ndarray:
        parts = self._parts("y")
        if name not in parts:
            raise AttributeError(f"{name} belongs to mechanisms; take y")
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
        """The outputs that were chosen."""
        return {n.removeprefix("output:"): values for n, values in self.arrays.items() if n.startswith("output:")}

    def __getitem__(self, name: str) -> np.ndarray:
        """An output, or a variable by name: at `t`, or at the end where there is none."""
        if name in self.outputs:
            return self.outputs[name]
        if name not in self.names:
            raise unknown_name(name, [*self.outputs, *self.names], "output or variable")
        values = self._parts("y" if "y" in self.arrays else "final")["y"]
        return values[:, self.names.index(name)]

    # --- how they ended ---------------------------------------------------------------------------------------------

    @property
    def status(self) -> np.ndarray:
        """How each run ended, in words."""
        return np.array(STATUS, dtype=object)[self.code]

    @property
    def success(self) -> bool:
        """Whether all members came through."""
        return bool(np.all(np.isin(self.code, (FINISHED, EVENT))))

    @property
    def not_run(self) -> np.ndarray:
        """The members that were not run because the user interrupted."""
        return np.flatnonzero(self.code == NOT_RUN)

    @property
    def events(self) -> dict[str, np.ndarray]:
        """The events of all members, as columns."""
        rows = sorted(self.event_rows, key=lambda row: (row[0], row[1]))
        kinds = (np.int64, float, object, np.int64, bool)
        columns = list(zip(*rows)) or [()] * len(EVENT_FIELDS)
        return {name: np.array(c, dtype=kind) for name, c, kind in zip(EVENT_FIELDS, columns, kinds)}

    def parameters(self) -> dict[str, np.ndarray]:
        """What varies among the starts and parameters, by name: columns of numbers with one row for each member."""
        if self.varied is not None:
            return self.varied
        return {} if self.inputs is None else varying(self.inputs, self.members)

    def retry(self, **options: Any) -> Ensemble:
        """Run the members that failed, or were not run, once more, with other options, and put the results in place.

        The options are those of :func:`daedal.solve_many` besides starts, parameters and output. The members that came
        through stay as they are.
        """
        if self.again is None or self.reduced:
            raise InvalidProblemError("retry needs the members: not possible with reduce= or after loading from a file")
        rows = np.union1d(self.failed, self.not_run)
        if not rows.size:
            return self
        other = self.again(rows, options)
        return _merged(self, other, rows)

    # --- tables -----------------------------------------------------------------------------------------------------

    def to_dataframe(self) -> Any:
        """A pandas frame with a row for each member: what varies, final states, outputs that are numbers, status."""
        from daedal.ensembles.tables import to_dataframe

        return to_dataframe(self)

    def to_xarray(self) -> Any:
        """An xarray data set with the dimensions member, variable and time."""
        from daedal.ensembles.tables import to_xarray

        return to_xarray(self)

    def save(self, path: Any) -> Path:
        """Write the ensemble to a file that :func:`daedal.load` reads: an archive of NumPy arrays (.npz), no code.

        ``numpy.load`` reads ``t``, ``final``, ``y`` and ``t_final`` of it as well. Returns the path, which ends in
        ``.npz``. What was loaded has everything but ``retry``. A name that ends in ``.zarr`` makes a Zarr group of the
        same arrays instead, which other programs read in parts.
        """
        if Path(path).suffix == ".zarr":
            from daedal.ensembles.tables import save_zarr

            return save_zarr(self, Path(path))
        from daedal.results.file import save

        return save(self, path)

    def plot(self, kind: str = "auto", **options: Any) -> Any:
        """Bands, lines or a scatter matrix; see :func:`daedal.viz.plot_ensemble`."""
        from daedal.viz import plot_ensemble

        return plot_ensemble(self, kind, **options)

    def summary(self) -> list[tuple[str, str]]:
        """The rows of the small table shown for an ensemble."""
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
    """Columns of numbers that are not the same for all members."""
    found: dict[str, np.ndarray] = {}
    for values in (inputs.starts, inputs.params):
        if values is None or isinstance(values, Listed) or not hasattr(values, "columns"):
            continue
        columns = values.columns.items() if isinstance(values, Named) else ((None, c) for c in values.columns)
        for key, column in columns:
            if column is None or column.values.shape[0] != count or column.values.dtype == object or count == 1:
                continue
            name = str(key) if key is not None else column.name.removeprefix("initials ").strip("()")
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
        message=f"{old.message} Of {rows.size} that had not, {left} came through when they were run again.",
    )
