# The public names of daedal.solution and the modules that hold them (see common/public_names.py).

from daedal.common.tabular import FunctionTable as FunctionTable  # for annotations
from daedal.driver.ivp import DenseSolution as DenseSolution
from daedal.driver.ivp import IVPResult as IVPResult
from daedal.events.event import EventRecord as EventRecord
from daedal.events.table import EventTable as EventTable
from daedal.index.reduction.recognised_solution import RecognisedSolution as RecognisedSolution
from daedal.initial.mechanical_start import MechanicalStart as MechanicalStart
from daedal.solution.constrained_solution import HessenbergSolution as HessenbergSolution
from daedal.solution.constrained_solution import RawOutput as RawOutput  # for annotations
from daedal.solution.mechanical_solution import MechanicalState as MechanicalState
from daedal.solution.pieces import Pieces as Pieces  # for annotations
from daedal.solution.quantities import Quantity as Quantity  # for annotations
from daedal.solution.solution import History as History
from daedal.solution.solution import SecondOrderState as SecondOrderState
from daedal.solution.solution import Statistics as Statistics
from daedal.solution.status import Status as Status

__all__: list[str]
