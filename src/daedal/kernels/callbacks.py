"""User functions as pointers that compiled kernels can call.

Every function reaches a kernel in the same form. Its arguments and its result are stored in one block of floats, and
the kernel calls it with the time only::

    residual    block = [ y (n) | y' (n) | F (n) ]
    jacobian    block = [ y (n) | y' (n) | cj (1) | matrix ]

* A function compiled with ``numba.njit`` is wrapped in a C function ``int (double t, double* block)`` and called
  without Python in the loop; one with its own machine code (a traced one) is called at its address.
* A plain Python function is called through the C API of the interpreter, with its arguments taken from the block.

The return value follows DASSL's IRES: 0 for success, -1 if the function cannot be evaluated at this point (the step is
repeated with a smaller step size), -2 if it raised an exception, which is stored and re-raised unchanged after the run.
"""

import ctypes
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError, Unevaluable
from daedal.kernels.compilation import MODE, caller, inlined, part
from daedal.kernels.functions import CodedFunction, is_compiled, parameter_vector
from daedal.kernels.python_api import (
    PYTHON,
    call_one_arg,
    change_count,
    clear_error,
    fetch_error,
    float_from_double,
    gil_ensure,
    gil_release,
    long_as_long_long,
    python_api,
    set_traceback,
)
from daedal.kernels.records import ADDRESS, INTEGER, Record, Struct, at, data_of, floats, integers, local_words
from daedal.kernels.signatures import f64, i32, i64

EVALUATED, UNEVALUABLE, RAISED = 0, -1, -2

_ABSENT, _COMPILED, _PYTHON = 0, 1, 2
COMPILED_CODE_RAISED = 1

CALLBACK = Struct(
    "CALLBACK",
    [
        ("kind", INTEGER),
        ("address", ADDRESS),
        ("python", ADDRESS),
        ("recorder", ADDRESS),
        ("api", at(PYTHON)),
        ("block", ADDRESS),
    ],
)
"""A function as seen by a kernel: kind, C address, Python object, exception recorder, the Python functions used to call
it, and argument block."""

NATIVE = i32(f64, i64)
"""The C signature of a native callback ``status = f(t, block)``, with the address of its block."""

_call_address = caller(NATIVE)


_room_for_exception = local_words(3)


@part
def _call_python(callback, t):
    api = callback.api
    gil = gil_ensure(api.PyGILState_Ensure)
    argument = float_from_double(api.PyFloat_FromDouble, t)
    result = call_one_arg(api.PyObject_CallOneArg, callback.python, argument)
    change_count(api.Py_DecRef, argument)
    status = RAISED
    if result != 0:
        status = long_as_long_long(api.PyLong_AsLongLong, result)
        change_count(api.Py_DecRef, result)
    else:
        _store_exception(api, callback.recorder)
    gil_release(api.PyGILState_Release, gil)
    return status


@part
def _store_exception(api, recorder):
    """Record an exception raised outside the guard of a function (by a signal handler) in the bridge."""
    room = _room_for_exception()
    slots = integers(room, 3)
    for i in range(3):
        slots[i] = 0
    fetch_error(api.PyErr_Fetch, room, room + 8, room + 16)
    fetch_error(api.PyErr_NormalizeException, room, room + 8, room + 16)
    if slots[2] != 0:
        set_traceback(api.PyException_SetTraceback, slots[1], slots[2])
    result = call_one_arg(api.PyObject_CallOneArg, recorder, slots[1])
    if result != 0:
        change_count(api.Py_DecRef, result)
    else:
        clear_error(api.PyErr_Clear)
    for i in range(3):
        if slots[i] != 0:
            change_count(api.Py_DecRef, slots[i])


if MODE != "build":  # interpreted kernels hold the lock

    def _call_python(callback, t):
        return ctypes.cast(int(callback.python), ctypes.py_object).value(float(t))


@part
def call(callback, t):
    """Call a function whose arguments are in ``callback.block``; it does not change them."""
    if callback.kind == _PYTHON:
        return _call_python(callback, t)
    return _call_address(callback.address, t, callback.block)


@inlined
def _write(block, first, n_first, second, n_second, third, n_third):
    a, b, target = floats(first, n_first), floats(second, n_second), floats(block, n_first + n_second + n_third)
    if n_second == n_first:
        for i in range(n_first):
            target[i] = a[i]
            target[n_first + i] = b[i]
    else:
        for i in range(n_first):
            target[i] = a[i]
        for i in range(n_second):
            target[n_first + i] = b[i]
    if n_third > 0:
        c = floats(third, n_third)
        for i in range(n_third):
            target[n_first + n_second + i] = c[i]


@part
def _repeat_at(callback, t, first, n_first, second, n_second, third, n_third):
    _write(callback.block, first, n_first, second, n_second, third, n_third)
    return _call_python(callback, t)


