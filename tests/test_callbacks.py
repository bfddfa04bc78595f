"""User functions under attack: exceptions, interrupts, signals, threads, recursion, and changes of their arguments."""

import json
import math
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
import scipy.sparse

import daedal
from interrupts import computed_until

N = 4
RATES = np.arange(1.0, N + 1)
STRUCTURE = scipy.sparse.eye_array(N)


def decay(t, y, yp):
    return yp + y


def decays(t, y, yp):
    return yp + RATES * y


def solve_decay(residual=decay, t_span=(0.0, 1.0), y0=(1.0,), yp0=(-1.0,), **options):
    return daedal.solve_dae(residual, t_span, y0, yp0, **options)


WELL, RAISES, UNEVALUABLE, NOT_A_NUMBER, INFINITE, TOO_LONG, CHANGES, CHANGES_AND_RAISES = range(8)


@numba.njit
def compiled_decay(t, y, yp, p):
    """y' = -y, with the misbehaviour p[0] for p[1] < t < p[2]."""
    result = yp + y
    if p[0] == CHANGES:
        y[:] = 99.0
        yp[:] = 99.0
    if p[1] < t < p[2]:
        if p[0] == RAISES:
            raise ValueError("compiled, and late")
        if p[0] == UNEVALUABLE:
            raise daedal.Unevaluable("compiled, and not here")
        if p[0] == NOT_A_NUMBER:
            result[0] = np.nan
        if p[0] == INFINITE:
            result[0] = np.inf
        if p[0] == TOO_LONG:
            return np.zeros(y.size + 1)
        if p[0] == CHANGES_AND_RAISES:
            if y[0] != 99.0:
                y[0] = 99.0
                raise ValueError("compiled, changed and late")
    return result


def solve_compiled(behaviour=WELL, window=(0.5, math.inf), **options):
    return solve_decay(compiled_decay, params=np.array([behaviour, *window]), **options)


# --- exceptions -----------------------------------------------------------------------------------------------------


