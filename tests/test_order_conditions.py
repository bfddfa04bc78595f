"""Order conditions of half-explicit methods: trees, the tables of Brasey and Hairer, what each method satisfies."""

import re
import subprocess
import sys
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from daedal.analysis import order_conditions as oc
from daedal.analysis.order_conditions.formulas import PRINTED
from daedal.analysis.order_conditions.trees import weight_trees, y_trees, z_trees
from daedal.errors import InvalidProblemError
from daedal.methods.exact_numbers import Quadratic
from daedal.methods.half_explicit.half_explicit_tableaux import (
    HEDOP5,
    HEM3,
    HEM4,
    HEM4_DENSE_OF_STAGES,
    HEM5,
    PHEM56,
    RK4_HALF_EXPLICIT,
)

ROOT6 = Quadratic(0, 1, 6)
nodes = st.fractions(min_value=-2, max_value=2, max_denominator=30)

# Nr 16 is printed with omega_ij, an index clash.
TABLE_1 = """
b_i = 1
b_i c_i = 1/2
b_i c_i^2 = 1/3
b_i a_ij c_j = 1/6
b_i c_i ω_ij c_{j+1}^2 = 2/3
b_i (ω_ij c_{j+1}^2) (ω_ik c_{k+1}^2) = 4/3
b_i c_i^3 = 1/4
b_i c_i a_ij c_j = 1/8
b_i a_ij c_j^2 = 1/12
b_i a_ij a_jk c_k = 1/24
b_i c_i^2 ω_ij c_{j+1}^2 = 1/2
b_i c_i (ω_ij c_{j+1}^2) (ω_ik c_{k+1}^2) = 1
b_i (ω_ij c_{j+1}^2) (ω_ik c_{k+1}^2) (ω_il c_{l+1}^2) = 2
b_i c_i ω_ij c_{j+1}^3 = 3/4
b_i c_i ω_ij c_{j+1} a_{j+1,k} c_k = 3/8
b_i (a_ij c_j) (ω_ik c_{k+1}^2) = 1/4
b_i (ω_ij c_{j+1}^2) (ω_ik c_{k+1}^3) = 3/2
b_i (ω_ij c_{j+1}^2) (ω_ik c_{k+1} a_{k+1,l} c_l) = 3/4
b_i a_ij c_j ω_jk c_{k+1}^2 = 1/6
b_i a_ij (ω_jk c_{k+1}^2) (ω_jl c_{l+1}^2) = 1/3
"""
TABLE_3 = """
b̂_i ω_ij c_{j+1}^2 = 1
b̂_i ω_ij c_{j+1}^3 = 1
b̂_i ω_ij c_{j+1} a_{j+1,k} c_k = 1/2
"""
TABLE_4 = """
ω_sj c_{j+1}^2 = 2
ω_sj c_{j+1}^3 = 3
ω_sj c_{j+1} a_{j+1,k} c_k = 3/2
ω_sj c_{j+1}^4 = 4
ω_sj c_{j+1}^2 a_{j+1,k} c_k = 2
ω_sj (a_{j+1,k} c_k) (a_{j+1,l} c_l) = 1
ω_sj c_{j+1} a_{j+1,k} c_k^2 = 4/3
ω_sj c_{j+1} a_{j+1,k} a_kl c_l = 2/3
ω_sj c_{j+1} a_{j+1,k} c_k ω_kl c_{l+1}^2 = 8/3
ω_sj c_{j+1} a_{j+1,k} (ω_kl c_{l+1}^2) (ω_km c_{m+1}^2) = 16/3
"""
PRINTED_ORDERS = {1: [1, 2] + [3] * 4 + [4] * 14, 3: [2, 3, 3], 4: [1, 2, 2] + [3] * 7}


def held(report, table=1):
    """The numbers of the conditions of a table that hold."""
    return [x.condition.number for x in report.checks if x.holds and x.condition.table == table]


