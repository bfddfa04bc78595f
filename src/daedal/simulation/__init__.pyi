# The public names of daedal.simulation and the modules that hold them (see common/public_names.py).

from daedal.hybrid.sampled_control import Recording as Recording
from daedal.hybrid.sampled_control import Sampled as Sampled
from daedal.simulation.simulation_state import SavedState as SavedState
from daedal.simulation.simulation_state import SimulationState as SimulationState

__all__: list[str]
