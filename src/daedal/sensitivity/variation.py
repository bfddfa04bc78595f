"""One plan for a problem with its variational equations, whatever the class of the problem.

What differs by class is a `Variation`: how the variational equations are made, and integrated over an interval in which
nothing jumps. The plan composes them with what the driver has: a run of the problem alone where events or switches may
interrupt it, and the times of events as functions of the parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any

import numpy as np

from daedal.driver.request import Request
from daedal.driver.stages import Plan
from daedal.sensitivity.differentiation import Differentiation
from daedal.sensitivity.jumps import timed_events
from daedal.symbolic.dependencies import Dependencies
from daedal.symbolic.tracing.parameters import ParameterLayout


class Variation(ABC):
    """The variational equations of a class of problems.

    Attributes
    ----------
    given : Differentiation
        The problem, what it is differentiated by, and the driver's plan for it.
    times_events : bool
        Whether events get the derivatives of their times.
    """

    given: Differentiation
    times_events = True

    @property
    def layout(self) -> ParameterLayout | None:
        """Of the parameters in the variational equations; with None these serve no other parameters."""
        return None

    @property
    def dependencies(self) -> Dependencies:
        """What the functions have read outside of their arguments."""
        return Dependencies()

    def is_current(self) -> bool:
        """Whether the functions read the same from outside as when they were traced."""
        if self.layout is not None and not self.layout.fits(self.given.problem.params):
            return False
        return self.dependencies.are_unchanged()

    def with_given(self, given: Differentiation) -> Variation:
        """The same equations for other parameters."""
        other = copy(self)
        other.given = given
        return other

    def at_start(self, request: Request) -> Variation:
        """The form of the equations that the start of a run asks for."""
        return self

    @abstractmethod
    def base(self, request: Request) -> Any:
        """The solution of the problem alone, where sensitivities are computed along it; None where beside it."""

    @abstractmethod
    def along(self, base: Any, request: Request) -> Any:
        """That solution with its sensitivities."""

    def run(self, request: Request, starts: np.ndarray, tau: np.ndarray | None = None) -> Any:
        """The solution with its sensitivities, over an interval in which nothing jumps.

        `starts` are the sensitivities of the initial values. With `tau`, the derivatives of the initial time, they
        are total derivatives of the state there.
        """
        raise NotImplementedError

    def slope(self, t: float, y: np.ndarray, sign: float) -> np.ndarray:
        """y' of a state."""
        raise NotImplementedError


class SensitivityPlan(Plan):
    """A plan of the driver with the variational equations of its problem beside it."""

    def __init__(self, variation: Variation):
        self.variation = variation

    @property
    def problem(self) -> Any:
        """What is solved, with parameters that can be varied."""
        return self.variation.given.problem

    def is_current(self) -> bool:
        """Whether the functions read the same from outside as when they were traced."""
        return self.variation.is_current() and self.variation.given.primal.is_current()

    def with_problem(self, problem: Any) -> SensitivityPlan | None:
        """The plan for the same problem with other parameters, or None if it must be made again."""
        layout, given = self.variation.layout, self.variation.given.with_problem(problem)
        if given is None or layout is None or not layout.fits(given.problem.params):
            return None
        return SensitivityPlan(self.variation.with_given(given))

    def solve(self, request: Request) -> Any:
        """Integrate the problem with its sensitivities; alone first where they follow its solution."""
        bare = request.changed(problem=self.problem, sensitivities=None)
        variation = self.variation.at_start(bare)
        base = variation.base(bare)
        if base is None:
            found = variation.run(bare, variation.given.starts)
        elif base.status == "interrupted":
            return base
        else:
            found = variation.along(base, bare)
        if variation.times_events and request.settings.events is not None and found.dense is not None:
            found.events = timed_events(variation.given, variation.slope, bare, found)
        return found
