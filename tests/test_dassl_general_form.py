"""DASSL on equations whose derivatives are coupled, and on linear ones of index 1 and 2 in no particular form."""

from dataclasses import replace

import numpy as np
import pytest

import daedal
from daedal.driver.first_order_output import complaint

TOLERANCES = [1e-4, 1e-6, 1e-8]


@pytest.mark.parametrize("rtol", TOLERANCES)
@pytest.mark.parametrize("offset", [0.0, 10.0, 1e3, 1e5])
def test_error_of_coupled_derivatives_is_seen(offset, rtol):
    """y0' - y1' = cos t, y1 = offset - sin t: the error of y0 is that of y1', for which y1 is much too large."""

    def residual(t, y, yp):
        return [yp[0] - yp[1] - np.cos(t), y[1] - (offset - np.sin(t))]

    sol = daedal.solve_dae(residual, (0.0, 10.0), [1.0, offset], [0.0, -1.0], rtol=rtol, atol=rtol, method="dassl")
    assert np.max(np.abs(sol.y[0] - 1.0)) < 100.0 * rtol
    assert sol.stats.steps < 500
    assert sol.stats.rejected < 0.1 * sol.stats.steps
    assert sol.history.order.max() == 5


@pytest.mark.parametrize(
    ("steps", "rejected", "said"), [(10, 11, True), (10, 9, False), (2000, 700, True), (2000, 100, False)]
)
def test_a_run_with_many_rejections_says_so(steps, rejected, said):
    """Whatever the number of steps, if attempts failed more often than not."""
    said_so = complaint(replace(daedal.solution.Statistics(), steps=steps, rejected=rejected))
    assert (f"{rejected} attempts were rejected for {steps} accepted steps" in said_so) == said


class LinearProblem:
    """P (N z' + J z) = ..., z = Q y, from Weierstrass form; y is a known function of time."""

    def __init__(self, seed, index):
        rng = np.random.default_rng(seed)
        n_ode, n_algebraic, blocks = rng.integers(0, 3), rng.integers(0, 3), rng.integers(1, 3) if index == 2 else 0
        n_algebraic += 1 if index == 1 else 0
        n = self.n = int(n_ode + n_algebraic + 2 * blocks)
        N, J = np.zeros((n, n)), np.eye(n)
        N[:n_ode, :n_ode] = np.eye(n_ode)
        J[:n_ode, :n_ode] += 0.3 * rng.normal(size=(n_ode, n_ode))
        for block in range(blocks):
            first = n_ode + n_algebraic + 2 * block
            N[first, first + 1] = 1.0
        P, Q = self._regular(rng, n), self._regular(rng, n)
        self.E, self.A = P @ N @ Q, P @ J @ Q
        self.size, self.frequency, self.phase = rng.normal(size=n), rng.uniform(0.5, 3.0, n), rng.uniform(0.0, 6.0, n)

    @staticmethod
    def _regular(rng, n):
        while True:
            matrix = rng.normal(size=(n, n))
            if np.linalg.cond(matrix) < 30.0:
                return matrix

    def exact(self, t):
        return self.size * np.sin(np.multiply.outer(t, self.frequency) + self.phase)

    def slope(self, t):
        return self.size * self.frequency * np.cos(np.multiply.outer(t, self.frequency) + self.phase)

    def residual(self, t, y, yp):
        return self.E @ (yp - self.slope(t)) + self.A @ (y - self.exact(t))


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 12), marks=pytest.mark.soak)], ids=["few", "more"])
@pytest.mark.parametrize("slope_is_given", [True, False])
@pytest.mark.parametrize("rtol", TOLERANCES)
@pytest.mark.parametrize("index", [1, 2])
def test_linear_problems_in_general_form(index, rtol, slope_is_given, seeds):
    for seed in seeds:
        model = LinearProblem(seed, index)
        slope = model.slope(0.0) if slope_is_given else None
        sol = daedal.solve_dae(
            model.residual, (0.0, 4.0), model.exact(0.0), slope, rtol=rtol, atol=rtol, method="dassl"
        )
        exact = model.exact(sol.t).T
        error = np.max(np.abs(sol.y - exact) / (rtol + rtol * np.abs(exact)))
        assert error < 100.0, f"seed {seed}: error of {error:.3g} tolerances"
        assert sol.stats.steps < 2000, f"seed {seed}: {sol.stats.steps} steps"


@pytest.mark.parametrize("structure", ["user's jacobian", "banded", "sparse", "gmres"])
def test_index_2_with_every_kind_of_matrix(structure):
    """y0' = y1, y0 = sin t, and a decay beside them."""
    from scipy.sparse import csc_array

    def residual(t, y, yp):
        return [yp[0] - y[1], y[0] - np.sin(t), yp[2] + y[2]]

    options = {
        "user's jacobian": {"jacobian": lambda t, y, yp, cj: [[cj, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, cj + 1.0]]},
        "banded": {"bandwidth": (1, 1)},
        "sparse": {"sparsity": csc_array([[1, 1, 0], [1, 0, 0], [0, 0, 1]])},
        "gmres": {},
    }[structure]
    problem = daedal.ImplicitDAE(residual, 3, **options)
    method = {}
    if structure == "gmres":
        method = {"linear_solver": "gmres", "preconditioner": daedal.linear_solvers.BandedPreconditioner(1, 1)}
    sol = daedal.solve(
        problem, (0.0, 5.0), ([0.0, 1.0, 1.0], [1.0, 0.0, -1.0]), rtol=1e-6, atol=1e-6, **method, method="dassl"
    )
    np.testing.assert_allclose(sol.y[1], np.cos(sol.t), atol=5e-5)
    assert sol.stats.steps < 300


def reactor():
    return daedal.SemiExplicitDAE(
        lambda t, y, z: [0.5 - z[0], 1.0 - z[0] * y[1] / y[0] - y[1]],
        lambda t, y, z: [y[0] - 1.0 - 0.1 * np.sin(t)],
        2,
        1,
    )


@pytest.mark.parametrize("form", ["semi-explicit", "residual", "residual with y'"])
@pytest.mark.parametrize("options", [{}, *({"rtol": tol, "atol": tol} for tol in TOLERANCES)])
def test_reactor_of_index_2(form, options):
    """A flow z that keeps the volume y0 on its course, of which neither the first step nor z is given."""
    problem, initial = reactor(), ([1.0, 0.0], None)
    if form != "semi-explicit":
        problem = daedal.ImplicitDAE(problem.implicit().residual, 3)
        initial = ([1.0, 0.0, 0.4], None if form == "residual" else [0.1, 1.0, 0.0])
    sol = daedal.solve(problem, (0.0, 10.0), initial, **options, method="dassl")
    rtol = options.get("rtol", 1e-6)
    np.testing.assert_allclose(sol.y[2], 0.5 - 0.1 * np.cos(sol.t), atol=20.0 * rtol)
    assert sol.stats.rejected < 0.2 * sol.stats.steps


def test_steps_near_the_end_are_not_short_for_index_2():
    """The error of y' is round-off divided by h: the last step must not be what is left over."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] - np.sin(t)], 2)
    sol = daedal.solve(problem, (0.0, 5.0), ([0.0, 1.0], [1.0, 0.0]), rtol=1e-6, atol=1e-6, method="dassl")
    assert sol.history.h[-1] > 0.2 * np.median(sol.history.h)
