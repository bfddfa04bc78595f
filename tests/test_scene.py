"""Scenes in space: data are checked by name, triangles are closed and rightly turned, pages hold what was given."""

import base64
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import daedal
from daedal.viz import (
    Arrow,
    Box,
    Cylinder,
    Disc,
    Ellipsoid,
    Gear,
    Line,
    Mesh,
    Part,
    Plane,
    Plot,
    Rod,
    RodLine,
    Scene,
    Sphere,
    SpringLine,
    Trace,
    tessellation,
)
from daedal.viz.scene import backdrop, camera_axes, eye_direction, first_view
from daedal.viz.scene_items import items
from daedal.viz.scene_page import FEWEST, LARGEST, frame_times, page_data
from daedal.viz.scene_still import make_camera, picture, visible

T = np.linspace(0.0, 5.0, 41)
TURNS = Rotation.from_rotvec(np.outer(T, [0.3, 0.2, 1.0])).as_matrix()
IN_PLANE = Rotation.from_rotvec(np.outer(T, [0.0, 1.0, 0.0])).as_matrix()
ALONG = np.array([T, 0.0 * T, 0.0 * T])
LARGEST_PAGE = 1_000_000


def scene(*parts, t=T, **others):
    return Scene(t, parts or (Part("body", [Box((1.0, 0.5, 0.2))], ALONG, TURNS),), **others)


def full_scene(**others):
    """One of everything."""
    return scene(
        Part("ground", [Plane(4.0), Cylinder(0.1, 0.4, "x")]),
        Part("body", [Box((1.0, 0.5, 0.2)), Disc(0.3, 0.1)], ALONG, TURNS, frame=True),
        SpringLine("spring", (0.0, 0.0, 1.0), ALONG),
        RodLine("link", ALONG, ALONG + 0.4),
        Line("cable", np.array([ALONG, ALONG + 1.0])),
        traces=[Trace("corner", ALONG + 0.5)],
        arrows=[Arrow("pull", ALONG, np.array([0.0 * T, 0.0 * T, np.sin(T)]))],
        plots=[Plot("height", {"z": np.sin(T)}, "m")],
        title="One <of> everything",
        **others,
    )


def embedded(page):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL).group(1))


def decoded(text, width):
    return np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(-1, width)


# --- shapes -----------------------------------------------------------------------------------------------------------

SOLIDS = {
    "cube": (tessellation.cube(), 1.0),
    "cylinder": (tessellation.cylinder(400), np.pi),
    "sphere": (tessellation.sphere(101, 200), 4.0 / 3.0 * np.pi),
    "cone": (tessellation.cone(), np.pi / 3.0),
    "ring": (tessellation.ring(0.5), 0.75 * np.pi),
    "gear": (tessellation.ring(0.5, 40), 0.75 * np.pi),
}


@pytest.mark.parametrize("name", SOLIDS)
def test_solids_are_closed_and_turned_outwards(name):
    """The divergence theorem gives the volume, with the sign of the normals; open surfaces have an area vector."""
    triangles, volume = SOLIDS[name]
    a, b, c = (triangles.vertices[triangles.faces[:, k]] for k in range(3))
    assert np.sum(np.cross(a, b) * c) / 6.0 == pytest.approx(volume, rel=0.03)
    np.testing.assert_allclose(np.cross(b - a, c - a).sum(axis=0), 0.0, atol=1e-12)


def test_a_coil_ends_on_its_axis_and_has_its_turns():
    coil = tessellation.coil(7, 10.0)
    z = coil.vertices[:, 2]
    assert -0.05 < z.min() <= 0.0 and 1.0 <= z.max() < 1.05
    angle = np.unwrap(np.arctan2(*coil.vertices.reshape(-1, 6, 3)[2:-2].mean(axis=1).T[1::-1]))
    assert abs(angle[-1] - angle[0]) == pytest.approx(14.0 * np.pi)


@pytest.mark.parametrize(
    "shape",
    [
        Box((1.0, 2.0, 3.0), (0.1, 0.2, 0.3), TURNS[7]),
        Cylinder(0.5, 2.0, (1.0, 1.0, 0.0), (0.0, 1.0, 0.0)),
        Sphere(0.7, (1.0, 0.0, 0.0)),
        Ellipsoid((1.0, 2.0, 0.5), rotation=TURNS[3]),
        Disc(0.5, 0.1, "y"),
        Gear(0.5, 18, 0.1, "x", phase=0.2),
        Mesh([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0, 1, 2]]),
    ],
    ids=lambda shape: type(shape).__name__,
)
def test_corners_hold_the_triangles(shape):
    points = np.concatenate(
        [piece.triangles.vertices @ piece.matrix[:, :3].T + piece.matrix[:, 3] for piece in shape.pieces(1.0)]
    )
    low, high = shape.corners.min(axis=0), shape.corners.max(axis=0)
    slack = 0.11  # a hub stands out of its wheel
    assert np.all(points >= low - slack * (high - low) - 1e-9) and np.all(points <= high + slack * (high - low) + 1e-9)


