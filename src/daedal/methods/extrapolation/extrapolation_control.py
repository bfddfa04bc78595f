r"""The table of an extrapolation method in compiled code, and the choice of order and step size.

Order and step size minimise the work per unit step, as in SEULEX and ODEX (Hairer, Wanner: Solving Ordinary
Differential Equations II, IV.9; the order window is that of Deuflhard, Numer. Math. 41 (1983) 399-422). With an
expansion in h^p the entries T_k,k-1 and T_kk of a row differ by O(H^(p(k-1)+1)).
"""

from __future__ import annotations

import numpy as np

from daedal.kernels.compilation import caller, part
from daedal.kernels.norms import wrms
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER
from daedal.kernels.signatures import f64, i64
from daedal.kernels.vectors import power
from daedal.methods.extrapolation.extrapolation_sequences import MOST_COLUMNS
from daedal.methods.one_step import ATTEMPT
from daedal.methods.run_record import differences

TABLE = (
    ("n", INTEGER),
    ("row", ADDRESS),  # function that computes the row `current` and stores y - y_0 at its end in `total`
    ("measure", ADDRESS),  # function that computes the error of the step with the current columns
    ("numbers", i64[MOST_COLUMNS]),  # number of steps in every row
    ("power", INTEGER),  # p: the expansion is in powers of h^p
    ("table", f64[MOST_COLUMNS, "n"]),  # T_jk - y_0, last row first
    ("total", f64["n"]),  # y - y_0 at the end of a row
    ("current", INTEGER),  # the row to compute
    ("least", INTEGER),  # smallest and largest number of columns
    ("most", INTEGER),
    ("target", INTEGER),  # target number of columns
    ("reached", INTEGER),  # number of columns of the last attempt
    ("overhead", FLOAT),  # work of a basic step, of a row, and of a step of a row
    ("row_cost", FLOAT),
    ("step_cost", FLOAT),
    ("iterations", INTEGER),  # Newton iterations in this basic step, and number of Euler steps that used them
    ("iterated", INTEGER),
    ("work", f64[MOST_COLUMNS + 1]),  # work per unit step
    ("size", f64[MOST_COLUMNS + 1]),  # step size for each column
    ("rough", INTEGER),  # whether the error of the polynomial determined that of the step
    ("climbs", INTEGER),  # whether additional columns are tried for the polynomial
    ("failed", FLOAT),  # the size of the last rejected step, relaxed gradually
)
"""Record fields needed by the extrapolation table and the choice of the order."""

_SMALLEST, _LARGEST = 0.1, 4.0  # step size factors lie between s/4 and 4/s, s = 0.1^(1/k); here 0.1 and 4
_FEWER, _MORE = 0.7, 0.9  # ratios of the work with one column less or more at which the order changes
_SAFETY, _SHARE = 0.93, 0.6
_CAREFUL, _FORGETTING = 0.8, 1.3
_FAILED = 0.5  # factor by which a step is shortened if the equations cannot be evaluated
_GAIN = 1.5  # step ratio for which one more column is tried
_HIGHEST = 8  # power of h in the error of the polynomial

_call = caller(ATTEMPT)


@part
def begin_table(run, method):
    """Initial number of columns for the tolerance."""
    digits = np.log10(max(wrms(run.y, run.inverse_weights), 1.0))
    columns = int((0.6 * digits + 1.5) / method.power) + method.power - 1
    method.target = max(method.least, min(method.most - 1, columns))


@part
def fill_table(run, method, address, t, h):
    """Compute rows of the table until the error is small enough, or convergence is hopeless."""
    n = run.n
    start, y, table = differences(run)[0], run.y, method.table
    method.iterations, method.iterated = 0, 0
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
        run.order = method.power * k
        status = _call(method.measure, address, t, h)
        if status != 0:
            _give_up(run, method, h)
            return status
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
def count_polynomial(run, method, error):
    """Use the error of the polynomial as that of the step if it is larger."""
    method.rough = 1 if error > run.error_of_step else 0
    if method.rough:
        run.error_of_step = error


@part
def _extend(run, method):
    """Add a row to the table from the sum of its steps; table[0] becomes T_jj, error T_jj - T_j,j-1."""
    n, j = run.n, method.current
    numbers, table = method.numbers, method.table
    total, error = method.total, run.error
    for i in range(n):
        table[j, i] = total[i]
        error[i] = 0.0
    for k in range(j, 0, -1):
        factor = 1.0 / (power(numbers[j] / numbers[k - 1], method.power) - 1.0)
        for i in range(n):
            change = (table[k, i] - table[k - 1, i]) * factor
            table[k - 1, i] = table[k, i] + change
            error[i] = change


@part
def _work(method, k):
    """Work of k rows, with the iterations used in a step."""
    numbers, steps = method.numbers, 0.0
    for j in range(k):
        steps += numbers[j]
    each = method.iterations / method.iterated if method.iterated > 0 else 1.0
    return method.overhead + method.row_cost * k + method.step_cost * each * steps


@part
def _judge_column(run, method, h, k):
    """The step size for column k from its error, and the work per unit step."""
    work, size = method.work, method.size
    exponent = 1.0 / min(method.power * (k - 1) + 1, _HIGHEST)
    least = _SMALLEST**exponent
    quotient = (max(run.error_of_step, 1e-30) / _SHARE) ** exponent / _SAFETY
    size[k] = abs(h) / min(_LARGEST / least, max(least / _LARGEST, quotient))
    work[k] = _work(method, k) / size[k]


@part
def _is_hopeless(run, method, k):
    """Whether the remaining rows cannot suffice, given the maximum gain of each."""
    numbers, error, target = method.numbers, run.error_of_step, method.target
    if k == target - 1 and target < method.most:
        return error > power(numbers[target] * numbers[target - 1] / (numbers[0] * numbers[0]), 2 * method.power)
    if k == target and target < method.most:
        return error > power(numbers[target] / numbers[0], 2 * method.power)
    return False


@part
def _shorten(run, method, h):
    """Repeat a step whose error was too large, with the cheaper of two columns."""
    work, size = method.work, method.size
    k = max(2, min(method.target, method.reached))
    if k > max(2, method.least) and work[k - 1] < _FEWER * work[k]:
        k -= 1
    method.target = max(method.least, k)
    run.h = run.sign * min(size[k], 0.8 * abs(h))
    method.failed = abs(h)


@part
def _give_up(run, method, h):
    """Use a much shorter step of the same order, since rows diverge or cannot be computed."""
    run.h = _FAILED * h
    method.failed = abs(h)
    run.error_of_step = max(run.error_of_step, 2.0)


@part
def next_step(run, method, h):
    """Order and size of the next step: the column with the least work per unit step (Hairer, Wanner IV.9)."""
    work, size = method.work, method.size
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
    if method.rough and method.power * (k - 1) + 1 >= _HIGHEST:  # more columns do not improve the polynomial
        best = min(best, k)
    best = max(least, min(best, most))
    if run.rejected:
        best = min(best, max(k, least))
        new = min(abs(h), size[best])
    elif best <= k:
        new = size[best]
    else:
        new = size[k] * (1.0 if method.rough else _work(method, best) / _work(method, k))
    # if the polynomial limits the step, the error estimate does not justify more columns next time
    gains = method.climbs and method.rough and best > k and (k == 2 or size[k] > _GAIN * size[k - 1])
    method.target = min(best + 1, most) if gains else best
    if method.failed > 0.0:  # the error need not behave like a power of h: do not retry a failed size immediately
        new = min(new, _CAREFUL * method.failed)
        method.failed *= _FORGETTING
    run.h = run.sign * new
