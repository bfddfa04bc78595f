"""Comparison of given initial values with nearby consistent ones, and the error that lists the required changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from daedal.analysis.wording import FROM_ZERO, MOST_NAMED, listing, number
from daedal.driver.request import Request
from daedal.errors import InconsistentInitialError
from daedal.methods.step_size import first_step_size
from daedal.problems.checks import check_tolerances

_TOLERATED = 0.33  # largest weighted correction of given values that is accepted, as in Newton's convergence test
_ROUNDOFF = 1e-12  # relative size below which a change counts as 0
_VIOLATED = 1e-3  # residuals above this fraction of the largest one are named


@dataclass(frozen=True)
class GivenStart:
    """y and y' at the start, as given (NaN if unknown) and corrected.

    Changes of y' are weighted by their effect on y during the first step, as for problems solved directly.
    """

    problem: Any
    request: Request
    y: np.ndarray
    yp: np.ndarray
    consistent_y: np.ndarray
    consistent_yp: np.ndarray

    def is_tolerated(self) -> bool:
        """Whether the given values are consistent within the tolerances, or may be corrected."""
        size = float(np.sqrt(np.mean(self._ratios().sum(axis=0) ** 2)))
        return self.request.settings.correct_initial or size <= _TOLERATED

    def refuse(self, words: Sequence[str], residual: np.ndarray, rows: Sequence[int]) -> NoReturn:
        """Raise InconsistentInitialError with violated equations, their residuals and the required changes."""
        order = np.argsort(-np.abs(residual), kind="stable")
        violated = [int(k) for k in order if abs(residual[k]) > _VIOLATED * abs(residual[order[0]])]
        named = listing((f"{words[k]} ({number(residual[k])})" for k in violated[:MOST_NAMED]), len(violated))
        told = f"Violated {FROM_ZERO}, with the residual that should be 0: {named}.\n" if violated else ""
        message = (
            f"The initial values do not satisfy the equations and their derivatives at "
            f"t = {number(self.request.span[0])}.\n{told}Required changes, for example: {self._changes()}.\n"
            "Remedy: correct these values, or pass correct_initial=True."
        )
        raise InconsistentInitialError(message, tuple(dict.fromkeys(rows[k] for k in violated)), residual)

    def _ratios(self) -> np.ndarray:
        """Changes of y and y', in tolerances."""
        settings, known = self.request.settings, np.isfinite(self.y)
        y, yp = np.where(known, self.y, 0.0), np.where(np.isfinite(self.yp), self.yp, 0.0)
        rtol, atol = check_tolerances(y.size, settings.rtol, settings.atol)
        weights = np.maximum(rtol * np.abs(y) + atol, 1e-300)
        h = settings.first_step or abs(first_step_size(*self.request.span, y, yp, rtol, atol, settings.max_step))
        changes = [self.consistent_y - self.y, h * (self.consistent_yp - self.yp)]
        return np.abs(np.nan_to_num(changes, nan=0.0)) / weights

    def _changes(self) -> str:
        label, n, ratios = self.problem.label, self.y.size, self._ratios().ravel()
        given, exact = (np.concatenate(pair) for pair in ((self.y, self.yp), (self.consistent_y, self.consistent_yp)))
        exact = np.where(np.abs(exact) <= _ROUNDOFF * np.abs(given), 0.0, exact)
        moved = [int(k) for k in np.argsort(-ratios, kind="stable") if ratios[k] > 1.0] or [int(np.argmax(ratios))]
        return listing(
            f"{label(k % n)}{chr(39) * (k // n)} from {number(given[k])} to {number(exact[k])}"
            for k in moved[:MOST_NAMED]
        )
