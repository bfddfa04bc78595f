"""Observed orders of implicit Runge-Kutta methods against the predictions of the analyser, for index 1, 2 and 3.

Every tableau that has a name is run with constant steps on nonlinear problems with known solutions.
"""

import functools
import math

import numpy as np
import pytest

import daedal
from daedal.methods import ImplicitRungeKutta, RungeKuttaTableau
from daedal.methods.named_formulas import formula_names

END = 0.5
LOWER, UPPER = 0.42, 0.5  # what the logarithm of a quotient of errors may miss the order by
STEPS = (2, 4, 8, 16, 32, 64)


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


# problem: index, its name in the predictions, {variables in the predictions: (those of the problem, round-off)}
CLASSES = {
    semi_explicit: (1, "x' = f, 0 = g(x, y)", {"x": ([0], 2e-13), "y": ([1], 2e-13)}),
    fully_implicit: (1, "F(t, y, y') = 0", {"y": ([0, 1], 2e-13)}),
    hessenberg_2: (2, "y' = f(y, z), 0 = g(y)", {"y": ([0, 1], 2e-13), "z": ([2], 3e-11)}),
    hessenberg_3: (3, "x1' = f1, x2' = f2(x1, x2), 0 = f3(x2)", {"x1, x2": ([0, 1, 2, 3], 3e-12), "x3": ([4], 3e-9)}),
}
PROBLEMS = {residual: daedal.ImplicitDAE(residual, solution(residual, 0.0)[0].size) for residual in CLASSES}
METHODS = {name: daedal.methods.coefficients(name) for name in formula_names()}
SINGULAR = [
    *("explicit_euler", "explicit_midpoint", "heun", "rk4", "dopri5"),
    *(f"lobatto_iiib{s}" for s in range(2, 9)),
]
SAME = {"radau1": "backward_euler", "radau3": "radau_iia2", "radau5": "radau_iia3", "radau9": "radau_iia5"}
SAME |= {"radau13": "radau_iia7", "gauss1": "implicit_midpoint", "radau_iia1": "backward_euler"}
SAME |= {"lobatto_iiia2": "trapezoidal"}
IMPLICIT = [
    name
    for name, method in METHODS.items()
    if isinstance(method, RungeKuttaTableau) and name not in SINGULAR and name not in SAME
]

# The end and the grids where the first terms of the errors cancel on others.
OTHER_GRIDS = {
    (semi_explicit, "radau_ia6"): (1.0, (4, 8)),
    (hessenberg_2, "sdirk4"): (END, (128, 256)),
    (hessenberg_3, "radau_ia5"): (0.25, (16, 32)),
    (hessenberg_3, "sirk23"): (END, (128, 256)),
}


def errors(residual, name, steps, end=END):
    """At the end, of each variable; infinite where the equations of a step have no solution."""
    try:
        sol = daedal.solve(
            PROBLEMS[residual],
            (0.0, end),
            solution(residual, 0.0),
            method=ImplicitRungeKutta(name),
            fixed_step=end / steps,
            dense_output=False,
        )
    except daedal.IntegrationError:
        return np.full(PROBLEMS[residual].n, np.inf)
    return np.abs(sol.y[:, -1] - solution(residual, end)[0])


@functools.cache
def analysis(name):
    return daedal.analysis.analyse_method(name)


def predictions(residual, name):
    index, title, _ = CLASSES[residual]
    return {x.variables: x for x in analysis(name).predicted(index) if x.problem == title}


GUARANTEED = [  # what happens without a guarantee is tested below
    (residual, name)
    for residual in CLASSES
    for name in IMPLICIT
    if any(prediction.order is not None for prediction in predictions(residual, name).values())
]


@pytest.mark.slow
@pytest.mark.parametrize(("residual", "name"), GUARANTEED, ids=lambda value: getattr(value, "__name__", value))
def test_observed_orders_are_those_predicted(residual, name):
    classes, found = CLASSES[residual][2], predictions(residual, name)
    coarsest = 16 if analysis(name).order <= 4 else 2
    end, grids = OTHER_GRIDS.get((residual, name), (END, [steps for steps in STEPS if steps >= coarsest]))
    by_grid = []
    for steps in grids:
        by_grid.append(errors(residual, name, steps, end))
        if all(by_grid[-1][rows].max() < noise for rows, noise in classes.values()):
            break
    for variables, (rows, noise) in classes.items():
        largest = [error[rows].max() for error in by_grid]
        above = [i for i, error in enumerate(largest) if noise < error < np.inf]
        if not above or above[-1] == 0 or not largest[above[-1] - 1] < np.inf:
            assert largest[-1] <= noise, variables  # exact, or too accurate on all grids for an order to be seen
            continue
        observed, prediction = math.log2(largest[above[-1] - 1] / largest[above[-1]]), found[variables]
        assert observed > prediction.order - LOWER, variables
        if prediction.at_most is not None:
            assert observed < prediction.at_most + UPPER, variables


def test_methods_with_two_names_are_the_same():
    for name, other in SAME.items():
        for which in ("a", "b", "c"):
            np.testing.assert_allclose(METHODS[name].floats()[which], METHODS[other].floats()[which], atol=1e-15)


@pytest.mark.parametrize("name", SINGULAR)
def test_methods_with_a_singular_matrix_are_for_differential_equations(name):
    with pytest.raises(daedal.InvalidProblemError, match=r"A is singular.*use a method with an invertible matrix"):
        errors(semi_explicit, name, 4)


def test_gauss_does_not_converge_for_z_of_index_2():
    """|r| = 1: nothing is guaranteed, and z does not converge (midpoint too)."""
    for name in ("gauss2", "implicit_midpoint"):
        coarse, fine = errors(hessenberg_2, name, 16), errors(hessenberg_2, name, 32)
        assert daedal.analysis.analyse_method(name).predicted(2, "z")[0].order is None
        assert fine[2] > 0.9 * coarse[2] > 0.08


def test_a_method_without_stage_order_does_not_converge_for_x3_of_index_3():
    coarse, fine = errors(hessenberg_3, "sdirk4", 16), errors(hessenberg_3, "sdirk4", 32)
    assert (
        daedal.analysis.analyse_method("sdirk4").predicted(3, "x3")[0].order is None and fine[4] > 0.9 * coarse[4] > 1.0
    )
