"""Coefficients of methods by name: printed values, simplifying assumptions, symmetries, reduction."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal
from daedal.methods.exact_numbers import Quadratic
from daedal.methods.implicit_rk.implicit_families import collocation, radau_iia
from daedal.methods.implicit_rk.implicit_stages import collocation_stages
from daedal.methods.named_formulas import extrapolated_euler, formula_names

F = Fraction
STAGES = [
    name for name in formula_names() if isinstance(daedal.methods.coefficients(name), daedal.methods.RungeKuttaTableau)
]
STEPS = [
    name for name in formula_names() if isinstance(daedal.methods.coefficients(name), daedal.methods.MultistepFormula)
]
EXACT = [name for name in STAGES if daedal.methods.coefficients(name).exact]


# --- printed coefficients ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "a"),
    [
        ("radau_ia2", [["1/4", "-1/4"], ["1/4", "5/12"]]),  # Hairer and Wanner II, Table IV.5.3
        ("radau_iia2", [["5/12", "-1/12"], ["3/4", "1/4"]]),  # Table IV.5.5
        ("lobatto_iiia3", [[0, 0, 0], ["5/24", "1/3", "-1/24"], ["1/6", "2/3", "1/6"]]),  # Table IV.5.7
        ("lobatto_iiib3", [["1/6", "-1/6", 0], ["1/6", "1/3", 0], ["1/6", "5/6", 0]]),  # Table IV.5.9
        ("lobatto_iiic3", [["1/6", "-1/3", "1/6"], ["1/6", "5/12", "-1/12"], ["1/6", "2/3", "1/6"]]),  # Table IV.5.11
        ("lobatto_iiic2", [["1/2", "-1/2"], ["1/2", "1/2"]]),
        ("radau_ia1", [[1]]),
    ],
)
def test_families_have_the_printed_matrices(name, a):
    assert daedal.methods.coefficients(name).a == tuple(tuple(map(F, row)) for row in a)


def test_radau5_is_that_of_hairer_and_wanner():
    root = Quadratic(0, 1, 6)
    radau = daedal.methods.coefficients("radau5")
    assert radau.c == ((4 - root) / 10, (4 + root) / 10, F(1))
    assert radau.a[0] == ((88 - 7 * root) / 360, (296 - 169 * root) / 1800, (-2 + 3 * root) / 225)
    assert radau.b == ((16 - root) / 36, (16 + root) / 36, F(1, 9))


def test_sirk2_has_the_nodes_of_the_book():
    sirk, root = daedal.methods.coefficients("sirk2"), Quadratic(0, 1, 2)
    lam = 1 - root / 2
    assert sirk.c == (lam * (2 - root), lam * (2 + root)) == (3 - 2 * root, F(1))
    factor = lam / 4
    assert sirk.a == (
        (factor * (4 - root), factor * (4 - 3 * root)),
        (factor * (4 + 3 * root), factor * (4 + root)),
    )


@pytest.mark.parametrize("name", ["sirk2", "sirk23", "sirk3", "sirk3_collocation"])
def test_sirk_has_one_eigenvalue(name):
    a = daedal.methods.coefficients(name).floats()["a"]
    stages = len(a)
    lam = {"sirk2": 1 - math.sqrt(0.5), "sirk23": (3 + math.sqrt(3)) / 6}.get(name, 0.43586652150845906)
    power = np.linalg.matrix_power(a - lam * np.eye(stages), stages)
    assert np.abs(power).max() < 1e-14 and np.abs(a - lam * np.eye(stages)).max() > 0.1


@pytest.mark.parametrize("sequence", [(1, 2, 4), (1, 2, 3), (2, 3, 4, 6)])
def test_extrapolation_as_a_tableau_is_extrapolation(sequence):
    """On y' = z y: T_jk by Aitken and Neville against R(z) of the tableau."""
    z = F(-3, 7)
    table = [1 / (1 - z / n) ** n for n in sequence]
    for k in range(1, len(sequence)):
        for j in range(len(sequence) - 1, k - 1, -1):
            ratio = F(sequence[j], sequence[j - k])
            table[j] = table[j] + (table[j] - table[j - 1]) / (ratio - 1)
    method = extrapolated_euler(sequence)
    stages: list[F] = []
    for i, row in enumerate(method.a):  # a lower triangle
        stages.append((1 + z * sum((x * y for x, y in zip(row, stages)), F(0))) / (1 - z * row[i]))
    assert 1 + z * sum(x * y for x, y in zip(method.b, stages)) == table[-1]


@pytest.mark.parametrize("kind", ["gauss", "radau", "lobatto"])
@pytest.mark.parametrize("s", [2, 3, 4, 5])
def test_families_agree_with_those_of_the_method_collocation(kind, s):
    family = {"gauss": "gauss", "radau": "radau_iia", "lobatto": "lobatto_iiia"}[kind]
    expected, found = collocation_stages(kind, s), daedal.methods.coefficients(f"{family}{s}").floats()
    for part in ("a", "b", "c"):
        assert np.abs(found[part] - getattr(expected, part)).max() < 1e-13


