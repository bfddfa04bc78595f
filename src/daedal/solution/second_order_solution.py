"""What came out of the integration of a second-order DAE."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.solution.solution import Solution


@dataclass(frozen=True)
class SecondOrderState:
    """x and its derivatives at given times; derivatives that do not occur in the equations are zero."""

    t: Any
    x: np.ndarray
    xp: np.ndarray
    xpp: np.ndarray


class SecondOrderSolution(Solution):
    """The solution of a :class:`SecondOrderDAE`.

    Attributes
    ----------
    x, xp, xpp : numpy.ndarray, shape (n, nt)
        The variables and their derivatives, as far as they occur in the equations; zero elsewhere.
    y : numpy.ndarray
        x, then x' of the variables of order 2, as the error test takes them; `yp` its derivative.
    order : numpy.ndarray, shape (n,)
        The order of the highest derivative of each variable that occurs in the equations.
    source : numpy.ndarray
        Row j of `y` is variable i with i = source[j] < n, or the derivative of variable source[j] - n.
    """

    def __init__(self, *, order: np.ndarray, source: np.ndarray, **fields):
        self.order, self.source = order, source
        super().__init__(**fields)

    def _split(self, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n, first = self.order.size, self.order == 1
        values, slopes = (np.zeros((2 * n, *y.shape[1:])) for _ in range(2))
        values[self.source], slopes[self.source] = y, yp
        x, xp, slope, xpp = values[:n], values[n:], slopes[:n], slopes[n:]
        xp[first] = slope[first]
        return x, xp, xpp

    def split(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x, x' and x'' at output point i."""
        return self._split(self.y[:, i], self.yp[:, i])

    @property
    def x(self) -> np.ndarray:
        """The variables, shape (n, nt)."""
        return self._split(self.y, self.yp)[0]

    @property
    def xp(self) -> np.ndarray:
        """First derivatives, shape (n, nt)."""
        return self._split(self.y, self.yp)[1]

    @property
    def xpp(self) -> np.ndarray:
        """Second derivatives, shape (n, nt)."""
        return self._split(self.y, self.yp)[2]

    @property
    def _n_stated(self) -> int:
        return self.order.size

    def at(self, t) -> SecondOrderState:
        """Dense output in terms of x, x' and x''."""
        return SecondOrderState(t, *self._split(self(t), self(t, derivative=True)))
