"""Machines as scenes: what is drawn of bodies, joints and springs, and where."""

import numpy as np
import pytest
from typer.testing import CliRunner

import daedal
from daedal.cli import app
from daedal.multibody import Body, Model, Prismatic, Revolute, Spring, ground
from daedal.viz import Box, Line, Part, Plot, Rod, SpringLine


@pytest.fixture(scope="module")
def machine():
    rod, slider = Body.rod("rod", length=2.0, mass=1.0), Body.box("slider", size=(0.2, 0.2, 0.2), mass=1.0)
    bob = Body("bob", mass=1.0, center=(0.0, -0.5))
    return Model(
        Revolute("A", ground, rod.start),
        Prismatic("rail", ground.at(0.0, 3.0), slider, axis="x"),
        Revolute("B", slider, bob),
        Spring("spring", rod.end, slider, stiffness=1.0, length=1.0),
        gravity=(0.0, -9.81),
        planar=True,
        name="two pendulums",
    )


@pytest.fixture(scope="module")
def sol(machine):
    return daedal.solve(machine.system(), (0.0, 2.0), machine.assemble(A=0.3, rail=0.5, B=0.7))


def test_scene_shows_bodies_where_they_are(machine, sol):
    scene = sol.animate(frames=31, traces={"tip": machine.body("rod").end}, reactions=["A"], plots=["energy", "rail"])
    parts = {part.name: part for part in scene.parts}
    assert set(parts) == {"rod", "slider", "bob", "ground", "rail", "spring"} and scene.up == "y"
    assert scene.title == "two pendulums" and scene.t.size == 31
    for name in ("rod", "slider", "bob"):
        body = sol.body(name, t=scene.t)
        np.testing.assert_allclose(parts[name].position, body.position, atol=1e-12)
        np.testing.assert_allclose(parts[name].rotation, body.orientation, atol=1e-12)
    assert isinstance(parts["slider"].shapes[0], Box) and isinstance(parts["rail"], Line)
    (rod,) = [shape for shape in parts["bob"].shapes if isinstance(shape, Rod)]  # from the hinge to the centre of mass
    np.testing.assert_allclose(sorted([rod.start, rod.end]), [(0.0, -0.5, 0.0), (0.0, 0.0, 0.0)], atol=1e-12)
    tip = sol.body("rod", t=scene.t).at(machine.body("rod").end).position
    np.testing.assert_allclose(scene.traces[0].points, tip, atol=1e-12)
    assert isinstance(parts["spring"], SpringLine)
    np.testing.assert_allclose(parts["spring"].start, tip, atol=1e-12)
    np.testing.assert_allclose(scene.arrows[0].vector, sol.joint("A", t=scene.t).reaction.force, atol=1e-9)
    energy, rail = scene.plots
    np.testing.assert_allclose(energy.series["total"], energy.series["total"][0], atol=1e-3)
    np.testing.assert_allclose(rail.series["displacement"], sol.joint("rail", t=scene.t).displacement)


def test_files(machine, sol, tmp_path):
    page = sol.animate(tmp_path / "machine.html", frames=20, plots=[Plot("own", {"x": np.arange(20.0)})])
    assert "two pendulums" in page.read_text(encoding="utf-8")
    still = tmp_path / "machine.png"
    machine.draw(path=still)
    assert still.stat().st_size > 5000
    assert machine.draw(machine.assemble(A=1.0), tmp_path / "still.html").is_file()
    with pytest.raises(daedal.InvalidProblemError, match=r"must end in \.html"):
        sol.animate(tmp_path / "machine.txt")
    with pytest.raises(daedal.InvalidProblemError, match="start has 1 coordinates"):
        machine.draw(([0.0], [0.0]))
    with pytest.raises(daedal.InvalidProblemError, match=r"interval of the solution, \[0, 2\]"):
        sol.animate(t_span=(1.0, 3.0))
    with pytest.raises(daedal.InvalidProblemError, match="neither a body nor a frame"):
        sol.animate(frames=3, traces=[1.0])


def test_fast_motions_get_more_frames(machine):
    still = daedal.solve(machine.system(), (0.0, 0.2), machine.assemble(A=0.3, rail=0.5, B=0.7))
    fast = daedal.solve(machine.system(), (0.0, 4.0), machine.assemble(A=0.3, rail=0.5, B=0.7, velocities={"B": 30.0}))
    assert still.animate(plots=()).t.size == 240
    assert fast.animate(plots=()).t.size >= 480


def test_rods_of_a_long_chain_stay_thin():
    links = [Body.rod(f"link {i}", length=0.1, mass=0.1) for i in range(12)]
    joints = [Revolute(f"j{i}", a, b.start) for i, (a, b) in enumerate(zip([ground, *(x.end for x in links)], links))]
    model = Model(*joints, planar=True)
    sol = daedal.solve(model.system(), (0.0, 0.01), model.start())
    parts = [part for part in sol.animate(frames=2, plots=()).parts if isinstance(part, Part) and part.name != "ground"]
    assert len(parts) == 12
    assert all(shape.radius < 0.02 for part in parts for shape in part.shapes)


def test_motion_without_forces_is_shown(machine):
    t = np.linspace(0.0, 1.0, 11)
    motion = machine.kinematics(t, {"A": lambda t: 7.0 * t, "rail": 0.4, "B": 0.1})
    np.testing.assert_allclose(motion.joint("A").angle, 7.0 * t, atol=1e-9)
    tip = motion.body("rod").at(machine.body("rod").end)
    np.testing.assert_allclose(tip.acceleration[:2], -49.0 * tip.position[:2], atol=1e-7)
    scene = motion.animate()
    assert scene.t.size > 11 and [plot.title for plot in scene.plots] == ["A", "rail", "B"]
    assert np.all(np.isfinite(motion.joint("A").reaction.force))  # what it takes to move it so


@pytest.mark.parametrize("name", ["point_pendulum", "planar_pendulum"])  # of bodies and joints, and of equations
def test_command_line_writes_a_page(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["run", name, "--t-end", "0.5", "--animate"])
    assert result.exit_code == 0 and f"out/{name}.html" in result.output
    assert (tmp_path / "out" / f"{name}.html").is_file()


def test_command_line_refuses_what_does_not_move(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["run", "robertson", "--t-end", "0.5", "--animate"])
    assert result.exit_code != 0 and "no drawing is available for this solution" in result.output
