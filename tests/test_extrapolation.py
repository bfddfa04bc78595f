"""Extrapolation: tables in exact arithmetic, orders per class of variables, exactness, hard cases, bad input."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal import library
from daedal.errors import InvalidProblemError
from daedal.methods import MEXX, Extrapolation
from daedal.methods.extrapolation.extrapolation_sequences import SEQUENCES, amplification, step_numbers

SCHEMES = ("linearly implicit", "limex", "implicit")

# --- the table --------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=7, unique=True).map(sorted),
    st.lists(st.fractions(max_denominator=50), min_size=2, max_size=7),
    st.sampled_from([1, 2]),
)
@settings(deadline=None)
def test_a_table_with_k_columns_removes_k_minus_1_powers_of_h(numbers, coefficients, power):
    """T_kk is the polynomial in h^power at 0, exactly, if its degree is below k."""
    terms = coefficients[: len(numbers)]
    table = daedal.methods.extrapolation_table(
        numbers, lambda n: sum(c * Fraction(1, n) ** (power * i) for i, c in enumerate(terms)), power
    )
    assert table[-1][len(terms) - 1] == terms[0]


@pytest.mark.parametrize("name", SEQUENCES)
def test_amplification_is_what_alternating_round_off_becomes(name):
    """Errors of the rows with the signs of their weights add up to it."""
    numbers = step_numbers(name)[:6]
    signs = {n: (-1.0) ** (len(numbers) - 1 - j) for j, n in enumerate(numbers)}
    assert daedal.methods.extrapolation_table(numbers, signs.get)[-1][-1] == pytest.approx(amplification(numbers)[-1])


# --- orders -----------------------------------------------------------------------------------------------------------

INDEX1 = daedal.SemiExplicitDAE(lambda t, y, z: [-2.0 * y[0] * z[0]], lambda t, y, z: [y[0] - z[0] ** 2], 1, 1)
"""y = (1 + t)^-2, z = (1 + t)^-1: the problem on which Tables 4.6.1 and 4.6.2 are computed."""


def local_errors(method, h):
    sol = daedal.solve(INDEX1, (0.0, h), ([1.0], [1.0]), method=method, fixed_step=h)
    return np.abs(np.array([sol.y[0, -1] - (1.0 + h) ** -2, sol.z[0, -1] - 1.0 / (1.0 + h)]))


@pytest.mark.parametrize("columns, exponents", [(2, (3, 2)), (3, (4, 3)), (4, (5, 4))])
def test_orders_of_the_linearly_implicit_scheme_are_those_of_the_book(columns, exponents):
    """The diagonals of Tables 4.6.1 and 4.6.2, by the compiled method; local errors of y have one power more."""
    method = Extrapolation(sequence="harmonic", columns=columns)
    coarse, fine = (local_errors(method, h) for h in (0.025, 0.0125))
    observed = np.log2(coarse / fine)
    assert np.all(observed > np.array(exponents) - 0.3) and np.all(observed < np.array(exponents) + 0.2)


def test_more_columns_of_the_linearly_implicit_scheme_do_not_raise_the_order_of_z():
    """Table 4.6.2: the diagonal stays at 4, where the implicit scheme gains with every column."""
    exponents = {}
    for scheme in ("linearly implicit", "implicit"):
        method = Extrapolation(scheme=scheme, sequence="harmonic", columns=5)
        coarse, fine = (local_errors(method, h)[1] for h in (0.025, 0.0125))
        exponents[scheme] = math.log2(coarse / fine)
    assert 3.7 < exponents["linearly implicit"] < 4.6
    assert 5.4 < exponents["implicit"] < 6.3


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_the_implicit_scheme_has_an_unperturbed_expansion(columns):
    """Local errors of y and z with k columns fall like H^(k+1) (theorem 4.6.1 with eps = 0)."""
    method = Extrapolation(scheme="implicit", sequence="harmonic", columns=columns)
    coarse, fine = (local_errors(method, h) for h in (0.025, 0.0125))
    observed = np.log2(coarse / fine)
    assert np.all(observed > columns + 0.7) and np.all(observed < columns + 1.2)


MASS = daedal.ImplicitDAE(
    lambda t, y, yp: [
        (2.0 + np.sin(y[1])) * (yp[0] - y[1]),
        y[1] * (1.0 + 0.1 * y[0]) - np.cos(t) * (1.0 + 0.1 * np.sin(t)),
    ],
    2,
)
"""M(y) y' = f with y = (sin t, cos t)."""


