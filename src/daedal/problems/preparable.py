"""What was made ready for a problem, kept with it: it is found by the problem, and goes when the problem goes."""

from __future__ import annotations

from typing import Any


class Preparable:
    """A problem that keeps what others made ready for it; copies and pickles begin without.

    What is kept follows from the problem, which does not change. It is no attribute of the problem: neither `vars` nor
    comparisons of problems show it.
    """

    __slots__ = ("__weakref__", "_prepared")

    _prepared: Any

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))


_slot = vars(Preparable)["_prepared"]


def prepared_of(problem: Preparable) -> dict[Any, Any]:
    """What was made ready for a problem, by keys of those who keep it."""
    try:
        return problem._prepared
    except AttributeError:
        _slot.__set__(problem, {})  # problems are frozen
        return problem._prepared
