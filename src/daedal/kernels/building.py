"""Compilation of kernels: processes with Numba compile units in parallel, and the results are cached.

Processes that need the same unit simultaneously coordinate by lock files in the cache: one of them compiles, the others
wait for its result, and take over if that process fails.
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

from daedal.common import object_store as store
from daedal.kernels.levels import level_of_unit
from daedal.kernels.sources import sources
from daedal.kernels.units import (
    Compiled,
    KernelBuildError,
    SourceMismatch,
    all_units,
    find,
    kept,
    key,
    shipped_path,
    source_of,
)
from daedal.kernels.worker import ANSWER

__all__ = ["KernelBuildError", "SourceMismatch", "build", "missing"]

_STALE = 20.0  # seconds without a heartbeat after which a lock is taken over
_SECONDS = 1.0, 0.03  # approximate compilation time: of any unit, and of each function in its source files
_TRIALS = 3  # attempts to compile a unit whose sources change meanwhile


def build(
    units: Sequence[str],
    *,
    levels: Callable[[str], list[str]] | None = None,
    into: str | None = None,
    jobs: int | None = None,
    again: bool = False,
    tell: Callable[[str, float], None] | None = None,
) -> dict[str, Compiled]:
    """Compile units, each in one of `jobs` processes, and store them in the user's cache.

    Parameters
    ----------
    units : sequence of str
        Names of modules.
    levels : callable, optional
        ``levels(unit)`` returns the processor levels; by default the level of this machine.
    into : str, optional
        A folder for the code, with the file names of a wheel, instead of the user's cache.
    jobs : int, optional
        Number of processes; by default the number of cores.
    again : bool
        Recompile and replace units in the user's cache.
    tell : callable, optional
        ``tell(unit, seconds)`` is called after each unit; by default a line on stderr announces the compilation.

    Returns
    -------
    dict
        The code of the last level of each unit.
    """
    units = list(dict.fromkeys(units))
    made: dict[str, Compiled] = {}
    wanted = []
    for unit in units:
        present = _kept(unit, levels) if into is not None and not again else None
        if present is None:
            wanted.append(unit)
            continue
        made[unit] = present
        _put(into or "", present)
        if tell is not None:
            tell(unit, 0.0)
    if not wanted:
        return made
    if importlib.util.find_spec("numba") is None:
        raise KernelBuildError(
            f"this installation has no machine code for {wanted[0]} on this processor, and Numba, which compiles "
            "it, is not installed; run `pip install numba`, or install a wheel of Daedal, which includes the code"
        )
    announce = _announce if tell is None else None
    jobs = _jobs(jobs, len(wanted))
    with _Workers(wanted, levels, jobs, shares=into is None, again=again, announce=announce) as workers:
        for unit, compiled, seconds in workers:
            made[unit] = compiled
            if into is not None:
                _put(into, compiled)
            if tell is not None and seconds is not None:
                tell(unit, seconds)
    return made


def _announce(unit: str):
    """Announce the compilation and its approximate duration, so that it does not look like a hang."""
    functions = sum(file.read_text(encoding="utf-8").count("\ndef ") for file in sources(source_of(unit)))
    seconds, name = _SECONDS[0] + _SECONDS[1] * functions, unit.removeprefix("daedal.")
    store.say(f"compiling {name} (once, about {seconds:.0f} s) ...")


def _kept(unit: str, levels: Callable[[str], list[str]] | None) -> Compiled | None:
    """The code of a unit from the user's cache; None if missing, or if other processor levels are requested."""
    here = level_of_unit(unit)
    if levels is not None and levels(unit) != [here]:
        return None
    return kept(unit, here)


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
def _lock_of(unit: str, is_done: Callable[[], bool], stop: threading.Event) -> Iterator[None]:
    """Hold the lock of a unit, unless it is done or the build stops before the lock is free.

    If no lock can be written, every process compiles the unit itself.
    """
    try:
        lock = store.folder() / f"{key(unit, level_of_unit(unit))}.lock"
        mine = _acquire(lock, unit, is_done, stop)
    except (OSError, RuntimeError, ValueError):
        mine = False
    if not mine:
        yield
        return
    ended = threading.Event()
    heartbeat = threading.Thread(target=_beat, args=(lock, ended), daemon=True)
    heartbeat.start()
    try:
        yield
    finally:
        ended.set()
        heartbeat.join()
        lock.unlink(missing_ok=True)


def _acquire(lock: Path, unit: str, is_done: Callable[[], bool], stop: threading.Event) -> bool:
    """Wait for the lock; False if the unit is finished earlier."""
    seen, since, waits = None, time.monotonic(), False
    while True:
        try:
            lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return True
        except FileExistsError:
            if not lock.parent.is_dir():
                raise  # a file has the name of the folder
        except FileNotFoundError:
            continue  # another process just removed the folder
        if is_done():
            return False
        if not waits and time.monotonic() - since > 1.0:
            store.say(f"waiting for another process that compiles {unit} ...")
            waits = True
        with contextlib.suppress(FileNotFoundError):
            stamp = lock.stat().st_mtime_ns
            if stamp != seen:
                seen, since = stamp, time.monotonic()
            elif time.monotonic() - since > _STALE:
                lock.unlink(missing_ok=True)
        if stop.wait(0.05):
            return False


def _beat(lock: Path, ended: threading.Event):
    while not ended.wait(1.0):
        with contextlib.suppress(OSError):
            os.utime(lock)


# --- processes that compile -------------------------------------------------------------------------------------------


