"""Problems whose functions are traced to machine code; description of how functions are evaluated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from daedal.common.tabular import FunctionTable
from daedal.errors import InvalidProblemError
from daedal.kernels.functions import CodedFunction
from daedal.problems import (
    HessenbergDAE,
    ImplicitDAE,
    LinearDAE,
    MechanicalSystem,
    Quasilinear,
    SecondOrderDAE,
    SemiExplicitDAE,
)
from daedal.problems.mechanical import FUNCTIONS
from daedal.symbolic import Untraceable
from daedal.symbolic.tracing import traced_first_order as first_order
from daedal.symbolic.tracing import traced_linear as linear
from daedal.symbolic.tracing import traced_mechanical as mechanical
from daedal.symbolic.tracing.tracer import TracedProblem

_MOST_COORDINATES = 500  # maximum number of coordinates of a traced mechanism

TRACEABLE: Any = (ImplicitDAE, SemiExplicitDAE, SecondOrderDAE, MechanicalSystem, HessenbergDAE, LinearDAE)
"""Classes of problems whose functions can be traced."""


def traced_problem(
    problem: Any, compile: str = "auto", linear_solver: Any = "auto", *, follow: int = 0
) -> TracedProblem | None:
    """The problem with its functions traced; None if tracing is impossible or unnecessary.

    At most `follow` switches are set by data (:mod:`daedal.symbolic.modes`).
    """
    always = compile == "always"
    try:
        traced = _traced(problem, linear_solver, always, follow)
    except Untraceable as reason:  # the problem as a whole cannot be traced
        traced = TracedProblem(problem, None, refused=dict.fromkeys(untraced_words(problem), reason.forgetting()))
        traced.words = {name: f"{kind}: {reason.reason}" for name, kind in untraced_words(problem).items()}
    if always:
        _check_complete(problem, traced)
    return traced


def _traced(problem: Any, linear_solver: Any, always: bool, follow: int) -> TracedProblem | None:
    if isinstance(problem, MechanicalSystem):
        is_recursive = getattr(problem.straight_line, "is_recursive", False)  # machine code that no trace replaces
        if mechanical.is_ready(problem) and (is_recursive or not always):
            return None
        _check_dense(problem)
        return mechanical.traced_system(problem, always=always, follow=follow)
    if isinstance(problem, (HessenbergDAE, LinearDAE)):
        return None if linear.is_ready(problem) else linear.traced_linear(problem, always=always)
    if not isinstance(problem, TRACEABLE) or (first_order.is_ready(problem) and not always):
        return None
    if isinstance(problem, Quasilinear):
        return first_order.traced_quasilinear(problem, linear_solver, always=always, follow=follow)
    if isinstance(problem, ImplicitDAE):
        return first_order.traced_implicit(problem, linear_solver, always=always, follow=follow)
    if isinstance(problem, SemiExplicitDAE):
        return first_order.traced_semi_explicit(problem, linear_solver, always=always, follow=follow)
    return first_order.traced_second_order(problem, linear_solver, always=always)


def _check_dense(system: MechanicalSystem):
    """Raise Untraceable for systems without straight-line code."""
    if system.n_s:
        raise Untraceable("belongs to a system with contact coordinates, which require an iteration", "")
    if hasattr(system.mass, "tocsr"):
        raise Untraceable("belongs to a system with sparse matrices", "")
    if system.n_q > _MOST_COORDINATES:
        raise Untraceable(f"belongs to a system with more than {_MOST_COORDINATES} coordinates", "")


def _check_complete(problem: Any, traced: TracedProblem | None):
    if traced is None:
        return
    for name, reason in traced.refused.items():
        raise InvalidProblemError(f"compile='always': {name} cannot be traced: {reason}") from reason


def compiled_by_trace(problem: Any) -> Any:
    """A permanent version of the problem whose functions are machine code."""
    traced = traced_problem(problem, "always")
    return problem if traced is None else traced.problem


def untraced_words(problem: Any) -> FunctionTable:
    """Description of how the functions of a problem are evaluated without tracing."""
    if isinstance(problem, MechanicalSystem):
        names = [name for name in FUNCTIONS if callable(getattr(problem, name))]
    elif isinstance(problem, (HessenbergDAE, LinearDAE)):
        names = [name for name in problem.shapes if callable(getattr(problem, name))]
    else:
        names = ["f", "g"] if isinstance(problem, SemiExplicitDAE) else ["residual"]
        if isinstance(problem, Quasilinear):
            names = ["f", "mass"] if callable(problem.mass) else ["f"]
        names += ["jacobian"] if getattr(problem, "jacobian", None) is not None else []
    return FunctionTable((name, _kind(getattr(problem, name, None))) for name in names)


def words(problem: Any) -> FunctionTable:
    """Description of how each function is evaluated; for a linear problem, the functions of x' = f, 0 = g."""
    if isinstance(problem, LinearDAE):
        return words(replace(problem.semi_explicit(), jacobian=None))
    traced = traced_problem(problem)
    return FunctionTable(untraced_words(problem) | ({} if traced is None else traced.words))


def _kind(function: Any) -> str:
    if hasattr(function, "operations"):
        return f"traced, {function.operations} operations"
    if isinstance(function, CodedFunction):
        return "machine code"
    return "Numba" if hasattr(function, "py_func") else "Python"
