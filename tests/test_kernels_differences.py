"""Modified divided differences: what predictor, corrector and interpolant of the variable-step BDF must satisfy.

The kernels are driven with arbitrary values in place of a corrector's result, so that every property holds to rounding.
"""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import Polynomial

from daedal.kernels.differences import (
    COEFFICIENTS,
    LENGTH,
    ROWS,
    error_constant,
    leading_coefficient,
    predict,
    scale_differences,
    unscale_differences,
    update_coefficients,
    update_differences,
)
from daedal.kernels.interpolation import newton_polynomial
from daedal.kernels.records import record_at

ORDERS = range(1, 7)
FIRST_STEP = 0.25


def _advance(coefficients, psi, phi, h, k, y, predicted, slope):
    c = record_at(coefficients.ctypes.data, COEFFICIENTS)
    update_coefficients(c, psi, h, k)
    scale_differences(phi, c.beta, 1, k)
    predict(phi, c.gamma, k, predicted, slope)
    update_differences(phi, k, True, y - predicted)
    return leading_coefficient(k) / h, error_constant(c, k)


def _scale_and_unscale(coefficients, psi, phi, h, k):
    c = record_at(coefficients.ctypes.data, COEFFICIENTS)
    update_coefficients(c, psi, h, k)
    scale_differences(phi, c.beta, 1, k)
    unscale_differences(phi, c.beta, 1, k)


def _interpolate(t, t_end, psi, phi, k, y, slope):
    newton_polynomial(t, t_end, psi, phi, k, y, slope)


class History:
    """Steps of a k-step method whose corrector returns given values; the order rises from 1 to k as at a start."""

    def __init__(self, times, values, slope, k):
        self.times, self.values, self.k = times, np.atleast_2d(values.T).T, k
        n = self.values.shape[1]
        self.coefficients = np.zeros(1, dtype=COEFFICIENTS)
        self.phi = np.zeros((ROWS, n))
        self.predicted, self.slope = np.zeros(n), np.zeros(n)
        self.position = 0
        h = times[1] - times[0]
        self.phi[0] = self.values[0]
        self.phi[1] = h * slope
        self.psi = np.zeros(LENGTH)
        self.psi[0] = h

    def step(self):
        self.position += 1
        n = self.position
        self.h = self.times[n] - self.times[n - 1]
        self.order = min(n, self.k)
        self.cj, self.constant = _advance(
            self.coefficients, self.psi, self.phi, self.h, self.order, self.values[n], self.predicted, self.slope
        )
        return self

    def through(self, count):
        for _ in range(count):
            self.step()
        return self

    @property
    def corrected_slope(self):
        """y' of the corrector: y'(0) + cj (y - y(0))."""
        return self.slope + self.cj * (self.values[self.position] - self.predicted)

    def interpolate(self, t):
        y, slope = np.zeros_like(self.slope), np.zeros_like(self.slope)
        _interpolate(t, self.times[self.position], self.psi, self.phi, self.order, y, slope)
        return y, slope

    def last_points(self, count, skip=0):
        """(times, values) of the last `count` points, the newest first, without the newest `skip`."""
        chosen = np.arange(self.position - skip, self.position - skip - count, -1)
        return self.times[chosen], self.values[chosen]


def mesh(ratios):
    return np.concatenate([[0.0], np.cumsum(FIRST_STEP * np.cumprod([1.0, *ratios]))])


def through(times, values):
    """The interpolating polynomial about its first point, where it is to be used."""
    coefficients = np.linalg.solve(np.vander(times - times[0], increasing=True), values)
    return Polynomial(coefficients)


def divided_difference(times, values):
    column = [Fraction(float(v)) for v in values]
    times = [Fraction(float(t)) for t in times]
    for level in range(1, len(times)):
        column = [(a - b) / (times[i] - times[i + level]) for i, (a, b) in enumerate(pairwise(column))]
    return column[0]


step_ratios = st.lists(st.floats(0.5, 2.0), min_size=11, max_size=11)
unit = st.floats(-1.0, 1.0)


