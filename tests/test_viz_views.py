"""The view follows from the class of the problem; regions of stability are those of the literature and of real runs."""

import itertools
import math
import pickle
import subprocess
import sys

import matplotlib
import numpy as np
import pytest

import daedal
from daedal.viz import growth_factor, plot_hybrid, plot_solution, plot_stability_region, plot_work_precision, view
from test_viz import curves, overlaps


def solved(name: str, **options):
    model = daedal.library.get(name)
    return daedal.solve(model.problem, model.t_span, model.initial, **(dict(model.options) | options))


@pytest.fixture(scope="module")
def pendulum():
    return solved("planar_pendulum", formulation=daedal.formulations.Index1())


def plot(sol, *args, **options):
    return plot_solution(sol, *args, pyplot=False, **options)


def axis_names(figure) -> list[str]:
    return [axes.get_ylabel() for axes in figure.axes]


def notes(figure) -> str:
    return " ".join(text.get_text() for text in figure.texts)


# --- mechanical systems ---


def test_a_mechanism_is_shown_with_positions_velocities_multipliers_drift_and_steps(pendulum):
    figure = plot(pendulum)
    names = ["positions", "velocities", r"$\lambda_{\mathrm{rod}}$", "drift", "step size"]
    assert axis_names(figure) == names
    assert [list(curves(axes)) for axes in figure.axes[:2]] == [["$x$", "$y$"], ["$x'$", "$y'$"]]
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "linear", "linear", "log", "log"]


def test_multipliers_are_those_of_the_pendulum(pendulum):
    (line,) = curves(plot(pendulum).axes[2]).values()
    t = line.get_xdata()
    assert t.size >= 400 and np.array_equal(t[[0, -1]], pendulum.t[[0, -1]])
    assert np.allclose(line.get_ydata(), pendulum(t).lam[0], rtol=1e-12, atol=1e-12)


def test_drift_is_that_of_what_was_integrated(pendulum):
    lines = curves(plot(pendulum).axes[3])
    assert list(lines) == ["position", "velocity"]
    for name, line in lines.items():
        assert line.get_ydata().max() == pytest.approx(pendulum.drift[f"{name} before projection"], rel=1e-12)
        assert line.get_ydata().max() > 1e3 * pendulum.drift[name]
    x, y, vx, vy = pendulum.raw.y[:4]
    shape = np.maximum(np.abs(x * vx + y * vy), 1e-300)  # the velocity constraint, up to a factor
    ratio = (lines["velocity"].get_ydata() / shape)[shape > 1e-10]
    assert ratio.size > 30 and np.ptp(ratio) < 1e-3 * ratio.max()


def test_drift_at_round_off_is_a_note_and_no_panel():
    sol = solved("rolling_disc")
    figure = plot(sol)
    assert "drift at round-off level" in notes(figure)
    assert axis_names(figure) == ["positions", "velocities", "multipliers", "step size"]
    assert axis_names(plot(sol, drift=True))[3] == "velocity drift"


def test_chosen_variables_come_alone_unless_more_is_asked_for(pendulum):
    assert axis_names(plot(pendulum, ["x", "y"], steps=False)) == [""]
    figure = plot(pendulum, ["x"], multipliers=True, drift=True, steps=False)
    assert axis_names(figure) == ["$x$", r"$\lambda_{\mathrm{rod}}$", "drift"]
    assert axis_names(plot(pendulum, multipliers=False, drift=False, steps=False)) == ["positions", "velocities"]
    assert axis_names(plot(pendulum, "lambda_rod", steps=False)) == [r"$\lambda_{\mathrm{rod}}$"]


def test_multipliers_can_be_scaled(pendulum):
    figure = plot(pendulum, "lambda_rod", factors={"lambda_rod": 2.0}, steps=False)
    ((name, line),) = curves(figure.axes[0]).items()
    assert name == r"2 $\lambda_{\mathrm{rod}}$"
    assert np.allclose(line.get_ydata(), 2.0 * pendulum(line.get_xdata()).lam[0])


def test_a_stored_solution_is_plotted_in_the_same_way(pendulum):
    stored = pickle.loads(pickle.dumps(pendulum))
    for given in ({}, {"variables": "lambda_rod"}, {"drift": True}):
        assert axis_names(plot(stored, steps=False, **given)) == axis_names(plot(pendulum, steps=False, **given))


def test_what_a_solution_does_not_have_is_refused():
    sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], [-1.0])
    with pytest.raises(daedal.InvalidProblemError, match="no multipliers"):
        plot(sol, multipliers=True)
    with pytest.raises(daedal.InvalidProblemError, match="drift=True"):
        plot(sol, drift=True)
    with pytest.raises(daedal.InvalidProblemError, match="no variable 'lambda_rod'"):
        plot(sol, "lambda_rod")


def test_multipliers_are_not_computed_for_other_plots(pendulum, monkeypatch):
    monkeypatch.setattr(type(pendulum), "lam", property(lambda self: pytest.fail("computed")))
    plot(pendulum, ["x", "y"])


