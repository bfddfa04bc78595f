"""Integrators in C: the text that a GPU gets, compiled for this machine, against machine code and the driver."""

import ctypes
import importlib.util
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import c_reader
import daedal
from c_compiler import COMPILER, HostEngine, kernel, library
from daedal.driver.request import checked_settings
from daedal.ensembles import gpu as on_gpu
from daedal.ensembles.gpu import neighbours_together
from daedal.ensembles.gpu_model import GPUTask, execute, gpu_model
from daedal.kernels.endings import Ending
from daedal.methods.rosenbrock.rosenbrock_tableaux import TABLEAUX
from daedal.symbolic import Graph
from daedal.symbolic.cuda import PRELUDE, c_function
from daedal.symbolic.graph import evaluate
from daedal.symbolic.operations import CONDITIONS, FUNCTIONS
from daedal.symbolic.tracing.in_c import problem_in_c
from daedal.symbolic.tracing.problem import traced_problem

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler on this machine")
MECHANISMS = ("planar_pendulum", "double_pendulum", "crank_slider", "seven_body")
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.3, -2.7, 1e300, -1e300, math.inf, -math.inf, math.nan)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("c")


@pytest.fixture(scope="module", params=["LLVM", "C"])
def reader(request, folder):
    """Who reads emitted functions: LLVM everywhere, and a C compiler where there is one."""
    if request.param == "LLVM":
        return None
    if COMPILER is None:
        pytest.skip("there is no C compiler on this machine; LLVM has read the same text")
    return folder


def called(text, folder, name, sizes, *arrays, t=0.0):
    """Status and results, one behind the other, of an emitted function: by a C compiler if there is a folder, else by
    LLVM."""
    kept = [np.ascontiguousarray(a, dtype=float) for a in arrays]
    results = [np.full(size, np.nan) for size in (sizes if isinstance(sizes, tuple) else (sizes,))]
    if folder is None:
        return c_reader.called(text, name, [*kept, *results], t), np.concatenate(results)
    names = [f"a{k}" for k in range(len(kept) + len(results))]
    pointers = ", ".join(f"real* {name}" for name in names)
    entry = f"\nint call(real t, {pointers}) {{ return {name}(t, {', '.join(names)}); }}\n"
    function = library(PRELUDE + text + entry, folder).call
    status = function(ctypes.c_double(t), *[ctypes.c_void_p(a.ctypes.data) for a in [*kept, *results]])
    return status, np.concatenate(results)


# --- operations -------------------------------------------------------------------------------------------------------


def test_all_operations_have_the_values_of_python_at_special_points(reader):
    """Of every operation at zeros, infinities and NaN; functions of the C library to a few units in the last place."""
    graph = Graph()
    a, b = graph.argument("x", 0), graph.argument("x", 1)
    unary = [name for name in FUNCTIONS if FUNCTIONS[name].evaluate.__class__ is not np.ufunc or _arity(name) == 1]
    nodes = [graph.apply(name, a) for name in unary]
    nodes += [graph.apply(name, a, b) for name in FUNCTIONS if name not in unary]
    nodes += [graph.number(graph.apply(name, a, b)) for name in CONDITIONS if name in ("less", "less_equal", "equal")]
    nodes += [graph.number(graph.opposite(graph.apply("not_equal", a, b)))]
    nodes += [graph.divide(graph.one, a), graph.divide(a, b), graph.negative(a), graph.subtract(a, b)]
    nodes += [graph.locate(a, (-1.0, 0.0, 0.5)), graph.pick(a, (3.0, 4.0, 5.0)), graph.constant(math.nan)]
    nodes += [graph.where(graph.both(graph.apply("less", a, b), graph.apply("less", graph.zero, b)), a, b)]
    text = c_function(graph, "f", {"x": [a, b]}, {"y": nodes})
    for x in SPECIAL:
        for y in SPECIAL:
            _, found = called(text, reader, "f", len(nodes), [x, y])
            with np.errstate(all="ignore"):
                expected = np.array(evaluate(graph, nodes, {"x": [x, y]}), dtype=float)
            np.testing.assert_allclose(found, expected, rtol=4e-16, atol=1e-320, err_msg=f"at {x}, {y}")


