"""Invariants: every step stays on the level set of the start, for all classes of first-order problems."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal

INERTIA = np.array([1.0, 2.0, 3.0])


def tumbling(t, y, p):
    """Euler's equations for the angular momentum of a rigid body."""
    a, b, c = (p[1] - p[2]) / (p[1] * p[2]), (p[2] - p[0]) / (p[2] * p[0]), (p[0] - p[1]) / (p[0] * p[1])
    return [a * y[1] * y[2], b * y[2] * y[0], c * y[0] * y[1]]


def momentum_and_energy(t, y, p):
    return [y[0] ** 2 + y[1] ** 2 + y[2] ** 2, y[0] ** 2 / p[0] + y[1] ** 2 / p[1] + y[2] ** 2 / p[2]]


BODY = daedal.ODE(tumbling, 3, params=INERTIA, invariants=momentum_and_energy)
START = [1.0, 0.1, 1.0]


def drift(sol, c=momentum_and_energy, p=INERTIA):
    values = np.array([c(t, y, p) for t, y in zip(sol.t, sol.y.T, strict=True)])
    return np.max(np.abs(values - c(0.0, np.array(START), p)))


@pytest.mark.parametrize("method", ["auto", "dopri5", "dassl", "radau", "rosenbrock", "extrapolation"])
def test_methods_keep_invariants_to_round_off(method):
    sol = daedal.solve(BODY, (0.0, 100.0), START, method=method, rtol=1e-4)
    assert drift(sol) < 1e-13 and sol.drift["invariants"] < 1e-13
    free = daedal.solve(daedal.ODE(tumbling, 3, params=INERTIA), (0.0, 100.0), START, method=method, rtol=1e-4)
    assert drift(free) > 1e-7 and free.drift is None


def test_errors_of_a_long_orbit_grow_slower():
    def orbit(t, y):
        r3 = (y[0] ** 2 + y[1] ** 2) ** 1.5
        return [y[2], y[3], -y[0] / r3, -y[1] / r3]

    def conserved(t, y):
        return [0.5 * (y[2] ** 2 + y[3] ** 2) - 1.0 / np.hypot(y[0], y[1]), y[0] * y[3] - y[1] * y[2]]

    start, errors = np.array([0.7, 0.0, 0.0, np.sqrt(1.3 / 0.7)]), {}
    for invariants in (None, conserved):
        problem = daedal.ODE(orbit, 4, invariants=invariants)
        sol = daedal.solve(problem, (0.0, 200.0 * np.pi), start, rtol=1e-6, atol=1e-8, t_eval=[628.0, 200.0 * np.pi])
        errors[invariants] = np.max(np.abs(sol.y[:, -1] - start))
    assert errors[conserved] < 1e-2 * errors[None]


def test_order_is_that_of_the_method():
    exact = daedal.solve(BODY, (0.0, 2.0), START, rtol=1e-13, atol=1e-14, method="dop853").y[:, -1]
    errors = [
        np.max(np.abs(daedal.solve(BODY, (0.0, 2.0), START, method="dopri5", fixed_step=h).y[:, -1] - exact))
        for h in (0.2, 0.1)
    ]
    assert 4.5 < np.log2(errors[0] / errors[1]) < 6.5


@pytest.mark.parametrize("options", [{"compile": "never"}, {"t_eval": np.linspace(0.0, 20.0, 7)}, {"fixed_step": 0.1}])
def test_options(options):
    assert drift(daedal.solve(BODY, (0.0, 20.0), START, method="dopri5", **options)) < 1e-13


def test_other_parameters_change_the_invariants():
    other = np.array([1.0, 2.0, 5.0])
    assert drift(daedal.solve(BODY, (0.0, 20.0), START, params=other), p=other) < 1e-13
    solver = daedal.prepare(BODY, rtol=1e-4)
    assert drift(solver.solve((0.0, 20.0), START, params=other), p=other) < 1e-13
    assert drift(solver.solve((0.0, -20.0), START)) < 1e-13


CIRCLE = {
    "implicit": daedal.ImplicitDAE(
        lambda t, y, yp: [yp[0] - y[1], yp[1] + y[2], y[2] - y[0]],
        3,
        invariants=lambda t, y: y[0] ** 2 + y[1] ** 2,
    ),
    "semi-explicit": daedal.SemiExplicitDAE(
        lambda t, y, z: [y[1], -z[0]],
        lambda t, y, z: [z[0] - y[0]],
        2,
        1,
        invariants=lambda t, y, z: y[0] * z[0] + y[1] ** 2,
    ),
    "mass matrix": daedal.MassMatrixDAE(
        lambda t, y: [y[1], -y[2], y[2] - y[0]],
        3,
        mass=np.diag([1.0, 1.0, 0.0]),
        invariants=lambda t, y: y[0] ** 2 + y[1] ** 2,
    ),
}


