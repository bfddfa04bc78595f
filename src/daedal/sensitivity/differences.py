r"""Variational equations by differences, for functions that cannot be traced.

.. math::

    F_y s + F_{y'} s' + F_p \approx \frac{8 (D(\delta) - D(-\delta)) - (D(2 \delta) - D(-2 \delta))}{12 \delta},
    \qquad D(\delta) = F(t, y + \delta s, y' + \delta s', p + \delta)

with an increment that changes neither the parameter nor the variables by more than a small part of their sizes (Brenan,
Campbell, Petzold, section 7.5, have quotients of orders 1 and 2). Order 4 allows one of 1e-3, beside which the
round-off of F is 1e-13. Next to the border of what F is defined for, a shorter one of order 2 is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daedal.errors import Unevaluable
from daedal.problems import ImplicitDAE, SemiExplicitDAE
from daedal.sensitivity.parameters import Column, layout_of
from daedal.sensitivity.variational import Variational
from daedal.symbolic.dependencies import Dependencies

_STENCILS = (  # share of the sizes of variables and parameter, and weights of F at multiples of it
    (float(np.finfo(float).eps) ** 0.2, ((1.0, 2.0 / 3.0), (-1.0, -2.0 / 3.0), (2.0, -1.0 / 12.0), (-2.0, 1.0 / 12.0))),
    (float(np.finfo(float).eps) ** (1.0 / 3.0), ((1.0, 0.5), (-1.0, -0.5))),
)


class DifferencedResidual:
    """F beside its derivatives along the sensitivities, in Python."""

    def __init__(self, problem: ImplicitDAE | SemiExplicitDAE, columns: Sequence[Column]):
        self._implicit, self._columns, self._n = problem.implicit(), tuple(columns), problem.n
        self._params, self._layout = problem.params, layout_of(problem)
        layout = self._layout
        self._numbers = np.zeros(0) if layout is None else layout.numbers(problem.params)
        self._shifted: dict[tuple[int, float], Any] = {}

    def __call__(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        n, implicit = self._n, self._implicit
        result = [implicit.evaluate(t, y[:n], yp[:n])]
        for k, column in enumerate(self._columns, start=1):
            s, sp = y[k * n : (k + 1) * n], yp[k * n : (k + 1) * n]
            for share, stencil in _STENCILS:
                delta = share * self._size(column, y[:n], yp[:n], s, sp)
                delta = float(2.0 ** np.floor(np.log2(delta)))  # few different ones, so that parameters are seen again
                quotient = self._quotient(t, (y[:n], yp[:n], s, sp), column, delta, stencil)
                if np.isfinite(quotient).all():
                    break
            result.append(quotient)
        return np.concatenate(result)

    def _quotient(self, t: float, point, column: Column, delta: float, stencil) -> np.ndarray:
        y, yp, s, sp = point
        total = np.zeros(self._n)
        for multiple, weight in stencil:
            change = multiple * delta
            try:
                value = self._with(column, change).evaluate(t, y + change * s, yp + change * sp)
            except (ArithmeticError, ValueError, Unevaluable):
                return np.full(self._n, np.nan)
            total += weight / delta * value
        return total

    def _size(self, column: Column, y, yp, s, sp) -> float:
        """By how much the parameter may change until it, or a variable, has changed by its own size."""
        sizes = [] if column.position is None else [abs(self._numbers[column.position]) or 1.0]
        largest = max(float(np.max(np.abs(s), initial=0.0)), 1e-300)
        sizes.append((float(np.max(np.abs(y), initial=0.0)) or 1.0) / largest)
        slope = float(np.max(np.abs(yp), initial=0.0))
        if slope > 0.0:
            sizes.append(slope / max(float(np.max(np.abs(sp), initial=0.0)), 1e-300))
        return min(sizes)

    def _with(self, column: Column, change: float) -> Any:
        if column.position is None:
            return self._implicit
        key = column.position, change
        if key not in self._shifted:
            numbers = self._numbers.copy()
            numbers[column.position] += change
            assert self._layout is not None
            self._shifted[key] = self._implicit.with_params(self._layout.rebuilt(self._params, numbers.tolist()))
        return self._shifted[key]


def differenced_problem(problem: ImplicitDAE | SemiExplicitDAE, columns: Sequence[Column]) -> Variational:
    """The problem with variational equations by differences."""
    n, copies = problem.n, 1 + len(columns)
    implicit = problem.implicit()
    names = [problem.label(i) for i in range(n)]
    names += [f"d {name} / d {column.name}" for column in columns for name in names]
    algebraic = None if implicit.algebraic is None else np.tile(implicit.algebraic, copies)
    made = ImplicitDAE(DifferencedResidual(problem, columns), n * copies, names=names, algebraic=algebraic)
    return Variational(made, layout_of(problem), (), Dependencies())
