"""Public function for gradients of costs by adjoint equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

import daedal
from daedal.common.messages import unknown_name
from daedal.driver.options import SolverOptions, takes
from daedal.driver.request import check_span
from daedal.errors import InvalidProblemError
from daedal.problems.problem_sources import ProblemSource, is_source, problem_and_start
from daedal.problems.protocol import Problem
from daedal.sensitivity.adjoint.adjoint_run import AdjointRun

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Gradient(NamedTuple):
    """The value of a cost and its derivatives.

    Attributes
    ----------
    value : float
        Value of the cost.
    gradient : numpy.ndarray
        Its derivatives, in the order of `names`.
    names : tuple of str
        Names of the parameters and initial values.

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 2.0})
    >>> value, gradient, names = daedal.gradient(decay, (0.0, 1.0), ([1.0], None), final_cost=lambda t, y, p: y[0])
    >>> print(f"{value:.4f}", names, gradient.round(4))
    0.1353 ('k',) [-0.1353]
    """

    value: float
    gradient: np.ndarray
    names: tuple[str, ...]

    def __getitem__(self, key: Any) -> Any:
        """The derivative with respect to the parameter of the given name; otherwise as for a tuple."""
        if isinstance(key, str):
            if key not in self.names:
                raise unknown_name(key, self.names, "derivative with respect to")
            return float(self.gradient[self.names.index(key)])
        return tuple.__getitem__(self, key)


@takes(SolverOptions)
def gradient(
    problem: Problem | ProblemSource[Problem],
    t_span: ArrayLike,
    initial: Any,
    *,
    cost: Callable[..., Any] | None = None,
    final_cost: Callable[..., Any] | None = None,
    parameters: Sequence[str] | None = None,
    params: Any = None,
    inputs: Mapping[str, Any] | None = None,
    hold: str = "zero",
    checkpoints: int | None = None,
    **options: Unpack[SolverOptions],
) -> Gradient:
    r"""The gradient of a cost with respect to parameters and initial values, by adjoint equations,

    .. math::

        J(p) = \int_{t_0}^{T} g(t, y, p)\, dt + h(T, y(T), p), \qquad F(t, y, y', p) = 0 .

    One forward and one backward run give the derivatives with respect to any number of parameters.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, MechanicalSystem, Model or Circuit
        Of index 0 or 1, of index 2 in Hessenberg form, or a mechanism, with ``params``. Its functions must be
        traceable.
    t_span, initial
        As for :func:`daedal.solve`.
    cost, final_cost : callable
        ``g(t, y)`` and ``h(t, y)`` with the arguments of the problem's functions, ``(t, y, z)`` for a semi-explicit
        problem and ``(t, q, v)`` for a mechanism, with the parameters as an optional last argument; recognised by name,
        as for an :class:`Event`. At least one is required.
    parameters : sequence of str, optional
        Variables of differentiation: parameters and inputs by name (the name of a vector or of samples selects all of
        its numbers, ``"u[0]"``, ``"u[1]"``, ... a single one), and initial values such as ``"x(0)"``. All parameters,
        constant inputs and samples by default.
    params : object, optional
        Parameters for this run, replacing those of the problem.
    inputs, hold : optional
        Inputs for this run, as for :func:`daedal.solve`.
    checkpoints : int, optional
        Number of times at which the solution is stored; the segments between them are recomputed in the backward run,
        so that only one segment is held in memory. By default the whole solution is stored.
    **options
        For the runs, as for :func:`daedal.prepare`: rtol, atol, method and so on.

    Returns
    -------
    Gradient
        ``value, gradient, names``; ``result["k"]`` is the derivative with respect to k.

    Notes
    -----
    Initial values are fixed, except for algebraic variables and corrections required by the constraints of a mechanism.
    For few parameters and many costs ``solve(..., sensitivities=[...])`` is cheaper. Y. Cao, S. Li, L. Petzold, R.
    Serban, SIAM J. Sci. Comput. 24, 2003.

    Examples
    --------
    >>> import daedal
    >>> decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 2.0}, names=["x"])
    >>> found = daedal.gradient(decay, (0.0, 1.0), ([1.0], None), final_cost=lambda t, y, p: y[0])
    >>> print(f"{found.value:.5f} {found['k']:.5f}")  # exp(-k) and -exp(-k)
    0.13534 -0.13534
    """
    if cost is None and final_cost is None:
        raise InvalidProblemError("gradient: give cost, final_cost, or both")
    if is_source(problem):
        problem, initial = problem_and_start(problem, initial, check_span(t_span)[0], params, inputs, hold)
    if not isinstance(problem, (daedal.ImplicitDAE, daedal.SemiExplicitDAE, daedal.MechanicalSystem)):
        raise InvalidProblemError(
            f"gradient supports ImplicitDAE, SemiExplicitDAE and MechanicalSystem, not {type(problem).__name__}"
        )
    if options.get("events") is not None:
        raise InvalidProblemError("gradient: runs with events have jumps; use solve(..., sensitivities=[...]) for them")
    for name in ("t_eval", "dense_output", "sensitivities"):
        if name in options:
            raise InvalidProblemError(f"gradient: {name} cannot be given; gradient chooses what to store")
    first, last = check_span(t_span)
    if not last > first:
        raise InvalidProblemError(f"gradient: t_span must increase, got ({first:g}, {last:g})")
    run = AdjointRun(problem, cost, final_cost, params, inputs, hold, dict(options))
    names = run.names(parameters)
    run.integrate((first, last), initial, checkpoints)
    return Gradient(run.value, run.picked(names), names)
