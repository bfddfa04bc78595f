r"""Rosenbrock methods RODAS3, RODAS4 and RODAS5P for M y' = f(t, y) and related problems.

References
----------
E. Hairer, G. Wanner: Solving Ordinary Differential Equations II, Springer 1996, IV.7 and VI.4; references of the
individual methods are in :mod:`daedal.methods.rosenbrock.rosenbrock_tableaux`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.analysis.index import is_clearly_index_1, judge, partials
from daedal.errors import InvalidProblemError, Unevaluable
from daedal.kernels.functions import store_vector
from daedal.methods.base import Method, check_matrix_options, check_name, storage_kind
from daedal.methods.rosenbrock.rosenbrock_tableaux import TABLEAUX
from daedal.methods.run import OneStepRun
from daedal.methods.task import Equations, Outcome, Task
from daedal.methods.workspace import Workspace

MOST_FAILURES = 30
_LARGEST_JUDGED = 200  # unknowns up to which the index is determined at the start
_RANK = 1e-10  # relative size below which singular values count as zero, after scaling
_SAME = 1e-6  # relative difference of dF/dy' v at two points that counts as zero


@dataclass(frozen=True, eq=False)
class Rosenbrock(Method):
    r"""Rosenbrock methods, which solve only linear systems, since the Jacobian is part of the formula.

    For :math:`M y' = f(t, y)` with a constant, possibly singular matrix M, of index 0 and 1: semi-explicit problems of
    index 1, and :math:`F(t, y, y') = 0` with a constant :math:`\partial F/\partial y'`. Traced problems in which it is
    not constant are solved as :math:`y' = z,\ 0 = F(t, y, z)` if this has index 1.

    Parameters
    ----------
    variant : {"rodas5p", "rodas4", "rodas3"}
        Orders 5, 4 and 3, with 8, 6 and 4 stages. RODAS4 may be faster if a few digits suffice.
    linear_solver : {"auto", "dense", "banded", "sparse"}
        "auto" follows the problem's `sparsity` and `bandwidth`. Small traced problems use their own compiled code.
    error_test : {"auto", "all", "differential"} or mask
        Components in the error test: all; all but the algebraic ones; a mask or list of the components to include.

    Notes
    -----
    The Jacobian and the time derivative are exact if functions are traced; otherwise they are computed by finite
    differences in every step, which for Python functions costs as much as the method saves.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.get("robertson")
    >>> sol = daedal.solve(model.problem, (0.0, 40.0), model.initial, method="rosenbrock", rtol=1e-6, atol=1e-10)
    >>> print(f"{sol.y[0, -1]:.5f}")
    0.71583
    """

    variant: str = "rodas5p"
    linear_solver: str = "auto"
    error_test: Any = "auto"

    name = "rosenbrock"
    needs = ("residual",)
    stiff = True

    def __post_init__(self):
        check_name("variant", self.variant, TABLEAUX)
        check_matrix_options(self)

    @property
    def max_order(self) -> int:
        """The order of the method."""
        return TABLEAUX[self.variant].order

    @property
    def title(self) -> str:
        """The name of the method in solutions."""
        return f"Rosenbrock ({self.variant.upper()}), order {self.max_order}"

    def prepare(self, equations: Equations) -> OneStepRun:
        """Create generated code for whole steps if available, a matrix, and memory for the stages."""
        problem, kind = equations.problem, storage_kind(equations.problem, self.linear_solver)
        if equations.mechanism is not None:
            raise InvalidProblemError(
                "Rosenbrock methods need a first-order problem of index 0 or 1 with a constant matrix, unlike "
                "the forms of a MechanicalSystem: use method='radau' or 'dassl'"
            )
        return _RosenbrockRun(self, equations, Workspace(problem, hook=equations.hook, linear_solver=kind))


class _RosenbrockRun(OneStepRun):
    """A run of a Rosenbrock method."""

    def __init__(self, method: Rosenbrock, equations: Equations, workspace: Workspace):
        from daedal.kernels.records import Record
        from daedal.methods.rosenbrock.rosenbrock_step import (
            ROSENBROCK,
            rosenbrock_accept,
            rosenbrock_attempt,
            rosenbrock_general,
        )

        n, problem, tableau = equations.n, equations.problem, TABLEAUX[method.variant]
        code, s = problem.linearly_implicit, tableau.s
        self._quasilinear = code is not None and not code.constant_mass
        step = None if code is None else code.step(method.variant, tableau)
        by_time = None if code is None or not code.depends_on_time else code.time_derivative()
        product = code.slope_product() if self._quasilinear else None
        if self._quasilinear and product is None:
            raise InvalidProblemError(_refusal("is not constant, and the problem is too large for y' = z, F = 0"))
        self._looked_at: Any = None  # the last start at which the index was checked
        self._watched = code is None
        workspace.prepare_matrices(accurate=False)

        def callback(function, arguments, size, scalars=0):
            store = store_vector("step", size)
            return workspace.bridge.function(function, arguments, (size,), store, problem.params, scalars)

        rows = s + 3 if self._quasilinear else s + 2
        callbacks = {
            "step": None if step is None else callback(step, (n, n), rows * n, 1),
            "time_derivative": None if by_time is None else callback(by_time, (n, n), n),
            "slope_product": None if product is None else callback(product, (n, n, n), n),
        }
        names = ("a", "c", "m", "nodes", "time_weights", "differences")
        record = Record.allocated(
            ROSENBROCK,
            linear=workspace.linear.address,
            n=n,
            rows=rows,
            general=rosenbrock_general.address,
            **{name: value for name, value in callbacks.items() if value is not None},
            depends_on_time=code is None or code.depends_on_time,
            quasilinear=self._quasilinear,
            watched=self._watched,
            stages=s,
            degree=len(tableau.differences),
            gamma=tableau.gamma,
            **{name: getattr(tableau, name) for name in names},
            slope=tableau.slopes(1.0),
            middle=tableau.middle,
            inside=tableau.weights(tableau.middle),
            inside_slope=tableau.slopes(tableau.middle),
        )
        super().__init__(
            method,
            equations,
            attempt=rosenbrock_attempt,
            accept=rosenbrock_accept,
            order=tableau.order,
            most_failures=MOST_FAILURES,
            record=record,
            workspace=workspace,
        )

    def load(self, task: Task) -> None:
        """Check at every new start that the index is 0 or 1, and that dF/dy' is constant or irrelevant."""
        if self._watched:
            self.own.array("first_y")[:] = task.y0
        start = task.t_span[0], task.y0.tobytes(), task.yp0.tobytes()
        if self._looked_at == start:
            return
        problem = self.equations.problem
        if self._watched and not _looks_constant(problem, task):
            raise InvalidProblemError(
                _refusal("is not constant, and the residual could not be traced")
                + ", or define the residual so that it can be traced (problem.functions shows why it is not)"
            )
        _check_index(problem, task, self._quasilinear)
        self._looked_at = start

    def adopt(self, equations: Equations) -> None:
        """Use other parameters, and check the index again, since it may depend on them."""
        super().adopt(equations)
        self._looked_at = None

    def close(self, task: Task, reason: int, interrupted: bool) -> Outcome:
        """The outcome; raise an error if dF/dy' proves not to be constant."""
        outcome = super().close(task, reason, interrupted)
        if self._watched and self.own["changed"]:
            raise InvalidProblemError(
                _refusal(f"is not constant: it has changed between t = {task.t_span[0]:g} and {outcome.t_reached:g}")
            )
        return outcome


