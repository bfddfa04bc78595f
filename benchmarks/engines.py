"""Ways of evaluating a mechanism: Daedal's generated code, Numba, CasADi's virtual machine and CasADi's C.

Two things are evaluated: M, f, G and gamma together, and the accelerations with the multipliers. Every way gets the
same functions. Daedal and CasADi derive G and gamma and write down elimination themselves, without what is zero.
Numba's functions are those of a careful user: derivatives by hand, LAPACK for the linear system.
"""

from __future__ import annotations

import ctypes
import operator
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.mechanisms import mass_function, rate_function
from benchmarks.tracing import graph_of
from daedal import MechanicalSystem
from daedal.symbolic.graph import evaluate
from daedal.symbolic.machine import MachineFunction, compile_function

MEASURED_SECONDS = 0.3
COMPILER = ("gcc", "-O3", "-shared", "-fPIC")
COMPILING_SECONDS = 120.0


@dataclass(frozen=True)
class Evaluation:
    """One function in one engine: its size, what a call takes, and what had to be done before."""

    operations: int | None
    microseconds: float
    preparing_seconds: float


Measured = dict[str, Evaluation]
"""By what is evaluated: "functions" or "accelerations"."""


def daedal(system: MechanicalSystem, q: np.ndarray, v: np.ndarray) -> Measured:
    """Traced, differentiated, eliminated and compiled; the accelerations with the test of every pivot."""
    measured = {}
    for name, make in PREPARED.items():
        began = time.perf_counter()
        function = make(system)
        seconds = time.perf_counter() - began
        block = np.zeros(function.size)
        block[function.slices["q"]], block[function.slices["v"]] = q, v
        signature = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, ctypes.c_void_p)
        loop = _loop(signature(function.address), 0.0, block.ctypes.data)
        measured[name] = Evaluation(function.operations, _microseconds(loop, block, function), seconds)
    return measured


def functions(system: MechanicalSystem) -> MachineFunction:
    """M, f, G and gamma, from the plain functions to machine code."""
    mechanism = graph_of(system)
    graph, n = mechanism.graph, mechanism.n_q
    rows = {"M": mechanism.mass, "G": mechanism.jacobian}
    matrices = {name: [[row.get(k, graph.zero) for k in range(n)] for row in rows[name]] for name in rows}
    results = {**matrices, "f": mechanism.force, "gamma": mechanism.bias}
    return compile_function(graph, {"q": n, "v": n}, results, skip_zeros=True)


def accelerations(system: MechanicalSystem) -> MachineFunction:
    """Accelerations and multipliers, from the plain functions to machine code."""
    return graph_of(system).callback("accelerations")


PREPARED: dict[str, Callable[[MechanicalSystem], MachineFunction]] = {
    "functions": functions,
    "accelerations": accelerations,
}


def numba(system: MechanicalSystem, q: np.ndarray, v: np.ndarray) -> Measured:
    """Four functions one after the other; then the assembled system by LAPACK."""
    from numba import njit

    began = time.perf_counter()
    compiled = system.compiled("numba")
    p = compiled.params
    mass, force = mass_function(compiled), compiled.force
    jacobian, bias = compiled.constraint_jacobian, compiled.acceleration_bias
    rate = njit(rate_function(compiled, system.n_q, system.n_constraints))

    @njit
    def all_functions(k, q, v, y):
        total = 0.0
        for _ in range(k):
            total += mass(0.0, q, p)[0, 0] + force(0.0, q, v, p)[0] + jacobian(0.0, q, p)[0, 0] + bias(0.0, q, v, p)[0]
        return total

    @njit
    def all_accelerations(k, q, v, y):
        total = 0.0
        for _ in range(k):
            total += rate(0.0, y, p)[0]
        return total

    y = np.concatenate([q, v])
    measured = {}
    for name, loop in (("functions", all_functions), ("accelerations", all_accelerations)):
        loop(1, q, v, y)
        seconds, began = time.perf_counter() - began, time.perf_counter()
        measured[name] = Evaluation(None, _microseconds(lambda k, loop=loop: loop(k, q, v, y)), seconds)
    return measured


def casadi_machine(system: MechanicalSystem, q: np.ndarray, v: np.ndarray) -> Measured:
    """CasADi's virtual machine, called through its buffers."""
    measured = {}
    for name, (function, seconds) in _casadi_functions(system).items():
        buffer, call = function.buffer()
        kept = [np.ascontiguousarray(q), np.ascontiguousarray(v)]
        kept += [np.zeros(function.nnz_out(i)) for i in range(function.n_out())]
        for i in range(2):
            buffer.set_arg(i, memoryview(kept[i]))
        for i in range(function.n_out()):
            buffer.set_res(i, memoryview(kept[2 + i]))

        def loop(k: int, call: Callable[[], None] = call) -> None:
            for _ in range(k):
                call()

        measured[name] = Evaluation(_operations(function), _microseconds(loop, buffer, kept), seconds)
    return measured


