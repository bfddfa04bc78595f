"""The problems of the library: consistent data, sound references, residuals that compile unchanged.

The references are checked without Daedal's integrators: the DAEs are reduced to ODEs by hand and given to SciPy.
"""

import inspect
import math
import pickle
import pkgutil
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import solve_ivp
from scipy.sparse.linalg import spsolve

import daedal
from daedal import library
from library_models import names_of_problems
from test_library_any_index import BEFORE
from test_library_any_index import CASES as ANY_INDEX_CASES
from testset import TESTSET
from tiers import sampled

DEGREE = math.pi / 180.0

# The mechanical ones have tests of their own, in test_library_mechanics.py.
FIRST_ORDER = names_of_problems(daedal.ImplicitDAE, daedal.SemiExplicitDAE)

LARGE = ("capacitor_loops", "flame", "food_web", "gas_network", "heat2d", "inductor_cutsets", "lc_ladder")
LARGE += ("medical_akzo_nobel",)
# Solved in test_fields.py
FIELDS = ("cavity", "ignition", "moving_flame")

# Every form of every problem; the large ones on small meshes.
VARIANTS = [
    *[(name, {}) for name in FIRST_ORDER if name not in LARGE + FIELDS],
    ("capacitor_loops", {"nodes": 5}),
    ("inductor_cutsets", {"nodes": 6}),
    ("lc_ladder", {"cells": 3}),
    ("controlled_sources", {"stages": 1}),
    ("cstr", {"index": 1}),
    ("cstr", {"index": 2}),
    ("moving_nullspace", {"eta": -1.0}),
    ("moving_nullspace", {"eta": -2.0}),
    ("nilpotent_chain", {"index": 2}),
    ("overrated_structure", {"pairs": 1}),
    ("regulator", {"index": 1}),
    ("regulator", {"index": 5}),
    ("flame", {"points": 11, "compiled": False}),
    ("gas_network", {"stations": 2}),
    ("gas_network", {"stations": 2, "index": 2}),
    ("food_web", {"mx": 4, "my": 5, "compiled": False}),
    ("food_web", {"mx": 5, "my": 4, "structure": "banded", "compiled": False}),
    ("heat2d", {"m": 5, "compiled": False}),
    ("heat2d", {"m": 4, "structure": "sparse", "compiled": False}),
    ("ignition", {"nodes": 4}),
    ("ignition", {"nodes": 5, "wall": None}),
    ("medical_akzo_nobel", {"points": 7, "compiled": False}),
    ("moving_flame", {"points": 5}),
    ("moving_flame", {"points": 6, "form": 3}),
    ("elastic_beam", {"pieces": 5}),
    ("ring_modulator", {"form": "index2"}),
    ("van_der_pol", {"epsilon": 0.1}),
    ("pendulum", {"form": "index1", "gravity": 9.81, "length": 2.0}),
    ("pendulum", {"form": "index2", "gravity": -1.0}),
    ("pendulum", {"form": "index3"}),
    ("robertson", {"form": "semi-explicit", "t1": 4e10}),
    ("tppc2", {"form": "index1"}),
    ("tppc2", {"form": "semi-explicit"}),
    ("tppc2", {"form": "inertial"}),
    ("tppc3", {"t1": 400.868734542}),
    ("rlc_network", {"resistance": 2.0, "inductance": 0.5, "capacitance": 0.5}),
    ("rc_circuit", {"index": 2}),
    ("differentiator_cascade", {"stages": 3}),
    ("four_resistor_amplifier", {"element": "source"}),
    ("four_resistor_amplifier", {"conductances": (1.0, 2.0, 3.0, 6.0)}),
    ("hessenberg_index2", {"form": "semi-explicit"}),
    ("fekete", {"form": "index2"}),
    ("flexible_slider_crank", {"form": "index2"}),
]
MODELS = {
    name + "".join(f"-{value}" for value in parameters.values()): library.get(name, **parameters)
    for name, parameters in VARIANTS
}


# Too wide for the numerical rank of a power of a matrix
WIDE_SCALES = (
    *("elastic_beam", "flame", "flexible_slider_crank", "food_web", "heat2d", "pollution", "ring_modulator", "tppc2"),
    *("tppc3", "transistor_amplifier", "water_tubes", "wheelset", "gas_network"),
)
# Their functions call others, which Numba would want compiled first
WITH_HELPERS = ("charge_pump", "flexible_slider_crank", "nand_gate", "wheelset")
# Solved in test_testset.py and test_testset_mechanisms.py, by measures of their own
TEST_SET = {"charge_pump", "nand_gate", "water_tubes", "wheelset", *[name for name, _ in TESTSET]}


# Solved in test_library_any_index.py
ANY_INDEX = {name for name, _ in ANY_INDEX_CASES} - {name for name, _ in BEFORE}


def every_model(condition=lambda model: True):
    """Run a test with every model that fulfils the condition."""
    chosen = {name: model for name, model in MODELS.items() if condition(model)}
    return pytest.mark.parametrize("model", list(chosen.values()), ids=list(chosen))


