"""What type checkers see of the package in a user's project: py.typed, overloads, attributes that do not exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import daedal

ROOT = Path(__file__).parent.parent

# Strict checking reports an ignored error that is none, so each `type: ignore` shows that a mistake is noticed.
SCRIPT = """
import numpy as np
from numpy.typing import NDArray

import daedal


def residual(t: float, y: NDArray[np.float64], yp: NDArray[np.float64], p: dict[str, float]) -> list[float]:
    return [yp[0] + p["k"] * y[0], y[0] + y[1] - 1.0]


times = np.linspace(0.0, 1.0, 5)
equations = daedal.ImplicitDAE(residual, 2, params={"k": 0.04}, names=["a", "b"])
sol = daedal.solve(equations, (0.0, 1.0), ([1.0, 0.0], None), rtol=1e-6, t_eval=times, method="dassl", max_order=3)
print(sol.t, sol.y[0, -1], sol["a"], sol(0.5)[0], sol.stats.steps, sol.nfev, sol.status == 0, sol.status.reason)
sol.q  # type: ignore[attr-defined]
sol.steps  # type: ignore[attr-defined]
daedal.solve(equations, (0.0, 1.0), None, rtolerance=1e-6)  # type: ignore[call-overload]
daedal.solve(equations, (0.0, 1.0), None, steps=1e-3)  # type: ignore[call-overload]
daedal.solve(equations, (0.0, 1.0), None, steps=daedal.Steps(max_step=0.1), sensitivities=daedal.Sensitivities("k"))
quick = daedal.solve_dae(lambda t, y, yp: yp + y, (0.0, 1.0), [1.0], events=daedal.Event(lambda t, y: y[0] - 0.5))
print(quick.events[0].t)

pendulum = daedal.MechanicalSystem(
    1.0,
    lambda t, q, v, p: [0.0, -p["g"]],
    lambda t, q, p: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)],
    n_q=2,
    n_constraints=1,
    params={"g": 9.81},
)
start = ([1.0, 0.0], [0.0, 0.0])
motion = daedal.solve(pendulum, (0.0, 1.0), start, formulation=daedal.formulations.GGL())
print(motion.q[0], motion.v, motion.lam, motion.drift, motion(0.5).q)
motion.positions  # type: ignore[attr-defined]
solver = daedal.prepare(pendulum, method=daedal.methods.DASSL(max_order=2))
print(solver.solve((0.0, 1.0), start, params={"g": 1.6}).q, daedal.advise(pendulum, (0.0, 1.0), start))
solver.solve((0.0, 1.0), start).x  # type: ignore[attr-defined]

ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1)
floor = daedal.hybrid.UnilateralProblem(ball, daedal.hybrid.Contact(lambda t, q: q[0], restitution=0.5))
print(daedal.solve(floor, (0.0, 1.0), ([1.0], [0.0])).mode)
daedal.hybrid.Unilateral  # type: ignore[attr-defined]

ensemble = daedal.solve_many(pendulum, (0.0, 1.0), start, params={"g": np.linspace(1.0, 10.0, 10)}, rtol=1e-5)
print(ensemble.final.q.shape, ensemble.failed.size)
ensemble.members_that_failed  # type: ignore[attr-defined]

fit: daedal.sensitivity.Fit = daedal.fit(equations, {"t": [0.0, 1.0], "a": [1.0, 0.9]}, {"k": 0.1})
value, slopes, names = daedal.gradient(equations, (0.0, 1.0), ([1.0, 0.0], None), final_cost=lambda t, y, p: y[0])
print(fit.params, value, slopes, daedal.analyse(equations).index)
fit.parameters  # type: ignore[attr-defined]

machine = daedal.multibody.Model(gravity=(0.0, 0.0, -9.81))
print(daedal.solve(machine, (0.0, 1.0), None).q)


def end(problem: daedal.Problem, initial: object) -> float:
    return float(daedal.solve(problem, (0.0, 1.0), initial).y[0, -1])


print(end(equations, None), end(pendulum, None))
end(3.0, None)  # type: ignore[arg-type]
"""


def check(folder: Path, *options: str) -> str:
    """What mypy reports of the files of a folder, as in a project that has the package installed."""
    environment = os.environ | {"PYTHONPATH": str(Path(daedal.__file__).parent.parent)}
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache" / "users"), *options, str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    return run.stdout + run.stderr


def test_a_script_passes_strict_checks_and_its_mistakes_are_seen(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    assert check(tmp_path, "--strict").startswith("Success")


@pytest.mark.slow
def test_examples_and_readme_pass(tmp_path):
    for path in (ROOT / "examples").glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    for i, block in enumerate(blocks):
        (tmp_path / f"readme_{i}.py").write_text(f"import daedal\n{block}", encoding="utf-8")
    assert check(tmp_path, "--ignore-missing-imports").startswith("Success")
