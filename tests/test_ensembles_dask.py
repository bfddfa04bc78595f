"""Ensembles on a real cluster of Dask: nothing lost, nothing twice, also where a worker is killed in mid-run."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import daedal
from ensemble_models import START, moody, pendulum

dask = pytest.importorskip("dask")
pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(scope="module")
def marker(tmp_path_factory):
    """A file that tells a function that it has killed its process before."""
    return tmp_path_factory.mktemp("dask") / "marker"


@pytest.fixture(scope="module")
def client(marker):
    """Two workers, each a process."""
    tests = str(Path(__file__).parent)
    environment = {"DAEDAL_TEST_MARKER": str(marker), "PYTHONPATH": ":".join([tests, *sys.path])}
    few = dask.config.set({"distributed.scheduler.allowed-failures": 1})
    with (
        few,
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, env=environment) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


def test_chunks_are_tasks_with_the_bits_of_single_runs(client):
    gravities = np.linspace(1.0, 10.0, 60)
    here = daedal.solve_many(pendulum(), (0.0, 1.0), START, params={"g": gravities}, workers=1)
    there = daedal.solve_many(pendulum(), (0.0, 1.0), START, params={"g": gravities}, on=client, chunk_size=7)
    assert_array_equal(there.final.y, here.final.y)
    assert "Dask" in there.message
    mean = daedal.solve_many(pendulum(), (0.0, 1.0), START, params={"g": gravities}, on=client, reduce="mean")
    assert_allclose(mean.reduced["mean"]["y"], here.final.y.mean(axis=0), atol=1e-15)


def test_results_may_stay_with_the_workers(client):
    gravities, times = np.linspace(1.0, 10.0, 30), [0.5, 1.0]
    options = {"params": {"g": gravities}, "t_eval": times, "chunk_size": 7}
    here = daedal.solve_many(pendulum(), (0.0, 1.0), START, workers=1, **options)
    there = daedal.solve_many(pendulum(), (0.0, 1.0), START, on=client, gather=False, **options)
    assert isinstance(there.final.q, dask.array.Array) and there.q.numblocks[0] >= 4
    assert_array_equal(there.q.compute(), here.q)
    assert_array_equal(there.final.y.compute(), here.final.y)
    assert_allclose(there.q[:, 0].mean(axis=0).compute(), here.q[:, 0].mean(axis=0), rtol=1e-14)
    assert_array_equal(there.t_final, here.t_final)
    with pytest.raises(daedal.InvalidProblemError, match="gather=False needs"):
        daedal.solve_many(pendulum(), (0.0, 1.0), START, gather=False, **options)


def test_the_chunk_of_a_killed_worker_is_run_again(client, marker):
    moods = np.zeros((24, 1))
    moods[9], moods[17] = 5.0, 1.0
    ensemble = daedal.solve_many(moody(), (0.0, 1.0), ([1.0], [-1.0]), params=moods, on=client, chunk_size=3)
    assert marker.exists()
    assert ensemble.failed.tolist() == [17] and "bad mood" in ensemble.messages[17]
    assert ensemble.members == 24
    good = np.arange(24) != 17
    assert_allclose(ensemble.final.y[good, 0], np.exp(-1.0), rtol=1e-5)


def test_a_member_that_kills_every_worker_is_given_up(client):
    moods = np.zeros((4, 1))
    moods[2] = 4.0
    ensemble = daedal.solve_many(moody(), (0.0, 1.0), ([1.0], [-1.0]), params=moods, on=client, chunk_size=2)
    assert ensemble.failed.tolist() == [2] and "KilledWorker" in ensemble.messages[2]
    assert_allclose(ensemble.final.y[[0, 1, 3], 0], np.exp(-1.0), rtol=1e-5)


def test_clusters_may_grow_and_shrink(client):
    client.cluster.adapt(minimum=1, maximum=2, interval="100ms")
    try:
        ensemble = daedal.solve_many(
            pendulum(), (0.0, 1.0), START, params={"g": np.linspace(1.0, 9.0, 50)}, on=client, chunk_size=2
        )
    finally:
        client.cluster.adapt(minimum=2, maximum=2)
    assert ensemble.success and ensemble.members == 50
