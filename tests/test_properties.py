"""Properties that hold for all inputs: shapes, types, tolerances, intervals, output times, names and parameters."""

import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given, settings
from hypothesis import strategies as st

import daedal

quick = settings(max_examples=40, deadline=None)
thorough = settings(max_examples=150, deadline=None)

finite = st.floats(-1e6, 1e6)
sizes = st.integers(1, 6)


def rates(n):
    return np.linspace(1.0, 2.0, n)


def decays(t, y, yp, p):
    return yp + p * y


def falls(t, y, yp):
    return yp + y


def solve_decays(n=2, t_span=(0.0, 1.0), y0=None, yp0=None, t0=0.0, **options):
    p = rates(n)
    y0 = np.exp(-p * (t_span[0] - t0)) if y0 is None else y0
    problem = daedal.ImplicitDAE(decays, n, params=p)
    return daedal.solve(problem, t_span, (y0, -p * np.asarray(y0, dtype=float)), **options)


# --- shapes and types -----------------------------------------------------------------------------------------------


@quick
@given(n=st.integers(1, 30), count=st.integers(0, 20), dense=st.booleans(), backward=st.booleans())
def test_shapes_of_a_solution(n, count, dense, backward):
    t_span = (1.0, 0.0) if backward else (0.0, 1.0)
    times = np.linspace(*t_span, count)
    sol = solve_decays(n, t_span, t_eval=times, dense_output=dense, rtol=1e-4)
    assert sol.t.shape == (count,)
    assert sol.y.shape == sol.yp.shape == (n, count)
    assert sol.y.dtype == sol.yp.dtype == sol.t.dtype == np.float64
    assert len(sol.names) == n
    assert np.array_equal(sol.t, times)
    assert np.allclose(sol.y, np.exp(-np.outer(rates(n), times)), atol=1e-2)


def strided(values):
    array = np.full(3 * len(values), np.nan)
    array[::3] = values
    return array[::3]


CLOTHES = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "float32": np.float32,
    "long double": np.longdouble,
    "strided": strided,
    "reversed": lambda values: np.array(values[::-1])[::-1],
    "column of a Fortran array": lambda values: np.asfortranarray(np.tile(values, (2, 1)))[1],
    "read-only": lambda values: np.frombuffer(np.array(values).tobytes()),
    "integers": lambda values: [int(v) for v in values],
    "integer array": lambda values: np.array(values, dtype=int),
    "objects": lambda values: np.array(values, dtype=object),
}


@pytest.mark.parametrize("clothes", CLOTHES)
def test_arrays_of_every_kind_mean_the_same(clothes):
    dress = CLOTHES[clothes]
    values = [2.0, 1.0, 4.0]

    def residual(t, y, yp):
        return yp + y if clothes in ("integers", "integer array", "objects") else dress((yp + y).tolist())

    def solve(dress, residual, compile="never"):
        start, slope = dress(values), dress([-v for v in values])
        tolerances = dress([1.0, 1.0, 1.0])
        return daedal.solve_dae(
            residual,
            (0, 2),
            start,
            slope,
            atol=tolerances,
            rtol=1e-3,
            t_eval=dress([0.0, 1.0, 2.0]),
            compile=compile,
            method="dassl",
        )

    plain = solve(list, lambda t, y, yp: yp + y)
    tolerance = 1e-4 if clothes == "float32" else 0.0
    assert np.allclose(solve(dress, residual).y, plain.y, rtol=tolerance, atol=tolerance)
    assert np.allclose(solve(dress, residual, "auto").y, plain.y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["list", "float32", "strided", "sparse", "array"])
def test_dense_jacobians_of_every_kind_mean_the_same(kind, order):
    matrix = np.array([[2.0, 1.0, 0.0], [0.5, 3.0, 1.0], [0.0, 0.25, 4.0]])
    calls = 0

    def jacobian(t, y, yp, cj):
        nonlocal calls
        calls += 1
        result = np.array(matrix + cj * np.eye(3), order=order)
        if kind == "strided":
            return np.repeat(np.repeat(result, 2, axis=0), 2, axis=1)[::2, ::2]
        return {"list": np.ndarray.tolist, "float32": np.float32, "sparse": scipy.sparse.csr_array}.get(kind, np.array)(
            result
        )

    def solve(jacobian):
        start = np.array([1.0, 2.0, 3.0])
        return daedal.solve_dae(
            lambda t, y, yp: yp + matrix @ y, (0.0, 1.0), start, -matrix @ start, jacobian=jacobian, method="dassl"
        )

    sol = solve(jacobian)
    assert calls == sol.stats.jacobian_evaluations + 1  # which was compared with the exact one
    exact = solve(lambda t, y, yp, cj: matrix + cj * np.eye(3))
    assert np.allclose(sol.y[:, -1], exact.y[:, -1], rtol=1e-6 if kind == "float32" else 1e-14)
    assert abs(sol.stats.newton_iterations - exact.stats.newton_iterations) <= (20 if kind == "float32" else 0)


