"""The order of the rooms (docs/architecture.md): who may import whom, and what a bare ``import daedal`` costs."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import daedal
from daedal.kernels import units

PACKAGE = Path(daedal.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"

# room: rooms it may import, all of which stand above it. PUBLIC are the names in daedal.__all__, as a user has them.
PUBLIC = "public"
MAY_USE = {
    "errors": [],
    "tabular": [],
    "messages": [],
    "progress": [],
    "results": [],
    "first_use": [],
    "object_store": [],
    "kernels": ["object_store"],
    "build": ["kernels"],
    "symbolic": ["object_store"],
    "linear": [],
    "problems": ["kernels"],
    "lagrangian": ["symbolic", "problems"],
    "sympy_problems": ["symbolic", "problems", "lagrangian"],
    "tracing": ["kernels", "symbolic", "problems"],
    "structure": ["kernels", "symbolic", "linear", "problems", "tracing"],
    "linear_solvers": ["kernels", "problems"],
    "events": ["kernels", "problems", "results"],
    "solution": ["kernels", "problems", "results", "events"],
    "mechanics": ["kernels", "problems"],
    "analysis": ["kernels", "linear", "problems", "mechanics"],
    "initial": ["kernels", "linear", "problems", "structure", "mechanics", "analysis"],
    "formulations": ["kernels", "problems", "mechanics"],
    "methods": ["kernels", "problems", "linear_solvers", "events", "solution", "mechanics", "analysis"],
    "index_reduction": ["kernels", "symbolic", "linear", "problems", "tracing", "structure", "results", "events"]
    + ["solution", "mechanics", "analysis", "initial", "formulations"],
    "order_conditions": ["methods"],
    "method_analysis": ["methods", "order_conditions"],
    "studies": ["methods", "problems", "structure"],
    "drive": ["progress", "results", "kernels", "problems", "tracing", "events", "solution", "mechanics", "analysis"]
    + ["initial", "formulations", "methods", "structure", "index_reduction"],
    "hybrid": ["progress", "results", "kernels", "problems", "events", "solution", "mechanics", "initial", "drive"],
    "sensitivity": ["kernels", "symbolic", "problems", "tracing", "events", "solution", "mechanics", "analysis"]
    + ["initial", "formulations", "methods", "drive", "hybrid"],
    "solving": ["problems", "solution", "drive", "hybrid"],
    "ivp": ["events", "problems", "methods", "solution", "solving"],
    "ensembles": [
        "progress",
        "results",
        "kernels",
        "symbolic",
        "problems",
        "tracing",
        "events",
        "mechanics",
        "analysis",
        "initial",
        "formulations",
        "methods",
        "drive",
        "hybrid",
    ],
    "problem_conditioning": ["linear", "problems", "tracing", "structure", "solution", "analysis", "formulations"]
    + ["solving"],
    "problem_analysis": ["symbolic", "problems", "structure", "initial", "problem_conditioning"],
    "advice": ["problems", "mechanics", "analysis", "formulations", "solving"],
    "comparison": ["problems", "formulations", "methods", "drive", "solving", "advice"],
    "viz": [PUBLIC],
    "adjoint": [PUBLIC, "kernels", "symbolic", "problems", "tracing", "sensitivity"],
    "fitting": [PUBLIC, "problems", "tracing", "hybrid", "viz"],
    "multibody": [PUBLIC, "kernels", "symbolic", "problems", "solution", "viz"],
    "circuits": [PUBLIC],
    "library": [PUBLIC, "viz", "multibody", "circuits"],
    "reproduce": [PUBLIC, "order_conditions", "viz", "library"],
    "cli": [PUBLIC, "object_store", "kernels", "viz", "library", "reproduce"],
}
OPEN = {"errors", "tabular", "messages", "first_use"}  # to all rooms
ROOM_OF = dict.fromkeys(
    (
        "constrained_solution",
        "machine_record",
        "mechanical_solution",
        "mechanical_state",
        "second_order_solution",
        "solution_layout",
    ),
    "solution",
) | {"__main__": "cli"}

# (file, room against the order): why.
EXCEPTIONS = {
    ("errors.py", "solution"): "for the type checker only",
    (
        "problems/compile.py",
        "tracing",
    ): '`problem.functions` and `problem.compiled(backend="trace")`, when they are called',
    ("problems/mechanical.py", "mechanics"): "`system.at`, when it is called",
    ("problems/mechanical.py", "analysis"): "`system.check`, when it is called",
    ("solution.py", "viz"): "`sol.plot`, `sol.animate` and the view in a notebook, when they are called",
    ("mechanical_solution.py", "viz"): "`sol.animate`, when it is called",
    ("hybrid/solution.py", "viz"): "`sol.plot`, `sol.animate` and the view in a notebook, when they are called",
    ("comparison.py", "viz"): "`comparison.plot`, when it is called",
    ("method_analysis/predictions.py", "viz"): "`analysis.plot`, when it is called",
    ("ensembles/ensemble.py", "viz"): "`ensemble.plot`, when it is called",
    ("problem_conditioning/conditioning.py", "viz"): "`conditioning.plot`, when it is called",
    ("analysis/decision.py", "formulations"): "a verdict names a formulation",
    ("analysis/decision.py", "methods"): "a verdict names a method",
    ("methods/implicit_runge_kutta.py", "method_analysis"): "the order of given coefficients, when it is asked for",
    ("initial/consistent.py", "methods"): "the workspace of an implicit problem, which its methods use as well",
    ("initial/newton.py", "methods"): "the same workspace",
    ("initial/euler_step.py", "methods"): "the same workspace",
    (
        "drive/solver.py",
        "hybrid",
    ): "the table of stages names the plan of hybrid problems; its runs come back for every stretch",
    ("drive/solver.py", "sensitivity"): "the table of stages names the plans of runs with sensitivities",
    ("viz/animate.py", "library"): "the drawing of a mechanism of the library, where none is given",
    ("viz/gallery.py", "library"): "the gallery shows the library",
}


NAMED = re.compile(r"daedal(\.\w+)+:\w+")


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
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMED.fullmatch(node.value):
            names = [node.value.replace(":", ".")]  # imported when it is needed, by its name
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == "daedal")


def package_imports() -> Iterator[tuple[Path, int, str, str]]:
    """Yield (file, line, room, imported name) over all files of the package but its own ``__init__``."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        if module == "daedal":
            continue
        for line, name in imported(path.read_text(encoding="utf-8"), module, is_package=is_package):
            yield path.relative_to(PACKAGE), line, room_of(module), name


