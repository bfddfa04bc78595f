"""Common base of :class:`ODE` and :class:`MassMatrixDAE`: M(t, y) y' = f(t, y), as F(t, y, y') = M y' - f = 0."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from daedal.common.tabular import plural
from daedal.errors import InvalidProblemError
from daedal.kernels.functions import is_compiled, real_array, store_vector
from daedal.problems.checks import (
    check_arguments,
    check_callable,
    check_functions,
    check_invariants,
    check_names,
    check_size,
    check_structure,
    is_pair,
    set_checked,
)
from daedal.problems.compile import last_argument, machine_value
from daedal.problems.implicit import ImplicitDAE
from daedal.problems.named_inputs import with_driven
from daedal.problems.symbols import renewed


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Quasilinear(ImplicitDAE):
    """Equations linear in y', with right-hand side f and a mass matrix, where None means the identity.

    The residual and the Newton matrix are derived from f and the mass matrix, so every solver of an
    :class:`ImplicitDAE` applies.
    """

    residual: Callable[..., Any] = field(init=False, repr=False)
    f: Callable[..., Any]
    mass: ClassVar[Any] = None

    def _state(self, f, n, mass, *, jacobian, params, algebraic, sparsity, bandwidth, names, inputs, invariants):
        """Check the arguments and build F and its matrix."""
        n = check_size(n, "n")
        names = check_names(names, n)
        jacobian = jacobian.of if isinstance(jacobian, NewtonMatrix) else jacobian
        check_callable(f, "f")
        functions = {
            name: (function, ("t", "y"))
            for name, function in {"f": f, "jacobian": jacobian, "invariants": invariants}.items()
        }
        inputs, params, functions = with_driven(inputs, params, names, functions)
        f, jacobian, invariants = functions["f"], functions["jacobian"], functions["invariants"]
        check_functions(params, f=f, jacobian=jacobian)
        check_arguments("f", f, ("t", "y"), params)
        check_invariants(invariants, ("t", "y"), params)
        structure = check_structure(n, sparsity, bandwidth)
        structure = {"sparsity": _with_mass(structure["sparsity"], mass), "bandwidth": structure["bandwidth"]}
        if jacobian is not None:
            check_arguments("jacobian", jacobian, ("t", "y"), params)
            jacobian = NewtonMatrix(jacobian, mass, n, **structure)
        residual = _compiled_residual(f, mass, n, params is not None) or Residual(f, mass, n)
        checked = {"n": n, "names": names, "algebraic": algebraic, "params": params, "inputs": inputs, **structure}
        set_checked(self, f=f, residual=residual, jacobian=jacobian, invariants=invariants, **checked)

    def slope(self, t: float, y) -> np.ndarray:
        """f(t, y) as a float array, checked."""
        values = machine_value(self.f, self.params, t, np.asarray(y, dtype=float))
        if values is None:
            values = np.empty(self.n)
            result = self.f(float(t), np.array(y, dtype=float), *last_argument(self.f, self.params))
            store_vector("f", self.n)(result, values)
        return values

    def pair(self, initial) -> tuple:
        """Initial values as (y0, yp0); y0 alone is sufficient."""
        return tuple(initial) if is_pair(initial) else (initial, None)

    def with_params(self, params) -> Self:
        """The same problem with other parameters; a mapping replaces the entries it names."""
        new = renewed(self.params, params)
        check_functions(new, f=self.f)
        other = copy(self)
        object.__setattr__(other, "params", new)
        return other


class Residual:
    """F = M y' - f in Python; an object instead of a closure, so that the problem can be pickled. It can be traced."""

    def __init__(self, f, mass, n: int):
        self.f, self.mass, self.n = f, mass, n

    def __call__(self, t, y, yp, *params):
        last = [last_argument(function, *params) if params else () for function in (self.f, self.mass)]
        product = yp if self.mass is None else mass_at(self.mass, self.n, t, y.copy(), *last[1]) @ yp
        return product - _checked("f", self.f(t, y, *last[0]), (self.n,))


