"""User functions, their derivatives, and functions with switches set by data, as machine code that kernels call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.errors import Unevaluable
from daedal.kernels.functions import CodedFunction
from daedal.problems.compile import ParametersOfRun, last_argument
from daedal.symbolic import Graph, vector_argument
from daedal.symbolic.machine import MachineFunction
from daedal.symbolic.modes import NAME as MODES
from daedal.symbolic.trace import Traced
from daedal.symbolic.tracing.parameters import NAME, ParameterLayout

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, ctypes.c_void_p)


class TracedFunction(CodedFunction):
    """A user function as machine code. Called from Python, it behaves like the original.

    Attributes
    ----------
    original : callable
        The user's function; for a derivative, the function that was differentiated.
    is_derivative : bool
        Whether this is a derivative, which exists as machine code only.
    is_regular : bool
        Whether only overflow can make its result infinite.
    is_smooth : bool
        Whether it contains no choices, absolute values, tables and similar operations.
    operations : int
        Number of operations of a call.
    trace : (Traced, dict) or None
        The compiled nodes, and names and lengths of the vectors that they depend on.
    kept : dict
        Cache of objects derived from the trace, shared by all problems with this function.
    """

    layout: Any  # layout of the parameters; None if there are none
    trace: tuple[Traced, dict[str, int]] | None = None
    # code for eight members in lanes
    in_lanes: Callable[[], MachineFunction | None] = staticmethod(lambda: None)

    def __init__(
        self,
        name: str,
        code: MachineFunction,
        layout: ParameterLayout | None,
        original: Callable[..., Any],
        *,
        arguments: tuple[int | np.ndarray, ...] | None = None,
        is_regular: bool = False,
        is_smooth: bool = False,
    ):
        self.__name__ = name
        self.original, self.layout, self._code = original, layout, code
        self.kept: dict[str, Any] = {}
        self.is_derivative, self.is_regular, self.is_smooth = arguments is not None, is_regular, is_smooth
        self.address, self.operations = code.address, code.operations
        [result] = code.results
        self._place, self._shape, self.size = code.slices[result], code.shapes[result], code.size
        self._numbers = code.slices[NAME] if layout is not None else slice(0, 0)
        self.workspace = code.size - max(self._numbers.stop, self._place.stop)
        self._shared = () if arguments is None else arguments
        self._call = _SIGNATURE(code.address)
        self._reference = getattr(original, "py_func", original)
        if not self.is_derivative:
            self.__wrapped__ = original

    def numbers(self, params) -> np.ndarray:
        assert self.layout is not None
        return self.layout.numbers(params)

    @property
    def reads(self) -> object:
        """Reader of the parameters: the same object for all functions with this layout."""
        return self.layout

    def __call__(self, t: float, *arguments):
        if not self.is_derivative:
            return self._ask(t, *arguments)
        status, values = self.evaluate(t, *arguments)
        if status != 0:  # the function itself may raise a specific error
            last = arguments[-1:] if self.layout is not None else ()
            self._ask(t, *[arguments[k] if isinstance(k, int) else k.copy() for k in self._shared], *last)
            raise Unevaluable(f"{self.__name__} cannot be computed at t = {t:.10g}")
        return values

    def _ask(self, t: float, *arguments):
        """Call the user's function, with its parameters in the original form."""
        return self.original(t, *self._given(arguments))

    def reference(self, t: float, *arguments):
        """The user's function in Python, even if it was compiled by Numba, since that compilation may be pending."""
        return self._reference(t, *self._given(arguments))

    def _given(self, arguments: tuple) -> tuple:
        return arguments if self.layout is None else (*arguments[:-1], *last_argument(self.original, arguments[-1]))

    def evaluate(self, t: float, *arguments) -> tuple[int, np.ndarray]:
        """Status and result of the machine code."""
        block, end = np.zeros(self.size), 0
        values = arguments
        if self.layout is not None:
            values = arguments[:-1]
            block[self._numbers] = self.layout.numbers(arguments[-1])
        for value in values:
            start, end = end, end + (value.size if isinstance(value, np.ndarray) else 1)
            block[start:end] = value
        status = self._call(t, block.__array_interface__["data"][0])
        return status, block[self._place].reshape(self._shape, order="F")

    def __repr__(self) -> str:
        kind = "derivative of a traced function" if self.is_derivative else "traced"
        return f"<{self.__name__}: {kind}, {self.operations} operations>"

    def __reduce__(self):
        """Machine code is not pickled: only the original function is stored, without derivatives."""
        return _as_stated, (None if self.is_derivative else self.original,)


def as_stated(function: Any) -> Any:
    """The user's function of a machine code function; other objects are returned unchanged."""
    return function.original if isinstance(function, TracedFunction) and not function.is_derivative else function


def _as_stated(function):
    return function


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
        Tolerance by which the bounds may be exceeded before the mode ends.
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

    def params_at(self, params: Any, numbers: np.ndarray) -> SwitchedParams:
        """The parameters with the modes of `numbers`, which compiled loops change between arcs."""
        current = params.fresh(params.given)
        current.modes[:] = numbers[numbers.size - current.modes.size :]
        return current

    def __call__(self, t: float, *arguments):
        status, values = self.evaluate(t, *[np.asarray(a, dtype=float) for a in arguments[:-1]], arguments[-1])
        if status != 0:
            if not self.is_derivative:
                self._ask(t, *arguments)  # the function itself may raise a specific error
            raise Unevaluable(f"{self.__name__} cannot be computed at t = {t:.10g}")
        return values

    def _given(self, arguments: tuple) -> tuple:
        return (*arguments[:-1], *last_argument(self.original, arguments[-1].given))
