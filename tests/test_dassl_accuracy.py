"""Accuracy against tolerance with the default options: Robertson to 1e11, transistor amplifier, closed solutions.

The absolute tolerances are a tenth of rtol times the size of the solution at the end (Robertson, whose components end
at 2e-8, 8e-14 and 1), or times one volt (transistor amplifier), so that the relative tolerance decides everywhere.
"""

import numpy as np
import pytest

import daedal
from daedal import library

TOLERANCES = (1e-4, 1e-6, 1e-8)


def relative_errors(model, atol):
    """Relative errors at the end for each tolerance; `atol` is that of rtol = 1."""
    problem = model.problem.compiled("numba")
    errors = []
    for rtol in TOLERANCES:
        sol = daedal.solve(problem, model.t_span, model.initial, rtol=rtol, atol=rtol * atol, method="dassl")
        errors.append(np.abs(sol.y[:, -1] / model.reference.y - 1.0))
    return np.array(errors)


def assert_errors_follow_tolerances(errors):
    for rtol, error in zip(TOLERANCES, errors):
        np.testing.assert_array_less(error, 100.0 * rtol)
    worst = errors.max(axis=1)
    assert worst[0] > 3.0 * worst[1]
    assert worst[1] > 3.0 * worst[2]


@pytest.mark.parametrize("form", ["implicit", "semi-explicit"])
def test_robertson_to_1e11_is_as_accurate_as_asked(form):
    model = library.robertson(form=form)
    assert_errors_follow_tolerances(relative_errors(model, 0.1 * model.reference.y))


def test_transistor_amplifier_is_as_accurate_as_asked():
    model = library.transistor_amplifier()
    assert_errors_follow_tolerances(relative_errors(model, 0.1))


SMOOTH = {
    "prothero_robinson": {},
    "linear_index1": {},
    "coupled_derivatives": {},
    "hessenberg_index2": {"form": "semi-explicit"},
    "damped_oscillator": {"damping": 1.0, "frequency": 5.0},
}


@pytest.mark.parametrize("name", SMOOTH)
def test_error_is_proportional_to_the_tolerance_on_closed_solutions(name):
    """Over the whole interval, the dense output included, and through six decades."""
    model = library.get(name, **SMOOTH[name])
    exact = model.extra["exact"]
    times = np.linspace(*model.t_span, 41)
    truth = np.array([exact(t) for t in times]).T
    for rtol in (1e-3, 1e-5, 1e-7, 1e-9):
        sol = daedal.solve(
            model.problem, model.t_span, model.initial, rtol=rtol, atol=rtol, t_eval=times, method="dassl"
        )
        error = np.max(np.abs(sol.y - truth), axis=1)
        controlled = slice(None) if model.index < 2 else slice(0, 2)  # z of index 2 is left out of the error test
        assert np.max(error[controlled]) < 100.0 * rtol
        assert np.max(error) < 1000.0 * rtol


@pytest.mark.parametrize("max_order", [1, 2, 3, 4, 5])
def test_work_grows_with_accuracy_as_the_order_says(max_order):
    """Steps ~ tol^(-1/(k+1)): from 1e-4 to 1e-7 ten times as many at order 2, and far fewer at order 5."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 2)
    steps = [
        daedal.solve(
            problem,
            (0.0, 20.0),
            ([0.0, 1.0], [1.0, 0.0]),
            rtol=tol,
            atol=tol,
            max_order=max_order,
            first_step=1e-3,
            method="dassl",
        ).stats.steps
        for tol in (1e-4, 1e-7)
    ]
    assert np.log10(steps[1] / steps[0]) / 3.0 == pytest.approx(1.0 / (max_order + 1), abs=0.06)
