"""The machines of the library: published values, closed solutions, equations on paper, and other coordinates."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import null_space

import daedal
from daedal import library
from daedal.multibody import Distance, Free, ground
from daedal.multibody import Model as Machine
from library_models import names_of

MACHINES = names_of(lambda model: "machine" in model.extra and isinstance(model.problem, daedal.MechanicalSystem))
every_machine = pytest.mark.parametrize("name", MACHINES)


def solved(model, t1=None, **options):
    span = model.t_span if t1 is None else (0.0, t1)
    return daedal.solve(model.problem, span, model.initial, **{**model.options, **options})


def rotation(p):
    """The matrix of Euler parameters."""
    a, u = p[0], p[1:]
    return (a * a - u @ u) * np.eye(3) + 2.0 * np.outer(u, u) + 2.0 * a * np.cross(np.eye(3), u)


def parameter_rates(p, w):
    """Rates of Euler parameters for an angular velocity in the axes of the body."""
    return 0.5 * np.array([-p[1:] @ w, *(p[0] * w + np.cross(p[1:], w))])


# --- all of them ------------------------------------------------------------------------------------------------------


@every_machine
def test_texts_are_complete_and_the_start_is_consistent(name):
    model = library.get(name)
    assert model.title and model.source and model.description and model.equations
    assert set(model.plot["variables"]) <= set(model.problem.names)
    assert model.index == (3 if model.problem.n_constraints else 2 if model.problem.n_lambda else 0)
    point = model.problem.at(0.0, *model.initial)
    np.testing.assert_allclose(point.constraint, 0.0, atol=1e-12)
    np.testing.assert_allclose(point.velocity, 0.0, atol=1e-12)


# In absolute coordinates, where machine code takes up to a minute at first
TRACED_LONG = {"bicycle", "bricard", "double_wishbone"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if name in TRACED_LONG else name for name in MACHINES]
)
def test_other_coordinates_give_the_same_motion(name):
    """Positions of all bodies, and the energy, which solutions compute from the bodies one by one."""
    model = library.get(name)
    names = [body.name for body in model.extra["machine"].bodies]
    found = []
    for coordinates in ("relative", "absolute"):
        other = library.get(name, coordinates=coordinates)
        t1 = min(0.05, other.t_span[1])
        sol = daedal.solve(other.problem, (0.0, t1), other.initial, rtol=1e-9, atol=1e-9)
        energies = other.extra["energy"](sol.q, sol.v)
        np.testing.assert_allclose(energies, sol.energy.total, rtol=1e-9, atol=1e-9)
        found.append(np.array([sol.body(body, t1).position for body in names]))
    np.testing.assert_allclose(found[0], found[1], atol=2e-8)


# --- the benchmarks ---------------------------------------------------------------------------------------------------


def test_the_pendulum_keeps_its_energy_better_than_the_benchmark_asks():
    for coordinates in ("relative", "absolute"):
        model = library.point_pendulum(coordinates=coordinates)
        sol = solved(model)
        assert np.max(np.abs(model.extra["energy"](sol.q, sol.v))) < 5e-5 / 50
        np.testing.assert_allclose(sol.y[:, -1], model.reference.y, atol=1e-6)


def test_four_bars_pass_where_they_lie_in_a_line_and_end_at_the_published_point():
    model = library.four_bars()
    sol = solved(model)
    x, y = model.extra["crank_end"](sol.q[:, -1])
    assert (x, y) == (pytest.approx(0.328458099, abs=1e-6), pytest.approx(0.944518543, abs=1e-6))
    rate = sol["A0"][-1], sol.v[model.problem.names.index("A0"), -1]
    velocity = -math.sin(rate[0]) * rate[1], math.cos(rate[0]) * rate[1]
    assert velocity == (pytest.approx(1.423051, abs=3e-6), pytest.approx(-0.494869, abs=3e-6))


@pytest.mark.parametrize(("name", "parameters"), [("four_bars", {"n": 3, "speed": 2.0}), ("point_pendulum", {})])
@pytest.mark.parametrize("coordinates", ["relative", "absolute"])
def test_closed_solutions_satisfy_the_equations(name, parameters, coordinates):
    model = library.get(name, coordinates=coordinates, **parameters)
    exact, h = model.extra["exact"], 1e-5
    np.testing.assert_allclose(exact(0.0), np.concatenate(model.initial), atol=1e-13)
    for t in (0.2, 1.4, 9.1):
        q, v = np.split(exact(t), 2)
        point = model.problem.at(t, q, v)
        np.testing.assert_allclose(point.constraint, 0.0, atol=1e-12)
        rates = (exact(t + h) - exact(t - h)) / (2.0 * h)
        np.testing.assert_allclose(rates, np.concatenate([v, point.acceleration]), atol=1e-6)


@pytest.mark.parametrize("n, coordinates", [(1, "relative"), (1, "absolute"), (3, "relative")])
def test_four_bars_in_odd_number_pass_the_position_in_which_all_bars_are_in_line(n, coordinates):
    model = library.four_bars(n=n, coordinates=coordinates)
    sol = solved(model, rtol=1e-8, atol=1e-8)
    assert any("passed a singular configuration" in note for note in sol.notes)
    np.testing.assert_allclose(sol.y[:, -1], model.extra["exact"](10.0), atol=1e-4)


@pytest.mark.parametrize("rtol", [1e-6, 1e-7, 1.26e-7, 1.26e-8, 6.31e-9, 2e-9])
def test_four_bars_never_fold_without_a_word(rtol):
    """Half-explicit steps creep into the position in which links may fold; some would turn to another branch there."""
    model = library.four_bars(coordinates="absolute")
    try:
        sol = solved(model, method="phem56", rtol=rtol, atol=rtol)
    except daedal.IntegrationError as error:
        assert "singular configuration" in str(error)
        sol = error.solution
    exact = np.array([model.extra["exact"](t) for t in sol.t]).T
    np.testing.assert_allclose(sol.y[:10, :-5], exact[:10, :-5], atol=max(1e-3, 1e4 * rtol))


def test_the_squeezer_of_bodies_has_the_printed_equations():
    built, printed = library.andrews_machine(), library.seven_body()
    order = [("O", "F", "B", "G", "A5", "H", "A7").index(name) for name in built.problem.names]
    generator = np.random.default_rng(5)
    for _ in range(5):
        q, v = np.array(printed.initial[0]) + 0.3 * generator.normal(size=7), 100.0 * generator.normal(size=7)
        ours, theirs = built.problem.at(0.0, q[order], v[order]), printed.problem.at(0.0, q, v)
        np.testing.assert_allclose(ours.mass, theirs.mass[np.ix_(order, order)], rtol=1e-11, atol=1e-17)
        np.testing.assert_allclose(ours.force, theirs.force[order], rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(ours.acceleration, theirs.acceleration[order], rtol=1e-6)


def test_the_squeezer_of_bodies_moves_as_the_printed_one():
    model = library.andrews_machine()
    sol = solved(model, rtol=1e-10, atol=1e-10)
    assert np.max(np.abs(sol.y[:, -1] - model.reference.y) / (1.0 + np.abs(model.reference.y))) < 1e-7


def test_bricard_moves_with_a_redundant_condition_and_keeps_its_energy():
    model = library.bricard()
    sol = solved(model)
    assert any("redundant" in note for note in sol.notes)
    np.testing.assert_allclose(sol.energy.total, sol.energy.total[0], atol=5e-6)
    assert np.ptp(sol.body("rod 3").position[1]) > 0.25
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, atol=1e-6)


def test_the_stiff_governor_ends_where_two_methods_agree():
    model = library.flyball_governor()
    sol = solved(model)
    assert sol.stats.steps < 10_000  # an explicit method takes some 70 000
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, rtol=1e-5)


# --- other machines ---------------------------------------------------------------------------------------------------


def test_the_heavy_top_obeys_the_equations_of_euler():
    """J w' + w x J w = m X x R^T g about the fixed point, with p' = p w/2, by SciPy."""
    model = library.heavy_top()
    arm, mass, gravity = np.array([0.0, 1.0, 0.0]), 15.0, np.array([0.0, 0.0, -9.81])
    J = np.diag([0.234375 + mass, 0.46875, 0.234375 + mass])

    def f(t, y):
        p, w = y[:4], y[4:]
        torque = mass * np.cross(arm, rotation(p).T @ gravity)
        return np.concatenate([parameter_rates(p, w), np.linalg.solve(J, torque - np.cross(w, J @ w))])

    start = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 150.0, -4.61538])
    y = solve_ivp(f, (0.0, 0.5), start, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(np.concatenate([y[:4], parameter_rates(y[:4], y[4:])]), model.reference.y, rtol=2e-8)


def test_the_gyroscope_precesses_steadily():
    model = library.gyroscope(angle=2.0, precession=4.0)
    exact, h = model.extra["exact"], 1e-6
    for t in (0.0, 0.3, 0.9):
        q, v = np.split(exact(t), 2)
        rates = (exact(t + h) - exact(t - h)) / (2.0 * h)
        expected = np.concatenate([v, model.problem.at(t, q, v).acceleration])
        np.testing.assert_allclose(rates, expected, rtol=1e-6, atol=1e-4)
    sol = solved(model)
    heights = sol.body("wheel").position[2]
    np.testing.assert_allclose(heights, 0.15 * math.cos(2.0), atol=1e-7)


def test_the_slider_in_space_is_where_geometry_puts_it():
    sol = solved(library.crank_slider_3d())
    y, z = 0.1 - 0.08 * np.sin(sol["A"]), 0.12 + 0.08 * np.cos(sol["A"])
    np.testing.assert_allclose(0.2 + sol["D"], np.sqrt(0.09 - y**2 - z**2), atol=1e-9)
    np.testing.assert_allclose(sol.energy.total, sol.energy.total[0], atol=1e-7)
    np.testing.assert_allclose(sol.y[:, -1], library.crank_slider_3d().reference.y, atol=1e-4)


def test_the_bicycle_has_the_published_eigenvalues():
    """Weave, capsize and castering to ten digits, and six zeros, of which a double one splits."""
    model = library.bicycle()
    found = model.extra["machine"].linearise(model.extra["straight"]).eigenvalues
    for value in model.extra["eigenvalues"]:
        assert np.min(np.abs(found - value)) < 1e-8
    assert np.sum(np.abs(found) < 1e-4) == found.size - 4 == 6


def test_the_bicycle_rights_itself_after_a_push():
    model = library.bicycle(push=0.01, t1=6.0)
    sol = solved(model)
    lean = 2.0 * sol["ride.p1"]
    assert np.max(np.abs(lean)) < 0.01 and abs(lean[-1]) < 0.2 * np.max(np.abs(lean))
    np.testing.assert_allclose(sol.energy.total, sol.energy.total[0], atol=1e-5)


def test_the_four_bar_with_a_spring_oscillates_as_its_one_angle_does():
    """m(a) a'' + c l'^2 a' + V'(a) = 0 for the small motions; the loop is closed by crossing two circles."""
    stiffness, damping, free, gravity = 150.0, 7.0, 3.0, 9.81

    def pins(a):
        B, D = np.array([np.cos(a), np.sin(a)]), np.array([3.0, 0.0])
        d = D - B
        distance = np.sqrt(d @ d)
        along = (9.0 - 4.0 + distance**2) / (2.0 * distance)
        C = B + (along * d + np.sqrt(9.0 - along**2) * np.array([-d[1], d[0]])) / distance
        return B, C

    def slope(f, a):
        return np.imag(f(a + 1e-30j)) / 1e-30

    def potential(a):
        B, C = pins(a)
        return gravity * (0.5 * B[1] + 1.5 * (B[1] + C[1]) + C[1]) + 0.5 * stiffness * (np.sqrt(C @ C) - free) ** 2

    def inertia(a):
        b, c = (slope(lambda a, k=k: pins(a)[k], a) for k in range(2))
        rods = ((1.0, 0.0 * b, b), (3.0, b, c), (2.0, c, 0.0 * c))  # 2 T of a uniform rod, by the rates of its ends
        return sum(mass / 3.0 * (u @ u + u @ w + w @ w) for mass, u, w in rods)

    model = library.four_bar_with_spring(stiffness=stiffness, damping=damping)
    rest = model.extra["rest"]
    angle = rest.joint("A")
    assert abs(slope(potential, angle)) < 1e-8
    bend = (slope(potential, angle + 1e-5) - slope(potential, angle - 1e-5)) / 2e-5
    rate = slope(lambda a: np.sqrt(pins(a)[1] @ pins(a)[1]), angle)
    expected = np.roots([inertia(angle), damping * rate**2, bend])
    found = model.extra["machine"].linearise(rest).eigenvalues
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(expected), rtol=1e-8)
    default = library.four_bar_with_spring()
    np.testing.assert_allclose(solved(default).y[:, -1], default.reference.y, atol=1e-6)


