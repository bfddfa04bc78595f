"""Interface of the stages of a solution: each is a plan that wraps the plan of the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from copy import copy
from threading import Lock
from typing import Any

from daedal.driver.request import Request


class Plan(ABC):
    """Everything that the runs of a problem need and that does not depend on their start, for one stage.

    Attributes
    ----------
    problem : object
        The problem as seen by this stage.
    """

    problem: Any
    traced: Any = None  # the problem with machine code, if its functions were traced
    form: Any = None  # the form in which the problem is solved, unless it is solved as given
    as_stated: bool = True  # whether the equations are solved as given

    @property
    def inner(self) -> Any:
        """The plan of the method, for the functions used by runs."""
        return self

    @abstractmethod
    def solve(self, request: Request) -> Any:
        """The solution of a request."""

    def is_current(self) -> bool:
        """Whether captured data of the problem's functions are unchanged since the plan was made."""
        return True

    def with_problem(self, problem: Any) -> Plan | None:
        """The plan for the same problem with other parameters, which shares prepared data; None if it must be
        rebuilt."""
        return None

    def direct(self, irregular: bool = False) -> Plan | None:
        """The innermost plan if no stage depends on the start; else None.

        If `irregular`, derivatives may be infinite; the caller checks them at each start.
        """
        return None

    def machine_system(self) -> Any:
        """The fully compiled mechanism, if runs would use it; otherwise None."""
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
        """The problem."""
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
        """Whether captured data of the problem's functions are unchanged since the plan was made."""
        return self.plan.is_current()

    def with_problem(self, problem: Any) -> Wrapped | None:
        """The same stage, wrapping the plan for the problem with other parameters."""
        plan = self.plan.with_problem(problem)
        if plan is None:
            return None
        other = copy(self)
        other.plan = plan
        return other

    def direct(self, irregular: bool = False) -> Plan | None:
        """The innermost plan of every run."""
        return self.plan.direct(irregular)

    def machine_system(self) -> Any:
        """The fully compiled mechanism."""
        return self.plan.machine_system()


class Recent:
    """Thread-safe cache; the least recently used values are evicted."""

    def __init__(self, most: int):
        self._most, self._guard = most, Lock()
        self._values: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any) -> Any:
        """The value of a key; None if missing."""
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
