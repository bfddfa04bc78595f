"""A pendulum whose pivot slides on a curve, stated with the constraint of its velocity alone: index 2."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import daedal

GRAVITY = 9.81


def height(s):
    """Of the curve, and its first and second derivative."""
    return 0.3 * np.sin(s), 0.3 * np.cos(s), -0.3 * np.sin(s)


def residual(t, y, yp):
    """Pivot (s, c(s)) and bob (x, z), both of mass 1, at a distance of 1; tension times unit distance is lam."""
    s, x, z, ds, dx, dz, lam = y
    c, slope, bend = height(s)
    a, b = x - s, z - c
    along = (1.0 + slope**2) * yp[3] + slope * bend * ds**2 + GRAVITY * slope
    return [
        yp[0] - ds,
        yp[1] - dx,
        yp[2] - dz,
        along - lam * (a + b * slope),
        yp[4] + lam * a,
        yp[5] + GRAVITY + lam * b,
        a * (dx - ds) + b * (dz - slope * ds),
    ]


def accelerations(s, angle, ds, turn):
    """s'' and angle'' by the equations of Lagrange in these two coordinates."""
    (_, slope, bend), sin, cos = height(s), np.sin(angle), np.cos(angle)
    lever = cos + slope * sin
    centrifugal = (slope * cos - sin) * turn**2
    push = 2.0 * slope * (bend * ds**2 + GRAVITY) + centrifugal, sin * (bend * ds**2 + GRAVITY)
    return -np.linalg.solve([[2.0 * (1.0 + slope**2), lever], [lever, 1.0]], push)


def as_unknowns(s, angle, ds, turn):
    """y and y' (but for lam') from the two coordinates and their velocities."""
    (c, slope, bend), sin, cos = height(s), np.sin(angle), np.cos(angle)
    dds, spin = accelerations(s, angle, ds, turn)
    dx, dz = ds + cos * turn, slope * ds + sin * turn
    ddx = dds + cos * spin - sin * turn**2
    ddz = slope * dds + bend * ds**2 + sin * spin + cos * turn**2
    lam = -ddx * sin + (ddz + GRAVITY) * cos
    return np.array([s, s + sin, c - cos, ds, dx, dz, lam]), np.array([ds, dx, dz, dds, ddx, ddz, 0.0])


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("slopes", ["given", "not given"])
def test_the_index_is_noticed_and_the_run_reaches_the_end(rtol, slopes):
    begin = 0.5, 1.0, 0.3, 0.2
    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-12}
    end = solve_ivp(lambda t, w: [w[2], w[3], *accelerations(*w)], (0.0, 10.0), begin, **options).y[:, -1]
    y0, yp0 = as_unknowns(*begin)
    assert np.abs(residual(0.0, y0, yp0)).max() < 1e-14
    initial = y0, yp0 if slopes == "given" else None

    def errors(**options):
        sol = daedal.solve(daedal.ImplicitDAE(residual, 7), (0.0, 10.0), initial, rtol=rtol, **options)
        return np.abs(sol.y[:, -1] - as_unknowns(*end)[0]) / rtol

    mechanism, as_it_stands = errors(), errors(formulation="none")
    assert mechanism[:6].max() < 100.0 and mechanism[6] < 200.0  # recognised, with steps chosen for the positions
    assert as_it_stands[:6].max() < 10.0 and as_it_stands[6] < 100.0