@pytest.mark.parametrize("kind", CIRCLE)
@pytest.mark.parametrize("method", ["auto", "dassl"])
def test_algebraic_equations_are_kept_too(kind, method):
    initial = ([1.0, 0.0], [1.0]) if kind == "semi-explicit" else ([1.0, 0.0, 1.0], None)
    sol = daedal.solve(CIRCLE[kind], (0.0, 100.0), initial, method=method, rtol=1e-4)
    assert np.max(np.abs(sol.y[0] ** 2 + sol.y[1] ** 2 - 1.0)) < 1e-13
    assert np.max(np.abs(sol.y[2] - sol.y[0])) < 1e-13


@settings(max_examples=15, deadline=None)
@given(st.floats(-6.0, 6.0), st.floats(-6.0, 6.0), st.permutations(range(3)))
def test_scale_and_order_of_unknowns_do_not_matter(unit, time, order):
    s, w, order = 10.0**unit, 10.0**time, list(order)
    back = np.argsort(order)

    def scaled(t, y):
        u = [y[i] / s for i in back]
        return np.array([s * w * x for x in tumbling(t, u, INERTIA)])[order]

    def kept(t, y):
        return momentum_and_energy(t, [y[i] / s for i in back], INERTIA)

    problem = daedal.ODE(scaled, 3, invariants=kept)
    sol = daedal.solve(problem, (0.0, 20.0 / w), s * np.array(START)[order], rtol=1e-5, atol=1e-7 * s)
    assert drift(daedal.solve(BODY, (0.0, 20.0), START, rtol=1e-5)) < 1e-13
    values = np.array([kept(t, y) for t, y in zip(sol.t, sol.y.T, strict=True)])
    assert np.max(np.abs(values - values[0])) < 1e-12


def test_dependent_invariants_time_inputs_and_switches():
    def kinked(t, y):
        return [y[1], -(y[0] if y[0] > 0.0 else 4.0 * y[0])]

    def energy(t, y):
        return y[1] ** 2 + (y[0] ** 2 if y[0] > 0.0 else 4.0 * y[0] ** 2)

    cases = [
        daedal.ODE(lambda t, y: [y[1], -y[0]], 2, invariants=lambda t, y: [y @ y, 2.0 * (y @ y)]),
        daedal.ODE(lambda t, y: [np.cos(t), 0.0], 2, invariants=lambda t, y: y[0] - np.sin(t)),
        daedal.ODE(lambda t, y, w: [w * y[1], -w * y[0]], 2, inputs={"w": 2.0}, invariants=lambda t, y: y @ y),
        daedal.ODE(kinked, 2, invariants=energy),
    ]
    for problem in cases:
        sol = daedal.solve(problem, (0.0, 60.0), [1.0, 0.0], rtol=1e-4)
        assert sol.success and sol.drift["invariants"] < 1e-13


def test_simulations_and_ensembles():
    sim = daedal.Simulation(BODY, START, rtol=1e-4)
    for _ in range(50):
        sim.step(0.7)
        assert np.allclose(momentum_and_energy(0.0, sim.y, INERTIA), momentum_and_energy(0.0, START, INERTIA), 1e-14)
    members = daedal.solve_many(BODY, (0.0, 20.0), [START, [1.0, 0.2, 1.0]], t_eval=[0.0, 20.0], rtol=1e-4)
    for y in members.y:
        first, last = (np.array(momentum_and_energy(0.0, x, INERTIA)) for x in y.T)
        assert np.max(np.abs(last - first)) < 1e-13


def test_modes_and_resets():
    """The energy after a bounce is that of the reset."""
    fall = daedal.ODE(lambda t, y: [y[1], -9.81], 2, names="x v", invariants=lambda t, y: 0.5 * y[1] ** 2 + 9.81 * y[0])
    bounce = daedal.hybrid.Transition(
        "fall", "fall", lambda t, y: y[0], direction=-1, reset=lambda t, y: [0.0, -0.9 * y[1]]
    )
    ball = daedal.hybrid.HybridProblem({"fall": fall}, [bounce])
    sol = daedal.solve(ball, (0.0, 2.0), ("fall", [1.0, 0.0]), rtol=1e-3)
    energies = 0.5 * sol["v"] ** 2 + 9.81 * sol["x"]
    levels = 9.81 * 0.81 ** np.arange(4)
    assert len(sol.events) >= 2 and np.max(np.min(np.abs(energies[:, None] - levels), axis=1)) < 1e-8


