"""Contacts of a mechanism, and its equations with some of them closed: gaps as constraints, stick and slip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import is_compiled, parameter_vector
from daedal.problems import MechanicalSystem
from daedal.problems.arguments import positional_names
from daedal.problems.checks import check_callable, check_finite, check_real
from daedal.problems.compile import compiled_function
from daedal.symbolic import Graph, Untraceable, scalar_argument, trace, vector_argument
from daedal.symbolic.machine import compile_function
from daedal.symbolic.switches import switches
from daedal.symbolic.trace import parameter_argument


@dataclass(frozen=True, eq=False)
class Contact:
    r"""A contact that can open and close: a gap :math:`g_N(t, q) \ge 0`, restitution, and Coulomb friction.

    Parameters
    ----------
    gap : callable
        ``gap(t, q)``, or ``gap(t, q, p)`` for a system with parameters: positive while the contact is open, zero when
        it is closed. Its gradient is the direction of the contact force.
    restitution : float
        Between 0 (plastic) and 1 (elastic).
    gradient : callable, optional
        ``gradient(t, q)``, the partial derivatives of the gap with respect to q; computed by default.
    name : str, optional
    tangent : callable or array, optional
        ``tangent(t, q) -> (n_q,)``, the vector e such that :math:`u_T = e^T \dot q - w` is the slip velocity and
        friction acts along e; an array if it is constant. A list of two for a contact of bodies in space: orthogonal
        directions in the contact plane.
    mu : float
        The coefficient of sliding friction.
    mu_static : float, optional
        The coefficient of static friction, at least `mu`, which is the default.
    speed : float or callable, or a pair
        w, the velocity of the surface on which the contact slides (a belt): a number or ``speed(t)``, one for each
        tangent.
    normal : float or callable, optional
        Instead of `gap`: the known force, a number or ``normal(t, q, v)``, that presses the surfaces of a brake, a
        clutch or a joint together. The contact is always closed; friction sticks up to ``mu_static * normal`` and slips
        with ``mu * normal``.

    Examples
    --------
    A point on a rough floor, in the plane:

    >>> import daedal
    >>> floor = daedal.hybrid.Contact(lambda t, q: q[1], restitution=0.8, tangent=[1.0, 0.0], mu=0.3, name="floor")
    >>> floor.name, floor.is_rough
    ('floor', True)
    """

    gap: Callable[..., Any] | None = None
    restitution: float = 0.0
    gradient: Callable[..., Any] | None = None
    name: str | None = None
    tangent: Any = None
    mu: float = 0.0
    mu_static: float | None = None
    speed: Any = 0.0
    normal: Any = None

    def __post_init__(self):
        if self.normal is None:
            check_callable(self.gap, "gap")
        else:
            self._check_pressed()
        if self.gradient is not None:
            check_callable(self.gradient, "gradient")
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise InvalidProblemError(f"name of a contact must be a nonempty string, got {self.name!r}")
        object.__setattr__(self, "restitution", checked_restitution(self.restitution))
        what = f"contact '{self.name}'" if self.name else "a contact"
        mu = check_finite(self.mu, f"mu of {what}")
        static = mu if self.mu_static is None else check_finite(self.mu_static, f"mu_static of {what}")
        if mu < 0.0:
            raise InvalidProblemError(f"mu of {what} must not be negative, got {mu:g}")
        if static < mu:
            raise InvalidProblemError(f"mu_static of {what} = {static:g} is less than mu = {mu:g}")
        tangents = _checked_tangents(self.tangent, what)
        if static > 0.0 and not tangents:
            raise InvalidProblemError(
                f"{what} has friction, but no tangent. Remedy: pass tangent=..., the e of the slip velocity e^T q'"
            )
        speeds = list(self.speed) if isinstance(self.speed, (list, tuple)) else [self.speed] * max(len(tangents), 1)
        if len(speeds) != max(len(tangents), 1):
            raise InvalidProblemError(f"speed of {what} must be one for each tangent, got {self.speed!r}")
        checked = tuple(s if callable(s) else check_finite(s, f"speed of {what}") for s in speeds)
        object.__setattr__(self, "mu", mu)
        object.__setattr__(self, "mu_static", static)
        object.__setattr__(self, "tangent", tuple(tangents) if static > 0.0 else ())
        object.__setattr__(self, "speed", checked)

    def _check_pressed(self):
        """Check that a contact with a known normal force has friction and no gap."""
        what = f"contact '{self.name}'" if self.name else "a contact"
        if self.gap is not None or self.gradient is not None:
            raise InvalidProblemError(f"{what} has normal, a known force, so it is always closed: omit gap")
        if not callable(self.normal) and not check_finite(self.normal, f"normal of {what}") > 0.0:
            raise InvalidProblemError(f"normal of {what} must be a positive force, got {self.normal!r}")
        if not self.mu and not self.mu_static:
            raise InvalidProblemError(f"{what} has normal, but no friction. Remedy: pass mu=... and tangent=...")

    @property
    def is_pressed(self) -> bool:
        """Whether the contact is always closed, with a known normal force."""
        return self.normal is not None

    def pressure(self, t, q, v) -> Any:
        """The known normal force."""
        return abs(self.normal(t, q, v)) if callable(self.normal) else self.normal

    @property
    def is_rough(self) -> bool:
        """Whether the contact has friction."""
        return bool(self.tangent)


def _checked_tangents(tangent, what: str) -> list[Any]:
    """The tangents of a contact as a list of functions and vectors."""
    if tangent is None or (isinstance(tangent, tuple) and not tangent):
        return []
    several = isinstance(tangent, (list, tuple)) and any(callable(e) or np.ndim(e) for e in tangent)
    found = list(tangent) if several or np.ndim(tangent) == 2 else [tangent]
    if len(found) > 2:
        raise InvalidProblemError(f"tangent of {what} must be one vector or two, got {len(found)}")
    for i, e in enumerate(found):
        if callable(e):
            continue
        values = check_real(e, f"tangent of {what}", "be a function tangent(t, q), a vector, or two of them")
        if values.ndim != 1 or not np.all(np.isfinite(values)) or not values.any():
            raise InvalidProblemError(f"tangent of {what} must be a vector of finite numbers, not zero, got {e!r}")
        found[i] = values
    return found


def checked_restitution(value) -> float:
    """A coefficient of restitution between 0 and 1."""
    expected = "be a number between 0 and 1"
    e = check_real(value, "restitution", expected)
    if e.ndim or not 0.0 <= float(e) <= 1.0:
        more = ": the impact would create energy" if e.ndim == 0 and float(e) > 1.0 else ""
        raise InvalidProblemError(f"restitution must {expected}, got {value!r}{more}")
    return float(e)


def checked_contacts(contacts, n_q: int, restitution=None) -> list[Contact]:
    """Contacts from one or several contacts or gap functions."""
    given = list(contacts) if isinstance(contacts, Sequence) else [contacts]
    if not given:
        raise InvalidProblemError("contacts is empty; give at least one Contact, or a gap function")
    checked = []
    for i, contact in enumerate(given):
        if not isinstance(contact, Contact):
            if not callable(contact):
                raise InvalidProblemError(
                    f"contacts[{i}] must be a Contact or a gap function, got {type(contact).__name__}"
                )
            contact = Contact(contact)
        if restitution is not None:
            contact = replace(contact, restitution=restitution)
        for e in contact.tangent:
            if not callable(e) and e.shape != (n_q,):
                raise InvalidProblemError(
                    f"contacts[{i}]: tangent has {e.size} entries; the system has {n_q} coordinates"
                )
        checked.append(contact if contact.name else replace(contact, name=f"contact {i + 1}"))
    names = [contact.name for contact in checked]
    for name in names:
        if names.count(name) > 1:
            raise InvalidProblemError(f"contacts: the name '{name}' is given twice; names must differ")
    return checked


# --- kinks and jumps of the gap of a contact: corners, edges and ends of the touched body -----------------------------


AHEAD, BEYOND = 1e-11, 1e-10  # displacements, relative to the size of the coordinates, before and beyond a corner
_TABLE = "locate"  # kind of the switches of tables, whose points represent a smooth curve and are not corners


def corners_of(contact: Contact, system: MechanicalSystem) -> Callable | None:
    """``corners(t, q)``, functions that change sign where the gap switches; None if it never switches.

    Examples
    --------
    >>> import daedal, numpy as np
    >>> puck = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -9.81], n_q=2)
    >>> step = daedal.hybrid.Contact(lambda t, q: q[1] + np.where(q[0] < 2.0, 0.0, 1.0), name="step")
    >>> print(corners_of(step, puck)(0.0, np.array([0.5, 0.0])))
    [-1.5]
    """
    if contact.is_pressed:
        return None
    graph, names = Graph(), positional_names(contact.gap)
    arguments = [scalar_argument(graph, "t"), vector_argument(graph, "q", system.n_q)]
    if system.params is not None and names is not None and len(names) > 2:
        arguments.append(parameter_argument(graph, "p", system.params))
    try:
        made = trace(contact.gap, arguments, None)  # type: ignore[arg-type]
    except Untraceable:
        return None
    found = [one for one in switches(graph, made.nodes) if one.operation != _TABLE]
    nodes = [graph.subtract(one.function, graph.constant(point)) for one in found for point in one.points]
    if not nodes:
        return None
    numbers = np.asarray(system.params, dtype=float) if "p" in {data[0] for data in _read(graph, nodes)} else None
    sizes = {"q": system.n_q} | ({} if numbers is None else {"p": numbers.size})
    code = compile_function(graph, sizes, {"result": np.array(nodes)})
    given = {} if numbers is None else {"p": numbers}
    return lambda t, q: code(t, q=q, **given)[1]["result"]


def along(t: float, q: np.ndarray, v: np.ndarray, way: float) -> tuple[float, np.ndarray]:
    """Time and positions after the fastest coordinate has moved by a given amount."""
    speed = float(np.max(np.abs(v[: q.size]), initial=0.0))
    step = way * (float(np.max(np.abs(q), initial=0.0)) or 1.0) / speed if speed > 0.0 else 0.0
    return t + step, q + step * v[: q.size]


def _read(graph: Graph, nodes: list[int]):
    return [graph.data[i] for i in graph.needed(nodes) if graph.operations[i] == "argument"]


# --- mechanisms with closed contacts: gaps as constraints, stick and slip ---------------------------------------------


def closed(system: MechanicalSystem, chosen, contacts: Sequence[Contact]) -> MechanicalSystem:
    """The system with the gaps of the chosen contacts as additional position constraints."""
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
    """The tangents of a contact as functions with the arguments of the system's functions."""
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
    """The system with the slip of some tangents as additional velocity constraints, 0 = e^T v - w."""
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
    """A sliding contact: its tangents, coefficient, index of its multiplier and, for a single tangent, side."""

    tangents: tuple[Tangent, ...]
    mu: float
    row: int
    side: int
    creep: float  # speed below which spatial slip has no direction
    normal: Callable[..., Any] | None = None  # normal force, if known

    def force(self, lam, t, q, v, *p):
        """Friction: mu lam s, since the pressure is -lam; s is the direction of the slip."""
        pressure = self.mu * lam[self.row] if self.normal is None else -self.mu * self.normal(t, q, v)
        if len(self.tangents) == 1:
            return self.side * pressure * np.asarray(self.tangents[0].direction(t, q, *p))
        u = [tangent.rate(t, q, v, *p) for tangent in self.tangents]
        size = np.sqrt(u[0] * u[0] + u[1] * u[1] + self.creep * self.creep)
        e = [np.asarray(tangent.direction(t, q, *p)) for tangent in self.tangents]
        return (pressure / size) * (u[0] * e[0] + u[1] * e[1])


def sliding(system: MechanicalSystem, slips: Sequence[Slip]) -> MechanicalSystem:
    """The system with friction against the slip of contacts whose gaps are already constraints."""
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
    """A function that appends the result of `rows` to that of `base`: a vector, or a matrix of the constraints."""
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
    """The function for calls from Python: if it is compiled, the parameters are passed as a vector."""
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
