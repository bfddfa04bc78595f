"""Linear circuits, after Brenan, Campbell and Petzold, section 6.4: ``H x' + G x = f(t)`` and the sparse tableau."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import daedal
from daedal.library.registry import Indices, Model, check_choice, check_positive, closed_model, model

Array = np.ndarray


# --- constant matrices and sinusoidal sources -----------------------------------------------------------------------


class Source(NamedTuple):
    """The signal ``offset + amplitude * sin(frequency * t + phase)``; `frequency` is angular."""

    offset: float = 0.0
    amplitude: float = 0.0
    frequency: float = 0.0
    phase: float = 0.0

    def __call__(self, t: float, derivative: int = 0) -> float:
        """Value of the signal, or of one of its derivatives, at `t`."""
        angle = self.frequency * t + self.phase + derivative * np.pi / 2.0
        oscillation = self.amplitude * self.frequency**derivative * np.sin(angle)
        return float(oscillation + (self.offset if derivative == 0 else 0.0))


def linear_residual(t, x, xp, p):
    """``H x' + G x - f(t)``; p contains four counts, the entries of H and G, and the sources (:func:`pack`)."""
    n, n_h, n_g, n_f = int(p[0]), int(p[1]), int(p[2]), int(p[3])
    r = np.zeros(n)
    k = 4
    for _ in range(n_h):
        r[int(p[k])] += p[k + 2] * xp[int(p[k + 1])]
        k += 3
    for _ in range(n_g):
        r[int(p[k])] += p[k + 2] * x[int(p[k + 1])]
        k += 3
    for _ in range(n_f):
        r[int(p[k])] -= p[k + 1] + p[k + 2] * np.sin(p[k + 3] * t + p[k + 4])
        k += 5
    return r


def linear_jacobian(t, x, xp, cj, p):
    """``G + cj H``."""
    n, n_h, n_g = int(p[0]), int(p[1]), int(p[2])
    matrix = np.zeros((n, n))
    k = 4
    for _ in range(n_h):
        matrix[int(p[k]), int(p[k + 1])] += cj * p[k + 2]
        k += 3
    for _ in range(n_g):
        matrix[int(p[k]), int(p[k + 1])] += p[k + 2]
        k += 3
    return matrix


def linear_dae(H: Array, G: Array, sources: Mapping[int, Source], names: Sequence[str]) -> daedal.ImplicitDAE:
    """The problem ``H x' + G x = f(t)``; `sources` maps row numbers to entries of ``f``."""
    H, G = sparse.csr_array(H, dtype=float), sparse.csr_array(G, dtype=float)
    return daedal.ImplicitDAE(
        linear_residual,
        H.shape[0],
        jacobian=linear_jacobian,
        params=pack(H, G, list(sources.items())),
        algebraic=without_derivative(H),
        names=names,
    )


def without_derivative(H: sparse.csr_array) -> Array:
    """Indices of the unknowns whose derivatives do not occur."""
    return np.setdiff1d(np.arange(H.shape[1]), H.indices)


def pack(H: sparse.csr_array, G: sparse.csr_array, sources: Sequence[tuple[int, Source]]) -> Array:
    """Pack the parameters of :func:`linear_residual`; an equation may have several sources."""
    packed = [float(H.shape[0]), float(H.nnz), float(G.nnz), float(len(sources))]
    for matrix in (H.tocoo(), G.tocoo()):
        for row, column, value in zip(*matrix.coords, matrix.data, strict=True):
            packed += [float(row), float(column), float(value)]
    for row, source in sources:
        packed += [float(row), *map(float, source)]
    return np.array(packed)


