"""Plain differential equations with known solutions, for several tests."""

import numpy as np

from daedal import library
from daedal.library.kinetics import hires_residual
from daedal.library.oscillators import stars_residual


def lorenz(t, y):
    return [10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]


def van_der_pol(t, y, mu):
    return [y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]]


# F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers (2008), in the form of mu = 1000
VAN_DER_POL_2000 = np.array([1.706167732170469, -0.8928097010248125e-3])


def robertson(t, y):
    slow, fast = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return [-slow, slow - fast, fast]


# E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, and LSODE's example: t = 40
ROBERTSON_40 = np.array([0.7158270687193941, 0.9185534764557338e-5, 0.2841637457458413])


def hires(t, y):
    return [-r for r in hires_residual(t, y, [0.0] * 8)]


HIRES_0 = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057])


def pleiades(t, y):
    return [-r for r in stars_residual(t, y, [0.0] * 28)]


def pleiades_start():
    return library.get("pleiades").initial[0]


def arenstorf(t, y):
    """A satellite between earth and moon (HNW II.0.1)."""
    mu = 0.012277471
    earth = ((y[0] + mu) ** 2 + y[1] ** 2) ** 1.5
    moon = ((y[0] - 1.0 + mu) ** 2 + y[1] ** 2) ** 1.5
    near, far = 1.0 - mu, mu
    return [
        y[2],
        y[3],
        y[0] + 2.0 * y[3] - near * (y[0] + mu) / earth - far * (y[0] - near) / moon,
        y[1] - 2.0 * y[2] - near * y[1] / earth - far * y[1] / moon,
    ]


ARENSTORF_0 = np.array([0.994, 0.0, 0.0, -2.00158510637908252240537862224])
ARENSTORF_PERIOD = 17.0652165601579625588917206249


def heat(n):
    """Heat in a rod of n points, its start, and the rate at which that decays."""
    dx = 1.0 / (n + 1)

    def f(t, y):
        change = -2.0 * y
        change[1:] += y[:-1]
        change[:-1] += y[1:]
        return change / dx**2

    return f, np.sin(np.pi * dx * np.arange(1, n + 1)), 4.0 / dx**2 * np.sin(0.5 * np.pi * dx) ** 2
