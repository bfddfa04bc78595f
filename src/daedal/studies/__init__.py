"""Reproduction of printed tables (`reproduce`), and methods for given grids.

>>> import daedal
>>> daedal.studies.GeneralLinearMethod.collocation([0.5, 1.0]).name
'1-step collocation'
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
