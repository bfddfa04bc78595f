"""Compilation of kernels by Numba; imported only by compiling processes (``DAEDAL_KERNELS=build``).

A unit is compiled as a whole: Numba translates each function once, without optimising it separately; the unoptimised
modules of all entries and of the parts they use are linked into one, which LLVM optimises and compiles for each
processor level. Numba's default would optimise the library of every part twice, with all its callees linked in, and
emit machine code for it, although parts are never called from outside.

Kernels neither allocate nor raise. Views of memory at an address have no owner, so that references to arrays are not
counted; an allocation is a compilation error; and :func:`check_symbols` rejects object code with unknown symbols.
"""

from __future__ import annotations

import importlib
import os
import pickle
import re
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

os.environ["NUMBA_DISABLE_INTEL_SVML"] = "1"  # users may not have SVML's functions

import llvmlite
import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import types
from numba.core import codegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import LoweringError
from numba.core.runtime.context import NRTContext
from numba.core.typing.templates import Signature as NumbaSignature
from numba.extending import intrinsic

from daedal.kernels.levels import level_of_unit, machine_for
from daedal.kernels.signatures import Kind, Signature, fields_of
from daedal.kernels.units import RAISED, Compiled, key

_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_NUMBA = {
    "f64": types.float64,
    "i64": types.int64,
    "i32": types.int32,
    "boolean": types.boolean,
    "void": types.void,
}
_LLVM = {
    "f64": ir.DoubleType(),
    "i64": ir.IntType(64),
    "i32": ir.IntType(32),
    "boolean": ir.IntType(8),
    "void": ir.VoidType(),
}

# Symbols allowed in object code besides entries of other units: the C library, and LAPACK by the names of `externals`.
_KNOWN = frozenset(
    """sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p pow sqrt
    cbrt hypot fmod floor ceil trunc rint round nextafter ldexp frexp erf erfc tgamma lgamma fabs copysign fma sincos
    memcpy memset memmove bzero memset_pattern16 __chkstk _fltused""".split()
)
_PREFIXES = ("daedal.", "daedal_")


# --- the decorators ---------------------------------------------------------------------------------------------------


class _Declared:
    """An entry while a unit is compiled: the function, and its signature."""

    def __init__(self, function: Callable[..., Any], signature: Signature, dispatcher):
        self.function, self.signature, self.dispatcher = function, signature, dispatcher

    @property
    def symbol(self) -> str:
        return f"{self.function.__module__}.{self.function.__name__}"


_declared: dict[str, list[_Declared]] = {}


def part(function):
    """A part of kernels, called only from compiled functions."""
    return numba.njit(**_OPTIONS)(function)


def inlined(function):
    """A part that is copied into its callers before compilation; for one-liners, which then compile faster."""
    return numba.njit(inline="always")(function)


def entry(signature: Signature):
    """Decorator: a function called from outside.

    Other functions call it by its symbol if its arguments are numbers, otherwise as a part.
    """

    def declare(function):
        dispatcher = part(function)
        made = _Declared(function, signature, dispatcher)
        _declared.setdefault(function.__module__, []).append(made)
        if signature.is_plain:
            return types.ExternalFunction(made.symbol, _numba_signature(signature))
        return dispatcher

    return declare


def _numba_signature(signature: Signature) -> NumbaSignature:
    return _NUMBA[signature.result.name](*[_numba_type(kind) for kind in signature.arguments])


def _numba_type(kind: Kind | type) -> types.Type:
    if isinstance(kind, type):
        return types.NamedTuple([_numba_type(field) for field in fields_of(kind).values()], kind)
    base = _NUMBA[kind.name]
    return types.Array(base, kind.axes, "C") if kind.axes else base


def caller(signature: Signature):
    """A function for kernels that calls the C function with this signature at an address: ``call(address, ...)``."""
    wanted = _numba_signature(signature)
    result = _LLVM[signature.result.name]
    function_type = ir.FunctionType(result, [_LLVM[kind.name] for kind in signature.arguments])

    def generate(context, builder, _, args):
        found = builder.call(builder.inttoptr(args[0], function_type.as_pointer()), args[1:])
        return context.get_dummy_value() if wanted.return_type == types.void else found

    made = wanted.return_type(types.int64, *wanted.args), generate
    arguments = ", ".join(f"argument_{i}" for i in range(len(wanted.args)))
    return intrinsic(eval(f"lambda typingctx, address, {arguments}: made", {"made": made}))  # explicit arity


# --- functions of arrays, called from Python with one address ---------------------------------------------------------


