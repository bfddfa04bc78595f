"""Where runs of machines begin: short looks at starts with singular mass matrices and redundant constraints."""

import numpy as np
import pytest

import daedal
from daedal import library
from daedal.driver import mechanism_start


def started(monkeypatch, model, **options):
    """A run, and how often its start was searched for."""
    searched = []
    search = mechanism_start.check_start
    monkeypatch.setattr(mechanism_start, "check_start", lambda *a, **k: searched.append(1) or search(*a, **k))
    solution = daedal.solve(model.problem, model.t_span, model.initial, **options)
    monkeypatch.undo()
    return solution, len(searched)


def test_a_mass_matrix_that_is_definite_where_constraints_leave_freedom_needs_no_search(monkeypatch):
    model = library.point_pendulum()
    assert np.linalg.matrix_rank(model.problem.mass(0.0, np.array(model.initial[0]))) == 2
    found, searched = started(monkeypatch, model, rtol=1e-9, atol=1e-9)
    assert searched == 0
    assert np.abs(found.q[:, -1] - model.reference.y[:3]).max() < 1e-6


def test_a_direction_without_mass_that_no_constraint_holds_is_still_named():
    system = daedal.MechanicalSystem(
        np.diag([1.0, 1.0, 0.0]), lambda t, q, v: [0.0, -9.81, 0.0], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=3, n_constraints=1,
    )  # fmt: skip
    with pytest.raises(daedal.InconsistentInitialError, match="mass"):
        daedal.solve(system, (0.0, 1.0), ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]))


def test_redundant_constraints_of_a_start_are_searched_once_and_told_always(monkeypatch):
    model = library.bricard()
    options = {"rtol": 1e-6, "atol": 1e-6, "t_eval": [0.0, 1.0]}
    first, searched = started(monkeypatch, model, **options)
    again, searched_again = started(monkeypatch, model, **options)
    assert (searched, searched_again) == (1, 0)
    assert np.array_equal(first.q, again.q) and np.array_equal(first.lam, again.lam)
    assert "redundant" in " ".join(first.notes) and first.notes == again.notes
    q, v = model.initial
    with pytest.raises(daedal.InconsistentInitialError):  # another start is looked at for itself
        daedal.solve(model.problem, model.t_span, (q + 0.1, v), **options)


@pytest.mark.parametrize("size", [1e-16, 1e-13, 1e-9])
def test_coordinates_that_are_rounding_errors_start_as_zeros_do(size):
    """A crank-slider that stands in its zero position, functions called as they are: increments follow the machine."""
    model = library.crank_slider_3d()
    q, v = model.initial
    noise = size * np.random.default_rng(1).normal(size=len(q))
    options = {"compile": "never", "rtol": 1e-7, "atol": 1e-7}
    exact = daedal.solve(model.problem, (0.0, 0.1), (q, v), **options)
    found = daedal.solve(model.problem, (0.0, 0.1), (q + noise, v), correct_initial=True, **options)
    assert np.allclose(found.q[:, -1], exact.q[:, -1], rtol=0.0, atol=1e-6)
