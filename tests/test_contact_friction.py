"""Contacts with friction against closed forms: tipping, sliding, rolling, impacts with friction, Painleve's cases."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.hybrid.models.complementarity import FrictionProblem, lemke

G = 9.81
TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def corner(s, width, height, name, mu, e=0.0, **options):
    """A lower corner of a block with coordinates (x, y, phi), on the floor y = 0."""
    return daedal.hybrid.Contact(
        lambda t, q: q[1] + s * width * np.sin(q[2]) - height * np.cos(q[2]),
        e,
        name=name,
        tangent=lambda t, q: np.array([1.0, 0.0, height * np.cos(q[2]) - s * width * np.sin(q[2])]),
        mu=mu,
        **options,
    )


def block(mu, width=0.5, height=0.3, e=0.0, force=lambda t: (0.0, -G), turned=False, **options):
    inertia = (width**2 + height**2) / 3.0
    system = daedal.MechanicalSystem(
        [1.0, 1.0, inertia], lambda t, q, v: [*force(t), 0.0], n_q=3, names=["x", "y", "phi"]
    )
    corners = [corner(s, width, height, name, mu, e) for s, name in ((-1.0, "left"), (1.0, "right"))]
    return daedal.hybrid.UnilateralProblem(system, corners[::-1] if turned else corners, **options)


# --- complementarity problems -----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.integers(1, 5), st.integers(1, 7), st.integers(0, 10**6))
def test_impulses_satisfy_the_laws_of_contact_and_friction(m, rank, seed):
    """Compliances A = J J^T of any rank, rates in their range: then there is a solution, by Lemke's method."""
    rng = np.random.default_rng(seed)
    J, mu = rng.normal(size=(2 * m, rank)), rng.uniform(0.0, 2.0, m)
    A, b = J @ J.T, J @ rng.normal(size=rank)
    x = FrictionProblem(A, b, m, tuple(range(m)), mu).solve()
    w, size = A @ x + b, 1.0 + np.abs(x).max()
    P, Q, u, s = x[:m], x[m:], w[:m], w[m:]
    assert P.min() >= 0.0 and u.min() > -1e-8 * size and abs(P @ u) < 1e-7 * size**2
    assert np.all(np.abs(Q) <= mu * P + 1e-8 * size)
    assert np.all(np.abs(Q * s + mu * P * np.abs(s)) < 1e-6 * size**2)


def test_a_problem_without_solution_is_told():
    assert lemke(np.array([[-1.0]]), np.array([-1.0])) is None
    assert lemke(np.array([[0.0]]), np.array([-1.0])) is None
    np.testing.assert_allclose(lemke(np.zeros((2, 2)), np.array([1.0, 0.0])), 0.0)


# --- a block on a table -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.5, 1.5, 2.0])
def test_a_block_that_is_pushed_slides_or_tips(mu):
    """The force F = 2 t at the centre: it slides at F = mu m g, or tips at F h = m g b, what comes first."""
    slides = mu < 0.5 / 0.3
    sol = daedal.solve(block(mu, force=lambda t: (2.0 * t, -G)), (0.0, 9.0), ([0.0, 0.3, 0.0], [0.0] * 3), **TIGHT)
    assert sol.mode[0] == "left sticks + right sticks"
    first = next(event for event in sol.events if event.kind == "transition")
    assert first.t == pytest.approx(0.5 * G * (mu if slides else 0.5 / 0.3), abs=1e-6)
    after = sol.mode_at(first.t + 1e-6)
    assert after == ("left slips+ + right slips+" if slides else "right sticks")


def test_friction_is_shared_by_corners_as_far_as_it_must_be():
    """Shared equally, the left corner would slip long before: it carries little weight when the block nearly tips."""
    sol = daedal.solve(block(2.0, force=lambda t: (2.0 * t, -G)), (0.0, 8.0), ([0.0, 0.3, 0.0], [0.0] * 3), **TIGHT)
    assert not sol.events and np.abs(sol.v).max() < 1e-12
    left, right = sol.contact("left"), sol.contact("right")
    np.testing.assert_allclose(left.normal + right.normal, G, rtol=1e-9)
    np.testing.assert_allclose(left.friction + right.friction, -2.0 * sol.t, atol=1e-8)
    assert set(left.state) == {"stick"} and np.abs(left.gap).max() < 1e-12


