"""Result of a fit: estimates, their uncertainty, and quantities that the data do not determine."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.common.tabular import Tabular
from daedal.errors import InvalidProblemError
from daedal.sensitivity.fitting.runs import FitPoint, RunsCompared

_UNDETERMINED = 1e-5  # singular values of the normalised Jacobian below this fraction of the largest count as zero
_TAKES_PART = 1e-3  # smallest reported entry of an undetermined direction, relative to the largest


@dataclass(frozen=True)
class Fit:
    r"""Result of :func:`daedal.fit`.

    Attributes
    ----------
    params : dict
        Estimates by name.
    success : bool
        Whether the search converged.
    message : str
        Reason for termination.
    cost : float
        Half the sum of squares of the weighted residuals.
    residuals : numpy.ndarray
        Weighted residuals, model minus measurement, of all runs in sequence.
    jacobian : numpy.ndarray, shape (residuals, parameters)
        Their derivatives with respect to the estimates.
    degrees_of_freedom : int
        Number of measured values minus number of estimates.
    solutions : tuple of Solution
        Runs with the estimates, at the times of the measurements.
    evaluations, failed : int
        Number of evaluations of all runs, and number of those in which a run failed.
    undetermined : tuple of dict
        Combinations of estimates that the data do not determine: ``{"a": 1.0, "b": -0.5}`` means that a may grow while
        b decreases by half as much, without effect. A combination of one estimate means that it has no influence.
    at_bounds : tuple of str
        Estimates at one of their bounds.

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0}, names=["x"])
    >>> data = {"t": [0.5, 1.0, 1.5], "x": [0.71, 0.49, 0.36]}
    >>> found = daedal.fit(decay, data, ["k"], initial=([1.0], None), t_span=(0.0, 1.5))
    >>> low, high = found.confidence()["k"]
    >>> print(f"{found.params['k']:.3f} in [{low:.2f}, {high:.2f}]", found.success)
    0.694 in [0.65, 0.74] True
    """

    params: dict[str, float]
    success: bool
    message: str
    cost: float
    residuals: np.ndarray = field(repr=False)
    jacobian: np.ndarray = field(repr=False)
    degrees_of_freedom: int
    solutions: tuple[Any, ...] = field(repr=False)
    evaluations: int
    failed: int
    undetermined: tuple[dict[str, float], ...]
    at_bounds: tuple[str, ...]
    experiments: tuple[Any, ...] = field(repr=False)
    logarithmic: tuple[bool, ...] = field(repr=False)
    with_sigma: bool = field(repr=False)
    models: tuple[np.ndarray, ...] = field(repr=False)
    unknowns: tuple[Any, ...] = field(repr=False)

    @classmethod
    def of(cls, comparison: RunsCompared, best: FitPoint, result: Any, interrupted: bool) -> Fit:
        """Result of a search that ended at `best`."""
        unknowns = comparison.unknowns
        values = unknowns.values(best.x)
        jacobian = best.jacobian / unknowns.slopes(best.x)
        numbers = np.array(list(values.values()))
        models = tuple(
            comparison.measured(k, run, sol, numbers, unknowns.quantities(k))[0]
            for k, (run, sol) in enumerate(zip(comparison.runs, best.solutions, strict=True))
        )
        converged = result is not None and result.status > 0
        said = (
            "interrupted; returning the best point so far"
            if interrupted
            else _ENDINGS.get(result.status, result.message)
        )
        return cls(
            params=values,
            success=converged,
            message=f"{said[0].upper()}{said[1:]}.",
            cost=best.cost,
            residuals=best.residuals,
            jacobian=jacobian,
            degrees_of_freedom=best.residuals.size - numbers.size,
            solutions=best.solutions,
            evaluations=comparison.evaluations,
            failed=comparison.failed,
            undetermined=_undetermined(jacobian, numbers, list(values)),
            at_bounds=unknowns.at_bounds(best.x),
            experiments=tuple(comparison.runs),
            logarithmic=tuple(one.logarithmic for one in unknowns.all),
            with_sigma=all(run.with_sigma for run in comparison.runs),
            models=models,
            unknowns=tuple(unknowns.all),
        )

    @property
    def variance(self) -> float:
        r"""Mean square of the weighted residuals, :math:`s^2`; near 1 for the right model and the right `sigma`."""
        return 2.0 * self.cost / self.degrees_of_freedom if self.degrees_of_freedom else np.nan

    @cached_property
    def covariance(self) -> np.ndarray:
        r"""Covariance of estimates: :math:`(J^T J)^{-1}`, times :math:`s^2` without `sigma`; inf if undetermined."""
        names = list(self.params)
        free = [k for k, name in enumerate(names) if not any(name in one for one in self.undetermined)]
        found = np.zeros((len(names), len(names)))
        lost = [k for k in range(len(names)) if k not in free]
        found[lost, lost] = np.inf
        if free:
            lengths = np.linalg.norm(self.jacobian[:, free], axis=0)
            _, sizes, rows = np.linalg.svd(self.jacobian[:, free] / lengths, full_matrices=False)
            inverse = (rows.T / sizes**2) @ rows / np.outer(lengths, lengths)
            found[np.ix_(free, free)] = inverse * (1.0 if self.with_sigma else self.variance)
        return found

    @property
    def stderr(self) -> dict[str, float]:
        """Standard errors of the estimates."""
        return dict(zip(self.params, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    @property
    def correlation(self) -> np.ndarray:
        """Correlation of the estimates; NaN if undetermined."""
        deviations = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore"):
            return self.covariance / np.outer(deviations, deviations)

    def confidence(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Individual confidence intervals of the estimates, by Student's distribution (normal if sigma is given).

        Intervals of parameters on a logarithmic scale are computed on that scale, and remain positive.
        """
        from scipy.special import ndtri, stdtrit  # quantiles without scipy.stats, whose import takes two seconds

        if not 0.0 < level < 1.0:
            raise InvalidProblemError(f"level must lie between 0 and 1, got {level!r}")
        tail = 0.5 + 0.5 * level
        factor = ndtri(tail) if self.with_sigma else stdtrit(max(self.degrees_of_freedom, 1), tail)
        found = {}
        for (name, value), error, log in zip(self.params.items(), self.stderr.values(), self.logarithmic, strict=True):
            reach = factor * error
            if log:
                ratio = np.exp(min(reach / value, 700.0))
                found[name] = (float(value / ratio), float(value * ratio))
            else:
                found[name] = (float(value - reach), float(value + reach))
        return found

    def uncertainty(self, k: int = 0) -> Any:
        """Standard deviations of the solution of run k due to the covariance of the estimates."""
        if not 0 <= k < len(self.solutions):
            raise InvalidProblemError(f"there is no run {k}; there are {len(self.solutions)}, numbered from 0")
        sol = self.solutions[k]
        # an unknown of a single run replaces the shared one of the same quantity
        own = {one.quantity: i for i, one in enumerate(self.unknowns) if one.experiment in (None, k)}
        used = [name for name in sol.sensitivities.names if name in own]
        places = [own[name] for name in used]
        return uncertainty(sol, self.covariance[np.ix_(places, places)], used)

    def plot(self, **options: Any) -> Any:
        """Measurements and model over time; see :func:`daedal.viz.plot_fit`."""
        from daedal.viz.ensemble_plot import plot_fit

        return plot_fit(self, **options)

    def plot_residuals(self, **options: Any) -> Any:
        """Weighted residuals over time and their distribution; see :func:`daedal.viz.plot_fit_residuals`."""
        from daedal.viz.ensemble_plot import plot_fit_residuals

        return plot_fit_residuals(self, **options)

    def table(self) -> Tabular:
        """Estimates, standard errors and 95 % intervals."""
        limits = self.confidence()
        rows = [
            (name, f"{value:.6g}", f"{self.stderr[name]:.2g}", f"{limits[name][0]:.6g}", f"{limits[name][1]:.6g}")
            for name, value in self.params.items()
        ]
        return Tabular("lrrrr", rows, ("parameter", "estimate", "std. error", "95 % from", "to"), indent=2)

    def __str__(self) -> str:
        lines = [
            f"Fit of {_parameters(len(self.params))} to {self.residuals.size} values of {_runs(len(self.experiments))}",
            str(self.table()),
            f"  sum of squares {2.0 * self.cost:.6g}, {self.degrees_of_freedom} degrees of freedom, "
            f"root mean square {np.sqrt(self.variance):.3g}",
        ]
        for one in self.undetermined:
            lines.append(f"  Not determined by the data: {_in_words(one)}")
        for name in self.at_bounds:
            lines.append(
                f"  {name} is at a bound: the data favour a value beyond it, and its confidence interval is unreliable"
            )
        strong = self._strongest()
        if strong:
            lines.append(f"  {strong}")
        lines.append(f"  {self.message} {self.evaluations} evaluations{_failures(self.failed)}.")
        return "\n".join(lines)

    def _strongest(self) -> str:
        """The most strongly correlated pair of estimates, if it is nearly indistinguishable."""
        found = np.nan_to_num(np.abs(np.triu(self.correlation, 1)))
        i, j = np.unravel_index(int(found.argmax()), found.shape)
        names = list(self.params)
        if found[i, j] < 0.98:
            return ""
        return f"{names[i]} and {names[j]} are nearly indistinguishable: correlation {self.correlation[i, j]:.4f}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


