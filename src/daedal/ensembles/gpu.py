"""Ensembles on a GPU: one thread per run, with its own step size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.common.public_names import with_old_keywords
from daedal.driver.request import check_span, check_times, checked_settings
from daedal.ensembles.columns import Chunk, NumbersOf, Vectors
from daedal.ensembles.gpu_model import (
    BLOCK,
    INCONSISTENT,
    MOST_STEPS,
    GPUModel,
    GPUResults,
    GPUTask,
    execute,
    gpu,
    gpu_kernel,
    gpu_model,
)
from daedal.ensembles.inputs import EnsembleRequest
from daedal.ensembles.part import EVENT, FAILED, FINISHED, Part
from daedal.errors import InvalidProblemError
from daedal.kernels.endings import MEANINGS, Ending

# The threads of a warp execute the same instructions. Runs with nearly equal starts and parameters accept and reject
# their steps and end at the same time, so that no thread waits: docs/guide/ensembles-gpu.md has the figures.

FEWEST_OPERATIONS = 100
"""Number of operations of the accelerations above which sorting saves more time than it takes. Runs of linearly
implicit methods are not sorted, since they reject few steps."""
_MOST_COLUMNS = 8
_BITS = 48  # bits of the sort key


def order_of_runs(xp: Any, code: Any, arrays: list[Any]) -> Any:
    """Order in which to run the members of a problem in C; None to keep the given order."""
    if not code.positions or code.operations < FEWEST_OPERATIONS:
        return None
    return neighbours_together(xp, arrays, max(map(len, arrays)))


def neighbours_together(xp: Any, arrays: list[Any], count: int) -> Any:
    """An order of members along which starts and parameters change little; None if nothing varies.

    The order follows the Morton curve through the ranks of the varying quantities; a single quantity is sorted.

    Parameters
    ----------
    xp : module
        CuPy or NumPy.
    arrays : list of array
        Starts and parameters, with one row per member or one shared row.
    count : int
        Number of members.
    """
    varying: list[Any] = []
    for array in arrays:
        if len(array) == count and count > 1:
            changes = xp.any(array != array[:1], axis=0)
            varying += [array[:, k] for k in range(array.shape[1]) if bool(changes[k])]
    columns = varying[:_MOST_COLUMNS]
    if not columns:
        return None
    if len(columns) == 1:
        return xp.argsort(columns[0]).astype(xp.int32)
    bits = _BITS // len(columns)
    key = xp.zeros(count, dtype=xp.int64)
    for place, column in enumerate(columns):
        rank = xp.empty(count, dtype=xp.int64)
        rank[xp.argsort(column)] = xp.arange(count)
        level = rank * (1 << bits) // count
        for bit in range(bits):
            key |= ((level >> bit) & 1) << (bit * len(columns) + place)
    return xp.argsort(key).astype(xp.int32)


# --- the backend ------------------------------------------------------------------------------------------------------

_MOST_MEMBERS = 1 << 22  # maximum number of members in a chunk
_SHARE = 0.4  # maximal fraction of the free memory used by a chunk
_PRECISIONS = ("double", "single")
MESSAGES = {
    int(Ending.MAX_STEPS): "the limit of steps was reached",
    int(Ending.ZERO_WEIGHT): "an error weight rtol |y| + atol is zero at the start",
    int(Ending.ERROR_TEST_FAILED): MEANINGS[Ending.ERROR_TEST_FAILED],
    int(Ending.NEWTON_FAILED): "Newton's iteration for the constraints did not converge",
    int(Ending.MATRIX_SINGULAR): (
        "elimination failed with a bad pivot for arbitrarily short steps: the matrix is singular there, or needs "
        "pivoting, which on='threads' provides"
    ),
    int(Ending.UNEVALUABLE): MEANINGS[Ending.UNEVALUABLE],
    int(Ending.CALLBACK_RAISED): MEANINGS[Ending.CALLBACK_RAISED],
    INCONSISTENT: "the initial values do not satisfy the constraints; correct_initial=True corrects them",
}
"""Reasons of failed runs, by the number set by the kernel."""


@dataclass(frozen=True)
class GPU:
    """GPU options of :func:`daedal.solve_many`: ``on=daedal.ensembles.GPU(precision="single")``.

    Parameters
    ----------
    precision : {"double", "single"}
        Precision of the state; time is always in double precision.
    device : int
        The number of the GPU.

    Examples
    --------
    >>> import daedal
    >>> daedal.ensembles.GPU(precision="single")
    GPU(precision='single', device=0)
    """

    precision: str = "double"
    device: int = 0

    def __post_init__(self):
        if self.precision not in _PRECISIONS:
            raise InvalidProblemError(f"precision must be 'double' or 'single', got {self.precision!r}")
        if isinstance(self.device, bool) or not isinstance(self.device, (int, np.integer)) or self.device < 0:
            raise InvalidProblemError(f"device must be the number of a GPU, got {self.device!r}")


class Engine:
    """Executes kernels on a GPU, using CuPy."""

    def __init__(self, options: GPU):
        self.xp = gpu()
        count = self.xp.cuda.runtime.getDeviceCount()
        if options.device >= count:
            raise InvalidProblemError(
                f"on='gpu': device {options.device} of {count} does not exist; they are numbered from 0"
            )
        self._device = int(options.device)

    @property
    def name(self) -> str:
        """The name in an ensemble's message."""
        properties = self.xp.cuda.runtime.getDeviceProperties(self._device)
        return properties["name"].decode()

    def device(self) -> Any:
        """A context in which arrays are allocated on the device."""
        return self.xp.cuda.Device(self._device)

    def kernel(self, source: str) -> Callable[..., None]:
        """Compile the kernel of a source."""
        return gpu_kernel(source, self._device, BLOCK)

    def free_memory(self) -> int:
        """Free memory in bytes."""
        with self.device():
            return int(self.xp.cuda.runtime.memGetInfo()[0])

    def fetched(self, array: Any) -> np.ndarray:
        """Convert an array of the device to a NumPy array."""
        return self.xp.asnumpy(array)


