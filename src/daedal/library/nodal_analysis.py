"""Modified nodal analysis; unknowns are the node voltages and those currents that are not functions of voltages."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu, spsolve

import daedal
from daedal.library.circuits import Branch, Source, linear_residual, pack, without_derivative
from daedal.library.registry import Indices, Model, check_choice, check_positive, closed_model, compile_if_large, model

VALUES = {"R": "resistance", "C": "capacitance", "L": "inductance"}
CONTROLLED = ("VCVS", "CCVS", "VCCS", "CCCS")
WITH_CURRENT = ("E", "L", "VCVS", "CCVS")
"""Branches whose current is an unknown."""


class Control(NamedTuple):
    """Control of a controlled source: `gain` times the voltage between two nodes, or the current of a branch.

    Attributes
    ----------
    gain : float
        Ratio of the output to the controlling voltage or current.
    positive, negative : int
        Nodes of the controlling voltage.
    branch : int
        Number of the branch with the controlling current, from 1; it must be a voltage source (of any kind) or an
        inductor.
    """

    gain: float
    positive: int = 0
    negative: int = 0
    branch: int = 0


class Matrices(NamedTuple):
    """The equations ``H x' + G x = f(t)`` of a circuit; `sources` are pairs (row, source), and f is their sum."""

    H: sparse.csr_array
    G: sparse.csr_array
    sources: list[tuple[int, Source]]
    names: list[str]


def mna(branches: Sequence[Branch | tuple], *, compiled: bool | None = None) -> daedal.ImplicitDAE:
    """Formulate a circuit by modified nodal analysis.

    Parameters
    ----------
    branches : sequence of Branch
        The circuit as an incidence list; plain tuples ``(kind, positive, negative, value)`` are accepted. In addition
        to the kinds of :class:`Branch` there are the controlled sources ``"VCVS"``, ``"CCVS"`` (voltage sources
        controlled by a voltage or a current), ``"VCCS"`` and ``"CCCS"`` (current sources), whose value is a
        :class:`Control`.
    compiled : bool, optional
        Whether the residual is compiled; by default for 200 unknowns or more.

    Returns
    -------
    daedal.ImplicitDAE
        Variables are the node voltages ``v1``, ``v2``, ... and the currents of voltage sources and inductors, named
        by kind and number of the branch, such as ``i_L3``. The equations are Kirchhoff's current law for each node,
        followed by the laws of these branches. The matrices are sparse.

    Notes
    -----
    Without controlled sources the index is at most 2. It is 2 if there is a loop of capacitors and voltage sources with
    at least one source, or a cutset of inductors and current sources (C. Tischendorf, Topological index
    calculation of differential-algebraic equations in circuit simulation, Surveys Math. Indust. 8, 1999).

    Examples
    --------
    >>> from daedal.library import Source, mna
    >>> sine = Source(amplitude=1.0, frequency=2.0)
    >>> mna([("E", 1, 0, sine), ("L", 1, 2, 0.1), ("C", 2, 0, 1e-3), ("R", 2, 0, 50.0)]).names
    ('v1', 'v2', 'i_E1', 'i_L2')
    """
    H, G, sources, names = matrices(branches)
    problem = daedal.ImplicitDAE(
        linear_residual,
        len(names),
        params=pack(H, G, sources),
        algebraic=without_derivative(H),
        sparsity=abs(H) + abs(G),
        names=names,
    )
    return compile_if_large(problem, compiled)


def matrices(branches: Sequence[Branch | tuple]) -> Matrices:
    """Matrices, sources and names of the equations of :func:`mna`."""
    network = [Branch(*branch) for branch in branches]
    nodes = _check(network)
    current = dict(zip([k for k, branch in enumerate(network) if branch.kind in WITH_CURRENT], range(nodes, 10**9)))
    entries: dict[str, dict[tuple[int, int], float]] = {"H": {}, "G": {}}
    sources: list[tuple[int, Source]] = []

    def add(matrix: str, row: int, column: int, value: float):
        if row >= 0 and column >= 0:  # -1 denotes the ground
            entries[matrix][row, column] = entries[matrix].get((row, column), 0.0) + value

    for k, (kind, positive, negative, value) in enumerate(network):
        ends = ((positive - 1, 1.0), (negative - 1, -1.0))
        if kind in WITH_CURRENT:
            for node, sign in ends:
                add("G", node, current[k], sign)
                add("G", current[k], node, -sign if kind == "L" else sign)
        if kind in "RC":
            matrix, factor = ("G", 1.0 / value) if kind == "R" else ("H", value)
            for row, sign in ends:
                for column, other in ends:
                    add(matrix, row, column, factor * sign * other)
        elif kind == "L":
            add("H", current[k], current[k], value)
        elif kind == "E":
            sources.append((current[k], _source(value)))
        elif kind == "S":
            source = _source(value)
            opposite = source._replace(offset=-source.offset, amplitude=-source.amplitude)
            sources += [(row, opposite if sign > 0.0 else source) for row, sign in ends if row >= 0]
        else:
            rows = [(current[k], -1.0)] if kind in WITH_CURRENT else [(row, sign) for row, sign in ends]
            control = [(value.positive - 1, 1.0), (value.negative - 1, -1.0)]
            if kind[:2] == "CC":
                control = [(current[value.branch - 1], 1.0)]
            for row, sign in rows:
                for column, other in control:
                    add("G", row, column, sign * other * value.gain)
    n = nodes + len(current)
    names = [f"v{k}" for k in range(1, nodes + 1)] + [f"i_{network[k].kind}{k + 1}" for k in current]
    return Matrices(_sparse(entries["H"], n), _sparse(entries["G"], n), sources, names)