def residuals(report, table=1):
    return {x.condition.number: x.residual for x in report.checks if x.condition.table == table}


def dot(xs, ys):
    return sum((x * y for x, y in zip(xs, ys)), Fraction(0))


# -- trees and tables --------------------------------------------------------------------------------------------------


def test_numbers_of_trees():
    assert [len(y_trees(p)) for p in range(1, 7)] == [1, 1, 4, 14, 56, 230]
    assert [len(weight_trees(p)) for p in range(2, 7)] == [1, 2, 7, 25, 106]
    assert [len(z_trees(p)) for p in range(1, 6)] == [1, 2, 7, 25, 106]
    assert [len(oc.conditions(p)) for p in range(1, 7)] == [1, 2, 6, 20, 76, 306]


def test_numbers_of_trees_for_f_linear_in_z():
    assert [sum(not tree.nonlinear for tree in y_trees(p)) for p in range(1, 7)] == [1, 1, 3, 9, 30, 103]
    cumulative = list(accumulate([1, 1, 3, 9, 30, 103]))
    assert [len(oc.conditions(p, linear_in_z=True)) for p in range(1, 7)] == cumulative
    assert [x.number for x in oc.conditions(4) if x.nonlinear] == [6, 12, 13, 17, 18, 20]
    assert [x.number for x in oc.conditions(3, 4) if x.nonlinear] == [10]


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("generate", [y_trees, weight_trees, z_trees])
def test_trees_are_distinct_and_have_the_order_asked_for(generate, partitioned):
    trees = [tree for p in range(1, 6) for tree in generate(p, partitioned)]
    assert len(set(map(str, trees))) == len(trees)
    assert all(oc.Tree.parse(str(tree)) == tree for tree in trees)
    assert all(tree.order == p for p in range(1, 6) for tree in generate(p, partitioned))


def test_rooted_trees_of_ordinary_differential_equations_are_among_them():
    assert [sum("z" not in str(tree) for tree in y_trees(p)) for p in range(1, 8)] == [1, 1, 2, 4, 9, 20, 48]


@pytest.mark.parametrize(("number", "printed"), [(1, TABLE_1), (3, TABLE_3), (4, TABLE_4)])
def test_tables_are_those_of_the_source(number, printed):
    order = {1: 4, 3: 3, 4: 3}[number]
    listed = oc.conditions(order, number)
    assert [x.formula() for x in listed] == printed.strip().splitlines()
    assert [x.order for x in listed] == PRINTED_ORDERS[number]
    assert [str(x.tree) for x in listed] == PRINTED[number]
    assert [line.split("  ")[-1].strip() for line in oc.table(number).splitlines()[1:]] == printed.strip().splitlines()


def test_table_in_three_styles():
    assert oc.table(3).splitlines()[1].split()[:3] == ["1", "[[t,t]z]y", "2"]
    latex = oc.table(1, style="latex").splitlines()
    assert (
        latex[15] == r"16 & \texttt{[[t]y,[t,t]z]y} & 4 & $b_i (a_{ij} c_j) (\omega_{ik} c_{k+1}^2) = \frac{1}{4}$ \\"
    )
    assert latex[19].startswith("20* &")
    markdown = oc.table(4, style="markdown").splitlines()
    assert markdown[:3] == [
        "| nr | tree | order | condition |",
        "| --- | --- | --- | --- |",
        r"| 1 | `[t,t]z` | 1 | $\omega_{sj} c_{j+1}^2 = 2$ |",
    ]
    assert markdown[-1].startswith(r"| 10\* |")
    assert len(oc.table(1, 5, linear_in_z=True).splitlines()) == 1 + 44
    with pytest.raises(InvalidProblemError, match="tables 1, 3 and 4"):
        oc.table(2)
    with pytest.raises(InvalidProblemError, match="style"):
        oc.table(1, style="html")


