"""Shared by all tests: reproducible Hypothesis runs, and what is computed once for all processes of a test run.

The processes of pytest-xdist share the tables of the reproduction book, in a folder of the run. Whoever needs one first
makes it; the others wait for it. Kernels are built before the tests start (``make test``).
"""

import fcntl
import os
import pickle
import time
from contextlib import contextmanager
from functools import cache

import pytest
from hypothesis import settings

# The same examples in every run, and no deadline: the first example may have to wait for a compilation.
settings.register_profile("daedal", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("daedal")


@pytest.fixture(scope="session")
def shared_folder(request, tmp_path_factory):
    """A folder for all processes of this test run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if hasattr(request.config, "workerinput") else own


@contextmanager
def one_at_a_time(file, patience=300.0):
    """Held by one process at a time. Whoever has waited for `patience` seconds goes on: work done twice is no error."""
    until = time.monotonic() + patience
    with open(file, "w") as handle:
        while time.monotonic() < until:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.02)
        yield


@pytest.fixture(scope="session")
def reproduced(shared_folder):
    """``reproduced("book/6.3.2")`` has for each row what Daedal computes, by column; a table is computed once.

    So it is by ``daedal.reproduce.run`` and the command in tests that use this fixture.
    """
    from daedal.reproduce import printed_table

    folder = shared_folder / "reproduced"
    folder.mkdir(exist_ok=True)
    compute = printed_table.computed

    @cache
    def computed(identifier):
        file = folder / f"{identifier.replace('/', '-')}.pickle"
        with one_at_a_time(file.with_suffix(".lock")):
            if not file.exists():
                part = file.with_suffix(f".{os.getpid()}")
                part.write_bytes(pickle.dumps(compute(identifier)))
                part.replace(file)
        return pickle.loads(file.read_bytes())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(printed_table, "computed", computed)
        yield computed


@pytest.fixture
def handed_back(monkeypatch):
    """How many members each chunk has handed back to the driver; a chunk that had no loop counts as all of them."""
    from daedal.ensembles import work

    counts = []
    original = work.Worker.__call__

    def call(self, chunk, *stopped):
        part = original(self, chunk, *stopped)
        counts.append(chunk.count if self._first is None else part.fell_back)
        return part

    monkeypatch.setattr(work.Worker, "__call__", call)
    return counts
