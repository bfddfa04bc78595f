"""Processes: for problems with Python functions, one interpreter per worker.

Workers are fresh interpreters that do not import the user's script, so that no ``if __name__ == "__main__"`` is needed.
A worker that dies, or exceeds the time limit of a member, is replaced; its members are run again one by one, and
members that terminate a process twice count as failed.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import secrets
import subprocess
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Connection, Listener, wait
from threading import Lock
from typing import Any

from daedal.ensembles.columns import Chunk
from daedal.ensembles.inputs import EnsembleRequest
from daedal.ensembles.part import TIMED_OUT, Part
from daedal.ensembles.work import Alarm, Worker
from daedal.errors import DaedalError, InvalidProblemError


def main() -> None:
    """Connect to the address read from standard input, and serve."""
    address, key = pickle.load(sys.stdin.buffer)
    connection = Client(address, authkey=key)
    data, limit = connection.recv_bytes(), connection.recv()
    try:
        worker = Worker(pickle.loads(data))
    except Exception as error:
        _send(connection, error)
        return
    while True:
        try:
            chunk = connection.recv()
        except (EOFError, OSError):
            return
        _send(connection, _results(worker, chunk, connection, limit))


def _results(worker: Worker, chunk: Chunk, connection: Connection, limit: float | None) -> Any:
    if limit is None:
        return worker(chunk)
    if not worker.is_warm:
        worker.warm_up(chunk)
    part = Part.empty(chunk)
    for row in range(chunk.count):
        connection.send(row)
        with Alarm(limit):
            worker.member(part, row, chunk)
    return part


def _send(connection: Connection, message: Any) -> None:
    with suppress(OSError):
        connection.send(message)


# --- requests as bytes for other processes, and their workers: created once in each process --------------------------

_MOST_WORKERS = 4
_workers: OrderedDict[str, Worker] = OrderedDict()
_guard = Lock()


def packed(request: EnsembleRequest) -> bytes:
    """The request as bytes; functions that are not part of a module are serialised by value, by cloudpickle."""
    try:
        import cloudpickle

        return cloudpickle.dumps(request)
    except ImportError:
        pass
    except Exception as error:
        raise InvalidProblemError(f"the problem cannot be sent to other processes: {error}") from error
    try:
        data = pickle.dumps(request)
        if b"__main__" not in data:
            return data
        reason = "its functions are defined in the main script"
    except Exception as error:
        reason = str(error)
    raise InvalidProblemError(
        f"the problem cannot be sent to other processes with pickle alone ({reason}). Remedy: pip install "
        "'daedal[ensembles]', which includes cloudpickle; move its functions to a module; or solve_many(..., "
        "workers=1)"
    )


def worker_for(data: bytes) -> Worker:
    """The worker of a request in this process."""
    key = hashlib.sha256(data).hexdigest()
    with _guard:
        if key in _workers:
            _workers.move_to_end(key)
            return _workers[key]
        made = _workers[key] = Worker(pickle.loads(data))
        while len(_workers) > _MOST_WORKERS:
            _workers.popitem(last=False)
        return made


def run_chunk(data: Any, chunk: Chunk) -> Part:
    """One task of an executor: the results of a chunk."""
    return worker_for(data)(chunk)


# --- the backend ------------------------------------------------------------------------------------------------------

_GRACE = 2.0  # seconds after the limit at which a member counts as hanging, if the exception has not reached it
_START = 120.0  # seconds that a process may take for its first answer


@dataclass
class _WorkerProcess:
    """A worker and its current task."""

    handle: subprocess.Popen
    connection: Connection
    chunk: Chunk | None = None
    row: int = -1  # row of the current member; -1 before the first one starts
    began: float = field(default_factory=time.monotonic)


class ProcessesBackend:
    """Separate interpreters, each of which takes the next chunk when it has finished one."""

    def __init__(self, request: EnsembleRequest, workers: int, worker: Any = None):
        self.workers = workers
        self.name = "1 process" if workers == 1 else f"{workers} processes"
        self._limit = request.member_timeout
        self._data = packed(request)

    def run(self, chunks: Iterator[Chunk], deliver: Callable[[Part], None]) -> None:
        """Run all chunks."""
        again: deque[Chunk] = deque()  # single members of chunks whose worker died
        broken: dict[int, int] = {}  # {member: number of processes it has terminated}
        processes: list[_WorkerProcess] = []
        try:
            self._fill(processes, chunks, again)
            while processes:
                ready = wait([p.connection for p in processes], timeout=self._patience(processes))
                for process in [p for p in processes if p.connection in ready]:
                    if self._receive(process, deliver):
                        self._next(process, processes, chunks, again)
                    elif process.handle.poll() is not None or process.connection.closed:
                        processes.remove(process)
                        self._buried(process, again, broken, deliver, f"ended with exit code {process.handle.wait()}")
                for process in [p for p in processes if self._hangs(p)]:
                    processes.remove(process)
                    process.handle.kill()
                    self._timed_out(process, again, deliver)
                self._fill(processes, chunks, again)
        finally:
            for process in processes:
                process.handle.kill()
                process.handle.wait()
                process.connection.close()

    # --- work ---------------------------------------------------------------------------------------------------------

    def _fill(self, processes: list[_WorkerProcess], chunks: Iterator[Chunk], again: deque[Chunk]) -> None:
        """Start as many processes as there are chunks to run, up to the number of workers."""
        while len(processes) < self.workers:
            chunk = again.popleft() if again else next(chunks, None)
            if chunk is None:
                return
            process = self._start()
            processes.append(process)
            self._send(process, chunk)

    def _next(self, process: _WorkerProcess, processes, chunks: Iterator[Chunk], again: deque[Chunk]) -> None:
        chunk = again.popleft() if again else next(chunks, None)
        if chunk is None:
            processes.remove(process)
            process.connection.close()  # closing the connection ends the process
            process.handle.wait()
        else:
            self._send(process, chunk)

    def _send(self, process: _WorkerProcess, chunk: Chunk) -> None:
        process.chunk, process.row, process.began = chunk, -1, time.monotonic()
        try:
            process.connection.send(chunk)
        except OSError:  # the process has died, which is detected when its answer is due
            return

    def _receive(self, process: _WorkerProcess, deliver: Callable[[Part], None]) -> bool:
        """Process a message from a worker; returns whether it is free for the next chunk."""
        try:
            message = process.connection.recv()
        except (EOFError, OSError):
            process.connection.close()
            return False
        if isinstance(message, int):
            process.row, process.began = message, time.monotonic()
            return False
        if isinstance(message, BaseException):
            raise message
        process.chunk = None
        deliver(message)
        return True

    # --- processes that die or hang -------------------------------------------------------------------------------

    def _patience(self, processes: list[_WorkerProcess]) -> float | None:
        if self._limit is None:
            return None
        return max(0.05, min(self._end(p) - time.monotonic() for p in processes))

    def _end(self, process: _WorkerProcess) -> float:
        """Time at which a process is terminated because it counts as hanging."""
        assert self._limit is not None
        return process.began + (_START if process.row < 0 else self._limit + _GRACE)

    def _hangs(self, process: _WorkerProcess) -> bool:
        return self._limit is not None and process.chunk is not None and time.monotonic() > self._end(process)

    def _timed_out(self, process: _WorkerProcess, again: deque[Chunk], deliver: Callable[[Part], None]) -> None:
        """Mark the hanging member as failed; run the others of its chunk again."""
        chunk = process.chunk
        assert chunk is not None
        row = max(process.row, 0)
        [own] = chunk.only([row])
        part = Part.empty(own)
        part.fail(
            0, (f"the run took longer than member_timeout = {self._limit:g} s; its process was terminated"), TIMED_OUT
        )
        deliver(part)
        again += chunk.only([k for k in range(chunk.count) if k != row])

    def _buried(self, process: _WorkerProcess, again, broken: dict[int, int], deliver, how: str) -> None:
        """Queue the members of a dead process one by one; a member that has terminated two processes has failed."""
        chunk = process.chunk
        if chunk is None:
            return
        if chunk.count > 1:
            again += chunk.only(range(chunk.count))
            return
        broken[chunk.first] = broken.get(chunk.first, 0) + 1
        if broken[chunk.first] < 2:
            again.append(chunk)
            return
        part = Part.empty(chunk)
        part.fail(0, f"the process that ran this member {how}, twice")
        deliver(part)

    def _start(self) -> _WorkerProcess:
        """A new interpreter that is connected and has received the request."""
        key = secrets.token_bytes(16)
        with Listener(authkey=key) as listener:
            environment = os.environ | {
                name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
            }
            command = [sys.executable, "-c", "from daedal.ensembles.processes import main; main()"]
            environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
            handle = subprocess.Popen(
                command, stdin=subprocess.PIPE, env=environment, start_new_session=os.name == "posix"
            )
            assert handle.stdin is not None
            pickle.dump((listener.address, key), handle.stdin)
            handle.stdin.close()
            connection = _accepted(listener, handle)
        connection.send_bytes(self._data)
        connection.send(self._limit)
        return _WorkerProcess(handle, connection)


def _accepted(listener: Listener, handle: subprocess.Popen) -> Connection:
    """The connection from a process; raises an error if it exits before connecting or does not answer."""
    listening: Any = listener._listener  # type: ignore[attr-defined]
    sock = getattr(listening, "_socket", None)
    end = time.monotonic() + _START
    if sock is None:  # a named pipe of Windows
        return listener.accept()
    sock.settimeout(0.5)
    while True:
        try:
            connection = listener.accept()
            sock.settimeout(None)
            return connection
        except TimeoutError:
            if handle.poll() is not None or time.monotonic() > end:
                handle.kill()
                raise DaedalError("a worker process could not be started; see its errors above") from None
