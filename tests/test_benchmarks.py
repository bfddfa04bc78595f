"""What the benchmarks make of their measurements: ratios at equal error, the file of results, the tables of a page."""

import math
from importlib import import_module

import numpy as np
import pytest
from benchmarks import ensembles, machines, page
from benchmarks.by_hand import by_hand
from benchmarks.compare import quickest_forms, standings
from benchmarks.first_call import FirstCall
from benchmarks.measure import Point
from benchmarks.mechanisms import mass_function
from benchmarks.rates import rate_of
from benchmarks.results import Results, keep
from benchmarks.solvers.base import Level
from benchmarks.stick_slip import exact_end, stick_slip_end

import daedal
from daedal import library
from daedal.multibody.kinematics import placement
from oracles import oracle

CASE = "seven-body"


def ladder(solver, factor, errors=(1e-2, 1e-4, 1e-6), failed=0):
    """Runs whose time is `factor` / error^(1/4)."""
    runs = [Point(CASE, solver, Level(e, e), seconds=factor * e**-0.25, error=e, drift=1e-9) for e in errors]
    return runs + [Point(CASE, solver, Level(1e-9, 1e-9), failure="gave up")] * failed


@pytest.fixture
def results():
    points = [*ladder("daedal-auto", 1e-3), *ladder("sundials4py-index1", 8e-3), *ladder("sundials4py-ggl", 4e-3)]
    points += ladder("sundials4py-ggl1", 3.5e-3, errors=(1e-2, 1e-3))  # quicker, but not accurate
    points += [*ladder("casadi-erk-jit", 5e-4, failed=1), *ladder("ida-c-ggl1", 3e-3, errors=(1e-3, 1e-5))]
    calls = [FirstCall(CASE, "daedal-auto", 1e-5, 0.2, 0.3), FirstCall(CASE, "sundials4py-ggl", 1e-5, 0.1, 0.4)]
    return Results({}, points=points, first_calls=calls)


def test_ratios_are_taken_at_equal_error(results):
    found = {s.solver: s for s in standings(results.points)}
    assert found["daedal-auto"].mean == pytest.approx(1.0)
    assert found["sundials4py-ggl"].mean == pytest.approx(4.0)
    assert found["ida-c-ggl1"].at(1e-4) == pytest.approx(3.0)  # between two runs of each
    assert found["ida-c-ggl1"].at(1e-2) is None  # not reached
    assert (found["casadi-erk-jit"].failed, found["casadi-erk-jit"].runs) == (1, 4)


def test_of_several_forms_the_quickest_counts(results):
    assert [s.solver for s in quickest_forms(standings(results.points)) if "sundials" in s.solver] == [
        "sundials4py-ggl"
    ]


def test_results_come_back_from_their_file(results, tmp_path):
    results.write(tmp_path / "results.json")
    again = Results.read(tmp_path / "results.json")
    assert again.first_calls == results.first_calls and again.machine == results.machine
    assert [(p.solver, p.level, p.seconds) for p in again.points if p.worked] == [
        (p.solver, p.level, p.seconds) for p in results.points if p.worked
    ]
    assert [p.failure for p in again.points if not p.worked] == ["gave up"] and math.isnan(again.points[-3].error)


def test_a_page_is_filled_where_there_are_results(results):
    places = ("mechanisms-python", "mechanisms-compiled", "closest", "first-calls", "large")
    text = "# Title\n" + "".join(f"<!-- table: {name} -->\nold\n<!-- end -->\n" for name in places)
    filled = page.filled(text, results)
    assert "| sundials4py IDAS | 4.00 |" in filled
    assert "| CasADi erk, C, reduced to an ODE | 0.50, 1 of 4 failed |" in filled
    nearest = "| seven-body | 3.50 (sundials4py IDAS, GGL of index 1) |"
    floor = "3.00 (IDA in C, compiled residual (floor), GGL of index 1)"
    assert f"{nearest} {floor} | 0.50 (CasADi erk, C, reduced to an ODE) |" in filled
    assert "| seven-body | sundials4py IDAS, GGL | 1e-05 | 100 | 500 | 0.50 | 1.00 |" in filled
    assert filled.count("old") == 1  # nothing was measured on large problems
    assert page.filled(filled, results) == filled


def test_simulations_of_machines_are_compared_at_equal_error():
    def runs(program, *figures):
        return [Point("A01", program, Level(1.0, 1.0), seconds=time, error=error) for error, time in figures]

    own = runs("Daedal", (1e-3, 1e-3), (1e-7, 4e-3))
    peer = [*runs("Exudyn dense", (1e-2, 5e-3), (1e-4, 2e-2)), *runs("Exudyn sparse", (1e-4, 4e-2), (1e-6, 0.2))]
    rows = {row[1]: dict(zip(machines.HEADS, row)) for row in machines.table([*own, *peer])}
    assert set(rows) == {"Daedal", "Exudyn"}  # a program without runs has no row
    assert rows["Daedal"]["1e-05 m"] == "2"
    assert rows["Exudyn"]["1e-02 m"] == "5 (> 5.00)"  # the loosest run of Daedal is better than that
    assert rows["Exudyn"]["1e-04 m"] == "20 (14)"  # the quicker of two methods
    assert rows["Exudyn"]["1e-07 m"] == ""


