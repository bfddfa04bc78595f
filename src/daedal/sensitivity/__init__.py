"""Derivatives of solutions: forward (start at `sensitivity_plan.py`), adjoint (`adjoint`), and fits (`fitting`)."""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
