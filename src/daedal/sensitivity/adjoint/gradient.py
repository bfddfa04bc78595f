"""The public function: a run forward, with checkpoints where memory is short, and one backward."""

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

_MOST_KEPT = 8  # costs for which a problem keeps its linearised form


class Gradient(NamedTuple):
    """The value of a cost and its derivatives.

    Attributes
    ----------
    value : float
        The cost.
    gradient : numpy.ndarray
        Its derivatives, in the order of `names`.
    names : tuple of str
        What it was differentiated by.
    """

    value: float
    gradient: np.ndarray
    names: tuple[str, ...]

    def __getitem__(self, key):
        """The derivative by a parameter of that name; otherwise as for a tuple."""
        if isinstance(key, str):
            if key not in self.names:
                raise unknown_name(key, self.names, "derivative by")
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
    rtol: float = 1e-6,
    atol: Any = 1e-9,
    **options: Any,
) -> Gradient:
    r"""The gradient of a cost with respect to parameters and initial values, by adjoint equations,

    .. math::

        J(p) = \int_{t_0}^{T} g(t, y, p)\, dt + h(T, y(T), p), \qquad F(t, y, y', p) = 0 .

    One run forward and one backward give the derivatives by all parameters, however many there are.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE or MechanicalSystem
        Of index 0 or 1, of index 2 in Hessenberg form, or a mechanism; stated with ``params``. Its functions must be
        traceable.
    t_span, initial
        As for :func:`daedal.solve`.
    cost, final_cost : callable
        ``g(t, y)`` and ``h(t, y)`` with the arguments of the problem's functions, ``(t, y, z)`` for a semi-explicit
        problem and ``(t, q, v)`` for a mechanism, the parameters last if there are some; told by their names, as
        those of an :class:`Event`. At least one of them.
    parameters : sequence of str, optional
        By what to differentiate: parameters by name, that of a vector for all of its numbers, and initial values such
        as ``"x(0)"``. All parameters by default.
    params : object, optional
        Parameters for this run in place of the problem's.
    checkpoints : int, optional
        Store the solution at so many times only and compute the pieces between them again on the way back: memory is
        that of one piece. By default everything is kept.
    rtol, atol, **options
        Of the runs; as for :func:`daedal.solve`.

    Returns
    -------
    Gradient
        ``value, gradient, names``; ``result["k"]`` is the derivative by k.

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
            f"gradient is for an ImplicitDAE, SemiExplicitDAE or MechanicalSystem, not for a {type(problem).__name__}"
        )
    if options.get("events") is not None:
        raise InvalidProblemError("gradient: runs with events have jumps; use solve(..., sensitivities=[...]) for them")
    for name in ("t_eval", "dense_output", "sensitivities"):
        if name in options:
            raise InvalidProblemError(f"gradient: {name} cannot be given; what is stored of the run is its own matter")
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
    """The linearised problem, which the problem keeps: an optimiser asks for many gradients."""
    kept, key = prepared_of(problem).setdefault("linearised", {}), (id(cost), id(final_cost))
    found = kept.get(key)
    if found is not None and found[0].is_current(found[0].problem.params):
        return found[0]
    made = LinearisedRun(with_floats(problem), cost, final_cost)
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[key] = made, cost, final_cost  # costs that are kept keep their id
    return made


class _Runs:
    """Runs of a problem forward, with the parameters of one call."""

    def __init__(self, problem: Any, params: Any, settings: dict[str, Any]):
        self.problem, self._params, self._settings = problem, params, settings

    def solve(self, span: tuple[float, float], initial: Any, t_eval: Any = None, **further: Any) -> Any:
        """One run that reaches its end."""
        solver = daedal.prepare(self.problem, **(self._settings | further))
        return solver.solve(span, initial, self._params, t_eval=t_eval)

    def pieces(self, span: tuple[float, float], initial: Any, checkpoints: int | None):
        """Solutions with dense output over pieces of the interval, the last one first."""
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
            raise InvalidProblemError(
                "gradient: the problem was stated without params; name initial values, such as 'x(0)'"
            )
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
    """The derivatives by what was asked for, with what follows from the initial values."""
    variables = _variables(run.problem)
    moved = {equations.labels[k] for k in equations.constraints_by_parameters}
    bound = equations.is_mechanical or sweep.is_bound
    starts = {name for name in names if name in moved or (bound and name.endswith("(0)"))}
    rows: dict[str, np.ndarray] = {}
    if starts:  # what the constraints demand of the initial values
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
