"""Time-varying linear systems: derivative arrays, indices, canonical forms, completions (daedal.linear)."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import daedal
from daedal import linear
from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.index.linear.functions_of_time import Taylor
from daedal.index.linear.strangeness import inverse, product, rate
from linear_systems import (
    INTEGRATED_A,
    INTEGRATED_B,
    ORIGINAL_A,
    ORIGINAL_B,
    chain,
    example_241,
    example_242,
    example_243,
    example_3113,
    example_4333,
    flat,
    kronecker_pencil,
    weierstrass_pencil,
)

TIMES = (1.0 / 3.0, 2.0, -0.5, 0.0)


def forced(t):
    return [np.sin(t), np.cos(2.0 * t)]


def dressed(rng, finite, blocks):
    """A system with this Weierstrass structure after x = Q(t) y and multiplication by P(t), and its constant core."""
    A, B, _ = weierstrass_pencil(rng, finite, blocks, 2.0)
    n = len(A)
    turn, stretch = rng.normal(size=(2, n, n)) / n

    def P(t):
        return np.eye(n) + stretch * np.sin(t)

    def Q(t):
        return np.eye(n) + turn * t * 0.5

    def changed_A(t):
        return P(t) @ A @ Q(t)

    def changed_B(t):
        return P(t) @ (B @ Q(t) + A @ (turn * 0.5))

    return linear.TimeVarying(changed_A, changed_B, n=n), Q


# --- Taylor series


@given(st.floats(0.2, 2.0))
def test_taylor_series_of_functions(t):
    x = Taylor.variable(t, 5)
    functions = [
        (np.exp, lambda s: np.exp(s) * np.ones(5)),
        (np.sin, lambda s: np.sin(s + np.arange(5) * np.pi / 2)),
        (np.cos, lambda s: np.cos(s + np.arange(5) * np.pi / 2)),
        (np.log, lambda s: np.array([np.log(s), 1 / s, -1 / s**2, 2 / s**3, -6 / s**4])),
        (lambda s: 1.0 / s, lambda s: np.array([1.0, -1.0, 2.0, -6.0, 24.0]) / s ** np.arange(1, 6)),
        (lambda s: s**3 - 2.0 * s, lambda s: np.array([s**3 - 2 * s, 3 * s**2 - 2, 6 * s, 6.0, 0.0])),
    ]
    for function, derivatives in functions:
        expected = derivatives(t) / [math.factorial(k) for k in range(5)]
        np.testing.assert_allclose(function(x).c, expected, rtol=1e-10, atol=1e-10)


@given(st.floats(0.2, 2.0))
def test_taylor_series_of_functions_by_their_equations(t):
    x = Taylor.variable(t, 6)
    one = np.eye(1, 6)[0]
    np.testing.assert_allclose((np.sqrt(x) * np.sqrt(x)).c, x.c, atol=1e-11)
    np.testing.assert_allclose((np.cosh(x) ** 2 - np.sinh(x) ** 2).c, one, atol=1e-9)
    np.testing.assert_allclose((np.tan(np.arctan(x))).c, x.c, atol=1e-6)
    np.testing.assert_allclose((np.tanh(x) * np.cosh(x)).c, np.sinh(x).c, atol=1e-9)
    np.testing.assert_allclose((x**2.5 * x**-2.5).c, one, atol=1e-8)
    np.testing.assert_allclose((2.0**x).c, np.exp(np.log(2.0) * x).c, atol=1e-12)
    np.testing.assert_allclose(abs(-x).c, x.c)
    np.testing.assert_allclose((x**x).c, np.exp(x * np.log(x)).c, atol=1e-9)


@settings(deadline=None, max_examples=20)
@given(n=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_series_of_matrices(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, n, n)) + 3.0 * np.eye(n) * (np.arange(5) == 0)[:, None, None]
    unit = product(X, inverse(X))
    np.testing.assert_allclose(unit[0], np.eye(n), atol=1e-9)
    size = 1.0 + np.abs(inverse(X)).max()
    np.testing.assert_allclose(unit[1:], 0.0, atol=1e-9 * size)
    Y = rng.normal(size=(5, n, n))
    leibniz = product(rate(X), Y[:4]) + product(X[:4], rate(Y))
    np.testing.assert_allclose(rate(product(X, Y)), leibniz, atol=1e-12)


@pytest.mark.parametrize("kind", ["series", "interpolated", "filled"])
def test_coefficients_that_cannot_take_series_are_interpolated(kind):
    def A(t):
        if kind == "series":
            return [[1.0, np.sin(t)], [0.0, 0.0]]
        if kind == "interpolated":
            return [[1.0, math.sin(t)], [0.0, 0.0]]
        result = np.zeros((2, 2))
        result[0] = [1.0, np.sin(t)]
        return result

    system = linear.TimeVarying(A, lambda t: [[0.0, 0.0], [1.0, np.sin(t)]], n=2)
    assert system.index(0.5) == 2 and system.strangeness(0.5).index == 1
    assert system.A.exact(0.5) == (kind == "series")
    expected = [np.sin(0.5), np.cos(0.5), -np.sin(0.5) / 2.0, -np.cos(0.5) / 6.0]
    np.testing.assert_allclose(system.A.taylor(0.5, 4)[:, 0, 1], expected, atol=1e-10)


def test_answers_do_not_depend_on_what_was_asked_before():
    """A singular value that is zero only for interpolated coefficients, whose ranks have a larger tolerance."""

    def A(t):
        return [[1.0, 1.0 + math.sin(t)], [1.0, 1.0 + 5e-10 + math.sin(t)]]

    def B(t):
        return [[1.0, 0.0], [0.0, 2.0 + math.sin(t)]]

    fresh, used, later = (linear.TimeVarying(A, B, n=2) for _ in range(3))
    used.series(0.0, 3)
    later.strangeness(0.7)
    assert [system.array(0.0, 1).rank.rank for system in (fresh, used, later)] == [1, 1, 1]
    assert fresh.index(0.0) == used.index(0.0) == later.index(0.0) == 1
    assert fresh.tolerance(0.0) == used.tolerance(0.0) > fresh.given_tolerance


def test_functions_that_end_near_the_time_are_interpolated_on_a_smaller_interval():
    system = linear.TimeVarying(lambda t: [[math.sqrt(1.0 - t)]], [[1.0]])
    np.testing.assert_allclose(
        system.A.taylor(0.9, 3)[:, 0, 0], [0.1**0.5, -0.5 / 0.1**0.5, -0.125 / 0.1**1.5], rtol=1e-7
    )


# --- derivative arrays and the index


@pytest.mark.parametrize(
    ("system", "index", "rank"),
    [
        (example_241(), 2, 4),
        (example_3113(-1.0), 2, 4),
        (example_3113(0.5), 2, 4),
        (example_3113(-3.0), 2, 4),
        (chain(), 3, 9),
        (example_4333(), 1, 3),
        (linear.TimeVarying(ORIGINAL_A, ORIGINAL_B), 3, 9),
        (linear.TimeVarying(INTEGRATED_A, INTEGRATED_B), 2, 7),
    ],
)
@pytest.mark.parametrize("t", TIMES)
def test_index_by_derivative_arrays(system, index, rank, t):
    """Proposition 2.4.2: the table of section 5.3, index and rank of the array; and the strangeness index, one less."""
    assert system.index(t) == index
    array = system.array(t, index + 1)
    assert array.one_full and array.clear and array.rank.rank == rank and array.full_row_rank
    assert not system.array(t, index).one_full
    strangeness = system.strangeness(t)
    assert strangeness.clear and strangeness.index == index - 1 and strangeness.differentiation_index == index
    assert system.canonical_form(t).index == index
    reduced, last = system.strangeness_free(t), strangeness.values[-1]
    assert (reduced.index, reduced.d, reduced.a, reduced.v) == (index - 1, last.d, last.a, 0)


def test_ordinary_differential_equations_have_index_zero():
    """Theorem 2.4.1: index 0 exactly where the local index is 0."""
    system = linear.TimeVarying(lambda t: [[2.0 + np.sin(t), t], [0.0, 1.0]], np.eye(2))
    assert system.index(0.3) == 0 == system.pencil(0.3).index
    assert system.strangeness(0.3).index == 0 and system.strangeness(0.3).differentiation_index == 0


def test_solvable_with_a_singular_pencil():
    """Example 2.4.1: x = [t 1; -1 0] y turns it into y2' + y1 = f1, y2 = f2."""
    system = example_241(forced)
    report = system.solvability(TIMES)
    assert report.solvable and not report.regular and report.index == 2 and report.clear
    assert report.local_indices == (None,) * 4
    t = 0.8
    y2, rate2 = np.cos(2 * t), -2.0 * np.sin(2 * t)
    y1 = np.sin(t) - rate2
    found = system.consistent([0.0, 0.0], t)
    np.testing.assert_allclose(found.x, [t * y1 + y2, -y1], atol=1e-12)
    np.testing.assert_allclose(example_241().pencil(t).A / 0.1 @ [t, -1.0], 0.0, atol=1e-15)