def casadi_c(system: MechanicalSystem, q: np.ndarray, v: np.ndarray) -> Measured:
    """The C code that CasADi writes, compiled with -O3."""
    measured = {}
    for name, (function, seconds) in _casadi_functions(system).items():
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="daedal-bench-") as folder:
            source, shared = Path(folder) / "f.c", Path(folder) / "f.so"
            function.generate(source.name, {"with_header": False})
            Path(source.name).replace(source)  # CasADi writes into the current directory only
            try:
                subprocess.run(
                    [*COMPILER, str(source), "-o", str(shared), "-lm"], check=True, timeout=COMPILING_SECONDS
                )
            except subprocess.TimeoutExpired:
                continue
            library = ctypes.CDLL(str(shared))
        pointer, size = ctypes.c_void_p, [function.sz_arg(), function.sz_res(), function.sz_iw(), function.sz_w()]
        call = library[function.name()]
        call.argtypes, call.restype = [pointer, pointer, pointer, pointer, ctypes.c_int], ctypes.c_int
        values = [np.ascontiguousarray(q), np.ascontiguousarray(v)]
        values += [np.zeros(function.nnz_out(i)) for i in range(function.n_out())]
        addresses = [np.zeros(n + 1, dtype=np.uint64) for n in size[:2]]
        addresses[0][:2] = [x.ctypes.data for x in values[:2]]
        addresses[1][: function.n_out()] = [x.ctypes.data for x in values[2:]]
        work = [np.zeros(n + 1) for n in size[2:]]
        loop = _loop(call, *(x.ctypes.data for x in (*addresses, *work)), 0)
        seconds += time.perf_counter() - began
        kept = values, addresses, work, library
        measured[name] = Evaluation(_operations(function), _microseconds(loop, kept), seconds)
    return measured


ENGINES: dict[str, Callable[[MechanicalSystem, np.ndarray, np.ndarray], Measured]] = {
    "Daedal": daedal,
    "Numba": numba,
    "CasADi, virtual machine": casadi_machine,
    "CasADi, C": casadi_c,
}


def _casadi_functions(system: MechanicalSystem) -> dict[str, tuple[Any, float]]:
    """CasADi's functions and the seconds of making them: multipliers from the Schur complement, by sparse LDL^T."""
    import casadi

    began = time.perf_counter()
    mechanism = graph_of(system)
    n = mechanism.n_q
    q, v = casadi.SX.sym("q", n), casadi.SX.sym("v", n)
    operations = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv}
    operations |= {"negative": operator.neg} | {name: getattr(casadi, name) for name in ("sin", "cos", "sqrt")}

    def expressed(nodes: Any) -> Any:
        return evaluate(mechanism.graph, nodes, {"q": q, "v": v, "t": [0.0]}, operations)

    mass = casadi.SX(n, n)
    for i, row in enumerate(mechanism.mass):
        for j, entry in zip(row, expressed(row.values()), strict=True):
            mass[i, j] = entry
    force, constraint = (casadi.vertcat(*expressed(nodes)) for nodes in (mechanism.force, mechanism.constraint))
    jacobian = casadi.jacobian(constraint, q)
    bias = -casadi.jtimes(casadi.jtimes(constraint, q, v), q, v)
    functions = casadi.Function("functions", [q, v], [mass, force, jacobian, bias])
    between = time.perf_counter()
    solved = casadi.sparsify(casadi.ldl_solve(casadi.horzcat(jacobian.T, force), *casadi.ldl(mass)))
    complement = casadi.sparsify(jacobian @ solved[:, :-1])
    multipliers = casadi.ldl_solve(jacobian @ solved[:, -1] - bias, *casadi.ldl(complement))
    a = solved[:, -1] - solved[:, :-1] @ multipliers
    accelerations = casadi.Function("accelerations", [q, v], [a, multipliers])
    ended = time.perf_counter()
    return {"functions": (functions, between - began), "accelerations": (accelerations, ended - between)}


def _operations(function: Any) -> int:
    import casadi

    moves = (casadi.OP_INPUT, casadi.OP_OUTPUT, casadi.OP_CONST)
    return sum(function.instruction_id(i) not in moves for i in range(function.n_instructions()))


def _loop(function: Any, *arguments: Any) -> Callable[[int], Any]:
    """Calls of a C function in compiled code."""
    from numba import njit

    @njit
    def loop(k, *arguments):
        total = 0
        for _ in range(k):
            total += function(*arguments)
        return total

    return lambda k: loop(k, *arguments)


def _microseconds(loop: Callable[[int], Any], *kept: Any) -> float:
    """The shortest time of a call, from loops of about a millisecond; what is ``kept`` must live as long."""
    loop(1)
    k, best = 1, inf
    while _seconds(loop, k) < 1e-3 and k < 10**6:
        k *= 2
    end = time.perf_counter() + MEASURED_SECONDS
    while time.perf_counter() < end:
        best = min(best, _seconds(loop, k) / k)
    return 1e6 * best


def _seconds(loop: Callable[[int], Any], k: int) -> float:
    began = time.perf_counter()
    loop(k)
    return time.perf_counter() - began
