"""Derivatives of whole runs by high-order differences: the other way to sensitivities, for comparison."""

import numpy as np


def derivative(run, at: float, share: float = 1e-2) -> np.ndarray:
    """d run(p) / dp at p = `at`, by the central formula of order 6; accurate runs allow for long increments."""
    h = share * (abs(at) or 1.0)
    weights = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    return sum(w / h * (run(at + k * h) - run(at - k * h)) for k, w in weights.items())


def relative_error(found, expected) -> float:
    """The largest error of each row, in units of its largest value (of 1e-4 of all, if it is smaller); the worst."""
    found, expected = np.atleast_2d(found), np.atleast_2d(expected)
    size = np.max(np.abs(expected), axis=1)
    error = np.max(np.abs(found - expected), axis=1)
    return float(np.max(error / np.maximum(size, max(1e-4 * size.max(), 1e-300))))
