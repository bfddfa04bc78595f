"""Polynomials in Newton form: the dense output of every method.

A step stores a polynomial of degree k about its end point t_n,

    y(t) = sum_j coefficient_j  prod_{i<j} (t - t_n + psi_{i-1}) / psi_i,      psi_{-1} = 0,

which is the interpolant of BCP section 5.2.1 when the coefficients are the modified divided differences.
"""

from daedal.kernels.compilation import entry, part
from daedal.kernels.signatures import f64, i64, void


@part
def newton_polynomial(t, t_end, psi, coefficients, k, y, yp):
    """Value and derivative at t; `coefficients` has k + 1 rows."""
    n = y.size
    x = t - t_end
    for i in range(n):
        y[i] = coefficients[0, i]
        yp[i] = 0.0
    c, d = 1.0, 0.0
    gamma = x / psi[0]
    for j in range(1, k + 1):
        d = d * gamma + c / psi[j - 1]
        c *= gamma
        gamma = (x + psi[j - 1]) / psi[j]
        for i in range(n):
            y[i] += c * coefficients[j, i]
            yp[i] += d * coefficients[j, i]


@entry(void(f64[:], f64[:], i64[:], i64[:], f64[:, :], f64[:, :], i64, f64[:, :], f64[:, :]))
def piecewise_polynomial(times, ends, starts, orders, psi, coefficients, forward, y, yp):
    """Evaluate the polynomials of consecutive steps at sorted `times`; `ends` are the end points of the steps."""
    step = 0
    last = ends.size - 1
    for m in range(times.size):
        t = times[m]
        if forward:
            while step < last and ends[step] < t:
                step += 1
        else:
            while step < last and ends[step] > t:
                step += 1
        k = orders[step]
        rows = coefficients[starts[step] : starts[step] + k + 1]
        newton_polynomial(t, ends[step], psi[step], rows, k, y[m], yp[m])


@entry(void(f64[:], i64[:], f64[:], i64[:], i64[:], f64[:, :], f64[:, :], f64[:, :], f64[:, :]))
def polynomials_of_steps(times, steps, ends, starts, orders, psi, coefficients, y, yp):
    """Evaluate the polynomials of ``steps[m]`` at ``times[m]``."""
    for m in range(times.size):
        step = steps[m]
        k = orders[step]
        rows = coefficients[starts[step] : starts[step] + k + 1]
        newton_polynomial(times[m], ends[step], psi[step], rows, k, y[m], yp[m])
