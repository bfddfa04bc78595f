"""The point at which a problem is analysed: initial values as ``solve`` takes them, as x, x', ... on the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems import HessenbergDAE, LinearDAE, MechanicalSystem, SecondOrderDAE, SemiExplicitDAE
from daedal.problems.checks import check_finite, check_vector
from daedal.structure.equations import Equations

_FORM = "at must be (t, initial), with initial values in the form that solve takes"


def point_of(problem: Any, equations: Equations, at: Any) -> tuple[float, np.ndarray]:
    """t, and x, x', ... row by row; NaN where nothing is known."""
    if at is None:
        return 0.0, np.full((1, equations.n), np.nan)
    if not isinstance(at, (tuple, list)) or len(at) != 2 or np.ndim(at[0]) != 0:
        raise InvalidProblemError(f"{_FORM}, got {at!r}")
    t, initial = check_finite(at[0], "t of at"), at[1]
    if isinstance(initial, Mapping):
        return t, _by_name(equations, initial)
    first, second = initial if isinstance(initial, tuple) and len(initial) == 2 else (initial, None)
    rows = np.full((equations.order + 1, equations.n), np.nan)
    if isinstance(problem, HessenbergDAE):
        levels = check_vector(first, problem.n, "the state of at").reshape(problem.order, problem.n_x)
        rows[: problem.order, : problem.n_x] = levels
    elif isinstance(problem, MechanicalSystem):
        _fill(rows[0, : problem.n_q], first, "q0")
        _fill(rows[1, : problem.n_q], second, "v0")
    elif isinstance(problem, (SemiExplicitDAE, LinearDAE)):
        n = problem.n_y if isinstance(problem, SemiExplicitDAE) else problem.n_x
        _fill(rows[0, :n], first, "the first initial values")
        _fill(rows[0, n:], second, "the second initial values")
    else:
        _fill(rows[0], first, "x0" if isinstance(problem, SecondOrderDAE) else "y0")
        _fill(rows[1], second, "v0" if isinstance(problem, SecondOrderDAE) else "yp0")
    return t, rows


def _by_name(equations: Equations, values: Mapping[str, float]) -> np.ndarray:
    """Values of some unknowns, ``x`` or ``x'``."""
    rows = np.full((equations.order + 1, equations.n), np.nan)
    for name, value in values.items():
        bare = name.rstrip("'")
        order = len(name) - len(bare)
        if bare not in equations.names or order > equations.order:
            raise InvalidProblemError(f"at names '{name}', which is not among the unknowns {equations.names}")
        rows[order, equations.names.index(bare)] = check_finite(value, f"{name} of at")
    return rows


def _fill(target: np.ndarray, values: Any, name: str) -> None:
    if values is not None:
        target[:] = check_vector(values, target.size, f"{name} of at", label=lambda i: f"{name}[{i}]")
