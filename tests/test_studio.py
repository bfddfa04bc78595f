"""Live pages: what is solved in Node and in a browser is what `solve` computes, and sliders change it accordingly."""

import json
import re
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pytest

import daedal
from browser import Browser, find_chromium
from daedal.exchange import studio as pages
from daedal.methods import DOPRI5, Rosenbrock
from daedal.symbolic import Graph
from daedal.symbolic.cuda import PRELUDE, c_function
from daedal.symbolic.graph import evaluate
from daedal.symbolic.javascript import LIBRARY, javascript
from daedal.symbolic.operations import CONDITIONS, FUNCTIONS

CHROMIUM, NODE = find_chromium(), shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="no Node found")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found; name it in the variable CHROMIUM")
RUN = (files("daedal.exchange") / "templates" / "studio_run.js").read_text(encoding="utf-8")
PROJECTED = {"formulation": daedal.formulations.CoordinateProjection(), "method": DOPRI5(norm="max")}
PLAYER = "daedalPage.players[0]"
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.3, -2.7, 2.5, 1e300, -1e300, np.inf, -np.inf, np.nan)


def node(script):
    """What a script prints as JSON."""
    done = subprocess.run([NODE, "-"], input=script, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def content(page):
    """The script of the model and the data of a page."""
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.S)[1])
    return re.search(r"<script>(function daedalModel.*?)</script>", page, re.S)[1], data


def in_node(page, changes=""):
    """States at the frames, as the page computes them, after some changes."""
    script, data = content(page)
    found = node(
        f"{script}\n{RUN}\nconst run = new DaedalRun(daedalModel(), {json.dumps(data)});{changes}\nrun.solve(1e4);"
        "console.log(JSON.stringify({failure: run.failure, steps: run.member.steps, t: Array.from(run.setting.t_eval),"
        "y: Array.from(run.setting.outputs), drift: run.reached ? Math.max(...run.drift()) : 0, reached: run.reached}))"
    )
    found["y"] = np.array([np.nan if x is None else x for x in found["y"]]).reshape(len(found["t"]), -1).T
    return found


