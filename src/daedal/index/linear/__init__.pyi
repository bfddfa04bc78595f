# The public names of daedal.linear and the modules that hold them (see common/public_names.py).

from daedal.index.linear.canonical_forms import MatrixChain as MatrixChain
from daedal.index.linear.canonical_forms import WeierstrassForm as WeierstrassForm
from daedal.index.linear.canonical_forms import triangular_order as triangular_order
from daedal.index.linear.coefficient_array import Completion as Completion
from daedal.index.linear.coefficient_array import DerivativeArray as DerivativeArray
from daedal.index.linear.coefficient_array import InitialValues as InitialValues
from daedal.index.linear.coefficient_array import Solvability as Solvability
from daedal.index.linear.exact_solution import Consistency as Consistency
from daedal.index.linear.exact_solution import LinearSolution as LinearSolution
from daedal.index.linear.functions_of_time import QuasiPolynomial as QuasiPolynomial
from daedal.index.linear.functions_of_time import exponential as exponential
from daedal.index.linear.functions_of_time import polynomial as polynomial
from daedal.index.linear.functions_of_time import sine as sine
from daedal.index.linear.pencil import Pencil as Pencil
from daedal.index.linear.pencil import drazin_inverse as drazin_inverse
from daedal.index.linear.rank import RankDecision as RankDecision
from daedal.index.linear.rank import UnclearRankError as UnclearRankError
from daedal.index.linear.rank import rank_decision as rank_decision
from daedal.index.linear.second_order_systems import FirstOrderForms as FirstOrderForms
from daedal.index.linear.second_order_systems import SecondOrder as SecondOrder
from daedal.index.linear.second_order_systems import SecondOrderStrangeness as SecondOrderStrangeness
from daedal.index.linear.strangeness import CharacteristicValues as CharacteristicValues
from daedal.index.linear.strangeness import RankChangeError as RankChangeError
from daedal.index.linear.strangeness import StandardCanonicalForm as StandardCanonicalForm
from daedal.index.linear.strangeness import Strangeness as Strangeness
from daedal.index.linear.strangeness import StrangenessFree as StrangenessFree
from daedal.index.linear.time_dependent import LocalSeries as LocalSeries  # for annotations
from daedal.index.linear.time_dependent import TimeVarying as TimeVarying
from daedal.index.structure.system_equations import linear_system as linear_system

__all__: list[str]
