"""Consistent initial values of mechanical systems, and errors if there are none."""

from dataclasses import dataclass

import numpy as np

from daedal.analysis.dependent_constraints import (
    RANK_TOLERANCE,
    Dependency,
    dependency_in_words,
    independent_rows,
)
from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.initial.accelerations import accelerations_at
from daedal.initial.manifold_projection import Manifold, unevaluable
from daedal.initial.refusals import check_permanent, check_velocity, refuse_position, refuse_values
from daedal.mechanics.contact import contact_coordinates
from daedal.mechanics.point import check_point
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_finite, check_mask, check_positive, check_vector

SMALL = 1e-6
"""Largest inconsistency that is corrected automatically, as a fraction of the terms of a constraint."""


@dataclass(frozen=True, eq=False)
class MechanicalStart:
    r"""A consistent state of a mechanical system.

    Attributes
    ----------
    t : float
    q, v, a : numpy.ndarray
        Positions, velocities, accelerations.
    lam : numpy.ndarray
        All multipliers; those of redundant constraints minimise the norm.
    r, r_rate, w : numpy.ndarray
        First-order states, their rates, algebraic variables.
    rows : numpy.ndarray of int
        Independent constraints; they imply the others.
    redundant : list of (row, {row: coefficient})
        The constraints not in `rows`, with their gradients as combinations of `rows`.
    moved_q, moved_v : numpy.ndarray
        Changes of the given positions and velocities.
    notes : tuple of str
        Descriptions of changes.
    multipliers_matter : bool
        Whether forces depend on the multipliers, so that a run needs them.

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> start = daedal.consistent_initial(pendulum, 0.0, ([1.0, 0.1], [0.0, 0.0]))
    >>> print(start.q.round(4), start.lam.round(4))
    [0.995  0.0995] [-0.4881]
    >>> print(daedal.solve(pendulum, (0.0, 1.0), start.initial).success)
    True
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
    multipliers_matter: bool = False

    @property
    def initial(self) -> tuple[np.ndarray, ...]:
        """(q, v), followed by r, w and lam if needed: the form accepted by :func:`daedal.solve`."""
        if self.multipliers_matter:
            return self.q, self.v, self.r, self.w, self.lam
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
    lam0=None,
) -> MechanicalStart:
    r"""The consistent state nearest to (q0, v0).

    Positions are projected onto :math:`g(t, q) = 0`, velocities onto :math:`G v + g_t = 0` and the velocity
    constraints; accelerations and multipliers follow from the augmented system

    .. math:: \begin{pmatrix} M & K^T \\ K & 0 \end{pmatrix} \begin{pmatrix} a \\ \lambda \end{pmatrix} =
              \begin{pmatrix} f \\ \gamma \end{pmatrix}.

    Values that are consistent to round-off are returned unchanged.

    Parameters
    ----------
    system : MechanicalSystem
    t0 : float
    q0, v0 : array
        Starting point; None means v0 = 0.
    fixed : list or mask, optional
        Values to keep: names of coordinates and of velocities ("x" and "x'"), indices into (q, v), or a mask for q or
        for (q, v).
    weight : "mass", "identity" or matrix
        The norm in which the change is minimised.
    tolerance : float
        A constraint is redundant if the component of its gradient, scaled to norm 1, that is independent of the others
        is smaller than this.
    r0, w0 : array, optional
        First-order states, and starting values of the algebraic variables; zero by default.
    lam0 : array, optional
        Starting values of the multipliers, if forces depend on them. By default zero, or other values if the forces
        cannot be evaluated at zero.

    Raises
    ------
    InconsistentInitialError
        If there is no consistent state nearby: constraints are contradictory, the configuration is singular, a
        direction has no mass, or the multipliers are not determined (Wunderlich, lemma 4.1.1).

    Examples
    --------
    >>> import daedal
    >>> from daedal.initial.mechanical_start import consistent_state
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> start = consistent_state(pendulum, 0.0, [1.0, 0.1], [0.5, 1.0], fixed=[1])
    >>> print(start.q.round(4), start.v.round(4), start.lam.round(4))
    [0.995 0.1  ] [-0.0945  0.9403] [-0.044]
    """
    t, q, v = check_point(system, check_finite(t0, "t0"), q0, v0)
    tolerance = check_positive(tolerance, "tolerance")
    r, w, guess = _others(system, r0, w0, lam0)
    contact_coordinates(system, t, q)  # raises an error if there are none
    manifold = Manifold(system, t, q, weight, _held(system, fixed))
    return _nearest_state(manifold, q, None if v0 is None else v, r, w, guess, tolerance)


def _nearest_state(manifold: Manifold, q, v0, r, w, guess, tolerance: float) -> MechanicalStart:
    """The result of :func:`consistent_state`, for checked values."""
    system, t, v = manifold.system, manifold.t, np.zeros(manifold.n) if v0 is None else v0
    nearest, found = manifold.nearest_position(q)
    if not found:
        refuse_position(manifold, q, nearest, tolerance)
    K = manifold.jacobian(nearest)
    assert K is not None  # already evaluated at this point
    rows, redundant = independent_rows(K, manifold.n_g, tolerance, manifold.typical)
    if redundant:
        check_permanent(manifold, nearest, rows, redundant, tolerance)
    velocity = manifold.nearest_velocity(nearest, v, rows)
    check_velocity(manifold, nearest, velocity, v, rows, redundant)
    notes = [f"{dependency_in_words(found, system.constraint_label)}: redundant" for found in redundant]
    notes += _moves(system, "q", nearest - q, 0) + ([] if v0 is None else _moves(system, "v", velocity - v, system.n_q))
    a, lam, rate, w = accelerations_at(manifold, nearest, velocity, r, w, guess, rows, redundant)
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
        multipliers_matter=system.force_uses_multipliers,
    )


def _others(system: MechanicalSystem, r0, w0, lam0) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    r = np.zeros(system.n_r) if r0 is None else check_vector(r0, system.n_r, "r0")
    w = np.zeros(system.n_w) if w0 is None else check_vector(w0, system.n_w, "w0")
    guess = None if lam0 is None else check_vector(lam0, system.n_lambda, "lam0", label=system.constraint_label)
    return r, w, guess


def check_start(
    system: MechanicalSystem,
    t0: float,
    q0,
    v0=None,
    *,
    correct: bool | None = None,
    r0=None,
    w0=None,
    lam0=None,
    atol=1e-9,
    small: float = SMALL,
    tolerance: float = RANK_TOLERANCE,
) -> MechanicalStart:
    """Compute the start of a run; raise if it is inconsistent, with the violated constraints and consistent values.

    Parameters
    ----------
    system, t0, q0, v0, r0, w0, lam0, tolerance
        As in :func:`consistent_state`. Velocities that are None are computed.
    correct : bool, optional
        True projects any values. Otherwise small inconsistencies are projected and larger ones rejected.
    atol : float or array
        Negligible errors of q, v: a number or one for each entry of (q, v).
    small : float
        Largest inconsistency that is projected, as a fraction of the terms of a constraint.
    """
    t, q, v = check_point(system, t0, q0, v0)
    if correct or system.n_lambda == 0:
        found = {"tolerance": tolerance, "r0": r0, "w0": w0, "lam0": lam0}
        return consistent_state(system, t, q, None if v0 is None else v, **found)
    r, w, guess = _others(system, r0, w0, lam0)
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
        start = _nearest_state(manifold, q, None if v0 is None else v, r, w, guess, tolerance)
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
    """(q0, v0, r0, w0, lam0) from the user's (q0, v0), optionally followed by r0, w0 and lam0."""
    if isinstance(initial, MechanicalStart):
        return initial.q, initial.v, initial.r, initial.w, initial.lam
    is_vector = isinstance(initial, (tuple, list)) and len(initial) > 2 and not any(np.ndim(x) for x in initial)
    if not isinstance(initial, (tuple, list)) or not 2 <= len(initial) <= 5 or is_vector:
        raise InvalidProblemError("initial must be a pair (q0, v0), or (q0, v0, r0, w0, lam0); v0 may be None")
    return (*initial, None, None, None)[:5]


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
