"""Which backend runs the members: the one that was asked for, or what a problem needs."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from daedal.ensembles.executors import DaskBackend, ExecutorBackend, dask_client, is_dask_client, threads_of
from daedal.ensembles.probe import Probe
from daedal.ensembles.processes import ProcessesBackend
from daedal.ensembles.request import EnsembleRequest
from daedal.ensembles.threads import ThreadsBackend
from daedal.errors import InvalidProblemError

_KNOWN = "'threads', 'processes', 'dask', 'gpu', a concurrent.futures.Executor or a dask.distributed.Client"
_START = 3.0  # seconds of work below which processes are not worth their start
_CHUNK = 0.1  # seconds that a chunk takes
_LARGEST_CHUNK = 4096
_ROUNDS = 4  # chunks for each worker, at least


@dataclass
class Chosen:
    """A backend, what it is called, and why it was taken where it is not what was asked for."""

    name: str
    reason: str
    backend: Any = None
    workers: int = 1
    client: Any = None  # to be closed at the end

    def chunk_size(self, seconds: float, left: int | None) -> int:
        """How many members a chunk has: a tenth of a second's work, but some chunks for each worker."""
        wanted = getattr(self.backend, "chunk_size", None)
        if wanted is not None:
            return wanted
        size = max(1, min(_LARGEST_CHUNK, int(_CHUNK / max(seconds, 1e-9))))
        return size if left is None else max(1, min(size, -(-left // (_ROUNDS * self.workers))))

    def close(self) -> None:
        """End what was started for this ensemble."""
        if self.client is not None:
            self.client.cluster.close()
            self.client.close()


def chosen_backend(
    request: EnsembleRequest, on: Any, workers: int, found: Probe, left: int | None, gather: bool = True
) -> Chosen:
    """The backend for the members behind the first one."""
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


def _for_python(request: EnsembleRequest, workers: int, found: Probe, left: int | None) -> Chosen:
    """Processes where runs hold the interpreter and take long enough; else this thread."""
    here = Chosen("1 thread", "", ThreadsBackend(request, 1, found.worker))
    if workers == 1:
        return here
    if left is not None and found.seconds * left < _START:
        here.reason = f"More threads would wait for each other, since {found.interpreter}; processes would not pay."
        return here
    try:
        return _named(ProcessesBackend(request, workers), f"Processes in place of threads, since {found.interpreter}.")
    except InvalidProblemError as error:
        here.reason = f"More threads would wait for each other, since {found.interpreter}, and {error}."
        return here


def _named(backend: Any, reason: str = "") -> Chosen:
    return Chosen(backend.name, reason, backend, backend.workers)