def test_regular_pencil_without_solvability():
    """Example 2.4.2: x = phi(t) (t, 1) solves the homogeneous system for every phi."""
    system = example_242()
    report = system.solvability(TIMES)
    assert report.regular and not report.solvable and report.index is None
    for j, ranks in {2: (2, 1, 3), 3: (3, 2, 4)}.items():  # the table of section 5.3
        array = system.array(0.7, j)
        assert (array.rank.rank, array.tail.rank, array.all_columns.rank) == ranks
    t, phi, slope = 0.7, np.sin(1.4), 2.0 * np.cos(1.4)
    x, rate_x = phi * np.array([t, 1.0]), slope * np.array([t, 1.0]) + phi * np.array([1.0, 0.0])
    np.testing.assert_allclose(system.A(t) @ rate_x + x, 0.0, atol=1e-15)
    strangeness = system.strangeness(t)
    assert strangeness.values[-1][3:] == (0, 1, 1) and strangeness.differentiation_index is None
    with pytest.raises(InvalidProblemError, match=r"not solvable near t = 0\.7"):
        system.canonical_form(t)
    with pytest.raises(InvalidProblemError, match=r"no derivative array at t = 0\.7 determines x'"):
        system.consistent([0.0, 0.0], t)


def test_solvable_without_a_canonical_form():
    """Example 2.4.3: local index 2 off 0, 1 at 0; solution x = (f1 - phi f2', f2 - psi f1')."""
    times = [-1.0, -0.4, 0.0, 0.4, 1.0]
    system = example_243(forced)
    report = system.solvability(times)
    assert report.solvable and report.index == 2 and report.local_indices == (2, 2, 1, 2, 2)
    assert system.index(0.0) == 1  # a single time does not show that the rank changes
    assert system.index(times) == 2
    for t in times:
        expected = [np.sin(t) + 2.0 * flat(t) * np.sin(2 * t), np.cos(2 * t) - flat(-t) * np.cos(t)]
        np.testing.assert_allclose(system.consistent([0.0, 0.0], t).x, expected, atol=1e-9)