def start(model):
    """Stacked initial values and derivatives; NaN where the model leaves them to the solver."""
    first, second = model.initial
    n = model.problem.n
    if isinstance(model.problem, daedal.SemiExplicitDAE):
        y0 = np.concatenate([first, second])
        slope = model.problem.slope(model.t_span[0], first, second)
        return y0, np.concatenate([slope, np.full(n - slope.size, np.nan)])
    return first, np.full(n, np.nan) if second is None else second


def residual(model, t, y, yp):
    return model.problem.implicit().evaluate(t, y, yp)


def jacobians(model, t, y, yp):
    """dF/dy and dF/dy' by central differences."""
    n = model.problem.n
    result = []
    for which, vector in enumerate((y, yp)):
        matrix = np.empty((n, n))
        for k in range(n):
            h = 1e-6 * max(abs(vector[k]), 1e-2)
            shift = np.zeros(n)
            shift[k] = h
            plus = residual(model, t, y + shift, yp) if which == 0 else residual(model, t, y, yp + shift)
            minus = residual(model, t, y - shift, yp) if which == 0 else residual(model, t, y, yp - shift)
            matrix[:, k] = (plus - minus) / (2.0 * h)
        result.append(matrix)
    return result


# --- the index ------------------------------------------------------------------------------------------------


