"""What came out of the integration of a mechanical system."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_real
from daedal.solution import Solution
from daedal.tabular import FunctionTable, Tabular


@dataclass(frozen=True)
class State:
    """Positions, velocities, accelerations, multipliers, further variables and constraint forces at given times."""

    t: Any
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    r: np.ndarray
    w: np.ndarray
    reaction: np.ndarray

    @property
    def y(self) -> np.ndarray:
        """(q, v, r), stacked."""
        return np.concatenate([self.q, self.v, self.r])


@dataclass(frozen=True)
class RawOutput:
    """What the method computed, before it was projected: all unknowns of the formulation, multipliers included."""

    t: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]


_LAZY = ("y", "drift", "notes", "message", "events", "raw")


class ConstrainedSolution(Solution):
    """The solution of a constrained system; what follows from the stored points is computed when it is asked for."""

    def __init__(self, *, system, evaluator, output, ending: str, formulation: str, **fields):
        self._system, self._evaluator, self._output, self._ending = system, evaluator, output, ending
        self._n_q, self.machine = getattr(system, "n_q", 0), getattr(system, "machine", None)
        self.formulation = formulation
        self.n_differential, self.functions = None, FunctionTable()
        for name, value in fields.items():
            setattr(self, name, value)

    def assembled(self):
        """``with sol.assembled() as assembly``: the system ready for evaluation, for the caller alone."""
        return self._evaluator.lend()

    def as_stated(self, system):
        """Let this be the solution of `system`, as the user knows it, not of what was made of it."""
        self._system, self.machine = system, getattr(system, "machine", None)

    @property
    def evaluator(self):
        """What lends the system ready for evaluation; None if the solution was stored."""
        return self._evaluator

    def evaluate_with(self, evaluator):
        """Evaluate the system from now on with what `evaluator` lends."""
        self._evaluator = evaluator

    @property
    def integrated(self) -> np.ndarray:
        """The states at the output points as they were integrated, before projection, in rows."""
        return self._output.states

    def drift_at(self, t: float, y: np.ndarray) -> dict[str, float] | None:
        """Residuals of the constraints in one state, level by level; None if the solution was stored."""
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
        """The state at the output points, on the constraints."""
        return self._projected[0]

    @cached_property
    def drift(self) -> dict[str, float]:  # type: ignore[override]
        """Largest residuals of the constraints."""
        return self._projected[1]

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What there is to say about the run."""
        return tuple(self._projected[2])

    @cached_property
    def message(self) -> str:  # type: ignore[override]
        """How it ended, in words, and the notes."""
        return " ".join([self._ending, *self.notes])

    @cached_property
    def events(self) -> list:  # type: ignore[override]
        """What fired, when, with the state there."""
        with self.assembled() as assembly:
            return self._output.events(assembly)

    @cached_property
    def raw(self) -> RawOutput | None:
        """The unknowns of the formulation as the method computed them."""
        return self._output.raw()

    def __getstate__(self) -> dict[str, Any]:
        """Everything computed; the functions of the system stay behind, so that any solution can be stored."""
        if self._evaluator is not None:
            for name in (*_LAZY, "_augmented"):
                getattr(self, name)
            self._store_interpolant()
        kept = {name: value for name, value in self.__dict__.items() if name != "_results"}
        return kept | {"_system": None, "_evaluator": None, "_output": None}

    def _store_interpolant(self):
        """Keep what dense output needs without the functions of the system."""


