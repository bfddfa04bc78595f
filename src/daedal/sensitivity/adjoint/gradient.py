"""Gradients of costs by adjoint equations: the public function, and its forward and backward runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

import daedal
from daedal.common.messages import unknown_name
from daedal.driver.options import SolverOptions, takes
from daedal.driver.request import check_span, checked_settings
from daedal.errors import InvalidProblemError
from daedal.problems.compile import with_other_params
from daedal.problems.named_inputs import Samples, at_piece, require_inputs
from daedal.problems.preparable import prepared_of
from daedal.problems.problem_sources import Problem, ProblemSource, is_source, problem_and_start
from daedal.problems.symbols import Driven, given_params
from daedal.sensitivity.adjoint.costs import LinearisedRun
from daedal.sensitivity.adjoint.sweep import AdjointSweep, graded
from daedal.sensitivity.differentiation import ParameterNumbers, entries_of, unknown_quantity, with_floats
from daedal.symbolic.tracing.parameters import is_internal

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
        """The derivative with respect to a parameter given by name; integers and slices index the tuple."""
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


# --- a forward run, with checkpoints if memory is limited, a backward run, and the variables of differentiation -------

_MOST_KEPT = 8  # maximum number of costs for which a problem caches its linearised form


class AdjointRun:
    """One run forward and one backward, with the parameters and inputs of one call.

    `params`, `inputs` and `hold` replace those of the problem, with which machine code is cached; `settings` are
    options of :func:`daedal.prepare`. `labels` are the names of parameters, constant inputs and samples, in order.
    """

    def __init__(
        self, problem: Any, cost: Any, final_cost: Any, params: Any, inputs: Any, hold: str, settings: dict[str, Any]
    ):
        given = problem if params is None else with_other_params(problem, params)
        if inputs is not None:
            require_inputs(problem)
            given = given.with_inputs(inputs, hold=hold)
        self.given = with_floats(given)
        self._equations, self._stated = _linearised(problem, self.given, cost, final_cost)
        self._settings = settings
        self._has_params = params is not None
        self._inputs = None if inputs is None else self.given.params.inputs
        self.labels, self._samples = _labels(self.given)
        self._places = {label: k for k, label in enumerate(self.labels)}
        self._sweep = AdjointSweep(self._equations, float(np.min(checked_settings(**settings).rtol)))
        self._gradient = np.zeros(len(self.labels))
        self._span, self._initial = (0.0, 0.0), None

    @property
    def value(self) -> float:
        """The cost."""
        return self._sweep.value

    def integrate(
        self,
        span: tuple[float, float],
        initial: Any,
        checkpoints: int | None = None,
        observed: Mapping[float, np.ndarray] | None = None,
    ) -> None:
        """Run forward and backward.

        `observed` maps times to the gradients of further costs of the unknowns at these times.
        """
        self._span, self._initial = span, initial
        begun = False
        for piece in self._pieces(span, initial, checkpoints):
            self._over(piece, observed or {}, begun)
            begun = True

    def _over(self, piece: _Piece, observed: Mapping[float, np.ndarray], begun: bool) -> None:
        """Integrate backward over a segment without input jumps, and add the costs observed at its start."""
        sweep, solution, n = self._sweep, piece.solution, self._equations.n
        before = sweep.gradient.copy()
        sweep.take(at_piece(self.given, piece.begin).params)
        inside = sorted(t for t in observed if piece.begin <= t < piece.end)
        if begun:
            if piece.jumps:
                sweep.add_cost(solution, piece.end, np.zeros(n))
        else:
            sweep.begin(solution, piece.end, _whole_slope(observed.get(piece.end), n))
        grid, layered = np.unique(solution.t), not begun
        for low, high in reversed(list(pairwise(sorted({piece.begin, *inside, piece.end})))):
            times = np.concatenate([[low], grid[(grid > low) & (grid < high)], [high]])
            sweep.over(solution, graded(times, sweep.fastest) if layered else times)
            if low in observed:
                sweep.add_cost(solution, low, _whole_slope(observed[low], n))
            layered = low in observed and bool(np.isfinite(sweep.fastest))
        self._collect(sweep.gradient - before, piece.begin)

    def _collect(self, found: np.ndarray, begin: float) -> None:
        """Add the derivatives over a segment, converted from values of an input to its samples."""
        at = {label: k for k, label in enumerate(self._equations.labels)}
        for label, k in self._places.items():
            if label in at and label not in self._samples:
                self._gradient[k] += found[at[label]]
        for name, signal in _sampled(self.given).items():
            weights = signal.sampled_course(begin).weights
            own = [k for label, k in at.items() if _base(label) == name][: signal.coefficients[0].size]
            slope = weights.T @ found[own].reshape(weights.shape[0], -1)
            place = self._places[next(label for label in self._samples if _base(label) == name)]
            self._gradient[place : place + slope.size] += slope.ravel()

    # --- runs forward -------------------------------------------------------------------------------------------------

    def _solve(self, span: tuple[float, float], initial: Any, t_eval: Any = None, **further: Any) -> Any:
        """Solve the problem over an interval; raise an error if the run ends early."""
        params = given_params(self.given.params) if self._has_params else None
        options = {**self._settings, **further, "t_eval": t_eval}
        return daedal.solve(self._stated, span, initial, params=params, inputs=self._inputs, **options)

    def _pieces(self, span: tuple[float, float], initial: Any, checkpoints: int | None) -> Iterator[_Piece]:
        """Solutions with dense output on segments of the interval, in reverse order."""
        if checkpoints is None:
            yield from self._parts(self._solve(span, initial, dense_output=True), span)
            return
        if not isinstance(checkpoints, (int, np.integer)) or checkpoints < 1:
            raise InvalidProblemError(f"checkpoints must be a positive whole number, got {checkpoints!r}")
        marks = np.linspace(*span, int(checkpoints) + 2)
        kept = _whole(self._solve(span, initial, marks, dense_output=False))
        for k in reversed(range(marks.size - 1)):
            start = initial if k == 0 else _at(self.given, kept, k)
            piece = (float(marks[k]), float(marks[k + 1]))
            yield from self._parts(self._solve(piece, start, dense_output=True, correct_initial=True), piece)

    def _parts(self, solution: Any, span: tuple[float, float]) -> Iterator[_Piece]:
        """The parts of a solution between jumps of inputs, in reverse order."""
        _whole(solution)
        if not isinstance(solution, daedal.HybridSolution):
            yield _Piece(*span, solution, False)
            return
        last = True
        for segment in reversed(solution.segments):
            if segment.t1 > segment.t0:
                yield _Piece(segment.t0, segment.t1, segment.solution, not last)
                last = False

    # --- requested derivatives ---

    def names(self, wanted: Sequence[str] | None) -> tuple[str, ...]:
        """The variables of differentiation."""
        if wanted is None:
            if not self.labels:
                raise InvalidProblemError("gradient: the problem has no params; name initial values, such as 'x(0)'")
            return tuple(self.labels)
        names = (wanted,) if isinstance(wanted, str) else tuple(str(name) for name in wanted)
        names = tuple(entry for name in names for entry in entries_of(name, self.labels) or (name,))
        variables = variables_of(self.given)
        for name in names:
            if name not in self.labels and not (name.endswith("(0)") and name[:-3] in variables):
                raise unknown_quantity(name, self.labels, variables, "parameters")
        return names

    def picked(self, names: Sequence[str]) -> np.ndarray:
        """The requested derivatives, including the contributions of the initial values."""
        equations, sweep, variables = self._equations, self._sweep, variables_of(self.given)
        in_constraints = [equations.labels[k] for k in equations.constraints_by_parameters]
        moved = {
            label
            for label in self.labels
            if label in in_constraints or (label in self._samples and _base(label) in map(_base, in_constraints))
        }
        bound = equations.is_mechanical or sweep.is_bound
        starts = {name for name in names if name in moved or (bound and name.endswith("(0)"))}
        rows: dict[str, np.ndarray] = {}
        if starts:  # contributions of the constraints on the initial values
            first, last = self._span
            sol = self._solve((first, first + 1e-6 * (last - first)), self._initial, sensitivities=sorted(starts))
            rows = {name: np.asarray(sol.sensitivity(name))[:, 0] for name in starts}
        found = []
        for name in names:
            own = 0.0 if name.endswith("(0)") else self._gradient[self._places[name]]
            if name in rows:
                own -= float(sweep.w[: rows[name].size] @ rows[name])
            elif name.endswith("(0)"):
                own -= float(sweep.w[variables.index(name[:-3])])
            found.append(own)
        return np.array(found)


class _Piece(NamedTuple):
    """A segment of a run without input jumps, and whether inputs jump at its end."""

    begin: float
    end: float
    solution: Any
    jumps: bool


def _whole_slope(slope: np.ndarray | None, n: int) -> np.ndarray:
    """Extend a gradient with respect to the leading unknowns to all unknowns."""
    whole = np.zeros(n)
    if slope is not None:
        whole[: slope.size] = slope
    return whole


def _linearised(stated: Any, given: Any, cost: Callable | None, final_cost: Callable | None) -> tuple[Any, Any]:
    """The linearised problem, and the problem with parameters as floats, since an optimiser computes many gradients.

    Both are cached with the original problem.
    """
    kept, key = prepared_of(stated).setdefault("linearised", {}), (id(cost), id(final_cost))
    problem = at_piece(given, -np.inf)
    found = kept.get(key)
    if found is not None and found[0].is_current(problem.params):
        return found[0], found[1]
    made = LinearisedRun(problem, cost, final_cost), with_floats(stated)
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[key] = *made, cost, final_cost  # keeps the costs alive, so that their ids stay unique
    return made


def _labels(problem: Any) -> tuple[list[str], list[str]]:
    """Names of all possible variables of differentiation, and the names of samples among them."""
    numbers = ParameterNumbers.of(at_piece(problem, -np.inf, by_samples=True))
    labels, sampled = [label for label in numbers.labels if not is_internal(label)], _sampled(problem)
    return labels, [label for label in labels if _base(label) in sampled]


def _sampled(problem: Any) -> dict[str, Samples]:
    inputs = problem.params.inputs if isinstance(problem.params, Driven) else {}
    return {name: signal for name, signal in inputs.items() if isinstance(signal, Samples)}


def _base(label: str) -> str:
    """The name of a parameter or input without index or key."""
    return label.split("[")[0].split(".")[0]


def _whole(solution: Any) -> Any:
    if not solution.success:
        raise daedal.IntegrationError(f"gradient: the run ended early. {solution.message}", solution)
    if len(solution.events):
        raise InvalidProblemError(
            f"gradient: the equations switch at t = {solution.events[0].t:g}, where derivatives may jump; "
            "solve(..., sensitivities=[...]) follows jumps"
        )
    return solution


def _at(problem: Any, solution: Any, k: int) -> tuple:
    """Initial values of a run that starts at output point k."""
    y = solution.y[:, k]
    if isinstance(problem, daedal.MechanicalSystem):
        n_q = problem.n_q
        return (y[:n_q], y[n_q : 2 * n_q], *([y[2 * n_q :]] if y.size > 2 * n_q else []))
    if isinstance(problem, daedal.SemiExplicitDAE):
        return (y[: problem.n_y], y[problem.n_y :])
    return (y, None if isinstance(solution, daedal.HybridSolution) else solution.yp[:, k])


def variables_of(problem: Any) -> list[str]:
    return [problem.label(i) for i in range(problem.n)]
