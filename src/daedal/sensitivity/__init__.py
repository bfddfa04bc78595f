"""Derivatives of solutions: forward (start at `sensitivity_plan.py`), adjoint (`adjoint`), and fits (`fitting`).

>>> import daedal
>>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0})
>>> sol = daedal.solve(decay, (0.0, 1.0), ([1.0], None), sensitivities=["k"])
>>> print(daedal.sensitivity.uncertainty(sol, [[0.01]]).std[0, -1].round(4))
0.0368
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
