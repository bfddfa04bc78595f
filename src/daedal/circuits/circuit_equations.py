"""The equations of a circuit in three forms, :math:`F(t, x, x') = 0`.

* ``nodal``, modified nodal analysis: Kirchhoff's current law at each node, and the laws of branches whose current is
  not a function of voltages; unknowns are the voltages ``v(node)`` of the nodes and these currents ``i(L1)``. Charges
  of semiconductors are unknowns ``q(D1.c)``, so that charges are differentiated, which conserves them.
* ``charge``, the charge- and flux-oriented form: the charges of all capacitors and the fluxes ``phi(L1)`` of all
  inductors are additional unknowns.
* ``tableau``, the sparse tableau (Brenan, Campbell and Petzold (6.4.2)): voltage ``u(R1)`` and current ``i(R1)`` of
  every branch, and the voltages of the nodes; the laws of the branches and Kirchhoff's two laws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

import daedal
from daedal.circuits.elements import CURRENT_GIVEN, GROUND, WITH_CURRENT, Branch

FORMS = ("nodal", "charge", "tableau")
LARGEST_DENSE = 60  # number of unknowns up to which matrices are dense


class CircuitState:
    """Voltages, currents and parameters of a circuit at one time, for branch laws.

    `gmin` is a conductance parallel to every junction and `scale` a factor for all independent sources; both are for
    the search for an operating point.
    """

    __slots__ = ("gmin", "known", "numbers", "params", "places", "scale", "t")

    def __init__(
        self,
        places: Mapping[str, int],
        t: Any,
        numbers: Any,
        params: Any,
        gmin: Any = 0.0,
        scale: Any = 1.0,
        known: Mapping[str, float] | None = None,
    ):
        self.places, self.t, self.numbers, self.params, self.gmin, self.scale = places, t, numbers, params, gmin, scale
        self.known = known or {}

    def potential(self, node: str) -> Any:
        return 0.0 if node == GROUND else self.numbers[self.places[f"v({node})"]]

    def voltage(self, positive: str, negative: str) -> Any:
        if negative == GROUND:
            return self.potential(positive)
        return self.potential(positive) - self.potential(negative)

    def current(self, branch: str) -> Any:
        """Current of a branch, which must be an unknown or known as a function of voltages."""
        if branch in self.known:
            return self.known[branch]
        return self.numbers[self.places[f"i({branch})"]]

    def unknown(self, name: str) -> Any:
        return self.numbers[self.places[name]]

    def value(self, parameter: str) -> Any:
        return self.params[parameter]

    def mean(self, one: str, other: str) -> Any:
        return np.sqrt(self.params[one] * self.params[other])


class _Read:
    """Unknowns that record which entries were read."""

    def __init__(self):
        self.seen: set[int] = set()

    def __getitem__(self, place: int) -> float:
        self.seen.add(place)
        return 0.1


class _Written(dict[int, Any]):
    """Rows that record which entries were written."""


@dataclass(frozen=True)
class CircuitEquations:
    """The equations of a circuit in one form."""

    branches: tuple[Branch, ...]
    nodes: tuple[str, ...]  # all nodes but the ground
    form: str  # one of ``nodal``, ``charge`` and ``tableau``
    # Currents of branches that are not unknowns, by branch name
    known: Mapping[str, float] = field(default_factory=dict)
    # The equation with the index of ``v(node)`` is Kirchhoff's current law at that node.
    names: tuple[str, ...] = field(init=False)
    places: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self):
        names = tuple(_unknowns(self.branches, self.nodes, self.form))
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "places", {name: k for k, name in enumerate(names)})

    def residual(self, t: Any, x: Any, xp: Any, params: Any, gmin: Any = 0.0, scale: Any = 1.0) -> list[Any]:
        """F(t, x, x'); see :class:`CircuitState` for `gmin` and `scale`."""
        now = CircuitState(self.places, t, x, params, gmin, scale, self.known)
        rate = CircuitState(self.places, t, xp, params)
        r: list[Any] = [0.0] * len(self.names)
        write = self._tableau_branch if self.form == "tableau" else self._nodal_branch
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # junctions outside the range of floats: the solver reduces the step
            for branch in self.branches:
                current = write(branch, now, rate, r)
                for node, sign in ((branch.positive, 1.0), (branch.negative, -1.0)):
                    if node != GROUND:
                        r[self.places[f"v({node})"]] += sign * current
        return r

    def sparsity(self, params: Mapping[str, float]) -> sparse.csr_array | None:
        """Sparsity of F_x + c F_x' for large circuits; None if matrices are dense."""
        n = len(self.names)
        if n <= LARGEST_DENSE:
            return None
        entries: set[tuple[int, int]] = set()
        write = self._tableau_branch if self.form == "tableau" else self._nodal_branch
        for branch in self.branches:
            read, written = _Read(), _Written()
            now, rate = (CircuitState(self.places, 0.0, read, params, known=self.known) for _ in range(2))
            write(branch, now, rate, written)  # type: ignore[arg-type]
            rows = [self.places[f"v({node})"] for node in branch.nodes if node != GROUND]
            entries |= {(row, column) for row in (*written, *rows) for column in read.seen}
            if self.form == "tableau":
                entries |= {(row, self.places[f"i({branch.name})"]) for row in rows}
        rows, columns = np.array(sorted(entries)).T
        return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))

    def _nodal_branch(self, branch: Branch, now: CircuitState, rate: CircuitState, r: list[Any]) -> Any:
        """Store the residual of a branch law in `r`, unless it gives the current directly; returns the current."""
        v = now.voltage(*branch.nodes)
        if branch.kind in CURRENT_GIVEN:
            return branch.law(now, v)
        if branch.kind == "C":
            charge = self.places.get(f"q({branch.name})")
            if charge is None:
                return branch.law(rate, rate.voltage(*branch.nodes))
            r[charge] = now.numbers[charge] - branch.law(now, v)
            return rate.numbers[charge]
        current, row = now.current(branch.name), self.places[f"i({branch.name})"]
        if branch.kind != "L":
            r[row] = branch.law(now, v)
            return current
        flux = self.places.get(f"phi({branch.name})")
        if flux is None:
            r[row] = v - branch.law(rate, rate.current(branch.name))
        else:
            r[row] = v - rate.numbers[flux]
            r[flux] = now.numbers[flux] - branch.law(now, current)
        return current

    def _tableau_branch(self, branch: Branch, now: CircuitState, rate: CircuitState, r: list[Any]) -> Any:
        """Store Kirchhoff's voltage law and the branch law in `r`, in two rows; returns the current."""
        u, i = self.places[f"u({branch.name})"], self.places[f"i({branch.name})"]
        v, current = now.numbers[u], now.numbers[i]
        r[u] = v - now.voltage(*branch.nodes)
        if branch.kind in CURRENT_GIVEN:
            r[i] = current - branch.law(now, v)
        elif branch.kind == "L":
            r[i] = v - branch.law(rate, rate.numbers[i])
        elif branch.kind != "C":
            r[i] = branch.law(now, v)
        elif branch.linear:
            r[i] = current - branch.law(rate, rate.numbers[u])
        else:
            charge = self.places[f"q({branch.name})"]
            r[i] = current - rate.numbers[charge]
            r[charge] = now.numbers[charge] - branch.law(now, v)
        return current


