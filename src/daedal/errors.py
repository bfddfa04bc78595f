"""The exceptions of Daedal.

An exception raised inside a user's function is never wrapped: it reaches the caller unchanged, with its traceback.
Everything Daedal itself has to complain about derives from :class:`DaedalError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daedal.solution.solution import Solution


class DaedalError(Exception):
    """Base class of every error raised by Daedal."""


class InvalidProblemError(DaedalError, ValueError):
    """The problem or an argument is wrong: a shape, a NaN, an unknown name, an impossible combination."""


class UnknownNameError(InvalidProblemError, KeyError):
    """There is no variable, multiplier, parameter, ... of that name; the message lists near ones."""

    __str__ = Exception.__str__  # a KeyError would put its message in quotes


class InvalidFileError(DaedalError, ValueError):
    """A file that :func:`daedal.load` cannot read: damaged, of a newer version, or not written by Daedal."""


class StructurallySingularError(InvalidProblemError):
    """Some equations contain fewer unknowns than there are of them; the message names both.

    Attributes
    ----------
    equations : tuple of int
        The equations that are too many for the unknowns in them, numbered from 0.
    unknowns : tuple of int
        The unknowns for which there are not enough equations.
    """

    def __init__(self, message: str, equations=(), unknowns=()):
        super().__init__(message)
        self.equations, self.unknowns = tuple(map(int, equations)), tuple(map(int, unknowns))

    def __reduce__(self):
        return type(self), (*self.args, self.equations, self.unknowns)


class InconsistentInitialError(DaedalError):
    """The initial values violate the equations; the message names the equations and by how much.

    Attributes
    ----------
    equations : tuple of int
        The violated equations, worst first.
    residual : numpy.ndarray or None
        The residual at the given initial values.
    """

    def __init__(self, message: str, equations=(), residual=None):
        super().__init__(message)
        self.equations = tuple(int(i) for i in equations)
        self.residual = residual


class IntegrationError(DaedalError):
    """The integration could not be finished.

    Attributes
    ----------
    solution : daedal.Solution
        Everything computed up to the failure.
    """

    ending: int | None = None  # why the last method stopped, of daedal.kernels.endings

    def __init__(self, message: str, solution: Solution):
        super().__init__(message)
        self.solution = solution

    def __reduce__(self):
        return type(self), (*self.args, self.solution), self.__dict__


class Unevaluable(DaedalError):
    """Raise this in a residual that cannot be evaluated at the given point.

    The step is then repeated with a smaller step size, exactly as for a NaN or an infinity.

    Examples
    --------
    >>> import math
    >>> import daedal
    >>> def residual(t, y, yp):
    ...     if y[0] < 0.0:
    ...         raise daedal.Unevaluable("square root of a negative number")
    ...     return [yp[0] + math.sqrt(y[0])]
    """


def near_names(name: Any, known: Iterable[str]) -> str:
    """``did you mean 'a' or 'b'? `` for a name that is not among those known; empty if none is near."""
    lowered = {str(other).lower(): str(other) for other in known}
    close = difflib.get_close_matches(str(name).lower(), lowered, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(lowered[other]) for other in close)}? " if close else ""
