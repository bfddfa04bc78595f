"""Controllers in discrete time, with delay and quantisation, and the record of a controlled run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.common.progress import Progress
from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_finite, check_positive, check_real


@dataclass(frozen=True)
class Sampled:
    """A controller in discrete time: every `dt` it reads outputs and sets inputs, which are constant in between.

    Parameters
    ----------
    controller : callable
        ``u = controller(t, y)``, with the outputs y at the instant t. An object may have a state, and ``reset()``,
        which is called before a run.
    dt : float
        The sampling interval.
    delay : int
        Number of intervals after which an input acts; until then the inputs are those of the start.
    resolution : float or array
        Resolution of the inputs, which are rounded to its multiples; 0 does not round.
    output_resolution : float or array
        Resolution of the outputs that the controller reads.

    Examples
    --------
    >>> import daedal
    >>> cart = daedal.ODE(lambda t, y, u: [y[1], u], 2, names="x v", inputs=["u"])
    >>> late = daedal.simulation.Sampled(lambda t, y: -2.0 * y[0] - 3.0 * y[1], 0.1, delay=1, resolution=0.01)
    >>> record = daedal.Simulation(cart, [1.0, 0.0]).run(late, t_end=5.0)
    >>> record.u[0, :4]
    array([ 0.  , -2.  , -2.  , -1.38])
    """

    controller: Callable[..., Any]
    dt: float
    delay: int = 0
    resolution: Any = 0.0
    output_resolution: Any = 0.0

    def __post_init__(self):
        if not callable(self.controller):
            raise InvalidProblemError(f"controller must be a function u = controller(t, y), got {self.controller!r}")
        if self.dt is None:
            raise InvalidProblemError("dt is missing: the interval at which the controller is called")
        object.__setattr__(self, "dt", check_positive(self.dt, "dt"))
        if isinstance(self.delay, bool) or not isinstance(self.delay, (int, np.integer)) or self.delay < 0:
            raise InvalidProblemError(f"delay must be a whole number of intervals, got {self.delay!r}")
        for name in ("resolution", "output_resolution"):
            steps = check_real(getattr(self, name), name, "contain only nonnegative finite numbers")
            if not np.all(steps >= 0.0) or not np.isfinite(steps).all():
                raise InvalidProblemError(
                    f"{name} must contain only nonnegative finite numbers, got {getattr(self, name)!r}"
                )
            object.__setattr__(self, name, steps)

    def begin(self, u: np.ndarray) -> Callable[[float, np.ndarray], Any]:
        """Start a run; return a function of t and the outputs that computes the inputs acting from t on."""
        reset = getattr(self.controller, "reset", None)
        if callable(reset):
            reset()
        waiting = deque([u.copy()] * self.delay)

        def act(t: float, y: np.ndarray) -> Any:
            given = self.controller(t, rounded(y, self.output_resolution))
            if given is None:
                raise InvalidProblemError(
                    f"the controller returned None at t = {t:g}; it must return the inputs (is a return missing?)"
                )
            if not isinstance(given, dict):
                given = rounded(check_real(given, "the result of the controller", "be numbers"), self.resolution)
            if not self.delay:
                return given
            waiting.append(given)
            return waiting.popleft()

        return act

    def run(self, simulation: Any, t_end: Any, *, progress: bool = False) -> Recording:
        """See :meth:`daedal.Simulation.run`."""
        if t_end is None:
            raise InvalidProblemError("t_end is missing: the time at which the run ends")
        t0, end = simulation.t, check_finite(t_end, "t_end")
        if not end > t0:
            raise InvalidProblemError(f"t_end = {end:g} is not after {t0:.10g}, the time of the simulation")
        act, k = self.begin(np.array(simulation._held.numbers)), 0
        times, outputs, inputs = [t0], [simulation.outputs], []
        bar = Progress(progress, (t0, end))
        try:
            while simulation.t < end:
                simulation.inputs = act(simulation.t, outputs[-1].copy())
                inputs.append(simulation._held.numbers)
                k += 1
                after = t0 + k * self.dt
                after = end if end - after < 1e-9 * self.dt else after
                outputs.append(simulation.step_to(after))
                times.append(simulation.t)
                bar.update(simulation.t)
                if simulation.t < after:
                    break
        finally:
            bar.close()
        inputs.append(simulation._held.numbers)
        return Recording(
            np.array(times), np.array(outputs).T, np.array(inputs).T, simulation.output_names, simulation.input_names
        )


def rounded(values: np.ndarray, resolution: np.ndarray) -> np.ndarray:
    """Values rounded to multiples of a resolution."""
    if not np.any(resolution):
        return values
    values, steps = np.broadcast_arrays(values, resolution)
    return np.where(steps > 0.0, np.round(values / np.where(steps > 0.0, steps, 1.0)) * steps, values)


@dataclass(frozen=True, eq=False)
class Recording:
    """Outputs and inputs of a run with a sampled controller.

    Attributes
    ----------
    t : numpy.ndarray, shape (nt,)
        The sampling instants, and the end of the run.
    y : numpy.ndarray, shape (n, nt)
        The outputs at these times.
    u : numpy.ndarray, shape (m, nt)
        The inputs from these times on; at the end, those of the last interval.
    output_names, input_names : tuple of str

    Examples
    --------
    >>> import daedal
    >>> tank = daedal.ODE(lambda t, y, flow: [flow - 0.5 * y[0]], 1, names=["level"], inputs=["flow"])
    >>> sim = daedal.Simulation(tank, [0.0])
    >>> record = sim.run(lambda t, y: 2.0 - y[0], dt=0.5, t_end=2.0)
    >>> print(record.t, record["level"].round(3), record["flow"].round(3))
    [0.  0.5 1.  1.5 2. ] [0.    0.885 1.182 1.283 1.316] [2.    1.115 0.818 0.717 0.717]
    """

    t: np.ndarray
    y: np.ndarray
    u: np.ndarray
    output_names: tuple[str, ...] = field(repr=False)
    input_names: tuple[str, ...] = field(repr=False)

    def __getitem__(self, name: str) -> np.ndarray:
        """An output or an input by its name."""
        for names, rows in ((self.output_names, self.y), (self.input_names, self.u)):
            if name in names:
                return rows[names.index(name)]
        raise unknown_name(name, [*self.output_names, *self.input_names])