def _unknowns(branches: Sequence[Branch], nodes: Sequence[str], form: str) -> list[str]:
    potentials = [f"v({node})" for node in nodes]
    charges = [f"q({b.name})" for b in branches if b.kind == "C" and (form == "charge" or not b.linear)]
    if form == "tableau":
        return [*(f"u({b.name})" for b in branches), *(f"i({b.name})" for b in branches), *potentials, *charges]
    currents = [f"i({b.name})" for b in branches if b.kind in WITH_CURRENT]
    fluxes = [f"phi({b.name})" for b in branches if b.kind == "L"] if form == "charge" else []
    return [*potentials, *currents, *charges, *fluxes]


# --- consistent starts from an operating point, with charges and fluxes preserved -------------------------------------

# Let :math:`A = F_x` and :math:`B = F_{x'}`, which is constant. For index 1 the state is consistent; its derivative
# follows from the equations and from the time derivatives of the combinations :math:`N^T F` that contain no
# derivatives, where :math:`N^T B = 0`:
#
# .. math::
#
#     B x' = -F(t, x, 0), \qquad N^T A x' = -N^T F_t .
#
# For index 2, the state is corrected by solving
#
# .. math::
#
#     F(t, x, 0) + A \delta + B x' = 0, \qquad F_t + A x' + B x'' = 0, \qquad B \delta = 0
#
# for :math:`\delta, x', x''`. The current around a CV-loop is determined by the slope of its source, as is the voltage
# across an LI-cutset. Among undetermined higher derivatives, the smallest are chosen.

