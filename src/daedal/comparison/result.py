"""What a comparison of formulations and methods found: a table, its numbers, its plots."""

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from daedal.tabular import Tabular


@dataclass(frozen=True)
class ComparedRun:
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
    """What :func:`daedal.compare` found: `rows`, one :class:`ComparedRun` each; ``print`` shows a table.

    Attributes
    ----------
    rows : tuple of ComparedRun
    reference : str
        What the errors are measured against.
    title : str
        What was compared.
    """

    rows: tuple[ComparedRun, ...]
    reference: str
    title: str = "Comparison"

    def __str__(self) -> str:
        return "\n".join([self.title, str(self._table()), *self._remarks()])

    def _repr_html_(self) -> str:
        from markupsafe import Markup

        remarks = Markup("").join(Markup("<p>{}</p>").format(text) for text in self._remarks())
        return str(Markup("<div><p>{}</p>{}{}</div>").format(self.title, self._table(), remarks))

    def _remarks(self) -> list[str]:
        """What the errors are measured against; why runs failed or were impossible, each reason once."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            if not row.success:
                reasons.setdefault((row.status, row.message), []).append(f"{row.formulation} + {row.method}")
        return [
            f"Errors are relative, against {self.reference}.",
            *(
                f"{status.capitalize()}: {', '.join(dict.fromkeys(who))}. {why}"
                for (status, why), who in reasons.items()
            ),
        ]

    def _table(self) -> Tabular:
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
        return Tabular("ll" + "r" * (len(header) - 2), lines, header)

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
        """Plot errors, costs and drift; see :func:`daedal.viz.plot_comparison`."""
        from daedal.viz import plot_comparison

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
