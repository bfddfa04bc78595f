"""FMUs of problems: valid, equal to `solve` in another program, refused where a problem cannot be written as C."""

import zipfile
from functools import cache

import numpy as np
import pytest

import daedal
from daedal import circuits
from daedal.hybrid import Friction, HybridProblem, Transition
from daedal.multibody import Body, Model, Revolute, ground
from oracles import oracle

G = 9.81
TIGHT = {"rtol": 1e-8, "atol": 1e-10}


@pytest.fixture(scope="module")
def fmpy():
    return oracle("fmpy", minversion="0.3")


@pytest.fixture(scope="module")
def compiler():
    from daedal.exchange.fmu_compiler import found_compiler

    found = found_compiler(None)
    if found is None:
        pytest.skip("no C compiler")
    return found


# --- models -----------------------------------------------------------------------------------------------------------


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
IN_MODEL_EXCHANGE = ("pendulum", "bouncing_ball", "stick_slip", "arm", "index_1", "tank", "thermostat")


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


# --- equal to solve ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, version",
    [
        *((name, "2.0") for name in MODELS),
        *((name, "3.0") for name in ("robertson", "bouncing_ball", "arm", "pendulum")),
    ],
)
def test_co_simulation_is_valid_and_equals_solve(name, version, tmp_path, fmpy, compiler):
    problem, initial, end = MODELS[name]()
    made = daedal.export_fmu(problem, tmp_path / f"{name}.fmu", initial=initial, version=version, **TIGHT)
    assert made.compiler == compiler.name and "Co-Simulation" in made.message
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(made.path)) == []
    result = fmpy.simulate_fmu(str(made.path), stop_time=end, output_interval=end / 20, relative_tolerance=1e-8)
    compare(result, name, 3e-6)


@pytest.mark.parametrize(
    "name, version",
    [*((name, "3.0") for name in IN_MODEL_EXCHANGE), *((name, "2.0") for name in ("bouncing_ball", "pendulum"))],
)
def test_model_exchange_is_valid_and_equals_solve(name, version, tmp_path, fmpy, compiler):
    problem, initial, end = MODELS[name]()
    made = daedal.export_fmu(problem, tmp_path / f"{name}.fmu", initial=initial, kind="me", version=version, **TIGHT)
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(made.path)) == []
    result = fmpy.simulate_fmu(str(made.path), stop_time=end, output_interval=end / 20, relative_tolerance=1e-7)
    compare(result, name, 2e-5)
    assert ("projects" in made.message) == (name in ("pendulum", "bouncing_ball", "stick_slip"))


# --- the interface ----------------------------------------------------------------------------------------------------


def instances(fmpy, made, count=1):
    """Instances of an FMU in Co-Simulation, version 2, initialised."""
    from fmpy.fmi2 import FMU2Slave

    description = fmpy.read_model_description(str(made.path))
    folder = fmpy.extract(str(made.path))
    found = []
    for k in range(count):
        identifier = description.coSimulation.modelIdentifier
        one = FMU2Slave(
            guid=description.guid, unzipDirectory=folder, modelIdentifier=identifier, instanceName=f"instance {k}"
        )
        one.instantiate()
        found.append(one)
    return found, {variable.name: variable.valueReference for variable in description.modelVariables}


def started(instance):
    instance.setupExperiment(startTime=0.0)
    instance.enterInitializationMode()
    instance.exitInitializationMode()


def test_constraints_hold_to_round_off_at_every_communication_point(tmp_path, fmpy, compiler):
    problem, initial, _ = pendulum()
    made = daedal.export_fmu(problem, tmp_path / "pendulum.fmu", initial=initial, rtol=1e-4, atol=1e-6)
    result = fmpy.simulate_fmu(str(made.path), stop_time=20.0, output_interval=0.1)
    assert np.abs(result["x"] ** 2 + result["y"] ** 2 - 1.0).max() < 1e-14
    assert np.abs(result["x"] * result["x'"] + result["y"] * result["y'"]).max() < 1e-13