WRONG = {
    "shapes": [
        (lambda: Box((1.0, -1.0, 1.0)), "Box: size=.* must be positive"),
        (lambda: Box((1.0, 1.0)), "Box: size=.* must be three finite numbers"),
        (lambda: Box((1.0, 1.0, 1.0), rotation=np.diag([1.0, 1.0, -1.0])), "Box: rotation .* determinant is -1"),
        (lambda: Sphere(0.0), "Sphere: radius=0.0 must be positive"),
        (lambda: Sphere("big"), "Sphere: radius='big' must be positive"),
        (lambda: Cylinder(1.0, 1.0, "w"), "Cylinder: axis='w' must be 'x', 'y', 'z' or a vector"),
        (lambda: Cylinder(1.0, 1.0, (0.0, 0.0, 0.0)), "Cylinder: axis=.* must not be the zero vector"),
        (lambda: Rod((1, 2, 3), (1, 2, 3)), "Rod: start and end are equal"),
        (lambda: Gear(1.0, 3, 0.1), "Gear: teeth=3 must be an integer, 6 or more"),
        (lambda: Mesh([[0.0, 0.0, 0.0]], [[0, 0, 1]]), "Mesh: faces refer to vertices 0 to 1, but the last is 0"),
        (lambda: Mesh([[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]]), "Mesh: faces must be integers"),
    ],
    "members": [
        (lambda: Part("arm", ["box"]), "part 'arm': 'box' is not a shape"),
        (lambda: Part("arm", position=ALONG.T), r"part 'arm': position has shape \(41, 3\), .*transpose it"),
        (lambda: Part("arm", position=ALONG * np.nan), "part 'arm': position is not finite"),
        (lambda: Part("arm", rotation=2.0 * TURNS), "part 'arm': rotation number 0 .* not orthonormal"),
        (lambda: Part("arm", rotation=TURNS[:, :2]), r"part 'arm': rotation must be a matrix \(3, 3\)"),
        (lambda: Part("arm", color="bluish"), "part 'arm': color='bluish' is not a Matplotlib colour"),
        (lambda: SpringLine("s", ALONG, ALONG, coils=0), "spring 's': coils=0 must be a positive integer"),
        (lambda: SpringLine("s", ALONG, ALONG, radius=-1.0), "spring 's': radius=-1.0 must be a positive"),
        (lambda: Line("rope", ALONG), r"line 'rope': points has shape \(3, 41\)"),
        (lambda: Plot("p", {"x": TURNS}), "plot 'p': 'x' has shape"),
        (lambda: Plot("p", [1.0]), "plot 'p': series must be a dict"),
    ],
    "scenes": [
        (lambda: scene(Part("arm", position=ALONG[:, 1:])), "part 'arm': position is given at 40 times, .* has 41"),
        (lambda: scene(Part("arm", rotation=TURNS[1:])), "part 'arm': rotation is given at 40 times"),
        (lambda: scene(plots=[Plot("p", {"x": T[1:]})]), "plot 'p': 'x' is given at 40 times"),
        (lambda: scene(Part("arm"), Part("arm")), "part 'arm' occurs 2 times"),
        (lambda: scene(Trace("arm", ALONG)), "parts: .* is not a Part or RodLine or SpringLine or Line"),
        (lambda: Scene(T, []), "parts is empty"),
        (lambda: scene(t=T[::-1]), r"t must be increasing, but t\[0\] = 5 and t\[1\] = 4.875"),
        (lambda: scene(up="x"), "up='x' must be 'y' or 'z'"),
        (lambda: scene().save("scene.png"), "must end in .html"),
        (lambda: scene().gif("scene.html"), "must end in .gif"),
        (lambda: scene().still(7.0), "times=.* between 0 and 5"),
        (lambda: scene().still(1.0, view="below"), "view='below' is not known; choose one of space, front"),
        (lambda: scene().html(seconds=-1.0), "seconds=-1.0 must be a positive number"),
    ],
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_named(kind):
    for make, message in WRONG[kind]:
        with pytest.raises(daedal.InvalidProblemError, match=message):
            make()


# --- motion -----------------------------------------------------------------------------------------------------------


def test_bounds_hold_parts_that_turn_and_not_planes():
    low, high = full_scene().bounds
    np.testing.assert_allclose(high, [6.0, 1.0, 1.0], atol=1e-12)  # the end of the cable
    assert np.all(low > -0.8)  # the body turns about the origin at first; the plane reaches from -2 to 2


def test_motion_in_a_plane_is_seen_straight_on():
    flat = Part("body", [Box((1.0, 0.5, 0.2))], ALONG, IN_PLANE)
    assert first_view(scene(flat)) == "front"
    assert first_view(scene(flat, up="y")) == "top"
    assert first_view(scene()) == "space"
    about_z = Part("body", [Box((1.0, 0.5, 0.2))], ALONG, Rotation.from_rotvec(np.outer(T, [0, 0, 1])).as_matrix())
    assert first_view(scene(about_z, up="y")) == "front"


@pytest.mark.parametrize("up", ["y", "z"])
@pytest.mark.parametrize("view", ["space", "front", "side", "top", (30.0, 20.0)])
def test_axes_of_the_camera_are_a_rotation_with_up_upwards(up, view):
    one = scene(up=up)
    axes = camera_axes(one, eye_direction(one, view))
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    assert axes[1, "xyz".index(up)] >= 0.0


@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=5, unique=True))
@settings(max_examples=20, deadline=None)
def test_scenes_between_their_times(times):
    new = np.array(sorted(times))
    part = scene(Part("body", (), ALONG, TURNS)).resampled(new).parts[0]
    np.testing.assert_allclose(part.position[0], new, atol=1e-12)
    exact = Rotation.from_rotvec(np.outer(new, [0.3, 0.2, 1.0])).as_matrix()  # one axis, so slerp is exact
    np.testing.assert_allclose(part.rotation, exact, atol=1e-9)


