"""Mechanisms of the library on the graph: accelerations, corrections and derivatives against the kernels."""

import numpy as np
import pytest

import daedal
from daedal.symbolic import Untraceable
from daedal.symbolic.derivative import jacobian
from daedal.symbolic.graph import evaluate
from daedal.symbolic.machine import BAD_PIVOT, RAISES, compile_function
from daedal.symbolic.mechanism_dynamics import Mechanism
from library_models import default_model


def mechanisms():
    """Names of the problems of the library that are constrained mechanisms with q and v alone."""
    for name in daedal.library.names():
        problem = default_model(name).problem
        if isinstance(problem, daedal.MechanicalSystem) and problem.n_lambda and problem.n_q < 50:
            if not (problem.n_r or problem.n_w or problem.n_s or problem.force_uses_multipliers):
                yield name


def on_graph(problem):
    mass = (
        problem.mass if callable(problem.mass) else np.asarray(getattr(problem.mass, "toarray", lambda: problem.mass)())
    )
    return Mechanism(
        mass,
        problem.force,
        problem.constraint,
        n_q=problem.n_q,
        n_constraints=problem.n_constraints,
        velocity_constraint=problem.velocity_constraint,
        n_velocity_constraints=problem.n_velocity_constraints,
        params=problem.params,
    )


@pytest.mark.parametrize("name", list(mechanisms()))
def test_accelerations_and_multipliers_are_those_of_the_kernels(name):
    model = daedal.library.get(name)
    problem = model.problem
    mechanism = on_graph(problem)
    graph, n = mechanism.graph, problem.n_q
    solved = mechanism.accelerations
    full = [[row.get(k, graph.zero) for k in range(n)] for row in mechanism.jacobian]
    own = {"p": np.asarray(problem.params, dtype=float)} if graph.known else {}
    code = compile_function(
        graph,
        {"q": n, "v": n},
        {"x": solved.solutions[0], "K": full, "gamma": mechanism.bias, "rate": mechanism.rate},
        {name: values.size for name, values in own.items()},
        [(mechanism.raises, RAISES), (mechanism.bad_pivot(solved), BAD_PIVOT)],
    )
    q, v = (np.asarray(x, dtype=float) for x in model.initial[:2])
    point = problem.at(0.0, q, v)
    status, found = code(0.0, q=q, v=v, **own)
    scale = 1.0 + np.abs(point.jacobian).max()
    np.testing.assert_allclose(found["K"], point.jacobian, rtol=1e-6, atol=1e-7 * scale)  # theirs may be differences
    np.testing.assert_allclose(found["rate"], point.velocity, rtol=1e-6, atol=1e-6 * scale)
    if status == BAD_PIVOT:  # dependent constraints at this point
        assert np.linalg.matrix_rank(point.jacobian, 1e-6) < problem.n_lambda
        return
    assert status == 0
    np.testing.assert_allclose(
        found["x"][:n], point.acceleration, rtol=1e-4, atol=1e-4 * (1 + np.abs(point.acceleration).max())
    )
    residual = point.mass @ found["x"][:n] + found["K"].T @ found["x"][n:] - point.force
    assert np.abs(residual).max() <= 1e-10 * (1.0 + np.abs(point.force).max())
    assert np.abs(found["K"] @ found["x"][:n] - found["gamma"]).max() <= 1e-9 * (1.0 + np.abs(found["gamma"]).max())


def crank():
    """A crank-slider with a moving wall, a rolling condition and a position-dependent mass."""

    def mass(t, q, p):
        m = np.diag(np.array([p[0], p[1], 1.0]))
        m[0, 1] = m[1, 0] = 0.3 * np.cos(q[0] - q[1])
        return m

    def force(t, q, v, p):
        return np.array([-p[0] * np.sin(q[0]) * v[1] ** 2, v[0] * np.cos(q[1] - t), -9.81 + q[2] ** 2 * v[2]])

    return Mechanism(
        mass,
        force,
        lambda t, q, p: [np.cos(q[0]) + p[1] * np.cos(q[1]) - q[2] - 0.1 * np.sin(t)],
        n_q=3,
        n_constraints=1,
        velocity_constraint=lambda t, q, v, p: [v[0] * np.sin(q[2]) + 2.0 * v[1] - 0.3 * t],
        n_velocity_constraints=1,
        params=np.array([1.0, 2.0]),
    )


