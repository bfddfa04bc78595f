"""Consistent values of any index: random sets that are fixed, contradictions named, units, untraceable functions."""

from copy import copy

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import j0

import daedal
from daedal.index.structure.derivative_array import NonlinearDerivativeArray
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.system_equations import SystemEquations, equations_of
from daedal.initial.jet import consistent_jet
from daedal.initial.local_structure import local_structure
from daedal.symbolic.formula import Formulas
from derivative_array_problems import KNOWN, flexible_joint, implicit, pendulum

NAMES = ("x", "y", "u", "v", "lam")
PENDULUM = implicit(pendulum, *NAMES)
EQUATIONS = SystemEquations(PENDULUM)
ARRAY = NonlinearDerivativeArray(EQUATIONS, 3)


def motion(angle, speed):
    """x, y, u, v, lam of the pendulum: lam balances weight and centrifugal force."""
    sin, cos = np.sin(angle), np.cos(angle)
    return np.array([sin, -cos, speed * cos, speed * sin, speed**2 + 9.81 * cos])


def rates(angle, speed):
    x, y, u, v, lam = motion(angle, speed)
    return np.array([u, v, -lam * x, -lam * y - 9.81, -3.0 * 9.81 * speed * np.sin(angle)])


@settings(max_examples=40, deadline=None)
@given(
    st.floats(0.2, 1.3),
    st.floats(-2.0, 2.0),
    st.sampled_from([pair for k, a in enumerate(range(10)) for pair in [(a, b) for b in range(k + 1, 10)]]),
    st.integers(0, 2**31),
)
def test_any_two_independent_values_or_derivatives_determine_the_rest(angle, speed, pair, seed):
    """10 values and derivatives, of which 2 are fixed; the others begin with errors of some percent."""
    both = np.concatenate([motion(angle, speed), rates(angle, speed)])
    step = 1e-6
    gradients = np.array(
        [
            (np.concatenate([motion(angle + a, speed + s), rates(angle + a, speed + s)]) - both) / step
            for a, s in ((step, 0.0), (0.0, step))
        ]
    )
    scaled = gradients[:, list(pair)] / np.maximum(np.abs(both[list(pair)]), 1.0)
    assume(np.linalg.svd(scaled, compute_uv=False)[-1] > 0.15)
    guess = both * (1.0 + 0.03 * np.random.default_rng(seed).uniform(-1.0, 1.0, 10))
    guess[list(pair)] = both[list(pair)]
    fixed = np.zeros(10, dtype=bool)
    fixed[list(pair)] = True
    jet = consistent_jet(EQUATIONS, 0.0, guess.reshape(2, 5), fixed.reshape(2, 5))
    assert np.array_equal(jet[:2].ravel()[fixed], both[fixed])
    assert np.abs(ARRAY.residual(0.0, jet)).max() < 1e-10 * np.abs(jet).max()
    # on the surface, wherever on it: x, y on the circle and the velocity along it, lam and the rates as they must be
    x, y, u, v, _ = jet[0]
    at = np.arctan2(x, -y)
    found = motion(at, u * np.cos(at) + v * np.sin(at))
    assert jet[0] == pytest.approx(found, abs=1e-9)
    assert jet[1] == pytest.approx(rates(at, u * np.cos(at) + v * np.sin(at)), abs=1e-8)


def test_states_that_are_consistent_stay_to_the_last_digit():
    x0 = motion(0.7, 1.3)
    x0[4] = 0.0
    jet = consistent_jet(EQUATIONS, 0.0, x0)
    assert np.array_equal(jet[0, :4], x0[:4])
    assert jet[0, 4] == pytest.approx(motion(0.7, 1.3)[4], rel=1e-13)
    assert jet[1] == pytest.approx(rates(0.7, 1.3), rel=1e-12)


def test_states_that_are_not_move_by_about_as_much_as_they_must():
    x0 = motion(0.7, 1.3) + [0.01, 0.0, 0.0, 0.01, 0.0]
    jet = consistent_jet(EQUATIONS, 0.0, x0)
    assert np.abs(ARRAY.residual(0.0, jet)).max() < 1e-11
    assert np.linalg.norm(jet[0, :4] - x0[:4]) < 0.03


