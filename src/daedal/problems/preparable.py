"""Cache of prepared objects attached to a problem, with the lifetime of the problem."""

from __future__ import annotations

from typing import Any


class Preparable:
    """A problem with a cache of prepared objects; copies and pickles start with an empty cache.

    The cache is determined by the problem, which is immutable. The cache is in a slot, so neither `vars` nor
    comparisons include it.
    """

    __slots__ = ("__weakref__", "_prepared")

    _prepared: Any

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))


_slot = vars(Preparable)["_prepared"]


def prepared_of(problem: Preparable) -> dict[Any, Any]:
    """The prepared objects of a problem by key."""
    try:
        return problem._prepared
    except AttributeError:
        _slot.__set__(problem, {})  # set on a frozen problem
        return problem._prepared
