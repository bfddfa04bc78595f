"""Ensembles on a real GPU; skipped where there is none."""

import importlib

import numpy as np
import pytest

import daedal
from daedal.ensembles.gpu_model import gpu

try:
    gpu()
    MISSING = ""
except daedal.InvalidProblemError as error:
    MISSING = str(error)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)
START = [1.0, 0.0], [0.0, 0.0]


def pendulum():
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, p: [0.0, -p["g"]],
        lambda t, q, p: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)],
        n_q=2,
        n_constraints=1,
        params={"g": 9.81},
    )


@pytest.mark.parametrize("precision, tolerance", [("double", 2e-5), ("single", 1e-3)])
def test_a_gpu_agrees_with_threads(precision, tolerance):
    g, times = np.random.default_rng(0).uniform(1.0, 10.0, 2000), [0.25, 0.5, 1.0]
    options = {"params": {"g": g}, "t_eval": times, "rtol": 1e-5, "atol": 1e-5}
    found = daedal.solve_many(pendulum(), (0.0, 1.0), START, on=daedal.ensembles.GPU(precision), **options)
    expected = daedal.solve_many(pendulum(), (0.0, 1.0), START, **options)
    assert found.failed.size == 0
    np.testing.assert_allclose(found.y, expected.y, rtol=tolerance, atol=10 * tolerance)


def test_events_and_failures_of_single_members():
    g = np.full(1000, 9.81)
    g[500] = np.nan
    event = daedal.Event(lambda t, q, v: q[0], terminal=True, direction=-1, name="bottom")
    options = {"params": {"g": g}, "events": event, "rtol": 1e-9, "atol": 1e-11}
    found = daedal.solve_many(pendulum(), (0.0, 5.0), START, on="gpu", **options)
    assert found.failed.tolist() == [500]
    good = np.delete(np.arange(1000), 500)
    assert np.ptp(found.t_final[good[1:]]) == 0.0
    np.testing.assert_allclose(found.final.q[good, 0], 0.0, atol=1e-8)


def test_stiff_problems_to_1e11():
    model = daedal.library.robertson()
    rates = model.problem.params * np.random.default_rng(1).uniform(0.5, 2.0, (1000, 3))
    options = {"rtol": 1e-6, "atol": 1e-14}
    found = daedal.solve_many(model.problem, model.t_span, model.initial[0], params=rates, on="gpu", **options)
    assert found.failed.size == 0
    np.testing.assert_allclose(found.final.y.sum(axis=1), 1.0, rtol=1e-9)


def test_results_may_stay_on_the_device():
    cupy = importlib.import_module("cupy")
    found = daedal.ensembles.solve_on_gpu(pendulum(), (0.0, 1.0), START, params=cupy.linspace(1.0, 10.0, 1000)[:, None])
    assert isinstance(found.y, cupy.ndarray)
    assert found.y.shape == (1000, 4)
    assert int((found.statuses == 2).sum()) == 1000
