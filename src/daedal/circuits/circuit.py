"""Circuits: elements, equations, operating points and simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import daedal
from daedal.circuits.circuit_equations import FORMS, LARGEST, CircuitEquations, consistent_start
from daedal.circuits.elements import GROUND, Branch, Element
from daedal.circuits.loops_and_cutsets import Topology, independent_states, topology
from daedal.circuits.operating_point import OperatingPoint, state_at_rest
from daedal.circuits.reading import contents
from daedal.circuits.signals import Constant
from daedal.common.public_names import with_old_keywords
from daedal.common.tabular import listing, plural
from daedal.errors import near_names

ABSOLUTE = {"v": 1e-9, "u": 1e-9, "i": 1e-12, "q": 1e-17, "phi": 1e-12}
"""Absolute tolerances in volts, amperes, coulombs and volt seconds."""


@dataclass(frozen=True)
class Circuit:
    """A circuit, with its equations, operating point and solution.

    Created by :func:`daedal.circuits.parse` or :func:`daedal.circuits.read`.

    Attributes
    ----------
    elements : tuple of Element
    title : str
    held : dict
        Initial node voltages, from ``.ic``.
    t_span : tuple or None
        The interval given by ``.tran``, or None.
    ignored : tuple of str
        Netlist cards that are ignored.
    inputs : tuple of str
        Names of the independent sources whose values are inputs of runs.

    Examples
    --------
    >>> from daedal import circuits
    >>> circuit = circuits.parse('''
    ... V1 in 0 SIN(0 10 50)
    ... D1 in out
    ... C1 out 0 100u
    ... R1 out 0 1k
    ... ''')
    >>> circuit.problem().names
    ('v(in)', 'v(out)', 'i(V1)')
    >>> sol = circuit.solve((0.0, 0.1))
    >>> print(f"{sol['v(out)'].max():.2f}")
    9.28
    """

    elements: tuple[Element, ...]
    title: str = ""
    held: Mapping[str, float] = field(default_factory=dict)
    t_span: tuple[float, float] | None = None
    ignored: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "inputs", _names(self.inputs))
        object.__setattr__(self, "elements", _with_inputs(self.elements, self.inputs))
        check = self.topology  # raises an error for circuits that cannot be solved
        assert check is not None
        for node in self.held:
            if node not in self.nodes:
                raise daedal.InvalidProblemError(f".ic names the node {node}, but no element is connected to it")

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        couplings: dict[str, list[tuple[str, str]]] = {}
        for element in self.elements:
            if element.kind == "K":
                one, other = element.control
                couplings.setdefault(one, []).append((other, element.name))
                couplings.setdefault(other, []).append((one, element.name))
        return tuple(branch for element in self.elements for branch in element.branches(couplings))

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """All nodes except the ground, in the order of the netlist."""
        named = dict.fromkeys(node for element in self.elements for node in element.nodes)
        return tuple(node for node in named if node != GROUND)

    @cached_property
    def topology(self) -> Topology:
        """Loops and cutsets, and the index that follows from them."""
        for element in self.elements:
            for node in element.control if element.kind in "EG" else ():
                if node != GROUND and node not in self.nodes:
                    raise daedal.InvalidProblemError(
                        f"{element.name} is controlled by the voltage of node {node}, but no element is connected to it"
                    )
        return topology(self.branches, self.nodes)

    @cached_property
    def params(self) -> dict[str, float]:
        """The values of all elements by name: ``R1``, ``D1.is``, ``V1.amplitude``."""
        return {name: value for element in self.elements for name, value in element.parameters.items()}

    def equations(self, form: str = "nodal") -> CircuitEquations:
        """The equations in one of the forms ``nodal``, ``charge`` and ``tableau``."""
        if form not in FORMS:
            raise daedal.InvalidProblemError(f"form={form!r} is unknown; choose one of {', '.join(FORMS)}")
        return CircuitEquations(self.branches, self.nodes, form)

    def problem(self, form: str = "nodal") -> daedal.ImplicitDAE:
        """The equations as a problem, whose parameters are the element values by name.

        Parameters
        ----------
        form : {"nodal", "charge", "tableau"}
            Modified nodal analysis; modified nodal analysis with all charges and fluxes as unknowns; or the sparse
            tableau with voltages and currents of all branches.

        Returns
        -------
        daedal.ImplicitDAE
            Unknowns are ``v(node)``, ``i(L1)``, ``q(C1)``, ``phi(L1)``, and in the tableau ``u(R1)`` and ``i(R1)`` of
            all branches. The equation with the index of ``v(node)`` is Kirchhoff's current law at that node.

        Examples
        --------
        >>> from daedal import circuits
        >>> circuit = circuits.parse("V1 a 0 1\\nR1 a b 1k\\nC1 b 0 1u")
        >>> circuit.problem("tableau").names
        ('u(V1)', 'u(R1)', 'u(C1)', 'i(V1)', 'i(R1)', 'i(C1)', 'v(a)', 'v(b)')
        """
        equations = self.equations(form)

        names, levels = self.inputs, self.params

        def residual(t, x, xp, p):
            return equations.residual(t, x, xp, p)

        def driven_residual(t, x, xp, p, u):
            return equations.residual(t, x, xp, {**p, **{name: u[k] for k, name in enumerate(names)}})

        return daedal.ImplicitDAE(
            driven_residual if names else residual,
            len(equations.names),
            params={name: level for name, level in levels.items() if name not in names},
            sparsity=equations.sparsity(levels),
            names=equations.names,
            inputs={name: levels[name] for name in names} or None,
        )

    def operating_point(self, t: float = 0.0, form: str = "nodal") -> OperatingPoint:
        """The DC operating point with the sources at time `t`: capacitor currents and inductor voltages are zero.

        Raises
        ------
        daedal.InvalidProblemError
            If the circuit does not determine the operating point; the message names nodes or elements.
        daedal.InconsistentInitialError
            If the search fails.
        """
        equations = self.equations(form)
        return OperatingPoint(equations.names, state_at_rest(equations, self.params, float(t), {}))

    @with_old_keywords(given="initial")
    def start(
        self, t0: float = 0.0, *, form: str = "nodal", initial: Mapping[str, float] | None = None, empty: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Consistent initial values.

        Parameters
        ----------
        t0 : float
        form : {"nodal", "charge", "tableau"}
        initial : mapping, optional
            Capacitor voltages, inductor currents and node voltages, such as ``{"C1": 5.0, "L1": 0.1,
            "v(out)": 1.0}``. They take precedence over ``ic=`` and ``.ic`` of the netlist. Other values are those of
            the operating point.
        empty : bool
            Whether capacitors and inductors without given values start at zero instead, as with ``uic`` in SPICE,
            unless sources and other elements determine their voltage or current.

        Returns
        -------
        y0, yp0 : numpy.ndarray

        Examples
        --------
        >>> from daedal import circuits
        >>> circuit = circuits.parse("C1 a 0 1u\\nL1 a 0 1m\\nR1 a 0 1k")
        >>> y0, yp0 = circuit.start(initial={"C1": 5.0, "L1": 0.0})
        >>> print(y0, yp0)
        [5. 0.] [-5000.  5000.]
        """
        return self._start(self._as_code(form), float(t0), form, self._levels(initial or {}, empty))

    def with_values(self, values: Mapping[str, float]) -> Circuit:
        """A copy with other element values, by the names in :attr:`params`.

        Examples
        --------
        >>> from daedal import circuits
        >>> divider = circuits.parse("V1 a 0 12\\nR1 a b 1k\\nR2 b 0 3k")
        >>> print(round(divider.with_values({"R2": 1e3, "V1": 10.0}).operating_point()["v(b)"], 9))
        5.0
        """
        for name in values:
            if name not in self.params:
                raise daedal.errors.UnknownNameError(
                    f"the circuit has no parameter {name!r}; it has {listing(self.params)}"
                )
        return replace(self, elements=tuple(element.with_values(values) for element in self.elements))

    def breakpoints(self, t0: float, t1: float) -> np.ndarray:
        """Times between t0 and t1 at which sources have kinks or jumps."""
        corners = [element.signal.corners(t0, t1) for element in self.elements if element.signal is not None]
        return np.array(sorted({corner for found in corners for corner in found}))

    def tolerances(self, form: str = "nodal") -> np.ndarray:
        """Absolute tolerances of the unknowns: 1e-9 V, 1e-12 A, 1e-17 C, 1e-12 Vs."""
        return np.array([ABSOLUTE[name.partition("(")[0]] for name in self.equations(form).names])

    @with_old_keywords(given="initial")
    def solve(
        self,
        t_span: tuple[float, float] | None = None,
        *,
        form: str = "nodal",
        initial: Mapping[str, float] | None = None,
        empty: bool = False,
        **options: Any,
    ) -> Any:
        """Integrate from the operating point, or from given voltages and currents; see :meth:`start`.

        Parameters
        ----------
        t_span : (float, float), optional
            By default that of ``.tran``.
        form, initial, empty
            As for :meth:`start`.
        **options
            Options of :func:`daedal.solve`; `params` contains other element values by name, as for :meth:`with_values`.
            By default, kinks of sources are break points and absolute tolerances are those of :meth:`tolerances`.

        Returns
        -------
        daedal.Solution
            A :class:`daedal.HybridSolution` if sources have kinks in the interval.
        """
        if t_span is None and self.t_span is None:
            raise daedal.InvalidProblemError("t_span is missing: the netlist has no .tran card")
        t0, t1 = map(float, t_span if t_span is not None else self.t_span or (0.0, 0.0))
        if "params" in options:
            return self.with_values(options.pop("params")).solve(
                t_span, form=form, initial=initial, empty=empty, **options
            )
        options.setdefault("atol", self.tolerances(form))
        corners = self.breakpoints(min(t0, t1), max(t0, t1))
        if corners.size:
            options.setdefault("breakpoints", corners)
        levels = self._levels(initial or {}, empty)
        if options.get("inputs") is None:
            problem = self._as_code(form)
            return daedal.solve(problem, (t0, t1), self._start(problem, t0, form, levels), **options)
        problem = self.problem(form).with_inputs(options.pop("inputs"), hold=options.pop("hold", "zero"))
        signals = problem.params.inputs
        sources = self.with_values({name: x(t0) if callable(x) else x for name, x in signals.items()})
        start = sources._start(sources._as_code(form), t0, form, levels)
        return daedal.solve(problem, (t0, t1), start, **options)

    @cached_property
    def _stated(self) -> daedal.ImplicitDAE:
        return self.problem("nodal") if self.inputs else self._as_code("nodal")

    def as_problem(self, initial: Any = None) -> daedal.ImplicitDAE:
        """The nodal equations, which :func:`daedal.solve` uses for a circuit; every call returns the same object."""
        return self._stated

    def as_initial(self, initial: Any, t0: float, params: Mapping[str, float] | None = None) -> Any:
        """Initial values of :meth:`as_problem`, from voltages and currents by name as in :meth:`start`.

        None means the operating point; a pair of values and derivatives is returned unchanged.
        """
        if initial is not None and not isinstance(initial, Mapping):
            return initial
        circuit = self.with_values(params) if params else self
        return circuit._start(circuit._as_code("nodal"), t0, "nodal", circuit._levels(initial or {}, False))

    def as_breakpoints(self, t0: float, t1: float, params: Mapping[str, float] | None = None) -> np.ndarray | None:
        """Times at which sources have kinks or jumps; None if there are none."""
        corners = (self.with_values(params) if params else self).breakpoints(min(t0, t1), max(t0, t1))
        return corners if corners.size else None

    def __str__(self) -> str:
        counted = f"{plural(len(self.elements), 'element')}, {plural(len(self.nodes), 'node')} besides the ground"
        lines = [self.title or "circuit", counted, str(self.topology)]
        return "\n".join([*lines, *(f"ignored: {text}" for text in self.ignored)])

    def _as_code(self, form: str) -> daedal.ImplicitDAE:
        """The problem in a form; for a large circuit, as machine code, which the start and the run share."""
        problem = self.problem(form)
        return problem.compiled(backend="trace") if problem.n > LARGEST else problem

    def _start(self, problem: daedal.ImplicitDAE, t0: float, form: str, levels: Mapping[str, float]):
        equations = self.equations(form)
        x = state_at_rest(equations, self.params, t0, levels)
        if len(x) <= LARGEST:
            found = consistent_start(equations, self.params, t0, x, self.topology.index(form))
            if found is not None:
                return found
        return daedal.consistent_initial(problem, t0, (x, None), atol=self.tolerances(form))

    def _levels(self, given: Mapping[str, float], empty: bool) -> dict[str, float]:
        """Voltages and currents fixed at the start, by element name or node voltage."""
        states = {element.name: element.initial for element in self.elements if element.kind in "CL"}
        potentials = [f"v({node})" for node in self.nodes]
        for name in given:
            if name not in states and name not in potentials:
                known = listing([*states, *potentials][:20])
                raise daedal.InvalidProblemError(
                    f"initial: {name!r} is not a capacitor, inductor or node; known: {known}"
                )
        levels = {name: initial for name, initial in states.items() if initial is not None}
        levels |= {f"v({node})": level for node, level in self.held.items()}
        levels |= {name: float(level) for name, level in given.items()}
        if empty:
            levels = dict.fromkeys(independent_states(self.branches, self.nodes, levels), 0.0) | levels
        return levels


