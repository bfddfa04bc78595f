"""For pytest in a run of mutants: the quickest tests first, as many as fit into a time; notes what each takes.

``MUTANTS_PACKAGE`` names the copy of the package, ``MUTANTS_MODULE`` a module that is imported first. With
``MUTANTS_CHOSEN`` the tests that stand in this file run, in its order; with ``MUTANTS_NOTE`` a line is added to that
file for each test that passes, with its seconds.
"""

import importlib
import os
import resource
from pathlib import Path

import pytest

_CHOSEN, _NOTE = os.environ.get("MUTANTS_CHOSEN"), os.environ.get("MUTANTS_NOTE")
_MEMORY = 8 * 2**30  # a mutant may ask for any amount
NO_IMPORT = 100
_seconds: dict[str, float] = {}
_failed: set[str] = set()

if "MUTANTS_PACKAGE" in os.environ:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def pytest_sessionstart():
    try:
        daedal = importlib.import_module("daedal")
        importlib.import_module(os.environ["MUTANTS_MODULE"])
    except Exception as error:
        pytest.exit(f"{type(error).__name__}: {error}", NO_IMPORT)
    if not daedal.__file__.startswith(os.environ["MUTANTS_PACKAGE"]):
        raise pytest.UsageError(f"{daedal.__file__} is not the copy that is mutated")


def pytest_collection_modifyitems(config, items):
    if _CHOSEN is not None:
        order = {name: i for i, name in enumerate(Path(_CHOSEN).read_text().splitlines())}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in order])
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


def pytest_runtest_logreport(report):
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if report.outcome != "passed":
        _failed.add(report.nodeid)
    if _NOTE is not None and report.when == "teardown" and report.nodeid not in _failed:
        with open(_NOTE, "a") as file:
            file.write(f"{_seconds[report.nodeid]:.3f} {report.nodeid}\n")