@quick
@given(n=st.integers(1, 12), data=st.data())
def test_every_storage_of_the_matrix_gives_the_same_solution(n, data):
    ml, mu = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    seed = data.draw(st.integers(0, 1000))
    random = np.random.default_rng(seed)
    offset = np.subtract.outer(np.arange(n), np.arange(n))
    inside = (offset <= ml) & (offset >= -mu)
    matrix = np.where(inside, random.uniform(-1.0, 1.0, (n, n)), 0.0) + 2.0 * n * np.eye(n)
    y0 = random.uniform(-1.0, 1.0, n)

    def band(t, y, yp, cj):
        g = matrix + cj * np.eye(n)
        result = np.full((ml + mu + 1, n), np.nan)  # what lies outside the matrix is not looked at
        for i, j in zip(*np.nonzero(inside), strict=True):
            result[mu + i - j, j] = g[i, j]
        return result

    def solve(**problem):
        dae = daedal.ImplicitDAE(lambda t, y, yp: yp + matrix @ y, n, **problem)
        return daedal.solve(dae, (0.0, 0.2), (y0, -matrix @ y0), rtol=1e-6, atol=1e-8).y[:, -1]

    reference = solve()
    pattern = scipy.sparse.csc_array(inside)
    for problem in (
        {"bandwidth": (ml, mu)},
        {"bandwidth": (ml, mu), "jacobian": band},
        {"sparsity": pattern},
        {"sparsity": pattern, "jacobian": lambda t, y, yp, cj: scipy.sparse.coo_array(matrix + cj * np.eye(n))},
        {"jacobian": lambda t, y, yp, cj: matrix + cj * np.eye(n)},
    ):
        assert np.allclose(solve(**problem), reference, rtol=1e-5, atol=1e-7)


# --- intervals and output times -------------------------------------------------------------------------------------


@quick
@given(start=st.floats(-1e3, 1e3), length=st.floats(1e-3, 5.0), backward=st.booleans())
def test_the_whole_interval_is_covered_and_never_left(start, length, backward):
    end = start - length if backward else start + length
    low, high = min(start, end), max(start, end)
    seen = []

    def residual(t, y, yp):
        seen.append(t)
        return yp + y

    sol = daedal.solve_dae(residual, (start, end), [1.0], [-1.0])
    assert low <= min(seen)
    assert max(seen) <= high
    assert sol.t[0] == start
    assert sol.t[-1] == end
    assert np.all(np.sign(end - start) * np.diff(sol.t) > 0.0)
    assert np.allclose(sol.y[0], np.exp(start - sol.t), rtol=2e-4)


@quick
@given(times=st.lists(st.floats(0.0, 1.0), max_size=12, unique=True), stop=st.booleans())
def test_output_times_are_hit_exactly_and_do_not_change_the_solution(times, stop):
    times = sorted(times)
    options = {} if stop else {"t_stop": math.inf}
    sol = solve_decays(t_eval=times, **options)
    free = solve_decays(**options)
    assert sol.t.tolist() == times
    assert sol.stats.residual_evaluations == free.stats.residual_evaluations
    assert np.allclose(sol.y, free(times), rtol=1e-13)


@thorough
@given(times=st.lists(st.floats(-0.5, 1.5) | st.just(math.nan), max_size=6))
@example([0.0, 1.0])
@example([-0.0, 1.0])
@example([0.0, math.nextafter(1.0, 2.0)])
def test_output_times_are_either_used_or_refused(times):
    array = np.array(times, dtype=float)
    valid = bool(np.all((array >= 0.0) & (array <= 1.0)) and np.all(np.diff(array) > 0.0))
    if valid:
        assert solve_decays(1, t_eval=times, rtol=1e-3).t.tolist() == times
    else:
        with pytest.raises(daedal.InvalidProblemError, match="t_eval"):
            solve_decays(1, t_eval=times, rtol=1e-3)


