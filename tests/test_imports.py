"""The order of the rooms (docs/architecture.md): who may import whom, and what a bare ``import daedal`` costs."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import daedal

PACKAGE = Path(daedal.__file__).parent

# No room imports those listed with it: data flows problem -> initial values -> formulation -> method -> solution.
FORBIDDEN = {
    "errors": {"problems", "formulations", "methods", "kernels", "initial", "events", "solve", "hybrid"},
    "problems": {"formulations", "methods", "initial", "events", "solve", "solution", "hybrid"},
    "kernels": {"problems", "formulations", "methods", "initial", "events", "solve", "solution", "hybrid"},
    "mechanics": {"formulations", "methods", "initial", "events", "solve", "solution", "hybrid"},
    "formulations": {"initial", "methods", "events", "solve", "hybrid"},
    "initial": {"formulations", "events", "solve", "hybrid"},
    "events": {"methods", "solve", "hybrid"},
    "methods": {"solve", "hybrid"},
}
CUSTOMERS = {"library", "reproduce", "viz", "cli"}  # these use Daedal as a user does
PUBLIC_MODULES = {"errors", "library", "order_conditions", "reproduce", "tabular", "viz"}


def imported(source: str, module: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) for everything of daedal that ``source`` imports or reaches as ``daedal.name``.

    ``from daedal.a import b`` yields ``daedal.a.b``, whether ``b`` is a module or not.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                keep = len(module.split(".")) - node.level + is_package
                base = ".".join(module.split(".")[:keep] + ([base] if base else []))
            names = [f"{base}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "daedal":
            names = [f"daedal.{node.attr}"]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == "daedal")


def package_imports() -> Iterator[tuple[str, str, str]]:
    """Yield (place, room, imported name) over all files of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        if module == "daedal":
            continue
        for line, name in imported(path.read_text(encoding="utf-8"), module, is_package=is_package):
            yield f"{path.relative_to(PACKAGE)}:{line}", module.split(".")[1], name


def is_public(name: str, own_room: str) -> bool:
    first = name.split(".")[1] if "." in name else ""
    return first in ("", own_room) or first in PUBLIC_MODULES or name.removeprefix("daedal.") in daedal.__all__


def test_rooms_import_only_what_lies_upstream():
    wrong = [
        f"{place} imports {name}"
        for place, room, name in package_imports()
        if "." in name and name.split(".")[1] in FORBIDDEN.get(room, set())
    ]
    assert not wrong, "\n".join(wrong)


def test_library_reproduce_viz_and_cli_use_only_public_names():
    wrong = [
        f"{place} uses {name}"
        for place, room, name in package_imports()
        if room in CUSTOMERS and not is_public(name, room)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import daedal.methods.dassl", ["daedal.methods.dassl"]),
        ("from daedal import methods", ["daedal.methods"]),
        ("from daedal.methods import dassl", ["daedal.methods.dassl"]),
        ("from ..methods import dassl", ["daedal.methods.dassl"]),
        ("from .. import solve", ["daedal.solve"]),
        ("from . import semi_explicit", ["daedal.problems.semi_explicit"]),
        ("def late():\n    import daedal\n    return daedal.solve", ["daedal", "daedal.solve"]),
        ("import numpy\nfrom scipy import sparse", []),
    ],
)
def test_every_form_of_import_is_seen(source, names):
    assert [name for _, name in imported(source, "daedal.problems.implicit")] == names


def test_relative_import_in_a_package_file_starts_at_the_package():
    assert list(imported("from .dense import lu", "daedal.kernels", is_package=True)) == [
        (1, "daedal.kernels.dense.lu")
    ]


def test_import_daedal_loads_neither_numba_nor_matplotlib():
    code = "import sys, daedal; print(*({'numba', 'matplotlib', 'sympy', 'typer', 'tqdm'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


@pytest.mark.parametrize(
    "name", ["daedal", "daedal.comparison", "daedal.order_conditions", "daedal.reproduce", "daedal.viz"]
)
def test_public_namespaces_show_public_names_only(name):
    module = importlib.import_module(name)
    assert set(dir(module)) == set(module.__all__) | ({"viz"} if name == "daedal" else set())


def test_every_public_name_exists():
    assert [name for name in daedal.__all__ if not hasattr(daedal, name)] == []
