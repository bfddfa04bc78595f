r"""Equations in the form of mechanics: in terms of positions, velocities, states and multipliers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.index.structure.system_equations import SystemEquations, argument_name
from daedal.symbolic.derivative import Row, directional, jacobian, sparsity
from daedal.symbolic.graph import Graph, evaluate
from daedal.symbolic.graph_functions import inlined
from daedal.symbolic.operations import OPERATIONS
from daedal.symbolic.tracing.parameters import NAME

if TYPE_CHECKING:
    from daedal.index.reduction.recognition import Roles

_POINTS = 4  # number of points in general position
_VARIATION = 0.3  # maximum relative change of parameters from point to point
_MOST_ATTEMPTS = 40  # maximum number of attempts to find points at which the functions are defined
_KINKS = {name for name, operation in OPERATIONS.items() if operation.kink}


class MechanismGraph:
    """The equations with positions, velocities and so on as unknowns, on a separate graph."""

    def __init__(self, equations: SystemEquations, roles: Roles):
        self.equations, self.roles, self.graph = equations, roles, Graph(equations.graph.most_nodes)
        graph, n = self.graph, len(roles.positions)
        self.t = graph.argument("t", 0)
        sizes = {"q": n, "v": n, "a": n, "r": len(roles.states), "s": len(roles.states)}
        sizes |= {"lam": len(roles.multipliers), "mu": len(roles.stabilisers)}
        self.sizes = sizes
        self.nodes = {name: [graph.argument(name, k) for k in range(size)] for name, size in sizes.items()}
        every = [equations.nodes[i] for i in (*roles.others, *roles.kinematic)]
        rows = inlined(equations.graph, every, graph, self._arguments())
        rows, self.kinematic = rows[: len(roles.others)], rows[len(roles.others) :]
        for i, number in equations.graph.fixed.items():
            graph.fixed[graph.argument(*equations.graph.data[i])] = number
        names = ("q", "v", "a", "r", "s", "lam")
        found = sparsity(graph, rows, [node for name in names for node in self.nodes[name]])
        places = [name for name in names for _ in range(sizes[name])]
        contents = [{places[k] for k in row} for row in found]
        self.dynamics = [i for i, row in zip(rows, contents) if "a" in row]
        self.state_rows = [i for i, row in zip(rows, contents) if "s" in row and "a" not in row]
        still = [(i, row, k) for i, row, k in zip(rows, contents, roles.others) if not row & {"a", "s"}]
        self.position = [(i, k) for i, row, k in still if row == {"q"}]
        self.velocity = [(i, k) for i, row, k in still if row in ({"v"}, {"q", "v"})]
        self.is_complete = len(self.position) + len(self.velocity) == len(still) == sizes["lam"] + sizes["mu"]

    def _arguments(self) -> dict[tuple[str, int], int]:
        graph, roles, nodes = self.graph, self.roles, self.nodes
        known = {("t", 0): self.t}
        if self.equations.params is not None:
            known |= {(NAME, k): graph.argument(NAME, k) for k in range(self.equations.params.size)}
        for k, j in enumerate(roles.positions):
            known |= {(argument_name(0), j): nodes["q"][k], (argument_name(1), j): nodes["v"][k]}
        for k, (j, factor) in enumerate(zip(roles.velocities, roles.factors)):
            for order, name in ((0, "v"), (1, "a")):
                known[argument_name(order), j] = graph.divide(nodes[name][k], graph.constant(factor))
        for k, j in enumerate(roles.states):
            known |= {(argument_name(0), j): nodes["r"][k], (argument_name(1), j): nodes["s"][k]}
        known |= {(argument_name(0), j): nodes["mu"][k] for k, j in enumerate(roles.stabilisers)}
        return known | {(argument_name(0), j): nodes["lam"][k] for k, j in enumerate(roles.multipliers)}

    # --- structure --------------------------------------------------------------------------------------------------

    def is_mechanical(self) -> bool:
        """Whether all equations have the form of mechanics, according to the graph."""
        n, n_r = self.sizes["q"], self.sizes["r"]
        if not self.is_complete or len(self.dynamics) != n or len(self.state_rows) != n_r:
            return False
        by_velocity = [i for i, _ in self.velocity]
        return (
            self.is_affine(self.dynamics, ("a", "lam"), {"q"})
            and self.is_affine(by_velocity, ("v",), {"q"})
            and self.is_affine(self.state_rows, ("s",), set())
            and not self._reads(self.state_rows, ("lam",))
            and not self._reads(self.dynamics, ("s",))
            and not self._switches([*self._motion_rows, *self._constraint_rows])
            and sorted(tuple(row) for row in self.by(self.state_rows, ("s",))) == [(k,) for k in range(n_r)]
        )

    def by(self, nodes: Sequence[int], names: Iterable[str]) -> list[Row]:
        """The derivatives of nodes with respect to arguments."""
        return jacobian(self.graph, nodes, [node for name in names for node in self.nodes[name]])

    def _reads(self, nodes: Sequence[int], names: Iterable[str]) -> bool:
        return any(sparsity(self.graph, nodes, [node for name in names for node in self.nodes[name]]))

    def _switches(self, rows: Sequence[Row]) -> bool:
        """Whether entries of matrices have kinks or jumps, which points on one side of them do not reveal."""
        needed = self.graph.needed([node for row in rows for node in row.values()])
        return any(self.graph.operations[i] in _KINKS for i in needed)

    def is_affine(self, nodes: Sequence[int], names: tuple[str, ...], allowed: set[str]) -> bool:
        """Whether nodes are affine in the arguments `names`, with coefficients that depend only on `allowed` ones."""
        coefficients = [entry for row in self.by(nodes, names) for entry in row.values()]
        if self._reads(coefficients, [name for name in self.sizes if name not in allowed]):
            return False
        kinks = [i for i in self.graph.needed(nodes) if self.graph.operations[i] in _KINKS]
        return not self._reads(kinks, names)

    # --- numbers ----------------------------------------------------------------------------------------------------

    def matrices(self, *, vary: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """A, B and the Jacobian K of the constraints at some points; None if they are defined at too few points.

        Parameters are fixed, or vary from point to point if `vary` is true.
        """
        n = self.sizes["q"]
        every = self.sampled([*self._motion_rows, *self._constraint_rows], n + self.sizes["lam"], vary=vary)
        return None if every is None else (every[:, :n, :n], every[:, :n, n:], every[:, n:, :n])

    def sampled(self, rows: Sequence[Row], width: int, *, vary: bool = False) -> np.ndarray | None:
        """A matrix of functions of time and positions at some points; None if it is defined at too few points."""
        places = [(i, j, node) for i, row in enumerate(rows) for j, node in row.items()]
        found: list[np.ndarray] = []
        generator = np.random.default_rng(0)
        for _ in range(_MOST_ATTEMPTS):
            point: dict[str, Any] = {"t": generator.uniform(0.1, 1.0)}
            point["q"] = generator.uniform(-1.0, 1.0, self.sizes["q"])
            if self.equations.params is not None:
                point[NAME] = self._varied(generator) if vary else self.equations.params
            full = np.zeros((len(rows), width))
            values = evaluate(self.graph, [node for _, _, node in places], point)
            for (i, j, _), value in zip(places, values, strict=True):
                full[i, j] = value
            if np.isfinite(full).all():
                found.append(full)
            if len(found) == _POINTS:
                return np.array(found)
        return None

    def _varied(self, generator: np.random.Generator) -> np.ndarray:
        """Values of parameters near the given ones, except for those that affect the structure."""
        given = np.asarray(self.equations.params, dtype=float)
        varied = given + np.where(given == 0.0, 1.0, given) * generator.uniform(0.05, _VARIATION, given.size)
        for node, number in self.graph.fixed.items():
            name, k = self.graph.data[node]
            if name == NAME:
                varied[k] = number
        return varied

    @cached_property
    def _motion_rows(self) -> list[Row]:
        """The rows of [A, B]."""
        return self.by(self.dynamics, ("a", "lam"))

    @cached_property
    def _constraint_rows(self) -> list[Row]:
        """The rows of K."""
        position, velocity = ([i for i, _ in rows] for rows in (self.position, self.velocity))
        return [*self.by(position, ("q",)), *self.by(velocity, ("v",))]

    # --- terms of the equations of motion
    # ------------------------------------------------------------------------------

    def mass(self, balance: Balance) -> np.ndarray:
        """The nodes of M; entries below the diagonal are copied from above."""
        graph, n = self.graph, self.sizes["q"]
        result = np.full((n, n), graph.zero)
        for i, (row, factor) in enumerate(zip(balance.order, balance.factors, strict=True)):
            for j, node in self._motion_rows[row].items():
                if i <= j < n:
                    result[i, j] = result[j, i] = self._times(factor, node)
        return result

    def force(self, balance: Balance) -> list[int]:
        """The nodes of f."""
        nodes = self.without([self.dynamics[row] for row in balance.order], ("a", "lam"))
        return [self._times(-factor, node) for factor, node in zip(balance.factors, nodes, strict=True)]

    def state_rate(self) -> list[int]:
        """The nodes of r'."""
        result = [self.graph.zero] * self.sizes["r"]
        free = self.without(self.state_rows, ("s",))
        for row, node in zip(self.by(self.state_rows, ("s",)), free, strict=True):
            ((k, coefficient),) = row.items()
            result[k] = self.graph.negative(self.graph.divide(node, coefficient))
        return result

    # --- accelerations, multipliers and their rates -----------------------------------------------------------------

    def accelerations(self) -> list[int]:
        """The matrix [A, B; K, 0], row by row, and the right-hand side of the equation for (a, lam) at a state.

        The second block row is the second derivative of position constraints and the first one of velocity constraints.
        """
        still = self.without(self.dynamics, ("a", "lam"))
        hidden = self.without(self._hidden(), ("a",))
        return [*self._matrix(), *(self.graph.negative(node) for node in [*still, *hidden])]

    def rates(self) -> list[int]:
        """The matrix and right-hand side for (a', lam'), as functions of the state, its derivative, a and lam."""
        rows = self.along([*self.dynamics, *self._hidden()])
        return [*self._matrix(), *(self.graph.negative(node) for node in rows)]

    def _matrix(self) -> list[int]:
        size = self.sizes["q"] + self.sizes["lam"]
        rows = [*self._motion_rows, *self._constraint_rows]
        return [row.get(k, self.graph.zero) for row in rows for k in range(size)]

    def _hidden(self) -> list[int]:
        position = self.along([i for i, _ in self.position])
        return self.along([*position, *(i for i, _ in self.velocity)])

    def along(self, nodes: Sequence[int]) -> list[int]:
        """Derivatives along a motion, with a and lam constant."""
        direction = {self.t: self.graph.one}
        for of, rate in (("q", "v"), ("v", "a"), ("r", "s")):
            direction |= dict(zip(self.nodes[of], self.nodes[rate], strict=True))
        return directional(self.graph, nodes, direction)

    def _times(self, factor: float, node: int) -> int:
        return self.graph.multiply(self.graph.constant(factor), node)

    def without(self, nodes: Sequence[int], names: Iterable[str]) -> list[int]:
        """Nodes with some arguments set to zero."""
        graph = self.graph
        zeros = {node for name in names for node in self.nodes[name]}
        arguments = {
            graph.data[i]: graph.zero if i in zeros else i
            for i in graph.needed(nodes)
            if graph.operations[i] == "argument"
        }
        return inlined(graph, nodes, graph, arguments)


