r"""Radau IIA as data: nodes, derivatives of the collocation polynomial, and what decouples Newton's systems.

The collocation polynomial u passes through y_0 and the stages y_0 + Z_i; its slopes at the nodes are h u'(t_i) =
sum_j w_ij Z_j with W = A^{-1}, its slope at the start h u'(t_0) = sum_j d_j Z_j. All of it follows from the nodes, the
zeros of P_s - P_{s-1} on [0, 1], and is computed with exact numbers, or with 60 digits, before it is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from daedal.methods.collocation_tableaux import decoupled
from daedal.methods.quadrature_nodes import right_radau_nodes

STAGES = (3, 5, 7)


@dataclass(frozen=True)
class RadauTableau:
    r"""Coefficients of the Radau IIA method with s stages.

    Attributes
    ----------
    c : numpy.ndarray
        Nodes.
    w : numpy.ndarray
        W = A^{-1}.
    d : numpy.ndarray
        Weights of the slope at the start of the step.
    gamma : float
        The real eigenvalue of W.
    pairs : numpy.ndarray
        Real and imaginary parts of the others, one of each pair.
    transform, inverse : numpy.ndarray
        T and T^{-1}: T^{-1} W T has gamma and blocks [[re, -im], [im, re]] on its diagonal.
    share : float
        The largest error of u inside of a step in units of (h / gamma) (y'_0 - u'(t_0)), for smooth solutions.
    middle : float
        Where the polynomial through y_0 and the stages is worst, as a part of the step.
    value, slope : numpy.ndarray
        Weights of the stages in u there, and in h u'.
    """

    c: np.ndarray
    w: np.ndarray
    d: np.ndarray
    gamma: float
    pairs: np.ndarray
    transform: np.ndarray
    inverse: np.ndarray
    share: float
    middle: float
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
    >>> from daedal.methods.radau_tableaux import radau_tableau
    >>> print(radau_tableau(3).c.round(6), round(radau_tableau(3).gamma, 6))
    [0.155051 0.644949 1.      ] 3.637834
    """
    nodes = right_radau_nodes(stages)[0]
    slopes = np.array([[float(value) for value in row] for row in _differentiation([Fraction(0), *nodes])])
    c, w = np.array([float(node) for node in nodes]), np.ascontiguousarray(slopes[1:, 1:])
    real, pairs, transform, inverse = decoupled(w)
    gamma = float(real[0])
    middle, value, slope = _worst(c)
    return RadauTableau(
        *(c, w, slopes[0, 1:].copy(), gamma, pairs, transform, inverse),
        *(_share(c, gamma), middle, value, slope),
    )


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
