"""What the equations of a mechanism with contacts say at a point."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.hybrid.models.complementarity import least_impulses
from daedal.hybrid.models.contact import Contact
from daedal.hybrid.models.contact_equations import closed, sticking, tangents_of
from daedal.mechanics.assembly import Assembly
from daedal.problems import MechanicalSystem

_NO_SIZE = 1e-6  # positions that small beside the velocities have no size
_OUTGROWN = 1e4  # coordinates so many times larger need other increments of differences
_DEPENDENT = 1e-9  # relative singular values that count as zero: gradients by differences are not exact

Pressed = dict[int, tuple[float, int]]
"""By contact: its known normal force, and the number of its first tangent."""


class Terms:
    """Mass, force, constraints and contacts at a point, and how the system answers to impulses.

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
        self.found: dict[str, Any] = {}  # what was computed from it
        if pressed:
            self._press(pressed)

    def _press(self, pressed: Pressed):
        """Add a coordinate for each contact with a known normal force: a block that the force presses on a floor.

        Its gap is zero, the force of the floor is the known one, and no impact of others reaches it: Coulomb's law
        holds for all contacts alike. Its mass is that of the slip, so that accelerations have one size.
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
        """The rates of gaps and belts that move by themselves, without the velocities."""
        return self.rate - self.N @ self._v, self.slip - self.T @ self._v

    @cached_property
    def _scaling(self) -> tuple[np.ndarray, np.ndarray]:
        """Units of velocities in which all masses are one: a light body beside a heavy one counts as much."""
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
        """x of M x + K^T p = force, K x = right; the rows of K may depend on each other."""
        unit, scale = self._scaling
        if right.ndim > 1:
            unit, scale = unit[:, None], scale[:, None]
        return unit * (self._inverse @ np.concatenate([unit * force, scale * right]))

    def answer(self, rows: np.ndarray) -> np.ndarray:
        """The velocities by unit impulses along `rows`, in columns."""
        return self.solve(rows.T, np.zeros((self.K.shape[0], rows.shape[0])))

    def rates(self, v: np.ndarray, contacts: np.ndarray, tangents: np.ndarray) -> np.ndarray:
        """The rates of some gaps and slips at other velocities."""
        gaps, slips = self.at_velocity(v)
        return np.concatenate([gaps[contacts], slips[tangents]])

    def at_velocity(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rates of all gaps, and all slips, at other velocities."""
        return self.N @ v + self._own[0], self.T @ v + self._own[1]

    def held(self, v: np.ndarray, part: np.ndarray, tangents: np.ndarray | None = None) -> np.ndarray:
        """The velocities without the rates of these gaps and slips, by the least change in the norm of the mass."""
        contacts = np.flatnonzero(part)
        chosen = np.flatnonzero(np.zeros(0, dtype=bool) if tangents is None else tangents)
        W, u = np.vstack([self.N[contacts], self.T[chosen]]), self.rates(v, contacts, chosen)
        if not u.size:
            return v
        X = self.answer(W)
        return v - X @ least_impulses(W @ X, u)

    def free(self) -> np.ndarray:
        """The accelerations without contact forces."""
        return self.solve(self.force, -self.constraint_bias)

    def free_accelerations(self) -> np.ndarray:
        """Second derivatives of the gaps without contact forces."""
        return self.N @ self.free() + self.bias


def _saddle_inverse(M: np.ndarray, K: np.ndarray, n: int, k: int) -> np.ndarray:
    """The first rows of the pseudo-inverse of [M K^T; K 0]; the plain inverse of M without constraints."""
    if k == 0:
        try:
            return np.linalg.inv(M)
        except np.linalg.LinAlgError:
            return np.linalg.pinv(M, rcond=_DEPENDENT)
    return np.linalg.pinv(np.block([[M, K.T], [K, np.zeros((k, k))]]), rcond=_DEPENDENT)[:n]


class ContactSystem:
    """A mechanism with all of its contacts among the constraints, and its evaluation at points.

    It belongs to one run, or one call: what it keeps is not shared between threads.
    """

    def __init__(self, system: MechanicalSystem, contacts: Sequence[Contact], whole: Any = None):
        self.system, self.contacts = system, contacts
        self.owner = owners(contacts)
        self._pressed = [i for i, contact in enumerate(contacts) if contact.is_pressed]
        self.whole = whole_system(system, contacts) if whole is None else whole
        self._assembly: Assembly | None = None
        self._size = 0.0

    def terms(self, t: float, q: np.ndarray, v: np.ndarray) -> Terms:
        """What the equations say at a point; `v` may have entries for contacts that are pressed on each other."""
        n, count = q.size, len(self.contacts) - len(self._pressed)
        pressed = {i: (float(self.contacts[i].pressure(t, q, v[:n])), self.owner.index(i)) for i in self._pressed}
        values = self._evaluated(t, q, v[:n])
        return Terms(values, self.extended(v[:n]), self.system.n_constraints, count, len(self.owner), pressed)

    def extended(self, v: np.ndarray) -> np.ndarray:
        """Positions or velocities with zeros for the contacts with a known normal force, as :class:`Terms` has them."""
        missing = self.system.n_q + len(self._pressed) - v.size
        return np.append(v, np.zeros(missing)) if missing else v

    def gaps(self, t: float, q: np.ndarray) -> np.ndarray:
        """The gaps alone."""
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
            self._assembly, self._size = Assembly(self.whole, t, typical_point(q, v)), size or 1.0
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
    """A point of which the size of the coordinates can be told, as increments for differences need it.

    At an impact all coordinates may be zero up to round-off; their size is then taken to be 1.
    """
    size, speed = float(np.max(np.abs(q), initial=0.0)), float(np.max(np.abs(v), initial=0.0))
    return q if size > max(_NO_SIZE * speed, _NO_SIZE**2) else np.ones_like(q)