def test_values_of_which_nothing_is_known_are_found():
    jet = consistent_jet(EQUATIONS, 0.0, [0.6, np.nan, 0.8, np.nan, np.nan], [True, False, True, False, False])
    assert abs(jet[0, 1]) == pytest.approx(0.8, rel=1e-12)
    assert jet[0, 0] * jet[0, 2] + jet[0, 1] * jet[0, 3] == pytest.approx(0.0, abs=1e-12)


def test_offsets_of_the_signature_give_the_same_values_as_the_whole_array():
    signature = StructuralSignature.of(EQUATIONS)
    x0 = motion(0.4, -0.8)
    x0[4] = 0.0
    jet = consistent_jet(EQUATIONS, 0.0, x0, offsets=signature.c)
    assert jet[0] == pytest.approx(motion(0.4, -0.8), rel=1e-12)
    assert jet[1, :4] == pytest.approx(rates(0.4, -0.8)[:4], rel=1e-12)


def test_large_arrays_are_sparse():
    """60 coupled pendulums: 300 unknowns, 1200 columns with the offsets of the signature."""

    def residual(t, s, sp):
        rows = []
        for k in range(60):
            rows += pendulum(t, s[5 * k : 5 * k + 5], sp[5 * k : 5 * k + 5])
            rows[-3] = rows[-3] - 0.1 * (s[5 * k - 5] if k else 0.0)
        return rows

    equations = SystemEquations(daedal.ImplicitDAE(residual, 300))
    offsets = StructuralSignature.of(equations).c
    array = NonlinearDerivativeArray(equations, offsets)
    assert array.shape[1] == 1200
    rng = np.random.default_rng(0)
    x0 = np.concatenate([motion(*pair) for pair in rng.uniform(-1.0, 1.0, (60, 2))])
    x0[4::5] = 0.0
    jet = consistent_jet(equations, 0.0, x0, offsets=offsets)
    states = np.arange(300) % 5 < 4
    assert np.array_equal(jet[0, states], x0[states])
    assert np.abs(array.residual(0.0, jet)).max() < 1e-10
    moved = x0 + 1e-3 * rng.standard_normal(300)
    jet = consistent_jet(equations, 0.0, moved, offsets=offsets)
    assert np.abs(array.residual(0.0, jet)).max() < 1e-10
    assert np.abs(jet[0, states] - moved[states]).max() < 1e-2
    with pytest.raises(daedal.InvalidProblemError, match="can be computed for at most"):
        consistent_jet(SystemEquations(daedal.ImplicitDAE(lambda t, y, yp: yp + y, 1500)), 0.0, np.zeros(1500))


def test_other_parameters_of_the_same_equations_are_used():
    equations = SystemEquations(
        daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + y[1], y[0] - p[0] * t], 2, params=[2.0])
    )
    assert consistent_jet(equations, 1.0, [0.0, 0.0])[0] == pytest.approx([2.0, -2.0])
    other = copy(equations)
    other.params = np.array([5.0])
    assert consistent_jet(other, 1.0, [0.0, 0.0])[0] == pytest.approx([5.0, -5.0])


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**31))
def test_units_over_twelve_decades_and_permutations_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    order, lines = rng.permutation(5), rng.permutation(5)
    unit, factor = 10.0 ** rng.uniform(-6, 6, 5), 10.0 ** rng.uniform(-6, 6, 5)

    def scaled(t, s, sp):
        back = np.argsort(order)
        values = pendulum(t, [s[back[k]] / unit[k] for k in range(5)], [sp[back[k]] / unit[k] for k in range(5)])
        return [values[i] * factor[i] for i in lines]

    angle, speed = rng.uniform(0.3, 1.2), rng.uniform(0.5, 2.0)
    right = motion(angle, speed)
    guess = (np.append(right[:4], 1.0) * unit)[order]
    jet = consistent_jet(SystemEquations(daedal.ImplicitDAE(scaled, 5)), 0.0, guess)
    found = np.empty((2, 5))
    found[:, order] = jet[:2]
    assert found[0] / unit == pytest.approx(right, rel=1e-10)
    assert found[1] / unit == pytest.approx(rates(angle, speed), rel=1e-8, abs=1e-8)


