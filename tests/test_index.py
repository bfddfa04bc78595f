"""The local index of a pencil or of a problem at a point (daedal.analysis)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.analysis.index import is_clearly_index_1, local_index, partials, pencil_index
from library_models import default_model


def kronecker(rng, finite, blocks, *, scale=0.0, noise=0.0, time=1.0):
    """P (s E0 + B0) Q with E0 = diag(I, nilpotent blocks), random well-conditioned P and Q, then bad units."""
    n = finite + sum(blocks)
    E, B = np.zeros((n, n)), np.eye(n)
    E[:finite, :finite] = np.eye(finite)
    B[:finite, :finite] = rng.normal(size=(finite, finite))
    start = finite
    for size in blocks:
        inside = slice(start, start + size)
        E[inside, inside] = np.eye(size, k=1)
        start += size
    P, Q = (_transformation(rng, n) for _ in range(2))
    E, B = (P @ M @ Q * (1.0 + noise * rng.normal(size=(n, n))) for M in (E, B))
    return _in_other_units(rng, E * time, B, scale)


def _transformation(rng, n, condition=10.0):
    left, right = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    return left @ np.diag(np.geomspace(1.0, condition, n)) @ right


def _in_other_units(rng, E, B, scale):
    rows, columns = (10.0 ** rng.uniform(-scale, scale, len(E)) for _ in range(2))
    return E * rows[:, None] * columns, B * rows[:, None] * columns


def pendulum(form):
    """Cartesian pendulum, y = (x, z, vx, vz, lam[, mu]), gravity along z."""

    def residual(t, y, yp):
        r = [yp[0] - y[2], yp[1] - y[3], yp[2] + y[0] * y[4], yp[3] + y[1] * y[4] - 1.0]
        position, velocity = y[0] ** 2 + y[1] ** 2 - 1.0, y[0] * y[2] + y[1] * y[3]
        acceleration = y[0] * yp[2] + y[1] * yp[3] + y[2] ** 2 + y[3] ** 2
        if form == "ggl":
            r[0] -= y[0] * y[5]
            r[1] -= y[1] * y[5]
            return np.array(r + [velocity, position])
        return np.array(r + [{"index3": position, "index2": velocity, "index1": acceleration}[form]])

    return residual


def pendulum_state(angle, speed, form):
    x, z = np.cos(angle), np.sin(angle)
    lam = speed**2 + z
    y = [x, z, -speed * z, speed * x, lam]
    yp = [-speed * z, speed * x, -x * lam, 1.0 - z * lam, 3.0 * speed * x]
    extra = [0.0] if form == "ggl" else []
    return np.array(y + extra), np.array(yp + extra)


def cascade(stages, R=1e4, C=1e-6):
    """v0 = sin t, i_k = C v_{k-1}', v_k = -R i_k."""
    n = 2 * stages + 1
    E, B = np.zeros((n, n)), np.eye(n)
    for k in range(1, n, 2):
        E[k, k - 1] = -C
        B[k + 1, k] = R
    return E, B


@dataclass
class StandIn:
    """As much of a problem as the analysis needs."""

    residual: Any
    n: int
    names: Any = None
    params: Any = None

    def evaluate(self, t, y, yp):
        return np.asarray(self.residual(t, y, yp), dtype=float)


@settings(deadline=None, max_examples=60)
@given(
    finite=st.integers(0, 5),
    blocks=st.lists(st.integers(1, 4), max_size=3),
    scale=st.floats(0.0, 8.0),
    time=st.floats(-6.0, 6.0),
    noise=st.sampled_from([0.0, 1e-11]),
    seed=st.integers(0, 2**32 - 1),
)
def test_index_is_the_size_of_the_largest_nilpotent_block(finite, blocks, scale, time, noise, seed):
    if finite + sum(blocks) == 0:
        return
    E, B = kronecker(np.random.default_rng(seed), finite, blocks, scale=scale, time=10.0**time, noise=noise)
    assert pencil_index(E, B).index == max(blocks, default=0)


@settings(deadline=None, max_examples=30)
@given(finite=st.integers(0, 4), blocks=st.lists(st.integers(1, 3), max_size=2), seed=st.integers(0, 2**32 - 1))
def test_pencil_with_a_dependent_equation_has_no_index(finite, blocks, seed):
    rng = np.random.default_rng(seed)
    E, B = kronecker(rng, finite + 3, blocks)
    E[-1], B[-1] = 0.5 * E[0] - E[1], 0.5 * B[0] - B[1]
    E, B = _in_other_units(rng, E, B, 4.0)
    found = pencil_index(E, B)
    assert found.index is None
    assert len(found.redundant_equations) >= 2
    assert set(found.redundant_equations) <= {0, 1, len(E) - 1}
    assert found.undetermined_variables


@pytest.mark.parametrize(
    ("form", "index", "constraints", "variables"),
    [
        ("index3", 3, {(4, 2)}, {(4, 3)}),
        ("index2", 2, {(4, 1)}, {(4, 2)}),
        ("index1", 1, set(), set()),
        ("ggl", 2, {(4, 1), (5, 1)}, {(4, 2), (5, 2)}),
    ],
)
@pytest.mark.parametrize("angle", [0.0, 0.7, 1.5, 3.0])
def test_pendulum_forms(form, index, constraints, variables, angle):
    y, yp = pendulum_state(angle, 1.3, form)
    found = local_index(StandIn(pendulum(form), y.size), 0.0, y, yp)
    assert found.index == index == len(found.levels)
    assert set(found.constraints) == constraints
    assert set(found.higher_index_variables) == variables


