"""Write the pages that follow from the package itself: the reference of all public names and the library of problems.

Both are written to ``docs/_generated`` before the sources are read, so they never fall behind the code.
"""

import dataclasses
import importlib
import inspect
from pathlib import Path

import daedal
import daedal.library

# The rooms in the order a reader meets them; a room not listed here follows at the end under its own name.
ROOM_TITLES = {
    "solve": "Solving",
    "drive": "Prepared solvers",
    "ensembles": "Ensembles",
    "problems": "Problems",
    "lagrangian": "Systems from energies",
    "sympy_problems": "Problems from SymPy",
    "problem_analysis": "Analysis of problems",
    "structure": "Structure of equations",
    "index_reduction": "Index reduction",
    "initial": "Initial values",
    "methods": "Methods",
    "method_analysis": "Analysis of methods",
    "formulations": "Formulations",
    "advise": "Advice on formulations",
    "problem_conditioning": "Conditioning",
    "comparison": "Comparison of formulations",
    "adjoint": "Gradients of costs",
    "fitting": "Fitting to measurements",
    "linear_solvers": "Linear solvers",
    "events": "Events",
    "hybrid": "Discontinuous models",
    "solution": "The solution",
    "mechanical_solution": "The solution of a mechanism",
    "second_order_solution": "The solution of a second-order DAE",
    "errors": "Errors",
}

# In the other rooms a user makes objects but does not call their methods, with few exceptions.
ROOMS_WITH_MEMBERS = {
    "problem_conditioning",
    "fitting",
    "drive",
    "ensembles",
    "problem_analysis",
    "problems",
    "hybrid",
    "solution",
    "mechanical_solution",
    "second_order_solution",
}
MEMBERS = {"HEM4": "family"}

# Modules with public names of their own, and which of them are shown, where that is not all of them.
MODULES = {
    "library": "",
    "circuits": "",
    "linear": "",
    "ensembles": "Histogram, Quantiles, Reduction",
    "multibody": "",
    "order_conditions": "",
    "method_analysis": "MethodAnalysis, RungeKuttaAnalysis, MultistepAnalysis, Prediction",
    "viz": "",
    "viz.gallery": "build_gallery, Gallery, Card",
    "reproduce": "",
}
LONGEST_VALUE = 200  # characters of a constant that are shown


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
    if isinstance(problem, daedal.HybridProblem):
        return "; ".join(f"{unknowns(mode.problem)} ({name})" for name, mode in problem.modes.items())
    return str(problem.n)


def rooms() -> dict[str, list[str]]:
    """Group the public names by the room that defines them."""
    groups: dict[str, list[str]] = {room: [] for room in ROOM_TITLES}
    for name in daedal.__all__:
        value = getattr(daedal, name)
        if inspect.isclass(value) or callable(value):
            groups.setdefault(value.__module__.split(".")[1], []).append(name)
    return {room: names for room, names in groups.items() if names}


def write_reference(folder: Path) -> None:
    pages = []
    for room, names in rooms().items():
        page = heading(ROOM_TITLES.get(room, room.capitalize())) + ".. currentmodule:: daedal\n\n"
        for name in names:
            value = getattr(daedal, name)
            if not inspect.isclass(value):
                page += f".. autofunction:: daedal.{name}\n\n"
            elif issubclass(value, Exception):
                page += f".. autoexception:: daedal.{name}\n   :show-inheritance:\n\n"
            else:
                members = f"   :members: {MEMBERS[name]}\n" if name in MEMBERS else ""
                if room in ROOMS_WITH_MEMBERS:
                    members = "   :members:\n   :exclude-members: " + ", ".join(fields(value)) + "\n"
                if room == "problems":  # which share how their functions are compiled
                    members += "   :inherited-members:\n"
                page += f".. autoclass:: daedal.{name}\n{members}\n"
        (folder / f"{room}.rst").write_text(page, encoding="utf-8")
        pages.append(room)
    for name, members in MODULES.items():
        module = importlib.import_module(f"daedal.{name}")
        public = getattr(module, "__all__", ())
        page = heading(f"daedal.{name}") + f".. automodule:: daedal.{name}\n   :members: {members}\n"
        page += "   :imported-members:\n\n" if public else "\n"
        for constant in (word for word in public if not callable(getattr(module, word))):
            value = repr(getattr(module, constant))
            page += f".. py:data:: {constant}\n   :module: daedal.{name}\n"
            page += f"   :value: {value}\n\n" if len(value) < LONGEST_VALUE else "\n"
        (folder / f"module-{name}.rst").write_text(page, encoding="utf-8")
        pages.append(f"module-{name}")
    index = ".. toctree::\n   :maxdepth: 2\n\n" + "".join(f"   /_generated/api/{page}\n" for page in pages)
    (folder / "toctree.txt").write_text(index, encoding="utf-8")


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


def setup(app):
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
