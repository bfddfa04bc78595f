"""Runs of an ensemble by an integrator in C: the arguments of its kernel, its compilation for a GPU, its results.

Arrays are made with the module ``xp``, CuPy or NumPy: the same integrator runs on both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.errors import InvalidProblemError

if TYPE_CHECKING:
    from daedal.tracing.in_c import ProblemInC

MOST_STEPS = 1_000_000
"""Steps of a run if no limit is given: a thread that never ends would hold the GPU."""
_OF_TOLERANCE = 1e-3  # share of the tolerance that the constraints may be off inside of a run
_BLOCKS_PER_PROCESSOR = 32  # more than fit; the rest follow

Kernel = Callable[..., None]


@dataclass(frozen=True)
class Task:
    """What is the same for all runs.

    Attributes
    ----------
    t_span : tuple of float
    t_eval : ndarray
        Where values are wanted, in the order of the integration.
    rtol, atol : ndarray
        For each entry of the state.
    first_step : float
        0 where each run finds its own.
    largest_correction : float
        How far a start may be moved onto the constraints, in units of the tolerance.
    """

    t_span: tuple[float, float]
    t_eval: np.ndarray
    rtol: np.ndarray
    atol: np.ndarray
    first_step: float = 0.0
    max_step: float = np.inf
    max_steps: int = MOST_STEPS
    largest_correction: float = 10.0


@dataclass(frozen=True)
class Results:
    """What runs have ended with, one after the other in the first axis of all arrays.

    Attributes
    ----------
    y, t : array
        The state and the time at the end.
    outputs : array
        At the times that were asked for; NaN behind the end of a run.
    statuses : array of int
        Numbers of :class:`daedal.kernels.endings.Ending`.
    steps, rejections : array of int
        How many were accepted, and how many were not.
    fired : array of int
        The switching function that ended the run, or -1.
    """

    y: Any
    t: Any
    outputs: Any
    statuses: Any
    steps: Any
    rejections: Any
    fired: Any


def execute(
    xp: Any, kernel: Kernel, problem: ProblemInC, task: Task, starts, params, *, single: bool = False, order=None
) -> Results:
    """Run all members.

    Parameters
    ----------
    xp : module
        CuPy or NumPy.
    kernel : callable
        ``kernel(*arguments)`` with those of the kernel, in order.
    problem : ProblemInC
    task : Task
    starts, params : array
        One row for each member, or one for all: shapes (count or 1, n) and (count or 1, n_parameters).
    single : bool
        Single precision.
    order : array of int, optional
        In which order runs begin.
    """
    real = xp.float32 if single else xp.float64
    count, n, n_eval = max(len(starts), len(params)), problem.n, task.t_eval.size
    columns = [_columns(xp, values, count, real) for values in (starts, params)]
    tolerances = [xp.asarray(values, dtype=real) for values in (task.rtol, task.atol)]
    t_eval = xp.asarray(task.t_eval, dtype=xp.float64)
    outputs = xp.full((n_eval, n, count), np.nan, dtype=real)
    ends, times = xp.empty((n, count), dtype=real), xp.empty(count, dtype=xp.float64)
    numbers = [xp.empty(count, dtype=xp.int32) for _ in range(4)]
    given = None if order is None else xp.asarray(order, dtype=xp.int32)
    negligible = max(1e-9, float(np.sqrt(_OF_TOLERANCE * task.rtol.min())))
    scalars = [*task.t_span, task.first_step, task.max_step, negligible, task.largest_correction]
    kernel(
        *columns,
        *tolerances,
        t_eval,
        outputs,
        ends,
        times,
        *numbers,
        given,
        xp.zeros(1, dtype=xp.uint32),
        *map(np.float64, scalars),
        *map(np.int32, (task.max_steps, n_eval, count)),
    )
    return Results(ends.T, times, outputs.transpose(2, 0, 1), *numbers)


def _columns(xp: Any, values: Any, count: int, real: Any) -> Any:
    """Rows as columns, one for each member; at least one number, whose address may be taken."""
    array = xp.asarray(values, dtype=real)
    if array.shape[1] == 0:
        return xp.zeros(1, dtype=real)
    return xp.ascontiguousarray(xp.broadcast_to(array.T, (array.shape[1], count)))


# --- the GPU ----------------------------------------------------------------------------------------------------------


def gpu() -> Any:
    """CuPy, if there is one and it sees a GPU.

    Raises
    ------
    InvalidProblemError
        If not, with the remedy.
    """
    try:
        import cupy
    except ImportError as error:
        raise InvalidProblemError(
            "on='gpu' needs CuPy, which is not installed: pip install 'daedal[gpu]' (cupy-cuda12x, or the package of "
            "your version of CUDA), or use on='threads'"
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise InvalidProblemError(f"on='gpu': CuPy finds no usable GPU ({error}); use on='threads'") from error
    if count == 0:
        raise InvalidProblemError("on='gpu': there is no GPU on this machine; use on='threads'")
    return cupy


@lru_cache(maxsize=64)
def gpu_kernel(source: str, device: int, block: int, contract: bool = True) -> Kernel:
    """The kernel of a source on a device; CuPy keeps compiled sources on disk, by their digests."""
    cupy = gpu()
    options = ("--std=c++17", f"--fmad={'true' if contract else 'false'}")
    with cupy.cuda.Device(device):
        function = cupy.RawModule(code=source, options=options).get_function("run")
        processors = cupy.cuda.Device(device).attributes["MultiProcessorCount"]

    def launch(*arguments: Any) -> None:
        count = int(arguments[-1])
        blocks = min(-(-count // block), processors * _BLOCKS_PER_PROCESSOR)
        given = [np.uint64(0) if value is None else value for value in arguments]
        function((max(blocks, 1),), (block,), tuple(given))

    return launch
