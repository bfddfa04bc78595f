"""Iterative linear algebra for large systems.

>>> import daedal
>>> daedal.methods.DASSL(linear_solver=daedal.linear_solvers.GMRES()).linear_solver.name
'gmres'
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
