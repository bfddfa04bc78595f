"""The source of a whole integrator in C: the functions of a problem, the coefficients of a method, the loop of steps.

The same text is CUDA C and plain C. What differs between two ensembles of one problem (starts, parameters, tolerances,
times) are arguments, so that a source is compiled once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from daedal.methods.rosenbrock_tableaux import TABLEAUX, RosenbrockTableau
from daedal.methods.runge_kutta import DOPRI5
from daedal.methods.runge_kutta_step import HARMLESS
from daedal.symbolic.cuda import PRELUDE, c_number
from daedal.tracing.in_c import ProblemInC

METHODS = ("dopri5", *TABLEAUX)
"""Methods that exist in C."""
MOST_UNROLLED = 250
"""Operations of the slopes up to which all stages of a step are written out."""
BLOCK = 64
"""Threads of a block."""
_MOST_FAILURES = 30  # of a step of a Rosenbrock method, as in its CPU version
_MOST_CORRECTIONS = 10  # of Newton's method


@dataclass(frozen=True)
class EventsInC:
    """Switching functions that may end a run.

    Attributes
    ----------
    text : str
        The function ``switching_functions(t, y, p, result)``.
    names : tuple of str
    directions, occurrences : tuple of int
        Which crossings count, and the occurrence that ends the run.
    """

    text: str = ""
    names: tuple[str, ...] = ()
    directions: tuple[int, ...] = ()
    occurrences: tuple[int, ...] = ()


def integrator_source(
    problem: ProblemInC,
    method: str,
    events: EventsInC | None = None,
    *,
    outputs: bool = False,
    single: bool = False,
    **launch: int,
) -> str:
    """The text of an integrator.

    Parameters
    ----------
    problem : ProblemInC
        Its functions, for this method.
    method : str
        One of `METHODS`.
    events : EventsInC, optional
        What ends runs early.
    outputs : bool
        Whether values are wanted between the start and the end.
    single : bool
        Single precision.
    **launch : int
        Of a GPU: BLOCK, LEAST_BLOCKS, REFILL, UNROLLED (all stages are written out), APART (functions are called).
    """
    explicit = method == "dopri5"
    events = EventsInC() if events is None else events
    constrained = problem.constraints + problem.velocity_constraints > 0
    unrolled = launch.pop("UNROLLED", int(problem.operations <= MOST_UNROLLED))
    apart = launch.pop("APART", 0)
    macros = {
        "N": problem.n,
        "K": problem.n - problem.positions,
        "P": problem.n_parameters,
        "E": len(events.names),
        "OUTPUTS": int(outputs),
        "POSITIONS": problem.positions,
        "PROJECTS": int(constrained),
        "POSITION_CONSTRAINTS": int(problem.constraints > 0),
        "ALGEBRAIC": int(problem.algebraic),
        "MAXIMUM_NORM": int(constrained),
        "MOST_CORRECTIONS": _MOST_CORRECTIONS,
        "HARMLESS": f"NUMBER({HARMLESS!r})",
        "UNROLL": '_Pragma("unroll")',
        "UNROLL_STAGES": '_Pragma("unroll")' if unrolled else '_Pragma("unroll 1")',
        **{"BLOCK": BLOCK, "LEAST_BLOCKS": 1, "REFILL": 32, **launch},
    }
    tableau, coefficients = _explicit(problem.positions) if explicit else _rosenbrock(TABLEAUX[method])
    parts = [
        "#define SINGLE" if single else "",
        "#define APART" if apart else "",
        PRELUDE,
        *(f"#define {name} {value}" for name, value in {**macros, **tableau}.items()),
        coefficients,
        problem.text,
        events.text,
        _table("DIRECTIONS", [events.directions or (0,)], "int"),
        _table("OCCURRENCES", [events.occurrences or (1,)], "int"),
        *(_template(name) for name in ("integrator", "explicit" if explicit else "rosenbrock", "kernel")),
    ]
    return "\n".join(parts)


def _template(name: str) -> str:
    return (files("daedal.ensembles") / "templates" / f"{name}.c").read_text(encoding="utf-8")


def _table(name: str, rows: Sequence[Sequence[Any]], kind: str = "real") -> str:
    """An array of numbers; a matrix if there are several rows."""
    number = str if kind == "int" else c_number
    texts = ["{" + ", ".join(number(x) for x in row) + "}" for row in rows]
    if len(rows) == 1:
        return f"TABLE {kind} {name}[{len(rows[0])}] = {texts[0]};"
    return f"TABLE {kind} {name}[{len(rows)}][{len(rows[0])}] = {{{', '.join(texts)}}};"


# --- coefficients -----------------------------------------------------------------------------------------------------


def _explicit(positions: int) -> tuple[dict[str, Any], str]:
    """The coefficients of DOPRI5, for mechanisms those of positions in terms of accelerations as well.

    Where q' = v, the slopes of positions are v + h sum_j a_ij v'_j (Hairer, Norsett, Wanner (II.14.13)), so that
    accelerations are all that has to be kept of a stage.
    """
    tableau = DOPRI5.tableau
    arrays = tableau.arrays
    a, e, c, stages = arrays["a"], arrays["e"], arrays["c"], arrays["e"].size
    dense = _polynomials(tableau.inner, 4)
    combine, estimate = ["FUNCTION void combine(int i, const real* y, real k[][K], real h, real* result) {"], []
    combine.append("  switch (i) {")
    for i in range(1, stages):
        loops = [_loop("K", a[i], "result[POSITIONS + j] = y[POSITIONS + j] + h * ({})")]
        if positions:
            drift = f"result[j] = y[j] + h * ({c_number(float(c[i]))} * y[POSITIONS + j] + h * ({{}}))"
            loops.append(_loop("POSITIONS", (a @ a)[i], drift))
        combine.append(f"  case {i}: {' '.join(loops)} break;")
    estimate.append("FUNCTION void estimate(real k[][K], real h, real* result) {")
    estimate.append("  " + _loop("K", e, "result[POSITIONS + j] = h * ({})"))
    if positions:
        estimate.append("  " + _loop("POSITIONS", e @ a, "result[j] = h * h * ({})"))
    tables = [_table("NODES", [c.tolist()]), _table("DENSE", dense.tolist())]
    if positions:
        tables.append(_table("DENSE_POSITIONS", (a.T @ dense).tolist()))
    macros = {"STAGES": stages, "ORDER": tableau.order, "DEGREE": 4, "SLOPES": 1, "MOST_FAILURES": 0}
    return macros, "\n".join([*tables, *combine, "  }", "}", *estimate, "}"])


def _rosenbrock(tableau: RosenbrockTableau) -> tuple[dict[str, Any], str]:
    degree = len(tableau.inner) + 1
    macros = {"STAGES": tableau.s, "ORDER": tableau.order, "DEGREE": degree, "SLOPES": 0, "GAMMA": tableau.gamma}
    return macros | {"MOST_FAILURES": _MOST_FAILURES}, _table("DENSE", _polynomials(tableau.weights, degree).tolist())


def _loop(size: str, weights: np.ndarray, statement: str) -> str:
    """A loop over components with a sum of slopes, the first ones first."""
    terms = " + ".join(f"{c_number(float(w))} * k[{j}][j]" for j, w in enumerate(weights) if w != 0.0)
    return f"UNROLL for (int j = 0; j < {size}; j++) {statement.format(terms or '0')};"


def _polynomials(weights, degree: int) -> np.ndarray:
    """For each stage the coefficients of theta, ..., theta^degree in its weight, which vanishes at theta = 0."""
    places = np.arange(1, degree + 1) / degree
    powers = places[:, None] ** np.arange(1, degree + 1)
    return np.linalg.solve(powers, np.array([weights(theta) for theta in places])).T