def room_of(name: str) -> str:
    """The room of a dotted name; "" for the package itself."""
    first = name.split(".")[1] if "." in name else ""
    return ROOM_OF.get(first, first)


def against_the_order() -> Iterator[tuple[str, int, str, str]]:
    """Yield (file, line, room, imported name) for what the table does not allow."""
    for path, line, room, name in package_imports():
        used, allowed = room_of(name), MAY_USE.get(room, [])
        is_public = PUBLIC in allowed and name.removeprefix("daedal.") in {"daedal", *daedal.__all__}
        if not (used == room or used in OPEN or used in allowed or is_public):
            yield path.as_posix(), line, used, name


def test_every_room_is_in_the_table_and_uses_only_rooms_above_it():
    found = {room_of(f"daedal.{path.stem}") for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert found - {"__init__", "__pycache__"} == set(MAY_USE)
    above: set[str] = {PUBLIC}
    for room, used in MAY_USE.items():
        assert set(used) <= above, room
        above.add(room)


def test_rooms_import_only_what_the_table_allows():
    wrong = [
        f"{file}:{line} imports {name}"
        for file, line, used, name in against_the_order()
        if (file, used) not in EXCEPTIONS
    ]
    assert not wrong, "\n".join(wrong)


def test_every_exception_is_needed():
    assert set(EXCEPTIONS) == {(file, used) for file, _, used, _ in against_the_order()}


# --- docs/architecture.md says the same -------------------------------------------------------------------------------


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n{heading}\n")[1]
    lines = [line for line in text[text.index("\n|") :].strip().split("\n\n")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_the_page_shows_this_table():
    shown = {}
    for names, _, used in rows("## The rooms"):
        allowed = [PUBLIC] * ("public names" in used) + re.findall(r"`(\w+)`", used)
        for name in re.findall(r"`(\w+?)(?:\.py|/)`", names):
            shown[room_of(f"daedal.{name}")] = allowed
    assert {room: sorted(used) for room, used in shown.items()} == {
        room: sorted(used) for room, used in MAY_USE.items()
    }
    assert list(shown) == list(MAY_USE)


def test_the_page_shows_the_exceptions():
    shown = {(file.strip("`"), room.strip("`")): why for file, room, why in rows("### Against the order")}
    assert shown == EXCEPTIONS


def test_files_that_the_page_mentions_exist():
    text = PAGE.read_text(encoding="utf-8")
    root, names = PACKAGE.parent.parent, {path.name for path in PACKAGE.rglob("*")}
    for mentioned in re.findall(r"`([\w./]+(?:\.py|\.toml|\.md|/))`", text):
        name = mentioned.rstrip("/")
        assert name in names or (PACKAGE / name).exists() or (root / name).exists(), mentioned


# --- the walks of the page --------------------------------------------------------------------------------------------


def mechanism():
    return daedal.MechanicalSystem(
        1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q @ q - 1.0], n_q=2, n_constraints=1
    )


def hybrid():
    on, off = (daedal.ImplicitDAE(lambda t, y, yp, s=s: [yp[0] - s + 0.5 * y[0]], 1) for s in (2.0, 0.0))
    return daedal.HybridProblem(
        {"on": on, "off": off}, [daedal.Transition("on", "off", lambda t, y: y[0] - 2.0, name="warm")]
    )


WALKS = {
    "### The walk of a mechanism": (mechanism, ([1.0, 0.0], [0.0, 0.0])),
    "### The walk of a first-order run": (
        lambda: daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1),
        ([1.0], None),
    ),
    "### The walk of a hybrid run": (hybrid, ("on", ([1.5], [1.25]))),
}


