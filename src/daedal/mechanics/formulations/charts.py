"""Local coordinates on the constraint manifold, in compiled code: state space, minimal extension and essential ODE.

A chart is given by constant rows R~ that complete K: u~ = R~ z determines z with g = 0 as long as [R~; K] is well
conditioned (Ascher and Petzold (3.15), (3.16)). A hook checks the condition number after every step and stops the run
when a new chart is needed.

The essential underlying ODE of a linear problem is w' = K(t) w + k(t), with a hook that checks its chart.
"""

import numpy as np

from daedal.kernels.callbacks import CALLBACK, NATIVE, UNEVALUABLE, owner
from daedal.kernels.compilation import entry, part
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.records import FLOAT, INTEGER, Struct, at, float_rows, floats, record_at
from daedal.kernels.signatures import f64, i64, void
from daedal.kernels.system import HOOK, HOOK_DONE, HOOK_STOP
from daedal.kernels.vectors import add_product, copy, largest, squares, transpose
from daedal.mechanics.augmented import accelerate_only
from daedal.mechanics.constrained import CONSTRAINED, JACOBIAN, LEVELS, RATE, evaluate, fetch, load_state
from daedal.mechanics.formulations.monitor import determinant_sign

CHART = Struct(
    "CHART",
    [
        ("system", at(CONSTRAINED)),
        ("n", INTEGER),
        ("n_low", INTEGER),  # number of coordinates on each level below the highest
        ("n_top", INTEGER),
        ("low_rows", f64["n_low", "system.nx"]),
        ("top_rows", f64["n_top", "system.nx"]),
        ("matrix", LU),
        ("work", f64["system.nx"]),
        ("z", f64["system.m * system.nx"]),  # the last point, from which Newton's method starts
        ("y", f64["n"]),  # coordinates and time
        ("t", FLOAT),
        ("limit", FLOAT),
        ("condition", FLOAT),  # condition number of [R~; K] at the point at which the chart was chosen
        ("low_sign", INTEGER),  # sign of det [R~; K] at that point, for the positions
        ("sign", INTEGER),
        ("pivot", i64[2, "system.nx"]),  # pivots of a minimal extension
    ],
)


@part
def _complete(chart, c, level):
    """Factor [R~; K] for a level, with the latest K."""
    rows, by_columns = _rows(chart, c, level), chart.matrix.data
    count = rows.shape[0]
    transpose(by_columns, rows)
    transpose(by_columns[:, count:], c.jacobian[: c.nx - count])
    return factor_lu(chart.matrix)


@part
def _rows(chart, c, level):
    """The rows R~ of a level."""
    return chart.top_rows if level == c.m - 1 else chart.low_rows


@part
def _same_branch(chart, top, sign):
    """Whether det [R~; K] has the same sign as in the first call for the chart, which stores it; a change is a fold.

    A chart given by the user is never replaced; its folds are the user's responsibility.
    """
    if chart.limit == np.inf:
        return True
    if top:
        if chart.sign == 0:
            chart.sign = sign
        return chart.sign == sign
    if chart.low_sign == 0:
        chart.low_sign = sign
    return chart.low_sign == sign


@part
def recover(chart, c, t, y):
    """Recover z from the chart coordinates y, into ``c.state``, by Newton's method level by level; returns a status."""
    nx, m, state, work, begin = c.nx, c.m, c.state, chart.work, 0
    copy(state, chart.z)
    first = (m - 1) * chart.n_low + chart.n_top
    copy(state[m * nx :], y[first : first + c.n_r])
    for level in range(m):
        rows = _rows(chart, c, level)
        count = rows.shape[0]
        z, values = state[level * nx : (level + 1) * nx], c.level[level]
        before = np.inf
        for iteration in range(30):
            status = evaluate(c, t, LEVELS | JACOBIAN)
            if status != 0:
                return status
            if _complete(chart, c, level) != 0:
                return UNEVALUABLE
            sign = determinant_sign(chart.matrix)
            for i in range(count):
                work[i] = add_product(-y[begin + i], rows[i], z)
            copy(work[count:], values[: nx - count])
            solve_lu(chart.matrix, work)
            for i in range(nx):
                z[i] -= work[i]
            size, change = max(largest(z), c.length if level == 0 else 0.0), largest(work)
            if not change < np.inf:
                return UNEVALUABLE
            if change <= 1e-15 * size or (change <= 1e-9 * size and change >= 0.3 * before):
                break
            if iteration > 0 and change <= 1e-8 * size and change <= 1e-3 * before:
                break
            if iteration == 29:
                return UNEVALUABLE
            before = change
        if not _same_branch(chart, level == m - 1, sign):
            return UNEVALUABLE
        begin += count
    return 0


