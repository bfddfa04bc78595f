"""Runs of a model beside measurements: weighted residuals and their derivatives by the unknowns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import daedal
from daedal.errors import DaedalError, InvalidProblemError
from daedal.fitting.experiment import Measurements
from daedal.fitting.unknowns import Unknowns
from daedal.problems.arguments import FIRST, PARAMS, SECOND, TIME, WHOLE, StateArguments, state_split

_STEP = 1e-6  # of directional differences of outputs, in units of the state
_FAR = 1e6  # what a run that cannot be computed counts for, in units of the residuals at the best point so far


@dataclass(frozen=True)
class Point:
    """The model at some values of the unknowns."""

    x: np.ndarray
    residuals: np.ndarray
    jacobian: np.ndarray  # by the unknowns on the scale of the search
    solutions: tuple[Any, ...]
    failure: Exception | None = None

    @property
    def cost(self) -> float:
        """Half the sum of squares."""
        return 0.5 * float(self.residuals @ self.residuals)


class Comparison:
    """All runs of a fit; keeps the last point and the best one."""

    def __init__(self, problem: Any, runs: list[Measurements], unknowns: Unknowns, outputs: Mapping, options: dict):
        self.runs, self.unknowns, self._outputs = runs, unknowns, outputs
        self._split = None if isinstance(problem, daedal.SecondOrderDAE) else state_split(problem)
        arguments = StateArguments(problem, problem.params is not None, self._split is not None)
        self._places = {name: arguments.of(f, f"outputs[{name!r}]", state_only=True) for name, f in outputs.items()}
        self._solvers = [
            daedal.prepare(problem, sensitivities=unknowns.quantities(k), correct_initial=True, **options)
            for k in range(len(runs))
        ]
        self._last: Point | None = None
        self.best: Point | None = None
        self.evaluations = self.failed = 0
        self.told: Callable[[Point], None] = lambda point: None

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """Weighted residuals, model minus measurement; huge where the model cannot be solved."""
        return self.at(x).residuals

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Their derivatives."""
        return self.at(x).jacobian

    def at(self, x: np.ndarray) -> Point:
        """The model at x; a run that fails does not end the search, unless it is the first."""
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
            point = Point(np.array(x), _FAR * size, np.zeros_like(self.best.jacobian), (), error)
        else:
            if self.best is None or point.cost < self.best.cost:
                self.best = point
        self._last = point
        self.told(point)
        return point

    def _computed(self, x: np.ndarray) -> Point:
        values = np.array(list(self.unknowns.values(x).values()))
        slopes = self.unknowns.slopes(x)
        residuals, rows, solutions = [], [], []
        for k, run in enumerate(self.runs):
            sol = self._solved(k, run, values)
            model, derivatives = self.measured(k, run, sol, values)
            seen = run.weights > 0.0
            residuals.append(((model - run.values) * run.weights)[seen])
            block = np.zeros((int(seen.sum()), values.size))
            quantities = self.unknowns.quantities(k)
            own = {self.unknowns.all[i].quantity: i for i in self.unknowns.of(k)}  # those of the run come last
            for name, place in own.items():
                block[:, place] = (derivatives[quantities.index(name)] * run.weights)[seen] * slopes[place]
            rows.append(block)
            solutions.append(sol)
        found = np.concatenate(residuals), np.concatenate(rows)
        if not all(np.all(np.isfinite(part)) for part in found):
            raise InvalidProblemError("the model or its derivatives are not finite at the times of the measurements")
        return Point(x, *found, tuple(solutions))

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

    def measured(self, k: int, run: Measurements, sol: Any, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the model says of the measured columns (columns, times), and its derivatives by each quantity."""
        place = {float(t): i for i, t in enumerate(sol.t)}
        at = np.array([place[float(t)] for t in run.t])
        sensitivities = [sol.sensitivity(name) for name in self.unknowns.quantities(k)]
        model = np.empty(run.values.shape)
        derivatives = np.empty((len(sensitivities), *run.values.shape))
        for row, column in enumerate(run.columns):
            if column in self._outputs:
                model[row], derivatives[:, row] = self._output(k, run, column, sol, sensitivities, values, at)
            else:
                model[row] = sol[column][at]
                derivatives[:, row] = [component(sol, column, one)[at] for one in sensitivities]
        return model, derivatives

    def _output(self, k, run, column, sol, sensitivities, values, at):
        """A function of the state, and its derivative along each sensitivity by central differences."""
        function, states = self._outputs[column], np.asarray(sol.y)
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
            if own:  # parameters in the output itself
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
    raise InvalidProblemError(f"the derivative of {column!r} by parameters is not known; give it as one of the outputs")


def _state_step(states: np.ndarray, s: np.ndarray) -> float:
    """The step of a difference along s that is small for every component of the state."""
    sizes, rates = np.abs(states).max(axis=1), np.abs(s).max(axis=1)
    ratios = sizes[rates > 0.0] / rates[rates > 0.0]
    ratios = ratios[ratios > 0.0]
    return _STEP * float(ratios.min() if ratios.size else 1.0 / max(float(rates.max(initial=0.0)), 1.0))