@pytest.mark.parametrize("heading", WALKS)
def test_a_run_takes_the_walk_of_the_page(heading):
    text = PAGE.read_text(encoding="utf-8").split(f"\n{heading}\n")[1].split("\n#")[0]
    told = re.findall(r"^\d+\. `([\w/]+\.py)`(?!, compiled)", text, re.MULTILINE)
    compiled = re.findall(r"^\d+\. `([\w/]+)\.py`, compiled", text, re.MULTILINE)
    make, initial = WALKS[heading]
    problem, entered = make(), dict[str, None]()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(f"{PACKAGE}/"):
            entered.setdefault(frame.f_code.co_filename.removeprefix(f"{PACKAGE}/"))

    daedal.solve(problem, (0.0, 1.5), initial)
    sys.setprofile(note)
    try:
        daedal.solve(problem, (0.0, 1.5), initial)
    finally:
        sys.setprofile(None)
    assert [file for file in entered if file in told] == told
    loaded = {unit for unit, _ in units._loaded}  # which no frame shows
    assert {f"daedal.{file.replace('/', '.')}" for file in compiled} <= loaded
    assert len(told) + len(compiled) <= 13


# --- the forms of an import -------------------------------------------------------------------------------------------


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
        ('PLAN = "daedal.hybrid.plan:HybridPlan"', ["daedal.hybrid.plan.HybridPlan"]),
        ("import numpy\nfrom scipy import sparse", []),
    ],
)
def test_every_form_of_import_is_seen(source, names):
    assert [name for _, name in imported(source, "daedal.problems.implicit")] == names


def test_relative_import_in_a_package_file_starts_at_the_package():
    assert list(imported("from .dense import lu", "daedal.kernels", is_package=True)) == [
        (1, "daedal.kernels.dense.lu")
    ]


def test_import_daedal_loads_neither_numba_nor_matplotlib_nor_sparse_matrices():
    late = "{'numba', 'matplotlib', 'sympy', 'typer', 'tqdm', 'scipy.sparse', 'daedal.linear.pencil'}"
    code = f"import sys, daedal; print(*({late} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


@pytest.mark.parametrize(
    "name",
    ["daedal", "daedal.comparison", "daedal.linear", "daedal.order_conditions", "daedal.reproduce", "daedal.viz"],
)
def test_public_namespaces_show_public_names_only(name):
    module = importlib.import_module(name)
    assert set(dir(module)) == set(module.__all__) | ({"viz"} if name == "daedal" else set())


def test_every_public_name_exists():
    assert [name for name in daedal.__all__ if not hasattr(daedal, name)] == []
