"""An implicit problem prepared for kernels: its callbacks, its linear solver, and the counters."""

from __future__ import annotations

import numpy as np

from daedal.errors import NotFiniteError, Unevaluable
from daedal.kernels.functions import NativeFunction
from daedal.methods.iterative_solvers import build_linear
from daedal.methods.task import statistics
from daedal.problems import ImplicitDAE
from daedal.solution.solution import Statistics

_VANISHED, _VANISHED_DIFFERENCES = 1e-12, 1e-6  # fraction of the largest pivot that may be an error of the entries


class Workspace:
    """Callbacks and linear algebra of one problem, shared by the search for initial values and the integration."""

    def __init__(
        self,
        problem: ImplicitDAE,
        *,
        hook=None,
        linear_solver="auto",
        preconditioner=None,
        norm=None,
        row_power=None,
        increment="robust",
    ):
        from daedal.kernels.builders import LARGEST_WITH_SLOPE, build_system, native_linear
        from daedal.kernels.callbacks import Bridge

        self._largest_with_slope = LARGEST_WITH_SLOPE
        self.problem = problem
        self._made_with = problem.params
        self.n = problem.n
        self.bridge = problem.residual.bridge if isinstance(problem.residual, NativeFunction) else Bridge()
        self.system = build_system(
            self.bridge,
            problem.n,
            residual=problem.residual,
            params=problem.params,
            hook=hook,
            norm=norm,
            row_power=row_power,
        )
        native = getattr(problem.residual, "linear", None)
        if native is not None and linear_solver == "auto":
            self._set_linear(native_linear(*native))
            return
        self._set_linear(
            build_linear(
                self.bridge,
                problem.n,
                solver=linear_solver,
                preconditioner=preconditioner,
                sparsity=problem.sparsity,
                bandwidth=problem.bandwidth,
                jacobian=problem.jacobian,
                params=problem.params,
                copies=problem.copies,
            )
        )
        if increment == "book":
            self.linear.data[0]["matrix"]["weight_share"] = np.sqrt(np.finfo(float).eps)

    @property
    def matrix_address(self) -> int:
        """The address of the record of the iteration matrix."""
        from daedal.kernels.linear import LINEAR

        return self.linear.address + LINEAR.offset("matrix")

    def _set_linear(self, linear):
        from daedal.kernels.system import CHANGING

        self.linear = linear
        self._matrix = linear.data[0]["matrix"]
        self._addresses = self.system.address, linear.address
        self._counters = self.system.data.view(np.int64)[-len(CHANGING) :]
        self._scaled_rows = bool(self.system["scaled_rows"])
        self._own = linear.data[0]["matrix"]["own"] if linear.data[0]["matrix"]["has_own_residual"] else None
        self._residuals, self._differences = CHANGING.index("residuals"), CHANGING.index("jacobian_residuals")

    def adopt(self, problem: ImplicitDAE):
        """Use other parameters for the same problem."""
        if problem is not self.problem:
            self.bridge.replace(self._made_with, problem.params)
            self.problem = problem

    def begin(self):
        """Reset to the state at creation: counters, row scales, parameters, data stored by the linear solver."""
        self.bridge.refresh()
        self._counters[:] = 0
        if self._scaled_rows:
            self.system.array("row_scale")[:] = 1.0
        if self._own is not None:
            self._own["residuals"] = 0

    def prepare_matrices(self, *, accurate: bool):
        """Set up the next run: `accurate` selects central difference quotients and stores dF/dy' as well as G."""
        self._matrix["central"] = accurate
        self._matrix["keeps_slope"] = accurate and self.n <= self._largest_with_slope
        self._matrix["has_slope"] = False

    def counts(self) -> np.ndarray:
        """A copy of the counters, including the residual evaluations of a preconditioner."""
        counts = self._counters.copy()
        if self._own is not None:
            counts[self._residuals] += self._own["residuals"]
            counts[self._differences] = self._own["residuals"]
        return counts

    def add_counts(self, counts: np.ndarray):
        """Add counts from before the reset."""
        self._counters += counts

    def statistics(self) -> Statistics:
        """The counters so far."""
        return statistics(self.counts())

    def residual(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
        """F(t, y, y'), or None if it cannot be evaluated."""
        from daedal.methods.evaluation import evaluate_residual

        result = np.empty(self.n)
        status = evaluate_residual(self._addresses[0], float(t), y, yp, result)
        self.bridge.raise_pending()
        return result if status == 0 else None

    def is_consistent(self, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
        """Whether F(t, y, y') vanishes up to round-off."""
        from daedal.methods.evaluation import residual_is_roundoff

        found = residual_is_roundoff(self.system.address, t, y, yp, np.empty((4, self.n)))
        self.bridge.raise_pending()
        return bool(found)

    def prepare(self, t, y, yp, r, cj, h, inverse_weights) -> bool:
        """Form and factor dF/dy + cj dF/dy'; False if it is singular or cannot be evaluated."""
        from daedal.methods.evaluation import form_matrix

        status = form_matrix(*self._addresses, float(t), y, yp, r, float(cj), float(h), inverse_weights)
        self.bridge.raise_pending()
        return status == 0

    def solve(self, t, y, yp, r, cj, inverse_weights, rhs=None) -> np.ndarray | None:
        """G^{-1} rhs with the current matrix, or None if the solve failed; `rhs` is r by default."""
        from daedal.methods.evaluation import apply_inverse

        b = (r if rhs is None else rhs).copy()
        # The matrix is current: cj / cj_matrix = 1 leaves the correction unscaled, also for cj = 0.
        same = 1.0 if cj == 0.0 and not self.linear["use_krylov"] else float(cj)
        status = apply_inverse(*self._addresses, float(t), y, yp, r, same, inverse_weights, b)
        self.bridge.raise_pending()
        return b if status == 0 and np.all(np.isfinite(b)) else None

    def pivots_vanish(self) -> bool:
        """Whether the last factors have a pivot of the size of round-off: their matrix may be singular."""
        from daedal.kernels.matrix import BANDED, DENSE

        if self.linear["use_krylov"] or not self.linear["matrix"]["n"] or not self.system["factorisations"]:
            return False
        matrix = self.linear.array("matrix")
        data, n = matrix.array("data"), int(matrix["n"])
        vanished = _VANISHED_DIFFERENCES if self.problem.jacobian is None else _VANISHED
        if matrix["kind"] in (DENSE, BANDED):
            columns = data.reshape(n, -1)
            first = matrix["ml"] + matrix["mu"]
            pivots = np.abs(columns.diagonal() if matrix["kind"] == DENSE else columns[:, first])
            return bool(not np.min(pivots) > vanished * np.max(pivots))
        some = np.random.default_rng(n).standard_normal(self.n)
        zero = np.zeros(self.n)
        solved = self.solve(0.0, zero, zero, zero, 0.0, np.ones(self.n), some)
        return solved is None or bool(not np.max(np.abs(solved)) * np.max(np.abs(data)) * vanished < 1.0)

    def check_functions(self, t: float, y: np.ndarray, yp: np.ndarray):
        """One call of the residual from Python, so that a wrong shape or type is reported before anything else."""
        try:
            values = self.problem.evaluate(t, y, yp)
        except Unevaluable as error:
            message = f"residual cannot be evaluated at the initial values (t = {t:g}): {error}"
            raise NotFiniteError(message.rstrip(": ")) from error
        if not np.all(np.isfinite(values)):
            bad = int(np.flatnonzero(~np.isfinite(values))[0])
            raise NotFiniteError(
                f"residual is not finite at the initial values (t = {t:g}): equation {bad} is {values[bad]}"
            )
