"""Accelerations and multipliers at the start of a mechanism, or the reason why they are undetermined."""

import numpy as np

from daedal.analysis.dependent_constraints import (
    RANK_TOLERANCE,
    dependency_in_words,
    free_of_mass,
    leading,
    least_norm,
    mass_fault,
    undetermined_multipliers,
)
from daedal.analysis.wording import MOST_NAMED, listing
from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.initial.manifold_projection import ROUNDOFF, Manifold, unevaluable
from daedal.initial.refusals import names_of
from daedal.mechanics.point import complaint
from daedal.mechanics.system_workspace import TRIED, SystemWorkspace, evaluated, starting_points
from daedal.problems import MechanicalSystem

_CONTRADICTION_OF_ACCELERATIONS = 1e-5  # residual, relative to its terms, above which constraints are contradictory


def accelerations_at(manifold: Manifold, q, v, r, w, guess, rows, redundant):
    """Compute a, all multipliers, r' and w from the augmented system; raise if they are undetermined."""
    system, t = manifold.system, manifold.t
    assembly = SystemWorkspace(system, t, q, rows=rows)
    z = np.concatenate([q, v])
    state = np.concatenate([z, r])
    points = _points_of_search(assembly, t, state, w, None if guess is None else guess[rows])
    values = assembly.evaluate(t, z, r, w, points[0])
    assert values is not None  # already evaluated at this point
    fault = mass_fault(values["mass"], values["jacobian"], system.label)
    if fault is not None:
        raise InvalidProblemError(f"{fault} (at t = {t:g}, the initial position)")
    direction = free_of_mass(values["mass"], values["jacobian"])
    if direction is not None:
        named = names_of(system, leading(direction))
        raise InconsistentInitialError(
            f"the mass matrix is singular in a direction that the constraints leave free at t = {t:g}: {named}. "
            "Accelerations are not determined. Remedy: give these coordinates a mass, constrain them, or make them "
            "algebraic variables w."
        )
    for point in points:
        results = assembly.accelerate(t, state, np.concatenate([w, point])[None])
        a, lam, rate, found = (values[0] for values in results[:4])
        solved = results[4][0] == 0 and np.all(np.isfinite(a)) and np.all(np.isfinite(lam))
        if solved:
            break
    if system.force_uses_multipliers or system.n_w:
        at = (found, lam) if solved else (w, points[0])
        _test_index(assembly, system, t, z, r, *at)
    if not solved:
        what = "algebraic variables w" if system.n_w else "multipliers"
        remedy = f"give w0 closer to the solution, initial={_tuple_with(system, 'w0')}"
        if system.force_uses_multipliers:
            remedy = f"{_tried(guess)} Remedy: give lam0 closer to the solution, initial={_tuple_with(system, 'lam0')}"
        else:
            remedy = f"Remedy: {remedy}"
        raise InconsistentInitialError(
            f"the {what} could not be found at t = {t:g}: Newton's method does not converge. {remedy}."
        )
    _check_accelerations(manifold, z, a, redundant, assembly, (r, found, lam))
    if system.force_uses_multipliers:  # a different distribution would change the forces
        redundant = []
    return a, least_norm(lam, rows, redundant, system.n_lambda), rate, found


def _points_of_search(assembly: SystemWorkspace, t: float, state, w, guess) -> list[np.ndarray]:
    """Initial guesses for the multipliers: the given values, zero, and others if needed."""
    system = assembly.given
    if not system.force_uses_multipliers:
        if assembly.evaluate(t, state[: 2 * system.n_q], state[2 * system.n_q :], w) is None:
            raise unevaluable(assembly, t, state, w)
        return [np.zeros(assembly.n_c)]
    points = [] if guess is None or evaluated(assembly, t, state, w, guess) is None else [guess]
    points += starting_points(assembly, t, state, w)
    if not points:
        found = complaint(assembly, t, state, w, guess) or "a function of the system cannot be evaluated"
        raise InconsistentInitialError(
            f"{found} at the initial values, t = {t:g}, for any of the multipliers that were tried. {_tried(guess)} "
            "Remedy: if lam is the reason, give a guess at which it can be evaluated, "
            f"initial={_tuple_with(system, 'lam0')}."
        )
    return points


def _tried(guess) -> str:
    return f"Tried {'' if guess is None else 'the given lam0, '}{TRIED}."


def _tuple_with(system: MechanicalSystem, last: str) -> str:
    """``(q0, v0, None, None, lam0)``, with r0 and w0 if the system has them."""
    parts = ["q0", "v0", "r0" if system.n_r else "None", "w0" if system.n_w else "None", "lam0"]
    return f"({', '.join(parts[: parts.index(last) + 1])})"


