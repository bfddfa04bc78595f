"""What must not change a run of DASSL: units, direction of time, order of the unknowns, Python or compiled functions,
structure of the matrix, process.

Changes by powers of two must not change a single bit. Others change roundings, and through them a run that starts with
steps so short that its differences are rounding errors; such runs get a longer first step here.
"""

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import daedal
from daedal import library

RATES = (0.04, 1.0e4, 3.0e7)
Y0 = np.array([1.0, 0.0, 0.0])
YP0 = np.array([-RATES[0], RATES[0], 0.0])
OPTIONS = {"rtol": 1e-6, "atol": np.array([1e-9, 1e-13, 1e-9])}


def robertson(t, y, yp):
    a, b, c = RATES
    back = b * y[1] * y[2]
    return np.array([yp[0] + a * y[0] - back, yp[1] - a * y[0] + back + c * y[1] ** 2, y[0] + y[1] + y[2] - 1.0])


def robertson_jacobian(t, y, yp, cj):
    a, b, c = RATES
    return np.array(
        [
            [cj + a, -b * y[2], -b * y[1]],
            [-a, cj + b * y[2] + 2.0 * c * y[1], b * y[1]],
            [1.0, 1.0, 1.0],
        ]
    )


def solve_robertson(t1=4e3, **options):
    problem = daedal.ImplicitDAE(robertson, 3, jacobian=robertson_jacobian)
    return daedal.solve(problem, (0.0, t1), (Y0, YP0), **(OPTIONS | options), method="dassl")


def assert_same_run(a, b, exactly=True):
    """Same orders and steps; to the last bit, or to rounding."""
    np.testing.assert_array_equal(a.history.order, b.history.order)
    if exactly:
        np.testing.assert_array_equal(a.history.h, b.history.h)
        np.testing.assert_array_equal(a.y, b.y)
        np.testing.assert_array_equal(a.yp, b.yp)
    else:
        np.testing.assert_allclose(a.history.h, b.history.h, rtol=1e-6)
        np.testing.assert_allclose(a.y, b.y, rtol=1e-8, atol=1e-14)


# --- units ----------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.lists(st.integers(-30, 30), min_size=3, max_size=3))
def test_units_of_the_unknowns_do_not_matter(exponents):
    """y_i and atol_i scaled together by powers of two: the same run, bit by bit."""
    s = 2.0 ** np.array(exponents)
    scaled = daedal.ImplicitDAE(
        lambda t, y, yp: robertson(t, y / s, yp / s),
        3,
        jacobian=lambda t, y, yp, cj: robertson_jacobian(t, y / s, yp / s, cj) / s,
    )
    sol = daedal.solve(scaled, (0.0, 4e3), (Y0 * s, YP0 * s), rtol=1e-6, atol=OPTIONS["atol"] * s, method="dassl")
    expected = solve_robertson()
    np.testing.assert_array_equal(sol.history.order, expected.history.order)
    np.testing.assert_array_equal(sol.history.h, expected.history.h)
    np.testing.assert_array_equal(sol.y, expected.y * s[:, None])


@settings(max_examples=15)
@given(st.lists(st.floats(0.01, 100.0), min_size=3, max_size=3))
def test_units_of_unknowns_and_equations_matter_at_rounding_level_only(factors):
    s = np.array(factors)
    r = s[::-1]
    scaled = daedal.ImplicitDAE(
        lambda t, y, yp: r * robertson(t, y / s, yp / s),
        3,
        jacobian=lambda t, y, yp, cj: r[:, None] * robertson_jacobian(t, y / s, yp / s, cj) / s,
    )
    options = {"rtol": 1e-4, "first_step": 1e-4}
    sol = daedal.solve(scaled, (0.0, 4e3), (Y0 * s, YP0 * s), atol=1e2 * OPTIONS["atol"] * s, **options, method="dassl")
    expected = solve_robertson(atol=1e2 * OPTIONS["atol"], **options)
    np.testing.assert_array_equal(sol.history.order, expected.history.order)
    np.testing.assert_allclose(sol.history.h, expected.history.h, rtol=1e-5)
    np.testing.assert_allclose(sol.y / s[:, None], expected.y, rtol=1e-7, atol=1e-13)


