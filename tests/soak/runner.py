"""Random cases, solved in processes of their own and counted by family: ``python -m soak.runner functions pulses``.

Each family is a function of a number, which is the seed: ``python -m soak.runner pulses --first 17 --cases 1`` repeats a
case and prints what became of it. The exit status is 0 if no case is wrong, crashed or hung, at most 1 % are warned
of, and at most 1 % of the well-posed problems refused. Cases that are not right are written as scripts to ``--scripts``.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from soak.case import KINDS
from soak.families import FAMILIES

PATIENCE = 20.0
"""Seconds of processor time that a case may take."""
SILENCE = 180.0
"""Seconds of any kind after which a worker that reports nothing is stopped."""
GROWTH = 100.0
"""MB that a worker may grow in the second half of its cases."""
SHARE = 0.01
"""The largest share of cases that are warned of, and of well-posed problems that are refused."""
BAD = ("wrong", "crashed", "hung")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="soak.runner", description="solve random cases with known results")
    parser.add_argument("families", nargs="*", choices=[[], *FAMILIES], help="all without one")
    parser.add_argument("--cases", type=int, default=10_000, help="of each family")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no further case is begun after them")
    parser.add_argument("--only", default="", help="cases whose label contains this")
    parser.add_argument("--scripts", type=Path, help="a folder for the cases that are not right")
    parser.add_argument("--work", nargs=3, type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    families = chosen.families or list(FAMILIES)
    if chosen.work:
        _work(families, chosen.first, *chosen.work, chosen.only)
        return 0
    tally = Tally(families, chosen.first, chosen.scripts)
    beyond = chosen.cases * len(families)
    workers = [Worker(k, beyond, chosen.workers, families, chosen.first, chosen.only) for k in range(chosen.workers)]
    until = time.monotonic() + 60.0 * chosen.minutes
    try:
        while any(worker.is_at_work for worker in workers) and time.monotonic() < until:
            select.select([worker.output for worker in workers if worker.is_at_work], [], [], 1.0)
            for worker in workers:
                for found in worker.verdicts():
                    tally.count(found)
    except KeyboardInterrupt:
        print("stopped")
    finally:
        for worker in workers:
            worker.stop()
    return tally.close()


def numbered(index: int, families: list[str], first: int) -> tuple[str, int]:
    """Families take turns: the family of the case with this index, and its number there."""
    return families[index % len(families)], first + index // len(families)


def _work(families: list[str], first: int, start: int, beyond: int, stride: int, only: str) -> None:
    """Judge cases and write a line for each; what Daedal prints goes elsewhere."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for index in range(start, beyond, stride):
        family, number = numbered(index, families, first)
        case = FAMILIES[family](number)
        if only not in case.label:
            continue
        lines.write(json.dumps({"begun": index, "label": case.label}) + "\n")
        lines.flush()
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)  # ends the process, in compiled code as well
        verdict = case.judged(number)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        if index // stride % 10 == 0:
            gc.collect()
        memory = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6
        lines.write(json.dumps(asdict(verdict) | {"family": family, "memory": memory}) + "\n")
        lines.flush()


