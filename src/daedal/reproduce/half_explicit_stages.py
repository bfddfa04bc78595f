"""Brasey and Hairer: the stages of half-explicit steps, which are no part of a solution, formed from its points."""

from typing import Any, NamedTuple

import numpy as np


class Stages(NamedTuple):
    """Velocities, accelerations and multipliers of all stages, for many steps at once: the last axis."""

    v: np.ndarray
    acceleration: np.ndarray
    multiplier: np.ndarray
    end: np.ndarray  # (q, v) at the end of the steps


def pendulum_stages(tableau: Any, q: np.ndarray, v: np.ndarray, h: float) -> Stages:
    r"""The stages of steps of length h from q, v: q' = v, v' = (0, -1) - q \lambda, q v = 0 (section 2 of the source).

    :math:`Z_i` makes :math:`Q_{i+1}^T V_{i+1} = 0`, where :math:`Q_{i+1}, V_{i+1}` have the coefficients of the next
    stage, or of the end of the step.
    """
    ab, s = tableau.floats()["ab"], tableau.s
    weight = np.array([[0.0], [-1.0]])
    places, velocities = [q], [v]
    accelerations: list[np.ndarray] = []
    multipliers: list[np.ndarray] = []
    for i in range(s):
        place = q + h * sum(ab[i, j] * velocities[j] for j in range(i + 1))
        free = v + h * (sum(ab[i, j] * accelerations[j] for j in range(i)) + ab[i, i] * weight)
        multiplier = (place * free).sum(axis=0) / (h * ab[i, i] * (place * places[i]).sum(axis=0))
        multipliers.append(multiplier)
        accelerations.append(weight - places[i] * multiplier)
        places.append(place)
        velocities.append(free - h * ab[i, i] * places[i] * multiplier)
    end = np.concatenate([places[-1], velocities[-1]])
    return Stages(np.array(velocities[:s]), np.array(accelerations), np.array(multipliers), end)


def five_stage_weights(theta: float) -> np.ndarray:
    """Quadrature on the nodes of stages 3, 4 and 5 of HEM4: of third order in q, of second in v."""
    r, t = np.sqrt(6.0), theta
    third = t * ((20.0 * r - 20.0) * t**2 + (24.0 - 39.0 * r) * t + 12.0 + 18.0 * r) / 36.0
    fourth = t * (-(20.0 * r + 20.0) * t**2 + (24.0 + 39.0 * r) * t + 12.0 - 18.0 * r) / 36.0
    return np.array([0.0, 0.0, third, fourth, t * (10.0 * t**2 - 12.0 * t + 3.0) / 9.0])