@pytest.mark.parametrize("exponent", [-20, -1, 7, 30])
def test_unit_of_time_does_not_matter(exponent):
    s = 2.0**exponent
    scaled = daedal.ImplicitDAE(
        lambda t, y, yp: robertson(t / s, y, yp * s),
        3,
        jacobian=lambda t, y, yp, cj: robertson_jacobian(t / s, y, yp * s, cj * s),
    )
    sol = daedal.solve(scaled, (0.0, 4e3 * s), (Y0, YP0 / s), **OPTIONS, method="dassl")
    expected = solve_robertson()
    np.testing.assert_array_equal(sol.history.order, expected.history.order)
    np.testing.assert_array_equal(sol.history.h, expected.history.h * s)
    np.testing.assert_array_equal(sol.y, expected.y)


@pytest.mark.parametrize("jacobian", [True, False])
def test_backward_integration_is_forward_integration_of_the_mirrored_problem(jacobian):
    def residual(t, y, yp):
        return [yp[0] - y[1], yp[1] + np.sin(y[0]) + 0.1 * y[1] - np.cos(t)]

    def matrix(t, y, yp, cj):
        return [[cj, -1.0], [np.cos(y[0]), cj + 0.1]]

    def mirrored(t, y, yp):
        return residual(-t, y, -yp)

    def mirrored_matrix(t, y, yp, cj):
        return matrix(-t, y, -yp, -cj)

    y0, yp0 = np.array([1.0, 0.2]), np.array([0.2, 1.0 - np.sin(1.0) - 0.02])
    times = np.linspace(0.0, 10.0, 21)
    backward = daedal.solve(
        daedal.ImplicitDAE(residual, 2, jacobian=matrix if jacobian else None),
        (0.0, -10.0),
        (y0, yp0),
        t_eval=-times,
        method="dassl",
    )
    forward = daedal.solve(
        daedal.ImplicitDAE(mirrored, 2, jacobian=mirrored_matrix if jacobian else None),
        (0.0, 10.0),
        (y0, -yp0),
        t_eval=times,
        method="dassl",
    )
    np.testing.assert_array_equal(backward.t, -forward.t)
    np.testing.assert_array_equal(backward.y, forward.y)
    np.testing.assert_array_equal(backward.yp, -forward.yp)
    np.testing.assert_array_equal(backward.history.h, -forward.history.h)


def test_integrating_there_and_back_returns_to_the_start():
    model = library.pendulum(form="index1")
    there = daedal.solve(model.problem, (0.0, 1.0), model.initial, rtol=1e-9, atol=1e-9, method="dassl")
    back = daedal.solve(
        model.problem, (1.0, 0.0), (there.y[:, -1], there.yp[:, -1]), rtol=1e-9, atol=1e-9, method="dassl"
    )
    np.testing.assert_allclose(back.y[:, -1], model.initial[0], atol=1e-6)


def pendulum(t, y, yp):
    """Index 1; x, z, their velocities u, w, and the multiplier."""
    x, z, u, w, lam = y
    return np.array([yp[0] - u, yp[1] - w, yp[2] + x * lam, yp[3] + z * lam - 1.0, u * u + w * w - lam + z])


def pendulum_jacobian(t, y, yp, cj):
    x, z, u, w, lam = y
    return np.array(
        [
            [cj, 0.0, -1.0, 0.0, 0.0],
            [0.0, cj, 0.0, -1.0, 0.0],
            [lam, 0.0, cj, 0.0, x],
            [0.0, lam, 0.0, cj, z],
            [0.0, 1.0, 2.0 * u, 2.0 * w, -1.0],
        ]
    )


