"""The pages in a real browser: they load without complaint, move, obey their controls and fit a phone."""

import pytest

import daedal
from browser import Browser, find_chromium
from daedal.viz.gallery import build_gallery

CHROMIUM = find_chromium()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found; install it or name it in the variable CHROMIUM"),
]
SHOWN = ["seven_body", "bouncing_ball", "rolling_disc", "robertson", "tppc2"]
PLAYER = "document.querySelector('#seven_body .daedal-player').player"
ROD = "document.querySelector('#seven_body .rod').getAttribute('points')"


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    return build_gallery(tmp_path_factory.mktemp("gallery"), SHOWN).path


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    browser = Browser(CHROMIUM, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def page(chromium, gallery):
    """The gallery, at rest; afterwards nothing may have been complained about."""
    chromium.complaints.clear()
    chromium.open(gallery, calm=True)
    yield chromium
    assert chromium.complaints == []


def test_the_gallery_moves_when_it_is_seen(chromium, gallery):
    chromium.complaints.clear()
    chromium.open(gallery)
    before = chromium.evaluate(ROD)
    chromium.wait_for(f"{PLAYER}.frame > 0.2 * {PLAYER}.last")
    assert chromium.evaluate(ROD) != before
    chromium.click("#all-motion")
    assert not chromium.evaluate("daedalPage.players.some(p => p.playing)")
    assert chromium.complaints == []


def test_nothing_moves_by_itself_for_readers_who_ask_for_calm(page):
    assert page.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches")
    assert page.evaluate("daedalPage.players.length") == 3
    assert not page.evaluate("daedalPage.players.some(p => p.playing)")


def test_play_and_pause(page):
    before = page.evaluate(ROD)
    page.click("#seven_body .controls button")
    page.wait_for(f"{PLAYER}.frame > 0.2 * {PLAYER}.last")
    page.click("#seven_body .controls button")
    assert page.evaluate(ROD) != before and not page.evaluate(f"{PLAYER}.playing")
    frame = page.evaluate(f"{PLAYER}.frame")
    page.evaluate("new Promise(done => setTimeout(done, 200))")
    assert page.evaluate(f"{PLAYER}.frame") == frame


def test_the_slider_moves_the_mechanism_and_the_clock(page):
    before, clock = page.evaluate(ROD), "document.querySelector('#seven_body output').textContent"
    assert page.evaluate(clock) == "t = 0.0000"
    page.click("#seven_body input[type=range]")  # in the middle
    middle = page.evaluate(f"{PLAYER}.frame / {PLAYER}.last")
    assert 0.4 < middle < 0.6 and page.evaluate(ROD) != before
    assert page.evaluate(clock) == f"t = {0.03 * middle:.4f}"
    page.press("ArrowRight")
    assert page.evaluate(f"{PLAYER}.frame / {PLAYER}.last") > middle


def test_keys_work_on_the_picture(page):
    page.evaluate("document.querySelector('#seven_body .daedal-player svg').focus()")
    page.press("End")
    assert page.evaluate(f"{PLAYER}.frame === {PLAYER}.last")
    page.press("Home")
    page.press(" ")
    page.wait_for(f"{PLAYER}.frame > 2")
    page.press(" ")
    assert not page.evaluate(f"{PLAYER}.playing")


def test_speed_makes_it_faster(page):
    step = (
        f"(() => {{ const p = {PLAYER}; p.playing = true; p.frame = 0; p.before = 0; p.tick(100); "
        "p.playing = false; return p.frame; })()"
    )
    slow = page.evaluate(step)
    page.evaluate(
        "(() => { const s = document.querySelector('#seven_body select'); s.value = '4'; "
        "s.dispatchEvent(new Event('change')); })()"
    )
    assert page.evaluate(step) == pytest.approx(4.0 * slow)


def test_search_and_filters(page):
    shown = "[...document.querySelectorAll('.card')].filter(c => !c.hidden).map(c => c.id).sort().join(' ')"
    assert page.evaluate(shown) == " ".join(sorted(SHOWN))
    page.click("[data-tag='mechanism']")
    assert page.evaluate(shown) == "rolling_disc seven_body"
    page.click("[data-tag='']")
    page.evaluate("search.value = 'ball floor'; search.dispatchEvent(new Event('input'))")
    assert page.evaluate(shown) == ""
    page.evaluate("search.value = 'Ball'; search.dispatchEvent(new Event('input'))")
    assert page.evaluate(shown) == "bouncing_ball"
    assert page.evaluate("count.textContent") == "1 of 5 problems"


def test_copy_says_that_it_copied(page):
    page.click("#robertson .copy")
    page.wait_for("document.querySelector('#robertson .copy').textContent === 'Copied'")


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_width_needs_horizontal_scrolling(page, gallery, width):
    page.open(gallery, width, 844, scale=2.0, calm=True)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    inside = "[...document.querySelectorAll('.card, .controls, svg, pre')].every(e => "
    assert page.evaluate(inside + f"{{ const r = e.getBoundingClientRect(); return r.right <= {width} + 0.5; }})")


def test_a_page_of_its_own_plays_too(chromium, tmp_path):
    model = daedal.library.crank_slider(t1=3.0)
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    path = sol.animate(tmp_path / "crank.html", title=model.title)
    chromium.complaints.clear()
    chromium.open(path, 390, 844, scale=3.0)
    chromium.wait_for("daedalPage.players[0].frame > 3")
    assert chromium.evaluate("document.documentElement.scrollWidth") <= 390
    assert chromium.evaluate("document.querySelector('h1').textContent") == model.title
    assert chromium.complaints == []


def test_pages_follow_the_colour_scheme(chromium, gallery):
    colours = []
    for scheme in ("light", "dark"):
        chromium.open(gallery, calm=True)
        chromium.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        colours.append(chromium.evaluate("getComputedStyle(document.body).color"))
    assert colours[0] != colours[1]
