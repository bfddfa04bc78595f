"""Collocation methods in the form used by their steps: for second-order equations, and Radau IIA for first-order
ones."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from daedal.methods.exact_numbers import gauss_nodes, lagrange, right_radau_nodes
from daedal.methods.implicit_rk import implicit_families as families
from daedal.methods.implicit_rk.implicit_stages import Stages
from daedal.methods.implicit_rk.stage_systems import Transformation, transformation
from daedal.methods.tableau import RungeKuttaTableau

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
        """The transformation of W."""
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
        if abs(single) < 1e-10:  # Lobatto's inner nodes are symmetric: the distance of the end point is included
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
    >>> from daedal.methods.implicit_rk.collocation_stages import collocation_stages
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
    >>> from daedal.methods.implicit_rk.collocation_stages import kind_of
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
