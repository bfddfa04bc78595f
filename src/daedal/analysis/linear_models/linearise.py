"""Linear models of problems of any class and index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from daedal.analysis.linear_models.linear_model import LinearModel
from daedal.analysis.linear_models.local_coordinates import (
    LocalModel,
    TracedLocalModels,
    VariedInputs,
    difference_matrices,
    local_model_of_pencil,
)
from daedal.errors import InvalidProblemError, UnknownNameError, near_names
from daedal.events.event import Event, standard_functions
from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.hybrid.hybrid_solution import HybridSolution
from daedal.index.structure.statement import statement
from daedal.initial.by_name import initial_by_name
from daedal.initial.consistent import consistent_initial
from daedal.problems import HessenbergDAE, LinearDAE, MechanicalSystem, SecondOrderDAE, SemiExplicitDAE
from daedal.problems.checks import check_finite, check_real
from daedal.problems.compile import last_argument, with_other_params
from daedal.problems.problem_sources import is_source, problem_and_start
from daedal.problems.symbols import symbol_name
from daedal.solution.solution import Solution
from daedal.symbolic import Untraceable
from daedal.symbolic.derivative import jacobian
from daedal.symbolic.graph import evaluate
from daedal.symbolic.tracing.parameters import NAME
from daedal.symbolic.tracing.switching_functions import switching_nodes
from daedal.symbolic.tracing.tracer import Tracer

if TYPE_CHECKING:
    from daedal.problems.problem_sources import Problem, ProblemSource


@overload
def linearise(
    problem: Problem | ProblemSource[Problem],
    at: Solution | HybridSolution,
    *,
    t: Sequence[float] | np.ndarray | None = None,
    equilibrium: bool = False,
    inputs: Sequence[str] | Mapping[str, Any] | None = None,
    outputs: str | Callable[..., Any] | Sequence[Any] | Mapping[str, Any] | None = None,
    params: Any = None,
) -> list[LinearModel]: ...
@overload
def linearise(
    problem: Problem | ProblemSource[Problem],
    at: Any = None,
    *,
    t: float | None = None,
    equilibrium: bool = False,
    inputs: Sequence[str] | Mapping[str, Any] | None = None,
    outputs: str | Callable[..., Any] | Sequence[Any] | Mapping[str, Any] | None = None,
    params: Any = None,
) -> LinearModel: ...
def linearise(
    problem: Any,
    at: Any = None,
    *,
    t: Any = None,
    equilibrium: bool = False,
    inputs: Sequence[str] | Mapping[str, Any] | None = None,
    outputs: str | Callable[..., Any] | Sequence[Any] | Mapping[str, Any] | None = None,
    params: Any = None,
) -> Any:
    r"""Linearise a problem of any class and index in independent coordinates.

    .. math::

        \delta z' = A\,\delta z + B\,\delta u, \qquad \delta y = C\,\delta z + D\,\delta u .

    The states z are as many unknowns, or derivatives of them, as the problem has degrees of freedom; all others follow
    from the equations and their derivatives.

    Parameters
    ----------
    problem : ODE, ImplicitDAE, SemiExplicitDAE, MechanicalSystem, SecondOrderDAE, ..., Model or Circuit
        The problem.
    at : tuple, mapping, Start or Solution
        The point: values as for `initial` of :func:`daedal.solve`, (mode, values) for a HybridProblem; or a solution,
        whose inputs are passed again. Omitted values follow from the equations; for a model or a circuit None is its
        default start.
    t : float or array, optional
        The time, 0 by default. For a solution the times along it, by default all stored ones; an array gives a list.
    equilibrium : bool
        Whether to find an equilibrium near `at`, with constant inputs, and to linearise there.
    inputs : list of str, or mapping, optional
        Inputs of the problem that are columns of B and D; by default all. A mapping sets values or signals as in
        :func:`daedal.solve`, at which the problem is linearised.
    outputs : list, mapping, optional
        Names of unknowns or of their derivatives, or functions of the state, ``h(t, y)``, ``h(t, y, z)``, ``h(t, q,
        v)`` as for events, with parameters and inputs by name as optional arguments. A mapping names the functions. By
        default all unknowns, and the velocities of a mechanism.
    params : object, optional
        Parameters that replace those of the problem.

    Returns
    -------
    LinearModel
        Or a list of them.

    Raises
    ------
    InvalidProblemError
        If the point is singular, no equilibrium is found, or derivatives of untraceable functions are needed.

    Notes
    -----
    Derivatives are exact if the functions can be traced. Away from an equilibrium the matrices are those of the
    equations linearised along the solution through the point, frozen at that time. For a steady motion of a machine,
    such as a rolling wheel, ``model.linearise`` uses variables that rotate with the bodies, in which the coefficients
    are constant.

    Examples
    --------
    A pendulum in Cartesian coordinates, of index 3, has two states:

    >>> import daedal
    >>> def pendulum(t, s, sp, force):
    ...     x, y, u, v, lam = s
    ...     return [sp[0] - u, sp[1] - v, sp[2] + lam * x - force, sp[3] + lam * y + 9.81, x**2 + y**2 - 1]
    >>> problem = daedal.ImplicitDAE(pendulum, 5, names=["x", "y", "u", "v", "lam"], inputs=["force"])
    >>> hanging = daedal.linearise(problem, ([0.0, -1.0, 0.0, 0.0, 9.81], None), outputs=["x", "lam"])
    >>> hanging.states, hanging.A.round(3).tolist(), hanging.B.round(3).tolist()
    (('x', 'u'), [[0.0, 1.0], [-9.81, 0.0]], [[0.0], [1.0]])
    >>> print(hanging.modes[0].frequency.__round__(4))
    0.4985
    """
    along = isinstance(at, (Solution, HybridSolution))
    if along and equilibrium:
        raise InvalidProblemError("equilibrium=True searches near values, not along a solution; pass at=values")
    if along:
        times = np.asarray(at.t if t is None else check_real(t, "t", "be a time or an array of times"), dtype=float)
    else:
        times = np.asarray(0.0 if t is None else check_finite(t, "t"))
    if is_source(problem):
        if along:
            problem = problem.as_problem()
        else:
            times = np.asarray(getattr(at, "t", times) if t is None else times, dtype=float)
            given = inputs if isinstance(inputs, Mapping) else None
            problem, at = problem_and_start(problem, at, float(times), params, given)
    if at is None:
        raise InvalidProblemError("at is missing: pass the values at which to linearise the problem")
    if params is not None:
        problem = with_other_params(problem, params)
    names = None
    if isinstance(inputs, Mapping):
        problem, names = problem.with_inputs(inputs) if hasattr(problem, "with_inputs") else problem, list(inputs)
    elif inputs is not None:
        names = [inputs] if isinstance(inputs, str) else list(inputs)
    made: dict[Any, Any] = {}
    models = []
    for time in np.atleast_1d(times).tolist():
        mode, one, values = _mode_at(problem, at, time)
        made[mode] = made[mode].moved(time) if mode in made else _models(one, time, names)
        jet = _jet_along(one, values, time) if along else _jet_given(one, time, values, equilibrium)
        local = made[mode].local(time, jet, equilibrium)
        models.append(_with_outputs(one, made[mode].inputs, local, time, outputs))
    return models if times.ndim else models[0]


def _mode_at(problem: Any, at: Any, t: float) -> tuple[Any, Any, Any]:
    """The mode at a time (None without modes), the problem to linearise, and the values or the solution there."""
    mode: Any = None
    if isinstance(at, HybridSolution):
        segment = at.segment_at(t)
        mode, at = segment.mode, segment.solution
    if not isinstance(problem, HybridProblem):
        return None, problem, at
    if mode is None and isinstance(at, (tuple, list)) and len(at) == 2 and isinstance(at[0], str):
        mode, at = at
    if mode is None and len(problem.modes) == 1:
        [mode] = problem.modes
    if mode not in problem.modes:
        raise InvalidProblemError(
            f"a HybridProblem is linearised in one of its modes: pass at=(mode, values), with a mode of "
            f"{', '.join(problem.modes)}"
        )
    return mode, problem.modes[mode].problem, at


# --- traced functions, or finite differences --------------------------------------------------------------------------


@dataclass
class _ByTrace:
    traced: TracedLocalModels

    @property
    def inputs(self) -> VariedInputs:
        return self.traced.inputs

    def moved(self, t: float) -> _ByTrace:
        return _ByTrace(self.traced.moved(t))

    def local(self, t: float, jet: np.ndarray, equilibrium: bool) -> LocalModel:
        if equilibrium:
            jet = self.traced.jet_at_rest(t, jet)
        if not self.traced.is_regular:
            return local_model_of_pencil(*self.traced.pencil(t, jet), True)
        return self.traced.at(t, self.traced.point(t, jet))


@dataclass
class _ByDifferences:
    inputs: VariedInputs

    def moved(self, t: float) -> _ByDifferences:
        return self  # inputs are perturbed by constants, which do not depend on time

    def local(self, t: float, jet: np.ndarray, equilibrium: bool) -> LocalModel:
        implicit = self.inputs.problem.implicit()
        if equilibrium:
            found = consistent_initial(implicit, t, (jet[0], np.zeros(implicit.n)), fixed="derivative")
            jet = np.array([found[0], np.zeros(implicit.n)])
        names = [implicit.label(j) for j in range(implicit.n)]
        matrices = difference_matrices(implicit, self.inputs, t, *jet)
        return local_model_of_pencil(matrices, names, jet, False)


def _models(problem: Any, t: float, names: Sequence[str] | None) -> Any:
    try:
        return _ByTrace(TracedLocalModels(problem, t, names))
    except Untraceable as reason:
        if not hasattr(problem, "implicit") or isinstance(problem, SecondOrderDAE):
            raise InvalidProblemError(
                f"a {type(problem).__name__} can be linearised only if its functions can be traced, but a "
                f"function {reason}. Remedy: write it such that it can be traced; for a large machine use "
                "model.linearise"
            ) from reason
        return _ByDifferences(VariedInputs(problem, t, names, 0))


# --- the point --------------------------------------------------------------------------------------------------------


def _jet_given(problem: Any, t: float, initial: Any, equilibrium: bool) -> np.ndarray:
    """x, x', ... from initial values, made consistent unless they are only a guess."""
    if isinstance(initial, Mapping):
        if equilibrium:
            return _guess_by_name(problem, initial)
        initial = initial_by_name(problem, t, initial)
    if isinstance(problem, MechanicalSystem):
        if equilibrium:
            q = np.asarray(initial[0] if isinstance(initial, (tuple, list)) else initial, dtype=float)
            given = [*initial[2:]] if isinstance(initial, (tuple, list)) else []
            sizes = [problem.n_r, problem.n_w, problem.n_lambda]
            rest = [np.asarray(part, dtype=float) for part in given] + [np.zeros(n) for n in sizes[len(given) :]]
            return np.array([np.concatenate([q, *rest])])
        start = consistent_initial(problem, t, initial)
        n, unknown = problem.n_q, np.full(problem.n_w + problem.n_lambda, np.nan)
        x = np.concatenate([start.q, start.r, start.w, start.lam])
        rates = np.concatenate([start.v, start.r_rate, unknown])
        return np.array([x, rates, np.concatenate([start.a, np.full(x.size - n, np.nan)])])
    if isinstance(problem, SecondOrderDAE):
        x, *further = initial if isinstance(initial, (tuple, list)) else (initial,)
        return np.array([x]) if equilibrium else np.array(consistent_initial(problem, t, (x, *further)))
    if equilibrium:
        parts: Any = initial if isinstance(initial, (tuple, list)) and np.ndim(initial[0]) else (initial, None)
        if isinstance(problem, (SemiExplicitDAE, LinearDAE, HessenbergDAE)):
            n_second = problem.n_z if isinstance(problem, SemiExplicitDAE) else problem.n_y
            parts = [np.concatenate([parts[0], np.zeros(n_second) if parts[1] is None else parts[1]])]
        return np.array([np.asarray(parts[0], dtype=float)])
    if isinstance(problem, HessenbergDAE):
        return _hessenberg_jet(problem, initial)
    found: Any = consistent_initial(problem, t, initial)
    if isinstance(problem, (SemiExplicitDAE, LinearDAE)):
        return np.array([np.concatenate(found)])
    return np.array(found)


