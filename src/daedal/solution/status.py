"""How a run ended: SciPy's number and a word."""

from __future__ import annotations

from typing import Any

STATUS_NUMBERS = {"finished": 0, "event": 1, "failed": -1, "interrupted": -2, "zeno": -3, "chattering": -4}


class Status(int):
    """How a run ended: a number as in SciPy that also compares and prints as a word.

    0 is ``"finished"`` and 1 ``"event"``, a terminal event. Negative numbers are premature ends: -1 ``"failed"``,
    -2 ``"interrupted"``, and for hybrid runs -3 ``"zeno"`` and -4 ``"chattering"``.

    Attributes
    ----------
    reason : str
        The word. Use `reason` as a key of dictionaries and in sets, since the status itself is hashed as its number.

    Examples
    --------
    >>> import daedal
    >>> sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0])
    >>> sol.status == 0, sol.status == "finished", sol.status.reason
    (True, True, 'finished')
    """

    reason: str

    def __new__(cls, given: str | int) -> Status:
        """A status from its word or its number."""
        reason = (
            given if isinstance(given, str) else {number: word for word, number in STATUS_NUMBERS.items()}[int(given)]
        )
        made = super().__new__(cls, STATUS_NUMBERS[reason])
        made.reason = reason
        return made

    def __eq__(self, other: object) -> bool:
        return self.reason == other if isinstance(other, str) else int(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__

    def __str__(self) -> str:
        return self.reason

    def __repr__(self) -> str:
        return f"<Status {int(self)}: {self.reason}>"

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec[-1:] in {"d", "n", "x"} else format(self.reason, spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return Status, (self.reason,)
