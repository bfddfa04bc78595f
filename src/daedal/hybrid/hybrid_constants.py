"""Numerical constants of runs through modes, for the driver and the compiled loop of ensembles."""

import numpy as np

BAND = 10.0
"""Change of the state, in tolerances, whose effect on a guard is the band that counts as zero when a mode begins."""
NOISE = 100.0 * float(np.finfo(float).eps)
"""Relative perturbation of time and state that estimates the round-off of a guard."""
LOOK = (1e-6, 1e-3, 1e-1)
"""Fractions of a step at which the direction of a guard is determined."""
TINY = 1e-300
"""Smallest width of a tolerance, and of the round-off of a guard, so that none is zero."""

MOST_IMMEDIATE = 100
"""Maximum number of transitions at one time."""
IDLE = 1e-12
"""Largest change of the state by a transition, relative to its size, that counts as zero."""
SHORT = 1e3 * float(np.finfo(float).eps)
"""Smallest step size, as a fraction of the time, that every method accepts."""
