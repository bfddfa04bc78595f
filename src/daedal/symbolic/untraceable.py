"""Reasons why a function cannot be run on symbols: cause, location and remedy."""

import dis
import sys
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

from daedal.errors import DaedalError

_TRACE = str(Path(__file__).parent / "trace.py")
_PACKAGE = str(Path(__file__).parents[1])
_LIBRARY = str(Path(__file__).parents[1] / "library")
_OTHERS = (str(Path(__file__).parent), str(Path(np.__file__).parent), "<frozen ")

refusals: ContextVar[list] = ContextVar("refusals")
"""All refusals of the current trace, since the function may have caught one and continued."""

texts: ContextVar[list] = ContextVar("texts")
"""Values that the current trace has converted to text, for the message of an exception or for other use."""


class Untraceable(DaedalError, TypeError):
    """A function cannot be run on symbols.

    Attributes
    ----------
    reason : str
        What the function does, such as "branches on a value".
    site : str
        File and line of the user code, or empty.
    remedy : str
        How to make the function traceable, or empty.
    memory : str
        External state that the function changes, or random numbers that it draws, so that the next call gives another
        result.
    jumps : bool
        Whether its results probably jump, since it rounds values or uses them in choices.
    too_long : bool
        Whether it only has too many operations.
    """

    def __init__(
        self,
        reason: str,
        site: str | None = None,
        remedy: str = "",
        memory: str = "",
        jumps: bool = False,
        too_long: bool = False,
    ):
        self.reason, self.remedy, self.memory, self.jumps, self.too_long = reason, remedy, memory, jumps, too_long
        self.site = user_site() if site is None else site
        place = f", {self.site}" if self.site else ""
        super().__init__(f"{reason}{place}{f'. Remedy: {remedy}' if remedy else ''}")
        refusals.get([]).append(self)

    def forgetting(self) -> "Untraceable":
        """Remove the frames in which it was raised, since they would keep the graph alive."""
        self.__cause__ = self.__context__ = None
        return self.with_traceback(None)


def user_site() -> str:
    """'file, line n' of the innermost frame outside this package and NumPy."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_of_user(frame.f_code):
        frame = frame.f_back
    return "" if frame is None else place(frame.f_code.co_filename, frame.f_lineno)


def asked_by_user() -> bool:
    """Whether the caller's caller is outside this package and NumPy."""
    return is_of_user(sys._getframe(2).f_code)


def kink_site() -> str:
    """The location of a switch; empty if it is in code of this package."""
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
    """Whether code belongs neither to this package nor to NumPy."""
    return not code.co_filename.startswith(_OTHERS)


def place(file: str, line: int) -> str:
    """Name of a line of code in messages."""
    return f"{Path(file).name} line {line}"


def note_text(origin: str):
    """Record that a value was converted to text, and where."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_of_user(frame.f_code):
        frame = frame.f_back
    is_shown = frame is not None and "print" in frame.f_code.co_names
    texts.get([]).append((f"converts {origin} to text", user_site(), "use np.where", "", not is_shown))


def refuse_caught():
    """Raise if a calculation is inside a user's `try`, since a trace raises no floating-point exceptions."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not (frame.f_code.co_filename == _TRACE and frame.f_code.co_name == "_run"):
        code = frame.f_code
        if is_of_user(code) and any(frame.f_lasti in part for part in _guarded(code)):
            reason = "catches exceptions of a calculation with values"
            raise Untraceable(reason, place(code.co_filename, frame.f_lineno), "use np.where, or a condition")
        frame = frame.f_back


@lru_cache(maxsize=1024)
def _guarded(code: CodeType) -> tuple[range, ...]:
    """Offsets of instructions within a `try` that may continue after an exception."""
    if not code.co_exceptiontable:
        return ()
    names = {instruction.offset: instruction.opname for instruction in dis.get_instructions(code)}
    guarded = []
    for entry in dis._parse_exception_table(code):  # type: ignore[attr-defined]
        behind = [names.get(entry.target + 2 * k) for k in range(2)]
        if behind[0] == "PUSH_EXC_INFO" and behind[1] != "WITH_EXCEPT_START":
            guarded.append(range(entry.start, entry.end))
    return tuple(guarded)


_IS = dis.opmap["IS_OP"]
_FROM_OUTSIDE = ("LOAD_ATTR", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "BINARY_SUBSCR", "LOAD_SUPER_ATTR")


@lru_cache(maxsize=1024)
def truth_by_identity(code: CodeType) -> str:
    """Location at which code tests by ``is`` or ``case`` whether a computed value is True or False; empty if none.

    Symbols cannot take part in such a comparison. Attributes and entries are assumed to be settings, not symbols.
    """
    if _IS not in code.co_code[::2]:
        return ""
    before = ["", ""]
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        position = instruction.positions
        line = (position.lineno if position is not None else None) or line
        if instruction.opname == "IS_OP" and before[1] == "truth" and before[0] not in _FROM_OUTSIDE:
            return place(code.co_filename, line)
        is_truth = instruction.opname == "LOAD_CONST" and isinstance(instruction.argval, bool)
        before = [before[1], "truth" if is_truth else instruction.opname]
    return ""
