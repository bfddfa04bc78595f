"""Runs made twice: functions that differ and matrices that are wrong are seen, whatever the run."""

from types import SimpleNamespace

import numpy as np
import pytest

import daedal
from daedal.driver.run_points import points_of
from daedal.driver.traced import TracedPlan
from daedal.problems.compile import with_numbers
from twin import ALLOWED, made_twice, wrong_derivatives


def robertson(t, y, yp, p):
    fast = 1e4 * y[1] * y[2]
    return [yp[0] + p["k"] * y[0] - fast, yp[1] - p["k"] * y[0] + fast + 3e7 * y[1] ** 2, y.sum() - 1.0]


def pendulum(t, y, yp, p):
    return [yp[0] - y[1], yp[1] + p["k"] * np.sin(y[0])]


RUNS = {
    "stiff": (daedal.ImplicitDAE(robertson, 3, params={"k": 0.04}), (0.0, 40.0), ([1.0, 0.0, 0.0], [-0.04, 0.04, 0.0])),
    "unstable": (daedal.ImplicitDAE(pendulum, 2, params={"k": 9.81}), (0.0, 5.2), ([np.pi - 1e-5, 0.0], None)),
}


@pytest.fixture
def changed(monkeypatch):
    """Let all machine code have parameters that are wrong by this part."""

    def change(part):
        original = TracedPlan._plan

        def plan(self, left_out, followed=False):
            if left_out is None or followed:
                return original(self, left_out, followed)
            wrong = {"k": self.problem.params["k"] * (1.0 + part)}
            return self._make(with_numbers(self.traced.problem, wrong), self.settings)

        monkeypatch.setattr(TracedPlan, "_plan", plan)

    return change


def run(name):
    problem, span, initial = RUNS[name]
    daedal.solve(problem, span, initial, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", RUNS)
def test_runs_of_the_same_functions_agree(name):
    with made_twice() as twin:
        run(name)
    assert len(twin.gaps) == 1


@pytest.mark.parametrize("name", RUNS)
def test_a_function_that_is_wrong_by_one_part_in_ten_thousand_is_seen(name, changed):
    changed(1e-4)
    with pytest.raises(AssertionError), made_twice() as twin:
        run(name)
    assert twin.gaps[0] > ALLOWED


# --- wrong matrices ---------------------------------------------------------------------------------------------------


def decay(t, y, yp):
    return [yp[0] + 2.0 * y[0] - y[1], y[0] * y[1] - 1.0]


def matrix(error):
    def jacobian(t, y, yp, cj):
        return [[cj + 2.0, -1.0], [y[1] * (1.0 + error), y[0]]]

    return daedal.ImplicitDAE(decay, 2, jacobian=jacobian)


def rod(error):
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [0.0, -9.81],
        lambda t, q: [q @ q - 1.0],
        constraint_jacobian=lambda t, q: [[2.0 * q[0], 2.0 * q[1] * (1.0 + error)]],
        n_q=2,
        n_constraints=1,
    )


@pytest.mark.parametrize(
    ("made", "initial"), [(matrix, ([1.0, 1.0], None)), (rod, ([0.6, -0.8], [0.0, 0.0]))], ids=["Newton", "constraints"]
)
def test_a_matrix_that_is_wrong_by_one_part_in_a_thousand_is_seen(made, initial):
    right = made(0.0)
    solution = daedal.solve(right, (0.0, 0.5), initial)
    for error, is_seen in ((0.0, False), (1e-3, True)):
        plan = SimpleNamespace(inner=SimpleNamespace(problem=made(error)), problem=right)
        assert bool(wrong_derivatives(plan, points_of(plan.problem, solution))) == is_seen