def test_a_sliding_block_stops_after_v_squared_over_2_mu_g():
    sol = daedal.solve(block(0.5), (0.0, 1.0), ([0.0, 0.3, 0.0], [1.0, 0.0, 0.0]), **TIGHT)
    assert (sol.mode[0], sol.mode[-1]) == ("left slips+ + right slips+", "left sticks + right sticks")
    assert sol.events[-1].t == pytest.approx(1.0 / (0.5 * G), abs=1e-9)
    assert sol["x"][-1] == pytest.approx(0.5 / (0.5 * G), abs=1e-9)
    history = sol.contact("left", [0.1, 0.5])
    assert history.state.tolist() == ["slip+", "stick"]
    assert history.friction[0] == pytest.approx(-0.5 * history.normal[0])
    # Sliding, the friction at the floor turns the load to the front corner: N = m g / 2 (1 -+ mu h / b).
    assert history.normal[0] == pytest.approx(0.5 * G * (1.0 - 0.5 * 0.3 / 0.5), rel=1e-9)


def test_static_friction_holds_longer_than_sliding_friction():
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [t, -G], n_q=2, names=["x", "y"])
    floor = daedal.hybrid.Contact(lambda t, q: q[1], tangent=[1.0, 0.0], mu=0.1, mu_static=0.3, name="floor")
    sol = daedal.solve(daedal.hybrid.UnilateralProblem(system, floor), (0.0, 4.0), ([0.0, 0.0], [0.0, 0.0]), **TIGHT)
    t0 = 0.3 * G
    assert sol.events[0].name == "floor slips" and sol.events[0].t == pytest.approx(t0, abs=1e-8)
    assert sol["x'"][-1] == pytest.approx((16.0 - t0**2) / 2.0 - 0.1 * G * (4.0 - t0), abs=1e-8)


def test_a_belt_carries_a_block_along_until_it_sticks():
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -G], n_q=2, names=["x", "y"])
    belt = daedal.hybrid.Contact(lambda t, q: q[1], tangent=[1.0, 0.0], mu=0.2, speed=1.5, name="belt")
    sol = daedal.solve(daedal.hybrid.UnilateralProblem(system, belt), (0.0, 2.0), ([0.0, 0.0], [0.0, 0.0]), **TIGHT)
    assert sol.mode[0] == "belt slips-" and sol.mode[-1] == "belt sticks"
    assert sol.events[0].t == pytest.approx(1.5 / (0.2 * G), abs=1e-9)
    assert sol["x'"][-1] == pytest.approx(1.5, abs=1e-10)


# --- invariance -------------------------------------------------------------------------------------------------------


def test_a_brick_that_falls_on_a_corner():
    """The order of the contacts and the side do not matter; energy never grows; it comes to rest on the floor."""
    options = {"rtol": 1e-8, "atol": 1e-10}
    start = ([0.0, 1.0, 0.4], [1.0, 0.0, 0.5])
    sol = daedal.solve(block(0.4, e=0.3), (0.0, 2.0), start, **options)
    assert sol.mode[-1] == "left sticks + right sticks"
    np.testing.assert_allclose(sol.q[1:, -1], [0.3, 0.0], atol=1e-7)

    def energy(y):
        return 0.5 * (y[3] ** 2 + y[4] ** 2 + (0.5**2 + 0.3**2) / 3.0 * y[5] ** 2) + G * y[1]

    changes = [energy(event.y_after) - energy(event.y) for event in sol.events if event.y_after is not None]
    assert max(changes) < 1e-8
    other = daedal.solve(block(0.4, e=0.3, turned=True), (0.0, 2.0), start, **options)
    np.testing.assert_allclose(other.q[:, -1], sol.q[:, -1], atol=1e-7)
    mirrored = daedal.solve(block(0.4, e=0.3), (0.0, 2.0), ([0.0, 1.0, -0.4], [-1.0, 0.0, -0.5]), **options)
    np.testing.assert_allclose(mirrored.q[:, -1], sol.q[:, -1] * [-1.0, 1.0, -1.0], atol=1e-5)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_units_of_length_do_not_matter(unit):
    """Lengths, speeds and forces in another unit, with the same masses: the same events at the same times."""

    def run(k):
        system = daedal.MechanicalSystem(
            [1.0, 1.0, 0.34 / 3.0 * k**2], lambda t, q, v: [0.0, -G * k, 0.0], n_q=3, names=["x", "y", "phi"]
        )
        corners = [corner(s, 0.5 * k, 0.3 * k, name, 0.4, 0.2) for s, name in ((-1.0, "left"), (1.0, "right"))]
        start = ([0.0, 0.8 * k, 0.3], [0.7 * k, 0.0, 0.0])
        problem = daedal.hybrid.UnilateralProblem(system, corners, touch=1e-9 * k, rest_speed=0.05 * k)
        atol = 1e-10 * np.array([k, k, 1.0, k, k, 1.0])
        return daedal.solve(problem, (0.0, 1.0), start, rtol=1e-9, atol=atol)

    one, other = run(1.0), run(unit)
    assert [event.name for event in other.events] == [event.name for event in one.events]
    np.testing.assert_allclose(other.events.t, one.events.t, atol=1e-6)


