r"""The equations of a traced problem as functions in C, for integrators that are compiled with them.

For mechanisms: ``slopes``, the accelerations (and r'), ``correct_positions`` and ``correct_velocities``, the
projections in the norm of M. For first-order problems M y' = f(t, y) with constant M: ``slopes`` if M is regular,
``rosenbrock_step``, a whole step, and ``correct_algebraic``, a Newton correction of the variables that no derivative
determines. All are straight-line code, elimination included, in terms of the state ``y`` and the parameters ``p``; they
return 0, 1 if a function raises, 2 if a pivot is bad.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from daedal.problems import MechanicalSystem
from daedal.symbolic import Untraceable
from daedal.symbolic.cuda import c_function
from daedal.symbolic.derivative import Row, jacobian
from daedal.symbolic.elimination import StructurallySingular, matching, solve, weak_pivot
from daedal.symbolic.graph_functions import inlined
from daedal.symbolic.machine import BAD_PIVOT, RAISES
from daedal.symbolic.mechanism_dynamics import WORST_PIVOT
from daedal.symbolic.tracing.linearly_implicit import WORST_REST, LinearlyImplicit
from daedal.symbolic.tracing.parameters import NAME
from daedal.symbolic.tracing.straight_line_code import MOST_OPERATIONS, StraightLine
from daedal.symbolic.tracing.switching_functions import code_of, switching_nodes
from daedal.symbolic.tracing.tracer import TracedProblem, Tracer

WORST_SINGLE = 1e-4
"""Pivot quality below which single-precision results are rejected."""
WORST_SINGLE_REST = 1e-3
"""Largest residual of a row for solutions in single precision, in units of its terms."""


@dataclass(frozen=True)
class ProblemInC:
    """C functions and their metadata.

    Attributes
    ----------
    text : str
        The functions.
    n : int
        Length of the state: (q, v, r), or y.
    n_parameters : int
        Length of ``p``.
    positions : int
        Number of positions in the state; 0 for first-order problems.
    constraints, velocity_constraints : int
        Numbers of constraints on positions and on velocities alone.
    length : float
        Typical length of a machine, the scale for positions near zero, or 0.
    algebraic : bool
        Whether ``correct_algebraic`` exists.
    operations : int
        Number of operations of ``slopes``, or of a step.
    """

    text: str
    n: int
    n_parameters: int
    positions: int = 0
    constraints: int = 0
    velocity_constraints: int = 0
    length: float = 0.0
    algebraic: bool = False
    operations: int = 0


def problem_in_c(traced: TracedProblem, tableau: Any = None, *, single: bool = False) -> ProblemInC:
    """The functions that an integrator needs of a traced problem.

    Parameters
    ----------
    traced : TracedProblem
    tableau : RosenbrockTableau, optional
        Method whose steps are generated; without it, ``slopes`` for explicit methods.
    single : bool
        Whether pivots are judged for single precision.

    Raises
    ------
    Untraceable
        If such code is impossible; the reason is in the message.
    """
    problem = traced.problem
    code = code_of(problem)
    if getattr(problem, "invariants", None) is not None:
        raise Untraceable("has invariants, onto which C code does not project", "", "omit invariants")
    if isinstance(problem, MechanicalSystem):
        if code is None:
            raise Untraceable(_reason(traced, "has no straight-line code for its accelerations"), "")
        if tableau is not None:
            raise Untraceable("is a mechanism, which Rosenbrock methods do not solve", "", "use dopri5")
        with code.tracer.lock:
            return _guarded(_mechanism, code, problem, single)
    if code is None:
        raise Untraceable(_reason(traced, "has no traced residual F(t, y, y')"), "")
    if not code.constant_mass:
        raise Untraceable("has a matrix dF/dy' that depends on t, y or y'", "", "write it as M y' = f(t, y)")
    with code.tracer.lock:
        if tableau is None:
            return _guarded(_explicit, code, single)
        return _guarded(_linearly_implicit, code, tableau, single)


@dataclass(frozen=True)
class Rates:
    """The derivatives of a state as nodes.

    Attributes
    ----------
    state : list of int
        Nodes of the state.
    integrated : list of int
        Entries of the state that have derivatives.
    nodes : list of int
        Their derivatives.
    multipliers : list of int
        Multipliers of a mechanism.
    raises : int
        The condition under which a function raises.
    pivots : list
        Pivots of the elimination.
    algebraic : tuple of two lists of int
        Entries of the state that no derivative determines, and nodes of the equations that determine them.
    """

    state: list[int]
    integrated: list[int]
    nodes: list[int]
    multipliers: list[int]
    raises: int
    pivots: list[tuple[int, list[int]]]
    algebraic: tuple[list[int], list[int]] = ((), ())  # type: ignore[assignment]


def rates_of(traced: TracedProblem) -> Rates:
    """The derivatives of the state of a problem for which :func:`problem_in_c` has succeeded.

    The caller must hold the lock of the tracer.
    """
    code, problem = code_of(traced.problem), traced.problem
    return _rates_of_mechanism(code, problem) if isinstance(problem, MechanicalSystem) else _first_order_rates(code)


def _rates_of_mechanism(code: StraightLine, system: MechanicalSystem) -> Rates:
    tracer, n = code.tracer, system.n_q
    state, motion = _state(tracer, system), code.formulas("accelerations")
    nodes, raises = [*state[n : 2 * n], *motion.nodes[:n]], motion.raises
    if system.n_r:
        rate = tracer.traces.get("state_rate")
        if rate is None:
            raise Untraceable("has a state_rate that cannot be traced", "")
        nodes, raises = [*nodes, *rate.nodes], tracer.graph.either(raises, rate.raises)
    return Rates(state, list(range(len(state))), nodes, motion.nodes[n:], raises, motion.solved.pivots)


def _first_order_rates(code: LinearlyImplicit) -> Rates:
    """The rates y' = -M^{-1} F(t, y, 0) for the variables whose derivatives occur."""
    graph, (y, _) = code.tracer.graph, code.unknowns
    values, raises = _at_rest(code)
    rows = code.by_rates
    equations = [i for i, row in enumerate(rows) if row]
    variables = sorted({j for row in rows for j in row})
    if len(equations) != len(variables):
        raise Untraceable(
            "has equations in which derivatives occur only together",
            "",
            "reformulate it with one equation that contains derivatives for each variable whose derivative occurs",
        )
    place = {j: k for k, j in enumerate(variables)}
    matrix: list[Row] = [{place[j]: x for j, x in rows[i].items()} for i in equations]
    order = matching(matrix)
    right = [graph.negative(values[equations[k]]) for k in order]
    solved = solve(graph, [matrix[k] for k in order], [right])
    algebraic = [j for j in range(len(y)) if j not in place]
    rest = [values[i] for i, row in enumerate(rows) if not row]
    return Rates(list(y), variables, solved.solutions[0], [], raises, solved.pivots, (algebraic, rest))


