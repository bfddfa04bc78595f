"""solve_ivp beside SciPy's: the same calls, the same results."""

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse as sp

import daedal
from daedal import InvalidProblemError
from plain_problems import ARENSTORF_0, HIRES_0, arenstorf, heat, hires, lorenz, pleiades, pleiades_start, robertson

TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def volterra(t, y, a, b):
    return [a * y[0] - b * y[0] * y[1], -y[1] + 0.1 * y[0] * y[1]]


def cannon(t, y):
    return [y[1], -9.81 - 0.1 * y[1]]


def rational(t, y):
    return np.array([y[1] / t, y[1] * (y[0] + 2.0 * y[1] - 1.0) / (t * (y[0] - 1.0))])


def in_columns(t, y):
    return np.vstack([y[1], -4.0 * y[0]])


def stiff_line(t, y):
    return [-200.0 * (y[0] - np.cos(t))]


PROBLEMS = {
    "decay": (lambda t, y: -0.5 * y, (0.0, 10.0), [2.0, 4.0, 8.0], "RK45", {}),
    "volterra": (volterra, (0.0, 15.0), [10.0, 5.0], "DOP853", {"args": (1.5, 1.0)}),
    "lorenz": (lorenz, (0.0, 3.0), [1.0, 1.0, 1.0], "DOP853", {}),
    "arenstorf": (arenstorf, (0.0, 5.0), ARENSTORF_0, "DOP853", {"rtol": 1e-12, "atol": 1e-12}),
    "pleiades": (pleiades, (0.0, 1.0), None, "DOP853", {}),
    "rational": (rational, (5.0, 9.0), [1.0 / 3.0, 2.0 / 9.0], "RK45", {}),
    "rational, back": (rational, (5.0, 1.0), [1.0 / 3.0, 2.0 / 9.0], "RK45", {}),
    "columns": (in_columns, (0.0, 3.0), [1.0, 0.0], "RK45", {"vectorized": True}),
    "robertson": (robertson, (0.0, 40.0), [1.0, 0.0, 0.0], "Radau", {}),
    "hires": (hires, (0.0, 50.0), HIRES_0, "LSODA", {}),
    "stiff line": (stiff_line, (0.0, 2.0), [2.0], "BDF", {"rtol": 1e-6, "atol": 1e-8}),
    "heat": (heat(30)[0], (0.0, 0.02), heat(30)[1] ** 3, "LSODA", {"lband": 1, "uband": 1}),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_end_output_and_dense_output_agree(name):
    fun, span, y0, method, options = PROBLEMS[name]
    options = TIGHT | options
    y0 = pleiades_start() if y0 is None else y0
    times = np.linspace(*span, 7)
    own, peer = (
        module.solve_ivp(fun, span, y0, method=method, t_eval=times, dense_output=True, **options)
        for module in (daedal, scipy.integrate)
    )
    assert own.success and (own.status, own.t_events, own.y_events) == (0, None, None)
    assert own.y.shape == peer.y.shape and np.array_equal(own.t, peer.t)
    scale = np.maximum(np.abs(peer.y).max(axis=1), 1e-3)[:, None]
    accuracy = 3e4 * options["rtol"]
    np.testing.assert_allclose(own.y / scale, peer.y / scale, atol=accuracy)
    inside = np.linspace(span[0], span[1], 12)[1:-1]
    np.testing.assert_allclose(own.sol(inside) / scale, peer.sol(inside) / scale, atol=10 * accuracy)
    assert own.sol(inside[0]).shape == peer.sol(inside[0]).shape
    assert own.nfev > 0 and isinstance(own["message"], str)


@pytest.mark.parametrize("method", ["auto", "RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"])
def test_events_with_attributes(method):
    def hit(t, y):
        return y[0]

    def apex(t, y):
        return y[1]

    hit.terminal, hit.direction = True, -1
    own = daedal.solve_ivp(cannon, (0.0, 100.0), [0.0, 20.0], method=method, events=(hit, apex), **TIGHT)
    peer = scipy.integrate.solve_ivp(cannon, (0.0, 100.0), [0.0, 20.0], events=(hit, apex), **TIGHT)
    assert own.status == peer.status == 1 and own.t[-1] == own.t_events[0][0]
    for i in range(2):
        np.testing.assert_allclose(own.t_events[i], peer.t_events[i], atol=1e-6)
        np.testing.assert_allclose(own.y_events[i], peer.y_events[i], atol=1e-5)
        assert own.y_events[i].shape == peer.y_events[i].shape


@pytest.mark.parametrize("direction", [-1.0, 0, 1, 2.5])
def test_events_are_counted_and_have_directions(direction):
    def level(t, y, a, b):
        return y[0] - 9.0 * a / 1.5

    level.terminal, level.direction = 3, direction
    runs = [
        module.solve_ivp(volterra, (0.0, 100.0), [10.0, 5.0], args=(1.5, 1.0), events=level, method="RK45", **TIGHT)
        for module in (daedal, scipy.integrate)
    ]
    assert [run.status for run in runs] == [1, 1]
    np.testing.assert_allclose(runs[0].t_events[0][-2:], runs[1].t_events[0][-2:], atol=1e-5)


def test_events_that_do_not_happen():
    never = daedal.solve_ivp(cannon, (0.0, 1.0), [0.0, 20.0], events=lambda t, y: y[0] + 1.0)
    assert never.status == 0 and [len(times) for times in never.t_events] == [0]


def test_jacobians_and_structures():
    f, start, rate = heat(40)
    matrix = sp.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(40, 40)).toarray() * 41.0**2
    expected = start * np.exp(-0.05 * rate)
    for options in (
        {"jac": lambda t, y: matrix},
        {"jac": matrix},
        {"jac": sp.csc_array(matrix), "jac_sparsity": sp.csc_array(matrix)},
        {"jac_sparsity": sp.csc_array(matrix)},
    ):
        run = daedal.solve_ivp(f, (0.0, 0.05), start, method="BDF", rtol=1e-6, atol=1e-8, **options)
        np.testing.assert_allclose(run.y[:, -1], expected, atol=1e-4)
        assert run.njev > 0 and run.nlu > 0