@pytest.mark.parametrize("eta", [-10.0, -1.0, -0.5, 0.0, 1.0])
def test_pencil_that_is_singular_for_one_parameter(eta):
    """(3.1.13): index 2 for all eta, the pencil singular exactly for -1; elsewhere its index is 2 as well."""
    system = example_3113(eta)
    assert system.index(0.7) == 2
    assert system.pencil(0.7).index == (None if eta == -1.0 else 2)


def test_unclear_ranks_are_not_hidden():
    """A coefficient at the threshold: the index is 1 or 2, and that is what is said."""
    system = linear.TimeVarying([[1.0, 1.0], [0.0, 0.0]], lambda t: [[0.0, 1.0], [1.0, 1.0 + 4e-10 * np.cos(t)]])
    with pytest.raises(linear.UnclearRankError, match="the index depends on a rank that cannot be decided numerically"):
        system.index(0.3)
    with pytest.raises(linear.UnclearRankError):
        system.consistent([0.0, 0.0], 0.3)
    report = system.solvability([0.0, 0.3])
    assert not report.clear and "unclear" in str(report)
    strangeness = system.strangeness(0.3)
    assert not strangeness.clear and "a rank is unclear" in str(strangeness)


def test_rank_that_changes_is_refused_by_theories_that_need_it_constant():
    system = linear.TimeVarying(lambda t: [[t, 0.0], [0.0, 0.0]], np.eye(2))
    assert system.strangeness(1.0).index == 0
    for ask in (system.strangeness, system.canonical_form):
        with pytest.raises(linear.RankChangeError, match="the rank of A is 0 at this time and larger near it"):
            ask(0.0)


