"""Water in a network of pipes: 13 nodes, 18 pipes, two tanks, laminar and turbulent flow."""

import math

import numpy as np

import daedal
from daedal.library.model import Model, check_positive, known_reference, model
from daedal.library.sources import TEST_SET

# Viscosity (m^2/s), gravity (m/s^2), density (kg/m^3), Reynolds number at which flow becomes turbulent
VISCOSITY, GRAVITY, DENSITY, CRITICAL = 1.31e-6, 9.8, 1e3, 2.3e3
# A pipe: length, roughness, diameter (m), cross section (m^2); a tank: surface (m^2)
LENGTH, ROUGHNESS, DIAMETER, TANK = 1e3, 2e-4, 1.0, 200.0
AREA = math.pi * DIAMETER * DIAMETER / 4.0
RESTING = 0.04751940452918529  # resistance of a pipe where flow is laminar
# Nodes at both ends of the pipes; water flows from the first to the second if the flow is positive
PIPES = (
    (1, 2), (2, 3), (2, 6), (3, 4), (3, 5), (4, 5), (5, 10), (6, 5), (7, 4),
    (7, 8), (8, 5), (8, 10), (9, 8), (11, 9), (11, 12), (12, 7), (12, 8), (13, 11),
)  # fmt: skip
TANKS = (5, 8)
NODES = TANKS + tuple(node for node in range(1, 14) if node not in TANKS)  # in the order of the pressures
START, END = (np.array([NODES.index(pipe[k]) for pipe in PIPES]) for k in (0, 1))


def network_residual(t, y, yp):
    """y: 18 flows, 18 resistances, pressures of the two tanks and of the eleven other nodes."""
    hours = t / 3600.0
    inflow = 1.0 - math.cos(math.exp(-hours) - 1.0)
    r = np.empty(49)
    for node in range(13):
        r[36 + node] = 0.0
    for k in range(18):
        flow, resistance = y[k], y[18 + k]
        pressure = y[36 + START[k]] - y[36 + END[k]]
        reynolds = abs(flow) * DIAMETER / (VISCOSITY * AREA)
        laminar = 32.0 * VISCOSITY * DENSITY * LENGTH * flow / (AREA * DIAMETER * DIAMETER)
        turbulent = resistance * DENSITY * LENGTH * flow * flow / (AREA * AREA * DIAMETER)
        friction = np.where(reynolds > CRITICAL, turbulent, laminar)
        root = np.sqrt(max(resistance, 1e-6))
        r[k] = DENSITY * LENGTH / AREA * yp[k] - pressure + friction
        # Colebrook's formula
        r[18 + k] = (
            1.0 / root - 1.74 + 2.0 * math.log10(2.0 * ROUGHNESS / DIAMETER + 18.7 / (max(reynolds, CRITICAL) * root))
        )
        r[36 + START[k]] += flow
        r[36 + END[k]] -= flow
    r[36] += TANK / (DENSITY * GRAVITY) * yp[36]
    r[37] += TANK / (DENSITY * GRAVITY) * yp[37]
    r[38] -= inflow / 200.0
    r[48] -= inflow / 80.0
    r[45] += hours * hours * (3.0 * hours * hours - 92.0 * hours + 720.0) * 1e-6
    return r


@model(
    title="Water tube system",
    source=TEST_SET + ", water tube system",
    description="Water flows through 18 pipes between 13 nodes, two of which are tanks. The pressures at the other "
    "nodes keep inflow and outflow in balance, as multipliers of index 2. Friction jumps where the flow in a pipe "
    "becomes turbulent.",
    equations=r"""\begin{aligned} \frac{\rho l}{A} \phi_{ij}' &= p_i - p_j - F(\phi_{ij}, \lambda_{ij}),\qquad
    F = \frac{\lambda \rho l \phi^2}{A^2 d}\ (R > R_c),\quad F = \frac{32 \nu \rho l \phi}{A d^2}\ (R \le R_c),\quad
    R = \frac{|\phi| d}{\nu A} \\
    0 &= \lambda_{ij}^{-1/2} - 1.74 + 2 \log_{10} \Bigl(\frac{2k}{d}
    + \frac{18.7}{\max(R, R_c) \lambda_{ij}^{1/2}}\Bigr) \\
    \frac{b}{\rho g} p_n' &= \sum_i \phi_{in} - \sum_j \phi_{nj}\ (n = 5, 8),\qquad
    0 = \sum_i \phi_{in} - \sum_j \phi_{nj} + e_n(t)\ (\mathrm{others}) \end{aligned}""",
)
def water_tubes(t1: float = 61200.0) -> Model:
    """Water in a network of 18 pipes and 13 nodes over 17 hours: 49 unknowns, index 2.

    Parameters
    ----------
    t1 : float
        End time in seconds; a reference is known for 61200.

    Notes
    -----
    Unknowns are the flows phi (m^3/s) and the resistances lam of all pipes, each named by its two nodes, and the
    pressures p (Pa) of the nodes, tanks first. Water comes in at the nodes 1 and 13 and goes out at node 10. The
    ``atol`` in ``model.options`` take account of the sizes of the unknowns. Ten times a flow becomes turbulent; to
    follow these switches, consistent values are sought at each, which costs more than the rejected steps spared by it.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.water_tubes()
    >>> model.problem.names[6], model.problem.names[24], model.problem.names[36:38]
    ('phi5_10', 'lam5_10', ('p5', 'p8'))
    """
    check_positive(t1=t1)
    tubes = [f"{a}_{b}" for a, b in PIPES]
    names = [*(f"phi{tube}" for tube in tubes), *(f"lam{tube}" for tube in tubes), *(f"p{node}" for node in NODES)]
    size = np.repeat([1e-3, 0.05, 1e5], [18, 18, 13])
    return Model(
        problem=daedal.ImplicitDAE(network_residual, 49, algebraic=[*range(18, 36), *range(38, 49)], names=names),
        t_span=(0.0, float(t1)),
        initial=(np.repeat([0.0, RESTING, 109800.0], [18, 18, 13]), np.zeros(49)),
        index=2,
        reference=known_reference("water_tubes", t1=t1),
        options={"rtol": 1e-6, "atol": 1e-6 * size, "switches": "never"},
        plot={"variables": ["phi5_10", "phi8_10", "phi13_11"]},
    )
