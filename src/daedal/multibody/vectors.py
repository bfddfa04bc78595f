"""Three-component vectors, workspace, and entry points that accept named tuples, for loops over bodies.

Vectors are tuples, which machine code keeps in registers. :func:`row` reads and :func:`put` writes ``a[i]`` of an array
with rows of three; :func:`product` applies ``m[i]`` of an array of 3 by 3 matrices. All of them can be traced.

Kernels do not allocate. The caller provides a *room*, the address of a block whose first word is the number of words in
use, including this word. No memory is released while a kernel runs; the final value is the total requirement. Upper
bounds are computed in Python next to the kernels. The memory is not initialised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.kernels.compilation import MODE, Entry, part
from daedal.kernels.records import float_blocks, float_rows, floats, integers
from daedal.kernels.signatures import Kind, f64, fields_of, i64

NUMBERS, VECTOR, ROWS, MATRICES = i64[:], f64[:], f64[:, :], f64[:, :, :]
"""Kinds of arguments: integers, floats, rows of floats, consecutive matrices."""


@part
def row(a, i):
    """Row i."""
    return a[i, 0], a[i, 1], a[i, 2]


@part
def put(a, i, v):
    """Write row i."""
    a[i, 0], a[i, 1], a[i, 2] = v[0], v[1], v[2]


@part
def add(a, i, v):
    """Add to row i."""
    a[i, 0] += v[0]
    a[i, 1] += v[1]
    a[i, 2] += v[2]


@part
def plus(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@part
def minus(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@part
def times(s, a):
    return s * a[0], s * a[1], s * a[2]


@part
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@part
def vector_product(a, b):
    """a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@part
def combined(x, y, z, v):
    """The vector with components v along x, y, z."""
    return (
        x[0] * v[0] + y[0] * v[1] + z[0] * v[2],
        x[1] * v[0] + y[1] * v[1] + z[1] * v[2],
        x[2] * v[0] + y[2] * v[1] + z[2] * v[2],
    )


@part
def product(m, i, v):
    """m[i] v."""
    return (
        m[i, 0, 0] * v[0] + m[i, 0, 1] * v[1] + m[i, 0, 2] * v[2],
        m[i, 1, 0] * v[0] + m[i, 1, 1] * v[1] + m[i, 1, 2] * v[2],
        m[i, 2, 0] * v[0] + m[i, 2, 1] * v[1] + m[i, 2, 2] * v[2],
    )


@part
def transposed_product(m, i, v):
    """m[i]^T v."""
    return (
        m[i, 0, 0] * v[0] + m[i, 1, 0] * v[1] + m[i, 2, 0] * v[2],
        m[i, 0, 1] * v[0] + m[i, 1, 1] * v[1] + m[i, 2, 1] * v[2],
        m[i, 0, 2] * v[0] + m[i, 1, 2] * v[1] + m[i, 2, 2] * v[2],
    )


@part
def column(m, i, k):
    """Column k of m[i]."""
    return m[i, 0, k], m[i, 1, k], m[i, 2, k]


@part
def put_column(m, i, k, v):
    """Write column k of m[i]."""
    m[i, 0, k], m[i, 1, k], m[i, 2, k] = v[0], v[1], v[2]


@part
def is_unit(m, i):
    """Whether the rotation m[i] is the identity: among rotations, only the identity has two ones on its diagonal."""
    return m[i, 0, 0] == 1.0 and m[i, 1, 1] == 1.0


@part
def rows_of_parameters(a, b, c, d):
    r"""The rows of :math:`(p_0^2 - e^T e) I + 2 e e^T + 2 p_0 \tilde e` for Euler parameters p_0 = a, e = (b, c, d)."""
    return (
        (a * a + b * b - c * c - d * d, 2.0 * (b * c - a * d), 2.0 * (b * d + a * c)),
        (2.0 * (b * c + a * d), a * a - b * b + c * c - d * d, 2.0 * (c * d - a * b)),
        (2.0 * (b * d - a * c), 2.0 * (c * d + a * b), a * a - b * b - c * c + d * d),
    )


@part
def rows_of_rates(p, at):
    r"""The rows of 2 L(p), with :math:`\omega = 2 L(p) \dot p`, for the Euler parameters that begin at p[at]."""
    a, b, c, d = 2.0 * p[at], 2.0 * p[at + 1], 2.0 * p[at + 2], 2.0 * p[at + 3]
    return (-b, a, d, -c), (-c, -d, a, b), (-d, c, -b, a)


_TYPES = {"f64": np.float64, "i64": np.int64}


class Grouped:
    """An entry point that Python calls like kernels: with named tuples, and with arrays of any layout and dtype.

    The compiled function receives the fields of named tuples in sequence. Traces run the Python function.

    Attributes
    ----------
    entry : Entry
        The compiled function.
    py_func : callable
        The Python function.
    """

    def __init__(self, entry: Entry):
        self.entry, self.py_func = entry, entry.py_func
        self.__name__, self.__doc__ = entry.__name__, entry.__doc__

    def __call__(self, *arguments: Any) -> Any:
        if MODE == "python":
            return self.py_func(*arguments)
        flat: list[Any] = []
        for argument in arguments:
            if isinstance(argument, tuple) and hasattr(argument, "_fields"):
                flat += argument
            else:
                flat.append(argument)
        try:
            return self.entry.call(*flat)
        except TypeError:  # only inputs are converted, since results are written in place
            return self.entry.call(*(np.require(a, _TYPES[k.name], ["C", "A"]) for a, k in zip(flat, self._kinds())))

    def _kinds(self) -> list[Kind]:
        """Kinds of the arguments, with the fields of named tuples."""
        given = self.entry.signature.arguments
        return [one for kind in given for one in (fields_of(kind).values() if isinstance(kind, type) else (kind,))]


def grouped(entry: Any) -> Any:
    """Decorator for an entry point: creates a :class:`Grouped`, or the function itself during compilation."""
    return entry if MODE == "build" else Grouped(entry)


@part
def open_room(room):
    """Initialise an empty room; returns its address."""
    integers(room, 1)[0] = 1
    return room


@part
def taken(room, n):
    """Reserve n words; returns their address."""
    used = integers(room, 1)
    first = used[0]
    used[0] = first + n
    return room + 8 * first


@part
def vector(room, n):
    """Reserve n floats."""
    return floats(taken(room, n), n)


@part
def zeros(room, n):
    """Reserve n floats that are zero."""
    found = floats(taken(room, n), n)
    found[:] = 0.0
    return found


@part
def matrix(room, rows, n):
    """Reserve a matrix with `rows` rows of n floats."""
    return float_rows(taken(room, rows * n), rows, n)


@part
def blocks(room, count, rows, n):
    """Reserve the given number of matrices."""
    return float_blocks(taken(room, count * rows * n), count, rows, n)


@part
def numbers(room, n):
    """Reserve n integers."""
    return integers(taken(room, n), n)
