"""Estimates of the global error of every variable, from a second, sharper run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from daedal.common.messages import unknown_name
from daedal.common.tabular import Tabular
from daedal.driver.options import DAEOptions, takes
from daedal.driver.request import checked_settings
from daedal.driver.solving import solve
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.hybrid.hybrid_problem import HybridProblem
from daedal.problems.problem_sources import Problem, ProblemSource, is_source, problem_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Certificate", "certify"]

_SHARPER = 1e-2  # tolerances of the second run, relative to those of the first
_SHARPEST = 1e-13  # smallest relative tolerance of the second run
_SAFETY = 2.0
# number of output points on either side whose differences are included in the maximum, since differences change sign
_NEIGHBOURS = 3
_ROUND_OFF = 16.0 * float(np.finfo(float).eps)  # added to each estimate, relative to the largest value of the variable
_KINDS = ("y", "q", "v", "r", "w", "lam", "x", "xp", "z")  # quantities whose errors are estimated


@dataclass(frozen=True, eq=False)
class Certificate:
    """A solution with estimates of its global errors. Created by :func:`certify`.

    Attributes
    ----------
    solution : Solution
        The solution with the requested tolerances.
    sharper : Solution
        The solution of the second run.
    t : numpy.ndarray
        The output points of `solution` that both runs reached.
    errors : dict
        For each variable the estimated absolute errors at `t`. They are estimates, not bounds.
    rtol, atol : numpy.ndarray
        Tolerances of the first run.
    fixed_step : float or None
        Step size of the first run if it is constant, otherwise None.

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ODE(lambda t, y: [-y[0]], 1, names=["x"])
    >>> found = daedal.analysis.certify(decay, (0.0, 2.0), [1.0], rtol=1e-6)
    >>> error = abs(found.solution["x"] - np.exp(-found.t))
    >>> print(bool((found["x"] >= error).all()), found["x"].max() < 1e-4)
    True True
    """

    solution: Any
    sharper: Any
    t: np.ndarray
    errors: dict[str, np.ndarray]
    rtol: np.ndarray
    atol: np.ndarray
    fixed_step: float | None = None

    def __getitem__(self, name: str) -> np.ndarray:
        """Estimated absolute errors of a variable at `t`."""
        if name not in self.errors:
            raise unknown_name(name, self.errors)
        return self.errors[name]

    def amplification(self, name: str) -> np.ndarray:
        """The estimated errors of a variable in units of its tolerance, ``rtol |y| + atol``.

        Large values are typical of ill-conditioned problems, such as chaotic ones, and of long intervals.
        """
        values, k = np.abs(self.solution[name][: self.t.size]), [*self.errors].index(name)
        rtol, atol = (x[k] if k < x.size > 1 else x.flat[0] for x in (self.rtol, self.atol))
        tolerance = rtol * np.maximum.accumulate(values) + atol
        return self[name] / np.where(tolerance > 0.0, tolerance, np.nan)

    @cached_property
    def _table(self) -> Tabular:
        rows = []
        for name, error in self.errors.items():
            largest = float(np.max(np.abs(self.solution[name][: self.t.size]), initial=0.0))
            most, growth = float(np.max(error, initial=0.0)), self.amplification(name)
            digits = f"{max(np.log10(largest / most), 0.0):.1f}" if largest > 0.0 < most else ""
            rows.append([name, *(f"{x:.2g}" for x in (largest, most, error[-1], np.max(growth))), digits])
        header = ("variable", "largest value", "largest error", "at the end", "in tolerances", "digits")
        return Tabular("lrrrrr", rows, header)

    def __str__(self) -> str:
        return f"{self._heading()}\n{self._table}"

    def _repr_html_(self) -> str:
        from markupsafe import Markup

        return str(Markup("<div><p>{}</p>{}</div>").format(self._heading(), self._table))

    def _heading(self) -> str:
        setting = f"rtol = {np.min(self.rtol):g}" if self.fixed_step is None else f"steps of {self.fixed_step:g}"
        other = "sharper tolerances" if self.fixed_step is None else "half the step"
        return (
            f"Estimated global errors up to t = {self.t[-1]:g} with {setting}, by comparison with a run at {other} "
            f"({self.solution.stats.steps} and {self.sharper.stats.steps} steps)."
        )

    def plot(self, *, title: str | None = None, save: str | Path | None = None, pyplot: bool = True) -> Any:
        """Plot the estimated errors over time on a logarithmic scale; returns the figure."""
        from daedal.viz.figure import new_figure

        with new_figure((7.0, 3.6), pyplot, save, title) as figure:
            axes = figure.add_subplot()
            for name, error in self.errors.items():
                axes.semilogy(self.t, np.maximum(error, np.finfo(float).tiny), label=name)
            axes.set(xlabel="t", ylabel="estimated error")
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        return figure


@takes(DAEOptions)
def certify(
    problem: Problem | ProblemSource[Problem], t_span: ArrayLike, initial: Any, **options: Unpack[DAEOptions]
) -> Certificate:
    """Solve a problem and estimate the global error of every variable.

    The problem is solved twice, the second time with a hundredth of the tolerances (or half the fixed step), and the
    differences at the output points are multiplied by a safety factor. In contrast to the tolerances, which control the
    error of each step, the result includes the growth of errors along the solution.

    Parameters
    ----------
    problem : problem
        As for :func:`daedal.solve`, except that modes must have the same variables.
    t_span, initial
        As for :func:`daedal.solve`.

    {options}

    Returns
    -------
    Certificate
        ``found.solution``, and ``found[name]``, the estimated errors of a variable.

    Examples
    --------
    The error of Lorenz' equations grows exponentially:

    >>> import daedal
    >>> def lorenz(t, y):
    ...     return [10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
    >>> problem = daedal.ODE(lorenz, 3, names="x y z")
    >>> found = daedal.analysis.certify(problem, (0.0, 10.0), [1.0, 1.0, 1.0], rtol=1e-8)
    >>> print(found["x"][0] < 1e-9 < 1e-7 < found["x"][-1] < 1.0)
    True
    """
    given: dict[str, Any] = dict(options)
    settings = checked_settings(**{k: v for k, v in given.items() if k not in _OF_RUNS})
    solved = problem_of(problem) if is_source(problem) else problem
    if isinstance(solved, HybridProblem) and not hasattr(solved, "n"):  # Filippov's modes have the same variables
        raise InvalidProblemError(
            f"certify does not support a {type(problem).__name__} with modes, which have different variables. Remedy: "
            "compare daedal.solve(...) with a run whose rtol and atol are a hundredth"
        )
    solution = solve(problem, t_span, initial, **given)
    rtol, atol = (np.atleast_1d(np.asarray(x, dtype=float)) for x in (settings.rtol, settings.atol))
    again = {**given, "t_eval": _increasing(solution.t), "dense_output": False}
    if settings.fixed_step is not None:
        again["fixed_step"], weight = 0.5 * settings.fixed_step, 2.0
    else:
        if np.min(rtol) < _SHARPEST / _SHARPER:
            raise InvalidProblemError(
                f"rtol = {np.min(rtol):g} leaves no room for a sharper run. Remedy: use rtol={_SHARPEST / _SHARPER:g} "
                "or larger"
            )
        again |= {"rtol": _SHARPER * np.asarray(settings.rtol), "atol": _SHARPER * np.asarray(settings.atol)}
        weight = 1.0
    try:
        sharper = solve(problem, t_span, initial, **again)
    except IntegrationError as error:
        raise IntegrationError(
            "the errors cannot be estimated, since the second run, with sharper tolerances, failed; the solution of "
            f"the first is attached. {error}",
            solution,
        ) from error
    return Certificate(solution, sharper, *_compared(solution, sharper, weight), rtol, atol, settings.fixed_step)


_OF_RUNS = ("t_eval", "t_stop", "breakpoints", "inputs", "hold", "params", "progress", "sampled")


def _increasing(t: np.ndarray) -> np.ndarray:
    """Output points without repetitions."""
    return t[np.concatenate([[True], np.diff(t) != 0.0])] if t.size else t


def _compared(solution: Any, sharper: Any, weight: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The output points that both runs reached, and the estimated errors there."""
    sign = -1.0 if solution.t.size > 1 and solution.t[-1] < solution.t[0] else 1.0
    places = np.searchsorted(sign * sharper.t, sign * solution.t)
    common = solution.t.size if sharper.t.size else 0
    while common and (places[common - 1] >= sharper.t.size or sharper.t[places[common - 1]] != solution.t[common - 1]):
        common -= 1  # a terminal event ended the second run earlier
    others = {quantity.kind: quantity for quantity in sharper.quantities()}
    errors: dict[str, np.ndarray] = {}
    for quantity in solution.quantities():
        if quantity.kind not in _KINDS or quantity.kind not in others:
            continue
        values = np.asarray(quantity.rows())[:, :common]
        other = np.asarray(others[quantity.kind].rows())[:, places[:common]]
        for name, own, reference in zip(quantity.names, values, other, strict=True):
            floor = _ROUND_OFF * np.max(np.abs(reference), initial=0.0)
            errors[name] = _SAFETY * weight * _local_maximum(np.abs(own - reference)) + floor
    return solution.t[:common], errors


def _local_maximum(values: np.ndarray) -> np.ndarray:
    """The values, each replaced by the maximum over itself and its neighbours."""
    padded = np.pad(values, _NEIGHBOURS, mode="edge")
    return np.max([padded[k : k + values.size] for k in range(2 * _NEIGHBOURS + 1)], axis=0)