def test_partitioned_conditions_are_written_with_bars():
    formulas = [x.formula() for x in oc.conditions(3, partitioned=True)]
    assert "b_i a_ij ω_jk c̄_k^2 = 1/3" in formulas
    assert r"\bar c_k^2" in oc.table(1, 3, style="latex", partitioned=True)


def evaluate_formula(text, arrays):
    """The left side of a formula in plain text, by one sum over all indices."""
    operands, indices = [], []
    for name, braced, plain, power in re.findall(r"(b|a|c|ω)_(?:\{([^}]*)\}|(\w+))(?:\^(\d+))?", text):
        first, *rest = braced.split(",") if braced else plain
        shifted = first.endswith("+1")
        operands.append(arrays[name + "+" * shifted] ** int(power or 1))
        indices.append("".join([first.removesuffix("+1"), *rest]))
    return np.einsum(",".join(indices) + "->", *operands, optimize=True)


def test_evaluation_agrees_with_the_formulas_as_printed():
    rng = np.random.default_rng(1)
    a, b = np.tril(rng.uniform(0.5, 1.5, (5, 5)), -1), rng.uniform(0.5, 1.5, 5)
    shifted = np.vstack([a[1:], b])
    arrays = {"a": a, "a+": shifted, "b": b, "c": a.sum(1), "c+": shifted.sum(1), "ω": np.linalg.inv(shifted)}
    report = oc.verify((a, b), 5)
    assert len(report.checks) == 76 and not report.exact
    for check in report.checks:
        expected = evaluate_formula(check.condition.left_side(), arrays)
        assert check.left == pytest.approx(expected, rel=1e-9), check.condition.formula()


@pytest.mark.parametrize("text", ["", "u", "[t", "[t,t]", "[t]x", "[t]y]", "[]y"])
def test_what_is_no_tree_is_refused(text):
    with pytest.raises(InvalidProblemError):
        oc.Tree.parse(text)


def test_branches_have_no_order():
    assert oc.Tree.parse("[[t,t]z, t]y") == oc.Tree.parse("[t,[t,t]z]y")


# -- HEM4 --------------------------------------------------------------------------------------------------------------


def test_hem4_satisfies_all_twenty_conditions_exactly():
    report = oc.verify("hem4")
    assert report.exact and report.row_sums and report.holds and len(report.checks) == 20
    assert all(check.residual == 0 for check in report.checks)
    assert str(report).startswith("HEM4: 20 of 20 conditions hold exactly")


def test_hem4_satisfies_table_3_with_its_own_weights():
    report = oc.verify(HEM4, 4, weights=HEM4.b)
    assert report.holds and len(held(report, 3)) == 10


def test_hem4_fails_at_order_five():
    report = oc.verify(HEM4, 5)
    assert report.counts()[5] == (56 - 35, 56)
    assert report.largest == pytest.approx(0.0964, abs=5e-5)
    assert oc.verify(HEM4, 5, linear_in_z=True).counts()[5] == (30 - 18, 30)
    assert oc.order(HEM4) == oc.order(HEM4, linear_in_z=True) == 4


def test_hem4_omega():
    s = ROOT6
    rows = [
        [Fraction(10, 3), 0, 0, 0, 0],
        [-(14 + 6 * s) / 3, (66 + 24 * s) / 5, 0, 0, 0],
        [0, (24 + s) / 6, (-24 + 11 * s) / 6, 0, 0],
        [0, -(152 + 53 * s) / 50, (24 - 5 * s) / 6, (36 + 4 * s) / 75, 0],
        [0, -2 + 16 * s / 3, 4 - 6 * s, -2 - s / 3, 9],
    ]
    assert oc.omega("hem4") == rows


