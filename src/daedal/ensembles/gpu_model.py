"""GPU source of a traced problem with a method and terminal events, as one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.events.event import functions_of, named_events, standard_functions
from daedal.kernels.endings import Ending
from daedal.methods import step_size
from daedal.methods.explicit.runge_kutta import ExplicitRungeKutta, Tableau
from daedal.methods.explicit.runge_kutta_step import HARMLESS
from daedal.methods.named_methods import named_method
from daedal.methods.rosenbrock.rosenbrock import MOST_FAILURES, Rosenbrock
from daedal.methods.rosenbrock.rosenbrock_step import STUBBORN
from daedal.methods.rosenbrock.rosenbrock_tableaux import TABLEAUX, RosenbrockTableau
from daedal.problems import ODE, ImplicitDAE, MechanicalSystem, SemiExplicitDAE
from daedal.problems.checks import check_tolerances
from daedal.symbolic import Graph, Untraceable
from daedal.symbolic.cuda import PRELUDE, c_formula, c_number
from daedal.symbolic.machine import BAD_PIVOT, RAISES
from daedal.symbolic.trace import scalar_argument, trace
from daedal.symbolic.tracing.in_c import ProblemInC, problem_in_c, switching_functions_in_c
from daedal.symbolic.tracing.problem import traced_problem
from daedal.symbolic.tracing.tracer import TracedProblem

# The same text is CUDA C and plain C. Quantities that differ between ensembles of one problem (starts, parameters,
# tolerances, times) are arguments, so that a source is compiled once.

MOST_UNROLLED = 250
"""Number of operations of the slopes up to which all stages of a step are unrolled."""
BLOCK = 64
"""Threads per block."""
INCONSISTENT = -12
"""Status of a run whose start violates its constraints, in addition to the codes of Ending."""
_MOST_CORRECTIONS = 10  # maximum number of Newton corrections
_ENDINGS = (
    *(Ending.FINISHED, Ending.EVENT_STOP, Ending.MAX_STEPS, Ending.ZERO_WEIGHT, Ending.ERROR_TEST_FAILED),
    *(Ending.NEWTON_FAILED, Ending.MATRIX_SINGULAR, Ending.UNEVALUABLE, Ending.CALLBACK_RAISED),
)


@dataclass(frozen=True)
class EventsInC:
    """Switching functions that may terminate a run."""

    text: str = ""  # the function ``switching_functions(t, y, p, result)``
    names: tuple[str, ...] = ()
    # for each function: the direction of the crossings that count, and the number of the crossing that ends the run
    directions: tuple[int, ...] = ()
    occurrences: tuple[int, ...] = ()


def integrator_source(
    problem: ProblemInC,
    tableau: Tableau | RosenbrockTableau,
    events: EventsInC | None = None,
    *,
    outputs: bool = False,
    single: bool = False,
    driver: Any = None,
    **launch: int,
) -> str:
    """The source of an integrator.

    Parameters
    ----------
    problem : ProblemInC
        The functions of the problem, as required by the method.
    tableau : Tableau or RosenbrockTableau
        Tableau of the method.
    events : EventsInC, optional
        Terminal events.
    outputs : bool
        Whether values between the start and the end are output.
    single : bool
        Whether states are in single precision.
    driver : str, optional
        Source that calls the integrator; by default the kernel for all members of an ensemble.
    **launch : int
        For a GPU: BLOCK, LEAST_BLOCKS, REFILL, UNROLLED (all stages are unrolled), APART (functions are not inlined).
    """
    explicit = isinstance(tableau, Tableau)
    events = EventsInC() if events is None else events
    constrained = problem.constraints + problem.velocity_constraints > 0
    unrolled = launch.pop("UNROLLED", int(problem.operations <= MOST_UNROLLED))
    apart = launch.pop("APART", 0)
    macros = {
        "N": problem.n,
        "K": problem.n - problem.positions,
        "P": problem.n_parameters,
        "E": len(events.names),
        "OUTPUTS": int(outputs),
        "POSITIONS": problem.positions,
        "PROJECTS": int(constrained),
        "POSITION_CONSTRAINTS": int(problem.constraints > 0),
        "ALGEBRAIC": int(problem.algebraic),
        "MAXIMUM_NORM": int(constrained),
        "LENGTH": c_number(problem.length),
        "MOST_CORRECTIONS": _MOST_CORRECTIONS,
        "HARMLESS": c_number(HARMLESS),
        **{ending.name: f"({int(ending)})" for ending in _ENDINGS},
        "INCONSISTENT": f"({INCONSISTENT})",
        "RAISES": RAISES,
        "WEAK_PIVOT": BAD_PIVOT,
        "FAILED": step_size.FAILED,
        "LEAST_BEFORE": c_number(step_size.LEAST_BEFORE),
        "SPACINGS": step_size.SPACINGS,
        "ROUNDOFF": step_size.ROUNDOFF,
        "UNROLL_STAGES": "UNROLL" if unrolled else "UNROLL_NOTHING",
        **{"BLOCK": BLOCK, "LEAST_BLOCKS": 1, "REFILL": 32, **launch},
    }
    if isinstance(tableau, Tableau):
        sizes, coefficients = _explicit(tableau, problem.positions)
    else:
        sizes, coefficients = _rosenbrock(tableau)
    parts = [
        "#define SINGLE" if single else "",
        "#define APART" if apart else "",
        PRELUDE,
        *(f"#define {name} {value}" for name, value in {**macros, **sizes}.items()),
        _table("BEND", [_bend(sizes["DEGREE"]).tolist()]),
        coefficients,
        problem.text,
        events.text,
        *([_table("DIRECTIONS", [events.directions], "int")] if events.names else []),
        *([_table("OCCURRENCES", [events.occurrences], "int")] if events.names else []),
        rules_in_c(sizes["ORDER"]),
        *(_template(name) for name in ("integrator", "explicit" if explicit else "rosenbrock")),
        _template("kernel") if driver is None else driver,
    ]
    return "\n".join(parts)


def _template(name: str) -> str:
    return (files("daedal.ensembles") / "templates" / f"{name}.c").read_text(encoding="utf-8")


def _table(name: str, rows: Sequence[Sequence[Any]], kind: str = "real") -> str:
    """C source of a constant array, two-dimensional if there are several rows."""
    number = str if kind == "int" else c_number
    texts = ["{" + ", ".join(number(x) for x in row) + "}" for row in rows]
    if len(rows) == 1:
        return f"TABLE {kind} {name}[{len(rows[0])}] = {texts[0]};"
    return f"TABLE {kind} {name}[{len(rows)}][{len(rows[0])}] = {{{', '.join(texts)}}};"


# --- rules for step sizes ---------------------------------------------------------------------------------------------

_ERRORS, _TIMES = False, True
_RULES = (
    (step_size.growth, "size before order rejected", _ERRORS),
    (step_size.shrinkage, "size order", _ERRORS),
    (step_size.step_by_slope, "length slope shortest longest", _TIMES),
    (step_size.step_by_size, "size slope", _TIMES),
    (step_size.usual_position, "q largest ratio", _TIMES),
    (step_size.step_by_motion, "q v a tolerance order", _TIMES),
    (step_size.first_step, "by_motion by_size by_slope length longest", _TIMES),
    (step_size.step_within, "h t t_stop longest sign", _TIMES),
    (step_size.end_of_step, "h t t_stop", _TIMES),
    (step_size.least_step, "t rest", _TIMES),
)
"""Functions of :mod:`daedal.methods.step_size`, their arguments, and whether these are always doubles."""


@cache
def rules_in_c(order: int) -> str:
    """C functions with the step-size rules for methods of the given order."""
    texts = []
    for function, words, double in _RULES:
        graph, names = Graph(), words.split()
        symbols = {name: scalar_argument(graph, name) for name in names if name != "order"}
        [result] = trace(function, [symbols.get(name, order) for name in names], ()).nodes
        arguments = {name: symbol.node for name, symbol in symbols.items()}
        texts.append(c_formula(graph, function.__name__, arguments, result, double=double))
    return "\n".join(texts)


# --- coefficients -----------------------------------------------------------------------------------------------------


def _explicit(tableau: Tableau, positions: int) -> tuple[dict[str, Any], str]:
    """The coefficients of an explicit method; for mechanisms also of positions in terms of accelerations.

    If q' = v, the slopes of positions are v + h sum_j a_ij v'_j (Hairer, Norsett, Wanner (II.14.13)), so that only
    the accelerations of a stage must be stored.
    """
    arrays = tableau.arrays
    a, e, c, stages = arrays["a"], arrays["e"], arrays["c"], arrays["e"].size
    dense = _polynomials(tableau.inner, tableau.degree)
    combine, estimate = ["FUNCTION void combine(int i, const real* y, real k[][K], real h, real* result) {"], []
    combine.append("  switch (i) {")
    for i in range(1, stages):
        loops = [_loop("K", a[i], "result[POSITIONS + j] = y[POSITIONS + j] + h * ({})")]
        if positions:
            drift = f"result[j] = y[j] + h * ({c_number(float(c[i]))} * y[POSITIONS + j] + h * ({{}}))"
            loops.append(_loop("POSITIONS", (a @ a)[i], drift))
        combine.append(f"  case {i}: {' '.join(loops)} break;")
    estimate.append("FUNCTION void estimate(real k[][K], real h, real* result) {")
    estimate.append("  " + _loop("K", e, "result[POSITIONS + j] = h * ({})"))
    if positions:
        estimate.append("  " + _loop("POSITIONS", e @ a, "result[j] = h * h * ({})"))
    tables = [_table("NODES", [c.tolist()]), _table("DENSE", dense.tolist())]
    if positions:
        tables.append(_table("DENSE_POSITIONS", (a.T @ dense).tolist()))
    macros = {"STAGES": stages, "ORDER": tableau.order, "DEGREE": tableau.degree, "SLOPES": 1, "MOST_FAILURES": 0}
    return macros, "\n".join([*tables, *combine, "  }", "}", *estimate, "}"])


def _rosenbrock(tableau: RosenbrockTableau) -> tuple[dict[str, Any], str]:
    degree = len(tableau.inner) + 1
    macros = {"STAGES": tableau.s, "ORDER": tableau.order, "DEGREE": degree, "SLOPES": 0, "GAMMA": tableau.gamma}
    macros |= {"MOST_FAILURES": MOST_FAILURES, "STUBBORN": STUBBORN}
    return macros, _table("DENSE", _polynomials(tableau.weights, degree).tolist())


def _loop(size: str, weights: np.ndarray, statement: str) -> str:
    """A loop over components that evaluates a sum of slopes in order."""
    terms = " + ".join(f"{c_number(float(w))} * k[{j}][j]" for j, w in enumerate(weights) if w != 0.0)
    return f"UNROLL for (int j = 0; j < {size}; j++) {statement.format(terms or '0')};"


def _polynomials(weights, degree: int) -> np.ndarray:
    """For each stage the coefficients of theta, ..., theta^degree in its weight, which vanishes at theta = 0."""
    places = np.arange(1, degree + 1) / degree
    powers = places[:, None] ** np.arange(1, degree + 1)
    return np.linalg.solve(powers, np.array([weights(theta) for theta in places])).T


def _bend(degree: int) -> np.ndarray:
    """The coefficients of theta, theta^2, ... in the polynomial that is 1 at theta = 1 and 0 at the other nodes."""
    roots = np.poly(np.arange(degree) / degree)[::-1]  # coefficients of powers from theta^0, with a zero at theta = 0
    return roots[1:] / roots.sum()


# --- the kernel of a problem ------------------------------------------------------------------------------------------

_SHARP = 1e-5  # relative tolerance below which the method of order 5 is faster
_OTHERWISE = "use on='threads'"


@dataclass(frozen=True)
class GPUModel:
    """A traced problem, and the source of its kernel."""

    traced: TracedProblem
    code: ProblemInC
    events: EventsInC
    source: str
    # For each entry of the state
    rtol: np.ndarray
    atol: np.ndarray


def gpu_model(problem: Any, settings: Any, *, outputs: bool, single: bool = False, **launch: int) -> GPUModel:
    """Build the GPU model of a problem.

    Parameters
    ----------
    problem : MechanicalSystem, ODE, ImplicitDAE or SemiExplicitDAE
        Its functions must be traceable.
    settings : Settings
        Method, tolerances, events.
    outputs : bool
        Whether values between start and end are output.
    single : bool
        Whether states are in single precision.
    **launch : int
        See :func:`daedal.ensembles.gpu_model.integrator_source`.

    Raises
    ------
    InvalidProblemError
        If the GPU does not support the problem; the message states the reason and an alternative.
    """
    if not isinstance(problem, (MechanicalSystem, ImplicitDAE, SemiExplicitDAE)):
        raise InvalidProblemError(
            "on='gpu' needs a MechanicalSystem, ODE, ImplicitDAE or SemiExplicitDAE, got "
            f"{type(problem).__name__}: {_OTHERWISE}"
        )
    _check_settings(settings)
    rtol, atol = check_tolerances(problem.n, settings.rtol, settings.atol)
    tableau = _tableau(settings.method, problem, float(np.min(rtol)))
    implicit = tableau if isinstance(tableau, RosenbrockTableau) else None
    try:
        traced = traced_problem(problem, "always") or TracedProblem(problem, None)
        code = problem_in_c(traced, implicit, single=single)
    except Untraceable as reason:
        remedy = f"{reason.remedy}, or {_OTHERWISE}" if reason.remedy else _OTHERWISE
        raise InvalidProblemError(f"on='gpu': the problem {reason.reason}: {remedy}") from reason
    except InvalidProblemError as error:
        raise InvalidProblemError(f"on='gpu' needs functions that can be traced. {error}; {_OTHERWISE}") from error
    events = _events(traced, settings.events)
    source = integrator_source(code, tableau, events, outputs=outputs, single=single, **launch)
    return GPUModel(traced, code, events, source, rtol, atol)


def _check_settings(settings: Any) -> None:
    """Reject settings that exist only on the CPU."""
    if settings.fixed_step is not None:
        raise InvalidProblemError(f"on='gpu' chooses step sizes automatically: omit fixed_step, or {_OTHERWISE}")
    form = settings.formulation
    name = form if isinstance(form, str) else getattr(form, "name", "")
    if name not in ("auto", "projection") or (not isinstance(form, str) and getattr(form, "weight", "M") != "M"):
        raise InvalidProblemError(
            "on='gpu' integrates accelerations and projects every step in the norm of M: omit formulation, or "
            f"{_OTHERWISE}"
        )


def _tableau(method: Any, problem: Any, rtol: float) -> Tableau | RosenbrockTableau:
    """The tableau of the requested method; for "auto" an explicit or a Rosenbrock method."""
    is_mechanism = isinstance(problem, MechanicalSystem)
    if isinstance(method, str) and method == "auto":
        explicit = is_mechanism or isinstance(problem, ODE)
        method = "dopri5" if explicit else "rodas4" if rtol >= _SHARP else "rodas5p"
    if isinstance(method, str) and method in TABLEAUX:
        method = Rosenbrock(variant=method)
    chosen = named_method(method, {})
    if isinstance(chosen, ExplicitRungeKutta) and _is_short(chosen):
        return chosen.tableau
    if not isinstance(chosen, Rosenbrock):
        raise InvalidProblemError(
            "on='gpu': method must be 'auto', 'dopri5', 'rosenbrock', daedal.methods.Rosenbrock(...), or an "
            "explicit Runge-Kutta method with one error estimate and dense output without additional stages, got "
            f"{method!r}; or {_OTHERWISE}"
        )
    if is_mechanism:
        raise InvalidProblemError(
            f"on='gpu': mechanisms are integrated by 'dopri5' and other explicit methods, got {method!r}; or "
            f"{_OTHERWISE}"
        )
    return TABLEAUX[chosen.variant]


def _is_short(method: ExplicitRungeKutta) -> bool:
    """Whether a method has one error estimate, and dense output without additional stages."""
    tableau = method.tableau
    return method.controlled and tableau.e3 is None and len(tableau.a) == len(tableau.b)


def _events(traced: TracedProblem, events: Any) -> EventsInC:
    given = named_events(events)
    if not given:
        return EventsInC()
    functions = standard_functions(given, traced.problem)
    try:
        text, sizes = switching_functions_in_c(traced, functions)
    except Untraceable as reason:
        raise InvalidProblemError(f"on='gpu': an event cannot be traced: it {reason.reason}; {_OTHERWISE}") from reason
    rows = [row for k, (event, size) in enumerate(zip(given, sizes)) for row in functions_of(event, k, size)]
    for name, _, occurrence in rows:
        if occurrence == 0:
            raise InvalidProblemError(
                f"on='gpu' supports terminal events only, and {name} is not terminal: {_OTHERWISE}"
            )
    names, directions, occurrences = zip(*rows)
    return EventsInC(text, names, directions, occurrences)


# --- running an integrator in C: arguments, compilation, results ------------------------------------------------------

# Arrays are created with the module ``xp``, CuPy or NumPy, so that the same integrator runs on both.

MOST_STEPS = 1_000_000
"""Limit of steps if none is given, since a thread that never ends would block the GPU."""
_OF_TOLERANCE = 1e-3  # fraction of the tolerance by which the constraints may be violated during a run
_BLOCKS_PER_PROCESSOR = 32  # maximum number of thread blocks per multiprocessor, more than can run at once

Kernel = Callable[..., None]


@dataclass(frozen=True)
class GPUTask:
    """The data shared by all runs."""

    t_span: tuple[float, float]
    t_eval: np.ndarray  # output times, in the order of integration
    # For each entry of the state
    rtol: np.ndarray
    atol: np.ndarray
    first_step: float = 0.0  # 0 if each run chooses its first step
    max_step: float = np.inf
    max_steps: int = MOST_STEPS
    largest_correction: float = 10.0  # limit for projecting a start onto the constraints, in units of the tolerance


@dataclass(frozen=True)
class GPUResults:
    """Final values of runs, with runs along the first axis of all arrays.

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ODE(lambda t, y: [-y[0]], 1)
    >>> daedal.ensembles.solve_on_gpu(decay, (0.0, 1.0), [[1.0], [2.0]]).y  # doctest: +SKIP
    """

    # The state and the time at the end
    y: Any
    t: Any
    outputs: Any  # outputs at the output times; NaN after the end of a run
    statuses: Any  # codes of Ending
    # Numbers of accepted and rejected steps
    steps: Any
    rejections: Any
    fired: Any  # the switching function that ended the run, or -1


def execute(
    xp: Any, kernel: Kernel, problem: ProblemInC, task: GPUTask, starts, params, *, single: bool = False, order=None
) -> GPUResults:
    """Run all members.

    Parameters
    ----------
    xp : module
        CuPy or NumPy.
    kernel : callable
        ``kernel(*arguments)`` with the kernel's arguments in order.
    problem : ProblemInC
    task : GPUTask
    starts, params : array
        One row per member, or one shared row: shapes (count or 1, n) and (count or 1, n_parameters).
    single : bool
        Whether states are in single precision.
    order : array of int, optional
        The order in which runs are started.
    """
    real = xp.float32 if single else xp.float64
    count, n, n_eval = max(len(starts), len(params)), problem.n, task.t_eval.size
    columns = [_columns(xp, values, count, real) for values in (starts, params)]
    tolerances = [xp.asarray(values, dtype=real) for values in (task.rtol, task.atol)]
    t_eval = xp.asarray(task.t_eval, dtype=xp.float64)
    outputs = xp.full((n_eval, n, count), np.nan, dtype=real)
    ends, times = xp.empty((n, count), dtype=real), xp.empty(count, dtype=xp.float64)
    numbers = [xp.empty(count, dtype=xp.int32) for _ in range(4)]
    given = None if order is None else xp.asarray(order, dtype=xp.int32)
    negligible = max(1e-9, float(np.sqrt(_OF_TOLERANCE * task.rtol.min())))
    scalars = [*task.t_span, task.first_step, task.max_step, negligible, task.largest_correction]
    kernel(
        *columns,
        *tolerances,
        t_eval,
        outputs,
        ends,
        times,
        *numbers,
        given,
        xp.zeros(1, dtype=xp.uint32),
        *map(np.float64, scalars),
        *map(np.int32, (task.max_steps, n_eval, count)),
    )
    return GPUResults(ends.T, times, outputs.transpose(2, 0, 1), *numbers)


def _columns(xp: Any, values: Any, count: int, real: Any) -> Any:
    """Convert rows to columns, one per member, with at least one number, so that the result has an address."""
    array = xp.asarray(values, dtype=real)
    if array.shape[1] == 0:
        return xp.zeros(1, dtype=real)
    return xp.ascontiguousarray(xp.broadcast_to(array.T, (array.shape[1], count)))


# --- the GPU ----------------------------------------------------------------------------------------------------------


def gpu() -> Any:
    """CuPy, if installed and a GPU is available.

    Raises
    ------
    InvalidProblemError
        If CuPy or a GPU is missing; the message states the remedy.
    """
    try:
        import cupy
    except ImportError as error:
        raise InvalidProblemError(
            "on='gpu' needs CuPy, which is not installed: pip install 'daedal[gpu]' (cupy-cuda12x, or the "
            "package for your version of CUDA), or use on='threads'"
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise InvalidProblemError(f"on='gpu': CuPy finds no usable GPU ({error}); use on='threads'") from error
    if count == 0:
        raise InvalidProblemError("on='gpu': there is no GPU on this machine; use on='threads'")
    return cupy


@lru_cache(maxsize=64)
def gpu_kernel(source: str, device: int, block: int, contract: bool = True) -> Kernel:
    """The kernel of a source on a device; CuPy caches compiled sources on disk, by their digests."""
    cupy = gpu()
    options = ("--std=c++17", f"--fmad={'true' if contract else 'false'}")
    with cupy.cuda.Device(device):
        function = cupy.RawModule(code=source, options=options).get_function("run")
        processors = cupy.cuda.Device(device).attributes["MultiProcessorCount"]

    def launch(*arguments: Any) -> None:
        count = int(arguments[-1])
        blocks = min(-(-count // block), processors * _BLOCKS_PER_PROCESSOR)
        given = [np.uint64(0) if value is None else value for value in arguments]
        function((max(blocks, 1),), (block,), tuple(given))

    return launch