def _arity(name):
    return getattr(FUNCTIONS[name].evaluate, "nin", 1)


@settings(max_examples=20, deadline=None)
@given(st.tuples(*[st.floats(-20.0, 20.0)] * 2))
def test_sines_and_cosines_of_sums_are_right_to_round_off(reader, angles):
    graph = Graph()
    a, b = (graph.argument("x", k) for k in range(2))
    every = [a, b, graph.add(a, b), graph.subtract(a, b), graph.add(graph.add(a, b), b)]
    nodes = [graph.apply(name, x) for x in every for name in ("sin", "cos")]
    text = c_function(graph, "f", {"x": [a, b]}, {"y": nodes})
    assert text.count("SINE_AND_COSINE") == 2
    _, found = called(text, reader, "f", len(nodes), angles)
    expected = np.array(evaluate(graph, nodes, {"x": list(angles)}), dtype=float)
    assert np.abs(found - expected).max() <= 1e-14


def test_what_is_read_is_the_text(reader):
    """A text by hand, with a table, a choice and a status, and the same with one sign changed."""
    text = """TABLE real f_table_0[2] = {NUMBER(0x1.0p+1), NUMBER(-0x1.8p+0)};
    EMITTED int f(real t, const real* RESTRICT x, real* RESTRICT y) {
      const int x0 = x[0] < t;
      const real x1 = pick(x[1], f_table_0, 2);
      const real x2 = x0 ? x1 : x[0];
      const real x3 = x2 - x[1];
      y[0] = x3;
      return x0 ? 2 : 0;
    }
    """
    for values, t, expected in (([1.0, 1.0], 2.0, (2, -2.5)), ([3.0, 1.0], 2.0, (0, 2.0)), ([1.0, 0.0], 2.0, (2, 2.0))):
        status, result = called(text, reader, "f", 1, values, t=t)
        assert (status, result[0]) == expected
    assert called(text.replace("x2 - x[1]", "x2 + x[1]"), reader, "f", 1, [3.0, 1.0], t=2.0)[1][0] == 4.0


def test_an_argument_that_is_not_given_is_named():
    graph = Graph()
    with pytest.raises(KeyError, match="'z', 0"):
        c_function(graph, "f", {}, {"y": [graph.argument("z", 0)]})


# --- functions of problems --------------------------------------------------------------------------------------------


def numbers(traced, problem):
    return np.zeros(0) if traced.layout is None else traced.layout.numbers(problem.params)


@pytest.mark.parametrize("name", MECHANISMS)
def test_accelerations_and_projections_are_those_of_machine_code(name, reader):
    model = getattr(daedal.library, name)()
    traced = traced_problem(model.problem, "always")
    code = problem_in_c(traced)
    n, p = code.positions, numbers(traced, model.problem)
    rng = np.random.default_rng(3)
    q, v = (np.asarray(x) for x in model.initial[:2])
    q, v = q + 1e-3 * rng.standard_normal(n), v + 0.1 * rng.standard_normal(n)
    state = np.concatenate([q, v])
    arguments = {"accelerations": (q, v), "position_correction": (q,), "velocity_correction": (q, v)}
    names = {"accelerations": "slopes", "position_correction": "correct_positions"}
    for function, values in arguments.items():
        expected_status, expected = traced.problem.straight_line.function(function).evaluate(
            0.0, *values, *([model.problem.params] if traced.layout else [])
        )
        status, found = called(code.text, reader, names.get(function, "correct_velocities"), n, state, p)
        assert status == expected_status == 0
        scale = np.abs(expected[:n]).max()
        np.testing.assert_allclose(found, expected[:n], rtol=1e-10, atol=1e-12 * scale)


