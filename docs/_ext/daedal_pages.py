"""Write the pages that follow from the package itself: the reference of all public names and the library of problems.

Both are written to ``docs/_generated`` before the sources are read, so they never fall behind the code.
"""

import dataclasses
import importlib
import inspect
from operator import attrgetter
from pathlib import Path
from types import ModuleType

from docutils import nodes
from reference_groups import GROUPS, MODULES, Group

import daedal
import daedal.library

# In the other rooms a user makes objects but does not call their methods, with few exceptions.
ROOMS_WITH_MEMBERS = {"analysis", "driver", "ensembles", "hybrid", "problems", "sensitivity", "solution"}
MEMBERS = {"HEM4": "family"}

LONGEST_VALUE = 200  # characters of a constant that are shown
SHORTEST_SENTENCE = 30  # characters of a cell of a table
LONGEST_NUMBER = 10  # the same


def heading(text: str, underline: str = "=") -> str:
    return f"{text}\n{underline * len(text)}\n\n"


def indent(text: str, by: int = 3) -> str:
    return "\n".join(" " * by + line if line.strip() else "" for line in inspect.cleandoc(text).splitlines())


def number(value: float) -> str:
    """The number in LaTeX."""
    mantissa, _, exponent = f"{value:g}".partition("e")
    if not exponent:
        return mantissa
    factor = "" if mantissa == "1" else mantissa + r"\cdot"
    return f"{factor}10^{{{int(exponent)}}}"


