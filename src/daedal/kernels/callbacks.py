"""User functions as pointers that compiled kernels can call.

Every function reaches a kernel in the same shape. Its arguments and its result live in one block of floats, and the
kernel calls it with the time only::

    residual    block = [ y (n) | y' (n) | F (n) ]
    jacobian    block = [ y (n) | y' (n) | cj (1) | matrix ]

* A function compiled with ``numba.njit`` is wrapped in a C function ``int (double t, double* block)`` and called
  without Python in the loop; one that brings its machine code along (a traced one) is called at its address.
* A plain Python function is called through the C API of the interpreter, with its arguments taken from the block.

The return value follows DASSL's IRES: 0 means done, -1 that the function cannot be evaluated at this point (the step
will be repeated with a smaller step size), -2 that it raised an exception, which is kept and later raised unchanged.
"""

from collections.abc import Callable
from math import prod
from weakref import WeakKeyDictionary

import numpy as np
from numba import carray, cfunc, njit, types
from numba.core.errors import NumbaError

from daedal.errors import InvalidProblemError, Unevaluable
from daedal.kernels.compilation import caller, inlined, part
from daedal.kernels.functions import CodedFunction, is_compiled, parameter_vector
from daedal.kernels.records import ADDRESS, INTEGER, Record, data_of, floats, integers

EVALUATED, UNEVALUABLE, RAISED = 0, -1, -2

_ABSENT, _COMPILED, _PYTHON = 0, 1, 2
COMPILED_CODE_RAISED = 1

CALLBACK = np.dtype(
    [("kind", INTEGER), ("address", ADDRESS), ("python", ADDRESS), ("recorder", ADDRESS), ("block", ADDRESS)]
)
"""What a kernel sees of a function: its kind, C address, Python object, keeper of exceptions and argument block."""

_call_one_arg = types.ExternalFunction("PyObject_CallOneArg", types.intp(types.intp, types.intp))
_float_from_double = types.ExternalFunction("PyFloat_FromDouble", types.intp(types.float64))
_long_as_long = types.ExternalFunction("PyLong_AsLong", types.intp(types.intp))
_decref = types.ExternalFunction("Py_DecRef", types.void(types.intp))
_gil_ensure = types.ExternalFunction("PyGILState_Ensure", types.int32())
_gil_release = types.ExternalFunction("PyGILState_Release", types.void(types.int32))

_err_fetch = types.ExternalFunction("PyErr_Fetch", types.void(types.intp, types.intp, types.intp))
_err_normalise = types.ExternalFunction("PyErr_NormalizeException", types.void(types.intp, types.intp, types.intp))
_err_clear = types.ExternalFunction("PyErr_Clear", types.void())
_set_traceback = types.ExternalFunction("PyException_SetTraceback", types.int32(types.intp, types.intp))

_C_SIGNATURE = types.int32(types.float64, types.CPointer(types.float64))
NATIVE = types.int32(types.float64, types.int64)
"""The C signature of a native callback ``status = f(t, block)``, with the address of its block."""

_call_address = caller(NATIVE)


@part
def _call_python(callback, t):
    gil = _gil_ensure()
    argument = _float_from_double(t)
    result = _call_one_arg(callback.python, argument)
    _decref(argument)
    status = RAISED
    if result != 0:
        status = _long_as_long(result)
        _decref(result)
    else:
        _hand_over_exception(callback.recorder)
    _gil_release(gil)
    return status


@part
def _hand_over_exception(recorder):
    """Give an exception that was raised outside the guard of a function (by a signal handler) to the bridge."""
    slots = np.zeros(3, dtype=np.int64)
    kind, value, traceback = slots[0:1].ctypes.data, slots[1:2].ctypes.data, slots[2:3].ctypes.data
    _err_fetch(kind, value, traceback)
    _err_normalise(kind, value, traceback)
    if slots[2] != 0:
        _set_traceback(slots[1], slots[2])
    result = _call_one_arg(recorder, slots[1])
    if result != 0:
        _decref(result)
    else:
        _err_clear()
    for i in range(3):
        if slots[i] != 0:
            _decref(slots[i])