# --- Symmetrising equations of motion A(t, q) v' + B(t, q) \lambda = f by scaling their rows -------------------------

# Find numbers d > 0 and an order of the rows such that M = d A is symmetric and the columns of d B span the same space
# as the rows of the constraints' Jacobian K, so that constraint forces do no work on admissible motions: d B = K^T S
# with a regular S (Lagrange's equations of the first kind). Matrices are evaluated at a few points in general position;
# properties shared by all of them are assumed to hold everywhere.

_SAME = 1e-9  # relative difference up to which values count as equal
_EXACT = 1e-13  # relative difference from 0 and from 1 or -1 up to which factors are rounded to these
_FULL = 1e-10  # ratio of singular values below which a matrix is rank deficient
_MISSING = 1e6  # cost of a zero entry, larger than any sum of logarithms of other entries


@dataclass(frozen=True)
class Balance:
    """For each velocity, the row that becomes its equation of motion, and the factor of this row."""

    order: np.ndarray  # the row of each velocity
    factors: np.ndarray  # the multiples of these rows, in the same order
    # the inverse of S, which maps the multipliers of a :class:`MechanicalSystem` to those of the equations; None if it
    # varies
    shares: np.ndarray | None

    def agrees_with(self, other: Balance) -> bool:
        """Whether the rows are scaled identically."""
        if not np.array_equal(self.order, other.order) or (self.shares is None) != (other.shares is None):
            return False
        pairs = [(self.factors, other.factors)]
        if self.shares is not None and other.shares is not None:
            pairs.append((self.shares, other.shares))
        return all(np.allclose(one, another, rtol=_SAME, atol=0.0) for one, another in pairs)


