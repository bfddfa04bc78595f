"""Interface of the stages of a solution, each of which is a plan that wraps the plan of the next stage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from copy import copy
from threading import Lock
from typing import Any

from daedal.driver.request import Request


class Plan(ABC):
    """Data that runs of a problem share because they do not depend on the start, for one stage.

    Attributes
    ----------
    problem : object
        The problem that this stage solves.
    """

    problem: Any
    traced: Any = None  # the problem with machine code, or None
    form: Any = None  # the :class:`~daedal.driver.traced.Form` in which the problem is solved, or None
    as_stated: bool = True  # whether the equations are solved as given

    @property
    def inner(self) -> Any:
        """The innermost plan, which chooses the method and runs it."""
        return self

    @abstractmethod
    def solve(self, request: Request) -> Any:
        """The solution of a request."""

    def is_current(self) -> bool:
        """Whether the data captured by the problem's functions are unchanged since the plan was made."""
        return True

    def with_problem(self, problem: Any) -> Plan | None:
        """The plan for the same problem with other parameters, which shares prepared data; None if impossible."""
        return None

    def direct(self, irregular: bool = False) -> Plan | None:
        """The innermost plan if no stage depends on the start, otherwise None.

        With `irregular`, also if derivatives may be infinite; the caller checks them at each start.
        """
        return None

    def machine_system(self) -> Any:
        """The fully compiled mechanism if runs use it, otherwise None."""
        return None

    def judged(self, request: Request) -> Plan | None:
        """The plan for this start if it differs from this plan, otherwise None."""
        return None


class Wrapped(Plan):
    """A stage that wraps another plan and, by default, delegates to it."""

    def __init__(self, plan: Any):
        self.plan = plan

    @property
    def problem(self) -> Any:
        return self.plan.problem

    @property
    def traced(self) -> Any:
        return self.plan.traced

    @property
    def inner(self) -> Any:
        return self.plan.inner

    def is_current(self) -> bool:
        """Whether the data captured by the problem's functions are unchanged since the plan was made."""
        return self.plan.is_current()

    def with_problem(self, problem: Any) -> Wrapped | None:
        plan = self.plan.with_problem(problem)
        if plan is None:
            return None
        other = copy(self)
        other.plan = plan
        return other

    def direct(self, irregular: bool = False) -> Plan | None:
        return self.plan.direct(irregular)

    def machine_system(self) -> Any:
        return self.plan.machine_system()


class Recent:
    """Thread-safe cache that evicts the least recently used values."""

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
        """Store a value; returns the evicted keys."""
        left = []
        with self._guard:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                left.append(self._values.popitem(last=False)[0])
        return left

    def drop(self, key: Any) -> None:
        """Remove a key."""
        with self._guard:
            self._values.pop(key, None)