def linkage(**options):
    """A four-bar linkage of point masses, with named parameters and a drawing that follows them."""
    return daedal.MechanicalSystem(
        lambda t, q, p: np.diag([p["mass"], p["mass"], 1.0, 1.0]),
        lambda t, q, v, p: [0.0, -9.81 * p["mass"], -0.1 * v[2], -9.81],
        lambda t, q, p: [
            q[0] ** 2 + q[1] ** 2 - p["crank"] ** 2,
            (q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 4.0,
            (q[2] - 2.0) ** 2 + q[3] ** 2 - 2.25,
        ],
        n_q=4,
        n_constraints=3,
        params={"mass": 1.0, "crank": 0.8},
        names=["x1", "y1", "x2", "y2"],
        **options,
    )


START = daedal.consistent_initial(linkage(), 0.0, ([0.1, 0.8, 1.6, 1.4], [0.0, 0.0, 0.0, 0.0]))
START = (START.q, START.v)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("studio") / "linkage.html"
    return daedal.studio(linkage(), (0.0, 3.0), START, path, rtol=1e-10, atol=1e-12, title="Linkage")


def expected(found, problem, initial, **options):
    return daedal.solve(problem, (found["t"][0], found["t"][-1]), initial, t_eval=found["t"], **options)


# --- the integrator ---------------------------------------------------------------------------------------------------


@needs_node
def test_all_operations_have_the_values_of_python():
    graph = Graph()
    a, b = graph.argument("x", 0), graph.argument("x", 1)
    names = [name for name in FUNCTIONS if name not in ("erf", "erfc")]
    unary = [name for name in names if getattr(FUNCTIONS[name].evaluate, "nin", 1) == 1]
    nodes = [graph.apply(name, a) for name in unary]
    nodes += [graph.apply(name, a, b) for name in names if name not in unary]
    nodes += [graph.number(graph.apply(name, a, b)) for name in CONDITIONS if name in ("less", "less_equal", "equal")]
    nodes += [graph.divide(graph.one, a), graph.divide(a, b), graph.negative(a), graph.subtract(a, b)]
    nodes += [graph.locate(a, (-1.0, 0.0, 0.5)), graph.pick(a, (3.0, 4.0, 5.0))]
    text = javascript(PRELUDE + c_function(graph, "f", {"x": [a, b]}, {"y": nodes}))
    points = [[x, y] for x in SPECIAL for y in SPECIAL]
    known = json.dumps([[repr(float(x)) for x in point] for point in points]).replace("inf", "Infinity")
    found = node(
        f"{LIBRARY}{text}\nconst y = new Float64Array({len(nodes)}), all = [];\n"
        f"for (const x of {known}) {{ f(0, x.map(v => v === 'nan' ? NaN : Number(v)), y);"
        "all.push(Array.from(y, String)); }\nconsole.log(JSON.stringify(all));"
    )
    for point, values in zip(points, found, strict=True):
        with np.errstate(all="ignore"):
            right = np.array(evaluate(graph, nodes, {"x": point}), dtype=float)
        given = np.array([float(v.replace("Infinity", "inf")) for v in values])
        np.testing.assert_allclose(given, right, rtol=4e-15, atol=0.0, err_msg=str(point))


@needs_node
def test_the_motion_of_a_mechanism_is_that_of_solve(page):
    found = in_node(page.read_text())
    sol = expected(found, linkage(), START, rtol=1e-10, atol=1e-12, **PROJECTED)
    assert found["failure"] == "" and found["drift"] < 1e-13
    np.testing.assert_allclose(found["y"], sol.y, rtol=0.0, atol=1e-9)
    assert found["steps"] == sol.stats.steps


@needs_node
def test_parameters_and_starts_change_the_motion_to_that_of_solve(page):
    names = [one["name"] for one in content(page.read_text())[1]["sliders"]]
    assert names[:3] == ["mass", "crank", "x1"]
    found = in_node(
        page.read_text(), "run.setting.params[0] = 3; run.setting.params[1] = 0.7; run.setting.starts[1] += 0.2;"
    )
    first = found["y"][:, 0]
    other = linkage().with_params({"mass": 3.0, "crank": 0.7})
    assert np.abs(other.constraint(0.0, first[:4], other.params)).max() < 1e-14  # on the constraints of the new length
    sol = expected(found, other, (first[:4], first[4:]), rtol=1e-10, atol=1e-12, **PROJECTED)
    np.testing.assert_allclose(found["y"], sol.y, rtol=0.0, atol=1e-9)


@needs_node
@pytest.mark.parametrize("name", ["robertson", "pendulum", "index3_chain", "transistor_amplifier"])
def test_daes_are_solved_as_by_solve(name):
    """Index 1, index 3 that is reduced, and a circuit, by Rosenbrock steps."""
    model = getattr(daedal.library, name)()
    t_span = (0.0, {"robertson": 40.0, "transistor_amplifier": 0.02}.get(name, 1.0))
    found = in_node(pages._page(model.problem, t_span, model.initial, rtol=1e-9, atol=1e-11, drawing=None))
    method = {"method": Rosenbrock(variant="rodas5p")} if name in ("robertson", "transistor_amplifier") else {}
    sol = expected(found, model.problem, model.initial, rtol=1e-11, atol=1e-13, **method)
    size = np.maximum(1.0, np.abs(sol.y))
    assert found["failure"] == "" and np.max(np.abs(found["y"][: len(sol.y)] - sol.y) / size) < 1e-7


@needs_node
def test_a_start_without_a_configuration_is_told():
    html = pages._page(linkage(), (0.0, 1.0), START)
    found = in_node(html, "run.setting.params[1] = 40;")
    assert found["reached"] == 0 and "constraints" in found["failure"]


def cart():
    """A pendulum on a cart that is pushed."""
    return daedal.ODE(
        lambda t, y, p, push: [y[1], push - 0.1 * y[1], y[3], p["gravity"] * np.sin(y[2]) - push * np.cos(y[2])],
        4,
        params={"gravity": 9.81},
        names=["x", "x'", "angle", "rate"],
        inputs=["push"],
    )


CART = {"sliders": {"push": (-5.0, 5.0), "angle": None}, "rtol": 1e-10, "atol": 1e-12}


@needs_node
def test_inputs_by_hand_drive_the_model_as_inputs_in_pieces_do():
    script, data = content(pages._page(cart().with_inputs({"push": 0.0}), (0.0, 4.0), [0.0, 0.0, 0.1, 0.0], **CART))
    assert [(one["name"], one["low"]) for one in data["inputs"]] == [("push", -5.0)]
    found = node(
        f"{script}\n{RUN}\nconst run = new DaedalRun(daedalModel(), {json.dumps(data)}), u = run.setting.params;"
        "run.startDriving(); for (let k = 0; k < 400; k++) { u[1] = k < 100 ? 5 : -2; run.drive(0.0025); }"
        "const y = Array.from(run.member.y), t = run.setting.t1, record = run.reached; run.stopDriving(); u[1] = 0;"
        "run.solve(1e4); console.log(JSON.stringify({y, t, record, free: run.reached}));"
    )
    sol = daedal.solve(
        cart(), (0.0, 1.0), [0.0, 0.0, 0.1, 0.0], rtol=1e-11, atol=1e-13, inputs={"push": ([0.0, 0.25], [5.0, -2.0])}
    )
    assert found["t"] == pytest.approx(1.0, abs=1e-12) and found["record"] == found["free"] == data["frames"]
    np.testing.assert_allclose(found["y"], sol.y[:, -1], atol=1e-8)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_what_a_page_cannot_solve_is_refused_with_a_remedy(tmp_path):
    ball = daedal.library.bouncing_ball()
    with pytest.raises(daedal.InvalidProblemError, match=r"modes and transitions.*Remedy: pass one mode"):
        daedal.studio(ball.problem, ball.t_span, ball.initial, tmp_path / "a.html")
    special = daedal.ODE(lambda t, y: [-float(np.linalg.eigvals(np.outer(y, y)).real.max())], 1)
    with pytest.raises(daedal.InvalidProblemError, match=r"cannot be traced.*Remedy"):
        daedal.studio(special, (0.0, 1.0), [1.0], tmp_path / "a.html")
    with pytest.raises(daedal.InvalidProblemError, match=r"must end in \.html"):
        daedal.studio(linkage(), (0.0, 1.0), START, tmp_path / "a.pdf")
    with pytest.raises(daedal.InvalidProblemError, match="'wheel' is neither a parameter"):
        daedal.studio(linkage(), (0.0, 1.0), START, tmp_path / "a.html", sliders=["wheel"])
    with pytest.raises(daedal.InvalidProblemError, match="range with low < high"):
        daedal.studio(linkage(), (0.0, 1.0), START, tmp_path / "a.html", sliders={"mass": (3.0, 1.0)})
    with pytest.raises(daedal.InvalidProblemError, match="does not contain its problem"):
        daedal.solve(daedal.ODE(lambda t, y: [-y[0]], 1), (0.0, 1.0), [1.0]).studio(tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


def test_a_solution_writes_the_same_page(page, tmp_path):
    sol = daedal.solve(linkage(), (0.0, 3.0), START)
    written = sol.studio(tmp_path / "linkage.html", rtol=1e-10, atol=1e-12, title="Linkage")
    assert content(written.read_text())[0] == content(page.read_text())[0]
    decay = daedal.ODE(lambda t, y, p: [-p["rate"] * y[0]], 1, params={"rate": 1.0})
    sol = daedal.solve(decay, (0.0, 1.0), [1.0])
    _, data = content(sol.studio(tmp_path / "decay.html", decay).read_text())
    assert [one["name"] for one in data["sliders"]] == ["rate", "y[0]"]


# --- in a browser -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    browser = Browser(CHROMIUM, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def moved(browser, name, keys):
    """Moves a slider by keys, and waits until the motion has been solved; its value."""
    slider = f"[...document.querySelectorAll('.rows input')].find(s => s.dataset.name === {json.dumps(name)})"
    browser.evaluate(f"(() => {{ const s = {slider}; s.closest('details').open = true; s.focus(); }})()")
    for key in keys:
        browser.press(key)
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return browser.evaluate(f"Number({slider}.value)")


def states(browser, t):
    y = browser.evaluate(f"Array.from({PLAYER}.run.setting.outputs)")
    return np.array(y).reshape(len(t), -1).T


@needs_chromium
@pytest.mark.slow
def test_a_slider_changes_the_motion_to_that_of_solve(chromium, page):
    chromium.complaints.clear()
    chromium.open(page, calm=True)
    t = chromium.evaluate(f"Array.from({PLAYER}.run.setting.t_eval)")
    rod = "document.querySelector('.rod').getAttribute('points')"
    before = chromium.evaluate(rod)
    length = moved(chromium, "crank", ["ArrowRight"] * 3)
    assert length > 0.8 and chromium.evaluate(rod) != before
    first = states(chromium, t)[:, 0]
    other = linkage().with_params({"mass": 1.0, "crank": length})
    sol = expected({"t": t}, other, (first[:4], first[4:]), rtol=1e-10, atol=1e-12, **PROJECTED)
    np.testing.assert_allclose(states(chromium, t), sol.y, rtol=0.0, atol=1e-9)
    chromium.click(".reset")
    speed = moved(chromium, "x1'", ["ArrowRight"] * 5)
    start = states(chromium, t)[:, 0]
    assert speed > 0.0 and start[4] > 0.0
    sol = expected({"t": t}, linkage(), (start[:4], start[4:]), rtol=1e-10, atol=1e-12, **PROJECTED)
    np.testing.assert_allclose(states(chromium, t), sol.y, rtol=0.0, atol=1e-9)
    assert "drift" in chromium.evaluate("document.querySelector('.says').textContent")
    assert chromium.complaints == []


@needs_chromium
@pytest.mark.slow
def test_a_joint_is_dragged_along_its_constraint(chromium, page):
    chromium.open(page, calm=True)
    x, y = chromium.evaluate(
        "(() => { const r = document.querySelector('.handle').getBoundingClientRect();"
        "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
    )
    before = np.array(chromium.evaluate(f"Array.from({PLAYER}.run.setting.starts)"))
    for kind, dx in (("mousePressed", 0), ("mouseMoved", 30), ("mouseReleased", 30)):
        chromium.send("Input.dispatchMouseEvent", type=kind, x=x + dx, y=y, button="left", buttons=1, clickCount=1)
    chromium.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    after = np.array(chromium.evaluate(f"Array.from({PLAYER}.run.setting.starts)"))
    assert np.abs(after - before)[:4].max() > 0.02
    problem = linkage()
    assert np.abs(problem.constraint(0.0, after[:4], problem.params)).max() < 1e-9
    assert not chromium.evaluate(f"{PLAYER}.playing")


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_pages_fit_their_window_and_rest_for_readers_who_ask_for_calm(chromium, page, width):
    chromium.complaints.clear()
    chromium.open(page, width, 844, calm=True)
    assert chromium.evaluate("document.documentElement.scrollWidth") <= width
    assert not chromium.evaluate(f"{PLAYER}.playing")
    chromium.evaluate("document.querySelector('.studio select').focus()")
    assert chromium.complaints == []


@needs_chromium
@pytest.mark.slow
def test_an_arrow_key_pushes_a_driven_model(chromium, tmp_path):
    problem = cart().with_inputs({"push": 0.0})
    chromium.complaints.clear()
    chromium.open(daedal.studio(problem, (0.0, 4.0), [0.0, 0.0, 0.1, 0.0], tmp_path / "cart.html", **CART), calm=True)
    chromium.evaluate("document.querySelector('.drive').click()")
    key = {"key": "ArrowRight", "windowsVirtualKeyCode": 39}
    chromium.send("Input.dispatchKeyEvent", type="keyDown", **key)
    chromium.wait_for(f"{PLAYER}.run.setting.params[1] === 5 && {PLAYER}.run.setting.starts[0] > 0.01")
    chromium.send("Input.dispatchKeyEvent", type="keyUp", **key)
    chromium.wait_for(f"{PLAYER}.run.setting.params[1] === 0")
    chromium.click(".drive")
    chromium.wait_for(
        f"!{PLAYER}.driving && {PLAYER}.run.setting.t1 === 4 && {PLAYER}.run.reached === {PLAYER}.data.frames"
    )
    assert chromium.complaints == []


@needs_chromium
@pytest.mark.slow
def test_a_page_without_a_drawing_plays_its_curve(chromium, tmp_path):
    model = daedal.library.robertson()
    path = daedal.studio(model.problem, (0.0, 40.0), model.initial, tmp_path / "robertson.html")
    chromium.complaints.clear()
    chromium.open(path)
    chromium.wait_for(f"{PLAYER}.frame > 3")
    assert chromium.evaluate("document.querySelectorAll('.plot polyline')[0].getAttribute('points').length") > 1000
    assert chromium.complaints == []


@needs_node
def test_a_planar_machine_is_drawn_and_solved():
    model = daedal.library.four_bar_with_spring()
    html = pages._page(model.problem, (0.0, 2.0), model.initial, rtol=1e-10, atol=1e-12)
    data = content(html)[1]
    found = in_node(html)
    sol = expected(found, model.problem, model.initial, rtol=1e-10, atol=1e-12, **PROJECTED)
    np.testing.assert_allclose(found["y"], sol.y, rtol=0.0, atol=1e-9)
    assert len(data["rods"]) == 3 and len(data["springs"]) == 1 and data["fixed"]


def test_planar_drawings_place_points_as_the_machine_does():
    model = daedal.library.andrews_machine()
    drawing, q = model.problem.planar_drawing(), np.asarray(model.initial[0], dtype=float)
    motion = model.problem.motion(q, 0.0 * q)
    for body in model.problem.model.bodies:
        for name, place in drawing.points.items():
            if name.startswith(f"{body.name} (") and callable(place):
                x, y = map(float, name.removeprefix(f"{body.name} ").strip("()").split(","))
                np.testing.assert_allclose(place(q), motion.position(body.at(x, y))[:2], atol=1e-7)
    assert daedal.library.gyroscope().problem.planar_drawing() is None
