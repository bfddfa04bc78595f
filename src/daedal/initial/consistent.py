"""Check, complete and correct initial values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from daedal.analysis.diagnosis import describe_inconsistency
from daedal.analysis.index import judge
from daedal.analysis.wording import NEEDED
from daedal.errors import InconsistentInitialError, InvalidProblemError, NotFiniteError
from daedal.initial.mechanical_start import consistent_state, split_mechanical
from daedal.initial.newton_start import (
    InitialResult,
    damped_euler_step,
    newton_initial,
    newton_with_given_slope,
    weighted_size,
)
from daedal.initial.second_order_start import consistent_second_order, held_values, split_second_order
from daedal.initial.sparse_start import consistent_sparse
from daedal.initial.unknown_z import REMEDY, TRIED, evaluable_guesses, not_finite
from daedal.initial.variable_kinds import (
    LARGEST_DENSE,
    algebraic_variables,
    evaluate_or_nan,
    partials_of,
    refuse_wrong_algebraic,
    time_scale,
)
from daedal.mechanics.sparse.sparse_workspace import is_sparse
from daedal.methods.workspace import Workspace
from daedal.problems import ImplicitDAE, LinearDAE, MechanicalSystem, Quasilinear, SecondOrderDAE, SemiExplicitDAE
from daedal.problems.checks import check_finite, check_mask, check_tolerances, check_vector, paired
from daedal.problems.symbols import check_values

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from daedal.initial.mechanical_start import MechanicalStart
    from daedal.problems.problem_sources import Problem


NO_UNIQUE_SOLUTION = "The problem has no unique solution: "
_ARRAY_IS_CHEAP = 50  # number of unknowns up to which the derivative array is built before determining ranks
_LARGEST_SVD = 60  # number of unknowns up to which singular values are computed
_TOLERATED = 0.33  # weighted size below which a correction counts as within the tolerance of Newton's method


@overload
def consistent_initial(
    problem: MechanicalSystem,
    t0: float,
    initial: Any,
    *,
    fixed: str | Sequence[int | str | bool] | np.ndarray | None = None,
    equations: Any = None,
    rtol: ArrayLike = 1e-6,
    atol: ArrayLike = 1e-9,
    weight: ArrayLike = "mass",
) -> MechanicalStart: ...
@overload
def consistent_initial(
    problem: SecondOrderDAE,
    t0: float,
    initial: Any,
    *,
    fixed: str | Sequence[int | str | bool] | np.ndarray | None = None,
    equations: Any = None,
    rtol: ArrayLike = 1e-6,
    atol: ArrayLike = 1e-9,
    weight: ArrayLike = "mass",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
@overload
def consistent_initial(
    problem: Problem,
    t0: float,
    initial: Any,
    *,
    fixed: str | Sequence[int | str | bool] | np.ndarray | None = None,
    equations: Any = None,
    rtol: ArrayLike = 1e-6,
    atol: ArrayLike = 1e-9,
    weight: ArrayLike = "mass",
) -> tuple[np.ndarray, np.ndarray]: ...
def consistent_initial(
    problem: Any,
    t0: float,
    initial: Any,
    *,
    fixed: Any = None,
    equations: Any = None,
    rtol: ArrayLike = 1e-6,
    atol: ArrayLike = 1e-9,
    weight: ArrayLike = "mass",
) -> Any:
    r"""Consistent initial values near the given ones.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, LinearDAE, SecondOrderDAE or MechanicalSystem
    t0 : float
    initial : tuple
        (y0, yp0), (y0, z0) for a semi-explicit problem, (x0, y0) for a linear one, (q0, v0) for a mechanical system
        (followed by r0, w0 and lam0 if it has them), (x0, xp0) for a second-order one; the second may be None or
        omitted.
    fixed : None, "derivative", mask, or list of variables
        Values to keep. By default the differential variables: their derivatives and the algebraic variables are
        computed (Brown, Hindmarsh and Petzold). "derivative" keeps y' and computes y: with y' = 0 a steady state. A
        mask or list of variables keeps these and lets all other values change as far as the equations and their
        derivatives require; derivatives of an implicit problem are named like "x'", or have indices from n on. A
        mechanical system keeps nothing by default; its velocities are named like "x'", or have indices from n_q on, as
        in a second-order problem, where x of order 0, x' of order 1 and x'' are always computed.
    equations : "steady", mapping, function, or list of these, optional
        Additional equations for the initial values, which may then all change except the `fixed` ones: ``"steady"``
        makes all derivatives zero; a mapping gives values of variables and derivatives by name, ``{"x'": 0.0}``; a
        function ``B(t, y, yp)``, ``B(t, y, z)`` or ``B(t, q, v)``, followed by parameters, returns values that must be
        zero. If there are fewer equations than degrees of freedom, the values nearest to the given ones are computed.
    rtol, atol : float or array
        Tolerances that define the weights.
    weight : "mass", "identity" or matrix
        For a mechanical system, the norm in which the change of q and v is minimised.

    Returns
    -------
    (y0, yp0), or (y0, z0) for a semi-explicit problem, (x0, y0) for a linear one, (x0, xp0, xpp0) for a second-order
    one, or for a mechanical system a :class:`~daedal.solution.MechanicalStart` with q, v, a, lam; its
    ``initial`` can be passed to :func:`daedal.solve`.

    Raises
    ------
    InconsistentInitialError
        If no consistent values are found near the given ones.

    Examples
    --------
    >>> import daedal
    >>> problem = daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [z[0] ** 2 - y[0]], 1, 1)
    >>> y0, z0 = daedal.consistent_initial(problem, 0.0, ([4.0], [1.0]))
    >>> print(y0, z0.round(6))
    [4.] [2.]
    """
    with np.errstate(all="ignore"):  # trial values may be outside the domain
        if equations is not None:
            return _from_equations(problem, check_finite(t0, "t0"), initial, fixed, equations)
        return _consistent_initial(problem, t0, initial, fixed, rtol, atol, weight)


def corrected_initial(problem, t0: float, initial, *, reach: float, rtol=1e-6, atol=1e-9):
    """:func:`consistent_initial`, except that differential variables change, by a weighted size of up to `reach`, if
    constraints require it.
    """
    with np.errstate(all="ignore"):
        return _consistent_initial(problem, t0, initial, None, rtol, atol, "mass", reach)


def _consistent_initial(problem, t0: float, initial, fixed, rtol, atol, weight, reach: float = 0.0):
    check_values(getattr(problem, "params", None))
    initial = paired(problem, initial)
    if isinstance(problem, MechanicalSystem):
        q0, v0, r0, w0, lam0 = split_mechanical(initial)
        if hasattr(problem.mass, "tocsr") or is_sparse(problem, check_finite(t0, "t0"), initial):
            return _sparse_state(problem, t0, q0, v0, fixed, weight)
        return consistent_state(problem, t0, q0, v0, fixed=fixed, weight=weight, r0=r0, w0=w0, lam0=lam0)
    if isinstance(problem, SecondOrderDAE):
        return _second_order(problem, t0, initial, fixed, rtol, atol)
    if isinstance(problem, LinearDAE):
        problem = problem.semi_explicit()
    if not isinstance(problem, (ImplicitDAE, SemiExplicitDAE)):
        raise InvalidProblemError(
            "problem must be an ImplicitDAE, a SemiExplicitDAE, a LinearDAE, a SecondOrderDAE or a MechanicalSystem, "
            f"got {type(problem).__name__}"
        )
    if isinstance(problem, Quasilinear):
        initial = problem.pair(initial)
    implicit = problem.implicit()
    t0 = check_finite(t0, "t0")
    y0, yp0 = split_initial(problem, initial)
    unknown_z = False
    if isinstance(problem, SemiExplicitDAE) and initial[1] is None:
        unknown_z = True
        y0 = next(evaluable_guesses(problem, t0, y0))
    n = implicit.n
    rtol, atol = check_tolerances(n, rtol, atol)
    workspace = Workspace(implicit)
    start = np.zeros(n) if yp0 is None else yp0
    check_start(problem, workspace, t0, y0, start)
    if isinstance(problem, ImplicitDAE) and problem.algebraic is not None:
        refuse_wrong_algebraic(implicit, t0, y0, start)
    weights = np.maximum(rtol * np.abs(y0) + atol, 1e-15 * max(1.0, float(np.max(np.abs(y0)))))
    h = 1e-6 * ((time_scale(implicit, t0, y0, start, weights) if n <= LARGEST_DENSE else None) or max(1.0, abs(t0)))
    if isinstance(fixed, str):
        if fixed != "derivative":
            raise InvalidProblemError(f"fixed={fixed!r} is unknown; use 'derivative', a mask or a list of variables")
        result = newton_with_given_slope(workspace, t0, y0, start, h, weights)
    elif fixed is None:
        result = complete(workspace, t0, y0, start, h, weights, trace=True, reach=reach)
        if unknown_z and not result.converged:
            result = _complete_from_other_guesses(problem, workspace, t0, y0, start, h, weights)
    else:
        result = _hold(problem, implicit, t0, y0, start, fixed, weights)
    if not result.converged:
        what = "no consistent initial values were found near the given ones"
        _refuse(implicit, t0, y0, start, weights, what, unknown_z, refusal=result.refusal)
    if isinstance(problem, SemiExplicitDAE):
        return result.y[: problem.n_y], result.y[problem.n_y :]
    return result.y, result.yp


def _from_equations(problem, t0: float, initial, fixed, equations):
    """Initial values that satisfy additional equations, in the form of :func:`consistent_initial`."""
    from daedal.initial.start_equations import solve_with_equations

    check_values(getattr(problem, "params", None))
    initial = paired(problem, initial)
    if isinstance(problem, LinearDAE):
        problem = problem.semi_explicit()
    if isinstance(problem, MechanicalSystem):
        q, v, r, w, lam = split_mechanical(initial)
        sizes = {"q0": problem.n_q, "r0": problem.n_r, "w0": problem.n_w, "lam0": problem.n_lambda}
        vectors = zip((q, r, w, lam), sizes.items(), strict=True)
        x0 = np.concatenate([_guess(x if x is None else check_vector(x, n, name), n) for x, (name, n) in vectors])
        v = v if v is None else check_vector(v, problem.n_q, "v0")
        given = np.array([x0, _guess(v, x0.size)])
    elif isinstance(problem, SecondOrderDAE):
        x0, xp0, xpp0 = split_second_order(problem, initial)
        given = np.array([x0, xp0, _guess(xpp0, x0.size)])
    elif isinstance(problem, (ImplicitDAE, SemiExplicitDAE)):
        y0, yp0 = split_initial(problem, problem.pair(initial) if isinstance(problem, Quasilinear) else initial)
        if isinstance(problem, SemiExplicitDAE) and initial[1] is None:
            y0 = np.concatenate([y0[: problem.n_y], np.full(problem.n_z, np.nan)])
        given = np.array([y0, _guess(yp0, y0.size)])
    else:
        raise InvalidProblemError(f"equations are not available for a {type(problem).__name__}")
    jet = solve_with_equations(problem, t0, given, fixed, equations)
    if isinstance(problem, MechanicalSystem):
        n = problem.n_q
        states = np.split(jet[0], np.cumsum([n, problem.n_r, problem.n_w]))
        return consistent_state(problem, t0, states[0], jet[1, :n], r0=states[1], w0=states[2], lam0=states[3])
    if isinstance(problem, SemiExplicitDAE):
        return jet[0, : problem.n_y], jet[0, problem.n_y :]
    return tuple(jet[: 3 if isinstance(problem, SecondOrderDAE) else 2])


def _guess(values: Any, n: int) -> np.ndarray:
    """Given values, followed by NaN for unknown ones."""
    found = np.zeros(0) if values is None else np.asarray(values, dtype=float)
    return np.concatenate([found, np.full(n - found.size, np.nan)])


def _second_order(problem: SecondOrderDAE, t0, initial, fixed, rtol, atol):
    """(x, x', x'') by the method for index 3 and below or, if that fails, from the exact derivative array."""
    try:
        return consistent_second_order(problem, t0, initial, fixed, rtol, atol)
    except InconsistentInitialError:
        from daedal.initial.array_start import exact_second_order

        x0, xp0, _ = split_second_order(problem, initial)
        found = exact_second_order(problem, check_finite(t0, "t0"), [x0, xp0], held_values(problem, fixed))
        if found is None:
            raise
        return tuple(found)


def _sparse_state(system: MechanicalSystem, t0, q0, v0, fixed, weight):
    """Consistent state of a system with sparse matrices."""
    if fixed is not None:
        raise InvalidProblemError("fixed is not available for systems with sparse matrices; omit it")
    if not (isinstance(weight, str) and weight == "mass"):
        raise InvalidProblemError(
            "systems with sparse matrices are projected in the norm of the mass matrix: omit weight"
        )
    return consistent_sparse(system, check_finite(t0, "t0"), q0, v0)


def split_initial(problem, initial) -> tuple[np.ndarray, np.ndarray | None]:
    """y0, with z0 appended for a semi-explicit problem, and y'0 if given; checked for shape and NaN."""
    if not isinstance(initial, (tuple, list)) or len(initial) != 2:
        what = "(y0, z0)" if isinstance(problem, SemiExplicitDAE) else "(y0, yp0)"
        raise InvalidProblemError(f"initial must be a pair {what}; the second may be None")
    first, second = initial
    if isinstance(problem, SemiExplicitDAE):
        y = check_vector(first, problem.n_y, "y0", names=problem.names)
        z = np.zeros(problem.n_z) if second is None else check_vector(second, problem.n_z, "z0")
        return np.concatenate([y, z]), None
    y = check_vector(first, problem.n, "y0", names=problem.names)
    return y, None if second is None else check_vector(second, problem.n, "yp0", names=problem.names)


def prepare_initial(
    problem, workspace: Workspace, t0: float, y0, yp0, weights, h: float, correct: bool, masked=None, unknown_z=False
):
    """Complete, check and, if requested, correct the initial values of an integration.

    Values that satisfy the equations to round-off (:meth:`Workspace.is_consistent`) are returned directly.

    `masked` components are excluded from the error test and from this check; with `unknown_z` the algebraic variables
    of a semi-explicit problem are to be computed.
    """
    implicit = workspace.problem
    start = np.zeros(implicit.n) if yp0 is None else yp0
    check_start(problem, workspace, t0, y0, start)
    if np.any(weights <= 0.0):
        return y0, start  # the integrator reports the zero weight with the variable's name
    large = isinstance(problem, SemiExplicitDAE) and problem.n > LARGEST_DENSE
    if large and yp0 is None and not (correct or unknown_z):
        # y' = f; Newton's method does not support index 2 and might change the given z
        yp0 = start = np.r_[problem.slope(t0, y0[: problem.n_y], y0[problem.n_y :]), np.zeros(problem.n_z)]
    if yp0 is None or correct:
        # with a small artificial step, the iteration matrix is that of the exact Newton method
        reach = np.inf if correct else _TOLERATED
        result = complete(workspace, t0, y0, start, 1e-3 * h, weights, reach=reach)
        if not result.converged and yp0 is None and not unknown_z and implicit.n > LARGEST_DENSE:
            stepped = damped_euler_step(workspace, t0, y0, start, h, weights)
            if stepped is not None:
                result = InitialResult(y0, stepped[2], True, 0.0)
        if not result.converged and unknown_z:
            result = _complete_from_other_guesses(problem, workspace, t0, y0, start, 1e-3 * h, weights)
        if not result.converged:
            taken = frozenset({"correct_initial"} if correct else {"None"})
            what = "the initial derivative could not be computed"
            _refuse(implicit, t0, y0, start, weights, what, unknown_z, taken, result.refusal)
        if not (correct or unknown_z):
            moved = y0 - result.y if result.guesses is None else np.where(result.guesses, 0.0, y0 - result.y)
            _check_size(implicit, t0, y0, result.yp, moved, weights, masked, slope_is_free=True)
            return y0 if result.guesses is None else result.y, result.yp
        return result.y, result.yp
    r = workspace.residual(t0, y0, start)
    if r is not None and _above_roundoff(workspace, t0, y0, start, r):
        inverse = 1.0 / weights
        if workspace.prepare(t0, y0, start, r, 1.0 / h, h, inverse):
            delta = workspace.solve(t0, y0, start, r, 1.0 / h, inverse)
            if delta is not None:
                _check_size(implicit, t0, y0, start, delta, weights, masked)
    return y0, start


def check_start(problem, workspace: Workspace, t0: float, y0: np.ndarray, yp0: np.ndarray):
    """Call the user's functions once, so that a wrong shape or type is reported first."""
    if isinstance(problem, SemiExplicitDAE):
        bad = not_finite(problem, t0, y0)
        if bad is not None:
            raise NotFiniteError(f"{bad} at the initial values (t = {t0:g})")
    workspace.check_functions(t0, y0, yp0)


_GOLDEN = 0.6180339887498949


def _above_roundoff(workspace, t, y, yp, r) -> bool:
    """Whether the residual exceeds the rounding errors of its terms, estimated by a small relative change."""
    small = np.sqrt(np.finfo(float).eps)
    # uneven increments, so that terms do not cancel accidentally
    uneven = small * (1.0 + np.arange(y.size) * _GOLDEN % 1.0)
    changed = workspace.residual(t, y * (1.0 + uneven), yp * (1.0 - 2.0 * uneven))
    if changed is None:
        return True
    r[np.abs(r) <= 100.0 * small * np.abs(changed - r)] = 0.0
    return bool(r.any())


def complete(workspace, t, y, yp, h, weights, *, trace: bool = False, reach: float = 0.0) -> InitialResult:
    """Complete differential variables by Newton's method, the structure or, in small problems, the derivative array.

    If `trace`, functions that are not machine code may be traced. Differential variables that violate constraints
    change as little as required, with a weighted size of up to `reach`.
    """
    problem = workspace.problem
    slopes = _linear_slopes(workspace, t, y, yp)
    if slopes is not None:
        return InitialResult(y, slopes, True, 0.0)
    large = problem.n > LARGEST_DENSE
    stages = _stages(problem, trace and large)
    if stages is not None and stages.has_hidden_constraints:  # Newton's method does not detect hidden constraints
        found = from_structure(problem, t, y, yp, weights, trace, reach)
        if found is not None:
            return found
    algebraic = algebraic_variables(problem, t, y, yp)
    result = newton_initial(workspace, t, y, yp, algebraic, h, weights)
    if result.converged and (large or not index_above_one(problem, t, result, algebraic, weights, abs(h))):
        return result
    found = from_structure(problem, t, y, yp, weights, trace, reach)
    if found is not None or large:
        return found or result
    open_variables = _undetermined(problem, t, y, yp, 1e3 * abs(h)) if problem.n > _ARRAY_IS_CHEAP else ""
    if open_variables:
        raise InconsistentInitialError(f"initial values cannot be completed at t = {t:g}. {open_variables}")
    found = _from_array(problem, t, y, yp, ~algebraic, None, weights, trace, h)
    if found.refusal is not None and reach > 0.0:
        moved = _from_array(problem, t, y, yp, np.zeros(problem.n, dtype=bool), None, weights, trace, h)
        change = np.where(algebraic, 0.0, moved.y - y)
        if moved.converged and weighted_size(change, weights) <= reach:
            found = replace(moved, guesses=np.zeros(problem.n, dtype=bool))
    return found


def from_structure(problem, t, y, yp, weights, trace: bool, reach: float) -> InitialResult | None:
    """Complete by the structure of the problem, if its functions are traced or `trace` permits it; None on failure.

    States that violate their constraints may change by a weighted size of up to `reach`.
    """
    from daedal.initial.array_start import agrees

    stages = _stages(problem, trace)
    found = None if stages is None else stages.solve(t, y, yp, weights, reach)
    if found is None or _is_traced(problem):
        return found
    return found if agrees(problem, t, found.y, found.yp, np.maximum(np.abs(y), 1e3 * weights)) else None


def _stages(problem, trace: bool) -> Any:
    """Stages that complete the start by the structure; None unless functions are traced or `trace` permits it."""
    from daedal.index.structure.system_equations import equations_of
    from daedal.initial.structural_start import StructuralStart

    equations = equations_of(problem) if trace or _is_traced(problem) else None
    return None if equations is None else StructuralStart.of(equations)


def _is_traced(problem) -> bool:
    return hasattr(problem.residual, "operations")


def _undetermined(problem, t, y, yp, time=1.0) -> str:
    """A note that the solution is not unique, and why; empty if the equations determine the solution."""
    from daedal.analysis.undetermined import in_words, undetermined

    found = undetermined(problem, [(t, y, yp)], time)
    return "" if found is None else f"{NO_UNIQUE_SOLUTION}{in_words(problem, found)}"


def _from_array(problem, t, y, yp, fixed, fixed_slope, weights, trace: bool, h: float = np.inf) -> InitialResult:
    """Complete by the derivative array, exact if functions are traced or `trace` permits it, otherwise by differences.

    Differences are taken on the side of t + h, within a distance of 1000 h.
    """
    from daedal.initial.array_start import HIGHEST_INDEX, difference_array_initial, exact_array_initial

    masks: dict[str, Any] = {"fixed": fixed, "fixed_slope": fixed_slope, "weights": weights}
    where: dict[str, Any] = {"side": np.sign(h), "longest": 1e3 * abs(h)}
    if trace or hasattr(problem.residual, "operations"):
        exact = exact_array_initial(problem, t, y, yp, **masks)
        if exact is not None:
            return exact
    result = difference_array_initial(problem, t, y, yp, **masks, **where, index=2)
    found = judge(*partials_of(problem, t, result.y, result.yp, weights=weights)) if result.converged else None
    if found is None or found.index != HIGHEST_INDEX:
        return result
    return difference_array_initial(problem, t, result.y, result.yp, **masks, **where, index=HIGHEST_INDEX)


def _linear_slopes(workspace, t, y, yp) -> np.ndarray | None:
    """Compute y' from one linear system with exact derivatives; None if y would have to change."""
    problem = workspace.problem
    exact = problem.exact_partials(t, y, yp) if problem.n <= LARGEST_DENSE else None
    r = None if exact is None else workspace.residual(t, y, yp)
    if exact is None or r is None:
        return None
    [changes], [solved] = linear_slopes(problem, exact[0][None], exact[1][None], r[None])
    slopes = yp + changes
    return slopes if solved and workspace.is_consistent(t, y, slopes) else None


def linear_slopes(problem, e: np.ndarray, b: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The change of y' that makes residuals r zero, with e = dF/dy' and b = dF/dy, and whether it exists.

    All arrays have a leading axis for many points. The slopes of algebraic variables are unchanged.
    """
    algebraic = ~np.any(e, axis=1) if problem.algebraic is None else np.broadcast_to(problem.algebraic, r.shape)
    combined = np.where(algebraic[:, None, :], b, e)
    solved: np.ndarray = np.asarray(np.isfinite(combined).all(axis=(1, 2)))
    solved[solved] = ~_are_nearly_singular(combined[solved])
    changes = np.zeros_like(r)
    changes[solved] = -np.linalg.solve(combined[solved], r[solved][:, :, None])[:, :, 0]
    return np.where(algebraic, 0.0, changes), solved


def _complete_from_other_guesses(problem, workspace, t, x, xp, h, weights) -> InitialResult:
    """Search for z from all guesses except the first, until an iteration converges; return the last result."""
    result = InitialResult(x, xp, False, np.inf)
    for guess in islice(evaluable_guesses(problem, t, x), 1, None):
        result = complete(workspace, t, guess, xp, h, weights)
        if result.converged:
            break
    return result


def index_above_one(problem, t, result, algebraic, weights, time) -> bool:
    """Whether dF/dv and dF/du' together appear singular: then y' must satisfy a hidden constraint."""
    e, b = partials_of(problem, t, result.y, result.yp, weights=weights, time_scale=1e3 * time)
    combined = np.where(algebraic[None, :], b, e)
    if not np.all(np.isfinite(combined)):
        return False
    return bool(_are_nearly_singular(combined[None])[0])


def _are_nearly_singular(matrices: np.ndarray) -> np.ndarray:
    """Which of the matrices are singular to nine digits after scaling of rows and columns."""
    matrices = matrices / np.maximum(np.abs(matrices).max(axis=2, keepdims=True), 1e-300)
    matrices = matrices / np.maximum(np.abs(matrices).max(axis=1, keepdims=True), 1e-300)
    if matrices.shape[1] > _LARGEST_SVD:
        from daedal.initial.structural_start import reciprocal_condition

        return np.array([reciprocal_condition(matrix) <= 1e-9 for matrix in matrices])
    singular = np.linalg.svd(matrices, compute_uv=False)
    return singular[:, -1] <= 1e-9 * singular[:, 0]


def _hold(problem, implicit, t, y, yp, fixed, weights) -> InitialResult:
    """Complete the start with some values of y and y' fixed."""
    n = implicit.n
    if n > LARGEST_DENSE:
        raise InvalidProblemError(f"fixed is available for at most {LARGEST_DENSE} unknowns, but the problem has {n}")
    names = [implicit.label(j) for j in range(n)]
    short = np.asarray(fixed).dtype == bool and np.shape(fixed) == (n,)
    both = [*names, *(f"{name}'" for name in names)]
    held = check_mask([*fixed, *np.zeros(n, dtype=bool)] if short else fixed, 2 * n, "fixed", both)
    if held[n:].any() and isinstance(problem, SemiExplicitDAE):
        raise InvalidProblemError(
            "fixed contains names of derivatives, but the initial values of a SemiExplicitDAE have none"
        )
    return _from_array(implicit, t, y, yp, held[:n], held[n:], weights, True)


def _check_size(problem, t, y, yp, delta, weights, masked, slope_is_free=False):
    """Raise an error if the start needs a correction `delta` above the tolerance."""
    judged = np.where(masked, 0.0, delta) if masked is not None else delta
    if weighted_size(judged, weights) > _TOLERATED:
        if slope_is_free:
            yp = best_slope(problem, t, y, yp)
        residual = problem.evaluate(t, y, yp)
        taken = frozenset({"None"} if slope_is_free else ())
        message, equations = describe_inconsistency(problem, t, y, yp, residual, delta, weights, taken)
        message = "\n".join(filter(None, [message, _undetermined(problem, t, y, yp)]))
        raise InconsistentInitialError(message, equations, residual)


def best_slope(problem, t, y, yp) -> np.ndarray:
    """The y' with the smallest residual, so that only equations violated by y are named."""
    if problem.n > LARGEST_DENSE:
        return yp
    e, _ = partials_of(problem, t, y, yp)
    residual = evaluate_or_nan(problem, t, y, yp)
    if not (np.all(np.isfinite(e)) and np.all(np.isfinite(residual))):
        return yp
    return yp - np.linalg.lstsq(e, residual, rcond=1e-9)[0]


def _refuse(problem, t, y, yp, weights, what, unknown_z=False, taken=frozenset({"correct_initial"}), refusal=None):
    """Raise the error for initial values that cannot be computed; `taken` holds the remedies already applied."""
    residual = problem.evaluate(t, y, yp)
    message, equations = describe_inconsistency(problem, t, y, yp, residual, np.zeros(problem.n), weights, taken)
    open_variables = _undetermined(problem, t, y, yp)
    if open_variables:
        raise InconsistentInitialError(f"{what} at t = {t:g}. {open_variables}", equations, residual)
    tried = f" {TRIED}. {REMEDY}." if unknown_z else ""
    if refusal is not None:  # more specific, but without numbers
        changes = [line for line in message.splitlines() if line.startswith(NEEDED)]
        words = "\n".join([f"{what}: {refusal}{tried}", *changes])
        raise InconsistentInitialError(words, refusal.equations, residual) from refusal
    raise InconsistentInitialError(f"{what} at t = {t:g}.{tried}\n{message}", equations, residual)
