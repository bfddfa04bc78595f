"""A problem made ready for kernels: its callbacks, its linear solver, and the counters."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from daedal.errors import InvalidProblemError, Unevaluable
from daedal.kernels.functions import NativeFunction
from daedal.linear_solvers import build_linear
from daedal.problems import ImplicitDAE
from daedal.solution import Statistics


def _is_plain(options: dict) -> bool:
    extras = (options["preconditioner"], options["norm"], options["row_power"])
    direct = options["linear_solver"] in ("auto", "dense", "banded")
    return direct and options["increment"] == "robust" and all(x is None for x in extras)


class Workspace:
    """Callbacks and linear algebra of one problem, shared by the search for initial values and the integration."""

    def __init__(
        self,
        problem: ImplicitDAE,
        *,
        linear_solver="auto",
        preconditioner=None,
        norm=None,
        row_power=None,
        increment="robust",
    ):
        from daedal.kernels.assembly import build_system, native_linear
        from daedal.kernels.callbacks import Bridge

        self._shelf: list | None = None
        self._mark = 0
        self._records: dict = {}
        self.problem = problem
        self.n = problem.n
        self.bridge = problem.residual.bridge if isinstance(problem.residual, NativeFunction) else Bridge()
        self.system = build_system(
            self.bridge, problem.residual, problem.n, problem.params, norm=norm, row_power=row_power
        )
        native = getattr(problem.residual, "linear", None)
        if native is not None and linear_solver == "auto":
            self.linear = native_linear(*native)
            return
        self.linear = build_linear(
            self.bridge,
            self.system,
            problem.n,
            solver=linear_solver,
            preconditioner=preconditioner,
            sparsity=problem.sparsity,
            bandwidth=problem.bandwidth,
            jacobian=problem.jacobian,
            params=problem.params,
        )
        if increment == "book":
            self.linear.data[0]["matrix"]["weight_share"] = np.sqrt(np.finfo(float).eps)

    @classmethod
    def borrow(cls, problem: ImplicitDAE, options: dict) -> Workspace:
        """A workspace for `problem`: one that an earlier run has given back, or a new one.

        Only plain workspaces (direct dense or banded solver, no options) are kept: nothing of an earlier run can show
        in a later one. Runs in several threads, or inside each other, have different workspaces.
        """
        plain = problem.sparsity is None and _is_plain(options)
        shelf = problem.__dict__.setdefault("_workspaces", {}).setdefault(str(options["linear_solver"]), [])
        if plain:
            with suppress(IndexError):  # another thread may have taken the last one
                return shelf.pop()._reset()
        workspace = cls(problem, **options)
        workspace._shelf = shelf if plain else None
        workspace._mark = workspace.bridge.mark()
        return workspace

    def _reset(self) -> Workspace:
        from daedal.kernels.system import COUNTERS

        self.bridge.refresh()
        for name in (*COUNTERS, "hook_signal"):
            self.system[name] = 0
        return self

    def give_back(self):
        """Let later runs of the same problem use this workspace."""
        if self._shelf is not None and not self._shelf:
            self.bridge.trim(self._mark)
            self._shelf.append(self)

    def record(self, key, make, **values):
        """A record of a method, made once for this workspace by ``make()`` and reset to `values` for every run."""
        if key not in self._records:
            record = make()
            self._records[key] = record, record.data.copy()
        record, template = self._records[key]
        record.reset(template, **values)
        return record

    def residual(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
        """F(t, y, y'), or None where it cannot be evaluated."""
        from daedal.methods.evaluation import evaluate_residual

        result = np.empty(self.n)
        status = evaluate_residual(self.system.data, float(t), y, yp, result)
        self.bridge.raise_pending()
        return result if status == 0 else None

    def prepare(self, t, y, yp, r, cj, h, inverse_weights) -> bool:
        """Form and factor dF/dy + cj dF/dy'; False if it is singular or cannot be evaluated."""
        from daedal.methods.evaluation import form_matrix

        status = form_matrix(
            self.system.data, self.linear.data, float(t), y, yp, r, float(cj), float(h), inverse_weights
        )
        self.bridge.raise_pending()
        return status == 0

    def solve(self, t, y, yp, r, cj, inverse_weights) -> np.ndarray | None:
        """The correction G^{-1} r with the matrix at hand, or None if the solve failed."""
        from daedal.methods.evaluation import apply_inverse

        b = r.copy()
        # The matrix is current: a ratio cj / cj_matrix of one leaves the correction unscaled, also for cj = 0.
        same = 1.0 if cj == 0.0 and not self.linear["use_krylov"] else float(cj)
        status = apply_inverse(self.system.data, self.linear.data, float(t), y, yp, r, same, inverse_weights, b)
        self.bridge.raise_pending()
        return b if status == 0 and np.all(np.isfinite(b)) else None

    def statistics(self, integrator=None, seconds: float = 0.0) -> Statistics:
        """The counters so far; `integrator` is the record of the method, with its own."""
        counts = self.system.data[0]
        own = self.linear.data[0]["matrix"]["own"] if self.linear.data[0]["matrix"]["has_own_residual"] else None
        error_failures = 0 if integrator is None else int(integrator["error_test_failures"])
        newton_failures = 0 if integrator is None else int(integrator["newton_failures"])
        return Statistics(
            steps=0 if integrator is None else int(integrator["steps"]),
            rejected=error_failures + newton_failures,
            residual_evaluations=int(counts["residuals"]) + (0 if own is None else int(own["residuals"])),
            jacobian_residual_evaluations=int(counts["jacobian_residuals"] if own is None else own["residuals"]),
            jacobian_evaluations=int(counts["jacobians"]),
            factorisations=int(counts["factorisations"]),
            newton_iterations=int(counts["newton_iterations"]),
            newton_failures=newton_failures,
            error_test_failures=error_failures,
            linear_iterations=int(counts["linear_iterations"]),
            linear_failures=int(counts["linear_failures"]),
            preconditioner_solves=int(counts["preconditioner_solves"]),
            event_evaluations=int(counts["event_evaluations"]),
            seconds=seconds,
        )

    def check_functions(self, t: float, y: np.ndarray, yp: np.ndarray):
        """One call of the residual from Python, so that a wrong shape or type is reported before anything else."""
        try:
            values = self.problem.evaluate(t, y, yp)
        except Unevaluable as error:
            message = f"residual cannot be evaluated at the initial values (t = {t:g}): {error}"
            raise InvalidProblemError(message.rstrip(": ")) from error
        if not np.all(np.isfinite(values)):
            bad = int(np.flatnonzero(~np.isfinite(values))[0])
            raise InvalidProblemError(
                f"residual is not finite at the initial values (t = {t:g}): equation {bad} gives {values[bad]}"
            )