# --- ladders, balls, stacks -------------------------------------------------------------------------------------------


def ladder(mu):
    """A rod of half length 1 at a wall and on a floor, both rough."""
    rod = daedal.MechanicalSystem([1.0, 1.0, 1.0 / 3.0], lambda t, q, v: [0.0, -G, 0.0], n_q=3)
    wall = daedal.hybrid.Contact(
        lambda t, q: q[0] - np.cos(q[2]), name="wall", tangent=lambda t, q: np.array([0.0, 1.0, np.cos(q[2])]), mu=mu
    )
    floor = daedal.hybrid.Contact(
        lambda t, q: q[1] - np.sin(q[2]), name="floor", tangent=lambda t, q: np.array([1.0, 0.0, -np.sin(q[2])]), mu=mu
    )
    return daedal.hybrid.UnilateralProblem(rod, [wall, floor])


def test_a_ladder_stands_up_to_twice_the_angle_of_friction():
    """It holds if its angle with the wall is less than 2 arctan(mu); beyond, it slides and comes down."""
    mu = 0.4
    limit = 0.5 * math.pi - 2.0 * math.atan(mu)  # with the floor
    for angle, holds in ((limit + 0.002, True), (limit - 0.002, False)):
        q = [math.cos(angle), math.sin(angle), angle]
        sol = daedal.solve(ladder(mu), (0.0, 0.5), (q, [0.0] * 3), **TIGHT)
        assert sol.mode[0] == ("wall sticks + floor sticks" if holds else "wall slips- + floor slips+")
        assert (np.abs(sol.v).max() < 1e-9) == holds
    assert sol.q[2, -1] < angle


def test_a_ladder_without_friction_leaves_the_wall_at_two_thirds_of_its_height():
    rod = daedal.MechanicalSystem([1.0, 1.0, 1.0 / 3.0], lambda t, q, v: [0.0, -G, 0.0], n_q=3)
    contacts = [
        daedal.hybrid.Contact(lambda t, q: q[0] - np.cos(q[2]), name="wall"),
        daedal.hybrid.Contact(lambda t, q: q[1] - np.sin(q[2]), name="floor"),
    ]
    start = ([math.cos(1.2), math.sin(1.2), 1.2], [0.0] * 3)
    sol = daedal.solve(daedal.hybrid.UnilateralProblem(rod, contacts), (0.0, 1.0), start, **TIGHT)
    assert sol.mode[0] == "wall + floor" and sol.events[0].name == "wall opens"
    assert math.sin(sol.events[0].y[2]) == pytest.approx(2.0 / 3.0 * math.sin(1.2), abs=1e-8)


def spinning_ball(mu, e, law="newton"):
    """A ball of radius 0.1 in the plane, coordinates (x, y, phi): its lowest point moves with x' + r phi'."""
    inertia = 0.4 * 0.1**2
    system = daedal.MechanicalSystem([1.0, 1.0, inertia], lambda t, q, v: [0.0, -G, 0.0], n_q=3)
    floor = daedal.hybrid.Contact(lambda t, q: q[1] - 0.1, e, tangent=[1.0, 0.0, 0.1], mu=mu, name="floor")
    return system, floor, daedal.hybrid.Impact(system, floor, law=law)


