"""Indices, hidden constraints, degrees of freedom and choices of initial values from the derivative array."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.index.structure.derivative_array import NonlinearDerivativeArray
from daedal.index.structure.system_equations import SystemEquations
from daedal.initial.local_structure import local_structure
from derivative_array_problems import KNOWN, implicit, pendulum

PENDULUM = implicit(pendulum, "x", "y", "u", "v", "lam")


@pytest.mark.parametrize("name", KNOWN)
def test_indices_and_degrees_of_freedom_are_those_of_the_literature(name):
    known = KNOWN[name]
    found = local_structure(known.problem, known.t, known.x0)
    assert (found.index, found.strangeness_index) == (known.index, known.mu)
    assert found.degrees_of_freedom == found.d == known.freedom
    assert (found.v, found.u) == (0, 0)
    assert len(found.constraints) == found.a
    assert not found.unclear
    texts = {constraint.text for constraint in found.hidden_constraints}
    assert set(known.constraints) <= texts
    assert sum(choice.count for choice in found.choices) == known.freedom


@pytest.mark.parametrize(
    "name, index, freedom",
    [
        ("rc_circuit", 1, 1),
        ("four_resistor_amplifier", 1, 1),
        ("differentiator_cascade", 2, 0),
        ("unicursal_loop", 1, 2),
        ("transistor_amplifier", 1, 5),
        ("charge_pump", 2, 2),
    ],
)
def test_circuits_of_the_library(name, index, freedom):
    model = daedal.library.get(name)
    initial = [part for part in model.initial if part is not None]
    found = local_structure(model.problem, model.t_span[0], initial)
    assert (found.index, found.degrees_of_freedom) == (index, freedom) and index == model.index
    assert not found.unclear


def test_the_jacobian_of_the_array_is_that_of_its_residual():
    equations = SystemEquations(KNOWN["TPPC, one control"].problem)
    rng = np.random.default_rng(3)
    for array in (NonlinearDerivativeArray(equations, 2), NonlinearDerivativeArray(equations, [0, 1, 2, 0, 3, 1, 0])):
        jet = rng.uniform(0.5, 1.5, (array.highest + 1, 7))
        jet[0, [0, 3]] *= 1e4  # altitude and speed in feet
        jacobian = array.jacobian(333.0, jet).toarray()
        for column in range(jet.size):
            moved = []
            step = 1e-5 * abs(jet.flat[column])
            for sign in (1.0, -1.0):
                other = jet.copy()
                other.flat[column] += sign * step
                moved.append(array.residual(333.0, other))
            difference = (moved[0] - moved[1]) / (2.0 * step)
            size = np.abs(jacobian[:, column]) + 1e-5 * np.abs(array.residual(333.0, jet)) / step
            assert np.all(np.abs(difference - jacobian[:, column]) <= 1e-5 * size + 1e-9)


def test_characteristic_values_of_a_problem_that_has_no_solution_for_most_data():
    """Ex 2.4.2: a regular pencil, but x = phi(t) (t, 1) solves it for any phi, and not every right side is allowed."""

    def residual(f1, f2):
        return lambda t, y, yp: [-t * yp[0] + t * t * yp[1] + y[0] - f1(t), -yp[0] + t * yp[1] + y[1] - f2(t)]

    problem = daedal.ImplicitDAE(residual(lambda t: 0.0 * t, lambda t: 0.0 * t), 2, names=["x", "y"])
    found = local_structure(problem, 2.0, [1.0, 1.0])
    assert found.index is None
    assert found.characteristic_values == (1, 0, 1, 1)
    assert found.u == 1
    assert found.redundant_equations == (0, 1)
    assert "do not determine x' and y'" in str(found)
    contradictory = daedal.ImplicitDAE(residual(np.sin, np.cos), 2)
    with pytest.raises(daedal.InconsistentInitialError, match="are contradictory") as caught:
        local_structure(contradictory, 2.0, [1.0, 1.0])
    assert set(caught.value.equations) == {0, 1}


def test_redundant_equations_and_undetermined_unknowns_are_named():
    problem = implicit(lambda t, y, yp: [yp[0] - y[1], y[0] - y[2], 2 * y[2] - 2 * y[0]], "x", "force", "z")
    found = local_structure(problem, 0.0, [1.0, 0.0, 1.0])
    assert found.redundant_equations == (1, 2)
    assert found.undetermined == ("force'",)


def test_a_constraint_that_needs_a_combination_is_given_with_numbers():
    def residual(t, s, sp):
        x, y, u, v, lam = s
        return [
            sp[0] - u,
            sp[1] - v,
            (1 + x**2) * sp[2] + y * sp[3] + lam * x,
            y * sp[2] + (1 + y**2) * sp[3] + lam * y + 1,
            x**2 + y**2 - 1,
        ]

    problem = implicit(residual, "x", "y", "u", "v", "lam")
    found = local_structure(problem, 0.0, [0.6, -0.8, 0.4, 0.3, 0.0])
    assert found.index == 3
    velocity, acceleration = found.hidden_constraints
    assert velocity.text == "2*x*u + 2*y*v = 0"
    assert acceleration.node is None and acceleration.differentiations == 2
    assert {(i, r) for i, r, _ in acceleration.rows} == {(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (4, 2)}
    assert "equation 4 differentiated twice" in acceleration.text
    # the combination contains no derivatives: it is as small as the residuals whatever u' and v' are
    array = NonlinearDerivativeArray(SystemEquations(problem), 2)
    jet = found.jet[:4].copy()
    jet[1, 2:4] += [0.3, -0.2]
    jet[2, :2] = jet[1, 2:4]
    values = dict(zip(array.rows, array.residual(0.0, jet), strict=True))
    assert abs(sum(factor * values[i, r] for i, r, factor in acceleration.rows)) < 1e-12


def test_hidden_constraints_name_parameters_and_hold_along_a_solution():
    def residual(t, s, sp, p):
        x, y, u, v, lam = s
        m, g = p["mass"], p["gravity"]
        return [sp[0] - u, sp[1] - v, m * sp[2] + lam * x, m * sp[3] + lam * y + m * g, x**2 + y**2 - p["length"] ** 2]

    params = {"mass": 2.0, "gravity": 9.81, "length": 0.5}
    problem = daedal.ImplicitDAE(residual, 5, params=params, names=["x", "y", "u", "v", "lam"])
    found = local_structure(problem, 0.0, [0.3, -0.4, 0.4, 0.3, 0.0])
    texts = [constraint.text for constraint in found.constraints]
    assert texts[:2] == ["x**2 + y**2 - length**2 = 0", "2*x*u + 2*y*v = 0"]
    assert "lam/mass" in texts[2]
    equations = SystemEquations(problem)
    nodes = [constraint.node for constraint in local_structure(equations, 0.0, [0.3, -0.4, 0.4, 0.3, 0.0]).constraints]
    for angle, speed in ((0.3, 1.0), (2.0, -0.7)):  # known motions: lam follows from the balance of forces
        x, y = 0.5 * np.sin(angle), -0.5 * np.cos(angle)
        u, v = 0.5 * speed * np.cos(angle), 0.5 * speed * np.sin(angle)
        lam = 2.0 * (speed**2 + 9.81 * np.cos(angle) / 0.5)
        assert np.abs(equations.values(nodes, 0.0, [[x, y, u, v, lam]])).max() < 1e-12


def test_long_formulas_are_named_by_what_occurs_in_them():
    def residual(t, y, yp):
        long = sum(np.sin(k * y[0]) * np.cos(y[1] / (k + 1)) for k in range(1, 20))
        return [yp[0] - y[1], long]

    found = local_structure(implicit(residual, "angle", "rate"), 0.0, [0.1, 0.2])
    assert "an expression in angle and rate = 0" in [constraint.text for constraint in found.constraints]


def test_choices_of_initial_values_are_exactly_the_independent_sets():
    found = local_structure(PENDULUM, 0.0, [0.6, -0.8, 0.4, 0.3, 0.0])
    (choice,) = found.choices
    assert str(choice) == "any 2 of x, y, u, v and lam, but not x and y together"
    at_rest = local_structure(PENDULUM, 0.0, [0.6, -0.8, 0.0, 0.0, 0.0])
    assert {str(choice) for choice in at_rest.choices} == {"any 1 of x, y and lam", "any 1 of u and v"}
    names = PENDULUM.names
    for pair in combinations(names, 2):
        tangent = np.array([names.index(name) for name in pair])
        # on the circle x = sin(a), y = -cos(a), u = w cos(a), v = w sin(a), lam = w^2 + 9.81 cos(a)
        a, w = np.arctan2(0.6, 0.8), 0.5
        gradients = np.array(
            [
                [np.cos(a), 0.0],
                [np.sin(a), 0.0],
                [-w * np.sin(a), np.cos(a)],
                [w * np.cos(a), np.sin(a)],
                [-9.81 * np.sin(a), 2 * w],
            ]
        )
        may = abs(np.linalg.det(gradients[tangent])) > 1e-9
        assert may == (pair not in choice.excluded)


@st.composite
def hessenberg(draw):
    """A nonlinear Hessenberg form of size r (definition 2.5.3), with the size and its degrees of freedom."""
    r = draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    forward, back = rng.uniform(0.5, 2.0, r), rng.uniform(-1.0, 1.0, (r, r))

    def residual(t, y, yp):
        rows = []
        for i in range(r - 1):
            coupling = sum(back[i, j] * np.sin(y[j]) for j in range(i, r - 1))
            rows.append(yp[i] - forward[i] * (y[i - 1] if i else y[r - 1]) - coupling)
        return [*rows, y[r - 2] - np.cos(t)]

    order = draw(st.permutations(range(r)))
    lines = draw(st.permutations(range(r)))
    return r, residual, list(order), list(lines), rng.uniform(-1.0, 1.0, r)


@settings(max_examples=12, deadline=None)
@given(hessenberg())
def test_hessenberg_forms_of_size_r_have_index_r_in_any_order(form):
    r, residual, order, lines, x0 = form
    inverse = np.argsort(order)

    def permuted(t, y, yp):
        values = residual(t, [y[k] for k in inverse], [yp[k] for k in inverse])
        return [values[i] for i in lines]

    found = local_structure(daedal.ImplicitDAE(permuted, r), 0.3, x0[order])
    assert (found.index, found.strangeness_index, found.degrees_of_freedom) == (r, r - 1, 0)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31))
def test_indices_do_not_depend_on_units_over_twelve_decades(seed):
    rng = np.random.default_rng(seed)
    unknowns, equations, time = 10.0 ** rng.uniform(-6, 6, 5), 10.0 ** rng.uniform(-6, 6, 5), 10.0 ** rng.uniform(-3, 3)

    def scaled(t, s, sp):
        values = pendulum(
            t * time, [s[k] / unknowns[k] for k in range(5)], [sp[k] / unknowns[k] / time for k in range(5)]
        )
        return [equations[k] * values[k] for k in range(5)]

    x0 = np.array([0.6, -0.8, 0.4, 0.3, 1.0])
    found = local_structure(implicit(scaled, "x", "y", "u", "v", "lam"), 0.0, x0 * unknowns)
    assert (found.index, found.strangeness_index, found.degrees_of_freedom) == (3, 2, 2)
    assert found.jet[0, 4] / unknowns[4] == pytest.approx(0.25 + 9.81 * 0.8, rel=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31))
def test_the_index_is_invariant_under_time_varying_transformations(seed):
    """Proposition 2.4.2: x = Q(t) y and multiplication by P(t); the pencil need not even stay regular."""
    rng = np.random.default_rng(seed)
    p, q = rng.uniform(-1.0, 1.0, (2, 3, 3))

    def transformed(t, z, zp):
        turn, rate = np.eye(3) + 0.3 * q * np.sin(t), 0.3 * q * np.cos(t)
        x, xp = turn @ z, turn @ zp + rate @ z
        values = np.array([xp[0] + x[2] - np.sin(t), xp[1] + x[0] - np.cos(2 * t), x[1] - np.exp(t)])
        return (np.eye(3) + 0.3 * p * np.cos(t)) @ values

    found = local_structure(daedal.ImplicitDAE(transformed, 3), 0.5, np.zeros(3))
    assert (found.index, found.characteristic_values) == (3, (2, 0, 3, 0))
    x = (np.eye(3) + 0.3 * q * np.sin(0.5)) @ found.jet[0]
    assert x == pytest.approx([-1.10841896483199, 1.64872127070013, 3.81108877892012], abs=1e-10)


def test_rank_decisions_are_shown_and_unclear_ones_are_said():
    found = local_structure(PENDULUM, 0.0, [0.6, -0.8, 0.4, 0.3, 0.0])
    assert "smallest kept" in found.rank_table()
    nearly = implicit(
        lambda t, y, yp: [yp[0] + y[0] - y[1] - y[2], y[0] + y[1] + y[2] + t, y[0] + y[1] + (1.0 + 1e-8) * y[2]], *"xyz"
    )
    doubtful = local_structure(nearly, 0.0, [0.0, 0.0, 0.0])
    clear = local_structure(
        implicit(lambda t, y, yp: [yp[0] - y[1] - t, y[0] + 1e-3 * y[1]], "x", "z"), 0.0, [0.0, 0.0]
    )
    assert clear.index == 1 and not clear.unclear
    assert doubtful.unclear
    assert "rank decision unclear between" in str(doubtful)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("t", [0.0, 0.5, 2.0])
def test_rows_of_zeros_take_no_part_in_constraints(t):
    model = daedal.library.get("unsolvable_pencil")  # at t = 0 equation 0 contains no derivative, x1 = 0
    found = local_structure(model.problem, t, model.extra["exact"](t))
    assert (found.index, found.strangeness_index, found.degrees_of_freedom, found.v) == (None, 1, 1, 1)
    (constraint,) = found.constraints  # x1 = t x2, with nothing of x' and x''
    array = NonlinearDerivativeArray(SystemEquations(model.problem), 2)
    rows = array.jacobian(t, np.zeros((4, 2))).toarray()
    total = sum(factor * rows[array.rows.index((i, r))] for i, r, factor in constraint.rows)
    np.testing.assert_allclose(total[2:], 0.0, atol=1e-12)
    np.testing.assert_allclose(total[:2] @ [t, 1.0], 0.0, atol=1e-12)
    assert np.abs(total[:2]).max() > 1e-3


def test_entries_that_are_round_off_of_zero_are_dropped():
    """Those with x - sin t, which vanishes on the solution, however large scaling would make them."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [(1.0 + 0.3 * np.cos(yp[1])) * (y[0] - np.sin(t)), yp[0] - y[1]], 2)
    array = NonlinearDerivativeArray(SystemEquations(problem), 1)
    jet = [[np.nextafter(np.sin(0.7), 1.0), np.cos(0.7)], [np.cos(0.7), 2.0], [0.1, 0.2]]
    entries, settled = array.jacobian(0.7, jet).toarray(), array.settled_jacobian(0.7, jet).toarray()
    assert 0.0 < abs(entries[0, 3]) < 1e-15 and settled[0, 3] == settled[2, 5] == 0.0
    np.testing.assert_array_equal(settled[np.abs(entries) > 1e-15], entries[np.abs(entries) > 1e-15])
    elsewhere = [[0.5, 1.0], [1.0, 2.0], [0.1, 0.2]]
    np.testing.assert_array_equal(
        array.settled_jacobian(0.7, elsewhere).toarray(), array.jacobian(0.7, elsewhere).toarray()
    )
