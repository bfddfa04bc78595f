"""Plots show what they promise, and can be read: nothing overlaps, colours can be told apart."""

import base64
import io
import itertools
import math
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import matplotlib.figure
import matplotlib.image
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

import daedal
from daedal.viz import plot_solution, solution_html, view
from daedal.viz.figure import LINES, label

FIGURES = Path(__file__).parent.parent / "docs" / "figures"


def solution(t, y, names=None, **changes) -> daedal.Solution:
    """A solution with given values and nothing else."""
    y = np.atleast_2d(np.asarray(y, dtype=float))
    values = {
        "t": np.asarray(t, dtype=float),
        "y": y,
        "yp": np.zeros_like(y),
        "success": True,
        "status": "finished",
        "message": "",
        "stats": daedal.solution.Statistics(),
        "names": tuple(names or (f"y[{i}]" for i in range(y.shape[0]))),
    }
    return daedal.Solution(**(values | changes))


def solved(name: str, **options) -> daedal.Solution:
    model = daedal.library.get(name)
    return daedal.solve(model.problem, model.t_span, model.initial, **(dict(model.options) | options))


@pytest.fixture(scope="module")
def robertson():
    return solved("robertson")


def plot(sol, *args, **options):
    return plot_solution(sol, *args, pyplot=False, **options)


def curves(axes) -> dict[str, np.ndarray]:
    """The labelled lines of an axes with a panel's worth of points."""
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


# --- labels and colours ---


@pytest.mark.parametrize(
    ("name", "factor", "text"),
    [
        ("y", 1.0, "$y$"),
        ("y12", 1.0, "$y_{12}$"),
        ("v_C2", 1.0, r"$v_{\mathrm{C2}}$"),
        ("lambda", 1.0, r"$\lambda$"),
        ("tau1", 1.0, r"$\tau_{1}$"),
        ("speed [m/s]", 1.0, "speed [m/s]"),
        ("u(5,5)", 1.0, "u(5,5)"),
        ("y[3]", 1.0, "y[3]"),
        ("_hidden", 1.0, " _hidden"),
        ("y2", 1e4, "$10^{4}$ $y_{2}$"),
        ("y2", 2.5, "2.5 $y_{2}$"),
        ("y2", 2.5e-7, r"$2.5\cdot 10^{-7}$ $y_{2}$"),
        ("beta", 180.0 / math.pi, r"$\beta$ [°]"),
    ],
)
def test_labels_are_set_from_names(name, factor, text):
    assert label(name, factor) == text


# Linear RGB as seen without one kind of cone: G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, A
# physiologically-based model for simulation of color vision deficiency, IEEE Trans. Vis. Comput. Graph. 15 (2009).
VISION = {
    "full": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour: str, vision: str) -> np.ndarray:
    """CIE Lab coordinates of an sRGB colour."""
    rgb = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(VISION[vision]) @ linear, 0.0, 1.0)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    ratio = xyz / [0.9505, 1.0, 1.089]
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def pairs_of_equal_dashes():
    return [(a, b) for (a, da), (b, db) in itertools.combinations(LINES, 2) if da == db]


@pytest.mark.parametrize("vision", VISION)
def test_lines_of_equal_dashes_differ_in_colour_for_everybody(vision):
    distances = [np.linalg.norm(lab(a, vision) - lab(b, vision)) for a, b in pairs_of_equal_dashes()]
    assert min(distances) > 20.0


def test_lines_of_equal_dashes_differ_in_black_and_white():
    assert min(abs(lab(a, "full")[0] - lab(b, "full")[0]) for a, b in pairs_of_equal_dashes()) > 15.0


# --- what is shown ---


def test_all_variables_of_a_small_problem_are_shown():
    assert view.select_variables(solution([0, 1], np.ones((8, 2)))) == (list(range(8)), "")


def test_a_handful_of_many_variables_is_shown_and_the_figure_says_so():
    t = np.linspace(0.0, 1.0, 20)
    sol = solution(t, np.outer(np.linspace(1.0, 2.0, 5000), t))
    rows, note = view.select_variables(sol)
    assert len(rows) == 6 and rows[0] == 0 and rows[-1] == 4999 and np.all(np.diff(rows) > 500)
    assert note == "6 of 5000 variables shown"
    assert note in {text.get_text() for text in plot(sol).findobj(matplotlib.text.Text)}


def test_constant_and_repeated_variables_are_not_picked():
    t = np.linspace(0.0, 1.0, 50)
    y = np.ones((60, 50))
    y[10:20] = np.sin(3.0 * t)
    y[30:40] = np.cos(3.0 * t)
    y[50] = t**2
    assert view.select_variables(solution(t, y))[0] == [10, 30, 50]


