"""The structure of a problem at a point, and where it changes along a solution.

It includes the index by two definitions, constraints, degrees of freedom, possible choices of initial values, and times
of rank changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from daedal.analysis.wording import MOST_NAMED
from daedal.common.tabular import listing
from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.index.linear.rank import RankDecision, decision_table
from daedal.index.structure.derivative_array import (
    ArrayRanks,
    Characteristics,
    NonlinearDerivativeArray,
    Weakest,
    array_ranks,
    dominant,
    equation_in_words,
)
from daedal.index.structure.equilibration import equilibrate
from daedal.index.structure.hidden_constraints import FreeUnknowns, HiddenConstraint, find_constraints, initial_choices
from daedal.index.structure.system_equations import SystemEquations, required_equations
from daedal.initial.jet import checked_values, resolved_array

_TAKES_PART = 1e-3  # fraction of the largest coefficient below which an equation is not named


@dataclass(frozen=True)
class LocalStructure:
    """Properties of the derivative array at a point that satisfies it.

    Attributes
    ----------
    t : float
        The time.
    jet : numpy.ndarray, shape (k + 1, n)
        The point: x, x', ... that satisfy the equations and their derivatives.
    index : int or None
        The differentiation index; None if the equations do not determine x', however often they are differentiated.
    strangeness_index : int or None
        The index of Kunkel and Mehrmann: one less than the differentiation index, or 0 for an ordinary differential
        equation; it is also defined for underdetermined problems.
    d, a, v, u : int
        Characteristic values: numbers of differential equations, constraints, redundant equations and undetermined
        unknowns.
    degrees_of_freedom : int
        Number of freely chosen initial values.
    constraints : tuple of Constraint
        All constraints, including hidden ones.
    choices : tuple of Choice
        Possible choices of initial values, in independent groups.
    redundant_equations, undetermined : tuple
        Redundant equations (with their derivatives), and names of undetermined unknowns.
    decisions : tuple of RankDecision
        The rank decisions used, each with its gap.

    Examples
    --------
    >>> import daedal
    >>> from daedal.initial.local_structure import local_structure
    >>> def pendulum(t, s, sp):
    ...     x, y, u, v, lam = s
    ...     return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + 1, x**2 + y**2 - 1]
    >>> problem = daedal.ImplicitDAE(pendulum, 5, names=["x", "y", "u", "v", "lam"])
    >>> found = local_structure(problem, 0.0, [0.6, -0.8, 0.4, 0.3, 0.0])
    >>> found.index, found.characteristic_values, found.degrees_of_freedom
    (3, (2, 2, 3, 0), 2)
    >>> [(constraint.rows, constraint.differentiations) for constraint in found.hidden_constraints]
    [(((4, 1, 1.0),), 1), (((4, 2, 1.0),), 2)]
    >>> print(*found.choices)
    any 2 of x, y, u, v and lam, but not x and y together
    """

    t: float
    jet: np.ndarray = field(repr=False)
    index: int | None
    strangeness_index: int | None
    d: int
    a: int
    v: int
    u: int
    degrees_of_freedom: int
    constraints: tuple[HiddenConstraint, ...]
    choices: tuple[FreeUnknowns, ...]
    redundant_equations: tuple[int, ...]
    undetermined: tuple[str, ...]
    decisions: tuple[RankDecision, ...] = field(repr=False)

    @property
    def hidden_constraints(self) -> tuple[HiddenConstraint, ...]:
        """Constraints that are not among the given equations."""
        return tuple(constraint for constraint in self.constraints if constraint.hidden)

    @property
    def unclear(self) -> tuple[RankDecision, ...]:
        """The ambiguous rank decisions."""
        return tuple(decision for decision in self.decisions if not decision.clear)

    @property
    def characteristic_values(self) -> tuple[int | None, int, int, int]:
        """(mu, d, a, v) of Kunkel and Mehrmann's hypothesis."""
        return self.strangeness_index, self.d, self.a, self.v

    def rank_table(self) -> str:
        """All rank decisions with their gaps, as a table."""
        return str(decision_table(self.decisions))

    def __str__(self) -> str:
        return "\n".join([self._headline(), *self._details()])

    def _headline(self) -> str:
        free = f"{self.degrees_of_freedom} degree{'s' * (self.degrees_of_freedom != 1)} of freedom"
        values = f"strangeness index {self.strangeness_index} (d = {self.d}, a = {self.a}, v = {self.v}), {free}"
        if self.index is None:
            return f"At t = {self.t:g}: no differentiation index, {values}."
        return f"At t = {self.t:g}: differentiation index {self.index}, {values}."

    def _details(self) -> list[str]:
        lines = []
        if self.undetermined:
            names = listing(self.undetermined[:MOST_NAMED], len(self.undetermined))
            lines.append(f"However often the equations are differentiated, they do not determine {names}.")
        if self.redundant_equations:
            numbers = list(map(str, self.redundant_equations))
            lines.append(
                f"Among equations {listing(numbers[: 2 * MOST_NAMED], len(numbers))} (numbered from 0), with their "
                f"derivatives, {self.v} follow{'s' * (self.v == 1)} from the others."
            )
        hidden = self.hidden_constraints
        if hidden:
            lines.append("Hidden constraints:")
            lines += [f"  {constraint.text}{_origin(constraint)}" for constraint in hidden]
        chosen = [str(choice) for choice in self.choices if choice.count]
        if chosen:
            lines.append(f"Initial values that may be chosen: {'; '.join(chosen)}.")
        fixed = [name for choice in self.choices if choice.count == 0 for name in choice.names]
        if fixed:
            lines.append(f"Determined by the equations here: {listing(fixed[: 4 * MOST_NAMED], len(fixed))}.")
        lines += [f"Uncertain: {decision}." for decision in self.unclear]
        return lines


