"""A process that runs the solvers of one package, and the parent's handle on it."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.solvers.base import Level, Outcome

START_UP_SECONDS = 120.0


@dataclass(frozen=True)
class Failure:
    """Why there is no result."""

    message: str


@dataclass(frozen=True)
class Trial:
    """The first run of a solver on a rung: what came out, and about how long it takes."""

    outcome: Outcome
    seconds: float


def serve(connection: Connection, log: str) -> None:
    """Answer requests until the parent hangs up. What the solvers print goes to ``log``."""
    warnings.simplefilter("ignore")
    with open(log, "ab", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    with tempfile.TemporaryDirectory(prefix="daedal-bench-") as scratch:
        os.chdir(scratch)  # CasADi writes its C sources into the current directory
        runs: dict[tuple[str, str, Level], Any] = {}
        solvers: dict[tuple[str, str], Any] = {}
        while True:
            try:
                task, *arguments = connection.recv()
            except EOFError:
                return
            try:
                answer = TASKS[task](runs, solvers, *arguments)
            except Exception as error:
                lines = str(error).strip().splitlines() or [type(error).__name__]
                answer = Failure(lines[-1] if type(error).__module__ == "builtins" else lines[0])
            connection.send(answer)


def _solver(solvers: dict[Any, Any], name: str, case_name: str, counting: bool) -> Any:
    from benchmarks import cases
    from benchmarks.solvers import SOLVERS

    if counting:
        return SOLVERS[name](cases.get(case_name), counting=True)
    if (name, case_name) not in solvers:
        solvers[name, case_name] = SOLVERS[name](cases.get(case_name))
    return solvers[name, case_name]


def _prepared(runs: dict[Any, Any], solvers: dict[Any, Any], name: str, case_name: str, level: Level) -> Any:
    """The call to be timed, run once already so that nothing is compiled or loaded any more."""
    key = name, case_name, level
    if key not in runs:
        runs[key] = _solver(solvers, name, case_name, False).prepare(level)
        runs[key]()
    return runs[key]


def _try(runs: dict[Any, Any], solvers: dict[Any, Any], name: str, case_name: str, level: Level) -> Trial:
    """The run that counts, which compiles what is to be compiled, and a first timed one."""
    solver = _solver(solvers, name, case_name, False)
    call = runs[name, case_name, level] = solver.prepare(level)
    if hasattr(solver, "calls"):
        counting = _solver(solvers, name, case_name, True)
        outcome = counting.outcome(counting.prepare(level)())
        outcome = Outcome(outcome.y, counting.calls or outcome.evaluations, outcome.steps)
    else:
        outcome = solver.outcome(call())
    begin = time.perf_counter()
    call()
    return Trial(outcome, time.perf_counter() - begin)


def _time(
    runs: dict[Any, Any], solvers: dict[Any, Any], name: str, case_name: str, level: Level, budget: float
) -> float:
    """The shortest of as many runs as fit into ``budget`` seconds, at least one."""
    call = _prepared(runs, solvers, name, case_name, level)
    shortest, spent = float("inf"), 0.0
    while spent < budget:
        begin = time.perf_counter()
        call()
        seconds = time.perf_counter() - begin
        shortest, spent = min(shortest, seconds), spent + seconds
    return shortest


def _forget(runs: dict[Any, Any], solvers: dict[Any, Any]) -> None:
    runs.clear()
    solvers.clear()


TASKS: dict[str, Any] = {"try": _try, "time": _time, "forget": _forget}


class Worker:
    """The parent's side: ask, wait at most so long, start anew what hung or died."""

    def __init__(self, package: str, logs: Path) -> None:
        self.log = str((logs / f"{package}.log").resolve())
        self.process: Any = None

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, self.log), daemon=True)
        self.process.start()
        other.close()

    def ask(self, limit: float, *request: Any) -> Any:
        """The worker's answer, or a :class:`Failure` when it takes over ``limit`` seconds or dies."""
        if self.process is None:
            self.start()
            limit += START_UP_SECONDS
        try:
            self.connection.send(request)
            if self.connection.poll(limit):
                return self.connection.recv()
            reason = f"stopped after {limit:.0f} s"
        except (EOFError, ConnectionError):
            self.process.join()
            reason = f"the process died with code {self.process.exitcode}"
        self.stop()
        return Failure(reason)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
            self.process = None


def limit_threads() -> None:
    """One thread for every linear algebra library, here and in the processes started from here."""
    for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB_MAXIMUM", "NUMBA", "RAYON"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.stdout.flush()
