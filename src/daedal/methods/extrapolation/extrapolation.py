r"""Extrapolation of the implicit and of the linearly implicit Euler method, for F(t, y, y') = 0 of index 0 and 1.

References
----------
K. E. Brenan, S. L. Campbell, L. R. Petzold: Numerical Solution of Initial-Value Problems in Differential-Algebraic
Equations, SIAM 1996, 4.6. P. Deuflhard, E. Hairer, J. Zugck: One-step and extrapolation methods for
differential-algebraic systems, Numer. Math. 51 (1987) 501-516 (LIMEX). E. Hairer, G. Wanner: Solving Ordinary
Differential Equations II, Springer 1996, IV.9 (SEULEX) and VI.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.base import Method, check_matrix_options, check_name, storage_kind
from daedal.methods.extrapolation.extrapolation_sequences import MOST_COLUMNS, amplification, step_numbers
from daedal.methods.implicit_rk.stage_systems import storage
from daedal.methods.run import OneStepRun
from daedal.methods.task import Equations, Task
from daedal.methods.workspace import Workspace

_SCHEMES = ("linearly implicit", "limex", "implicit")
_MOST_FAILURES = 30


@dataclass(frozen=True, eq=False)
class Extrapolation(Method):
    r"""Extrapolated Euler methods with variable order and step size, for tight tolerances.

    A basic step H is taken with :math:`n_1 < n_2 < \ldots` Euler steps, and the results are extrapolated to step size
    0. Each additional row of the table raises the order by one.

    Parameters
    ----------
    scheme : {"linearly implicit", "limex", "implicit"}
        The Euler method. The first two solve one linear system per step, with the matrix of the start of the basic step
        or with dF/dy' of every Euler step; the last uses Newton's method in every step. For problems of index 1 only
        the last has an unperturbed expansion and unlimited order.
    sequence : str or list of int
        Step numbers: "hairer-lubich" (2, 3, 4, 6, 8, 12, 16, ...), "hairer-lubich from 1", "harmonic" (1, 2, 3, ...),
        "harmonic from 2", or a list.
    columns : "auto" or int
        Columns of the table. "auto" adapts them to minimise work per unit step, and uses 6 with `fixed_step`.
    linear_solver : {"auto", "dense", "banded", "sparse"}
        "auto" follows the problem's `sparsity` and `bandwidth`.
    error_test : {"auto", "all", "differential"} or mask
        The components in the error test: all; all but the algebraic ones; a mask or list of the components to include.
        "auto" tests all of them.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.get("robertson")
    >>> method = daedal.methods.Extrapolation()
    >>> sol = daedal.solve(model.problem, (0.0, 40.0), model.initial, method=method, rtol=1e-10, atol=1e-14)
    >>> print(f"{sol.y[0, -1]:.9f}")
    0.715827069
    """

    scheme: str = "linearly implicit"
    sequence: Any = "hairer-lubich"
    columns: Any = "auto"
    linear_solver: str = "auto"
    error_test: Any = "auto"

    name = "extrapolation"
    needs = ("residual",)
    stiff = True

    def __post_init__(self):
        check_name("scheme", self.scheme, _SCHEMES)
        numbers = step_numbers(self.sequence)
        if not isinstance(self.sequence, str):
            object.__setattr__(self, "sequence", numbers)
        most = len(numbers)
        if not isinstance(self.columns, str) or self.columns != "auto":
            whole = isinstance(self.columns, (int, np.integer)) and not isinstance(self.columns, bool)
            if not whole or not 2 <= self.columns <= most:
                raise InvalidProblemError(
                    f"columns must be 'auto' or a whole number from 2 to {most}, the length of the sequence, "
                    f"got {self.columns!r}"
                )
        check_matrix_options(self)

    @property
    def max_order(self) -> int:
        """The highest number of columns."""
        return len(step_numbers(self.sequence)) if self.columns == "auto" else int(self.columns)

    def prepare(self, equations: Equations) -> OneStepRun:
        """Create the matrix and the extrapolation table."""
        problem, kind = equations.problem, storage_kind(equations.problem, self.linear_solver)
        return _ExtrapolationRun(self, equations, Workspace(problem, hook=equations.hook, linear_solver=kind), kind)


class _ExtrapolationRun(OneStepRun):
    """A run of an extrapolated Euler method."""

    def __init__(self, method: Extrapolation, equations: Equations, workspace: Workspace, kind: str):
        from daedal.kernels.records import Record
        from daedal.methods.extrapolation import extrapolation_euler as euler
        from daedal.methods.extrapolation import extrapolation_step as step
        from daedal.methods.one_step import OWN
        from daedal.methods.partial_derivatives import room_for_look

        n, problem = equations.n, equations.problem
        places = storage(n, kind, problem.bandwidth, problem.sparsity)
        entries = places.rows.size
        schemes = dict(zip(_SCHEMES, (euler.LINEARLY_IMPLICIT, euler.LIMEX, euler.IMPLICIT), strict=True))
        numbers = step_numbers(method.sequence)
        automatic = method.columns == "auto"
        self._all = len(numbers) if automatic else int(method.columns)
        record = Record.allocated(
            euler.EXTRAPOLATION,
            linear=workspace.linear.address,
            n=n,
            linearise=euler.euler_linearise.address,
            look=room_for_look(n),
            row=euler.euler_row.address,
            measure=step.extrapolation_measure.address,
            scheme=schemes[method.scheme],
            entries=entries,
            f_y=np.zeros(entries),
            f_yp=np.zeros(entries),
            rows=places.rows,
            columns=places.columns,
            place=places.place,
            numbers=np.array((*numbers, *[0] * (MOST_COLUMNS - len(numbers)))),
            left=1,
            scale=1.0,
            power=1,
            climbs=method.scheme == "implicit",
            overhead=2.0,
            row_cost=0.0 if method.scheme == "limex" else 1.0,
            step_cost=4.0 if method.scheme == "limex" else 2.0,
            amplification=np.append(amplification(numbers), np.ones(MOST_COLUMNS - len(numbers))),
            least=2 if automatic else self._all,
            most=self._all,
        )
        super().__init__(
            method,
            equations,
            attempt=step.extrapolation_attempt,
            accept=step.extrapolation_accept,
            begin=step.extrapolation_begin,
            order=self._all,
            controller=OWN,
            most_failures=_MOST_FAILURES,
            record=record,
            restored=True,
            workspace=workspace,
        )

    def orders_of(self, degrees: np.ndarray) -> np.ndarray:
        """One less than the degree of the step polynomial, up to 6."""
        return degrees - 1

    def load(self, task: Task) -> None:
        """Prescribe a constant number of columns for constant steps."""
        assert self.workspace is not None
        # exact derivatives are required, since there are no iterations
        self.workspace.prepare_matrices(accurate=self.equations.problem.jacobian is None)
        if task.fixed_step is not None and self.method.columns == "auto":
            self.own["most"] = min(6, self._all)

    def reconsider(self, task: Task) -> int:
        """Raise for equations of higher index."""
        found = self.local_index(task)
        if found is None or found.index is None or found.index < 2:
            return 0
        raise InvalidProblemError(
            f"Extrapolation is for problems of index 0 and 1; this one has index {found.index} at "
            f"t = {task.t_span[0]:g}: use method='radau'"
        )