@pytest.mark.parametrize("scheme, least", [("linearly implicit", 3.8), ("limex", 2.9), ("implicit", 3.8)])
def test_global_order_with_a_mass_matrix_that_depends_on_y(scheme, least):
    """Four columns; scheme 2 is perturbed where the matrix changes (theorem 4.6.3)."""
    errors = []
    for h in (0.1, 0.05):
        method = Extrapolation(scheme=scheme, columns=4)
        sol = daedal.solve(MASS, (0.0, 2.0), ([0.0, 1.0], [1.0, 0.0]), method=method, fixed_step=h)
        errors.append(abs(sol.y[0, -1] - math.sin(2.0)))
    assert least < math.log2(errors[0] / errors[1]) < 4.2


def test_both_schemes_of_the_book_agree_where_the_matrix_is_constant():
    model = library.robertson()
    ends = [
        daedal.solve(
            model.problem, (0.0, 0.3), model.initial, method=Extrapolation(scheme=scheme), rtol=1e-8, atol=1e-12
        )
        for scheme in SCHEMES[:2]
    ]
    np.testing.assert_allclose(ends[0].y[:, -1], ends[1].y[:, -1], rtol=1e-9, atol=1e-14)
    assert ends[1].stats.factorisations > 2 * ends[0].stats.factorisations


