"""Functions whose switches are set by data, and which are smooth beyond the surfaces at which they would switch.

Every switching function of a graph has an entry in the argument "modes". If it is NaN, the function is evaluated as
written. A number selects a branch, on which the function remains wherever it is evaluated: the side of a surface, 1 or
-1; the piece of a table; the integer value of ``floor`` and similar functions. The equations of a branch are thus
defined on both sides of its end, as the location of that end requires (Wijckmans 1996, section 7.4).
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.symbolic.derivative import directional
from daedal.symbolic.graph import Graph
from daedal.symbolic.operations import OPERATIONS, TABLES

_LONGEST = 48  # maximum length of a displayed expression in characters; of a longer one only the arguments are named
_INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "less": "<", "less_equal": "<=", "power": "**"}
_INFIX |= {"remainder": "%", "floor_divide": "//"}
_NAMES = {"absolute": "abs", "minimum": "min", "maximum": "max", "locate": "table", "negative": "-"}
_TIGHT = ("multiply", "divide", "power", "remainder", "floor_divide")
_LOOSE = ("add", "subtract", "negative")


def words(graph: Graph, i: int) -> str:
    """The expression of a node if it is short; otherwise its operation and the arguments on which it depends."""
    text = _written(graph, i, 0)
    if text is not None and len(text) <= _LONGEST:
        return text
    operation = graph.operations[i]
    if operation in ("less", "less_equal"):
        return f"a comparison of {graph.origin(i)}"
    return f"{_NAMES.get(operation, operation)} of {graph.origin(i)}"


def _written(graph: Graph, i: int, depth: int) -> str | None:
    operation, datum = graph.operations[i], graph.data[i]
    if operation == "constant":
        return f"{datum:g}"
    if operation == "argument":
        name, index = datum
        return name if name in graph.scalars else f"{name}[{index}]"
    if depth > 6:
        return None
    operands = graph.operands[i]
    parts = [_written(graph, k, depth + 1) for k in operands]
    if any(part is None for part in parts):
        return None
    if operation in _INFIX:
        tight, (a, b) = operation in _TIGHT, parts
        if tight and graph.operations[operands[0]] in _LOOSE:
            a = f"({a})"
        if (tight or operation == "subtract") and graph.operations[operands[1]] in _LOOSE:
            b = f"({b})"
        return f"{a} {_INFIX[operation]} {b}"
    if operation == "negative":
        return f"-({parts[0]})" if graph.operations[operands[0]] in _LOOSE else f"-{parts[0]}"
    if operation in ("where", "pick"):
        return None
    return f"{_NAMES.get(operation, operation)}({', '.join(map(str, parts))})"


NAME = "modes"
_WHOLE: dict[str, Callable[[float], float]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "rint": round,
    "trunc": math.trunc,
    "fmod": math.trunc,
    "remainder": math.floor,
    "floor_divide": math.floor,
}
_RESTS = ("fmod", "remainder")
_QUOTIENTS = (*_RESTS, "floor_divide")  # these switch at integer quotients of their operands
_CONDITIONS = ("less", "less_equal")
_KINKS = ("minimum", "maximum", "absolute")
_SIDES = (*_CONDITIONS, *_KINKS, "sign", "copysign")
FOLLOWED = (*_SIDES, *_WHOLE, "locate")
"""Operations whose switches are tracked. "equal" is not among them, since it holds only at single points."""


@dataclass(frozen=True)
class Followed:
    """A switching function selected by an entry of the modes.

    Attributes
    ----------
    function : int
        Node of u; a piece of the function is valid while u stays within the bounds of its mode.
    points : tuple of float
        Switching points: one for a surface, all of them for a table, none for integer-valued functions; for "sine" the
        value that the sine of u crosses.
    kind : str
        "surface", "locate", the name of the rounding function, or "sine": even modes above the point, odd ones below
        it.
    above_at_point : bool
        Whether a surface itself belongs to its upper side.
    jumps : bool
        Whether the function may jump there; abs, min and max only have a kink.
    text, site : str
        The condition as written by the user, if it can be reconstructed, with file and line.
    """

    function: int
    points: tuple[float, ...]
    kind: str
    above_at_point: bool
    jumps: bool
    text: str
    site: str

    @property
    def is_surface(self) -> bool:
        """Whether its modes are the two sides of a surface."""
        return self.kind == "surface"

    @property
    def is_kink_in_time(self) -> bool:
        """Whether y' may be continuous at a known time of the switch."""
        return self.kind == "locate" or not self.jumps

    @property
    def name(self) -> str:
        """Name for events."""
        return f"{self.text} at {self.site.replace(' line ', ':')}" if self.site else self.text

    def mode_at(self, u: float) -> float:
        """The mode at the value u of the function as written."""
        if self.kind == "surface":
            return 1.0 if u > self.points[0] or (u == self.points[0] and self.above_at_point) else -1.0
        if self.kind == "locate":
            return float(bisect_right(self.points, u))
        if self.kind == "sine":
            angle = math.asin(self.points[0])
            turns = math.floor((u - angle) / math.tau) if math.isfinite(u) else math.nan
            return 2.0 * turns + (u - angle - turns * math.tau >= math.pi - 2.0 * angle)
        return float(_WHOLE[self.kind](u)) if math.isfinite(u) else math.nan

    def bounds(self, mode: float) -> tuple[float, float]:
        """Interval of u in which the mode is valid."""
        if self.kind == "surface":
            return (self.points[0], math.inf) if mode > 0.0 else (-math.inf, self.points[0])
        if self.kind == "locate":
            i = int(mode)
            return self.points[i - 1] if i > 0 else -math.inf, self.points[i] if i < len(self.points) else math.inf
        if self.kind == "rint":
            return mode - 0.5, mode + 0.5
        if self.kind == "sine":
            return self._passes(mode), self._passes(mode + 1.0)
        below = 1.0 if self.kind == "ceil" or (self.kind in ("trunc", "fmod") and mode <= 0.0) else 0.0
        above = 1.0 if self.kind == "floor" or (self.kind in ("trunc", "fmod") and mode >= 0.0) else 0.0
        return mode - below, mode + above

    def _passes(self, mode: float) -> float:
        """The angle at which a mode begins: the sine crosses its point there."""
        angle, turns = math.asin(self.points[0]), math.floor(mode / 2.0)
        return turns * math.tau + (angle if mode == 2.0 * turns else math.pi - angle)

    def beyond(self, mode: float, direction: int) -> float:
        """The mode that follows when u passes the upper (1) or the lower bound (-1)."""
        return float(direction) if self.kind == "surface" else mode + direction


