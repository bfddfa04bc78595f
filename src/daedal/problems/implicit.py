"""Fully implicit DAEs F(t, y, y') = 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from daedal.kernels.functions import store_vector
from daedal.problems.checks import (
    check_arguments,
    check_callable,
    check_functions,
    check_invariants,
    check_mask,
    check_names,
    check_size,
    check_structure,
    full_matrix,
    set_checked,
)
from daedal.problems.compile import Compilable, compiled_functions, last_argument, machine_value
from daedal.problems.named_inputs import TakesInputs, take_inputs

_LARGE = 2.0**30


@dataclass(frozen=True, eq=False, repr=False)
class ImplicitDAE(TakesInputs, Compilable):
    r"""A fully implicit differential-algebraic equation :math:`F(t, y, y') = 0`.

    Parameters
    ----------
    residual : callable
        ``residual(t, y, yp) -> array (n,)``, or ``residual(t, y, yp, p)`` when `params` is given. A function decorated
        with ``numba.njit`` runs at compiled speed; plain Python functions are also accepted. The arrays that it
        receives are copies.
    n : int
        Number of equations and unknowns.
    jacobian : callable, optional
        ``jacobian(t, y, yp, cj) -> dF/dy + cj dF/dy'``: an (n, n) array; with `bandwidth` the (ml + mu + 1, n) band in
        the layout of :func:`scipy.linalg.solve_banded`; with `sparsity` a scipy.sparse matrix, or (compiled) the vector
        of its entries in the order of the CSC structure. Computed if it is not given.
    params : object, optional
        Passed to the functions as their last argument. Compiled functions receive them as a vector of floats.
    algebraic : mask or list of int or str, optional
        The variables whose derivative does not occur in F. By default determined by finite differences when needed.
    sparsity : scipy.sparse matrix, optional
        Structure of dF/dy + cj dF/dy'; its values do not matter.
    bandwidth : (int, int), optional
        Lower and upper bandwidth (ml, mu) of dF/dy + cj dF/dy'.
    names : sequence of str, optional
        Names of the variables, used in messages and plots.
    invariants : callable, optional
        ``invariants(t, y)``, a number or an array of quantities that are constant along solutions, such as energies or
        charges. Every step is projected onto their values at the start; see :doc:`/guide/invariants`.
    inputs : list of str, or mapping {name: default}, optional
        External inputs. Functions receive the vector u of all inputs as their last argument, or single inputs by name;
        see :meth:`with_inputs` and `inputs` of :func:`daedal.solve`.

    Notes
    -----
    The index is the number of times F must be differentiated to obtain an ordinary differential equation. The
    integrators solve index 0 and 1 directly; see the user guide for higher-index problems.

    Examples
    --------
    Robertson's reaction as a DAE of index 1:

    >>> import daedal
    >>> def residual(t, y, yp):
    ...     return [
    ...         yp[0] + 0.04 * y[0] - 1e4 * y[1] * y[2],
    ...         yp[1] - 0.04 * y[0] + 1e4 * y[1] * y[2] + 3e7 * y[1] ** 2,
    ...         y[0] + y[1] + y[2] - 1.0,
    ...     ]
    >>> problem = daedal.ImplicitDAE(residual, 3, names=["A", "B", "C"])
    >>> sol = daedal.solve(problem, (0.0, 40.0), ([1.0, 0.0, 0.0], None), rtol=1e-8, atol=1e-12)
    >>> print(f"{sol.y[0, -1]:.5f}")
    0.71583
    """

    residual: Callable[..., Any]
    n: int
    _: KW_ONLY
    jacobian: Callable[..., Any] | None = None
    params: Any = None
    algebraic: Any = None
    sparsity: Any = None
    bandwidth: tuple[int, int] | None = None
    names: Sequence[str] | None = None
    inputs: Any = None
    invariants: Callable[..., Any] | None = None
    linearly_implicit: ClassVar[Any] = None  # steps of linearly implicit methods, for traced problems
    # number of copies of the unknowns in y: more than 1 if y consists of a solution and its sensitivities; the Newton
    # matrix is then the matrix of the equations for the solution alone
    copies: ClassVar[int] = 1

    def __post_init__(self):
        check_callable(self.residual, "residual")
        functions = {"residual": ("t", "y", "yp"), "jacobian": ("t", "y", "yp", "cj"), "invariants": ("t", "y")}
        take_inputs(self, functions)
        check_functions(self.params, residual=self.residual, jacobian=self.jacobian)
        check_arguments("residual", self.residual, ("t", "y", "yp"), self.params)
        if self.jacobian is not None:
            check_arguments("jacobian", self.jacobian, ("t", "y", "yp", "cj"), self.params)
        check_invariants(self.invariants, ("t", "y"), self.params)
        n = check_size(self.n, "n")
        structure, names = check_structure(n, self.sparsity, self.bandwidth), check_names(self.names, n)
        algebraic = None if self.algebraic is None else check_mask(self.algebraic, n, "algebraic", names)
        set_checked(self, n=n, names=names, algebraic=algebraic, **structure)

    def evaluate(self, t: float, y, yp) -> np.ndarray:
        """F(t, y, y') as a float array, checked."""
        result = np.empty(self.n)
        y = np.array(y, dtype=float)
        yp = np.array(yp, dtype=float)
        values = self.residual(float(t), y, yp, *last_argument(self.residual, self.params))
        store_vector("residual", self.n)(values, result)
        return result

    def sample(self, t: float, y, yp) -> np.ndarray:
        """F from its machine code if available, for many evaluations around a point."""
        values = machine_value(self.residual, self.params, t, y, yp)
        return self.evaluate(t, y, yp) if values is None else values

    def exact_partials(self, t: float, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """dF/dy' and dF/dy of a traced problem as full matrices; None if it was not traced.

        Extracted from dF/dy + cj dF/dy' with cj chosen so that dF/dy' keeps all digits.
        """
        if not getattr(self.jacobian, "is_derivative", False):
            return None
        found = [machine_value(self.jacobian, self.params, t, y, yp, cj) for cj in (0.0, _LARGE)]
        if any(values is None or not np.isfinite(values).all() for values in found):
            return None
        of_y, both = (full_matrix(self, values) for values in found)
        return (both - of_y) / _LARGE, of_y

    def exact_matrix(self, t: float, y: np.ndarray, yp: np.ndarray, cj: float = 0.0) -> Any:
        """dF/dy + cj dF/dy' of a traced problem, sparse if its structure is; None if it was not traced."""
        if not getattr(self.jacobian, "is_derivative", False):
            return None
        values = machine_value(self.jacobian, self.params, t, y, yp, cj)
        if values is None or self.sparsity is None:
            return None if values is None else full_matrix(self, values)
        from scipy.sparse import csc_array

        return csc_array((values, self.sparsity.indices, self.sparsity.indptr), shape=self.sparsity.shape)

    def label(self, i: int) -> str:
        """The name of variable i."""
        return self.names[i] if self.names else f"y[{i}]"

    def implicit(self) -> ImplicitDAE:
        """The problem as F(t, y, y') = 0: the problem itself."""
        return self

    def with_params(self, params) -> ImplicitDAE:
        """The same problem with other parameters; a mapping replaces those that it names."""
        other = super().with_params(params)
        for name in ("linearly_implicit", "copies"):
            object.__setattr__(other, name, getattr(self, name))
        return other

    def _by_numba(self) -> ImplicitDAE:
        return replace(self, **compiled_functions(self, ("residual", "jacobian", "invariants")))
