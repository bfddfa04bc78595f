"""Networks of pipes: water from two tanks, gas from compressors."""

import functools
import math
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

import daedal
from daedal.library.registry import Model, Reference, known, known_reference, model

# Viscosity (m^2/s), gravity (m/s^2), density (kg/m^3), critical Reynolds number
VISCOSITY, GRAVITY, DENSITY, CRITICAL = 1.31e-6, 9.8, 1e3, 2.3e3
# A pipe: length, roughness, diameter (m), cross section (m^2); a tank: surface (m^2)
LENGTH, ROUGHNESS, DIAMETER, TANK = 1e3, 2e-4, 1.0, 200.0
AREA = math.pi * DIAMETER * DIAMETER / 4.0
RESTING = 0.04751940452918529  # resistance of a pipe at the critical Reynolds number
# Nodes at both ends of the pipes; positive flow is from the first to the second
WATER_PIPES = (
    (1, 2), (2, 3), (2, 6), (3, 4), (3, 5), (4, 5), (5, 10), (6, 5), (7, 4),
    (7, 8), (8, 5), (8, 10), (9, 8), (11, 9), (11, 12), (12, 7), (12, 8), (13, 11),
)  # fmt: skip
TANKS = (5, 8)
NODES = TANKS + tuple(node for node in range(1, 14) if node not in TANKS)  # order of the pressures
START, END = (np.array([NODES.index(pipe[k]) for pipe in WATER_PIPES]) for k in (0, 1))


def water_network_residual(t, y, yp):
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


@model
def water_tubes(t1: float = 61200.0) -> Model:
    """Water in a network of 18 pipes and 13 nodes over 17 hours: 49 unknowns, index 2.

    Notes
    -----
    Unknowns are the flows phi (m^3/s) and the resistances lam of all pipes, each named by its two nodes, and the
    pressures p (Pa) of the nodes, tanks first. Water enters at nodes 1 and 13 and leaves at node 10. The ``atol`` in
    ``model.options`` are based on the sizes of the unknowns. Flows become turbulent ten times; tracking these switches
    requires consistent values at each of them, which costs more than the rejected steps that it avoids.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.water_tubes()
    >>> model.problem.names[6], model.problem.names[24], model.problem.names[36:38]
    ('phi5_10', 'lam5_10', ('p5', 'p8'))
    """
    tubes = [f"{a}_{b}" for a, b in WATER_PIPES]
    names = [*(f"phi{tube}" for tube in tubes), *(f"lam{tube}" for tube in tubes), *(f"p{node}" for node in NODES)]
    size = np.repeat([1e-3, 0.05, 1e5], [18, 18, 13])
    return Model(
        problem=daedal.ImplicitDAE(water_network_residual, 49, algebraic=[*range(18, 36), *range(38, 49)], names=names),
        initial=(np.repeat([0.0, RESTING, 109800.0], [18, 18, 13]), np.zeros(49)),
        reference=known_reference("water_tubes", t1=t1),
        options={"rtol": 1e-6, "atol": 1e-6 * size, "switches": "never"},
    )


# --- gas transmission: two lines with compressors, districts with regulators, demand that jumps hourly ----------------

# After T. S. Chua and P. M. Dew, as reported by Brenan, Campbell and Petzold (section 6.5),
# :math:`E y' = A(y) y - d(t)` for the pressures at nodes and the flows through machines. Flow through a pipe is
# isothermal and slow, so that inertia is negligible: with the friction :math:`\lambda`, the speed of sound c, length l,
# diameter D and cross section A
#
# .. math::
#
#     p_1^2 - p_2^2 = R\, q |q|, \qquad R = \frac{\lambda c^2 l}{D A^2}, \qquad
#     \frac{V_i}{c^2} p_i' = \sum q_{in} - \sum q_{out} - d_i(t),
#
# where half of the volume of every pipe belongs to each of its ends. Near q = 0 the root is smoothed, as in laminar
# flow. Pressures are in bar, flows in kg/s, times in hours.