@given(st.floats(0.0, 1.5), st.floats(0.0, 1.0), st.floats(-5.0, 5.0), st.sampled_from(["newton", "poisson"]))
def test_a_ball_with_spin_grips_or_slips_at_its_impact(mu, e, slip, law):
    """P = (1 + e) |u|; it grips if |s| <= mu P (1/m + r^2/J) = 3.5 mu P, otherwise friction is mu P."""
    _, _, hit = spinning_ball(mu, e, law)
    v = np.array([0.3, -2.0, (slip - 0.3) / 0.1])
    after = hit(0.0, [0.0, 0.1, 0.0], v)[1]
    P = (1.0 + e) * 2.0
    Q = -slip / 3.5 if abs(slip) <= 3.5 * mu * P else -math.copysign(mu * P, slip)
    expected = v + np.array([Q, P, 0.1 * Q / (0.4 * 0.1**2)])
    np.testing.assert_allclose(after, expected, atol=1e-10 * (1.0 + abs(expected).max()))


def test_a_ball_with_back_spin_returns():
    """It bounces, slips, and rolls at last: angular momentum about the floor gives x' = (5 v + 2 r omega) / 7."""
    system, floor, _ = spinning_ball(0.3, 0.4)
    v, omega = 1.0, 60.0
    problem = daedal.hybrid.UnilateralProblem(system, floor)
    sol = daedal.solve(problem, (0.0, 3.0), ([0.0, 0.6, 0.0], [v, 0.0, omega]), **TIGHT)
    assert sol.mode[-1] == "floor sticks"
    assert sol.v[0, -1] == pytest.approx((5.0 * v - 2.0 * 0.1 * omega) / 7.0, abs=1e-7)
    assert sol.v[0, -1] < 0.0 and sol.v[0, -1] + 0.1 * sol.v[2, -1] == pytest.approx(0.0, abs=1e-9)


def test_a_ball_in_a_box_keeps_its_energy_between_smooth_walls():
    """Elastic walls without friction reflect: the path is unfolded by mirrors."""
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, 0.0], n_q=2)
    walls = [
        daedal.hybrid.Contact(lambda t, q: q[0], 1.0, name="left"),
        daedal.hybrid.Contact(lambda t, q: 1.0 - q[0], 1.0, name="right"),
        daedal.hybrid.Contact(lambda t, q: q[1], 1.0, name="bottom"),
        daedal.hybrid.Contact(lambda t, q: 1.0 - q[1], 1.0, name="top"),
    ]
    start, speed = np.array([0.3, 0.4]), np.array([1.3, 0.9])
    sol = daedal.solve(daedal.hybrid.UnilateralProblem(ball, walls), (0.0, 10.0), (start, speed), **TIGHT)
    unfolded = start + 10.0 * speed
    folded = np.abs((unfolded + 1.0) % 2.0 - 1.0)
    np.testing.assert_allclose(sol.q[:, -1], folded, atol=1e-7)
    assert sol.n_events == sum(math.floor(x) for x in unfolded)
    corner = daedal.solve(daedal.hybrid.UnilateralProblem(ball, walls), (0.0, 1.0), ([0.5, 0.5], [1.0, 1.0]), **TIGHT)
    np.testing.assert_allclose(corner.v[:, -1], [-1.0, -1.0], atol=1e-12)  # both walls at once


def stack(n, mu=0.5, width=0.5, height=0.2):
    """Blocks on each other: the lower corners of each touch the one below."""

    def place(q, k, s):
        x, y, a = q[3 * k], q[3 * k + 1], q[3 * k + 2]
        arm = s * width * np.cos(a) + height * np.sin(a), s * width * np.sin(a) - height * np.cos(a)
        return arm, x + arm[0], y + arm[1]

    def gap(t, q, k, s):
        _, x, y = place(q, k, s)
        if k == 0:
            return y
        a = q[3 * k - 1]
        return -(x - q[3 * k - 3]) * np.sin(a) + (y - q[3 * k - 2]) * np.cos(a) - height

    def tangent(t, q, k, s):
        arm, x, y = place(q, k, s)
        a = q[3 * k - 1] if k else 0.0
        c, d = np.cos(a), np.sin(a)
        e = np.zeros(3 * n)
        e[3 * k], e[3 * k + 1], e[3 * k + 2] = c, d, arm[0] * d - arm[1] * c
        if k:
            e[3 * k - 3], e[3 * k - 2] = -c, -d
            e[3 * k - 1] = (y - q[3 * k - 2]) * c - (x - q[3 * k - 3]) * d
        return e

    system = daedal.MechanicalSystem(
        [1.0, 1.0, (width**2 + height**2) / 3.0] * n, lambda t, q, v: [0.0, -G, 0.0] * n, n_q=3 * n
    )
    contacts = [
        daedal.hybrid.Contact(
            lambda t, q, k=k, s=s: gap(t, q, k, s),
            name=f"{side} {k + 1}",
            tangent=lambda t, q, k=k, s=s: tangent(t, q, k, s),
            mu=mu,
        )
        for k in range(n)
        for s, side in ((-1.0, "left"), (1.0, "right"))
    ]
    return daedal.hybrid.UnilateralProblem(system, contacts)