def parse(text: str, *, inputs: Any = ()) -> Circuit:
    """A circuit from the text of a netlist.

    Parameters
    ----------
    text : str
        One element per line, as in SPICE; the user guide on circuits lists all elements.
    inputs : sequence of str, optional
        Names of independent sources that are inputs, set by the option `inputs` of :func:`daedal.solve` or by `u` in
        steps of a :class:`daedal.Simulation`. Their values in the netlist are the defaults.

    Raises
    ------
    daedal.InvalidProblemError
        If a line is invalid or the circuit has floating nodes, loops of voltage sources or cutsets of current sources;
        the message names the line or the elements.

    Examples
    --------
    >>> from daedal import circuits
    >>> print(circuits.parse('''
    ... .title low-pass filter
    ... V1 in 0 SIN(0 1 1k)
    ... R1 in out 1k
    ... C1 out 0 100n
    ... '''))
    low-pass filter
    3 elements, 2 nodes besides the ground
    index 1, 1 degree of freedom
    """
    if not isinstance(text, str):
        raise daedal.InvalidProblemError(
            f"a netlist must be a string, not {type(text).__name__}; read files with read(path)"
        )
    found = contents(text)
    return Circuit(tuple(found.elements), found.title, found.held, found.t_span, tuple(found.ignored), inputs)


