"""Drawings that follow from the constraints of a mechanism."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import fsolve

import daedal
from daedal.viz.animate import make_scene
from daedal.viz.default_drawing import default_drawing

G = 9.81


def lengths(sol):
    """The length of each rod at the times of the output, and the drawing."""
    drawing = make_scene(sol, frames=7).drawing
    places = make_scene(sol, frames=7).places
    pairs = [pair for rod in drawing.rods for pair in pairwise(rod)]
    return drawing, {pair: np.hypot(*(places[pair[0]] - places[pair[1]])) for pair in pairs}


def assert_rods(sol, expected):
    """All rods keep their length, and have the ones expected."""
    drawing, found = lengths(sol)
    for values in found.values():
        assert np.ptp(values) < 1e-5 * values.max()
    assert sorted(values[0] for values in found.values()) == pytest.approx(sorted(expected), rel=1e-5)
    return drawing


def points_on_rods(names=None):
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [0.0, -G, 0.0, -G],
        lambda t, q: [
            (q[0] - 0.5) ** 2 + q[1] ** 2 - 1.0,
            np.sqrt((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2) - 2.0,  # any form of a distance
        ],
        n_q=4,
        n_constraints=2,
        names=names,
    )


@pytest.mark.parametrize("names", [None, ["x1", "y1", "x2", "y2"], ["x_a", "y_a", "x_b", "y_b"]])
def test_a_double_pendulum_has_two_rods_and_an_anchor(names):
    sol = daedal.solve(points_on_rods(names), (0.0, 1.0), ([1.5, 0.0, 3.5, 0.0], np.zeros(4)))
    drawing = assert_rods(sol, [1.0, 2.0])
    [anchor] = drawing.fixed
    assert drawing.points[anchor] == pytest.approx((0.5, 0.0), abs=1e-5)


def test_bodies_with_angles_are_pinned_where_their_constraints_meet():
    def constraint(t, q):
        x1, y1, p1, x2, y2, p2, x3, y3 = q
        c1, s1, c2, s2 = np.cos(p1), np.sin(p1), np.cos(p2), np.sin(p2)
        return [
            x1 - 0.4 * c1,
            y1 - 0.4 * s1,
            x1 + 0.6 * c1 - (x2 - 0.5 * c2),
            y1 + 0.6 * s1 - (y2 - 0.5 * s2),
            x2 + 1.5 * c2 - x3,
            y2 + 1.5 * s2 - y3,
            y3,
        ]

    names = ["x1", "y1", "phi1", "x2", "y2", "phi2", "x3", "y3"]
    gravity = [0.0, -G, 0.0, 0.0, -G, 0.0, 0.0, -G]
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: gravity, constraint, n_q=8, n_constraints=7, names=names)
    p1, p2 = 1.0, -np.arcsin(0.5 * np.sin(1.0))
    first, second = (np.array([np.cos(p), np.sin(p)]) for p in (p1, p2))
    q = [*(0.4 * first), p1, *(first + 0.5 * second), p2, *(first + 2.0 * second)]
    drawing = assert_rods(daedal.solve(system, (0.0, 1.0), (q, np.zeros(8))), [0.4, 0.6, 0.5, 1.5])
    [((x0, y0), (x1, y1))] = drawing.ground  # the guide of the slider
    assert y0 == pytest.approx(0.0) and y1 == pytest.approx(0.0) and abs(x1 - x0) > 0.1


def test_loops_of_angles_are_drawn_as_links():
    system = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [-3.0 * np.cos(q[0]), -2.0 * np.cos(q[1]), -np.cos(q[2])],
        lambda t, q: [
            np.cos(q[0]) + 3.0 * np.cos(q[1]) - 2.0 * np.cos(q[2]) - 3.0,
            np.sin(q[0]) + 3.0 * np.sin(q[1]) - 2.0 * np.sin(q[2]),
        ],
        n_q=3,
        n_constraints=2,
    )
    rest = fsolve(lambda z: system.constraint(0.0, [1.5, *z]), [0.3, 2.0], xtol=1e-14)
    drawing = assert_rods(daedal.solve(system, (0.0, 1.0), ([1.5, *rest], np.zeros(3))), [1.0, 3.0, 2.0])
    assert sorted(drawing.points[name] for name in drawing.fixed) == [(0.0, 0.0), pytest.approx((3.0, 0.0), abs=1e-5)]


def test_relative_angles_are_told_from_absolute_ones():
    """The seven-body mechanism: beta + theta, phi + delta and omega + epsilon, three loops, two anchors."""
    model = daedal.library.seven_body()
    sol = daedal.solve(model.problem, (0.0, 0.02), model.initial)
    drawing = default_drawing([f"q[{i}]" for i in range(7)], sol.system, sol.t, sol.q)
    known = [(-0.06934, -0.00227), (-0.03635, 0.03273), (0.0, 0.0)]  # A, B and O of the source
    assert np.allclose(sorted(drawing.points[name] for name in drawing.fixed), known, atol=1e-7)
    assert len(drawing.rods) == 3 and len(drawing.points) == 7


def test_what_constraints_do_not_explain_is_left_to_the_user():
    bead = daedal.MechanicalSystem(
        1.0, lambda t, q, v: [0.0, -G], lambda t, q: [q[1] - q[0] ** 2], n_q=2, n_constraints=1, names=["u", "w"]
    )
    sol = daedal.solve(bead, (0.0, 1.0), ([1.0, 1.0], [0.0, 0.0]))
    with pytest.raises(daedal.InvalidProblemError, match="no drawing is available for this solution"):
        sol.animate()
    named = daedal.solve(bead.replaced(names=["x", "y"]), (0.0, 1.0), ([1.0, 1.0], [0.0, 0.0]))
    drawing = make_scene(named).drawing
    assert list(drawing.points) == ["(x, y)"] and not drawing.rods and not drawing.ground