def local_structure(problem: Any, t: float, x0: Any, *, fixed: Any = None, weights: Any = None) -> LocalStructure:
    """Analyse a problem at a point, which is first made consistent.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, LinearDAE, SecondOrderDAE or Equations
    t : float
    x0, fixed, weights
        As in :func:`daedal.initial.jet.consistent_jet`.

    Raises
    ------
    InconsistentInitialError
        If there is no consistent point near the given one.
    daedal.symbolic.Untraceable
        If the functions cannot be traced.
    """
    equations = problem if isinstance(problem, SystemEquations) else SystemEquations(problem)
    given, known, held = checked_values(equations, x0, fixed)
    array, jet = resolved_array(equations, t, given, known, held, weights)
    return structure_at(array, t, jet)


def structure_at(array: NonlinearDerivativeArray, t: float, jet: np.ndarray) -> LocalStructure:
    """The structure at a point that satisfies the array."""
    ranks = array_ranks(array, t, jet)
    found, names = Characteristics.of(ranks), array.equations.names
    settled = found.settled(ranks)
    redundant = np.abs(settled.redundant).max(axis=0, initial=0.0)
    rows = np.flatnonzero(redundant > _TAKES_PART * redundant.max(initial=0.0))
    return LocalStructure(
        t=float(t),
        jet=jet,
        index=found.index,
        strangeness_index=found.strangeness_index,
        d=found.d,
        a=found.a,
        v=found.v,
        u=found.degrees_of_freedom - found.d,
        degrees_of_freedom=found.degrees_of_freedom,
        constraints=tuple(find_constraints(array, t, jet, settled)),
        choices=tuple(initial_choices(array, settled)),
        redundant_equations=tuple(sorted({array.rows[k][0] for k in rows})),
        undetermined=tuple(f"{names[j]}'" for j in ranks[-1].open_rates),
        decisions=tuple(decision for entry in found.used(ranks) for decision in entry.decisions),
    )


def _origin(constraint: HiddenConstraint) -> str:
    """The equations of a constraint, if the text does not mention them."""
    if constraint.node is None:
        return ""
    parts = []
    for i, r, _ in constraint.rows:
        parts.append(equation_in_words(i, r))
    return f" ({listing(parts)})"


