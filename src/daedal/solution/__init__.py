"""Results of a run: values, dense output, quantities by name, tables and files.

Start with `solution.py`; `quantities.py` contains the common base of all solutions.

>>> import daedal
>>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0])
>>> isinstance(sol.stats, daedal.solution.Statistics), sol.status == 0
(True, True)
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
