"""Collocation methods as data: for second-order equations, and Radau IIA for first-order ones."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from daedal.methods.exact_numbers import lagrange, right_radau_nodes
from daedal.methods.implicit_rk import implicit_families as families
from daedal.methods.implicit_rk.stage_systems import Transformation, transformation
from daedal.methods.tableau import RungeKuttaTableau

# With the nodes c and the Lagrange polynomials L_j the coefficients are a_ij = int_0^{c_i} L_j and b_j = int_0^1 L_j
# (Wunderlich (6.7)); for x'' = f they become A~ = A^2 and b~ = b^T A (6.14e). Stages whose node is 0 are known, and A
# stands for the rest of the matrix where it has to be inverted.

_FAMILIES = {"radau": families.radau_iia, "gauss": families.gauss, "lobatto": families.lobatto_iiia}
KINDS = tuple(_FAMILIES)
STAGES = range(2, 6)


@dataclass(frozen=True)
class CollocationTableau:
    r"""Coefficients of a collocation method."""

    kind: str  # "radau" (IIA), "gauss" or "lobatto" (IIIA)
    # Nodes, weights, matrix
    c: np.ndarray
    b: np.ndarray
    a: np.ndarray
    order: int  # classical order: 2s - 1, 2s, 2s - 2
    known: int  # 1 if the first node is 0, else 0

    @property
    def s(self) -> int:
        """The number of stages."""
        return self.c.size

    @property
    def a_tilde(self) -> np.ndarray:
        """A^2, the matrix for positions."""
        return self.a @ self.a

    @property
    def b_tilde(self) -> np.ndarray:
        """b^T A, the weights for positions."""
        return self.b @ self.a

    @property
    def stiffly_accurate(self) -> bool:
        """Whether the last stage is the end of the step."""
        return self.kind != "gauss"


@cache
def tableau(kind: str, stages: int) -> CollocationTableau:
    """The collocation method of a kind with so many stages.

    Examples
    --------
    >>> from daedal.methods.implicit_rk.collocation_tableaux import tableau
    >>> print(tableau("radau", 2).a_tilde.round(6) + 0.0)
    [[ 0.111111 -0.055556]
     [ 0.5       0.      ]]
    """
    values = _FAMILIES[kind](stages).floats()
    order = {"radau": 2 * stages - 1, "gauss": 2 * stages, "lobatto": 2 * stages - 2}[kind]
    known = 1 if kind == "lobatto" else 0
    return CollocationTableau(kind, values["c"], values["b"], values["a"], order, known)


def kind_of(given: RungeKuttaTableau) -> tuple[str, int] | None:
    """Kind and number of stages of the method with these coefficients, if it is one of those here.

    Examples
    --------
    >>> import daedal
    >>> from daedal.methods.implicit_rk.collocation_tableaux import kind_of
    >>> kind_of(daedal.formula("gauss3")), kind_of(daedal.formula("lobatto_iiic3"))
    (('gauss', 3), None)
    """
    if given.s not in STAGES:
        return None
    values = given.floats()
    for kind in KINDS:
        own = tableau(kind, given.s)
        if all(np.allclose(values[name], getattr(own, name), rtol=0.0, atol=1e-13) for name in ("a", "b", "c")):
            return kind, given.s
    return None


def _lagrange(nodes: np.ndarray, j: int) -> Polynomial:
    return Polynomial([float(x) for x in lagrange([Fraction(float(x)) for x in nodes], j)])


@dataclass(frozen=True)
class NewtonData:
    r"""What the simplified Newton method takes from a tableau.

    With W = A^{-1} and X_i = x_n + c_i h x'_n + Z_i the stages have X' = x'_n + W Z / h and
    X'' = W^2 Z / h^2 - (W a_0) x''_n, where a_0 is the column of a known first stage. The eigenvalues of W decouple the
    stages: a system F_x + (g/h) F_x' + (g/h)^2 F_x'' for each, real or complex.
    """

    w: np.ndarray
    w2: np.ndarray
    known_column: np.ndarray
    newton: Transformation  # of W
    gamma: float


@cache
def newton_data(kind: str, stages: int) -> NewtonData:
    """The data of Newton's method for a tableau."""
    t = tableau(kind, stages)
    k = t.known
    w = np.linalg.inv(t.a[k:, k:])
    newton = transformation(w)
    known_column = w @ t.a[k:, 0] if k else np.zeros(w.shape[0])
    gamma = newton.real[0] if newton.real else float(np.min(np.hypot(*newton.pairs.T)))
    return NewtonData(w, w @ w, known_column, newton, gamma)


@cache
def polynomials(kind: str, stages: int) -> np.ndarray:
    r"""L_j, their integrals and double integrals, as coefficients of theta^0 .. theta^{s+1}, shape (3, s, s + 2).

    The solution inside a step is x_n + theta h x'_n + h^2 sum_j (int int L_j) x''_j for variables of order 2, with one
    integral less for each order less.
    """
    c = tableau(kind, stages).c
    result = np.zeros((3, stages, stages + 2))
    for j in range(stages):
        polynomial = _lagrange(c, j)
        for level in range(3):
            coefficients = (polynomial.integ(level) if level else polynomial).coef
            result[level, j, : coefficients.size] = coefficients
    return result


