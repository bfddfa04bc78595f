r"""Formulations of sparse mechanical systems as implicit DAEs with a sparse iteration matrix.

The unknowns are (q, v, lam), and mu for the stabilised form of Gear, Gupta and Leimkuhler (Wijckmans (6.12)):

    0 = q' - v - G^T mu
    0 = M v' - f + G^T lam
    0 = c_2 (G v' + bias) + c_1 (G v + g_t) + c_0 g
    0 = g                                                (with mu only)

with (c_0, c_1, c_2) = (0, 1, 0) for GGL and index 2, (1, 0, 0) for index 3, and Baumgarte's coefficients with c_2 = 1
for index 1. Iteration matrix (6.52), here with all derivatives but that of G^T mu, since mu = 0 for the solution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.formulations import named_formulation
from daedal.formulations.index_reduction import index_options
from daedal.formulations.reduction import Reduction
from daedal.formulations.sparse import SparseAssembly
from daedal.formulations.sparse_structure import BlockStructure, coloured_entries, column_colours
from daedal.mechanics.start import Start
from daedal.problems import ImplicitDAE

_KNOWN = "ggl (projection='GT'), index3, index2, index1, baumgarte"
_POWER_ITERATIONS = 12
_SHARE = float(np.sqrt(np.finfo(float).eps))
_SHARE_OF_DIFFERENCES = 1e-5  # for rows that are differences themselves


class SparseChoice:
    """Formulation and method for a system with sparse matrices; GGL and DASSL unless the user says otherwise.

    Parameters
    ----------
    assembly, start
        The system and its consistent start.
    request : object
        The arguments of the run: interval and tolerances.
    formulation : str or formulation
    method : method object
    automatic : bool
        Whether the highest order of the method is chosen here.
    """

    def __init__(self, assembly: SparseAssembly, start: Start, request, formulation, method, automatic: bool):
        self.notes: list[str] = []
        self.changed, self.watches_amplification = True, False
        self.step_limit: int | None = None
        self.formulation, self.method = checked_choice(formulation, method), method
        if request.fixed_step is not None and method.max_order > 1 and method.starting_values is None:
            raise InvalidProblemError(
                "a system with sparse matrices takes fixed steps with max_order=1 (backward Euler) or from given "
                "starting_values"
            )
        if automatic and request.fixed_step is None:
            frequency = highest_frequency(assembly, start)
            if _oscillates(assembly, start, request, frequency):
                self.method = replace(method, max_order=2)
                self.notes.append(
                    f"Order 2 at most, since the system can oscillate with up to {frequency:.3g} rad per unit of time, "
                    "which higher orders would have to resolve."
                )

    def goes_on(self, segment) -> bool:
        """Nothing is changed on the way."""
        return False


def checked_choice(formulation, method) -> SparseForm:
    """The sparse form of the formulation, GGL for "auto"; a method other than DASSL is refused."""
    automatic = isinstance(formulation, str) and formulation == "auto"
    form = sparse_form(named_formulation("ggl" if automatic else formulation))
    if "residual" not in method.needs:
        raise InvalidProblemError(
            f"{type(method).__name__} cannot solve a system with sparse matrices; use method='dassl'"
        )
    return form


def highest_frequency(assembly: SparseAssembly, start: Start) -> float:
    r"""About the highest frequency of small motions beside the start, by power iteration.

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


def _oscillates(assembly: SparseAssembly, start: Start, request, frequency: float) -> bool:
    """Whether modes that the tolerance does not ask for would dictate the steps of BDF of orders 3 to 5.

    These are unstable on a part of the imaginary axis, so that they have to resolve every undamped mode; order 2 does
    not, and takes about rtol^(-1/3) steps for each time in which the system moves by its own size.
    """
    nx = assembly.nx
    sizes = [float(np.max(np.abs(x), initial=0.0)) for x in (start.z[:nx], start.z[nx:], start.a)]
    time = abs(request.span[1] - request.span[0])
    if sizes[1] > 0.0:
        time = min(time, sizes[0] / sizes[1])
    if sizes[2] > 0.0:
        time = min(time, float(np.sqrt(sizes[0] / sizes[2])))
    return frequency * time > 5.0 * float(np.max(request.rtol)) ** (-1.0 / 3.0)


def sparse_form(formulation) -> SparseForm:
    """The sparse form of a formulation, or a refusal that names those which have one."""
    name, title = formulation.name, type(formulation).__name__
    if getattr(formulation, "multipliers", "value") != "value":
        raise InvalidProblemError(f"multipliers='derivative' of {title} has no sparse form; leave it out")
    if name == "ggl":
        if not (isinstance(formulation.projection, str) and formulation.projection in ("GT", "CT")):
            raise InvalidProblemError("GGL has a sparse form with projection='GT' only: others would fill G")
        return SparseForm(title, (0.0, 1.0, 0.0), stabilised=True)
    if name == "index3":
        return SparseForm(title, (1.0, 0.0, 0.0), classes=(1, 2, 3))
    if name == "index2":
        return SparseForm(title, (formulation.damping(), 1.0, 0.0))
    if name == "index1":
        return SparseForm(title, (0.0, 0.0, 1.0))
    if name == "baumgarte":
        (beta, alpha), _ = formulation.polynomial(2)
        return SparseForm(title, (beta, alpha, 1.0))
    raise InvalidProblemError(f"{title} has no sparse form; formulations for sparse matrices: {_KNOWN}")