def _check(network: Sequence[Branch]) -> int:
    """Check a circuit and return its number of nodes."""
    ends = {node for branch in network for node in (branch.positive, branch.negative)}
    missing = set(range(max(ends) + 1)) - ends
    if missing:
        raise daedal.InvalidProblemError(
            f"no branch ends at node {min(missing)}; number the nodes 1, 2, 3, ... and the ground 0"
        )
    for number, branch in enumerate(network, 1):
        check_choice(f"kind of branch {number}", branch.kind, ("E", "S", *VALUES, *CONTROLLED))
        if branch.kind in VALUES:
            check_positive(**{f"{VALUES[branch.kind]} of branch {number}": branch.value})
        elif branch.kind in CONTROLLED:
            _check_control(network, number, branch, max(ends))
    return max(ends)


def _check_control(network: Sequence[Branch], number: int, branch: Branch, nodes: int):
    value = branch.value
    if not isinstance(value, Control):
        raise daedal.InvalidProblemError(f"the value of branch {number} ({branch.kind}) must be a Control")
    if branch.kind[:2] == "VC" and not 0 <= min(value[1:3]) <= max(value[1:3]) <= nodes:
        raise daedal.InvalidProblemError(
            f"branch {number} is controlled by the nodes {value[1]} and {value[2]}; nodes are numbered 0 to {nodes}"
        )
    if branch.kind[:2] == "CC":
        known = 1 <= value.branch <= len(network) and network[value.branch - 1].kind in WITH_CURRENT
        if not known:
            raise daedal.InvalidProblemError(
                f"branch {number} is controlled by the current of branch {value.branch}, which is not an unknown; "
                "put a voltage source of 0 V in series with it"
            )


def _source(value) -> Source:
    return value if isinstance(value, Source) else Source(offset=value)


def _sparse(entries: dict[tuple[int, int], float], n: int) -> sparse.csr_array:
    rows, columns = np.array(list(entries), dtype=int).reshape(-1, 2).T
    return sparse.csr_array((list(entries.values()), (rows, columns)), shape=(n, n))


# --- linear circuits of any size by modified nodal analysis, with exact solutions -------------------------------------

# Their solutions consist of forced oscillations and one natural mode exp(s t), where s is a root of det(s H + G) = 0.
# Both follow from sparse linear systems, for any index. ``model.extra`` has ``exact(t, derivative)``, ``branches``, the
# incidence list, and ``matrices``, H and G of ``H x' + G x = f(t)``.

SINE = Source(amplitude=1.0, frequency=1.0)


@model
def lc_ladder(cells: int = 50, compiled: bool | None = None) -> Model:
    """A ladder of `cells` inductors and capacitors, driven by a voltage source: index 1."""
    _check_size(cells=cells)
    branches = [Branch("E", 1, 0, SINE)]
    for k in range(1, cells + 1):
        branches += [Branch("L", k, k + 1, 0.5), Branch("C", k + 1, 0, 0.5)]
    branches.append(Branch("R", cells + 1, 0, 1.0))
    shown = ["v1", f"v{cells + 1}", "i_E1"]
    return _circuit(branches, Indices.usual(1, 2 * cells), -0.05 + 1.0j, shown, compiled)


@model
def capacitor_loops(nodes: int = 100, compiled: bool | None = None) -> Model:
    """A chain of capacitors with a voltage source in the first loop (CV-loop): index 2."""
    _check_size(nodes=nodes)
    branches = [Branch("E", 1, 0, SINE)]
    for k in range(2, nodes + 1):
        branches += [Branch("C", k - 1, k, 1.0), Branch("C", k, 0, 0.5), Branch("R", k, 0, 1.0 + k / nodes)]
    shown = ["v1", f"v{(nodes + 2) // 2}", "i_E1"]
    return _circuit(branches, Indices.usual(2, nodes - 1), -0.5, shown, compiled)


