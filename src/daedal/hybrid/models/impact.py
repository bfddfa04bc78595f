"""Rigid impact: the jump of the velocities of a mechanism when gaps close, with its constraints kept."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.hybrid.problem import with_its_params
from daedal.hybrid.state_form import positional_names
from daedal.kernels.functions import is_compiled, parameter_vector
from daedal.mechanics.assembly import Assembly
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_callable, check_real, check_vector
from daedal.problems.compile import compiled_function

LAWS = ("newton", "poisson")
_EXACT = 1e-10  # relative violation of complementarity that round-off explains
_LOCATED = 100.0 * float(np.finfo(float).eps)  # relative error of the time of a located event
_NO_SIZE = 1e-6  # positions that small beside the velocities have no size
_WRONG = 1e-6  # one that it does not
_DEPENDENT = 1e-9  # relative singular values that count as zero: gradients by differences are not exact


@dataclass(frozen=True, eq=False)
class Contact:
    r"""A contact that can open and close: a gap :math:`g_N(t, q) \ge 0`, and a coefficient of restitution.

    Parameters
    ----------
    gap : callable
        ``gap(t, q)``, or ``gap(t, q, p)`` for a system with parameters: positive while the contact is open, zero when
        it is closed. Its gradient is the direction of the contact force.
    restitution : float
        Between 0 (plastic) and 1 (elastic).
    gradient : callable, optional
        ``gradient(t, q)``, the partial derivatives of the gap with respect to q; by default computed by differences.
    name : str, optional

    Examples
    --------
    >>> import daedal
    >>> floor = daedal.Contact(lambda t, q: q[1], restitution=0.8, name="floor")
    >>> floor.name
    'floor'
    """

    gap: Callable[..., Any]
    restitution: float = 0.0
    gradient: Callable[..., Any] | None = None
    name: str | None = None

    def __post_init__(self):
        check_callable(self.gap, "gap")
        if self.gradient is not None:
            check_callable(self.gradient, "gradient")
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise InvalidProblemError(f"name of a contact must be a string that is not empty, got {self.name!r}")
        object.__setattr__(self, "restitution", checked_restitution(self.restitution))


def checked_restitution(value) -> float:
    """A coefficient of restitution between 0 and 1."""
    expected = "be a number between 0 and 1"
    e = check_real(value, "restitution", expected)
    if e.ndim or not 0.0 <= float(e) <= 1.0:
        more = ": the impact would create energy" if e.ndim == 0 and float(e) > 1.0 else ""
        raise InvalidProblemError(f"restitution must {expected}, got {value!r}{more}")
    return float(e)


def checked_contacts(contacts, restitution=None) -> list[Contact]:
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
        checked.append(contact if contact.name else replace(contact, name=f"contact {i + 1}"))
    names = [contact.name for contact in checked]
    for name in names:
        if names.count(name) > 1:
            raise InvalidProblemError(f"contacts: the name '{name}' is given twice; names must differ")
    return checked


def impact(system: MechanicalSystem, contacts, restitution=None, *, law: str = "newton") -> Impact:
    r"""The reset map of a rigid impact without friction.

    The velocities jump by impulses of the contacts and of the constraints,

    .. math::

        M (v^+ - v^-) = -K^T p + N^T P, \qquad K v^+ + g_t = 0, \qquad u = N v + g_{N,t},

    with the rows :math:`N` of the gradients of the gaps and their rates :math:`u`. Newton's law asks for
    :math:`0 \le P \perp u^+ + e\, u^- \ge 0`. Poisson's law divides the impact: in the compression
    :math:`0 \le P_C \perp u_C \ge 0`, in the expansion the impulse is :math:`e P_C`, and larger where the contact would
    otherwise be penetrated. For one contact both say :math:`u^+ = -e\, u^-`. Several contacts are solved together.

    Parameters
    ----------
    system : MechanicalSystem
        Its constraints stay satisfied.
    contacts : Contact, callable, or sequence of them
        What is hit; functions are gaps. The gap may depend on time (a moving table). Of several contacts those take
        part whose gap is zero, up to `Impact.touch`.
    restitution : float, optional
        Of all contacts, instead of their own.
    law : {"newton", "poisson"}

    Returns
    -------
    Impact
        A function ``(t, q, v) -> (q, v+)`` for ``Transition(reset=...)``; ``.impulses(t, q, v)`` are the P.

    References
    ----------
    F. Pfeiffer, C. Glocker: Multibody dynamics with unilateral contacts, Wiley, 1996, chapter 8.

    Examples
    --------
    A pendulum hits a wall at x = 0:

    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> hit = daedal.impact(pendulum, lambda t, q: q[0], restitution=0.5)
    >>> q, v = hit(0.0, [0.0, -1.0], [-4.0, 0.0])
    >>> print(v.round(12))
    [2. 0.]
    """
    return Impact(system, checked_contacts(contacts, restitution), law)


class Impact:
    """A rigid impact on contacts of a mechanical system; see :func:`impact`."""

    touch = 1e-9
    """The gap below which a contact takes part in the impact on another one."""

    def __init__(self, system: MechanicalSystem, contacts: list[Contact], law: str):
        if not isinstance(system, MechanicalSystem):
            raise InvalidProblemError(f"system must be a MechanicalSystem, got {type(system).__name__}")
        if law not in LAWS:
            raise InvalidProblemError(f"unknown law {law!r} of impact; known: {', '.join(LAWS)}")
        self.system, self.contacts, self.law = system, contacts, law
        self._all = closed(system, range(len(contacts)), contacts)

    def with_params(self, params) -> Impact:
        """The same impact on the system with other parameters, as far as it has them."""
        return Impact(with_its_params(self.system, params), self.contacts, self.law)

    def __call__(self, t, q, v):
        q, v = self._checked(q, v)
        return q, self.velocities(self.terms(t, q, v), v)[0]

    def impulses(self, t, q, v) -> np.ndarray:
        """The impulses P of the contacts."""
        q, v = self._checked(q, v)
        return self.velocities(self.terms(t, q, v), v)[1]

    def _checked(self, q, v) -> tuple[np.ndarray, np.ndarray]:
        return check_vector(q, self.system.n_q, "q"), check_vector(v, self.system.n_q, "v")

    def terms(self, t: float, q: np.ndarray, v: np.ndarray) -> Terms:
        """What the equations say at a point, with all contacts among the constraints."""
        values = Assembly(self._all, t, typical_point(q, v)).evaluate(t, np.concatenate([q, v]))
        if values is None:
            raise InvalidProblemError(f"a gap or a function of the system cannot be evaluated at t = {t:g}")
        return Terms(values, self.system.n_constraints, len(self.contacts))

    def velocities(self, terms: Terms, v: np.ndarray, part=None, restitution=None) -> tuple[np.ndarray, np.ndarray]:
        """The velocities after the impact, and the impulses; `part` tells which contacts take part."""
        if part is None:
            part = terms.gap <= max(self.touch, float(terms.gap.min()))
        e = np.array([contact.restitution for contact in self.contacts]) if restitution is None else restitution
        e, (A, X) = e[part], terms.compliance(part)
        correction = terms.solve(np.zeros(v.size), -terms.defect)  # of what v is off the constraints
        u, v = terms.rate[part] + terms.N[part] @ correction, v + correction
        if self.law == "newton":
            P = complementary(A, u + e * u)
        else:
            compression = complementary(A, u)
            P = e * compression
            P = P + complementary(A, u + A @ (compression + P)) + compression
        impulses = np.zeros(part.size)
        impulses[part] = P
        return v + X @ P, impulses


def located(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The position without entries that are smaller than the way covered in the error of a located time."""
    return np.where(np.abs(q) <= _LOCATED * abs(t) * np.max(np.abs(v)), 0.0, q)


