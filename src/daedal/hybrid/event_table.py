"""The events of a run through modes, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from daedal.tabular import Tabular

_COLUMNS = ("t", "name", "kind", "source", "target")
_MOST_ROWS = 30  # in the printed table


@dataclass(frozen=True)
class HybridEvent:
    """Something that happened in a run through modes.

    Attributes
    ----------
    t : float
        When.
    name : str
        Of the transition, or of the event.
    kind : str
        ``"transition"``; ``"immediate"``, a transition at the very start of its mode; ``"zeno"``, one at a point of
        accumulation; ``"not taken"``, one that fired together with another before it in the list; ``"event"``, an event
        that was given to :func:`daedal.solve`; ``"switch"``, ``"slides"`` and ``"leaves"``, a hidden switch of the
        mode's equations.
    source, target : str or None
        The mode that ended and the one that began; None if the run ended, or nothing changed.
    y, y_after : numpy.ndarray
        The stacked state before and after: (q, v, r) of a mechanical system, (y, z) of a semi-explicit problem.
    direction : int
        Of the change of sign of the guard.
    sensitivity : dict or None
        Derivatives of the time of a transition {parameter: dt/dp}, in a run with sensitivities.
    """

    t: float
    name: str
    kind: str
    source: str
    target: str | None
    y: np.ndarray
    y_after: np.ndarray | None = None
    direction: int = 0
    sensitivity: Any = None


class EventTable(Sequence):
    """The events of a run in their order, a sequence of :class:`HybridEvent` that prints as a table."""

    def __init__(self, records: Sequence[HybridEvent] = ()):
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, i: int) -> HybridEvent: ...
    @overload
    def __getitem__(self, i: slice) -> EventTable: ...
    def __getitem__(self, i):
        return EventTable(self._records[i]) if isinstance(i, slice) else self._records[i]

    def __iter__(self) -> Iterator[HybridEvent]:
        return iter(self._records)

    def __eq__(self, other) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def t(self) -> np.ndarray:
        """The times of all events."""
        return np.array([record.t for record in self._records], dtype=float)

    def named(self, name: str) -> EventTable:
        """Those of one name."""
        return EventTable([record for record in self._records if record.name == name])

    def rows(self) -> list[tuple[Any, ...]]:
        """(t, name, kind, source, target) for each event."""
        return [(r.t, r.name, r.kind, r.source, r.target or "") for r in self._records]

    def to_csv(self, path=None) -> str:
        """The table as comma-separated values; written to `path` if one is given."""
        import csv
        import io

        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows([(repr(row[0]), *row[1:]) for row in self.rows()])
        if path is not None:
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text.getvalue())
        return text.getvalue()

    def _shown(self) -> Tabular:
        """The table to print, without the middle of a long one."""
        left_out = max(len(self) - _MOST_ROWS, 0)
        head = _MOST_ROWS - _MOST_ROWS // 3 if left_out else len(self)
        rows: list[Any] = [
            (f"{r.t:.10g}", r.name, r.kind, r.source, r.target or "-")
            for r in (*self._records[:head], *self._records[head + left_out :])
        ]
        if left_out:
            rows.insert(head, f"... {left_out} more ...")
        return Tabular("lllll", rows, _COLUMNS)

    def __repr__(self) -> str:
        return str(self._shown()) if len(self) else "no events"

    def _repr_html_(self) -> str:
        return self._shown()._repr_html_()
