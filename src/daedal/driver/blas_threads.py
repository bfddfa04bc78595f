"""Limit SciPy's BLAS to one thread during runs of small systems.

OpenBLAS distributes factorisations of matrices of order 128 and more over all cores. Below an order of about a thousand
this gains little on an idle machine, and on a busy one every factorisation waits for the slowest core: 3 ms instead of
0.15 for order 160 on two cores with one busy. NumPy, and thus users' functions, use a separate copy of BLAS, which is
not affected.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock

# numbers of unknowns between which BLAS is limited: it is always serial below, and gains from threads above
_SMALLEST, _LARGEST = 64, 1000
_OPENBLAS = ("scipy_openblas_{}_num_threads", "openblas_{}_num_threads")
_NAMES = [name + suffix for name in _OPENBLAS for suffix in ("", "64_")]


@cache
def thread_count() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Functions that return and set the number of threads of SciPy's BLAS; None if SciPy does not use OpenBLAS."""
    from scipy.linalg import cython_lapack

    library = ctypes.CDLL(cython_lapack.__file__)  # also resolves symbols of its dependencies
    for name in _NAMES:
        if hasattr(library, name.format("set")):
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


class _OneThread(AbstractContextManager):
    """Limit BLAS to one thread while any run is active. The setting is process-wide.

    The first run to enter sets the limit and the last one to leave restores it, regardless of their threads.
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
    """Context that limits BLAS to one thread during a run with n unknowns, unless n is large."""
    return _one_thread if _SMALLEST <= n <= _LARGEST else nullcontext()
