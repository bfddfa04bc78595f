"""Numbers on which runs through modes rest, in the driver and in the compiled loop of ensembles."""

import numpy as np

BAND = 10.0
"""Tolerances within which a guard counts as zero when a mode begins."""
NOISE = 100.0 * float(np.finfo(float).eps)
"""Relative changes of the state that do not tell where a guard goes."""
LOOK = (1e-6, 1e-3, 1e-1)
"""Fractions of a step at which it is decided where a guard goes."""
TINY = 1e-300
"""In place of a width that is zero."""

MOST_IMMEDIATE = 100
"""Transitions at one time."""
IDLE = 1e-12
"""Changes of the state relative to its size by a transition after which nothing is different."""
SHORT = 1e3 * float(np.finfo(float).eps)
"""A step relative to the time that no method refuses."""
