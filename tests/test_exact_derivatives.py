"""Exact derivatives for Newton's method: against extended precision, against differences, and in runs."""

import mpmath
import numpy as np
import pytest

import daedal
from daedal import library
from daedal.mechanics.formulations import (
    GGL,
    Baumgarte,
    FuehrerLeimkuhler,
    Index1,
    Index2,
    Index3,
    MinimalExtension,
    ProjectedInvariants,
)
from daedal.mechanics.system_workspace import SystemWorkspace
from daedal.symbolic.graph import evaluate
from daedal.symbolic.tracing.parameters import NAME
from daedal.symbolic.tracing.problem import traced_problem
from library_models import default_model
from symbolic_tools import EXTENDED

STEP = mpmath.mpf(10) ** -14  # of differences with 60 digits


def everything():
    """A made-up system with all that a mechanism may have, at a consistent start."""

    def mass(t, q, p):
        return np.array(
            [[2.0 + np.cos(q[1]), 0.1 * q[0], 0.0], [0.1 * q[0], p[0], 0.2], [0.0, 0.2, 1.5 + 0.1 * q[2] ** 2]]
        )

    def force(t, q, v, r, w, lam, p):
        friction = -0.1 * v[1] * np.sqrt(1.0 + lam[0] ** 2)
        return np.array(
            [-np.sin(q[0]) * v[2] + w[0], p[1] * q[1] * v[0] + friction, r[0] - 9.81 + 0.02 * lam[1] * q[2]]
        )

    system = daedal.MechanicalSystem(
        mass,
        force,
        lambda t, q, p: [q[0] ** 2 + q[1] * q[2] - 1.0 - 0.1 * np.sin(t)],
        n_q=3,
        n_constraints=1,
        velocity_constraint=lambda t, q, v, p: [v[0] * np.sin(q[2]) + v[2] - 0.3 * np.cos(t) * q[1]],
        n_velocity_constraints=1,
        state_rate=lambda t, q, v, r, w, lam, p: [-r[0] * q[1] + np.tanh(v[0]) + 0.1 * w[0] + 0.01 * lam[0]],
        n_r=1,
        algebraic=lambda t, q, v, r, w, lam, p: [w[0] ** 3 + w[0] - r[0] * q[0] + 0.1 * v[1] + 0.05 * lam[1]],
        n_w=1,
        force_uses_multipliers=True,
        params=np.array([1.7, -0.4]),
    )
    return system, ([0.9, 0.5, 0.38], [0.4, -0.3, 0.2], [0.7], [0.3])


def plain():
    """The same without r, w and forces that depend on multipliers."""
    system, (q, v, _, _) = everything()
    simple = daedal.MechanicalSystem(
        lambda t, q: system.mass(t, q, [1.7, -0.4]),
        lambda t, q, v: [-np.sin(q[0]) * v[2], -0.4 * q[1] * v[0] - 0.1 * v[1] ** 3, np.cos(t) - 9.81 * q[2]],
        lambda t, q: system.constraint(t, q, None),
        n_q=3,
        n_constraints=1,
        velocity_constraint=lambda t, q, v: system.velocity_constraint(t, q, v, None),
        n_velocity_constraints=1,
    )
    return simple, (q, v)


def with_states():
    """The same with further states r."""
    system, (q, v) = plain()
    return (
        system.replaced(
            force=lambda t, q, v, r: [-np.sin(q[0]) * v[2] + r[0], -0.4 * q[1] * v[0] * r[0], np.cos(t) - 9.81 * q[2]],
            state_rate=lambda t, q, v, r: [-r[0] * q[1] + np.tanh(v[0])],
            n_r=1,
        ),
        (q, v, [0.7]),
    )


# --- against extended precision ---------------------------------------------------------------------------------------


LARGE = {"bicycle"}  # its second derivatives are more than is put into one function


def mechanisms():
    for name in library.names():
        problem = default_model(name).problem
        if isinstance(problem, daedal.MechanicalSystem) and problem.n_q <= 20 and not problem.n_s:
            if not hasattr(problem.mass, "tocsr") and name not in LARGE:
                yield name


