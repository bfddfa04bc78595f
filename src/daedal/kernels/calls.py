"""Calls of entries from Python with numbers and arrays, in half a microsecond.

Arguments are read by Python's C API: numbers by conversion, arrays by the buffer protocol of NumPy and others; the
layout of NumPy's objects is not used. The words that hold the arguments are passed to the compiled function with the
GIL released, so that other threads continue.

Arrays must be C-contiguous, with entries of the declared type; otherwise a TypeError is raised. Read-only arrays are
copied; changing one in the function raises a ValueError.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from daedal.kernels.compilation import Entry, caller, entry, part
from daedal.kernels.python_api import (
    PYTHON,
    change_count,
    error_occurred,
    float_as_double,
    float_from_double,
    get_buffer,
    long_as_long_long,
    object_from_long,
    python_api,
    release_buffer,
    restore_thread,
    save_thread,
    set_error,
    tuple_item,
    tuple_size,
)
from daedal.kernels.records import (
    ADDRESS,
    INTEGER,
    Record,
    Struct,
    at,
    floats,
    integers,
    letters_at,
    local_words,
    record_at,
)
from daedal.kernels.signatures import Kind, Signature, fields_of, i64, void

MOST_WORDS, MOST_ARRAYS = 128, 40
_BUFFER = 10  # words of a Py_buffer: buf, obj, len, itemsize, (readonly, ndim), format, shape, strides, ...
_WRITABLE_C_CONTIGUOUS_WITH_FORMAT = 0x3D
_INTEGER, _FLOAT, _BOOLEAN, _NOTHING = 0, 1, 2, 3
_CODES = {"i64": _INTEGER, "f64": _FLOAT, "boolean": _BOOLEAN, "void": _NOTHING}
_NUMBER = -1  # the number of axes of scalars

CALLED = Struct(
    "CALLED",
    [
        ("api", at(PYTHON)),
        ("function", ADDRESS),
        ("count", INTEGER),
        ("arguments", i64["2 * count"]),  # number type and axes of each argument
        ("result", INTEGER),
        # messages as Python strings: one for each argument, and one for the number of arguments
        ("refusals", i64["count + 1"]),
    ],
)
"""The data needed to call an entry from Python."""

_call = caller(void(i64))
_room_for_words = local_words(MOST_WORDS)
_room_for_buffers = local_words(MOST_ARRAYS * _BUFFER)


@entry(i64(i64, i64))
def call_from_python(record, arguments):
    """Call the entry of a record of type CALLED with a tuple of arguments; the result is a new reference, or 0."""
    called = record_at(record, CALLED)
    api = called.api
    words, buffers = _room_for_words(), _room_for_buffers()
    result, held = 0, 0
    if tuple_size(api.PyTuple_Size, arguments) != called.count:
        _refuse(api, called, called.count)
    else:
        read, held = _read(api, called, arguments, words, buffers)
        if read:
            state = save_thread(api.PyEval_SaveThread)
            _call(called.function, words)
            restore_thread(api.PyEval_RestoreThread, state)
            result = _result(api, called.result, words)
    for i in range(held):
        release_buffer(api.PyBuffer_Release, buffers + 8 * _BUFFER * i)
    return result


@part
def _refuse(api, called, which):
    set_error(api.PyErr_SetObject, api.type_error, called.refusals[which])


@part
def _read(api, called, arguments, words, buffers):
    """Write the words of all arguments; returns whether this succeeded, and the number of buffers held."""
    kinds, at, held = called.arguments, 0, 0
    for i in range(called.count):
        given, code, axes = tuple_item(api.PyTuple_GetItem, arguments, i), kinds[2 * i], kinds[2 * i + 1]
        if axes == _NUMBER:
            if code == _FLOAT:
                value = float_as_double(api.PyFloat_AsDouble, given)
                floats(words, MOST_WORDS)[at] = value
                failed = value == -1.0
            else:
                whole = long_as_long_long(api.PyLong_AsLongLong, given)
                integers(words, MOST_WORDS)[at] = whole
                failed = whole == -1
            if failed and error_occurred(api.PyErr_Occurred) != 0:
                return False, held
            at += 1
            continue
        buffer = buffers + 8 * _BUFFER * held
        if get_buffer(api.PyObject_GetBuffer, given, buffer, _WRITABLE_C_CONTIGUOUS_WITH_FORMAT) != 0:
            _refuse(api, called, i)
            return False, held
        held += 1
        fields = integers(buffer, _BUFFER)
        if fields[4] >> 32 != axes or not _fits(fields[5], fields[3], code):
            _refuse(api, called, i)
            return False, held
        target, shape = integers(words, MOST_WORDS), integers(fields[6], axes)
        target[at] = fields[0]
        for k in range(axes):
            target[at + 1 + k] = shape[k]
        at += 1 + axes
    return True, held


@part
def _fits(form, size, code):
    """Whether the format of a buffer, one letter, matches the entries: 'd'; 'l' or 'q' of eight bytes; '?'."""
    text = letters_at(form)
    if code == _FLOAT:
        return text == 0x64
    if code == _INTEGER:
        return size == 8 and (text == 0x6C or text == 0x71)
    return text == 0x3F


@part
def _result(api, code, words):
    if code == _FLOAT:
        return float_from_double(api.PyFloat_FromDouble, floats(words, 1)[0])
    if code == _INTEGER:
        return object_from_long(api.PyLong_FromLongLong, integers(words, 1)[0])
    if code == _BOOLEAN:
        return object_from_long(api.PyBool_FromLong, integers(words, 1)[0])
    change_count(api.Py_IncRef, api.none)
    return api.none


# --- in Python --------------------------------------------------------------------------------------------------------


def callable_from_python(compiled: Entry) -> Callable[..., Any]:
    """A Python function that calls an entry with numbers and arrays. Fields of a group are separate arguments."""
    described = list(_flat(compiled.signature, compiled.py_func))
    words = sum(1 + kind.axes for _, kind in described)
    arrays = sum(kind.axes > 0 for _, kind in described)
    if words > MOST_WORDS or arrays > MOST_ARRAYS:
        raise TypeError(f"{compiled.symbol} has more arguments than calls from Python support")
    kinds = np.array([(_CODES[kind.name], kind.axes or _NUMBER) for _, kind in described], dtype=np.int64).ravel()
    messages = [f"{compiled.__name__}: {name} must be a contiguous array {kind}" for name, kind in described]
    messages.append(f"{compiled.__name__} takes {len(described)} arguments")
    record = Record(
        CALLED,
        api=python_api(),
        function=compiled.address,
        count=len(described),
        arguments=kinds,
        result=_CODES[compiled.signature.result.name],
        refusals=np.array([id(message) for message in messages], dtype=np.int64),
    )
    enter = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_int64, ctypes.py_object)(call_from_python.address)
    address = record.address

    def call(*arguments):
        try:
            return enter(address, arguments)
        except TypeError:
            copies = [argument.copy() if _is_read_only(argument) else argument for argument in arguments]
            if all(copy is argument for copy, argument in zip(copies, arguments, strict=True)):
                raise
        result = enter(address, tuple(copies))
        for (name, _), copy, argument in zip(described, copies, arguments, strict=True):
            if copy is not argument and copy.tobytes() != argument.tobytes():
                raise ValueError(f"{compiled.__name__}: {name} is read-only, but the function writes it")
        return result

    call.alive = record, messages  # type: ignore[attr-defined]
    call.__name__, call.__doc__ = compiled.__name__, compiled.__doc__
    return call


def _is_read_only(argument: Any) -> bool:
    return isinstance(argument, np.ndarray) and not argument.flags.writeable and argument.flags.c_contiguous


def _flat(signature: Signature, function: Callable[..., Any]) -> Iterator[tuple[str, Kind]]:
    """Names and kinds of all arguments, with groups expanded into their fields."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    for name, kind in zip(names, signature.arguments, strict=True):
        if isinstance(kind, type):
            yield from ((f"{name}.{field}", one) for field, one in fields_of(kind).items())
        else:
            yield name, kind
