r"""The adjoint equations, integrated backwards over the steps of a solution.

.. math::

    (E^T \mu)' = A^T \mu + g_y, \qquad E^T \mu (T) = -(h_y + A^T \nu), \quad \nu^T E = 0,

for the cost :math:`\int g\, dt + h(y(T))`; :math:`\nu` belongs to algebraic variables in h. Then

.. math::

    \frac{dJ}{dp} = h_p + \nu^T B(T) + \int (g_p + \mu^T B)\, dt - (E^T \mu)^T s \,\big|_{t_0}

(Y. Cao, S. Li, L. Petzold, R. Serban, Adjoint sensitivity analysis for differential-algebraic equations, SIAM J. Sci.
Comput. 24, 2003). Steps are those of the solution, of Radau IIA with three stages (:mod:`daedal.adjoint.stages`), which
is stable however stiff the problem is; the last one is divided towards the end, where adjoint variables may begin with
a layer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daedal.adjoint.equations import Linearised
from daedal.adjoint.jumps import with_kinks
from daedal.adjoint.stages import NODES, TABLEAU, WEIGHTS, steps_for
from daedal.adjoint.terminal import terminal_values
from daedal.errors import IntegrationError

_LAYERS = 24  # how often the last step is halved towards the end at most
_RESOLVED = 0.1  # step times the fastest rate below which there is nothing left to resolve
_FINER = 7.0  # how much smaller the error of steps of half the length is: 2^3 - 1, of a stiff problem
_TOGETHER = 32  # steps that are halved together
_MOST_HALVINGS = 6
_PORTION = 4e6  # numbers in the matrices of the steps that are treated together


def graded(times: np.ndarray, fastest: float) -> np.ndarray:
    """The ends of steps, the last one divided towards the end of the run, until no rate is faster."""
    times = np.unique(times)
    last = times[-1] - times[-2]
    halvings = np.clip(np.ceil(np.log2(max(last * fastest, 1.0) / _RESOLVED)), 1.0, _LAYERS)
    return np.concatenate([times[:-1], times[-1] - last * 0.5 ** np.arange(1.0, halvings + 1.0), times[-1:]])


class Part(NamedTuple):
    """What some steps give: E^T mu where they begin, and their parts of the cost and of its gradient."""

    w: np.ndarray
    value: float
    gradient: np.ndarray


class Sweep:
    """Backward integration; what it has found so far."""

    def __init__(self, equations: Linearised, params: Any, rtol: float):
        self._equations, self._numbers, self._rtol = equations, equations.numbers(params), rtol
        self._steps = steps_for(equations, rtol)
        self.value = 0.0
        self.gradient = np.zeros(len(equations.labels))
        self.w = np.zeros(equations.n)
        self.fastest = np.inf  # a bound of the rates at the end
        self.is_bound = False  # whether constraints bind the initial values of differential variables

    def begin(self, solution: Any, t: float) -> None:
        """The end of the run: terminal values that are consistent with the final cost."""
        equations, numbers = self._equations, self._numbers
        point = np.concatenate(equations.points(solution, np.array([t])), axis=1)[0]
        values = equations.evaluated(np.array([t]), point[None], numbers)[0]
        h_y, h_p, h = equations.final(t, point, numbers)
        e, a = equations.transposed(values)
        self.w, nu, self.is_bound = terminal_values(e, a, h_y, equations.slopes(values), constant=equations.is_constant)
        self.fastest = _fastest(e, a)
        self.value += h
        self.gradient += h_p
        if nu is not None:
            self.gradient += equations.jump(t, np.concatenate([point, nu]), numbers)

    def over(self, solution: Any, times: np.ndarray) -> None:
        """Back over the steps between `times`, which increase; in portions, the last one first.

        Every portion is computed with every second step left out, with all of them, and with steps that are halved
        until its result no longer changes.
        """
        times = with_kinks(self._equations, solution, times, self._numbers)
        portion = min(_TOGETHER, max(1, int(_PORTION / self._equations.n**1.5)))
        for end in range(times.size - 1, 0, -portion):
            grid = times[max(end - portion, 0) : end + 1]
            coarse = self._portion(solution, np.unique(np.append(grid[::-2], grid[0])))
            for halving in range(_MOST_HALVINGS):
                if halving or grid.size == 2:
                    grid = np.sort(np.concatenate([grid, 0.5 * (grid[1:] + grid[:-1])]))
                fine = self._portion(solution, grid)
                settled = self._is_settled(coarse, fine)
                coarse = fine
                if settled:
                    break
            self.w = coarse.w
            self.value += coarse.value
            self.gradient += coarse.gradient
        if not (np.isfinite(self.w).all() and np.isfinite(self.gradient).all()):
            raise IntegrationError("gradient: the equations or a cost cannot be evaluated along the solution", solution)

    def _is_settled(self, coarse: Part, fine: Part) -> bool:
        """Whether the last halving has changed nothing that counts: the finer steps are nearer by a factor."""
        near = 10.0 * _FINER * self._rtol
        gradient = np.abs(self.gradient) + np.abs(fine.gradient)
        return (
            np.abs(fine.w - coarse.w).max(initial=0.0) <= near * np.abs(fine.w).max(initial=0.0)
            and abs(fine.value - coarse.value) <= near * (abs(self.value) + abs(fine.value))
            and bool(np.all(np.abs(fine.gradient - coarse.gradient) <= near * gradient))
        )

    def _portion(self, solution: Any, times: np.ndarray) -> Part:
        equations, numbers = self._equations, self._numbers
        sizes = np.diff(times)
        places = times[1:, None] - sizes[:, None] * NODES
        places[:, -1] = times[:-1]
        flat = places.ravel()
        points = np.concatenate(equations.points(solution, flat), axis=1)
        values = equations.evaluated(flat, points, numbers)
        slopes = equations.slopes(values).reshape(sizes.size, 3, -1)
        known = sizes[:, None, None] * np.einsum("ij,kjn->kin", TABLEAU, slopes)
        w, mu = self._steps.back(values, sizes, known, self.w)
        weights = np.multiply.outer(sizes, WEIGHTS).ravel()
        points = np.concatenate([points, mu.reshape(flat.size, -1)], axis=1)
        return Part(w, float(weights @ values[:, -1]), equations.by_parameters(flat, weights, points, numbers))


def _fastest(e: Any, a: Any) -> float:
    """A bound of the rates of E^T mu' = A^T mu; infinite where some variables have no derivatives."""
    sizes, rates = (np.asarray(abs(matrix).sum(axis=1)).ravel() for matrix in (e, a))
    if np.any(sizes != np.abs(e.diagonal())) or np.any(sizes == 0.0):
        return float(np.inf)
    return float(np.max(rates / sizes))
