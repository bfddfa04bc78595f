"""From user functions to machine code: symbols, traces, exact derivatives, elimination, LLVM."""

from daedal.symbolic.expression import Expression
from daedal.symbolic.graph import Graph
from daedal.symbolic.trace import Traced, scalar_argument, trace, vector_argument
from daedal.symbolic.untraceable import Untraceable

__all__ = ["Expression", "Graph", "Traced", "Untraceable", "scalar_argument", "trace", "vector_argument"]