def test_a_stack_of_three_blocks_stays_at_rest_and_its_top_slides_alone():
    problem = stack(3)
    assert len(problem.modes) == 4**6  # of which a run makes those that it meets
    q = np.array([0.0, 0.2, 0.0, 0.1, 0.6, 0.0, -0.05, 1.0, 0.0])
    sol = daedal.solve(problem, (0.0, 100.0), (q, np.zeros(9)), rtol=1e-8, atol=1e-10)
    assert not sol.events and np.abs(sol.q - q[:, None]).max() < 1e-11 and np.abs(sol.v).max() < 1e-13
    loads = [sol.contact(f"{side} 1").normal[-1] for side in ("left", "right")]
    # 3 m g, with the centre of mass at x = 0.05 / 3
    np.testing.assert_allclose(loads, 1.5 * G * np.array([1.0 - 0.1 / 3.0, 1.0 + 0.1 / 3.0]), rtol=1e-9)
    v = np.zeros(9)
    v[6] = 1.0
    pushed = daedal.solve(problem, (0.0, 0.5), (q, v), rtol=1e-8, atol=1e-10)
    assert pushed.mode[0].endswith("left 3 slips+ + right 3 slips+") and pushed.mode[-1].endswith("right 3 sticks")
    np.testing.assert_allclose(pushed.q[:, -1] - q, np.eye(9)[6] * 0.5 / (0.5 * G), atol=1e-8)


# --- in space ---------------------------------------------------------------------------------------------------------


def test_round_cones():
    """Every one of these random problems has a solution, since A = J J^T and b = J v, and it is found."""
    for seed, most in [*((seed, 1.0) for seed in range(40)), (22, 2.0), (165, 2.0)]:  # polygons leave the last two
        rng = np.random.default_rng(seed)
        m, rank = int(rng.integers(1, 9)), int(rng.integers(3, 13))
        J, mu = rng.normal(size=(3 * m, rank)), rng.uniform(0.05, most, m)
        A, b = J @ J.T, J @ rng.normal(size=rank)
        x = FrictionProblem(A, b, m, tuple(np.repeat(np.arange(m), 2).tolist()), mu).solve()
        assert x is not None
        w, size = A @ x + b, 1.0 + np.abs(x).max()
        P, Q, u, s = x[:m], x[m:].reshape(m, 2), w[:m], w[m:].reshape(m, 2)
        assert P.min() >= 0.0 and u.min() > -1e-7 * size and abs(P @ u) < 1e-6 * size**2
        assert np.all(np.hypot(*Q.T) <= mu * P + 1e-7 * size)
        np.testing.assert_allclose(np.sum(Q * s, axis=1), -mu * P * np.hypot(*s.T), atol=1e-6 * size**2)


