r"""Check after every accepted step that the constraints changed as their derivatives predict.

Along the straight line from one accepted point to the next, with the derivatives at both ends,

    g(t_1, q_1) - g(t_0, q_0) = 1/2 (G_0 + G_1) (q_1 - q_0) + h/2 (g_{t,0} + g_{t,1}) + ...

After a gross disagreement the step is shortened and repeated, with new increments chosen at its end. If it persists,
the run stops with a message that names the constraint. Constraints treated as independent of time are evaluated at
other times, and complex-step derivatives are compared with differences.

This costs a few constraint evaluations per step; none if all derivatives are given, or traced without switches.
"""

import numpy as np

from daedal.kernels.callbacks import RAISED, UNEVALUABLE, is_given
from daedal.kernels.compilation import entry, part
from daedal.kernels.records import FLOAT, INTEGER, Struct, at, record_at
from daedal.kernels.signatures import f64
from daedal.kernels.system import HOOK, HOOK_DONE, HOOK_STOP
from daedal.kernels.vectors import add_product, copy, copy_matrix
from daedal.mechanics.constrained import BIAS, CONSTRAINED, JACOBIAN, POSITION, VELOCITY, evaluate
from daedal.mechanics.differences import all_constraints, along_line, may_search, search

DEPENDS_ON_TIME, NOT_ANALYTIC, UNEXPLAINED = HOOK_STOP + 4, HOOK_STOP + 5, HOOK_STOP + 6

NO_CHANGES, ALL_CHANGES, CHANGES_WITH_TIME = 0, 1, 2

_GROSS = 0.5  # tolerance for the deviation from the predicted change: this fraction of its terms,
_CURVED = 0.5  # plus this fraction of h^2 g'',
_NEGLIGIBLE = 1e-7  # plus this fraction of the terms of the constraint
_NOT_THE_SAME = 1e-5  # relative difference above which the complex step contradicts differences
_MOST_REPETITIONS = 6
_TIMES = 64.0  # number of times per interval at which constraints are compared, in addition to the ends of steps

INSPECTION = Struct(
    "INSPECTION",
    [
        ("system", at(CONSTRAINED)),
        ("changes", INTEGER),  # which changes of g are compared with predictions
        ("complex_step", INTEGER),
        ("timeless", INTEGER),  # whether independence of time is checked
        ("started", INTEGER),
        ("t", FLOAT),
        ("repetitions", INTEGER),
        ("beyond", FLOAT),  # end of the last repeated step
        ("worst", INTEGER),  # the constraint with an unexpected change
        ("found", FLOAT),  # observed change
        ("expected", FLOAT),  # predicted change
        ("q", f64["system.nx"]),
        ("position", f64["system.all_g"]),
        ("jacobian", f64["system.all_g", "system.nx"]),
        ("partial_t", f64["system.all_g"]),
        ("second", f64["system.all_g"]),
        ("values", f64[2, "system.all_g + system.all_v"]),
    ],
)


@entry(HOOK)
def inspect(record, t, h, y):
    """Check the point in ``c.state`` reached by a step h; h = 0 at the start."""
    p = record_at(record, INSPECTION)
    c = p.system
    if h == 0.0:
        p.started, p.repetitions = 0, 0
    if p.timeless and c.autonomous and h != 0.0:
        found = _depends_on_time(p, c, t, h)
        if found != 0:
            return found
    if p.changes == NO_CHANGES or (p.changes == CHANGES_WITH_TIME and c.autonomous):
        return HOOK_DONE
    exact = is_given(c.constraint_t) and is_given(c.acceleration_bias)
    wanted = VELOCITY | BIAS if exact else VELOCITY if p.complex_step else 0
    status = evaluate(c, t, POSITION | JACOBIAN | wanted)
    doubtful = False
    if status == 0:
        rate, second = p.values[0], p.values[1]
        if exact:
            copy(rate, c.all_velocity)
            copy(second, c.all_bias)
        else:
            status, doubtful = along_line(c, c.constraint, t, c.state, c.nx, c.all_g, rate, second, 1)
    if status != 0:
        return status if h != 0.0 else HOOK_DONE
    if p.complex_step and not doubtful and _is_not_analytic(p, c):
        return NOT_ANALYTIC
    if p.started and h != 0.0 and not _is_explained(p, c, t):
        return _repeat(p, c, t)
    if h * (t - p.beyond) >= 0.0:
        p.repetitions = 0
    _keep(p, c, t)
    return HOOK_DONE


@part
def _repeat(p, c, t):
    """Repeat the step with other increments; UNEXPLAINED after too many repetitions at one point."""
    p.beyond = t
    p.repetitions += 1
    if p.repetitions > _MOST_REPETITIONS:
        return UNEXPLAINED
    if may_search(c):
        status = search(c, t, False)
        if status != 0:
            return status
    return UNEVALUABLE