class MechanicalSolution(ConstrainedSolution):
    r"""The solution of a :class:`MechanicalSystem`.

    The positions and velocities satisfy their constraints to round-off; accelerations and multipliers are those of the
    augmented system at these points, computed when they are first asked for.

    Attributes
    ----------
    q, v, a : numpy.ndarray, shape (n_q, nt)
        Positions, velocities and accelerations.
    lam : numpy.ndarray, shape (n_lambda, nt)
        Multipliers, those of position constraints first; dependent constraints share theirs with the smallest norm.
    r, w, s : numpy.ndarray
        First-order states, algebraic variables and contact coordinates.
    reaction : numpy.ndarray, shape (n_q, nt)
        The constraint forces :math:`-G^T \lambda`.
    y : numpy.ndarray
        (q, v, r), stacked; `yp` its derivative.
    drift : dict
        Largest residual of the constraints over the output points: ``"position"`` and ``"velocity"`` of what is
        returned, ``"position before projection"`` and ``"velocity before projection"`` of what was integrated.
    formulation : str
        How the problem was rewritten.
    raw : RawOutput or None
        The unknowns of the formulation as the method computed them, for those who study formulations.
    """

    @property
    def n_q(self) -> int:
        """Number of coordinates."""
        return self._n_q

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """Names of the rows of `lam`; none if the constraints have no names, or if the solution was stored."""
        return tuple(getattr(self._system, "constraint_names", None) or ())

    @property
    def q(self) -> np.ndarray:
        """Positions."""
        return self.y[: self.n_q]

    @property
    def v(self) -> np.ndarray:
        """Velocities."""
        return self.y[self.n_q : 2 * self.n_q]

    @property
    def r(self) -> np.ndarray:
        """First-order states."""
        return self.y[2 * self.n_q :]

    @cached_property
    def _augmented(self) -> tuple[np.ndarray, ...]:
        """a, lam, r', w and reaction at the output points."""
        with self.assembled() as assembly:
            return augmented(assembly, self.t, self.y)

    @property
    def a(self) -> np.ndarray:
        """Accelerations."""
        return self._augmented[0]

    @property
    def lam(self) -> np.ndarray:
        """Multipliers."""
        return self._augmented[1]

    @property
    def w(self) -> np.ndarray:
        """Algebraic variables."""
        return self._augmented[3]

    @cached_property
    def s(self) -> np.ndarray:
        """Contact coordinates."""
        with self.assembled() as assembly:
            return assembly.contact_coordinates(self.t, self.q.T)

    @property
    def reaction(self) -> np.ndarray:
        """Constraint forces."""
        return self._augmented[4]

    @property
    def yp(self) -> np.ndarray:  # type: ignore[override]
        """Derivatives of (q, v, r)."""
        return np.vstack([self.v, self.a, self._augmented[2]])

    def __call__(self, t, derivative: bool = False):
        """The :class:`State` at `t`, from the dense output, projected onto the constraints; or y' = (v, a, r') there.

        A solution that was pickled has left the functions of the system behind: it gives the interpolant of q and v as
        it is, and interpolates a, lam, w and reaction by cubics between points that were computed when it was stored.
        """
        if self.dense is None:
            raise InvalidProblemError("no dense output was kept; call solve with dense_output=True")
        times = check_real(t, "t", "be a number or a vector")
        flat, n = np.atleast_1d(times).astype(float), self.n_q
        y = self.states(flat)
        if self._evaluator is not None:
            with self.assembled() as assembly:
                a, lam, rate, w, reaction = augmented(assembly, flat, y)
        else:
            a, lam, w, reaction = self._stored.evaluate(flat)
            rate = np.atleast_2d(super().__call__(flat, derivative=True))[2 * n :]
        if derivative:
            slope = np.concatenate([y[n : 2 * n], a, rate])
            return slope[:, 0] if times.ndim == 0 else slope
        parts = (y[:n], y[n : 2 * n], a, lam, y[2 * n :], w, reaction)
        if times.ndim == 0:
            return State(float(times), *[part[:, 0].copy() for part in parts])
        return State(flat, *parts)

    @property
    def ends(self) -> np.ndarray | None:
        """The beginning of the run and the ends of all steps; None if no dense output was kept."""
        return None if self.dense is None else np.concatenate([[self.dense.t0], self.dense.ends])

    def states(self, times: np.ndarray) -> np.ndarray:
        """(q, v, r) from the dense output, (n, nt), projected onto the constraints unless the solution was stored."""
        y = np.atleast_2d(super().__call__(times))
        if self._evaluator is None:
            return y
        rows = np.ascontiguousarray(y.T)
        with self.assembled() as assembly:
            if assembly.n_c:
                assembly.project(times, rows, weight=assembly.output_weight)
        return np.ascontiguousarray(rows.T)

    # --- of a machine made of bodies and joints ---------------------------------------------------------------------

    @cached_property
    def _results(self) -> Any:
        if self.machine is None:
            raise InvalidProblemError(
                "the solved system was not made of bodies and joints, so nothing is known of them; see daedal.multibody"
            )
        return self.machine.results(self)

    def body(self, name: str, t: Any = None):
        """The motion of a body of a :class:`daedal.multibody.Model`, at the output points or at the times `t`."""
        return self._results.body(name, t)

    def joint(self, name: str, t: Any = None):
        """The motion of a joint of a :class:`daedal.multibody.Model`, and the force and torque that it carries."""
        return self._results.joint(name, t)

    def force(self, name: str, t: Any = None):
        """What a force of a :class:`daedal.multibody.Model` does."""
        return self._results.force(name, t)

    @property
    def energy(self):
        """Kinetic, potential and total energy of a :class:`daedal.multibody.Model` at the output points."""
        return self._results.energy()

    def power(self, force: Any, t: Any = None) -> np.ndarray:
        """The power of a force of a :class:`daedal.multibody.Model`, given by itself or its name."""
        return self._results.power(force, t)

    def animate(self, path=None, drawing=None, **options: Any):
        """Write the motion to a page (.html) or a picture (.gif); see :func:`daedal.viz.animate`.

        The motion of a :class:`daedal.multibody.Model` is shown in space: see :meth:`daedal.multibody.Results.animate`.
        """
        if self.machine is not None and drawing is None:
            return self._results.animate(path, **options)
        from daedal.viz import animate

        return animate(self, path, self._system if drawing is None else drawing, **options)

    def summary(self) -> list[tuple[str, str]]:
        """The rows of the small table shown for a solution."""
        rows = super().summary()
        return [*rows[:2], ("formulation", self.formulation), *rows[2:]]

    def __repr__(self) -> str:
        rows = Tabular("ll", self.summary(), indent=2)
        return f"Solution of a mechanical system with {self.n_q} coordinates\n{rows}\n  {self.message}"

    def _store_interpolant(self):
        if self.dense is not None:
            self._stored = Stored.of(self)


