r"""Data of a tableau for the steps of implicit Runge-Kutta methods, in general and for collocation.

Stages that depend on each other form one block: all of them for Gauss and Radau, single ones if A is lower triangular.
A first stage with a zero row, in a method whose last stage is the end of the step (trapezoidal rule, Lobatto IIIA), is
known: its slope is the slope at the end of the previous step (Brenan, Campbell and Petzold 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.polynomial import Legendre, Polynomial

from daedal.methods.exact_numbers import gauss_nodes, lagrange, right_radau_nodes
from daedal.methods.implicit_rk import implicit_families as families
from daedal.methods.implicit_rk.stage_systems import Transformation, transformation
from daedal.methods.tableau import RungeKuttaTableau, same

MOST_DEGREE = 7
"""Maximal degree of the polynomial of a step."""

PLACES = 3
"""Number of points inside a step at which the defect of its polynomial is evaluated."""


@dataclass(frozen=True)
class StageBlock:
    """Stages solved together: the first stage, their number, and the matrix of Newton's method for them."""

    first: int
    size: int
    matrix: int


class Stages:
    r"""A tableau prepared for steps.

    The slope at the start of the step is stored first: weights have s + 1 entries, the first for :math:`y'_n`, the
    others for :math:`Y'_1, \dots, Y'_s`.
    """

    def __init__(self, tableau: RungeKuttaTableau):
        self.tableau = tableau
        values = tableau.floats()
        self.a, self.b, self.c = values["a"], values["b"], values["c"]
        self.s = tableau.s
        self.embedded = self.b - np.array(tableau.embedded, dtype=float) if tableau.embedded else None

    @cached_property
    def end(self) -> int:
        """The stage at the end of the step, or -1."""
        one = self.tableau
        for i in reversed(range(self.s)):
            if same(one.c[i], 1) and all(same(x, y) for x, y in zip(one.a[i], one.b, strict=True)):
                return i
        return -1

    @cached_property
    def known(self) -> bool:
        """Whether the first stage is the end of the previous step, with known slope."""
        return bool(self.end > 0 and not np.any(self.a[0]) and self.c[0] == 0.0)

    @cached_property
    def solvable(self) -> bool:
        """Whether algebraic equations can be solved for all stages: A, without a known stage, is invertible."""
        k = int(self.known)
        return all(
            np.linalg.matrix_rank(self.a[b.first : b.first + b.size, b.first : b.first + b.size]) == b.size
            for b in self.blocks
            if b.first >= k
        )

    @cached_property
    def blocks(self) -> tuple[StageBlock, ...]:
        """The finest partition into consecutive stages with a block lower triangular matrix."""
        found: list[StageBlock] = []
        matrices: list[np.ndarray] = []
        first = 0
        while first < self.s:
            last = first
            while np.any(self.a[: last + 1, last + 1 :]):
                last += 1
            part = self.a[first : last + 1, first : last + 1]
            equal = [k for k, other in enumerate(matrices) if np.array_equal(part, other)]
            if not equal:
                matrices.append(part)
            found.append(StageBlock(first, last + 1 - first, equal[0] if equal else len(matrices) - 1))
            first = last + 1
        return tuple(found)

    @cached_property
    def matrices(self) -> tuple[StageBlock, ...]:
        """The first block of each matrix of Newton's method."""
        return tuple({block.matrix: block for block in reversed(self.blocks)}[k] for k in range(self._n_matrices))

    def of_block(self, block: StageBlock) -> np.ndarray:
        """The submatrix of A that belongs to a block."""
        last = block.first + block.size
        return self.a[block.first : last, block.first : last]

    @property
    def _n_matrices(self) -> int:
        return 1 + max(block.matrix for block in self.blocks)

    @cached_property
    def stage_order(self) -> int:
        """The largest q up to 2 with C(q): sum_j a_ij c_j^(k-1) = c_i^k / k for k up to q."""
        holds = [np.allclose(self.a @ self.c ** (k - 1), self.c**k / k, rtol=0.0, atol=1e-10) for k in (1, 2)]
        return sum(holds[: 1 + holds[0]])

    @cached_property
    def filtering(self) -> int:
        """The last block of a single stage whose matrix contains F_y, or -1."""
        found = [k for k, block in enumerate(self.blocks) if block.size == 1 and self.a[block.first, block.first]]
        return found[-1] if found else -1

    # --- polynomials --------------------------------------------------------------------------------------------------

    @cached_property
    def nodes(self) -> int:
        """The number of distinct nodes."""
        kept: list[Any] = []
        for x in self.tableau.c:
            if not any(same(x, y) for y in kept):
                kept.append(x)
        return len(kept)

    @cached_property
    def degree(self) -> int:
        """Degree of the polynomial of a step."""
        return min(max(self.nodes, 1), MOST_DEGREE)

    @cached_property
    def _basis(self) -> list[Legendre]:
        return [Legendre.basis(k, domain=[0.0, 1.0]) for k in range(self.nodes)]

    @cached_property
    def _inverse(self) -> np.ndarray:
        """The minimum-norm weights at the nodes for given moments with Legendre polynomials."""
        return np.linalg.pinv(np.array([p(self.c) for p in self._basis]))

    def slope(self, theta: float) -> np.ndarray:
        """Weights of the slopes in y' at t_n + theta h, by interpolation of the stages."""
        weights = self._inverse @ np.array([p(theta) for p in self._basis])
        return np.concatenate([[0.0], weights])

    def value(self, theta: float) -> np.ndarray:
        r"""Weights b(theta) with which :math:`y_n + h \sum b_i(\theta) Y'_i` interpolates; b(1) = b.

        For collocation methods this is the collocation polynomial.
        """
        weights = self._inverse @ np.array([p.integ(lbnd=0.0)(theta) for p in self._basis])
        rest = self.b - self._inverse @ np.array([p.integ(lbnd=0.0)(1.0) for p in self._basis])
        return np.concatenate([[0.0], weights + theta * rest])

    def hermite(self, theta: float) -> np.ndarray:
        """Weights of the cubic polynomial through values and slopes at both ends of the step."""
        weights = np.concatenate([[0.0], self.b]) * theta**2 * (3.0 - 2.0 * theta)
        weights[0] += theta * (1.0 - theta) ** 2
        weights[1 + self.end] -= theta**2 * (1.0 - theta)
        return weights

    @cached_property
    def end_slope(self) -> np.ndarray:
        """Weights of the slopes in y' at the end of the step: the stage there, or the slope of the polynomial."""
        if self.end >= 0:
            return np.eye(self.s + 1)[1 + self.end]
        rest = self.b - self._inverse @ np.array([p.integ(lbnd=0.0)(1.0) for p in self._basis])
        return self.slope(1.0) + np.concatenate([[0.0], rest])

    @cached_property
    def end_value(self) -> np.ndarray:
        """Weights of the stage slopes in y at the end, if it interpolates the values of the stages."""
        return self.b if self.end >= 0 else self.slope(1.0)[1:] @ self.a

    def inherited(self, degree: int, halved: bool) -> np.ndarray | None:
        """Effect at 1 - q/degree of a unit error of an algebraic variable at the start; `degree` is that of one half.

        The stages have no error, y_n + h sum_j a_ij Y'_j = 0; the error at the end is r. None if the end of a step is
        a stage, which does not propagate errors, or if A is singular and there are no algebraic variables.
        """
        if self.end >= 0 or np.linalg.matrix_rank(self.a) < self.s:
            return None
        slopes = -np.linalg.solve(self.a, np.ones(self.s))
        inside, r = 1.0 + self.inner(degree, False)[:, 1:] @ slopes, 1.0 + self.b @ slopes
        one = np.concatenate([[r], inside, [1.0]])
        return np.concatenate([r * one, one[1:]]) if halved else one

    def inner(self, degree: int, hermite: bool) -> np.ndarray:
        """Weights at theta = 1 - q/degree, q = 1 .. degree - 1."""
        weights = self.hermite if hermite else self.value
        return np.array([weights(1.0 - q / degree) for q in range(1, degree)]).reshape(-1, self.s + 1)


