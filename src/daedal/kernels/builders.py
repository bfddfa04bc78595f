"""Construction of the records for kernels: systems, matrices, linear solvers."""

from math import prod

import numpy as np

from daedal.errors import InvalidProblemError, Unevaluable
from daedal.kernels.callbacks import Bridge
from daedal.kernels.complex_matrix import COMPLEX_MATRIX
from daedal.kernels.dense import lapack_arguments
from daedal.kernels.functions import NativeFunction, norm_value, store_matrix, store_sparse, store_vector
from daedal.kernels.gmres import KRYLOV
from daedal.kernels.linear import LINEAR, direct_prepare, direct_solve, krylov_prepare, krylov_solve
from daedal.kernels.matrix import BANDED, DENSE, MATRIX, SINGULAR, SPARSE
from daedal.kernels.newton import TOLERANCE
from daedal.kernels.patterns import band_pattern, band_position, block_pattern, groups_from_colours, sparse_groups
from daedal.kernels.records import Record
from daedal.kernels.system import SYSTEM

LARGEST_WITH_SLOPE = 1000
"""Number of unknowns up to which dF/dy' is stored in addition to the iteration matrix."""
_NOTHING = np.zeros(0, dtype=np.int64)


def build_system(
    bridge: Bridge, n: int, *, residual=None, rate=None, params=None, hook=None, norm=None, row_power=None
) -> Record:
    """A SYSTEM record for the user's residual or rate and, if given, hook and norm ``norm(v, w) -> float``."""
    norm_callback = bridge.absent()
    if norm is not None:
        block = np.zeros(2 * n + 1)

        def norm_body(t):
            try:
                value = norm(block[:n].copy(), block[n : 2 * n].copy())
            except Unevaluable as error:
                raise InvalidProblemError(f"norm cannot be evaluated: {error}".rstrip(": ")) from error
            block[2 * n] = norm_value(value)

        norm_callback = bridge.python(norm_body, block)
    return Record(
        SYSTEM,
        hook=0 if hook is None else hook[0].address,
        hook_record=0 if hook is None else hook[1].address,
        n=n,
        residual=_vector_function(bridge, "residual", residual, (n, n), n, params),
        rate=_vector_function(bridge, "f", rate, (n,), n, params),
        norm=norm_callback,
        scaled_rows=row_power is not None,
        row_power=np.zeros(n) if row_power is None else np.asarray(row_power, dtype=float),
        row_scale=np.ones(n),
    )


def _vector_function(bridge: Bridge, name: str, function, arguments: tuple[int, ...], n: int, params) -> Record:
    """A callback for a function of vectors, defined by the user or by Daedal."""
    if function is None:
        return bridge.absent()
    if isinstance(function, NativeFunction):
        return bridge.native(function.kernel, function.record, sum(arguments) + n)
    return bridge.function(function, arguments, (n,), store_vector(name, n), params)


def _jacobian(bridge: Bridge, n: int, jacobian, shape: tuple[int, ...], store, params) -> Record:
    """A callback for the matrix of Newton's method, defined by the user or by Daedal, as a function of n unknowns."""
    if isinstance(jacobian, NativeFunction):
        return bridge.native(jacobian.kernel, jacobian.record, 2 * n + 1 + prod(shape))
    return bridge.function(jacobian, (n, n), shape, store, params, scalars=1)


def dense_matrix(bridge: Bridge, n: int, jacobian=None, params=None, copies: int = 1) -> Record:
    """Dense storage and LAPACK; the unknowns are the given number of copies of n."""
    callback = None
    if jacobian is not None:
        callback = _jacobian(bridge, copies * n, jacobian, (n, n), store_matrix("jacobian", n, n), params)
    return _matrix(n, DENSE, data=np.zeros(n * n), jacobian=callback, copies=copies)


def banded_matrix(
    bridge: Bridge, n: int, ml: int, mu: int, jacobian=None, params=None, own_system=None, copies: int = 1
) -> Record:
    """Band storage and LAPACK; a difference Jacobian takes ml + mu + 1 residuals."""
    column_start, rows = band_pattern(n, ml, mu)
    width = min(ml + mu + 1, n)
    callback = None
    if jacobian is not None:
        shape = (ml + mu + 1, n)
        callback = _jacobian(bridge, copies * n, jacobian, shape, store_matrix("jacobian", *shape), params)
    groups = groups_from_colours(np.arange(n) % width, width)
    return _matrix(
        n,
        BANDED,
        ml=ml,
        mu=mu,
        data=np.zeros((2 * ml + mu + 1) * n),
        groups=groups,
        pattern=(column_start, rows, band_position(column_start, rows, ml, mu)),
        jacobian=callback,
        own_system=own_system,
        copies=copies,
    )


def block_diagonal_matrix(n: int, size: int, own_system=None) -> Record:
    """Only the diagonal blocks, as a band with the pattern of the blocks; takes `size` residuals."""
    column_start, rows = block_pattern(n, size)
    bandwidth = min(size, n) - 1
    return _matrix(
        n,
        BANDED,
        ml=bandwidth,
        mu=bandwidth,
        data=np.zeros((3 * bandwidth + 1) * n),
        groups=groups_from_colours(np.arange(n) % size, min(size, n)),
        pattern=(column_start, rows, band_position(column_start, rows, bandwidth, bandwidth)),
        own_system=own_system,
    )


