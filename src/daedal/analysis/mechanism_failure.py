"""Explain why the integration of a constrained system stopped, with dense or sparse matrices."""

from __future__ import annotations

import numpy as np

from daedal.analysis.dependent_constraints import SingularPoint, describe, smallest_singular_value, usual_norms
from daedal.analysis.diagnosis import diagnose
from daedal.analysis.probe import Jump, Path, Probe, find_jump, first_time_behind, flow, in_time, jumps_with
from daedal.analysis.wording import (
    MOST_NAMED,
    counted,
    fixed_step_failed,
    listing,
    more_steps,
    number,
    stopped,
    stopped_step,
)
from daedal.errors import Unevaluable
from daedal.kernels.endings import Ending
from daedal.mechanics.point import complaint
from daedal.mechanics.sparse.sparse_workspace import SparseWorkspace
from daedal.mechanics.sparse.structure import SingularMatrix
from daedal.problems import MechanicalSystem

_NEARLY_SINGULAR = 1e-3
_TORN = 1e-9  # smallest reported jump of a constraint, relative to the size of the coordinates
_FELT = 1e-6  # smallest reported jump of an acceleration, relative to the largest acceleration
_NO_VALUE = 1e-6  # values of the state below this fraction of the other entries count as zero


def explain(request, assembly, segments) -> str:
    """The message for a failed run: causes in the constraints first, then the reason reported by the method."""
    segment = segments[-1]
    failure = segment.outcome.failure
    state = segment.equations.states(np.array([failure.t]), failure.y[:, None].copy())[0]
    if assembly.n_c and failure.code != Ending.ZERO_WEIGHT:
        first = segments[0]
        begin = first.equations.states(np.array([request.span[0]]), first.equations.y0[:, None].copy())[0]
        norms = usual_norms(assembly, [(request.span[0], begin), (failure.t, state)])
        smallest, combination = smallest_singular_value(assembly, failure.t, state, norms)
        if smallest < _NEARLY_SINGULAR:
            return describe(assembly, SingularPoint(failure.t, state, smallest, combination))
    if failure.code == Ending.UNEVALUABLE and not assembly.linear:
        found = _unevaluable(request, assembly, segment, failure, state)
        if found:
            return found
    lines = [_in_words(request, assembly, segment, failure)]
    lines += _mass(assembly, failure.t, state)
    return "\n".join(lines)


def _in_words(request, assembly, segment, failure) -> str:
    if segment.method.supports("residual"):
        return diagnose(segment.equations.problem, failure, frozenset({"MechanicalSystem"}))
    fixed = request.settings.fixed_step
    if fixed is not None and failure.code == Ending.NEWTON_FAILED:
        return fixed_step_failed(failure, fixed)
    what = {
        Ending.ZERO_WEIGHT: "a variable and its atol are zero, so that no error would be allowed",
        Ending.MAX_STEPS: f"the limit of {counted(failure.steps, 'step')} was reached",
        Ending.STALLED: Ending.STALLED.meaning,
        Ending.ERROR_TEST_FAILED: "the error estimate stayed above the tolerance for arbitrarily short steps",
        Ending.NEWTON_FAILED: "Newton's method did not converge for arbitrarily short steps",
        Ending.MATRIX_SINGULAR: "the iteration matrix is singular",
        Ending.UNEVALUABLE: "the equations could not be evaluated at the next step, for arbitrarily short steps",
    }.get(failure.code, f"the method gave up (code {failure.code})")
    hint = {
        Ending.ZERO_WEIGHT: (
            f"make atol positive{_of_zeros(request, assembly, segment, failure)}, the size below which a variable is "
            "negligible; it may be an array with one entry per variable"
        ),
        Ending.MAX_STEPS: more_steps(failure, request.span),
        Ending.STALLED: "loosen rtol and atol, use method='dassl' if the system is stiff, or give max_steps",
        Ending.ERROR_TEST_FAILED: (
            "check for a blow-up near this time, and stop before it with a terminal event (events=...)"
        ),
        Ending.NEWTON_FAILED: "use formulation='ggl' with method='dassl'",
        Ending.MATRIX_SINGULAR: (
            "check for constraints that become dependent and for coordinates without mass; or use method='dassl'"
        ),
        Ending.UNEVALUABLE: "check square roots, logarithms and quotients that leave their domain near this time",
    }.get(failure.code, "try method='dassl'")
    if segment.method.supports("second_order") and failure.code in (Ending.ERROR_TEST_FAILED, Ending.NEWTON_FAILED):
        hint += (
            ". This method differentiates positions numerically to obtain velocities, with round-off that grows "
            "like 1/h: tolerances below about 1e-9 need method='auto', or formulation='ggl' with method='dassl'"
        )
    if failure.code in (Ending.MAX_STEPS, Ending.ERROR_TEST_FAILED, Ending.NEWTON_FAILED):
        cause = _discontinuity(assembly, segment, failure)
        if cause:
            return "\n".join([_stopped(request, segment, failure, what), *cause])
    return f"{_stopped(request, segment, failure, what)} Remedy: {hint}."