class OfTheUser(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


EXCEPTIONS = [
    ValueError("bad value"),
    OfTheUser(7, "with two arguments"),
    ZeroDivisionError("division"),
    StopIteration(3),
    MemoryError("much"),
    RuntimeError("Factor is exactly singular"),  # also SuperLU's words, which Daedal looks for
    daedal.InvalidProblemError("raised by a user"),
    SystemExit(3),
    GeneratorExit(),
    BaseException("base"),
]


def late(function, exception, after):
    """`function`, raising at its call number `after`."""
    calls = 0

    def wrapped(*arguments):
        nonlocal calls
        calls += 1
        if calls >= after:
            raise exception
        return function(*arguments)

    return wrapped


def root_mean_square(v, w):
    return float(np.sqrt(np.mean((v / w) ** 2)))


def decays_with(**options):
    problem = {name: options.pop(name) for name in ("residual", "jacobian", "sparsity", "bandwidth") if name in options}
    residual = problem.pop("residual", decays)
    return daedal.solve(daedal.ImplicitDAE(residual, N, **problem), (0.0, 1.0), (np.ones(N), -RATES), **options)


def dense(t, y, yp, cj):
    return np.diag(cj + RATES)


def band(t, y, yp, cj):
    return np.array([cj + RATES])


def entries(t, y, yp, cj):
    return scipy.sparse.diags_array(cj + RATES)


def use_gmres(residual=decays, solve=lambda data, r: r / data, setup=lambda t, y, yp, cj: cj + RATES):
    return decays_with(
        residual=residual,
        method="dassl",
        linear_solver="gmres",
        preconditioner=daedal.linear_solvers.Preconditioner(solve, setup),
        rtol=1e-8,
    )


PLACES = {
    "residual": lambda bad: decays_with(residual=bad(decays, 60)),
    "residual at the start": lambda bad: decays_with(residual=bad(decays, 1)),
    "residual of fixed steps": lambda bad: decays_with(
        residual=bad(decays, 20), fixed_step=0.1, method="dassl", max_order=1
    ),
    "residual of gmres": lambda bad: use_gmres(residual=bad(decays, 60)),
    "residual, banded": lambda bad: decays_with(residual=bad(decays, 60), bandwidth=(0, 0)),
    "residual, sparse": lambda bad: decays_with(residual=bad(decays, 60), sparsity=STRUCTURE),
    "jacobian": lambda bad: decays_with(jacobian=bad(dense, 2)),
    "banded jacobian": lambda bad: decays_with(jacobian=bad(band, 2), bandwidth=(0, 0)),
    "sparse jacobian": lambda bad: decays_with(jacobian=bad(entries, 2), sparsity=STRUCTURE),
    "event": lambda bad: decays_with(events=daedal.Event(bad(lambda t, y: y[0] - 0.5, 20))),
    "norm": lambda bad: decays_with(method="dassl", norm=bad(root_mean_square, 50)),
    "preconditioner's solve": lambda bad: use_gmres(solve=bad(lambda data, r: r / data, 20)),
    "preconditioner's setup": lambda bad: use_gmres(setup=bad(lambda t, y, yp, cj: cj + RATES, 3)),
}


def event_wrapper(function, exception, after):
    wrapped = late(function, exception, after)
    return lambda t, y: wrapped(t, y)


@pytest.mark.parametrize("place", PLACES)
def test_an_exception_arrives_unchanged_from_every_function(place):
    wrap = event_wrapper if place == "event" else late
    mine = OfTheUser(7, "with two arguments")
    with pytest.raises(OfTheUser) as caught:
        PLACES[place](lambda function, after: wrap(function, mine, after))
    assert caught.value is mine
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "wrapped"


@pytest.mark.parametrize("exception", EXCEPTIONS, ids=lambda e: type(e).__name__)
def test_an_exception_of_any_class_arrives_unchanged(exception):
    with pytest.raises(type(exception)) as caught:
        solve_decay(late(decay, exception, 30))
    assert caught.value is exception
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "wrapped"


def test_the_cause_of_an_exception_is_kept():
    def residual(t, y, yp):
        if t > 0.5:
            try:
                return {}["missing"]
            except KeyError as error:
                raise OfTheUser(1, "outer") from error
        return yp + y

    with pytest.raises(OfTheUser) as caught:
        solve_decay(residual)
    assert isinstance(caught.value.__cause__, KeyError)


def test_endless_recursion_in_a_residual():
    def residual(t, y, yp):
        return residual(t, y, yp) if t > 0.5 else yp + y

    with pytest.raises(RecursionError):
        solve_decay(residual)


def test_an_exception_in_a_norm_stops_the_run_at_once():
    for after in range(40, 50):
        calls = 0

        def norm(v, w, after=after):
            nonlocal calls
            calls += 1
            if calls == after:
                raise OfTheUser(1, "once")
            return root_mean_square(v, w)

        with pytest.raises(OfTheUser):
            solve_decay(method="dassl", norm=norm)
        assert calls <= after + 20


def test_the_next_run_after_an_exception_is_not_affected():
    before = solve_decay()
    with pytest.raises(OfTheUser):
        solve_decay(late(decay, OfTheUser(1, "x"), 30))
    after = solve_decay()
    assert np.array_equal(before.y, after.y)
    assert before.stats.residual_evaluations == after.stats.residual_evaluations


def test_an_exception_in_compiled_code_arrives_with_its_line():
    with pytest.raises(ValueError, match=r"^compiled, and late$") as caught:
        solve_compiled(RAISES)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert last.name == "compiled_decay"
    assert last.filename == __file__


def test_an_exception_in_compiled_code_that_changed_its_arguments_arrives():
    with pytest.raises(ValueError, match=r"^compiled, changed and late$"):
        solve_compiled(CHANGES_AND_RAISES)


# --- points that cannot be evaluated --------------------------------------------------------------------------------


def misbehave_python(behaviour, window):
    def residual(t, y, yp):
        if window[0] < t < window[1]:
            if behaviour == UNEVALUABLE:
                raise daedal.Unevaluable("not here")
            return [math.nan if behaviour == NOT_A_NUMBER else math.inf]
        return yp + y

    return residual


def solve_either(kind, behaviour, window):
    if kind == "compiled":
        return solve_compiled(behaviour, window)
    return solve_decay(misbehave_python(behaviour, window), method="dassl")


RECOVERABLE = pytest.mark.parametrize("behaviour", [UNEVALUABLE, NOT_A_NUMBER, INFINITE])
EITHER = pytest.mark.parametrize("kind", ["python", "compiled"])


@EITHER
@RECOVERABLE
def test_a_step_is_repeated_where_the_residual_cannot_be_evaluated(kind, behaviour):
    undisturbed = solve_decay(method="dassl")
    hit = undisturbed.t[25]
    sol = solve_either(kind, behaviour, (hit - 1e-6, hit + 1e-6))
    assert sol.success
    assert sol.stats.newton_failures > undisturbed.stats.newton_failures
    assert not np.any(np.abs(sol.t - hit) < 1e-6)
    assert abs(sol.y[0, -1] - math.exp(-1.0)) < 1e-5


@EITHER
@RECOVERABLE
def test_a_run_that_meets_a_wall_says_where_and_keeps_what_was_computed(kind, behaviour):
    with pytest.raises(daedal.IntegrationError, match=r"could not be evaluated .*\n.*t = 0\.5") as caught:
        solve_either(kind, behaviour, (0.5, math.inf))
    sol = caught.value.solution
    assert 0.49 < sol.t[-1] <= 0.5
    assert np.allclose(sol.y[0], np.exp(-sol.t), rtol=1e-5)
    assert abs(sol(0.3)[0] - math.exp(-0.3)) < 1e-5
    if behaviour == UNEVALUABLE:
        assert "not here" in str(caught.value)


def test_unevaluable_in_a_jacobian_is_recoverable():
    calls = 0

    def jacobian(t, y, yp, cj):
        nonlocal calls
        calls += 1
        if calls == 5:
            raise daedal.Unevaluable("not this time")
        return [[cj + 1.0]]

    sol = solve_decay(jacobian=jacobian, method="dassl")
    assert sol.success
    assert sol.stats.newton_failures >= 1


@pytest.mark.parametrize("yp0", [None, (1.0,)])
@pytest.mark.parametrize("start", [0.0, 1e-8])
def test_a_residual_with_a_boundary_close_by_is_not_evaluated_far_beyond_it(start, yp0):
    def residual(t, y, yp):
        if y[0] < 0.0:
            raise daedal.Unevaluable("below the ground")
        return [yp[0] - 1.0 - math.sqrt(y[0])]

    sol = solve_decay(residual, y0=[start], yp0=None if yp0 is None else [1.0 + math.sqrt(start)])
    assert sol.success
    assert abs(2.0 * (math.sqrt(sol.y[0, -1]) - math.log(1.0 + math.sqrt(sol.y[0, -1]))) - 1.0) < 1e-3


def test_a_missing_derivative_is_found_without_leaving_the_domain_of_the_residual():
    sol = solve_decay(lambda t, y, yp: [yp[0] - math.sqrt(y[0])], y0=[1e-8], yp0=None)
    assert abs(sol.y[0, -1] - (0.5 + 1e-4) ** 2) < 1e-5


@pytest.mark.parametrize("yp0", [None, (1.0, 0.0)])
@pytest.mark.parametrize("index", [1, 2])
def test_no_function_is_called_outside_the_interval(index, yp0):
    def residual(t, y, yp):
        if not 0.0 <= t <= 1.0:
            raise ValueError(f"called at t = {t}")
        return [yp[0] - y[1], y[0] - math.sin(t) if index == 2 else y[0] ** 2 + y[1] ** 2 - 1.0]

    sol = daedal.solve_dae(residual, (0.0, 1.0), [0.0, 1.0], yp0, method="dassl", error_test=[0])
    assert abs(sol.y[0, -1] - math.sin(1.0)) < 1e-4


def test_a_search_for_initial_values_that_meets_nan_is_solved_or_told(capfd):
    def residual(t, y, yp):  # index 2, not defined for t < 0
        with np.errstate(invalid="ignore"):
            return [yp[0] - y[1], y[0] - t * np.sqrt(t)]

    try:
        sol = daedal.solve_dae(residual, (0.0, 1.0), [0.0, 0.0], None, method="dassl", error_test=[0])
    except daedal.DaedalError as error:
        assert "t = 0" in str(error)
    else:
        assert abs(sol.y[0, -1] - 1.0) < 1e-3
    assert capfd.readouterr().out == ""  # no complaints of LAPACK


def test_an_algebraic_start_at_the_boundary_of_the_constraint():
    def constraint(t, y, z):
        if z[0] > 1.0:
            raise daedal.Unevaluable("z must not exceed 1")
        return [z[0] - y[0]]

    problem = daedal.SemiExplicitDAE(lambda t, y, z: -z, constraint, 1, 1)
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0], [1.0]))
    assert abs(sol.z[0, -1] - math.exp(-1.0)) < 1e-5


