"""Sensitivities of mechanisms: positions, velocities, multipliers, on the differentiated constraints to round-off."""

import pickle

import numpy as np
import pytest

import daedal
from daedal import InvalidProblemError
from run_differences import derivative, relative_error

DATA = {"m": 2.0, "g": 9.81, "L": 1.5, "d": 0.3}
TIMES = np.linspace(0.3, 3.0, 10)
LINKAGE = (("crank", 1.0, 1.0), ("coupler", 3.0, 2.0), ("rocker", 2.5, 1.5))
PARTS = ("q", "v", "a", "lam", "reaction")


def pendulum(**options):
    return daedal.MechanicalSystem(
        lambda t, q, p: p["m"] * np.eye(2),
        lambda t, q, v, p: np.array([-p["d"] * v[0], -p["d"] * v[1] - p["m"] * p["g"]]),
        lambda t, q, p: np.array([q[0] ** 2 + q[1] ** 2 - p["L"] ** 2]),
        n_q=2,
        n_constraints=1,
        params=dict(DATA),
        names=["x", "y"],
        **options,
    )


def start(data=DATA):
    return [data["L"], 0.0], [0.0, 0.0]


OF_START = {"L": [1.0, 0.0, 0.0, 0.0]}


@pytest.fixture(scope="module")
def references():
    solver = daedal.prepare(pendulum(), rtol=1e-12, atol=1e-13)

    def run(name, value):
        data = DATA | {name: value}
        sol = solver.solve((0.0, 3.0), start(data), params=data, t_eval=TIMES)
        return np.concatenate([getattr(sol, part) for part in PARTS])

    return {name: derivative(lambda value, name=name: run(name, value), DATA[name]) for name in DATA}


def stacked(found):
    return np.concatenate([getattr(found, part) for part in PARTS])


@pytest.mark.parametrize("rtol", [1e-6, 1e-9])
def test_pendulum_with_reaction_forces(rtol, references):
    sol = daedal.solve(
        pendulum(),
        (0.0, 3.0),
        start(),
        sensitivities=True,
        initial_sensitivities=OF_START,
        rtol=rtol,
        atol=1e-3 * rtol,
        t_eval=TIMES,
    )
    for name, expected in references.items():
        assert relative_error(stacked(sol.sensitivity(name)), expected) < max(100 * rtol, 1e-7)


def test_differentiated_constraints_hold_to_round_off():
    sol = daedal.solve(
        pendulum(), (0.0, 3.0), start(), sensitivities=["L", "m"], initial_sensitivities=OF_START, t_eval=TIMES
    )
    for name, rate in (("L", DATA["L"]), ("m", 0.0)):
        s = sol.sensitivity(name)
        position = np.sum(sol.q * s.q, axis=0) - rate
        velocity = np.sum(sol.v * s.q + sol.q * s.v, axis=0)
        assert np.max(np.abs(position)) < 1e-13 * (1.0 + np.max(np.abs(s.q)))
        assert np.max(np.abs(velocity)) < 1e-12 * (1.0 + np.max(np.abs(s.v)))
        inside = sol.sensitivity(name, np.linspace(0.0, 3.0, 77))
        state = sol(np.linspace(0.0, 3.0, 77))
        assert np.max(np.abs(np.sum(state.q * inside.q, axis=0) - rate)) < 1e-12


def test_sensitivities_are_moved_to_consistent_ones_at_the_start():
    """The shortest way: the mass hangs on a rod that becomes longer, in its direction."""
    sol = daedal.solve(pendulum(), (0.0, 1.0), start(), sensitivities=["L"])
    s = sol.sensitivity("L", 0.0)
    assert s.q == pytest.approx([1.0, 0.0], abs=1e-14) and s.v == pytest.approx([0.0, 0.0], abs=1e-14)