@inlined
def _call_at(callback, t, first, n_first, second, n_second, third, n_third):
    _write(callback.block, first, n_first, second, n_second, third, n_third)
    status = call(callback, t)
    if status == COMPILED_CODE_RAISED:
        status = _repeat_at(callback, t, first, n_first, second, n_second, third, n_third)
    return status


@inlined
def fetch_at(callback, t, first, n_first, second, n_second, third, n_third, result, n_result):
    """:func:`fetch`, with the addresses and lengths of the vectors."""
    status = _call_at(callback, t, first, n_first, second, n_second, third, n_third)
    if status == 0:
        behind, strange = callback.block + 8 * (n_first + n_second + n_third), 0
        source, target = floats(behind, n_result), floats(result, n_result)
        for i in range(n_result):
            value = source[i]
            target[i] = value
            # integers, since a floating-point sum would be a sequential dependency
            strange += 0 if abs(value) < np.inf else 1
        if strange != 0:
            status = UNEVALUABLE
    return status


@inlined
def repeat_in_python(callback, t, first, second, third):
    """Repeat a failed call in Python, which records the exception or detects that the function is undefined at this
    point."""
    return _repeat_at(callback, t, data_of(first), first.size, data_of(second), second.size, data_of(third), third.size)


@inlined
def call_with(callback, t, first, second, third):
    """Call a function with up to three vectors as its arguments (of size 0 if unused); returns the status.

    If compiled code raises, it cannot report the exception: the call is then repeated in Python, with the arguments
    rewritten in case the function changed them.
    """
    return _call_at(callback, t, data_of(first), first.size, data_of(second), second.size, data_of(third), third.size)


@inlined
def fetch(callback, t, first, second, third, result):
    """Store `result` of a function of up to three vectors; NaN and infinity count as 'cannot be evaluated here'."""
    return fetch_at(
        callback,
        t,
        data_of(first),
        first.size,
        data_of(second),
        second.size,
        data_of(third),
        third.size,
        data_of(result),
        result.size,
    )


@inlined
def nothing():
    """Placeholder for an argument that a function does not have."""
    return floats(0, 0)


@part
def owner(block):
    """The address of the record of a native callback, from the address of its block."""
    return integers(block - 8, 1)[0]


@inlined
def is_given(callback):
    return callback.kind != _ABSENT


