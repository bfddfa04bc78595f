"""Models with modes and the run through them; sliding, friction, impact and contacts (`models`).

Begin with `hybrid_problem.py` and `hybrid_run.py`.
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
