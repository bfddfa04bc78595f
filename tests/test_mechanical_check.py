"""The report of MechanicalSystem.check: wrong derivatives, dependent rows, bad masses, inconsistent values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal


def fall(t, q, v):
    return [0.0, -9.81, 0.0]


def pivot(t, q):
    """A rod on a pivot that moves along x: q = (x, y, phi)."""
    return [q[0] - math.sin(q[2]) - 0.1 * math.sin(3.0 * t), q[1] + math.cos(q[2])]


def pivot_jacobian(t, q):
    return [[1.0, 0.0, -math.cos(q[2])], [0.0, 1.0, -math.sin(q[2])]]


def pivot_t(t, q):
    return [-0.3 * math.cos(3.0 * t), 0.0]


def pivot_bias(t, q, v):
    return [-math.sin(q[2]) * v[2] ** 2 - 0.9 * math.sin(3.0 * t), math.cos(q[2]) * v[2] ** 2]


GIVEN = dict(constraint_jacobian=pivot_jacobian, constraint_t=pivot_t, acceleration_bias=pivot_bias)


def rod(**changes):
    data = dict(n_q=3, n_constraints=2, names=["x", "y", "phi"], constraint_names=["along", "across"])
    mass = changes.pop("mass", [2.0, 2.0, 0.3])
    return daedal.MechanicalSystem(mass, fall, changes.pop("constraint", pivot), **(data | changes))


def consistent(t=0.4, phi=0.7, rate=1.3):
    q = np.array([math.sin(phi) + 0.1 * math.sin(3.0 * t), -math.cos(phi), phi])
    return t, q, np.array([math.cos(phi) * rate + 0.3 * math.cos(3.0 * t), math.sin(phi) * rate, rate])


def test_correct_derivatives_pass():
    report = rod(**GIVEN).check(*consistent())
    assert report.ok, report
    assert [entry.name for entry in report.derivatives] == list(GIVEN)
    assert all(entry.given and entry.error < 1e-9 for entry in report.derivatives)
    assert report.index == 3 and report.rank == 2 and report.redundant == []
    assert report.position < 1e-15 and report.velocity < 1e-14
    assert 10 <= len(str(report).splitlines()) <= 12


def test_computed_derivatives_pass_too():
    report = rod().check(*consistent())
    assert report.ok, report
    assert not any(entry.given for entry in report.derivatives)
    assert "computed" in str(report)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"constraint_jacobian": lambda t, q: [[1.0, 0.0, -math.cos(q[2])], [0.0, 1.0, math.sin(q[2])]]},
            "constraint_jacobian is wrong: d 'across' / d phi is 0.6442, should be -0.6442",
        ),
        (
            {"constraint_t": lambda t, q: [0.3 * math.cos(3.0 * t), 0.0]},
            "constraint_t is wrong: d 'along' / d t is 0.1087, should be -0.1087",
        ),
        (
            {"acceleration_bias": lambda t, q, v: [-value for value in pivot_bias(t, q, v)]},
            "acceleration_bias is wrong: bias of 'along' is 1.928, should be -1.928",
        ),
    ],
)
def test_a_wrong_derivative_is_named(changes, message):
    report = rod(**(GIVEN | changes)).check(*consistent())
    assert not report.ok
    assert message in report.problems, report.problems
    assert "WRONG" in str(report)
    assert sum(not entry.ok for entry in report.derivatives) == 1


def test_a_wrong_bias_shows_at_rest_too():
    report = rod(**(GIVEN | {"acceleration_bias": lambda t, q, v: [0.0, 0.0]})).check(0.0, [math.sin(0.7), 0.0, 0.7])
    assert any("acceleration_bias is wrong" in text for text in report.problems)


@given(
    row=st.integers(0, 1), column=st.integers(0, 2), error=st.floats(1e-4, 1.0), scale=st.sampled_from([1e-4, 1.0, 1e4])
)
def test_any_wrong_entry_is_found_in_any_units(row, column, error, scale):
    def jacobian(t, q):
        G = scale * np.array(pivot_jacobian(t, q))
        G[row, column] += scale * error
        return G

    system = rod(constraint=lambda t, q: scale * np.array(pivot(t, q)), constraint_jacobian=jacobian)
    entry = system.check(*consistent()).derivatives[0]
    assert not entry.ok
    assert entry.where == f"d '{('along', 'across')[row]}' / d {('x', 'y', 'phi')[column]}"
    np.testing.assert_allclose(entry.value - entry.expected, scale * error, rtol=1e-3)


def knife_edge(**changes):
    return daedal.MechanicalSystem(
        [2.0, 2.0, 0.5],
        lambda t, q, v: [9.81, 0.0, 0.0],
        n_q=3,
        velocity_constraint=changes.pop(
            "velocity_constraint", lambda t, q, v: [math.sin(q[2]) * v[0] - math.cos(q[2]) * v[1]]
        ),
        n_velocity_constraints=1,
        names=["x", "y", "phi"],
        **changes,
    )


def test_a_knife_edge_has_index_2():
    report = knife_edge(
        velocity_jacobian=lambda t, q: [[math.sin(q[2]), -math.cos(q[2]), 0.0]],
        velocity_bias=lambda t, q, v: [-v[2] * (math.cos(q[2]) * v[0] + math.sin(q[2]) * v[1])],
    ).check(0.0, [0.0, 0.0, 0.5], [math.cos(0.5), math.sin(0.5), 2.0])
    assert report.ok and report.index == 2, report
    assert [entry.name for entry in report.derivatives] == ["velocity_jacobian", "velocity_bias"]


def test_wrong_nonholonomic_derivatives_are_named():
    report = knife_edge(
        velocity_jacobian=lambda t, q: [[math.sin(q[2]), math.cos(q[2]), 0.0]],
        velocity_bias=lambda t, q, v: [v[2] * (math.cos(q[2]) * v[0] + math.sin(q[2]) * v[1])],
    ).check(0.0, [0.0, 0.0, 0.5], [math.cos(0.5), math.sin(0.5), 2.0])
    assert any("velocity_jacobian is wrong: d velocity constraint 0 / d y'" in text for text in report.problems)
    assert any("velocity_bias is wrong" in text for text in report.problems)


def test_a_velocity_constraint_must_be_linear():
    report = knife_edge(velocity_constraint=lambda t, q, v: [v[0] ** 2 - v[1]]).check(0.0, [0.0, 0.0, 0.5])
    assert any("is not linear in the velocities" in text for text in report.problems)


def test_dependent_constraints_are_noted():
    report = daedal.MechanicalSystem(
        1.0,
        fall,
        lambda t, q: [q[0] + q[1], q[1] + q[2], 1e4 * (q[0] - q[2])],
        n_q=3,
        n_constraints=3,
        constraint_names=["a", "b", "c"],
    ).check(0.0, [1.0, -1.0, 1.0])
    assert report.ok and report.rank == 2
    assert report.redundant == [(2, {0: pytest.approx(1e4), 1: pytest.approx(-1e4)})]
    assert report.warnings == ["dependent constraints at this point: 'c' = 10000 'a' - 10000 'b'"]


def test_masses_are_judged_on_the_free_directions():
    t, q, v = consistent()
    lopsided = np.array([[2.0, 0.5, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.3]])
    report = rod(mass=lopsided).check(t, q, v)
    assert any("mass is not symmetric: M[0, 1] = 0.5, but M[1, 0] = 0 (x, y)" in text for text in report.problems)
    report = rod(mass=[2.0, 2.0, 0.0]).check(t, q, v)
    assert report.ok and report.mass_eigenvalue > 0.1, report
    report = rod(mass=[0.0, 0.0, 0.0]).check(t, q, v)
    assert any("mass is singular" in text for text in report.problems) and report.index is None
    report = rod(mass=[-1.0, -1.0, -1.0]).check(t, q, v)
    assert any("mass is indefinite" in text for text in report.problems)
    free = daedal.MechanicalSystem([1.0, 0.0], lambda t, q, v: [0.0, 0.0], n_q=2, names=["x", "y"]).check(
        0.0, [0.0, 0.0]
    )
    assert free.problems == ["mass is singular on the directions that the constraints leave free: y"]


def test_inconsistent_values_are_named():
    t, q, v = consistent()
    report = rod().check(t, q + [0.1, 0.0, 0.0], v + [0.0, 0.2, 0.0])
    assert report.position > 1e-2 and report.velocity > 1e-2
    assert any("position level is violated" in text and "'along' (0.1)" in text for text in report.problems)
    assert any("velocity level is violated" in text and "'across' (0.2)" in text for text in report.problems)


def test_systems_without_constraints_have_index_0():
    report = daedal.MechanicalSystem([1.0, 2.0], lambda t, q, v: [0.0, 0.0], n_q=2).check(0.0, [1.0, 2.0])
    assert report.ok and report.index == 0 and report.derivatives == ()
    assert "index" in str(report)
