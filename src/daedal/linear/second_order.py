"""Linear systems of second order, and what happens to their index when they are written as ones of first order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.linear.forcing import QuasiPolynomial, as_forcing
from daedal.linear.pencil import Pencil
from daedal.linear.rank import TOLERANCE, RankDecision, decision_table, rank_decision, require_clear
from daedal.linear.scaling import scale_pencil
from daedal.linear.second_order_passes import SecondOrderValues, second_order_passes
from daedal.linear.solution import LinearSolution
from daedal.linear.time_varying import TimeVarying
from daedal.linear.words import Shown, check_matrix, check_names
from daedal.tabular import Tabular, plural

_CANCELLED = 1e-13  # part of the largest entry that a difference of equal numbers leaves


@dataclass(frozen=True, repr=False)
class SecondOrderStrangeness(Shown):
    """The strangeness index of a system of second order, with the characteristic values of each pass.

    Attributes
    ----------
    index : int
        The number of passes after which nothing is strange.
    values : tuple of SecondOrderValues
    decisions : tuple of RankDecision
    """

    index: int
    values: tuple[SecondOrderValues, ...]
    decisions: tuple[RankDecision, ...]

    @property
    def clear(self) -> bool:
        """Whether the numbers decide all ranks."""
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

    def __repr__(self) -> str:
        return f"<{self.title()}>"


@dataclass(frozen=True, repr=False)
class FirstOrderForms(Shown):
    """A system of second order and its two forms of first order, side by side.

    Attributes
    ----------
    second_order : SecondOrderStrangeness
    trimmed, companion : Pencil
        With velocities for the unknowns that have a second derivative, and for all.
    trimmed_strangeness, companion_strangeness : int
    """

    second_order: SecondOrderStrangeness
    trimmed: Pencil
    companion: Pencil
    trimmed_strangeness: int
    companion_strangeness: int

    def title(self) -> str:
        if self.trimmed.index == self.companion.index:
            return f"Both forms of first order have index {self.trimmed.index}"
        return (
            f"Velocities for all unknowns raise the index to {self.companion.index}; for those with a second "
            f"derivative alone it is {self.trimmed.index}"
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

    def __repr__(self) -> str:
        return f"<{self.title()}>"


class SecondOrder:
    r"""The system :math:`M x'' + C x' + K x = f` with constant matrices.

    Written as a system of first order with a velocity for each unknown, it may need one derivative of f more than its
    solution contains, and its index is one higher (Wunderlich, example 3.2.1). Here it is analysed as it is, and
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

    >>> from daedal import linear
    >>> system = linear.SecondOrder([[1, 0], [0, 0]], [[1, 0], [0, 0]], [[0, 1], [1, 0]])
    >>> print(system.forms())
    Velocities for all unknowns raise the index to 4; for those with a second derivative alone it is 3
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
        """The strangeness index of the system as it is.

        Examples
        --------
        >>> from daedal import linear
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
        """The system of first order in (v, x) with v = x' for all unknowns."""
        n, eye = self.M.shape[1], np.eye(self.M.shape[1])
        A = np.block([[self.M, np.zeros_like(self.M)], [np.zeros((n, n)), eye]])
        B = np.block([[self.C, self.K], [-eye, np.zeros((n, n))]])
        return self._pencil(A, B, [f"{name}'" for name in self.names])

    def trimmed(self) -> Pencil:
        """The system of first order in (v, x) with velocities only in the directions in which M acts.

        If zero columns of M make up its kernel, v are the derivatives of the other unknowns; else they are
        combinations of derivatives.
        """
        basis, labels = self._moving()
        n, k = self.M.shape[1], basis.shape[1]
        first_order = self.C - self.C @ basis @ basis.T  # x' in directions without x''
        first_order[np.abs(first_order) < _CANCELLED * np.abs(self.C).max(initial=0.0)] = 0.0
        A = np.block([[self.M @ basis, first_order], [np.zeros((k, k)), basis.T]])
        B = np.block([[self.C @ basis, self.K], [-np.eye(k), np.zeros((k, n))]])
        return self._pencil(A, B, labels)

    def solution(self, f: Any = None, x0: Any = None, v0: Any = None, t0: float = 0.0) -> LinearSolution:
        """The exact solution, as that of the trimmed system: velocities first, then x.

        Parameters
        ----------
        f : QuasiPolynomial, array_like or callable, optional
            The right-hand side, see :meth:`Pencil.solution`; 0 by default.
        x0, v0 : array_like, optional
            x and x' at t0, both or none. Of x' only the part in the directions with a second derivative is used. They
            must be consistent; by default the solution starts without a part in the finite subspace.
        t0 : float
            The time at which they hold.

        Examples
        --------
        >>> from daedal import linear
        >>> x = linear.SecondOrder([[1.0]], [[0.0]], [[1.0]]).solution(x0=[0.0], v0=[1.0])  # sin t
        >>> print(x(1.0))
        [0.54030231 0.84147098]
        """
        if (x0 is None) != (v0 is None):
            raise InvalidProblemError("give both x0 and v0, or none of them")
        m, n = self.M.shape
        pencil, k = self.trimmed(), self._moving()[0].shape[1]
        forcing = as_forcing(f, m)

        def stacked(t: Any) -> list[Any]:
            return [*f(t), *[0.0] * k]  # and v - ... = 0

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
        """Index and strangeness index of the system and of its forms of first order."""
        if self.M.shape[0] != self.M.shape[1]:
            raise InvalidProblemError("forms of first order are compared where there are as many equations as unknowns")
        trimmed, companion = self.trimmed(), self.companion()
        systems = [TimeVarying(p.A, p.B, tolerance=self.tolerance) for p in (trimmed, companion)]
        return FirstOrderForms(
            self.strangeness(), trimmed, companion, *(system.strangeness(0.0).index for system in systems)
        )

    def __repr__(self) -> str:
        m, n = self.M.shape
        return f"<M x'' + C x' + K x = f: {plural(m, 'equation')}, {plural(n, 'unknown')}>"
