"""A basic step of extrapolated Euler methods in compiled code, and its dense output.

The error of a step is the difference of the last two entries of a row or the error of the polynomial, whichever is
larger.

Backward differences of the Euler steps of a row, divided by h^k, approximate derivatives of y with an expansion in h,
and are extrapolated like y (Hairer, Ostermann, Numer. Math. 58 (1990) 419-439; SEULEX). The polynomial of a step
interpolates value and derivatives at its end; at its start those from the end of the previous step, or just the value
in the first step; and, if all rows but one have an even number of implicit Euler steps, value and slope at midstep. Its
degree is at most 7.
"""

from __future__ import annotations

from daedal.kernels.compilation import caller, entry, part
from daedal.kernels.records import floats, local_words, record_at
from daedal.kernels.system import HOOK_CHANGED
from daedal.kernels.vectors import power
from daedal.methods.extrapolation.extrapolation_control import begin_table, count_polynomial, fill_table, next_step
from daedal.methods.extrapolation.extrapolation_euler import DIFFERENCES, EXTRAPOLATION, IMPLICIT, MIDDLE
from daedal.methods.extrapolation.extrapolation_sequences import MOST_COLUMNS
from daedal.methods.one_step import ATTEMPT, close_polynomial, give_to_owner, size_of_error
from daedal.methods.partial_derivatives import after_first_look
from daedal.methods.run_record import RUN, STEP, differences

# --- dense output -----------------------------------------------------------------------------------------------------

_SHARE = 0.25  # weight of the difference from the polynomial of one degree less, as the error estimate
_NOISE, _INNER_NOISE = 2.0, 16.0  # factor by which round-off may exceed its estimate, for values and derivatives
_POINTS = 32  # sample points for the maximum of a node polynomial
_NODES = 8
_room_for_nodes, _room_for_values = local_words(_NODES), local_words(_NODES)


@part
def interpolate(system, run, method, h):
    """Derivatives at the end and the midpoint; the error of the polynomial in units of the tolerance.

    The error is measured without the highest derivative at the end.
    """
    n = run.n
    ends, starts, inner, table = method.end, method.start, method.inner, method.table
    error, slope = run.error, run.slope
    _count_conditions(method)
    for i in range(n):
        ends[0, i] = table[0, i]
    for order in range(1, DIFFERENCES):
        _extrapolate(method, n, MIDDLE + order, order, ends[order])
    for order in range(method.middle):
        _extrapolate(method, n, order, -1, inner[order])
    for order in range(1, method.left):
        scale = power(h / method.scale, order)
        for i in range(n):
            starts[order, i] *= scale
    method.scale = h
    for i in range(n):
        slope[i] = ends[1, i] / h
    nodes, values = floats(_room_for_nodes(), _NODES), floats(_room_for_values(), _NODES)
    degree = set_nodes(method, nodes)
    largest = largest_product(nodes, degree)
    for i in range(n):
        divided_differences(values, nodes, degree, ends[:, i], inner[:, i], starts[:, i])
        error[i] = values[degree] * largest
    _subtract(run, method, _INNER_NOISE)
    return _SHARE * size_of_error(system, run)


@part
def leave_out_noise(run, method):
    """Treat errors that may be round-off as zero, so that they do not shorten the step."""
    _subtract(run, method, _NOISE)


@part
def _subtract(run, method, factor):
    error, noise = run.error, method.noise
    factor *= method.amplification[method.reached - 1]
    for i in range(run.n):
        error[i] = max(abs(error[i]) - factor * abs(noise[i]), 0.0)


@part
def _count_conditions(method):
    """Number of conditions of the polynomial at the end and at midstep."""
    numbers, k, even = method.numbers, method.reached, 0
    for j in range(k):
        even += 1 - numbers[j] % 2
    method.middle = MIDDLE if even >= max(k - 1, 1) and method.scheme == IMPLICIT else 0
    method.right = min(DIFFERENCES - 1 if method.middle > 0 else DIFFERENCES, numbers[k - 1] + 1)
    method.left = min(method.left, method.right)


@part
def _extrapolate(method, n, kind, order, target):
    """H^order y^(order) at the end of the step, from the first rows with enough steps; order -1 uses even rows only.

    It uses as many rows as the order of the result requires; each has one step more than differences, since the first
    step of a row may be perturbed.
    """
    numbers, rates, k, first = method.numbers, method.derivatives, method.reached, 0
    while order > 0 and first < k - 1 and numbers[first] <= order:
        first += 1
    last = k if order < 0 else min(k, first + max(k - order + 1, 2))
    for i in range(n):
        target[i] = 0.0
    for j in range(first, last):
        if order < 0 and numbers[j] % 2 == 1:
            continue
        weight = 1.0
        for l in range(first, last):
            if l != j and (order > 0 or numbers[l] % 2 == 0):
                weight *= numbers[j] / (numbers[j] - numbers[l])
        for i in range(n):
            target[i] += weight * rates[MOST_COLUMNS * kind + j, i]