@settings(deadline=None, max_examples=25)
@given(
    finite=st.integers(0, 3),
    blocks=st.lists(st.integers(1, 3), max_size=2).map(lambda sizes: sorted(sizes, reverse=True)),
    t=st.floats(-0.5, 0.5),
    seed=st.integers(0, 2**32 - 1),
)
def test_index_is_invariant_under_time_dependent_transformations(finite, blocks, t, seed):
    """Analytic equivalence (theorems 2.4.2 and 2.4.3): the index stays, the local index as far as it is 0 or 1."""
    if finite + sum(blocks) == 0:
        return
    system, Q = dressed(np.random.default_rng(seed), finite, blocks)
    if np.linalg.cond(Q(t)) > 100.0:
        return
    index = max(blocks, default=0)
    arrays = system.array(t, index + 1)
    if not arrays.clear:
        return
    assert system.index(t) == index
    strangeness = system.strangeness(t)
    if strangeness.clear:
        assert strangeness.differentiation_index == index
        assert strangeness.values[-1].d == finite and strangeness.values[-1].a == sum(blocks)
    reduced = system.strangeness_free(t)
    assert (reduced.d, reduced.a) == (finite, sum(blocks))
    stacked = np.vstack([reduced.A1, reduced.B2])
    assert np.linalg.matrix_rank(stacked, tol=1e-8 * np.linalg.norm(stacked, 2)) == len(stacked)
    local = system.pencil(t)
    if local.clear and local.regular:
        assert min(local.index, 2) == min(index, 2)


