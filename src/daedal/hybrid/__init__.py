"""Models with modes and their simulation; sliding, friction, impact and contacts (`models`).

Start reading at `hybrid_problem.py` and `hybrid_run.py`.

>>> import daedal
>>> up, down = (daedal.ODE(lambda t, y, s=s: [s], 1) for s in (1.0, -1.0))
>>> top = daedal.hybrid.Transition("up", "down", lambda t, y: y[0] - 1.0)
>>> daedal.solve(daedal.hybrid.HybridProblem({"up": up, "down": down}, [top]), (0.0, 2.0), ("up", [0.0])).mode[-1]
'down'
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
