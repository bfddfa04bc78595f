"""User functions compiled by Numba, as C functions for kernels; imported only if there are such functions."""

import re
from math import prod
from weakref import WeakKeyDictionary

from numba import carray, cfunc, njit, types
from numba.core.errors import NumbaError

from daedal.errors import InvalidProblemError
from daedal.kernels.callbacks import COMPILED_CODE_RAISED, EVALUATED

_SIGNATURE = types.int32(types.float64, types.CPointer(types.float64))
_pointers: WeakKeyDictionary = WeakKeyDictionary()


def c_pointer(function, layout):
    """Wrap a compiled function in a C function that reads its arguments from a block and writes its result after them.

    The wrapper is created once for a function and a layout, and has the lifetime of the function.
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
        return cfunc(_SIGNATURE)(entry)
    except NumbaError as error:
        name = getattr(function, "__name__", "function")
        raise InvalidProblemError(
            f"the compiled function '{name}' cannot be used with float arrays; it must return a float array of shape "
            f"{shape}. Numba says: {_first_lines(error)}"
        ) from error


def _first_lines(error) -> str:
    """The first lines of Numba's message, without colours and without lines that only name the compiler pass."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()]
    telling = [line for line in lines if line and not line.startswith(("Failed in", "During"))]
    return " ".join(telling[:2])[:400]


def _apply(function, ends, scalars, first_parameter):
    """``function(t, block[...], ..., [scalars], [parameters])`` with arguments from the block; Numba needs explicit
    arity."""
    begins = (0, *ends[:-1])
    arguments = ["t", *[f"block[{a}:{b}]" for a, b in zip(begins, ends, strict=True)]]
    arguments += [f"block[{ends[-1] + i}]" for i in range(scalars)]
    if first_parameter >= 0:
        arguments.append(f"block[{first_parameter}:]")
    return njit(eval(f"lambda t, block: f({', '.join(arguments)})", {"f": function}))
