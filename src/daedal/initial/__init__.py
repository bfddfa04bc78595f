"""Consistent initial values. Begin with `consistent.py`, and `jet.py` for problems of any index."""

from daedal.initial.consistent import consistent_initial
from daedal.initial.derivative_array import derivative_array_initial
from daedal.initial.euler_step import damped_euler_step

__all__ = ["consistent_initial", "damped_euler_step", "derivative_array_initial"]
