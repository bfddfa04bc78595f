"""No two classes or files of the package bear the same name, so that a name in a message or a diff is one place."""

import ast
from collections import defaultdict
from pathlib import Path

import daedal

ROOT = Path(daedal.__file__).parent

# Public names of their fields, in packages of their own
SHARED = {
    "Branch": {"circuits", "library"},
    "Contact": {"hybrid", "multibody"},
    "Gear": {"multibody", "viz"},  # a constraint, and a shape
    "Mode": {"hybrid", "multibody"},  # of a model that switches, and of small motions
    "Model": {"library", "multibody"},
    "Part": {"ensembles", "viz"},  # of the results of an ensemble, and of a scene
    "Reference": {"kernels", "library"},  # a field that holds an address, and a known solution
    "Report": {"analysis", "multibody"},
}

# Of compiled units, each with the room that it serves
SHARED_FILES = {
    "control.py": {"exchange", "library"},
    "differences.py": {"kernels", "mechanics"},
    "evaluation.py": {"mechanics", "methods"},
    "vectors.py": {"kernels", "multibody"},
}


def classes():
    """Rooms with a class of a name, by name; a room once for each class."""
    found = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path.relative_to(ROOT).parts[0])
    return found


def test_no_two_classes_bear_the_same_name():
    several = {name: sorted(rooms) for name, rooms in classes().items() if len(rooms) > 1}
    assert several == {name: sorted(rooms) for name, rooms in SHARED.items()}


def test_no_two_files_bear_the_same_name():
    """But for the heads of rooms."""
    found = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        found[path.name].append(path.relative_to(ROOT).parts[0])
    del found["__init__.py"]
    several = {name: sorted(rooms) for name, rooms in found.items() if len(rooms) > 1}
    assert several == {name: sorted(rooms) for name, rooms in SHARED_FILES.items()}
