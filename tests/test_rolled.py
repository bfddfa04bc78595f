"""Large graphs as tables for a few loops: the same results to the last bit as one instruction a node."""

import numpy as np
import pytest

import daedal
from daedal.symbolic import Graph, scalar_argument, trace, vector_argument
from daedal.symbolic import machine as code_generation
from daedal.symbolic.machine import compile_function


def every_kind(t, x):
    """Arithmetic, functions, conditions, tables, and results that are arguments or constants."""
    rows = []
    for k in range(len(x)):
        y = x[k]
        rows += [np.where(y > t, np.exp(-y), y * y / 3.0), np.maximum(y, 0.5) - np.sign(y), np.hypot(y, t)]
        rows += [np.interp(y, [0.0, 1.0, 2.0], [1.0, 3.0, -1.0]), np.arctan2(y, 2.0) ** 0.3, y, 4.0]
        rows += [np.where((y > 0.2) & ~(y > 0.9), 1.0 / y, -y)]
    return rows + [sum(x[k] for k in range(len(x)))]


def compiled(n):
    graph = Graph()
    t, x = scalar_argument(graph, "t"), vector_argument(graph, "x", n)
    result = trace(every_kind, (t, x))
    return compile_function(graph, {"x": n}, {"y": result.array}, statuses=[(result.raises, 1)])


@pytest.mark.parametrize("point", [0.3, 1.7, -0.4, np.nan])
def test_loops_and_straight_code_agree_to_the_last_bit(monkeypatch, point):
    n = 20
    straight = compiled(n)
    monkeypatch.setattr(code_generation, "MOST_STRAIGHT", 0)
    rolled = compiled(n)
    assert rolled.operations == straight.operations and rolled.size > straight.size
    x = np.linspace(-1.0, 2.5, n)
    x[3] = point
    for t in (0.0, 0.7):
        one, other = straight(t, x=x), rolled(t, x=x)
        assert one[0] == other[0]
        np.testing.assert_array_equal(one[1]["y"], other[1]["y"])


def test_runs_are_the_same_with_loops_and_with_straight_code(monkeypatch):
    model = daedal.library.gas_network(stations=1)
    runs = []
    for most in (20_000, 0):
        monkeypatch.setattr(code_generation, "MOST_STRAIGHT", most)
        problem = daedal.ImplicitDAE(model.problem.residual, model.problem.n, params=model.problem.params.copy())
        runs.append(daedal.solve(problem, (0.0, 10.0), model.initial, rtol=1e-4, atol=1e-4, method="dassl"))
    np.testing.assert_array_equal(runs[0].y, runs[1].y)
    assert [event for event in runs[0].events.t] == [event for event in runs[1].events.t]


def test_a_large_loop_in_python_is_followed_with_exact_derivatives():
    model = daedal.library.gas_network(stations=48)
    sol = daedal.solve(model.problem, (0.0, 7.0), model.initial, dense_output=False, t_eval=[7.0], **model.options)
    assert sol.success and sol.stats.jacobian_residual_evaluations == 0 and sol.stats.steps < 60
    assert "6 <= t" in str(sol.events)


def test_large_circuits_find_their_operating_point_and_run():
    ladder = "".join(f"R{k} n{k} n{k + 1} 10\nC{k} n{k + 1} 0 10n\nD{k} n{k + 1} 0 M\n" for k in range(400))
    circuit = daedal.circuits.parse("V1 n0 0 SIN(0.2 1 1k)\n" + ladder + ".model M d(is=1n n=1.8)")
    sol = circuit.solve((0.0, 1e-4), rtol=1e-4, t_eval=[1e-4])
    assert sol.success and sol.y[0, -1] == pytest.approx(0.2 + np.sin(2e-1 * np.pi))
    assert sol.stats.jacobian_residual_evaluations == 0
