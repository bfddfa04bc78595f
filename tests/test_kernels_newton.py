"""The modified Newton iteration of DASSL, seen through the points at which it evaluates the residual.

Brenan, Campbell and Petzold, section 5.2.2: the factor c = 2 a^/(a + a^) for an old matrix, the refresh of the matrix
when a/a^ leaves [3/5, 5/3], the rate of convergence and the tests that end the iteration.
"""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal
from daedal import library


class LinearSpy:
    """y' = A y + forcing with its exact Jacobian; keeps every residual and Jacobian call in the order of events."""

    def __init__(self, A, forcing=None, matrix_factor=1.0):
        self.A, self.calls, self.matrix_factor = np.atleast_2d(A).astype(float), [], matrix_factor
        n = self.A.shape[0]
        self.forcing = (lambda t: np.zeros(n)) if forcing is None else forcing
        self.problem = daedal.ImplicitDAE(self._residual, n, jacobian=self._jacobian)

    def _residual(self, t, y, yp):
        self.calls.append((t, y.copy(), yp.copy()))
        return yp - self.A @ y - self.forcing(t)

    def _jacobian(self, t, y, yp, cj):
        self.calls.append((t, cj))
        return self.matrix_factor * (cj * np.eye(self.A.shape[0]) - self.A)

    def solve(self, t_span, y0, **options):
        y0 = np.array(y0)
        yp0 = self.A @ y0 + self.forcing(t_span[0])
        sol = daedal.solve(self.problem, t_span, (y0, yp0), method="dassl", error_test="all", **options)
        start = next(i for i, call in enumerate(self.calls) if call[0] != t_span[0])
        self.calls = self.calls[start:]
        return sol

    def iterations(self):
        """(cj, cj of the matrix, iterates) of every attempted step with at least two iterates."""
        matrix = np.nan
        for t, group in groupby(self.calls, key=lambda call: call[0]):
            points = []
            for call in group:
                if len(call) == 2:
                    matrix = call[1]
                else:
                    points.append(call[1:])
            if len(points) > 1:
                (y0, yp0), (y1, yp1) = points[:2]
                largest = np.argmax(np.abs(y1 - y0))
                cj = (yp1 - yp0)[largest] / (y1 - y0)[largest]
                yield t, cj, matrix, points

    def solution_of_step(self, t, cj, point):
        """The y with F(t, y, y') = 0 on the line y' = y'_0 + cj (y - y_0) through `point`."""
        y, yp = point
        n = y.size
        return np.linalg.solve(cj * np.eye(n) - self.A, cj * y - yp + self.forcing(t))


def contraction(spy):
    """Largest contraction of the error in units of the bound |(a^ - a)/(a^ + a)|, and the largest bound."""
    worst, oldest = 0.0, 0.0
    for t, cj, matrix, points in spy.iterations():
        bound = abs((matrix - cj) / (matrix + cj))
        target = spy.solution_of_step(t, cj, points[0])
        before = np.linalg.norm(points[0][0] - target)
        after = np.linalg.norm(points[1][0] - target)
        if bound > 1e-3 and before > 1e-9 * np.linalg.norm(target):
            worst, oldest = max(worst, after / before / bound), max(oldest, bound)
    return worst, oldest


@given(st.floats(-2.0, 3.0), st.floats(0.0, 0.5))
def test_old_matrix_contracts_by_its_bound_in_the_left_half_plane(exponent, angle):
    """For normal A with eigenvalues in the left half plane: |y1 - y*| <= |(a^ - a)/(a^ + a)| |y0 - y*|."""
    size = 10.0**exponent
    real, imaginary = -size * np.cos(np.pi * angle), size * np.sin(np.pi * angle)
    spy = LinearSpy([[real, imaginary], [-imaginary, real]], lambda t: np.array([np.sin(t), np.cos(3.0 * t)]))
    spy.solve((0.0, 2.0), [1.0, 0.5], rtol=1e-4, atol=1e-6, remember_rate=False)
    worst, oldest = contraction(spy)
    assert oldest > 0.05
    assert worst <= 1.0 + 1e-5


