"""Rigid and elasto-plastic impact, and joints that break."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daedal
from daedal.hybrid.models.complementarity import least_impulses
from daedal.hybrid.models.impact import complementary

G = 9.81


def pendulum(**options):
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [0.0, -G],
        lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=2,
        n_constraints=1,
        names=["x", "y"],
        **options,
    )


def double_pendulum():
    """Two point masses, 2 kg and 1 kg, on rods of unit length."""
    return daedal.MechanicalSystem(
        [2.0, 2.0, 1.0, 1.0],
        lambda t, q, v: [0.0, -2.0 * G, 0.0, -G],
        lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0, (q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 1.0],
        n_q=4,
        n_constraints=2,
    )


def energy(q, v):
    return np.array([1.0, 1.0, 0.5, 0.5]) @ v**2 + G * (2.0 * q[1] + q[3])


def hanging(a, b, rate_a, rate_b):
    """Position and velocity of the double pendulum at angles from the vertical."""
    q = np.array([math.sin(a), -math.cos(a), math.sin(a) + math.sin(b), -math.cos(a) - math.cos(b)])
    first = rate_a * np.array([math.cos(a), math.sin(a)])
    return q, np.concatenate([first, first + rate_b * np.array([math.cos(b), math.sin(b)])])


# --- the laws ---------------------------------------------------------------------------------------------------------


angles = st.floats(-1.2, 1.2)
rates = st.floats(-5.0, 5.0)


@given(angles, angles, rates, rates, st.sampled_from(["newton", "poisson"]), st.floats(0.0, 1.0))
def test_an_impact_with_constraints_keeps_what_it_must(a, b, rate_a, rate_b, law, e):
    q, v = hanging(a, b, rate_a, rate_b)

    def wall(t, x):  # touched by the lower mass
        return x[2] - q[2]

    system = double_pendulum()
    hit = daedal.hybrid.Impact(system, wall, restitution=e, law=law)
    same, after = hit(0.0, q, v)
    before = system.at(0.0, q, v)
    np.testing.assert_array_equal(same, q)
    assert np.abs(system.at(0.0, q, after).velocity).max() < 1e-12 * (1.0 + np.abs(v).max())
    if v[2] >= 0.0:
        np.testing.assert_allclose(after, v, atol=1e-12 * (1.0 + np.abs(v).max()))
        return
    assert after[2] == pytest.approx(-e * v[2], abs=1e-11 * (1.0 + np.abs(v).max()))
    lost = energy(q, v) - energy(q, after)
    assert lost >= -1e-10 * (1.0 + v @ v)
    if e == 1.0:
        assert lost <= 1e-10 * (1.0 + v @ v)
    # M (v+ - v-) lies in the span of the gradients: momentum along the surfaces is kept.
    normals = np.vstack([before.jacobian, [0.0, 0.0, 1.0, 0.0]])
    jump = before.mass @ (after - v)
    rest = jump - normals.T @ np.linalg.lstsq(normals.T, jump, rcond=None)[0]
    assert np.abs(rest).max() < 1e-11 * (1.0 + np.abs(v).max())
    assert hit.impulses(0.0, q, v)[0] > 0.0


def test_an_elastic_impact_conserves_energy_to_round_off():
    q, v = hanging(0.3, -0.7, 2.0, -3.0)
    _, after = daedal.hybrid.Impact(double_pendulum(), lambda t, x: q[2] - x[2], restitution=1.0)(0.0, q, np.abs(v))
    projected = daedal.hybrid.Impact(double_pendulum(), lambda t, x: 1.0 + x[2], restitution=1.0)(0.0, q, np.abs(v))[1]
    assert energy(q, after) == pytest.approx(energy(q, projected), rel=1e-13)


@given(st.floats(0.0, 1.0), st.floats(0.1, 10.0))
def test_newton_and_poisson_agree_for_one_contact(e, speed):
    v = [-speed, 0.0]
    newton, poisson = (
        daedal.hybrid.Impact(pendulum(), lambda t, q: q[0], e, law=law)(0.0, [0.0, -1.0], v)[1]
        for law in ("newton", "poisson")
    )
    np.testing.assert_allclose(newton, poisson, atol=1e-13 * speed)
    np.testing.assert_allclose(newton, [e * speed, 0.0], atol=1e-13 * speed)


def test_newtons_cradle_shows_where_the_laws_differ():
    """A ball hits two that touch. Solved together, Newton's law with e = 1 shares the impulse among the contacts."""
    balls = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, 0.0, 0.0], n_q=3)
    contacts = [lambda t, q: q[1] - q[0], lambda t, q: q[2] - q[1]]
    v = [1.0, 0.0, 0.0]
    newton = daedal.hybrid.Impact(balls, contacts, 1.0)(0.0, [0.0, 0.0, 0.0], v)[1]
    poisson = daedal.hybrid.Impact(balls, contacts, 1.0, law="poisson")(0.0, [0.0, 0.0, 0.0], v)[1]
    np.testing.assert_allclose(newton, [-1 / 3, 2 / 3, 2 / 3], atol=1e-12)
    np.testing.assert_allclose(poisson, [-1 / 3, 2 / 3, 2 / 3], atol=1e-12)
    for after in (newton, poisson):
        assert after.sum() == pytest.approx(1.0) and after @ after == pytest.approx(1.0)
    plastic = daedal.hybrid.Impact(balls, contacts, 0.0)(0.0, [0.0, 0.0, 0.0], v)[1]
    np.testing.assert_allclose(plastic, [1 / 3] * 3, atol=1e-12)


