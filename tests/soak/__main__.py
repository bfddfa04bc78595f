"""All parts of the soak run, one after the other: ``python -m soak --minutes 60 --seed 7 --only races``.

The seed decides which random problems, examples and mutants are tried and in which order tests run; without one it is
drawn, and printed. Parts share the time by their weights; what one leaves goes to those that follow. The exit status is
0 if no part has found anything. Whoever finds something prints the command that repeats it.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
GRACE = 10.0
"""Minutes beyond its share after which a part is stopped: a test or case that has begun may end."""


@dataclass(frozen=True)
class Part:
    """A part: what it is, how it is started, and its share of the time."""

    words: str
    weight: float
    commands: Callable[[Run], list[list[str]]]
    """The commands of one round; further rounds, with other seeds, follow as long as there is time."""
    rounds: bool = False


@dataclass(frozen=True)
class Run:
    """What a part may use: the minutes that it has, a seed, processes."""

    minutes: float
    seed: int
    workers: int

    def pytest(self, *arguments: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(self.workers), "--dist", "worksteal"]
        return [*command, "--minutes", f"{self.minutes:.3g}", "--seed", str(self.seed), *arguments]

    def module(self, name: str, *arguments: str) -> list[str]:
        command = [sys.executable, "-m", name, "--minutes", f"{self.minutes:.3g}", "--workers", str(self.workers)]
        return [*command, *arguments]


def long_tests(run: Run) -> list[list[str]]:
    return [run.pytest("--tier", "soak")]


def files_with(pattern: str) -> list[str]:
    """Test files with such a line: to collect all of them takes as long as what is looked for."""
    found = (path for path in TESTS.glob("test_*.py") if re.search(pattern, path.read_text(encoding="utf-8"), re.M))
    return sorted(map(str, found))


def cases(run: Run) -> list[list[str]]:
    return [run.module("soak.runner", "--first", str(1_000_000 * run.seed), "--cases", "1000000")]


def examples(run: Run) -> list[list[str]]:
    options = "--hypothesis-profile=soak", f"--hypothesis-seed={run.seed}"
    return [run.pytest("-m", "hypothesis", *options, *files_with(r"^@given"))]


def races(run: Run) -> list[list[str]]:
    """More processes at once than there are cores, so that they are interrupted anywhere."""
    crowded = Run(run.minutes, run.seed, 3 * run.workers)
    return [crowded.pytest("-m", "race", *files_with(r"^@pytest.mark.race$"))]


def mutants(run: Run) -> list[list[str]]:
    if not (TESTS / "mutants" / "__main__.py").exists():
        return []
    return [run.module("mutants", "--seed", str(run.seed))]


PARTS = {
    "long": Part("tests left out of `make test`: pages made twice, compilations, long runs", 2.0, long_tests),
    "cases": Part("random problems, functions and mistakes with known outcomes", 3.0, cases),
    "examples": Part("properties with random examples", 1.5, examples, rounds=True),
    "races": Part("processes and threads at once", 0.5, races, rounds=True),
    "mutants": Part("small errors in the sources, which tests must notice", 2.0, mutants),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="soak", description="run all parts of the soak tier within a time")
    parser.add_argument("--minutes", type=float, default=60.0, help="for all parts together")
    parser.add_argument("--seed", type=int, help="drawn and printed if it is not given")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; may be repeated")
    chosen = parser.parse_args(arguments)
    seed = secrets.randbelow(100_000) if chosen.seed is None else chosen.seed
    names = chosen.only or list(PARTS)
    print(f"soak: seed {seed}, {chosen.minutes:g} minutes, parts: {', '.join(names)}", flush=True)
    end, found = time.monotonic() + 60.0 * chosen.minutes, {}
    for k, name in enumerate(names):
        rest = (end - time.monotonic()) / 60.0
        share = rest * PARTS[name].weight / sum(PARTS[other].weight for other in names[k:])
        found[name] = run_part(name, max(share, 0.05), seed, chosen.workers)
    print(f"\nsoak: seed {seed}")
    for name, words in found.items():
        print(f"  {name:10s} {words}")
    return int(any(not words.startswith("ok") for words in found.values()))


def run_part(name: str, minutes: float, seed: int, workers: int) -> str:
    """Run a part; what became of it, in words that begin with "ok" if all was well."""
    part, begun, rounds = PARTS[name], time.monotonic(), 0
    print(f"\n=== {name}: {part.words}; {minutes:.1f} minutes", flush=True)
    while True:
        left = minutes - (time.monotonic() - begun) / 60.0
        if rounds and (not part.rounds or left < 0.2 * minutes / max(rounds, 1)):
            break
        run = Run(max(left, 0.05), seed + rounds, workers)
        commands = part.commands(run)
        if not commands:
            return "ok, is not there"
        for command in commands:
            status = _status(command, run.minutes + GRACE)
            if status not in (0, 5):  # 5: pytest had no tests
                again = f'make soak SOAK_ARGS="--only {name} --minutes {minutes:.3g} --seed {run.seed}"'
                print(f"to repeat this part: {again}\nits command, in tests/: {' '.join(command)}", flush=True)
                return f"failed with status {status} (seed {run.seed})"
        rounds += 1
    return f"ok, {rounds} round{'s' * (rounds > 1)}, {(time.monotonic() - begun) / 60.0:.1f} minutes"


def _status(command: list[str], minutes: float, patience: float = 30.0) -> int | str:
    """The exit status; a part that does not end is stopped with all its processes."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, cwd=TESTS, env=environment, start_new_session=True)
    try:
        return process.wait(60.0 * minutes)
    except subprocess.TimeoutExpired:
        return "none: it was stopped"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


if __name__ == "__main__":
    sys.exit(main())
