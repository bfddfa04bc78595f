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
from test_public_names import SURFACE

PACKAGE = Path(daedal.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"

# A room may import what stands above it. Rooms of the last group take public names alone, and the rooms named here.
ROOMS = [
    *("errors", "common", "kernels", "build"),
    *("symbolic", "index.linear", "problems", "symbolic.tracing", "index.structure"),
    *("events", "solution", "mechanics", "analysis", "initial", "mechanics.formulations", "methods", "index.reduction"),
    *("driver", "hybrid", "sensitivity", "driver.solving", "driver.ivp", "ensembles"),
    *("analysis.order_conditions", "analysis.method_analysis", "analysis.conditioning", "analysis.problem_page"),
    *("analysis.advice", "analysis.comparison", "analysis.certificate", "analysis.linear_models", "simulation"),
]
ON_PUBLIC_NAMES = {
    "formulations": [],
    "linear_solvers": [],
    "viz": [],
    "sensitivity.adjoint": ["kernels", "symbolic", "problems", "symbolic.tracing", "driver", "sensitivity"],
    "sensitivity.fitting": ["problems", "driver", "hybrid", "sensitivity", "viz"],
    "multibody": ["kernels", "symbolic", "index.linear", "problems", "solution", "viz"],
    "circuits": [],
    "exchange": [
        *("kernels", "symbolic", "problems", "symbolic.tracing", "solution", "sensitivity"),
        *("ensembles", "sensitivity.adjoint"),
        *("events", "hybrid", "initial", "index.structure", "index.reduction", "methods"),
    ],
    "library": ["viz", "multibody", "circuits"],
    "studies": ["methods", "problems", "index.structure", "analysis.order_conditions", "viz", "library"],
    "cli": ["kernels", "viz", "library", "studies"],
}
OPEN = {"errors", "common"}  # to all rooms
LATE = "viz"  # to all rooms in functions: `sol.plot` and its kin import it when they are called

# (file, room against the order): why.
EXCEPTIONS = {
    ("errors.py", "solution"): "for the type checker only",
    (
        "problems/compile.py",
        "symbolic.tracing",
    ): '`problem.functions` and `problem.compiled(backend="trace")`, when they are called',
    ("problems/mechanical.py", "mechanics"): "`system.at`, when it is called",
    ("problems/mechanical.py", "analysis"): "`system.check`, when it is called",
    ("events/table.py", "solution"): "a table of events as a pandas data frame, when requested",
    ("analysis/decision.py", "mechanics.formulations"): "a verdict names a formulation",
    ("analysis/decision.py", "methods"): "a verdict names a method",
    ("initial/consistent.py", "methods"): "the workspace of an implicit problem, which its methods use as well",
    ("initial/newton_start.py", "methods"): "the same workspace",
    (
        "methods/implicit_rk/implicit_runge_kutta.py",
        "analysis.method_analysis",
    ): "the order of given coefficients, when requested",
    ("driver/solver.py", "hybrid"): "the table of stages names the plan of hybrid problems; their arcs are runs",
    ("driver/solver.py", "sensitivity"): "the table of stages names the plans of runs with sensitivities",
    ("solution/solution.py", "exchange"): "`sol.studio`, when it is called",
    ("viz/animate.py", "library"): "the drawing of a mechanism of the library, if none is given",
    ("viz/gallery.py", "library"): "the gallery shows the library",
}


PUBLIC = {"daedal", *SURFACE[""], *(f"{module}.{name}" for module, names in SURFACE.items() for name in names)}

NAMED = re.compile(r"daedal(\.\w+)+:\w+")


def imported(source: str, module: str, *, is_package: bool = False) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, dotted name, in a function) for all of daedal that ``source`` imports or reaches as ``daedal.name``.

    ``from daedal.a import b`` yields ``daedal.a.b``, whether ``b`` is a module or not.
    """
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
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
        late = id(node) in inside or isinstance(node, ast.Constant)
        yield from ((node.lineno, name, late) for name in names if name.split(".")[0] == "daedal")


def package_imports() -> Iterator[tuple[Path, int, str, str, bool]]:
    """Yield (file, line, room, imported name, in a function) over all files of the package but its own ``__init__``."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        if module == "daedal":
            continue
        for line, name, late in imported(path.read_text(encoding="utf-8"), module, is_package=is_package):
            yield path.relative_to(PACKAGE), line, room_of(module), name, late


def room_of(name: str) -> str:
    """The room of a dotted name, the innermost one in the tables; "" for the package itself."""
    rest = name.partition(".")[2]
    inner = [room for room in (*ROOMS, *ON_PUBLIC_NAMES) if f"{rest}.".startswith(f"{room}.")]
    return max(inner, key=len) if inner else {"__main__": "cli"}.get(rest, rest.partition(".")[0])


def may_use(room: str, name: str, *, late: bool) -> bool:
    """Whether a file of a room may import a name; in a function if `late`."""
    used = room_of(name)
    if used == room or used in OPEN or (late and used == LATE):
        return True
    if room in ON_PUBLIC_NAMES:
        return used in ON_PUBLIC_NAMES[room] or name.removeprefix("daedal.") in PUBLIC
    return used in ROOMS[: ROOMS.index(room)]


def against_the_order() -> Iterator[tuple[str, int, str, str]]:
    """Yield (file, line, room, imported name) for what the order does not allow."""
    for path, line, room, name, late in package_imports():
        if not may_use(room, name, late=late):
            yield path.as_posix(), line, room_of(name), name


