"""Accelerations, projections and half-explicit stages as straight-line code, against matrices that are factored."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.mechanics.system_workspace import SystemWorkspace
from daedal.symbolic.tracing.problem import traced_problem
from library_models import default_model

METHODS = ("dopri5", "phem56", "hem4", "hem5", "hedop5")


def mechanisms():
    """Models of the library with straight-line code."""
    for name in daedal.library.names():
        problem = default_model(name).problem
        if isinstance(problem, daedal.MechanicalSystem) and problem.n_q < 50 and not hasattr(problem.mass, "tocsr"):
            yield name


def assemblies(problem, t, q):
    """The same system with straight-line code, and with matrices."""
    traced = traced_problem(problem).problem
    quick = SystemWorkspace(traced, t, q)
    slow = SystemWorkspace(traced, t, q)
    for name in ("accelerations", "position_correction", "velocity_correction", "stage"):
        slow.record[name] = np.zeros_like(slow.record[name])
    return quick, slow


def pendulum(force=lambda t, q, v: [0.0, -9.81], constraint=lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], **options):
    return daedal.MechanicalSystem(1.0, force, constraint, n_q=2, n_constraints=1, **options)


@pytest.mark.parametrize("name", list(mechanisms()))
def test_accelerations_and_projections_are_those_by_factored_matrices(name):
    model = daedal.library.get(name)
    problem, (q, v, *rest) = model.problem, model.initial
    r = np.asarray(rest[0], dtype=float) if problem.n_r else np.zeros(0)
    quick, slow = assemblies(problem, model.t_span[0], np.asarray(q, dtype=float))
    assert not slow.has_straight_line
    assert quick.has_straight_line
    generator = np.random.default_rng(1)
    times, start = np.full(4, float(model.t_span[0])), np.concatenate([q, v, r]).astype(float)
    states = start * (1.0 + 1e-3 * generator.standard_normal((4, problem.n)))
    least = 1e-15 * np.max(np.abs(states)) ** 2  # multipliers of norms of Euler parameters are zero
    for found, expected in zip(quick.accelerate(times, states), slow.accelerate(times, states), strict=True):
        largest = np.max(np.abs(expected), initial=1e-300)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=max(1e-9 * largest, least))
    states = start * (1.0 + 1e-6 * generator.standard_normal((4, problem.n)))  # directions differ in second order
    one, other = states.copy(), states.copy()
    statuses = quick.project(times, one), slow.project(times, other)
    np.testing.assert_array_equal(*statuses)
    done = statuses[0] == 0
    np.testing.assert_allclose(one[done], other[done], rtol=1e-10, atol=1e-10 * np.abs(states).max())
    drift = quick.drift(times[done], one[done])
    assert max(drift.values(), default=0.0) <= 1e-11 * max(1.0, np.abs(states).max() ** 2)


@pytest.mark.parametrize("method", METHODS)
def test_runs_are_the_same_as_without(method, monkeypatch):
    model = daedal.library.get("seven_body")
    run = model.problem, (0.0, 0.01), model.initial
    options = {"rtol": 1e-7, "atol": 1e-7, "method": method}
    quick = daedal.solve(*run, **options)
    monkeypatch.setattr(SystemWorkspace, "_straight_line", lambda self, bridge: {})
    slow = daedal.prepare(run[0], **options).solve(*run[1:])
    assert quick.stats.steps == pytest.approx(slow.stats.steps, abs=1)
    np.testing.assert_allclose(quick.y[:, -1], slow.y[:, -1], rtol=1e-6, atol=1e-6)
    assert quick.drift["position"] < 1e-13 and quick.drift["velocity"] < 1e-10


def test_the_automatic_choice_is_an_explicit_method_with_projection():
    sol = daedal.solve(pendulum(), (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]))
    assert (sol.method, sol.formulation) == ("DOPRI5", "CoordinateProjection")
    called = daedal.solve(pendulum(), (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), compile="never")
    assert (called.method, called.formulation) == ("PHEM56", "VelocityConstraints")
    np.testing.assert_allclose(sol.q[:, -1], called.q[:, -1], atol=1e-5)


def test_bad_pivots_leave_to_the_matrix():
    """A mass that is zero where the constraint does not help: M is singular, but not on the kernel of G."""
    system = daedal.MechanicalSystem(
        lambda t, q: np.diag([q[0] ** 2, 1.0]),
        lambda t, q, v: [q[1], -q[0]],
        lambda t, q: [q[0] + q[1] - 1.0],
        n_q=2,
        n_constraints=1,
    )
    quick, slow = assemblies(system, 0.0, np.array([0.0, 1.0]))
    state = np.array([[0.0, 1.0, 0.5, -0.5]])
    assert quick.has_straight_line
    found, expected = quick.accelerate(0.0, state), slow.accelerate(0.0, state)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-13)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-13)


def test_redundant_constraints_are_left_to_matrices():
    system = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [0.0, -9.81],
        lambda t, q: [q @ q - 1.0, 2.0 * (q @ q) - 2.0],
        n_q=2,
        n_constraints=2,
    )
    sol = daedal.solve(system, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), rtol=1e-8, atol=1e-8)
    assert sol.method == "PHEM56"
    single = daedal.solve(pendulum(), (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(sol.q[:, -1], single.q[:, -1], atol=1e-6)


@pytest.mark.parametrize("changed", ["mass", "constraint_jacobian"])
def test_code_is_not_used_for_a_system_with_another_function(changed):
    """Compiled for good, then one function replaced: what was made of the old one must not answer."""
    system = pendulum().compiled(backend="trace")
    assert SystemWorkspace(system, 0.0, np.array([1.0, 0.0])).has_straight_line
    other = {"mass": lambda t, q: np.diag([2.0, 3.0]), "constraint_jacobian": lambda t, q: [[2.0 * q[0], 2.0 * q[1]]]}
    replaced = system.replaced(**{changed: other[changed]})
    assert not SystemWorkspace(replaced, 0.0, np.array([1.0, 0.0])).has_straight_line


def test_new_parameters_reach_the_code():
    system = daedal.MechanicalSystem(
        lambda t, q, p: np.diag([p[0], p[0]]),
        lambda t, q, v, p: [0.0, -p[0] * p[1]],
        lambda t, q, p: [q @ q - p[2] ** 2],
        n_q=2,
        n_constraints=1,
        params=np.array([1.0, 9.81, 1.0]),
    )
    solver = daedal.prepare(system, rtol=1e-8, atol=1e-8)
    for mass, g, length in ((1.0, 9.81, 1.0), (2.0, 1.6, 0.5)):
        params = np.array([mass, g, length])
        sol = solver.solve((0.0, 1.0), ([length, 0.0], [0.0, 0.0]), params=params)
        never = daedal.solve(
            system.with_params(params), (0.0, 1.0), ([length, 0.0], [0.0, 0.0]), rtol=1e-8, atol=1e-8, compile="never"
        )
        np.testing.assert_allclose(sol.q[:, -1], never.q[:, -1], atol=2e-6)
        np.testing.assert_allclose(sol.lam[:, -1], never.lam[:, -1], rtol=1e-4)


def test_exceptions_and_given_derivatives_are_seen():
    class Boom(Exception):
        pass

    def jacobian(t, q):
        if t > 0.5:
            raise Boom
        return [[2.0 * q[0], 2.0 * q[1]]]

    with pytest.raises(Boom):
        daedal.solve(pendulum(constraint_jacobian=jacobian), (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]))


def test_a_system_with_code_is_stored_without_it():
    system = daedal.library.get("planar_pendulum").problem.compiled(backend="trace")
    again = pickle.loads(pickle.dumps(system))
    q, v = daedal.library.get("planar_pendulum").initial[:2]
    np.testing.assert_allclose(again.at(0.0, q, v).acceleration, system.at(0.0, q, v).acceleration, rtol=1e-12)


@settings(deadline=None, max_examples=20)
@given(
    n=st.integers(2, 6), n_c=st.integers(1, 3), n_v=st.integers(0, 1), seed=st.integers(0, 10**6), turns=st.booleans()
)
def test_random_systems(n, n_c, n_v, seed, turns):
    """Quadratic constraints that move, masses that depend on q, nonholonomic rows: code and matrices agree."""
    if n_c + n_v >= n:
        return
    generator = np.random.default_rng(seed)
    shape, slope = generator.standard_normal((n_c, n, n)), generator.standard_normal((n_c, n))
    rate, row = generator.standard_normal(n_c) * turns, generator.standard_normal((n_v, n))

    def constraint(t, q):
        return [q @ shape[i] @ q + slope[i] @ q + rate[i] * np.sin(t) for i in range(n_c)]

    system = daedal.MechanicalSystem(
        lambda t, q: np.diag(2.0 + np.cos(q)) + 0.1 * np.ones((n, n)),
        lambda t, q, v: -q * v - np.sin(q),
        constraint,
        n_q=n,
        n_constraints=n_c,
        velocity_constraint=(lambda t, q, v: row @ v + q[0] * v[1]) if n_v else None,
        n_velocity_constraints=n_v,
    )
    state = generator.standard_normal((1, 2 * n))
    quick, slow = assemblies(system, 0.3, state[0, :n])
    a, lam, *_ = quick.accelerate(0.3, state)
    expected_a, expected_lam, *_ = slow.accelerate(0.3, state)
    scale = max(1.0, np.abs(expected_lam).max())
    np.testing.assert_allclose(a, expected_a, rtol=1e-7, atol=1e-8 * scale)
    np.testing.assert_allclose(lam, expected_lam, rtol=1e-7, atol=1e-8 * scale)


@pytest.mark.parametrize("method", ["auto", "dopri5", "phem56", "dassl"])
def test_a_force_that_raises_for_some_velocities(method):
    """Corrections of positions know nothing of velocities, and of what is raised because of them."""

    def force(t, q, v):
        if v[0] ** 2 + v[1] ** 2 > 30.0:
            raise ValueError("too fast")
        return [0.0, -9.81]

    system = daedal.MechanicalSystem(1.0, force, lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1)
    slow = daedal.solve(system, (0.0, 1.0), ([0.0, -1.0], [4.0, 0.0]), method=method)
    assert slow.success
    with pytest.raises(ValueError, match="too fast"):
        daedal.solve(system, (0.0, 2.0), ([0.0, 1.0], [4.0, 0.0]), method=method)
