"""Methods of time integration: each one is given by its coefficients and its step; one package for each family.

>>> import daedal
>>> daedal.methods.DASSL(max_order=2).max_order
2

Start with `base.py`; `named_methods.py` finds methods by name.
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