def find_balance(a: np.ndarray, b: np.ndarray, k: np.ndarray) -> Balance | None:
    """Order and factors of the rows of A and B, (points, n, n) and (points, n, m), for constraints K (points, m, n).

    Examples
    --------
    >>> import numpy as np
    >>> from daedal.index.reduction.motion_graph import find_balance
    >>> q = np.array([[0.6, 0.8], [1.0, 2.0], [-0.5, 0.3]])
    >>> a = np.tile([[0.0, -1.0], [3.0, 0.0]], (3, 1, 1))  # -y'' - 2 y lam = ..., 3 x'' + 6 x lam = ...
    >>> b = np.stack([-2.0 * q[:, 1], 6.0 * q[:, 0]], axis=1)[:, :, None]
    >>> found = find_balance(a, b, q[:, None, :])
    >>> found.order, found.factors
    (array([1, 0]), array([ 1., -3.]))
    """
    if not (has_full_rank(k) and has_full_rank(b.transpose(0, 2, 1))):
        return None
    order = _rows_of_velocities(a)
    if order is None:
        return None
    a, b = a[:, order], b[:, order]
    parts = _parts(np.any(a != 0.0, axis=0))
    factors = _symmetric(a, parts)
    if factors is None:
        return None
    free = [np.linalg.svd(matrix)[2][len(matrix) :].T for matrix in k]
    factors = _without_work(b, free, factors, parts)
    if factors is None or not _is_definite(factors[:, None] * a, free):
        return None
    return Balance(order, factors, _shares(factors[:, None] * b, k))


