# The public names of daedal.linear_solvers and the modules that hold them (see common/public_names.py).

from daedal.methods.iterative_solvers import GMRES as GMRES
from daedal.methods.iterative_solvers import BandedPreconditioner as BandedPreconditioner
from daedal.methods.iterative_solvers import BlockDiagonalPreconditioner as BlockDiagonalPreconditioner
from daedal.methods.iterative_solvers import ILUPreconditioner as ILUPreconditioner
from daedal.methods.iterative_solvers import Preconditioner as Preconditioner

__all__: list[str]
