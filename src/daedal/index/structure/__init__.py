"""What the equations of a problem are made of: their total derivatives, which unknowns occur in them, the index.

Begin with `system_equations.py` and `structural_analysis.py`.
"""