@pytest.mark.parametrize("raised", [daedal.Unevaluable("not here"), FloatingPointError("not here")])
def test_a_finished_run_is_not_lost_to_the_evaluation_of_its_drift(raised):
    def constraint(t, y, z):
        if abs(t - 0.5) < 1e-9:  # between two steps, at an output time
            raise raised
        return [z[0] - y[0]]

    problem = daedal.SemiExplicitDAE(lambda t, y, z: -z, constraint, 1, 1)
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0], [1.0]), t_eval=[0.5, 1.0])
    assert sol.success
    assert sol.drift["constraint"] < 1e-8


# --- arguments are copies, results are taken over --------------------------------------------------------------------


def vandal(function):
    def wrapped(t, *arguments):
        result = np.array(function(t, *arguments), dtype=float)
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                argument.fill(99.0)
        return result

    return wrapped


@pytest.mark.parametrize("options", [{}, {"method": "dassl", "fixed_step": 0.1, "max_order": 1}, {"yp0": None}])
def test_a_residual_may_change_its_arguments(options):
    honest = solve_decay(**options, compile="never")
    assert np.array_equal(solve_decay(vandal(decay), **options).y, honest.y)


def test_a_compiled_residual_may_change_its_arguments():
    assert np.array_equal(solve_compiled(CHANGES).y, solve_compiled(WELL).y)