@model
def inductor_cutsets(nodes: int = 100, compiled: bool | None = None) -> Model:
    """A line of inductors fed by a current source, with resistors at every second node (LI-cutsets): index 2."""
    _check_size(nodes=nodes)
    if nodes % 2:
        raise daedal.InvalidProblemError(f"nodes={nodes} must be even: the line ends with a resistor")
    branches = [Branch("S", 0, 1, SINE)]
    branches += [Branch("L", k, k + 1, 1.0 + 0.5 * k / nodes) for k in range(1, nodes)]
    branches += [Branch("R", k, 0, 1.0) for k in range(2, nodes + 1, 2)]
    shown = ["v1", "v2", f"v{nodes}"]
    return _circuit(branches, Indices.usual(2, nodes // 2 - 1), -0.3, shown, compiled)


@model
def controlled_sources(stages: int = 2) -> Model:
    """Capacitors across voltage sources, each controlled by the current of the previous one: index ``stages + 2``."""
    _check_size(stages=stages)
    branches = [Branch("E", 1, 0, SINE), Branch("C", 1, 0, 0.5)]
    for k in range(1, stages + 1):
        branches += [Branch("CCVS", k + 1, 0, Control(2.0, branch=2 * k - 1)), Branch("C", k + 1, 0, 0.5)]
    return _circuit(branches, Indices.usual(stages + 2, 0), None, ["v1", f"v{stages + 1}"], None, t1=2.0)


# --- exact solutions -------------------------------------------------------------------------------------------------


def forced_and_natural(circuit: Matrices, shift: complex | None) -> Callable[..., np.ndarray]:
    """The solution ``x(t, derivative)`` of a circuit: forced oscillations, and the natural mode nearest to `shift`."""
    terms: dict[complex, np.ndarray] = {}  # x = Re sum c exp(s t)
    for row, source in circuit.sources:
        for s, size in (
            (0.0, source.offset),
            (1j * source.frequency, -1j * source.amplitude * np.exp(1j * source.phase)),
        ):
            if size:
                terms.setdefault(s, np.zeros(len(circuit.names), dtype=complex))[row] += size
    terms = {s: spsolve((circuit.G + s * circuit.H).tocsc(), f) for s, f in terms.items()}
    if shift is not None:
        s, vector = natural_mode(circuit, shift)
        terms[s] = terms.get(s, 0.0) + 0.5 * vector / np.abs(vector).max()

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        return np.real(sum(s**derivative * np.exp(s * t) * c for s, c in terms.items()))

    return exact


def natural_mode(circuit: Matrices, shift: complex) -> tuple[complex, np.ndarray]:
    """A root s of det(s H + G) = 0 near `shift` and its eigenvector, by inverse iteration."""
    H, G = circuit.H.tocsc(), circuit.G.tocsc()
    vector = np.exp(1j * np.arange(len(circuit.names)))
    root = complex(shift)
    for steps in (40, 4, 4):  # iterations at the shift, then near the root, where the matrix can still be factored
        s = root + 1e-7 * abs(root)
        solve = splu((G + s * H).tocsc().astype(complex)).solve
        for _ in range(steps):
            image = solve(H @ vector)
            root = s - np.vdot(vector, vector) / np.vdot(vector, image)  # (G + s H) v = (s - root) H v
            vector = image / np.linalg.norm(image)
    return root, vector / vector[np.argmax(np.abs(vector))]


def _circuit(
    branches: Sequence[Branch],
    indices: Indices,
    shift: complex | None,
    shown: list[str],
    compiled: bool | None,
    t1: float = 5.0,
) -> Model:
    circuit = matrices(branches)
    exact = forced_and_natural(circuit, shift)
    known = {"method": "dassl", "error_test": "differential"} if indices.differentiation == 2 else {}
    return closed_model(
        mna(branches, compiled=compiled),
        exact,
        t1,
        accuracy=1e-12,
        origin="forced oscillations and a natural mode, by sparse linear systems",
        index=indices.differentiation,
        indices=indices,
        options={"rtol": 1e-6, "atol": 1e-8} | known,
        plot={"variables": shown},
        extra={"branches": list(branches), "matrices": (circuit.H, circuit.G)},
    )


def _check_size(**given: int):
    for name, value in given.items():
        if not isinstance(value, int) or value < (1 if name == "stages" else 2):
            raise daedal.InvalidProblemError(
                f"{name}={value!r} must be an integer, at least {1 if name == 'stages' else 2}"
            )