def test_a_puck_stops_in_the_direction_in_which_it_slides():
    puck = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, 0.0, -G], n_q=3)
    ice = daedal.hybrid.Contact(lambda t, q: q[2], tangent=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], mu=0.3, name="ice")
    problem = daedal.hybrid.UnilateralProblem(puck, ice)
    sol = daedal.solve(problem, (0.0, 1.0), ([0.0, 0.0, 0.0], [1.2, 1.6, 0.0]), rtol=1e-8, atol=1e-10)
    assert (sol.mode[0], sol.mode[-1]) == ("ice slips", "ice sticks")
    assert sol.events[0].t == pytest.approx(2.0 / (0.3 * G), abs=1e-6)
    np.testing.assert_allclose(sol.q[:2, -1], 2.0 / (0.3 * G) * np.array([0.6, 0.8]), atol=1e-6)
    history = sol.contact("ice", [0.1, 0.9])
    np.testing.assert_allclose(history.friction, [[-0.18 * G, 0.0], [-0.24 * G, 0.0]], atol=1e-5)
    hit = daedal.hybrid.Impact(puck, ice).result(0.0, [0.0, 0.0, 0.0], [1.2, 1.6, -2.0])
    np.testing.assert_allclose(hit.velocities, [1.2 - 0.36, 1.6 - 0.48, 0.0], atol=1e-12)


# --- impacts ----------------------------------------------------------------------------------------------------------


def cradle(n, restitution, order):
    balls = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0] * n, n_q=n)
    gaps = [daedal.hybrid.Contact(lambda t, q, i=i: q[i + 1] - q[i], restitution) for i in range(n - 1)]
    return daedal.hybrid.Impact(balls, gaps, order=order)


def test_newtons_cradle_goes_in_turn():
    """As many balls leave as come. All at once, Newton's law gives -3/5 and 2/5, with the same momentum and energy."""
    rest = np.zeros(5)
    for count in (1, 2, 3):
        v = np.where(np.arange(5) < count, 1.0, 0.0)
        after = cradle(5, 1.0, "in turn")(0.0, rest, v)[1]
        np.testing.assert_allclose(after, v[::-1], atol=1e-12)
    together = cradle(5, 1.0, "together")(0.0, rest, [1.0, 0.0, 0.0, 0.0, 0.0])[1]
    np.testing.assert_allclose(together, [-0.6, 0.4, 0.4, 0.4, 0.4], atol=1e-12)


@given(st.floats(0.0, 1.0), st.lists(st.floats(-3.0, 3.0), min_size=4, max_size=4))
def test_impacts_in_turn_keep_momentum_and_never_create_energy(e, v):
    after = cradle(4, e, "in turn")(0.0, np.zeros(4), v)[1]
    assert after.sum() == pytest.approx(sum(v), abs=1e-10)
    assert after @ after <= np.dot(v, v) + 1e-10
    assert np.diff(after).min() > -1e-9


