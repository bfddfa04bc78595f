"""The gas transmission network: its law of flow, mass, and what one-step methods are good for there."""

import math

import numpy as np
import pytest

import daedal
from daedal.library import pipe_networks


def test_a_line_at_rest_has_the_pressures_of_the_exact_formula():
    """p^2 falls linearly along a pipe, however it is divided: p_k^2 = p_0^2 - k R q^2."""
    flow, resistance, n = 80.0, 0.02, 5
    capacities = np.ones(n)
    numbers = [n, n - 1, 1, 1, 2]
    for k in range(n - 1):
        numbers += [k, k + 1, resistance]
    numbers += [*capacities, pipe_networks.SOURCE, -1, 0, 0.0, 1.0, n - 1, flow / pipe_networks.FACTORS[0]]
    squares = pipe_networks.SUPPLY**2 - resistance * flow**2 * np.arange(n)
    y = np.array([*np.sqrt(squares), flow, 0.0, 0.0])
    r = pipe_networks.gas_network_residual(0.0, y, np.zeros(n + 3), np.array(numbers))
    np.testing.assert_allclose(r[: n + 1], 0.0, atol=1e-7 * flow)  # the root is smoothed


@pytest.mark.parametrize("index", [1, 2])
def test_initial_state_is_at_rest(index):
    model = daedal.library.gas_network(stations=2, index=index)
    y0, yp0 = model.initial
    np.testing.assert_allclose(model.problem.evaluate(0.0, y0, yp0), 0.0, atol=1e-10)
    np.testing.assert_allclose(yp0[:-2], 0.0)
    assert yp0[-1] == pytest.approx(yp0[-2], rel=1e-10)  # what comes in goes out


@pytest.mark.parametrize(("index", "method"), [(1, "rosenbrock"), (2, "radau")])
def test_mass_is_kept_to_rounding_and_the_end_is_known(index, method):
    model = daedal.library.gas_network(stations=2, index=index)
    sol = daedal.solve(model.problem, model.t_span, model.initial, method=method, rtol=1e-5, atol=1e-5)
    mass = np.array([model.extra["mass"](y) for y in sol.y.T])
    balance = mass - sol["supplied"] + sol["consumed"]
    assert np.ptp(balance) < 1e-12 * mass[0] and np.ptp(mass) > 0.005 * mass[0]
    assert np.nanmax(model.reference.error(sol.y[:, -1])) < 1e-4
    assert sorted(set(np.round(sol.events.t, 9))) == sorted([*pipe_networks.HOURS, *pipe_networks.OUTAGE])


def test_one_step_methods_lose_nothing_at_jumps():
    """Six restarts in a day: for two digits DASSL, which begins each time with order 1, takes twice as many steps."""
    model = daedal.library.gas_network(stations=2)
    steps = {}
    for method in ("rosenbrock", "dassl"):
        sol = daedal.solve(model.problem, model.t_span, model.initial, method=method, rtol=1e-3, atol=1e-3)
        steps[method] = sol.stats.steps
        assert np.nanmax(model.reference.error(sol.y[:, -1])) < 1e-2
    assert 2 * steps["rosenbrock"] < steps["dassl"]


def test_index_follows_from_the_regulators():
    for index in (1, 2):
        problem = daedal.library.gas_network(stations=1, index=index).problem
        initial = daedal.library.gas_network(stations=1, index=index).initial
        assert daedal.analyse(problem, at=(0.0, initial)).index == index


def test_wrong_parameters_are_refused():
    for given in ({"stations": 0}, {"stations": 2.5}, {"index": 3}):
        with pytest.raises(daedal.InvalidProblemError, match=next(iter(given))):
            daedal.library.gas_network(**given)


def test_demand_is_that_of_the_hours():
    model = daedal.library.gas_network(stations=1)
    total = sum(size for _, size in model.extra["network"].demands)
    y, zero = model.initial[0], np.zeros(model.problem.n)
    for t, factor in ((0.0, 0.6), (6.0, 1.3), (8.99, 1.3), (9.0, 1.0), (17.0, 1.4), (22.0, 0.7), (24.0, 0.7)):
        assert -model.problem.evaluate(t, y, zero)[-1] == pytest.approx(factor * total)
    assert math.isclose(total, sum(14.0 + 8.0 * math.sin(1.0 * (line == "B")) for line in "AB"))
