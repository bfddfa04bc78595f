"""What a contact did in a run: its gap, its forces, and whether it was open, stuck or slipped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.hybrid.models.contact_modes import OPEN


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

    def __getstate__(self):
        return {"_problem": None}  # functions need not be such that they can be pickled

    def lanes(self, segments: Any) -> dict[str, list[tuple[float, float, str]]]:
        """For each contact (begin, end, state) of the segments in which it is not open; nothing after pickling."""
        if self._problem is None:
            return {}
        states = {segment.mode: self._problem.modes.states(segment.mode) for segment in segments}
        return {
            str(contact.name): [
                (segment.t0, segment.t1, states[segment.mode][i])
                for segment in segments
                if states[segment.mode][i] != OPEN
            ]
            for i, contact in enumerate(self._problem.contacts)
        }

    def history(self, solution: Any, name: str, t: Any = None) -> ContactHistory:
        """The history of a contact, at the output points or at the times `t`."""
        if self._problem is None:
            raise InvalidProblemError("contact: the functions of the gaps are not kept in solutions that were pickled")
        names = [contact.name for contact in self._problem.contacts]
        if name not in names:
            raise InvalidProblemError(f"contact: there is no '{name}'; there are {', '.join(names)}")
        if not solution.segments:
            raise InvalidProblemError("contact needs the solutions of the segments; call solve with dense_output=True")
        reader = _Reader(self._problem, names.index(name))
        if t is None:
            parts = [
                reader.read(segment.mode, values.t[:count], values.q[:, :count], values.v[:, :count])
                for segment, count in zip(solution.segments, solution.counts, strict=True)
                for values in (segment.solution,)
            ]
        else:
            parts = [
                reader.read(segment.mode, times, state.q, state.v) for segment, times, state in solution.by_segment(t)
            ]
        joined = [np.concatenate(values, axis=-1) for values in zip(*parts, strict=True)]
        return ContactHistory(name, *joined)


class _Reader:
    """Reads one contact from the states of a mode."""

    def __init__(self, problem: Any, index: int):
        self.index, self.modes, self.watch = index, problem.modes, problem.watch()

    def read(self, mode: str, times, q, v) -> tuple[np.ndarray, ...]:
        """Times, state, gap, normal force, friction and slip."""
        rules, states = self.watch.rules, self.modes.states(mode)
        own, width = rules.tangents(self.index), max(rules.tangents(self.index).size, 1)
        gap, normal = np.zeros(times.size), np.zeros(times.size)
        friction, slip = np.zeros((width, times.size)), np.zeros((width, times.size))
        for k, t in enumerate(times.tolist()):
            terms = self.watch.system.terms(t, q[:, k].copy(), v[:, k].copy())
            gap[k] = terms.gap[self.index]
            slip[: own.size, k] = terms.slip[own]
            if states[self.index] != OPEN:
                forces = rules.forces(terms, v[:, k], states)
                normal[k] = forces.normal[self.index]
                friction[: own.size, k] = forces.tangential[own]
        words = np.full(times.size, states[self.index], dtype=object)
        return times, words, gap, normal, *((friction[0], slip[0]) if width == 1 else (friction, slip))
