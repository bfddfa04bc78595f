"""Problems as FMUs: files that other simulation programs load, without Python on the target."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import daedal
from daedal.errors import DaedalError, InvalidProblemError, UnknownNameError, near_names
from daedal.exchange.fmu_files import (
    build_description,
    compiled,
    description,
    folder_of_platform,
    found_compiler,
    variables_of,
)
from daedal.exchange.fmu_model import (
    FMUModel,
    ModeInC,
    function_nodes,
    mode_in_c,
    model_of,
    state_names,
    stated_outputs,
    token_of,
)
from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.index.reduction.selection import lift
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.system_equations import required_equations
from daedal.methods.explicit.runge_kutta import ExplicitRungeKutta
from daedal.methods.named_methods import named_method
from daedal.methods.rosenbrock.rosenbrock import Rosenbrock
from daedal.methods.rosenbrock.rosenbrock_tableaux import TABLEAUX
from daedal.problems import (
    ODE,
    ImplicitDAE,
    LinearDAE,
    MechanicalSystem,
    SecondOrderDAE,
    SemiExplicitDAE,
)
from daedal.problems.checks import check_finite, check_tolerances, check_vector
from daedal.problems.named_inputs import Inputs
from daedal.problems.problem_sources import Problem, is_source

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from daedal.problems.problem_sources import ProblemSource


_SHARP = 1e-5  # relative tolerance below which the Rosenbrock method of order 5 is faster
_LARGE = 100.0  # typical value of 1 / (h gamma), for the choice of pivots
_DATE = (1980, 1, 1, 0, 0, 0)  # date of all entries, constant so that the same model gives the same file
PROBLEMS = (ImplicitDAE, SemiExplicitDAE, SecondOrderDAE, MechanicalSystem, LinearDAE, daedal.hybrid.HybridProblem)
KINDS = ("cs", "me")
VERSIONS = ("2.0", "3.0")


@dataclass(frozen=True)
class ExportedFMU:
    """The file written by :func:`daedal.export_fmu`.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    kind, version : str
    states, parameters, inputs, outputs : tuple of str
        Names of the variables of the FMU.
    compiler : str or None
        Name of the C compiler of the binary; None if the FMU has only sources.
    platform : str or None
        Name of the folder of the binary, or None.
    message : str
        Summary of the export.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import daedal
    >>> tank = daedal.ODE(lambda t, y, flow: [flow - 0.5 * y[0]], 1, names=["level"], inputs=["flow"])
    >>> with TemporaryDirectory() as folder:
    ...     fmu = daedal.export_fmu(tank, f"{folder}/tank.fmu", initial=[1.0], binary=False)
    ...     print(fmu.path.name)
    tank.fmu
    """

    path: Path
    kind: str
    version: str
    states: tuple[str, ...]
    parameters: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    compiler: str | None
    platform: str | None
    message: str

    def __str__(self) -> str:
        return self.message


def export_fmu(
    problem: Problem | ProblemSource[Problem],
    path: str | Path,
    *,
    initial: Any = None,
    inputs: Sequence[str] | Mapping[str, Any] | None = None,
    outputs: Sequence[str] | Mapping[str, Any] | None = None,
    kind: str = "cs",
    version: str = "2.0",
    params: Any = None,
    t0: float = 0.0,
    method: Any = "auto",
    rtol: ArrayLike = 1e-6,
    atol: ArrayLike = 1e-9,
    name: str | None = None,
    compiler: str | None = None,
    binary: bool = True,
    correct_initial: bool = False,
) -> ExportedFMU:
    """Write a problem as an FMU, a model for other simulation programs (Functional Mock-up Interface).

    The FMU contains C sources of the model and its integrator, and a shared library for this platform if a C compiler
    is available. It runs without Python and Daedal.

    Parameters
    ----------
    problem : ODE, MassMatrixDAE, ImplicitDAE, SemiExplicitDAE, MechanicalSystem, HybridProblem, Model or Circuit, ...
        The problem; its functions must be traceable. A problem of index 2 or higher that is not a mechanism is first
        reduced to index 1.
    path : path
        The file to write, with the extension ``.fmu``.
    initial : object
        Start values, as `initial` of :func:`daedal.solve`.
    inputs : list of str, or mapping, optional
        Which inputs of the problem are inputs of the FMU, by default all; a mapping gives their start values. Other
        inputs become parameters.
    outputs : list or mapping, optional
        Names of variables, of their derivatives (``x'``) and of multipliers (``lam[0]``), or functions of the state as
        for events. By default all variables.
    kind : {"cs", "me"}
        Co-Simulation, with the integrator inside, or Model Exchange, where the importing program integrates.
    version : {"2.0", "3.0"}
        Version of the FMI standard.
    params : object, optional
        Parameters that replace those of the problem. Floats among them are parameters of the FMU.
    t0 : float
        Default start time.
    method : str or method
        ``"auto"`` selects DOPRI5 for mechanisms and ODEs, and a Rosenbrock method for DAEs. ``"rosenbrock"`` suits
        stiff ODEs.
    rtol, atol : float or array
        Tolerances of the integrator of a Co-Simulation FMU.
    name : str, optional
        Name of the model; by default that of the file.
    compiler : str, optional
        Name or path of a C compiler, or ``"ziglang"`` for the compiler in the Python package of this name. By default
        the first of cc, gcc, clang and ziglang that is found.
    binary : bool
        Whether to compile; otherwise the FMU has sources only.
    correct_initial : bool
        Whether start values that violate constraints or algebraic equations are corrected instead of rejected.

    Returns
    -------
    ExportedFMU
        ``print`` shows what was written and how it was compiled.

    Raises
    ------
    InvalidProblemError
        If the problem cannot be written as C; the message gives the reason and a remedy.

    Notes
    -----
    Positions and velocities of mechanisms are projected onto the constraints in every step, to round-off at
    communication points. In Model Exchange the importing program integrates (q, v), which drift from the constraints;
    if these are violated by more than the tolerances, the FMU requests an event, projects the states and reports that
    they have changed. Inputs are constant between communication points. Integers and strings among the parameters are
    constants.

    Examples
    --------
    >>> import daedal
    >>> heater = daedal.ODE(lambda t, T, p, power: [(power - p["k"] * T[0]) / p["C"]], 1, names=["T"],
    ...     params={"k": 2.0, "C": 10.0}, inputs=["power"])
    >>> made = daedal.export_fmu(heater, "heater.fmu", initial=[20.0], binary=False)
    >>> made.inputs, made.parameters, made.outputs
    (('power',), ('k', 'C'), ('T',))
    """
    path = _checked_path(path)
    if kind not in KINDS:
        raise InvalidProblemError(f"kind={kind!r} is unknown; use 'cs' for Co-Simulation or 'me' for Model Exchange")
    if version not in VERSIONS:
        raise InvalidProblemError(f"version={version!r} is unknown; use '2.0' or '3.0'")
    t0 = check_finite(t0, "t0")
    if is_source(problem):
        source, problem = problem, problem.as_problem(initial)
        initial = source.as_initial(initial, t0, None)
    if initial is None:
        raise InvalidProblemError("initial is missing: give start values, as for daedal.solve")
    if not isinstance(problem, PROBLEMS):
        raise InvalidProblemError(
            f"export_fmu does not support problems of type {type(problem).__name__}. Remedy: state it as an "
            "ImplicitDAE, SemiExplicitDAE or MechanicalSystem"
        )
    if params is not None:
        problem = cast(Problem, problem).with_params(params)
    chosen, problem = _with_inputs(problem, inputs)
    stated = stated_outputs(outputs)
    options: dict[str, Any] = {"kind": kind, "version": version, "start_time": t0}
    if isinstance(problem, daedal.hybrid.HybridProblem):
        model = _hybrid_model(problem, initial, chosen, stated, method, rtol, atol, options)
    else:
        model = _plain_model(problem, initial, t0, chosen, stated, method, rtol, atol, options)
    # raises for initial values and tolerances that `solve` rejects
    daedal.Simulation(problem, initial, t0=t0, rtol=rtol, atol=atol, correct_initial=correct_initial)
    return _written(model, path, kind, version, name or path.stem, float(np.min(rtol)), compiler, binary)


def _checked_path(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidProblemError(f"path must be the path of a file, got {path!r}")
    found = Path(path)
    if found.suffix != ".fmu":
        raise InvalidProblemError(f"path must end in .fmu, got {str(path)!r}")
    return found


def _with_inputs(problem: Any, inputs: Any) -> tuple[list[str], Any]:
    """Names of the inputs of the FMU, and the problem with their start values."""
    known = getattr(problem, "inputs", None)
    if inputs is None:
        return (list(known) if isinstance(known, Inputs) else []), problem
    if not isinstance(known, Inputs):
        raise InvalidProblemError(
            f"inputs: the {type(problem).__name__} was defined without inputs. Remedy: name them in its definition, "
            f"as in inputs=['u'], and add u as the last argument of its functions"
        )
    names = [inputs] if isinstance(inputs, str) else list(inputs)
    for one in names:
        if one not in known:
            raise UnknownNameError(
                f"inputs: {one!r} is not an input of the problem; {near_names(one, known)}its inputs are "
                f"{', '.join(known)}"
            )
    return names, problem.with_inputs(dict(inputs)) if isinstance(inputs, Mapping) else problem


# --- problems without modes -------------------------------------------------------------------------------------------


def _plain_model(
    problem: Any,
    initial: Any,
    t0: float,
    chosen: list[str],
    outputs: Any,
    method: Any,
    rtol: Any,
    atol: Any,
    options: Any,
) -> FMUModel:
    n_stated = getattr(problem, "n", 0)
    problem, start, labels, names = integrable(problem, initial, t0)
    if outputs is None and names is not None:  # additional unknowns of a reduced problem are not shown
        outputs = [(name, None) for name in names[:n_stated]]
    tableau = tableau_of(method, problem, float(np.min(rtol)))
    mode = mode_in_c("", problem, tableau if hasattr(tableau, "gamma") else None)
    parameters, values, places = numbers_of(problem, mode, chosen, labels)
    sizes = check_tolerances(mode.code.n, *_of_size(mode.code.n, rtol, atol))
    return model_of(
        [mode],
        tableau,
        start=start,
        start_mode=0,
        names=state_names(problem) if names is None else names,
        parameters=parameters,
        values=values,
        inputs=places,
        outputs=outputs,
        rtol=sizes[0],
        atol=sizes[1],
        **options,
    )


def _of_size(n: int, rtol: Any, atol: Any) -> tuple[Any, Any]:
    """Tolerances for a state of length n; vectors may have the length of the problem before index reduction."""

    def sized(x: Any) -> Any:
        return x if np.ndim(x) == 0 or len(x) == n else float(np.min(x))

    return sized(rtol), sized(atol)


def integrable(
    problem: Any, initial: Any, t0: float, by: str = "export_fmu"
) -> tuple[Any, np.ndarray, list[str] | None, list[str] | None]:
    """The problem in a form accepted by the integrator, its start, the names of its parameters and shown variables."""
    if isinstance(problem, MechanicalSystem):
        if problem.n_w or problem.n_s or problem.force_uses_multipliers:
            raise InvalidProblemError(
                f"{by}: a mechanism whose forces depend on multipliers, or with algebraic or contact coordinates, "
                "cannot be written as code. Remedy: state it as a SemiExplicitDAE or an ImplicitDAE"
            )
        start = daedal.consistent_initial(problem, t0, _by_name(problem, initial, t0))
        return problem, np.concatenate([start.q, start.v, start.r]), None, None
    if isinstance(problem, LinearDAE):
        problem = problem.semi_explicit()
    initial = _by_name(problem, initial, t0)
    if isinstance(problem, ODE):
        y0 = initial[0] if isinstance(initial, tuple) and np.ndim(initial[0]) else initial
        return problem, check_vector(y0, problem.n, "y0", names=problem.names), None, None
    equations = required_equations(problem, f"{by} writes functions as code, so they must be traceable: a function")
    signature = StructuralSignature.of(equations)
    if signature.index <= 1 and not isinstance(problem, SecondOrderDAE):
        found = daedal.consistent_initial(problem, t0, initial)
        is_split = isinstance(problem, SemiExplicitDAE)
        return problem, np.concatenate(found) if is_split else np.asarray(found[0]), None, None
    return _reduced(problem, initial, t0, equations, signature)


def _by_name(problem: Any, initial: Any, t0: float) -> Any:
    if isinstance(initial, Mapping):
        from daedal.initial.by_name import initial_by_name

        return initial_by_name(problem, t0, initial)
    return initial


def _reduced(problem: Any, initial: Any, t0: float, equations: Any, signature: Any):
    """Reduce a problem of higher index, with a selection suitable for its start; see :func:`integrable`."""
    reduction = ReducedProblem.checked(problem, equations, signature)
    found: Any = daedal.consistent_initial(problem, t0, initial)
    y = np.concatenate(found) if isinstance(problem, SemiExplicitDAE) else np.asarray(found[0])
    yp = None if isinstance(problem, SemiExplicitDAE) else np.asarray(found[1])
    u = lift(reduction, t0, y, yp)
    sizes = np.maximum(np.abs(u), 1e-3)
    selected = reduction.selected(t0, u, sizes)
    start, slope = selected.start(t0, u, sizes)
    labels = [] if equations.layout is None else equations.layout.labels(equations.problem.params)
    fixed = _with_fixed_selection(selected, len(labels))
    return (
        _in_order_of_pivots(fixed, t0, start, slope),
        start,
        labels,
        [selected.problem.label(j) for j in range(selected.problem.n)],
    )


def _with_fixed_selection(reduction: ReducedProblem, count: int) -> ImplicitDAE:
    """The reduced problem with its selection as part of the equations: only selected unknowns have derivatives."""
    problem: Any = reduction.problem
    numbers = np.zeros(0) if problem.params is None else np.asarray(problem.params, dtype=float)
    residual = problem.residual  # `params` also contain the selection if there are several selections
    if numbers.size > count:
        residual = residual.with_constants(count, numbers[count:])
    return ImplicitDAE(residual, problem.n, params=numbers[:count] if count else None, names=problem.names)


def _in_order_of_pivots(problem: ImplicitDAE, t0: float, y: np.ndarray, yp: np.ndarray) -> ImplicitDAE:
    """The equations, ordered such that the largest entries of dF/dy + c dF/dy' at the start are on the diagonal.

    Elimination without pivoting at run time uses these as pivots.
    """
    from scipy.optimize import linear_sum_assignment

    equations = required_equations(problem, "export_fmu writes functions as C: a function")
    entries = [(i, j, k, node) for i, row in enumerate(equations.partials) for (j, k), node in row.items()]
    matrix = np.zeros((problem.n, problem.n))
    values = equations.values([node for *_, node in entries], t0, [y, yp])
    for (i, j, k, _), value in zip(entries, values, strict=True):
        matrix[i, j] += value * (_LARGE if k else 1.0)
    sizes = np.abs(matrix) / np.maximum(np.abs(matrix).max(axis=1, keepdims=True), 1e-300)
    rows, columns = linear_sum_assignment(-np.log(np.maximum(sizes, 1e-30)))
    order = rows[np.argsort(columns)]
    residual: Any = problem.residual
    return replace(problem, residual=residual.in_order(order))


def numbers_of(
    problem: Any, mode: ModeInC, chosen: Sequence[str], labels: list[str] | None
) -> tuple[list[str], np.ndarray, list[int]]:
    """Names and values of the numbers among the parameters, and the positions of the inputs."""
    tracer, params = mode.tracer, mode.problem.params
    if tracer.layout is None:
        return [], np.zeros(0), []
    values = np.asarray(tracer.layout.numbers(params), dtype=float)
    found = list(tracer.layout.labels(params)) if labels is None else list(labels)
    if len(found) < len(values) and labels is None:
        found += [f"p[{k}]" for k in range(len(found), len(values))]
    bad = [f"'{name}' is {value}" for name, value in zip(found, values, strict=True) if not np.isfinite(value)]
    if bad:
        raise InvalidProblemError(f"params: {bad[0]}, but parameters of an FMU must be finite")
    places = list[int]()
    if chosen:
        for one in chosen:
            own = [
                k for k, label in enumerate(found) if label == one or re.fullmatch(rf"{re.escape(one)}\[\d+\]", label)
            ]
            if not own:
                raise InvalidProblemError(
                    f"inputs: an FMU cannot set '{one}', whose value is a function of time or a table. Remedy: give "
                    "a number as its start value, inputs={...}"
                )
            places += own
    return found, values, places


def tableau_of(method: Any, problem: Any, rtol: float, by: str = "an FMU") -> Any:
    """The coefficients of the method, an explicit Runge-Kutta or a Rosenbrock method."""
    explicit = isinstance(problem, (MechanicalSystem, ODE))
    if isinstance(method, str) and method == "auto":
        method = "dopri5" if explicit else "rodas4" if rtol >= _SHARP else "rodas5p"
    if isinstance(method, str) and method in TABLEAUX:
        return TABLEAUX[method]
    made = named_method(method, {})
    if isinstance(made, Rosenbrock) and not isinstance(problem, MechanicalSystem):
        return TABLEAUX[made.variant]
    if isinstance(made, ExplicitRungeKutta) and explicit and made.tableau.e3 is None:
        return made.tableau
    raise InvalidProblemError(
        f"method={method!r}: {by} has the integrators 'dopri5', for mechanisms and ODEs, and 'rosenbrock', for ODEs "
        "and DAEs; use one of these, or 'auto'"
    )


# --- problems with modes ----------------------------------------------------------------------------------------------


def _hybrid_model(
    problem: Any, initial: Any, chosen: list[str], outputs: Any, method: Any, rtol: Any, atol: Any, options: Any
) -> FMUModel:
    entry = problem.entry((options["start_time"], np.inf), initial)
    if not (isinstance(entry, (tuple, list)) and len(entry) == 2 and isinstance(entry[0], str)):
        raise InvalidProblemError("initial of a HybridProblem must be (mode, values)")
    first_mode, values_at_start = entry
    if first_mode not in problem.modes:
        raise InvalidProblemError(
            f"initial: {first_mode!r} is not a mode; {near_names(first_mode, problem.modes)}the modes are "
            f"{', '.join(problem.modes)}"
        )
    modes = list[ModeInC]()
    tableau: Any = None
    for mode_name, mode in problem.modes.items():
        inner = mode.problem
        if not isinstance(inner, (MechanicalSystem, ODE)):
            raise InvalidProblemError(
                f"export_fmu: mode '{mode_name}' is a {type(inner).__name__}; only modes that are ODEs or "
                "MechanicalSystems can be exported. Remedy: state it as one of them"
            )
        tableau = tableau_of("dopri5" if method == "auto" else method, inner, float(np.min(rtol)))
        made = mode_in_c(mode_name, inner, None)
        modes.append(_with_guards(made, problem.transitions_from(mode_name)))
    sizes = {(mode.code.positions, mode.code.n_parameters, bool(mode.code.positions) or mode.code.n) for mode in modes}
    if len(sizes) > 1 or hasattr(tableau, "gamma"):
        raise InvalidProblemError(
            "export_fmu: modes must have the same variables and parameters, and an explicit method. Remedy: give all "
            "modes the same coordinates and the same params"
        )
    current = next(mode for mode in modes if mode.name == first_mode)
    _, start, _, _ = integrable(problem.modes[first_mode].problem, values_at_start, options["start_time"])
    parameters, values, places = numbers_of(current.problem, current, chosen, None)
    numbers = {mode.name: k for k, mode in enumerate(modes)}
    accumulation = []
    for mode in modes:
        found = problem.accumulation_from(mode.name)
        accumulation.append(-1 if found is None or not isinstance(found.target, str) else numbers[found.target])
    largest = max(modes, key=lambda mode: mode.code.n)
    smallest = min(modes, key=lambda mode: mode.code.n)
    n = largest.code.n
    tolerances = check_tolerances(n, *_of_size(n, rtol, atol))
    if outputs is None:  # states that exist only in some modes are not shown
        outputs = [(name, None) for name in state_names(smallest.problem)]
    return model_of(
        modes,
        tableau,
        start=np.concatenate([start, np.zeros(n - start.size)]),
        start_mode=numbers[first_mode],
        names=state_names(largest.problem),
        parameters=parameters,
        values=values,
        inputs=places,
        outputs=outputs,
        rtol=tolerances[0],
        atol=tolerances[1],
        accumulation=accumulation,
        **options,
    )


def _with_guards(mode: ModeInC, transitions: Sequence[Any]) -> ModeInC:
    """The guards of a mode as functions that fire when they become negative."""
    graph = mode.tracer.graph
    guards, immediate, owners = list[int](), list[bool](), list[Any]()
    for transition in transitions:
        if not callable(transition.guard):
            continue
        with mode.tracer.lock:
            nodes = function_nodes(mode, transition.guard, f"the guard of transition '{transition.name}'")
            directions = np.broadcast_to(np.atleast_1d(transition.direction), (len(nodes),))
            for node, direction in zip(nodes, directions, strict=True):
                signed = [node] if direction < 0 else [graph.negative(node)] if direction > 0 else []
                both = signed or [node, graph.negative(node)]
                guards += both
                immediate += [bool(transition.immediate) and direction != 0] * len(both)
                owners += [transition] * len(both)
    return ModeInC(mode.name, mode.traced, mode.code, mode.rates, guards, immediate, owners)


# --- the file ---------------------------------------------------------------------------------------------------------


def _written(
    model: FMUModel, path: Path, kind: str, version: str, name: str, rtol: float, compiler: str | None, binary: bool
) -> ExportedFMU:
    identifier = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    identifier = identifier if identifier[:1].isalpha() else f"model_{identifier}"
    token = token_of("\n".join([model.source, name, kind, version, *model.states, *model.parameters, *model.shown]))
    source = f'#define MODEL_TOKEN "{token}"\n{model.source}'
    variables = variables_of(model, version)
    text = description(
        model,
        variables,
        name=name,
        token=token,
        kind=kind,
        version=version,
        identifier=identifier,
        tool=f"Daedal {daedal.__version__}",
        tolerance=repr(rtol),
    )
    found = found_compiler(compiler) if binary else None
    folder, ending = folder_of_platform(version)
    entries: dict[str, bytes] = {"modelDescription.xml": text.encode(), f"sources/{identifier}.c": source.encode()}
    if version == "3.0":
        entries["sources/buildDescription.xml"] = build_description(identifier).encode()
    if found is not None:
        entries[f"binaries/{folder}/{identifier}{ending}"] = compiled(found, source, identifier, ending)
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry, content in sorted(entries.items()):
                info = zipfile.ZipInfo(entry, _DATE)
                info.external_attr = 0o644 << 16
                archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    except OSError as error:
        raise DaedalError(f"export_fmu: {path} cannot be written: {error}") from error
    kinds = {"cs": "Co-Simulation", "me": "Model Exchange"}
    if found is not None:
        how = f"sources, and a binary for {folder} compiled by {found.name}"
    elif binary:
        how = "sources only, since no C compiler was found (install cc, gcc or clang, or: pip install ziglang)"
    else:
        how = "sources only"
    message = f"{path}: FMI {version} {kinds[kind]}, {how}"
    if kind == "me" and model.constrained:
        message += "; the FMU projects states that have drifted from the constraints, at events that it requests"
    by_cause = {
        cause: tuple(variable.name for variable in variables if variable.causality == cause and variable.kind == "Real")
        for cause in ("parameter", "input", "output")
    }
    return ExportedFMU(
        path,
        kind,
        version,
        tuple(variable.name for variable in variables[1 : 1 + len(model.states)]),
        by_cause["parameter"],
        by_cause["input"],
        by_cause["output"],
        None if found is None else found.name,
        None if found is None else folder,
        message,
    )