@dataclass(frozen=True)
class SparseForm:
    """A combination c_0 g + c_1 g' + c_2 g'' of the levels of the constraint, and whether g = 0 is imposed too."""

    title: str
    levels: tuple[float, float, float]
    stabilised: bool = False
    classes: tuple[int, ...] | None = None

    def reduce(self, assembly: SparseAssembly, start: Start) -> Reduction:
        """The form for an assembled system."""
        assembly.form_name = self.title
        stabilised = self.stabilised and assembly.n_c > 0
        s, (c0, c1, c2) = assembly.direction, self.levels  # backward in time, damping changes its sign
        levels = (c0, s * c1, c2) if c2 != 0.0 else (s * c0 if c1 != 0.0 else c0, c1, c2)
        equations = SparseEquations(assembly, levels, stabilised)
        n, n_state = equations.n, assembly.n_state
        rows = [label.strip("'") for label in assembly.row_names()]
        names = [*assembly.state_names(), *[f"lam[{row}]" for row in rows]]
        if stabilised:
            names += [f"mu[{row}]" for row in rows]
        problem = ImplicitDAE(
            equations.residual,
            n,
            jacobian=equations.jacobian,
            sparsity=equations.blocks.pattern,
            algebraic=np.arange(n) >= n_state,
            names=names,
        )
        y0, yp0 = np.zeros(n), np.zeros(n)
        y0[:n_state], yp0[:n_state] = start.z, start.slope
        y0[n_state : n_state + assembly.n_c] = start.lam
        # Multipliers of index 2 carry the round-off of the constraints divided by h.
        options = {"newton_weights": [0.0] * n_state + [1.0] * (n - n_state)} if self.levels[2] == 0.0 else {}
        if self.classes is not None:
            options = index_options(assembly, n, self.classes)
        return Reduction(problem, y0, yp0, n_state, options=options)


class SparseEquations:
    """Residual and iteration matrix of a form.

    The derivatives of M v' - f + G^T lam with respect to q, of f with respect to v, and of the constraint rows are
    difference quotients for groups of columns that share no row.
    """

    def __init__(self, assembly: SparseAssembly, levels: tuple[float, float, float], stabilised: bool):
        self._assembly, self._levels, self._stabilised = assembly, levels, stabilised
        nx, n_c = assembly.nx, assembly.n_c
        self.n = 2 * nx + (2 if stabilised else 1) * n_c
        by_q, by_v = assembly.force_structures()
        rows = assembly.jacobian_structure
        self._by_q, self._by_v, self._rows = by_q, by_v, rows
        sparsity = assembly.system.force_sparsity
        self._force_acts = sparsity is None or sparsity.nnz > 0 or levels[2] != 0.0
        # By q contains G^T G and the diagonal: its colours separate the columns of G and of all other blocks as well.
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
        if self._levels[0] or self._stabilised:
            g = assembly.position(t, q)
            result[2 * nx : 2 * nx + n_c] += self._levels[0] * g
            if self._stabilised:
                result[:nx] -= transpose @ y[2 * nx + n_c :]
                result[2 * nx + n_c :] = g
        return result

    def _level(self, t: float, q, v, a, jacobian) -> np.ndarray:
        """c_2 (G v' + bias) + c_1 (G v + g_t)."""
        assembly = self._assembly
        _, first, second = self._levels
        result = np.zeros(assembly.n_c)
        if second:
            result += second * (jacobian @ a + assembly.bias(t, q, v))
        if first:
            result += first * assembly.velocity(t, q, v, jacobian)
        return result

    def jacobian(self, t: float, y: np.ndarray, yp: np.ndarray, cj: float) -> np.ndarray:
        """The entries of dF/dy + cj dF/dy' in the order of the CSC structure."""
        assembly, nx, n_c = self._assembly, self._assembly.nx, self._assembly.n_c
        q, v, lam = y[:nx], y[nx : 2 * nx], y[2 * nx : 2 * nx + n_c]
        a = yp[nx : 2 * nx]
        zeroth, first, second = self._levels
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
    """share max(|x_j|, |x'_j / cj|, 1e-2 max |x|), made exactly representable."""
    size = np.maximum(np.abs(x), np.abs(slope / cj))
    largest = float(np.max(size, initial=0.0))
    size = np.maximum(size, 1e-2 * largest) if largest > 0.0 else np.ones_like(x)
    return (x + share * size) - x


def _quotients(target: np.ndarray, structure, entries: np.ndarray, change: np.ndarray, move: np.ndarray):
    """Add the difference quotients of one group of columns to their entries."""
    target[entries] += change[structure.rows[entries]] / move[structure.indices[entries]]