def switching_functions_in_c(traced: TracedProblem, functions: Sequence[tuple[Any, int]]) -> tuple[str, list[int]]:
    """Switching functions as ``switching_functions(t, y, p, result)``, and the number of values of each.

    Parameters
    ----------
    traced : TracedProblem
        A problem for which :func:`problem_in_c` has succeeded.
    functions : sequence of (callable, int)
        Functions ``f(t, y)``, ``f(t, q, v)`` or ``f(t, y, z)``, with the parameters as an optional last argument; and
        their numbers of arguments.
    """
    problem = traced.problem
    tracer = code_of(problem).tracer
    with tracer.lock:
        state = _state(tracer, problem)
        nodes, sizes, raises = switching_nodes(tracer, problem, functions)
        other = tracer.foreign(nodes, [name for name in tracer.sizes if name not in ("yp", "xp")])
        if other is not None:
            raise Untraceable("depends on y'", "")
        arguments = {"y": state, "p": parameter_nodes(tracer)}
        statuses = [(raises, RAISES)]
        text = c_function(tracer.graph, "switching_functions", arguments, {"result": nodes}, statuses, tracer.t.node)
    return text, sizes


def _state(tracer: Tracer, problem: Any) -> list[int]:
    """Nodes of the state."""
    if isinstance(problem, MechanicalSystem):
        return [node for name in (("q", "v", "r") if problem.n_r else ("q", "v")) for node in tracer.nodes(name)]
    return code_of(problem).unknowns[0]


def _guarded(make, *arguments) -> ProblemInC:
    try:
        return make(*arguments)
    except StructurallySingular as error:
        raise Untraceable("has equations without a fixed pivot order", "") from error


def _reason(traced: TracedProblem, otherwise: str) -> str:
    for name, reason in traced.refused.items():
        return f"has a function that cannot be traced: {name} {reason.reason}"
    return otherwise


def parameter_nodes(tracer: Tracer) -> list[int]:
    """Nodes of the parameters."""
    count = 0 if tracer.layout is None else tracer.layout.count
    return [tracer.graph.argument(NAME, k) for k in range(count)]


class _CWriter:
    """Writes functions that share a state."""

    def __init__(self, tracer: Tracer, state: Sequence[int], single: bool):
        self.tracer, self.graph = tracer, tracer.graph
        self.arguments = {"y": list(state), "p": parameter_nodes(tracer)}
        self.graph.most_nodes = max(self.graph.most_nodes, len(self.graph) + MOST_OPERATIONS)
        self.worst = WORST_SINGLE if single else WORST_PIVOT

    def function(self, name: str, nodes: Sequence[int], raises: int, pivots) -> str:
        statuses = [(raises, RAISES), (weak_pivot(self.graph, pivots, self.worst), BAD_PIVOT)]
        return c_function(self.graph, name, self.arguments, {"result": nodes}, statuses, self.tracer.t.node)