SOUND, BAR, HOUR = 380.0, 1e5, 3600.0  # m/s, Pa, s
SMOOTHED = 0.01  # difference of squared pressures below which flow is laminar (bar^2)
LINE = (25e3, 0.9, 0.010)  # length and diameter (m) and friction of a line section
GAS_PIPES = ((3e3, 0.40, 0.012), (2e3, 0.30, 0.012), (2e3, 0.30, 0.012), (3e3, 0.25, 0.013), (3e3, 0.25, 0.013),
         (4e3, 0.20, 0.013), (2e3, 0.25, 0.013))  # fmt: skip
DISTRICT = ((0, 1), (1, 2), (1, 3), (2, 4), (3, 5), (4, 5), (5, 6))  # a tree with one loop
CONSUMERS = ((2, 0.4), (4, 0.35), (6, 0.25))  # node of a district and its fraction of the demand
SUPPLY, DELIVERY = 60.0, 20.0  # bar, at the sources and after the regulators
DROOP = (0.005, 0.02)  # pressure drop of sources and regulators, in bar per kg/s
RATIO = (1.02, 2e-5)  # compressors: pressure ratio at zero flow, and its decrease per kg/s
VALVE = 0.01  # pressure drop of a valve, in bar per kg/s
HOURS = (6.0, 9.0, 17.0, 22.0)
FACTORS = (0.6, 1.3, 1.0, 1.4, 0.7)  # factors of the demand before, between and after HOURS
OUTAGE = (12.0, 14.0)  # a compressor in the middle of the first line fails
LARGEST_DENSE = 100  # number of unknowns up to which matrices are dense
_TINY = 1e-30  # imaginary step of pressures and flows, for derivatives
SOURCE, COMPRESSOR, REGULATOR, VALVE_KIND = 0.0, 1.0, 2.0, 3.0


class Network(NamedTuple):
    """Node names, pipes (start, end, R, volume), machines (kind, start, end, name), demands (node, kg/s).

    `thin` is the factor by which the sections of long lines are shortened.
    """

    nodes: list[str]
    pipes: list[tuple[int, int, float, float]]
    machines: list[tuple[float, int, int, str]]
    demands: list[tuple[int, float]]
    thin: float


def network(stations: int) -> Network:
    """Two lines of `stations` stations each, with a district at every station and a valve between the lines."""
    nodes: dict[str, int] = {}
    pipes, machines, demands = [], [], []
    thin = min(1.0, 12.0 / stations)  # longer lines have shorter sections with less demand, and smaller ratios

    def node(name: str) -> int:
        return nodes.setdefault(name, len(nodes))

    def pipe(one: str, other: str, length: float, diameter: float, friction: float) -> None:
        area = math.pi * diameter**2 / 4.0
        resistance = friction * SOUND**2 * length / (diameter * area**2) / BAR**2
        pipes.append((node(one), node(other), resistance, area * length))

    for line in "AB":
        machines.append((SOURCE, -1, node(f"{line}in"), f"source_{line}"))
        pipe(f"{line}in", f"{line}0s", thin * LINE[0], *LINE[1:])
        for k in range(stations):
            suction, discharge = f"{line}{k}s", f"{line}{k}d"
            machines.append((COMPRESSOR, node(suction), node(discharge), f"compressor_{line}{k}"))
            pipe(discharge, f"{line}{k + 1}s", thin * LINE[0], *LINE[1:])
            machines.append((REGULATOR, node(discharge), node(f"{line}{k}n0"), f"regulator_{line}{k}"))
            for (one, other), data in zip(DISTRICT, GAS_PIPES):
                pipe(f"{line}{k}n{one}", f"{line}{k}n{other}", *data)
            size = thin * (14.0 + 8.0 * math.sin(1.7 * k + (line == "B")))
            demands += [(node(f"{line}{k}n{place}"), size * share) for place, share in CONSUMERS]
    for k in range(stations):
        machines.append((VALVE_KIND, node(f"A{k}d"), node(f"B{k}d"), f"valve_{k}"))
    return Network(list(nodes), pipes, machines, demands, thin)


