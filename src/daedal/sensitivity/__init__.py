"""Derivatives of solutions: forward (begin with `sensitivity_plan.py`), adjoint (`adjoint`), and fits (`fitting`)."""
