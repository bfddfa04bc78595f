"""The class :class:`Simulation`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf, isfinite
from threading import Lock
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from daedal.analysis.linear_models.linear_model import LinearModel
from daedal.analysis.linear_models.linearise import linearise
from daedal.common.messages import unknown_name
from daedal.driver.options import SolverOptions, takes
from daedal.driver.request import checked_request, checked_settings
from daedal.errors import InvalidProblemError
from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.hybrid.mode_state import StateForm
from daedal.hybrid.sampled_control import Recording, Sampled
from daedal.problems.checks import check_finite, check_flag
from daedal.problems.compile import with_other_params
from daedal.problems.problem_sources import Problem, ProblemSource, is_source
from daedal.simulation.continued_modes import ContinuedModes
from daedal.simulation.continued_run import ContinuedRun
from daedal.simulation.held_inputs import HeldInputs
from daedal.simulation.simulation_state import SavedState, SimulationState, chosen_outputs, image_of, restore_image
from daedal.solution.solution import Solution

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Output = str | Callable[..., Any]
    Outputs = Output | Sequence[Output] | Mapping[str, Output] | None

_NUMBERS = (float, int, np.integer, np.floating)
_HORIZON = 1000.0  # default horizon, in units of the first call


class Simulation:
    r"""A problem that is solved step by step, with inputs set by the caller.

    The method keeps its history, its step size and its matrices from call to call, and restarts only when an input
    jumps. Events, modes, hidden switches and projections onto constraints work as in :func:`daedal.solve`.

    Parameters
    ----------
    problem : problem, Model or Circuit
        As for :func:`daedal.solve`.
    initial : tuple
        Initial values, as for :func:`daedal.solve`.
    t0 : float
        The time at which the simulation begins.
    inputs : mapping or sequence of str, optional
        Initial values by name: numbers and vectors, which steps may change; or functions of time, tables and samples,
        which they may not. Names may also be those of parameters of the problem. A sequence of names defines the order
        of the vector `u` of a step; by default all inputs in their order.
    outputs : sequence, mapping or callable, optional
        Return value of steps, also in :attr:`outputs`: names of quantities, and functions ``f(t, y)`` of the variables.
        By default the variables y: (q, v, r) of a mechanism, (y, z), or y.
    params : object, optional
        Parameters that replace those of the problem, as for :func:`daedal.solve`.
    exact : bool, optional
        Whether internal steps end where calls end. By default they do in problems with inputs, which may jump there.
        Otherwise the method takes the steps that suit the tolerances, and values between them are interpolated.
    max_steps : int, optional
        Largest number of internal steps of one call. If it is reached, the call raises :class:`IntegrationError`, and
        the next call continues from the time reached. With ``fixed_step`` and a one-step method, every call takes the
        same amount of work.
    horizon : float, optional
        A typical time interval, used to scale the first step and to search for switches that depend on time alone. By
        default 1000 times the length of the first call.
    events, rtol, atol, method, formulation, ...
        As for :func:`daedal.solve`.

    Attributes
    ----------
    t : float
    y : numpy.ndarray
        The variables as integrated; in :attr:`state` they are projected onto the constraints.
    events : list
        Events so far: :class:`EventRecord`, or :class:`HybridEvent` in problems with modes. The list may be cleared.

    Examples
    --------
    >>> import daedal
    >>> tank = daedal.ODE(lambda t, y, flow: [flow - 0.5 * y[0]], 1, names=["level"], inputs=["flow"])
    >>> sim = daedal.Simulation(tank, [0.0], rtol=1e-8)
    >>> for flow in (1.0, 1.0, 0.0):
    ...     level = sim.step(0.5, u=[flow])
    ...     print(f"{sim.t} {level[0]:.5f}")
    0.5 0.44240
    1.0 0.78694
    1.5 0.61287
    >>> start = sim.save_state()
    >>> first = sim.step(1.0)[0]
    >>> sim.restore(start)
    >>> bool(sim.step(1.0)[0] == first), f"{sim['level']:.5f}", sim["flow"]
    (True, '0.37172', 0.0)
    """

    @takes(SolverOptions)
    def __init__(
        self,
        problem: Problem | ProblemSource[Problem],
        initial: Any = None,
        *,
        t0: float = 0.0,
        inputs: Mapping[str, Any] | Sequence[str] | None = None,
        outputs: Outputs = None,
        hold: str = "zero",
        params: Any = None,
        exact: bool | None = None,
        horizon: float | None = None,
        **options: Unpack[SolverOptions],
    ) -> None:
        given: dict[str, Any] = dict(options)
        for name in ("dense_output", "sensitivities", "t_eval", "t_stop", "breakpoints", "sampled"):
            if given.get(name) is not None and given[name] is not False:
                raise InvalidProblemError(
                    f"{name}: a simulation has no given end and stores no past values. Remedy: use daedal.solve"
                )
        settings = checked_settings(**options)
        self._most_steps = settings.max_steps or 0
        self._settings = replace(settings, dense_output=False, max_steps=None)
        if exact is not None:
            check_flag(exact, "exact")
        self._source = problem if is_source(problem) else None
        if initial is None and self._source is None and getattr(problem, "start", None) is None:
            raise InvalidProblemError("initial is missing: give the initial values of the problem")
        self._lock = Lock()
        self._horizon = None if horizon is None else check_finite(horizon, "horizon")
        if self._horizon is not None and not self._horizon > 0.0:
            raise InvalidProblemError(f"horizon must be positive, got {horizon!r}")
        self._given = problem, params, inputs, hold, exact
        self._wanted = outputs
        self.events: list[Any] = []
        self._begin(initial, check_finite(t0, "t0"))

    # --- the start ----------------------------------------------------------------------------------------------------

    def _begin(self, initial: Any, t0: float):
        problem, params, inputs, hold, exact = self._given
        stated = problem if self._source is None else self._source.as_problem(initial)
        if params is not None:
            stated = with_other_params(stated, params)
        self._held = HeldInputs(stated, inputs, hold)
        if self._source is not None:
            levels = self._held.levels(t0)
            initial = self._source.as_initial(initial, t0, {**(params or {}), **levels} if levels else params)
        self._stated, self._initial, self._t0 = stated, initial, t0
        self._held.take_pieces(t0)
        self._exact = bool(self._held.size) if exact is None else bool(exact)
        self._next_jump = self._jump_after(t0)
        self._moved = False
        self._run: Any = None
        self._start(self._horizon or 1.0)
        self._n = len(self.names)
        self._output_names, self._places, self._functions = chosen_outputs(self, self._wanted)

    def _start(self, length: float):
        request = checked_request(
            self._held.problem, self._settings, (self._t0, self._t0 + length), self._initial, t_eval=[]
        )
        kind = ContinuedModes if isinstance(self._held.problem, HybridProblem) else ContinuedRun
        self._run = kind(request, self._held, self._stated, exact=self._exact)
        self._t = self._t0
        self._solution: Any = None

    def reset(self, initial: Any = None, *, t0: float | None = None) -> None:
        """Restart from the start, or from other initial values; inputs and parameters get their initial values."""
        with self._alone():
            before = dict(vars(self))
            try:
                self._begin(
                    self._initial if initial is None else initial, self._t0 if t0 is None else check_finite(t0, "t0")
                )
            except BaseException:
                vars(self).update(before)
                raise
            self.events.clear()

    # --- steps --------------------------------------------------------------------------------------------------------

    def step(self, dt: float, u: ArrayLike | Mapping[str, Any] | None = None) -> np.ndarray:
        """Advance by dt with constant inputs, and return the outputs.

        Parameters
        ----------
        dt : float
            Length of the step, positive.
        u : array or mapping, optional
            New inputs: the vector of all inputs, or values by name. By default inputs are unchanged.

        Returns
        -------
        numpy.ndarray
            :attr:`outputs` at the end. A terminal event stops the step earlier: check :attr:`t`.
        """
        if type(dt) is bool or not isinstance(dt, _NUMBERS) or not 0.0 < dt < inf:
            raise InvalidProblemError(f"dt must be positive and finite, got {dt!r}; a simulation only advances")
        t = self._t + float(dt)
        if t == self._t:
            raise InvalidProblemError(f"dt = {dt:g} is below the resolution of the time at t = {t:.10g}")
        return self.step_to(t, u)

    def step_to(self, t: float, u: ArrayLike | Mapping[str, Any] | None = None) -> np.ndarray:
        """Advance to the time t with constant inputs, and return the outputs; see :meth:`step`."""
        try:
            forwards = self._t < t < inf
        except TypeError:
            forwards = False
        if not forwards:
            self._refuse_time(t)
        t = float(t)
        if not self._lock.acquire(False):
            self._refuse_use()
        try:
            if u is not None:
                self._set_inputs(u)
            if not self._moved:
                self._first_step(t)
            run = self._run
            try:
                if self._next_jump <= t:
                    self._over_jumps(t)
                else:
                    run.go_to(t, self._most_steps)
            finally:
                self._solution, self._t = None, run.t
                if not run.is_quick:
                    self._collect()
            return self.outputs
        finally:
            self._lock.release()

    def internal_step(self) -> np.ndarray:
        """Take one step of the method, of the length that its error control chooses, and return the outputs.

        If the last call of :meth:`step`, with ``exact=False``, stopped within a step, advance only to the end of that
        step.
        """
        with self._alone():
            if not self._moved:
                self._first_step(self._t + (self._horizon or 1.0))
            try:
                self._run.internal_step()
            finally:
                self._solution, self._t = None, self._run.t
                self._collect()
            return self.outputs

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Guard for changes of the method's memory, which compiled code uses without the interpreter's lock."""
        if not self._lock.acquire(False):
            self._refuse_use()
        try:
            yield
        finally:
            self._lock.release()

    def _refuse_use(self):
        raise InvalidProblemError(
            "the simulation is in use, by another thread or by a function of the problem that calls it. Remedy: use a "
            "simulation for each thread, or a lock"
        )

    def _refuse_time(self, t: Any):
        if not isinstance(t, _NUMBERS) or t != t or t in (inf, -inf):
            raise InvalidProblemError(f"t must be a finite number, got {t!r}")
        raise InvalidProblemError(
            f"t = {t:g} is not after {self._t:.10g}, the time of the simulation, which only advances. Remedy: call "
            "save_state() at an earlier time, and restore(state)"
        )

    def _first_step(self, t: float):
        """Set the time scales from the first call if they are otherwise unknown."""
        self._moved = True
        if self._horizon is None and t - self._t > 0.0 and self._t == self._t0:
            length = _HORIZON * (t - self._t)
            if isfinite(length) and (self._run.follows_time or t - self._t > 1.0):
                self._start(length)

    def _over_jumps(self, t: float) -> bool:
        """Advance to t, with a restart at each jump of an input given by samples or a table."""
        run = self._run
        while self._next_jump <= t:
            at = self._next_jump
            before = float(np.nextafter(at, -inf))  # functions are unchanged there
            if before > run.t and not run.go_to(before, self._most_steps):
                return False
            run.change(partial(self._held.take_pieces, at), at)
            self._next_jump = self._jump_after(at)
        return run.t >= t or run.go_to(t, self._most_steps)

    def _jump_after(self, t: float) -> float:
        """The next time at which inputs given as signals, or parts of a model or circuit, jump or have a kink."""
        at = self._held.jump_after(t)
        if self._source is None:
            return at
        end = t + (self._horizon or 1.0)
        points = self._source.as_breakpoints(t, end, self._given[1])
        if points is None:
            return at
        times = np.concatenate([np.ravel(x) for x in (points if isinstance(points, (list, tuple)) else [points])])
        return min([at, end, *times[times > t].tolist()])

    def _collect(self):
        """Append the events since the last call to the list of events."""
        found = self._run.events_so_far
        if found:
            self.events.extend(found)
            found.clear()

    # --- inputs and outputs -------------------------------------------------------------------------------------------

    def _set_inputs(self, u: Any):
        held = self._held
        numbers = u.tolist() if type(u) is np.ndarray and u.shape == (held.size,) else held.checked(u).tolist()
        if numbers == held.numbers:
            return
        for x in numbers:
            if type(x) is not float or not isfinite(x):
                numbers = held.checked(u).tolist()
                break
        before = held.numbers
        try:
            self._run.change(partial(held.set, numbers))
        except BaseException:
            held.set(before)
            raise
        self._solution = None

    @property
    def inputs(self) -> dict[str, Any]:
        """The current inputs by name."""
        return {name: self._held[name] for name in self._held.names}

    @inputs.setter
    def inputs(self, u: ArrayLike | Mapping[str, Any]) -> None:
        with self._alone():
            self._set_inputs(u)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the entries of the vector u."""
        return self._held.labels

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self._output_names

    @property
    def outputs(self) -> np.ndarray:
        """The current outputs as a vector."""
        run, places = self._run, self._places
        if places is None:
            return np.concatenate([np.ravel(np.asarray(one(), dtype=float)) for one in self._functions])
        if not run.is_plain:
            return self.y[places]
        return run.unknowns()[places].copy() if type(places) is slice else run.unknowns()[places]

    # --- where it stands ----------------------------------------------------------------------------------------------

    @property
    def t(self) -> float:
        """The time."""
        return self._t

    @property
    def problem(self) -> Any:
        """The given problem."""
        return self._given[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables; with modes, those of the current mode."""
        return tuple(self._one_point().names)

    @property
    def mode(self) -> str | None:
        """The mode of a problem with modes."""
        return getattr(self._run, "mode", None)

    @property
    def y(self) -> np.ndarray:
        """The integrated variables."""
        run = self._run
        if run.is_plain:
            return run.unknowns()[: self._n].copy()
        return self._one_point().y[:, 0].copy()

    @property
    def state(self) -> SimulationState:
        """The state: ``.y``, ``.yp``; for a mechanism also ``.q``, ``.v``, ``.lam`` and so on; quantities by name."""
        return SimulationState(self._t, self._one_point())

    def __getitem__(self, name: str) -> Any:
        """A quantity of the solution, an input, or an output, by its name."""
        solution = self._one_point()
        known: list[str] = []
        for quantity in solution.quantities():
            if name in quantity.names:
                return float(np.asarray(quantity.rows())[quantity.names.index(name)][0])
            known += quantity.names
        if name in self._held:
            return self._held[name]
        places = [i for i, own in enumerate(getattr(self, "_output_names", ())) if own == name]
        if places:
            return float(self.outputs[places[0]])
        raise unknown_name(name, [*known, *self._held.names])

    def _one_point(self) -> Solution:
        """The current point as a solution, computed once."""
        if self._solution is None:
            self._solution = self._run.solution()
        return self._solution

    # --- states -------------------------------------------------------------------------------------------------------

    def save_state(self) -> SavedState:
        """Save all data that determine the continuation: the state, the history and the matrices of the method, inputs,
        modes.

        After :meth:`restore` the continuation is bit-identical.
        """
        with self._alone():
            return SavedState(id(self), self._t, image_of(self))

    def restore(self, state: SavedState) -> None:
        """Restore a state of this simulation, any number of times."""
        if not isinstance(state, SavedState):
            raise InvalidProblemError(f"state must come from save_state(), got {type(state).__name__}")
        if state.owner != id(self):
            raise InvalidProblemError(
                "state was saved by another simulation, whose memory is arranged differently. Remedy: call "
                "reset(initial) with the values of the other simulation"
            )
        with self._alone():
            restore_image(self, state.image)

    # --- controllers --------------------------------------------------------------------------------------------------

    def run(
        self,
        controller: Callable[[float, np.ndarray], Any] | Sampled,
        dt: float | None = None,
        t_end: float | None = None,
        *,
        progress: bool = False,
    ) -> Recording:
        """Run with a controller that sets the inputs at regular instants, up to `t_end`.

        Parameters
        ----------
        controller : callable or Sampled
            ``u = controller(t, y)``, called with the outputs at the beginning of each interval; see
            :class:`daedal.simulation.Sampled` for delays and quantisation. A controller with a state is a callable
            object; its ``reset()``, if defined, is called first.
        dt : float
            The sampling interval; that of a :class:`~daedal.simulation.Sampled` by default.
        t_end : float
            The end. The last interval is shorter if the duration is not a multiple of dt.
        progress : bool
            Show a bar with the model time.

        Returns
        -------
        Recording
            Times, outputs and inputs at all instants.

        Examples
        --------
        >>> import daedal
        >>> cart = daedal.ODE(lambda t, y, u: [y[1], u], 2, names="x v", inputs=["u"])
        >>> sim = daedal.Simulation(cart, [1.0, 0.0])
        >>> record = sim.run(lambda t, y: -2.0 * y[0] - 3.0 * y[1], dt=0.1, t_end=5.0)
        >>> print(record.t.size, abs(record["x"][-1]) < 0.02)
        51 True
        """
        sampled = controller if isinstance(controller, Sampled) else Sampled(controller, cast(float, dt))
        return sampled.run(self, t_end, progress=progress)

    def linearise(self, *, inputs: Sequence[str] | None = None, outputs: Outputs = None) -> LinearModel:
        """The linear model at the current point, with the current inputs; see :func:`daedal.linearise`.

        Examples
        --------
        >>> import daedal
        >>> tank = daedal.ODE(lambda t, y, flow: [flow - 0.5 * y[0] ** 2], 1, names=["level"], inputs={"flow": 2.0})
        >>> sim = daedal.Simulation(tank, [2.0])
        >>> sim.linearise().A, sim.linearise().B
        (array([[-2.]]), array([[1.]]))
        """
        problem = self._held.problem
        if isinstance(problem, HybridProblem):
            problem = self._run.forms_here[self.mode].problem
        form = StateForm(problem)
        y, yp = form.at_end(self._one_point())
        named = [name for name in self._held.names if name in (getattr(problem, "inputs", None) or ())]
        wanted = named if inputs is None else inputs
        return linearise(problem, form.initial(y, yp), t=self._t, inputs=wanted or None, outputs=outputs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise InvalidProblemError(
            "a simulation cannot be copied or pickled, since its memory contains addresses. Remedy: create another "
            "Simulation from the values of its state; or return to an earlier time by save_state() and restore(state)"
        )

    def __repr__(self) -> str:
        mode = f", mode {self.mode!r}" if self.mode is not None else ""
        return f"<Simulation of a {type(self._stated).__name__} at t = {self._t:.10g}{mode}>"
