"""Models of the tests of ensembles, in a module so that other processes can import them."""

import os
import signal
import time

import numpy as np

import daedal


def pendulum(params=None):
    """A pendulum of length 1 with the gravity g."""
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, p: [0.0, -p["g"]],
        lambda t, q, p: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)],
        n_q=2,
        n_constraints=1,
        params={"g": 9.81} if params is None else params,
        names=["x", "y"],
    )


START = np.array([1.0, 0.0]), np.array([0.0, 0.0])


def decay():
    """y' = -p y."""
    return daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p[0] * y[0]], 1, params=[1.0])


def moody_residual(t, y, yp, p):
    """y' = -y, never traced: it raises, hangs, returns nan, ends its process or kills it once, as its mood is."""
    mood = float(np.asarray(p, dtype=float)[0])
    if t > 0.1 and mood == 1.0:
        raise KeyError("bad mood")
    if t > 0.1 and mood == 2.0:
        time.sleep(600.0)
    if mood == 3.0:
        return [np.nan]
    if t > 0.1 and mood == 4.0:
        os._exit(7)
    if t > 0.1 and mood == 5.0 and (marker := os.environ["DAEDAL_TEST_MARKER"]) and not os.path.exists(marker):
        with open(marker, "w"):
            os.kill(os.getpid(), signal.SIGKILL)
    return [float(yp[0]) + float(y[0])]


def moody():
    """See :func:`moody_residual`."""
    return daedal.ImplicitDAE(moody_residual, 1, params=np.array([0.0]))


def bouncing_ball():
    """A ball that falls on the floor, with a terminal event."""
    return daedal.MechanicalSystem(1.0, lambda t, q, v, p: [-p[0]], n_q=1, params=np.array([9.81]))
