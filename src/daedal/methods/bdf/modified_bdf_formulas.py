r"""Formulas for x' and x'' at the end of a step from x and the history: the families of modified BDF.

All are written relative to the extrapolation p of the history, in the form

    x' = x'_0 + c_1 e,    x'' = x''_0 + c_2 e,    e = x - p(t_n).

* DIRECT of order k: x'' is the second derivative of the polynomial of degree k + 1 through x_n, ..., x_{n-k-1}. With
  the divided differences D_i of the past and N_i(t) = prod_{l<i} (t - t_{n-1-l}),

      x_0 = p(t_n), x''_0 = p''(t_n),    p = sum_{i <= k+1} D_i N_i,
      c_2 = s_1^2 - s_2,                 s_j = sum_{i=1}^{k+1} 1 / (t_n - t_{n-i})^j.

  x' is the first derivative of the same polynomial (c_1 = s_1) for k <= 3, and BDF of order k for k = 4, 5, where the
  former is unstable for strongly damped oscillations. For k = 1 this is Sand's modified Euler method, and for all k its
  coefficients have no poles. Second differences of positions that satisfy the constraints are accurate to order k on
  any grid, so multipliers never have O(1) errors.

* SAND of order k = 1, 2 (Wunderlich (3.27), (3.28)): x' by BDF of order k; x'' = sum_i alpha_i x'[t_n, ..., t_{n-i}],
  alpha such that the two formulas together are exact for polynomials of degree k + 1, given the formula of each past
  velocity (Table 3.3, here by the 2 x 2 system (3.26)).

* ORDINARY: BDF of order k twice, which is BDF for the companion form of first order. For comparison only: its
  multipliers have O(1) errors after every change of step size or order.

At the start t_0 counts three times as a node, with x_0, x'_0 and x''_0 / 2 as divided differences.
"""

from __future__ import annotations

from daedal.kernels.compilation import part
from daedal.kernels.vectors import power

DIRECT, SAND, ORDINARY = 0, 1, 2
MAX_ORDER = 5
HIGHEST_WITH_OWN_VELOCITY = 3  # up to this order x' uses the polynomial of x''
ROWS = MAX_ORDER + 5  # number of divided differences stored
PAST = 6  # number of velocities stored
_EXACT = 3  # the order of a given velocity
_POLE = 0.03  # determinants smaller than this, relative to their terms, count as poles


@part
def newton_basis(t, nodes, count, values, first, second):
    """N_i(t) = prod_{l<i} (t - t_l) with two derivatives, i < count."""
    values[0], first[0], second[0] = 1.0, 0.0, 0.0
    for i in range(1, count):
        x = t - nodes[i - 1]
        values[i] = values[i - 1] * x
        first[i] = first[i - 1] * x + values[i - 1]
        second[i] = second[i - 1] * x + 2.0 * first[i - 1]


@part
def leading(t, nodes, count):
    """sum 1/(t - t_i) and sum 1/(t - t_i)^2 over the last `count` nodes."""
    single, square = 0.0, 0.0
    for i in range(count):
        inverse = 1.0 / (t - nodes[i])
        single += inverse
        square += inverse * inverse
    return single, square


@part
def _bdf_of_power(t, nodes, k, p, origin):
    """The BDF of order k at t applied to (t - origin)^p; `nodes` are the ones before t. Exact for k >= 3."""
    x = t - origin
    if k >= _EXACT:
        return p * power(x, p - 1)
    x1 = nodes[0] - origin
    slope = (power(x, p) - power(x1, p)) / (x - x1)
    if k == 1:
        return slope
    x2 = nodes[1] - origin
    before = (power(x1, p) - power(x2, p)) / (x1 - x2)
    return slope + (x - x1) * (slope - before) / (x - x2)


@part
def _alpha(t, nodes, k, orders):
    """alpha_1, alpha_2 of (3.26) for order k, given the orders of the past velocities; found is False at a pole."""
    t1, t2 = nodes[0], nodes[1]
    w0 = _bdf_of_power(t, nodes, k, 2, t)
    w1 = _bdf_of_power(t1, nodes[1:], orders[0], 2, t)
    slope = (w0 - w1) / (t - t1)
    if k == 1:
        return True, 2.0 / slope, 0.0
    w2 = _bdf_of_power(t2, nodes[2:], orders[1], 2, t)
    bend = (slope - (w1 - w2) / (t1 - t2)) / (t - t2)
    u0 = _bdf_of_power(t, nodes, k, 3, t)
    u1 = _bdf_of_power(t1, nodes[1:], orders[0], 3, t)
    u2 = _bdf_of_power(t2, nodes[2:], orders[1], 3, t)
    slope_u, before_u = (u0 - u1) / (t - t1), (u1 - u2) / (t1 - t2)
    bend_u = (slope_u - before_u) / (t - t2)
    determinant = slope * bend_u - bend * slope_u
    size = abs(slope) * (abs(slope_u) + abs(before_u)) / abs(t - t2) + abs(bend * slope_u)
    if not abs(determinant) > _POLE * size:
        return False, 0.0, 0.0
    return True, 2.0 * bend_u / determinant, -2.0 * slope_u / determinant


