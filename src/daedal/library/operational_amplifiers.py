"""Circuits with ideal operational amplifiers, after Brenan, Campbell and Petzold, section 6.4.

An ideal amplifier keeps its two inputs at the same voltage and draws no current from them.
"""

import numpy as np

import daedal
from daedal.library.circuits import SOURCE, Array, Source, linear_dae
from daedal.library.model import Indices, Model, check_choice, check_positive, closed_model, model


@model(
    title="Cascade of differentiators",
    source=SOURCE,
    description="Operational amplifiers that differentiate, one behind the other. There is nothing to integrate: the "
    "output is a derivative of the input, and the index grows by one with every stage.",
    equations=r"v_0 = e(t),\qquad i_k = C v_{k-1}',\qquad v_k = -R i_k \qquad (k = 1, \dots, m)",
)
def differentiator_cascade(stages: int = 1, resistance: float = 1.0, capacitance: float = 0.5) -> Model:
    """Differentiators in a row, ``v_k = -R C v_{k-1}'`` each: `stages` of them have index ``stages + 1``.

    Notes
    -----
    ``model.extra["exact"](t, derivative)`` is the closed solution: the last voltage is a derivative of the source.
    ``model.extra["netlist"]`` is the circuit for :func:`daedal.circuits.parse`; its tableau has the same unknowns.
    """
    if stages < 1:
        raise daedal.InvalidProblemError(f"stages={stages} must be at least 1")
    check_positive(resistance=resistance, capacitance=capacitance)
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

    options = {"rtol": 1e-5, "atol": 1e-7, "error_test": "differential"}
    if stages > 1:
        options = {"fixed_step": 0.01, "max_order": 3, "starting_values": exact}
    names = ["v0"] + [f"{letter}{k}" for k in range(1, stages + 1) for letter in "iv"]
    problem, plot = linear_dae(H, G, {0: source}, names), {"variables": ["v0", f"v{stages}"]}
    indices = Indices.usual(stages + 1, 0)
    lines = [f"V1 n0 0 SIN(0 1 {2.0 / (2.0 * np.pi)!r})"]
    for k in range(1, stages + 1):
        lines += [f"C{k} n{k - 1} m{k} {capacitance!r}", f"R{k} m{k} n{k} {resistance!r}", f"O{k} 0 m{k} n{k}"]
    extra = {"netlist": "\n".join(lines)}
    return closed_model(problem, exact, 2.0, index=stages + 1, indices=indices, options=options, plot=plot, extra=extra)


@model(
    title="Four resistors and an operational amplifier",
    source=SOURCE,
    description="A bridge of four resistors around an ideal operational amplifier. Solvability and the number of "
    "states depend on the values of the resistances.",
)
def four_resistor_amplifier(
    element: str = "capacitor",
    conductances: tuple[float, float, float, float] = (1.0, 2.0, 2.0, 1.0),
    capacitance: float = 1.0,
) -> Model:
    """Four resistors around an ideal amplifier, driven by a source or discharging a capacitor.

    Whether the circuit has a solution, and how many states, is decided by the values and not by the network alone.

    Parameters
    ----------
    element : {"capacitor", "source"}
        What is connected to the first node: equations (6.4.4), with the last row corrected, or (6.4.3).
    conductances : tuple of float
        G1 to G4. With ``G1 G4 = G2 G3`` the source has no solution and is refused; the capacitor has only the zero
        solution, and index 2.

    Notes
    -----
    ``model.extra["determinant"](s)`` is the determinant of the pencil ``G + s H``: ``G2 G3 - G1 G4`` with the source,
    ``s C (G1 G4 - G2 G3) - G1 G2 G3`` with the capacitor. ``model.extra["exact"](t, derivative)`` is the closed
    solution, ``model.extra["netlist"]`` the circuit for :func:`daedal.circuits.parse`.
    """
    check_choice("element", element, ("capacitor", "source"))
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
            # Node 1 held at 1 V: the other voltages and the output current follow from the remaining equations.
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
        options={"rtol": 1e-6, "atol": 1e-9} | ({} if mismatch != 0.0 else {"error_test": "differential"}),
        plot={"variables": ["v1", "v2", "v3"]},
        extra={"determinant": lambda s: float(np.linalg.det(G + s * H)), "netlist": netlist},
    )
