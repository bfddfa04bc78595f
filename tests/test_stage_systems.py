"""The linear systems of the stages of implicit Runge-Kutta methods: transformations and complex matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

import daedal
from daedal.kernels.callbacks import Bridge
from daedal.kernels.compilation import entry
from daedal.kernels.complex_matrix import COMPLEX_MATRIX, factor_complex, solve_complex
from daedal.kernels.records import floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.methods.implicit_rk.implicit_stages import KINDS, collocation_stages, stages_of
from daedal.methods.implicit_rk.stage_systems import storage, transformation

NAMES = ("radau5", "radau9", "radau13", "gauss2", "gauss3", "gauss8", "radau_ia4", "lobatto_iiia4", "lobatto_iiib3")
NAMES += ("lobatto_iiic5", "sirk2", "sirk23", "sirk3", "sirk3_collocation", "sdirk4")


def reassembled(found):
    """The block triangular matrix."""
    blocks = np.zeros(found.transform.shape) if found.coupling is None else found.coupling.copy()
    first = 0
    for value, width in zip(found.eigenvalues, found.widths, strict=True):
        assert not blocks[first : first + width, : first + width].any()
        re, im = value.real, value.imag
        blocks[first : first + width, first : first + width] = [[re]] if width == 1 else [[re, -im], [im, re]]
        first += width
    assert first == len(blocks)
    return blocks


def matrices(name):
    stages = stages_of(daedal.methods.coefficients(name))
    return [stages.of_block(block) for block in stages.blocks]


@pytest.mark.parametrize("name", NAMES)
def test_transformations_reassemble_the_matrix(name):
    for a in matrices(name):
        found = transformation(a)
        np.testing.assert_allclose(found.transform @ reassembled(found) @ found.inverse, a, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("s", [2, 3, 5])
def test_transformations_reassemble_inverse_matrices_of_collocation(kind, s):
    data = collocation_stages(kind, s)
    found = data.newton
    np.testing.assert_allclose(found.transform @ reassembled(found) @ found.inverse, data.w, atol=1e-10 * s**3)
    assert len(data.w) == s - data.known


@pytest.mark.parametrize("s", [3, 5, 7])
def test_one_eigenvalue_of_radau_methods_is_real(s):
    found = collocation_stages("radau", s).newton
    assert found.widths == [1] + [2] * (s // 2) and found.coupling is None


@pytest.mark.parametrize("name", ["sirk2", "sirk3", "sirk3_collocation"])
def test_singly_implicit_methods_have_one_factorisation(name):
    (a,) = matrices(name)
    found = transformation(a)
    assert len(set(found.eigenvalues)) == 1 and found.coupling is not None


def test_a_matrix_with_two_multiple_eigenvalues_becomes_triangular():
    a = np.array([[2.0, 1.0, 0.0, 0.3], [0.0, 2.0, 0.5, 0.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]])
    basis = np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 1.0, 2.0], [0.5, 1.0, 0.0, 3.0]])
    a = basis @ a @ np.linalg.inv(basis)
    found = transformation(a)
    np.testing.assert_allclose(found.transform @ reassembled(found) @ found.inverse, a, atol=1e-9)


def test_a_repeated_pair_becomes_block_triangular():
    rotation = np.array([[1.0, -2.0], [2.0, 1.0]])
    a = np.block([[rotation, np.eye(2)], [np.zeros((2, 2)), rotation]])
    found = transformation(a)
    assert found.widths == [2, 2]
    np.testing.assert_allclose(found.transform @ reassembled(found) @ found.inverse, a, atol=1e-7)


# --- complex matrices -------------------------------------------------------------------------------------------------


@entry(i64(i64, f64))
def factor_there(address, t):
    return factor_complex(record_at(address, COMPLEX_MATRIX), t)


@entry(i64(i64, f64, i64))
def solve_there(address, t, b):
    matrix = record_at(address, COMPLEX_MATRIX)
    return solve_complex(matrix, t, floats(b, 2 * matrix.total))


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("kind", ["dense", "banded", "sparse"])
@pytest.mark.parametrize("n", [1, 5, 30])
def test_complex_matrices_solve_systems_of_any_structure(n, kind, copies):
    rng = np.random.default_rng(n)
    lower, upper = (1, 2) if n > 3 else (0, 0)
    pattern = sp.csc_array(np.triu(np.tril(np.ones((n, n)), upper), -lower))
    places = storage(n, kind, (lower, upper), pattern)
    matrix = places.complex_matrix(bridge := Bridge(), copies)
    entries = rng.normal(size=places.rows.size) + 1j * rng.normal(size=places.rows.size)
    full = np.zeros((n, n), dtype=complex)
    full[places.rows, places.columns] = entries
    data = matrix.array("data")
    data[2 * places.place], data[2 * places.place + 1] = entries.real, entries.imag
    solution = rng.normal(size=(copies, n)) + 1j * rng.normal(size=(copies, n))
    right = np.ascontiguousarray(solution @ full.T)
    assert factor_there(matrix.address, 0.0) == 0
    assert solve_there(matrix.address, 0.0, right.ctypes.data) == 0
    np.testing.assert_allclose(right, solution, rtol=0.0, atol=1e-9 * np.linalg.cond(full))
    assert bridge.exception is None


@pytest.mark.parametrize("n", [3, 20])
def test_a_singular_complex_matrix_is_reported(n):
    matrix = storage(n, "dense").complex_matrix(Bridge())
    assert factor_there(matrix.address, 0.0) == 1