def test_the_stewart_platform_obeys_the_equations_of_newton_and_euler():
    """m x'' = m g + F and J w' + w x J w = T with the forces of six springs, p' = p w/2, by SciPy."""
    model = library.stewart_platform()
    feet, heads, free = (model.extra[name] for name in ("feet", "heads", "free_length"))
    J, gravity = np.diag([100.0 * (0.36 / 4.0 + 0.01 / 12.0)] * 2 + [18.0]), np.array([0.0, 0.0, -9.81])

    def f(t, y):
        x, p, v, w = np.split(y, [3, 7, 10])
        R = rotation(p)
        legs, speeds = x + heads @ R.T - feet, v + np.cross(w, heads) @ R.T
        lengths = np.linalg.norm(legs, axis=1)
        along = legs / lengths[:, None]
        forces = -(2e4 * (lengths - free) + 200.0 * np.sum(speeds * along, axis=1))[:, None] * along
        torque = np.sum(np.cross(heads, forces @ R), axis=0)
        turning = np.linalg.solve(J, torque - np.cross(w, J @ w))
        return np.concatenate([v, parameter_rates(p, w), gravity + np.sum(forces, axis=0) / 100.0, turning])

    start = np.concatenate([model.initial[0], np.zeros(6)])
    y = solve_ivp(f, (0.0, 1.0), start, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    x, p, v, w = np.split(y, [3, 7, 10])
    np.testing.assert_allclose(np.concatenate([x, p, v, parameter_rates(p, w)]), model.reference.y, atol=1e-9)
    np.testing.assert_allclose(solved(model).y[: y.size + 1, -1], model.reference.y, atol=1e-6)


def test_the_stewart_platform_heaves_as_six_compressed_legs_do():
    """Each leg with the angle b to the vertical gives k cos^2 b + (S/l) sin^2 b for its pull S = -m g / (6 cos b)."""
    model = library.stewart_platform()
    length = model.extra["leg_lengths"]((0.0, 0.0, 1.0), np.eye(3))[0]
    cosine = 1.0 / length
    spring = 6.0 * (2e4 * cosine**2 - 981.0 / (6.0 * cosine * length) * (1.0 - cosine**2))
    expected = np.roots([100.0, 6.0 * 200.0 * cosine**2, spring])
    found = model.extra["machine"].linearise(model.extra["rest"]).eigenvalues
    for value in expected:
        assert np.min(np.abs(found - value)) < 1e-6


def test_rods_of_the_lengths_that_inverse_kinematics_gives_put_the_platform_there():
    model = library.stewart_platform()
    position, p = np.array([0.1, -0.05, 1.1]), np.array([0.98, 0.1, -0.05, 0.0])
    p /= np.linalg.norm(p)
    lengths = model.extra["leg_lengths"](position, rotation(p))
    platform = model.extra["machine"].body("platform")
    rods = [
        Distance(f"rod {k}", ground.at(foot), platform.at(head), length=length)
        for k, (foot, head, length) in enumerate(zip(model.extra["feet"], model.extra["heads"], lengths))
    ]
    start = Machine(Free("pose", ground, platform), *rods).assemble()
    np.testing.assert_allclose(start.position("platform"), position, atol=1e-9)
    np.testing.assert_allclose(start.orientation("platform"), rotation(p), atol=1e-9)


def test_the_gripper_moves_as_its_three_angles_do():
    """Lagrange's equations for shoulder, elbow and cranks, with the fingers parallel to the forearm, by SciPy."""
    model = library.robot_gripper()

    def places(s):
        """For each body (mass, moment, centre, angle), and the tips of the fingers."""
        a, b = s[0], s[0] + s[1]
        upper, fore = (np.array([np.cos(x), np.sin(x)]) for x in (a, b))
        across = np.array([-fore[1], fore[0]])
        bodies, tips = [(2.0, 0.25 / 6.0, 0.25 * upper, a), (1.0, 0.16 / 12.0, 0.5 * upper + 0.2 * fore, b)], []
        for sign in (1.0, -1.0):
            crank = 0.08 * (np.cos(s[2]) * fore + sign * np.sin(s[2]) * across)
            hinge = 0.5 * upper + 0.4 * fore + sign * 0.02 * across
            for k in range(2):
                bodies.append((0.05, 0.05 * 0.08**2 / 12.0, hinge - 0.03 * k * fore + 0.5 * crank, b + sign * s[2]))
            finger = hinge + crank - 0.03 * fore
            bodies.append((0.1, 0.1 * 0.09**2 / 12.0, finger + 0.045 * fore, b))
            tips.append(finger + 0.09 * fore)
        return bodies, tips

    def mass(s):
        total, step = np.zeros((3, 3)), 1e-30j
        moved = [places(s + step * np.eye(3)[k])[0] for k in range(3)]
        for i, (m, moment, _, _) in enumerate(moved[0]):
            velocity = np.array([np.imag(moved[k][i][2]) / 1e-30 for k in range(3)])
            turning = np.array([np.imag(moved[k][i][3]) / 1e-30 for k in range(3)])
            total += m * velocity @ velocity.T + moment * np.outer(turning, turning)
        return total

    def opening(s):
        d = places(s)[1][0] - places(s)[1][1]
        return np.sqrt(d @ d)

    def potential(s):
        weight = sum(9.81 * m * center[1] for m, _, center, _ in places(s)[0])
        springs = 100.0 * (s[0] - 1.2) ** 2 + 50.0 * (s[1] + 0.8) ** 2 + 100.0 * (opening(s) - 0.12) ** 2
        return weight + 0.5 * springs

    def gradient(f, s):
        return np.array([np.imag(f(s + 1e-30j * e)) / 1e-30 for e in np.eye(3)])

    def motion(t, y):
        s, u = y[:3], y[3:]
        h = 1e-5
        dM = np.array([(mass(s + h * e) - mass(s - h * e)) / (2.0 * h) for e in np.eye(3)])
        stretch = gradient(opening, s)
        braking = np.array([2.0 * u[0], u[1], 0.0]) + 2.0 * stretch * (stretch @ u)
        inertial = np.einsum("kij,k,j->i", dM, u, u) - 0.5 * np.einsum("kij,i,j->k", dM, u, u)
        return np.concatenate([u, np.linalg.solve(mass(s), -gradient(potential, s) - braking - inertial)])

    y = solve_ivp(motion, (0.0, 0.1), [1.0, -0.5, 0.8, 0.0, 0.0, 0.0], rtol=1e-8, atol=1e-10, method="DOP853").y[:, -1]
    sol = solved(model, t1=0.1)
    for k, joint in enumerate(("shoulder", "elbow", "left hinge 1")):
        row = model.problem.names.index(joint)
        assert (sol.q[row, -1], sol.v[row, -1]) == (pytest.approx(y[k], abs=1e-7), pytest.approx(y[3 + k], abs=1e-6))
    np.testing.assert_allclose(solved(model).y[:, -1], model.reference.y, atol=1e-7)


@pytest.mark.parametrize("n", [6, 30])  # straight-line code, and compiled loops
def test_the_bridge_hangs_in_balance_with_and_without_its_load(n):
    """By virtual work: no motion that the supports allow does work, and the load moves by y of the middle."""
    model = library.link_bridge(n=n)
    start, rest = model.initial[0], model.extra["rest"].q
    angles = np.cumsum(start)
    assert np.sum(np.sin(angles)) == pytest.approx(0.0, abs=1e-12)
    lever = 12.0 / n * np.where(np.arange(n) < n // 2, np.cos(angles), 0.0)
    for q, load in ((rest, 0.0), (start, -500.0 * np.cumsum(lever[::-1])[::-1])):
        point = model.problem.at(0.0, q, np.zeros(n))
        np.testing.assert_allclose(point.constraint, 0.0, atol=1e-11)
        allowed = null_space(point.jacobian)
        np.testing.assert_allclose(allowed.T @ (point.force + load), 0.0, atol=1e-5)
        assert np.max(np.abs(allowed.T @ point.force)) > 50.0 or q is rest


def test_the_bridge_swings_without_its_load():
    model = library.link_bridge()
    sol = solved(model)
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, atol=2e-6)
    np.testing.assert_allclose(sol.energy.total, sol.energy.total[0], atol=1e-4)
    np.testing.assert_allclose(sol.body("link 3").position[0] + sol.body("link 4").position[0], 10.0, atol=1e-6)
    large = solved(library.link_bridge(n=30, t1=0.1))
    np.testing.assert_allclose(large.energy.total, large.energy.total[0], atol=1e-4)


def test_a_bridge_with_an_odd_number_of_links_has_no_joint_in_the_middle():
    with pytest.raises(daedal.InvalidProblemError, match="n=5 must be even"):
        library.link_bridge(n=5)


def test_the_falling_chain_comes_to_rest_below_its_centre_of_mass():
    """Rigid until the first impact, each impact takes energy, and a smooth floor leaves the centre where it is."""
    model = library.falling_chain()
    sol = solved(model)
    assert sol.events[0].t == pytest.approx(math.sqrt(2.0 * 0.35 / 9.81), abs=1e-9)
    assert sol.events[0].name == "floor 3 closes" and len(sol.events) >= 4
    assert sol.mode[-1] == "floor 1 + floor 2 + floor 3 + floor 4"
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, atol=1e-6)
    x, turned = sol.y[0], np.cumsum(sol.y[2:5], axis=0)
    reach = 0.5 * np.cos(turned)
    center = x + np.mean(np.cumsum(reach, axis=0) - 0.5 * reach, axis=0)
    np.testing.assert_allclose(center, center[0], atol=1e-6)
    heights = np.vstack([sol.y[1], sol.y[1] + np.cumsum(0.5 * np.sin(turned), axis=0)])
    assert np.min(heights) > -1e-6


@pytest.mark.parametrize("height", [1.0, *(pytest.param(height, marks=pytest.mark.slow) for height in (0.5, 1.5, 2.0))])
def test_the_falling_chain_goes_on_behind_impacts_that_pile_up(height):
    """The ends of the second link hit the floor in turn, faster and faster; then both are at rest on it."""
    model = library.falling_chain(height=height)
    first = model.extra["first_impact"]
    sol = solved(model, t1=first + 0.03)
    names = [event.name for event in sol.events]
    assert names[:4] == ["floor 3 closes", "floor 2 closes", "floor 3 closes", "floor 2 closes"]
    assert 0.005 < sol.events[3].t - first < 0.02  # all of them, long before the end
    turned = np.cumsum(sol.y[2:5], axis=0)
    heights = np.vstack([sol.y[1], sol.y[1] + np.cumsum(0.5 * np.sin(turned), axis=0)])
    assert np.min(heights) > -1e-7
    reach = 0.5 * np.cos(turned)
    center = sol.y[0] + np.mean(np.cumsum(reach, axis=0) - 0.5 * reach, axis=0)
    np.testing.assert_allclose(center, center[0], atol=1e-6)
