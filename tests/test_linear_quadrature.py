"""Exact solutions with right-hand sides that are functions: stiff systems, short pulses, errors that are told."""

import numpy as np
import pytest
from scipy.integrate import IntegrationWarning

from daedal import linear


@pytest.mark.parametrize("rate", [1.0, 1e3, 1e5, 1e8, -5.0])
@pytest.mark.parametrize("t", [10.0, 0.01])
def test_stiff_and_unstable_systems_as_in_closed_form(rate, t):
    pencil = linear.Pencil([[1.0]], [[rate]])
    found = pencil.solution(lambda s: [rate * np.sin(s)], [0.0])(t)
    np.testing.assert_allclose(found, pencil.solution(linear.sine([rate]), [0.0])(t), rtol=1e-9)


@pytest.mark.parametrize("rate", [-1e5, 3.0])
def test_backwards_in_time(rate):
    pencil = linear.Pencil([[1.0]], [[rate]])
    found = pencil.solution(lambda s: [rate * np.cos(s)], [1.0])(-7.0)
    closed = pencil.solution(linear.sine([rate], 1.0, np.pi / 2), [1.0])(-7.0)
    np.testing.assert_allclose(found, closed, rtol=1e-9)


def test_fast_and_slow_parts_with_an_algebraic_variable():
    A, B = np.diag([1.0, 1.0, 0.0]), np.array([[1e6, 1.0, 0.0], [0.0, 0.5, 1.0], [1.0, 0.0, 1.0]])
    pencil = linear.Pencil(A, B)
    x0 = pencil.consistent([1.0, 2.0, 0.0], linear.sine([1e6, 1.0, 0.0])).x
    found = pencil.solution(lambda s: [1e6 * np.sin(s), np.sin(s), 0.0], x0)(4.0)
    np.testing.assert_allclose(found, pencil.solution(linear.sine([1e6, 1.0, 0.0]), x0)(4.0), rtol=1e-9, atol=1e-12)


def test_systems_without_a_basis_of_eigenvectors():
    pencil = linear.Pencil(np.eye(2), [[1e4, 1.0], [0.0, 1e4]])
    found = pencil.solution(lambda s: [0.0, 1e8 * np.sin(s)], [0.0, 0.0])(0.3)
    closed = pencil.solution(linear.sine([0.0, 1e8]), [0.0, 0.0])(0.3)
    np.testing.assert_allclose(found, closed, rtol=1e-9)


def test_short_pulse_is_seen():
    """The integral of exp(s - 60) exp(-((s - 50) / w)^2) is w sqrt(pi) exp(w^2 / 4 - 10)."""
    width = 0.05
    x = linear.Pencil([[1.0]], [[1.0]]).solution(lambda s: [np.exp(-(((s - 50.0) / width) ** 2))], [0.0])
    np.testing.assert_allclose(x(60.0), width * np.sqrt(np.pi) * np.exp(width**2 / 4.0 - 10.0), rtol=1e-9)


def test_errors_above_the_tolerance_are_told():
    x = linear.Pencil([[1.0]], [[1.0]]).solution(lambda s: [float(np.sin(1e7 * s) > 0.3)], [0.0])
    with pytest.warns(IntegrationWarning, match="from t = 0 to 5 has an estimated error"):
        x(5.0)
