"""Pools of assemblies of one system. Every thread borrows a separate assembly, which makes evaluation thread-safe."""

from contextlib import contextmanager
from threading import RLock
from typing import Any

_KEPT = 4  # number of idle assemblies of each kind in the pool


class Pool:
    """A pool of assemblies of systems that differ only in their parameters, created by ``kind(system, setting=...)``.

    No state of an earlier use survives: `adopt` resets everything that a run changes in an assembly.
    """

    def __init__(self, kind):
        self._kind = kind
        self._shelves: dict[Any, list] = {}

    def take(self, system, setting):
        """An assembly of the system with this setting, for exclusive use."""
        shelf = self._shelves.setdefault(setting.key, [])
        try:
            return shelf.pop().adopt(setting, system)
        except IndexError:  # none is free: another thread may have taken the last one
            return self._kind(system, setting=setting)

    def give_back(self, assembly):
        """Return an assembly to the pool."""
        shelf = self._shelves.setdefault(assembly.setting.key, [])
        if len(shelf) < _KEPT:
            shelf.append(assembly)

    @contextmanager
    def lend(self, system, setting):
        """Context manager that borrows an assembly from the pool."""
        assembly = self.take(system, setting)
        try:
            yield assembly
        finally:
            self.give_back(assembly)

    def __getstate__(self) -> dict[str, Any]:
        return {"_kind": self._kind, "_shelves": {}}


class WorkspacePool:
    """Assemblies of one system with one setting, for solutions that evaluate it from any thread."""

    def __init__(self, pool: Pool, system, setting):
        self.pool, self.system, self.setting = pool, system, setting

    def lend(self):
        """Context manager that borrows an assembly."""
        return self.pool.lend(self.system, self.setting)


class LockedWorkspace:
    """One assembly shared by several threads under a lock."""

    def __init__(self, assembly):
        self._assembly, self._lock = assembly, RLock()

    @contextmanager
    def lend(self):
        """Context manager that locks the assembly."""
        with self._lock:
            yield self._assembly
