"""Contacts of a mechanism that close by impacts, stick, slip, and open when they would have to pull."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.hybrid.models.contact import Contact, checked_contacts
from daedal.hybrid.models.contact_corners import corners_of
from daedal.hybrid.models.contact_history import ContactRecord
from daedal.hybrid.models.contact_modes import FREE, ContactModes
from daedal.hybrid.models.contact_run import ContactWatch
from daedal.hybrid.models.contact_terms import whole_system
from daedal.hybrid.models.impact import LAWS, ORDERS, Impact
from daedal.hybrid.problem import HybridProblem, Transition
from daedal.hybrid.state_form import StateForm
from daedal.kernels.functions import is_compiled
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_number
from daedal.problems.compile import compiled_function


def unilateral(
    system: MechanicalSystem,
    contacts,
    *,
    law: str = "newton",
    order: str = "together",
    rest_speed: float = 0.0,
    touch: float = Impact.touch,
    creep: float = 1e-6,
) -> UnilateralProblem:
    r"""A mechanism with contacts that open and close, stick and slip, as a hybrid problem.

    .. math::

        M \ddot q = f - G^T \lambda + N^T P + T^T Q, \qquad 0 = g(t, q), \qquad 0 \le g_N(t, q) \perp P \ge 0, \qquad
        |Q| \le \mu P, \quad Q = -\mu P\, s / |s| \text{ if } s \ne 0 .

    A mode says what each contact does: ``"free"``, or the closed ones joined by " + ", each with its name (without
    friction), or "sticks", "slips+" or "slips-" behind it. A contact closes where its gap becomes zero, by an impact
    (see :func:`impact`) in which all closed contacts and those that are reached at the same time take part. What is not
    moving apart afterwards stays closed if it is pressed together, :math:`0 \le P \perp \ddot g_N \ge 0`, and sticks if
    friction can hold it: a complementarity problem for the accelerations. It opens where its force :math:`P` changes
    its sign, it begins to slip where :math:`|Q|` exceeds :math:`\mu_s P`. Where impacts accumulate (Zeno behaviour),
    the contact is closed from then on.

    Parameters
    ----------
    system : MechanicalSystem
        Without contacts.
    contacts : Contact, callable, or sequence of them
        As many as there are; functions are gaps of plastic contacts without friction.
    law : {"newton", "poisson"}
        Of impact.
    order : {"together", "in turn"}
        Of impacts: whether contacts that touch at rest take part at once; see :func:`impact`.
    rest_speed : float
        Impacts at this speed or below are plastic, so that bouncing ends before it accumulates.
    touch : float
        The gap below which a contact takes part in the impact on another one.
    creep : float
        For contacts with two tangents: the speed of slip below which it has no direction, and the contact may stick.

    Returns
    -------
    UnilateralProblem
        A :class:`HybridProblem` whose modes are made when a run reaches them. Runs begin with ``(q, v)``, or with
        ``(mode, (q, v))``. The transitions are called "<contact> closes", "opens", "slips", "stops" and "jams", and
        "settles" at points of accumulation. ``sol.contact(name)`` has gap, forces and state of a contact.

    Notes
    -----
    Closed contacts that depend on each other (a table on four legs, a block that sticks on two corners) share the load
    with forces of least norm. They open or slip where no forces at all that are allowed bear the load.

    Painleve's paradox: a contact that slides with large friction may find no force, or several. Where there is none,
    the slip ends by an impact without collision, "<contact> jams" in the table of events; where there are several, the
    contact opens, with a :class:`NonUniqueWarning`.

    References
    ----------
    F. Pfeiffer, C. Glocker: Multibody dynamics with unilateral contacts, Wiley, 1996. D. E. Stewart: Rigid-body
    dynamics with friction and impact, SIAM Review 42 (2000) 3-39.

    Examples
    --------
    A ball bounces on the floor until it rests:

    >>> import daedal
    >>> ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1, names=["height"])
    >>> problem = daedal.unilateral(ball, daedal.Contact(lambda t, q: q[0], restitution=0.5, name="floor"))
    >>> sol = daedal.solve(problem, (0.0, 2.0), ([1.0], [0.0]), rtol=1e-8)
    >>> print(sol.mode[-1], f"{sol.events[-1].t:.6f}")
    floor 1.354571

    A puck is thrown on rough ice; it bounces once, slides, and comes to rest:

    >>> puck = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -9.81], n_q=2, names=["x", "y"])
    >>> ice = daedal.Contact(lambda t, q: q[1], tangent=[1.0, 0.0], mu=0.2, name="ice")
    >>> sol = daedal.solve(daedal.unilateral(puck, ice), (0.0, 3.0), ([0.0, 0.0], [3.0, 0.0]), rtol=1e-8)
    >>> print(sol.mode[0], sol.mode[-1], f"{sol.events[0].t:.6f}")  # v / (mu g)
    ice slips+ ice sticks 1.529052
    """
    _check_system(system)
    checked = checked_contacts(contacts, system.n_q)
    if FREE in [contact.name for contact in checked]:
        raise InvalidProblemError(f"contacts: '{FREE}' is the name of the mode without contact; choose another name")
    if law not in LAWS:
        raise InvalidProblemError(f"unknown law {law!r} of impact; known: {', '.join(LAWS)}")
    if order not in ORDERS:
        raise InvalidProblemError(f"unknown order {order!r} of impacts; known: {', '.join(ORDERS)}")
    rest_speed, touch = check_number(rest_speed, "rest_speed"), check_number(touch, "touch")
    creep = check_number(creep, "creep")
    if rest_speed < 0.0 or touch < 0.0 or not creep > 0.0:
        raise InvalidProblemError(
            f"rest_speed and touch must not be negative, and creep positive, got {rest_speed!r}, {touch!r}, {creep!r}"
        )
    return UnilateralProblem(system, checked, law, order, rest_speed, touch, creep)


def _check_system(system):
    if not isinstance(system, MechanicalSystem):
        raise InvalidProblemError(f"system must be a MechanicalSystem, got {type(system).__name__}")
    if system.n_r or system.n_w or system.force_uses_multipliers:
        raise InvalidProblemError(
            "system: forces that depend on further states r, algebraic variables w or multipliers cannot be combined "
            "with unilateral contacts. Remedy: write the modes as a HybridProblem, with daedal.impact as reset"
        )


class UnilateralProblem(HybridProblem):
    """A mechanism with contacts that open and close; see :func:`unilateral`."""

    system: MechanicalSystem
    contacts: tuple[Contact, ...]
    law: str
    order: str
    rest_speed: float
    touch: float
    creep: float
    modes: ContactModes

    def __init__(self, system, contacts, law, order, rest_speed, touch, creep):
        for name, value in {
            "system": system,
            "contacts": tuple(contacts),
            "law": law,
            "order": order,
            "rest_speed": rest_speed,
            "touch": touch,
            "creep": creep,
            "modes": ContactModes(system, contacts, creep),
            "transitions": (),
            "start": None,
            "params": system.params,
        }.items():
            object.__setattr__(self, name, value)

    def with_params(self, params) -> UnilateralProblem:
        """The same contacts on the system with other parameters."""
        rules = (self.law, self.order, self.rest_speed, self.touch, self.creep)
        other = UnilateralProblem(self.system.with_params(params), self.contacts, *rules)
        if "whole" in self.__dict__ and not self._holds_parameters:  # its machine code serves all parameters
            other.__dict__["whole"] = self.whole.with_params(other.system.params)
        return other

    @property
    def _holds_parameters(self) -> bool:
        """Whether functions that are put together of others hold the parameters inside, as compiled ones do."""
        own = [function for one in self.contacts for function in (one.gap, one.gradient, *one.tangent)]
        return any(map(is_compiled, [*vars(self.system).values(), *own]))

    def _change_rows(self) -> list[tuple[str, str, str]]:
        return [
            (
                "contact",
                str(one.name),
                f"restitution {one.restitution:g}" + (f", friction {one.mu:g}" if one.mu else ""),
            )
            for one in self.contacts
        ]

    @cached_property
    def whole(self) -> MechanicalSystem:
        """The system with all gaps and slips among its constraints, as guards and impacts evaluate it."""
        return whole_system(self.system, self.contacts)

    def corners(self, i: int):
        """The corners of the gap of contact `i`; see :func:`daedal.hybrid.models.contact_corners.corners_of`."""
        return self._corners[i]

    @cached_property
    def _corners(self) -> list:
        return [corners_of(contact, self.system) for contact in self.contacts]

    @property
    def records_idle(self) -> bool:
        """An impact that changes neither contacts nor velocities is round-off."""
        return False

    @property
    def functions(self):
        """How the functions of the mode without contact are evaluated by default; those of others like them."""
        return {self.modes.first: self.modes[self.modes.first].problem.functions}

    @property
    def mode_names(self) -> tuple[str, ...]:
        """The mode without contact; the others are made when a run reaches them."""
        return (self.modes.first,)

    def watch(self) -> ContactWatch:
        """What looks after the contacts in a run, or at a point."""
        return ContactWatch(self)

    def transitions_from(self, mode: str) -> list[Transition]:
        """Those out of a mode that have a guard function."""
        return self.watch().transitions(mode)

    def accumulation_from(self, mode: str) -> Transition | None:
        """The transition that is taken where those out of a mode accumulate."""
        return self.watch().settling(mode)

    def contact_record(self) -> ContactRecord:
        """What reads contacts from a solution."""
        return ContactRecord(self)

    def compiled(self) -> UnilateralProblem:
        """The same model with the functions of the system and of the contacts passed through ``numba.njit``."""
        contacts = [
            replace(
                contact,
                gap=compiled_function(contact.gap),
                normal=compiled_function(contact.normal) if callable(contact.normal) else contact.normal,
                gradient=None if contact.gradient is None else compiled_function(contact.gradient),
            )
            for contact in self.contacts
        ]
        system = self.system.compiled("numba")
        return UnilateralProblem(system, contacts, self.law, self.order, self.rest_speed, self.touch, self.creep)

    def entry(self, t_span, initial) -> tuple[str, Any]:
        """(mode, initial values) with which a run begins.

        Parameters
        ----------
        t_span : tuple of float
        initial : tuple
            (q, v), of which the mode is inferred; or (mode, (q, v)).
        """
        if not isinstance(initial, (tuple, list)) or not len(initial) or isinstance(initial[0], str):
            return initial
        y = StateForm(self.system).stack(tuple(initial), "initial: ")[0]
        n = self.system.n_q
        states = self.watch().at_start(float(t_span[0]), y[:n], y[n : 2 * n])
        return self.modes.name(states), tuple(initial)