class _Motion:
    """The equations of motion of a constrained system as F = y' - (slope of (z, r)), to search for jumps."""

    def __init__(self, assembly):
        self._assembly, self.n, self.names = assembly, assembly.n_state, assembly.state_names()

    def slope(self, t: float, state: np.ndarray) -> np.ndarray:
        start = self._assembly.start(float(t), state)
        return np.concatenate([start.slope, start.rate])

    def evaluate(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        return yp - self.slope(t, y)


def _discontinuity(assembly, segment, failure) -> list[str] | None:
    """Sentences on a jump of the accelerations near the end of the run, in time or in a variable; None without one."""
    motion = _Motion(assembly)
    probe = Probe(motion)
    state = segment.equations.states(np.array([failure.t]), failure.y[:, None].copy())[0]
    slope = motion.slope(failure.t, state)
    if not np.all(np.isfinite(slope)):
        return None
    size = np.abs(slope) + float(np.max(np.abs(slope)))
    point = float(failure.t), state, slope
    path = in_time(*point, failure.h, failure.t_span)
    jump = find_jump(probe, path, _FELT * size)
    if jump is not None and not jump.recurs:
        t = first_time_behind(probe, path, jump)
        torn = _torn_constraints(assembly, float(np.nextafter(t, failure.t_span[0])), t, state)
        if torn:
            return [
                f"Likely cause: {torn} at t = {t:.10g}, and no motion can satisfy a constraint that jumps.",
                (
                    "Remedy: make the constraint a continuous function of time, or use modes with a reset "
                    "(daedal.hybrid.HybridProblem)."
                ),
            ]
        return [
            f"Likely cause: a discontinuity. {_jumps(motion, jump)} at t = {t:.10g}.",
            f"Remedy: restart there, solve(..., breakpoints=[{t!r}]).",
        ]
    path = flow(*point, failure.h, failure.t_span)
    jump = find_jump(probe, path, _FELT * size)
    if jump is None or jump.recurs:
        return None
    return _switch_in_words(probe, motion, path, jump)


def _torn_constraints(assembly, before: float, behind: float, state: np.ndarray) -> str | None:
    from daedal.mechanics.constrained import POSITION

    z = state[: assembly.m * assembly.nx]
    pair = [assembly.evaluate(t, z, what=POSITION) for t in (before, behind)]
    if pair[0] is None or pair[1] is None or not assembly.n_g:
        return None
    change = (pair[1]["level"] - pair[0]["level"])[0][: assembly.n_g]
    worst = int(np.argmax(np.abs(change)))
    if not abs(change[worst]) > _TORN * (1.0 + float(np.max(np.abs(state)))):
        return None
    return f"{assembly.row_names()[worst]} jumps by {number(abs(change[worst]))}"


def _jumps(motion: _Motion, jump: Jump) -> str:
    return f"The derivative of {motion.names[jump.equation]} jumps by {number(abs(jump.size))}"


def _switch_in_words(probe: Probe, motion: _Motion, path: Path, jump: Jump) -> list[str]:
    t, y, _ = path(jump.s)
    scale = float(np.max(np.abs(y), initial=0.0))
    values = np.where(np.abs(y) > _NO_VALUE * scale, y, 0.0)
    passed = [f"{motion.names[j]} passes {number(values[j])}" for j in jumps_with(probe, path, jump)[:MOST_NAMED]]
    where = f" where {listing(passed)}" if passed else ""
    return [
        f"Likely cause: a discontinuity. {_jumps(motion, jump)}{where}, at t = {number(t)}.",
        (
            "Remedy: do not switch inside the functions of the model. Define both sides as modes "
            "(daedal.hybrid.HybridProblem), with daedal.hybrid.Friction for dry friction and "
            "daedal.hybrid.UnilateralProblem for contacts."
        ),
    ]


def _stopped(request, segment, failure, what: str) -> str:
    by = f" with {type(segment.method).__name__} on {type(segment.formulation).__name__}"
    return stopped_step(failure, what, request.span, by)


def _of_zeros(request, assembly, segment, failure) -> str:
    if segment.equations.recover is not None:
        return ""
    state = failure.y[: assembly.n_state]
    rtol, atol = (np.asarray(value, dtype=float) for value in (request.settings.rtol, request.settings.atol))
    zero = np.flatnonzero(rtol * np.abs(state) + atol == 0.0)
    names = [assembly.state_names()[i] for i in zero[:3]]
    return f" for {', '.join(names)}{' and others' if zero.size > 3 else ''}" if names else ""


def _unevaluable(request, assembly, segment, failure, state: np.ndarray) -> str | None:
    """The message about a function that cannot be evaluated at the last good point or just beyond it, or None."""
    n = assembly.m * assembly.nx
    start = assembly.start(failure.t, state)
    slope = np.concatenate([start.slope, start.rate])
    slope = np.where(np.isfinite(slope), slope, 0.0)
    length = request.span[1] - request.span[0]
    tiny = 8.0 * np.finfo(float).eps * max(abs(failure.t), abs(length))
    for distance in (0.0, tiny, 1e3 * tiny, 1e-9 * abs(length), 1e-6 * abs(length), 1e-3 * abs(length)):
        ahead = float(np.copysign(distance, length))
        found = complaint(assembly, failure.t + ahead, state + ahead * slope, start.w, start.lam)
        if found:
            where = "at" if distance == 0.0 else "beyond"
            named = zip(assembly.state_names()[:MOST_NAMED], state, strict=False)
            values = listing((f"{name} = {number(x)}" for name, x in named), n)
            what = "the equations could not be evaluated at the next step, for arbitrarily short steps"
            return (
                f"{_stopped(request, segment, failure, what)}\nLikely cause: {where} t = {failure.t:.10g}, "
                f"{values}, {found}.\nRemedy: if the model ends here, end t_span before it or stop with a terminal "
                f"event (events=...); otherwise check roots, logarithms and quotients in {found.split()[0]}."
            )
    return None


def _mass(assembly, t: float, state: np.ndarray) -> list[str]:
    """A note if the mass matrix does not determine the motions that the constraints leave free."""
    if assembly.linear:
        return []
    from daedal.mechanics.constrained import JACOBIAN, MASS

    n = assembly.m * assembly.nx
    values = assembly.evaluate(t, state[:n], state[n:], what=MASS | JACOBIAN)
    if values is None:
        return []
    basis = np.linalg.qr(values["jacobian"].T, mode="complete")[0][:, assembly.n_c :]
    if basis.shape[1] == 0:
        return []
    eigenvalues, vectors = np.linalg.eigh(basis.T @ values["mass"] @ basis)
    if eigenvalues[0] > 1e-12 * max(abs(eigenvalues[-1]), 1e-300):
        return []
    direction = np.abs(basis @ vectors[:, 0])
    names = [assembly.state_names()[i] for i in np.argsort(-direction)[:3] if direction[i] > 0.3 * direction.max()]
    return [
        f"The mass matrix is singular on the motions that the constraints leave free, mainly in {', '.join(names)}: "
        "their accelerations are not determined there. Give these coordinates a mass, or make them algebraic."
    ]


# --- systems with sparse matrices ------------------------------------------------------------------------------------


def explain_sparse(assembly: SparseWorkspace, reduction, failure) -> str:
    """Why a run failed: dependent constraints at the end of the run, or the method's own reason."""
    t, nx = float(failure.t), assembly.nx
    if failure.code in (Ending.MAX_STEPS, Ending.STALLED):
        limit = f"the limit of {counted(failure.steps, 'step')} was reached"
        what = limit if failure.code == Ending.MAX_STEPS else Ending.STALLED.meaning
        return f"{stopped_step(failure, what, failure.t_span)} Remedy: {more_steps(failure, failure.t_span)}."
    q = failure.y[:nx]
    try:
        assembly.augmented.factor(assembly.mass(t, q).data, assembly.jacobian(t, q).data)
    except SingularMatrix as error:
        return stopped(t, describe_dependence(assembly.system, t, error.null), digits=10)
    except Unevaluable:
        pass
    return diagnose(reduction.problem, failure, frozenset({"MechanicalSystem"}))


def describe_dependence(system: MechanicalSystem, t: float, null: np.ndarray) -> str:
    """The cause of a singular augmented matrix, from its null vector."""
    n = system.n_q
    free, dependent = np.abs(null[:n]), np.abs(null[n:])
    reason = "constraints are dependent, or free directions have no mass"
    largest = float(np.max(np.abs(null), initial=0.0))
    if np.isfinite(largest) and largest > 0.0:
        rows = np.flatnonzero(dependent > 0.1 * np.max(dependent, initial=0.0))
        columns = np.flatnonzero(free > 0.1 * np.max(free, initial=0.0))
        if np.max(dependent, initial=0.0) > np.max(free, initial=0.0):
            named = listing((system.constraint_label(int(i)) for i in rows[:MOST_NAMED]), rows.size)
            reason = f"the gradients of these constraints are dependent: {named}"
        else:
            named = listing((system.label(int(i)) for i in columns[:MOST_NAMED]), columns.size)
            reason = f"the mass matrix is singular in a direction that the constraints leave free: {named}"
    return (
        f"accelerations and multipliers are not determined at t = {t:g}: {reason}. Remedy: sparse systems need "
        "independent constraints; remove those that follow from others."
    )
