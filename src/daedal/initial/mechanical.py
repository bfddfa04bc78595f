"""Consistent initial values of mechanical systems, and what to say when there are none."""

from dataclasses import dataclass

import numpy as np

from daedal.analysis.constraints import (
    RANK_TOLERANCE,
    Dependency,
    dependency_in_words,
    free_of_mass,
    independent_rows,
    leading,
    least_norm,
    sizes,
    undetermined_multipliers,
)
from daedal.analysis.wording import MOST_NAMED, listing
from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.initial.projection import ROUNDOFF, Manifold, unevaluable
from daedal.initial.refusals import check_permanent, check_velocity, names_of, refuse_position, refuse_values
from daedal.mechanics.assembly import Assembly
from daedal.mechanics.contact import contact_coordinates
from daedal.mechanics.probes import check_point
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_finite, check_mask, check_positive, check_vector

SMALL = 1e-6
"""Inconsistencies up to this part of the terms of a constraint are corrected without being asked to."""

_CONTRADICTION_OF_ACCELERATIONS = 1e-5  # the bias may come from second differences


@dataclass(frozen=True, eq=False)
class MechanicalStart:
    r"""A consistent state of a mechanical system.

    Attributes
    ----------
    t : float
    q, v, a : numpy.ndarray
        Positions, velocities, accelerations.
    lam : numpy.ndarray
        All multipliers; those of redundant constraints are chosen so that the norm is smallest.
    r, r_rate, w : numpy.ndarray
        First-order states, their rates, algebraic variables.
    rows : numpy.ndarray of int
        Independent constraints; the others follow from them.
    redundant : list of (row, {row: coefficient})
        The constraints left out of `rows`, with the combination of `rows` that their gradient is.
    moved_q, moved_v : numpy.ndarray
        What was added to the given values.
    notes : tuple of str
        What was done, in words.
    """

    t: float
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    r: np.ndarray
    r_rate: np.ndarray
    w: np.ndarray
    rows: np.ndarray
    redundant: list[Dependency]
    moved_q: np.ndarray
    moved_v: np.ndarray
    notes: tuple[str, ...]

    @property
    def initial(self) -> tuple[np.ndarray, ...]:
        """(q, v), and r and w where the system has them: what :func:`daedal.solve` takes."""
        if self.w.size:
            return self.q, self.v, self.r, self.w
        return (self.q, self.v, self.r) if self.r.size else (self.q, self.v)


def consistent_state(
    system: MechanicalSystem,
    t0: float,
    q0,
    v0=None,
    *,
    fixed=None,
    weight="mass",
    tolerance: float = RANK_TOLERANCE,
    r0=None,
    w0=None,
) -> MechanicalStart:
    r"""The consistent state nearest to (q0, v0).

    Positions are projected on :math:`g(t, q) = 0`, velocities on :math:`G v + g_t = 0` and on the velocity
    constraints; accelerations and multipliers follow from the augmented system

    .. math:: \begin{pmatrix} M & K^T \\ K & 0 \end{pmatrix} \begin{pmatrix} a \\ \lambda \end{pmatrix} =
              \begin{pmatrix} f \\ \gamma \end{pmatrix}.

    Values that are consistent to round-off are returned as they are.

    Parameters
    ----------
    system : MechanicalSystem
    t0 : float
    q0, v0 : array
        Where to look; `v0` is zero if it is None.
    fixed : list or mask, optional
        What keeps its value: names of coordinates and of velocities ("x" and "x'"), indices into (q, v), or a mask for
        q or for (q, v).
    weight : "mass", "identity" or matrix
        The norm in which the change is smallest.
    tolerance : float
        A constraint whose gradient, scaled to norm 1, has less than this in a direction of its own is redundant.
    r0, w0 : array, optional
        First-order states, and where the search for the algebraic variables starts; zero by default.

    Raises
    ------
    InconsistentInitialError
        If there is no consistent state nearby: constraints contradict each other, the configuration is singular, a
        direction has no mass, or the multipliers are not determined (Wunderlich, lemma 4.1.1).

    Examples
    --------
    >>> import daedal
    >>> from daedal.initial.mechanical import consistent_state
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> start = consistent_state(pendulum, 0.0, [1.0, 0.1], [0.5, 1.0], fixed=[1])
    >>> print(start.q.round(4), start.v.round(4), start.lam.round(4))
    [0.995 0.1  ] [-0.0945  0.9403] [-0.044]
    """
    t, q, v = check_point(system, check_finite(t0, "t0"), q0, v0)
    tolerance = check_positive(tolerance, "tolerance")
    r = np.zeros(system.n_r) if r0 is None else check_vector(r0, system.n_r, "r0")
    w = np.zeros(system.n_w) if w0 is None else check_vector(w0, system.n_w, "w0")
    contact_coordinates(system, t, q)  # refused here if there are none
    held = _held(system, fixed)
    manifold = Manifold(system, t, q, weight, held)
    nearest, found = manifold.nearest_position(q)
    if not found:
        refuse_position(manifold, q, nearest, tolerance)
    K = manifold.jacobian(nearest)
    assert K is not None  # it was evaluated there before
    rows, redundant = independent_rows(K, manifold.n_g, tolerance, manifold.typical)
    if redundant:
        check_permanent(manifold, nearest, rows, redundant, tolerance)
    velocity = manifold.nearest_velocity(nearest, v, rows)
    check_velocity(manifold, nearest, velocity, v, rows, redundant)
    notes = [f"{dependency_in_words(found, system.constraint_label)}: redundant" for found in redundant]
    notes += _moves(system, "q", nearest - q, 0) + ([] if v0 is None else _moves(system, "v", velocity - v, system.n_q))
    a, lam, rate, w = _accelerations(manifold, nearest, velocity, r, w, rows, redundant)
    return MechanicalStart(
        t=t,
        q=nearest,
        v=velocity,
        a=a,
        lam=lam,
        r=r,
        r_rate=rate,
        w=w,
        rows=rows,
        redundant=redundant,
        moved_q=nearest - q,
        moved_v=velocity - v,
        notes=tuple(notes),
    )