def test_the_laws_differ_for_a_rod_whose_ends_differ():
    """A rod rests on its left end and hits with the right one; computed by hand from A = [[4, -2], [-2, 4]]."""
    rod = daedal.MechanicalSystem([1.0, 1.0 / 3.0], lambda t, q, v: [-G, 0.0], n_q=2)  # height, angle; ends at -1, 1
    ends = [daedal.hybrid.Contact(lambda t, q: q[0] - q[1], 1.0), daedal.hybrid.Contact(lambda t, q: q[0] + q[1], 0.5)]
    for law, rates in (("newton", [0.0, 1.0]), ("poisson", [2 / 3, 2 / 3])):
        height, angle = daedal.hybrid.Impact(rod, ends, law=law)(0.0, [0.0, 0.0], [-1.0, -1.0])[1]
        np.testing.assert_allclose([height - angle, height + angle], rates, atol=1e-11)


def test_a_moving_wall_gives_its_velocity():
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0], n_q=1)
    hit = daedal.hybrid.Impact(ball, lambda t, q: q[0] - 3.0 * t, restitution=0.5)
    assert hit(1.0, [3.0], [-1.0])[1][0] == pytest.approx(3.0 + 0.5 * 4.0, rel=1e-9)


def test_contacts_that_do_not_touch_take_no_part():
    balls = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, 0.0, 0.0], n_q=3)
    hit = daedal.hybrid.Impact(balls, [lambda t, q: q[1] - q[0], lambda t, q: q[2] - q[1]], 1.0)
    np.testing.assert_allclose(hit(0.0, [0.0, 0.0, 0.1], [1.0, 0.0, 0.0])[1], [0.0, 1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("ratio", [1.0, 1e6, 1e12])
def test_a_light_ball_on_a_heavy_one(ratio):
    # Two balls fall with speed 1, elastic: the heavy one turns round, then the light one leaves with almost 3.
    system = daedal.MechanicalSystem([1.0, ratio], lambda t, q, v: [-1.0, -ratio], n_q=2)
    hit = daedal.hybrid.Impact(system, [lambda t, q: q[1], lambda t, q: q[0] - q[1]], 1.0)
    np.testing.assert_allclose(hit(0.0, [1.0, 0.0], [-1.0, -1.0])[1], [-1.0, 1.0], rtol=1e-9)
    v = hit(0.0, [0.5, 0.5], [-1.0, 1.0])[1]
    np.testing.assert_allclose(v, [(3.0 * ratio - 1.0) / (ratio + 1.0), (ratio - 3.0) / (ratio + 1.0)], rtol=1e-9)


@pytest.mark.parametrize("ratio", [1.0, 1e6, 1e12])
def test_a_light_ball_on_a_heavy_one_of_two_parts(ratio):
    """The parts are held together by a constraint, which has the masses in its equations."""
    system = daedal.MechanicalSystem(
        [1.0, 0.25 * ratio, 0.75 * ratio],
        lambda t, q, v: [0.0, 0.0, 0.0],
        lambda t, q: [q[1] - q[2]],
        n_q=3,
        n_constraints=1,
    )
    hit = daedal.hybrid.Impact(system, lambda t, q: q[0] - q[1], 1.0)
    light, heavy = (3.0 * ratio - 1.0) / (ratio + 1.0), (ratio - 3.0) / (ratio + 1.0)
    v = hit(0.0, [0.5, 0.5, 0.5], [-1.0, 1.0, 1.0])[1]
    np.testing.assert_allclose(v, [light, heavy, heavy], rtol=1e-9)


@pytest.mark.parametrize("ratio", [1.0, 1e6, 1e12])
def test_a_light_ball_and_a_heavy_one_hit_the_floor_together(ratio):
    balls = daedal.MechanicalSystem([1.0, ratio], lambda t, q, v: [-1.0, -ratio], n_q=2)
    hit = daedal.hybrid.Impact(balls, [lambda t, q: q[0], lambda t, q: q[1]], 0.5)
    np.testing.assert_allclose(hit(0.0, [0.0, 0.0], [-1.0, -2.0])[1], [0.5, 1.0], rtol=1e-9)


def test_impulses_of_dependent_contacts_do_not_lose_the_heavy_bodies():
    """Two contacts of a light body that share an impulse, and one of a body that is 1e12 times heavier."""
    compliance = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1e-12]])
    np.testing.assert_allclose(least_impulses(compliance, np.array([2.0, 2.0, 3e-12])), [1.0, 1.0, 3.0], rtol=1e-9)


