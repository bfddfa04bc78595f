"""A method that is a tableau: alone, in lanes, as C for GPUs, with sensitivities and dense output."""

from pathlib import Path

import numpy as np
import pytest

import daedal
from c_compiler import COMPILER, HostEngine
from daedal.ensembles import gpu as on_gpu
from daedal.ensembles.lane_members import Lanes
from daedal.methods.explicit.runge_kutta import ExplicitRungeKutta, explicit_tableau
from daedal.methods.named_methods import named_method
from tsitouras import Tsitouras


class BogackiShampine(ExplicitRungeKutta):
    """Order 3, with cubic Hermite interpolation."""

    name = "bogacki-shampine"
    tableau = explicit_tableau(
        daedal.methods.RungeKuttaTableau(
            [[], ["1/2"], [0, "3/4"], ["2/9", "1/3", "4/9"]],
            ["2/9", "1/3", "4/9", 0],
            embedded=["7/24", "1/4", "1/3", "1/8"],
            name="Bogacki-Shampine",
        ),
        order=3,
    )


METHODS = {"tsit5": (5, 4), "bogacki-shampine": (3, 3)}
"""Orders of the steps and of the dense output."""
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler on this machine")


def oscillator(**options):
    """cos(w t), with w^2 as parameter."""
    return daedal.ODE(lambda t, y, p: [y[1], -p[0] * y[0]], 2, params=[4.0], **options)


def pendulum():
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, p: [0.0, -p[0]],
        lambda t, q, p: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)],
        n_q=2,
        n_constraints=1,
        params=[9.81],
    )


def test_one_file_of_eighty_lines_is_enough():
    assert len((Path(__file__).parent / "tsitouras.py").read_text().splitlines()) <= 80


@pytest.mark.parametrize("name", METHODS)
def test_orders_of_steps_and_of_dense_output(name):
    order, dense_order = METHODS[name]
    problem = daedal.ODE(lambda t, y: [-2.0 * t * y[0] ** 2], 1)  # 1 / (1 + t^2)
    inside, ends = [], []
    for h in (0.1, 0.05):
        sol = daedal.solve(problem, (0.0, 1.0), [1.0], method=name, fixed_step=h)
        t = np.linspace(0.0, 1.0, 201)
        ends.append(np.abs(sol.y[0] - 1.0 / (1.0 + sol.t**2)).max())
        inside.append(np.abs(sol(t)[0] - 1.0 / (1.0 + t**2)).max())
    assert np.log2(ends[0] / ends[1]) == pytest.approx(order, abs=0.3)
    assert np.log2(inside[0] / inside[1]) > min(order, dense_order + 1) - 0.4


@pytest.mark.parametrize("name", METHODS)
def test_runs_with_error_control_and_events(name):
    turn = daedal.Event(lambda t, y: y[1], name="turn", direction=1)
    sol = daedal.solve(oscillator(), (0.0, 3.0), [1.0, 0.0], method=name, rtol=1e-8, atol=1e-10, events=turn)
    assert abs(sol.y[0, -1] - np.cos(6.0)) < 1e-6
    assert [event.t for event in sol.events] == pytest.approx([np.pi / 2], abs=1e-6)
    assert name.split("-")[0][:4] in sol.method.lower()


@pytest.mark.parametrize("name", METHODS)
def test_lanes_have_the_bits_of_single_runs(name, monkeypatch):
    counts, run = {"members": 0, "left": 0}, Lanes.run

    def watched(self, stopped):
        run(self, stopped)
        counts["members"] += self.reasons().size
        counts["left"] += int(np.count_nonzero(self.reasons() == 0))

    monkeypatch.setattr(Lanes, "run", watched)
    params, times = np.linspace(1.0, 9.0, 11)[:, None], np.linspace(0.0, 2.0, 5)
    options = {"t_eval": times, "method": name, "rtol": 1e-6, "atol": 1e-6}
    for problem, start in ((oscillator(), [1.0, 0.0]), (pendulum(), ([1.0, 0.0], [0.0, 0.0]))):
        found = daedal.solve_many(problem, (0.0, 2.0), start, params=params, on="threads", workers=1, **options)
        for k, row in enumerate(params):
            one = daedal.solve(problem.with_params(row), (0.0, 2.0), start, **options)
            assert found.y[k].tobytes() == one.y.tobytes()
    assert counts["members"] >= 20
    assert counts["left"] == 0


