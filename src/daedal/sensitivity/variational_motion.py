r"""The motion of a mechanism with its variational equations, as straight-line code.

Accelerations and multipliers solve

.. math::

    R(t, q, v, a, \lambda, p) = \begin{pmatrix} M a + K^T \lambda - f \\ K a - \gamma \end{pmatrix} = 0 ,

so that their sensitivities solve systems with the same matrix,

.. math::

    \begin{pmatrix} M & K^T - f_\lambda \\ K & 0 \end{pmatrix} \begin{pmatrix} s_a \\ s_\lambda \end{pmatrix}
    = -(R_q s_q + R_v s_v + R_r s_r + R_p) ,

if forces are linear in the multipliers, as those of dry friction are.

Sensitivities of positions and velocities satisfy the differentiated constraints, :math:`G s_q + g_p = 0` and :math:`(K
v + k_t)_q s_q + K s_v + (K v + k_t)_p = 0`, onto which they are projected in the norm of M after every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daedal.problems import MechanicalSystem
from daedal.sensitivity.differentiation import Column
from daedal.symbolic import Untraceable
from daedal.symbolic.dependencies import Dependencies
from daedal.symbolic.derivative import directional, jacobian
from daedal.symbolic.elimination import Factors, Solved, augmented, constant_rows, factor, rows_of
from daedal.symbolic.machine import RAISES
from daedal.symbolic.mechanism_dynamics import Dynamics
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.parameters import NAME
from daedal.symbolic.tracing.tracer import Tracer


class VariationalMotion:
    """Machine code for the motion of a mechanism and its sensitivities.

    All functions depend on (t, Y), where Y = (q, v, r, s_1, s_2, ...) and each s = (s_q, s_v, s_r). `rows` are the
    constraints in use, all of them by default; `n` and `total` are the lengths of (q, v, r) and of Y.

    `rate` is Y'; `dynamics` gives, for each column, s_a, s_lambda and the derivative of the reaction -K^T lambda;
    `corrections` move Y towards the constraints, in turn: q (repeated); v and s_q; s_v.
    """

    def __init__(self, system: MechanicalSystem, columns: Sequence[Column], rows: Sequence[int] | None = None):
        if system.n_w or system.contact is not None:
            raise Untraceable("belongs to a system with algebraic variables", "")
        self.system, self.columns = system, tuple(columns)
        self.n = 2 * system.n_q + system.n_r
        self.total = self.n * (1 + len(columns))
        sizes = {"q": system.n_q, "v": system.n_q, "r": system.n_r, "s": self.n * len(columns)}
        self._arguments = tuple(name for name, size in sizes.items() if size)
        if system.force_uses_multipliers:
            sizes |= {"lam": system.n_lambda}
        self.tracer = Tracer(system, {name: size for name, size in sizes.items() if size}, always=True)
        self.layout, self.dependencies = self.tracer.layout, Dependencies()
        self._raises = self.tracer.graph.false
        self._rows = rows
        self.equations = self._traced()
        self._directions = [self._direction(k) for k in range(len(columns))]
        self.idle = self._idle()
        motion, outputs, worst = self._motion()
        self._rates, self._worst = motion, worst
        graph = self.tracer.graph
        if self.layout is not None:
            self.layout.fixed = {
                graph.data[i][1]: value for i, value in graph.fixed.items() if graph.data[i][0] == NAME
            }
        self.rate = self._code("rate", motion, [worst])
        self.dynamics = self._code("dynamics", outputs, [worst])
        self.corrections = self._corrections()

    # --- the equations ----------------------------------------------------------------------------------------------

    def _trace(self, function: Any, arguments: Sequence[str], shape: tuple[int, ...]):
        symbols = [self.tracer.symbols(name) for name in arguments]
        traced = self.tracer.trace(getattr(function, "original", function), symbols, shape)
        self.dependencies.add(traced.dependencies)
        self._raises = self.tracer.graph.either(self._raises, traced.raises)
        return traced

    def _traced(self) -> Dynamics:
        system, tracer, n = self.system, self.tracer, self.system.n_q
        graph, every = tracer.graph, ("q", "v", "r") if system.n_r else ("q", "v")
        if system.force_uses_multipliers:
            every = (*every, "lam")
        if callable(system.mass):
            mass = rows_of(graph, self._trace(system.mass, ("q",), (n, n)).array)
        else:
            mass = constant_rows(graph, system.mass)
        force = self._trace(system.force, every, (n,)).nodes
        constraint: tuple[int, ...] = ()
        velocity: tuple[int, ...] = ()
        if system.n_constraints:
            constraint = self._trace(system.constraint, ("q",), (system.n_constraints,)).nodes
        if system.n_velocity_constraints:
            velocity = self._trace(system.velocity_constraint, ("q", "v"), (system.n_velocity_constraints,)).nodes
        self.state_rate: tuple[int, ...] = ()
        if system.n_r:
            self.state_rate = self._trace(system.state_rate, every, (system.n_r,)).nodes
        if self._rows is not None:
            split = system.n_constraints
            constraint, velocity = (
                tuple(constraint[i] for i in self._rows if i < split),
                tuple(velocity[i - split] for i in self._rows if i >= split),
            )
        return Dynamics(graph, tracer.t.node, tracer.nodes("q"), tracer.nodes("v"), mass, force, constraint, velocity)

    def _state(self) -> list[int]:
        return [node for name in self._arguments if name != "s" for node in self.tracer.nodes(name)]

    def _own(self, k: int) -> list[int]:
        return self.tracer.nodes("s")[k * self.n : (k + 1) * self.n]

    def _direction(self, k: int) -> dict[int, int]:
        """The direction (s_q, s_v, s_r, e_p) of a column, as {argument: node}."""
        graph, position = self.tracer.graph, self.columns[k].position
        along = dict(zip(self._state(), self._own(k), strict=True))
        return along if position is None else along | {graph.argument(NAME, position): graph.one}

    def _idle(self) -> tuple[int, ...]:
        """Columns whose parameter does not occur in the equations."""
        graph, dynamics = self.tracer.graph, self.equations
        nodes = [*dynamics.force, *dynamics.constraint, *dynamics.velocity_constraint, *self.state_rate]
        nodes += [x for row in dynamics.mass for x in row.values()]
        read = {graph.data[i] for i in graph.needed(nodes) if graph.operations[i] == "argument"}
        return tuple(k for k, c in enumerate(self.columns) if c.position is not None and (NAME, c.position) not in read)

    def _motion(self) -> tuple[list[int], list[int], int]:
        """Nodes of Y', of (s_a, s_lambda, s_reaction), and of the condition that indicates bad pivots."""
        tracer, dynamics, n = self.tracer, self.equations, self.system.n_q
        graph, n_c = tracer.graph, dynamics.n_lambda
        tracer.sizes |= {"a": n, "lam": n_c}
        a, lam = tracer.nodes("a"), tracer.nodes("lam")
        factors, force = self._factors_of_motion(lam)
        solution = factors.solve([*force, *dynamics.bias])
        there = dict(zip([*a, *lam], solution, strict=True))
        self._left = [*dynamics.balance(a, lam), *self.constraint_rates(a)]
        self._solved, self._there = factors, there
        reaction = self._reaction(lam)
        motion = [*tracer.nodes("v"), *solution[:n], *dynamics.at(self.state_rate, there)]
        outputs: list[int] = []
        for k, along in enumerate(self._directions):
            found, rates = self._answer(along)
            own = {**along, **dict(zip(lam, found[n:], strict=True))}
            motion += [*self._own(k)[n : 2 * n], *found[:n], *rates]
            outputs += [*found, *dynamics.at(directional(graph, reaction, own), there)]
        return motion, outputs, dynamics.bad_pivot(Solved([], factors.quality, factors.order))

    def _answer(self, along: dict[int, int]) -> tuple[list[int], list[int]]:
        """Derivatives of (a, lambda) and r' along a direction."""
        graph, dynamics, n = self.tracer.graph, self.equations, self.system.n_q
        right = [graph.negative(x) for x in dynamics.at(directional(graph, self._left, along), self._there)]
        found = self._solved.solve(right)
        own = {**along, **dict(zip(self.tracer.nodes("lam"), found[n:], strict=True))}
        return found, dynamics.at(directional(graph, self.state_rate, own), self._there)

    def implicit(self) -> tuple[TracedFunction, TracedFunction]:
        """Y' - rate(t, Y), and the matrix cj I - d rate / d (q, v, r), shared by all columns."""
        tracer, n, n_q = self.tracer, self.n, self.system.n_q
        graph, state = tracer.graph, self._state()
        tracer.sizes |= {"yp": self.total, "cj": 1}
        left = [graph.subtract(x, rate) for x, rate in zip(tracer.nodes("yp"), self._rates, strict=True)]
        [cj] = tracer.nodes("cj")
        matrix = np.full((n, n), graph.zero)
        matrix[np.arange(n), np.arange(n)] = cj
        matrix[np.arange(n_q), n_q + np.arange(n_q)] = graph.constant(-1.0)
        for j, x in enumerate(state):
            found, rates = self._answer({x: graph.one})
            for i, entry in enumerate([*found[:n_q], *rates], n_q):
                matrix[i, j] = graph.subtract(matrix[i, j], entry)
        every = (*self._arguments, "yp")
        return self._code("residual", left, [self._worst], every), self._code(
            "jacobian", matrix, [self._worst], (*every, "cj")
        )

    def half_explicit(self) -> tuple[TracedFunction, TracedFunction]:
        r"""Y' and the velocity constraints with their derivatives, as functions of (t, Y) and (lambda, s_lambda).

        .. math::

            M s_a = -(R_q s_q + R_v s_v + R_r s_r + R_p + (K^T - f_\lambda) s_\lambda), \qquad
            0 = (K v + k_t)_q s_q + K s_v + (K v + k_t)_p
        """
        tracer, dynamics, n = self.tracer, self.equations, self.system.n_q
        graph, n_c = tracer.graph, dynamics.n_lambda
        tracer.sizes |= {"sigma": n_c * len(self.columns)}
        a, lam, sigma = tracer.nodes("a"), tracer.nodes("lam"), tracer.nodes("sigma")
        mass = factor(graph, dynamics.mass, n)
        balance = dynamics.balance(a, lam)
        rest = dynamics.at(balance, dict.fromkeys(a, graph.zero))
        there = dict(zip(a, mass.solve([graph.negative(x) for x in rest]), strict=True))
        slopes = [*tracer.nodes("v"), *there.values(), *self.state_rate]
        constraints = list(dynamics.rate)
        for k, direction in enumerate(self._directions):
            along = direction | dict(zip(lam, sigma[k * n_c : (k + 1) * n_c], strict=True))
            right = [graph.negative(x) for x in dynamics.at(directional(graph, balance, along), there)]
            slopes += [*self._own(k)[n : 2 * n], *mass.solve(right), *directional(graph, self.state_rate, along)]
            constraints += directional(graph, dynamics.rate, direction)
        worst = dynamics.bad_pivot(Solved([], mass.quality, mass.order))
        every = (*self._arguments, "lam", "sigma")
        return self._code("f", slopes, [worst], every), self._code("g", constraints, [], every)

    def _factors_of_motion(self, lam: Sequence[int]) -> tuple[Factors, list[int]]:
        """Factors of the matrix of (a, lambda), and the force without the terms that are linear in lambda."""
        dynamics, graph, n = self.equations, self.tracer.graph, self.system.n_q
        force = list(dynamics.force)
        if not self.system.force_uses_multipliers:
            return self._factors(len(lam)), force
        rows = [dict(row) for row in dynamics.jacobian]
        for j, row in enumerate(jacobian(graph, force, lam)):
            if any(i in set(lam) for i in graph.needed(list(row.values()))):
                raise Untraceable("has forces that are nonlinear in the multipliers", "")
            for i, x in row.items():
                rows[i][j] = graph.subtract(rows[i].get(j, graph.zero), x)
        matrix = augmented(n, dynamics.mass, rows, dynamics.jacobian)
        return factor(graph, matrix, n), dynamics.at(force, dict.fromkeys(lam, graph.zero))

    def _factors(self, n_c: int) -> Factors:
        dynamics = self.equations
        rows = dynamics.jacobian[:n_c]
        return factor(dynamics.graph, augmented(dynamics.n_q, dynamics.mass, rows, rows), dynamics.n_q)

    def constraint_rates(self, a: Sequence[int]) -> list[int]:
        """K a - gamma."""
        graph, result = self.tracer.graph, []
        for row, bias in zip(self.equations.jacobian, self.equations.bias, strict=True):
            total = graph.negative(bias)
            for j, x in row.items():
                total = graph.add(total, graph.multiply(x, a[j]))
            result.append(total)
        return result

    def _reaction(self, lam: Sequence[int]) -> list[int]:
        graph = self.tracer.graph
        result = [graph.zero] * self.system.n_q
        for row, x in zip(self.equations.jacobian, lam, strict=True):
            for j, entry in row.items():
                result[j] = graph.subtract(result[j], graph.multiply(entry, x))
        return result

    # --- projections ------------------------------------------------------------------------------------------------

    def _corrections(self) -> tuple[TracedFunction, ...]:
        dynamics, graph, n = self.equations, self.tracer.graph, self.system.n_q
        if not dynamics.n_lambda:
            return ()
        zeros, rest, m = [graph.zero] * n, [graph.zero] * self.system.n_r, len(self.columns)
        nothing = [*zeros, *zeros, *rest]
        made = []
        first: list[Any] = [zeros] * m
        if dynamics.n_constraints:
            positions = self._factors(dynamics.n_constraints)
            quality = [dynamics.bad_pivot(Solved([], positions.quality, positions.order))]
            q = self._shortest(positions, dynamics.constraint)
            made.append(self._code("position_correction", [*q, *zeros, *rest, *nothing * m], quality))
            first = [self._shortest(positions, directional(graph, dynamics.constraint, d)) for d in self._directions]
        both = self._factors(dynamics.n_lambda)
        quality = [dynamics.bad_pivot(Solved([], both.quality, both.order))]
        v = self._shortest(both, dynamics.rate)
        nodes = [*zeros, *v, *rest, *(x for s_q in first for x in [*s_q, *zeros, *rest])]
        made.append(self._code("velocity_correction", nodes, quality))
        second = [self._shortest(both, directional(graph, dynamics.rate, d)) for d in self._directions]
        nodes = [*nothing, *(x for s_v in second for x in [*zeros, *s_v, *rest])]
        made.append(self._code("sensitivity_correction", nodes, quality))
        return tuple(made)

    def _shortest(self, factors: Factors, residual: Sequence[int]) -> list[int]:
        """The shortest change of coordinates, in the norm of M, that removes a residual of constraints."""
        graph, n = self.tracer.graph, self.system.n_q
        return factors.solve([*[graph.zero] * n, *[graph.negative(x) for x in residual]])[:n]

    def _code(
        self, name: str, nodes: Any, conditions: Sequence[int], arguments: Sequence[str] | None = None
    ) -> TracedFunction:
        tracer, raises = self.tracer, self._raises
        for condition in conditions:
            raises = tracer.graph.either(raises, condition)
        code = tracer.code(self._arguments if arguments is None else arguments, np.array(nodes), [(raises, RAISES)])
        return TracedFunction(name, code, tracer.layout, _Asks(self.system), arguments=(0,))


