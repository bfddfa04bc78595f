r"""Families of implicit Runge-Kutta methods: Gauss, Radau, Lobatto, and collocation on any nodes.

With the Lagrange polynomials :math:`\ell_j` of the nodes, collocation has :math:`\hat a_{ij} = \int_0^{c_i} \ell_j`,
:math:`b_j = \int_0^1 \ell_j`, and satisfies C(s). The transposed matrix :math:`a_{ij} = b_j - b_j \hat a_{ji} / b_i`
satisfies D(s): Radau IA on the left Radau nodes, Lobatto IIIB on the Lobatto nodes. Lobatto IIIC satisfies C(s - 1) and
has :math:`a_{i1} = b_1` (Hairer and Wanner II, IV.5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.methods.exact_numbers import (
    gauss_nodes,
    integral,
    lagrange,
    laguerre,
    left_radau_nodes,
    lobatto_nodes,
    right_radau_nodes,
    value,
    zeros,
)
from daedal.methods.tableau import RungeKuttaTableau, coefficients

Matrix = list[list[Any]]


def collocation(nodes: Sequence[Any], name: str = "collocation") -> RungeKuttaTableau:
    """The collocation method on given nodes, which must differ.

    Examples
    --------
    >>> collocation(["1/3", 1]).a[0]
    (Fraction(5, 12), Fraction(-1, 12))
    """
    c = coefficients(nodes)
    if len({float(x) for x in c}) < len(c):
        raise InvalidProblemError(f"{name}: the nodes must differ, got {', '.join(map(str, c))}")
    return RungeKuttaTableau(*_collocation(c), c, name)


def _collocation(c: Sequence[Any]) -> tuple[Matrix, list[Any]]:
    integrals = [integral(lagrange(c, j)) for j in range(len(c))]
    return [[value(p, x) for p in integrals] for x in c], [value(p, Fraction(1)) for p in integrals]


def _transposed(c: Sequence[Any]) -> tuple[Matrix, list[Any]]:
    a, b = _collocation(c)
    stages = range(len(c))
    return [[b[j] - b[j] * a[j][i] / b[i] for j in stages] for i in stages], b


def _lobatto_c(c: Sequence[Any]) -> tuple[Matrix, list[Any]]:
    b = _collocation(c)[1]
    inner = [lagrange(c[1:], j) for j in range(len(c) - 1)]
    return [[b[0], *(value(integral(p), x) - b[0] * p[0] for p in inner)] for x in c], b


def _tableau(
    nodes: tuple[tuple[Any, ...], bool], rule: Callable[[Sequence[Any]], tuple[Matrix, list[Any]]], name: str
) -> RungeKuttaTableau:
    """Apply the rule to the nodes; the results are floats, rounded once, if the nodes are not exact."""
    c, exact = nodes
    a, b = rule(c)
    if not exact:
        a, b, c = [[float(x) for x in row] for row in a], [float(x) for x in b], tuple(float(x) for x in c)
    return RungeKuttaTableau(a, b, c, name)


def gauss(s: int) -> RungeKuttaTableau:
    """Gauss, order 2s; exact for s up to 3.

    >>> gauss(2).a[0]
    (1/4, (3 - 2√3)/12)
    """
    return _tableau(gauss_nodes(s), _collocation, _titled("Gauss", s))


def radau_ia(s: int) -> RungeKuttaTableau:
    """Radau IA, order 2s - 1; exact for s up to 3."""
    return _tableau(left_radau_nodes(s), _transposed, _titled("Radau IA", s))


def radau_iia(s: int) -> RungeKuttaTableau:
    """Radau IIA, order 2s - 1; exact for s up to 3.

    >>> radau_iia(3).c
    ((4 - √6)/10, (4 + √6)/10, Fraction(1, 1))
    """
    return _tableau(right_radau_nodes(s), _collocation, _titled("Radau IIA", s))


def lobatto_iiia(s: int) -> RungeKuttaTableau:
    """Lobatto IIIA, order 2s - 2; exact for s up to 5."""
    return _tableau(lobatto_nodes(s), _collocation, _titled("Lobatto IIIA", s))


def lobatto_iiib(s: int) -> RungeKuttaTableau:
    """Lobatto IIIB, order 2s - 2; exact for s up to 5."""
    return _tableau(lobatto_nodes(s), _transposed, _titled("Lobatto IIIB", s))


def lobatto_iiic(s: int) -> RungeKuttaTableau:
    """Lobatto IIIC, order 2s - 2; exact for s up to 5.

    >>> [str(x) for x in lobatto_iiic(3).a[0]]
    ['1/6', '-1/3', '1/6']
    """
    return _tableau(lobatto_nodes(s), _lobatto_c, _titled("Lobatto IIIC", s))


def sirk_collocation(s: int) -> RungeKuttaTableau:
    r"""Singly implicit collocation: the nodes are :math:`c = \lambda x_i` with the zeros x of the Laguerre polynomial.

    The matrix has one s-fold eigenvalue :math:`\lambda`. It is 1/x, with the zero x for which the method is L-stable;
    one node is then 1 (Norsett; Burrage). With two stages it is SIRK22 of Brenan, Campbell and Petzold, 6.3.

    >>> sirk_collocation(2).c
    (3 - 2√2, 1)
    """
    roots, exact = zeros(laguerre(s))
    scale = 1 / roots[s // 2]
    return _tableau((tuple(scale * x for x in roots), exact), _collocation, _titled("SIRK collocation", s))


def sirk23() -> RungeKuttaTableau:
    r"""Singly implicit collocation with two stages and order 3: :math:`6\lambda^2 - 6\lambda + 1 = 0`, A-stable.

    SIRK23 of Brenan, Campbell and Petzold, 6.3, who print :math:`r \approx -0.73`.
    """
    lam = float(zeros([Fraction(1), Fraction(-6), Fraction(6)])[0][1])
    nodes = tuple(lam * float(x) for x in zeros(laguerre(2))[0])
    return _tableau((nodes, False), _collocation, "SIRK collocation, 2 stages, order 3")


def sirk3_transformed() -> RungeKuttaTableau:
    r"""SIRK of three stages with C(2) and B(3): the nodes 1/6, 1/2, 5/6 and a threefold eigenvalue.

    In the basis :math:`1, c, c^2` the matrix is the companion matrix of :math:`(x - \lambda)^3`, scaled: :math:`A 1 =
    c`, :math:`A c = c^2/2`, :math:`A c^2 = 2\lambda^3 - 6\lambda^2 c + 3\lambda c^2`.
    """
    c = (Fraction(1, 6), Fraction(1, 2), Fraction(5, 6))
    lam = 1 / zeros(laguerre(3))[0][1]
    images = [[x, x**2 / 2, 2 * lam**3 - 6 * lam**2 * x + 3 * lam * x**2] for x in c]
    basis = [lagrange(c, j) for j in range(3)]
    a = [[float(sum(p * q for p, q in zip(image, column))) for column in basis] for image in images]
    return RungeKuttaTableau(a, _collocation(c)[1], [float(x) for x in c], "SIRK, 3 stages")


def _titled(name: str, s: int) -> str:
    return f"{name}, {s} stage{'s' if s > 1 else ''}"
