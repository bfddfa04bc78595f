"""A worker process: receives a request and chunks, and sends parts back, until the connection is closed."""

from __future__ import annotations

import pickle
import signal
import sys
from multiprocessing.connection import Client, Connection
from typing import Any

from daedal.ensembles.columns import Chunk
from daedal.ensembles.member import MemberTimeout
from daedal.ensembles.part import Part
from daedal.ensembles.work import Worker


def main() -> None:
    """Connect to the address that stands on the standard input, and serve."""
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
    part = Part.empty(chunk)
    for row in range(chunk.count):
        connection.send(row)
        with alarm(limit):
            worker.member(part, row, chunk)
    return part


class alarm:
    """Raises :class:`MemberTimeout` in this thread after so many seconds, in the midst of a user's function too."""

    def __init__(self, seconds: float):
        self._seconds = seconds

    def __enter__(self):
        if hasattr(signal, "SIGALRM"):
            self._before = signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *exception):
        if hasattr(signal, "SIGALRM"):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self._before)

    def _ring(self, number, frame):
        raise MemberTimeout(f"the run took longer than member_timeout = {self._seconds:g} s")


def _send(connection: Connection, message: Any) -> None:
    try:
        connection.send(message)
    except (OSError, BrokenPipeError):
        return