def _unpacking(declared: _Declared):
    """A function of the address of words that hold numbers, and the address and lengths of each array.

    The result, if any, is stored in the first word.
    """
    from daedal.kernels import records

    lines, arguments, at = [], [], 0
    names: dict[str, Any] = {"function": declared.dispatcher, "integers": records.integers, "floats": records.floats}
    for i, kind in enumerate(declared.signature.arguments):
        if isinstance(kind, type):
            names[f"group_{i}"] = kind
            made = []
            for field in fields_of(kind).values():
                made.append(_one_argument(field, at, names))
                at += 1 + field.axes
            arguments.append(f"group_{i}({', '.join(made)})")
        else:
            arguments.append(_one_argument(kind, at, names))
            at += 1 + kind.axes
    call = f"function({', '.join(arguments)})"
    result = declared.signature.result.name
    lines = [f"    words, numbers = integers(address, {max(at, 1)}), floats(address, {max(at, 1)})"]
    lines.append({"void": f"    {call}", "f64": f"    numbers[0] = {call}"}.get(result, f"    words[0] = {call}"))
    exec("def unpacked(address):\n" + "\n".join(lines), names)
    return part(names["unpacked"])


def _one_argument(kind: Kind, at: int, names: dict[str, Any]) -> str:
    """The expression for an argument whose words start at the given position."""
    if not kind.axes:
        return f"numbers[{at}]" if kind.name == "f64" else f"words[{at}]"
    from daedal.kernels.compiler_memory import array_at

    name = f"array_{kind.name}_{kind.axes}"
    names[name] = array_at(_NUMBA[kind.name])
    lengths = "".join(f"words[{at + 1 + k}], " for k in range(kind.axes))
    return f"{name}(words[{at}], ({lengths}))"


# --- Numba's pipeline, without steps that parts do not need -----------------------------------------------------------


def _finish_unlinked(self):
    """Skip the linking of a library, since :func:`_link` links whole units."""
    self._codegen._check_llvm_bugs()
    self._raise_if_finalized()
    self._finalize_dynamic_globals()
    self._finalized = True


codegen.CPUCodeLibrary.finalize = _finish_unlinked  # type: ignore[method-assign]
codegen.CPUCodeLibrary._optimize_functions = lambda self, module: setattr(  # type: ignore[method-assign]
    module, "data_layout", self._codegen._data_layout
)


def _refuse_allocation(self, *arguments, **options):
    raise LoweringError("kernels do not allocate: use working memory from a record")


for _name in ("incref", "decref", "free"):
    setattr(NRTContext, _name, lambda self, *arguments: None)
for _name in [name for name in vars(NRTContext) if "alloc" in name]:
    setattr(NRTContext, _name, _refuse_allocation)
codegen.JITCPUCodegen.set_env = lambda self, name, env: None  # type: ignore[method-assign]


def _reached(library, found: dict[int, Any]):
    if id(library) not in found:
        found[id(library)] = library
        for other in library._linking_libraries:
            _reached(other, found)


def _wrapped(dispatcher, signature: NumbaSignature, symbol: str):
    """An LLVM module with the C function of an entry, and the libraries that it needs."""
    dispatcher.compile(signature)
    [compiled] = [one for one in dispatcher.overloads.values() if one.signature.args == signature.args]
    context, described = compiled.target_context, compiled.fndesc
    module = compiled.library._codegen._create_empty_module(symbol)
    inner = ir.Function(
        module, context.call_conv.get_function_type(described.restype, described.argtypes), described.llvm_func_name
    )
    kinds = [context.get_value_type(kind) for kind in signature.args]
    is_void = signature.return_type == types.void
    result = ir.VoidType() if is_void else context.get_data_type(signature.return_type)
    outer = ir.Function(module, ir.FunctionType(result, kinds), symbol)
    builder = ir.IRBuilder(outer.append_basic_block("entry"))
    status, value = context.call_conv.call_function(
        builder, inner, described.restype, described.argtypes, list(outer.args)
    )
    with builder.if_then(status.is_error, likely=False):
        builder.call(ir.Function(module, ir.FunctionType(ir.VoidType(), []), RAISED), [])
    if is_void:
        builder.ret_void()
    else:
        builder.ret(context.get_value_as_data(builder, described.restype, value))
    return llvm.parse_assembly(str(module)), compiled.library


def _c_modules(unit: str) -> Iterator[tuple[str, Any, Any]]:
    """Symbol, module and library of each entry of a unit."""
    for declared in _declared.get(unit, []):
        if declared.signature.is_plain:
            signature, dispatcher = _numba_signature(declared.signature), declared.dispatcher
        else:
            signature, dispatcher = types.void(types.int64), _unpacking(declared)
        yield declared.symbol, *_wrapped(dispatcher, signature, declared.symbol)