def _refusal(what: str) -> str:
    return f"Rosenbrock methods need M y' = f(t, y) with a constant M, and dF/dy' {what}: use method='radau' or 'dassl'"


def _check_index(problem, task: Task, quasilinear: bool) -> None:
    """Reject problems of index 2 and above, including those for which y' = z, 0 = F(t, y, z) has such an index."""
    t, y, yp = task.t_span[0], task.y0, task.yp0
    if task.n > _LARGEST_JUDGED:
        return
    try:
        by_slopes, by_y = problem.exact_partials(t, y, yp) or partials(problem.sample, t, y, yp)
    except (Unevaluable, ArithmeticError, ValueError):
        return  # the first step reports the error
    if not (np.isfinite(by_slopes).all() and np.isfinite(by_y).all()):
        return
    if not is_clearly_index_1(by_slopes, by_y):
        found = judge(by_slopes, by_y)
        if found is not None and found.index is not None and found.index > 1:
            names = ", ".join(problem.label(i) for i, _ in found.higher_index_variables)
            raise InvalidProblemError(
                f"the problem has index {found.index} ({names}), but Rosenbrock methods need index 0 or 1: use "
                "method='radau'"
            )
    if quasilinear and not _is_regular(np.where(np.any(by_slopes != 0.0, axis=0), by_slopes, by_y)):
        raise InvalidProblemError(_refusal("depends on t, y or y' and is singular"))


def _is_regular(matrix: np.ndarray) -> bool:
    """Whether a matrix has full rank, after scaling its rows and columns."""
    for axis in (1, 0):
        size = np.max(np.abs(matrix), axis=axis, keepdims=True)
        matrix = matrix / np.where(size > 0.0, size, 1.0)
    return bool(np.linalg.svd(matrix, compute_uv=False)[-1] > _RANK)


def _looks_constant(problem, task: Task) -> bool:
    """Whether F(t, y, v) - F(t, y, 0) is linear in v and depends only on v, as tested at a few points."""
    (t0, t1), y0, yp0 = task.t_span, task.y0, task.yp0
    n = task.n
    waves = [np.sin((k + 1.0) * (1.0 + np.arange(n))) for k in range(3)]
    sizes = np.maximum(np.abs(yp0), np.abs(y0) / abs(t1 - t0))
    v = np.where(sizes > 0.0, sizes, 1.0) * (1.0 + 0.5 * waves[0])
    spread = 0.1 * np.abs(y0) + 10.0 * (task.atol + task.rtol * np.abs(y0))
    places = [(t0, y0), (t0 + 0.1 * (t1 - t0), y0), (t0, y0 + spread * waves[1]), (t0, y0 - spread * waves[2])]
    found = [(share, _slopes(problem, t, y, share * v)) for t, y in places for share in (1.0, -2.0)]
    known = [
        (values / share, size / abs(share)) for share, pair in found if pair is not None for values, size in [pair]
    ]
    if not known:
        return True  # the first step reports the error
    first = known[0][0]
    return all(
        np.all(np.abs(values - first) <= _SAME * np.abs(first) + 1e4 * np.finfo(float).eps * size)
        for values, size in known[1:]
    )


def _slopes(problem, t: float, y: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """F(t, y, v) - F(t, y, 0) and the size of its terms; None if F is undefined."""
    try:
        with np.errstate(all="ignore"):
            values, base = problem.sample(t, y, v), problem.sample(t, y, np.zeros(y.size))
    except (Unevaluable, ArithmeticError, ValueError):
        return None
    if not (np.isfinite(values).all() and np.isfinite(base).all()):
        return None
    return values - base, np.abs(values) + np.abs(base)
