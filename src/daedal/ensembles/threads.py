"""Threads: all cores for problems whose runs do without the interpreter, in one process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

from daedal.ensembles.columns import Chunk
from daedal.ensembles.part import Part
from daedal.ensembles.request import EnsembleRequest
from daedal.ensembles.work import Worker


class ThreadsBackend:
    """Threads that take the next chunk whenever they have finished one."""

    def __init__(self, request: EnsembleRequest, workers: int, worker: Worker | None = None):
        self.workers, self._worker = workers, worker or Worker(request)
        self.name = "1 thread" if workers == 1 else f"{workers} threads"

    def run(self, chunks: Iterator[Chunk], deliver: Callable[[Part], None]) -> None:
        """Run all chunks; with one worker in this thread."""
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
        except BaseException as error:  # of Daedal itself, or of an iterator of the user: it is raised by `run`
            results.put(error)
        results.put(None)
