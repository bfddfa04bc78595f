"""The analyser on multistep and one-leg methods."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal
from test_formulas import STEPS
from test_method_analysis import order

F = Fraction


@pytest.mark.parametrize(
    ("k", "angle", "parasitic"),
    [
        (1, 90, None),
        (2, 90, 1 / 3),
        (3, 86.03, 0.426401),
        (4, 73.35, 0.560862),
        (5, 51.84, 0.708711),
        (6, 17.84, 0.863380),
    ],
)
def test_bdf(k, angle, parasitic):
    """Angles: Hairer and Wanner II, (V.2.7)."""
    analysis = daedal.analysis.analyse_method(f"bdf{k}")
    assert (analysis.order, analysis.order_projected, analysis.error_constant) == (k, k, F(-1, k + 1))
    assert analysis.zero_stable and analysis.stable_at_infinity and analysis.transferable
    assert (analysis.a_stable, analysis.l_stable) == (k <= 2, k <= 2)
    assert analysis.angle == pytest.approx(angle, abs=0.005)
    assert analysis.stability.parasitic == (None if parasitic is None else pytest.approx(parasitic, abs=1e-6))
    assert {x.order for x in analysis.predictions} == {k}


def test_bdf7_is_unstable_and_converges_nowhere():
    analysis = daedal.analysis.analyse_method("bdf7")
    assert analysis.order == 7 and not analysis.zero_stable and not analysis.transferable
    assert analysis.stability.parasitic == pytest.approx(1.022218, abs=1e-6)
    assert {x.order for x in analysis.predictions} == {None}


def test_the_one_leg_midpoint_rule_is_unstable_for_transferable_equations():
    """BCP 3.4: sigma has the zero -1, and a perturbation grows linearly. As a multistep method it is stable."""
    one_leg = daedal.analysis.analyse_method("midpoint_one_leg")
    twin = daedal.analysis.analyse_method(([1, -1], ["1/2", "1/2"]))
    assert one_leg.order == twin.order == 2 and one_leg.zero_stable
    assert not one_leg.transferable and twin.transferable
    assert (twin.order_projected, order(one_leg, 1, "F(t, y, y') = 0, transferable")) == (1, None)


def test_orders_of_a_one_leg_method_and_its_multistep_twin_differ():
    sigma = daedal.methods.coefficients("adams_moulton2").sigma
    one_leg = daedal.methods.MultistepFormula([1, -1, 0], sigma, one_leg=True)
    assert (daedal.analysis.analyse_method(one_leg).order, daedal.analysis.analyse_method("adams_moulton2").order) == (
        2,
        3,
    )


@pytest.mark.parametrize("name", STEPS)
def test_dahlquist_barriers(name):
    analysis = daedal.analysis.analyse_method(name)
    k = daedal.methods.coefficients(name).k
    if analysis.zero_stable:
        assert analysis.order <= k + 2 - k % 2
    if analysis.a_stable:
        assert analysis.order <= 2


@given(st.fractions(min_value=-3, max_value=3, max_denominator=12))
def test_a_family_of_two_step_methods(c):
    """rho = (z - 1)(z - c) with sigma = (1 - c) z^2, of order 1."""
    analysis = daedal.analysis.analyse_method(([1, -1 - c, c], [1 - c if c != 1 else 1, 0, 0]))
    assert analysis.zero_stable == (-1 <= c < 1)
    assert analysis.order == (0 if c == 1 else 2 if c == F(1, 3) else 1)  # BDF2


def test_bdf_as_a_one_leg_method_is_the_same():
    bdf = daedal.methods.coefficients("bdf2")
    analysis = daedal.analysis.analyse_method(daedal.methods.MultistepFormula(bdf.rho, bdf.sigma, one_leg=True))
    assert analysis.order == 2 and analysis.transferable and {x.order for x in analysis.predictions} == {2}


def test_multistep_formulas_may_be_scaled():
    rho, sigma = (
        [F(-7, 3) * x for x in row]
        for row in (daedal.methods.coefficients("bdf3").rho, daedal.methods.coefficients("bdf3").sigma)
    )
    scaled, bdf = daedal.analysis.analyse_method((rho, sigma)), daedal.analysis.analyse_method("bdf3")
    assert scaled.predictions == bdf.predictions and scaled.error_constant == bdf.error_constant


def test_floats_of_a_multistep_formula():
    exact = daedal.analysis.analyse_method("bdf4")
    floats = daedal.analysis.analyse_method(tuple(daedal.methods.coefficients("bdf4").floats().values()))
    assert not floats.exact and floats.predictions == exact.predictions
    assert floats.error_constant == pytest.approx(-1 / 5) and floats.angle == pytest.approx(exact.angle)
    double = daedal.analysis.analyse_method(([1.0, -2.0, 1.0], [0.0, 1.0, -1.0]))
    assert not double.zero_stable  # a double zero at 1, found in floats