def test_two_instances_do_not_share_anything(tmp_path, fmpy, compiler):
    problem, initial, _ = tank()
    made = daedal.export_fmu(problem, tmp_path / "tank.fmu", initial=initial, **TIGHT)
    (one, other), references = instances(fmpy, made, 2)
    other.setReal([references["c"]], [0.6])
    started(one), started(other)
    for k in range(5):
        for instance in (one, other):
            instance.doStep(k * 0.5, 0.5)
    for instance, c in ((one, 0.3), (other, 0.6)):
        sol = daedal.solve(problem, (0.0, 2.5), initial, params={"c": c}, rtol=1e-10, atol=1e-12)
        assert instance.getReal([references["level"]])[0] == pytest.approx(sol.y[0, -1], rel=1e-7)


def test_inputs_are_held_between_communication_points(tmp_path, fmpy, compiler):
    problem, initial, _ = arm()
    made = daedal.export_fmu(problem, tmp_path / "arm.fmu", initial=initial, **TIGHT)
    assert made.inputs == ("torque[0]", "torque[1]") and made.parameters == ()
    [instance], references = instances(fmpy, made)
    started(instance)
    samples = [[1.0, 0.5], [-3.0, 2.0], [4.0, -1.0]]
    for k, sample in enumerate(samples):
        instance.setReal([references[f"torque[{i}]"] for i in range(2)], sample)
        instance.doStep(k * 0.25, 0.25)
    signal = ([0.0, 0.25, 0.5], samples)
    sol = daedal.solve(problem, (0.0, 0.75), initial, inputs={"torque": signal}, rtol=1e-10, atol=1e-12)
    found = instance.getReal([references[name] for name in ("shoulder", "elbow")])
    np.testing.assert_allclose(found, sol(0.75).q, rtol=1e-6)


def test_algebraic_variables_follow_an_input_at_once(tmp_path, fmpy, compiler):
    problem = daedal.SemiExplicitDAE(
        lambda t, y, z, u: [-z[0]], lambda t, y, z, u: [z[0] - y[0] - u], 1, 1, names=["y", "z"], inputs=["u"]
    )
    made = daedal.export_fmu(problem, tmp_path / "dae.fmu", initial=([1.0], [1.0]))
    [instance], references = instances(fmpy, made)
    started(instance)
    instance.doStep(0.0, 0.5)
    instance.setReal([references["u"]], [3.0])
    y, z = instance.getReal([references["y"], references["z"]])
    assert z == pytest.approx(y + 3.0, rel=1e-14)


def test_state_is_restored_and_serialised_bit_for_bit(tmp_path, fmpy, compiler):
    problem, initial, _ = bouncing_ball()
    made = daedal.export_fmu(problem, tmp_path / "ball.fmu", initial=initial, **TIGHT)
    [instance], references = instances(fmpy, made)
    started(instance)

    def run():
        values = []
        for k in range(4, 10):
            instance.doStep(k * 0.1, 0.1)
            values.append(instance.getReal([references["h"], references["h'"]]))
        return values

    for k in range(4):
        instance.doStep(k * 0.1, 0.1)
    state = instance.getFMUstate()
    first = run()
    instance.setFMUstate(state)
    again = run()
    text = instance.serializeFMUstate(state)
    restored = instance.deSerializeFMUstate(text)
    instance.setFMUstate(restored)
    assert first == again == run()


def test_directional_derivatives_are_those_of_linearise(tmp_path, fmpy, compiler):
    problem, initial, _ = arm()
    made = daedal.export_fmu(problem, tmp_path / "arm.fmu", initial=initial)
    [instance], references = instances(fmpy, made)
    started(instance)
    model = daedal.linearise(problem, initial)
    states = [references[name] for name in ("shoulder", "elbow", "shoulder'", "elbow'")]
    rates = [references[f"der({name})"] for name in ("shoulder", "elbow", "shoulder'", "elbow'")]
    inputs = [references[f"torque[{i}]"] for i in range(2)]
    for columns, expected in ((states, model.A), (inputs, model.B)):
        for k, column in enumerate(columns):
            found = instance.getDirectionalDerivative(rates, [column], [1.0])
            np.testing.assert_allclose(found, expected[:, k], atol=1e-12)


def test_directional_derivatives_go_through_algebraic_variables(tmp_path, fmpy, compiler):
    problem, initial, _ = index_1()
    made = daedal.export_fmu(problem, tmp_path / "dae.fmu", initial=initial)
    [instance], references = instances(fmpy, made)
    started(instance)
    [found] = instance.getDirectionalDerivative([references["der(y)"]], [references["y"]], [1.0])
    z = float(initial[1][0])
    assert found == pytest.approx(-2.0 / (3.0 * z**2 + 1.0), rel=1e-12)