# --- Changes of structure in time: index, constraints and degrees of freedom along a solution ------------------------


_SAMPLES = 33
_HALVINGS = 30
_DIP = 0.5  # fraction of the largest sample below which a local minimum is examined closely
_FLAT = 0.99  # a sample above this fraction of its larger neighbour does not count as a local minimum
_NEAR = 1e-5  # fraction of the largest value below which a value counts as zero
_RESOLVED = 1e-8  # precision of located times, as a fraction of the sample spacing


@dataclass(frozen=True)
class StructureInterval:
    """An interval of constant structure; `structure` is None if no consistent values were found near the solution."""

    start: float
    end: float
    structure: Characteristics | None


@dataclass(frozen=True)
class RankChange:
    """A time at which ranks change.

    Attributes
    ----------
    t : float
        The time, as precisely as determined.
    what : str
        The rank that is lost at this time, or the structure before and afterwards.
    equations : tuple of int
        The equations with the largest contribution, numbered from 0.
    unknowns : tuple of str
        The unknowns with the largest contribution.
    """

    t: float
    what: str
    equations: tuple[int, ...]
    unknowns: tuple[str, ...]

    def __str__(self) -> str:
        numbers = listing(map(str, self.equations[:MOST_NAMED]), len(self.equations))
        names = listing(self.unknowns[:MOST_NAMED], len(self.unknowns))
        return f"t = {self.t:.6g}: {self.what}; equations {numbers} (numbered from 0), unknowns {names}"


@dataclass(frozen=True)
class StructureAlong:
    """The structure of a problem along a solution, see :func:`daedal.analysis.analyse_along`; ``print`` shows it.

    Attributes
    ----------
    stretches : tuple of StructureInterval
        Intervals of constant structure.
    singular_points : tuple of RankChange
        Times of changes or momentary rank losses, with the equations and unknowns concerned.

    Examples
    --------
    >>> import daedal
    >>> def residual(t, y, yp):
    ...     return [yp[0] + y[0], (t - 0.5) * y[1] - y[0]]
    >>> problem = daedal.ImplicitDAE(residual, 2)
    >>> found = daedal.analysis.analyse_along(problem, lambda t: ([1.0, 1.0], [-1.0, 0.0]), (0.0, 1.0))
    >>> print(len(found.stretches), [round(point.t, 3) for point in found.singular_points])
    3 [0.5, 0.5]
    """

    stretches: tuple[StructureInterval, ...]
    singular_points: tuple[RankChange, ...]

    @property
    def constant(self) -> bool:
        """Whether the structure is the same in the whole interval."""
        return len(self.stretches) == 1 and not self.singular_points

    def __str__(self) -> str:
        lines = []
        for stretch in self.stretches:
            found = "no consistent values near the solution" if stretch.structure is None else stretch.structure
            lines.append(f"{stretch.start:.6g} <= t <= {stretch.end:.6g}: {found}")
        return "\n".join([*lines, *(f"singular point {point}" for point in self.singular_points)])


