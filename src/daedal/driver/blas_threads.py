"""Small systems stay in their thread: a limit on the threads of the BLAS behind our LAPACK while runs last.

OpenBLAS shares the factorisation of a matrix of order 128 and more among all cores. Below an order of about a thousand
that gains little on an idle machine, and on a busy one every factorisation waits for the slowest of the cores: 3 ms in
place of 0.15 for an order of 160 on two cores, one of them busy. The BLAS that users' functions call through NumPy is
another copy, and is left alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock

_SMALLEST, _LARGEST = 64, 1000  # unknowns: below, BLAS does not share its work; above, sharing it pays
_OPENBLAS = ("scipy_openblas_{}_num_threads", "openblas_{}_num_threads")
_NAMES = [name + suffix for name in _OPENBLAS for suffix in ("", "64_")]


@cache
def thread_count() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """How to read and how to set the number of threads of SciPy's BLAS; None where it is not an OpenBLAS."""
    from scipy.linalg import cython_lapack

    library = ctypes.CDLL(cython_lapack.__file__)  # whose symbols include those of the libraries that it needs
    for name in _NAMES:
        if hasattr(library, name.format("set")):
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


class _OneThread(AbstractContextManager):
    """One thread for BLAS as long as at least one run is inside; the number is one for the whole process.

    The first run that enters sets the limit and the last that leaves takes it back, whatever threads they are in.
    """

    def __init__(self):
        self._lock, self._inside, self._before = Lock(), 0, 1

    def __enter__(self):
        with self._lock:
            if self._inside == 0 and (count := thread_count()) is not None:
                read, write = count
                self._before = read()
                write(1)
            self._inside += 1

    def __exit__(self, *exception):
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and (count := thread_count()) is not None:
                count[1](self._before)


_one_thread = _OneThread()


def blas_threads(n: int) -> AbstractContextManager:
    """The threads of BLAS during a run with n unknowns: one if it is small, as many as before if it is large."""
    return _one_thread if _SMALLEST <= n <= _LARGEST else nullcontext()
