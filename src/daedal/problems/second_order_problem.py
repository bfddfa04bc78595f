"""Second-order DAEs F(t, x, x', x'') = 0, solved without reduction to first order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import store_matrix, store_sparse, store_vector
from daedal.problems.checks import (
    check_arguments,
    check_callable,
    check_functions,
    check_names,
    check_real,
    check_size,
    check_structure,
    set_checked,
)
from daedal.problems.compile import Compilable, compiled_functions, last_argument, machine_value
from daedal.problems.implicit import ImplicitDAE
from daedal.problems.named_inputs import TakesInputs, take_inputs


@dataclass(frozen=True, eq=False, repr=False)
class SecondOrderDAE(TakesInputs, Compilable):
    r"""A differential-algebraic equation of second order, :math:`F(t, x, \dot x, \ddot x) = 0`.

    :class:`ModifiedBDF` and :class:`Collocation` solve it directly. Reduction to first order may raise the index,
    require more derivatives of the data and introduce variables that are much harder to compute than those of interest;
    :meth:`first_order` performs this reduction, for comparison and for DASSL.

    Parameters
    ----------
    residual : callable
        ``residual(t, x, xp, xpp) -> array (n,)``, or ``residual(t, x, xp, xpp, p)`` when `params` is given.
    n : int
        Number of equations and unknowns.
    jacobian : callable, optional
        ``jacobian(t, x, xp, xpp, c1, c2) -> dF/dx + c1 dF/dx' + c2 dF/dx''``: an (n, n) array; with `bandwidth` the
        band in the layout of :func:`scipy.linalg.solve_banded`, with `sparsity` a scipy.sparse matrix. Approximated
        by finite differences if it is not given.
    params : object, optional
        Passed to the functions as their last argument.
    order : sequence of {0, 1, 2}, optional
        The highest derivative of each variable that occurs in F: 2 for positions, 1 for states with a first-order
        equation, 0 for multipliers. Found by differences if it is not given. A higher order than necessary is allowed;
        the derivatives are then computed as well. The initial values of x of order 0 and of x' of order 1 follow from
        the equations; given values serve as initial guesses.
    sparsity, bandwidth : optional
        Structure of the matrix that `jacobian` returns, as for :class:`ImplicitDAE`.
    names : sequence of str, optional
        Names of the variables.
    inputs : list of str, or mapping {name: default}, optional
        External inputs. Functions receive the vector u of all inputs as their last argument, or single inputs by name;
        see :meth:`with_inputs` and `inputs` of :func:`daedal.solve`.

    References
    ----------
    L. Wunderlich: Numerical solution of second order differential-algebraic equations, diploma thesis, TU Berlin, 2005.

    Examples
    --------
    A pendulum with Lagrange multiplier:

    >>> import daedal
    >>> def residual(t, x, xp, xpp):
    ...     return [
    ...         xpp[0] + 2.0 * x[0] * x[2],
    ...         xpp[1] + 2.0 * x[1] * x[2] + 9.81,
    ...         x[0] ** 2 + x[1] ** 2 - 1.0,
    ...     ]
    >>> pendulum = daedal.SecondOrderDAE(residual, 3, names=["x", "y", "lam"])
    >>> sol = daedal.solve(pendulum, (0.0, 1.0), ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]), rtol=1e-8)
    >>> print(f"{sol.x[0, -1]:.3f} {sol.x[1, -1]:.3f}")
    -0.986 -0.165
    """

    residual: Callable[..., Any]
    n: int
    _: KW_ONLY
    jacobian: Callable[..., Any] | None = None
    params: Any = None
    order: Any = None
    sparsity: Any = None
    bandwidth: tuple[int, int] | None = None
    names: Sequence[str] | None = None
    inputs: Any = None

    motion: ClassVar[Any] = None  # exact derivatives along a motion, for traced problems

    def __post_init__(self):
        check_callable(self.residual, "residual")
        state = ("t", "x", "xp", "xpp")
        take_inputs(self, {"residual": state, "jacobian": (*state, "c1", "c2")})
        check_functions(self.params, residual=self.residual, jacobian=self.jacobian)
        check_arguments("residual", self.residual, ("t", "x", "xp", "xpp"), self.params)
        if self.jacobian is not None:
            check_arguments("jacobian", self.jacobian, ("t", "x", "xp", "xpp", "c1", "c2"), self.params)
        n = check_size(self.n, "n")
        structure = check_structure(n, self.sparsity, self.bandwidth)
        order = None if self.order is None else _check_order(self.order, n)
        set_checked(self, n=n, order=order, names=check_names(self.names, n), **structure)

    def evaluate(self, t: float, x, xp, xpp) -> np.ndarray:
        """F(t, x, x', x'') as a float array, checked."""
        result = np.empty(self.n)
        arguments = [np.array(a, dtype=float) for a in (x, xp, xpp)]
        values = self.residual(float(t), *arguments, *last_argument(self.residual, self.params))
        store_vector("residual", self.n)(values, result)
        return result

    def sample(self, t: float, x, xp, xpp) -> np.ndarray:
        """F from its machine code if available, for many evaluations around a point."""
        values = machine_value(self.residual, self.params, t, x, xp, xpp)
        return self.evaluate(t, x, xp, xpp) if values is None else values

    def along(self, t: float, x, xp, xpp) -> np.ndarray | None:
        """Exact first and second total derivatives of F along the motion starting at these values; None if
        unavailable."""
        function = None if self.motion is None else self.motion.function(tuple(np.asarray(self.order).tolist()))
        values = machine_value(function, self.params, t, x, xp, xpp)
        return values.reshape(2, -1) if values is not None and np.isfinite(values).all() else None

    def label(self, i: int) -> str:
        """The name of variable i."""
        return self.names[i] if self.names else f"x[{i}]"

    def _by_numba(self) -> SecondOrderDAE:
        return replace(self, **compiled_functions(self, ("residual", "jacobian")))

    def with_order(self, order) -> SecondOrderDAE:
        """The same problem with given orders of its variables."""
        other = replace(self, order=order)
        object.__setattr__(other, "motion", self.motion)
        return other

    def velocity_names(self, velocities: np.ndarray) -> list[str]:
        """Names of the derivatives of some variables."""
        return [f"{self.label(i)}'" for i in velocities]

    def first_order(self, order=None) -> ImplicitDAE:
        r"""The companion form F = 0, :math:`\dot x - u = 0` with :math:`y = (x, u)` and u for the variables of order 2.

        Parameters
        ----------
        order : sequence of {0, 1, 2}, optional
            Which derivatives become variables; by default the orders of the problem. Orders 2 throughout give the
            companion form of the textbooks, which may have a higher index than the problem itself.

        Examples
        --------
        >>> import daedal
        >>> swing = daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[0]], 1, order=[2])
        >>> swing.first_order().evaluate(0.0, [1.0, 2.0], [3.0, 4.0])
        array([5., 1.])
        """
        chosen = self.order if order is None else _check_order(order, self.n)
        if chosen is None:
            raise InvalidProblemError("the orders of the variables are not known: give order, for example [2, 2, 0]")
        if self.order is not None and np.any(chosen < self.order):
            raise InvalidProblemError(f"order={order!r} is lower than the orders {self.order.tolist()} of the problem")
        n, velocities = self.n, np.flatnonzero(chosen == 2)

        def residual(t, y, yp):
            xp, xpp = yp[:n].copy(), np.zeros(n)
            xp[velocities], xpp[velocities] = y[n:], yp[n:]
            return np.concatenate([self.evaluate(t, y[:n], xp, xpp), yp[:n][velocities] - y[n:]])

        pattern = _pattern(self)
        return ImplicitDAE(
            residual,
            n + velocities.size,
            jacobian=None if self.jacobian is None else _companion_jacobian(self, velocities, pattern),
            algebraic=np.concatenate([chosen == 0, np.zeros(velocities.size, dtype=bool)]),
            sparsity=None if pattern is None else _companion_matrix(pattern, pattern, velocities, 1.0),
            names=[self.label(i) for i in range(n)] + self.velocity_names(velocities),
        )


def _pattern(problem: SecondOrderDAE):
    """The structure of F's matrices, if given."""
    from scipy.sparse import csc_array, diags_array

    if problem.bandwidth is not None:
        n, (ml, mu) = problem.n, problem.bandwidth
        offsets = range(-ml, mu + 1)
        return csc_array(diags_array([np.ones(n - abs(k)) for k in offsets], offsets=offsets, shape=(n, n)))
    return None if problem.sparsity is None else csc_array(problem.sparsity).astype(float)


def _companion_matrix(of_x, of_u, velocities: np.ndarray, cj: float):
    """[[of_x, of_u in the velocity columns], [cj in the velocity rows, -1]]; sparse if the blocks are."""
    from scipy.sparse import block_array, csc_array, eye_array, issparse

    n, m = of_x.shape[0], velocities.size
    rows = cj * csc_array(eye_array(n))[velocities]
    if issparse(of_x):
        return csc_array(block_array([[of_x, csc_array(of_u)[:, velocities]], [rows, -eye_array(m)]]))
    return np.block([[of_x, of_u[:, velocities]], [rows.toarray(), -np.eye(m)]])


def _companion_jacobian(problem: SecondOrderDAE, velocities: np.ndarray, pattern):
    """The companion-form matrix from three matrices of F."""
    n = problem.n
    second = np.isin(np.arange(n), velocities)

    def matrix(t, x, xp, xpp, c1, c2):
        from scipy.sparse import csc_array, dia_array

        assert problem.jacobian is not None
        found = problem.jacobian(t, x, xp, xpp, c1, c2, *last_argument(problem.jacobian, problem.params))
        if problem.sparsity is not None:
            entries = np.empty(pattern.nnz)
            store_sparse("jacobian", pattern)(found, entries)
            return csc_array((entries, pattern.indices, pattern.indptr), shape=(n, n))
        ml, mu = problem.bandwidth or (0, n - 1)
        values = np.empty((n, ml + mu + 1))
        store_matrix("jacobian", ml + mu + 1, n)(found, values.reshape(-1))
        if pattern is None:
            return values.T
        return csc_array(dia_array((values.T, range(mu, -ml - 1, -1)), shape=(n, n)))

    def jacobian(t, y, yp, cj):
        xp, xpp = yp[:n].copy(), np.zeros(n)
        xp[velocities], xpp[velocities] = y[n:], yp[n:]
        at = (float(t), y[:n].copy(), xp, xpp)
        of_x, lower, both = matrix(*at, 0.0, 0.0), matrix(*at, cj, 0.0), matrix(*at, 1.0, cj)
        if pattern is None:
            return _companion_matrix(np.where(second, of_x, lower), both - of_x, velocities, cj)
        from scipy.sparse import diags_array

        chosen = of_x @ diags_array(second.astype(float)) + lower @ diags_array((~second).astype(float))
        return _companion_matrix(chosen, both - of_x, velocities, cj)

    return jacobian


def _check_order(order, n: int) -> np.ndarray:
    values = check_real(order, "order", "hold 0, 1 or 2 for every variable").reshape(-1)
    if values.size != n or not set(values.tolist()) <= {0.0, 1.0, 2.0}:
        raise InvalidProblemError(f"order must hold 0, 1 or 2 for each of the {n} variables, got {order!r}")
    return values.astype(np.int64)
