"""What type checkers see of the package in a user's project: py.typed, overloads, attributes that do not exist."""

import json
import os
import re
import shutil
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

semi = daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [y[0] - z[0]], 1, 1)
stop = daedal.Event(lambda t, y: y[0] - 0.5, terminal=True, direction=-1)
for event in daedal.solve(semi, (0, 1), ([1.0], None), events=[stop]).events:
    print(event.t, event.name, event.y)
oscillator = daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[0]], 1)
print(daedal.solve(oscillator, (0.0, 1.0), ([1.0], [0.0])).xpp)
quick_start = daedal.consistent_initial(pendulum, 0.0, start)
print(quick_start.lam, quick_start.initial)
quick_start.multipliers  # type: ignore[attr-defined]
y0, yp0 = daedal.consistent_initial(equations, 0.0, ([1.0, 0.0], None))
result = daedal.solve_ivp(lambda t, y: [-y[0]], (0.0, 1.0), [1.0], method="RK45", dense_output=True)
if result.sol is not None:
    print(result.sol(0.3), result.t_events, result.nfev)

tank = daedal.ODE(lambda t, y, u: [u - y[0]], 1, inputs=["u"])
print(daedal.solve(tank, (0.0, 1.0), [0.0], inputs={"u": daedal.Table([0.0, 1.0], [0.0, 1.0])}).y)
sim = daedal.Simulation(tank, [0.0], rtol=1e-5)
level: NDArray[np.float64] = sim.step(0.1, u=[1.0])
sim.restore(sim.save_state())
print(sim.t, sim.state.y, sim["u"], sim.run(lambda t, y: -y[0], dt=0.1, t_end=1.0).u)
sim.advance(0.1)  # type: ignore[attr-defined]
daedal.Simulation(tank, [0.0], rtolerance=1e-5)  # type: ignore[call-arg]
model = daedal.linearise(pendulum, ([0.0, -1.0], [0.0, 0.0]))
print(model.A, [one.t for one in daedal.linearise(pendulum, motion)])
model.eigenvalues  # type: ignore[attr-defined]
comparison = daedal.compare(pendulum, (0.0, 1.0), start, formulations=["ggl"], methods=["dassl"])
print([row.error_q for row in comparison.rows])

bob = daedal.multibody.Body("bob", mass=1.0, inertia=0.1)
machine = daedal.multibody.Model(daedal.multibody.Revolute("hinge", daedal.multibody.ground, bob), gravity=(0.0, -9.81))
swing = daedal.solve(machine, (0.0, 1.0), {"hinge": 0.3})
print(swing.q, swing.body("bob").position, machine.report().degrees_of_freedom)
try:
    daedal.solve(daedal.circuits.parse("V1 1 0 1\\nR1 1 0 1k"), (0.0, 1.0), None)
except daedal.IntegrationError as error:
    print(error.solution.t)


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


@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed")
def test_pyright_finds_the_same_mistakes(tmp_path):
    lines = SCRIPT.splitlines()
    (tmp_path / "script.py").write_text(re.sub(r" # type: ignore.*", "", SCRIPT), encoding="utf-8")
    settings = {"extraPaths": [str(Path(daedal.__file__).parent.parent)], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = ["pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    found = {one["range"]["start"]["line"] for one in json.loads(run.stdout)["generalDiagnostics"]}
    assert found == {i for i, line in enumerate(lines) if "type: ignore" in line}


@pytest.mark.slow
def test_examples_and_readme_pass(tmp_path):
    for path in (ROOT / "examples").glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    for i, block in enumerate(blocks):
        (tmp_path / f"readme_{i}.py").write_text(f"import daedal\n{block}", encoding="utf-8")
    assert check(tmp_path, "--ignore-missing-imports").startswith("Success")
