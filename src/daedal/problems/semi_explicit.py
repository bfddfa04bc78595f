"""Semi-explicit DAEs y' = f(t, y, z), 0 = g(t, y, z)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from daedal.common.tabular import plural
from daedal.errors import InvalidProblemError
from daedal.kernels.functions import is_compiled, store_vector
from daedal.problems.checks import (
    check_arguments,
    check_callable,
    check_invariants,
    check_names,
    check_size,
    set_checked,
)
from daedal.problems.compile import Compilable, compiled_functions, last_argument
from daedal.problems.implicit import ImplicitDAE
from daedal.problems.named_inputs import TakesInputs, take_inputs


@dataclass(frozen=True, eq=False, repr=False)
class SemiExplicitDAE(TakesInputs, Compilable):
    r"""A semi-explicit DAE :math:`y' = f(t, y, z),\; 0 = g(t, y, z)`.

    Parameters
    ----------
    f, g : callable
        ``f(t, y, z) -> (n_y,)`` and ``g(t, y, z) -> (n_z,)``, with `params` as a fourth argument when given. The index
        is 1 if dg/dz is nonsingular; if g does not depend on z and (dg/dy)(df/dz) is nonsingular, the problem has
        Hessenberg index 2.
    n_y, n_z : int
        Number of differential and algebraic variables.
    jacobian : callable, optional
        ``jacobian(t, x, xp, cj)`` of the stacked system F = (y' - f, g) in x = (y, z); see :class:`ImplicitDAE`.
    params, sparsity, bandwidth, names
        As in :class:`ImplicitDAE`, for the stacked vector x = (y, z).
    invariants : callable, optional
        ``invariants(t, y, z)``, a number or an array of quantities that are constant along solutions, such as energies
        or charges. Every step is projected onto their values at the start; see :doc:`/guide/invariants`.
    inputs : list of str, or mapping {name: default}, optional
        External inputs. Functions receive the vector u of all inputs as their last argument, or single inputs by name;
        see :meth:`with_inputs` and `inputs` of :func:`daedal.solve`.

    Notes
    -----
    The solution holds the stacked vector: ``sol.y`` has n_y + n_z rows; the last n_z are ``sol.z``.

    Examples
    --------
    >>> import daedal
    >>> problem = daedal.SemiExplicitDAE(lambda t, y, z: [-z[0]], lambda t, y, z: [z[0] - y[0]], 1, 1)
    >>> sol = daedal.solve(problem, (0.0, 1.0), ([1.0], None))
    >>> print(f"{sol.y[0, -1]:.4f} {sol.z[0, -1]:.4f}")
    0.3679 0.3679
    """

    f: Callable[..., Any]
    g: Callable[..., Any]
    n_y: int
    n_z: int
    _: KW_ONLY
    jacobian: Callable[..., Any] | None = None
    params: Any = None
    sparsity: Any = None
    bandwidth: tuple[int, int] | None = None
    names: Sequence[str] | None = None
    inputs: Any = None
    invariants: Callable[..., Any] | None = None
    copies: ClassVar[int] = 1  # number of copies of the unknowns, as in ImplicitDAE

    def __post_init__(self):
        check_callable(self.f, "f")
        check_callable(self.g, "g")
        jacobian = ("t", "x", "xp", "cj")
        state = ("t", "y", "z")
        take_inputs(self, {"f": state, "g": state, "jacobian": jacobian, "invariants": state})
        for name in ("f", "g"):
            check_arguments(name, getattr(self, name), state, self.params)
        check_invariants(self.invariants, state, self.params)
        n_y, n_z = check_size(self.n_y, "n_y"), check_size(self.n_z, "n_z")
        set_checked(self, n_y=n_y, n_z=n_z, names=check_names(self.names, n_y + n_z))
        self.implicit()  # checks the remaining arguments

    @property
    def n(self) -> int:
        """Number of unknowns n_y + n_z."""
        return self.n_y + self.n_z

    def label(self, i: int) -> str:
        """Name of variable i of the stacked vector (y, z)."""
        if self.names:
            return self.names[i]
        return f"y[{i}]" if i < self.n_y else f"z[{i - self.n_y}]"

    def constraint(self, t: float, y, z) -> np.ndarray:
        """g(t, y, z) as a float array, checked."""
        return _checked(self.g, "g", self.n_z, t, y, z, self.params)

    def slope(self, t: float, y, z) -> np.ndarray:
        """f(t, y, z) as a float array, checked."""
        return _checked(self.f, "f", self.n_y, t, y, z, self.params)

    def implicit(self) -> ImplicitDAE:
        """The stacked system F(t, x, x') = (y' - f, g) = 0 in x = (y, z)."""
        if self not in _stacked:
            _stacked[self] = self._stack()
        return _stacked[self]

    def _by_numba(self) -> SemiExplicitDAE:
        return replace(self, **compiled_functions(self, ("f", "g", "jacobian", "invariants")))

    def _stack(self) -> ImplicitDAE:
        algebraic = np.arange(self.n) >= self.n_y
        return ImplicitDAE(
            _stack(self.f, self.g, self.n_y, self.n_z, self.params is not None),
            self.n,
            jacobian=self.jacobian,
            params=self.params,
            algebraic=algebraic,
            sparsity=self.sparsity,
            bandwidth=self.bandwidth,
            names=tuple(self.label(i) for i in range(self.n)),
        )


_stacked: WeakKeyDictionary = WeakKeyDictionary()  # cached: compiling the stacked functions is slow


def adopt_stacked(problem: SemiExplicitDAE, stacked: ImplicitDAE):
    """Attach a precompiled stacked form to a problem."""
    _stacked[problem] = stacked


def _checked(function, name, size, t, y, z, params):
    result = np.empty(size)
    y, z = np.array(y, dtype=float), np.array(z, dtype=float)
    store_vector(name, size)(function(float(t), y, z, *last_argument(function, params)), result)
    return result


def _stack(f, g, n_y, n_z, has_params):
    """F = (y' - f, g): compiled if both functions are, otherwise in Python."""
    if is_compiled(f) and is_compiled(g):
        return _stack_compiled(f, g, n_y, n_z, has_params)

    def residual(t, x, xp, params=None):
        result = np.empty(n_y + n_z)
        y, z = x[:n_y], x[n_y:]
        store_vector("f", n_y)(
            f(t, y.copy(), z.copy(), *last_argument(f, params)), result[:n_y]
        )  # g receives an unmodified y
        np.subtract(xp[:n_y], result[:n_y], out=result[:n_y])
        store_vector("g", n_z)(g(t, y, z, *last_argument(g, params)), result[n_y:])
        return result

    return residual


def _stack_compiled(f, g, n_y, n_z, has_params):
    import numba

    wrong_length = f"f must return {plural(n_y, 'number')} and g {n_z}; one of them returned a different number"

    @numba.njit
    def combine(xp, slope, constraint):
        if slope.size != n_y or constraint.size != n_z:
            raise InvalidProblemError(wrong_length)
        result = np.empty(n_y + n_z)
        for i in range(n_y):
            result[i] = xp[i] - slope[i]
        for i in range(n_z):
            result[n_y + i] = constraint[i]
        return result

    def residual_with_params(t, x, xp, p):
        return combine(xp, f(t, x[:n_y], x[n_y:], p), g(t, x[:n_y], x[n_y:], p))

    def residual(t, x, xp):
        return combine(xp, f(t, x[:n_y], x[n_y:]), g(t, x[:n_y], x[n_y:]))

    return numba.njit(residual_with_params if has_params else residual)
