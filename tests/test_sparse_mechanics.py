"""Large mechanical systems with sparse matrices: the same answers as by dense ones, and work in proportion to size."""

import pickle

import numpy as np
import pytest
from scipy.linalg import eigvalsh_tridiagonal
from scipy.sparse import csc_array, csr_array, diags_array, eye_array, issparse

import daedal
from daedal.initial.sparse_start import consistent_sparse, sparse_start
from daedal.library.particles import chain_of_pendulums
from daedal.mechanics.sparse.sparse_equations import SparseEquations, highest_frequency
from daedal.mechanics.sparse.sparse_workspace import SparseWorkspace, is_sparse
from daedal.mechanics.sparse.structure import Structure

FORMS = ["ggl", "index2", "index1", "baumgarte", "index3"]


def full(function):
    return lambda *arguments: function(*arguments).toarray()


def dense(system):
    """The same system with dense matrices."""
    mass = full(system.mass) if callable(system.mass) else system.mass.toarray()
    return system.replaced(mass=mass, constraint_jacobian=full(system.constraint_jacobian), force_sparsity=None)


@pytest.fixture(scope="module")
def chain():
    return chain_of_pendulums()


@pytest.fixture(scope="module")
def solved(chain):
    return daedal.solve(chain.problem, (0.0, 1.0), chain.initial, rtol=1e-8, atol=1e-8, method="dassl")


# --- the chain ----------------------------------------------------------------------------------------------------