@thorough
@given(
    t0=st.floats(allow_nan=True, allow_infinity=True),
    t1=st.floats(allow_nan=True, allow_infinity=True),
    given_slope=st.booleans(),
)
@example(0.0, 5e-324, True)
@example(-1.7e308, 1.7e308, True)
@example(1.0, math.nextafter(1.0, 2.0), True)
@example(0.0, -0.0, True)
@example(0.0, 1e200, False)
@example(0.0, 1e-200, False)
def test_any_interval_is_solved_or_refused(t0, t1, given_slope):
    try:
        slope = [0.0] if given_slope else None
        sol = daedal.solve_dae(lambda t, y, yp: yp, (t0, t1), [1.0], slope, max_steps=1000)
    except daedal.InvalidProblemError as error:
        assert "t_span" in str(error)
    except daedal.DaedalError as error:
        assert not 1e-150 < abs(t1 - t0) < 1e150, str(error)
    else:
        assert sol.t[-1] == t1
        assert np.all(sol.y == 1.0)


# --- tolerances and scales ------------------------------------------------------------------------------------------


@quick
@given(rtol=st.floats(1e-10, 1e-2), atol=st.floats(1e-12, 1e-2))
def test_the_error_follows_the_tolerances(rtol, atol):
    sol = solve_decays(2, rtol=rtol, atol=atol)
    error = np.max(np.abs(sol.y - np.exp(-np.outer(rates(2), sol.t))))
    assert error <= 100.0 * (rtol + atol)


@quick
@given(rtol=st.floats(allow_nan=True, allow_infinity=True), atol=st.floats(allow_nan=True, allow_infinity=True))
def test_any_tolerance_is_used_or_refused(rtol, atol):
    try:
        sol = solve_decays(1, (0.0, 0.01), rtol=rtol, atol=atol, max_steps=200)
    except daedal.InvalidProblemError as error:
        assert "rtol" in str(error) or "atol" in str(error)
    except daedal.IntegrationError as error:
        assert rtol + atol < 1e-13, str(error)
    else:
        assert 0.0 < rtol < math.inf
        assert 0.0 <= atol < math.inf
        assert np.all(np.isfinite(sol.y))


@quick
@given(n=st.integers(1, 5), data=st.data())
def test_equal_vector_tolerances_are_the_scalar_ones(n, data):
    rtol, atol = data.draw(st.floats(1e-9, 1e-3)), data.draw(st.floats(1e-12, 1e-3))
    assert np.array_equal(
        solve_decays(n, rtol=rtol, atol=atol).y, solve_decays(n, rtol=[rtol] * n, atol=np.full(n, atol)).y
    )


@quick
@given(power=st.integers(-990, 990), with_slope=st.booleans())
@example(power=-990, with_slope=False)
@example(power=990, with_slope=False)
def test_scaling_the_unknowns_by_a_power_of_two_scales_the_solution(power, with_slope):
    scale = 2.0**power

    def solve(scale):
        slope = [-scale] if with_slope else None
        return daedal.solve_dae(lambda t, y, yp: yp + y, (0.0, 1.0), [scale], slope, atol=1e-9 * scale)

    sol = solve(scale)
    assert abs(sol.y[0, -1] / scale - math.exp(-1.0)) < 1e-5
    if with_slope:
        assert np.array_equal(sol.y / scale, solve(1.0).y)


