"""What a user says about a contact: its gap, its restitution, and its friction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_callable, check_finite, check_real


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
        ``gradient(t, q)``, the partial derivatives of the gap with respect to q; by default computed.
    name : str, optional
    tangent : callable or array, optional
        ``tangent(t, q) -> (n_q,)``, the vector e of which :math:`u_T = e^T \dot q - w` is the velocity of the slip and
        along which friction acts; an array if it is constant. Two of them, a list, for a contact of bodies in space:
        orthogonal directions in the plane of the contact.
    mu : float
        The coefficient of sliding friction.
    mu_static : float, optional
        That of static friction, at least `mu`; by default `mu`.
    speed : float or callable, or a pair
        w, the velocity of what the contact slides on (a belt): a number or ``speed(t)``, one for each tangent.
    normal : float or callable, optional
        Instead of `gap`: the known force, a number or ``normal(t, q, v)``, that presses the surfaces of a brake, a
        clutch or a joint on each other. The contact is always closed; friction sticks up to ``mu_static * normal`` and
        slips with ``mu * normal``.

    Examples
    --------
    A point on a rough floor, in the plane:

    >>> import daedal
    >>> floor = daedal.Contact(lambda t, q: q[1], restitution=0.8, tangent=[1.0, 0.0], mu=0.3, name="floor")
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
            raise InvalidProblemError(f"name of a contact must be a string that is not empty, got {self.name!r}")
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
                f"{what} has friction, but no tangent. Remedy: tangent=..., the vector e of the slip velocity e^T q'"
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
        """A contact with a known normal force has friction and no gap."""
        what = f"contact '{self.name}'" if self.name else "a contact"
        if self.gap is not None or self.gradient is not None:
            raise InvalidProblemError(f"{what} has normal, a known force, so it is always closed: leave gap out")
        if not callable(self.normal) and not check_finite(self.normal, f"normal of {what}") > 0.0:
            raise InvalidProblemError(f"normal of {what} must be a positive force, got {self.normal!r}")
        if not self.mu and not self.mu_static:
            raise InvalidProblemError(f"{what} has normal, but no friction. Remedy: mu=... and tangent=...")

    @property
    def is_pressed(self) -> bool:
        """Whether it is always closed, with a known normal force."""
        return self.normal is not None

    def pressure(self, t, q, v) -> Any:
        """The known normal force."""
        return abs(self.normal(t, q, v)) if callable(self.normal) else self.normal

    @property
    def is_rough(self) -> bool:
        """Whether it has friction."""
        return bool(self.tangent)


def _checked_tangents(tangent, what: str) -> list[Any]:
    """The tangents of a contact as a list of functions and vectors."""
    if tangent is None or (isinstance(tangent, tuple) and not tangent):
        return []
    several = isinstance(tangent, (list, tuple)) and any(callable(e) or np.ndim(e) for e in tangent)
    found = list(tangent) if several or np.ndim(tangent) == 2 else [tangent]
    if len(found) > 2:
        raise InvalidProblemError(f"tangent of {what} must be one vector, or two, got {len(found)}")
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
    """Contacts from one or several, gap functions among them."""
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
