"""Assemblies of one system, lent to those who evaluate it: every user has its own, so that threads do not meet."""

from contextlib import contextmanager
from threading import RLock
from typing import Any

_KEPT = 4  # assemblies of each kind that wait for their next use


class Pool:
    """Lends assemblies, made by ``kind(system, setting=...)`` and adopted to system and setting of the borrower.

    The systems of the borrowers differ in their parameters at most.

    Nothing of an earlier use shows in a later one: what a run changes in an assembly, `adopt` sets anew.
    """

    def __init__(self, kind):
        self._kind = kind
        self._shelves: dict[Any, list] = {}

    def take(self, system, setting):
        """An assembly of the system with this setting, for the caller alone."""
        shelf = self._shelves.setdefault(setting.key, [])
        try:
            return shelf.pop().adopt(setting, system)
        except IndexError:  # none is free; another thread may have taken the last one
            return self._kind(system, setting=setting)

    def give_back(self, assembly):
        """Let others use it."""
        shelf = self._shelves.setdefault(assembly.setting.key, [])
        if len(shelf) < _KEPT:
            shelf.append(assembly)

    @contextmanager
    def lend(self, system, setting):
        """``with pool.lend(system, setting) as assembly``."""
        assembly = self.take(system, setting)
        try:
            yield assembly
        finally:
            self.give_back(assembly)

    def __getstate__(self) -> dict[str, Any]:
        return {"_kind": self._kind, "_shelves": {}}


class Lender:
    """Assemblies of one system with one setting, for a solution that evaluates it from any thread."""

    def __init__(self, pool: Pool, system, setting):
        self.pool, self.system, self.setting = pool, system, setting

    def lend(self):
        """``with lender.lend() as assembly``."""
        return self.pool.lend(self.system, self.setting)


class Keeper:
    """One assembly that several threads use in turn."""

    def __init__(self, assembly):
        self._assembly, self._lock = assembly, RLock()

    @contextmanager
    def lend(self):
        """``with keeper.lend() as assembly``."""
        with self._lock:
            yield self._assembly
