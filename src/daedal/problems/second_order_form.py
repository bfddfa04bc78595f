"""A second-order problem with the vector that methods store, interpolate and test."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.problems.second_order_problem import SecondOrderDAE


@dataclass(frozen=True, eq=False)
class SecondOrderForm:
    """A second-order problem with the vector y that is stored, interpolated and tested.

    Attributes
    ----------
    problem : SecondOrderDAE
        With known variable orders; the residual may be a NativeFunction with the block [x | x' | x'' | F].
    source : numpy.ndarray
        Component j of y is x_i with i = source_j < n, or x'_i with n + i = source_j.
    names : tuple of str
        Names of the components of y.
    start_order : int
        2 if second derivatives are known at the start and no variable has order 1; else 1.
    params : None
        None, since the problem's functions contain their parameters.
    """

    problem: SecondOrderDAE
    source: np.ndarray
    names: tuple[str, ...]
    start_order: int = 1
    params: Any = None

    @property
    def n(self) -> int:
        """The length of y."""
        return self.source.size

    @property
    def residual(self):
        """Residual F of the problem; if native, also with its hook."""
        return self.problem.residual

    def label(self, i: int) -> str:
        """The name of component i of y."""
        return self.names[i]

    def split(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x and x' (zero where not contained in y) from y, along its first axis."""
        n = self.problem.n
        both = np.zeros((2 * n, *y.shape[1:]))
        both[self.source] = y
        return both[:n], both[n:]


def natural_form(problem: SecondOrderDAE) -> SecondOrderForm:
    """The problem with y = (x, x' of the variables of order 2)."""
    assert problem.order is not None
    velocities = np.flatnonzero(problem.order == 2)
    names = tuple([problem.label(i) for i in range(problem.n)] + problem.velocity_names(velocities))
    return SecondOrderForm(problem, np.concatenate([np.arange(problem.n), problem.n + velocities]), names)