@settings(max_examples=50)
@given(
    st.tuples(*[st.floats(0.2, 5.0)] * 2),
    st.floats(-1.2, 1.2),
    st.tuples(*[st.floats(-3.0, 3.0)] * 3),
    st.tuples(*[st.floats(0.01, 2.0)] * 2),
    st.tuples(*[st.floats(0.0, 1.0)] * 2),
    st.sampled_from(["newton", "poisson"]),
    st.sampled_from(["together", "in turn"]),
)
def test_energy_never_grows_at_an_impact(masses, angle, v, mu, e, law, order):
    """A rod that hits the floor with one end, and a wall with the other, both rough."""
    c, s = math.cos(angle), math.sin(angle)
    system = daedal.MechanicalSystem([masses[0], masses[0], masses[1]], lambda t, q, v: [0.0] * 3, n_q=3)
    ends = [
        daedal.hybrid.Contact(lambda t, q: q[1] - np.sin(q[2]), e[0], tangent=[1.0, 0.0, s], mu=mu[0]),
        daedal.hybrid.Contact(
            lambda t, q: c - q[0] + np.cos(angle) - np.cos(q[2]), e[1], tangent=[0.0, 1.0, c], mu=mu[1]
        ),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", daedal.errors.EnergyWarning)
        result = daedal.hybrid.Impact(system, ends, law=law, order=order).result(0.0, [c, s, angle], v)
    M = np.array([masses[0], masses[0], masses[1]])
    before, after = 0.5 * M @ np.square(v), 0.5 * M @ result.velocities**2
    assert after <= before * (1.0 + 1e-9) + 1e-12
    assert result.energy_lost == pytest.approx(before - after, abs=1e-8 * (1.0 + before))
    assert result.normal.min() >= 0.0
    assert np.all(np.abs(result.tangential) <= np.array(mu) * result.normal + 1e-8 * (1.0 + result.normal.max()))


def kane():
    """Kane's double pendulum at its impact: two rods of unit length, angles from the vertical; the tip hits a floor."""
    a, b = math.radians(20.0), math.radians(30.0)
    m = 1.0
    cross = 0.5 * m * math.cos(a - b)
    mass = np.array([[4.0 * m / 3.0, cross], [cross, m / 3.0]])
    system = daedal.MechanicalSystem(mass, lambda t, q, v: [0.0, 0.0], n_q=2)
    height = math.cos(a) + math.cos(b)
    return (
        system,
        lambda law, e: daedal.hybrid.Contact(
            lambda t, q: height - np.cos(q[0]) - np.cos(q[1]),
            e,
            tangent=lambda t, q: np.array([np.cos(q[0]), np.cos(q[1])]),
            mu=0.5,
        ),
        np.array([a, b]),
    )


def test_newtons_law_creates_energy_in_kanes_pendulum_and_is_replaced():
    system, tip, q = kane()
    v = np.array([-0.1, -0.2])  # the tip comes down, and slides back
    contact = tip("newton", 0.5)
    with pytest.warns(daedal.errors.EnergyWarning, match="'newton' would have created energy"):
        result = daedal.hybrid.Impact(system, contact).result(0.0, q, v)
    assert result.law.startswith("poisson") and result.energy_lost >= 0.0
    M = system.mass
    assert result.velocities @ M @ result.velocities <= v @ M @ v * (1.0 + 1e-12)


# --- Painleve ---------------------------------------------------------------------------------------------------------


def rod(mu, slip, rate=0.0, angle=1.0):
    """A rod of half length 1 whose lower end slides on the floor."""
    system = daedal.MechanicalSystem([1.0, 1.0, 1.0 / 3.0], lambda t, q, v: [0.0, -G, 0.0], n_q=3)
    tip = daedal.hybrid.Contact(
        lambda t, q: q[1] - np.sin(q[2]), tangent=lambda t, q: np.array([1.0, 0.0, np.sin(q[2])]), mu=mu, name="tip"
    )
    c, s = math.cos(angle), math.sin(angle)
    return daedal.hybrid.UnilateralProblem(system, tip), ([c, s, angle], [slip - s * rate, c * rate, rate])


def test_a_rod_slides_with_the_force_of_the_closed_form():
    for sign in (1.0, -1.0):
        problem, start = rod(0.3, sign)
        sol = daedal.solve(problem, (0.0, 0.05), start, **TIGHT)
        c, s = math.cos(1.0), math.sin(1.0)
        expected = G / (1.0 + 3.0 * c * c + 3.0 * sign * 0.3 * s * c)
        assert sol.contact("tip").normal[0] == pytest.approx(expected, rel=1e-9)


def test_where_no_force_agrees_with_coulombs_law_the_slip_ends_by_an_impact_without_collision():
    problem, start = rod(2.0, -1.0)
    sol = daedal.solve(problem, (0.0, 0.01), start, **TIGHT)
    event = sol.events[0]
    assert (event.name, event.t, event.source, event.target) == ("tip jams", 0.0, "tip slips-", "tip sticks")
    q, after = event.y_after[:3], event.y_after[3:]
    assert after @ [1.0, 0.0, math.sin(q[2])] == pytest.approx(0.0, abs=1e-12)
    assert after @ [0.0, 1.0, -math.cos(q[2])] == pytest.approx(0.0, abs=1e-12)
    M = np.array([1.0, 1.0, 1.0 / 3.0])
    assert M @ after**2 < M @ event.y[3:] ** 2


def test_where_several_forces_agree_with_coulombs_law_the_contact_opens_with_a_warning():
    problem, start = rod(2.0, -1.0, rate=4.0)
    with pytest.warns(daedal.errors.NonUniqueWarning, match="'tip' can open"):
        sol = daedal.solve(problem, (0.0, 0.01), start, **TIGHT)
    assert sol.mode[0] == "free"


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_a_plot_has_a_lane_for_each_contact_and_solutions_pickle(tmp_path):
    import pickle

    import matplotlib.pyplot as plt

    sol = daedal.solve(block(0.5), (0.0, 0.5), ([0.0, 0.3, 0.0], [1.0, 0.0, 0.0]))
    lanes = sol.contact_lanes
    assert [[state for _, _, state in lane] for lane in lanes.values()] == [["slip+", "stick"]] * 2
    figure = sol.plot(["x"])
    assert [label.get_text() for label in figure.axes[-1].get_yticklabels()] == ["left", "right"]
    plt.close(figure)
    copy = pickle.loads(pickle.dumps(sol))
    np.testing.assert_array_equal(copy.q, sol.q)
    np.testing.assert_array_equal(copy.contact("left").normal, sol.contact("left").normal)


# --- how a run begins, and what is refused ----------------------------------------------------------------------------


def test_a_start_names_no_mode():
    pendulum = daedal.MechanicalSystem(
        1.0, lambda t, q, v: [0.0, -G], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    )
    rope = daedal.hybrid.breaking_joint(pendulum, 0, limit=2.0 * G)
    assert daedal.solve(rope, (0.0, 0.1), ([1.0, 0.0], [0.0, 0.0])).mode[0] == "intact"
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-G], n_q=1)
    wall = daedal.hybrid.elastoplastic_contact(
        ball, lambda t, q: q[0], daedal.hybrid.ElastoPlastic(c1=2e3, c2=1e2, c3=4e3, p1=5e-3)
    )
    assert daedal.solve(wall, (0.0, 0.1), ([1.0], [0.0])).mode[0] == "free"
    relay = daedal.hybrid.Filippov(lambda t, x: [-1.0], lambda t, x: [1.0], lambda t, x: x[0], 1)
    assert daedal.solve(relay, (0.0, 0.1), [0.5]).mode[0] == "above"
    rough = daedal.hybrid.Friction(ball, [1.0], mu=0.5, normal=30.0)
    assert daedal.solve(rough, (0.0, 0.1), ([0.0], [0.0])).mode[0] == "stick"
    bounce = daedal.hybrid.HybridProblem({"flight": ball}, start="flight")
    assert daedal.solve(bounce, (0.0, 0.1), ([1.0], [0.0])).mode[0] == "flight"
    with pytest.raises(daedal.InvalidProblemError, match="start 'fligt' is not a mode"):
        daedal.hybrid.HybridProblem({"flight": ball}, start="fligt")