def check_start(
    system: MechanicalSystem,
    t0: float,
    q0,
    v0=None,
    *,
    correct: bool | None = None,
    r0=None,
    w0=None,
    atol=1e-9,
    small: float = SMALL,
    tolerance: float = RANK_TOLERANCE,
) -> MechanicalStart:
    """The start of an integration: consistent, or refused with the violated constraints and what would satisfy them.

    Parameters
    ----------
    system, t0, q0, v0, r0, w0, tolerance
        As in :func:`consistent_state`. Velocities that are None are computed, never refused.
    correct : bool, optional
        True projects any values that can be projected. Otherwise small inconsistencies are projected and larger ones
        refused.
    atol : float or array
        Errors of q, v that do not matter, a number or one for each entry of (q, v).
    small : float
        Inconsistencies that are projected: this part of the terms of a constraint.
    """
    t, q, v = check_point(system, t0, q0, v0)
    if correct or system.n_lambda == 0:
        return consistent_state(system, t, q, None if v0 is None else v, tolerance=tolerance, r0=r0, w0=w0)
    contact_coordinates(system, t, q)
    manifold = Manifold(system, t, q)
    g, K = manifold.position(q), manifold.jacobian(q)
    if g is None or K is None:
        raise unevaluable(manifold.assembly, t, np.concatenate([q, v, np.zeros(system.n_r)]))
    allowed = np.broadcast_to(np.asarray(atol, dtype=float), (2 * system.n_q,))
    limits = small * manifold.position_scale(q) + np.abs(K[: system.n_constraints]) @ allowed[: system.n_q]
    violated = {int(i): g[i] for i in np.flatnonzero(~(np.abs(g) <= limits))}
    start, reason = None, ""
    try:
        start = consistent_state(system, t, q, None if v0 is None else v, tolerance=tolerance, r0=r0, w0=w0)
    except InconsistentInitialError as error:
        if not violated:
            raise
        reason = str(error)
    too_fast = {}
    if v0 is not None and start is not None:
        residual, K = manifold.velocity(start.q, v)
        limits = manifold.velocity_limits(start.q, v, small) + np.abs(K) @ allowed[system.n_q :]
        too_fast = {int(i): residual[i] for i in np.flatnonzero(~(np.abs(residual) <= limits))}
    if violated or too_fast:
        refuse_values(system, t, q, v, g, violated, too_fast, start, reason)
    assert start is not None
    return start


def split_mechanical(initial) -> tuple:
    """(q0, v0, r0, w0) from what the user gave: (q0, v0), with r0 and w0 behind them where the system has them."""
    if isinstance(initial, MechanicalStart):
        return initial.q, initial.v, initial.r, initial.w
    if not isinstance(initial, (tuple, list)) or not 2 <= len(initial) <= 4:
        raise InvalidProblemError("initial must be a pair (q0, v0), or (q0, v0, r0, w0); v0 may be None")
    return (*initial, None, None)[:4]


def _held(system: MechanicalSystem, fixed) -> np.ndarray:
    n = system.n_q
    if fixed is None:
        return np.zeros(2 * n, dtype=bool)
    values = np.asarray(fixed)
    if values.dtype == bool and values.shape == (n,):
        return np.concatenate([values, np.zeros(n, dtype=bool)])
    return check_mask(fixed, 2 * n, "fixed", [system.label(i) for i in range(2 * n)])