class GPUBackend:
    """Runs the chunks of an ensemble on a GPU, with one kernel launch for each."""

    workers = 1

    def __init__(self, request: EnsembleRequest, workers: int = 1, options: GPU | None = None, engine: Any = None):
        options = GPU() if options is None else options
        self._single = options.precision == "single"
        _check_request(request)
        self._request = request
        self._engine = Engine(options) if engine is None else engine
        self._model: GPUModel = gpu_model(
            request.problem, request.settings, outputs=request.n_times > 0, single=self._single
        )
        times = np.zeros(0) if request.t_eval is None else request.t_eval
        self._task = task_of(self._model, request.settings, request.span, times)
        self._kernel = self._engine.kernel(self._model.source)
        layout, params = self._model.traced.layout, request.problem.params
        self._numbers = NumbersOf(params, None if layout is None else layout.numbers)
        self.name = self._engine.name
        self.chunk_size = self._members_that_fit()

    def run(self, chunks: Iterator[Chunk], deliver: Callable[[Part], None]) -> None:
        """Run all chunks in turn."""
        for chunk in chunks:
            deliver(self._part(chunk))

    def _members_that_fit(self) -> int:
        code = self._model.code
        numbers = 3 * code.n + 2 * code.n_parameters + 2 * self._request.n_times * code.n + 8
        return int(max(1, min(_MOST_MEMBERS, _SHARE * self._engine.free_memory() / (8 * numbers))))

    def _part(self, chunk: Chunk) -> Part:
        starts, params = self._starts(chunk), self._parameters(chunk)
        engine, xp = self._engine, self._engine.xp
        with engine.device():
            rows = [xp.asarray(values) for values in (starts, params)]
            order = order_of_runs(xp, self._model.code, rows)
            found = execute(xp, self._kernel, self._model.code, self._task, *rows, single=self._single, order=order)
            return self._filled(Part.empty(chunk), found)

    # --- inputs -------------------------------------------------------------------------------------------------------

    def _starts(self, chunk: Chunk) -> np.ndarray:
        """Rows (q, v, r) or y of the members; one row if all are equal."""
        n = self._model.code.n
        if isinstance(chunk.starts, Vectors):
            columns = chunk.starts.columns[: 3 if self._model.code.positions else 2]
            arrays: list[Any] = [None if c is None else c.values for c in columns]
        else:
            members = [chunk.starts.member(i) for i in range(chunk.count)]
            if not all(isinstance(member, (tuple, np.ndarray, list)) for member in members):
                raise InvalidProblemError("on='gpu' needs initial values as arrays, not by name: use on='threads'")
            arrays = [np.array([np.concatenate([np.ravel(x) for x in _vectors(member)])[:n] for member in members])]
        if not self._model.code.positions and arrays[0] is not None and arrays[0].shape[1] == n:
            arrays = arrays[:1]  # (y, y')
        if any(array is None for array in arrays):
            raise InvalidProblemError(
                "on='gpu' does not compute missing initial values: give all of them (with correct_initial=True, "
                "guesses suffice for variables determined by algebraic equations only), or use on='threads'"
            )
        count = max(len(array) for array in arrays)
        rows = np.concatenate([np.broadcast_to(array, (count, array.shape[1])) for array in arrays], axis=1)
        missing = n - rows.shape[1]
        return np.concatenate([rows, np.zeros((count, missing))], axis=1) if missing > 0 else rows

    def _parameters(self, chunk: Chunk) -> np.ndarray:
        rows, layout = self._numbers.rows(chunk), self._model.traced.layout
        if rows is None and layout is not None:
            members = [chunk.params.member(i) for i in range(chunk.count)]
            if not all(layout.fits(member) for member in members):
                raise InvalidProblemError(
                    "on='gpu': params of all members must have the same structure as params of the problem"
                )
            rows = np.array([layout.numbers(member) for member in members])
        assert rows is not None
        return rows

    # --- results ------------------------------------------------------------------------------------------------------

    def _filled(self, part: Part, found: GPUResults) -> Part:
        fetched, request = self._engine.fetched, self._request
        statuses, t = fetched(found.statuses), fetched(found.t)
        part.layout, part.t_final = request.layout, t
        good = statuses > 0
        part.status[:] = np.where(good, np.where(statuses == int(Ending.EVENT_STOP), EVENT, FINISHED), FAILED)
        final = fetched(found.y).astype(float)
        final[~good] = np.nan
        part.arrays["final"] = final
        values = fetched(found.outputs).astype(float).transpose(0, 2, 1) if request.n_times else None
        if values is not None and request.keeps_states:
            part.arrays["y"] = values
        for name in request.outputs or ():  # type: ignore[union-attr]  # names, no function
            assert request.layout is not None
            place = request.layout.names.index(name)
            part.arrays[f"output:{name}"] = final[:, place] if values is None else values[:, place]
        for row in np.flatnonzero(~good):
            reason = MESSAGES.get(int(statuses[row]), "the run failed")
            part.messages[part.first + int(row)] = f"Stopped at t = {t[row]:.10g} on the GPU: {reason}."
        if request.keeps_events:
            fired = fetched(found.fired)
            events, rows = self._model.events, np.flatnonzero(part.status == EVENT)
            part.events += [
                (part.first + int(row), float(t[row]), events.names[fired[row]], events.directions[fired[row]], True)
                for row in rows
            ]
        return part


