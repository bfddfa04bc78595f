"""Rigid impact: the velocity jump of a mechanism when gaps close, consistent with its constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.common.messages import warn
from daedal.common.public_names import with_old_keywords
from daedal.errors import EnergyWarning, InvalidProblemError
from daedal.hybrid.hybrid_problem import with_its_params
from daedal.hybrid.models.complementarity import FrictionProblem, complementary
from daedal.hybrid.models.contact_equations import Contact, checked_contacts
from daedal.hybrid.models.contact_rules import ContactSystem, Terms, whole_system
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_vector

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


LAWS = ("newton", "poisson")
ORDERS = ("together", "in turn")
_LOCATED = 100.0 * float(np.finfo(float).eps)  # relative error of the time of a located event
_CREATED = 1e-11  # created energy, relative to that of the impact, up to which it is round-off
_HALVINGS = 40  # number of bisections for the largest restitution that creates no energy
_ROUNDS = 200  # number of sequential impacts after which all approaching contacts are stopped together
_APPROACHES = 1e-12  # rate, relative to the first one, below which a gap counts as not closing


@dataclass(frozen=True)
class ImpactResult:
    """Effects of an impact.

    Attributes
    ----------
    velocities : numpy.ndarray
        Velocities after the impact.
    normal, tangential : numpy.ndarray
        Impulses of the contacts, and along their tangents.
    law : str
        The law used: the requested one, or another one if the former would have created energy.
    energy_lost : float
        The work of the impulses against the contacts, not negative.

    Examples
    --------
    >>> import daedal
    >>> ball = daedal.MechanicalSystem(2.0, lambda t, q, v: [-9.81], n_q=1)
    >>> found = daedal.hybrid.Impact(ball, lambda t, q: q[0], restitution=0.5).result(0.0, [0.0], [-4.0])
    >>> print(found.velocities, found.normal, found.energy_lost)
    [2.] [12.] 12.0
    """

    velocities: np.ndarray
    normal: np.ndarray
    tangential: np.ndarray
    law: str
    energy_lost: float


class Impact:
    r"""The reset map of a rigid impact, with friction if the contacts have some.

    The velocities jump by impulses of the contacts and of the constraints,

    .. math::

        M (v^+ - v^-) = -K^T p + N^T P + T^T Q, \qquad K v^+ + g_t = 0, \qquad u = N v + g_{N,t},
        \qquad s = T v - w,

    with the rows :math:`N` of the gradients of the gaps and their rates :math:`u`, the tangents :math:`T` and the slips
    :math:`s`. Newton's law is :math:`0 \le P \perp u^+ + e\, u^- \ge 0`. Poisson's law divides the impact into two
    phases: in the compression :math:`0 \le P_C \perp u_C \ge 0`, in the expansion the impulse is :math:`e P_C`, and
    larger if the contact would otherwise be penetrated. For one contact without friction, both give :math:`u^+ = -e\,
    u^-`. Friction
    follows Coulomb's law for impulses, in each phase: :math:`|Q| \le \mu P`, and :math:`Q = -\mu P\, s / |s|` if the
    contact slips at its end. The contacts are solved together, as one complementarity problem.

    Parameters
    ----------
    problem : MechanicalSystem
        Its constraints remain satisfied.
    contacts : Contact, callable, or sequence of them
        The contacts; functions are gaps. The gap may depend on time (a moving table). Contacts take part if their gap
        is zero, up to `Impact.touch`.
    restitution : float, optional
        Restitution of all contacts, instead of their own coefficients.
    law : {"newton", "poisson"}
    order : {"together", "in turn"}
        Whether contacts that touch at rest take part at once, or sequentially: the contacts whose gaps close are solved
        together, then those that close as a result, until none does. Newton's cradle requires the sequential law.

    Notes
    -----
    An impact is a function ``(t, q, v) -> (q, v+)`` for ``Transition(reset=...)``; ``.impulses(t, q, v)`` are the P,
    and ``.result(t, q, v)`` is an :class:`ImpactResult`.

    With friction both laws may create energy (Kane's double pendulum). In that case Newton's law is replaced by
    Poisson's; if this creates energy too, the coefficients of restitution are reduced by the largest common factor for
    which it does not, with an :class:`daedal.errors.EnergyWarning`. Without restitution an impact never creates energy.

    References
    ----------
    F. Pfeiffer, C. Glocker: Multibody dynamics with unilateral contacts, Wiley, 1996, chapter 8. T. R. Kane,
    D. A. Levinson: Dynamics: theory and applications, McGraw-Hill, 1985, section 5.8.

    Examples
    --------
    A pendulum hits a wall at x = 0:

    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> hit = daedal.hybrid.Impact(pendulum, lambda t, q: q[0], restitution=0.5)
    >>> q, v = hit(0.0, [0.0, -1.0], [-4.0, 0.0])
    >>> print(v.round(12))
    [2. 0.]
    """

    touch = 1e-9
    """The gap below which a contact takes part in the impact of another contact."""

    @with_old_keywords(system="problem")
    def __init__(
        self,
        problem: MechanicalSystem,
        contacts: Contact | Callable[..., Any] | Sequence[Contact | Callable[..., Any]],
        restitution: float | None = None,
        *,
        law: str = "newton",
        order: str = "together",
    ):
        if not isinstance(problem, MechanicalSystem):
            raise InvalidProblemError(f"problem must be a MechanicalSystem, got {type(problem).__name__}")
        if law not in LAWS:
            raise InvalidProblemError(f"unknown law {law!r} of impact; known: {', '.join(LAWS)}")
        if order not in ORDERS:
            raise InvalidProblemError(f"unknown order {order!r} of impacts; known: {', '.join(ORDERS)}")
        self.system, self.contacts = problem, checked_contacts(contacts, problem.n_q, restitution)
        self.rules = ImpactRules(self.contacts, law, order)

    @cached_property
    def _whole(self) -> MechanicalSystem:
        return whole_system(self.system, self.contacts)

    def with_params(self, params: Any) -> Impact:
        """The same impact for the system with other parameters, if it has them."""
        system = with_its_params(self.system, params)
        return Impact(system, self.contacts, law=self.rules.law, order=self.rules.order)

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Any:
        q, v = self._checked(q, v)
        return q, self._result(t, q, v).velocities

    def impulses(self, t: float, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """The impulses P of the contacts."""
        return self.result(t, q, v).normal

    def result(self, t: float, q: ArrayLike, v: ArrayLike) -> ImpactResult:
        """Velocities, impulses, the law used and the energy lost."""
        return self._result(t, *self._checked(q, v))

    def _checked(self, q, v) -> tuple[np.ndarray, np.ndarray]:
        return check_vector(q, self.system.n_q, "q"), check_vector(v, self.system.n_q, "v")

    def _result(self, t: float, q: np.ndarray, v: np.ndarray) -> ImpactResult:
        system = ContactSystem(self.system, self.contacts, self._whole)
        terms = system.terms(t, q, v)
        part = terms.gap <= max(self.touch, float(terms.gap.min()))
        found = self.rules.velocities(terms, system.extended(v), part)
        return replace(found, velocities=found.velocities[: v.size])


@dataclass(frozen=True)
class ImpactRules:
    """The laws of impact for some contacts."""

    contacts: Sequence[Contact]
    law: str
    order: str
    rest_speed: float = 0.0  # sequential impacts at this speed or below are plastic
    restitution: np.ndarray = field(init=False)
    mu: np.ndarray = field(init=False)
    owner: np.ndarray = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "restitution", np.array([contact.restitution for contact in self.contacts]))
        object.__setattr__(self, "mu", np.array([contact.mu for contact in self.contacts]))
        owner = [i for i, contact in enumerate(self.contacts) for _ in contact.tangent]
        object.__setattr__(self, "owner", np.array(owner, dtype=np.int64))

    def velocities(self, terms: Terms, v: np.ndarray, part: np.ndarray, restitution=None) -> ImpactResult:
        """The result of an impact in which the contacts of the mask `part` take part."""
        e = self.restitution if restitution is None else restitution
        v = v + terms.solve(np.zeros(v.size), -terms.defect)  # correct the constraint violation of v
        if self.order == "together":
            return self._at_once(terms, v, part, e)
        return self._in_turn(terms, v, part, e)

    def _in_turn(self, terms: Terms, v: np.ndarray, part: np.ndarray, e: np.ndarray) -> ImpactResult:
        """The result of sequential impacts of the gaps that close, none of which creates energy."""
        normal, tangential, lost, law = np.zeros(part.size), np.zeros(self.owner.size), 0.0, self.law
        size = float(np.max(np.abs(terms.at_velocity(v)[0][part]), initial=0.0))
        for round_ in range(_ROUNDS + 1):
            rate = terms.at_velocity(v)[0]
            closing, last = part & (rate < -_APPROACHES * size), round_ == _ROUNDS
            if not closing.any():
                break
            plastic = last | (-rate <= self.rest_speed)
            found = self._at_once(terms, v, part if last else closing, np.where(plastic, 0.0, e))
            v, law = found.velocities, found.law if found.law != self.law else law
            normal, tangential, lost = normal + found.normal, tangential + found.tangential, lost + found.energy_lost
        return ImpactResult(v, normal, tangential, law, lost)

    def _at_once(self, terms: Terms, v: np.ndarray, part: np.ndarray, e: np.ndarray) -> ImpactResult:
        chosen = np.flatnonzero(part)
        tangents = np.flatnonzero(np.isin(self.owner, chosen[self.mu[chosen] > 0.0]))
        W = np.vstack([terms.N[chosen], terms.T[tangents]])
        X = terms.answer(W)
        owner = tuple(np.searchsorted(chosen, self.owner[tangents]).tolist())
        phases = _Phases(W @ X, terms.rates(v, chosen, tangents), owner, self.mu[chosen])
        x, law = phases.consistent(self.law, e[chosen])
        normal, tangential = np.zeros(part.size), np.zeros(self.owner.size)
        normal[chosen], tangential[tangents] = x[: chosen.size], x[chosen.size :]
        return ImpactResult(v + X @ x, normal, tangential, law, max(-phases.work(x), 0.0))


@dataclass(frozen=True)
class _Phases:
    """Compression and expansion: the compliance A of gaps and slips, and their rates u before the impact."""

    A: np.ndarray
    u: np.ndarray
    owner: tuple[int, ...]
    mu: np.ndarray

    def consistent(self, law: str, e: np.ndarray) -> tuple[np.ndarray, str]:
        """Impulses by a law, or by the next law that creates no energy, and the name of the law."""
        x = self.impulses(law, e)
        if not self.creates(x):
            return x, law
        taken = "poisson"
        if law != taken and not self.creates(found := self.impulses(taken, e)):
            x = found
        else:
            share, x = self._largest_share(e)
            taken = f"poisson with {share:.3g} of the restitution"
        warn(
            f"an impact by the law of '{law}' would have created energy, due to friction opposing the restitution; "
            f"used instead: {taken}. Remedy: use law='poisson', or a smaller restitution or mu",
            EnergyWarning,
        )
        return x, taken

    def _largest_share(self, e: np.ndarray) -> tuple[float, np.ndarray]:
        """The largest fraction of the restitution with which Poisson's law creates no energy, and the impulses."""
        low, high, x = 0.0, 1.0, self.impulses("poisson", 0.0 * e)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            found = self.impulses("poisson", middle * e)
            if self.creates(found):
                high = middle
            else:
                low, x = middle, found
        return low, x

    def impulses(self, law: str, e: np.ndarray) -> np.ndarray:
        """x = (P, Q) by a law."""
        m = e.size
        if law == "newton":
            return self._solve(self.u + np.concatenate([e * self.u[:m], np.zeros(len(self.owner))]))
        compression = self._solve(self.u)
        if not self.owner:
            P = e * compression
            return P + complementary(self.A, self.u + self.A @ (compression + P)) + compression
        return compression + self._solve(self.u + self.A @ compression, e * compression[:m])

    def _solve(self, rates: np.ndarray, least: np.ndarray | None = None) -> np.ndarray:
        m = self.mu.size
        if not self.owner:
            return complementary(self.A, rates)
        x = FrictionProblem(self.A, rates, m, self.owner, self.mu, least).solve()
        if x is None:
            raise InvalidProblemError(
                "no impulses satisfy the laws of contact and friction: the mass matrix must be positive definite on "
                "the motions that the constraints allow, and all values finite"
            )
        return x

    def work(self, x: np.ndarray) -> float:
        """Work of the impulses on the contacts, x^T (u^- + u^+) / 2: the change of the kinetic energy."""
        return float(0.5 * x @ (2.0 * self.u + self.A @ x))

    def creates(self, x: np.ndarray) -> bool:
        """Whether the impulses `x` create energy, beyond round-off."""
        return self.work(x) > _CREATED * float(np.abs(x) @ (np.abs(self.u) + np.abs(self.A) @ np.abs(x)))


def located(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The position, with zeros for entries smaller than the displacement during the error of a located time."""
    return np.where(np.abs(q) <= _LOCATED * abs(t) * np.max(np.abs(v)), 0.0, q)