@part
def _partial_t(p, c, i):
    """g_t of row i: the derivative along the motion minus G v."""
    nx = c.nx
    if c.autonomous:
        return 0.0
    return p.values[0, i] - add_product(0.0, c.all_jacobian[i], c.state[nx : 2 * nx])


@part
def _keep(p, c, t):
    rows, partial_t = c.all_g, p.partial_t
    copy(p.q, c.state[: c.nx])
    copy(p.position, c.all_position)
    copy_matrix(p.jacobian, c.all_jacobian[:rows])
    copy(p.second, p.values[1, :rows])
    for i in range(rows):
        partial_t[i] = _partial_t(p, c, i)
    p.t, p.started = t, 1


@part
def _is_explained(p, c, t):
    """Whether g has changed as predicted, up to gross errors; otherwise the worst constraint is recorded."""
    nx, rows, h = c.nx, c.all_g, t - p.t
    q, q_before, jacobian, before = c.state, p.q, c.all_jacobian, p.jacobian
    position, position_before, partial_t = c.all_position, p.position, p.partial_t
    second, second_before = p.values[1], p.second
    worst = 1.0
    for i in range(rows):
        here = _partial_t(p, c, i)
        change, predicted = position[i] - position_before[i], 0.5 * h * (partial_t[i] + here)
        terms, size = 0.5 * abs(h) * (abs(partial_t[i]) + abs(here)), 0.0
        for j in range(nx):
            move = q[j] - q_before[j]
            predicted += 0.5 * (before[i, j] + jacobian[i, j]) * move
            terms += 0.5 * (abs(before[i, j]) + abs(jacobian[i, j])) * abs(move)
            size += abs(jacobian[i, j] * q[j])
        allowed = _GROSS * terms + _CURVED * h * h * (abs(second[i]) + abs(second_before[i]))
        allowed += _NEGLIGIBLE * (size + abs(position[i]))
        if abs(change - predicted) > worst * allowed:
            worst = abs(change - predicted) / allowed if allowed > 0.0 else np.inf
            p.worst, p.found, p.expected = i, change, predicted
    return worst <= 1.0


@part
def _is_not_analytic(p, c):
    """Whether differences along the motion contradict the complex step."""
    nx, velocity, rate, v = c.nx, c.all_velocity, p.values[0], c.state[c.nx :]
    jacobian = c.all_jacobian
    for i in range(c.all_g):
        terms = abs(rate[i]) + abs(velocity[i])
        for j in range(nx):
            terms += abs(jacobian[i, j] * v[j])
        if abs(rate[i] - velocity[i]) > _NOT_THE_SAME * terms:
            return True
    return False


@part
def _depends_on_time(p, c, t, h):
    """DEPENDS_ON_TIME if the constraints differ at times within the step, otherwise 0 or the status of an exception."""
    state, values, reference = c.state, p.values[0], p.values[1]
    status = all_constraints(c, c.t_first, state, reference)
    if status != 0:
        return status if status == RAISED else 0
    span = abs(c.t_last - c.t_first)
    count = 1 + int(min(_TIMES * abs(h) / span, _TIMES)) if span > 0.0 else 1
    for k in range(count):
        status = all_constraints(c, t - k * h / count, state, values)
        if status != 0:
            return status if status == RAISED else 0
        for i in range(values.size):
            if values[i] != reference[i]:
                return DEPENDS_ON_TIME
    return 0


def make_inspection(assembly, *, changes: bool):
    """INSPECTION record of an assembled system; None if all relevant derivatives are given.

    Without `changes`, as for constant steps, which may be arbitrarily coarse, changes are not predicted.
    """
    from daedal.kernels.records import Record
    from daedal.mechanics.point import asks_for_time

    system, rows, compares = assembly.system, assembly.system.n_constraints, NO_CHANGES
    # Exact derivatives of a traced function do not reveal its jumps.
    may_jump = not getattr(system.constraint, "is_smooth", True)
    if changes and rows and (system.constraint_jacobian is None or may_jump):
        compares = ALL_CHANGES
    elif changes and rows and system.constraint_t is None:
        compares = CHANGES_WITH_TIME
    if not compares and not asks_for_time(system):
        return None
    return Record.allocated(
        INSPECTION,
        system=assembly.record,
        changes=compares,
        complex_step=assembly.setting.complex_step,
        timeless=asks_for_time(system),
    )


def unexplained(assembly, inspection, t: float) -> str:
    """Message for a constraint that did not change as its derivatives predict."""
    name = assembly.given.constraint_label(int(inspection["worst"]))
    return (
        f"Stopped at t = {t:.10g}: the constraint {name} changes by {float(inspection['found']):.4g} after t = "
        f"{float(inspection['t']):.10g}, but its derivatives predict {float(inspection['expected']):.4g}, however "
        "short the step. It jumps there, or changes faster than differences can resolve. Remedy: if it jumps, "
        "give the time as a break point and a state that satisfies it afterwards; otherwise give "
        "constraint_jacobian and constraint_t."
    )
