"""A user's function, or a derivative of it, as machine code that kernels call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.kernels.functions import CodedFunction
from daedal.problems.compile import last_argument
from daedal.symbolic.machine import MachineFunction
from daedal.tracing.parameters import NAME, ParameterLayout

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, ctypes.c_void_p)


class TracedFunction(CodedFunction):
    """A function of the user's as machine code; called from Python it is what it was.

    Attributes
    ----------
    original : callable
        The user's function; of a derivative the function that it is the derivative of.
    is_derivative : bool
        Whether this is a derivative, which exists as machine code only.
    is_regular : bool
        Whether nothing but overflow can make its result infinite.
    operations : int
        How many operations a call takes.
    """

    def __init__(
        self,
        name: str,
        code: MachineFunction,
        layout: ParameterLayout | None,
        original: Callable[..., Any],
        *,
        arguments: tuple[int | np.ndarray, ...] | None = None,
        is_regular: bool = False,
    ):
        self.__name__ = name
        self.original, self.layout, self._code = original, layout, code
        self.is_derivative, self.is_regular = arguments is not None, is_regular
        self._shared = () if arguments is None else arguments
        self.address, self.operations = code.address, code.operations
        [self._result] = code.results
        ends = code.slices[NAME].stop if layout is not None else code.slices[self._result].stop
        self.workspace = code.size - ends
        if not self.is_derivative:
            self.__wrapped__ = original

    def numbers(self, params) -> np.ndarray:
        assert self.layout is not None
        return self.layout.numbers(params)

    def __call__(self, t: float, *arguments):
        if not self.is_derivative:
            return self._ask(t, *arguments)
        status, values = self.evaluate(t, *arguments)
        if status != 0:  # the function itself says why; where it does not, what cannot be computed is not finite
            last = arguments[-1:] if self.layout is not None else ()
            self._ask(t, *[arguments[k] if isinstance(k, int) else k.copy() for k in self._shared], *last)
            values[...] = np.nan
        return values

    def _ask(self, t: float, *arguments):
        """The user's function, with its parameters in the form that it needs."""
        if self.layout is None:
            return self.original(t, *arguments)
        return self.original(t, *arguments[:-1], *last_argument(self.original, arguments[-1]))

    def evaluate(self, t: float, *arguments) -> tuple[int, np.ndarray]:
        """Status and result of the machine code."""
        code, end = self._code, 0
        block = np.zeros(code.size)
        values = arguments[:-1] if self.layout is not None else arguments
        for value in values:
            size = np.size(value)
            block[end : end + size] = value
            end += size
        if self.layout is not None:
            block[code.slices[NAME]] = self.numbers(arguments[-1])
        status = _SIGNATURE(self.address)(float(t), block.ctypes.data)
        return status, block[code.slices[self._result]].reshape(code.shapes[self._result], order="F").copy()

    def __repr__(self) -> str:
        kind = "derivative of a traced function" if self.is_derivative else "traced"
        return f"<{self.__name__}: {kind}, {self.operations} operations>"

    def __reduce__(self):
        """Machine code stays behind: what is stored is the function as it was stated, and no derivative of it."""
        return _as_stated, (None if self.is_derivative else self.original,)


def _as_stated(function):
    return function
