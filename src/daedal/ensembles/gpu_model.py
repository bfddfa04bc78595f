"""What a GPU integrates: a traced problem with a method and terminal events, as the source of one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.ensembles.gpu_source import METHODS, EventsInC, integrator_source
from daedal.errors import InvalidProblemError
from daedal.events.event import functions_of, named_events, standard_functions
from daedal.methods.rosenbrock import Rosenbrock
from daedal.methods.rosenbrock_tableaux import TABLEAUX
from daedal.methods.runge_kutta import DOPRI5
from daedal.problems import ODE, ImplicitDAE, MechanicalSystem, SemiExplicitDAE
from daedal.problems.checks import check_tolerances
from daedal.symbolic import Untraceable
from daedal.tracing.in_c import ProblemInC, problem_in_c, switching_functions_in_c
from daedal.tracing.problem import traced_problem
from daedal.tracing.tracer import TracedProblem

_SHARP = 1e-5  # relative tolerance below which the method of order 5 takes less time
_OTHERWISE = "use on='threads'"


@dataclass(frozen=True)
class Model:
    """A kernel in the making.

    Attributes
    ----------
    traced : TracedProblem
    code : ProblemInC
    method : str
    events : EventsInC
    source : str
    rtol, atol : numpy.ndarray
        For each entry of the state.
    """

    traced: TracedProblem
    code: ProblemInC
    method: str
    events: EventsInC
    source: str
    rtol: np.ndarray
    atol: np.ndarray


def gpu_model(problem: Any, settings: Any, *, outputs: bool, single: bool = False, **launch: int) -> Model:
    """The model of a problem.

    Parameters
    ----------
    problem : MechanicalSystem, ODE, ImplicitDAE or SemiExplicitDAE
        With functions that can be traced.
    settings : Settings
        Method, tolerances, events.
    outputs : bool
        Whether values are wanted between start and end.
    single : bool
        Single precision.
    **launch : int
        See :func:`daedal.ensembles.gpu_source.integrator_source`.

    Raises
    ------
    InvalidProblemError
        If a GPU cannot do it, with the reason and what can.
    """
    if not isinstance(problem, (MechanicalSystem, ImplicitDAE, SemiExplicitDAE)):
        raise InvalidProblemError(
            f"on='gpu' is for MechanicalSystem, ODE, ImplicitDAE and SemiExplicitDAE, got {type(problem).__name__}: "
            f"{_OTHERWISE}"
        )
    _check_settings(settings)
    rtol, atol = check_tolerances(problem.n, settings.rtol, settings.atol)
    method = _method(settings.method, problem, float(np.min(rtol)))
    try:
        traced = traced_problem(problem, "always") or TracedProblem(problem, None)
        code = problem_in_c(traced, TABLEAUX.get(method), single=single)
    except Untraceable as reason:
        remedy = f"{reason.remedy}, or {_OTHERWISE}" if reason.remedy else _OTHERWISE
        raise InvalidProblemError(f"on='gpu': the problem {reason.reason}: {remedy}") from reason
    except InvalidProblemError as error:
        raise InvalidProblemError(f"on='gpu' needs functions that can be traced. {error}; {_OTHERWISE}") from error
    events = _events(traced, settings.events)
    source = integrator_source(code, method, events, outputs=outputs, single=single, **launch)
    return Model(traced, code, method, events, source, rtol, atol)


def _check_settings(settings: Any) -> None:
    """Refuse what exists on the CPU only."""
    if settings.fixed_step is not None:
        raise InvalidProblemError(f"on='gpu' chooses step sizes by itself: leave fixed_step out, or {_OTHERWISE}")
    form = settings.formulation
    name = form if isinstance(form, str) else getattr(form, "name", "")
    if name not in ("auto", "projection") or (not isinstance(form, str) and getattr(form, "weight", "M") != "M"):
        raise InvalidProblemError(
            "on='gpu' integrates accelerations and projects every step in the norm of M: leave formulation out, or "
            f"{_OTHERWISE}"
        )


def _method(method: Any, problem: Any, rtol: float) -> str:
    is_mechanism = isinstance(problem, MechanicalSystem)
    if isinstance(method, Rosenbrock):
        method = method.variant
    elif isinstance(method, DOPRI5):
        method = method.name
    if method == "auto":
        return "dopri5" if is_mechanism or isinstance(problem, ODE) else "rodas4" if rtol >= _SHARP else "rodas5p"
    if method == "rosenbrock":
        method = Rosenbrock().variant
    if method not in METHODS:
        raise InvalidProblemError(
            f"on='gpu': method must be 'auto', 'dopri5', 'rosenbrock' or daedal.Rosenbrock(...), got {method!r}; or "
            f"{_OTHERWISE}"
        )
    if is_mechanism and method != "dopri5":
        raise InvalidProblemError(f"on='gpu': mechanisms are integrated by 'dopri5', got {method!r}; or {_OTHERWISE}")
    return method


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
            raise InvalidProblemError(f"on='gpu' looks for terminal events only, and {name} is not one: {_OTHERWISE}")
    names, directions, occurrences = zip(*rows)
    return EventsInC(text, names, directions, occurrences)