def _shares(b: np.ndarray, k: np.ndarray) -> np.ndarray | None:
    """The matrix T with K^T = B T if it is the same at all points, otherwise None."""
    found = [np.linalg.lstsq(force, gradient.T, rcond=None)[0] for force, gradient in zip(b, k, strict=True)]
    first = found[0]
    if any(np.any(np.abs(other - first) > _SAME * np.max(np.abs(first), axis=1, keepdims=True)) for other in found):
        return None
    return _rounded(np.where(np.abs(first) <= _EXACT * np.max(np.abs(first), axis=1, keepdims=True), 0.0, first))


def _rows_of_velocities(a: np.ndarray) -> np.ndarray | None:
    """The row of each velocity: in a positive definite matrix the diagonal has the largest product of all transversals.

    This follows from m_ij^2 < m_ii m_jj, and is invariant under row scaling.
    """
    from scipy.optimize import linear_sum_assignment

    with np.errstate(divide="ignore"):
        price = -np.mean(np.log(np.abs(a)), axis=0)
    # if in doubt, preserve the original order
    price = np.where(np.isfinite(price), price, _MISSING) - _SAME * np.eye(a.shape[1])
    rows, columns = linear_sum_assignment(price)
    if np.any(price[rows, columns] > 0.5 * _MISSING):
        return None
    return rows[np.argsort(columns)]