def test_hem4_satisfies_the_simplifying_assumptions():
    a = [list(row) + [Fraction(0)] * (5 - len(row)) for row in HEM4.a]
    b, c, w = HEM4.b, HEM4.c, oc.omega(HEM4)
    following = [*c[1:], 1]
    assert [dot(a[i], c) - c[i] ** 2 / 2 for i in (2, 3, 4)] == [0, 0, 0]  # C(2)
    assert all(dot(b, [a[i][j] for i in range(5)]) == b[j] * (1 - c[j]) for j in range(5))  # D(1)
    squares = [dot(row, [x * x for x in following]) for row in w]
    assert squares == [2 * c[i] + w[i][0] * c[1] ** 2 for i in range(5)]  # C(2)I
    assert squares == [Fraction(3, 10), 9 * (1 - ROOT6) / 50, 2 * c[2], 2 * c[3], 2]
    for j in range(5):  # D(1)I
        assert sum(b[i] * c[i] * w[i][j] for i in range(5)) == (j == 4) - (b[j + 1] if j < 4 else 0)
    assert all(b[i] * w[i][0] == 0 for i in range(5))  # (4.1)
    quadrature = [dot(b, [x**q for x in c]) for q in range(6)]
    assert quadrature == [1, *(Fraction(1, q) for q in (2, 3, 4, 5)), Fraction(1, 6) + Fraction(1, 600)]


def test_condition_16_as_printed_cannot_be_right():
    b, c, w = HEM4.b, HEM4.c, oc.omega(HEM4)
    following = [*c[1:], 1]
    literal = sum(
        b[i] * x * c[j] * w[i][j] * following[j] ** 2 for i, row in enumerate(HEM4.a) for j, x in enumerate(row)
    )
    assert literal == Fraction(61, 90) - 13 * ROOT6 / 90


def test_hem4_last_stages():
    report = oc.verify_z(HEM4, order=3)
    assert held(report, 4) == [1]
    left = [check.left for check in report.checks[:3]]
    assert left == [2, Fraction(18, 5) - ROOT6 / 10, Fraction(9, 5) - ROOT6 / 20]
    assert [oc.z_order(HEM4, stage) for stage in (1, 2, 3, 4, 5)] == [1, 1, 2, 2, 2]
    stage = oc.verify_stage(HEM4, 5)
    assert stage.order == HEM4.embedded_order == 2
    defects = [abs(float(residuals(stage)[nr])) for nr in (3, 4, 5, 6)]
    assert defects == pytest.approx([0.327904, 0.095354, 0.262096, 1.260313], abs=1e-6)


def test_hem4_decimals():
    arrays = HEM4.floats()
    assert arrays["c"][2:4] == pytest.approx([0.15505102572168219018, 0.64494897427831780982], rel=2e-16)
    assert arrays["a"][3, :3] == pytest.approx(
        [-1.0328945468418568070, -0.35993196570442374643, 2.0377754868245983632], rel=3e-16
    )
    assert arrays["a"][4, :4] == pytest.approx(
        [4.3745747856526484152, 1.5244046999137077812, -6.5366070498705616718, 1.6376275643042054755], rel=3e-16
    )
    assert arrays["b"][2:4] == pytest.approx([0.37640306270046727505, 0.51248582618842161384], rel=2e-16)
    assert np.array_equal(arrays["ab"], np.vstack([arrays["a"][1:], arrays["b"]]))


@pytest.mark.parametrize("theta", ["0", "1/4", "1/2", "2/3", "1"])
def test_dense_output_of_hem4(theta):
    x = Fraction(theta)
    of_stages = oc.HalfExplicitTableau("HEM4", HEM4.a, HEM4.b, dense=HEM4_DENSE_OF_STAGES)
    report = oc.verify(of_stages, 3, weights="dense", theta=x)
    defect = (6 - ROOT6) / 10 * x * (x - 1) * (2 * x - 1)
    assert held(report) == [1, 2, 3, 4, 5, 6]
    assert list(residuals(report, 3).values()) == [0, defect, defect / 2]
    assert oc.verify(HEM4, 3, weights="dense", theta=x).holds


