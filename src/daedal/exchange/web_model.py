"""JavaScript of a live page: the model and its integrator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from daedal.ensembles.gpu_model import integrator_source
from daedal.errors import InvalidProblemError, UnknownNameError, near_names
from daedal.exchange.fmu_export import PROBLEMS, integrable, numbers_of, tableau_of
from daedal.exchange.fmu_model import ModeInC, function_nodes, mode_in_c, state_names, stated_outputs
from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_tolerances
from daedal.problems.named_inputs import Inputs
from daedal.problems.symbols import Driven
from daedal.symbolic import Graph, Untraceable, trace
from daedal.symbolic.arrays import array_of
from daedal.symbolic.cuda import c_function
from daedal.symbolic.derivative import jacobian
from daedal.symbolic.expression import Expression
from daedal.symbolic.javascript import LIBRARY, javascript
from daedal.symbolic.kinds import FLOAT
from daedal.symbolic.tracing.in_c import parameter_nodes
from daedal.symbolic.tracing.parameters import is_internal

_OF_TOLERANCE = 1e-3  # fraction of the tolerance by which the constraints may be violated within a run


@dataclass(frozen=True)
class WebModel:
    """A problem with its integrator as JavaScript.

    Attributes
    ----------
    script : str
        The function ``daedalModel()``, which returns the integrator.
    states : list of str
        Names of the state.
    shown : int
        Number of states of the original problem.
    start : numpy.ndarray
        Consistent start values.
    parameters : list of str
        Names of the parameters.
    values : numpy.ndarray
        Values of `parameters`.
    positions : int
        Number of positions of a mechanism; 0 for other problems.
    integrated : list of int
        States that may be set at the start: those with derivatives.
    residuals : int
        Number of residuals shown in the page.
    constraints : int
        Number of position constraints among these residuals; the remaining ones are velocity constraints.
    series : list of str
        Names of additional displayed quantities.
    points : list of int
        Moving points of the drawing.
    rtol, atol : numpy.ndarray
    method : str
        Name of the method.
    """

    script: str
    states: list[str]
    shown: int
    start: np.ndarray
    parameters: list[str]
    values: np.ndarray
    positions: int
    integrated: list[int]
    residuals: int
    constraints: int
    series: list[str]
    points: list[int]
    rtol: np.ndarray
    atol: np.ndarray
    method: str

    @property
    def data(self) -> dict[str, Any]:
        """Data for the script of the page."""
        return {
            **{"states": self.states, "shown": self.shown, "start": self.start.tolist(), "series": self.series},
            **{"params": self.values.tolist(), "positions": self.positions, "residuals": self.residuals},
            "constraints": self.constraints,
            **{"rtol": self.rtol.tolist(), "atol": self.atol.tolist(), "moving": self.points},
            "negligible": max(1e-9, float(np.sqrt(_OF_TOLERANCE * self.rtol.min()))),
        }


def web_model(
    problem: Any,
    t0: float,
    initial: Any,
    *,
    outputs: Any = None,
    drawing: Any = None,
    method: Any = "auto",
    rtol: Any = 1e-6,
    atol: Any = 1e-9,
    labels: Mapping[str, str] | None = None,
) -> WebModel:
    """Translate a problem and its integrator to JavaScript.

    Parameters
    ----------
    problem : object
        A problem whose functions can be traced, or of higher index, which is then reduced.
    t0 : float
    initial : object
        As for :func:`daedal.solve`.
    outputs : optional
        Further quantities, as for :func:`daedal.export_fmu`.
    drawing : daedal.viz.Drawing, optional
    method, rtol, atol
        Method and tolerances.
    labels : mapping, optional
        Other names of parameters.

    Raises
    ------
    InvalidProblemError
        If a page cannot solve the problem; the message gives the reason and a remedy.
    """
    check_problem(problem)
    n_stated = getattr(problem, "n", 0)
    problem, start, own, names = integrable(problem, initial, t0, "studio")
    tableau = tableau_of(method, problem, float(np.min(rtol)), "a live page")
    try:
        mode = mode_in_c("", problem, tableau if hasattr(tableau, "gamma") else None, "studio")
    except InvalidProblemError as error:
        if "Remedy" in str(error):
            raise
        raise InvalidProblemError(
            f"{error}. Remedy: solve it with daedal.solve, and show the solution with sol.animate or sol.plot"
        ) from error
    parameters, values, _ = numbers_of(problem, mode, (), own)
    parameters = [(labels or {}).get(name, name) for name in parameters]
    sizes = check_tolerances(mode.code.n, rtol, atol)
    states = state_names(problem) if names is None else names
    with mode.tracer.lock:
        residuals = residual_nodes(mode)
        series = _series(mode, outputs)
        moving, drawn = _drawn(mode, drawing)
        nodes = [*residuals, *series.values(), *drawn]
        text = _observed(mode, nodes)
    source = integrator_source(mode.code, tableau, outputs=True, driver=text)
    members = "begin, advance, project, observe, new_Setting, new_Member, RUNNING"
    try:
        script = f"function daedalModel() {{\n{LIBRARY}{javascript(source)}return {{ {members} }};\n}}"
    except Untraceable as reason:
        raise InvalidProblemError(
            f"studio: the problem {reason.reason}. Remedy: write it with other functions, or animate the solution "
            "with sol.animate(path)"
        ) from reason
    return WebModel(
        script,
        states,
        states_shown(problem, n_stated, names),
        start,
        parameters,
        values,
        mode.code.positions,
        mode.rates.integrated,
        len(residuals),
        mode.code.constraints,
        list(series),
        moving,
        *sizes,
        f"{'a Rosenbrock' if hasattr(tableau, 'gamma') else 'an explicit Runge-Kutta'} method of order {tableau.order}",
    )


def check_problem(problem: Any) -> None:
    """Raise an error for problems with modes and transitions, and for objects that are not problems."""
    if not isinstance(problem, PROBLEMS):
        raise InvalidProblemError(
            f"studio does not support problems of type {type(problem).__name__}. Remedy: state it as an "
            "ImplicitDAE, SemiExplicitDAE or MechanicalSystem"
        )
    if isinstance(problem, HybridProblem):
        raise InvalidProblemError(
            "studio: problems with modes and transitions are not solved in a page. Remedy: pass one mode, "
            "problem.modes['name'].problem, or animate the solution with sol.animate(path)"
        )


def states_shown(problem: Any, n_stated: int, names: list[str] | None) -> int:
    """Number of states of the original problem."""
    if names is not None:
        return min(n_stated, len(names))
    return 2 * problem.n_q + problem.n_r if isinstance(problem, MechanicalSystem) else problem.n


def _observed(mode: ModeInC, nodes: list[int]) -> str:
    arguments = {"y": mode.rates.state, "p": parameter_nodes(mode.tracer)}
    return c_function(mode.tracer.graph, "observe", arguments, {"result": nodes}, (), mode.tracer.t.node)


# --- what is shown ----------------------------------------------------------------------------------------------------


def residual_nodes(mode: ModeInC) -> list[int]:
    """Residuals of the constraints of a mechanism and of their time derivatives, G v + g_t; or of the equations
    without derivatives."""
    graph, traces = mode.tracer.graph, mode.tracer.traces
    if not isinstance(mode.problem, MechanicalSystem):
        return list(mode.rates.algebraic[1])
    found = list[int]()
    n, state = mode.problem.n_q, mode.rates.state
    if "constraint" in traces:
        g = list(traces["constraint"].nodes)
        found += g
        for row in jacobian(graph, g, [*state[:n], mode.tracer.t.node]):
            found.append(_sum(graph, [graph.multiply(x, state[n + j]) if j < n else x for j, x in row.items()]))
    if "velocity_constraint" in traces:
        found += traces["velocity_constraint"].nodes
    return found


def _series(mode: ModeInC, outputs: Any) -> dict[str, int]:
    """The kinetic energy of a mechanism, and the user-defined outputs."""
    found = dict[str, int]()
    kinetic = _kinetic_energy(mode)
    if kinetic is not None:
        found["kinetic energy"] = kinetic
    for name, output in stated_outputs(outputs) or ():
        if output is None:
            raise InvalidProblemError(
                f"outputs: {name!r} has no function. Remedy: pass functions of the state, as in "
                "outputs={'energy': lambda t, q, v: ...}; variables are always shown"
            )
        nodes = function_nodes(mode, output, f"output '{name}'", "studio")
        found |= {name if len(nodes) == 1 else f"{name}[{k}]": node for k, node in enumerate(nodes)}
    return found


def _kinetic_energy(mode: ModeInC) -> int | None:
    """v^T M v / 2."""
    problem, graph = mode.problem, mode.tracer.graph
    if not isinstance(problem, MechanicalSystem):
        return None
    n = problem.n_q
    v = mode.rates.state[n : 2 * n]
    if "mass" in mode.tracer.traces:
        mass = mode.tracer.traces["mass"].array
    elif isinstance(problem.mass, np.ndarray):
        mass = np.vectorize(lambda x: graph.constant(float(x)), otypes=[np.int64])(problem.mass)
    else:
        return None
    if mass.ndim == 1:
        terms = [graph.multiply(mass[i], graph.multiply(v[i], v[i])) for i in range(n)]
    else:
        terms = [graph.multiply(mass[i, j], graph.multiply(v[i], v[j])) for i in range(n) for j in range(n)]
    return graph.multiply(graph.constant(0.5), _sum(graph, [int(x) for x in terms]))


def _sum(graph: Graph, nodes: list[int]) -> int:
    return reduce(graph.add, nodes, graph.zero)


def _drawn(mode: ModeInC, drawing: Any) -> tuple[list[int], list[int]]:
    """Moving points of a drawing, and nodes: the coordinates x and y of these points, then the angles of wheels."""
    if drawing is None:
        return [], []
    graph, moving, nodes = mode.tracer.graph, list[int](), list[int]()
    for k, (name, place) in enumerate(drawing.points.items()):
        if callable(place):
            moving.append(k)
            nodes += _place(mode, place, 2, f"points[{name!r}]")
    for name, _, angle in drawing.wheels:
        nodes += [graph.zero] if angle is None else _place(mode, angle, 1, f"the angle of wheel {name!r}")
    return moving, nodes


def _place(mode: ModeInC, function: Callable[..., Any], size: int, what: str) -> list[int]:
    """Trace a function of a drawing, with the arguments q, (t, q) or (t, q, p)."""
    from daedal.viz.drawing import required_arguments

    tracer, problem = mode.tracer, mode.problem
    state = mode.rates.state[: problem.n_q] if isinstance(problem, MechanicalSystem) else mode.rates.state
    q = array_of([Expression(tracer.graph, node, FLOAT) for node in state])
    count = required_arguments(function)
    try:
        if count == 3:
            driven = isinstance(problem.params, Driven)  # drawings do not depend on inputs
            made = tracer.trace((lambda t, q, p: function(t, q, p.given)) if driven else function, [q], None)
        else:
            made = trace(function, [tracer.t, q] if count == 2 else [q], None)
    except Untraceable as reason:
        raise InvalidProblemError(
            f"studio: {what} of the drawing {reason.reason}. Remedy: write it with operators, numpy and math functions "
            "alone, or pass drawing=None"
        ) from reason
    if len(made.nodes) != size:
        raise InvalidProblemError(f"studio: {what} of the drawing returns {len(made.nodes)} values, expected {size}")
    return list(made.nodes)


def ranges(model: WebModel, rows: np.ndarray, chosen: Any) -> list[dict[str, Any]]:
    """Sliders of parameters, around their values, and of start values, over the range of the motion `rows`."""
    found = list[dict[str, Any]]()
    for k, (name, value) in enumerate(zip(model.parameters, model.values, strict=True)):
        if is_internal(name):
            continue
        low, high = sorted((0.2 * value, 3.0 * value)) if value else (-1.0, 1.0)
        found.append({"kind": "params", "k": k, "name": name, "low": low, "high": high})
    for k in model.integrated:
        if k < model.shown:
            low, high = float(rows[:, k].min()), float(rows[:, k].max())
            wide = 0.25 * (high - low) or max(1.0, abs(high))
            found.append({"kind": "start", "k": k, "name": model.states[k], "low": low - wide, "high": high + wide})
    return found if chosen is None else _chosen_ranges(found, chosen)


def inputs_of(problem: Any, sliders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sliders that set inputs."""
    known = getattr(problem, "inputs", None)
    names = list(known) if isinstance(known, Inputs) else []
    return [one for one in sliders if one["kind"] == "params" and one["name"].split("[")[0] in names]


def _chosen_ranges(found: list[dict[str, Any]], chosen: Any) -> list[dict[str, Any]]:
    known = {one["name"]: one for one in found}
    given = (
        dict(chosen) if isinstance(chosen, Mapping) else dict.fromkeys([chosen] if isinstance(chosen, str) else chosen)
    )
    made = []
    for name, span in given.items():
        if name not in known:
            raise UnknownNameError(
                f"sliders: {name!r} is neither a parameter nor a start value; {near_names(name, known)}available are "
                f"{', '.join(known)}"
            )
        one = dict(known[name])
        if span is not None:
            try:
                one["low"], one["high"] = (float(x) for x in span)
            except (TypeError, ValueError):
                raise InvalidProblemError(f"sliders: {name!r} needs a range (low, high), got {span!r}") from None
            if not one["low"] < one["high"]:
                raise InvalidProblemError(f"sliders: {name!r} needs a range with low < high, got {span!r}")
        made.append(one)
    return made