def test_dependent_contacts_and_redundant_constraints():
    """Three supports below a rod, and a constraint that is given twice."""
    rod = daedal.MechanicalSystem(
        1.0, lambda t, q, v: [0.0, -G, 0.0], lambda t, q: [q[0], 2.0 * q[0]], n_q=3, n_constraints=2
    )
    supports = [lambda t, q, s=s: q[1] + s * q[2] for s in (-1.0, 0.0, 1.0)]
    hit = daedal.hybrid.Impact(rod, supports, 0.5)
    np.testing.assert_allclose(hit(0.0, np.zeros(3), [0.0, -2.0, 0.0])[1], [0.0, 1.0, 0.0], atol=1e-10)
    assert hit.impulses(0.0, np.zeros(3), [0.0, -2.0, 0.0]).sum() == pytest.approx(3.0)


matrices = st.integers(0, 10**6)


@given(matrices, st.integers(1, 5), st.integers(1, 5))
def test_complementarity(seed, size, rank):
    random = np.random.default_rng(seed)
    factor = random.standard_normal((size, rank))
    A, b = factor @ factor.T, factor @ random.standard_normal(rank)
    x = complementary(A, b)
    w = A @ x + b
    scale = np.abs(b).max()
    assert (x >= 0.0).all() and (w >= -1e-8 * scale).all()
    assert abs(x @ w) <= 1e-7 * scale * (1.0 + np.abs(x).max())


def test_compiled_functions_and_parameters():
    import numba

    @numba.njit
    def circle(t, q, p):
        g = np.empty(1, q.dtype)
        g[0] = q[0] ** 2 + q[1] ** 2 - p[0]
        return g

    weight = numba.njit(lambda t, q, v, p: np.array([0.0, -p[1]]))
    system = daedal.MechanicalSystem(1.0, weight, circle, n_q=2, n_constraints=1, params=[1.0, G])
    gaps = [
        numba.njit(lambda t, q: q[0]),
        numba.njit(lambda t, q, p: q[0] * p[0]),
        lambda t, q: q[0],
        lambda t, q, p: q[0] * p[0],
    ]
    for gap in gaps:
        hit = daedal.hybrid.Impact(system, [gap, lambda t, q: 2.0 + q[1]], 0.5)
        np.testing.assert_allclose(hit(0.0, [0.0, -1.0], [-4.0, 0.0])[1], [2.0, 0.0], atol=1e-9)