def test_hem4_has_no_other_third_order_weights():
    columns = [[x.left for x in oc.verify(HEM4, 3, weights=unit).checks] for unit in np.eye(5, dtype=int)]
    matrix = np.array(columns, dtype=float)
    assert matrix.shape == (5, 9)
    assert np.linalg.matrix_rank(matrix) == 5
    right = [float(x.right) for x in oc.verify(HEM4, 3, weights=HEM4.b).checks]
    assert HEM4.floats()["b"] @ matrix == pytest.approx(right, abs=1e-14)


# -- the family of order 4 ---------------------------------------------------------------------------------------------


@given(nodes, nodes)
def test_every_member_of_the_family_has_order_four(c2, c3):
    assume(c2 != 0 and c3 not in (0, Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), 1))
    method = oc.hem4_family(c2, c3)
    report = oc.verify(method)
    assert report.exact and report.holds and len(report.checks) == 20 and report.row_sums
    b, c, w = method.b, method.c, oc.omega(method)
    assert determinant(c, w) == 1
    assert [w[i][0] for i in (2, 3, 4)] == [0, 0, 0]
    assert dot(b, [x**4 for x in c]) - Fraction(1, 5) == -(10 * c3**2 - 8 * c3 + 1) / (120 * (3 * c3 - 1))
    assert held(oc.verify_z(method, order=2), 4)[0] == 1


def determinant(c, w):
    """Of K = [[1, 1, 1], [0, c2, c3], [w11, w21, 0]]."""
    return -c[2] * w[1][0] + w[0][0] * (c[2] - c[1])


def test_family_contains_hem4():
    member = oc.hem4_family("3/10", (4 - ROOT6) / 10)
    assert (member.a, member.b, member.c) == (HEM4.a, HEM4.b, HEM4.c)


def test_family_with_floats_agrees_with_the_exact_one():
    exact, rounded = oc.hem4_family("3/10", "7/10").floats(), oc.hem4_family(0.3, 0.7)
    assert not rounded.exact
    for name, values in rounded.floats().items():
        np.testing.assert_allclose(values, exact[name], rtol=1e-13)
    report = oc.verify(rounded)
    assert report.holds and not report.exact


@pytest.mark.parametrize(
    ("c2", "c3", "reason"),
    [
        (0, "1/5", "a21 = 0"),
        ("1/5", 0, "a32 = 0"),
        ("1/5", "1/4", "c4 = c5"),
        ("1/5", "1/3", "c4 infinite"),
        ("1/5", 0.5, "a43 = 0"),
        ("1/5", 1, "c3 = c5"),
        ("1/5", Quadratic("1/2", "1/6", 3), "b5 = 0"),
        ("1/5", (3 - 3**0.5) / 6, "b5 = 0"),
    ],
)
def test_family_refuses_nodes_without_a_method(c2, c3, reason):
    with pytest.raises(InvalidProblemError, match=reason):
        oc.hem4_family(c2, c3)


def test_family_in_symbols_satisfies_the_conditions_identically():
    sympy = pytest.importorskip("sympy")
    report = oc.verify(oc.hem4_family(*sympy.symbols("c2 c3")))
    assert report.exact and report.holds and len(report.checks) == 20


def test_numbers_of_sympy_are_verified_exactly():
    sympy = pytest.importorskip("sympy")
    assert oc.hem4_family(sympy.Rational(3, 10), (4 - sympy.sqrt(6)) / 10).a == HEM4.a
    two_roots = oc.hem4_family(sympy.sqrt(2) / 3, (4 - sympy.sqrt(7)) / 10)
    report = oc.verify(two_roots, 5)
    assert report.exact and report.order == 4 and report.counts()[5] == (0, 56)
    cubic = oc.verify(oc.hem4_family("1/5", sympy.cbrt(2)))
    assert cubic.exact and cubic.holds
    assert not oc.hem4_family(sympy.Float("0.3"), 0.7).exact
    with pytest.raises(InvalidProblemError, match="b5 = 0"):
        oc.hem4_family(1, (3 + sympy.sqrt(3)) / 6)


