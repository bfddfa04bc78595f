"""C sources of an FMU: its variables, and the functions that it computes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

from daedal.ensembles.gpu_model import EventsInC, integrator_source
from daedal.errors import InvalidProblemError, UnknownNameError, near_names
from daedal.events.event import Event, standard_functions
from daedal.hybrid.hybrid_problem import Decision, Transition
from daedal.problems import MechanicalSystem
from daedal.symbolic import Untraceable, trace
from daedal.symbolic.cuda import c_function, c_number
from daedal.symbolic.derivative import Row, jacobian
from daedal.symbolic.elimination import StructurallySingular, matching, solve, weak_pivot
from daedal.symbolic.graph_functions import inlined
from daedal.symbolic.machine import BAD_PIVOT, RAISES
from daedal.symbolic.mechanism_dynamics import WORST_PIVOT
from daedal.symbolic.switches import switches
from daedal.symbolic.tracing.in_c import ProblemInC, Rates, parameter_nodes, problem_in_c, rates_of
from daedal.symbolic.tracing.problem import traced_problem
from daedal.symbolic.tracing.switching_functions import code_of, switching_nodes
from daedal.symbolic.tracing.tracer import TracedProblem

MOST_OPERATIONS = 60_000
"""Largest number of operations of the partial derivatives for which an FMU has directional derivatives."""
_EMITTED = ("slopes", "correct_positions", "correct_velocities", "rosenbrock_step", "correct_algebraic")


@dataclass(frozen=True)
class ModeInC:
    """One mode of a model: its equations as nodes and as C."""

    name: str
    traced: TracedProblem
    code: ProblemInC
    rates: Rates
    guards: list[int] = field(default_factory=list)
    immediate: list[bool] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)  # transition of each guard

    @property
    def problem(self) -> Any:
        return self.traced.problem

    @property
    def tracer(self) -> Any:
        return code_of(self.problem).tracer


@dataclass(frozen=True)
class FMUModel:
    """The contents of an FMU.

    Attributes
    ----------
    states : list of str
        Names of the state.
    integrated : list of int
        Entries of the state that have derivatives.
    start : numpy.ndarray
        Start values of the state.
    parameters : list of str
        Names of parameters and inputs, in the order of the vector p.
    values : numpy.ndarray
        Values of `parameters`.
    inputs : list of int
        Indices of the inputs in `parameters`.
    outputs : list of str
        Names of the outputs that are computed from the state.
    shown : list of str
        Names of all outputs; those that are not among `outputs` are entries of the state.
    n_indicators : int
        Number of event indicators.
    modes : list of str
        Names of the modes; one for a problem without modes.
    constrained, algebraic, partials : bool
        Whether start values are projected; whether there are algebraic variables; whether partial derivatives exist.
    source : str
        The text of the model and its integrator.
    """

    states: list[str]
    integrated: list[int]
    start: np.ndarray
    parameters: list[str]
    values: np.ndarray
    inputs: list[int]
    outputs: list[str]
    shown: list[str]
    n_indicators: int
    modes: list[str]
    start_mode: int
    start_time: float
    constrained: bool
    algebraic: bool
    partials: bool
    source: str = field(repr=False)


# --- one mode ---------------------------------------------------------------------------------------------------------


def mode_in_c(name: str, problem: Any, tableau: Any, by: str = "export_fmu") -> ModeInC:
    """Write the equations of a problem as C; raise an error with a remedy if functions cannot be traced."""
    try:
        traced = traced_problem(problem, "always") or TracedProblem(problem, None)
        code = problem_in_c(traced, tableau)
        with code_of(traced.problem).tracer.lock:
            return ModeInC(name, traced, code, rates_of(traced))
    except Untraceable as reason:
        remedy = f". Remedy: {reason.remedy}" if reason.remedy else ""
        raise InvalidProblemError(f"{by}: the problem {reason.reason}{remedy}") from reason
    except StructurallySingular as reason:
        raise InvalidProblemError(
            f"{by}: the equations do not determine the derivatives and algebraic variables with pivots that are "
            "known in advance. Remedy: pass daedal.reduce_index(problem).problem, or state them as y' = f, 0 = g"
        ) from reason
    except InvalidProblemError as error:
        if "cannot be traced" not in str(error):
            raise
        raise InvalidProblemError(
            f"{by} writes functions as code, so they must be traceable. {error}. Remedy: write them with operators, "
            "numpy and math functions alone; problem.functions lists which are traced"
        ) from error


def function_nodes(mode: ModeInC, function: Callable[..., Any], what: str, by: str = "export_fmu") -> list[int]:
    """Evaluate a function of the state on the graph of a mode, with y' replaced by its expression; the caller holds the
    lock."""
    [standard] = standard_functions(Event(function), mode.problem, [what])
    try:
        nodes, _, _ = switching_nodes(mode.tracer, mode.problem, [standard])
    except Untraceable as reason:
        raise InvalidProblemError(
            f"{by}: {what} {reason.reason}. Remedy: write it with operators, numpy and math functions alone"
        ) from reason
    return _without_rates(mode, nodes, what, by)


def _without_rates(mode: ModeInC, nodes: Sequence[int], what: str, by: str = "export_fmu") -> list[int]:
    graph = mode.tracer.graph
    places = {j: k for k, j in enumerate(mode.rates.integrated)}
    there: dict[tuple[str, int], int] = {}
    for i in graph.needed(nodes):
        if graph.operations[i] == "argument":
            there[graph.data[i]] = i
            name, j = graph.data[i]
            if name in ("yp", "xp") and not isinstance(mode.problem, MechanicalSystem):
                if j not in places:
                    raise InvalidProblemError(
                        f"{by}: {what} depends on the derivative of an algebraic variable. Remedy: state it "
                        "without this derivative"
                    )
                there[graph.data[i]] = mode.rates.nodes[places[j]]
    return inlined(graph, nodes, graph, there)


def flat_reset(reset: Callable[..., Any], is_mechanism: bool) -> Callable[..., Any]:
    """Wrap a reset so that it returns the state as one vector."""

    def values(*arguments):
        found = reset(*arguments)
        if is_mechanism:
            return np.concatenate([np.asarray(part) for part in found])
        parts = found[0] if isinstance(found, tuple) else found
        return np.asarray(parts)

    return values


def traced_at_state(mode: ModeInC, function: Callable[..., Any], is_reset: bool, what: str) -> tuple[list[int], int]:
    """Trace a reset or a decision on the graph of a mode; return its nodes and the condition under which it raises."""
    [(standard, count)] = standard_functions(Event(function), mode.problem, [what])
    tracer = mode.tracer
    names = ("q", "v") if isinstance(mode.problem, MechanicalSystem) else tuple(tracer.sizes)[:2]
    symbols = [tracer.symbols(name) for name in names[: min(count, 3) - 1]]
    made = flat_reset(standard, isinstance(mode.problem, MechanicalSystem)) if is_reset else standard
    try:
        if count == 4:
            found = tracer.trace(made, symbols, None)
        else:
            found = trace(made, [tracer.t, *symbols], None)
    except Untraceable as reason:
        raise InvalidProblemError(
            f"export_fmu: {what} {reason.reason}. Remedy: write it with operators, numpy and math functions alone"
        ) from reason
    return _without_rates(mode, found.nodes, what), found.raises


# --- names ------------------------------------------------------------------------------------------------------------


def state_names(problem: Any) -> list[str]:
    """Names of the entries of the state."""
    if isinstance(problem, MechanicalSystem):
        q = [problem.label(j) for j in range(problem.n_q)]
        return [*q, *(f"{name}'" for name in q), *(f"r[{k}]" for k in range(problem.n_r))]
    return [problem.label(j) for j in range(problem.n)]


def named_nodes(mode: ModeInC) -> dict[str, int]:
    """Names accepted as outputs, with their nodes."""
    rates, names = mode.rates, state_names(mode.problem)
    found = dict(zip(names, rates.state, strict=True))
    for place, node in zip(rates.integrated, rates.nodes, strict=True):
        found.setdefault(f"{names[place]}'", node)
    for k, node in enumerate(rates.multipliers):
        found.setdefault(f"lam[{k}]", node)
    return found


def output_nodes(mode: ModeInC, outputs: Sequence[tuple[str, Any]]) -> tuple[list[str], list[int]]:
    """Names and nodes of the outputs, with one for each entry of a function."""
    known = named_nodes(mode)
    names, nodes = list[str](), list[int]()
    for name, output in outputs:
        if output is None:
            if name not in known:
                raise UnknownNameError(
                    f"outputs: {name!r} is not a variable of the problem; {near_names(name, known)}its variables are "
                    f"{', '.join(known)}. Other quantities can be given as functions of the state"
                )
            names.append(name)
            nodes.append(known[name])
            continue
        found = function_nodes(mode, output, f"output '{name}'")
        names += [name] if len(found) == 1 else [f"{name}[{k}]" for k in range(len(found))]
        nodes += found
    return names, nodes


def stated_outputs(outputs: Any) -> list[tuple[str, Any]] | None:
    """Outputs as (name, function) pairs; None if the outputs are the variables."""
    if outputs is None:
        return None
    if isinstance(outputs, str) or callable(outputs):
        outputs = [outputs]
    if isinstance(outputs, Mapping):
        return [(name, value if callable(value) else None) for name, value in outputs.items()]
    stated = list[tuple[str, Any]]()
    for k, output in enumerate(outputs):
        if callable(output):
            own = getattr(output, "__name__", "<lambda>")
            stated.append((f"y{k}" if own == "<lambda>" else own, output))
        elif isinstance(output, str):
            stated.append((output, None))
        else:
            raise InvalidProblemError(f"outputs must be names of variables or functions of the state, got {output!r}")
    return stated


# --- the text ---------------------------------------------------------------------------------------------------------


class _ModeWriter:
    """Functions of (t, y, p) in C, one for each mode, and a function that dispatches to the current mode."""

    def __init__(self, modes: Sequence[ModeInC]):
        self.modes, self.texts = modes, list[str]()

    def function(self, name: str, k: int, nodes: Sequence[int], raises: int, pivots=(), *, suffix: str = "") -> str:
        mode = self.modes[k]
        graph, tracer = mode.tracer.graph, mode.tracer
        arguments = {"y": mode.rates.state, "p": parameter_nodes(tracer)}
        statuses = [(raises, RAISES), (weak_pivot(graph, pivots, WORST_PIVOT), BAD_PIVOT)]
        made = f"{name}{suffix or f'_{k}'}"
        self.texts.append(c_function(graph, made, arguments, {"result": nodes}, statuses, tracer.t.node))
        return made

    def dispatched(self, name: str) -> str:
        """The C function ``name``, which calls its version for the current mode, stored in p[P]."""
        last = len(self.modes) - 1
        cases = " ".join(f"case {k}: return {name}_{k}(t, y, p, result);" for k in range(last))
        zeros = "  for (int i = 0; i < K; i++) result[i] = 0;\n" if name == "slopes" and last else ""
        choice = f"{zeros}  switch ((int)p[P]) {{ {cases} }}\n" if cases else ""
        return (
            f"FUNCTION int {name}(real t, const real* y, const real* p, real* result) {{\n"
            f"{choice}  return {name}_{last}(t, y, p, result);\n}}"
        )


def _numbered(text: str, k: int) -> str:
    """Append the number of a mode to the names of its functions."""
    return re.sub(rf"\b({'|'.join(_EMITTED)})(?=\(|_table_)", rf"\1_{k}", text)


def model_of(
    modes: list[ModeInC],
    tableau: Any,
    *,
    start: np.ndarray,
    start_mode: int,
    start_time: float,
    names: Sequence[str],
    parameters: Sequence[str],
    values: np.ndarray,
    inputs: Sequence[int],
    outputs: list[tuple[str, Any]] | None,
    rtol: np.ndarray,
    atol: np.ndarray,
    accumulation: Sequence[int] = (),
    kind: str,
    version: str,
) -> FMUModel:
    """Write modes with states of the same length as one model in C."""
    writer, first = _ModeWriter(modes), modes[0]
    n, count = max(mode.code.n for mode in modes), first.code.n_parameters
    stated = [(name, None) for name in names[:n]] if outputs is None else outputs
    computed = [(name, output) for name, output in stated if output is not None or name not in names]
    output_names = list[str]()
    is_hybrid = len(modes) > 1 or bool(first.guards)
    indicators = list[list[int]]()
    has_partials, parts = all(mode.code.n == n for mode in modes), list[str]()
    for k, mode in enumerate(modes):
        with mode.tracer.lock:
            graph, rates = mode.tracer.graph, mode.rates
            graph.most_nodes = max(graph.most_nodes, len(graph) + 10 * MOST_OPERATIONS)
            output_names, of_outputs = output_nodes(mode, computed)
            padding = [graph.zero] * (n - mode.code.n)  # states that a mode does not have are unchanged
            writer.function("rates", k, [*rates.nodes, *padding], rates.raises, rates.pivots)
            writer.function("model_outputs", k, of_outputs, graph.false)
            if is_hybrid:
                indicators.append(mode.guards)
            else:
                indicators.append(_hidden_switches(graph, rates))
            if has_partials:
                nodes = _partials(mode, of_outputs, inputs)
                has_partials = nodes is not None
                if nodes is not None:
                    writer.function("partials", k, nodes, rates.raises, rates.pivots)
    shown = [name for name, output in stated if output is None and name in names] + output_names
    if len(set(shown)) < len(shown):
        raise InvalidProblemError("outputs contains a name twice; use distinct names")
    m = max(map(len, indicators))
    for k, mode in enumerate(modes):
        graph = mode.tracer.graph
        nodes = [*indicators[k], *[graph.one] * (m - len(indicators[k]))]
        if m:
            writer.function("switching_functions", k, nodes, graph.false)
    texts = [_numbered(mode.code.text, k) for k, mode in enumerate(modes)]
    emitted = [name for name in _EMITTED if any(f"int {name}(" in mode.code.text for mode in modes)]
    for k, mode in enumerate(modes):
        for name in emitted:
            if f"int {name}(" not in mode.code.text:  # a mode without constraints has nothing to correct
                texts.append(
                    f"EMITTED int {name}_{k}(real t, const real* y, const real* p, real* result) {{\n"
                    "  (void)t, (void)y, (void)p;\n"
                    f"  for (int i = 0; i < {mode.code.positions}; i++) result[i] = 0;\n  return 0;\n}}"
                )
    for name in emitted:
        if name == "rosenbrock_step":
            texts.append("#define rosenbrock_step rosenbrock_step_0")
        else:
            texts.append(writer.dispatched(name))
    parts += [writer.dispatched(name) for name in ("rates", "model_outputs")]
    if has_partials:
        parts.append(writer.dispatched("partials"))
    switching = ""
    if m:
        switching = writer.dispatched("switching_functions")
    parts += _transitions(writer, modes, n)
    constrained = any(mode.code.constraints + mode.code.velocity_constraints for mode in modes)
    merged = ProblemInC(
        "\n".join([*writer.texts, *texts]),
        n,
        count,
        positions=first.code.positions,
        constraints=max(mode.code.constraints for mode in modes),
        velocity_constraints=max(mode.code.velocity_constraints for mode in modes),
        length=first.code.length,
        algebraic=first.code.algebraic,
        operations=first.code.operations,
    )
    directions = tuple([-1] * m if is_hybrid else [0] * m)
    events = EventsInC(switching, tuple(f"indicator {k}" for k in range(m)), directions, (1,) * m)
    layer = "fmi2" if version == "2.0" else "fmi3"
    integrated = list(first.rates.integrated) if len(modes) == 1 else list(range(n))
    tables = _tables(modes, m, integrated, inputs, start, values, rtol, atol, accumulation)
    macros = {
        "N_STATES": len(integrated),
        "N_OUTPUTS": len(output_names),
        "N_INPUTS": len(inputs),
        "N_MODES": len(modes) if is_hybrid else 1,
        "PARTIALS": int(has_partials),
        "ME_PROJECTS": int(constrained),
        "IS_COSIMULATION": int(kind == "cs"),
        "START_TIME": c_number(start_time),
        "START_MODE": start_mode,
        "NEGLIGIBLE": c_number(max(1e-9, float(np.sqrt(1e-3 * rtol.min())))),
    }
    if is_hybrid and len(modes) == 1:
        macros["N_MODES"] = 2  # one mode with transitions into itself
    driver = "\n".join(
        [
            *(f"#define {name} {value}" for name, value in macros.items()),
            *tables,
            *parts,
            template("fmu_core"),
            template(layer),
        ]
    )
    text = integrator_source(merged, tableau, events, driver=driver)
    return FMUModel(
        states=list(names),
        integrated=integrated,
        start=start,
        parameters=list(parameters),
        values=values,
        inputs=list(inputs),
        outputs=output_names,
        shown=shown,
        n_indicators=m,
        modes=[mode.name for mode in modes] if is_hybrid else [],
        start_mode=start_mode,
        start_time=start_time,
        constrained=bool(constrained),
        algebraic=bool(first.rates.algebraic[0]),
        partials=has_partials,
        source=text,
    )


def template(name: str) -> str:
    """A text of the folder templates."""
    return (files("daedal.exchange") / "templates" / f"{name}.c").read_text(encoding="utf-8")


def _array(kind: str, name: str, values: Sequence[Any]) -> str:
    texts = [c_number(float(x)) if kind == "real" else str(int(x)) for x in values] or ["0"]
    return f"static const {kind} {name}[{len(texts)}] = {{{', '.join(texts)}}};"


def _tables(modes, m, integrated, inputs, start, values, rtol, atol, accumulation) -> list[str]:
    immediate = [[*mode.immediate, *[False] * (m - len(mode.immediate))] or [False] for mode in modes]
    rows = ", ".join("{" + ", ".join(str(int(x)) for x in row) + "}" for row in immediate)
    return [
        _array("int", "STATES", integrated),
        _array("int", "INPUTS", inputs),
        _array("int", "GUARDS", [len(mode.guards) for mode in modes]),
        f"static const int IMMEDIATE[{len(modes)}][{max(m, 1)}] = {{{rows}}};",
        _array("int", "ACCUMULATION", accumulation or [-1] * len(modes)),
        _array("real", "START_VALUES", start),
        _array("real", "PARAMETER_VALUES", values),
        _array("real", "RTOL", rtol),
        _array("real", "ATOL", atol),
    ]


def _hidden_switches(graph: Any, rates: Rates) -> list[int]:
    """Functions at whose zeros the derivatives have a kink or a jump."""
    found = list[int]()
    for switch in switches(graph, [*rates.nodes, *rates.algebraic[1]]):
        for point in switch.points:
            found.append(graph.subtract(switch.function, graph.constant(point)) if point else switch.function)
    return list(dict.fromkeys(found))


def _partials(mode: ModeInC, outputs: Sequence[int], inputs: Sequence[int]) -> list[int] | None:
    """The derivatives of rates, state and outputs with respect to states and inputs, row by row; None if they need too
    much code."""
    graph, rates = mode.tracer.graph, mode.rates
    known = [rates.state[j] for j in rates.integrated] + [parameter_nodes(mode.tracer)[k] for k in inputs]
    rows = [*rates.nodes, *rates.state, *outputs]
    algebraic, equations = rates.algebraic
    try:
        by_known = jacobian(graph, [*rows, *equations], known)
        changes: list[list[int]] = []
        by_algebraic: list[Row] = []
        if algebraic:
            variables = [rates.state[j] for j in algebraic]
            matrix = jacobian(graph, equations, variables)
            order = matching(matrix)
            by_algebraic = jacobian(graph, rows, variables)
            constraint_rows = by_known[len(rows) :]
            rights = [[graph.negative(constraint_rows[i].get(k, graph.zero)) for i in order] for k in range(len(known))]
            changes = solve(graph, [matrix[i] for i in order], rights).solutions
        nodes = list[int]()
        for i in range(len(rows)):
            for k in range(len(known)):
                total = by_known[i].get(k, graph.zero)
                for j, x in by_algebraic[i].items() if algebraic else ():
                    total = graph.add(total, graph.multiply(x, changes[k][j]))
                nodes.append(total)
    except (Untraceable, StructurallySingular):
        return None
    return nodes if graph.count(nodes) <= MOST_OPERATIONS else None


def _transitions(writer: _ModeWriter, modes: Sequence[ModeInC], n: int) -> list[str]:
    """reset_map and next_mode for all modes and guards."""
    if not any(mode.guards for mode in modes):
        return []
    numbers = {mode.name: k for k, mode in enumerate(modes)}
    resets, targets = list[str](), list[str]()
    before = len(writer.texts)
    for k, mode in enumerate(modes):
        of_guard, of_target = list[str](), list[str]()
        for g, transition in enumerate(mode.transitions):
            what = f"transition '{transition.name}'"
            with mode.tracer.lock:
                target = transition.target
                if isinstance(target, Decision):
                    nodes, raises = traced_at_state(mode, target.number, False, f"the target of {what}")
                    made = writer.function("target", k, nodes, raises, suffix=f"_{k}_{g}")
                    chosen = ", ".join(str(numbers.get(name, -1)) for name in target.modes)
                    of_target.append(
                        f"case {g}: {{ const int places[] = {{{chosen}}}; real x; "
                        f"if ({made}(t, y, p, &x) != 0 || !(x >= 0 && x < {len(target.modes)})) return -1; "
                        "return places[(int)x]; }"
                    )
                elif isinstance(target, str):
                    of_target.append(f"case {g}: return {numbers[target]};")
                else:
                    what_it_is = "ends the run" if target is None else "names its target by a function"
                    raise InvalidProblemError(
                        f"export_fmu: {what} {what_it_is}, which an FMU cannot do. Remedy: use the name of a mode as "
                        "its target"
                    )
                reset = transition.reset
                if isinstance(reset, Mapping):
                    reset = reset.get(target) if isinstance(target, str) else None
                if reset is not None:
                    nodes, raises = traced_at_state(mode, reset, True, f"the reset of {what}")
                    if not min(other.code.n for other in modes) <= len(nodes) <= n:
                        raise InvalidProblemError(
                            f"export_fmu: the reset of {what} returns {len(nodes)} values, but the state has {n}"
                        )
                    padding = [mode.tracer.graph.zero] * (n - len(nodes))
                    made = writer.function("reset", k, [*nodes, *padding], raises, suffix=f"_{k}_{g}")
                    of_guard.append(f"case {g}: return {made}(t, y, p, result);")
        resets.append(f"case {k}: switch (guard) {{ {' '.join(of_guard)} }} break;")
        targets.append(f"case {k}: switch (guard) {{ {' '.join(of_target)} }} break;")
    made_here = writer.texts[before:]
    del writer.texts[before:]
    return [
        *made_here,
        "static int reset_map(int mode, int guard, real t, const real* y, const real* p, real* result) {\n"
        f"  switch (mode) {{ {' '.join(resets)} }}\n  (void)t, (void)y, (void)p, (void)result;\n  return 0;\n}}",
        "static int next_mode(int mode, int guard, real t, const real* y, const real* p) {\n"
        f"  switch (mode) {{ {' '.join(targets)} }}\n  (void)t, (void)y, (void)p;\n  return -1;\n}}",
    ]


def token_of(text: str) -> str:
    """The GUID of a model: a digest of its description and sources."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{{{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}}}"
