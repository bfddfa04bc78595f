"""Choice of the backend: the requested one, or a suitable one for the problem."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from daedal.ensembles.columns import Chunk
from daedal.ensembles.executors import DaskBackend, ExecutorBackend, dask_client, is_dask_client, threads_of
from daedal.ensembles.inputs import EnsembleRequest
from daedal.ensembles.part import Part
from daedal.ensembles.processes import ProcessesBackend
from daedal.ensembles.work import Alarm, Worker
from daedal.errors import InvalidProblemError
from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.hybrid.hybrid_solution import HybridSolution


class ThreadsBackend:
    """Threads that take the next chunk when they have finished one."""

    def __init__(self, request: EnsembleRequest, workers: int, worker: Worker | None = None):
        self.workers, self._worker = workers, worker or Worker(request)
        self.name = "1 thread" if workers == 1 else f"{workers} threads"

    def run(self, chunks: Iterator[Chunk], deliver: Callable[[Part], None]) -> None:
        """Run all chunks; a single worker uses the current thread."""
        if self.workers == 1:
            for chunk in chunks:
                deliver(self._worker(chunk))
            return
        lock, stop, results = threading.Lock(), threading.Event(), queue.Queue[object]()
        threads = [
            threading.Thread(target=self._serve, args=(chunks, lock, stop, results), daemon=True, name=f"daedal-{i}")
            for i in range(self.workers)
        ]
        for thread in threads:
            thread.start()
        running, failure = len(threads), None
        try:
            while running:
                item = results.get()
                if item is None:
                    running -= 1
                elif isinstance(item, Part):
                    deliver(item)
                else:
                    stop.set()
                    failure = item
        except BaseException:
            stop.set()
            for thread in threads:
                thread.join()
            while not results.empty():
                item = results.get()
                if isinstance(item, Part):
                    deliver(item)
            raise
        if isinstance(failure, BaseException):
            raise failure

    def _serve(self, chunks: Iterator[Chunk], lock, stop: threading.Event, results: queue.Queue) -> None:
        try:
            while not stop.is_set():
                with lock:
                    chunk = next(chunks, None)
                if chunk is None:
                    break
                results.put(self._worker(chunk, stop.is_set))
        except BaseException as error:  # errors of Daedal itself, or of a user's iterator: re-raised by `run`
            results.put(error)
        results.put(None)


# --- the first member: run in this process to determine the layout of states, the run time and the requirements ------

_LOADING = 60.0  # smallest time limit of the first member, in seconds, since it compiles and loads code


@dataclass
class FirstMember:
    """Results of running the first member."""

    request: EnsembleRequest  # includes the layout of states if it was unknown before
    worker: Worker  # prepared for the other members
    part: Part  # the result of the first member
    seconds: float  # estimated time of another member
    interpreter: str  # why runs need the interpreter, so that threads would block each other; empty if they do not
    is_batch: bool  # whether members run in a batch kernel

    def again(self, chunk: Chunk) -> Part:
        """Run a second member, to exclude compilation and loading from the time, or to replace a failed first
        member."""
        failed = not self.worker.was_asked
        part, solution, self.seconds = _timed(self.worker, chunk)
        if failed:
            self._learn(chunk, part, solution)
        return part

    def _learn(self, chunk: Chunk, part: Part, solution: Any) -> None:
        """Determine, from a finished member, the layout of states, and whether a batch kernel applies or why not."""
        if self.request.layout is None and part.layout is not None and not self.request.is_factory:
            self.request = replace(self.request, layout=part.layout)
            self.worker.adopt(self.request)
        fast = self.worker.try_batch(chunk, part)
        self.is_batch, self.seconds = fast is not None, fast or self.seconds
        self.interpreter = "" if self.is_batch else interpreter_needed(self.request, solution)


def probe(request: EnsembleRequest, chunk: Chunk) -> FirstMember:
    """Run the first member."""
    worker = Worker(request)
    if request.member_timeout is not None:
        with Alarm(max(request.member_timeout, _LOADING)):
            worker.warm_up(chunk)
    part, solution, seconds = _timed(worker, chunk)
    message = part.messages.get(chunk.first, "")
    if message.startswith("outputs: "):
        raise InvalidProblemError(message)
    found = FirstMember(request, worker, part, seconds, "", False)
    found._learn(chunk, part, solution)
    return found


def _timed(worker: Worker, chunk: Chunk) -> tuple[Part, Any, float]:
    """Run the first member of a chunk in this thread; return its result, its solution and the time in seconds."""
    part, limit, began = Part.empty(chunk), worker.request.member_timeout, time.perf_counter()
    with nullcontext() if limit is None else Alarm(limit):
        solution = worker.member(part, 0, chunk)
    return part, solution, time.perf_counter() - began


def interpreter_needed(request: EnsembleRequest, solution: Any) -> str:
    """The reason why runs of a request mostly hold the GIL; empty if they do not."""
    if request.is_factory:
        return "each member builds its problem in Python"
    if isinstance(request.problem, HybridProblem):
        return "runs through modes are controlled by Python"
    if isinstance(solution, HybridSolution):
        return "runs between break points are controlled by Python"
    functions = getattr(solution, "functions", None)
    called = [name for name, words in (functions or {}).items() if words == "Python" or words.startswith("Python")]
    if called:
        return f"{', '.join(called)} {'is a Python function' if len(called) == 1 else 'are Python functions'}"
    if callable(request.outputs):
        return "outputs is a Python function"
    return ""


# --- the choice -------------------------------------------------------------------------------------------------------

_KNOWN = "'threads', 'processes', 'dask', 'gpu', a concurrent.futures.Executor or a dask.distributed.Client"
_START = 3.0  # seconds of work below which starting processes is not worthwhile
_CHUNK = 0.1  # duration of a chunk in seconds
_LARGEST_CHUNK = 4096
_ROUNDS = 4  # minimal number of chunks per worker


@dataclass
class Chosen:
    """A backend, its name, and the reason if it differs from the request."""

    name: str
    reason: str
    backend: Any = None
    workers: int = 1
    client: Any = None  # backends to close at the end

    def chunk_size(self, seconds: float, left: int | None) -> int:
        """Number of members in a chunk: a tenth of a second's work, with several chunks for each worker."""
        wanted = getattr(self.backend, "chunk_size", None)
        if wanted is not None:
            return wanted
        size = max(1, min(_LARGEST_CHUNK, int(_CHUNK / max(seconds, 1e-9))))
        return size if left is None else max(1, min(size, -(-left // (_ROUNDS * self.workers))))

    def close(self) -> None:
        """Shut down the backends started for this ensemble."""
        if self.client is not None:
            self.client.cluster.close()
            self.client.close()


def chosen_backend(
    request: EnsembleRequest, on: Any, workers: int, found: FirstMember, left: int | None, gather: bool = True
) -> Chosen:
    """The backend for the members after the first one."""
    if isinstance(on, Executor):
        count = getattr(on, "_max_workers", None) or workers
        return _named(ExecutorBackend(request, count, on))
    if is_dask_client(on) or on == "dask":
        client = on if is_dask_client(on) else dask_client()
        made = _named(DaskBackend(request, threads_of(client), client, gather))
        made.client = None if client is on else client
        return made
    if on == "gpu" or type(on).__name__ == "GPU":
        from daedal.ensembles.gpu import GPU, GPUBackend

        return _named(GPUBackend(request, workers, on if isinstance(on, GPU) else None))
    if on == "processes":
        return _named(ProcessesBackend(request, workers))
    if on != "threads":
        raise InvalidProblemError(f"on must be {_KNOWN}, got {on!r}")
    if not found.interpreter:
        return _named(ThreadsBackend(request, workers, found.worker))
    return _for_python(request, workers, found, left)


def _for_python(request: EnsembleRequest, workers: int, found: FirstMember, left: int | None) -> Chosen:
    """Choose processes if the runs take long enough, otherwise the current thread."""
    here = Chosen("1 thread", "", ThreadsBackend(request, 1, found.worker))
    if workers == 1:
        return here
    if left is not None and found.seconds * left < _START:
        here.reason = f"More threads would block each other, since {found.interpreter}; processes would not be faster."
        return here
    try:
        return _named(ProcessesBackend(request, workers), f"Processes instead of threads, since {found.interpreter}.")
    except InvalidProblemError as error:
        here.reason = f"More threads would block each other, since {found.interpreter}, and {error}."
        return here


def _named(backend: Any, reason: str = "") -> Chosen:
    return Chosen(backend.name, reason, backend, backend.workers)
