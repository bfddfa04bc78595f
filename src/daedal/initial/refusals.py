"""Errors for unusable initial values of mechanical systems: checks and messages."""

import numpy as np

from daedal.analysis.dependent_constraints import dependency_in_words, independent_rows
from daedal.analysis.wording import MOST_NAMED, listing, number
from daedal.errors import InconsistentInitialError
from daedal.initial.manifold_projection import ROUNDOFF, Manifold
from daedal.problems import MechanicalSystem

_CONTRADICTION = 1e-7
_ROUNDOFF = 4.0 * float(np.finfo(float).eps)
_REMEDY = (
    "Remedy: start from daedal.consistent_initial(system, t0, (q0, v0), fixed=[...]).initial, which keeps the named "
    "values and moves the others, or pass correct_initial=True."
)


def names_of(system: MechanicalSystem, which) -> str:
    """Names of the entries of (q, v) selected by a mask, as a list in words."""
    which = list(which)
    return listing((system.label(int(i)) for i in which[:MOST_NAMED]), len(which))


def refuse_position(manifold: Manifold, q0, q, tolerance):
    """Raise the error for a failed search for q with g(t, q) = 0; the message names the conflicting constraints."""
    system, g = manifold.system, manifold.position(q)
    K = manifold.jacobian(q)
    if g is None or K is None:
        raise InconsistentInitialError(
            f"the constraints cannot be evaluated near the initial values, t = {manifold.t:g}"
        )
    free = ~manifold.held[: manifold.n]
    given = manifold.position(q0)
    scale = np.maximum(manifold.position_scale(q), np.abs(K[: manifold.n_g]) @ np.abs(q - q0))
    left = [int(i) for i in np.argsort(-np.abs(g) / np.where(scale > 0.0, scale, 1.0)) if abs(g[i]) > 1e-9 * scale[i]]
    residuals = (
        listing((f"{system.constraint_label(i)} ({number(g[i])})" for i in left[:MOST_NAMED]), len(left))
        if left
        else "none"
    )
    held = np.flatnonzero(manifold.held[: manifold.n])
    # at the best point G^T g = 0 up to scaling: the rows of G are dependent, though less clearly than at a solution
    _, related = independent_rows(K[: manifold.n_g, free], manifold.n_g, max(tolerance, 1e-4), None)
    related = [found for found in related if found[0] in left or any(k in left for k in found[1])]
    where = f"at t = {manifold.t:g}"
    if len(held):
        reason = f"with fixed {names_of(system, held)}, the position constraints cannot be satisfied {where}"
    elif related and _same_rank_nearby(manifold, q, related):
        reason = f"position constraints are contradictory {where}: their gradients are dependent, " + "; ".join(
            dependency_in_words(found, system.constraint_label) for found in related[:MOST_NAMED]
        )
    else:
        reason = f"no position that satisfies the constraints was found near the given one {where}"
    raise InconsistentInitialError(
        (
            f"{reason}. Residuals at the best point, which should be 0: {residuals}. Values there: "
            f"{_values(system, q, range(system.n_q))}. "
        )
        + (
            "Remedy: fix other coordinates, or none."
            if len(held)
            else "Remedy: check these constraints, or start closer."
        ),
        left,
        given,
    )


def _same_rank_nearby(manifold: Manifold, q, related) -> bool:
    """Whether dependent gradients remain dependent when q changes."""
    n_g = manifold.n_g
    step = 1e-2 * np.maximum(np.abs(q), np.max(np.abs(q), initial=1e-3))
    K = manifold.jacobian(q + step * np.cos(0.4 + 1.9 * np.arange(q.size)))
    return K is not None and len(independent_rows(K[:n_g], n_g)[1]) == len(related)


def check_permanent(manifold: Manifold, q, rows, redundant, tolerance):
    """Check that constraints remain dependent and satisfied in the neighbourhood, so that they can be dropped."""
    system, n_g = manifold.system, manifold.n_g
    for beside in manifold.neighbours(q, rows[rows < n_g]):
        K, g = manifold.jacobian(beside), manifold.position(beside)
        if K is None or g is None:
            continue
        scale = manifold.position_scale(beside)
        dependent = np.array([i for i, _ in redundant if i < n_g], dtype=int)
        followed = np.all(np.abs(g[dependent]) <= 1e-9 * scale[dependent])
        if followed and independent_rows(K, n_g, tolerance, manifold.typical)[0].size <= rows.size:
            continue
        words = "; ".join(dependency_in_words(found, system.constraint_label) for found in redundant[:MOST_NAMED])
        raise InconsistentInitialError(
            (
                f"the initial position is a singular configuration at t = {manifold.t:g}: the gradients of the "
                f"constraints are dependent there, {words}, but not nearby. The motion may branch, and multipliers "
                "are not determined. Remedy: start near this position, not at it."
            ),
            [row for row, _ in redundant],
            manifold.position(q),
        )


