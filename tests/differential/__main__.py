"""A long differential test: a part of ``make soak`` draws cases, solves them in processes of their own and counts.

A worker that says nothing for a minute is stopped and its case counted as hung; a worker that grows is reported.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field

import numpy as np

from differential.case import judged
from differential.families import drawn

PATIENCE = 120.0  # seconds that one case may take, the compilation of kernels included
GROWTH = 100.0  # MB that a worker may grow after its first hundred cases


def main() -> int:
    parser = argparse.ArgumentParser(prog="differential", description="solve random problems with known solutions")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no further case is drawn after them")
    parser.add_argument("--only", default="", help="cases whose label contains this")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        _work(*map(int, chosen.work), chosen.only)
        return 0
    tally = Tally()
    workers = [
        Worker(k, chosen.first, chosen.first + chosen.cases, chosen.workers, chosen.only) for k in range(chosen.workers)
    ]
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


def _work(first: int, beyond: int, stride: int, only: str) -> None:
    """Judge cases and write a line for each; what the solver prints goes elsewhere."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for seed in range(first, beyond, stride):
        case = drawn(seed)
        if only not in case.label:
            continue
        lines.write(json.dumps({"begun": seed, "label": case.label}) + "\n")
        lines.flush()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
        lines.write(json.dumps(asdict(judged(seed, case)) | {"memory": memory}) + "\n")
        lines.flush()


class Worker:
    """A process that judges every `stride`-th case, started again beyond a case that hangs or kills it."""

    def __init__(self, first: int, start: int, beyond: int, stride: int, only: str):
        self.beyond, self.stride, self.only = beyond, stride, only
        self.begun: dict = {}
        self.start(start + first)

    def start(self, seed: int) -> None:
        command = [sys.executable, "-m", "differential", "--only", self.only, "--work"]
        command += [str(seed), str(self.beyond), str(self.stride)]
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
            yield from self._went(f"the process ended with status {ended}", "crashed")
        elif self.is_at_work and time.monotonic() - self.heard > PATIENCE:
            yield from self._went(f"nothing heard for {PATIENCE:g} s", "hung")

    def _went(self, words: str, kind: str):
        self.stop()
        if self.begun:
            seed = self.begun["begun"]
            yield {"seed": seed, "label": self.begun["label"], "kind": kind, "words": words, "memory": 0.0}
            self.begun = {}
            self.start(seed + self.stride)

    def stop(self) -> None:
        self.is_at_work = False
        self.process.kill()
        self.process.wait()


@dataclass
class Tally:
    """What was counted, and what is shown of it."""

    kinds: dict[str, Counter] = field(default_factory=dict)
    ratios: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)

    def count(self, found: dict) -> None:
        self.kinds.setdefault(found["label"].split(",")[0], Counter())[found["kind"]] += 1
        self.memory.append(found["memory"])
        if found["kind"] == "right":
            self.ratios.append(found["ratio"])
            return
        self.bad += [found["seed"]] * (found["kind"] != "refused")
        size = f", {found['ratio']:.2g} times what is allowed for" if found["kind"] == "wrong" else ""
        words = found["words"].split("\n")[0]
        print(f"case {found['seed']}, {found['label']}: {found['kind']}{size}: {words}", flush=True)

    def close(self) -> int:
        """Print the counts; 0 if nothing was wrong, crashed or hung, and less than 1 % refused."""
        total = sum(self.kinds.values(), Counter())
        for name, kinds in sorted(self.kinds.items()):
            print(f"{name:20s}", ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
        number = sum(total.values())
        share = 100.0 * total["refused"] / max(number, 1)
        print(f"{number} cases: {total['right']} right, {total['refused']} refused ({share:.2f} %), ", end="")
        print(", ".join(f"{total[kind]} {kind}" for kind in ("wrong", "crashed", "hung")))
        if self.ratios:
            middle, high, worst = np.quantile(self.ratios, [0.5, 0.99, 1.0])
            print(f"error / (tolerance x condition): median {middle:.2g}, 99 % below {high:.2g}, worst {worst:.2g}")
        for seed in self.bad:
            print(f"to repeat case {seed}: cd tests && python -m differential --first {seed} --cases 1 --workers 1")
        settled = self.memory[100:]
        growth = max(settled) - settled[0] if settled else 0.0
        print(f"memory: {max(self.memory, default=0.0):.0f} MB at most, grown by {growth:.0f} MB after the first cases")
        return int(total["wrong"] + total["crashed"] + total["hung"] > 0 or share >= 1.0 or growth > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
