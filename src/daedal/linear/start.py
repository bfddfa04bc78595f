"""Consistent initial values of time-varying systems, from the derivative array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.linear.constraints import Consistency, consistency
from daedal.linear.derivative_array import balanced_array
from daedal.linear.rank import RankDecision, rank_decision, require_clear
from daedal.linear.words import Shown
from daedal.tabular import Tabular

if TYPE_CHECKING:
    from daedal.linear.time_varying import TimeVarying

_MET = 1e-8  # relative residual of equations that can be met


@dataclass(frozen=True, repr=False)
class InitialValues(Shown):
    """x and x' at one time, as far as the equations and the given entries determine them.

    Attributes
    ----------
    t : float
    x, rates : numpy.ndarray
        x and x'. Entries that are free have the values that make all derivatives smallest.
    free : tuple of str
        Entries that nothing determines, such as ``x[0]`` or ``x[1]'``.
    decision : RankDecision
        The rank of the equations.
    """

    t: float
    x: np.ndarray
    rates: np.ndarray
    free: tuple[str, ...]
    decision: RankDecision
    names: tuple[str, ...]

    def title(self) -> str:
        free = f"free: {', '.join(self.free)}" if self.free else "all determined"
        return f"Initial values at t = {self.t:g}, {free}"

    def tables(self) -> list[Tabular]:
        rows = [(name, f"{x:.6g}", f"{rate:.6g}") for name, x, rate in zip(self.names, self.x, self.rates)]
        return [Tabular("lrr", rows, ("unknown", "value", "derivative"))]

    def __repr__(self) -> str:
        return f"<{self.title()}>"


def array_consistency(system: TimeVarying, x0: Any, t: float, tolerance: float) -> Consistency:
    """Hold values against W^T B x = W^T f, where W^T A = 0 (theorem 2.4.8), and project them to the nearest."""
    given = np.asarray(x0, dtype=float)
    if given.shape != (system.n,) or not np.all(np.isfinite(given)):
        raise InvalidProblemError(f"x0 must be a vector of {system.n} finite numbers")
    array = system.full_array(t)
    columns = system.series(t, 1).columns
    W, g, rest, _ = array.constraints
    if np.any(np.abs(rest) > _MET * max(float(np.max(np.abs(array.f), initial=0.0)), np.finfo(float).tiny)):
        raise InconsistentInitialError(
            f"the right-hand side contradicts itself at t = {t:g}: an equation without unknowns is violated by "
            f"{np.max(np.abs(rest)):.3g} in scaled units"
        )
    scaled = given / columns
    x = (scaled - W.T @ (W @ scaled - g)) * columns
    return consistency(t, given, W / columns, g, x, system.names, columns, tolerance)


def initial_values(system: TimeVarying, t: float, x: dict[int, float], rates: dict[int, float]) -> InitialValues:
    """Solve the derivative array together with the given entries, by least squares of minimal norm."""
    n, j = system.n, system.full_array(t).j
    local = system.series(t, j, with_f=True)
    A, B, f, unit = balanced_array(local.A, local.B, local.f, j)
    user, values = [], []
    for offset, entries, size in ((0, x, 1.0), (n, rates, local.unit / unit)):
        for i, value in entries.items():
            if not 0 <= i < n:
                raise InvalidProblemError(f"there is no unknown {i}: they are numbered from 0 to {n - 1}")
            user.append(np.eye(1, n * (j + 1), offset + i)[0])
            values.append(value * size / local.columns[i])
    matrix = np.vstack([np.hstack([B, A]), *user])
    right = np.concatenate([f, values])
    U, s, Vt = np.linalg.svd(matrix)
    decision = rank_decision(s, tolerance=system.tolerance(t), what="array and given entries")
    require_clear([decision], "the completion of initial values")
    r = decision.rank
    found = Vt[:r].T @ ((U.T @ right)[:r] / s[:r])
    residual = np.abs(matrix @ found - right)
    if np.max(residual, initial=0.0) > _MET * max(float(np.max(np.abs(right), initial=0.0)), np.finfo(float).tiny):
        raise InconsistentInitialError(
            f"the given entries of x and x' at t = {t:g} contradict the equations, by {np.max(residual):.3g} in scaled "
            "units; give fewer of them"
        )
    loose = np.linalg.norm(Vt[r:, : 2 * n], axis=0) > _MET
    labels = [*system.names, *(f"{name}'" for name in system.names)]
    free = tuple(label for label, is_loose in zip(labels, loose) if is_loose)
    return InitialValues(
        t, found[:n] * local.columns, found[n : 2 * n] * local.columns * unit / local.unit, free, decision, system.names
    )
