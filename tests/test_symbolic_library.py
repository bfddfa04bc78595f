"""The plain functions of all problems of the library: traced as they are written, same values, exact derivatives."""

import mpmath
import numpy as np
import pytest

import daedal
from daedal.problems.mechanical import FUNCTIONS
from daedal.symbolic import Graph, Untraceable, scalar_argument, trace, vector_argument
from daedal.symbolic.derivative import jacobian, sparsity
from daedal.symbolic.machine import RAISES, compile_function, may_raise
from symbolic_tools import extended
from tiers import sampled

NOT_TRACEABLE = {("chain_of_pendulums", "constraint_jacobian"): "sparse"}
"""A scipy.sparse matrix cannot hold symbols; the derivative of the constraint is found without it."""

SMALL = {
    "capacitor_loops": {"nodes": 5},
    "inductor_cutsets": {"nodes": 6},
    "lc_ladder": {"cells": 3},
    "elastic_beam": {"pieces": 6},
    "flyball_governor": {"stiffness": 8.0, "damping": 0.4},  # stiff springs whose torques cancel lose digits
    "medical_akzo_nobel": {"points": 8},
}


def problems(model):
    """The problem of a model, or those of its modes."""
    modes = getattr(model.problem, "modes", None)
    return [getattr(mode, "problem", mode) for mode in modes.values()] if modes else [model.problem]


def functions(problem):
    """(name, function, [(argument, length)]) of a problem, without the time."""
    n = getattr(problem, "n", None)
    if isinstance(problem, daedal.MechanicalSystem):
        sizes = {"q": problem.n_q, "v": problem.n_q, "r": problem.n_r, "w": problem.n_w, "s": problem.n_s}
        sizes["lam"] = problem.n_lambda if problem.force_uses_multipliers else 0
        for name in FUNCTIONS:
            function = getattr(problem, name)
            if callable(function):
                known = (
                    ("q", "s") if name in ("constraint", "constraint_jacobian", "constraint_t", "contact") else ("q",)
                )
                known = ("q", "v") if name in ("velocity_constraint", "velocity_bias") else known
                known = ("q", "v", "s") if name == "acceleration_bias" else known
                known = tuple(sizes) if name in ("force", "state_rate", "algebraic") else known
                yield name, function, [(a, sizes[a]) for a in known if sizes[a]]
    elif isinstance(problem, daedal.ImplicitDAE):
        yield "residual", problem.residual, [("y", n), ("yp", n)]
    elif isinstance(problem, daedal.SemiExplicitDAE):
        yield "f", problem.f, [("y", problem.n_y), ("z", problem.n_z)]
        yield "g", problem.g, [("y", problem.n_y), ("z", problem.n_z)]
    elif isinstance(problem, daedal.SecondOrderDAE):
        yield "residual", problem.residual, [("x", n), ("xp", n), ("xpp", n)]


def parameters(problem):
    params = getattr(problem, "params", None)
    if params is None:
        return None
    values = np.asarray(params)
    return values.astype(float) if values.dtype.kind in "fi" and values.ndim == 1 else params


def call(function, t, values, params):
    with np.errstate(all="ignore"):
        result = function(t, *(value.copy() for value in values.values()), *([] if params is None else [params]))
    return np.asarray(result.toarray() if hasattr(result, "toarray") else result)


@pytest.mark.parametrize("name", sampled(daedal.library.names(), 3))
def test_traced_functions_of_the_library_are_the_originals(name):
    model = daedal.library.get(name, **SMALL.get(name, {}))
    time = min(0.7, 0.7 * model.t_span[1])
    for problem in problems(model):
        params = parameters(problem)
        for which, function, arguments in functions(problem):
            graph = Graph()
            symbols = [scalar_argument(graph, "t"), *(vector_argument(graph, a, n) for a, n in arguments)]
            own = {"p": params.size} if isinstance(params, np.ndarray) else {}
            if params is not None:
                symbols.append(vector_argument(graph, "p", params.size, params) if own else params)
            if (name, which) in NOT_TRACEABLE:
                with pytest.raises(Untraceable):
                    trace(function, symbols)
                continue
            result = trace(function, symbols)
            sizes = dict(arguments)
            status = may_raise(graph, result.nodes, result.raises)
            code = compile_function(graph, sizes, {"value": result.array}, own, [(status, RAISES)])
            rng = np.random.default_rng(3)
            for _ in range(3):
                values = {a: rng.uniform(0.1, 1.0, n) for a, n in arguments}
                expected = call(function, 0.3, values, params)
                status, found = code(0.3, **values, **({"p": params} if own else {}))
                assert found["value"].shape == expected.shape
                np.testing.assert_allclose(found["value"], expected, rtol=1e-13, atol=1e-13, err_msg=which)
                assert status == 0 or not np.isfinite(expected).all()
            check_derivatives(result, sizes, params if own else None, time, values)


def check_derivatives(result, sizes, params, t, values):
    """The Jacobian along a direction against differences with 40 digits, and its machine code against both."""
    graph = result.graph
    variables = [graph.argument(a, k) for a, n in sizes.items() for k in range(n)]
    rows = jacobian(graph, result.nodes, variables)
    for row, pattern in zip(rows, sparsity(graph, result.nodes, variables)):
        assert set(row) <= set(pattern)
    direction = np.random.default_rng(5).uniform(-1.0, 1.0, len(variables))
    known = {"t": t} if params is None else {"t": t, "p": params}

    def along(s):
        moved = np.concatenate(list(values.values())).astype(object) + s * direction.astype(object)
        ends = np.cumsum(list(sizes.values()))
        given = {a: moved[end - n : end] for (a, n), end in zip(sizes.items(), ends)}
        return mpmath.matrix(extended(graph, result.nodes, **given, **known))

    h = mpmath.mpf(10) ** -12
    expected = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h)
    own = {} if params is None else {"p": params.size}
    code = compile_function(graph, sizes, {f"row {i}": list(row.values()) for i, row in enumerate(rows)}, own)
    found = code(**values, **known)[1]
    for i, row in enumerate(rows):
        exact = extended(graph, list(row.values()), **values, **known)
        total = sum((x * mpmath.mpf(direction[k]) for k, x in zip(row, exact)), start=mpmath.mpf(0))
        scale = 1 + sum((abs(x) for x in exact), start=mpmath.mpf(0))
        assert abs(total - expected[i]) <= 1e-13 * scale
        assert abs(found[f"row {i}"] @ direction[list(row)] - total) <= 1e-13 * scale