# -- three and four stages ---------------------------------------------------------------------------------------------


def test_order_three_method():
    report = oc.verify(HEM3, 4)
    assert report.exact and report.counts() == {1: (1, 1), 2: (1, 1), 3: (4, 4), 4: (0, 14)}
    assert held(oc.verify_z(HEM3, order=3), 4) == [1, 8]
    assert oc.verify_stage(HEM3, 3).order == HEM3.embedded_order == 1
    assert oc.z_order(HEM3) == 2
    assert oc.omega(HEM3) == [[3, 0, 0], [Fraction(3, 2), Fraction(1, 2), 0], [Fraction(-9, 2), Fraction(-3, 2), 4]]


def kutta_three(c2, c3):
    """The classical methods of order 3 with three stages."""
    b2, b3 = (2 - 3 * c3) / (6 * c2 * (c2 - c3)), (2 - 3 * c2) / (6 * c3 * (c3 - c2))
    a32 = c3 * (c3 - c2) / (c2 * (2 - 3 * c2))
    return oc.HalfExplicitTableau("Kutta", ((), (c2,), (c3 - a32, a32)), (1 - b2 - b3, b2, b3))


@given(nodes, nodes)
def test_only_one_method_with_three_stages_has_order_three(c2, c3):
    assume(c2 * c3 * (c2 - c3) * (2 - 3 * c2) != 0)
    found = residuals(oc.verify(kutta_three(c2, c3), 3))
    assert [found[nr] for nr in (1, 2, 3, 4)] == [0, 0, 0, 0]
    assert found[5] == c2 * (c3 - 1) / 2
    assert (found[5] == 0 == found[6]) == ((c2, c3) == (Fraction(1, 3), 1))


@given(nodes)
def test_three_stages_suffice_in_one_family_if_f_is_linear(c2):
    assume(c2 * (1 - c2) * (2 - 3 * c2) != 0)
    assert oc.verify(kutta_three(c2, Fraction(1)), 3, linear_in_z=True).holds


@given(nodes, nodes)
def test_no_method_with_four_stages_has_order_four(c2, c3):
    d = 6 * c2 * c3 - 4 * (c2 + c3) + 3
    assume(c2 * c3 * (c2 - c3) * (1 - c2) * (1 - c3) * (1 - 2 * c2) * d != 0)
    b2 = (2 * c3 - 1) / (12 * c2 * (c3 - c2) * (1 - c2))
    b3 = (1 - 2 * c2) / (12 * c3 * (c3 - c2) * (1 - c3))
    b4 = Fraction(1, 2) + (2 * (c2 + c3) - 3) / (12 * (1 - c2) * (1 - c3))
    a32 = c3 * (c3 - c2) / (2 * c2 * (1 - 2 * c2))
    a42 = (1 - c2) * (c2 + c3 - 1 - (2 * c3 - 1) ** 2) / (2 * c2 * (c3 - c2) * d)
    a43 = (1 - 2 * c2) * (1 - c2) * (1 - c3) / (c3 * (c3 - c2) * d)
    rows = ((), (c2,), (c3 - a32, a32), (1 - a42 - a43, a42, a43))
    found = residuals(oc.verify((rows, (1 - b2 - b3 - b4, b2, b3, b4)), 4))
    assert [found[nr] for nr in (1, 2, 3, 4, 7, 8, 9, 10)] == [0] * 8  # the classical ones
    assert found[11] == c2 * (1 - c3) / 6


def test_classical_rk4_is_of_lower_order():
    report = oc.verify(RK4_HALF_EXPLICIT, 4)
    found = held(report)
    assert {1, 2, 3, 4, 5, 7, 8, 9, 10} <= set(found)
    assert 6 not in found and 11 not in found
    assert residuals(report)[11] == Fraction(1, 24)
    assert (oc.order("rk4"), oc.order("rk4", linear_in_z=True)) == (2, 3)


