"""Every example runs from an empty folder, traced and untraced, prints what it promises and saves its figure."""

import runpy
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from twin import made_twice

EXAMPLES = Path(__file__).parent.parent / "examples"
PRINTED = {
    "violin": "steps slipping with DOPRI5",
    "bouncing_ball": "bounce 8",
    "chaotic_pendulum": "largest error of the length",
    "crank_slider": "turns, the first in",
    "diagnosis": "index",
    "food_web_gmres": "linear iterations",
    "formulations": "GGL, DASSL",
    "pendulum_forms": "largest error of the length",
    "robertson": "relative errors at the end",
    "rolling_disc": "largest error of the rolling speed",
    "second_order": "changes of the step size",
    "sobol_indices": "first order",
    "time_optimal_crank": "T = 0.444",
    "trajectory_control": "relative error",
    "truck": "modified BDF, thesis",
    "transistor_amplifier": "relative errors at the end",
}


def test_every_example_is_listed():
    assert {path.stem for path in EXAMPLES.glob("[!_]*.py")} == set(PRINTED)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRINTED)
def test_example_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr("sys.argv", [f"{name}.py"])
    monkeypatch.syspath_prepend(EXAMPLES)
    with nullcontext() if name == "time_optimal_crank" else made_twice() as twin:  # gradients.md has it
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert twin is None or twin.gaps or name == "food_web_gmres"  # which has too many operations
    plt.close("all")
    assert PRINTED[name] in capsys.readouterr().out
    assert len(list((tmp_path / "out").glob("*.png"))) == 1


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_example_is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60


def test_benchmarks_start_on_this_python():
    """All their modules are imported, in a process of its own; the other solvers are asked for only when they run."""
    modules = sorted(path.stem for path in (EXAMPLES.parent / "benchmarks").glob("[!_]*.py"))
    imports = ", ".join(f"benchmarks.{name}" for name in (*modules, "__main__"))
    subprocess.run([sys.executable, "-c", f"import {imports}"], cwd=EXAMPLES.parent, check=True, timeout=120)
