"""Analysis of problems at a point, of failed runs, and of methods and formulations.

Start with `diagnosis.py` for failed runs, `decision.py` for the choice of a formulation, `problem_page` for `analyse`.

>>> import daedal
>>> daedal.analysis.analyse_method(daedal.methods.coefficients("bdf2")).order
2
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
