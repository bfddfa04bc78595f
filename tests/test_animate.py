"""Animations: drawings follow the motion, pages are self-contained, what cannot be drawn is refused with a remedy."""

import json
import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.library.drawings import drawing_of
from daedal.viz import Drawing
from daedal.viz.animate import _changes, _differences, make_scene, player_page, scene_data
from daedal.viz.drawing import MovingDrawing
from daedal.viz.pages import equation_html
from daedal.viz.scene_page import solution_scene
from tiers import sampled

IN_THE_PLANE = [
    ("rod_pendulum", {"t1": 3.0}),
    ("double_pendulum", {}),
    ("double_pendulum", {"l1": 0.5, "l2": 3.0}),
    ("crank_slider", {}),
    ("flexible_slider_crank", {"t1": 0.05}),
    ("wheelset", {"t1": 1.0}),
    ("seven_body", {}),
    ("car_axis", {"t1": 1.0}),
    ("chain_of_pendulums", {}),
    ("planar_pendulum", {"length": 2.0}),
    ("truck", {"t1": 3.0}),
    ("pendulum", {}),
    ("friction_crank_slider", {}),
    ("sliding_ladder", {"t1": 0.5}),
    ("painleve_rod", {}),
    ("crash_pendulum", {"t1": 0.6}),
]
LARGEST_PAGE, LARGEST_PAGE_IN_SPACE = 300_000, 1_500_000
PENDULUM = Drawing(
    points={"pivot": (0.0, 0.0), "bob": lambda q: (q[0], q[1])}, rods=[("pivot", "bob")], masses=["bob"], traces=["bob"]
)


def solved(name, **parameters):
    model = daedal.library.get(name, **parameters)
    return model, daedal.solve(model.problem, model.t_span, model.initial, **model.options)


@pytest.fixture(scope="module")
def pendulum():
    return solved("planar_pendulum")[1]


def line(count=50, **drawing):
    """A point that moves along y = x, drawn as told."""
    t = np.linspace(0.0, 1.0, count)
    return MovingDrawing(
        Drawing({"p": lambda q: (q[0], q[0]), "o": (0.0, 0.0), **drawing.pop("points", {})}, **drawing), t, t[None]
    )


def embedded(page):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL).group(1))


# --- drawings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "parameters"), IN_THE_PLANE, ids=[f"{n}{i}" for i, (n, _) in enumerate(IN_THE_PLANE)])
def test_rods_and_bodies_of_library_drawings_are_rigid(name, parameters):
    model, sol = solved(name, **parameters)
    scene = make_scene(sol, model, frames=80)
    parts = [*scene.drawing.rods, *scene.drawing.bodies]
    assert parts
    for part in parts:
        for a, b in pairwise(part):
            lengths = np.hypot(*(scene.places[a] - scene.places[b]))
            assert np.ptp(lengths) < 1e-6 * scene.extent, f"{a} to {b}"


def test_drawing_of_a_compiled_model_is_that_of_the_model():
    plain, compiled = (daedal.library.get("crank_slider", compiled=flag) for flag in (False, True))
    assert drawing_of(compiled).points.keys() == drawing_of(plain).points.keys()
    assert drawing_of(compiled.problem) is not None
    assert callable(drawing_of(daedal.library.get("rolling_disc", compiled=True).problem))


def test_rolling_disc_touches_the_plane_where_it_should():
    model, sol = solved("rolling_disc")
    scene = solution_scene(sol, drawing_of(model), frames=2001)
    disc = next(part for part in scene.parts if part.name == "disc")
    lowest = disc.position - 0.5 * np.array([[0.0], [0.0], [1.0]])
    np.testing.assert_allclose(lowest, scene.traces[0].points, atol=1e-12)
    velocity = np.gradient(disc.position, scene.t, axis=1)
    spin = np.einsum("tij,tkj->tik", np.gradient(disc.rotation, scene.t, axis=0), disc.rotation)
    at_contact = velocity - 0.5 * spin[:, :, 2].T  # the point of the disc that touches the plane is at rest
    np.testing.assert_allclose(at_contact[:, 1:-1], 0.0, atol=1e-4)