class Modes:
    """The switching functions of a graph, and nodes in which these are set by data.

    Parameters
    ----------
    graph : Graph
    allowed : iterable of str
        Arguments that switching functions may depend on, in addition to the parameters; other functions are not
        tracked.
    constants : iterable of str
        Arguments that are constant in a run: functions of these alone do not switch.
    """

    def __init__(self, graph: Graph, allowed: Iterable[str], constants: Iterable[str] = ("p",)):
        self.graph = graph
        self.switches: list[Followed] = []
        self._constants = {*constants, NAME}
        self._allowed = {*allowed} | self._constants
        self._made: dict[int, int] = {}
        self._known: dict[tuple, int] = {}
        self._arguments: dict[int, frozenset[str]] = {}

    def nodes(self, plain: Sequence[int]) -> list[int]:
        """The same nodes with their switches set by the modes."""
        graph, made = self.graph, self._made
        for i in graph.needed(plain):
            if i in made:
                continue
            operands = tuple(made[k] for k in graph.operands[i])
            followed = self._followed(i, operands) if graph.operations[i] in FOLLOWED and i in graph.sites else None
            made[i] = remade(graph, i, operands) if followed is None else followed
        return [made[i] for i in plain]

    def argument(self, j: int) -> int:
        """Node of a mode."""
        return self.graph.argument(NAME, j)

    def depends_on(self, i: int) -> frozenset[str]:
        """Names of the arguments that a node depends on."""
        if i not in self._arguments:
            graph = self.graph
            read = {graph.data[k][0] for k in graph.needed([i]) if graph.operations[k] == "argument"}
            self._arguments[i] = frozenset(read)
        return self._arguments[i]

    def _wave(self, u: int, point: float) -> tuple[int, float, bool] | None:
        """For u a + b, with u the sine of an angle that grows with time: the angle, the sine at which it equals
        `point`, and whether a > 0; None if it has another form or never reaches the point."""
        graph, rising = self.graph, True
        while graph.operations[u] in ("negative", "multiply", "add", "subtract", "divide"):
            operation, operands = graph.operations[u], graph.operands[u]
            if operation == "negative":
                u, point, rising = operands[0], -point, not rising
                continue
            fixed = [k for k in (0, 1) if graph.is_constant(operands[k])]
            if not fixed or (operation == "divide" and fixed[0] == 0):
                return None
            number, u = graph.data[operands[fixed[0]]], operands[1 - fixed[0]]
            if operation in ("multiply", "divide"):
                if number == 0.0:
                    return None
                point = point / number if operation == "multiply" else point * number
                rising = rising == (number > 0.0)
            elif operation == "add":
                point -= number
            elif fixed[0] == 1:
                point += number
            else:
                point, rising = number - point, not rising
        if graph.operations[u] not in ("sin", "cos") or not abs(point) < 1.0:
            return None
        angle = graph.operands[u][0]
        t = graph.argument("t", 0)
        if not self.depends_on(angle) <= {"t", *self._constants} or "t" not in self.depends_on(angle):
            return None
        [rate] = directional(graph, [angle], {t: graph.one})
        if not self.depends_on(rate) <= self._constants:
            return None
        if graph.operations[u] == "cos":
            angle = graph.add(angle, graph.constant(0.5 * math.pi))
        return angle, point, rising

    # --- one node -----------------------------------------------------------------------------------------------------

    def _followed(self, i: int, operands: tuple[int, ...]) -> int | None:
        """The node with its switch set by data; None if the switch is not tracked."""
        graph, operation = self.graph, self.graph.operations[i]
        if operation in _SIDES:
            u, point, same = _surface(graph, operation, operands)
            key: tuple = ("surface", u, point)
            wave = self._wave(u, point)
            if wave is not None:
                u, point, rising = wave
                key, same = ("sine", u, point), same == rising
        elif operation == "locate":
            u, same, key = operands[0], True, ("locate", operands[0], graph.data[i])
        else:
            u, same = graph.divide(*operands) if operation in _QUOTIENTS else operands[0], True
            key = ("floor" if operation in ("remainder", "floor_divide") else operation, u)
        names = self.depends_on(u)
        if names <= self._constants or not names <= self._allowed:
            return None
        j, jumps = self._known.get(key), operation not in _KINKS
        if j is None:
            j = self._known[key] = len(self.switches)
            above = (operation == "less_equal") != same if operation in _CONDITIONS else same
            points = (float(key[2]),) if operation in _SIDES else key[2] if operation == "locate" else ()
            kind = key[0]
            text = words(graph, i)
            self.switches.append(Followed(u, points, kind, above, jumps, text, graph.sites[i]))
        elif jumps and not self.switches[j].jumps:
            self.switches[j] = replace(self.switches[j], jumps=True)
        mode = self.argument(j)
        live = graph.apply("not_equal", mode, mode)
        plain = remade(graph, i, operands)
        if operation in _SIDES:
            upper = graph.apply("less", graph.zero, mode) if same else graph.apply("less", mode, graph.zero)
            if key[0] == "sine":
                even = graph.apply("less", graph.apply("remainder", mode, graph.constant(2.0)), graph.constant(0.5))
                upper = even if same else graph.opposite(even)
            if operation in _CONDITIONS:  # a < b holds below the surface of a - b
                below = graph.apply("less", mode, graph.zero) if same else graph.apply("less", graph.zero, mode)
                if key[0] == "sine":
                    below = graph.both(graph.opposite(live), graph.opposite(upper))
                return graph.either(graph.both(live, plain), below)
            return graph.where(live, plain, _side(graph, operation, operands, upper))
        if operation in _RESTS:
            rest = graph.subtract(operands[0], graph.multiply(mode, operands[1]))
            return graph.where(live, plain, rest)
        return graph.where(live, plain, mode)