def test_parameters_start_values_and_outputs_are_those_that_are_named(tmp_path, fmpy, compiler):
    problem, initial, _ = tank()
    made = daedal.export_fmu(
        problem, tmp_path / "tank.fmu", initial=initial, outputs={"out": lambda t, h, p: p["c"] * np.sqrt(h[0])}
    )
    assert (made.states, made.parameters, made.inputs, made.outputs) == (
        ("level",),
        ("c", "area"),
        ("inflow",),
        ("out",),
    )
    values = {"c": 0.5, "level": 4.0}
    result = fmpy.simulate_fmu(str(made.path), start_values=values, stop_time=0.1, output_interval=0.1)
    assert result["out"][0] == pytest.approx(0.5 * 2.0)


def test_multipliers_are_outputs(tmp_path, fmpy, compiler):
    problem, initial, end = pendulum()
    made = daedal.export_fmu(problem, tmp_path / "pendulum.fmu", initial=initial, outputs=["lam[0]"], **TIGHT)
    result = fmpy.simulate_fmu(str(made.path), stop_time=end, output_interval=0.25)
    expected = [float(reference("pendulum")(t).lam[0]) for t in result["time"]]
    np.testing.assert_allclose(result["lam[0]"], expected, atol=1e-5)


def test_failures_within_the_fmu_are_reported_with_the_time(tmp_path, fmpy, compiler):
    problem = daedal.ODE(lambda t, y: [y[0] ** 2], 1, names=["y"])  # infinite at t = 1
    made = daedal.export_fmu(problem, tmp_path / "blows.fmu", initial=[1.0])
    logged = []
    with pytest.raises(Exception, match="fmi2DoStep"):
        fmpy.simulate_fmu(str(made.path), stop_time=2.0, output_interval=0.5, logger=lambda *x: logged.append(x))
    assert any(b"ends at t = " in entry[-1] or "ends at t = " in str(entry[-1]) for entry in logged)


def test_sliding_along_a_switch_is_refused_by_the_fmu_with_a_remedy(tmp_path, fmpy, compiler):
    problem = daedal.ODE(lambda t, y: [y[1], -np.sign(y[1]) + 0.5 * np.sin(t)], 2)
    made = daedal.export_fmu(problem, tmp_path / "slides.fmu", initial=[0.0, 0.3])
    logged = []
    with pytest.raises(Exception, match="fmi2DoStep"):
        fmpy.simulate_fmu(str(made.path), stop_time=2.0, output_interval=0.5, logger=lambda *x: logged.append(x))
    assert "state what happens there as a mode" in str(logged[0][-1])


# --- the file ---------------------------------------------------------------------------------------------------------


def test_sources_are_inside_and_the_same_model_gives_the_same_file(tmp_path):
    problem, initial, _ = tank()
    first = daedal.export_fmu(problem, tmp_path / "a.fmu", initial=initial, binary=False, name="tank")
    content = first.path.read_bytes()
    daedal.export_fmu(tank()[0], tmp_path / "a.fmu", initial=initial, binary=False, name="tank")
    assert (tmp_path / "a.fmu").read_bytes() == content
    with zipfile.ZipFile(first.path) as archive:
        assert archive.namelist() == ["modelDescription.xml", "sources/a.c"]
        text = archive.read("sources/a.c").decode()
    assert "fmi2DoStep" in text and str(tmp_path) not in text
    assert first.compiler is None and "sources only" in first.message


def test_missing_compiler_leaves_sources_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("daedal.exchange.fmu_compiler.NAMES", ("no-such-compiler",))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    made = daedal.export_fmu(tank()[0], tmp_path / "tank.fmu", initial=[1.0])
    assert made.platform is None
    assert "no C compiler was found (cc, gcc, clang, or: pip install ziglang)" in made.message


def _untraceable(t, y):
    return [float.fromhex(float(y[0]).hex())]