def inside(degree: int) -> dict[str, np.ndarray]:
    r"""Points :math:`\theta` inside a step, and the weights of values at 1 - q/degree in the polynomial and its slope.

    Two of them lie between the last two points at either end, where interpolation is least accurate; none lies where
    the slope of the polynomial is generally exact.
    """
    places = np.array([0.4 / degree, 0.3, 1.0 - 0.6 / degree])
    powers = np.linalg.inv(np.vander(1.0 - np.arange(degree + 1) / degree, increasing=True))
    slopes = np.arange(1, degree + 1) * np.vander(places, degree, increasing=True)
    return {
        "inside": places,
        "inside_value": np.vander(places, degree + 1, increasing=True) @ powers,
        "inside_slope": slopes @ powers[1:],
    }


@cache
def stages_of(tableau: RungeKuttaTableau) -> Stages:
    """The tableau prepared for steps, computed once."""
    return Stages(tableau)


# --- collocation methods ----------------------------------------------------------------------------------------------


_FAMILIES = {"radau": families.radau_iia, "gauss": families.gauss, "lobatto": families.lobatto_iiia}
_NODES = {"radau": right_radau_nodes, "gauss": gauss_nodes}
_ORDERS = {"radau": -1, "gauss": 0, "lobatto": -2}  # order minus twice the number of stages
KINDS = tuple(_FAMILIES)
STAGES = range(2, 6)
RADAU_STAGES = (3, 5, 7)