def test_starts_inside_and_unknown_modes_are_refused():
    with pytest.raises(daedal.InconsistentInitialError, match=r"gaps are negative: 'left' by 0\.1"):
        daedal.solve(block(0.5), (0.0, 1.0), ([0.0, 0.2, 0.0], [0.0] * 3))
    with pytest.raises(daedal.InvalidProblemError, match="did you mean 'left sticks'"):
        daedal.solve(block(0.5), (0.0, 1.0), ("left stick", ([0.0, 0.3, 0.0], [0.0] * 3)))
    sol = daedal.solve(block(0.5), (0.0, 0.1), ("left sticks + right sticks", ([0.0, 0.3, 0.0], [0.0] * 3)))
    assert sol.mode[-1] == "left sticks + right sticks"
    with pytest.raises(daedal.InvalidProblemError, match="there is no contact 'front'; known: left, right"):
        sol.contact("front")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mu": 0.3}, "has friction, but no tangent"),
        ({"mu": -0.3, "tangent": [1.0, 0.0]}, "mu of a contact must not be negative"),
        ({"mu": 0.3, "mu_static": 0.2, "tangent": [1.0, 0.0]}, "less than mu"),
        ({"mu": 0.3, "tangent": [0.0, 0.0]}, "not zero"),
        ({"mu": 0.3, "tangent": [[1.0, 0.0]] * 3}, "one vector or two"),
        ({"mu": 0.3, "tangent": [1.0, 0.0], "speed": (1.0, 2.0)}, "one for each tangent"),
    ],
    ids=range(6),
)
def test_contacts_are_checked(options, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.hybrid.Contact(lambda t, q: q[1], **options)


def test_arguments_of_unilateral_are_checked():
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -G], n_q=2)
    floor = daedal.hybrid.Contact(lambda t, q: q[1], tangent=[1.0, 0.0, 0.0], mu=0.3)
    with pytest.raises(daedal.InvalidProblemError, match="tangent has 3 entries; the system has 2 coordinates"):
        daedal.hybrid.UnilateralProblem(ball, floor)
    with pytest.raises(daedal.InvalidProblemError, match="unknown order 'random'"):
        daedal.hybrid.UnilateralProblem(ball, lambda t, q: q[1], order="random")