def fields(value: type) -> list[str]:
    """The fields of a dataclass, which its docstring describes."""
    return [field.name for field in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []


def unknowns(problem) -> str:
    """How many there are, in words for a mechanism."""
    if isinstance(problem, daedal.MechanicalSystem):
        return f"{problem.n_q} coordinates, {problem.n_lambda} constraint{'' if problem.n_lambda == 1 else 's'}"
    if isinstance(problem, daedal.HessenbergDAE):
        return f"{problem.n}, and {problem.n_y} multiplier{'' if problem.n_y == 1 else 's'}"
    if isinstance(problem, daedal.SecondOrderDAE):
        return f"{problem.n}, of order {', '.join(map(str, problem.order))}"
    if isinstance(problem, daedal.hybrid.HybridProblem):
        return "; ".join(f"{unknowns(mode.problem)} ({name})" for name, mode in problem.modes.items())
    return str(problem.n)


def room(name: str) -> str:
    """The room that defines a public name such as ``methods.DASSL``."""
    return attrgetter(name)(daedal).__module__.split(".")[1]


def entry(name: str) -> str:
    """A public name in the reference."""
    value = attrgetter(name)(daedal)
    if not callable(value):
        return f".. py:data:: {name}\n   :module: daedal\n   :value: {value!r}\n\n"
    if not inspect.isclass(value):
        return f".. autofunction:: daedal.{name}\n\n"
    if issubclass(value, Exception):
        return f".. autoexception:: daedal.{name}\n   :show-inheritance:\n\n"
    members = f"   :members: {MEMBERS[name]}\n" if name in MEMBERS else ""
    if room(name) in ROOMS_WITH_MEMBERS:
        members = "   :members:\n   :exclude-members: " + ", ".join(fields(value)) + "\n"
    if room(name) == "problems":  # which share how their functions are compiled
        members += "   :inherited-members:\n"
    return f".. autoclass:: daedal.{name}\n{members}\n"


def group_page(group: Group) -> str:
    page = heading(group.title) + group.about + "\n\n.. currentmodule:: daedal\n\n"
    entries = [entry(name) for name in group.names if not isinstance(attrgetter(name)(daedal), ModuleType)]
    return page + "".join(entries) + "".join(f"See :doc:`module-{name}`.\n\n" for name in group.modules)


def module_page(name: str) -> str:
    title, members = MODULES[name]
    module = importlib.import_module(f"daedal.{name}")
    public = getattr(module, "__all__", ())
    page = heading(title) + f"The names of the module ``daedal.{name}``.\n\n"
    page += f".. automodule:: daedal.{name}\n   :members: {members}\n"
    page += "   :imported-members:\n\n" if public else "\n"
    for constant in (word for word in public if not callable(getattr(module, word))):
        value = repr(getattr(module, constant))
        page += f".. py:data:: {constant}\n   :module: daedal.{name}\n"
        page += f"   :value: {value}\n\n" if len(value) < LONGEST_VALUE else "\n"
    return page


def overview(group: Group) -> str:
    """What the first page of the reference says of a group: its names with a line each, and its modules."""
    text = heading(group.title, "-") + group.about + "\n\n"
    names = [name for name in group.names if callable(attrgetter(name)(daedal))]
    if names:
        text += ".. autosummary::\n   :nosignatures:\n\n" + "".join(f"   ~daedal.{name}\n" for name in names) + "\n"
    modules = "; ".join(f":doc:`{MODULES[name][0]} <module-{name}>`, ``daedal.{name}``" for name in group.modules)
    return text + (f"Modules: {modules}.\n\n" if modules else "")


def write_reference(folder: Path) -> None:
    pages = []
    for group in GROUPS:
        (folder / f"{group.page}.rst").write_text(group_page(group), encoding="utf-8")
        pages.append(group.page)
        for name in group.modules:
            (folder / f"module-{name}.rst").write_text(module_page(name), encoding="utf-8")
            pages.append(f"module-{name}")
    index = "".join(overview(group) for group in GROUPS).replace("<module-", "</_generated/api/module-")
    index += ".. toctree::\n   :hidden:\n\n" + "".join(f"   /_generated/api/{page}\n" for page in pages)
    (folder / "groups.txt").write_text(index, encoding="utf-8")
    for path in folder.glob("*.rst"):
        if path.stem not in pages:  # of an earlier build
            path.unlink()


def indices_in_words(indices: daedal.library.Indices) -> str:
    if indices.differentiation is None:
        return f"strangeness index {indices.strangeness}, local index {indices.local}"
    structural = f"structural index {indices.structural}"
    if not indices.structure_suffices:
        structural += " (its system Jacobian is singular)"
    local = "singular pencil at the start" if indices.local is None else f"local index {indices.local} at the start"
    words = [f"strangeness index {indices.strangeness}", structural, local]
    if indices.after_order_reduction is not None:
        words.append(f"index {indices.after_order_reduction} in companion form")
    return ", ".join([*words, f"degrees of freedom {indices.degrees_of_freedom}"])


def write_library(path: Path) -> None:
    text = ""
    for name in daedal.library.names():
        model = daedal.library.get(name)
        text += f".. _problem-{name}:\n\n" + heading(model.title, "-")
        text += inspect.cleandoc(model.description) + "\n\n"
        text += ".. math::\n\n" + indent(model.equations) + "\n\n"
        facts = {
            "Name": f"``{name}``; parameters: :func:`daedal.library.{name}`",
            "Unknowns": unknowns(model.problem),
            "Index": str(model.index) if model.solvable else "none: it does not determine its solution",
            "Interval": f":math:`{number(model.t_span[0])} \\le t \\le {number(model.t_span[1])}`",
            "Source": "\\" + model.source,  # "K. E. Brenan" would begin an enumerated list
        }
        if model.indices is not None:
            facts["By notions"] = indices_in_words(model.indices)
        if model.reference is not None:
            facts["Reference solution"] = model.reference.source
        text += ".. container:: problem-facts\n\n"
        text += "".join(f"   :{key}: {' '.join(str(value).split())}\n" for key, value in facts.items()) + "\n"
    path.write_text(text, encoding="utf-8")


def write_pages(app) -> None:
    folder = Path(app.srcdir) / "_generated"
    (folder / "api").mkdir(parents=True, exist_ok=True)
    write_reference(folder / "api")
    write_library(folder / "library.txt")


def keep_first_line(app, what, name, value, options, lines) -> None:
    """Undo what Napoleon does to a property whose first line has a colon: it takes what stands before it for a type."""
    kinds = [line for line in lines if line.startswith(":type: ")]
    if what == "property" and kinds:
        lines.remove(kinds[0])
        lines[0] = f"{kinds[0].removeprefix(':type: ')}: {lines[0]}"


def skip_field(app, what, name, value, skip, options) -> bool | None:
    """Fields of named tuples, which the docstring of the class describes."""
    return True if (getattr(value, "__doc__", None) or "").startswith("Alias for field number") else None


def mark_sentences(app, doctree) -> None:
    """Cells with a sentence, which need some width on a phone, or with a number; tables of a word and a sentence."""
    for cell in doctree.findall(nodes.entry):
        length = len(cell.astext())
        if length > SHORTEST_SENTENCE:
            cell["classes"].append("sentence")
        elif length < LONGEST_NUMBER:
            cell["classes"].append("short")
    for table in doctree.findall(nodes.table):
        rows = list(table.findall(nodes.row))
        if all(len(row) == 2 for row in rows) and any("sentence" in row[1]["classes"] for row in rows):
            table["classes"].append("pairs")


def setup(app):
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", keep_first_line, priority=600)
    app.connect("autodoc-skip-member", skip_field)
    app.connect("doctree-read", mark_sentences)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
