"""The functions of Python's C API that kernels call by address: object code refers to none of them by name.

All but `PyObject_CallOneArg`, which CPython exports since version 3.9, belong to the stable ABI of Python 3.11, which
newer versions preserve.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from daedal.kernels.compilation import caller
from daedal.kernels.records import ADDRESS, Record, Struct
from daedal.kernels.signatures import f64, i32, i64, void

_FUNCTIONS = (
    "PyObject_CallOneArg",
    "PyFloat_FromDouble",
    "PyFloat_AsDouble",
    "PyLong_AsLongLong",
    "PyLong_FromLongLong",
    "PyBool_FromLong",
    "Py_IncRef",
    "Py_DecRef",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyErr_Fetch",
    "PyErr_NormalizeException",
    "PyErr_Clear",
    "PyErr_Occurred",
    "PyErr_SetObject",
    "PyException_SetTraceback",
    "PyObject_GetBuffer",
    "PyBuffer_Release",
    "PyTuple_Size",
    "PyTuple_GetItem",
)
_OBJECTS = {"none": None, "type_error": TypeError}

PYTHON = Struct("PYTHON", [(name, ADDRESS) for name in (*_FUNCTIONS, *_OBJECTS)])
"""The addresses in this process of the functions and objects of Python's C API."""

call_one_arg = caller(i64(i64, i64))
float_from_double = caller(i64(f64))
float_as_double = caller(f64(i64))
long_as_long_long = caller(i64(i64))
object_from_long = caller(i64(i64))  # PyLong_FromLongLong, PyBool_FromLong
change_count = caller(void(i64))  # Py_IncRef, Py_DecRef
gil_ensure = caller(i32())
gil_release = caller(void(i32))
save_thread = caller(i64())
restore_thread = caller(void(i64))
fetch_error = caller(void(i64, i64, i64))  # PyErr_Fetch, PyErr_NormalizeException
clear_error = caller(void())
error_occurred = caller(i64())
set_error = caller(void(i64, i64))
set_traceback = caller(i32(i64, i64))
get_buffer = caller(i32(i64, i64, i32))
release_buffer = caller(void(i64))
tuple_size = caller(i64(i64))
tuple_item = caller(i64(i64, i64))


@cache
def python_api() -> Record:
    """The record of type :data:`PYTHON` of this process."""
    functions: dict[str, Any] = {
        name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in _FUNCTIONS
    }
    return Record(PYTHON, **functions | {name: id(value) for name, value in _OBJECTS.items()})
