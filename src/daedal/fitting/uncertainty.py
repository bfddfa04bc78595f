"""Uncertain parameters carried along a solution, to first order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.messages import unknown_name


@dataclass(frozen=True)
class Uncertainty:
    """Standard deviations of a solution.

    Attributes
    ----------
    solution : Solution
        The solution with sensitivities.
    std : numpy.ndarray
        Of each entry of ``solution.y``, in its layout.
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
        from daedal.viz.fit_plot import plot_uncertainty

        return plot_uncertainty(self, *names, level=level, **options)


def uncertainty(solution: Any, covariance: Any, parameters: Any = None) -> Uncertainty:
    r"""What uncertain parameters make of a solution, to first order: :math:`\mathrm{Cov}\, y = S\, C\, S^T`.

    Parameters
    ----------
    solution : Solution
        From ``solve(..., sensitivities=[...])``.
    covariance : array (m, m), or mapping
        Covariance of the parameters, in the order of `parameters`; or their standard deviations by name, if they are
        independent.
    parameters : sequence of str, optional
        Which parameters; all of those that the solution was differentiated by, by default.

    Returns
    -------
    Uncertainty

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0}, names=["x"])
    >>> sol = daedal.solve(decay, (0.0, 1.0), ([1.0], None), sensitivities=["k"], rtol=1e-8)
    >>> band = daedal.uncertainty(sol, {"k": 0.1})  # d x / d k = -t exp(-k t)
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
