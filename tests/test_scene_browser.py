"""Scenes in space in a real browser: they are drawn, turned, played and named, and say so where WebGL is missing."""

import re

import numpy as np
import pytest

from browser import Browser, find_chromium
from test_scene import ALONG, T, full_scene

CHROMIUM = find_chromium()
pytestmark = [
    pytest.mark.slow,  # a browser that draws without a graphics card
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found; install it or name it in the variable CHROMIUM"),
]
PLAYER = "daedalPage.players[0]"
# The picture as a sum over its points, drawn anew
SUM = (
    f"(() => {{ const p = {PLAYER}; p.renderNow(); "
    "const d = p.context.getImageData(0, 0, p.canvas.width, p.canvas.height).data; "
    "let n = 0; for (let k = 0; k < d.length; k += 4) n += d[k + 3] * (1 + d[k] + 2 * d[k + 1]); return n; })()"
)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    browser = Browser(CHROMIUM, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return full_scene().save(tmp_path_factory.mktemp("scene") / "scene.html")


@pytest.fixture
def page(chromium, path):
    """The scene, at rest; afterwards nothing may have been complained about."""
    chromium.complaints.clear()
    chromium.open(path, 900, 760, calm=True)
    yield chromium
    assert chromium.complaints == []


def middle(page, selector):
    return page.evaluate(
        f"(() => {{ const r = document.querySelector('{selector}').getBoundingClientRect(); "
        "return [r.x + r.width / 2, r.y + r.height / 2, r.width, r.height]; })()"
    )


def mouse(page, kind, x, y, buttons=0):
    button = "left" if kind != "mouseMoved" else "none"
    page.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=buttons, clickCount=1)


def test_time_moves_the_picture_and_buttons_change_it(page):
    first = page.evaluate(SUM)
    page.evaluate(f"{PLAYER}.show(20)")
    later = page.evaluate(SUM)
    assert first > 0 and later != first
    seen = {later}
    for name in ("traces", "arrows", "frames"):
        page.click(f"[data-show={name}]")
        seen.add(page.evaluate(SUM))
    assert len(seen) == 4
    page.click("[data-show=labels]")
    page.evaluate(f"{PLAYER}.renderNow()")
    shown = "[...document.querySelectorAll('.tag')].filter(t => !t.hidden).map(t => t.textContent).join()"
    assert page.evaluate(shown) == "ground,body"


def test_a_part_is_where_its_data_say_between_two_frames(page):
    page.evaluate(f"{PLAYER}.show(20.5)")
    body = f"{PLAYER}.items.find(i => i.name === 'body')"
    np.testing.assert_allclose(page.evaluate(f"{body}.place.toArray()"), 0.5 * (ALONG[:, 20] + ALONG[:, 21]), atol=1e-6)


def test_a_drag_turns_and_a_click_plays(page):
    before = page.evaluate(SUM)
    x, y, _, _ = middle(page, "canvas")
    mouse(page, "mousePressed", x, y, 1)
    for step in range(1, 6):
        mouse(page, "mouseMoved", x + 20 * step, y + 8 * step, 1)
    mouse(page, "mouseReleased", x + 100, y + 40)
    assert page.evaluate(SUM) != before and not page.evaluate(f"{PLAYER}.playing")
    page.click("canvas")
    page.wait_for(f"{PLAYER}.frame > 0.5")
    page.click("canvas")
    assert not page.evaluate(f"{PLAYER}.playing")


def test_views_are_straight_on(page):
    looks = {}
    for view in ("front", "top", "side"):
        page.evaluate(
            f"(() => {{ const s = document.querySelector('.choices select'); s.value = '{view}'; "
            "s.dispatchEvent(new Event('change')); })()"
        )
        looks[view] = page.evaluate(f"{PLAYER}.view.camera.getWorldDirection({PLAYER}.view.middle()).toArray()")
        assert page.evaluate(f"{PLAYER}.view.camera.isOrthographicCamera")
    np.testing.assert_allclose([looks["front"], looks["side"]], [[0, 1, 0], [-1, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(looks["top"], [0, 0, -1], atol=1e-3)


def test_plots_follow_the_time_and_set_it(page):
    x, y, width, _ = middle(page, ".curves svg")
    start, end = 84.0 / 600.0, 572.0 / 600.0
    mouse(page, "mousePressed", x + (0.5 * (start + end) - 0.5) * width, y, 1)
    mouse(page, "mouseReleased", x, y)
    half = 0.5 * (T.size - 1)
    assert page.evaluate(f"{PLAYER}.frame") == pytest.approx(half, abs=0.2)
    assert page.evaluate("document.querySelector('.curves output').textContent").startswith("z = 0.59")
    moved = page.evaluate("document.querySelector('.cursor').getAttribute('transform')")
    assert float(re.search(r"\((\S+) ", moved).group(1)) == pytest.approx(244.0, abs=2.0)


def test_what_the_mouse_points_at_is_named(page):
    place = page.evaluate(
        f"(() => {{ const p = {PLAYER}; p.renderNow(); const v = p.items.find(i => i.name === 'body').place.clone()"
        ".project(p.view.camera), r = p.canvas.getBoundingClientRect(); "
        "return [r.x + (v.x + 1) / 2 * r.width, r.y + (1 - v.y) / 2 * r.height]; })()"
    )
    mouse(page, "mouseMoved", *place)
    page.wait_for("!document.querySelector('.tip').hidden")
    assert page.evaluate("document.querySelector('.tip').textContent") in ("body", "ground")
    mouse(page, "mouseMoved", place[0], 3)
    page.wait_for("document.querySelector('.tip').hidden")


def test_a_phone_needs_no_horizontal_scrolling(page, path):
    page.open(path, 360, 740, scale=2.0, calm=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate(SUM) > 0


def test_it_runs_in_the_frame_of_a_notebook(page, tmp_path):
    file = tmp_path / "notebook.html"
    file.write_text(f"<!DOCTYPE html><title>notebook</title>{full_scene()._repr_html_()}", encoding="utf-8")
    page.open(file, 900, 760, calm=True)
    inside = SUM.replace("daedalPage", "frames[0].daedalPage")
    assert page.evaluate(inside) > 0
    assert page.evaluate("frames[0].document.querySelector('h1').textContent") == full_scene().title


def test_without_webgl_the_page_says_so_and_still_plays(page, path):
    hidden = page.send(
        "Page.addScriptToEvaluateOnNewDocument",
        source="HTMLCanvasElement.prototype.getContext = function () { return null; };",
    )["identifier"]
    page.open(path, 900, 760, calm=True)
    page.send("Page.removeScriptToEvaluateOnNewDocument", identifier=hidden)
    assert "requires WebGL" in page.evaluate("document.querySelector('.message').textContent")
    page.evaluate(f"{PLAYER}.show(20)")
    assert page.evaluate("document.querySelector('.curves output').textContent").startswith("z = 0.59")
