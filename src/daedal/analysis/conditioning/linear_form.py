"""A problem as a linear DAE E(t) x' + F(t) x = q: linear problems themselves, others linearised along a solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from daedal.common.tabular import listing
from daedal.errors import InvalidProblemError
from daedal.index.linear import Pencil, TimeVarying
from daedal.problems import ImplicitDAE, LinearDAE, SemiExplicitDAE
from daedal.solution.solution import Solution

_POINTS, _FEWER_POINTS, _SMALL = 101, 41, 12  # number of grid points for up to _SMALL unknowns, and for more
_MOST_NAMED = 6
_MOST_UNKNOWNS = 400  # all matrices are dense


@dataclass(frozen=True)
class LinearForm:
    """E(t) x' + F(t) x = q on a grid."""

    matrices: Callable[[float], tuple[np.ndarray, np.ndarray]]  # ``matrices(t) -> E, F``
    names: list[str]
    t: np.ndarray  # the grid
    constant: bool  # whether the matrices do not depend on t
    linear: bool  # whether the problem itself is linear
    # Times between which a solution is smooth: the steps of the method
    steps: np.ndarray = field(default_factory=lambda: np.zeros(0))


def linearised(problem: Any, along: Any, points: int | None = None) -> LinearForm:
    """The linear DAE of a problem along an interval or a solution."""
    names, n = _names(problem)
    if n > _MOST_UNKNOWNS:
        raise InvalidProblemError(
            f"conditioning uses dense matrices, for up to {_MOST_UNKNOWNS} unknowns; the problem has {n}"
        )
    count = _POINTS if n <= _SMALL else _FEWER_POINTS
    if points is not None:
        if isinstance(points, bool) or not isinstance(points, int | np.integer) or points < 2:
            raise InvalidProblemError(f"points must be a whole number of 2 or more, got {points!r}")
        count = int(points)
    if isinstance(along, Solution):
        _check_solution(along, problem, names)
        grid = _grid_of(along, count)
    else:
        grid = _interval(along, count)
        if isinstance(problem, ImplicitDAE | SemiExplicitDAE):
            raise InvalidProblemError(
                f"{_article(type(problem).__name__)} is linearised along a solution: solve it first and pass the "
                "solution instead of an interval, as in analyse_conditioning(problem, daedal.solve(problem, ...))"
            )
    if isinstance(problem, LinearDAE):
        constant = not any(callable(getattr(problem, name)) for name in "ABCD")
        return LinearForm(_of_linear(problem), names, grid, constant, True)
    if isinstance(problem, Pencil):
        return LinearForm(lambda t: (problem.A, problem.B), names, grid, True, True)
    if isinstance(problem, TimeVarying):
        constant = problem.A.constant is not None and problem.B.constant is not None
        return LinearForm(lambda t: (problem.A(t), problem.B(t)), names, grid, constant, True)
    partials = partials_of(problem)

    def along_solution(t: float) -> tuple[np.ndarray, np.ndarray]:
        return partials(t, along(t)[:n], along(t, derivative=True)[:n])

    steps = along.t if along.history is None else along.history.t
    return LinearForm(along_solution, names, grid, False, False, steps)


def at_point(problem: Any, t: float, y: Any, yp: Any) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """E and F of a problem at one point, and the names of its unknowns."""
    names, n = _names(problem)
    if isinstance(problem, LinearDAE | Pencil | TimeVarying):
        return *linearised(problem, (t, t + 1.0)).matrices(t), names
    vectors = [np.zeros(n) if vector is None else np.asarray(vector, dtype=float) for vector in (y, yp)]
    if any(vector.shape != (n,) or not np.all(np.isfinite(vector)) for vector in vectors):
        raise InvalidProblemError(f"y and yp must hold {n} finite numbers, one for each unknown")
    return *partials_of(problem)(float(t), *vectors), names


def partials_of(problem: Any) -> Callable[[float, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """E = dF/dx' and dF/dx as a function of (t, x, x'): exact if the problem can be traced, otherwise by
    differences."""
    from daedal.analysis.index import partials
    from daedal.symbolic.tracing.problem import traced_problem

    traced = traced_problem(replace(problem, jacobian=None))  # a given matrix cannot be split
    implicit = (problem if traced is None else traced.problem).implicit()

    def value(t: float, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        exact = implicit.exact_partials(t, y, yp)
        return partials(implicit.evaluate, t, y, yp) if exact is None else exact

    return value


def _of_linear(problem: LinearDAE) -> Callable[[float], tuple[np.ndarray, np.ndarray]]:
    E = np.diag(np.repeat([1.0, 0.0], [problem.n_x, problem.n_y]))
    at = problem.coefficient

    def matrices(t: float) -> tuple[np.ndarray, np.ndarray]:
        return E, np.block([[-at("A", t), -at("B", t)], [at("C", t), at("D", t)]])

    return matrices


def _names(problem: Any) -> tuple[list[str], int]:
    if isinstance(problem, Pencil | TimeVarying):
        m, n = problem.shape
        if m != n:
            raise InvalidProblemError(f"conditioning needs as many equations as unknowns, not {m} and {n}")
        return list(problem.names), n
    if not isinstance(problem, LinearDAE | SemiExplicitDAE | ImplicitDAE):
        raise InvalidProblemError(
            "conditioning needs a LinearDAE, a Pencil or TimeVarying of daedal.linear, a SemiExplicitDAE or an "
            f"ImplicitDAE, not {_article(type(problem).__name__)}"
        )
    return [problem.label(i) for i in range(problem.n)], problem.n


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOUaeiou" else f"a {name}"


def _interval(along: Any, count: int) -> np.ndarray:
    try:
        ends = np.asarray(along, dtype=float)
    except (TypeError, ValueError):
        ends = np.zeros(0)
    if ends.shape != (2,) or not np.all(np.isfinite(ends)) or ends[0] == ends[1]:
        raise InvalidProblemError(
            f"the second argument must be a solution or an interval (t0, t1) with t0 different from t1, got {along!r}"
        )
    return np.linspace(ends[0], ends[1], count)


def _check_solution(solution: Solution, problem: Any, names: list[str]) -> None:
    """Reject the solution of another problem; pencils have unknowns with separate names."""
    own = list(solution.names)
    if len(own) != len(names):
        raise InvalidProblemError(
            f"the solution belongs to a different problem: it has {len(own)} unknowns "
            f"({listing(own[:_MOST_NAMED], len(own))}), and the problem has {len(names)} "
            f"({listing(names[:_MOST_NAMED], len(names))})"
        )
    differ = [k for k, name in enumerate(names) if name != own[k]]
    if differ and not isinstance(problem, Pencil | TimeVarying):
        raise InvalidProblemError(
            f"the solution belongs to a different problem: its unknown {differ[0]} is {own[differ[0]]}, that of "
            f"the problem is {names[differ[0]]}. Give both the same names."
        )


def _grid_of(solution: Solution, count: int) -> np.ndarray:
    """Times of a solution, as dense as its steps."""
    times = solution.t[np.concatenate([[True], np.diff(solution.t) != 0.0])]
    if times.size < 2:
        raise InvalidProblemError("the solution has only one point, but conditioning is computed over an interval")
    if times.size >= count:
        return times[np.unique(np.linspace(0, times.size - 1, count).round().astype(int))]
    # additional points in each interval, in proportion to its length
    places = np.linspace(0.0, times.size - 1.0, count)
    return np.interp(np.union1d(places, np.arange(times.size)), np.arange(times.size), times)
