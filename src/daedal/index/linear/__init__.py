r"""Linear DAEs: pencils, canonical forms, indices, exact solutions.

:math:`A x' + B x = f` with constant matrices is a :class:`Pencil`, with functions of time :class:`TimeVarying`;
:class:`SecondOrder` is :math:`M x'' + C x' + K x = f`. Structures depend on ranks; each rank is available as a
:class:`RankDecision`.

References
----------
K. E. Brenan, S. L. Campbell, L. R. Petzold: Numerical Solution of Initial-Value Problems in Differential-Algebraic
Equations, SIAM 1996, sections 2.3 and 2.4. P. Kunkel, V. Mehrmann: Differential-Algebraic Equations, EMS 2006.

>>> import daedal
>>> daedal.linear.Pencil([[1, 0], [0, 0]], [[0, 1], [1, 0]]).index
2
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
