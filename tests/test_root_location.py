"""Where zeros of polynomials lie, found exactly."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from daedal.analysis.method_analysis.linear_stability import half_plane, nonnegative, real_zeros, unit_disc
from daedal.analysis.method_analysis.orders_by_class import Numbers
from daedal.methods.exact_numbers import Quadratic, product

F = Fraction

parts = st.fractions(min_value=-2, max_value=2, max_denominator=3)


@given(st.lists(parts, max_size=4), st.lists(st.tuples(parts, parts.filter(lambda x: x > 0)), max_size=2))
def test_half_plane_of_known_zeros(real, pairs):
    p = [F(3)]
    for x in real:
        p = product(p, [-x, F(1)])
    for x, y in pairs:
        p = product(p, [x * x + y * y, -2 * x, F(1)])
    if len(p) == 1:
        return
    zeros = [(x, F(0)) for x in real] + [(x, s * y) for x, y in pairs for s in (1, -1)]
    found = half_plane(p)
    assert found.inside == sum(x < 0 for x, _ in zeros) and found.outside == sum(x > 0 for x, _ in zeros)
    axis = [y for x, y in zeros if x == 0]
    assert found.boundary == len(axis) and found.simple == (len(set(axis)) == len(axis))


@given(st.lists(parts, min_size=1, max_size=4))
def test_unit_disc_and_real_zeros_of_known_zeros(zeros):
    p = [F(-2)]
    for x in zeros:
        p = product(p, [-x, F(1)])
    found = unit_disc(p)
    on = [x for x in zeros if abs(x) == 1]
    assert (found.inside, found.boundary) == (sum(abs(x) < 1 for x in zeros), len(on))
    assert found.simple == (len(set(on)) == len(on))
    assert real_zeros(p) == len(set(zeros))
    assert not nonnegative(p, F(-5), F(5))
    assert nonnegative([-x for x in p], F(-5), F(5)) == all(zeros.count(x) % 2 == 0 for x in zeros)
    assert nonnegative([-x for x in p], max(zeros))


def test_zeros_with_coefficients_in_a_quadratic_field():
    root = Quadratic(0, 1, 2)
    p = product([-root, F(1)], [root + 1, F(1)])
    assert half_plane(p) == half_plane([F(-1), F(0), F(1)]) and real_zeros(p, F(0), F(2)) == 1


def test_exactness_is_lost_only_with_floats_or_several_roots():
    assert Numbers.of([F(1), Quadratic(0, 1, 2)]).exact
    assert not Numbers.of([Quadratic(0, 1, 3), Quadratic(0, 1, 2)]).exact
