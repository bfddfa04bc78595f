r"""Dependent constraints: which rows depend on which, permanently or only in singular configurations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.analysis.wording import MOST_NAMED, listing, stopped

RANK_TOLERANCE = 1e-8
"""A row of norm 1 counts as dependent if its component orthogonal to the other rows is smaller than this."""

UNSYMMETRIC = 1e-6
"""Relative asymmetry of M above which it counts as an error, not as round-off."""

# the pivot is the first row with at least this fraction of the largest remainder, so that earlier rows are preferred
_PIVOT = 0.1
_VANISHING = 1e-7  # a row smaller than its neighbourhood by this factor counts as zero
_SINGULAR_MASS = 1e-13
_CLEARLY_DEFINITE = 1e-11
_NEGATIVE_MASS = 1e-10  # negative eigenvalues of this size may be round-off of a computed M

Dependency = tuple[int, dict[int, float]]

_FLOOR = 1e-3  # a zero coordinate counts as this fraction of the largest
_ROUNDOFF = float(np.finfo(float).eps)


def sizes(x: np.ndarray, empty: float = 1.0) -> np.ndarray:
    """Sizes of the entries of a vector; `empty` if all are zero."""
    largest = float(np.max(np.abs(x), initial=0.0))
    return np.maximum(np.abs(x), _FLOOR * largest) if largest > 0.0 else np.full(x.shape, empty)


def position_terms(
    G: np.ndarray, q: np.ndarray, partial_t: np.ndarray, t: float, lengths: np.ndarray | None = None
) -> np.ndarray:
    """The size of the terms whose sum is g(t, q), as a scale for its residuals.

    `lengths` are the sizes of the coordinates, by default those of q.
    """
    return np.abs(G) @ (sizes(q) if lengths is None else lengths) + np.abs(partial_t * t)


def velocity_terms(K: np.ndarray, v: np.ndarray, at_rest: np.ndarray) -> np.ndarray:
    """The size of the terms whose sum is K v + k; `at_rest` is k."""
    return np.abs(K) @ sizes(v, 0.0) + np.abs(at_rest)


def velocity_noise(terms: np.ndarray, time_increment: float, n_lambda: int) -> np.ndarray:
    """Rounding errors of K v + k if g_t is a finite difference; `terms` are those of the position constraints."""
    noise = np.zeros(n_lambda)
    noise[: terms.size] = 4.0 * _ROUNDOFF * terms / time_increment
    return noise


def independent_rows(
    K: np.ndarray, n_g: int, tolerance: float = RANK_TOLERANCE, typical: np.ndarray | None = None
) -> tuple[np.ndarray, list[Dependency]]:
    """A maximal set of independent rows of K, sorted, and combinations of these rows that equal the others.

    A QR factorisation with pivoting of the rows, scaled to norm 1; a row with a remainder below `tolerance` is
    dependent. Earlier rows are preferred; the first `n_g` rows, position constraints, are never expressed by velocity
    constraints, which do not determine positions. `typical` are norms of the rows in the neighbourhood, to identify
    rows that vanish here. Dependencies are pairs (row, {row: coefficient}).
    """
    norms = np.linalg.norm(K, axis=1)
    if typical is not None:
        norms = np.where(norms > _VANISHING * typical, norms, 0.0)
    scaled = np.where(norms[:, None] > 0.0, K / np.where(norms > 0.0, norms, 1.0)[:, None], 0.0)
    if np.all(norms > 0.0) and _smallest_pivot(scaled) > tolerance:
        return np.arange(K.shape[0]), []
    rest, chosen = scaled.copy(), []
    for stage in (range(n_g), range(n_g, K.shape[0])):
        left = list(stage)
        while left:
            sizes = np.linalg.norm(rest[left], axis=1)
            if sizes.max() <= tolerance:
                break
            pivot = left[int(np.argmax(sizes >= _PIVOT * sizes.max()))]
            direction = rest[pivot] / np.linalg.norm(rest[pivot])
            for _ in range(2):  # twice, so that the rows are orthogonal up to round-off
                rest -= np.outer(rest @ direction, direction)
            chosen.append(pivot)
            left.remove(pivot)
    rows = np.array(sorted(chosen), dtype=np.int64)
    dependent = [i for i in range(K.shape[0]) if i not in chosen]
    return rows, [(i, _combination(scaled, norms, rows, i, n_g)) for i in dependent]


def _smallest_pivot(rows: np.ndarray) -> float:
    """The remainder of the last row in a QR factorisation with column pivoting; 1 without rows."""
    from scipy.linalg import qr

    count, n = rows.shape
    if count == 0 or count > n:
        return float(count == 0)
    R = qr(rows.T, mode="r", pivoting=True)[0]
    return float(abs(R[count - 1, count - 1]))


def _combination(scaled, norms, rows, i, n_g) -> dict[int, float]:
    if norms[i] == 0.0:
        return {}
    used = rows[rows < n_g] if i < n_g else rows
    solution = np.linalg.lstsq(scaled[used].T, scaled[i], rcond=None)[0]
    return {
        int(k): float(_rounded(value * norms[i] / norms[k])) for k, value in zip(used, solution) if abs(value) > 1e-7
    }


def _rounded(value: float) -> float:
    """A coefficient rounded to an integer if it is one up to rounding errors."""
    near = round(value)
    return float(near) if near and abs(value - near) <= 1e-9 * abs(value) else value


def dependency_in_words(dependency: Dependency, label: Callable[[int], str]) -> str:
    """``'c3' = 2 'c1' - 'c2'``."""
    row, terms = dependency
    text = ""
    for k, value in terms.items():
        factor = "" if abs(value) == 1.0 else f"{abs(value):.6g} "
        sign = ("- " if value < 0.0 else "+ ") if text else ("-" if value < 0.0 else "")
        text += f"{' ' if text else ''}{sign}{factor}{label(k)}"
    return f"{label(row)} = {text or '0'}"


def least_norm(lam: np.ndarray, rows, redundant: Sequence[Dependency], n_lambda: int) -> np.ndarray:
    r"""All multipliers from those of the independent `rows`: the minimum-norm :math:`\lambda` with the same :math:`K^T
    \lambda`.

    `lam` may be a matrix with one column for each time.
    """
    full = np.zeros((n_lambda, *np.shape(lam)[1:]))
    full[np.asarray(rows, dtype=int)] = lam
    if not redundant:
        return full
    kernel = np.zeros((n_lambda, len(redundant)))  # kernel of K^T
    for column, (row, terms) in enumerate(redundant):
        kernel[row, column] = -1.0
        for k, value in terms.items():
            kernel[k, column] = value
    basis = np.linalg.qr(kernel)[0]
    return full - basis @ (basis.T @ full)


def mass_on_kernel(M: np.ndarray, K: np.ndarray) -> tuple[float, np.ndarray]:
    """The smallest eigenvalue of M on the kernel of K, with coordinates scaled by their masses, and its direction.

    The value lies between -1 and 1 for a mass matrix in any units; the direction refers to the original coordinates.
    """
    basis, scale = _kernel_in_scaled_coordinates(M, K)
    if basis.shape[1] == 0:
        return 1.0, np.zeros(M.shape[0])
    reduced = basis.T @ (M * np.outer(scale, scale)) @ basis
    values, vectors = np.linalg.eigh(0.5 * (reduced + reduced.T))
    return float(values[0]), scale * (basis @ vectors[:, 0])


def mass_fault(M: np.ndarray, K: np.ndarray, label: Callable[[int], str]) -> str | None:
    """Error message if M is not symmetric, or is negative in a free direction; None for a kinetic-energy matrix."""
    difference = np.abs(M - M.T)
    if np.max(difference, initial=0.0) > UNSYMMETRIC * np.max(np.abs(M), initial=0.0):
        i, j = sorted(int(k) for k in np.unravel_index(int(np.argmax(difference)), M.shape))
        return unsymmetric_mass(M, i, j, label)
    if _is_definite(M):
        return None
    eigenvalue, direction = mass_on_kernel(M, K)
    if eigenvalue >= -_NEGATIVE_MASS:
        return None
    which = leading(direction)
    named = listing((label(j) for j in which[:MOST_NAMED]), len(which))
    return (
        f"mass is negative in a direction that the constraints leave free, mainly {named}. Remedy: check the "
        "signs of mass; a kinetic energy v^T M v / 2 is never negative"
    )


def unsymmetric_mass(M, i: int, j: int, label: Callable[[int], str]) -> str:
    """Message for the unequal entries (i, j) and (j, i)."""
    return (
        f"mass is not symmetric: the entry of {label(i)} and {label(j)} is M[{i}, {j}] = {M[i, j]:.6g}, but "
        f"M[{j}, {i}] = {M[j, i]:.6g}. Remedy: correct one of them; a kinetic energy v^T M v / 2 has a symmetric M"
    )


def free_of_mass(M: np.ndarray, K: np.ndarray) -> np.ndarray | None:
    """A massless direction that the constraints leave free; None if there is none."""
    if _is_definite(M):
        return None
    basis, scale = _kernel_in_scaled_coordinates(M, K)
    if basis.shape[1] == 0:
        return None
    _, values, vectors = np.linalg.svd(basis.T @ (M * np.outer(scale, scale)) @ basis)
    return scale * (basis @ vectors[-1]) if values[-1] <= _SINGULAR_MASS else None


def _is_definite(M: np.ndarray) -> bool:
    """Whether M is clearly positive definite, regardless of the constraints."""
    diagonal = np.diag(M)
    if not np.all(diagonal > 0.0):
        return False
    scale = 1.0 / np.sqrt(diagonal)
    try:
        factor = np.linalg.cholesky(M * np.outer(scale, scale))
    except np.linalg.LinAlgError:
        return False
    if np.min(np.diag(factor)) > 1e-3:
        return True
    from scipy.linalg.lapack import dpocon  # long chains have small pivots but are far from singular

    share, failed = dpocon(factor.T, 1.0)  # 1 / norm of the inverse, which bounds the smallest eigenvalue
    return not failed and bool(share > _CLEARLY_DEFINITE)


def _kernel_in_scaled_coordinates(M, K):
    """An orthonormal basis of ker K in coordinates of mass 1, and the scale of the coordinates."""
    masses = np.sqrt(np.abs(np.diag(M)))
    heavy = masses[masses > 1e-12 * np.max(masses, initial=0.0)]
    usual = 1.0 / float(np.median(heavy)) if heavy.size else 1.0
    scale = np.where(masses > 1e-12 * np.max(masses, initial=0.0), 1.0 / np.where(masses > 0.0, masses, 1.0), usual)
    scaled = K * scale
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    scaled = scaled[norms[:, 0] > 0.0] / norms[norms[:, 0] > 0.0]
    if scaled.shape[0] == 0:
        return np.eye(M.shape[0]), scale
    _, values, vectors = np.linalg.svd(scaled)
    rank = int(np.sum(values > RANK_TOLERANCE * values[0]))
    return vectors[rank:].T, scale


def leading(direction: np.ndarray) -> list[int]:
    """The coordinates with the largest components in a direction."""
    sizes = np.abs(direction)
    return [int(j) for j in np.argsort(-sizes, kind="stable") if sizes[j] > 0.1 * sizes.max(initial=0.0)]


def undetermined_multipliers(M: np.ndarray, K: np.ndarray, B: np.ndarray) -> np.ndarray | None:
    r"""The combination of multipliers that the augmented system leaves undetermined; None if all are determined.

    This tests the index: with :math:`B = G^T - f_\lambda + f_w d_w^{-1} d_\lambda` it is 3 if :math:`G M^{-1} B` is
    nonsingular (Wunderlich, lemma 4.1.1); the augmented matrix
    :math:`\begin{pmatrix} M & B \\ G & 0 \end{pmatrix}` gives the same result without the inverse of M.
    """
    n, k = M.shape[0], K.shape[0]
    _, scale = _kernel_in_scaled_coordinates(M, K)
    norms = np.linalg.norm(K * scale, axis=1)
    norms = np.where(norms > 0.0, norms, 1.0)
    augmented = np.block(
        [[M * np.outer(scale, scale), (B * scale[:, None]) / norms], [(K * scale) / norms[:, None], np.zeros((k, k))]]
    )
    _, values, vectors = np.linalg.svd(augmented)
    return None if values[-1] > RANK_TOLERANCE * values[0] else vectors[-1, n:] / norms


# --- Singular configurations: independent constraints become dependent ------------------------------------------------


_SAMPLES = 40
# below _NEAR times its median, the minimum of the smallest singular value is located; below _SINGULAR it counts as zero
_NEAR, _SINGULAR = 0.2, 1e-3
# for a passage on the same branch: number of points checked in a step, largest constraint residual relative to the
# squared length of the step, and smallest cosine between the velocities at its ends
_INSIDE, _CUT, _AHEAD = 9, 1e-3, 0.5
_SHOWN = 3  # number of times in a note
_DEPENDENT = 0.05  # constraints with at least this fraction of the largest coefficient are named


@dataclass(frozen=True)
class SingularPoint:
    """A loss of rank: time, state (z, r), smallest singular value of the constraints, vanishing combination of rows."""

    t: float
    state: np.ndarray
    smallest: float
    combination: np.ndarray


def scaled_rows(assembly, t: float, state: np.ndarray, norms: np.ndarray) -> np.ndarray | None:
    """The rows of K divided by their usual norms, so that vanishing rows are detected; None if K is unavailable."""
    gradients = assembly.gradients(t, state)
    return None if gradients is None else gradients / norms[:, None]


def usual_norms(assembly, points) -> np.ndarray:
    """For each row of K, the largest norm at some points (t, state); 1 for rows that vanish at all of them."""
    ones = np.ones(assembly.n_c)
    norms = [
        np.linalg.norm(rows, axis=1)
        for t, state in points
        if (rows := scaled_rows(assembly, t, state, ones)) is not None
    ]
    largest = np.max(norms, axis=0) if norms else ones
    return np.where(largest > 0.0, largest, 1.0)


def smallest_singular_value(assembly, t: float, state: np.ndarray, norms: np.ndarray) -> tuple[float, np.ndarray]:
    """The smallest singular value of the scaled rows, and its left singular vector, a combination of the rows.

    Infinite, with a zero vector, if K cannot be evaluated.
    """
    rows = scaled_rows(assembly, t, state, norms)
    if rows is None:
        return np.inf, np.zeros(assembly.n_c)
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    return float(values[-1]), left[:, -1]


def find_passage(assembly, path: Any, t0: float, t1: float) -> SingularPoint | None:
    """The singular configuration passed by ``path(t) -> (z, r)`` between t0 and t1, or None.

    On a finely sampled path the basis of the row space rotates little between samples, so that a sign change of det(K_i
    Q_{i-1}^T) means that K has lost rank in between.
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
        basis = (q * np.where(np.diag(r) < 0.0, -1.0, 1.0)).T  # signs chosen so that det(K Q^T) > 0
    return None


