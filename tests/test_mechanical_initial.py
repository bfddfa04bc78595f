"""Consistent initial values of mechanical systems: projection, redundancy, contradiction, singular cases, units."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal
from daedal.analysis.dependent_constraints import dependency_in_words, independent_rows, least_norm
from daedal.initial.mechanical_start import MechanicalStart, check_start, consistent_state

GRAVITY = 9.81


def fall(t, q, v):
    f = np.zeros(len(q))
    f[1] = -GRAVITY
    return f


def rod(t, q):
    return [q[0] ** 2 + q[1] ** 2 - 1.0]


def pendulum(**changes):
    data = dict(n_q=2, n_constraints=1, names=["x", "y"], constraint_names=["rod"])
    return daedal.MechanicalSystem(1.0, fall, changes.pop("constraint", rod), **(data | changes))


def points(constraint, n, count, mass=1.0, **options):
    """A system of point coordinates with the given constraint."""
    return daedal.MechanicalSystem(
        mass, lambda t, q, v: -np.arange(1.0, n + 1.0), constraint, n_q=n, n_constraints=count, **options
    )


# --- a four-bar linkage: three rods, pins at the ground; rods 2, 4, 3, ground 4 --------------------------------------

FOUR_BAR_NAMES = ["crank x", "crank y", "coupler", "rocker", "copy"]


def four_bar(t, q):
    """Joints A = q[0:2], B = q[2:4]; the last constraint is a combination of the first and the second."""
    crank = q[0] ** 2 + q[1] ** 2 - 4.0
    coupler = (q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 16.0
    rocker = (q[2] - 4.0) ** 2 + q[3] ** 2 - 9.0
    return [crank, coupler, rocker, 2.0 * crank - coupler]


def assembled_four_bar(angle):
    a = 2.0 * np.array([math.cos(angle), math.sin(angle)])
    d = np.array([4.0, 0.0]) - a
    length = np.hypot(*d)
    along = (16.0 - 9.0 + length**2) / (2.0 * length)
    normal = np.array([-d[1], d[0]]) / length
    return np.concatenate([a, a + along * d / length + math.sqrt(16.0 - along**2) * normal])


def test_consistent_values_come_back_bit_for_bit():
    q, v = np.array([0.6, -0.8]), np.array([0.8, 0.6]) * 1.2345678
    start = consistent_state(pendulum(), 0.0, q, v)
    assert np.array_equal(start.q, q) and np.array_equal(start.v, v)
    assert not start.moved_q.any() and not start.moved_v.any() and start.notes == ()


@given(angle=st.floats(0.3, 6.0), rate=st.floats(-1e3, 1e3), scale=st.sampled_from([1e-4, 1.0, 1e4]))
def test_consistent_values_in_any_units_come_back_bit_for_bit(angle, rate, scale):
    system = points(lambda t, q: [q[0] - scale * math.cos(q[2]), q[1] - scale * math.sin(q[2])], 3, 2)
    q = np.array([scale * math.cos(angle), scale * math.sin(angle), angle])
    v = rate * np.array([-q[1], q[0], 1.0])
    start = consistent_state(system, 0.0, q, v)
    assert np.array_equal(start.q, q)
    assert np.array_equal(start.v, v) or np.max(np.abs(start.moved_v)) <= 1e-9 * np.max(np.abs(v))


def test_positions_and_velocities_are_projected_to_the_nearest_values():
    start = consistent_state(pendulum(), 0.0, [1.2, 0.9], [1.0, 0.0])
    np.testing.assert_allclose(start.q, [0.8, 0.6], rtol=1e-14)
    np.testing.assert_allclose(start.v, [0.36, -0.48], rtol=1e-12)
    a = start.a
    np.testing.assert_allclose(start.q @ a + start.v @ start.v, 0.0, atol=1e-8)
    np.testing.assert_allclose(a, [0.0, -GRAVITY] - 2.0 * start.q * start.lam[0], rtol=1e-10)
    assert len(start.notes) == 2


def test_the_nearest_point_of_an_ellipse_is_stationary():
    system = points(lambda t, q: [q[0] ** 2 / 9.0 + q[1] ** 2 - 1.0], 2, 1, mass=[1.0, 4.0])
    q0 = np.array([2.5, 1.4])
    for weight, W in (("mass", np.diag([1.0, 4.0])), ("identity", np.eye(2)), ([[2.0, 1.0], [1.0, 2.0]], None)):
        W = np.array(weight) if W is None else W
        q = consistent_state(system, 0.0, q0, weight=weight).q
        gradient, pull = np.array([2.0 * q[0] / 9.0, 2.0 * q[1]]), W @ (q0 - q)
        assert abs(gradient[0] * pull[1] - gradient[1] * pull[0]) < 1e-8
        assert abs(q[0] ** 2 / 9.0 + q[1] ** 2 - 1.0) < 1e-14


def test_fixed_coordinates_and_velocities_are_held():
    start = consistent_state(pendulum(), 0.0, [0.9, 0.6], [0.3, 1.0], fixed=["y", "x'"])
    assert start.q[1] == 0.6 and start.v[0] == 0.3
    np.testing.assert_allclose(start.q[0], 0.8, rtol=1e-14)
    np.testing.assert_allclose(start.v[1], -0.4, rtol=1e-12)
    by_index = consistent_state(pendulum(), 0.0, [0.9, 0.6], [0.3, 1.0], fixed=[1, 2])
    by_mask = consistent_state(pendulum(), 0.0, [0.9, 0.6], [0.3, 1.0], fixed=[False, True, True, False])
    for other in (by_index, by_mask):
        assert np.array_equal(other.q, start.q) and np.array_equal(other.v, start.v)
    only_q = consistent_state(pendulum(), 0.0, [0.9, 0.6], fixed=np.array([False, True]))
    assert only_q.q[1] == 0.6


def test_held_values_that_leave_no_solution_are_named():
    with pytest.raises(daedal.InconsistentInitialError, match=r"with fixed y.*'rod'"):
        consistent_state(pendulum(), 0.0, [0.5, 1.5], fixed=["y"])
    with pytest.raises(daedal.InconsistentInitialError, match=r"with fixed x' and y'.*'rod'"):
        consistent_state(pendulum(), 0.0, [0.6, 0.8], [1.0, 1.0], fixed=["x'", "y'"])


@pytest.mark.parametrize("fixed", [["z"], [7], [[True]], "x y"])
def test_unknown_fixed_values_are_refused(fixed):
    with pytest.raises(daedal.InvalidProblemError, match="fixed"):
        consistent_state(pendulum(), 0.0, [0.6, 0.8], fixed=fixed)


@pytest.mark.parametrize("weight", ["length", [[1.0, 0.0], [0.0, -1.0]], [1.0, 2.0, 3.0]])
def test_bad_weights_are_refused(weight):
    with pytest.raises(daedal.InvalidProblemError, match="weight"):
        consistent_state(pendulum(), 0.0, [0.6, 0.9], weight=weight)


def test_a_far_start_converges():
    start = consistent_state(points(four_bar_only, 4, 3), 0.0, [30.0, 25.0, -17.0, 40.0])
    assert np.max(np.abs(four_bar_only(0.0, start.q))) < 1e-12


def four_bar_only(t, q):
    return four_bar(t, q)[:3]


def test_velocities_are_computed_if_not_given():
    system = points(lambda t, q: [q[0] - math.sin(2.0 * t), q[1] + q[0] - 1.0], 3, 2)
    start = consistent_state(system, 0.3, [math.sin(0.6), 1.0 - math.sin(0.6), 0.0])
    np.testing.assert_allclose(start.v, [2.0 * math.cos(0.6), -2.0 * math.cos(0.6), 0.0], atol=1e-10)
    np.testing.assert_allclose(start.a[:2], [-4.0 * math.sin(0.6), 4.0 * math.sin(0.6)], rtol=1e-7)


def test_a_knife_edge_is_projected_on_the_velocity_level_only():
    system = daedal.MechanicalSystem(
        [2.0, 2.0, 0.5],
        lambda t, q, v: [9.81, 0.0, 0.0],
        n_q=3,
        velocity_constraint=lambda t, q, v: [math.sin(q[2]) * v[0] - math.cos(q[2]) * v[1]],
        n_velocity_constraints=1,
        names=["x", "y", "phi"],
    )
    start = consistent_state(system, 0.0, [1.0, 2.0, 0.5], [1.0, 0.0, 3.0])
    assert np.array_equal(start.q, [1.0, 2.0, 0.5]) and start.v[2] == 3.0
    np.testing.assert_allclose(start.v[:2], math.cos(0.5) * np.array([math.cos(0.5), math.sin(0.5)]), rtol=1e-13)
    with pytest.raises(daedal.InconsistentInitialError, match=r"velocity constraint 0 \(0.4794\)"):
        check_start(system, 0.0, [1.0, 2.0, 0.5], [1.0, 0.0, 3.0])


# --- redundant constraints ------------------------------------------------------------------------------------------


def test_a_redundant_constraint_of_a_four_bar_is_named_and_left_out():
    labels = ["crank", "coupler", "rocker", "extra"]
    system = points(four_bar, 4, 4, constraint_names=labels)
    start = consistent_state(system, 0.0, assembled_four_bar(0.9) + 1e-3)
    assert start.rows.tolist() == [0, 1, 2]
    assert start.redundant == [(3, {0: 2.0, 1: -1.0})]
    assert start.notes[0].startswith("'extra' = 2 'crank' - 'coupler'")
    assert np.max(np.abs(four_bar(0.0, start.q))) < 1e-13
    reference = consistent_state(points(four_bar_only, 4, 3), 0.0, start.q)
    np.testing.assert_allclose(start.a, reference.a, rtol=1e-9)
    K = system.at(0.0, start.q).jacobian
    np.testing.assert_allclose(K.T @ start.lam, K[:3].T @ reference.lam, rtol=1e-9)
    least = np.linalg.lstsq(K.T, K[:3].T @ reference.lam, rcond=1e-9)[0]
    np.testing.assert_allclose(start.lam, least, rtol=1e-8)


@pytest.mark.parametrize("factor", [1e4, -1e-4, 1.0])
def test_a_scaled_copy_of_a_constraint_is_redundant(factor):
    system = pendulum(
        n_q=3,
        constraint=lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0, factor * (q[0] ** 2 + q[1] ** 2 - 1.0)],
        n_constraints=2,
        names=["x", "y", "z"],
        constraint_names=["rod", "copy"],
    )
    start = consistent_state(system, 0.0, [0.6, 0.8, 0.0], [0.4, -0.3, 1.0])
    assert start.rows.tolist() == [0]
    (row, terms) = start.redundant[0]
    assert row == 1 and set(terms) == {0}
    np.testing.assert_allclose(terms[0], factor, rtol=1e-9)
    single = consistent_state(pendulum(), 0.0, [0.6, 0.8], [0.4, -0.3])
    expected = single.lam[0] * np.array([1.0, factor]) / (1.0 + factor**2)
    np.testing.assert_allclose(start.lam, expected, atol=1e-8 * np.max(np.abs(expected)))


def pendulum_with(constraint, count, **options):
    return points(constraint, 3, count, **options)


@given(
    factors=st.lists(st.floats(-4.0, 4.0), min_size=3, max_size=3),
    scales=st.lists(st.floats(-4.0, 4.0), min_size=4, max_size=4),
    seed=st.integers(0, 1000),
)
def test_dependent_rows_of_any_scale_are_found(factors, scales, seed):
    base = np.random.default_rng(seed).standard_normal((3, 6))
    K = np.vstack([base, np.array(factors) @ base]) * (10.0 ** np.array(scales))[:, None]
    rows, redundant = independent_rows(K, 4)
    assert rows.size == 3 and len(redundant) == 1
    row, terms = redundant[0]
    combination = sum((value * K[k] for k, value in terms.items()), np.zeros(6))
    np.testing.assert_allclose(combination, K[row], atol=1e-6 * max(np.linalg.norm(K[row]), 1e-300))
    lam = np.arange(1.0, 4.0)
    full = least_norm(lam, rows, redundant, 4)
    np.testing.assert_allclose(K.T @ full, K[rows].T @ lam, atol=1e-6 * np.max(np.abs(K[rows].T @ lam)))


def test_velocity_rows_never_replace_position_rows():
    K = np.array([[1e-3, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    assert independent_rows(K, 1)[0].tolist() == [0, 1]
    assert independent_rows(K[[2, 1, 0]], 1)[0].tolist() == [0, 1]


def test_a_velocity_constraint_that_follows_from_a_position_constraint_is_redundant():
    system = pendulum(
        velocity_constraint=lambda t, q, v: [q[0] * v[0] + q[1] * v[1]],
        n_velocity_constraints=1,
        constraint_names=["rod", "tangent"],
    )
    start = consistent_state(system, 0.0, [0.6, 0.8], [1.0, 0.0])
    assert start.rows.tolist() == [0]
    assert start.redundant == [(1, {0: pytest.approx(0.5)})]


def test_wording_of_dependencies():
    def label(i):
        return f"'c{i}'"

    assert dependency_in_words((3, {1: 2.0, 2: -1.0}), label) == "'c3' = 2 'c1' - 'c2'"
    assert dependency_in_words((1, {0: -0.5}), label) == "'c1' = -0.5 'c0'"
    assert dependency_in_words((1, {}), label) == "'c1' = 0"


def test_a_squared_constraint_has_no_gradient_and_is_redundant():
    system = pendulum_with(lambda t, q: [q[0] + q[1] - 1.0, (q[0] + q[1] - 1.0) ** 2], 2)
    start = consistent_state(system, 0.0, [0.3, 0.7, 0.0], [1.0, -1.0, 0.0])
    assert start.redundant == [(1, {})] and start.rows.tolist() == [0]


# --- what must be refused -------------------------------------------------------------------------------------------


def test_contradictory_constraints_are_named():
    system = pendulum(
        constraint=lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0, q[0] ** 2 + q[1] ** 2 - 4.0],
        n_constraints=2,
        constraint_names=["short", "long"],
    )
    with pytest.raises(daedal.InconsistentInitialError, match=r"contradictory.*'long' = 'short'") as caught:
        consistent_state(system, 0.0, [0.7, 0.8])
    assert set(caught.value.equations) == {0, 1}
    with pytest.raises(daedal.InconsistentInitialError, match="are contradictory"):
        check_start(system, 0.0, [0.7, 0.8], [0.0, 0.0])


def test_a_linkage_that_cannot_be_assembled_is_refused():
    def too_short(t, q):
        return [q[0] ** 2 + q[1] ** 2 - 1.0, (q[0] - 4.0) ** 2 + q[1] ** 2 - 4.0]

    system = points(too_short, 2, 2, constraint_names=["left", "right"])
    with pytest.raises(daedal.InconsistentInitialError, match=r"no position.*(left|right)"):
        consistent_state(system, 0.0, [1.2, 0.5])


def test_constraints_that_part_in_time_are_refused():
    first = pendulum_with(lambda t, q: [q[0] - math.sin(t), q[0] - 2.0 * math.sin(t)], 2)
    with pytest.raises(daedal.InconsistentInitialError, match=r"velocity level.*constraint 1 = constraint 0"):
        consistent_state(first, 0.0, [0.0, 1.0, 1.0])
    second = pendulum_with(lambda t, q: [q[0] - t**2, q[0] - 2.0 * t**2], 2)
    with pytest.raises(daedal.InconsistentInitialError, match=r"acceleration level.*constraint 1 = constraint 0"):
        consistent_state(second, 0.0, [0.0, 1.0, 1.0])


def crank_slider(t, q):
    """Two equal rods: at q = (0, 1, 0) the crank stands upright and the slider is in the pivot."""
    return [q[0] ** 2 + q[1] ** 2 - 1.0, (q[0] - q[2]) ** 2 + q[1] ** 2 - 1.0]


def test_a_crank_slider_with_equal_rods_is_singular_with_the_slider_in_the_pivot():
    system = points(crank_slider, 3, 2, constraint_names=["crank", "rod"])
    with pytest.raises(daedal.InconsistentInitialError, match=r"singular configuration.*'rod' = 'crank'") as caught:
        consistent_state(system, 0.0, [0.0, 1.0, 0.0])
    assert caught.value.equations == (1,)
    beside = consistent_state(system, 0.0, [0.1, math.sqrt(0.99), 0.2])
    assert beside.rows.tolist() == [0, 1]


def test_an_isolated_point_is_singular():
    with pytest.raises(daedal.InconsistentInitialError, match="singular configuration"):
        consistent_state(points(lambda t, q: [q[0] ** 2 + q[1] ** 2], 2, 1), 0.0, [0.0, 0.0])


def test_a_direction_without_mass_is_named():
    system = pendulum_with(
        lambda t, q: [q[0] - q[1]], 1, mass=[1.0, 0.0, 0.0], names=["x", "y", "z"], constraint_names=["tie"]
    )
    with pytest.raises(daedal.InconsistentInitialError, match=r"mass matrix is singular.*: z\."):
        consistent_state(system, 0.0, [0.0, 0.0, 0.0])


def test_a_mass_that_is_singular_only_off_the_manifold_is_accepted():
    system = points(lambda t, q: [q[0] - q[1] - 1.0], 2, 1, mass=[2.0, 0.0])
    start = consistent_state(system, 0.0, [1.3, 0.0], [1.0, 0.0])
    np.testing.assert_allclose(start.q[0] - start.q[1], 1.0, rtol=1e-15)
    np.testing.assert_allclose(start.a, [-1.5, -1.5], rtol=1e-12)  # (f1 + f2) / m
    assert abs(start.v[0] - start.v[1]) < 1e-14


@given(heavy=st.floats(-9.0, 9.0), light=st.floats(-9.0, 9.0))
def test_masses_of_any_size_are_not_mistaken_for_singular(heavy, light):
    system = pendulum_with(
        lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], 1, mass=[10.0**heavy, 10.0**light, 10.0 ** (0.5 * heavy)]
    )
    start = consistent_state(system, 0.0, [0.6, 0.8, 0.0])
    assert np.all(np.isfinite(start.a)) and np.all(np.isfinite(start.lam))


def test_forces_that_undo_the_reaction_fail_the_index_test():
    def friction(mu):
        return daedal.MechanicalSystem(
            1.0,
            lambda t, q, v, lam: [1.0, -GRAVITY + mu * lam[0]],
            lambda t, q: [q[1]],
            n_q=2,
            n_constraints=1,
            force_uses_multipliers=True,
            constraint_names=["floor"],
        )

    start = consistent_state(friction(0.5), 0.0, [0.0, 0.0])
    np.testing.assert_allclose(start.lam, [-GRAVITY / 0.5], rtol=1e-9)
    with pytest.raises(daedal.InconsistentInitialError, match=r"'floor' are not determined.*index is above 3"):
        consistent_state(friction(1.0), 0.0, [0.0, 0.0])


def test_algebraic_variables_take_part_in_the_index_test():
    def system(coupling):
        return daedal.MechanicalSystem(
            1.0,
            lambda t, q, v, r, w, lam: [r[0], -GRAVITY + coupling * w[0]],
            lambda t, q: [q[1]],
            n_q=2,
            n_constraints=1,
            state_rate=lambda t, q, v, r, w, lam: [-2.0 * r[0] + w[0]],
            n_r=1,
            algebraic=lambda t, q, v, r, w, lam: [w[0] + w[0] ** 3 / 3.0 - lam[0]],
            n_w=1,
            force_uses_multipliers=True,
        )

    start = daedal.consistent_initial(system(0.2), 0.0, ([0.0, 0.0], None, [0.25], [-3.0]))
    w, lam = start.w[0], start.lam[0]
    np.testing.assert_allclose(w + w**3 / 3.0, lam, rtol=1e-9)
    np.testing.assert_allclose(lam, -GRAVITY + 0.2 * w, rtol=1e-9)
    np.testing.assert_allclose(start.r_rate, [-0.5 + w], rtol=1e-12)
    np.testing.assert_allclose(start.a, [0.25, 0.0], atol=1e-8)
    assert len(start.initial) == 5

    blind = system(0.2).replaced(algebraic=lambda t, q, v, r, w, lam: [0.0 * w[0] - lam[0]])
    with pytest.raises(daedal.InconsistentInitialError, match="do not determine w"):
        consistent_state(blind, 0.0, [0.0, 0.0])


def test_functions_that_cannot_be_evaluated_are_reported():
    with pytest.raises(
        daedal.InconsistentInitialError, match="constraint returns NaN or infinity at the initial values"
    ):
        consistent_state(pendulum_with(lambda t, q: [math.nan * q[0]], 1), 0.0, [1.0, 0.0, 0.0])
    with pytest.raises(ZeroDivisionError):
        consistent_state(pendulum_with(lambda t, q: [1.0 / 0.0], 1), 0.0, [1.0, 0.0, 0.0])


# --- scaling --------------------------------------------------------------------------------------------------------


@given(
    constraint=st.sampled_from([1e-4, 1.0, 1e4]),
    length=st.sampled_from([1e-3, 1.0, 1e3]),
    shift=st.floats(-0.2, 0.2),
)
def test_the_projection_does_not_depend_on_units(constraint, length, shift):
    def scaled(t, q):
        return [constraint * value for value in four_bar_only(t, np.asarray(q) / length)]

    q0 = assembled_four_bar(1.1) + shift * np.array([1.0, -0.5, 0.3, 0.7])
    reference = consistent_state(points(four_bar_only, 4, 3), 0.0, q0)
    start = consistent_state(points(scaled, 4, 3), 0.0, length * q0)
    np.testing.assert_allclose(start.q / length, reference.q, rtol=1e-8, atol=1e-8)
    assert start.rows.tolist() == [0, 1, 2]


# --- the start of an integration ------------------------------------------------------------------------------------


def test_small_inconsistencies_are_projected_and_noted():
    start = check_start(pendulum(), 0.0, [0.6 + 1e-8, 0.8], [0.8, -0.6 + 1e-9])
    assert abs(start.q @ start.q - 1.0) < 1e-15 and abs(start.q @ start.v) < 1e-14
    assert start.notes[0].startswith("q was moved to satisfy the constraints")


def test_large_inconsistencies_are_refused_with_values_and_remedy():
    with pytest.raises(daedal.InconsistentInitialError) as caught:
        check_start(pendulum(), 0.0, [1.2, 0.9], [1.0, 0.0])
    message = str(caught.value)
    for part in (
        "'rod' (1.25)",
        "x = 0.8 (given 1.2)",
        "y' = -0.48 (given 0)",
        "consistent_initial",
        "correct_initial",
    ):
        assert part in message, message
    assert caught.value.equations == (0,)
    start = check_start(pendulum(), 0.0, [1.2, 0.9], [1.0, 0.0], correct=True)
    np.testing.assert_allclose(start.q, [0.8, 0.6], rtol=1e-14)


def test_a_wrong_velocity_is_refused_unless_it_was_to_be_computed():
    with pytest.raises(daedal.InconsistentInitialError, match=r"(?s)Velocity constraints.*'rod' \(1.2\)"):
        check_start(pendulum(), 0.0, [0.6, 0.8], [1.0, 0.0])
    assert not check_start(pendulum(), 0.0, [0.6, 0.8], None).v.any()


def test_tiny_velocities_are_judged_by_the_tolerance():
    start = check_start(pendulum(), 0.0, [0.6, 0.8], [1e-11, 0.0], atol=1e-9)
    assert abs(start.q @ start.v) < 1e-20
    with pytest.raises(daedal.InconsistentInitialError):
        check_start(pendulum(), 0.0, [0.6, 0.8], [1e-11, 0.0], atol=1e-14)


def test_systems_without_constraints_pass_through():
    system = daedal.MechanicalSystem([2.0, 4.0], lambda t, q, v: [1.0, 2.0], n_q=2)
    start = check_start(system, 0.0, [1.0, 2.0], [3.0, 4.0])
    assert start.rows.size == 0 and start.lam.size == 0
    np.testing.assert_allclose(start.a, [0.5, 0.5])


def test_consistent_initial_takes_and_returns_mechanical_starts():
    start = daedal.consistent_initial(pendulum(), 0.0, ([1.2, 0.9], [1.0, 0.0]), fixed=[], weight="identity")
    assert isinstance(start, MechanicalStart)
    assert start.initial[0] is start.q and start.initial[1] is start.v and len(start.initial) == 2
    again = daedal.consistent_initial(pendulum(), 0.0, start)
    assert np.array_equal(again.q, start.q) and np.array_equal(again.v, start.v)
    for wrong in ([1.0, 0.0, 0.0, 0.0, 0.0], ([1.0, 0.0],), None):
        with pytest.raises(daedal.InvalidProblemError, match="initial"):
            daedal.consistent_initial(pendulum(), 0.0, wrong)