@part
def call(callback, t):
    """Call a function whose arguments have been written to ``callback.block``, and which does not change them."""
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
    """:func:`fetch` with the addresses and lengths of the vectors."""
    status = _call_at(callback, t, first, n_first, second, n_second, third, n_third)
    if status == 0:
        behind, strange = callback.block + 8 * (n_first + n_second + n_third), 0
        source, target = floats(behind, n_result), floats(result, n_result)
        for i in range(n_result):
            value = source[i]
            target[i] = value
            strange += 0 if abs(value) < np.inf else 1  # whole numbers: a sum of floats would make each wait
        if strange != 0:
            status = UNEVALUABLE
    return status


@inlined
def repeat_in_python(callback, t, first, second, third):
    """The same call from Python, which keeps the exception (or finds that the function only is unevaluable here)."""
    return _repeat_at(callback, t, data_of(first), first.size, data_of(second), second.size, data_of(third), third.size)


@inlined
def call_with(callback, t, first, second, third):
    """Call a function with up to three vectors as its arguments (of size 0 where it has fewer); returns the status.

    Compiled code cannot say which exception it raised: the call is then repeated in Python, with the arguments written
    again in case the function changed them.
    """
    return _call_at(callback, t, data_of(first), first.size, data_of(second), second.size, data_of(third), third.size)


@inlined
def fetch(callback, t, first, second, third, result):
    """`result` of a function of up to three vectors; a NaN or an infinity counts as 'cannot be evaluated here'."""
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
    """In place of an argument that a function does not have."""
    return floats(0, 0)


@part
def owner(block):
    """The address of the record to which a native callback belongs, from the address of its block."""
    return integers(block - 8, 1)[0]


@inlined
def is_given(callback):
    return callback.kind != _ABSENT


class Bridge:
    """A set of callbacks with the first exception that one of them raised.

    The bridge owns the blocks and keeps everything alive that a kernel reaches by address.
    """

    def __init__(self) -> None:
        self.exception: BaseException | None = None
        self.refuses = False  # calls in Python, where they would see other parameters than machine code does
        self._alive: list = []
        self._cells: dict[int, list] = {}  # parameters, by the object with which callbacks were made
        self._made_with: list = []  # these objects
        self._parameters: list[tuple[np.ndarray, list, Callable[..., np.ndarray]]] = []
        self._forgetting: list[Callable[[], None]] = []
        self._seen: dict[tuple, bytes] = {}  # parameters as they were read last, by object
        self._recorder = self._record

    @property
    def parameters(self) -> list[tuple[np.ndarray, list, Callable[..., np.ndarray]]]:
        """Of each function that has parameters: where their numbers are, what they are, and how these are read."""
        return self._parameters

    def forget_with(self, action: Callable[[], None]):
        """Let :meth:`refresh` call `action`, which forgets what a callback has learnt during a run."""
        self._forgetting.append(action)

    def refresh(self):
        """Before a run: read the parameters again, which the user may have changed, and forget the run before."""
        self.exception = None
        numbers: dict[tuple, np.ndarray] = {}  # most functions have the same parameters
        for target, cell, read in self._parameters:
            key = id(cell), read
            if key not in numbers:
                numbers[key] = read(cell[0])
            if numbers[key].tobytes() != self._seen.get(key):
                target[:] = numbers[key]
        self._seen = {key: values.tobytes() for key, values in numbers.items()}
        for action in self._forgetting:
            action()

    def replace(self, made_with, params):
        """From the next :meth:`refresh` on, other parameters in place of those with which callbacks were made."""
        if made_with is not None:
            self._cells[id(made_with)][0] = params

    def _cell(self, params) -> list:
        """Where functions that were made with these parameters find those of the run."""
        if id(params) not in self._cells:
            self._cells[id(params)] = [params]
            self._made_with.append(params)
        return self._cells[id(params)]

    def _record(self, exception: BaseException):
        if self.exception is None:
            self.exception = exception

    def absent(self) -> Record:
        """The callback that is not there."""
        return Record(CALLBACK)

    def python(self, body, block: np.ndarray) -> Record:
        """A callback that runs ``body(t)`` in Python; `body` works on views of `block`."""
        entry = self._guard(body)
        self._alive += [entry, block]
        return Record(CALLBACK, kind=_PYTHON, python=id(entry), recorder=id(self._recorder), block=block)

    def native(self, kernel, record: Record, size: int) -> Record:
        """A callback that Daedal itself provides: `kernel` finds the address of `record` in front of its block."""
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
            Lengths of the array arguments, in order, as they stand in the block.
        result_shape : tuple of int
            Shape of the result, which stands behind the arguments; a matrix column by column.
        store : callable
            ``store(result, target)`` checks a Python result and writes it to the float array `target`.
        params : object, optional
            Passed on as the last argument.
        scalars : int
            How many float arguments follow the arrays.
        """
        ends = np.cumsum(shapes)
        first_result = int(ends[-1]) + scalars
        result_size = prod(result_shape)
        coded, compiled = isinstance(function, CodedFunction), is_compiled(function)
        read = function.numbers if coded else parameter_vector
        numbers = read(params) if (coded or compiled) and params is not None else np.zeros(0)
        workspace = np.zeros(function.workspace if coded else 0)
        block = np.concatenate([np.zeros(first_result + result_size), numbers, workspace])
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
            return Record(CALLBACK, kind=_PYTHON, python=id(entry), recorder=id(self._recorder), block=block)
        layout = (tuple(ends.tolist()), scalars, result_shape, numbers.size if tail else -1)
        pointer = function if coded else _c_pointer(function, layout)
        self._alive.append(pointer)
        if tail:
            self._parameters.append((numbers_in_block, cell, read))
        address, recorder = pointer.address, id(self._recorder)
        return Record(CALLBACK, kind=_COMPILED, address=address, python=id(entry), recorder=recorder, block=block)

    def raise_pending(self):
        """Raise the exception kept from a user's function, if there is one."""
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