def test_many_coordinates_are_thinned_by_kind():
    figure = plot(solved("chain_of_pendulums"))
    assert "6 of 20 positions shown; 6 of 20 velocities shown; 6 of 10 multipliers shown" in notes(figure)


# --- other classes ---


def test_a_second_order_problem_is_shown_with_positions_velocities_and_multipliers():
    figure = plot(solved("body_on_circle"), steps=False)
    assert axis_names(figure) == ["positions", "velocities", r"$\lambda$"]
    assert list(curves(figure.axes[1])) == ["$q_{1}'$", "$q_{2}'$"]


def test_variables_of_first_order_are_states():
    problem = daedal.SecondOrderDAE(
        lambda t, x, xp, xpp: [xpp[0] + x[0], xp[1] + x[1], x[2] - x[0] - 2.0 * x[1]], 3, order=[2, 1, 0]
    )
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 1.0, 3.0], [0.0, -1.0, 0.0]))
    kinds = [("positions", [0]), ("velocities", [3]), ("states", [1]), ("multipliers", [2])]
    assert view.kinds_of(sol) == kinds


def test_a_semi_explicit_problem_is_shown_with_states_and_algebraic_variables():
    sol = solved("jay_index2")
    assert view.kinds_of(sol) == [("states", [0, 1]), ("algebraic", [2])]
    assert axis_names(plot(sol, steps=False)) == ["states", "$z$"]


@pytest.mark.slow
def test_a_hessenberg_problem_is_shown_with_its_multiplier():
    sol = solved("stability_example1")
    figure = plot(sol, steps=False)
    assert axis_names(figure) == ["", r"$\lambda$"]
    first, second = curves(figure.axes[0]).values()  # the same curve twice
    assert first.get_linestyle() == "-" and second.get_linestyle() != "-"


def test_a_run_through_modes_is_shown_with_contact_forces_by_name():
    sol = solved("sliding_ladder")
    figure = plot_hybrid(sol, pyplot=False)
    assert axis_names(figure)[:3] == ["positions", "velocities", "multipliers"]
    wall, floor = curves(figure.axes[2]).values()
    (event,) = [event.t for event in sol.events]
    t, force = wall.get_xdata(), wall.get_ydata()
    assert t[np.isfinite(force)].max() == pytest.approx(event) and abs(force[t == event][0]) < 1e-6
    known = np.isfinite(t) & np.isfinite(floor.get_ydata())
    assert t[known].max() == sol.t[-1] and np.all(floor.get_ydata()[known] < 0.0)
    lanes = [text.get_text() for text in figure.axes[3].get_yticklabels()]
    assert lanes == ["wall", "floor"]  # one for each contact
    assert len(plot_hybrid(sol, ["x"], pyplot=False).axes) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bouncing_ball", "car_axis", "jay_index2", "rolling_disc", "seven_body"])
def test_nothing_overlaps_in_the_views(name):
    sol = solved(name)
    show = plot_hybrid if isinstance(sol, daedal.HybridSolution) else plot_solution
    assert overlaps(show(sol, title="A heading", pyplot=False)) == []


# --- work and precision ---


def test_work_precision_has_a_line_for_every_pair():
    model = daedal.library.planar_pendulum()
    found = daedal.compare(
        model.problem, (0.0, 1.0), model.initial, formulations=["ggl", "index2"], methods=["dassl"], rtol=[1e-4, 1e-6]
    )
    figure = plot_work_precision(found, pyplot=False)
    for axes in figure.axes:
        assert axes.get_xscale() == axes.get_yscale() == "log"
        lines = axes.get_lines()
        assert [line.get_ydata().size for line in lines] == [2, 2]
        assert len({(line.get_color(), line.get_marker()) for line in lines}) == 2
    assert figure.axes[0].get_ylabel() == "relative error of q and v"


# --- regions of stability ---


def real_limit(method) -> float:
    """Where the region of an explicit method ends on the negative real axis."""
    x = np.linspace(-8.0, -1e-3, 80_000)
    return x[np.flatnonzero(growth_factor(method, x) > 1.0).max()]


@pytest.mark.parametrize(
    ("method", "limit"),
    [(daedal.methods.RK4(), -2.785), (daedal.methods.DOPRI5(), -3.307), (([[0, 0], [1, 0]], [0.5, 0.5]), -2.0)],
    ids=["RK4", "DOPRI5", "Heun"],
)
def test_explicit_methods_end_where_the_literature_says(method, limit):
    assert real_limit(method) == pytest.approx(limit, abs=2e-3)


@pytest.mark.parametrize(
    "method",
    [daedal.methods.HEM3(), daedal.methods.HEM4(), daedal.methods.HEM5(), daedal.methods.PHEM56()],
    ids=lambda m: m.tableau.name,
)
def test_half_explicit_methods_follow_the_exponential_to_their_order(method):
    h = np.array([1e-1, 5e-2])
    error = np.abs(growth_factor(method, -h) - np.exp(-h))
    assert math.log2(error[0] / error[1]) == pytest.approx(method.max_order + 1, abs=0.3)
    assert np.array_equal(growth_factor(method.tableau, -h), growth_factor(method, -h))