class CollocationStages(Stages):
    r"""The stages of a collocation method: Radau IIA, Gauss or Lobatto IIIA.

    With the nodes c and the Lagrange polynomials :math:`L_j` the coefficients are :math:`a_{ij} = \int_0^{c_i} L_j` and
    :math:`b_j = \int_0^1 L_j` (Wunderlich (6.7)); for :math:`\ddot x = f` they become :math:`A^2` and :math:`b^T A`
    (6.14e). A stage at node 0 is known, and :math:`A^{-1}` then is the inverse of the remaining matrix.
    """

    def __init__(self, kind: str, stages: int):
        super().__init__(_FAMILIES[kind](stages))
        self.kind, self.order = kind, 2 * stages + _ORDERS[kind]

    # --- Newton's method ----------------------------------------------------------------------------------------------

    @cached_property
    def _slopes(self) -> np.ndarray:
        """Slopes at 0 and at the nodes of both Lagrange polynomials; exact or with 60 digits until they are rounded."""
        nodes = _NODES[self.kind](self.s)[0]
        return np.array([[float(value) for value in row] for row in _differentiation([Fraction(0), *nodes])])

    @cached_property
    def w(self) -> np.ndarray:
        r"""W = A^{-1}: with :math:`X_i = x_n + Z_i` the slopes of the stages are W Z / h.

        With :math:`X_i = x_n + c_i h \dot x_n + Z_i` they are :math:`\dot x_n + W Z / h`, and second derivatives
        :math:`W^2 Z / h^2 - (W a_0) \ddot x_n`, where :math:`a_0` is the column of a known first stage.
        """
        if self.known:
            return np.linalg.inv(self.a[1:, 1:])
        return np.ascontiguousarray(self._slopes[1:, 1:])

    @cached_property
    def known_column(self) -> np.ndarray:
        """W a_0."""
        return self.w @ self.a[1:, 0] if self.known else np.zeros(self.s)

    @cached_property
    def newton(self) -> Transformation:
        """The transformation of W to block triangular form, for Newton's method."""
        return transformation(self.w)

    @cached_property
    def gamma(self) -> float:
        """The real eigenvalue of W; if there is none, the smallest modulus of the eigenvalues."""
        return self.newton.real[0] if self.newton.real else float(np.min(np.hypot(*self.newton.pairs.T)))

    # --- equations of second order ------------------------------------------------------------------------------------

    @cached_property
    def polynomials(self) -> np.ndarray:
        r"""L_j, their integrals and double integrals, as coefficients of theta^0 .. theta^{s+1}, shape (3, s, s + 2).

        The solution inside a step is x_n + theta h x'_n + h^2 sum_j (int int L_j) x''_j for variables of order 2, with
        one integral fewer for each lower order.
        """
        result = np.zeros((3, self.s, self.s + 2))
        nodes = [Fraction(float(x)) for x in self.c]
        for j in range(self.s):
            polynomial = Polynomial([float(x) for x in lagrange(nodes, j)])
            for level in range(3):
                coefficients = (polynomial.integ(level) if level else polynomial).coef
                result[level, j, : coefficients.size] = coefficients
        return result

    @cached_property
    def error_weights(self) -> tuple[np.ndarray, float]:
        r"""Weights of x'' at the start and at the stages in the error of x' (times h), and their ratio to those of x.

        The embedded method interpolates x'' at the start of the step and at all stages but the last, which gives order
        s; the difference between the two is a multiple of the divided difference of x'' over all of these nodes. If the
        first node is 0, the embedded method has order s - 1.
        """
        nodes = self.c if self.known else np.concatenate([[0.0], self.c])
        m = nodes.size
        divided = np.array([1.0 / np.prod(nodes[j] - np.delete(nodes, j)) for j in range(m)])
        shape = Polynomial.fromroots(nodes[: m - 1]) if self.known else Polynomial.fromroots(nodes[1 : m - 1])
        factor = 1.0 if self.known else nodes[-1]
        single, double = shape.integ()(1.0), shape.integ(2)(1.0)
        if abs(single) < 1e-10:  # zero for the symmetric inner nodes of Lobatto: include the factor of the end point
            single, double = float(Polynomial.fromroots(nodes[: m - 1]).integ()(nodes[1])), 0.0
        weights = factor * single * divided
        ratio = abs(double / single) if double else 0.5
        return (np.concatenate([[0.0], weights]) if self.known else weights), ratio

    # --- Radau IIA for equations of first order -----------------------------------------------------------------------

    # The collocation polynomial u passes through y_0 and the stages y_0 + Z_i; its slopes at the nodes are h u'(t_i) =
    # sum_j w_ij Z_j, its slope at the start h u'(t_0) = sum_j d_j Z_j.

    @property
    def d(self) -> np.ndarray:
        """Weights of the slope of u at the start of the step."""
        return self._slopes[0, 1:].copy()

    @property
    def share(self) -> float:
        """The largest error of u inside a step in units of (h / gamma) (y'_0 - u'(t_0)), for smooth solutions.

        y - u is h^(s+1) y^(s+1) / s! times int_0^theta M, M = prod (theta - c_i); h (y' - u') is
        h^(s+1) y^(s+1) / s! times M.
        """
        error = Polynomial.fromroots(self.c).integ()
        return float(np.max(np.abs(error(self.c))) * self.gamma / np.prod(self.c))

    @cached_property
    def worst(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Point at which the error of u, |theta prod (theta - c_i)|, is largest; weights of the Z_i in u and in
        h u' there."""
        nodes = np.concatenate([[0.0], self.c])
        shape = Polynomial.fromroots(nodes)
        places = np.real(shape.deriv().roots())
        middle = float(places[np.argmax(np.abs(shape(places)))])
        others = [np.delete(nodes, j) for j in range(1, nodes.size)]
        polynomials = [Polynomial.fromroots(rest) / np.prod(x - rest) for x, rest in zip(self.c, others, strict=True)]
        value = np.array([polynomial(middle) for polynomial in polynomials])
        return middle, value, np.array([polynomial.deriv()(middle) for polynomial in polynomials])


@cache
def collocation_stages(kind: str, stages: int) -> CollocationStages:
    """The collocation method of this kind and number of stages.

    Examples
    --------
    >>> from daedal.methods.implicit_rk.implicit_stages import collocation_stages
    >>> radau5 = collocation_stages("radau", 3)
    >>> print(radau5.c.round(6), round(radau5.gamma, 6))
    [0.155051 0.644949 1.      ] 3.637834
    """
    return CollocationStages(kind, stages)


def kind_of(given: RungeKuttaTableau) -> tuple[str, int] | None:
    """Kind and number of stages of the collocation method with these coefficients; None for other methods.

    Examples
    --------
    >>> import daedal
    >>> from daedal.methods.implicit_rk.implicit_stages import kind_of
    >>> kind_of(daedal.methods.coefficients("gauss3")), kind_of(daedal.methods.coefficients("lobatto_iiic3"))
    (('gauss', 3), None)
    """
    if given.s not in STAGES:
        return None
    values = given.floats()
    for kind in KINDS:
        own = collocation_stages(kind, given.s)
        if all(np.allclose(values[name], getattr(own, name), rtol=0.0, atol=1e-13) for name in ("a", "b", "c")):
            return kind, given.s
    return None


def _differentiation(nodes: list[Any]) -> list[list[Any]]:
    """l_j'(x_i) for the Lagrange polynomials l_j of the nodes, by their barycentric weights."""
    weights = []
    for i, x in enumerate(nodes):
        weight = Fraction(1)
        for j, other in enumerate(nodes):
            if j != i:
                weight /= x - other
        weights.append(weight)
    rows = []
    for i, x in enumerate(nodes):
        row = [weights[j] / weights[i] / (x - nodes[j]) if j != i else Fraction(0) for j in range(len(nodes))]
        row[i] = -sum(row, Fraction(0))
        rows.append(row)
    return rows