@part
def keep_point(chart, c, t, y):
    """Use the point in ``c.state`` as the start of Newton's method."""
    _set_point(chart, t, c.state[: c.m * c.nx], y[: chart.n])


@part
def _set_point(chart, t, z, y):
    copy(chart.z, z)
    copy(chart.y, y)
    chart.t = t


@part
def _rate(chart, c, t, y, rate):
    """Write u~_j' = R~ z_{j+1} and u~_m' = R~ a to `rate`; returns a status."""
    status = recover(chart, c, t, y) or accelerate_only(c, t)
    if status == 0 and c.n_r > 0:
        status = evaluate(c, t, RATE)
    if status != 0:
        return UNEVALUABLE if status > 0 else status
    nx, m = c.nx, c.m
    at = 0
    for level in range(m):
        rows = _rows(chart, c, level)
        slope = c.acceleration if level == m - 1 else c.state[(level + 1) * nx : (level + 2) * nx]
        for i in range(rows.shape[0]):
            rate[at] = add_product(0.0, rows[i], slope)
            at += 1
    copy(rate[at:], c.rate)
    return 0


@entry(NATIVE)
def chart_rate(t, block):
    """y' of the state-space form; the block is [y | y']."""
    chart = record_at(owner(block), CHART)
    return _rate(chart, chart.system, t, floats(block, chart.n), floats(block + 8 * chart.n, chart.n))


@entry(NATIVE)
def chart_residual(t, block):
    """y' - rate(t, y); the block is [y | y' | F]."""
    chart = record_at(owner(block), CHART)
    n = chart.n
    r, yp = floats(block + 16 * n, n), floats(block + 8 * n, n)
    status = _rate(chart, chart.system, t, floats(block, n), r)
    for i in range(n):
        r[i] = yp[i] - r[i]
    return status


@part
def _conditioning(chart, c):
    """|| A^{-1} ||_F for A = [R~; K] with rows of norm 1: large when rows are nearly dependent."""
    nx, n_top = c.nx, chart.n_top
    by_columns, work = chart.matrix.data, chart.work
    for i in range(nx):
        row = chart.top_rows[i] if i < n_top else c.jacobian[i - n_top]
        norm = squares(row)
        norm = np.sqrt(norm) if norm > 0.0 else 1.0
        for j in range(nx):
            by_columns[j, i] = row[j] / norm
    if factor_lu(chart.matrix) != 0:
        return np.inf
    inverse = 0.0
    for k in range(nx):
        work[:] = 0.0
        work[k] = 1.0
        solve_lu(chart.matrix, work)
        inverse = add_product(inverse, work, work)
    return np.sqrt(inverse)


@entry(HOOK)
def chart_hook(record, t, h, y):
    """Stop when the chart is much worse conditioned than at the point at which it was chosen."""
    chart = record_at(record, CHART)
    c = chart.system
    status = recover(chart, c, t, floats(y, chart.n))
    if status != 0:
        return status
    keep_point(chart, c, t, floats(y, chart.n))
    condition = _conditioning(chart, c)
    if chart.condition == 0.0:
        chart.condition = condition
    # reciprocal of the cosine of the angle between the manifold and the chart
    turned = np.sqrt(max(condition**2 - chart.condition**2, 0.0) + 1.0)
    return HOOK_STOP if turned > chart.limit else HOOK_DONE