def test_every_room_has_a_place_in_the_order():
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    named = {room.partition(".")[0] for room in (*ROOMS, *ON_PUBLIC_NAMES)}
    assert found - {"__init__", "__main__", "__pycache__"} == named


def test_rooms_import_only_what_stands_above_them():
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


def test_the_page_shows_the_rooms_in_their_order():
    names = [name for cells in rows("## The rooms") for name in re.findall(r"`([^`]+)`", cells[0])]
    assert [name.removesuffix(".py").strip("/").replace("/", ".") for name in names] == [*ROOMS, *ON_PUBLIC_NAMES]


def test_the_page_shows_the_exceptions():
    shown = {(file.strip("`"), room.strip("`")): why for file, room, why in rows("### Against the order")}
    assert shown == EXCEPTIONS


def test_files_that_the_page_mentions_exist():
    text = PAGE.read_text(encoding="utf-8")
    root, names = PACKAGE.parent.parent, {path.name for path in PACKAGE.rglob("*")}
    for mentioned in re.findall(r"`([\w./]+(?:\.py|\.toml|\.md|/))`", text):
        name = mentioned.rstrip("/")
        assert name in names or (PACKAGE / name).exists() or (root / name).exists(), mentioned


def test_files_that_the_heads_of_rooms_mention_exist():
    for head in sorted(PACKAGE.rglob("__init__.py")):
        text = ast.get_docstring(ast.parse(head.read_text(encoding="utf-8"))) or ""
        assert [name for name in re.findall(r"`([\w/]+\.py)`", text) if not (head.parent / name).exists()] == [], head


# --- the walks of the page --------------------------------------------------------------------------------------------


def mechanism():
    return daedal.MechanicalSystem(
        1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q @ q - 1.0], n_q=2, n_constraints=1
    )


def hybrid():
    on, off = (daedal.ImplicitDAE(lambda t, y, yp, s=s: [yp[0] - s + 0.5 * y[0]], 1) for s in (2.0, 0.0))
    return daedal.hybrid.HybridProblem(
        {"on": on, "off": off}, [daedal.hybrid.Transition("on", "off", lambda t, y: y[0] - 2.0, name="warm")]
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
    problem, entered, chain = make(), dict[str, None](), list[str]()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(f"{PACKAGE}/"):
            file = frame.f_code.co_filename.removeprefix(f"{PACKAGE}/")
            entered.setdefault(file)
            if not chain and (file, frame.f_code.co_name) == ("methods/run.py", "integrate"):
                chain.extend(call_chain(frame))

    daedal.solve(problem, (0.0, 1.5), initial)
    sys.setprofile(note)
    try:
        daedal.solve(problem, (0.0, 1.5), initial)
    finally:
        sys.setprofile(None)
    assert [file for file in entered if file in told] == told
    loaded = {unit for unit, _ in units._loaded}  # which no frame shows
    assert {f"daedal.{file.replace('/', '.')}" for file in compiled} <= loaded
    assert len(told) + len(compiled) <= 9
    if "hybrid" not in heading:  # whose stretches take one of the other walks
        assert chain and set(chain) <= set(told)  # the page leaves none out


def call_chain(frame) -> list[str]:
    """The files on the way to a frame, but for methods that check more around the loop of all of them."""
    files = []
    while frame is not None:
        file = frame.f_code.co_filename.removeprefix(f"{PACKAGE}/")
        if frame.f_code.co_filename != file and (not file.startswith("methods/") or file == "methods/run.py"):
            files.append(file)
        frame = frame.f_back
    return files


# --- the forms of an import -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import daedal.methods.bdf.dassl", ["daedal.methods.bdf.dassl"]),
        ("from daedal import methods", ["daedal.methods"]),
        ("from daedal.methods.bdf import dassl", ["daedal.methods.bdf.dassl"]),
        ("from ..methods.bdf import dassl", ["daedal.methods.bdf.dassl"]),
        ("from .. import solve", ["daedal.solve"]),
        ("from . import semi_explicit", ["daedal.problems.semi_explicit"]),
        ("def late():\n    import daedal\n    return daedal.solve", ["daedal", "daedal.solve"]),
        ('PLAN = "daedal.hybrid.mode_plans:HybridPlan"', ["daedal.hybrid.mode_plans.HybridPlan"]),
        ("import numpy\nfrom scipy import sparse", []),
    ],
)
def test_every_form_of_import_is_seen(source, names):
    assert [name for _, name, _ in imported(source, "daedal.problems.implicit")] == names


def test_relative_import_in_a_package_file_starts_at_the_package():
    assert list(imported("from .dense import lu", "daedal.kernels", is_package=True)) == [
        (1, "daedal.kernels.dense.lu", False)
    ]


def test_import_daedal_loads_neither_numba_nor_matplotlib_nor_sparse_matrices():
    late = "{'numba', 'matplotlib', 'sympy', 'typer', 'tqdm', 'scipy.sparse', 'daedal.index.linear.pencil'}"
    code = f"import sys, daedal; print(*({late} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


@pytest.mark.parametrize(
    "name",
    [
        "daedal.analysis.comparison",
        "daedal.analysis.order_conditions",
        "daedal.studies.reproduce",
        "daedal.viz",
    ],
)
def test_public_namespaces_show_public_names_only(name):
    module = importlib.import_module(name)
    assert set(dir(module)) == set(module.__all__)
