"""The local index of ``F(t, y, y') = 0``: that of the linearised equations ``E y' + B y`` at one point.

The index is the number of differentiations after which the equations determine all derivatives ``y'``. A row of ``E``
that is zero, or becomes zero in a combination of rows, is a constraint: an equation without derivatives. Constraints
and as many unknowns are removed; if the remaining system contains constraints, these are hidden ones, which appear only
when the first constraints are differentiated. The number of rounds is the index. Only orthogonal transformations are
used (the staircase form of P. Van Dooren, Linear Algebra and its Applications 27, 1979, for the infinite part of a
pencil), so that rounding errors and errors of difference quotients are not amplified.

For nonlinear equations the linearisation at one point can mislead (Brenan, Campbell and Petzold, sections 2.4 and 7.2):
the result is strong evidence, not a proof.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from daedal.index.linear.canonical_forms import staircase
from daedal.index.linear.rank import scale_pencil

RANK_TOLERANCE = 1e-7  # singular values below this count as zero, after scaling to entries of size 1
_CLEARLY = 1e-4  # fraction of the largest singular value above which a value is clearly not round-off
_DOMINANT = 0.2  # a member of a combination is named if its coefficient is at least this fraction of the largest
# Increments of the difference quotients, relative to the size of the variable. Most equations are linear in y'.
_INCREMENTS_Y = (2e-7, 6e-6, 2e-4, 6e-3, 0.2)
_INCREMENTS_YP = (1e-5, 1e-3, 1e-1, 1e2)


@dataclass(frozen=True)
class Level:
    """Constraints that must be differentiated at least `differentiations` times, and the variables they determine."""

    # 0 for the constraints among the equations, 1 for those of them that imply a hidden one, and so on
    differentiations: int
    # equations and variables with dominant coefficients, largest coefficient first
    equations: tuple[int, ...]
    variables: tuple[int, ...]
    # shape (m, n): the constraints as combinations of the equations
    combinations: np.ndarray = field(repr=False, compare=False)


@dataclass(frozen=True)
class LocalIndex:
    """Structure of the linearised equations at one point. Equations and variables are numbered from 0."""

    index: int | None  # None if no number of differentiations determines the solution (a singular pencil)
    # ``levels[0]`` are the constraints, ``levels[k]`` those that need k or more differentiations; as many levels as the
    # index
    levels: tuple[Level, ...] = ()
    # for a singular pencil: equations one of which follows from, or contradicts, the others
    redundant_equations: tuple[int, ...] = ()
    undetermined_variables: tuple[int, ...] = ()  # for a singular pencil: variables that the equations do not determine

    @property
    def constraints(self) -> tuple[tuple[int, int], ...]:
        """Pairs (equation, number of differentiations to reach index 1), for index 2 and above."""
        return self._deepest("equations")

    @property
    def higher_index_variables(self) -> tuple[tuple[int, int], ...]:
        """Pairs (variable, its index) of the variables with index 2 or more."""
        return tuple((variable, times + 1) for variable, times in self._deepest("variables"))

    def _deepest(self, kind: str) -> tuple[tuple[int, int], ...]:
        found: dict[int, int] = {}
        for level in reversed(self.levels[1:]):
            for member in getattr(level, kind):
                found.setdefault(member, level.differentiations)
        return tuple(found.items())


def partials(
    residual: Callable[[float, np.ndarray, np.ndarray], np.ndarray],
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    time_scale: float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """``E = dF/dy'`` and ``B = dF/dy`` by central differences; NaN where F cannot be evaluated on both sides.

    Several increments are tried for each variable; for each entry the most consistent result is used. `weights`, ``rtol
    |y| + atol``, set the increments of `y` near zero, and `time_scale`, a time scale of the solution, those of
    derivatives near zero.
    """
    y, yp = np.asarray(y, dtype=float), np.asarray(yp, dtype=float)
    size = np.maximum(np.abs(y), 1.0 if weights is None else 1e3 * np.asarray(weights))
    size_p = np.maximum(np.abs(yp), size / time_scale)
    E = _difference_quotients(lambda change: residual(t, y, yp + change), size_p, _INCREMENTS_YP)
    B = _difference_quotients(lambda change: residual(t, y + change, yp), size, _INCREMENTS_Y)
    return E, B


def _difference_quotients(changed, sizes, increments):
    """The derivative of ``changed(d)`` with respect to d at 0, column by column."""
    n = sizes.size
    result = np.empty((n, n))
    change = np.zeros(n)
    with np.errstate(over="ignore"):  # near the limits of the floating-point range
        steps = np.outer(sizes, increments)
    for j in range(n):
        quotients = np.array([_central(changed, change, j, step) for step in steps[j]])
        # Rounding errors decrease with the increment and truncation errors grow: choose the increment after the
        # smallest change.
        changes = np.abs(np.diff(quotients, axis=0))
        changes[np.isnan(changes)] = np.inf
        # Increments that are too small give 0 repeatedly; this is ignored if larger ones have an effect.
        zero = quotients == 0.0
        changes[zero[1:] & zero[:-1] & ~zero.all(axis=0)] = np.inf
        best = len(changes) - 1 - np.argmin(changes[::-1], axis=0)
        error = changes[best, np.arange(n)]
        value = np.where(np.isfinite(error), quotients[best + 1, np.arange(n)], quotients[0])
        result[:, j] = np.where(np.isfinite(error) & (np.abs(value) <= 2.0 * error), 0.0, value)
    return result


def _central(changed, change, j, increment):
    change[j] = increment
    above = changed(change)
    change[j] = -increment
    below = changed(change)
    change[j] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        return (above - below) / (2.0 * increment)


def local_index(problem: Any, t: float, y: Any, yp: Any, *, tolerance: float = RANK_TOLERANCE) -> LocalIndex:
    """The index of a problem linearised at one point, which should satisfy the equations.

    For a semi-explicit problem `y` is the stacked vector of differential and algebraic variables; `tolerance` is that
    of :func:`pencil_index`. The index at one point can differ from that of the nonlinear problem: the result is strong
    evidence, not a proof.

    Examples
    --------
    >>> import daedal
    >>> from daedal.analysis.index import local_index
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] - t**2], 2)
    >>> local_index(problem, 0.0, [0.0, 0.0], [0.0, 2.0]).index
    2
    """
    implicit = problem.implicit() if hasattr(problem, "implicit") else problem
    y, yp = np.asarray(y, dtype=float), np.asarray(yp, dtype=float)
    exact = implicit.exact_partials(t, y, yp) if hasattr(implicit, "exact_partials") else None
    E, B = partials(implicit.evaluate, t, y, yp) if exact is None else exact
    return pencil_index(E, B, tolerance=tolerance)


def pencil_index(E: np.ndarray, B: np.ndarray, *, tolerance: float = RANK_TOLERANCE) -> LocalIndex:
    """The index of ``E y' + B y = f(t)`` with constant square matrices.

    Singular values below `tolerance` count as zero, after scaling rows and columns to entries of size 1.

    Examples
    --------
    A differentiator: ``y0 = f(t)``, ``y1 = y0'``.

    >>> from daedal.analysis.index import pencil_index
    >>> found = pencil_index([[0.0, 0.0], [-1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> found.index, found.constraints, found.higher_index_variables
    (2, ((0, 1),), ((1, 2),))
    """
    scaled = scale_pencil(np.array(E, dtype=float), np.array(B, dtype=float))
    by_rows = _constraint_levels(scaled.A, scaled.B, tolerance)
    by_columns = _constraint_levels(scaled.A.T, scaled.B.T, tolerance)
    if by_rows.dependent is not None or by_columns.dependent is not None:
        return LocalIndex(
            None,
            redundant_equations=_dominant(by_rows.dependent),
            undetermined_variables=_dominant(by_columns.dependent),
        )
    return LocalIndex(
        min(len(by_rows.levels), len(by_columns.levels)),
        tuple(
            Level(k, _dominant(equations), _dominant(variables), equations * scaled.rows)
            for k, (equations, variables) in enumerate(zip(by_rows.levels, by_columns.levels, strict=False))
        ),
    )


def structural_classes(in_E: np.ndarray, in_B: np.ndarray) -> np.ndarray:
    """The index class of each variable of ``E y' + B y = f(t)`` from the sparsity patterns of E and B alone.

    The class is 1 plus the power of s with which the variable's row of (B + s E)^-1 grows. With s = 1/h, a perturbation
    of the equations affects the variable, in a step of length h, with this power of 1/h (the perturbation index,
    Hairer, Lubich and Roche, The Numerical Solution of Differential-Algebraic Systems by Runge-Kutta Methods, 1989,
    section 1). By Cramer's rule the power is a difference of degrees of determinants, which are values of assignments
    unless terms cancel. All classes are 1 if the pencil is structurally singular.

    Examples
    --------
    y0 = f, y1 = -y0', y2 = -y1':

    >>> import numpy as np
    >>> from daedal.analysis.index import structural_classes
    >>> structural_classes(np.diag([1, 1], -1) != 0, np.eye(3) != 0)
    array([1., 2., 3.])
    """
    n = len(in_E)
    absent = -2.0 * n - 1.0
    degrees = np.where(in_E, 1.0, np.where(in_B, 0.0, absent))
    whole = _highest_assignment(degrees)
    if whole < 0.0:
        return np.ones(n)
    classes = np.empty(n)
    for j in range(n):
        column = degrees[:, j].copy()
        degrees[:, j] = 0.0
        classes[j] = 1.0 + max(0.0, _highest_assignment(degrees) - whole)
        degrees[:, j] = column
    return classes


def _highest_assignment(degrees):
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(degrees, maximize=True)
    return degrees[rows, columns].sum()


def is_clearly_index_1(E: np.ndarray, B: np.ndarray) -> bool:
    """Whether ``E y' + B y = f(t)`` clearly has index 1 or less: a quick test that suffices for most problems.

    With the left and right kernels W and V of E, this means that W^T B V is regular. The latest results are cached,
    because runs from the same start repeat the test.
    """
    return _is_clearly_index_1(len(E), np.asarray(E, float).tobytes(), np.asarray(B, float).tobytes())


@lru_cache(maxsize=8)
def _is_clearly_index_1(n: int, bits_of_E: bytes, bits_of_B: bytes) -> bool:
    E, B = (np.frombuffer(bits).reshape(n, n) for bits in (bits_of_E, bits_of_B))
    return bool(are_clearly_index_1(E[None], B[None])[0])


def _is_regular(matrix: np.ndarray) -> bool:
    """Whether a matrix is clearly nonsingular, judged by its inverse, which costs a tenth of its singular values."""
    rows = np.abs(matrix).max(axis=1)
    if not (rows > 0.0).all():
        return False
    matrix = matrix / rows[:, None]
    columns = np.abs(matrix).max(axis=0)
    try:
        largest = np.abs(np.linalg.inv(matrix / columns)).max() if (columns > 0.0).all() else np.inf
    except np.linalg.LinAlgError:
        return False
    return bool(len(matrix) * largest * _CLEARLY < 1.0)


def are_clearly_index_1(E: np.ndarray, B: np.ndarray) -> np.ndarray:
    """:func:`is_clearly_index_1` for many pencils at once, in stacks of shape (count, n, n).

    A pencil has index 1 or less if the matrix of the nonzero columns of E, completed by columns of B, is nonsingular;
    this is tested first, and singular values are computed for the other pencils only.
    """
    clear = np.array([_is_regular(np.where(one.any(axis=0), one, other)) for one, other in zip(E, B)], dtype=bool)
    if not clear.all():
        clear[~clear] = _are_clearly_index_1(E[~clear], B[~clear])
    return clear


def _are_clearly_index_1(E: np.ndarray, B: np.ndarray) -> np.ndarray:
    """:func:`are_clearly_index_1` by singular values."""
    clear, n = np.zeros(len(E), dtype=bool), E.shape[-1]
    try:
        E, B, *_ = scale_pencil(E, B)
        U, s, V = np.linalg.svd(E)
        ranks = np.sum(s > RANK_TOLERANCE * s[:, :1], axis=1)
        for rank in np.unique(ranks):
            own = ranks == rank
            if rank:
                own &= ~(s[:, rank - 1] < _CLEARLY * s[:, 0])
            if rank == n:
                clear[own] = True
                continue
            left, right = np.swapaxes(U[own][:, :, rank:], 1, 2), np.swapaxes(V[own][:, rank:], 1, 2)
            rest = np.linalg.svd(left @ B[own] @ right, compute_uv=False)
            clear[own] = rest[:, -1] > _CLEARLY * np.max(np.abs(B[own]), axis=(1, 2))
    except np.linalg.LinAlgError:
        return np.zeros(len(clear), dtype=bool)
    return clear


def judge(E: np.ndarray, B: np.ndarray) -> LocalIndex | None:
    """:func:`pencil_index`; None if the matrices exceed the floating-point range."""
    try:
        return pencil_index(E, B)
    except np.linalg.LinAlgError:
        return None


@dataclass
class _Levels:
    # for each number of differentiations: orthonormal rows, combinations of equations that need at least this number
    levels: list[np.ndarray]
    # for a singular pencil: coefficients of vanishing combinations of equations, in rows
    dependent: np.ndarray | None = None


def _constraint_levels(E, B, tolerance):
    """The constraints of the pencil level by level, from the staircase of the transposed pencil."""
    remaining = np.eye(len(E))  # the remaining equations as combinations of the original ones
    reduced = remaining  # remaining equations after elimination of the removed unknowns by the constraints
    result = _Levels([])
    # the constraints of the previous level as combinations of equations, and the remaining rows of E as combinations
    # of these constraints
    source = link = None
    for step in staircase(E.T, B.T, tolerance).steps:
        k, m = step.columns, step.rows  # numbers of constraints, and of unknowns that they determine
        U2, U1 = step.right[:, :k], step.right[:, k:]
        members = U2.T @ remaining
        # U2^T E is a combination of the constraints of the previous level: this level needs their derivatives.
        source = members if link is None else U2.T @ link @ source
        source = source / np.linalg.norm(source)
        result.levels.append(np.linalg.svd(source, full_matrices=False)[2])
        constraint = step.B[:m, :k].T
        if m < k:
            weights = np.linalg.svd(constraint.T / step.sizes)[2][m:] / step.sizes
            result.dependent = np.vstack([_normalised(weights @ U2.T @ reduced), _normalised(weights @ source)])
            break
        eliminate = np.linalg.inv(constraint)
        link = step.A[:m, k:].T @ eliminate
        reduced = U1.T @ reduced - step.B[:m, k:].T @ eliminate @ U2.T @ reduced
        remaining = U1.T @ remaining
    return result


def _normalised(matrix):
    size = np.linalg.norm(matrix)
    return matrix / size if size > 0.0 else matrix


def _dominant(combinations):
    """The members with the largest coefficients, largest first."""
    if combinations is None:
        return ()
    share = np.linalg.norm(combinations, axis=0)
    order = np.argsort(-share, kind="stable")
    return tuple(int(i) for i in order if share[i] >= _DOMINANT * share[order[0]])
