"""Files of an FMU other than its sources: model description, build description and compiled library."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from daedal.errors import DaedalError, InvalidProblemError
from daedal.exchange.fmu_model import FMUModel


@dataclass(frozen=True)
class Variable:
    """A variable of a model description."""

    name: str
    reference: int
    causality: str
    variability: str
    initial: str | None = None
    start: float | int | None = None
    derivative_of: int | None = None  # one-based index and value reference of the state
    kind: str = "Real"
    description: str = ""


def variables_of(model: FMUModel, version: str) -> list[Variable]:
    """All variables, in the order of their value references, with unique names."""
    taken: set[str] = set()

    def unique(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    n, found = len(model.states), [Variable(unique("time"), 0, "independent", "continuous")]
    outputs = [unique(name) for name in model.outputs]
    approximate = model.constrained
    for j, name in enumerate(model.states):
        causality = "output" if name in model.shown and name not in model.outputs else "local"
        integrated = j in model.integrated
        initial = "exact" if integrated and not approximate else "approx" if integrated else "calculated"
        start = float(model.start[j]) if initial != "calculated" else None
        found.append(Variable(unique(name), 1 + j, causality, "continuous", initial, start))
    for k, j in enumerate(model.integrated):
        name = unique(f"der({found[1 + j].name})")
        found.append(Variable(name, 1 + n + k, "local", "continuous", "calculated", derivative_of=1 + j))
    first = 1 + n + len(model.integrated)
    for k, (name, value) in enumerate(zip(model.parameters, model.values, strict=False)):
        if k in model.inputs:
            found.append(Variable(unique(name), first + k, "input", "continuous", None, float(value)))
        else:
            found.append(Variable(unique(name), first + k, "parameter", "tunable", "exact", float(value)))
    first += len(model.values)
    for k, name in enumerate(outputs):
        found.append(Variable(name, first + k, "output", "continuous", "calculated"))
    first += len(outputs)
    if version == "3.0":
        for k in range(model.n_indicators):
            found.append(Variable(unique(f"event indicator {k}"), first + k, "local", "continuous", "calculated"))
    first += model.n_indicators
    if model.modes:
        words = ", ".join(f"{k}: {name}" for k, name in enumerate(model.modes))
        kind = "Integer" if version == "2.0" else "Int32"
        found.append(Variable(unique("mode"), first, "output", "discrete", "calculated", kind=kind, description=words))
    return found


def description(
    model: FMUModel,
    variables: list[Variable],
    *,
    name: str,
    token: str,
    kind: str,
    version: str,
    identifier: str,
    **more: str,
) -> str:
    """The text of modelDescription.xml."""
    make = _version_2 if version == "2.0" else _version_3
    root = make(model, variables, name, token, kind, identifier, more)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _number(value: float | int) -> str:
    return repr(value)


def _flags(model: FMUModel, version: str) -> dict[str, str]:
    state = "canGetAndSetFMUstate" if version == "2.0" else "canGetAndSetFMUState"
    flags = {state: "true", state.replace("GetAndSet", "Serialize"): "true"}
    if model.partials:
        flags["providesDirectionalDerivative" if version == "2.0" else "providesDirectionalDerivatives"] = "true"
        if version == "3.0":
            flags["providesAdjointDerivatives"] = "true"
    return flags


def _version_2(model, variables, name, token, kind, identifier, more) -> ET.Element:
    attributes = {"fmiVersion": "2.0", "modelName": name, "guid": token, **_common(more)}
    if kind == "me":
        attributes["numberOfEventIndicators"] = str(model.n_indicators)
    root = ET.Element("fmiModelDescription", attributes)
    flags = {"modelIdentifier": identifier, **_flags(model, "2.0"), "canBeInstantiatedOnlyOncePerProcess": "false"}
    if kind == "cs":
        flags |= {"canHandleVariableCommunicationStepSize": "true", "canInterpolateInputs": "false"}
    implementation = ET.SubElement(root, "CoSimulation" if kind == "cs" else "ModelExchange", flags)
    ET.SubElement(ET.SubElement(implementation, "SourceFiles"), "File", {"name": f"{identifier}.c"})
    ET.SubElement(ET.SubElement(root, "LogCategories"), "Category", {"name": "logStatusError"})
    ET.SubElement(root, "DefaultExperiment", _experiment(model, more))
    listed = ET.SubElement(root, "ModelVariables")
    for variable in variables:
        attributes = {"name": variable.name, "valueReference": str(variable.reference)}
        if variable.description:
            attributes["description"] = variable.description
        attributes |= {"causality": variable.causality, "variability": variable.variability}
        if variable.initial:
            attributes["initial"] = variable.initial
        scalar = ET.SubElement(listed, "ScalarVariable", attributes)
        typed = {}
        if variable.derivative_of is not None:
            typed["derivative"] = str(1 + variable.derivative_of)
        if variable.start is not None:
            typed["start"] = _number(variable.start)
        ET.SubElement(scalar, variable.kind, typed)
    structure = ET.SubElement(root, "ModelStructure")
    indices = {variable.reference: k for k, variable in enumerate(variables, 1)}
    _unknowns(structure, "Outputs", [indices[v.reference] for v in variables if v.causality == "output"])
    derivatives = [indices[v.reference] for v in variables if v.derivative_of is not None]
    _unknowns(structure, "Derivatives", derivatives)
    _unknowns(structure, "InitialUnknowns", [indices[v.reference] for v in _initial_unknowns(variables)])
    return root


def _initial_unknowns(variables: list[Variable]) -> list[Variable]:
    """Outputs, states and derivatives computed at the start."""
    states = {variable.derivative_of for variable in variables if variable.derivative_of is not None}
    return [
        v
        for v in variables
        if v.initial in ("approx", "calculated")
        and (v.causality == "output" or v.derivative_of is not None or v.reference in states)
    ]


def _unknowns(structure: ET.Element, name: str, indices: Iterable[int]):
    entries = list(indices)
    if entries:
        group = ET.SubElement(structure, name)
        for index in entries:
            ET.SubElement(group, "Unknown", {"index": str(index)})


def _version_3(model, variables, name, token, kind, identifier, more) -> ET.Element:
    attributes = {"fmiVersion": "3.0", "modelName": name, "instantiationToken": token, **_common(more)}
    root = ET.Element("fmiModelDescription", attributes)
    flags = {"modelIdentifier": identifier, **_flags(model, "3.0"), "canBeInstantiatedOnlyOncePerProcess": "false"}
    if kind == "cs":
        flags["canHandleVariableCommunicationStepSize"] = "true"
    else:
        flags["needsCompletedIntegratorStep"] = "true"
    ET.SubElement(root, "CoSimulation" if kind == "cs" else "ModelExchange", flags)
    ET.SubElement(ET.SubElement(root, "LogCategories"), "Category", {"name": "logStatusError"})
    ET.SubElement(root, "DefaultExperiment", _experiment(model, more))
    listed = ET.SubElement(root, "ModelVariables")
    for variable in variables:
        attributes = {"name": variable.name, "valueReference": str(variable.reference)}
        if variable.description:
            attributes["description"] = variable.description
        attributes |= {"causality": variable.causality, "variability": variable.variability}
        if variable.initial and variable.causality != "independent":
            attributes["initial"] = variable.initial
        if variable.derivative_of is not None:
            attributes["derivative"] = str(variable.derivative_of)
        if variable.start is not None:
            attributes["start"] = _number(variable.start)
        ET.SubElement(listed, "Float64" if variable.kind == "Real" else variable.kind, attributes)
    structure = ET.SubElement(root, "ModelStructure")
    groups = (
        ("Output", [v for v in variables if v.causality == "output"]),
        ("ContinuousStateDerivative", [v for v in variables if v.derivative_of is not None]),
        ("InitialUnknown", _initial_unknowns(variables)),
        ("EventIndicator", [v for v in variables if v.name.startswith("event indicator") and v.causality == "local"]),
    )
    for tag, members in groups:
        for variable in members:
            ET.SubElement(structure, tag, {"valueReference": str(variable.reference)})
    return root


def _common(more: dict[str, str]) -> dict[str, str]:
    return {"generationTool": more["tool"], "variableNamingConvention": "flat"}


def _experiment(model: FMUModel, more: dict[str, str]) -> dict[str, str]:
    return {
        "startTime": _number(model.start_time),
        "stopTime": _number(model.start_time + 1.0),
        "tolerance": more["tolerance"],
    }


def build_description(identifier: str) -> str:
    """The text of sources/buildDescription.xml, a file of FMI 3.0."""
    root = ET.Element("fmiBuildDescription", {"fmiVersion": "3.0"})
    configuration = ET.SubElement(root, "BuildConfiguration", {"modelIdentifier": identifier})
    files = ET.SubElement(configuration, "SourceFileSet", {"language": "C99"})
    ET.SubElement(files, "SourceFile", {"name": f"{identifier}.c"})
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


NAMES = ("cc", "gcc", "clang")
"""Programs to search for, in this order; the module ziglang is tried last."""
FLAGS = ("-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-std=c99")


@dataclass(frozen=True)
class Compiler:
    """A C compiler: its name, and the command that calls it."""

    name: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.command)


def found_compiler(wanted: str | None) -> Compiler | None:
    """The compiler with the given name or path, or the first one found; None if there is none."""
    if wanted is not None:
        if wanted == "ziglang":
            if importlib.util.find_spec("ziglang") is None:
                raise InvalidProblemError("compiler='ziglang' is not installed: pip install ziglang")
            return _zig()
        path = shutil.which(wanted)
        if path is None:
            raise InvalidProblemError(f"compiler={wanted!r} is not found; name a program on the path, or 'ziglang'")
        return Compiler(wanted, (path,))
    for name in NAMES:
        path = shutil.which(name)
        if path is not None:
            return Compiler(name, (path,))
    return _zig() if importlib.util.find_spec("ziglang") is not None else None


def _zig() -> Compiler:
    return Compiler("ziglang", (sys.executable, "-m", "ziglang", "cc"))


def folder_of_platform(version: str) -> tuple[str, str]:
    """The folder of binaries for this platform, and the file extension of libraries."""
    system, machine = platform.system(), platform.machine().lower()
    bits = "64" if sys.maxsize > 2**32 else "32"
    name, ending = {"Windows": ("win", ".dll"), "Darwin": ("darwin", ".dylib")}.get(system, ("linux", ".so"))
    if version == "2.0":
        return f"{name}{bits}", ending
    architecture = {"arm64": "aarch64", "aarch64": "aarch64"}.get(machine, "x86_64" if bits == "64" else "x86")
    return f"{architecture}-{'windows' if name == 'win' else name}", ending


def compiled(compiler: Compiler, source: str, identifier: str, ending: str) -> bytes:
    """Compile a source to a shared library."""
    with tempfile.TemporaryDirectory() as folder:
        path, library = Path(folder) / f"{identifier}.c", Path(folder) / f"{identifier}{ending}"
        path.write_text(source, encoding="utf-8")
        command = [*compiler.command, *FLAGS, str(path), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        if done.returncode != 0 or not library.exists():
            raise DaedalError(
                f"export_fmu: the compiler {compiler} cannot compile the sources of the FMU:\n{done.stderr[-2000:]}"
            )
        return library.read_bytes()