def response(A: Array, inputs: Sequence[tuple[Array, Source]], x0: Array) -> Callable[[float, int], Array]:
    """Closed-form solution of ``x' = A x + sum b_k s_k(t)``, ``x(0) = x0``, for a stable matrix A.

    Returns ``x(t, derivative)``: stationary oscillations plus a term that decays like ``exp(A t)``.
    """
    from scipy.linalg import expm

    identity = np.eye(len(A))
    constant = np.zeros(len(A))
    phasors = []
    for b, source in inputs:
        constant -= np.linalg.solve(A, b * source.offset)
        amplitude = source.amplitude * np.exp(1j * source.phase) * b
        phasors.append((source.frequency, np.linalg.solve(1j * source.frequency * identity - A, amplitude)))

    def stationary(t: float, derivative: int) -> Array:
        x = constant if derivative == 0 else np.zeros(len(A))
        for omega, phasor in phasors:
            x = x + np.imag((1j * omega) ** derivative * phasor * np.exp(1j * omega * t))
        return x

    rest = x0 - stationary(0.0, 0)

    def x(t: float, derivative: int = 0) -> Array:
        return stationary(t, derivative) + np.linalg.matrix_power(A, derivative) @ expm(A * t) @ rest

    return x


# --- networks by the sparse tableau ---------------------------------------------------------------------------------

_KINDS = {"E": "voltage source", "C": "capacitor", "R": "resistor", "L": "inductor", "S": "current source"}


class Branch(NamedTuple):
    """One element of a network.

    Attributes
    ----------
    kind : {"E", "C", "R", "L", "S"}
        Voltage source, capacitor, resistor, inductor or current source.
    positive, negative : int
        The nodes; the current flows through the branch from the positive to the negative one. Node 0 is the ground.
    value : float or Source
        Capacitance, resistance or inductance; for sources, the constant value or the signal.
    """

    kind: str
    positive: int
    negative: int
    value: Any


def incidence(branches: Sequence[Branch]) -> Array:
    """Incidence matrix A (branches by nodes, without the ground): ``v_B = A v_N`` and ``A^T i_B = 0``."""
    nodes = max(max(branch.positive, branch.negative) for branch in branches)
    A = np.zeros((len(branches), nodes))
    for row, branch in enumerate(branches):
        for node, sign in ((branch.positive, 1.0), (branch.negative, -1.0)):
            if node > 0:
                A[row, node - 1] += sign
    return A


def sparse_tableau(branches: Sequence[Branch | tuple]) -> daedal.ImplicitDAE:
    """Formulate a network by its sparse tableau, ``H x' + G x = f(t)`` with ``x = (v_B, i_B, v_N)``.

    Parameters
    ----------
    branches : sequence of Branch
        The network as an incidence list; plain tuples ``(kind, positive, negative, value)`` are accepted.

    Returns
    -------
    daedal.ImplicitDAE
        Variables are named ``v_R2``, ``i_R2``, ``v2``, by kind and number of the branch (from 1, in the given order) or
        by number of the node. The equations are the branch laws, ``A v_N = v_B``, and Kirchhoff's current law.

    Examples
    --------
    >>> from daedal.library import sparse_tableau
    >>> sparse_tableau([("E", 1, 0, 5.0), ("R", 1, 2, 100.0), ("C", 2, 0, 1e-6)]).names
    ('v_E1', 'v_R2', 'v_C3', 'i_E1', 'i_R2', 'i_C3', 'v1', 'v2')
    """
    network = [Branch(*branch) for branch in branches]
    for branch in network:
        check_choice("kind", branch.kind, _KINDS)
        if branch.kind in "CRL":
            check_positive(**{_KINDS[branch.kind]: branch.value})
    A = incidence(network)
    n_branches, n_nodes = A.shape
    unconnected = np.flatnonzero(~np.any(A != 0.0, axis=0))
    if unconnected.size:
        raise daedal.InvalidProblemError(f"no branch ends at node {unconnected[0] + 1}; number the nodes 1, 2, 3, ...")
    n = 2 * n_branches + n_nodes
    H, G = np.zeros((n, n)), np.zeros((n, n))
    sources = {}
    for k, (kind, _, _, value) in enumerate(network):
        v, i = k, n_branches + k
        if kind in "ES":
            G[k, v if kind == "E" else i] = 1.0
            sources[k] = value if isinstance(value, Source) else Source(offset=value)
        elif kind == "C":
            H[k, v], G[k, i] = value, -1.0
        elif kind == "R":
            G[k, v], G[k, i] = 1.0, -value
        else:
            H[k, i], G[k, v] = value, -1.0
    drop = slice(n_branches, 2 * n_branches)
    G[drop, 2 * n_branches :] = A
    G[drop, :n_branches] = -np.eye(n_branches)
    G[2 * n_branches :, drop] = A.T
    labels = [f"{branch.kind}{k}" for k, branch in enumerate(network, 1)]
    names = [f"v_{label}" for label in labels] + [f"i_{label}" for label in labels]
    return linear_dae(H, G, sources, names + [f"v{k}" for k in range(1, n_nodes + 1)])