def _check_accelerations(manifold: Manifold, z, a, redundant, assembly: SystemWorkspace, rest):
    """Check that all constraints, including redundant ones, require the same accelerations."""
    from daedal.mechanics.constrained import BIAS, JACOBIAN

    if not redundant:
        return
    system = manifold.system
    values = manifold.assembly.evaluate(manifold.t, z, what=JACOBIAN | BIAS)
    used = assembly.evaluate(manifold.t, z, *rest)
    if values is None or used is None:
        return
    K, bias = values["jacobian"], values["bias"]
    q, v = np.split(z, 2)
    rate = np.max(np.abs(v)) / np.max(manifold.sizes(q))
    terms = (
        np.abs(K) @ np.abs(a) + np.abs(bias) + 1e-2 * manifold.typical * (np.max(np.abs(a)) + rate * np.max(np.abs(v)))
    )
    # Further terms: accelerations due to forces, since the terms above vanish at rest, and round-off of differences.
    step = float(manifold.assembly.record["time_increment"])
    terms += 1e-2 * manifold.typical * np.max(np.abs(used["force"])) / (np.max(np.abs(used["mass"])) or 1.0)
    terms += ROUNDOFF / _CONTRADICTION_OF_ACCELERATIONS * manifold.typical * np.max(manifold.sizes(q)) / step**2
    residual = np.abs(K @ a + bias)
    wrong = [found for found in redundant if residual[found[0]] > _CONTRADICTION_OF_ACCELERATIONS * terms[found[0]]]
    if wrong:
        words = "; ".join(dependency_in_words(found, system.constraint_label) for found in wrong[:MOST_NAMED])
        raise InconsistentInitialError(
            (
                f"constraints contradict each other at the acceleration level at t = {manifold.t:g}: {words}, but "
                "they require different accelerations. Remedy: check how these constraints depend on time."
            ),
            [row for row, _ in wrong],
        )


def _test_index(assembly: SystemWorkspace, system: MechanicalSystem, t, z, r, w, lam):
    """Check lemma 4.1.1 of Wunderlich's thesis by finite differences; raise an error if it is violated."""
    values = assembly.evaluate(t, z, r, w, lam)
    if values is None:
        return
    n = system.n_q
    by_w = _differences(lambda x: _force_and_algebraic(assembly, t, z, r, x, lam), w, 1e-2)
    if by_w is None:
        return
    B = values["jacobian"].T.copy()
    if system.n_w:
        d_w = by_w[n:]
        scaled = d_w / np.maximum(np.linalg.norm(d_w, axis=1, keepdims=True), 1e-300)
        if np.linalg.svd(scaled, compute_uv=False)[-1] <= RANK_TOLERANCE:
            raise InconsistentInitialError(
                f"the algebraic equations do not determine w at t = {t:g}: their derivative with respect to w is "
                "singular. Remedy: use a different w0, or check `algebraic`."
            )
    if system.force_uses_multipliers and lam.size:
        norms = np.linalg.norm(values["jacobian"], axis=1)
        usual = float(np.linalg.norm(values["force"]) / (np.max(norms) or 1.0)) or 1.0
        by_lam = _differences(lambda x: _force_and_algebraic(assembly, t, z, r, w, x), lam, usual)
        if by_lam is None:
            return
        B -= by_lam[:n]
        if system.n_w:
            B += by_w[:n] @ np.linalg.solve(by_w[n:], by_lam[n:])
    open_combination = undetermined_multipliers(values["mass"], values["jacobian"], B)
    if open_combination is not None:
        which = [int(assembly.rows[i]) for i in leading(open_combination)]
        names = listing((system.constraint_label(i) for i in which[:MOST_NAMED]), len(which))
        raise InconsistentInitialError(
            (
                f"the multipliers of {names} are not determined at t = {t:g}: the forces cancel the reaction, G M^-1 "
                "(G^T - f_lam + f_w d_w^-1 d_lam) is singular, and the index is above 3. Remedy: check how forces "
                "depend on lam (a friction coefficient may be too large)."
            ),
            which,
        )


def _force_and_algebraic(assembly, t, z, r, w, lam):
    values = assembly.evaluate(t, z, r, w, lam)
    return None if values is None else np.concatenate([values["force"], values["algebraic"]])


def _differences(function, x: np.ndarray, usual: float) -> np.ndarray | None:
    """Central differences, with increments relative to |x| or `usual`; None if the function cannot be evaluated."""
    columns = []
    for j in range(x.size):
        h = 6e-6 * max(float(np.max(np.abs(x))), usual)
        unit = np.zeros(x.size)
        unit[j] = h
        above, below = function(x + unit), function(x - unit)
        if above is None or below is None:
            return None
        columns.append((above - below) / (2.0 * h))
    if not columns:
        at = function(x)
        return None if at is None else np.zeros((at.size, 0))
    return np.array(columns).T
