r"""Builder of formulations for methods that solve second-order equations directly.

The constraints are imposed in their original form (index 3), by one of their derivatives, by Baumgarte's combination,
or in the second-order forms of GGL and of the minimal extension (Wunderlich (7.19), (7.31)).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import NativeFunction, NativeMatrix
from daedal.mechanics.formulations.formulation import MINIMAL_EXTENSION, ProjectedSteps, Shape, level
from daedal.mechanics.formulations.reformulation import Reformulation, step_hook
from daedal.mechanics.setting import ConsistentStart
from daedal.problems import SecondOrderDAE
from daedal.problems.second_order_form import SecondOrderForm

if TYPE_CHECKING:
    from daedal.mechanics.formulations.formulation import Formulation

_KNOWN = "index3, index2, index1, baumgarte, ggl, minimal_extension"
DIRECT, STABILISED, EXTENDED = 0, 1, 2
"""The constraints with lam alone, with eta for the second level (GGL), or with w_1 and w_2 (minimal extension)."""


class MechanicalResidual(NativeFunction):
    """The native second-order residual. Other kernels can access its mass matrix."""

    mass: tuple[np.ndarray, int] | None = None
    projected = False  # whether steps are projected onto the constraints


def second_order_form(formulation: Formulation, assembly, start: ConsistentStart, *, project: bool) -> Reformulation:
    """A formulation for an assembled mechanism, as an equation of second order."""
    if assembly.m != 2 or assembly.linear:
        raise InvalidProblemError("methods for second-order equations apply to mechanical systems")
    shape = formulation.shape(assembly)
    _check(type(formulation).__name__, shape, assembly)
    return SecondOrderReduction(formulation, shape, assembly, start, project)


def _check(title: str, shape: Shape, assembly):
    """Raise for formulations without a second-order form."""
    if shape.variant == MINIMAL_EXTENSION:
        if assembly.n_c > assembly.n_g:
            raise InvalidProblemError(
                "the second-order minimal extension requires position constraints; use index3, or method='dassl'"
            )
        return
    if shape.by_levels and shape.low and (shape.lowered or not shape.along_gradients):
        raise InvalidProblemError("the second-order form of GGL has no options: use GGL()")
    if shape.lowered:
        raise InvalidProblemError("multipliers='derivative' requires a first-order form; use method='dassl'")
    if not shape.by_levels:
        raise InvalidProblemError(
            f"{title} has no second-order form; modified_bdf and collocation support {_KNOWN}. For {title} use "
            "method='dassl'"
        )


class SecondOrderReduction(Reformulation):
    """A formulation in the unknowns of :mod:`daedal.mechanics.formulations.second_order_residuals`."""

    def __init__(self, formulation: Formulation, shape: Shape, assembly, start: ConsistentStart, project: bool):
        nx, n_g, n_c, n_r, n_w = assembly.nx, assembly.n_g, assembly.n_c, assembly.n_r, assembly.n_w
        self._project = project
        self._variant = EXTENDED if shape.variant == MINIMAL_EXTENSION else STABILISED if shape.low else DIRECT
        self._extra = {DIRECT: 0, STABILISED: n_g, EXTENDED: 2 * n_c}[self._variant]
        self._n_x = nx + n_r + n_c + n_w + self._extra
        self._projected = project and n_c > 0 and self._variant == DIRECT
        steps = ProjectedSteps(assembly.output_weight) if self._projected else None
        hook = step_hook(shape, assembly, steps)
        super().__init__(formulation, shape, assembly, nx + self._n_x, 2 * nx + n_r, hook)
        self.begin(start)

    @cached_property
    def problem(self) -> SecondOrderForm:
        """F(t, x, x', x'') = 0, in its first-order variables (q, q', r, lam, w, extra)."""
        from daedal.mechanics.formulations.second_order_residuals import second_order_residual

        nx, n_r, n_g, n = self.assembly.nx, self.assembly.n_r, self.assembly.n_g, self._n_x
        residual = self.hooked(MechanicalResidual(second_order_residual, self.record, self.assembly.bridge, n))
        residual.projected = self._projected
        if self._variant != EXTENDED and not self.shape.determined:
            residual.mass = (self.assembly.record.array("mass"), nx)
        order = np.array([2] * nx + [1] * n_r + [0] * (n - nx - n_r))
        if self._variant == STABILISED:
            order[n - n_g :] = 1
        source = np.concatenate([np.arange(nx), n + np.arange(nx), np.arange(nx, n)])
        start_order = 1 if 1 in order else 2
        problem = SecondOrderDAE(residual, n, jacobian=self._jacobian(), order=order)
        return SecondOrderForm(problem, source, self.names, start_order=start_order)

    def _jacobian(self) -> NativeMatrix | None:
        """The exact Newton matrix; None if unavailable."""
        accelerated = self._variant == EXTENDED or self._levels()[2] != 0.0
        self._linearisation = self.assembly.linearisation(2 if accelerated else 1)
        if self._linearisation is None:
            return None
        from daedal.mechanics.formulations.second_order_residuals import second_order_jacobian

        self.record["linearisation"] = self._linearisation.address
        bridge = self.assembly.bridge
        return NativeMatrix(second_order_jacobian, self.record, bridge, self._n_x, keep=self.assembly)

    def make_record(self):
        """Create the SECOND_ORDER_FORM record."""
        from daedal.kernels.records import Record
        from daedal.mechanics.formulations.second_order_residuals import SECOND_ORDER_FORM

        return Record.allocated(
            SECOND_ORDER_FORM,
            system=self.assembly.record,
            n=self._n_x,
            variant=self._variant,
            needed=self._needed(),
        )

    def _levels(self) -> tuple[float, ...]:
        """The combination in the rows of lam: g = 0 if other levels have separate rows."""
        return self.shape.directed(self.start.direction) if self._variant == DIRECT else level(0, 2)

    def _needed(self) -> int:
        from daedal.mechanics.constrained import ALGEBRAIC, BIAS, FORCE, JACOBIAN, MASS, POSITION, RATE, VELOCITY

        needed, alpha = MASS | FORCE | JACOBIAN | RATE | ALGEBRAIC, self._levels()
        if alpha[0]:
            needed |= POSITION
        if alpha[1] or self._variant != DIRECT or self.assembly.n_c > self.assembly.n_g:
            needed |= VELOCITY
        if alpha[2] or self._variant == EXTENDED:
            needed |= BIAS
        return needed

    def write(self, record) -> None:
        """Write the combination of levels for the direction of time, and the dependent coordinates."""
        record.array("alpha")[:] = self._levels()
        if self._pivot is not None:
            record.array("pivot")[:] = self._pivot[0]
        record["time_scale"] = _time_scale(self.start)

    def unknowns(self, start: ConsistentStart) -> tuple[np.ndarray, np.ndarray]:
        """(q, v, r, lam, w, extra) and derivatives at a start."""
        nx, n_c, added = self.assembly.nx, self.assembly.n_c, np.zeros(self._extra)
        if self._pivot is not None:
            places = self._pivot[0]
            for i in np.flatnonzero(places):
                added[places[i] - 1], added[n_c + places[i] - 1] = start.z[nx + i], start.a[i]
        yp = np.zeros(self.n)
        yp[: self.n_state] = np.concatenate([start.slope, start.rate])
        return np.concatenate([start.z, start.r, start.lam, start.w, added]), yp

    def restart(self, start: ConsistentStart) -> Reformulation:
        """A new instance of the same form."""
        return second_order_form(self.formulation, self.assembly, start, project=self._project)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        rows = self.row_labels
        names = [*self.assembly.state_names(), *[f"lam[{row}]" for row in rows]]
        names += [f"w[{i}]" for i in range(self.assembly.n_w)]
        if self._variant == STABILISED:
            names += [f"eta[{row}]" for row in rows[: self.assembly.n_g]]
        elif self._variant == EXTENDED:
            names += [f"w1[{row}]" for row in rows] + [f"w2[{row}]" for row in rows]
        return tuple(names)


def _time_scale(start: ConsistentStart) -> float:
    """The time scale of changes of the state."""
    nx = start.a.size
    q, v, a = (float(np.max(np.abs(x), initial=0.0)) for x in (start.z[:nx], start.z[nx:], start.a))
    rates = [v / q if q > 0.0 else 0.0, float(np.sqrt(a / q)) if q > 0.0 else 0.0]
    return 1.0 / max(*rates, 1e-12) if max(rates) > 0.0 else 1.0
