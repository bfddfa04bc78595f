"""Analysis of problems at a point, of failed runs, and of methods and formulations.

Start with `diagnosis.py` for failed runs, `decision.py` for the choice of a formulation, `problem_page` for `analyse`.
"""
