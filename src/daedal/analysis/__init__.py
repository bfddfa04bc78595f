"""What can be said about a problem at a point, about a run that failed, about methods and formulations.

Begin with `diagnosis.py` for failed runs, `decision.py` for the choice of a formulation, `problem_page` for `analyse`.
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