class Bridge:
    """A set of callbacks with the first exception raised by one of them.

    The bridge owns the blocks and keeps alive all objects that a kernel accesses by address.
    """

    def __init__(self) -> None:
        self.exception: BaseException | None = None
        self.refuses = False  # whether to refuse Python calls with other parameters than machine code
        self._alive: list = []
        self._cells: dict[int, list] = {}  # parameters, by the object passed when callbacks were created
        self._made_with: list = []  # objects with which the block was created
        self._parameters: list[tuple[np.ndarray, list, Callable[..., np.ndarray]]] = []
        self._forgetting: list[Callable[[], None]] = []
        self._keys: list[tuple] = []  # keys that are equal for functions with the same numbers
        self._seen: dict[tuple, bytes] = {}  # latest parameter values, by these keys
        self._recorder = self._record

    @property
    def parameters(self) -> list[tuple[np.ndarray, list, Callable[..., np.ndarray]]]:
        """For each function with parameters: address of their values, the values, and how to read them."""
        return self._parameters

    def forget_with(self, action: Callable[[], None]):
        """Register `action`, which :meth:`refresh` calls to clear what a callback has stored during a run."""
        self._forgetting.append(action)

    def refresh(self):
        """Before a run, reread the parameters, in case the user has changed them, and clear the previous run."""
        self.exception = None
        found: dict[tuple, tuple[np.ndarray, bytes, bool]] = {}  # most functions have the same parameters
        for key, (target, cell, read) in zip(self._keys, self._parameters):
            known = found.get(key)
            if known is None:
                values = read(cell[0])
                bits = values.tobytes()
                known = found[key] = values, bits, bits != self._seen.get(key)
            if known[2]:
                target[:] = known[0]
        self._seen = {key: known[1] for key, known in found.items()}
        for action in self._forgetting:
            action()

    def forget_parameters(self):
        """Make the next :meth:`refresh` write all parameters, whose numbers were changed in place."""
        self._seen = {}

    def replace(self, made_with, params):
        """From the next :meth:`refresh` on, use other parameters instead of those passed when callbacks were
        created."""
        if id(made_with) in self._cells:
            self._cells[id(made_with)][0] = params

    def _cell(self, params) -> list:
        """The function by which callbacks with these parameters find the current ones."""
        if id(params) not in self._cells:
            self._cells[id(params)] = [params]
            self._made_with.append(params)
        return self._cells[id(params)]

    def numbers(self, read: Callable[..., np.ndarray], params) -> np.ndarray:
        """The values of parameters, updated by :meth:`refresh`."""
        cell = self._cell(params)
        target = np.array(read(cell[0]), dtype=float)
        self._add_parameters(target, cell, read, read)
        return target

    def _add_parameters(self, target: np.ndarray, cell: list, read: Callable[..., np.ndarray], reader: Any):
        self._parameters.append((target, cell, read))
        self._keys.append((id(cell), reader))

    def _record(self, exception: BaseException):
        if self.exception is None:
            self.exception = exception

    def absent(self) -> Record:
        """A callback for an absent function."""
        return Record(CALLBACK)

    def python(self, body, block: np.ndarray) -> Record:
        """A callback that runs ``body(t)`` in Python; `body` works on views of `block`."""
        entry = self._guard(body)
        self._alive += [entry, block]
        return Record(CALLBACK, kind=_PYTHON, block=block, **self._by_python(entry))

    def native(self, kernel, record: Record, size: int) -> Record:
        """A callback provided by Daedal: `kernel` finds the address of `record` just before its block."""
        memory = np.zeros(size + 1)
        memory[:1].view(np.int64)[0] = record.data.ctypes.data
        block = memory[1:]
        self._alive += [memory, record, kernel]
        return Record(CALLBACK, kind=_COMPILED, address=kernel.address, block=block)

    def function(self, function, shapes, result_shape: tuple[int, ...], store, params=None, scalars: int = 0) -> Record:
        """A callback for the user's ``function(t, *arrays[, *scalars][, params]) -> array``.

        Parameters
        ----------
        function : callable
            Plain, compiled with ``numba.njit``, or a :class:`CodedFunction`.
        shapes : sequence of int
            Lengths of the array arguments, in the order of the block.
        result_shape : tuple of int
            Shape of the result, which follows the arguments; matrices are stored column by column.
        store : callable
            ``store(result, target)`` checks a Python result and writes it to the float array `target`.
        params : object, optional
            Parameters, passed as the last argument.
        scalars : int
            Number of float arguments after the arrays.
        """
        ends = np.cumsum(shapes)
        first_result = int(ends[-1]) + scalars
        result_size = prod(result_shape)
        coded, compiled = isinstance(function, CodedFunction), is_compiled(function)
        read = function.numbers if coded else parameter_vector
        numbers = read(params) if (coded or compiled) and params is not None else np.zeros(0)
        workspace = np.zeros(function.workspace if coded else 0)
        block = np.concatenate([np.zeros(first_result + result_size), numbers, workspace])
        if coded and block.size != function.size:
            raise InvalidProblemError(
                f"the machine code of {getattr(function, '__name__', 'a function')} was compiled for a problem of "
                f"another size ({function.size} numbers instead of {block.size}); define the problem with plain "
                "functions"
            )
        arrays = [block[end - size : end] for end, size in zip(ends, shapes, strict=True)]
        target = block[first_result : first_result + result_size]
        cell = [] if params is None else self._cell(params)
        numbers_in_block = block[first_result + result_size :][: numbers.size]
        tail = [numbers_in_block] if compiled and cell else cell

        if scalars:

            def body(t):
                values = block[ends[-1] : ends[-1] + scalars].tolist()
                store(function(t, *[a.copy() for a in arrays], *values, *tail), target)

        elif len(arrays) == 2:
            first, second = arrays

            def body(t):
                store(function(t, first.copy(), second.copy(), *tail), target)

        else:

            def body(t):
                store(function(t, *[a.copy() for a in arrays], *tail), target)

        entry = self._guard(body)
        self._alive += [entry, block, params]
        if not (coded or compiled):
            return Record(CALLBACK, kind=_PYTHON, block=block, **self._by_python(entry))
        layout = (tuple(ends.tolist()), scalars, result_shape, numbers.size if tail else -1)
        pointer = function if coded else _wrapped(function, layout)
        self._alive.append(pointer)
        if tail:
            self._add_parameters(numbers_in_block, cell, read, function.reads if coded else read)
        return Record(CALLBACK, kind=_COMPILED, address=pointer.address, block=block, **self._by_python(entry))

    def _by_python(self, entry) -> dict[str, Any]:
        """The fields of a callback used by kernels to call it in Python."""
        return {"python": id(entry), "recorder": id(self._recorder), "api": python_api()}

    def raise_pending(self):
        """Raise the stored exception of a user's function, if any."""
        if self.exception is not None:
            exception, self.exception = self.exception, None
            raise exception

    def _guard(self, body):
        def entry(t):
            if self.refuses:
                return RAISED
            try:
                status = body(t)
                return EVALUATED if status is None else status
            except Unevaluable:
                return UNEVALUABLE
            except BaseException as exception:
                self._record(exception)
                return RAISED

        return entry


def _wrapped(function, layout):
    """A C function for a function compiled by Numba, which is therefore installed."""
    from daedal.kernels.numba_functions import c_pointer

    return c_pointer(function, layout)