@pytest.mark.parametrize(("kind", "order", "at_infinity"), [("radau", 5, 0.0), ("gauss", 6, 1.0), ("lobatto", 4, 1.0)])
def test_collocation_is_a_stable_and_of_its_order(kind, order, at_infinity):
    method = daedal.methods.Collocation(kind, stages=3)
    z = np.array([complex(-x, y) for x, y in itertools.product((1e-3, 1.0, 50.0), np.linspace(-40.0, 40.0, 41))])
    assert np.all(growth_factor(method, z) < 1.0)
    assert growth_factor(method, [-1e9])[0] == pytest.approx(at_infinity, abs=1e-6)
    h = np.array([0.2, 0.1])
    error = np.abs(growth_factor(method, -h) - np.exp(-h))
    assert math.log2(error[0] / error[1]) == pytest.approx(order + 1, abs=0.3)
    assert method.max_order == order


@pytest.mark.parametrize(("order", "degrees"), [(1, 90), (2, 90), (3, 86.03), (4, 73.35), (5, 51.84), (6, 17.84)])
def test_bdf_is_stable_in_the_wedge_of_the_literature(order, degrees):
    """A(alpha)-stability: Hairer and Wanner II, Table V.2.1."""
    method = daedal.methods.DASSL(max_order=order)
    radii = np.geomspace(1e-2, 1e3, 2000)
    inside = -radii * np.exp(1j * math.radians(degrees - 0.1))
    assert np.all(growth_factor(method, inside) <= 1.0 + 1e-9)
    if degrees < 90:
        assert np.any(growth_factor(method, -radii * np.exp(1j * math.radians(degrees + 0.1))) > 1.0)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("z", [-0.4 + 0.9j, 0.1 + 0.5j], ids=["damped", "growing"])
def test_modified_bdf_multiplies_by_its_growth_factor(order, z):
    h, steps = 0.1, 400
    real, square = z.real / h, abs(z / h) ** 2
    problem = daedal.SecondOrderDAE(
        lambda t, x, xp, xpp: [xpp[0] - 2.0 * real * xp[0] + square * x[0]], 1, order=[2], names=["x"]
    )
    method = daedal.methods.ModifiedBDF(max_order=order)
    sol = daedal.solve(problem, (0.0, steps * h), ([1.0], [0.0]), method=method, fixed_step=h)
    x = np.abs(sol.x[0])
    third = x.size // 3
    window = [x[begin : begin + third].max() for begin in (third, x.size - third)]
    rate = (window[1] / window[0]) ** (1.0 / (x.size - 2 * third))
    assert rate == pytest.approx(growth_factor(method, [z])[0], rel=2e-2)


def test_region_plots_name_their_axes_and_curves(tmp_path):
    path = tmp_path / "new" / "region.png"
    figure = plot_stability_region(
        [daedal.methods.RK4(), daedal.methods.Collocation()], pyplot=False, save=path, title="Two methods"
    )
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == (r"Re $h\lambda$", r"Im $h\lambda$")
    assert list(curves(axes)) == ["RK4", "Radau IIA, 3 stages"]
    assert path.stat().st_size > 10_000 and overlaps(figure) == []


def test_multistep_methods_are_shown_for_all_orders():
    figure = plot_stability_region(daedal.methods.DASSL(max_order=3), pyplot=False)
    assert list(curves(figure.axes[0])) == ["BDF, order 1", "BDF, order 2", "BDF, order 3"]
    left, right = figure.axes[0].get_xlim()
    assert left < 0.0 and 20.0 / 3.0 < right < 12.0  # the boundary of order 3 meets the axis at 20/3


def test_a_window_can_be_given():
    axes = plot_stability_region(daedal.methods.RK4(), window=(-4.0, 1.0, -3.5, 3.5), pyplot=False).axes[0]
    assert (*axes.get_xlim(), *axes.get_ylim()) == (-4.0, 1.0, -3.5, 3.5)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("rk4", "stability regions of .* are not available"),
        ([], "empty"),
        (([[0.0]], [0.5, 0.5]), "square"),
        (([[math.nan]], [1.0]), "finite"),
    ],
    ids=["name", "empty", "sizes", "nan"],
)
def test_what_is_no_method_is_refused(method, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        plot_stability_region(method, pyplot=False)


def test_viz_is_there_after_a_bare_import_and_loads_no_matplotlib():
    code = "import sys, daedal; daedal.viz.plot_stability_region; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"]


def test_style_stays_inside():
    before = dict(matplotlib.rcParams)
    plot_stability_region(daedal.methods.RK4(), pyplot=False)
    assert dict(matplotlib.rcParams) == before