@pytest.mark.parametrize("name, h", [("robertson", 1e-3), ("transistor_amplifier", 1e-4)])
def test_rosenbrock_steps_are_those_of_machine_code(name, h, reader):
    model = getattr(daedal.library, name)()
    traced = traced_problem(model.problem, "always")
    tableau = TABLEAUX["rodas4"]
    code = problem_in_c(traced, tableau)
    y, yp = (np.asarray(x, dtype=float) for x in model.initial)
    step = traced.problem.linearly_implicit.step("rodas4", tableau)
    _, expected = step.evaluate(0.0, y, yp, h, model.problem.params)
    sizes = code.n, code.n * tableau.s, code.n
    p = numbers(traced, model.problem)
    status, found = called(code.text, reader, "rosenbrock_step", sizes, y, p, [h])
    assert status == 0
    np.testing.assert_allclose(found, expected[: found.size], rtol=1e-12, atol=1e-14 * np.abs(expected).max())


# --- whole runs -------------------------------------------------------------------------------------------------------


def host_run(model, folder, *, rtol, atol, count=5, params=None, single=False, **given):
    """Runs of a model of the library by the kernel, with output at `count` times."""
    options = checked_settings(rtol=rtol, atol=atol, **{k: v for k, v in given.items() if k in ("method", "events")})
    made = gpu_model(model.problem, options, outputs=count > 0, single=single)
    times = np.linspace(*model.t_span, count) if count else np.zeros(0)
    further = {k: v for k, v in given.items() if k not in ("method", "events", "start")}
    task = GPUTask(model.t_span, times, made.rtol, made.atol, **further)
    start = given.get("start")
    if start is None:
        start = np.concatenate(model.initial[:2]) if made.code.positions else np.asarray(model.initial[0])
    rows = numbers(made.traced, model.problem)[None] if params is None else params
    return execute(np, kernel(made.source, folder), made.code, task, np.atleast_2d(start), rows, single=single)


@needs_compiler
@pytest.mark.parametrize("tol", [1e-4, 1e-7])
@pytest.mark.parametrize("name", MECHANISMS)
def test_runs_of_mechanisms_are_those_of_the_driver(name, tol, folder):
    """DOPRI5 with projection in every step: the same steps, and values within a fraction of the tolerance."""
    model = getattr(daedal.library, name)()
    found = host_run(model, folder, rtol=tol, atol=tol)
    times = np.linspace(*model.t_span, 5)
    form, method = daedal.formulations.CoordinateProjection(), daedal.methods.DOPRI5(norm="max")
    expected = daedal.solve(
        model.problem, model.t_span, model.initial, t_eval=times, rtol=tol, atol=tol, formulation=form, method=method
    )
    assert found.statuses[0] == Ending.FINISHED
    assert found.steps[0] == expected.stats.steps
    state = np.vstack([expected.q, expected.v]).T
    assert np.max(np.abs(found.outputs[0] - state) / (tol + tol * np.abs(state))) < 0.5
    np.testing.assert_allclose(found.y[0], found.outputs[0, -1], rtol=1e-12, atol=1e-12)
    residual = model.problem.constraint(0.0, found.y[0, : model.problem.n_q], *_params(model.problem))
    assert np.abs(residual).max() < 1e-13


def _params(problem):
    return () if problem.params is None else (problem.params,)