@settings(max_examples=15)
@given(st.permutations(range(5)), st.permutations(range(5)))
def test_order_of_unknowns_and_equations_does_not_matter(unknowns, equations):
    unknowns, equations = np.array(unknowns), np.array(equations)
    place = np.argsort(unknowns)
    y0, yp0 = np.array([1.0, 0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, -1.0, 1.0, 3.0])
    permuted = daedal.ImplicitDAE(
        lambda t, y, yp: pendulum(t, y[place], yp[place])[equations],
        5,
        jacobian=lambda t, y, yp, cj: pendulum_jacobian(t, y[place], yp[place], cj)[np.ix_(equations, unknowns)],
    )
    straight = daedal.ImplicitDAE(pendulum, 5, jacobian=pendulum_jacobian)
    options = {"rtol": 1e-5, "atol": 1e-6, "first_step": 1e-3}
    sol = daedal.solve(permuted, (0.0, 3.0), (y0[unknowns], yp0[unknowns]), **options, method="dassl")
    expected = daedal.solve(straight, (0.0, 3.0), (y0, yp0), **options, method="dassl")
    np.testing.assert_array_equal(sol.history.order, expected.history.order)
    np.testing.assert_allclose(sol.history.h, expected.history.h, rtol=1e-5)
    np.testing.assert_allclose(sol.y[place], expected.y, rtol=1e-8, atol=1e-8)  # a hundredth of the tolerance


def test_constant_vectors_of_tolerances_are_scalars():
    scalar = solve_robertson(rtol=1e-5, atol=1e-9)
    vector = solve_robertson(rtol=np.full(3, 1e-5), atol=[1e-9] * 3)
    assert_same_run(scalar, vector)


# --- Python and compiled functions ----------------------------------------------------------------------------


def oscillator(t, y, yp, p):
    r = np.empty(2)
    r[0] = yp[0] - y[1]
    r[1] = yp[1] + p[0] * y[0] + p[1] * y[1] * y[1] * y[1] - p[2]
    return r


def oscillator_jacobian(t, y, yp, cj, p):
    m = np.empty((2, 2))
    m[0, 0] = cj
    m[0, 1] = -1.0
    m[1, 0] = p[0]
    m[1, 1] = cj + 3.0 * p[1] * y[1] * y[1]
    return m


@pytest.mark.parametrize("jacobian", [None, oscillator_jacobian])
def test_compiled_functions_give_the_bits_of_python_functions(jacobian):
    problem = daedal.ImplicitDAE(oscillator, 2, jacobian=jacobian, params=np.array([2.0, 0.3, 1.0]))
    initial = ([1.0, 0.0], [0.0, -1.0])
    python = daedal.solve(problem, (0.0, 10.0), initial, method="dassl")
    assert_same_run(python, daedal.solve(problem.compiled("numba"), (0.0, 10.0), initial, method="dassl"))


@pytest.mark.parametrize("name", ["robertson", "transistor_amplifier", "pendulum"])
def test_compiled_library_models_give_the_bits_of_python_functions(name):
    model = library.get(name)
    t1 = {"robertson": 1e4, "transistor_amplifier": 0.02, "pendulum": 1.0}[name]
    runs = [
        daedal.solve(problem, (0.0, t1), model.initial, **{**model.options, "method": "dassl"})
        for problem in (model.problem, model.problem.compiled("numba"))
    ]
    exactly = name != "transistor_amplifier"  # the exponential functions of Python and of Numba may differ in a bit
    assert_same_run(*runs, exactly=exactly)


@pytest.mark.parametrize("compiled", [False, True])
def test_parameters_reach_the_functions(compiled):
    """y' = -p0 y + p1: the end value depends on the parameters as it must."""

    def residual(t, y, yp, p):
        r = np.empty(1)
        r[0] = yp[0] + p[0] * y[0] - p[1]
        return r

    problem = daedal.ImplicitDAE(residual, 1, params=np.array([1.0, 0.0]))
    problem = problem.compiled("numba") if compiled else problem
    for p in ([1.0, 0.0], [2.0, 3.0], [-0.5, 1.0]):
        p = np.array(p)
        sol = daedal.solve(
            problem.with_params(p), (0.0, 1.0), ([1.0], [p[1] - p[0]]), rtol=1e-9, atol=1e-12, method="dassl"
        )
        steady = p[1] / p[0]
        assert sol.y[0, -1] == pytest.approx(steady + (1.0 - steady) * np.exp(-p[0]), rel=1e-6)