def netlist(branches: Sequence[Branch]) -> str:
    """Netlist of a network for :func:`daedal.circuits.parse`; elements are numbered like the branches."""
    lines = []
    for number, (kind, positive, negative, value) in enumerate(branches, 1):
        if kind in "ES":
            source = value if isinstance(value, Source) else Source(offset=value)
            hertz, degrees = source.frequency / (2.0 * np.pi), np.degrees(source.phase)
            text = f"SIN({source.offset!r} {source.amplitude!r} {float(hertz)!r} 0 0 {float(degrees)!r})"
        else:
            text = repr(float(value))
        lines.append(f"{'VI'['ES'.index(kind)] if kind in 'ES' else kind}{number} {positive} {negative} {text}")
    return "\n".join(lines)


def _network(
    branches: list[Branch], indices: Indices, exact: Callable[[float, int], Array], t1: float, **others
) -> Model:
    others |= {"index": indices.differentiation, "indices": indices}
    extra = {"branches": branches, "incidence": incidence(branches), "netlist": netlist(branches)}
    return closed_model(sparse_tableau(branches), exact, t1, accuracy=1e-13, extra=extra, **others)


@model
def rlc_network(resistance: float = 1.0, inductance: float = 0.1, capacitance: float = 0.05) -> Model:
    """One branch of each kind: source, resistor, inductor and capacitor in series, and a parallel current source.

    Notes
    -----
    ``model.extra["exact"](t, derivative)`` is the closed-form solution, ``model.extra["branches"]`` the incidence list,
    and ``model.extra["netlist"]`` the network for :func:`daedal.circuits.parse`.
    """
    R, L, C = resistance, inductance, capacitance
    e, s = Source(amplitude=1.0, frequency=10.0), Source(offset=0.1, amplitude=0.2, frequency=4.0)
    network = (("E", 1, 0, e), ("C", 3, 0, C), ("R", 1, 2, R), ("L", 2, 3, L), ("S", 0, 3, s))
    branches = [Branch(*branch) for branch in network]
    A = np.array([[-R / L, -1.0 / L], [1.0 / C, 0.0]])  # matrix for (i_L, v_C)
    state = response(A, [(np.array([1.0 / L, 0.0]), e), (np.array([0.0, 1.0 / C]), s)], np.array([0.0, 0.5]))

    def exact(t: float, derivative: int = 0) -> Array:
        i, v = state(t, derivative)
        e_t, s_t = e(t, derivative), s(t, derivative)
        v_branches = [e_t, v, R * i, e_t - R * i - v, -v]
        return np.array([*v_branches, -i, i + s_t, i, i, s_t, e_t, e_t - R * i, v])

    return _network(branches, Indices.usual(1, 2), exact, 2.0, plot={"variables": ["v_E1", "v_C2", "i_L4"]})