@global_compiler_lock
def _linked(unit: str) -> tuple[list[str], bytes]:
    """The symbols of the entries of a unit, and the bitcode of everything they need, in one module."""
    importlib.import_module(unit)
    symbols, whole = [], llvm.parse_assembly("")
    libraries: dict[int, Any] = {}
    for symbol, module, library in _c_modules(unit):
        symbols.append(symbol)
        whole.triple, whole.data_layout = module.triple, library._codegen._data_layout
        whole.link_in(module)
        _reached(library, libraries)
    for library in libraries.values():
        whole.link_in(llvm.parse_bitcode(library._final_module.as_bitcode()))
    for function in whole.functions:
        if not function.is_declaration and function.name not in symbols:
            function.linkage = "internal"
    for variable in whole.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    return symbols, whole.as_bitcode()


def _optimised(bitcode: bytes, machine) -> Any:
    module = llvm.parse_bitcode(bitcode)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    if any(function.name == RAISED for function in module.functions):
        # Some callees turn out not to raise only after their callers have been optimised: run these passes again.
        once_more = llvm.create_new_module_pass_manager()
        once_more.add_ipsccp_pass()
        once_more.add_simplify_cfg_pass()
        once_more.add_global_dead_code_eliminate_pass()
        once_more.add_strip_dead_prototype_pass()
        once_more.run(module, builder)
    return module


def compile_unit(unit: str, levels: Iterable[str] | None = None) -> dict[str, Compiled]:
    """The object code of a unit by processor level; by default for the level of this machine."""
    begun = time.perf_counter()
    symbols, bitcode = _linked(unit)
    translated = time.perf_counter()
    made = {}
    for level in levels or [level_of_unit(unit)]:
        machine = machine_for(level)
        module = _optimised(bitcode, machine)
        declared = {f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")}
        if RAISED in declared:
            raise ImportError(
                f"{unit} may raise an exception, which machine code cannot pass on: {'; '.join(_raised(module))}"
            )
        code = machine.emit_object(module)
        mentioned = sorted(declared | undefined_symbols(code))
        check_symbols(unit, mentioned)
        made[level] = Compiled(
            unit=unit,
            level=level,
            key=key(unit, level),
            triple=machine.triple,
            entries=symbols,
            mentioned=mentioned,
            versions={"numba": numba.__version__, "llvmlite": llvmlite.__version__},
            seconds=[translated - begun, time.perf_counter() - translated],
            code=code,
        )
    return made


def undefined_symbols(code: bytes) -> set[str]:
    """The external symbols in ELF object code, including those added by code generation; none for other formats."""
    if code[:4] != b"\x7fELF":
        return set()
    (table,), (size, count) = struct.unpack_from("<Q", code, 0x28), struct.unpack_from("<HH", code, 0x3A)
    # type, offset, size and link of each section
    sections = [struct.unpack_from("<4xI16xQQI", code, table + k * size) for k in range(count)]
    found = set()
    for kind, offset, length, link in sections:
        if kind == 2:  # symbols of 24 bytes: name, info, section, value, size
            for at in range(offset, offset + length, 24):
                name, section = struct.unpack_from("<I2xH", code, at)
                if name and section == 0:
                    begin = sections[link][1] + name
                    found.add(code[begin : code.index(b"\0", begin)].decode())
    return found - {"_GLOBAL_OFFSET_TABLE_"}


def _raised(module) -> Iterator[str]:
    """The exceptions left in optimised code, with their positions, from Numba's pickles of them."""
    for variable in module.global_variables:
        if variable.name.startswith(".const.pickledata"):
            text = re.search(r'c"(.*?)"(?:, align|$)', str(variable).strip())
            raw = re.sub(rb"\\([0-9A-Fa-f]{2})", lambda m: bytes([int(m[1], 16)]), text[1].encode()) if text else b""
            try:
                yield repr(pickle.loads(raw))
            except Exception as error:
                yield f"{variable.name} ({error!r})"


def check_symbols(unit: str, mentioned: Iterable[str]):
    """Reject object code that would need Python, Numba's runtime, or anything else that users may not have."""
    unknown = [name for name in mentioned if name not in _KNOWN and not name.startswith(_PREFIXES)]
    if unknown:
        raise ImportError(f"{unit} refers to {', '.join(unknown)}: kernels may only use what all machines have")