@settings(deadline=None, max_examples=40)
@given(
    finite=st.integers(0, 3),
    blocks=st.lists(st.integers(1, 4), max_size=2),
    right=st.lists(st.integers(0, 2), max_size=2),
    left=st.lists(st.integers(0, 2), max_size=2),
    varying=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_characteristic_values_of_any_system(finite, blocks, right, left, varying, seed):
    """Kunkel and Mehrmann: the last characteristic values count the blocks of Kronecker's form, regular or not."""
    m = finite + sum(blocks) + sum(right) + sum(k + 1 for k in left)
    n = finite + sum(blocks) + sum(k + 1 for k in right) + sum(left)
    if min(m, n) == 0 or max(m, n) > 12:
        return
    rng = np.random.default_rng(seed)
    A, B = kronecker_pencil(rng, finite, blocks, right, left)
    turn, stretch = rng.normal(size=(n, n)) / n * varying, rng.normal(size=(m, m)) / m * varying

    def P(t):
        return np.eye(m) + stretch * np.sin(t)

    def Q(t):
        return np.eye(n) + 0.5 * turn * t

    system = linear.TimeVarying(lambda t: P(t) @ A @ Q(t), lambda t: P(t) @ (B @ Q(t) + 0.5 * A @ turn), n=(m, n))
    found = system.strangeness(0.3)
    if not found.clear:
        return
    assert found.index == max([0, *(size - 1 for size in blocks), *left])
    last = found.values[-1]
    assert (last.d, last.u, last.v) == (finite + sum(right), len(right), len(left))
    assert last.a == sum(blocks) + sum(left)
    reduced = system.strangeness_free(0.3)
    assert (reduced.index, reduced.d, reduced.a, reduced.v) == (found.index, last.d, last.a, last.v)


def test_time_dependent_transformation_changes_the_local_index():
    """Section 5.1: an index-3 chain in other unknowns has local index 2."""
    A, B = np.eye(3, k=1), np.eye(3)

    def Q(t):
        return np.array(
            [[1.0 + 0.0 * t, 0.0 * t, 0.0 * t], [0.0 * t, 1.0 + 0.0 * t, 0.0 * t], [t, 0.0 * t, 1.0 + 0.0 * t]]
        )

    slope = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    system = linear.TimeVarying(lambda t: A @ Q(t), lambda t: B @ Q(t) + A @ slope, n=3)
    assert system.index([0.2, 0.5]) == 3
    assert system.pencil(0.5).index != 3


# --- canonical form


def form_error(system, form, count=3):
    """How far P A Q and P (B Q + A Q') are from diag(I, N), diag(C, I), as series."""
    k = form.n_finite
    A, B = system.A.taylor(form.t, len(form.P)), system.B.taylor(form.t, len(form.P))
    leading = product(product(form.P, A), form.Q)
    rest = product(form.P[:-1], product(B, form.Q)[:-1] + product(A[:-1], rate(form.Q)))
    n = system.n
    leading[0, :k, :k] -= np.eye(k)
    leading[:, k:, k:] -= form.N
    rest[:, :k, :k] -= form.C[: len(rest)]
    rest[0, k:, k:] -= np.eye(n - k)
    return max(np.abs(leading[:count]).max(), np.abs(rest[:count]).max())


@pytest.mark.parametrize("blocks", [[1], [2], [3], [2, 1], [4]])
def test_standard_canonical_form(blocks):
    """Theorem 2.4.4 and definition 2.4.5: N strictly upper triangular."""
    system, _ = dressed(np.random.default_rng(sum(blocks)), 2, blocks)
    form = system.canonical_form(0.3)
    assert form.index == max(blocks) and form.n_finite == 2
    assert form_error(system, form) < 1e-7 * (1.0 + np.abs(form.P).max() * np.abs(form.Q).max())
    assert np.allclose(form.N, np.triu(form.N, 1), atol=1e-10)


def test_canonical_form_of_a_book_example():
    form = example_4333().canonical_form(0.4)
    assert form.index == 1 and form.n_finite == 1
    np.testing.assert_allclose(form.C[:, 0, 0], np.eye(1, len(form.C))[0], atol=1e-12)  # y' + y = ...
    assert form_error(example_4333(), form) < 1e-11
    assert form_error(example_241(), example_241().canonical_form(0.4)) < 1e-11


# --- consistent initial values


def test_consistent_values_of_the_figures():
    """Section 5.3: the algorithm of theorem 2.4.8 at t0 = 1/2."""
    found = chain().consistent(np.zeros(3), 0.5)
    assert len(found.constraints) == 3
    np.testing.assert_allclose(found.x, [-1.10841896483199, 1.64872127070013, 3.81108877892012], rtol=1e-13)
    found = example_3113(-3.0).consistent(np.zeros(2), 0.5)
    np.testing.assert_allclose(found.x, [-0.836948304231356, -0.877582561890373], rtol=1e-13)
    found = example_4333().consistent([1.0, 0.0], 0.5)
    assert len(found.constraints) == 1
    np.testing.assert_allclose(found.x, [1.0, np.sin(0.5)], rtol=1e-13)
    assert "x[1] = 0.479426 must hold, but is 0" in found.words()


def test_given_derivatives_determine_a_start():
    """Section 6.1 of the applications: Y1' + Y2' + Y1 = g1, Y2 = g2 with Y1' given; Y2' = g2' has to be found."""
    system = linear.TimeVarying(
        [[1.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], lambda t: [np.cos(t), np.exp(2.0 * t)], names=["Y1", "Y2"]
    )
    found = system.initial_values(0.0, rates={0: 5.0})
    np.testing.assert_allclose(found.x, [1.0 - 5.0 - 2.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(found.rates, [5.0, 2.0], atol=1e-12)
    assert found.free == () and "all determined" in str(found)
    assert system.initial_values(0.0).free == ("Y1", "Y1'")
    by_value = system.initial_values(0.0, x={0: -6.0})
    np.testing.assert_allclose(by_value.rates, [5.0, 2.0], atol=1e-12)
    with pytest.raises(InconsistentInitialError, match="contradict the equations"):
        system.initial_values(0.0, x={0: -6.0}, rates={0: 1.0})
    with pytest.raises(InvalidProblemError, match="unknown 2 does not exist"):
        system.initial_values(0.0, x={2: 1.0})


# --- completions


def test_completion_has_the_solutions_of_the_system():
    """(2.4.7), integrated: (4.3.33) from consistent values, x = exp(-t) + t sin t, y = sin t."""
    system = example_4333()

    def slope(t, x):
        found = system.completion(t)
        return found.G @ x + found.g

    sol = solve_ivp(slope, (0.0, 0.5), [1.0, 0.0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(sol.y[:, -1], [np.exp(-0.5) + 0.5 * np.sin(0.5), np.sin(0.5)], atol=1e-6)


@pytest.mark.parametrize("shift", [0.0, 1.5])
@pytest.mark.parametrize("index", [1, 2, 3])
def test_additional_dynamics_of_constant_systems(index, shift):
    """Violations of the constraints stay as they are, or decay with the stabilised operator d/dt + shift."""
    A, B, C = weierstrass_pencil(np.random.default_rng(index), 2, [index], 2.0)
    system = linear.TimeVarying(A, B)
    found = system.completion(0.0, stabilisation=shift)
    expected = np.concatenate([np.linalg.eigvals(-C), np.full(index, -shift)])
    coefficients = np.poly(found.G)
    np.testing.assert_allclose(coefficients, np.poly(expected).real, atol=1e-6 * np.abs(coefficients).max())
    np.testing.assert_allclose(np.poly(found.additional), np.poly(np.full(index, -shift)), atol=1e-5)


def test_additional_dynamics_of_a_time_varying_system():
    """The violation of the constraints along the completion obeys e' = K e."""
    system = example_3113(0.5)
    t, x, h = 0.6, np.array([1.0, -0.3]), 1e-5
    found = system.completion(t)
    W = system.consistent(x, t).constraints
    np.testing.assert_allclose(W, np.eye(2), atol=1e-12)  # so that the violation is x minus the solution

    def solution(s):
        return np.array([np.sin(s) + 0.5 * s * np.cos(s), -np.cos(s)])

    slope = (solution(t + h) - solution(t - h)) / (2.0 * h)
    change = found.G @ x + found.g - slope
    assert found.additional.shape == (2, 2)
    np.testing.assert_allclose(found.G @ (x - solution(t)), change, atol=1e-8)
    np.testing.assert_allclose(
        np.sort_complex(found.additional_eigenvalues), np.sort_complex(np.linalg.eigvals(found.G)), atol=1e-5
    )


# --- words and wrong input


def test_everything_prints_in_words():
    system = example_4333()
    t = 0.5
    texts = {
        "Strangeness index 0": system.strangeness(t),
        "Strangeness-free system": system.strangeness_free(t),
        "Standard canonical form near t = 0.5": system.canonical_form(t),
        "Completion x' = G x + g": system.completion(t),
        "determines x' (1-full)": system.array(t, 2),
        "solvable, index 1": system.solvability([0.0, 1.0]),
    }
    for words, value in texts.items():
        assert words in str(value) and words in repr(value) and "<table" in value._repr_html_()
    assert repr(system) == "<A(t) x' + B(t) x = f(t): 2 equations, 2 unknowns>"


def test_wrong_coefficients():
    with pytest.raises(InvalidProblemError, match="give `n`"):
        linear.TimeVarying(lambda t: [[1.0]], lambda t: [[1.0]])
    with pytest.raises(InvalidProblemError, match=r"B must have the shape \(2, 2\)"):
        linear.TimeVarying(np.eye(2), np.eye(3))
    with pytest.raises(InvalidProblemError, match=r"A at t = 0 must have the shape"):
        linear.TimeVarying(lambda t: [[1.0]], np.eye(2)).index(0.0)
    with pytest.raises(InvalidProblemError, match="must be matrices"):
        linear.TimeVarying([1.0], [1.0])
    with pytest.raises(InvalidProblemError, match="n must be positive"):
        linear.TimeVarying(np.sin, np.sin, n=0)
    with pytest.raises(InvalidProblemError, match="A at t = 0 holds values that are not finite"):
        linear.TimeVarying(lambda t: [[np.inf]], [[1.0]]).index(0.0)


def test_high_strangeness_and_large_arrays():
    """A chain of 12 integrations needs more Taylor coefficients; a large array is refused instead of computed."""
    system = linear.TimeVarying(np.eye(12, k=1), np.eye(12))
    assert system.strangeness(0.0).index == 11 and system.index(0.0) == 12
    large = linear.TimeVarying(np.zeros((10, 410)), np.zeros((10, 410)))
    with pytest.raises(InvalidProblemError, match="the derivative array of size 2 has 820 unknowns"):
        large.index(0.0)
    assert large.strangeness(0.0).values[-1] == (0, 0, 0, 0, 410, 10)


def test_errors_of_the_user_arrive_unchanged():
    def A(t):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        linear.TimeVarying(A, [[1.0]]).index(0.0)


# --- from problems


def test_linear_system_of_a_problem_has_exact_derivatives():
    """(3.1.13) as a residual whose functions are traced; the same array as from the coefficients."""

    def residual(t, x, rates):
        matrix = np.zeros((2, 2))
        matrix[1] = [1.0, 0.5 * t]
        return matrix @ rates + np.array([[1.0, 0.5 * t], [0.0, 1.5]]) @ x - np.array([math.sin(t), 0.0])

    system = daedal.linear.linear_system(daedal.ImplicitDAE(residual, 2, names=["a", "b"]))
    expected = example_3113(0.5)
    assert system.names == ("a", "b") and system.A.exact(0.8)
    for t in (0.0, 0.8):
        found, wanted = system.array(t, 4), expected.array(t, 4)
        np.testing.assert_allclose(found.A, wanted.A, atol=1e-14)
        np.testing.assert_allclose(found.B, wanted.B, atol=1e-14)
        np.testing.assert_allclose(found.f, wanted.f, atol=1e-14)


def test_linear_system_of_a_linear_problem():
    problem = daedal.LinearDAE(
        A=[[0.0]], B=[[-1.0]], C=lambda t: [[1.0 + t]], D=[[0.0]], p=[0.0], q=lambda t: [-np.cos(t)], n_x=1, n_y=1
    )
    system = daedal.linear.linear_system(problem)
    assert system.index(0.5) == 2
    x = np.cos(0.5) / 1.5
    slope = (-np.sin(0.5) - x) / 1.5
    np.testing.assert_allclose(system.consistent([0.0, 0.0], 0.5).x, [x, -slope], atol=1e-12)


def test_solver_stays_on_the_constraints_that_the_array_finds():
    """(4.3.33) by the solver: the exact solution, and consistent at the end by the test of theorem 2.4.8."""

    def residual(t, y, yp):
        return np.array([yp[0] - t * yp[1] + y[0] - (1.0 + t) * y[1], y[1] - np.sin(t)])

    problem = daedal.ImplicitDAE(residual, 2)
    system = daedal.linear.linear_system(problem)
    start = system.initial_values(0.0, x={0: 1.0})
    np.testing.assert_allclose(start.rates, [-1.0, 1.0], atol=1e-12)
    sol = daedal.solve(problem, (0.0, 1.0), (start.x, start.rates), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(sol.y[:, -1], [1.209350425979339, 0.841470984807897], atol=1e-6)
    assert system.consistent(sol.y[:, -1], 1.0).consistent


def test_equations_that_are_not_linear_are_named():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0], y[1] * y[0] - t], 2)
    with pytest.raises(InvalidProblemError, match="equation 1 is not linear"):
        daedal.linear.linear_system(problem)
