"""Textbook models from SymPy, held against SciPy on their minimal form."""

import numpy as np
import pytest
import sympy
from scipy.integrate import solve_ivp
from scipy.linalg import eigvals
from sympy.physics.mechanics import (
    KanesMethod,
    LagrangesMethod,
    Particle,
    PinJoint,
    Point,
    ReferenceFrame,
    RigidBody,
    System,
    dot,
    dynamicsymbols,
    inertia,
)
from sympy.physics.mechanics.models import n_link_pendulum_on_cart

import daedal

t = dynamicsymbols._t
m, g, r, b = sympy.symbols("m g r b")
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def by_scipy(function, span, start):
    return solve_ivp(function, span, start, method="DOP853", **TIGHT).y[:, -1]


def minimal_form(kane, values):
    """y' = full mass matrix^-1 forcing, evaluated by SymPy's own code."""
    unknowns = [*kane.q, *kane.u]
    known = [value for _, value in values.items()]
    matrices = sympy.lambdify((t, unknowns, list(values)), [kane.mass_matrix_full, kane.forcing_full])

    def slope(time, y):
        matrix, forcing = matrices(time, y, known)
        return np.linalg.solve(matrix, np.ravel(forcing))

    return slope


@pytest.mark.parametrize("n", [1, 3])
def test_pendulum_of_n_links_on_a_cart(n):
    kane = n_link_pendulum_on_cart(n, cart_force=False)
    symbols = sorted(kane.mass_matrix_full.free_symbols | kane.forcing_full.free_symbols - {t}, key=str)
    values = {x: 9.81 if str(x) == "g" else 1.0 + 0.1 * k for k, x in enumerate(x for x in symbols if x != t)}
    problem = daedal.from_sympy(kane)
    assert problem.names == tuple(f"{letter}{k}" for letter in "qu" for k in range(n + 1))
    start = {x: 0.2 + 0.3 * k for k, x in enumerate(kane.q)} | {x: -0.1 * k for k, x in enumerate(kane.u)}
    sol = daedal.solve(problem, (0.0, 1.0), start, params=values, **TIGHT)
    expected = by_scipy(minimal_form(kane, values), (0.0, 1.0), list(start.values()))
    np.testing.assert_allclose(sol.y[:, -1], expected, atol=1e-7)


def test_chaotic_pendulum_in_cartesian_coordinates():
    """Driven and damped, in the chaotic range of Baker and Gollub, Chaotic Dynamics, 1990, section 1.2."""
    x, y = dynamicsymbols("x y")
    q, drive, w = sympy.symbols("q f w")
    torque = drive * sympy.cos(w * t) - (x * y.diff(t) - y * x.diff(t)) / q
    pendulum = daedal.lagrange(
        (x.diff(t) ** 2 + y.diff(t) ** 2) / 2,
        y,
        [x, y],
        constraints=[x**2 + y**2 - 1],
        forces=[-torque * y, torque * x],
    )
    values = {q: 2.0, drive: 1.15, w: 2.0 / 3.0}
    sol = daedal.solve(pendulum, (0.0, 20.0), {x: np.sin(0.3), y: -np.cos(0.3)}, params=values, **TIGHT)
    angle, rate = by_scipy(
        lambda time, z: [z[1], -z[1] / 2.0 - np.sin(z[0]) + 1.15 * np.cos(2.0 / 3.0 * time)], (0.0, 20.0), [0.3, 0.0]
    )
    np.testing.assert_allclose(sol.q[:, -1], [np.sin(angle), -np.cos(angle)], atol=2e-7)
    np.testing.assert_allclose(sol.v[:, -1], rate * np.array([np.cos(angle), np.sin(angle)]), atol=2e-7)
    assert sol.drift["position"] < 1e-12


def test_sleigh_of_chaplygin():
    """A skate below a body at the distance b of its centre: v' = b w^2, w' = -m b v w / (I + m b^2)."""
    x, y, angle = dynamicsymbols("x y angle")
    moment = sympy.Symbol("I")
    dx, dy, w = (z.diff(t) for z in (x, y, angle))
    sleigh = daedal.lagrange(
        m * (dx**2 + dy**2) / 2 + moment * w**2 / 2,
        0,
        [x, y, angle],
        velocity_constraints=[-dx * sympy.sin(angle) + dy * sympy.cos(angle) - b * w],
        params={m: 2.0, b: 0.3, moment: 0.5},
    )
    start = {x: 0.0, y: 0.0, angle: 0.0, dx: 1.0, w: 2.0}  # y' follows
    sol = daedal.solve(sleigh, (0.0, 4.0), start, **TIGHT)
    assert sol.v[1, 0] == pytest.approx(0.3 * 2.0, rel=1e-12)
    slide = by_scipy(
        lambda time, z: [0.3 * z[1] ** 2, -2.0 * 0.3 * z[0] * z[1] / (0.5 + 2.0 * 0.09), z[1]],
        (0.0, 4.0),
        [1.0, 2.0, 0.0],
    )
    forward = sol.v[0, -1] * np.cos(sol.q[2, -1]) + sol.v[1, -1] * np.sin(sol.q[2, -1])
    np.testing.assert_allclose([forward, sol.v[2, -1], sol.q[2, -1]], slide, atol=1e-8)