def _guess_by_name(problem: Any, given: Mapping[Any, Any]) -> np.ndarray:
    """Complete a guess for an equilibrium, given by name, with zeros."""
    names = statement(problem).names
    values = {symbol_name(name): check_finite(value, f"at[{name!r}]") for name, value in given.items()}
    for name in values:
        if name not in names:
            raise UnknownNameError(
                f"at: {name!r} is not an unknown of the problem; {near_names(name, names)}known: {', '.join(names)}"
            )
    return np.array([[values.get(name, 0.0) for name in names]])


def _hessenberg_jet(problem: Any, initial: Any) -> np.ndarray:
    z = np.asarray(initial[0] if isinstance(initial, (tuple, list)) and np.ndim(initial[0]) else initial, dtype=float)
    rows = z.reshape(problem.order, problem.n_x)
    return np.hstack([rows, np.full((problem.order, problem.n_y), np.nan)])


def _jet_along(problem: Any, sol: Any, t: float) -> np.ndarray:
    if isinstance(problem, MechanicalSystem):
        state = sol(t)
        x = np.concatenate([state.q, state.r, state.w, state.lam])
        unknown = np.full(x.size - problem.n_q, np.nan)
        return np.array([x, np.concatenate([state.v, unknown]), np.concatenate([state.a, unknown])])
    if isinstance(problem, SecondOrderDAE):
        state = sol.at(t)
        return np.array([state.x, state.xp, state.xpp])
    return np.array([sol(t), sol(t, derivative=True)])