def augmented(assembly, t: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """a, all multipliers, r', w and reaction at the columns of `y`."""
    system = assembly.given
    states = np.ascontiguousarray(y.T)
    a, lam, rate, w, _ = assembly.accelerate(t, states)
    reaction = np.empty_like(a)
    multipliers = np.zeros((t.size, system.n_lambda))
    dependent = system.n_lambda > assembly.n_c
    full = assembly.complete() if dependent else assembly
    for i in range(t.size):
        jacobian = full.gradients(t[i], states[i])
        if jacobian is None:
            reaction[i], multipliers[i] = np.nan, np.nan
            continue
        used = jacobian[assembly.rows] if dependent else jacobian
        reaction[i] = -used.T @ lam[i]
        multipliers[i] = np.linalg.lstsq(jacobian.T, -reaction[i], rcond=1e-10)[0] if dependent else lam[i]
    return a.T, multipliers.T, rate.T, w.T, reaction.T


@dataclass(frozen=True)
class Stored:
    """a, lam, w and reaction of a stored solution: values at the ends and the thirds of all steps, for cubics."""

    ends: np.ndarray
    values: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, solution: MechanicalSolution) -> Stored:
        """Computed while the functions of the system are at hand."""
        dense = solution.dense
        assert dense is not None
        low, high = dense.interval
        ends = np.unique(np.clip(np.concatenate([[dense.t0], dense.ends]), low, high))
        nodes = (ends[:-1, None] + np.diff(ends)[:, None] * np.arange(3) / 3.0).ravel()
        state = solution(np.concatenate([nodes, ends[-1:]]))
        return cls(ends, (state.a, state.lam, state.w, state.reaction))

    def evaluate(self, times: np.ndarray) -> list[np.ndarray]:
        """Values at `times`, one column each."""
        step = np.clip(np.searchsorted(self.ends, times, side="right") - 1, 0, self.ends.size - 2)
        x = 3.0 * (times - self.ends[step]) / (self.ends[step + 1] - self.ends[step])
        weights = (
            -(x - 1.0) * (x - 2.0) * (x - 3.0) / 6.0,
            x * (x - 2.0) * (x - 3.0) / 2.0,
            -x * (x - 1.0) * (x - 3.0) / 2.0,
            x * (x - 1.0) * (x - 2.0) / 6.0,
        )
        return [
            np.asarray(sum(weight * rows[:, 3 * step + j] for j, weight in enumerate(weights))) for rows in self.values
        ]


class HessenbergSolution(ConstrainedSolution):
    """The solution of a :class:`HessenbergDAE`: `y` holds z = (x, x', ...), `lam` the multiplier y of the equation."""

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
        with self.assembled() as assembly:
            return assembly.accelerate(t, np.ascontiguousarray(self(t).T))[1].T

    @property
    def yp(self) -> np.ndarray:  # type: ignore[override]
        """z'."""
        a = self._augmented[0]
        return np.vstack([self.y[a.shape[0] :], a])
