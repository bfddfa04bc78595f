r"""Linear DAEs: pencils, canonical forms, indices, exact solutions.

:math:`A x' + B x = f` with constant matrices is a :class:`Pencil`, with functions of time :class:`TimeVarying`;
:class:`SecondOrder` is :math:`M x'' + C x' + K x = f`. Structures rest on ranks, and each rank is a
:class:`RankDecision` that can be looked at.

References
----------
K. E. Brenan, S. L. Campbell, L. R. Petzold: Numerical Solution of Initial-Value Problems in Differential-Algebraic
Equations, SIAM 1996, sections 2.3 and 2.4. P. Kunkel, V. Mehrmann: Differential-Algebraic Equations, EMS 2006.
"""

from daedal.linear.canonical_form import StandardCanonicalForm
from daedal.linear.completion import Completion
from daedal.linear.constraints import Consistency
from daedal.linear.derivative_array import DerivativeArray
from daedal.linear.drazin import drazin_inverse
from daedal.linear.forcing import QuasiPolynomial, exponential, polynomial, sine
from daedal.linear.pencil import Pencil
from daedal.linear.projectors import MatrixChain
from daedal.linear.rank import RankDecision, UnclearRankError, rank_decision
from daedal.linear.second_order import FirstOrderForms, SecondOrder, SecondOrderStrangeness
from daedal.linear.series import RankChangeError
from daedal.linear.solution import LinearSolution
from daedal.linear.solvability import Solvability
from daedal.linear.start import InitialValues
from daedal.linear.strangeness import CharacteristicValues, Strangeness
from daedal.linear.strangeness_free import StrangenessFree
from daedal.linear.structural import triangular_order
from daedal.linear.time_varying import TimeVarying
from daedal.linear.weierstrass import WeierstrassForm

__all__ = [
    "CharacteristicValues",
    "Completion",
    "Consistency",
    "DerivativeArray",
    "FirstOrderForms",
    "InitialValues",
    "LinearSolution",
    "MatrixChain",
    "Pencil",
    "QuasiPolynomial",
    "RankChangeError",
    "RankDecision",
    "SecondOrder",
    "SecondOrderStrangeness",
    "Solvability",
    "StandardCanonicalForm",
    "Strangeness",
    "StrangenessFree",
    "TimeVarying",
    "UnclearRankError",
    "WeierstrassForm",
    "drazin_inverse",
    "exponential",
    "polynomial",
    "rank_decision",
    "sine",
    "triangular_order",
]


def __dir__() -> list[str]:
    return __all__
