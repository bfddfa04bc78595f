"""The reference of the manual has every public name, once."""

import importlib
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from test_public_names import NOT_STARRED, SURFACE

FOLDER = Path(__file__).parent.parent / "docs" / "_ext"


@pytest.fixture(scope="module")
def reference():
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("reference_groups")
    sys.path.remove(str(FOLDER))


def test_every_public_name_stands_in_exactly_one_group(reference):
    grouped = Counter(name for group in reference.GROUPS for name in group.names)
    assert {name for name, count in grouped.items() if count > 1} == set()
    in_groups = {module: names for module, names in SURFACE.items() if module != "linear"}  # which has a page
    public = {f"{module}.{name}".lstrip(".") for module, names in in_groups.items() for name in names}
    assert public - set(grouped) == set(), "enter these in docs/_ext/reference_groups.py"
    assert {name for name in set(grouped) - public if name.partition(".")[0] not in NOT_STARRED} == set()


def test_every_module_has_one_page(reference):
    shown = Counter(name for group in reference.GROUPS for name in group.modules)
    assert shown == Counter(reference.MODULES.keys())
    for name, (_, members) in reference.MODULES.items():
        module = importlib.import_module(f"daedal.{name}")
        assert all(hasattr(module, word) for word in members.split(", ") if word)


@pytest.mark.parametrize("folder", ["guide", "methods", "tutorials"])
def test_every_page_is_listed_once(folder):
    pages = FOLDER.parent / folder
    text = (pages / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    listed = Counter(line for tree in trees for line in tree.split() if not line.startswith(":") and line != "1")
    assert listed == Counter(path.stem for path in pages.glob("*.md") if path.stem != "index")