# --- in a run ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("e", [0.5, 0.8])
def test_bouncing_ball_against_the_closed_form(e):
    model = daedal.library.bouncing_ball(restitution=e, t1=5.0)
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-12, atol=1e-14)
    times = sol.events.named("floor closes").t
    assert times.size > 20
    assert np.abs(times - model.extra["impact_times"](times.size)).max() < 1e-10
    assert sol.events[-1].kind == "zeno" and abs(sol.events[-1].t - model.extra["rest_time"]) < 1e-10
    assert sol.mode[-1] == "floor" and sol.q[0, -1] == 0.0 and sol.v[0, -1] == 0.0


def test_an_accumulation_without_a_mode_of_rest_is_reported():
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-G], n_q=1)
    hit = daedal.hybrid.Impact(ball, lambda t, q: q[0], 0.5)
    problem = daedal.hybrid.HybridProblem(
        {"flight": ball},
        [daedal.hybrid.Transition("flight", "flight", lambda t, q, v: q[0], -1, reset=hit, name="impact")],
    )
    sol = daedal.solve(problem, (0.0, 5.0), ("flight", ([1.0], [0.0])), rtol=1e-8)
    assert sol.status == "zeno" and not sol.success
    assert f"{3.0 * math.sqrt(2.0 / G):.10g}"[:9] in sol.message


def test_ball_on_a_moving_table():
    """The table rises with 2 m/s: in its frame it is a bouncing ball, with the same times."""
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-G], n_q=1)
    problem = daedal.hybrid.UnilateralProblem(
        ball, daedal.hybrid.Contact(lambda t, q: q[0] - 2.0 * t, restitution=0.6, name="table")
    )
    sol = daedal.solve(problem, (0.0, 3.0), ("free", ([1.0], [2.0])), rtol=1e-11, atol=1e-12)
    exact = daedal.library.bouncing_ball(restitution=0.6).extra
    np.testing.assert_allclose(sol.events.t[:12], exact["impact_times"](12), atol=1e-9)
    assert sol.mode[-1] == "table"
    assert sol.q[0, -1] == pytest.approx(6.0, abs=1e-9) and sol.v[0, -1] == pytest.approx(2.0, abs=1e-9)


@pytest.mark.parametrize("method", ["auto", "dassl", "phem56"])
def test_double_pendulum_that_hits_a_wall_keeps_its_energy(method):
    system, wall = double_pendulum(), daedal.hybrid.Contact(lambda t, q: q[2] + 0.3, restitution=1.0, name="wall")
    q, v = hanging(1.2, 0.9, 0.0, 0.0)
    problem = daedal.hybrid.UnilateralProblem(system, wall)
    sol = daedal.solve(problem, (0.0, 3.0), ("free", (q, v)), rtol=1e-9, atol=1e-11, method=method)
    hits = sol.events.named("wall closes")
    assert len(hits) >= 2
    for hit in hits:
        before, after = (energy(y[:4], y[4:]) for y in (hit.y, hit.y_after))
        assert after == pytest.approx(before, rel=1e-9)
        assert np.abs(system.at(hit.t, hit.y_after[:4], hit.y_after[4:]).velocity).max() < 1e-9
        assert hit.y_after[6] == pytest.approx(-hit.y[6], rel=1e-7)
    total = [energy(a, b) for a, b in zip(sol.q.T, sol.v.T, strict=True)]
    assert np.ptp(total) < 1e-6
    assert sol.q[2].min() > -0.3 - 1e-8


# --- elasto-plastic impact --------------------------------------------------------------------------------------------


def test_crash_pendulum_has_the_figures_of_the_thesis_problem():
    model = daedal.library.crash_pendulum()
    apex = daedal.Event(lambda t, q, v: v[2], direction=-1, name="apex")
    sol = daedal.solve(model.problem, model.t_span, model.initial, events=apex, rtol=1e-10, atol=1e-11)
    for name, t in model.extra["events"].items():
        assert sol.events.named(name)[0].t == pytest.approx(t, abs=1e-6)
    touched, turned, left = (sol.events.named(name)[0] for name in ("touches", "turns back", "separates"))
    assert touched.y[6] == pytest.approx(-4.5668261, abs=1e-6)
    assert turned.y_after[3] == pytest.approx(model.extra["p_max"], abs=1e-6)
    assert turned.y[2] == pytest.approx(-0.0478344, abs=1e-6)
    assert -2 * 0.9 * math.sin(left.y[2]) == pytest.approx(model.extra["p_f"], abs=1e-6)
    assert left.y[6] == pytest.approx(0.5078, abs=1e-4)
    top = sol.events.named("apex")[0]
    assert (top.t, top.y[2]) == pytest.approx(model.extra["apex"], abs=1e-6)


