r"""Linear complementarity problems of small size, :math:`0 \le z \perp M z + q \ge 0`, and contacts with friction."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from daedal.errors import InvalidProblemError

_PIVOT = 1e-11  # entries of a column below this fraction of its largest entry count as zero
_TIE = 1e-11  # relative difference of ratios up to which they count as equal
_EXACT = 1e-10  # relative violation of complementarity up to which it is attributed to round-off
_WRONG = 1e-6  # relative violation of complementarity above which a solution is rejected
_DEPENDENT = 1e-9  # relative size below which singular values count as zero: gradients by differences are not exact
_COVERS = 4  # maximum number of artificial columns that are tried
_TURNS = 20  # maximum number of rotations of the polygons that approximate friction cones
_NEWTON = 40  # maximum number of Newton steps for round cones
_FIRST_SHARE, _LEAST_SHARE = 0.1, 1e-4  # first and smallest increment of friction on the path, as fractions of mu


def lemke(M: np.ndarray, q: np.ndarray) -> np.ndarray | None:
    r"""A solution of :math:`0 \le z \perp w = M z + q \ge 0` by Lemke's method; None if it ends in a ray.

    Ties of the ratio test are broken lexicographically, so that the method cannot cycle. For a copositive matrix a ray
    means that there is no solution; for other matrices, further artificial columns are tried.

    References
    ----------
    R. W. Cottle, J.-S. Pang, R. E. Stone: The linear complementarity problem, SIAM, 2009, section 4.4 and 4.9.

    Examples
    --------
    >>> import numpy as np
    >>> lemke(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-5.0, -6.0])).round(12)
    array([1.33333333, 2.33333333])
    """
    n = q.size
    size = float(np.max(np.abs(q), initial=0.0))
    if n == 0 or q.min() >= -1e-15 * size:
        return np.zeros(n)
    best, least = None, np.inf
    for attempt in range(_COVERS):
        cover = 1.0 + attempt * 0.5 * (1.0 + np.cos(0.7 + 1.3 * attempt + 2.1 * np.arange(n)))
        basic = _pivoted(M, q / size, cover)
        if basic is None:
            continue
        z = size * basic
        wrong = _violation(M, q, z)
        if wrong <= _EXACT:
            return z
        if wrong < least:
            best, least = z, wrong
    return best if least <= _WRONG else None


def _violation(M: np.ndarray, q: np.ndarray, z: np.ndarray) -> float:
    """Residual of the complementarity conditions, relative to the terms of the equations."""
    w, size = M @ z + q, np.abs(M) @ np.abs(z) + np.abs(q)
    largest = float(np.max(size, initial=0.0)) or 1.0
    return float(np.max(np.maximum(-w, np.minimum(np.abs(w), np.abs(M).max() * np.abs(z))), initial=0.0)) / largest


def _pivoted(M: np.ndarray, q: np.ndarray, cover: np.ndarray) -> np.ndarray | None:
    """Lemke's pivots, in the tableau of w - M z - cover z0 = q, whose first columns hold the inverse of the basis."""
    n = q.size
    tableau = np.hstack([np.eye(n), -M, -cover[:, None], q[:, None]])
    basis = np.arange(n)
    ratios = q / cover
    row, entering = _lexicographic(-np.hstack([ratios[:, None], np.eye(n) / cover[:, None]]), range(n)), 2 * n
    for _ in range(50 * (n + 1)):
        leaving = int(basis[row])
        tableau[row] /= tableau[row, entering]
        column = tableau[:, entering].copy()
        column[row] = 0.0
        tableau -= np.outer(column, tableau[row])
        basis[row] = entering
        if leaving == 2 * n:
            return _solution(M, q, tableau, basis)
        entering = leaving + n if leaving < n else leaving - n
        column = tableau[:, entering]
        rows = np.flatnonzero(column > _PIVOT * max(1.0, float(np.max(np.abs(column)))))
        if not rows.size:
            return None
        keys = np.hstack([tableau[:, -1:], tableau[:, :n]])[rows] / column[rows, None]
        row = int(rows[_smallest(keys, basis[rows] == 2 * n)])
    return None


def _lexicographic(keys: np.ndarray, rows) -> int:
    """The lexicographically largest row; ties up to round-off are broken by the next entry."""
    left = list(rows)
    for column in keys.T:
        largest = max(column[i] for i in left)
        left = [i for i in left if column[i] >= largest - _TIE * max(1.0, abs(largest))]
        if len(left) == 1:
            break
    return left[0]


