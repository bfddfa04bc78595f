"""Foucault's pendulum: what is seen from a body that turns, against closed forms."""

import numpy as np
import pytest

import daedal
from daedal.multibody import Body, GeneralForce, Model, Prescribed, Revolute, Universal, ground

LENGTH, GRAVITY = 2.0, 9.81


def pendulum(rate, latitude):
    """A point mass that hangs from a turning earth, whose axis is tilted in the plane of y and z; its own frame."""
    earth, bob = Body("earth", mass=1.0, inertia=1.0), Body.particle("bob", mass=1.0)
    axis = (0.0, np.cos(latitude), np.sin(latitude))

    def weight(t, motion):
        return motion.rotation(earth.at()) @ np.array([0.0, 0.0, -GRAVITY])

    return Model(
        Revolute("day", ground.at(axis=axis), earth.at(axis=axis)),
        Universal("pivot", earth.at(axis="x"), bob.at(0.0, 0.0, LENGTH, axis="x")),
        Prescribed("rotation", "day", lambda t: rate * t),
        GeneralForce("weight", bob, weight),
    )


def seen_from_earth(sol):
    earth, bob = sol.body("earth"), sol.body("bob")
    return np.einsum("tjk,jt->kt", earth.orientation, bob.position)


def let_go(model, rate, amplitude):
    """The pendulum at rest in space, displaced in the direction of y."""
    system, bob = model.system(), model.body("bob")
    q = np.array([0.0, amplitude, 0.0])
    per_rate = np.array([system.motion(q, v).velocity(bob.at()) for v in np.eye(3)])
    rates = np.linalg.lstsq(per_rate[1:].T, -rate * per_rate[0], rcond=None)[0]
    return system, (q, np.array([rate, *rates]))


def test_at_the_pole_the_pendulum_swings_in_a_plane_that_stands_still():
    """With any amplitude: the motion is that of a pendulum in the plane, seen by one who turns."""
    rate, amplitude, t = 0.3, 0.7, np.linspace(0.0, 10.0, 41)
    system, start = let_go(pendulum(rate, 0.5 * np.pi), rate, amplitude)
    sol = daedal.solve(system, (0.0, 10.0), start, rtol=1e-10, atol=1e-10, t_eval=t)
    plane = daedal.MechanicalSystem(1.0, lambda t, q, v: [-GRAVITY / LENGTH * np.sin(q[0])], n_q=1)
    still = daedal.solve(plane, (0.0, 10.0), ([amplitude], [0.0]), rtol=1e-11, atol=1e-11, t_eval=t)
    way = LENGTH * np.sin(still.q[0]) * np.sign(seen_from_earth(sol)[1, 0])
    expected = [way * np.sin(rate * t), way * np.cos(rate * t)]
    assert np.allclose(seen_from_earth(sol)[:2], expected, rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("latitude", [0.2, 0.9])
def test_elsewhere_the_plane_turns_with_the_sine_of_the_latitude(latitude):
    """Up to terms of second order in the amplitude and in the rate; centrifugal forces shift the middle."""
    rate, period = 0.005, 2.0 * np.pi * np.sqrt(LENGTH / GRAVITY)
    system, start = pendulum(rate, latitude).system(), ([0.0, 0.01, 0.0], [rate, 0.0, 0.0])
    t = np.linspace(20.0 * period, 21.0 * period, 400, endpoint=False)
    sol = daedal.solve(system, (0.0, 21.0 * period), start, rtol=1e-10, atol=1e-12, t_eval=t)
    swing = seen_from_earth(sol)[:2]
    x, y = np.linalg.svd(swing - swing.mean(axis=1, keepdims=True), full_matrices=False)[0][:, 0]
    assert np.arctan(x / y) == pytest.approx(rate * np.sin(latitude) * t.mean(), rel=1e-3)
