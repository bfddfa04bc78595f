"""Derivatives of solutions: forward (`sensitivity_plan.py`), adjoint (`adjoint`), and what uses them, fits (`fitting`)."""