@part
def set_nodes(method, nodes):
    """The nodes of the polynomial in theta, starting with those at the end; its degree."""
    count = 0
    for q in range(method.right + method.middle + method.left):
        nodes[q] = 1.0 if q < method.right else 0.5 if q < method.right + method.middle else 0.0
        count += 1
    return count - 1


@part
def largest_product(nodes, degree):
    """The maximum over the step of the product over all nodes but the first."""
    largest = 0.0
    for p in range(1, _POINTS):
        value = 1.0
        for q in range(1, degree + 1):
            value *= p / _POINTS - nodes[q]
        largest = max(largest, abs(value))
    return largest


@part
def divided_differences(values, nodes, degree, ends, inner, starts):
    """Newton coefficients of the polynomial with these nodes; equal nodes are adjacent."""
    for q in range(degree + 1):
        values[q] = ends[0] if nodes[q] == 1.0 else inner[0] if nodes[q] == 0.5 else 0.0
    factorial = 1.0
    for order in range(1, degree + 1):
        factorial *= order
        for q in range(degree, order - 1, -1):
            distance = nodes[q] - nodes[q - order]
            if distance != 0.0:
                values[q] = (values[q] - values[q - 1]) / distance
            else:
                derivative = ends[order] if nodes[q] == 1.0 else inner[order] if nodes[q] == 0.5 else starts[order]
                values[q] = derivative / factorial


@part
def keep_polynomial(run, method, h):
    """The polynomial of the step, y' at its end, and the derivatives there for the next one."""
    ends, starts = method.end, method.start
    nodes = floats(_room_for_nodes(), _NODES)
    degree = set_nodes(method, nodes)
    store_polynomial(run, h, nodes, degree, ends, method.inner, starts)
    yp, slope = run.yp, run.slope
    for i in range(run.n):
        yp[i] = slope[i]
        for order in range(1, DIFFERENCES):
            starts[order, i] = ends[order, i]
    method.left = method.right


@part
def store_polynomial(run, h, nodes, degree, ends, inner, starts):
    """The polynomial of y - y_0 with these nodes by its values at equidistant points, in Newton form."""
    n, phi, y, values = run.n, differences(run), run.y, floats(_room_for_values(), _NODES)
    for i in range(n):
        start = phi[0, i]
        divided_differences(values, nodes, degree, ends[:, i], inner[:, i], starts[:, i])
        phi[0, i] = y[i]
        for q in range(1, degree):
            value = values[degree]
            for k in range(degree - 1, -1, -1):
                value = values[k] + value * (1.0 - q / degree - nodes[k])
            phi[q, i] = start + value
        phi[degree, i] = start
    close_polynomial(run, h, degree)


# --- steps ------------------------------------------------------------------------------------------------------------


_call = caller(ATTEMPT)


@entry(STEP)
def extrapolation_begin(address):
    """Choose the initial number of columns, and check, from the derivatives at the start, that the index is 0 or 1."""
    run = record_at(address, RUN)
    method = record_at(run.method, EXTRAPOLATION)
    begin_table(run, method)
    status = _call(method.linearise, address, run.t, run.h)
    f_y, f_yp = floats(method.f_y, method.entries), floats(method.f_yp, method.entries)
    return after_first_look(status, method, f_y, f_yp, run.n)


@entry(ATTEMPT)
def extrapolation_attempt(address, t, h):
    """Compute rows of the table until the error is small enough, or convergence is hopeless."""
    run = record_at(address, RUN)
    method = record_at(run.method, EXTRAPOLATION)
    if not method.jacobian_known:
        status = _call(method.linearise, address, t, h)
        if status != 0:
            return status
    return fill_table(run, method, address, t, h)


@entry(ATTEMPT)
def extrapolation_accept(address, t, h):
    """Store the polynomial of the step, and choose size and order of the next one."""
    run = record_at(address, RUN)
    return _accept(run.system, run, record_at(run.method, EXTRAPOLATION), t, h)


@entry(ATTEMPT)
def extrapolation_measure(address, t, h):
    """Compute the error of the last column, and of the polynomial if the former is small enough."""
    run = record_at(address, RUN)
    return _measure(run.system, run, record_at(run.method, EXTRAPOLATION), h)


@part
def _measure(system, run, method, h):
    leave_out_noise(run, method)
    run.error_of_step = size_of_error(system, run)
    if run.fixed or run.error_of_step <= 1.0:
        count_polynomial(run, method, interpolate(system, run, method, h))
    return 0


@part
def _accept(system, run, method, t, h):
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status != 0 and status != HOOK_CHANGED:
            return status
    keep_polynomial(run, method, h)
    method.jacobian_known = 0
    if not run.fixed:
        next_step(run, method, h)
    return 0
