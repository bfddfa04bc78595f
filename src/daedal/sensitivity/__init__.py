"""Derivatives of solutions: forward (start at `sensitivity_plan.py`), adjoint (`adjoint`), and fits (`fitting`)."""