def test_variables_are_named_or_numbered():
    sol = solution([0, 1], np.eye(2), names=["angle", "speed"])
    assert view.select_variables(sol, "speed")[0] == [1]
    assert view.select_variables(sol, [0, "speed", -1])[0] == [0, 1, 1]


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ("sped", "did you mean 'speed'"),
        ("zzz", "known: angle, speed"),
        (7, "numbered 0 to 1"),
        ([], "empty"),
        ("plot.png", "save='plot.png'"),
    ],
)
def test_unknown_variables_are_refused_with_a_hint(variables, message):
    sol = solution([0, 1], np.eye(2), names=["angle", "speed"])
    with pytest.raises(daedal.InvalidProblemError, match=message):
        plot(sol, variables)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"panels": "two"}, "panels='two'"),
        ({"xscale": "square"}, "xscale='square'"),
        ({"yscale": "square"}, "yscale='square'"),
        ({"factors": {"b": 2.0}}, "no variable 'b'"),
        ({"steps": True}, "dense_output=True"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        plot(solution([0, 1], [[0, 1]]), **options)


def test_a_solution_without_points_is_refused():
    with pytest.raises(daedal.InvalidProblemError, match="no points"):
        plot(solution([], np.empty((1, 0))))


@pytest.mark.parametrize(
    ("t", "scale"),
    [
        (np.append(0.0, np.geomspace(1e-6, 1e6, 100)), "log"),
        (np.geomspace(1e-6, 1e6, 100), "log"),
        (np.linspace(0.0, 10.0, 100), "linear"),
        (np.append(np.geomspace(1e-9, 1e-3, 30), np.linspace(0.01, 1.0, 100)), "linear"),  # the start of any run
        (np.append(-1.0, np.geomspace(1e-6, 1e6, 100)), "linear"),
        (np.geomspace(1e6, 1e-6, 100), "linear"),
        (np.array([0.0, 1e-6, 1e6]), "linear"),
    ],
)
def test_time_axis_is_logarithmic_when_points_crowd_at_the_start(t, scale):
    assert view.time_scale(t) == scale


def test_variables_of_similar_size_share_a_panel():
    t = np.linspace(0.0, 1.0, 50)
    y = np.array([np.sin(t), 1e-5 * np.cos(t), np.cos(t), 2e-5 * np.sin(t), np.full(50, 0.5), 1e-17 * np.cos(9 * t)])
    assert view.share_panels(y) == [[0, 2, 4, 5], [1, 3]]


@given(st.lists(st.floats(-8.0, 8.0), min_size=1, max_size=12), st.integers(0, 5))
def test_every_variable_is_in_one_panel_and_fills_a_part_of_it(exponents, seed):
    y = np.random.default_rng(seed).normal(size=(len(exponents), 40)) * 10.0 ** np.array(exponents)[:, None]
    panels = view.share_panels(y)
    assert sorted(itertools.chain(*panels)) == list(range(len(exponents)))
    overall = np.ptp(y, axis=1).max()
    for panel in panels:
        height = y[panel].max() - y[panel].min()
        ranges = np.ptp(y[panel], axis=1)
        assert len(panel) <= view.HANDFUL
        assert np.all((ranges >= view.SMALLEST_SHARE * height) | (ranges <= 1e-14 * overall))


# --- figures ---


def test_robertson_is_shown_over_log_time_with_steps_and_order():
    model = daedal.library.get("robertson")
    robertson = daedal.solve(model.problem, model.t_span, model.initial, **{**model.options, "method": "dassl"})
    figure = plot(robertson)
    large, small, steps, order = figure.axes
    assert [axes.get_xscale() for axes in figure.axes] == ["log"] * 4
    assert list(curves(large)) == ["$y_{1}$", "$y_{3}$"] and list(curves(small)) == ["$y_{2}$"]
    assert [axes.get_ylabel() for axes in (small, steps, order)] == ["$y_{2}$", "step size", "order"]
    assert order.get_xlabel() == "$t$" and large.get_xlabel() == ""
    assert 1e-8 < large.get_xlim()[0] < 1e-4 and large.get_xlim()[1] == 1e11
    h, k = steps.get_lines()[0].get_ydata(), order.get_lines()[0].get_ydata()
    assert np.array_equal(h, robertson.history.h) and np.array_equal(k, robertson.history.order)


def test_an_order_that_does_not_change_is_not_shown(robertson):
    assert np.ptp(robertson.history.order) == 0
    assert [axes.get_ylabel() for axes in plot(robertson).axes][1:] == ["$y_{2}$", "step size"]


def test_step_sizes_end_at_a_terminal_event():
    stop = daedal.Event(lambda t, y, yp: y[0] - 0.5, terminal=True)
    sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 10.0), [1.0], [-1.0], events=stop, method="dassl")
    steps = plot(sol).axes[1].get_lines()[0].get_xdata()
    assert steps.max() == sol.t[-1] == pytest.approx(np.log(2.0), rel=1e-4)