class Reference:
    """Rows of the linearisation as functions with 60 digits, made of the traces of M, f, g alone."""

    def __init__(self, traced, problem):
        self.traces, self.problem = traced.problem.linearisation._traces, problem
        self.graph = next(iter(self.traces.values())).graph
        self.numbers = {} if traced.layout is None else {NAME: traced.layout.numbers(problem.params)}

    def of(self, name, t, **given):
        if name not in self.traces:
            return []
        values = {key: list(map(mpmath.mpf, x)) for key, x in (given | self.numbers).items()}
        return evaluate(self.graph, self.traces[name].nodes, {"t": mpmath.mpf(t), **values}, EXTENDED)

    def rows(self, t, q, v, r, w, lam, a):
        n, every = len(q), {"q": q, "v": v, "r": r, "w": w, "lam": lam}
        mass = self.of("mass", t, q=q) or [mpmath.mpf(float(x)) for x in np.ravel(self.problem.mass)]
        balance = [mpmath.fdot(mass[i * n : (i + 1) * n], a) for i in range(n)]
        balance = [x - f for x, f in zip(balance, self.of("force", t, **every))]
        n_g = self.problem.n_constraints
        for i in range(n):
            ahead, behind = list(q), list(q)
            ahead[i], behind[i] = q[i] + STEP, q[i] - STEP
            g = self.central(lambda x: self.of("constraint", t, q=x), ahead, behind)
            ahead, behind = list(v), list(v)
            ahead[i], behind[i] = v[i] + STEP, v[i] - STEP
            c = self.central(lambda x: self.of("velocity_constraint", t, q=q, v=x), ahead, behind)
            balance[i] += mpmath.fdot(g, lam[:n_g]) + mpmath.fdot(c, lam[n_g:])
        moved = [(t + s, [x + s * y + s * s * z / 2 for x, y, z in zip(q, v, a)]) for s in (-STEP, 0, STEP)]
        g = [self.of("constraint", s, q=x) for s, x in moved]
        speeds = [[x + s * y for x, y in zip(v, a)] for s in (-STEP, 0, STEP)]
        c = [self.of("velocity_constraint", s, q=x, v=y) for (s, x), y in zip(moved, speeds)]
        velocity = [(x - y) / (2 * STEP) for x, y in zip(g[2], g[0])] + c[1]
        acceleration = [(x - 2 * y + z) / STEP**2 for x, y, z in zip(*g)]
        acceleration += [(x - y) / (2 * STEP) for x, y in zip(c[2], c[0])]
        rates = [-x for x in self.of("state_rate", t, **every)]
        return [*balance, *rates, *self.of("algebraic", t, **every), *velocity, *acceleration]

    @staticmethod
    def central(function, ahead, behind):
        return [(x - y) / (2 * STEP) for x, y in zip(function(ahead), function(behind))]

    def along(self, t, point, direction):
        """The derivative of the rows along a direction of q, v, r, w (and lam, where forces depend on it)."""
        sides = []
        for s in (STEP, -STEP):
            moved = {k: [x + s * d for x, d in zip(values, direction[k])] for k, values in point.items()}
            sides.append(self.rows(t, **moved))
        return [(x - y) / (2 * STEP) for x, y in zip(*sides)]


@pytest.mark.parametrize("name", [*mechanisms(), "everything"])
def test_the_linearisation_of_mechanisms_in_extended_precision(name):
    if name == "everything":
        problem, initial = everything()
    else:
        model = library.get(name)
        problem, initial = model.problem, model.initial
    traced = traced_problem(problem)
    function = traced.problem.linearisation.function(2)
    assert function is not None, traced.words
    generator = np.random.default_rng(3)
    sizes = {"q": problem.n_q, "v": problem.n_q, "r": problem.n_r, "w": problem.n_w, "lam": problem.n_lambda}
    point = {key: generator.uniform(0.5, 1.5, n) for key, n in (sizes | {"a": problem.n_q}).items()}
    point["q"] = np.array(initial[0], dtype=float) + 1e-2 * point["q"]
    last = () if problem.params is None else (problem.params,)
    status, found = function.evaluate(0.7, *[x for x in point.values() if x.size], *last)
    assert status == 0
    direction = {key: generator.uniform(-1.0, 1.0, n) for key, n in sizes.items()} | {"a": np.zeros(problem.n_q)}
    columns = np.concatenate([direction[key] for key in ("q", "v", "r", "w")])
    if problem.force_uses_multipliers:
        columns = np.concatenate([columns, direction["lam"]])
    else:
        direction["lam"] *= 0.0
    with mpmath.workdps(60):
        exact = Reference(traced, problem)
        given = {key: list(map(mpmath.mpf, x)) for key, x in point.items()}
        expected = exact.along(mpmath.mpf(0.7), given, {key: list(map(mpmath.mpf, x)) for key, x in direction.items()})
        if problem.force_uses_multipliers:  # without K^T, which kernels know
            still = {key: [mpmath.mpf(0)] * len(x) for key, x in direction.items()}
            still["lam"] = list(map(mpmath.mpf, direction["lam"]))
            frozen = Reference(traced, problem)
            frozen.traces = {
                k: x for k, x in exact.traces.items() if k in ("constraint", "velocity_constraint", "mass")
            }
            frozen.of = lambda key, t, **x: [0] * problem.n_q if key == "force" else Reference.of(frozen, key, t, **x)
            expected[: problem.n_q] = [
                x - y for x, y in zip(expected[: problem.n_q], frozen.along(mpmath.mpf(0.7), given, still))
            ]
        expected = np.array([float(x) for x in expected])
    scale = np.abs(found) @ np.abs(columns)
    scale = scale + np.abs(expected) + 1e-12 * scale.max()  # terms of other rows' size may cancel in an entry
    np.testing.assert_array_less(np.abs(found @ columns - expected), 1e-13 * scale + 1e-300)


