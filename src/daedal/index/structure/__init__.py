"""Structure of the equations of a problem: total derivatives, incidence of unknowns, index.

Start with `system_equations.py` and `structural_analysis.py`.
"""