def test_reference_of_the_chain_is_what_the_angles_give(chain):
    np.testing.assert_allclose(chain.extra["exact"](1.0), chain.reference.y, rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_equations_of_the_chain_agree_with_those_of_the_angles(n):
    model = chain_of_pendulums(n)
    rng = np.random.default_rng(3)
    angles, rates = rng.normal(size=n), rng.normal(size=n)
    q, v = model.extra["configuration"](angles, rates)
    point = dense(model.problem).at(0.0, q, v)
    assert np.max(np.abs(point.constraint)) < 1e-14
    assert np.max(np.abs(point.velocity)) < 1e-14
    h = 1e-5
    from daedal.library.particles import angular_rates

    second = angular_rates(0.0, np.concatenate([angles, rates]), n, 1.0 / n, 9.81)[n:]
    after, before = (
        model.extra["configuration"](angles + s * rates + 0.5 * s * s * second, rates + s * second)[1] for s in (h, -h)
    )
    np.testing.assert_allclose(point.acceleration, (after - before) / (2.0 * h), atol=1e-6)


def test_chain_reaches_its_reference(chain, solved):
    assert np.max(chain.reference.error(solved.y[:, -1])) < 1e-4
    assert np.max(np.abs(solved.y[:, -1] - chain.reference.y)) < 2e-6


def test_rope_swings_with_bernoullis_frequency():
    model = chain_of_pendulums(150, amplitude=1e-3)
    quarter = 0.5 * np.pi / model.extra["frequency"]
    sol = daedal.solve(model.problem, (0.0, quarter), model.initial, rtol=1e-6, atol=1e-9, t_eval=[0.0, quarter])
    assert abs(sol.q[-2, -1] / sol.q[-2, 0]) < 0.01


# --- agreement with dense matrices --------------------------------------------------------------------------------


@pytest.mark.parametrize("formulation", FORMS)
def test_sparse_and_dense_matrices_give_the_same(chain, formulation):
    options = {"formulation": formulation, "method": "dassl", "dense_output": False}
    options |= {"rtol": 1e-5, "atol": 1e-5} if formulation == "index3" else {"rtol": 1e-9, "atol": 1e-9}
    sparse = daedal.solve(chain.problem, (0.0, 0.3), chain.initial, **options)
    other = daedal.solve(dense(chain.problem), (0.0, 0.3), chain.initial, **options)
    limit = 1e-4 if formulation == "index3" else 1e-7
    assert np.max(np.abs(sparse.y[:, -1] - other.y[:, -1])) < limit
    assert sparse.formulation == type(daedal.mechanics.formulations.named_formulation(formulation)).__name__
    assert sparse.drift["position"] < 1e-14
    assert sparse.drift["velocity"] < 1e-14


def test_ggl_takes_the_very_steps_of_the_dense_form(chain):
    options = {"formulation": "ggl", "method": "dassl", "rtol": 1e-6, "atol": 1e-6}
    sparse = daedal.solve(chain.problem, (0.0, 0.5), chain.initial, **options)
    other = daedal.solve(dense(chain.problem), (0.0, 0.5), chain.initial, **options)
    assert abs(sparse.stats.steps - other.stats.steps) <= 2
    for name in ("q", "v"):
        np.testing.assert_allclose(getattr(sparse, name)[:, -1], getattr(other, name)[:, -1], atol=1e-7)
    scale = np.max(np.abs(other.lam))
    np.testing.assert_allclose(sparse.lam[:, -1], other.lam[:, -1], atol=1e-6 * scale)


def test_solution_has_everything_a_mechanical_solution_has(chain, solved):
    n = 10
    assert solved.q.shape[0] == solved.v.shape[0] == solved.a.shape[0] == 2 * n
    assert solved.lam.shape == (n, solved.t.size)
    point = dense(chain.problem).at(solved.t[-1], solved.q[:, -1], solved.v[:, -1])
    np.testing.assert_allclose(solved.a[:, -1], point.acceleration, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(solved.lam[:, -1], point.multipliers, rtol=1e-9)
    np.testing.assert_allclose(solved.reaction[:, -1], point.reaction, rtol=1e-8, atol=1e-9)
    assert {"position", "velocity", "position before projection"} <= set(solved.drift)
    assert solved.names[:3] == ("x1", "y1", "x2")
    state = solved(0.5)
    assert np.max(np.abs(chain.problem.constraint(0.5, state.q, chain.problem.params))) < 1e-15
    np.testing.assert_allclose(np.concatenate([state.q, state.v]), chain.extra["exact"](0.5), atol=3e-6)
    assert "GGL" in repr(solved)
    copy = pickle.loads(pickle.dumps(solved))
    np.testing.assert_array_equal(copy.lam, solved.lam)


def test_events_see_positions_and_velocities(chain):
    def lowest(t, q, v):
        return q[18]

    sol = daedal.solve(chain.problem, (0.0, 1.0), chain.initial, rtol=1e-7, atol=1e-7, events=lowest, method="dassl")
    assert len(sol.events) == 1
    assert abs(sol.events[0].y[18]) < 1e-7
    assert abs(chain.extra["exact"](sol.events[0].t)[18]) < 1e-5


def test_energy_is_kept_as_the_tolerance_asks(chain):
    drifts = []
    for rtol in (1e-5, 1e-8):
        sol = daedal.solve(chain.problem, (0.0, 1.0), chain.initial, rtol=rtol, atol=rtol, method="dassl")
        drifts.append(np.ptp(chain.extra["energy"](sol.q, sol.v)))
    assert drifts[0] < 1e-3
    assert drifts[1] < 1e-2 * drifts[0]


# --- other systems ------------------------------------------------------------------------------------------------

N = 12
ROWS, COLUMNS = np.repeat(np.arange(N), 4)[2:], (np.arange(4 * N) - 2 * np.repeat(np.arange(N), 4) - 2)[2:]


def ring(*, given=(), moving=True, drop_zeros=False, variable_mass=True):
    """Masses on rigid links from a moving point, with springs and dampers between neighbours and masses that vary."""

    def pivot(t):
        return np.array([0.1 * np.sin(3.0 * t), 0.05 * np.cos(2.0 * t) - 0.05]) if moving else np.zeros(2)

    def links(t, q):
        return np.diff(np.reshape(q, (-1, 2)), axis=0, prepend=pivot(t)[None])

    def constraint(t, q):
        return np.sin(0.5 * np.sum(links(t, q) ** 2, axis=1) - 0.02)

    def jacobian(t, q):
        d = links(t, q)
        cosine = np.cos(0.5 * np.sum(d**2, axis=1) - 0.02)[:, None]
        entries = np.hstack([-cosine * d, cosine * d])
        matrix = csr_array((entries.ravel()[2:], (ROWS, COLUMNS)), shape=(N, 2 * N))
        return csc_array(matrix.toarray()) if drop_zeros else matrix

    def constraint_t(t, q):
        speed = np.array([0.3 * np.cos(3.0 * t), -0.1 * np.sin(2.0 * t)])
        d = links(t, q)
        result = np.zeros(N)
        result[0] = -np.cos(0.5 * d[0] @ d[0] - 0.02) * (d[0] @ speed)
        return result

    def mass(t, q):
        return diags_array(1.0 + 0.3 * np.sin(q) ** 2).tocsr()

    def force(t, q, v):
        x, u = np.reshape(q, (-1, 2)), np.reshape(v, (-1, 2))
        f = np.tile([0.0, -9.81], (N, 1))
        pull = 3.0 * (x[2:] - x[:-2]) ** 3 + 0.2 * (u[2:] - u[:-2])
        f[:-2] += pull
        f[2:] -= pull
        return f.ravel()

    optional = {"constraint_t": constraint_t} if "constraint_t" in given else {}
    near = diags_array([np.ones(2 * N)] * 5, offsets=[-4, -2, 0, 2, 4], shape=(2 * N, 2 * N))
    angles = 0.4 * np.cos(np.arange(N))
    q0 = np.cumsum(0.2 * np.stack([np.sin(angles), -np.cos(angles)], axis=1), axis=0).ravel()
    system = daedal.MechanicalSystem(
        mass if variable_mass else eye_array(2 * N),
        force,
        constraint,
        n_q=2 * N,
        n_constraints=N,
        constraint_jacobian=jacobian,
        force_sparsity=near,
        **optional,
    )
    return system, (q0, None)


@pytest.mark.parametrize("given", [(), ("constraint_t",)])
@pytest.mark.parametrize("formulation", ["ggl", "index1"])
def test_moving_support_varying_mass_and_coupled_forces(given, formulation):
    system, initial = ring(given=given)
    options = {"rtol": 1e-8, "atol": 1e-8, "formulation": formulation, "method": "dassl"}
    sparse = daedal.solve(system, (0.0, 0.4), initial, **options)
    other = daedal.solve(dense(system), (0.0, 0.4), initial, **options)
    np.testing.assert_allclose(sparse.y[:, 0], other.y[:, 0], atol=1e-9)
    np.testing.assert_allclose(sparse.lam[:, 0], other.lam[:, 0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(sparse.y[:, -1], other.y[:, -1], atol=2e-6)
    assert sparse.drift["position"] < 1e-13
    assert sparse.drift["velocity"] < 1e-9


def test_entries_that_vanish_by_accident_are_found():
    system, _ = ring(moving=False, drop_zeros=True, variable_mass=False)
    hanging = np.ravel([[0.0, -0.2 * (i + 1)] for i in range(N)])
    push = np.zeros(2 * N)
    push[::2] = 0.2 * np.arange(1, N + 1)
    assert system.constraint_jacobian(0.0, hanging).nnz == 2 * N - 1
    sol = daedal.solve(system, (0.0, 0.2), (hanging, push), rtol=1e-6, atol=1e-6)
    other = daedal.solve(dense(system), (0.0, 0.2), (hanging, push), rtol=1e-6, atol=1e-6, method="dassl")
    np.testing.assert_allclose(sol.y[:, -1], other.y[:, -1], atol=1e-4)


def test_an_entry_that_appears_later_is_refused_in_words():
    structure = Structure(csr_array(np.array([[1.0, 0.0], [0.0, 1.0]])))
    same = structure.aligned(csr_array(np.array([[0.0, 0.0], [0.0, 2.0]])), "constraint_jacobian")
    assert same.nnz == 2
    with pytest.raises(daedal.InvalidProblemError, match="row 0, column 1"):
        structure.aligned(csr_array(np.array([[1.0, 3.0], [0.0, 1.0]])), "constraint_jacobian")


@pytest.mark.parametrize("levels", [(0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (2.0, 3.0, 1.0)])
@pytest.mark.parametrize("stabilised", [False, True])
def test_iteration_matrix_is_the_derivative_of_the_residual(levels, stabilised):
    system, (q0, _) = ring()
    assembly, start, _ = sparse_start(system, (0.0, 1.0), q0)
    equations = SparseEquations(assembly, levels, stabilised)
    n, cj = equations.n, 37.0
    rng = np.random.default_rng(1)
    y, yp = rng.normal(size=n), rng.normal(size=n)
    y[: 2 * N] = start.z[: 2 * N]
    y[4 * N + N :] = 0.0  # mu vanishes
    pattern = equations.blocks.pattern
    entries = equations.jacobian(0.3, y, yp, cj)
    matrix = csc_array((entries, pattern.indices, pattern.indptr), shape=(n, n)).toarray()
    differences = np.empty((n, n))
    for j in range(n):
        h = 1e-5
        move = h * np.eye(n)[j]
        above = equations.residual(0.3, y + move, yp + cj * move)
        below = equations.residual(0.3, y - move, yp - cj * move)
        differences[:, j] = (above - below) / (2.0 * h)
    np.testing.assert_allclose(matrix, differences, atol=3e-5 * np.max(np.abs(differences)))


def test_system_without_constraints():
    n = 40
    stiffness = diags_array([-np.ones(n - 1), 2.0 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()
    system = daedal.MechanicalSystem(
        eye_array(n),
        lambda t, q, v: -(stiffness @ q),
        n_q=n,
        force_sparsity=stiffness,
        names=[f"u{i}" for i in range(n)],
    )
    shape = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    frequency = 2.0 * np.sin(0.5 * np.pi / (n + 1))
    sol = daedal.solve(system, (0.0, 10.0), (shape, np.zeros(n)), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(sol.q[:, -1], shape * np.cos(10.0 * frequency), atol=1e-4)
    assert sol.lam.shape == (0, sol.t.size)


# --- scaling ------------------------------------------------------------------------------------------------------


def test_steps_do_not_grow_with_the_number_of_links():
    runs = {}
    for n in (75, 300):
        model = chain_of_pendulums(n)
        runs[n] = daedal.solve(model.problem, (0.0, 0.3), model.initial, rtol=1e-5, atol=1e-5)
        assert runs[n].drift["position"] < 1e-14
        energy = model.extra["energy"](runs[n].q, runs[n].v)
        assert np.ptp(energy) < 1e-4
    assert runs[300].stats.steps < 1.5 * runs[75].stats.steps
    # Both are discretisations of one rope.
    ends = [runs[n].q[-2:, -1] for n in (75, 300)]
    np.testing.assert_allclose(ends[0], ends[1], atol=5e-3)


def test_nothing_is_as_large_as_a_dense_matrix():
    model = chain_of_pendulums(5000)
    assert issparse(model.problem.mass)
    assembly, start, _ = sparse_start(model.problem, (0.0, 1.0), *model.initial)
    equations = SparseEquations(assembly, (0.0, 1.0, 0.0), True)
    assert equations.blocks.pattern.nnz < 30 * equations.n
    residual = equations.residual(
        0.0,
        np.concatenate([start.z, start.lam, np.zeros(5000)]),
        np.concatenate([start.slope, np.zeros(10000)]),
    )
    assert np.max(np.abs(residual)) < 1e-10


def test_high_frequencies_limit_the_order():
    model = chain_of_pendulums(200)
    assembly, start, _ = sparse_start(model.problem, (0.0, 1.0), *model.initial)
    # Sideways the links are springs of n times the weight below them, and bobs have the mass 1/n. Power iteration
    # comes near from below.
    springs = 200 * 9.81 * np.arange(1.0, 201.0)
    squares = eigvalsh_tridiagonal(springs + np.append(0.0, springs[:-1]), -springs[:-1])
    assert 0.9 < highest_frequency(assembly, start) / np.sqrt(squares[-1]) <= 1.0
    sol = daedal.solve(model.problem, (0.0, 0.3), model.initial, rtol=1e-5, atol=1e-5)
    assert sol.history.order.max() == 2
    assert "The order is at most 2" in sol.message
    free = daedal.solve(model.problem, (0.0, 0.05), model.initial, rtol=1e-5, atol=1e-5, method="dassl", max_order=4)
    assert free.history.order.max() > 2


def test_fixed_steps_of_backward_euler(chain):
    sol = daedal.solve(
        chain.problem, (0.0, 0.1), chain.initial, fixed_step=1e-3, method="dassl", max_order=1, formulation="ggl"
    )
    assert np.max(np.abs(sol.y[:, -1] - chain.extra["exact"](0.1))) < 2e-2
    with pytest.raises(daedal.InvalidProblemError, match="max_order=1"):
        daedal.solve(chain.problem, (0.0, 0.1), chain.initial, fixed_step=1e-3, method="dassl", max_order=3)


# --- initial values, refusals, failures ----------------------------------------------------------------------------


def test_inconsistent_values_are_refused_with_names_or_corrected(chain):
    q0, v0 = chain.initial[0].copy(), chain.initial[1].copy()
    q0[7] += 1e-2
    with pytest.raises(daedal.InconsistentInitialError, match=r"(?s)'link 4'.*correct_initial"):
        daedal.solve(chain.problem, (0.0, 0.1), (q0, v0))
    sol = daedal.solve(chain.problem, (0.0, 0.01), (q0, v0), correct_initial=True)
    assert np.max(np.abs(chain.problem.constraint(0.0, sol.q[:, 0], chain.problem.params))) < 1e-15
    assert "q0 was moved" in sol.message
    v0[6] = 1.0
    with pytest.raises(daedal.InconsistentInitialError, match=r"(?s)Velocity.*'link 4'"):
        daedal.solve(chain.problem, (0.0, 0.1), (chain.initial[0], v0))
    sol = daedal.solve(chain.problem, (0.0, 0.01), (chain.initial[0], v0), correct_initial=True)
    assert sol.drift["velocity"] < 1e-15
    # The nearest velocity in the norm of M: the change is orthogonal to the kernel of G.
    change = sol.v[:, 0] - v0
    jacobian = chain.problem.constraint_jacobian(0.0, chain.initial[0], chain.problem.params).toarray()
    along = change - jacobian.T @ np.linalg.lstsq(jacobian.T, change, rcond=None)[0]
    assert np.max(np.abs(along)) < 1e-12


def test_consistent_values_are_those_of_dense_matrices(chain):
    rng = np.random.default_rng(5)
    q0, v0 = chain.initial[0] + 1e-3 * rng.normal(size=20), rng.normal(size=20)
    found = consistent_sparse(chain.problem, 0.0, q0, v0)
    other = daedal.consistent_initial(dense(chain.problem), 0.0, (q0, v0))
    for name in ("q", "v"):
        np.testing.assert_allclose(getattr(found, name), getattr(other, name), atol=1e-3)
    at = dense(chain.problem).at(0.0, found.q, found.v)
    np.testing.assert_allclose(found.a, at.acceleration, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.q - q0, found.moved_q, atol=1e-15)
    assert daedal.solve(chain.problem, (0.0, 0.01), found).success


def test_dependent_constraints_are_named(chain):
    p = chain.problem
    double = p.replaced(
        constraint=lambda t, q, x: np.append(p.constraint(t, q, x), 2.0 * p.constraint(t, q, x)[4]),
        constraint_jacobian=lambda t, q, x: csr_array(
            np.vstack([p.constraint_jacobian(t, q, x).toarray(), 2.0 * p.constraint_jacobian(t, q, x).toarray()[4:5]])
        ),
        acceleration_bias=None,
        n_constraints=11,
        constraint_names=[*p.constraint_names, "again"],
    )
    with pytest.raises(daedal.InconsistentInitialError, match=r"dependent: 'link 5' and 'again'"):
        daedal.solve(double, (0.0, 0.1), chain.initial)


def test_free_directions_without_mass_are_named(chain):
    masses = np.ones(20)
    masses[19] = 0.0
    masses[18] = 0.0
    with pytest.raises(daedal.InconsistentInitialError, match=r"singular in a direction.*x10"):
        daedal.solve(chain.problem.replaced(mass=diags_array(masses)), (0.0, 0.1), chain.initial)


@pytest.mark.parametrize("formulation", ["state_space", "projection", "overdetermined", "loetstedt"])
def test_forms_without_a_sparse_version_are_refused(chain, formulation):
    with pytest.raises(daedal.InvalidProblemError, match=r"no sparse form; .*ggl .*index3.*baumgarte"):
        daedal.solve(chain.problem, (0.0, 0.1), chain.initial, formulation=formulation)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "dopri5"}, "DOPRI5 cannot solve a system with sparse matrices; use method='dassl'"),
        ({"formulation": daedal.mechanics.formulations.GGL(projection="B")}, "projection='GT'"),
        ({"formulation": daedal.mechanics.formulations.GGL(multipliers="derivative")}, "multipliers='derivative'"),
    ],
)
def test_options_without_a_sparse_version_are_refused(chain, options, words):
    with pytest.raises(daedal.InvalidProblemError, match=words.replace("(", r"\(")):
        daedal.solve(chain.problem, (0.0, 0.1), chain.initial, **options)


def test_problems_without_a_sparse_version_are_refused(chain):
    p = chain.problem
    with pytest.raises(daedal.InvalidProblemError, match="needs constraint_jacobian"):
        daedal.solve(p.replaced(constraint_jacobian=None), (0.0, 0.1), chain.initial)
    rolling = p.replaced(velocity_constraint=lambda t, q, v, x: v[:1], n_velocity_constraints=1, constraint_names=None)
    with pytest.raises(daedal.InvalidProblemError, match="velocity constraints have no sparse form"):
        daedal.solve(rolling, (0.0, 0.1), chain.initial)
    with pytest.raises(daedal.InvalidProblemError, match="force_sparsity has shape"):
        p.replaced(force_sparsity=eye_array(3))
    with pytest.raises(daedal.InvalidProblemError, match="mass has shape"):
        p.replaced(mass=eye_array(3))


def test_large_diagonal_masses_are_kept_sparse():
    system = daedal.MechanicalSystem(2.0, lambda t, q, v: -q, n_q=3000)
    assert issparse(system.mass)
    assert not issparse(daedal.MechanicalSystem(2.0, lambda t, q, v: -q, n_q=30).mass)
    sol = daedal.solve(system.replaced(force_sparsity=eye_array(3000)), (0.0, 0.1), (np.ones(3000), None), rtol=1e-6)
    np.testing.assert_allclose(sol.q[:, -1], np.cos(0.1 / np.sqrt(2.0)), atol=1e-5)


def test_dense_systems_do_not_take_the_sparse_path(chain):
    assert is_sparse(chain.problem, 0.0, chain.initial)
    assert not is_sparse(dense(chain.problem), 0.0, chain.initial)
    assert not is_sparse(daedal.ImplicitDAE(lambda t, y, yp: yp, 1), 0.0, ([0.0], [0.0]))


def test_a_failed_run_says_so_and_keeps_what_it_has(chain):
    with pytest.raises(daedal.IntegrationError, match="limit of 12 steps") as failure:
        daedal.solve(chain.problem, (0.0, 1.0), chain.initial, max_steps=12)
    assert failure.value.solution.t.size == 13


def test_exceptions_of_the_users_functions_come_through(chain):
    def force(t, q, v, p):
        if t > 0.01:
            raise ZeroDivisionError("in the force")
        return np.zeros(q.size)

    with pytest.raises(ZeroDivisionError, match="in the force"):
        daedal.solve(chain.problem.replaced(force=force), (0.0, 1.0), chain.initial)


def test_bias_by_differences_agrees_with_the_given_one(chain):
    q, v = chain.extra["configuration"](np.linspace(0.1, 1.0, 10), np.linspace(-2.0, 3.0, 10))
    given = SparseWorkspace(chain.problem, 0.0, q, autonomous=True)
    found = SparseWorkspace(chain.problem.replaced(acceleration_bias=None), 0.0, q, autonomous=True)
    np.testing.assert_allclose(found.bias(0.0, q, v), given.bias(0.0, q, v), rtol=1e-10, atol=1e-12)
