"""Shared by all tests: reproducible Hypothesis runs, and the tables of the reproduction book, each computed once."""

import os
import pickle
from functools import cache

import pytest
from hypothesis import settings

# The same examples in every run, and no deadline: the first example may have to wait for a compilation.
settings.register_profile("daedal", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("daedal")


@pytest.fixture(scope="session")
def reproduced(request, tmp_path_factory):
    """``reproduced("book/6.3.2")`` has for each row what Daedal computes, by column.

    A table is computed once in a test run: the processes of pytest-xdist find it in a folder that they share, and so do
    ``daedal.reproduce.run`` and the command in tests that use this fixture.
    """
    from daedal.reproduce import printed_table

    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if hasattr(request.config, "workerinput") else own) / "reproduced"
    folder.mkdir(exist_ok=True)
    compute = printed_table.computed

    @cache
    def computed(identifier):
        file = folder / f"{identifier.replace('/', '-')}.pickle"
        if not file.exists():
            part = file.with_suffix(f".{os.getpid()}")
            part.write_bytes(pickle.dumps(compute(identifier)))
            part.replace(file)
        return pickle.loads(file.read_bytes())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(printed_table, "computed", computed)
        yield computed
