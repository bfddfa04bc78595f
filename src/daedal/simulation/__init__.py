"""A problem solved step by step: time, inputs and state are in the caller's hands.

:mod:`daedal.simulation.simulation` is the public class. It checks what it is given and leaves the integration to a
:class:`~daedal.simulation.continued_run.ContinuedRun`, whose method keeps its history between calls, or for problems
with modes to one such run for each mode (:mod:`daedal.simulation.continued_modes`).
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
