r"""Convex combinations of branches, with a closed form of the fractions that keep a motion on its surfaces (Filippov).

On surfaces u = 0 the equations are a combination of those of both sides. If they are affine in each of the fractions nu
of the upper sides, u' = 0 is a system for the fractions, which is solved on the graph: directly if linear, or by a few
Newton steps if fractions are multiplied. The sliding motion is again an ordinary differential equation, or a mechanism
with another force. The surfaces are selected by data, like the modes: mode 0 means that a fraction keeps the motion on
its surface; a mode between 0 and 1 is a fixed fraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from daedal.problems import ODE, MechanicalSystem
from daedal.symbolic import Untraceable
from daedal.symbolic.derivative import Row, directional, jacobian
from daedal.symbolic.elimination import StructurallySingular, augmented, solve
from daedal.symbolic.modes import NAME as MODES
from daedal.symbolic.modes import remade, replaced
from daedal.symbolic.tracing.straight_line_code import MOST_OPERATIONS, PARTS, dynamics

if TYPE_CHECKING:
    from daedal.symbolic.tracing.switched import SwitchedProblem

SHARES = "shares"
_NEWTON = 4  # number of Newton steps
SLACK = 2e-9  # amount by which a fraction may leave [0, 1] before the motion leaves its surface


class NotAffine(Exception):
    """The equations are not affine in a fraction, which is the argument of a nonlinear function."""


class _Condition(NamedTuple):
    """A condition replaced by a fraction: the original condition, the fraction, and whether the fraction applies."""

    plain: int
    share: int
    mixed: int


class Mixture:
    """Nodes with the branches of some surfaces combined.

    Parameters
    ----------
    switched : SwitchedProblem
    surfaces : sequence of int
        The switches whose branches may be combined; each has an entry of the argument "shares".
    always : bool
        Whether they are combined in all modes.

    Attributes
    ----------
    shares, levels : list of int
        For each surface its fraction, and its switching function minus the switching point.
    free, held : list of int
        For each surface the conditions that its fraction keeps the motion on it, and that the fraction is fixed.
    """

    def __init__(self, switched: SwitchedProblem, surfaces: Sequence[int], *, always: bool = False):
        self.graph, self.surfaces = switched.tracer.graph, tuple(surfaces)
        graph = self.graph
        self.shares = [graph.argument(SHARES, k) for k in range(len(self.surfaces))]
        modes = [switched.modes.argument(j) for j in self.surfaces]
        self.free = [graph.true if always else graph.apply("equal", m, graph.zero) for m in modes]
        self.held = [graph.both(graph.apply("less", graph.zero, m), graph.apply("less", m, graph.one)) for m in modes]
        self._modes = {m: k for k, m in enumerate(modes)}
        self.levels = [
            graph.subtract(switched.switches[j].function, graph.constant(switched.switches[j].points[0]))
            for j in self.surfaces
        ]
        self.multiply = False  # whether fractions are multiplied with each other
        self._made: dict[int, int | _Condition] = {}

    def nodes(self, plain: Sequence[int]) -> list[int]:
        """The nodes, which must be affine in each of the fractions; otherwise raises NotAffine."""
        for i in self.graph.needed(plain):
            if i not in self._made:
                self._made[i] = self._mixed(i)
        found = [self._made[i] for i in plain]
        nodes = [self.graph.number(x.plain) if isinstance(x, _Condition) else x for x in found]
        for row in jacobian(self.graph, nodes, self.shares):
            read = {k: self._shares_of(x) for k, x in row.items()}
            if any(k in found for k, found in read.items()):
                raise NotAffine
            self.multiply = self.multiply or any(read.values())
        return nodes

    def _shares_of(self, i: int) -> set[int]:
        """The fractions on which a node depends."""
        graph = self.graph
        read = [graph.data[k] for k in graph.needed([i]) if graph.operations[k] == "argument"]
        return {index for name, index in read if name == SHARES}

    def _mixed(self, i: int) -> int | _Condition:
        graph, operation = self.graph, self.graph.operations[i]
        operands = [self._made[k] for k in graph.operands[i]]
        if operation == "where" and graph.is_finite(graph.operands[i][1]) == graph.operands[i][0]:
            return operands[1]  # beyond its end, a branch is the function as written
        if operation == "less" and (operands[0] == graph.zero or operands[1] == graph.zero):
            upper = operands[0] == graph.zero
            k = self._modes.get(graph.operands[i][1 if upper else 0])
            if k is not None:
                share = self.shares[k] if upper else graph.subtract(graph.one, self.shares[k])
                return _Condition(i, share, graph.either(self.free[k], self.held[k]))
        if not any(isinstance(x, _Condition) for x in operands):
            return remade(graph, i, tuple(x for x in operands if not isinstance(x, _Condition)))
        if operation == "logical_not":
            [x] = operands
            assert isinstance(x, _Condition)
            return _Condition(graph.opposite(x.plain), graph.subtract(graph.one, x.share), x.mixed)
        if operation in ("logical_and", "logical_or"):
            return self._joined(operation == "logical_and", *operands)
        if operation != "where":
            raise NotAffine
        condition, a, b = operands
        if not isinstance(condition, _Condition) or isinstance(a, _Condition) or isinstance(b, _Condition):
            raise NotAffine
        plain = graph.where(condition.plain, a, b)
        if self._meet(a, b):
            return plain
        mixture = graph.add(b, graph.multiply(condition.share, graph.subtract(a, b)))
        return graph.where(condition.mixed, mixture, plain)

    def _joined(self, both: bool, one: int | _Condition, other: int | _Condition) -> _Condition:
        """The conjunction of two conditions if `both`, otherwise their disjunction."""
        graph = self.graph
        join = graph.both if both else graph.either
        if not isinstance(one, _Condition):
            one, other = other, one
        assert isinstance(one, _Condition)
        if isinstance(other, _Condition):
            a, b = (graph.where(x.mixed, x.share, graph.number(x.plain)) for x in (one, other))
            product = graph.multiply(a, b)
            share = product if both else graph.subtract(graph.add(a, b), product)
            return _Condition(join(one.plain, other.plain), share, graph.either(one.mixed, other.mixed))
        share = graph.where(other, one.share, graph.zero) if both else graph.where(other, graph.one, one.share)
        return _Condition(join(one.plain, other), share, one.mixed)

    def _meet(self, a: int, b: int) -> bool:
        """Whether two branches agree on a surface, as for abs, min and max."""
        graph = self.graph
        for level in self.levels:
            if {a, b} == {level, graph.negative(level)}:
                return True
            if graph.subtract(a, b) in (level, graph.negative(level)):
                return True
        return False


class ClosedForm:
    """Sliding motion of a problem along any surfaces, with the fractions eliminated.

    Attributes
    ----------
    surfaces : tuple of int
        The switches whose surfaces permit sliding.
    problem : ODE or MechanicalSystem
        The problem with its branches combined by the fractions that the modes select.
    balance : SwitchCode
        The rates of the surfaces and the fractions as functions of (t, state).
    """

    def __init__(self, switched: SwitchedProblem):
        self.switched, self.surfaces = switched, tuple(np.flatnonzero(switched.slides).tolist())
        self._mixture = Mixture(switched, self.surfaces)
        tracer = switched.tracer
        tracer.graph.most_nodes = max(tracer.graph.most_nodes, MOST_OPERATIONS)
        mechanism = isinstance(switched.problem, MechanicalSystem)
        self.rates, self._nu, self.problem = self._of_mechanism() if mechanism else self._of_rate()
        self.balance = switched.code([*self.rates, *self._nu])

    def events(self) -> list[int]:
        """Event functions, positive while the fractions are between 0 and 1: nu of all surfaces, then 1 - nu."""
        graph, free = self.switched.tracer.graph, self._mixture.free
        above = [graph.add(x, graph.constant(SLACK)) for x in self._nu]
        below = [graph.subtract(graph.constant(1.0 + SLACK), x) for x in self._nu]
        return [
            graph.where(asked, x, graph.one) for nodes in (above, below) for asked, x in zip(free, nodes, strict=True)
        ]

    # --- the shares ---------------------------------------------------------------------------------------------------

    def _level_rates(self, motion: dict[int, int]) -> tuple[list[int], list[int]]:
        """u' due to `motion` alone, and minus the sum of it and the term that returns the motion to the surface."""
        tracer, levels = self.switched.tracer, self._mixture.levels
        graph = tracer.graph
        assert tracer.modal is not None
        known = directional(graph, levels, motion)
        relaxation = graph.argument(MODES, tracer.modal.count - 1)
        asked = [
            graph.negative(graph.add(rate, graph.multiply(relaxation, level)))
            for rate, level in zip(known, levels, strict=True)
        ]
        return known, asked

    def _row(self, k: int, row: Row, place: int) -> Row:
        """A row of the system for the fractions: u' = 0 if fraction k is free, otherwise its fixed value."""
        graph, free = self.switched.tracer.graph, self._mixture.free[k]
        made = {i: graph.where(free, x, graph.zero) for i, x in row.items()}
        made[place] = graph.where(free, row.get(place, graph.zero), graph.one)
        return made

    def _start(self) -> list[int]:
        """Initial fractions for Newton's method: fixed fractions, and arbitrary values for the others."""
        graph, mixture = self.switched.tracer.graph, self._mixture
        middle = graph.constant(0.5 if mixture.multiply else 0.0)
        modes = [self.switched.modes.argument(j) for j in mixture.surfaces]
        return [graph.where(held, m, middle) for held, m in zip(mixture.held, modes, strict=True)]

    def _at(self, nodes: Sequence[int], rows: Sequence[Row], shares: Sequence[int]) -> tuple[list[int], list[Row]]:
        """Nodes and their derivatives with respect to the fractions, at given fractions."""
        graph, there = self.switched.tracer.graph, dict(zip(self._mixture.shares, shares, strict=True))
        return replaced(graph, nodes, there), [
            dict(zip(row, replaced(graph, list(row.values()), there), strict=True)) for row in rows
        ]

    @property
    def _steps(self) -> int:
        return _NEWTON if self._mixture.multiply else 1

    def _of_rate(self) -> tuple[list[int], list[int], Any]:
        """The rates of the surfaces, the fractions from u_y f + u_t = 0, and the problem y' = f(t, y)."""
        switched, tracer = self.switched, self.switched.tracer
        graph, y = tracer.graph, tracer.nodes("y")
        f = tracer.traces["f"]
        nodes = self._mixture.nodes(f.nodes)
        derivatives, nu = jacobian(graph, nodes, self._mixture.shares), self._start()
        gradients = jacobian(graph, self._mixture.levels, y)
        known, asked = self._level_rates({tracer.t.node: graph.one})
        for _ in range(self._steps):
            base, factors = self._at(nodes, derivatives, nu)
            rows, right = [], []
            for k, gradient in enumerate(gradients):
                row: Row = {}
                missing = asked[k]
                for i, slope in gradient.items():
                    missing = graph.subtract(missing, graph.multiply(slope, base[i]))
                    for other, factor in factors[i].items():
                        row[other] = graph.add(row.get(other, graph.zero), graph.multiply(slope, factor))
                rows.append(self._row(k, row, k))
                right.append(graph.where(self._mixture.free[k], missing, graph.zero))
            [moves] = solve(graph, rows, [right]).solutions
            nu = [graph.add(x, move) for x, move in zip(nu, moves, strict=True)]
        made = replaced(graph, nodes, dict(zip(self._mixture.shares, nu, strict=True)))
        rates = [self._rate(known[k], gradient, made) for k, gradient in enumerate(gradients)]
        result = copy(switched.problem)
        original = tracer.result.functions["f"].original
        residual = [graph.subtract(x, slope) for x, slope in zip(tracer.nodes("yp"), made, strict=True)]
        stated = (tracer.result.functions | tracer.combined)["residual"].original
        for name, arguments, of, written in (
            ("f", ("y",), made, original),
            ("residual", ("y", "yp"), residual, stated),
        ):
            title = f"{name} along surfaces"
            if tracer.stacked(title, written, arguments, of, (f,)) is None:
                raise Untraceable("has become too large", "")
            object.__setattr__(result, name, tracer.combined[title])
        for name in ("jacobian", "sparsity", "bandwidth", "linearly_implicit"):
            object.__setattr__(result, name, None)
        return rates, nu, result

    def _rate(self, known: int, gradient: Row, slopes: Sequence[int]) -> int:
        graph = self.switched.tracer.graph
        for i, x in gradient.items():
            known = graph.add(known, graph.multiply(x, slopes[i]))
        return known

    def _of_mechanism(self) -> tuple[list[int], list[int], Any]:
        """The rates of the surfaces, the fractions, and the mechanism.

        The system M a = f - K^T lam, K a = gamma, u_v a + u_q v + u_t = 0 is solved for a, lam and the fractions.
        """
        tracer, system = self.switched.tracer, self.switched.problem
        if system.n_w or system.force_uses_multipliers:
            raise NotAffine
        graph, n, v = tracer.graph, system.n_q, tracer.nodes("v")
        equations = dynamics(tracer, system, {name: tracer.traces.get(name) for name in PARTS})
        nodes = self._mixture.nodes(equations.force)
        derivatives, nu = jacobian(graph, nodes, self._mixture.shares), self._start()
        gradients = jacobian(graph, self._mixture.levels, v)
        motion = {tracer.t.node: graph.one, **dict(zip(tracer.nodes("q"), v, strict=True))}
        known, asked = self._level_rates(motion)
        for _ in range(self._steps):
            base, factors = self._at(nodes, derivatives, nu)
            matrix = augmented(n, equations.mass, equations.jacobian, equations.jacobian)
            first = len(matrix)
            for i, row in enumerate(factors):
                for k, factor in row.items():
                    matrix[i][first + k] = graph.negative(factor)
            matrix += [self._row(k, row, first + k) for k, row in enumerate(gradients)]
            further = [graph.where(free, x, graph.zero) for free, x in zip(self._mixture.free, asked, strict=True)]
            [solution] = solve(graph, matrix, [[*base, *equations.bias, *further]], n).solutions
            nu = [graph.add(x, move) for x, move in zip(nu, solution[first:], strict=True)]
        shares = dict(zip(self._mixture.shares, nu, strict=True))
        rates = [self._rate(known[k], row, solution) for k, row in enumerate(gradients)]
        result = copy(system)
        for name in ("force", "state_rate"):
            part = tracer.traces.get(name)
            if part is not None:
                made = replaced(graph, self._mixture.nodes(part.nodes), shares)
                title, arguments = f"{name} along surfaces", ["q", "v", *(["r"] if system.n_r else [])]
                original = tracer.result.functions[name].original
                if tracer.stacked(title, original, arguments, made, (part,)) is None:
                    raise Untraceable("has become too large", "")
                object.__setattr__(result, name, tracer.combined[title])
        return rates, nu, result


def closed_form(switched: SwitchedProblem) -> ClosedForm | None:
    """Closed form of motions along surfaces; None if there is none."""
    if not any(switched.slides) or not isinstance(switched.problem, (ODE, MechanicalSystem)):
        return None
    try:
        return ClosedForm(switched)
    except (NotAffine, StructurallySingular, Untraceable):
        return None