def test_contradictions_name_what_is_fixed_and_which_equations():
    cases = [
        ({"x": 0.6, "y": -0.9}, {"x", "y"}, {4}, "equation 4"),
        ({"x": 0.6, "y": -0.8, "u": 1.0, "v": 1.0}, {"y", "u", "v"}, {0, 1, 4}, "equation 4 differentiated once"),
        ({"x": 0.6, "y": -0.8, "u": 0.0, "v": 0.0, "lam": 1.0}, {"lam"}, {2, 3}, "equation 0 differentiated once"),
        ({"x": 2.0, "u": 0.0}, {"x"}, {4}, "equation 4"),
    ]
    for values, named, equations, words in cases:
        x0 = np.array([values.get(name, 0.1) for name in NAMES])
        fixed = [name in values for name in NAMES]
        with pytest.raises(daedal.InconsistentInitialError) as caught:
            consistent_jet(EQUATIONS, 0.0, x0, fixed)
        message = str(caught.value)
        assert words in message and " fixed at t = 0" in message
        assert named <= set(message.split(" fixed at")[0].split(" with ")[1].replace(",", " ").split())
        assert equations & set(caught.value.equations)


def test_wrong_arguments_are_refused_in_words():
    with pytest.raises(daedal.InvalidProblemError, match="must have length 5"):
        consistent_jet(EQUATIONS, 0.0, [1.0, 2.0])
    with pytest.raises(daedal.InvalidProblemError, match="fixed must have the shape of x0"):
        consistent_jet(EQUATIONS, 0.0, [0.0] * 5, [True, False])
    with pytest.raises(daedal.InvalidProblemError, match="u is fixed, but x0 has no value"):
        consistent_jet(EQUATIONS, 0.0, [0.6, -0.8, np.nan, 0.0, 0.0], [False, False, True, False, False])
    logarithm = SystemEquations(implicit(lambda t, y, yp: [yp[0] - np.log(y[0])], "y"))
    with pytest.raises(daedal.InvalidProblemError, match="cannot be evaluated"):
        consistent_jet(logarithm, 0.0, [-1.0])
    with pytest.raises(daedal.InconsistentInitialError, match="do not determine z'"):
        consistent_jet(
            SystemEquations(implicit(lambda t, y, yp: [yp[0] - y[1], 2 * yp[0] - 2 * y[1]], "x", "z")), 0.0, [1.0, 1.0]
        )


def test_printed_consistent_values():
    """Section 5.3 of the extraction: the algorithm of theorem 2.4.8 at t = 1/2."""
    jet = consistent_jet(SystemEquations(KNOWN["(2.3.7)"].problem), 0.5, [0.0, 0.0, 0.0])
    assert jet[0] == pytest.approx([-1.10841896483199, 1.64872127070013, 3.81108877892012], rel=1e-13)
    jet = consistent_jet(SystemEquations(KNOWN["(3.1.13)"].problem), 0.5, [0.0, 0.0])
    assert jet[0] == pytest.approx([-0.836948304231356, -0.877582561890373], rel=1e-13)
    jet = consistent_jet(SystemEquations(KNOWN["(4.3.33)"].problem), 0.5, [2.0, 0.0])
    assert jet[0] == pytest.approx([2.0, np.sin(0.5)], rel=1e-13)


# --- the public function ----------------------------------------------------------------------------------------------


def test_consistent_initial_of_index_five():
    names = ["q", "w", "m", "r", "u"]
    y, yp = daedal.consistent_initial(
        daedal.ImplicitDAE(flexible_joint, 5, names=names), 0.4, ([0.5] * 5, None), fixed=[]
    )
    q = [2.0**k * np.sin(0.8 + 0.5 * np.pi * k) for k in range(6)]  # sin(2 t) and its derivatives

    def motor(*d):  # 30 (m - q) = 2 q'' + 5 sin q, differentiated as often as asked for
        s, c = np.sin(q[0]), np.cos(q[0])
        sines = [s, q[1] * c, q[2] * c - q[1] ** 2 * s, q[3] * c - 3 * q[1] * q[2] * s - q[1] ** 3 * c]
        return [q[k] + (2.0 * q[k + 2] + 5.0 * sines[k]) / 30.0 for k in d]

    m, r, a, jerk = motor(0, 1, 2, 3)
    assert y == pytest.approx([q[0], q[1], m, r, 0.5 * a + 30.0 * (m - q[0])], rel=1e-12)
    assert yp == pytest.approx([q[1], q[2], r, a, 0.5 * jerk + 30.0 * (r - q[1])], rel=1e-11)


