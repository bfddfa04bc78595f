"""Problems of the library with stated indices: the table against all tools that find an index, exact solutions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import daedal
from daedal import library
from daedal.analysis.index import local_index
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.structural_analysis import StructuralAnalysis
from daedal.index.structure.system_equations import SystemEquations
from daedal.initial.local_structure import local_structure

BEFORE = [  # solved in other files
    ("coupled_derivatives", {}),
    ("damped_oscillator", {}),
    ("differentiator_cascade", {"stages": 3}),
    ("hessenberg_index2", {}),
    ("ill_conditioned_constraints", {}),
    ("index3_chain", {}),
    ("jay_index2", {}),
    ("linear_index1", {}),
    ("linear_index2", {}),
    ("nearly_index2", {}),
    *[("pendulum", {"form": form}) for form in ("ggl", "index1", "index2", "index3")],
    ("prothero_robinson", {}),
    *[("rc_circuit", {"index": index}) for index in (1, 2)],
    ("rlc_network", {}),
    ("tppc2", {}),
    ("tppc2", {"form": "index1"}),
    ("tppc3", {}),
]
CASES = [
    *BEFORE,
    ("balanced_modes", {}),
    ("body_on_circle", {}),
    ("cancelling_derivatives", {}),
    ("cancelling_derivatives", {"form": "second-order"}),
    ("capacitor_loops", {"nodes": 6}),
    ("changing_nullspace", {}),
    ("changing_rank", {}),
    ("controlled_sources", {}),
    ("controlled_sources", {"stages": 1}),
    *[("cstr", {"index": index}) for index in (1, 2, 3)],
    ("equilibrium_reactor", {}),
    ("flexible_joint", {}),
    ("flexible_robot", {}),
    ("inductor_cutsets", {"nodes": 6}),
    ("lc_ladder", {"cells": 3}),
    ("moving_nullspace", {}),
    ("moving_nullspace", {"eta": -1.0}),
    ("nearly_index3", {}),
    *[("nilpotent_chain", {"index": index}) for index in (1, 2, 5)],
    ("order_reduction", {}),
    ("overrated_structure", {}),
    ("particle_on_circle", {}),
    *[("regulator", {"index": index}) for index in (1, 3, 5)],
    ("same_derivatives", {}),
    ("singular_pencil", {}),
    ("skew_projector", {}),
    ("three_orders", {}),
    ("unsolvable_pencil", {}),
]
MODELS = {
    name + "".join(f"-{value}" for value in parameters.values()): library.get(name, **parameters)
    for name, parameters in CASES
}


def every_model(condition=lambda model: True):
    chosen = {name: model for name, model in MODELS.items() if condition(model)}
    return pytest.mark.parametrize("model", list(chosen.values()), ids=list(chosen))


def is_second_order(model):
    return isinstance(model.problem, daedal.SecondOrderDAE)


def start(model):
    """x, x' where it is stated and, for second-order DAEs, x'' at the start."""
    if isinstance(model.problem, (daedal.LinearDAE, daedal.SemiExplicitDAE)):
        return np.array([np.concatenate(model.initial)])
    if "exact" not in model.extra:
        return np.array(model.initial)
    return np.array([model.extra["exact"](model.t_span[0], k) for k in range(3 if is_second_order(model) else 2)])


def first_order(model, **options):
    """The problem as F(t, y, y') = 0 with y and y' at the start."""
    rows = start(model)
    if len(rows) == 1:
        rows = np.vstack([rows, np.zeros_like(rows)])
    if not is_second_order(model):
        return model.problem.implicit(), *rows
    doubled = np.asarray(options.get("order", model.problem.order)) == 2
    y, yp = np.append(rows[0], rows[1][doubled]), np.append(rows[1], rows[2][doubled])
    return model.problem.first_order(**options), y, yp


# --- the table of indices ---------------------------------------------------------------------------------------------


def test_every_stated_index_is_tested_here():
    stated = {name for name in library.names() if library.get(name).indices is not None}
    assert stated == {name for name, _ in CASES}


@every_model()
def test_the_index_is_the_differentiation_index(model):
    assert model.index == model.indices.differentiation
    assert model.solvable == (model.name != "unsolvable_pencil")


