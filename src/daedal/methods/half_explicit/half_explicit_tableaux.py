r"""Coefficients of half-explicit Runge-Kutta methods, as data.

A step of a method of the class of Brasey and Hairer for y' = f(y, z), 0 = g(y) reads

.. math::

    Y_i = y_0 + h \sum_{j<i} a_{ij} f(Y_j, Z_j), \quad 0 = g(Y_i), \qquad
    y_1 = y_0 + h \sum_i b_i f(Y_i, Z_i), \quad 0 = g(y_1),

where the constraint of the next stage determines :math:`Z_i`. In a *partitioned* method each stage beyond the first
uses a separate point for this,

.. math::

    0 = g\Bigl(y_0 + h \sum_{j\le i} \bar a_{ij} f(Y_j, Z_j)\Bigr), \qquad i \ge 2,

and :math:`Z_1 = z_0` is known from the previous step.

>>> HEM4.c[2], HEM4.exact
((4 - √6)/10, True)
>>> HEM4.floats()["b"]
array([0.        , 0.        , 0.37640306, 0.51248583, 0.11111111])

References
----------
V. Brasey, E. Hairer: Half-explicit Runge-Kutta methods for differential-algebraic systems of index 2, SIAM J. Numer.
Anal. 30 (1993) 538-552. V. Brasey: A half-explicit Runge-Kutta method of order 5 for solving constrained mechanical
systems, Computing 48 (1992) 191-201. A. Murua: Partitioned half-explicit Runge-Kutta methods for differential-algebraic
systems of index 2, Computing 59 (1997) 43-61. M. Arnold: Half-explicit Runge-Kutta methods with explicit stages for
differential-algebraic systems of index 2, BIT 38 (1998) 415-438.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.methods.exact_numbers import Quadratic
from daedal.methods.explicit.dormand_prince import DOPRI5_A, DOPRI5_B, DOPRI5_BHAT, DOPRI5_C
from daedal.methods.tableau import HalfExplicitTableau, Number, as_coefficient, coefficients

# Table 2 of Brasey and Hairer: the only method of order 3 with three stages.
HEM3 = HalfExplicitTableau(
    name="HEM3",
    a=((), ("1/3",), (-1, 2)),
    b=(0, "3/4", "1/4"),
    order=3,
    embedded_stage=3,
    embedded_order=1,
)


def _surd(p: int, q: int, denominator: int = 1) -> Quadratic:
    """(p + q sqrt 6)/denominator."""
    return Quadratic(Fraction(p, denominator), Fraction(q, denominator), 6)


# Dense output is the quadrature with nodes c_3, c_4, c_5; f(y_1, z_1) raises the order from 2 to 3.
_HEM4_DENSE = (
    (0, 0, 0),
    (0, 0, 0),
    (_surd(12, 18, 36), _surd(24, -39, 36), _surd(-20, 20, 36)),
    (_surd(12, -18, 36), _surd(24, 39, 36), _surd(-20, -20, 36)),
)

# Table 5: the nodes c_3, c_4, c_5 are those of the Radau IIA method.
HEM4 = HalfExplicitTableau(
    name="HEM4",
    a=(
        (),
        ("3/10",),
        (_surd(1, 1, 30), _surd(11, -4, 30)),
        (_surd(-79, -31, 150), _surd(-1, -4, 30), _surd(24, 11, 25)),
        (_surd(14, 5, 6), _surd(-8, 7, 6), _surd(-9, -7, 4), _surd(9, -1, 4)),
    ),
    b=(0, 0, _surd(16, -1, 36), _surd(16, 1, 36), "1/9"),
    dense=(*_HEM4_DENSE, ("-2/3", "5/3", "-8/9"), (1, -3, 2)),
    order=4,
    embedded_stage=5,
    embedded_order=2,
)

HEM4_DENSE_OF_STAGES = (*_HEM4_DENSE, ("1/3", "-4/3", "10/9"))
"""Dense output of HEM4 from its five stages alone: order 2, and order 3 after a projection onto the constraint."""


_EXCLUDED = (
    (lambda c2, c3: c2, "c2 = 0 makes a21 = 0, and the constraint of stage 2 does not determine Z_1"),
    (lambda c2, c3: c3, "c3 = 0 makes a32 = 0, and the constraint of stage 3 does not determine Z_2"),
    (lambda c2, c3: 4 * c3 - 1, "c3 = 1/4 makes c4 = c5 = 1"),
    (lambda c2, c3: 3 * c3 - 1, "c3 = 1/3 makes c4 infinite"),
    (lambda c2, c3: 2 * c3 - 1, "c3 = 1/2 makes a43 = 0, and the constraint of stage 4 does not determine Z_3"),
    (lambda c2, c3: c3 - 1, "c3 = 1 makes c3 = c5"),
    (lambda c2, c3: 6 * c3**2 - 6 * c3 + 1, "c3 = (3 ± √3)/6 makes b5 = 0, and g(y1) = 0 does not determine Z_5"),
)


def _vanishes(value: Number) -> bool:
    if isinstance(value, float):
        return abs(value) < 1e-12
    return bool(value.equals(0)) if hasattr(value, "equals") else not value


def hem4_family(c2: Any, c3: Any) -> HalfExplicitTableau:
    r"""The methods of order 4 with five stages: two nodes are free parameters.

    With :math:`b_1 = b_2 = 0`, :math:`c_5 = 1` and the simplifying assumptions C(2), D(1) and :math:`b_i\omega_{i1} =
    0`, all coefficients are determined by c2 and c3, and all twenty conditions hold, even for f nonlinear in z. HEM4 is
    the member with c2 = 3/10 and c3 = (4 - √6)/10.

    Parameters
    ----------
    c2, c3 : number
        Nodes of the second and third stage: floats, or exact numbers (fractions, texts such as ``"1/5"``, numbers or
        symbols of SymPy), for which the coefficients are exact as well.

    Raises
    ------
    InvalidProblemError
        For c2 = 0 and for c3 = 0, 1/4, 1/3, 1/2, 1, (3 ± √3)/6, where no such method exists.

    References
    ----------
    V. Brasey, E. Hairer, SIAM J. Numer. Anal. 30 (1993), section 4.2.

    Examples
    --------
    >>> method = hem4_family("1/5", "3/5")
    >>> method.c
    (Fraction(0, 1), Fraction(1, 5), Fraction(3, 5), Fraction(1, 8), Fraction(1, 1))
    """
    c2, c3 = as_coefficient(c2), as_coefficient(c3)
    for factor, reason in _EXCLUDED:
        if _vanishes(factor(c2, c3)):
            raise InvalidProblemError(f"The family has no method with these nodes: {reason}.")
    # The solution of (4.4) in closed form: the determinant of that system is 1.
    p, r = 6 * c3**2 - 4 * c3 + 1, 6 * c3**2 - 6 * c3 + 1
    t = 12 * c3**3 - 20 * c3**2 + 8 * c3 - 1
    ratio = (2 * c2 - c3) / c3
    a32 = c3**2 / (2 * c2)
    a42 = (2 * c3 - 1) * (12 * c3**2 - 6 * c3 + 1) / (8 * c2 * (3 * c3 - 1) ** 2)
    a43 = -(2 * c3 - 1) * p / (4 * c3 * (3 * c3 - 1) ** 2)
    a52 = -t / (2 * c2 * r)
    a53 = (c3 - 1) * (36 * c3**4 - 54 * c3**3 + 36 * c3**2 - 10 * c3 + 1) / (c3 * r * p)
    a54 = 2 * (c3 - 1) * (3 * c3 - 1) ** 2 * (4 * c3 - 1) / (r * p)
    return HalfExplicitTableau(
        name=f"HEM4({c2}, {c3})",
        a=((), (c2,), (ratio * a32, a32), (ratio * a42, a42, a43), (ratio * a52, a52, a53, a54)),
        b=(
            0,
            0,
            -1 / (6 * (c3 - 1) * p),
            2 * (3 * c3 - 1) ** 3 / (3 * (4 * c3 - 1) * p),
            r / (6 * (c3 - 1) * (4 * c3 - 1)),
        ),
        c=(0, c2, c3, (2 * c3 - 1) / (2 * (3 * c3 - 1)), 1),
        order=4,
        embedded_stage=5,
        embedded_order=2,
    )


# The digits are those of the published code.
HEM5 = HalfExplicitTableau(
    name="HEM5",
    a=(
        (),
        (0.1,),
        (0.0375, 0.1125),
        (0.3222169236216038, -1.188883322987607, 1.228145134023366),
        (-0.03501123898129943, 0.3725420601086163, -0.2721053535582034, 0.01993037578575077),
        (-0.5576547055042005, 1.367307289645883, -1.732236360460725, 0.4587772007467548, 0.9638065755722880),
        (
            0.08654517193566155,
            -0.08810082847945416,
            0.1981275547329404,
            -0.4645422679331083,
            0.1615170091109488,
            0.9064533606330119,
        ),
        (0.0, 0.0, 0.0, 3.624477248753816, -0.4617724189181256, -3.198024628164272, 1.035319798328740),
    ),
    b=(
        0.0,
        0.0,
        0.0,
        0.2467760667636791,
        0.2106594087489728,
        0.1769218149125021,
        0.3064446444147922,
        0.05919806516005373,
    ),
    c=(0.0, 0.1, 0.15, 0.3614787346573635, 0.08535584335486351, 0.5, 0.8, 1.0),
    second_bhat=(0, 0, 0, 0, 0, 0, 2.5, -1.5),
    order=5,
    embedded_stage=8,
    embedded_order=3,
)


def _quartic(b: Sequence[Any], theta: Any, inner: Sequence[Any]) -> tuple[tuple[Fraction, ...], ...]:
    r"""Dense output: the quartic through :math:`y_0, y_0', y_\theta, y_1, y_1'`; the slopes are stages 1 and s.

    With the cubic through the data at both ends, :math:`b_i(x) = p_i(x) + x^2 (1-x)^2 d_i`, and d from theta.
    """
    x = Fraction(theta)
    rows = []
    for i, (weight, value) in enumerate(zip(coefficients(b), coefficients(inner))):
        first, last = Fraction(i == 0), Fraction(i == len(b) - 1)
        cubic = [first, 3 * weight - 2 * first - last, first + last - 2 * weight]
        d = (value - sum(k * x ** (n + 1) for n, k in enumerate(cubic))) / (x * (1 - x)) ** 2
        rows.append((cubic[0], cubic[1] + d, cubic[2] - 2 * d, d))
    return tuple(rows)


# Murua 1997: the stages are those of Dormand and Prince; stage 7 is f(y_1, z_1).
PHEM56 = HalfExplicitTableau(
    name="PHEM56",
    a=DOPRI5_A,
    b=DOPRI5_B,
    c=DOPRI5_C,
    ab=(
        (),
        ("3/40", "9/40"),
        ("21/256", "45/256", "15/128"),
        ("19235/98784", "-225/392", "6235/6174", "2755/32928"),
        ("-293/1152", "85/48", "-2275/1908", "35/32", "-2835/6784"),
        DOPRI5_A[6],
        (
            "10752038939/66307507200",
            "-19259/50160",
            "19581770468/24023520675",
            "9941999/650073600",
            "180060831/4820710400",
            "-11331659/439538400",
            "1/76",
        ),
    ),
    bhat=DOPRI5_BHAT,
    dense=_quartic(
        DOPRI5_B,
        "19/30",
        (
            "1812923/20736000",
            "0",
            "45847/100170",
            "56677/414720",
            "-289161/13568000",
            "-67507/4536000",
            "-3971/324000",
        ),
    ),
    order=5,
    embedded_order=4,
)

# Arnold 1998: the constraint at stage i + 1 determines Z_i, i = 2, ..., 6; an additional point at 19/20 gives z_1 =
# Z_7.
HEDOP5 = HalfExplicitTableau(
    name="HEDOP5",
    a=DOPRI5_A,
    b=DOPRI5_B,
    c=DOPRI5_C,
    ab=(
        (),
        *DOPRI5_A[2:],
        (
            "-18611506045861/19738176307200",
            "59332529/14479296",
            "-2509441598627/893904224850",
            "2763523204159/3289696051200",
            "-41262869588913/116235927142400",
            "46310205821/287848404480",
            "-3280/75413",
        ),
    ),
    bhat=DOPRI5_BHAT,
    order=5,
    embedded_order=4,
)

# The classical method as a negative control: it has order 4 for differential equations, but not for constrained ones.
RK4_HALF_EXPLICIT = HalfExplicitTableau(
    name="RK4",
    a=((), ("1/2",), (0, "1/2"), (0, 0, 1)),
    b=("1/6", "1/3", "1/3", "1/6"),
    order=2,
)

TABLEAUX = {method.name.lower(): method for method in (HEM3, HEM4, HEM5, PHEM56, HEDOP5, RK4_HALF_EXPLICIT)}
"""All methods with fixed coefficients by name."""
