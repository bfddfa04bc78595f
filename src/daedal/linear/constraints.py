"""Linear constraints on values at one time, in a form that can be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daedal.errors import InconsistentInitialError
from daedal.linear.words import Shown, combination
from daedal.tabular import Tabular, plural

_OVERALL = 1e-3  # part of the size of all unknowns with which the violation of a constraint is compared
_NEGLIGIBLE = 1e-11  # coefficients of a solved constraint below it are rounding errors


def solved(W: np.ndarray, g: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The constraints W x = g, solved for as many unknowns as there are rows: rows with few entries.

    Parameters
    ----------
    W, g : numpy.ndarray
        W has full row rank.
    scales : numpy.ndarray
        Sizes of the unknowns, for the choice of those that are solved for.

    Returns
    -------
    rows, values : numpy.ndarray
        The constraints rows @ x = values.
    chosen : numpy.ndarray
        The unknowns that they are solved for.
    """
    from scipy.linalg import qr

    if not len(W):
        return W, g, np.zeros(0, dtype=int)
    _, pivots = qr(W * scales, mode="r", pivoting=True)
    chosen = np.sort(pivots[: len(W)])
    both = np.linalg.solve(W[:, chosen], np.column_stack([W, g]))
    rows, values = both[:, :-1], both[:, -1]
    rows = np.where(np.abs(rows) * scales < _NEGLIGIBLE * scales[chosen][:, None], 0.0, rows)
    rows[:, chosen] = np.eye(len(W))
    return rows, values, chosen


@dataclass(frozen=True, repr=False)
class Consistency(Shown):
    """Whether given initial values lie on a solution, and values near them that do.

    Attributes
    ----------
    t : float
    given : numpy.ndarray
        The values that were tested.
    constraints, values : numpy.ndarray
        ``constraints @ x = values`` holds for all solutions at time t, and nothing else is demanded of them. Each row
        is solved for one unknown.
    violation : numpy.ndarray
        ``constraints @ given - values``.
    consistent : bool
        Whether it vanishes, up to the tolerance.
    x : numpy.ndarray
        Consistent values: the given ones, projected.
    names : tuple of str
    """

    t: float
    given: np.ndarray
    constraints: np.ndarray
    values: np.ndarray
    violation: np.ndarray
    consistent: bool
    x: np.ndarray
    names: tuple[str, ...]
    worst: tuple[int, ...]

    def title(self) -> str:
        verdict = "consistent" if self.consistent else f"{plural(len(self.worst), 'constraint')} violated"
        return f"Initial values at t = {self.t:g}: {verdict}"

    def tables(self) -> list[Tabular]:
        rows = [
            (
                combination(row, self.names),
                f"{value:.6g}",
                f"{value + error:.6g}",
                "violated" if i in self.worst else "",
            )
            for i, (row, value, error) in enumerate(zip(self.constraints, self.values, self.violation))
        ]
        if not rows:
            return [Tabular("l", [("there are no constraints: every start is consistent",)])]
        return [Tabular("lrrl", rows, ("constraint", "must be", "given", ""))]

    def words(self) -> str:
        """The violated constraints in one sentence."""
        return "; ".join(
            f"{combination(self.constraints[i], self.names)} = {self.values[i]:.6g} must hold, "
            f"but is {self.values[i] + self.violation[i]:.6g}"
            for i in self.worst
        )

    def require(self, remedy: str) -> None:
        """Refuse values that are not consistent."""
        if not self.consistent:
            raise InconsistentInitialError(
                f"the initial values at t = {self.t:g} are not consistent: {self.words()}. {remedy}",
                self.worst,
                self.violation,
            )

    def __repr__(self) -> str:
        return f"<{self.title()}>"


def consistency(
    t: float,
    given: np.ndarray,
    W: np.ndarray,
    g: np.ndarray,
    x: np.ndarray,
    names: Sequence[str],
    scales: np.ndarray,
    tolerance: float,
) -> Consistency:
    """Hold given values against W x = g."""
    rows, values, chosen = solved(W, g, scales)
    violation = rows @ given - values
    # Zero is compared with the sizes of the other unknowns.
    overall = max(np.max(np.abs(given) / scales), np.max(np.abs(values) / scales[chosen], initial=0.0))
    size = np.abs(rows) @ np.abs(given) + np.abs(values) + _OVERALL * overall * scales[chosen]
    relative = np.abs(violation) / np.maximum(size, np.finfo(float).tiny)
    worst = tuple(int(i) for i in np.argsort(-relative, kind="stable") if relative[i] > tolerance)
    return Consistency(t, given, rows, values, violation, not worst, x, tuple(names), worst)
