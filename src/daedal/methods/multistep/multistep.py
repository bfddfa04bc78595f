r"""Linear multistep and one-leg methods with constant steps, for comparison with theory.

References
----------
Brenan, Campbell, Petzold: Numerical Solution of Initial-Value Problems in Differential-Algebraic Equations, SIAM
Classics in Applied Mathematics 14, 1996, sections 3.2 and 3.4; E. Griepentrog, R. Maerz: Differential-Algebraic
Equations and Their Numerical Treatment, Teubner 1986.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.base import Method, check_name, storage_kind
from daedal.methods.implicit_rk.radau import Radau
from daedal.methods.implicit_rk.stage_systems import storage
from daedal.methods.multistep.multistep_formula import MultistepFormula
from daedal.methods.multistep.starting_values import (
    accurate_values,
    fixed_times,
    given_values,
    points_behind,
    require_room,
    require_start,
    write_past,
)
from daedal.methods.named_formulas import coefficients
from daedal.methods.run import Run
from daedal.methods.task import Equations, Outcome, Task
from daedal.methods.workspace import Workspace

_ROUNDED = 1e-3  # largest relative defect of consistency, for coefficients with few digits
_SCHEMES = ("auto", "Px", "x")
_LARGEST = 400  # unknowns up to which the kernel of F_y' is computed in every step
_START_TOLERANCE = 1e-13
_MOST_STEPS = 12


def _check_consistency(found: MultistepFormula) -> None:
    """Check that rho(1) = 0 and rho'(1) = sigma(1) up to rounding; otherwise a different equation would be solved."""
    rho, sigma = ([float(x) for x in row] for row in (found.rho, found.sigma))
    at_1, slope = sum(rho), sum((found.k - j) * x for j, x in enumerate(rho))
    if abs(at_1) > _ROUNDED * max(map(abs, rho)) or abs(slope - sum(sigma)) > _ROUNDED * max(abs(slope), 1e-300):
        raise InvalidProblemError(
            f"{found.name} is not consistent: rho(1) = {at_1:.4g} must be 0, and rho'(1) = {slope:.4g} must be "
            f"sigma(1) = {sum(sigma):.4g}"
        )


class _WithFormula(Method):
    """Common base of multistep and one-leg methods."""

    formula: Any
    starting_values: Any

    needs = ("residual",)
    controlled = False
    one_leg = False

    def _check_formula(self) -> None:
        found = _as_formula(self.formula, self.one_leg)
        if found.explicit:
            raise InvalidProblemError(
                f"{found.name} is explicit, sigma starts with 0: F(t, y, y') = 0 would not determine algebraic "
                "variables. Remedy: use an implicit formula such as 'bdf2' or 'adams_moulton2'"
            )
        if found.k > _MOST_STEPS:
            raise InvalidProblemError(f"{found.name} has {found.k} steps, but at most {_MOST_STEPS} are supported")
        if not sum(found.sigma):
            raise InvalidProblemError(f"{found.name} is not consistent: the sum of sigma must not be zero")
        _check_consistency(found)
        object.__setattr__(self, "formula", found)

    @property
    def max_order(self) -> int:
        """The number of steps, plus one: the order of a stable formula exceeds it by at most one."""
        return self.formula.k + 1

    @property
    def title(self) -> str:
        """The name of the method in solutions."""
        return f"{type(self).__name__}, {self.formula.name}"

    def require_error_estimate(self, fixed_step: float | None) -> None:
        """Constant steps are required."""
        if fixed_step is None:
            raise InvalidProblemError(
                f"{type(self).__name__} needs constant steps: pass fixed_step. For steps with error control use "
                "method='dassl' or 'radau'"
            )

    def prepare(self, equations: Equations) -> Run:
        """Create the workspace of the problem, and memory for past values."""
        return _MultistepRun(self, equations)


