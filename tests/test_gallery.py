"""The gallery: a card for each problem, whatever happens to some of them."""

import contextlib
import inspect
import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import daedal
from daedal.cli import app
from daedal.viz import gallery
from daedal.viz.gallery import build_gallery, code, make_card, suitable_methods
from daedal.viz.svg_plot import _Axis, plot_svg
from library_models import names_of
from tiers import sampled

FEW = ["planar_pendulum", "robertson", "switched_ramp"]


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return build_gallery(tmp_path_factory.mktemp("gallery"), FEW)


def test_each_problem_has_a_card_with_equation_picture_and_code(few):
    page = few.path.read_text(encoding="utf-8")
    cards = re.findall(r'<article class="card" id="(\w+)".*?</article>', page, re.DOTALL)
    assert sorted(cards) == sorted(FEW) and not few.failed
    for card in few.cards:
        assert "<math>" in card.html and "Suitable methods" in card.html
        assert f"daedal.library.{card.name}(" in card.html
        assert card.moves == ("daedal-player" in card.html) == ("<polyline" not in card.html)


def test_the_page_asks_for_nothing_from_outside(few):
    page = few.path.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\s\"'<)]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert "<!--" not in page


def test_a_problem_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
    real = gallery._solve

    def solve(model):
        if model.name == "robertson":
            raise RuntimeError("it <broke>")
        return real(model)

    monkeypatch.setattr(gallery, "_solve", solve)
    made = build_gallery(tmp_path, FEW)
    assert [(card.name, card.failure) for card in made.failed] == [("robertson", "RuntimeError: it <broke>")]
    page = made.path.read_text(encoding="utf-8")
    assert "it &lt;broke&gt;" in page and page.count('<article class="card"') == 3


def test_a_run_that_stops_early_is_shown_as_far_as_it_came(monkeypatch):
    real = daedal.library.get

    def get(name, **parameters):  # in the dead centre, where DASSL stops
        model = real(name, l1=1.0, l2=1.0, rate=10.0)
        return replace(model, options={**model.options, "method": "dassl"})

    monkeypatch.setattr(daedal.library, "get", get)
    card = make_card("crank_slider")
    assert card.failure.startswith("IntegrationError") and card.moves


def test_a_factory_that_fails_has_a_card(monkeypatch):
    def get(name, **parameters):
        raise ValueError("no data")

    monkeypatch.setattr(daedal.library, "get", get)
    assert make_card("truck").failure == "ValueError: no data"


def test_unknown_names_are_refused_with_a_hint(tmp_path):
    with pytest.raises(daedal.InvalidProblemError, match="did you mean 'robertson'"):
        build_gallery(tmp_path, ["robertsen"])
    with pytest.raises(daedal.InvalidProblemError, match="jobs=0 must be a positive integer"):
        build_gallery(tmp_path, jobs=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_process_that_dies_costs_one_card(tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "make_card", _die_on_robertson)
    made = build_gallery(tmp_path, FEW, jobs=2)
    assert [card.name for card in made.failed] == ["robertson"]
    assert {card.name for card in made.cards} == set(FEW)


def _die_on_robertson(name):
    import os

    if name == "robertson":
        os._exit(1)
    return make_card(name)


@pytest.mark.parametrize("name", ["pendulum", "body_on_circle", "robertson"])
def test_the_code_of_a_card_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = daedal.library.get(name, **gallery.SHOWN.get(name, {}))
    exec(compile(code(model, moves=name != "robertson"), name, "exec"), {})
    assert [path.stem for path in tmp_path.iterdir()] == [name]


def test_the_card_of_a_problem_that_is_not_to_be_solved_says_so():
    card = gallery.make_card("unsolvable_pencil")
    assert not card.failure and "the equations do not determine the solution" in card.html and "no index" in card.html


def test_the_lists_of_the_gallery_name_problems_and_parameters_that_exist():
    names = set(daedal.library.names())
    assert {*gallery.SHOWN, *gallery.SPANS, *gallery.PIONEERS, *gallery.LAST, *gallery.FIRST} <= names
    for name, parameters in gallery.SHOWN.items():
        assert parameters.keys() <= inspect.signature(getattr(daedal.library, name)).parameters.keys()


NAMED = {"Modified BDF": "modified_bdf", "ollocation": "collocation", "BDF": "dassl"} | {
    name: name.lower() for name in ("DOPRI5", "PHEM56", "HEDOP5", "DASSL")
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sampled(names_of(lambda model: model.solvable), 4))
def test_the_methods_that_a_card_offers_take_the_problem(name):
    model = daedal.library.get(name)
    methods = [NAMED[word] for word in re.findall("|".join(NAMED), suitable_methods(model))]
    assert methods
    if isinstance(model.problem, daedal.hybrid.HybridProblem):
        methods = []  # they are those of its modes
    options = {key: value for key, value in model.options.items() if key in ("correct_initial", "formulation")}
    for method in methods:
        with contextlib.suppress(daedal.IntegrationError):  # two steps are seldom enough
            daedal.solve(model.problem, model.t_span, model.initial, method=method, max_steps=2, **options)


def test_the_command_builds_the_page_and_says_where(tmp_path):
    result = CliRunner().invoke(app, ["gallery", "--out", str(tmp_path / "g"), "--only", "switched_ramp"])
    assert result.exit_code == 0 and result.output.startswith("1 problems, 0 of them with motion, 0 failed")
    assert result.output.rstrip().endswith(str(tmp_path / "g" / "index.html"))
    assert CliRunner().invoke(app, ["gallery", "--only", "nothing"]).exit_code == 1


@pytest.mark.slow
def test_the_whole_gallery_is_built_without_a_failure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["gallery"])
    assert result.exit_code == 0, result.output
    assert re.match(rf"{len(daedal.library.names())} problems, \d+ of them with motion, 0 failed", result.output)
    page = (tmp_path / "out" / "gallery" / "index.html").read_text(encoding="utf-8")
    assert set(re.findall(r'<article class="card" id="(\w+)"', page)) == set(daedal.library.names())
    assert len(page.encode()) < 6_500_000


# --- the small plots --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [(0.0, 1.0), (-3e-7, 2e9), (1.0 - 5e-7, 1.0), (5.0, 5.0), (1e300, 2e300)])
def test_ticks_are_few_distinct_and_inside(interval):
    axis = _Axis(np.array(interval), 0.0, 100.0)
    ticks, _ = axis.ticks(4)
    places, labels = [place for place, _ in ticks], [text for _, text in ticks]
    assert 1 <= len(ticks) <= 6 and places == sorted(places) and len(set(labels)) == len(labels)
    assert -1e-6 <= places[0] and places[-1] <= 100.0 + 1e-6
    assert max(map(len, labels)) <= 9


def test_logarithmic_ticks_are_decades():
    ticks, _ = _Axis(np.array([1e-3, 1e3]), 0.0, 60.0, log=True).ticks(7)
    assert ticks[0] == (0.0, "10⁻³") and ticks[3] == (30.0, "10⁰") and len(ticks) == 7


def test_a_plot_keeps_the_peaks_of_a_fast_oscillation():
    model = daedal.library.damped_oscillator()
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    picture = plot_svg(sol, model.title, model.plot)
    heights = [float(pair.split(",")[1]) for pair in re.search(r'points="([^"]+)"', picture).group(1).split()]
    top = float(re.search(r'class="axis" d="M\S+ (\d+)V(\d+)', picture).group(1))
    assert min(heights) < top + 30.0 and len(picture) < 60_000
