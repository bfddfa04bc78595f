r"""The equations of a sparse mechanical system as an implicit DAE with a sparse iteration matrix.

The unknowns are (q, v, lam), and mu for the stabilised form of Gear, Gupta and Leimkuhler (Wijckmans (6.12)):

    0 = q' - v - G^T mu
    0 = M v' - f + G^T lam
    0 = c_2 (G v' + bias) + c_1 (G v + g_t) + c_0 g
    0 = g                                                (with mu only)

for any combination (c_0, c_1, c_2) of the constraint levels. Iteration matrix (6.52), here with all derivatives except
that of G^T mu, since mu = 0 for the solution.
"""

import numpy as np

from daedal.mechanics.setting import ConsistentStart
from daedal.mechanics.sparse.sparse_workspace import SparseWorkspace
from daedal.mechanics.sparse.structure import BlockStructure, coloured_entries, column_colours

_POWER_ITERATIONS = 12
_SHARE = float(np.sqrt(np.finfo(float).eps))
_SHARE_OF_DIFFERENCES = 1e-5  # relative increment for rows that contain differences


class SparseEquations:
    """Residual and iteration matrix of a form.

    The derivatives of M v' - f + G^T lam with respect to q, of f with respect to v, and of the constraint rows are
    difference quotients for groups of columns that share no row.
    """

    def __init__(self, assembly: SparseWorkspace, levels: tuple[float, ...], stabilised: bool):
        self._assembly, self.levels, self._stabilised = assembly, levels, stabilised
        nx, n_c = assembly.nx, assembly.n_c
        self.n = 2 * nx + (2 if stabilised else 1) * n_c
        by_q, by_v = assembly.force_structures()
        rows = assembly.jacobian_structure
        self._by_q, self._by_v, self._rows = by_q, by_v, rows
        sparsity = assembly.system.force_sparsity
        self._force_acts = sparsity is None or sparsity.nnz > 0 or levels[2] != 0.0
        # The pattern of the derivative by q contains G^T G and the diagonal, so its colours also suit G and all other
        # blocks.
        self._colours, self._count = column_colours(by_q)
        self._q_entries = coloured_entries(by_q, self._colours, self._count)
        self._v_entries = coloured_entries(by_v, self._colours, self._count)
        self._row_entries = coloured_entries(rows, self._colours, self._count)
        self._mass_in_v = np.searchsorted(
            by_v.rows * nx + by_v.indices, assembly.mass_structure.rows * nx + assembly.mass_structure.indices
        )
        q, v, lam, mu = 0, nx, 2 * nx, 2 * nx + n_c
        diagonal = np.arange(nx)
        blocks = {
            "q'": (q, q, diagonal, diagonal),
            "-v": (q, v, diagonal, diagonal),
            "dynamics, q": (v, q, by_q.rows, by_q.indices),
            "dynamics, v": (v, v, by_v.rows, by_v.indices),
        }
        if n_c:
            blocks |= {
                "G^T lam": (v, lam, rows.indices, rows.rows),
                "level, q": (lam, q, rows.rows, rows.indices),
                "level, v": (lam, v, rows.rows, rows.indices),
            }
        if stabilised:
            blocks |= {"G^T mu": (q, mu, rows.indices, rows.rows), "position": (mu, q, rows.rows, rows.indices)}
        self.blocks = BlockStructure(self.n, blocks)

    def residual(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """F(t, y, y')."""
        assembly, nx, n_c = self._assembly, self._assembly.nx, self._assembly.n_c
        q, v, lam = y[:nx], y[nx : 2 * nx], y[2 * nx : 2 * nx + n_c]
        a = yp[nx : 2 * nx]
        jacobian = assembly.jacobian(t, q)
        transpose = jacobian.T
        result = np.empty(self.n)
        result[:nx] = yp[:nx] - v
        result[nx : 2 * nx] = assembly.mass(t, q) @ a - assembly.force(t, q, v) + transpose @ lam
        result[2 * nx : 2 * nx + n_c] = self._level(t, q, v, a, jacobian)
        if self.levels[0] or self._stabilised:
            g = assembly.position(t, q)
            result[2 * nx : 2 * nx + n_c] += self.levels[0] * g
            if self._stabilised:
                result[:nx] -= transpose @ y[2 * nx + n_c :]
                result[2 * nx + n_c :] = g
        return result

    def _level(self, t: float, q, v, a, jacobian) -> np.ndarray:
        """c_2 (G v' + bias) + c_1 (G v + g_t)."""
        assembly = self._assembly
        _, first, second = self.levels
        result = np.zeros(assembly.n_c)
        if second:
            result += second * (jacobian @ a + assembly.bias(t, q, v))
        if first:
            result += first * assembly.velocity(t, q, v, jacobian)
        return result

    def jacobian(self, t: float, y: np.ndarray, yp: np.ndarray, cj: float) -> np.ndarray:
        """Entries of dF/dy + cj dF/dy' in CSC order."""
        assembly, nx, n_c = self._assembly, self._assembly.nx, self._assembly.n_c
        q, v, lam = y[:nx], y[nx : 2 * nx], y[2 * nx : 2 * nx + n_c]
        a = yp[nx : 2 * nx]
        zeroth, first, second = self.levels
        mass, jacobian = assembly.mass(t, q), assembly.jacobian(t, q)
        values = {
            "q'": np.full(nx, cj),
            "-v": np.full(nx, -1.0),
            "dynamics, q": np.zeros(self._by_q.nnz),
            "dynamics, v": np.zeros(self._by_v.nnz),
        }
        values["dynamics, v"][self._mass_in_v] = cj * mass.data
        level_q, level_v = zeroth * jacobian.data, (first + cj * second) * jacobian.data
        force, level = assembly.force(t, q, v), self._level(t, q, v, a, jacobian)
        dynamics = mass @ a - force + jacobian.T @ lam
        bias = assembly.bias(t, q, v) if second else None
        differenced = second != 0.0 and assembly.system.acceleration_bias is None
        share = _SHARE_OF_DIFFERENCES if differenced else _SHARE
        move_q, move_v = _increments(q, yp[:nx], cj, share), _increments(v, a, cj, share)
        for colour in range(self._count):
            chosen = self._colours == colour
            at = np.where(chosen, q + move_q, q)
            there = assembly.jacobian(t, at)
            change = assembly.mass(t, at) @ a - assembly.force(t, at, v) + there.T @ lam - dynamics
            _quotients(values["dynamics, q"], self._by_q, self._q_entries[colour], change, move_q)
            if first or second:
                change = self._level(t, at, v, a, there) - level
                _quotients(level_q, self._rows, self._row_entries[colour], change, move_q)
            if not self._force_acts:
                continue
            at = np.where(chosen, v + move_v, v)
            change = force - assembly.force(t, q, at)
            _quotients(values["dynamics, v"], self._by_v, self._v_entries[colour], change, move_v)
            if bias is not None:
                change = second * (assembly.bias(t, q, at) - bias)
                _quotients(level_v, self._rows, self._row_entries[colour], change, move_v)
        if n_c:
            values |= {"G^T lam": jacobian.data, "level, q": level_q, "level, v": level_v}
        if self._stabilised:
            values |= {"G^T mu": -jacobian.data, "position": jacobian.data}
        return self.blocks.assemble(values)


def _increments(x: np.ndarray, slope: np.ndarray, cj: float, share: float) -> np.ndarray:
    """share max(|x_j|, |x'_j / cj|, 1e-2 max |x|), rounded to be exactly representable; for cj = 0 without x'."""
    size = np.maximum(np.abs(x), np.abs(slope / cj)) if cj else np.abs(x)
    largest = float(np.max(size, initial=0.0))
    size = np.maximum(size, 1e-2 * largest) if largest > 0.0 else np.ones_like(x)
    return (x + share * size) - x


def _quotients(target: np.ndarray, structure, entries: np.ndarray, change: np.ndarray, move: np.ndarray):
    """Add the difference quotients of one group of columns to their entries."""
    target[entries] += change[structure.rows[entries]] / move[structure.indices[entries]]


def highest_frequency(assembly: SparseWorkspace, start: ConsistentStart) -> float:
    r"""Estimate of the highest frequency of small vibrations near the start, by power iteration.

    With :math:`S = \partial (f - G^T \lambda) / \partial q` these obey :math:`M \ddot x = S x - G^T \nu, G x = 0`.
    """
    t, nx = start.t, assembly.nx
    q, v = start.z[:nx], start.z[nx:]
    mass, jacobian = assembly.mass(t, q), assembly.jacobian(t, q)

    def force(q):
        return assembly.force(t, q, v) - assembly.jacobian(t, q).T @ start.lam

    x, growth = np.cos(0.4 + 1.9 * np.arange(nx)), 0.0
    step = 1e-6 * (float(np.max(np.abs(q), initial=0.0)) or 1.0)
    for _ in range(_POWER_ITERATIONS):
        x = x * (step / float(np.max(np.abs(x))))
        before = float(np.sum(np.abs(x)))
        x, _ = assembly.augmented.solve(mass, jacobian, 0.5 * (force(q + x) - force(q - x)), np.zeros(assembly.n_c))
        growth = float(np.sum(np.abs(x))) / before
        if not (np.isfinite(growth) and growth > 0.0):
            return 0.0
    return float(np.sqrt(growth))