# -- order 5 -----------------------------------------------------------------------------------------------------------


def test_hem5_has_order_five():
    report = oc.verify(HEM5)
    assert not report.exact and report.holds and report.row_sums and len(report.checks) == 76
    assert report.largest < 1.4e-12
    assert oc.verify(HEM5, 6).counts()[6] == (230 - 162, 230)
    assert oc.order(HEM5) == 5
    assert oc.verify_stage(HEM5, 8).order == HEM5.embedded_order == 3
    assert oc.verify_z(HEM5).order == 2
    assert oc.z_order(HEM5) == 3


@pytest.mark.parametrize("method", [PHEM56, HEDOP5], ids=lambda method: method.name)
def test_partitioned_methods_contain_the_classical_one_of_order_five(method):
    report = oc.verify(method, 6)
    classical = [x for x in report.checks if "z" not in str(x.condition.tree)]
    assert report.exact and report.row_sums
    assert [sum(x.holds for x in classical if x.condition.order == p) for p in range(1, 6)] == [1, 1, 2, 4, 9]
    assert not all(x.holds for x in classical if x.condition.order == 6)


@pytest.mark.parametrize("method", [PHEM56, HEDOP5], ids=lambda method: method.name)
def test_partitioned_methods_have_order_five_exactly(method):
    report = oc.verify(method)
    assert report.exact and report.holds and len(report.checks) == 110
    assert oc.order(method) == oc.order(method, linear_in_z=True) == 5
    assert oc.z_order(method) == 4  # of z_1 = Z_7


def test_points_of_the_constraint():
    third, end = Fraction(3, 10), Fraction(19, 30)
    assert PHEM56.cb == (0, third, Fraction(3, 8), Fraction(5, 7), 1, 1, end)
    assert HEDOP5.cb == (0, third, Fraction(4, 5), Fraction(8, 9), 1, 1, Fraction(19, 20))
    assert PHEM56.b == (*PHEM56.ab[5], 0) and HEDOP5.b == (*HEDOP5.ab[5], 0)


@pytest.mark.parametrize("method", [PHEM56, HEDOP5], ids=lambda method: method.name)
def test_embedded_solution_has_order_four_but_for_the_constraint(method):
    report = oc.verify(method, 5, weights="bhat")
    assert report.order == 3
    failed = {x.condition.table for x in report.failures if x.condition.order == 4}
    assert failed == {3}  # a projection repairs these
    assert not any(x.holds for x in report.checks if x.condition.order == 5)


@pytest.mark.parametrize("theta", ["1/5", "19/30", "1"])
def test_dense_output_of_phem56_has_order_four(theta):
    report = oc.verify(PHEM56, 4, weights="dense", theta=theta)
    assert report.exact and report.holds and held(report, 3)


def test_dense_output_of_phem56_is_smooth_and_passes_through_the_inner_point():
    assert PHEM56.weights("19/30")[:3] == (Fraction(1812923, 20736000), 0, Fraction(45847, 100170))
    assert PHEM56.weights(1) == PHEM56.b
    slopes = [(row[0], sum((k + 1) * x for k, x in enumerate(row))) for row in PHEM56.dense]
    assert [x for x, _ in slopes] == [1, 0, 0, 0, 0, 0, 0] and [x for _, x in slopes] == [0, 0, 0, 0, 0, 0, 1]


# -- tableaux and numbers ----------------------------------------------------------------------------------------------


