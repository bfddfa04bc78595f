"""Observed orders against the predictions of the analyser, on nonlinear problems of index 1, 2 and 3.

The runs are made here, with Newton's method on all stages at once and derivatives by complex steps, so that nothing but
the coefficients comes from the package.
"""

import math

import numpy as np
import pytest

import daedal

END = 0.5
LOWER, UPPER = 0.4, 0.5  # what the logarithm of a quotient of errors may miss the order by


def semi_explicit(t, y, yp):
    x, z = np.sin(t) + 2.0, np.exp(-t) + t
    return [yp[0] + y[0] * y[1] - np.cos(t) - x * z, y[1] + y[1] ** 3 + y[0] ** 2 - z - z**3 - x**2]


def fully_implicit(t, y, yp):
    """Brenan, Campbell and Petzold (4.3.33)."""
    return [yp[0] - t * yp[1] + y[0] - (1.0 + t) * y[1], y[1] - np.sin(t)]


def hessenberg_2(t, y, yp):
    """Jay: nonlinear in z."""
    return [
        yp[0] - y[0] * y[1] ** 2 * y[2] ** 2,
        yp[1] - y[0] ** 2 * y[1] ** 2 + 3.0 * y[1] ** 2 * y[2],
        y[0] ** 2 * y[1] - 1.0,
    ]


def hessenberg_3(t, y, yp):
    """Jay: x2 = y[:2], x1 = y[2:4], x3 = y[4]."""
    return [
        yp[0] - 2.0 * y[0] * y[1] * y[2] * y[3],
        yp[1] + y[0] * y[1] * y[3] ** 2,
        yp[2] - (y[0] * y[1] + y[2] * y[3]) * y[4],
        yp[3] + y[0] * y[1] ** 2 * y[3] ** 2 * y[4],
        y[0] * y[1] ** 2 - 1.0,
    ]


EXPONENTS = {hessenberg_2: [1.0, -2.0, 2.0], hessenberg_3: [2.0, -1.0, 2.0, -1.0, 1.0]}


def solution(problem, t):
    """y and y'."""
    if problem is semi_explicit:
        return np.array([np.sin(t) + 2.0, np.exp(-t) + t]), np.array([np.cos(t), 1.0 - np.exp(-t)])
    if problem is fully_implicit:
        x, xp = np.exp(-t) + t * np.sin(t), -np.exp(-t) + np.sin(t) + t * np.cos(t)
        return np.array([x, np.sin(t)]), np.array([xp, np.cos(t)])
    k = np.array(EXPONENTS[problem])
    return np.exp(k * t), k * np.exp(k * t)


def jacobians(problem, t, y, yp):
    """dF/dy and dF/dy' by complex steps."""
    turned = 1e-30j * np.eye(y.size)
    by_y = [np.imag(problem(t, y + e, yp)) / 1e-30 for e in turned]
    by_yp = [np.imag(problem(t, y, yp + e)) / 1e-30 for e in turned]
    return np.array(by_y).T, np.array(by_yp).T


def errors(problem, name, steps):
    """At the end, of each variable."""
    method = daedal.formula(name).floats()
    a, b, c = method["a"], method["b"], method["c"]
    y, h = solution(problem, 0.0)[0], END / steps
    for k in range(steps):
        times = (k + c) * h
        slopes = np.array([solution(problem, t)[1] for t in times])
        for _ in range(20):
            stages = y + h * a @ slopes
            residual = np.array([problem(*arguments) for arguments in zip(times, stages, slopes)])
            matrix = np.zeros((b.size, y.size, b.size, y.size))
            for i, arguments in enumerate(zip(times, stages, slopes)):
                by_y, by_yp = jacobians(problem, *arguments)
                matrix[i] = h * np.einsum("kl,j->kjl", by_y, a[i])
                matrix[i, :, i, :] += by_yp
            change = np.linalg.solve(matrix.reshape(residual.size, -1), -residual.ravel()).reshape(slopes.shape)
            slopes = slopes + change
            if h * np.abs(change).max() < 1e-14:
                break
        y = y + h * b @ slopes
    return np.abs(y - solution(problem, END)[0])


# problem: index, its name in the predictions, {variables in the predictions: those of the problem}
CLASSES = {
    semi_explicit: (1, "x' = f, 0 = g(x, y)", {"x": [0], "y": [1]}),
    fully_implicit: (1, "F(t, y, y') = 0", {"y": [0, 1]}),
    hessenberg_2: (2, "y' = f(y, z), 0 = g(y)", {"y": [0, 1], "z": [2]}),
    hessenberg_3: (3, "x1' = f1, x2' = f2(x1, x2), 0 = f3(x2)", {"x1, x2": [0, 1, 2, 3], "x3": [4]}),
}
METHODS = [
    *("backward_euler", "sirk2", "alexander2", "sdirk2", "sdirk4", "dirk5", "sirk3", "sirk3_collocation"),
    *("extrapolation_124", "radau3", "radau5", "radau_ia3", "lobatto_iiic2", "lobatto_iiic3"),
    *("implicit_midpoint", "gauss2"),
]

FINER = {(hessenberg_2, "sdirk4"): 128}  # on coarser grids terms of order 2 and 4 cancel


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("problem", CLASSES, ids=lambda problem: problem.__name__)
def test_observed_orders_are_those_predicted(problem, name):
    index, title, classes = CLASSES[problem]
    found = {x.variables: x for x in daedal.analyse_method(name).predicted(index) if x.problem == title}
    if all(prediction.order is None for prediction in found.values()):
        return  # what happens without a guarantee is tested below
    steps = FINER.get((problem, name), 32)
    coarse, fine = errors(problem, name, steps), errors(problem, name, 2 * steps)
    for variables, rows in classes.items():
        prediction, error = found[variables], fine[rows].max()
        if error < 2e-13:
            continue
        observed = math.log2(coarse[rows].max() / error)
        assert observed > prediction.order - LOWER, variables
        if prediction.at_most is not None:
            assert observed < prediction.at_most + UPPER, variables


def test_gauss_does_not_converge_for_z_of_index_2():
    """|r| = 1: nothing is guaranteed, and z does not converge (midpoint too)."""
    for name in ("gauss2", "implicit_midpoint"):
        coarse, fine = errors(hessenberg_2, name, 16), errors(hessenberg_2, name, 32)
        assert daedal.analyse_method(name).predicted(2, "z")[0].order is None
        assert fine[2] > 0.9 * coarse[2] > 0.1


def test_a_method_without_stage_order_does_not_converge_for_x3_of_index_3():
    coarse, fine = errors(hessenberg_3, "sdirk4", 16), errors(hessenberg_3, "sdirk4", 32)
    assert daedal.analyse_method("sdirk4").predicted(3, "x3")[0].order is None and fine[4] > 0.9 * coarse[4] > 1.0