_ENDINGS = {
    0: "the limit of evaluations was reached; returning the best point so far",
    1: "converged: the gradient vanishes",
    2: "converged: the sum of squares no longer changes",
    3: "converged: the parameters no longer change",
    4: "converged: sum of squares and parameters no longer change",
}


def _undetermined(jacobian: np.ndarray, values: np.ndarray, names: list[str]) -> tuple[dict[str, float], ...]:
    """Directions in the kernel of the Jacobian: first single columns, then combinations."""
    lengths = np.linalg.norm(jacobian, axis=0)
    sizes = np.where(values == 0.0, 1.0, np.abs(values))
    none = lengths * sizes <= 1e-12 * max(float((lengths * sizes).max()), 1e-300)
    found = [{names[k]: 1.0} for k in np.flatnonzero(none)]
    seen = np.flatnonzero(~none)
    if seen.size:
        _, strength, rows = np.linalg.svd(jacobian[:, seen] / lengths[seen], full_matrices=False)
        for row in rows[strength < _UNDETERMINED * strength[0]]:
            direction = row / lengths[seen]
            relative = np.abs(direction) / sizes[seen]
            shown = np.flatnonzero(relative > _TAKES_PART * relative.max())
            first = direction[shown[0]]
            found.append({names[seen[k]]: float(direction[k] / first) for k in shown})
    return tuple(found)


