"""Tables as input functions, and break points that are stepped onto."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal
from daedal.hybrid.hybrid_run import pieces_between

TIMES, VALUES = [0.0, 1.0, 2.0, 2.5, 4.0], [0.0, 1.0, -2.0, 3.0, 0.0]
INTEGRAL = 2.5  # of the piecewise linear function
TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def integrand(table):
    return daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - table(t)], 1, names=["y"])


# --- the functions ----------------------------------------------------------------------------------------------------


tables = st.lists(st.tuples(st.floats(0.01, 10.0), st.floats(-1e3, 1e3)), min_size=2, max_size=8)


@given(tables, st.floats(-5.0, 90.0))
def test_linear_tables_are_numpys_interp(rows, t):
    times = np.cumsum([gap for gap, _ in rows])
    values = np.array([value for _, value in rows])
    table = daedal.Table(times, values)
    assert table(t) == pytest.approx(np.interp(t, times, values), abs=1e-9)
    assert (
        daedal.Table(times, values, kind="previous")(t) == values[max(np.searchsorted(times, t, side="right") - 1, 0)]
    )
    for x, value in zip(times, values, strict=True):
        for kind in ("linear", "previous", "cubic"):
            assert daedal.Table(times, values, kind)(x) == pytest.approx(value, abs=1e-9)


def test_values_may_be_vectors():
    table = daedal.Table(TIMES, np.column_stack([VALUES, np.negative(VALUES)]))
    np.testing.assert_allclose(table(1.5), [-0.5, 0.5])


@pytest.mark.parametrize("kind", ["linear", "previous", "cubic"])
@pytest.mark.parametrize("values", [VALUES, np.column_stack([VALUES, VALUES])], ids=["numbers", "vectors"])
def test_compiled_tables_are_the_same(kind, values):
    table = daedal.Table(TIMES, values, kind)
    compiled = table.compiled()
    for t in (-1.0, 0.0, 0.3, 1.0, 2.4, 2.5, 4.0, 7.0):
        np.testing.assert_allclose(compiled(t), table(t), atol=1e-14)


def test_a_cubic_table_is_smooth_and_a_natural_spline():
    from scipy.interpolate import CubicSpline

    spline = CubicSpline(TIMES, VALUES, bc_type="natural")
    table = daedal.Table(TIMES, VALUES, "cubic")
    for t in np.linspace(0.0, 3.99, 50):
        assert table(t) == pytest.approx(float(spline(t)), abs=1e-13)


# --- break points -----------------------------------------------------------------------------------------------------


def test_break_points_give_the_tolerance_and_save_steps():
    problem, exact = integrand(table := daedal.Table(TIMES, VALUES)), INTEGRAL
    told = daedal.solve(problem, (0.0, 5.0), ([0.0], [0.0]), breakpoints=table, **TIGHT)
    untold = daedal.solve(problem, (0.0, 5.0), ([0.0], [0.0]), switches="never", **TIGHT)
    assert abs(told.y[0, -1] - exact) < 1e-9
    assert abs(untold.y[0, -1] - exact) > abs(told.y[0, -1] - exact)
    assert told.stats.residual_evaluations < 0.6 * untold.stats.residual_evaluations
    assert told.success and told.status == "finished"


def test_a_short_pulse_is_not_stepped_over():
    pulse = daedal.Table([0.0, 10.0, 10.1], [0.0, 1.0, 0.0], kind="previous")
    problem = integrand(pulse)
    told = daedal.solve(problem, (0.0, 20.0), ([0.0], [0.0]), breakpoints=pulse)
    untold = daedal.solve(problem, (0.0, 20.0), ([0.0], [0.0]), switches="never")
    found = daedal.solve(problem, (0.0, 20.0), ([0.0], [0.0]))
    assert told.y[0, -1] == pytest.approx(0.1, abs=1e-6)
    assert found.y[0, -1] == pytest.approx(0.1, abs=1e-6)  # the table is known from the trace
    assert abs(untold.y[0, -1]) < 1e-3  # what happens without


def test_every_break_point_is_an_output_time():
    table = daedal.Table(TIMES, VALUES, "previous")
    sol = daedal.solve(integrand(table), (0.0, 5.0), ([0.0], [0.0]), breakpoints=table)
    assert set(TIMES) <= set(sol.t.tolist())
    assert np.all(np.diff(sol.t) > 0.0)


def test_no_function_is_evaluated_on_the_wrong_side():
    seen = []

    def residual(t, y, yp):
        seen.append(t)
        return [yp[0] - (1.0 if t < 2.0 else -1.0)]

    sol = daedal.solve(daedal.ImplicitDAE(residual, 1), (0.0, 3.0), ([0.0], [1.0]), breakpoints=[2.0])
    begin = next(i for i, t in enumerate(seen) if t >= 2.0)
    assert min(seen[begin:]) >= 2.0
    assert sol.y[0, -1] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("kind", ["linear", "previous"])
def test_the_way_back(kind):
    table = daedal.Table(TIMES, VALUES, kind)
    problem = integrand(table)
    there = daedal.solve(problem, (0.0, 5.0), ([0.0], None), breakpoints=table, **TIGHT)
    back = daedal.solve(problem, (5.0, 0.0), (there.y[:, -1], None), breakpoints=table, **TIGHT)
    assert abs(back.y[0, -1]) < 1e-7


def test_output_times_and_dense_output():
    table, times = daedal.Table(TIMES, VALUES), np.linspace(0.0, 5.0, 21)
    exact = np.array([np.trapezoid(np.interp(s, TIMES, VALUES), s) for s in (np.linspace(0, t, 200001) for t in times)])
    sol = daedal.solve(integrand(table), (0.0, 5.0), ([0.0], [0.0]), breakpoints=table, t_eval=times, **TIGHT)
    np.testing.assert_array_equal(sol.t, times)
    np.testing.assert_allclose(sol.y[0], exact, atol=1e-8)
    np.testing.assert_allclose(sol(times)[0], exact, atol=1e-8)
    few = daedal.solve(
        integrand(table), (0.0, 5.0), ([0.0], [0.0]), breakpoints=table, t_eval=[0.5, 3.0], dense_output=False, **TIGHT
    )
    np.testing.assert_array_equal(few.t, [0.5, 3.0])
    np.testing.assert_allclose(few.y[0], [0.125, 1.5], atol=1e-8)


def step(t):
    return 1.0 if t >= 1.0 else 0.0


PROBLEMS = {
    "implicit": (daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[1] - step(t)], 2), ([0.0, 0.0], [0.0, 0.0]), 0),
    "semi-explicit": (
        daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [z[0] - step(t)], 1, 1),
        ([0.0], [0.0]),
        0,
    ),
    "mechanical": (daedal.MechanicalSystem(1.0, lambda t, q, v: [step(t)], n_q=1), ([0.0], [0.0]), 1),
    "constrained": (
        daedal.MechanicalSystem(
            0.5, lambda t, q, v: [step(t), 0.0], lambda t, q: [q[0] - q[1]], n_q=2, n_constraints=1
        ),
        ([0.0, 0.0], [0.0, 0.0]),
        2,
    ),
    "hybrid": (
        daedal.hybrid.HybridProblem(
            {
                "early": daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - step(t)], 1, names=["y"]),
                "late": daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - step(t)], 1, names=["y"]),
            },
            [daedal.hybrid.Transition("early", "late", lambda t, y: t - 0.7, direction=1)],
        ),
        ("early", ([0.0], [0.0])),
        0,
    ),
}


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_every_class_of_problem(name):
    problem, initial, entry = PROBLEMS[name]
    sol = daedal.solve(problem, (0.0, 2.0), initial, breakpoints=[1.0], **TIGHT)
    assert sol.y[entry, -1] == pytest.approx(1.0, abs=1e-9)
    assert sol.t[-1] == 2.0 and 1.0 in sol.t


def test_tables_in_compiled_functions():
    import numba

    table = daedal.Table(TIMES, VALUES)
    force = table.compiled()
    system = daedal.MechanicalSystem(1.0, numba.njit(lambda t, q, v: np.array([force(t)])), n_q=1)
    sol = daedal.solve(system, (0.0, 5.0), ([0.0], [0.0]), breakpoints=table, **TIGHT)
    assert sol.v[0, -1] == pytest.approx(INTEGRAL, abs=1e-9)


def test_events_and_several_tables():
    first, second = daedal.Table(TIMES, VALUES), daedal.Table([0.5, 3.3], [1.0, 1.0])
    event = daedal.Event(lambda t, y: y[0] - 0.3, terminal=True, name="enough")
    sol = daedal.solve(integrand(first), (0.0, 5.0), ([0.0], [0.0]), breakpoints=[first, second, 4.4], events=event)
    assert sol.status == "event" and sol.events[-1].name == "enough"
    assert sol.events[-1].t == pytest.approx(np.sqrt(0.6), abs=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_failure_hands_back_all_pieces():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - (0.0 if t < 1.0 else y[0] ** 2)], 1)
    with pytest.raises(daedal.IntegrationError) as caught:
        daedal.solve(problem, (0.0, 5.0), ([1.0], [0.0]), breakpoints=[1.0])
    solution = caught.value.solution
    assert solution.t[0] == 0.0 and 1.9 < solution.t[-1] < 2.1
    assert solution.status == "failed"


points = st.lists(st.floats(-2.0, 12.0), max_size=10)


@given(points, st.booleans())
def test_pieces_cover_the_interval(found, backwards):
    inside = sorted({p for p in found if 0.0 < p < 10.0})
    span = (10.0, 0.0) if backwards else (0.0, 10.0)
    pieces = pieces_between(span, inside)
    assert pieces[0][0] == span[0] and pieces[-1][1] == span[1]
    for (_, end), (begin, _) in itertools.pairwise(pieces):
        assert abs(begin - end) == pytest.approx(0.0, abs=1e-14) and begin != end
    assert all(abs(b - a) > 1e-13 for a, b in pieces)


def test_points_that_are_too_close_count_as_one():
    sol = daedal.solve(integrand(step), (0.0, 2.0), ([0.0], [0.0]), breakpoints=[1.0, 1.0 + 1e-15, 2.0 - 1e-15])
    assert sol.y[0, -1] == pytest.approx(1.0, abs=1e-6)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: daedal.Table([0.0, 2.0, 1.0], [1.0, 2.0, 3.0]), r"times\[1\] = 2 is followed by 1"),
        (lambda: daedal.Table([0.0, 0.0], [1.0, 2.0]), "must increase"),
        (lambda: daedal.Table([0.0, np.nan], [1.0, 2.0]), "finite"),
        (lambda: daedal.Table([0.0], [1.0]), "at least 2"),
        (lambda: daedal.Table([0.0, 1.0], [1.0, 2.0, 3.0]), "for 2 times"),
        (lambda: daedal.Table([0.0, 1.0], [1.0, np.inf]), "finite"),
        (lambda: daedal.Table([0.0, 1.0], [1.0, 2.0], kind="quintic"), "unknown kind 'quintic'"),
        (lambda: daedal.Table("ab", [1.0, 2.0]), "times"),
        (lambda: daedal.solve(integrand(step), (0, 2), ([0.0], None), breakpoints=["soon"]), "breakpoints"),
        (lambda: daedal.solve(integrand(step), (0, 2), ([0.0], None), breakpoints=[np.inf]), "not finite"),
        (lambda: daedal.solve(integrand(step), (0, 2), ([0.0], None), breakpoints=[1.0], t_stop=3.0), "t_stop"),
        (lambda: daedal.solve(integrand(step), (0, 2), ([0.0], None), breakpoints=[1.0], fixed_step=0.1), "fixed_step"),
    ],
    ids=range(12),
)
def test_bad_input(call, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        call()
