"""Structural indices of known problems, the system Jacobian as their judge, and combinations where it is singular."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import daedal
from daedal.index.structure.signature import DulmageMendelsohn, StructuralSignature
from daedal.index.structure.structural_analysis import StructuralAnalysis
from daedal.index.structure.system_equations import SystemEquations
from daedal.index.structure.system_jacobian import regularity


def analysed(residual, n, kind=daedal.ImplicitDAE, **options):
    return StructuralAnalysis.of(SystemEquations(kind(residual, n, **options)))


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
    equations = SystemEquations(daedal.SecondOrderDAE(robot_arm, 5))
    plain = StructuralSignature.of(equations)
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

    with pytest.raises(daedal.errors.StructurallySingularError, match=r"equations 0, 1 and 2 are dependent.*redundant"):
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

    with pytest.raises(
        daedal.errors.StructurallySingularError, match="equations 1 and 2 contradict each other"
    ) as caught:
        analysed(residual, 3)
    assert caught.value.equations == (1, 2)


def test_a_point_at_which_the_matrix_is_singular_gives_no_index():
    """y^2 = t has index 1 on both branches and none where they meet."""
    equations = SystemEquations(daedal.ImplicitDAE(lambda t, y, yp: [y[0] ** 2 - t], 1, names=["root"]))
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


def network(nodes, seed):
    """Resistors, capacitors between nodes, inductors and a voltage source at random, by modified nodal analysis."""
    random = np.random.default_rng(seed)
    elements = [("R", k, int(random.integers(0, k))) for k in range(1, nodes + 1)]
    for kind, count in (("C", nodes // 2), ("L", nodes // 4)):
        ends = random.integers(0, nodes + 1, (count, 2))
        elements += [(kind, int(a), int(b)) for a, b in ends if a != b]
    elements.append(("V", 1, 0))
    branches = [element for element in elements if element[0] in "LV"]
    n = nodes + len(branches)
    A, B = np.zeros((n, n)), np.zeros((n, n))
    for kind, a, b in elements:
        if kind in "RC":
            matrix, value = (B, 0.01) if kind == "R" else (A, 1e-6)
            for i, j, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
                if i and j:
                    matrix[i - 1, j - 1] += sign * value
    for k, (kind, a, b) in enumerate(branches, nodes):
        for end, sign in ((a, 1), (b, -1)):
            if end:
                B[end - 1, k] = sign
                B[k, end - 1] = -sign
        A[k, k] = 1e-3 if kind == "L" else 0.0
    return A, B


def degree_of_determinant(A, B):
    """deg det(s A + B), the number of finite eigenvalues."""
    s = 1234.5
    values = np.linalg.eigvals(np.linalg.solve(s * A + B, s * A))  # s / (s - eigenvalue), and 0 of infinite ones
    return int(np.sum(np.abs(values) > 1e-5))


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5])
def test_circuits_with_floating_capacitors(seed):
    """Each set of nodes that only capacitors join hides an equation without derivatives."""
    A, B = network(12, seed)
    found = analysed(lambda t, y, yp: A @ yp + B @ y - np.sin(t), len(A))
    assert found.combinations
    assert found.degrees_of_freedom == degree_of_determinant(A, B)
    assert pencil_index(100 * A, B) <= found.index <= 2


def exact_determinant(rows):
    """The determinant of a matrix of whole numbers, by Bareiss' elimination."""
    rows, sign, previous = [list(map(int, row)) for row in rows], 1, 1
    for k in range(len(rows) - 1):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return 0
        if pivot != k:
            rows[k], rows[pivot], sign = rows[pivot], rows[k], -sign
        for i in range(k + 1, len(rows)):
            for j in range(k + 1, len(rows)):
                rows[i][j] = (rows[i][j] * rows[k][k] - rows[i][k] * rows[k][j]) // previous
        previous = rows[k][k]
    return sign * rows[-1][-1]


def exact_degree(A, B):
    """The degree of det(s A + B) in s, by differences of its values; None if it vanishes identically."""
    values, degree = [exact_determinant(s * A + B) for s in range(len(A) + 2)], None
    for k in range(len(A) + 1):
        if values[0]:
            degree = k
        values = [b - a for a, b in pairwise(values)]
    return degree


@st.composite
def pencils(draw):
    """Matrices of small whole numbers with many zeros, and with rows that repeat others in A: many cancellations."""
    n = draw(st.integers(2, 5))
    entries = st.lists(st.sampled_from([0, 0, 0, 1, -1, 2]), min_size=n * n, max_size=n * n)
    A, B = (np.array(draw(entries)).reshape(n, n) for _ in range(2))
    for i, j in draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=2)):
        A[i] = A[j]
    return A, B


@given(pencils())
@settings(max_examples=120, deadline=None)
def test_linear_problems_never_get_a_wrong_answer(pencil):
    """Against exact arithmetic: degrees of freedom are the degree of det(s A + B), the index is at most that found."""
    A, B = pencil
    degree = exact_degree(A, B)
    try:
        found = analysed(lambda t, y, yp: A @ yp + B @ y - np.exp(t) * (1.0 + np.arange(len(A))), len(A))
    except daedal.errors.StructurallySingularError:
        assert degree is None
        return
    if degree is None:
        assert not found.succeeds
        return
    assert found.succeeds and found.degrees_of_freedom == degree
    shift = next(s for s in range(1, 40) if exact_determinant(s * A + B))
    assert pencil_index(shift * A, B) <= found.index


def test_a_combination_that_holds_on_one_side_only_does_not_go_on_for_ever():
    # max(t, 0)^4 vanishes at all random times or at none; a step that does not lower the value is not taken.
    for sign in (1.0, -1.0):
        problem = daedal.ImplicitDAE(
            lambda t, x, xp, sign=sign: [
                max(sign * t, 0.0) ** 4 * xp[1] + x[0],
                max(-sign * t, 0.0) ** 4 * xp[0] + x[1],
            ],
            2,
        )
        found = StructuralAnalysis.of(SystemEquations(problem))
        assert not found.succeeds and not found.combinations