def in_a_new_process(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_the_library_shows_its_problems_and_nothing_that_it_imports():
    others = {"Branch", "Control", "Indices", "Model", "Reference", "Source", "StringState", "ViolinRun"}
    others |= {"FlameRun", "follow_flame", "get", "mna", "names", "play_violin", "sparse_tableau"}
    assert dir(library) == library.__all__ == sorted({*library.names(), *others})
    assert in_a_new_process("from daedal.library import *; print(*(name for name in dir() if name[0] != '_'))") == dir(
        library
    )
    assert len(library.names()) == 116


def test_problems_are_imported_when_one_is_asked_for():
    modules = "print(*(name for name in sys.modules if name.startswith('daedal.library')))"
    assert in_a_new_process(f"import sys, daedal; {modules}") == []
    assert "daedal.library.rods" in in_a_new_process(f"import sys, daedal; daedal.library.crank_slider; {modules}")


def test_no_module_of_the_library_stands_in_the_way_of_a_problem():
    """An import of daedal.library.x would hide a problem x."""
    modules = {module.name for module in pkgutil.iter_modules(library.__path__)}
    assert modules.isdisjoint(dir(library))


def test_an_unknown_name_is_no_attribute_of_the_library():
    with pytest.raises(AttributeError, match="has no attribute 'robinson'"):
        library.robinson  # noqa: B018


@pytest.mark.parametrize("name", library.names())
def test_factories_keep_their_names_and_parameters(name):
    factory = getattr(library, name)
    assert factory.__name__ == library.get(name).name == name
    assert factory.__doc__ and pickle.loads(pickle.dumps(factory)) is factory
    assert inspect.signature(factory).return_annotation is library.Model


def tables():
    """What the files of ``data`` hold, by problem."""
    files = [path for path in Path(library.__path__[0], "data").glob("*.toml") if path.stem != "sources"]
    entries = [(path.stem, tomllib.loads(path.read_text(encoding="utf-8"))) for path in files]
    return {name: {"module": module, **problem} for module, file in entries for name, problem in file.items()}


def test_data_and_factories_belong_together():
    """Every problem has an entry beside its factory; what the entry says of parameters is said of existing ones."""
    assert {name: entry["module"] for name, entry in tables().items()} == {
        name: getattr(library, name).__module__.rpartition(".")[2] for name in library.names()
    }
    for name, entry in tables().items():
        parameters = set(inspect.signature(getattr(library, name)).parameters)
        assert {one for names in entry.get("parameters", {}) for one in names.split(", ")} <= parameters
        assert {*entry.get("positive", ()), *entry.get("choices", ())} <= parameters
        documented = inspect.getdoc(getattr(library, name)).partition("Parameters\n")[2].partition("\n\n")[0]
        described = re.findall(r"(?m)^(\w.*?) : ", documented)
        assert {one for names in described for one in names.split(", ")} == parameters, name


def test_known_solutions_are_found_by_their_parameters():
    for name, problem in tables().items():
        for entry in problem.get("solutions", ()):
            reference = library.get(name, **entry["given"]).reference
            assert (reference.source, reference.accuracy) == (entry["source"], entry["accuracy"])
            assert reference.t == entry["given"].get("t1", reference.t) == entry.get("t", reference.t)


# --- the data -------------------------------------------------------------------------------------------------


@every_model(lambda model: model.initial[1] is not None)
def test_initial_values_satisfy_the_equations(model):
    y0, yp0 = start(model)
    known = np.nan_to_num(yp0)  # semi-explicit problems: the derivatives of algebraic variables do not matter
    F = residual(model, model.t_span[0], y0, known)
    np.testing.assert_allclose(F, 0.0, atol=1e-12 * (1.0 + np.max(np.abs(known))))


@every_model(lambda model: not np.any(np.isnan(start(model)[1])) and model.name != "charge_pump")  # kink at t = 0
def test_initial_derivatives_satisfy_the_differentiated_constraints(model):
    y0, yp0 = start(model)
    t0, t1 = model.t_span
    h = 1e-5 * min(t1 - t0, 1.0)
    dF_dyp = jacobians(model, t0, y0, yp0)[1]
    constraints = ~np.any(dF_dyp != 0.0, axis=1)
    drift = (residual(model, t0 + h, y0 + h * yp0, yp0) - residual(model, t0 - h, y0 - h * yp0, yp0)) / (2.0 * h)
    np.testing.assert_allclose(drift[constraints], 0.0, atol=1e-8 * (1.0 + np.max(np.abs(yp0))))


@every_model(lambda model: model.name != "changing_nullspace")  # one of them is absent at each time
def test_algebraic_variables_are_those_without_derivative(model):
    problem = model.problem.implicit()
    y0, _ = start(model)
    n = problem.n
    rng = np.random.default_rng(0)
    dF_dyp = jacobians(model, model.t_span[0] + 0.5, y0, rng.normal(size=n))[1]
    absent = ~np.any(np.abs(dF_dyp) > 1e-12, axis=0)
    declared = np.zeros(n, dtype=bool) if problem.algebraic is None else problem.algebraic
    np.testing.assert_array_equal(declared, absent)


@every_model(lambda model: not (model.problem.bandwidth is None and model.problem.sparsity is None))
def test_structure_covers_the_jacobian(model):
    problem = model.problem.implicit()
    y0, _ = start(model)
    dF_dy, dF_dyp = jacobians(model, 0.0, y0 * (1.0 + 0.1 * np.sin(np.arange(problem.n))), np.ones(problem.n))
    row, column = np.nonzero((np.abs(dF_dy) > 1e-12) | (np.abs(dF_dyp) > 1e-12))
    if problem.bandwidth is not None:
        assert (np.max(row - column), np.max(column - row)) == problem.bandwidth
    else:
        pattern = problem.sparsity.toarray() != 0
        assert np.all(pattern[row, column])


def index_of_pencil(model):
    """The index that is stated for the pencil, or the differentiation index; None for a singular pencil."""
    return model.index if model.indices is None else model.indices.local


@every_model(lambda model: model.name not in WIDE_SCALES and index_of_pencil(model) is not None)
def test_declared_index_is_that_of_the_local_pencil(model):
    """E = (c F_y' + F_y)^-1 F_y' has a Jordan chain to zero as long as the index (BCP, section 2.3)."""
    y0, yp0 = start(model)
    dF_dy, dF_dyp = jacobians(model, model.t_span[0], y0, np.nan_to_num(yp0))
    E = np.linalg.solve(3.0 * dF_dyp + dF_dy, dF_dyp)
    ranks = [np.linalg.matrix_rank(np.linalg.matrix_power(E, k), tol=1e-7) for k in range(8)]
    index = next(k for k in range(7) if ranks[k] == ranks[k + 1])
    assert index == index_of_pencil(model)


COMPILED = ("robertson", "transistor_amplifier", "pendulum-index2--1.0", "nand_gate", "heat2d-4-sparse-False")
COMPILED += ("tppc2-semi-explicit", "robertson-semi-explicit-40000000000.0")
"""Rates and powers, constraints, functions that call others, loops, each form; the others are left to `make soak`."""


@pytest.mark.parametrize("name", sampled(MODELS, COMPILED))
def test_residual_compiles_unchanged(name):
    model = MODELS[name]
    problem = model.problem
    compiled = problem.compiled(backend="trace" if model.name in WITH_HELPERS else "numba")
    rng = np.random.default_rng(1)
    y0, yp0 = start(model)
    y = y0 * (1.0 + 0.01 * rng.normal(size=y0.size))
    yp = np.nan_to_num(yp0) + rng.normal(size=y0.size)
    t = 0.5 * sum(model.t_span) if model.t_span[1] < 1e3 else 1.0
    expected = problem.implicit().evaluate(t, y, yp)
    np.testing.assert_allclose(compiled.implicit().evaluate(t, y, yp), expected, rtol=1e-10, atol=1e-12)


@every_model(lambda model: model.problem.jacobian is not None)
def test_jacobian_is_that_of_the_residual(model):
    problem = model.problem
    y0, yp0 = start(model)
    dF_dy, dF_dyp = jacobians(model, 0.3, y0, yp0)
    matrix = problem.jacobian(0.3, y0, yp0, 7.0, problem.params)
    np.testing.assert_allclose(matrix, dF_dy + 7.0 * dF_dyp, atol=1e-6)
    np.testing.assert_array_equal(problem.compiled("numba").jacobian(0.3, y0, yp0, 7.0, problem.params), matrix)


@every_model(lambda model: "exact" in model.extra)
def test_closed_solution_solves_the_equations(model):
    exact, h = model.extra["exact"], 1e-5
    for t in np.linspace(*model.t_span, 7):
        y, yp = exact(t), exact(t, 1)
        scale = 1.0 + np.max(np.abs(yp))
        np.testing.assert_allclose(yp, (exact(t + h) - exact(t - h)) / (2.0 * h), atol=1e-6 * scale)
        np.testing.assert_allclose(residual(model, t, y, yp), 0.0, atol=1e-11 * scale)
    np.testing.assert_allclose(exact(model.t_span[0]), start(model)[0], atol=1e-14)
    if model.reference is not None:
        np.testing.assert_allclose(exact(model.reference.t), model.reference.y, rtol=1e-11, atol=1e-14)


@every_model()
def test_texts_are_complete(model):
    assert model.title and model.source and model.description
    assert model.equations.count(r"\begin") == model.equations.count(r"\end")
    assert set(model.plot) <= {"variables", "xscale", "yscale", "factors"}
    assert set(model.plot["variables"]) <= set(model.problem.names)
    assert set(model.plot.get("factors", {})) <= set(model.problem.names)
    assert model.name in repr(model) and model.title in model._repr_markdown_()


# --- the references, by reduction to ODEs -----------------------------------------------------------------------


def ode(f, t_span, y0, method="DOP853", rtol=1e-12, atol=1e-14, **options):
    run = solve_ivp(f, t_span, y0, method=method, rtol=rtol, atol=atol, **options)
    assert run.success
    return run.y[:, -1]


def assert_reference(model, values, rtol, derivative, atol=1e-12):
    """The values are those of the reference, and the model's residual vanishes there with the given derivative.

    Components of the derivative that do not occur in the equations may be anything.
    """
    known = np.isfinite(model.reference.y)
    assert model.reference.accuracy <= rtol
    np.testing.assert_allclose(np.asarray(values)[known], model.reference.y[known], rtol=rtol, atol=1e-14)
    F = residual(model, model.reference.t, values, derivative)
    np.testing.assert_allclose(F, 0.0, atol=atol * (1.0 + np.max(np.abs(derivative))))


@pytest.mark.parametrize("form", ["ggl", "index1", "index2", "index3"])
def test_pendulum_reference_follows_from_the_angle_equation(form):
    model = library.pendulum(form)
    a, w = ode(lambda t, u: [u[1], math.cos(u[0])], model.t_span, [0.0, 1.0])
    z = [math.cos(a), math.sin(a), -w * math.sin(a), w * math.cos(a), w * w + math.sin(a)]
    slopes = [z[2], z[3], -z[0] * z[4], -z[1] * z[4] + 1.0, 0.0]
    multiplier = [0.0] if form == "ggl" else []
    assert_reference(model, z + multiplier, 1e-11, slopes + multiplier)
    np.testing.assert_allclose(model.extra["constraints"](z), 0.0, atol=1e-12)


@pytest.mark.parametrize("t1", [4e10, 1e11])
def test_robertson_reference_follows_from_the_rate_equations(t1):
    def rates(t, y):
        slow, back, fast = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
        return [back - slow, slow - back - fast, fast]

    def jacobian(t, y):
        return [[-0.04, 1e4 * y[2], 1e4 * y[1]], [0.04, -1e4 * y[2] - 6e7 * y[1], -1e4 * y[1]], [0, 6e7 * y[1], 0]]

    y = ode(rates, (0.0, t1), [1.0, 0.0, 0.0], "Radau", 1e-9, [1e-20, 1e-25, 1e-12], jac=jacobian)
    assert_reference(library.robertson(t1), y, 1e-9, rates(t1, y))


def test_transistor_reference_follows_from_the_capacitor_voltages():
    """States: the voltages on C1 to C5. The node voltages follow from three scalar equations, one after the other."""
    ub, uf, alpha, beta, r = 6.0, 0.026, 0.99, 1e-6, 9000.0

    def g(u):
        return beta * (math.exp(u / uf) - 1.0)

    def node(a, b, c):
        """The root v of  a v + (1 - alpha) g(v - c) = b."""
        v = c
        for _ in range(100):
            slope = a + (1.0 - alpha) * (g(v - c) + beta) / uf
            step = (b - a * v - (1.0 - alpha) * g(v - c)) / slope
            v += max(min(step, 0.05), -0.05)
            if abs(step) < 1e-15:
                break
        return v

    def voltages(t, x):
        c1, u3, c3, u6, c5 = x
        ue = 0.1 * math.sin(200.0 * math.pi * t)
        u2 = node(1e-3 + 2.0 / r, ub / r + (c1 + ue) * 1e-3, u3)
        u5 = node(3.0 / r, (2.0 * ub + c3) / r - alpha * g(u2 - u3), u6)
        u8 = ((ub + c5) / r - alpha * g(u5 - u6)) / (2.0 / r)
        return np.array([u2 - c1, u2, u3, u5 - c3, u5, u6, u8 - c5, u8]), ue

    def slopes(t, x):
        u, ue = voltages(t, x)
        return [
            (u[0] - ue) / (1000.0 * 1e-6),
            (g(u[1] - u[2]) - u[2] / r) / 2e-6,
            ((u[3] - ub) / r + alpha * g(u[1] - u[2])) / 3e-6,
            (g(u[4] - u[5]) - u[5] / r) / 4e-6,
            ((u[6] - ub) / r + alpha * g(u[4] - u[5])) / 5e-6,
        ]

    model = library.transistor_amplifier()
    x = ode(slopes, model.t_span, [3.0, 3.0, -3.0, 3.0, -6.0], "LSODA", 1e-12, 1e-13)
    c1, u3, c3, u6, c5 = slopes(0.2, x)
    assert_reference(model, voltages(0.2, x)[0], 1e-8, [0.0, c1, u3, 0.0, c3, u6, 0.0, c5], atol=1e-16)


def test_transistor_initial_derivative_follows_from_the_hidden_constraints():
    """The sums of the paired equations contain no derivative; they must not drift."""
    model = library.transistor_amplifier()
    y0, yp0 = model.initial
    h = 1e-7

    def sums(sign):
        F = residual(model, sign * h, y0 + sign * h * yp0, np.zeros(8))
        return F[[0, 3, 6]] + F[[1, 4, 7]]

    np.testing.assert_allclose((sums(1.0) - sums(-1.0)) / (2.0 * h), 0.0, atol=1e-9)


def motion(x, lift, drag, mass, area, sine, cosine):
    """The equations of motion of the trajectory problems; complex-differentiable."""
    H, _, lat, V, gam, A = x
    r, om = H + 20902900.0, 7.2921159e-5
    g, q = 0.1407653916e17 / r**2, 0.5 * 0.002378 * np.exp(-H / 23800.0) * area * V**2 / mass
    sl, cl, sg, cg, sa, ca = np.sin(lat), np.cos(lat), np.sin(gam), np.cos(gam), np.sin(A), np.cos(A)
    return np.array(
        [
            V * sg,
            V * cg * sa / (r * cl),
            V / r * cg * ca,
            -q * drag - g * sg - om**2 * r * cl * (sl * ca * cg - cl * sg),
            q * lift * cosine / V
            + cg / V * (V**2 / r - g)
            + 2 * om * cl * sa
            + om**2 * r * cl / V * (sl * ca * sg + cl * cg),
            q * lift * sine / (V * cg)
            + V / r * cg * sa * np.tan(lat)
            - 2 * om * (cl * ca * np.tan(gam) - sl)
            + om**2 * r * cl * sl * sa / (V * cg),
        ]
    )


@pytest.mark.parametrize("form", ["index2", "index1", "semi-explicit"])
def test_tppc2_reference_follows_from_eliminated_controls(form):
    """Flight-path angle and azimuth are given; their rates yield lift and bank angle."""
    mass = 2.890532728

    def on_path(t, u):
        s = t / 300.0
        return np.array([*u, -(1.0 + 9.0 * s * s) * DEGREE, (45.0 + 90.0 * s * s) * DEGREE])

    def controls(t, x):
        free = motion(x, 0.0, 0.0, mass, 1.0, 0.0, 0.0)
        per_lift = 0.5 * 0.002378 * math.exp(-x[0] / 23800.0) * x[3] / mass
        up = (-18.0 * t / 300.0**2 * DEGREE - free[4]) / per_lift
        side = (180.0 * t / 300.0**2 * DEGREE - free[5]) * math.cos(x[4]) / per_lift
        return math.hypot(up, side), math.atan2(side, up)

    def slopes(t, u):
        x = on_path(t, u)
        lift, bank = controls(t, x)
        return motion(x, lift, 0.04 + 0.1 * lift**2, mass, 1.0, math.sin(bank), math.cos(bank))

    model = library.tppc2(form)
    u0 = [100000.0, 0.0, 0.0, 12000.0]
    u = ode(lambda t, u: slopes(t, u)[:4], model.t_span, u0, atol=[1e-7, 1e-15, 1e-15, 1e-8])
    x = on_path(300.0, u)
    lift, bank = controls(300.0, x)
    assert_reference(model, [*x, 100.0 * DEGREE * lift, bank], 1e-10, [*slopes(300.0, u), 0.0, 0.0])
    lift, bank = controls(0.0, on_path(0.0, u0))
    np.testing.assert_allclose(start(model)[0][6:], [100.0 * DEGREE * lift, bank], rtol=1e-13)


@pytest.mark.parametrize("t1", [400.868734542, 419.868734542])
def test_tppc3_reference_follows_from_the_twice_differentiated_constraint(t1):
    model = library.tppc3(t1)
    lift, drag, mass, area = 0.84 + 0.48 / 13.0, 0.78 + 0.58 / 13.0, 5964.496499824, 2690.0
    c0, c1, c2, c3, v0 = model.problem.params[12:]

    def acceleration(x):
        return 0.5 * 0.002378 * np.exp(-x[0] / 23800.0) * drag * area * x[3] ** 2 / mass

    def first_derivative(x):
        slope = motion(x, 0.0, drag, mass, area, 0.0, 0.0)
        D, w = acceleration(x), x[3] - v0
        return -D / 23800.0 * slope[0] + (2.0 * D / x[3] - c1 - 2.0 * c2 * w - 3.0 * c3 * w * w) * slope[3]

    def bank(x):
        def second_derivative(sine, cosine):
            slope = motion(x, lift, drag, mass, area, sine, cosine)
            return np.imag(first_derivative(x + 1e-30j * slope)) / 1e-30

        a = second_derivative(0.0, 0.0)  # the second derivative is a + b cos(beta) + c sin(beta)
        b, c = second_derivative(0.0, 1.0) - a, second_derivative(1.0, 0.0) - a
        phase, angle = math.atan2(c, b), math.acos(-a / math.hypot(b, c))
        return min((phase + angle, phase - angle), key=lambda beta: abs(beta - 0.9))

    def slopes(t, x):
        beta = bank(x)
        return motion(x, lift, drag, mass, area, math.sin(beta), math.cos(beta))

    y0, yp0 = model.initial
    assert acceleration(y0) == pytest.approx(c0, rel=1e-14)
    assert first_derivative(y0[:6]) == pytest.approx(0.0, abs=1e-14)
    assert bank(y0[:6]) == pytest.approx(y0[6], rel=1e-13)
    h = 1e-3
    rate = (bank(y0[:6] + h * yp0[:6]) - bank(y0[:6] - h * yp0[:6])) / (2.0 * h)
    assert rate == pytest.approx(yp0[6], rel=1e-6)
    x = ode(slopes, model.t_span, y0[:6], atol=[1e-7, 1e-14, 1e-14, 1e-8, 1e-15, 1e-14])
    assert_reference(model, [*x, bank(x)], 1e-9, [*slopes(t1, x), 0.0])


def test_unicursal_reference_follows_from_eliminated_tau1():
    def slopes(t, x):
        sine = np.cbrt(2.0 * math.sin(x[0]))
        cosine = -math.sqrt(1.0 - sine**2)
        return [(cosine**3 - math.cos(x[1]) + 1.0) / math.sin(x[0]), 2.0 * math.sin(x[0]) / (1.0 - math.cos(x[1]))]

    model = library.unicursal_loop()
    x = ode(slopes, model.t_span, [3.0, 1.0], "Radau", 1e-10, 1e-12)
    tau1 = math.pi - math.asin(np.cbrt(2.0 * math.sin(x[0])))
    assert_reference(model, [*x, tau1], 1e-9, [*slopes(5.0, x), 0.0])


def flame_run(delta, points, rtol):
    """The temperatures at the end, their slopes, and when 1.5 passes the points x = 0, 0.5, 0.9."""
    c, rate = (points - 1.0) ** 2, 5.0 / delta
    laplacian = sparse.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(points - 1, points - 1)).tolil()
    laplacian[0, 1] = 2.0
    laplacian = (c * laplacian).tocsc()
    boundary = np.zeros(points - 1)
    boundary[-1] = c

    def slopes(t, T):
        return laplacian @ T + boundary + rate * (2.0 - T) * np.exp(delta - delta / T)

    def jacobian(t, T):
        e = rate * np.exp(delta - delta / T)
        return laplacian + sparse.diags((2.0 - T) * e * delta / T**2 - e)

    def passing(x):
        point = round(x * (points - 1))
        return lambda t, T: T[point] - 1.5

    passes = [passing(x) for x in (0.0, 0.5, 0.9)]
    run = solve_ivp(
        slopes, (0.0, 0.29), np.ones(points - 1), "Radau", jac=jacobian, rtol=rtol, atol=rtol, events=passes
    )
    T = run.y[:, -1]
    return np.append(T, 1.0), np.append(slopes(0.29, T), 0.0), [float(times[0]) for times in run.t_events]


