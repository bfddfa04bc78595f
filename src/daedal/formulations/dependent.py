"""Dependent coordinates of the minimal extension; what is done after every step for a formulation that asks for it."""

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.formulations.shape import MINIMAL_EXTENSION, ProjectedSteps, Shape
from daedal.mechanics.start import Start


def dependent_coordinates(assembly, start: Start) -> np.ndarray:
    """For every position and velocity 1 + the number of the dependent coordinate that it is, or 0."""
    from scipy.linalg import qr

    nx, n_g, n_c = assembly.nx, assembly.n_g, assembly.n_c
    pivot = np.zeros((2, nx), dtype=np.int64)
    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    if values is None:
        raise InvalidProblemError(f"the system cannot be evaluated at t = {start.t:g}")
    for rows, places in zip((n_g, n_c), pivot, strict=True):
        if rows:
            columns = np.sort(qr(values["jacobian"][:rows], mode="r", pivoting=True)[1][:rows])
            places[columns] = 1 + np.arange(rows)
    return pivot


def step_hook(shape: Shape, assembly, steps: ProjectedSteps | None):
    """The watch over the dependent coordinates, or the projection after every step."""
    if assembly.n_c == 0:
        return None
    if shape.variant == MINIMAL_EXTENSION:
        return _pivot_watch(shape, assembly)
    if steps is None:
        return None
    from daedal.mechanics.manifold import projection_hook

    projector = assembly.projector(steps.weight, steps.levels)
    projector["rtol"], projector["atol"] = steps.rtol, steps.atol
    return projection_hook, projector


def _pivot_watch(shape: Shape, assembly):
    """The hook that stops a run when other dependent coordinates have to be chosen."""
    from daedal.formulations.charts import CHART, pivot_hook
    from daedal.kernels.dense import dense_lu
    from daedal.kernels.records import Record

    matrix = dense_lu(max(assembly.n_c, 1))
    record = Record.allocated(CHART, system=assembly.record, matrix=matrix, limit=shape.restart)
    return pivot_hook, record