def rolling_disc():
    """A bicycle wheel: yaw, lean and spin, the place of contact, and the velocity of its centre as dependent speeds."""
    yaw, lean, spin, x, y = dynamicsymbols("yaw lean spin x y")
    speeds = u1, u2, u3, u4, u5 = dynamicsymbols("u1:6")
    ground = ReferenceFrame("N")
    turned = ground.orientnew("Y", "Axis", [yaw, ground.z])
    leaning = turned.orientnew("L", "Axis", [lean, turned.x])
    wheel = leaning.orientnew("R", "Axis", [spin, leaning.y])
    rates = dict(zip([z.diff(t) for z in (yaw, lean, spin)], (u1, u2, u3)))
    turning = wheel.ang_vel_in(ground).subs(rates)
    wheel.set_ang_vel(ground, turning)
    contact, centre = Point("C"), Point("D")
    sliding = u4 * turned.x + u5 * turned.y
    contact.set_vel(ground, sliding)
    centre.set_pos(contact, r * leaning.z)
    centre.set_vel(ground, sliding + turning.cross(r * leaning.z))
    disc = RigidBody("disc", centre, wheel, m, (inertia(leaning, m * r**2 / 4, m * r**2 / 2, m * r**2 / 4), centre))
    path = r * u3 * turned.x  # the point of contact moves as far as the wheel rolls
    kinematics = [z.diff(t) - u for z, u in zip((yaw, lean, spin), speeds)]
    kinematics += [x.diff(t) - dot(path, ground.x), y.diff(t) - dot(path, ground.y)]
    kane = KanesMethod(
        ground,
        q_ind=[yaw, lean, spin, x, y],
        u_ind=[u1, u2, u3],
        u_dependent=[u4, u5],
        velocity_constraints=[u4, u5],
        kd_eqs=kinematics,
    )
    kane.kanes_equations([disc], [(centre, -m * g * ground.z)])
    return kane


def test_bicycle_wheel_rolls_without_sliding():
    kane = rolling_disc()
    values = {m: 2.0, r: 0.35, g: 9.81}
    wheel = daedal.from_sympy(kane, params=values)
    start = {"yaw": 0.1, "lean": 0.2, "spin": 0.0, "x": 0.0, "y": 0.0, "u1": 0.4, "u2": -0.3, "u3": 8.0}
    sol = daedal.solve(wheel, (0.0, 2.0), start, **TIGHT)
    assert np.abs(sol["u4"]).max() < 1e-14 and np.abs(sol["u5"]).max() < 1e-14
    expected = by_scipy(minimal_form(kane, values), (0.0, 2.0), [*start.values(), 0.0, 0.0])
    np.testing.assert_allclose(sol.y[:, -1], expected, atol=1e-7)


def test_dependent_coordinates_and_speeds_follow_and_do_not_drift():
    """A bead on a parabola by Kane's method with a configuration constraint; minimal form in x alone."""
    x, y, u, w = dynamicsymbols("x y u w")
    frame, origin, bead = ReferenceFrame("N"), Point("O"), Point("B")
    origin.set_vel(frame, 0)
    bead.set_pos(origin, x * frame.x + y * frame.y)
    bead.set_vel(frame, u * frame.x + w * frame.y)
    kane = KanesMethod(
        frame,
        q_ind=[x],
        q_dependent=[y],
        configuration_constraints=[y - b * x**2],
        u_ind=[u],
        u_dependent=[w],
        velocity_constraints=[w - 2 * b * x * u],
        kd_eqs=[x.diff(t) - u, y.diff(t) - w],
    )
    kane.kanes_equations([Particle("bead", bead, m)], [(bead, -m * g * frame.y)])
    problem = daedal.from_sympy(kane, params={m: 1.5, g: 9.81, b: 0.7})
    sol = daedal.solve(problem, (0.0, 5.0), {x: 1.0, u: 0.5}, **TIGHT)
    np.testing.assert_allclose(sol.y[:, 0], [1.0, 0.7, 0.5, 0.7], rtol=1e-12)

    def slope(time, z):
        k = 2 * 0.7
        return [z[1], -(k * z[0] * (9.81 + k * z[1] ** 2)) / (1.0 + (k * z[0]) ** 2)]

    expected = by_scipy(slope, (0.0, 5.0), [1.0, 0.5])
    np.testing.assert_allclose([sol["x"][-1], sol["u"][-1]], expected, atol=1e-7)
    assert np.abs(sol["y"] - 0.7 * sol["x"] ** 2).max() < 1e-10  # as far as Newton's method goes
    assert np.abs(sol["w"] - 1.4 * sol["x"] * sol["u"]).max() < 1e-9