def test_factors_scale_curves_and_appear_in_labels(robertson):
    figure = plot(robertson, ["y1", "y2"], factors={"y2": 1e4}, panels="one", steps=False)
    assert list(curves(figure.axes[0])) == ["$y_{1}$", "$10^{4}$ $y_{2}$"]
    line = curves(figure.axes[0])["$10^{4}$ $y_{2}$"]
    assert np.allclose(line.get_ydata(), 1e4 * robertson(line.get_xdata())[1], rtol=1e-12)


def test_panels_can_be_chosen(robertson):
    assert len(plot(robertson, panels="one", steps=False).axes) == 1
    assert len(plot(robertson, panels="each", steps=False).axes) == 3


def test_curves_are_smooth_although_few_points_are_stored():
    sol = solved("prothero_robinson", t_eval=[0.0, 5.0, 10.0])
    line = plot(sol, steps=False).axes[0].get_lines()[0]
    assert line.get_xdata().size > 500
    assert np.allclose(line.get_ydata(), np.cos(line.get_xdata()), atol=1e-4)


def test_stored_points_are_marked_without_dense_output():
    sol = solved("prothero_robinson", t_eval=np.linspace(0.0, 10.0, 11), dense_output=False)
    figure = plot(sol)
    line = figure.axes[0].get_lines()[0]
    assert np.array_equal(line.get_ydata(), sol.y[0]) and line.get_marker() == "o"
    assert len(figure.axes) == 1  # no record of the steps


def test_constant_steps_are_not_shown():
    sol = daedal.solve_dae(
        lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], [-1.0], fixed_step=0.1, method="dassl", max_order=1
    )
    assert len(plot(sol).axes) == 1


def test_first_tiny_steps_do_not_squeeze_the_panel_of_step_sizes():
    sol = solved("transistor_amplifier")
    low, high = plot(sol, "U8").axes[1].get_ylim()
    visible = sol.history.h[sol.history.t > 0.05 * sol.t[-1]]
    assert sol.history.h.min() < low <= visible.min() and visible.max() <= high <= 1.0001e3 * low


def test_events_are_marked_in_every_panel():
    events = [daedal.Event(lambda t, y: y[0], name="zero"), daedal.Event(lambda t, y: t - 6.0, True, name="_end")]
    sol = daedal.solve_dae(
        lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0], y[2] - 1e-3 * y[0]],
        (0.0, 9.0),
        [0.5, 1.0, 5e-4],
        None,
        events=events,
    )
    figure = plot(sol, steps=False)
    assert len(figure.axes) == 2
    times = [event.t for event in sol.events]
    assert len(times) == 3
    assert figure.axes[0].get_lines()[0].get_xdata()[-1] == times[-1] == pytest.approx(6.0)
    for axes in figure.axes:
        verticals = [line.get_xdata()[0] for line in axes.get_lines() if line.get_linestyle() == ":"]
        assert verticals == times
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()][-2:] == ["zero", " _end"]
    assert all(line.get_linestyle() != ":" for line in plot(sol, events=False).axes[0].get_lines())


def test_a_failed_run_is_plotted_and_says_where_it_ended():
    with pytest.raises(daedal.IntegrationError) as failure:
        daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 2.0), [1.0], [-1.0], max_steps=5)
    sol = failure.value.solution
    assert plot(sol)._suptitle.get_text() == f"failed at t = {sol.t[-1]:g}"


def test_backward_time_and_a_single_point_are_plotted():
    sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (5.0, 0.0), [1.0], None)
    assert np.allclose(plot(sol).axes[0].get_lines()[0].get_xdata()[[0, -1]], [0.0, 5.0])
    assert len(plot(solution([1.0], [[2.0]])).axes) == 1


def test_logarithmic_time_needs_positive_times():
    with pytest.raises(daedal.InvalidProblemError, match="positive times"):
        plot(solution([-2.0, -1.0], [[0.0, 1.0]]), xscale="log")


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_save_writes_the_figure_into_a_new_folder(robertson, tmp_path, ending):
    path = tmp_path / "new" / f"figure.{ending}"
    plot(robertson, save=path)
    assert path.stat().st_size > 5000
    if ending == "png":
        image = matplotlib.image.imread(path)
        assert image.shape[1] == 1400 and image.min() < 0.3


