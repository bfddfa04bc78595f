"""Sensitivity of a DAE of index 1 or 2 to perturbations along an interval or a solution, with all applicable
constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from daedal.analysis.conditioning.conditioning_result import Conditioning
from daedal.analysis.conditioning.constants import Findings, index1, index2, layer, projector
from daedal.analysis.conditioning.effective_index import ROUND_OFF, THRESHOLD, EffectiveIndex, effective_index, highest
from daedal.analysis.conditioning.semi_explicit_form import (
    Path,
    Rest,
    SemiExplicitForm,
    inverse,
    norm,
    path_of,
    semi_explicit_form,
    splitting,
)
from daedal.common.tabular import Tabular, listing
from daedal.errors import InvalidProblemError
from daedal.index.linear import Pencil, TimeVarying
from daedal.problems import ImplicitDAE, LinearDAE, SemiExplicitDAE
from daedal.solution.solution import Solution


def analyse_conditioning(
    problem: Any, along: Any, *, threshold: float = 1e-3, points: int | None = None
) -> Conditioning:
    r"""The sensitivity of the solution of a DAE to perturbations, and its effective index.

    For :math:`x' = A x + B y + p,\; 0 = C x + D y + q` the result contains bounds of the changes of x and y caused by
    unit changes of the initial values, p, q or q': the constants of the perturbation bounds for index 1 and 2, and for
    problems that formally have one index but behave like those of the next.

    Parameters
    ----------
    problem : LinearDAE, SemiExplicitDAE, ImplicitDAE, linear.Pencil or linear.TimeVarying
        Pencils and time-varying systems are A x' + B x = q. Nonlinear problems are linearised along a solution, with
        exact derivatives if they can be traced.
    along : (float, float) or Solution
        The interval (linear problems only), or a solution.
    threshold : float
        Relative size below which a variable counts as absent from a constraint; this determines the effective index.
    points : int, optional
        Number of points of the grid; 101 for small problems.

    Returns
    -------
    Conditioning
        ``print`` describes it in words, ``.plot()`` over time; ``result["k2"]`` is a constant, ``.advice`` lists
        consequences.

    Notes
    -----
    P. M. E. J. Wijckmans, Conditioning of Differential Algebraic Equations and Numerical Solution of Multibody
    Dynamics, chapters 4 and 5. Norms are Euclidean, maximised over time: choose units such that all unknowns are of
    similar size. Rounding errors of fundamental matrices limit detectable factors to about 1e12.

    Examples
    --------
    >>> import daedal
    >>> found = daedal.analysis.analyse_conditioning(daedal.library.nearly_index2(1e-6).problem, (0.0, 1.0))
    >>> found.index, found.effective_index
    (1, 2)
    >>> print(f"{found['D_inverse']:.3g} {found['layer_k2_hat']:.3g}")  # q that jumps, and smooth q
    1e+06 1
    """
    if not (isinstance(threshold, float | int) and ROUND_OFF < threshold < 1.0):
        raise InvalidProblemError(f"threshold must be a number between {ROUND_OFF:g} and 1, got {threshold!r}")
    system = linearised(problem, along, points)
    path = path_of(system)
    grid = path.grid
    formal = _along(grid, system.constant, ROUND_OFF)
    effective = _along(grid, system.constant, float(threshold))
    index, found = _index(formal), Findings()
    if index is not None and index <= 2:
        found = _findings(path, system.t, formal, effective)
    return Conditioning(
        names=tuple(system.names),
        t=system.t,
        index=index,
        effective=highest(effective),
        indices=np.array([np.nan if one.index is None else one.index for one in effective]),
        formal_indices=np.array([np.nan if one.index is None else one.index for one in formal]),
        constants=found.constants,
        amplification=found.amplification,
        matrices=found.matrices,
        algebraic=grid.V2[0],
        unresolved=path.unresolved,
        is_linear=system.linear,
        has_stabilised_reduction=isinstance(problem, LinearDAE) and problem.n_y <= problem.n_x,
    )


def _along(grid: SemiExplicitForm, constant: bool, threshold: float) -> list[EffectiveIndex]:
    count = len(grid.A)
    some = [
        effective_index(grid.A[k], grid.B[k], grid.C[k], grid.D[k], C_rate=grid.C_rate[k], threshold=threshold)
        for k in range(1 if constant else count)
    ]
    return some * count if constant else some


def _index(formal: list[EffectiveIndex]) -> int | None:
    """The index of the original equations; None if it changes along the grid."""
    kinds = {(one.index, _well_determined(one)) for one in formal}
    return formal[0].index if len(kinds) == 1 else None


def _well_determined(found: EffectiveIndex) -> int:
    return found.levels[0].decision.rank if found.levels else 0


def _findings(
    path: Path,
    t: np.ndarray,
    formal: list[EffectiveIndex],
    effective: list[EffectiveIndex],
) -> Findings:
    if formal[0].index == 2:
        rests = splitting(path.forms, _well_determined(formal[0]), path.t)
        found = index2(path, t, rests)
        if _is_next(effective, 3):
            A, B, C, C_rate = (_grid(path, rests, name) for name in ("A", "B", "C", "C_rate"))
            near = layer(t, B, C @ A + C_rate, C @ B, _places(effective, 3), "Theorem 5.6", "C A B")
            found.constants |= near.constants
        return found
    found = index1(path, t)
    if _is_next(effective, 2):
        rests = splitting(path.forms, min(map(_well_determined, effective)), path.t)
        B, C, D = (_grid(path, rests, name) for name in ("B", "C", "D"))
        near = layer(t, B, C, D, _places(effective, 2), "Theorem 4.6", "C B")
        found.constants |= near.constants
        found.matrices |= {"B": B, "C": C, "D": D}
        k2_hat, F = near.constants["layer_k2_hat"].values, near.constants["layer_F"].values
        smallest = 1.0 / near.constants["layer_bare"].values
        found.amplification["y", "q'"] = k2_hat * norm(_grid(path, rests, "V2"))
        found.amplification["x", "q'"] = smallest * k2_hat * F
    return found


def _places(effective: list[EffectiveIndex], index: int) -> np.ndarray:
    return np.array([one.index == index for one in effective])


def _is_next(effective: list[EffectiveIndex], index: int) -> bool:
    """Whether the effective index is known everywhere and equal to `index` somewhere."""
    found = [one.index for one in effective]
    return None not in found and max(one for one in found if one is not None) == index


def _grid(path: Path, rests: list[Rest], name: str) -> np.ndarray:
    return path.on_grid([getattr(rest, name) for rest in rests])


# --- conditioning at one point: quantities that require no solution --------------------------------------------------


@dataclass(frozen=True, repr=False)
class LocalConditioning:
    """Norms of projectors and the effective index of a DAE at one point; see :func:`local_conditioning`."""

    index: int | None  # index of the original linearised equations, with matrices taken as constant
    effective: EffectiveIndex = field(repr=False)
    # The effective index of each unknown: 0 for differential ones, None for undetermined ones
    variables: dict[str, int | None]
    # Norms by name: D_inverse, D_inverse_C, Ps, G_inverse for index 1; P, F, CB_inverse for index 2
    norms: dict[str, float]

    @property
    def effective_index(self) -> int | None:
        """The highest effective index; None if some variables are undetermined once small numbers are dropped."""
        return self.effective.index

    def rows(self) -> list[tuple[str, str]]:
        """Names and values, for a table."""
        effect = self.effective_index
        found = [("effective index", "none: not all variables are determined" if effect is None else str(effect))]
        if self.effective_index != self.index:
            high = [name for name, index in self.variables.items() if index == self.effective_index]
            found.append(("because of", ", ".join(high[:6]) + ", ..." * (len(high) > 6)))
        return found + [(_WORDS[name], f"{value:.3g}") for name, value in self.norms.items()]

    def __str__(self) -> str:
        return str(Tabular("ll", self.rows()))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return Tabular("ll", self.rows())._repr_html_()


_WORDS = {
    "D_inverse": "|D^-1|, errors of constraints in y",
    "D_inverse_C": "|D^-1 C|, errors of x in y",
    "Ps": "|Ps|, canonical projector",
    "G_inverse": "|G^-1|",
    "P": "|P|, skewness of the constraints",
    "F": "|B (C B)^-1|, errors of constraints in x",
    "CB_inverse": "|(C B)^-1|, their rates in y",
}


def local_conditioning(
    problem: Any, t: float = 0.0, y: Any = None, yp: Any = None, *, threshold: float = THRESHOLD
) -> LocalConditioning:
    """The effective index and the norms of projectors at one point.

    Parameters
    ----------
    problem : LinearDAE, SemiExplicitDAE, ImplicitDAE, linear.Pencil or linear.TimeVarying
    t, y, yp : float, array_like, array_like
        The point; y and y' are not needed for linear problems.
    threshold : float
        See :func:`daedal.analysis.analyse_conditioning`.

    Examples
    --------
    >>> import daedal
    >>> from daedal.analysis.conditioning.measure import local_conditioning
    >>> print(local_conditioning(daedal.library.linear_index2().problem))
    effective index                           2
    |P|, skewness of the constraints          1
    |B (C B)^-1|, errors of constraints in x  1
    |(C B)^-1|, their rates in y              1
    """
    return conditioning_of_matrices(*at_point(problem, t, y, yp), threshold=threshold)


def conditioning_of_matrices(
    E: np.ndarray, F: np.ndarray, names: Sequence[str], *, threshold: float = THRESHOLD
) -> LocalConditioning:
    """Like :func:`local_conditioning`, for E x' + F x = q with given matrices at the point."""
    form, _ = semi_explicit_form(E[None], F[None], 1.0)
    A, B, C, D = form.A[0], form.B[0], form.C[0], form.D[0]
    formal, effective = (effective_index(A, B, C, D, threshold=limit) for limit in (ROUND_OFF, threshold))
    norms: dict[str, np.ndarray] = {}
    if formal.index == 1:
        D_inverse, Q = inverse(D), form.V2[0] @ form.V2[0].T
        G_inverse = inverse(E + F @ Q)
        Ps = np.eye(len(names)) - Q @ G_inverse @ F
        norms = {
            "D_inverse": norm(D_inverse),
            "D_inverse_C": norm(D_inverse @ C),
            "Ps": norm(Ps),
            "G_inverse": norm(G_inverse),
        }
    elif formal.index == 2:
        rest = splitting([form], formal.levels[0].decision.rank, np.array([0.0, 1.0]))[0]
        P, along = projector(rest.B[0], rest.C[0])
        norms = {"P": norm(P), "F": norm(along), "CB_inverse": norm(inverse(rest.C[0] @ rest.B[0]))}
    variables = dict(zip(names, effective.of_variables(form.V2[0]), strict=True))
    return LocalConditioning(formal.index, effective, variables, {name: float(one) for name, one in norms.items()})