def test_functions_of_time_and_state_get_both():
    scene = line(points={"clock": lambda t, q: (t, 2.0 * q[0])}, text=lambda t, q: f"{t:.0f}")
    np.testing.assert_allclose(scene.places["clock"], [scene.t, 2.0 * scene.t])
    assert _changes(scene.captions) == [[0, "0"], [25, "1"]]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"rods": [("p", "nowhere")]}, "rods: there is no point 'nowhere'; the points are p, o"),
        ({"rods": ["po"]}, "rods: 'po' must name at least 2 points"),
        ({"bodies": [("p", "o")]}, "bodies: .* at least 3 points"),
        ({"masses": "p"}, "masses must be a list of names"),
        ({"wheels": [("p", 1.0)]}, r"must be \(name, radius, angle\)"),
        ({"wheels": [("p", -1.0, None)]}, "radius -1.0 of 'p' must be a positive number"),
        ({"wheels": [("p", 1.0, 0.5)]}, "angle of 'p' must be a function"),
        ({"ground": [[(0.0, 0.0, 0.0)]]}, "ground must be two numbers"),
        ({"points": {"bad": (0.0, math.nan)}}, r"points\['bad'\] must be finite"),
    ],
)
def test_wrong_drawings_are_refused_by_name(parts, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        line(**parts)


def test_a_point_that_is_not_finite_is_named_with_its_time():
    with pytest.raises(daedal.InvalidProblemError, match=r"points\['far'\] at t = 0.5.* must be finite"):
        _ = line(count=3, points={"far": lambda q: (math.inf if q[0] == 0.5 else 0.0, 0.0)}).places


def test_exceptions_of_the_user_arrive_unchanged(pendulum, tmp_path):
    drawing = Drawing({"p": lambda q: 1 / 0})
    with pytest.raises(ZeroDivisionError):
        pendulum.animate(tmp_path / "a.html", drawing)
    assert not list(tmp_path.iterdir())


# --- what is drawn, and what is refused -------------------------------------------------------------------------------


def test_mechanisms_of_the_library_need_no_drawing(tmp_path):
    _, sol = solved("crank_slider", t1=2.0)
    page = sol.animate(tmp_path / "deep" / "crank.html", title="Crank").read_text(encoding="utf-8")
    assert len(embedded(page)["rods"][0]) == 3 and "<h1>Crank</h1>" in page


def test_coordinates_called_x_and_y_are_shown_as_points(tmp_path):
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -1.0, 0.0, 0.0], n_q=4, names=["x1", "y1", "x2", "y2"])
    sol = daedal.solve(system, (0.0, 1.0), (np.zeros(4), np.ones(4)))
    assert list(make_scene(sol).drawing.points) == ["(x1, y1)", "(x2, y2)"]


@pytest.mark.parametrize("name", ["robertson", "jay_index2", "relay_control"])
def test_what_is_no_mechanism_is_refused_with_what_to_give(name, tmp_path):
    model, sol = solved(name)
    for drawing in (None, model):
        with pytest.raises(daedal.InvalidProblemError, match=r"whose coordinates are .*Drawing\(points="):
            sol.animate(tmp_path / "a.html", drawing)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "a.mp4"}, r"must end in .html or .gif"),
        ({"t_span": (5.0, 20.0)}, r"must lie in the interval of the solution, \[0, 10\]"),
        ({"t_span": 3.0}, "t_span=3.0 must be two numbers"),
        ({"frames": 1}, "frames=1 must be an integer, 2 or more"),
        ({"seconds": 0.0}, "seconds=0.0 must be a positive number"),
        ({"drawing": {"points": {}}}, "drawing is a dict; pass daedal.viz.Drawing"),
    ],
)
def test_wrong_options_are_refused(pendulum, tmp_path, options, message):
    path = tmp_path / options.pop("path", "a.html")
    with pytest.raises(daedal.InvalidProblemError, match=message):
        pendulum.animate(path, **{"drawing": PENDULUM, **options})


def test_second_order_first_order_and_hybrid_solutions_are_animated(tmp_path):
    for name in ("particle_on_circle", "pendulum", "bouncing_ball"):
        model, sol = solved(name)
        data = embedded(sol.animate(tmp_path / f"{name}.html", model).read_text(encoding="utf-8"))
        assert any(len(row) > 1 for row in data["points"][-1] + data["points"][0])
    assert [text for _, text in data["text"]] == ["mode: free", "mode: floor"]


