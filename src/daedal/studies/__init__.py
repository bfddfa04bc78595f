"""What serves the reproduction of the sources alone: the printed tables (`reproduce`), methods on a given grid."""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