@needs_compiler
@pytest.mark.parametrize("variant", ["rodas4", "rodas5p"])
@pytest.mark.parametrize("name, rtol, atol", [("robertson", 1e-6, 1e-10), ("transistor_amplifier", 1e-5, 1e-5)])
def test_runs_of_stiff_problems_are_those_of_the_driver(name, rtol, atol, variant, folder):
    model = getattr(daedal.library, name)()
    found = host_run(
        model, folder, rtol=rtol, atol=atol, method=daedal.methods.Rosenbrock(variant=variant), first_step=1e-6
    )
    times = np.linspace(*model.t_span, 5)
    options = {"method": daedal.methods.Rosenbrock(variant=variant), "first_step": 1e-6, "switches": "never"}
    expected = daedal.solve(model.problem, model.t_span, model.initial, t_eval=times, rtol=rtol, atol=atol, **options)
    assert found.statuses[0] == Ending.FINISHED
    assert found.steps[0] == expected.stats.steps
    y = expected.y.T
    assert np.max(np.abs(found.outputs[0] - y) / (atol + rtol * np.abs(y))) < 0.01


@needs_compiler
def test_single_precision_reaches_single_accuracy(folder):
    model = daedal.library.seven_body()
    found = host_run(model, folder, rtol=1e-5, atol=1e-5, count=0, single=True)
    assert found.y.dtype == np.float32
    reference = model.reference.y[:7]
    assert np.max(np.abs(found.y[0, :7] - reference) / (1.0 + np.abs(reference))) < 1e-4


@needs_compiler
def test_the_kernel_runs_backwards_too(folder):
    problem = daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [z[0] + y[0]], n_y=1, n_z=1)
    made = gpu_model(problem, checked_settings(rtol=1e-8, atol=1e-10), outputs=True)
    task = GPUTask((1.0, 0.0), np.array([0.5, 0.0]), made.rtol, made.atol)
    run = kernel(made.source, folder)
    found = execute(np, run, made.code, task, np.array([[1.0, -1.0]]), np.zeros((1, 0)))
    np.testing.assert_allclose(found.outputs[0, :, 0], np.exp([0.5, 1.0]), rtol=1e-6)