@given(*[st.fractions(-5, 5, max_denominator=9)] * 4)
def test_quadratic_numbers_compute_like_floats(p, q, u, v):
    x, y = Quadratic(p, q, 6), Quadratic(u, v, 6)
    assert float(x + y) == pytest.approx(float(x) + float(y), abs=1e-12)
    assert float(x - u) == pytest.approx(float(x) - float(u), abs=1e-12)
    assert float(u - x) == -float(x - u)
    assert float(x * y) == pytest.approx(float(x) * float(y), abs=1e-11)
    assert x**3 == x * x * x
    if y:
        assert x / y * y == x and (1 / y) * y == 1
    assert x * 0.5 == float(x) * 0.5 and 0.5 - x == 0.5 - float(x)


def test_quadratic_numbers_do_not_cancel():
    small = Quadratic(-49, 20, 6)  # the square roots of 2401 and 2400
    assert float(small) == pytest.approx(-1 / (49 + 20 * 6**0.5), rel=1e-15)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"a": ((), (1,)), "b": (1,)}, "2 rows of a, but 1 weight"),
        ({"a": ((), ()), "b": (0, 1)}, "row 2 of a must have 1 entry"),
        ({"a": ((), (1, 1)), "b": (0, 1)}, "more than 1"),
        ({"a": ((), (1,)), "b": (0, 1), "c": (0,)}, "c must have 2"),
        ({"a": ((), (1,)), "b": (0, 1), "bhat": (1,)}, "bhat must have 2"),
        ({"a": ((), (1,)), "b": (0, 1), "dense": ((1,),)}, "dense has 1 row"),
        ({"a": ((), (1,)), "b": (0, 1), "ab": ((), (1, 1))}, "b must be one of the rows of ab"),
    ],
)
def test_malformed_tableaux_are_refused(fields, message):
    with pytest.raises(InvalidProblemError, match=message):
        oc.HalfExplicitTableau("wrong", **fields)


def test_methods_that_determine_no_multiplier_are_refused():
    with pytest.raises(InvalidProblemError, match=r"b_2 = 0.*Z_2"):
        oc.verify((((), (1,)), (1, 0)))
    with pytest.raises(InvalidProblemError, match=r"a_2,1 = 0.*Z_1"):
        oc.verify((((), (0,)), (0, 1)))


def test_wrong_questions_are_refused():
    with pytest.raises(InvalidProblemError, match="hem3, hem4, hem5"):
        oc.verify("hem6")
    with pytest.raises(InvalidProblemError, match="not have the coefficients"):
        oc.verify(3.0)
    with pytest.raises(InvalidProblemError, match="5 stages, but 3 weights"):
        oc.verify("hem4", weights=(1, 0, 0))
    with pytest.raises(InvalidProblemError, match="no weights 'bhat'"):
        oc.verify("hem4", weights="bhat")
    with pytest.raises(InvalidProblemError, match="no dense output"):
        oc.verify("hem5", weights="dense")
    with pytest.raises(InvalidProblemError, match="stages 2 to 7"):
        oc.verify_z("phem56", 1)


def test_nodes_that_are_not_row_sums_are_reported():
    report = oc.verify(oc.HalfExplicitTableau("wrong", ((), (1,)), ("1/2", "1/2"), c=(0, "1/2")), 2)
    assert report.holds and not report.row_sums
    assert "not the row sums" in str(report)


def test_report_lists_what_fails():
    text = str(oc.verify("rk4", 3))
    assert "nr 6 fails by" in text and "order 3: 3 of 4" in text
    assert "and 15 others" in str(oc.verify("hem4", 5))


def test_a_method_without_stated_order_is_checked_up_to_its_first_failure():
    heun = ((), (1,)), ("1/2", "1/2")
    assert oc.verify(heun).counts().keys() == {1, 2, 3}
    assert oc.verify(heun).order == oc.order(heun) == 2


def test_floats_on_request():
    report = oc.verify("hem4", exact=False)
    assert report.holds and not report.exact and isinstance(report.checks[0].left, float)


def test_importing_loads_neither_numba_nor_sympy():
    code = "import sys, daedal; daedal.analysis.order_conditions.verify('hem4')"
    code += "; print({'numba', 'sympy'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