@pytest.mark.parametrize("s", [5, 7])
def test_radau_in_floats_is_correct_to_the_last_digit(s):
    """The nodes are zeros of P_s - P_{s-1}: the sign changes between the neighbours of each float, exactly."""
    from daedal.methods.exact_numbers import add, scaled, shifted_legendre, value

    p = add(shifted_legendre(s), scaled(shifted_legendre(s - 1), F(-1)))
    for c in radau_iia(s).c[:-1]:
        below, above = (value(p, F(math.nextafter(c, end))) for end in (0.0, 1.0))
        assert below * above < 0


def test_decimal_digits_of_the_dirk_method_of_cash():
    method = daedal.methods.coefficients("dirk5").floats()
    assert method["c"] == pytest.approx([0.435866521508, -0.7, 0.8, 0.924556761814, 1.0], abs=1e-10)


# --- B, C, D ----------------------------------------------------------------------------------------------------------


def simplifying(tableau, p, q, r) -> bool:
    """B(p), C(q), D(r) as they are written, with exact numbers."""
    a, b, c = tableau.a, tableau.b, tableau.c
    stages = range(tableau.s)
    one = c[0] * 0 + 1
    power = [[one if k == 0 else x**k for x in c] for k in range(max(p, q, r) + 1)]
    quadrature = all(sum(b[i] * power[k - 1][i] for i in stages) == F(1, k) for k in range(1, p + 1))
    stage = all(
        sum(a[i][j] * power[k - 1][j] for j in stages) == power[k][i] / F(k) for k in range(1, q + 1) for i in stages
    )
    transposed = all(
        sum(b[i] * power[k - 1][i] * a[i][j] for i in stages) == b[j] * (1 - power[k][j]) / F(k)
        for k in range(1, r + 1)
        for j in stages
    )
    return quadrature and stage and transposed


@pytest.mark.parametrize(
    ("family", "assumptions"),
    [  # Hairer and Wanner II, Table IV.5.13
        ("gauss", lambda s: (2 * s, s, s)),
        ("radau_ia", lambda s: (2 * s - 1, s - 1, s)),
        ("radau_iia", lambda s: (2 * s - 1, s, s - 1)),
        ("lobatto_iiia", lambda s: (2 * s - 2, s, s - 2)),
        ("lobatto_iiib", lambda s: (2 * s - 2, s - 2, s)),
        ("lobatto_iiic", lambda s: (2 * s - 2, s - 1, s - 1)),
    ],
)
@pytest.mark.parametrize("s", [1, 2, 3, 4])
def test_families_satisfy_their_simplifying_assumptions_and_no_more(family, assumptions, s):
    if f"{family}{s}" not in formula_names():
        return
    p, q, r = assumptions(s)
    analysis = daedal.analysis.analyse_method(f"{family}{s}")
    assert (analysis.B, analysis.C, analysis.D) == (p, q, r)
    if analysis.exact:
        assert simplifying(daedal.methods.coefficients(f"{family}{s}"), p, q, r)
        assert not simplifying(daedal.methods.coefficients(f"{family}{s}"), p + 1, q, r)


# --- symmetries -------------------------------------------------------------------------------------------------------


def equal(first, second) -> bool:
    return (first.a, first.b, first.c) == (second.a, second.b, second.c)


@pytest.mark.parametrize(
    "name", [name for name in EXACT if name.startswith(("gauss", "lobatto_iiia", "lobatto_iiib"))] + ["trapezoidal"]
)
def test_symmetric_methods_are_their_own_adjoints(name):
    assert equal(daedal.methods.coefficients(name).adjoint(), daedal.methods.coefficients(name))


@pytest.mark.parametrize("name", ["radau5", "lobatto_iiic3", "sdirk3", "explicit_euler"])
def test_other_methods_are_not(name):
    assert not equal(daedal.methods.coefficients(name).adjoint(), daedal.methods.coefficients(name))
    assert equal(daedal.methods.coefficients(name).adjoint().adjoint(), daedal.methods.coefficients(name))


@pytest.mark.parametrize("s", [1, 2, 3])
def test_radau_ia_is_radau_iia_transposed_and_reflected(s):
    """Scherer and Tuerke: a_ij -> b_j a_ji / b_i, and the stages in reverse order; twice it is the method itself."""
    ia, iia = (
        daedal.methods.coefficients(f"radau_ia{s}"),
        daedal.methods.coefficients(f"radau_iia{s}").permuted(range(s - 1, -1, -1)),
    )
    transposed = tuple(tuple(iia.b[j] * iia.a[j][i] / iia.b[i] for j in range(s)) for i in range(s))
    assert ia.a == transposed and ia.b == iia.b and ia.c == tuple(1 - x for x in iia.c)


