"""Radau IIA: coefficients, orders per class of variables, exactness, order reduction, dense output."""

import warnings
from math import factorial

import numpy as np
import pytest

import daedal
from daedal import library
from daedal.errors import InvalidProblemError
from daedal.methods import Radau
from daedal.methods.implicit_rk.implicit_stages import RADAU_STAGES, collocation_stages

# --- coefficients -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", RADAU_STAGES)
def test_slopes_are_those_of_polynomials(s):
    """W and d differentiate t, t^2, ..., t^s: the simplifying assumption C(s), for A^{-1}."""
    t = collocation_stages("radau", s)
    for k in range(1, s + 1):
        np.testing.assert_allclose(t.w @ t.c**k, k * t.c ** (k - 1), rtol=0.0, atol=3e-14)
        assert t.d @ t.c**k == pytest.approx(1.0 if k == 1 else 0.0, abs=3e-14)


@pytest.mark.parametrize("s", RADAU_STAGES)
def test_weights_integrate_polynomials_of_degree_2s_minus_2(s):
    """B(2s - 1) and no more; b is the last row of A."""
    t = collocation_stages("radau", s)
    b = np.linalg.inv(t.w)[-1]
    defects = [abs(b @ t.c ** (k - 1) - 1.0 / k) for k in range(1, 2 * s + 1)]
    assert t.c[-1] == 1.0 and max(defects[:-1]) < 1e-14
    assert defects[-1] > 1e-9


@pytest.mark.parametrize("s", RADAU_STAGES)
def test_eigenvalues_are_the_poles_of_the_stability_function(s):
    """R(z) is the Pade approximation (s - 1, s) of e^z, whose denominator has rational coefficients (HW IV.3)."""
    t = collocation_stages("radau", s)
    denominator = [
        (-1) ** j * factorial(2 * s - 1 - j) * factorial(s) / (factorial(2 * s - 1) * factorial(j) * factorial(s - j))
        for j in range(s + 1)
    ]
    values = np.concatenate([[t.gamma], t.newton.pairs @ [1.0, 1.0j]])
    for value in values:
        terms = np.array([c * value**j for j, c in enumerate(denominator)])
        assert abs(terms.sum()) < 1e-13 * np.abs(terms).max() * 10.0
    pairs = t.newton.pairs
    assert pairs.shape == (s // 2, 2) and np.all(pairs[:, 1] > 0.0)


def test_coefficients_of_three_stages_are_those_of_radau5():
    t, root = collocation_stages("radau", 3), np.sqrt(6.0)
    np.testing.assert_allclose(t.c, [(4.0 - root) / 10.0, (4.0 + root) / 10.0, 1.0], rtol=1e-15)
    assert t.gamma == pytest.approx(3.0 + 3.0 ** (2.0 / 3.0) - 3.0 ** (1.0 / 3.0), rel=1e-14)
    np.testing.assert_allclose(-t.d, [-(13.0 + 7.0 * root) / 3.0, (-13.0 + 7.0 * root) / 3.0, -1.0 / 3.0], rtol=1e-14)


# --- orders -----------------------------------------------------------------------------------------------------------

ODE = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0] + 0.2 * (y[0] ** 2 + y[1] ** 2 - 1.0) * y[1]], 2)
INDEX1 = daedal.ImplicitDAE(
    lambda t, y, yp: [
        yp[0] - np.cos(t) * y[1] * np.exp(y[0]),
        y[1] - np.exp(-y[0]) + 0.1 * (y[0] - np.sin(t)),
    ],
    2,
)
INDEX2 = daedal.SemiExplicitDAE(
    lambda t, y, z: [
        y[1] + (z[0] - np.exp(0.3 * t)) * y[0],
        -y[0] + (z[0] - np.exp(0.3 * t)) * y[1] * (1.0 + y[0] ** 2),
    ],
    lambda t, y, z: [y @ y - 1.0],
    2,
    1,
)
INDEX3 = daedal.SemiExplicitDAE(  # a particle on a circle with a multiplier of its own
    lambda t, y, z: [
        y[2],
        y[3],
        -y[0] + 2.0 * (np.exp(0.3 * t) - z[0]) * y[0],
        -y[1] + 2.0 * (np.exp(0.3 * t) - z[0]) * y[1],
    ],
    lambda t, y, z: [y[0] ** 2 + y[1] ** 2 - 1.0],
    4,
    1,
)
CLASSES = {  # problem, start, solution, and for each class its components and the order with s stages
    "ode": (ODE, ([0.0, 1.0], None), lambda t: [np.sin(t), np.cos(t)], {"y": (slice(0, 2), lambda s: 2 * s - 1)}),
    "index1": (
        INDEX1,
        ([0.0, 1.0], None),
        lambda t: [np.sin(t), np.exp(-np.sin(t))],
        {"y": (slice(0, 1), lambda s: 2 * s - 1), "z": (slice(1, 2), lambda s: 2 * s - 1)},
    ),
    "index2": (
        INDEX2,
        ([0.0, 1.0], [1.0]),
        lambda t: [np.sin(t), np.cos(t), np.exp(0.3 * t)],
        {"y": (slice(0, 2), lambda s: 2 * s - 1), "z": (slice(2, 3), lambda s: s)},
    ),
    "index3": (
        INDEX3,
        ([0.0, 1.0, 1.0, 0.0], [1.0]),
        lambda t: [np.sin(t), np.cos(t), np.cos(t), -np.sin(t), np.exp(0.3 * t)],
        {
            "v": (slice(2, 4), lambda s: s),
            "lambda": (slice(4, 5), lambda s: s - 1),
        },
    ),
}
# Constant steps between the range where Newton's method converges and that of rounding errors.
STEPS = {3: (0.1, 0.05, 0.025), 5: (0.5, 0.25), 7: (2.0, 1.0)}
STEPS_OF_HIGHER_INDEX = {3: (0.1, 0.05, 0.025), 5: (0.5, 0.25, 0.125), 7: (0.5, 0.25)}
SUPERCONVERGENT = {3: (0.05, 0.025), 5: (0.5, 0.25)}  # of index 2; with 7 stages all of it is below rounding errors