def _vectors(member: Any) -> list[Any]:
    return [member] if np.ndim(member[0]) == 0 else [x for x in member if x is not None]


def _check_request(request: EnsembleRequest) -> None:
    if request.is_factory:
        raise InvalidProblemError("on='gpu' needs one problem with params, not a function that returns problems")
    if request.needs_solutions:
        raise InvalidProblemError(
            "on='gpu' does not provide whole solutions: outputs must be names of state variables, or use on='threads'"
        )
    if request.t_stop is not None:
        raise InvalidProblemError("on='gpu': t_stop is not available; steps never go beyond t_span")


def task_of(model: GPUModel, settings: Any, span: tuple[float, float], times: np.ndarray) -> GPUTask:
    """The data shared by all runs."""
    return GPUTask(
        t_span=span,
        t_eval=times,
        rtol=model.rtol,
        atol=model.atol,
        first_step=settings.first_step or 0.0,
        max_step=settings.max_step,
        max_steps=settings.max_steps or MOST_STEPS,
        largest_correction=np.inf if settings.correct_initial else 10.0,
    )


# --- ensembles that stay on a GPU: CuPy arrays as input and output ----------------------------------------------------


@with_old_keywords(initials="initial")
def solve_on_gpu(
    problem: Any,
    t_span: Any,
    initial: Any,
    *,
    params: Any = None,
    t_eval: Any = None,
    on: GPU | None = None,
    engine: Any = None,
    **options: Any,
) -> GPUResults:
    """Solve many runs on a GPU and leave the results on the device.

    Use it for subsequent work on the GPU: a loss function, a histogram, training data. :func:`daedal.solve_many` with
    ``on="gpu"`` fetches results, reports failures and supports reductions.

    Parameters
    ----------
    problem : MechanicalSystem, ODE, ImplicitDAE or SemiExplicitDAE
        Its functions must be traceable.
    t_span : (float, float)
    initial : tuple of array, or array
        As for :func:`daedal.solve`, (q0, v0) for mechanisms and (y0, z0) or y0 for other problems, each with a leading
        axis if varying; NumPy or CuPy arrays.
    params : array, optional
        The values of the parameters, one row per member.
    t_eval : array, optional
        Times at which values are returned.
    on : GPU, optional
        The GPU, and its precision.
    engine : object, optional
        Executor of kernels, for tests.
    **options
        Options of :func:`daedal.prepare`: method, rtol, atol, terminal events, max_steps and so on.

    Returns
    -------
    GPUResults
        Arrays on the device: ``y`` of shape (members, n) and ``t``, the end of each run; ``outputs``, of shape
        (members, times, n); ``statuses``, positive for successful runs (2: finished, 4: ended by an event); ``steps``,
        ``rejections``, ``fired``.

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ODE(lambda t, y: [-y[0]], 1)
    >>> runs = daedal.ensembles.solve_on_gpu(decay, (0.0, 1.0), [[1.0], [2.0]])  # doctest: +SKIP
    """
    on = GPU() if on is None else on
    engine = Engine(on) if engine is None else engine
    settings, span = checked_settings(**options), check_span(t_span)
    times = np.zeros(0) if t_eval is None else check_times(t_eval, span)
    single = on.precision == "single"
    model = gpu_model(problem, settings, outputs=times.size > 0, single=single)
    xp = engine.xp
    with engine.device():
        rows = [_starts(xp, model, initial), _numbers(xp, model, problem, params)]
        counts = {len(array) for array in rows if len(array) != 1}
        if len(counts) > 1:
            raise InvalidProblemError(f"initial has {len(rows[0])} rows, but params {len(rows[1])}")
        order = order_of_runs(xp, model.code, rows)
        kernel = engine.kernel(model.source)
        return execute(xp, kernel, model.code, task_of(model, settings, span, times), *rows, single=single, order=order)


def _starts(xp: Any, model: GPUModel, initial: Any) -> Any:
    parts = list(initial) if isinstance(initial, (tuple, list)) and np.ndim(initial[0]) else [initial]
    arrays = [xp.atleast_2d(xp.asarray(part, dtype=float)) for part in parts if part is not None]
    if not model.code.positions and arrays[0].shape[1] == model.code.n:
        arrays = arrays[:1]  # y' is not needed
    count = max(map(len, arrays))
    rows = xp.concatenate([xp.broadcast_to(array, (count, array.shape[1])) for array in arrays], axis=1)
    if rows.shape[1] != model.code.n:
        raise InvalidProblemError(f"initial has {rows.shape[1]} values for a state of {model.code.n}")
    return rows


def _numbers(xp: Any, model: GPUModel, problem: Any, params: Any) -> Any:
    layout = model.traced.layout
    if layout is None:
        return xp.zeros((1, 0))
    rows = layout.numbers(problem.params) if params is None else params
    rows = xp.atleast_2d(xp.asarray(rows, dtype=float))
    if rows.shape[1] != layout.count:
        raise InvalidProblemError(f"params has {rows.shape[1]} columns, but the problem {layout.count} parameters")
    return rows
