"""A sample of small errors in the sources, each of which the tests have to notice: ``make soak``.

Every mutant is written into a copy of the package, and the tests that rest on its file run there, the quickest first,
until one fails. Compiled kernels come from a store of the run's own, which begins with what the user's has; those that
a mutant touches are compiled anew, and their code goes with the run.

Not mutmut: it puts all variants of a function into one and chooses when that is called, which is no kernel that could
be compiled; not cosmic-ray: one command tests all mutants, in the checkout itself, without a limit of time.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import os
import py_compile
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mutants.changes import Mutant, mutants
from mutants.plugin import NO_IMPORT
from mutants.resting import Resting

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
PACKAGE = ROOT / "src" / "daedal"
FOLDERS = ("kernels", "methods", "symbolic", "initial", "events")
AIM = 0.9
NEAREST = 3  # test files that run first
SECONDS = 30.0  # of tests for a mutant, as they take without it
PATIENCE = 180.0  # seconds for a mutant, with the compilation of what it touches
IN_PYTHON = 60  # seconds for a test of a file without kernels, which may be in a loop without end

CAUGHT, SURVIVED, LATE, INVALID, UNTESTED, UNJUDGED = (
    "caught",
    "survived",
    "ran out of time",
    "does not import or compile",
    "has no tests",
    "not judged",
)


@dataclass
class Verdict:
    mutant: Mutant
    word: str
    by: str = ""
    seconds: float = 0.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description="put errors into the sources, and see who notices")
    parser.add_argument("--sample", type=int, default=500, help="mutants that are drawn")
    parser.add_argument("--seed", type=int, default=None, help="of the draw; printed, so that it can be repeated")
    parser.add_argument("--minutes", type=float, default=30.0, help="after which no more is done")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="files whose path begins so, such as methods/radau")
    parser.add_argument("--list", action="store_true", help="show the mutants and their tests, and end")
    chosen = parser.parse_args()
    seed = random.randrange(10**6) if chosen.seed is None else chosen.seed
    files = [str(path.relative_to(PACKAGE)) for folder in FOLDERS for path in sorted((PACKAGE / folder).rglob("*.py"))]
    every = [mutant for file in files if file.startswith(chosen.only) for mutant in mutants(PACKAGE, file)]
    if not every:
        parser.error(f"no file of {', '.join(FOLDERS)} begins with {chosen.only!r}")
    drawn = random.Random(seed).sample(every, min(chosen.sample, len(every)))
    print(f"{len(drawn)} of {len(every)} mutants, seed {seed}, at most {chosen.minutes:g} minutes", flush=True)
    resting = Resting(PACKAGE, TESTS)
    if chosen.list:
        for mutant in drawn:
            print(f"{mutant}\n    {' '.join(resting.on(mutant.file))}")
        return 0
    with tempfile.TemporaryDirectory(prefix="daedal-mutants-") as folder:
        verdicts = Run(Path(folder), resting, time.monotonic() + 60.0 * chosen.minutes).judged(drawn, chosen.workers)
    return report(verdicts, len(drawn), seed)


def report(verdicts: list[Verdict], drawn: int, seed: int) -> int:
    count = Counter(verdict.word for verdict in verdicts)
    judged = count[CAUGHT] + count[SURVIVED]
    print(f"\nseed {seed}: {drawn} drawn; " + ", ".join(f"{n} {word}" for word, n in count.most_common()))
    for word in (LATE, UNTESTED, SURVIVED):
        for verdict in sorted((v for v in verdicts if v.word == word), key=lambda v: (v.mutant.file, v.mutant.line)):
            print(f"  {word}: {verdict.mutant}")
    if judged:
        share = count[CAUGHT] / judged
        print(f"{count[CAUGHT]} of {judged} mutants that were tested are caught, {share:.0%}; the aim is {AIM:.0%}")
    return 0


class Run:
    """Copies of the package, one for each worker, and what the tests take."""

    def __init__(self, folder: Path, resting: Resting, until: float):
        self.folder, self.resting, self.until = folder, resting, until
        self.times = Times(self)
        self.trusted: dict[str, bool] = {}  # whether tests that have caught a mutant pass without one
        self.store = folder / "store"
        self._link_store()
        self.copy = threading.local()
        self.copies = 0
        self.lock = threading.Lock()
        original = folder / "original" / "daedal"
        shutil.copytree(PACKAGE, original, ignore=shutil.ignore_patterns("__pycache__"))
        # a file that has another text is compiled again, whatever its time and size
        compileall.compile_dir(original, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        self.original = original

    def _link_store(self):
        """What the user's store has, without its files being copied where the file system allows."""
        from daedal.common import object_store

        self.store.mkdir()
        for file in object_store.folder().glob("*.o"):
            try:
                os.link(file, self.store / file.name)
            except OSError:
                shutil.copy2(file, self.store / file.name)

    def judged(self, drawn: list[Mutant], workers: int) -> list[Verdict]:
        verdicts: list[Verdict] = []

        def judge(mutant: Mutant):
            if self.left() < 5.0:
                verdict = Verdict(mutant, UNJUDGED)
            else:
                begun = time.monotonic()
                verdict = self.judge(mutant)
                verdict.seconds = time.monotonic() - begun
                by = f" by {verdict.by}" if verdict.by else ""
                print(f"{verdict.word:10} {verdict.seconds:4.0f} s  {mutant}{by}", flush=True)
            verdicts.append(verdict)

        with ThreadPoolExecutor(workers) as pool:
            try:
                list(pool.map(judge, drawn))
            except KeyboardInterrupt:
                print("stopped")
                self.until = 0.0  # those that wait are not judged
        return verdicts

    def left(self) -> float:
        return self.until - time.monotonic()

    def judge(self, mutant: Mutant) -> Verdict:
        files, left = self.resting.on(mutant.file), SECONDS
        verdict = Verdict(mutant, UNTESTED)
        for part in (files[:NEAREST], files[NEAREST:]):
            times, chosen = self.times.of(part), []
            for name in sorted(times, key=lambda name: times[name]):
                if times[name] > left:
                    break
                left -= times[name]
                chosen.append(name)
            if chosen:
                verdict = self._tried(mutant, chosen)
            if verdict.word not in (SURVIVED, UNTESTED):
                break
        return verdict if self.left() > 0.0 or verdict.word == CAUGHT else Verdict(mutant, UNJUDGED)

    def _tried(self, mutant: Mutant, tests: list[str]) -> Verdict:
        """The verdict of some tests, in their order."""
        package = self._own_copy()
        path = package / mutant.file
        before = path.read_bytes()
        try:
            path.write_bytes(mutant.applied(before))
            code, output = self.pytest(package, tests, file=mutant.file, own_time=not _has_kernels(before))
        finally:
            path.write_bytes(before)
        if code is None:
            return Verdict(mutant, LATE)
        if code == 0:
            return Verdict(mutant, SURVIVED)
        if code == NO_IMPORT or "KernelBuildError" in output:
            return Verdict(mutant, INVALID)
        found = re.findall(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", output, re.MULTILINE)
        if found and found[0] in tests and not self._passes(found[0]):
            self.times.forget(found[0])
            return self._tried(mutant, [name for name in tests if name != found[0]])
        return Verdict(mutant, CAUGHT, found[0] if found else f"exit status {code}")

    def _passes(self, name: str) -> bool:
        """Whether a test passes without a mutation."""
        if name not in self.trusted:
            code, _ = self.pytest(self.original, [name])
            self.trusted[name] = code == 0
        return self.trusted[name]

    def _own_copy(self) -> Path:
        if not hasattr(self.copy, "package"):
            with self.lock:
                self.copies += 1
                place = self.folder / f"worker{self.copies}" / "daedal"
            shutil.copytree(self.original, place)
            self.copy.package = place
        return self.copy.package

    def pytest(self, package: Path, tests: list[str], *, file="__init__.py", note: Path | None = None, own_time=False):
        """Run tests in turn up to the first that fails, or files and a note of what takes how long; the status.

        It is ``NO_IMPORT`` where a file of the package cannot be imported.
        """
        options = ["-q", "-p", "mutants.plugin", "-p", "no:cacheprovider", "-m", "not slow", "--tb=short"]
        module = ".".join(["daedal", *file.removesuffix(".py").split("/")]).removesuffix(".__init__")
        settings = {"MUTANTS_MODULE": module}
        if note is None:
            order = package.parent / f"chosen-{threading.get_ident()}"
            order.write_text("\n".join(tests))
            settings["MUTANTS_CHOSEN"] = str(order)
            options.append("-x")
        else:
            settings["MUTANTS_NOTE"] = str(note)
        if own_time:
            options.append(f"--timeout={IN_PYTHON}")
        files = sorted({name.partition("::")[0] for name in tests})
        return self.python(package, ["-m", "pytest", *options, *files], PATIENCE, settings)

    def python(self, package: Path, arguments: list[str], patience: float, settings: dict[str, str] | None = None):
        """The exit status, or None where time ran out, and what was printed."""
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(package.parent), str(TESTS), os.environ.get("PYTHONPATH", "")]),
            "DAEDAL_CACHE_DIR": str(self.store),
            "DAEDAL_CACHE_SIZE": "100000",
            "MUTANTS_PACKAGE": str(package),
            "MPLBACKEND": "Agg",
            **(settings or {}),
        }
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=max(0.1, min(patience, self.left())))
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            _end(process)
        return process.returncode, output