def hanging_arms():
    """Two arms on pin joints, as a System."""
    system = System.from_newtonian(wall := RigidBody("wall"))
    length, arms = sympy.Symbol("l"), [RigidBody("first"), RigidBody("second")]
    q, u = dynamicsymbols("q1:3"), dynamicsymbols("u1:3")
    ends = [None, -length * arms[0].y]
    for k, (parent, child) in enumerate([(wall, arms[0]), (arms[0], arms[1])]):
        system.add_joints(PinJoint(f"pin{k}", parent, child, q[k], u[k], ends[k], length * child.y, joint_axis=wall.z))
    system.apply_uniform_gravity(-g * wall.y)
    return system, q, u


def test_system_of_bodies_and_joints_by_kane():
    system, q, u = hanging_arms()
    with pytest.raises(daedal.InvalidProblemError, match="form_eoms"):
        daedal.from_sympy(system)
    system.form_eoms()
    symbols = sorted((system.mass_matrix_full.free_symbols | system.forcing_full.free_symbols) - {t}, key=str)
    values = {x: {"g": 9.81, "l": 0.6}.get(str(x), 0.4 + 0.1 * k) for k, x in enumerate(symbols)}
    start = {q[0]: 0.5, q[1]: -0.2, u[0]: 0.0, u[1]: 1.0}
    sol = daedal.solve(daedal.from_sympy(system), (0.0, 1.0), start, params=values, **TIGHT)
    expected = by_scipy(minimal_form(system.eom_method, values), (0.0, 1.0), list(start.values()))
    np.testing.assert_allclose(sol.y[:, -1], expected, atol=1e-7)


def test_system_with_a_holonomic_constraint_by_lagrange():
    x, y = dynamicsymbols("x y")
    system = System()
    bob = Particle("bob", mass=m)
    bob.masscenter.set_pos(system.fixed_point, x * system.x + y * system.y)
    system.add_bodies(bob)
    system.add_coordinates(x, y)
    system.add_holonomic_constraints(x**2 + y**2 - r**2)
    system.apply_uniform_gravity(-g * system.y)
    system.form_eoms(eom_method=LagrangesMethod)
    pendulum = daedal.from_sympy(system)
    assert isinstance(pendulum, daedal.MechanicalSystem) and pendulum.n_constraints == 1
    start = {x: np.sin(0.7), x.diff(t): -np.cos(0.7)}  # y and y' follow
    sol = daedal.solve(pendulum, (0.0, 2.0), start, params={m: 3.0, g: 9.81, r: 1.0}, **TIGHT)
    turn = np.sign(-sol.q[1, 0])  # both halves of the circle have this x
    angle, rate = by_scipy(
        lambda time, z: [z[1], -9.81 * np.sin(z[0])],
        (0.0, 2.0),
        [0.7, -1.0] if turn > 0 else [np.pi - 0.7, 1.0],
    )
    np.testing.assert_allclose(sol.q[:, -1], [np.sin(angle), -np.cos(angle)], atol=1e-8)
    np.testing.assert_allclose(sol.v[:, -1], rate * np.array([np.cos(angle), np.sin(angle)]), atol=1e-8)


