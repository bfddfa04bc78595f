r"""Implicit Runge-Kutta methods with arbitrary coefficients for F(t, y, y') = 0.

References
----------
K. E. Brenan, S. L. Campbell, L. R. Petzold: Numerical Solution of Initial-Value Problems in Differential-Algebraic
Equations, SIAM 1996, chapter 4; U. M. Ascher, L. R. Petzold: Projected implicit Runge-Kutta methods for
differential-algebraic equations, SIAM J. Numer. Anal. 28 (1991) 1097-1120.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.methods.base import Method, check_matrix_options, check_name, check_variable_index, storage_kind
from daedal.methods.implicit_rk.collocation import Collocation
from daedal.methods.implicit_rk.implicit_stages import kind_of, stages_of
from daedal.methods.named_formulas import coefficients
from daedal.methods.run import OneStepRun
from daedal.methods.tableau import RungeKuttaTableau
from daedal.methods.task import Equations
from daedal.methods.workspace import Workspace

_PROJECTIONS = ("never", "always")
_ROUNDED = 1e-6  # error of coefficients given with few digits


def _check_consistency(tableau: RungeKuttaTableau) -> None:
    """Check that the weights sum to 1 and that embedded weights differ from them."""
    total = float(sum(tableau.b))
    if abs(total - 1.0) > _ROUNDED:
        raise InvalidProblemError(f"{tableau.name} is not consistent: the weights b sum to {total:.4g} instead of 1")
    differences = [abs(float(x) - float(y)) for x, y in zip(tableau.b, tableau.embedded, strict=False)]
    if differences and max(differences) <= _ROUNDED:
        raise InvalidProblemError(f"{tableau.name}: the embedded weights equal b, so they estimate no error")


@dataclass(frozen=True, eq=False)
class ImplicitRungeKutta(Method):
    r"""The implicit Runge-Kutta method with given coefficients.

    .. math::

        F\Bigl(t_n + c_i h,\; y_n + h \sum_j a_{ij} Y'_j,\; Y'_i\Bigr) = 0, \qquad y_{n+1} = y_n + h \sum_i b_i Y'_i

    Coupled stages are computed together; those of diagonally implicit methods are computed one after the other.

    Parameters
    ----------
    tableau : str, RungeKuttaTableau or tuple
        A name known to :func:`daedal.methods.coefficients`, such as ``"gauss2"`` or ``"sdirk4"``; coefficients; or
        ``(A, b)`` or ``(A, b, c)``.
    linear_solver : {"auto", "dense", "banded", "sparse"}
        "auto" follows the problem's `sparsity` and `bandwidth`.
    error_test : {"auto", "all", "differential"} or mask
        The components in the error test: all; all but the algebraic ones; a mask or list of the components to include.
        "auto" tests all components of first-order problems.
    variable_index : sequence of int, optional
        Index class 1, 2 or 3 of each variable, as for :class:`Radau`.
    projection : {"never", "always"}
        "always", for problems of index 2 in Hessenberg form y' = f(t, y, z), 0 = g(t, y): after every step y is moved
        along f_z until g = 0, and z is interpolated from the stages. Gauss methods then have their order 2s in y.

    Notes
    -----
    With `fixed_step`, every step is solved down to round-off. Otherwise the error is estimated by the embedded weights
    of the tableau, or by two steps of half the size.

    A :class:`SecondOrderDAE`, and a mechanism with ``formulation="index3"``, is solved directly by :class:`Collocation`
    if the coefficients are those of one of its methods, and in first-order form otherwise.

    The error test uses the error at the end of a step and that of the polynomial inside it, so that output between
    steps is as accurate as at steps; for problems of index 2 and 3 it uses only the error at the end. Methods of stage
    order 1 therefore need short steps for algebraic and stiff variables; `error_test` can exclude variables whose
    values inside steps do not matter.

    :func:`daedal.analysis.analyse_method` gives the expected orders. If none is guaranteed for the index of the
    problem, variable steps raise an error, and a run with `fixed_step` includes a note in its message.

    The trapezoidal rule and Lobatto IIIA start with y' of all variables; if `yp0` is not given it is computed from the
    equations and their derivative.

    Examples
    --------
    >>> import daedal
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0], y[1] - y[0]], 2)
    >>> method = daedal.methods.ImplicitRungeKutta("gauss2")
    >>> sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 1.0], [-1.0, -1.0]), method=method, fixed_step=0.1)
    >>> print(f"{sol.y[0, -1]:.8f}")
    0.36787949
    """

    tableau: Any = "radau5"
    linear_solver: str = "auto"
    error_test: Any = "auto"
    variable_index: Any = None
    projection: str = "never"

    name = "implicit_runge_kutta"
    needs = ("residual",)
    stiff = True

    def __post_init__(self):
        _check_consistency(_coefficients(self.tableau))
        check_matrix_options(self)
        if self.variable_index is not None:
            check_variable_index(self.variable_index)
        check_name("projection", self.projection, _PROJECTIONS)

    @cached_property
    def coefficients(self) -> RungeKuttaTableau:
        """The tableau."""
        return _coefficients(self.tableau)

    @property
    def analysis(self) -> Any:
        """Properties derived from the coefficients, see :func:`daedal.analysis.analyse_method`."""
        return _analysis(self.coefficients)

    @property
    def max_order(self) -> int:
        """The classical order."""
        return int(self.analysis.order)

    @property
    def title(self) -> str:
        """Description of the method in solutions."""
        return f"ImplicitRungeKutta, {self.coefficients.name}, order {self.max_order}"

    @property
    def begins_with_slopes(self) -> bool:
        """True for the trapezoidal rule and Lobatto IIIA, whose first stage is the start of the step."""
        return stages_of(self.coefficients).known

    def for_second_order(self) -> Method:
        """The equivalent :class:`Collocation` if it supports all options used, otherwise this method."""
        found = kind_of(self.coefficients)
        plain = isinstance(self.error_test, str) and self.error_test == "auto" and self.variable_index is None
        if found is None or not plain or self.projection != "never" or self.linear_solver not in ("auto", "dense"):
            return self
        return Collocation(*found)

    def prepare(self, equations: Equations) -> OneStepRun:
        """Create the matrices of all stage blocks, and storage for the stages."""
        from daedal.methods.implicit_rk.implicit_runge_kutta_run import ImplicitRungeKuttaRun

        problem, kind = equations.problem, storage_kind(equations.problem, self.linear_solver)
        return ImplicitRungeKuttaRun(self, equations, Workspace(problem, hook=equations.hook, linear_solver=kind), kind)


@cache
def _analysis(tableau: RungeKuttaTableau) -> Any:
    from daedal.analysis.method_analysis.analyse_method import analyse_method

    return analyse_method(tableau)


def _coefficients(given: Any) -> RungeKuttaTableau:
    """The tableau given by a name, by coefficients, or directly."""
    if isinstance(given, RungeKuttaTableau):
        return given
    if isinstance(given, str):
        found = coefficients(given)
        if not isinstance(found, RungeKuttaTableau):
            raise InvalidProblemError(
                f"'{given}' is a multistep method: ImplicitRungeKutta needs a Runge-Kutta tableau"
            )
        return found
    if isinstance(given, (tuple, list)) and len(given) in (2, 3):
        return RungeKuttaTableau(*given)
    raise InvalidProblemError(
        f"tableau must be a name such as 'gauss2', a RungeKuttaTableau, (A, b) or (A, b, c), got {given!r}"
    )
