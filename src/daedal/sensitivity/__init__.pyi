# The public names of daedal.sensitivity and the modules that hold them (see common/public_names.py).

from daedal.sensitivity.adjoint.gradient import Gradient as Gradient
from daedal.sensitivity.fitting.fit_result import Fit as Fit
from daedal.sensitivity.fitting.fit_result import Uncertainty as Uncertainty
from daedal.sensitivity.fitting.fit_result import uncertainty as uncertainty
from daedal.sensitivity.fitting.unknowns import Experiment as Experiment

__all__: list[str]
