"""Properties of methods derived from their coefficients: orders, stability, and convergence on DAEs."""

from daedal.analysis.method_analysis.analyse_method import MultistepAnalysis, RungeKuttaAnalysis, analyse_method
from daedal.analysis.method_analysis.predictions import MethodAnalysis, Prediction

__all__ = ["MethodAnalysis", "MultistepAnalysis", "Prediction", "RungeKuttaAnalysis", "analyse_method"]
