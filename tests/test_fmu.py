"""FMUs of problems: valid, equal to `solve` in another program, refused where a problem cannot be written as C."""

import re
import subprocess
import zipfile

import numpy as np
import pytest

import daedal
from daedal.exchange import fmu_files
from daedal.hybrid import HybridProblem
from fmu_models import (
    MODELS,
    TIGHT,
    arm,
    bouncing_ball,
    compare,
    index_1,
    instances,
    pendulum,
    reference,
    started,
    tank,
)
from oracles import oracle
from tiers import sampled

IN_MODEL_EXCHANGE = ("pendulum", "bouncing_ball", "stick_slip", "arm", "index_1", "tank", "thermostat")


@pytest.fixture(scope="module")
def fmpy():
    return oracle("fmpy", minversion="0.3")


@pytest.fixture(scope="module")
def compiler():
    found = fmu_files.found_compiler(None)
    if found is None:
        pytest.skip("no C compiler")
    return found


@pytest.fixture(autouse=True)
def unoptimised(monkeypatch):
    """Binaries are made quickly."""
    flags = fmu_files.FLAGS
    monkeypatch.setattr(fmu_files, "FLAGS", tuple("-O0" if flag == "-O2" else flag for flag in flags))


# --- equal to solve ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, version",
    [
        *((name, "2.0") for name in MODELS),
        *((name, "3.0") for name in ("robertson", "bouncing_ball", "arm", "pendulum")),
    ],
)
def test_co_simulation_is_valid_and_equals_solve(name, version, tmp_path, fmpy, compiler, monkeypatch):
    problem, initial, end = MODELS[name]()
    if version == "3.0":
        monkeypatch.undo()  # optimised
    made = daedal.export_fmu(problem, tmp_path / f"{name}.fmu", initial=initial, version=version, **TIGHT)
    assert made.compiler == compiler.name and "Co-Simulation" in made.message
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(made.path)) == []
    result = fmpy.simulate_fmu(str(made.path), stop_time=end, output_interval=end / 20, relative_tolerance=1e-8)
    compare(result, name, 3e-6)


@pytest.mark.parametrize(
    "name, version",
    sampled(
        [(name, version) for name in MODELS for version in ("2.0", "3.0")],
        [*((name, "3.0") for name in IN_MODEL_EXCHANGE), *((name, "2.0") for name in ("stick_slip", "pendulum"))],
    ),
)
def test_model_exchange_is_valid_and_equals_solve(name, version, tmp_path, fmpy, compiler):
    problem, initial, end = MODELS[name]()
    made = daedal.export_fmu(problem, tmp_path / f"{name}.fmu", initial=initial, kind="me", version=version, **TIGHT)
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(made.path)) == []
    result = fmpy.simulate_fmu(str(made.path), stop_time=end, output_interval=end / 20, relative_tolerance=1e-7)
    compare(result, name, 2e-5)
    free = ("arm", "tank", "thermostat", "robertson", "circuit", "circuit_of_index_2", "index_1", "index_3")
    assert ("projects" in made.message) == (name not in free)


# --- the interface ----------------------------------------------------------------------------------------------------


def test_constraints_hold_to_round_off_at_every_communication_point(tmp_path, fmpy, compiler):
    problem, initial, _ = pendulum()
    made = daedal.export_fmu(problem, tmp_path / "pendulum.fmu", initial=initial, rtol=1e-4, atol=1e-6)
    result = fmpy.simulate_fmu(str(made.path), stop_time=20.0, output_interval=0.1)
    assert np.abs(result["x"] ** 2 + result["y"] ** 2 - 1.0).max() < 1e-14
    assert np.abs(result["x"] * result["x'"] + result["y"] * result["y'"]).max() < 1e-13


def test_start_modes_keep_their_own_constraints(tmp_path, fmpy, compiler):
    flying, (_, start), _ = bouncing_ball()
    problem = HybridProblem({name: flying.modes[name].problem for name in ("rest", "flight")}, flying.transitions)
    made = daedal.export_fmu(problem, tmp_path / "ball.fmu", initial=("flight", start))
    [instance], _, references = instances(fmpy, made)
    started(instance).doStep(0.0, 0.25)
    assert instance.getReal([references["h"]])[0] == pytest.approx(1.0 - 0.5 * 9.81 * 0.25**2, rel=1e-12)