def _end(process: subprocess.Popen):
    """End a process and those that it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _has_kernels(source: bytes) -> bool:
    return b"kernels.compilation import" in source


class Times:
    """What the tests take that pass without a mutation, by file; kept in the user's cache for later runs."""

    def __init__(self, run: Run):
        from daedal.common import object_store

        self.run, self.place = run, object_store.folder().parent / "mutants"
        self.place.mkdir(parents=True, exist_ok=True)
        self.known: dict[str, dict[str, float]] = {}
        self.locks: dict[str, threading.Lock] = {}
        self.lock = threading.Lock()

    def of(self, files: list[str]) -> dict[str, float]:
        return {name: t for file in files for name, t in self._of(file).items()}

    def forget(self, name: str):
        """Leave out a test that fails, or not always passes."""
        self.known[name.partition("::")[0].removeprefix("tests/")].pop(name, None)

    def _of(self, file: str) -> dict[str, float]:
        with self.lock:
            lock = self.locks.setdefault(file, threading.Lock())
        with lock:
            if file not in self.known:
                text = (TESTS / file).read_bytes()
                kept = self.place / f"{file}-{hashlib.sha256(text).hexdigest()[:16]}"
                if not kept.exists():
                    note = self.run.folder / f"note-{file}"
                    code, _ = self.run.pytest(self.run.original, [f"tests/{file}"], note=note)
                    if code is None and self.run.left() < 5.0:
                        return {}
                    note.touch()
                    shutil.move(note, kept)
                lines = (line.split(" ", 1) for line in kept.read_text().splitlines())
                self.known[file] = {name: float(seconds) for seconds, name in lines}
        return self.known[file]


if __name__ == "__main__":
    sys.exit(main())
