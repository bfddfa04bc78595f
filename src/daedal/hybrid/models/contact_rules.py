"""Rules for closed contacts, stick and slip, from the equations at a point: complementarity of accelerations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.messages import warn
from daedal.errors import DaedalError, InvalidProblemError, NonUniqueWarning
from daedal.hybrid.models.complementarity import FrictionProblem, least_impulses
from daedal.hybrid.models.contact_equations import Contact, closed, sticking, tangents_of
from daedal.hybrid.models.contact_modes import CLOSED, OPEN, SIDES, SLIP, SLIP_MINUS, SLIP_PLUS, STICK, States
from daedal.mechanics.system_workspace import SystemWorkspace
from daedal.problems import MechanicalSystem

_NO_SIZE = 1e-6  # positions smaller than this, relative to the velocities, provide no scale
_OUTGROWN = 1e4  # factor by which coordinates may grow before difference increments are chosen again
_DEPENDENT = 1e-9  # relative size below which singular values count as zero: gradients by differences are not exact

Pressed = dict[int, tuple[float, int]]
"""The known normal force of each contact, and the index of its first tangent."""


class Terms:
    """Mass, force, constraints and contacts at a point, and the response to impulses.

    Attributes
    ----------
    N, T : numpy.ndarray
        The gradients of the gaps, and the tangents.
    gap, rate, slip : numpy.ndarray
        The gaps, their rates, and the velocities along the tangents.
    bias, slip_bias : numpy.ndarray
        The second derivatives of the gaps are N a + bias, those of the slips T a + slip_bias.
    """

    def __init__(
        self, values: dict[str, np.ndarray], v: np.ndarray, n_g: int, count: int, tangents: int, pressed: Pressed
    ):
        jacobian, level, bias = values["jacobian"], values["level"], values["bias"]
        total = jacobian.shape[0]
        contact, tangent = slice(n_g, n_g + count), slice(total - tangents, total)
        other = [*range(n_g), *range(n_g + count, total - tangents)]
        self.mass, self.force = values["mass"], values["force"]
        self.N, self.gap, self.rate, self.bias = jacobian[contact], level[0, contact], level[1, contact], bias[contact]
        self.T, self.slip, self.slip_bias = jacobian[tangent], level[1, tangent], bias[tangent]
        self.K, self.defect, self.constraint_bias = jacobian[other], level[1, other], bias[other]
        self._v = v
        self.found: dict[str, Any] = {}  # cache of derived quantities
        if pressed:
            self._press(pressed)

    def _press(self, pressed: Pressed):
        """Add a coordinate for each contact with a known normal force: a block pressed onto a floor.

        The gap of such a contact is zero, the force of the floor is the known force, and impulses of other contacts do
        not affect the block; Coulomb's law then applies to all contacts in the same form. The mass of the block is the
        effective mass along the tangent, so that accelerations are comparable.
        """
        n, k, count = self.mass.shape[0], len(pressed), len(pressed) + self.N.shape[0]
        masses = np.eye(n + k)
        masses[:n, :n] = self.mass
        N, gap, rate, bias = np.zeros((count, n + k)), np.zeros(count), np.zeros(count), np.zeros(count)
        open_or_not = [i for i in range(count) if i not in pressed]
        N[open_or_not, :n], gap[open_or_not] = self.N, self.gap
        rate[open_or_not], bias[open_or_not] = self.rate, self.bias
        for j, (i, (_, tangent)) in enumerate(pressed.items()):
            e = self.T[tangent]
            masses[n + j, n + j] = float(e @ self.mass @ e) / float(e @ e) ** 2
            N[i, n + j] = 1.0
        self.mass, self.N, self.gap, self.rate, self.bias = masses, N, gap, rate, bias
        self.force = np.append(self.force, [-force for force, _ in pressed.values()])
        self.T, self.K = (np.hstack([part, np.zeros((part.shape[0], k))]) for part in (self.T, self.K))

    @cached_property
    def _own(self) -> tuple[np.ndarray, np.ndarray]:
        """Rates of gaps and belts due to prescribed motion, without the velocities."""
        return self.rate - self.N @ self._v, self.slip - self.T @ self._v

    @cached_property
    def _scaling(self) -> tuple[np.ndarray, np.ndarray]:
        """Units of velocities in which all masses are one, and factors with which the rows of K have norm one."""
        masses = np.abs(np.diag(self.mass))
        largest = float(np.max(masses, initial=0.0)) or 1.0
        unit = 1.0 / np.sqrt(np.where(masses > 0.0, masses, largest))
        norms = np.sqrt(np.sum((self.K * unit) ** 2, axis=1))
        return unit, 1.0 / np.where(norms > 0.0, norms, 1.0)

    @cached_property
    def _inverse(self) -> np.ndarray:
        (unit, scale), n, k = self._scaling, self.K.shape[1], self.K.shape[0]
        return _saddle_inverse(unit[:, None] * self.mass * unit, scale[:, None] * self.K * unit, n, k)

    def solve(self, force: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Solve M x + K^T p = force, K x = right for x; the rows of K may be dependent."""
        unit, scale = self._scaling
        if right.ndim > 1:
            unit, scale = unit[:, None], scale[:, None]
        return unit * (self._inverse @ np.concatenate([unit * force, scale * right]))

    def answer(self, rows: np.ndarray) -> np.ndarray:
        """Velocities due to unit impulses along `rows`, in columns."""
        return self.solve(rows.T, np.zeros((self.K.shape[0], rows.shape[0])))

    def rates(self, v: np.ndarray, contacts: np.ndarray, tangents: np.ndarray) -> np.ndarray:
        """Rates of the given gaps and slips at velocities `v`."""
        gaps, slips = self.at_velocity(v)
        return np.concatenate([gaps[contacts], slips[tangents]])

    def at_velocity(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rates of all gaps, and all slips, at velocities `v`."""
        return self.N @ v + self._own[0], self.T @ v + self._own[1]

    def held(self, v: np.ndarray, part: np.ndarray, tangents: np.ndarray | None = None) -> np.ndarray:
        """The velocities with zero rates of the given gaps and slips that are nearest to `v` in the norm of the mass
        matrix."""
        contacts = np.flatnonzero(part)
        chosen = np.flatnonzero(np.zeros(0, dtype=bool) if tangents is None else tangents)
        W, u = np.vstack([self.N[contacts], self.T[chosen]]), self.rates(v, contacts, chosen)
        if not u.size:
            return v
        X = self.answer(W)
        return v - X @ least_impulses(W @ X, u)

    def free(self) -> np.ndarray:
        """Accelerations without contact forces."""
        return self.solve(self.force, -self.constraint_bias)

    def free_accelerations(self) -> np.ndarray:
        """Second derivatives of the gaps without contact forces."""
        return self.N @ self.free() + self.bias


def _saddle_inverse(M: np.ndarray, K: np.ndarray, n: int, k: int) -> np.ndarray:
    """The first rows of the pseudo-inverse of [M K^T; K 0]; the inverse of M without constraints."""
    if k == 0:
        try:
            return np.linalg.inv(M)
        except np.linalg.LinAlgError:
            return np.linalg.pinv(M, rcond=_DEPENDENT)
    return np.linalg.pinv(np.block([[M, K.T], [K, np.zeros((k, k))]]), rcond=_DEPENDENT)[:n]


class ContactSystem:
    """A mechanism with all of its contacts among the constraints, and its evaluation at points.

    It belongs to one run or call and is not thread-safe.
    """

    def __init__(self, system: MechanicalSystem, contacts: Sequence[Contact], whole: Any = None):
        self.system, self.contacts = system, contacts
        self.owner = owners(contacts)
        self._pressed = [i for i, contact in enumerate(contacts) if contact.is_pressed]
        self.whole = whole_system(system, contacts) if whole is None else whole
        self._assembly: SystemWorkspace | None = None
        self._size = 0.0

    def terms(self, t: float, q: np.ndarray, v: np.ndarray) -> Terms:
        """The equations at a point; `v` may have entries for contacts with a known normal force."""
        n, count = q.size, len(self.contacts) - len(self._pressed)
        pressed = {i: (float(self.contacts[i].pressure(t, q, v[:n])), self.owner.index(i)) for i in self._pressed}
        values = self._evaluated(t, q, v[:n])
        return Terms(values, self.extended(v[:n]), self.system.n_constraints, count, len(self.owner), pressed)

    def extended(self, v: np.ndarray) -> np.ndarray:
        """Positions or velocities, padded with zeros for contacts with a known normal force, as in :class:`Terms`."""
        missing = self.system.n_q + len(self._pressed) - v.size
        return np.append(v, np.zeros(missing)) if missing else v

    def gaps(self, t: float, q: np.ndarray) -> np.ndarray:
        """Evaluate only the gaps."""
        from daedal.mechanics.constrained import POSITION

        n_g, found = self.system.n_constraints, np.zeros(len(self.contacts))
        gaps = [i for i in range(found.size) if i not in self._pressed]
        if gaps:
            level = self._evaluated(t, q, np.zeros_like(q), POSITION)["level"]
            found[gaps] = level[0, n_g : n_g + len(gaps)]
        return found

    def _evaluated(self, t: float, q: np.ndarray, v: np.ndarray, what: int = 255) -> dict[str, np.ndarray]:
        size = float(np.max(np.abs(q), initial=0.0))
        if self._assembly is None or size > _OUTGROWN * self._size:
            self._assembly, self._size = SystemWorkspace(self.whole, t, typical_point(q, v)), size or 1.0
        values = self._assembly.evaluate(t, np.concatenate([q, v]), what=what)
        if values is None:
            raise InvalidProblemError(f"a gap or a function of the system cannot be evaluated at t = {t:g}")
        return values


def owners(contacts: Sequence[Contact]) -> tuple[int, ...]:
    """The contact of each tangent."""
    return tuple(i for i, contact in enumerate(contacts) for _ in contact.tangent)


def whole_system(system: MechanicalSystem, contacts: Sequence[Contact]) -> MechanicalSystem:
    """The system with all gaps and slips as constraints, with exact derivatives if its functions can be traced."""
    everything = closed(system, [i for i, contact in enumerate(contacts) if not contact.is_pressed], contacts)
    tangents = [tangent for contact in contacts for tangent in tangents_of(contact, system.params)]
    everything = sticking(everything, tangents)
    try:
        return everything.compiled(backend="trace")
    except InvalidProblemError:
        return everything


def typical_point(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """A point with coordinates of typical size, for choosing difference increments.

    At an impact all coordinates may be zero up to round-off; their size is then assumed to be 1.
    """
    size, speed = float(np.max(np.abs(q), initial=0.0)), float(np.max(np.abs(v), initial=0.0))
    return q if size > max(_NO_SIZE * speed, _NO_SIZE**2) else np.ones_like(q)


# --- contacts that remain closed, stick and slip: complementarity of accelerations -----------------------------------


AT_REST = 1e-9  # relative rate of a gap, or relative second derivative, up to which it counts as zero
_HELD = 1e-9  # least margins of contacts that share the load: of P, relative to the largest P, and of friction
_CONE = 1e-6  # relative violation of the friction cone allowed for an impact without collision

Slips = dict[int, np.ndarray]
"""Unit vectors, along the tangents, of the sliding contacts."""


@dataclass(frozen=True)
class Forces:
    """Contact forces in a mode.

    Attributes
    ----------
    normal, tangential : numpy.ndarray
        Forces of all contacts, and along all tangents.
    margin : float
        Distance to Painleve's paradox: 1 without friction, 0 if forces grow without limit.
    size : float
        Scale of the loads; much smaller forces are round-off.
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
        self.pressed = np.array([contact.is_pressed for contact in contacts])  # pressed contacts never open

    def tangents(self, i: int) -> np.ndarray:
        """Indices of the tangents of a contact."""
        return np.flatnonzero(self.owner == i)

    def slipping(self, terms: Terms, v: np.ndarray, states: States) -> Slips:
        """Slip directions of a mode."""
        slip = terms.at_velocity(v)[1]
        found = {}
        for i, state in enumerate(states):
            if state in SIDES:
                found[i] = np.array([float(SIDES[state])])
            elif state == SLIP:
                found[i] = _unit(slip[self.tangents(i)])
        return found

    def moving(self, terms: Terms, v: np.ndarray, closed: np.ndarray, size: float = 0.0) -> Slips:
        """Slip directions of closed contacts that are not at rest."""
        slip, found = terms.at_velocity(v)[1], {}
        for i in np.flatnonzero(closed).tolist():
            own = self.tangents(i)
            scale = max(float(np.max(np.abs(terms.T[own]) @ np.abs(v), initial=0.0)), size)
            if own.size and np.linalg.norm(slip[own]) > AT_REST * scale:
                found[i] = _unit(slip[own])
        return found

    # --- forces of a mode -------------------------------------------------------------------------------------------

    def forces(self, terms: Terms, v: np.ndarray, states: States) -> Forces:
        """Forces that continue a mode; dependent contacts share them with least norm, if the laws allow that."""
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
        """Margin of friction: mu_static P - |Q|, for all contacts."""
        size = np.array([np.linalg.norm(forces.tangential[self.tangents(i)]) for i in range(self.mu.size)])
        return self.mu_static * forces.normal - size

    def _violated(self, normal: np.ndarray, tangential: np.ndarray, held: np.ndarray) -> bool:
        reserve = self.reserves(Forces(normal, tangential))
        return bool(normal.min() < 0.0 or np.min(reserve[self.owner[held]], initial=0.0) < 0.0)

    def _kept(self, forces: Forces, closed: np.ndarray, held: np.ndarray) -> Forces:
        """The forces, changed slightly so that `closed` contacts do not open and the tangents `held` do not slip."""
        size = _HELD * float(np.max(np.abs(forces.normal), initial=0.0))
        normal = np.where(closed, np.maximum(forces.normal, size), 0.0)
        tangential = forces.tangential.copy()
        for i in np.unique(self.owner[held]):
            own = self.tangents(i)
            most, length = self.mu_static[i] * normal[i] * (1.0 - _HELD), float(np.linalg.norm(tangential[own]))
            if length > most:
                tangential[own] *= most / length
        return replace(forces, normal=normal, tangential=tangential)

    # --- consequences -------------------------------------------------------------------------------------------------

    def follow(self, terms: Terms, closed: np.ndarray, sliding: Slips) -> States | None:
        """Next states of closed contacts that are not separating; None if no motion satisfies Coulomb's law.

        Contacts in `sliding` slip in a known direction; the others are at rest. Some of the latter may begin to slip,
        which requires the coefficient of sliding friction.
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
        """States by name: closed contacts, and which of these slide."""
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
        """Warn if an opening contact could also continue to slip with a large force (Painleve)."""
        for k, i in enumerate(problem.contacts.tolist()):
            if i in sliding and not stays[i] and problem.B[k, k] < 0.0:
                warn(
                    f"contact '{self.contacts[i].name}' can open, or continue to slip with a force that grows with "
                    "friction (Painleve's paradox: the equations allow several motions). It opens here",
                    NonUniqueWarning,
                )

    def jammed(self, terms: Terms, v: np.ndarray, closed: np.ndarray, sliding: Slips, t: float) -> np.ndarray:
        """Velocities after an impact without collision, which ends slips without a solution (Painleve).

        The normal impulse and that of friction grow together until the contact sticks, which requires :math:`|Q| \\le
        \\mu P`.
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
                f"at t = {t:.10g} no motion satisfies Coulomb's law, nor does an impact without collision that "
                f"stops the slip of {names} (Painleve's paradox). Remedy: add compliance to the contact, or use a "
                "smaller mu"
            )
        return v + X @ x


