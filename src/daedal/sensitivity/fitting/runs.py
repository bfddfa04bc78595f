"""Comparison of model runs with measurements: weighted residuals and their derivatives with respect to the unknowns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import daedal
from daedal.errors import DaedalError, InvalidProblemError
from daedal.problems.arguments import FIRST, PARAMS, SECOND, TIME, WHOLE, StateArguments, state_split
from daedal.sensitivity.fitting.unknowns import Measurements, Unknowns

_STEP = 1e-6  # increment of directional differences of outputs, in units of the state
_FAR = 1e6  # residual assigned to a failed run, in units of the residuals at the best point so far


@dataclass(frozen=True)
class FitPoint:
    """Residuals and Jacobian of the model for some values of the unknowns."""

    x: np.ndarray
    residuals: np.ndarray
    jacobian: np.ndarray  # Jacobian with respect to the unknowns on the scale of the search
    solutions: tuple[Any, ...]
    failure: Exception | None = None

    @property
    def cost(self) -> float:
        """Half the sum of squares."""
        return 0.5 * float(self.residuals @ self.residuals)


class RunsCompared:
    """All runs of a fit, compared with their measurements; stores the last and the best point."""

    def __init__(self, problem: Any, runs: list[Measurements], unknowns: Unknowns, outputs: Mapping, options: dict):
        self.runs, self.unknowns, self.outputs = runs, unknowns, outputs
        self._split = None if isinstance(problem, daedal.SecondOrderDAE) else state_split(problem)
        arguments = StateArguments(problem, problem.params is not None, self._split is not None)
        self._places = {name: arguments.of(f, f"outputs[{name!r}]", state_only=True) for name, f in outputs.items()}
        self._solvers = [
            daedal.prepare(problem, sensitivities=unknowns.quantities(k), correct_initial=True, **options)
            for k in range(len(runs))
        ]
        self._last: FitPoint | None = None
        self.best: FitPoint | None = None
        self.evaluations = self.failed = 0
        self.on_point: Callable[[FitPoint], None] = lambda point: None

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """Weighted residuals, model minus measurement; huge if the model cannot be solved."""
        return self.at(x).residuals

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Derivatives of the residuals."""
        return self.at(x).jacobian

    def at(self, x: np.ndarray) -> FitPoint:
        """The model at x. A run that fails does not end the search, except at the first point."""
        if self._last is not None and np.array_equal(self._last.x, x):
            return self._last
        self.evaluations += 1
        try:
            point = self._computed(np.array(x, dtype=float))
        except (DaedalError, ArithmeticError) as error:
            if self.best is None:
                raise
            self.failed += 1
            size = np.full_like(self.best.residuals, 1.0 + np.abs(self.best.residuals).max())
            point = FitPoint(np.array(x), _FAR * size, np.zeros_like(self.best.jacobian), (), error)
        else:
            if self.best is None or point.cost < self.best.cost:
                self.best = point
        self._last = point
        self.on_point(point)
        return point

    def _computed(self, x: np.ndarray) -> FitPoint:
        values = np.array(list(self.unknowns.values(x).values()))
        slopes = self.unknowns.slopes(x)
        residuals, rows, solutions = [], [], []
        for k, run in enumerate(self.runs):
            sol = self._solved(k, run, values)
            model, derivatives = self.measured(k, run, sol, values, self.unknowns.quantities(k))
            seen = run.weights > 0.0
            residuals.append(((model - run.values) * run.weights)[seen])
            block = np.zeros((int(seen.sum()), values.size))
            quantities = self.unknowns.quantities(k)
            own = {self.unknowns.all[i].quantity: i for i in self.unknowns.of(k)}  # unknowns of this run are last
            for name, place in own.items():
                block[:, place] = (derivatives[quantities.index(name)] * run.weights)[seen] * slopes[place]
            rows.append(block)
            solutions.append(sol)
        found = np.concatenate(residuals), np.concatenate(rows)
        if not all(np.all(np.isfinite(part)) for part in found):
            raise InvalidProblemError("the model or its derivatives are not finite at the times of the measurements")
        return FitPoint(x, *found, tuple(solutions))

    def _solved(self, k: int, run: Measurements, values: np.ndarray) -> Any:
        times = np.unique(run.t)
        if run.t_span[1] < run.t_span[0]:
            times = times[::-1]
        params = self.unknowns.params(run, values)
        initial = self.unknowns.initial(k, run, values)
        sol = self._solvers[k].solve(run.t_span, initial, params, t_eval=times)
        if not sol.success:
            raise daedal.IntegrationError(sol.message, sol)
        if sol.t.size < times.size:
            raise InvalidProblemError(f"the run ended at t = {sol.t[-1]:g}, before the last measurement: {sol.message}")
        return sol

    def measured(
        self, k: int, run: Measurements, sol: Any, values: np.ndarray, quantities: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The measured columns of the model (columns, times), and their derivatives with respect to each quantity."""
        place = {float(t): i for i, t in enumerate(sol.t)}
        at = np.array([place[float(t)] for t in run.t])
        sensitivities = [sol.sensitivity(name) for name in quantities]
        model = np.empty(run.values.shape)
        derivatives = np.empty((len(sensitivities), *run.values.shape))
        for row, column in enumerate(run.columns):
            if column in self.outputs:
                model[row], derivatives[:, row] = self._output(k, run, column, sol, sensitivities, values, at)
            else:
                model[row] = sol[column][at]
                derivatives[:, row] = [component(sol, column, one)[at] for one in sensitivities]
        return model, derivatives

    def _output(self, k, run, column, sol, sensitivities, values, at):
        """Values of an output function, and its derivatives with respect to each quantity by central differences."""
        function, states = self.outputs[column], np.asarray(sol.y)
        places, split, is_mechanical = self._places[column], self._split, isinstance(sol, daedal.MechanicalSolution)
        numbers = {i: one.quantity for i, one in enumerate(self.unknowns.all)}

        def evaluated(y: np.ndarray, other: np.ndarray) -> np.ndarray:
            found, given = [], {PARAMS: self.unknowns.params(run, other)}
            for i in at:
                state = y[:, i]
                given |= {TIME: float(sol.t[i]), WHOLE: state, FIRST: state[:split]}
                given[SECOND] = None if split is None else state[split : 2 * split if is_mechanical else None]
                found.append(float(function(*[given[place] for place in places])))
            return np.array(found)

        found = []
        for name, one in zip(self.unknowns.quantities(k), sensitivities, strict=True):
            s = np.asarray(one)
            step = _state_step(states, s)
            slope = (evaluated(states + step * s, values) - evaluated(states - step * s, values)) / (2.0 * step)
            own = [i for i, quantity in numbers.items() if quantity == name and not name.endswith("(0)")]
            if own:  # parameters that are arguments of the output
                shift = np.zeros_like(values)
                shift[own] = _STEP * (np.abs(values[own]).max() or 1.0)
                reach = 2.0 * shift[own[0]]
                slope = slope + (evaluated(states, values + shift) - evaluated(states, values - shift)) / reach
            found.append(slope)
        return evaluated(states, values), np.array(found)


def component(sol: Any, column: str, sensitivity: Any) -> np.ndarray:
    """The derivative of ``sol[column]``: a row of y, or a multiplier of a mechanism."""
    names = list(sol.names)
    if column in names:
        return np.asarray(sensitivity)[names.index(column)]
    multipliers = list(getattr(sol, "multiplier_names", ()))
    if column in multipliers:
        return sensitivity.lam[multipliers.index(column)]
    raise InvalidProblemError(
        f"the derivative of {column!r} with respect to parameters is not available; define it as one of the outputs"
    )


def _state_step(states: np.ndarray, s: np.ndarray) -> float:
    """Increment of a difference along s that is small for every component of the state."""
    sizes, rates = np.abs(states).max(axis=1), np.abs(s).max(axis=1)
    ratios = sizes[rates > 0.0] / rates[rates > 0.0]
    ratios = ratios[ratios > 0.0]
    return _STEP * float(ratios.min() if ratios.size else 1.0 / max(float(rates.max(initial=0.0)), 1.0))


# --- multiple shooting: every segment of a run has separate initial values, and the gaps are closed gradually ---

# With wrong parameters, unstable and chaotic models diverge from the measurements long before the end; short segments
# do not. The gaps between segments are residuals with weights that increase from round to round (H. G. Bock,
# Randwertproblemmethoden zur Parameteridentifizierung, 1987, closes them by constraints); the search over whole runs
# follows.

_WEIGHTS = (1.0, 1e2, 1e4)  # weights of gaps, in units of the spread of a variable in the measurements


class ShotPieces:
    """Runs over pieces. Unknowns are those of the fit and the differential variables at the start of each later piece.

    For a mechanism, the positions and velocities there are projected onto its constraints, and so are the sensitivities
    with respect to them; the gaps draw the values themselves towards the constraints.
    """

    def __init__(self, problem: Any, comparison: RunsCompared, pieces: int, options: dict[str, Any]):
        if not isinstance(pieces, (int, np.integer)) or isinstance(pieces, bool) or pieces < 2:
            raise InvalidProblemError(f"shooting must be a number of pieces, at least 2, got {pieces!r}")
        self._comparison, self.weight = comparison, 1.0
        self._places = _differential(problem)
        missing = [name for run in comparison.runs for name in run.columns if name in comparison.outputs]
        if missing:
            raise InvalidProblemError(
                f"shooting: measured values must be variables; {', '.join(dict.fromkeys(missing))} is an output"
            )
        self._variables = [problem.label(i) for i in self._places]
        self._split = problem.n_q if isinstance(problem, daedal.MechanicalSystem) else None
        self._edges = [np.linspace(*run.t_span, int(pieces) + 1) for run in comparison.runs]
        self._solvers, self._first = [], []
        for k, _ in enumerate(comparison.runs):
            asked = comparison.unknowns.quantities(k)
            parameters = [name for name in asked if not name.endswith("(0)")]
            later = [*parameters, *(f"{name}(0)" for name in self._variables)]
            self._first.append(daedal.prepare(problem, sensitivities=asked, correct_initial=True, **options))
            self._solvers.append(daedal.prepare(problem, sensitivities=later, correct_initial=True, **options))
        self.n_nodes = len(comparison.runs) * (int(pieces) - 1) * len(self._variables)
        self._kept: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._best: tuple[float, np.ndarray] | None = None  # best result for the last weight of the gaps
        self._scales: np.ndarray | None = None

    def shoot(self, x: np.ndarray) -> tuple[np.ndarray, bool]:
        """Improved starting values for the search over whole runs, and whether the search was interrupted."""
        from scipy.optimize import least_squares

        low, high = self._comparison.unknowns.bounds()
        free = np.full(self.n_nodes, np.inf)
        limits = np.concatenate([low, -free]), np.concatenate([high, free])
        point = np.concatenate([x, self.nodes(x)])
        for weight in _WEIGHTS:
            self.weight, self._best = weight, None
            try:
                found = least_squares(self.residuals, point, self.jacobian, bounds=limits, x_scale="jac", max_nfev=50)
            except KeyboardInterrupt:
                return (point if self._best is None else self._best[1])[: x.size], True
            point = found.x
        return point[: x.size], False

    def nodes(self, x: np.ndarray) -> np.ndarray:
        """Initial nodes: interpolated measurements; if missing, the model integrated from the previous node."""
        found = []
        for k, run in enumerate(self._comparison.runs):
            state = None
            for i, t in enumerate(self._edges[k][1:-1]):
                state = self._advanced(k, i, x, state)
                for j, name in enumerate(self._variables):
                    row = run.columns.index(name) if name in run.columns else -1
                    seen = run.weights[row] > 0.0
                    if row >= 0 and seen.any():
                        order = np.argsort(run.t[seen])
                        state[j] = np.interp(t, run.t[seen][order], run.values[row][seen][order])
                found.append(state.copy())
        self._scales = np.maximum(np.abs(np.array(found)).max(axis=0), 1e-8)
        return np.concatenate(found)

    def _advanced(self, k: int, i: int, x: np.ndarray, state: np.ndarray | None) -> np.ndarray:
        """The differential variables at the end of piece i, or those at its beginning if the run fails."""
        try:
            sol = self._solved(k, i, x, state)
        except DaedalError:
            if state is None:
                raise
            return state
        return np.array(sol.y[self._places, -1])

    def _solved(self, k: int, i: int, x: np.ndarray, state: np.ndarray | None) -> Any:
        run, unknowns = self._comparison.runs[k], self._comparison.unknowns
        values = np.array(list(unknowns.values(x).values()))
        span = float(self._edges[k][i]), float(self._edges[k][i + 1])
        inside = run.t[(run.t >= min(span)) & (run.t <= max(span))]
        times = np.unique(np.concatenate([inside, span]))
        if span[1] < span[0]:
            times = times[::-1]
        initial = unknowns.initial(k, run, values)
        if state is not None:
            initial = self._started(initial, state)
        solver = self._first[k] if i == 0 else self._solvers[k]
        sol = solver.solve(span, initial, unknowns.params(run, values), t_eval=times)
        if not sol.success:
            raise daedal.IntegrationError(sol.message, sol)
        return sol

    def _started(self, initial: Any, state: np.ndarray) -> Any:
        """Initial values with the given differential variables; dependent variables are left undetermined."""
        if self._split is not None:
            n = self._split
            return (state[:n], state[n : 2 * n], state[2 * n :]) if state.size > 2 * n else (state[:n], state[n:])
        if isinstance(initial, Mapping):
            return {name: float(value) for name, value in zip(self._variables, state, strict=True)}
        full = np.array(initial[0] if isinstance(initial, tuple) else initial, dtype=float)
        full[self._places] = state
        return (full, *(None for _ in initial[1:])) if isinstance(initial, tuple) else full

    def residuals(self, point: np.ndarray) -> np.ndarray:
        """Residuals of the measurements, followed by the weighted gaps between pieces."""
        return self._at(point)[0]

    def jacobian(self, point: np.ndarray) -> np.ndarray:
        return self._at(point)[1]

    def _at(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        key = np.append(point, self.weight)
        if self._kept is not None and np.array_equal(self._kept[0], key):
            return self._kept[1:]
        try:
            found = self._computed(point)
        except DaedalError:
            if self._kept is None:
                raise
            size = np.abs(self._kept[1]).max() + 1.0
            return np.full_like(self._kept[1], 1e6 * size), self._kept[2]
        self._kept = key, *found
        cost = float(found[0] @ found[0])
        if self._best is None or cost < self._best[0]:
            self._best = cost, point.copy()
        return found

    def _computed(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        comparison, unknowns = self._comparison, self._comparison.unknowns
        m, n = len(unknowns.all), len(self._variables)
        x, nodes = point[:m], point[m:].reshape(len(comparison.runs), -1, n)
        values, slopes = np.array(list(unknowns.values(x).values())), unknowns.slopes(x)
        measured: list[np.ndarray] = []
        gaps: list[np.ndarray] = []
        rows: list[np.ndarray] = []
        closing: list[np.ndarray] = []
        scales = self._scales
        assert scales is not None
        for k, run in enumerate(comparison.runs):
            last = len(self._edges[k]) - 2
            for i in range(last + 1):
                sol = self._solved(k, i, x, None if i == 0 else nodes[k, i - 1])
                asked = list(sol.sensitivities.names)
                columns, factors = self._columns(k, i, asked, slopes, m, n, last)
                part = _part(run, self._edges[k], i)
                if part.t.size:
                    model, derivatives = comparison.measured(k, part, sol, values, asked)
                    seen = part.weights > 0.0
                    measured.append(((model - part.values) * part.weights)[seen])
                    block = np.zeros((measured[-1].size, point.size))
                    for name, column, factor in zip(range(len(asked)), columns, factors, strict=True):
                        if column is not None:
                            block[:, column] += (derivatives[name] * part.weights)[seen] * factor
                    rows.append(block)
                if i < last:
                    gaps.append(self.weight * (sol.y[self._places, -1] - nodes[k, i]) / scales)
                    block = np.zeros((n, point.size))
                    for name, column, factor in zip(asked, columns, factors, strict=True):
                        if column is not None:
                            ends = np.asarray(sol.sensitivity(name))[self._places, -1]
                            block[:, column] += self.weight * ends / scales * factor
                    first = m + (k * last + i) * n
                    block[:, first : first + n] -= self.weight * np.diag(1.0 / scales)
                    closing.append(block)
        return np.concatenate([*measured, *gaps]), np.concatenate([*rows, *closing])

    def _columns(self, k: int, i: int, asked: list[str], slopes: np.ndarray, m: int, n: int, last: int):
        """For all sensitivities of segment i, the indices of their unknowns (or None), and d(quantity) / d(unknown)."""
        unknowns = self._comparison.unknowns
        own = {unknowns.all[j].quantity: j for j in unknowns.of(k)}
        columns: list[int | None] = []
        factors: list[float] = []
        for name in asked:
            if i > 0 and name.endswith("(0)"):
                columns.append(m + (k * last + i - 1) * n + self._variables.index(name[:-3]))
                factors.append(1.0)
            else:
                columns.append(own.get(name))
                factors.append(float(slopes[own[name]]) if name in own else 0.0)
        return columns, factors


def _part(run: Any, edges: np.ndarray, i: int) -> Any:
    """Measurements of segment i; a measurement at a boundary belongs to the later segment."""
    low, high = sorted((edges[i], edges[i + 1]))
    forward = edges[-1] > edges[0]
    if forward:
        inside = (run.t >= low) & ((run.t < high) | (i == len(edges) - 2))
    else:
        inside = (run.t <= high) & ((run.t > low) | (i == len(edges) - 2))
    return replace(run, t=run.t[inside], values=run.values[:, inside], weights=run.weights[:, inside])


def _differential(problem: Any) -> list[int]:
    """The variables that can be chosen freely at a node."""
    if isinstance(problem, (daedal.hybrid.HybridProblem, daedal.SecondOrderDAE)):
        raise InvalidProblemError(
            f"shooting does not support {type(problem).__name__}: fit whole runs, or use an ImplicitDAE or a "
            "MechanicalSystem"
        )
    if isinstance(problem, daedal.MechanicalSystem):
        return list(range(problem.n))
    if isinstance(problem, daedal.SemiExplicitDAE):
        return list(range(problem.n_y))
    algebraic = getattr(problem, "algebraic", None)
    if algebraic is None:
        return list(range(problem.n))
    mask = np.asarray(algebraic)
    return np.flatnonzero(~mask).tolist() if mask.dtype == bool else [i for i in range(problem.n) if i not in mask]