def test_differential_variables_keep_their_values_or_are_refused():
    y0 = motion(0.7, 1.3)
    y, yp = daedal.consistent_initial(PENDULUM, 0.0, ([*y0[:4], 0.0], None))
    assert np.array_equal(y[:4], y0[:4])
    assert y == pytest.approx(y0, rel=1e-12) and yp == pytest.approx(rates(0.7, 1.3), rel=1e-11)
    with pytest.raises(daedal.InconsistentInitialError, match="equation 4") as caught:
        daedal.consistent_initial(PENDULUM, 0.0, ([0.6, -0.9, 0.0, 0.0, 0.0], None))
    assert caught.value.equations[0] == 4
    assert "violate: x**2 + y**2 - 1 = 0 (left side 0.17)" in str(caught.value)
    with pytest.raises(daedal.InconsistentInitialError, match=r"violate: 2\*x\*u \+ 2\*y\*v = 0 \(left side -0.4\)"):
        daedal.consistent_initial(PENDULUM, 0.0, ([0.6, -0.8, 1.0, 1.0, 0.0], None))
    moved, _ = daedal.consistent_initial(PENDULUM, 0.0, ([0.6, -0.9, 0.0, 0.0, 0.0], None), fixed=[])
    assert moved[0] ** 2 + moved[1] ** 2 == pytest.approx(1.0, rel=1e-12)


def test_derivatives_may_be_fixed_in_place_of_values():
    """Section 6.1 of the extraction: Y1' given, so that Y2' = g2' is needed, which F = 0 does not contain."""
    problem = implicit(lambda t, y, yp: [yp[0] + yp[1] + y[0] - np.sin(t), y[1] - np.cos(3.0 * t)], "Y1", "Y2")
    y, yp = daedal.consistent_initial(problem, 0.5, ([0.0, 0.0], [2.0, 0.0]), fixed=["Y1'"])
    assert yp == pytest.approx([2.0, -3.0 * np.sin(1.5)], rel=1e-12)
    assert y == pytest.approx([np.sin(0.5) - 2.0 + 3.0 * np.sin(1.5), np.cos(1.5)], rel=1e-12)
    run = daedal.solve(problem, (0.5, 1.0), {"Y1'": 2.0})
    assert run.y[:, 0] == pytest.approx(y, rel=1e-12)
    with pytest.raises(daedal.InvalidProblemError, match="Y3"):
        daedal.consistent_initial(problem, 0.5, ([0.0, 0.0], None), fixed=["Y3'"])


def test_initial_values_by_name_of_index_three():
    from daedal.initial.by_name import initial_by_name

    y, yp = initial_by_name(PENDULUM, 0.0, {"y": -0.8, "v'": -3.0})
    assert y[1] == -0.8 and yp[3] == -3.0
    assert np.abs(PENDULUM.evaluate(0.0, y, yp)).max() < 1e-12
    assert y[0] * y[2] + y[1] * y[3] == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(daedal.InvalidProblemError, match="no values for u, v, and the equations do not determine"):
        initial_by_name(PENDULUM, 0.0, {"x": 0.6})


def test_second_order_problems_of_index_five():
    def residual(t, x, xp, xpp):
        q, m, u = x
        return [2.0 * xpp[0] - 30.0 * (m - q) + 5.0 * np.sin(q), 0.5 * xpp[1] + 30.0 * (m - q) - u, q - np.sin(2.0 * t)]

    problem = daedal.SecondOrderDAE(residual, 3, names=["q", "m", "u"])
    x, xp, xpp = daedal.consistent_initial(problem, 0.4, ([0.7, 0.7, 0.0], [1.0, 1.0, 0.0]))
    first = implicit(flexible_joint, "q", "w", "m", "r", "u")
    y, yp = daedal.consistent_initial(first, 0.4, ([0.5] * 5, None), fixed=[])
    assert x == pytest.approx(y[[0, 2, 4]], rel=1e-11)
    assert xp[:2] == pytest.approx(y[[1, 3]], rel=1e-11)
    assert xpp[:2] == pytest.approx(yp[[1, 3]], rel=1e-11)


