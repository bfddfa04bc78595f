"""Linear solvers and preconditioners for the Newton corrections, selectable by the user.

``linear_solver="auto"`` is ``"banded"`` or ``"sparse"`` if the problem has a bandwidth or a sparsity, otherwise
``"dense"``. ``"gmres"`` is the Krylov method of DASPK and needs a preconditioner.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_callable, check_number, check_positive, check_size

_LARGEST_DENSE = 20_000

NAMES = ("auto", "dense", "banded", "sparse", "gmres")


@dataclass(frozen=True)
class GMRES:
    """Scaled, left-preconditioned, incomplete and restarted GMRES (SPIGMR of DASPK, BCP section 7.5).

    Parameters
    ----------
    basis_size : int
        Krylov vectors before a restart (DASPK's MAXL).
    orthogonal_to : int, optional
        Number of previous vectors to which a new one is made orthogonal (KMP); all by default.
    restarts : int
        Restarts before the linear solve counts as failed (NRMAX; DASPK uses 5, which costs more than it saves).
    tolerance : float
        Linear tolerance as a fraction of the Newton tolerance 0.33 (EPLI).

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> def heat(t, u, up):
    ...     return up - 1e3 * (np.append(u[1:], 0.0) - 2.0 * u + np.append(0.0, u[:-1]))
    >>> rod = daedal.ImplicitDAE(heat, 30)
    >>> solver = daedal.linear_solvers.GMRES(basis_size=10)
    >>> diagonal = daedal.linear_solvers.Preconditioner(lambda data, r: r / 3e3)
    >>> x = np.linspace(0.0, np.pi, 32)[1:-1]
    >>> method = daedal.methods.DASSL(linear_solver=solver, preconditioner=diagonal)
    >>> print(daedal.solve(rod, (0.0, 0.1), (np.sin(x), None), method=method).success)
    True
    """

    basis_size: int = 5
    orthogonal_to: int | None = None
    restarts: int = 1
    tolerance: float = 0.05

    def __post_init__(self):
        check_size(self.basis_size, "basis_size of GMRES")
        check_size(self.restarts, "restarts of GMRES", 0)
        if not 0.0 < check_number(self.tolerance, "tolerance of GMRES") < 1.0:
            raise InvalidProblemError(f"tolerance of GMRES must lie between 0 and 1, got {self.tolerance!r}")
        if self.orthogonal_to is not None:
            check_size(self.orthogonal_to, "orthogonal_to of GMRES")
            if self.orthogonal_to > self.basis_size:
                raise InvalidProblemError(
                    f"orthogonal_to = {self.orthogonal_to} of GMRES exceeds basis_size = {self.basis_size}: "
                    "reduce or omit orthogonal_to"
                )


@dataclass(frozen=True)
class Preconditioner:
    """A user's preconditioner P ~ dF/dy + cj dF/dy'.

    Parameters
    ----------
    solve : callable
        ``solve(data, r) -> P^{-1} r``.
    setup : callable, optional
        ``setup(t, y, yp, cj) -> data``, called to update P; `data` may be any object.

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> def heat(t, u, up):
    ...     return up - 1e3 * (np.append(u[1:], 0.0) - 2.0 * u + np.append(0.0, u[:-1]))
    >>> rod = daedal.ImplicitDAE(heat, 30, bandwidth=(1, 1))
    >>> x = np.linspace(0.0, np.pi, 32)[1:-1]
    >>> cheap = daedal.linear_solvers.Preconditioner(lambda data, r: r / 3e3)
    >>> sol = daedal.solve(rod, (0.0, 0.1), np.sin(x), method="dassl", linear_solver="gmres", preconditioner=cheap)
    >>> print(sol.success, sol.stats.linear_iterations > 0)
    True True
    """

    solve: Callable[[Any, np.ndarray], np.ndarray]
    setup: Callable[..., Any] | None = None

    def __post_init__(self):
        check_callable(self.solve, "solve of Preconditioner")
        _check_optional_callable(self.setup, "setup of Preconditioner")


@dataclass(frozen=True)
class BandedPreconditioner:
    """P is the band of G with `ml` lower and `mu` upper diagonals, from ml + mu + 1 residuals, factorised by LAPACK.

    Differences are taken of ``residual``, for example a simplified one with the same signature; by default of the
    problem's residual.

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> def heat(t, u, up):
    ...     return up - 1e3 * (np.append(u[1:], 0.0) - 2.0 * u + np.append(0.0, u[:-1]))
    >>> rod = daedal.ImplicitDAE(heat, 30, bandwidth=(1, 1))
    >>> x = np.linspace(0.0, np.pi, 32)[1:-1]
    >>> cheap = daedal.linear_solvers.BandedPreconditioner(1, 1)
    >>> sol = daedal.solve(rod, (0.0, 0.1), np.sin(x), method="dassl", linear_solver="gmres", preconditioner=cheap)
    >>> print(sol.success, sol.stats.linear_iterations > 0)
    True True
    """

    ml: int
    mu: int
    residual: Callable[..., Any] | None = None

    def __post_init__(self):
        check_size(self.ml, "ml of BandedPreconditioner", 0)
        check_size(self.mu, "mu of BandedPreconditioner", 0)
        _check_optional_callable(self.residual, "residual of BandedPreconditioner")


@dataclass(frozen=True)
class ILUPreconditioner:
    """P is an incomplete LU factorisation of G, by coloured differences on the problem's `sparsity`.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> import daedal
    >>> def heat(t, u, up):
    ...     return up - 1e3 * (np.append(u[1:], 0.0) - 2.0 * u + np.append(0.0, u[:-1]))
    >>> pattern = scipy.sparse.diags([1.0, 1.0, 1.0], [-1, 0, 1], shape=(30, 30))
    >>> rod = daedal.ImplicitDAE(heat, 30, sparsity=pattern)
    >>> x = np.linspace(0.0, np.pi, 32)[1:-1]
    >>> method = daedal.methods.DASSL(linear_solver="gmres", preconditioner=daedal.linear_solvers.ILUPreconditioner())
    >>> print(daedal.solve(rod, (0.0, 0.1), (np.sin(x), None), method=method).success)
    True
    """

    drop_tolerance: float = 1e-3
    fill_factor: float = 10.0

    def __post_init__(self):
        check_positive(self.fill_factor, "fill_factor of ILUPreconditioner")
        if not 0.0 <= check_number(self.drop_tolerance, "drop_tolerance of ILUPreconditioner") < 1.0:
            raise InvalidProblemError(
                f"drop_tolerance of ILUPreconditioner must be at least 0 and below 1, got {self.drop_tolerance!r}"
            )


@dataclass(frozen=True)
class BlockDiagonalPreconditioner:
    """P consists of the diagonal blocks of G; `block_size` is the number of unknowns at a grid point.

    For reaction-diffusion systems use the reaction part (without diffusion) as `residual`: its Jacobian is block
    diagonal, and takes one residual per unknown of a block.

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> def heat(t, u, up):
    ...     return up - 1e3 * (np.append(u[1:], 0.0) - 2.0 * u + np.append(0.0, u[:-1]))
    >>> rod = daedal.ImplicitDAE(heat, 30, bandwidth=(1, 1))
    >>> x = np.linspace(0.0, np.pi, 32)[1:-1]
    >>> cheap = daedal.linear_solvers.BlockDiagonalPreconditioner(3)
    >>> sol = daedal.solve(rod, (0.0, 0.1), np.sin(x), method="dassl", linear_solver="gmres", preconditioner=cheap)
    >>> print(sol.success, sol.stats.linear_iterations > 0)
    True True
    """

    block_size: int
    residual: Callable[..., Any] | None = None

    def __post_init__(self):
        check_size(self.block_size, "block_size of BlockDiagonalPreconditioner")
        _check_optional_callable(self.residual, "residual of BlockDiagonalPreconditioner")


def _check_optional_callable(function, name: str):
    if function is not None:
        check_callable(function, name)


def build_linear(
    bridge,
    n,
    *,
    solver="auto",
    preconditioner=None,
    sparsity=None,
    bandwidth=None,
    jacobian=None,
    params=None,
    copies=1,
):
    """The LINEAR record for a user's choice; structure and matrix are those of one copy of the unknowns."""
    from daedal.kernels import builders

    name = "gmres" if isinstance(solver, GMRES) else solver
    if name not in NAMES:
        raise InvalidProblemError(f"unknown linear_solver {solver!r}; known: {', '.join(NAMES)}, or GMRES(...)")
    if name == "auto":
        name = "sparse" if sparsity is not None else "banded" if bandwidth is not None else "dense"
    if preconditioner is not None and name != "gmres":
        raise InvalidProblemError(f"a preconditioner requires linear_solver='gmres', not '{name}'")
    if name == "dense":
        if n // copies > _LARGEST_DENSE:
            raise InvalidProblemError(
                f"a dense matrix of {n} unknowns takes {8e-9 * n * n:.0f} GB: give the problem bandwidth=(ml, mu) or "
                "sparsity=..., or use method='dassl' with linear_solver='gmres' and a preconditioner"
            )
        if jacobian is not None and bandwidth is not None:
            raise InvalidProblemError("the jacobian is banded: use linear_solver='banded'")
        return builders.direct(builders.dense_matrix(bridge, n // copies, jacobian, params, copies))
    if name == "banded":
        if bandwidth is None:
            raise InvalidProblemError("linear_solver='banded' needs bandwidth=(ml, mu) in the problem")
        ml, mu = bandwidth
        return builders.direct(builders.banded_matrix(bridge, n // copies, ml, mu, jacobian, params, copies=copies))
    if name == "sparse":
        if sparsity is None:
            raise InvalidProblemError("linear_solver='sparse' needs sparsity in the problem")
        return builders.direct(sparse_direct(bridge, sparsity, jacobian, params, copies))
    options = solver if isinstance(solver, GMRES) else GMRES()
    return _preconditioned(bridge, n, options, preconditioner, sparsity, bandwidth, jacobian, params)


def sparse_direct(bridge, pattern, jacobian=None, params=None, copies=1, is_complex=False):
    """A matrix with the structure of `pattern`, factored by SuperLU."""
    from daedal.kernels import builders

    factorise = _SparseLU(pattern)
    bridge.forget_with(factorise.forget)
    if is_complex:
        return builders.complex_sparse_matrix(bridge, pattern, factorise, copies)
    return builders.sparse_matrix(bridge, pattern.shape[0], pattern, factorise, jacobian, params, copies)


def _preconditioned(bridge, n, options, preconditioner, sparsity, bandwidth, jacobian, params):
    from daedal.kernels import builders

    if preconditioner is None:
        if sparsity is not None:
            preconditioner = ILUPreconditioner()
        elif bandwidth is not None:
            preconditioner = BandedPreconditioner(*bandwidth)
        else:
            raise InvalidProblemError(
                "linear_solver='gmres' needs a preconditioner: pass preconditioner=Preconditioner(solve, setup), "
                "BandedPreconditioner(ml, mu), BlockDiagonalPreconditioner(block_size), or define the sparsity "
                "of the problem (then ILU is used)"
            )
    matrix = setup = solve = None
    if isinstance(preconditioner, Preconditioner):
        setup, solve = _user_preconditioner(bridge, n, preconditioner)
    elif isinstance(preconditioner, ILUPreconditioner):
        if sparsity is None:
            raise InvalidProblemError("ILUPreconditioner needs sparsity in the problem")
        matrix = builders.sparse_matrix(bridge, n, sparsity, _ilu(preconditioner, sparsity), jacobian, params)
    elif isinstance(preconditioner, (BandedPreconditioner, BlockDiagonalPreconditioner)):
        own = None
        if preconditioner.residual is not None:
            own = builders.build_system(bridge, n, residual=preconditioner.residual, params=params)
        if isinstance(preconditioner, BandedPreconditioner):
            matrix = builders.banded_matrix(bridge, n, preconditioner.ml, preconditioner.mu, own_system=own)
        else:
            matrix = builders.block_diagonal_matrix(n, preconditioner.block_size, own_system=own)
    else:
        raise InvalidProblemError(
            f"unknown preconditioner {preconditioner!r}: pass Preconditioner, BandedPreconditioner, "
            "BlockDiagonalPreconditioner or ILUPreconditioner"
        )
    size = min(options.basis_size, n)
    return builders.krylov(
        matrix,
        n,
        basis_size=size,
        orthogonal_to=min(options.orthogonal_to or size, size),
        restarts=options.restarts,
        tolerance=options.tolerance,
        setup=setup,
        solve=solve,
    )


def _user_preconditioner(bridge, n: int, preconditioner: Preconditioner):
    from daedal.kernels.functions import store_vector

    data: list = [None]
    point = np.zeros(2 * n + 1)
    vectors = np.zeros(2 * n + 1)
    store = store_vector("the preconditioner's solve", n)

    def setup(t: float) -> None:
        assert preconditioner.setup is not None
        data[0] = preconditioner.setup(t, point[:n].copy(), point[n : 2 * n].copy(), float(point[2 * n]))

    def solve(t):
        store(preconditioner.solve(data[0], vectors[1 : n + 1].copy()), vectors[n + 1 :])

    return (None if preconditioner.setup is None else bridge.python(setup, point)), bridge.python(solve, vectors)


def _symmetric(pattern) -> bool:
    """Whether the structure is nearly symmetric; if so, a minimum-degree ordering of A + A^T gives far less fill."""
    return pattern.multiply(pattern.T).nnz > 0.8 * pattern.nnz


class _SparseLU:
    """Sparse LU factorisation by SuperLU of the equilibrated matrix, for a fixed pattern.

    A nearly symmetric structure is first factorised without pivoting, unless there are zeros on the diagonal: SuperLU
    would pivot there in any case, which spoils an ordering for symmetric factors (6816 unknowns of a flow: 17 million
    entries instead of 0.8). The factors are tested on a known solution; if they are inaccurate, all later matrices of
    the run are factorised with pivoting.
    """

    def __init__(self, pattern):
        self._symmetric = _symmetric(pattern)
        self.forget()

    def forget(self):
        """Start a new run."""
        self._pivoting = not self._symmetric

    def __call__(self, data, indices, indptr):
        """A function that solves with the matrix of these entries."""
        from scipy.sparse.linalg import splu

        matrix, rows, columns = _equilibrated(data, indices, indptr)
        if not self._pivoting:
            self._pivoting = not np.all(matrix.diagonal())
        if not self._pivoting:
            try:
                factors = splu(matrix, diag_pivot_thresh=0.0, **_MINIMUM_DEGREE)
                rhs = matrix @ np.ones(rows.size)
                accurate = np.max(np.abs(matrix @ factors.solve(rhs) - rhs)) <= 1e-8 * np.max(np.abs(rhs))
            except RuntimeError:  # a zero on the diagonal
                accurate = False
            self._pivoting = not accurate
        if self._pivoting:
            factors = splu(matrix)
        return lambda b: columns * factors.solve(rows * b)


def _ilu(preconditioner, pattern):
    """Incomplete factorisation by SuperLU of the equilibrated matrix."""
    from scipy.sparse.linalg import spilu

    options = _MINIMUM_DEGREE | {"diag_pivot_thresh": 0.0} if _symmetric(pattern) else {}

    def factorise(data, indices, indptr):
        matrix, rows, columns = _equilibrated(data, indices, indptr)
        factors = spilu(
            matrix, drop_tol=preconditioner.drop_tolerance, fill_factor=preconditioner.fill_factor, **options
        )
        return lambda b: columns * factors.solve(rows * b)

    return factorise


_MINIMUM_DEGREE: dict[str, Any] = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}}


def _equilibrated(data, indices, indptr):
    """R A C with entries of size one in every row and column, and the diagonals of R and C."""
    from scipy.sparse import csc_array

    from daedal.kernels.patterns import equilibrate

    n = indptr.size - 1
    scaled, rows, columns = np.abs(data) if np.iscomplexobj(data) else data.copy(), np.ones(n), np.ones(n)
    equilibrate(scaled, indices, indptr, rows, columns)
    if np.iscomplexobj(data):
        scaled = data * rows[indices] * np.repeat(columns, np.diff(indptr))
    return csc_array((scaled, indices, indptr), shape=(n, n)), rows, columns
