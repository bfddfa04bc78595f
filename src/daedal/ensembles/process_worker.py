"""A worker process: receives a request and chunks, and sends parts back, until the connection is closed."""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress
from multiprocessing.connection import Client, Connection
from typing import Any

from daedal.ensembles.alarm import Alarm
from daedal.ensembles.columns import Chunk
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
