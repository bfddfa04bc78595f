"""What follows from the coefficients of a method: orders, stability, and what to expect of it on DAEs."""

from daedal.method_analysis.analyse import analyse_method
from daedal.method_analysis.multistep import MultistepAnalysis
from daedal.method_analysis.predictions import Prediction
from daedal.method_analysis.result import MethodAnalysis
from daedal.method_analysis.runge_kutta import RungeKuttaAnalysis

__all__ = ["MethodAnalysis", "MultistepAnalysis", "Prediction", "RungeKuttaAnalysis", "analyse_method"]
