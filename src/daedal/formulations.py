"""Formulations, which rewrite a mechanism or a problem of higher index before time is discretised.

>>> import daedal
>>> daedal.formulations.GGL().name
'ggl'
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