class BranchesTaken:
    """The operations that nodes perform in given modes; results are equal if the modes make no difference for any
    arguments.

    Parameters
    ----------
    graph : Graph
    outputs : iterable of int
    """

    def __init__(self, graph: Graph, outputs: Iterable[int]):
        self._graph, self._outputs = graph, tuple(outputs)
        self._known: dict[Any, int] = {}
        self._answers: dict[bytes, tuple] = {}
        moded: set[int] = set()
        given: set[int] = set()
        for i in graph.needed(self._outputs):
            is_mode = graph.operations[i] == "argument" and graph.data[i][0] == NAME
            if is_mode or not moded.isdisjoint(graph.operands[i]):
                moded.add(i)
                given.update(graph.operands[i])
        self._given = {i: self._value(i) for i in given - moded}
        self._modes = [(i, graph.data[i][1]) for i in sorted(moded) if graph.operations[i] == "argument"]
        self._steps = [
            (i, graph.operations[i], graph.operands[i], _ON_FLOATS.get(graph.operations[i]))
            for i in sorted(moded)
            if graph.operations[i] != "argument"
        ]

    def __call__(self, modes: np.ndarray) -> tuple:
        """The outputs reduced to numbers, or to integers that identify the remaining operations."""
        if len(self._steps) > _MOST_MODED:
            return (object(),)  # treats every change as a difference
        key = modes.tobytes()
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            answer = self._answers[key] = self._reduced(modes.tolist())
        return answer

    def without(self, modes: np.ndarray, unknown: Iterable[int]) -> tuple:
        """The outputs reduced with some modes unknown; their arguments remain in the result only if it depends
        on them."""
        if len(self._steps) > _MOST_MODED:
            return (object(),)
        given: list[Any] = modes.tolist()
        for j in unknown:
            given[j] = ("mode", j)
        return self._reduced(given)

    def _reduced(self, modes: list[Any]) -> tuple:
        found = dict(self._given)  # numbers, or names for the remaining nodes
        found.update((i, modes[j]) for i, j in self._modes)
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
            self._answers.clear()
        for i, operation, operands, on_floats in self._steps:
            parts = [found[k] for k in operands]
            if operation == "where" and type(parts[0]) is float:
                found[i] = parts[1] if parts[0] else parts[2]
            elif tuple in map(type, parts):
                found[i] = self._left(i, operation, operands, parts)
            elif on_floats is not None:
                found[i] = float(on_floats(*parts))
            else:
                table = (self._graph.data[i],) if operation in TABLES else ()
                with np.errstate(all="ignore"):
                    found[i] = float(OPERATIONS[operation].evaluate(*map(np.float64, parts), *table))
        return tuple(str(found.get(i, (i,))) for i in self._outputs)

    def _left(self, i: int, operation: str, operands: tuple[int, ...], parts: list[Any]) -> Any:
        """The remainder of an operation whose operands are not all numbers."""
        if operation in ("logical_and", "logical_or", "multiply"):
            for part, other, node in ((parts[0], parts[1], operands[1]), (parts[1], parts[0], operands[0])):
                if isinstance(part, tuple):
                    continue
                if operation != "multiply" and bool(part) == (operation == "logical_and"):
                    return other
                if operation != "multiply" or (part == 0.0 and self._graph.regular[node]):
                    return part
        if operation == "where" and parts[1] == parts[2]:
            return parts[1]
        key = (operation, self._graph.data[i], *map(str, parts))
        return (-1 - self._known.setdefault(key, len(self._known)),)

    def _value(self, i: int) -> Any:
        """A node that does not depend on any mode."""
        operation = self._graph.operations[i]
        if operation in ("true", "false"):
            return float(operation == "true")
        return float(self._graph.data[i]) if operation == "constant" else (i,)