def test_flame_reference_and_front_times_follow_from_radau():
    model = library.flame(compiled=False)
    T, slopes, times = flame_run(20.0, 401, 1e-8)
    assert_reference(model, T, 1e-6, slopes, atol=1e-10)
    np.testing.assert_allclose(times, list(model.extra["front_times"].values()), rtol=1e-4)


def test_steeper_flame_has_the_stated_front_times():
    times = flame_run(30.0, 1001, 1e-6)[2]
    np.testing.assert_allclose(times, list(library.flame(30.0).extra["front_times"].values()), rtol=1e-4)


@cache
def food_web_steady_state(mx, my):
    """Newton's method on the steady equations, with the Laplacian as a Kronecker sum, after implicit Euler steps."""

    def second_difference(m):
        D = sparse.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(m, m)).tolil()
        D[0, 1] = D[-1, -2] = 2.0
        return (m - 1.0) ** 2 * D.tocsr()

    L = sparse.kron(sparse.eye(my), second_difference(mx)) + sparse.kron(second_difference(my), sparse.eye(mx))
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, mx), np.linspace(0, 1, my)))
    b = 1.0 + 50.0 * x * y + 1000.0 * np.sin(4 * np.pi * x) * np.sin(4 * np.pi * y)
    n = mx * my

    def rates(u):
        prey, predator = u[:n], u[n:]
        return np.concatenate(
            [
                L @ prey + prey * (b - prey - 0.5e-6 * predator),
                0.05 * (L @ predator) + predator * (-b + 1e4 * prey - predator),
            ]
        )

    def jacobian(u):
        prey, predator = u[:n], u[n:]
        return sparse.bmat(
            [
                [L + sparse.diags(b - 2.0 * prey - 0.5e-6 * predator), sparse.diags(-0.5e-6 * prey)],
                [sparse.diags(1e4 * predator), 0.05 * L + sparse.diags(-b + 1e4 * prey - 2.0 * predator)],
            ]
        ).tocsc()

    mass = sparse.diags(np.repeat([1.0, 0.0], n))
    prey = 10.0 + (16.0 * x * (1.0 - x) * y * (1.0 - y)) ** 2
    u = np.concatenate([prey, 1e4 * prey])
    for step in 2e-4 * 1.2 ** np.arange(50):
        old = u
        for _ in range(4):
            u = u - spsolve((mass / step - jacobian(u)).tocsc(), mass @ (u - old) / step - rates(u))
    for _ in range(4):
        u = u - spsolve(jacobian(u), rates(u))
    return rates, u