def _moves(system: MechanicalSystem, what: str, change: np.ndarray, offset: int) -> list[str]:
    if not np.any(change):
        return []
    largest = int(np.argmax(np.abs(change)))
    return [f"{what} was moved to satisfy the constraints, {system.label(offset + largest)} by {change[largest]:.2e}"]


# --- accelerations and multipliers ----------------------------------------------------------------------------------


def _accelerations(manifold: Manifold, q, v, r, w, rows, redundant):
    """a, all multipliers, r' and w from the augmented system, or a refusal."""
    system, t = manifold.system, manifold.t
    assembly = Assembly(system, t, q, rows=rows)
    z = np.concatenate([q, v])
    values = assembly.evaluate(t, z, r, w)
    if values is None:
        raise unevaluable(assembly, t, np.concatenate([z, r]), w)
    direction = free_of_mass(values["mass"], values["jacobian"])
    if direction is not None:
        named = names_of(system, leading(direction))
        raise InconsistentInitialError(
            f"the mass matrix is singular in a direction that the constraints leave free at t = {t:g}: {named}. "
            "Accelerations are not determined. Remedy: give these coordinates a mass, constrain them, or make them "
            "algebraic variables w."
        )
    state, guesses = np.concatenate([z, r]), np.concatenate([w, np.zeros(rows.size)])
    results = assembly.accelerate(t, state, guesses[None])
    a, lam, rate, found = (values[0] for values in results[:4])
    solved = results[4][0] == 0 and np.all(np.isfinite(a)) and np.all(np.isfinite(lam))
    if system.force_uses_multipliers or system.n_w:
        at = (found, lam) if solved else (w, np.zeros(rows.size))
        _test_index(assembly, system, t, z, r, *at)
    if not solved:
        what = "algebraic variables w" if system.n_w else "multipliers"
        raise InconsistentInitialError(
            f"the {what} could not be found at t = {t:g}: Newton's method does not converge. "
            + ("Remedy: give w0 nearer to the solution." if system.n_w else "Remedy: check how forces depend on lam.")
        )
    _check_accelerations(manifold, z, a, redundant)
    if system.force_uses_multipliers:  # another distribution would change the forces
        redundant = []
    return a, least_norm(lam, rows, redundant, system.n_lambda), rate, found


def _check_accelerations(manifold: Manifold, z, a, redundant):
    if not redundant:
        return
    system = manifold.system
    values = manifold.assembly.evaluate(manifold.t, z)
    if values is None:
        return
    K, bias = values["jacobian"], values["bias"]
    q, v = np.split(z, 2)
    rate = np.max(np.abs(v)) / np.max(sizes(q))
    terms = (
        np.abs(K) @ np.abs(a) + np.abs(bias) + 1e-2 * manifold.typical * (np.max(np.abs(a)) + rate * np.max(np.abs(v)))
    )
    # Where nothing accelerates, what the forces could do, and the round-off of differences in time.
    step = float(manifold.assembly.record["time_increment"])
    terms += 1e-2 * manifold.typical * np.max(np.abs(values["force"])) / (np.max(np.abs(values["mass"])) or 1.0)
    terms += ROUNDOFF / _CONTRADICTION_OF_ACCELERATIONS * manifold.typical * np.max(sizes(q)) / step**2
    residual = np.abs(K @ a + bias)
    wrong = [found for found in redundant if residual[found[0]] > _CONTRADICTION_OF_ACCELERATIONS * terms[found[0]]]
    if wrong:
        words = "; ".join(dependency_in_words(found, system.constraint_label) for found in wrong[:MOST_NAMED])
        raise InconsistentInitialError(
            f"constraints contradict each other on the acceleration level at t = {manifold.t:g}: {words}, but they ask "
            "for different accelerations. Remedy: check how these constraints depend on time.",
            [row for row, _ in wrong],
        )


def _test_index(assembly: Assembly, system: MechanicalSystem, t, z, r, w, lam):
    """Lemma 4.1.1, with the derivatives by differences; refuses what it does not hold for."""
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
                "singular. Remedy: give w0 elsewhere, or check `algebraic`."
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
            f"the multipliers of {names} are not determined at t = {t:g}: the forces undo the reaction, "
            "G M^-1 (G^T - f_lam + f_w d_w^-1 d_lam) is singular, and the index is above 3. "
            "Remedy: check how forces depend on lam (a friction coefficient may be too large).",
            which,
        )


def _force_and_algebraic(assembly, t, z, r, w, lam):
    values = assembly.evaluate(t, z, r, w, lam)
    return None if values is None else np.concatenate([values["force"], values["algebraic"]])


def _differences(function, x: np.ndarray, usual: float) -> np.ndarray | None:
    """Central differences, for x of at least the `usual` size; None where the function cannot be evaluated."""
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
