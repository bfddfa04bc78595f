"""Ensembles on a GPU: sources and references are prepared here, and measured on a machine with a GPU.

    python -m benchmarks.gpu build/gpu              # writes sources, cases and references; needs no GPU
    python3 build/gpu/gpu_measure.py build/gpu      # prints the tables; needs NumPy and CuPy only
    python -m benchmarks.gpu build/gpu pendulum     # only this case, with all of its variants

The second step needs neither Daedal nor Numba, so that it runs on a bare machine with a GPU.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import daedal
import daedal.ensembles
from daedal.driver.request import checked_settings
from daedal.ensembles.gpu_model import TABLEAUX, gpu_model, integrator_source
from daedal.symbolic.tracing.in_c import problem_in_c
from daedal.symbolic.tracing.problem import traced_problem

SAMPLES = 8
"""Members whose errors are measured, against references of other methods at tight tolerances."""


@dataclass(frozen=True)
class Case:
    """One family of runs: parameters vary within factors of those of the model."""

    model: str
    method: str
    spread: dict[int, tuple[float, float]]
    tolerances: tuple[tuple[float, float], ...]
    reference: dict[str, Any]


TIGHT = {"rtol": 1e-12, "atol": 1e-12}
CASES = {
    "pendulum": Case("planar_pendulum", "dopri5", {1: (0.5, 1.5)}, ((3e-4, 3e-4), (1e-5, 1e-5), (1e-8, 1e-8)), TIGHT),
    "double pendulum": Case("double_pendulum", "dopri5", {2: (0.8, 1.2)}, ((1e-5, 1e-5), (1e-8, 1e-8)), TIGHT),
    "crank-slider": Case("crank_slider", "dopri5", {2: (0.5, 1.5)}, ((1e-5, 1e-5), (1e-8, 1e-8)), TIGHT),
    "seven-body": Case(
        "seven_body", "dopri5", {0: (0.02 / 0.033, 1.0)}, ((1e-4, 1e-4), (2.2e-5, 2.2e-5), (1e-6, 1e-6)), TIGHT
    ),
    "Robertson": Case(
        "robertson",
        "rodas4",
        {0: (0.5, 2.0), 1: (0.5, 2.0), 2: (0.5, 2.0)},
        ((1e-4, 1e-12), (1e-6, 1e-14)),
        {"rtol": 1e-11, "atol": 1e-16, "method": "radau"},
    ),
}
DEFAULT = "default"
_REFILLS = {f"refill {k}": {"REFILL": k} for k in (1, 8)}
_FORMS = {
    "loop, called": {"UNROLLED": 0, "APART": 1},
    "loop, inlined": {"UNROLLED": 0, "APART": 0},
    "written out, called": {"UNROLLED": 1, "APART": 1},
    "written out, inlined": {"UNROLLED": 1, "APART": 0},
}
VARIANTS: dict[str, dict[str, dict[str, int]]] = {
    "seven-body": {
        **_REFILLS,
        **_FORMS,
        "block 128": {"BLOCK": 128},
        **{f"registers of {k} blocks": {"LEAST_BLOCKS": k} for k in (5, 8)},
    },
    "crank-slider": {**_REFILLS, **_FORMS},
    "double pendulum": {**_REFILLS, **_FORMS},
    "pendulum": {
        **_REFILLS,
        **_FORMS,
        **{f"block {k}": {"BLOCK": k} for k in (32, 128, 256)},
        **{f"registers of {k} blocks": {"LEAST_BLOCKS": k} for k in (8, 12, 16)},
    },
    "Robertson": {**_REFILLS, "block 128": {"BLOCK": 128}},
}
"""What is tried besides the default, to see what pays."""


def main(folder: Path, *names: str) -> None:
    """Write everything that the measurement needs, of all cases or of those that are named."""
    unknown = set(names) - set(CASES)
    if unknown:
        raise SystemExit(f"unknown case {unknown.pop()!r}; there are {', '.join(CASES)}")
    folder.mkdir(parents=True, exist_ok=True)
    room = Path(daedal.ensembles.__path__[0])
    for source in (Path(__file__).with_name("gpu_measure.py"), room / "gpu_run.py", room / "gpu_order.py"):
        shutil.copy(source, folder)
    cases = {name: _prepared(folder, name, case) for name, case in CASES.items() if not names or name in names}
    (folder / "cases.json").write_text(json.dumps(cases, indent=1), encoding="utf-8")


def _prepared(folder: Path, name: str, case: Case) -> dict[str, Any]:
    model = getattr(daedal.library, case.model)()
    traced = traced_problem(model.problem, "always")
    code = problem_in_c(traced, TABLEAUX.get(case.method))
    sources = {}
    for variant, options in {DEFAULT: {}, **VARIANTS.get(name, {})}.items():
        path = f"{name}-{variant}.cu".replace(" ", "_").replace(",", "")
        (folder / path).write_text(integrator_source(code, case.method, **options), encoding="utf-8")
        sources[variant] = [path, options.get("BLOCK", 64)]
    single = f"{name}-single.cu".replace(" ", "_")
    code_single = problem_in_c(traced, TABLEAUX.get(case.method), single=True)
    (folder / single).write_text(integrator_source(code_single, case.method, single=True), encoding="utf-8")
    base = np.asarray(model.problem.params, dtype=float)
    draws = np.random.default_rng(20).random((SAMPLES, base.size))
    samples = varied(base, case.spread, draws)
    samples[0] = base
    references = [_reference(model, case, row) for row in samples]
    start = np.concatenate(model.initial[:2]) if code.positions else np.asarray(model.initial[0])
    print(name, code.operations, "operations", flush=True)
    return {
        "t_span": list(model.t_span),
        "n": code.n,
        "method": case.method,
        "operations": code.operations,
        "positions": code.positions,
        "start": start.tolist(),
        "params": base.tolist(),
        "spread": case.spread,
        "samples": samples.tolist(),
        "references": [row.tolist() for row in references],
        "tolerances": case.tolerances,
        "first_step": 0.0 if code.positions else 1e-5,
        "sources": sources,
        "single": single,
        "check": _check(folder, name, model, case),
    }


def _check(folder: Path, name: str, model: Any, case: Case) -> dict[str, Any]:
    """A run with output and a terminal event, and what the driver says of it."""
    is_mechanism = isinstance(model.problem, daedal.MechanicalSystem)
    half = 0.5 * float(model.initial[0][0])
    event = daedal.Event(_half_way(half, 3 if is_mechanism else 2), terminal=True)
    method: Any = "dopri5" if is_mechanism else daedal.methods.Rosenbrock(variant=case.method)
    options = {"rtol": 1e-8, "atol": 1e-8 if is_mechanism else 1e-12}
    made = gpu_model(model.problem, checked_settings(events=event, method=method, **options), outputs=True)
    path = f"{name}-event.cu".replace(" ", "_")
    (folder / path).write_text(made.source, encoding="utf-8")
    start = model.initial if is_mechanism else (model.initial[0], None)
    known = daedal.solve(model.problem, model.t_span, start, events=event, **case.reference)
    t_end = float(known.events[-1].t) if known.status == "event" else model.t_span[1]
    times = np.linspace(0.0, 1.25 * t_end, 6)[:-1]
    y = daedal.solve(model.problem, model.t_span, start, t_eval=times, **case.reference).y
    return {"source": path, "t_end": t_end, "times": times.tolist(), "y": y.T.tolist(), **options}


def _half_way(half: float, arguments: int) -> Any:
    if arguments == 3:
        return lambda t, q, v: q[0] - half
    return lambda t, y: y[0] - half


def varied(base: np.ndarray, spread: dict[int, tuple[float, float]], draws: np.ndarray) -> np.ndarray:
    """Parameters within factors of `base`."""
    rows = np.tile(base, (len(draws), 1))
    for place, (low, high) in spread.items():
        rows[:, place] *= low + (high - low) * draws[:, place]
    return rows


def _reference(model: Any, case: Case, params: np.ndarray) -> np.ndarray:
    problem = replace(model.problem, params=params)
    is_mechanism = isinstance(problem, daedal.MechanicalSystem)
    start = model.initial if is_mechanism else (model.initial[0], None)
    solution = daedal.solve(problem, model.t_span, start, t_eval=[model.t_span[1]], **case.reference)
    if is_mechanism:
        return np.concatenate([solution.q[:, -1], solution.v[:, -1]])
    return solution.y[:, -1]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/gpu"), *sys.argv[2:])
