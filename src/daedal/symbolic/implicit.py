"""An implicit problem F(t, y, y') = 0 on the graph: its residual, and dF/dy + cj dF/dy' with its true sparsity."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from daedal.symbolic.derivative import Row, jacobian
from daedal.symbolic.graph import Graph
from daedal.symbolic.machine import RAISES, MachineFunction, compile_function, may_raise
from daedal.symbolic.trace import parameter_argument, scalar_argument, trace, vector_argument


class Implicit:
    """The residual of an implicit problem, traced.

    Parameters
    ----------
    residual : callable
        ``residual(t, y, yp[, p])``.
    n : int
        Number of unknowns.
    params : object, optional
        The last argument; a vector of floats becomes symbols, anything else is known.

    Raises
    ------
    Untraceable
        If it cannot be traced.

    Examples
    --------
    >>> from daedal.symbolic.implicit import Implicit
    >>> problem = Implicit(lambda t, y, yp: [yp[0] - y[1], y[0] ** 2 + y[1] - t], 2)
    >>> columns, rows = problem.pattern
    >>> columns.tolist(), rows.tolist()
    ([0, 2, 4], [0, 1, 0, 1])
    """

    def __init__(self, residual: Callable[..., Any], n: int, params: Any = None):
        self.graph, self.n = Graph(), n
        graph = self.graph
        t, y, yp = scalar_argument(graph, "t"), vector_argument(graph, "y", n), vector_argument(graph, "yp", n)
        last: tuple[Any, ...] = () if params is None else (parameter_argument(graph, "p", params),)
        self.parameters = {"p": len(last[0])} if graph.known else {}
        self.traced = trace(residual, (t, y, yp, *last), (n,))
        self.y, self.yp = ([graph.argument(name, k) for k in range(n)] for name in ("y", "yp"))
        self.cj = graph.argument("cj", 0)

    @cached_property
    def matrix(self) -> list[Row]:
        """The rows of dF/dy + cj dF/dy'."""
        graph = self.graph
        rows = jacobian(graph, self.traced.nodes, self.y)
        for row, by_rate in zip(rows, jacobian(graph, self.traced.nodes, self.yp)):
            for k, x in by_rate.items():
                scaled = graph.multiply(self.cj, x)
                row[k] = graph.add(row[k], scaled) if k in row else scaled
        return rows

    @cached_property
    def _columns(self) -> list[dict[int, int]]:
        columns: list[dict[int, int]] = [{} for _ in range(self.n)]
        for i, row in enumerate(self.matrix):
            for k, x in row.items():
                columns[k][i] = x
        return columns

    @property
    def pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the matrix has entries, by columns: where each column begins, and the rows (CSC)."""
        counts = [len(column) for column in self._columns]
        return np.concatenate([[0], np.cumsum(counts)]), np.array([i for column in self._columns for i in column], int)

    @property
    def bandwidth(self) -> tuple[int, int]:
        """How many diagonals below and above the main one have entries."""
        offsets = [i - k for i, row in enumerate(self.matrix) for k in row] or [0]
        return max(0, *offsets), max(0, *(-offset for offset in offsets))

    def residual(self) -> MachineFunction:
        """``status = f(t, [y | y' | F | p])``."""
        return self._compiled({"y": self.n, "yp": self.n}, {"residual": self.traced.nodes})

    def jacobian(self, sparse: bool = False) -> MachineFunction:
        """``status = f(t, [y | y' | cj | matrix | p])``, all entries by columns, or those of the pattern."""
        if sparse:
            nodes: Any = [x for column in self._columns for x in column.values()]
        else:
            nodes = [[row.get(k, self.graph.zero) for k in range(self.n)] for row in self.matrix]
        return self._compiled({"y": self.n, "yp": self.n, "cj": 1}, {"jacobian": nodes})

    def _compiled(self, arguments: dict[str, int], results: dict[str, Any]) -> MachineFunction:
        nodes = [i for values in results.values() for i in np.ravel(values).tolist()]
        status = (may_raise(self.graph, nodes, self.traced.raises), RAISES)
        return compile_function(self.graph, arguments, results, self.parameters, [status])
