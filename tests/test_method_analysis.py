"""The analyser: printed tables of the book, known stability, invariance."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.analysis.method_analysis.linear_stability import stability_function
from daedal.analysis.method_analysis.orders_by_class import ExactCoefficients, evaluation, order_by_trees
from daedal.analysis.order_conditions.trees import differential, index_2_across, index_2_y
from daedal.methods.implicit_rk import implicit_families as families
from daedal.viz import growth_factor
from test_formulas import EXACT, STAGES, tableaux

F = Fraction
INF = math.inf
SEMI = "f(t, x, x', y) = 0, 0 = g(t, x, y)"
HESSENBERG = "y' = f(y, z), 0 = g(y)"


def text(analysis, index, problem, variables="y") -> str:
    (found,) = [x for x in analysis.predicted(index, variables) if x.problem == problem]
    return found.text


def order(analysis, index, problem, variables="y"):
    (found,) = [x for x in analysis.predicted(index, variables) if x.problem == problem]
    return found.order


# --- the tables of Brenan, Campbell and Petzold -----------------------------------------------------------------------

# r, k_d, k_I, k_a of index 1, 2, 3. Printed in Tables 4.2.1, 4.3.1 and 4.4.1 up to k_a of index 2; the three-stage SIRK
# is printed with k_a1 = 3, which no such method has. The coefficients themselves are not printed.
SIGNATURES = {
    "sirk2": (0, 2, 2, (INF, 2, 2)),
    "dirk5": (0, 4, 1, (INF, 1, 0)),
    "sdirk4": (0, 4, 1, (INF, 1, 0)),
    "sirk23": (1 - math.sqrt(3), 3, 2, (2, 2, 2)),
    "sirk3": (0, 3, 2, (2, 2, 2)),
    "extrapolation_124": (0, 3, 1, (INF, 3, 0)),
    "extrapolation_123": (0, 3, 1, (INF, 3, 0)),
    "sdirk2": (0, 2, 1, (1, 2, 0)),
    "lobatto_iiic3": (0, 4, 2, (INF, 2, 2)),
    "implicit_midpoint": (-1, 2, 1, (1, 1, 0)),
    "gauss2": (1, 4, 2, (2, 2, 2)),
    "backward_euler": (0, 1, 1, (INF, 1, 0)),
    "sirk3_collocation": (0, 3, 3, (INF, 3, 3)),
    "radau3": (0, 3, 2, (INF, 2, 2)),
    "radau5": (0, 5, 3, (INF, 3, 3)),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_of_the_book(name):
    r, k_d, k_i, k_a = SIGNATURES[name]
    analysis = daedal.analysis.analyse_method(name)
    assert (analysis.k_d, analysis.k_I, analysis.k_a) == (k_d, k_i, k_a)
    assert float(analysis.r) == pytest.approx(r, abs=1e-9)
    assert analysis.strictly_stable == (abs(r) < 1)


@pytest.mark.parametrize(
    ("name", "bound"),
    [  # Table 4.3.1, column k_G
        ("sirk2", 2),
        ("dirk5", 2),
        ("sirk3", 3),
        ("extrapolation_124", 2),
        ("sdirk2", 2),
        ("lobatto_iiic3", 3),
        ("implicit_midpoint", 2),
        ("gauss2", 2),
    ],
)
def test_bounds_for_index_1_of_table_4_3_1(name, bound):
    assert order(daedal.analysis.analyse_method(name), 1, "F(t, y, y') = 0") == bound


@pytest.mark.parametrize(
    ("name", "bounds", "observed"),
    [  # Table 4.4.1: k_G and k_g of x, of y
        ("sirk2", (2, 2), (2, 2)),
        ("dirk5", (2, 1), (2, 1)),
        ("sirk3", (3, 2), (3, 2)),
        ("extrapolation_124", (2, 2), (3, 3)),
    ],
)
def test_orders_for_index_2_of_table_4_4_1(name, bounds, observed):
    """Theorem 4.4.1 gives the bounds; the trees of index 2 give what was observed."""
    analysis = daedal.analysis.analyse_method(name)
    assert tuple(order(analysis, 2, SEMI, x) for x in ("x", "y")) == bounds
    assert tuple(text(analysis, 2, HESSENBERG, x) for x in ("y", "z")) == tuple(map(str, observed))


@pytest.mark.parametrize(
    ("name", "orders"),
    [  # the canonical systems of index 1, 2, 3, Theorem 4.2.2
        ("sirk2", (2, 2, 1)),
        ("dirk5", (4, 1, None)),
        ("sirk3", (3, 2, 1)),
        ("sirk3_collocation", (3, 3, 2)),
        ("extrapolation_124", (3, 3, None)),
        ("radau5", (5, 3, 2)),
        ("implicit_midpoint", (2, None, None)),
        ("gauss2", (2, None, None)),
        ("lobatto_iiia3", (4, None, None)),
    ],
)
def test_orders_with_constant_coefficients(name, orders):
    analysis = daedal.analysis.analyse_method(name)
    assert tuple(order(analysis, k, "A y' + B y = f, constant") for k in (1, 2, 3)) == orders


@pytest.mark.parametrize(
    ("family", "y", "z"),
    [  # Hairer and Wanner II, Table VII.4.1: index 2
        ("radau_ia", lambda s: s, lambda s: s - 1),
        ("radau_iia", lambda s: 2 * s - 1, lambda s: s),
        ("lobatto_iiic", lambda s: 2 * s - 2, lambda s: s - 1),
    ],
)
@pytest.mark.parametrize("s", [2, 3, 4])
def test_superconvergence_for_index_2(family, y, z, s):
    analysis = daedal.analysis.analyse_method(f"{family}{s}")
    assert (text(analysis, 2, HESSENBERG, "y"), text(analysis, 2, HESSENBERG, "z")) == (str(y(s)), str(z(s)))


@pytest.mark.parametrize(
    ("name", "z"),
    [  # Hairer and Wanner II, Table VI.1.1: z for index 1
        ("gauss2", 2),
        ("gauss3", 4),
        ("radau_ia2", 2),
        ("radau_ia3", 3),
        ("radau_iia3", 5),
        ("lobatto_iiia3", 4),
        ("lobatto_iiic3", 4),
        ("sdirk4", 4),
        ("sdirk3", 2),
    ],
)
def test_orders_of_algebraic_variables_for_index_1(name, z):
    assert order(daedal.analysis.analyse_method(name), 1, "x' = f, 0 = g(x, y)") == z


def test_backward_euler_is_judged_as_bdf():
    euler = daedal.analysis.analyse_method("backward_euler")
    assert order(euler, 1, "F(t, y, y') = 0") == 1 and [x.order for x in euler.predicted(3)] == [1, 1, 1]
    assert all("BDF1" in x.theorem for x in euler.predicted(3))


# --- orders by trees and by simplifying assumptions agree -------------------------------------------------------------


@pytest.mark.parametrize("name", STAGES)
def test_trees_confirm_the_order(name):
    """Butcher's theorem on B, C, D and the trees themselves, up to order 8."""
    analysis = daedal.analysis.analyse_method(name)
    method = ExactCoefficients.of(analysis.reduced)
    limit = min(analysis.order + 1, 8)
    found, _ = order_by_trees(differential, evaluation(method), method.numbers, limit)
    assert found == min(analysis.order, limit)


