"""Parameters found from measurements: least squares with exact derivatives of solutions."""

from daedal.fitting.experiment import Experiment
from daedal.fitting.fit import fit
from daedal.fitting.fit_result import Fit

__all__ = ["Experiment", "Fit", "fit"]