@dataclass(frozen=True, eq=False)
class Multistep(_WithFormula):
    r"""A linear multistep method with constant steps for :math:`F(t, y, y') = 0`.

    With the projector :math:`P_n` along the kernel of :math:`F_{y'}` (Brenan, Campbell and Petzold (3.4.21))

    .. math::

        F(t_n, y_n, y'_n) = 0, \qquad
        \frac1h \sum_j \alpha_j (P y)_{n-j} = \sum_j \beta_j (P' y + P y')_{n-j},

    so that only the differentiated components :math:`P y` are discretised. For semi-explicit problems this is the
    multistep method for the differential equations and :math:`g(t_n, y_n, z_n) = 0`; for ODEs it is the textbook
    method.

    Parameters
    ----------
    formula : MultistepFormula, str or (rho, sigma)
        The coefficients, a name accepted by :func:`daedal.methods.coefficients` (``"bdf3"``, ``"adams_moulton2"``), or
        both polynomials, highest powers first. It must be implicit.
    scheme : {"auto", "Px", "x"}
        "Px" is (3.4.21) as above, with the order of the formula for ODEs; "x" is (3.4.20), which differentiates y
        itself and has a lower order if the kernel of :math:`F_{y'}` rotates, except for BDF. "auto" is "Px", and for
        BDF "x": F with y' replaced by the formula, as in DASSL.
    starting_values : array (n, m) or callable, optional
        y at t0, t0 + h, ..., or a function of t that returns it; by default computed by Radau IIA. The first is y0.

    Examples
    --------
    >>> import daedal
    >>> oscillator = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 2)
    >>> method = daedal.methods.Multistep("adams_moulton2")
    >>> for steps in (20, 40):
    ...     sol = daedal.solve(oscillator, (0.0, 1.0), ([0.0, 1.0], None), method=method, fixed_step=1 / steps)
    ...     print(f"{abs(sol.y[1, -1] - 0.5403023058681398):.1e}")
    2.8e-06
    3.5e-07
    """

    formula: Any = "bdf2"
    scheme: str = "auto"
    starting_values: Any = None

    name = "multistep"

    def __post_init__(self):
        self._check_formula()
        check_name("scheme", self.scheme, _SCHEMES)


@dataclass(frozen=True, eq=False)
class OneLeg(_WithFormula):
    r"""A one-leg method with constant steps, Brenan, Campbell and Petzold (3.4.5),

    .. math::

        F\Bigl(\sum_j \beta_j t_{n-j},\ \sum_j \beta_j y_{n-j},\ \frac1h \sum_j \alpha_j y_{n-j}\Bigr) = 0,
        \qquad \sum_j \beta_j = 1 .

    For algebraic variables it is stable only if all zeros of :math:`\sigma` lie inside the unit circle; see
    :func:`daedal.analysis.analyse_method`.

    Parameters
    ----------
    formula : MultistepFormula, str or (rho, sigma)
        As for :class:`Multistep`; divided by the sum of sigma.
    starting_values : array (n, m) or callable, optional
        As for :class:`Multistep`.

    Examples
    --------
    The implicit midpoint rule accumulates perturbations of an algebraic equation:

    >>> import numpy as np
    >>> import daedal
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [y[0] - 0.5 * np.cos(np.pi * (t + 0.5))], 1)
    >>> sol = daedal.solve(problem, (0.0, 5.0), ([0.0], [0.0]), method=daedal.methods.OneLeg(), fixed_step=1.0)
    >>> print(sol.y[0].round(6))
    [ 0. -1.  2. -3.  4. -5.]
    """

    formula: Any = "midpoint_one_leg"
    starting_values: Any = None

    name = "one_leg"
    one_leg = True

    def __post_init__(self):
        self._check_formula()


def _as_formula(given, one_leg: bool) -> MultistepFormula:
    if isinstance(given, str):
        given = coefficients(given)
        if not isinstance(given, MultistepFormula):
            raise InvalidProblemError(
                f"{given.name} is a Runge-Kutta method, not a multistep formula: use 'bdf1..7', "
                "'adams_moulton1..8' (the first is the trapezoidal rule), 'midpoint_one_leg', or (rho, sigma)"
            )
    if isinstance(given, (tuple, list)) and len(given) == 2:
        given = MultistepFormula(given[0], given[1], one_leg=one_leg, name="multistep formula")
    if not isinstance(given, MultistepFormula):
        raise InvalidProblemError(
            f"formula must be a MultistepFormula, a name such as 'bdf3', or (rho, sigma), got {given!r}"
        )
    if given.one_leg and not one_leg:
        raise InvalidProblemError(f"{given.name} is a one-leg method: use OneLeg(...)")
    return given


def _coefficients(given: MultistepFormula) -> tuple[np.ndarray, np.ndarray]:
    """alpha_0, alpha_0 + alpha_1, ... without the last sum, which is zero, and beta, all divided by the sum of
    sigma."""
    total = sum(given.sigma[1:], given.sigma[0])
    sums = list(accumulate(given.rho))[:-1]
    return np.array([x / total for x in sums], dtype=float), np.array([x / total for x in given.sigma], dtype=float)


