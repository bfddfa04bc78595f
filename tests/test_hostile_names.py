"""Names, titles and texts that hold markup are shown as they are, on every page and in every table."""

import dataclasses
import io
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

import daedal
from daedal.common.tabular import Tabular
from daedal.studies import reproduce
from daedal.studies.reproduce.page import page as book
from daedal.studies.reproduce.terminal import print_cells, print_list
from daedal.viz.gallery import make_card
from daedal.viz.pages import equation_html
from daedal.viz.svg_plot import plot_svg

HOSTILE = """<img src=x onerror="alert('1')">&amp;</script></title>{{ 7 * 7 }}[bold]"""


class Elements(HTMLParser):
    """The elements and the texts of a page, those in attributes among them."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        self.texts += [value or "" for _, value in attributes]

    def handle_data(self, data):
        self.texts.append(data)


def check_shown(text: str, times: int = 1) -> None:
    """The hostile text occurs so often at least, as a text, and has opened no element."""
    found = Elements(text)
    assert "onerror" not in found.attributes
    assert sum(HOSTILE in part for part in found.texts) >= times


@pytest.fixture(scope="module")
def solution():
    return daedal.solve_dae(
        lambda t, y, yp: yp + y, (0.0, 1.0), [1.0, 2.0], [-1.0, -2.0], names=[HOSTILE, "$\\nonsense{$ & _x"]
    )


def test_a_solution_in_a_notebook(solution):
    check_shown(dataclasses.replace(solution, message=f"{HOSTILE}\nand more", method=HOSTILE)._repr_html_(), times=2)


def test_a_run_through_modes_in_a_notebook():
    other = f"{HOSTILE} 2"
    decay = daedal.ImplicitDAE(lambda t, y, yp: yp + y, 1, names=[HOSTILE])
    there = daedal.hybrid.Transition(HOSTILE, other, lambda t, y, yp: y[0] - 0.5, name=f"to {HOSTILE}")
    problem = daedal.hybrid.HybridProblem({HOSTILE: decay, other: decay}, [there])
    run = daedal.solve(problem, (0.0, 2.0), (HOSTILE, ([1.0], [-1.0])))
    assert len(run.events) == 1
    check_shown(run._repr_html_(), times=3)
    check_shown(run.events._repr_html_(), times=2)


def test_the_table_of_a_comparison():
    model = daedal.library.planar_pendulum()
    found = daedal.compare(model.problem, (0.0, 0.1), model.initial, formulations=["ggl"], title=HOSTILE)
    check_shown(found._repr_html_())


def test_a_table_everywhere():
    table = Tabular("lr", [(HOSTILE, 1), HOSTILE], (HOSTILE, "n"))
    check_shown(table._repr_html_(), times=3)
    assert str(table).count(HOSTILE) == 3
    stream = io.StringIO()
    Console(file=stream, width=200).print(Tabular("lr", [(HOSTILE, 1)], (HOSTILE, "n")))
    assert stream.getvalue().count(HOSTILE) == 2


def test_plots(solution, tmp_path):
    check_shown(plot_svg(solution, HOSTILE), times=2)
    solution.plot(title="all", save=tmp_path / "plot.png", pyplot=False)
    assert (tmp_path / "plot.png").stat().st_size > 5000


def test_a_page_with_an_animation(tmp_path):
    model = daedal.library.planar_pendulum()
    sol = daedal.solve(model.problem, (0.0, 0.1), model.initial)
    drawing = daedal.viz.Drawing(points={HOSTILE: lambda q: (q[0], q[1])}, masses=[HOSTILE], text=HOSTILE)
    page = sol.animate(tmp_path / "page.html", drawing, title=HOSTILE, frames=3).read_text(encoding="utf-8")
    check_shown(page, times=3)
    assert page.count("</script>") == 2 and page.count("</title>") == 1 and "img" not in Elements(page).tags


def test_a_card_of_the_gallery(monkeypatch):
    model = daedal.library.switched_ramp()
    texts = {name: HOSTILE for name in ("name", "title", "description", "source", "equations")}
    monkeypatch.setattr(daedal.library, "get", lambda name, **parameters: dataclasses.replace(model, **texts))
    card = make_card(HOSTILE)
    assert not card.failure and "img" not in Elements(card.html).tags
    check_shown(card.html, times=7)
    monkeypatch.setattr(daedal.library, "get", lambda name, **parameters: model.no_such_thing)
    check_shown(make_card(HOSTILE).html, times=2)


@pytest.mark.parametrize("latex", [HOSTILE, rf"\text{{{HOSTILE}}}", r"\href{javascript:alert(1)}{x}", r"a < b & c > d"])
def test_equations(latex):
    found = Elements(equation_html(latex))
    assert found.tags <= {"div", "code", "span", "wbr", "math", "mrow", "mi", "mo", "mn", "msup", "mtext"}
    assert found.attributes <= {"class", "stretchy", "form"}


def test_the_reproduction_book():
    (table,) = reproduce.find(["half-explicit/2"])
    result = reproduce.run(["half-explicit/2"]).results[0]
    texts = {"caption": HOSTILE, "notes": (HOSTILE,), "columns": dict.fromkeys(table.columns, HOSTILE)}
    cells = tuple(dataclasses.replace(cell, printed=HOSTILE, computed=HOSTILE, reason=HOSTILE) for cell in result.cells)
    hostile = dataclasses.replace(result, table=dataclasses.replace(table, **texts), cells=cells)
    check_shown(book(reproduce.Reproduction((hostile,))), times=2 + len(table.columns) + 3 * len(cells))
    stream = io.StringIO()
    console = Console(file=stream, width=1000)
    print_list(console, [hostile.table])
    print_cells(console, hostile)
    assert stream.getvalue().count(HOSTILE) == 3 + 3 * len(cells)


def test_names_of_constraints_in_a_plot(tmp_path):
    pendulum = daedal.MechanicalSystem(
        lambda t, q: np.eye(2),
        lambda t, q, v: np.array([0.0, -9.81]),
        lambda t, q: np.array([0.5 * (q @ q - 1.0)]),
        n_q=2,
        n_constraints=1,
        constraint_names=[HOSTILE + "$^$"],
    )
    sol = daedal.solve(pendulum, (0.0, 0.1), ([1.0, 0.0], [0.0, 0.0]))
    sol.plot(save=tmp_path / "plot.png", pyplot=False)
    assert (tmp_path / "plot.png").stat().st_size > 5000
