"""Building of kernels: processes with Numba compile units side by side, and the results are kept.

Processes that need the same unit at the same time agree by files beside the cache's entries: one of them compiles, the
others wait for its result, and take over where it does not come.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from daedal import object_store as store
from daedal.errors import DaedalError
from daedal.kernels.levels import level_of_unit
from daedal.kernels.sources import sources
from daedal.kernels.units import Compiled, all_units, find, key, shipped_path, source_of
from daedal.kernels.worker import ANSWER

_STALE = 20.0  # seconds without a heartbeat after which a lock is taken over
_SECONDS = 1.0, 0.03  # about what a unit takes, and each function in the files that it is made from


class KernelBuildError(DaedalError):
    """A kernel could not be compiled, or not here."""


def build(
    units: Sequence[str],
    *,
    levels: Callable[[str], list[str]] | None = None,
    into: str | None = None,
    jobs: int | None = None,
    tell: Callable[[str, float], None] | None = None,
) -> dict[str, Compiled]:
    """Compile units, each in one of `jobs` processes, and keep them in the user's cache.

    Parameters
    ----------
    units : sequence of str
        Names of modules.
    levels : callable, optional
        ``levels(unit)`` names the levels of the processor; by default that of this machine.
    into : str, optional
        A folder that takes the code, under the names that a wheel has, in place of the user's cache.
    jobs : int, optional
        As many as there are cores by default.
    tell : callable, optional
        ``tell(unit, seconds)`` is called after each unit; by default a line on stderr announces what is compiled.

    Returns
    -------
    dict
        The code of the last level of each unit.
    """
    units = list(dict.fromkeys(units))
    made: dict[str, Compiled] = {}
    wanted = []
    for unit in units:
        kept = _kept(unit, levels) if into is not None else None
        if kept is None:
            wanted.append(unit)
            continue
        made[unit] = kept
        _put(into or "", kept)
        if tell is not None:
            tell(unit, 0.0)
    if not wanted:
        return made
    if importlib.util.find_spec("numba") is None:
        raise KernelBuildError(
            f"this installation has no machine code for {wanted[0]} on this processor, and Numba, which makes it, is "
            "not installed; `pip install numba` brings it, or install a wheel of Daedal, which has the code"
        )
    announce = _announce if tell is None else None
    with _Workers(wanted, levels, _jobs(jobs, len(wanted)), shares=into is None, announce=announce) as workers:
        for unit, compiled, seconds in workers:
            made[unit] = compiled
            if into is not None:
                _put(into, compiled)
            if tell is not None and seconds is not None:
                tell(unit, seconds)
    return made


def _announce(unit: str):
    """Print what is compiled and about how long it takes, so that nobody takes it for a hang."""
    functions = sum(file.read_text(encoding="utf-8").count("\ndef ") for file in sources(source_of(unit)))
    seconds, name = _SECONDS[0] + _SECONDS[1] * functions, unit.removeprefix("daedal.")
    print(f"daedal: compiling {name} (once, about {seconds:.0f} s) ...", file=sys.stderr, flush=True)


def _kept(unit: str, levels: Callable[[str], list[str]] | None) -> Compiled | None:
    """What the user's cache has of a unit, if that is all that is asked for."""
    here = level_of_unit(unit)
    if levels is not None and levels(unit) != [here]:
        return None
    content = store.load(key(unit, here))
    return None if content is None else Compiled.unpacked(content)


def _put(into: str, compiled: Compiled):
    Path(into).mkdir(parents=True, exist_ok=True)
    store.write(shipped_path(Path(into), compiled.unit, compiled.level), compiled.packed())


def missing(units: Sequence[str] | None = None) -> list[str]:
    """The units that are neither in the package nor in the user's cache."""
    return [unit for unit in units or all_units() if find(unit) is None]


def _jobs(jobs: int | None, units: int) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(jobs or cores, units))


# --- one process at a time for each unit ------------------------------------------------------------------------------


@contextlib.contextmanager
def _lock_of(unit: str) -> Iterator[bool]:
    """True with the lock of a unit; False if another process has compiled it meanwhile.

    Where no lock can be written, every process compiles for itself.
    """
    try:
        place = store.folder()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = place / f"{key(unit, level_of_unit(unit))}.lock"
        mine = _acquire(lock, unit)
    except (OSError, RuntimeError, ValueError):
        yield True
        return
    if not mine:
        yield False
        return
    stop = threading.Event()
    heartbeat = threading.Thread(target=_beat, args=(lock, stop), daemon=True)
    heartbeat.start()
    try:
        yield find(unit) is None
    finally:
        stop.set()
        heartbeat.join()
        lock.unlink(missing_ok=True)


