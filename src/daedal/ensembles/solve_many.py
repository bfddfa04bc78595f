"""The public function ``solve_many``: it checks arguments, runs the members on a backend and combines the results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from daedal.common.public_names import with_old_keywords
from daedal.common.tabular import plural
from daedal.driver.options import SolverOptions, takes
from daedal.driver.request import check_span, check_times, checked_settings
from daedal.ensembles.backends import Chosen, chosen_backend, probe
from daedal.ensembles.checkpoint import Checkpoint, without
from daedal.ensembles.collector import Collector
from daedal.ensembles.columns import Chunk, Listed, Members
from daedal.ensembles.ensemble import Ensemble
from daedal.ensembles.executors import PartCollector, is_dask_client
from daedal.ensembles.inputs import EnsembleRequest, read_inputs, read_params, read_starts
from daedal.ensembles.part import NOT_RUN, Part, layout_of
from daedal.ensembles.reductions import named_reductions
from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_positive
from daedal.problems.problem_sources import is_source

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import ArrayLike

    from daedal.problems.problem_sources import Problem, ProblemSource


@with_old_keywords(initials="initial")
@takes(SolverOptions)
def solve_many(
    problem: Problem | ProblemSource[Problem] | Callable[..., Any],
    t_span: ArrayLike,
    initial: Any,
    *,
    params: Any = None,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    hold: str = "zero",
    t_eval: ArrayLike | None = None,
    outputs: str | Sequence[str] | Callable[[Any], Any] | None = None,
    reduce: Any = None,
    on: Any = "threads",
    workers: int | None = None,
    chunk_size: int | None = None,
    member_timeout: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
    keep_events: bool | None = None,
    progress: bool = False,
    t_stop: float | None = None,
    gather: bool = True,
    **options: Unpack[SolverOptions],
) -> Ensemble:
    r"""Solve one problem many times, with varying initial values and parameters, on all cores.

    Parameters
    ----------
    problem : object
        A problem of any class accepted by :func:`daedal.solve`; or a function of the parameters that returns one, or
        (problem, initial values), for variations that require rebuilding the problem.
    t_span : (float, float)
        Start and end, the same for all members.
    initial : tuple, array, mapping, frame, list or iterator
        The initial values of :func:`daedal.solve`, with a leading axis of length N if they vary: ``(q0, v0)``
        with `q0` of shape (N, n_q) and `v0` of shape (n_q,) or None. An array of shape (N, n) holds complete states,
        such as ``ensemble.final.y``. A mapping or a frame holds variables by name. A list or an iterator has one entry
        for each member, tuples or mappings.
    params : array, mapping, frame, list or iterator, optional
        Replaces the problem's parameters: an array of shape (N, number of parameters), a mapping of names to arrays of
        length N (of numbers to arrays if the parameters are a vector), a frame, a list of mappings, an iterator. Starts
        and parameters are broadcast: either may be shared by all members.
    inputs : mapping or list of mappings, optional
        Inputs by name, as for :func:`daedal.solve`; numbers, vectors and the values of samples (times, values) may have
        a leading axis of length N. Alternatively, one mapping for each member.
    hold : {"zero", "first"}
        Interpolation of samples between their times.
    t_eval : array, optional
        Output times. Without them the states at the end of each run are stored.
    outputs : str, sequence of str, or callable, optional
        What to store instead of the states at `t_eval`: variables and multipliers by name, or the result of a function
        of the :class:`Solution`: numbers, an array or a mapping of them.
    reduce : str, Aggregator, (function, merge), or several, optional
        Store only statistics of the members: "mean", "var", "std", "min", "max", "median", "count", "quantiles", a
        :class:`daedal.ensembles.Quantiles`, a :class:`daedal.ensembles.Histogram` or a pair (function of a block of
        members, function that merges two results): see :mod:`daedal.ensembles.reductions`. They apply to the outputs
        if requested, otherwise to the states at `t_eval` or, without `t_eval`, at the end.
    on : {"threads", "processes", "dask", "gpu"}, executor or Dask client
        The backend. Threads suit compiled functions; for Python functions, processes are used instead, as stated in the
        message. Any ``concurrent.futures.Executor`` and ``dask.distributed.Client`` is accepted.
    workers : int, optional
        Number of threads or processes; by default the number of cores.
    chunk_size : int, optional
        Members passed to a worker at once; by default a tenth of a second's work. Results do not depend on it.
    member_timeout : float, optional
        Time limit of a run in seconds.
    checkpoint : path, optional
        A folder for intermediate results; the same call resumes a run that was stopped or killed.
    keep_events : bool, optional
        Whether to store the events of all members; by default if there are events and no reductions.
    progress : bool
        Whether to show a progress bar with the rate and the remaining time.
    t_stop : float, optional
        See :func:`daedal.solve`.
    gather : bool
        With a Dask client, whether to fetch the results. If not, ``ensemble.arrays``, and with it ``final.y``, ``y``
        and the rest, are dask arrays in the memory of the workers, one piece for each chunk.
    **options
        Options of :func:`daedal.prepare`: method, formulation, rtol, atol, events, and so on.

    Returns
    -------
    Ensemble
        Failed members are marked and keep their message; they never stop the others. After an interrupt (Ctrl-C) the
        ensemble contains the results so far.

    Notes
    -----
    Results are bit-identical for all `on`, `workers` and `chunk_size`, and equal those of :func:`daedal.solve` with
    ``t_eval=[..., t_end]``.

    Examples
    --------
    The position of a pendulum of length 1 after one second, for 1000 values of gravity:

    >>> import numpy as np
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0,
    ...     lambda t, q, v, p: [0.0, -p["g"]],
    ...     lambda t, q, p: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)],
    ...     n_q=2,
    ...     n_constraints=1,
    ...     params={"g": 9.81},
    ... )
    >>> start = [1.0, 0.0], [0.0, 0.0]
    >>> ensemble = daedal.solve_many(pendulum, (0.0, 1.0), start, params={"g": np.linspace(1.0, 10.0, 1000)})
    >>> ensemble.final.q.shape, ensemble.failed.size
    ((1000, 2), 0)
    """
    settings = checked_settings(**options)
    span = check_span(t_span)
    times = None if t_eval is None else check_times(t_eval, span)
    if is_source(problem):
        initial = problem.as_initial(None, span[0], None) if initial is None else initial
        problem = problem.as_problem()
    reductions = named_reductions(reduce)
    starts = read_starts(problem, initial) if not callable(problem) or initial is not None else Listed("", [None])
    given = read_params(problem, params)
    if inputs is not None:
        problem, given = read_inputs(problem, inputs, hold, given)
    members = Members(starts, given)
    has_events = settings.events is not None or hasattr(problem, "modes") or callable(problem)
    request = EnsembleRequest(
        problem=problem,
        settings=settings,
        span=span,
        t_eval=times,
        t_stop=t_stop,
        outputs=_checked_outputs(outputs),
        keeps_states=outputs is None,
        keeps_events=(has_events and not reductions) if keep_events is None else bool(keep_events),
        member_timeout=None if member_timeout is None else check_positive(member_timeout, "member_timeout"),
        layout=None if callable(problem) else layout_of(problem),
    )
    if not gather and (not is_dask_client(on) or reductions or checkpoint is not None):
        raise InvalidProblemError("gather=False needs on=client, a Dask client, without reduce= and checkpoint=")
    plan = _ManyPlan(on, _count(workers, "workers"), _count(chunk_size, "chunk_size"), checkpoint, progress, gather)
    ensemble = _solve(request, members, reductions, plan)
    given = {"on": on, "workers": workers, "chunk_size": chunk_size, "member_timeout": member_timeout}
    given |= {"keep_events": keep_events, "progress": progress, "t_stop": t_stop, **options}
    ensemble.again = _Again(problem, t_span, t_eval, outputs, given, ensemble.inputs)
    return ensemble


class _ManyPlan:
    """Plan for running the members."""

    def __init__(
        self, on: Any, workers: int | None, chunk_size: int | None, checkpoint: Any, progress: bool, gather: bool
    ):
        self.on, self.chunk_size, self.checkpoint, self.progress = on, chunk_size, checkpoint, progress
        self.pieces = None if gather else PartCollector()  # arrays that stay where they were computed
        self.workers = workers or available_cores()


class _Again:
    """Reruns some of the members."""

    def __init__(self, problem, t_span, t_eval, outputs, options: dict[str, Any], members: Members | None):
        self._arguments = problem, t_span, t_eval, outputs
        self._options, self._members = options, members

    def __call__(self, rows: np.ndarray, options: dict[str, Any]) -> Ensemble:
        problem, t_span, t_eval, outputs = self._arguments
        if self._members is None:
            raise InvalidProblemError("retry: the failed members are no longer known")
        chosen = self._members.chosen(rows) if not isinstance(self._members, _Kept) else self._members.of(rows)
        return solve_many(
            problem,
            t_span,
            _Given(chosen.starts),
            params=None if chosen.params is None else _Given(chosen.params),
            t_eval=t_eval,
            outputs=outputs,
            **(self._options | options),
        )


class _Given:
    """Starts or parameters read so far."""

    def __init__(self, values: Any):
        self.read_before = values


class _Kept(Members):
    """The starts and parameters of failed members, for streams."""

    def __init__(self):
        self.starts = self.params = None
        self.count, self.streamed = None, True
        self.inputs: dict[int, tuple[Any, Any]] = {}

    def keep(self, chunk: Chunk, part: Part) -> None:
        """Store the data needed to run a member again."""
        for member in part.messages:
            self.inputs[member] = chunk.member(member - chunk.first)

    def of(self, rows: np.ndarray) -> Members:
        """Starts and parameters of some members."""
        missing = [int(k) for k in rows if int(k) not in self.inputs]
        if missing:
            raise InvalidProblemError(f"retry: member {missing[0]} of the iterator was never read")
        starts, params = zip(*[self.inputs[int(k)] for k in rows])
        none = all(p is None for p in params)
        return Members(Listed("initial", list(starts)), None if none else Listed("params", list(params)))


def _solve(request: EnsembleRequest, members: Members, reductions: list, plan: _ManyPlan) -> Ensemble:
    began = time.perf_counter()
    collector = Collector(members.count, reductions)
    store = None if plan.checkpoint is None else Checkpoint(plan.checkpoint, request, members)
    if store is not None:
        for part in store.stored():
            collector.add(part)
    bar = _RunsBar(plan.progress, members.count)
    bar.update(collector.done, len(collector.failed_members))
    kept = _Kept() if members.streamed else None
    waiting: dict[int, Chunk] = {}

    def deliver(part: Part) -> None:
        if kept is not None and (chunk := waiting.pop(part.first, None)) is not None and part.messages:
            kept.keep(chunk, part)
        if plan.pieces is not None:
            part = plan.pieces.take(part)
        if collector.add(part):
            if store is not None:
                store.add(part)
            bar.update(collector.done, len(collector.failed_members))

    def watched(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        left = chunks if store is None else without(chunks, collector.seen)
        for chunk in left:
            if kept is not None:
                waiting[chunk.first] = chunk
            yield chunk

    chosen, interrupted = Chosen("", ""), False
    try:
        begin = 0 if members.streamed else collector.first_missing()
        first = next(watched(members.chunks(1, begin)), None)
        if first is not None:
            found = probe(request, first)
            request = found.request
            deliver(found.part)
            begin = first.first + 1
            if not found.is_batch and (second := next(watched(members.chunks(1, begin)), None)) is not None:
                deliver(found.again(second))
                begin = second.first + 1
            left = None if members.count is None else members.count - collector.done
            chosen = chosen_backend(request, plan.on, plan.workers, found, left, plan.pieces is None)
            if left != 0:
                size = plan.chunk_size or chosen.chunk_size(found.seconds, left)
                chosen.backend.run(watched(members.chunks(size, begin)), deliver)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        chosen.close()
        if store is not None:
            store.flush()
        bar.close()
    ensemble = _ensemble(request, members, collector, chosen, store, kept, interrupted, time.perf_counter() - began)
    if plan.pieces is not None:
        ensemble.arrays = plan.pieces.joined(ensemble.members)
    return ensemble


def _ensemble(request, members, collector: Collector, chosen: Chosen, store, kept, interrupted, seconds) -> Ensemble:
    reduced = collector.reduced() if collector.reductions else {}
    count = collector.count if members.count is None else members.count
    words = [_in_words(collector, count, chosen)]
    if interrupted:
        words.append(f"Interrupted: {plural(count - collector.done, 'member')} not run." if count else "Interrupted.")
    if store is not None and store.trouble:
        words.append(store.trouble)
    return Ensemble(
        members=count,
        t=request.t_eval,
        t_final=collector.t_final,
        arrays=collector.finished_arrays(),
        reduced={name: _with_states(request, collector, values) for name, values in reduced.items()},
        code=collector.status,
        messages=collector.messages,
        failed=np.array(sorted(collector.failed_members), dtype=np.int64),
        message=" ".join(words),
        seconds=seconds,
        layout=collector.layout,
        event_rows=collector.events,
        inputs=members if kept is None else kept,
    )


def _in_words(collector: Collector, count: int, chosen: Chosen) -> str:
    """A message: number of successful runs, backend, and reason for its choice."""
    good = int(np.sum(collector.status != NOT_RUN)) - len(collector.failed_members)
    where = f" on {chosen.name}" if chosen.name else ""
    verb = "was" if good == 1 else "were"
    text = f"{good} of {plural(count, 'run')} {verb} successful{where}."
    return f"{text} {chosen.reason}".rstrip()


def _with_states(request: EnsembleRequest, collector: Collector, values: dict[str, Any]) -> dict[str, Any]:
    """Reduced states with the names y, q and v."""
    for name in ("y", "final"):
        if name in values and request.outputs is None:
            values = {"y": values[name]}
    return values


def _checked_outputs(outputs: Any) -> Any:
    if outputs is None or callable(outputs):
        return outputs
    names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidProblemError(f"outputs must be names or a function of the solution, got {outputs!r}")
    return names


def _count(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidProblemError(f"{name} must be a positive integer, got {value!r}")
    return int(value)


def available_cores() -> int:
    """The cores available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


class _RunsBar:
    """A progress bar with the rate, the remaining time and the number of failures; None if not requested."""

    def __init__(self, show: bool, count: int | None):
        self._bar = None
        if show:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=count, unit=" runs", smoothing=0.1)

    def update(self, done: int, failed: int) -> None:
        """Show the number of finished runs."""
        if self._bar is not None:
            if failed:
                self._bar.set_postfix_str(f"{failed} failed", refresh=False)
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Leave the bar in its current state."""
        if self._bar is not None:
            self._bar.close()