class Worker:
    """A process that judges every `stride`-th case, started again beyond a case that hangs or kills it."""

    def __init__(self, start: int, beyond: int, stride: int, families: list[str], first: int, only: str):
        self.beyond, self.stride, self.families, self.first, self.only = beyond, stride, families, first, only
        self.begun: dict = {}
        self.start(start)

    def start(self, index: int) -> None:
        command = [sys.executable, "-m", "soak.runner", *self.families, "--first", str(self.first)]
        command += ["--only", self.only, "--work", str(index), str(self.beyond), str(self.stride)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout is not None
        self.output, self.rest, self.heard, self.is_at_work = self.process.stdout, b"", time.monotonic(), True
        os.set_blocking(self.output.fileno(), False)

    def verdicts(self):
        """What the worker has found since it was last asked."""
        data = self.output.read() if self.is_at_work else None
        if data:
            self.heard = time.monotonic()
            *lines, self.rest = (self.rest + data).split(b"\n")
            for line in map(json.loads, lines):
                if "begun" in line:
                    self.begun = line
                else:
                    self.begun = {}
                    yield line
        elif self.is_at_work and (ended := self.process.poll()) is not None:
            if ended == -signal.SIGPROF:
                yield from self._went(f"more than {PATIENCE:g} s of processor time", "hung")
            else:
                yield from self._went(f"the process ended with status {ended}", "crashed")
        elif self.is_at_work and time.monotonic() - self.heard > SILENCE:
            yield from self._went(f"nothing heard for {SILENCE:g} s", "hung")

    def _went(self, words: str, kind: str):
        self.stop()
        if self.begun:
            index, label = self.begun["begun"], self.begun["label"]
            family, number = numbered(index, self.families, self.first)
            yield {"seed": number, "family": family, "label": label, "kind": kind, "words": words, "memory": 0.0}
            self.begun = {}
            self.start(index + self.stride)

    def stop(self) -> None:
        self.is_at_work = False
        self.process.kill()
        self.process.wait()


@dataclass
class Tally:
    """What was counted, and what is shown of it."""

    families: list[str]
    first: int = 0
    scripts: Path | None = None
    kinds: dict[str, Counter] = field(default_factory=dict)
    ratios: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    bad: list[tuple[str, int]] = field(default_factory=list)
    seconds: Counter = field(default_factory=Counter)

    def count(self, found: dict) -> None:
        family, number, kind = found["family"], found["seed"], found["kind"]
        self.kinds.setdefault(family, Counter())[kind] += 1
        self.seconds[family] += found.get("seconds", PATIENCE)
        self.memory.append(found["memory"])
        if kind in ("right", "named"):
            self.ratios += [found["ratio"]] * (kind == "right")
            return
        self.bad += [(family, number)] * (kind in BAD)
        size = f", {found['ratio']:.2g} times what is allowed for" if kind in ("wrong", "missed") else ""
        words = found["words"].split("\n")[0][:400]
        print(f"{family} {number}, {found['label']}: {kind}{size}: {words}", flush=True)
        source = getattr(FAMILIES[family](number), "source", "")
        if self.scripts is not None and source:
            self.scripts.mkdir(parents=True, exist_ok=True)
            script = f"# {kind}: {words}\n{source}\nprint(found())\n"
            (self.scripts / f"{family}_{number}.py").write_text(script, encoding="utf-8")

    def close(self) -> int:
        """Print the counts; 0 if they are as they are to be."""
        rows = [(name, self.kinds.get(name, Counter())) for name in self.families]
        if len(rows) > 1:
            rows.append(("together", sum(self.kinds.values(), Counter())))
        print(f"{'family':14s}{'cases':>8s}" + "".join(f"{kind:>9s}" for kind in KINDS) + f"{'seconds':>9s}")
        for name, kinds in rows:
            seconds = self.seconds[name] if name in self.seconds else sum(self.seconds.values())
            print(f"{name:14s}{sum(kinds.values()):8d}" + "".join(f"{kinds[kind]:9d}" for kind in KINDS), end="")
            print(f"{seconds:9.0f}")
        total = rows[-1][1]
        number = max(sum(total.values()), 1)
        posed = max(number - total["named"], 1)
        if self.ratios:
            middle, high, worst = np.nanquantile(self.ratios, [0.5, 0.99, 1.0])
            print(f"error / what is allowed: median {middle:.2g}, 99 % below {high:.2g}, worst {worst:.2g}")
        for family, seed in self.bad:
            print(f"to repeat: cd tests && python -m soak.runner {family} --first {seed} --cases 1 --workers 1")
        quarter = len(self.memory) // 4  # the least of many cases: what a single one takes is given back
        growth = min(self.memory[-quarter:]) - min(self.memory[quarter : 2 * quarter]) if quarter >= 50 else 0.0
        print(f"memory: {max(self.memory, default=0.0):.0f} MB at most, grown by {growth:.0f} MB in the second half")
        many = total["warned"] + total["missed"] > SHARE * number or total["refused"] > SHARE * posed
        return int(any(total[kind] for kind in BAD) or many or growth > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
