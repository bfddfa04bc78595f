"""Gymnasium environments for problems: inputs are actions, outputs are observations.

Requires Gymnasium (``pip install daedal[gym]``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

import daedal
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.problems.checks import check_positive, check_real

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise ImportError("daedal.gym needs Gymnasium: pip install daedal[gym]") from error


class Environment(gymnasium.Env):
    """A problem as a Gymnasium environment.

    Parameters
    ----------
    problem : problem, Model or Circuit
        The problem to simulate. Actions are its inputs, and the parameters named in `inputs`.
    initial : tuple or callable
        Initial values as for :func:`daedal.solve`, or a function of a random generator that returns them.
    dt : float
        The time between two actions.
    reward : callable
        ``reward(t, y, u)``, with the observation after the action and the action.
    actions : pair or mapping
        The smallest and the largest action, or such a pair for each input by name.
    terminated : callable, optional
        ``terminated(t, y)``: whether the task has ended. A terminal event or a failed integration also ends the task.
    t_end : float, optional
        The time at which an episode is truncated.
    observations : pair, optional
        The smallest and the largest observation; unbounded by default.
    dtype : dtype
        Data type of actions and observations.
    **options
        Options of :class:`daedal.Simulation`: `inputs`, `outputs`, `rtol`, `method`, ...

    Examples
    --------
    >>> import daedal, numpy as np
    >>> cart = daedal.ODE(lambda t, y, force: [y[1], force], 2, names="x v", inputs=["force"])
    >>> env = daedal.gym.Environment(
    ...     cart, lambda random: random.uniform(-1.0, 1.0, 2), dt=0.1, t_end=5.0, actions=(-1.0, 1.0),
    ...     reward=lambda t, y, u: -(y @ y), terminated=lambda t, y: abs(y[0]) > 3.0,
    ... )
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(np.array([0.5], dtype=np.float32))
    >>> observation.shape, terminated, truncated
    ((2,), False, False)
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}
    render_mode = None

    def __init__(
        self,
        problem: Any,
        initial: Any,
        *,
        dt: float,
        reward: Callable[..., Any],
        actions: Any,
        terminated: Callable[..., Any] | None = None,
        t_end: float | None = None,
        observations: Any = None,
        dtype: Any = np.float32,
        **options: Any,
    ):
        self.dt, self.t_end = check_positive(dt, "dt"), None if t_end is None else check_positive(t_end, "t_end")
        if not callable(reward):
            raise InvalidProblemError(f"reward must be a function reward(t, y, u), got {reward!r}")
        self._reward, self._terminated, self._initial = reward, terminated, initial
        first = initial(np.random.default_rng(0)) if callable(initial) else initial
        self.simulation = daedal.Simulation(problem, first, **options)
        if not self.simulation.input_names:
            raise InvalidProblemError(
                "the problem has no inputs for the actions: state it with inputs=['u'], or pass names of its "
                "parameters as inputs=..."
            )
        self._start = self.simulation.save_state()
        low, high = self._bounds(actions)
        self.action_space = gymnasium.spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype)
        shape = self.simulation.outputs.shape
        bounds = (-np.inf, np.inf) if observations is None else observations
        low, high = (np.broadcast_to(np.asarray(x, dtype=dtype), shape) for x in bounds)
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=dtype)
        self._dtype = dtype

    def _bounds(self, actions: Any) -> tuple[np.ndarray, np.ndarray]:
        simulation = self.simulation
        if isinstance(actions, Mapping):
            missing = [name for name in simulation.inputs if name not in actions]
            if missing:
                raise InvalidProblemError(f"actions has no bounds for {', '.join(map(repr, missing))}")
            pairs = [np.broadcast_arrays(*actions[name], value)[:2] for name, value in simulation.inputs.items()]
            actions = [np.concatenate([np.ravel(pair[i]) for pair in pairs]) for i in (0, 1)]
        low, high = (check_real(x, "actions", "be a pair of bounds") for x in actions)
        size = len(simulation.input_names)
        low, high = (np.broadcast_to(x, (size,)).astype(float) for x in (low, high))
        if not np.all(low < high):
            raise InvalidProblemError(f"actions must be a pair (low, high) with low < high, got {actions!r}")
        return low, high

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Begin an episode; ``options={"initial": values}`` sets its initial values."""
        super().reset(seed=seed)
        given = (options or {}).get("initial")
        if given is None and callable(self._initial):
            given = self._initial(self.np_random)
        if given is None:
            self.simulation.restore(self._start)
        else:
            self.simulation.reset(given)
        return self.simulation.outputs.astype(self._dtype), {"t": self.simulation.t}

    def step(self, action: Any):
        """Apply an action for the time dt; return observation, reward, terminated, truncated and info."""
        simulation, info = self.simulation, {}
        u, end = np.asarray(action, dtype=float).reshape(-1), simulation.t + self.dt
        try:
            y, ended = simulation.step_to(end, u), False
            ended = simulation.t < end
        except IntegrationError as error:
            y, ended, info = simulation.outputs, True, {"error": str(error)}
        reward = float(self._reward(simulation.t, y, u))
        if self._terminated is not None:
            ended = ended or bool(self._terminated(simulation.t, y))
        truncated = self.t_end is not None and simulation.t >= self.t_end - 1e-9 * self.dt
        return y.astype(self._dtype), reward, ended, truncated, info | {"t": simulation.t}


class Environments(VectorEnv):
    """Several members of one environment, stepped together in one process.

    A member that has ended is reset in the next step, whose action it ignores (``AutoresetMode.NEXT_STEP``).

    Parameters
    ----------
    count : int
        Number of members.
    make : callable
        ``make()`` returns an :class:`Environment`.

    Examples
    --------
    >>> import daedal, numpy as np
    >>> lag = daedal.ODE(lambda t, y, u: [u - y[0]], 1, inputs=["u"])
    >>> def make():
    ...     return daedal.gym.Environment(lag, [0.0], dt=0.1, actions=(-1, 1), reward=lambda t, y, u: -y[0] ** 2)
    >>> members = daedal.gym.Environments(3, make)
    >>> observations, infos = members.reset(seed=1)
    >>> observations, rewards, terminated, truncated, infos = members.step(np.ones((3, 1)))
    >>> observations.shape
    (3, 1)
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, count: int, make: Callable[[], Environment]):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidProblemError(f"count must be a positive integer, got {count!r}")
        self.members = [make() for _ in range(count)]
        self.num_envs = count
        first = self.members[0]
        self.single_action_space, self.single_observation_space = first.action_space, first.observation_space
        self.action_space = batch_space(first.action_space, count)
        self.observation_space = batch_space(first.observation_space, count)
        self._observations = np.zeros(self.observation_space.shape, dtype=self.observation_space.dtype)
        self._over = np.zeros(count, dtype=bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None):
        """Begin an episode of each member. Seeds are seed, seed + 1, ..., or the entries of a list."""
        seeds = [seed if seed is None else seed + i for i in range(self.num_envs)] if np.ndim(seed) == 0 else list(seed)
        times = np.zeros(self.num_envs)
        for i, member in enumerate(self.members):
            self._observations[i], info = member.reset(seed=seeds[i], options=options)
            times[i] = info["t"]
        self._over[:] = False
        return self._observations.copy(), {"t": times}

    def step(self, actions: Any):
        """Step each member once."""
        actions = np.asarray(actions, dtype=float).reshape(self.num_envs, -1)
        rewards, times = np.zeros(self.num_envs), np.zeros(self.num_envs)
        terminated, truncated = np.zeros(self.num_envs, dtype=bool), np.zeros(self.num_envs, dtype=bool)
        for i, member in enumerate(self.members):
            if self._over[i]:
                self._observations[i], info = member.reset()
            else:
                self._observations[i], rewards[i], terminated[i], truncated[i], info = member.step(actions[i])
            times[i] = info["t"]
        self._over = terminated | truncated
        return self._observations.copy(), rewards, terminated, truncated, {"t": times}