@quick
@given(power=st.integers(-450, 450))
def test_scaling_time_by_a_power_of_two_scales_the_steps(power):
    unit = 2.0**power

    def solve(unit):
        return daedal.solve_dae(lambda t, y, yp: unit * yp + y, (0.0, unit), [1.0], [-1.0 / unit])

    sol = solve(unit)
    assert np.array_equal(sol.t / unit, solve(1.0).t)
    assert np.array_equal(sol.y, solve(1.0).y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("slope", [True, False])
@pytest.mark.parametrize("start", [0.0, 1e-300, 1.0, 1e300])
def test_nothing_overflows_or_divides_by_zero_on_the_way(start, slope):
    atol = 1e-9 * (start or 1.0)
    with np.errstate(all="raise"):
        sol = daedal.solve_dae(lambda t, y, yp: yp + y, (0.0, 1.0), [start], [-start] if slope else None, atol=atol)
    assert abs(sol.y[0, -1] - start * math.exp(-1.0)) <= 1e-5 * start


@quick
@given(y0=st.lists(finite, min_size=1, max_size=4))
def test_a_linear_problem_is_solved_from_any_start(y0):
    sol = solve_decays(len(y0), y0=y0, rtol=1e-6, atol=1e-6)
    exact = np.exp(-rates(len(y0))) * y0
    assert np.allclose(sol.y[:, -1], exact, rtol=1e-3, atol=1e-3 * max(1e-3, np.max(np.abs(y0))))


# --- names and parameters -------------------------------------------------------------------------------------------


@thorough
@given(names=st.lists(st.text(max_size=8), max_size=5), n=st.integers(1, 5))
def test_any_names_are_kept_or_refused(names, n):
    if len(names) == n and len(set(names)) == n:
        problem = daedal.ImplicitDAE(decays, n, names=names, params=rates(n))
        assert problem.names == tuple(names)
        sol = daedal.solve(problem, (0.0, 0.01), (np.ones(n), -rates(n)), rtol=1e-2)
        assert sol.names == tuple(names)
        for i, name in enumerate(names):
            assert np.array_equal(sol[name], sol.y[i])
    else:
        with pytest.raises(daedal.InvalidProblemError, match="names"):
            daedal.ImplicitDAE(falls, n, names=names)


@given(names=st.lists(st.from_regex(r"[a-z]\w{0,5}", fullmatch=True), min_size=1, max_size=5, unique=True))
@pytest.mark.parametrize("separator", [" ", ",", ", ", "  "])
def test_names_may_be_written_in_one_string(separator, names):
    assert daedal.ImplicitDAE(falls, len(names), names=separator.join(names)).names == tuple(names)


@given(mask=st.lists(st.booleans(), min_size=1, max_size=8))
def test_masks_indices_and_names_say_the_same(mask):
    n = len(mask)
    names = [f"v{i}" for i in range(n)]
    indices = [i for i in range(n) if mask[i]]
    spoken = [names[i] for i in indices]
    for algebraic in (mask, np.array(mask), indices, np.array(indices, dtype=int), [i - n for i in indices], spoken):
        assert daedal.ImplicitDAE(falls, n, algebraic=algebraic, names=names).algebraic.tolist() == mask


@given(n=sizes, entries=st.lists(st.integers(-8, 8), max_size=6))
def test_any_list_of_indices_is_used_or_refused(n, entries):
    if all(-n <= i < n for i in entries):
        mask = daedal.ImplicitDAE(falls, n, algebraic=entries).algebraic
        assert np.flatnonzero(mask).tolist() == sorted({i % n for i in entries})
    else:
        with pytest.raises(daedal.InvalidProblemError, match="algebraic"):
            daedal.ImplicitDAE(falls, n, algebraic=entries)


@given(n=sizes, ml=st.integers(-2, 8), mu=st.integers(-2, 8))
def test_any_bandwidth_is_used_or_refused(n, ml, mu):
    if 0 <= ml < n and 0 <= mu < n:
        assert daedal.ImplicitDAE(falls, n, bandwidth=(ml, mu)).bandwidth == (ml, mu)
    else:
        with pytest.raises(daedal.InvalidProblemError, match="bandwidth"):
            daedal.ImplicitDAE(falls, n, bandwidth=(ml, mu))


@pytest.mark.parametrize(
    "params",
    [0, 0.0, False, "", [], {}, (), {"rate": 1.0}, object(), lambda: 1.0],
    ids=lambda value: type(value).__name__,
)
def test_any_object_reaches_python_functions_as_it_is(params):
    def residual(t, y, yp, p):
        assert p is params
        return yp + y

    def jacobian(t, y, yp, cj, p):
        assert p is params
        return [[cj + 1.0]]

    seen = []

    def event(t, y, yp, p):
        seen.append(p)
        return y[0] - 0.5

    sol = daedal.solve_dae(residual, (0.0, 1.0), [1.0], [-1.0], jacobian=jacobian, params=params, events=event)
    assert sol.events[0].name == "event"
    assert seen
    assert all(p is params for p in seen)


@quick
@given(n_y=st.integers(1, 4), n_z=st.integers(1, 4), given_z=st.booleans())
def test_semi_explicit_problems_of_any_size(n_y, n_z, given_z):
    coupling = np.eye(n_z, n_y)

    def slope(t, y, z):
        assert y.shape == (n_y,)
        assert z.shape == (n_z,)
        return -y

    problem = daedal.SemiExplicitDAE(slope, lambda t, y, z: z - coupling @ y, n_y, n_z)
    y0 = np.arange(1.0, n_y + 1)
    sol = daedal.solve(problem, (0.0, 1.0), (y0, coupling @ y0 if given_z else None))
    assert sol.y.shape[0] == n_y + n_z
    assert np.allclose(sol.y[:n_y, -1], y0 * math.exp(-1.0), rtol=1e-4)
    assert np.allclose(sol.z, coupling @ sol.y[:n_y], atol=1e-8)


# --- whatever a function does, whenever it does it -------------------------------------------------------------------


class OfTheUser(Exception):
    pass


def misbehaving(function, misdeed, after, for_ever):
    calls = 0

    def wrapped(*arguments):
        nonlocal calls
        calls += 1
        result = function(*arguments)
        if calls < after or (calls > after and not for_ever):
            return result
        if isinstance(misdeed, BaseException):
            raise misdeed
        return misdeed(result)

    return wrapped


def nothing(result):
    return None


def not_a_number(result):
    return np.full(np.shape(result), np.nan)


def infinite(result):
    return np.full(np.shape(result), np.inf)


def one_too_many(result):
    return np.zeros(np.size(result) + 1)


STORAGES = {
    "dense": lambda n: {},
    "banded": lambda n: {"bandwidth": (0, 0)},
    "sparse": lambda n: {"sparsity": scipy.sparse.eye_array(n)},
    "gmres": lambda n: {},
}


@thorough
@given(
    n=st.sampled_from([1, 3, 13]),  # the loops for small systems, and LAPACK
    storage=st.sampled_from(sorted(STORAGES)),
    place=st.sampled_from(["residual", "jacobian", "event", "preconditioner"]),
    misdeed=st.sampled_from(
        [
            OfTheUser("here"),
            daedal.Unevaluable("here"),
            KeyboardInterrupt(),
            nothing,
            not_a_number,
            infinite,
            one_too_many,
        ]
    ),
    after=st.integers(1, 60),
    for_ever=st.booleans(),
)
def test_whatever_a_function_does_ends_in_a_solution_or_in_the_right_error(n, storage, place, misdeed, after, for_ever):
    p = rates(n)

    def spoil(name, function):
        return misbehaving(function, misdeed, after, for_ever) if name == place else function

    jacobians = {
        "dense": lambda t, y, yp, cj: np.diag(cj + p),
        "banded": lambda t, y, yp, cj: (cj + p)[None],
        "sparse": lambda t, y, yp, cj: cj + p,
    }
    problem = STORAGES[storage](n)
    options = {}
    if place == "jacobian" and storage in jacobians:
        problem["jacobian"] = spoil("jacobian", jacobians[storage])
    if place == "event":
        event = spoil("event", lambda t, y: np.array([y[0] - 0.5]))
        options["events"] = lambda t, y: event(t, y)
    if storage == "gmres":
        solve = spoil("preconditioner", lambda data, r: r / data)
        preconditioner = daedal.linear_solvers.Preconditioner(solve, lambda t, y, yp, cj: cj + p)
        options |= {"method": "dassl", "linear_solver": "gmres", "preconditioner": preconditioner}
    dae = daedal.ImplicitDAE(spoil("residual", lambda t, y, yp: yp + p * y), n, **problem)
    try:
        sol = daedal.solve(dae, (0.0, 1.0), (np.ones(n), -p), **options)
    except OfTheUser as error:
        assert error is misdeed
        return
    except KeyboardInterrupt as interrupt:
        assert isinstance(misdeed, KeyboardInterrupt)
        sol = interrupt.solution
        if sol is None:
            assert after <= 3  # while the problem was looked at, before the integration
            return
    except daedal.Unevaluable as error:
        assert error is misdeed
        assert place == "event"
        return
    except daedal.InvalidProblemError:
        assert not isinstance(misdeed, (OfTheUser, KeyboardInterrupt))
        return
    except daedal.IntegrationError as error:
        assert for_ever
        assert misdeed in (not_a_number, infinite) or isinstance(misdeed, daedal.Unevaluable)
        sol = error.solution
    assert sol.status == "interrupted" or not isinstance(misdeed, KeyboardInterrupt) or sol.success
    assert np.all(np.diff(sol.t) > 0.0)
    assert np.allclose(sol.y, np.exp(-np.outer(p, sol.t)), atol=1e-4)


# --- nothing of an earlier run shows in a later one ------------------------------------------------------------------

OPTIONS = [
    {},
    {"t_eval": [0.0, 0.3, 1.0]},
    {"method": "dassl", "fixed_step": 0.05, "max_order": 1},
    {"method": "dassl", "fixed_step": 0.05, "max_order": 3},
    {"events": lambda t, y: y[0] - 0.5},
    {"events": daedal.Event(lambda t, y: [y[0] - 0.5, y[1] - 0.3], terminal=True)},
    {"method": "dassl", "error_test": [0], "max_order": 2},
    {"method": "dassl", "error_test": "filtered"},
    {"method": "dassl", "variable_index": [1, 2], "dense_output": False},
    {"method": "dassl", "newton_weights": [0, 1], "nonnegative": True},
    {"rtol": 1e-3, "t_stop": math.inf},
    {"max_steps": 12},
    {"wall": 0.0},
    {"wall": 0.3},
    {"crash": 0.3},
    {"method": "dassl", "interrupt": 0.3, "max_order": 4},
]


@thorough
@given(
    runs=st.lists(st.sampled_from(OPTIONS), min_size=2, max_size=4),
    structure=st.sampled_from(
        [{}, {"bandwidth": (1, 0)}, {"jacobian": lambda t, y, yp, cj: [[cj + 1.0, 0.0], [-1.0, 1.0]]}]
    ),
)
def test_runs_of_one_problem_do_not_affect_each_other(runs, structure):
    state = {}

    def residual(t, y, yp):
        if t > state.get("wall", math.inf):
            return [math.nan, math.nan]
        if t > state.get("crash", math.inf):
            raise OfTheUser("crash")
        if t > state.get("interrupt", math.inf):
            raise KeyboardInterrupt
        return [yp[0] + y[0], y[1] - y[0]]

    def outcome(problem, options):
        state.clear()
        options = dict(options)
        state.update({key: options.pop(key) for key in ("wall", "crash", "interrupt") if key in options})
        try:
            sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 1.0], [-1.0, -1.0]), **options)
        except OfTheUser as error:
            return str(error)
        except (daedal.IntegrationError, KeyboardInterrupt) as error:
            sol = error.solution
        counts = [sol.stats[key] for key in sol.stats.keys() if key not in ("seconds", "first_use")]
        fired = [(record.t, record.index) for record in sol.events]
        return sol.message, counts, fired, sol.t.tolist(), sol.y.tolist(), sol.yp.tolist()

    shared = daedal.ImplicitDAE(residual, 2, **structure)
    for options in runs:
        assert outcome(shared, options) == outcome(daedal.ImplicitDAE(residual, 2, **structure), options)


