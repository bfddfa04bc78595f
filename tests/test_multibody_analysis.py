"""Kinematics, equilibrium, inverse dynamics and linearisation of machines, against closed forms."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import daedal
from daedal.multibody import (
    PID,
    Body,
    DeadPointError,
    Force,
    Free,
    JointFriction,
    Model,
    NoEquilibriumError,
    Prismatic,
    Revolute,
    Rolling,
    Spherical,
    Spring,
    ground,
)
from daedal.multibody.dynamics import rnea
from daedal.multibody.kinematics import placement, velocities
from test_multibody_assembly import crank_slider, four_bar

GRAVITY = 9.81


@pytest.fixture(scope="module")
def slider():
    return crank_slider()


def double_pendulum(*others, masses=(2.0, 1.0), lengths=(1.5, 0.7)):
    """Two points on massless bars, angles zero when they hang down."""
    bobs = [Body.particle(name, mass=mass) for name, mass in zip(("one", "two"), masses)]
    first, second = (bob.at(0.0, length) for bob, length in zip(bobs, lengths))
    return Model(
        Revolute("A", ground, first), Revolute("B", bobs[0], second), *others, gravity=(0.0, -GRAVITY), planar=True
    )


# --- kinematics -------------------------------------------------------------------------------------------------------


def crank_slider_motion(angle, speed, acceleration, r=2.0, l=5.0):
    """Position, velocity and acceleration of the slider: x = r cos a + sqrt(l^2 - r^2 sin^2 a) and its derivatives."""
    s, c = np.sin(angle), np.cos(angle)
    root = np.sqrt(l**2 - (r * s) ** 2)
    first = -r * s - r**2 * s * c / root
    second = -r * c - r**2 * (c**2 - s**2) / root - r**4 * s**2 * c**2 / root**3
    return r * c + root, first * speed, first * acceleration + second * speed**2


@pytest.mark.parametrize("planar", [True, False])
def test_crank_slider_by_kinematics(slider, planar):
    machine = slider if planar else crank_slider(planar=False)
    t = np.linspace(0.0, 2.0, 41)
    motion = machine.kinematics(t, {"A": lambda t: 0.5 + 6.0 * t + np.sin(t)})
    expected = crank_slider_motion(0.5 + 6.0 * t + np.sin(t), 6.0 + np.cos(t), -np.sin(t))
    k = machine.layout().names.index("D")
    for found, exact in zip((motion.q[k], motion.v[k], motion.a[k]), expected):
        np.testing.assert_allclose(found, exact, rtol=0.0, atol=1e-11)
    assert motion.dead_points == ()


def test_a_table_of_positions_drives_as_well(slider):
    t = np.linspace(0.0, 1.0, 101)
    motion = slider.kinematics(t, {"A": 0.5 + 2.0 * t**2})
    expected = crank_slider_motion(0.5 + 2.0 * t**2, 4.0 * t, 4.0)
    k = slider.layout().names.index("D")
    for found, exact, error in zip((motion.q[k], motion.v[k], motion.a[k]), expected, (1e-12, 1e-9, 1e-6)):
        np.testing.assert_allclose(found, exact, rtol=0.0, atol=error)


def test_a_joint_that_closes_the_loop_can_be_driven(slider):
    """Joint C turns as the crank does, r sin a = l sin c; accelerations agree with differences of the velocities."""
    t = np.linspace(0.0, 1.0, 201)
    motion = slider.kinematics(t, {"C": lambda t: 0.1 + 0.2 * t}, guess={"A": 0.2})
    a = slider.layout().names.index("A")
    np.testing.assert_allclose(2.0 * np.sin(motion.q[a]), 5.0 * np.sin(0.1 + 0.2 * t), atol=1e-12)
    np.testing.assert_allclose(motion.a[a], CubicSpline(t, motion.v[a])(t, 1), atol=1e-5)


def test_a_driven_mechanism_is_asked_as_a_solution_is(slider):
    """Bodies, joints, and the reaction of the driven joint, which carries the driving torque."""
    motion = slider.kinematics(np.linspace(0.0, 1.0, 101), {"A": lambda t: 0.5 + t + t**2})
    x, speed, acceleration = crank_slider_motion(1.25, 2.0, 2.0)
    there = motion.body("slider", 0.5)
    np.testing.assert_allclose(there.position, [x, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(
        motion.body("slider", 0.503).position[0], crank_slider_motion(1.256009, 0, 0)[0], atol=1e-11
    )
    np.testing.assert_allclose([there.velocity[0], there.acceleration[0]], [speed, acceleration], atol=1e-10)
    needed = slider.inverse_dynamics(motion)
    np.testing.assert_allclose(motion.joint("A").reaction.torque[2], needed["A"], atol=1e-9)
    np.testing.assert_allclose(motion.joint("A").angle, 0.5 + motion.t + motion.t**2, atol=1e-12)
    with pytest.raises(daedal.InvalidProblemError, match="a joint that closes a loop is driven, here 'C'"):
        _ = slider.kinematics([0.0, 0.1], {"C": lambda t: 0.1 + t}).lam


def test_dead_points_are_named(slider):
    with pytest.raises(DeadPointError, match=r"dead point at t = 0\.5: joint 'B' moves there although 'D'") as caught:
        slider.kinematics(np.linspace(0.0, 1.0, 11), {"D": lambda t: 6.5 + t}, side={"A": "+"})
    assert caught.value.t == pytest.approx(0.5, abs=1e-8)
    assert caught.value.joints == ("B",)
    # touched and passed: the crank goes on, and the time is told
    passed = slider.kinematics(np.linspace(0.0, 1.0, 48), {"D": lambda t: 6.5 + 0.5 * np.sin(5.0 * t)}, side={"A": "+"})
    [(time, joint)] = passed.dead_points
    assert time == pytest.approx(np.pi / 10.0, abs=1e-3)
    assert joint == "B"
    assert passed.q[0, 0] > 0.0 > passed.q[0, -1]


def test_motions_that_nothing_drives_are_named(slider):
    with pytest.raises(daedal.InvalidProblemError, match=r"with nothing driven, joint '.' can still move"):
        slider.kinematics([0.0, 1.0])
    with pytest.raises(daedal.InvalidProblemError, match="one finite value for each of the 2 times"):
        slider.kinematics([0.0, 1.0], {"A": [1.0, 2.0, 3.0]})
    with pytest.raises(daedal.InvalidProblemError, match="increase or decrease"):
        slider.kinematics([0.0, 0.0], {"A": 1.0})


# --- equilibrium ------------------------------------------------------------------------------------------------------


def held_rod(stiffness):
    """A rod of length 2 with a spring of free length 0 from its end to a point at the distance 2 above its pivot."""
    rod = Body.rod("rod", length=2.0, mass=3.0)
    return Model(
        Revolute("pivot", ground, rod.start),
        Spring("spring", ground.at(0.0, 2.0), rod.end, stiffness=stiffness),
        gravity=(0.0, -GRAVITY),
        planar=True,
    )


def test_equilibrium_of_a_rod_with_a_spring():
    """V = (m g - 4 k) sin q + constant: down with a soft spring, up with a stiff one; V'' is the stiffness."""
    for stiffness in (2.0, 20.0):
        slope = 3.0 * GRAVITY - 4.0 * stiffness
        rest = held_rod(stiffness).equilibrium(guess={"pivot": 0.3})
        assert rest.stability == "stable"
        assert rest.joint("pivot") == pytest.approx(-np.pi / 2 if slope > 0 else np.pi / 2, abs=1e-10)
        np.testing.assert_allclose(rest.stiffness, [abs(slope)], rtol=1e-9)
    upright = held_rod(2.0).equilibrium(guess={"pivot": np.pi / 2})
    assert upright.stability == "unstable"
    assert not np.any(upright.v)


def test_equilibrium_of_a_loop_in_both_coordinates():
    """A four-bar that hangs: it stays where it is, and the centres of mass are as low as they can be nearby."""
    machine = four_bar()
    rest = machine.equilibrium(guess={"A": -1.0, "D": -2.0})
    assert rest.stability == "stable"
    layout = machine.layout()

    def height(crank):
        start = machine.assemble(A=crank, guess=rest)
        return float(placement(layout.tree, start.q).r[:, 1].sum())

    here = height(rest.joint("A"))
    assert here < height(rest.joint("A") + 0.01)
    assert here < height(rest.joint("A") - 0.01)
    absolute = machine.equilibrium(guess={"A": -1.0, "D": -2.0}, coordinates="absolute")
    np.testing.assert_allclose(absolute.joint("A"), rest.joint("A"), atol=1e-12)
    sol = daedal.solve(machine.system("absolute"), (0.0, 0.5), absolute)
    np.testing.assert_allclose(sol.q[:, -1], sol.q[:, 0], atol=1e-6)


def test_a_held_joint_takes_a_torque():
    rest = held_rod(2.0).equilibrium(pivot=0.4)
    np.testing.assert_allclose(rest.holding["pivot"], [(3.0 * GRAVITY - 8.0) * np.cos(0.4)], rtol=1e-12)


@pytest.mark.parametrize("integral", [30.0, 3000.0])
def test_a_controlled_arm_rests_where_its_controller_wants(integral):
    """The integral carries the weight; small motions by the third-order polynomial J s^3 + d s^2 + (p - w) s + i."""
    rod = Body.rod("rod", length=2.0, mass=3.0)
    control = PID("control", "pivot", target=0.5, proportional=50.0, integral=integral, derivative=5.0)
    arm = Model(Revolute("pivot", ground, rod.start), control, gravity=(0.0, -GRAVITY), planar=True)
    rest = arm.equilibrium()
    assert rest.joint("pivot") == pytest.approx(0.5, abs=1e-12)
    np.testing.assert_allclose(integral * rest.r, [3.0 * GRAVITY * np.cos(0.5)], rtol=1e-10)
    roots = np.roots([4.0, 5.0, 50.0 - 3.0 * GRAVITY * np.sin(0.5), integral])
    small = arm.linearise(rest)
    np.testing.assert_allclose(np.sort_complex(small.eigenvalues), np.sort_complex(roots), rtol=1e-9)
    assert rest.stability == ("stable" if np.all(roots.real < 0) else "unstable")
    assert small.is_equilibrium


def test_friction_is_not_passed_over_in_silence():
    rod = Body.rod("rod", length=1.0, mass=1.0)
    braked = Model(Revolute("pivot", ground, rod.start), JointFriction("brake", "pivot", torque=0.1), planar=True)
    with pytest.raises(daedal.InvalidProblemError, match="omit 'brake'"):
        braked.equilibrium()


def test_no_equilibrium_is_said():
    body = Body.box("load", size=(1, 1, 1), mass=1.0)
    falling = Model(Prismatic("lift", ground, body, axis="y"), gravity=(0.0, -GRAVITY), planar=True)
    with pytest.raises(NoEquilibriumError, match=r"along 'lift' the force -9\.81 remains"):
        falling.equilibrium()


# --- inverse dynamics -------------------------------------------------------------------------------------------------


def swing(t):
    return 0.4 + 0.8 * np.sin(2.0 * t)


def bend(t):
    return -0.3 * np.cos(3.0 * t)


def torques(tree, t):
    """By the recursive Newton-Euler algorithm, for the motion above."""
    q = np.array([swing(t), bend(t)])
    v = np.array([1.6 * np.cos(2.0 * t), 0.9 * np.sin(3.0 * t)])
    a = np.array([-3.2 * np.sin(2.0 * t), 2.7 * np.cos(3.0 * t)])
    placed = placement(tree, q)
    nothing = np.zeros((2, 3))
    return rnea(tree, placed, velocities(tree, placed, v), a, nothing, nothing)


class Drive(Force):
    """These torques in the joints."""

    name = "motors"

    def __init__(self, tree):
        self._tree = tree

    def apply(self, t, motion, loads):
        loads.joint_forces += torques(self._tree, t)


def test_inverse_dynamics_of_the_double_pendulum():
    """Against the recursive Newton-Euler algorithm, Lagrange's equation of the second joint, and a forward run."""
    machine = double_pendulum()
    t = np.linspace(0.0, 2.0, 41)
    motion = machine.kinematics(t, {"A": swing, "B": bend})
    needed = machine.inverse_dynamics(motion)
    assert not needed.redundant
    tree = machine.layout().tree
    expected = np.array([torques(tree, time) for time in t]).T
    np.testing.assert_allclose([needed["A"], needed["B"]], expected, rtol=1e-11, atol=1e-11)
    (m2, l1, l2), (A, B) = (1.0, 1.5, 0.7), (swing(t), bend(t))
    Ap, App, Bpp = 1.6 * np.cos(2.0 * t), -3.2 * np.sin(2.0 * t), 2.7 * np.cos(3.0 * t)
    second = m2 * l2 * (l2 * (App + Bpp) + l1 * (np.cos(B) * App + np.sin(B) * Ap**2) + GRAVITY * np.sin(A + B))
    np.testing.assert_allclose(needed["B"], second, atol=1e-11)
    driven = double_pendulum(Drive(tree))
    sol = daedal.solve(driven.system(), (0.0, 2.0), (motion.q[:, 0], motion.v[:, 0]), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(sol.q[:, -1], [swing(2.0), bend(2.0)], atol=1e-6)


def test_inverse_dynamics_of_a_loop_by_one_or_several_joints(slider):
    """The power of the drive is what kinetic energy gains; several drives share the work with least norm."""
    t = np.linspace(0.0, 1.0, 401)
    motion = slider.kinematics(t, {"A": lambda t: 0.5 + t + t**2})
    needed = slider.inverse_dynamics(motion)
    system = slider.system()
    energy = np.array([0.5 * v @ system.mass(0.0, q) @ v for q, v in zip(motion.q.T, motion.v.T)])
    np.testing.assert_allclose(needed["A"] * motion.v[0], CubicSpline(t, energy)(t, 1), atol=1e-4)
    both = slider.inverse_dynamics(motion, by=["A", "D"])
    assert both.redundant and "smallest norm" in str(both)
    k = slider.layout().names.index("D")
    np.testing.assert_allclose(both["A"] * motion.v[0] + both["D"] * motion.v[k], needed["A"] * motion.v[0], atol=1e-9)
    assert np.all(both["A"] ** 2 + both["D"] ** 2 <= needed["A"] ** 2 + 1e-9)
    with pytest.raises(daedal.InvalidProblemError, match=r"forces of no joint cannot produce this motion"):
        slider.inverse_dynamics(motion, by=[])


def test_a_free_motion_takes_no_forces():
    machine = double_pendulum()
    sol = daedal.solve(machine.system(), (0.0, 1.0), machine.assemble(A=1.0))
    needed = machine.inverse_dynamics(sol)
    assert np.max(np.abs(needed["A"])) < 1e-10


# --- linearisation ----------------------------------------------------------------------------------------------------


def test_frequencies_of_the_double_pendulum():
    """det(K - w^2 M) = 0 of the point masses, a quadratic equation for w^2."""
    (m1, m2), (l1, l2) = (2.0, 1.0), (1.5, 0.7)
    M = np.array([[(m1 + m2) * l1**2, m2 * l1 * l2], [m2 * l1 * l2, m2 * l2**2]])  # in absolute angles
    K = np.diag([(m1 + m2) * GRAVITY * l1, m2 * GRAVITY * l2])
    p = np.polynomial.Polynomial([np.linalg.det(K), -(K[0, 0] * M[1, 1] + K[1, 1] * M[0, 0]), np.linalg.det(M)])
    machine = double_pendulum()
    small = machine.linearise(machine.equilibrium())
    assert small.exact and small.is_equilibrium and small.is_stable
    np.testing.assert_allclose((2.0 * np.pi * small.frequencies) ** 2, np.sort(p.roots()), rtol=1e-12)
    assert [mode.damping_ratio for mode in small.modes] == [0.0, 0.0]
    turned = machine.linearise(machine.equilibrium(guess={"A": np.pi, "B": np.pi}))
    assert not turned.is_stable


def spring_four_bar(damping=0.0):
    machine = four_bar()
    crank, rocker = machine.body("crank"), machine.body("rocker")
    spring = Spring("diagonal", crank.start, rocker.end, stiffness=200.0, length=3.5, damping=damping)
    return Model(*machine.joints, spring, gravity=(0.0, -GRAVITY), planar=True)


@pytest.mark.parametrize("damping", [0.0, 15.0])
def test_small_motions_of_a_four_bar_with_a_diagonal_spring(damping):
    """The same in both coordinates, and M a'' + V'(a) = 0 with the crank angle as the only coordinate."""
    machine = spring_four_bar(damping)
    rest = machine.equilibrium(guess={"A": 1.0, "D": 1.5})
    found = [machine.linearise(rest.in_coordinates(kind)) for kind in ("relative", "absolute")]
    np.testing.assert_allclose(found[0].eigenvalues, found[1].eigenvalues, rtol=1e-8)
    assert found[0].stiffness.shape == (1, 1)
    if damping:
        assert 0.0 < found[0].modes[0].damping_ratio < 1.0
        return
    layout, spring, h = machine.layout(), machine.forces[0], 1e-3

    def potential(start):
        states = start.bodies
        length = np.linalg.norm(states.frame(spring.b)[0] - states.frame(spring.a)[0])
        return GRAVITY * states.r[:, 1].sum() + 100.0 * (length - 3.5) ** 2

    angles = rest.joint("A") + h * np.arange(-2, 3)
    starts = [machine.assemble(A=angle, guess=rest, velocities={"A": 1.0}) for angle in angles]
    V = [potential(start) for start in starts]
    second = (-V[0] + 16 * V[1] - 30 * V[2] + 16 * V[3] - V[4]) / (12 * h**2)
    mass = starts[2].v @ machine.system().mass(0.0, starts[2].q) @ starts[2].v
    assert layout.n_q == 3
    np.testing.assert_allclose(abs(found[0].eigenvalues[0]) ** 2, second / mass, rtol=1e-6)


def test_about_a_motion_the_first_order_form_is_used():
    """A rod that spins: x'' = 0 in the hinge, eigenvalues 0 and 0; a point in a spinning slot is driven outwards."""
    arm, bead = Body.rod("arm", length=2.0, mass=1.0), Body.particle("bead", mass=1e-9)
    machine = Model(Revolute("hub", ground, arm), Prismatic("slot", arm, bead, axis="x"), planar=True)
    small = machine.linearise(machine.assemble(hub=0.2, velocities={"hub": 3.0}))
    assert not small.is_equilibrium and small.mass is None
    np.testing.assert_allclose(np.sort(small.eigenvalues.real), [-3.0, 0.0, 0.0, 3.0], atol=1e-6)


def test_a_disc_that_rolls_upright_is_stable_if_it_is_fast():
    """(A + m r^2) s^2 = m g r - C (C + m r^2) w^2 / A with the moments A about a diameter and C about the axis."""
    r, mass = 0.5, 2.0
    A, C = mass * r**2 / 4.0, mass * r**2 / 2.0
    disc = Body("disc", mass=mass, inertia=(A, A, C))
    machine = Model(Free("motion", ground, disc), Rolling("contact", disc, radius=r), gravity=(0.0, 0.0, -GRAVITY))
    upright = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    for spin in (2.0, 4.0):
        rates = {"motion.about_x": 0.0, "motion.about_y": 0.0, "motion.about_z": spin}
        small = machine.linearise(machine.assemble(motion=((0.0, 0.0, r), upright), velocities=rates))
        root = np.sqrt(complex(mass * GRAVITY * r - C * (C + mass * r**2) * spin**2 / A) / (A + mass * r**2))
        assert small.is_steady and not small.is_equilibrium
        assert min(abs(small.eigenvalues - root)) < 1e-6
        assert np.sum(abs(small.eigenvalues) > 0.01) == 2


@pytest.mark.parametrize("spin", [20.0, 120.0])
def test_an_upright_top(spin):
    """I s^2 - i C w s - m g l = 0 and its conjugate: it sleeps if C^2 w^2 > 4 I m g l."""
    top = Body("top", mass=2.0, inertia=(0.1, 0.1, 0.05), center=(0.0, 0.0, 0.5))
    machine = Model(Spherical("pivot", ground, top), gravity=(0.0, 0.0, -GRAVITY))
    small = machine.linearise(machine.assemble(velocities={"pivot": (0.0, 0.0, spin)}))
    expected = np.roots([0.1 + 0.5, -0.05 * spin * 1j, -2.0 * GRAVITY * 0.5])
    for root in (*expected, *expected.conj()):
        assert min(abs(small.eigenvalues - root)) < 1e-6
    assert small.is_steady
    tumbling = machine.linearise(machine.assemble(velocities={"pivot": (3.0, 0.0, spin)}))
    assert not tumbling.is_steady and "these are instantaneous values" in str(tumbling)


def test_modes_move_and_loops_stay_closed(tmp_path):
    machine = spring_four_bar()
    small = machine.linearise(machine.equilibrium(guess={"A": 1.0, "D": 1.5}))
    [mode] = small.modes
    motion = mode.motion(13, amplitude=0.3)
    assert motion.t[-1] == pytest.approx(1.0 / mode.frequency)
    constraint = machine.system().constraint
    assert max(np.max(np.abs(constraint(0.0, q))) for q in motion.q.T) < 1e-9
    np.testing.assert_allclose(motion.q[:, 0], motion.q[:, -1], atol=1e-9)
    for amplitude in (0.3, 0.003):  # the loop, closed again, changes the angles by a part of the size of the amplitude
        first = mode.motion(2, amplitude=amplitude).q[:, 0]
        assert np.max(np.abs(first - small.start.q)) == pytest.approx(amplitude, rel=0.1 * amplitude)
    assert "frequency" in str(small)
    scene = small.animate(0, frames=10)
    assert scene.t.size == 10
    figure = small.plot(save=tmp_path / "eigenvalues.png", pyplot=False)
    assert figure.axes[0].get_xlabel() == "real part"


def test_differences_agree_with_exact_derivatives(monkeypatch):
    machine = spring_four_bar(damping=15.0)
    rest = machine.equilibrium(guess={"A": 1.0, "D": 1.5})
    exact = machine.linearise(rest)
    monkeypatch.setattr(machine.equations(rest.layout), "_function", None)
    np.testing.assert_allclose(machine.linearise(rest).eigenvalues, exact.eigenvalues, rtol=1e-7)
