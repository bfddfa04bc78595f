"""Circuit elements as branches, each with two nodes and a law.

The value that a law returns depends on the kind of the branch:

* ``"R"`` (resistor, diode, transistor), ``"I"`` (current source), ``"G"`` (controlled current source): the current;
* ``"C"``: the charge; ``"L"``: the flux;
* ``"V"`` (voltage source), ``"E"`` (controlled voltage source, operational amplifier): an expression that must vanish;
  the current is unknown.

Currents flow through a branch from its positive to its negative node. A law is a function of a
:class:`~daedal.circuits.circuit_equations.CircuitState`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from daedal.circuits.signals import Constant, Signal

BOLTZMANN, ELEMENTARY_CHARGE = 1.380649e-23, 1.602176634e-19  # J/K, C
THERMAL_VOLTAGE = BOLTZMANN * 300.15 / ELEMENTARY_CHARGE  # kT/q at 27 degrees Celsius

DIODE = {"is": 1e-14, "n": 1.0, "vt": THERMAL_VOLTAGE, "cjo": 0.0, "vj": 1.0, "m": 0.5, "fc": 0.5, "tt": 0.0}
TRANSISTOR = {
    "is": 1e-16, "bf": 100.0, "br": 1.0, "vt": THERMAL_VOLTAGE, "ies": None, "ics": None, "af": None, "ar": None,
    "cje": 0.0, "vje": 0.75, "mje": 0.33, "cjc": 0.0, "vjc": 0.75, "mjc": 0.33, "fc": 0.5, "tf": 0.0, "tr": 0.0,
}  # fmt: skip
"""Default parameters of transistors. Those of Ebers and Moll, ``ies``, ``ics``, ``af`` and ``ar``, follow by default
from those of the transport model, ``is``, ``bf`` and ``br``."""

Value = Callable[[str], Any]


def junction(v: Any, saturation: Any, voltage: Any) -> Any:
    """Shockley's equation ``I_S (exp(v / V) - 1)``."""
    return saturation * (np.exp(v / voltage) - 1.0)


def depletion_charge(v: Any, capacitance: Any, built_in: Any, grading: Any, forward: Any) -> Any:
    r"""The charge of a junction with capacitance :math:`C_0 (1 - v/V_j)^{-m}` up to :math:`v = f V_j`.

    For larger voltages the capacitance continues along its tangent, as in SPICE, so that the charge is twice
    differentiable.
    """
    edge = forward * built_in
    slope = (1.0 - forward) ** (-1.0 - grading)
    inner = np.where(v < edge, v, edge)
    below = capacitance * built_in / (1.0 - grading) * (1.0 - (1.0 - inner / built_in) ** (1.0 - grading))
    s = np.where(v < edge, 0.0, v - edge)
    straight = (1.0 - forward) ** -grading
    return below + capacitance * (straight * s + 0.5 * grading / built_in * slope * s * s)


def ebers_moll(be: Any, bc: Any, value: Value) -> tuple[Any, Any]:
    r"""The currents from base to emitter and from base to collector of an npn transistor (Ebers and Moll 1954).

    .. math::

        i_{BE} = I_F - \alpha_R I_R, \quad i_{BC} = I_R - \alpha_F I_F, \qquad
        I_F = I_{ES} (e^{v_{BE}/V_T} - 1), \quad I_R = I_{CS} (e^{v_{BC}/V_T} - 1)
    """
    forward, backward = junction(be, value("ies"), value("vt")), junction(bc, value("ics"), value("vt"))
    return forward - value("ar") * backward, backward - value("af") * forward


def complete_transistor(given: Mapping[str, float | None]) -> dict[str, float | None]:
    """The parameters with the missing Ebers-Moll ones computed from alpha I = I_S, instead of `bf`, `br` and `is`."""
    found = dict(given)
    for alpha, beta, saturation in (("af", "bf", "ies"), ("ar", "br", "ics")):
        gain, scale = found.pop(beta), found["is"]
        assert gain is not None and scale is not None
        known = found[alpha]
        found[alpha] = known = gain / (1.0 + gain) if known is None else known
        if found[saturation] is None:
            found[saturation] = scale / known
    del found["is"]
    return found


def used_parameters(given: Mapping[str, float | None]) -> dict[str, float]:
    """The parameters, except those of charges without capacitance or transit time."""
    unused = [name for name in _CHARGES if name in given and not given[name]]
    unused += [name for charge in unused for name in _CHARGES[charge]]
    if not any(given.get(charge) for charge in ("cjo", "cje", "cjc")):
        unused.append("fc")
    return {name: float(value) for name, value in given.items() if name not in unused and value is not None}


_CHARGES: Mapping[str, tuple[str, ...]] = {
    "cjo": ("vj", "m"), "cje": ("vje", "mje"), "cjc": ("vjc", "mjc"), "tt": (), "tf": (), "tr": ()
}  # fmt: skip


# --- elements ---------------------------------------------------------------------------------------------------------

GROUND = "0"
CURRENT_GIVEN, WITH_CURRENT = ("R", "I", "G"), ("V", "E", "L")
Law = Callable[[Any, Any], Any]
Couplings = Mapping[str, list[tuple[str, str]]]  # for each inductor: the other inductors and their coupling elements


