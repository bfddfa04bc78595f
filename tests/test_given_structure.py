"""What a user says of a problem and of tolerances, held against its equations: algebraic, sparsity, bandwidth, atol."""

import warnings

import numpy as np
import pytest
import scipy.sparse

import daedal

N = 40
BAND = scipy.sparse.diags([np.ones(N - 1), np.ones(N), np.ones(N - 1)], [-1, 0, 1])
START = np.sin(np.arange(N))


@pytest.mark.parametrize("compile", ["auto", "never"])
def test_a_wrong_algebraic_is_refused_with_its_variable(compile):
    def residual(t, y, yp):
        return [yp[0] + y[0] - y[1], y[1] - y[0] ** 2]

    with pytest.raises(daedal.InvalidProblemError, match=r"x is declared algebraic, but equation 0 contains its"):
        daedal.solve_dae(
            residual, (0.0, 1.0), [1.0, 0.0], algebraic=["x"], names=["x", "z"], correct_initial=True, compile=compile
        )
    right = daedal.ImplicitDAE(residual, 2, algebraic=[1])
    sol = daedal.solve(right, (0.0, 1.0), ([1.0, 0.0], None), correct_initial=True, compile=compile)
    assert sol.y[:, 0] == pytest.approx([1.0, 1.0])
    with pytest.raises(daedal.InvalidProblemError, match=r"algebraic: y\[0\]"):
        daedal.consistent_initial(daedal.ImplicitDAE(residual, 2, algebraic=[0]), 0.0, ([1.0, 0.0], None))


def test_a_derivative_beside_large_terms_is_seen():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [1e-3 * yp[0] + 1e20 * (y[0] - 1.0)], 1, algebraic=[0])
    with pytest.raises(daedal.InvalidProblemError, match="contains its derivative"):
        daedal.solve(problem, (0.0, 1.0), ([2.0], None), correct_initial=True)


def heat(t, y, k=0.0):
    u = np.concatenate([[0.0], y, [0.0]])
    flow = (u[2:] - 2.0 * u[1:-1] + u[:-2]) * N**2
    return np.concatenate([flow[:5], [flow[5] + k * y[33]], flow[6:]])


@pytest.mark.parametrize("compile", ["auto", "never"])
@pytest.mark.parametrize("structure", [{"sparsity": BAND}, {"bandwidth": (1, 1)}], ids=["sparsity", "bandwidth"])
def test_an_entry_that_the_structure_leaves_out_is_named(structure, compile):
    options = {"method": "radau", "compile": compile}
    with pytest.warns(UserWarning, match=r"omits row 5, column 33, but equation 5 depends on y\[33\]"):
        daedal.solve(daedal.ODE(lambda t, y: heat(t, y, 50.0), N, **structure), (0.0, 0.1), START, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        daedal.solve(daedal.ODE(heat, N, **structure), (0.0, 0.1), START, **options)


def test_variables_that_never_exceed_atol_are_named():
    decay = daedal.ODE(lambda t, y: -y, 2, names=["trace", "main"])
    with pytest.warns(daedal.errors.ToleranceWarning, match=r"^trace \(at most 1e-12, atol 1e-09\) never exceeds"):
        daedal.solve(decay, (0.0, 10.0), [1e-12, 1.0])
    with pytest.warns(daedal.errors.ToleranceWarning, match=r"y\[0\] .* never exceeds"):
        daedal.solve(daedal.ODE(lambda t, y: -y, 1), (0.0, 10.0), [1e-12])
    with pytest.warns(daedal.errors.ToleranceWarning, match=r"y\[0\] .* never exceeds"):
        daedal.solve(daedal.ODE(lambda t, y: -y, 1), (0.0, 10.0), [1e-45])
    fast = daedal.ODE(lambda t, y: -2.5 * y, 1)  # errors of the explicit method grow slightly beyond atol
    with pytest.warns(daedal.errors.ToleranceWarning, match=r"hardly exceeds .* about [12]e-16 for it"):
        daedal.solve(fast, (0.0, 20.0), [1.2e-12])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        daedal.solve(decay, (0.0, 10.0), [1e-12, 1.0], atol=[1e-16, 1e-9])  # the remedy
        daedal.solve(decay, (0.0, 10.0), [0.0, 1.0])
        daedal.solve(decay, (0.0, 100.0), [2.0, 1.0], t_eval=[90.0, 100.0])  # what is stored is not all there was
        daedal.solve_dae(  # round-off in an algebraic variable
            lambda t, y, yp: [yp[0] + y[0] - y[1], y[1] - 1e-3 * (np.cos(t) ** 2 + np.sin(t) ** 2 - 1.0)],
            (0.0, 5.0),
            [1.0, 0.0],
        )


def test_a_tolerance_below_the_resolution_of_time_is_named():
    """Seconds since 1970: neighbouring floats are 2.4e-7 apart, and y' = 1000."""
    start = 1.7e9
    for problem in (daedal.ODE, daedal.MassMatrixDAE):
        options = {} if problem is daedal.ODE else {"mass": np.eye(1)}
        fast = problem(lambda t, y: [1e3 * np.cos(1e3 * (t - start))], 1, **options)
        with pytest.warns(
            daedal.errors.ToleranceWarning, match=r"are 2.4e-07 apart, .* Remedy: measure time from the start"
        ):
            daedal.solve(fast, (start, start + 2.0), [0.0], rtol=1e-6, atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slow = daedal.ODE(lambda t, y: [np.cos(t - start)], 1)
        sol = daedal.solve(slow, (start, start + 2.0), [0.0])
        stiff = daedal.ODE(lambda t, y: [-1e8 * (y[0] - np.cos(t))], 1)
        daedal.solve(stiff, (1.0, 2.0), [0.0])
    assert sol.y[0, -1] == pytest.approx(np.sin(2.0), abs=1e-5)
