r"""Linear DAEs: pencils, canonical forms, indices, exact solutions.

:math:`A x' + B x = f` with constant matrices is a :class:`Pencil`, with functions of time :class:`TimeVarying`;
:class:`SecondOrder` is :math:`M x'' + C x' + K x = f`. Structures rest on ranks, and each rank is a
:class:`RankDecision` that can be looked at.

References
----------
K. E. Brenan, S. L. Campbell, L. R. Petzold: Numerical Solution of Initial-Value Problems in Differential-Algebraic
Equations, SIAM 1996, sections 2.3 and 2.4. P. Kunkel, V. Mehrmann: Differential-Algebraic Equations, EMS 2006.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
_LATE = {
    "CharacteristicValues": "strangeness",
    "Completion": "completion",
    "Consistency": "constraints",
    "DerivativeArray": "derivative_array",
    "FirstOrderForms": "second_order",
    "InitialValues": "start",
    "LinearSolution": "solution",
    "MatrixChain": "projectors",
    "Pencil": "pencil",
    "QuasiPolynomial": "forcing",
    "RankChangeError": "series",
    "RankDecision": "rank",
    "SecondOrder": "second_order",
    "SecondOrderStrangeness": "second_order",
    "Solvability": "solvability",
    "StandardCanonicalForm": "canonical_form",
    "Strangeness": "strangeness",
    "StrangenessFree": "strangeness_free",
    "TimeVarying": "time_varying",
    "UnclearRankError": "rank",
    "WeierstrassForm": "weierstrass",
    "drazin_inverse": "drazin",
    "exponential": "forcing",
    "polynomial": "forcing",
    "rank_decision": "rank",
    "sine": "forcing",
    "triangular_order": "structural",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for: scalings alone, which every run needs, should not wait for the rest."""
    if name not in _LATE:
        raise AttributeError(f"module 'daedal.linear' has no attribute '{name}'")
    value = getattr(import_module(f"daedal.linear.{_LATE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
