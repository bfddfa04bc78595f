"""What is said of a function that cannot be run on symbols: why, where, and what to do about it."""

import sys
from contextvars import ContextVar
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

from daedal.errors import DaedalError

_TRACE = str(Path(__file__).parent / "trace.py")
_PACKAGE = str(Path(__file__).parents[1])
_LIBRARY = str(Path(__file__).parents[1] / "library")
_OTHERS = (str(Path(__file__).parent), str(Path(np.__file__).parent), "<frozen ")

refusals: ContextVar[list] = ContextVar("refusals")
"""All refusals of the trace that is under way: the function may have caught one and gone on."""


class Untraceable(DaedalError, TypeError):
    """A function cannot be run on symbols.

    Attributes
    ----------
    reason : str
        What the function does, such as "branches on a value".
    site : str
        File and line of the user's code, empty where there is none.
    remedy : str
        What would make it traceable, empty where nothing is known.
    """

    def __init__(self, reason: str, site: str | None = None, remedy: str = ""):
        self.reason, self.remedy = reason, remedy
        self.site = user_site() if site is None else site
        place = f", {self.site}" if self.site else ""
        super().__init__(f"{reason}{place}{f'. Remedy: {remedy}' if remedy else ''}")
        refusals.get([]).append(self)

    def forgetting(self) -> "Untraceable":
        """Without the frames in which it was raised, which would keep the graph alive."""
        self.__cause__ = self.__context__ = None
        return self.with_traceback(None)


def user_site() -> str:
    """'file, line n' of the innermost frame that belongs neither to this room nor to NumPy."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_of_user(frame.f_code):
        frame = frame.f_back
    return "" if frame is None else place(frame.f_code.co_filename, frame.f_lineno)


def kink_site() -> str:
    """The same for something that switches; empty where it was not written by the user but by this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file == _TRACE and frame.f_code.co_name == "_run":
            return ""
        if is_of_user(frame.f_code) and (not file.startswith(_PACKAGE) or file.startswith(_LIBRARY)):
            return place(file, frame.f_lineno)
        frame = frame.f_back
    return ""


def is_of_user(code: CodeType) -> bool:
    """Whether code belongs neither to this room nor to NumPy."""
    return not code.co_filename.startswith(_OTHERS)


def place(file: str, line: int) -> str:
    """How a line of code is named in messages."""
    return f"{Path(file).name} line {line}"
