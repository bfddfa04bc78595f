"""Compiled loops of the backward integration: evaluation at many points, and steps of small problems."""

from daedal.kernels.callbacks import NATIVE
from daedal.kernels.compilation import caller, entry
from daedal.kernels.dense import LU, factor_dense, solve_dense
from daedal.kernels.records import data_of, record_at
from daedal.kernels.signatures import f64, i64

_call = caller(NATIVE)


@entry(i64(i64, f64[:], f64[:, :], f64[:], i64, f64[:, :]))
def evaluate_many(address, times, inputs, block, first, results):
    """Rows of `results` from rows of `inputs`, by the machine code at an address; its block holds the parameters."""
    for i in range(times.size):
        for j in range(inputs.shape[1]):
            block[j] = inputs[i, j]
        status = _call(address, times[i], data_of(block))
        if status != 0:
            return status
        for j in range(results.shape[1]):
            results[i, j] = block[first + j]
    return 0


@entry(i64(i64, f64[:], f64[:], f64[:, :], f64[:], i64, f64[:]))
def add_many(address, times, weights, inputs, block, first, total):
    """Add the weighted results at all points to `total`."""
    for i in range(times.size):
        for j in range(inputs.shape[1]):
            block[j] = inputs[i, j]
        status = _call(address, times[i], data_of(block))
        if status != 0:
            return status
        for j in range(total.size):
            total[j] += weights[i] * block[first + j]
    return 0


@entry(i64(i64, f64[:, :], i64[:, :], i64[:, :], f64[:, :], f64[:], f64[:, :, :], f64[:], f64[:, :]))
def small_steps(lu_address, tableau, e_places, a_places, values, sizes, known, w, mu):
    """Backward steps, E_i mu_i + h sum_j a_ij A_j mu_j = w - known_i with E^T and A^T instead of E and A.

    Rows of `values` hold the entries of E and of A at the stages; `e_places` and `a_places` are their (row, column) in
    the transposed matrices. On return, `w` is E mu at the start of the steps.
    """
    lu = record_at(lu_address, LU)
    n, size = w.size, 3 * w.size
    columns = lu.data
    n_e, n_a = e_places.shape[1], a_places.shape[1]
    for k in range(sizes.size - 1, -1, -1):
        for j in range(size):
            for i in range(size):
                columns[j, i] = 0.0
        for j in range(3):
            for m in range(n_a):
                row, column, value = a_places[0, m], j * n + a_places[1, m], sizes[k] * values[3 * k + j, n_e + m]
                for i in range(3):
                    columns[column, i * n + row] += tableau[i, j] * value
            for m in range(n_e):
                columns[j * n + e_places[1, m], j * n + e_places[0, m]] += values[3 * k + j, m]
        if factor_dense(lu) != 0:
            return 1
        right = mu[k]
        for i in range(3):
            for a in range(n):
                right[i * n + a] = w[a] - known[k, i, a]
        solve_dense(lu, right)
        for a in range(n):
            w[a] = 0.0
        for m in range(n_e):
            w[e_places[0, m]] += values[3 * k + 2, m] * right[2 * n + e_places[1, m]]
    return 0
