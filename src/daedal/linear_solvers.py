"""Iterative linear solvers and preconditioners for large systems.

>>> import daedal
>>> solver = daedal.linear_solvers.GMRES(basis_size=20)
>>> daedal.methods.DASSL(linear_solver=solver).linear_solver.basis_size
20
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
