"""Memory at addresses in compiled kernels; :mod:`daedal.kernels.memory` has the same for interpreted ones."""

from __future__ import annotations

from functools import cache

from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from daedal.kernels.compiler import inlined

_WORD = ir.IntType(64)


@intrinsic
def _float_pointer(typingctx, address):
    def generate(context, builder, signature, args):
        return builder.inttoptr(args[0], ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(types.int64), generate


@intrinsic
def _integer_pointer(typingctx, address):
    def generate(context, builder, signature, args):
        return builder.inttoptr(args[0], _WORD.as_pointer())

    return types.CPointer(types.int64)(types.int64), generate


@intrinsic
def record_at(typingctx, address, dtype):
    record = dtype.dtype

    def generate(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(record))

    return record(types.int64, dtype), generate


@intrinsic
def letters_at(typingctx, address):
    def generate(context, builder, signature, args):
        pair = builder.load(builder.inttoptr(args[0], ir.IntType(16).as_pointer()), align=1)
        return builder.zext(pair, _WORD)

    return types.int64(types.int64), generate


@intrinsic
def address_of(typingctx, record):
    return types.int64(record), lambda context, builder, _, args: builder.ptrtoint(args[0], _WORD)


@intrinsic
def data_of(typingctx, array):
    def generate(context, builder, signature, args):
        view = context.make_array(array)(context, builder, args[0])
        return builder.ptrtoint(view.data, _WORD)

    return types.int64(array), generate


@inlined
def floats(address, n):
    return carray(_float_pointer(address), n)


@inlined
def float_rows(address, rows, n):
    return carray(_float_pointer(address), (rows, n))


@inlined
def float_blocks(address, count, rows, n):
    return carray(_float_pointer(address), (count, rows, n))


@inlined
def integers(address, n):
    return carray(_integer_pointer(address), n)


@inlined
def words(address, n):
    return carray(_integer_pointer(address), n)


@inlined
def integer_rows(address, rows, n):
    return carray(_integer_pointer(address), (rows, n))


@cache
def array_at(kind):
    """A function for kernels: the array with entries of a Numba type at an address, with a tuple of lengths."""

    @intrinsic
    def pointer(typingctx, address):
        def generate(context, builder, signature, args):
            return builder.inttoptr(args[0], context.get_data_type(kind).as_pointer())

        return types.CPointer(kind)(types.int64), generate

    @inlined
    def array(address, shape):
        return carray(pointer(address), shape)

    return array


def local_words(n: int):
    """A function for kernels: the address of n words that live as long as the call."""

    @intrinsic
    def words(typingctx):
        def generate(context, builder, signature, args):
            with builder.goto_entry_block():
                room = builder.alloca(ir.ArrayType(_WORD, n))
            return builder.ptrtoint(room, _WORD)

        return types.int64(), generate

    return words