@every_model()
def test_derivative_arrays_find_the_stated_indices(model):
    found = local_structure(SystemEquations(model.problem), model.t_span[0], start(model))
    stated = model.indices
    assert (found.index, found.strangeness_index) == (stated.differentiation, stated.strangeness)
    if model.solvable:
        assert found.degrees_of_freedom == stated.degrees_of_freedom
    if model.name != "ill_conditioned_constraints":  # a layer at the start, with derivatives of 1e12
        np.testing.assert_allclose(found.jet[0], start(model)[0], rtol=1e-9, atol=1e-12)  # the start is consistent


@every_model()
def test_the_signature_method_finds_the_stated_structural_index(model):
    equations, stated = SystemEquations(model.problem), model.indices
    signature = StructuralSignature.of(equations)
    assert signature.index == stated.structural
    if not model.solvable:
        with pytest.raises(daedal.errors.StructurallySingularError, match="equations 0 and 1 are dependent"):
            StructuralAnalysis.of(equations)
        return
    found = StructuralAnalysis.of(equations)
    assert stated.structure_suffices == (found.succeeds and not found.combinations)
    if stated.structure_suffices:
        assert found.index == stated.structural and found.degrees_of_freedom == stated.degrees_of_freedom


@every_model()
def test_the_pencil_at_the_start_has_the_stated_index(model):
    assert local_index(first_order(model)[0], model.t_span[0], *first_order(model)[1:]).index == model.indices.local


@every_model(is_second_order)
def test_the_derivatives_of_all_unknowns_raise_the_index(model):
    dae, y, yp = first_order(model, order=[2] * model.problem.n)
    assert local_index(dae, model.t_span[0], y, yp).index == model.indices.after_order_reduction == 4


@pytest.mark.parametrize(("name", "time"), [("changing_rank", 1.0), ("changing_nullspace", 0.0)])
def test_local_index_is_smaller_where_the_leading_matrix_loses_rank(name, time):
    model = library.get(name)
    exact = model.extra["exact"]
    for t, index in ((time, 1), (time + 0.5, 2)):
        assert local_index(model.problem, t, exact(t), exact(t, 1)).index == index


@given(t=st.floats(-3.0, 3.0), s=st.floats(-10.0, 10.0))
def test_regular_and_singular_pencils_are_so_at_all_times(t, s):
    def pencil(model):
        dae, n = model.problem, 2
        A = np.array([dae.evaluate(t, np.zeros(n), e) - dae.evaluate(t, np.zeros(n), np.zeros(n)) for e in np.eye(n)]).T
        B = np.array([dae.evaluate(t, e, np.zeros(n)) - dae.evaluate(t, np.zeros(n), np.zeros(n)) for e in np.eye(n)]).T
        return np.linalg.det(s * A + B)

    assert pencil(MODELS["singular_pencil"]) == pytest.approx(0.0, abs=1e-12)
    assert pencil(MODELS["unsolvable_pencil"]) == pytest.approx(1.0, abs=1e-9)


# --- solutions --------------------------------------------------------------------------------------------------------


@every_model(lambda model: "exact" in model.extra and model.name not in dict(BEFORE))
def test_closed_solutions_solve_the_equations(model):
    exact, orders = model.extra["exact"], 3 if is_second_order(model) else 2
    for t in np.linspace(*model.t_span, 6):
        rows = [exact(t, k) for k in range(orders)]
        problem = model.problem if is_second_order(model) else model.problem.implicit()
        scale = 1.0 + np.abs(rows[1]).max()
        np.testing.assert_allclose(problem.evaluate(t, *rows), 0.0, atol=1e-12 * scale)


@pytest.mark.parametrize("phi", [math.sin, math.exp, lambda t: t**3])
def test_any_function_solves_the_unsolvable_problem(phi):
    def x(t):
        return phi(t) * np.array([t, 1.0])

    for t in (0.3, 1.0, 1.7):
        slope = (x(t + 1e-5) - x(t - 1e-5)) / 2e-5
        np.testing.assert_allclose(MODELS["unsolvable_pencil"].problem.evaluate(t, x(t), slope), 0.0, atol=1e-8)


