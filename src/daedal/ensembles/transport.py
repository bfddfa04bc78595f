"""Requests as bytes for other processes, and their workers there: made once in each process."""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from threading import Lock
from typing import Any

from daedal.ensembles.columns import Chunk
from daedal.ensembles.part import Part
from daedal.ensembles.request import EnsembleRequest
from daedal.ensembles.work import Worker
from daedal.errors import InvalidProblemError

_MOST_WORKERS = 4
_workers: OrderedDict[str, Worker] = OrderedDict()
_guard = Lock()


def packed(request: EnsembleRequest) -> bytes:
    """The request as bytes; functions that are not part of a module travel by value, by cloudpickle."""
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
        "'daedal[ensembles]', which brings cloudpickle; move its functions to a module; or solve_many(..., workers=1)"
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