# --- matrices of formulations -----------------------------------------------------------------------------------------


FORMULATIONS = [
    GGL(),
    GGL(projection="B"),
    GGL(multipliers="derivative"),
    Index3(),
    Index2(),
    Index2(gamma=3.0),
    Index1(),
    Baumgarte(2.0),
    ProjectedInvariants(),
    ProjectedInvariants(k=1),
    FuehrerLeimkuhler(),
    MinimalExtension(),
]


def moved_start(assembly, initial):
    state = np.concatenate([np.asarray(x, dtype=float) for x in initial[:3]])
    return assembly.start(0.2, state)


def quotients(function, x, column_step=1e-6):
    """Central differences, column by column."""
    columns = []
    for i in range(x.size):
        step = column_step * max(1.0, abs(x[i]))
        ahead, behind = x.copy(), x.copy()
        ahead[i] += step
        behind[i] -= step
        columns.append((function(ahead) - function(behind)) / (2.0 * step))
    return np.array(columns).T


def assembled(make):
    system, initial = make()
    return SystemWorkspace(traced_problem(system).problem, 0.2, np.array(initial[0])), initial


@pytest.mark.parametrize("make", [everything, with_states, plain])
@pytest.mark.parametrize("formulation", FORMULATIONS, ids=str)
def test_matrices_of_first_order_forms_are_those_of_differences(formulation, make):
    assembly, initial = assembled(make)
    reduction = formulation.reduce(assembly, moved_start(assembly, initial))
    problem, (y, yp) = reduction.problem, reduction.unknowns(reduction.start)
    if problem.residual.linear is not None:
        check_blocks(reduction, problem, y, yp)
        return
    if problem.jacobian is None:  # lam and w are found inside of the residual
        assert make is everything and formulation.shape(assembly).top == 1
        return
    cj = 3.0
    found = problem.jacobian(0.2, y, yp, cj)
    expected = quotients(lambda x: problem.residual(0.2, x, yp + cj * (x - y)), y)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


def check_blocks(reduction, problem, y, yp):
    """The small blocks of Newton's method, with exact derivatives and without."""
    import ctypes

    from daedal.mechanics.formulations.newton_matrices import condensed_prepare
    from daedal.methods.workspace import Workspace

    integer, number = ctypes.c_int64, ctypes.c_double
    prepare = ctypes.CFUNCTYPE(integer, integer, integer, number, integer, integer, integer, number, number, integer)(
        condensed_prepare.address
    )
    workspace, n = Workspace(problem), y.size
    weights, blocks = np.full(n, 1e3), []
    assert reduction.record["linearisation"] != 0
    for _ in range(2):
        residual = np.zeros(n)
        vectors = [x.ctypes.data for x in (y, yp, residual)]
        status = prepare(*workspace._addresses, 0.2, *vectors, 3.0, 1e-3, weights.ctypes.data)
        assert status == 0
        blocks.append([reduction.record.array(name).copy() for name in ("force_q", "force_v", "rows_q", "rows_v")])
        reduction.record["linearisation"] = 0
    assert workspace.statistics().jacobian_residual_evaluations == 2 * reduction.assembly.nx
    for found, expected in zip(*blocks):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * max(np.abs(expected).max(), 1.0))


