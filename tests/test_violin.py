"""The violin string of Brasey and Hairer: closed solutions of its phases, and the moments at which they change."""

from functools import cache

import numpy as np
import pytest
from numba import njit

import daedal
from daedal import library
from daedal.library.violin import bow, bow_bias, bow_jacobian, string_force
from daedal.studies import reproduce
from daedal.studies.reproduce.verdict import number

# Time, displacement of the middle node, needed z of each switch, to stick and to slip in turn: normal modes, 40 digits
(TABLE,) = reproduce.find(["half-explicit/violin"])
SWITCHES = np.array([[number(row.cells[key]["printed"]) for key in ("t", "u", "z")] for row in TABLE.rows])
# t: u, u', z of the middle node
SAMPLES = {
    0.1: (0.026065343262, 0.3, -1.078303693684),
    0.5: (0.146065343262, 0.3, -0.991435661241),
    0.9: (0.266065343262, 0.3, -1.087785228094),
    1.2: (0.248180657052, -0.456180623681, -1.0),
    1.5: (0.156809893031, -0.289436831950, -1.0),
    2.0: (0.012457169076, -0.226136580471, -1.0),
    2.5: (0.128901167584, 0.3, -0.865029673618),
    3.0: (0.278901167584, 0.3, -1.293344418566),
    3.5: (0.173100107579, -0.344446917977, -1.0),
    4.0: (0.027321556966, -0.269080380787, -1.0),
    4.5: (0.119334319720, 0.3, -0.838539976003),
    5.0: (0.262804415623, 0.212315583226, -1.0),
    12.0: (0.057060129372, -0.256444867199, -1.0),
}
STICK_METHODS = {"HEM4": daedal.methods.HEM4(), "PHEM56": daedal.methods.PHEM56(norm="max")}


@cache
def played(t_end, tol, method="PHEM56"):
    return library.play_violin(t_end, tol, stick_method=STICK_METHODS[method])


def times(run):
    return np.array([switch.t for switch in run.switches])


def errors(run):
    return np.abs(times(run) - SWITCHES[: len(run.switches), 0])


# --- the phases -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [library.violin_slip(), library.violin_slip(8, 1.0), library.violin_stick(), library.violin_stick(6)]
)
def test_normal_modes_solve_the_equations(model):
    exact, n, h = model.extra["exact"], model.problem.n_q, 1e-5
    np.testing.assert_array_equal(np.concatenate(model.initial), exact(0.0))
    for t in np.linspace(0.1, 1.0, 7):
        y = exact(t)
        point = model.problem.at(t, y[:n], y[n:])
        rates = (exact(t + h) - exact(t - h)) / (2.0 * h)
        np.testing.assert_allclose(rates, np.concatenate([y[n:], point.acceleration]), atol=1e-5)
        np.testing.assert_allclose(point.velocity, 0.0, atol=1e-14)
        np.testing.assert_allclose(point.multipliers, model.extra["exact_lam"](t), atol=1e-10)


def test_energy_of_the_slipping_string_is_constant():
    model = library.violin_slip(z=1.0)
    states = np.array([model.extra["exact"](t) for t in np.linspace(0.0, 3.0, 20)]).T
    np.testing.assert_allclose(model.extra["energy"](states[:19], states[19:]), 0.0, atol=1e-12)


@pytest.mark.slow
def test_functions_compile_unchanged():
    y, p = library.violin_stick(6).extra["exact"](0.4), np.array([12.0, 0.3])
    q, v = y[:5].copy(), y[5:].copy()
    calls = [
        (string_force, (0.4, q, v, p)),
        (bow, (0.4, q, v, p)),
        (bow_jacobian, (0.4, q, p)),
        (bow_bias, (0.4, q, v, p)),
    ]
    for function, arguments in calls:
        np.testing.assert_allclose(njit(function)(*arguments), function(*arguments), rtol=1e-14, atol=1e-14)