@entry(HOOK)
def pivot_hook(record, t, h, y):
    """Stop when the dependent coordinates of a minimal extension are ill-conditioned: K_2^{-1} K_1 is large."""
    chart = record_at(record, CHART)
    c = chart.system
    nx, n_c, n = c.nx, c.n_c, c.m * c.nx
    load_state(c, floats(y, n), floats(y + 8 * n, c.n_r))
    status = evaluate(c, t, JACOBIAN)
    if status != 0:
        return status
    by_columns, jacobian = chart.matrix.data, c.jacobian
    pivot, work = chart.pivot[1], chart.work
    for j in range(nx):
        if pivot[j] > 0:
            copy(by_columns[pivot[j] - 1], jacobian[:, j])
    if factor_lu(chart.matrix) != 0:
        return HOOK_STOP
    for j in range(nx):
        copy(work, jacobian[:, j])
        solve_lu(chart.matrix, work)
        for i in range(n_c):
            if not abs(work[i]) <= chart.limit:
                return HOOK_STOP
    return HOOK_DONE


@entry(void(i64, i64, f64[:], f64[:, :], f64[:, :], i64[:], f64[:]))
def recover_points(chart_at, system, times, y, states, statuses, memory):
    """Recover (z, r) at the rows of `y`; if Newton's method fails, by small steps from the previous point.

    `memory` is workspace for two vectors of coordinates and one of z.
    """
    chart, c = record_at(chart_at, CHART), record_at(system, CONSTRAINED)
    n = c.m * c.nx + c.n_r
    between, first, z0 = memory[: chart.n], memory[chart.n : 2 * chart.n], memory[2 * chart.n :]
    for k in range(times.size):
        statuses[k] = recover(chart, c, times[k], y[k])
        pieces = 4
        while statuses[k] != 0 and pieces <= 256:
            t0 = chart.t
            copy(first, chart.y)
            copy(z0, chart.z)
            for piece in range(1, pieces + 1):
                s = piece / pieces
                for i in range(chart.n):
                    between[i] = (1.0 - s) * first[i] + s * y[k, i]
                t = (1.0 - s) * t0 + s * times[k]
                statuses[k] = recover(chart, c, t, between)
                if statuses[k] != 0:
                    break
                keep_point(chart, c, t, between)
            if statuses[k] != 0:
                _set_point(chart, t0, z0, first)
            pieces *= 4
        if statuses[k] == 0:
            keep_point(chart, c, times[k], y[k])
        state = c.state
        for i in range(n):
            states[k, i] = state[i] if statuses[k] == 0 else np.nan


LINEAR_ODE = Struct(
    "LINEAR_ODE",
    [
        ("n", INTEGER),
        ("system", at(CONSTRAINED)),
        ("limit", FLOAT),
        ("coefficients", CALLBACK),  # K by rows, then k
        ("condition", CALLBACK),
    ],
)


@part
def _linear_rate(e, t, y, target):
    n = e.n
    status = fetch(e.coefficients, t, y, 1, n * n + n)
    matrix, vector = float_rows(e.coefficients.block + 8, n, n), floats(e.coefficients.block + 8 + 8 * n * n, n)
    for i in range(n):
        target[i] = add_product(vector[i], matrix[i], y)
    return status


@entry(NATIVE)
def linear_rate(t, block):
    """w' of (t, w); the block is [w | w']."""
    e = record_at(owner(block), LINEAR_ODE)
    return _linear_rate(e, t, floats(block, e.n), floats(block + 8 * e.n, e.n))


@entry(NATIVE)
def linear_residual(t, block):
    """w' - K w - k; the block is [w | w' | F]."""
    e = record_at(owner(block), LINEAR_ODE)
    n = e.n
    yp, r = floats(block + 8 * n, n), floats(block + 16 * n, n)
    status = _linear_rate(e, t, floats(block, n), r)
    for i in range(n):
        r[i] = yp[i] - r[i]
    return status


@entry(HOOK)
def linear_hook(record, t, h, y):
    """Stop when a new chart is needed; C is stored in the record of the system for further hooks."""
    e = record_at(record, LINEAR_ODE)
    status = evaluate(e.system, t, JACOBIAN)
    if status == 0 and e.limit < np.inf:
        status = fetch(e.condition, t, floats(y, 1), 1, 1)
    if status != 0:
        return status
    return HOOK_STOP if e.limit < np.inf and floats(e.condition.block + 8, 1)[0] > e.limit else HOOK_DONE
