"""The automatic choice over a run: to a stiff method, and back."""

import numpy as np

import daedal


def pendulum_in_honey(t_clear):
    """A pendulum in a liquid that is very viscous until about `t_clear` and then clear."""

    def force(t, q, v):
        c = 5e3 * (1.0 - np.tanh(10.0 * (t - t_clear)))
        return np.array([-c * v[0], -1.0 - c * v[1]])

    def constraint(t, q):
        return np.array([0.5 * (q[0] * q[0] + q[1] * q[1] - 1.0)])

    return daedal.MechanicalSystem(1.0, force, constraint, n_q=2, n_constraints=1, names=["x", "y"])


def test_stiff_at_first_and_then_no_longer():
    system, initial = pendulum_in_honey(1.0), ([1.0, 0.0], [0.0, 0.0])
    sol = daedal.solve(system, (0.0, 20.0), initial, rtol=1e-7, atol=1e-7)
    assert sol.method == "PHEM56, then DASSL, then PHEM56"
    assert any("Stiff from" in note for note in sol.notes) and any("No longer stiff" in note for note in sol.notes)
    other = daedal.solve(system, (0.0, 20.0), initial, rtol=1e-9, atol=1e-9, method="dassl")
    np.testing.assert_allclose(sol.y[:, -1], other.y[:, -1], atol=2e-5)
    assert sol.drift["position"] < 1e-13 and np.all(np.diff(sol.t) > 0.0)
    between = sol(np.linspace(0.0, 20.0, 50))
    assert np.max(np.abs(np.sum(between.q**2, axis=0) - 1.0)) < 1e-12


def test_max_steps_counts_all_segments():
    system = pendulum_in_honey(1e3)
    try:
        daedal.solve(system, (0.0, 1e4), ([1.0, 0.0], [0.0, 0.0]), rtol=1e-10, atol=1e-10, max_steps=700)
    except daedal.IntegrationError as error:
        assert error.solution.stats.steps == 700
    else:
        raise AssertionError("700 steps cannot be enough")


def test_other_parameters_need_no_new_compilation():
    model = daedal.library.get("particle_on_paraboloid", compiled=True)
    daedal.solve(model.problem, (0.0, 0.1), model.initial)
    again = daedal.library.get("particle_on_paraboloid", compiled=True)
    assert again.problem.constraint is model.problem.constraint
