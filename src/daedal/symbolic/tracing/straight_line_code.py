r"""Accelerations, corrections and half-explicit stages of a mechanism as straight-line code, elimination included.

.. math::

    \begin{pmatrix} M & K^T \\ K & 0 \end{pmatrix}
    \begin{pmatrix} a \\ \lambda \end{pmatrix} = \begin{pmatrix} f \\ \gamma \end{pmatrix}

The code reports bad pivots; kernels then fall back to a matrix factorisation with pivoting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from daedal.problems import MechanicalSystem
from daedal.symbolic import Traced, Untraceable
from daedal.symbolic.elimination import Solved, StructurallySingular, constant_rows, rows_of
from daedal.symbolic.machine import BAD_PIVOT, RAISES, MachineFunction
from daedal.symbolic.mechanism_dynamics import Dynamics, first_half, second_half
from daedal.symbolic.tracing.function import TracedFunction
from daedal.symbolic.tracing.tracer import Tracer

MOST_OPERATIONS = 40_000
"""Graph size above which matrices are factored with pivoting."""
DERIVATIVES = ("constraint_jacobian", "constraint_t", "acceleration_bias", "velocity_jacobian", "velocity_bias")
PARTS = ("mass", "force", "constraint", "velocity_constraint", *DERIVATIVES)
"""The functions of a system that determine its accelerations."""
STAGE = ("bar_q", "bar_v", "bar_t", "factor")
"""Additional arguments of a half-explicit stage: the point at which constraints are imposed, and 1 / (h ab_ii)."""
RATTLE = ("bar_q", "bar_v", "bar_t", "factor", "push")
"""Additional arguments of a step of RATTLE: q_1 and the velocity after the first half, t_1, h, and h/2."""


@dataclass(frozen=True)
class StraightLineOutputs:
    """Outputs of one function of straight-line code.

    Attributes
    ----------
    solved : Solved
        Its elimination.
    nodes : list of int
        Its results.
    arguments : tuple of str
        Its input vectors, in addition to time and parameters.
    raises : int
        The condition under which a user function raises.
    """

    solved: Solved
    nodes: list[int]
    arguments: tuple[str, ...]
    raises: int


class StraightLine:
    """Straight-line code of a traced mechanism, each function created on first use.

    Parameters
    ----------
    tracer : Tracer
        Tracer with the graph of the functions.
    system : MechanicalSystem
        The original system.
    traces : mapping
        Traces of its functions by name: mass, force and constraints, if they exist.
    """

    def __init__(self, tracer: Tracer, system: MechanicalSystem, traces: dict[str, Traced | None]):
        self._tracer, self._system, self._traces = tracer, system, traces
        self._made: dict[str, TracedFunction | None] = {}
        self._wide: dict[str, MachineFunction | None] = {}
        self._parts = parts_of(tracer, system, PARTS)

    def belongs_to(self, system: MechanicalSystem) -> bool:
        """Whether `system` has the functions and derivatives that this code was built from."""
        return has_parts(system, self._parts)

    @property
    def tracer(self) -> Tracer:
        """The tracer, which holds the graph and its lock."""
        return self._tracer

    def formulas(self, name: str) -> StraightLineOutputs:
        """Outputs of a function as nodes, for other code generators; the caller must hold the lock of the tracer."""
        graph = self._tracer.graph
        graph.most_nodes = max(graph.most_nodes, MOST_OPERATIONS)
        return getattr(self, f"_{name}")()

    def function(self, name: str) -> TracedFunction | None:
        """One of "accelerations" (a, lam from q, v, r), "position_correction" (dq from q), "velocity_correction" (dv
        and K, row by row, from q, v), "stage" (V', Lambda), "rattle_positions" (velocity increments of the first half
        of a step, and those from a change of M) and "rattle_velocities" (velocity increments of the second half); None
        if there is no such code.
        """
        with self._tracer.lock:
            if name not in self._made:
                try:
                    self._made[name] = self._compiled(self.formulas(name))
                except (StructurallySingular, Untraceable):
                    self._made[name] = None
            return self._made[name]

    def in_lanes(self, name: str) -> MachineFunction | None:
        """The same function with eight members in lanes; None if unavailable."""
        with self._tracer.lock:
            if name not in self._wide:
                try:
                    self._wide[name] = self._code(self.formulas(name), lanes=True)
                except (StructurallySingular, Untraceable):
                    self._wide[name] = None
            return self._wide[name]

    @cached_property
    def _dynamics(self) -> Dynamics:
        return dynamics(self._tracer, self._system, self._traces)

    def _accelerations(self) -> StraightLineOutputs:
        solved = self._dynamics.accelerations
        return self._made_of(solved, solved.solutions[0], self._state)

    def _position_correction(self) -> StraightLineOutputs:
        solved = self._dynamics.position_correction
        return self._made_of(solved, solved.solutions[0][: self._system.n_q], ("q",))

    def _velocity_correction(self) -> StraightLineOutputs:
        dynamics, zero = self._dynamics, self._tracer.graph.zero
        solved = dynamics.velocity_correction
        gradients = [row.get(k, zero) for row in dynamics.jacobian for k in range(dynamics.n_q)]
        return self._made_of(solved, [*solved.solutions[0][: dynamics.n_q], *gradients], ("q", "v"))

    def _stage(self) -> StraightLineOutputs:
        n, sizes = self._system.n_q, self._tracer.sizes
        sizes |= dict(zip(STAGE, (n, n, 1, 1), strict=True))
        bar_q, bar_v, (bar_t,), (factor,) = map(self._tracer.nodes, STAGE)
        solved = self._dynamics.stage(bar_t, bar_q, bar_v, factor)
        return self._made_of(solved, solved.solutions[0], (*self._state, *STAGE))

    def _rattle_positions(self) -> StraightLineOutputs:
        n, sizes = self._system.n_q, self._tracer.sizes
        sizes |= dict(zip(RATTLE, (n, n, 1, 1, 1), strict=True))
        x, u, (t_1,), (h,), (push,) = map(self._tracer.nodes, RATTLE)
        dynamics = self._dynamics
        solved, nodes = first_half(dynamics, t_1, x, u, h, push)
        pushed = dynamics.at([self._raises(("q", "v"))], dict(zip(dynamics.v, u)))
        moved = dynamics.at([self._raises(("q",))], {dynamics.t: t_1, **dict(zip(dynamics.q, x))})
        return self._made_of(solved, nodes, ("q", "v", *RATTLE), [*pushed, *moved])

    def _rattle_velocities(self) -> StraightLineOutputs:
        self._tracer.sizes["push"] = 1
        solved = second_half(self._dynamics, self._tracer.nodes("push")[0])
        return self._made_of(solved, solved.solutions[0][: self._system.n_q], ("q", "v", "push"))

    @property
    def _state(self) -> tuple[str, ...]:
        return ("q", "v", "r") if self._system.n_r else ("q", "v")

    def _raises(self, arguments: tuple[str, ...]) -> int:
        """The condition under which a function of the system raises; functions of other arguments are excluded."""
        tracer, raises = self._tracer, self._tracer.graph.false
        for trace in self._traces.values():
            if trace is not None and tracer.foreign([trace.raises], arguments) is None:
                raises = tracer.graph.either(raises, trace.raises)
        return raises

    def _made_of(
        self, solved: Solved, nodes: list[int], arguments: tuple[str, ...], elsewhere: Sequence[int] = ()
    ) -> StraightLineOutputs:
        """The outputs of a function; `elsewhere` are conditions under which user functions raise at other points."""
        raises = self._raises(arguments)
        for further in elsewhere:
            raises = self._tracer.graph.either(raises, further)
        return StraightLineOutputs(solved, nodes, arguments, raises)

    def _compiled(self, formulas: StraightLineOutputs) -> TracedFunction:
        force: Callable = self._system.force
        return self._tracer.made("accelerations", self._code(formulas), force, arguments=(0, 1))

    def _code(self, formulas: StraightLineOutputs, **options: bool) -> MachineFunction:
        statuses = [(formulas.raises, RAISES), (self._dynamics.bad_pivot(formulas.solved), BAD_PIVOT)]
        return self._tracer.code(formulas.arguments, np.array(formulas.nodes), statuses, quick=True, **options)

    def __reduce__(self):
        """Machine code is not pickled."""
        return type(None), ()


def parts_of(tracer: Tracer, system: MechanicalSystem, names: Sequence[str]) -> dict[str, Any]:
    """The attributes of a traced system with the given names."""
    made = tracer.result.functions | tracer.result.derivatives
    return {name: made.get(name, getattr(system, name)) for name in names}


def has_parts(system: MechanicalSystem, parts: Mapping[str, Any]) -> bool:
    """Whether a system still has these functions and constant matrices, which may be replaced in copies."""
    return all(
        getattr(system, name) is part or (isinstance(part, np.ndarray) and np.array_equal(getattr(system, name), part))
        for name, part in parts.items()
    )


def dynamics(tracer: Tracer, system: MechanicalSystem, traces: Mapping[str, Traced | None]) -> Dynamics:
    """Equations of motion on the graph of a tracer, with the given derivatives."""
    graph, mass = tracer.graph, traces.get("mass")
    given: dict[str, Any] = {}
    for name in DERIVATIVES:
        trace = traces.get(name)
        if trace is not None:
            given[name] = rows_of(graph, trace.array) if trace.array.ndim == 2 else list(trace.nodes)
    return Dynamics(
        graph,
        tracer.t.node,
        tracer.nodes("q"),
        tracer.nodes("v"),
        constant_rows(graph, system.mass) if mass is None else rows_of(graph, mass.array),
        _nodes(traces.get("force")),
        _nodes(traces.get("constraint")),
        _nodes(traces.get("velocity_constraint")),
        given,
    )


def straight_line(tracer: Tracer, system: MechanicalSystem, traces: dict[str, Traced | None]) -> StraightLine | None:
    """Straight-line code of a system; None if a function could not be traced, or if forces
    depend on multipliers or on algebraic variables."""
    complete = all(traces[name] is not None for name in PARTS if callable(getattr(system, name)))
    if not complete or system.n_w or system.force_uses_multipliers:
        return None
    return StraightLine(tracer, system, {name: traces[name] for name in PARTS})


def _nodes(traced: Traced | None) -> tuple[int, ...]:
    return () if traced is None else traced.nodes