def test_mass_matrices():
    """x' = -k x, 0 = z - 2x, in three ways."""

    def fun(t, y, k):
        return [-k * y[0], y[1] - 2.0 * y[0]]

    singular = np.diag([1.0, 0.0])
    for mass in (singular, sp.csc_array(singular), lambda t: singular, lambda t, y, k: singular * (k / 3.0)):
        run = daedal.solve_ivp(fun, (0.0, 1.0), [1.0, 2.0], args=(3.0,), mass=mass, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(run.y[:, -1], [np.exp(-3.0), 2.0 * np.exp(-3.0)], rtol=1e-5)


def test_steps_are_limited_as_in_scipy():
    run = daedal.solve_ivp(cannon, (0.0, 1.0), [0.0, 20.0], max_step=0.1, first_step=0.01)
    assert np.max(np.diff(run.t)) <= 0.1 + 1e-12 and abs(run.t[1] - 0.01) < 1e-12
    assert daedal.solve_ivp(cannon, (0.0, 1.0), [0.0, 20.0], max_step=np.inf).success
    assert run.sol is None


def test_a_failure_is_a_result():
    run = daedal.solve_ivp(lambda t, y: [y[0] ** 2], (0.0, 2.0), [1.0], dense_output=True)
    assert not run.success and run.status == -1 and "singularity" in run.message
    assert run.t[-1] < 1.01 and run.sol.t_max < 1.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"y0": [1.0j]}, "y0 is complex"),
        ({"y0": [[1.0]]}, r"y0 must be a vector, got shape \(1, 1\)"),
        ({"y0": []}, "y0 must be a vector"),
        ({"args": 3.0}, r"args=\(value,\)"),
        ({"method": "RK56"}, "unknown method 'RK56'"),
        ({"method": int}, "method must be one of"),
        ({"fun": 3.0}, "fun must be a function"),
        ({"jac": "exact"}, "jac must be a function or a matrix"),
        ({"mass": np.eye(3)}, "mass has shape"),
        ({"speed": 3}, "unknown option speed"),
    ],
)
def test_wrong_calls_are_refused(call, message):
    arguments = {"fun": lambda t, y: [-y[0]], "t_span": (0.0, 1.0), "y0": [1.0]} | call
    with pytest.raises(InvalidProblemError, match=message):
        daedal.solve_ivp(**arguments)
