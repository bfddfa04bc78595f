"""Unilateral contacts of a mechanism that close by impacts and open when they would have to pull."""

import itertools
from collections.abc import Callable

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.hybrid.models.impact import Contact, Impact, Terms, checked_contacts, closed, located
from daedal.hybrid.problem import ZENO, HybridProblem, Transition
from daedal.hybrid.state_form import positional_names
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_number

FREE = "free"
_MOST = 6  # contacts; each further one doubles the number of modes
_AT_REST = 1e-9  # relative rate of a gap, or its second derivative, that counts as zero
_UNSEEN = 1e-12  # heights of bounces relative to the size of the coordinates that cannot be resolved
_BELOW = 1e-13  # gaps relative to the size of the coordinates, a little more than round-off
_SLOWEST = 10.0  # of the contacts that accumulate, times the slowest one

Set = frozenset[int]


def unilateral(
    system: MechanicalSystem, contacts, *, law: str = "newton", rest_speed: float = 0.0, touch: float = Impact.touch
) -> HybridProblem:
    r"""A mechanism with contacts that open and close, as a hybrid problem.

    .. math::

        M \ddot q = f - G^T \lambda + N^T \Lambda, \qquad 0 = g(t, q), \qquad 0 \le g_N(t, q) \perp \Lambda \ge 0 .

    A mode is a set of closed contacts, whose gaps are constraints: ``"free"``, or the names joined by " + ". A contact
    closes where its gap becomes zero, by an impact (see :func:`impact`) in which all closed contacts and those that are
    reached at the same time take part. What is not moving apart afterwards stays closed if it is pressed together,
    :math:`0 \le \Lambda \perp \ddot g_N \ge 0`. It opens where its force :math:`\Lambda` changes its sign. Where
    impacts accumulate (Zeno behaviour), the contact is closed from then on.

    Parameters
    ----------
    system : MechanicalSystem
        Without contacts.
    contacts : Contact, callable, or sequence of them
        Up to 6; functions are gaps of plastic contacts.
    law : {"newton", "poisson"}
        Of impact.
    rest_speed : float
        Impacts at this speed or below are plastic, so that bouncing ends before it accumulates.
    touch : float
        The gap below which a contact takes part in the impact on another one.

    Returns
    -------
    HybridProblem
        The transitions are called "<contact> closes" and "<contact> opens", and "settles" at points of accumulation.

    Notes
    -----
    There is no friction. Closed contacts that depend on each other (a table on four legs) share the load with forces of
    least norm, which decide which one opens.

    References
    ----------
    F. Pfeiffer, C. Glocker: Multibody dynamics with unilateral contacts, Wiley, 1996.

    Examples
    --------
    A ball bounces on the floor until it rests:

    >>> import daedal
    >>> ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1, names=["height"])
    >>> problem = daedal.unilateral(ball, daedal.Contact(lambda t, q: q[0], restitution=0.5, name="floor"))
    >>> sol = daedal.solve(problem, (0.0, 2.0), ("free", ([1.0], [0.0])), rtol=1e-8)
    >>> print(sol.mode[-1], f"{sol.events[-1].t:.6f}")
    floor 1.354571
    """
    _check_system(system)
    checked = checked_contacts(contacts)
    if len(checked) > _MOST:
        raise InvalidProblemError(
            f"contacts: {len(checked)} of them have {2 ** len(checked)} modes; up to {_MOST} can be handled"
        )
    names = [str(contact.name) for contact in checked]
    if FREE in names:
        raise InvalidProblemError(f"contacts: '{FREE}' is the name of the mode without contact; choose another name")
    rest_speed = check_number(rest_speed, "rest_speed")
    touch = check_number(touch, "touch")
    if rest_speed < 0.0 or touch < 0.0:
        raise InvalidProblemError(f"rest_speed and touch must not be negative, got {rest_speed!r} and {touch!r}")
    rules = _Rules(system, checked, law, rest_speed, touch)
    every = range(len(checked))
    sets = [frozenset(s) for count in range(len(checked) + 1) for s in itertools.combinations(every, count)]
    transitions = [t for s in sets for t in rules.transitions(s)]
    problem = HybridProblem({rules.name(s): closed(system, sorted(s), checked) for s in sets}, transitions)

    def again(other: MechanicalSystem) -> HybridProblem:
        return unilateral(other, checked, law=law, rest_speed=rest_speed, touch=touch)

    return problem.made_of(system, again)


def _check_system(system):
    if not isinstance(system, MechanicalSystem):
        raise InvalidProblemError(f"system must be a MechanicalSystem, got {type(system).__name__}")
    if system.n_r or system.n_w or system.force_uses_multipliers:
        raise InvalidProblemError(
            "system: forces that depend on further states r, algebraic variables w or multipliers cannot be had "
            "together with unilateral contacts. Remedy: write the modes as a HybridProblem, with daedal.impact as reset"
        )


def _twice(gap, q: np.ndarray):
    if np.ndim(gap) or np.asarray(gap).dtype.kind not in "fiub":
        return gap  # refused as a guard
    return np.array([gap, gap + _BELOW * float(np.max(np.abs(q)))])


