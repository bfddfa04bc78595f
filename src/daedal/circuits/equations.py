r"""The equations of a circuit in three forms, :math:`F(t, x, x') = 0`.

* ``nodal``, modified nodal analysis: Kirchhoff's current law at each node, and the laws of those branches whose current
  no voltage gives; unknowns are the voltages ``v(node)`` of the nodes and these currents ``i(L1)``. Charges of
  semiconductors are unknowns ``q(D1.c)``, so that what is differentiated is a charge and none is lost.
* ``charge``, the charge- and flux-oriented form: the charges of all capacitors and the fluxes ``phi(L1)`` of all
  inductors are unknowns.
* ``tableau``, the sparse tableau (Brenan, Campbell and Petzold (6.4.2)): voltage ``u(R1)`` and current ``i(R1)`` of
  every branch, and the voltages of the nodes; the laws of the branches and Kirchhoff's two laws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from daedal.circuits.elements import CURRENT_GIVEN, GROUND, WITH_CURRENT, Branch

FORMS = ("nodal", "charge", "tableau")
LARGEST_DENSE = 60  # unknowns up to which matrices are dense


class State:
    """A circuit at one time, as laws see it: voltages, currents, parameters.

    `gmin` is a conductance beside every junction and `scale` a factor of all independent sources; an operating point is
    looked for with these.
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
        """The voltage of a node."""
        return 0.0 if node == GROUND else self.numbers[self.places[f"v({node})"]]

    def voltage(self, positive: str, negative: str) -> Any:
        """The voltage between two nodes."""
        if negative == GROUND:
            return self.potential(positive)
        return self.potential(positive) - self.potential(negative)

    def current(self, branch: str) -> Any:
        """The current of a branch, where it is an unknown or known."""
        if branch in self.known:
            return self.known[branch]
        return self.numbers[self.places[f"i({branch})"]]

    def unknown(self, name: str) -> Any:
        """An unknown by its name."""
        return self.numbers[self.places[name]]

    def value(self, parameter: str) -> Any:
        """A parameter by its full name."""
        return self.params[parameter]

    def mean(self, one: str, other: str) -> Any:
        """The geometric mean of two parameters."""
        return np.sqrt(self.params[one] * self.params[other])


class _Read:
    """Unknowns that remember which of them were looked at."""

    def __init__(self):
        self.seen: set[int] = set()

    def __getitem__(self, place: int) -> float:
        self.seen.add(place)
        return 0.1


class _Written(dict[int, Any]):
    """The rows that were written."""


@dataclass(frozen=True)
class Equations:
    """The equations of branches in one form.

    Attributes
    ----------
    branches : tuple of Branch
    nodes : tuple of str
        All nodes but the ground.
    form : str
        One of ``nodal``, ``charge`` and ``tableau``.
    known : dict
        Currents of branches that are no unknowns, by the names of the branches.
    names : tuple of str
        The unknowns. The equation with the number of ``v(node)`` is Kirchhoff's current law there.
    """

    branches: tuple[Branch, ...]
    nodes: tuple[str, ...]
    form: str
    known: Mapping[str, float] = field(default_factory=dict)
    names: tuple[str, ...] = field(init=False)
    places: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self):
        names = tuple(_unknowns(self.branches, self.nodes, self.form))
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "places", {name: k for k, name in enumerate(names)})

    def residual(self, t: Any, x: Any, xp: Any, params: Any, gmin: Any = 0.0, scale: Any = 1.0) -> list[Any]:
        """F(t, x, x'); see :class:`State` for `gmin` and `scale`."""
        now = State(self.places, t, x, params, gmin, scale, self.known)
        rate = State(self.places, t, xp, params)
        r: list[Any] = [0.0] * len(self.names)
        write = self._tableau_branch if self.form == "tableau" else self._nodal_branch
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # junctions beyond the range of floats: the solver steps back
            for branch in self.branches:
                current = write(branch, now, rate, r)
                for node, sign in ((branch.positive, 1.0), (branch.negative, -1.0)):
                    if node != GROUND:
                        r[self.places[f"v({node})"]] += sign * current
        return r

    def sparsity(self, params: Mapping[str, float]) -> sparse.csr_array | None:
        """Where F_x + c F_x' can differ from zero, for circuits that are large enough for sparse matrices."""
        n = len(self.names)
        if n <= LARGEST_DENSE:
            return None
        entries: set[tuple[int, int]] = set()
        write = self._tableau_branch if self.form == "tableau" else self._nodal_branch
        for branch in self.branches:
            read, written = _Read(), _Written()
            now, rate = (State(self.places, 0.0, read, params, known=self.known) for _ in range(2))
            write(branch, now, rate, written)  # type: ignore[arg-type]
            rows = [self.places[f"v({node})"] for node in branch.nodes if node != GROUND]
            entries |= {(row, column) for row in (*written, *rows) for column in read.seen}
            if self.form == "tableau":
                entries |= {(row, self.places[f"i({branch.name})"]) for row in rows}
        rows, columns = np.array(sorted(entries)).T
        return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))

    def _nodal_branch(self, branch: Branch, now: State, rate: State, r: list[Any]) -> Any:
        """Enter the law of a branch; its current is returned."""
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

    def _tableau_branch(self, branch: Branch, now: State, rate: State, r: list[Any]) -> Any:
        """Enter both laws of a branch in the rows of its voltage and its current; this is returned."""
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
