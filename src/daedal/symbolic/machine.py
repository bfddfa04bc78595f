"""Machine code for nodes of a graph, as functions that kernels call by address.

The block of a function has the layout of kernels (`kernels/callbacks.py`)::

    [ arguments, one after the other | results, matrices column by column | parameters | workspace ]

and the function is called with the time and the address of the block. Code is generated once for all programs that
differ only in numbers; it is cached in the process and on disk, and loaded with the numbers of each program.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from daedal.common import first_use, object_store
from daedal.symbolic.emission import Program, emit
from daedal.symbolic.graph import Graph
from daedal.symbolic.instructions import ENTRY, MARK, Constants
from daedal.symbolic.table_programs import TableProgram, loops, table_program
from daedal.symbolic.untraceable import Untraceable

RAISES, BAD_PIVOT = 1, 2
"""Status codes: 1 for a fallback to Python, as for other compiled functions; 2 for a bad pivot."""
MOST_STRAIGHT = 20_000
"""Largest number of operations emitted as single instructions; larger graphs are computed by loops over tables
(:mod:`daedal.symbolic.table_programs`), which need hardly any code generation. Chosen empirically."""
_VERSION = "2"
_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, ctypes.c_void_p)
_LOCK = threading.Lock()


class MachineFunction:
    """Results of a graph as machine code, ``status = f(t, block)``.

    Attributes
    ----------
    address : int
        Address of the C function ``int32 f(double t, double* block)``.
    size : int
        Number of floats in the block.
    slices : dict
        Slices of arguments, results and parameters in the block.
    shapes : dict
        Shapes of the results.
    operations : int
        Number of operations of a call.
    """

    def __init__(
        self,
        code: _Code | BoundFunction,
        program: Program | TableProgram,
        shapes: dict[str, tuple[int, ...]],
        slices: dict[str, slice],
        end: int,
    ):
        self._code, self.shapes, self.slices = code, shapes, slices
        self.address, self.size, self.operations = code.address, end + program.workspace, program.operations
        self.results = tuple(shapes)

    def __call__(self, t: float, **arguments) -> tuple[int, dict[str, np.ndarray]]:
        """Call from Python; return status and results."""
        block = np.zeros(self.size)
        for name, values in arguments.items():
            block[self.slices[name]] = values
        status = _SIGNATURE(self.address)(t, block.ctypes.data)
        return status, {
            name: block[self.slices[name]].reshape(shape, order="F").copy() for name, shape in self.shapes.items()
        }


def compile_function(
    graph: Graph,
    arguments: Mapping[str, int],
    results: Mapping[str, Any],
    parameters: Mapping[str, int] | None = None,
    statuses: Sequence[tuple[int, int]] = (),
    time: str = "t",
    *,
    skip_zeros: bool = False,
    quick: bool = False,
    lanes: bool = False,
) -> MachineFunction:
    """Compile results to machine code.

    Parameters
    ----------
    graph : Graph
        The graph.
    arguments : mapping
        Names and lengths of the vectors at the beginning of the block.
    results : mapping
        Names and arrays of nodes, vectors or matrices.
    parameters : mapping, optional
        Names and lengths of the vectors after the results.
    statuses : sequence of (condition, code)
        The status is the code of the first condition that holds, otherwise 0.
    time : str
        Name of the scalar argument that is passed by value.
    skip_zeros : bool
        Whether identically vanishing results are not written; the block must hold zeros there.
    quick : bool
        Whether sines and cosines may differ from those of the C library in the last digit.
    lanes : bool
        Whether each number is a vector with one ensemble member per lane (:mod:`daedal.symbolic.emission`); "status" is
        then among the slices.
    """
    slices: dict[str, slice] = {}
    end = 0
    arrays = {name: np.asarray(nodes, dtype=np.int64) for name, nodes in results.items()}
    sizes = {**arguments, **{name: nodes.size for name, nodes in arrays.items()}, **(parameters or {})}
    for name, n in sizes.items():
        slices[name] = slice(end, end + n)
        end += n
    if lanes:
        slices["status"] = slice(end, end + 1)
        end += 1
    read = {**arguments, **(parameters or {})}
    places = {graph.argument(name, k): slices[name].start + k for name, n in read.items() for k in range(n)}
    targets = [
        (slices[name].start + k, node)
        for name, nodes in arrays.items()
        for k, node in enumerate(nodes.ravel(order="F").tolist())
        if not (skip_zeros and graph.is_zero(node))
    ]
    needed = [(condition, code) for condition, code in statuses if condition != graph.false]
    stated = graph, graph.argument(time, 0), places, targets, needed, end
    shapes = {name: nodes.shape for name, nodes in arrays.items()}
    if graph.count([node for _, node in targets]) > MOST_STRAIGHT:
        if lanes:
            raise Untraceable(f"takes more than {MOST_STRAIGHT} operations", "")
        tables = table_program(*stated)
        code = BoundFunction(_loaded(loops()), tables.integers, tables.floats)
        return MachineFunction(code, tables, shapes, slices, end)
    program = emit(*stated, quick=quick, lanes=lanes)
    return MachineFunction(_loaded(program.text, program.constants), program, shapes, slices, end)


def may_raise(graph: Graph, nodes: Sequence[int], raises: int) -> int:
    """The condition for falling back to Python: the function raises, or a result is not finite.

    Results that only overflow can make infinite are not checked, since callers detect overflow.
    """
    check = graph.zero
    for i in sorted({i for i in nodes if not graph.regular[i]}):
        check = graph.add(check, graph.multiply(i, graph.zero))
    return graph.either(raises, graph.apply("not_equal", check, graph.zero))


# --- code generation --------------------------------------------------------------------------------------------------


class _Code:
    """Loaded code, which is freed with this object."""

    def __init__(self, code: bytes):
        number, library = next(_LOADED), llvm.JITLibraryBuilder()
        library.add_object_img(code).add_current_process().export_symbol(ENTRY)
        linker = _linker(number // _OF_A_LINKER)
        self._library = library.link(linker, f"daedal {number}")
        self._library._linker = linker  # freed after its libraries, for each of which it retains about 30 kB
        self.address = self._library[ENTRY]


class BoundFunction:
    """``f(t, block)`` from a compiled ``f(t, block, *further)``; the additional arrays are kept alive.

    Attributes
    ----------
    address : int
        Address of the C function ``int32 f(double t, double* block)``.
    """

    def __init__(self, function: Any, *further: np.ndarray | int):
        self._kept = function, further
        addresses = [x if isinstance(x, int) else x.ctypes.data for x in further]
        addresses.insert(0, function.address)
        self._code = _loaded(_caller(len(further)), struct.pack(f"<{len(addresses)}q", *addresses))
        self.address = self._code.address


def _caller(n: int) -> str:
    """A module whose ``ENTRY(t, block)`` calls another function with n additional addresses."""
    constants = Constants()
    loads = [f"  %a{k} = load ptr, ptr {constants.pointer((float(k),))}" for k in range(n + 1)]
    further = "".join(f", ptr %a{k + 1}" for k in range(n))
    lines = [
        *constants.lines(),
        f"define i32 @{ENTRY}(double %t, ptr %block) {{",
        *loads,
        f"  %status = call i32 %a0(double %t, ptr %block{further})",
        "  ret i32 %status",
        "}",
    ]
    return "\n".join(lines)


_LOADED, _OF_A_LINKER = count(), 64  # counter of loaded programs, and maximum number of programs that share a linker
_in_memory: WeakValueDictionary[bytes, _Code] = WeakValueDictionary()
_recent: deque[_Code] = deque(maxlen=64)  # recently used code stays loaded, since traces are repeated
_objects: OrderedDict[str, bytes] = OrderedDict()  # object code of programs, without their constants
_MOST_OBJECTS, _SMALL = 256, 100_000  # maximum size of the cache, and bytes above which code is stored on disk only


def _loaded(text: str, constants: bytes = b"") -> _Code:
    """The code of a program with its numbers, loaded once."""
    shape = hashlib.sha256("\n".join([_VERSION, *_processor(), text]).encode())
    key = hashlib.sha256(shape.digest() + constants).digest()
    with _LOCK:
        code = _in_memory.get(key)
        if code is None:
            with first_use.counted():
                code = _in_memory[key] = _Code(_completed(_object(shape.hexdigest(), text), constants))
        _recent.append(code)
    return code


def _completed(code: bytes, constants: bytes) -> bytes:
    """Object code with the numbers filled in."""
    if not constants:
        return code
    before, mark, after = code.partition(MARK)
    return b"".join((before, mark, constants, after[len(constants) :]))


def _object(shape: str, text: str) -> bytes:
    """Object code of a program: from memory, from disk, or generated."""
    code = _objects.pop(shape, None)
    if code is None:
        code = object_store.load(f"traced-{shape}")
    if code is None:
        code = _generated(text)
        object_store.save(f"traced-{shape}", code)
    if len(code) <= _SMALL:
        _objects[shape] = code
    if len(_objects) > _MOST_OBJECTS:
        _objects.popitem(last=False)
    return code


def _generated(text: str) -> bytes:
    module = llvm.parse_assembly(text)
    module.verify()
    return _target_machine().emit_object(module)


@lru_cache(maxsize=1)
def _linker(number: int) -> Any:
    """The linker that loads the `number`-th group of `_OF_A_LINKER` programs, each as a separate library."""
    return llvm.create_lljit_compiler(_target_machine())


@cache
def _processor() -> tuple[str, ...]:
    features = llvm.get_host_cpu_features().flatten()
    return llvmlite.__version__, llvm.get_default_triple(), llvm.get_host_cpu_name(), features


def _target_machine():
    _initialise()
    _, triple, name, features = _processor()
    return llvm.Target.from_triple(triple).create_target_machine(cpu=name, features=features, opt=2, jit=True)


@cache
def _initialise():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