def _parts(pattern: np.ndarray) -> np.ndarray:
    """For each row, the number of the connected block that contains it."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    return connected_components(csr_array(pattern | pattern.T), directed=False)[1]


def _symmetric(a: np.ndarray, parts: np.ndarray) -> np.ndarray | None:
    """Factors d with d_i a_ij = d_j a_ji and d_i a_ii > 0, unique up to a factor for each part; None if there are
    none."""
    n = a.shape[1]
    factors = np.zeros(n)
    for part in range(parts.max(initial=-1) + 1):
        rows = np.flatnonzero(parts == part)
        factors[rows[0]] = np.sign(a[0, rows[0], rows[0]])
        waiting = [rows[0]]
        while waiting:
            i = waiting.pop()
            for j in np.flatnonzero(np.any(a[:, i] != 0.0, axis=0)):
                if factors[j] == 0.0:
                    point = int(np.argmax(np.abs(a[:, i, j] * a[:, j, i])))
                    if a[point, j, i] == 0.0:
                        return None
                    factors[j] = _rounded(factors[i] * a[point, i, j] / a[point, j, i])
                    waiting.append(j)
    m = factors[:, None] * a
    diagonal = m[:, np.arange(n), np.arange(n)]
    if not np.all(diagonal > 0.0):
        return None
    size = np.sqrt(diagonal[:, :, None] * diagonal[:, None, :])
    return factors if np.all(np.abs(m - m.transpose(0, 2, 1)) <= _SAME * size) else None


def _without_work(b: np.ndarray, free: list[np.ndarray], factors: np.ndarray, parts: np.ndarray) -> np.ndarray | None:
    """Factors with an additional positive factor for each part, such that d B does no work on free motions; or None."""
    forces = factors[:, None] * b
    forces = forces / np.max(np.abs(forces), axis=(0, 1))  # the size of multipliers is irrelevant
    touched = np.array([np.any(b[:, parts == part] != 0.0, axis=(0, 1)) for part in range(parts.max() + 1)])
    groups = _parts(touched @ touched.T)
    shares = np.ones(touched.shape[0])
    for group in range(groups.max() + 1):
        own = np.flatnonzero(groups == group)
        rows = [parts == part for part in own]
        points = zip(free, forces, strict=True)
        work = np.concatenate([np.stack([(z[i].T @ force[i]).ravel() for i in rows], axis=1) for z, force in points])
        if np.any(np.abs(work.sum(axis=1)) > _SAME):
            found = _null_vector(work)
            if found is None:
                return None
            shares[own] = found
    return factors * shares[parts]


def _null_vector(matrix: np.ndarray) -> np.ndarray | None:
    """The unique positive null vector of a matrix, with first entry 1; None if it is not unique."""
    size = np.linalg.norm(matrix, axis=0)
    if matrix.shape[1] < 2 or not np.all(size > 0.0):
        return None
    _, values, vectors = np.linalg.svd(matrix / size, full_matrices=True)
    values = np.concatenate([values, np.zeros(matrix.shape[1] - values.size)])
    if values[-1] > _SAME * values[0] or values[-2] <= np.sqrt(_SAME) * values[0]:
        return None
    found = vectors[-1] / size
    found = found / found[0]
    return _rounded(found) if np.all(found > 0.0) else None


def _rounded(values: np.ndarray) -> np.ndarray:
    unit = np.sign(values)
    return np.where(np.abs(values - unit) <= _EXACT, unit, values)


def _is_definite(m: np.ndarray, free: list[np.ndarray]) -> bool:
    for matrix, z in zip(m, free, strict=True):
        if z.shape[1]:
            scaled = np.sqrt(np.diag(matrix))[:, None] * z
            basis = np.linalg.qr(scaled)[0]
            unit = matrix / np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
            if np.linalg.eigvalsh(basis.T @ unit @ basis)[0] <= _FULL:
                return False
    return True


def has_full_rank(matrices: np.ndarray) -> bool:
    """Whether the rows are independent at all points."""
    size = np.linalg.norm(matrices, axis=2, keepdims=True)
    if matrices.shape[1] > matrices.shape[2] or not np.all(size > 0.0):
        return False
    values = np.linalg.svd(matrices / size, compute_uv=False)
    return bool(np.all(values[:, -1] > _FULL * values[:, 0]))
