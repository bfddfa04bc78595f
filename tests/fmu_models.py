"""Models that are exported as FMUs, their solutions by `solve`, and instances of FMUs in FMPy."""

from functools import cache

import numpy as np

import daedal
from daedal import circuits
from daedal.exchange.fmu_instance import callbacks
from daedal.hybrid import Friction, HybridProblem, Transition
from daedal.multibody import Body, Model, Revolute, ground

G = 9.81
TIGHT = {"rtol": 1e-8, "atol": 1e-10}


def pendulum():
    system = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, p: [0.0 * q[0], -p["g"]],
        lambda t, q, p: [q[0] ** 2 + q[1] ** 2 - 1],
        n_q=2,
        n_constraints=1,
        names=["x", "y"],
        params={"g": G},
    )
    return system, ([1.0, 0.0], [0.0, 0.0]), 2.0


def four_bar():
    rods = [Body.rod(name, length=length, mass=1.0) for name, length in (("a", 1.0), ("b", 3.0), ("c", 2.0))]
    model = Model(
        Revolute("A", ground, rods[0].start),
        Revolute("B", rods[0].end, rods[1].start),
        Revolute("C", rods[1].end, rods[2].end),
        Revolute("D", ground.at(3.0, 0.0), rods[2].start),
        gravity=(0.0, -G),
        planar=True,
    )
    return model, model.assemble(A=1.0), 1.0


def robertson():
    def equations(t, y, yp, p):
        slow, fast = p["a"] * y[0], p["b"] * y[1] * y[2]
        return [yp[0] + slow - fast, yp[1] - slow + fast + p["c"] * y[1] ** 2, y[0] + y[1] + y[2] - 1]

    params = {"a": 0.04, "b": 1e4, "c": 3e7}
    return daedal.ImplicitDAE(equations, 3, params=params, names=["A", "B", "C"]), ([1.0, 0.0, 0.0], None), 40.0


def bouncing_ball():
    ball = daedal.MechanicalSystem(1.0, lambda t, q, v: [-G], n_q=1, names=["h"])
    rest = daedal.MechanicalSystem(1.0, lambda t, q, v: [-G], lambda t, q: [q[0]], n_q=1, n_constraints=1, names=["h"])
    impact = Transition(
        "flight", "flight", lambda t, q, v: q[0], direction=-1, reset=lambda t, q, v: (q, -0.5 * v), name="impact"
    )
    stop = Transition("flight", "rest", guard="zeno", name="stop")
    return HybridProblem({"flight": ball, "rest": rest}, [impact, stop]), ("flight", ([1.0], [0.0])), 2.0


def stick_slip():
    belt = 0.5
    slip = daedal.MechanicalSystem(
        1.0, lambda t, q, v: [-10 * q[0] + 1.5 + 1.5 / (1 + 5 * (belt - v[0]))], n_q=1, names=["x"]
    )
    stick = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v: [-10.0 * q[0]],
        n_q=1,
        names=["x"],
        velocity_constraint=lambda t, q, v: [v[0] - belt],
        n_velocity_constraints=1,
    )
    transitions = [
        Transition("slip", "stick", lambda t, q, v: belt - v[0], direction=-1, immediate=False, name="sticks"),
        Transition("stick", "slip", lambda t, q, v: 3.0 - 10 * q[0], direction=-1, name="slips"),
    ]
    return HybridProblem({"slip": slip, "stick": stick}, transitions), ("stick", ([0.0], [belt])), 4.0


def dry_friction():
    block = daedal.MechanicalSystem(
        1.0, lambda t, q, v, pull: [pull * np.sin(2 * t) - 4 * q[0]], n_q=1, names=["x"], inputs={"pull": 5.0}
    )
    return Friction(block, direction=[1.0], mu=0.3, normal=G), ([0.5], [0.0]), 3.0


def thermostat():
    modes = {
        "on": daedal.ODE(lambda t, y, power: [power - y[0]], 1, names=["T"], inputs={"power": 2.0}),
        "off": daedal.ODE(lambda t, y, power: [-y[0]], 1, names=["T"], inputs={"power": 2.0}),
    }
    above = Transition("on", "off", lambda t, y: 1.2 - y[0], direction=-1)
    below = Transition("off", "on", lambda t, y: y[0] - 0.8, direction=-1)
    return HybridProblem(modes, [above, below]), ("on", [1.0]), 2.0


def circuit():
    parsed = circuits.parse("V1 a 0 SIN(0 1 50)\nR1 a b 1k\nC1 b 0 1u\nD1 b c\nR2 c 0 1k\nC2 c 0 1u")
    return parsed, None, 0.02


def circuit_of_index_2():
    parsed = circuits.parse("V1 a 0 SIN(0 1 50)\nC1 a 0 1u\nR1 a b 100\nL1 b 0 10m")
    return parsed.problem(), parsed.as_initial(None, 0.0), 0.02


