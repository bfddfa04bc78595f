"""Shared by all tests: tiers, reproducible Hypothesis runs, and what is computed once for all processes of a test run.

The processes of pytest-xdist share the tables of the reproduction book, in a folder of the run. Whoever needs one first
makes it; the others wait for it. Kernels are built before the tests start (``make test``).
"""

import fcntl
import os
import pickle
import time
from collections import Counter
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

import tiers

# The same examples in every run, and no deadline: the first example may have to wait for a compilation.
settings.register_profile("daedal", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("daedal")
# Others in every run, of the seed that is printed: `make soak`.
settings.register_profile("soak", deadline=None, derandomize=False, database=None, max_examples=200)

COLLECTED = pytest.StashKey[list]()
"""All tests, before some are selected."""


def pytest_addoption(parser):
    group = parser.getgroup("daedal")
    group.addoption("--tier", choices=tiers.TIERS, default="test", help="what is run; see tests/tiers.py")
    group.addoption("--seed", type=int, help="run the tests in a random order, of this seed")
    group.addoption("--minutes", type=float, help="tests that have not begun after so many minutes are skipped")
    group.addoption("--write-durations", action="store_true", help="write what tests took to tests/durations.json")


def pytest_configure(config):
    config.began = config.collected = time.monotonic()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    """Leave the tests of the tier, and those that are named one by one; long ones come first."""
    durations, seed = tiers.known_durations(), config.getoption("seed")
    config.stash[COLLECTED] = list(items)
    yield
    named = tuple(argument for argument in config.args if "::" in argument)
    chosen = {item.nodeid for item in tiers.of_tier(config.getoption("tier"), items, durations)}
    chosen |= {item.nodeid for item in items if any(name.endswith(item.nodeid) for name in named)}
    kept = [item for item in items if item.nodeid in chosen]
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = tiers.shuffled(kept, seed) if seed is not None else tiers.longest_files_first(kept, durations)
    config.collected = time.monotonic()


def pytest_runtest_setup(item):
    minutes = item.config.getoption("minutes")
    if minutes is not None and time.monotonic() - item.config.collected > 60.0 * minutes:
        pytest.skip("the time is over")


TOOK: Counter = Counter()
"""Seconds of each test, with what it sets up."""


def pytest_runtest_logreport(report):
    TOOK[report.nodeid] += report.duration


def pytest_sessionfinish(session):
    if session.config.getoption("write_durations") and not hasattr(session.config, "workerinput"):
        tiers.write_durations(TOOK)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter, config):
    """What the stages of `make test` took, which it has written down, and the tests."""
    file = Path(os.environ.get("DAEDAL_STAGES", ""))
    if file.is_file():
        stages = [*file.read_text(encoding="utf-8").splitlines(), f"tests {time.monotonic() - config.began:.0f} s"]
        terminalreporter.section("stages")
        terminalreporter.write_line(", ".join(stages))
    if config.getoption("seed") is not None:
        chosen = [option for option in config.invocation_params.args if option.startswith("--hypothesis")]
        for report in terminalreporter.stats.get("failed", []):
            terminalreporter.write_line(f"to repeat: python -m pytest {' '.join([*chosen, repr(report.nodeid)])}")


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

    So it is by ``daedal.studies.reproduce.run`` and the command in tests that use this fixture.
    """
    from daedal.studies.reproduce import printed_table

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