@dataclass(frozen=True)
class Branch:
    """A branch, with its name, nodes, kind and law.

    `linear`: whether a charge or flux is a constant times voltages or currents; `controlled`: whether the law depends
    on other elements; `junction`: the name of the thermal voltage parameter if the current is exponential.

    Examples
    --------
    >>> from daedal import circuits
    >>> circuit = circuits.parse("V1 a 0 PULSE(0 5 1u 1n 1n 10u)\\nR1 a b 1k\\nC1 b 0 1u")
    >>> print([(branch.name, branch.positive, branch.negative, branch.kind) for branch in circuit.branches])
    [('V1', 'a', '0', 'V'), ('R1', 'a', 'b', 'R'), ('C1', 'b', '0', 'C')]
    """

    name: str
    positive: str
    negative: str
    kind: str
    law: Law = field(repr=False)
    linear: bool = True
    controlled: bool = False
    junction: str = ""

    @property
    def nodes(self) -> tuple[str, str]:
        return self.positive, self.negative


@dataclass(frozen=True)
class Element:
    """A netlist element.

    Attributes
    ----------
    name : str
        Name, whose first letter is the kind, as in SPICE.
    nodes : tuple of str
        Names of the nodes at the terminals.
    values : dict
        Parameters; the unnamed one has the name of the element.
    signal : Signal, optional
        Signal of an independent source.
    control : tuple of str
        The nodes of a controlling voltage, the element with a controlling current, or the coupled inductors.
    initial : float, optional
        Initial voltage of a capacitor or current of an inductor.
    type : str
        ``"npn"`` or ``"pnp"``.
    line : int
        Number of the line in the netlist.

    Examples
    --------
    >>> from daedal import circuits
    >>> circuit = circuits.parse("V1 a 0 PULSE(0 5 1u 1n 1n 10u)\\nR1 a b 1k\\nC1 b 0 1u")
    >>> source = circuit.elements[0]
    >>> print(source.name, source.nodes)
    V1 ('a', '0')
    """

    name: str
    nodes: tuple[str, ...]
    values: Mapping[str, float] = field(default_factory=dict)
    signal: Signal | None = None
    control: tuple[str, ...] = ()
    initial: float | None = None
    type: str = ""
    line: int = 0

    @property
    def kind(self) -> str:
        """The letter of the kind, after the prefix of subcircuits."""
        return self.name.rpartition(".")[2][0].upper()

    @property
    def ends(self) -> tuple[str, str]:
        """The first two terminals."""
        return self.nodes[0], self.nodes[1]

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters by full name, such as ``R1`` or ``D1.is``."""
        numbers = dict(self.values) | (self.signal.parameters if self.signal is not None else {})
        return {self.parameter(name): number for name, number in numbers.items()}

    def parameter(self, name: str) -> str:
        """Full name of a parameter."""
        return f"{self.name}.{name}" if name else self.name

    def with_values(self, given: Mapping[str, float]) -> Element:
        """The element with the parameters that are `given` by full name."""
        mine = {name: float(given[full]) for name in self.values if (full := self.parameter(name)) in given}
        if self.signal is None:
            return replace(self, values=dict(self.values) | mine)
        signal: Any = self.signal
        names = signal.parameters
        levels = {name or "level": float(given[full]) for name in names if (full := self.parameter(name)) in given}
        return replace(self, signal=replace(signal, **levels))

    def branches(self, couplings: Couplings) -> Iterator[Branch]:
        """The branches of the element; `couplings` are those of inductors."""
        yield from _BRANCHES[self.kind](self, couplings)


def at_rest(branch: Branch, levels: Mapping[str, float]) -> Iterator[Branch]:
    """The branch that replaces a given one at rest: a short circuit for an inductor, none for a capacitor.

    A branch with a current or voltage given in `levels` is replaced by a source.
    """
    level = levels.get(branch.name)
    if branch.kind == "L" and level is None:
        yield Branch(branch.name, *branch.nodes, "V", lambda state, v: v)
    elif branch.kind == "L":
        yield Branch(branch.name, *branch.nodes, "I", lambda state, v: level)
    elif branch.kind == "C" and level is not None:
        yield Branch(branch.name, *branch.nodes, "V", lambda state, v: v - level)
    elif branch.kind != "C":
        yield branch


# --- one function per kind --------------------------------------------------------------------------------------------


def _resistor(element: Element, _) -> Iterator[Branch]:
    name = element.name
    yield Branch(name, *element.ends, "R", lambda state, v: v / state.value(name))


def _capacitor(element: Element, _) -> Iterator[Branch]:
    name = element.name
    yield Branch(name, *element.ends, "C", lambda state, v: state.value(name) * v)


def _inductor(element: Element, couplings: Couplings) -> Iterator[Branch]:
    name = element.name
    others = couplings.get(name, [])

    def flux(state, i):
        total = state.value(name) * i
        for other, coupling in others:  # M = k sqrt(L1 L2)
            total = total + state.value(coupling) * state.mean(name, other) * state.current(other)
        return total

    yield Branch(name, *element.ends, "L", flux)


def _voltage_source(element: Element, _) -> Iterator[Branch]:
    signal, read = element.signal or Constant(), _reader(element)
    yield Branch(element.name, *element.ends, "V", lambda state, v: v - state.scale * signal.at(state.t, read(state)))


def _current_source(element: Element, _) -> Iterator[Branch]:
    signal, read = element.signal or Constant(), _reader(element)
    yield Branch(element.name, *element.ends, "I", lambda state, v: state.scale * signal.at(state.t, read(state)))


def _by_voltage(element: Element, _) -> Iterator[Branch]:
    name, control = element.name, element.control

    def voltage(state, v):
        return v - state.value(name) * state.voltage(*control)

    def current(state, v):
        return state.value(name) * state.voltage(*control)

    kind, law = ("E", voltage) if element.kind == "E" else ("G", current)
    yield Branch(name, *element.ends, kind, law, controlled=True)


def _by_current(element: Element, _) -> Iterator[Branch]:
    name, (control,) = element.name, element.control

    def voltage(state, v):
        return v - state.value(name) * state.current(control)

    def current(state, v):
        return state.value(name) * state.current(control)

    kind, law = ("E", voltage) if element.kind == "H" else ("G", current)
    yield Branch(name, *element.ends, kind, law, controlled=True)


def _amplifier(element: Element, _) -> Iterator[Branch]:
    """Amplifier with finite gain, or an ideal one, which has equal input voltages and any output current."""
    name, (plus, minus, output, reference) = element.name, element.nodes

    def ideal(state, v):
        return state.voltage(plus, minus)

    def finite(state, v):
        return v - state.value(f"{name}.gain") * state.voltage(plus, minus)

    yield Branch(name, output, reference, "E", finite if "gain" in element.values else ideal, controlled=True)


def _diode(element: Element, _) -> Iterator[Branch]:
    name, values, (anode, cathode) = element.name, element.values, element.nodes

    def current(state, v):
        thermal = state.value(f"{name}.n") * state.value(f"{name}.vt")
        return junction(v, state.value(f"{name}.is"), thermal) + state.gmin * v

    def charge(state, v):
        total = _depletion(state, name, v, ("cjo", "vj", "m", "fc")) if "cjo" in values else 0.0
        return total + state.value(f"{name}.tt") * current(state, v) if "tt" in values else total

    yield Branch(name, anode, cathode, "R", current, junction=f"{name}.vt")
    if "cjo" in values or "tt" in values:
        yield Branch(f"{name}.c", anode, cathode, "C", charge, linear=False)


def _transistor(element: Element, _) -> Iterator[Branch]:
    name, values, (collector, base, emitter) = element.name, element.values, element.nodes
    sign = (
        -1.0 if element.type == "pnp" else 1.0
    )  # a pnp transistor is an npn transistor with all voltages and currents reversed

    def current(k):
        def law(state, v):
            be, bc = (sign * state.voltage(base, other) for other in (emitter, collector))
            return sign * ebers_moll(be, bc, lambda key: state.value(f"{name}.{key}"))[k] + state.gmin * v

        return law

    def charge(keys, time, alpha, saturation):
        def law(state, v):
            total = _depletion(state, name, sign * v, (*keys, "fc")) if keys[0] in values else 0.0
            if time in values:
                strength, thermal = state.value(f"{name}.{saturation}"), state.value(f"{name}.vt")
                moving = state.value(f"{name}.{alpha}") * junction(sign * v, strength, thermal)
                total = total + state.value(f"{name}.{time}") * moving
            return sign * total

        return law

    sides = (
        ("be", emitter, ("cje", "vje", "mje"), "tf", "af", "ies"),
        ("bc", collector, ("cjc", "vjc", "mjc"), "tr", "ar", "ics"),
    )
    for k, (side, other, keys, time, alpha, saturation) in enumerate(sides):
        yield Branch(f"{name}.{side}", base, other, "R", current(k), junction=f"{name}.vt")
        if keys[0] in values or time in values:
            law = charge(keys, time, alpha, saturation)
            yield Branch(f"{name}.c{side}", base, other, "C", law, linear=False)


def _depletion(state: Any, name: str, v: Any, keys: tuple[str, ...]) -> Any:
    return depletion_charge(v, *(state.value(f"{name}.{key}") for key in keys))


def _coupling(element: Element, _) -> Iterator[Branch]:
    yield from ()


def _reader(element: Element) -> Callable[[Any], Callable[[str], Any]]:
    def read(state):
        return lambda name: state.value(element.parameter(name))

    return read


_BRANCHES: dict[str, Callable[..., Iterator[Branch]]] = {
    "R": _resistor,
    "C": _capacitor,
    "L": _inductor,
    "V": _voltage_source,
    "I": _current_source,
    "E": _by_voltage,
    "G": _by_voltage,
    "F": _by_current,
    "H": _by_current,
    "O": _amplifier,
    "D": _diode,
    "Q": _transistor,
    "K": _coupling,
}
KINDS = tuple(_BRANCHES)
