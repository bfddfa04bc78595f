"""Public function: validates arguments, runs SciPy's least squares, returns estimates with uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

import daedal
from daedal.driver.options import SolverOptions, takes
from daedal.errors import InvalidProblemError
from daedal.hybrid.mode_state import StateForm
from daedal.problems.problem_sources import Problem
from daedal.sensitivity.fitting.fit_result import Fit
from daedal.sensitivity.fitting.runs import FitPoint, RunsCompared, ShotPieces
from daedal.sensitivity.fitting.unknowns import Unknowns, measurements

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_LOSSES = ("linear", "soft_l1", "huber", "cauchy", "arctan")
_ENOUGH = 1e-10  # relative changes of cost, unknowns and gradient at convergence
# ratio of the standard deviation of a normal distribution to its median absolute value: P. J. Huber, Robust Statistics,
# 1981
_TO_DEVIATION = 1.4826
_ROUNDS = 3  # number of robust searches, each scaled by the spread of the previous residuals
_MODELS = (
    daedal.ImplicitDAE,
    daedal.SemiExplicitDAE,
    daedal.SecondOrderDAE,
    daedal.MechanicalSystem,
    daedal.hybrid.HybridProblem,
)


@takes(SolverOptions)
def fit(
    problem: Problem,
    data: Any,
    parameters: str | Sequence[str] | Mapping[str, ArrayLike],
    *,
    initial: Any = None,
    t_span: tuple[float, float] | None = None,
    sigma: ArrayLike | Mapping[str, ArrayLike] | None = None,
    bounds: Mapping[str, tuple[float | None, float | None]] | None = None,
    log: bool | str | Sequence[str] | None = None,
    outputs: Mapping[str, Callable[..., Any]] | None = None,
    loss: str = "linear",
    f_scale: float | None = None,
    shooting: int | None = None,
    max_evaluations: int = 200,
    progress: bool = False,
    **options: Unpack[SolverOptions],
) -> Fit:
    r"""Estimate parameters from measurements by least squares,

    .. math::

        \min_p \tfrac12 \sum_{i} \Big(\frac{x_i(t_i; p) - \bar x_i}{\sigma_i}\Big)^2,

    with derivatives from the sensitivities :math:`\partial x / \partial p` of the solution.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, SecondOrderDAE, MechanicalSystem, HybridProblem, ...
        The model, with ``params``. Models with modes, such as :class:`Friction`, are integrated through their
        transitions.
    data : mapping, pandas.DataFrame, or list of Experiment
        Measured values by name, with the times as ``"t"``; NaN or None for missing values. Several runs, with separate
        initial values, inputs and deviations, as a list of :class:`Experiment`.
    parameters : names, or mapping of names to starting values
        Quantities to estimate: parameters, and initial values such as ``"x(0)"``; the name of a vector selects all of
        its numbers. Starting values are those of the problem by default.
    initial, t_span
        As for :func:`daedal.solve`; the interval is that of the data by default.
    sigma : float, mapping or array, optional
        Standard deviations of the measurements: for all, by name, or for each value. Without them all are assumed
        equal, and estimated from the residuals.
    bounds : mapping, optional
        ``{name: (low, high)}``, None for no bound.
    log : True or names, optional
        Parameters that are searched for on a logarithmic scale, on which their confidence intervals are also computed.
    outputs : mapping, optional
        Measured quantities that are not variables: ``{name: function(t, y)}`` or ``function(t, y, p)``, y the state;
        for a mechanism ``function(t, q, v, p)``, for a semi-explicit problem ``function(t, y, z, p)``. Arguments are
        recognised by name, as for an :class:`Event`.
    loss : str
        As for :func:`scipy.optimize.least_squares`; "soft_l1" and others are robust against outliers. Covariances do
        not account for it.
    f_scale : float
        The weighted residual above which `loss` treats a value as an outlier: 1 if `sigma` is given, otherwise by
        default the spread of the residuals, 1.4826 times their median absolute value.
    shooting : int, optional
        Number of pieces for multiple shooting, for unstable or chaotic models: every piece has separate initial values,
        and gaps between them are closed during the search.
    max_evaluations : int
        Maximum number of evaluations of all runs.
    progress : bool
        Show a progress bar with the sum of squares.
    **options
        For the runs, as for :func:`daedal.prepare`: rtol, atol, method and so on.

    Returns
    -------
    Fit
        ``success`` is false if the search did not converge or was interrupted; the result is then the best point found.

    Notes
    -----
    Values for which a run fails do not end the search; they receive a large residual. The covariance is
    :math:`s^2 (J^T J)^{-1}`, with :math:`s^2` the mean square of the residuals, or 1 if `sigma` is given; combinations
    of parameters that the data do not determine are reported. Sensitivities: BCP section 7.5; multiple shooting: H. G.
    Bock's boundary value approach, 1987.

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0}, names=["x"])
    >>> t = np.linspace(0.0, 2.0, 9)
    >>> found = daedal.fit(decay, {"t": t, "x": 3.0 * np.exp(-0.7 * t)}, ["k", "x(0)"], initial=([2.0], None))
    >>> {name: round(value, 5) for name, value in found.params.items()}
    {'k': 0.7, 'x(0)': 3.0}
    """
    if not isinstance(problem, _MODELS):
        raise InvalidProblemError(
            "fit supports ODE, MassMatrixDAE, ImplicitDAE, SemiExplicitDAE, SecondOrderDAE, MechanicalSystem and "
            f"HybridProblem, not {type(problem).__name__}"
        )
    outputs = dict(outputs or {})
    for name, function in outputs.items():
        if not callable(function):
            raise InvalidProblemError(f"outputs[{name!r}] must be a function of t and y, got {type(function).__name__}")
    if loss not in _LOSSES:
        raise InvalidProblemError(f"unknown loss {loss!r}; known: {', '.join(_LOSSES)}")
    runs = measurements(data, _known(problem, outputs), initial, t_span, sigma)
    unknowns = Unknowns(problem, parameters, bounds, log, runs)
    count = sum(run.count for run in runs)
    if count < len(unknowns.all):
        raise InvalidProblemError(
            f"parameters: {len(unknowns.all)} numbers cannot be estimated from {count} measured values"
        )
    comparison = RunsCompared(problem, runs, unknowns, outputs, dict(options))
    search = _FitSearch(comparison, unknowns, loss, f_scale, max_evaluations)
    with _FitBar(progress) as bar:
        comparison.on_point = bar
        x = unknowns.start()
        interrupted = False
        try:
            if shooting is not None:
                pieces = ShotPieces(problem, comparison, shooting, dict(options))
                x, interrupted = pieces.shoot(x)
            comparison.at(x)
            if not interrupted:
                search.run(x)
        except KeyboardInterrupt:
            interrupted = True
            if comparison.best is None:
                raise
    best = comparison.best
    assert best is not None
    if search.result is not None and loss != "linear":
        best = comparison.at(search.result.x)
    return Fit.of(comparison, best, search.result, interrupted)


class _FitSearch:
    """SciPy's least-squares search. A robust search without a scale follows a plain one that estimates the scale."""

    def __init__(self, comparison: RunsCompared, unknowns: Unknowns, loss: str, f_scale: float | None, most: int):
        self._comparison, self._unknowns, self._most = comparison, unknowns, most
        self._loss, self._scale = loss, f_scale
        if f_scale is None and (loss == "linear" or all(run.with_sigma for run in comparison.runs)):
            self._scale = 1.0
        self.result: Any = None

    def run(self, x: np.ndarray) -> None:
        if self._scale is not None:
            self.result = self._least_squares(x, self._loss, self._scale)
            return
        found = self._least_squares(x, "linear", 1.0)
        for _ in range(_ROUNDS):  # outliers affect the first estimate of the spread, and the next estimates less
            spread = _TO_DEVIATION * float(np.median(np.abs(found.fun)))
            # most residuals vanish, so that no scale can be estimated
            if spread <= _ENOUGH * float(np.abs(found.fun).max()):
                break
            found = self._least_squares(found.x, self._loss, spread)
        self.result = found

    def _least_squares(self, x: np.ndarray, loss: str, scale: float) -> Any:
        from scipy.optimize import least_squares

        return least_squares(
            self._comparison.residuals,
            x,
            self._comparison.jacobian,
            bounds=self._unknowns.bounds(),
            x_scale="jac",
            loss=loss,
            f_scale=scale,
            xtol=_ENOUGH,
            ftol=_ENOUGH,
            gtol=_ENOUGH,
            max_nfev=self._most,
        )


def _known(problem: Any, outputs: Mapping) -> list[str]:
    if isinstance(problem, daedal.hybrid.HybridProblem):
        labels = [StateForm(problem.modes[mode].problem).labels for mode in problem.mode_names]
        return [*dict.fromkeys(name for mode in labels for name in mode), *map(str, outputs)]
    names = list(StateForm(problem).labels)
    named = getattr(problem, "constraint_names", None)
    count = getattr(problem, "n_lambda", 0)
    multipliers = [f"lambda_{name}" for name in named] if named else [f"lambda[{i}]" for i in range(count)]
    return [*names, *multipliers, *map(str, outputs)]


class _FitBar:
    """A progress bar that counts evaluations and shows the cost, if requested."""

    def __init__(self, wanted: bool):
        self._bar: Any = None
        if wanted:
            from tqdm import tqdm

            self._bar = tqdm(desc="fit", unit=" evaluations")

    def __call__(self, point: FitPoint) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str("failed" if point.failure else f"sum of squares {2.0 * point.cost:.4g}")
            self._bar.update()

    def __enter__(self) -> _FitBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
