"""Time derivatives of F(t, x, x', x'') along a motion through given values, as machine code for consistent starts.

The motion is x + tau x' + tau^2 x'' / 2, with x' only for variables of order 1 and 2 and x'' only for those of order 2
(:mod:`daedal.initial.second_order_start`).
"""

from __future__ import annotations

from daedal.symbolic import Traced
from daedal.symbolic.derivative import directional
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.tracer import Tracer

NAME = "motion"


class MotionDerivatives:
    """The first two derivatives along the motion, created once the orders of the variables are known."""

    def __init__(self, tracer: Tracer, residual: Traced):
        self._tracer, self._residual = tracer, residual
        self._made: dict[tuple[int, ...], TracedFunction | None] = {}

    def function(self, order: tuple[int, ...]) -> TracedFunction | None:
        """(F', F'') of (t, x, x', x''); None if there are too many operations."""
        if order not in self._made:
            shared = (0, 1, 2)
            self._made[order] = self._tracer.derivative(
                NAME, self._residual, ("x", "xp", "xpp"), lambda: self._nodes(order), shared
            )
        return self._made[order]

    def _nodes(self, order: tuple[int, ...]) -> list[int]:
        tracer, graph = self._tracer, self._tracer.graph
        x, xp, xpp = (tracer.nodes(name) for name in ("x", "xp", "xpp"))
        along = {tracer.t.node: graph.one}
        for i, highest in enumerate(order):
            if highest > 0:
                along[x[i]] = xp[i]
            if highest == 2:
                along[xp[i]] = xpp[i]
        first = directional(graph, self._residual.nodes, along)
        return [*first, *directional(graph, first, along)]

    def __reduce__(self):
        """Machine code is not pickled."""
        return type(None), ()