def test_jacobian_event_and_norm_may_change_their_arguments():
    options = {"jacobian": dense, "events": lambda t, y, yp: y[0] - 0.5, "norm": root_mean_square, "method": "dassl"}
    honest = decays_with(**options)
    norm = vandal(lambda t, v, w: root_mean_square(v, w))
    options = {
        "jacobian": vandal(dense),
        "events": lambda t, y, yp: vandal(lambda t, y, yp: y[0] - 0.5)(t, y, yp)[()],
        "norm": lambda v, w: norm(0.0, v, w),
        "method": "dassl",
    }
    spoiled = decays_with(**options)
    assert np.array_equal(spoiled.y, honest.y)
    assert spoiled.events[0].t == honest.events[0].t


def test_a_preconditioner_may_change_its_arguments():
    honest = use_gmres()

    def setup(t, y, yp, cj):
        y.fill(99.0)
        yp.fill(99.0)
        return cj + RATES

    def solve(data, r):
        r /= data
        return r

    assert np.array_equal(use_gmres(solve=solve, setup=setup).y, honest.y)


def test_a_residual_may_return_its_argument_or_the_same_array_every_time():
    out = np.empty(1)
    honest = solve_decay(compile="never")
    assert np.array_equal(solve_decay(lambda t, y, yp: np.add(y, yp, out=y)).y, honest.y)
    assert np.array_equal(solve_decay(lambda t, y, yp: np.add(y, yp, out=out)).y, honest.y)


def test_arguments_kept_by_a_residual_keep_their_values():
    seen = []

    def residual(t, y, yp):
        seen.append((t, y, y.copy()))
        return yp + y

    solve_decay(residual)
    assert len(seen) > 50
    assert all(np.array_equal(kept, copy) for _, kept, copy in seen)


def test_the_arrays_of_the_caller_are_not_changed():
    y0, yp0, rtol, t_eval = np.array([1.0]), np.array([-1.0]), np.array([1e-6]), np.linspace(0.0, 1.0, 3)
    params = np.array([WELL, 0.5, math.inf])
    copies = [a.copy() for a in (y0, yp0, rtol, t_eval, params)]
    sol = daedal.solve_dae(compiled_decay, (0.0, 1.0), y0, yp0, rtol=rtol, t_eval=t_eval, params=params)
    sol.y.fill(0.0)
    sol.t.fill(0.0)
    assert all(np.array_equal(a, b) for a, b in zip((y0, yp0, rtol, t_eval, params), copies, strict=True))


@EITHER
def test_a_wrong_length_later_in_the_run(kind):
    with pytest.raises(daedal.InvalidProblemError, match=r"residual returned .*shape \(2,\); expected \(1,\)"):
        if kind == "compiled":
            solve_compiled(TOO_LONG)
        else:
            solve_decay(lambda t, y, yp: yp + y if t < 0.5 else np.zeros(2))


@pytest.mark.parametrize("result", [None, "late", [None, 1.0], [1j]])
def test_a_wrong_type_later_in_the_run(result):
    with pytest.raises(daedal.InvalidProblemError, match="residual returned"):
        solve_decay(lambda t, y, yp: yp + y if t < 0.5 else result)


# --- compiled functions of the wrong kind ---------------------------------------------------------------------------


def test_a_compiled_function_with_the_wrong_number_of_arguments():
    with pytest.raises(daedal.InvalidProblemError, match="residual has the arguments"):
        solve_decay(compiled_decay)  # takes p, but there are no params


@pytest.mark.parametrize("params", [{"a": 1.0}, "abc", [1j], [[1.0], [2.0, 3.0]], object(), np.array([1j, 0.0, 0.0])])
def test_params_of_a_compiled_function_must_be_floats(params):
    with pytest.raises(daedal.InvalidProblemError, match="params"):
        solve_decay(compiled_decay, params=params)


@pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")
@pytest.mark.parametrize("params", [[0, 1, 2], (0.0, 1.0, 2.0), np.array([0, 1, 2]), np.float32([0, 1, 2])])
def test_params_of_a_compiled_function_may_be_any_sequence_of_numbers(params):
    assert np.array_equal(solve_decay(compiled_decay, params=params).y, solve_compiled().y)


