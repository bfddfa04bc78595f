"""Eight numbers at a time in compiled kernels; see :mod:`daedal.kernels.lanes`."""

import operator

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model
from numba.np.arrayobj import make_array

LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_CODE = f"v{LANES}f64"


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name=f"lanes({LANES})")


lanes = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _VECTOR)


def _pointer(context, builder, signature, args):
    row = make_array(signature.args[0])(context, builder, args[0])
    return builder.bitcast(row.data, _VECTOR.as_pointer())


@intrinsic
def at(typingctx, row):
    """The value in a row of an array."""

    def codegen(context, builder, signature, args):
        return builder.load(_pointer(context, builder, signature, args), align=8)

    return lanes(row), codegen


@intrinsic
def put(typingctx, row, value):
    """Write a value to a row."""

    def codegen(context, builder, signature, args):
        builder.store(args[1], _pointer(context, builder, signature, args), align=8)
        return context.get_dummy_value()

    return types.void(row, lanes), codegen


def _spread(builder, number):
    """The same number in all lanes."""
    index = ir.IntType(32)
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, index(0))
    zeros = ir.Constant(ir.VectorType(index, LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), zeros)


@intrinsic
def spread(typingctx, number):
    """The same number in all lanes."""

    def codegen(context, builder, signature, args):
        return _spread(builder, args[0])

    return lanes(types.float64), codegen


def _binary(operation, name):
    @intrinsic
    def apply(typingctx, a, b):
        def codegen(context, builder, signature, args):
            values = [x if kind is lanes else _spread(builder, x) for x, kind in zip(args, signature.args)]
            return getattr(builder, name)(*values)

        return lanes(a, b), codegen

    @overload(operation)
    def choose(a, b):
        if lanes in (a, b) and {a, b} <= {lanes, types.float64}:
            return lambda a, b: apply(a, b)
        return None


for _operation, _name in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _binary(_operation, _name)


def _function(name):
    @intrinsic
    def apply(typingctx, a):
        def codegen(context, builder, signature, args):
            kind = ir.FunctionType(_VECTOR, [_VECTOR])
            return builder.call(
                builder.module.globals.get(f"{name}.{_CODE}") or ir.Function(builder.module, kind, f"{name}.{_CODE}"),
                args,
            )

        return lanes(lanes), codegen

    return apply


absolute = _function("llvm.fabs")
root = _function("llvm.sqrt")


@intrinsic
def where_less(typingctx, a, b, if_less, otherwise):
    """In each lane the first value if a < b there, otherwise the second, also if a or b is NaN."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return lanes(lanes, lanes, lanes, lanes), codegen


@intrinsic
def all_less(typingctx, a, b):
    """Whether a < b in all lanes."""

    def codegen(context, builder, signature, args):
        found = builder.bitcast(builder.fcmp_ordered("<", args[0], args[1]), ir.IntType(LANES))
        return builder.icmp_unsigned("==", found, ir.IntType(LANES)(2**LANES - 1))

    return types.boolean(lanes, lanes), codegen
