"""The central difference quotient of fourth order: f'(0) = (f(-2h) - 8 f(-h) + 8 f(h) - f(2h)) / (12 h)."""

import numpy as np

PLACES = (-2.0, -1.0, 1.0, 2.0)
WEIGHTS = (1.0, -8.0, 8.0, -1.0)  # over 12 h
DIVISOR = 12.0


def five_point(function, h: float) -> np.ndarray:
    """f'(0) of a function of one variable."""
    near, far = function(h) - function(-h), function(2.0 * h) - function(-2.0 * h)
    return (8.0 * near - far) / (DIVISOR * h)
