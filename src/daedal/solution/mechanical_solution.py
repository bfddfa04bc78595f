"""Solutions of mechanical systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from daedal.common.tabular import plural
from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_real
from daedal.problems.compile import last_argument
from daedal.solution.constrained_solution import ConstrainedSolution
from daedal.solution.machine_record import PartsOfMachine, RecordedMachine
from daedal.solution.quantities import Quantity, no_dense_output, row_named

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike


PARTS = ("q", "v", "a", "lam", "r", "w", "reaction")
"""The components of a state."""


@dataclass(frozen=True)
class StateNames:
    """Names of (q, v, r), of constraints and of multipliers."""

    names: tuple[str, ...]
    n_q: int
    n_w: int
    constraints: tuple[str, ...]
    multipliers: tuple[str, ...]

    @property
    def accelerations(self) -> tuple[str, ...]:
        """Names of the accelerations: ``x''`` for a coordinate ``x``, ``a[0]`` for ``q[0]``."""
        n = self.n_q
        pairs = zip(self.names[:n], self.names[n : 2 * n], strict=True)
        return tuple(f"{x}''" if v == f"{x}'" else f"a[{i}]" for i, (x, v) in enumerate(pairs))

    def quantities(self, part: Callable[[str], np.ndarray]) -> list[Quantity]:
        """Groups of named quantities; ``part(kind)`` returns the array of a state or solution, such as "q" or "lam"."""
        n = self.n_q
        positions = self.names[:n]
        algebraic = tuple(f"w[{i}]" for i in range(self.n_w))
        forces = tuple(f"reaction {name}" for name in positions)
        return [
            Quantity("q", "coordinate", positions, partial(part, "q")),
            Quantity("v", "coordinate", self.names[n : 2 * n], partial(part, "v"), positions),
            Quantity("r", "state", self.names[2 * n :], partial(part, "r")),
            Quantity("a", "coordinate", self.accelerations, partial(part, "a"), positions),
            Quantity("lam", "constraint", self.multipliers, partial(part, "lam"), self.constraints),
            Quantity("w", "algebraic", algebraic, partial(part, "w")),
            Quantity("reaction", "coordinate", forces, partial(part, "reaction"), positions, in_tables=False),
        ]


@dataclass(frozen=True)
class MechanicalState:
    """Positions, velocities, accelerations, multipliers, further variables and constraint forces at given times.

    ``state["name"]`` returns a quantity by name.

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> state = daedal.solve(pendulum, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]))(0.5)
    >>> print(state.q.round(4), state.v.round(4), state["q[0]"].round(4))
    [ 0.391  -0.9204] [-3.911  -1.6617] 0.391
    """

    t: Any
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    r: np.ndarray
    w: np.ndarray
    reaction: np.ndarray
    names: StateNames | None = field(default=None, repr=False, compare=False, kw_only=True)

    @property
    def y(self) -> np.ndarray:
        """(q, v, r), stacked."""
        return np.concatenate([self.q, self.v, self.r])

    def __getitem__(self, name: str) -> np.ndarray:
        """A quantity by its name."""
        if self.names is None:
            raise InvalidProblemError("the state has no names for its components")
        return row_named(self.names.quantities(partial(getattr, self)), name)


_ENERGIES = ("kinetic energy", "potential energy", "energy")


class MechanicalSolution(PartsOfMachine, ConstrainedSolution):
    r"""The solution of a :class:`MechanicalSystem`.

    The positions and velocities satisfy their constraints to round-off; accelerations and multipliers are those of the
    augmented system at these points, computed on first access.

    Attributes
    ----------
    q, v, a : numpy.ndarray, shape (n_q, nt)
        Positions, velocities and accelerations.
    lam : numpy.ndarray, shape (n_lambda, nt)
        Multipliers, those of position constraints first; those of dependent constraints have the smallest norm.
    r, w, s : numpy.ndarray
        First-order states, algebraic variables and contact coordinates.
    reaction : numpy.ndarray, shape (n_q, nt)
        The constraint forces :math:`-G^T \lambda`.
    y : numpy.ndarray
        (q, v, r), stacked; `yp` is its derivative.
    drift : dict
        Largest residual of the constraints over the output points: ``"position"`` and ``"velocity"`` for the returned
        values, ``"position before projection"`` and ``"velocity before projection"`` for the integrated values.
    formulation : str
        The formulation used.
    raw : RawOutput or None
        The unknowns of the formulation as computed by the method, for studies of formulations.

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> sol = daedal.solve(pendulum, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]))
    >>> print(sol.q.shape[0], f"{sol.lam[0, -1]:.3f}", sol.drift["position"] < 1e-12)
    2 2.428 True
    >>> print(sol(0.5).q.round(4))
    [ 0.391  -0.9204]
    """

    @property
    def n_q(self) -> int:
        """Number of coordinates."""
        return self._n_q

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

    @overload  # type: ignore[override]
    def __call__(self, t: ArrayLike, derivative: Literal[False] = False) -> MechanicalState: ...
    @overload
    def __call__(self, t: ArrayLike, derivative: bool) -> Any: ...
    def __call__(self, t: ArrayLike, derivative: bool = False) -> Any:
        """The :class:`MechanicalState` at `t`, projected onto the constraints; or the derivative y' = (v, a, r').

        A pickled or saved solution no longer has the functions of the system: it uses polynomials that were fitted when
        it was stored and agree with the results to about eleven digits.
        """
        if self.dense is None:
            raise no_dense_output()
        times = check_real(t, "t", "be a number or a vector")
        flat, n = np.atleast_1d(times).astype(float), self.n_q
        y, a, lam, rate, w, reaction = self._blocks(flat)
        if derivative:
            slope = np.concatenate([y[n : 2 * n], a, rate])
            return slope[:, 0] if times.ndim == 0 else slope
        parts = (y[:n], y[n : 2 * n], a, lam, y[2 * n :], w, reaction)
        if times.ndim == 0:
            return MechanicalState(float(times), *(part[:, 0].copy() for part in parts), names=self._state_names)
        return MechanicalState(flat, *parts, names=self._state_names)

    def _blocks(self, times: np.ndarray) -> list[np.ndarray]:
        """(q, v, r), a, lam, r', w and reaction at given times."""
        if self._evaluator is None:
            self.check_times(times)
            return self._without_functions(times)
        y = self.states(times)
        with self.assembled() as assembly:
            return [y, *augmented(assembly, times, y)]

    def _without_functions(self, times: np.ndarray) -> list[np.ndarray]:
        assert self._stored is not None
        return self._stored.evaluate(times)

    @property
    def ends(self) -> np.ndarray | None:
        """The start of the run and the ends of all steps; None without dense output."""
        return None if self.dense is None else np.concatenate([[self.dense.t0], self.dense.ends])

    def states(self, times: np.ndarray) -> np.ndarray:
        """(q, v, r) from the dense output, (n, nt), projected onto the constraints."""
        if self._evaluator is None:
            self.check_times(times)
            return self._without_functions(times)[0]
        y = np.atleast_2d(self.values(times))
        rows = np.ascontiguousarray(y.T)
        with self.assembled() as assembly:
            if assembly.n_c:
                assembly.project(times, rows, weight=assembly.output_weight)
        return np.ascontiguousarray(rows.T)

    # --- results of a multibody model --------------------------------------------------------------------------------

    @cached_property
    def _results(self) -> Any:
        if self.machine is None:
            raise InvalidProblemError(
                "the solved system is not a multibody model, so it has no bodies and joints; see daedal.multibody"
            )
        return self.machine.results(self)

    @property
    def parts(self) -> Any:
        """Bodies, joints and forces of a multibody model."""
        return self._results

    def animate(self, path: str | Path | None = None, drawing: Any = None, **options: Any) -> Any:
        """Animate the motion: a player in a notebook, or a page (.html) or picture (.gif).

        See :func:`daedal.viz.animate`. The motion of a :class:`daedal.multibody.Model` is shown in 3-D: see
        :meth:`daedal.multibody.Results.animate`.
        """
        if self.machine is not None and drawing is None:
            return self._results.animate(path, **options)
        from daedal.viz import animate

        return animate(self, path, self._system if drawing is None else drawing, **options)

    def summary(self) -> list[tuple[str, str]]:
        """The rows of the summary table of a solution."""
        rows = super().summary()
        return [*rows[:2], ("formulation", self.formulation), *rows[2:]]

    @property
    def title(self) -> str:
        """Title of the solution."""
        return f"Solution of a mechanical system with {plural(self.n_q, 'coordinate')}"

    # --- by name ----------------------------------------------------------------------------------------------------

    @property
    def _state_names(self) -> StateNames:
        return StateNames(self.names, self.n_q, self._n_w, self._constraints, self.multiplier_names)

    def quantities(self, t: Any = None) -> list[Quantity]:
        """Groups of quantities: positions, velocities, states, accelerations, multipliers, algebraic variables,
        constraint forces; at the output points also constraint residuals; energies of a multibody model."""
        if t is None:
            found = self._state_names.quantities(partial(getattr, self))
            found += [*self.drift_quantities(), *self._residual_quantity()]
        else:
            flat = np.atleast_1d(check_real(t, "t", "be a number or a vector")).astype(float)
            state = self(flat)
            found = self._state_names.quantities(partial(getattr, state))
        if self.machine is not None or "_energies" in self.__dict__:
            known = t is None or not isinstance(self.machine, RecordedMachine)
            found.append(Quantity("energy", "", _ENERGIES, partial(self._energy_rows, t), (), known))
        return found

    def _energy_rows(self, t: Any) -> np.ndarray:
        if t is None:
            return self._energies
        energy = self._results.energy(np.atleast_1d(np.asarray(t, dtype=float)))
        return np.array([energy.kinetic, energy.potential, energy.total])

    @cached_property
    def _energies(self) -> np.ndarray:
        energy = self.energy
        return np.array([energy.kinetic, energy.potential, energy.total])

    def _residual_quantity(self) -> list[Quantity]:
        if not self._constraints or (self._system is None and "_residuals" not in self.__dict__):
            return []
        names = tuple(f"constraint{name}" if name.startswith("[") else name for name in self._constraints)
        return [Quantity("residual", "constraint", names, lambda: self._residuals, self._constraints, in_tables=False)]

    @cached_property
    def _residuals(self) -> np.ndarray:
        """Each constraint residual at the output points, before projection."""
        system, states, n = self._system, self.integrated, self.n_q
        rows = []
        contacts = self.s.T if system.n_s else None
        for i, t in enumerate(self.t.tolist()):
            q, v = states[i, :n].copy(), states[i, n : 2 * n].copy()
            parts: list[Any] = []
            if system.n_constraints:
                point = (q,) if contacts is None else (q, contacts[i].copy())
                parts.append(system.constraint(t, *point, *last_argument(system.constraint, system.params)))
            if system.n_velocity_constraints:
                further = last_argument(system.velocity_constraint, system.params)
                parts.append(system.velocity_constraint(t, q, v, *further))
            rows.append(np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in parts] or [np.empty(0)]))
        return np.array(rows).reshape(self.t.size, len(self._constraints)).T

    def _compute_all(self):
        super()._compute_all()
        self._try_to_compute("s")
        self._try_to_compute("_residuals")
        if self.machine is not None:
            self._try_to_compute("_energies")

    def _stored_blocks(self, times):
        return self._blocks(times)


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
