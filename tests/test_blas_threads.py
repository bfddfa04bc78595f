"""Runs of small systems keep BLAS in one thread, whatever threads they run in, and leave it as it was."""

import threading

import numpy as np
import pytest

import daedal
from daedal.driver.run_segments import thread_count

pytestmark = pytest.mark.skipif(thread_count() is None, reason="no BLAS whose threads can be counted")


def threads() -> int:
    return thread_count()[0]()


def seen_during_run(n: int, times, wait=None, fails: bool = False) -> set[int]:
    """The numbers of threads while y' = -y, n times, is solved."""
    seen = set()

    def residual(t, y, yp):
        if t > times[0]:
            seen.add(threads())
            if wait is not None:
                wait()
        if fails and t > 0.5:
            raise ValueError("on purpose")
        return yp + y

    problem = daedal.ImplicitDAE(residual, n, jacobian=lambda t, y, yp, cj: (1.0 + cj) * np.eye(n))
    daedal.solve(problem, times, (np.ones(n), -np.ones(n)), rtol=1e-2, atol=1e-2)
    return seen


@pytest.fixture
def two_threads():
    before, (_, write) = threads(), thread_count()
    write(2)
    yield
    write(before)


def test_runs_of_small_systems_have_one_thread_and_give_it_back(two_threads):
    assert seen_during_run(100, (0.0, 1.0)) == {1}
    assert threads() == 2
    with pytest.raises(ValueError, match="on purpose"):
        seen_during_run(100, (0.0, 1.0), fails=True)
    assert threads() == 2


def test_very_small_and_large_systems_leave_the_threads_alone(two_threads):
    assert seen_during_run(3, (0.0, 1.0)) == {2}
    assert seen_during_run(1001, (0.0, 0.01)) == {2}


def test_the_last_of_several_runs_gives_the_threads_back(two_threads):
    """Two runs that are inside at the same time: one thread until both have ended."""
    both, results = threading.Barrier(2, timeout=30.0), []

    def run():
        met = False

        def meet():
            nonlocal met
            if not met:
                met = True
                both.wait()

        results.append(seen_during_run(100, (0.0, 1.0), wait=meet))

    workers = [threading.Thread(target=run) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 2 and all(seen == {1} for seen in results)
    assert threads() == 2