@cache
def error_weights(kind: str, stages: int) -> tuple[np.ndarray, float]:
    r"""Weights of x'' at the start and at the stages in the error of x' (times h), and their ratio to those of x.

    The embedded method interpolates x'' at the start of the step and at all stages but the last, which makes it of
    order s; the difference of both is a multiple of the divided difference of x'' over all of these nodes. A first node
    that is 0 already leaves an embedded method of order s - 1.
    """
    t = tableau(kind, stages)
    nodes = t.c if t.known else np.concatenate([[0.0], t.c])
    m = nodes.size
    divided = np.array([1.0 / np.prod(nodes[j] - np.delete(nodes, j)) for j in range(m)])
    shape = Polynomial.fromroots(nodes[: m - 1]) if t.known else Polynomial.fromroots(nodes[1 : m - 1])
    factor = 1.0 if t.known else nodes[-1]
    single, double = shape.integ()(1.0), shape.integ(2)(1.0)
    if abs(single) < 1e-10:  # Lobatto's inner nodes are symmetric: the distance of the end point measures as well
        single, double = float(Polynomial.fromroots(nodes[: m - 1]).integ()(nodes[1])), 0.0
    weights = factor * single * divided
    ratio = abs(double / single) if double else 0.5
    return (np.concatenate([[0.0], weights]) if t.known else weights), ratio


# --- Radau IIA as data: nodes, derivatives of the collocation polynomial, and what decouples Newton's systems ---------

# The collocation polynomial u passes through y_0 and the stages y_0 + Z_i; its slopes at the nodes are h u'(t_i) =
# sum_j w_ij Z_j with W = A^{-1}, its slope at the start h u'(t_0) = sum_j d_j Z_j. All of it follows from the nodes,
# the zeros of P_s - P_{s-1} on [0, 1], and is computed with exact numbers, or with 60 digits, before it is rounded.

RADAU_STAGES = (3, 5, 7)


@dataclass(frozen=True)
class RadauTableau:
    r"""Coefficients of the Radau IIA method with s stages."""

    c: np.ndarray  # nodes
    w: np.ndarray  # W = A^{-1}
    d: np.ndarray  # weights of the slope at the start of the step
    gamma: float  # the real eigenvalue of W
    newton: Transformation  # of W
    # The largest error of u inside of a step in units of (h / gamma) (y'_0 - u'(t_0)), for smooth solutions
    share: float
    middle: float  # where the polynomial through y_0 and the stages is worst, as a part of the step
    # Weights of the stages in u there, and in h u'
    value: np.ndarray
    slope: np.ndarray

    @property
    def s(self) -> int:
        """The number of stages."""
        return self.c.size

    @property
    def order(self) -> int:
        """The classical order."""
        return 2 * self.s - 1


@cache
def radau_tableau(stages: int) -> RadauTableau:
    """The Radau IIA method with so many stages.

    Examples
    --------
    >>> from daedal.methods.implicit_rk.collocation_tableaux import radau_tableau
    >>> print(radau_tableau(3).c.round(6), round(radau_tableau(3).gamma, 6))
    [0.155051 0.644949 1.      ] 3.637834
    """
    nodes = right_radau_nodes(stages)[0]
    slopes = np.array([[float(value) for value in row] for row in _differentiation([Fraction(0), *nodes])])
    c, w = np.array([float(node) for node in nodes]), np.ascontiguousarray(slopes[1:, 1:])
    newton = transformation(w)
    gamma = newton.real[0]
    middle, value, slope = _worst(c)
    return RadauTableau(c, w, slopes[0, 1:].copy(), gamma, newton, _share(c, gamma), middle, value, slope)


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


def _share(c: np.ndarray, gamma: float) -> float:
    """y - u is h^(s+1) y^(s+1) / s! times int_0^theta M, M = prod (theta - c_i), and h (y' - u') the same times M."""
    error = Polynomial.fromroots(c).integ()
    return float(np.max(np.abs(error(c))) * gamma / np.prod(c))


def _worst(c: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The place of the largest theta prod (theta - c_i); Lagrange polynomials of the nodes, and their slopes, there."""
    nodes = np.concatenate([[0.0], c])
    shape = Polynomial.fromroots(nodes)
    places = np.real(shape.deriv().roots())
    middle = float(places[np.argmax(np.abs(shape(places)))])
    others = [np.delete(nodes, j) for j in range(1, nodes.size)]
    lagrange = [Polynomial.fromroots(rest) / np.prod(x - rest) for x, rest in zip(c, others, strict=True)]
    value = np.array([polynomial(middle) for polynomial in lagrange])
    return middle, value, np.array([polynomial.deriv()(middle) for polynomial in lagrange])