def test_springs_and_arrows_reach_where_they_should():
    one = full_scene()
    found = {item.name: item for item in items(one) if item.kind in ("spring", "arrow")}
    for name, end in (("spring", ALONG.T), ("pull", None)):
        item = found[name]
        tips = item.position + item.stretch[:, None] * Rotation.from_quat(item.quaternion).apply([0.0, 0.0, 1.0])
        if end is not None:
            np.testing.assert_allclose(tips, end, atol=1e-9)
        else:
            np.testing.assert_allclose(np.sign(tips[1:, 2]), np.sign(np.sin(T[1:])))
    np.testing.assert_allclose(found["pull"].value, np.abs(np.sin(T)))


def test_a_level_plane_at_rest_is_the_floor():
    ball = Part("ball", [Sphere(0.3)], ALONG + [[0.0], [0.0], [1.0]], TURNS)
    for plane, level in ((Plane(4.0, "z", (0.0, 0.0, -0.5)), 0.5), (Plane(4.0, "x"), None)):
        one = scene(ball, Part("ground", [plane], (0.0, 0.0, 1.0)))
        drawn = next(item for item in items(one) if item.name == "ground").pieces
        assert len(drawn) == (0 if level else 1)
        assert backdrop(one).point[2] == pytest.approx(level if level else 0.7 - 0.03 * one.size, abs=0.01)


def test_solutions_are_drawn_in_space_by_a_function(tmp_path):
    fall = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, 0.0, -1.0], n_q=3)
    sol = daedal.solve(fall, (0.0, 2.0), ([0.0, 0.0, 2.0], [1.0, 0.0, 0.0]))
    path = sol.animate(tmp_path / "fall.html", lambda t, q: Scene(t, [Part("ball", [Sphere(0.1)], q)]), title="Fall")
    page = path.read_text(encoding="utf-8")
    data = embedded(page)
    places = decoded(data["arrays"][data["items"][0]["p"]], 3)
    np.testing.assert_allclose(places[[0, -1]], [[0.0, 0.0, 2.0], [2.0, 0.0, 0.0]], atol=1e-6)
    assert "<h1>Fall</h1>" in page
    with pytest.raises(daedal.InvalidProblemError, match=r"returned ndarray; .* must be a function \(t, q\)"):
        sol.animate(path, lambda t, q: q)


def test_an_arrow_ends_at_the_length_of_its_vector():
    vector = np.array([0.0 * T, 0.0 * T, 0.01 + T])
    one = scene(Part("body", [Sphere(1.0)]), arrows=[Arrow("f", (0.0, 0.0, 0.0), vector)])
    (arrow,) = [item for item in items(one) if item.kind == "arrow"]
    reach = []
    for k in range(T.size):
        points = [p.triangles.vertices @ m[:, :3].T + m[:, 3] for p, m in arrow.matrices(k, one.size)]
        reach.append(np.concatenate(points)[:, 2].max())
    np.testing.assert_allclose(np.array(reach) / reach[-1], vector[2] / vector[2, -1], rtol=1e-9)


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_is_one_small_file_without_addresses(tmp_path):
    path = full_scene().save(tmp_path / "folder" / "scene.html")
    page = path.read_text(encoding="utf-8")
    assert path.stat().st_size < LARGEST_PAGE
    assert "<h1>One &lt;of&gt; everything</h1>" in page and "One <of>" not in page
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert "three.js authors" in page