def analyse_along(
    problem: Any,
    solution: Callable[[float], Any],
    t_span: tuple[float, float] | None = None,
    *,
    samples: int = _SAMPLES,
) -> StructureAlong:
    """Compute index, constraints and degrees of freedom along a solution.

    At each sample the values are first made consistent. If the structures of two neighbours differ, the time of the
    change is located by bisection; if a rank nearly drops between samples, the nearest approach is located. A singular
    point much narrower than the sample spacing may be missed.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, LinearDAE, SecondOrderDAE or Equations
    solution : callable
        ``solution(t)`` returns the values of x; a :class:`daedal.Solution` is accepted.
    t_span : (float, float), optional
        The interval, in either order; that of the solution by default.
    samples : int
        Number of samples, evenly spaced.

    Returns
    -------
    StructureAlong

    Raises
    ------
    InvalidProblemError
        If the functions of the problem cannot be traced, or an argument is wrong.

    Examples
    --------
    >>> import daedal
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [(t - 0.3) * yp[0] - y[0] + t], 1, names=["x"])
    >>> print(daedal.analysis.analyse_along(problem, lambda t: [t], (0.0, 1.0)))
    0 <= t <= 1: index 0, strangeness index 0 (d = 1, a = 0, v = 0)
    singular point t = 0.3: ranks are lost; equations 0 (numbered from 0), unknowns x
    """
    if samples < 3:
        raise InvalidProblemError(f"samples must be at least 3, got {samples}")
    refusal = "the problem cannot be analysed: a function of it"
    equations = problem if isinstance(problem, SystemEquations) else required_equations(problem, refusal)
    if t_span is None:
        times_of = getattr(solution, "t", None)
        if times_of is None or len(times_of) < 2:
            raise InvalidProblemError("t_span is missing: the solution has no interval")
        t_span = float(times_of[0]), float(times_of[-1])
    follower = _StructureFollower(equations, solution)
    times = np.linspace(min(t_span), max(t_span), samples)
    points = [follower.at(float(t)) for t in times]
    stretches, singular = [], []
    begin, first = float(times[0]), 0
    for k, (before, after) in enumerate(pairwise(points)):
        if before.structure == after.structure:
            continue
        left, right = follower.bisect(before, after)
        middle = 0.5 * (left.t + right.t)
        stretches.append(StructureInterval(begin, middle, before.structure))
        singular += [follower.change(left, right, after, middle), *follower.dips(points[first : k + 1])]
        begin, first = middle, k + 1
    stretches.append(StructureInterval(begin, float(times[-1]), points[-1].structure))
    singular += follower.dips(points[first:])
    return StructureAlong(tuple(stretches), tuple(sorted(singular, key=lambda point: point.t)))


@dataclass(frozen=True)
class _SolutionPoint:
    t: float
    structure: Characteristics | None
    array: NonlinearDerivativeArray | None = None
    jet: np.ndarray | None = None
    ranks: tuple[ArrayRanks, ...] = ()


