"""Large machines as mechanical systems: functions that are compiled loops, accelerations by recursive elimination."""

from __future__ import annotations

import ctypes
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numba import cfunc, types

from daedal.errors import Unevaluable
from daedal.kernels.compilation import Pointer, caller
from daedal.kernels.functions import CodedFunction
from daedal.multibody import loops_compiled
from daedal.multibody.layout import Layout

MOST_TRACED = {True: 24, False: 12}
"""Velocities of joints up to which the functions of a machine are traced, in the plane and in space.

Straight-line code of more of them takes seconds to make. It runs faster than loops over bodies up to about 30
velocities in the plane, where most of the formulas vanish, and 4 in space.
"""
_call = caller(loops_compiled.SIGNATURE)
_AS_C = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, ctypes.c_int64)


class CompiledLoops(CodedFunction):
    """A function of a machine: compiled loops over its bodies.

    Parameters
    ----------
    name : str
        One of the functions of :mod:`daedal.multibody.loops_compiled`.
    layout : Layout
        The machine.
    arguments : tuple of int
        Lengths of its arguments behind t.
    shape : tuple of int
        That of its result.
    """

    workspace = 0
    is_derivative = True  # those of constraints are exact

    def __init__(self, name: str, layout: Layout, arguments: tuple[int, ...], shape: tuple[int, ...]):
        self.__name__ = name
        self._layout, self._arguments, self._shape = layout, arguments, shape

    @cached_property
    def _bound(self):
        """The C function of (t, block) for this machine."""
        kernel: Pointer = getattr(loops_compiled, self.__name__)
        address, machine = kernel.address, self._layout.packed.address

        @cfunc(types.int32(types.float64, types.int64))
        def bound(t, block):
            return _call(address, t, block, machine)

        return bound

    @property
    def address(self) -> int:  # type: ignore[override]
        """Of the machine code."""
        return self._bound.address

    def numbers(self, params) -> np.ndarray:
        return np.zeros(0)

    def evaluate(self, t: float, *arguments) -> tuple[int, np.ndarray]:
        first = sum(self._arguments)
        block = np.zeros(first + prod(self._shape))
        block[:first] = np.concatenate(arguments)
        status = _AS_C(self.address)(float(t), block.ctypes.data)
        return status, block[first:].reshape(self._shape, order="F")

    def __call__(self, t: float, *arguments):
        status, values = self.evaluate(t, *arguments)
        if status != 0:
            raise Unevaluable(f"{self.__name__} cannot be computed here")
        return values

    def __repr__(self) -> str:
        return f"<{self.__name__}: compiled loops over {self._layout.tree.father.size} bodies>"


class RecursiveCode:
    """Accelerations and projections of a large machine, as methods ask for the code of a system as a whole."""

    def __init__(self, layout: Layout, functions: dict[str, CompiledLoops]):
        n, n_c = layout.n_q, _n_constraints(layout)
        self._functions = functions
        self._made = {
            "accelerations": CompiledLoops("accelerations", layout, (n, n), (n + n_c,)),
            "position_correction": CompiledLoops("position_correction", layout, (n,), (n,)),
            "velocity_correction": CompiledLoops("velocity_correction", layout, (n, n), (n + n_c * n,)),
            "stage": CompiledLoops("stage", layout, (n, n, n, n, 1, 1), (n + n_c,)),
        }

    def belongs_to(self, system: Any) -> bool:
        """Whether the system has the functions that this stands for."""
        return all(getattr(system, name) is function for name, function in self._functions.items())

    def function(self, name: str) -> CompiledLoops | None:
        """The code with this name; None if there is none."""
        return self._made.get(name)


def is_large(model: Any, layout: Layout) -> bool:
    """Whether the functions are compiled loops; forces and constraints of the model are Python, and traced."""
    return layout.n_v > MOST_TRACED[layout.planar] and not model.forces and not layout.constraints


def compiled_functions(layout: Layout) -> dict[str, CompiledLoops]:
    """The functions of a mechanical system, by name."""
    n, n_c = layout.n_q, _n_constraints(layout)
    functions = {
        "mass": CompiledLoops("mass", layout, (n,), (n, n)),
        "force": CompiledLoops("force", layout, (n, n), (n,)),
    }
    if n_c:
        functions |= {
            "constraint": CompiledLoops("constraint", layout, (n,), (n_c,)),
            "constraint_jacobian": CompiledLoops("constraint_jacobian", layout, (n,), (n_c, n)),
            "constraint_t": CompiledLoops("constraint_t", layout, (n,), (n_c,)),
            "acceleration_bias": CompiledLoops("acceleration_bias", layout, (n, n), (n_c,)),
        }
    return functions


def _n_constraints(layout: Layout) -> int:
    return layout.n_q - layout.n_v + layout.closures.kind.size
