"""The start of a run of a sparse mechanical system: consistent positions, velocities, accelerations, multipliers."""

import numpy as np

from daedal.analysis.dependent_constraints import UNSYMMETRIC, unsymmetric_mass
from daedal.analysis.mechanism_failure import describe_dependence
from daedal.analysis.wording import MOST_NAMED, listing, number
from daedal.errors import InconsistentInitialError, InvalidProblemError, Unevaluable
from daedal.initial.given_derivatives import check_given
from daedal.initial.mechanical_start import MechanicalStart
from daedal.mechanics.point import check_point, looks_autonomous
from daedal.mechanics.setting import ConsistentStart
from daedal.mechanics.sparse.sparse_workspace import SparseWorkspace, check_supported
from daedal.mechanics.sparse.structure import SingularMatrix
from daedal.problems import MechanicalSystem

_SMALL = 1e-6  # inconsistencies up to this fraction of the terms of a constraint are corrected automatically
_NEGLIGIBLE = 1e-9  # absolute errors of q and v up to which they are negligible


def sparse_start(
    system: MechanicalSystem, span: tuple[float, float], q0, v0=None, *, correct: bool | None = True
) -> tuple[SparseWorkspace, ConsistentStart, list[str]]:
    r"""The prepared system, its consistent start near (q0, v0), and notes.

    Positions are projected onto g = 0 and velocities onto :math:`G v + g_t = 0` in the norm of M; accelerations and
    multipliers come from the augmented system. No matrix is dense.

    Parameters
    ----------
    system : MechanicalSystem
    span : (float, float)
        The interval; it starts at the time of the initial values.
    q0, v0 : array
        Starting point; `v0` may be None.
    correct : bool
        Whether values may be corrected by any distance; otherwise values that need more than a small correction are
        rejected.
    """
    check_supported(system)
    t, q, v = check_point(system, span[0], q0, v0)
    check_given(system, t, q, v)
    try:
        assembly = SparseWorkspace(system, t, q, autonomous=looks_autonomous(system, span, q, v))
        if not correct:
            _refuse_far(assembly, t, q, None)
        _refuse_infinite(assembly, t, q, v)
        _refuse_mass(assembly, t, q)
        moved = _position(assembly, t, q)
        if not correct and v0 is not None:
            _refuse_far(assembly, t, moved, v)
        assembly.augmented.factor(assembly.mass(t, moved).data, assembly.jacobian(t, moved).data)
        speed = assembly.projected_velocity(t, moved, v)
        a, lam = assembly.augmented_solution(t, moved, speed)
    except SingularMatrix as error:
        raise InconsistentInitialError(describe_dependence(system, t, error.null)) from None
    except Unevaluable as error:
        message = f"a function of the system cannot be evaluated at the initial values, t = {t:g}: {error}"
        raise InconsistentInitialError(message.rstrip(": ")) from error
    if not (np.all(np.isfinite(a)) and np.all(np.isfinite(lam))):
        raise InconsistentInitialError(f"the forces or the masses are not finite at the initial values, t = {t:g}")
    notes = []
    for what, change, offset in (("q0", moved - q, 0), ("v0", speed - v, system.n_q)):
        if (what == "q0" or v0 is not None) and np.max(np.abs(change), initial=0.0) > 1e-12 * _size(q, v, offset):
            j = int(np.argmax(np.abs(change)))
            notes.append(f"{what} was moved to satisfy the constraints, {system.label(offset + j)} by {change[j]:.2e}.")
    return assembly, ConsistentStart(t, np.concatenate([moved, speed]), a, lam), notes


def consistent_sparse(system: MechanicalSystem, t0: float, q0, v0=None) -> MechanicalStart:
    """The consistent state nearest to (q0, v0) in the norm of M, as returned by :func:`daedal.consistent_initial`."""
    span = (float(t0), float(t0) + 1.0)
    assembly, start, notes = sparse_start(system, span, q0, v0)
    n, nothing = system.n_q, np.zeros(0)
    q, v = start.z[:n], start.z[n:]
    _, given_q, given_v = check_point(system, t0, q0, v0)
    return MechanicalStart(
        t=start.t,
        q=q,
        v=v,
        a=start.a,
        lam=start.lam,
        r=nothing,
        r_rate=nothing,
        w=nothing,
        rows=assembly.rows,
        redundant=[],
        moved_q=q - given_q,
        moved_v=v - given_v,
        notes=tuple(notes),
    )


