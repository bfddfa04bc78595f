"""Causes of failed runs. Each function tests for one cause and returns sentences that explain it, or None.

``dF/dy'`` and ``dF/dy`` distinguish causes that look alike to the integrator: inconsistent values, a higher index, a
discontinuity. Equations and variables are numbered from 0, as in NumPy.
"""

from functools import cached_property
from typing import Any

import numpy as np

from daedal.analysis.index import LocalIndex, judge, partials
from daedal.analysis.probe import (
    LARGEST_DENSE,
    Jump,
    Probe,
    WrongEntry,
    along,
    find_jump,
    find_kink,
    find_wrong_entry,
    first_time_behind,
    flow,
    in_time,
    jumps_with,
)
from daedal.analysis.wording import (
    FROM_ZERO,
    MOST_NAMED,
    Failure,
    describe_inconsistency,
    equations,
    largest,
    listing,
    measured,
    number,
    ordinal,
    powers,
    variable,
    variables,
)
from daedal.common.tabular import plural, times
from daedal.kernels.endings import Ending

_HIDDEN_VIOLATION = 1e-5  # tolerated residual of a hidden constraint, relative to its terms
_JACOBIAN_REMEDY = (
    "Remedy: give jacobian=..., avoid differences of large, nearly equal terms in the residual, or raise atol of tiny "
    "variables."
)
_ROUNDOFF = 64.0 * float(np.finfo(float).eps)  # round-off of an equation, relative to its terms
# factors of the tolerances at which the index is determined, so that loose tolerances do not affect the result
_LOOSER = (1.0, 1e-3, 1e-6)
# a variable counts as unbounded if it changes by its own size within this fraction of the elapsed time
_SINGULARITY = 1e-6
_DETERMINED, _FOLD = 1e-13, 1e-4  # at a fold the smallest singular value (of scaled rows) lies between these values
_DROWNED = 3e-3  # displacement by round-off, in tolerances, above which shorter steps no longer help
_COARSE = 1e-11  # spacing of floating-point times, relative to the interval, above which it limits accuracy