@pytest.mark.parametrize("decay", [1e-8, 1e8])
def test_bound_is_sharp_for_very_slow_and_very_fast_components(decay):
    """c balances both ends of the spectrum: at 0 the factor is (a^ - a)/(a^ + a), at infinity its negative."""
    spy = LinearSpy([[-decay]], lambda t: np.array([np.sin(t) * max(1.0, decay)]))
    spy.solve((0.0, 2.0), [0.0], rtol=1e-4, atol=1e-6, remember_rate=False)
    worst, _ = contraction(spy)
    assert worst == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("max_order", [1, 3, 5])
def test_matrix_is_renewed_exactly_when_its_bound_passes_one_quarter(max_order):
    spy = LinearSpy([[-1.0, 5.0], [-5.0, -1.0]])
    options = {"rtol": 1e-5, "atol": 1e-9, "first_step": 1e-3, "remember_rate": False}
    sol = spy.solve((0.0, 8.0), [1.0, 0.0], max_order=max_order, **options)
    assert sol.stats.newton_failures == 0
    # The last step is fitted to the end of the interval and may be too short for a second iterate.
    renewed = [call[1] for call in spy.calls if len(call) == 2 and call[0] < 8.0]
    # A new cj always needs two iterates, also in the rejected attempts that the history does not show.
    expected, matrix = [], np.inf
    for t, cj, _, _ in spy.iterations():
        if t < 8.0 and not 0.6 <= cj / matrix <= 1.0 / 0.6:
            matrix = cj
            expected.append(cj)
    assert len(renewed) > 5
    np.testing.assert_allclose(renewed, expected, rtol=1e-6)


def test_reset_rate_needs_two_iterations_and_remembered_rate_often_one():
    """The rate factor is set to 100 at the start of every step, or kept as long as cj does not change."""
    counts = {}
    for remember in (True, False):
        spy = LinearSpy([[-1.0, 5.0], [-5.0, -1.0]])
        sol = spy.solve((0.0, 10.0), [1.0, 0.0], rtol=1e-5, atol=1e-9, remember_rate=remember)
        attempts = sol.stats.steps + sol.stats.rejected
        counts[remember] = sol.stats.newton_iterations / attempts
    assert counts[False] >= 1.9
    assert counts[True] < 1.7


def test_newton_gives_up_after_four_iterations():
    """A matrix twice too large halves the error per iteration: not fast enough for a jump in the forcing."""
    spy = LinearSpy([[-1.0]], lambda t: np.array([0.0 if t < 0.5 else 1e3]), matrix_factor=2.0)
    sol = spy.solve((0.0, 1.0), [1.0], rtol=1e-4, atol=1e-6)
    assert sol.stats.newton_failures > 0
    before, after = [], []  # residuals at one time before and after its matrix
    for _, group in groupby(spy.calls, key=lambda call: call[0]):
        kinds = ["matrix" if len(call) == 2 else "residual" for call in group]
        cut = kinds.index("matrix") if "matrix" in kinds else len(kinds)
        before.append(cut)
        after.append(len(kinds) - cut - 1)
    # Four iterations need four residuals. A failure with an old matrix starts again from the prediction with a new one.
    assert max(before) <= 5
    assert max(after) == 3


def test_one_iteration_solves_a_linear_problem_with_a_current_matrix():
    spy = LinearSpy([[-2.0, 1.0], [0.5, -3.0]])
    spy.solve((0.0, 5.0), [1.0, -1.0], rtol=1e-6, atol=1e-9, remember_rate=False)
    exact = [
        np.linalg.norm(points[1][0] - spy.solution_of_step(t, cj, points[0]))
        for t, cj, matrix, points in spy.iterations()
        if matrix == pytest.approx(cj, rel=1e-9)
    ]
    assert len(exact) > 5
    assert max(exact) < 1e-14


# --- norm and increments --------------------------------------------------------------------------------------


