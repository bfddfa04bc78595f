"""Public function: a forward run, with checkpoints if memory is limited, and a backward run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import daedal
from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.problems.preparable import prepared_of
from daedal.sensitivity.adjoint.costs import LinearisedRun
from daedal.sensitivity.adjoint.sweep import AdjointSweep, graded
from daedal.sensitivity.differentiation import as_floats, entries_of, unknown_quantity, with_floats

_MOST_KEPT = 8  # number of costs for which a problem caches its linearised form


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
    """

    value: float
    gradient: np.ndarray
    names: tuple[str, ...]

    def __getitem__(self, key):
        """The derivative with respect to the parameter of that name; otherwise as for a tuple."""
        if isinstance(key, str):
            if key not in self.names:
                raise unknown_name(key, self.names, "derivative with respect to")
            return float(self.gradient[self.names.index(key)])
        return tuple.__getitem__(self, key)


def gradient(
    problem: Any,
    t_span: tuple[float, float],
    initial: Any,
    *,
    cost: Callable | None = None,
    final_cost: Callable | None = None,
    parameters: Sequence[str] | None = None,
    params: Any = None,
    checkpoints: int | None = None,
    rtol: float = 1e-7,
    atol: Any = 1e-9,
    **options: Any,
) -> Gradient:
    r"""The gradient of a cost with respect to parameters and initial values, by adjoint equations,

    .. math::

        J(p) = \int_{t_0}^{T} g(t, y, p)\, dt + h(T, y(T), p), \qquad F(t, y, y', p) = 0 .

    One forward and one backward run give the derivatives with respect to all parameters, whatever their number.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE or MechanicalSystem
        Of index 0 or 1, of index 2 in Hessenberg form, or a mechanism, with ``params``. Its functions must be
        traceable.
    t_span, initial
        As for :func:`daedal.solve`.
    cost, final_cost : callable
        ``g(t, y)`` and ``h(t, y)`` with the arguments of the problem's functions, ``(t, y, z)`` for a semi-explicit
        problem and ``(t, q, v)`` for a mechanism, with the parameters as an optional last argument; recognised by name,
        as for an :class:`Event`. At least one is required.
    parameters : sequence of str, optional
        Variables of differentiation: parameters by name (the name of a vector selects all of its numbers), and initial
        values such as ``"x(0)"``. All parameters by default.
    params : object, optional
        Parameters for this run, replacing those of the problem.
    checkpoints : int, optional
        Number of times at which the solution is stored; the pieces between them are recomputed in the backward run, so
        memory is that of one piece. By default everything is stored.
    rtol, atol, **options
        For the runs; as for :func:`daedal.solve`.

    Returns
    -------
    Gradient
        ``value, gradient, names``; ``result["k"]`` is the derivative with respect to k.

    Notes
    -----
    Initial values are held, except for algebraic variables and what constraints of a mechanism demand. For few
    parameters and many costs ``solve(..., sensitivities=[...])`` is cheaper. Y. Cao, S. Li, L. Petzold, R. Serban, SIAM
    J. Sci. Comput. 24, 2003.

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
    if not isinstance(problem, (daedal.ImplicitDAE, daedal.SemiExplicitDAE, daedal.MechanicalSystem)):
        raise InvalidProblemError(
            f"gradient supports ImplicitDAE, SemiExplicitDAE and MechanicalSystem, not {type(problem).__name__}"
        )
    if options.get("events") is not None:
        raise InvalidProblemError("gradient: runs with events have jumps; use solve(..., sensitivities=[...]) for them")
    for name in ("t_eval", "dense_output", "sensitivities"):
        if name in options:
            raise InvalidProblemError(
                f"gradient: {name} cannot be given; gradient itself decides what is stored of the run"
            )
    equations = _linearised(problem, cost, final_cost)
    problem = equations.problem
    names = _names(problem, equations, parameters)
    first, last = (float(t) for t in t_span)
    if not last > first:
        raise InvalidProblemError(f"gradient: t_span must increase, got ({first:g}, {last:g})")
    settings = {"rtol": rtol, "atol": atol, **options}
    given = problem.params if params is None else as_floats(problem.with_params(params).params)
    sweep = AdjointSweep(equations, given, float(np.min(rtol)))
    begun = False
    run = _Runs(problem, None if params is None else given, settings)
    for piece in run.pieces((first, last), initial, checkpoints):
        times = np.unique(piece.t)
        if not begun:
            sweep.begin(piece, float(piece.t[-1]))
            times, begun = graded(times, sweep.fastest), True
        sweep.over(piece, times)
    return Gradient(sweep.value, _picked(run, equations, sweep, names, (first, last), initial), names)


def _linearised(problem: Any, cost: Callable | None, final_cost: Callable | None) -> LinearisedRun:
    """The linearised problem, cached with the problem: an optimiser computes many gradients."""
    kept, key = prepared_of(problem).setdefault("linearised", {}), (id(cost), id(final_cost))
    found = kept.get(key)
    if found is not None and found[0].is_current(found[0].problem.params):
        return found[0]
    made = LinearisedRun(with_floats(problem), cost, final_cost)
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[key] = made, cost, final_cost  # cached costs keep their id
    return made


class _Runs:
    """Forward runs of a problem with the parameters of one call."""

    def __init__(self, problem: Any, params: Any, settings: dict[str, Any]):
        self.problem, self._params, self._settings = problem, params, settings

    def solve(self, span: tuple[float, float], initial: Any, t_eval: Any = None, **further: Any) -> Any:
        """One run, which must reach its end."""
        solver = daedal.prepare(self.problem, **(self._settings | further))
        return solver.solve(span, initial, self._params, t_eval=t_eval)

    def pieces(self, span: tuple[float, float], initial: Any, checkpoints: int | None):
        """Solutions with dense output on pieces of the interval, in reverse order."""
        if checkpoints is None:
            yield _whole(self.solve(span, initial, dense_output=True))
            return
        if not isinstance(checkpoints, (int, np.integer)) or checkpoints < 1:
            raise InvalidProblemError(f"checkpoints must be a positive whole number, got {checkpoints!r}")
        marks = np.linspace(*span, int(checkpoints) + 2)
        kept = _whole(self.solve(span, initial, marks, dense_output=False))
        for k in reversed(range(marks.size - 1)):
            start = initial if k == 0 else _at(kept, k)
            piece = (float(marks[k]), float(marks[k + 1]))
            yield _whole(self.solve(piece, start, dense_output=True, correct_initial=True))


def _whole(solution: Any) -> Any:
    if not solution.success:
        raise daedal.IntegrationError(f"gradient: the run ended early. {solution.message}", solution)
    if solution.events:
        raise InvalidProblemError(
            f"gradient: the equations switch at t = {solution.events[0].t:g}, where derivatives may jump; "
            "solve(..., sensitivities=[...]) follows jumps"
        )
    return solution


def _at(solution: Any, k: int) -> tuple:
    if isinstance(solution, daedal.MechanicalSolution):
        rest = solution.y[2 * solution.n_q :, k]
        return (solution.q[:, k], solution.v[:, k], *([rest] if rest.size else []))
    if solution.n_differential is not None:
        return (solution.y[: solution.n_differential, k], solution.y[solution.n_differential :, k])
    return (solution.y[:, k], solution.yp[:, k])


def _variables(problem: Any) -> list[str]:
    return [problem.label(i) for i in range(problem.n)]


def _names(problem: Any, equations: LinearisedRun, wanted: Sequence[str] | None) -> tuple[str, ...]:
    if wanted is None:
        if not equations.labels:
            raise InvalidProblemError("gradient: the problem has no params; name initial values, such as 'x(0)'")
        return tuple(equations.labels)
    names = (wanted,) if isinstance(wanted, str) else tuple(str(name) for name in wanted)
    names = tuple(entry for name in names for entry in entries_of(name, equations.labels) or (name,))
    variables = _variables(problem)
    for name in names:
        if name not in equations.labels and not (name.endswith("(0)") and name[:-3] in variables):
            raise unknown_quantity(name, equations.labels, variables, "parameters")
    return names


def _picked(
    run: _Runs,
    equations: LinearisedRun,
    sweep: AdjointSweep,
    names: tuple[str, ...],
    span: tuple[float, float],
    initial: Any,
) -> np.ndarray:
    """The requested derivatives, including the contributions of the initial values."""
    variables = _variables(run.problem)
    moved = {equations.labels[k] for k in equations.constraints_by_parameters}
    bound = equations.is_mechanical or sweep.is_bound
    starts = {name for name in names if name in moved or (bound and name.endswith("(0)"))}
    rows: dict[str, np.ndarray] = {}
    if starts:  # contributions of the constraints on the initial values
        short = (span[0], span[0] + 1e-6 * (span[1] - span[0]))
        sol = run.solve(short, initial, sensitivities=sorted(starts))
        rows = {name: np.asarray(sol.sensitivity(name))[:, 0] for name in starts}
    found = []
    place = {name: k for k, name in enumerate(equations.labels)}
    for name in names:
        own = 0.0 if name.endswith("(0)") else sweep.gradient[place[name]]
        if name in rows:
            own -= float(sweep.w[: rows[name].size] @ rows[name])
        elif name.endswith("(0)"):
            own -= float(sweep.w[variables.index(name[:-3])])
        found.append(own)
    return np.array(found)
