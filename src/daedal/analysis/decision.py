r"""Choice of a formulation and a method from measurements.

With h the step size that accuracy alone would allow, three products decide: :math:`s = h |\sigma_F|`, the frozen
stiffness; :math:`v = m h V_B`, the rotation of the constraint forces relative to the constraints, which every form that
imposes the constraints along these forces treats explicitly; and :math:`w = h\,\mathrm{rot}`, the rotation of the
constraints.

References
----------
U. M. Ascher, L. R. Petzold: Stability of computational methods for constrained dynamics systems, SIAM J. Sci. Comput.
14 (1993), section 4.2 for the four cases. The thresholds are in :mod:`daedal.analysis.thresholds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.analysis.thresholds import (
    DEPENDENT,
    EXPLICIT_LIMIT,
    ILL_CONDITIONED_MASS,
    RESOLVED,
    SAFETY,
    STIFF,
    TURNING,
    VIBRATION,
)
from daedal.mechanics.formulations import GGL, CoordinateProjection, Index3, ProjectedInvariants

if TYPE_CHECKING:
    from daedal.analysis.measures import Measures

_ALONG_B = ("index3", "index2", "ggl", "projected_invariants with projection='B'", "projection with weight='M'")
_EXPLICIT_METHODS = ("baumgarte with dopri5 or rk4", "projection with dopri5 or rk4")
_UNSUITED_TO_TURNING = ("baumgarte with small gamma", "state_space (a restart at almost every step)")
_STILL = "an explicit method is still stable with such steps, and more accurate"


@dataclass(frozen=True)
class Verdict:
    """The recommendation from the measurements.

    Attributes
    ----------
    case : int or str
        1: nothing is stiff, the constraints rotate slowly. 2: nothing is stiff, the constraints rotate rapidly. 3: the
        forces are stiff. 4: the directions of the constraint forces rotate so fast that forms that impose the
        constraint along them behave like explicit methods. Or ``"singular"``.
    formulation, method : object
        Recommended arguments of :func:`daedal.solve`.
    forbidden : tuple of str
        Choices that would fail or need far smaller steps.
    reasons : tuple of str
        Why this choice is recommended.
    s, v, w, vibration : float
        The largest values of h sigF, m h V_B, h rot and h omegaF over the samples.
    """

    case: int | str
    formulation: Any
    method: Any
    forbidden: tuple[str, ...]
    reasons: tuple[str, ...]
    s: float = 0.0
    v: float = 0.0
    w: float = 0.0
    vibration: float = 0.0

    @property
    def explicit(self) -> bool:
        """Whether an explicit method is recommended."""
        return getattr(self.method, "name", "") == "dopri5"


def decision(measures: Sequence[Measures], h_acc, m: int | None = None) -> Verdict:
    r"""Choose a formulation and a method from the measurements along a trajectory.

    The largest products over the samples decide: v >= 1 means case 4 (projected invariants along C^T with a stiff
    method); otherwise s >= 1 means case 3 (stabilised index 2 with a stiff method; collocation at Radau nodes if
    vibrations are faster than decay); otherwise w >= 0.3 means case 2; otherwise it is case 1 (an explicit method with
    projection). Steps with h omega above 1 do not resolve vibrations of the frozen part, so these count as stiff. If v,
    s and h omega stay below 2 and w below 1, explicit methods of order four and five are stable with step h and are
    recommended in all cases.

    Parameters
    ----------
    measures : sequence of Measures
        Samples.
    h_acc : float or array
        The step size that accuracy alone would allow, for all samples or for each.
    m : int, optional
        Order of the problem; that of the samples by default.

    Returns
    -------
    Verdict
    """
    from daedal.methods.explicit.runge_kutta import DOPRI5

    samples = list(measures)
    if not samples:
        return Verdict(1, CoordinateProjection(), DOPRI5(), (), ("nothing could be measured; the choice is a guess",))
    worst = max(samples, key=lambda one: np.inf if np.isnan(one.kap1) else one.kap1)
    if not worst.kap1 < DEPENDENT:
        reason = (
            f"near t = {worst.t:.4g} the constraints are linearly dependent (||(C B)^-1|| = {worst.kap1:.2g}): "
            "the mechanism passes through a singular configuration, or a constraint is redundant there"
        )
        return Verdict("singular", "auto", "auto", (), (reason,))
    h = np.abs(np.broadcast_to(np.asarray(h_acc, dtype=float), (len(samples),)))
    found = _Products(samples, h, samples[0].order if m is None else m)
    if found.v >= STIFF:
        return _turning_forces(found)
    if found.s >= STIFF or found.vibration >= VIBRATION:
        return _stiff_forces(found)
    if found.w >= TURNING:
        return _turning_constraints(found)
    reasons = (
        "all products stay below their limits: an explicit method is stable, and cheapest",
        "projection (or baumgarte with gamma about 1) preserves the constraints",
    )
    return found.explicit(1, (), reasons)


class _Products:
    """The largest products over the samples, and where they occur."""

    def __init__(self, samples: list[Measures], h: np.ndarray, order: int):
        self.samples = samples
        self.v, self.at_v = self._largest(order * h, [one.V_B for one in samples])
        self.s, self.at_s = self._largest(h, [abs(one.sigF) for one in samples])
        self.w, self.at_w = self._largest(h, [one.rot for one in samples])
        self.vibration, self.at_vibration = self._largest(h, [one.omegaF for one in samples])
        self.stable = max(self.v, self.s, self.vibration) < EXPLICIT_LIMIT / SAFETY and self.w < RESOLVED

    def _largest(self, factors: np.ndarray, values) -> tuple[float, Measures]:
        """The largest product and its sample; missing measurements are skipped."""
        products = np.nan_to_num(factors * np.asarray(values), nan=0.0)
        where = int(np.argmax(products))
        return float(products[where]), self.samples[where]

    def total_turn(self) -> float:
        """The integral of the rotation rate of the constraints."""
        rot, t = np.nan_to_num([one.rot for one in self.samples]), np.array([one.t for one in self.samples])
        return float(abs(np.sum(0.5 * (rot[1:] + rot[:-1]) * np.diff(t))))

    def verdict(self, case: int, formulation, method, forbidden, reasons) -> Verdict:
        numbers = {"s": self.s, "v": self.v, "w": self.w, "vibration": self.vibration}
        return Verdict(case, formulation, method, tuple(forbidden), tuple(reasons), **numbers)

    def explicit(self, case: int, forbidden, reasons, weight: str = "M") -> Verdict:
        from daedal.methods.explicit.runge_kutta import DOPRI5

        if not max(one.condM for one in self.samples) < ILL_CONDITIONED_MASS:
            weight = "I"
        return self.verdict(case, CoordinateProjection(weight), DOPRI5(), forbidden, reasons)

    def stiff(self, case: int, formulation, forbidden, reasons) -> Verdict:
        from daedal.methods.bdf.dassl import DASSL

        return self.verdict(case, formulation, DASSL(), (*forbidden, *_EXPLICIT_METHODS), reasons)


def _turning_forces(found: _Products) -> Verdict:
    reasons = [
        (
            f"a form that imposes the constraints along their forces treats the rotation (m h V_B = {found.v:.2g} at "
            f"t = {found.at_v.t:.4g}) like an explicit method"
        )
    ]
    if found.stable:
        return found.explicit(4, _ALONG_B, [*reasons, _STILL], weight="I")
    reasons.append("constraints imposed along C^T keep a stiff method stiff (V = 0)")
    turn = found.total_turn()
    if turn < 1.0:
        reasons.append(f"since the constraints rotate by {turn:.2g} rad in total, state_space with dassl is as good")
    return found.stiff(4, ProjectedInvariants(projection="CT"), _ALONG_B, reasons)


def _stiff_forces(found: _Products) -> Verdict:
    if found.s >= STIFF:
        kind = "decay" if found.at_s.sigF < 0.0 else "growth"
        reason = f"h times the fastest rate of {kind} is {found.s:.2g} at t = {found.at_s.t:.4g}: the forces are stiff"
    else:
        where = f"h omega = {found.vibration:.2g} at t = {found.at_vibration.t:.4g}"
        reason = f"the steps do not resolve fast vibrations ({where}), which an explicit method would have to follow"
    if found.stable:
        return found.explicit(3, (), [reason, _STILL])
    if found.vibration > found.s and found.at_vibration.unknowns:
        from daedal.methods.implicit_rk.collocation import LARGEST, Collocation

        if found.at_vibration.unknowns <= LARGEST:
            remedy = "collocation at Radau nodes is stable on the imaginary axis, BDF of order 3 and more is not"
            return found.verdict(3, Index3(), Collocation(), _EXPLICIT_METHODS, [reason, remedy])
    remedy = "a stiff method on the stabilised index-2 form needs no further derivatives of the constraints"
    return found.stiff(3, GGL(), (), [reason, remedy])


def _turning_constraints(found: _Products) -> Verdict:
    reason = f"the constraints rotate by {found.w:.2g} rad in a step, most at t = {found.at_w.t:.4g}"
    if found.stable:
        follows = "nothing is stiff, and an explicit method can take steps that resolve the rotation"
        return found.explicit(2, _UNSUITED_TO_TURNING, [reason, follows])
    solved = "accuracy does not require resolving this rotation: the constraints should be solved in every step"
    return found.stiff(2, GGL(), _UNSUITED_TO_TURNING, [reason, solved])
