"""Switches in problems that are reduced: they are not followed, and the user is told of those that may be met."""

from __future__ import annotations

import numpy as np

from daedal.structure.equations import Equations, argument_name
from daedal.symbolic.derivative import directional
from daedal.symbolic.modes import Followed, Modes
from daedal.tabular import listing
from daedal.tracing.parameters import NAME

_MOST_NAMED = 3
_ROUND_OFF = 1e-12  # part of the change of a switching function within an interval


class UnfollowedSwitches:
    """The switches in the equations of a problem that is reduced.

    Parameters
    ----------
    equations : Equations
    """

    def __init__(self, equations: Equations):
        graph = equations.graph
        with equations.lock:
            modes = Modes(graph, ("t", *map(argument_name, range(equations.order + 1))), (NAME,))
            modes.nodes(equations.nodes)
            self._switches = modes.switches
            self._in_time = []
            for switch in self._switches:
                [rate] = directional(graph, [switch.function], {equations.t: graph.one})
                linear = modes.depends_on(rate) <= {NAME}
                self._in_time.append(linear and modes.depends_on(switch.function) <= {"t", NAME})

    def warning(self, equations: Equations, span: tuple[float, float]) -> str | None:
        """What to tell about switches that a run may meet, with the parameters of `equations`; None if it meets none.

        Conditions linear in time alone are not met where their times lie outside the interval, or at its ends, as
        between break points.
        """
        met = [
            switch.name
            for switch, in_time in zip(self._switches, self._in_time)
            if not in_time or _switches_within(switch, equations, span)
        ]
        if not met:
            return None
        named = listing(met[:_MOST_NAMED], len(met))
        return (
            f"switches are not followed, since the index of the problem is reduced: {named}. A run may step over them, "
            "and kinks or jumps of what is differentiated are lost. Remedy: give their times as breakpoints, or take "
            "formulation='none'; switches='never' says that they may be left to the step size control"
        )


def _switches_within(switch: Followed, equations: Equations, span: tuple[float, float]) -> bool:
    """Whether a function that is linear in time leaves the bounds of its mode within the interval."""
    begin, middle, end = (
        float(equations.values([switch.function], t, np.zeros((0, equations.n)))[0])
        for t in (span[0], 0.5 * (span[0] + span[1]), span[1])
    )
    lower, upper = switch.bounds(switch.mode_at(middle))
    slack = _ROUND_OFF * max(abs(begin), abs(end))
    return not lower - slack <= min(begin, end) <= max(begin, end) <= upper + slack