# --- inconsistent values --------------------------------------------------------------------------------------------


@quick
@given(wrong=st.integers(0, 3), by=st.floats(2.0, 1e3) | st.floats(-1e3, -2.0))
def test_the_violated_equation_is_named(wrong, by):
    def residual(t, y, yp):
        return [yp[0] + y[0], y[1] - y[0], y[2] - 2.0 * y[0], y[3] - 3.0 * y[0]]

    y0, yp0 = np.array([1.0, 1.0, 2.0, 3.0]), np.array([-1.0, -1.0, -2.0, -3.0])
    (yp0 if wrong == 0 else y0)[wrong] += by
    with pytest.raises(daedal.InconsistentInitialError) as caught:
        daedal.solve_dae(residual, (0.0, 1.0), y0, yp0)
    assert caught.value.equations == (wrong,)
    corrected = daedal.solve_dae(residual, (0.0, 1.0), y0, yp0, correct_initial=True)
    assert np.allclose(corrected.y[:, 0], [1.0, 1.0, 2.0, 3.0], rtol=1e-6)


@quick
@given(rate=st.floats(1e-3, 1e6), y0=st.floats(-10.0, 10.0), guess=st.floats(-3.0, 3.0))
def test_consistent_values_satisfy_the_equations(rate, y0, guess):
    def residual(t, y, yp):
        return [yp[0] + rate * y[0] - y[1], y[1] ** 3 + y[1] - y[0] - math.cos(t)]

    y, yp = daedal.consistent_initial(daedal.ImplicitDAE(residual, 2), 0.0, ([y0, guess], None))
    assert y[0] == y0
    scale = 1.0 + rate * abs(y0) + abs(y[1]) ** 3
    assert np.max(np.abs(residual(0.0, y, yp))) <= 1e-8 * scale
