"""The base class of all methods.

A method is a frozen dataclass: its fields are its options, checked in ``__post_init__``. Class attributes declare what
it supports. ``prepare`` prepares it once for a set of equations; the :class:`Run` it returns integrates any number of
tasks.

A one-step method needs only this class and one compiled function; see :mod:`daedal.methods.one_step`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.task import Equations
from daedal.problems.checks import check_mask, check_real

if TYPE_CHECKING:
    from daedal.methods.run import Run

FORMS = ("residual", "rate", "mechanism", "semi_explicit", "second_order")

_registered: dict[str, type[Method]] = {}


NORMS = ("rms", "max")
"""Norms of the error of one-step methods: root mean square, or largest component."""


class Method(ABC):
    """A time integration method.

    Attributes
    ----------
    name : str
        Its public name.
    needs : tuple of str
        The forms of :class:`Equations` it accepts, any one of which suffices: "residual", "rate", "mechanism",
        "semi_explicit", "second_order".
    max_order : int
        The highest order.
    stiff : bool
        Whether steps are not limited by stability.
    explicit : bool
        Whether it solves no nonlinear equations.
    stiffness_check : float
        For explicit methods: the size of h lambda from which steps on a mechanism are checked for stiffness.
    events, dense_output, fixed_steps, controlled : bool
        Whether it locates events, provides polynomials, supports constant steps, and controls its error.
    is_multistep : bool
        Whether constant steps with order above 1 start from `starting_values` at t0, t0 + h, ...
    shares_newton_matrix : bool
        Whether Newton's method can use one matrix for a solution and its sensitivities.

    Examples
    --------
    >>> import daedal
    >>> method = daedal.methods.DASSL(max_order=2)
    >>> isinstance(method, daedal.methods.Method), method.name, "max_order" in method.options()
    (True, 'dassl', True)
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    stiff: ClassVar[bool] = False
    explicit: ClassVar[bool] = False
    events: ClassVar[bool] = True
    dense_output: ClassVar[bool] = True
    fixed_steps: ClassVar[bool] = True
    controlled: ClassVar[bool] = True
    is_multistep: ClassVar[bool] = False
    shares_newton_matrix: ClassVar[bool] = False

    stiffness_check: Any = 1.2

    # Options that every method accepts, for the driver; methods that do not need them ignore them.
    max_order: Any
    error_test: Any = "auto"
    nonnegative: Any = False
    projection: Any = "never"
    starting_values: Any = None

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:
            _registered.setdefault(cls.name, cls)

    @abstractmethod
    def prepare(self, equations: Equations) -> Run:
        """Prepare the method for these equations. The result runs one task at a time."""

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """Names of the method's options."""
        return tuple(field.name for field in fields(cls)) if is_dataclass(cls) else ()

    def excluded(self, problem) -> np.ndarray | None:
        """The components excluded by a mask given as `error_test`."""
        included = check_mask(self.error_test, problem.n, "error_test", problem.names)
        if not included.any():
            raise InvalidProblemError("error_test includes no variable: include at least one, to control the error")
        return ~included

    def supports(self, form: str) -> bool:
        """Whether the method accepts equations in this form."""
        return form in self.needs

    def for_second_order(self) -> Method:
        """The method that replaces this one for direct solution of second-order equations."""
        return self

    @property
    def title(self) -> str:
        """Description of the method in solutions."""
        return f"{type(self).__name__}, order up to {self.max_order}"

    @property
    def begins_with_slopes(self) -> bool:
        """Whether the first step uses the given y' at the start, including that of algebraic variables."""
        return False

    @property
    def needs_starting_values(self) -> bool:
        """Whether constant steps need additional starting values that are not given."""
        return self.is_multistep and self.max_order > 1 and self.starting_values is None

    def with_defaults(self, wishes: dict[str, Any]) -> Any:
        """A copy with the given options, except those that the method lacks or the user has set."""
        if not wishes:
            return self
        own = self.options()
        kept = {name: value for name, value in wishes.items() if name in own and _is_open(getattr(self, name))}
        return replace(self, **kept) if kept else self  # type: ignore[type-var]

    def require_error_estimate(self, fixed_step: float | None) -> None:
        """Raise for a run with error control if the method has no error estimate."""
        if fixed_step is None and not self.controlled:
            raise InvalidProblemError(f"{type(self).__name__} has no error estimate: pass fixed_step")


def _is_open(option) -> bool:
    return option is None or (isinstance(option, str) and option == "auto")


def check_variable_index(given) -> None:
    """Raise unless every variable has an index class 1, 2 or 3."""
    classes = check_real(given, "variable_index", "hold 1, 2 or 3 for every variable")
    if not set(classes.ravel()) <= {1.0, 2.0, 3.0}:
        raise InvalidProblemError(f"variable_index must hold 1, 2 or 3 for every variable, got {classes}")


def registered() -> dict[str, type[Method]]:
    """All named classes, by name."""
    return _registered


# --- options of implicit methods --------------------------------------------------------------------------------------


_ERROR_TESTS = ("auto", "all", "differential")
_SOLVERS = ("auto", "dense", "banded", "sparse")
CORRECTORS = ("simultaneous", "staggered", "staggered direct")
"""How a step computes a solution and its sensitivities."""


def check_name(option: str, given: Any, known: Collection[str], further: str = "") -> None:
    """Raise unless the value is one of the known names."""
    if not isinstance(given, str) or given not in known:
        raise InvalidProblemError(f"{option} must be one of {', '.join(map(repr, known))}, got {given!r}{further}")


def check_matrix_options(method: Any) -> None:
    """Raise for an unknown `linear_solver` or `error_test`."""
    check_name(f"linear_solver of {type(method).__name__}", method.linear_solver, _SOLVERS, "; GMRES requires DASSL")
    if isinstance(method.error_test, str) and method.error_test not in _ERROR_TESTS:
        raise InvalidProblemError(
            f"unknown error_test '{method.error_test}'; known: {', '.join(_ERROR_TESTS)}, or a mask"
        )


def storage_kind(problem: Any, linear_solver: str = "auto") -> str:
    """Storage of a problem's matrices, as requested or according to its structure."""
    if linear_solver != "auto":
        return linear_solver
    return "sparse" if problem.sparsity is not None else "banded" if problem.bandwidth is not None else "dense"


def check_corrector(given: Any, known: tuple[str, ...] = CORRECTORS) -> None:
    """Raise for an unknown `corrector`."""
    if given != "auto" and given not in known:
        raise InvalidProblemError(f"unknown corrector {given!r}; known: {', '.join(known)}")
