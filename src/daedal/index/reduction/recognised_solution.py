"""Solution of a recognised mechanism in the unknowns of the original problem, and its storage in files."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.tabular import FunctionTable
from daedal.events.table import EventTable
from daedal.index.reduction.recognition import RecognisedMechanism
from daedal.mechanics.setting import WorkspacePool
from daedal.problems.checks import check_real
from daedal.solution.file import AnySolution
from daedal.solution.mechanical_solution import MechanicalSolution, augmented
from daedal.solution.pieces import Pieces
from daedal.solution.quantities import Quantity
from daedal.solution.schema import ArrayFormat, Integer, Optional, RecordFormat, Text
from daedal.solution.solution import Solution
from daedal.solution.solution_layout import COMMON, PIECES, wrong_sizes

_LAZY = ("y", "yp", "message", "events", "drift")


class RecognisedSolution(Solution):
    """The solution of a problem that was solved as a mechanism.

    Positions, velocities and states are those of the mechanism, on the constraints; multipliers and all derivatives
    follow from the original equations. They are computed on demand.

    Attributes
    ----------
    mechanical : MechanicalSolution
        The solution of the mechanism, with constraint forces and the drift before projection.

    Examples
    --------
    >>> import daedal
    >>> def pendulum(t, y, yp):
    ...     x, z, u, w, lam = y
    ...     return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81, x**2 + z**2 - 1.0]
    >>> sol = daedal.solve_dae(pendulum, (0.0, 1.0), [1.0, 0.0, 0.0, 0.0, 0.0])
    >>> print(type(sol).__name__, sol.mechanical.q[:, -1].round(4))
    RecognisedSolution [-0.9863 -0.165 ]
    """

    formulation: str
    _stored: Pieces | None = None  # the unknowns and their derivatives, for a solution stored without its mechanism

    def __init__(self, found: RecognisedMechanism, mechanical: MechanicalSolution, n_differential: int | None = None):
        self._found, self.mechanical = found, mechanical
        self.n_differential, self.names, self.functions = n_differential, found.names, FunctionTable()
        for name in ("t", "success", "status", "stats", "method", "history", "dense", "formulation"):
            setattr(self, name, getattr(mechanical, name))

    @cached_property
    def _motion(self) -> tuple[np.ndarray, ...]:
        """q, v, r, a, r' and the multipliers of the problem at the output points."""
        return self._moving(self.t, self.mechanical.y)

    def _moving(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, ...]:
        """q, v, r, a, r' and the multipliers of the problem at `t`, from states of the mechanism of shape (n, nt)."""
        n = self._found.system.n_q
        with self.mechanical.assembled() as assembly:
            a, lam, rate, _, _ = assembly.accelerate(t, np.ascontiguousarray(state.T))
            if lam.shape[1] < self._found.system.n_lambda:  # some constraints are linearly dependent
                lam = augmented(assembly, t, state)[1].T
        q, v, r = state[:n], state[n : 2 * n], state[2 * n :]
        return q, v, r, a.T, rate.T, self._multipliers(t, q, v, r, a.T, lam.T)

    def _multipliers(self, t: np.ndarray, q, v, r, a, lam) -> np.ndarray:
        found = self._found
        if found.shares is not None:
            return found.shares @ lam
        return np.array([found.multipliers(t[i], *_column(i, q, v, r, a)) for i in range(t.size)]).T.reshape(lam.shape)

    def _slopes(self, t: np.ndarray, motion: tuple[np.ndarray, ...]) -> np.ndarray:
        _, v, _, a, rate, lam = motion
        rates = [self._found.multiplier_rates(t[i], *_column(i, *motion)) for i in range(t.size)]
        return self._found.unknowns(v, a, rate, np.array(rates).reshape(t.size, lam.shape[0]).T)

    @cached_property
    def y(self) -> np.ndarray:  # type: ignore[override]
        """The unknowns at the output points."""
        q, v, r, _, _, lam = self._motion
        return self._found.unknowns(q, v, r, lam)

    @cached_property
    def yp(self) -> np.ndarray:  # type: ignore[override]
        """The derivatives of the unknowns at the output points."""
        return self._slopes(self.t, self._motion)

    def slope(self, i: int) -> np.ndarray:
        """The derivatives at output point i that occur in the equations; zero for multipliers."""
        _, v, _, a, rate, lam = (part[:, i] for part in self._motion)
        return self._found.unknowns(v, a, rate, np.zeros_like(lam))

    def sampled(self, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """At most `count` times distributed over the run, with the unknowns and the derivatives that occur in the
        equations.

        With dense output, half of them are evenly spaced; the others are step ends.
        """
        if self.dense is None:
            places = np.unique(np.linspace(0, self.t.size - 1, min(count, self.t.size)).astype(int))
            times, state = self.t[places], self.mechanical.y[:, places]
        else:
            shares = (np.arange(count // 2) + 0.5) / (count // 2)
            steps = np.clip([self.dense.t0, *self.dense.ends], *self.dense.interval)
            close = np.interp(shares * (steps.size - 1), np.arange(steps.size), steps)
            times = np.sort(np.concatenate([steps[0] + shares * (steps[-1] - steps[0]), close]))
            state = self.mechanical.states(times)
        q, v, r, a, rate, lam = self._moving(times, state)
        return times, self._found.unknowns(q, v, r, lam), self._found.unknowns(v, a, rate, np.zeros_like(lam))

    def is_balanced(self, times: np.ndarray, y: np.ndarray) -> bool:
        """Whether the matrices of the mechanism also have the form of mechanics at these points."""
        return self._found.is_balanced(times, y)

    def passes_a_pole(self, times: np.ndarray, y: np.ndarray) -> bool:
        """Whether multipliers become infinite between two of these points, because their forces vanish.

        Forces are K^T S lam, and det S changes sign at such a point.
        """
        if self._found.shares is not None:
            return False
        signs = [self._found.orientation(t, y[:, k]) for k, t in enumerate(times.tolist())]
        return min(signs) < 0.0 < max(signs)

    @cached_property
    def message(self) -> str:  # type: ignore[override]
        """The message of the run, and the mechanism found in the equations."""
        return f"{self.mechanical.message} The equations are those of {self._found.words}, and were solved as such."

    @cached_property
    def drift(self) -> dict[str, float]:  # type: ignore[override]
        """Largest residuals of the mechanism's constraints; ``"constraint"`` is the largest of all."""
        drift = self.mechanical.drift
        largest = max((value for level, value in drift.items() if level in ("position", "velocity")), default=0.0)
        return {"constraint": largest, **drift}

    @cached_property
    def events(self) -> EventTable:
        """The events, with their times and the unknowns there."""
        n = self._found.system.n_q
        told = []
        for event in self.mechanical.events:
            y, yp = self._found.at(event.t, event.y[:n], event.y[n : 2 * n], event.y[2 * n :])
            told.append(replace(event, y=y, yp=yp))
        return EventTable(told, {None: self.names})

    def values(self, t, derivative: bool = False) -> np.ndarray:
        """Dense output: unknowns (or their derivatives) at `t`, shape (n,) for a number, (n, len(t)) for an array."""
        times = check_real(t, "t", "be a number or a vector")
        if self._stored is not None:
            flat = np.atleast_1d(times).astype(float)
            self.check_times(flat)
            found = self._stored.evaluate(flat)[int(derivative)]
            return found[:, 0].copy() if times.ndim == 0 else found
        state, n = self.mechanical(np.atleast_1d(times)), self._found.system.n_q
        lam = self._multipliers(state.t, state.q, state.v, state.r, state.a, state.lam)
        if derivative:
            rate = self.mechanical(state.t, derivative=True)[2 * n :]
            result = self._slopes(state.t, (state.q, state.v, state.r, state.a, rate, lam))
        else:
            result = self._found.unknowns(state.q, state.v, state.r, lam)
        return result[:, 0].copy() if times.ndim == 0 else result

    def quantities(self, t: Any = None) -> list[Quantity]:
        """Variables and derivatives; without `t`, also the drift of the mechanism."""
        found = super().quantities(t)
        return found if t is not None else [*found, *self.mechanical.drift_quantities()]

    def pieces(self) -> Pieces:
        """The unknowns and their derivatives as polynomials, for files."""
        if self._stored is not None:
            return self._stored
        return self.mechanical.pieces(lambda t: [self.values(t), self.values(t, derivative=True)])

    def summary(self) -> list[tuple[str, str]]:
        """The rows of the small table shown for a solution."""
        rows, drift = super().summary(), self.drift or {}
        shown = ", ".join(f"{name} {drift[name]:.1e}" for name in ("position", "velocity") if name in drift)
        return [*rows[:2], ("formulation", self.formulation), *rows[2:5], ("drift", shown), *rows[5:]]

    def __getstate__(self) -> dict[str, Any]:
        """All computed results, and the evaluation of the mechanism, which unlike the user's functions can be
        stored."""
        for name in _LAZY:
            getattr(self, name)
        evaluator = self.mechanical.evaluator
        return self.__dict__ | {"_evaluator": evaluator if isinstance(evaluator, WorkspacePool) else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        evaluator = self.__dict__.pop("_evaluator")
        if evaluator is not None:
            self.mechanical.evaluate_with(evaluator)


def _column(i: int, *arrays: np.ndarray) -> list[np.ndarray]:
    return [np.ascontiguousarray(array[:, i]) for array in arrays]


# --- Contents of a file for the solution of a recognised mechanism ---------------------------------------------------


_FIELDS = {name: kind for name, kind in COMMON.items() if name != "dense"} | {
    "yp": ArrayFormat("f8", ("n", "nt")),
    "n_differential": Optional(Integer()),
    "formulation": Text(),
    "mechanical": AnySolution("MechanicalSolution"),
    "stored": Optional(PIECES),
}


def _taken(solution: RecognisedSolution) -> dict[str, Any]:
    dense = solution.mechanical.dense is not None
    return {name: getattr(solution, name, None) for name in _FIELDS} | {"stored": solution.pieces() if dense else None}


def _wrong(given: dict[str, Any]) -> str | None:
    stored, n = given["stored"], len(given["names"])
    if (stored is None) != (given["mechanical"].dense is None):
        return "has only partial dense output"
    if stored is not None and stored.sizes.tolist() != [n, n]:
        return "has dense output of different sizes"
    return wrong_sizes(given | {"dense": None})


def _made(mechanical: Any, stored: Any, **given) -> RecognisedSolution:
    solution = RecognisedSolution.__new__(RecognisedSolution)
    given["events"] = EventTable(given["events"], {None: given["names"]})
    solution.__dict__ |= {
        "_found": None,
        "mechanical": mechanical,
        "_stored": stored,
        "dense": mechanical.dense,
    } | given
    return solution


LAYOUTS = {"RecognisedSolution": RecordFormat(_FIELDS, _made, _wrong, _taken)}
