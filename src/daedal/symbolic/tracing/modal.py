"""Functions whose switches are set by data: parameters with modes, and machine code that reads both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.errors import Unevaluable
from daedal.problems.compile import ParametersOfRun, last_argument
from daedal.symbolic import Graph, vector_argument
from daedal.symbolic.machine import MachineFunction
from daedal.symbolic.modes import NAME as MODES
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.parameters import NAME, ParameterLayout


class SwitchedParams(ParametersOfRun):
    """Parameters of one run: the user's, and the modes of the switches, which change between arcs.

    Attributes
    ----------
    given : object
        The user's parameters, or None.
    modes : numpy.ndarray
        One number per switch; NaN if functions are as written. The last number is the rate at which a motion along a
        surface is pulled back to it.
    lower, upper : numpy.ndarray
        Bounds of each switching function in its mode.
    slack : numpy.ndarray
        Tolerance by which these may be exceeded before the mode ends.
    """

    def __init__(self, given: Any, count: int):
        self.given = given
        self.modes = np.full(count, np.nan)
        self.lower, self.upper, self.slack = np.full(count, -np.inf), np.full(count, np.inf), np.zeros(count)

    def fresh(self, given: Any) -> SwitchedParams:
        """A fresh copy for another run."""
        return SwitchedParams(given, self.modes.size)


class ModalLayout:
    """Consecutive places of numbers and modes in the block of machine code."""

    def __init__(self, inner: ParameterLayout | None, count: int):
        self.inner, self.count = inner, count

    @property
    def sizes(self) -> dict[str, int]:
        """Names and lengths, in order."""
        return ({} if self.inner is None else {NAME: self.inner.count}) | {MODES: self.count}

    def numbers(self, params: SwitchedParams) -> np.ndarray:
        """Numbers of the parameters, followed by the modes."""
        if self.inner is None:
            return params.modes
        return np.concatenate([self.inner.numbers(params.given), params.modes])


class ModalVector:
    """Numbers and modes as one parameter vector, with the interface of :class:`ParameterLayout`."""

    def __init__(self, layout: ModalLayout):
        self._layout, self._n_numbers = layout, 0 if layout.inner is None else layout.inner.count
        self.count = self._n_numbers + layout.count
        self.fixed: dict[int, float] = {}

    def fits(self, params: Any) -> bool:
        """Whether these are parameters with modes."""
        return isinstance(params, SwitchedParams) and params.modes.size == self._layout.count

    def numbers(self, params: SwitchedParams) -> np.ndarray:
        """Numbers of the parameters, followed by the current modes."""
        return np.array(self._layout.numbers(params))

    def labels(self, params: SwitchedParams) -> list[str]:
        """Names of the numbers and modes."""
        given = [] if self._layout.inner is None else self._layout.inner.labels(params.given)
        return [*given, *(f"{MODES}[{k}]" for k in range(self._layout.count))]

    def symbols(self, graph: Graph, params: SwitchedParams) -> tuple[Any, Any]:
        """The vector of symbols, for functions and for machine code."""
        vector = vector_argument(graph, NAME, self.count)
        return vector, vector

    def arguments(self, nodes: list[int]) -> dict[tuple[str, int], int]:
        """Nodes of the vector split into the arguments of traces with modes."""
        numbers, modes = nodes[: self._n_numbers], nodes[self._n_numbers :]
        return {(NAME, k): i for k, i in enumerate(numbers)} | {(MODES, k): i for k, i in enumerate(modes)}


class ModalFunction(TracedFunction):
    """A user function on the branches selected by the modes."""

    def __init__(self, name: str, code: MachineFunction, layout: ModalLayout, original: Callable[..., Any], **options):
        super().__init__(name, code, layout.inner, original, **options)
        self.layout = layout
        self._numbers = slice(code.slices[MODES].stop - sum(layout.sizes.values()), code.slices[MODES].stop)
        self.workspace = code.size - self._numbers.stop

    def __call__(self, t: float, *arguments):
        status, values = self.evaluate(t, *[np.asarray(a, dtype=float) for a in arguments[:-1]], arguments[-1])
        if status != 0:
            if not self.is_derivative:
                self._ask(t, *arguments)  # the function itself may raise a specific error
            raise Unevaluable(f"{self.__name__} cannot be computed here")
        return values

    def _given(self, arguments: tuple) -> tuple:
        return (*arguments[:-1], *last_argument(self.original, arguments[-1].given))
