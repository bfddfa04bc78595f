"""Many events in one run: nothing slows down, and nothing grows but what is stored."""

import gc
import tracemalloc

import numpy as np
import pytest

import daedal


def box():
    """A ball between two walls at x = -1 and x = 1: a wall is hit every two seconds."""
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: np.zeros(2), n_q=2)

    def bounce(t, q, v):
        return q, np.array([-v[0], v[1]])

    walls = [
        daedal.hybrid.Transition(
            "flight", "flight", guard=lambda t, q, v: 1.0 - q[0], direction=-1, reset=bounce, name="right"
        ),
        daedal.hybrid.Transition(
            "flight", "flight", guard=lambda t, q, v: 1.0 + q[0], direction=-1, reset=bounce, name="left"
        ),
    ]
    return daedal.hybrid.HybridProblem({"flight": ball}, walls)


def fly(problem, n, **options):
    end = 2.0 * n
    return daedal.solve(
        problem, (0.0, end), ("flight", ([0.0, 0.0], [1.0, 0.25])), t_eval=[0.0, end], dense_output=False, **options
    )


def test_transitions_leave_nothing_behind():
    """Memory after 200 and after 600 transitions is the same, and the ball is where it has to be."""
    problem = box()
    fly(problem, 50, record_events=False)
    kept = []
    for n in (200, 600):
        tracemalloc.start()
        sol = fly(problem, n, record_events=False)
        gc.collect()
        kept.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert sol.n_events == n
        assert sol.q[:, -1] == pytest.approx([0.0, 0.25 * 2.0 * n], abs=1e-6)
    assert kept[1] < kept[0] + 50_000


def test_every_transition_is_recorded():
    sol = fly(box(), 500)
    assert sol.n_events == len(sol.events) == 500
    assert np.abs(sol.events.t - (2.0 * np.arange(500) + 1.0)).max() < 1e-8


@pytest.mark.parametrize("width", [1e-14, 1e-13, 1e-12])
def test_functions_that_are_zero_up_to_round_off_for_a_while_are_not_missed(width):
    """Next to its root the function is zero, or has its old sign by round-off, as those of contacts do."""
    for place in np.linspace(0.1, 0.9, 41):

        def hovering(t, y, place=place):
            left = place - t
            return left if abs(left) > width else 1e-17 * (int(t * 2.0**53) // 3 % 2)

        event = daedal.Event(hovering, terminal=True)
        sol = daedal.solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0.0, 1.0), [0.0], [1.0], events=event)
        assert sol.status == "event" and abs(sol.t[-1] - place) < 2.0 * width
