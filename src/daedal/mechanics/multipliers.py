"""Initial guesses for the multipliers, for forces that depend on them and may be undefined at zero.

A friction law that divides by the normal force is undefined at lambda = 0. Other guesses are then tried in this order:
1 and -1 for all multipliers, and the multipliers that balance the forces found there,

    M a + K^T lambda = f(..., +-1),   K a = -bias.
"""

from collections.abc import Iterator
from itertools import chain

import numpy as np

TRIED = "lam = 0, 1 and -1, and the multipliers that balance the forces found there"


def starting_points(assembly, t: float, state: np.ndarray, w: np.ndarray) -> Iterator[np.ndarray]:
    """Candidates for multipliers at which the forces can be evaluated, best first."""
    ones = np.ones(assembly.n_c)
    for lam in (np.zeros(assembly.n_c), ones, -ones):
        values = evaluated(assembly, t, state, w, lam)
        if values is None:
            continue
        if lam.any():
            balancing = _balancing(values)
            if balancing is not None and evaluated(assembly, t, state, w, balancing) is not None:
                yield balancing
        yield lam


def evaluated(assembly, t: float, state: np.ndarray, w: np.ndarray, lam: np.ndarray):
    """Values of the system's functions with the given multipliers; None if the forces are undefined."""
    n = assembly.m * assembly.nx
    try:
        values = assembly.evaluate(t, state[:n], state[n:], w, lam)
    except ArithmeticError:
        return None
    return values if values is not None and np.all(np.isfinite(values["force"])) else None


def accelerate_from_elsewhere(assembly, times, states, results, statuses):
    """Repeat failed points with other guesses: the multipliers of the previous point or of the start, or candidates."""
    n_w, before = assembly.n_w, assembly.setting.guess
    for k, t in enumerate(times):
        if statuses[k] == 0:
            before = np.concatenate([results[3][k], results[1][k]])
            continue
        w = np.zeros(n_w) if before is None else before[:n_w]
        others = (np.concatenate([w, lam]) for lam in starting_points(assembly, float(t), states[k], w))
        for guess in chain(() if before is None else (before,), others):
            try:
                found = assembly.accelerate(t, states[k], guess[None])
            except ArithmeticError:
                continue
            if found[4][0] == 0 and np.all(np.isfinite(found[1])):
                for target, values in zip(results, found, strict=False):
                    target[k] = values[0]
                statuses[k] = 0
                before = np.concatenate([results[3][k], results[1][k]])
                break


def _balancing(values: dict[str, np.ndarray]) -> np.ndarray | None:
    M, K = values["mass"], values["jacobian"]
    n, count = M.shape[0], K.shape[0]
    matrix = np.block([[M, K.T], [K, np.zeros((count, count))]])
    right = np.concatenate([values["force"], -values["bias"]])
    lam = np.linalg.lstsq(matrix, right, rcond=None)[0][n:]
    return lam if np.all(np.isfinite(lam)) else None