def test_initial_values(references):
    problem, at = pendulum(), ([1.2, -0.9], [0.6, 0.8])
    sol = daedal.solve(problem, (0.0, 2.0), at, sensitivities=["x(0)", "y'(0)"], rtol=1e-9, atol=1e-11, t_eval=[2.0])
    first = {name: sol.sensitivity(name, 0.0) for name in ("x(0)", "y'(0)")}
    # x and x' are those named: x changes by 1, x' stays. What moves the mass along the circle moves y by 4/3.
    assert first["x(0)"].q == pytest.approx([1.0, 4.0 / 3.0]) and first["x(0)"].v[0] == pytest.approx(0.0, abs=1e-14)
    assert first["y'(0)"].q == pytest.approx([0.0, 0.0], abs=1e-14) and first["y'(0)"].v == pytest.approx([0.75, 1.0])

    def run(x, speed):
        """From a point of the circle, with this speed in the direction of y."""
        y = -np.sqrt(1.5**2 - x**2)
        return daedal.solve(problem, (0.0, 2.0), ([x, y], speed(x, y)), rtol=1e-12, atol=1e-13, t_eval=[2.0]).y

    by_x = derivative(lambda x: run(x, lambda x, y: [0.6, -x * 0.6 / y]), 1.2, 1e-2)
    by_speed = derivative(lambda v: run(1.2, lambda x, y: [-y * v / x, v]), 0.8, 1e-2)
    assert np.allclose(sol.sensitivity("x(0)").y, by_x, rtol=1e-5, atol=1e-6)
    assert np.allclose(sol.sensitivity("y'(0)").y, by_speed, rtol=1e-5, atol=1e-6)


def test_an_initial_value_that_constraints_determine_follows_them():
    """On the level of its support the mass can only move along y."""
    sol = daedal.solve(pendulum(), (0.0, 0.5), start(), sensitivities=["x(0)", "x'(0)"])
    for name in ("x(0)", "x'(0)"):
        s = sol.sensitivity(name, 0.0)
        assert s.q == pytest.approx([0.0, 0.0], abs=1e-14) and s.v == pytest.approx([0.0, 0.0], abs=1e-14)


def test_sensitivities_of_corrected_initial_values_are_projected_like_these():
    problem, at = pendulum(), ([1.2, -0.9], [0.6, 0.8])
    sol = daedal.solve(problem, (0.0, 1.0), at, sensitivities=["x(0)"], correct_initial=True)
    first = sol.sensitivity("x(0)", 0.0)

    def corrected(x):
        return daedal.solve(problem, (0.0, 1.0), ([x, -0.9], [0.6, 0.8]), correct_initial=True, t_eval=[0.0]).y[:, 0]

    assert np.allclose(first.q, [0.36, 0.48]) and np.allclose(first.y, derivative(corrected, 1.2, 1e-3), atol=1e-6)


def test_the_named_coordinate_of_a_closed_loop_is_held():
    """A four-bar linkage, by the angle and the speed of its crank: the others follow from the constraints."""
    mb = daedal.multibody
    crank, coupler, rocker = (mb.Body.rod(name, length=x, mass=m) for name, x, m in LINKAGE)
    model = mb.Model(
        mb.Revolute("A", mb.ground, crank.start),
        mb.Revolute("B", crank.end, coupler.start),
        mb.Revolute("C", coupler.end, rocker.end),
        mb.Revolute("D", mb.ground.at(3.5, 0.0), rocker.start),
        gravity=(0.0, -9.81),
        planar=True,
    )

    def run(angle, speed, **options):
        at = model.assemble(A=angle, velocities={"A": speed}, side={"C": "+"})
        return daedal.solve(model.system(), (0.0, 1.0), at, rtol=1e-10, atol=1e-11, t_eval=[0.0, 1.0], **options)

    sol = run(0.7, 2.0, sensitivities=["A(0)", "A'(0)"])
    by_angle, by_speed = sol.sensitivity("A(0)"), sol.sensitivity("A'(0)")
    assert (by_angle.q[0, 0], by_speed.v[0, 0]) == (pytest.approx(1.0), pytest.approx(1.0))
    assert by_angle.v[0, 0] == pytest.approx(0.0, abs=1e-12)
    assert relative_error(by_angle.y, derivative(lambda x: run(x, 2.0).y, 0.7, 1e-2)) < 1e-6
    assert relative_error(by_speed.y, derivative(lambda x: run(0.7, x).y, 2.0, 1e-2)) < 1e-6


def test_seven_body_mechanism():
    model = daedal.library.get("seven_body")
    times = np.array([0.01, 0.02, 0.03])
    problem, (q0, v0) = model.problem, model.initial
    sol = daedal.solve(problem, (0.0, 0.03), (q0, v0), sensitivities=True, rtol=1e-8, atol=1e-10, t_eval=times)
    solver = daedal.prepare(problem, rtol=1e-12, atol=1e-13)

    def run(torque):
        found = solver.solve((0.0, 0.03), (q0, v0), params=[torque], t_eval=times)
        return np.concatenate([getattr(found, part) for part in PARTS])

    expected = derivative(run, 0.033, 3e-3)
    assert relative_error(stacked(sol.sensitivity(0)), expected) < 1e-5
    gradients = np.array([problem.at(t, sol.q[:, i], sol.v[:, i]).jacobian for i, t in enumerate(times)])
    s = sol.sensitivity(0).q
    left = np.einsum("kij,jk->ik", gradients, s)
    assert np.max(np.abs(left)) < 1e-13 * np.max(np.abs(gradients)) * np.max(np.abs(s))


