"""What a contact did in a run: its gap, its forces, and whether it was open, stuck or slipped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError
from daedal.hybrid.models.contact_modes import OPEN

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
        The normal force, zero while the contact is open. Contacts that depend on each other share it with the least
        norm, or as they can where that is not allowed.
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
        """(begin, end, state) of the stretches over which the state lasts, as far as the times tell."""
        changes = np.flatnonzero(self.state[1:] != self.state[:-1]) + 1
        begins, ends = [0, *changes.tolist()], [*changes.tolist(), self.t.size - 1]
        pairs = zip(begins, ends, strict=True) if self.t.size else ()
        return [(float(self.t[a]), float(self.t[b]), str(self.state[a])) for a, b in pairs]


class ContactRecord:
    """What is needed to read contacts from a solution: their functions, and where their multipliers stand."""

    def __init__(self, problem: Any):
        self._problem = problem
        self._names = tuple(str(contact.name) for contact in problem.contacts)

    def lanes(self, segments: Any) -> dict[str, list[tuple[float, float, str]]]:
        """For each contact (begin, end, state) of the segments in which it is not open."""
        return _lanes(segments, self._names, self._states(segments))

    def _states(self, segments: Any) -> dict[str, tuple[str, ...]]:
        return {segment.mode: tuple(self._problem.modes.states(segment.mode)) for segment in segments}

    def history(self, solution: Any, name: str, t: Any = None) -> ContactHistory:
        """The history of a contact, at the output points or at the times `t`."""
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
        """Zeros, for contacts with so many tangents each."""
        gap, normal = np.zeros((2, len(widths), count))
        return cls(gap, normal, [np.zeros((w, count)) for w in widths], [np.zeros((w, count)) for w in widths])

    def read(self, k: int, watch: Any, t: float, q, v, states) -> None:
        """Fill in column k."""
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
        """One contact of them; `states` has what it does in each mode."""
        times = solution.t if t is None else np.atleast_1d(np.asarray(t, dtype=float))
        modes = solution.mode if t is None else solution.mode_at(times)
        words = np.array([states[mode][i] for mode in modes], dtype=object)
        friction, slip = (part[i][0] if len(part[i]) == 1 else part[i] for part in (self.friction, self.slip))
        return ContactHistory(name, times, words, self.gap[i], self.normal[i], friction, slip)


@dataclass(frozen=True)
class StoredContacts:
    """What is kept of contacts where the functions of their gaps are not: in files, and by pickle."""

    names: tuple[str, ...]
    states: dict[str, tuple[str, ...]]
    readings: Readings | None

    def lanes(self, segments: Any) -> dict[str, list[tuple[float, float, str]]]:
        """For each contact (begin, end, state) of the segments in which it is not open."""
        return _lanes(segments, self.names, self.states)

    def history(self, solution: Any, name: str, t: Any = None) -> ContactHistory:
        """The history of a contact at the output points."""
        i = _found(name, self.names)
        if self.readings is None:
            raise InvalidProblemError(_NEEDS_SEGMENTS)
        if t is not None:
            raise InvalidProblemError(
                "contact: in a solution that was saved or pickled contacts are known at the output points only; leave "
                "t out, or solve with these times in t_eval"
            )
        return self.readings.history(solution, name, i, self.states)

    def stored(self, solution: Any) -> StoredContacts:
        """Itself."""
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
