"""The modes of a mechanism with contacts: what each contact does, and the equations, made when they are asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from daedal.hybrid.models.contact import Contact
from daedal.hybrid.models.contact_equations import Slip, closed, sliding, sticking, tangents_of
from daedal.hybrid.problem import Mode
from daedal.problems import MechanicalSystem

FREE = "free"
OPEN, CLOSED, STICK, SLIP, SLIP_PLUS, SLIP_MINUS = "open", "closed", "stick", "slip", "slip+", "slip-"
SIDES = {SLIP_PLUS: 1, SLIP_MINUS: -1}
_WORDS = {CLOSED: "", STICK: " sticks", SLIP: " slips", SLIP_PLUS: " slips+", SLIP_MINUS: " slips-"}

States = tuple[str, ...]
"""What each contact does."""


def slips(state: str) -> bool:
    """Whether a contact slides."""
    return state in (SLIP, SLIP_PLUS, SLIP_MINUS)


class ContactModes(Mapping[str, Mode]):
    """The modes by name, of which there may be thousands: each is made when it is asked for, and kept.

    A mode is called "free", or by the contacts that are closed: "floor" without friction, "floor sticks",
    "floor slips+", "floor slips-" (in space "floor slips"), joined by " + ".
    """

    def __init__(self, system: MechanicalSystem, contacts: Sequence[Contact], creep: float):
        self._system, self._contacts, self._creep = system, contacts, creep
        self._choices = [_choices(contact) for contact in contacts]
        self._made: dict[str, Mode] = {}

    def name(self, states: States) -> str:
        """The name of the mode in which the contacts do this."""
        pairs = zip(self._contacts, states, strict=True)
        return " + ".join(f"{contact.name}{_WORDS[state]}" for contact, state in pairs if state != OPEN) or FREE

    def states(self, name: str) -> States:
        """What each contact does in a mode."""
        free = name == FREE and name == self.first
        found = (OPEN,) * len(self._contacts) if free else self._read(name, 0)
        if found is None:
            raise KeyError(name)
        return found

    def _read(self, rest: str, i: int) -> States | None:
        if i == len(self._contacts):
            return None if rest else ()
        for state in self._choices[i]:
            if state == OPEN:
                found = self._read(rest, i + 1) if rest or i else None
            else:
                label = f"{self._contacts[i].name}{_WORDS[state]}"
                if not rest.startswith(label):
                    continue
                behind = rest[len(label) :]
                if behind and not behind.startswith(" + "):
                    continue
                found = self._read(behind[3:], i + 1)
            if found is not None:
                return (state, *found)
        return None

    def __getitem__(self, name: str) -> Mode:
        if name not in self._made:
            self._made[name] = Mode(self._equations(self.states(name)))
        return self._made[name]

    def _equations(self, states: States) -> MechanicalSystem:
        system, contacts = self._system, self._contacts
        touching = [i for i, state in enumerate(states) if state != OPEN]
        chosen = [i for i in touching if not contacts[i].is_pressed]  # their gaps are constraints
        rows = {i: system.n_constraints + k for k, i in enumerate(chosen)}
        tangents = {i: tangents_of(contacts[i], system.params) for i in touching}
        held = [tangent for i in touching if states[i] == STICK for tangent in tangents[i]]
        moving = [
            Slip(
                tuple(tangents[i]),
                contacts[i].mu,
                rows.get(i, -1),
                SIDES.get(states[i], 0),
                self._creep,
                contacts[i].pressure if contacts[i].is_pressed else None,
            )
            for i in touching
            if slips(states[i]) and contacts[i].mu > 0.0
        ]
        return sliding(sticking(closed(system, chosen, contacts), held), moving)

    @property
    def first(self) -> str:
        """The mode in which all contacts are open that can be; those that cannot stick."""
        return self.name(tuple(choices[0] for choices in self._choices))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and ((name == FREE == self.first) or self._read(name, 0) is not None)

    def __iter__(self) -> Iterator[str]:
        return (self.name(states) for states in itertools.product(*self._choices))

    def __len__(self) -> int:
        count = 1
        for choices in self._choices:
            count *= len(choices)
        return count

    def __getstate__(self):
        return {**self.__dict__, "_made": {}}


def _choices(contact: Contact) -> tuple[str, ...]:
    if contact.is_pressed:
        return (STICK, SLIP_PLUS, SLIP_MINUS) if len(contact.tangent) == 1 else (STICK, SLIP)
    if not contact.is_rough:
        return OPEN, CLOSED
    return (OPEN, STICK, SLIP_PLUS, SLIP_MINUS) if len(contact.tangent) == 1 else (OPEN, STICK, SLIP)