def _entries(problem, kind: str) -> dict[str, Any]:
    """Positions of the entries of the iteration matrix."""
    places = storage(problem.n, kind, problem.bandwidth, problem.sparsity)
    names = {"entry_rows": places.rows, "entry_columns": places.columns, "place": places.place}
    indices = {name: np.ascontiguousarray(x, dtype=np.int64) for name, x in names.items()}
    return {"entries": places.rows.size} | indices


class _MultistepRun(Run):
    """A run with constant steps."""

    def __init__(self, method: _WithFormula, equations: Equations):
        from daedal.kernels.differences import ROWS
        from daedal.kernels.records import Record
        from daedal.methods.derivative_space import SPACE
        from daedal.methods.multistep.multistep_step import MULTISTEP, multistep_begin, multistep_step

        n, k, (a, b) = equations.n, method.formula.k, _coefficients(method.formula)
        scheme = getattr(method, "scheme", "x")
        projects = scheme == "Px" or (scheme == "auto" and bool(np.any(b[1:])))
        slopes = not method.one_leg and (projects or bool(np.any(b[1:])))
        if slopes and n > _LARGEST:
            raise InvalidProblemError(
                f"{method.formula.name} needs the kernel of F_y' in every step, which is limited to {_LARGEST} "
                f"unknowns, not {n}; BDF and one-leg methods do not need it"
            )
        problem = equations.problem
        kind = storage_kind(problem)
        workspace = Workspace(problem, hook=equations.hook, linear_solver=kind if slopes else "auto")
        space = Record.allocated(SPACE, n=n, **_entries(problem, kind)) if slopes else Record(SPACE)
        record = Record.allocated(
            MULTISTEP,
            linear=workspace.linear.address,
            n=n,
            k=k,
            one_leg=method.one_leg,
            slopes=slopes,
            of_projection=projects,
            degree=min(k + 1, ROWS - 2),
            a=a,
            b=b,
            space=space,
        )
        record.array("max_change")[:] = np.inf
        self._space = space
        super().__init__(
            method,
            equations,
            step=multistep_step,
            begin=multistep_begin,
            record=record,
            restored=True,
            workspace=workspace,
        )
        self._start: np.ndarray | None = None
        self._accurate: Any = None

    def integrate(self, task: Task) -> Outcome:
        """Integrate from given or computed values at t0, t0 + h, ...."""
        self.method.require_error_estimate(task.fixed_step)
        k, given = self.method.formula.k, self.method.starting_values
        times, counted = fixed_times(task, k), None
        self._start = given_values(given, k, task.n, times, "the number of steps")
        if self._start is not None:
            require_start(self._start, task, self.equations.problem.label)
            times = fixed_times(task, len(self._start))
        elif k == 1:
            self._start = task.y0[None].copy()
        events: list[Any] = []
        if self._start is None or (task.switching is not None and len(self._start) > 1):
            if self._accurate is None:
                self._accurate = Radau().prepare(self.equations)
            before = accurate_values(self._accurate, task, times, self.method.formula.name, _START_TOLERANCE, True)
            ended = any(event.terminal for event in before.events)
            if before.interrupted or before.exception is not None or ended:
                return before
            events, counted = before.events, before.counts
            if self._start is None:
                self._start = before.y.T.copy()
        outcome = super().integrate(task)
        outcome.events[:0] = events
        if counted is not None:
            outcome.counts += counted
        return outcome

    def load(self, task: Task) -> None:
        """Load the starting values."""
        assert self.workspace is not None and self._start is not None and task.fixed_step is not None
        self.workspace.prepare_matrices(accurate=self.workspace.problem.jacobian is None)
        values, m, k = self._start, len(self._start), self.method.formula.k
        h = task.sign * task.fixed_step
        require_room(self.record, m)
        self._space.block[:] = 0.0
        self.own.data[0]["space"]["span"] = abs(task.t_span[1] - task.t_span[0])
        self.own.array("past")[:] = values[::-1][:k]
        self.own["known"] = m
        self._y[:] = values[-1]
        fields = {"steps": m - 1, "t": task.t_span[0] + (m - 1) * h, "order": k}
        if m > 1:
            fields["degree"] = min(int(self.own["degree"]), m - 1)
            write_past(self.record, self._phi, values[::-1], fields["degree"], h)
        for field, value in fields.items():
            self.record[field] = value

    def adopt(self, equations: Equations) -> None:
        """Use other parameters, and recompute the starting values."""
        super().adopt(equations)
        self._accurate = None

    def start_points(self, task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Write the starting values to the output."""
        return points_behind(task, self._start)
