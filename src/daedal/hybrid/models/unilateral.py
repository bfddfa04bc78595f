"""Contacts of a mechanism that close by impacts, stick, slip, and open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.public_names import with_old_keywords
from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.hybrid.hybrid_problem import ZENO, GuardOfRun, HybridProblem, Transition
from daedal.hybrid.mode_state import StateForm
from daedal.hybrid.models.contact_equations import AHEAD, BEYOND, Contact, along, checked_contacts, corners_of
from daedal.hybrid.models.contact_modes import FREE, OPEN, SIDES, STICK, ContactModes, ContactRecord, States, slips
from daedal.hybrid.models.contact_rules import AT_REST, ContactRules, ContactSystem, Slips, Terms, whole_system
from daedal.hybrid.models.impact import LAWS, ORDERS, Impact, ImpactRules, located
from daedal.kernels.functions import is_compiled
from daedal.problems import MechanicalSystem
from daedal.problems.arguments import positional_names
from daedal.problems.checks import check_number
from daedal.problems.compile import compiled_function

_UNSEEN = 1e-12  # height, relative to the size of the coordinates, below which bounces cannot be resolved
_BELOW = 1e-13  # distance below zero, relative to the size of the coordinates, of the second zero guarded for a gap
_SLOWEST = 10.0  # largest rate of a gap, relative to the slowest, whose contact closes at a point of accumulation
_PENETRATES = 1e-6  # largest initial penetration, relative to the size of the coordinates
_TOUCHES = 1e-10  # gap, relative to the size of the coordinates, up to which it is closed at the start
_STARTS = 1e-8  # rate of a gap, relative to its terms, up to which it counts as zero at the start
_STOPS = 1e-8  # slip, relative to the fastest slip of the mode, up to which it ends when another contact stops
_JOINED = 1e-6  # slip, relative to its value before another contact stopped, up to which it ends too
_NO_FORCE = 1e-11  # smaller deficits of force, as a fraction of the loads, open no contact and release none
_TINY = 1e-300

Change = tuple[States, np.ndarray]
"""Next states of the contacts, and the velocities."""


class ContactWatch:
    """Guards and transitions of a mode, for one run."""

    def __init__(self, problem: Any):
        self.problem, self.contacts, self.modes = problem, problem.contacts, problem.modes
        self.system = ContactSystem(problem.system, problem.contacts, problem.whole)
        self.rules = ContactRules(problem.contacts)
        self.impact = ImpactRules(problem.contacts, problem.law, problem.order, problem.rest_speed)
        self._last: tuple[Any, Any] = (None, None)
        self._fastest: dict[int, float] = {}  # fastest slips in the mode, by contact

    # --- guards -----------------------------------------------------------------------------------------------------

    def transitions(self, mode: str) -> list[Transition]:
        """Transitions out of a mode: impacts and openings first, then slips, then ends of slips."""
        states = self.modes.states(mode)
        any_closed, found = bool(_closed(states).any()), []
        sliding = [str(c.name) for c, state in zip(self.contacts, states, strict=True) if slips(state)]
        if sliding:
            name = f"{' and '.join(sliding)} {'jam' if len(sliding) > 1 else 'jams'}"
            found.append(self._leading(mode, self._guard(states, "margin"), name, self._jam(states)))
        for i, (contact, state) in enumerate(zip(self.contacts, states, strict=True)):
            if state == OPEN:
                guard, follow = self._gap(i, any_closed), self._collide(states, i)
                # impacts that pile up need the values that the impacts of the other contacts use, to the last bit
                formula = self.problem.gap_formulas[i] if len(self.contacts) == 1 else None
                found.append(self._leading(mode, guard, f"{contact.name} closes", follow, formula=formula))
            elif not contact.is_pressed:
                guard = self._guard(states, "normal", i)
                found.append(self._leading(mode, guard, f"{contact.name} opens", self._open(states, i)))
                corners = self.problem.corners(i)
                if corners is not None:
                    name, follow = f"{contact.name} passes a corner", self._round(states, i)
                    found.append(self._leading(mode, _at_corners(corners), name, follow, False, direction=0))
        for i, (contact, state) in enumerate(zip(self.contacts, states, strict=True)):
            if state == STICK:
                guard = self._guard(states, "reserve", i)
                found.append(self._leading(mode, guard, f"{contact.name} slips", self._release(states, i)))
            elif slips(state):
                follow = self._stop(states, i)
                found.append(self._leading(mode, self._slip(i, state), f"{contact.name} stops", follow, False))
        return found

    def _leading(
        self,
        mode: str,
        guard: Callable,
        name: str,
        follow: Callable[..., Change],
        immediate=True,
        direction: int = -1,
        formula: Callable | None = None,
    ):
        """A transition whose target and reset come from one function of (t, q, v)."""
        last: list[Any] = [(None, None)]

        def once(t, q, v) -> Change:
            key, known = (t, q.tobytes(), v.tobytes()), last[0]
            if known[0] != key:
                states, after = follow(t, q, self.system.extended(v))
                known = last[0] = key, (states, after[: q.size])
            return known[1]

        def target(t, q, v) -> str:
            return self.modes.name(once(t, q, v)[0])

        def reset(t, q, v):
            states, after = once(t, q, v)
            closes = any(state != OPEN for state in states)
            if direction == 0:
                return along(t, q, v, BEYOND)[1], after
            return located(t, q, v) if closes and name.endswith("closes") else q, after

        kept = GuardOfRun(lambda: guard, formula)  # guards share results, and record the fastest slips
        return Transition(mode, target, kept, direction=direction, reset=reset, name=name, immediate=immediate)

    def _gap(self, i: int, forces: bool) -> Callable:
        """Guard with two values: the gap, and one that vanishes just below, since a step may end exactly at a zero."""

        def guard(t, q, v):
            gap = (self._terms(t, q, v).gap if forces else self._gaps(t, q))[i]
            return np.array([gap, gap + _BELOW * float(np.max(np.abs(q)))])

        return guard

    def _guard(self, states: States, kind: str, i: int | None = None) -> Callable:
        def guard(t, q, v):
            found = self._look(states, t, q, v)[kind]
            return float(found if i is None else found[i])

        return guard

    def _slip(self, i: int, state: str) -> Callable:
        """Guard of a sliding contact: the slip velocity, positive in `state`; in space, its norm minus ``creep``."""
        own = self.rules.tangents(i)

        def guard(t, q, v):
            slip = self._terms(t, q, v).slip[own]
            self._fastest[i] = max(self._fastest.get(i, 0.0), float(np.linalg.norm(slip)))
            return float(SIDES[state] * slip[0]) if state in SIDES else float(np.linalg.norm(slip) - self.problem.creep)

        return guard

    def _look(self, states: States, t, q, v) -> dict[str, Any]:
        """Forces of a mode and their margins at a point; cached for several guards."""
        terms = self._terms(t, q, v)
        if "normal" not in terms.found:
            forces = self.rules.forces(terms, self.system.extended(v), states)
            slack = _NO_FORCE * forces.size
            terms.found.update(
                normal=_without_noise(forces.normal, slack),
                reserve=_without_noise(self.rules.reserves(forces), slack),
                margin=forces.margin,
            )
        return terms.found

    def _gaps(self, t: float, q: np.ndarray) -> np.ndarray:
        key, known = (t, q.tobytes()), self._last
        if known[0] != key:
            known = self._last = key, self.system.gaps(t, q)
        return known[1]

    def _terms(self, t: float, q: np.ndarray, v: np.ndarray) -> Terms:
        key, known = (t, q.tobytes(), v.tobytes()), self._last
        if known[0] != key:
            known = self._last = key, self.system.terms(t, q, v)
        return known[1]

    # --- consequences -------------------------------------------------------------------------------------------------

    def _collide(self, states: States, i: int) -> Callable[..., Change]:
        """The state after the impact that closes contact `i`."""
        closed = _closed(states)

        def follow(t, q, v) -> Change:
            terms = self.system.terms(t, q, v)
            part = closed.copy()
            part[i] = True
            part |= (terms.gap <= self.problem.touch) & (terms.rate < 0.0)
            slow = (np.abs(terms.rate) <= self.problem.rest_speed) & (self.impact.order == "together")
            e = np.where(slow, 0.0, self.impact.restitution)
            while True:
                after = self.impact.velocities(terms, v, part, e).velocities
                landed = self.system.terms(t, q, after)
                unseen = part & self._bounces_unseen(landed, q)
                if not unseen[e > 0.0].any():
                    break
                e = np.where(unseen, 0.0, e)
            size = float(np.max(np.abs(terms.rate[part]), initial=0.0))
            resting = unseen | (part & (np.abs(landed.rate) <= AT_REST * size))
            speed = float(np.max(np.abs(terms.slip[np.isin(self.rules.owner, np.flatnonzero(part))]), initial=size))
            return self._settle(t, located(t, q, v), landed.held(after, resting), resting, speed)

        return follow

    def _bounces_unseen(self, terms: Terms, q: np.ndarray) -> np.ndarray:
        """Mask of the contacts that close again before they have opened farther than round-off in q: u^2 <= 2 |a| h."""
        height = _UNSEEN * float(np.max(np.abs(q)))
        return (terms.rate > 0.0) & (terms.rate**2 <= -2.0 * height * terms.free_accelerations())

    def _settle(self, t, q, v, resting: np.ndarray, speed: float) -> Change:
        """Next states of the contacts, and the velocities, if the contacts `resting` have closed, constant gaps.

        Slips much slower than `speed` count as zero.
        """
        if not resting.any():
            return (OPEN,) * resting.size, v
        terms = self.system.terms(t, q, v)
        sliding = self.rules.moving(terms, v, resting, speed)
        return self._go_on(t, q, terms.held(v, resting, self._still(resting, sliding)), resting, sliding)

    def _still(self, closed: np.ndarray, sliding: Slips) -> np.ndarray:
        """Mask of the tangents of closed contacts that do not slide."""
        return np.array([closed[i] and i not in sliding for i in self.rules.owner], dtype=bool)

    def _go_on(self, t, q, v, closed: np.ndarray, sliding: Slips) -> Change:
        """Next states of closed contacts, some of which slide; if no motion is possible, those after an impact without
        collision."""
        terms = self.system.terms(t, q, v)
        states = self.rules.follow(terms, closed, sliding)
        if states is None:
            return self._impact_without_collision(t, q, v, closed, sliding)
        return states, v

    def _impact_without_collision(self, t, q, v, closed: np.ndarray, sliding: Slips) -> Change:
        terms = self.system.terms(t, q, v)
        after = self.rules.jammed(terms, v, closed, sliding, t)
        landed = self.system.terms(t, q, after)
        size = float(np.max(np.abs(terms.slip), initial=0.0))
        left = {i: s for i, s in self.rules.moving(landed, after, closed, size).items() if i in sliding}
        states = self.rules.follow(landed, closed, left)
        return (self.rules.states(closed, left) if states is None else states), after

    def _open(self, states: States, i: int) -> Callable[..., Change]:
        """Next states after contact `i` opens; others may open or slip too."""
        closed = _closed(states)
        closed[i] = False

        def follow(t, q, v) -> Change:
            sliding = self.rules.slipping(self.system.terms(t, q, v), v, states)
            sliding.pop(i, None)
            return self._go_on(t, q, v, closed, sliding)

        return follow

    def _round(self, states: States, i: int) -> Callable[..., Change]:
        """Next states when contact `i` reaches a corner of its gap, from the gap beyond the corner."""
        closed = _closed(states)

        def follow(t, q, v) -> Change:
            there = along(t, q, v, BEYOND)
            terms = self.system.terms(*there, v)
            size = max(float(np.abs(terms.N[i]) @ np.abs(there[1])), float(np.max(np.abs(q))))
            edge = terms.gap[i]
            if edge < -_PENETRATES * size:
                raise InvalidProblemError(
                    f"the gap of contact '{self.contacts[i].name}' jumps to {edge:.3g} at t = {t:g}, where the "
                    "contact is closed: the bodies would overlap. Remedy: define the step as a contact as well, "
                    "or as a slope"
                )
            rest = AT_REST * float(np.abs(terms.N[i]) @ np.abs(v[: q.size]))
            if edge > _PENETRATES * size or terms.rate[i] > rest:
                return self._open(states, i)(*there, v)
            if terms.rate[i] < -rest:
                found = self._collide(states, i)(*there, v)
                if not _goes_on(self.problem.corners(i), t, q, v, found[1]):
                    raise InvalidProblemError(
                        f"at t = {t:g} the motion ends in a corner of the gap of contact "
                        f"'{self.contacts[i].name}', whose two sides together hold it. Remedy: define the sides as "
                        "separate contacts"
                    )
                return found
            sliding = self.rules.slipping(terms, v, states)
            return self._go_on(*there, v, closed, sliding)

        return follow

    def _release(self, states: States, i: int) -> Callable[..., Change]:
        """Next states when contact `i` begins to slip, since its force can no longer prevent that."""

        def follow(t, q, v) -> Change:
            terms = self.system.terms(t, q, v)
            force = self.rules.forces(terms, v, states).tangential[self.rules.tangents(i)]
            sliding = self.rules.slipping(terms, v, states)
            sliding[i] = -force / float(np.linalg.norm(force))
            return self._go_on(t, q, v, _closed(states), sliding)

        return follow

    def _stop(self, states: States, i: int) -> Callable[..., Change]:
        """Next states when contact `i` has come to rest: it sticks, or slips to another side."""
        closed = _closed(states)

        def follow(t, q, v) -> Change:
            terms = self.system.terms(t, q, v)
            sliding = self.rules.slipping(terms, v, states)
            held = terms.held(v, closed, self._still(closed, {j: s for j, s in sliding.items() if j != i}))
            slip = terms.at_velocity(held)[1]
            # other contacts may stop at the same time: rigidly connected ones, or by coincidence
            for j in list(sliding):
                own = self.rules.tangents(j)
                size = max(_STOPS * self._fastest.get(j, 0.0), _JOINED * float(np.linalg.norm(terms.slip[own])))
                if j == i or np.linalg.norm(slip[own]) <= size:
                    del sliding[j]
            return self._go_on(t, q, terms.held(v, closed, self._still(closed, sliding)), closed, sliding)

        return follow

    def _jam(self, states: States) -> Callable[..., Change]:
        """Next states when the force of a sliding contact grows without limit: it opens, or it stops (Painleve)."""
        closed = _closed(states)

        def follow(t, q, v) -> Change:
            terms = self.system.terms(t, q, v)
            sliding = self.rules.slipping(terms, v, states)
            found = self.rules.follow(terms, closed, sliding)
            if found is not None and any(found[i] == OPEN for i in sliding):
                return found, v
            return self._impact_without_collision(t, q, v, closed, sliding)

        return follow

    # --- accumulation -----------------------------------------------------------------------------------------------

    def settling(self, mode: str) -> Transition | None:
        """The transition taken where the impacts of a mode accumulate; None if all contacts are closed."""
        states = self.modes.states(mode)
        if OPEN not in states:
            return None

        def follow(t, q, v) -> Change:
            v = self.system.extended(v)
            terms = self.system.terms(t, q, v)
            is_open = ~_closed(states)
            near = is_open & (terms.gap <= max(self.problem.touch, float(terms.gap[is_open].min())))
            rate = np.abs(terms.rate)
            near &= rate <= _SLOWEST * rate[near].min()
            resting = near | ~is_open
            size = float(np.max(rate[near], initial=0.0))
            v = terms.held(v, resting)
            sliding = self.rules.moving(terms, v, resting, size)
            held = terms.held(v, resting, self._still(resting, sliding))
            return self.rules.states(resting, sliding), held[: q.size]

        def target(t, q, v) -> str:
            return self.modes.name(follow(t, q, v)[0])

        def reset(t, q, v):
            return located(t, q, v), follow(t, q, v)[1]

        return Transition(mode, target, ZENO, reset=reset, name="settles")

    # --- start --------------------------------------------------------------------------------------------------------

    def at_start(self, t: float, q: np.ndarray, v: np.ndarray) -> States:
        """States of the contacts at the start of a run; contacts with zero, closing gaps have an impact immediately."""
        terms, q, v = self.system.terms(t, q, v), self.system.extended(q), self.system.extended(v)
        length = float(np.max(np.abs(q), initial=0.0)) or 1.0
        scale = np.maximum(np.abs(terms.N) @ np.abs(q), length * np.linalg.norm(terms.N, axis=1))
        deep = np.flatnonzero(terms.gap < -_PENETRATES * scale)
        if deep.size:
            words = ", ".join(f"'{self.contacts[i].name}' by {-terms.gap[i]:.3g}" for i in deep)
            raise InconsistentInitialError(
                f"initial: gaps are negative: {words}. Remedy: start at positions q where no gap is negative"
            )
        terms_of_rate = np.abs(terms.N) @ np.abs(v) + np.abs(terms.rate - terms.N @ v)
        resting = (np.abs(terms.gap) <= _TOUCHES * scale) & (np.abs(terms.rate) <= _STARTS * terms_of_rate)
        if not resting.any():
            return (OPEN,) * resting.size
        sliding = self.rules.moving(terms, v, resting)
        states = self.rules.follow(terms, resting, sliding)
        return self.rules.states(resting, sliding) if states is None else states


def _gap_formula(gap: Any, params: Any) -> Callable | None:
    """The gap, and a function just below zero; see `ContactWatch._gap`."""
    if is_compiled(gap):
        return None

    def lowered(value, q):
        return np.array([value, value + _BELOW * np.max(np.abs(q))])

    if params is None:
        return lambda t, q, v: lowered(gap(t, q), q)
    takes = len(positional_names(gap) or ()) > 2
    return lambda t, q, v, p: lowered(gap(t, q, p) if takes else gap(t, q), q)


def _at_corners(corners: Callable) -> Callable:
    """A guard that fires just before a corner of the gap, since the state at it may belong to the side beyond."""

    def guard(t, q, v):
        return corners(*along(t, q, v, AHEAD))

    return guard


def _goes_on(corners: Callable, t: float, q: np.ndarray, v: np.ndarray, after: np.ndarray) -> bool:
    """Whether the corner that the velocities `v` are about to pass is also passed with those after an impact."""
    here, ahead = corners(t, q), corners(*along(t, q, v, BEYOND))
    passed = np.sign(here) != np.sign(ahead)
    speed = float(np.max(np.abs(v))) / max(float(np.max(np.abs(after))), _TINY)
    then = corners(*along(t, q, after, BEYOND / speed)) if speed < 1.0 / _STOPS else here
    return bool(np.all((then - here)[passed] * (ahead - here)[passed] > 0.0))


def _closed(states: States) -> np.ndarray:
    return np.array([state != OPEN for state in states])


def _without_noise(values: np.ndarray, size: float) -> np.ndarray:
    """Replace values that are zero up to round-off by one positive number, so that guards do not respond to
    round-off."""
    return np.where(np.abs(values) <= size, max(size, _TINY), values)


# --- model ------------------------------------------------------------------------------------------------------------


def _check_system(system):
    if not isinstance(system, MechanicalSystem):
        raise InvalidProblemError(f"problem must be a MechanicalSystem, got {type(system).__name__}")
    if system.n_r or system.n_w or system.force_uses_multipliers:
        raise InvalidProblemError(
            "problem: forces that depend on additional states r, algebraic variables w or multipliers cannot be "
            "combined with unilateral contacts. Remedy: define the modes as a HybridProblem, with "
            "daedal.hybrid.Impact as reset"
        )


class UnilateralProblem(HybridProblem):
    r"""A mechanism with contacts that open and close, stick and slip, as a hybrid problem.

    .. math::

        M \ddot q = f - G^T \lambda + N^T P + T^T Q, \qquad 0 = g(t, q), \qquad 0 \le g_N(t, q) \perp P \ge 0, \qquad
        |Q| \le \mu P, \quad Q = -\mu P\, s / |s| \text{ if } s \ne 0 .

    Modes are named after the states of the contacts: ``"free"``, or the closed contacts joined by " + ", each given by
    its name, followed by "sticks", "slips+" or "slips-" if it has friction. A contact closes when its gap becomes zero,
    by an impact (see :class:`Impact`) in which all closed contacts and those that close at the same time take part.
    Contacts that do not separate afterwards remain closed if they are pressed together, :math:`0 \le P \perp \ddot g_N
    \ge 0`, and stick if friction can hold them: a complementarity problem for the accelerations. A contact opens when
    its force :math:`P` changes sign, and begins to slip when :math:`|Q|` exceeds :math:`\mu_s P`. After impacts have
    accumulated (Zeno behaviour), the contact is closed.

    Parameters
    ----------
    problem : MechanicalSystem
        System without contacts.
    contacts : Contact, callable, or sequence of them
        One or several contacts; functions are gaps of plastic contacts without friction.
    law : {"newton", "poisson"}
        Law of impact.
    order : {"together", "in turn"}
        Order of impacts: whether contacts that touch at rest take part at once; see :class:`Impact`.
    rest_speed : float
        Impacts at this speed or below are plastic, so that bouncing ends before it accumulates.
    touch : float
        The gap below which a contact takes part in the impact of another one.
    creep : float
        For contacts with two tangents: the slip velocity below which it has no direction, so that the contact may
        stick.

    Notes
    -----
    A hybrid problem whose modes are created when a run reaches them. Initial values are ``(q, v)``, or ``(mode, (q,
    v))``. The transitions are called "<contact> closes", "opens", "slips", "stops" and "jams", and "settles" at points
    of accumulation. ``sol.contact(name)`` returns gap, forces and state of a contact.

    Dependent closed contacts (a table on four legs, a block that sticks at two corners) share the load with forces of
    least norm. They open or slip if no admissible forces support the load.

    Painleve's paradox: a contact that slides with large friction may have no consistent force, or several. If there is
    none, the slip ends by an impact without collision, "<contact> jams" in the table of events; if there are several,
    the contact opens, with a :class:`daedal.errors.NonUniqueWarning`.

    References
    ----------
    F. Pfeiffer, C. Glocker: Multibody dynamics with unilateral contacts, Wiley, 1996. D. E. Stewart: Rigid-body
    dynamics with friction and impact, SIAM Review 42 (2000) 3-39.

    Examples
    --------
    A ball bounces on the floor until it rests:

    >>> import daedal
    >>> ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1, names=["height"])
    >>> floor = daedal.hybrid.Contact(lambda t, q: q[0], restitution=0.5, name="floor")
    >>> problem = daedal.hybrid.UnilateralProblem(ball, floor)
    >>> sol = daedal.solve(problem, (0.0, 2.0), ([1.0], [0.0]), rtol=1e-8)
    >>> print(sol.mode[-1], f"{sol.events[-1].t:.6f}")
    floor 1.354571

    A puck is thrown onto rough ice; it bounces once, slides, and comes to rest:

    >>> puck = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -9.81], n_q=2, names=["x", "y"])
    >>> ice = daedal.hybrid.Contact(lambda t, q: q[1], tangent=[1.0, 0.0], mu=0.2, name="ice")
    >>> sol = daedal.solve(daedal.hybrid.UnilateralProblem(puck, ice), (0.0, 3.0), ([0.0, 0.0], [3.0, 0.0]), rtol=1e-8)
    >>> print(sol.mode[0], sol.mode[-1], f"{sol.events[0].t:.6f}")  # v / (mu g)
    ice slips+ ice sticks 1.529052
    """

    system: MechanicalSystem
    contacts: tuple[Contact, ...]
    law: str
    order: str
    rest_speed: float
    touch: float
    creep: float
    modes: ContactModes

    @with_old_keywords(system="problem")
    def __init__(
        self,
        problem: MechanicalSystem,
        contacts: Contact | Callable[..., Any] | Sequence[Contact | Callable[..., Any]],
        *,
        law: str = "newton",
        order: str = "together",
        rest_speed: float = 0.0,
        touch: float = Impact.touch,
        creep: float = 1e-6,
    ):
        system = problem
        _check_system(system)
        checked = checked_contacts(contacts, system.n_q)
        if FREE in [contact.name for contact in checked]:
            raise InvalidProblemError(
                f"contacts: '{FREE}' is the name of the mode without contact; choose another name"
            )
        if law not in LAWS:
            raise InvalidProblemError(f"unknown law {law!r} of impact; known: {', '.join(LAWS)}")
        if order not in ORDERS:
            raise InvalidProblemError(f"unknown order {order!r} of impacts; known: {', '.join(ORDERS)}")
        rest_speed, touch = check_number(rest_speed, "rest_speed"), check_number(touch, "touch")
        creep = check_number(creep, "creep")
        if rest_speed < 0.0 or touch < 0.0 or not creep > 0.0:
            raise InvalidProblemError(
                "rest_speed and touch must not be negative, and creep must be positive, "
                f"got rest_speed={rest_speed!r}, touch={touch!r}, creep={creep!r}"
            )
        for name, value in {
            "system": system,
            "contacts": tuple(checked),
            "law": law,
            "order": order,
            "rest_speed": rest_speed,
            "touch": touch,
            "creep": creep,
            "modes": ContactModes(system, checked, creep),
            "transitions": (),
            "start": None,
            "params": system.params,
        }.items():
            object.__setattr__(self, name, value)

    @property
    def parameter_holder(self) -> MechanicalSystem:
        """The system."""
        return self.system

    def with_params(self, params: Any) -> UnilateralProblem:
        """The same contacts for the system with other parameters."""
        other = self._on(self.system.with_params(params), self.contacts)
        if "whole" in self.__dict__ and not self._holds_parameters:  # machine code supports all parameters
            other.__dict__["whole"] = self.whole.with_params(other.system.params)
        other.__dict__["gap_formulas"] = self.gap_formulas  # the same functions have the same traces
        return other

    def _on(self, system: MechanicalSystem, contacts: Sequence[Contact]) -> UnilateralProblem:
        """The same rules for another system or other contacts."""
        rules = {name: getattr(self, name) for name in ("law", "order", "rest_speed", "touch", "creep")}
        return UnilateralProblem(system, contacts, **rules)

    @property
    def _holds_parameters(self) -> bool:
        """Whether functions of `whole` contain the parameter values, since functions of the system are compiled."""
        own = [function for one in self.contacts for function in (one.gap, one.gradient, *one.tangent)]
        return any(map(is_compiled, [*vars(self.system).values(), *own]))

    def _change_rows(self) -> list[tuple[str, str, str]]:
        return [
            (
                "contact",
                str(one.name),
                f"restitution {one.restitution:g}" + (f", friction {one.mu:g}" if one.mu else ""),
            )
            for one in self.contacts
        ]

    @cached_property
    def whole(self) -> MechanicalSystem:
        """The system with all gaps and slips among its constraints, for guards and impacts."""
        return whole_system(self.system, self.contacts)

    @cached_property
    def gap_formulas(self) -> list[Callable | None]:
        """The guards of open contacts as functions of (t, q, v) and parameters; None for compiled gaps."""
        return [_gap_formula(contact.gap, self.system.params) for contact in self.contacts]

    def corners(self, i: int):
        """The corners of the gap of contact `i`; see :func:`daedal.hybrid.models.contact_equations.corners_of`."""
        return self._corners[i]

    @cached_property
    def _corners(self) -> list:
        return [corners_of(contact, self.system) for contact in self.contacts]

    @property
    def records_idle(self) -> bool:
        """Always False: an impact that changes neither contacts nor velocities is round-off."""
        return False

    @property
    def functions(self):
        """How the functions of the mode without contact are evaluated by default; other modes are similar."""
        return {self.modes.first: self.modes[self.modes.first].problem.functions}

    @property
    def mode_names(self) -> tuple[str, ...]:
        """The mode without contact. Other modes are created when a run reaches them."""
        return (self.modes.first,)

    def watch(self) -> ContactWatch:
        """Monitor of the contacts in a run, or at a point."""
        return ContactWatch(self)

    def transitions_from(self, mode: str) -> list[Transition]:
        """Transitions out of a mode with a guard function."""
        return self.watch().transitions(mode)

    def accumulation_from(self, mode: str) -> Transition | None:
        """The transition that is taken if transitions out of a mode accumulate; None if no contact is open."""
        return self.watch().settling(mode)

    def contact_record(self) -> ContactRecord:
        """Reader of contacts from a solution."""
        return ContactRecord(self)

    def compiled(self) -> UnilateralProblem:
        """The same model with the functions of the system and of the contacts passed through ``numba.njit``."""
        contacts = [
            replace(
                contact,
                gap=compiled_function(contact.gap),
                normal=compiled_function(contact.normal) if callable(contact.normal) else contact.normal,
                gradient=None if contact.gradient is None else compiled_function(contact.gradient),
            )
            for contact in self.contacts
        ]
        system = self.system.compiled("numba")
        return self._on(system, contacts)

    def entry(self, t_span: Sequence[float], initial: Any) -> tuple[str, Any]:
        """(mode, initial values) at the start of a run.

        Parameters
        ----------
        t_span : tuple of float
        initial : tuple
            (q, v), from which the mode is inferred; or (mode, (q, v)).
        """
        if not isinstance(initial, (tuple, list)) or not len(initial) or isinstance(initial[0], str):
            return initial
        y = StateForm(self.system).stack(tuple(initial), "initial: ")[0]
        n = self.system.n_q
        states = self.watch().at_start(float(t_span[0]), y[:n], y[n : 2 * n])
        return self.modes.name(states), tuple(initial)