@pytest.mark.parametrize("make", [everything, with_states, plain])
@pytest.mark.parametrize(
    "formulation", [Index3(), Index2(), Index1(), Baumgarte(2.0), GGL(), MinimalExtension()], ids=str
)
def test_matrices_of_second_order_forms_are_those_of_differences(formulation, make):
    from daedal.mechanics.formulations.second_order_forms import second_order_form

    if isinstance(formulation, MinimalExtension):
        holonomic = make

        def make():
            system, initial = holonomic()
            return system.replaced(
                velocity_constraint=None, n_velocity_constraints=0, **without_second(system)
            ), initial

    assembly, initial = assembled(make)
    reduction = second_order_form(formulation, assembly, moved_start(assembly, initial), project=True)
    form, (y, yp) = reduction.problem, reduction.unknowns(reduction.start)
    problem, n = form.problem, form.problem.n
    x, xp = form.split(y)
    xpp = form.split(yp)[1]
    xp[problem.order == 1] = form.split(yp)[0][problem.order == 1]
    c1, c2 = 2.0, 5.0
    found = problem.jacobian(0.2, x, xp, xpp, c1, c2)
    expected = quotients(lambda z: problem.residual(0.2, z, xp + c1 * (z - x), xpp + c2 * (z - x)), x)
    assert found.shape == (n, n)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def without_second(system):
    """Forces that depend on the first multiplier alone."""
    if not system.force_uses_multipliers:
        return {}
    force, rate, algebraic = system.force, system.state_rate, system.algebraic

    def padded(function):
        return lambda t, q, v, r, w, lam, p: function(t, q, v, r, w, np.array([lam[0], 0.5]), p)

    return {"force": padded(force), "state_rate": padded(rate), "algebraic": padded(algebraic)}


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"method": "dassl", "formulation": "ggl"},
        {"method": "dassl", "formulation": "index1"},
        {"method": "dassl", "formulation": "minimal_extension"},
        {"method": "dassl", "formulation": "fuehrer_leimkuhler"},
        {"method": "dassl", "formulation": "projected_invariants"},
        {"method": "modified_bdf"},
        {"method": "modified_bdf", "formulation": "ggl"},
        {"method": "collocation"},
    ],
    ids=lambda options: " ".join(options.values()),
)
def test_runs_with_exact_derivatives_agree_with_those_by_differences(options):
    model = library.get("crank_slider")
    span = (model.t_span[0], model.t_span[0] + 0.2 * (model.t_span[1] - model.t_span[0]))
    exact, differences = (
        daedal.solve(model.problem, span, model.initial, rtol=1e-6, atol=1e-8, compile=choice, **options)
        for choice in ("auto", "never")
    )
    size = np.abs(differences.y).max(axis=1)
    np.testing.assert_array_less(np.abs(exact.y[:, -1] - differences.y[:, -1]), 1e-4 * (1.0 + size))
    assert exact.stats.jacobian_residual_evaluations == 0 < differences.stats.jacobian_residual_evaluations
    assert exact.functions["linearisation"].startswith("exact derivative")


def test_other_parameters_reach_the_linearisation():
    def system(k):
        return daedal.MechanicalSystem(
            1.0,
            lambda t, q, v, p: [-p[0] * q[0], -9.81],
            lambda t, q, p: [q[0] ** 2 + q[1] ** 2 - 1.0],
            n_q=2,
            n_constraints=1,
            params=np.array([k]),
        )

    initial, options = ([0.6, -0.8], [0.0, 0.0]), {"method": "dassl", "formulation": "index3", "rtol": 1e-6}
    solver = daedal.prepare(system(1.0), **options)
    solver.solve((0.0, 1.0), initial)
    other = solver.solve((0.0, 1.0), initial, params=np.array([400.0]))
    fresh = daedal.solve(system(400.0), (0.0, 1.0), initial, **options)
    assert other.stats.newton_iterations == fresh.stats.newton_iterations
    np.testing.assert_array_equal(other.y[:, -1], fresh.y[:, -1])


def test_a_linearisation_that_is_infinite_gives_way_to_differences():
    """The force sqrt(|v|) has no derivative where the motion begins."""
    system = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [-0.1 * np.sqrt(np.abs(v[0])), -9.81],
        lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=2,
        n_constraints=1,
    )
    for method, formulation in (("dassl", "ggl"), ("collocation", "index3"), ("modified_bdf", "index3")):
        runs = [
            daedal.solve(
                system, (0.0, 0.5), ([0.6, -0.8], [0.0, 0.0]), method=method, formulation=formulation, compile=choice
            )
            for choice in ("auto", "never")
        ]
        np.testing.assert_allclose(runs[0].y[:, -1], runs[1].y[:, -1], atol=1e-3)


