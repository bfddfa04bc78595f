"""Solutions of constrained systems, and quantities computed from them on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.tabular import FunctionTable
from daedal.events.table import EventTable
from daedal.solution.pieces import Pieces
from daedal.solution.quantities import Quantity
from daedal.solution.solution import Solution


@dataclass(frozen=True)
class RawOutput:
    """Output of the method before projection: all unknowns of the formulation, including multipliers."""

    t: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]


_LAZY = ("y", "drift", "notes", "message", "events", "raw", "_augmented")
_DRIFTS = ("drift", "velocity drift")  # names of the constraint residuals, by level


class ConstrainedSolution(Solution):
    """The solution of a constrained system; quantities derived from the stored points are computed on demand."""

    _stored: Pieces | None = None  # dense output without the functions of the system

    def __init__(self, *, system, evaluator, output, ending: str, formulation: str, **fields):
        self._evaluator, self._output, self._ending = evaluator, output, ending
        self.as_stated(system)
        self.formulation = formulation
        self.n_differential, self.functions = None, FunctionTable()
        for name, value in fields.items():
            setattr(self, name, value)

    @classmethod
    def stored(cls, **fields) -> Any:
        """Create a solution from stored fields, without the functions of the system."""
        solution = cls.__new__(cls)
        solution.__dict__ |= {"_system": None, "_evaluator": None, "_output": None, "machine": None}
        solution.__dict__ |= {"n_differential": None} | fields
        return solution

    def assembled(self):
        """Context manager for exclusive use of the system: ``with sol.assembled() as assembly``."""
        return self._evaluator.lend()

    def as_stated(self, system):
        """Attach `system` as the problem of this solution, in the user's form rather than an internal one."""
        self._system, self.machine = system, getattr(system, "machine", None)
        self._n_q, self._n_w = getattr(system, "n_q", 0), getattr(system, "n_w", 0)
        self._constraints = constraint_labels(system)

    @property
    def system(self) -> Any:
        """The problem as given by the user; None for a stored solution."""
        return self._system

    @property
    def evaluator(self):
        """Pool from which :meth:`assembled` borrows the system; None for a stored solution."""
        return self._evaluator

    def evaluate_with(self, evaluator):
        """Replace the pool from which :meth:`assembled` borrows the system."""
        self._evaluator = evaluator

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """Names of the rows of `lam`; none if the constraints have no names."""
        return () if all(name.startswith("[") for name in self._constraints) else self._constraints

    @property
    def multiplier_names(self) -> tuple[str, ...]:
        """Names of the rows of `lam` in ``sol[name]``: ``lambda_rod`` for a constraint "rod", else ``lambda[0]``."""
        return tuple(f"lambda{name}" if name.startswith("[") else f"lambda_{name}" for name in self._constraints)

    @property
    def integrated(self) -> np.ndarray:
        """The integrated states at the output points before projection, one per row."""
        return self._output.states

    def drift_at(self, t: float, y: np.ndarray) -> dict[str, float] | None:
        """Largest constraint residuals of the state `y` at time `t`, by level; None for a stored solution."""
        if self._evaluator is None:
            return None
        with self.assembled() as assembly:
            return assembly.drift(np.array([t]), np.ascontiguousarray(y[None, :]))

    @cached_property
    def _projected(self) -> tuple[np.ndarray, dict[str, float], list[str]]:
        with self.assembled() as assembly:
            return self._output.projected(assembly)

    @cached_property
    def y(self) -> np.ndarray:  # type: ignore[override]
        """The state at the output points, projected onto the constraints."""
        return self._projected[0]

    @cached_property
    def drift(self) -> dict[str, float]:  # type: ignore[override]
        """Largest residuals of the constraints."""
        return self._projected[1]

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes on the run."""
        return tuple(self._projected[2])

    @cached_property
    def message(self) -> str:  # type: ignore[override]
        """The reason for termination, and the notes."""
        return " ".join([self._ending, *self.notes])

    @cached_property
    def events(self) -> EventTable:
        """Events with their times and states."""
        with self.assembled() as assembly:
            return EventTable(self._output.events(assembly), {None: self.names})

    @cached_property
    def raw(self) -> RawOutput | None:
        """The unknowns of the formulation as computed by the method."""
        return self._output.raw()

    @cached_property
    def _drifts(self) -> np.ndarray:
        """The largest constraint residual by level at each output point, before projection."""
        with self.assembled() as assembly:
            return np.array(list(assembly.drifts(self.t, self.integrated).values()))

    def drift_quantities(self) -> list[Quantity]:
        """Constraint residuals over time, before projection."""
        if not self._constraints or (self._evaluator is None and "_drifts" not in self.__dict__):
            return []
        return [Quantity("drift", "", _DRIFTS[: self._drifts.shape[0]], lambda: self._drifts)]

    # --- storage without the functions of the system -----------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """All computed quantities, without the functions of the system, so that any solution can be stored."""
        if self._evaluator is not None:
            self._compute_all()
        kept = {name: value for name, value in self.__dict__.items() if name not in ("_results", "_projected")}
        return kept | {"_system": None, "_evaluator": None, "_output": None}

    def _compute_all(self):
        """Compute all quantities that need the functions of the system."""
        for name in _LAZY:
            getattr(self, name)
        self._try_to_compute("_drifts")
        if self.dense is not None:
            self._stored = self.pieces(self._stored_blocks)

    def _try_to_compute(self, name: str):
        """Compute the quantity `name`, without which the solution is still usable; nothing is stored if this fails."""
        try:
            getattr(self, name)
        except Exception:  # user functions may raise any exception
            self.__dict__.pop(name, None)

    def _stored_blocks(self, times: np.ndarray) -> list[np.ndarray]:
        """The blocks of rows from which the dense output of a stored solution is fitted, at the given times."""
        raise NotImplementedError

    def pieces(self, blocks: Callable[[np.ndarray], list[np.ndarray]]) -> Pieces:
        dense = self.dense
        assert dense is not None
        low, high = dense.interval
        ends = np.unique(np.clip(np.concatenate([[dense.t0], dense.ends]), low, high))
        if ends.size < 2:  # only the start
            ends = np.array([ends[0], np.nextafter(ends[0], np.inf)])
        forward = bool(dense.ends[-1] >= dense.t0)
        return Pieces.of(lambda times: blocks(np.clip(times, low, high)), ends, forward=forward)


def constraint_labels(system: Any) -> tuple[str, ...]:
    """Labels of the multipliers of a system: names of its constraints, or [0], [1], ..."""
    given = getattr(system, "constraint_names", None)
    count = getattr(system, "n_lambda", getattr(system, "n_y", 0))
    return tuple(given) if given else tuple(f"[{i}]" for i in range(count))


class HessenbergSolution(ConstrainedSolution):
    """The solution of a :class:`HessenbergDAE`: `y` holds z = (x, x', ...), `lam` the multiplier y of the equation.

    Examples
    --------
    >>> import daedal
    >>> def matrix(value):
    ...     return lambda t: [[value]]
    >>> problem = daedal.HessenbergDAE(
    ...     matrix(-1.0), matrix(1.0), matrix(1.0), lambda t: [0.0], lambda t: [1.0], n_x=1, n_y=1
    ... )
    >>> sol = daedal.solve(problem, (0.0, 1.0), ([-1.0], None))
    >>> type(sol).__name__, sol.y.shape[0]
    ('HessenbergSolution', 1)
    """

    @cached_property
    def _augmented(self) -> tuple[np.ndarray, np.ndarray]:
        with self.assembled() as assembly:
            a, lam, *_ = assembly.accelerate(self.t, np.ascontiguousarray(self.y.T))
        return a.T, lam.T

    @property
    def z(self) -> np.ndarray:
        """(x, x', ...), the same as `y`."""
        return self.y

    @property
    def lam(self) -> np.ndarray:
        """The multiplier."""
        return self._augmented[1]

    def multipliers(self, t: np.ndarray) -> np.ndarray:
        """The multiplier at the times `t`, from the dense output."""
        if self._stored is not None:
            return self._stored.evaluate(t)[0]
        with self.assembled() as assembly:
            return assembly.accelerate(t, np.ascontiguousarray(self.values(t).T))[1].T

    @property
    def yp(self) -> np.ndarray:  # type: ignore[override]
        """z'."""
        a = self._augmented[0]
        return np.vstack([self.y[a.shape[0] :], a])

    def quantities(self, t: Any = None) -> list[Quantity]:
        """Variables, derivatives, multipliers and drift."""

        def multipliers() -> np.ndarray:
            return self.lam if t is None else self.multipliers(np.atleast_1d(np.asarray(t, dtype=float)))

        found = super().quantities(t)
        found.append(Quantity("lam", "constraint", self.multiplier_names, multipliers, self._constraints))
        return found if t is not None else [*found, *self.drift_quantities()]

    def _stored_blocks(self, times):
        return [self.multipliers(times)]
