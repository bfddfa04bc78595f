"""Packages that only tests need: from this environment, or from the one that `make test` keeps for them."""

import importlib.util
import site
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / ".venv-oracles"


def oracle(name: str, minversion: str | None = None):
    """The module; where it is not installed the test is skipped."""
    if importlib.util.find_spec(name) is None:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        site.addsitedir(str(FOLDER / "lib" / version / "site-packages"))  # behind the packages of this environment
    return pytest.importorskip(name, minversion=minversion, exc_type=ImportError)
