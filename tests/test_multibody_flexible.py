"""Beams and cables by finite segments: convergence to Euler and Bernoulli, to the hanging cable and to the catenary."""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import brentq

from daedal.errors import InvalidProblemError
from daedal.multibody import Fixed, GeneralForce, Model, Revolute, beam, cable, ground

EI, RHO, LENGTH, G = 10.0, 0.5, 2.0, 9.81


def stiffness(system, q):
    """Minus the derivative of the force, by central differences."""
    n, h = q.size, 1e-5
    columns = [
        system.at(0.0, q + h * unit, np.zeros(n)).force - system.at(0.0, q - h * unit, np.zeros(n)).force
        for unit in np.eye(n)
    ]
    return -np.column_stack(columns) / (2.0 * h)


def frequency(system, q):
    """The lowest circular frequency about an equilibrium."""
    matrix = stiffness(system, q)
    return float(np.sqrt(eigh(0.5 * (matrix + matrix.T), system.at(0.0, q).mass, eigvals_only=True)[0]))


def orders(errors):
    """The order that each halving of h shows."""
    return np.log2(np.abs(errors[:-1]) / np.abs(errors[1:]))


def cantilever(n, *loads, **options):
    mast = beam("mast", LENGTH, n, EI, RHO, **options)
    planar = options.get("planar", True)
    return mast, Model(Fixed("clamp", ground, mast.start), *mast, *(load(mast) for load in loads), planar=planar)


def test_static_deflection_of_a_cantilever_converges_with_order_2():
    errors = []
    for n in (4, 8, 16):
        mast, model = cantilever(n, lambda mast: GeneralForce("load", mast.end, lambda t, motion: (0.0, 1e-3)))
        system = model.system()
        zero = np.zeros(n)
        q = np.linalg.solve(stiffness(system, zero), system.at(0.0, zero, zero).force)
        sag = system.motion(1e-3 * q, zero).position(mast.end)[1] * 1e3  # the linear part
        exact = 1e-3 * LENGTH**3 / (3.0 * EI)
        errors.append(sag / exact - 1.0)
        assert errors[-1] == pytest.approx(-0.25 / n**2, rel=1e-3)
    assert np.all(np.abs(orders(np.array(errors)) - 2.0) < 0.05)


def test_first_frequency_of_a_cantilever_converges_with_order_2():
    root = 1.8751040687119611  # cos x cosh x = -1
    exact = root**2 * np.sqrt(EI / (RHO * LENGTH**4))
    errors = np.array([frequency(cantilever(n)[1].system(), np.zeros(n)) / exact - 1.0 for n in (4, 8, 16)])
    assert np.all(np.abs(orders(errors) - 2.0) < 0.1)
    assert abs(errors[-1]) < 2e-3


def test_beam_in_space_bends_alike_in_both_directions_and_twists():
    root = 1.8751040687119611
    exact = root**2 * np.sqrt(EI / (RHO * LENGTH**4))
    n = 8
    system = cantilever(n, planar=False, radius=0.01)[1].system()
    matrix, mass = stiffness(system, np.zeros(2 * n)), system.at(0.0, np.zeros(2 * n)).mass
    lowest = np.sqrt(eigh(0.5 * (matrix + matrix.T), mass, eigvals_only=True)[:2])
    assert lowest == pytest.approx([exact, exact], rel=5e-3)
    # a torque T about the axis turns the tip by T L / GJ: the bushings in series
    mast, model = cantilever(n, planar=False, radius=0.05, torsional_stiffness=4.0)
    system = model.system()
    each = 0.02
    q = np.tile([np.cos(each / 2.0), np.sin(each / 2.0), 0.0, 0.0], n)
    motion = system.motion(q, np.zeros(4 * n))
    assert motion.rotation(mast.end)[2, 1] == pytest.approx(np.sin(n * each), rel=1e-12)
    stored = sum(force.energy(0.0, motion) for force in model.forces)
    assert stored == pytest.approx(0.5 * 4.0 / LENGTH * (n * each) ** 2, rel=1e-3)


def test_frequency_of_a_hanging_cable_converges():
    exact = 0.5 * 2.404825557695773 * np.sqrt(G / LENGTH)  # zero of the Bessel function J_0
    errors = []
    for n in (4, 8, 16):
        rope = cable("rope", LENGTH, n, RHO)
        model = Model(Revolute("hook", ground, rope.start), *rope, gravity=(0.0, -G), planar=True)
        system = model.system()
        q = np.zeros(n)
        q[list(system.names).index("hook")] = -0.5 * np.pi
        errors.append(frequency(system, q) / exact - 1.0)
    assert np.all(np.abs(orders(np.array(errors)) - 2.0) < 0.1)


def test_sag_of_a_cable_between_two_points_converges_to_the_catenary():
    span = 1.2
    a = brentq(lambda a: 2.0 * a * np.sinh(0.5 * span / a) - LENGTH, 0.05, 5.0)
    exact = -a * (np.cosh(0.5 * span / a) - 1.0)
    errors = []
    for n in (4, 8):
        rope = cable("rope", LENGTH, n, RHO)
        hooks = Revolute("left", ground, rope.start), Revolute("right", rope.end, ground.at(span, 0.0))
        model = Model(*hooks, *rope, gravity=(0.0, -G), planar=True)
        rest = model.equilibrium(guess={"left": -1.0, **{f"rope joint {i}": 2.0 / n for i in range(1, n)}})
        errors.append(model.system().motion(*rest).position(rope.at(0.5 * LENGTH))[1] / exact - 1.0)
    assert orders(np.array(errors)) == pytest.approx([2.0], abs=0.2)


def test_a_beam_bent_by_a_moment_becomes_a_circle():
    """M = 2 pi EI / L: every spring turns by 2 pi / n, and the tip comes back to the clamp."""
    n = 8
    mast, model = cantilever(n)
    motion = model.system().motion(np.full(n, 2.0 * np.pi / n), np.zeros(n))
    assert motion.position(mast.end) == pytest.approx(motion.position(mast.start), abs=1e-12)
    moment = model.system().at(0.0, np.full(n, 2.0 * np.pi / n), np.zeros(n)).force
    assert moment == pytest.approx(np.full(n, -2.0 * np.pi * EI / LENGTH), rel=1e-12)


def test_points_of_a_beam_and_names():
    mast = beam("mast", 2.0, 4, EI, RHO)
    assert [body.name for body in mast.bodies] == [f"mast {i}" for i in range(1, 6)]
    assert sum(body.mass for body in mast.bodies) == pytest.approx(1.0)
    model = Model(Fixed("clamp", ground, mast.start), *mast, planar=True)
    motion = model.system().motion(np.zeros(4), np.zeros(4))
    for x in (0.0, 0.1, 0.25, 1.0, 1.7, 2.0):
        assert motion.position(mast.at(x)) == pytest.approx([x, 0.0, 0.0], abs=1e-12)
    for make, words in (
        (lambda: beam("b", -1.0, 4, EI, RHO), "length of beam 'b' must be positive"),
        (lambda: beam("b", 1.0, 0, EI, RHO), "segments of beam 'b'"),
        (lambda: beam("b", 1.0, 4, EI, 0.0), "mass_per_length of beam 'b'"),
        (lambda: beam("b", 1.0, 4, EI, RHO, planar=False, torsional_stiffness=1.0), "needs a radius"),
        (lambda: mast.at(3.0), "has no point at 3"),
    ):
        with pytest.raises(InvalidProblemError, match=words):
            make()