# --- outputs ----------------------------------------------------------------------------------------------------------


def _with_outputs(problem: Any, inputs: VariedInputs, local: LocalModel, t: float, outputs: Any) -> LinearModel:
    where = {name: k for k, name in enumerate(local.names)}
    names: list[str] = []
    rows: list[tuple[np.ndarray, np.ndarray]] = []
    for name, output in _stated(problem, local, outputs):
        if not callable(output):
            if name not in where:
                hint = near_names(name, where)
                raise UnknownNameError(
                    f"outputs: {name!r} is not an unknown of the problem; {hint}known: {', '.join(local.names)}. "
                    "Other quantities can be given as functions of the state"
                )
            row = np.zeros(len(local.names))
            row[where[name]] = 1.0
            names.append(name)
            rows.append((row, np.zeros(len(inputs.labels))))
            continue
        found = list(_function_rows(problem, inputs, local, t, output, name))
        names += [name] if len(found) == 1 else [f"{name}[{k}]" for k in range(len(found))]
        rows += found
    if len(set(names)) < len(names):
        raise InvalidProblemError(f"outputs contains duplicates: {', '.join(names)}. Remedy: use distinct names")
    H = np.array([row for row, _ in rows]).reshape(len(rows), len(local.names))
    direct = np.array([of for _, of in rows]).reshape(len(rows), len(inputs.labels))
    D = [H @ p for p in local.P] or [np.zeros((len(rows), 0))]
    D[0] = D[0] + direct
    while len(D) > 1 and np.all(_is_noise(D[-1], H, local.P)):
        D.pop()
    return LinearModel(
        A=local.A,
        B=local.B,
        C=H @ local.T,
        D=D[0],
        states=local.states,
        inputs=inputs.labels,
        outputs=tuple(names),
        t=t,
        is_equilibrium=local.is_equilibrium,
        exact=local.exact,
        input_derivatives=tuple(np.where(_is_noise(d, H, local.P), 0.0, d) for d in D[1:]),
        point=dict(zip(local.names, local.point.tolist(), strict=True)),
        basis=local.T,
        unknowns=tuple(local.names),
        descriptor=local.descriptor,
    )


