"""Working memory inside of kernels: vectors and matrices, cut one behind the other from a block of words.

Kernels do not allocate. Who calls one provides a *room*, the address of a block whose first word says how many of its
words are in use, itself included. Nothing is given back while the kernel runs: what the word says in the end is what
the kernel needed. How many words these are at most is computed in Python, beside the kernels. The memory is not set.
"""

from daedal.kernels.compilation import part
from daedal.kernels.records import float_blocks, float_rows, floats, integers


@part
def open_room(room):
    """Begin with a room in which nothing is in use; its address."""
    integers(room, 1)[0] = 1
    return room


@part
def taken(room, n):
    """The address of n words."""
    used = integers(room, 1)
    first = used[0]
    used[0] = first + n
    return room + 8 * first


@part
def vector(room, n):
    """n floats."""
    return floats(taken(room, n), n)


@part
def zeros(room, n):
    """n floats that are zero."""
    found = floats(taken(room, n), n)
    found[:] = 0.0
    return found


@part
def matrix(room, rows, n):
    """A matrix with `rows` rows of n floats."""
    return float_rows(taken(room, rows * n), rows, n)


@part
def blocks(room, count, rows, n):
    """So many matrices."""
    return float_blocks(taken(room, count * rows * n), count, rows, n)


@part
def numbers(room, n):
    """n integers."""
    return integers(taken(room, n), n)
