"""Controllers in discrete time, in simulations and in solve: state, delay, quantisation, what is refused."""

from math import exp, sin

import numpy as np
import pytest

import daedal
from test_simulation import ball, lag, lags


class Integrator:
    """u = -k (y + integral of y), with a state."""

    def __init__(self):
        self.sum = np.nan

    def reset(self):
        self.sum = 0.0

    def __call__(self, t, y):
        self.sum += 0.05 * y[0]
        return -2.0 * (y[0] + self.sum)


def test_sampled_controllers_act_as_samples_that_are_held():
    problem = daedal.ODE(lambda t, y, u: [u + 1.0], 1, inputs=["u"])
    sim = daedal.Simulation(problem, [1.0], rtol=1e-9)
    record = sim.run(Integrator(), dt=0.05, t_end=10.0)
    assert record.t.size == 201 and record.t[-1] == sim.t == 10.0 and abs(record.y[0, -1]) < 1e-3
    signal = record.t[:-1], record.u[0, :-1]
    sol = daedal.solve(problem, (0.0, 10.0), [1.0], inputs={"u": signal}, t_eval=record.t, rtol=1e-9)
    assert record.y == pytest.approx(sol.y, abs=1e-7)
    late = daedal.simulation.Sampled(lambda t, y: -y, 0.1, delay=2, resolution=0.25, output_resolution=0.5)
    record = daedal.Simulation(problem, [1.1], inputs={"u": 7.0}).run(late, t_end=1.0)
    assert record.u[0, :4].tolist() == [7.0, 7.0, -1.0, -2.0] and np.all(record.u % 0.25 == 0.0)


def test_a_controller_that_raises_leaves_the_simulation_at_the_last_good_state():
    def controller(t, y):
        if t > 0.45:
            raise ZeroDivisionError("out of order")
        return 1.0

    sim = daedal.Simulation(lag(), [0.0])
    with pytest.raises(ZeroDivisionError, match="out of order"):
        sim.run(controller, dt=0.1, t_end=1.0)
    assert sim.t == pytest.approx(0.5) and sim["x"] == pytest.approx(1.0 - exp(-0.5), abs=1e-5)
    sim.step(0.5)
    assert sim["x"] == pytest.approx(1.0 - exp(-1.0), abs=1e-5)


@pytest.mark.parametrize("name", [*lags(), "bounces"])
def test_solve_with_a_sampled_controller_is_the_run_of_a_simulation(name):
    problem, initial, label = (ball(), ("flight", ([1.0], [0.0])), "q[0]") if name == "bounces" else lags()[name]
    options = {"correct_initial": True, "rtol": 1e-9, "atol": 1e-12}
    control = daedal.simulation.Sampled(lambda t, y: [sin(3.0 * t) - 0.5 * y[0]], 0.1, delay=1, resolution=0.1)
    sol = daedal.solve(problem, (0.0, 1.05), initial, sampled=control, t_eval=[0.5, 1.05], **options)
    sim = daedal.Simulation(problem, initial, **options)
    record = sim.run(control, t_end=1.05)
    assert sol[label][-1] == pytest.approx(sim[label], abs=1e-9) and sol.t.tolist() == [0.5, 1.05]
    assert sol.sampled.t == pytest.approx(record.t[:-1]) and sol.sampled.u == pytest.approx(record.u[:, :-1], abs=1e-9)
    assert sol.sampled.y == pytest.approx(record.y[:, :-1], abs=1e-9)
    assert sol.sampled.output_names == record.output_names


def test_solve_returns_what_was_computed_when_a_controller_raises():
    def controller(t, y):
        if t > 0.45:
            raise ZeroDivisionError("out of order")
        return 1.0

    with pytest.raises(ZeroDivisionError, match="out of order") as found:
        daedal.solve(lag(), (0.0, 1.0), [0.0], sampled=daedal.simulation.Sampled(controller, 0.1))
    solution = found.value.solution
    assert solution.t[-1] == pytest.approx(0.5) and solution.y[0, -1] == pytest.approx(1.0 - exp(-0.5), abs=1e-5)
    assert solution.sampled.u.tolist() == [[1.0] * 5]


@pytest.mark.parametrize(
    ("control", "options", "words"),
    [
        (lambda t, y: 0.0, {}, r"must be a daedal\.simulation\.Sampled\(controller, dt\), got function"),
        (daedal.simulation.Sampled(lambda t, y: 0.0, 0.1), {"inputs": {"u": sin}}, "has none to set"),
        (daedal.simulation.Sampled(lambda t, y: 0.0, 0.1), {"sensitivities": ["u"]}, "exclude each other"),
        (daedal.simulation.Sampled(lambda t, y: 0.0, 0.1), {"fixed_step": 0.1}, "fixed_step and sampled exclude"),
        (
            daedal.simulation.Sampled(lambda t, y: [1.0, 2.0], 0.1),
            {},
            r"result of the controller at t = 0: input 'u' is",
        ),
        (
            daedal.simulation.Sampled(lambda t, y: np.nan, 0.1),
            {},
            "result of the controller at t = 0: .* is not finite",
        ),
        (daedal.simulation.Sampled(lambda t, y: {"w": 1.0}, 0.1), {}, "'w' is not an input"),
        (daedal.simulation.Sampled(lambda t, y: None, 0.1), {}, "returned None"),
    ],
)
def test_wrong_sampled_controllers_of_solve_are_refused(control, options, words):
    with pytest.raises(daedal.InvalidProblemError, match=words):
        daedal.solve(lag(), (0.0, 1.0), [0.0], sampled=control, **options)
