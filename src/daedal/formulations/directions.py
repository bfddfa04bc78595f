"""D, along which multipliers move a solution back to the constraints, and how large these multipliers are."""

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.formulations.shape import DYNAMICS, GIVEN, PROJECTIONS, THROUGH_MASS, Shape
from daedal.mechanics.start import Start

_LOOSE = 10.0  # multipliers that only keep the solution on the constraints
_SINGULAR = 1e-13  # singular value of M, in units of its diagonal
_NAMED = 0.2  # part of the largest share that a coordinate must have in a motion without mass
_NEARLY_DEPENDENT = 1e-10  # of G D, rows and columns with norm 1


def kind_of(projection: Any) -> int:
    """TRANSPOSE, THROUGH_MASS or GIVEN, checked."""
    if not isinstance(projection, str):
        return GIVEN
    if projection not in PROJECTIONS:
        raise InvalidProblemError(f"unknown projection '{projection}'; known: {', '.join(PROJECTIONS)}, or a matrix")
    return PROJECTIONS[projection]


def given_direction(projection: Any, assembly, start: Start) -> np.ndarray:
    """D of kind GIVEN at the start: unit vectors, a matrix, or the value of a function; G D must be regular there."""
    nx, n_c = assembly.nx, assembly.n_c
    if isinstance(projection, str):
        return _unit_vectors(assembly, start)
    if callable(projection):
        from daedal.kernels.functions import store_matrix

        values = np.empty(nx * n_c)
        store_matrix("projection", nx, n_c)(projection(start.t, start.z[:nx].copy()), values)
        direction = values.reshape(n_c, nx).T
    else:
        try:
            direction = np.asarray(projection, dtype=float).reshape(nx, n_c)
        except (TypeError, ValueError):
            raise InvalidProblemError(
                f"projection must be {', '.join(map(repr, PROJECTIONS))}, a function D(t, q) or an array ({nx}, {n_c})"
            ) from None
    _check(assembly, start, direction)
    return direction


def _check(assembly, start: Start, direction: np.ndarray):
    """G D must be regular where the run begins."""
    if not np.all(np.isfinite(direction)):
        raise InvalidProblemError(f"projection holds values that are not finite at t = {start.t:g}")
    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    if values is None or assembly.n_g == 0:
        return
    rows, columns = values["jacobian"][: assembly.n_g], direction[:, : assembly.n_g]
    scale = np.outer(_nonzero(np.linalg.norm(rows, axis=1)), _nonzero(np.linalg.norm(columns, axis=0)))
    if np.linalg.svd(rows @ columns / scale, compute_uv=False)[-1] < _NEARLY_DEPENDENT:
        raise InvalidProblemError(
            f"projection: G D is singular at t = {start.t:g}, so that no multiplier can move the solution back to the "
            "constraints; choose another D"
        )


def refuse_singular_mass(words: str, remedy: str, assembly, start: Start):
    """M must be regular where the run begins: corrections along M^{-1} G^T, or accelerations M^{-1} f, are wanted."""
    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    if values is None or not np.isfinite(values["mass"]).all():
        return
    scale = _nonzero(np.sqrt(np.abs(np.diag(values["mass"]))))
    _, sizes, directions = np.linalg.svd(values["mass"] / np.outer(scale, scale))
    if sizes[-1] > _SINGULAR * sizes[0]:
        return
    share = np.abs(directions[-1])
    names = assembly.state_names()
    named = ", ".join(names[i] for i in np.argsort(-share, kind="stable") if share[i] >= _NAMED * share.max())
    raise InvalidProblemError(
        f"the mass matrix is singular at t = {start.t:g}, mainly in {named}, and {words} needs its inverse. "
        f"Remedy: {remedy}"
    )


def _unit_vectors(assembly, start: Start) -> np.ndarray:
    """Unit vectors along the coordinates in which the constraints are best solved."""
    from scipy.linalg import qr

    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    direction = np.zeros((assembly.nx, assembly.n_c))
    if values is not None and assembly.n_c:
        columns = qr(values["jacobian"], mode="r", pivoting=True)[1][: assembly.n_c]
        direction[columns, np.arange(assembly.n_c)] = 1.0
    return direction


def multiplier_sizes(assembly, start: Start, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """How large each multiplier is, and what belongs to a motion of one, whatever the factors of the constraints are.

    lam_i balances forces of the size of M a, along G_i^T; mu_i changes velocities (or accelerations), along D_i. It
    vanishes for the exact solution and acts through h mu, so that it is taken to be ten times as large.
    """
    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    if values is None:
        return np.zeros(0), np.zeros(0)
    largest = [float(np.max(np.abs(z), initial=0.0)) for z in (*start.z.reshape(assembly.m, -1), start.a)]
    gradients = _nonzero(np.linalg.norm(values["jacobian"], axis=1))
    along = _nonzero(np.linalg.norm(_typical(assembly, values, shape.projection), axis=0))
    if shape.top == DYNAMICS:
        forces = np.concatenate([values["mass"] @ start.a, values["force"]])
        top = np.abs(start.lam) + float(np.max(np.abs(forces), initial=0.0)) / gradients
        top_units = float(np.max(np.abs(values["mass"]), initial=0.0)) / gradients
    else:
        top, top_units = _LOOSE * largest[-1] / along, _LOOSE / along
    first = assembly.n_c - shape.n_top
    sizes, units = [top[first:]], [top_units[first:]]
    for level in range(shape.low):
        # at rest the size of a velocity is that of the distance and the acceleration together
        rate = max(largest[level + 1], float(np.sqrt(largest[level] * largest[min(level + 2, assembly.m)])))
        sizes.append(_LOOSE * rate / along[: assembly.n_g])
        units.append(_LOOSE / along[: assembly.n_g])
    return np.concatenate(sizes), np.concatenate(units)


def _typical(assembly, values, projection: Any) -> np.ndarray:
    """D, as far as its size matters."""
    jacobian = values["jacobian"]
    kind = kind_of(projection)
    if kind == THROUGH_MASS:
        try:
            return np.linalg.solve(values["mass"], jacobian.T)
        except np.linalg.LinAlgError:
            return jacobian.T
    if kind != GIVEN or callable(projection):
        return jacobian.T
    return np.eye(assembly.nx, assembly.n_c) if isinstance(projection, str) else np.asarray(projection, dtype=float)


def _nonzero(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0.0, x, 1.0)
