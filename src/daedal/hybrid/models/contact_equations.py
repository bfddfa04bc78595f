"""The equations of a mechanism some of whose contacts are closed: gaps as constraints, stick and slip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.hybrid.models.contact import Contact
from daedal.kernels.functions import is_compiled, parameter_vector
from daedal.problems import MechanicalSystem
from daedal.problems.arguments import positional_names
from daedal.problems.compile import compiled_function


def closed(system: MechanicalSystem, chosen, contacts: Sequence[Contact]) -> MechanicalSystem:
    """The system with the gaps of the chosen contacts as further position constraints."""
    if not len(chosen):
        return system
    count = system.n_constraints
    names = list(system.constraint_names or [system.constraint_label(i) for i in range(system.n_lambda)])
    names[count:count] = [str(contacts[i].name) for i in chosen]
    gradients = [contacts[i].gradient for i in chosen]
    known = None not in gradients and (system.constraint_jacobian is not None or not count)
    gaps = [contacts[i].gap for i in chosen]
    return system.replaced(
        constraint=_with_rows(system, system.constraint, gaps, ()),
        n_constraints=count + len(chosen),
        constraint_jacobian=_with_rows(system, system.constraint_jacobian, gradients, (system.n_q,)) if known else None,
        constraint_t=None,
        acceleration_bias=None,
        constraint_names=names,
    )


@dataclass(frozen=True)
class Tangent:
    """A direction of slip of a contact: e and w as functions of (t, q[, p]) and of t."""

    contact: str
    direction: Callable[..., Any]
    speed: Callable[[float], Any]
    is_constant: bool

    def rate(self, t, q, v, *p):
        """e^T v - w."""
        return (np.asarray(self.direction(t, q, *p)) * v).sum() - self.speed(t)


def tangents_of(contact: Contact, params) -> list[Tangent]:
    """The tangents of a contact as functions that take what the functions of the system take."""
    pairs = zip(contact.tangent, contact.speed, strict=True) if contact.is_rough else ()
    return [
        Tangent(
            str(contact.name),
            _direction(e, params),
            w if callable(w) else _constant(w),
            not callable(e) and not callable(w),
        )
        for e, w in pairs
    ]


def _constant(value: float) -> Callable[[float], float]:
    return lambda t: value


def _direction(e, params) -> Callable[..., Any]:
    if not callable(e):
        return lambda t, q, *p: e
    names = positional_names(e)
    if params is not None and names is not None and len(names) > 2:
        function = _uncompiled(e, params)
        return lambda t, q, *p: function(t, q, *p)
    return lambda t, q, *p: e(t, q)


def sticking(system: MechanicalSystem, tangents: Sequence[Tangent]) -> MechanicalSystem:
    """The system with the slip of some tangents as further velocity constraints, 0 = e^T v - w."""
    if not tangents:
        return system
    other, other_jacobian, m = system.velocity_constraint, system.velocity_jacobian, system.n_velocity_constraints
    n, count = system.n_q, len(tangents)
    first, first_jacobian = _uncompiled(other, system.params), _uncompiled(other_jacobian, system.params)

    def constraint(t, q, v, *p):
        own = np.array([tangent.rate(t, q, v, *p) for tangent in tangents])
        return own if other is None else np.concatenate([np.asarray(first(t, q, v, *p)), own])

    def jacobian(t, q, *p):
        rows = np.empty((m + count, n))
        if other_jacobian is not None:
            rows[:m] = first_jacobian(t, q, *p)
        for i, tangent in enumerate(tangents):
            rows[m + i] = tangent.direction(t, q, *p)
        return rows

    def no_bias(t, q, v, *p):
        return np.zeros(count)

    names = system.constraint_names
    if names is None:
        names = tuple(system.constraint_label(i) for i in range(system.n_lambda))
    return system.replaced(
        velocity_constraint=constraint,
        n_velocity_constraints=m + count,
        velocity_jacobian=jacobian if m == 0 or other_jacobian is not None else None,
        velocity_bias=no_bias if m == 0 and all(tangent.is_constant for tangent in tangents) else None,
        constraint_names=(*names, *_distinct([f"friction of {tangent.contact}" for tangent in tangents], names)),
    )


def _distinct(names: list[str], taken) -> list[str]:
    found: list[str] = []
    for name in names:
        while name in taken or name in found:
            name += "'"
        found.append(name)
    return found


@dataclass(frozen=True)
class Slip:
    """A contact that slides: its tangents, the coefficient, the row of its multiplier, and the side of one tangent."""

    tangents: tuple[Tangent, ...]
    mu: float
    row: int
    side: int
    creep: float  # the speed below which a slip in space has no direction
    normal: Callable[..., Any] | None = None  # the normal force, if it is known

    def force(self, lam, t, q, v, *p):
        """Friction: mu lam s, as the pressure is -lam; s is the direction of the slip."""
        pressure = self.mu * lam[self.row] if self.normal is None else -self.mu * self.normal(t, q, v)
        if len(self.tangents) == 1:
            return self.side * pressure * np.asarray(self.tangents[0].direction(t, q, *p))
        u = [tangent.rate(t, q, v, *p) for tangent in self.tangents]
        size = np.sqrt(u[0] * u[0] + u[1] * u[1] + self.creep * self.creep)
        e = [np.asarray(tangent.direction(t, q, *p)) for tangent in self.tangents]
        return (pressure / size) * (u[0] * e[0] + u[1] * e[1])


def sliding(system: MechanicalSystem, slips: Sequence[Slip]) -> MechanicalSystem:
    """The system with friction against the slip of some contacts, whose gaps are constraints of it already."""
    if not slips:
        return system
    own = _uncompiled(system.force, system.params)

    def force(t, q, v, lam, *p):
        found = np.asarray(own(t, q, v, *p))
        for slip in slips:
            found = found + slip.force(lam, t, q, v, *p)
        return found

    def force_by_known_pressures(t, q, v, *p):
        return force(t, q, v, None, *p)

    if all(slip.normal is not None for slip in slips):
        return system.replaced(force=force_by_known_pressures)
    return system.replaced(force=force, force_uses_multipliers=True)


def _with_rows(system: MechanicalSystem, base, rows: list[Any], width: tuple[int, ...]):
    """A function whose result is that of `base`, a vector or a matrix of the constraints, and that of `rows` below."""
    count = system.n_constraints
    takes_params = [system.params is not None and len(positional_names(row) or ()) > 2 for row in rows]
    if all(is_compiled(row) for row in rows) and (base is None or is_compiled(base)):
        for size, (row, takes) in enumerate(zip(rows, takes_params, strict=True), count):
            base = _compiled_with_row(base, row, size, width, takes)
        return base
    first = _uncompiled(base, system.params)
    further = [
        (_uncompiled(row, system.params) if takes else row, takes)
        for row, takes in zip(rows, takes_params, strict=True)
    ]

    def stacked(t, q, *rest):
        values = np.empty((count + len(further), *width))
        if count:
            values[:count] = first(t, q, *rest)
        for i, (row, takes) in enumerate(further, count):
            values[i] = row(t, q, rest[-1]) if takes else row(t, q)
        return values

    return stacked


def _uncompiled(function, params):
    """The function; if it is compiled, with the parameters in the form that it needs."""
    if params is None or not is_compiled(function):
        return function
    p = parameter_vector(params)
    return lambda *arguments: function(*arguments[:-1], p)


def _compiled_with_row(base, row, size: int, width: tuple[int, ...], takes_params: bool):
    if size == 0 and takes_params:

        def stacked(t, q, *rest):
            values = np.empty((1, *width), q.dtype)
            values[0] = row(t, q, rest[-1])
            return values
    elif size == 0:

        def stacked(t, q, *rest):
            values = np.empty((1, *width), q.dtype)
            values[0] = row(t, q)
            return values
    elif takes_params:

        def stacked(t, q, *rest):
            values = np.empty((size + 1, *width), q.dtype)
            values[:size] = base(t, q, *rest)
            values[size] = row(t, q, rest[-1])
            return values
    else:

        def stacked(t, q, *rest):
            values = np.empty((size + 1, *width), q.dtype)
            values[:size] = base(t, q, *rest)
            values[size] = row(t, q)
            return values

    return compiled_function(stacked)