def gas_network_residual(t, y, yp, p):
    """y contains pressures, flows through machines, gas supplied and gas consumed.

    The parameters contain five counts, then pipes, capacities, machines and demands.
    """
    n, n_pipes, n_machines, n_demands, index = int(p[0]), int(p[1]), int(p[2]), int(p[3]), int(p[4])
    r = np.zeros_like(y)
    at = 5
    for _ in range(n_pipes):
        one, other = int(p[at]), int(p[at + 1])
        w = y[one] * y[one] - y[other] * y[other]
        flow = w / math.sqrt(p[at + 2]) / (w * w + SMOOTHED * SMOOTHED) ** 0.25
        r[one] += flow
        r[other] -= flow
        at += 3
    for k in range(n):
        r[k] += p[at] * yp[k]
        at += 1
    for k in range(n, n + n_machines):
        kind, one, other, load, flow = p[at], int(p[at + 1]), int(p[at + 2]), p[at + 3], y[k]
        r[other] -= flow
        if int(kind) != 0:
            r[one] += flow
        if int(kind) == 0:
            r[k] = y[other] - SUPPLY + (DROOP[0] * flow if index == 1 else 0.0)
            r[n + n_machines] -= flow
        elif int(kind) == 1:
            running = 1.0 - load * np.where(t >= OUTAGE[0], np.where(t < OUTAGE[1], 1.0, 0.0), 0.0)
            r[k] = y[other] - y[one] * (1.0 + p[at + 4] * (running * (RATIO[0] - 1.0) - RATIO[1] * flow))
        elif int(kind) == 2:
            r[k] = y[other] - DELIVERY + (DROOP[1] * flow if index == 1 else 0.0)
        else:
            r[k] = y[one] - y[other] - VALVE * flow
        at += 5
    factor = FACTORS[0]
    for k in range(4):
        factor = factor + (FACTORS[k + 1] - FACTORS[k]) * np.where(t >= HOURS[k], 1.0, 0.0)  # type: ignore[assignment]
    total = 0.0
    for _ in range(n_demands):
        r[int(p[at])] += factor * p[at + 1]
        total = total + factor * p[at + 1]
        at += 2
    r[n + n_machines] += yp[n + n_machines] / HOUR
    r[n + n_machines + 1] = yp[n + n_machines + 1] / HOUR - total
    return r


def packed(net: Network, index: int, outage: str) -> np.ndarray:
    """Pack the parameters of :func:`gas_network_residual`."""
    volumes = np.zeros(len(net.nodes))
    for one, other, _, volume in net.pipes:
        volumes[[one, other]] += 0.5 * volume
    numbers: list[float] = [len(net.nodes), len(net.pipes), len(net.machines), len(net.demands), index]
    for one, other, resistance, _ in net.pipes:
        numbers += [one, other, resistance]
    numbers += list(volumes * BAR / SOUND**2 / HOUR)
    for kind, one, other, name in net.machines:
        numbers += [kind, one, other, 1.0 if name == outage else 0.0, net.thin]
    for demand in net.demands:
        numbers += demand
    return np.array(numbers, dtype=float)


def _pattern(net: Network) -> sparse.csr_array:
    """Sparsity of the derivatives of :func:`gas_network_residual`."""
    n, machines = len(net.nodes), len(net.machines)
    size = n + machines + 2
    entries = {(k, k) for k in range(size)}
    for one, other, *_ in net.pipes:
        entries |= {(one, other), (other, one)}
    for k, (kind, one, other, _) in enumerate(net.machines, n):
        ends = [other] if kind == SOURCE else [one, other]
        entries |= {pair for node in ends for pair in ((k, node), (node, k))}
        entries |= {(n + machines, k)} if kind == SOURCE else set()
    rows, columns = np.array(sorted(entries)).T
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))


def _problem(net: Network, params: np.ndarray) -> daedal.ImplicitDAE:
    n, machines = len(net.nodes), len(net.machines)
    names = [*(f"p_{name}" for name in net.nodes), *(machine[3] for machine in net.machines), "supplied", "consumed"]
    return daedal.ImplicitDAE(
        gas_network_residual,
        len(names),
        params=params,
        algebraic=range(n, n + machines),
        sparsity=_pattern(net) if len(names) > LARGEST_DENSE else None,
        names=names,
    )