def test_parameters_of_python_functions_may_be_any_object():
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["rate"] * y[0]], 1, params={"rate": 2.0})
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0], [-2.0]), method="dassl")
    assert sol.y[0, -1] == pytest.approx(np.exp(-2.0), rel=1e-4)


def test_semi_explicit_and_implicit_statements_of_a_problem_are_the_same_run():
    implicit = daedal.ImplicitDAE(
        lambda t, x, xp: [xp[0] - x[1] * x[0], xp[1] + 1.0 - x[2], x[2] ** 3 + x[2] - x[0]], 3, algebraic=[2]
    )
    semi = daedal.SemiExplicitDAE(
        lambda t, y, z: [y[1] * y[0], -1.0 + z[0]], lambda t, y, z: [z[0] ** 3 + z[0] - y[0]], 2, 1
    )
    y0, z0 = daedal.consistent_initial(semi, 0.0, ([2.0, 0.0], [1.0]))
    x0 = np.concatenate([y0, z0])
    a = daedal.solve(implicit, (0.0, 2.0), (x0, None), method="dassl")
    b = daedal.solve(semi, (0.0, 2.0), (y0, z0), method="dassl")
    np.testing.assert_allclose(b.y[:, -1], a.y[:, -1], rtol=1e-5)
    np.testing.assert_array_equal(b.z, b.y[2:])


# --- structure of the matrix ----------------------------------------------------------------------------------

N = 30


def diffusion(t, y, yp):
    """u_t = u_xx - u^3 on [0, 1] with algebraic boundary values: tridiagonal."""
    r = np.empty(N)
    c = float((N - 1) ** 2)
    r[0] = y[0] - np.sin(t)
    for i in range(1, N - 1):
        r[i] = yp[i] - c * (y[i - 1] - 2.0 * y[i] + y[i + 1]) + y[i] ** 3
    r[N - 1] = y[N - 1] - y[N - 2]
    return r


def diffusion_band(t, y, yp, cj):
    c = float((N - 1) ** 2)
    band = np.zeros((3, N))
    band[0, 2:] = -c
    band[1, 1:-1] = cj + 2.0 * c + 3.0 * y[1:-1] ** 2
    band[2, :-2] = -c
    band[1, 0] = band[1, -1] = 1.0
    band[2, -2] = -1.0
    band[0, 1] = 0.0
    return band


def diffusion_dense(t, y, yp, cj):
    band = diffusion_band(t, y, yp, cj)
    return np.diag(band[1]) + np.diag(band[0, 1:], 1) + np.diag(band[2, :-1], -1)


PATTERN = sparse.diags([np.ones(N - 1), np.ones(N), np.ones(N - 1)], [-1, 0, 1], format="csc")
STRUCTURES = {
    "dense": {"jacobian": diffusion_dense},
    "banded": {"jacobian": diffusion_band, "bandwidth": (1, 1)},
    "sparse": {"jacobian": lambda *args: sparse.csc_matrix(diffusion_dense(*args)), "sparsity": PATTERN},
    "dense differences": {},
    "banded differences": {"bandwidth": (1, 1)},
    "wider band": {"bandwidth": (3, 2)},
    "sparse differences": {"sparsity": PATTERN},
}


def solve_diffusion(structure, **options):
    problem = daedal.ImplicitDAE(diffusion, N, algebraic=[0, N - 1], **STRUCTURES[structure])
    initial = (np.zeros(N), np.where(np.arange(N) == 0, 1.0, 0.0))
    return daedal.solve(problem, (0.0, 2.0), initial, rtol=1e-5, atol=1e-6, first_step=1e-3, **options, method="dassl")