_ON_FLOATS: dict[str, Callable[..., Any]] = {"less": operator.lt, "equal": operator.eq, "not_equal": operator.ne}
_ON_FLOATS |= {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg}
_ON_FLOATS |= {"logical_and": lambda a, b: bool(a and b), "logical_or": lambda a, b: bool(a or b)}
_ON_FLOATS |= {"logical_not": operator.not_}
_MOST_MODED, _MOST_KNOWN, _MOST_ANSWERS = 2000, 100_000, 256


def _surface(graph: Graph, operation: str, operands: tuple[int, ...]) -> tuple[int, float, bool]:
    """u and its switching point in a canonical form, and whether u grows with a - b, or with a single operand."""
    if operation in ("absolute", "sign"):
        u, point, same = operands[0], 0.0, True
    elif operation == "copysign":
        u, point, same = operands[1], 0.0, True
    else:
        a, b = operands
        if graph.is_constant(b):
            u, point, same = a, graph.data[b], True
        elif graph.is_constant(a):
            u, point, same = b, graph.data[a], False
        else:
            u, point, same = (graph.subtract(a, b), 0.0, True) if a < b else (graph.subtract(b, a), 0.0, False)
    if graph.operations[u] == "negative":
        u, point, same = graph.operands[u][0], 0.0 - point, not same
    return u, point, same


def _side(graph: Graph, operation: str, operands: tuple[int, ...], upper: int) -> int:
    """The function on the side of its surface selected by the condition `upper`."""
    first = operands[0]
    if operation == "absolute":
        return graph.where(upper, first, graph.negative(first))
    if operation == "sign":
        return graph.where(upper, graph.one, graph.constant(-1.0))
    if operation == "copysign":
        size = graph.apply("absolute", first)
        return graph.where(upper, size, graph.negative(size))
    if operation == "minimum":
        return graph.where(upper, operands[1], first)
    return graph.where(upper, first, operands[1])


# --- nodes with other operands ----------------------------------------------------------------------------------------


def remade(graph: Graph, i: int, operands: tuple[int, ...]) -> int:
    """Apply the operation of a node to other operands."""
    operation = graph.operations[i]
    if operands == graph.operands[i]:
        return i
    made = _MAKERS.get(operation)
    if made is not None:
        return getattr(graph, made)(*operands)
    if operation in ("locate", "pick"):
        return getattr(graph, operation)(operands[0], graph.data[i])
    return graph.apply(operation, *operands)


_MAKERS = {name: name for name in ("add", "subtract", "multiply", "divide", "negative", "where")}
_MAKERS |= {"logical_and": "both", "logical_or": "either", "logical_not": "opposite"}


def replaced(graph: Graph, nodes: Sequence[int], values: dict[int, int]) -> list[int]:
    """Nodes with some arguments replaced."""
    made = dict(values)
    for i in graph.needed(nodes):
        if i not in made:
            made[i] = remade(graph, i, tuple(made[k] for k in graph.operands[i]))
    return [made[i] for i in nodes]
