r"""Extrapolation for mechanisms as in MEXX: the half-explicit midpoint rule in index-2 form.

References
----------
Ch. Lubich: h^2-extrapolation methods for differential-algebraic systems of index 2, IMPACT Comput. Sci. Eng. 1 (1989)
260-268; Extrapolation integrators for constrained multibody systems, IMPACT 3 (1991) 213-234. Ch. Lubich, U. Nowak,
U. Poehle, Ch. Engstler: MEXX - Numerical software for the integration of constrained mechanical multibody systems,
ZIB SC 92-12 (1992).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.base import Method, check_name
from daedal.methods.extrapolation.extrapolation_sequences import MOST_COLUMNS
from daedal.methods.half_explicit.half_explicit import MechanicalRun
from daedal.methods.task import Equations, Task

_NUMBERS = tuple(range(2, 4 * MOST_COLUMNS, 4))
_MOST, _FIXED = 9, 4
_PROJECTIONS = ("drift", "always", "never")


@dataclass(frozen=True)
class MEXX(Method):
    """Extrapolated half-explicit midpoint rule with variable order and step size, for nonstiff mechanisms.

    A basic step is taken with 2, 6, 10, ... steps of the midpoint rule, each with one linear system whose multipliers
    make the velocity constraint hold at the next point; the results are extrapolated, and every row of the table raises
    the order by two. Suited to tight tolerances.

    Parameters
    ----------
    columns : "auto" or int
        Columns of the table, 2 to 9: the order is twice their number. "auto" adapts them to minimise work per unit
        step, and uses 4 with `fixed_step`.
    projection : {"drift", "always", "never"}
        When positions (and with them velocities) are projected onto the constraints: when the drift reaches a
        twentieth of the tolerance, after every step, or never.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.get("planar_pendulum")
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, method="mexx", rtol=1e-12, atol=1e-13)
    >>> sol.success
    True
    """

    columns: Any = "auto"
    projection: str = "drift"

    name = "mexx"
    needs = ("mechanism",)
    explicit = True

    def __post_init__(self):
        whole = isinstance(self.columns, (int, np.integer)) and not isinstance(self.columns, bool)
        automatic = isinstance(self.columns, str) and self.columns == "auto"
        if not automatic and not (whole and 2 <= self.columns <= _MOST):
            raise InvalidProblemError(
                f"columns must be 'auto' or a whole number from 2 to {_MOST}, got {self.columns!r}"
            )
        check_name("projection", self.projection, _PROJECTIONS)

    @property
    def max_order(self) -> int:
        """Twice the highest number of columns."""
        return 2 * (_MOST if self.columns == "auto" else int(self.columns))

    def prepare(self, equations: Equations) -> MechanicalRun:
        """Storage for the extrapolation table."""
        if equations.mechanism.linear:
            raise InvalidProblemError(
                "MEXX requires a mechanical system; for a HessenbergDAE use method='dassl', or 'dopri5' in a form that "
                "is an ordinary differential equation"
            )
        return _MEXXRun(self, equations)


class _MEXXRun(MechanicalRun):
    """A run on a mechanism."""

    def __init__(self, method: MEXX, equations: Equations):
        from daedal.kernels.records import Record
        from daedal.methods.extrapolation import mexx_step as step
        from daedal.methods.one_step import OWN

        automatic = method.columns == "auto"
        most = _MOST if automatic else int(method.columns)
        record = Record.allocated(
            step.MEXX,
            n=equations.n,
            row=step.mexx_row.address,
            measure=step.mexx_measure.address,
            mechanism=equations.mechanism.record,
            numbers=np.array(_NUMBERS),
            power=2,
            overhead=1.0,
            step_cost=1.0,
            least=2 if automatic else most,
            most=most,
        )
        super().__init__(
            method,
            equations,
            attempt=step.mexx_attempt,
            accept=step.mexx_accept,
            begin=step.mexx_begin,
            order=2 * most,
            start_order=8,
            controller=OWN,
            record=record,
            restored=True,
        )

    def load(self, task: Task) -> None:
        """Prescribe a constant number of columns for constant steps."""
        super().load(task)
        if task.fixed_step is not None and self.method.columns == "auto":
            self.own["most"] = _FIXED
