"""What the benchmarks make of their measurements: ratios at equal error, the file of results, the tables of a page."""

import math

import pytest
from benchmarks import page
from benchmarks.compare import quickest_forms, standings
from benchmarks.first_call import FirstCall
from benchmarks.measure import Point
from benchmarks.results import Results
from benchmarks.solvers.base import Level

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