def test_the_page_holds_the_motion():
    data = embedded(full_scene().html())
    assert data["frames"] == T.size and data["view"] == "space" and data["framesOn"]
    body = next(item for item in data["items"] if item["name"] == "body" and item["kind"] == "part")
    np.testing.assert_allclose(decoded(data["arrays"][body["p"]], 3), ALONG.T, atol=1e-6)
    turned = Rotation.from_quat(decoded(data["arrays"][body["q"]], 4)).as_matrix()
    np.testing.assert_allclose(turned, TURNS, atol=1e-6)
    ground = next(item for item in data["items"] if item["name"] == "ground")
    assert decoded(data["arrays"][ground["p"]], 3).shape == (1, 3)
    assert max(piece[0] for look in data["looks"] for piece in look) < len(data["meshes"])
    frame = next(item for item in data["items"] if item["kind"] == "frame")
    assert frame["p"] == body["p"]  # written once


def test_uneven_times_become_even_and_large_scenes_have_fewer_frames():
    uneven = T**2 / 5.0
    even = frame_times(scene(t=uneven), 5.0)
    assert np.ptp(np.diff(even)) < 1e-12 and even.size == 300
    t = np.linspace(0.0, 5.0, 3001)
    bodies = [Part(f"link {k}", (), np.array([t, t, t + k])) for k in range(300)]
    times = frame_times(Scene(t, bodies), 5.0)
    assert FEWEST <= times.size <= max(FEWEST, LARGEST // (7 * 300)) and times[[0, -1]].tolist() == [0.0, 5.0]


def test_a_notebook_shows_the_page_in_a_frame():
    shown = full_scene()._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and shown.count("<") == 2
    assert page_data(scene())["frames"] == T.size


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_of_two_triangles_the_nearer_one_is_seen():
    flat = np.array([[1.0, 1.0, 0.0], [9.0, 1.0, 0.0], [1.0, 9.0, 0.0]])
    corners = np.array([flat + [0, 0, 2.0], flat + [0, 0, 1.0], flat + [2.0, 0, 3.0]])
    points, seen, weights = visible(corners, 12, 12)
    owner = dict(zip(points.tolist(), seen.tolist()))
    assert owner[2 * 12 + 1] == 0 and owner[2 * 12 + 4] == 2 and 1 not in seen
    places = np.einsum("nk,nkj->nj", weights, corners[seen])
    np.testing.assert_allclose(places[:, 0], points % 12 + 0.5, atol=1e-9)
    np.testing.assert_allclose(places[:, 1], points // 12 + 0.5, atol=1e-9)


def test_a_picture_shows_a_ball_where_it_is():
    one = scene(Part("ball", [Sphere(0.3)], ALONG, color="#ff0000"), Part("post", [Box((0.1, 0.1, 0.1))]))
    eye = eye_direction(one, "front")
    for k in (10, 30):
        image = picture(one, k, eye, 60, 80)
        red = (image[:, :, 0] > 0.3) & (image[:, :, 1] < 0.7 * image[:, :, 0])
        rows, columns = np.nonzero(red)
        x, y, _ = make_camera(one, eye, 60, 80).project(ALONG[:, k][None])[0]
        assert abs(columns.mean() + 0.5 - x) < 0.7 and abs(rows.mean() + 0.5 - y) < 0.7


def test_stills_and_gif_are_written(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.setattr("daedal.viz.scene_still._DPI", 40)
    monkeypatch.setattr("daedal.viz.scene_still._GIF_WIDTH", 60)
    one = full_scene()
    figure = one.stills([0.0, 1.03], tmp_path / "a" / "stills.pdf", labels=True, view=(20.0, 30.0))
    assert [axes.get_title() for axes in figure.axes] == ["$t = 0$", "$t = 1.03$"]
    assert {text.get_text() for text in figure.axes[0].texts} == {"ground", "body"}
    assert (tmp_path / "a" / "stills.pdf").stat().st_size > 1000
    with Image.open(one.gif(tmp_path / "scene.gif", frames=3)) as gif:
        assert gif.n_frames == 3
    still = Scene([0.0], [Part("ball", [Sphere(1.0)])])
    assert len(still.still(0.0).axes) == 1