def _is_noise(matrix: np.ndarray, H: np.ndarray, P: Sequence[np.ndarray]) -> np.ndarray:
    size = max(float(np.max(np.abs(H), initial=0.0)) * max(float(np.max(np.abs(p), initial=0.0)) for p in P), 1e-300)
    return np.abs(matrix) <= 1e-12 * size


def _stated(problem: Any, local: LocalModel, outputs: Any) -> list[tuple[str, Any]]:
    """Outputs by name, each with its function, or None for an unknown."""
    if outputs is None:
        leading = sorted((k, j) for (j, k) in local.column if k == 0)
        found = [local.names[local.column[j, k]] for k, j in leading]
        if isinstance(problem, MechanicalSystem):
            found += [local.names[local.column[j, 1]] for j in range(problem.n_q)]
        return [(name, None) for name in dict.fromkeys(found)]
    if isinstance(outputs, str):
        outputs = [outputs]
    if callable(outputs):
        outputs = [outputs]
    if isinstance(outputs, Mapping):
        pairs = list(outputs.items())
        for name, output in pairs:
            if not callable(output) and not isinstance(output, str):
                raise InvalidProblemError(f"outputs: '{name}' must be a function of the state, got {output!r}")
        return [(name, output if callable(output) else None) for name, output in pairs]
    stated: list[tuple[str, Any]] = []
    for k, output in enumerate(outputs):
        if callable(output):
            own = getattr(output, "__name__", "<lambda>")
            stated.append((f"y{k}" if own == "<lambda>" else own, output))
        elif isinstance(output, str):
            stated.append((output, None))
        else:
            raise InvalidProblemError(f"outputs must be names of unknowns or functions of the state, got {output!r}")
    return stated


