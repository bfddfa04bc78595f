r"""A basic step of extrapolation methods in compiled code: the table, its error, order and step size, dense output.

Rows are computed until the difference of the last two entries of one of them is small enough. Order and step size are
those with the least work per unit step, in the manner of SEULEX (Hairer, Wanner: Solving Ordinary Differential
Equations II, IV.9; the order window is that of Deuflhard, Numer. Math. 41 (1983) 399-422).
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.callbacks import RAISED
from daedal.kernels.compilation import announce, caller, part, pointer
from daedal.kernels.endings import Ending
from daedal.kernels.norms import wrms
from daedal.kernels.records import float_rows, floats, integers, record_at
from daedal.kernels.system import HOOK_CHANGED, SYSTEM
from daedal.methods.extrapolation_euler import EXTRAPOLATION, IMPLICIT, LIMEX
from daedal.methods.extrapolation_output import interpolate, keep_polynomial, leave_out_noise
from daedal.methods.extrapolation_sequences import MOST_COLUMNS
from daedal.methods.one_step import ATTEMPT, give_to_owner, size_of_error
from daedal.methods.radau_index import is_plain
from daedal.methods.run_record import RUN, STEP, differences

_CALLBACK_RAISED, _TROUBLED = int(Ending.CALLBACK_RAISED), int(Ending.TROUBLED)

_SMALLEST, _LARGEST = 0.1, 4.0  # of the factors by which steps change, to the power 1/k and with it
_FEWER, _MORE = 0.7, 0.9  # ratios of work for which the order changes
_SAFETY, _SHARE = 0.93, 0.6
_CAREFUL, _FORGETTING = 0.8, 1.3
_FAILED = 0.5  # by which a step is shortened that cannot be computed
_WORK_OF_JACOBIAN, _WORK_OF_FACTORS, _WORK_OF_STEP = 2.0, 1.0, 2.0

_HIGHEST = 8  # power of h of the error of the polynomial

_call = caller(ATTEMPT)


@pointer(STEP)
def extrapolation_begin(address):
    """Columns that suit the tolerance; derivatives at the start, for the owner to see whether the index is 0 or 1."""
    run = record_at(address, RUN)
    method = record_at(run.method, EXTRAPOLATION)
    digits = np.log10(max(wrms(floats(run.y, run.n), floats(run.inverse_weights, run.n)), 1.0))
    method.target = max(method.least, min(method.most - 1, int(0.6 * digits + 1.5)))
    if run.fixed:
        return 0
    status = _call(method.linearise, address, run.t, run.h)
    if status == 0:
        return 0 if is_plain(method, run.n) else _TROUBLED
    return _CALLBACK_RAISED if status == RAISED else 0  # else the first step will say what is wrong


@pointer(ATTEMPT)
def extrapolation_attempt(address, t, h):
    """Rows of the table until the error is small enough, or there is no hope for it."""
    run = record_at(address, RUN)
    return _attempt(record_at(run.system, SYSTEM), run, record_at(run.method, EXTRAPOLATION), address, t, h)


@pointer(ATTEMPT)
def extrapolation_accept(address, t, h):
    """The polynomial of the step, and size and order of the next one."""
    run = record_at(address, RUN)
    return _accept(record_at(run.system, SYSTEM), run, record_at(run.method, EXTRAPOLATION), t, h)


@part
def _attempt(system, run, method, address, t, h):
    n = run.n
    start, y, table = differences(run)[0], floats(run.y, n), float_rows(method.table, MOST_COLUMNS, n)
    if not method.jacobian_known:
        status = _call(method.linearise, address, t, h)
        if status != 0:
            return status
    method.iterations, method.euler_steps = 0, 0
    last = method.most if run.fixed else min(method.target + 1, method.most)
    before = np.inf
    for row in range(last):
        method.current = row
        status = _call(method.row, address, t, h)
        if status != 0:
            _give_up(run, method, h)
            return status
        _extend(run, method)
        k = row + 1
        if k < 2 or (run.fixed and k < last):
            continue
        for j in range(n):
            y[j] = start[j] + table[0, j]
        method.reached = k
        run.order = k
        leave_out_noise(run, method)
        run.error_of_step = size_of_error(system, run)
        if run.fixed or run.error_of_step <= 1.0:
            run.error_of_step = max(run.error_of_step, interpolate(system, run, method, h))
        if run.fixed:
            run.error_of_step = 0.0
            return 0
        _judge_column(run, method, h, k)
        if run.error_of_step <= 1.0 and k >= method.least and (k >= method.target - 1 or run.steps == 0):
            return 0
        if not run.error_of_step < np.inf or (k > 2 and run.error_of_step >= before):
            _give_up(run, method, h)
            return 0
        if _is_hopeless(run, method, k):
            break
        before = max(4.0 * run.error_of_step, 1.0)
    _shorten(run, method, h)
    return 0


@part
def _give_up(run, method, h):
    """Rows diverge, or cannot be computed: a much shorter step, with the same order."""
    run.h = _FAILED * h
    method.failed = abs(h)
    run.error_of_step = max(run.error_of_step, 2.0)


@part
def _extend(run, method):
    """One more row of the table from the sum of its Euler steps; table[0] becomes T_jj, error T_jj - T_j,j-1."""
    n, j = run.n, method.current
    numbers, table = integers(method.numbers, MOST_COLUMNS), float_rows(method.table, MOST_COLUMNS, n)
    total, error = floats(method.step, n), floats(run.error, n)
    for i in range(n):
        table[j, i] = total[i]
        error[i] = 0.0
    for k in range(j, 0, -1):
        factor = 1.0 / (numbers[j] / numbers[k - 1] - 1.0)
        for i in range(n):
            change = (table[k, i] - table[k - 1, i]) * factor
            table[k - 1, i] = table[k, i] + change
            error[i] = change


@part
def _work(run, method, k):
    """Work of k rows: Jacobian, factors, Euler steps with their iterations."""
    numbers, steps, factors = integers(method.numbers, MOST_COLUMNS), 0.0, 0.0
    for j in range(k):
        steps += numbers[j]
        factors += numbers[j] if method.scheme == LIMEX else 1
    each = max(1.0, method.iterations / max(method.euler_steps, 1)) if method.scheme == IMPLICIT else 1.0
    return _WORK_OF_JACOBIAN + _WORK_OF_FACTORS * factors + _WORK_OF_STEP * each * steps


@part
def _judge_column(run, method, h, k):
    """The step that suits column k by the error of this one, which falls like h^k, and the work per unit step."""
    work, size = floats(method.work, MOST_COLUMNS + 1), floats(method.size, MOST_COLUMNS + 1)
    exponent = 1.0 / min(k, _HIGHEST)
    least = _SMALLEST**exponent
    quotient = (max(run.error_of_step, 1e-30) / _SHARE) ** exponent / _SAFETY
    size[k] = abs(h) / min(_LARGEST / least, max(least / _LARGEST, quotient))
    work[k] = _work(run, method, k) / size[k]


@part
def _is_hopeless(run, method, k):
    """Whether the rows that are left will not do, by what each of them can gain at most."""
    numbers, error, target = integers(method.numbers, MOST_COLUMNS), run.error_of_step, method.target
    if k == target - 1 and target < method.most:
        return error > (numbers[target] * numbers[target - 1] / (numbers[0] * numbers[0])) ** 2
    if k == target and target < method.most:
        return error > (numbers[target] / numbers[0]) ** 2
    return False


@part
def _shorten(run, method, h):
    """A step whose error is too large is repeated with the cheaper of two columns."""
    work, size = floats(method.work, MOST_COLUMNS + 1), floats(method.size, MOST_COLUMNS + 1)
    k = max(2, min(method.target, method.reached))
    if k > max(2, method.least) and work[k - 1] < _FEWER * work[k]:
        k -= 1
    method.target = max(method.least, k)
    run.h = run.sign * min(size[k], 0.8 * abs(h))
    method.failed = abs(h)


@part
def _accept(system, run, method, t, h):
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status != 0 and status != HOOK_CHANGED:
            return status
    keep_polynomial(run, method, h)
    method.jacobian_known = 0
    if not run.fixed:
        _next_step(run, method, h)
    return 0


@part
def _next_step(run, method, h):
    """Order and size of the next step: the column with the least work per unit step (Hairer, Wanner IV.9)."""
    work, size = floats(method.work, MOST_COLUMNS + 1), floats(method.size, MOST_COLUMNS + 1)
    k, least, most = method.reached, method.least, method.most - 1 if method.most > method.least else method.most
    best = k
    if k <= 2:
        best = 2 if run.rejected else 3
    elif k <= method.target:
        if work[k - 1] < _FEWER * work[k]:
            best = k - 1
        elif work[k] < _MORE * work[k - 1]:
            best = k + 1
    else:
        best = k - 1
        if k > 3 and work[k - 2] < _FEWER * work[k - 1]:
            best = k - 2
        if work[k] < _MORE * work[best]:
            best = k
    best = max(least, min(best, most))
    if run.rejected:
        best = min(best, max(k, least))
        new = min(abs(h), size[best])
    elif best <= k:
        new = size[best]
    else:
        new = size[k] * _work(run, method, best) / _work(run, method, k)
    method.target = best
    if method.failed > 0.0:  # the error need not fall like a power of h: what has failed is not tried again at once
        new = min(new, _CAREFUL * method.failed)
        method.failed *= _FORGETTING
    run.h = run.sign * new


announce(_attempt, "extrapolation")
