"""Start of reduced problems: consistent initial values, comparison with given values, options per unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from daedal.analysis.probe import Probe
from daedal.analysis.wording import FROM_ZERO, MOST_NAMED, listing, number
from daedal.driver.request import Request, Settings
from daedal.errors import InconsistentInitialError
from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.index.reduction.selection import lift
from daedal.index.structure.derivative_array import equation_in_words
from daedal.methods.step_size import first_step_size
from daedal.problems import SemiExplicitDAE
from daedal.problems.checks import check_mask, check_tolerances

_HELD = 1e-13  # largest residual, relative to the terms of the equations, of values that satisfy them
_TOLERATED = 0.33  # largest weighted correction of given values that is accepted, as in Newton's convergence test
_ROUNDOFF = 1e-12  # relative size below which a change counts as 0
_VIOLATED = 1e-3  # residuals above this fraction of the largest one are named
_FOR_HIGHER_INDEX = ("variable_index", "newton_weights", "row_scaling")


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


def given_values(problem: Any, request: Request) -> tuple[np.ndarray, np.ndarray | None]:
    """y and, if given, y' at the start; NaN where unknown."""
    y, yp = request.stacked(problem)
    if isinstance(problem, SemiExplicitDAE) and request.initial[1] is None:
        y = np.concatenate([y[: problem.n_y], np.full(problem.n_z, np.nan)])
    return y, yp


def consistent_start(reduction: ReducedProblem, request: Request, y: np.ndarray, yp: np.ndarray | None) -> np.ndarray:
    """All unknowns u at the start, which satisfy all equations.

    Raises InconsistentInitialError if given values would change and correction is not allowed. If derivatives are not
    given, values of unknowns that are not states, such as multipliers, are guesses.
    """
    t, n = request.span[0], y.size
    u = lift(reduction, t, y, yp)
    guess = (
        reduction.is_highest[:n] if yp is None else np.zeros(n, dtype=bool)
    )  # without y', values of highest derivatives are guesses
    around = u.copy()
    slopes, given_slopes = np.full((2, n), np.nan)
    if yp is not None and not _hold(reduction.original, t, y, yp):
        columns = reduction.slope_columns
        occurs = columns >= 0
        slopes[occurs], given_slopes[occurs] = u[columns[occurs]], yp[occurs]
        around[columns[occurs]] = yp[occurs]
    values = np.where(guess, np.nan, y)
    around[:n] = np.where(np.isfinite(values), values, u[:n])
    start = GivenStart(reduction.original, request, values, given_slopes, u[:n], slopes)
    if not start.is_tolerated():
        kept = reduction.prolongation.kept
        residual = reduction.constraints.values(t, around)[0]
        start.refuse([equation_in_words(*row) for row in kept], residual, [i for i, _ in kept])
    return u


def _hold(problem: Any, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
    """Whether the equations are satisfied to round-off, relative to their terms."""
    probe = Probe(problem)
    return bool(np.all(np.abs(probe.residual(t, y, yp)) <= _HELD * probe.terms(t, y, yp)))


# --- options with one value per unknown -------------------------------------------------------------------------------


def option_for_higher_index(settings: Settings) -> str | None:
    """The name of an option, if given, that scales by powers of the step size for direct solution at higher index."""
    return next((name for name in _FOR_HIGHER_INDEX if _given(settings, name, None) is not None), None)


def inside_options(reduction: ReducedProblem, settings: Settings) -> Settings:
    problem, masks = reduction.original, {}
    nonnegative = _given(settings, "nonnegative", False)
    if nonnegative is not False:
        # additional unknowns of the reduced problem may be negative
        further = np.zeros(reduction.problem.n - reduction.n, dtype=bool)
        masks["nonnegative"] = np.append(_mask(nonnegative, problem, "nonnegative"), further)
    tested = _given(settings, "error_test", "auto")
    if not isinstance(tested, str):  # a derivative is tested together with its unknown
        included = reduction.tolerance(_mask(tested, problem, "error_test").astype(float))
        masks["error_test"] = reduction.inside(included) > 0.0
    if settings.options:
        return replace(settings, options=settings.options | masks)
    return replace(settings, method=replace(settings.method, **masks)) if masks else settings


def _given(settings: Settings, name: str, default: Any) -> Any:
    own = default if isinstance(settings.method, str) else getattr(settings.method, name, default)
    return settings.options.get(name, own)


def _mask(given: Any, problem: Any, name: str) -> np.ndarray:
    if isinstance(given, bool):
        return np.full(problem.n, given)
    return check_mask(given, problem.n, name, tuple(problem.label(i) for i in range(problem.n)))