@given(st.sampled_from(ORDERS), step_ratios, st.lists(unit, min_size=7, max_size=7))
def test_predictor_and_corrector_reproduce_polynomials_up_to_the_order(k, ratios, coefficients):
    times = mesh(ratios)
    span = times[-1]
    p = Polynomial(coefficients[: k + 1], domain=[0.0, span], window=[0.0, 1.0])
    history = History(times, p(times), p.deriv()(0.0), k).through(k + 1)
    while history.position < times.size - 1:
        history.step()
        t = times[history.position]
        assert history.predicted[0] == pytest.approx(p(t), abs=1e-10)
        assert history.slope[0] * span == pytest.approx(p.deriv()(t) * span, abs=1e-8)
        assert history.corrected_slope[0] * span == pytest.approx(p.deriv()(t) * span, abs=1e-8)


@given(st.sampled_from(ORDERS), step_ratios, st.lists(unit, min_size=13, max_size=13))
def test_difference_of_corrector_and_predictor_is_the_next_divided_difference(k, ratios, values):
    times, values = mesh(ratios), np.array(values)
    history = History(times, values, 0.0, k).through(times.size - 1)
    points, window = history.last_points(k + 2)
    scale = np.prod(points[0] - points[1:])
    expected = scale * float(divided_difference(points, window[:, 0]))
    assert values[-1] - history.predicted[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert history.phi[k + 1, 0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.sampled_from(ORDERS), step_ratios, st.lists(unit, min_size=13, max_size=13))
def test_differences_after_a_step_are_scaled_divided_differences(k, ratios, values):
    times, values = mesh(ratios), np.array(values)
    history = History(times, values, 0.0, k).through(times.size - 1)
    points, window = history.last_points(k + 1)
    for i in range(k + 1):
        scale = np.prod(points[0] - points[1 : i + 1])
        expected = scale * float(divided_difference(points[: i + 1], window[: i + 1, 0]))
        assert history.phi[i, 0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.sampled_from(ORDERS), step_ratios, st.lists(unit, min_size=13, max_size=13))
def test_corrector_interpolates_the_predictor_at_equal_steps_back(k, ratios, values):
    """BCP (5.2.6): the corrector polynomial equals the predictor's at t - h, ..., t - k h."""
    times = mesh(ratios)
    history = History(times, np.array(values), 0.0, k).through(times.size - 1)
    t, h = times[-1], history.h
    points, window = history.last_points(k + 1, skip=1)
    predictor = through(points, window[:, 0])
    back = t - h * np.arange(1, k + 1)
    corrector = through(np.concatenate([[t], back]), np.concatenate([[values[-1]], predictor(back - points[0])]))
    size = 1.0 + np.max(np.abs(predictor(back - points[0])))
    assert history.predicted[0] == pytest.approx(predictor(t - points[0]), abs=1e-8 * size)
    assert h * history.slope[0] == pytest.approx(h * predictor.deriv()(t - points[0]), abs=1e-8 * size)
    assert h * history.corrected_slope[0] == pytest.approx(h * corrector.deriv()(0.0), abs=1e-8 * size)


@given(st.sampled_from(ORDERS), step_ratios, st.lists(unit, min_size=13, max_size=13), st.floats(0.0, 1.0))
def test_interpolant_passes_through_the_last_values(k, ratios, values, place):
    times = mesh(ratios)
    history = History(times, np.array(values), 0.0, k).through(times.size - 1)
    points, window = history.last_points(k + 1)
    for t, value in zip(points, window[:, 0]):
        assert history.interpolate(t)[0][0] == pytest.approx(value, abs=1e-9)
    polynomial = through(points, window[:, 0])
    t = times[-1] - place * history.h
    value, slope = history.interpolate(t)
    assert value[0] == pytest.approx(polynomial(t - points[0]), abs=1e-8)
    assert history.h * slope[0] == pytest.approx(history.h * polynomial.deriv()(t - points[0]), abs=1e-8)


@given(st.sampled_from(ORDERS), step_ratios)
def test_error_constant_bounds_interpolation_and_truncation_error(k, ratios):
    """M = max(alpha_{k+1}, |alpha_{k+1} + alpha_s - alpha^0|), the second being the truncation error of the formula."""
    times = mesh(ratios)
    p = Polynomial([0.3, -1.0, 0.5, 1.0, -0.7, 0.4, 0.9, -0.2][: k + 2], domain=[0.0, times[-1]], window=[0.0, 1.0])
    history = History(times, p(times), p.deriv()(0.0), k).through(times.size - 1)
    points, _ = history.last_points(k + 2)
    alpha = history.h / (points[0] - points[1:])
    leading = -sum(1.0 / j for j in range(1, k + 1))
    truncation = alpha[k] + leading + np.sum(alpha[:k])
    assert history.constant == pytest.approx(max(alpha[k], abs(truncation)), rel=1e-12)
    # The formula applied to a polynomial of degree k + 1: the defect h (p' - y') is the truncation error.
    defect = history.h * (p.deriv()(times[-1]) - history.corrected_slope[0])
    correction = history.values[-1, 0] - history.predicted[0]
    assert defect == pytest.approx(truncation * correction, abs=1e-9)


@given(st.sampled_from(ORDERS), step_ratios, st.floats(0.1, 4.0))
def test_rejected_step_leaves_the_differences_as_they_were(k, ratios, factor):
    times = mesh(ratios)
    history = History(times, np.cos(times), 0.0, k).through(times.size - 1)
    before = history.phi.copy()
    _scale_and_unscale(history.coefficients, history.psi, history.phi, factor * history.h, k)
    np.testing.assert_allclose(history.phi, before, rtol=1e-14)


@pytest.mark.parametrize("k", ORDERS)
def test_coefficients_at_constant_step(k):
    times = FIRST_STEP * np.arange(12.0)
    history = History(times, np.sin(times), 1.0, k).through(times.size - 1)
    c = history.coefficients[0]
    i = np.arange(1, k + 2)
    np.testing.assert_allclose(c["alpha"][: k + 1], 1.0 / i, rtol=1e-14)
    np.testing.assert_allclose(c["sigma"][: k + 1], 1.0 / i, rtol=1e-14)
    np.testing.assert_allclose(c["beta"][: k + 1], 1.0, rtol=1e-14)
    np.testing.assert_allclose(history.psi[: k + 1], FIRST_STEP * i, rtol=1e-14)
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / i[:-1])])
    np.testing.assert_allclose(c["gamma"][: k + 1], harmonic / FIRST_STEP, rtol=1e-14)
    assert history.constant == pytest.approx(1.0 / (k + 1), rel=1e-13)
    assert history.cj == pytest.approx(harmonic[-1] / FIRST_STEP, rel=1e-14)