@pytest.mark.parametrize("name", ["radau3", "radau5", "lobatto_iiic2", "lobatto_iiic3", "sirk2", "alexander2"])
def test_trees_of_index_2_confirm_the_theorem_on_simplifying_assumptions(name):
    analysis = daedal.analysis.analyse_method(name)
    method = ExactCoefficients.of(analysis.reduced)
    promised = int(min(analysis.B, 2 * analysis.C, analysis.C + analysis.D))
    assert order_by_trees(index_2_y, evaluation(method), method.numbers, promised)[0] == promised
    across = order_by_trees(index_2_across, evaluation(method), method.numbers, promised + 1)[0]
    assert across == promised + 1  # the methods are stiffly accurate


# --- stability --------------------------------------------------------------------------------------------------------

L_STABLE = {
    *("backward_euler", "alexander2", "sdirk2", "sdirk4", "dirk5", "sirk2", "sirk3", "sirk3_collocation"),
    *(name for name in STAGES if name.startswith(("radau", "lobatto_iiic"))),
}
A_STABLE = {
    *("implicit_midpoint", "trapezoidal", "sdirk3", "sirk23"),
    *(name for name in STAGES if name.startswith(("gauss", "lobatto"))),
    *L_STABLE,
}


@pytest.mark.parametrize("name", STAGES)
def test_a_and_l_stability_of_runge_kutta_methods(name):
    """The extrapolation methods, which the book counts as L-stable, miss A-stability by a tenth of a degree."""
    analysis = daedal.analysis.analyse_method(name)
    assert (analysis.a_stable, analysis.l_stable) == (name in A_STABLE, name in L_STABLE)
    assert analysis.stability.proved == (name in EXACT)


