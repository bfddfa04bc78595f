r"""Implicit Runge-Kutta methods for F(t, y, y') = 0, by any coefficients.

References
----------
K. E. Brenan, S. L. Campbell, L. R. Petzold: Numerical Solution of Initial-Value Problems in Differential-Algebraic
Equations, SIAM 1996, chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.base import Method, check_variable_index
from daedal.methods.block_storage import storage
from daedal.methods.implicit_stages import MOST_DEGREE, Stages, stages_of
from daedal.methods.named_formulas import formula
from daedal.methods.run import OneStepRun
from daedal.methods.runge_kutta_tableau import RungeKuttaTableau
from daedal.methods.task import Equations, Task
from daedal.methods.workspace import Workspace

_ERROR_TESTS = ("auto", "all", "differential")
_SOLVERS = ("auto", "dense", "banded", "sparse")
_MOST_FAILURES = 30
_KEPT_RATIO = 1.2  # steps grow only if it is worth a new factorisation


@dataclass(frozen=True, eq=False)
class ImplicitRungeKutta(Method):
    r"""The implicit Runge-Kutta method with given coefficients.

    .. math::

        F\Bigl(t_n + c_i h,\; y_n + h \sum_j a_{ij} Y'_j,\; Y'_i\Bigr) = 0, \qquad y_{n+1} = y_n + h \sum_i b_i Y'_i

    Stages that depend on each other are found together, those of diagonally implicit methods one after the other.

    Parameters
    ----------
    tableau : str, RungeKuttaTableau or tuple
        A name that :func:`daedal.formula` knows, such as ``"gauss2"`` or ``"sdirk4"``; coefficients; or ``(A, b)`` or
        ``(A, b, c)``.
    linear_solver : {"auto", "dense", "banded", "sparse"}
        "auto" follows the problem's `sparsity` and `bandwidth`.
    error_test : {"auto", "all", "differential"} or mask
        Which components take part in the error test: all; all but the algebraic ones; a mask or list of the components
        to include. "auto" tests all of those of first-order problems.
    variable_index : sequence of int, optional
        Index class 1, 2 or 3 of each variable, as for :class:`Radau`.

    Notes
    -----
    With `fixed_step` the equations of every step are solved up to round-off. Otherwise the error is estimated by the
    embedded weights of the tableau, or by two steps of half the size.

    What orders are to be expected is said by :func:`daedal.analyse_method`.

    Examples
    --------
    >>> import daedal
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0], y[1] - y[0]], 2)
    >>> method = daedal.ImplicitRungeKutta("gauss2")
    >>> sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 1.0], [-1.0, -1.0]), method=method, fixed_step=0.1)
    >>> print(f"{sol.y[0, -1]:.8f}")
    0.36787950
    """

    tableau: Any = "radau5"
    linear_solver: str = "auto"
    error_test: Any = "auto"
    variable_index: Any = None

    name = "implicit_runge_kutta"
    needs = ("residual",)
    stiff = True

    def __post_init__(self):
        _coefficients(self.tableau)
        if self.linear_solver not in _SOLVERS:
            raise InvalidProblemError(
                f"linear_solver of ImplicitRungeKutta must be one of {', '.join(map(repr, _SOLVERS))}, got "
                f"{self.linear_solver!r}; GMRES goes with DASSL"
            )
        if isinstance(self.error_test, str) and self.error_test not in _ERROR_TESTS:
            raise InvalidProblemError(
                f"unknown error_test '{self.error_test}'; known: {', '.join(_ERROR_TESTS)}, or a mask"
            )
        if self.variable_index is not None:
            check_variable_index(self.variable_index)

    @cached_property
    def coefficients(self) -> RungeKuttaTableau:
        """The tableau."""
        return _coefficients(self.tableau)

    @cached_property
    def analysis(self) -> Any:
        """What follows from the coefficients, see :func:`daedal.analyse_method`."""
        from daedal.method_analysis import analyse_method

        return analyse_method(self.coefficients)

    @property
    def max_order(self) -> int:
        """The classical order."""
        return int(self.analysis.order)

    @property
    def title(self) -> str:
        """What a solution says of the method."""
        return f"ImplicitRungeKutta, {self.coefficients.name}, order {self.max_order}"

    def prepare(self, equations: Equations) -> OneStepRun:
        """Matrices for all blocks of stages, and room for the stages."""
        problem, kind = equations.problem, self.linear_solver
        if kind == "auto":
            kind = "sparse" if problem.sparsity is not None else "banded" if problem.bandwidth is not None else "dense"
        return _ImplicitRun(self, equations, Workspace(problem, hook=equations.hook, linear_solver=kind), kind)


def _coefficients(given: Any) -> RungeKuttaTableau:
    """The tableau that is meant by a name, by coefficients, or by itself."""
    if isinstance(given, RungeKuttaTableau):
        return given
    if isinstance(given, str):
        found = formula(given)
        if not isinstance(found, RungeKuttaTableau):
            raise InvalidProblemError(f"'{given}' is a multistep method: ImplicitRungeKutta needs a Runge-Kutta tableau")
        return found
    if isinstance(given, (tuple, list)) and len(given) in (2, 3):
        return RungeKuttaTableau(*given)
    raise InvalidProblemError(
        f"tableau must be a name such as 'gauss2', a RungeKuttaTableau, (A, b) or (A, b, c), got {given!r}"
    )


class _ImplicitRun(OneStepRun):
    """A run of an implicit Runge-Kutta method."""

    def __init__(self, method: ImplicitRungeKutta, equations: Equations, workspace: Workspace, kind: str):
        from daedal.kernels.records import Arena, Record
        from daedal.methods import implicit_runge_kutta_newton as newton
        from daedal.methods.implicit_runge_kutta_step import irk_accept, irk_attempt
        from daedal.methods.one_step import MEMORY

        n, problem = equations.n, equations.problem
        self._stages = stages = stages_of(method.coefficients)
        s, matrices = stages.s, stages.matrices
        places = storage(n, kind, problem.bandwidth, problem.sparsity)
        entries = places.rows.size
        self._matrices = [places.block_matrix(workspace.bridge, block.size) for _ in range(2) for block in matrices]
        self._places = [np.ascontiguousarray(places.block_places(block.size)) for block in matrices] * 2
        arena = Arena(
            {
                **dict.fromkeys(newton.VECTORS, n),
                **dict.fromkeys(("whole", "first", "second", "guess"), (s + 1, n)),
                "r": (s, n),
                "hat": s * n,
                "factored": 2 * len(matrices),
            }
        )
        self._inner: dict[int, np.ndarray] = {}
        order = method.max_order
        record = Record(
            newton.IRK,
            arena,
            linear=workspace.linear.address,
            linearise=newton.irk_linearise.address,
            form=newton.irk_form.address,
            correct=newton.irk_correct.address,
            s=s,
            known=stages.known,
            a=stages.a,
            b=stages.b,
            c=stages.c,
            blocks=len(stages.blocks),
            **{f"block_{name}": np.array([getattr(b, name) for b in stages.blocks]) for name in ("first", "size", "matrix")},
            doubling=True,
            divisor=2.0 ** min(order, int(method.analysis.k_I) + 1) - 1.0,
            end_slope=stages.end_slope,
            straight=stages.stage_order < 2,
            halves=np.array([stages.slope((half + c) / 2.0) for half in (0, 1) for c in stages.c]),
            n_matrices=len(matrices),
            matrices=np.array([matrix.address for matrix in self._matrices]),
            places=np.array([array.ctypes.data for array in self._places]),
            entries=entries,
            rows=places.rows,
            columns=places.columns,
            place=places.place,
            f_y=np.zeros((s, entries)),
            f_yp=np.zeros((s, entries)),
        )
        super().__init__(
            method,
            equations,
            attempt=irk_attempt,
            accept=irk_accept,
            order=order,
            control_order=order + 1,
            controller=MEMORY,
            kept_ratio=_KEPT_RATIO,
            most_failures=_MOST_FAILURES,
            record=record,
            arena=arena,
            workspace=workspace,
        )

    def load(self, task: Task) -> None:
        """The polynomial of a step, of which there are two where it is halved."""
        assert self.workspace is not None
        self.workspace.prepare_matrices(accurate=False)
        fixed = task.fixed_step is not None
        inner = _inner(self._stages, MOST_DEGREE if fixed else MOST_DEGREE // 2)
        self._inner[0] = inner
        self.own["degree"], self.own["inner"] = inner.shape[1] + 1, inner.ctypes.data


def _inner(stages: Stages, most: int) -> np.ndarray:
    """Weights of the slopes at equidistant points of a step, in later ones and in the first one.

    Methods of stage order 1 whose last stage is the end of the step have a cubic polynomial through values and slopes
    at both ends; others the one that interpolates the slopes of their stages.
    """
    hermite = stages.end >= 0 and stages.stage_order < 2
    degree = min(most, 3 if hermite else stages.degree)
    return np.array([stages.inner(degree, hermite), stages.inner(degree, False)])