class _Closed:
    """Equations of closed contacts: accelerations of gaps and sticking tangents, B x + b, with the forces x.

    The friction force of a sliding contact is tied to its normal force: its column is that of N - mu s T.
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
        # open contacts are included, since bodies at rest provide no scale
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
        if rank < x.size:  # rows of the symmetric matrix show whether the contacts are dependent
            rank = min(rank, int(np.linalg.matrix_rank(self._symmetric, rtol=_DEPENDENT)))
        return unit * x, int(rank)

    def load(self) -> float:
        """Size of the forces that the loads could cause."""
        diagonal = np.abs(np.diag(self.B))
        least = float(np.min(diagonal[diagonal > 0.0], initial=np.inf))
        return self.size / least if least > 0.0 else 0.0

    def margin(self) -> float:
        """det B divided by its value without friction: 1 without sliding contacts, 0 if the slip jams."""
        if not self.sliding or not self.b.size:
            return 1.0
        return float(np.linalg.det(self._scaled) / np.linalg.det(self._symmetric))

    def complementary(self, mu: np.ndarray) -> np.ndarray | None:
        """Forces that satisfy the laws of contact and friction; None if no forces do."""
        if not self.b.size:
            return np.zeros(0)
        owner = tuple(np.searchsorted(self.contacts, self.rules.owner[self.rows]).tolist())
        return FrictionProblem(self.B, self.b, self.contacts.size, owner, mu[self.contacts]).solve()

    def shared(self, mu: np.ndarray) -> np.ndarray | None:
        """Forces with which dependent contacts support the load at rest; None if they cannot."""
        x = self.complementary(mu)
        if x is None or np.max(np.abs(self.B @ x + self.b), initial=0.0) > AT_REST * self.size:
            return None
        return x

    def accelerations(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Second derivatives of all gaps (zero if open) and of sticking tangents."""
        return self._of_all(self.B @ x + self.b)

    def _of_all(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        normal, tangential = np.zeros(self.rules.mu.size), np.zeros(self.rules.owner.size)
        normal[self.contacts], tangential[self.rows] = values[: self.contacts.size], values[self.contacts.size :]
        return normal, tangential

    def spread(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forces of all contacts, including the friction of sliding contacts."""
        normal, tangential = self._of_all(x)
        for i, s in self.sliding.items():
            tangential[self.rules.tangents(i)] = -self.rules.mu[i] * normal[i] * s
        return normal, tangential


def _unit(vector: np.ndarray) -> np.ndarray:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0.0 else vector