@needs_compiler
def test_dopri5_has_order_5_for_first_order_problems(folder):
    """A harmonic oscillator as F(t, y, y') = 0 with a mass matrix: halved steps, errors down by 2^5."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [2.0 * yp[0] - 2.0 * y[1], yp[1] + y[0]], 2)
    made = gpu_model(problem, checked_settings(method="dopri5", rtol=1e3, atol=1e3), outputs=False)
    run, errors = kernel(made.source, folder), []
    for h in (0.1, 0.05, 0.025):
        task = GPUTask((0.0, 1.0), np.zeros(0), made.rtol, made.atol, first_step=h, max_step=h)
        found = execute(np, run, made.code, task, np.array([[1.0, 0.0]]), np.zeros((1, 0)))
        assert found.steps[0] == round(1.0 / h)
        errors.append(np.abs(found.y[0] - [math.cos(1.0), -math.sin(1.0)]).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - 5.0) < 0.2)


# --- ensembles --------------------------------------------------------------------------------------------------------


@pytest.fixture
def host(monkeypatch, folder):
    """`on="gpu"` with kernels for this machine."""
    monkeypatch.setattr(on_gpu, "Engine", lambda options: HostEngine(folder))


def pendulum(**options):
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, p: [0.0, -p["g"]],
        lambda t, q, p: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)],
        n_q=2,
        n_constraints=1,
        params={"g": 9.81},
        **options,
    )


START = [1.0, 0.0], [0.0, 0.0]


@needs_compiler
def test_solve_many_on_gpu_agrees_with_threads(host):
    g, times = np.linspace(1.0, 10.0, 7), [0.5, 1.0]
    found = daedal.solve_many(pendulum(), (0.0, 1.0), START, params={"g": g}, t_eval=times, on="gpu")
    expected = daedal.solve_many(pendulum(), (0.0, 1.0), START, params={"g": g}, t_eval=times)
    assert found.failed.size == 0
    assert "on C" in found.message
    np.testing.assert_allclose(found.y, expected.y, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(found.final.q, expected.final.q, rtol=2e-5, atol=1e-6)


@needs_compiler
def test_results_do_not_depend_on_chunks(host):
    g = np.random.default_rng(1).uniform(1.0, 10.0, 23)
    runs = [
        daedal.solve_many(pendulum(), (0.0, 1.0), START, params={"g": g}, on="gpu", chunk_size=size).final.y
        for size in (3, 22)
    ]
    assert np.array_equal(*runs)


@needs_compiler
def test_terminal_events_end_runs_where_the_driver_ends_them(host):
    g = np.linspace(5.0, 10.0, 5)
    event = daedal.Event(lambda t, q, v: q[0], terminal=True, direction=-1, name="bottom")
    options = {"params": {"g": g}, "events": event, "rtol": 1e-9, "atol": 1e-11}
    found = daedal.solve_many(pendulum(), (0.0, 5.0), START, on="gpu", **options)
    expected = daedal.solve_many(pendulum(), (0.0, 5.0), START, **options)
    np.testing.assert_allclose(found.t_final, expected.t_final, rtol=1e-7)
    assert set(found.events["name"]) == {"bottom"}
    np.testing.assert_allclose(np.abs(found.final.q[:, 0]), 0.0, atol=1e-9)
    assert set(found.status) == {"event"}


@needs_compiler
def test_the_third_occurrence_ends_a_run_that_asks_for_it(host):
    event = daedal.Event(lambda t, q, v: q[0], terminal=3)
    options = {"params": {"g": np.array([9.81, 9.0])}, "events": event, "rtol": 1e-9, "atol": 1e-11}
    found = daedal.solve_many(pendulum(), (0.0, 9.0), START, on="gpu", **options)
    expected = daedal.solve_many(pendulum(), (0.0, 9.0), START, **options)
    np.testing.assert_allclose(found.t_final, expected.t_final, rtol=1e-7)


@needs_compiler
def test_members_that_fail_keep_their_reason_and_leave_the_others_alone(host):
    g = np.array([9.81, 9.0, np.nan, 8.0])
    found = daedal.solve_many(pendulum(), (0.0, 1.0), START, params={"g": g}, on="gpu")
    assert found.failed.tolist() == [2]
    assert "could not be evaluated" in found.messages[2]
    assert np.isfinite(found.final.y[[0, 1, 3]]).all()
    limited = daedal.solve_many(
        pendulum(), (0.0, 1.0), START, params={"g": np.array([1e-9, 9.0])}, on="gpu", max_steps=12
    )
    assert "limit of steps" in limited.messages[1]
    assert 0.0 < limited.t_final[1] < 1.0


@needs_compiler
def test_inconsistent_starts_are_refused_unless_they_may_be_corrected(host):
    starts = np.array([[1.0, 0.0], [1.1, 0.0]]), np.zeros((2, 2))
    found = daedal.solve_many(pendulum(), (0.0, 1.0), starts, on="gpu")
    assert "do not satisfy the constraints" in found.messages[1]
    found = daedal.solve_many(pendulum(), (0.0, 1.0), starts, on="gpu", correct_initial=True)
    np.testing.assert_allclose(np.hypot(*found.final.q.T), 1.0, rtol=1e-12)


@needs_compiler
def test_bad_pivots_are_told_from_other_failures(folder):
    """Two constraints that become one where y = 0: the elimination has no pivot there."""
    system = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [1.0, 0.0, 0.0],
        lambda t, q: [q[1], q[1] + (1.0 - q[0]) * q[2]],
        n_q=3,
        n_constraints=2,
    )
    made = gpu_model(system, checked_settings(), outputs=False)
    task = GPUTask((0.0, 3.0), np.zeros(0), made.rtol, made.atol)
    found = execute(
        np, kernel(made.source, folder), made.code, task, np.array([[1.0, 0, 0, 0, 0, 0]]), np.zeros((1, 0))
    )
    assert found.statuses[0] == Ending.MATRIX_SINGULAR
    assert "bad pivot" in on_gpu.MESSAGES[int(found.statuses[0])]


@needs_compiler
def test_kinks_and_tables_run_as_in_python(host):
    """abs, sign, min, max, where and np.interp in one force."""

    def force(t, q, v, p):
        spring = -np.interp(q[0], [-1.0, 0.0, 2.0], [-3.0, 0.0, 4.0])
        return [spring - p["mu"] * np.sign(v[0]) * min(abs(v[0]), 0.5) + max(0.0, np.where(t > 0.5, 0.3, -0.2))]

    system = daedal.MechanicalSystem(1.0, force, n_q=1, params={"mu": 0.1})
    options = {"params": {"mu": np.array([0.1, 0.2, 0.3])}, "rtol": 1e-9, "atol": 1e-10}
    found = daedal.solve_many(system, (0.0, 2.0), ([1.0], [0.0]), on="gpu", **options)
    expected = daedal.solve_many(system, (0.0, 2.0), ([1.0], [0.0]), **options)
    np.testing.assert_allclose(found.final.y, expected.final.y, rtol=1e-6, atol=1e-7)


@needs_compiler
def test_velocity_constraints_and_further_states_run_as_on_threads(host):
    """A skate on an inclined plane, and a mass whose friction warms up."""
    skate = daedal.MechanicalSystem(
        [1.0, 1.0, 0.5],
        lambda t, q, v, p: [p["slope"], 0.0, 0.0],
        velocity_constraint=lambda t, q, v, p: [np.cos(q[2]) * v[1] - np.sin(q[2]) * v[0]],
        n_q=3,
        n_velocity_constraints=1,
        params={"slope": 1.0},
    )
    warm = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, r, p: [-q[0] - p["d"] * v[0] / (1.0 + r[0])],
        n_q=1,
        n_r=1,
        state_rate=lambda t, q, v, r, p: [v[0] ** 2],
        params={"d": 0.3},
    )
    options = {"rtol": 1e-8, "atol": 1e-9}
    cases = [
        (skate, ([0.0, 0.0, 0.0], [1.0, 0.0, 1.0]), {"slope": np.array([1.0, 2.0, 3.0])}),
        (warm, ([1.0], [0.0], [0.0]), {"d": np.array([0.1, 0.2, 0.3])}),
    ]
    for system, start, params in cases:
        found = daedal.solve_many(system, (0.0, 2.0), start, params=params, on="gpu", **options)
        expected = daedal.solve_many(system, (0.0, 2.0), start, params=params, **options)
        assert found.failed.size == 0
        np.testing.assert_allclose(found.final.y, expected.final.y, rtol=1e-5, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("method", ["auto", "rosenbrock"])
def test_ordinary_differential_equations_run_too(method, folder):
    """y' = -k y."""
    problem = daedal.ODE(lambda t, y, p: [-p[0] * y[0]], 1, params=np.array([1.0]))
    k, options = np.array([[0.5], [1.0], [4.0]]), {"method": method, "rtol": 1e-9, "atol": 1e-11}
    found = daedal.ensembles.solve_on_gpu(
        problem, (0.0, 1.0), np.array([1.0]), params=k, engine=HostEngine(folder), **options
    )
    np.testing.assert_allclose(found.y, np.exp(-k), rtol=1e-7)


