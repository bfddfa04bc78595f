"""The start and other points of a run as function arguments by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from daedal.driver.request import Request
from daedal.initial.mechanical_start import split_mechanical
from daedal.problems import HessenbergDAE, ImplicitDAE, LinearDAE, MechanicalSystem, SecondOrderDAE, SemiExplicitDAE

_FACTORS = {"cj": 1.0, "c1": 1.0, "c2": 1.0}
Parts = dict[str, tuple[Any, int]]
"""Values by argument name, each as (value or None, length)."""


def start_of(problem: Any, request: Request) -> tuple[float, dict[str, Any]] | None:
    """The start of the run; None if its values are invalid, since the run raises the error."""
    try:
        parts = _of_class(_STARTS, problem)(problem, request.initial)
        vectors = {name: _vector(values, n) for name, (values, n) in parts.items()}
    except (TypeError, ValueError):
        return None
    return request.span[0], vectors | _FACTORS


def points_of(problem: Any, solution: Any) -> Iterator[tuple[float, dict[str, Any]]]:
    """The midpoint and the end of a solution."""
    count = solution.t.size
    for i in sorted({count // 2, count - 1}) if count else ():
        yield point_of(problem, solution, i)


def point_of(problem: Any, solution: Any, i: int) -> tuple[float, dict[str, Any]]:
    """The i-th output point of a solution."""
    return float(solution.t[i]), _of_class(_POINTS, problem)(problem, solution, i) | _FACTORS


def bits_of(initial: Any) -> list | None:
    """Key that is equal for equal initial values; None unless they are vectors of floats."""
    known = isinstance(initial, (tuple, list))
    if not known or not all([x is None or (type(x) is np.ndarray and x.dtype == np.float64) for x in initial]):
        return None
    return [None if x is None else (x.shape, x.tobytes()) for x in initial]


# --- by class of the problem ------------------------------------------------------------------------------------------


def _mechanical_start(problem: MechanicalSystem, initial: Any) -> Parts:
    q, v, r, w, _ = split_mechanical(initial)
    parts = {"q": (q, problem.n_q), "v": (v, problem.n_q), "r": (r, problem.n_r), "w": (w, problem.n_w)}
    return parts | {"lam": (None, problem.n_lambda), "a": (None, problem.n_q)}


def _mechanical_point(problem: MechanicalSystem, solution: Any, i: int) -> dict[str, Any]:
    state, n = solution.integrated[i], problem.n_q
    further = {"w": np.ones(problem.n_w), "lam": np.ones(problem.n_lambda)}
    return {"q": state[:n], "v": state[n : 2 * n], "r": state[2 * n :], **further}


def _semi_explicit_start(problem: SemiExplicitDAE, initial: Any) -> Parts:
    y, z = initial
    return {"y": (y, problem.n_y), "z": (z, problem.n_z), "xp": (None, problem.n)}


def _semi_explicit_point(problem: SemiExplicitDAE, solution: Any, i: int) -> dict[str, Any]:
    y = solution.y[:, i]
    return {"y": y[: problem.n_y], "z": y[problem.n_y :], "xp": _slope(solution, i)}


def _second_order_start(problem: SecondOrderDAE, initial: Any) -> Parts:
    x, xp = initial
    return {"x": (x, problem.n), "xp": (xp, problem.n), "xpp": (None, problem.n)}


def _second_order_point(problem: SecondOrderDAE, solution: Any, i: int) -> dict[str, Any]:
    return dict(zip(("x", "xp", "xpp"), solution.split(i)))


def _implicit_start(problem: ImplicitDAE, initial: Any) -> Parts:
    y, yp = initial
    return {"y": (y, problem.n), "yp": (yp, problem.n)}


def _implicit_point(problem: ImplicitDAE, solution: Any, i: int) -> dict[str, Any]:
    return {"y": solution.y[:, i], "yp": _slope(solution, i)}


def _nothing(problem: Any, *_: Any) -> dict[str, Any]:
    """No arguments, for problems whose coefficients depend on time only."""
    return {}


_STARTS: dict[type, Callable[[Any, Any], Parts]] = {
    MechanicalSystem: _mechanical_start,
    SemiExplicitDAE: _semi_explicit_start,
    SecondOrderDAE: _second_order_start,
    ImplicitDAE: _implicit_start,
    HessenbergDAE: _nothing,
    LinearDAE: _nothing,
}
_POINTS: dict[type, Callable[[Any, Any, int], dict[str, Any]]] = {
    MechanicalSystem: _mechanical_point,
    SemiExplicitDAE: _semi_explicit_point,
    SecondOrderDAE: _second_order_point,
    ImplicitDAE: _implicit_point,
    HessenbergDAE: _nothing,
    LinearDAE: _nothing,
}


def _of_class(table: dict[type, Any], problem: Any) -> Any:
    return next(table[kind] for kind in type(problem).__mro__ if kind in table)


def _vector(values: Any, n: int) -> np.ndarray:
    vector = np.zeros(n) if values is None else np.array(values).reshape(-1)
    if np.iscomplexobj(vector):
        raise ValueError
    vector = vector.astype(float)
    if vector.size != n or not np.isfinite(vector).all():
        raise ValueError
    return vector


def _slope(solution: Any, i: int) -> np.ndarray:
    """y' at one point, without computing the others if possible."""
    single = getattr(solution, "slope", None)
    return solution.yp[:, i] if single is None else single(i)