def test_a_single_number_as_params_of_a_compiled_function_is_a_vector_of_one():
    @numba.njit
    def residual(t, y, yp, p):
        return yp + p[0] * y

    assert np.array_equal(solve_decay(residual, params=1.0).y, solve_decay(residual, params=np.array([1.0])).y)


@pytest.mark.parametrize("what", ["scalar", "tuple", "nothing", "mistake"])
def test_a_compiled_function_that_cannot_be_used_is_named_with_the_reason(what):
    @numba.njit
    def scalar(t, y, yp):
        return yp[0] + y[0]

    @numba.njit
    def tuple_(t, y, yp):
        return (yp[0] + y[0],)

    @numba.njit
    def nothing(t, y, yp):
        pass

    @numba.njit
    def mistake(t, y, yp):
        return y.derivative

    function = {"scalar": scalar, "tuple": tuple_, "nothing": nothing, "mistake": mistake}[what]
    with pytest.raises(daedal.InvalidProblemError, match=function.__name__) as caught:
        solve_decay(function, compile="never")
    assert "must return a float array" in str(caught.value)
    if what == "mistake":
        assert "derivative" in str(caught.value)


@numba.njit
def jacobian_by_columns(t, y, yp, cj):
    result = np.zeros((y.size, 3))
    result[:, 1] = cj + np.arange(1.0, y.size + 1)
    return result


@numba.njit
def flat_jacobian(t, y, yp, cj):
    return np.diag(cj + np.arange(1.0, y.size + 1)).copy().ravel()


@pytest.mark.parametrize(
    ("jacobian", "structure"),
    [(flat_jacobian, {}), (jacobian_by_columns, {}), (jacobian_by_columns, {"bandwidth": (1, 1)})],
)
def test_a_compiled_jacobian_of_the_wrong_shape_is_refused(jacobian, structure):
    with pytest.raises(daedal.InvalidProblemError, match="jacobian"):
        decays_with(jacobian=jacobian, **structure)


def test_compiled_functions_of_a_semi_explicit_problem_are_checked_for_length():
    @numba.njit
    def slopes(t, y, z):
        return np.zeros(1) if t > 0.5 or z[0] > 1.5 else np.zeros(2) - z[0]

    @numba.njit
    def constraint(t, y, z):
        return z - y[:1]

    problem = daedal.SemiExplicitDAE(slopes, constraint, 2, 1)
    with pytest.raises(daedal.InvalidProblemError, match=r"\bf (returned|must return)\b"):
        daedal.solve(problem, (0.0, 1.0), ([1.0, 1.0], [1.0]))
    with pytest.raises(daedal.InvalidProblemError, match=r"\bf (returned|must return)\b"):
        daedal.solve(problem, (0.0, 1.0), ([2.0, 1.0], [2.0]), fixed_step=0.1, method="dassl", max_order=1)


# --- limits and interrupts ------------------------------------------------------------------------------------------


def test_max_steps_keeps_what_was_computed():
    with pytest.raises(daedal.IntegrationError, match="limit of 10 steps") as caught:
        solve_decay(max_steps=10, method="dassl")
    sol = caught.value.solution
    assert not sol.success
    assert sol.status == "failed"
    assert sol.stats.steps == 10
    assert sol.t.size == 11
    assert np.allclose(sol.y[0], np.exp(-sol.t), rtol=1e-5)


def test_fixed_steps_beyond_max_steps_are_refused_beforehand():
    with pytest.raises(daedal.InvalidProblemError, match=r"takes 1e\+09 steps, more than the default limit of 1000000"):
        solve_decay(fixed_step=1e-9)
    with pytest.raises(daedal.InvalidProblemError, match=r"takes 1000 steps, more than max_steps = 999"):
        solve_decay(fixed_step=1e-3, max_steps=999)


INTERRUPTED_IN = {
    "residual": lambda bad: solve_decay(bad(decay, 60)),
    "first step": lambda bad: solve_decay(bad(decay, 3)),
    "jacobian": lambda bad: solve_decay(jacobian=bad(lambda t, y, yp, cj: [[cj + 1.0]], 2)),
    "event": lambda bad: solve_decay(events=bad(lambda t, y: y[0] - 0.5, 20)),
    "norm": lambda bad: solve_decay(method="dassl", norm=bad(root_mean_square, 50)),
    "preconditioner": lambda bad: use_gmres(solve=bad(lambda data, r: r / data, 60)),
    "fixed steps": lambda bad: solve_decay(bad(decay, 20), fixed_step=0.1, method="dassl", max_order=1),
    "starting values of fixed steps": lambda bad: solve_decay(
        bad(decay, 40), fixed_step=0.1, method="dassl", max_order=4
    ),
    "only an event stored": lambda bad: solve_decay(bad(decay, 60), t_eval=[0.9]),
}


