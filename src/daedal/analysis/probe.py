"""Examine a problem near the point at which a run stopped: domain, jumps, correctness of its matrix."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

LARGEST_DENSE = 500
_GRID = np.linspace(-1.0, 1.0, 17)
_BISECTIONS = 30
_CLOSE = 2.0**-20  # distance of the points on both sides of a jump, as a fraction of a path
_FLOW_FRACTION = 1e-6  # length of the path ahead along the solution, as a fraction of the interval
_WRONG_ENTRY = 0.05
# Recurring jumps (rounding errors): factors by which paths are lengthened, positions on a path, smallest remainder of
# the fit as a fraction of the jump, and number of paths on which the remainder must be between this and the jump.
_WIDER = 4.0 ** np.arange(1, 8)
_SCATTERED = 2.0 * np.modf(0.618034 * np.arange(1, 41))[0] - 1.0
_LEAST_REST, _RECURRENCES = 0.1, 3
_ROUNDOFF = float(np.finfo(float).eps)
_REPEATED = 29  # calls with the same arguments; a prime, so that it is not a multiple of a period of the function
# Kinks: smallest detectable second difference in units of round-off, largest number of halvings of the distance, the
# number of them with detectable differences, and the smallest ratio of the last to the first estimate of the jump.
_FELT, _HALVINGS, _FEWEST_HALVINGS, _STAYS = 20.0, 10, 4, 0.4

Path = Callable[[float], tuple[float, np.ndarray, np.ndarray]]


class Probe:
    """The functions of a problem, wrapped so that they never raise.

    If a function raises or returns an invalid value, the result is NaN and `complaint` stores the reason.
    """

    def __init__(self, problem: Any):
        self.problem = problem.implicit() if hasattr(problem, "implicit") else problem
        self.n = int(self.problem.n)
        self.complaint: str | None = None

    def residual(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """F(t, y, y'), NaN where it cannot be evaluated."""
        result = self._guarded(self.problem.evaluate, float(t), y.copy(), yp.copy())
        return np.full(self.n, np.nan) if result is None or result.shape != (self.n,) else result

    def sample(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """As :meth:`residual`, by machine code if available, for evaluation at many points."""
        result = self._guarded(self.problem.sample, t, y, yp)
        return np.full(self.n, np.nan) if result is None or result.shape != (self.n,) else result

    def varies(self, t: float, y: np.ndarray, yp: np.ndarray) -> tuple[int, ...]:
        """The equations whose values differ when evaluated again with the same arguments."""
        values = np.array([self.residual(t, y, yp) for _ in range(_REPEATED)])
        same = np.all((values == values[0]) | (np.isnan(values) & np.isnan(values[0])), axis=0)
        return tuple(int(i) for i in np.flatnonzero(~same))

    def terms(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """The size of the terms that each equation sums, from its response to small relative changes."""
        small, base = np.sqrt(_ROUNDOFF), self.residual(t, y, yp)
        size = np.abs(base)
        for signs in (1.0, np.where(np.arange(self.n) % 2, -1.0, 1.0)):
            for sign in (1.0, -2.0):
                changed = self.residual(t, y * (1.0 + signs * small), yp * (1.0 + sign * signs * small))
                size = np.fmax(size, np.abs(changed - base) / small)
        return np.nan_to_num(size, posinf=0.0)

    def jacobian(self, t: float, y: np.ndarray, yp: np.ndarray, cj: float) -> np.ndarray | None:
        """The user's dF/dy + cj dF/dy' as a dense matrix, or None."""
        function = getattr(self.problem, "jacobian", None)
        if function is None:
            return None
        params = getattr(self.problem, "params", None)
        tail = () if params is None else (params,)
        matrix = self._guarded(function, float(t), y.copy(), yp.copy(), float(cj), *tail)
        if matrix is None:
            return None
        bandwidth = getattr(self.problem, "bandwidth", None)
        if bandwidth is not None and matrix.shape == (sum(bandwidth) + 1, self.n):
            matrix = _from_band(matrix, *bandwidth)
        pattern = getattr(self.problem, "sparsity", None)
        if pattern is not None and matrix.shape == (pattern.nnz,):
            entries, matrix = matrix, pattern.toarray()
            columns = np.repeat(np.arange(self.n), np.diff(pattern.indptr))
            matrix[pattern.indices, columns] = entries
        return matrix if matrix.shape == (self.n, self.n) and np.all(np.isfinite(matrix)) else None

    def _guarded(self, function, *arguments) -> np.ndarray | None:
        try:
            with np.errstate(all="ignore"):
                result = function(*arguments)
            result = result.toarray() if hasattr(result, "toarray") else result
            return np.asarray(result, dtype=float)
        except Exception as error:  # the user's function may raise anything: the diagnosis continues without this value
            self.complaint = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return None


def _from_band(band, ml, mu):
    """A dense matrix from the layout of :func:`scipy.linalg.solve_banded`."""
    n = band.shape[1]
    rows, columns = np.indices((n, n))
    inside = (rows - columns <= ml) & (columns - rows <= mu)
    return np.where(inside, band[np.clip(mu + rows - columns, 0, ml + mu), columns], 0.0)


def flow(t: float, y: np.ndarray, yp: np.ndarray, h: float, t_span: tuple[float, float]) -> Path:
    """A short path along the solution: s from -1 (backward) to 1 (forward), within the interval of integration."""
    reach = max(_FLOW_FRACTION * abs(t_span[1] - t_span[0]), 1e3 * abs(h))
    low, high = min(t_span), max(t_span)
    sign = 1.0 if t_span[1] >= t_span[0] else -1.0

    def path(s):
        at = min(max(t + sign * s * reach, low), high)
        return at, y + (at - t) * yp, yp

    return path


def in_time(t: float, y: np.ndarray, yp: np.ndarray, h: float, t_span: tuple[float, float]) -> Path:
    """A path through the times of :func:`flow`, evenly spaced, with constant y and y'."""
    ahead = flow(t, y, yp, h, t_span)
    first, last = ahead(-1.0)[0], ahead(1.0)[0]
    return lambda s: (first + 0.5 * (s + 1.0) * (last - first), y, yp)


def along(t: float, y: np.ndarray, yp: np.ndarray, change: np.ndarray) -> Path:
    """A path from y - change (s = -1) to y + change (s = 1)."""
    return lambda s: (t, y + s * change, yp)


@dataclass(frozen=True)
class Jump:
    """Equation `equation` jumps by `size` at position `s` of a path; `recurs` if it jumps repeatedly."""

    equation: int
    size: float
    s: float
    recurs: bool = False


def find_jump(probe: Probe, path: Path, negligible: np.ndarray) -> Jump | None:
    """The largest jump of an equation on a path: a change that does not shrink with the distance."""
    values = np.array([probe.residual(*path(s)) for s in _GRID])
    if not np.all(np.isfinite(values)):
        return None
    changes = np.abs(np.diff(values, axis=0))
    largest = changes.max(axis=0)
    smooth = np.median(changes, axis=0)
    suspects = np.flatnonzero((largest > 4.0 * smooth) & (largest > negligible))
    for equation in suspects[np.argsort(-largest[suspects] / (smooth[suspects] + negligible[suspects] + 1e-300))][:3]:
        k = int(changes[:, equation].argmax())
        size, place = _steepest(probe, path, int(equation), _GRID[k], _GRID[k + 1])
        if abs(size) >= 0.5 * changes[k, equation]:
            return Jump(int(equation), size, place, _recurs(probe, path, int(equation), abs(size), place))
    return None


def _steepest(probe: Probe, path: Path, equation: int, low: float, high: float) -> tuple[float, float]:
    """The change of an equation over the last interval of a bisection towards larger changes, and its position."""
    at_low, at_high = (probe.residual(*path(s))[equation] for s in (low, high))
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        at_middle = probe.residual(*path(middle))[equation]
        if abs(at_middle - at_low) >= abs(at_high - at_middle):
            high, at_high = middle, at_middle
        else:
            low, at_low = middle, at_middle
    return float(at_high - at_low), float(0.5 * (low + high))


def _recurs(probe: Probe, path: Path, equation: int, size: float, place: float) -> bool:
    """Whether an equation jumps repeatedly, as rounding errors do, rather than switching once.

    The remainder after fitting a cubic and one jump is then as large as the jump, and no larger on longer paths; for a
    smooth function it would grow with a power of their length.
    """
    found = 0
    for width in _WIDER:
        s = width * _SCATTERED
        values = np.array([probe.residual(*path(x))[equation] for x in s])
        basis = np.column_stack([_SCATTERED**k for k in range(4)] + [s > place])
        if np.all(np.isfinite(values)):
            rest = values - basis @ np.linalg.lstsq(basis, values, rcond=None)[0]
            found += _LEAST_REST * size <= np.sqrt(np.mean(rest**2)) <= size
    return found >= _RECURRENCES


@dataclass(frozen=True)
class Kink:
    """The slope of equation `equation` jumps at the time `t`."""

    equation: int
    t: float


def find_kink(probe: Probe, path: Path, negligible: np.ndarray) -> Kink | None:
    """A kink of an equation on a path in time: a second difference proportional to the distance, not its square.

    Divided by the distance it tends to the jump of the slope; for a smooth function it tends to zero.
    """
    values = np.array([probe.residual(*path(s)) for s in _GRID])
    if not np.all(np.isfinite(values)):
        return None
    times = np.array([path(s)[0] for s in _GRID])
    spacing = _GRID[1] - _GRID[0]
    noise = _ROUNDOFF * abs(times).max() * np.abs(np.diff(values, axis=0)).max(axis=0) / max(np.ptp(times), 1e-300)
    bends = np.abs(np.diff(values, 2, axis=0))
    largest, usual = bends.max(axis=0), np.median(bends, axis=0)
    felt = _FELT * (negligible + noise * _GRID.size)
    suspects = np.flatnonzero((largest > 8.0 * usual) & (largest > 4.0 * felt))
    for i in suspects[np.argsort(-largest[suspects] / (usual[suspects] + felt[suspects] + 1e-300))][:3]:
        centre, h, bend = float(_GRID[int(bends[:, i].argmax()) + 1]), spacing, float(largest[i])
        first = bend / h

        def value(s, i=i):
            return probe.residual(*path(s))[i]

        halvings = 0
        while halvings < _HALVINGS:
            points = [value(centre + k * h / 2.0) for k in range(-2, 3)]
            halves = [abs(points[k] - 2.0 * points[k + 1] + points[k + 2]) for k in range(3)]
            best = int(np.argmax(halves))
            if not halves[best] > felt[i]:
                break
            centre, h, bend = centre + (best - 1) * h / 2.0, h / 2.0, halves[best]
            halvings += 1
        if halvings >= _FEWEST_HALVINGS and bend / h >= _STAYS * first:
            return Kink(int(i), _where_lines_meet(path, value, centre, h, spacing / 2.0))
    return None


def _where_lines_meet(path: Path, value, centre: float, h: float, width: float) -> float:
    """The time at which the lines on both sides of a kink within h of `centre` intersect."""
    lines = []
    for sign in (-1.0, 1.0):
        s = np.array([centre + sign * h, centre + sign * (h + width)])
        t, f = np.array([path(x)[0] for x in s]), np.array([value(x) for x in s])
        lines.append((t[0], f[0], (f[1] - f[0]) / (t[1] - t[0]) if t[1] != t[0] else np.nan))
    (t0, f0, slope0), (t1, f1, slope1) = lines
    low, high = sorted((t0, t1))
    meeting = t0 + (f1 - f0 - slope1 * (t1 - t0)) / (slope0 - slope1) if slope0 != slope1 else np.nan
    return float(meeting if low <= meeting <= high else 0.5 * (low + high))


def first_time_behind(probe: Probe, path: Path, jump: Jump) -> float:
    """The first floating-point number after a jump in time, in the direction of the path."""
    (before, y, yp), (behind, _, _) = path(jump.s - _CLOSE), path(jump.s + _CLOSE)
    old = probe.residual(before, y, yp)[jump.equation]
    while True:
        middle = 0.5 * (before + behind)
        if middle in (before, behind):
            return float(behind)
        if abs(probe.residual(middle, y, yp)[jump.equation] - old) > 0.5 * abs(jump.size):
            behind = middle
        else:
            before = middle


def jumps_with(probe: Probe, path: Path, jump: Jump) -> tuple[int, ...]:
    """The variables that cause the jump when moved alone; none if the time causes it."""
    t, y, yp = path(jump.s - _CLOSE)
    later, beyond, _ = path(jump.s + _CLOSE)
    before = probe.residual(t, y, yp)[jump.equation]
    if abs(probe.residual(later, y, yp)[jump.equation] - before) > 0.5 * abs(jump.size):
        return ()
    found = []
    for j in np.flatnonzero(beyond != y)[:LARGEST_DENSE]:
        moved = y.copy()
        moved[j] = beyond[j]
        if abs(probe.residual(t, moved, yp)[jump.equation] - before) > 0.5 * abs(jump.size):
            found.append(int(j))
    return tuple(found)


@dataclass(frozen=True)
class Edge:
    """Boundary of the residual's domain: last good and first bad position on a path, and at the latter the undefined
    equations and the exception, if any."""

    good: float
    bad: float
    equations: tuple[int, ...]
    complaint: str | None


def find_edge(probe: Probe, path: Path) -> Edge | None:
    """The first position ahead (s > 0) at which the residual is NaN or infinite."""
    good = 0.0
    if not np.all(np.isfinite(probe.residual(*path(good)))):
        return None
    for bad in _GRID[_GRID > 0.0]:
        if not np.all(np.isfinite(probe.residual(*path(bad)))):
            break
        good = bad
    else:
        return None
    for _ in range(_BISECTIONS):
        middle = 0.5 * (good + bad)
        if np.all(np.isfinite(probe.residual(*path(middle)))):
            good = middle
        else:
            bad = middle
    equations, complaint = bad_equations(probe, *path(bad))
    return Edge(float(good), float(bad), equations, complaint)


def bad_equations(probe: Probe, t: float, y: np.ndarray, yp: np.ndarray) -> tuple[tuple[int, ...], str | None]:
    """The equations that are NaN or infinite, and the exception of the residual, if any."""
    probe.complaint = None
    values = probe.residual(t, y, yp)
    return tuple(int(i) for i in np.flatnonzero(~np.isfinite(values))), probe.complaint


def culprits(probe: Probe, path: Path, edge: Edge) -> tuple[int, ...]:
    """The variables that make the residual undefined when moved alone across the boundary."""
    t, y, yp = path(edge.good)
    _, beyond, _ = path(edge.bad)
    found = []
    for j in np.flatnonzero(beyond != y)[:LARGEST_DENSE]:
        moved = y.copy()
        moved[j] = beyond[j]
        if not np.all(np.isfinite(probe.residual(t, moved, yp))):
            found.append(int(j))
    return tuple(found)


@dataclass(frozen=True)
class WrongEntry:
    """An entry of the iteration matrix that disagrees with accurate differences.

    `origin` is "jacobian" (the user's function), "structure" (outside `sparsity` or `bandwidth`) or "differences".
    """

    equation: int
    variable: int
    used: float
    expected: float
    origin: str


def find_wrong_entry(probe: Probe, E, B, t, y, yp, cj, h, weights) -> WrongEntry | None:
    """Compare the matrix used by DASSL, given by the user or from difference quotients, with ``cj E + B``."""
    expected = cj * E + B
    outside = np.where(_structure(probe.problem), 0.0, expected)
    used = probe.jacobian(t, y, yp, cj)
    origin = "differences" if used is None else "jacobian"
    if np.any(outside):
        used, origin = expected - outside, "structure"
    elif used is None:
        used = _dassl_differences(probe, t, y, yp, cj, h, weights)
    if not np.all(np.isfinite(used)):
        return None
    # An error matters if it changes its equation as much as the largest entries do.
    effect = np.abs(used - expected) * weights
    size = (np.maximum(np.abs(expected), np.abs(used)) * weights).max(axis=1, keepdims=True)
    share = effect / np.where(size > 0.0, size, 1.0)
    i, j = np.unravel_index(int(np.argmax(share)), share.shape)
    if share[i, j] < _WRONG_ENTRY:
        return None
    return WrongEntry(int(i), int(j), float(used[i, j]), float(expected[i, j]), origin)


def _structure(problem) -> np.ndarray:
    n = problem.n
    pattern, bandwidth = getattr(problem, "sparsity", None), getattr(problem, "bandwidth", None)
    if pattern is not None:
        return pattern.toarray() != 0.0
    if bandwidth is not None:
        rows, columns = np.indices((n, n))
        return (rows - columns <= bandwidth[0]) & (columns - rows <= bandwidth[1])
    return np.ones((n, n), dtype=bool)


def _dassl_differences(probe, t, y, yp, cj, h, weights):
    """The iteration matrix by one-sided differences with DASSL's increments (BCP section 5.2.2)."""
    base = probe.residual(t, y, yp)
    size = np.maximum(np.maximum(np.abs(y), np.abs(h * yp)), weights)
    increments = np.copysign(np.sqrt(np.finfo(float).eps) * size, h * yp)
    matrix = np.empty((probe.n, probe.n))
    for j, increment in enumerate(increments):
        moved, moved_p = y.copy(), yp.copy()
        moved[j] += increment
        increment = moved[j] - y[j]
        moved_p[j] += cj * increment
        matrix[:, j] = (probe.residual(t, moved, moved_p) - base) / increment
    return matrix
