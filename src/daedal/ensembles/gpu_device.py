"""Ensembles that begin and end on a GPU: arrays of CuPy in, arrays of CuPy out."""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.drive.request import check_span, check_times, checked_settings
from daedal.ensembles.gpu import GPU, Engine, task_of
from daedal.ensembles.gpu_model import Model, gpu_model
from daedal.ensembles.gpu_order import order_of_runs
from daedal.ensembles.gpu_run import Results, execute
from daedal.errors import InvalidProblemError


def solve_on_gpu(
    problem: Any,
    t_span: Any,
    initials: Any,
    *,
    params: Any = None,
    t_eval: Any = None,
    on: GPU | None = None,
    engine: Any = None,
    **options: Any,
) -> Results:
    """Many runs on a GPU, with results that stay there.

    For what goes on on the GPU: a loss function, a histogram, training data. :func:`daedal.solve_many` with
    ``on="gpu"`` fetches results, looks at failures and knows reductions.

    Parameters
    ----------
    problem : MechanicalSystem, ODE, ImplicitDAE or SemiExplicitDAE
        With functions that can be traced.
    t_span : (float, float)
    initials : tuple of array, or array
        As :func:`daedal.solve` takes them, (q0, v0) of mechanisms and (y0, z0) or y0 of other problems, each with a
        leading axis where it varies; of NumPy or CuPy.
    params : array, optional
        The numbers of the parameters, one row for each member.
    t_eval : array, optional
        Where values are wanted.
    on : GPU, optional
        Which one, and its precision.
    engine : object, optional
        Where kernels run, for tests.
    **options
        Of :func:`daedal.prepare`: method, rtol, atol, terminal events, max_steps and so on.

    Returns
    -------
    Results
        Arrays on the device: ``y`` of shape (members, n) and ``t``, the end of each run; ``outputs``, of shape
        (members, times, n); ``statuses``, positive for runs that came through (2: finished, 4: ended by an event);
        ``steps``, ``rejections``, ``fired``.
    """
    on = GPU() if on is None else on
    engine = Engine(on) if engine is None else engine
    settings, span = checked_settings(**options), check_span(t_span)
    times = np.zeros(0) if t_eval is None else check_times(t_eval, span)
    single = on.precision == "single"
    model = gpu_model(problem, settings, outputs=times.size > 0, single=single)
    xp = engine.xp
    with engine.device():
        rows = [_starts(xp, model, initials), _numbers(xp, model, problem, params)]
        counts = {len(array) for array in rows if len(array) != 1}
        if len(counts) > 1:
            raise InvalidProblemError(f"initials have {len(rows[0])} rows and params {len(rows[1])}")
        order = order_of_runs(xp, model.code, rows)
        kernel = engine.kernel(model.source)
        return execute(xp, kernel, model.code, task_of(model, settings, span, times), *rows, single=single, order=order)


def _starts(xp: Any, model: Model, initials: Any) -> Any:
    parts = list(initials) if isinstance(initials, (tuple, list)) and np.ndim(initials[0]) else [initials]
    arrays = [xp.atleast_2d(xp.asarray(part, dtype=float)) for part in parts if part is not None]
    if not model.code.positions and arrays[0].shape[1] == model.code.n:
        arrays = arrays[:1]  # y' is not needed
    count = max(map(len, arrays))
    rows = xp.concatenate([xp.broadcast_to(array, (count, array.shape[1])) for array in arrays], axis=1)
    if rows.shape[1] != model.code.n:
        raise InvalidProblemError(f"initials have {rows.shape[1]} values for a state of {model.code.n}")
    return rows


def _numbers(xp: Any, model: Model, problem: Any, params: Any) -> Any:
    layout = model.traced.layout
    if layout is None:
        return xp.zeros((1, 0))
    rows = layout.numbers(problem.params) if params is None else params
    rows = xp.atleast_2d(xp.asarray(rows, dtype=float))
    if rows.shape[1] != layout.count:
        raise InvalidProblemError(f"params has {rows.shape[1]} columns; the problem has {layout.count} parameters")
    return rows