class Case:
    """A failed run, with derived quantities computed on demand."""

    def __init__(self, problem: Any, failure: Failure, taken: frozenset[str] = frozenset(), stated: Any = None):
        self.stated = problem if stated is None else stated  # the problem as defined by the user
        self.taken = taken  # remedies already applied by the user: "correct_initial", "None", "MechanicalSystem"
        self.probe = Probe(problem)
        self.problem = self.probe.problem
        self.failure = failure
        self.n = self.probe.n
        self.h = failure.h if np.isfinite(failure.h) else 0.0
        usable = np.isfinite(failure.weights) & (failure.weights > 0.0)
        self.weights = np.where(usable, failure.weights, np.maximum(1e-6 * np.abs(failure.y), 1e-9))
        included = failure.included
        self.included = included != 0.0 if included.shape == (self.n,) else np.ones(self.n, dtype=bool)

    @property
    def point(self) -> tuple[float, np.ndarray, np.ndarray]:
        """The last good t, y, y'."""
        return self.failure.t, self.failure.y, self.failure.yp

    @property
    def span(self) -> float:
        return abs(self.failure.t_span[1] - self.failure.t_span[0])

    @property
    def elapsed(self) -> float:
        return abs(self.failure.t - self.failure.t_span[0])

    @property
    def at_start(self) -> bool:
        return self.failure.steps == 0

    @cached_property
    def exact(self) -> tuple[np.ndarray, np.ndarray] | None:
        """dF/dy' and dF/dy at the last good point; None if the problem is not traced, or too large."""
        find = getattr(self.problem, "exact_partials", None)
        return None if find is None or self.n > LARGEST_DENSE else find(*self.point)

    @cached_property
    def untraced(self) -> str | None:
        """Why a function of the problem cannot be traced, which prevents index reduction; None if all can be traced."""
        if self.exact is not None:
            return None
        found = (words.partition(": ") for words in getattr(self.stated, "functions", {}).values())
        return next((reason for kind, _, reason in found if kind in ("Python", "Numba") and reason), None)

    @cached_property
    def partials(self) -> tuple[np.ndarray, np.ndarray] | None:
        """dF/dy' and dF/dy at the last good point, exact or by differences; None if unavailable."""
        return self._partials_with(self.weights) if self.exact is None else self.exact

    def _partials_with(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        if self.n > LARGEST_DENSE:
            return None
        scale = max(1e-3 * self.span, 1e-300)
        E, B = partials(self.probe.residual, *self.point, weights=weights, time_scale=scale)
        return (E, B) if np.all(np.isfinite(E)) and np.all(np.isfinite(B)) else None

    @cached_property
    def index(self) -> LocalIndex | None:
        """The index found with the largest number of increments of difference quotients; in a tie, the smallest one."""
        if self.partials is None:
            return None
        judged = [judge(*self.partials)]
        for part in _LOOSER[1:] if self.exact is None else ():
            closer = self._partials_with(part * self.weights)
            judged.append(None if closer is None else judge(*closer))
        found = [local for local in judged if local is not None]
        values = [local.index for local in found]
        return min(found, key=lambda local: (-values.count(local.index), local.index or 0), default=None)

    @cached_property
    def wrong_entry(self) -> WrongEntry | None:
        """An entry of the iteration matrix that is inconsistent with the residual, or None."""
        failure = self.failure
        if self.partials is None or not np.isfinite(failure.cj):
            return None
        return find_wrong_entry(self.probe, *self.partials, *self.point, failure.cj, self.h, self.weights)

    @cached_property
    def corrections(self) -> np.ndarray:
        """The change of each variable in the failed step, in units of its tolerance."""
        return np.abs(self.failure.correction) / self.weights

    @cached_property
    def roundoff(self) -> np.ndarray:
        """Round-off in the value of each equation, from the size of its terms."""
        return _ROUNDOFF * self.probe.terms(*self.point)

    @property
    def negligible(self) -> np.ndarray:
        """Changes of the equations caused by negligible changes of the variables or by round-off."""
        if self.partials is not None:
            return np.maximum(1e-3 * np.abs(self.partials[1]) @ self.weights, self.roundoff)
        t, y, yp = self.point
        signs = np.random.default_rng(self.n).choice([-1.0, 1.0], self.n)
        ahead, behind = (self.probe.residual(t, y + s * 1e-3 * signs * self.weights, yp) for s in (1.0, -1.0))
        return np.fmax(np.abs(ahead - behind), self.roundoff)

    def name(self, j: int) -> str:
        return variable(self.problem, j)

    def names(self, which) -> str:
        return variables(self.problem, which)


# -------------------------------------------------------------------------------------------- inconstant functions


def inconstant(case: Case) -> list[str] | None:
    """Equations whose values change when they are evaluated again."""
    varying = case.probe.varies(*case.point)
    if not varying:
        return None
    has = "has" if len(varying) == 1 else "have"
    return [
        (
            f"Likely cause: the residual is not a function of its arguments: {equations(varying)} {FROM_ZERO} {has} "
            "different values when it is called again with the same t, y and y'."
        ),
        "Remedy: remove everything that changes from call to call: random numbers, counters, values stored by earlier "
        "calls.",
    ]


# ------------------------------------------------------------------------ equations that do not determine the solution


def singular_pencil(case: Case) -> list[str] | None:
    """Equations that cannot determine the solution, however often they are differentiated."""
    found = case.index
    if case.partials is None:
        from daedal.analysis.undetermined import in_words, undetermined

        start = case.failure.start  # at the start, since undetermined variables may later outgrow all others
        for point in [case.point] if start is None else [start, case.point]:
            left_open = undetermined(case.problem, [point], case.span)
            if left_open is not None:
                return [f"Likely cause: {in_words(case.problem, left_open)}."]
        return None
    if found is None or found.index is not None:
        return None
    return _undetermined(case, found.redundant_equations, found.undetermined_variables)


def _undetermined(case: Case, rows, columns) -> list[str]:
    assert case.partials is not None
    used = (case.partials[0] != 0.0) | (case.partials[1] != 0.0)
    empty = [i for i in rows if not used[i].any()]
    unused = [j for j in columns if not used[:, j].any()]
    parts = []
    if empty:
        parts.append(f"{equations(empty)} {FROM_ZERO} {'contains' if len(empty) == 1 else 'contain'} no unknown here")
    elif len(rows) == 1:
        parts.append(f"{equations(rows)} {FROM_ZERO} follows from others, or determines nothing at this point")
    elif rows:
        parts.append(f"{equations(rows)} {FROM_ZERO} repeat or contradict one another")
    if unused:
        parts.append(f"{case.names(unused)} {'occurs' if len(unused) == 1 else 'occur'} in no equation")
    elif columns:
        parts.append(f"{case.names(columns)} {'is' if len(columns) == 1 else 'are'} left undetermined")
    return [
        "Likely cause: the equations do not determine all variables (judged locally, from dF/dy and dF/dy').",
        f"Suspected: {'; '.join(parts)}.",
        (
            "Remedy: replace the superfluous equation by the missing one. Often a constraint or a boundary condition "
            "is stated twice, or no equation determines a variable."
        ),
    ]


# --------------------------------------------------------------------------------------------------------- higher index


def higher_index(case: Case) -> list[str] | None:
    """An index that DASSL cannot solve: above 2, or 2 with the affected variables in the error test.

    At the start, index 2 with a violated hidden constraint is reported as well.
    """
    found = case.index
    if found is None or found.index is None or found.index < 2:
        return None
    rows, waiting = _deepest(found)
    excluded = found.index == 2 and not np.any(case.included[waiting])
    violation = _hidden_violation(case) if case.at_start else None
    if excluded and violation is None:
        return None
    assert case.partials is not None
    combined = bool(np.any(case.partials[0][rows]))
    what = f"a combination of {equations(rows)}" if combined else equations(rows)
    plural = len(rows) > 1 and not combined
    lines = [
        f"Likely cause: the problem has index {found.index}: equations must be differentiated {times(found.index)} "
        "until all derivatives are known. Methods are most reliable for index 0 and 1. (Judged locally, from dF/dy and "
        "dF/dy'.)",
        f"Suspected constraint{'s' if plural else ''}: {what} {FROM_ZERO} {'do' if plural else 'does'} not determine "
        f"{case.names(waiting)}; only {'their' if plural else 'its'} {ordinal(found.index - 1)} time derivative does.",
    ]
    if violation is not None:
        lines.append(
            f"The initial values violate the hidden constraint: the first time derivative is {number(violation)}, "
            "not 0."
        )
        if excluded:
            return lines + [
                (
                    "Remedy: choose initial values that satisfy it as well; daedal.consistent_initial(problem, t0, "
                    "initial, fixed=[...]) finds such values; `fixed` lists the variables to keep."
                )
            ]
    return lines + [_index_remedy(case, found.index, rows, waiting)]


def _deepest(found: LocalIndex) -> tuple[list[int], list[int]]:
    """Equations that need the most differentiations, and the variables of the highest index."""
    assert found.index is not None
    rows = [i for i, count in found.constraints if count == found.index - 1]
    return rows, [j for j, index in found.higher_index_variables if index == found.index]


def _hidden_violation(case: Case) -> float | None:
    """The largest derivative of the constraints that need differentiation; None if all vanish up to errors.

    Their combination of ``dF/dt = F_t + F_y y' + F_y' y''`` does not contain y''.
    """
    assert case.partials is not None and case.index is not None
    t, y, yp = case.point
    step = 1e-6 * (case.failure.t_span[1] - case.failure.t_span[0])
    F_t = (case.probe.residual(t + step, y, yp) - case.probe.residual(t, y, yp)) / step
    noise = case.roundoff / abs(step)
    if not np.all(np.isfinite(F_t)):
        return None
    B = case.partials[1]
    combinations = case.index.levels[1].combinations
    values = combinations @ (F_t + B @ yp)
    terms = np.abs(combinations) @ (np.abs(F_t) + np.abs(B) @ np.abs(yp))
    excess = np.abs(values) - _HIDDEN_VIOLATION * terms - np.abs(combinations) @ noise
    worst = int(np.argmax(excess))
    if not excess[worst] > 0.0:
        return None
    return float(values[worst] / combinations[worst, np.argmax(np.abs(combinations[worst]))])


def _index_remedy(case: Case, index: int, rows, waiting) -> str:
    which, own = equations(rows), "its" if len(rows) == 1 else "their"
    if "MechanicalSystem" in case.taken:
        return "Remedy: use formulation='ggl' or 'auto', which reduce the index."
    assert case.partials is not None
    if index == 2 and np.any(case.partials[0][:, waiting]):  # the kernel of dF/dy' is not spanned by unit vectors
        reduced = "use formulation='strangeness_free', which reduces the index; or " if case.exact is not None else ""
        return f"Remedy: {reduced}replace {which} by {own} time derivative (index 1)."
    if index == 2:
        also = "and state the problem as a SemiExplicitDAE if possible, for which this is automatic"
        if case.failure.code in (Ending.NEWTON_FAILED, Ending.ERROR_THEN_NEWTON_FAILED):
            also = f"and scale quantities that become large or small with short steps ({_scaling(case, rows, waiting)})"
        return (
            f'Remedy: leave {case.names(waiting)} out of the error test (method="dassl", '
            f'error_test="differential"), {also}; or '
            f"replace {which} by {own} time derivative (index 1)."
        )
    if index == 3:
        mechanism = ""
        if _is_mechanical(case):
            mechanism = f" If it is a mechanism, {_MECHANISM}."
        return (
            "Remedy: pass the residual to a problem of second order, daedal.SecondOrderDAE(lambda t, x, v, a: "
            f"residual(t, x, v), {case.n}), with the same initial values.{mechanism} By hand: replace {which} by "
            f"{own} second time derivative (index 1)."
        )
    untraced = ""
    if case.untraced is not None:
        untraced = f"Daedal reduces the index of functions that it can trace; but here a function {case.untraced}.\n"
    return (
        f"{untraced}Remedy: reduce the index by hand. {which.capitalize()} must be differentiated {times(index - 1)} "
        f"with respect to time; with the other equations inserted, the results determine {case.names(waiting)}."
    )


def _scaling(case: Case, rows, waiting) -> str:
    """The options that scale rows and weights by powers of h (BCP section 5.4), in source form."""
    return f"row_scaling={powers(rows, case.n)}, newton_weights={powers(waiting, case.n)}"


_MECHANISM = "a daedal.MechanicalSystem with mass, forces and constraints is even faster"


def _is_mechanical(case: Case) -> bool:
    """Whether some equations are x' = v, and v' also occurs."""
    assert case.partials is not None
    E, B = (matrix != 0.0 for matrix in case.partials)
    kinematic = (E.sum(axis=1) == 1) & (B.sum(axis=1) == 1) & ~np.any(E & B, axis=1)
    velocities = B[kinematic].any(axis=0)
    return bool(np.any(velocities & E.any(axis=0)))


def masked_index_two(case: Case) -> list[str] | None:
    """Index 2 with a suitable error test, for which Newton's iteration may still fail."""
    found = case.index
    if found is None or found.index != 2:
        return None
    rows, waiting = _deepest(found)
    scaling = (
        f"scale quantities that become large or small with short steps ({_scaling(case, rows, waiting)}); loosen "
        f"rtol and atol; or replace {equations(rows, len(rows))} by the time derivative (index 1)"
    )
    if "MechanicalSystem" in case.taken:
        scaling = "use formulation='auto' or 'index1', or loosen rtol and atol"
    return [
        (
            f"Likely cause: the problem has index 2 (judged locally, from dF/dy and dF/dy'). {case.names(waiting)} "
            f"{'is' if len(waiting) == 1 else 'are'} excluded from the error test, but Newton's matrices become "
            "ill-conditioned for short steps."
        ),
        f"Remedy: {scaling}.",
    ]


# ------------------------------------------------------------------------------------------------------- wrong matrices


def wrong_jacobian(case: Case) -> list[str] | None:
    """A user's Jacobian or structure that is inconsistent with the residual."""
    if "MechanicalSystem" in case.taken:  # the Jacobian and its structure are those of the formulation
        return None
    entry = case.wrong_entry
    if entry is None or entry.origin == "differences":
        return None
    place = f"in row {entry.equation}, column {entry.variable} ({case.name(entry.variable)}), counted from 0,"
    if entry.origin == "structure":
        return [
            "Likely cause: sparsity or bandwidth is incomplete. "
            f"The entry {place} is {number(entry.expected)}, but the given structure has none.",
            "Remedy: complete sparsity or bandwidth, or omit it.",
        ]
    return [
        f"Likely cause: the given jacobian is wrong. The entry {place} is {number(entry.used)}; "
        f"difference quotients give {number(entry.expected)} (cj = {number(case.failure.cj)}).",
        "Remedy: correct jacobian, which must return dF/dy + cj dF/dy', or omit it.",
    ]


def inaccurate_differences(case: Case) -> list[str] | None:
    """An inaccurate difference quotient, usually due to cancellation."""
    entry = case.wrong_entry
    if entry is None or entry.origin != "differences":
        return None
    return [
        "Likely cause: an inaccurate numerical Jacobian. "
        f"The derivative of equation {entry.equation} {FROM_ZERO} with respect to {case.name(entry.variable)} comes "
        f"out as {number(entry.used)}; a more careful difference gives {number(entry.expected)} (cj = "
        f"{number(case.failure.cj)}).",
        _JACOBIAN_REMEDY,
    ]


def newton_trouble(case: Case) -> list[str] | None:
    """Newton failures that outnumber error-test failures, which indicate an inaccurate matrix."""
    failure = case.failure
    if failure.newton_failures <= max(failure.error_test_failures, 0.05 * failure.steps):
        return None
    return inaccurate_differences(case) or [
        "Likely cause: a strongly nonlinear equation or an inaccurate Jacobian. In "
        f"{plural(failure.steps, 'step')} Newton's iteration failed {times(failure.newton_failures)}, the error test "
        f"{times(failure.error_test_failures)}.",
        _JACOBIAN_REMEDY,
    ]


# --- nonsmooth solutions, and solutions that end ---


def coarse_clock(case: Case) -> list[str] | None:
    """Times so large that their floating-point spacing limits the accuracy of functions of time."""
    t0, t1 = case.failure.t_span
    apart, length = float(np.spacing(max(abs(t0), abs(t1)))), abs(t1 - t0)
    if not apart > _COARSE * length:
        return None
    return [
        (
            f"Likely cause: floating-point times near t = {number(t0)} are {number(apart)} apart, "
            f"{number(apart / length)} of the length of the interval. This limits the accuracy of functions of time."
        ),
        f"Remedy: start t at 0, t_span=(0, {number(t1 - t0)}), and add {t0!r} inside the functions that need it.",
    ]


def break_in_time(case: Case) -> list[str] | None:
    """A jump or kink of an equation at a time, independent of the variables, at which the run should be restarted.

    The search is repeated with zero y and y', since the values of a failed run may be so large that they hide a jump.
    """
    if case.at_start:
        return None
    t, y, yp = case.point
    return _break_at(case, t, y, yp) or _break_at(case, t, np.zeros(case.n), np.zeros(case.n))


def _break_at(case: Case, t: float, y: np.ndarray, yp: np.ndarray) -> list[str] | None:
    """A jump or kink in time, with constant y and y'."""
    path, roundoff = in_time(t, y, yp, case.h, case.failure.t_span), _ROUNDOFF * case.probe.terms(t, y, yp)
    jump = find_jump(case.probe, path, roundoff)
    if jump is not None and jump.recurs:
        return None
    if jump is not None:
        t = first_time_behind(case.probe, path, jump)
        return [
            f"Likely cause: a discontinuity. Equation {jump.equation} {FROM_ZERO} jumps by {number(abs(jump.size))} "
            f"at t = {t:.10g}.",
            _break_remedy(case, repr(t)),
        ]
    kink = find_kink(case.probe, path, roundoff)
    if kink is None:
        return None
    return [
        (
            f"Likely cause: a kink. The slope of equation {kink.equation} {FROM_ZERO} jumps at t = {kink.t:.10g}, so "
            "that its derivatives jump."
        ),
        _break_remedy(case, f"{kink.t:.10g}"),
    ]


def _break_remedy(case: Case, t: str) -> str:
    found, test = case.index, ""
    if found is not None and found.index is not None and found.index >= 2:
        if np.any(case.included[[j for j, _ in found.higher_index_variables]]):
            test = ', method="dassl", error_test="differential"'
    return f"Remedy: restart there, solve(..., breakpoints=[{t}]{test})."


def discontinuity(case: Case) -> list[str] | None:
    """A jump of an equation, along the solution or in a variable that changed most in the failed step."""
    failure = case.failure
    path = flow(*case.point, case.h, failure.t_span)
    jump = find_jump(case.probe, path, case.negligible)
    if jump is not None:
        t, y, _ = path(jump.s)
        return _jump_in_words(case, jump, y, jumps_with(case.probe, path, jump), t)
    for j in largest(case.corrections) or range(min(case.n, MOST_NAMED)):
        change = np.zeros(case.n)
        change[j] = 10.0 * case.weights[j] * min(max(case.corrections[j], 1.0), 1e3)
        jump = find_jump(case.probe, along(*case.point, change), case.negligible)
        if jump is not None:
            return _jump_in_words(case, jump, failure.y + jump.s * change, (j,), failure.t)
    return None


def _jump_in_words(case: Case, jump: Jump, y: np.ndarray, switching: tuple[int, ...], t: float) -> list[str]:
    if jump.recurs:
        return [
            (
                f"Likely cause: round-off. Equation {jump.equation} {FROM_ZERO} changes in steps of "
                f"{number(abs(jump.size))}, as differences of large, nearly equal terms do, and is less accurate than "
                "the tolerances require."
            ),
            "Remedy: rewrite it to avoid such differences, or give jacobian=... and loosen rtol and atol.",
        ]
    values = np.where(np.abs(y) < case.weights, 0.0, y)
    passed = [f"{case.name(j)} passes {number(values[j])}" for j in switching[:MOST_NAMED]]
    where = f"where {listing(passed)}, at t = {number(t)}" if passed else f"at t = {number(t)}"
    return [
        f"Likely cause: a discontinuity. Equation {jump.equation} {FROM_ZERO} jumps by {number(abs(jump.size))} "
        f"{where}.",
        "Remedy: do not switch inside the residual. Stop at the switching point with a terminal event (events=...), "
        "change the equations there, and start again with consistent values (daedal.consistent_initial).",
    ]


def inconsistent_start(case: Case) -> list[str] | None:
    """Initial values that do not satisfy the equations."""
    if not case.at_start or case.partials is None:
        return None
    F = case.probe.residual(*case.point)
    E, B = case.partials
    tolerated = np.abs(B) @ case.weights + np.abs(E) @ (1e-6 * np.abs(case.failure.yp) + case.weights)
    if not np.any(np.abs(F) > 10.0 * tolerated):
        return None
    words = describe_inconsistency(case.problem, *case.point, F, case.failure.correction, case.weights, case.taken)
    return words[0].split("\n")


def drowned(case: Case) -> list[str] | None:
    """Round-off of the equations that moves a variable by too much of its tolerance in a step of mean size."""
    if case.at_start or case.partials is None or not case.elapsed > 0.0:
        return None
    h = case.elapsed / case.failure.steps
    matrix = case.partials[1] + case.partials[0] / h
    rounding = float(np.finfo(float).eps) * case.probe.terms(*case.point)
    try:
        moved = np.abs(np.linalg.inv(matrix)) @ rounding / case.weights
    except np.linalg.LinAlgError:
        return None
    j = int(np.argmax(np.nan_to_num(moved)))
    if not moved[j] > _DROWNED:
        return None
    factor = 10.0 ** np.ceil(np.log10(10.0 * max(moved[j], 1.0)))
    return [
        (
            f"Likely cause: round-off. Round-off of the equations moves {case.name(j)} by {number(moved[j])} "
            f"tolerances in a step of {number(h)}, the mean of this run, and by more in a shorter one."
        ),
        f"Remedy: multiply rtol and atol by {number(factor)}, or use a method with longer steps (method='radau').",
    ]


def singularity(case: Case) -> list[str] | None:
    """A variable or a slope that grows without bound."""
    failure = case.failure
    size = np.maximum(np.abs(failure.y), 1e6 * case.weights)  # excluding variables that pass through zero
    rate = np.nan_to_num(np.abs(failure.yp) / size, posinf=1e300)
    j = int(np.argmax(rate))
    if case.at_start or rate[j] * case.elapsed * _SINGULARITY < 1.0:
        return None
    return [
        f"Likely cause: the solution approaches a singularity: {case.name(j)} = {number(failure.y[j])} has the slope "
        f"{number(failure.yp[j])} after {measured(case.elapsed, 'unit')} of time.",
        "Remedy: check the model; the solution may not exist beyond this time. A terminal event can stop before it.",
    ]


def fold(case: Case) -> list[str] | None:
    """An algebraic variable that the equations hardly determine, where the solution turns back or ends."""
    if case.partials is None:
        return None
    E, B = case.partials
    rows, columns = (np.flatnonzero(~E.any(axis=axis)) for axis in (1, 0))
    if not rows.size or rows.size != columns.size:
        return None
    scaled = B[rows] * case.weights
    norms = np.linalg.norm(scaled, axis=1)
    if not np.all(norms > 0.0):
        return None
    _, s, V = np.linalg.svd(scaled[:, columns] / norms[:, None])
    if not _DETERMINED < s[-1] < _FOLD:
        return None
    j = int(columns[np.argmax(np.abs(V[-1]))])
    return [
        f"Likely cause: a fold. The equations hardly determine {case.name(j)} = {number(case.failure.y[j])} here, and "
        "the solution may turn back or end.",
        "Remedy: check the model; a terminal event can stop before this time.",
    ]
