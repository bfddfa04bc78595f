"""What a contact did in a run: its gap, its forces, and whether it was open, stuck or slipped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.hybrid.models.contact_equations import Tangent, tangents_of
from daedal.hybrid.models.contact_modes import OPEN, SIDES, STICK, States, slips
from daedal.hybrid.state_form import positional_names
from daedal.kernels.functions import is_compiled, parameter_vector


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
        The normal force, zero while the contact is open. Contacts that depend on each other share it as the multipliers
        of the mode do.
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
                reader.read(
                    segment.mode, values.t[:count], values.q[:, :count], values.v[:, :count], values.lam[:, :count]
                )
                for segment, count in zip(solution.segments, solution.counts, strict=True)
                for values in (segment.solution,)
            ]
        else:
            parts = [
                reader.read(segment.mode, times, state.q, state.v, state.lam)
                for segment, times, state in solution.by_segment(t)
            ]
        joined = [np.concatenate(values, axis=-1) for values in zip(*parts, strict=True)]
        return ContactHistory(name, *joined)


class _Reader:
    """Reads one contact from the states of a mode."""

    def __init__(self, problem: Any, index: int):
        self.problem, self.index, self.contact = problem, index, problem.contacts[index]
        self.tangents: list[Tangent] = tangents_of(self.contact, problem.system.params)
        params = problem.system.params
        takes = params is not None and len(positional_names(self.contact.gap) or ()) > 2
        p = parameter_vector(params) if takes and is_compiled(self.contact.gap) else params
        self._params = () if params is None else (params,)
        self._gap = (lambda t, q: self.contact.gap(t, q, p)) if takes else self.contact.gap

    def read(self, mode: str, times, q, v, lam) -> tuple[np.ndarray, ...]:
        """Times, state, gap, normal force, friction and slip."""
        states: States = self.problem.modes.states(mode)
        own, count, width = states[self.index], times.size, max(len(self.tangents), 1)
        gap = np.array([float(self._gap(t, x)) for t, x in zip(times.tolist(), q.T, strict=True)])
        slip = np.array(
            [
                [float(e.rate(t, x, u, *self._params)) for t, x, u in zip(times, q.T, v.T, strict=True)]
                for e in self.tangents
            ]
        ).reshape(len(self.tangents), count)
        normal, friction = np.zeros(count), np.zeros((width, count))
        if own != OPEN:
            normal = -lam[self._row(states)]
        if own == STICK:
            first = self._friction_row(states)
            friction = -lam[first : first + len(self.tangents)]
        elif slips(own):
            side = np.full((1, count), float(SIDES[own])) if own in SIDES else slip / np.linalg.norm(slip, axis=0)
            friction = -self.contact.mu * normal * side
        slip = slip if self.tangents else np.zeros((1, count))
        words = np.full(count, own, dtype=object)
        flat = width == 1
        return times, words, gap, normal, friction[0] if flat else friction, slip[0] if flat else slip

    def _row(self, states: States) -> int:
        return self.problem.system.n_constraints + sum(state != OPEN for state in states[: self.index])

    def _friction_row(self, states: States) -> int:
        system, contacts = self.problem.system, self.problem.contacts
        before = sum(len(contacts[i].tangent) for i in range(self.index) if states[i] == STICK)
        closed = sum(state != OPEN for state in states)
        return system.n_constraints + closed + system.n_velocity_constraints + before
