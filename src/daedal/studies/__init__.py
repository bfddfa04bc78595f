"""Reproduction of the sources: printed tables (`reproduce`), and methods on given grids."""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
