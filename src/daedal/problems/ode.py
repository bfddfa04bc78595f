"""Ordinary differential equations y' = f(t, y)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from daedal.problems.compile import compiled_function, compiled_functions
from daedal.problems.quasilinear import NewtonMatrix, Quasilinear


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ODE(Quasilinear):
    r"""An ordinary differential equation :math:`y' = f(t, y)`.

    Parameters
    ----------
    f : callable
        ``f(t, y) -> array (n,)``, or ``f(t, y, p)`` when `params` is given.
    n : int
        Number of equations and unknowns.
    jacobian : callable, optional
        ``jacobian(t, y) -> df/dy``: an (n, n) array; with `bandwidth` the (ml + mu + 1, n) band in the layout of
        :func:`scipy.linalg.solve_banded`; with `sparsity` a scipy.sparse matrix. Computed if it is not given, and used
        by implicit methods only.
    params : object, optional
        Passed to the functions as their last argument.
    sparsity : scipy.sparse matrix, optional
        Structure of df/dy; its values do not matter.
    bandwidth : (int, int), optional
        Lower and upper bandwidth (ml, mu) of df/dy.
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
    An ODE is an :class:`ImplicitDAE` with the residual y' - f, and can be used wherever an ImplicitDAE is accepted. The
    initial values are y0; ``(y0, None)`` is equivalent. The automatic choice starts with an explicit method,
    :class:`DOPRI5` or :class:`DOP853`, and switches to an implicit one if the equations turn out to be stiff.

    Examples
    --------
    Lorenz' equations:

    >>> import daedal
    >>> def lorenz(t, y, p):
    ...     return [p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]]
    >>> problem = daedal.ODE(lorenz, 3, params=[10.0, 28.0, 8.0 / 3.0], names=["x", "y", "z"])
    >>> sol = daedal.solve(problem, (0.0, 1.0), [1.0, 1.0, 1.0], rtol=1e-9)
    >>> print(f"{sol['x'][-1]:.5f} {sol.method}")
    -9.37857 DOP853, order 8
    """

    algebraic: Any = field(init=False, repr=False)

    def __init__(
        self,
        f: Callable[..., Any],
        n: int,
        *,
        jacobian: Callable[..., Any] | None = None,
        params: Any = None,
        sparsity: Any = None,
        bandwidth: tuple[int, int] | None = None,
        names: Sequence[str] | None = None,
        inputs: Any = None,
        invariants: Callable[..., Any] | None = None,
    ):
        given = {"params": params, "algebraic": None, "names": names, "inputs": inputs, "invariants": invariants}
        self._state(f, n, None, jacobian=jacobian, sparsity=sparsity, bandwidth=bandwidth, **given)
        object.__setattr__(self, "algebraic", np.zeros(self.n, dtype=bool))

    def _by_numba(self) -> ODE:
        functions = compiled_functions(self, ("f", "invariants"))
        if isinstance(self.jacobian, NewtonMatrix):
            functions["jacobian"] = compiled_function(self.jacobian.of)
        return replace(self, **functions)
