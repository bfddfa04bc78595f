"""Problems whose switches are set by data, with machine code for the switching functions and their rates."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from daedal.kernels.functions import CodedFunction
from daedal.problems import ImplicitDAE, MechanicalSystem, SemiExplicitDAE
from daedal.symbolic import Untraceable
from daedal.symbolic.derivative import directional, jacobian
from daedal.symbolic.machine import compile_function
from daedal.symbolic.modes import NAME as MODES
from daedal.symbolic.modes import BranchesTaken
from daedal.symbolic.modes import Followed as Followed
from daedal.symbolic.tracing.function import SwitchedParams
from daedal.symbolic.tracing.mixture import ClosedForm, NotAffine, closed_form
from daedal.symbolic.tracing.parameters import NAME
from daedal.symbolic.tracing.problem import traced_problem
from daedal.symbolic.tracing.switching_functions import MOST_NODES, Enclosure
from daedal.symbolic.tracing.tracer import TracedProblem

MOST_SWITCHES = 64
"""Maximum number of switches; problems with more are integrated as written, since one switch would occur at almost any
time."""
_BOUNDS = ("lower", "upper", "slack")
_FOLLOWED: Any = (ImplicitDAE, SemiExplicitDAE, MechanicalSystem)


def switched_problem(problem: Any, plain: TracedProblem, compile: str, linear_solver: Any) -> SwitchedProblem | None:
    """The problem with its switches set by data; None if it has none, too many, or untraced functions."""
    if not isinstance(problem, _FOLLOWED) or not plain.n_switches or not _is_complete(plain):
        return None
    try:
        traced = traced_problem(problem, compile, linear_solver, follow=plain.n_switches)
        if traced is None or traced.modes is None or not _is_complete(traced):
            return None
        made = SwitchedProblem(traced, plain.problem)
        return made if 0 < made.count <= MOST_SWITCHES else None
    except Untraceable:  # the graph has become too large
        return None


def _is_complete(traced: TracedProblem) -> bool:
    """Whether all user functions are machine code."""
    return set(traced.arguments) <= set(traced.functions) | set(traced.derivatives) and not (
        set(traced.refused) & set(traced.arguments)
    )


class SwitchedProblem:
    """The switches of a problem and their properties.

    Attributes
    ----------
    traced : TracedProblem
        The problem; its parameters are :class:`SwitchedParams`.
    as_written : object
        The problem as machine code, with switches determined by the state.
    switches : list of Followed
    slides : list of bool
        For each switch whether its rate follows from the state, so that the motion can slide along the surface.
    in_time : list of bool
        For each switch whether it depends on time only.
    is_affine : list of bool
        For each switch whether it depends on time only and is affine in it, so that its switching times follow from a
        formula.
    taken : BranchesTaken
        All functions in given modes, including the state-dependent switching functions.
    values, rates : SwitchCode
        The switching functions u of time and state (y' too for first-order problems), and u' along a motion.
    """

    def __init__(self, traced: TracedProblem, as_written: Any):
        assert traced.modes is not None and traced.tracer is not None
        self.as_written = as_written
        self.traced, self.tracer, self.modes = traced, traced.tracer, traced.modes
        self.problem: Any = traced.problem
        self.switches: list[Followed] = self.modes.switches
        self.count = len(self.switches)
        self._graph = self.tracer.graph
        if isinstance(self.problem, MechanicalSystem):
            n, r = self.problem.n_q, self.problem.n_r
            self._sizes, self._slopes = {"q": n, "v": n, "r": r}, {"q": "v", "v": "a", "r": "rate"}
            self._rate_sizes = {**self._sizes, "a": n, "rate": r}
        elif isinstance(self.problem, SemiExplicitDAE):
            n_y, n_z = self.problem.n_y, self.problem.n_z
            self._sizes, self._slopes = {"y": n_y, "z": n_z, "xp": n_y + n_z}, {"y": "xp"}
            self._rate_sizes = self._sizes
        else:
            n = self.problem.n
            self._sizes, self._slopes = {"y": n, "yp": n}, {"y": "yp"}
            self._rate_sizes = self._sizes
        self.state_sizes = {name: size for name, size in self._sizes.items() if name not in ("yp", "xp")}
        self.slope_name = "xp" if "xp" in self._sizes else "yp"
        self.value_size = sum(self._sizes.values())
        self.rate_size = sum(self._rate_sizes.values())
        self.n_state = sum(self.state_sizes.values())
        self.in_time = [self._is_in_time(switch) for switch in self.switches]
        self.is_affine = [in_time and self._is_affine(one) for one, in_time in zip(self.switches, self.in_time)]
        self.slides = [self._has_rate(switch) for switch in self.switches]
        self.has_constant_rates = all(map(self._is_steady, np.flatnonzero(self.is_affine).tolist()))
        self._events: dict[tuple[int, bool, bool], tuple[SwitchCode, Enclosure | None]] = {}
        self._closed: list[ClosedForm | None] = []  # cached closed form, a list with one entry once it is computed
        self._along: dict[tuple[int, ...], Any] = {}
        # for each mode, the switches whose functions depend on it
        self.readers: list[set[int]] = [set() for _ in self.switches]
        for k, switch in enumerate(self.switches):
            for i in self._graph.needed([switch.function]):
                if self._graph.operations[i] == "argument" and self._graph.data[i][0] == MODES:
                    self.readers[self._graph.data[i][1]].add(k)
        # SwitchingFunctions by number of unknowns, and whether along surfaces; created once for all runs
        self.functions_known: dict[tuple[int, bool], Any] = {}
        self._guard = self.tracer.lock  # a graph is not thread-safe
        outputs = [node for trace in self.tracer.traces.values() for node in trace.nodes]
        outputs += [one.function for one, in_time in zip(self.switches, self.in_time) if not in_time]
        self.taken = BranchesTaken(self._graph, outputs)
        self.values = self.code([switch.function for switch in self.switches])
        self.rates = self.code(self._rate_nodes(), self._rate_sizes)

    # --- machine code -------------------------------------------------------------------------------------------------

    def _rate_nodes(self) -> list[int]:
        graph = self._graph
        direction = {self.tracer.t.node: graph.one}
        for name, slope in self._slopes.items():
            direction |= {graph.argument(name, k): graph.argument(slope, k) for k in range(self._sizes[name])}
        return directional(graph, [switch.function for switch in self.switches], direction)

    def events(self, n: int, *, along: bool = False, in_time: bool = False) -> tuple[SwitchCode, Enclosure | None]:
        """Event functions, positive while the modes are valid, as machine code; and their bounds if cheap enough.

        Each switch has two functions of n unknowns and their derivatives. They are tracked for the switches that depend
        on time only if `in_time`, otherwise for the others; the remaining functions are constant. With `along`, two
        more functions per surface of the closed form are positive while its fraction is above 0 and below 1.
        """
        closed, key = self.closed if along else None, (n, along, in_time)
        with self._guard:
            if key not in self._events:
                self._events[key] = self._event_code(n, in_time, [] if closed is None else closed.events())
            return self._events[key]

    def _event_code(self, n: int, in_time: bool, further: list[int]) -> tuple[SwitchCode, Enclosure | None]:
        graph, nodes = self._graph, []
        for j, switch in enumerate(self.switches):
            lower, upper, slack = (graph.argument(name, j) for name in _BOUNDS)
            for inside, bound in (
                (graph.subtract(switch.function, lower), lower),
                (graph.subtract(upper, switch.function), upper),
            ):
                bounded = graph.apply("less", graph.apply("absolute", bound), graph.constant(np.inf))
                watched = graph.both(bounded, graph.apply("equal", inside, inside))
                if self.in_time[j] != in_time or self.is_affine[j]:  # located by other code
                    watched = graph.false
                nodes.append(graph.where(watched, graph.add(inside, slack), graph.one))
        sizes = self._sizes | {"behind": 2 * n - sum(self._sizes.values())}
        code = self.code([*nodes, *further], sizes, with_bounds=True)
        bounds = Enclosure(graph, nodes, self._sizes, self.n_state, code.parameters)
        return code, bounds if bounds.is_worthwhile else None

    @property
    def closed(self) -> ClosedForm | None:
        """Closed form of sliding along any surfaces; None if there is no closed form or no surface."""
        with self._guard:
            if not self._closed:
                self._closed.append(closed_form(self))
            return self._closed[0]

    def along(self, surfaces: tuple[int, ...], make: Callable[[SwitchedProblem, tuple[int, ...]], Any]) -> Any:
        """Result of ``make(self, surfaces)`` for the equations along surfaces; cached, under the lock of the graph."""
        with self._guard:
            if surfaces not in self._along:
                with suppress(NotAffine):  # too many surfaces to combine one after the other
                    self._along[surfaces] = None
                    self._along[surfaces] = make(self, surfaces)
            return self._along[surfaces]

    def code(self, nodes: list[int], sizes: dict[str, int] | None = None, *, with_bounds: bool = False) -> SwitchCode:
        """Machine code for nodes, functions of time and state by default."""
        assert self.tracer.modal is not None
        sizes = self._sizes if sizes is None else sizes
        bounds = dict.fromkeys(_BOUNDS, self.tracer.modal.count) if with_bounds else {}
        parameters = self.tracer.modal.sizes | bounds
        code = compile_function(self._graph, sizes, {"u": nodes}, parameters)
        return SwitchCode(self.tracer.modal, code, bounds, parameters)

    # --- dependencies of switches -------------------------------------------------------------------------------------

    def _is_in_time(self, switch: Followed) -> bool:
        few = len(self._graph.needed([switch.function])) <= MOST_NODES // 8  # leaves room for rates and bounds
        return few and self.modes.depends_on(switch.function) <= {"t", NAME, MODES}

    def _is_affine(self, switch: Followed) -> bool:
        [rate] = directional(self._graph, [switch.function], {self.tracer.t.node: self._graph.one})
        return self.modes.depends_on(rate) <= {NAME, MODES}

    def _is_steady(self, j: int) -> bool:
        """Whether a switching function that is affine in time is independent of all modes, so that its rate is one
        number."""
        return MODES not in self.modes.depends_on(self.switches[j].function)

    def _has_rate(self, switch: Followed) -> bool:
        """Whether the rate of a switching function jumps with the equations and follows from the state alone."""
        names = self.modes.depends_on(switch.function) - {"t", NAME}
        if not switch.is_surface or not switch.jumps or not names:
            return False
        if isinstance(self.problem, MechanicalSystem):
            return names <= {"q", "v"} and self._acts_as_force(switch)
        if names != {"y"}:
            return False
        if isinstance(self.problem, SemiExplicitDAE):
            return True
        slopes = self._entries("yp", self.tracer.traces["residual"].nodes)
        return self._entries("y", [switch.function]) <= slopes  # it depends on differential variables only

    def _entries(self, name: str, nodes: Sequence[int]) -> set[int]:
        """The entries of an argument that nodes depend on."""
        graph = self._graph
        read = [graph.data[i] for i in graph.needed(nodes) if graph.operations[i] == "argument"]
        return {index for argument, index in read if argument == name}

    def _acts_as_force(self, switch: Followed) -> bool:
        """Whether the switch of a mechanism is linear in v and affects only forces."""
        graph, mode = self._graph, self.modes.argument(self.switches.index(switch))
        [row] = jacobian(graph, [switch.function], self.tracer.nodes("v"))
        if any("v" in self.modes.depends_on(entry) for entry in row.values()):
            return False
        others = [trace.nodes for name, trace in self.tracer.traces.items() if name not in _FORCES]
        return all(mode not in graph.needed(nodes) for nodes in others)


_FORCES = ("force", "state_rate", "algebraic")
_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, ctypes.c_void_p)


class SwitchCode(CodedFunction):
    """Machine code for the values of all switches, with the interface of events."""

    def __init__(self, layout, code, bounds, parameters):
        self._layout, self._code, self._bounds, self.parameters = layout, code, tuple(bounds), parameters
        self.address, self.size = code.address, code.size
        self._result = code.slices["u"]
        self._begin = self._result.stop
        self.count = self._result.stop - self._result.start
        self._end = max(place.stop for place in code.slices.values())
        self.workspace = code.size - self._end
        self._call = _SIGNATURE(code.address)

    def numbers(self, params: SwitchedParams) -> np.ndarray:
        """Parameters with their modes and bounds."""
        numbers = self._layout.numbers(params)
        return np.concatenate([numbers, *[getattr(params, name) for name in self._bounds]]) if self._bounds else numbers

    def __call__(self, t: float, *arguments) -> np.ndarray:
        """Values at a point; the last argument is the parameters with their modes."""
        return self.evaluate(t, *arguments)[1]

    def evaluate(self, t: float, *arguments) -> tuple[int, np.ndarray]:
        """Status and values at a point."""
        block, end = np.zeros(self._code.size), 0
        for values in arguments[:-1]:
            block[end : end + values.size] = values
            end += values.size
        block[self._begin : self._end] = self.numbers(arguments[-1])
        status = self._call(t, block.__array_interface__["data"][0])
        return status, block[self._result]