def _smallest(keys: np.ndarray, is_artificial: np.ndarray) -> int:
    """The lexicographically smallest row; the artificial variable leaves the basis if possible."""
    first = keys[:, 0]
    tied = first <= first.min() + _TIE * max(1.0, abs(float(first.min())))
    if (tied & is_artificial).any():
        return int(np.flatnonzero(tied & is_artificial)[0])
    return _lexicographic(-keys, range(len(keys)))


def _solution(M: np.ndarray, q: np.ndarray, tableau: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """z of the last basis, recomputed from M if this is accurate."""
    n, z = q.size, np.zeros(q.size)
    active = np.sort(basis[(basis >= n) & (basis < 2 * n)] - n)
    for i, variable in enumerate(basis):
        if n <= variable < 2 * n:
            z[variable - n] = max(float(tableau[i, -1]), 0.0)
    if active.size:
        block = M[np.ix_(active, active)]
        exact = np.linalg.lstsq(block, -q[active], rcond=1e-13)[0]
        fits = np.max(np.abs(block @ exact + q[active])) <= 1e-13 * (
            1.0 + np.max(np.abs(block)) * np.max(np.abs(exact))
        )
        if fits and exact.min() >= -1e-12 * np.max(np.abs(exact)):
            z[active] = np.maximum(exact, 0.0)
    return z


def least_impulses(A: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Solve A x = rates with least norm, in units scaled by the diagonal of the compliance A."""
    diagonal = np.diag(A)
    unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    return unit * np.linalg.lstsq(unit[:, None] * A * unit, unit * rates, rcond=_DEPENDENT)[0]


def complementary(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    r"""x with :math:`0 \le x \perp A x + b \ge 0` for a symmetric positive semidefinite matrix.

    A x is unique. Dependent contacts share the impulses in the least-squares sense, if this leaves none negative.

    Examples
    --------
    >>> import numpy as np
    >>> complementary(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-2.0, 5.0]))
    array([1., 0.])
    """
    if b.size == 1 and 0.0 < A[0, 0] < np.inf and np.isfinite(b[0]):
        return np.maximum(-b / A[0, 0], 0.0)
    x = FrictionProblem(A, b, b.size).solve()
    if x is None:
        raise InvalidProblemError(
            "no impulses or forces satisfy the laws of contact: the mass matrix must be positive definite on the "
            "motions that the constraints allow, and all values finite"
        )
    return x


@dataclass
class FrictionProblem:
    r"""Impulses, or forces, of contacts with friction.

    With the rates :math:`w = A x + b`, first of the gaps and then along the tangents, and :math:`x = (P_N, P_T)`,

    .. math::

        0 \le P_N - P_0 \perp w_N \ge 0, \qquad |P_T| \le \mu P_N, \qquad
        P_T = -\mu P_N\, w_T / |w_T| \text{ where } w_T \ne 0 .

    One tangent per contact gives an exact linear complementarity problem. For two, the friction cone is first
    approximated by a polygon; Newton's method then leads to the round cone (:class:`RoundCones`). If it does not
    converge, the polygon is rotated so that a corner coincides with the force; if this fails too, friction is increased
    gradually from zero.

    Attributes
    ----------
    A, b : numpy.ndarray
    m : int
        The number of contacts.
    owner : tuple of int
        The contact of each tangent; those of one contact are adjacent.
    mu : numpy.ndarray or None
        Friction coefficient of each contact.
    least : numpy.ndarray or None
        P_0; zero by default.
    """

    A: np.ndarray
    b: np.ndarray
    m: int
    owner: tuple[int, ...] = ()
    mu: np.ndarray | None = None
    least: np.ndarray | None = None

    def solve(self) -> np.ndarray | None:
        """x, or None if there is no solution."""
        if not np.all(np.isfinite(self.A)) or not np.all(np.isfinite(self.b)):
            return None
        rough = sorted({c for c in self.owner if self.mu is not None and self.mu[c] > 0.0})
        angles = dict.fromkeys(rough, 0.0)
        x = self._with_directions(rough, angles)
        if x is None or all(self.owner.count(c) == 1 for c in rough):
            return x
        best, least = x, np.inf
        for _ in range(_TURNS):
            found, wrong = RoundCones(self).polished(x)
            if wrong < least:
                best, least = found, wrong
            if least <= _EXACT:
                break
            angles = {c: self._angle(x, c, angles[c]) for c in rough}
            turned = self._with_directions(rough, angles)
            if turned is None:
                break
            x = turned
        if least > _WRONG:
            best, least = self._from_smooth_contacts()
        if least > _WRONG:
            return None
        best[: self.m] = np.maximum(best[: self.m], 0.0 if self.least is None else self.least)
        return best

    def _from_smooth_contacts(self) -> tuple[np.ndarray, float]:
        """Follow the path of solutions from frictionless contacts to full friction, by Newton's method.

        Polygons fail for about one in a hundred problems with many dependent contacts and large friction: for every
        rotation, the corner nearest to the force has a different pattern of stick and slip than the round cone.
        """
        assert self.mu is not None
        start = FrictionProblem(self.A[: self.m, : self.m], self.b[: self.m], self.m, least=self.least).solve()
        x = np.zeros(self.b.size)
        if start is None:
            return x, np.inf
        x[: self.m] = start
        share, step, wrong = 0.0, _FIRST_SHARE, np.inf
        while share < 1.0 and step > _LEAST_SHARE:
            ahead = min(1.0, share + step)
            found, left = RoundCones(replace(self, mu=ahead * self.mu)).polished(x)
            if left > _EXACT:
                step *= 0.5
                continue
            x, share, step, wrong = found, ahead, 1.5 * step, left
        return x, wrong if share == 1.0 else np.inf

    def _tangents(self, c: int) -> list[int]:
        return [self.m + k for k, owner in enumerate(self.owner) if owner == c]

    def _angle(self, x: np.ndarray, c: int, before: float) -> float:
        """Angle of the friction force in the plane of a contact; if the contact slips, opposite to the slip."""
        rows = self._tangents(c)
        if len(rows) == 1:
            return before
        w = self.A[rows] @ x + self.b[rows]
        size = float(np.max(np.abs(self.A[rows]) @ np.abs(x) + np.abs(self.b[rows]), initial=0.0))
        force = -w if np.hypot(*w) > _EXACT * size else x[rows]
        return before if not force.any() else float(np.arctan2(force[1], force[0]))

    def _directions(self, rough: list[int], angles: dict[int, float]) -> tuple[np.ndarray, list[int]]:
        """Columns with unit forces along the tangents, and the contact of each."""
        columns, owners = [], []
        for c in rough:
            rows = [k - self.m for k in self._tangents(c)]
            count = 2 if len(rows) == 1 else 16
            for j in range(count):
                column = np.zeros(len(self.owner))
                if len(rows) == 1:
                    column[rows[0]] = 1.0 - 2.0 * j
                else:
                    phi = angles[c] + 2.0 * np.pi * j / count
                    column[rows] = np.cos(phi), np.sin(phi)
                columns.append(column)
                owners.append(c)
        return np.array(columns).reshape(len(columns), len(self.owner)).T, owners

    def _with_directions(self, rough: list[int], angles: dict[int, float]) -> np.ndarray | None:
        """The problem of D. E. Stewart and J. C. Trinkle, Int. J. Numer. Meth. Engng 39 (1996) 2673-2691, scaled."""
        m, A, b, count = self.m, self.A, self.b, len(rough)
        E, owners = self._directions(rough, angles)
        k = E.shape[1]
        basis = np.zeros((m + len(self.owner), m + k))
        basis[:m, :m], basis[m:, m:] = np.eye(m), E
        least = np.zeros(m) if self.least is None else self.least
        start = b + A[:, :m] @ least
        inner = basis.T @ A @ basis
        diagonal = np.diag(inner)
        typical = float(np.max(diagonal, initial=0.0)) or 1.0
        unit = 1.0 / np.sqrt(np.where(diagonal > 1e-14 * typical, diagonal, typical))
        place = {c: i for i, c in enumerate(rough)}
        slack = np.array([unit[m + owners.index(c)] for c in rough])  # the unit of tangential impulses of a contact
        for j, c in enumerate(owners):
            unit[m + j] = slack[place[c]]
        M = np.zeros((m + k + count, m + k + count))
        right = np.zeros(m + k + count)
        M[: m + k, : m + k] = unit[:, None] * inner * unit
        right[: m + k] = unit * (basis.T @ start)
        for j, c in enumerate(owners):
            M[m + j, m + k + place[c]], M[m + k + place[c], m + j] = 1.0, -1.0
        # The bound on friction is an impulse; converted to a rate, so that all right-hand sides are comparable.
        for i, c in enumerate(rough):
            assert self.mu is not None
            M[m + k + i, c] = self.mu[c] * unit[c] / slack[i]
            right[m + k + i] = self.mu[c] * least[c] / slack[i]
        z = lemke(M, right)
        if z is None:
            return None
        forces = unit * z[: m + k]
        x = basis @ forces
        x[:m] += least
        return self._shared(x, start) if not rough and self.least is None else x

    def _shared(self, x: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Frictionless solution: the impulses of least norm among those with the same rates, if none is negative."""
        w = self.A @ x + start
        size = float(np.max(np.abs(start), initial=0.0)) or 1.0
        active = np.flatnonzero(np.abs(w) <= _EXACT * size)
        if not active.size:
            return x
        shared = np.zeros_like(x)
        shared[active] = least_impulses(self.A[np.ix_(active, active)], -start[active])
        wrong = np.max(np.abs(self.A @ (shared - x)))
        compliance = float(np.max(np.abs(self.A))) or 1.0
        if wrong > _EXACT * size or np.min(shared) < -_EXACT * size / compliance:
            return x
        return np.maximum(shared, 0.0)


