"""Constrained mechanical systems, defined by functions for mass, force and constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import (
    check_arguments,
    check_callable,
    check_flag,
    check_functions,
    check_names,
    check_real,
    check_size,
    check_sparsity,
    set_checked,
)
from daedal.problems.compile import Compilable, compiled_functions
from daedal.problems.named_inputs import TakesInputs, take_inputs

FUNCTIONS = (
    "mass",
    "force",
    "constraint",
    "constraint_jacobian",
    "constraint_t",
    "acceleration_bias",
    "velocity_constraint",
    "velocity_jacobian",
    "velocity_bias",
    "state_rate",
    "algebraic",
    "contact",
)
"""Names of all functions of a system."""
_LARGEST_DENSE_DIAGONAL = 2000  # number of coordinates up to which a constant diagonal mass is stored dense


@dataclass(frozen=True, eq=False, repr=False)
class MechanicalSystem(TakesInputs, Compilable):
    r"""A mechanical system with holonomic and nonholonomic constraints,

    .. math::

        M(t, q)\, \ddot q = f(t, q, \dot q) - G^T \lambda - \hat G^T \hat\lambda, \qquad
        0 = g(t, q), \qquad 0 = \hat G(t, q)\, \dot q + \hat g(t, q),

    with :math:`G = \partial g / \partial q`. Derivatives that are not given (G, the partial derivative of g with
    respect to t, and the acceleration bias) are computed.

    Parameters
    ----------
    mass : callable or array
        ``mass(t, q) -> (n_q, n_q)``, symmetric; a constant mass may be given as a matrix, a diagonal or a number. M may
        be sparse, and singular if it is positive definite on the kernel of G.
    force : callable
        ``force(t, q, v) -> (n_q,)``: applied, Coriolis and centrifugal forces.
    constraint : callable, optional
        ``constraint(t, q) -> (n_constraints,)``, the position constraints g.
    n_q : int
        Number of coordinates.
    n_constraints : int
        Number of position constraints.
    constraint_jacobian : callable, optional
        ``constraint_jacobian(t, q) -> (n_constraints, n_q)``, the matrix G.
    constraint_t : callable, optional
        ``constraint_t(t, q) -> (n_constraints,)``, the partial derivative of g with respect to t.
    acceleration_bias : callable, optional
        ``acceleration_bias(t, q, v) -> (n_constraints,)``, :math:`\gamma = -(G v)_q v - 2 G_t v - g_{tt}`, so that
        :math:`G \ddot q = \gamma`.
    velocity_constraint : callable, optional
        ``velocity_constraint(t, q, v) -> (n_velocity_constraints,)``, nonholonomic constraints.
    n_velocity_constraints : int
        Number of velocity constraints.
    velocity_jacobian, velocity_bias : callable, optional
        ``velocity_jacobian(t, q)`` is :math:`\hat G`; ``velocity_bias(t, q, v)`` is :math:`\hat\gamma` with
        :math:`\hat G \ddot q = \hat\gamma`.
    state_rate : callable, optional
        :math:`\dot r = f_d`, the rate of `n_r` further first-order states such as those of actuators.
    algebraic : callable, optional
        ``0 = algebraic(...)``, which determines `n_w` algebraic variables w.
    contact : callable, optional
        ``0 = contact(t, q, s)``, which determines `n_s` contact coordinates s; `constraint` is then called as
        ``constraint(t, q, s)``.
    contact_guess : array or callable, optional
        Initial guess of s: values, or a function of (t, q).
    force_uses_multipliers : bool
        Whether `force`, `state_rate` and `algebraic` depend on the multipliers (friction).
    params : object, optional
        Passed to every function as its last argument.
    names : sequence of str, optional
        Names of the coordinates.
    constraint_names : sequence of str, optional
        Names of the constraints, position constraints first.
    force_sparsity : scipy.sparse matrix, optional
        For large systems with sparse matrices: structure of the derivatives of the force with respect to q and v,
        shape (n_q, n_q); its values do not matter. By default the structure of M and :math:`G^T G`.
    inputs : list of str, or mapping {name: default}, optional
        External inputs. Functions that depend on inputs receive the vector u of all inputs as their last argument, or
        single inputs by name; see :meth:`with_inputs` and `inputs` of :func:`daedal.solve`.

    Notes
    -----
    After v, `force`, `state_rate` and `algebraic` receive the further variables that the system has, in the order
    r, w, s, lam: ``force(t, q, v, r)`` with `n_r` states, ``force(t, q, v, lam)`` with friction.

    Functions compiled with ``numba.njit`` run without calls into Python.

    If `mass` or `constraint_jacobian` returns scipy.sparse matrices, the system is solved by sparse linear algebra and
    may have thousands of coordinates (formulations GGL, Index1 to Index3, Baumgarte; method DASSL).

    Examples
    --------
    A pendulum of unit length in Cartesian coordinates:

    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     mass=1.0,
    ...     force=lambda t, q, v: [0.0, -9.81],
    ...     constraint=lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
    ...     n_q=2,
    ...     n_constraints=1,
    ...     names=["x", "y"],
    ... )
    >>> sol = daedal.solve(pendulum, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), rtol=1e-8)
    >>> print(f"{sol.q[1, -1]:.4f}", sol.drift["position"] < 1e-12)
    -0.1650 True
    """

    mass: Any
    force: Callable[..., Any]
    constraint: Callable[..., Any] | None = None
    _: KW_ONLY
    n_q: int
    n_constraints: int = 0
    constraint_jacobian: Callable[..., Any] | None = None
    constraint_t: Callable[..., Any] | None = None
    acceleration_bias: Callable[..., Any] | None = None
    velocity_constraint: Callable[..., Any] | None = None
    n_velocity_constraints: int = 0
    velocity_jacobian: Callable[..., Any] | None = None
    velocity_bias: Callable[..., Any] | None = None
    state_rate: Callable[..., Any] | None = None
    n_r: int = 0
    algebraic: Callable[..., Any] | None = None
    n_w: int = 0
    contact: Callable[..., Any] | None = None
    n_s: int = 0
    contact_guess: Any = None
    force_uses_multipliers: bool = False
    params: Any = None
    names: Sequence[str] | None = None
    constraint_names: Sequence[str] | None = None
    force_sparsity: Any = None
    inputs: Any = None

    # set in traced systems, until one of the functions is replaced:
    linearisation: ClassVar[Any] = None  # exact derivatives for Newton's method
    straight_line: ClassVar[Any] = None  # accelerations and projections

    def __post_init__(self):
        stated = {field.name: getattr(self, field.name) for field in fields(self)}
        take_inputs(self, {name: _arguments(name, stated) for name in (*FUNCTIONS, "contact_guess")})
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        n_q = check_size(self.n_q, "n_q")
        sizes = {
            name: check_size(given[name], name, 0)
            for name in ("n_constraints", "n_velocity_constraints", "n_r", "n_w", "n_s")
        }
        given |= sizes | {"n_q": n_q, "names": _checked_names(self.names, n_q)}
        if not callable(self.mass):
            given["mass"] = _constant_mass(self.mass, n_q)
        check_callable(self.force, "force")
        check_functions(self.params, **{name: given[name] for name in FUNCTIONS if name != "mass"})
        if callable(self.mass):
            check_functions(self.params, mass=self.mass)
        for function, size in (
            ("constraint", "n_constraints"),
            ("velocity_constraint", "n_velocity_constraints"),
            ("state_rate", "n_r"),
            ("algebraic", "n_w"),
            ("contact", "n_s"),
        ):
            _check_together(given, function, size)
        for function, parent in (
            ("constraint_jacobian", "constraint"),
            ("constraint_t", "constraint"),
            ("acceleration_bias", "constraint"),
            ("velocity_jacobian", "velocity_constraint"),
            ("velocity_bias", "velocity_constraint"),
        ):
            if given[function] is not None and given[parent] is None:
                raise InvalidProblemError(f"{function} is given, but {parent} is not")
        if self.contact_guess is not None and self.contact is None:
            raise InvalidProblemError("contact_guess is given, but contact is not")
        check_flag(self.force_uses_multipliers, "force_uses_multipliers")
        for name in (*FUNCTIONS, "contact_guess"):
            if callable(given[name]):
                check_arguments(name, given[name], _arguments(name, given), self.params)
        n_lambda = sizes["n_constraints"] + sizes["n_velocity_constraints"]
        given["constraint_names"] = _checked_constraint_names(self.constraint_names, n_lambda)
        try:
            given["force_sparsity"] = check_sparsity(self.force_sparsity, n_q)
        except InvalidProblemError as error:
            raise InvalidProblemError(f"force_{error}") from error
        set_checked(self, **given)

    @property
    def n_lambda(self) -> int:
        """Number of multipliers: those of the position constraints, then those of the velocity constraints."""
        return self.n_constraints + self.n_velocity_constraints

    @property
    def typical_length(self) -> float:
        """Characteristic length of a machine, the scale for positions near zero; 0 if unknown."""
        return float(np.max(getattr(self, "typical_sizes", 0.0), initial=0.0))

    @property
    def n(self) -> int:
        """Number of unknowns (q, v, r) with tolerances."""
        return 2 * self.n_q + self.n_r

    def label(self, i: int) -> str:
        """The name of entry i of (q, v, r)."""
        if i < self.n_q:
            return self.names[i] if self.names else f"q[{i}]"
        if i < 2 * self.n_q:
            return f"{self.label(i - self.n_q)}'" if self.names else f"v[{i - self.n_q}]"
        return f"r[{i - 2 * self.n_q}]"

    def constraint_label(self, i: int) -> str:
        """The name of constraint i."""
        if self.constraint_names:
            return f"'{self.constraint_names[i]}'"
        if i < self.n_constraints:
            return f"constraint {i}"
        return f"velocity constraint {i - self.n_constraints}"

    def at(self, t: float, q, v=None, *, r=None, w=None, lam=None):
        """Evaluate all quantities of the equations at a point; see :class:`daedal.mechanics.point.MechanicalPoint`."""
        from daedal.mechanics.point import evaluate_at

        return evaluate_at(self, t, q, v, r=r, w=w, lam=lam)

    def check(self, t: float, q, v=None):
        """Check derivatives, rank, definiteness and consistency at a point; the report can be printed."""
        from daedal.analysis.mechanical_analysis import check_system

        return check_system(self, t, q, v)

    def _by_numba(self) -> MechanicalSystem:
        names = [name for name in (*FUNCTIONS, "contact_guess") if callable(getattr(self, name))]
        return self.replaced(**compiled_functions(self, names))

    def with_params(self, params) -> MechanicalSystem:
        """The same system with other parameters."""
        other = super().with_params(params)
        for name in ("linearisation", "straight_line"):
            object.__setattr__(other, name, getattr(self, name))
        return other

    def replaced(self, **changes) -> MechanicalSystem:
        """The same system with some arguments replaced."""
        return replace(self, **changes)


def _constant_mass(mass, n_q: int):
    """A constant mass matrix from a matrix, a diagonal or a number; sparse if given as such, or if large and
    diagonal."""
    if hasattr(mass, "tocsr"):
        return _sparse_mass(mass, n_q)
    expected = "be a function mass(t, q), a matrix, a diagonal or a number"
    if mass is None:
        raise InvalidProblemError(f"mass must {expected}, got None")
    values = check_real(mass, "mass", expected)
    if values.ndim == 0:
        values = np.full(n_q, float(values))
    if values.shape == (n_q,) and n_q > _LARGEST_DENSE_DIAGONAL:
        from scipy.sparse import diags_array

        return _sparse_mass(diags_array(values), n_q)
    if values.ndim == 1:
        values = np.diag(values)
    if values.shape != (n_q, n_q):
        raise InvalidProblemError(f"mass has shape {np.shape(mass)}; expected ({n_q}, {n_q}), ({n_q},) or a number")
    if not np.all(np.isfinite(values)):
        raise InvalidProblemError("mass holds values that are not finite")
    return values


def _sparse_mass(mass, n_q: int):
    from scipy.sparse import csr_array

    matrix = csr_array(mass)
    if matrix.shape != (n_q, n_q):
        raise InvalidProblemError(f"mass has shape {matrix.shape}; expected ({n_q}, {n_q})")
    if matrix.dtype.kind not in "fiub" or not np.all(np.isfinite(matrix.data)):
        raise InvalidProblemError("mass holds values that are not finite real numbers")
    return matrix.astype(float)


def _check_together(given: dict[str, Any], function: str, size: str):
    """Check that a function and the number of its results are given together."""
    if (given[function] is None) != (given[size] == 0):
        missing = size if given[function] is not None else function
        present = function if given[function] is not None else f"{size} = {given[size]}"
        raise InvalidProblemError(f"{present} is given, but {missing} is not")


def _arguments(name: str, given: dict[str, Any]) -> list[str]:
    """Arguments of a function of the system, before the parameters."""
    contact = ["s"] if given["n_s"] else []
    if name in ("mass", "velocity_jacobian", "contact_guess"):
        arguments = ["t", "q"]
    elif name in ("constraint", "constraint_jacobian", "constraint_t", "contact"):
        arguments = ["t", "q", *contact]
    elif name in ("velocity_constraint", "velocity_bias"):
        arguments = ["t", "q", "v"]
    elif name == "acceleration_bias":
        arguments = ["t", "q", "v", *contact]
    else:
        sizes = (("r", "n_r"), ("w", "n_w"), ("s", "n_s"), ("lam", "force_uses_multipliers"))
        arguments = ["t", "q", "v", *(letter for letter, size in sizes if given[size])]
    return arguments


def _checked_names(names, n_q: int) -> tuple[str, ...] | None:
    """Check that names of coordinates are distinct, also from the names of velocities such as x'."""
    checked = check_names(names, n_q)
    if checked is None:
        return None
    for name in checked:
        if f"{name}'" in checked:
            raise InvalidProblemError(f'names has "{name}" and "{name}\'", which is the name of its velocity')
    return checked


def _checked_constraint_names(names, n_lambda: int) -> tuple[str, ...] | None:
    try:
        return check_names(names, n_lambda)
    except InvalidProblemError as error:
        message = str(error).replace("variable", "constraint")
        raise InvalidProblemError(f"constraint_{message}") from None
