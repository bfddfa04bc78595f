"""What a comparison of formulations and methods found: a table, its numbers, its plots."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Run:
    """One run of a comparison.

    Attributes
    ----------
    formulation, method : str
    rtol : float or None
        None with constant steps.
    error_q, error_v, error_lam : float
        Largest error over the compared times, relative to the largest value of the reference; nan if unknown.
    drift_position, drift_velocity : float
        Largest residuals of the constraints and of their derivatives in what was integrated, before any projection of
        the output.
    steps, rejected, evaluations : int
    seconds : float
    status : str
        ``"finished"``, ``"failed"`` or ``"impossible"``.
    message : str
        How it ended.
    t, error : tuple of float
        Times, and the largest relative error of q and v at each.
    """

    formulation: str
    method: str
    rtol: float | None
    error_q: float = math.nan
    error_v: float = math.nan
    error_lam: float = math.nan
    drift_position: float = math.nan
    drift_velocity: float = math.nan
    steps: int = 0
    rejected: int = 0
    evaluations: int = 0
    seconds: float = math.nan
    status: str = "finished"
    message: str = ""
    t: tuple[float, ...] = field(default=(), repr=False)
    error: tuple[float, ...] = field(default=(), repr=False)

    @property
    def success(self) -> bool:
        """Whether the run reached the end."""
        return self.status == "finished"


@dataclass(frozen=True)
class Comparison:
    """What :func:`daedal.compare` found: `rows`, one :class:`Run` each; ``print`` shows a table.

    Attributes
    ----------
    rows : tuple of Run
    reference : str
        What the errors are measured against.
    title : str
        What was compared.
    """

    rows: tuple[Run, ...]
    reference: str
    title: str = "Comparison"

    def __str__(self) -> str:
        header, lines = self._cells()
        widths = [max(len(line[i]) for line in (header, *lines)) for i in range(len(header))]

        def joined(cells):
            texts = [cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(cells, widths))]
            return "  ".join(texts).rstrip()

        text = [self.title, joined(header), *map(joined, lines), f"Errors are relative, against {self.reference}."]
        return "\n".join([*text, *self._remarks()])

    def _remarks(self) -> list[str]:
        """Why runs failed or were impossible, each reason once."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            if not row.success:
                reasons.setdefault((row.status, row.message), []).append(f"{row.formulation} + {row.method}")
        return [
            f"{status.capitalize()}: {', '.join(dict.fromkeys(who))}. {why}" for (status, why), who in reasons.items()
        ]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        several = len({row.rtol for row in self.rows}) > 1
        header = ["formulation", "method", *(["rtol"] if several else [])]
        header += ["error q", "error v", "error lam", "drift g", "drift g'", "steps", "rejected", "calls", "ms"]
        lines = []
        for row in self.rows:
            first = [row.formulation, row.method]
            if row.status == "impossible":
                lines.append([*first, row.status, *[""] * (len(header) - 3)])
                continue
            first += [f"{row.rtol:g}"] if several else []
            errors = (row.error_q, row.error_v, row.error_lam, row.drift_position, row.drift_velocity)
            numbers = [_short(value) for value in errors]
            if not row.success:
                numbers[0] = row.status
            counts = [str(row.steps), str(row.rejected), str(row.evaluations)]
            lines.append([*first, *numbers, *counts, "" if math.isnan(row.seconds) else f"{1e3 * row.seconds:.3g}"])
        return header, lines

    def _repr_html_(self) -> str:
        import html

        cell = "text-align: right; padding: 1px 12px 1px 0"
        header, lines = self._cells()

        def row(cells, tag):
            inside = "".join(f'<{tag} style="{cell}">{html.escape(text)}</{tag}>' for text in cells)
            return f"<tr>{inside}</tr>"

        notes = "".join(
            f"<p>{html.escape(text)}</p>"
            for text in (f"Errors are relative, against {self.reference}.", *self._remarks())
        )
        table = "".join([row(header, "th"), *(row(line, "td") for line in lines)])
        return f"<div><p>{html.escape(self.title)}</p><table>{table}</table>{notes}</div>"

    def to_json(self, path: str | Path | None = None) -> str:
        """Everything as JSON text, written to `path` if one is given; unknown numbers are null."""
        import json

        data = {
            "title": self.title,
            "reference": self.reference,
            "rows": [{name: _plain(value) for name, value in asdict(row).items()} for row in self.rows],
        }
        text = json.dumps(data, indent=1, allow_nan=False)
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def plot(self, **options: Any):
        """Plot errors, costs and drift; see :func:`daedal.viz.compare.plot_comparison`."""
        from daedal.viz.compare import plot_comparison

        return plot_comparison(self, **options)


def _short(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.1e}"


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