def test_reactor_references_follow_from_the_balances():
    k1, c0, t0, k2, k3, k4, k5 = 1.0, 1.0, 1.0, 0.3, 2.0, 2.5e7, 20.0

    def simulated(t, y):
        rate = k4 * math.exp(-k5 / y[1]) * y[0]
        return [k1 * (c0 - y[0]) - rate, k1 * (t0 - y[1]) + k2 * rate - k3 * (y[1] - 1.05 - 0.02 * math.sin(t))]

    def tempered(t, y):
        return [k1 * (c0 - y[0]) - k4 * math.exp(-k5 / (1.15 + 0.02 * math.sin(t))) * y[0]]

    def balanced(t, y):
        return [(2.0 - y[0] - 3.0 * y[0] ** 2) / (1.0 + 4.0 * y[0])]

    for slopes, y0, name in (
        (simulated, [0.5, 1.15], "cstr-1"),
        (tempered, [0.5], "cstr-2"),
        (balanced, [0.5], "equilibrium_reactor"),
    ):
        model = MODELS[name]
        run = solve_ivp(slopes, model.t_span, y0, "DOP853", rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(model.reference.y[: len(y0)], run.y[:, -1], rtol=1e-11)


@pytest.mark.parametrize("name", ["cstr-1", "cstr-2", "equilibrium_reactor", "flexible_robot"])
def test_references_without_closed_solution_are_consistent(name):
    """A point of the solution satisfies all hidden constraints: nothing of it has to change."""
    model = MODELS[name]
    found = local_structure(SystemEquations(model.problem), model.reference.t, model.reference.y[None])
    np.testing.assert_allclose(found.jet[0], model.reference.y, rtol=1e-12)
    if name == "flexible_robot":
        np.testing.assert_allclose(model.reference.y[[0, 2]], [1.0 - math.e, math.e - 1.0], rtol=1e-15)


def can_be_run(model):
    """All that are new but one that is to be refused, and one that is to be analysed."""
    if model.name in dict(BEFORE):
        return False
    return model.solvable and not (model.name == "cancelling_derivatives" and is_second_order(model))


@every_model(can_be_run)
def test_solved_with_its_options(model):
    solution = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    assert np.max(np.abs(solution.y[:, -1] - model.reference.y) / (1.0 + np.abs(model.reference.y))) < 1e-4


def test_unsolvable_problem_is_refused():
    model = MODELS["unsolvable_pencil"]
    with pytest.raises(daedal.InvalidProblemError, match="do not determine the solution, however often"):
        daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    assert "equations 0 and 1 are\n    dependent" in str(daedal.analyse(model.problem))


# --- conditioning -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters", "printed"),
    [
        ("skew_projector", {}, -0.5),
        ("skew_projector", {"change_in_A": -1e-3}, 9.5),
        ("skew_projector", {"change_in_A": -1e-4}, 0.5),
        ("skew_projector", {"change_in_B": -5e-5}, 0.1667),
        ("balanced_modes", {"lam": 100.0, "mu": -100.0, "change_in_C": 0.1}, -100.0 * 0.1 / 2.1),
        ("nearly_index3", {}, -5001.0),
        ("nearly_index3", {"change_in_C": -2e-4}, 5000.0),
    ],
)
def test_growth_is_the_eigenvalue_that_the_thesis_prints(name, parameters, printed):
    """Wijckmans, examples 5.12 to 5.16: the eigenvalue of (I - P) A with P = B (C B)^-1 C that does not vanish."""
    model = library.get(name, **parameters)
    A, B, C = (model.problem.coefficient(part, 0.0) for part in "ABC")
    values = np.linalg.eigvals((np.eye(2) - B @ C / (C @ B)) @ A)
    assert model.extra["growth"] == pytest.approx(values[np.argmax(np.abs(values))].real, rel=1e-6)
    assert model.extra["growth"] == pytest.approx(printed, rel=1e-4)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("regulator", {"index": 2}, "index=2 is not known"),
        ("cstr", {"index": 0}, "index=0 is not known"),
        ("nilpotent_chain", {"index": 0}, "index=0 must be at least 1"),
        ("skew_projector", {"change_in_B": 1e-4}, "C B = 0"),
        ("inductor_cutsets", {"nodes": 7}, "nodes=7 must be even"),
        ("lc_ladder", {"cells": 1}, "cells=1 must be an integer"),
    ],
)
def test_wrong_parameters_are_refused(name, parameters, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        library.get(name, **parameters)
