"""SPIGMR: the scaled, left-preconditioned, incomplete and restarted GMRES of DASPK (Brown, Hindmarsh and Petzold).

The linear solver is called through the workspace of a linear problem F = A y' + B y - f, for which its difference
products are exact to rounding and G = B + cj A is known.
"""

import ctypes

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import daedal
from daedal import library
from daedal.linear_solvers import (
    GMRES,
    BandedPreconditioner,
    BlockDiagonalPreconditioner,
    ILUPreconditioner,
    Preconditioner,
)
from daedal.methods.evaluation import apply_inverse
from daedal.methods.workspace import Workspace

N = 12


class LinearSystem:
    """G x = b with a preconditioner P and weights w."""

    def __init__(self, seed=0, n=N, symmetric=False, spread=0.5, decades=2.0):
        rng = np.random.default_rng(seed)
        self.n = n
        disturbance = rng.normal(size=(n, n)) * spread / np.sqrt(n)
        self.G = np.diag(np.linspace(1.0, 3.0, n)) + (disturbance + disturbance.T if symmetric else disturbance)
        self.P = np.eye(n) if symmetric else np.diag(np.diag(self.G)) * rng.uniform(0.8, 1.25, n)
        self.weights = np.ones(n) if symmetric else 10.0 ** rng.uniform(-decades, decades, n)
        self.b = rng.normal(size=n) * self.weights * 100.0

    def scaled(self, factors):
        """The same system with its equations multiplied by `factors`, and the preconditioner with them."""
        other = LinearSystem.__new__(LinearSystem)
        other.__dict__ = dict(self.__dict__)
        other.G, other.P = factors[:, None] * self.G, factors[:, None] * self.P
        other.b = factors * self.b
        return other

    def preconditioned_residual(self, x):
        """||P^{-1} (b - G x)|| in the weighted norm."""
        r = np.linalg.solve(self.P, self.b - self.G @ x)
        return float(np.sqrt(np.mean((r / self.weights) ** 2)))

    def solve(self, iterations, tolerance=1e-300, restarts=0, orthogonal_to=None, preconditioner=None):
        """One call of the kernel; returns x, the status, and the records of the iteration."""
        problem = daedal.ImplicitDAE(lambda t, y, yp: self.G @ y, self.n)
        if preconditioner is None:
            preconditioner = Preconditioner(lambda data, r: np.linalg.solve(self.P, r))
        options = GMRES(iterations, orthogonal_to, restarts, 0.5)
        workspace = Workspace(problem, linear_solver=options, preconditioner=preconditioner)
        workspace.linear.data[0]["krylov"]["tolerance"] = tolerance
        y, yp = np.zeros(self.n), np.zeros(self.n)
        r = workspace.residual(0.0, y, yp)
        assert workspace.prepare(0.0, y, yp, r, 0.0, 1.0, 1.0 / self.weights)
        x = self.b.copy()
        status = apply_inverse(
            workspace.system.address, workspace.linear.address, 0.0, y, yp, r, 0.0, 1.0 / self.weights, x
        )
        return x, status, workspace


seeds = st.integers(0, 1000)


@settings(max_examples=15)
@given(seeds, st.integers(1, N - 1))
def test_residual_norm_is_the_product_of_the_sines(seed, iterations):
    """rho_l = ||r_0|| |s_1 ... s_l| is the norm of the true preconditioned residual (complete orthogonalisation)."""
    system = LinearSystem(seed)
    x, _, workspace = system.solve(iterations)
    address = int(workspace.linear.data[0]["krylov"]["givens"])  # pairs of cosine and sine
    sines = np.array((ctypes.c_double * (2 * iterations)).from_address(address))[1::2]
    expected = system.preconditioned_residual(np.zeros(N)) * np.abs(np.prod(sines))
    assert system.preconditioned_residual(x) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@settings(max_examples=15)
@given(seeds)
def test_residual_falls_from_iteration_to_iteration_and_ends_at_zero(seed):
    system = LinearSystem(seed)
    norms = [system.preconditioned_residual(np.zeros(N))]
    norms += [system.preconditioned_residual(system.solve(m)[0]) for m in range(1, N + 1)]
    assert np.all(np.diff(norms) <= 1e-9 * norms[0])
    assert norms[N] < 1e-10 * norms[0]


@settings(max_examples=15)
@given(seeds, st.integers(1, N - 1))
def test_no_vector_of_the_krylov_space_has_a_smaller_residual(seed, iterations):
    """x minimises ||D^{-1} P^{-1} (b - G x)|| over the span of (P^{-1} G)^i P^{-1} b, i < l."""
    system = LinearSystem(seed)
    x = system.solve(iterations)[0]
    step, vector, space = np.linalg.solve(system.P, system.G), np.linalg.solve(system.P, system.b), []
    for _ in range(iterations):
        space.append(vector / np.linalg.norm(vector / system.weights))
        vector = step @ space[-1]
    basis, _ = np.linalg.qr(np.array(space).T / system.weights[:, None])
    basis *= system.weights[:, None]
    image = np.linalg.solve(system.P, system.G @ basis) / system.weights[:, None]
    target = np.linalg.solve(system.P, system.b) / system.weights
    best = basis @ np.linalg.lstsq(image, target, rcond=None)[0]
    # products with G are differences of the residual: their noise is some 1e-11 of where the iteration begins
    noise = 1e-10 * system.preconditioned_residual(np.zeros(N))
    assert system.preconditioned_residual(x) <= system.preconditioned_residual(best) * (1.0 + 1e-6) + noise