def test_events_at_communication_points_and_long_steps_change_nothing(tmp_path, fmpy, compiler):
    problem, initial, _ = bouncing_ball()
    made = daedal.export_fmu(problem, tmp_path / "ball.fmu", initial=initial, **TIGHT)
    impact = np.sqrt(2.0 / 9.81)
    ends = []
    for steps in ([0.25 * impact] * 4 + [0.5 * impact], [impact, 0.5 * impact], [1e-12, 1.5 * impact - 1e-12]):
        [instance], _, references = instances(fmpy, made)
        started(instance)
        for k, step in enumerate(steps):
            instance.doStep(sum(steps[:k]), step)
        ends.append(instance.getReal([references["h"], references["h'"]]))
    expected = daedal.solve(problem, (0.0, 1.5 * impact), initial, rtol=1e-10, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(ends, [expected] * 3, atol=1e-9)
    instance.doStep(sum(steps), 1e6)  # at rest for long
    assert instance.getReal([references["h"], references["h'"]]) == [0.0, 0.0]


def test_two_instances_do_not_share_anything(tmp_path, fmpy, compiler):
    problem, initial, _ = tank()
    made = daedal.export_fmu(problem, tmp_path / "tank.fmu", initial=initial, **TIGHT)
    (one, other), _, references = instances(fmpy, made, 2)
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
    [instance], _, references = instances(fmpy, made)
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
    [instance], _, references = instances(fmpy, made)
    started(instance)
    instance.doStep(0.0, 0.5)
    instance.setReal([references["u"]], [3.0])
    y, z = instance.getReal([references["y"], references["z"]])
    assert z == pytest.approx(y + 3.0, rel=1e-14)


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_state_is_restored_and_serialised_bit_for_bit(version, tmp_path, fmpy, compiler):
    problem, initial, _ = bouncing_ball()
    made = daedal.export_fmu(problem, tmp_path / "ball.fmu", initial=initial, version=version)
    (instance, fresh), said, references = instances(fmpy, made, 2)
    started(instance, tolerance=1e-8)

    def run(instance):
        values = []
        for k in range(4, 10):
            instance.doStep(k * 0.1, 0.1)
            values.append(instance.getReal([references["h"], references["h'"]]))
        return values

    for k in range(4):
        instance.doStep(k * 0.1, 0.1)
    state = instance.getFMUstate()
    first = run(instance)
    instance.setFMUstate(state)
    again = run(instance)
    serialised = instance.serializeFMUstate(state)
    fresh.setFMUstate(fresh.deSerializeFMUstate(serialised))  # tolerance and mode included
    assert first == again == run(fresh)
    other = daedal.export_fmu(tank()[0], tmp_path / "tank.fmu", initial=[1.0], version=version)
    [stranger], said, _ = instances(fmpy, other)
    with pytest.raises(Exception, match="failed"):
        stranger.deSerializeFMUstate(serialised)
    assert said == ["the bytes are no serialised state of this model"]


def test_directional_derivatives_are_those_of_linearise(tmp_path, fmpy, compiler):
    problem, initial, _ = arm()
    made = daedal.export_fmu(problem, tmp_path / "arm.fmu", initial=initial)
    [instance], _, references = instances(fmpy, made)
    started(instance)
    model = daedal.linearise(problem, initial)
    states = [references[name] for name in ("shoulder", "elbow", "shoulder'", "elbow'")]
    rates = [references[f"der({name})"] for name in ("shoulder", "elbow", "shoulder'", "elbow'")]
    inputs = [references[f"torque[{i}]"] for i in range(2)]
    for columns, expected in ((states, model.A), (inputs, model.B)):
        for k, column in enumerate(columns):
            found = instance.getDirectionalDerivative(rates, [column], [1.0])
            np.testing.assert_allclose(found, expected[:, k], atol=1e-12)


def test_derivatives_of_modes_and_adjoint_derivatives(tmp_path, fmpy, compiler):
    problem, initial, _ = bouncing_ball()
    made = daedal.export_fmu(problem, tmp_path / "ball.fmu", initial=initial, version="3.0")
    [instance], said, references = instances(fmpy, made)
    started(instance)
    rates, states = ([references[name] for name in names] for names in (("der(h)", "der(h')"), ("h", "h'")))
    assert instance.getDirectionalDerivative(rates, states, [2.0, 3.0]) == [3.0, 0.0]
    assert instance.getAdjointDerivative(rates, states, [2.0, 3.0]) == [0.0, 2.0]
    with pytest.raises(Exception, match="failed"):
        instance.getAdjointDerivative(rates, states[:1], [2.0, 3.0])
    assert said == ["2 values are given or requested, but there are 1"]


def test_directional_derivatives_go_through_algebraic_variables(tmp_path, fmpy, compiler):
    problem, initial, _ = index_1()
    made = daedal.export_fmu(problem, tmp_path / "dae.fmu", initial=initial)
    [instance], _, references = instances(fmpy, made)
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


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_calls_that_make_no_sense_are_refused_with_a_message(version, tmp_path, fmpy, compiler):
    problem, initial, _ = tank()
    made = daedal.export_fmu(problem, tmp_path / "tank.fmu", initial=initial, version=version)
    [instance], said, references = instances(fmpy, made)

    def refused(message, call, *arguments):
        said.clear()
        with pytest.raises(Exception, match="failed"):
            call(*arguments)
        assert message in said[0]

    refused("after the initialisation only", instance.doStep, 0.0, 0.5)
    started(instance)
    for value in (np.nan, np.inf):
        refused("must be a finite number", instance.setReal, [references["c"]], [value])
    refused("value reference 0 cannot be set", instance.setReal, [0], [1.0])
    refused("value reference 99 cannot be set", instance.setReal, [99], [1.0])
    refused("value reference 99 is not a variable", instance.getReal, [99])
    for step in (0.0, -0.5, np.nan, np.inf):
        refused("must be positive and finite", instance.doStep, 0.0, step)
    refused("starts at t = 0.5, but the model is at 0", instance.doStep, 0.5, 0.5)
    instance.doStep(0.0, 0.5)  # nothing of this has done harm
    sol = daedal.solve(problem, (0.0, 0.5), initial, rtol=1e-9)
    assert instance.getReal([references["level"]])[0] == pytest.approx(sol.y[0, -1], rel=1e-6)
    instance.terminate()
    refused("is terminated", instance.doStep, 0.5, 0.5)
    instance.reset()
    started(instance).doStep(0.0, 0.5)


def test_a_run_continues_from_a_saved_state_after_a_failure(tmp_path, fmpy, compiler):
    problem = daedal.ODE(lambda t, y, p: [p["k"] * y[0] ** 2], 1, names=["y"], params={"k": 1.0})
    made = daedal.export_fmu(problem, tmp_path / "blows.fmu", initial=[1.0], **TIGHT)
    [instance], said, references = instances(fmpy, made)
    started(instance).doStep(0.0, 0.5)
    state = instance.getFMUstate()
    with pytest.raises(Exception, match="fmi2DoStep failed"):
        instance.doStep(0.5, 1.0)
    assert "the integration ends at t = 1" in said[0] and "must change" in said[0]
    assert instance.getRealStatus(2) == pytest.approx(1.0, abs=1e-4)  # the last time that was reached
    instance.setFMUstate(state)
    instance.setReal([references["k"]], [0.1])
    instance.doStep(0.5, 1.0)
    assert instance.getReal([references["y"]])[0] == pytest.approx(2.5, rel=1e-7)


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


@pytest.mark.parametrize("name, version", [("pendulum", "3.0"), ("dry_friction", "2.0"), ("index_1", "2.0")])
def test_sources_compile_without_warnings(name, version, tmp_path, compiler):
    problem, initial, _ = MODELS[name]()
    kind = "me" if version == "3.0" else "cs"
    made = daedal.export_fmu(problem, tmp_path / "m.fmu", initial=initial, kind=kind, version=version, binary=False)
    with zipfile.ZipFile(made.path) as archive:
        archive.extract("sources/m.c", tmp_path)
    options = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-O1", "-c", "-o", str(tmp_path / "m.o")]
    done = subprocess.run([*compiler.command, *options, "sources/m.c"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_missing_compiler_leaves_sources_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("daedal.exchange.fmu_files.NAMES", ("no-such-compiler",))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    made = daedal.export_fmu(tank()[0], tmp_path / "tank.fmu", initial=[1.0])
    assert made.platform is None
    assert "no C compiler was found (install cc, gcc or clang, or: pip install ziglang)" in made.message


def _untraceable(t, y):
    return [float.fromhex(float(y[0]).hex())]


@pytest.mark.parametrize(
    "error, words, arguments",
    [
        (daedal.InvalidProblemError, "traceable.*Remedy: write", {"problem": daedal.ODE(_untraceable, 1)}),
        (
            daedal.errors.UnknownNameError,
            "outputs: 'levle' is not a variable.*did you mean 'level'",
            {"outputs": ["levle"]},
        ),
        (daedal.errors.UnknownNameError, "inputs: 'inflw' is not an input.*mean 'inflow'", {"inputs": ["inflw"]}),
        (daedal.InvalidProblemError, "kind='both' is unknown", {"kind": "both"}),
        (daedal.InvalidProblemError, "version='1.0' is unknown", {"version": "1.0"}),
        (daedal.InvalidProblemError, "initial is missing", {"initial": None}),
        (daedal.InvalidProblemError, "path must end in .fmu", {"path": "tank.zip"}),
        (daedal.InvalidProblemError, "method='radau': an FMU has", {"method": "radau"}),
        (daedal.InvalidProblemError, "compiler='nocc' is not found", {"compiler": "nocc"}),
        (daedal.InvalidProblemError, "path must be the path of a file", {"path": None}),
        (daedal.InvalidProblemError, "export_fmu does not support problems of type int.*Remedy", {"problem": 3}),
        (daedal.InvalidProblemError, "y0 is not finite: level = nan", {"initial": [np.nan]}),
        (daedal.InvalidProblemError, r"y0 has shape \(2,\)", {"initial": [1.0, 2.0]}),
        (daedal.InvalidProblemError, r"atol has shape \(2,\)", {"atol": [1.0, 2.0]}),
        (daedal.InvalidProblemError, "params: 'c' is inf", {"params": {"c": np.inf}}),
        (daedal.InvalidProblemError, "output 'y0' takes 1 argument", {"outputs": lambda t: t}),
        (daedal.InconsistentInitialError, "z by", {"problem": index_1()[0], "initial": ([1.0], [5.0])}),
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


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_derivatives_of_an_imported_fmu_are_used_and_failures_make_steps_shorter(version, tmp_path, fmpy, compiler):
    def outflow(t, h):
        if h[0] < 0.0:
            raise ValueError("negative level")
        return [-2.0 * np.sqrt(h[0])]

    problem = daedal.ODE(outflow, 1, names=["level"])
    made = daedal.export_fmu(problem, tmp_path / "tank.fmu", initial=[1.0], kind="me", version=version)
    fmu = daedal.import_fmu(made.path)
    sol = daedal.solve(fmu.problem, (0.0, 0.99), fmu.initial, method="radau", rtol=1e-8, atol=1e-10)
    assert sol.y[0, -1] == pytest.approx(1e-4, rel=1e-4)
    assert sol.stats.jacobian_residual_evaluations == 0
    with pytest.raises(daedal.IntegrationError, match="could not be evaluated"):
        daedal.solve(fmu.problem, (0.0, 1.5), fmu.initial)
    with pytest.raises(daedal.DaedalError, match="value reference 1 must be a finite number, got nan"):
        fmu.problem.f(0.0, np.array([np.nan]))


def test_files_that_cannot_be_imported_are_refused(tmp_path, fmpy, compiler):
    with pytest.raises(daedal.errors.InvalidFileError, match="does not exist"):
        daedal.import_fmu(tmp_path / "none.fmu")
    (tmp_path / "text.fmu").write_text("no zip")
    with pytest.raises(daedal.errors.InvalidFileError, match="cannot be read as an FMU"):
        daedal.import_fmu(tmp_path / "text.fmu")
    made = daedal.export_fmu(tank()[0], tmp_path / "cs.fmu", initial=[1.0])
    with pytest.raises(daedal.InvalidProblemError, match=r"has no Model Exchange interface.*kind='me'"):
        daedal.import_fmu(made.path)
    made = daedal.export_fmu(tank()[0], tmp_path / "arrays.fmu", initial=[1.0], kind="me", version="3.0")
    with zipfile.ZipFile(made.path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    description = entries["modelDescription.xml"].decode()
    for name in ("level", "der(level)"):
        description = re.sub(
            rf'(<Float64 name="{re.escape(name)}"[^>]*) />', r'\1><Dimension start="1" /></Float64>', description
        )
    entries["modelDescription.xml"] = description.encode()
    with zipfile.ZipFile(made.path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    with pytest.raises(daedal.InvalidProblemError, match="has arrays as states"):
        daedal.import_fmu(made.path)
    made = daedal.export_fmu(tank()[0], tmp_path / "me.fmu", initial=[1.0], kind="me", binary=False)
    with pytest.raises(daedal.InvalidProblemError, match=r"cannot be loaded.*Remedy: use an FMU with a binary"):
        daedal.import_fmu(made.path)
