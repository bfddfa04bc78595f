"""What functions read from outside, in containers and objects of every kind: a change is seen by the next run."""

import importlib
from importlib.machinery import EXTENSION_SUFFIXES

import numpy as np
import pytest

import daedal
from daedal.driver import traced
from daedal.symbolic import substitution
from daedal.symbolic.dependencies import Dependencies
from soak import stale


@pytest.mark.parametrize("number", range(len(stale.CONTAINERS)), ids=lambda number: list(stale.CONTAINERS)[number])
def test_runs_after_a_change_see_it(number):
    verdict = stale.drawn(number).judged(number)
    assert verdict.kind == "right", verdict


def test_functions_that_differ_from_their_trace_are_called_in_all_later_runs(monkeypatch):
    monkeypatch.setattr(Dependencies, "check", lambda self: lambda: True)  # a change that is not seen
    rate = [1.0]
    problem = daedal.ODE(lambda t, y: [-rate[0] * y[0]], 1)
    long = {"max_step": 1.0 / traced._LONG}
    daedal.solve(problem, (0.0, 1.0), [1.0], **long)
    rate[0] = 2.0
    with pytest.warns(daedal.errors.TraceWarning, match="all later runs"):
        daedal.solve(problem, (0.0, 1.0), [1.0], **long)
    for options in (long, {}):
        sol = daedal.solve(problem, (0.0, 1.0), [1.0], **options)
        assert sol.y[0, -1] == pytest.approx(np.exp(-2.0), abs=1e-5)


def test_whether_functions_are_called_along_a_run_depends_on_the_run_alone(monkeypatch):
    """The run for which machine code was made is always held against the functions, later ones if they are long."""
    calls = []
    monkeypatch.setattr(traced, "disagreement", lambda *_: calls.append(1))
    solver = daedal.prepare(daedal.ODE(lambda t, y: [-y[0]], 1), max_step=1.0 / traced._LONG)
    solver.solve((0.0, 1e-3), [2.0])
    assert calls
    for end, seen in ((1e-3, 0), (2.0, 2), (1e-3, 0), (1e-3, 0), (2.0, 2), (2.0, 2)):
        calls.clear()
        solver.solve((0.0, end), [1.0])
        assert len(calls) == seen


def test_a_prepared_solver_can_be_asked_to_trace_again():

    class Watched:
        def __call__(self, t, y):
            return [-y[0]]

    solver = daedal.prepare(daedal.ODE(Watched(), 1))
    plan = solver.plan
    solver.solve((0.0, 1.0), [1.0])
    assert solver.plan is plan
    solver.refresh()
    assert solver.plan is not plan
    assert solver.solve((0.0, 1.0), [1.0]).y[0, -1] == pytest.approx(np.exp(-1.0), abs=1e-5)


def test_a_package_with_compiled_modules_is_known_before_they_are_loaded(tmp_path, monkeypatch):
    """Objects of such packages hold pointers, whatever was imported so far."""
    for name, file in (("brings_code", "deep/_code" + EXTENSION_SUFFIXES[0]), ("plain_python", "deep/code.py")):
        folder = tmp_path / "site-packages" / name
        (folder / "deep").mkdir(parents=True)
        (folder / "__init__.py").write_text("rate = 1.0\n")
        (folder / file).touch()
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    found = []
    for name in ("brings_code", "plain_python"):
        importlib.import_module(name)
        found.append(substitution._is_foreign(name))
    assert found == [True, False]