# --- derivatives that the user gives ----------------------------------------------------------------------------------


def given_matrices(factor):
    """One problem of each class with a matrix that is right for factor = 1."""
    from scipy.sparse import csc_array

    def residual(t, y, yp):
        return [yp[0] - y[1], yp[1] + y[0] ** 3 + y[1]]

    def dense(t, y, yp, cj):
        return np.array([[cj, -1.0], [factor * 3.0 * y[0] ** 2, cj + 1.0]])

    def banded(t, y, yp, cj):
        full = dense(t, y, yp, cj)
        return np.array([[0.0, full[0, 1]], [full[0, 0], full[1, 1]], [full[1, 0], 0.0]])

    def sparse(t, y, yp, cj):
        return csc_array(dense(t, y, yp, cj))

    start = ([1.0, 0.5], None)
    yield daedal.ImplicitDAE(residual, 2, jacobian=dense), start
    yield daedal.ImplicitDAE(residual, 2, jacobian=banded, bandwidth=(1, 1)), start
    yield daedal.ImplicitDAE(residual, 2, jacobian=sparse, sparsity=csc_array(np.ones((2, 2)))), start
    yield (
        daedal.SemiExplicitDAE(
            lambda t, y, z: [z[0]],
            lambda t, y, z: [z[0] + y[0] ** 3],
            n_y=1,
            n_z=1,
            jacobian=lambda t, x, xp, cj: np.array([[cj, -1.0], [factor * 3.0 * x[0] ** 2, 1.0]]),
        ),
        ([1.0], None),
    )
    yield (
        daedal.SecondOrderDAE(
            lambda t, x, xp, xpp: [xpp[0] + 0.1 * xp[0] + x[0] ** 3],
            1,
            jacobian=lambda t, x, xp, xpp, c1, c2: np.array([[c2 + 0.1 * c1 + factor * 3.0 * x[0] ** 2]]),
        ),
        ([1.0], [0.0]),
    )


def test_given_matrices_are_used_and_compared_once(recwarn):
    from daedal.errors import DerivativeWarning

    for problem, initial in given_matrices(1.0):
        sol = daedal.solve(problem, (0.0, 0.5), initial)
        assert sol.stats.jacobian_residual_evaluations == 0
    assert not [w for w in recwarn if issubclass(w.category, DerivativeWarning)]
    for problem, initial in given_matrices(1.2):
        with pytest.warns(DerivativeWarning, match="jacobian is not the derivative .* but should be"):
            sol = daedal.solve(problem, (0.0, 0.5), initial)
        assert sol.stats.jacobian_residual_evaluations == 0  # it is used nevertheless
        recwarn.clear()
        daedal.solve(problem, (0.0, 0.5), initial)
        assert not [w for w in recwarn if issubclass(w.category, DerivativeWarning)]


def test_collocation_uses_a_given_matrix():
    *_, (problem, initial) = given_matrices(1.0)
    given = daedal.solve(problem, (0.0, 2.0), initial, method="collocation", compile="never")
    without = daedal.SecondOrderDAE(problem.residual, 1)
    differences = daedal.solve(without, (0.0, 2.0), initial, method="collocation", compile="never")
    assert given.stats.jacobian_residual_evaluations == 0 < differences.stats.jacobian_residual_evaluations
    np.testing.assert_allclose(given.x[:, -1], differences.x[:, -1], atol=1e-5)


def test_wrong_derivatives_of_mechanisms_are_refused():
    wrong = {
        "constraint_jacobian": lambda t, q: [[2.0 * q[0], 3.0 * q[1]]],
        "constraint_t": lambda t, q: [0.5],
        "acceleration_bias": lambda t, q, v: [2.0 * v[0] ** 2 + 2.0 * v[1] ** 2],
    }
    for name, function in wrong.items():
        system = daedal.MechanicalSystem(
            1.0,
            lambda t, q, v: [0.0, -9.81],
            lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
            n_q=2,
            n_constraints=1,
            **{name: function},
        )
        with pytest.raises(daedal.InvalidProblemError, match=f"{name} disagrees"):
            daedal.solve(system, (0.0, 1.0), ([0.6, -0.8], [0.8, 0.6]))
