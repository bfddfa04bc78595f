"""What functions read from outside, in containers and objects of every kind: a change is seen by the next run."""

import numpy as np
import pytest

import daedal
from daedal.symbolic.dependencies import Dependencies
from soak import stale


@pytest.mark.parametrize("number", range(len(stale.CONTAINERS)), ids=lambda number: list(stale.CONTAINERS)[number])
def test_runs_after_a_change_see_it(number):
    verdict = stale.drawn(number).judged(number)
    assert verdict.kind == "right", verdict


def test_functions_that_differ_from_their_trace_are_called_in_all_later_runs(monkeypatch):
    monkeypatch.setattr(Dependencies, "check", lambda self: lambda: True)  # a change that is not seen
    rate = [1.0]
    problem = daedal.ODE(lambda t, y: [-rate[0] * y[0]], 1)
    for _ in range(3):
        daedal.solve(problem, (0.0, 1.0), [1.0])
    rate[0] = 2.0
    with pytest.warns(daedal.TraceWarning, match="all later ones"):
        daedal.solve(problem, (0.0, 1.0), [1.0])
    for _ in range(2):
        assert daedal.solve(problem, (0.0, 1.0), [1.0]).y[0, -1] == pytest.approx(np.exp(-2.0), abs=1e-5)


def test_a_prepared_solver_can_be_asked_to_trace_again():

    class Watched:
        def __call__(self, t, y):
            return [-y[0]]

    solver = daedal.prepare(daedal.ODE(Watched(), 1))
    plan = solver.plan
    solver.solve((0.0, 1.0), [1.0])
    assert solver.plan is plan
    solver.refresh()
    assert solver.plan is not plan
    assert solver.solve((0.0, 1.0), [1.0]).y[0, -1] == pytest.approx(np.exp(-1.0), abs=1e-5)