@pytest.mark.parametrize("scheme", SCHEMES)
def test_linear_motion_is_exact(scheme):
    """y = a + b t, with a constraint that is linear in t: every Euler step is exact, and so is what is made of them."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 2.0, y[1] - 3.0 * y[0] + t], 2)
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 3.0], [2.0, 5.0]), method=Extrapolation(scheme), fixed_step=0.25)
    np.testing.assert_allclose(sol.y, [1.0 + 2.0 * sol.t, 3.0 + 5.0 * sol.t], atol=2e-14)


# --- runs with error control ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("rtol", [1e-5, 1e-8, 1e-11])
def test_errors_follow_the_tolerance_at_the_ends_of_steps_and_inside(scheme, rtol):
    method = Extrapolation(scheme=scheme)
    sol = daedal.solve(MASS, (0.0, 3.0), ([0.0, 1.0], [1.0, 0.0]), method=method, rtol=rtol, atol=rtol)
    inside = np.linspace(0.0, 3.0, 200)
    assert np.abs(sol.y - [np.sin(sol.t), np.cos(sol.t)]).max() < 30.0 * rtol
    assert np.abs(sol(inside) - [np.sin(inside), np.cos(inside)]).max() < 30.0 * rtol
    assert np.abs(sol.yp[0] - np.cos(sol.t)).max() < 1e3 * rtol


@pytest.mark.parametrize("scheme", SCHEMES)
def test_robertson_to_ten_digits(scheme):
    model = library.robertson()
    truth = [0.7158270687194135, 9.185534764557338e-6, 0.2841637457458255]
    sol = daedal.solve(
        model.problem, (0.0, 40.0), model.initial, method=Extrapolation(scheme=scheme), rtol=1e-10, atol=1e-13
    )
    np.testing.assert_allclose(sol.y[:, -1], truth, rtol=3e-10)


def test_an_equation_that_is_nonlinear_in_the_derivative():
    problem = daedal.ImplicitDAE(
        lambda t, y, yp: [yp[0] ** 3 + yp[0] + y[0] - np.cos(t) - np.cos(t) ** 3 - np.sin(t), y[1] - y[0] ** 2], 2
    )
    for scheme in SCHEMES:
        method = Extrapolation(scheme=scheme)
        sol = daedal.solve(problem, (0.0, 3.0), ([0.0, 0.0], [1.0, 0.0]), method=method, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(sol.y[:, -1], [math.sin(3.0), math.sin(3.0) ** 2], atol=3e-8)


def test_backward_in_time_and_the_same_bits_again():
    def run():
        initial = [math.sin(3.0), math.cos(3.0)], [math.cos(3.0), -math.sin(3.0)]
        return daedal.solve(MASS, (3.0, 0.0), initial, method="extrapolation", rtol=1e-9, atol=1e-9)

    sol = run()
    np.testing.assert_allclose(sol.y[:, -1], [0.0, 1.0], atol=2e-8)
    assert sol.y.tobytes() == run().y.tobytes()


def test_banded_and_sparse_matrices_give_the_same_solution():
    def residual(t, y, yp):
        inner = np.concatenate([[0.0], y, [0.0]])
        return yp - 400.0 * (inner[2:] - 2.0 * y + inner[:-2])

    n = 19
    x = np.linspace(0.0, 1.0, n + 2)[1:-1]
    y0, rate = np.sin(math.pi * x), -1600.0 * math.sin(math.pi / 40.0) ** 2
    for structure in ({}, {"bandwidth": (1, 1)}, {"sparsity": np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)}):
        problem = daedal.ImplicitDAE(residual, n, **structure)
        sol = daedal.solve(problem, (0.0, 0.5), (y0, rate * y0), method="extrapolation", rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(sol.y[:, -1], math.exp(0.5 * rate) * y0, rtol=2e-8)


def test_stiffness_does_not_limit_the_steps():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + 1e8 * (y[0] - np.cos(t)) + np.sin(t)], 1)
    for scheme in SCHEMES:
        sol = daedal.solve(problem, (0.0, 10.0), ([1.0], [0.0]), method=Extrapolation(scheme), rtol=1e-8, atol=1e-8)
        assert sol.stats.steps < 500 and abs(sol.y[0, -1] - math.cos(10.0)) < 1e-6


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_problem_of_index_2_is_refused_with_a_remedy():
    problem = daedal.SemiExplicitDAE(
        lambda t, y, z: [y[1] + z[0] * y[0], -y[0] + z[0] * y[1]], lambda t, y, z: [y @ y - 1.0], 2, 1
    )
    with pytest.raises(InvalidProblemError, match=r"index 2.*radau"):
        daedal.solve(problem, (0.0, 1.0), ([0.0, 1.0], [0.0]), method="extrapolation")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"scheme": "explicit"}, "scheme must be one of"),
        ({"sequence": "fibonacci"}, "unknown sequence"),
        ({"sequence": [2, 2, 3]}, "0 < n_1 < n_2"),
        ({"sequence": [1.5, 2]}, "whole numbers"),
        ({"sequence": 7}, "list of step numbers"),
        ({"sequence": [3]}, "2 to 12"),
        ({"columns": 1}, "from 2 to 12"),
        ({"columns": 4, "sequence": [1, 2, 3]}, "from 2 to 3"),
        ({"linear_solver": "gmres"}, "GMRES requires DASSL"),
        ({"error_test": "some"}, "unknown error_test"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(InvalidProblemError, match=message):
        Extrapolation(**options)


@pytest.mark.parametrize("options", [{"columns": 1}, {"columns": 10}, {"columns": True}, {"projection": "often"}])
def test_options_of_mexx_that_make_no_sense(options):
    with pytest.raises(InvalidProblemError, match=next(iter(options))):
        MEXX(**options)


def test_an_exception_of_the_user_arrives_unchanged():
    def residual(t, y, yp):
        if t > 0.5:
            raise ZeroDivisionError("mine")
        return [yp[0] + y[0]]

    with pytest.raises(ZeroDivisionError, match="mine"):
        daedal.solve(daedal.ImplicitDAE(residual, 1), (0.0, 1.0), ([1.0], [-1.0]), method="extrapolation")


# --- mechanisms -------------------------------------------------------------------------------------------------------

CIRCLE = daedal.MechanicalSystem(
    1.0,
    lambda t, q, v: [0.0, -1.0],
    constraint=lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
    n_q=2,
    n_constraints=1,
)


@pytest.fixture(scope="module")
def swing():
    return daedal.solve(CIRCLE, (0.0, 2.0), ([1.0, 0.0], [0.0, 0.0]), method="dopri5", rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("columns, h", [(2, 0.1), (3, 0.2), (4, 0.4)])
def test_order_of_mexx_is_twice_the_columns(swing, columns, h):
    """Of positions, velocities and multipliers."""
    errors = []
    for step in (h, h / 2.0):
        method = MEXX(columns=columns)
        sol = daedal.solve(CIRCLE, (0.0, 2.0), ([1.0, 0.0], [0.0, 0.0]), method=method, fixed_step=step)
        parts = (sol.q - swing.q[:, -1:], sol.v - swing.v[:, -1:], sol.lam - swing.lam[:, -1:])
        errors.append([np.abs(part[:, -1]).max() for part in parts])
    observed = np.log2(np.divide(*errors))
    assert np.all(observed > 2 * columns - 0.8) and np.all(observed < 2 * columns + 1.7)


def test_mexx_keeps_the_constraints_and_the_tolerance_inside_of_steps(swing):
    inside = np.linspace(0.0, 2.0, 60)
    truth = swing(inside)
    for tol in (1e-6, 1e-9, 1e-12):
        sol = daedal.solve(CIRCLE, (0.0, 2.0), ([1.0, 0.0], [0.0, 0.0]), method="mexx", rtol=tol, atol=tol)
        assert np.abs(sol(inside).q - truth.q).max() < 50.0 * tol
        assert np.abs((sol.q**2).sum(axis=0) - 1.0).max() < tol
        assert np.abs((sol.q * sol.v).sum(axis=0)).max() < tol


def test_mexx_has_fewer_stages_than_dopri5_for_a_sharp_tolerance():
    model = library.seven_body()
    runs = {}
    for method in ("mexx", "dopri5"):
        sol = daedal.solve(model.problem, model.t_span, model.initial, method=method, rtol=1e-12, atol=1e-12)
        runs[method] = np.abs(sol.q[:, -1] - np.asarray(model.reference.y)[:7]).max(), sol.stats.residual_evaluations
    assert runs["mexx"][0] < runs["dopri5"][0]
    assert runs["mexx"][1] < runs["dopri5"][1]


def test_mexx_backward_in_time():
    there = daedal.solve(CIRCLE, (0.0, 2.0), ([1.0, 0.0], [0.0, 0.0]), method="mexx", rtol=1e-11, atol=1e-11)
    back = daedal.solve(CIRCLE, (2.0, 0.0), (there.q[:, -1], there.v[:, -1]), method="mexx", rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(back.q[:, -1], [1.0, 0.0], atol=1e-9)


def test_mexx_refuses_first_order_problems():
    with pytest.raises(InvalidProblemError):
        daedal.solve(MASS, (0.0, 1.0), ([0.0, 1.0], [1.0, 0.0]), method="mexx")


def test_difference_quotients_are_accurate_enough_for_schemes_without_iterations():
    """Values that are passed through bytes cannot be traced."""

    def residual(t, y, yp):
        y1, y2, y3 = np.frombuffer(np.asarray(y, dtype=float).tobytes())
        fast = 1e4 * y2 * y3
        return np.array([yp[0] + 0.04 * y1 - fast, yp[1] - 0.04 * y1 + fast + 3e7 * y2**2, y1 + y2 + y3 - 1.0])

    for scheme in SCHEMES:
        sol = daedal.solve(
            daedal.ImplicitDAE(residual, 3),
            (0.0, 40.0),
            ([1.0, 0.0, 0.0], [-0.04, 0.04, 0.0]),
            method=Extrapolation(scheme=scheme),
            rtol=1e-9,
            atol=1e-12,
        )
        assert sol.stats.jacobian_residual_evaluations > 0
        assert abs(sol.y[0, -1] / 0.7158270687194135 - 1.0) < 1e-8


@pytest.mark.parametrize("scheme", ["linearly implicit", "limex", "implicit"])
def test_index_2_is_refused_with_constant_steps_too(scheme):
    problem = daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [y[0] - np.sin(t)], 1, 1)
    with pytest.raises(InvalidProblemError, match=r"index 0 and 1; this one has index 2 at t = 0"):
        daedal.solve(problem, (0.0, 1.0), ([0.0], [1.0]), method=Extrapolation(scheme), fixed_step=0.1)
