"""Calls of a microsecond: compiled functions that read NumPy's arrays where they stand."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from daedal.multibody import Body, Model, Revolute, aba, crba, ground, rnea


@pytest.fixture(scope="module")
def layout():
    upper = Body.box("upper", size=(0.2, 0.3, 1.0), mass=1.0)
    lower = Body.box("lower", size=(0.1, 0.2, 0.5), mass=2.0)
    joints = (
        Revolute("shoulder", ground, upper.at(0.1, 0.0, 0.5, rotation=(1.0, 0.3, 0.2, 0.1))),
        Revolute("elbow", upper.at(0.0, 0.0, -0.5, rotation=(1.0, 0.0, 0.4, 0.0)), lower.at(0.0, 0.1, 0.2)),
    )
    return Model(*joints, gravity=(0.0, 0.0, -9.81)).layout()


Q, U, A = np.array([0.3, -0.8]), np.array([1.0, 2.0]), np.array([-0.5, 0.25])


def read_only(values):
    values = values.copy()
    values.flags.writeable = False
    return values


def unaligned(values):
    room = np.zeros(8 * values.size + 1, dtype=np.uint8)[1:].view(np.float64)
    room[:] = values
    return room


FORMS = {
    "list": list,
    "every other": lambda values: np.repeat(values, 2)[::2],
    "backwards": lambda values: values[::-1].copy()[::-1],
    "single": lambda values: values.astype(np.float32).astype(object),
    "other bytes": lambda values: values.astype(">f8"),
    "pickled": lambda values: pickle.loads(pickle.dumps(values)),
    "read-only": read_only,
    "unaligned": unaligned,
    "of a subclass": lambda values: values.view(type("Special", (np.ndarray,), {})),
}


@pytest.mark.parametrize("form", FORMS)
def test_numbers_count_and_not_how_they_are_stored(layout, form):
    given = [FORMS[form](values) for values in (Q, U, A)]
    plain = [np.array([float(x) for x in values]) for values in given]
    assert np.array_equal(rnea(layout, *given), rnea(layout, *plain))
    assert np.array_equal(aba(layout, *given), aba(layout, *plain))
    assert np.array_equal(crba(layout, given[0]), crba(layout, plain[0]))


@pytest.mark.parametrize("q", [Q, list(Q)], ids=["taken as it is", "refused at first"])
def test_no_reference_is_kept_or_lost(layout, q):
    watched = [q, U, A, None, np.ndarray, layout]
    if q is Q:  # np.empty and np.zeros themselves, which the other way needs, count up on their default type
        watched.append(np.dtype(np.float64))

    def calls():
        for _ in range(1000):
            rnea(layout, q, U, A)
            crba(layout, q)
            aba(layout, q, U, A)

    calls()
    before = [sys.getrefcount(one) for one in watched]
    calls()
    after = [sys.getrefcount(one) for one in watched]
    assert np.max(np.abs(np.subtract(after, before))) < 50  # each call that leaked would count 1000


def test_results_are_arrays_of_their_own(layout):
    first, matrix = rnea(layout, Q, U, A), crba(layout, Q)
    kept, whole = first.copy(), matrix.copy()
    assert rnea(layout, Q, U, 2.0 * A) is not first
    crba(layout, U)[:] = 0.0
    assert np.array_equal(first, kept) and np.array_equal(matrix, whole)
    assert first.flags.owndata and first.flags.writeable and matrix.flags.c_contiguous and matrix.flags.owndata
    assert sys.getrefcount(first) == sys.getrefcount(kept)


def test_threads_do_not_disturb_each_other(layout):
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 3, 2))
    alone = [rnea(layout, *point) for point in points]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda point: rnea(layout, *point), points))
    assert np.array_equal(alone, together)


def test_where_memory_is_short_it_is_said(layout):
    prepared = layout.prepared
    vars(layout)["prepared"] = prepared._replace(room=2**45)
    try:
        for call in (lambda: rnea(layout, Q, U, A), lambda: crba(layout, Q), lambda: aba(layout, Q, U, A)):
            with pytest.raises(MemoryError):
                call()
    finally:
        vars(layout)["prepared"] = prepared
    assert np.all(np.isfinite(rnea(layout, Q, U, A)))