@pytest.mark.parametrize("structure", [name for name in STRUCTURES if name != "dense"])
def test_dense_banded_and_sparse_matrices_give_the_same_run(structure):
    """Differences of whole groups of columns are those of single columns."""
    reference = solve_diffusion("dense", compile="never")
    assert reference.stats.steps > 50
    exact = "differences" not in structure and structure != "wider band"
    sol = solve_diffusion(structure, compile="never")
    assert sol.stats.steps == pytest.approx(reference.stats.steps, rel=0.0 if exact else 0.02)
    np.testing.assert_allclose(sol.y[:, -1], reference.y[:, -1], rtol=1e-9 if exact else 1e-6)


@pytest.mark.parametrize(
    ("structure", "columns"),
    [("dense differences", N), ("banded differences", 3), ("wider band", 6), ("sparse differences", 3), ("dense", 0)],
)
def test_residuals_for_a_difference_matrix_are_as_many_as_groups_of_columns(structure, columns):
    """ml + mu + 1 for a band, the number of colours for a pattern, n without structure, none with a Jacobian."""
    sol = solve_diffusion(structure, compile="never")
    assert sol.stats.jacobian_evaluations > 5
    assert sol.stats.jacobian_residual_evaluations == columns * sol.stats.jacobian_evaluations


def test_too_narrow_a_band_is_not_silently_right():
    """The test above can fail: without the upper diagonal Newton's method needs more iterations or fails."""
    problem = daedal.ImplicitDAE(diffusion, N, algebraic=[0, N - 1], bandwidth=(1, 0))
    full = solve_diffusion("dense").stats
    with pytest.raises(daedal.IntegrationError):
        daedal.solve(
            problem,
            (0.0, 2.0),
            (np.zeros(N), np.where(np.arange(N) == 0, 1.0, 0.0)),
            max_steps=2 * full.steps,
            method="dassl",
        )


# --- determinism ----------------------------------------------------------------------------------------------


def fingerprint(sol):
    digest = hashlib.sha256()
    for array in (sol.t, sol.y, sol.yp, sol.history.h):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def test_same_input_gives_the_same_bits_whatever_ran_before():
    first = fingerprint(solve_robertson())
    model = library.tppc2()
    daedal.solve(model.problem, model.t_span, model.initial, **{**model.options, "method": "dassl"})
    solve_diffusion("sparse")
    assert fingerprint(solve_robertson()) == first


SCRIPT = """
import sys
import numpy as np
import daedal
sys.path.insert(0, {folder!r})
import test_dassl_invariance as tests
model = daedal.library.pendulum(form="ggl")
compiled = daedal.solve(model.problem.compiled("numba"), model.t_span, model.initial, **model.options)
print(tests.fingerprint(tests.solve_robertson()), tests.fingerprint(compiled))
"""


def test_another_process_gives_the_same_bits():
    model = library.pendulum(form="ggl")
    compiled = daedal.solve(
        model.problem.compiled("numba"), model.t_span, model.initial, **{**model.options, "method": "dassl"}
    )
    here = [fingerprint(solve_robertson()), fingerprint(compiled)]
    script = SCRIPT.format(folder=str(Path(__file__).parent))
    there = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    assert there.stdout.split() == here


def test_two_threads_do_not_disturb_each_other():
    model = library.pendulum(form="index1")
    problem = model.problem.compiled("numba")

    def run(rtol):
        return fingerprint(daedal.solve(problem, (0.0, 20.0), model.initial, rtol=rtol, atol=rtol, method="dassl"))

    tolerances = [1e-5, 1e-6, 1e-7, 1e-8] * 3
    alone = {rtol: run(rtol) for rtol in set(tolerances)}
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, tolerances))
    assert together == [alone[rtol] for rtol in tolerances]


def test_compiled_function_of_the_user_may_be_decorated_already():
    decorated = numba.njit(oscillator)
    params = np.array([2.0, 0.3, 1.0])
    initial = ([1.0, 0.0], [0.0, -1.0])
    a = daedal.solve(daedal.ImplicitDAE(decorated, 2, params=params), (0.0, 10.0), initial, method="dassl")
    b = daedal.solve(daedal.ImplicitDAE(oscillator, 2, params=params), (0.0, 10.0), initial, method="dassl")
    assert_same_run(a, b)