@model
def rc_circuit(index: int = 1) -> Model:
    """Two RC circuits with a voltage source, of index 1 and of index 2.

    Notes
    -----
    ``model.extra["exact"](t, derivative)`` is the closed-form solution, ``model.extra["netlist"]`` the circuit as a
    netlist. An RC circuit with voltage sources has index 1 if and only if the rows of the incidence matrix that belong
    to sources and capacitors are linearly independent.
    """
    e = Source(amplitude=1.0, frequency=2.0)
    if index == 1:
        branches = [Branch("E", 1, 0, e), Branch("R", 1, 2, 1.0), Branch("C", 2, 0, 0.5), Branch("R", 2, 0, 2.0)]
        v2 = response(np.array([[-3.0]]), [(np.array([2.0]), e)], np.array([0.25]))

        def exact(t: float, derivative: int = 0) -> Array:
            e_t, v, slope = e(t, derivative), v2(t, derivative)[0], v2(t, derivative + 1)[0]
            return np.array([e_t, e_t - v, v, v, v - e_t, e_t - v, 0.5 * slope, 0.5 * v, e_t, v])

    else:
        branches = [Branch("E", 1, 0, e), Branch("C", 1, 2, 0.5), Branch("C", 2, 0, 1.5), Branch("R", 2, 0, 1.0)]
        # (C1 + C2) v2' = C1 e' - v2/R: the substitution w = v2 - e/4 removes the derivative of the source.
        w = response(np.array([[-0.5]]), [(np.array([-0.125]), e)], np.array([0.25]))

        def exact(t: float, derivative: int = 0) -> Array:
            e_t, e_slope = e(t, derivative), e(t, derivative + 1)
            v = w(t, derivative)[0] + 0.25 * e_t
            slope = w(t, derivative + 1)[0] + 0.25 * e_slope
            i1 = 0.5 * (e_slope - slope)
            return np.array([e_t, e_t - v, v, v, -i1, i1, 1.5 * slope, v, e_t, v])

    return _network(
        branches,
        Indices.usual(index, 1),
        exact,
        5.0,
        title=f"RC circuit of index {index}",
        options={"rtol": 1e-6, "atol": 1e-8}
        | ({"method": "dassl", "error_test": "differential"} if index == 2 else {}),
        plot={"variables": ["v1", "v2", "i_E1"]},
    )


# --- circuits with ideal operational amplifiers, after Brenan, Campbell and Petzold, section 6.4 ----------------------

# An ideal amplifier keeps its two inputs at the same voltage and draws no current from them.


@model
def differentiator_cascade(stages: int = 1, resistance: float = 1.0, capacitance: float = 0.5) -> Model:
    """A cascade of `stages` differentiators, ``v_k = -R C v_{k-1}'``, with index ``stages + 1``.

    Notes
    -----
    ``model.extra["exact"](t, derivative)`` is the closed-form solution: the last voltage is a derivative of the source.
    ``model.extra["netlist"]`` is the circuit for :func:`daedal.circuits.parse`; its tableau has the same unknowns.
    """
    if stages < 1:
        raise daedal.InvalidProblemError(f"stages={stages} must be at least 1")
    source = Source(amplitude=1.0, frequency=2.0)
    # x = (v0, i1, v1, i2, v2, ...):  v0 = e(t),  i_k = C v_{k-1}',  v_k = -R i_k
    n = 2 * stages + 1
    H, G = np.zeros((n, n)), np.eye(n)
    for k in range(1, n, 2):
        H[k, k - 1] = -capacitance
        G[k + 1, k] = resistance

    def exact(t: float, derivative: int = 0) -> Array:
        x = np.empty(n)
        x[0] = source(t, derivative)
        for k in range(1, stages + 1):
            factor = (-resistance * capacitance) ** (k - 1) * capacitance
            x[2 * k - 1] = factor * source(t, derivative + k)
            x[2 * k] = -resistance * x[2 * k - 1]
        return x

    options = {"method": "dassl", "rtol": 1e-5, "atol": 1e-7, "error_test": "differential"}
    if stages > 1:
        options = {"method": "dassl", "fixed_step": 0.01, "max_order": 3, "starting_values": exact}
    names = ["v0"] + [f"{letter}{k}" for k in range(1, stages + 1) for letter in "iv"]
    problem, plot = linear_dae(H, G, {0: source}, names), {"variables": ["v0", f"v{stages}"]}
    indices = Indices.usual(stages + 1, 0)
    lines = [f"V1 n0 0 SIN(0 1 {2.0 / (2.0 * np.pi)!r})"]
    for k in range(1, stages + 1):
        lines += [f"C{k} n{k - 1} m{k} {capacitance!r}", f"R{k} m{k} n{k} {resistance!r}", f"O{k} 0 m{k} n{k}"]
    extra = {"netlist": "\n".join(lines)}
    return closed_model(problem, exact, 2.0, index=stages + 1, indices=indices, options=options, plot=plot, extra=extra)