def evaluated(function: Any, params: Any, t: float, y: np.ndarray) -> np.ndarray:
    """Value of one of the functions of a motion."""
    arguments = (y,) if function.layout is None else (y, params)
    status, values = function.evaluate(t, *arguments)
    if status != 0:
        return function(t, *arguments)
    return values


def projected(motion: VariationalMotion, params: Any, t: float, y: np.ndarray) -> np.ndarray:
    """Y with its sensitivities projected onto the differentiated constraints at its unchanged (q, v)."""
    n = motion.n
    for function in motion.corrections[-2:]:
        y = np.concatenate([y[:n], y[n:] + evaluated(function, params, t, y)[n:]])
    return y


class _Asks:
    """A function that calls the user's functions if machine code has failed, so that they can raise exceptions."""

    def __init__(self, system: MechanicalSystem):
        self._system = system

    def __call__(self, t: float, state: np.ndarray, *rest: Any) -> None:
        params = rest[-1:] if self._system.params is not None else ()
        system, n = self._system, self._system.n_q
        q, v, r = state[:n], state[n : 2 * n], state[2 * n : 2 * n + system.n_r]
        if callable(system.mass):
            system.mass(t, q, *params)
        if system.force_uses_multipliers:
            system.at(t, q, v, r=r)
            return
        system.force(t, q, v, *([r] if system.n_r else []), *params)
        if system.constraint is not None:
            system.constraint(t, q, *params)
