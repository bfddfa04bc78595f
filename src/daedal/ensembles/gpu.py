"""Ensembles on a GPU: one thread for each run, with its own step size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.ensembles.columns import Chunk, Vectors
from daedal.ensembles.gpu_model import Model, gpu_model
from daedal.ensembles.gpu_order import order_of_runs
from daedal.ensembles.gpu_run import MOST_STEPS, Results, Task, execute, gpu, gpu_kernel
from daedal.ensembles.gpu_source import BLOCK
from daedal.ensembles.numbers import NumbersOf
from daedal.ensembles.part import EVENT, FAILED, FINISHED, Part
from daedal.ensembles.request import EnsembleRequest
from daedal.errors import InvalidProblemError
from daedal.kernels.endings import MEANINGS, Ending

_MOST_MEMBERS = 1 << 22  # of a chunk
_SHARE = 0.4  # of the free memory that a chunk may take
_PRECISIONS = ("double", "single")
INCONSISTENT = -12
MESSAGES = {
    int(Ending.MAX_STEPS): "the limit of steps was reached",
    int(Ending.ZERO_WEIGHT): "an error weight rtol |y| + atol is zero at the start",
    int(Ending.ERROR_TEST_FAILED): MEANINGS[Ending.ERROR_TEST_FAILED],
    int(Ending.NEWTON_FAILED): "Newton's iteration for the constraints did not converge",
    int(
        Ending.MATRIX_SINGULAR
    ): "an elimination met a bad pivot, however short the step: the matrix is singular there, "
    "or needs pivoting (on='threads')",
    int(Ending.UNEVALUABLE): MEANINGS[Ending.UNEVALUABLE],
    int(Ending.CALLBACK_RAISED): MEANINGS[Ending.CALLBACK_RAISED],
    INCONSISTENT: "the initial values do not satisfy the constraints; correct_initial=True moves them there",
}
"""Why a run has failed, by the number that the kernel leaves."""


@dataclass(frozen=True)
class GPU:
    """How :func:`daedal.solve_many` uses a GPU: ``on=daedal.GPU(precision="single")``.

    Parameters
    ----------
    precision : {"double", "single"}
        Of the state; time is always in double precision.
    device : int
        The number of the GPU.

    Examples
    --------
    >>> import daedal
    >>> daedal.GPU(precision="single")
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
    """Where kernels run: a GPU, by CuPy."""

    def __init__(self, options: GPU):
        self.xp = gpu()
        count = self.xp.cuda.runtime.getDeviceCount()
        if options.device >= count:
            raise InvalidProblemError(f"on='gpu': device {options.device} of {count}; they are numbered from 0")
        self._device = int(options.device)

    @property
    def name(self) -> str:
        """What an ensemble says of it."""
        properties = self.xp.cuda.runtime.getDeviceProperties(self._device)
        return properties["name"].decode()

    def device(self) -> Any:
        """A context in which arrays live there."""
        return self.xp.cuda.Device(self._device)

    def kernel(self, source: str) -> Callable[..., None]:
        """The kernel of a source."""
        return gpu_kernel(source, self._device, BLOCK)

    def free_memory(self) -> int:
        """Bytes."""
        with self.device():
            return int(self.xp.cuda.runtime.memGetInfo()[0])

    def fetched(self, array: Any) -> np.ndarray:
        """An array of the device as NumPy's."""
        return self.xp.asnumpy(array)


class GPUBackend:
    """Runs the chunks of an ensemble on a GPU, one kernel for each."""

    workers = 1

    def __init__(self, request: EnsembleRequest, workers: int = 1, options: GPU | None = None, engine: Any = None):
        options = GPU() if options is None else options
        self._single = options.precision == "single"
        _check_request(request)
        self._request = request
        self._engine = Engine(options) if engine is None else engine
        self._model: Model = gpu_model(
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
        """Run all chunks, one after the other."""
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
        """Rows (q, v, r) or y of the members; one row where all have the same."""
        n = self._model.code.n
        if isinstance(chunk.starts, Vectors):
            columns = chunk.starts.columns[: 3 if self._model.code.positions else 2]
            arrays: list[Any] = [None if c is None else c.values for c in columns]
        else:
            members = [chunk.starts.member(i) for i in range(chunk.count)]
            if not all(isinstance(member, (tuple, np.ndarray, list)) for member in members):
                raise InvalidProblemError("on='gpu' takes initials as arrays, not by name: use on='threads'")
            arrays = [np.array([np.concatenate([np.ravel(x) for x in _vectors(member)])[:n] for member in members])]
        if not self._model.code.positions and arrays[0] is not None and arrays[0].shape[1] == n:
            arrays = arrays[:1]  # (y, y')
        if any(array is None for array in arrays):
            raise InvalidProblemError(
                "on='gpu' computes no missing initial values: give all of them (guesses will do for variables that "
                "only algebraic equations determine, with correct_initial=True), or use on='threads'"
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
                raise InvalidProblemError("on='gpu': params of all members must have the structure of the problem's")
            rows = np.array([layout.numbers(member) for member in members])
        assert rows is not None
        return rows

    # --- results ------------------------------------------------------------------------------------------------------

    def _filled(self, part: Part, found: Results) -> Part:
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
        raise InvalidProblemError("on='gpu' needs one problem with params, not a function that makes problems")
    if request.needs_solutions:
        raise InvalidProblemError(
            "on='gpu' has no whole solutions: outputs must be names of variables of the state, or use on='threads'"
        )
    if request.t_stop is not None:
        raise InvalidProblemError("on='gpu': t_stop is not available; steps never go beyond t_span")


def task_of(model: Model, settings: Any, span: tuple[float, float], times: np.ndarray) -> Task:
    """What is the same for all runs."""
    return Task(
        t_span=span,
        t_eval=times,
        rtol=model.rtol,
        atol=model.atol,
        first_step=settings.first_step or 0.0,
        max_step=settings.max_step,
        max_steps=settings.max_steps or MOST_STEPS,
        largest_correction=np.inf if settings.correct_initial else 10.0,
    )
