"""Everything that a run of the benchmark has measured, and its file."""

from __future__ import annotations

import json
import math
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.compare import Line, compare
from benchmarks.first_call import FirstCall
from benchmarks.measure import Point
from benchmarks.solvers import SOLVERS, baseline, release
from benchmarks.solvers.base import Level


def machine() -> dict[str, Any]:
    """What the numbers were measured on and with."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "date": date.today().isoformat(),
    }


@dataclass
class Results:
    """What was measured so far."""

    left_out: dict[str, str]
    quick: bool = False
    points: list[Point] = field(default_factory=list)
    first_calls: list[FirstCall] = field(default_factory=list)
    fixed_cost: list[list[str]] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    multibody: list[list[str]] = field(default_factory=list)
    machines: list[list[str]] = field(default_factory=list)
    plain: list[list[str]] = field(default_factory=list)
    ensembles: list[list[str]] = field(default_factory=list)
    ensembles_generated: list[list[str]] = field(default_factory=list)
    sensitivities: list[list[str]] = field(default_factory=list)
    gradients: list[list[str]] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=machine)
    releases: dict[str, str] = field(default_factory=dict)

    def lines(self) -> dict[tuple[str, str], Line]:
        """The work-precision lines by case and solver."""
        keys = dict.fromkeys((point.case, point.solver) for point in self.points)
        return {key: Line.through(p for p in self.points if (p.case, p.solver) == key) for key in keys}

    def write(self, path: Path) -> None:
        """Save as JSON, with the comparison of every point."""
        used = dict.fromkeys(point.solver for point in self.points)
        self.releases = {SOLVERS[name].package: release(SOLVERS[name]) for name in used}
        lines = self.lines()
        everything = asdict(self)
        for row, point in zip(everything["points"], self.points, strict=True):
            del row["spent"]
            comparison = compare(point, lines.get((point.case, baseline(point.solver)), Line()))
            row |= {"callbacks": SOLVERS[point.solver].callbacks}
            row |= {"ratio_to_daedal": comparison.ratio, "note": comparison.note}
            row |= {key: None for key, value in row.items() if isinstance(value, float) and not math.isfinite(value)}
        path.write_text(json.dumps(everything, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        """What `write` has saved."""
        everything = json.loads(path.read_text())
        points = []
        for row in everything.pop("points"):
            known = {key: row[key] for key in ("case", "solver", "evaluations", "steps", "failure")}
            numbers = {key: float("nan") if row[key] is None else row[key] for key in ("seconds", "error", "drift")}
            points.append(Point(**known, **numbers, level=Level(**row["level"])))
        calls = [FirstCall(**row) for row in everything.pop("first_calls")]
        return cls(points=points, first_calls=calls, **everything)


def keep(folder: Path = Path("out/bench"), **tables: list[list[str]]) -> None:
    """Put tables that were measured alone beside the other results; a line replaces that of the same name."""
    path = folder / "results.json"
    results = Results.read(path) if path.exists() else Results({})
    for name, rows in tables.items():
        measured = {row[0] for row in rows}
        setattr(results, name, [row for row in getattr(results, name) if row[0] not in measured] + rows)
    folder.mkdir(parents=True, exist_ok=True)
    results.write(path)
