"""Declared structs: their layout, and the views that kernels have of their arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daedal.kernels.memory import record_at
from daedal.kernels.records import ADDRESS, Record, Struct, at, data_of, inline, optional
from daedal.kernels.signatures import f64, i64

INNER = Struct("INNER", [("k", i64), ("a", i64["k"])])
OUTER = Struct(
    "OUTER",
    [
        ("n", i64),
        ("x", f64["n"]),
        ("table", f64["2 * n + 1", "inner.k"]),
        ("inner", INNER),
        ("other", at(INNER)),
        ("far", f64["other.k - 1", 3]),
        ("few", inline(f64, 4)),
        ("function", ADDRESS),
    ],
)


def outer(n, k, j):
    inner = Record(INNER, k=k, a=np.arange(k))
    other = Record(INNER, k=j, a=np.arange(j))
    arrays = {"x": np.arange(float(n)), "table": np.zeros((2 * n + 1, k)), "far": np.zeros((j - 1, 3))}
    return Record(OUTER, n=n, inner=inner, other=other.address, function=7, **arrays), other


@given(st.integers(1, 6), st.integers(1, 5), st.integers(2, 5))
def test_views_have_the_declared_shapes_and_share_the_memory_of_the_arrays(n, k, j):
    record, _other = outer(n, k, j)
    seen = record_at(record.address, OUTER)
    assert seen.x.shape == (n,) and seen.table.shape == (2 * n + 1, k) and seen.far.shape == (j - 1, 3)
    assert (
        seen.few.shape == (4,) and seen.inner.a.tolist() == list(range(k)) and seen.other.a.tolist() == list(range(j))
    )
    seen.x[n - 1], seen.table[2 * n, k - 1], seen.few[3] = 5.0, 6.0, 7.0
    assert record.array("x")[-1] == 5.0 and record.array("table")[-1, -1] == 6.0 and record["few"][3] == 7.0
    assert data_of(seen.x) == record["x"] and seen.function == 7


def test_an_array_that_was_not_given_has_no_entries_and_the_address_zero():
    record = Record(OUTER, n=3)
    seen = record_at(record.address, OUTER)
    assert seen.x.shape == (0,) and data_of(seen.x) == 0
    with pytest.raises(IndexError):
        seen.x[0]


def test_numbers_can_be_set_and_arrays_cannot():
    record, _other = outer(3, 2, 2)
    seen = record_at(record.address, OUTER)
    seen.n = 2
    assert seen.x.size == 2
    for name in ("x", "inner", "other", "few"):
        with pytest.raises(AttributeError, match=f"OUTER.{name} is not a number"):
            setattr(seen, name, 0)
    with pytest.raises(AttributeError, match="OUTER has no field 'y'"):
        seen.y  # noqa: B018


def test_a_length_that_names_no_field_is_refused():
    with pytest.raises(TypeError, match=r"WRONG\.x: WRONG has no field 'm'"):
        Struct("WRONG", [("n", i64), ("x", f64["m"])])
    with pytest.raises(TypeError, match=r"WRONG\.x: INNER has no field 'm'"):
        Struct("WRONG", [("inner", at(INNER)), ("x", f64["inner.m"])])
    with pytest.raises(TypeError, match="n // 2 is not a length"):
        Struct("WRONG", [("n", i64), ("x", f64["n // 2"])])


def test_the_layout_is_that_of_numpy():
    assert OUTER.dtype.names == tuple(OUTER.kinds) and OUTER.itemsize == 8 * (4 + 2 + 1 + 4 + 1)
    assert np.zeros(2, dtype=OUTER)["inner"]["k"].tolist() == [0, 0]


def test_a_record_can_allocate_its_arrays():
    shapes = Struct(
        "SHAPES", [("n", i64), ("x", f64["n"]), ("few", optional(f64["n"])), ("at", at(INNER)), ("p", i64["n", "at.k"])]
    )
    given_x, inner = np.arange(3.0), Record.allocated(INNER, k=2)
    record = Record.allocated(shapes, n=3, x=given_x, at=inner)
    seen = record_at(record.address, shapes)
    assert record["few"] == 0 and record["at"] == inner.address and record.array("x") is given_x
    assert seen.p.shape == (3, 2) and seen.p.dtype == np.int64 and record.block.shape == (6,) and not record.block.any()
    seen.p[2, 1] = 7
    assert record.array("p")[2, 1] == 7 and record.block.view(np.int64)[5] == 7