class _Workers:
    """Threads that each pass units to one process with Numba; iterates over (unit, code, seconds).

    With several levels a unit is returned several times, with seconds only the last time. Results are stored in the
    user's cache, under a lock, if `shares`.
    """

    def __init__(self, units, levels, jobs: int, *, shares: bool, again: bool, announce: Callable[[str], None] | None):
        self._levels, self._shares, self._again, self._announce = levels, shares, again, announce
        self._left = len(units)
        self._waiting: Queue[str] = Queue()
        for unit in sorted(units, key=lambda unit: -source_of(unit).stat().st_size):
            self._waiting.put(unit)
        self._done: Queue[tuple[str, Any]] = Queue()
        self._stop = threading.Event()
        self._processes: list[_Process] = []
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(jobs)]

    def __enter__(self) -> _Workers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        """Terminate all processes, regardless of how the build ended."""
        if self._left:
            self._stop.set()
            for process in self._processes:
                process.terminate()
        for thread in self._threads:
            thread.join()

    def __iter__(self) -> Iterator[tuple[str, Compiled, float | None]]:
        while self._left:
            unit, answer = self._done.get()
            if isinstance(answer, Exception):
                raise answer
            self._left -= 1
            *others, last = answer[0]
            for compiled in others:
                yield unit, compiled, None
            yield unit, last, answer[1]

    def _work(self):
        process = None
        try:
            while not self._stop.is_set():
                try:
                    unit = self._waiting.get_nowait()
                except Empty:
                    return
                try:
                    with self._lock_of(unit):
                        found = self._found(unit)
                        if found is None and self._announce is not None and not self._stop.is_set():
                            self._announce(unit)
                        for _ in range(_TRIALS):
                            if found is not None or self._stop.is_set():
                                break
                            process = process or self._start()
                            found = self._compiled(process, unit)
                            if found is None:
                                process.end()
                                process = None
                    changed = f"{source_of(unit)} was changed during each of {_TRIALS} compilations"
                    self._done.put((unit, found or SourceMismatch(changed)))
                except KernelBuildError as error:
                    self._done.put((unit, error))
                except Exception as error:
                    self._done.put((unit, KernelBuildError(f"{unit} could not be compiled:\n{error!r}")))
        finally:
            if process is not None:
                process.end()

    def _start(self) -> _Process:
        process = _Process()
        self._processes.append(process)
        if self._stop.is_set():
            process.terminate()
        return process

    def _lock_of(self, unit: str) -> contextlib.AbstractContextManager:
        if not self._shares:
            return contextlib.nullcontext()
        return _lock_of(unit, lambda: self._found(unit) is not None, self._stop)

    def _found(self, unit: str) -> tuple[list[Compiled], float] | None:
        """The code of a unit compiled meanwhile by another process."""
        found = find(unit) if self._shares and not self._again else None
        return None if found is None else ([found], 0.0)

    def _compiled(self, process: _Process, unit: str) -> tuple[list[Compiled], float] | None:
        """The code of a unit with its compilation times; None if sources changed after the process imported them."""
        levels = None if self._levels is None else self._levels(unit)
        answer, contents = process.ask({"unit": unit, "levels": levels, "source": str(source_of(unit))})
        if "changed" in answer:
            return None
        if "mismatch" in answer:
            raise SourceMismatch(answer["mismatch"])
        if "error" in answer:
            raise KernelBuildError(f"{unit} could not be compiled:\n{answer['error']}")
        made = [Compiled.unpacked(content) for content in contents]
        if self._shares:
            for compiled in made:
                store.save(compiled.key, compiled.packed())
        if any(compiled.key != key(unit, compiled.level) for compiled in made):
            raise SourceMismatch(f"{source_of(unit)} or one of its imports was changed after it was imported")
        return made, answer["seconds"]


class _Process:
    """A compiling process; it inherits the path of this process, and only Daedal's settings of Numba."""

    def __init__(self):
        package = str(Path(__file__).resolve().parent.parent.parent)
        path = [entry for entry in sys.path if isinstance(entry, str)]  # Python also ignores all others
        path += [] if package in path else [package]
        code = f"import sys; sys.path[:] = {path!r}; from daedal.kernels.worker import main; main()"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        try:
            self._printed = tempfile.TemporaryFile()
        except OSError:
            self._printed = open(os.devnull, "w+b")
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            env={**environment, "DAEDAL_KERNELS": "build"},
        )
        # unbuffered, since a fork of this process would inherit the buffer
        self._requests, self._answers = self._process.stdin.detach(), self._process.stdout
        self._process.stdin = None
        _running.add(self)

    def ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Send a request, and wait for the answer with its contents."""
        with contextlib.suppress(BrokenPipeError):
            self._requests.write(json.dumps(request).encode() + b"\n")
        for line in self._answers:
            if line.startswith(ANSWER):
                answer = json.loads(line.removeprefix(ANSWER))
                contents = [self._answers.read(size) for size in answer["sizes"]]
                if [len(content) for content in contents] == answer["sizes"]:
                    return answer, contents
        status = self._process.wait()
        self._printed.seek(0)
        printed = self._printed.read().decode(errors="replace")
        return {"error": f"{printed}the compiler process exited with status {status}"}, []

    def terminate(self):
        """Terminate the process."""
        self._process.terminate()

    def end(self) -> None:
        """Let the process finish its answer and exit."""
        with contextlib.suppress(OSError):
            self._requests.write(b"null\n")
        self._process.wait()
        self.close_requests()
        self._answers.close()
        self._printed.close()
        _running.discard(self)

    def close_requests(self):
        """Close this end of the pipe."""
        self._requests.close()


_running: set[_Process] = set()


def _after_fork():
    """Close the pipes in a forked process: a worker ends when the last end of its pipe is closed."""
    for process in _running:
        process.close_requests()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
