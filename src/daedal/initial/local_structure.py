"""What a problem is made of at one point: index by two notions, constraints, degrees of freedom, initial values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.analysis.wording import MOST_NAMED
from daedal.common.tabular import listing
from daedal.index.linear.rank import RankDecision, decision_table
from daedal.index.structure.characteristics import Characteristics, array_ranks
from daedal.index.structure.derivative_array import NonlinearDerivativeArray, equation_in_words
from daedal.index.structure.equations import SystemEquations
from daedal.index.structure.hidden_constraints import HiddenConstraint, find_constraints
from daedal.index.structure.initial_choices import FreeUnknowns, initial_choices
from daedal.initial.jet import checked_values, resolved_array

_TAKES_PART = 1e-3  # part of the largest coefficient of a combination


@dataclass(frozen=True)
class LocalStructure:
    """What the derivative array says of a problem at a point that satisfies it.

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
        equation; it exists for problems that leave unknowns open, too.
    d, a, v, u : int
        Characteristic values: differential equations, constraints, equations that say nothing new, and unknowns that
        nothing determines.
    degrees_of_freedom : int
        How many initial values may be chosen.
    constraints : tuple of Constraint
        All constraints, those that are hidden included.
    choices : tuple of Choice
        Which initial values may be chosen, in independent groups.
    redundant_equations, undetermined : tuple
        Equations that follow from others (with their derivatives), and names of unknowns that are left open.
    decisions : tuple of RankDecision
        The ranks on which all of this rests, each with its gap.

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
        """Constraints that are none of the equations as they are given."""
        return tuple(constraint for constraint in self.constraints if constraint.hidden)

    @property
    def unclear(self) -> tuple[RankDecision, ...]:
        """Those ranks that the numbers do not decide."""
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
        lines += [f"Not certain: {decision}." for decision in self.unclear]
        return lines


def local_structure(problem: Any, t: float, x0: Any, *, fixed: Any = None, weights: Any = None) -> LocalStructure:
    """Analyse a problem at a point, which is made consistent first.

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
    """Which equations a constraint comes from, where the text does not say so itself."""
    if constraint.node is None:
        return ""
    parts = []
    for i, r, _ in constraint.rows:
        parts.append(equation_in_words(i, r))
    return f" ({listing(parts)})"
