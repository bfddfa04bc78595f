"""Structure of iteration matrices: which columns can be differenced together, and the positions of their entries."""

import numpy as np

from daedal.kernels.compilation import entry
from daedal.kernels.signatures import f64, i64, void


@entry(i64(i64[:], i64[:], i64[:], i64[:], i64[:], i64[:]))
def _colour(indptr, indices, row_start, row_columns, colours, forbidden):
    """Greedy colouring: columns that share a row get different colours. Returns the number of colours.

    `forbidden` holds -1 for each possible colour.
    """
    n = indptr.size - 1
    count = 0
    for j in range(n):
        for e in range(indptr[j], indptr[j + 1]):
            i = indices[e]
            for m in range(row_start[i], row_start[i + 1]):
                other = row_columns[m]
                if colours[other] >= 0:
                    forbidden[colours[other]] = j
        colour = 0
        while forbidden[colour] == j:
            colour += 1
        colours[j] = colour
        count = max(count, colour + 1)
    return count


def groups_from_colours(colours: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(group_start, group_columns): the columns of each colour, contiguous."""
    order = np.argsort(colours, kind="stable").astype(np.int64)
    start = np.searchsorted(colours[order], np.arange(count + 1)).astype(np.int64)
    return start, order


def sparse_groups(pattern) -> tuple[np.ndarray, np.ndarray]:
    """Groups of columns of a CSC `pattern` that share no row (Curtis, Powell and Reid)."""
    by_rows = pattern.tocsr()
    colours = np.full(pattern.shape[0], -1, dtype=np.int64)
    count = _colour(
        pattern.indptr.astype(np.int64),
        pattern.indices.astype(np.int64),
        by_rows.indptr.astype(np.int64),
        by_rows.indices.astype(np.int64),
        colours,
        np.full(colours.size + 1, -1, dtype=np.int64),
    )
    return groups_from_colours(colours, count)


def band_pattern(n: int, ml: int, mu: int) -> tuple[np.ndarray, np.ndarray]:
    """(column_start, rows) of a full band."""
    columns = np.arange(n)
    first, last = np.maximum(columns - mu, 0), np.minimum(columns + ml, n - 1)
    lengths = last - first + 1
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = np.arange(start[-1]) - np.repeat(start[:-1] - first, lengths)
    return start, rows.astype(np.int64)


def block_pattern(n: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(column_start, rows) of a block-diagonal matrix with blocks of `size` (the last may be smaller)."""
    columns = np.arange(n)
    first = columns // size * size
    lengths = np.minimum(first + size, n) - first
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = np.arange(start[-1]) - np.repeat(start[:-1] - first, lengths)
    return start, rows.astype(np.int64)


def band_position(column_start: np.ndarray, rows: np.ndarray, ml: int, mu: int) -> np.ndarray:
    """Positions of the entries in LAPACK band storage with 2 ml + mu + 1 rows."""
    columns = np.repeat(np.arange(column_start.size - 1), np.diff(column_start))
    return (columns * (2 * ml + mu + 1) + ml + mu + rows - columns).astype(np.int64)


def equilibrate(data, indices, indptr, rows, columns):
    """Scale a CSC matrix in place so that the largest entry of each row and column is about one (Ruiz).

    The factors `rows` and `columns` are multiplied by the scaling used.
    """
    structure = indices.astype(np.int64, copy=False), indptr.astype(np.int64, copy=False)
    _equilibrate(data, *structure, rows, columns, np.empty(rows.size), np.empty(rows.size))


@entry(void(f64[:], i64[:], i64[:], f64[:], f64[:], f64[:], f64[:]))
def _equilibrate(data, indices, indptr, rows, columns, largest_row, largest_column):
    n = rows.size
    for _ in range(3):
        for i in range(n):
            largest_row[i] = 0.0
            largest_column[i] = 0.0
        for j in range(n):
            for e in range(indptr[j], indptr[j + 1]):
                size = abs(data[e])
                largest_row[indices[e]] = max(largest_row[indices[e]], size)
                largest_column[j] = max(largest_column[j], size)
        for i in range(n):
            largest_row[i] = 1.0 / np.sqrt(largest_row[i]) if largest_row[i] > 0.0 else 1.0
            largest_column[i] = 1.0 / np.sqrt(largest_column[i]) if largest_column[i] > 0.0 else 1.0
            rows[i] *= largest_row[i]
            columns[i] *= largest_column[i]
        for j in range(n):
            for e in range(indptr[j], indptr[j + 1]):
                data[e] *= largest_row[indices[e]] * largest_column[j]