def test_stored_points_serve_without_dense_output(pendulum):
    model = daedal.library.planar_pendulum()
    times = np.linspace(0.0, 10.0, 401)
    sol = daedal.solve(
        model.problem, model.t_span, model.initial, t_eval=times, dense_output=False, rtol=1e-8, atol=1e-8
    )
    coarse, fine = (make_scene(s, PENDULUM, frames=100).places["bob"] for s in (sol, pendulum))
    np.testing.assert_allclose(coarse, fine, atol=1e-3)


def test_what_a_failed_run_computed_can_be_seen(tmp_path):
    model = daedal.library.crank_slider(l1=1.0, l2=1.0, rate=10.0)
    with pytest.raises(daedal.IntegrationError) as failure:
        daedal.solve(model.problem, model.t_span, model.initial, **{**model.options, "method": "dassl"})
    assert failure.value.solution.animate(tmp_path / "a.html").stat().st_size > 1000


# --- data and pages ---------------------------------------------------------------------------------------------------


def test_the_page_holds_the_positions_to_a_pixel(pendulum):
    scene = make_scene(pendulum, PENDULUM)
    data = scene_data(scene, 10.0)
    left, right, _, top = scene.window(0.55, 0.75)
    scale = data["size"][0] / (right - left)
    for row, place in zip(data["points"], scene.places.values()):
        x, y = (np.broadcast_to(np.cumsum(values), scene.t.shape) for values in row)
        np.testing.assert_allclose(x / scale + left, place[0], atol=1.1 / scale)
        np.testing.assert_allclose(top - y / scale, place[1], atol=1.1 / scale)
    assert data["frames"] == scene.t.size and scene.longest_move <= 0.025


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=50))
def test_differences_lose_nothing(values):
    rows = np.cumsum(_differences(np.array(values)))
    assert rows.tolist() == values or (rows.size == 1 and set(values) == {int(rows[0])})


@given(st.text(max_size=40), st.text(max_size=40))
@settings(max_examples=60, deadline=None)
def test_no_text_breaks_out_of_a_page(title, caption):
    page = player_page(line(count=4, text=caption), 5.0, title + "</script><b>")
    assert embedded(page)["text"] == [[0, caption]]
    assert page.count("</script>") == 2 and "<b>" not in page


def test_pages_ask_for_nothing_from_outside(pendulum, tmp_path):
    page = pendulum.animate(tmp_path / "a.html", PENDULUM).read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(?:script|img|link|iframe)[^>]+(?:src|href)=\"(?!data:)", page)


@pytest.mark.slow
@pytest.mark.parametrize("part", sampled(range(4), 4))
def test_pages_of_all_mechanisms_are_small(tmp_path, part):
    for name in daedal.library.names()[part::4]:
        model = daedal.library.get(name)
        if drawing_of(model) is not None:
            sol = solved(name)[1]
            largest = LARGEST_PAGE_IN_SPACE if callable(drawing_of(model)) else LARGEST_PAGE
            assert sol.animate(tmp_path / f"{name}.html", model).stat().st_size < largest, name


def test_gif_has_the_frames_and_they_differ(pendulum, tmp_path):
    from PIL import Image, ImageChops

    path = pendulum.animate(tmp_path / "a.gif", PENDULUM, t_span=(0.0, 2.0), frames=6, title="Pendulum")
    with Image.open(path) as picture:
        assert picture.n_frames == 6
        first = picture.convert("RGB")
        picture.seek(5)
        assert ImageChops.difference(first, picture.convert("RGB")).getbbox() is not None


# --- equations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", daedal.library.names())
def test_equations_of_the_library_are_set(name):
    text = equation_html(daedal.library.get(name).equations)
    assert "<code>" not in text and "<math>" in text
    ElementTree.fromstring(f"<div>{text}</div>")


def test_mathml_of_a_fraction_with_single_digits_and_primes():
    found = equation_html(r"\tfrac12 x_1'' = \text{so be it}")
    assert "<mn>1</mn><mn>2</mn>" in found and "<mtext>so\u00a0be\u00a0it</mtext>" in found
    assert '<msubsup><mi>x</mi><mn>1</mn><mo class="prime">′′</mo></msubsup>' in found


@given(st.text(alphabet=r"\{}^_&'frac12x+ begindpmatrix", max_size=30))
@settings(max_examples=200, deadline=None)
def test_any_latex_gives_well_formed_html(latex):
    assert ElementTree.fromstring(f"<div>{equation_html(latex)}</div>").tag == "div"
