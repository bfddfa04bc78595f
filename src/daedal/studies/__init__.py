"""Reproduction of the tables printed in the sources (`reproduce`), and methods on given grids."""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