@settings(max_examples=15)
@given(seeds, st.lists(st.integers(-20, 20), min_size=N, max_size=N))
def test_units_of_the_equations_do_not_matter(seed, exponents):
    """F -> S F, P -> S P: left preconditioning makes every iterate the same."""
    system = LinearSystem(seed)
    x = system.solve(4)[0]
    other = system.scaled(2.0 ** np.array(exponents)).solve(4)[0]
    np.testing.assert_allclose(other, x, rtol=1e-9, atol=1e-9 * np.max(np.abs(x)))


@settings(max_examples=15)
@given(seeds)
def test_units_of_the_unknowns_do_not_matter(seed):
    """y -> S y with the weights: the norm of the residual after each iteration is the same."""
    system = LinearSystem(seed)
    s = 2.0 ** np.random.default_rng(seed).integers(-20, 20, N)
    other = LinearSystem(seed)
    other.G, other.P, other.weights = system.G / s, system.P / s, system.weights * s
    np.testing.assert_allclose(other.solve(4)[0] / s, system.solve(4)[0], rtol=1e-9)


def test_exact_preconditioner_needs_one_iteration():
    system = LinearSystem(3)
    system.P = system.G
    x, status, workspace = system.solve(5, tolerance=1e-8)
    assert status == 0
    assert workspace.system["linear_iterations"] <= 1
    np.testing.assert_allclose(system.G @ x, system.b, rtol=1e-9)


def test_iteration_ends_when_the_tolerance_is_reached():
    system = LinearSystem(1)
    for tolerance in (10.0, 1e-2, 1e-6):
        x, status, workspace = system.solve(N, tolerance=tolerance)
        assert status == 0
        assert system.preconditioned_residual(x) <= tolerance * (1.0 + 1e-6)
        fewer = int(workspace.system["linear_iterations"]) - 1
        assert fewer < N
        if fewer > 0:
            assert system.preconditioned_residual(system.solve(fewer)[0]) > tolerance


def test_restarts_lead_on_where_the_basis_is_too_small():
    system = LinearSystem(2, symmetric=True, spread=0.3)
    norms = [system.preconditioned_residual(system.solve(3, restarts=restarts)[0]) for restarts in range(6)]
    assert np.all(np.diff(norms) < 0.0)
    assert norms[5] < 1e-3 * norms[0]
    _, status, workspace = system.solve(3, restarts=1)
    assert status != 0  # not converged, and said so
    assert workspace.system["linear_iterations"] == 6


@settings(max_examples=15)
@given(seeds, st.integers(2, 6))
def test_incomplete_orthogonalisation_to_two_vectors_is_enough_for_symmetric_matrices(seed, iterations):
    """For a symmetric operator all other coefficients vanish (Lanczos)."""
    system = LinearSystem(seed, symmetric=True, spread=0.3)
    complete = system.solve(iterations)[0]
    incomplete = system.solve(iterations, orthogonal_to=2)[0]
    np.testing.assert_allclose(incomplete, complete, atol=1e-7 * np.max(np.abs(complete)))


@settings(max_examples=25)
@given(seeds, st.integers(1, 4), st.integers(3, 6))
def test_iteration_knows_its_true_residual_also_when_it_is_incomplete(seed, orthogonal_to, iterations):
    """The basis is then not orthonormal, and the product of the sines is not the norm of the residual."""
    system = LinearSystem(seed, spread=0.9, decades=0.5)
    orthogonal_to = min(orthogonal_to, iterations)
    x, _, _ = system.solve(iterations, orthogonal_to=orthogonal_to)
    reached = system.preconditioned_residual(x)
    assume(reached < 0.9 * system.preconditioned_residual(np.zeros(N)))  # else there is nothing to iterate for
    x, status, _ = system.solve(iterations, tolerance=1.001 * reached, orthogonal_to=orthogonal_to)
    assert status == 0
    assert system.preconditioned_residual(x) <= 1.001 * reached
    x, status, workspace = system.solve(iterations, tolerance=0.999 * reached, orthogonal_to=orthogonal_to)
    if workspace.system["linear_iterations"] == iterations:  # the residual need not fall from step to step
        assert status != 0
    else:
        assert system.preconditioned_residual(x) <= 0.999 * reached


def test_incomplete_iteration_is_no_better_than_the_complete_one():
    """The option does something: the residual it reaches is larger."""
    system = LinearSystem(5, spread=0.9)
    complete = system.preconditioned_residual(system.solve(6)[0])
    incomplete = system.preconditioned_residual(system.solve(6, orthogonal_to=1)[0])
    assert incomplete > 1.1 * complete