class _StructureFollower:
    def __init__(self, equations: SystemEquations, solution: Callable[[float], Any]):
        self.equations, self.solution = equations, solution

    def at(self, t: float) -> _SolutionPoint:
        """The structure at one time."""
        consistent = self._consistent(t)
        if consistent is None:
            return _SolutionPoint(t, None)
        array, jet = consistent
        ranks = array_ranks(array, t, jet)
        found = Characteristics.of(ranks)
        return _SolutionPoint(t, found, array, jet, tuple(found.used(ranks)))

    def _consistent(self, t: float) -> tuple[NonlinearDerivativeArray, np.ndarray] | None:
        """Consistent values near the solution, independent of other examined times."""
        given = checked_values(self.equations, np.asarray(self.solution(t), dtype=float), None, "solution(t)")
        try:
            return resolved_array(self.equations, t, *given, None)
        except (InconsistentInitialError, InvalidProblemError, np.linalg.LinAlgError):
            return None

    def bisect(self, left: _SolutionPoint, right: _SolutionPoint) -> tuple[_SolutionPoint, _SolutionPoint]:
        """Two nearby points between which the structure changes: the first has the structure of `left`."""
        for _ in range(_HALVINGS):
            middle = 0.5 * (left.t + right.t)
            if middle in (left.t, right.t):
                break
            point = self.at(middle)
            if point.structure == left.structure:
                left = point
            else:
                right = point
        return left, right

    def change(self, left: _SolutionPoint, right: _SolutionPoint, end: _SolutionPoint, t: float) -> RankChange:
        """The change of structure at time t, from that of `left` to that of `end`."""
        before, after = (
            "no consistent values" if point.structure is None else str(point.structure) for point in (left, end)
        )
        near = left if left.ranks else right
        weakest = [entry for ranks in near.ranks for entry in ranks.weakest]
        kept = [decision.kept for ranks in near.ranks for decision in ranks.decisions]
        found = weakest[int(np.argmin(kept))] if kept else Weakest((), ())
        return self._named(t, f"{before} before, {after} afterwards", found)

    def _named(self, t: float, what: str, found: Weakest) -> RankChange:
        return RankChange(t, what, found.equations, tuple(self.equations.names[j] for j in found.unknowns))

    def dips(self, points: Sequence[_SolutionPoint]) -> list[RankChange]:
        """Times inside an interval at which the rank of the array drops momentarily."""
        if len(points) < 3 or points[0].structure is None:
            return []
        gauge = _Gauge.of(points)
        values = [gauge.weakest(point) for point in points]
        found: list[RankChange] = []
        for k in range(1, len(points) - 1):
            near = values[k - 1], values[k + 1]
            if values[k] <= min(near) and values[k] < _FLAT * max(near) and values[k] < _DIP * max(values):
                t, value = self._lowest(gauge, points[k - 1].t, points[k + 1].t)
                if value <= _NEAR * max(values):
                    found.append(self._named(t, "ranks are lost", gauge.members(points[k])))
        return found

    def _lowest(self, gauge: _Gauge, low: float, high: float) -> tuple[float, float]:
        """The time at which a singular value is smallest, by golden-section search, and that value."""
        ratio = 0.5 * (3.0 - np.sqrt(5.0))
        times = [low + ratio * (high - low), high - ratio * (high - low)]
        values = [self._gauged(gauge, t) for t in times]
        enough = _RESOLVED * (high - low)
        while high - low > enough:
            if values[0] <= values[1]:
                high, times[1], values[1] = times[1], times[0], values[0]
                times[0] = low + ratio * (high - low)
                values[0] = self._gauged(gauge, times[0])
            else:
                low, times[0], values[0] = times[0], times[1], values[1]
                times[1] = high - ratio * (high - low)
                values[1] = self._gauged(gauge, times[1])
            if not times[0] < times[1]:
                break
        best = int(np.argmin(values))
        return times[best], values[best]

    def _gauged(self, gauge: _Gauge, t: float) -> float:
        """The smallest singular value at t: 0 without consistent values, infinite if fewer differentiations suffice."""
        found = self._consistent(t)
        if found is None:
            return 0.0
        if found[0].times.max() < gauge.times:  # fewer differentiations suffice at this point, so no rank is lost
            return np.inf
        return gauge.weakest(_SolutionPoint(t, None, *found))


@dataclass(frozen=True)
class _Gauge:
    """The smallest relevant singular value of the array, in fixed units for a whole interval."""

    rows: np.ndarray
    columns: np.ndarray
    above: np.ndarray
    times: int  # number of differentiations
    rank: int

    @classmethod
    def of(cls, points: Sequence[_SolutionPoint]) -> _Gauge:
        times = min(point.ranks[-1].times for point in points)  # these differ only if nothing determines x'
        array, ranks = points[0].array, points[0].ranks[times]
        assert array is not None
        above = np.flatnonzero((array.excess >= 0) & (array.order <= times + array.equations.order))
        rows = sum(r <= times for _, r in array.rows)
        largest = np.max([np.abs(_matrix(point, rows, above)) for point in points], axis=0)
        return cls(*equilibrate(largest), above, times, ranks.decisions[0].rank)

    def _svd(self, point: _SolutionPoint):
        return np.linalg.svd(self.rows[:, None] * _matrix(point, self.rows.size, self.above) * self.columns)

    def weakest(self, point: _SolutionPoint) -> float:
        return float(self._svd(point)[1][self.rank - 1]) if self.rank else np.inf

    def members(self, point: _SolutionPoint) -> Weakest:
        assert point.array is not None
        u, _, vt = self._svd(point)
        numbers = np.array([i for i, _ in point.array.rows])
        last = self.rank - 1
        return Weakest(dominant(u[:, last], numbers), dominant(vt[last], self.above % point.array.n))


def _matrix(point: _SolutionPoint, rows: int, columns: np.ndarray) -> np.ndarray:
    assert point.array is not None and point.jet is not None
    return point.array.jacobian(point.t, point.jet).toarray()[:rows, columns]