def _function_rows(
    problem: Any, inputs: VariedInputs, local: LocalModel, t: float, output: Callable[..., Any], name: str
):
    """Yield the derivatives of each entry of a function of the state with respect to w and to the inputs."""
    varied = inputs.problem
    sizes, columns = _arguments(varied, local)
    [(function, count)] = standard_functions(Event(output), varied)
    groups = list(sizes)[: min(count, 3) - 1]
    places = [column for group in groups for column in columns[group]]
    values = {group: local.point[[max(c, 0) for c in columns[group]]] for group in groups}
    try:
        by_state, by_inputs = _traced_rows(varied, inputs, sizes, function, count, t, values, groups)
    except Untraceable:
        by_state, by_inputs = _difference_rows(inputs, function, count, t, values, groups)
    for state_row, input_row in zip(by_state, by_inputs, strict=True):
        row = np.zeros(len(local.names))
        for place, value in zip(places, state_row, strict=True):
            if place < 0 and value != 0.0:
                raise InvalidProblemError(
                    f"output '{name}' depends on the derivative of an unknown whose derivative does not occur in "
                    "the equations. Remedy: define the output without it"
                )
            if place >= 0:
                row[place] += value
        yield row, input_row


def _arguments(problem: Any, local: LocalModel) -> tuple[dict[str, int], dict[str, list[int]]]:
    """The vectors passed to functions of the state, and the positions of their entries in w; -1 for those not in w."""

    def places(entries):
        return [local.column.get(entry, -1) for entry in entries]

    if isinstance(problem, MechanicalSystem):
        n = problem.n_q
        return {"q": n, "v": n}, {"q": places((j, 0) for j in range(n)), "v": places((j, 1) for j in range(n))}
    if isinstance(problem, SemiExplicitDAE):
        n, m = problem.n_y, problem.n_z
        return {"y": n, "z": m}, {"y": places((j, 0) for j in range(n)), "z": places((n + j, 0) for j in range(m))}
    first, second = ("x", "xp") if isinstance(problem, SecondOrderDAE) else ("y", "yp")
    n = problem.n
    return {first: n, second: n}, {first: places((j, 0) for j in range(n)), second: places((j, 1) for j in range(n))}


def _traced_rows(problem, inputs: VariedInputs, sizes, function, count, t, values, groups):
    tracer = Tracer(problem, sizes, always=True)
    graph = tracer.graph
    nodes, _, _ = switching_nodes(tracer, problem, [(function, count)])
    variables = [node for group in groups for node in tracer.nodes(group)]
    numbers = [] if not inputs.labels else inputs.positions(tracer.layout)[0][0].tolist()
    variables += [graph.argument(NAME, k) for k in numbers]
    params = None if tracer.layout is None else tracer.layout.numbers(problem.params)
    rows = jacobian(graph, nodes, variables)
    places = [(i, k, node) for i, row in enumerate(rows) for k, node in row.items()]
    found = evaluate(graph, [node for *_, node in places], {**values, "t": t, NAME: params})
    matrix = np.zeros((len(nodes), len(variables)))
    for (i, k, _), value in zip(places, found, strict=True):
        matrix[i, k] = value
    n = len(variables) - len(numbers)
    return matrix[:, :n], matrix[:, n:]


def _difference_rows(inputs: VariedInputs, function, count, t, values, groups):
    def evaluated(given, problem):
        extra = last_argument(function, problem.params) if count == 4 else ()
        return np.atleast_1d(np.asarray(function(t, *[given[group] for group in groups], *extra), dtype=float)).ravel()

    def quotients():
        for group in groups:
            for j, value in enumerate(values[group]):
                h = 1e-6 * max(1.0, abs(value))
                ends = []
                for sign in (1.0, -1.0):
                    moved = {name: np.array(x) for name, x in values.items()}
                    moved[group][j] += sign * h
                    ends.append(evaluated(moved, inputs.problem))
                yield (ends[0] - ends[1]) / (2.0 * h)

    state = np.array(list(quotients())).T
    size = len(evaluated(values, inputs.problem))
    by_inputs = np.zeros((size, len(inputs.labels)))
    for k in range(by_inputs.shape[1]):
        ahead, behind = (evaluated(values, inputs.changed(0, k, s * 1e-6)) for s in (1.0, -1.0))
        by_inputs[:, k] = (ahead - behind) / 2e-6
    return state.reshape(size, -1), by_inputs
