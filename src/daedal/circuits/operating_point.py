"""Operating points, :math:`F(t, x, 0) = 0`, by Newton's method with limited junction voltages.

If the iteration does not converge from zero, continuation is used: first in a conductance parallel to every junction,
which is reduced step by step, then in the sources, which increase from zero (gmin and source stepping, as in SPICE; L.
W. Nagel, SPICE2, 1975).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

import daedal
from daedal.circuits.circuit_equations import CircuitEquations, CircuitState
from daedal.circuits.elements import CURRENT_GIVEN, GROUND, Branch, at_rest
from daedal.circuits.loops_and_cutsets import check_at_rest
from daedal.circuits.netlist import in_engineering
from daedal.common.tabular import listing

ITERATIONS = 100
LADDER = tuple(10.0**-k for k in range(2, 13))  # conductances parallel to junctions in gmin stepping, in siemens
STEPS = tuple(k / 20.0 for k in range(1, 21))  # fractions of the sources in source stepping
UNITS = {"v": "V", "u": "V", "i": "A", "q": "C", "phi": "Vs"}


@dataclass(frozen=True)
class OperatingPoint(Mapping[str, float]):
    """Voltages and currents of a circuit at rest, by name.

    Attributes
    ----------
    names : tuple of str
    x : numpy.ndarray
        All unknowns in the order of `names`.

    Examples
    --------
    >>> from daedal import circuits
    >>> point = circuits.parse("V1 a 0 12\\nR1 a b 1k\\nR2 b 0 3k").operating_point()
    >>> print(point)
    v(a)   = 12 V
    v(b)   = 9 V
    i(V1)  = -3 mA
    """

    names: tuple[str, ...]
    x: np.ndarray

    def __getitem__(self, name: str) -> float:
        if name not in self.names:
            raise daedal.errors.UnknownNameError(
                f"the circuit has no unknown {name!r}; it has {listing(self.names[:20])}"
            )
        return float(self.x[self.names.index(name)])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        width = max(map(len, self.names)) + 1
        return "\n".join(
            f"{name:{width}} = {in_engineering(value, UNITS[name.partition('(')[0]])}" for name, value in self.items()
        )


def state_at_rest(
    equations: CircuitEquations, params: Mapping[str, float], t: float, levels: Mapping[str, float]
) -> np.ndarray:
    """All unknowns of `equations` at rest, with the sources at time `t`.

    `levels` are given capacitor voltages, inductor currents and node voltages ``v(node)``. The state is computed by
    modified nodal analysis and extended to the unknowns of `equations`.
    """
    branches = [found for branch in equations.branches for found in at_rest(branch, levels)]
    for node in equations.nodes:
        if (name := f"v({node})") in levels:
            holding = Branch(name, node, GROUND, "C", lambda state, v: v)
            branches += at_rest(holding, levels)
    check_at_rest(equations.branches, branches, equations.nodes)
    currents = {b.name: levels[b.name] for b in equations.branches if b.kind == "L" and b.name in levels}
    search = _PointSearch(CircuitEquations(tuple(branches), equations.nodes, "nodal", currents), dict(params), t)
    return _completed(equations, search, levels)


def _completed(equations: CircuitEquations, search: _PointSearch, levels: Mapping[str, float]) -> np.ndarray:
    """All unknowns of a form, computed from node voltages and the currents of sources and inductors."""
    known = {f"i({name})": level for name, level in levels.items()}
    known |= dict(zip(search.equations.names, search.result()))
    x = np.array([known.get(name, 0.0) for name in equations.names])
    places, state = equations.places, CircuitState(equations.places, search.t, x, search.params)
    for branch in equations.branches:
        v = state.voltage(*branch.nodes)
        found = {"u": v}
        if branch.kind in CURRENT_GIVEN and f"i({branch.name})" in places:
            found["i"] = branch.law(state, v)
        elif branch.kind == "C":
            found["q"] = branch.law(state, v)
        elif branch.kind == "L":
            found["phi"] = branch.law(state, state.current(branch.name))
        for letter, value in found.items():
            if (place := places.get(f"{letter}({branch.name})")) is not None:
                x[place] = value
    return x


class _PointSearch:
    """Search for the state at rest, with machine code and exact derivatives."""

    def __init__(self, equations: CircuitEquations, params: dict[str, float], t: float):
        self.equations, self.t, self.params = equations, t, params
        self.slope = np.zeros(len(equations.names))

        def residual(t, x, xp, p):
            return equations.residual(t, x, xp, p["values"], p["gmin"], p["scale"])

        given: dict[str, Any] = {"values": params, "gmin": 0.0, "scale": 1.0}
        sparsity = equations.sparsity(params)
        bare = daedal.ImplicitDAE(residual, len(equations.names), params=given, sparsity=sparsity)
        self.problem = bare.compiled(backend="trace")
        self.junctions = [branch for branch in equations.branches if branch.junction]
        self.thermal = np.array([params[branch.junction] for branch in self.junctions])

    def result(self) -> np.ndarray:
        """The state at rest.

        Raises
        ------
        daedal.InconsistentInitialError
            If the search fails.
        """
        zero = np.zeros(len(self.equations.names))
        x = self.newton(zero, gmin=0.0, scale=1.0)
        if x is None:
            x = self.along(zero, [(g, 1.0) for g in (*LADDER, 0.0)])
        if x is None:
            x = self.along(zero, [(1e-9, part) for part in STEPS] + [(g, 1.0) for g in (*LADDER[8:], 0.0)])
        if x is None:
            raise daedal.InconsistentInitialError(
                f"no operating point was found at t = {self.t:g}, neither from zero nor with decreasing conductances "
                "parallel to the junctions, nor with increasing sources. Remedy: give initial voltages and currents "
                "(empty=True, or initial={...}), and check for elements with implausible values"
            )
        return x

    def along(self, x: np.ndarray, course: list[tuple[float, float]]) -> np.ndarray | None:
        """The solution after continuation from `x` through (conductance, source fraction) pairs; None if it fails."""
        for gmin, scale in course:
            found = self.newton(x, gmin, scale)
            if found is None:
                return None
            x = found
        return x

    def newton(self, x: np.ndarray, gmin: float, scale: float) -> np.ndarray | None:
        """A zero near `x`, by Newton's method; None if it does not converge."""
        problem = replace(self.problem, params={"values": self.params, "gmin": gmin, "scale": scale})
        for _ in range(ITERATIONS):
            with np.errstate(all="ignore"):
                r = problem.evaluate(self.t, x, self.slope)
                step = _newton_step(problem.exact_matrix(self.t, x, self.slope), r)
            if step is None:
                return None
            share = self._share(x, step)
            x = x + share * step
            if share == 1.0 and np.all(np.abs(step) <= 1e-12 + 1e-9 * np.abs(x)):
                return x
        return None

    def _share(self, x: np.ndarray, step: np.ndarray) -> float:
        """The fraction of a Newton step to take, so that the growth of junction voltages is limited.

        Above the critical voltage, a Newton correction d is reduced to at most 2 V_T log(1 + d / V_T).
        """
        share = 1.0
        if not self.junctions:
            return share
        before, change = (self._voltages(numbers) for numbers in (x, step))
        for sign in (1.0, -1.0):  # junctions of pnp transistors have the opposite sign
            after, growth = sign * (before + change), sign * change
            limited = (after > 20.0 * self.thermal) & (growth > 2.0 * self.thermal)
            thermal, growth = self.thermal[limited], growth[limited]
            room = np.maximum(20.0 * thermal - sign * before[limited], 0.0) + 2.0 * thermal * np.log1p(growth / thermal)
            share = float(np.min(room / growth, initial=share))
        return share

    def _voltages(self, numbers: np.ndarray) -> np.ndarray:
        """Voltages of all junctions."""
        state = CircuitState(self.equations.places, self.t, numbers, self.params)
        return np.array([state.voltage(*branch.nodes) for branch in self.junctions])


def _newton_step(matrix: Any, r: np.ndarray) -> np.ndarray | None:
    """Solution of ``matrix @ step = -r``; None if the matrix is singular."""
    if matrix is None or not np.isfinite(r).all():
        return None
    try:
        step = splu(matrix).solve(-r) if sparse.issparse(matrix) else np.linalg.solve(matrix, -r)
    except (np.linalg.LinAlgError, RuntimeError):  # singular
        return None
    return step if np.isfinite(step).all() else None
