"""Which contacts stay closed, stick and slip: complementarity on the level of accelerations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from daedal.common.messages import warn
from daedal.errors import DaedalError
from daedal.hybrid.models.complementarity import FrictionProblem, least_impulses
from daedal.hybrid.models.contact import Contact
from daedal.hybrid.models.contact_modes import CLOSED, OPEN, SIDES, SLIP, SLIP_MINUS, SLIP_PLUS, STICK, States
from daedal.hybrid.models.contact_terms import Terms, owners
from daedal.hybrid.models.friction import NonUniqueWarning

AT_REST = 1e-9  # relative rate of a gap, or its second derivative, that counts as zero
_HELD = 1e-9  # share of the largest force that is left where dependent contacts can just share the load
_CONE = 1e-6  # relative violation of the cone of friction that an impact without collision may show
_DEPENDENT = 1e-9

Slips = dict[int, np.ndarray]
"""The unit vectors, along the tangents, of the contacts that slide."""


@dataclass(frozen=True)
class Forces:
    """The forces of the contacts in a mode.

    Attributes
    ----------
    normal, tangential : numpy.ndarray
        Of all contacts, and along all tangents.
    margin : float
        How far it is to Painleve's paradox: 1 without friction, 0 where forces grow without limit.
    size : float
        That of the loads; forces that are much smaller are round-off.
    """

    normal: np.ndarray
    tangential: np.ndarray
    margin: float = 1.0
    size: float = 0.0


class ContactRules:
    """The laws of contact and friction, for forces and accelerations."""

    def __init__(self, contacts: Sequence[Contact]):
        self.contacts = contacts
        self.mu = np.array([contact.mu for contact in contacts])
        self.mu_static = np.array([float(contact.mu_static or 0.0) for contact in contacts])
        self.owner = np.array(owners(contacts), dtype=np.int64)
        self.pressed = np.array([contact.is_pressed for contact in contacts])  # and so never open

    def tangents(self, i: int) -> np.ndarray:
        """The numbers of the tangents of a contact."""
        return np.flatnonzero(self.owner == i)

    def slipping(self, terms: Terms, v: np.ndarray, states: States) -> Slips:
        """The directions of the slips of a mode."""
        slip = terms.at_velocity(v)[1]
        found = {}
        for i, state in enumerate(states):
            if state in SIDES:
                found[i] = np.array([float(SIDES[state])])
            elif state == SLIP:
                found[i] = _unit(slip[self.tangents(i)])
        return found

    def moving(self, terms: Terms, v: np.ndarray, closed: np.ndarray, size: float = 0.0) -> Slips:
        """The directions of the slips of closed contacts that are not at rest."""
        slip, found = terms.at_velocity(v)[1], {}
        for i in np.flatnonzero(closed).tolist():
            own = self.tangents(i)
            scale = max(float(np.max(np.abs(terms.T[own]) @ np.abs(v), initial=0.0)), size)
            if own.size and np.linalg.norm(slip[own]) > AT_REST * scale:
                found[i] = _unit(slip[own])
        return found

    # --- forces of a mode -------------------------------------------------------------------------------------------

    def forces(self, terms: Terms, v: np.ndarray, states: States) -> Forces:
        """The forces with which a mode goes on; dependent contacts share them with the least norm, or as they can."""
        closed = np.array([state != OPEN for state in states])
        held = np.array([states[i] == STICK for i in self.owner], dtype=bool)
        sliding = self.slipping(terms, v, states)
        problem = _Closed(self, terms, closed, held, sliding)
        x, rank = problem.balanced()
        normal, tangential = problem.spread(x)
        if rank < x.size and self._violated(normal, tangential, held):
            shared = problem.shared(self.mu_static)
            if shared is not None:
                normal, tangential = problem.spread(shared)
                return self._kept(Forces(normal, tangential, 1.0, problem.load()), closed, held)
        return Forces(normal, tangential, problem.margin() if rank == x.size else 1.0, problem.load())

    def reserves(self, forces: Forces) -> np.ndarray:
        """By how much friction may grow: mu_static P - |Q|, of all contacts."""
        size = np.array([np.linalg.norm(forces.tangential[self.tangents(i)]) for i in range(self.mu.size)])
        return self.mu_static * forces.normal - size

    def _violated(self, normal: np.ndarray, tangential: np.ndarray, held: np.ndarray) -> bool:
        reserve = self.reserves(Forces(normal, tangential))
        return bool(normal.min() < 0.0 or np.min(reserve[self.owner[held]], initial=0.0) < 0.0)

    def _kept(self, forces: Forces, closed: np.ndarray, held: np.ndarray) -> Forces:
        """Forces of contacts that can just bear the load: none of them is at its limit."""
        size = _HELD * float(np.max(np.abs(forces.normal), initial=0.0))
        normal = np.where(closed, np.maximum(forces.normal, size), 0.0)
        tangential = forces.tangential.copy()
        for i in np.unique(self.owner[held]):
            own = self.tangents(i)
            most, length = self.mu_static[i] * normal[i] * (1.0 - _HELD), float(np.linalg.norm(tangential[own]))
            if length > most:
                tangential[own] *= most / length
        return replace(forces, normal=normal, tangential=tangential)

    # --- what follows -----------------------------------------------------------------------------------------------

    def follow(self, terms: Terms, closed: np.ndarray, sliding: Slips) -> States | None:
        """What contacts do that are closed and do not move apart; None where no motion agrees with Coulomb's law.

        Contacts of `sliding` slip in a known direction, the other ones are at rest. Of these, some may begin to slip;
        then the coefficient of sliding friction holds for them.
        """
        sliding = dict(sliding)
        while True:
            held = np.array([closed[i] and i not in sliding for i in self.owner], dtype=bool)
            problem = _Closed(self, terms, closed, held, sliding)
            x = problem.complementary(self.mu_static)
            if x is None:
                return None
            normal, tangential = problem.accelerations(x)
            size = AT_REST * problem.size
            stays = (closed & (normal <= size)) | self.pressed
            begins = {
                int(i): _unit(tangential[self.tangents(i)])
                for i in np.unique(self.owner[held])
                if stays[i] and np.linalg.norm(tangential[self.tangents(i)]) > size
            }
            states = self.states(stays, {**sliding, **begins})
            weaker = {i: s for i, s in begins.items() if self.mu[i] < self.mu_static[i]}
            if not weaker:
                self._look_for_others(problem, sliding, stays)
                return states
            sliding |= weaker

    def states(self, stays: np.ndarray, sliding: Slips) -> States:
        """In words: contacts that are closed, and which of them slide."""
        found = []
        for i, contact in enumerate(self.contacts):
            if not stays[i]:
                found.append(OPEN)
            elif not contact.is_rough:
                found.append(CLOSED)
            elif i not in sliding:
                found.append(STICK)
            elif len(contact.tangent) == 2:
                found.append(SLIP)
            else:
                found.append(SLIP_PLUS if sliding[i][0] > 0.0 else SLIP_MINUS)
        return tuple(found)

    def _look_for_others(self, problem: _Closed, sliding: Slips, stays: np.ndarray):
        """Warn where a contact that opens could as well slip on with a large force (Painleve)."""
        for k, i in enumerate(problem.contacts.tolist()):
            if i in sliding and not stays[i] and problem.B[k, k] < 0.0:
                warn(
                    f"contact '{self.contacts[i].name}' can open, or slip on with a force that grows with friction "
                    "(Painleve's paradox: the equations allow several motions). It opens here",
                    NonUniqueWarning,
                )

    def jammed(self, terms: Terms, v: np.ndarray, closed: np.ndarray, sliding: Slips, t: float) -> np.ndarray:
        """The velocities after an impact without collision, by which slips end that have no solution (Painleve).

        The normal impulse and that of friction grow together until the contact sticks; it takes
        :math:`|Q| \\le \\mu P`.
        """
        held = np.array([closed[i] and i not in sliding for i in self.owner], dtype=bool)
        problem = _Closed(self, terms, closed, held, sliding)
        stuck = [i for k, i in enumerate(problem.contacts.tolist()) if i in sliding and problem.B[k, k] <= 0.0] or list(
            sliding
        )
        rows = np.flatnonzero(held | np.isin(self.owner, stuck))
        contacts = np.flatnonzero(closed)
        W = np.vstack([terms.N[contacts], terms.T[rows]])
        X = terms.answer(W)
        x = -least_impulses(W @ X, terms.rates(v, contacts, rows))
        normal, tangential = np.zeros(self.mu.size), np.zeros(self.owner.size)
        normal[contacts], tangential[rows] = x[: contacts.size], x[contacts.size :]
        friction = np.array([np.linalg.norm(tangential[self.tangents(i)]) for i in range(self.mu.size)])
        wrong = np.maximum(-normal, friction - self.mu_static * normal)
        if not stuck or wrong.max() > _CONE * float(np.max(np.abs(x), initial=0.0)):
            names = ", ".join(f"'{self.contacts[i].name}'" for i in sliding) or "the contacts"
            raise DaedalError(
                f"at t = {t:.10g} no motion agrees with Coulomb's law, and no impact without collision that stops the "
                f"slip of {names} either (Painleve's paradox). Remedy: some compliance in the contact, or a smaller mu"
            )
        return v + X @ x


class _Closed:
    """The equations of closed contacts: accelerations of gaps and of slips that are held, B x + b, x their forces.

    A contact that slides has the force of friction with its normal force: its column is that of N - mu s T.
    """

    def __init__(self, rules: ContactRules, terms: Terms, closed: np.ndarray, held: np.ndarray, sliding: Slips):
        self.rules, self.terms, self.sliding = rules, terms, sliding
        self.contacts, self.rows = np.flatnonzero(closed), np.flatnonzero(held)
        R = np.vstack([terms.N[self.contacts], terms.T[self.rows]])
        self.R, C = R, R.copy()
        for k, i in enumerate(self.contacts.tolist()):
            if i in sliding:
                C[k] -= rules.mu[i] * (sliding[i] @ terms.T[rules.tangents(i)])
        X = terms.answer(C)
        self.C, self.B = C, R @ X
        bias = np.concatenate([terms.bias[self.contacts], terms.slip_bias[self.rows]])
        self.b = R @ terms.free() + bias
        typical = np.abs(terms.force) @ np.abs(X) if R.size else np.zeros(0)
        # Open contacts count too: bodies that hang at rest beside others that move have no scale of their own.
        everywhere = np.abs(terms.N) @ np.abs(terms.free()) + np.abs(terms.bias)
        sizes = np.concatenate([typical, np.abs(bias), everywhere])
        self.size = float(np.max(sizes, initial=0.0))

    def balanced(self) -> tuple[np.ndarray, int]:
        """Forces with which all accelerations vanish, of least norm in units of the compliance; and their rank."""
        if not self.b.size:
            return np.zeros(0), 0
        symmetric = self.R @ self.terms.answer(self.R)
        diagonal = np.diag(symmetric)
        unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        self._symmetric = unit[:, None] * symmetric * unit
        self._scaled = unit[:, None] * self.B * unit
        x, _, rank, _ = np.linalg.lstsq(self._scaled, -unit * self.b, rcond=_DEPENDENT)
        if rank < x.size:  # the same rows of the symmetric matrix tell whether the contacts depend on each other
            rank = min(rank, int(np.linalg.matrix_rank(self._symmetric, rtol=_DEPENDENT)))
        return unit * x, int(rank)

    def load(self) -> float:
        """The size of the forces that the loads could cause."""
        diagonal = np.abs(np.diag(self.B))
        least = float(np.min(diagonal[diagonal > 0.0], initial=np.inf))
        return self.size / least if least > 0.0 else 0.0

    def margin(self) -> float:
        """det B / det of the same without friction: 1, and zero where the slip jams."""
        if not self.sliding or not self.b.size:
            return 1.0
        return float(np.linalg.det(self._scaled) / np.linalg.det(self._symmetric))

    def complementary(self, mu: np.ndarray) -> np.ndarray | None:
        """Forces by the laws of contact and friction, or None."""
        if not self.b.size:
            return np.zeros(0)
        owner = tuple(np.searchsorted(self.contacts, self.rules.owner[self.rows]).tolist())
        return FrictionProblem(self.B, self.b, self.contacts.size, owner, mu[self.contacts]).solve()

    def shared(self, mu: np.ndarray) -> np.ndarray | None:
        """Forces by which dependent contacts bear the load at rest, or None if they cannot."""
        x = self.complementary(mu)
        if x is None or np.max(np.abs(self.B @ x + self.b), initial=0.0) > AT_REST * self.size:
            return None
        return x

    def accelerations(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Second derivatives of all gaps (zero where they are open) and slips that are held."""
        return self._of_all(self.B @ x + self.b)

    def _of_all(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        normal, tangential = np.zeros(self.rules.mu.size), np.zeros(self.rules.owner.size)
        normal[self.contacts], tangential[self.rows] = values[: self.contacts.size], values[self.contacts.size :]
        return normal, tangential

    def spread(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The forces of all contacts, friction of those that slide among them."""
        normal, tangential = self._of_all(x)
        for i, s in self.sliding.items():
            tangential[self.rules.tangents(i)] = -self.rules.mu[i] * normal[i] * s
        return normal, tangential


def _unit(vector: np.ndarray) -> np.ndarray:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0.0 else vector
