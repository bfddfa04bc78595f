"""Builder of formulations with dense matrices: a declaration as a residual F(t, y, y') = 0 in compiled code."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import NativeFunction, NativeMatrix, store_matrix
from daedal.mechanics.formulations.formulation import (
    ACCELERATION,
    DYNAMICS,
    FUEHRER_LEIMKUHLER,
    GIVEN,
    MINIMAL_EXTENSION,
    PENALTY,
    PLAIN,
    PROJECTIONS,
    THROUGH_MASS,
    Shape,
)
from daedal.mechanics.formulations.reformulation import Reformulation, step_hook
from daedal.mechanics.setting import ConsistentStart
from daedal.problems import ImplicitDAE

if TYPE_CHECKING:
    from daedal.mechanics.formulations.formulation import Formulation


# --- D, along which multipliers correct the solution, and the sizes of these multipliers ------------------------------

_LOOSE = 10.0  # factor by which the sizes of multipliers that only correct drift are enlarged
_SINGULAR = 1e-13  # relative size below which a singular value of the scaled mass matrix counts as zero
_NAMED = 0.2  # relative component of a massless motion above which a message names the coordinate
_NEARLY_DEPENDENT = 1e-10  # singular value of G D, with rows and columns of norm 1, below which it counts as zero


def kind_of(projection: Any) -> int:
    """Check a projection, and return TRANSPOSE, THROUGH_MASS or GIVEN."""
    if not isinstance(projection, str):
        return GIVEN
    if projection not in PROJECTIONS:
        raise InvalidProblemError(f"unknown projection '{projection}'; known: {', '.join(PROJECTIONS)}, or a matrix")
    return PROJECTIONS[projection]


def given_direction(projection: Any, assembly, start: ConsistentStart) -> np.ndarray:
    """D of kind GIVEN, from unit vectors, a matrix or a function; raises if G D is singular at the start."""
    nx, n_c = assembly.nx, assembly.n_c
    if isinstance(projection, str):
        return _unit_vectors(assembly, start)
    if callable(projection):
        from daedal.kernels.functions import store_matrix

        values = np.empty(nx * n_c)
        store_matrix("projection", nx, n_c)(projection(start.t, start.z[:nx].copy()), values)
        direction = values.reshape(n_c, nx).T
    else:
        try:
            direction = np.asarray(projection, dtype=float).reshape(nx, n_c)
        except (TypeError, ValueError):
            raise InvalidProblemError(
                f"projection must be {', '.join(map(repr, PROJECTIONS))}, a function D(t, q) or an array ({nx}, {n_c})"
            ) from None
    _check(assembly, start, direction)
    return direction


def _check(assembly, start: ConsistentStart, direction: np.ndarray):
    """Raise if G D is singular at the start of the run."""
    if not np.all(np.isfinite(direction)):
        raise InvalidProblemError(f"projection holds values that are not finite at t = {start.t:g}")
    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    if values is None or assembly.n_g == 0:
        return
    rows, columns = values["jacobian"][: assembly.n_g], direction[:, : assembly.n_g]
    scale = np.outer(_nonzero(np.linalg.norm(rows, axis=1)), _nonzero(np.linalg.norm(columns, axis=0)))
    if np.linalg.svd(rows @ columns / scale, compute_uv=False)[-1] < _NEARLY_DEPENDENT:
        raise InvalidProblemError(
            f"projection: G D is singular at t = {start.t:g}, so the multipliers cannot move the solution back to the "
            f"constraints; choose another D"
        )


def refuse_singular_mass(words: str, remedy: str, assembly, start: ConsistentStart):
    """Raise if M is singular at the start: corrections along M^{-1} G^T and accelerations M^{-1} f need its inverse."""
    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    if values is None or not np.isfinite(values["mass"]).all():
        return
    scale = _nonzero(np.sqrt(np.abs(np.diag(values["mass"]))))
    _, sizes, directions = np.linalg.svd(values["mass"] / np.outer(scale, scale))
    if sizes[-1] > _SINGULAR * sizes[0]:
        return
    share = np.abs(directions[-1])
    names = assembly.state_names()
    named = ", ".join(names[i] for i in np.argsort(-share, kind="stable") if share[i] >= _NAMED * share.max())
    raise InvalidProblemError(
        f"the mass matrix is singular at t = {start.t:g}, mainly in {named}, and {words} needs its inverse. "
        f"Remedy: {remedy}"
    )


def _unit_vectors(assembly, start: ConsistentStart) -> np.ndarray:
    """Unit vectors along the coordinates for which the constraints are best conditioned, as columns of D."""
    from scipy.linalg import qr

    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    direction = np.zeros((assembly.nx, assembly.n_c))
    if values is not None and assembly.n_c:
        columns = qr(values["jacobian"], mode="r", pivoting=True)[1][: assembly.n_c]
        direction[columns, np.arange(assembly.n_c)] = 1.0
    return direction


def multiplier_sizes(assembly, start: ConsistentStart, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Sizes of the multipliers, and their sizes per unit of acceleration or velocity, for any scaling of constraints.

    lam_i balances forces of the size of M a, along G_i^T; mu_i changes velocities (or accelerations), along D_i. mu
    vanishes for the exact solution and acts through h mu, so its size is assumed to be ten times as large.
    """
    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    if values is None:
        return np.zeros(0), np.zeros(0)
    largest = [float(np.max(np.abs(z), initial=0.0)) for z in (*start.z.reshape(assembly.m, -1), start.a)]
    gradients = _nonzero(np.linalg.norm(values["jacobian"], axis=1))
    along = _nonzero(np.linalg.norm(_typical(assembly, values, shape.projection), axis=0))
    if shape.top == DYNAMICS:
        forces = np.concatenate([values["mass"] @ start.a, values["force"]])
        top = np.abs(start.lam) + float(np.max(np.abs(forces), initial=0.0)) / gradients
        top_units = float(np.max(np.abs(values["mass"]), initial=0.0)) / gradients
    else:
        top, top_units = _LOOSE * largest[-1] / along, _LOOSE / along
    first = assembly.n_c - shape.n_top
    sizes, units = [top[first:]], [top_units[first:]]
    for level in range(shape.low):
        # at rest, the typical velocity follows from distance and acceleration
        rate = max(largest[level + 1], float(np.sqrt(largest[level] * largest[min(level + 2, assembly.m)])))
        sizes.append(_LOOSE * rate / along[: assembly.n_g])
        units.append(_LOOSE / along[: assembly.n_g])
    return np.concatenate(sizes), np.concatenate(units)