def typical_point(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """A point of which the size of the coordinates can be told, as increments for differences need it.

    At an impact all coordinates may be zero up to round-off; their size is then taken to be 1.
    """
    size, speed = float(np.max(np.abs(q), initial=0.0)), float(np.max(np.abs(v), initial=0.0))
    return q if size > max(_NO_SIZE * speed, _NO_SIZE**2) else np.ones_like(q)


class Terms:
    """Mass, force, constraints and contacts at a point, and how the system answers to impulses."""

    def __init__(self, values: dict[str, np.ndarray], n_g: int, count: int):
        rows = np.arange(values["jacobian"].shape[0])
        contact = (rows >= n_g) & (rows < n_g + count)
        self.mass, self.force = values["mass"], values["force"]
        self.N, (self.gap, self.rate) = values["jacobian"][contact], values["level"][:, contact]
        self.bias, self.constraint_bias = values["bias"][contact], values["bias"][~contact]
        self.K, self.defect = values["jacobian"][~contact], values["level"][1][~contact]
        n, k = self.K.shape[1], self.K.shape[0]
        masses = np.abs(np.diag(self.mass))
        largest = float(np.max(masses, initial=0.0)) or 1.0
        # Velocities in units in which all masses are one: a light body beside a heavy one counts as much.
        self._unit = 1.0 / np.sqrt(np.where(masses > 0.0, masses, largest))
        norms = np.linalg.norm(self.K * self._unit, axis=1)
        self._scale = 1.0 / np.where(norms > 0.0, norms, 1.0)
        M, K = self._unit[:, None] * self.mass * self._unit, self._scale[:, None] * self.K * self._unit
        self._inverse = np.linalg.pinv(np.block([[M, K.T], [K, np.zeros((k, k))]]), rcond=_DEPENDENT)[:n]

    def solve(self, force: np.ndarray, right: np.ndarray) -> np.ndarray:
        """x of M x + K^T p = force, K x = right; the rows of K may depend on each other."""
        unit, scale = (self._unit, self._scale) if right.ndim == 1 else (self._unit[:, None], self._scale[:, None])
        return unit * (self._inverse @ np.concatenate([unit * force, scale * right]))

    def compliance(self, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A = N X, the rates of the gaps by unit impulses, and X, the velocities."""
        N = self.N[part]
        X = self.solve(N.T, np.zeros((self.K.shape[0], N.shape[0])))
        return N @ X, X

    def held(self, v: np.ndarray, part: np.ndarray) -> np.ndarray:
        """The velocities without the rates of these gaps, by the least change in the norm of the mass."""
        A, X = self.compliance(part)
        return v - X @ _impulses(A, self.rate[part])

    def free_accelerations(self) -> np.ndarray:
        """Second derivatives of the gaps without contact forces."""
        return self.N @ self.solve(self.force, -self.constraint_bias) + self.bias

    def accelerations(self, part: np.ndarray) -> np.ndarray:
        """Second derivatives of the gaps of contacts that are closed, with forces as large as it takes."""
        A, _ = self.compliance(part)
        free = self.free_accelerations()[part]
        return free + A @ complementary(A, free)


def _impulses(A: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """x of A x = rates for a compliance A whose contacts may depend on each other, of light bodies and heavy ones."""
    diagonal = np.diag(A)
    unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    return unit * np.linalg.lstsq(unit[:, None] * A * unit, unit * rates, rcond=_DEPENDENT)[0]


def complementary(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    r"""x with :math:`0 \le x \perp A x + b \ge 0` for a symmetric positive semidefinite matrix.

    All sets of contacts are tried, large ones first; A x is unique. Dependent contacts share the impulses in the sense
    of least squares.

    Examples
    --------
    >>> import numpy as np
    >>> complementary(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-2.0, 5.0]))
    array([1., 0.])
    """
    m = b.size
    size = float(np.max(np.abs(b), initial=0.0))
    compliance = float(np.max(np.abs(A), initial=0.0)) or 1.0
    best, least = np.zeros(m), np.inf
    for count in range(m, -1, -1):
        for chosen in itertools.combinations(range(m), count):
            x, active = np.zeros(m), list(chosen)
            if active:
                x[active] = _impulses(A[np.ix_(active, active)], -b[active])
            w = A @ x + b
            wrong = max(float(np.max(-compliance * x, initial=0.0)), float(np.max(-w, initial=0.0)))
            wrong = max(wrong, float(np.max(np.abs(w[active]), initial=0.0)))
            if wrong <= _EXACT * size:
                return np.maximum(x, 0.0)
            if wrong < least:
                best, least = x, wrong
    if not least <= _WRONG * size:
        raise InvalidProblemError(
            "no impulses or forces satisfy the laws of contact: the mass matrix must be positive definite on the "
            "motions that the constraints allow, and all values finite"
        )
    return np.maximum(best, 0.0)


def closed(system: MechanicalSystem, chosen, contacts: list[Contact]) -> MechanicalSystem:
    """The system with the gaps of the chosen contacts as further position constraints."""
    if not len(chosen):
        return system
    count = system.n_constraints
    names = list(system.constraint_names or [system.constraint_label(i) for i in range(system.n_lambda)])
    names[count:count] = [str(contacts[i].name) for i in chosen]
    gradients = [contacts[i].gradient for i in chosen]
    known = None not in gradients and (system.constraint_jacobian is not None or not count)
    constraint, jacobian = system.constraint, system.constraint_jacobian
    for size, i in enumerate(chosen, count):
        constraint = _with_row(system, constraint, contacts[i].gap, size, ())
        if known:
            jacobian = _with_row(system, jacobian, contacts[i].gradient, size, (system.n_q,))
    return system.replaced(
        constraint=constraint,
        n_constraints=count + len(chosen),
        constraint_jacobian=jacobian if known else None,
        constraint_t=None,
        acceleration_bias=None,
        constraint_names=names,
    )


def _with_row(system: MechanicalSystem, base, row, size: int, width: tuple[int, ...]):
    """A function whose result is that of `base`, with `size` entries or rows, and one more by `row`."""
    names = positional_names(row)
    takes_params = system.params is not None and names is not None and len(names) > 2
    if is_compiled(row) and (base is None or is_compiled(base)):
        return _compiled_with_row(base, row, size, width, takes_params)
    first, last = _uncompiled(base, system.params), _uncompiled(row, system.params)

    def stacked(t, q, *rest):
        values = np.empty((size + 1, *width))
        if size:
            values[:size] = first(t, q, *rest)
        values[size] = last(t, q, rest[-1]) if takes_params else last(t, q)
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
