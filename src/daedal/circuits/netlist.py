"""Conversion of netlists to cards, with expanded subcircuits and line numbers in messages.

A line is an element or starts with a dot; ``*`` starts a comment line, ``;`` a comment, ``+`` continues the previous
line. Case is ignored; names are shown as first spelled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from daedal.circuits.elements import GROUND
from daedal.common.tabular import plural
from daedal.errors import InvalidProblemError

EXPONENTS = {"t": 12, "g": 9, "meg": 6, "k": 3, "m": -3, "u": -6, "µ": -6, "n": -9, "p": -12, "f": -15}
MIL = 25.4e-6  # metres

_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:e([+-]?\d+))?([a-zµ]*)", re.ASCII | re.IGNORECASE)


def quantity(text: str) -> float:
    """Value of a number with a suffix; letters after the suffix are a unit, which is ignored, as in SPICE.

    Suffix and power of ten are combined before rounding, so that ``10u`` is 1e-5 to the last bit.

    Examples
    --------
    >>> quantity("4.7k"), quantity("10uF"), quantity("2Meg"), quantity("5V")
    (4700.0, 1e-05, 2000000.0, 5.0)
    """
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise InvalidProblemError(f"{text!r} is not a number; write numbers like 100, 1e3, 4.7k, 10u, 2meg")
    mantissa, exponent, letters = found[1], int(found[2] or 0), found[3].lower()
    if letters.startswith("mil"):
        return float(f"{mantissa}e{exponent}") * MIL
    suffix = "meg" if letters.startswith("meg") else letters[:1]
    value = float(f"{mantissa}e{exponent + EXPONENTS.get(suffix, 0)}")
    if value in (float("inf"), -float("inf")):
        raise InvalidProblemError(f"{text!r} exceeds the range of floating-point numbers")
    return value


def in_engineering(value: float, unit: str = "") -> str:
    """A value as text, with four digits, a suffix and the unit.

    Examples
    --------
    >>> in_engineering(0.0047, "A"), in_engineering(-12.0, "V"), in_engineering(0.0)
    ('4.7 mA', '-12 V', '0')
    """
    size = abs(value)
    for suffix, exponent in EXPONENTS.items():
        if suffix not in ("µ", "m") and exponent > 0 and size >= 10.0**exponent:
            return f"{value / 10.0**exponent:.4g} {suffix}{unit}"
    for suffix, exponent in (("", 0), ("m", -3), ("u", -6), ("n", -9), ("p", -12)):
        if size >= 10.0**exponent:
            return f"{value / 10.0**exponent:.4g} {suffix}{unit}".rstrip()
    return f"{value:.4g} {unit}".rstrip()


# --- netlists ---------------------------------------------------------------------------------------------------------

DEEPEST = 20  # maximum nesting depth of subcircuits
MOST_LINES = 100_000  # maximum number of cards of all expanded subcircuits
OUTPUT_CARDS = (".op", ".print", ".plot", ".probe", ".save", ".options", ".option", ".width", ".four", ".ac", ".dc")
"""Cards that concern output, which are ignored."""

_TOKEN = re.compile(r"[=()]|[^\s=(),]+")


@dataclass(frozen=True)
class Card:
    """A line with its tokens."""

    line: int
    text: str
    tokens: tuple[str, ...]

    @property
    def head(self) -> str:
        """The first token in lower case."""
        return self.tokens[0].lower()

    def fail(self, what: str) -> NoReturn:
        """Raise an error that names the line."""
        raise InvalidProblemError(f"line {self.line} of the netlist: {what}\n    {self.text}")

    def number(self, text: str) -> float:
        """Value of a number; an error names the line."""
        try:
            return quantity(text)
        except InvalidProblemError as error:
            self.fail(str(error))

    def take(self, count: int, words: str) -> list[str]:
        """The `count` tokens after the first; `words` describes them in the error message."""
        given = self.tokens[1 : 1 + count]
        if len(given) < count or set(given) & set("=()"):
            self.fail(f"{self.tokens[0]} needs {words}")
        return list(given)

    def assignments(self, first: int) -> dict[str, str]:
        """The pairs ``name = value`` that start at the token with index `first`; parentheses are ignored."""
        rest = [token for token in self.tokens[first:] if token not in "()"]
        if len(rest) % 3 or any(token != "=" for token in rest[1::3]) or "=" in rest[::3] + rest[2::3]:
            self.fail(f"{' '.join(rest)!r} should consist of pairs name=value")
        return {name.lower(): value for name, value in zip(rest[::3], rest[2::3])}


@dataclass(frozen=True)
class DeviceModel:
    """A ``.model`` card, with its type and its parameters as written."""

    card: Card
    type: str
    values: Mapping[str, str]


@dataclass
class Scope:
    """Scope of a card: the netlist itself, or one call of a subcircuit."""

    names: Names
    prefix: str = ""
    ports: Mapping[str, str] = field(default_factory=dict)
    models: dict[str, DeviceModel] = field(default_factory=dict)
    outer: Scope | None = None

    def node(self, name: str) -> str:
        """Name of a node in the complete circuit."""
        key = name.lower()
        if key in (GROUND, "gnd"):
            return GROUND
        return self.ports.get(key) or self.names.spelling("node", self.prefix + name)

    def element(self, name: str) -> str:
        """Name of an element in the complete circuit."""
        return self.names.spelling("element", self.prefix + name)

    def model(self, name: str) -> DeviceModel | None:
        """A model by name, in this scope or an outer one."""
        found = self.models.get(name.lower())
        return found if found is not None or self.outer is None else self.outer.model(name)


class Names:
    """The first spelling of each name."""

    def __init__(self):
        self._first: dict[tuple[str, str], str] = {}

    def spelling(self, kind: str, name: str) -> str:
        """The first spelling of a name."""
        return self._first.setdefault((kind, name.lower()), name)


@dataclass(frozen=True)
class Subcircuit:
    """The cards of a ``.subckt``, with the names of its ports."""

    card: Card
    ports: tuple[str, ...]
    cards: list[Card] = field(default_factory=list)


def cards(text: str) -> Iterator[Card]:
    """Lines of a netlist up to ``.end``, with continuations joined and comments removed."""
    waiting: list[tuple[int, str]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition(";")[0].strip()
        if not line or line.startswith("*"):
            continue
        if line.startswith("+"):
            if not waiting:
                Card(number, raw.strip(), ()).fail("there is no line before it that '+' could continue")
            waiting[-1] = waiting[-1][0], f"{waiting[-1][1]} {line[1:]}"
        else:
            waiting.append((number, line))
    for number, line in waiting:
        tokens = tuple(_TOKEN.findall(line))
        card = Card(number, line, tokens)
        if not tokens or tokens[0] in "=()":
            card.fail("a line must begin with the name of an element, with '.' or with '*'")
        if card.head == ".end":
            return
        yield card


def unfolded(text: str) -> Iterator[tuple[Card, Scope]]:
    """The cards of a netlist and of its expanded subcircuits, each with its scope."""
    subcircuits: dict[str, Subcircuit] = {}
    own = list(_taken_apart(cards(text), subcircuits))
    _refuse_too_many(own, subcircuits)
    yield from _walk(own, Scope(Names()), subcircuits, 0)


def _taken_apart(given: Iterator[Card], subcircuits: dict[str, Subcircuit]) -> Iterator[Card]:
    """The cards outside subcircuits; subcircuits are added to `subcircuits`."""
    inside: Subcircuit | None = None
    for card in given:
        if card.head == ".subckt":
            if inside is not None:
                card.fail("a subcircuit cannot be defined within another one; close the other one with .ends")
            if len(card.tokens) < 3 or set(card.tokens[1:]) & set("=()"):
                card.fail(".subckt needs a name and its nodes")
            inside = subcircuits[card.tokens[1].lower()] = Subcircuit(card, tuple(t.lower() for t in card.tokens[2:]))
        elif card.head == ".ends":
            if inside is None:
                card.fail("there is no .subckt that this .ends could close")
            inside = None
        elif inside is not None:
            inside.cards.append(card)
        else:
            yield card
    if inside is not None:
        inside.card.fail("this subcircuit is not closed by .ends")


def _refuse_too_many(own: list[Card], subcircuits: Mapping[str, Subcircuit]) -> None:
    """Raise an error before the expansion if expanded subcircuits have too many lines."""
    lines: dict[str, int] = {}

    def called(card: Card, depth: int) -> int:
        name = card.tokens[-1].lower() if card.head[0] == "x" else ""
        # deeper nesting is reported by the expansion
        if name in subcircuits and name not in lines and depth <= DEEPEST:
            lines[name] = 0  # ends the recursion of a subcircuit that calls itself
            own = subcircuits[name].cards
            lines[name] = len(own) + sum(called(card, depth + 1) for card in own)
        return lines.get(name, 0)

    total = 0
    for card in own:
        total += called(card, 0)
        if total > MOST_LINES:
            card.fail(f"expanded subcircuits have {total} lines up to here, more than the limit of {MOST_LINES}")


def _walk(
    given: list[Card], scope: Scope, subcircuits: Mapping[str, Subcircuit], depth: int
) -> Iterator[tuple[Card, Scope]]:
    for card in given:
        if card.head == ".model":
            _enter_model(card, scope)
    for card in given:
        if card.head == ".model":
            continue
        if card.head[0] != "x":
            yield card, scope
            continue
        if depth >= DEEPEST:
            card.fail(f"subcircuits are nested more than {DEEPEST} deep; does one call itself?")
        yield from _walk(*_called(card, scope, subcircuits), subcircuits, depth + 1)


def _called(card: Card, scope: Scope, subcircuits: Mapping[str, Subcircuit]) -> tuple[list[Card], Scope]:
    """The cards of the subcircuit called by a line, and the scope of this call."""
    *nodes, name = card.tokens[1:] or ("",)
    found = subcircuits.get(name.lower())
    if found is None:
        known = ", ".join(subcircuits) or "none"
        card.fail(f"there is no subcircuit {name!r}; known: {known}")
    if len(nodes) != len(found.ports):
        card.fail(f"subcircuit {name} needs {plural(len(found.ports), 'node')}, got {len(nodes)}")
    ports = {port: scope.node(node) for port, node in zip(found.ports, nodes)}
    return found.cards, Scope(scope.names, f"{scope.prefix}{card.tokens[0]}.", ports, outer=scope)


def _enter_model(card: Card, scope: Scope) -> None:
    name, kind = card.take(2, "a name and a type: .model NAME TYPE(name=value ...)")
    if name.lower() in scope.models:
        card.fail(f"the model {name} is already defined in line {scope.models[name.lower()].card.line}")
    scope.models[name.lower()] = DeviceModel(card, kind.lower(), card.assignments(3))
