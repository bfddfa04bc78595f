"""Models with modes and their simulation; sliding, friction, impact and contacts (`models`).

Start reading at `hybrid_problem.py` and `hybrid_run.py`.
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
