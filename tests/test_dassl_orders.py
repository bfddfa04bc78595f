"""Orders of convergence of the BDF: constant steps for index 0 to 3, variable steps for linear systems of any index.

Sources: Brenan, Campbell and Petzold, theorems 3.1.1, 3.2.1 to 3.2.3; Gear, Hsu and Petzold for variable steps.
"""

import math

import numpy as np
import pytest

import daedal
from daedal import library
from daedal.kernels.differences import (
    COEFFICIENTS,
    LENGTH,
    ROWS,
    leading_coefficient,
    predict,
    scale_differences,
    update_coefficients,
    update_differences,
)
from daedal.kernels.records import record_at

ORDERS = range(1, 7)
# Steps on [0, 1] of the two runs that are compared: in the asymptotic range, and above rounding.
STEPS = {1: (80, 160), 2: (80, 160), 3: (80, 160), 4: (40, 80), 5: (40, 80), 6: (20, 40)}


# --- constant steps -------------------------------------------------------------------------------------------


def limit_cycle(t, y, yp):
    r = 1.0 - y[0] ** 2 - y[1] ** 2
    return [yp[0] + y[1] - y[0] * r, yp[1] - y[0] - y[1] * r]


def nonlinear_index1(t, y, yp):
    s = math.sin(t)
    return [yp[0] + y[1], y[1] ** 3 + y[1] - s**3 - s + y[0] - math.cos(t)]


def nonlinear_index2(t, y, yp):
    """y1 = exp(-t), y2 = sin t, z = cos 2t; the constraint sees z only after one differentiation."""
    d = y[2] - math.cos(2.0 * t)
    return [
        yp[0] + y[0] - (1.0 + y[1] ** 2) * d,
        yp[1] - math.cos(t) - y[0] * d,
        y[0] ** 2 + y[1] - math.exp(-2.0 * t) - math.sin(t),
    ]


def cosine_and_sine(t):
    return np.array([math.cos(t), math.sin(t)])


PROBLEMS = {
    "index 0": (daedal.ImplicitDAE(limit_cycle, 2), cosine_and_sine),
    "index 1, semi-explicit": (daedal.ImplicitDAE(nonlinear_index1, 2), cosine_and_sine),
    "index 1, fully implicit": (library.linear_index1().problem, library.linear_index1().extra["exact"]),
    "index 2, nonlinear": (
        daedal.ImplicitDAE(nonlinear_index2, 3),
        lambda t: np.array([math.exp(-t), math.sin(t), math.cos(2.0 * t)]),
    ),
    "index 2, linear": (library.hessenberg_index2().problem, library.hessenberg_index2().extra["exact"]),
    "index 3": (library.index3_chain().problem, library.index3_chain().extra["exact"]),
}
# Variables in which the order is seen, by class; the others are reproduced exactly.
CLASSES = {
    "index 0": {"differential": [0, 1]},
    "index 1, semi-explicit": {"differential": [0], "algebraic": [1]},
    "index 1, fully implicit": {"differential": [0]},
    "index 2, nonlinear": {"differential": [0, 1], "algebraic": [2]},
    "index 2, linear": {"differential": [0, 1], "algebraic": [2]},
    "index 3": {"second": [1], "third": [2]},
}


def errors(problem, exact, k, steps):
    """Largest error of each variable over the last fifth of [0, 1], from exact starting values."""
    sol = daedal.solve(
        problem,
        (0.0, 1.0),
        (exact(0.0), None),
        fixed_step=1.0 / steps,
        max_order=k,
        starting_values=exact,
        method="dassl",
    )
    late = sol.t > 0.8
    return np.max(np.abs(sol.y - np.array([exact(t) for t in sol.t]).T)[:, late], axis=1)


@pytest.mark.parametrize(
    ("name", "kind", "k"),
    # For index 3 rounding errors grow like h^-2 and hide the orders 5 and 6.
    [(name, kind, k) for name in CLASSES for kind in CLASSES[name] for k in ORDERS if name != "index 3" or k < 5],
)
def test_constant_step_bdf_has_its_order(name, kind, k):
    variables = CLASSES[name][kind]
    problem, exact = PROBLEMS[name]
    coarse, fine = (errors(problem, exact, k, steps)[variables] for steps in STEPS[k])
    np.testing.assert_allclose(np.log2(coarse / fine), k, atol=0.3)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("name", ["index 0", "index 1, semi-explicit"])
def test_starting_values_that_are_not_given_are_accurate_enough_for_the_order(name, k):
    problem, exact = PROBLEMS[name]
    error = []
    for steps in STEPS[k]:
        sol = daedal.solve(problem, (0.0, 1.0), (exact(0.0), None), fixed_step=1.0 / steps, max_order=k, method="dassl")
        assert sol.t.size == steps + 1
        error.append(np.max(np.abs(sol.y[:, -1] - exact(1.0))))
    assert np.log2(error[0] / error[1]) == pytest.approx(k, abs=0.3)


def test_constant_steps_are_what_was_asked_for():
    problem, exact = PROBLEMS["index 0"]
    options = {"fixed_step": 0.125, "max_order": 2, "starting_values": exact}
    sol = daedal.solve(problem, (0.0, 2.0), (exact(0.0), None), **options, method="dassl")
    np.testing.assert_array_equal(sol.t, 0.125 * np.arange(17))
    np.testing.assert_array_equal(sol.history.h, 0.125)
    np.testing.assert_array_equal(sol.history.order, 2)
    backward = daedal.solve(problem, (2.0, 0.0), (exact(2.0), None), **options, method="dassl")
    np.testing.assert_allclose(backward.t, sol.t[::-1], atol=1e-15)
    np.testing.assert_allclose(backward.y[:, -1], exact(0.0), atol=0.1)


