r"""Order conditions of half-explicit Runge-Kutta methods for y' = f(y, z), 0 = g(y): generated, printed and verified.

Every bicoloured tree gives a condition. With :math:`(\omega_{ij}) = A'^{-1}`, where A' has the rows :math:`a_2, \dots,
a_s, b`, its left-hand side is the sum of products of :math:`b_i` for the root, :math:`a_{ij}` for a
meagre vertex j above a meagre one i, :math:`a_{i+1,j}` for a meagre vertex above a fat one, :math:`\omega_{ij}` for a
fat vertex above a meagre one.

References
----------
V. Brasey, E. Hairer: Half-explicit Runge-Kutta methods for differential-algebraic systems of index 2, SIAM J. Numer.
Anal. 30 (1993) 538-552, section 3. A. Murua, Computing 59 (1997) 43-61, for partitioned methods.

Examples
--------
>>> from daedal.analysis import order_conditions
>>> order_conditions.verify("hem4", order=4).order
4
"""

from daedal.analysis.order_conditions.formulas import Condition, conditions, table
from daedal.analysis.order_conditions.trees import Tree
from daedal.analysis.order_conditions.verification import (
    Check,
    Report,
    omega,
    order,
    verify,
    verify_stage,
    verify_z,
    z_order,
)
from daedal.methods.half_explicit.half_explicit_tableaux import TABLEAUX, hem4_family
from daedal.methods.tableau import HalfExplicitTableau

__all__ = [
    "TABLEAUX",
    "Check",
    "Condition",
    "HalfExplicitTableau",
    "Report",
    "Tree",
    "conditions",
    "hem4_family",
    "omega",
    "order",
    "table",
    "verify",
    "verify_stage",
    "verify_z",
    "z_order",
]


def __dir__() -> list[str]:
    return __all__
