"""Quantities of a solution by name: groups of rows over time, lookup, and tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.common.tabular import Tabular, derivative_name, duration, plural
from daedal.errors import InvalidProblemError, MissingPackageError
from daedal.solution.status import Status


@dataclass(frozen=True)
class Quantity:
    """Rows of one kind over time, computed on demand.

    Attributes
    ----------
    kind : str
        Name in an xarray dataset: ``"y"``, ``"lam"``, ...
    dimension : str
        Name of the dimension: ``"variable"``, ``"constraint"``, ...; empty for a single row.
    names : tuple of str
        The names of the rows.
    labels : tuple of str
        Labels along the dimension; the names of the rows by default.
    rows : callable
        ``rows() -> array (len(names), nt)``.
    in_tables : bool
        Whether tables show it unless columns are chosen.
    """

    kind: str
    dimension: str
    names: tuple[str, ...]
    rows: Callable[[], np.ndarray]
    labels: tuple[str, ...] = ()
    in_tables: bool = True


def values_and_slopes(names: Sequence[str], values: Callable[[], Any], slopes: Callable[[], Any]) -> list[Quantity]:
    """Variables and their derivatives, except derivatives that are variables too."""
    names = tuple(names)
    return [
        Quantity("y", "variable", names, values),
        Quantity("yp", "variable", tuple(derivative_name(name, 1) for name in names), slopes, labels=names),
    ]


def row_named(quantities: Iterable[Quantity], name: Any) -> np.ndarray:
    """The row of the given name; the first one if a derivative has the name of a variable."""
    known: list[str] = []
    for quantity in quantities:
        if name in quantity.names:
            return np.asarray(quantity.rows())[quantity.names.index(name)]
        known += quantity.names
    raise unknown_name(name, known)


class NamedValues(np.ndarray):
    """An array with named rows: ``values["x"]``. Arrays computed from it have no names."""

    _find: Callable[[str], np.ndarray] | None

    @classmethod
    def of(cls, values: np.ndarray, find: Callable[[str], np.ndarray]) -> NamedValues:
        """Attach names to an array; ``find(name)`` returns a row."""
        named = values.view(cls)
        named._find = find
        return named

    def __array_finalize__(self, source):
        self._find = None

    def __getitem__(self, key):
        if not isinstance(key, str):
            return self.view(np.ndarray)[key]
        if self._find is None:
            raise InvalidProblemError(
                f"only sol(t) itself has names; index it before other operations: sol(t)[{key!r}]"
            )
        return self._find(key)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        plain = [np.asarray(part) if isinstance(part, NamedValues) else part for part in inputs]
        if out is not None:
            options["out"] = tuple(np.asarray(part) if isinstance(part, NamedValues) else part for part in out)
        return getattr(ufunc, method)(*plain, **options)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __reduce__(self):
        return self.view(np.ndarray).__reduce__()


def no_dense_output() -> InvalidProblemError:
    """Error for times between the output points of a solution without dense output."""
    return InvalidProblemError("the solution has no dense output; call solve with dense_output=True")


def check_within(times: np.ndarray, interval: tuple[float, float]) -> None:
    """Raise unless all times lie in the interval of a solution, given with the smaller end first."""
    low, high = interval
    slack = 1e-9 * (high - low) + 1e-14 * max(abs(low), abs(high))
    inside = (times >= low - slack) & (times <= high + slack)
    if not np.all(inside):
        raise InvalidProblemError(
            f"t must lie in the integrated interval [{low}, {high}], got {np.asarray(times)[~inside][0]}"
        )


class Tabulated:
    """A solution whose quantities have names.

    Attributes
    ----------
    event_names : tuple of str
        The names of the switching functions given as `events`.
    params : object
        The parameters of the run, if they are plain data: numbers, texts, arrays, lists and mappings.
    attributes : dict
        User notes, such as ``{"units": {"x": "m"}, "source": "bench 3"}``; included in tables and files.
    """

    t: Any
    events: Any
    event_names: tuple[str, ...] = ()
    params: Any = None
    stats: Any
    status: Status
    message: str
    sensitivities: Any = None

    def sensitivity(self, parameter, t=None) -> np.ndarray:
        """The derivative of `y` with respect to a parameter, (n, nt); at the times `t` from the dense output.

        The parameter is one of those requested by ``solve(..., sensitivities=...)``, given by name or index; an initial
        value has the name ``"x(0)"``. See the guide on sensitivities.
        """
        if self.sensitivities is None:
            raise InvalidProblemError(
                "the solution has no sensitivities: call solve with sensitivities=[...]; files do not hold them"
            )
        return self.sensitivities.at(parameter, t)

    # --- display ----------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """Title of the solution."""
        raise NotImplementedError

    def summary(self) -> list[tuple[str, str]]:
        """The rows of the summary table of a solution."""
        raise NotImplementedError

    def _run_in_words(self) -> dict[str, str]:
        """Rows of the summary table that are common to all solutions."""
        stats = self.stats
        interval = f"{self.t[0]:g} to {self.t[-1]:g}" if self.t.size else "nothing stored"
        return {
            "time": f"{interval} ({plural(self.t.size, 'point')})",
            "steps": f"{stats.steps} accepted, {stats.rejected} rejected",
            "evaluations": f"{stats.residual_evaluations} ({stats.jacobian_residual_evaluations} for Jacobians)",
            "seconds": self.cost_in_words,
        }

    def __repr__(self) -> str:
        return f"{self.title}\n{Tabular('ll', self.summary(), indent=2)}\n  {self.message}"

    def _repr_html_(self) -> str:
        from daedal.viz import solution_html

        shown: Any = self
        return solution_html(shown)

    @property
    def cost_in_words(self) -> str:
        """The time of the run, followed by costs incurred once: ``1.5 ms (+0.4 s first use)``."""
        whole = self.stats.seconds
        once = min(self.stats.first_use, whole)
        later = f" (+{duration(once)} first use)" if once > 0.05 * whole else ""
        return duration(whole - once) + later

    def quantities(self, t: Any = None) -> list[Quantity]:
        """All named quantities at the output points or at the times `t`; computed on demand."""
        raise NotImplementedError

    @property
    def attributes(self) -> dict[str, Any]:
        """User notes, included in tables and files."""
        return self.__dict__.setdefault("_attributes", {})

    @attributes.setter
    def attributes(self, notes: dict[str, Any]):
        self.__dict__["_attributes"] = dict(notes)

    def __getitem__(self, name: str) -> np.ndarray:
        """A quantity at the output points by name: a variable, derivative, multiplier, constraint, ..."""
        return row_named(self.quantities(), name)

    # --- tables -------------------------------------------------------------------------------------------------------

    def to_dataframe(self, columns: Any = None, *, t: Any = None):
        """The solution as a :class:`pandas.DataFrame` indexed by time.

        Parameters
        ----------
        columns : str or sequence of str, optional
            Names of quantities; by default variables, derivatives, multipliers, drift and energy, where they exist.
        t : array, optional
            Times, for values from the dense output; the output points by default.

        Examples
        --------
        >>> import daedal
        >>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], names=["x"], rtol=1e-9)
        >>> print(sol.to_dataframe(t=[0.0, 0.5, 1.0]).round(4))  # doctest: +NORMALIZE_WHITESPACE
                  x      x'
        t
        0.0  1.0000 -1.0000
        0.5  0.6065 -0.6065
        1.0  0.3679 -0.3679
        """
        return dataframe(self._times(t), self._columns(columns, t), self._described())

    def to_xarray(self, *, t: Any = None):
        """The solution as an :class:`xarray.Dataset`: ``y`` over ``variable`` and ``t``, ``lam`` over ``constraint``.

        Parameters
        ----------
        t : array, optional
            Times, for values from the dense output; the output points by default.

        Examples
        --------
        >>> import daedal
        >>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], names=["x"], rtol=1e-9)
        >>> print(f"{float(sol.to_xarray().y.sel(variable='x')[-1]):.4f}")
        0.3679
        """
        shown = [quantity for quantity in self.quantities(t) if quantity.in_tables]
        return dataset(self._times(t), shown, self._further_columns(t), self._described())

    def to_csv(self, path: str | Path | None = None, columns: Any = None, *, t: Any = None) -> str:
        """The solution as comma-separated values with all digits; written to `path` if given.

        `columns` and `t` are those of :meth:`to_dataframe`.
        """
        return comma_separated(self._times(t), self._columns(columns, t), path)

    def _columns(self, columns: Any, t: Any) -> dict[str, Any]:
        further = self._further_columns(t) if columns is None else {}
        return further | columns_of(self.quantities(t), columns)

    def _further_columns(self, t: Any) -> dict[str, Any]:
        """Columns of the table that are not numeric; none by default."""
        return {}

    def _times(self, t: Any) -> np.ndarray:
        return self.t if t is None else np.atleast_1d(np.asarray(t, dtype=float))

    def _described(self) -> dict[str, Any]:
        """Metadata of the run, for tables."""
        kept = {name: getattr(self, name, None) for name in ("method", "formulation", "message")}
        kept["status"] = str(self.status)
        return {name: text for name, text in kept.items() if text} | self.attributes

    # --- counts under SciPy's names ----------------------------------------------------------------------------------

    @property
    def nfev(self) -> int:
        """Number of evaluations of the right-hand side or residual."""
        return self.stats.nfev

    @property
    def njev(self) -> int:
        """Number of evaluations of the Jacobian."""
        return self.stats.njev

    @property
    def nlu(self) -> int:
        """Number of factorisations."""
        return self.stats.nlu

    # --- events -------------------------------------------------------------------------------------------------------

    @property
    def t_events(self) -> list[np.ndarray]:
        """The times at which each of the given events fired, as in SciPy; empty for events that did not fire."""
        return [np.array([event.t for event in fired], dtype=float) for fired in self._fired()]

    @property
    def y_events(self) -> list[np.ndarray]:
        """The states at ``t_events``, one per row."""
        return [np.array([event.y for event in fired], dtype=float) for fired in self._fired()]

    def _fired(self) -> list[list[Any]]:
        own = [event for event in self.events if event.kind == "event"]
        return [[event for event in own if event.index == i] for i in range(len(self.event_names))]

    # --- files --------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the solution to a file for :func:`daedal.load`: an archive of NumPy arrays (.npz), without code.

        Quantities that need the functions of the problem are computed first. Returns the path, which ends in ``.npz``.
        """
        from daedal.solution.file import save

        return save(self, path)