@pytest.mark.parametrize(("name", "angle"), [("extrapolation_123", 89.85), ("rk4", 0.0), ("extrapolation_124", 89.88)])
def test_sectors_of_runge_kutta_methods(name, angle):
    assert daedal.analysis.analyse_method(name).angle == pytest.approx(angle, abs=0.005)  # 89.85: HW II, Table IV.9.1


@pytest.mark.parametrize("name", STAGES)
def test_the_stability_function_is_that_of_the_plots(name):
    method = ExactCoefficients.of(daedal.methods.coefficients(name).reduced())
    p, q = (np.array(x, dtype=float) for x in stability_function(method))
    z = np.array([-0.7 + 1.3j, 0.2j, -4.0])
    expected = np.abs(np.polynomial.polynomial.polyval(z, p) / np.polynomial.polynomial.polyval(z, q))
    assert growth_factor(daedal.methods.coefficients(name), z) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", EXACT)
def test_r_is_one_minus_b_a_inverse_one(name):
    analysis = daedal.analysis.analyse_method(name)
    method = ExactCoefficients.of(analysis.reduced)
    if method.omega is None:
        return
    total = sum(x * sum(row[1:], row[0]) for x, row in zip(method.b, method.omega))
    assert analysis.r == 1 - total


@given(st.fractions(min_value=0, max_value=1, max_denominator=20))
def test_the_theta_method_is_a_stable_from_one_half_on(theta):
    tableau = daedal.methods.RungeKuttaTableau([[0, 0], [1 - theta, theta]], [1 - theta, theta])
    multistep = daedal.methods.MultistepFormula([1, -1], [theta, 1 - theta])
    for analysis in (daedal.analysis.analyse_method(tableau), daedal.analysis.analyse_method(multistep)):
        assert analysis.a_stable == (theta >= F(1, 2)) and analysis.order == (2 if theta == F(1, 2) else 1)
        assert analysis.l_stable == (theta == 1)


@given(st.fractions(min_value=F(1, 20), max_value=2, max_denominator=20))
def test_sdirk_methods_of_order_2_are_a_stable_from_one_quarter_on(gamma):
    """Hairer and Wanner II, Table IV.6.3."""
    analysis = daedal.analysis.analyse_method(([[gamma], [1 - 2 * gamma, gamma]], ["1/2", "1/2"]))
    assert analysis.order == 2 and analysis.a_stable == (gamma >= F(1, 4)) and analysis.stability.proved


@given(tableaux(), st.complex_numbers(min_magnitude=0.01, max_magnitude=100.0))
def test_where_a_stability_is_proved_nothing_grows(tableau, z):
    if daedal.analysis.analyse_method(tableau).a_stable:
        assert growth_factor(tableau, [complex(-abs(z.real), z.imag)])[0] < 1.0 + 1e-7


# --- invariance -------------------------------------------------------------------------------------------------------


def everything(analysis):
    return (
        *(analysis.order, analysis.B, analysis.C, analysis.D, analysis.k_I, analysis.k_a, analysis.r),
        *(analysis.stiffly_accurate, analysis.a_stable, analysis.l_stable, analysis.angle, analysis.predictions),
    )


@settings(deadline=None)
@given(st.sampled_from([name for name in EXACT if not name.startswith(("lobatto_iiia5", "dopri5"))]), st.randoms())
def test_the_order_of_stages_does_not_matter(name, shuffle):
    tableau = daedal.methods.coefficients(name)
    stages = list(range(tableau.s))
    shuffle.shuffle(stages)
    assert everything(daedal.analysis.analyse_method(tableau.permuted(stages))) == everything(
        daedal.analysis.analyse_method(tableau)
    )


@settings(deadline=None)
@given(tableaux(), st.randoms())
def test_the_order_of_stages_does_not_matter_for_any_coefficients(tableau, shuffle):
    stages = list(range(tableau.s))
    shuffle.shuffle(stages)
    one, other = daedal.analysis.analyse_method(tableau), daedal.analysis.analyse_method(tableau.permuted(stages))
    assert everything(one) == everything(other)


@settings(deadline=None)
@given(st.sampled_from(["radau3", "radau5", "gauss2", "lobatto_iiic3", "sdirk4", "sirk2", "heun"]), st.data())
def test_reducible_methods_are_equivalent(name, data):
    """A stage split into two with shares of its weights, and an idle stage."""
    base = daedal.methods.coefficients(name)
    k = data.draw(st.integers(0, base.s - 1))
    share = data.draw(st.fractions(min_value=F(1, 5), max_value=F(4, 5), max_denominator=5))

    def split(row):
        return [*row[:k], row[k] * (1 - share), *row[k + 1 :], row[k] * share, 0]

    a = [split(list(row)) for row in (*base.a, base.a[k])]
    a.append([data.draw(st.integers(-2, 2)) for _ in range(base.s + 2)])
    larger = daedal.methods.RungeKuttaTableau(a, split(list(base.b)))
    assert everything(daedal.analysis.analyse_method(larger)) == everything(daedal.analysis.analyse_method(base))


