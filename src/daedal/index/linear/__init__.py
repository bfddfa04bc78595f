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
    from daedal.index.linear.canonical_forms import MatrixChain, WeierstrassForm, triangular_order
    from daedal.index.linear.coefficient_array import Completion, DerivativeArray, InitialValues, Solvability
    from daedal.index.linear.exact_solution import Consistency, LinearSolution
    from daedal.index.linear.functions_of_time import QuasiPolynomial, exponential, polynomial, sine
    from daedal.index.linear.pencil import Pencil, drazin_inverse
    from daedal.index.linear.rank import RankDecision, UnclearRankError, rank_decision
    from daedal.index.linear.second_order_systems import FirstOrderForms, SecondOrder, SecondOrderStrangeness
    from daedal.index.linear.strangeness import (
        CharacteristicValues,
        RankChangeError,
        StandardCanonicalForm,
        Strangeness,
        StrangenessFree,
    )
    from daedal.index.linear.time_dependent import TimeVarying

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
    "Completion": "coefficient_array",
    "Consistency": "exact_solution",
    "DerivativeArray": "coefficient_array",
    "FirstOrderForms": "second_order_systems",
    "InitialValues": "coefficient_array",
    "LinearSolution": "exact_solution",
    "MatrixChain": "canonical_forms",
    "Pencil": "pencil",
    "QuasiPolynomial": "functions_of_time",
    "RankChangeError": "strangeness",
    "RankDecision": "rank",
    "SecondOrder": "second_order_systems",
    "SecondOrderStrangeness": "second_order_systems",
    "Solvability": "coefficient_array",
    "StandardCanonicalForm": "strangeness",
    "Strangeness": "strangeness",
    "StrangenessFree": "strangeness",
    "TimeVarying": "time_dependent",
    "UnclearRankError": "rank",
    "WeierstrassForm": "canonical_forms",
    "drazin_inverse": "pencil",
    "exponential": "functions_of_time",
    "polynomial": "functions_of_time",
    "rank_decision": "rank",
    "sine": "functions_of_time",
    "triangular_order": "canonical_forms",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for: scalings alone, which every run needs, should not wait for the rest."""
    if name not in _LATE:
        raise AttributeError(f"module 'daedal.linear' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