@pytest.mark.parametrize(
    ("package", "module", "name", "settings"),
    [
        ("exudyn", "machine_exudyn", "InExudyn", ("TrapezoidalIndex2", "EXUdense", 200)),
        ("mujoco", "machine_mujoco", "InMujoco", ("RK4", 2000)),
    ],
)
@pytest.mark.parametrize("machine", ["four_bars", "andrews_machine", "flyball_governor"])
def test_machines_move_alike_in_other_programs(package, module, name, settings, machine):
    """All kinds of joints and forces of the comparison, for a short time."""
    oracle(package)
    model = library.get(machine, coordinates="relative")
    t1 = 0.01 * model.t_span[1]
    sol = daedal.solve(model.problem, (0.0, t1), model.initial, rtol=1e-9, atol=1e-9)
    layout = model.problem.layout
    centres = placement(layout.tree, sol.q[:, -1]).r
    start = placement(layout.tree, sol.q[:, 0]).r
    other = getattr(import_module(f"benchmarks.{module}"), name)(model.problem.model, layout, *model.initial, t1)
    other.run(*settings)()
    assert abs(other.centres() - centres).max() < 1e-3 * abs(centres - start).max()


# --- ensembles and sensitivities --------------------------------------------------------------------------------------


def test_rates_of_ensembles_are_those_at_equal_error():
    rungs = [ensembles.Rung(1e-4, 1e-4, seconds=1.0), ensembles.Rung(1e-6, 1e-6, seconds=4.0)]
    assert ensembles.seconds_at(1e-5, rungs) == pytest.approx(2.0)  # between them on logarithmic scales
    assert ensembles.seconds_at(1e-5, rungs[1:]) == 4.0  # the loosest run is better than that
    assert math.isnan(ensembles.seconds_at(1e-5, []))


def right_slopes(system, t, q, v, p):
    """(q', v') by NumPy from the functions of the library."""
    rows = system.constraint_jacobian(t, q, p)
    none = np.zeros((len(rows), len(rows)))
    matrix = np.block([[np.asarray(mass_function(system)(t, q, p)), rows.T], [rows, none]])
    right = [*system.force(t, q, v, p), *system.acceleration_bias(t, q, v, p)]
    return np.array([*v, *np.linalg.solve(matrix, right)[: q.size]])


def slopes_in(package, equations, t, y, p):
    """(q', v') from the equations in the form for a package."""
    if package == "jax":
        pytest.importorskip("jax").config.update("jax_enable_x64", True)
        return np.asarray(equations.in_jax()(t, pytest.importorskip("jax.numpy").asarray(y), p))
    if package == "casadi":
        casadi = pytest.importorskip("casadi")
        state, params = casadi.SX.sym("y", y.size), casadi.SX.sym("p", p.size)
        function = casadi.Function("rate", [state, params], [equations.in_casadi()(t, state, params)])
        return np.ravel(function(y, p))
    slope = np.empty(y.size)
    equations.compiled()(t, y, slope, p)
    return slope


@pytest.mark.parametrize("package", ["numba", "jax", "casadi"])
@pytest.mark.parametrize("name", ["planar_pendulum", "double_pendulum", "crank_slider", "seven_body"])
@pytest.mark.parametrize("stated", [by_hand, rate_of])
def test_equations_for_peers_are_those_of_the_mechanism(stated, name, package):
    model = library.get(name)
    (t, _), (q, v) = model.t_span, model.initial
    step = np.arange(1.0, q.size + 1.0)
    q, v, p = q + 0.01 * step, v + 0.1 * step, 1.1 * model.problem.params  # no entry is zero by accident
    expected = right_slopes(model.problem, t, q, v, p)
    found = slopes_in(package, stated(name), t, np.concatenate([q, v]), p)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max())  # of the elimination


def test_peers_by_hand_and_with_the_code_of_the_graph_stand_in_two_tables(tmp_path):
    cells = [str(k) for k in range(len(ensembles.HEADS) - 2)]
    mechanism = ensembles.Row(["crank", "1e-05", *cells], ["crank", "10", "20", "", "40"])
    keep(tmp_path, **mechanism.tables)
    keep(tmp_path, **ensembles.Row(["reaction", "1e-05", *cells], ["reaction", "-", "-", "-", "-"]).tables)
    places = "".join(f"<!-- table: {name} -->\nold\n<!-- end -->\n" for name in ("ensembles", "ensembles-generated"))
    text = page.filled(places, Results.read(tmp_path / "results.json"))
    assert "old" not in text
    assert f"| crank | 1e-05 | {' | '.join(cells)} |" in text and "| reaction | 1e-05 |" in text
    assert "| crank | 10 | 20 |  | 40 |" in text and "| reaction | - |" not in text


@pytest.mark.parametrize("t1", [1.0, 4.0, 10.0])
def test_the_block_of_the_peers_is_that_of_the_library(t1):
    model = library.stick_slip_block(t1=t1)
    start, mu = np.array([model.initial[1][0][0], 0.0]), np.array([0.3])
    assert exact_end(0.0, t1, start, mu) == pytest.approx(model.extra["exact"](t1), abs=1e-12)
    assert stick_slip_end(start, (0.0, t1), mu, 1e-10) == pytest.approx(model.extra["exact"](t1), abs=1e-8)


def test_tables_measured_alone_stand_beside_the_others(results, tmp_path):
    results.gradients = [["rod", "1"], ["rod", "2"], ["reaction", "3"]]
    results.write(tmp_path / "results.json")
    keep(tmp_path, gradients=[["rod", "4"]], ensembles=[["pendulum", "5"]])
    again = Results.read(tmp_path / "results.json")
    assert again.gradients == [["reaction", "3"], ["rod", "4"]] and again.ensembles == [["pendulum", "5"]]
    assert len(again.points) == len(results.points)
    alone = Results({}, ensembles=again.ensembles)
    assert page.filled("<!-- table: session -->\nold\n<!-- end -->", alone).count("old") == 1  # it tells of other runs
