"""What dry friction can do at a point, and how to say so."""

import math
from dataclasses import dataclass

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.hybrid.models.friction_modes import FrictionLaw
from daedal.mechanics.probes import check_point
from daedal.problems import MechanicalSystem

_SHORT = 1e-5  # step of the difference that gives a rate
_DEPENDENT = 1e-12  # relative mobility below which the constraints determine the relative velocity alone


@dataclass(frozen=True)
class ContactState:
    r"""What dry friction can do at a point; see :meth:`Friction.at`.

    Attributes
    ----------
    speed : float
        The relative velocity s.
    mobility : float
        :math:`e^T \partial\ddot q/\partial F` of a force F e, so that :math:`\dot s` changes by `mobility` times F.
    holding : float
        :math:`\lambda_s`, the multiplier of the constraint s = 0: the force that it takes to stick, with the sign of
        the slip that it prevents.
    capacity : float
        :math:`\mu_s |N|` while it sticks.
    branches : dict
        For each direction of slip (1 and -1) the normal forces that agree with their own sign, the smallest first.
    opens : bool
        Whether a unilateral contact opens: without friction it would have to pull.
    """

    t: float
    speed: float
    mobility: float
    holding: float
    capacity: float
    branches: dict[int, tuple[float, ...]]
    opens: bool

    @property
    def sticks(self) -> bool:
        """Whether adhesion holds the contact."""
        return abs(self.holding) <= self.capacity


def response(law: FrictionLaw, point, e) -> tuple[float, float]:
    """How the acceleration of the contact, and the multiplier that is the normal force, respond to a force along e."""
    k, n = point.jacobian.shape
    matrix = np.block([[point.mass, point.jacobian.T], [point.jacobian, np.zeros((k, k))]])
    answer = np.linalg.lstsq(matrix, np.concatenate([e, np.zeros(k)]), rcond=1e-13)[0]
    multiplier = 0.0 if law.multiplier is None else float(answer[n + law.multiplier])
    return float(e @ answer[:n]), multiplier


def contact_state(system: MechanicalSystem, stick: MechanicalSystem, law: FrictionLaw, t, q, v) -> ContactState:
    """What friction can do at a point: lambda_s of the equations of stick, and the branches of the normal force."""
    if law.holding is not None:
        t, q, v = check_point(system, t, q, v)
        normal = law.normal_force(t, q, v, ())
        branches: dict[int, tuple[float, ...]] = dict.fromkeys((1, -1), (normal,))
        speed, force = law.relative(t, q, v), law.held(t, q, v)
        return ContactState(t, speed, law.holding.mobility, force, law.mu_static * normal, branches, opens=False)
    point = system.at(t, q, v)
    q, v, e = point.q, point.v, law.e(t, point.q)
    mobility, d = response(law, point, e)
    if mobility > _DEPENDENT * float(e @ e) ** 2 / float(e @ point.mass @ e):
        lam = stick.at(t, q, v).multipliers
        held, holding = law.normal_force(t, q, v, lam), float(lam[-1])
    else:  # a dead centre: no force along e can change the relative velocity
        held, holding = 0.0, math.copysign(math.inf, _free_rate(law, point))
    branches = {sigma: _branches(law, point, sigma, d) for sigma in (1, -1)}
    opens = law.unilateral and float(point.multipliers[law.multiplier]) > 0.0
    return ContactState(t, law.relative(t, q, v), mobility, holding, law.mu_static * held, branches, opens)


def _branches(law: FrictionLaw, point, sigma: int, d: float) -> tuple[float, ...]:
    """The normal forces lambda_0 / (1 + sigma rho mu d) that have the sign rho."""
    if law.multiplier is None:
        return (law.normal_force(point.t, point.q, point.v, ()),)
    free, mu = float(point.multipliers[law.multiplier]), law.coefficient(sigma, point.t, point.q, point.v)
    divisors = {rho: 1.0 + sigma * rho * mu * d for rho in law.signs}
    ways = {rho: free / divisor for rho, divisor in divisors.items() if divisor != 0.0}
    return tuple(sorted((value for rho, value in ways.items() if rho * value >= 0.0), key=abs))


def _free_rate(law: FrictionLaw, point) -> float:
    """The rate of the relative velocity without friction."""
    t, q, v, a = point.t, point.q, point.v, point.acceleration
    ahead, behind = (law.relative(t + h, q + h * v + 0.5 * h * h * a, v + h * a) for h in (_SHORT, -_SHORT))
    if ahead == behind:
        raise InvalidProblemError(
            f"direction: at t = {t:g} the constraints determine the relative velocity alone; no friction can act"
        )
    return (ahead - behind) / (2.0 * _SHORT)


def ambiguous(state: ContactState, sigma: int) -> str:
    """Several normal forces."""
    values = ", ".join(f"{value:.6g}" for value in state.branches[sigma])
    return (
        f"At t = {state.t:.10g} the normal force of the slip to the {'positive' if sigma > 0 else 'negative'} side is "
        f"not unique (Painleve's paradox): multipliers {values} all agree with the law of friction. The smallest was "
        "taken."
    )


def impossible(state: ContactState, law: FrictionLaw) -> str:
    """No motion at all."""
    return (
        f"no motion agrees with the law of friction at t = {state.t:.10g} (Painleve's paradox). Relative velocity "
        f"{state.speed:.6g}; sticking takes the force {state.holding:.6g} and can hold {state.capacity:.6g}; normal "
        f"forces of a slip to the positive side: {_listed(state.branches[1])}, to the negative side: "
        f"{_listed(state.branches[-1])}. A rigid model has no solution here. Remedy: an impact without collision, some "
        f"compliance in the contact, or a smaller mu ({law.mu_at_rest:g})."
    )


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.6g}" for value in values) or "none"
