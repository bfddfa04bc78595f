"""Contacts whose gap has a kink or a jump: edges, slopes, steps and valleys."""

import numpy as np
import pytest

import daedal
from daedal.hybrid.models.contact_equations import corners_of

G = 9.81


def slide(profile, v, t, **contact):
    """A point that begins at x = 0 on a floor of a given profile."""
    point = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -G], n_q=2, names=["x", "y"])
    floor = daedal.hybrid.Contact(lambda t, q: q[1] - profile(q[0]), name="floor", **contact)
    start = ([0.0, float(profile(0.0))], v)
    return daedal.solve(daedal.hybrid.UnilateralProblem(point, floor), (0.0, t), start, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("mu", [0.0, 0.05])
def test_a_point_leaves_the_floor_at_an_edge(mu):
    rough = {"tangent": [1.0, 0.0], "mu": mu} if mu else {}
    sol = slide(lambda x: np.where(x < 1.0, 0.0, -0.5), [2.0, 0.0], 1.0, **rough)
    a = mu * G
    edge = (2.0 - np.sqrt(4.0 - 2.0 * a)) / a if mu else 0.5
    times = [edge, edge + np.sqrt(1.0 / G)]
    np.testing.assert_allclose([event.t for event in sol.events], times, rtol=1e-8)
    assert [event.name for event in sol.events] == ["floor passes a corner", "floor closes"]
    assert sol.contact("floor").gap.min() > -1e-9


def test_a_kink_downwards_opens_and_one_upwards_is_an_impact():
    down = slide(lambda x: np.where(x < 1.0, 0.0, -0.2 * (x - 1.0)), [2.0, 0.0], 0.55)
    assert down.mode[-1] == "free"
    np.testing.assert_allclose(down.y[:, -1], [1.1, -0.5 * G * 0.05**2, 2.0, -G * 0.05], atol=1e-8)
    up = slide(lambda x: np.where(x < 1.0, 0.0, 0.2 * (x - 1.0)), [2.0, 0.0], 0.8)
    speed, a = 2.0 / 1.04, -0.2 * G / 1.04  # along x, after the plastic impact
    x, v = 1.0 + 0.3 * speed + 0.5 * a * 0.09, speed + 0.3 * a
    assert up.mode[-1] == "floor"
    np.testing.assert_allclose(up.y[:, -1], [x, 0.2 * (x - 1.0), v, 0.2 * v], atol=1e-6)


def test_pieces_that_join_smoothly_change_nothing():
    sol = slide(lambda x: np.where(x < 1.0, 0.0, 0.5 * (x - 1.0) ** 2), [2.0, 0.0], 1.0)
    x, y, vx, vy = sol.y[:, -1]
    assert sol.mode[-1] == "floor" and y == pytest.approx(0.5 * (x - 1.0) ** 2, abs=1e-9)
    assert 0.5 * (vx**2 + vy**2) + G * y == pytest.approx(2.0, abs=1e-7)


@pytest.mark.parametrize(
    ("profile", "v", "words"),
    [
        (lambda x: np.where(x < 1.0, 0.0, 0.5), [2.0, 0.0], "jumps to -0.5 at t = 0.5"),
        (lambda x: np.abs(x - 1.0), [1.0, -1.0], "ends in a corner of the gap of contact 'floor'"),
    ],
)
def test_steps_and_valleys_are_refused_in_words(profile, v, words):
    with pytest.raises(daedal.InvalidProblemError, match=words):
        slide(profile, v, 1.0)


@pytest.mark.parametrize(
    "edge",
    [
        lambda x: np.where(x < 0.0, 0.5 * x, -0.05),
        lambda x: np.where(x < 0.0, 0.5 * x, np.maximum(-0.05, -100.0 * x)),
    ],
)
def test_a_latch_snaps_behind_its_edge(edge):
    """A door with a wedge that pushes a bolt down, which a spring brings back behind the edge."""
    bolt = daedal.MechanicalSystem([2.0, 0.2], lambda t, q, v: [0.0, 300.0 * (0.02 - q[1])], n_q=2, names=["x", "y"])
    stop = daedal.hybrid.Contact(lambda t, q: -q[1], name="stop")
    strike = daedal.hybrid.Contact(lambda t, q: -0.01 - q[1] - edge(q[0]), name="strike")
    problem = daedal.hybrid.UnilateralProblem(bolt, [stop, strike])
    sol = daedal.solve(problem, (0.0, 0.3), ([-0.1, 0.0], [1.0, 0.0]), rtol=1e-9, atol=1e-11)
    # by hand: plastic impact at 0.08, sliding y = -0.01 - x / 2, free from the edge on
    names = ["strike closes", "strike passes a corner", "stop closes"]
    assert [event.name for event in sol.events if event.kind == "transition"] == names
    times = [event.t for event in sol.events if event.kind == "transition"]
    np.testing.assert_allclose(times, [0.08, 0.10088209112, 0.13412983163], rtol=1e-8)
    assert sol.mode[-1] == "stop" and sol.contact("stop").gap.min() > -1e-9


def test_tables_stand_for_smooth_curves():
    x = np.linspace(-0.1, 3.0, 400)
    point = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -G], n_q=2)
    corners = corners_of(daedal.hybrid.Contact(lambda t, q: q[1] - np.interp(q[0], x, np.sin(x))), point)
    np.testing.assert_allclose(corners(0.0, np.array([1.0, 2.0])), [1.1, -2.0])  # its ends alone
    one = daedal.MechanicalSystem(1.0, lambda t, q, v, p: [0.0, -G], n_q=2, params=[2.0, 0.5])
    corners = corners_of(daedal.hybrid.Contact(lambda t, q, p: q[1] - p[1] * abs(q[0] - p[0])), one)
    np.testing.assert_array_equal(corners(0.0, np.array([3.0, 1.0])), [1.0])