@pytest.mark.parametrize("angle, speed", [(0.7, 1.3), (0.7, 0.0), (0.0, 0.0), (2.5, -3.0)])
def test_functions_that_cannot_be_traced_get_values_up_to_index_three(angle, speed):
    calls = []

    def residual(t, s, sp):
        calls.append(float(t))
        return pendulum(t, s, sp)

    problem = daedal.ImplicitDAE(residual, 5, names=list(NAMES))
    assert equations_of(problem) is None
    right = motion(angle, speed)
    y, yp = daedal.consistent_initial(problem, 0.0, ([*right[:4], 0.0], None))
    assert calls and min(calls) >= 0.0  # never on the other side of the start
    assert y == pytest.approx(right, rel=1e-7, abs=1e-7)
    assert yp[:4] == pytest.approx(rates(angle, speed)[:4], rel=1e-6, abs=1e-6)


# --- along a solution -------------------------------------------------------------------------------------------------


def test_structure_is_constant_along_the_pendulum():
    along = daedal.analysis.analyse_along(EQUATIONS, lambda t: motion(np.sin(t), np.cos(t)), (0.0, 3.0), samples=9)
    assert along.constant
    (stretch,) = along.stretches
    assert (stretch.structure.index, stretch.structure.d) == (3, 2)


def test_an_index_that_changes_in_mid_run_is_found_with_its_time():
    def residual(t, y, yp):
        return [yp[0] - y[1], y[0] - t + np.maximum(t - 0.5, 0.0) * (y[1] - 1.0)]

    along = daedal.analysis.analyse_along(implicit(residual, "x", "z"), lambda t: [t, 1.0], (0.0, 1.0), samples=9)
    assert [stretch.structure.index for stretch in along.stretches] == [2, 1]
    (point,) = along.singular_points
    assert point.t == pytest.approx(0.5, abs=1e-6)
    assert [stretch.structure.degrees_of_freedom for stretch in along.stretches] == [0, 1]
    backwards = daedal.analysis.analyse_along(implicit(residual, "x", "z"), lambda t: [t, 1.0], (1.0, 0.0), samples=9)
    assert str(backwards) == str(along) and str(along).startswith("0 <= t <= 0.5: index 2")
    assert point.equations and set(point.unknowns) <= {"x", "z"}
    assert "index 2" in str(along) and "index 1" in str(along)


def test_the_structure_at_a_time_does_not_depend_on_the_times_before():
    """Index 3 while a constraint is one of positions, index 1 after that; looked at from either of them."""

    def residual(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] - force, x - t**2 + np.maximum(t - 0.5, 0.0) * (force - 2.0)]

    problem, solution = implicit(residual, "x", "v", "f"), lambda t: [t**2, 2.0 * t, 2.0]
    whole = daedal.analysis.analyse_along(problem, solution, (0.0, 1.0), samples=6)
    parts = [daedal.analysis.analyse_along(problem, solution, span, samples=3) for span in [(0.0, 0.4), (0.6, 1.0)]]
    assert [part.stretches[0].structure for part in parts] == [stretch.structure for stretch in whole.stretches]
    assert [stretch.structure.index for stretch in whole.stretches] == [3, 1]
    assert [stretch.structure.degrees_of_freedom for stretch in whole.stretches] == [0, 2]


def test_decisions_of_an_ordinary_differential_equation_are_those_of_the_equations_alone():
    found = local_structure(implicit(lambda t, y, yp: [yp[0] + y[0]], "x"), 0.0, [1.0])
    assert found.index == 0 and len(found.decisions) == 3