def arm():
    def mass(t, q):
        c = np.cos(q[1])
        return [[3 + 2 * c, 1 + c], [1 + c, 1.0]]

    def force(t, q, v, torque):
        s = np.sin(q[1])
        far = G * np.sin(q[0] + q[1])
        first = torque[0] + s * (2 * v[0] * v[1] + v[1] ** 2) - 2 * G * np.sin(q[0]) - far
        return [first, torque[1] - s * v[0] ** 2 - far]

    inputs = {"torque": [1.0, 0.5]}
    system = daedal.MechanicalSystem(mass, force, n_q=2, names=["shoulder", "elbow"], inputs=inputs)
    return system, ([0.1, 0.2], [0.0, 0.0]), 1.5


def index_1():
    f, g = lambda t, y, z, p: [-p["k"] * z[0]], lambda t, y, z, p: [z[0] ** 3 + z[0] - y[0]]
    problem = daedal.SemiExplicitDAE(f, g, 1, 1, params={"k": 2.0}, names=["y", "z"])
    return problem, daedal.consistent_initial(problem, 0.0, ([1.0], [0.7])), 2.0


def index_3():
    problem, initial = pendulum()[0], ([0.6, -0.8, 0.0, 0.0, 0.0], None)

    def equations(t, s, sp, p):
        x, y, u, v, lam = s
        return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + p["g"], x**2 + y**2 - 1]

    names = ["x", "y", "u", "v", "lam"]
    return daedal.ImplicitDAE(equations, 5, names=names, params=problem.params), initial, 1.0


def tank():
    def f(t, h, p, inflow):
        return [(inflow - p["c"] * np.sqrt(np.maximum(h[0], 0.0))) / p["area"]]

    problem = daedal.ODE(f, 1, params={"c": 0.3, "area": 2.0}, inputs={"inflow": 0.4}, names=["level"])
    return problem, [1.0], 5.0


def crank_slider():
    model = daedal.library.crank_slider()
    return model.problem, model.initial, 0.05


MODELS = {
    make.__name__: make
    for make in (pendulum, four_bar, robertson, bouncing_ball, stick_slip, circuit, circuit_of_index_2, arm, index_1)
} | {make.__name__: make for make in (index_3, tank, crank_slider, dry_friction, thermostat)}


@cache
def reference(name):
    problem, initial, end = MODELS[name]()
    return daedal.solve(problem, (0.0, end), initial, rtol=1e-9, atol=1e-11)


def compare(result, name, within):
    """Columns of a result against `solve`, at times at which nothing jumps."""
    sol, times = reference(name), result["time"]
    steady = np.r_[True, np.diff(times) > 1e-9] & np.r_[np.diff(times) > 1e-9, True]
    if getattr(sol, "events", None) is not None and len(sol.events):
        fired = np.array([event.t for event in sol.events])
        steady &= np.abs(times[:, None] - fired).min(axis=1) > 1e-6
    compared = 0
    for column in result.dtype.names:
        if column in ("time", "mode"):
            continue
        place = 0 if name == "thermostat" else column  # values of modes that are ODEs have no names
        expected = np.array([float(sol(t)[place]) for t in times[steady]])
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(result[column][steady] / scale, expected / scale, atol=within, err_msg=column)
        compared += 1
    assert compared


def instances(fmpy, made, count=1):
    """Instances of an FMU in Co-Simulation, what they have said so far, and value references by name."""
    description, folder = fmpy.read_model_description(str(made.path)), fmpy.extract(str(made.path))
    found, said = [], []
    for k in range(count):
        common = {
            "guid": description.guid or description.instantiationToken,
            "unzipDirectory": folder,
            "modelIdentifier": description.coSimulation.modelIdentifier,
            "instanceName": f"instance {k}",
        }
        if made.version == "2.0":
            one = fmpy.fmi2.FMU2Slave(**common)
            one.instantiate(callbacks=callbacks(fmpy, said))
        else:
            one = fmpy.fmi3.FMU3Slave(**common)
            one.instantiate(logMessage=lambda environment, status, category, text: said.append(text.decode()))
            one.getReal, one.setReal = one.getFloat64, one.setFloat64
            one.getFMUstate, one.setFMUstate = one.getFMUState, one.setFMUState
            one.serializeFMUstate, one.deSerializeFMUstate = one.serializeFMUState, one.deserializeFMUState
        found.append(one)
    return found, said, {variable.name: variable.valueReference for variable in description.modelVariables}


def started(instance, tolerance=None):
    """The instance after its initialisation at t = 0."""
    if hasattr(instance, "setupExperiment"):
        instance.setupExperiment(startTime=0.0, tolerance=tolerance)
        instance.enterInitializationMode()
    else:
        instance.enterInitializationMode(startTime=0.0, tolerance=tolerance)
    instance.exitInitializationMode()
    return instance