@pytest.mark.parametrize(
    "error, words, arguments",
    [
        (daedal.InvalidProblemError, "traceable.*Remedy: write", {"problem": daedal.ODE(_untraceable, 1)}),
        (
            daedal.errors.UnknownNameError,
            "outputs: 'levle' is no variable.*did you mean 'level'",
            {"outputs": ["levle"]},
        ),
        (daedal.errors.UnknownNameError, "inputs: 'inflw' is no input.*did you mean 'inflow'", {"inputs": ["inflw"]}),
        (daedal.InvalidProblemError, "kind='both' is unknown", {"kind": "both"}),
        (daedal.InvalidProblemError, "version='1.0' is unknown", {"version": "1.0"}),
        (daedal.InvalidProblemError, "initial is missing", {"initial": None}),
        (daedal.InvalidProblemError, "path must end in .fmu", {"path": "tank.zip"}),
        (daedal.InvalidProblemError, "method='radau': an FMU has", {"method": "radau"}),
        (daedal.InvalidProblemError, "compiler='nocc' is not found", {"compiler": "nocc"}),
    ],
)
def test_bad_input_is_refused_with_a_remedy(error, words, arguments, tmp_path):
    given = {"problem": tank()[0], "path": tmp_path / "x.fmu", "initial": [1.0]} | arguments
    problem, path = given.pop("problem"), given.pop("path")
    with pytest.raises(error, match=f"(?s){words}"):
        daedal.export_fmu(problem, path, **given)
    assert not (tmp_path / "x.fmu").exists()


# --- import -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2.0", "3.0"])
@pytest.mark.parametrize("name", ["tank", "index_1", "bouncing_ball", "arm"])
def test_exported_models_come_back_as_problems(name, version, tmp_path, fmpy, compiler):
    problem, initial, end = MODELS[name]()
    made = daedal.export_fmu(problem, tmp_path / f"{name}.fmu", initial=initial, kind="me", version=version)
    fmu = daedal.import_fmu(made.path)
    assert set(fmu.inputs) == set(made.inputs) and set(fmu.parameters) == set(made.parameters)
    expected = reference(name)
    for _ in range(2):  # a second run begins at the start again
        sol = daedal.solve(fmu.problem, (0.0, end), fmu.initial, rtol=1e-9, atol=1e-11)
        for t in np.linspace(0.05 * end, 0.55 * end, 5):
            state = sol(t)
            for k, variable in enumerate(fmu.states):
                assert float(np.atleast_1d(state)[k]) == pytest.approx(float(expected(t)[variable]), abs=1e-6)


def test_imported_inputs_and_parameters_act_as_those_of_the_problem(tmp_path, fmpy, compiler):
    problem, initial, _ = tank()
    made = daedal.export_fmu(problem, tmp_path / "tank.fmu", initial=initial, kind="me")
    fmu = daedal.import_fmu(made.path)
    changes = {"params": {"c": 0.5}, "inputs": {"inflow": ([0.0, 1.0], [0.1, 0.9])}, "rtol": 1e-9, "atol": 1e-11}
    found = daedal.solve(fmu.problem, (0.0, 2.0), fmu.initial, **changes)
    expected = daedal.solve(problem, (0.0, 2.0), initial, **changes)
    assert found.y[0, -1] == pytest.approx(expected.y[0, -1], rel=1e-8)
    model = daedal.linearise(fmu.problem, [1.0], outputs={"level": fmu.output("level")})
    same = daedal.linearise(problem, [1.0], outputs=["level"])
    np.testing.assert_allclose([model.A, model.B, model.C], [same.A, same.B, same.C], rtol=1e-6)


def test_files_that_cannot_be_imported_are_refused(tmp_path, fmpy, compiler):
    with pytest.raises(daedal.errors.InvalidFileError, match="does not exist"):
        daedal.import_fmu(tmp_path / "none.fmu")
    (tmp_path / "text.fmu").write_text("no zip")
    with pytest.raises(daedal.errors.InvalidFileError, match="is no FMU that can be read"):
        daedal.import_fmu(tmp_path / "text.fmu")
    made = daedal.export_fmu(tank()[0], tmp_path / "cs.fmu", initial=[1.0])
    with pytest.raises(daedal.InvalidProblemError, match=r"has no Model Exchange interface.*kind='me'"):
        daedal.import_fmu(made.path)
    made = daedal.export_fmu(tank()[0], tmp_path / "me.fmu", initial=[1.0], kind="me", binary=False)
    with pytest.raises(daedal.InvalidProblemError, match=r"cannot be loaded.*Remedy: an FMU with a binary"):
        daedal.import_fmu(made.path)
