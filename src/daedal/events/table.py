"""The events of a run, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from daedal.common.tabular import Tabular

if TYPE_CHECKING:
    from os import PathLike


_MOST_ROWS = 30  # maximum number of printed rows
_COLUMNS = ("t", "name", "kind")  # columns of a table without events


class EventTable(Sequence[Any]):
    """The events of a run in order: a sequence of records that prints as a table.

    Its records are :class:`EventRecord`, or :class:`HybridEvent` of a run through modes.

    Parameters
    ----------
    records : sequence of EventRecord or HybridEvent
    names : mapping
        The names of the variables in each mode; the key is None if there are no modes.

    Examples
    --------
    >>> import daedal
    >>> sol = daedal.solve_dae(
    ...     lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], (0.0, 7.0), [0.0, 1.0],
    ...     events=daedal.Event(lambda t, y: y[0], name="through zero"),
    ... )
    >>> sol.events
    t           name          kind   direction  terminal  located
    3.14159...  through zero  event  -1         False     sampled
    6.28318...  through zero  event  1          False     sampled
    """

    def __init__(self, records: Sequence[Any] = (), names: Mapping[str | None, Sequence[str]] | None = None):
        self._records, self._names = records, dict(names or {})

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> EventTable: ...
    def __getitem__(self, i: int | slice) -> Any:
        return EventTable(self._records[i], self._names) if isinstance(i, slice) else self._records[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._records)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def t(self) -> np.ndarray:
        """The times of all events."""
        return np.array([record.t for record in self._records], dtype=float)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table."""
        return self._records[0].columns if len(self) else _COLUMNS

    def named(self, name: str) -> EventTable:
        """Events with this name."""
        return EventTable([record for record in self._records if record.name == name], self._names)

    def rows(self) -> list[tuple[Any, ...]]:
        """The entries of `columns` for each event."""
        return [
            tuple("" if getattr(record, column) is None else getattr(record, column) for column in self.columns)
            for record in self._records
        ]

    def to_csv(self, path: str | PathLike[str] | None = None) -> str:
        """The table as comma-separated values; written to `path` if one is given."""
        import csv
        import io

        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([(repr(row[0]), *row[1:]) for row in self.rows()])
        if path is not None:
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text.getvalue())
        return text.getvalue()

    def to_dataframe(self) -> Any:
        """The table as a :class:`pandas.DataFrame`, with the variables at each event appended."""
        from daedal.solution.quantities import pandas

        data: dict[str, list[Any]] = {column: [row[k] for row in self.rows()] for k, column in enumerate(self.columns)}
        states = [dict(zip(self._names_at(record), record.y.tolist())) for record in self._records]
        for name in dict.fromkeys(name for state in states for name in state):
            data.setdefault(name, [state.get(name, np.nan) for state in states])
        return pandas().DataFrame(data)

    def _names_at(self, record: Any) -> Sequence[str]:
        return self._names.get(getattr(record, "source", None), ())

    def _shown(self) -> Tabular:
        """The table to print; the middle of a long table is omitted."""
        left_out = max(len(self) - _MOST_ROWS, 0)
        head = _MOST_ROWS - _MOST_ROWS // 3 if left_out else len(self)
        shown = self.rows()
        rows: list[Any] = [
            (f"{row[0]:.10g}", *("-" if cell == "" else str(cell) for cell in row[1:]))
            for row in (*shown[:head], *shown[head + left_out :])
        ]
        if left_out:
            rows.insert(head, f"... {left_out} more ...")
        return Tabular("l" * len(self.columns), rows, self.columns)

    def __repr__(self) -> str:
        return str(self._shown()) if len(self) else "no events"

    def _repr_html_(self) -> str:
        return self._shown()._repr_html_()