def whipple_bicycle():
    """The benchmark of Meijaard, Papadopoulos, Ruina and Schwab, Proc. R. Soc. A 463 (2007), table 1; z upwards.

    Coordinates are yaw, roll, steer and the dependent pitch; speeds those of roll, rear wheel and steer and the
    dependent ones of yaw, pitch and front wheel.
    """
    base, trail, tilt, rear, front = 1.02, 0.08, np.pi / 10, 0.3, 0.35
    yaw, roll, steer, pitch = dynamicsymbols("yaw roll steer pitch")
    u_roll, u_rear, u_steer, u_yaw, u_pitch, u_front = dynamicsymbols("u_roll u_rear u_steer u_yaw u_pitch u_front")
    ground = ReferenceFrame("N")
    turned = ground.orientnew("Y", "Axis", [yaw, ground.z])
    leaning = turned.orientnew("R", "Axis", [roll, turned.x])
    body = leaning.orientnew("B", "Axis", [pitch, leaning.y])
    head = body.orientnew("S", "Axis", [-tilt, body.y])
    turning = head.orientnew("T", "Axis", [steer, head.z])
    fork = turning.orientnew("H", "Axis", [tilt, turning.y])
    turned.set_ang_vel(ground, u_yaw * ground.z)
    leaning.set_ang_vel(turned, u_roll * turned.x)
    body.set_ang_vel(leaning, u_pitch * leaning.y)
    turning.set_ang_vel(head, u_steer * head.z)
    wheels = ReferenceFrame("WR"), ReferenceFrame("WF")
    wheels[0].set_ang_vel(body, u_rear * body.y)
    wheels[1].set_ang_vel(fork, u_front * fork.y)
    contact = Point("C")
    contact.set_vel(ground, 0)
    hub = contact.locatenew("P", rear * leaning.z)
    axis = hub.locatenew("A", (base + trail) * body.x - rear * body.z)  # where the steer axis meets the ground
    centre = hub.locatenew("MB", 0.3 * body.x + 0.6 * body.z)
    fork_centre = axis.locatenew("MH", (0.9 - base - trail) * fork.x + 0.7 * fork.z)
    front_hub = axis.locatenew("Q", -trail * fork.x + front * fork.z)
    below = (ground.z.dot(fork.y) * fork.y - ground.z).normalize()
    touching = front_hub.locatenew("D", front * below)
    hub.v2pt_theory(contact, ground, wheels[0])
    for point in (axis, centre):
        point.v2pt_theory(hub, ground, body)
    for point in (fork_centre, front_hub):
        point.v2pt_theory(axis, ground, fork)
    touching.v2pt_theory(front_hub, ground, wheels[1])
    bodies = [
        RigidBody("B", centre, body, 85.0, (inertia(body, 9.2, 11.0, 2.8, 0, 0, -2.4), centre)),
        RigidBody("H", fork_centre, fork, 4.0, (inertia(fork, 0.05892, 0.06, 0.00708, 0, 0, 0.00756), fork_centre)),
        RigidBody("WR", hub, wheels[0], 2.0, (inertia(body, 0.0603, 0.12, 0.0603), hub)),
        RigidBody("WF", front_hub, wheels[1], 3.0, (inertia(fork, 0.1405, 0.28, 0.1405), front_hub)),
    ]
    kane = KanesMethod(
        ground,
        q_ind=[yaw, roll, steer],
        q_dependent=[pitch],
        configuration_constraints=[touching.pos_from(contact).dot(ground.z)],
        u_ind=[u_roll, u_rear, u_steer],
        u_dependent=[u_yaw, u_pitch, u_front],
        velocity_constraints=[touching.vel(ground).dot(direction) for direction in turned],
        kd_eqs=[z.diff(t) - u for z, u in ((yaw, u_yaw), (roll, u_roll), (steer, u_steer), (pitch, u_pitch))],
        constraint_solver="CRAMER",
    )
    kane.kanes_equations(bodies, [(body.masscenter, -9.81 * body.mass * ground.z) for body in bodies])
    return kane


@pytest.mark.slow
def test_bicycle_of_whipple_has_the_eigenvalues_of_the_benchmark():
    """Table 2 of the paper, at rest and at 5 m/s, from the matrices of the problem; and it balances itself."""
    bicycle = daedal.from_sympy(whipple_bicycle())
    rest = [-5.53094371765393, -3.13164324790656, 3.13164324790656, 5.53094371765393]
    moving = [-14.07838969279822, -0.77534188219585, -0.77534188219585, -0.32286642900409]
    for speed, expected in ((0.0, rest), (5.0, moving)):
        y, still = np.zeros(10), np.zeros(10)
        y[[5, 9]] = speed / 0.3, speed / 0.35
        np.testing.assert_allclose(bicycle.evaluate(0.0, y, still), 0.0, atol=1e-9)
        constant, with_rates = (bicycle.jacobian(0.0, y, still, cj) for cj in (0.0, 1.0))
        found = eigvals(-constant, with_rates - constant)
        found = found[np.abs(found) < 1e3]
        weave = np.sort(found[np.abs(found) > 1e-4].real)
        np.testing.assert_allclose(weave, expected, rtol=1e-9)
    start = {"yaw": 0.0, "roll": 0.0, "steer": 0.0, "u_roll": 0.5, "u_rear": 5.0 / 0.3, "u_steer": 0.0}
    sol = daedal.solve(bicycle, (0.0, 5.0), start, rtol=1e-8, atol=1e-10)
    assert np.abs(sol["roll"]).max() > 0.05 > 5 * abs(sol["roll"][-1])