@pytest.mark.parametrize(("method", "order"), [("dopri5", 5), ("rk4", 4)])
def test_orders_are_preserved(method, order):
    accurate = daedal.solve(pendulum(), (0.0, 1.0), start(), sensitivities=["g"], rtol=1e-12, atol=1e-14, t_eval=[1.0])
    errors = []
    for h in (0.02, 0.01):
        sol = daedal.solve(pendulum(), (0.0, 1.0), start(), sensitivities=["g"], method=method, fixed_step=h)
        errors.append(np.max(np.abs(sol.sensitivity("g").y[:, -1] - accurate.sensitivity("g").y[:, -1])))
    assert np.log2(errors[0] / errors[1]) > order - 0.3


def test_prepared_solver_is_the_same_bit_for_bit():
    problem, other = pendulum(), DATA | {"m": 1.0, "g": 3.0}
    solver = daedal.prepare(problem, sensitivities=["m", "d"])
    solver.solve((0.0, 0.5), start())
    one = solver.solve((0.0, 1.0), start(), params=other, t_eval=[0.5, 1.0])
    two = daedal.solve(problem, (0.0, 1.0), start(), sensitivities=["m", "d"], params=other, t_eval=[0.5, 1.0])
    for name in ("m", "d"):
        assert np.array_equal(stacked(one.sensitivity(name)), stacked(two.sensitivity(name)))
    again = daedal.prepare(problem, sensitivities=["m", "d"]).solve(
        (0.0, 1.0), start(), params=other, t_eval=[0.5, 1.0]
    )
    assert np.array_equal(stacked(again.sensitivity("d")), stacked(two.sensitivity("d")))


def test_first_order_states_and_velocity_constraints():
    """A knife edge: heading and a motor with a state of its own."""

    def force(t, q, v, r, p):
        return np.array([r[0] * np.cos(q[2]), r[0] * np.sin(q[2]), p["turn"]])

    problem = daedal.MechanicalSystem(
        lambda t, q, p: np.diag([p["m"], p["m"], 1.0]),
        force,
        n_q=3,
        velocity_constraint=lambda t, q, v, p: np.array([np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]]),
        n_velocity_constraints=1,
        state_rate=lambda t, q, v, r, p: np.array([p["k"] * (1.0 - r[0])]),
        n_r=1,
        params={"m": 2.0, "turn": 0.4, "k": 1.5},
    )
    initial = (np.zeros(3), np.zeros(3), np.zeros(1))
    names = ("m", "turn", "k")
    sol = daedal.solve(problem, (0.0, 2.0), initial, sensitivities=names, rtol=1e-8, atol=1e-10, t_eval=[1.0, 2.0])

    def run(name, value):
        found = daedal.solve(
            problem, (0.0, 2.0), initial, params={name: value}, rtol=1e-12, atol=1e-13, t_eval=[1.0, 2.0]
        )
        return np.concatenate([found.y, found.lam])

    for name in names:
        expected = derivative(lambda value, name=name: run(name, value), problem.params[name])
        found = sol.sensitivity(name)
        assert relative_error(np.concatenate([found.y, found.lam]), expected) < 1e-6


def test_input():
    with pytest.raises(InvalidProblemError, match="not by RATTLE"):
        daedal.solve(pendulum(), (0.0, 1.0), start(), sensitivities=["m"], method="rattle")
    with pytest.raises(InvalidProblemError, match="did you mean 'L'"):
        daedal.solve(pendulum(), (0.0, 1.0), start(), sensitivities=["l"])
    sol = daedal.solve(pendulum(), (0.0, 1.0), start(), sensitivities=["m"])
    stored = pickle.loads(pickle.dumps(sol))
    assert np.array_equal(stored.sensitivity("m").lam, sol.sensitivity("m").lam)
    assert np.array_equal(np.asarray(sol.sensitivity("m")), sol.sensitivity("m").y)