def test_default_norm_is_the_weighted_root_mean_square():
    """The same norm written by the user gives the same run, another norm another one."""
    model = library.pendulum(form="index1")
    options = {"rtol": 1e-6, "atol": np.array([1e-6, 1e-7, 1e-8, 1e-6, 1e-5])}
    runs = {
        name: daedal.solve(
            model.problem, (0.0, 3.0), model.initial, method="dassl", norm=norm, remember_rate=False, **options
        )
        for name, norm in {
            "default": None,
            "written out": lambda v, w: np.sqrt(np.mean((v / w) ** 2)),
            "largest": lambda v, w: np.max(np.abs(v) / w),
        }.items()
    }
    np.testing.assert_allclose(runs["written out"].history.h, runs["default"].history.h, rtol=1e-9)
    np.testing.assert_array_equal(runs["written out"].history.order, runs["default"].history.order)
    assert runs["largest"].stats.steps > runs["default"].stats.steps


@pytest.mark.parametrize("mask", ["all", [True, True, False, False, False]])
def test_weights_reach_the_users_norm(mask):
    """Excluded components arrive as zeros."""
    model = library.pendulum(form="index1")
    seen = []

    def norm(v, w):
        seen.append((v.copy(), w.copy()))
        return np.sqrt(np.mean((v / w) ** 2))

    rtol, atol = 1e-3, 1e-4
    daedal.solve(
        model.problem, (0.0, 0.1), model.initial, rtol=rtol, atol=atol, method="dassl", norm=norm, error_test=mask
    )
    y0 = model.initial[0]
    assert any(np.allclose(w, rtol * np.abs(y0) + atol) for _, w in seen)
    excluded = [v for v, w in seen if np.all(v[2:] == 0.0) and np.all(w[2:] == 1.0)]
    assert bool(excluded) == (mask != "all")


@pytest.mark.parametrize("increment", ["robust", "book"])
def test_difference_increment_is_the_books(increment):
    """delta_j = sign(h y'_j) max(|y_j|, |h y'_j|) sqrt(u) where the error weight is small beside y_j."""
    points = []

    def residual(t, y, yp):
        points.append((t, y.copy(), yp.copy()))
        return [yp[0] - 3.0 * y[0], yp[1] + 0.5 * y[1]]

    problem = daedal.ImplicitDAE(residual, 2)
    h = 2.0**-6
    options = {"rtol": 1e-9, "atol": 1e-14, "first_step": h, "t_stop": 10.0}
    try:
        daedal.solve(
            problem, (0.0, 1.0), ([2.0, -4.0], [6.0, 2.0]), method="dassl", increment=increment, max_steps=1, **options
        )
    except daedal.IntegrationError:
        pass
    first = [p for p in points if p[0] == h][:3]  # the prediction, then one column after the other
    (_, y, yp), *columns = first
    for j, (_, shifted, shifted_slope) in enumerate(columns):
        delta = shifted[j] - y[j]
        expected = np.sign(h * yp[j]) * np.sqrt(np.finfo(float).eps) * max(abs(y[j]), abs(h * yp[j]))
        assert delta == pytest.approx(expected, rel=1e-7)
        assert shifted_slope[j] - yp[j] == pytest.approx(delta / h, rel=1e-6)
        others = np.arange(2) != j
        np.testing.assert_array_equal(shifted[others], y[others])


@pytest.mark.parametrize(("increment", "power"), [("robust", 0.25), ("book", 0.5)])
def test_difference_increment_at_zero_is_a_share_of_the_error_weight(increment, power):
    points = []

    def residual(t, y, yp):
        points.append((t, y.copy()))
        return [yp[0] - y[1], y[1] - 0.0]

    problem = daedal.ImplicitDAE(residual, 2)
    atol = np.array([1e-6, 1e-3])
    h = 2.0**-6
    daedal.solve(
        problem, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), atol=atol, first_step=h, method="dassl", increment=increment
    )
    base, _, second = [y for t, y in points if t == h][:3]  # the prediction, then one column after the other
    assert abs(second[1] - base[1]) == pytest.approx(np.finfo(float).eps ** power * 1e-3, rel=1e-9)
