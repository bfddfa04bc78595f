"""Structural indices of known problems, the system Jacobian as their judge, and combinations where it is singular."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import daedal
from daedal.structure.dulmage_mendelsohn import DulmageMendelsohn
from daedal.structure.equations import Equations
from daedal.structure.signature import Signature
from daedal.structure.structural_analysis import StructuralAnalysis
from daedal.structure.system_jacobian import regularity


def analysed(residual, n, kind=daedal.ImplicitDAE, **options):
    return StructuralAnalysis.of(Equations(kind(residual, n, **options)))


def robot_arm(t, x, xp, xpp):
    """Campbell and Griepentrog, SIAM J. Sci. Comput. 16 (1995), example 1: index 5, no degree of freedom."""
    x1, x2, x3, u1, u2 = x
    v1, _, v3, _, _ = xp
    k = 2 - np.cos(x3) ** 2
    a, b, c, d = 2 / k, np.cos(x3) / k, np.sin(x3) / k, np.cos(x3) * np.sin(x3) / k
    s = 2 * x3 - x2
    return [
        xpp[0] - (2 * c * (v1 + v3) ** 2 + v1**2 * d + s * (a + 2 * b) + a * (u1 - u2)),
        xpp[1] - (-2 * c * (v1 + v3) ** 2 - v1**2 * d + s * (1 - 3 * a - 2 * b) - a * u1 + (a + 1) * u2),
        xpp[2]
        - (-2 * c * (v1 + v3) ** 2 - v1**2 * d + s * (a - 9 * b) - 2 * v1**2 * c - d * (v1 + v3) ** 2)
        + (a + b) * (u1 - u2),
        np.cos(x1) + np.cos(x1 + x3) - np.cos(np.exp(t) - 1) - np.cos(t - 1),
        np.sin(x1) + np.sin(x1 + x3) - np.sin(1 - np.exp(t)) - np.sin(1 - t),
    ]


def test_robot_arm_needs_a_combination():
    """The plain method suggests index 3 with a singular matrix (Pryce 2001, section 6.3); combined it is 5."""
    equations = Equations(daedal.SecondOrderDAE(robot_arm, 5))
    plain = Signature.of(equations)
    assert plain.index == 3 and plain.degrees_of_freedom == 2
    found = StructuralAnalysis.of(equations)
    assert found.succeeds and len(found.combinations) == 1
    assert (found.index, found.degrees_of_freedom) == (5, 0)
    assert found.differentiations.tolist() == [2, 0, 2, 4, 4]
    assert "the second derivative of equation 3" in str(found)


def reissig(k):
    """Reissig, Martinson and Barton, SIAM J. Sci. Comput. 21 (2000): index 1, structural index k + 1."""
    n = 2 * k + 1
    A, B = np.zeros((n, n)), np.eye(n)
    for i in range(k):
        A[2 * i : 2 * i + 2, 2 * i + 1 : 2 * i + 3] = 1.0
    return A, B


def pencil_index(A, B):
    """The index of the matrix (A + B)^-1 A, s = 1 being no eigenvalue."""
    M = np.linalg.solve(A + B, A)
    ranks = [np.linalg.matrix_rank(np.linalg.matrix_power(M, k)) for k in range(len(M) + 2)]
    return next(k for k in range(len(M) + 1) if ranks[k] == ranks[k + 1])


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_index_1_with_a_high_structural_index(k):
    A, B = reissig(k)
    assert pencil_index(A, B) == 1
    found = analysed(lambda t, y, yp: A @ yp + B @ y - np.sin(t), len(A))
    assert found.succeeds and found.index == k + 1
    assert found.degrees_of_freedom == np.linalg.matrix_rank(np.linalg.solve(A + B, A)) == k


def hessenberg(size):
    """Brenan, Campbell and Petzold, definition 2.5.3, with scalar blocks and nonlinear right-hand sides."""

    def residual(t, x, xp):
        rows = [xp[0] - np.sin(x[0]) - x[-1] * (2 + np.cos(x[0]))]
        rows += [xp[i] - x[i - 1] - x[i - 1] ** 3 - np.sin(t) for i in range(1, size - 1)]
        return [*rows, x[-2] + x[-2] ** 3 - t]

    return residual


@pytest.mark.parametrize("size", [2, 3, 4, 5, 7])
def test_hessenberg_forms(size):
    found = analysed(hessenberg(size), size)
    assert (found.index, found.degrees_of_freedom) == (size, 0)
    assert found.signature.c.tolist() == [*range(size - 1), size - 1]


def reactor(t, y, yp):
    """The stirred tank with prescribed concentration (Brenan, Campbell and Petzold, 1.3.9): index 3, nothing free."""
    C, T, R, Tc = y
    return [yp[0] - (1 - C) + R, yp[1] - (1 - T) - R + 0.5 * (T - Tc), R - np.exp(-1 / T) * C, C - np.sin(t)]


def test_reactor_as_a_chain_of_two_hessenberg_blocks():
    found = analysed(reactor, 4, names=["C", "T", "R", "Tc"])
    assert (found.index, found.degrees_of_freedom) == (3, 0)
    blocks = [(block.rows, block.columns) for block in found.blocks.blocks]
    assert blocks == [([3], [0]), ([0], [2]), ([2], [1]), ([1], [3])]


def test_circuit_with_a_loop_of_capacitors_and_a_source():
    """Modified nodal analysis: the current of a voltage source in a loop with a capacitor has index 2."""

    def residual(t, y, yp):
        e1, e2, i = y
        return [yp[0] + (e1 - e2) + i, (e2 - e1) + yp[1], e1 - np.sin(t)]

    found = analysed(residual, 3)
    assert (found.index, found.degrees_of_freedom) == (2, 1)


def test_factors_that_depend_on_the_unknowns():
    """x' + t y' multiplied by functions: one state, and one algebraic relation hidden in two differential equations."""

    def residual(t, y, yp):
        rate = yp[0] + t * yp[1]
        return [(1 + y[0] ** 2) * rate - y[0], np.exp(y[1]) * rate - y[1]]

    found = analysed(residual, 2)
    assert found.succeeds and len(found.combinations) == 1 and found.degrees_of_freedom == 1


def test_redundant_equations_are_named():
    def residual(t, y, yp):
        first, second = yp[0] - y[1] * y[2], y[0] + y[2] - np.sin(t)
        return [first, second, 3 * first - 2 * second]

    with pytest.raises(daedal.StructurallySingularError, match=r"equations 0, 1 and 2 are dependent.*redundant"):
        analysed(residual, 3)


def test_no_index_is_given_where_no_combination_is_allowed():
    """Redundant as well, but with a factor that contains an unknown that the equations should determine."""

    def residual(t, y, yp):
        first, second = yp[0] - y[1] * y[2], y[0] + y[2] - np.sin(t)
        return [first, second, 3 * first - y[2] * second]

    found = analysed(residual, 3, names=["a", "b", "c"])
    assert found.index is None and found.degrees_of_freedom is None
    assert "identically singular" in str(found) and "in equations 0 and 2, a and b" in str(found)


def test_contradictory_equations_are_named():
    def residual(t, y, yp):
        return [yp[0] + y[1], y[0] + y[1] + y[2] - 1, 2 * y[0] + 2 * y[1] + 2 * y[2] - 3]

    with pytest.raises(daedal.StructurallySingularError, match="equations 1 and 2 contradict each other") as caught:
        analysed(residual, 3)
    assert caught.value.equations == (1, 2)


def test_a_point_at_which_the_matrix_is_singular_gives_no_index():
    """y^2 = t has index 1 on both branches and none where they meet."""
    equations = Equations(daedal.ImplicitDAE(lambda t, y, yp: [y[0] ** 2 - t], 1, names=["root"]))
    anywhere = StructuralAnalysis.of(equations)
    assert anywhere.index == anywhere.at(1.0, [[1.0]]).index == 1
    found = anywhere.at(0.0, [[0.0]])
    assert not found.succeeds and found.index is None and found.degrees_of_freedom is None
    assert "equation 0, root" in str(found) and "identically" not in str(found)


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_scaling_of_equations_unknowns_and_time_does_not_change_the_verdict(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 6))
    matrix = random.standard_normal((n, n))
    matrix[0, 1:] = random.standard_normal(n - 1)
    if seed % 2:
        matrix[-1] = random.standard_normal(n - 1) @ matrix[:-1]
    values = np.linalg.svd(matrix, compute_uv=False)
    pattern = DulmageMendelsohn.of([range(n)] * n, n)
    scaled = 10.0 ** random.integers(-6, 7, n)[:, None] * matrix * 10.0 ** random.integers(-6, 7, n)
    if seed % 2 or values[-1] > 1e-3 * values[0]:
        assert bool(regularity(sparse.csr_array(scaled), pattern)) == (seed % 2 == 0)


@given(st.floats(1e-4, 1e4), st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_time_scale_and_order_of_equations_do_not_change_what_is_found(scale, random):
    rows, columns = random.sample(range(5), 5), random.sample(range(5), 5)

    def residual(t, y, yp):
        x, z, u, w, lam = (y[columns[k]] for k in range(5))
        rates = [yp[columns[k]] / scale for k in range(5)]
        given = [rates[0] - u, rates[1] - w, rates[2] + x * lam, rates[3] + z * lam + 1, x**2 + z**2 - 1]
        return [given[k] for k in rows]

    found = analysed(residual, 5)
    assert (found.index, found.degrees_of_freedom) == (3, 2)
    assert found.signature.c.tolist() == [[1, 1, 0, 0, 2][k] for k in rows]
    assert [found.signature.d[columns[k]] for k in range(5)] == [2, 2, 1, 1, 0]


def test_ten_thousand_equations():
    """A ladder of resistors, capacitors and inductors by modified nodal analysis, fed by a voltage source."""
    m = 5000

    def residual(t, y, yp):
        e, i, source = y[:m], y[m : 2 * m], y[2 * m]
        nodes = [1e-6 * yp[k] + 1e-3 * e[k] + i[k] - (i[k + 1] if k + 1 < m else source) for k in range(m)]
        branches = [1e-3 * yp[m + k] - e[k] + (e[k - 1] if k else 0.0) for k in range(m)]
        return [*nodes, *branches, e[m - 1] - np.sin(t)]

    found = analysed(residual, 2 * m + 1)
    assert (found.index, found.degrees_of_freedom) == (2, 2 * m - 1)
    assert len(found.blocks.blocks) == 2 * m + 1
