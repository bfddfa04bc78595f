"""Derivatives of solutions: forward (`plan.py`), adjoint (`adjoint`), and what uses them, fits (`fitting`)."""