@needs_compiler
def test_solve_on_gpu_takes_and_gives_arrays_of_the_device(folder):
    g = np.linspace(1.0, 10.0, 9)[:, None]
    found = daedal.ensembles.solve_on_gpu(
        pendulum(), (0.0, 1.0), START, params=g, t_eval=[0.5], engine=HostEngine(folder), rtol=1e-8, atol=1e-8
    )
    expected = daedal.solve_many(pendulum(), (0.0, 1.0), START, params={"g": g[:, 0]}, t_eval=[0.5])
    assert found.outputs.shape == (9, 1, 4)
    np.testing.assert_allclose(found.y, expected.final.y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.outputs[:, 0], expected.y[:, :, 0], rtol=1e-5, atol=1e-6)
    with pytest.raises(daedal.InvalidProblemError, match="params has 2 columns, but the problem 1"):
        daedal.ensembles.solve_on_gpu(pendulum(), (0.0, 1.0), START, params=np.ones((3, 2)), engine=HostEngine(folder))


# --- what a GPU cannot do ---------------------------------------------------------------------------------------------


def test_without_a_gpu_the_remedy_is_named():
    if importlib.util.find_spec("cupy") is not None:
        pytest.skip("CuPy is installed here")
    with pytest.raises(daedal.InvalidProblemError, match=r"needs CuPy.*daedal\[gpu\].*on='threads'"):
        daedal.solve_many(pendulum(), (0.0, 1.0), START, params={"g": np.array([1.0, 2.0])}, on="gpu")


