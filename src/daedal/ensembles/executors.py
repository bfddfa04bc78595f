"""Executors: chunks as tasks of ``concurrent.futures`` or of Dask, which has the same interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from daedal.common.tabular import plural
from daedal.ensembles.columns import Chunk
from daedal.ensembles.inputs import EnsembleRequest
from daedal.ensembles.part import Part
from daedal.ensembles.processes import packed, run_chunk
from daedal.ensembles.work import Worker
from daedal.errors import InvalidProblemError


def left_there(client: Any, future: Any) -> Part:
    """Fetch a part except its arrays, which become dask arrays."""
    from dask.array import from_delayed

    part, shapes = client.submit(_without_arrays, future, pure=False).result()
    part.arrays = {
        name: from_delayed(client.submit(_array, future, name, pure=False), shape, float)
        for name, shape in shapes.items()
    }
    return part


def _without_arrays(part: Part) -> tuple[Part, dict[str, tuple[int, ...]]]:
    return replace(part, arrays={}), {name: values.shape for name, values in part.arrays.items()}


def _array(part: Part, name: str) -> np.ndarray:
    return part.arrays[name]


class PartCollector:
    """Arrays of parts in any order, joined at the end."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[int, dict[str, Any]]] = {}

    def take(self, part: Part) -> Part:
        """Store the arrays of a part; returns the remaining fields."""
        self._parts[part.first] = part.count, part.arrays
        return replace(part, arrays={})

    def joined(self, members: int) -> dict[str, Any]:
        """One dask array for each quantity, NaN for missing members."""
        from dask import array

        shapes = {name: values.shape[1:] for _, arrays in self._parts.values() for name, values in arrays.items()}
        pieces: dict[str, list[Any]] = {name: [] for name in shapes}
        place = 0
        for first, (count, arrays) in [*sorted(self._parts.items()), (members, (0, {}))]:
            for name, shape in shapes.items():
                if first > place:  # not run
                    pieces[name].append(array.full((first - place, *shape), np.nan))
                values = arrays.get(name)
                pieces[name].append(array.full((count, *shape), np.nan) if values is None else array.asarray(values))
            place = first + count
        return {name: array.concatenate(parts) for name, parts in pieces.items()}


# --- backends ---------------------------------------------------------------------------------------------------------

_AHEAD = 3  # pending chunks per worker


class ExecutorBackend:
    """Tasks of a user's executor; threads share a worker, other processes create their own from bytes."""

    def __init__(self, request: EnsembleRequest, workers: int, executor: Executor):
        here = isinstance(executor, ThreadPoolExecutor)
        self._executor = executor
        self._run: Callable[[Chunk], Part] = Worker(request) if here else partial(run_chunk, packed(request))
        self.workers = workers
        self.name = type(executor).__name__

    def run(self, chunks: Iterator[Chunk], deliver: Callable[[Part], None]) -> None:
        """Keep several chunks pending until all are delivered."""
        under_way: dict[Any, Chunk] = {}
        try:
            while self._submit(chunks, under_way):
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                for future in done:
                    deliver(self._result(future, under_way.pop(future)))
        finally:
            for future in under_way:
                future.cancel()

    def _submit(self, chunks: Iterator[Chunk], under_way: dict[Any, Chunk]) -> bool:
        while len(under_way) < _AHEAD * self.workers and (chunk := next(chunks, None)) is not None:
            under_way[self._executor.submit(self._run, chunk)] = chunk
        return bool(under_way)

    def _result(self, future: Any, chunk: Chunk) -> Part:
        try:
            return future.result()
        except BrokenExecutor:
            raise
        except Exception as error:
            return lost(chunk, error)


class DaskBackend:
    """Tasks of a Dask cluster; if a worker dies, another one repeats its chunk.

    The request is sent with every task: scattered data are lost with the last worker that holds them.

    Without `gather` the arrays of parts stay on the workers, and are delivered as dask arrays.
    """

    def __init__(self, request: EnsembleRequest, workers: int, client: Any, gather: bool = True):
        self._client, self._request, self._gather = client, packed(request), gather
        self.workers = workers
        self.name = f"Dask, {plural(workers, 'worker thread')}"

    def run(self, chunks: Iterator[Chunk], deliver: Callable[[Part], None]) -> None:
        """Keep several chunks pending until all are delivered."""
        from distributed import as_completed

        client, under_way = self._client, dict[str, Chunk]()
        finished = as_completed()
        try:
            while True:
                while len(under_way) < _AHEAD * self.workers and (chunk := next(chunks, None)) is not None:
                    future = client.submit(run_chunk, self._request, chunk, pure=False, key=_key(chunk))
                    under_way[future.key] = chunk
                    finished.add(future)
                if not under_way:
                    return
                future = next(finished)
                chunk = under_way.pop(future.key)
                try:
                    deliver(self._result(future))
                except Exception as error:
                    self._split(chunk, error, deliver)
                future.release()
        finally:
            finished.clear()

    def _split(self, chunk: Chunk, error: Exception, deliver: Callable[[Part], None]) -> None:
        """Run the members of a chunk one by one if the chunk has terminated several workers."""
        if chunk.count == 1:
            deliver(lost(chunk, error))
            return
        for single in chunk.only(range(chunk.count)):
            future = self._client.submit(run_chunk, self._request, single, pure=False, key=_key(single))
            try:
                deliver(self._result(future))
            except Exception as again:
                deliver(lost(single, again))

    def _result(self, future: Any) -> Part:
        return future.result() if self._gather else left_there(self._client, future)


def _key(chunk: Chunk) -> str:
    from uuid import uuid4

    return f"daedal-{chunk.first}-{chunk.count}-{uuid4().hex}"


def lost(chunk: Chunk, error: Exception) -> Part:
    """Part for a chunk that no worker could compute: its members have failed."""
    part = Part.empty(chunk)
    for row in range(chunk.count):
        part.fail(row, f"the task that ran this member failed: {type(error).__name__}: {error}".rstrip(": "))
    return part


def is_dask_client(on: Any) -> bool:
    """Whether `on` is a Dask client, without importing Dask."""
    return type(on).__module__.split(".")[0] == "distributed" and hasattr(on, "scatter")


def dask_client() -> Any:
    """A client with its own local cluster."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InvalidProblemError("on='dask' needs Dask: pip install 'daedal[dask]'") from None
    return Client(LocalCluster(threads_per_worker=1, dashboard_address=None))


def threads_of(client: Any) -> int:
    """The number of threads of all workers of a cluster, but at least one."""
    return max(1, sum(client.nthreads().values()))
