"""Modes of a mechanism with contacts, created on demand, and the history of contacts in a run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.hybrid.hybrid_problem import Mode
from daedal.hybrid.models.contact_equations import Contact, Slip, closed, sliding, sticking, tangents_of
from daedal.problems import MechanicalSystem

FREE = "free"
OPEN, CLOSED, STICK, SLIP, SLIP_PLUS, SLIP_MINUS = "open", "closed", "stick", "slip", "slip+", "slip-"
SIDES = {SLIP_PLUS: 1, SLIP_MINUS: -1}
_WORDS = {CLOSED: "", STICK: " sticks", SLIP: " slips", SLIP_PLUS: " slips+", SLIP_MINUS: " slips-"}

States = tuple[str, ...]
"""State of each contact."""


def slips(state: str) -> bool:
    """Whether a contact slides."""
    return state in (SLIP, SLIP_PLUS, SLIP_MINUS)


class ContactModes(Mapping[str, Mode]):
    """The modes by name, of which there may be thousands: each is created on first use, and cached.

    A mode has the name "free", or a name composed of its closed contacts: "floor" without friction, "floor sticks",
    "floor slips+", "floor slips-" (in space "floor slips"), joined by " + ".
    """

    def __init__(self, system: MechanicalSystem, contacts: Sequence[Contact], creep: float):
        self._system, self._contacts, self._creep = system, contacts, creep
        self._choices = [_choices(contact) for contact in contacts]
        self._made: dict[str, Mode] = {}

    def name(self, states: States) -> str:
        """Name of the mode with these contact states."""
        pairs = zip(self._contacts, states, strict=True)
        return " + ".join(f"{contact.name}{_WORDS[state]}" for contact, state in pairs if state != OPEN) or FREE

    def states(self, name: str) -> States:
        """State of each contact in a mode."""
        free = name == FREE and name == self.first
        found = (OPEN,) * len(self._contacts) if free else self._read(name, 0)
        if found is None:
            raise KeyError(name)
        return found

    def _read(self, rest: str, i: int) -> States | None:
        if i == len(self._contacts):
            return None if rest else ()
        for state in self._choices[i]:
            if state == OPEN:
                found = self._read(rest, i + 1) if rest or i else None
            else:
                label = f"{self._contacts[i].name}{_WORDS[state]}"
                if not rest.startswith(label):
                    continue
                others = rest[len(label) :]
                if others and not others.startswith(" + "):
                    continue
                found = self._read(others[3:], i + 1)
            if found is not None:
                return (state, *found)
        return None

    def __getitem__(self, name: str) -> Mode:
        if name not in self._made:
            self._made[name] = Mode(self._equations(self.states(name)))
        return self._made[name]

    def _equations(self, states: States) -> MechanicalSystem:
        system, contacts = self._system, self._contacts
        touching = [i for i, state in enumerate(states) if state != OPEN]
        chosen = [i for i in touching if not contacts[i].is_pressed]  # contacts whose gaps are constraints
        rows = {i: system.n_constraints + k for k, i in enumerate(chosen)}
        tangents = {i: tangents_of(contacts[i], system.params) for i in touching}
        held = [tangent for i in touching if states[i] == STICK for tangent in tangents[i]]
        moving = [
            Slip(
                tuple(tangents[i]),
                contacts[i].mu,
                rows.get(i, -1),
                SIDES.get(states[i], 0),
                self._creep,
                contacts[i].pressure if contacts[i].is_pressed else None,
            )
            for i in touching
            if slips(states[i]) and contacts[i].mu > 0.0
        ]
        return sliding(sticking(closed(system, chosen, contacts), held), moving)

    @property
    def first(self) -> str:
        """The mode in which all contacts are open, except those that cannot open, which stick."""
        return self.name(tuple(choices[0] for choices in self._choices))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and ((name == FREE == self.first) or self._read(name, 0) is not None)

    def __iter__(self) -> Iterator[str]:
        return (self.name(states) for states in itertools.product(*self._choices))

    def __len__(self) -> int:
        count = 1
        for choices in self._choices:
            count *= len(choices)
        return count

    def __getstate__(self):
        return {**self.__dict__, "_made": {}}


def _choices(contact: Contact) -> tuple[str, ...]:
    if contact.is_pressed:
        return (STICK, SLIP_PLUS, SLIP_MINUS) if len(contact.tangent) == 1 else (STICK, SLIP)
    if not contact.is_rough:
        return OPEN, CLOSED
    return (OPEN, STICK, SLIP_PLUS, SLIP_MINUS) if len(contact.tangent) == 1 else (OPEN, STICK, SLIP)


# --- history of a contact: gap, forces, and whether it was open, stuck or slipping ------------------------------------


_NEEDS_SEGMENTS = "contact needs the solutions of the segments; call solve with dense_output=True"


@dataclass(frozen=True)
class ContactHistory:
    """A contact over time; see :meth:`HybridSolution.contact`.

    Attributes
    ----------
    name : str
    t : numpy.ndarray, shape (nt,)
        The times.
    state : numpy.ndarray of str, shape (nt,)
        "open", "closed" (without friction), "stick", "slip+", "slip-", or "slip" in space.
    gap : numpy.ndarray, shape (nt,)
    normal : numpy.ndarray, shape (nt,)
        The normal force, zero while the contact is open. Dependent contacts share the load with least norm, if
        the laws allow that.
    friction : numpy.ndarray, shape (nt,), or (2, nt) in space
        The force of friction along the tangent; zero without friction.
    slip : numpy.ndarray, of the shape of `friction`
        The velocity of the slip.
    """

    name: str
    t: np.ndarray
    state: np.ndarray = field(repr=False)
    gap: np.ndarray = field(repr=False)
    normal: np.ndarray = field(repr=False)
    friction: np.ndarray = field(repr=False)
    slip: np.ndarray = field(repr=False)

    def intervals(self) -> list[tuple[float, float, str]]:
        """(begin, end, state) of the intervals between output times in which the state is constant."""
        changes = np.flatnonzero(self.state[1:] != self.state[:-1]) + 1
        begins, ends = [0, *changes.tolist()], [*changes.tolist(), self.t.size - 1]
        pairs = zip(begins, ends, strict=True) if self.t.size else ()
        return [(float(self.t[a]), float(self.t[b]), str(self.state[a])) for a, b in pairs]


class ContactRecord:
    """Data from which contacts are evaluated for a solution: their functions and the indices of their multipliers."""

    def __init__(self, problem: Any):
        self._problem = problem
        self._names = tuple(str(contact.name) for contact in problem.contacts)

    def lanes(self, segments: Any) -> dict[str, list[tuple[float, float, str]]]:
        """For each contact (begin, end, state) of the segments in which it is not open."""
        return _lanes(segments, self._names, self._states(segments))

    def _states(self, segments: Any) -> dict[str, tuple[str, ...]]:
        return {segment.mode: tuple(self._problem.modes.states(segment.mode)) for segment in segments}

    def history(self, solution: Any, name: str, t: Any = None) -> ContactHistory:
        """History of a contact, at the output points or at the times `t`."""
        i = _found(name, self._names)
        return self._read(solution, t).history(solution, name, i, self._states(solution.segments), t)

    def stored(self, solution: Any) -> StoredContacts:
        """The contacts at the output points, without functions."""
        readings = self._read(solution, None) if solution.segments else None
        return StoredContacts(self._names, self._states(solution.segments), readings)

    def _read(self, solution: Any, t: Any) -> Readings:
        if not solution.segments:
            raise InvalidProblemError(_NEEDS_SEGMENTS)
        watch, modes = self._problem.watch(), self._problem.modes
        count = solution.t.size if t is None else np.size(t)
        found = Readings.empty([max(watch.rules.tangents(i).size, 1) for i in range(len(self._names))], count)
        for segment, here, times, q, v, _ in solution.each_segment(t):
            states, places = modes.states(segment.mode), np.arange(count)[here]
            for k, time, position, velocity in zip(places.tolist(), times.tolist(), q.T, v.T):
                found.read(k, watch, time, position.copy(), velocity.copy(), states)
        return found


@dataclass(frozen=True)
class Readings:
    """Gaps, forces and slips of all contacts at some times, in columns."""

    gap: np.ndarray
    normal: np.ndarray
    friction: list[np.ndarray]
    slip: list[np.ndarray]

    @classmethod
    def empty(cls, widths: list[int], count: int) -> Readings:
        """Arrays of zeros for contacts with the given numbers of tangents."""
        gap, normal = np.zeros((2, len(widths), count))
        return cls(gap, normal, [np.zeros((w, count)) for w in widths], [np.zeros((w, count)) for w in widths])

    def read(self, k: int, watch: Any, t: float, q, v, states) -> None:
        """Fill column k."""
        rules = watch.rules
        terms = watch.system.terms(t, q, v)
        self.gap[:, k] = terms.gap
        forces = (
            rules.forces(terms, watch.system.extended(v), states) if any(state != OPEN for state in states) else None
        )
        for i, state in enumerate(states):
            own = rules.tangents(i)
            self.slip[i][: own.size, k] = terms.slip[own]
            if state != OPEN and forces is not None:
                self.normal[i, k] = forces.normal[i]
                self.friction[i][: own.size, k] = forces.tangential[own]

    def history(self, solution: Any, name: str, i: int, states: dict[str, Any], t: Any = None) -> ContactHistory:
        """History of one contact; `states` gives its state in each mode."""
        times = solution.t if t is None else np.atleast_1d(np.asarray(t, dtype=float))
        modes = solution.mode if t is None else solution.mode_at(times)
        words = np.array([states[mode][i] for mode in modes], dtype=object)
        friction, slip = (part[i][0] if len(part[i]) == 1 else part[i] for part in (self.friction, self.slip))
        return ContactHistory(name, times, words, self.gap[i], self.normal[i], friction, slip)


@dataclass(frozen=True)
class StoredContacts:
    """Contacts without the functions of their gaps, for files and pickles."""

    names: tuple[str, ...]
    states: dict[str, tuple[str, ...]]
    readings: Readings | None

    def lanes(self, segments: Any) -> dict[str, list[tuple[float, float, str]]]:
        """For each contact (begin, end, state) of the segments in which it is not open."""
        return _lanes(segments, self.names, self.states)

    def history(self, solution: Any, name: str, t: Any = None) -> ContactHistory:
        """History of a contact at the output points."""
        i = _found(name, self.names)
        if self.readings is None:
            raise InvalidProblemError(_NEEDS_SEGMENTS)
        if t is not None:
            raise InvalidProblemError(
                "contact: in a saved or pickled solution contacts are known only at the output points; omit t, or "
                "solve with these times in t_eval"
            )
        return self.readings.history(solution, name, i, self.states)

    def stored(self, solution: Any) -> StoredContacts:
        """Return self."""
        return self


def _found(name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise unknown_name(name, names, "contact")
    return names.index(name)


def _lanes(segments: Any, names: tuple[str, ...], states: dict[str, tuple[str, ...]]):
    return {
        name: [(one.t0, one.t1, states[one.mode][i]) for one in segments if states[one.mode][i] != OPEN]
        for i, name in enumerate(names)
    }