def _size(q, v, offset: int) -> float:
    return float(np.max(np.abs(v if offset else q), initial=0.0))


def _refuse_infinite(assembly: SparseWorkspace, t: float, q: np.ndarray, v: np.ndarray):
    """Raise an error that names the function if values at the start are not finite."""
    for name, values in (
        ("mass", assembly.mass(t, q).data),
        ("constraint_jacobian", assembly.jacobian(t, q).data),
        ("constraint", assembly.position(t, q)),
        ("force", assembly.force(t, q, v)),
    ):
        if not np.all(np.isfinite(values)):
            raise InconsistentInitialError(f"{name} returns NaN or infinity at the initial values, t = {t:g}")


def _refuse_mass(assembly: SparseWorkspace, t: float, q: np.ndarray):
    """Check that the mass matrix is symmetric and no coordinate alone has negative kinetic energy."""
    mass, label = assembly.mass(t, q), assembly.system.label
    difference = abs(mass - mass.T).tocoo()
    if difference.nnz and difference.data.max() > UNSYMMETRIC * abs(mass).max():
        worst = int(np.argmax(difference.data))
        i, j = sorted((int(difference.row[worst]), int(difference.col[worst])))
        raise InvalidProblemError(f"{unsymmetric_mass(mass, i, j, label)} (at t = {t:g}, the initial position)")
    negative = [label(int(i)) for i in np.flatnonzero(mass.diagonal() < 0.0)]
    if negative:
        raise InvalidProblemError(
            f"mass is negative for {listing(negative[:MOST_NAMED], len(negative))} at t = {t:g}, the initial position. "
            "Remedy: check the signs of mass; a kinetic energy v^T M v / 2 is never negative"
        )


def _position(assembly: SparseWorkspace, t: float, q: np.ndarray) -> np.ndarray:
    """Find q with g = 0 near the given one."""
    try:
        return assembly.projected_position(t, q)
    except Unevaluable as error:
        g = assembly.position(t, q)
        raise InconsistentInitialError(
            (
                f"no position that satisfies the constraints was found near the given one at t = {t:g}: "
                f"{_worst(assembly, g)}. Remedy: check these constraints, or start closer."
            ),
            [int(i) for i in np.argsort(-np.abs(g))[:MOST_NAMED]],
            g,
        ) from error


def _refuse_far(assembly: SparseWorkspace, t: float, q, v):
    """Reject values whose residual exceeds a small fraction of the terms of the constraint."""
    jacobian = assembly.jacobian(t, q)
    x = q if v is None else v
    residual = assembly.position(t, q) if v is None else assembly.velocity(t, q, v, jacobian)
    limits = abs(jacobian) @ (_SMALL * np.abs(x) + _NEGLIGIBLE)
    violated = np.flatnonzero(~(np.abs(residual) <= limits))
    if violated.size == 0:
        return
    level = "Position" if v is None else "Velocity"
    raise InconsistentInitialError(
        f"The initial values violate the constraints at t = {number(t)}.\n"
        f"{level} constraints with the residual that should be 0: {_worst(assembly, residual, violated)}.\n"
        "Remedy: pass correct_initial=True, which moves the values to the nearest consistent ones.",
        [int(i) for i in violated],
        residual,
    )


def _worst(assembly: SparseWorkspace, residual: np.ndarray, among=None) -> str:
    among = np.arange(residual.size) if among is None else among
    order = among[np.argsort(-np.abs(residual[among]), kind="stable")]
    label = assembly.system.constraint_label
    return listing((f"{label(int(i))} ({number(residual[i])})" for i in order[:MOST_NAMED]), order.size)