_pointers: WeakKeyDictionary = WeakKeyDictionary()


def _c_pointer(function, layout):
    """Wrap a compiled function in a C function that reads its arguments from a block and writes its result behind them.

    The wrapper is made once for a function and a layout, and lives as long as the function.
    """
    known = _pointers.setdefault(function, {})
    if layout not in known:
        known[layout] = _make_c_pointer(function, *layout)
    return known[layout]


def _make_c_pointer(function, ends, scalars, shape, n_params):
    size = prod(shape)
    first, last = ends[-1] + scalars, ends[-1] + scalars + size
    total = last + max(n_params, 0)
    rows, columns = (shape[0], shape[1]) if len(shape) == 2 else (size, 0)
    apply = _apply(function, ends, scalars, last if n_params >= 0 else -1)

    def vector_entry(t, pointer):
        block = carray(pointer, total)
        try:
            result = apply(t, block)
            if result.ndim != 1 or result.size != size:
                return COMPILED_CODE_RAISED
            for i in range(size):
                block[first + i] = result[i]
        except Exception:
            return COMPILED_CODE_RAISED
        return EVALUATED

    def matrix_entry(t, pointer):
        block = carray(pointer, total)
        try:
            result = apply(t, block)
            if result.shape[0] != rows or result.shape[1] != columns:
                return COMPILED_CODE_RAISED
            for j in range(columns):
                for i in range(rows):
                    block[first + j * rows + i] = result[i, j]
        except Exception:
            return COMPILED_CODE_RAISED
        return EVALUATED

    entry = matrix_entry if len(shape) == 2 else vector_entry
    try:
        return cfunc(_C_SIGNATURE)(entry)
    except NumbaError as error:
        name = getattr(function, "__name__", "function")
        raise InvalidProblemError(
            f"the compiled function '{name}' cannot be used with float arrays; it must return a float array of shape "
            f"{shape}. Numba says: {_first_lines(error)}"
        ) from error


def _first_lines(error) -> str:
    """The beginning of Numba's message, without the lines that only say in which pass of the compiler it happened."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if line and not line.startswith(("Failed in", "During"))]
    return " ".join(telling[:2])[:400]


def _apply(function, ends, scalars, first_parameter):
    """``function(t, block[...], ..., [scalars], [parameters])`` of the block alone: Numba needs the arity spelt out."""
    begins = (0, *ends[:-1])
    arguments = ["t", *[f"block[{a}:{b}]" for a, b in zip(begins, ends, strict=True)]]
    arguments += [f"block[{ends[-1] + i}]" for i in range(scalars)]
    if first_parameter >= 0:
        arguments.append(f"block[{first_parameter}:]")
    return njit(eval(f"lambda t, block: f({', '.join(arguments)})", {"f": function}))
