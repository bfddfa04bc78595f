"""Step-by-step solution of problems: the caller controls time, inputs and state.

:mod:`daedal.simulation.simulation` is the public class. It checks the arguments and delegates the integration to a
:class:`~daedal.simulation.continued_run.ContinuedRun`, whose method keeps its history between calls, or, for problems
with modes, to one such run for each mode (:mod:`daedal.simulation.continued_modes`).

>>> import daedal
>>> tank = daedal.ODE(lambda t, y, flow: [flow - 0.5 * y[0]], 1, names=["level"], inputs=["flow"])
>>> sim = daedal.Simulation(tank, [0.0])
>>> sim.step(1.0, u=[1.0]).round(4)
array([0.7869])
"""

from daedal.common.public_names import public_names

__getattr__, __dir__, __all__ = public_names(globals())
