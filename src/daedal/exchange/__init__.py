"""Models inside other programs: differentiable in JAX, PyTorch and PyMC, as environments, as FMUs.

Each module is imported when it is used, and needs the package that it serves. A name of theirs is reached from
``daedal``, as in ``daedal.jax.solve``.
"""