@pytest.mark.parametrize("k", range(1, 5))
def test_algebraic_part_forgets_its_starting_values_after_some_steps(k):
    """BCP theorem 3.1.1: for index 3 after 2 k + 1 steps and not before."""
    model = library.index3_chain()
    h, rng = 0.05, np.random.default_rng(0)
    runs = [
        daedal.solve(
            model.problem,
            model.t_span,
            (values[:, 0], None),
            fixed_step=h,
            max_order=k,
            starting_values=values,
            method="dassl",
        ).y
        for values in (rng.normal(size=(3, k)), rng.normal(size=(3, k)))
    ]
    difference = np.max(np.abs(runs[0] - runs[1]), axis=0)
    computed_from = k  # the columns before it are the starting values
    assert difference[computed_from + 2 * k - 1] > 1e-3
    assert np.max(difference[computed_from + 2 * k :]) < 1e-9


# --- variable steps -------------------------------------------------------------------------------------------

# A mesh that is not smooth: neighbouring steps differ by up to 60 %, however fine it is.
PATTERN = np.array([1.0, 0.7, 1.1, 0.9, 1.25, 0.8, 1.15])


def _predict(coefficients, psi, phi, h, k, y, yp):
    c = record_at(coefficients.ctypes.data, COEFFICIENTS)
    update_coefficients(c, psi, h, k)
    scale_differences(phi, c.beta, 1, k)
    predict(phi, c.gamma, k, y, yp)
    return leading_coefficient(k) / h


def _accept(phi, k, correction):
    update_differences(phi, k, True, correction)


def linear_dae(index):
    """A x' + B x = f(t): an oscillator and a nilpotent chain of length `index`, mixed by constant matrices."""
    rng = np.random.default_rng(index)
    n = 2 + index
    P, Q = np.eye(n) + 0.3 * rng.normal(size=(2, n, n))
    E, J = np.zeros((n, n)), np.eye(n)
    E[:2, :2] = np.eye(2)
    J[:2, :2] = [[0.5, 1.0], [-1.0, 0.5]]
    for i in range(3, n):
        E[i, i - 1] = 1.0

    def canonical(t, derivative=0):
        phase = derivative * math.pi / 2.0
        return np.array([math.sin(t + 0.3 * i + phase) for i in range(n)])

    def forcing(t):
        return P @ (E @ canonical(t, 1) + J @ canonical(t))

    def exact(t, derivative=0):
        return np.linalg.solve(Q, canonical(t, derivative))

    return P @ E @ Q, P @ J @ Q, forcing, exact


def variable_step_error(index, k, steps):
    """Largest error on the second half of [0, 2], with exact values at the first k + 1 points."""
    A, B, forcing, exact = linear_dae(index)
    n = A.shape[0]
    h = np.resize(PATTERN, steps)
    h *= 2.0 / h.sum()
    t = np.concatenate([[0.0], np.cumsum(h)])
    coefficients, phi = np.zeros(1, dtype=COEFFICIENTS), np.zeros((ROWS, n))
    y, yp = np.zeros(n), np.zeros(n)
    phi[0], phi[1] = exact(0.0), h[0] * exact(0.0, 1)
    psi = np.full(LENGTH, h[0])
    largest = 0.0
    for i in range(steps):
        order = min(i + 1, k)
        cj = _predict(coefficients, psi, phi, h[i], order, y, yp)
        new = exact(t[i + 1])
        if i > k:
            new = np.linalg.solve(cj * A + B, forcing(t[i + 1]) - A @ (yp - cj * y))
        _accept(phi, order, new - y)
        if t[i + 1] > 1.0:
            largest = max(largest, float(np.max(np.abs(new - exact(t[i + 1])))))
    return largest


@pytest.mark.parametrize("k", range(1, 6))
@pytest.mark.parametrize("index", [0, 1, 2, 3])
def test_variable_step_bdf_has_order_min_k_and_k_minus_index_plus_2(index, k):
    steps = 7 * np.array([16, 32, 64] if k < 4 else [4, 8, 16])
    error = [variable_step_error(index, k, m) for m in steps]
    slope = -np.polyfit(np.log(steps), np.log(error), 1)[0]
    assert slope == pytest.approx(min(k, k - index + 2), abs=0.3)


@pytest.mark.parametrize("ratio", [0.25, 0.5, 2.0])
def test_implicit_euler_misses_the_third_variable_after_a_step_change(ratio):
    """x3 tends to (1 + h_n / h_{n+1}) / 2 times the truth when the step size changes, however short the steps."""
    h = 1e-3
    times = np.array([0.5, 0.5 + h, 0.5 + 2.0 * h, 0.5 + 2.0 * h + ratio * h])
    coefficients, phi, y, yp = np.zeros(1, dtype=COEFFICIENTS), np.zeros((ROWS, 3)), np.zeros(3), np.zeros(3)
    A = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    B = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
    phi[0] = [math.sin(0.5), math.cos(0.5), -math.sin(0.5)]
    psi = np.full(LENGTH, h)
    for i in range(3):
        step = times[i + 1] - times[i]
        cj = _predict(coefficients, psi, phi, step, 1, y, yp)
        new = np.linalg.solve(cj * A + B, np.array([0.0, 0.0, math.sin(times[i + 1])]) - A @ (yp - cj * y))
        _accept(phi, 1, new - y)
    assert new[2] / -math.sin(times[-1]) == pytest.approx(0.5 * (1.0 + 1.0 / ratio), rel=2e-2)