class RoundCones:
    r"""Semi-smooth Newton's method for contacts with two tangents.

    The laws are the fixed points of projections, with any :math:`\rho > 0`:

    .. math:: P = \max(P_0, P - \rho\, w_N), \qquad Q = \Pi_{\mu P}(Q - \rho\, w_T),

    where :math:`\Pi_r` projects onto the disc with the radius r.

    References
    ----------
    P. Alart, A. Curnier, Comput. Methods Appl. Mech. Engng 92 (1991) 353-375.
    """

    def __init__(self, problem: FrictionProblem):
        self.problem = problem
        diagonal = np.diag(problem.A).copy()
        typical = float(np.max(diagonal, initial=0.0)) or 1.0
        self.rho = 1.0 / np.where(diagonal > 1e-14 * typical, diagonal, typical)
        m = problem.m
        for c in set(problem.owner):
            rows = problem._tangents(c)
            self.rho[rows] = self.rho[rows].min()
        self.least = np.zeros(m) if problem.least is None else problem.least

    def polished(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """The limit of Newton's method from `x`, and its residual relative to the impulses."""
        values, matrix = self._equations(x)
        for _ in range(_NEWTON):
            size = float(np.max(np.abs(x), initial=0.0)) or 1.0
            wrong = float(np.max(np.abs(values)))
            if wrong <= 1e-14 * size:
                break
            step = np.linalg.lstsq(matrix, -values, rcond=1e-12)[0]
            share = 1.0
            while share > 1e-3:
                moved = x + share * step
                ahead, slope = self._equations(moved)
                if np.linalg.norm(ahead) < np.linalg.norm(values):
                    break
                share *= 0.5
            else:
                break
            x, values, matrix = moved, ahead, slope
        size = float(np.max(np.abs(x), initial=0.0)) or 1.0
        return x, float(np.max(np.abs(values))) / size

    def _equations(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The residual of the projections, and its derivative."""
        problem, m, n = self.problem, self.problem.m, x.size
        w = problem.A @ x + problem.b
        aim, slope = x - self.rho * w, np.eye(n) - self.rho[:, None] * problem.A
        values, matrix = x.copy(), np.eye(n)
        for c in range(m):
            if aim[c] > self.least[c]:
                values[c] -= aim[c]
                matrix[c] -= slope[c]
            else:
                values[c] -= self.least[c]
        for c in sorted(set(problem.owner)):
            rows = problem._tangents(c)
            radius = float(problem.mu[c] * x[c]) if problem.mu is not None else 0.0
            length = float(np.linalg.norm(aim[rows]))
            if length <= radius:
                values[rows] -= aim[rows]
                matrix[rows] -= slope[rows]
            elif radius > 0.0:
                unit = aim[rows] / length
                values[rows] -= radius * unit
                turn = (np.eye(len(rows)) - np.outer(unit, unit)) * (radius / length)
                matrix[rows] -= turn @ slope[rows]
                matrix[rows, c] -= problem.mu[c] * unit  # type: ignore[index]
        return values, matrix