def overlaps(figure) -> list[str]:
    """What would be hard to read: texts over texts or cut off, legends or headings over panels."""
    FigureCanvasAgg(figure).draw()
    found = []
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend() is not None]
    headings = [text for text in figure.texts if text.get_text()]  # the title among them
    panels = [axes.get_window_extent() for axes in figure.axes]
    for artist in [*legends, *headings]:
        box = artist.get_window_extent().padded(-1.0)
        found += [f"{artist} over a panel" for panel in panels if box.overlaps(panel)]
    texts = [*headings]
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            texts += [axis.label, axis.get_offset_text()]
            low, high = sorted(axis.get_view_interval())
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            texts += [tick.label1 for tick in ticks if tick.label1.get_visible() and low <= tick.get_loc() <= high]
        if axes.get_legend() is not None:
            texts += axes.get_legend().get_texts()
    shown = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text() and text.get_visible()]
    inside = figure.bbox.padded(1.0)
    for text, box in shown:
        if not (inside.contains(box.x0, box.y0) and inside.contains(box.x1, box.y1)):
            found.append(f"{text!r} leaves the figure")
    for (text, box), (other, beside) in itertools.combinations(shown, 2):
        if box.padded(-1.0).overlaps(beside.padded(-1.0)):
            found.append(f"{text!r} over {other!r}")
    return found


def test_overlaps_are_noticed():
    figure = matplotlib.figure.Figure()
    figure.add_subplot().plot([0, 1], label="curve")
    figure.axes[0].legend()
    figure.text(0.5, 0.5, "first")
    figure.text(0.5, 0.5, "second")
    figure.text(0.95, 0.5, "too long for the place")
    found = "\n".join(overlaps(figure))
    assert "Legend over a panel" in found and "'first' over 'second'" in found and "place' leaves the figure" in found


MODELS = ["food_web", "heat2d", "pendulum", "rlc_network", "robertson", "tppc2", "transistor_amplifier"]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_nothing_overlaps_in_the_plots_of_library_problems(name):
    model = daedal.library.get(name)
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    assert overlaps(plot(sol, title=model.title, **model.plot)) == []
    assert overlaps(plot(sol, title=model.title)) == []


@pytest.mark.slow
def test_nothing_overlaps_with_long_names_and_many_panels():
    t = np.linspace(0.0, 1e-7, 100)
    y = np.array([10.0 ** (3 * (i // 3)) * np.sin((1 + i) * 1e8 * t) for i in range(15)])
    names = [f"concentration of the species {i}" for i in range(15)]
    sol = solution(t, y, names=names, success=False, status="failed")
    assert overlaps(plot(sol, list(range(15)), title="A long heading for a long list of variables")) == []
    assert overlaps(plot(sol, list(range(9)), title="Three panels")) == []


def test_pyplot_knows_the_figure_only_if_wanted(robertson):
    import matplotlib.pyplot as plt

    plt.close("all")
    robertson.plot(pyplot=False)
    assert plt.get_fignums() == []
    figure = robertson.plot()
    assert [plt.figure(number) for number in plt.get_fignums()] == [figure]
    plt.close("all")


def test_a_notebook_shows_a_figure_once(robertson, monkeypatch):
    import matplotlib.pyplot as plt

    plt.close(plt.figure())  # pyplot looks for a notebook of its own when it draws first
    plt.close("all")
    shown = []
    display = SimpleNamespace(Image=lambda data: data, display=shown.append)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    figure = robertson.plot()
    assert plt.get_fignums() == [figure.number]  # the notebook would show it at the end of the cell,
    figure._ipython_display_()
    (png,) = shown
    assert png.startswith(b"\x89PNG")
    assert plt.get_fignums() == []  # but it has been shown


def test_style_stays_inside(robertson):
    before = dict(matplotlib.rcParams)
    plot(robertson)
    assert dict(matplotlib.rcParams) == before


# --- notebooks and the manual ---


def test_html_holds_a_table_and_a_picture(robertson):
    page = robertson._repr_html_()
    for name, value in robertson.summary():
        assert f">{name}</th>" in page and f">{value}</td>" in page
    assert robertson.message in page
    (picture,) = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    image = matplotlib.image.imread(io.BytesIO(base64.b64decode(picture)), format="png")
    assert image.shape[1] == 630


def test_html_escapes_and_leaves_out_an_empty_plot():
    page = solution_html(solution([0.0], [[1.0]], message="a < b\n& so on", method="<b>"))
    assert "a &lt; b<br>&amp; so on" in page and "&lt;b&gt;" in page and "<img" not in page


@pytest.mark.slow
def test_figures_of_the_manual_can_be_redrawn(tmp_path):
    script = tmp_path / "docs" / "figures" / "make.py"
    script.parent.mkdir(parents=True)
    script.write_bytes((FIGURES / "make.py").read_bytes())
    page = tmp_path / "docs" / "guide" / "plotting.md"
    page.parent.mkdir()
    page.write_bytes((FIGURES.parent / "guide" / "plotting.md").read_bytes())
    runpy.run_path(str(script), run_name="__main__")
    shown = set(re.findall(r"\(\.\./figures/(\S+?)\)", page.read_text(encoding="utf-8")))
    assert {path.name for path in script.parent.glob("*.png")} == shown != set()
