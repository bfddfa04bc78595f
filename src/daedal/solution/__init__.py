"""Results of a run: values, dense output, quantities by name, tables and files.

Start with `solution.py`; `quantities.py` holds what all solutions share.
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
