"""Conversion of netlist cards to elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from daedal.circuits.elements import DIODE, KINDS, TRANSISTOR, Element, complete_transistor, used_parameters
from daedal.circuits.netlist import OUTPUT_CARDS, Card, Scope, unfolded
from daedal.circuits.signals import Constant, PiecewiseLinear, Pulse, Signal, Sine
from daedal.errors import InvalidProblemError

CONTROLLING = ("V", "L", "E", "H", "O")
"""Kinds of elements whose current is an unknown in every form, so that it can control a source."""


@dataclass
class Contents:
    """Elements, initial values and interval of a netlist."""

    elements: list[Element] = field(default_factory=list)
    title: str = ""
    held: dict[str, float] = field(default_factory=dict)  # initial node voltages
    t_span: tuple[float, float] | None = None
    ignored: list[str] = field(default_factory=list)


def contents(text: str) -> Contents:
    """Read a netlist."""
    found = Contents()
    by_name: dict[str, tuple[Element, Card]] = {}
    for card, scope in unfolded(text):
        if card.head.startswith("."):
            _enter_card(card, scope, found)
            continue
        element = _element(card, scope, found)
        if element.name in by_name:
            card.fail(f"the element {element.name} is already defined in line {by_name[element.name][0].line}")
        by_name[element.name] = element, card
        found.elements.append(element)
    for element, card in by_name.values():
        _check_control(element, card, by_name)
    if not found.elements:
        raise InvalidProblemError("the netlist has no elements")
    return found


def _enter_card(card: Card, scope: Scope, found: Contents) -> None:
    if card.head == ".title":
        found.title = card.text.partition(" ")[2].strip()
    elif card.head == ".ic":
        _enter_initial(card, scope, found)
    elif card.head == ".tran":
        numbers = [card.number(token) for token in card.tokens[1:] if token.lower() != "uic"]
        if len(numbers) < 2 or not numbers[1] > 0.0:
            card.fail(".tran needs a step and an end time, such as .tran 1u 10m")
        found.t_span = 0.0, numbers[1]
    elif card.head in OUTPUT_CARDS:
        found.ignored.append(f"line {card.line}: {card.text}")
    else:
        card.fail(f"{card.tokens[0]} is unknown; known cards: .model, .subckt, .ends, .ic, .tran, .title and .end")


def _enter_initial(card: Card, scope: Scope, found: Contents) -> None:
    """Store the node voltages of a card such as ``.ic v(a)=1 v(b)=2``."""
    rest = card.tokens[1:]
    groups = [rest[k : k + 6] for k in range(0, len(rest), 6)]
    for group in groups:
        if len(group) != 6 or (group[0].lower(), group[1], group[3], group[4]) != ("v", "(", ")", "="):
            card.fail(
                ".ic accepts node voltages, such as .ic v(out)=1; give inductor currents by ic=... of the inductor"
            )
        found.held[scope.node(group[2])] = card.number(group[5])


def _element(card: Card, scope: Scope, found: Contents) -> Element:
    kind = card.head[0].upper()
    if kind not in KINDS:
        hint = "; a title must start with '*' or '.title'" if not found.elements else ""
        card.fail(f"elements that begin with {card.tokens[0][0]!r} are unknown; known: {', '.join(KINDS)}{hint}")
    if "." in card.tokens[0]:
        card.fail("the name of an element must not contain a dot, which is reserved for subcircuits")
    element = _READERS[kind](card, scope, found)
    ends = element.nodes[:2] if kind != "O" else element.nodes[2:]
    if len(ends) == 2 and ends[0] == ends[1]:
        card.fail(f"both ends of {element.name} are connected to node {ends[0]}")
    return element


# --- one function per kind --------------------------------------------------------------------------------------------

_PARTS = {"R": "resistance", "C": "capacitance", "L": "inductance"}


def _part(card: Card, scope: Scope, found: Contents) -> Element:
    what = _PARTS[card.head[0].upper()]
    *nodes, text = card.take(3, f"two nodes and its {what}")
    given, value = card.assignments(4), card.number(text)
    if not value > 0.0:
        card.fail(f"the {what} {text} must be positive")
    initial = given.pop("ic", None)
    if given or (what == "resistance" and initial is not None):
        card.fail(f"unknown parameter {', '.join(given) or 'ic'}; only C and L have a parameter, ic")
    start = None if initial is None else card.number(initial)
    return _made(card, scope, nodes, {"": value}, initial=start)


def _source(card: Card, scope: Scope, found: Contents) -> Element:
    nodes = card.take(2, "two nodes and a signal, such as 5, SIN(0 1 50) or PULSE(0 5 1u)")
    signal, ignored = _signal(card)
    if ignored:
        found.ignored.append(f"line {card.line}: {ignored}")
    return _made(card, scope, nodes, {}, signal=signal)


def _signal(card: Card) -> tuple[Signal, str]:
    """The signal of a source such as ``5``, ``DC 5`` or ``DC 0 AC 1 SIN(0 1 50)``, and the ignored AC specification;
    a function of time takes precedence over the DC value."""
    rest = [token for token in card.tokens[3:] if token not in "()"]
    level, shape, ignored, k = None, None, "", 0
    while k < len(rest):
        word = rest[k].lower()
        numbers = _numbers_from(card, rest, k + (word in ("dc", "ac") or word in _SHAPES))
        if word in _SHAPES:
            shape = _shaped(card, word, numbers)
            k += 1 + len(numbers)
        elif word == "ac":
            ignored = f"AC {' '.join(rest[k + 1 : k + 1 + len(numbers)])}"
            k += 1 + len(numbers)
        elif word == "dc" and numbers:
            level, k = numbers[0], k + 2
        elif numbers:
            level, k = numbers[0], k + 1
        else:
            card.fail(f"{rest[k]!r} is unknown; signals are DC, SIN, PULSE or PWL")
    if shape is not None:
        return shape, ignored
    return Constant(level or 0.0), ignored


def _numbers_from(card: Card, tokens: list[str], k: int) -> list[float]:
    numbers = []
    while k < len(tokens) and tokens[k].lower() not in ("dc", "ac", *_SHAPES):
        numbers.append(card.number(tokens[k]))
        k += 1
    return numbers


def _shaped(card: Card, word: str, numbers: list[float]) -> Signal:
    fewest, most, make = _SHAPES[word]
    if not fewest <= len(numbers) <= most:
        card.fail(f"{word.upper()} takes {fewest} to {most:g} numbers, not {len(numbers)}")
    try:
        return make(numbers)
    except InvalidProblemError as error:
        card.fail(str(error))


def _piecewise(numbers: list[float]) -> PiecewiseLinear:
    if len(numbers) % 2:
        raise InvalidProblemError("PWL takes pairs of time and value")
    return PiecewiseLinear(tuple(numbers[::2]), tuple(numbers[1::2]))


_SHAPES: Mapping[str, tuple[int, float, Callable[[list[float]], Signal]]] = {
    "sin": (3, 6, lambda numbers: Sine(*numbers)),
    "pulse": (2, 7, lambda numbers: Pulse(*numbers)),
    "pwl": (4, float("inf"), _piecewise),
}


def _by_voltage(card: Card, scope: Scope, found: Contents) -> Element:
    *nodes, text = card.take(5, "two nodes, the two nodes of the controlling voltage, and a factor")
    control = tuple(scope.node(node) for node in nodes[2:])
    return _made(card, scope, nodes[:2], {"": card.number(text)}, control=control)


def _by_current(card: Card, scope: Scope, found: Contents) -> Element:
    *nodes, control, text = card.take(4, "two nodes, the element with the controlling current, and a factor")
    return _made(card, scope, nodes, {"": card.number(text)}, control=(scope.element(control),))


def _coupling(card: Card, scope: Scope, found: Contents) -> Element:
    *coils, text = card.take(3, "two inductors and a factor")
    value = card.number(text)
    if not -1.0 < value < 1.0:
        card.fail(f"the factor {text} of a coupling must lie between -1 and 1")
    return _made(card, scope, [], {"": value}, control=tuple(scope.element(coil) for coil in coils))


def _amplifier(card: Card, scope: Scope, found: Contents) -> Element:
    count = card.tokens.index("=") - 2 if "=" in card.tokens else len(card.tokens) - 1
    words = "its inputs + and -, its output and, if not the ground, a reference"
    nodes = card.take(4 if count == 4 else 3, words)
    given = card.assignments(1 + len(nodes))
    values = {"gain": card.number(given.pop("gain"))} if "gain" in given else {}
    if given:
        card.fail(f"unknown parameter {', '.join(given)}; an operational amplifier has gain, infinite by default")
    return _made(card, scope, nodes if len(nodes) == 4 else [*nodes, "0"], values)


def _diode(card: Card, scope: Scope, found: Contents) -> Element:
    nodes = card.take(2, "anode and cathode, and optionally a model")
    _, given = _modelled(card, scope, 3, {"d": DIODE})
    return _made(card, scope, nodes, used_parameters(given))


def _transistor(card: Card, scope: Scope, found: Contents) -> Element:
    nodes = card.take(3, "collector, base, emitter and a model: Q1 C B E NAME with .model NAME NPN(bf=100)")
    kind, given = _modelled(card, scope, 4, {"npn": TRANSISTOR, "pnp": TRANSISTOR})
    return _made(card, scope, nodes, used_parameters(complete_transistor(given)), type=kind)


def _modelled(
    card: Card, scope: Scope, first: int, types: Mapping[str, Mapping[str, float | None]]
) -> tuple[str, dict[str, float | None]]:
    """Type and parameters; the line overrides the model, which overrides the defaults."""
    named = first < len(card.tokens) and card.tokens[first + 1 : first + 2] != ("=",)
    kind, given = next(iter(types)), []
    if named:
        found = scope.model(card.tokens[first])
        if found is None:
            card.fail(f"there is no model {card.tokens[first]!r}; write .model {card.tokens[first]} {kind}(name=value)")
        if found.type not in types:
            card.fail(f"{card.tokens[0]} needs a model of type {' or '.join(types)}, not {found.type}")
        kind, given = found.type, [(found.card, found.values)]
    given.append((card, card.assignments(first + named)))
    values = dict(types[kind])
    for where, assigned in given:
        for name, text in assigned.items():
            if name not in values:
                where.fail(f"{kind} has no parameter {name!r}; it has {', '.join(values)}")
            values[name] = where.number(text)
            if values[name] < 0.0 or (values[name] == 0.0 and name in _POSITIVE):  # type: ignore[operator]
                where.fail(f"{name}={text} must {'be positive' if name in _POSITIVE else 'not be negative'}")
    return kind, values


_POSITIVE = ("is", "n", "vt", "vj", "vje", "vjc", "bf", "br")


def _made(card: Card, scope: Scope, nodes: list[str], values: Mapping[str, float], **others) -> Element:
    name = scope.element(card.tokens[0])
    return Element(name, tuple(scope.node(node) for node in nodes), values, line=card.line, **others)


_READERS: Mapping[str, Callable[[Card, Scope, Contents], Element]] = {
    **dict.fromkeys("RCL", _part),
    **dict.fromkeys("VI", _source),
    **dict.fromkeys("EG", _by_voltage),
    **dict.fromkeys("FH", _by_current),
    "K": _coupling,
    "O": _amplifier,
    "D": _diode,
    "Q": _transistor,
}


def _check_control(element: Element, card: Card, by_name: Mapping[str, tuple[Element, Card]]) -> None:
    """Raise an error unless controlling and coupled elements exist and have the right kind."""
    if element.kind not in "FHK":
        return
    for name in element.control:
        other = by_name.get(name)
        if other is None:
            card.fail(f"there is no element {name}, to which {element.name} refers")
        if element.kind == "K" and other[0].kind != "L":
            card.fail(f"{name} is not an inductor, so it cannot be coupled")
        if element.kind != "K" and other[0].kind not in CONTROLLING:
            card.fail(f"the current of {name} is not an unknown; put a voltage source of 0 V in series with it")
    if len(set(element.control)) != len(element.control):
        card.fail(f"{element.control[0]} cannot be coupled to itself")