# --- Newton-Krylov runs ---------------------------------------------------------------------------------------


def test_newton_krylov_run_takes_the_steps_of_the_direct_one():
    """Heat equation, 100 unknowns: a good preconditioner leaves GMRES a few iterations per Newton iteration."""
    model = library.heat2d(m=10)
    options = {"rtol": 1e-5, "atol": 1e-7}
    direct = daedal.solve(model.problem, model.t_span, model.initial, method="dassl", **options)
    krylov = daedal.solve(model.problem, model.t_span, model.initial, method="dassl", linear_solver="gmres", **options)
    assert krylov.stats.steps == pytest.approx(direct.stats.steps, rel=0.03)
    assert krylov.stats.linear_iterations < 2.0 * krylov.stats.newton_iterations
    np.testing.assert_allclose(krylov.y[:, -1], model.extra["exact"](model.t_span[1]), atol=1e-5)


def preconditioners(model):
    def setup(t, y, yp, cj):
        return np.where(model.problem.algebraic, 1.0, cj + 4.0 * model.problem.params[1])

    return {
        "full band": BandedPreconditioner(10, 10),
        "narrow band": BandedPreconditioner(1, 1),
        "narrow band, own residual": BandedPreconditioner(1, 1, residual=model.problem.residual),
        "block diagonal": BlockDiagonalPreconditioner(10),
        "user": Preconditioner(lambda diagonal, r: r / diagonal, setup),
    }


@pytest.mark.parametrize("kind", preconditioners(library.heat2d(m=10)))
def test_every_preconditioner_leads_to_the_same_solution(kind):
    model = library.heat2d(m=10)
    sol = daedal.solve(
        model.problem,
        model.t_span,
        model.initial,
        rtol=1e-5,
        atol=1e-7,
        method="dassl",
        linear_solver=GMRES(basis_size=15),
        preconditioner=preconditioners(model)[kind],
    )
    direct = daedal.solve(model.problem, model.t_span, model.initial, method="dassl", rtol=1e-5, atol=1e-7)
    assert sol.stats.steps == pytest.approx(direct.stats.steps, rel=0.03)
    assert sol.stats.preconditioner_solves > sol.stats.linear_iterations > 0
    np.testing.assert_allclose(sol.y[:, -1], direct.y[:, -1], atol=1e-5)


def test_incomplete_factorisation_is_the_default_for_sparse_problems():
    model = library.heat2d(m=10, structure="sparse")
    options = {"method": "dassl", "rtol": 1e-5, "atol": 1e-7, "linear_solver": "gmres"}
    by_default = daedal.solve(model.problem, model.t_span, model.initial, **options)
    named = daedal.solve(model.problem, model.t_span, model.initial, preconditioner=ILUPreconditioner(), **options)
    np.testing.assert_array_equal(named.y, by_default.y)


def test_run_does_not_depend_on_the_units_of_the_equations():
    """F -> S F with P -> S P: the same run, bit by bit for powers of two."""
    model = library.heat2d(m=6, compiled=False)
    n, s = model.problem.n, 2.0 ** np.random.default_rng(0).integers(-10, 10, 36)
    tail = (model.problem.params,)

    def run(factors):
        def diagonal(t, y, yp, cj):
            return factors * np.where(model.problem.algebraic, 1.0, cj + 4.0 * model.problem.params[1])

        problem = daedal.ImplicitDAE(lambda t, y, yp: factors * model.problem.residual(t, y, yp, *tail), n)
        return daedal.solve(
            problem,
            model.t_span,
            model.initial,
            rtol=1e-4,
            atol=1e-6,
            method="dassl",
            linear_solver=GMRES(basis_size=15),
            preconditioner=Preconditioner(lambda d, r: r / d, diagonal),
        )

    np.testing.assert_array_equal(run(s).y, run(np.ones(n)).y)


def test_reaction_preconditioner_serves_the_food_web():
    """One residual per unknown of a point makes all diagonal blocks of the reaction part."""
    model = library.food_web(mx=8, my=8)
    run = (model.problem, (0.0, 0.1), model.initial)
    direct = daedal.solve(*run, method="dassl", linear_solver="sparse", **model.options)
    reaction = BlockDiagonalPreconditioner(2, residual=model.extra["reaction"].residual)
    krylov = daedal.solve(
        *run, method="dassl", linear_solver=GMRES(basis_size=20), preconditioner=reaction, **model.options
    )
    assert krylov.stats.steps < 1.3 * direct.stats.steps
    np.testing.assert_allclose(krylov.y[:, -1], direct.y[:, -1], rtol=1e-3)


def test_useless_preconditioner_is_reported():
    model = library.heat2d(m=10)
    with pytest.raises(daedal.IntegrationError, match="preconditioner"):
        daedal.solve(
            model.problem,
            model.t_span,
            model.initial,
            method="dassl",
            linear_solver=GMRES(basis_size=2, restarts=0),
            preconditioner=Preconditioner(lambda data, r: np.roll(r, 7)),
        )