def test_loading_again_goes_up_the_line_of_unloading():
    """The second, weaker blow stays below p_max: no energy is lost, and nothing yields again."""
    model = daedal.library.crash_pendulum(t1=2.2)
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    names = [event.name for event in sol.events]
    assert names == ["touches", "yields", "turns back", "separates", "touches", "turns back again", "separates"]
    first, second, last = (event for event in sol.events if event.name in ("separates",) or event.target == "reload")
    assert second.y[2] == pytest.approx(first.y[2], abs=1e-7)
    assert last.y[6] == pytest.approx(-second.y[6], rel=1e-5)


def test_a_harder_blow_yields_again():
    law = daedal.hybrid.ElastoPlastic(c1=2e3, c2=1e2, c3=4e3, p1=5e-3)
    block = daedal.MechanicalSystem(1.0, lambda t, q, v: [-20.0 * t], n_q=1)  # pressed harder and harder
    problem = daedal.hybrid.elastoplastic_contact(block, lambda t, q: q[0], law)
    sol = daedal.solve(problem, (0.0, 2.0), ("free", ([0.1, 0.0], [-0.5, 0.0])), rtol=1e-9, atol=1e-11)
    assert "yields again" in [event.name for event in sol.events]
    depths = [event.y_after[1] for event in sol.events if event.name == "turns back"]
    assert len(depths) >= 2 and np.all(np.diff(depths) > 0.0)


def test_a_soft_touch_leaves_no_dent():
    law = daedal.hybrid.ElastoPlastic(c1=1e3, c2=1e2, c3=2e3, p1=1.0)
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0], n_q=1)
    problem = daedal.hybrid.elastoplastic_contact(ball, lambda t, q: q[0], law)
    sol = daedal.solve(problem, (0.0, 2.0), ("free", ([1.0, 0.0], [-1.0, 0.0])), rtol=1e-10, atol=1e-12)
    assert [event.name for event in sol.events] == ["touches", "leaves"]
    assert sol.events[1].t == pytest.approx(1.0 + math.pi / math.sqrt(1e3), abs=1e-9)  # half an oscillation
    assert sol.v[0, -1] == pytest.approx(1.0, abs=1e-8) and sol.q[1, -1] == 0.0


# --- breaking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [0.5, 2.0, 2.9])
def test_a_rope_breaks_at_the_angle_of_the_closed_form(strength):
    model = daedal.library.breaking_rope(strength)
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-10, atol=1e-12)
    event = sol.events[0]
    assert event.y[1] == pytest.approx(model.extra["breaking_height"], abs=1e-9)
    np.testing.assert_array_equal(event.y_after, event.y)
    assert sol.mode[-1] == "broken"
    assert sol.q[0, -1] == pytest.approx(event.y[0] + event.y[2] * (1.0 - event.t), abs=1e-9)


def test_a_rope_that_is_strong_enough_holds():
    model = daedal.library.breaking_rope(3.01, t1=3.0)
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    assert len(sol.events) == 0 and sol.mode[-1] == "intact"


@pytest.mark.parametrize("load", ["multiplier", lambda t, q, v, lam: 2.0 * lam[0]], ids=["multiplier", "function"])
def test_other_measures_of_the_load(load):
    limit = G if load == "multiplier" else 2.0 * G  # the gradient of the constraint has the length 2
    problem = daedal.hybrid.breaking_joint(pendulum(), [0], limit, load=load)
    sol = daedal.solve(problem, (0.0, 1.0), ("intact", ([1.0, 0.0], [0.0, 0.0])), rtol=1e-10, atol=1e-12)
    assert sol.events[0].y[1] == pytest.approx(-2.0 / 3.0, abs=1e-9)