@pytest.mark.parametrize("s", [2, 3, 4])
def test_lobatto_iiia_and_iiib_are_conjugate(s):
    """b_i a_ij + b_j a*_ji = b_i b_j: together they are symplectic."""
    one, other = daedal.methods.coefficients(f"lobatto_iiia{s}"), daedal.methods.coefficients(f"lobatto_iiib{s}")
    b = one.b
    for i in range(s):
        for j in range(s):
            assert b[i] * one.a[i][j] + b[j] * other.a[j][i] == b[i] * b[j]


# --- reduction --------------------------------------------------------------------------------------------------------

small = st.fractions(min_value=-2, max_value=2, max_denominator=6)


@st.composite
def tableaux(draw, largest=3):
    s = draw(st.integers(1, largest))
    a = [[draw(small) for _ in range(s)] for _ in range(s)]
    return daedal.methods.RungeKuttaTableau(a, [draw(small.filter(bool)) for _ in range(s)])


@given(tableaux(), st.data())
def test_split_stages_and_idle_ones_are_found(tableau, data):
    """A copy of a stage that shares its weight, and a stage that nothing depends on, change nothing."""
    base = tableau.reduced()
    s = base.s
    k = data.draw(st.integers(0, s - 1))
    share = data.draw(small.filter(lambda x: x not in (0, 1)))

    def split(row):
        return [*row[:k], row[k] * (1 - share), *row[k + 1 :], row[k] * share]

    a = [split(list(row)) for row in (*base.a, base.a[k])]
    idle = [data.draw(small) for _ in range(s + 2)]
    larger = daedal.methods.RungeKuttaTableau([*([*row, 0] for row in a), idle], [*split(list(base.b)), 0])
    assert larger.s == s + 2
    reduced = larger.reduced()
    assert (reduced.a, reduced.b, reduced.c) == (base.a, base.b, base.c)


def test_named_methods_but_one_have_no_idle_stages():
    idle = {
        name for name in STAGES if daedal.methods.coefficients(name).reduced().s < daedal.methods.coefficients(name).s
    }
    assert idle == {"dopri5"}  # its seventh stage serves the error estimate


# --- multistep --------------------------------------------------------------------------------------------------------


def test_bdf_has_the_printed_coefficients():
    printed = {2: "3/2 -2 1/2", 4: "25/12 -4 3 -4/3 1/4", 6: "49/20 -6 15/2 -20/3 15/4 -6/5 1/6"}
    for k, row in printed.items():
        assert daedal.methods.coefficients(f"bdf{k}").rho == tuple(map(F, row.split()))


@given(st.lists(small, min_size=1, max_size=4), st.integers(1, 6))
def test_adams_formulas_integrate_polynomials(coefficients, k):
    """Of degree below the order: the integral over the last step of a polynomial is exact."""
    for name, order in ((f"adams_bashforth{k}", k), (f"adams_moulton{k}", k + 1)):
        f = coefficients[:order]
        sigma = daedal.methods.coefficients(name).sigma
        left = sum(x * F((-1) ** (i + 1), i + 1) for i, x in enumerate(f)) * -1  # integral from -1 to 0
        right = sum(w * sum(x * F(-j) ** i for i, x in enumerate(f)) for j, w in enumerate(sigma))
        assert right == left


# --- names and refusals -----------------------------------------------------------------------------------------------


def test_names_in_any_spelling():
    assert (
        daedal.methods.coefficients("Radau IIA 3").a
        == daedal.methods.coefficients("radau5").a
        == daedal.methods.coefficients("radau-iia-3").a
    )
    assert daedal.methods.coefficients("implicit euler") is daedal.methods.coefficients("backward_euler")


@pytest.mark.parametrize(
    ("name", "message"),
    [("radua5", "did you mean 'radau5'"), ("gauss", "takes a number from 1 to 9"), ("lobatto_iiia1", "from 2 to 8")],
)
def test_unknown_names_are_answered(name, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.methods.coefficients(name)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([["x"]], [1], "row 1 of a must contain real numbers"),
        ([[1.0]], [math.nan], "b must contain finite"),
        ([[1]], [1, 1], "1 row of a, but 2 weights"),
        ([[1, 2]], [1], "row 1 of a has 2 entries"),
        ([[1]], [0], "one of the weights"),
        (1, [1], "a must be a sequence"),
    ],
)
def test_coefficients_that_are_none_are_refused(a, b, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.methods.RungeKuttaTableau(a, b)


@pytest.mark.parametrize(
    ("rho", "sigma", "message"),
    [([1], [1], "two or more"), ([0, 1], [1, 0], "must not be zero"), ([1j, 1], [1, 0], "rho must contain real")],
)
def test_formulas_that_are_none_are_refused(rho, sigma, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.methods.MultistepFormula(rho, sigma)


def test_nodes_of_collocation_must_differ():
    with pytest.raises(daedal.InvalidProblemError, match="must differ"):
        collocation([0, 1, 1])
