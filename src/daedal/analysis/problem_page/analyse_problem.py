"""Analyse a problem before it is solved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from daedal.analysis.conditioning.measure import LocalConditioning, conditioning_of_matrices
from daedal.analysis.problem_page.analysis_page import Analysis, Scaling
from daedal.errors import InconsistentInitialError, InvalidProblemError, StructurallySingularError
from daedal.index.structure.structural_analysis import StructuralAnalysis
from daedal.index.structure.system_equations import SystemEquations, required_equations
from daedal.index.structure.system_jacobian import linearisation, tractability
from daedal.initial.local_structure import LocalStructure, local_structure
from daedal.problems import HessenbergDAE, LinearDAE, MechanicalSystem, SecondOrderDAE, SemiExplicitDAE
from daedal.problems.checks import check_finite, check_vector
from daedal.problems.problem_sources import problem_of

_FORM = "at must be (t, initial), with initial values in the form that solve accepts"


def point_of(problem: Any, equations: SystemEquations, at: Any) -> tuple[float, np.ndarray]:
    """t and, row by row, x, x', ...; NaN for unknown values."""
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


def _by_name(equations: SystemEquations, values: Mapping[str, float]) -> np.ndarray:
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


# --- the analysis -----------------------------------------------------------------------------------------------------

_MOST_COLUMNS = 1000  # maximum number of columns of a derivative array whose ranks are computed, which takes seconds
_MOST_CONDITIONED = 60  # maximum number of unknowns for which the conditioning at the point is computed


def analyse(problem: Any, at: Any = None) -> Analysis:
    """Analyse a problem: structure, index by several definitions, hidden constraints, degrees of freedom, units.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, LinearDAE, SecondOrderDAE, HessenbergDAE or MechanicalSystem
        Its functions must be traceable (see ``problem.functions``). A model of bodies or a circuit is accepted
        directly.
    at : tuple, optional
        (t, initial): the point at which the index is computed, with initial values in the form that
        :func:`daedal.solve` accepts, or a mapping from names to known values, ``(0.0, {"x": 0.6})``. It need not be
        consistent: a consistent point near it is computed. By default t = 0.

    Returns
    -------
    Analysis
        ``print`` shows a page, a notebook adds a picture; its attributes hold the numbers.

    Raises
    ------
    InvalidProblemError
        If the functions of the problem cannot be traced, or `at` has the wrong form.

    Notes
    -----
    The structural index is that of the signature method (J. D. Pryce, BIT 41, 2001, 364-394), given only if its system
    Jacobian is nonsingular (at the point, if there is one). Differentiation and strangeness index come from ranks of
    the derivative array at the point.

    For first-order problems with up to 60 unknowns the page includes their conditioning at the point, if the matrices
    there, taken as constant, have the same index; :func:`daedal.analysis.analyse_conditioning` computes it along a
    solution.

    Equations that do not determine their unknowns because some are redundant, contradictory or missing are accepted:
    the page names them, and `singular` is the exception raised by other functions.

    Examples
    --------
    >>> import daedal
    >>> def pendulum(t, s, sp):
    ...     x, y, u, v, lam = s
    ...     return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + 1, x**2 + y**2 - 1]
    >>> problem = daedal.ImplicitDAE(pendulum, 5, names=["x", "y", "u", "v", "lam"])
    >>> analysis = daedal.analyse(problem, at=(0.0, [0.6, -0.8, 0.4, 0.3, 0.0]))
    >>> analysis.index, analysis.structural_index, analysis.strangeness_index, analysis.degrees_of_freedom
    (3, 3, 2, 2)
    >>> analysis.hidden_constraints[0]
    '2*x*u + 2*y*v = 0'
    """
    problem = problem_of(problem)
    equations = required_equations(problem, "the problem cannot be analysed: a function of it")
    t, rows = point_of(problem, equations, at)
    try:
        structural = StructuralAnalysis.of(equations)
    except StructurallySingularError as error:
        return Analysis(problem, equations, t, None, error)
    local, why = _local(structural, t, rows, given=at is not None)
    if local is None:
        known = not np.isnan(rows).any()
        return Analysis(problem, equations, t, structural.at(t, rows) if known else structural, not_local=why)
    structural = structural.at(t, local.jet)
    scaling = Scaling.of(structural.jacobian.matrix(t, local.jet)) if structural.at_point else None
    chain = tractability(equations, t, local.jet)
    conditioned = _conditioning(equations, t, local)
    return Analysis(problem, equations, t, structural, None, local, "", chain, scaling, conditioned)


analyze = analyse
""":func:`analyse`, in American spelling."""


def _conditioning(equations: SystemEquations, t: float, local: LocalStructure) -> LocalConditioning | None:
    """Conditioning of a small DAE at the point; None if its matrices there do not determine its index."""
    if local.index is None or local.index == 0 or equations.n > _MOST_CONDITIONED:
        return None
    matrices = linearisation(equations, t, local.jet)
    if matrices is None:
        return None
    found = conditioning_of_matrices(*matrices, equations.names)
    return found if found.index == local.index else None


def _local(
    structural: StructuralAnalysis, t: float, rows: np.ndarray, *, given: bool
) -> tuple[LocalStructure | None, str]:
    """The structure at a point, or None and the reason why it is unavailable."""
    equations = structural.given
    columns = equations.n * (int(structural.signature.c.max()) + equations.order + 2)
    if columns > _MOST_COLUMNS:
        return None, f"{equations.n} unknowns are too many to compute ranks of the derivative array"
    try:
        return local_structure(equations, t, rows), ""
    except InconsistentInitialError as error:
        if given:
            return None, str(error)
        return None, "no consistent point was found at t = 0. Remedy: specify one, at=(t, initial)"
    except InvalidProblemError as error:
        return None, str(error)
