"""Systems of python-control from problems and linear models, and its controllers in simulations."""

import numpy as np
import pytest

import daedal
from oracles import oracle

control = oracle("control")


def oscillator():
    return daedal.MechanicalSystem(
        1.0, lambda t, q, v, u: [u - 4.0 * q[0] - v[0]], n_q=1, names=["position"], inputs=["u"]
    )


def test_linear_models_become_state_spaces_with_their_names():
    linear = daedal.linearise(oscillator(), ([0.0], [0.0]))
    system = daedal.control.state_space(linear)
    assert np.array_equal(system.A, linear.A) and system.input_labels == ["u"]
    assert sorted(system.poles().imag) == pytest.approx([-np.sqrt(3.75), np.sqrt(3.75)])


@pytest.mark.parametrize("kind", ["mechanism", "constrained", "ode"])
def test_systems_of_problems_move_as_their_simulations(kind):
    if kind == "mechanism":
        problem, start = oscillator(), ([1.0], [0.0])
    elif kind == "ode":
        problem, start = daedal.ODE(lambda t, y, u: [y[1], u - np.sin(y[0])], 2, inputs=["u"]), [1.0, 0.0]
    else:
        problem = daedal.MechanicalSystem(
            np.eye(2),
            lambda t, q, v, u: [u, -9.81],
            lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
            n_q=2,
            n_constraints=1,
            inputs=["u"],
        )
        start = ([1.0, 0.0], [0.0, 0.0])
    system = daedal.control.io_system(problem)
    times = np.linspace(0.0, 1.0, 21)
    y0 = np.concatenate([np.ravel(part) for part in start])
    response = control.input_output_response(
        system, times, np.full(21, 0.5), y0, solve_ivp_kwargs={"rtol": 1e-9, "atol": 1e-10}
    )
    sim = daedal.Simulation(problem, start, inputs={"u": 0.5}, rtol=1e-9, atol=1e-10)
    assert response.outputs[:, -1] == pytest.approx(sim.step_to(1.0), abs=1e-6)


def test_controllers_in_discrete_time_keep_their_state_and_are_reset():
    lead = control.tf([8.0, -7.0], [1.0, -0.3], 0.1)
    controller = daedal.control.DiscreteController(lead)
    cart = daedal.ODE(lambda t, y, u: [y[1], u], 2, names="x v", inputs=["u"])
    records = [daedal.Simulation(cart, [1.0, 0.0], outputs=["x"]).run(controller, 0.1, 15.0) for _ in range(2)]
    assert abs(records[0]["x"][-1]) < 0.05 and np.array_equal(records[0].y, records[1].y)


def test_what_has_no_such_form_is_refused():
    semi = daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [y[0] + z[0]], 1, 1)
    with pytest.raises(daedal.InvalidProblemError, match="SemiExplicitDAE is not a system"):
        daedal.control.io_system(semi)
    with pytest.raises(daedal.InvalidProblemError, match="must be in discrete time"):
        daedal.control.DiscreteController(control.tf([1.0], [1.0, 1.0]))