@pytest.mark.parametrize("place", INTERRUPTED_IN)
def test_an_interrupt_carries_what_was_computed(place):
    def wrap(function, after):
        wrapped = late(function, KeyboardInterrupt(), after)
        return (lambda t, y: wrapped(t, y)) if place == "event" else wrapped

    sol = computed_until(lambda: INTERRUPTED_IN[place](wrap))
    assert sol.status == "interrupted"
    assert not sol.success
    assert "Interrupted at t = " in sol.message
    assert np.all(np.diff(sol.t) > 0.0)
    assert sol.y.shape == sol.yp.shape == (sol.y.shape[0], sol.t.size)
    assert sol.t.size == 0 or sol.t[-1] < 1.0
    assert np.allclose(sol.y[0], np.exp(-sol.t), atol=0.1)


@numba.njit
def oscillation(t, y, yp):
    result = np.empty(2)
    result[0] = yp[0] - y[1]
    result[1] = yp[1] + y[0]
    return result


def test_an_interrupt_at_any_line_between_two_slices_neither_loses_nor_doubles_steps():
    def run():
        return daedal.solve_dae(oscillation, (0.0, 100.0), [0.0, 1.0], [1.0, 0.0], rtol=1e-9, atol=1e-9, method="dassl")

    whole = run()
    assert whole.stats.steps > 2000  # several calls of the kernel
    room = f"{daedal.__path__[0]}/methods/"
    statuses = set()
    for at in range(1, 1000):
        lines = 0

        def trace(frame, event, argument, at=at):
            nonlocal lines
            if not frame.f_code.co_filename.startswith(room):
                return None
            lines += event == "line"
            if lines == at:
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            run()
        except KeyboardInterrupt as interrupt:
            sol = interrupt.solution
        finally:
            sys.settrace(None)
        if lines < at:
            break
        if sol is None:  # before or after the integration proper
            continue
        statuses.add(sol.status.reason)
        assert np.array_equal(sol.t, whole.t[: sol.t.size]), f"interrupted at line {at}"
        assert np.array_equal(sol.y, whole.y[:, : sol.t.size]), f"interrupted at line {at}"
    assert statuses == {"interrupted"}


SIGNALS = """
import faulthandler, json, os, random, signal, sys, threading, time
faulthandler.dump_traceback_later(280, exit=True)
import numba, numpy as np
from numba import types
import daedal

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
libc_raise = types.ExternalFunction("raise", types.int32(types.int32))

@numba.njit
def residual(t, y, yp, p):
    if t > p[0] and p[1] == 0.0:
        p[1] = 1.0
        libc_raise(2)
    x = 0.0
    for i in range(int(p[2])):
        x += np.sin(i + t)
    return yp + y + 1e-300 * x

def solve(at=0.5, work=0.0, **options):
    params = np.array([at, 0.0, work])
    return daedal.solve_dae(residual, (0.0, 10.0), [1.0], [-1.0], params=params, **options)

def report(name, run):
    try:
        try:
            sol = run()
        except KeyboardInterrupt as interrupt:
            sol = interrupt.solution
        good = bool(np.all(np.diff(sol.t) > 0.0) and np.allclose(sol.y[0], np.exp(-sol.t), atol=1e-3))
        results[name] = [sol.status.reason, good, float(sol.t[-1])]
    except BaseException as error:
        results[name] = [type(error).__name__, str(error)]

def norm(v, w):
    return float(np.sqrt(np.mean((v / w) ** 2)))

results = {}
report("compiled", lambda: solve(max_step=0.004))
report("compiled with a Python event", lambda: solve(events=lambda t, y: y[0] + 5.0))
report("compiled with a Python norm", lambda: solve(method="dassl", norm=norm))

def alarm(*arguments):
    raise TimeoutError("from the handler")

signal.signal(signal.SIGINT, alarm)
report("another exception", lambda: solve(max_step=0.004))
report("another exception with a Python event", lambda: solve(events=lambda t, y: y[0] + 5.0))
signal.signal(signal.SIGINT, signal.default_int_handler)

def python(t, y, yp):
    if t > 0.5:
        signal.raise_signal(signal.SIGINT)
    return yp + y

report("signal inside a Python residual", lambda: daedal.solve_dae(python, (0.0, 10.0), [1.0], [-1.0]))

timer = threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGINT))
timer.start()
report("from another thread", lambda: solve(at=1e9, work=1000.0, max_step=1e-5, max_steps=10**9))

random.seed(1)
signal.signal(signal.SIGALRM, signal.default_int_handler)
outcomes = {}
for _ in range(40):
    calls = 0
    def slow(t, y, yp):
        global calls
        calls += 1
        if calls == 100:
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.003 * random.random())
        return yp + y
    try:
        try:
            sol = daedal.solve_dae(slow, (0.0, 10.0), [1.0], [-1.0], max_step=1e-4, max_steps=10**9)
        except KeyboardInterrupt as interrupt:
            sol = interrupt.solution
        good = bool(np.all(np.diff(sol.t) > 0.0) and np.allclose(sol.y[0], np.exp(-sol.t), atol=1e-3))
        outcome = f"{sol.status} {good}"
    except BaseException as error:
        outcome = type(error).__name__
    outcomes[outcome] = outcomes.get(outcome, 0) + 1
results["at random times"] = outcomes

report("afterwards", lambda: solve(at=1e9))
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def after_signals():
    run = subprocess.run([sys.executable, "-c", SIGNALS], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "case",
    [
        "compiled",
        "compiled with a Python event",
        "compiled with a Python norm",
        "signal inside a Python residual",
        "from another thread",
    ],
)
@pytest.mark.race
def test_ctrl_c_carries_what_was_computed(after_signals, case):
    status, good, reached = after_signals[case]
    assert (status, good) == ("interrupted", True)
    assert reached < 10.0


def test_ctrl_c_at_random_times_carries_what_was_computed(after_signals):
    assert after_signals["at random times"] == {"interrupted True": 40}


@pytest.mark.parametrize("case", ["another exception", "another exception with a Python event"])
def test_the_exception_of_a_signal_handler_arrives_unchanged(after_signals, case):
    assert after_signals[case] == ["TimeoutError", "from the handler"]


def test_a_run_after_interrupts_is_like_any_other(after_signals):
    assert after_signals["afterwards"] == ["finished", True, 10.0]


AT_THE_END = """
import faulthandler, json
faulthandler.dump_traceback_later(280, exit=True)
import daedal