@functools.cache
def steady_state(stations: int, index: int) -> np.ndarray:
    """Steady pressures and flows for the demand at t = 0, by Newton's method."""
    net = network(stations)
    n, params = len(net.nodes), packed(net, index, "")
    pattern, given, still = _pattern(net)[:-2, :-2], params.tolist(), [0.0] * (n + len(net.machines) + 2)
    colours = _columns_apart(pattern)
    y = np.zeros(len(still))
    y[:n] = [SUPPLY if name.endswith(("in", "s", "d")) else DELIVERY for name in net.nodes]

    def residual(at):
        return gas_network_residual(0.0, at.tolist(), still, given)[:-2]

    for _ in range(100):
        step = splu(_derivative(residual, y, pattern, colours)).solve(-residual(y))
        y[:-2] += step * min(1.0, 5.0 / np.max(np.abs(step[:n])))
        if np.max(np.abs(step)) < 1e-9:
            return y
    raise daedal.InconsistentInitialError(f"no steady state was found for {stations} stations")


def _columns_apart(pattern: sparse.csr_array) -> np.ndarray:
    """Colours of the columns such that columns of equal colour share no row."""
    together = sparse.csr_array(pattern.T @ pattern)
    colours = np.full(together.shape[0], -1)
    for k in range(len(colours)):
        taken = set(colours[together.indices[together.indptr[k] : together.indptr[k + 1]]].tolist())
        colours[k] = next(colour for colour in range(len(colours)) if colour not in taken)
    return colours


def _derivative(residual, y: np.ndarray, pattern: sparse.csr_array, colours: np.ndarray) -> sparse.csc_array:
    """Derivatives with respect to all but the last two unknowns, by colours, exact to round-off: Im F(y + i h) / h."""
    rows, columns = sparse.coo_array(pattern).coords
    values = np.zeros(len(rows))
    for colour in range(colours.max() + 1):
        moved, own = y.astype(complex), colours[columns] == colour
        moved[:-2] += np.where(colours == colour, _TINY * 1j, 0.0)
        values[own] = residual(moved).imag[rows[own]] / _TINY
    return sparse.csc_array((values, (rows, columns)), shape=pattern.shape)


@model
def gas_network(stations: int = 12, index: int = 1) -> Model:
    """A day of a gas transmission network: 220 nodes, 62 machines.

    Notes
    -----
    The last two unknowns are the masses of gas in kg supplied and consumed. ``model.extra["mass"](y)`` is the mass in
    the pipes: it equals the difference of these two plus a constant, a relation that Rosenbrock methods preserve to
    round-off. Jumps in demand and the compressor failure are hidden switches, which are tracked during a run.
    ``model.extra["network"]`` has nodes, pipes, machines and demands. For more than 12 stations, lines have shorter
    sections and compressors flatter characteristics, so that the number of steps remains the same.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.gas_network(stations=2)
    >>> model.problem.n, model.problem.names[40:43]
    (54, ('source_A', 'compressor_A0', 'regulator_A0'))
    """
    if not isinstance(stations, int) or stations < 1:
        raise daedal.InvalidProblemError(f"stations={stations!r} must be a positive integer")
    net = network(stations)
    n, machines = len(net.nodes), len(net.machines)
    params = packed(net, index, f"compressor_A{stations // 2}")
    y0, yp0 = steady_state(stations, index).copy(), np.zeros(n + machines + 2)
    sources = [n + k for k, machine in enumerate(net.machines) if machine[0] == SOURCE]
    yp0[-2], yp0[-1] = HOUR * y0[sources].sum(), HOUR * FACTORS[0] * sum(demand for _, demand in net.demands)
    capacity = params[5 + 3 * len(net.pipes) :][:n] * HOUR
    problem = _problem(net, params)
    last, middle = stations - 1, stations // 2
    return Model(
        title=f"Gas transmission network of index {index}",
        problem=problem,
        initial=(y0, yp0),
        index=index,
        reference=_reference(list(problem.names or ()), stations=stations, index=index),
        options={"rtol": 1e-4, "atol": 1e-4} | ({"method": "rosenbrock"} if index == 1 else {}),
        plot={"variables": [f"p_A{middle}d", f"p_A{last}d", f"p_A{last}n6", "source_A"]},
        extra={"mass": lambda y: capacity @ np.asarray(y)[:n], "network": net},
    )


def _reference(names: list[str], **given: int) -> Reference | None:
    entry = known("gas_network", **given)
    if entry is None:
        return None
    values = dict(zip(entry["names"], entry["y"]))
    return Reference(
        entry["t"], np.array([values.get(name, np.nan) for name in names]), entry["source"], entry["accuracy"]
    )
