"""Calls from Python that take a microsecond: compiled functions that read NumPy's arrays where they stand.

Numba spends as long as a tree of seven bodies takes on the types of the arguments, on counting references to arrays,
and on an array that is returned. Functions under :func:`quick_call` get the objects themselves, look into them by the
layout that NumPy guarantees to extensions in C (``PyArrayObject_fields``), and make their results by NumPy's C
interface. They keep Python's lock. Arguments of another kind are refused: the result is None.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import NativeValue, box, intrinsic, models, register_model, unbox

from daedal.kernels.compilation import _enable_caching, part
from daedal.kernels.records import ADDRESS, Record, integers

_HEADER = object.__basicsize__ // 8  # words in front of the fields of an array; the last one is the type
_C_CONTIGUOUS_AND_ALIGNED = 0x101
_ARRAY_TYPE, _NEW_FROM_DESCRIPTION = 2, 94  # places in the table of NumPy's C interface, which never change
_WORD, _INT = ir.IntType(64), ir.IntType(32)

NUMPY = np.dtype([("array_type", ADDRESS), ("float_type", ADDRESS), ("new_array", ADDRESS), ("none", ADDRESS)])
"""Where the parts of NumPy and Python stand that quick calls need; other processes have them elsewhere."""


def numpy_record() -> Record:
    """The record of type :data:`NUMPY` of this process."""
    from numpy._core import _multiarray_umath as multiarray  # type: ignore[attr-defined]

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get(multiarray._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return Record(
        NUMPY,
        array_type=table[_ARRAY_TYPE],
        float_type=id(np.dtype(np.float64)),
        new_array=table[_NEW_FROM_DESCRIPTION],
        none=id(None),
    )


class ObjectType(types.Opaque):
    """Any Python object, as a pointer."""

    def __init__(self):
        super().__init__("Python object")


OBJECT = ObjectType()
register_model(ObjectType)(models.OpaqueModel)


@unbox(ObjectType)
def _as_it_is(_, pointer, __):
    return NativeValue(pointer)


@box(ObjectType)
def _as_it_was(_, pointer, __):
    return pointer


@intrinsic
def _address(typingctx, value):
    return types.int64(value), lambda context, builder, _, args: builder.ptrtoint(args[0], _WORD)


@intrinsic
def new_reference(typingctx, address):
    """The object at an address, as a result."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], context.get_value_type(OBJECT))
        context.get_python_api(builder).incref(pointer)
        return pointer

    return OBJECT(types.int64), codegen


@intrinsic
def _new_array(typingctx, function, array_type, float_type, n_axes, sizes):
    """PyArray_NewFromDescr(subtype, descr, nd, dims, strides, data, flags, obj), which keeps a reference to descr."""

    def codegen(context, builder, signature, args):
        function, array_type, float_type, n_axes, sizes = args
        kind = ir.FunctionType(_WORD, [_WORD, _WORD, _INT, _WORD, _WORD, _WORD, _INT, _WORD])
        size = builder.alloca(_WORD, 2)
        for i in range(2):
            builder.store(builder.extract_value(sizes, i), builder.gep(size, [_INT(i)]))
        call = builder.inttoptr(function, kind.as_pointer())
        context.get_python_api(builder).incref(builder.inttoptr(float_type, context.get_value_type(OBJECT)))
        none = _WORD(0)
        where = builder.ptrtoint(size, _WORD)
        given = [array_type, float_type, builder.trunc(n_axes, _INT), where, none, none, _INT(0), none]
        return builder.inttoptr(builder.call(call, given), context.get_value_type(OBJECT))

    return OBJECT(function, array_type, float_type, n_axes, sizes), codegen


@part
def new_vector(numpy, n):
    """A new array of n floats, not set; without memory, none :func:`is_there`."""
    return _new_array(numpy.new_array, numpy.array_type, numpy.float_type, 1, (n, 0))


@part
def new_matrix(numpy, n, m):
    """A new array of n times m floats, not set."""
    return _new_array(numpy.new_array, numpy.array_type, numpy.float_type, 2, (n, m))


@part
def is_there(array):
    """Whether there was memory for an array."""
    return _address(array) != 0


@part
def array_data(array):
    """The address of the entries of an array."""
    return integers(_address(array), _HEADER + 1)[_HEADER]


@part
def vector_data(numpy, value, n):
    """The address of the entries of a vector of n floats that are one behind the other; 0 for any other object."""
    fields = integers(_address(value), _HEADER + 7)  # data, nd, dimensions, strides, base, descr, flags
    if fields[_HEADER - 1] != numpy.array_type or fields[_HEADER + 5] != numpy.float_type:
        return 0
    if fields[_HEADER + 1] & 0xFFFFFFFF != 1 or integers(fields[_HEADER + 2], 1)[0] != n:
        return 0
    if fields[_HEADER + 6] & _C_CONTIGUOUS_AND_ALIGNED != _C_CONTIGUOUS_AND_ALIGNED:
        return 0
    return fields[_HEADER]


@intrinsic
def allocate(typingctx, n):
    """The address of room for n floats, not set, until :func:`free`; MemoryError if there is none."""

    def codegen(context, builder, signature, args):
        return builder.ptrtoint(context.nrt.allocate(builder, builder.mul(args[0], _WORD(8))), _WORD)

    return types.int64(types.int64), codegen


@intrinsic
def free(typingctx, address):
    """Give back what :func:`allocate` gave."""

    def codegen(context, builder, signature, args):
        context.nrt.free(builder, builder.inttoptr(args[0], ir.IntType(8).as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64), codegen


class QuickCall:
    """A compiled function of addresses (integers) and objects, to be called as ``call(...)``."""

    def __init__(self, arguments: tuple[Any, ...], function: Callable[..., Any]):
        self._arguments = arguments
        self._compiled = njit(error_model="numpy")(function)
        _enable_caching(self._compiled, function)
        self.call: Callable[..., Any] = self._first_call

    def _first_call(self, *arguments) -> Any:
        self._compiled.compile(self._arguments)
        [made] = self._compiled.overloads.values()
        self.call = made.entry_point  # type: ignore[attr-defined]
        return self.call(*arguments)


def quick_call(*arguments):
    """Decorator: a :class:`QuickCall` with arguments of these types, ``int64`` and :data:`OBJECT`."""
    return lambda function: QuickCall(arguments, function)
