"""The public function: arguments are checked, least squares are found by SciPy, the result says how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import daedal
from daedal.errors import InvalidProblemError
from daedal.fitting.experiment import measurements
from daedal.fitting.residuals import Comparison, Point
from daedal.fitting.result import Fit
from daedal.fitting.shooting import shoot
from daedal.fitting.unknowns import Unknowns

_LOSSES = ("linear", "soft_l1", "huber", "cauchy", "arctan")
_ENOUGH = 1e-10  # relative changes of cost, unknowns and gradient that end the search


def fit(
    problem: Any,
    data: Any,
    parameters: Any,
    *,
    initial: Any = None,
    t_span: tuple[float, float] | None = None,
    sigma: Any = None,
    bounds: Mapping[str, tuple] | None = None,
    log: Any = None,
    outputs: Mapping[str, Callable] | None = None,
    loss: str = "linear",
    f_scale: float = 1.0,
    shooting: int | None = None,
    max_evaluations: int = 200,
    progress: bool = False,
    rtol: float = 1e-7,
    atol: Any = 1e-9,
    **options: Any,
) -> Fit:
    r"""Estimate parameters from measurements by least squares,

    .. math::

        \min_p \tfrac12 \sum_{i} \Big(\frac{x_i(t_i; p) - \bar x_i}{\sigma_i}\Big)^2,

    with derivatives from the sensitivities :math:`\partial x / \partial p` of the solution.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, MechanicalSystem, ...
        The model, stated with ``params``.
    data : mapping, pandas.DataFrame, or list of Experiment
        Measured values by name, with the times as ``"t"``; NaN or None where nothing was measured. Several runs, with
        initial values, inputs and deviations of their own, as a list of :class:`Experiment`.
    parameters : names, or mapping of names to starting values
        What is to be found: parameters, and initial values such as ``"x(0)"``. Starts are those of the problem by
        default.
    initial, t_span
        As for :func:`daedal.solve`; the interval is that of the data by default.
    sigma : float, mapping or array, optional
        Standard deviations of the measurements: for all, by name, or for each value. Without them all are taken for
        equal, and their size is estimated from the residuals.
    bounds : mapping, optional
        ``{name: (low, high)}``, None for no bound.
    log : True or names, optional
        Parameters that are searched for, and whose confidence intervals are formed, on a logarithmic scale.
    outputs : mapping, optional
        Measured quantities that are no variables: ``{name: function(t, y)}`` or ``function(t, y, p)``, y the state.
    loss : str
        As for :func:`scipy.optimize.least_squares`; "soft_l1" and others are robust against outliers. Covariances do
        not know of it.
    f_scale : float
        The weighted residual from which on `loss` counts a value as an outlier; give it, or `sigma`.
    shooting : int, optional
        Multiple shooting with so many pieces, for unstable or chaotic models: every piece has initial values of its
        own, and gaps between them are closed in the course of the search.
    max_evaluations : int
        Limit for the number of times that all runs are computed.
    progress : bool
        Show a progress bar with the sum of squares.
    rtol, atol, **options
        Of the runs; as for :func:`daedal.solve`.

    Returns
    -------
    Fit
        With ``success`` false where the search did not end, or was interrupted: it holds the best point so far.

    Notes
    -----
    Runs that fail for some values do not end the search: such values count as bad. The covariance is
    :math:`s^2 (J^T J)^{-1}`, with :math:`s^2` the mean square of the residuals, or 1 where `sigma` is given;
    combinations of parameters to which the data say nothing are named. BCP section 7.5 has the sensitivities; H. G.
    Bock's boundary value approach, 1987, the pieces.

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
    from scipy.optimize import least_squares

    if not isinstance(problem, (daedal.ImplicitDAE, daedal.SemiExplicitDAE, daedal.MechanicalSystem)):
        raise InvalidProblemError(
            "fit is for an ODE, a MassMatrixDAE, an ImplicitDAE, a SemiExplicitDAE or a MechanicalSystem, not for a "
            f"{type(problem).__name__}; for models with modes give scipy.optimize.least_squares residuals of whole runs"
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
            f"parameters: {len(unknowns.all)} numbers cannot be found from {count} measured values"
        )
    comparison = Comparison(problem, runs, unknowns, outputs, {"rtol": rtol, "atol": atol, **options})
    with _Bar(progress) as bar:
        comparison.told = bar
        x = unknowns.start()
        interrupted = False
        result = None
        try:
            if shooting is not None:
                x = shoot(problem, comparison, x, shooting, {"rtol": rtol, "atol": atol, **options})
            comparison.at(x)
            result = least_squares(
                comparison.residuals,
                x,
                comparison.jacobian,
                bounds=unknowns.bounds(),
                x_scale="jac",
                loss=loss,
                f_scale=f_scale,
                xtol=_ENOUGH,
                ftol=_ENOUGH,
                gtol=_ENOUGH,
                max_nfev=max_evaluations,
            )
        except KeyboardInterrupt:
            interrupted = True
            if comparison.best is None:
                raise
    best = comparison.best
    assert best is not None
    if result is not None and loss != "linear":
        best = comparison.at(result.x)
    return Fit.of(comparison, best, result, interrupted)


def _known(problem: Any, outputs: Mapping) -> list[str]:
    """Names that measurements may have."""
    names = [problem.label(i) for i in range(problem.n)]
    named = getattr(problem, "constraint_names", None)
    count = getattr(problem, "n_lambda", 0)
    multipliers = [f"lambda_{name}" for name in named] if named else [f"lambda[{i}]" for i in range(count)]
    return [*names, *multipliers, *map(str, outputs)]


class _Bar:
    """A progress bar that counts evaluations and shows the cost; nothing where it is not wanted."""

    def __init__(self, wanted: bool):
        self._bar: Any = None
        if wanted:
            from tqdm import tqdm

            self._bar = tqdm(desc="fit", unit=" evaluations")

    def __call__(self, point: Point) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str("failed" if point.failure else f"sum of squares {2.0 * point.cost:.4g}")
            self._bar.update()

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
