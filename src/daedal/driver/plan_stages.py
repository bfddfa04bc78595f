"""The interface of the stages of a run: each is a plan, made of the plan of the next one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from copy import copy
from threading import Lock
from typing import Any

from daedal.driver.request import Request


class Plan(ABC):
    """What the runs of a problem need and does not depend on their start, for one of the stages that lead to a result.

    Attributes
    ----------
    problem : object
        What is solved, as this stage sees it.
    """

    problem: Any
    traced: Any = None  # the problem with machine code, where functions were traced
    form: Any = None  # in which the problem is solved, if not as it stands
    as_stated: bool = True  # whether the equations are solved as they stand

    @property
    def inner(self) -> Any:
        """The plan of the method, for functions as runs evaluate them."""
        return self

    @abstractmethod
    def solve(self, request: Request) -> Any:
        """The solution of a request."""

    def is_current(self) -> bool:
        """Whether the functions of the problem read the same from outside as when the plan was made."""
        return True

    def with_problem(self, problem: Any) -> Plan | None:
        """The plan for the same problem with other parameters, which shares what is ready; None if it must be made."""
        return None

    def direct(self) -> Plan | None:
        """The plan that every run takes in the end, where nothing between depends on the start; else None."""
        return None

    def machine_system(self) -> Any:
        """The mechanism whose functions are all machine code, where a run would use them; else None."""
        return None

    def judged(self, request: Request) -> Plan | None:
        """The plan that the start asks for in place of this one, or None."""
        return None


class Wrapped(Plan):
    """A stage around the plan of another one, to which it leaves all that it does not do itself."""

    def __init__(self, plan: Any):
        self.plan = plan

    @property
    def problem(self) -> Any:
        """What is solved."""
        return self.plan.problem

    @property
    def traced(self) -> Any:
        """The problem with machine code."""
        return self.plan.traced

    @property
    def inner(self) -> Any:
        """The plan of the method."""
        return self.plan.inner

    def is_current(self) -> bool:
        """Whether the functions of the problem read the same from outside as when the plan was made."""
        return self.plan.is_current()

    def with_problem(self, problem: Any) -> Wrapped | None:
        """The stage around the plan for the same problem with other parameters."""
        plan = self.plan.with_problem(problem)
        if plan is None:
            return None
        other = copy(self)
        other.plan = plan
        return other

    def direct(self) -> Plan | None:
        """The plan that every run takes in the end."""
        return self.plan.direct()

    def machine_system(self) -> Any:
        """The mechanism whose functions are all machine code."""
        return self.plan.machine_system()


class Recent:
    """Values by key, from any thread; the least recently used leave where there are too many."""

    def __init__(self, most: int):
        self._most, self._guard = most, Lock()
        self._values: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any) -> Any:
        """The value of a key, or None."""
        with self._guard:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keep(self, key: Any, value: Any) -> list[Any]:
        """Keep a value for its next use; returns the keys that have left."""
        left = []
        with self._guard:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                left.append(self._values.popitem(last=False)[0])
        return left

    def drop(self, key: Any) -> None:
        """Keep the value of a key no longer."""
        with self._guard:
            self._values.pop(key, None)
