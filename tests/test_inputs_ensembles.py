"""Many runs of problems with inputs: shared, varying from member to member, constant and sampled."""

import numpy as np
import pytest

import daedal

TIMES = [0.0, 0.5]


def lag():
    return daedal.ODE(lambda t, y, p, u: [p["k"] * (u - y[0])], 1, params={"k": 1.0}, inputs=["u"])


def alone(y0, k, u):
    return daedal.solve(lag(), (0.0, 1.0), [y0], params={"k": k}, inputs={"u": u}, t_eval=[1.0]).y[0, -1]


STARTS = np.array([[0.0], [0.5], [1.0]])


@pytest.mark.parametrize("varies", [False, True])
@pytest.mark.parametrize("sampled", [False, True])
def test_members_have_the_bits_of_single_runs(varies, sampled):
    constants = np.array([2.0, -1.0, 0.5]) if varies else 2.0
    given = (TIMES, np.stack([constants, 3.0 * constants], axis=-1) if varies else [2.0, 6.0]) if sampled else constants
    found = daedal.solve_many(lag(), (0.0, 1.0), STARTS, params={"k": [1.0, 2.0, 3.0]}, inputs={"u": given})
    for i, (y0, k) in enumerate(zip(STARTS[:, 0], (1.0, 2.0, 3.0))):
        u = constants[i] if varies else constants
        assert found.final.y[i, 0] == alone(y0, k, (TIMES, [u, 3.0 * u]) if sampled else u)


def test_vectors_and_numbers_of_each_member_are_in_their_places():
    problem = daedal.ODE(
        lambda t, y, p, a, b: [a[1] - p["k"] * y[0] + 0.1 * a[0], b],
        2,
        params={"k": 1.0},
        inputs={"b": 0.0, "a": [0, 0]},
    )
    a, b = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([7.0, 8.0, 9.0])
    found = daedal.solve_many(problem, (0.0, 1.0), [0.5, 0.0], params={"k": [1.0, 2.0, 3.0]}, inputs={"a": a, "b": b})
    for i, k in enumerate((1.0, 2.0, 3.0)):
        given = {"params": {"k": k}, "inputs": {"a": a[i], "b": b[i]}}
        one = daedal.solve(problem, (0.0, 1.0), [0.5, 0.0], t_eval=[1.0], **given)
        assert np.array_equal(found.final.y[i], one.y[:, -1])


def test_inputs_of_the_problem_and_lists_of_inputs_hold_for_members():
    problem = lag().with_inputs(u=(TIMES, [2.0, 6.0]))
    assert daedal.solve_many(problem, (0.0, 1.0), STARTS).final.y[1, 0] == alone(0.5, 1.0, (TIMES, [2.0, 6.0]))
    found = daedal.solve_many(lag(), (0.0, 1.0), [0.5], inputs=[{"u": 1.0}, {"u": (TIMES, [2.0, 6.0])}, {}])
    assert found.members == 3 and found.final.y[1, 0] == alone(0.5, 1.0, (TIMES, [2.0, 6.0]))
    assert found.final.y[2, 0] == alone(0.5, 1.0, 0.0)


def test_wrong_inputs_of_many_runs_are_refused():
    def solve(**given):
        return daedal.solve_many(lag(), (0.0, 1.0), STARTS, **given)

    with pytest.raises(daedal.errors.UnknownNameError, match="'w' is not an input"):
        solve(inputs={"w": 1.0})
    with pytest.raises(daedal.InvalidProblemError, match="3 members and inputs 2"):
        solve(params={"k": [1.0, 2.0, 3.0]}, inputs={"u": [1.0, 2.0]})
    with pytest.raises(daedal.InvalidProblemError, match="params and inputs has 2"):
        solve(inputs={"u": [1.0, 2.0]})
    with pytest.raises(daedal.InvalidProblemError, match="defined without inputs"):
        daedal.solve_many(daedal.ODE(lambda t, y: [-y[0]], 1), (0.0, 1.0), STARTS, inputs={"u": 1.0})
