"""Problems that do not determine their solution are refused with names, whatever their size; others never are."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.analysis.undetermined import undetermined


def network(k, pinned=False):
    """Flow on a grid of k by k nodes: pressures are determined up to a constant unless one is given."""
    edges = [(i * k + j, i * k + j + 1) for i in range(k) for j in range(k - 1)]
    edges += [(i * k + j, i * k + j + k) for i in range(k - 1) for j in range(k)]
    m = len(edges)
    ends = np.array(edges)
    B = sp.csr_array((np.tile([-1.0, 1.0], m), ends.ravel(), 2 * np.arange(m + 1)), shape=(m, k * k)).toarray()
    supply = np.zeros(k * k)
    supply[0], supply[-1] = 1.0, -1.0

    def residual(t, y, yp):
        balance = B.T @ y[:m] + supply * np.sin(t) ** 2
        if pinned:
            balance = np.concatenate([balance[:-1], y[-1:]])
        return np.concatenate([yp[:m] + y[:m] + B @ y[m:], balance])

    return daedal.ImplicitDAE(residual, m + k * k), m


def stokes(k):
    """Flow in a square with a moving lid, on a staggered grid, without a pressure that is given."""
    nu = k * (k - 1)

    def residual(t, y, yp):
        u, v, p = y[:nu].reshape(k - 1, k), y[nu : 2 * nu].reshape(k, k - 1), y[2 * nu :].reshape(k, k)
        lid = 2.0 * np.sin(t)
        left, right = -u[:, :1], lid - u[:, -1:]
        U = np.concatenate([left, u, right], axis=1)
        lower, upper = -v[:1], -v[-1:]
        V = np.concatenate([lower, v, upper], axis=0)
        U = np.concatenate([0.0 * U[:1], U, 0.0 * U[:1]], axis=0)
        V = np.concatenate([0.0 * V[:, :1], V, 0.0 * V[:, :1]], axis=1)

        def laplacian(x):
            return (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4.0 * x[1:-1, 1:-1]) * k**2

        along_u = yp[:nu].reshape(k - 1, k) - laplacian(U) + k * (p[1:] - p[:-1])
        along_v = yp[nu : 2 * nu].reshape(k, k - 1) - laplacian(V) + k * (p[:, 1:] - p[:, :-1])
        divergence = k * (U[1:, 1:-1] - U[:-1, 1:-1] + V[1:-1, 1:] - V[1:-1, :-1])
        return np.concatenate([along_u.ravel(), along_v.ravel(), divergence.ravel()])

    return daedal.ImplicitDAE(residual, 2 * nu + k * k), 2 * nu


def repeated(n):
    """The last equation is there twice, and the one before it is not."""

    def residual(t, y, yp):
        equations = np.concatenate([yp[:n] + y[:n] - y[n:], y[n:] - np.sin(t) * np.arange(1, n + 1)])
        return np.concatenate([equations[:-1], equations[-2:-1]])

    return daedal.ImplicitDAE(residual, 2 * n), n - 1


def loop_of_sources(n):
    """Voltage sources around a loop: the current around it is not determined."""

    def residual(t, y, yp):
        v, i = y[:n], y[n:]
        source = np.sin(t) * np.cos(2.0 * np.pi * np.arange(n) / n)
        return np.concatenate([yp[:n] + v + i - np.roll(i, 1), np.roll(v, -1) - v - source])

    return daedal.ImplicitDAE(residual, 2 * n), n


FAMILIES = [(network, 3), (network, 5), (network, 8), (network, 15), (stokes, 6), (stokes, 16)]
FAMILIES += [(repeated, 40), (repeated, 1500), (loop_of_sources, 10), (loop_of_sources, 60), (loop_of_sources, 1500)]


@pytest.mark.parametrize(("family", "size"), FAMILIES)
def test_variables_that_are_not_determined_are_named(family, size):
    problem, first = family(size)
    with pytest.raises(daedal.DaedalError, match=r"no unique solution|Likely cause: the equations leave") as stopped:
        daedal.solve(problem, (0.0, 2.0), (np.zeros(problem.n), None))
    assert f"y[{first}]" in str(stopped.value)


@pytest.mark.parametrize("options", [{"method": "radau"}, {"compile": "never"}, {"rtol": 1e-3, "atol": 1e-4}])
def test_methods_and_tolerances_make_no_difference(options):
    problem, _ = network(5)
    with pytest.raises(daedal.DaedalError, match="undetermined"):
        daedal.solve(problem, (0.0, 2.0), (np.zeros(problem.n), np.zeros(problem.n)), **options)


def test_the_remedy_works():
    problem, m = network(5, pinned=True)
    sol = daedal.solve(problem, (0.0, 2.0), (np.zeros(problem.n), None))
    assert sol.success
    assert sol.y[m, -1] - sol.y[-1, -1] == pytest.approx(sol.y[m, -1])
    assert undetermined(problem, [(0.0, np.zeros(problem.n), np.zeros(problem.n))], 1.0) is None


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 40), st.integers(0, 3), st.booleans())
def test_as_many_equations_are_missing_as_were_taken_away(seed, n, missing, traced):
    rng = np.random.default_rng(seed)
    missing = min(missing, n - 1)
    E, A = rng.normal(size=(2, n, n)) * 10.0 ** rng.uniform(-3, 3, (n, 1))
    if missing:
        mixing = rng.normal(size=(missing, n - missing))
        E[-missing:], A[-missing:] = mixing @ E[:-missing], mixing @ A[:-missing]
    problem = daedal.ImplicitDAE(lambda t, y, yp: E @ yp + A @ y, n)
    found = undetermined(problem.compiled("trace") if traced else problem, [(0.0, np.zeros(n), np.zeros(n))], 1.0)
    assert (0 if found is None else found.freedom) == missing


@pytest.mark.parametrize("n", [60, 1000])
def test_a_matrix_that_is_merely_ill_conditioned_determines_its_solution(n):
    """A beam at rest, u'''' = f, has condition numbers up to 1e12."""
    h = 1.0 / n

    def residual(t, y, yp):
        u, v = y[:n], y[n:]
        bent = (u[4:] - 4.0 * u[3:-1] + 6.0 * u[2:-2] - 4.0 * u[1:-3] + u[:-4]) / h**4 - np.sin(t)
        ends = [[u[0]], [u[1] - u[0]], bent, [u[-1]], [u[-2] - u[-1]]]
        return np.concatenate([*ends, yp[n:] + v - u])

    sol = daedal.solve(daedal.ImplicitDAE(residual, 2 * n), (0.0, 1.0), (np.zeros(2 * n), None), rtol=1e-4)
    assert sol.success