def test_threads_and_order_do_not_matter():
    from concurrent.futures import ThreadPoolExecutor

    def end(shift):
        return daedal.solve(BODY, (0.0, 20.0), START, params=INERTIA + shift, rtol=1e-5).y.tobytes()

    shifts = [0.0, 1.0, 0.5, 1.0, 0.0, 0.5] * 20
    alone = {shift: end(shift) for shift in (0.5, 0.0, 1.0)}
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(end, shifts)) == [alone[shift] for shift in shifts]


def test_a_changed_global_changes_the_invariants():
    weight = [1.0]

    def energy(t, y):
        return y[1] ** 2 + weight[0] * y[0] ** 2

    problem = daedal.ODE(lambda t, y: [y[1], -weight[0] * y[0]], 2, invariants=energy)
    for value in (1.0, 4.0, 1.0):
        weight[0] = value
        sol = daedal.solve(problem, (0.0, 20.0), [1.0, 0.5], rtol=1e-4)
        assert np.max(np.abs(sol.y[1] ** 2 + value * sol.y[0] ** 2 - 0.25 - value)) < 1e-13


def test_a_function_that_changes_is_refused():
    damped = daedal.ODE(lambda t, y: [y[1], -y[0] - 0.1 * y[1]], 2, invariants=lambda t, y: [1.0, y @ y])
    with pytest.raises(daedal.InvalidProblemError, match=r"number 1 is not constant .* t = 0 is -0\.2"):
        daedal.solve(damped, (0.0, 30.0), [1.0, 1.0])
    later = daedal.ODE(lambda t, y: [y[1], -y[0] - (0.1 * y[1] if t > 5.0 else 0.0)], 2, invariants=lambda t, y: y @ y)
    with pytest.raises(daedal.IntegrationError, match="However, invariants: number 0 is not constant") as caught:
        daedal.solve(later, (0.0, 30.0), [1.0, 1.0])
    assert caught.value.solution.t[-1] == 30.0


def test_mistakes():
    def oscillator(invariants):
        return daedal.ODE(lambda t, y: [y[1], -y[0]], 2, invariants=invariants)

    def raising(t, y):
        if t > 3.0:
            raise RuntimeError("beyond 3")
        return y @ y

    for wrong, message in (
        (lambda t, y: None, "invariants returned None"),
        (lambda t, y: "x", "invariants returned"),
        (lambda t, y: np.log(-1.0 + 0.0 * y[0]), "number 0 is"),
    ):
        with np.errstate(invalid="ignore"), pytest.raises(daedal.InvalidProblemError, match=message):
            daedal.solve(oscillator(wrong), (0.0, 10.0), [1.0, 0.0])
    with pytest.raises(daedal.InvalidProblemError, match="invariants must be"):
        oscillator(3.0)
    with pytest.raises(daedal.InvalidProblemError, match=r"called as invariants\(t, y\)"):
        oscillator(lambda t: 0.0)
    with pytest.raises(RuntimeError, match="beyond 3"):
        daedal.solve(oscillator(raising), (0.0, 10.0), [1.0, 0.0])


def test_problems_of_higher_index_and_exports_are_refused(tmp_path):
    def pendulum(t, y, yp):
        return [yp[0] - y[2], yp[1] - y[3], yp[2] + y[4] * y[0], yp[3] + y[4] * y[1] + 1.0, y[0] ** 2 + y[1] ** 2 - 1.0]

    problem = daedal.ImplicitDAE(pendulum, 5, invariants=lambda t, y: 0.5 * (y[2] ** 2 + y[3] ** 2) + y[1])
    with pytest.raises(daedal.InvalidProblemError, match="index 0 and 1"):
        daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0, 0.0, 0.0, 0.0], None))
    with pytest.raises(daedal.InvalidProblemError, match="has invariants"):
        daedal.export_fmu(BODY, tmp_path / "body.fmu", initial=START)


def test_sensitivities_say_that_invariants_are_not_imposed():
    sol = daedal.solve(BODY, (0.0, 1.0), START, sensitivities=["p[0]"])
    assert "Invariants are not imposed" in sol.message and sol.drift is None
