"""Errors and warnings; those that are often caught by name are also at the top level, such as `daedal.DaedalError`.

An exception raised inside a user's function is never wrapped: it reaches the caller unchanged, with its traceback. All
errors raised by Daedal itself derive from :class:`DaedalError`, all warnings from :class:`DaedalWarning`.

>>> import daedal
>>> issubclass(daedal.errors.UnknownNameError, daedal.InvalidProblemError)
True
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from daedal.solution.solution import Solution

__all__ = [
    "DerivativeWarning",
    "EnergyWarning",
    "InvalidFileError",
    "MissingPackageError",
    "NonUniqueWarning",
    "SensitivityWarning",
    "StatefulFunctionWarning",
    "StructurallySingularError",
    "SwitchWarning",
    "ToleranceWarning",
    "TraceWarning",
    "UnknownNameError",
]


def __dir__() -> list[str]:
    return __all__


class DaedalError(Exception):
    """Base class of every error raised by Daedal.

    Examples
    --------
    >>> import daedal
    >>> try:
    ...     daedal.solve_dae(lambda t, y, yp: [yp[0] - y[0]], (0.0, 0.0), [1.0])
    ... except daedal.DaedalError as error:
    ...     print(error)
    t_span is empty: it starts and ends at 0.0
    """


class InvalidProblemError(DaedalError, ValueError):
    """The problem or an argument is invalid: a shape, a NaN, an unknown name, an impossible combination.

    Examples
    --------
    >>> import daedal
    >>> try:
    ...     daedal.solve_dae(lambda t, y, yp: [yp[0] - y[0]], (0.0, 1.0), [1.0, 2.0])
    ... except daedal.InvalidProblemError as error:
    ...     print(error)
    residual returned an array of shape (1,); expected (2,), since y0 has 2 entries
    """


class UnknownNameError(InvalidProblemError, KeyError):
    """No variable, multiplier, parameter, ... has this name; the message lists similar ones.

    Examples
    --------
    >>> import daedal
    >>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], names=["level"])
    >>> try:
    ...     sol["levle"]
    ... except daedal.errors.UnknownNameError as error:
    ...     print(error)
    there is no variable 'levle'; did you mean 'level' or "level'"? known: level, level'
    """

    __str__ = Exception.__str__  # str() of a KeyError has quotes


class NotFiniteError(InvalidProblemError):
    """A function of the problem is NaN, infinite or cannot be evaluated at the initial values."""


class InvalidFileError(DaedalError, ValueError):
    """A file that :func:`daedal.load` cannot read: damaged, from a newer version, or not written by Daedal.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import daedal
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "notes.npz")
    ...     _ = file.write_text("not a solution")
    ...     try:
    ...         daedal.load(file)
    ...     except daedal.errors.InvalidFileError:
    ...         print("refused")
    refused
    """


class MissingPackageError(DaedalError, ImportError):
    """An optional package is not installed; the message contains the command that installs it.

    Examples
    --------
    >>> import daedal
    >>> issubclass(daedal.errors.MissingPackageError, ImportError)
    True
    """


class StructurallySingularError(InvalidProblemError):
    """A set of equations contains fewer unknowns than equations; the message names both.

    Attributes
    ----------
    equations : tuple of int
        The superfluous equations, numbered from 0.
    unknowns : tuple of int
        The unknowns with too few equations.

    Examples
    --------
    >>> import daedal
    >>> def twice(t, y, yp):
    ...     return [yp[0] + y[1], y[0] - 1.0, y[0] - 2.0]
    >>> try:
    ...     daedal.reduce_index(daedal.ImplicitDAE(twice, 3))
    ... except daedal.errors.StructurallySingularError as error:
    ...     print(error.equations, error.unknowns)
    (1, 2) (2,)
    """

    def __init__(self, message: str, equations: Iterable[int] = (), unknowns: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.equations, self.unknowns = tuple(map(int, equations)), tuple(map(int, unknowns))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.equations, self.unknowns)


class InconsistentInitialError(DaedalError):
    """The initial values violate the equations; the message names the equations and their residuals.

    Attributes
    ----------
    equations : tuple of int
        The violated equations, worst first.
    residual : numpy.ndarray or None
        The residual at the given initial values.

    Examples
    --------
    >>> import daedal
    >>> circle = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] ** 2 + y[1] ** 2 - 1.0], 2)
    >>> try:
    ...     daedal.solve(circle, (0.0, 1.0), ([1.0, 1.0], [1.0, -1.0]))
    ... except daedal.InconsistentInitialError as error:
    ...     print(error.equations)
    (1,)
    """

    def __init__(self, message: str, equations: Iterable[int] = (), residual: np.ndarray | None = None) -> None:
        super().__init__(message)
        self.equations = tuple(int(i) for i in equations)
        self.residual = residual


class IntegrationError(DaedalError):
    """The integration failed.

    Attributes
    ----------
    solution : daedal.Solution
        Everything computed up to the failure.

    Examples
    --------
    >>> import daedal
    >>> try:
    ...     daedal.solve_dae(lambda t, y, yp: [yp[0] - y[0] ** 2], (0.0, 2.0), [1.0])
    ... except daedal.IntegrationError as error:
    ...     print(f"{error.solution.t[-1]:.3f}", error.solution.status)
    1.000 failed
    """

    ending: int | None = None  # why the method stopped, see daedal.kernels.endings

    def __init__(self, message: str, solution: Solution) -> None:
        super().__init__(message)
        self.solution = solution

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.solution), self.__dict__


class Unevaluable(DaedalError):
    """Raised by user functions that cannot be evaluated at a point.

    The step is repeated with a smaller step size, as for a NaN or an infinity.

    Examples
    --------
    >>> import math
    >>> import daedal
    >>> def residual(t, y, yp):
    ...     if y[0] < 0.0:
    ...         raise daedal.Unevaluable("square root of a negative number")
    ...     return [yp[0] + math.sqrt(y[0])]
    """


class DaedalWarning(UserWarning):
    """Base class of every warning of Daedal.

    Examples
    --------
    Turn warnings into errors, for example in tests:

    >>> import warnings
    >>> import daedal
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", daedal.DaedalWarning)
    ...     sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0])
    """


class DerivativeWarning(DaedalWarning):
    """A user-supplied derivative differs from the actual derivative of the function; it is used nevertheless.

    Examples
    --------
    >>> import warnings
    >>> import daedal
    >>> problem = daedal.ODE(lambda t, y: [-(y[0] ** 2)], 1, jacobian=lambda t, y: [[-y[0]]])
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     sol = daedal.solve(problem, (0.0, 1.0), [1.0], method="radau")
    >>> {warning.category.__name__ for warning in found}
    {'DerivativeWarning'}
    """


class EnergyWarning(DaedalWarning):
    """A law of impact would have created energy and was replaced by the law named in the message.

    Examples
    --------
    >>> import warnings
    >>> import daedal
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", daedal.errors.EnergyWarning)  # stop there
    ...     sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0])
    """


class NonUniqueWarning(DaedalWarning):
    """The equations allow several motions; the message describes the one that was computed.

    Examples
    --------
    >>> import warnings
    >>> import daedal
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", daedal.errors.NonUniqueWarning)  # stop there
    ...     sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0])
    """


class SensitivityWarning(DaedalWarning):
    """A sensitivity does not exist or is unknown from some time on.

    Examples
    --------
    >>> import warnings
    >>> import daedal
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", daedal.errors.SensitivityWarning)  # stop there
    ...     sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0])
    """


class StatefulFunctionWarning(DaedalWarning):
    """The result of a function depends on state or random numbers, not only on its arguments.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import daedal
    >>> rng = np.random.default_rng(0)
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     sol = daedal.solve(daedal.ODE(lambda t, y: [rng.normal() - y[0]], 1), (0.0, 0.1), [1.0])
    >>> {warning.category.__name__ for warning in found}
    {'StatefulFunctionWarning'}
    """


class SwitchWarning(DaedalWarning):
    """A hidden switch is not, or no longer, tracked during a run.

    Examples
    --------
    >>> import warnings
    >>> import daedal
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", daedal.errors.SwitchWarning)  # stop there
    ...     sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0])
    """


class ToleranceWarning(DaedalWarning):
    """A tolerance is too large, or too small, to control the error.

    Examples
    --------
    >>> import warnings
    >>> import daedal
    >>> problem = daedal.ODE(lambda t, y: [-y[0], 1e-8 - y[1]], 2, names=["x", "trace"])
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     sol = daedal.solve(problem, (0.0, 10.0), [1.0, 1e-8], atol=1e-6)
    >>> {warning.category.__name__ for warning in found}
    {'ToleranceWarning'}
    """


class TraceWarning(DaedalWarning):
    """A function disagrees with its trace; the run was repeated with the original functions.

    Examples
    --------
    >>> import warnings
    >>> import daedal
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", daedal.errors.TraceWarning)  # stop there
    ...     sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0])
    """


def near_names(name: Any, known: Iterable[str]) -> str:
    """``did you mean 'a' or 'b'? `` for an unknown name; empty if no known name is similar."""
    lowered = {str(other).lower(): str(other) for other in known}
    close = difflib.get_close_matches(str(name).lower(), lowered, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(lowered[other]) for other in close)}? " if close else ""
