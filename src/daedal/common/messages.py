"""Errors for unknown names, and warnings that refer to the user's line."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from typing import Any

from daedal.errors import DaedalWarning, UnknownNameError, near_names

_MOST_NAMED = 20  # largest number of names in a message
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def unknown_name(name: Any, known: Iterable[Any], what: str = "variable", where: str = "") -> UnknownNameError:
    """The error for an unknown name, which lists the known ones; `where` is the argument that contains the name."""
    listed = list(dict.fromkeys(map(str, known)))
    shown = ", ".join(listed[:_MOST_NAMED]) + (", ..." if len(listed) > _MOST_NAMED else "")
    there = f"{near_names(name, listed)}known: {shown}" if shown else "there is none"
    return UnknownNameError(f"{where}{': ' if where else ''}there is no {what} {str(name)!r}; {there}")


def warn(message: str, category: type[DaedalWarning] = DaedalWarning) -> None:
    """Issue a warning that refers to the innermost line outside Daedal."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