def test_a_solution_says_itself_where_it_begins_and_ends():
    problem = implicit(lambda t, y, yp: [yp[0] + y[0], y[1] - y[0]], "x", "z")
    sol = daedal.solve(problem, (0.0, 1.0), {"x": 1.0})
    along = daedal.analysis.analyse_along(problem, sol, samples=4)
    assert along.constant and along.stretches[0].structure.index == 1
    assert (along.stretches[0].start, along.stretches[0].end) == (0.0, 1.0)
    with pytest.raises(daedal.InvalidProblemError, match="t_span is missing"):
        daedal.analysis.analyse_along(problem, lambda t: [1.0, 1.0])
    with pytest.raises(daedal.InvalidProblemError, match=r"the rows of solution\(t\) must have length 1, got shape"):
        daedal.analysis.analyse_along(implicit(lambda t, y, yp: [yp[0] + y[0]], "x"), sol)
    with pytest.raises(daedal.InvalidProblemError, match="a function of it calls j0 on a value"):
        daedal.analysis.analyse_along(implicit(lambda t, y, yp: [yp[0] + j0(y[0])], "x"), lambda t: [1.0], (0.0, 1.0))
    with pytest.raises(daedal.InvalidProblemError, match="samples must be at least 3"):
        daedal.analysis.analyse_along(problem, sol, samples=2)


def test_isolated_singular_points_are_found_between_samples():
    leading = implicit(lambda t, y, yp: [(t - 0.3) * yp[0] - y[0] + t, yp[1] - y[0]], "x", "w")
    along = daedal.analysis.analyse_along(leading, lambda t: [t, 0.5 * t * t], (0.0, 1.0), samples=8)
    (point,) = along.singular_points
    assert point.t == pytest.approx(0.3, abs=1e-6)
    assert (point.equations, point.unknowns) == ((0,), ("x",))
    algebraic = implicit(lambda t, y, yp: [yp[0] - y[1], y[0] - t + (t - 0.4) * (y[1] - 1.0)], "x", "z")
    (point,) = daedal.analysis.analyse_along(algebraic, lambda t: [t, 1.0], (0.0, 1.0), samples=8).singular_points
    assert point.t == pytest.approx(0.4, abs=1e-6) and "z" in point.unknowns


def test_a_problem_without_an_index_is_followed_as_well():
    model = daedal.library.get("unsolvable_pencil")
    along = daedal.analysis.analyse_along(model.problem, model.extra["exact"], (0.0, 2.0), samples=6)
    (stretch,) = along.stretches
    assert (stretch.structure.index, stretch.structure.strangeness_index, stretch.structure.v) == (None, 1, 1)
    assert str(along).startswith("0 <= t <= 2: no index, strangeness index 1")


# --- formulas ---------------------------------------------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**31))
def test_formulas_have_the_values_of_their_nodes(seed):
    """The text, evaluated by Python, is the function."""
    rng = np.random.default_rng(seed)
    a, b, k = rng.uniform(-2, 2), rng.uniform(0.5, 2.0), int(rng.integers(1, 4))

    def residual(t, y, yp):
        x, z = y
        first = a * x * (x + z - x) - (x - 2.0) * (z + b) * x / (b + z**2) + np.sin(k * x * z) ** 2
        return [first - x**k / (z * b) + yp[0] * x, np.exp(-z / b) * (x - z) * np.cos(t) - np.sqrt(z + 3.0) * yp[1]]

    equations = SystemEquations(implicit(residual, "x", "z"))
    formulas = Formulas(equations.graph, lambda name, j: "t" if name == "t" else ("x", "z")[j] + "_" * int(name[1:]))
    jet, t = rng.uniform(0.2, 1.5, (4, 2)), 0.4
    known = {("x", "z")[j] + "_" * order: jet[order, j] for order in range(4) for j in range(2)}
    for i in range(2):
        for times in range(3):
            node = equations.equation(i, times)
            text = formulas.text(node)
            functions = {name: getattr(np, name) for name in ("sin", "cos", "exp", "sqrt")}
            value = eval(text, {"__builtins__": {}}, {**known, **functions, "t": t})
            # numbers are printed with six digits
            assert value == pytest.approx(equations.values([node], t, jet)[0], rel=1e-3, abs=1e-3)
