"""Every Python example in the manual, the README and the docstrings runs as printed; some pages traced and untraced."""

import doctest
import importlib
import re
import runpy
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

import daedal
from oracles import oracle
from twin import made_twice

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

UNTRACED = {"large-mechanisms.md", "radau.md", "rosenbrock.md", "any-index.md", "index-reduction.md", "fields.md"}
UNTRACED |= {"trajectory-control.md", "linearise.md", "export-fmu.md", "operators.md", "sampled-rates.md"}
"""Pages with sparse matrices, tolerances that differences do not reach, an index that only a trace can reduce, hundreds
of runs with sensitivities, which differences would slow down, or a flame that DASSL, chosen without a trace, lets start
late: its error is 0.3 at rtol=1e-6, that of Radau 2e-4; FMUs."""


TWICE = {
    "README.md",
    "coming-from.md",
    "constraints.md",
    "contacts.md",
    "events.md",
    "formulations.md",
    "hessenberg.md",
}
TWICE |= {"initial-values.md", "multibody-forces.md", "multibody-topology.md", "plain-equations.md", "library.md"}
TWICE |= {"half-explicit.md", "implicit-runge-kutta.md", "multistep.md", "runge-kutta.md", "extrapolation.md"}
TWICE |= {"reproduction.md", "second-order.md"}
"""Pages whose runs are made twice in `make test`: among them is every kind of problem with every method and formulation
that pages have. All others are made twice in `make soak`."""


NEEDED = {
    "export-fmu.md": ["fmpy"],
    "operators.md": ["jax"],
    "sampled-rates.md": ["pymc"],
    "reinforcement-learning.md": ["gymnasium"],
    "daedal.exchange.gym": ["gymnasium"],
    "daedal.exchange.control": ["control"],
}
"""Packages beyond those of Daedal that a page or a module uses."""
COMPILED = {"export-fmu.md"}
"""Pages that need a C compiler."""


def script(page: str) -> str:
    """The Python blocks of a page as one script, each line at its line number in the page."""
    lines: list[str] = []
    for block in FENCE.finditer(page):
        first = page[: block.start(1)].count("\n")
        lines += [""] * (first - len(lines)) + block.group(1).splitlines()
    return "\n".join(lines) + "\n"


def pages() -> list[Path]:
    sources = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in sources if FENCE.search(path.read_text(encoding="utf-8"))]


def modules_with_examples() -> list[str]:
    package = Path(daedal.__file__).parent
    found = [path for path in sorted(package.rglob("*.py")) if ">>>" in path.read_text(encoding="utf-8")]
    return [
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__") for path in found
    ]


def test_script_keeps_line_numbers_and_skips_other_languages():
    page = "text\n```python\na = 1\n```\n```console\n$ ls\n```\n```python\nb = a\nc = b\n```\n"
    assert script(page).splitlines() == ["", "", "a = 1", "", "", "", "", "", "b = a", "c = b"]


@pytest.fixture
def in_temporary_folder(tmp_path, monkeypatch):
    """A folder of its own for what the examples save, and no windows."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    import matplotlib.pyplot as plt

    plt.close("all")


def run(path, folder):
    for name in NEEDED.get(path.name, ()):
        oracle(name)
    if path.name in COMPILED and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("no C compiler")
    file = folder / (path.stem.replace("-", "_") + ".py")
    file.write_text(script(path.read_text(encoding="utf-8")), encoding="utf-8")
    runpy.run_path(str(file), run_name="__main__")


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path.name == "README.md" else pytest.mark.slow) for path in pages()],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_examples_of_page_run(path, in_temporary_folder):
    with made_twice() if path.name in TWICE else nullcontext():
        run(path, in_temporary_folder)


def test_pages_that_are_made_twice_exist():
    assert TWICE | UNTRACED <= {path.name for path in pages()} and not TWICE & UNTRACED


@pytest.mark.soak
@pytest.mark.parametrize(
    "path",
    [path for path in pages() if path.name not in TWICE | UNTRACED],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_runs_of_page_are_the_same_traced_and_untraced(path, in_temporary_folder):
    with made_twice():
        run(path, in_temporary_folder)


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_of_docstrings_hold(name, in_temporary_folder):
    for package in NEEDED.get(name, ()):
        oracle(package)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert result.attempted > 0 and result.failed == 0