def _in_words(combination: dict[str, float]) -> str:
    if len(combination) == 1:
        return f"{next(iter(combination))} has no influence on the measured quantities"
    moved = ", ".join(f"{name} by {factor:+.3g}" for name, factor in combination.items())
    return f"the combination that changes {moved}"


def _parameters(count: int) -> str:
    return "one parameter" if count == 1 else f"{count} parameters"


def _runs(count: int) -> str:
    return "one run" if count == 1 else f"{count} runs"


def _failures(count: int) -> str:
    return f", in {count} of which a run failed" if count else ""


# --- propagation of uncertain parameters, to first order --------------------------------------------------------------


@dataclass(frozen=True)
class Uncertainty:
    """Standard deviations of a solution.

    Attributes
    ----------
    solution : Solution
        The solution with sensitivities.
    std : numpy.ndarray
        Standard deviation of each entry of ``solution.y``, in its layout.

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 2.0})
    >>> sol = daedal.solve(decay, (0.0, 1.0), ([1.0], None), sensitivities=["k"])
    >>> band = daedal.sensitivity.uncertainty(sol, [[0.01]])
    >>> print(band.std[0, -1].round(4))
    0.0135
    """

    solution: Any
    std: np.ndarray

    def __getitem__(self, name: str) -> np.ndarray:
        """The standard deviation of a variable by its name."""
        names = list(self.solution.names)
        if name not in names:
            raise unknown_name(name, names)
        return self.std[names.index(name)]

    def plot(self, *names: str, level: float = 0.95, **options: Any) -> Any:
        """Curves with bands; see :func:`daedal.viz.plot_uncertainty`."""
        from daedal.viz.ensemble_plot import plot_uncertainty

        return plot_uncertainty(self, *names, level=level, **options)


def uncertainty(solution: Any, covariance: Any, parameters: Any = None) -> Uncertainty:
    r"""First-order effect of uncertain parameters on a solution: :math:`\mathrm{Cov}\, y = S\, C\, S^T`.

    Parameters
    ----------
    solution : Solution
        Result of ``solve(..., sensitivities=[...])``.
    covariance : array (m, m), or mapping
        Covariance of the parameters, in the order of `parameters`; or their standard deviations by name, if they are
        independent.
    parameters : sequence of str, optional
        Names of the parameters; by default all with sensitivities in the solution.

    Returns
    -------
    Uncertainty

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0}, names=["x"])
    >>> sol = daedal.solve(decay, (0.0, 1.0), ([1.0], None), sensitivities=["k"], rtol=1e-8)
    >>> band = daedal.sensitivity.uncertainty(sol, {"k": 0.1})  # d x / d k = -t exp(-k t)
    >>> print(f"{band['x'][-1]:.4f}")
    0.0368
    """
    if getattr(solution, "sensitivities", None) is None:
        raise InvalidProblemError("the solution has no sensitivities; call solve with sensitivities=[...]")
    known = list(solution.sensitivities.names)
    if isinstance(covariance, dict):
        parameters = list(covariance)
        covariance = np.diag(np.square(np.array(list(covariance.values()), dtype=float)))
    names = known if parameters is None else [str(name) for name in parameters]
    missing = [name for name in names if name not in known]
    if missing:
        raise InvalidProblemError(f"no sensitivity to {', '.join(missing)}; there are {', '.join(known)}")
    matrix = np.asarray(covariance, dtype=float)
    if matrix.shape != (len(names), len(names)):
        raise InvalidProblemError(f"covariance must have shape {(len(names),) * 2}, got {matrix.shape}")
    if not np.allclose(matrix, matrix.T, rtol=1e-8, equal_nan=True):
        raise InvalidProblemError("covariance must be symmetric")
    blocks = np.array([np.asarray(solution.sensitivity(name)) for name in names])
    with np.errstate(invalid="ignore"):
        variance = np.einsum("ant,ab,bnt->nt", blocks, matrix, blocks)
    return Uncertainty(solution, np.sqrt(np.maximum(variance, 0.0)))