def test_slipping_string_is_solved_to_its_reference():
    model = library.violin_slip()
    sol = daedal.solve(model.problem, model.t_span, model.initial, method=daedal.methods.DOPRI5(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, atol=1e-7)
    assert model.index == 0 and sol.lam.shape[0] == 0


@pytest.mark.parametrize("method", STICK_METHODS.values(), ids=STICK_METHODS)
def test_sticking_string_is_solved_to_its_reference(method):
    model = library.violin_stick()
    sol = daedal.solve(model.problem, model.t_span, model.initial, method=method, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, atol=1e-6)
    np.testing.assert_allclose(sol.lam[:, -1], model.extra["lam"], atol=1e-5)
    np.testing.assert_allclose(sol.v[9], 0.3, atol=1e-15)


# --- the switching ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", STICK_METHODS)
def test_switching_times_to_seven_digits(method):
    run = played(12.0, 1e-9, method)
    assert [switch.kind for switch in run.switches] == ["stick", "slip"] * 8
    assert errors(run).max() < 1e-7
    found = np.array([[switch.u, switch.z] for switch in run.switches])
    np.testing.assert_allclose(found[:, 0], SWITCHES[:, 1], atol=1e-7)
    np.testing.assert_allclose(found[:, 1], SWITCHES[:, 2], atol=2e-6)


@pytest.mark.parametrize("t", SAMPLES)
def test_samples(t):
    state, (u, v, z) = played(12.0, 1e-9)(t), SAMPLES[t]
    np.testing.assert_allclose([state.u[9], state.v[9]], [u, v], atol=5e-7)
    assert state.z == pytest.approx(z, abs=1e-5)


@pytest.mark.parametrize("method", STICK_METHODS)
def test_errors_of_the_switching_times_follow_the_tolerance(method):
    largest = [errors(played(5.0, tol, method)).max() for tol in (1e-4, 1e-6, 1e-8)]
    assert all(len(played(5.0, tol, method).switches) == 6 for tol in (1e-4, 1e-6, 1e-8))
    assert largest[0] < 1e-2 and largest[1] < 3e-5 and largest[2] < 1e-6
    assert largest[0] > 30.0 * largest[1] > 300.0 * largest[2]


@pytest.mark.parametrize("method", STICK_METHODS)
def test_coarse_tolerance_sticks_where_the_string_only_comes_close(method):
    """At t = 4.18 the string is 9.3e-4 slower than the bow."""
    assert abs(times(played(5.0, 1e-3, method))[4] - SWITCHES[4, 0]) > 0.1
    assert errors(played(5.0, 1e-4, method))[4] < 1e-2


def test_string_slower_than_the_bow_at_its_closest():
    t = np.linspace(4.1, 4.25, 1501)
    gap = played(12.0, 1e-9)(t).v[9] - 0.3
    assert gap.max() == pytest.approx(-9.3e-4, rel=0.01)
    assert t[gap.argmax()] == pytest.approx(4.18254, abs=2e-4)


def test_joined_arrays():
    run = played(5.0, 1e-6)
    assert run.t.shape == run.z.shape == run.middle.shape == run.u.shape[1:] and run.u.shape == run.v.shape
    assert np.all(np.diff(run.t) >= 0.0)
    assert run.t[0] == 0.0 and run.t[-1] == 5.0
    np.testing.assert_array_equal(np.unique(run.t[1:][np.diff(run.t) == 0.0]), times(run))
    np.testing.assert_array_equal(run.middle, run.u[9])
    assert np.abs(run.z).max() <= 4.0 / 3.0 + 1e-9
    np.testing.assert_allclose(run(run.t[::50]).u, run.u[:, ::50], atol=1e-12)


def test_sticking_and_slipping_string_are_continuous():
    run = played(5.0, 1e-6)
    for before, after in zip(run.solutions, run.solutions[1:], strict=False):
        assert before.t[-1] == after.t[0]
        np.testing.assert_allclose(after.y[:, 0], before.y[:, -1], atol=1e-12)


def plucked(height):
    """The neighbours of the middle node pulled away: it takes z = 2 N^2 height / 12 to hold it."""
    q = np.zeros(19)
    q[[8, 10]] = height
    return q


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_string_that_adhesion_cannot_hold_passes(side):
    """Too strong a pull: u' goes through the speed of the bow, and the friction turns round."""
    v = np.zeros(19)
    v[9] = 0.3 - 0.1 * side
    run = library.play_violin(0.05, 1e-8, initial=(side * plucked(0.1), v))
    first = run.switches[0]
    assert first.kind == "pass" and side * first.z > 4.0 / 3.0
    assert run.signs[:2] == [-side, side]
    gap = side * (run(np.linspace(first.t, run.solutions[1].t[-1], 50)[1:-1]).v[9] - 0.3)
    assert gap.min() > 0.0


def test_start_at_the_speed_of_the_bow():
    v = np.zeros(19)
    v[9] = 0.3
    assert library.play_violin(0.01, initial=(plucked(0.01), v)).signs == [0.0]
    assert library.play_violin(0.01, initial=(plucked(0.1), v)).signs == [1.0]
    assert library.play_violin(0.01, initial=(-plucked(0.1), v)).signs == [-1.0]


def test_run_that_ends_at_once_after_a_switch():
    run = library.play_violin(0.0278, 1e-8)
    assert [switch.kind for switch in run.switches] == ["stick"]
    assert run.t[-1] == 0.0278 and run.signs == [-1.0, 0.0]


def test_other_numbers_of_nodes():
    run = library.play_violin(0.5, 1e-6, N=10)
    assert run.u.shape[0] == 9
    assert run(0.2).u.shape == (9,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: library.violin_slip(N=7), "N=7 must be an even number"),
        (lambda: library.violin_stick(N=2), "N=2 must be an even number"),
        (lambda: library.violin_slip(z=0.5), "z=0.5 is not known"),
        (lambda: library.violin_stick(t1=-1.0), "t1=-1.0 must be a positive number"),
        (lambda: library.play_violin(-1.0), "t_end=-1.0 must be a positive number"),
        (lambda: library.play_violin(1.0, 0.0), "rtol=0.0 must be a positive number"),
        (lambda: library.play_violin(1.0, N=5), "N=5 must be an even number"),
        (lambda: library.play_violin(1.0, initial=([0.0], [0.0])), "two vectors of 19 nodes"),
    ],
)
def test_impossible_parameters_are_refused(call, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        call()
