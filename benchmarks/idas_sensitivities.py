"""Forward sensitivities by IDAS through sundials4py, for :mod:`benchmarks.sensitivities`.

IDAS gets the residual and the residual of the sensitivities, exact derivatives from Daedal's graph, both compiled by
Numba; staggered corrector, error control of the sensitivities; dense matrices, banded ones of large problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.tracing import WRITTEN, writer
from daedal.symbolic.derivative import directional
from daedal.symbolic.graph import Graph, evaluate
from daedal.symbolic.trace import scalar_argument, trace, vector_argument

MOST_UNKNOWNS = 100
"""Up to so many, functions are written out; above it they are vectors."""
_ROOM = "t", "y", "yp", "p", "s", "sp", "dp"


def small_functions(problem: Any) -> tuple[Callable[..., None], Callable[..., None]]:
    """F(t, y, y', p) and F_y s + F_y' s' + F_p dp, straight-line code that writes to its last argument."""
    graph = Graph()
    n, m = problem.n, len(problem.params)
    sizes = {"y": n, "yp": n, "p": m, "s": n, "sp": n, "dp": m}
    t = scalar_argument(graph, "t")
    vectors = {name: vector_argument(graph, name, size) for name, size in sizes.items()}
    nodes = trace(problem.residual, (t, vectors["y"], vectors["yp"], vectors["p"]), (n,)).nodes
    pairs = (("y", "s"), ("yp", "sp"), ("p", "dp"))
    direction = {x.node: rate.node for of, by in pairs for x, rate in zip(vectors[of], vectors[by], strict=True)}
    along = directional(graph, nodes, direction)
    return tuple(_compiled(graph, wanted, sizes) for wanted in (nodes, along))  # type: ignore[return-value]


def _compiled(graph: Graph, nodes: list[int], sizes: dict[str, int]) -> Callable[..., None]:
    import numba

    named: dict[str, str] = {}
    operations = {operation: writer(template, named) for operation, template in WRITTEN.items()}
    arguments: dict[str, Any] = {name: [f"{name}[{i}]" for i in range(size)] for name, size in sizes.items()}
    results = evaluate(graph, nodes, arguments | {"t": ["t"]}, operations)
    lines = [f"{name} = {text}" for text, name in named.items()]
    lines += [f"out[{i}] = {text}" for i, text in enumerate(results)]
    scope = {word: getattr(math, word) for word in ("sin", "cos", "sqrt")}
    source = f"def function({', '.join(_ROOM)}, out):\n    " + "\n    ".join(lines) + "\n"
    exec(compile(source, "<residual>", "exec"), scope)
    return numba.njit(scope["function"])


def rod_functions(n: int) -> tuple[Callable[..., None], Callable[..., None]]:
    """The same of the rod of :mod:`benchmarks.gradients`, as loops."""
    import numba

    factor = 0.05 * (n + 1) ** 2

    @numba.njit
    def residual(t, y, yp, p, s, sp, dp, out):
        for i in range(n):
            left, right = y[i - 1] if i > 0 else 0.0, y[i + 1] if i < n - 1 else 0.0
            out[i] = yp[i] - factor * (left - 2.0 * y[i] + right) - p[i * p.size // n] + y[i] ** 3

    @numba.njit
    def along(t, y, yp, p, s, sp, dp, out):
        for i in range(n):
            left, right = s[i - 1] if i > 0 else 0.0, s[i + 1] if i < n - 1 else 0.0
            out[i] = sp[i] - factor * (left - 2.0 * s[i] + right) - dp[i * p.size // n] + 3.0 * y[i] ** 2 * s[i]

    return residual, along


def idas_run(
    problem: Any, functions: tuple[Callable[..., None], Callable[..., None]], y0: np.ndarray, end: float, scale: float
) -> Callable[[float], np.ndarray]:
    """A function of rtol that returns the sensitivities (m, n) at the end."""
    from sundials4py import core, idas

    n, p = problem.n, np.array(problem.params, dtype=float)
    m, array, (residual, along) = p.size, core.N_VGetArrayPointer, functions
    none, units = np.zeros(n), np.eye(m)
    yp0, sensitivities, slopes = _start(problem, functions, y0, p)

    def fill(t: float, y: Any, yp: Any, out: Any, _: Any) -> int:
        residual(t, array(y), array(yp), p, none, none, p, array(out))
        return 0

    def fill_sensitivities(m_: int, t: float, y: Any, yp: Any, r: Any, s: Any, sp: Any, out: Any, *_: Any) -> int:
        y, yp = array(y), array(yp)
        for k in range(m):
            along(t, y, yp, p, array(s[k]), array(sp[k]), units[k], array(out[k]))
        return 0

    def call(rtol: float) -> np.ndarray:
        _, context = core.SUNContext_Create(0)
        core.SUNContext_ClearErrHandlers(context)

        def vector(values: np.ndarray) -> Any:
            made = core.N_VNew_Serial(n, context)
            array(made)[:] = values
            return made

        y, yp = vector(y0), vector(yp0)
        solver = idas.IDACreate(context)
        memory = solver.get()
        idas.IDAInit(memory, fill, 0.0, y, yp)
        idas.IDASStolerances(memory, rtol, scale * rtol)
        idas.IDASetMaxNumSteps(memory, 10**6)
        if n > MOST_UNKNOWNS:
            matrix = core.SUNBandMatrix(n, *problem.bandwidth, context)
            linear = core.SUNLinSol_Band(y, matrix, context)
        else:
            matrix = core.SUNDenseMatrix(n, n, context)
            linear = core.SUNLinSol_Dense(y, matrix, context)
        idas.IDASetLinearSolver(memory, linear, matrix)
        s, sp = ([vector(row) for row in rows] for rows in (sensitivities, slopes))
        idas.IDASensInit(memory, m, idas.IDA_STAGGERED, fill_sensitivities, s, sp)
        idas.IDASetSensParams(memory, p, np.abs(p), list(range(m)))
        idas.IDASensEEtolerances(memory)
        idas.IDASetSensErrCon(memory, 1)
        flag, _ = idas.IDASolve(memory, end, y, yp, idas.IDA_NORMAL)
        if flag < 0:
            raise RuntimeError(f"IDASolve returned {flag}")
        idas.IDAGetSens(memory, s)
        return np.array([array(one).copy() for one in s])

    return call


def _start(problem: Any, functions: Any, y0: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y', and consistent sensitivities with their derivatives, where F = M y' - f with a constant diagonal M.

    Those of algebraic variables satisfy the differentiated constraints.
    """
    n, none, nothing, units = problem.n, np.zeros(problem.n), np.zeros(p.size), np.eye(p.size)
    residual, along = functions

    def derivative(s: np.ndarray, sp: np.ndarray, dp: np.ndarray) -> np.ndarray:
        out = np.empty(n)
        along(0.0, y0, none, p, s, sp, dp, out)
        return out

    rest = np.empty(n)
    residual(0.0, y0, none, p, none, none, p, rest)
    mass = derivative(none, np.ones(n), nothing)
    algebraic = np.flatnonzero(mass == 0.0)
    divisor = np.where(mass == 0.0, np.inf, mass)
    columns = np.array([derivative(row, none, nothing) for row in np.eye(n)[algebraic]]).T
    sensitivities, slopes = np.zeros((p.size, n)), np.zeros((p.size, n))
    for k, unit in enumerate(units):
        if algebraic.size:
            right = -derivative(none, none, unit)[algebraic]
            sensitivities[k, algebraic] = np.linalg.solve(columns[algebraic], right)
        slopes[k] = -derivative(sensitivities[k], none, unit) / divisor
    return -rest / divisor, sensitivities, slopes