def test_the_other_joints_hold():
    system = double_pendulum().replaced(constraint_names=["upper", "lower"])
    q, v = hanging(1.2, 0.9, 0.0, 0.0)
    sol = daedal.solve(
        daedal.hybrid.breaking_joint(system, "lower", 1.5 * G), (0.0, 1.0), ("intact", (q, v)), rtol=1e-8
    )
    assert sol.mode[-1] == "broken"
    assert sol.q[0, -1] ** 2 + sol.q[1, -1] ** 2 == pytest.approx(1.0, abs=1e-9)
    assert math.hypot(sol.q[2, -1] - sol.q[0, -1], sol.q[3, -1] - sol.q[1, -1]) > 1.01


def test_compiled_systems_break_too():
    model = daedal.library.planar_pendulum().problem.compiled("numba")
    assert daedal.hybrid.breaking_joint(model, 0, 1.0).modes["broken"].problem.n_constraints == 0
    import numba

    rows = numba.njit(lambda t, q: np.array([q[0], q[1]]))
    system = daedal.MechanicalSystem(1.0, numba.njit(lambda t, q, v: np.zeros(3)), rows, n_q=3, n_constraints=2)
    kept = daedal.hybrid.breaking_joint(system, 0, 1.0).modes["broken"].problem
    np.testing.assert_array_equal(kept.constraint(0.0, np.array([1.0, 2.0, 3.0])), [2.0])


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: daedal.hybrid.Contact(lambda t, q: q[0], restitution=-0.1), "between 0 and 1, got -0.1"),
        (lambda: daedal.hybrid.Contact(lambda t, q: q[0], restitution=1.2), "create energy"),
        (lambda: daedal.hybrid.Contact(lambda t, q: q[0], restitution="much"), "restitution must be a number"),
        (lambda: daedal.hybrid.Contact(3.0), "gap"),
        (lambda: daedal.hybrid.Contact(lambda t, q: q[0], name=""), "name of a contact"),
        (lambda: daedal.hybrid.Impact(pendulum(), lambda t, q: q[0], 1.5), "between 0 and 1"),
        (lambda: daedal.hybrid.Impact(pendulum(), lambda t, q: q[0], 0.5, law="hertz"), "unknown law 'hertz'"),
        (lambda: daedal.hybrid.Impact(pendulum(), []), "contacts is empty"),
        (lambda: daedal.hybrid.Impact(pendulum(), [1.0]), r"contacts\[0\] must be a Contact"),
        (lambda: daedal.hybrid.Impact(3, lambda t, q: q[0]), "must be a MechanicalSystem"),
        (lambda: daedal.hybrid.Impact(pendulum(), lambda t, q: q[0])(0.0, [1.0], [1.0]), "q"),
        (lambda: daedal.hybrid.breaking_joint(pendulum(), 1, 1.0), "1 is not a constraint; the system has 1"),
        (lambda: daedal.hybrid.breaking_joint(pendulum(), -1, 1.0), "-1 is not a constraint"),
        (lambda: daedal.hybrid.breaking_joint(pendulum(), "rope", 1.0), "'rope' is not a constraint"),
        (lambda: daedal.hybrid.breaking_joint(pendulum(), [0, 0], 1.0), "given twice"),
        (lambda: daedal.hybrid.breaking_joint(pendulum(), [], 1.0), "rows is empty"),
        (lambda: daedal.hybrid.breaking_joint(pendulum(), 0, -1.0), "limit"),
        (lambda: daedal.hybrid.breaking_joint(pendulum(), 0, 1.0, load="stress"), "load must be a function or one of"),
        (lambda: daedal.hybrid.breaking_joint(None, 0, 1.0), "must be a MechanicalSystem"),
        (lambda: daedal.hybrid.ElastoPlastic(1.0, 2.0, 3.0, 1.0), "c3 >= c1 >= c2"),
        (lambda: daedal.hybrid.ElastoPlastic(1.0, 0.5, -3.0, 1.0), "c3"),
        (
            lambda: daedal.hybrid.elastoplastic_contact(pendulum(), lambda t, q: q[0], None),
            "law must be an ElastoPlastic",
        ),
    ],
    ids=range(22),
)
def test_bad_input(call, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        call()


def test_a_gap_that_fails_is_the_users_own_error():
    def gap(t, q):
        raise RuntimeError("no gap today")

    with pytest.raises(RuntimeError, match="no gap today"):
        daedal.hybrid.Impact(pendulum(), gap, 0.5)(0.0, [0.0, -1.0], [-1.0, 0.0])
