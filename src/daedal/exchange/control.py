"""Conversion of problems and linear models to python-control, and use of its controllers in simulations.

Requires python-control (``pip install daedal[control]``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems import ODE, MechanicalSystem
from daedal.problems.problem_sources import problem_of

try:
    import control
except ImportError as error:
    raise ImportError("daedal.control needs python-control: pip install daedal[control]") from error


def state_space(linear: Any, **options: Any) -> control.StateSpace:
    """Convert a linear model of :func:`daedal.linearise` to a ``control.StateSpace`` with the same signal names.

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.ODE(lambda t, y, u: [y[1], u - 9.81 * y[0]], 2, names="angle rate", inputs=["u"])
    >>> system = daedal.control.state_space(daedal.linearise(pendulum, [0.0, 0.0]))
    >>> system.nstates, system.input_labels, system.output_labels
    (2, ['u'], ['angle', 'rate'])
    """
    names = {"states": linear.states, "inputs": linear.inputs, "outputs": linear.outputs}
    return control.ss(linear.A, linear.B, linear.C, linear.D, **{k: _plain(v) for k, v in names.items()}, **options)


def io_system(problem: Any, **options: Any) -> control.NonlinearIOSystem:
    """Convert an :class:`ODE` or a mechanism to a ``control.NonlinearIOSystem`` with the states y or (q, v).

    Constraints of a mechanism are imposed on the accelerations, so states must be consistent. Outputs are the states.
    Problems with algebraic variables cannot be converted; use :func:`state_space`, or :class:`daedal.Simulation`.

    Examples
    --------
    >>> import control, daedal, numpy as np
    >>> lag = daedal.ODE(lambda t, y, u: [u - y[0]], 1, names=["x"], inputs=["u"])
    >>> response = control.input_output_response(daedal.control.io_system(lag), np.linspace(0.0, 1.0, 11), 1.0, [0.0])
    >>> print(f"{response.outputs[-1]:.3f}")
    0.632
    """
    problem = problem_of(problem)
    if not isinstance(problem, (ODE, MechanicalSystem)):
        raise InvalidProblemError(
            f"a {type(problem).__name__} is not a system x' = f(t, x, u). Remedy: use daedal.control.state_space("
            "daedal.linearise(problem, ...)), or a Simulation"
        )
    inputs = getattr(problem, "inputs", None)
    names = tuple(problem.label(i) for i in range(problem.n))
    labels = () if inputs is None else inputs.labels

    def with_inputs(u: np.ndarray) -> Any:
        return problem if inputs is None else problem.with_inputs(np.atleast_1d(np.asarray(u, dtype=float)))

    def update(t: float, x: np.ndarray, u: np.ndarray, params: Any) -> np.ndarray:
        here = with_inputs(u)
        if isinstance(here, ODE):
            return here.slope(t, np.asarray(x, dtype=float))
        q, v = np.split(np.asarray(x, dtype=float)[: 2 * here.n_q], 2)
        return np.concatenate([v, here.at(t, q, v).acceleration])

    options = {"name": type(problem).__name__, **options}
    return control.NonlinearIOSystem(
        update, None, inputs=_plain(labels) or 0, outputs=_plain(names), states=_plain(names), **options
    )


class DiscreteController:
    """A discrete-time system of python-control as a controller of :meth:`daedal.Simulation.run`.

    Parameters
    ----------
    system : control.StateSpace or control.TransferFunction
        A discrete-time system. Its inputs are the outputs of the simulation; its outputs are the inputs of the
        simulation.
    sign : float
        Factor applied to the outputs of `system`; -1 gives negative feedback.

    Examples
    --------
    >>> import control, daedal
    >>> cart = daedal.ODE(lambda t, y, u: [y[1], u], 2, names="x v", inputs=["u"])
    >>> lead = control.tf([8.0, -7.0], [1.0, -0.3], 0.1)
    >>> controller = daedal.control.DiscreteController(lead)
    >>> record = daedal.Simulation(cart, [1.0, 0.0], outputs=["x"]).run(controller, 0.1, 15.0)
    >>> print(abs(record["x"][-1]) < 0.05)
    True
    """

    def __init__(self, system: Any, sign: float = -1.0):
        if not system.isdtime(strict=True):
            raise InvalidProblemError("system must be in discrete time: use control.sample_system(system, dt)")
        self._system, self._sign = control.ss(system), float(sign)
        self.reset()

    def reset(self) -> None:
        """Reset the state to zero."""
        self._x = np.zeros(self._system.nstates)

    def __call__(self, t: float, y: np.ndarray) -> np.ndarray:
        """Compute the inputs of the simulation from its outputs `y` at a sampling instant."""
        system = self._system
        u = system.C @ self._x + system.D @ y
        self._x = system.A @ self._x + system.B @ y
        return self._sign * u


def _plain(names: Any) -> list[str]:
    """Replace dots, which python-control does not allow in signal names."""
    return [str(name).replace(".", "_") for name in names]
