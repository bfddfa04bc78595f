# The public names of daedal.formulations and the modules that hold them (see common/public_names.py).

from daedal.index.reduction.prolongation import Block as Block  # for annotations
from daedal.index.reduction.reduce import regularise as regularise
from daedal.index.reduction.reduced_problem import ReducedProblem as ReducedProblem
from daedal.index.structure.system_equations import SystemEquations as SystemEquations  # for annotations
from daedal.index.structure.system_jacobian import Regularity as Regularity  # for annotations
from daedal.mechanics.formulations import GGL as GGL
from daedal.mechanics.formulations import Baumgarte as Baumgarte
from daedal.mechanics.formulations import CoordinateProjection as CoordinateProjection
from daedal.mechanics.formulations import EssentialODE as EssentialODE
from daedal.mechanics.formulations import FuehrerLeimkuhler as FuehrerLeimkuhler
from daedal.mechanics.formulations import Hanke as Hanke
from daedal.mechanics.formulations import Index1 as Index1
from daedal.mechanics.formulations import Index2 as Index2
from daedal.mechanics.formulations import Index3 as Index3
from daedal.mechanics.formulations import Knorrenschild as Knorrenschild
from daedal.mechanics.formulations import Loetstedt as Loetstedt
from daedal.mechanics.formulations import MinimalExtension as MinimalExtension
from daedal.mechanics.formulations import Overdetermined as Overdetermined
from daedal.mechanics.formulations import ProjectedInvariants as ProjectedInvariants
from daedal.mechanics.formulations import StateSpace as StateSpace
from daedal.mechanics.formulations.formulation import Formulation as Formulation
from daedal.mechanics.formulations.formulation import Shape as Shape  # for annotations
from daedal.mechanics.formulations.linear_reduction import StabilisedReduction as StabilisedReduction
from daedal.mechanics.formulations.reformulation import Reformulation as Reformulation  # for annotations
from daedal.mechanics.setting import ConsistentStart as ConsistentStart  # for annotations

__all__: list[str]
