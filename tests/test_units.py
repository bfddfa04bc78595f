"""Units of unknowns, equations and time decide about nothing: ranks, index, consistent initial values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.index.structure.equilibration import natural_units
from daedal.initial.local_structure import local_structure


def pendulum(t, s, sp):
    x, y, u, v, lam = s
    return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + 1.0, x**2 + y**2 - 1.0]


def charges(t, s, sp):
    """A current source in series with an inductor (an LI-cutset), charge and flux as unknowns, in V, mA, nC, ms."""
    a, b, i, q, phi = s
    return [i - np.sin(t), sp[3] + b - i, a - b - sp[4], q - b, phi - i]


def loop(t, s, sp):
    """Index 1: an RC-circuit with a diode."""
    v, i = s
    return [sp[0] + v - i, i - np.sin(t) - 0.1 * np.expm1(0.5 - v)]


PROBLEMS = {
    "pendulum": (pendulum, [0.6, -0.8, 0.4, 0.3, 0.9], 3, 2),
    "charges": (charges, [0.3, 0.2, 0.0, 0.2, 0.0], 2, 1),
    "loop": (loop, [0.5, 0.0], 1, 1),
}


def in_units(name, sizes, factors, time):
    """The same problem with x = sizes * y, t = time * s and equations multiplied by factors."""
    function, x0, *_ = PROBLEMS[name]
    n = len(x0)

    def residual(s, y, yp):
        found = function(time * s, [sizes[j] * y[j] for j in range(n)], [sizes[j] * yp[j] / time for j in range(n)])
        return [factor * entry for factor, entry in zip(factors, found)]

    return daedal.ImplicitDAE(residual, n), np.array(x0) / sizes


exponents = st.floats(-9.0, 9.0)


@pytest.mark.parametrize("name", PROBLEMS)
@settings(max_examples=15)
@given(data=st.data())
def test_index_and_freedom_do_not_depend_on_units(name, data):
    *_, index, freedom = PROBLEMS[name]
    n = len(PROBLEMS[name][1])
    sizes = 10.0 ** np.array(data.draw(st.lists(exponents, min_size=n, max_size=n)))
    factors = 10.0 ** np.array(data.draw(st.lists(exponents, min_size=n, max_size=n)))
    problem, x0 = in_units(name, sizes, factors, 10.0 ** data.draw(exponents))
    found = local_structure(problem, 0.0, x0)
    assert (found.index, found.degrees_of_freedom) == (index, freedom)


def test_small_coefficients_count_where_they_do_not_vanish_on_the_solution():
    sizes, factors = 10.0 ** np.array([0.0, 0.0, -3.0, 0.0, 4.75]), 10.0 ** np.array([7.5, 0.0, 0.0, 0.0, 0.0])
    problem, x0 = in_units("charges", sizes, factors, 1.0)
    found = local_structure(problem, 0.0, x0)
    assert (found.index, found.degrees_of_freedom) == (2, 1)


@settings(max_examples=50)
@given(data=st.data())
def test_natural_units_make_nearly_the_same_numbers_of_all_units(data):
    n, rng = 4, np.random.default_rng(data.draw(st.integers(0, 1000)))
    rows, columns = np.array([(i, j) for i in range(n) for j in range(n) if (i + j) % 3 or i == j]).T
    orders = rng.integers(0, 2, rows.size)
    coefficients = rng.uniform(0.1, 10.0, rows.size)
    draws = 10.0 ** np.array(data.draw(st.lists(exponents, min_size=2 * n + 1, max_size=2 * n + 1)))
    others = coefficients * draws[rows] * draws[n + columns] * draws[-1] ** orders

    def scaled(values):
        R, D, T = natural_units(rows, columns, orders, values, n)
        return np.log(np.abs(values)) + R[rows] + D[columns] - T * orders

    np.testing.assert_allclose(scaled(others), scaled(coefficients), atol=2.0)  # factors of 10^36 become 7 at most


def test_round_off_does_not_take_part_in_units():
    rows, columns = (places.ravel() for places in np.indices((4, 4)))
    orders = (rows == columns).astype(int)
    coefficients = np.random.default_rng(1).uniform(0.5, 2.0, 16)
    clean = natural_units(rows[1:], columns[1:], orders[1:], coefficients[1:], 4)
    coefficients[0] = 1e-60
    for one, other in zip(clean, natural_units(rows, columns, orders, coefficients, 4)):
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("form", ["nodal", "charge", "tableau"])
def test_circuits_of_millihenries_and_microfarads_have_the_index_of_their_loops_and_cutsets(form):
    circuit = daedal.circuits.parse("I1 0 a SIN(0 1m 1k)\nL1 a b 1m\nR1 b 0 1k\nC1 b 0 1u\nL2 b c 5u\nC2 c 0 10n")
    assert daedal.analyse(circuit.problem(form)).index == circuit.topology.index(form) == 2
