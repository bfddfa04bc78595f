"""What looks after the contacts of a mechanism: when they close, open, stick and slip, and what follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.hybrid.models.contact_corners import AHEAD, BEYOND, along
from daedal.hybrid.models.contact_modes import OPEN, SIDES, STICK, States, slips
from daedal.hybrid.models.contact_rules import AT_REST, ContactRules, Slips
from daedal.hybrid.models.contact_terms import ContactSystem, Terms
from daedal.hybrid.models.impact import ImpactRules, located
from daedal.hybrid.problem import ZENO, Transition

_UNSEEN = 1e-12  # heights of bounces relative to the size of the coordinates that cannot be resolved
_BELOW = 1e-13  # gaps relative to the size of the coordinates, a little more than round-off
_SLOWEST = 10.0  # of the contacts that accumulate, times the slowest one
_PENETRATES = 1e-6  # relative to the size of the coordinates: so far below zero a gap may start
_TOUCHES = 1e-10  # relative to the size of the coordinates: a gap that counts as closed at the start
_STARTS = 1e-8  # rate of a gap relative to its terms that counts as zero at the start
_STOPS = 1e-8  # slips relative to the fastest of the mode that count as zero where another one stops
_JOINED = 1e-6  # or relative to what they were before that one was stopped
_NO_FORCE = 1e-11  # part of the loads: a force that is missing by no more opens no contact, and lets none slip
_TINY = 1e-300

Change = tuple[States, np.ndarray]
"""What the contacts do next, and the velocities."""


class ContactWatch:
    """The guards and the consequences of a mode; it belongs to one mode of one run."""

    def __init__(self, problem: Any):
        self.problem, self.contacts, self.modes = problem, problem.contacts, problem.modes
        self.system = ContactSystem(problem.system, problem.contacts, problem.whole)
        self.rules = ContactRules(problem.contacts)
        self.impact = ImpactRules(problem.contacts, problem.law, problem.order, problem.rest_speed)
        self._last: tuple[Any, Any] = (None, None)
        self._fastest: dict[int, float] = {}  # slips that were seen in the mode, by contact

    # --- guards -----------------------------------------------------------------------------------------------------

    def transitions(self, mode: str) -> list[Transition]:
        """Those out of a mode: impacts and openings first, then slips, then ends of slips."""
        states = self.modes.states(mode)
        any_closed, found = bool(_closed(states).any()), []
        sliding = [str(c.name) for c, state in zip(self.contacts, states, strict=True) if slips(state)]
        if sliding:
            name = f"{' and '.join(sliding)} {'jam' if len(sliding) > 1 else 'jams'}"
            found.append(self._leading(mode, self._guard(states, "margin"), name, self._jam(states)))
        for i, (contact, state) in enumerate(zip(self.contacts, states, strict=True)):
            if state == OPEN:
                found.append(
                    self._leading(mode, self._gap(i, any_closed), f"{contact.name} closes", self._collide(states, i))
                )
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
        self, mode: str, guard: Callable, name: str, follow: Callable[..., Change], immediate=True, direction: int = -1
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

        return Transition(mode, target, guard, direction=direction, reset=reset, name=name, immediate=immediate)

    def _gap(self, i: int, forces: bool) -> Callable:
        """The gap, and a second guard just below zero: a step that ends on the very zero of the first may hide it."""

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
        """The velocity of the slip, to the side on which it is; in space its size."""
        own = self.rules.tangents(i)

        def guard(t, q, v):
            slip = self._terms(t, q, v).slip[own]
            self._fastest[i] = max(self._fastest.get(i, 0.0), float(np.linalg.norm(slip)))
            return float(SIDES[state] * slip[0]) if state in SIDES else float(np.linalg.norm(slip) - self.problem.creep)

        return guard

    def _look(self, states: States, t, q, v) -> dict[str, Any]:
        """The forces of a mode and what is left of them, at a point; asked for by several guards in turn."""
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

    # --- what follows -----------------------------------------------------------------------------------------------

    def _collide(self, states: States, i: int) -> Callable[..., Change]:
        """After the impact by which contact `i` closes."""
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
        """Contacts that come back before they have opened farther than round-off in q: u^2 <= 2 |a| h."""
        height = _UNSEEN * float(np.max(np.abs(q)))
        return (terms.rate > 0.0) & (terms.rate**2 <= -2.0 * height * terms.free_accelerations())

    def _settle(self, t, q, v, resting: np.ndarray, speed: float) -> Change:
        """What contacts do whose gaps are closed and do not change; slips much slower than `speed` are none."""
        if not resting.any():
            return (OPEN,) * resting.size, v
        terms = self.system.terms(t, q, v)
        sliding = self.rules.moving(terms, v, resting, speed)
        return self._go_on(t, q, terms.held(v, resting, self._still(resting, sliding)), resting, sliding)

    def _still(self, closed: np.ndarray, sliding: Slips) -> np.ndarray:
        """The tangents of closed contacts that do not slide."""
        return np.array([closed[i] and i not in sliding for i in self.rules.owner], dtype=bool)

    def _go_on(self, t, q, v, closed: np.ndarray, sliding: Slips) -> Change:
        """What follows for closed contacts, some of which slide; an impact without collision where nothing does."""
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
        """Without the contact that opens, others may open or slip as well."""
        closed = _closed(states)
        closed[i] = False

        def follow(t, q, v) -> Change:
            sliding = self.rules.slipping(self.system.terms(t, q, v), v, states)
            sliding.pop(i, None)
            return self._go_on(t, q, v, closed, sliding)

        return follow

    def _round(self, states: States, i: int) -> Callable[..., Change]:
        """Contact `i` at a corner of its gap: what the gap beyond it says."""
        closed = _closed(states)

        def follow(t, q, v) -> Change:
            there = along(t, q, v, BEYOND)
            terms = self.system.terms(*there, v)
            size = max(float(np.abs(terms.N[i]) @ np.abs(there[1])), float(np.max(np.abs(q))))
            edge = terms.gap[i]
            if edge < -_PENETRATES * size:
                raise InvalidProblemError(
                    f"the gap of contact '{self.contacts[i].name}' jumps to {edge:.3g} at t = {t:g}, where the contact "
                    "is closed: the bodies would overlap. Remedy: state the step as a contact as well, or as a slope"
                )
            rest = AT_REST * float(np.abs(terms.N[i]) @ np.abs(v[: q.size]))
            if edge > _PENETRATES * size or terms.rate[i] > rest:
                return self._open(states, i)(*there, v)
            if terms.rate[i] < -rest:
                found = self._collide(states, i)(*there, v)
                if not _goes_on(self.problem.corners(i), t, q, v, found[1]):
                    raise InvalidProblemError(
                        f"at t = {t:g} the motion ends in a corner of the gap of contact '{self.contacts[i].name}', "
                        "whose two sides hold it together. Remedy: state the sides as contacts of their own"
                    )
                return found
            sliding = self.rules.slipping(terms, v, states)
            return self._go_on(*there, v, closed, sliding)

        return follow

    def _release(self, states: States, i: int) -> Callable[..., Change]:
        """Contact `i` begins to slip against the force that cannot hold it any more."""

        def follow(t, q, v) -> Change:
            terms = self.system.terms(t, q, v)
            force = self.rules.forces(terms, v, states).tangential[self.rules.tangents(i)]
            sliding = self.rules.slipping(terms, v, states)
            sliding[i] = -force / float(np.linalg.norm(force))
            return self._go_on(t, q, v, _closed(states), sliding)

        return follow

    def _stop(self, states: States, i: int) -> Callable[..., Change]:
        """Contact `i` has come to rest: it sticks, or slips to another side."""
        closed = _closed(states)

        def follow(t, q, v) -> Change:
            terms = self.system.terms(t, q, v)
            sliding = self.rules.slipping(terms, v, states)
            held = terms.held(v, closed, self._still(closed, {j: s for j, s in sliding.items() if j != i}))
            slip = terms.at_velocity(held)[1]
            for j in list(sliding):  # others stop with it: what is joined to it by rigid bodies, or by chance
                own = self.rules.tangents(j)
                size = max(_STOPS * self._fastest.get(j, 0.0), _JOINED * float(np.linalg.norm(terms.slip[own])))
                if j == i or np.linalg.norm(slip[own]) <= size:
                    del sliding[j]
            return self._go_on(t, q, terms.held(v, closed, self._still(closed, sliding)), closed, sliding)

        return follow

    def _jam(self, states: States) -> Callable[..., Change]:
        """The force of a contact that slides grows without limit: it opens, or stops at once (Painleve)."""
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
        """The transition at a point of accumulation."""
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

    # --- the start --------------------------------------------------------------------------------------------------

    def at_start(self, t: float, q: np.ndarray, v: np.ndarray) -> States:
        """What the contacts do at the start of a run; those whose gaps are zero and close are hit at once."""
        terms, q, v = self.system.terms(t, q, v), self.system.extended(q), self.system.extended(v)
        length = float(np.max(np.abs(q), initial=0.0)) or 1.0
        scale = np.maximum(np.abs(terms.N) @ np.abs(q), length * np.linalg.norm(terms.N, axis=1))
        deep = np.flatnonzero(terms.gap < -_PENETRATES * scale)
        if deep.size:
            words = ", ".join(f"'{self.contacts[i].name}' by {-terms.gap[i]:.3g}" for i in deep)
            raise InconsistentInitialError(f"initial: gaps are negative: {words}. Remedy: begin with q outside")
        terms_of_rate = np.abs(terms.N) @ np.abs(v) + np.abs(terms.rate - terms.N @ v)
        resting = (np.abs(terms.gap) <= _TOUCHES * scale) & (np.abs(terms.rate) <= _STARTS * terms_of_rate)
        if not resting.any():
            return (OPEN,) * resting.size
        sliding = self.rules.moving(terms, v, resting)
        states = self.rules.follow(terms, resting, sliding)
        return self.rules.states(resting, sliding) if states is None else states


def _at_corners(corners: Callable) -> Callable:
    """A guard that fires just before a corner, as the state at the corner may belong to its other side."""

    def guard(t, q, v):
        return corners(*along(t, q, v, AHEAD))

    return guard


def _goes_on(corners: Callable, t: float, q: np.ndarray, v: np.ndarray, after: np.ndarray) -> bool:
    """Whether the corner that is ahead is passed with the velocities after an impact, too."""
    here, ahead = corners(t, q), corners(*along(t, q, v, BEYOND))
    passed = np.sign(here) != np.sign(ahead)
    speed = float(np.max(np.abs(v))) / max(float(np.max(np.abs(after))), _TINY)
    then = corners(*along(t, q, after, BEYOND / speed)) if speed < 1.0 / _STOPS else here
    return bool(np.all((then - here)[passed] * (ahead - here)[passed] > 0.0))


def _closed(states: States) -> np.ndarray:
    return np.array([state != OPEN for state in states])


def _without_noise(values: np.ndarray, size: float) -> np.ndarray:
    """Values that are zero up to round-off as one and the same positive number, so that guards do not chase noise."""
    return np.where(np.abs(values) <= size, max(size, _TINY), values)