POINT = {"t": 0.4, "q": [0.3, 0.7, -0.2], "v": [1.1, -0.4, 0.6], "p": [1.0, 2.0]}


def dense(mechanism, rows, n):
    return np.array(
        [evaluate(mechanism.graph, [row.get(k, mechanism.graph.zero) for k in range(n)], POINT) for row in rows]
    )


def test_corrections_are_newton_steps_in_the_norm_of_the_mass():
    mechanism = crank()
    mass, k = dense(mechanism, mechanism.mass, 3), dense(mechanism, mechanism.jacobian, 3)
    for solved, residual, rows in (
        (mechanism.position_correction, mechanism.constraint, k[:1]),
        (mechanism.velocity_correction, mechanism.rate, k),
    ):
        n = len(rows)
        matrix = np.block([[mass, rows.T], [rows, np.zeros((n, n))]])
        right = np.concatenate([np.zeros(3), -np.array(evaluate(mechanism.graph, residual, POINT))])
        np.testing.assert_allclose(
            evaluate(mechanism.graph, solved.solutions[0], POINT),
            np.linalg.solve(matrix, right),
            rtol=1e-12,
            atol=1e-14,
        )


def test_derivatives_of_the_equations_of_motion_by_complex_steps():
    mechanism = crank()
    graph = mechanism.graph
    a, lam = ([graph.argument(name, k) for k in range(n)] for name, n in (("a", 3), ("lam", 2)))
    values = POINT | {"a": [0.5, -1.5, 2.0], "lam": [3.0, -1.0]}
    balance = mechanism.balance(a, lam)
    for name, of in (("q", mechanism.q), ("v", mechanism.v)):
        rows = jacobian(graph, balance, of)
        found = np.array([evaluate(graph, [row.get(k, graph.zero) for k in range(3)], values) for row in rows])
        for k in range(3):
            moved = values | {name: np.array(values[name]) + 1e-200j * np.eye(3)[k]}
            column = np.imag(evaluate(graph, balance, moved)) * 1e200
            np.testing.assert_allclose(found[:, k], column, rtol=1e-13, atol=1e-14)


def test_the_half_explicit_stage_has_the_constraint_at_another_point():
    mechanism = crank()
    graph = mechanism.graph
    other = [{k: graph.argument("other", 3 * i + k) for k in row} for i, row in enumerate(mechanism.jacobian)]
    solved = mechanism.solve([*mechanism.force, *mechanism.bias], other)
    values = POINT | {"other": np.linspace(1.0, 2.0, 6)}
    entries = np.where(dense(mechanism, mechanism.jacobian, 3) != 0.0, values["other"].reshape(2, 3), 0.0)
    mass, k = dense(mechanism, mechanism.mass, 3), dense(mechanism, mechanism.jacobian, 3)
    matrix = np.block([[mass, k.T], [entries, np.zeros((2, 2))]])
    right = evaluate(graph, [*mechanism.force, *mechanism.bias], values)
    np.testing.assert_allclose(evaluate(graph, solved.solutions[0], values), np.linalg.solve(matrix, right), rtol=1e-11)


NAMES = "mass force constraint constraint_jacobian constraint_t acceleration_bias velocity_constraint velocity_jacobian"


def test_callbacks_have_the_blocks_of_the_kernels():
    mechanism = crank()
    results = {}
    for name in f"{NAMES} velocity_bias accelerations".split():
        code = mechanism.callback(name)
        assert list(code.slices)[-1] == "p"
        given = {key: POINT[key] for key in code.slices if key in POINT}
        status, found = code(POINT["t"], **given)
        assert status == 0
        results[name] = found[name]
    assert results["mass"].shape == (3, 3) and results["velocity_jacobian"].shape == (1, 3)
    k = np.vstack([results["constraint_jacobian"], results["velocity_jacobian"]])
    a, lam = results["accelerations"][:3], results["accelerations"][3:]
    np.testing.assert_allclose(results["mass"] @ a + k.T @ lam, results["force"], rtol=1e-11)
    np.testing.assert_allclose(k @ a, [*results["acceleration_bias"], *results["velocity_bias"]], rtol=1e-11)


def test_one_function_that_cannot_be_traced_names_its_line():
    def force(t, q, v):
        return [float(str(q[0])), 0.0]

    with pytest.raises(Untraceable, match=r"test_symbolic_mechanism.py line \d+"):
        Mechanism(np.eye(2), force, n_q=2)
