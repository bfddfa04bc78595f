"""The ways to reduce the index: each solves what the others solve, and keeps all constraints."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.driver import reduced_plan as driver
from daedal.index.reduction.reduce import REDUCTIONS
from residual_models import as_residual, start_of

WAYS = tuple(REDUCTIONS)
METHODS = ("radau", "dassl")
NAMES = ["x", "y", "u", "v", "lam"]
START = [0.0, -1.0, 2.5, 0.0, 7.25]  # over the top
BY = pytest.mark.parametrize("way", WAYS)


def pendulum(t, s, sp):
    x, y, u, v, lam = s
    return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + 1.0, x**2 + y**2 - 1.0]


def mixed(t, s, sp):
    """The same equations in combinations, of which the orders of derivatives tell nothing."""
    a, b, c, d, e = pendulum(t, s, sp)
    return [a + b - c + 2 * e, a - 2 * b + d - e, 3 * a + c + e, b + c + d - 2 * e, a + d + 4 * e]


def chain(t, y, yp):
    """Linear, of index 3, with one degree of freedom."""
    a, b, c, s = y
    return [yp[3] + s - a, yp[1] - c + t * s, yp[0] - b, a - np.sin(t)]


def chain_solution(t):
    s = (np.sin(t) - np.cos(t)) / 2 + 1.5 * np.exp(-t)
    return np.array([np.sin(t), np.cos(t), -np.sin(t) + t * s, s])


def joint(t, s, sp):
    """A flexible joint whose arm follows a path: index 5, nothing left to choose."""
    q, v, angle, w, torque = s
    return [
        *[sp[0] - v, sp[1] - 20.0 * (angle - q) + np.sin(q)],
        *[sp[2] - w, sp[3] + 20.0 * (angle - q) - torque, q - np.sin(t)],
    ]


def joint_solution(t):
    q, v = np.sin(t), np.cos(t)
    weight = np.sin(q), np.cos(q) * v, -np.sin(q) * v * v - np.cos(q) * q
    angle, w, rate = q + (weight[0] - q) / 20.0, v + (weight[1] - v) / 20.0, -q + (weight[2] + q) / 20.0
    return np.array([q, v, angle, w, rate + 20.0 * (angle - q)])


def differentiators(t, s, sp):
    """Two operational amplifiers that differentiate, and a load with a capacitor: index 3."""
    v0, i0, v1, i1, v2, i2, v3 = s
    return [
        *[v0 - np.sin(t), sp[0] + i0, sp[0] + v1, sp[2] + i1 + v1],
        *[sp[2] + v2, v2 + (v2 - v3) / 2.0 + i2, sp[6] - (v2 - v3) / 2.0],
    ]


def differentiators_solution(t):
    s, c = np.sin(t), np.cos(t)
    v3 = -0.2 * s + 0.4 * c + 0.6 * np.exp(-t / 2.0)  # 2 v3' + v3 = -sin t, v3(0) = 1
    return np.array([s, -c, -c, c - s, -s, s + (s + v3) / 2.0, v3])


def swing(way, residual=pendulum, start=START, end=8.0, **options):
    problem = daedal.ImplicitDAE(residual, 5, names=NAMES)
    return daedal.solve(problem, (0.0, end), (start, None), formulation=way, **options)


@cache
def reference(end=8.0):
    return swing("dummy_derivatives", end=end, rtol=1e-12, atol=1e-12, method="radau").y[:, -1]


def constraints(y):
    """The length, its derivative, and the multiplier from the second one."""
    x, z, u, v, lam = y
    return np.array([x**2 + z**2 - 1.0, x * u + z * v, u**2 + v**2 - z - lam])


# --- accuracy ---------------------------------------------------------------------------------------------------------


@BY
@pytest.mark.parametrize("method", METHODS)
def test_a_pendulum_over_the_top(way, method):
    sol = swing(way, method=method, rtol=1e-7, atol=1e-7)
    assert np.abs(sol.y[:, -1] - reference()).max() < 1e-4
    assert np.abs(constraints(sol.y)).max() < 1e-13
    assert max(sol.drift.values()) < 1e-12
    assert REDUCTIONS[way].by in sol.message


@BY
def test_order_of_radau_on_the_pendulum(way):
    errors = []
    for steps in (50, 100):
        sol = swing(way, end=2.0, method="radau", stages=3, fixed_step=2.0 / steps, rtol=1e-10, atol=1e-10)
        errors.append(np.abs(sol.y[:, -1] - reference(2.0)))
    assert np.log2(max(errors[0][:4]) / max(errors[1][:4])) == pytest.approx(5.0, abs=0.5)


@BY
def test_order_of_radau_on_a_linear_problem(way):
    problem, errors = daedal.ImplicitDAE(chain, 4), []
    for steps in (10, 20):
        sol = daedal.solve(
            *[problem, (0.0, 4.0), (chain_solution(0.0), None)],
            **{
                "formulation": way,
                "method": "radau",
                "stages": 3,
                "fixed_step": 4.0 / steps,
                "rtol": 1e-10,
                "atol": 1e-10,
            },
        )
        errors.append(np.abs(sol.y[:, -1] - chain_solution(4.0)))
        assert np.abs(sol.y[:2] - chain_solution(sol.t)[:2]).max() < 1e-13  # constraints determine them
    assert np.log2(errors[0][3] / errors[1][3]) == pytest.approx(5.0, abs=0.5)


@BY
@pytest.mark.parametrize(
    ("residual", "solution", "free"),
    [(joint, joint_solution, 0), (differentiators, differentiators_solution, 1)],
    ids=["joint", "circuit"],
)
def test_problems_of_index_5_and_3(way, residual, solution, free):
    start = solution(0.0)
    problem = daedal.ImplicitDAE(residual, start.size)
    assert daedal.reduce_index(problem, by=way).signature.degrees_of_freedom == free
    sol = daedal.solve(problem, (0.0, 3.0), (start, None), formulation=way, rtol=1e-6, atol=1e-6)
    assert np.abs(sol.y - solution(sol.t)).max() < (1e-12 if free == 0 else 1e-5)


@pytest.mark.parametrize("way", ["coordinate_partitioning", "minimal_extension", "stabilised", "projection"])
def test_a_mechanism_of_seven_bodies(way):
    model = daedal.library.seven_body()
    problem, n = as_residual(model.problem), model.problem.n_q
    sol = daedal.solve(problem, model.t_span, start_of(model), formulation=way, rtol=1e-5, atol=1e-5, method="radau")
    assert np.abs(sol.y[:n, -1] - model.reference.y[:n]).max() < 2e-4
    assert max(sol.drift.values()) < 1e-13


@BY
@settings(max_examples=4)
@given(st.permutations(range(5)), st.permutations(range(5)))
def test_order_of_unknowns_and_equations_does_not_matter(way, unknowns, equations):
    def residual(t, s, sp):
        s, sp = [[x[k] for k in np.argsort(unknowns)] for x in (s, sp)]
        f = pendulum(t, s, sp)
        return [f[k] for k in equations]

    sol = swing(way, residual, np.array(START)[unknowns], end=2.0, rtol=1e-7, atol=1e-7, method="radau")
    y = sol.y[np.argsort(unknowns)]
    assert np.abs(y[:, -1] - reference(2.0)).max() < 1e-6
    assert np.abs(constraints(y)).max() < 1e-13


@BY
@settings(max_examples=4)
@given(st.integers(-30, 30), st.integers(-20, 20))
def test_energy_from_any_start(way, angle, speed):
    angle, speed = 0.1 * angle, 0.1 * speed
    x, z = np.sin(angle), -np.cos(angle)
    sol = swing(way, start=[x, z, -z * speed, x * speed, speed**2 - z], end=3.0, rtol=1e-8, atol=1e-8, method="radau")
    energy = 0.5 * (sol.y[2] ** 2 + sol.y[3] ** 2) + sol.y[1]
    assert np.ptp(energy) < 1e-5
    assert np.abs(constraints(sol.y)).max() < 1e-12


# --- what is peculiar to a way ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [way for way in WAYS if way != "stabilised"])
def test_selections_are_exchanged(way, monkeypatch):
    taken = []
    kind = REDUCTIONS[way]
    own = kind.selected

    def selected(self, t, u, scale):
        taken.append(t)
        return own(self, t, u, scale)

    monkeypatch.setattr(kind, "selected", selected)
    swing(way, rtol=1e-6, atol=1e-6, method="dassl")
    assert len([t for t in taken if t > 0.0]) > 4
    taken.clear()
    monkeypatch.setattr(driver, "LIMIT", np.inf)
    try:
        swing(way, rtol=1e-6, atol=1e-6, method="dassl", max_steps=4000)
    except daedal.IntegrationError:
        pass
    assert len([t for t in taken if t > 0.0]) <= 4  # after failures only


def test_what_is_selected():
    problem, u = daedal.ImplicitDAE(pendulum, 5), np.array([0.6, -0.8, 0.8, 0.6, 1.8, -1.08, 0.44])
    dummy, partition = (
        daedal.reduce_index(problem, by=way).selected(0.0, u, np.ones(7))
        for way in ("dummy_derivatives", "coordinate_partitioning")
    )
    for block, unit, combined in zip(dummy.blocks, dummy.chosen, partition.chosen, strict=True):
        if block.rows:
            assert unit.tolist() == [[1.0, 0.0]]  # y and v hang on x and u: |y| > |x|
            assert combined[0] @ [0.6, -0.8] == pytest.approx(0.0, abs=1e-15)  # along the circle


def test_multipliers_of_the_stabilised_form_are_zero():
    reduced = daedal.reduce_index(daedal.ImplicitDAE(pendulum, 5, names=NAMES), by="stabilised")
    assert list(reduced.problem.names) == [*NAMES, "mu[0]"]
    largest = []
    for tol in (1e-4, 1e-8):
        start = [*START, 0.0], None
        sol = daedal.solve(
            reduced.problem, (0.0, 3.0), start, rtol=tol, atol=tol, method="dassl", error_test=[0, 1, 2, 3]
        )
        assert np.abs(constraints(sol.y[:5])[:2]).max() < 10 * tol
        largest.append(np.abs(sol.y[5]).max())
    assert 0.0 < largest[1] < 1e-5
    assert largest[1] < 0.01 * largest[0]


def test_a_problem_of_index_2_is_stabilised_already():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1] + y[0], yp[1] + y[2], y[0] + y[1] - np.sin(t)], 3)
    assert daedal.reduce_index(problem, by="stabilised").problem.n == 3


def test_steps_are_projected():
    sol = swing("projection", rtol=1e-5, atol=1e-5, method="dassl", dense_output=True)
    residuals = np.abs(constraints(sol(sol.t))[:2]).max(axis=0)
    assert np.quantile(residuals, 0.9) < 1e-12  # all but those at which the selection was exchanged
    reduced = daedal.reduce_index(daedal.ImplicitDAE(pendulum, 5), by="projection")
    start = [*START, 0.0, 6.25]
    alone = daedal.solve(reduced.problem, (0.0, 8.0), (start, None), rtol=1e-5, atol=1e-5, method="dassl")
    assert np.abs(constraints(alone.y[:5])[0]).max() > 1e-6


def test_minimal_extension_has_fewer_unknowns():
    sizes = {way: daedal.reduce_index(daedal.ImplicitDAE(pendulum, 5), by=way).problem.n for way in WAYS}
    assert sizes["minimal_extension"] == sizes["dummy_derivatives"] - 1 == 6


@BY
def test_a_singular_point_ends_the_run(way):
    """The pendulum is hauled in: its length is zero at t = 1, and it turns faster and faster before."""

    def residual(t, s, sp):
        x, y, u, v, lam = s
        return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + 1.0, x**2 + y**2 - (1.0 - t) ** 2]

    problem, start = daedal.ImplicitDAE(residual, 5), [0.0, -1.0, 0.5, 1.0, 1.0]
    with pytest.raises(daedal.IntegrationError, match=r"limit of 60[01] steps|error estimate stayed above") as caught:
        daedal.solve(
            *[problem, (0.0, 2.0), (start, None)], formulation=way, method="radau", max_steps=600, correct_initial=True
        )
    y, t = caught.value.solution.y, caught.value.solution.t
    assert 0.9 < t[-1] < 1.0 and t.size <= 602
    assert np.abs(np.hypot(y[0], y[1]) - (1.0 - t)).max() < 1e-12


# --- where the structure tells nothing --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_combined_equations(method):
    sol = swing("strangeness_free", mixed, rtol=1e-7, atol=1e-7, method=method)
    assert np.abs(sol.y[:, -1] - reference()).max() < 1e-4
    assert np.abs(constraints(sol.y)).max() < 1e-12


@pytest.mark.parametrize("way", [way for way in WAYS if way != "strangeness_free"])
def test_combined_equations_are_refused_by_ways_that_need_the_structure(way):
    with pytest.raises(daedal.InvalidProblemError, match="cannot be determined from the structure"):
        daedal.reduce_index(daedal.ImplicitDAE(mixed, 5), by=way)


def test_solve_falls_back_to_the_strangeness_free_form():
    """Two controls enter the motion of what is prescribed by their difference alone: not index 3, but 4."""

    def residual(t, y, yp):
        x1, x2, v1, v2, s, a, b, z = y
        motion = [yp[0] - v1, yp[1] - v2, yp[2] - s - a + b, yp[3] - 2.0 * s - a + b, yp[4] - a, yp[7] + z - a]
        return [*motion, x1 - np.sin(t), x2 - np.cos(t)]

    def solution(t):
        s, c = np.sin(t), np.cos(t)
        return np.array([s, c, c, -s, s - c, s + c, 3.0 * s, s + 0.5 * np.exp(-t)])

    sol = daedal.solve(daedal.ImplicitDAE(residual, 8), (0.0, 3.0), (solution(0.0), None), rtol=1e-7, atol=1e-7)
    assert "strangeness index 3" in sol.message
    assert np.abs(sol.y - solution(sol.t)).max() < 1e-6


def test_undetermined_solutions_are_refused():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + yp[1] - y[0], y[0] + y[1], yp[0] + yp[1] + 2 * y[0]], 3)
    with pytest.raises(daedal.InvalidProblemError):
        daedal.reduce_index(problem, by="strangeness_free")


def test_second_order_problems_are_refused_by_the_strangeness_free_form():
    problem = daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[1], x[0] - np.sin(t)], 2)
    with pytest.raises(daedal.InvalidProblemError, match="for first-order problems"):
        daedal.reduce_index(problem, by="strangeness_free")


# --- as every plan ----------------------------------------------------------------------------------------------------


@BY
def test_parameters_of_prepared_problems(way):
    def residual(t, s, sp, p):
        x, y, u, v, lam = s
        return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + p["g"], x**2 + y**2 - p["l"] ** 2]

    def problem(**numbers):
        return daedal.ImplicitDAE(residual, 5, params=numbers)

    options = {"formulation": way, "rtol": 1e-6, "atol": 1e-6, "method": "radau"}
    ready = daedal.prepare(problem(g=1.0, l=1.0), **options)
    first = ready.solve((0.0, 2.0), ([1.0, 0.0, 0.0, 0.0, 0.0], None))
    other = ready.solve((0.0, 2.0), ([2.0, 0.0, 0.0, 0.0, 0.0], None), params={"g": 3.0, "l": 2.0})
    alone = daedal.solve(problem(g=3.0, l=2.0), (0.0, 2.0), ([2.0, 0.0, 0.0, 0.0, 0.0], None), **options)
    assert np.array_equal(other.y, alone.y)
    assert np.abs(other.y[0] ** 2 + other.y[1] ** 2 - 4.0).max() < 1e-13
    again = ready.solve((0.0, 2.0), ([1.0, 0.0, 0.0, 0.0, 0.0], None))
    assert np.array_equal(first.y, again.y)


@BY
def test_events_and_semi_explicit_problems(way):
    problem = daedal.SemiExplicitDAE(
        lambda t, y, z: [y[2], y[3], -z[0] * y[0], -z[0] * y[1] - 1.0],
        lambda t, y, z: [y[0] ** 2 + y[1] ** 2 - 1.0],
        4,
        1,
    )
    lowest = daedal.Event(lambda t, y, z: y[0], terminal=True, direction=1)
    sol = daedal.solve(problem, (0.0, 20.0), (START[:4], None), formulation=way, rtol=1e-8, atol=1e-8, events=lowest)
    assert sol.status == "event"
    assert sol.y[1, -1] == pytest.approx(-1.0, abs=1e-9)
    assert sol.y[2, -1] == pytest.approx(2.5, abs=1e-5)


def test_unknown_names_are_refused():
    with pytest.raises(daedal.InvalidProblemError, match="did you mean 'stabilised'"):
        daedal.reduce_index(daedal.ImplicitDAE(pendulum, 5), by="stabilized")
