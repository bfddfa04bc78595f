"""Equations with a mass matrix, M(t, y) y' = f(t, y)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import is_compiled
from daedal.problems.checks import check_bandwidth, check_functions, check_mask, check_names, check_real, check_size
from daedal.problems.compile import compiled_function, compiled_functions
from daedal.problems.named_inputs import with_driven
from daedal.problems.quasilinear import NewtonMatrix, OfTime, Quasilinear


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MassMatrixDAE(Quasilinear):
    r"""A differential-algebraic equation with a mass matrix, :math:`M(t, y)\, y' = f(t, y)`; M may be singular.

    Parameters
    ----------
    f : callable
        ``f(t, y) -> array (n,)``, or ``f(t, y, p)`` when `params` is given.
    n : int
        Number of equations and unknowns.
    mass : array (n, n), scipy.sparse matrix, or callable
        M: a constant, or ``mass(t)``, or ``mass(t, y)``, or ``mass(t, y, p)`` when `params` is given.
    jacobian : callable, optional
        ``jacobian(t, y) -> df/dy``, as for :class:`ODE`. Computed if it is not given. It cannot be given if M depends
        on y, since the Newton matrix then also contains the derivative of M y'.
    params : object, optional
        Passed to the functions as their last argument.
    algebraic : mask or list of int or str, optional
        The variables whose derivative does not occur in M y'; detected from zero columns if M is constant.
    sparsity : scipy.sparse matrix, optional
        Structure of df/dy. The structure of a constant M is added; if M is a function, include its structure here.
    bandwidth : (int, int), optional
        Lower and upper bandwidth (ml, mu) of df/dy and M.
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
    The problem is an :class:`ImplicitDAE` with the residual M y' - f, so analysis and index reduction apply to it. The
    initial values are y0, or (y0, yp0). If M is singular, y0 must satisfy the equations that contain no derivatives;
    ``correct_initial=True`` adjusts its algebraic components accordingly.

    Examples
    --------
    Robertson's reaction, whose third equation is a balance:

    >>> import daedal, numpy as np
    >>> def reaction(t, y):
    ...     slow, fast = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    ...     return [-slow, slow - fast, y[0] + y[1] + y[2] - 1.0]
    >>> problem = daedal.MassMatrixDAE(reaction, 3, mass=np.diag([1.0, 1.0, 0.0]), names=["A", "B", "C"])
    >>> sol = daedal.solve(problem, (0.0, 40.0), [1.0, 0.0, 0.0], rtol=1e-8, atol=1e-12)
    >>> print(f"{sol['A'][-1]:.5f}")
    0.71583
    """

    mass: Any  # type: ignore[misc]

    def __init__(
        self,
        f: Callable[..., Any],
        n: int,
        mass: Any = None,
        *,
        jacobian: Callable[..., Any] | None = None,
        params: Any = None,
        algebraic: Any = None,
        sparsity: Any = None,
        bandwidth: tuple[int, int] | None = None,
        names: Sequence[str] | None = None,
        inputs: Any = None,
        invariants: Callable[..., Any] | None = None,
    ):
        n = check_size(n, "n")
        if mass is None:
            raise InvalidProblemError("mass is missing; give the matrix M of M y' = f, or use an ODE for y' = f")
        if callable(mass) and inputs is not None and not isinstance(mass, OfTime) and not is_of_time(mass):
            inputs, params, functions = with_driven(inputs, params, names, {"mass": (mass, ("t", "y"))})
            mass = functions["mass"]
        mass = _function(mass, params) if callable(mass) else _constant(mass, n)
        if algebraic is not None:
            algebraic = check_mask(algebraic, n, "algebraic", check_names(names, n))
        if not callable(mass):
            empty = np.asarray(abs(mass).sum(axis=0)).reshape(-1) == 0.0
            _check_algebraic(algebraic, empty)
            algebraic = empty
            _check_band(mass, check_bandwidth(bandwidth, n))
        elif jacobian is not None and not isinstance(mass, OfTime):
            raise InvalidProblemError(
                "jacobian, the derivative of f, is not sufficient if mass depends on y: omit it, "
                "and the full matrix is computed; or use an ImplicitDAE with the full matrix"
            )
        structure = {"sparsity": sparsity, "bandwidth": bandwidth}
        given = {"params": params, "algebraic": algebraic, "names": names, "inputs": inputs, "invariants": invariants}
        self._state(f, n, mass, jacobian=jacobian, **given, **structure)
        object.__setattr__(self, "mass", mass)

    def _by_numba(self) -> MassMatrixDAE:
        functions = compiled_functions(self, ("f", "invariants"))
        if callable(self.mass) and not isinstance(self.mass, OfTime):
            functions["mass"] = compiled_function(self.mass)
        if isinstance(self.jacobian, NewtonMatrix):
            functions["jacobian"] = compiled_function(self.jacobian.of)
        return replace(self, **functions)


def _constant(mass, n: int):
    """A constant mass matrix: an array of floats, or a CSC array."""
    if hasattr(mass, "tocsc"):
        from scipy.sparse import csc_array

        matrix = csc_array(mass)
        if matrix.dtype.kind not in "fiub":
            raise InvalidProblemError(f"mass must hold real numbers, got entries of type '{matrix.dtype}'")
        matrix, entries = matrix.astype(float), matrix.data
    else:
        matrix = entries = check_real(mass, "mass", f"be a ({n}, {n}) matrix of real numbers or a function")
    if matrix.shape == (n,) and n > 1:
        raise InvalidProblemError(f"mass has shape ({n},); give a matrix, np.diag(mass) or scipy.sparse.diags(mass)")
    if matrix.shape != (n, n):
        raise InvalidProblemError(f"mass has shape {matrix.shape}; expected ({n}, {n})")
    if not np.all(np.isfinite(entries)):
        raise InvalidProblemError("mass holds values that are not finite")
    return matrix


def _function(mass, params):
    """A mass matrix function, called as mass(t, y), followed by the parameters."""
    if isinstance(mass, OfTime):
        return mass
    check_functions(params, mass=mass)
    try:
        signature = inspect.signature(getattr(mass, "py_func", mass))
    except (TypeError, ValueError):  # functions of extension modules may have no signature
        return mass
    whole = ("t", "y") if params is None else ("t", "y", "p")
    for arguments in (whole, ("t",)):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return mass if arguments is whole else _of_time(mass)
    passed = "params is not given" if params is None else "params is given, as p"
    raise InvalidProblemError(
        f"mass has the arguments {signature}, but it is called as mass({', '.join(whole)}) or mass(t); {passed}"
    )


def is_of_time(mass) -> bool:
    """Whether a mass matrix function is called with the time only."""
    try:
        inspect.signature(getattr(mass, "py_func", mass)).bind("t")
    except (TypeError, ValueError):
        return False
    return True


def _of_time(mass):
    return OfTime(mass.py_func if is_compiled(mass) else mass)


def _check_algebraic(given, empty: np.ndarray):
    """Check that variables declared algebraic have zero columns."""
    if given is not None and np.any(given & ~empty):
        i = int(np.flatnonzero(given & ~empty)[0])
        raise InvalidProblemError(f"algebraic names variable {i}, but column {i} of mass is not zero")


def _check_band(mass, bandwidth: tuple[int, int] | None):
    """Check that a constant mass matrix lies within the band."""
    if bandwidth is None:
        return
    rows, columns = mass.nonzero()
    outside = (rows - columns > bandwidth[0]) | (columns - rows > bandwidth[1])
    if np.any(outside):
        k = int(np.flatnonzero(outside)[0])
        raise InvalidProblemError(
            f"mass has an entry in row {rows[k]}, column {columns[k]}, outside bandwidth {bandwidth}, "
            "which is the band of df/dy and M together"
        )