@pytest.mark.parametrize("stages", [1, 2, 3, 8])
def test_cascade_of_differentiators_has_index_stages_plus_one(stages):
    found = pencil_index(*cascade(stages))
    assert found.index == stages + 1
    assert found.constraints == ((0, stages),)
    assert set(found.higher_index_variables) >= {(2 * stages, stages + 1)}


def test_index_one_that_the_structure_does_not_show():
    # x' + y' + x + y = cos t, x' + y' + x + 2 y = t: the structure says 0 (BCP section 7.3)
    found = pencil_index([[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 2.0]])
    assert found.index == 1
    assert set(found.levels[0].equations) == {0, 1}


def test_level_combination_is_the_constraint():
    found = pencil_index([[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 2.0]])
    combination = found.levels[0].combinations[0]
    np.testing.assert_allclose(combination / combination[1], [-1.0, 1.0])


def test_only_the_constraint_that_needs_it_is_differentiated():
    # y0' = y1, y1' = y2, y0 = f: index 3; y3 = y0 alone: index 1
    E = np.diag([1.0, 1.0, 0.0, 0.0])
    B = np.array([[0.0, -1.0, 0, 0], [0, 0, -1.0, 0], [1.0, 0, 0, 0], [-1.0, 0, 0, 1.0]])
    found = pencil_index(E, B)
    assert found.index == 3
    assert found.constraints == ((2, 2),)
    assert dict(found.higher_index_variables)[2] == 3


def test_stiff_equations_are_not_taken_for_constraints():
    assert pencil_index(np.diag([1e-12, 1.0]), [[0.0, -1.0], [-1.0, 1e10]]).index == 0


def test_equations_without_unknowns_and_unknowns_without_equations_are_named():
    found = pencil_index(np.diag([1.0, 0.0, 0.0]), [[0.0, -1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert found.index is None
    assert found.redundant_equations == (2,)
    assert found.undetermined_variables == (2,)


def test_contradiction_after_differentiation_is_found():
    # y0' = y1, y0 = sin t, y0' = cos t; y2 does not occur
    E = [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    B = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    found = pencil_index(E, B)
    assert found.index is None
    assert set(found.redundant_equations) == {1, 2}
    assert found.undetermined_variables == (2,)


def test_purely_algebraic_equations_have_index_one():
    assert pencil_index(np.zeros((2, 2)), np.eye(2)).index == 1


def test_partials_of_a_nonlinear_residual():
    def residual(t, y, yp):
        return np.array([np.exp(yp[0]) * y[1] + y[0] ** 3, 1e6 * (y[0] - y[1]) + 1e-3 * yp[1]])

    E, B = partials(residual, 0.0, [0.5, 2.0], [0.1, -3.0])
    np.testing.assert_allclose(E, [[2.0 * np.exp(0.1), 0.0], [0.0, 1e-3]], rtol=1e-6)
    np.testing.assert_allclose(B, [[0.75, np.exp(0.1)], [1e6, -1e6]], rtol=1e-6)


def test_partials_near_zero_use_the_weights():
    def residual(t, y, yp):
        return np.array([yp[0] + 1e9 * y[0] * (1.0 + 1e9 * y[0])])

    E, B = partials(residual, 0.0, [0.0], [0.0], weights=np.array([1e-14]))
    np.testing.assert_allclose(E, [[1.0]], rtol=1e-6)
    np.testing.assert_allclose(B, [[1e9]], rtol=1e-6)


def test_partials_are_nan_where_the_residual_is():
    def residual(t, y, yp):
        return np.array([yp[0] + y[0], np.nan])

    E, B = partials(residual, 0.0, [1.0, 1.0], [0.0, 0.0])
    assert np.isfinite(E[0]).all() and np.isfinite(B[0]).all()
    assert np.isnan(E[1]).all() and np.isnan(B[1]).all()


SMALL_MODELS = [
    name
    for name in daedal.library.names()
    if isinstance(problem := default_model(name).problem, (daedal.ImplicitDAE, daedal.SemiExplicitDAE))
    and problem.n <= 100
]


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_library_problems_have_the_index_they_claim(name):
    model = daedal.library.get(name)
    first, second = model.initial
    if isinstance(model.problem, daedal.SemiExplicitDAE):
        y, yp = np.concatenate([first, np.zeros(model.problem.n_z) if second is None else second]), None
    else:
        y, yp = np.asarray(first), second
    found = local_index(model.problem, model.t_span[0], y, np.zeros(y.size) if yp is None else yp)
    assert found.index == (model.index if model.indices is None else model.indices.local)


@settings(max_examples=100, deadline=None)
@given(
    finite=st.integers(0, 4),
    blocks=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.0, 1.0, 3.0]),
)
def test_the_quick_answer_never_takes_a_higher_index_for_1(finite, blocks, seed, scale):
    E, B = kronecker(np.random.default_rng(seed), finite, blocks, scale=scale)
    clear = is_clearly_index_1(E, B)
    assert not clear or max(blocks) == 1


def test_the_quick_answer_for_robertson():
    E, B = np.diag([1.0, 1.0, 0.0]), np.array([[0.04, -1.0, -1.0], [-0.04, 1e4, 1e4], [1.0, 1.0, 1.0]])
    assert is_clearly_index_1(E, B)
