"""Large machines as mechanical systems: functions as compiled loops, accelerations by recursive elimination."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from daedal.errors import Unevaluable
from daedal.kernels.functions import CodedFunction
from daedal.kernels.records import Record
from daedal.multibody import loops_compiled
from daedal.multibody.force import Force
from daedal.multibody.force_code import ForceCode
from daedal.multibody.layout import Layout
from daedal.multibody.packed import packed, sizes_of
from daedal.symbolic import Untraceable
from daedal.symbolic.machine import BoundFunction

MOST_TRACED = {True: 24, False: 12}
"""Number of joint velocities up to which the functions of a machine are traced, in the plane and in space.

Generating straight-line code for more takes seconds. It is faster than loops over bodies up to about 30 velocities in
the plane, where most terms vanish, and 4 in space.
"""
_AS_C = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, ctypes.c_int64)


class _Version(NamedTuple):
    """The record of a machine for one version of the code of its forces."""

    code: ForceCode | None
    record: Record
    rooms: dict[str, int]  # workspace of its functions after their results, in floats


class LargeMachine:
    """Data of a machine for its functions: the arrays of a layout, and the :class:`ForceCode` of its forces."""

    def __init__(self, forces: Sequence[Force], layout: Layout):
        self.layout, self._forces = layout, forces
        self.n_states = sum(len(force.initial) for force in forces)
        self._versions = [self._version()]  # kept alive: generated code points to them

    def _version(self) -> _Version:
        arrays = self.layout.arrays
        sizes = sizes_of(*arrays, self.n_states)
        if not self._forces:
            return _Version(None, self.layout.packed, loops_compiled.rooms(sizes, 0))
        code = ForceCode(self._forces, self.layout)
        record = packed(*arrays, code.record.address, self.n_states)
        return _Version(code, record, loops_compiled.rooms(sizes, int(code.record["longest"])))

    @property
    def code(self) -> ForceCode | None:
        """Code of the forces."""
        return self._versions[-1].code

    def is_current(self) -> bool:
        """Whether external values read by user functions are unchanged since the trace."""
        return self.code is None or self.code.is_current()

    def now(self) -> _Version:
        """The current version of the machine, after new traces of the forces if external values have changed."""
        if not self.is_current():
            self._versions.append(self._version())
        return self._versions[-1]


class CompiledLoops(CodedFunction):
    """A function of :mod:`daedal.multibody.loops_compiled` for a machine.

    `arguments` are the lengths of the arguments after t, `shape` is that of the result; `stated` is the same function
    in Python, which is called if a force raises an exception.
    """

    is_derivative = True  # derivatives of constraints are exact

    def __init__(
        self,
        name: str,
        machine: LargeMachine,
        arguments: tuple[int, ...],
        shape: tuple[int, ...],
        stated: Callable[..., Any] | None = None,
    ):
        self.__name__ = name
        self.machine, self._arguments, self._shape, self._stated = machine, arguments, shape, stated
        self._bound: dict[int, BoundFunction] = {}  # keyed by the address of the record

    @property
    def address(self) -> int:  # type: ignore[override]
        """Address of the machine code for this machine, with the current version of its forces."""
        machine = self.machine.now().record.address
        if machine not in self._bound:
            self._bound[machine] = BoundFunction(getattr(loops_compiled, self.__name__), machine)
        return self._bound[machine].address

    @property
    def workspace(self) -> int:  # type: ignore[override]
        """Workspace of the machine code after the result, in floats."""
        return self.machine.now().rooms[self.__name__]

    @property
    def size(self) -> int:  # type: ignore[override]
        """Total length of the block of arguments, result and workspace, in floats."""
        return sum(self._arguments) + prod(self._shape) + self.workspace

    def is_current(self) -> bool:
        return self.machine.is_current()

    def numbers(self, params) -> np.ndarray:
        return np.zeros(0)

    def evaluate(self, t: float, *arguments) -> tuple[int, np.ndarray]:
        first, size = sum(self._arguments), prod(self._shape)
        block = np.zeros(self.size)
        block[:first] = np.concatenate(arguments)
        status = _AS_C(self.address)(float(t), block.ctypes.data)
        return status, block[first : first + size].reshape(self._shape, order="F")

    def __call__(self, t: float, *arguments):
        status, values = self.evaluate(t, *arguments)
        if status != 0:
            if self._stated is not None:
                return self._stated(t, *arguments)
            raise Unevaluable(f"{self.__name__} of the model cannot be evaluated at t = {t:g}")
        return values

    def __repr__(self) -> str:
        return f"<{self.__name__}: compiled loops over {self.machine.layout.tree.parent.size} bodies>"


class RecursiveCode:
    """Recursive code for accelerations and projections of a large machine, with the interface of straight-line code."""

    is_recursive = True  # computes accelerations by recursion, without matrices

    def __init__(self, machine: LargeMachine, functions: dict[str, CompiledLoops]):
        n, n_c, n_r = machine.layout.n_q, _n_constraints(machine.layout), machine.n_states
        self._functions = functions
        self._made = {
            "accelerations": CompiledLoops("accelerations", machine, (n, n, n_r), (n + n_c,)),
            "position_correction": CompiledLoops("position_correction", machine, (n,), (n,)),
            "velocity_correction": CompiledLoops("velocity_correction", machine, (n, n), (n + n_c * n,)),
            "stage": CompiledLoops("stage", machine, (n, n, n_r, n, n, 1, 1), (n + n_c,)),
        }

    def belongs_to(self, system: Any) -> bool:
        """Whether the system has the functions that this code replaces."""
        return all(getattr(system, name) is function for name, function in self._functions.items())

    def function(self, name: str) -> CompiledLoops | None:
        """The code with this name; None if there is none."""
        return self._made.get(name)


def large_machine(model: Any, layout: Layout) -> LargeMachine | None:
    """The cached data of a model whose functions are compiled loops; None if its functions are traced.

    Functions are traced for small machines, with constraints other than joints, with inputs, and if a force cannot be
    traced separately.
    """
    if layout.n_v <= MOST_TRACED[layout.planar] or layout.constraints or model.inputs is not None:
        return None
    if layout not in model.large_machines:
        try:
            model.large_machines[layout] = LargeMachine(model.forces, layout)
        except Untraceable:
            return None
    return model.large_machines[layout]


def compiled_functions(machine: LargeMachine, stated: dict[str, Callable[..., Any]]) -> dict[str, CompiledLoops]:
    """The functions of a mechanical system, by name; `stated` has the Python versions of those that contain forces."""
    n, n_c, n_r = machine.layout.n_q, _n_constraints(machine.layout), machine.n_states
    functions = {
        "mass": CompiledLoops("mass", machine, (n,), (n, n)),
        "force": CompiledLoops("force", machine, (n, n, n_r), (n,), stated["force"]),
    }
    if n_r:
        functions["state_rate"] = CompiledLoops("state_rate", machine, (n, n, n_r), (n_r,), stated["state_rate"])
    if n_c:
        functions |= {
            "constraint": CompiledLoops("constraint", machine, (n,), (n_c,)),
            "constraint_jacobian": CompiledLoops("constraint_jacobian", machine, (n,), (n_c, n)),
            "constraint_t": CompiledLoops("constraint_t", machine, (n,), (n_c,)),
            "acceleration_bias": CompiledLoops("acceleration_bias", machine, (n, n), (n_c,)),
        }
    return functions


def _n_constraints(layout: Layout) -> int:
    return layout.n_q - layout.n_v + layout.closures.kind.size