@part
def acceleration_weights(family, t, nodes, k, orders):
    """beta_0, beta_1, beta_2 of x''_n = beta_0 x'_n + beta_1 x'_{n-1} + beta_2 x'_{n-2}; found is False at a pole."""
    h = t - nodes[0]
    if family == SAND:
        found, first, second = _alpha(t, nodes, k, orders)
    else:
        found, first, second = True, 1.0, h if k == 2 else 0.0
    if k == 1 or not found:
        return found, first / h, -first / h, 0.0
    before = nodes[0] - nodes[1]
    both = h + before
    second /= both
    return True, first / h + second / h, -first / h - second * (1.0 / h + 1.0 / before), second / before


@part
def formula(method, form, t, k):
    """Write x_0, x'_0, x''_0, c_1 and c_2 for a step to t with order k; False at a pole of the coefficients."""
    n = form.n
    nodes, dd, base = method.nodes, method.dd, form.base
    values, first, second = method.basis, method.basis1, method.basis2
    # the thesis predicts with degree k, through k + 1 points
    degree = min(k if method.thesis else k + 1, method.points - 1)
    newton_basis(t, nodes, k + 2, values, first, second)
    for i in range(n):
        x, xp, xpp = dd[0, i], 0.0, 0.0
        for j in range(1, degree + 1):
            x += dd[j, i] * values[j]
            xp += dd[j, i] * first[j]
            xpp += dd[j, i] * second[j]
        base[0, i], base[1, i], base[2, i] = x, xp, xpp
    if method.family == DIRECT:
        form.c1, square = leading(t, nodes, k + 1)
        form.c2 = form.c1 * form.c1 - square
        if k > HIGHEST_WITH_OWN_VELOCITY:
            _ordinary_velocity(method, form, t, k)
        return True
    _ordinary_velocity(method, form, t, k)
    orders, past = method.velocity_order, method.velocities
    found, b0, b1, b2 = acceleration_weights(method.family, t, nodes, k, orders)
    form.c2 = b0 * form.c1
    for i in range(n):
        base[2, i] = b0 * base[1, i] + b1 * past[0, i] + b2 * past[1, i]
    return found


@part
def _ordinary_velocity(method, form, t, k):
    """x' by BDF of order k: the derivative of the polynomial through the extrapolated value and the last k points."""
    n = form.n
    nodes, dd, base = method.nodes, method.dd, form.base
    values, first = method.basis, method.basis1
    form.c1 = leading(t, nodes, k)[0]
    for i in range(n):
        x, xp = dd[0, i], 0.0
        for j in range(1, k):
            x += dd[j, i] * values[j]
            xp += dd[j, i] * first[j]
        base[1, i] = xp + form.c1 * (base[0, i] - x)


@part
def update_differences(method, form, t, x, order):
    """Update divided differences with the new point; variables of order 0 and 1 lack data at the start."""
    n = form.n
    nodes, dd, orders = method.nodes, method.dd, form.order
    rows = min(method.points + 1, ROWS)
    for i in range(n):
        above, known = x[i], method.taken + 1 + orders[i]
        for j in range(rows):
            old = dd[j, i]
            dd[j, i] = above if j <= known else 0.0
            above = (dd[j, i] - old) / (t - nodes[j])
    for j in range(ROWS - 1, 0, -1):
        nodes[j] = nodes[j - 1]
    nodes[0] = t
    method.points = rows
    velocity_order = method.velocity_order
    for j in range(PAST - 1, 0, -1):
        velocity_order[j] = velocity_order[j - 1]
    velocity_order[0] = order


@part
def error_factors(method, t, k, nodes):
    r"""Factors of the divided difference of order k + 2 in the local errors of x (order 2, order 1) and of x'.

    DIRECT differentiates a polynomial of degree k + 1, so x'' has the error D_{k+2} 2 s_1 w and x' D_{k+2} w, with w =
    prod_{i=1}^{k+1} (t_n - t_{n-i}); hence x has the error D_{k+2} 2 s_1 w / c_2, or D_{k+2} w / s_1 where only x'
    occurs. For SAND the error of x'' follows from the formula applied to t^{k+2}. The difference uses computed values,
    which contain the error: hence the divisor 1 + c. The error of x' is the effect of the error of x'' over the step, h
    times that; s_1 times the error of x would not vanish with h after a change of step size. `nodes` are those before
    t.
    """
    single, square = leading(t, nodes, k + 1)
    product = 1.0
    for i in range(k + 1):
        product *= t - nodes[i]
    if method.family == DIRECT:
        c2 = single * single - square
        defect = 2.0 * single * product
    else:
        orders = method.velocity_order
        _, b0, b1, b2 = acceleration_weights(method.family, t, nodes, k, orders)
        defect = b0 * _bdf_of_power(t, nodes, k, k + 2, t)
        defect += b1 * _bdf_of_power(nodes[0], nodes[1:], orders[0], k + 2, t)
        if k == 2:
            defect += b2 * _bdf_of_power(nodes[1], nodes[2:], orders[1], k + 2, t)
        c2 = b0 * leading(t, nodes, k)[0]
    second = defect / c2
    damped = 1.0 + abs(second) / abs(product * (t - nodes[k + 1]))
    return second / damped, product / single, (t - nodes[0]) * defect / damped
