"""Models in other programs: as differentiable functions in JAX, PyTorch and PyTensor, as FMUs, and as live pages.

Each module is imported when it is used. ``jax.py``, ``torch.py`` and ``pytensor.py`` are accessible as ``daedal.jax``,
``daedal.torch`` and ``daedal.pytensor``, and import the package of the same name when their functions are called;
``differentiable.py`` and ``run_arguments.py`` contain the common code.

>>> import daedal
>>> daedal.exchange.ExportedFMU.__name__
'ExportedFMU'
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
