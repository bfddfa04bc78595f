"""Parameter estimation from measurements: least squares with exact derivatives of solutions."""

from daedal.sensitivity.fitting.experiment import Experiment
from daedal.sensitivity.fitting.fit import fit
from daedal.sensitivity.fitting.fit_result import Fit

__all__ = ["Experiment", "Fit", "fit"]