@model
def four_resistor_amplifier(
    element: str = "capacitor",
    conductances: tuple[float, float, float, float] = (1.0, 2.0, 2.0, 1.0),
    capacitance: float = 1.0,
) -> Model:
    """Four resistors around an ideal amplifier, driven by a source or discharging a capacitor.

    Solvability and the number of states depend on the values, not on the network alone.

    Notes
    -----
    ``model.extra["determinant"](s)`` is the determinant of the pencil ``G + s H``: ``G2 G3 - G1 G4`` with the source,
    ``s C (G1 G4 - G2 G3) - G1 G2 G3`` with the capacitor. ``model.extra["exact"](t, derivative)`` is the
    closed-form solution, ``model.extra["netlist"]`` the circuit for :func:`daedal.circuits.parse`.
    """
    check_positive(**{f"G{k}": g for k, g in enumerate(conductances, 1)}, capacitance=capacitance)
    g1, g2, g3, g4 = conductances
    mismatch = g1 * g4 - g2 * g3
    driven = element == "source"
    rows = [[g1, -g1, 0, 0], [-g1, g1 + g2, -g2, 0], [0, -g2, g2 + g4, -g4], [0, 0, -g4, g3 + g4]]
    n = 6 if driven else 5
    H, G = np.zeros((n, n)), np.zeros((n, n))
    G[:4, :4] = rows
    G[2, n - 1] = 1.0  # output current of the amplifier
    G[n - 1, [1, 3]] = 1.0, -1.0  # equal inputs
    source = Source(amplitude=1.0, frequency=1.0)
    if driven:
        if mismatch == 0.0:
            raise daedal.InvalidProblemError("G1 G4 = G2 G3: the circuit with a voltage source has no unique solution")
        G[0, 4] = G[4, 0] = 1.0
        per_volt = np.linalg.solve(G, np.eye(n)[4])

        def exact(t: float, derivative: int = 0) -> Array:
            return per_volt * source(t, derivative)

    else:
        H[0, 0] = capacitance
        if mismatch == 0.0:
            rate, per_volt = 0.0, np.zeros(n)
        else:
            rate = g1 * g2 * g3 / (capacitance * mismatch)
            # Node 1 is held at 1 V; the other voltages and the output current follow from the remaining equations.
            per_volt = np.append(1.0, np.linalg.solve(G[1:, 1:], -G[1:, 0]))

        def exact(t: float, derivative: int = 0) -> Array:
            return per_volt * rate**derivative * np.exp(rate * t)

    names = ["v1", "v2", "v3", "v4"] + (["iE", "io"] if driven else ["io"])
    first = f"V1 1 0 SIN(0 1 {1.0 / (2.0 * np.pi)!r})" if driven else f"C1 1 0 {capacitance!r}"
    ends = ((1, 2), (2, 3), (4, 0), (3, 4))
    resistors = (f"R{k} {one} {other} {1.0 / g!r}" for k, ((one, other), g) in enumerate(zip(ends, conductances), 1))
    netlist = "\n".join([first, *resistors, "O1 2 4 3"])
    return closed_model(
        linear_dae(H, G, {4: source} if driven else {}, names),
        exact,
        1.0,
        accuracy=1e-13,
        index=1 if mismatch != 0.0 else 2,
        equations=(
            (r"v_1 = e(t),\quad G_1(v_1 - v_2) + i_E = 0" if driven else r"C v_1' + G_1(v_1 - v_2) = 0")
            + r",\quad v_2 = v_4,\quad (G_1 + G_2) v_2 = G_1 v_1 + G_2 v_3,\quad "
            r"(G_2 + G_4) v_3 - G_2 v_2 - G_4 v_4 + i_o = 0,\quad (G_3 + G_4) v_4 = G_4 v_3"
        ),
        options={"rtol": 1e-6, "atol": 1e-9}
        | ({} if mismatch != 0.0 else {"method": "dassl", "error_test": "differential"}),
        extra={"determinant": lambda s: float(np.linalg.det(G + s * H)), "netlist": netlist},
    )