class _Rules:
    """When contacts open and close, and what follows."""

    def __init__(self, system: MechanicalSystem, contacts: list[Contact], law: str, rest_speed: float, touch: float):
        self.contacts, self.rest_speed, self.touch = contacts, rest_speed, touch
        self.impact = Impact(system, contacts, law)
        self.restitution = np.array([contact.restitution for contact in contacts])
        self.n_g = system.n_constraints
        self.params = system.params

    def name(self, chosen: Set) -> str:
        """The name of the mode with these contacts closed."""
        return " + ".join(str(self.contacts[i].name) for i in sorted(chosen)) or FREE

    def transitions(self, chosen: Set) -> list[Transition]:
        """Those out of the mode with the `chosen` contacts."""
        mode, found = self.name(chosen), []
        for i, contact in enumerate(self.contacts):
            if i in chosen:
                guard, target = self._force(chosen, i), self._opening(chosen - {i})
                found.append(Transition(mode, target, guard, direction=-1, name=f"{contact.name} opens"))
            else:
                target, reset = self._closing(chosen, i)
                guard = self._gap(contact)
                found.append(Transition(mode, target, guard, direction=-1, reset=reset, name=f"{contact.name} closes"))
        if len(chosen) < len(self.contacts):
            target = self._settling(chosen)
            found.append(Transition(mode, target, ZENO, reset=lambda t, q, v: (located(t, q, v), v), name="settles"))
        return found

    def _gap(self, contact: Contact) -> Callable:
        """The gap, and a second guard just below zero: a step that ends on the very zero of the first may hide it."""
        if self.params is not None and len(positional_names(contact.gap) or ()) > 2:
            return lambda t, q, v, p: _twice(contact.gap(t, q, p), q)
        return lambda t, q, v: _twice(contact.gap(t, q), q)

    def _force(self, chosen: Set, i: int) -> Callable:
        """The contact force, which must not become negative: M a = f - N^T lam."""
        place = self.n_g + sorted(chosen).index(i)
        return lambda t, q, v, lam: -lam[place]

    def _closing(self, chosen: Set, i: int) -> tuple[Callable, Callable]:
        """The mode and the velocities after the impact by which contact `i` closes."""

        def collide(t, q, v):
            terms = self.impact.terms(t, q, v)
            part = np.array([j in chosen or j == i for j in range(len(self.contacts))])
            part |= (terms.gap <= self.touch) & (terms.rate < 0.0)
            e = np.where(np.abs(terms.rate) <= self.rest_speed, 0.0, self.restitution)
            after, _ = self.impact.velocities(terms, v, part, e)
            landed = self.impact.terms(t, q, after)
            while (unseen := part & self._bounces_unseen(landed, q))[e > 0.0].any():
                e[unseen] = 0.0
                after, _ = self.impact.velocities(terms, v, part, e)
                landed = self.impact.terms(t, q, after)
            size = float(np.max(np.abs(terms.rate[part]), initial=0.0))
            resting = unseen | (part & (np.abs(landed.rate) <= _AT_REST * size))
            return self._pressed(landed, resting), landed.held(after, resting)

        last: list = [(None, None)]  # target and reset are asked for the same state

        def once(t, q, v):
            key, known = (t, q.tobytes(), v.tobytes()), last[0]
            if known[0] != key:
                known = last[0] = key, collide(t, q, v)
            return known[1]

        def reset(t, q, v):
            follows, after = once(t, q, v)
            return located(t, q, v) if follows else q, after

        return lambda t, q, v: self.name(once(t, q, v)[0]), reset

    def _bounces_unseen(self, terms: Terms, q: np.ndarray) -> np.ndarray:
        """Contacts that come back before they have opened farther than round-off in q: u^2 <= 2 |a| h."""
        height = _UNSEEN * float(np.max(np.abs(q)))
        return (terms.rate > 0.0) & (terms.rate**2 <= -2.0 * height * terms.free_accelerations())

    def _opening(self, rest: Set) -> Callable:
        """Without the contact that opens, others may open as well."""

        def target(t, q, v):
            part = np.array([j in rest for j in range(len(self.contacts))])
            return self.name(self._pressed(self.impact.terms(t, q, v), part))

        return target

    def _pressed(self, terms: Terms, part: np.ndarray) -> Set:
        """Those contacts at rest that do not begin to move apart."""
        if not part.any():
            return frozenset()
        rates = terms.accelerations(part)
        size = float(np.max(np.abs(terms.force @ np.abs(terms.compliance(part)[1])), initial=0.0))
        size = max(size, float(np.max(np.abs(terms.bias[part]))))
        return frozenset(np.flatnonzero(part)[np.abs(rates) <= _AT_REST * size].tolist())

    def _settling(self, chosen: Set) -> Callable:
        """The mode behind a point of accumulation: contacts that nearly touch and hardly move are closed."""

        def target(t, q, v):
            terms = self.impact.terms(t, q, v)
            is_open = np.array([j not in chosen for j in range(len(self.contacts))])
            near = is_open & (terms.gap <= max(self.touch, float(terms.gap[is_open].min())))
            speed = np.abs(terms.rate)
            near &= speed <= _SLOWEST * speed[near].min()
            return self.name(chosen | frozenset(np.flatnonzero(near).tolist()))

        return target