def _typical(assembly, values, projection: Any) -> np.ndarray:
    """The matrix D, or an approximation, from which sizes of multipliers are estimated."""
    jacobian = values["jacobian"]
    kind = kind_of(projection)
    if kind == THROUGH_MASS:
        try:
            return np.linalg.solve(values["mass"], jacobian.T)
        except np.linalg.LinAlgError:
            return jacobian.T
    if kind != GIVEN or callable(projection):
        return jacobian.T
    return np.eye(assembly.nx, assembly.n_c) if isinstance(projection, str) else np.asarray(projection, dtype=float)


def _nonzero(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0.0, x, 1.0)


# --- builder ----------------------------------------------------------------------------------------------------------


class DenseReduction(Reformulation):
    """A formulation in the unknowns of :mod:`daedal.mechanics.formulations.residuals`."""

    def __init__(self, formulation: Formulation, shape: Shape, assembly, start: ConsistentStart):
        if shape.variant == PENALTY and assembly.record["uses_multipliers"]:
            raise InvalidProblemError(
                "Loetstedt's penalty has no multipliers, but the forces of this system depend on them; use "
                "another formulation (auto, ggl)"
            )
        if assembly.n_g == 0:  # velocity constraints have no lower levels
            shape = replace(shape, low=0)
        self._direction_kind = kind_of(shape.projection)
        self._direction: np.ndarray | None = None
        self._extra = assembly.n_c if shape.variant == MINIMAL_EXTENSION else 0
        self._w_at = assembly.n_state + shape.n_top + shape.low * assembly.n_g
        n = self._w_at + (assembly.n_w if shape.top == DYNAMICS else 0) + self._extra
        hook = step_hook(shape, assembly, shape.steps)
        super().__init__(formulation, shape, assembly, n, assembly.n_state, hook)
        self.begin(start)

    @property
    def pack(self):
        """Function that computes unknowns from consistent values; None if psi with psi' = lam is unknown."""
        return None if self.shape.lowered else self.unknowns

    @property
    def multiplier_sizes(self):  # type: ignore[override]
        """Function that computes sizes and units of multipliers at a start; None if multipliers are not unknowns."""
        if self.n == self.n_state or self.shape.lowered:
            return None
        return lambda start: multiplier_sizes(self.assembly, start, self.shape)

    @cached_property
    def problem(self) -> ImplicitDAE:
        """F(t, y, y') = 0; for a mechanism without r and w, with Newton's method in small blocks."""
        from daedal.mechanics.formulations.newton_matrices import condensed_prepare, condensed_solve
        from daedal.mechanics.formulations.residuals import form_residual

        assembly, shape = self.assembly, self.shape
        simple = assembly.m == 2 and assembly.n_r == 0 and assembly.n_w == 0
        plain = shape.variant == PLAIN and not shape.lowered and not assembly.record["uses_multipliers"]
        linear = (condensed_prepare, condensed_solve) if simple and plain else None
        algebraic = None if shape.lowered else np.arange(self.n) >= self.n_state
        jacobian = self._jacobian() if linear is None else None
        if linear is not None:
            self._linearise()
        residual = self.native(form_residual, linear)
        return ImplicitDAE(residual, self.n, jacobian=jacobian, algebraic=algebraic, names=self.names)

    def _linearise(self) -> bool:
        """Store the exact derivatives of the mechanism in the record; returns whether they exist."""
        levels = 2 if self.shape.top == ACCELERATION or self.shape.variant == MINIMAL_EXTENSION else 1
        self._linearisation = self.assembly.linearisation(levels) if not self.assembly.linear else None
        if self._linearisation is not None:
            self.record["linearisation"] = self._linearisation.address
        return self._linearisation is not None

    def _jacobian(self) -> NativeMatrix | None:
        """The exact Newton matrix; None if unavailable."""
        assembly, shape = self.assembly, self.shape
        inner = assembly.n_w > 0 or assembly.record["uses_multipliers"]
        known = shape.variant in (PLAIN, MINIMAL_EXTENSION, FUEHRER_LEIMKUHLER) and not (
            shape.top == ACCELERATION and inner
        )
        if not known or not self._linearise():
            return None
        from daedal.mechanics.formulations.newton_matrices import form_jacobian

        return NativeMatrix(form_jacobian, self.record, assembly.bridge, self.n, keep=assembly)

    @cached_property
    def rate(self) -> NativeFunction | None:
        """Function that computes y'; None unless the form is an ordinary differential equation."""
        from daedal.mechanics.formulations.residuals import form_rate

        if self.n > self.n_state or (self.shape.top == DYNAMICS and self.shape.variant == PLAIN):
            return None
        return self.native(form_rate)

    def make_record(self):
        """Create the FORM record."""
        from daedal.kernels.dense import dense_lu
        from daedal.kernels.records import Record
        from daedal.mechanics.formulations.residuals import FORM

        assembly, shape, nx = self.assembly, self.shape, self.assembly.nx
        return Record.allocated(
            FORM,
            system=assembly.record,
            n=self.n,
            top=shape.top,
            variant=shape.variant,
            n_top=shape.n_top,
            low=shape.low,
            lowered=shape.lowered,
            projection=self._direction_kind,
            needed=_needed(assembly, shape),
            mass_lu=dense_lu(nx),
            low_rows=dense_lu(max(assembly.n_g, 1)),
            condensed=dense_lu(nx + shape.n_top),
            **self._direction_function(),
        )

    def _direction_function(self) -> dict[str, Any]:
        projection, shape = self.shape.projection, (self.assembly.nx, self.assembly.n_c)
        if not callable(projection):
            return {}
        store = store_matrix("projection", *shape)
        return {"direction_function": self.assembly.bridge.function(projection, shape[:1], shape, store)}

    def choose(self, start: ConsistentStart) -> None:
        """Choose directions and dependent coordinates for a start."""
        super().choose(start)
        shape, name = self.shape, f"formulation={self.formulation.name!r}"
        if shape.variant in (FUEHRER_LEIMKUHLER, PENALTY):
            refuse_singular_mass(name, "leave formulation out, or choose 'ggl'", self.assembly, start)
        elif self._direction_kind == THROUGH_MASS and (shape.low > 0 or shape.top == ACCELERATION):
            refuse_singular_mass(f"{name} with projection='B'", "choose projection='CT'", self.assembly, start)
        if self._direction_kind == GIVEN:
            self._direction = given_direction(self.shape.projection, self.assembly, start)

    def write(self, record) -> None:
        """Write the combination of levels for the direction of time, and the chosen directions."""
        m, shape, direction = self.assembly.m, self.shape, self.start.direction
        levels = shape.directed(direction)
        record.array("alpha")[:] = levels[:m]
        damping = [*levels[:m], levels[m - 1] / m] if shape.determined else [0.0] * (m + 1)
        record.array("damping")[:] = damping
        record["damped"] = any(damping)
        record["epsilon"] = shape.compliance or direction * shape.small_times[0]
        record["mu"] = direction * shape.small_times[1]
        if self._direction is not None:
            record.array("direction")[:] = self._direction
        if self._pivot is not None:
            record.array("pivot")[:] = self._pivot

    def unknowns(self, start: ConsistentStart) -> tuple[np.ndarray, np.ndarray]:
        """Unknowns and derivatives at a start: mu is zero, and lam is computed from the augmented system."""
        shape, n_z, n_state = self.shape, start.z.size, self.n_state
        y, yp = np.zeros(self.n), np.zeros(self.n)
        y[:n_z], y[n_z:n_state] = start.z, start.r
        yp[:n_z], yp[n_z:n_state] = start.slope, start.rate
        if shape.top == DYNAMICS:
            if shape.n_top:
                (yp if shape.lowered else y)[n_state : n_state + shape.n_top] = start.lam
            y[self._w_at : self._w_at + start.w.size] = start.w
        if self._pivot is not None:
            places = self._pivot[1]
            dependent = np.flatnonzero(places)
            y[self.n - self._extra + places[dependent] - 1] = start.a[dependent]
        return y, yp

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        assembly, shape = self.assembly, self.shape
        rows = self.row_labels
        letter = "lam" if shape.top == DYNAMICS else "mu"
        names = [*assembly.state_names(), *[f"{letter}[{row}]" for row in rows[len(rows) - shape.n_top :]]]
        for level in range(shape.low):
            names += [f"mu{level + 1}[{row}]" for row in rows[: assembly.n_g]]
        if shape.top == DYNAMICS:
            names += [f"w[{i}]" for i in range(assembly.n_w)]
        return (*names, *[f"extra[{i}]" for i in range(self._extra)])


def _needed(assembly, shape: Shape) -> int:
    """The quantities that the residual evaluates if the accelerations are unknowns."""
    from daedal.mechanics.constrained import ALGEBRAIC, BIAS, FORCE, JACOBIAN, MASS, POSITION, RATE, VELOCITY

    needed = MASS | FORCE | JACOBIAN | RATE | ALGEBRAIC
    if shape.top == ACCELERATION:
        return needed
    if shape.levels[0] or shape.low or shape.variant != PLAIN:
        needed |= POSITION
    if shape.levels[assembly.m - 1] or assembly.n_c > assembly.n_g or shape.variant != PLAIN:
        needed |= VELOCITY
    if shape.variant == MINIMAL_EXTENSION:
        needed |= BIAS
    return needed