TIME = "t"


def pandas() -> Any:
    """Import an optional package; raise with the installation command if it is missing."""
    return _imported("pandas")


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            f"this needs the package {name}, which is not installed: pip install 'daedal[data]'"
        ) from error


def columns_of(quantities: Iterable[Quantity], chosen: Any = None) -> dict[str, np.ndarray]:
    """Rows by name: those in `chosen`, or by default the rows that tables show."""
    if chosen is None:
        columns: dict[str, np.ndarray] = {}
        for quantity in quantities:
            if quantity.in_tables and quantity.names:
                for name, row in zip(quantity.names, quantity.rows(), strict=True):
                    columns.setdefault(name, row)
        return columns
    wanted = [chosen] if isinstance(chosen, str) else list(chosen)
    places: dict[str, tuple[Quantity, int]] = {}
    for quantity in quantities:
        for i, name in enumerate(quantity.names):
            places.setdefault(name, (quantity, i))
    for name in wanted:
        if name not in places:
            raise unknown_name(name, places, where="columns")
    values = {id(quantity): quantity.rows() for quantity, _ in (places[name] for name in wanted)}
    return {name: values[id(places[name][0])][places[name][1]] for name in wanted}


def dataframe(times: np.ndarray, columns: Mapping[str, Any], attributes: Mapping[str, Any]) -> Any:
    """A table with the times as its index."""
    package = pandas()
    frame = package.DataFrame(dict(columns), index=package.Index(times, name=TIME))
    frame.attrs.update(attributes)
    return frame


def dataset(
    times: np.ndarray, quantities: Sequence[Quantity], further: Mapping[str, Any], attributes: Mapping[str, Any]
) -> Any:
    """A dataset with one variable for each kind of quantity, over its names and the times."""
    xarray = _imported("xarray")
    coordinates: dict[str, Any] = {TIME: times}
    variables: dict[str, Any] = {name: (TIME, values) for name, values in further.items()}
    for quantity in quantities:
        if not quantity.names:
            continue
        if not quantity.dimension:
            variables |= {name: (TIME, row) for name, row in zip(quantity.names, quantity.rows(), strict=True)}
            continue
        coordinates.setdefault(quantity.dimension, list(quantity.labels or quantity.names))
        variables[quantity.kind] = ((quantity.dimension, TIME), quantity.rows())
    return xarray.Dataset(variables, coordinates, attrs=dict(attributes))


def comma_separated(times: np.ndarray, columns: Mapping[str, Any], path: Any = None) -> str:
    """A table as text with all digits; written to `path` if given."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([TIME, *columns])
    writer.writerows(zip(times.tolist(), *(np.asarray(column).tolist() for column in columns.values())))
    if path is not None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.getvalue(), encoding="utf-8", newline="")
    return text.getvalue()