@pytest.mark.parametrize("s", RADAU_STAGES)
@pytest.mark.parametrize("name", CLASSES)
def test_orders_of_every_class_of_variables(name, s):
    """2s - 1 where an ODE or index 1 determines them, s and s - 1 for variables of index 2 and 3 (HW VII.4, VII.6)."""
    problem, start, exact, classes = CLASSES[name]
    for label, (part, order) in classes.items():
        steps = STEPS[s] if order(s) == 2 * s - 1 else STEPS_OF_HIGHER_INDEX[s]
        if name == "index2" and label == "y":
            steps = SUPERCONVERGENT.get(s, ())
        errors = []
        for h in steps:
            end = daedal.solve(problem, (0.0, 2.0), start, method=Radau(stages=s), fixed_step=h).y[:, -1]
            errors.append(np.max(np.abs(end - exact(2.0))[part]))
        observed = np.log2(np.array(errors[:-1]) / errors[1:])
        assert np.all(observed > order(s) - 0.5), (label, errors, observed)
        assert np.all(observed < order(s) + (0.5 if order(s) < 9 else 2.5)), (label, errors, observed)


def test_y_of_index_2_is_superconvergent_with_seven_stages_too():
    problem, start, exact, _ = CLASSES["index2"]
    end = daedal.solve(problem, (0.0, 2.0), start, method=Radau(stages=7), fixed_step=0.5).y[:, -1]
    errors = np.abs(end - exact(2.0))
    assert np.max(errors[:2]) < 1e-13 and errors[2] > 1e-10


def test_positions_of_an_index_3_problem_are_superconvergent():
    """Better than their velocities: at least 2s - 2."""
    problem, start, exact, _ = CLASSES["index3"]
    errors = []
    for h in (0.2, 0.1, 0.05):
        end = daedal.solve(problem, (0.0, 2.0), start, method=Radau(stages=3), fixed_step=h).y[:2, -1]
        errors.append(np.max(np.abs(end - exact(2.0)[:2])))
    observed = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(observed > 3.9) and np.all(observed < 5.5)


@pytest.mark.parametrize("s", RADAU_STAGES)
def test_polynomials_of_degree_s_are_exact_between_the_steps_as_well(s):
    """y' = p' + (y - p) y, y = p of degree s, with one long step."""
    p = np.polynomial.Polynomial(1.0 / np.arange(1.0, s + 2.0))
    slope, c = p.deriv(), p.coef
    powers, others = np.arange(s + 1), np.arange(s)

    def residual(t, y, yp):
        value, rate = np.sum(c * t**powers), np.sum(slope.coef * t**others)
        return [yp[0] - rate + (y[0] - value) * y[0], y[1] - y[0] ** 2]

    problem = daedal.ImplicitDAE(residual, 2)
    sol = daedal.solve(problem, (0.0, 1.0), ([p(0.0), p(0.0) ** 2], None), method=Radau(stages=s), fixed_step=1.0)
    assert sol.stats.steps == 1
    times = np.linspace(0.0, 1.0, 23)
    np.testing.assert_allclose(sol(times)[0], p(times), rtol=1e-12)
    np.testing.assert_allclose(sol(times, derivative=True)[0], slope(times), rtol=1e-10)
    assert sol.y[1, -1] == pytest.approx(p(1.0) ** 2, rel=1e-13)


@pytest.mark.parametrize("s", [3, 5])
def test_order_reduction_on_stiff_equations(s):
    """Prothero and Robinson: errors about h^s / k, of order s instead of 2s - 1, and none in the limit (HW IV.15)."""
    steps, errors = (0.25, 0.125), {}
    for stiffness in (1e4, 1e5):
        model = library.prothero_robinson(stiffness=stiffness)
        errors[stiffness] = [
            abs(
                daedal.solve(model.problem, (0.0, 2.0), model.initial, method=Radau(stages=s), fixed_step=h).y[0, -1]
                - np.cos(2.0)
            )
            for h in steps
        ]
    assert np.log2(errors[1e4][0] / errors[1e4][1]) == pytest.approx(s, abs=0.3)
    assert errors[1e4][0] / errors[1e5][0] == pytest.approx(10.0, rel=0.02)  # the next term is of size 1 / (h k)