def check_velocity(manifold: Manifold, q, v, given, rows, redundant):
    """Check that, after projection of the given velocities, every row of K v + k vanishes to round-off."""
    system = manifold.system
    residual, _ = manifold.velocity(q, v)
    limits = manifold.velocity_limits(q, v, _CONTRADICTION) + manifold.velocity_limits(q, given, ROUNDOFF)
    wrong = [int(i) for i in np.flatnonzero(~(np.abs(residual) <= limits))]
    if not wrong:
        return
    kept = [i for i in wrong if i in rows]
    names = listing((f"{system.constraint_label(i)} ({number(residual[i])})" for i in wrong[:MOST_NAMED]), len(wrong))
    held = np.flatnonzero(manifold.held[manifold.n :]) + manifold.n
    if kept and len(held):
        reason = f"with fixed {names_of(system, held)}, no velocities satisfy the constraints at t = {manifold.t:g}"
        remedy = "fix other velocities, or none"
    else:
        words = "; ".join(
            dependency_in_words(found, system.constraint_label) for found in redundant if found[0] in wrong
        )
        reason = f"constraints are contradictory at the velocity level at t = {manifold.t:g}"
        reason += f": {words}" if words else ""
        remedy = "check how these constraints depend on time"
    raise InconsistentInitialError(f"{reason}. Residuals that should be 0: {names}. Remedy: {remedy}.", wrong, residual)


def _values(system: MechanicalSystem, x: np.ndarray, which, offset: int = 0, given=None) -> str:
    which = list(which)
    x = np.where(np.abs(x) > _ROUNDOFF * np.max(np.abs(x), initial=0.0), x, 0.0)
    return listing((_value(system.label(offset + j), x, given, j) for j in which[: 2 * MOST_NAMED]), len(which))


def _value(name: str, x: np.ndarray, given, j: int) -> str:
    """``x = 0.8``, with enough digits to show a difference, ``x = 0.8 (given 0.7)``."""
    if given is None:
        return f"{name} = {x[j]:.6g}"
    digits = next((k for k in range(6, 17) if f"{x[j]:.{k}g}" != f"{given[j]:.{k}g}"), 17)
    return f"{name} = {x[j]:.{digits}g} (given {given[j]:.{digits}g})"


def refuse_values(system: MechanicalSystem, t, q, v, g, violated, too_fast, start, reason):
    """Raise InconsistentInitialError for values that violate the constraints.

    `violated` and `too_fast` map rows to residuals of positions and velocities; `start` is consistent.
    """
    lines = [f"The initial values violate the constraints at t = {number(t)}."]
    for level, found in (("Position", violated), ("Velocity", too_fast)):
        if found:
            worst = sorted(found, key=lambda i: -abs(found[i]))
            named = listing(
                (f"{system.constraint_label(i)} ({number(found[i])})" for i in worst[: 2 * MOST_NAMED]), len(worst)
            )
            lines.append(f"{level} constraints with the residual that should be 0: {named}.")
    if start is None:
        lines.append(reason[0].upper() + reason[1:])
    else:
        changes = []
        for x, given, offset in ((start.q, q, 0), (start.v, v, system.n_q)):
            change = np.abs(x - given)
            felt = change > _ROUNDOFF * np.maximum(np.abs(given), np.max(np.abs(given), initial=0.0))
            moved = [int(j) for j in np.argsort(-change, kind="stable") if felt[j]]
            if moved and (offset == 0 or too_fast):
                changes.append(_values(system, x, moved, offset, given))
        lines += [f"Nearest consistent values: {', '.join(changes)}.", _REMEDY]
    residual = g if not too_fast else np.array([too_fast.get(i, 0.0) for i in range(system.n_lambda)])
    raise InconsistentInitialError("\n".join(lines), [*violated, *(i for i in too_fast if i not in violated)], residual)