def sparse_matrix(bridge: Bridge, n: int, pattern, factorise, jacobian=None, params=None, copies: int = 1) -> Record:
    """Sparse storage with the entries of a CSC `pattern`; ``factorise(data, indices, indptr)`` returns a solver."""
    callback = None
    if jacobian is not None:
        callback = _jacobian(bridge, copies * n, jacobian, (pattern.nnz,), store_sparse("jacobian", pattern), params)
    data = np.zeros(pattern.nnz)
    factor, solve = _sparse_callbacks(bridge, np.zeros(n), data, pattern, factorise)
    column_start, rows = pattern.indptr.astype(np.int64), pattern.indices.astype(np.int64)
    return _matrix(
        n,
        SPARSE,
        data=data,
        groups=sparse_groups(pattern) if jacobian is None else (_NOTHING, _NOTHING),
        pattern=(column_start, rows, np.arange(pattern.nnz, dtype=np.int64)),
        jacobian=callback,
        factor=factor,
        solve=solve,
        copies=copies,
    )


def complex_matrix(n: int, bandwidth: tuple[int, int] | None = None, copies: int = 1) -> Record:
    """A complex matrix, dense or banded."""
    ml, mu = bandwidth or (0, 0)
    return Record.allocated(
        COMPLEX_MATRIX,
        kind=DENSE if bandwidth is None else BANDED,
        n=n,
        total=copies * n,
        ml=ml,
        mu=mu,
        size=n * n if bandwidth is None else (2 * ml + mu + 1) * n,
        lapack=lapack_arguments(n, ml, mu),
    )


def complex_sparse_matrix(bridge: Bridge, pattern, factorise, copies: int = 1) -> Record:
    """A complex matrix with the entries of a CSC `pattern`."""
    n, data = pattern.shape[0], np.zeros(2 * pattern.nnz)
    factor, solve = _sparse_callbacks(bridge, np.zeros(2 * n), data, pattern, factorise, complex)
    return Record.allocated(
        COMPLEX_MATRIX,
        kind=SPARSE,
        n=n,
        total=copies * n,
        size=pattern.nnz,
        data=data,
        lapack=lapack_arguments(n),
        factor=factor,
        solve=solve,
    )


def _sparse_callbacks(bridge, block, data, pattern, factorise, number=float) -> tuple[Record, Record]:
    factors: list = [None]
    vector, entries = block.view(number), data.view(number)

    def factor(t):
        try:
            factors[0] = factorise(entries, pattern.indices, pattern.indptr)
        except RuntimeError as error:  # SuperLU's error for a singular matrix
            if "singular" not in str(error):
                raise
            return SINGULAR
        return None

    def solve(t):
        vector[:] = factors[0](vector)

    return bridge.python(factor, np.zeros(1)), bridge.python(solve, block)


def _matrix(
    n,
    kind,
    *,
    data,
    ml=0,
    mu=0,
    groups=(_NOTHING, _NOTHING),
    pattern=(_NOTHING, _NOTHING, _NOTHING),
    jacobian=None,
    factor=None,
    solve=None,
    own_system=None,
    copies=1,
) -> Record:
    callbacks = {"jacobian": jacobian, "factor": factor, "solve": solve, "own": own_system}
    return Record.allocated(
        MATRIX,
        kind=kind,
        n=n,
        total=copies * n,
        ml=ml,
        mu=mu,
        size=data.size,
        data=data,
        slope=np.zeros(data.size if n <= LARGEST_WITH_SLOPE else 0),
        lapack=lapack_arguments(n, ml, mu),
        groups=max(groups[0].size - 1, 0),
        group_start=groups[0],
        group_columns=groups[1],
        column_start=pattern[0],
        entries=pattern[1].size,
        rows=pattern[1],
        position=pattern[2],
        has_own_residual=own_system is not None,
        weight_share=float(np.finfo(float).eps) ** 0.25,
        **{name: record for name, record in callbacks.items() if record is not None},
    )


def direct(matrix: Record) -> Record:
    """A direct solver."""
    return Record(LINEAR, prepare=direct_prepare.address, solve=direct_solve.address, matrix=matrix)


def native_linear(prepare, solve) -> Record:
    """The linear solver of a native residual."""
    return Record(LINEAR, prepare=prepare.address, solve=solve.address)


def krylov(
    matrix: Record | None,
    n: int,
    *,
    basis_size: int,
    orthogonal_to: int,
    restarts: int,
    tolerance: float,
    setup: Record | None = None,
    solve: Record | None = None,
) -> Record:
    """GMRES, preconditioned by `matrix` or by the callbacks `setup` and `solve`; linear tolerance 0.05 x 0.33."""
    callbacks = {"setup": setup, "solve": solve}
    iteration = Record.allocated(
        KRYLOV,
        n=n,
        basis_size=basis_size,
        orthogonal_to=orthogonal_to,
        restarts=restarts,
        tolerance=tolerance * TOLERANCE,
        use_matrix=matrix is not None,
        **{name: record for name, record in callbacks.items() if record is not None},
    )
    return Record.allocated(
        LINEAR,
        prepare=krylov_prepare.address,
        solve=krylov_solve.address,
        use_krylov=True,
        matrix=_matrix(n, DENSE, data=np.zeros(0)) if matrix is None else matrix,
        krylov=iteration,
    )