def bdf_coefficients(k):
    """sum_{j=1}^k (1/j) nabla^j as weights of y_n, y_{n-1}, ..., y_{n-k}."""
    total = [Fraction(0)] * (k + 1)
    power = [Fraction(1)]
    for j in range(1, k + 1):
        power = [a - b for a, b in zip([*power, Fraction(0)], [Fraction(0), *power])]
        for i, value in enumerate(power):
            total[i] += value / j
    return np.array([float(value) for value in total])


@pytest.mark.parametrize("k", ORDERS)
def test_corrector_at_constant_step_is_the_classical_bdf(k):
    count = 10
    times = FIRST_STEP * np.arange(float(count))
    history = History(times, np.eye(count), np.zeros(count), k).through(count - 1)
    weights = FIRST_STEP * history.corrected_slope
    expected = np.zeros(count)
    expected[count - k - 1 :] = bdf_coefficients(k)[::-1]
    np.testing.assert_allclose(weights, expected, atol=1e-11)


def test_printed_bdf_coefficients():
    """Two rows as every textbook prints them, so that the comparison above stands on firm ground."""
    np.testing.assert_allclose(bdf_coefficients(2), [3 / 2, -2, 1 / 2])
    np.testing.assert_allclose(bdf_coefficients(6), [49 / 20, -6, 15 / 2, -20 / 3, 15 / 4, -6 / 5, 1 / 6])