@pytest.mark.parametrize(
    "options, words",
    [
        ({"method": "radau"}, "method must be 'auto', 'dopri5', 'rosenbrock'"),
        ({"formulation": "ggl"}, "omit formulation"),
        ({"fixed_step": 0.1, "method": "dopri5"}, "omit fixed_step"),
        ({"events": lambda t, q, v: q[0]}, "terminal events only"),
        ({"outputs": lambda sol: sol.y[0, -1]}, "names of state variables"),
    ],
)
def test_what_a_gpu_cannot_do_is_refused_with_the_reason(options, words, monkeypatch):
    monkeypatch.setattr(on_gpu, "Engine", lambda options: HostEngine(None))
    with pytest.raises(daedal.InvalidProblemError, match=words):
        daedal.solve_many(pendulum(), (0.0, 1.0), START, params={"g": np.array([1.0, 2.0])}, on="gpu", **options)


def test_rosenbrock_methods_are_not_for_mechanisms():
    with pytest.raises(daedal.InvalidProblemError, match="mechanisms are integrated by 'dopri5'"):
        gpu_model(pendulum(), checked_settings(method=daedal.methods.Rosenbrock()), outputs=False)


def test_functions_that_cannot_be_traced_are_named():
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [float(str(q[0]))], n_q=1)
    with pytest.raises(daedal.InvalidProblemError, match=r"on='gpu' needs functions that can be traced.*force"):
        gpu_model(system, checked_settings(), outputs=False)


def test_a_matrix_that_depends_on_y_is_named():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [y[0] * yp[0] - 1.0], 1)
    with pytest.raises(daedal.InvalidProblemError, match=r"depends on t, y or y'.*M y' = f"):
        gpu_model(problem, checked_settings(), outputs=False)


@pytest.mark.parametrize("options", [{"precision": "half"}, {"device": -1}, {"device": 1.5}])
def test_options_of_a_gpu_are_checked(options):
    with pytest.raises(daedal.InvalidProblemError, match=next(iter(options))):
        daedal.ensembles.GPU(**options)


# --- order ------------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.integers(0, 10), st.integers(0, 2**32 - 1))
def test_the_order_of_runs_is_a_permutation(count, columns, seed):
    rows = np.random.default_rng(seed).random((count, columns))
    order = neighbours_together(np, [np.zeros((1, 3)), rows], count)
    if columns == 0 or count == 1:
        assert order is None
    else:
        assert sorted(order.tolist()) == list(range(count))


def test_one_parameter_is_sorted_and_two_keep_neighbours():
    rng = np.random.default_rng(0)
    one = rng.random((1000, 1))
    assert np.all(np.diff(one[neighbours_together(np, [one], 1000), 0]) >= 0.0)
    two = rng.random((1000, 2))
    far, near = (
        np.abs(np.diff(rows, axis=0)).sum(axis=1).mean() for rows in (two, two[neighbours_together(np, [two], 1000)])
    )
    assert near < 0.1 * far