# --- mechanisms -------------------------------------------------------------------------------------------------------


def _mechanism(code: StraightLine, system: MechanicalSystem, single: bool) -> ProblemInC:
    tracer, n = code.tracer, system.n_q
    writer = _CWriter(tracer, _state(tracer, system), single)
    rates = _rates_of_mechanism(code, system)
    nodes = rates.nodes[n:]
    constrained = system.n_constraints + system.n_velocity_constraints > 0
    # velocity corrections end every step and use the matrix of the slopes, so its pivots are tested here
    texts = [writer.function("slopes", nodes, rates.raises, [] if constrained else rates.pivots)]
    if system.n_constraints:
        positions = code.formulas("position_correction")
        texts.append(writer.function("correct_positions", positions.nodes[:n], positions.raises, []))
    if constrained:
        velocities = code.formulas("velocity_correction")
        pivots = velocities.solved.pivots
        texts.append(writer.function("correct_velocities", velocities.nodes[:n], velocities.raises, pivots))
    return ProblemInC(
        "\n".join(texts),
        len(writer.arguments["y"]),
        len(writer.arguments["p"]),
        positions=n,
        constraints=system.n_constraints,
        velocity_constraints=system.n_velocity_constraints,
        length=system.typical_length,
        operations=tracer.graph.count(nodes),
    )


# --- first-order problems ---------------------------------------------------------------------------------------------


def _explicit(code: LinearlyImplicit, single: bool) -> ProblemInC:
    """``slopes``, which computes y' = -M^{-1} F(t, y, 0)."""
    y, _ = code.unknowns
    writer = _CWriter(code.tracer, y, single)
    rates = _first_order_rates(code)
    if len(rates.nodes) < len(y):
        raise StructurallySingular("some variables have no derivative")
    text = writer.function("slopes", rates.nodes, rates.raises, rates.pivots)
    operations = writer.graph.count(rates.nodes)
    return ProblemInC(text, len(y), len(writer.arguments["p"]), operations=operations)


def _linearly_implicit(code: LinearlyImplicit, tableau: Any, single: bool) -> ProblemInC:
    y, _ = code.unknowns
    n, tracer = len(y), code.tracer
    writer = _CWriter(tracer, y, single)
    step = code.step_formulas(tableau, WORST_SINGLE_REST if single else WORST_REST)
    if step is None:
        raise Untraceable("needs too many operations for one step", "")
    nodes, statuses = step
    arguments = {**writer.arguments, "h": tracer.nodes("step")}
    results = {"end": nodes[:n], "increments": nodes[n:-n], "defect": nodes[-n:]}
    texts = [c_function(tracer.graph, "rosenbrock_step", arguments, results, statuses, tracer.t.node)]
    algebraic = _algebraic(code, writer)
    return ProblemInC(
        "\n".join([*texts, *algebraic]),
        n,
        len(writer.arguments["p"]),
        algebraic=bool(algebraic),
        operations=tracer.graph.count(nodes),
    )


def _algebraic(code: LinearlyImplicit, writer: _CWriter) -> list[str]:
    """Code of a Newton step for the variables without derivatives, from the equations without derivatives.

    Empty if the numbers of these variables and equations differ, or if the elimination is structurally impossible.
    """
    graph, (y, _) = writer.graph, code.unknowns
    rows = code.by_rates
    equations = [i for i, row in enumerate(rows) if not row]
    variables = [j for j in range(len(y)) if all(j not in row for row in rows)]
    if not equations or len(equations) != len(variables):
        return []
    values, raises = _at_rest(code)
    matrix: list[Row] = jacobian(graph, [values[i] for i in equations], [y[j] for j in variables])
    try:
        places = matching(matrix)
        right = [graph.negative(values[equations[k]]) for k in places]
        solved = solve(graph, [matrix[k] for k in places], [right])
    except StructurallySingular:
        return []
    change = [graph.zero] * len(y)
    for j, node in zip(variables, solved.solutions[0], strict=True):
        change[j] = node
    return [writer.function("correct_algebraic", change, raises, solved.pivots)]


def _at_rest(code: LinearlyImplicit) -> tuple[list[int], int]:
    """F(t, y, 0), and the condition under which it raises."""
    graph, (_, yp), residual = code.tracer.graph, code.unknowns, code.residual
    there = {
        graph.data[i]: graph.zero if i in set(yp) else i
        for i, operation in enumerate(graph.operations)
        if operation == "argument"
    }
    *values, raises = inlined(graph, [*residual.nodes, residual.raises], graph, there)
    return values, raises