def test_food_web_reference_is_the_steady_state():
    _, u = food_web_steady_state(20, 20)
    model = library.food_web(compiled=False)
    # The terms of the predators' equation are of size 1e13.
    assert_reference(model, u.reshape(2, -1).T.ravel(), 1e-11, np.zeros(800), atol=1e-2)


def test_food_web_residual_agrees_with_the_kronecker_form():
    model = library.food_web(6, 4, compiled=False)
    rates, _ = food_web_steady_state(6, 4)
    rng = np.random.default_rng(2)
    u, up = rng.uniform(1.0, 9.0, (2, 24)), rng.normal(size=(2, 24))
    expected = -rates(u.ravel()).reshape(2, 24)
    expected[0] += up[0]
    np.testing.assert_allclose(residual(model, 0.0, u.T.ravel(), up.T.ravel()), expected.T.ravel(), rtol=1e-11)


def test_food_web_reaction_is_the_problem_without_diffusion():
    model = library.food_web(3, 4, compiled=False)
    reaction = model.extra["reaction"]
    rng = np.random.default_rng(3)
    y, yp = np.tile([3.0, 4.0], 12), rng.normal(size=24)  # uniform: nothing diffuses
    np.testing.assert_allclose(reaction.evaluate(0.0, y, yp), model.problem.evaluate(0.0, y, yp), rtol=1e-12)
    y = rng.uniform(1.0, 9.0, 24)
    for k in range(24):
        shifted = y.copy()
        shifted[k] += 1.0
        affected = np.flatnonzero(reaction.evaluate(0.0, shifted, yp) != reaction.evaluate(0.0, y, yp))
        assert set(affected) == {2 * (k // 2), 2 * (k // 2) + 1}


def test_large_problems_are_compiled():
    assert hasattr(library.food_web(10, 10).problem.residual, "operations")  # of a trace
    assert not hasattr(library.food_web(9, 10).problem.residual, "operations")
    huge = library.food_web(224, 224).problem
    assert huge.n == 100352 and hasattr(huge.residual, "py_func")  # of Numba


# --- networks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [1, 2])
def test_rc_circuit_has_index_2_exactly_if_sources_and_capacitors_form_a_loop(index):
    model = library.rc_circuit(index)
    rows = [k for k, branch in enumerate(model.extra["branches"]) if branch.kind in "EC"]
    independent = np.linalg.matrix_rank(model.extra["incidence"][rows]) == len(rows)
    assert independent == (index == 1)


@pytest.mark.parametrize("conductances", [(1.0, 2.0, 2.0, 1.0), (1.0, 2.0, 3.0, 6.0), (0.5, 1.5, 2.5, 3.5)])
def test_determinants_of_the_four_resistor_amplifier(conductances):
    g1, g2, g3, g4 = conductances
    determinant = library.four_resistor_amplifier("capacitor", conductances, 0.3).extra["determinant"]
    for s in (0.0, 1.0, -2.0):
        assert determinant(s) == pytest.approx(s * 0.3 * (g1 * g4 - g2 * g3) - g1 * g2 * g3, abs=1e-12)
    if g1 * g4 == g2 * g3:
        with pytest.raises(daedal.InvalidProblemError, match="G1 G4 = G2 G3"):
            library.four_resistor_amplifier("source", conductances)
    else:
        determinant = library.four_resistor_amplifier("source", conductances).extra["determinant"]
        assert determinant(1.0) == pytest.approx(g2 * g3 - g1 * g4, abs=1e-12)


def test_last_voltage_of_the_cascade_is_the_third_derivative_of_the_source():
    model = library.differentiator_cascade(stages=3, resistance=2.0, capacitance=0.25)
    t = 0.7
    third_derivative = -8.0 * math.cos(2.0 * t)  # of sin 2t
    assert model.extra["exact"](t)[-1] == pytest.approx(-(0.5**3) * third_derivative, rel=1e-12)


def test_sparse_tableau_of_a_voltage_divider():
    problem = library.sparse_tableau([("E", 1, 0, 6.0), ("R", 1, 2, 100.0), ("R", 2, 0, 200.0)])
    assert problem.names == ("v_E1", "v_R2", "v_R3", "i_E1", "i_R2", "i_R3", "v1", "v2")
    solution = np.array([6.0, 2.0, 4.0, -0.02, 0.02, 0.02, 6.0, 4.0])
    np.testing.assert_allclose(problem.evaluate(0.0, solution, np.zeros(8)), 0.0, atol=1e-14)


@pytest.mark.parametrize(
    ("branches", "message"),
    [
        ([("Q", 1, 0, 1.0)], "kind='Q'"),
        ([("R", 1, 0, -5.0)], "resistor=-5.0 must be a positive number"),
        ([("C", 1, 0, library.Source(1.0))], "capacitor=Source"),
        ([("E", 1, 0, 1.0), ("R", 1, 3, 1.0)], "node 2"),
    ],
)
def test_sparse_tableau_refuses_wrong_networks(branches, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        library.sparse_tableau(branches)


# --- names and parameters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("pendulun", {}, "did you mean 'pendulum'"),
        ("pendulum", {"lenght": 2.0}, "no parameter 'lenght'; its parameters: form, gravity, length"),
        ("pendulum", {"form": "index4"}, "choose one of 'index3', 'index2', 'index1', 'ggl'"),
        ("pendulum", {"length": 0.0}, "length=0.0 must be a positive number"),
        ("tppc3", {"t1": 300.0}, "must be later than the start"),
        ("food_web", {"mx": 2}, "too small"),
        ("heat2d", {"m": 2}, "at least 3"),
        ("flame", {"points": 2}, "at least 3"),
        ("differentiator_cascade", {"stages": 0}, "at least 1"),
    ],
)
def test_wrong_names_and_parameters_are_refused(name, parameters, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        library.get(name, **parameters)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("pendulum", {"gravity": 9.81}),
        ("robertson", {"t1": 40.0}),
        ("tppc3", {"t1": 350.0}),
        ("food_web", {"mx": 10}),
        ("flame", {"delta": 30.0}),
    ],
)
def test_changed_parameters_have_no_reference(name, parameters):
    assert library.get(name, **parameters).reference is None


