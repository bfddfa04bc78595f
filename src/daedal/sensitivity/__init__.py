"""Derivatives of solutions: forward (begin with `sensitivity_plan.py`), adjoint (`adjoint`), and fits (`fitting`)."""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