LARGEST = 300  # number of unknowns up to which derivative arrays are used, which have three times as many columns
ROUNDS = 4
_RANK, _SATISFIED = 1e-13, 1e-8


def consistent_start(
    equations: CircuitEquations, params: Mapping[str, float], t0: float, x: np.ndarray, index: int | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Consistent values and derivatives from an operating point; None if one differentiation is not sufficient."""
    n = len(equations.names)
    sizes, time = _units(equations, params)
    problem = _with_time(equations, dict(params))
    find = _rates if index is not None and index <= 1 else _corrected
    y = np.append(x, t0)
    for _ in range(ROUNDS):
        partials = problem.exact_partials(t0, y, np.zeros(n + 1))
        if partials is None or not np.isfinite(partials).all():
            return None
        A, B, F_t = partials[1][:n, :n] * sizes, partials[0][:n, :n] * sizes / time, partials[1][:n, n] * time
        rows = np.maximum(np.max(np.abs(A), axis=1), np.max(np.abs(B), axis=1))
        F = problem.evaluate(t0, y, np.zeros(n + 1))[:n] / rows
        found = find(A / rows[:, None], B / rows[:, None], F, F_t / rows)
        if found is None:
            return None
        y[:n] += found[0] * sizes
        if np.max(np.abs(found[0])) <= 1e-12 * (1.0 + np.max(np.abs(y[:n] / sizes))):
            return y[:n], found[1] * sizes / time
    return None


def _rates(A: np.ndarray, B: np.ndarray, F: np.ndarray, F_t: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """For index 1: x', preceded by the correction of x, which is zero; None if the equations are inconsistent."""
    left, singular, _ = np.linalg.svd(B)
    N = left[:, singular <= _RANK * max(1.0, singular[0])]
    found = _solved(np.vstack([B, N.T @ A]), np.concatenate([-F, -N.T @ F_t]))
    return None if found is None else (np.zeros(len(F)), found)


def _corrected(A: np.ndarray, B: np.ndarray, F: np.ndarray, F_t: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """For index 2: the correction of x, and x'; None if the equations are inconsistent."""
    n, zero = len(F), np.zeros_like(A)
    array = np.block([[A, B, zero], [zero, A, B], [B, zero, zero]])
    found = _solved(array, np.concatenate([-F, -F_t, np.zeros(n)]))
    return None if found is None else (found[:n], found[n : 2 * n])


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    found = np.linalg.lstsq(matrix, right, rcond=_RANK)[0]
    return found if np.max(np.abs(matrix @ found - right)) <= _SATISFIED * max(1.0, np.max(np.abs(right))) else None


def _with_time(equations: CircuitEquations, params: dict[str, float]) -> daedal.ImplicitDAE:
    """The equations with time as an additional unknown, so that exact derivatives include F_t."""
    n = len(equations.names)

    def residual(t, y, yp, p):
        return [*equations.residual(y[n], y[:n], yp[:n], p), y[n] - t]

    inner = equations.sparsity(params)
    pattern = None if inner is None else sparse.block_array([[inner, np.ones((n, 1))], [None, np.ones((1, 1))]])
    return daedal.ImplicitDAE(residual, n + 1, params=params, sparsity=pattern).compiled(backend="trace")


def _units(equations: CircuitEquations, params: Mapping[str, float]) -> tuple[np.ndarray, float]:
    """Scales of the unknowns and of time, from 1 V and mean resistances, capacitances and inductances."""
    values: dict[str, list[float]] = {"R": [], "C": [], "L": []}
    for branch in equations.branches:
        if branch.kind in values and branch.name in params:
            values[branch.kind].append(params[branch.name])
    R, C, L = (float(np.exp(np.mean(np.log(found)))) if found else None for found in values.values())
    conductance = 1.0 / (R or 1e3)
    time = C / conductance if C else L * conductance if L else 1.0
    unit = {"v": 1.0, "u": 1.0, "i": conductance, "q": conductance * time, "phi": time}
    return np.array([unit[name.partition("(")[0]] for name in equations.names]), time
