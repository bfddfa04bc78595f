"""A limit of time that reaches into a user's function, in the main thread of a process."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

from daedal.ensembles.member import MemberTimeout

_AGAIN = 0.05  # seconds to the next look, where something else than the user's function is running
_ENTRY = ("callbacks.py", "entry")  # the frame through which kernels call a user's function


class Alarm:
    """Raises :class:`MemberTimeout` in a user's function that runs longer than so many seconds.

    Only there: an exception in the midst of an import would leave half a module behind. Compiled loops look at the
    clock themselves. Outside the main thread, and where there are no signals, nothing happens.
    """

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._before: Any = None
        self._set = hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        if self._set:
            self._before = signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, self._seconds, _AGAIN)

    def __exit__(self, *exception: Any) -> None:
        if self._set:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self._before)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_name == _ENTRY[1] and frame.f_code.co_filename.endswith(_ENTRY[0]):
                raise MemberTimeout(f"the run took longer than member_timeout = {self._seconds:g} s")
            frame = frame.f_back