def solve(**options):
    return daedal.solve_dae(lambda t, y, yp: yp + y, (0.0, 1.0), [1.0], [-1.0], method="dassl", **options)

results = []
inside = float(solve().t[20])
for place in (1.0, inside):
    for direction in (0, 1, -1):
        for terminal in (False, True):
            for t_eval in (None, [0.5, 1.0]):
                event = daedal.Event(lambda t, y: t - place, direction=direction, terminal=terminal)
                sol = solve(events=event, t_eval=t_eval)
                increasing = bool((sol.t[1:] > sol.t[:-1]).all())
                fires = [record.t == place for record in sol.events]
                results.append([direction, terminal, increasing, fires, sol.status.reason])
print(json.dumps(results))
"""


def test_an_event_exactly_at_the_end_of_a_step_fires_once():
    run = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    results = json.loads(run.stdout)
    assert len(results) == 24
    for direction, terminal, increasing, fires, status in results:
        assert increasing
        assert fires == ([] if direction == -1 else [True])
        assert status == ("event" if terminal and direction != -1 else "finished")


@pytest.mark.parametrize("terminal_first", [True, False])
def test_a_terminal_event_stops_the_run_whatever_fires_beside_it(terminal_first):
    events = [daedal.Event(lambda t, y: t - 0.5, terminal=True, name="stop"), daedal.Event(lambda t, y: t - 0.5)]
    sol = solve_decay(events=events if terminal_first else events[::-1])
    assert abs(sol.t[-1] - 0.5) < 1e-9
    assert sol.status == "event"
    assert "stop" in sol.message
    assert len(sol.events) == 2


@pytest.mark.parametrize("place", [0.5, 1.0])
@pytest.mark.parametrize("t_eval", [None, [0.0, 0.5, 1.0]])
def test_events_and_output_up_to_the_end_when_the_last_step_goes_beyond_it(place, t_eval):
    sol = solve_decay(events=lambda t, y: t - place, t_stop=math.inf, t_eval=t_eval)
    assert [record.t for record in sol.events] == [pytest.approx(place, abs=1e-12)]
    assert sol.t[-1] == 1.0
    assert np.all(np.diff(sol.t) > 0.0)
    assert t_eval is None or sol.t.tolist() == t_eval


def test_an_event_that_is_not_a_number_is_named_with_its_time():
    def crossing(t, y):
        return -1.0 if t < 0.5 else math.nan

    with pytest.raises(daedal.InvalidProblemError, match=r"crossing returned nan at t = 0\.5"):
        solve_decay(events=crossing)


INF = math.inf


@pytest.mark.parametrize(("before", "behind"), [(-1.0, INF), (-INF, 1.0), (-INF, INF), (-1e308, 1e308), (1.0, -INF)])
def test_an_event_with_infinite_or_huge_values_is_located(before, behind):
    sol = solve_decay(events=lambda t, y: before if t < 0.5 else behind)
    assert [abs(record.t - 0.5) < 1e-9 for record in sol.events] == [True]
    assert np.all(np.diff(sol.t) > 0.0)


# --- threads and recursion ------------------------------------------------------------------------------------------


def robertson(t, y, yp):
    fast = 1e4 * y[1] * y[2]
    return [
        yp[0] + 0.04 * y[0] - fast,
        yp[1] - 0.04 * y[0] + fast + 3e7 * y[1] ** 2,
        y[0] + y[1] + y[2] - 1.0,
    ]


def test_runs_in_threads_give_the_same_as_alone():
    jobs = [
        lambda: daedal.solve_dae(robertson, (0.0, 4e4), [1.0, 0.0, 0.0], [-0.04, 0.04, 0.0], atol=1e-12),
        lambda: daedal.solve_dae(oscillation, (0.0, 20.0), [0.0, 1.0], [1.0, 0.0], rtol=1e-9),
        lambda: use_gmres(),
        lambda: decays_with(sparsity=STRUCTURE, rtol=1e-8),
    ]
    alone = [job() for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        together = [future.result() for future in [pool.submit(job) for job in jobs * 3]]
    for i, sol in enumerate(together):
        assert np.array_equal(sol.t, alone[i % 4].t)
        assert np.array_equal(sol.y, alone[i % 4].y)
        assert sol.stats.residual_evaluations == alone[i % 4].stats.residual_evaluations


@EITHER
def test_one_problem_may_be_solved_in_many_threads_at_once(kind):
    residual = compiled_decay if kind == "compiled" else lambda t, y, yp, p: yp + y
    problem = daedal.ImplicitDAE(residual, 1, params=np.array([WELL, 0.0, 1.0]))

    def run(i):
        return daedal.solve(problem, (0.0, 1.0), ([1.0 + i], [-1.0 - i]), rtol=1e-7)

    alone = [run(i) for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, [0, 1, 2, 3] * 25))
    assert all(np.array_equal(sol.y, alone[i % 4].y) for i, sol in enumerate(together))


def test_an_exception_in_one_thread_stays_there():
    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            bad = pool.submit(solve_decay, late(decay, OfTheUser(1, "x"), 50), rtol=1e-8)
            good = pool.submit(solve_decay, rtol=1e-8)
            assert isinstance(bad.exception(), OfTheUser)
            assert good.result().success


@numba.njit
def laborious(t, y, yp):
    x = 0.0
    for i in range(20_000):
        x += math.sin(i + t)
    return yp + y + 1e-300 * x


def test_other_threads_run_while_a_kernel_does():
    solve_decay(laborious, t_span=(0.0, 1e-6))
    thread = threading.Thread(target=solve_decay, args=(laborious,), kwargs={"max_step": 1e-3})
    ticks = 0
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
        ticks += 1
    # The run is one or two calls of the kernel of 0.2 s or more; with the GIL held there would be as many ticks.
    assert ticks > 20


def test_a_residual_may_solve_another_problem():
    def outer(t, y, yp):
        inner = daedal.solve_dae(lambda s, x, xp: xp + x, (0.0, 1.0), [1.0], [-1.0], rtol=1e-10, atol=1e-10)
        return yp + y * inner.y[0, -1] * math.e

    assert abs(solve_decay(outer, rtol=1e-4).y[0, -1] - math.exp(-1.0)) < 1e-3


@EITHER
def test_functions_may_solve_their_own_problem(kind):
    residual = compiled_decay if kind == "compiled" else lambda t, y, yp, p: yp + y
    problem = daedal.ImplicitDAE(residual, 1, params=np.array([WELL, 0.0, 1.0]))
    initial = ([1.0], [-1.0])
    alone = daedal.solve(problem, (0.0, 1.0), initial, method="dassl")
    inside = []

    def crossing(t, y):
        inside.append(daedal.solve(problem, (0.0, 1.0), initial, method="dassl"))
        return y[0] - 0.5

    sol = daedal.solve(problem, (0.0, 1.0), initial, events=crossing, method="dassl")
    assert np.array_equal(sol.y, alone.y)
    assert all(np.array_equal(one.y, alone.y) for one in inside)


def test_a_failure_inside_a_residual_arrives_with_its_own_solution():
    def outer(t, y, yp):
        if t > 0.5:
            solve_decay(max_steps=3)
        return yp + y

    with pytest.raises(daedal.IntegrationError) as caught:
        solve_decay(outer)
    assert caught.value.solution.stats.steps == 3
