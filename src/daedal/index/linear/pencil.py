"""Matrix pencils: analysis of A x' + B x = f with constant matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.tabular import Tabular, plural
from daedal.errors import InvalidProblemError
from daedal.index.linear.canonical_forms import (
    MatrixChain,
    WeierstrassForm,
    matrix_chain,
    shuffle,
    staircase,
    weierstrass_form,
)
from daedal.index.linear.exact_solution import Consistency, LinearSolution, solve_constant, start_of
from daedal.index.linear.functions_of_time import as_forcing
from daedal.index.linear.rank import (
    MARGIN,
    TOLERANCE,
    RankDecision,
    TitledTables,
    check_matrix,
    check_names,
    decision_table,
    numbers,
    rank_decision,
    require_clear,
    scale_pencil,
)

_GENERIC = np.exp(1j * np.array([0.7, 1.9, 2.6]))  # points at which a pencil almost surely has its normal rank
_TAKES_PART = 1e-6  # component of unit null vectors above which its equation or unknown is named


class Pencil(TitledTables):
    r"""Analysis of the pencil :math:`\lambda A + B` of the system :math:`A x' + B x = f`.

    The structure is computed by a staircase algorithm with orthogonal transformations, after scaling equations,
    unknowns and time. It depends on rank decisions, which are stored in :attr:`decisions`.

    Parameters
    ----------
    A, B : array_like, shape (m, n)
        Constant matrices; m equations in n unknowns.
    names : sequence of str, optional
        Names of the unknowns.
    tolerance : float
        Singular values below this fraction of the norm count as zero, see :func:`daedal.linear.rank_decision`. Entries
        from measurements or difference quotients need a larger one.

    Attributes
    ----------
    A, B : numpy.ndarray
        The given matrices.
    names : tuple of str
        Names of the unknowns.

    Examples
    --------
    x1' + x3 = f1, x2' + x1 = f2, x2 = f3:

    >>> from daedal.index import linear
    >>> pencil = linear.Pencil([[1, 0, 0], [0, 1, 0], [0, 0, 0]], [[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    >>> pencil.regular, pencil.index, pencil.infinite_blocks, pencil.n_finite
    (True, 3, (3,), 0)
    """

    def __init__(self, A: Any, B: Any, *, names: Sequence[str] | None = None, tolerance: float = TOLERANCE):
        self.A = check_matrix(A, "A")
        self.B = check_matrix(B, "B", self.A.shape)
        if 0 in self.A.shape:
            raise InvalidProblemError("A and B must have at least one row and one column")
        if not 0.0 < tolerance < 1.0:
            raise InvalidProblemError(f"tolerance must lie between 0 and 1, not be {tolerance}")
        self.tolerance = float(tolerance)
        self.names = check_names(names, self.A.shape[1])
        self.scaled = scale_pencil(self.A, self.B)
        self.stairs = staircase(self.scaled.A, self.scaled.B, tolerance)
        rest_A, rest_B = self.stairs.rest
        self.left_stairs = staircase(rest_A.T, rest_B.T, tolerance, ("the transposed A", "the transposed B"))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of equations, number of unknowns."""
        return self.A.shape[0], self.A.shape[1]

    @cached_property
    def decisions(self) -> tuple[RankDecision, ...]:
        """All rank decisions that determine the structure."""
        value = _GENERIC[0] * self.scaled.A + self.scaled.B
        generic = rank_decision(value, tolerance=self.tolerance, what="λA + B at a point")
        return *self.stairs.decisions, *self.left_stairs.decisions, generic

    @cached_property
    def clear(self) -> bool:
        """Whether all rank decisions are unambiguous and mutually consistent."""
        normal_rank = self.shape[1] - len(self.right_minimal_indices)
        agree = normal_rank == self.decisions[-1].rank == self.shape[0] - len(self.left_minimal_indices)
        return agree and all(decision.clear for decision in self.decisions)

    @property
    def regular(self) -> bool:
        """Whether det(λA + B) does not vanish identically: each consistent initial value has exactly one solution."""
        square = self.shape[0] == self.shape[1]
        return square and not self.right_minimal_indices and not self.left_minimal_indices

    @property
    def index(self) -> int | None:
        """The size of the largest infinite block; None for a singular pencil, which has no index."""
        return max(self.infinite_blocks, default=0) if self.regular else None

    @property
    def infinite_blocks(self) -> tuple[int, ...]:
        """The sizes of the nilpotent Jordan blocks, largest first."""
        return self.stairs.infinite_blocks

    @property
    def right_minimal_indices(self) -> tuple[int, ...]:
        """Kronecker's column minimal indices: each corresponds to a free function in the solution."""
        return self.stairs.minimal_indices

    @property
    def left_minimal_indices(self) -> tuple[int, ...]:
        """Kronecker's row minimal indices: each corresponds to a redundant or contradictory combination of
        equations."""
        return self.left_stairs.minimal_indices

    @property
    def finite(self) -> tuple[np.ndarray, np.ndarray]:
        """The finite part of the scaled pencil, whose A is regular."""
        A, B = self.left_stairs.rest
        return A.T, B.T

    @property
    def n_finite(self) -> int:
        """The number of finite eigenvalues; for a regular pencil also the number of free initial values."""
        return self.finite[0].shape[0]

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """The finite eigenvalues: λ with det(λA + B) = 0, so that x = exp(λ t) v solves A x' + B x = 0."""
        from scipy.linalg import eigvals

        A, B = self.finite
        return eigvals(-B, A) * self.scaled.time if A.size else np.zeros(0, dtype=complex)

    @cached_property
    def undetermined(self) -> tuple[int, ...]:
        """The unknowns in free functions of a singular pencil; largest component first."""
        return self._participants(self.scaled.A, self.scaled.B, len(self.right_minimal_indices))

    @cached_property
    def redundant(self) -> tuple[int, ...]:
        """The equations in redundant or contradictory combinations; largest component first."""
        return self._participants(self.scaled.A.T, self.scaled.B.T, len(self.left_minimal_indices))

    @staticmethod
    def _participants(A: np.ndarray, B: np.ndarray, count: int) -> tuple[int, ...]:
        """Indices of the nonzero components of null vectors of λA + B, largest component first."""
        if count == 0:
            return ()
        null = [np.linalg.svd(value * A + B)[2][-count:].conj() for value in _GENERIC]
        share = np.sqrt(np.sum(np.abs(np.concatenate(null)) ** 2, axis=0))
        return tuple(int(i) for i in np.argsort(-share, kind="stable") if share[i] > _TAKES_PART)

    @cached_property
    def alternatives(self) -> tuple[str, ...]:
        """Descriptions of the structure for a smaller and a larger tolerance; empty if all decisions are clear."""
        if self.clear:
            return ()
        others = [Pencil(self.A, self.B, tolerance=min(self.tolerance * by, 0.5)) for by in (1.0 / MARGIN, MARGIN)]
        return tuple(dict.fromkeys(other._structure() for other in others))

    def _structure(self) -> str:
        if not self.regular:
            return "singular"
        return f"index {self.index} with {plural(self.n_finite, 'free initial value')}"

    def weierstrass(self) -> WeierstrassForm:
        """The Weierstrass form of a regular pencil.

        Raises
        ------
        UnclearRankError
            If the structure cannot be determined numerically.
        InvalidProblemError
            If the pencil is singular.

        Examples
        --------
        >>> from daedal.index import linear
        >>> form = linear.Pencil([[1.0, 1.0], [0.0, 0.0]], [[0.0, 2.0], [1.0, 3.0]]).weierstrass()
        >>> form.n_finite, form.index
        (1, 1)
        """
        self.require_regular("the Weierstrass form")
        return self._weierstrass

    @cached_property
    def _weierstrass(self) -> WeierstrassForm:
        return weierstrass_form(self)

    def solution(
        self, f: Any = None, x0: Any = None, t0: float = 0.0, *, derivatives: Any = None, tolerance: float = 1e-8
    ) -> LinearSolution:
        """The exact solution of A x' + B x = f.

        Parameters
        ----------
        f : QuasiPolynomial, array_like or callable, optional
            The right-hand side: a function created by :func:`daedal.linear.polynomial`,
            :func:`~daedal.linear.exponential` or :func:`~daedal.linear.sine`, or a sum of such functions (solved in
            closed form); a constant vector; or a function of t (solved by quadrature). 0 by default. Functions that use
            NumPy functions are differentiated exactly.
        x0 : array_like, optional
            Initial values, which must be consistent. By default, the values with zero component in the finite subspace.
        t0 : float
            The time of the initial values.
        derivatives : sequence of callables, or callable, optional
            The derivatives of a function f: one function of t for each order, or one of t and the order.
        tolerance : float
            Accepted relative violation of a constraint by x0.

        Raises
        ------
        InconsistentInitialError
            If x0 violates a constraint; the message names it.

        Examples
        --------
        >>> from daedal.index import linear
        >>> pencil = linear.Pencil([[1, 0], [0, 0]], [[1, 1], [0, 1]])  # x' + x + y = 0, y = sin t
        >>> x = pencil.solution(linear.sine([0, 1]), [1.0, 0.0])
        >>> print(x(1.0))
        [0.03335538 0.84147098]
        """
        return solve_constant(self, f, x0, t0, derivatives, tolerance)

    def consistent(
        self, x0: Any, f: Any = None, t0: float = 0.0, *, derivatives: Any = None, tolerance: float = 1e-8
    ) -> Consistency:
        """Test initial values of A x' + B x = f, and project them onto consistent ones.

        The projection preserves the component of x0 in the finite subspace and replaces the other component. Parameters
        are those of :meth:`solution`.

        Examples
        --------
        >>> from daedal.index import linear
        >>> pencil = linear.Pencil([[1, 0], [0, 0]], [[1, 1], [0, 1]], names=["x", "y"])
        >>> print(pencil.consistent([1.0, 5.0], linear.sine([0, 1], phase=1.0)))
        Initial values at t = 0: 1 constraint violated
          constraint   must be  given
          y           0.841471      5  violated
        """
        self.require_regular("the test of initial values")
        return start_of(self, x0, as_forcing(f, len(self.A), derivatives), float(t0), tolerance)

    def require_regular(self, what: str) -> None:
        """Raise an error if the pencil is singular or its structure is ambiguous."""
        require_clear(self.decisions, what)
        if not self.regular:
            raise InvalidProblemError(f"{what} needs a regular pencil, but this one is singular: {self._why()}")

    def shuffled(self) -> Pencil:
        """The system after one pass of the shuffle algorithm, which lowers the index by one.

        The equations without derivatives are replaced by their derivatives (Brenan, Campbell and Petzold, theorem
        2.3.3). Existing solutions remain; further ones are added.
        """
        A, B, _ = shuffle(self.A, self.B, self.tolerance)
        return Pencil(A, B, names=self.names, tolerance=self.tolerance)

    def matrix_chain(self) -> MatrixChain:
        """The projector chain of the pencil, which gives its tractability index.

        Examples
        --------
        >>> from daedal.index import linear
        >>> linear.Pencil([[1, 0], [0, 0]], [[0, 1], [1, 0]]).matrix_chain().index
        2
        """
        return matrix_chain(self)

    def _why(self) -> str:
        parts = []
        free, extra = len(self.right_minimal_indices), len(self.left_minimal_indices)
        if free:
            unknowns = ", ".join(self.names[j] for j in self.undetermined)
            parts.append(f"{plural(free, 'function')} {'remains' if free == 1 else 'remain'} free ({unknowns})")
        if extra:
            equations = ", ".join(map(str, self.redundant))
            verbs = "follows from the others or contradicts" if extra == 1 else "follow from the others or contradict"
            parts.append(f"{plural(extra, 'combination')} of the equations ({equations}) {verbs} them")
        return "; ".join(parts)

    def title(self) -> str:
        m, n = self.shape
        return f"A x' + B x = f: {plural(m, 'equation')}, {plural(n, 'unknown')}"

    def tables(self) -> list[Tabular]:
        rows = [
            (
                "regular",
                ("yes: one solution for each consistent initial value") if self.regular else f"no: {self._why()}",
            )
        ]
        if not self.clear:
            doubts = [decision for decision in self.decisions if not decision.clear]
            words = "; ".join(map(str, doubts)) if doubts else "the ranks are mutually inconsistent"
            rows.insert(0, ("unclear", f"{words}. Possible: {' or '.join(self.alternatives)}"))
        if self.regular:
            rows.append(("index", str(self.index)))
            rows.append(("free initial values", f"{self.n_finite} of {self.shape[1]}"))
        else:
            rows.append(("right minimal indices", ", ".join(map(str, self.right_minimal_indices)) or "none"))
            rows.append(("left minimal indices", ", ".join(map(str, self.left_minimal_indices)) or "none"))
        rows.append(("finite eigenvalues", numbers(self.eigenvalues)))
        rows.append(("infinite blocks", ", ".join(map(str, self.infinite_blocks)) or "none"))
        return [Tabular("ll", rows), decision_table(self.decisions)]

    def __repr__(self) -> str:
        words = self._structure() if self.clear else "unclear: " + " or ".join(self.alternatives)
        return f"<Pencil {self.shape[0]}x{self.shape[1]}, {words}>"


# --- the Drazin inverse -----------------------------------------------------------------------------------------------


def drazin_inverse(M: Any, *, tolerance: float = TOLERANCE) -> np.ndarray:
    r"""The Drazin inverse of a square matrix.

    :math:`M^D M M^D = M^D`, :math:`M M^D = M^D M` and :math:`M^{\nu+1} M^D = M^\nu`, where :math:`\nu` is the index of
    M, the smallest power with the same rank as the next one. For a regular matrix it is the inverse.

    Parameters
    ----------
    M : array_like, shape (n, n)
    tolerance : float
        See :func:`daedal.linear.rank_decision`.

    Raises
    ------
    UnclearRankError
        If it cannot be decided numerically which eigenvalues vanish.

    Notes
    -----
    The eigenvalue 0 of M is the infinite eigenvalue of the pencil :math:`\lambda M + I`; with its Weierstrass form
    :math:`M^D = Q\, \mathrm{diag}(C, 0)\, Q^{-1}`.

    Examples
    --------
    >>> from daedal.index import linear
    >>> linear.drazin_inverse([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    array([[0.5, 0. , 0. ],
           [0. , 0. , 0. ],
           [0. , 0. , 0. ]])
    """
    matrix = check_matrix(M, "M")
    if matrix.shape[0] != matrix.shape[1]:
        raise InvalidProblemError(f"M must be square, but its shape is {matrix.shape}")
    form = Pencil(matrix, np.eye(len(matrix)), tolerance=tolerance).weierstrass()
    k = form.n_finite
    return form.Q[:, :k] @ form.C @ np.linalg.inv(form.Q)[:k] + 0.0
