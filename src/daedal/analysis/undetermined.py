"""Variables that the equations leave undetermined, for problems of any size, from factors of the iteration matrix.

If ``dF/dy + c dF/dy'`` is singular for every c, the equations do not determine the solution, however often they are
differentiated. Round-off hides this: such a matrix can still be factorised, with a pivot that is a rounding error.
Solving with the factors amplifies the undetermined directions (inverse iteration), and the transposed factors give the
vanishing combination of equations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.analysis.probe import Probe
from daedal.index.structure.equilibration import equilibrate, scaled

_LARGEST_DIFFERENCED = 10_000  # number of unknowns up to which derivatives are computed by finite differences
_FACTORS = (1.37, 61.0, 2.9e3)  # values of c, in units of the inverse of the time scale
_INCREMENT_Y, _INCREMENT_YP = 1e-5, 0.1  # increments of difference quotients; most equations are linear in y'
_FIRST, _MOST = 4, 64  # initial and maximum number of directions in the inverse iteration
_AMPLIFIED = 1e11  # smallest amplification by a possibly singular matrix, scaled to entries of about 1
_SURELY = 1e14  # smallest amplification by a matrix that is singular to working precision
_DISAGREE = 0.05  # relative difference of the solutions of rescaled matrices above which a pivot is round-off
_SMALLEST = 4.0 * float(
    np.finfo(float).eps
)  # value that replaces a vanishing pivot, in a matrix with entries of size 1
_SHARE = 1e-3  # smallest component of an undetermined variable in a null vector, relative to the largest
_BESIDE = 1e-2  # relative distance of a second point from the solution, at which the matrix must be singular too
_BY_DIFFERENCES = 1e6  # smallest amplification by a possibly singular matrix of difference quotients
# relative steps along an undetermined direction, and the relative change of F that counts as zero
_CHANGES, _UNCHANGED = (1.0, 1e-2, 1e-4), 1e-9


@dataclass(frozen=True)
class Undetermined:
    """Variables that the equations do not determine, and the dependent equations."""

    variables: tuple[int, ...]
    equations: tuple[int, ...]
    freedom: int  # the number of missing equations


def undetermined(problem: Any, points: Iterable[tuple[float, np.ndarray, np.ndarray]], time: float):
    """Variables undetermined at all given points (t, y, y') and in their neighbourhood.

    None if all are determined, or if no derivatives are available. `time` is a time scale of the solution.
    """
    probe = Probe(problem)
    rng, found = np.random.default_rng(0), None
    with np.errstate(all="ignore"):
        for t, y, yp in points:
            for point in ((t, y, yp), (t, _beside(rng, y), _beside(rng, yp))):
                pencil = _pencil(probe, *point, time)
                if pencil is None and found is not None:
                    continue  # the equations may be undefined away from the solution
                for c in np.divide(_FACTORS, time):
                    found = None if pencil is None else pencil(c)
                    if found is None:
                        return None
    return found


def _beside(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return x + _BESIDE * rng.uniform(-1.0, 1.0, x.size) * np.maximum(np.abs(x), np.median(np.abs(x)) + _BESIDE)


def _pencil(probe: Probe, t, y, yp, time: float) -> Callable[[float], Undetermined | None] | None:
    """Function that maps c to the null spaces of dF/dy + c dF/dy' at a point; None if derivatives are unavailable."""
    problem = probe.problem
    if getattr(problem, "exact_matrix", None) is not None and problem.exact_matrix(t, y, yp) is not None:
        return lambda c: _null_spaces(problem.exact_matrix(t, y, yp, c))
    if probe.n > _LARGEST_DIFFERENCED:
        return None
    E, B = _differences(probe, t, y, yp, time)

    def stays(c: float, directions: np.ndarray, units: np.ndarray) -> bool:
        felt = (abs(B) + c * abs(E)) @ units  # effect of changing all unknowns by their units
        for v in directions.T:
            size = max(float(np.max(np.abs(y))), 1.0) / np.max(np.abs(units * v))
            steps = [size * d for d in _CHANGES]
            sides = [[probe.residual(t, y + s * units * v, yp + s * c * units * v) for s in (-d, d)] for d in steps]
            if not any(np.all(np.abs(b - a) <= _UNCHANGED * d * felt) for d, (a, b) in zip(steps, sides)):
                return False
        return True

    return lambda c: _null_spaces(B + c * E, lambda *found: stays(c, *found))


def _differences(probe: Probe, t, y, yp, time: float) -> tuple[Any, Any]:
    import scipy.sparse as sp

    sizes = np.maximum(np.abs(y), 1.0)
    slopes = np.maximum(np.abs(yp), sizes / time)
    found = []
    for of_slope, increments in ((True, _INCREMENT_YP * slopes), (False, _INCREMENT_Y * sizes)):
        columns = []
        for j, d in enumerate(increments):
            sides = []
            for moved in (-d, d):
                x = (yp if of_slope else y).copy()
                x[j] += moved
                sides.append(probe.residual(t, y, x) if of_slope else probe.residual(t, x, yp))
            columns.append(sp.csc_array(((sides[1] - sides[0]) / (2.0 * d))[:, None]))
        found.append(sp.hstack(columns, format="csc"))
    return found[0], found[1]


def _null_spaces(matrix: Any, confirmed: Callable[[np.ndarray, np.ndarray], bool] | None = None) -> Undetermined | None:
    """The null spaces of a square matrix, dense or sparse, as variables and equations; None if it is regular.

    A matrix counts as regular unless it is singular up to round-off. For less accurate entries, `confirmed` decides,
    given changes of the unknowns that the matrix nearly annihilates, and their units.
    """
    n = matrix.shape[0]
    entries = matrix if isinstance(matrix, np.ndarray) else matrix.data
    if not np.isfinite(entries).all():
        return None
    rows, columns = equilibrate(matrix)
    matrix = scaled(matrix, rows, columns)
    rng = np.random.default_rng(n)
    limit = _AMPLIFIED if confirmed is None else _BY_DIFFERENCES
    factors = _Factors(matrix)
    first = rng.standard_normal((n, 1))
    amplified = factors.solve(first)
    if not np.max(np.abs(amplified)) > limit:
        return None
    if confirmed is None and not factors.repaired and not np.max(np.abs(amplified)) > _SURELY:
        # another rounding of the same matrix, which leaves the solution of an ill-conditioned problem nearly unchanged
        stretch = rng.uniform(0.5, 2.0, (2, n))
        other = _Factors(scaled(matrix, *stretch))
        again = stretch[1][:, None] * other.solve(stretch[0][:, None] * first)
        if not other.repaired and np.linalg.norm(again - amplified) <= _DISAGREE * np.linalg.norm(amplified):
            return None
    right, left = (_amplified(factors, rng, n, limit, transposed) for transposed in (False, True))
    if not right.shape[1] or (confirmed is not None and not confirmed(right, columns)):
        return None
    return Undetermined(_members(right), _members(left), right.shape[1])


def _amplified(factors: _Factors, rng: np.random.Generator, n: int, limit: float, transposed: bool) -> np.ndarray:
    """Orthonormal vectors that the inverse amplifies by more than `limit`, by two steps of inverse iteration."""
    count = min(_FIRST, n)
    while True:
        directions = rng.standard_normal((n, count))
        for _ in range(2):
            directions = np.linalg.qr(directions)[0]
            directions = factors.solve(directions, transposed)
        basis, sizes, _ = np.linalg.svd(directions, full_matrices=False)
        found = int(np.sum(sizes > limit))
        if found < count or count == min(_MOST, n):
            return basis[:, :found]
        count = min(4 * count, _MOST, n)


def _members(basis: np.ndarray) -> tuple[int, ...]:
    share = np.linalg.norm(basis, axis=1)
    return tuple(int(i) for i in np.flatnonzero(share >= _SHARE * share.max(initial=0.0)))


class _Factors:
    """LU factors of a matrix with entries of size 1; vanishing pivots are replaced."""

    def __init__(self, matrix: Any):
        if isinstance(matrix, np.ndarray):
            from scipy.linalg import lapack

            self._lu, self._pivots, _ = lapack.dgetrf(matrix)
            diagonal = np.arange(len(matrix))
            vanished = self._lu[diagonal, diagonal] == 0.0
            self.repaired = bool(vanished.any())
            self._lu[diagonal[vanished], diagonal[vanished]] = _SMALLEST
            self._solve = lambda b, transposed: lapack.dgetrs(self._lu, self._pivots, b, trans=int(transposed))[0]
            return
        import scipy.sparse as sp
        from scipy.sparse.linalg import splu

        self.repaired, matrix = False, matrix.tocsc()
        try:
            factors = splu(matrix)
        except RuntimeError:  # SuperLU's error for a vanishing pivot
            self.repaired = True
            factors = splu((matrix + _SMALLEST * sp.eye_array(matrix.shape[0])).tocsc())
        self._solve = lambda b, transposed: factors.solve(b, trans="T" if transposed else "N")

    def solve(self, b: np.ndarray, transposed: bool = False) -> np.ndarray:
        """The inverse, or its transpose, times b; overflow produces large values."""
        return np.nan_to_num(self._solve(b, transposed), nan=1e300, posinf=1e300, neginf=-1e300)


def in_words(problem: Any, found: Undetermined) -> str:
    """Description of the undetermined variables and the dependent equations."""
    from daedal.analysis.wording import FROM_ZERO, equations, variables

    which, several = equations(found.equations), len(found.equations) > 1
    verb = "repeat or contradict one another" if several else "follows from others, or contradicts them"
    together = ": they can change together" if len(found.variables) > 1 else ""
    replaced = f"{found.freedom} of these equations by as many that determine some"
    if found.freedom == 1:
        replaced = "one of these equations by one that determines one"
    return (
        f"the equations leave {variables(problem, found.variables)} undetermined{together}; "
        f"{which} {FROM_ZERO} {verb}. Remedy: replace {replaced} of these variables"
    )