class NewtonMatrix:
    """cj M - df/dy in Python, in the structure of the problem."""

    def __init__(self, of, mass, n: int, sparsity, bandwidth):
        self.of, self.mass, self.n, self.sparsity, self.bandwidth = of, mass, n, sparsity, bandwidth

    def __call__(self, t, y, yp, cj, *params):
        n = self.n
        given = self.of(t, y.copy(), *(last_argument(self.of, *params) if params else ()))
        if given is None:
            raise InvalidProblemError("jacobian returned None; it must return df/dy (is a return missing?)")
        mass: Any = None
        if self.mass is not None:
            mass = mass_at(self.mass, n, t, y, *(last_argument(self.mass, *params) if params else ()))
        if self.sparsity is not None:
            return self._sparse(given, mass, cj)
        if self.bandwidth is not None:
            return self._banded(given, mass, cj)
        values = real_array(given.toarray() if hasattr(given, "toarray") else given, "jacobian", "df/dy")
        _check_shape("jacobian", values.shape, (n, n))
        mass = mass.toarray() if hasattr(mass, "toarray") else mass
        return cj * (np.eye(n) if mass is None else mass) - values

    def _sparse(self, given, mass, cj):
        from scipy.sparse import csc_array, eye_array

        values = csc_array(given)
        _check_shape("jacobian", values.shape, (self.n, self.n))
        return csc_array(cj * (eye_array(self.n) if mass is None else csc_array(mass)) - values)

    def _banded(self, given, mass, cj):
        ml, mu = self.bandwidth
        band = np.array(real_array(given, "jacobian", "the band of df/dy"), dtype=float)
        _check_shape("jacobian", band.shape, (ml + mu + 1, self.n))
        np.negative(band, out=band)
        for k in range(-ml, mu + 1) if mass is not None else (0,):
            diagonal = np.ones(self.n) if mass is None else mass.diagonal(k)
            first = max(k, 0)
            band[mu - k, first : first + diagonal.size] += cj * diagonal
        return band


class OfTime:
    """A mass matrix that depends only on time, called with all arguments."""

    def __init__(self, function):
        self.function = function

    def __call__(self, t, y, *params):
        return self.function(t)


def mass_at(mass, n: int, t, y, *last):
    """The mass matrix at a point, checked: an array or scipy.sparse matrix."""
    if not callable(mass):
        return mass
    matrix = mass(t, y, *last)
    if hasattr(matrix, "tocsc"):
        _check_shape("mass", matrix.shape, (n, n))
        return matrix
    return _checked("mass", matrix, (n, n))


def _checked(name: str, result, shape: tuple[int, ...]):
    """The result of a function as an array of numbers or symbols."""
    if result is None:
        raise InvalidProblemError(
            f"{name} returned None; it must return an array of shape {shape} (is a return missing?)"
        )
    array = np.asarray(result)
    if array.dtype.kind not in "fiubO":
        raise InvalidProblemError(f"{name} returned entries of type '{array.dtype}'; it must return real numbers")
    _check_shape(name, array.shape, shape)
    return array


def _check_shape(name: str, shape, expected):
    if tuple(shape) != expected:
        raise InvalidProblemError(f"{name} returned an array of shape {tuple(shape)}; expected {expected}")


def _with_mass(sparsity, mass):
    """The union of the structures of df/dy, of a constant mass matrix and of the diagonal.

    Users must include the structure of a mass matrix function in `sparsity`.
    """
    if sparsity is None:
        return None
    from scipy.sparse import csc_array, eye_array

    pattern = sparsity + eye_array(sparsity.shape[0], format="csc")
    if mass is not None and not callable(mass):
        pattern = pattern + abs(csc_array(mass))
    pattern = csc_array((np.ones(pattern.nnz), pattern.indices, pattern.indptr), shape=pattern.shape)
    pattern.sort_indices()
    return pattern


def _compiled_residual(f, mass, n: int, has_params: bool):
    """F = M y' - f compiled from Numba functions; None if they are not compiled."""
    constant = mass is None or isinstance(mass, np.ndarray)
    if not is_compiled(f) or not (constant or is_compiled(mass)):
        return None
    import numba

    wrong = f"f must return {plural(n, 'number')}, and mass a ({n}, {n}) matrix"

    @numba.njit
    def combine(matrix, yp, rate):
        if rate.size != n or matrix.shape != (n, n):
            raise InvalidProblemError(wrong)
        result = np.empty(n)
        for i in range(n):
            total = -rate[i]
            for j in range(n):
                total += matrix[i, j] * yp[j]
            result[i] = total
        return result

    @numba.njit
    def subtract(yp, rate):
        if rate.size != n:
            raise InvalidProblemError(wrong)
        return yp - rate

    if mass is None:
        if has_params:
            return numba.njit(lambda t, y, yp, p: subtract(yp, f(t, y, p)))
        return numba.njit(lambda t, y, yp: subtract(yp, f(t, y)))
    if isinstance(mass, np.ndarray):
        if has_params:
            return numba.njit(lambda t, y, yp, p: combine(mass, yp, f(t, y, p)))
        return numba.njit(lambda t, y, yp: combine(mass, yp, f(t, y)))
    if has_params:
        return numba.njit(lambda t, y, yp, p: combine(mass(t, y, p), yp, f(t, y, p)))
    return numba.njit(lambda t, y, yp: combine(mass(t, y), yp, f(t, y)))