# --- a problem as a linear DAE E(t) x' + F(t) x = q: linear problems themselves, others linearised along a solution ---

_POINTS, _FEWER_POINTS, _SMALL = 101, 41, 12  # number of grid points for up to _SMALL unknowns, and for more
_MOST_NAMED = 6
_MOST_UNKNOWNS = 400  # maximum number of unknowns, since all matrices are dense


@dataclass(frozen=True)
class LinearForm:
    """E(t) x' + F(t) x = q on a grid."""

    matrices: Callable[[float], tuple[np.ndarray, np.ndarray]]  # ``matrices(t) -> E, F``
    names: list[str]
    t: np.ndarray  # the grid
    constant: bool  # whether the matrices do not depend on t
    linear: bool  # whether the problem itself is linear
    # Ends of the steps of the method, between which a solution is smooth; empty without a solution
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
    """Reject the solution of another problem; for pencils only the number of unknowns is compared."""
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
    """Times of a grid with about `count` points, distributed like the output points of a solution."""
    times = solution.t[np.concatenate([[True], np.diff(solution.t) != 0.0])]
    if times.size < 2:
        raise InvalidProblemError("the solution has only one point, but conditioning is computed over an interval")
    if times.size >= count:
        return times[np.unique(np.linspace(0, times.size - 1, count).round().astype(int))]
    # additional points in each interval, in proportion to its length
    places = np.linspace(0.0, times.size - 1.0, count)
    return np.interp(np.union1d(places, np.arange(times.size)), np.arange(times.size), times)
