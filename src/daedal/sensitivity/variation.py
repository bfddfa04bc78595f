"""One plan for a problem with its variational equations, for all problem classes.

The class-specific part is a `Variation`: construction of the variational equations and their integration over an
interval without jumps. The plan combines it with the driver's facilities: a run of the problem alone if events or
switches may interrupt it, and the times of events as functions of the parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any

import numpy as np

from daedal.driver.plan_stages import Plan
from daedal.driver.request import Request
from daedal.sensitivity.differentiation import Differentiation
from daedal.sensitivity.jumps import timed_events
from daedal.symbolic.dependencies import Dependencies
from daedal.symbolic.tracing.parameters import ParameterLayout


class Variation(ABC):
    """The variational equations of a class of problems.

    Attributes
    ----------
    given : Differentiation
        The problem, its variables of differentiation, and the driver's plan for it.
    times_events : bool
        Whether derivatives of event times are computed.
    """

    given: Differentiation
    times_events = True

    @property
    def layout(self) -> ParameterLayout | None:
        """Layout of the parameters in the variational equations; None if the equations are valid for one set only."""
        return None

    @property
    def dependencies(self) -> Dependencies:
        """External values read by the functions."""
        return Dependencies()

    def is_current(self) -> bool:
        """Whether captured external values are unchanged since the functions were traced."""
        if self.layout is not None and not self.layout.fits(self.given.problem.params):
            return False
        return self.dependencies.are_unchanged()

    def with_given(self, given: Differentiation) -> Variation:
        """A copy for other parameters."""
        other = copy(self)
        other.given = given
        return other

    def at_start(self, request: Request) -> Variation:
        """The form of the equations required by the start of a run."""
        return self

    @abstractmethod
    def base(self, request: Request) -> Any:
        """The solution of the problem alone, if sensitivities are computed along it; None if they are computed
        together."""

    @abstractmethod
    def along(self, base: Any, request: Request) -> Any:
        """The given solution with its sensitivities."""

    def run(self, request: Request, starts: np.ndarray, tau: np.ndarray | None = None) -> Any:
        """The solution with its sensitivities, over an interval without jumps.

        `starts` are the sensitivities of the initial values. If `tau`, the derivatives of the initial time, is given,
        they are total derivatives of the state.
        """
        raise NotImplementedError

    def slope(self, t: float, y: np.ndarray, sign: float) -> np.ndarray:
        """y' of a state."""
        raise NotImplementedError


class SensitivityPlan(Plan):
    """A driver plan for a problem together with its variational equations."""

    def __init__(self, variation: Variation):
        self.variation = variation

    @property
    def problem(self) -> Any:
        """The problem, with variable parameters."""
        return self.variation.given.problem

    def is_current(self) -> bool:
        """Whether captured external values are unchanged since the functions were traced."""
        return self.variation.is_current() and self.variation.given.primal.is_current()

    def with_problem(self, problem: Any) -> SensitivityPlan | None:
        """The plan for the same problem with other parameters, or None if it must be rebuilt."""
        layout, given = self.variation.layout, self.variation.given.with_problem(problem)
        if given is None or layout is None or not layout.fits(given.problem.params):
            return None
        return SensitivityPlan(self.variation.with_given(given))

    def solve(self, request: Request) -> Any:
        """Integrate the problem with its sensitivities; first alone if they are computed along its solution."""
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
