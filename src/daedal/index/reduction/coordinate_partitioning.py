"""Implicit coordinate partitioning: coordinates in the tangent space are integrated."""

from __future__ import annotations

from daedal.index.reduction.reduced import ReducedProblem
from daedal.index.reduction.selection import tangents


class CoordinatePartitioning(ReducedProblem):
    r"""All equations with :math:`S\,(u' - \dot u) = 0`, the rows of S an orthonormal basis of the tangent space.

    Dummy derivatives are the special case in which the rows of S are unit vectors: there some of the unknowns
    themselves are integrated, here combinations of them, those along which the equations allow motion at the point
    where S was computed. There dependent directions do not change with integrated ones to first order, whatever the
    coordinates; whether S is then exchanged less often depends on the problem. The price are matrices that are less
    sparse (R. A. Wehage and E. J. Haug, J. Mech. Design 104, 1982, 247-255, for mechanisms, with
    the tangent space by singular values as in N. K. Mani, E. J. Haug and K. E. Atkinson, J. Mech. Transm. 107, 1985;
    F. A. Potra and W. C. Rheinboldt, Mech. Struct. Mach. 19, 1991). The dependent unknowns follow from all equations
    implicitly, within the nonlinear systems of the method.
    """

    by = "coordinate partitioning"
    choice = staticmethod(tangents)