def test_every_factory_is_reachable_by_name():
    for name in library.names():
        assert getattr(library, name).__name__ == name
    assert set(library.names()) < set(library.__all__)


def test_reference_error_is_relative_where_it_can_be():
    reference = library.Reference(0.0, np.array([2.0, 0.0, np.nan]), "by hand")
    np.testing.assert_allclose(reference.error([2.2, 0.1, 5.0]), [0.1, 0.1, np.nan])


# --- with Daedal's integrator ---------------------------------------------------------------------------------

# Relative errors at the end, far above the tolerances of the models: fronts, phases and first-order methods
LOOSE = {"damped_oscillator": 2e-3, "flame": 2e-3, "tppc3": 2e-3}
SOLVED = [
    *[(name, {}) for name in FIRST_ORDER if name not in {*TEST_SET, *ANY_INDEX, *FIELDS}],
    ("food_web", {"structure": "banded"}),
    ("heat2d", {"m": 20, "structure": "sparse"}),
    ("pendulum", {"form": "index1"}),
    ("pendulum", {"form": "index2"}),
    ("pendulum", {"form": "index3"}),
    ("robertson", {"form": "semi-explicit"}),
    ("tppc2", {"form": "index1"}),
    ("tppc2", {"form": "semi-explicit"}),
    ("tppc2", {"form": "inertial"}),
    ("rc_circuit", {"index": 2}),
    ("differentiator_cascade", {"stages": 3}),
    ("four_resistor_amplifier", {"element": "source"}),
    ("hessenberg_index2", {"form": "semi-explicit"}),
]


@pytest.mark.parametrize(("name", "parameters"), SOLVED, ids=lambda value: value if isinstance(value, str) else "")
def test_model_is_solved_to_its_reference(name, parameters):
    model = library.get(name, **parameters)
    solution = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    assert np.nanmax(model.reference.error(solution.y[:, -1])) < LOOSE.get(name, 1e-4)


def test_food_web_passes_through_its_known_states():
    model = library.food_web()
    times = list(model.extra["corners"])
    solution = daedal.solve(model.problem, model.t_span, model.initial, t_eval=times, **model.options)
    np.testing.assert_allclose(solution.y[[0, 1, -2, -1]].T, list(model.extra["corners"].values()), rtol=1e-3)


def test_the_table_of_contents_is_current():
    """After a change, ``python -m daedal.library.contents`` writes it."""
    from daedal.library.contents import computed, contents

    assert computed() == contents()


def test_a_problem_is_found_without_loading_the_others():
    code = "import sys, daedal; daedal.library.get('robertson'); print(*(m for m in sys.modules if '.library.' in m))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name.rpartition(".")[2] for name in loaded} == {"contents", "kinetics", "registry"}