@pytest.mark.parametrize("name", [name for name in EXACT if daedal.methods.coefficients(name).s <= 4])
def test_the_adjoint_has_the_same_order_and_the_reciprocal_stability_function(name):
    tableau = daedal.methods.coefficients(name).reduced()
    p, q = stability_function(ExactCoefficients.of(tableau))
    p_star, q_star = stability_function(ExactCoefficients.of(tableau.adjoint()))
    alternating = [x if k % 2 == 0 else -x for k, x in enumerate(p)]  # R*(z) = 1/R(-z)
    assert q_star == alternating and p_star == [x if k % 2 == 0 else -x for k, x in enumerate(q)]
    assert daedal.analysis.analyse_method(tableau.adjoint()).order == daedal.analysis.analyse_method(tableau).order


@pytest.mark.parametrize("name", ["radau5", "gauss2", "lobatto_iiic3", "sdirk4", "sirk2", "extrapolation_124", "rk4"])
def test_floats_give_what_exact_numbers_give(name):
    tableau = daedal.methods.coefficients(name)
    arrays = tableau.floats()
    exact, floats = daedal.analysis.analyse_method(tableau), daedal.analysis.analyse_method((arrays["a"], arrays["b"]))
    assert exact.exact and not floats.exact and exact.stability.proved and not floats.stability.proved
    assert floats.predictions == exact.predictions and floats.k_a == exact.k_a
    assert (floats.a_stable, floats.l_stable) == (exact.a_stable, exact.l_stable)
    assert float(floats.r) == pytest.approx(float(exact.r), abs=1e-9)


def test_orders_that_floats_cannot_tell_are_refused():
    assert (
        daedal.analysis.analyse_method("gauss9").order == 18
        and daedal.analysis.analyse_method("radau_iia8").tolerance == 1e-13
    )
    with pytest.raises(daedal.InvalidProblemError, match="an order above 18"):
        daedal.analysis.analyse_method(families.gauss(12))


def test_coefficients_with_few_digits_are_compared_less_sharply():
    assert daedal.analysis.analyse_method("dirk5").tolerance == 1e-10


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_the_result_prints_as_a_table_and_as_html():
    analysis = daedal.analysis.analyse_method("radau5")
    shown = str(analysis)
    assert "A-stable              yes (proved)" in shown and "4 to 5" in shown and "BCP Theorem 4.4.1" in shown
    assert analysis._repr_html_().count("<table") == 2
    assert "numerically" in str(daedal.analysis.analyse_method("radau9")) and "floats" in str(
        daedal.analysis.analyse_method("radau9")
    )


def test_the_region_is_drawn(tmp_path):
    for name in ("radau5", "bdf4"):
        figure = daedal.analysis.analyse_method(name).plot(save=tmp_path / f"{name}.png", pyplot=False)
        assert figure.axes[0].get_xlabel() == r"Re $h\lambda$" and (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_growth_of_multistep_formulas_is_that_of_bdf():
    z = np.array([-1.0, 2j, -0.3 + 5j])
    for k in (1, 3, 5):
        assert growth_factor(daedal.methods.coefficients(f"bdf{k}"), z) == pytest.approx(
            growth_factor(daedal.methods.DASSL(max_order=k), z)
        )


@pytest.mark.parametrize(
    "method",
    [3, None, daedal.methods.ModifiedBDF(), [[1], [2], [3]]],
    ids=["number", "none", "modified BDF", "three rows"],
)
def test_what_has_no_coefficients_is_refused(method):
    with pytest.raises(daedal.InvalidProblemError, match="no coefficients to analyse"):
        daedal.analysis.analyse_method(method)


def test_methods_of_daedal_are_understood():
    assert daedal.analysis.analyse_method(daedal.methods.DASSL(max_order=2)).method is daedal.methods.coefficients(
        "bdf2"
    )
    assert daedal.analysis.analyse_method(daedal.methods.Collocation("gauss", 2)).method is daedal.methods.coefficients(
        "gauss2"
    )
    assert (
        daedal.analysis.analyse_method(daedal.methods.DOPRI5()).order == 5
        and daedal.analysis.analyse_method(daedal.methods.HEM4()).order == 4
    )
