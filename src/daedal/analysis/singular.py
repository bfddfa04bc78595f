"""Singular configurations: where constraints that are independent elsewhere become dependent."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.analysis.ending_sentences import stopped

_SAMPLES = 40
_NEAR, _SINGULAR = 0.2, 1e-3  # of the usual smallest singular value, and absolutely
_INSIDE, _CUT, _AHEAD = 9, 1e-3, 0.5  # points of a step; part of a cut corner; cosine between velocities
_SHOWN = 3  # times in a note
_DEPENDENT = 0.05  # part of the largest coefficient from which a constraint is named


@dataclass(frozen=True)
class SingularPoint:
    """Where the constraints lose rank: the time, the state (z, r), and the combination of rows that vanishes."""

    t: float
    state: np.ndarray
    smallest: float
    combination: np.ndarray


def scaled_rows(assembly, t: float, state: np.ndarray, norms: np.ndarray) -> np.ndarray | None:
    """The rows of K divided by their usual norms, so that a row that vanishes here is seen."""
    gradients = assembly.gradients(t, state)
    return None if gradients is None else gradients / norms[:, None]


def usual_norms(assembly, points) -> np.ndarray:
    """The largest norms that the rows of K have at some points (t, state)."""
    ones = np.ones(assembly.n_c)
    norms = [
        np.linalg.norm(rows, axis=1)
        for t, state in points
        if (rows := scaled_rows(assembly, t, state, ones)) is not None
    ]
    largest = np.max(norms, axis=0) if norms else ones
    return np.where(largest > 0.0, largest, 1.0)


def smallest_singular_value(assembly, t: float, state: np.ndarray, norms: np.ndarray) -> tuple[float, np.ndarray]:
    """The smallest singular value of the scaled rows, and the combination of rows that belongs to it."""
    rows = scaled_rows(assembly, t, state, norms)
    if rows is None:
        return np.inf, np.zeros(assembly.n_c)
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    return float(values[-1]), left[:, -1]


def find_passage(assembly, path: Any, t0: float, t1: float) -> SingularPoint | None:
    """The singular configuration that ``path(t) -> (z, r)`` passes between t0 and t1, or None.

    Along a path that is sampled finely the basis of the row space turns little from one sample to the next, so that a
    change of sign of det(K_i Q_{i-1}^T) means that K has lost rank in between.
    """
    times = np.linspace(t0, t1, _SAMPLES + 1)
    norms = usual_norms(assembly, [(float(t), path(float(t))) for t in times[:: _SAMPLES // 4]])
    basis = None
    smallest = np.array([smallest_singular_value(assembly, float(t), path(float(t)), norms)[0] for t in times])
    nearest = int(np.argmin(smallest))
    if smallest[nearest] < _NEAR * np.median(smallest):
        around = times[[max(nearest - 1, 0), min(nearest + 1, _SAMPLES)]]
        point = _refine(assembly, path, float(around[0]), float(around[1]), norms)
        if point.smallest < _SINGULAR:
            return point
    for t in times:
        rows = scaled_rows(assembly, float(t), path(float(t)), norms)
        if rows is None:
            return None
        if basis is not None and np.linalg.det(rows @ basis.T) <= 0.0:
            return _refine(assembly, path, float(t - (t1 - t0) / _SAMPLES), float(t), norms)
        q, r = np.linalg.qr(rows.T)
        basis = (q * np.where(np.diag(r) < 0.0, -1.0, 1.0)).T  # so that det(K Q^T) > 0
    return None


def is_passed_smoothly(assembly, path: Any, t0: float, t1: float) -> bool:
    r"""Whether the motion has gone on through a singular configuration on the branch on which it came.

    Branches cross there; forces are finite, so the velocities go on as they were. If they do, a polynomial through both
    ends of the step satisfies the constraints. From one branch to another it would cut the corner: near a crossing the
    constraints are products of the distances from the branches, of the size :math:`|q_1 - q_0|^2`.
    """
    n, ends = assembly.nx, (path(t0), path(t1))
    before, after = (state[n : 2 * n] for state in ends)
    speed = float(np.linalg.norm(before) * np.linalg.norm(after))
    if assembly.m != 2 or not before @ after > _AHEAD * speed:
        return False
    inside = [(float(t), path(float(t))) for t in np.linspace(t0, t1, _INSIDE + 2)[1:-1]]
    norms = usual_norms(assembly, [(t0, ends[0]), (t1, ends[1])])
    values = [assembly.evaluate(t, state[: 2 * n], state[2 * n :]) for t, state in inside]
    if any(value is None for value in values):
        return False
    away = max(float(np.max(np.abs(value["level"][0]) / norms)) for value in values if value is not None)
    return away <= _CUT * float(np.linalg.norm(ends[1][:n] - ends[0][:n])) ** 2


def in_passing(assembly, points: list[SingularPoint]) -> str:
    """The note for a run that has passed singular configurations."""
    shown = [f"{point.t:.8g}" for point in points[:_SHOWN]]
    times = ", ".join(shown) + (f" and {len(points) - _SHOWN} times later" if len(points) > _SHOWN else "")
    return (
        f"At t = {times} the mechanism passed a singular configuration, in which {_dependence(assembly, points[0])}; "
        "it went on with the velocities that it had, on the branch on which it came. Reaction forces are not defined "
        "there."
    )


def _dependence(assembly, point: SingularPoint) -> str:
    """Which rows depend on each other."""
    weights = np.abs(point.combination)
    named = [assembly.row_names()[i] for i in np.flatnonzero(weights >= _DEPENDENT * weights.max())]
    if len(named) == 1:
        return f"the gradient of {named[0]} vanishes"
    return f"the gradients of {', '.join(named[:-1])} and {named[-1]} become linearly dependent"


def _refine(assembly, path, t0: float, t1: float, norms: np.ndarray) -> SingularPoint:
    """The minimum of the smallest singular value, by golden section."""
    from scipy.optimize import minimize_scalar

    result = minimize_scalar(
        lambda t: smallest_singular_value(assembly, t, path(t), norms)[0],
        bounds=(min(t0, t1), max(t0, t1)),
        method="bounded",
        options={"xatol": 1e-9 * abs(t1 - t0)},
    )
    t = float(result.x)
    return SingularPoint(t, path(t), *smallest_singular_value(assembly, t, path(t), norms))


def describe(assembly, point: SingularPoint) -> str:
    """The message for a run that ends in a singular configuration."""
    reason = (
        f"the mechanism reaches a singular configuration, in which {_dependence(assembly, point)} "
        f"(smallest singular value {point.smallest:.1e} of rows with norms about 1). Beyond it the constraints do not "
        "determine how the motion goes on, and reaction forces are not defined. Remedy: stop before it (a terminal "
        "event), change the geometry or the tolerances, so that a step leads over it, or describe the joint by other "
        "constraints. Everything computed until then is in the solution."
    )
    return stopped(point.t, reason, digits=8)
