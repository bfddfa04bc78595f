"""Celestial mechanics: seven stars in the plane."""

import numpy as np

import daedal
from daedal.library.model import Model, explicit_start, known_reference, model
from daedal.library.sources import TEST_SET

PLACES = (3.0, 3.0, -1.0, -3.0, 2.0, -2.0, 2.0), (3.0, -3.0, 2.0, 0.0, 0.0, -4.0, 4.0)  # x and y
VELOCITIES = (0.0, 0.0, 0.0, 0.0, 0.0, 1.75, -1.5), (0.0, 0.0, 0.0, -1.25, 1.0, 0.0, 0.0)


def stars_residual(t, y, yp):
    """y: all x, all y, then their rates. The mass of star i is i."""
    r = np.empty(28)
    for i in range(14):
        r[i] = yp[i] - y[14 + i]
        r[14 + i] = yp[14 + i]
    for i in range(7):
        for j in range(i):
            dx = y[j] - y[i]
            dy = y[7 + j] - y[7 + i]
            squared = dx * dx + dy * dy
            cubed = squared * np.sqrt(squared)
            r[14 + i] = r[14 + i] - (j + 1) * dx / cubed
            r[21 + i] = r[21 + i] - (j + 1) * dy / cubed
            r[14 + j] = r[14 + j] + (i + 1) * dx / cubed
            r[21 + j] = r[21 + j] + (i + 1) * dy / cubed
    return r


@model(
    title="Pleiades",
    source="E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I, 2nd ed., Springer (1993), "
    "section II.10; " + TEST_SET,
    description="Seven stars with the masses 1 to 7 attract each other in the plane. They pass close to one another "
    "several times, where steps have to shrink; errors made there grow. Not stiff.",
    equations=r"""x_i'' = \sum_{j\ne i} m_j \frac{x_j - x_i}{r_{ij}^3},\qquad
    y_i'' = \sum_{j\ne i} m_j \frac{y_j - y_i}{r_{ij}^3},\qquad
    r_{ij} = \sqrt{(x_i - x_j)^2 + (y_i - y_j)^2},\quad m_i = i""",
)
def pleiades() -> Model:
    """Seven stars in the plane, 28 unknowns, to t = 3."""
    names = [f"{name}{i}" for name in ("x", "y", "vx", "vy") for i in range(1, 8)]
    problem = daedal.ImplicitDAE(stars_residual, 28, names=names)
    return Model(
        problem=problem,
        t_span=(0.0, 3.0),
        initial=explicit_start(problem, np.array([*PLACES[0], *PLACES[1], *VELOCITIES[0], *VELOCITIES[1]])),
        index=0,
        reference=known_reference("pleiades"),
        options={"rtol": 1e-6, "atol": 1e-6},
        plot={"variables": ["x1", "x5", "x6", "x7"]},
    )
