"""Measurement of one-time costs: importing, tracing functions, generating and loading machine code."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_local = threading.local()


def seconds() -> float:
    """One-time costs of this thread so far, in seconds."""
    return getattr(_local, "seconds", 0.0)


@contextmanager
def counted() -> Iterator[None]:
    """Context manager that adds the time spent inside to :func:`seconds`; nested uses are counted once."""
    if getattr(_local, "inside", False):
        yield
        return
    _local.inside, begun = True, time.perf_counter()
    try:
        yield
    finally:
        _local.inside = False
        _local.seconds = seconds() + time.perf_counter() - begun
