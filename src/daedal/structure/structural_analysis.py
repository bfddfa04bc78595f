"""The structural index of a problem, with the check on which it depends, and the remedy where the check fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.errors import StructurallySingularError
from daedal.structure.dulmage_mendelsohn import DulmageMendelsohn
from daedal.structure.equations import Equations
from daedal.structure.linear_combination import Combination, combinations
from daedal.structure.signature import Signature, true_orders
from daedal.structure.singularity import equations_named, refuse_singular, unknowns_named
from daedal.structure.system_jacobian import Regularity, SystemJacobian
from daedal.structure.vanishing import cancel
from daedal.tabular import listing


@dataclass(frozen=True)
class StructuralAnalysis:
    """What the structure of a problem says, and whether it may be believed.

    Attributes
    ----------
    given : Equations
        The equations of the problem.
    equations : Equations
        Those that were analysed in the end: the given ones, some of them replaced by combinations.
    signature : Signature
        Their signature.
    jacobian : SystemJacobian
        Their system Jacobian.
    combinations : list of Combination
        What was replaced, one after the other.
    regularity : Regularity
        Whether the system Jacobian is nonsingular: at the given point, otherwise at random points.
    at_point : bool
        Whether `regularity` is that of a given point.
    """

    given: Equations
    equations: Equations
    signature: Signature
    jacobian: SystemJacobian
    combinations: list[Combination]
    regularity: Regularity
    at_point: bool = False

    @classmethod
    def of(cls, equations: Equations) -> StructuralAnalysis:
        """Analyse equations, with their system Jacobian at random points; see :meth:`at` for one of them.

        Raises
        ------
        StructurallySingularError
            If equations are too many for the unknowns in them, redundant or contradictory.

        Examples
        --------
        The structure of these equations suggests two states; it is wrong, since the derivatives occur as a sum only:

        >>> import daedal
        >>> from daedal.structure.equations import Equations
        >>> from daedal.structure.structural_analysis import StructuralAnalysis
        >>> def residual(t, y, yp):
        ...     return [yp[0] + yp[1] - y[0], 2 * yp[0] + 2 * yp[1] + y[1]]
        >>> found = StructuralAnalysis.of(Equations(daedal.ImplicitDAE(residual, 2)))
        >>> found.index, found.degrees_of_freedom, len(found.combinations)
        (1, 1, 1)
        """
        current, steps, last, before = equations, list[Combination](), list[Combination](), None
        while True:
            sigma, vanished = true_orders(current)
            for step in last:
                if not sigma[step.replaced]:
                    _refuse_dependent(equations, [*steps, *last], step)
            refuse_singular(DulmageMendelsohn.of(sigma, current.n), equations.names, vanished)
            signature = Signature.of_orders(sigma, vanished)
            jacobian = SystemJacobian(current, signature)
            if before is not None and signature.degrees_of_freedom >= before[2].degrees_of_freedom:
                # The equations are dependent at the random points, but not everywhere: a true step lowers the value.
                current, jacobian, signature = before
                break
            steps += last
            last = combinations(current, jacobian) if jacobian.generic.verdict == "singular" else []
            if not last:
                break
            before = current, jacobian, signature
            current = current.replaced({step.replaced: step.node for step in last})
        return cls(equations, current, signature, jacobian, steps, jacobian.generic)

    def at(self, t: float, derivatives: Any) -> StructuralAnalysis:
        """The same, judged by the system Jacobian at a point: t and x, x', ... (one row for each derivative).

        Where combinations contain higher derivatives than are given, nothing changes.
        """
        rows = np.atleast_2d(np.asarray(derivatives, dtype=float))
        if len(rows) <= self.equations.highest(self.jacobian.nodes):
            return self
        return replace(self, regularity=self.jacobian.regularity(t, rows), at_point=True)

    @property
    def succeeds(self) -> bool:
        """Whether the system Jacobian is nonsingular, so that index and degrees of freedom may be believed."""
        return bool(self.regularity)

    @property
    def differentiations(self) -> np.ndarray:
        """How often each of the given equations is differentiated, inside combinations as well."""
        times = self.signature.c.tolist()
        for step in reversed(self.combinations):
            outer, times[step.replaced] = times[step.replaced], 0
            for i, inner in step.members:
                times[i] = max(times[i], outer + inner)
        return np.array(times)

    @property
    def index(self) -> int | None:
        """The structural index of the given equations; None where the method fails."""
        if not self.succeeds:
            return None
        return int(self.differentiations.max(initial=0)) + int(bool(np.any(self.signature.d == 0)))

    @property
    def degrees_of_freedom(self) -> int | None:
        """The number of initial values that are free; None where the method fails."""
        return self.signature.degrees_of_freedom if self.succeeds else None

    @property
    def blocks(self) -> DulmageMendelsohn:
        """The fine block-triangular form: that of the system Jacobian."""
        return self.jacobian.decomposition

    def __str__(self) -> str:
        steps = [
            f"Equation {step.replaced} was replaced by a combination: {_combined(step)}." for step in self.combinations
        ]
        return " ".join([*steps, f"{self.verdict}."])

    @property
    def verdict(self) -> str:
        """What the system Jacobian says, in words."""
        regularity = self.regularity
        where = "at the point" if self.at_point else "at random points"
        measure = f"smallest singular value {regularity.smallest:.1e} of the largest, {where}"
        if self.succeeds:
            return f"The system Jacobian is nonsingular ({measure})"
        if regularity.verdict == "unclear":
            return (
                f"Whether the system Jacobian is singular is unclear ({measure}): no index follows from the structure"
            )
        identically = "" if self.at_point and self.jacobian.generic else "identically "
        parts = f"{equations_named(regularity.equations)}, {unknowns_named(regularity.unknowns, self.given.names)}"
        return (
            f"The signature method fails: the system Jacobian is {identically}singular ({measure}), in {parts}. The "
            f"index that the structure suggests, {self.signature.index}, says nothing"
        )


_OFTEN = {1: "the first derivative", 2: "the second derivative", 3: "the third derivative"}


def _combined(step: Combination) -> str:
    parts = (f"{_OFTEN.get(k, f'derivative {k}')} of equation {i}" if k else f"equation {i}" for i, k in step.members)
    return listing(parts)


def _refuse_dependent(equations: Equations, steps: Sequence[Combination], last: Combination) -> None:
    """The last combination contains no unknown: the equations in it are redundant or contradictory."""
    involved = {last.replaced}
    for step in reversed(steps):  # what was itself a combination is traced back to what it was made of
        if step.replaced in involved:
            involved |= {i for i, _ in step.members}
    named = equations_named(sorted(involved))
    if cancel(equations, last.terms):
        cause = f"{named} are dependent: a combination of them says 0 = 0. One of them is redundant"
    else:
        cause = f"{named} contradict each other: a combination of them contains no unknown and does not vanish"
    remedy = "Remedy: replace one of them by the equation that is missing."
    message = f"the equations do not determine the unknowns (equations are numbered from 0): {cause}. {remedy}"
    raise StructurallySingularError(message, sorted(involved))