def _names(given: Any) -> tuple[str, ...]:
    return tuple(given.replace(",", " ").split() if isinstance(given, str) else given)


def _with_inputs(elements: tuple[Element, ...], names: tuple[str, ...]) -> tuple[Element, ...]:
    """The elements, with a constant signal for each source in `names`."""
    sources = {element.name: element for element in elements if element.signal is not None}
    made = {}
    for name in names:
        if name not in sources:
            known = listing(sources) if sources else "none"
            raise daedal.errors.UnknownNameError(
                f"inputs: {name!r} is not an independent source; {near_names(name, sources)}it has {known}"
            )
        signal: Any = sources[name].signal
        level = signal.at(0.0, signal.parameters.__getitem__)
        made[name] = replace(sources[name], signal=Constant(float(level)))
    return tuple(made.get(element.name, element) for element in elements)


def read(path: str | Path, *, inputs: Any = ()) -> Circuit:
    """A circuit from a SPICE netlist file, whose first line is always a title; see :func:`parse`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from daedal import circuits
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "divider.cir")
    ...     _ = file.write_text("divider\\nV1 a 0 12\\nR1 a b 1k\\nR2 b 0 3k\\n")
    ...     print(circuits.read(file).operating_point().names)
    ('v(a)', 'v(b)', 'i(V1)')
    """
    text = Path(path).read_text(encoding="utf-8")
    title, _, rest = text.partition("\n")
    return parse(f"* {title}\n{rest}" if title.strip() else text, inputs=inputs)
