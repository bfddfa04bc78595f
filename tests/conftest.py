"""Shared by all tests: reproducible Hypothesis runs, and the tables printed in the literature."""

import json
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, and no deadline: the first example may have to wait for a compilation.
settings.register_profile("daedal", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("daedal")


@pytest.fixture
def printed():
    """``printed(name)`` loads the printed table tests/tables/name.json."""
    folder = Path(__file__).parent / "tables"
    return lambda name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
