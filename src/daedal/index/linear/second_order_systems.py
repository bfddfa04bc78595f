"""Linear second-order systems, and how rewriting them as first-order systems affects their index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from daedal.common.tabular import Tabular, plural
from daedal.errors import InvalidProblemError
from daedal.index.linear.exact_solution import LinearSolution
from daedal.index.linear.functions_of_time import QuasiPolynomial, as_forcing
from daedal.index.linear.pencil import Pencil
from daedal.index.linear.rank import (
    TOLERANCE,
    RankDecision,
    TitledTables,
    check_matrix,
    check_names,
    decision_table,
    rank_decision,
    require_clear,
    scale_pencil,
)
from daedal.index.linear.strangeness import Compression, compress, product
from daedal.index.linear.time_dependent import TimeVarying

# V. Mehrmann, C. Shi, Transformation of high order linear differential-algebraic systems to first order, Numerical
# Algorithms 42, 2006; L. Wunderlich, diploma thesis, TU Berlin 2005, (3.5) to (3.8). A direction is called strange if
# an equation with x'' or with highest derivative x' coincides in it with the derivative of an equation of lower order.


class SecondOrderValues(NamedTuple):
    """The characteristic values of three m x n matrices.

    s012, s12, s02, s01: strange directions, which occur in equations of the orders in their names. d2, d1: directions
    with a second- or first-order differential equation. a: directions with an algebraic equation. u: undetermined
    unknowns. v: equations 0 = f.
    """

    s012: int
    s12: int
    s02: int
    s01: int
    d2: int
    d1: int
    a: int
    u: int
    v: int

    @property
    def strange(self) -> int:
        """All strange directions."""
        return self.s012 + self.s12 + self.s02 + self.s01


class _Triple(NamedTuple):
    """Rows of M, C and K, each an array (1, rows, columns): a power series with only a constant term."""

    M: np.ndarray
    C: np.ndarray
    K: np.ndarray

    def combined(self, left: np.ndarray) -> _Triple:
        return _Triple(*(product(left, X) for X in self))

    def part(self, rows: slice) -> _Triple:
        return _Triple(*(X[:, rows] for X in self))


def second_order_passes(
    M: np.ndarray, C: np.ndarray, K: np.ndarray, tolerance: float
) -> tuple[list[SecondOrderValues], list[RankDecision]]:
    """The characteristic values of all passes."""
    rows = _Triple(M[None], C[None], K[None])
    sizes = {name: float(np.linalg.norm(X[0], 2)) or 1.0 for name, X in zip("MCK", rows)}
    values: list[SecondOrderValues] = []
    decisions: list[RankDecision] = []
    while True:
        found, rows = _one_pass(rows, sizes, tolerance, f", pass {len(values)}" if values else "", decisions)
        values.append(found)
        if found.strange == 0:
            return values, decisions


def _one_pass(
    rows: _Triple, sizes: dict[str, float], tolerance: float, name: str, decisions: list[RankDecision]
) -> tuple[SecondOrderValues, _Triple]:
    m, n = rows.M.shape[1:]

    def squeeze(X: np.ndarray, size: str, what: str) -> Compression:
        result = compress(X, tolerance, sizes[size], what + name)
        decisions.extend(result.decisions)
        return result

    # Second-order, first-order and algebraic equations.
    top = squeeze(rows.M, "M", "M")
    r2 = top.rank
    rows = rows.combined(top.left)
    second, others = rows.part(slice(0, r2)), rows.part(slice(r2, m))
    middle = squeeze(others.C, "C", "C without M")
    r1 = middle.rank
    others = others.combined(middle.left)
    first, lowest = others.part(slice(0, r1)), others.part(slice(r1, m))
    bottom = squeeze(lowest.K, "K", "K without M and C")
    r0 = bottom.rank
    algebraic = bottom.rows

    # First-order and algebraic equations in the directions of M, and algebraic ones in the directions of C.
    kernel = top.kernel
    split = squeeze(product(first.C, kernel), "C", "C on ker M")
    first = first.combined(split.left)
    own, shared = first.part(slice(0, split.rank)), first.part(slice(split.rank, r1))
    split_K = squeeze(product(algebraic, kernel), "K", "K on ker M")
    algebraic = product(split_K.left, algebraic)
    K_own, K_shared = algebraic[:, : split_K.rank], algebraic[:, split_K.rank :]
    both = product(kernel, split.kernel)
    split_a = squeeze(product(K_own, both), "K", "K on ker M and ker C")
    a, s01 = split_a.rank, split_K.rank - split_a.rank
    K_own = product(split_a.left, K_own)
    K_a, K_01 = K_own[:, :a], K_own[:, a:]
    in_K = squeeze(K_shared, "K", "K in the directions of M")
    split_s = squeeze(product(shared.C, in_K.kernel), "C", "C in the directions of M on ker K")
    shared = shared.combined(split_s.left)
    s12 = split_s.rank
    once, twice = shared.part(slice(0, s12)), shared.part(slice(s12, len(shared.C[0])))
    s012 = twice.C.shape[1]
    s02 = K_shared.shape[1] - s012
    values = SecondOrderValues(
        s012, s12, s02, s01, r2 - s012 - s12 - s02, split.rank - s01, a, n - r2 - split.rank - a, m - r2 - r1 - r0
    )
    if values.strange == 0:
        return values, rows
    return values, _reduced(second, own, once, twice, K_a, K_01, K_shared, top, split, kernel, values.v)


def _reduced(second, own, once, twice, K_a, K_01, K_shared, top, split, kernel, v) -> _Triple:
    """Subtract derivatives of lower-order equations: (3.8). All coefficients are constant."""
    # Second order: K_shared differentiated twice, and the equations of `once` differentiated, leave L (M, C, K).
    k = K_shared.shape[1]
    L = product(np.concatenate([K_shared, once.C], axis=1), top.inverse)
    rest, taken = second.combined(_complement(L)), second.combined(L)
    # First order: K_01 differentiated leaves L (C, K).
    L = product(product(K_01, kernel), split.inverse)
    free, taken_first = own.combined(_complement(L)), own.combined(L)
    pieces = [
        _rows(*rest),
        _rows(C=taken.C[:, :k], K=taken.K[:, :k]),
        _rows(C=taken.C[:, k:] - once.K, K=taken.K[:, k:]),
        _rows(C=taken_first.C - K_01, K=taken_first.K),
        _rows(C=free.C, K=free.K),
        _rows(C=once.C, K=once.K),
        _rows(K=twice.K),
        _rows(K=K_a),
        _rows(K=K_01),
        _rows(K=K_shared),
        _rows(K=np.zeros((1, v, K_a.shape[2]))),
    ]
    return _Triple(*(np.concatenate(parts, axis=1) for parts in zip(*pieces)))


def _rows(M: np.ndarray | None = None, C: np.ndarray | None = None, K: np.ndarray | None = None) -> _Triple:
    """Rows (M, C, K) in which the matrices not given are zero."""
    given = next(X for X in (M, C, K) if X is not None)
    return _Triple(*(np.zeros_like(given) if X is None else X for X in (M, C, K)))


def _complement(L: np.ndarray) -> np.ndarray:
    """Rows that extend L to a regular matrix."""
    return np.linalg.svd(L[0])[2][None, L.shape[1] :]


# --- linear second-order systems and their first-order forms ----------------------------------------------------------

_CANCELLED = 1e-13  # fraction of the largest entry below which the result of a subtraction counts as zero


@dataclass(frozen=True, repr=False)
class SecondOrderStrangeness(TitledTables):
    """The strangeness index of a second-order system, with the characteristic values of each pass.

    Attributes
    ----------
    index : int
        The number of passes until no strange directions remain.
    values : tuple of SecondOrderValues
    decisions : tuple of RankDecision

    Examples
    --------
    >>> from daedal import linear
    >>> system = linear.SecondOrder([[1, 0], [0, 0]], [[1, 0], [0, 0]], [[0, 1], [1, 0]], names=["x1", "x2"])
    >>> found = system.strangeness()
    >>> print(found.index)
    2
    """

    index: int
    values: tuple[SecondOrderValues, ...]
    decisions: tuple[RankDecision, ...]

    @property
    def clear(self) -> bool:
        """Whether all rank decisions are unambiguous."""
        return all(decision.clear for decision in self.decisions)

    @property
    def degrees_of_freedom(self) -> int:
        """The number of free initial values: two for each direction of second order, one for each of first order."""
        return 2 * self.values[-1].d2 + self.values[-1].d1

    def title(self) -> str:
        doubt = "" if self.clear else " (a rank is unclear)"
        return f"Strangeness index {self.index}{doubt}: {plural(self.degrees_of_freedom, 'free initial value')}"

    def tables(self) -> list[Tabular]:
        header = ("pass", *SecondOrderValues._fields)
        rows = [(i, *values) for i, values in enumerate(self.values)]
        return [Tabular("r" * len(header), rows, header), decision_table(self.decisions)]


@dataclass(frozen=True, repr=False)
class FirstOrderForms(TitledTables):
    """A second-order system and its two first-order forms.

    Attributes
    ----------
    second_order : SecondOrderStrangeness
    trimmed, companion : Pencil
        The first-order forms with velocities for the unknowns with a second derivative, and for all unknowns.
    trimmed_strangeness, companion_strangeness : int

    Examples
    --------
    >>> from daedal import linear
    >>> system = linear.SecondOrder([[1, 0], [0, 0]], [[1, 0], [0, 0]], [[0, 1], [1, 0]], names=["x1", "x2"])
    >>> forms = system.forms()
    >>> print(forms.trimmed.index, forms.companion.index)
    3 4
    """

    second_order: SecondOrderStrangeness
    trimmed: Pencil
    companion: Pencil
    trimmed_strangeness: int
    companion_strangeness: int

    def title(self) -> str:
        if self.trimmed.index == self.companion.index:
            return f"Both first-order forms have index {self.trimmed.index}"
        return (
            f"Velocities for all unknowns raise the index to {self.companion.index}; with velocities only for "
            f"those with a second derivative it is {self.trimmed.index}"
        )

    def tables(self) -> list[Tabular]:
        def cells(pencil: Pencil, strangeness: int) -> tuple[Any, ...]:
            return pencil.shape[1], strangeness, "singular" if pencil.index is None else pencil.index, pencil.n_finite

        second = self.second_order
        rows = [
            ("second order", self.companion.shape[1] // 2, second.index, "", second.degrees_of_freedom),
            ("first order, velocities where needed", *cells(self.trimmed, self.trimmed_strangeness)),
            ("first order, velocities of all", *cells(self.companion, self.companion_strangeness)),
        ]
        return [Tabular("lrrrr", rows, ("form", "unknowns", "strangeness index", "index", "free initial values"))]


class SecondOrder:
    r"""The system :math:`M x'' + C x' + K x = f` with constant matrices.

    Rewritten as a first-order system with a velocity for each unknown, it may need one more derivative of f than its
    solution contains, and its index is higher by one (Wunderlich, example 3.2.1). Here it is analysed directly, and
    :meth:`trimmed` introduces velocities only where second derivatives occur.

    Parameters
    ----------
    M, C, K : array_like, shape (m, n)
    names : sequence of str, optional
        Names of the unknowns.
    tolerance : float
        See :func:`daedal.linear.rank_decision`.

    Examples
    --------
    x1'' + x1' + x2 = f1, x1 = f2, so that x2 = f1 - f2' - f2'':

    >>> from daedal.index import linear
    >>> system = linear.SecondOrder([[1, 0], [0, 0]], [[1, 0], [0, 0]], [[0, 1], [1, 0]])
    >>> print(system.forms())
    Velocities for all unknowns raise the index to 4; with velocities only for those with a second derivative it is 3
      form                                  unknowns  strangeness index  index  free initial values
      second order                                 2                  2                           0
      first order, velocities where needed         3                  2      3                    0
      first order, velocities of all               4                  3      4                    0
    """

    def __init__(self, M: Any, C: Any, K: Any, *, names: Sequence[str] | None = None, tolerance: float = TOLERANCE):
        self.M = check_matrix(M, "M")
        self.C, self.K = check_matrix(C, "C", self.M.shape), check_matrix(K, "K", self.M.shape)
        self.names = check_names(names, self.M.shape[1])
        self.tolerance = tolerance

    def strangeness(self) -> SecondOrderStrangeness:
        """The strangeness index of the second-order system.

        Examples
        --------
        >>> from daedal.index import linear
        >>> system = linear.SecondOrder([[1, 0], [0, 0]], [[1, 0], [0, 0]], [[0, 1], [1, 0]])
        >>> system.strangeness().index
        2
        """
        scaled = scale_pencil(self.M, self.K)
        unit = float(np.exp2(np.round(-0.5 * np.log2(scaled.time))))
        factors = scaled.rows[:, None] * scaled.columns
        values, decisions = second_order_passes(
            self.M * factors / unit**2, self.C * factors / unit, self.K * factors, self.tolerance
        )
        return SecondOrderStrangeness(len(values) - 1, tuple(values), tuple(decisions))

    def companion(self) -> Pencil:
        """The first-order system in (v, x) with v = x' for all unknowns."""
        n, eye = self.M.shape[1], np.eye(self.M.shape[1])
        A = np.block([[self.M, np.zeros_like(self.M)], [np.zeros((n, n)), eye]])
        B = np.block([[self.C, self.K], [-eye, np.zeros((n, n))]])
        return self._pencil(A, B, [f"{name}'" for name in self.names])

    def trimmed(self) -> Pencil:
        """The first-order system in (v, x) with velocities only in the directions in which M acts.

        If the kernel of M is spanned by unit vectors, v are the derivatives of the other unknowns; otherwise
        combinations of derivatives.
        """
        basis, labels = self._moving()
        n, k = self.M.shape[1], basis.shape[1]
        first_order = self.C - self.C @ basis @ basis.T  # x' in the directions without x''
        first_order[np.abs(first_order) < _CANCELLED * np.abs(self.C).max(initial=0.0)] = 0.0
        A = np.block([[self.M @ basis, first_order], [np.zeros((k, k)), basis.T]])
        B = np.block([[self.C @ basis, self.K], [-np.eye(k), np.zeros((k, n))]])
        return self._pencil(A, B, labels)

    def solution(self, f: Any = None, x0: Any = None, v0: Any = None, t0: float = 0.0) -> LinearSolution:
        """The exact solution, computed from the trimmed system: velocities first, then x.

        Parameters
        ----------
        f : QuasiPolynomial, array_like or callable, optional
            The right-hand side, see :meth:`Pencil.solution`; 0 by default.
        x0, v0 : array_like, optional
            x and x' at t0, both or none. Of x' only the component in the directions with a second derivative is used.
            They must be consistent; by default the solution starts with zero component in the finite subspace.
        t0 : float
            The time of the initial values.

        Examples
        --------
        >>> from daedal.index import linear
        >>> x = linear.SecondOrder([[1.0]], [[0.0]], [[1.0]]).solution(x0=[0.0], v0=[1.0])  # sin t
        >>> print(x(1.0))
        [0.54030231 0.84147098]
        """
        if (x0 is None) != (v0 is None):
            raise InvalidProblemError("give both x0 and v0, or neither")
        m, n = self.M.shape
        pencil, k = self.trimmed(), self._moving()[0].shape[1]
        forcing = as_forcing(f, m)

        def stacked(t: Any) -> list[Any]:
            return [*f(t), *[0.0] * k]  # the equations v - ... = 0

        wide = forcing.times(np.eye(m + k, m)) if isinstance(forcing, QuasiPolynomial) else stacked
        if x0 is None:
            return pencil.solution(wide, None, t0)
        x, v = check_matrix([x0], "x0", (1, n))[0], check_matrix([v0], "v0", (1, n))[0]
        return pencil.solution(wide, [*(self._moving()[0].T @ v), *x], t0)

    def _pencil(self, A: np.ndarray, B: np.ndarray, labels: list[str]) -> Pencil:
        return Pencil(A, B, names=[*labels, *self.names], tolerance=self.tolerance)

    def _moving(self) -> tuple[np.ndarray, list[str]]:
        """An orthonormal basis of the directions with a second derivative, and names of their velocities."""
        n = self.M.shape[1]
        scaled = scale_pencil(self.M, self.K)
        _, s, Vt = np.linalg.svd(scaled.A)
        decision = rank_decision(s, tolerance=self.tolerance, what="M")
        require_clear([decision], "the form of first order")
        occurring = np.flatnonzero(np.any(self.M != 0.0, axis=0))
        if occurring.size == decision.rank:
            return np.eye(n)[:, occurring], [f"{self.names[j]}'" for j in occurring]
        basis = np.linalg.qr((Vt[: decision.rank] / scaled.columns).T)[0]
        basis[np.abs(basis) < _CANCELLED] = 0.0
        return basis, [f"v[{k}]" for k in range(decision.rank)]

    def forms(self) -> FirstOrderForms:
        """Index and strangeness index of the system and of its first-order forms."""
        if self.M.shape[0] != self.M.shape[1]:
            raise InvalidProblemError("first-order forms are compared only if there are as many equations as unknowns")
        trimmed, companion = self.trimmed(), self.companion()
        systems = [TimeVarying(p.A, p.B, tolerance=self.tolerance) for p in (trimmed, companion)]
        return FirstOrderForms(
            self.strangeness(), trimmed, companion, *(system.strangeness(0.0).index for system in systems)
        )

    def __repr__(self) -> str:
        m, n = self.M.shape
        return f"<M x'' + C x' + K x = f: {plural(m, 'equation')}, {plural(n, 'unknown')}>"
