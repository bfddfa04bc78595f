"""Memory at addresses in compiled kernels; :mod:`daedal.kernels.memory` is the version for interpreted ones."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core.datamodel.models import OpaqueModel, RecordModel
from numba.core.datamodel.registry import register_default
from numba.core.imputils import lower_constant, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.core.typing.typeof import typeof_impl
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array, record_getattr
from numba.np.numpy_support import from_dtype

from daedal.kernels.compiler import inlined
from daedal.kernels.structures import Inline, Reference, Struct, evaluate, is_view

_WORD = ir.IntType(64)
_NUMBERS = {"f64": types.float64, "i64": types.int64}


# --- records of declared structures -----------------------------------------------------------------------------------


class RecordType(types.Record):
    """A record of a structure: Numba's record, with views of its arrays and the records it refers to as attributes."""

    def __init__(self, structure: Struct):
        fields: Any = [
            (name, {"type": _stored(kind), "offset": structure.offset(name)}) for name, kind in structure.kinds.items()
        ]
        super().__init__(fields, structure.itemsize, False)
        self.structure, self.name = structure, f"{structure.name} {id(structure):x}"

    @property
    def mangling_args(self):
        return f"Record_{self.structure.name}", ()


class _StructureType(types.Type):
    """The type of a structure itself, an argument of :func:`record_at`."""

    def __init__(self, structure: Struct):
        self.record = record_type(structure)
        super().__init__(f"structure of {self.record.name}")


@cache
def record_type(structure: Struct) -> RecordType:
    return RecordType(structure)


def _stored(kind):
    """The stored type of a field of this kind."""
    if isinstance(kind, Struct):
        return record_type(kind)
    if isinstance(kind, Inline):
        return types.NestedArray(_NUMBERS[kind.number.name], kind.shape)
    if isinstance(kind, Reference) or is_view(kind):
        return types.int64
    return _NUMBERS.get(getattr(kind, "name", ""), None) or from_dtype(np.dtype(kind))


register_default(RecordType)(RecordModel)
register_default(_StructureType)(OpaqueModel)


@typeof_impl.register(Struct)
def _typeof(value, c):
    return _StructureType(value)


@lower_constant(_StructureType)
def _constant(context, builder, kind, value):
    return context.get_dummy_value()


@infer_getattr
class _Attributes(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, record, name):
        kind = record.structure.kinds.get(name)
        if isinstance(kind, Reference):
            return record_type(kind.target)
        return types.Array(_NUMBERS[kind.name], kind.axes, "C") if is_view(kind) else None


@lower_getattr_generic(RecordType)
def _get_field(context, builder, record, value, name):
    kind = record.structure.kinds[name]
    if not is_view(kind) and not isinstance(kind, Reference):
        return record_getattr(context, builder, record, value, name)
    address = record_getattr(context, builder, record, value, name)
    if isinstance(kind, Reference):
        return builder.inttoptr(address, context.get_value_type(record_type(kind.target)))

    def field(path):
        here, found = record, value
        for step in path:
            inside = here.structure.kinds[step]
            found = _get_field(context, builder, here, found, step)
            here = record_type(inside.target if isinstance(inside, Reference) else inside) if step != path[-1] else here
        return found

    def combine(operation, left, right):
        return getattr(builder, operation)(left, right, flags=["nsw"])

    number = _NUMBERS[kind.name]
    shape = [evaluate(length, field, _WORD, combine) for length in kind.shape]
    strides = [_WORD(8)]
    for length in reversed(shape[1:]):
        strides.insert(0, combine("mul", strides[0], length))
    view = make_array(types.Array(number, kind.axes, "C"))(context, builder)
    data = builder.inttoptr(address, context.get_data_type(number).as_pointer())
    populate_array(view, data=data, shape=shape, strides=strides, itemsize=_WORD(8), meminfo=None)
    return view._getvalue()


# --- memory at addresses ----------------------------------------------------------------------------------------------


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
def record_at(typingctx, address, structure):
    def generate(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(structure.record))

    return structure.record(types.int64, structure), generate


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
    """A function for kernels: the address of n words that are valid during the call."""

    @intrinsic
    def words(typingctx):
        def generate(context, builder, signature, args):
            with builder.goto_entry_block():
                room = builder.alloca(ir.ArrayType(_WORD, n))
            return builder.ptrtoint(room, _WORD)

        return types.int64(), generate

    return words
