"""Jay's problem of index 2, nonlinear in z: the full order of half-explicit methods, the same for y and z."""

import numpy as np
import pytest

import daedal
from daedal import library

MODEL = library.jay_index2()

# Largest relative error of y over all steps on [0, 1], by number of steps: computed independently
KNOWN = {
    "HEM4": {160: 3.95e-8, 320: 2.40e-9, 640: 1.45e-10, 1280: 8.86e-12},
    "HEM3": {640: 3.13e-8, 1280: 4.08e-9, 2560: 5.21e-10},
}
METHODS = {
    method.__name__: method
    for method in (
        daedal.methods.HEM3,
        daedal.methods.HEM4,
        daedal.methods.HEM5,
        daedal.methods.PHEM56,
        daedal.methods.HEDOP5,
    )
}


def exact(times):
    return np.array([MODEL.extra["exact"](t) for t in times]).T


def solved(method, steps, **options):
    return daedal.solve(
        MODEL.problem, MODEL.t_span, MODEL.initial, method=METHODS[method](), fixed_step=1.0 / steps, **options
    )


def errors(method, steps):
    """Largest relative errors of y and of z at the steps."""
    sol = solved(method, steps)
    assert sol.t.size == steps + 1
    error = np.abs(sol.y / exact(sol.t) - 1.0).max(axis=1)
    return error[:2].max(), error[2]


def order(coarse, fine):
    return np.log2(coarse / fine)


def test_closed_solution_satisfies_both_constraints():
    """The hidden one is g_y f = 2 y1 y2 f1 + y1^2 f2 = 0; it has a second root, z = e^(2t)/2."""
    problem = MODEL.problem
    for t in (0.0, 0.3, 1.0):
        y1, y2, z = MODEL.extra["exact"](t)
        assert problem.g(t, [y1, y2], [z])[0] == pytest.approx(0.0, abs=1e-14)
        for root in (z, 0.5 * z):
            f = problem.f(t, np.array([y1, y2]), np.array([root]))
            assert 2.0 * y1 * y2 * f[0] + y1**2 * f[1] == pytest.approx(0.0, abs=1e-13)
        np.testing.assert_allclose(problem.f(t, [y1, y2], [z]), MODEL.extra["exact"](t, 1)[:2], rtol=1e-13)


@pytest.mark.parametrize(("method", "steps"), [(name, steps) for name, known in KNOWN.items() for steps in known])
def test_errors_are_the_known_ones(method, steps):
    y, z = errors(method, steps)
    assert y == pytest.approx(KNOWN[method][steps], rel=0.01)
    assert z == pytest.approx(y, rel=0.01, abs=2e-11)  # (3.6) is differenced along the flow


@pytest.mark.parametrize(
    ("method", "steps", "least"),
    [("HEM3", 640, 2.9), ("HEM4", 160, 3.9), ("HEM5", 40, 4.9), ("PHEM56", 20, 4.9), ("HEDOP5", 20, 4.9)],
)
def test_order(method, steps, least):
    """Fifth-order methods have not reached their limit before round-off has; they come in faster."""
    assert order(errors(method, steps)[0], errors(method, 2 * steps)[0]) > least


def test_multiplier_of_the_last_stage_has_order_four():
    """PHEM56 gives z without extra work, as the last stage value."""
    assert order(errors("PHEM56", 40)[1], errors("PHEM56", 80)[1]) == pytest.approx(4.0, abs=0.15)


@pytest.mark.parametrize("method", ["HEM3", "HEM4", "HEM5", "PHEM56", "HEDOP5"])
def test_constraint_holds_to_round_off(method):
    sol = solved(method, 80)
    np.testing.assert_allclose(sol.y[0] ** 2 * sol.y[1], 1.0, atol=5e-15)


@pytest.mark.parametrize(
    ("method", "steps", "least"), [("HEM3", 640, 2.9), ("HEM4", 160, 3.9), ("HEM5", 160, 3.9), ("PHEM56", 80, 3.9)]
)
def test_order_of_dense_output(method, steps, least):
    """Every step counts, the first one too."""
    largest = []
    for count in (steps, 2 * steps):
        times = (np.arange(0, count, 8)[:, None] + np.linspace(0.1, 0.9, 5)).ravel() / count
        values = solved(method, count, dense_output=True)(times)
        largest.append(np.abs(values[:2] / exact(times)[:2] - 1.0).max())
    assert order(*largest) > least


@pytest.mark.parametrize("method", ["HEM4", "HEM5", "PHEM56", "HEDOP5"])
def test_variable_steps(method):
    steps, error = [], []
    for tol in (1e-6, 1e-9):
        sol = daedal.solve(MODEL.problem, MODEL.t_span, MODEL.initial, method=METHODS[method](), rtol=tol, atol=tol)
        steps.append(sol.stats.steps)
        error.append(MODEL.reference.error(sol.y[:, -1])[:2].max())
    assert error[0] < 2e-5 and error[1] < 1e-8 and steps[1] > steps[0]


def test_inconsistent_z_is_only_a_guess():
    """One step needs nothing but y; z0 starts Newton's method."""
    y0, z0 = MODEL.initial
    runs = [
        daedal.solve(MODEL.problem, MODEL.t_span, (y0, guess), method=daedal.methods.HEM4(), fixed_step=1.0 / 80)
        for guess in (z0, 1.05 * z0)
    ]
    np.testing.assert_allclose(runs[1].y[:, -1], runs[0].y[:, -1], rtol=1e-10)


@pytest.mark.parametrize("max_order", [1, 2, 3])
def test_bdf_formulas_have_their_order_with_constant_steps(max_order):
    errors = []
    for steps in (100, 200):
        sol = daedal.solve(
            MODEL.problem,
            MODEL.t_span,
            MODEL.initial,
            method=daedal.methods.DASSL(max_order=max_order, starting_values=MODEL.extra["exact"]),
            fixed_step=1.0 / steps,
        )
        errors.append(MODEL.reference.error(sol.y[:, -1]))
    np.testing.assert_allclose(order(*errors), max_order, atol=0.15)


def test_variable_bdf_steps_converge_slowly():
    error = []
    for rtol in (1e-4, 1e-6):
        sol = daedal.solve(MODEL.problem, MODEL.t_span, MODEL.initial, method="dassl", rtol=rtol, atol=1e-2 * rtol)
        error.append(MODEL.reference.error(sol.y[:, -1]).max())
    assert error[1] < 1e-2 and error[1] < 0.2 * error[0]


def test_model():
    sol = daedal.solve(MODEL.problem, MODEL.t_span, MODEL.initial, **MODEL.options)
    assert MODEL.reference.error(sol.y[:, -1]).max() < 1e-6
    assert library.get("jay_index2", t1=0.5).reference.y[0] == pytest.approx(np.exp(0.5))
    with pytest.raises(daedal.InvalidProblemError, match="t1"):
        library.jay_index2(t1=0.0)


def test_the_classical_method_is_of_order_2_only():
    """The negative control: RK4 satisfies condition 5 but not 6, which f nonlinear in z needs."""
    from daedal.methods.half_explicit.half_explicit_tableaux import RK4_HALF_EXPLICIT

    model = daedal.library.get("jay_index2")
    errors = []
    for n in (160, 320, 640):
        method = daedal.methods.HalfExplicit(RK4_HALF_EXPLICIT)
        sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, method=method, fixed_step=1.0 / n)
        errors.append(np.max(np.abs(sol.y[:, -1] / model.extra["exact"](1.0) - 1.0)))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.25)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.25)