def _acquire(lock: Path, unit: str) -> bool:
    """Wait for the lock; False if the unit was found before that."""
    seen, since, waits = None, time.monotonic(), False
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return True
        except FileExistsError:
            pass
        if find(unit) is not None:
            return False
        if not waits and time.monotonic() - since > 1.0:
            print(f"daedal: waiting for another process that compiles {unit} ...", file=sys.stderr, flush=True)
            waits = True
        with contextlib.suppress(FileNotFoundError):
            stamp = lock.stat().st_mtime_ns
            if stamp != seen:
                seen, since = stamp, time.monotonic()
            elif time.monotonic() - since > _STALE:
                lock.unlink(missing_ok=True)
        time.sleep(0.05)


def _beat(lock: Path, stop: threading.Event):
    while not stop.wait(1.0):
        with contextlib.suppress(OSError):
            os.utime(lock)


# --- processes that compile -------------------------------------------------------------------------------------------


class _Workers:
    """Threads that each hand units to one process with Numba; iterates over (unit, code, seconds).

    With several levels a unit comes several times, with seconds the last time only. What was compiled is kept in the
    user's cache, under a lock, if it `shares`.
    """

    def __init__(self, units, levels, jobs: int, *, shares: bool, announce: Callable[[str], None] | None):
        self._levels, self._shares, self._announce, self._left = levels, shares, announce, len(units)
        self._waiting: Queue[str] = Queue()
        for unit in sorted(units, key=lambda unit: -source_of(unit).stat().st_size):
            self._waiting.put(unit)
        self._done: Queue[tuple[str, Any]] = Queue()
        self._folder = tempfile.TemporaryDirectory(prefix="daedal-")
        self._processes: list[subprocess.Popen] = []
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(jobs)]

    def __enter__(self) -> _Workers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        """Leave no process behind, whatever ended the build."""
        if self._left:
            with contextlib.suppress(Empty):
                while True:
                    self._waiting.get_nowait()
            for process in self._processes:
                process.terminate()
        for thread in self._threads:
            thread.join()
        self._folder.cleanup()

    def __iter__(self) -> Iterator[tuple[str, Compiled, float | None]]:
        while self._left:
            unit, answer = self._done.get()
            if isinstance(answer, str):
                raise KernelBuildError(f"{unit} could not be compiled:\n{answer}")
            self._left -= 1
            *others, last = answer[0]
            for compiled in others:
                yield unit, compiled, None
            yield unit, last, answer[1]

    def _work(self):
        process = None
        try:
            while True:
                try:
                    unit = self._waiting.get_nowait()
                except Empty:
                    return
                try:
                    with _lock_of(unit) if self._shares else contextlib.nullcontext(True) as mine:
                        found = None if mine else find(unit)
                        if found is not None:
                            self._done.put((unit, ([found], 0.0)))
                            continue
                        if self._announce is not None:
                            self._announce(unit)
                        if process is None:
                            process = _start_worker()
                            self._processes.append(process)
                        answer = self._ask(process, unit)
                        if self._shares and not isinstance(answer, str):
                            for compiled in answer[0]:
                                store.save(key(unit, compiled.level), compiled.packed())
                    self._done.put((unit, answer))
                except Exception as error:
                    self._done.put((unit, repr(error)))
        finally:
            if process is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
                process.wait()

    def _ask(self, process, unit: str) -> str | tuple[list[Compiled], float]:
        """The code of a unit with the seconds that it took, or why there is none."""
        levels = None if self._levels is None else self._levels(unit)
        process.stdin.write(json.dumps({"unit": unit, "levels": levels, "folder": self._folder.name}) + "\n")
        process.stdin.flush()
        printed: list[str] = []
        for line in process.stdout:
            if not line.startswith(ANSWER):
                printed.append(line)
                continue
            answer = json.loads(line.removeprefix(ANSWER))
            if "error" in answer:
                return answer["error"]
            return [Compiled.unpacked(Path(path).read_bytes()) for path in answer["files"]], answer["seconds"]
        return "".join(printed) or f"the process ended with {process.wait()}"


def _start_worker() -> subprocess.Popen:
    """A process that answers requests; it has the path of this one, and no settings of Numba but our own."""
    package = str(Path(__file__).resolve().parent.parent.parent)
    path = sys.path if package in sys.path else [*sys.path, package]
    code = f"import sys; sys.path[:] = {path!r}; from daedal.kernels.worker import main; main()"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**environment, "DAEDAL_KERNELS": "build"},
    )