@pytest.mark.parametrize("s", RADAU_STAGES)
def test_the_end_of_a_step_satisfies_the_equations(s):
    """The last stage is the end of the step: y' there is that of the equations, algebraic ones hold."""
    sol = daedal.solve(INDEX1, (0.0, 2.0), ([0.0, 1.0], None), method=Radau(stages=s), rtol=1e-8, atol=1e-8)
    for t, y, yp in zip(sol.t, sol.y.T, sol.yp.T):
        slope, value = INDEX1.evaluate(t, y, yp)
        assert abs(slope) < 1e-6 and abs(value) < 1e-8


@pytest.mark.parametrize("rtol", [1e-4, 1e-7, 1e-10])
def test_dense_output_is_as_accurate_as_the_steps_are_asked_to_be(rtol):
    times = np.linspace(0.0, 2.0, 301)
    sol = daedal.solve(ODE, (0.0, 2.0), ([0.0, 1.0], None), method="radau", rtol=rtol, atol=rtol)
    np.testing.assert_allclose(sol(times), [np.sin(times), np.cos(times)], atol=20.0 * rtol)
    at_steps = np.abs(sol.y - [np.sin(sol.t), np.cos(sol.t)])
    assert np.max(at_steps) < 5.0 * rtol


@pytest.mark.parametrize("stiffness", [None, 1.0, 1e6])
def test_dense_output_follows_what_algebraic_equations_or_stiffness_determine(stiffness):
    """Exact at the ends of steps, where no embedded method sees an error: u has to be looked at in between."""

    def residual(t, y, yp):
        input = np.cos(3.0 * t) + 0.2 * np.sin(11.0 * t)
        return [y[0] - input if stiffness is None else yp[0] + stiffness * (y[0] - input)]

    problem = daedal.ImplicitDAE(residual, 1)
    times = np.linspace(1.0, 10.0, 997)
    reference = daedal.solve(problem, (0.0, 10.0), ([1.0], None), method=Radau(stages=7), fixed_step=0.02)
    for rtol in (1e-4, 1e-7):
        sol = daedal.solve(problem, (0.0, 10.0), ([1.0], None), method="radau", rtol=rtol, atol=rtol)
        assert np.max(np.abs(sol(times) - reference(times))) < 20.0 * rtol


# --- stages and options -----------------------------------------------------------------------------------------------


def test_stages_are_chosen_along_the_run():
    problem, start = ODE, ([0.0, 1.0], None)
    loose = daedal.solve(problem, (0.0, 20.0), start, method="radau", rtol=1e-3, atol=1e-3)
    sharp = daedal.solve(problem, (0.0, 20.0), start, method="radau", rtol=1e-12, atol=1e-12)
    assert loose.history.order[0] == 5 and sharp.history.order[-1] == 13
    assert sharp.stats.steps < 8 * loose.stats.steps
    fixed = daedal.solve(problem, (0.0, 20.0), start, method=Radau(stages=5), rtol=1e-12, atol=1e-12)
    assert set(fixed.history.order) == {9}
    assert (Radau().max_order, Radau(stages=3).max_order) == (13, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stages": 4}, "stages must be 'auto', 3, 5 or 7, got 4"),
        ({"stages": True}, "stages must be 'auto'"),
        ({"linear_solver": "gmres"}, "linear_solver of Radau must be one of 'auto', .* GMRES requires DASSL"),
        ({"error_test": "filtered"}, "unknown error_test 'filtered'"),
        ({"variable_index": [1, 4]}, "variable_index must hold 1, 2 or 3"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(InvalidProblemError, match=message):
        Radau(**options)


def test_options_go_with_the_name():
    sol = daedal.solve(ODE, (0.0, 1.0), ([0.0, 1.0], None), method="radau", stages=7)
    assert set(sol.history.order) == {13}
    with pytest.raises(InvalidProblemError, match="unknown option stage; did you mean 'stages'"):
        daedal.solve(ODE, (0.0, 1.0), ([0.0, 1.0], None), method="radau", stage=7)


@pytest.mark.parametrize("h", [0.05, 0.25, 1.0])
def test_constant_steps_far_longer_than_the_initial_transient(h):
    """Robertson's reaction: the Jacobian at the start lacks the term that limits the second species."""
    model = daedal.library.get("robertson")
    sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, method="radau", fixed_step=h)
    reference = daedal.solve(model.problem, (0.0, 1.0), model.initial, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(sol.y[:, -1], reference.y[:, -1], atol=2e-7)


@pytest.mark.parametrize("options", [{}, {"method": "radau"}])
def test_a_tolerance_below_the_round_off_of_the_equations(options):
    """The transistor amplifier: round-off of its currents moves the last voltage by several tolerances."""
    model = daedal.library.get("transistor_amplifier")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-11, atol=1e-13, **options)
    assert sol.success
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, rtol=1e-11, atol=1e-13)
