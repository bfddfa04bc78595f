r"""Check that a mechanism with recursive elimination may start at given values.

The conditions are those of other mechanisms (:mod:`.readiness`), without the mass matrix: if the result is finite,
elimination from the tips to the base has found a positive pivot for every joint, and multipliers for all constraints.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.mechanics.consistent_start import ConsistentStart

_CONSISTENT = 1e-13
_INDEPENDENT = 1e-3  # smallest independent component of a unit row of K


def starts_recursively(system: Any) -> bool:
    """Whether recursive code exists and covers all functions and constraints of the system."""
    code = system.straight_line
    if not getattr(code, "is_recursive", False) or not code.belongs_to(system):
        return False
    others = system.n_velocity_constraints or system.n_w or system.n_s or system.force_uses_multipliers
    return not others


def recursive_start(system: Any, t: float, z: np.ndarray, r: np.ndarray) -> ConsistentStart | None:
    """The start at z = (q, v) and r; None unless it is consistent to round-off and clearly regular."""
    q, v = np.split(z, 2)
    given = (q, v, r) if system.n_r else (q, v)
    if system.n_constraints and not _is_regular(system, t, q, v):
        return None
    status, values = system.straight_line.function("accelerations").evaluate(t, *given)
    if status != 0 or not np.all(np.isfinite(values)):
        return None
    rate = np.asarray(system.state_rate(t, *given), dtype=float) if system.n_r else np.zeros(0)
    return ConsistentStart(t, z.copy(), values[: q.size].copy(), values[q.size :].copy(), r.copy(), rate)


def _is_regular(system: Any, t: float, q: np.ndarray, v: np.ndarray) -> bool:
    """Whether the constraints are satisfied at both levels and clearly independent."""
    from scipy.linalg import qr

    residual, rows = system.constraint(t, q), system.constraint_jacobian(t, q)
    norms = np.linalg.norm(rows, axis=1)
    if not np.all(norms > 0.0) or rows.shape[0] > rows.shape[1]:
        return False
    rates = rows @ v + system.constraint_t(t, q)
    lengths = np.maximum(np.abs(q), system.typical_sizes).max()
    if np.any(np.abs(residual) > _CONSISTENT * norms * lengths) or np.any(
        np.abs(rates) > _CONSISTENT * norms * np.max(np.abs(v))
    ):
        return False
    factor = qr((rows / norms[:, None]).T, mode="r", pivoting=True, check_finite=False)[0]
    return bool(np.abs(factor[norms.size - 1, norms.size - 1]) >= _INDEPENDENT)