@needs_compiler
@pytest.mark.parametrize("name", METHODS)
def test_runs_in_c_are_those_of_the_driver(name, monkeypatch, tmp_path):
    monkeypatch.setattr(on_gpu, "Engine", lambda options: HostEngine(tmp_path))
    params, times = np.linspace(1.0, 9.0, 3)[:, None], np.array([0.35, 1.0])
    options = {"params": params, "t_eval": times, "method": name, "rtol": 1e-6, "atol": 1e-6}
    for problem, start in ((oscillator(), [1.0, 0.0]), (pendulum(), ([1.0, 0.0], [0.0, 0.0]))):
        found = daedal.solve_many(problem, (0.0, 1.0), start, on="gpu", **options)
        options["method"] = named_method(name, {"norm": "max"})  # as that of mechanisms on GPUs
        expected = daedal.solve_many(problem, (0.0, 1.0), start, on="threads", workers=1, **options)
        np.testing.assert_allclose(found.y, expected.y, rtol=1e-6, atol=1e-6)
        assert found.failed.size == 0


@pytest.mark.parametrize("name", METHODS)
def test_sensitivities(name):
    sol = daedal.solve(oscillator(), (0.0, 1.0), [1.0, 0.0], method=name, sensitivities=[0], rtol=1e-8, atol=1e-10)
    w = 2.0
    exact = -np.sin(w) / (2.0 * w)  # of cos(w t) at t = 1 by w^2
    assert sol.sensitivity(0)[0, -1] == pytest.approx(exact, abs=1e-6)
    one = daedal.solve(
        pendulum(), (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), method=name, sensitivities=[0], rtol=1e-8, atol=1e-10
    )
    high, low = (
        daedal.solve(pendulum().with_params([g]), (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), rtol=1e-11, atol=1e-12).y[:, -1]
        for g in (9.81 + 1e-3, 9.81 - 1e-3)
    )
    np.testing.assert_allclose(one.sensitivity(0).q[:, -1], (high - low)[:2] / 2e-3, atol=1e-5)


def test_a_method_without_embedded_weights_takes_constant_steps():
    class Midpoint(ExplicitRungeKutta):
        name = "midpoint-without-estimate"
        tableau = explicit_tableau(daedal.methods.RungeKuttaTableau([[], ["1/2"]], [0, 1]), order=2)

    with pytest.raises(daedal.InvalidProblemError, match="Midpoint has no error estimate"):
        daedal.solve(oscillator(), (0.0, 1.0), [1.0, 0.0], method=Midpoint())
    sol = daedal.solve(oscillator(), (0.0, 1.0), [1.0, 0.0], method=Midpoint(), fixed_step=1e-3)
    assert abs(sol.y[0, -1] - np.cos(2.0)) < 1e-5


def test_tableaux_that_cannot_be_run_are_refused():
    implicit = daedal.methods.RungeKuttaTableau([["1/2"]], [1], name="midpoint rule")
    with pytest.raises(daedal.InvalidProblemError, match="midpoint rule: not explicit"):
        explicit_tableau(implicit, order=2)
    wrong = [[1.0, 0.5], [0.0, 0.5]]
    with pytest.raises(daedal.InvalidProblemError, match="does not interpolate y_0"):
        explicit_tableau(daedal.methods.RungeKuttaTableau([[], [1]], ["1/2", "1/2"], name="Heun"), order=2, dense=wrong)
    assert Tsitouras.tableau.degree == 4