def is_passed_smoothly(assembly, path: Any, t0: float, t1: float) -> bool:
    r"""Whether the motion has passed a singular configuration and stayed on its branch.

    Branches cross at this point; forces are finite, so velocities are continuous. If the motion stays on its branch, a
    polynomial through both ends of the step satisfies the constraints. Otherwise the polynomial connects two branches,
    where the constraints are products of the distances from the branches, of size :math:`|q_1 - q_0|^2`.
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
        f"At t = {times} the mechanism passed a singular configuration, in which "
        f"{_dependence(assembly, points[0])}; it continued with the same velocities on the branch on which it "
        "approached. Reaction forces are not defined there."
    )


def _dependence(assembly, point: SingularPoint) -> str:
    weights = np.abs(point.combination)
    named = [assembly.row_names()[i] for i in np.flatnonzero(weights >= _DEPENDENT * weights.max())]
    if len(named) == 1:
        return f"the gradient of {named[0]} vanishes"
    return f"the gradients of {', '.join(named[:-1])} and {named[-1]} become linearly dependent"


def _refine(assembly, path, t0: float, t1: float, norms: np.ndarray) -> SingularPoint:
    """The point between t0 and t1 at which the smallest singular value is minimal, by Brent's method."""
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
        f"the mechanism reaches a singular configuration, in which {_dependence(assembly, point)} (smallest "
        f"singular value {point.smallest:.1e} of rows with norms about 1). Beyond it the constraints do not "
        "determine the motion, and reaction forces are not defined. Remedy: stop before it (a terminal event), "
        "change the geometry, change the tolerances so that a step passes over it, or describe the joint by other "
        "constraints. The solution contains all results up to this time."
    )
    return stopped(point.t, reason, digits=8)
