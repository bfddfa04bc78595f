"""Quantities by name and tables, for every class of solutions."""

import io
import pickle
import sys

import numpy as np
import pytest

import daedal
from daedal.solution.quantities import NamedValues

pytest.importorskip("pandas")
pytest.importorskip("xarray")


def pendulum(**changes):
    given = {"names": ["x", "y"], "constraint_names": ["rod"], "params": {"g": 9.81}}
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, p: [0.0, -p["g"]],
        lambda t, q, p: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=2,
        n_constraints=1,
        **(given | changes),
    )


@pytest.fixture(scope="module")
def swing():
    return daedal.solve(pendulum(), (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), events=[lambda t, q, v: q[1] + 0.5, never])


def never(t, q, v):
    return 1.0


@pytest.fixture(scope="module")
def circle():
    return daedal.solve_dae(
        lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], (0.0, 7.0), [0.0, 1.0], names=["s", "c"], rtol=1e-9, atol=1e-12
    )


@pytest.fixture(scope="module")
def bounce():
    model = daedal.library.bouncing_ball()
    return daedal.solve(model.problem, model.t_span, model.initial, **model.options)


# --- by name ----------------------------------------------------------------------------------------------------------


def test_variables_and_derivatives_have_names(circle):
    assert np.array_equal(circle["s"], circle.y[0]) and np.array_equal(circle["c'"], circle.yp[1])
    at = circle(1.0)
    assert at["s"] == at[0] and at["s'"] == pytest.approx(np.cos(1.0), abs=1e-6)
    assert circle([0.1, 0.2])["c"] == pytest.approx(np.cos([0.1, 0.2]), abs=1e-7)


def test_everything_of_a_mechanism_has_a_name(swing):
    assert np.array_equal(swing["lambda_rod"], swing.lam[0]) and np.array_equal(swing["y''"], swing.a[1])
    assert np.array_equal(swing["reaction x"], swing.reaction[0])
    before = swing.integrated.T
    assert swing["rod"] == pytest.approx(before[0] ** 2 + before[1] ** 2 - 1.0, abs=1e-15)
    assert swing["drift"] == pytest.approx(abs(swing["rod"]), abs=1e-15)
    assert swing["drift"].max() == swing.drift["position before projection"]
    assert swing["velocity drift"].max() == swing.drift["velocity before projection"]
    assert swing(0.5)["lambda_rod"] == swing(0.5).lam[0] and swing([0.5])["x''"] == swing(0.5).a[0]


def test_what_has_no_name_is_numbered():
    sol = daedal.solve(pendulum(names=None, constraint_names=None), (0.0, 0.1), ([1.0, 0.0], None))
    assert sol.to_dataframe().columns.tolist() == [
        *("q[0]", "q[1]", "v[0]", "v[1]", "a[0]", "a[1]", "lambda[0]", "drift", "velocity drift")
    ]
    assert np.array_equal(sol["constraint[0]"], sol.integrated.T[0] ** 2 + sol.integrated.T[1] ** 2 - 1.0)
    assert sol.constraint_names == () and sol.multiplier_names == ("lambda[0]",)


@pytest.mark.parametrize(("wrong", "near"), [("lamda_rod", "'lambda_rod'"), ("Y'", '"y\'"'), ("drfit", "'drift'")])
def test_unknown_names_bring_near_ones(swing, wrong, near):
    for ask in (lambda: swing[wrong], lambda: swing.to_dataframe([wrong])):
        with pytest.raises(daedal.errors.UnknownNameError) as caught:
            ask()
        assert f"did you mean {near}" in str(caught.value) and isinstance(caught.value, KeyError)
        assert isinstance(caught.value, daedal.InvalidProblemError)


def test_the_accelerations_are_not_computed_for_the_name_of_a_position(swing):
    sol = daedal.solve(pendulum(), (0.0, 0.5), ([1.0, 0.0], None))
    sol["x"]
    assert "_augmented" not in sol.__dict__


def test_named_values_behave_as_plain_arrays(circle):
    at = circle(1.0)
    assert isinstance(at, np.ndarray) and repr(at) == repr(np.asarray(at)) and type(at + 1.0) is np.ndarray
    assert type(at[:1]) is np.ndarray and type(np.concatenate([at, at])) is np.ndarray and at.sum() == at[0] + at[1]
    again = pickle.loads(pickle.dumps(at))
    assert type(again) is np.ndarray and np.array_equal(again, at)
    at += 1.0
    assert isinstance(at, NamedValues) or type(at) is np.ndarray
    with pytest.raises(daedal.InvalidProblemError, match=r"only sol\(t\) itself has names"):
        circle([1.0, 2.0]).T["s"]


def test_variables_called_like_derivatives_come_first():
    sol = daedal.solve_dae(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], (0.0, 1.0), [0.0, 1.0], names=["x", "x'"])
    assert np.array_equal(sol["x'"], sol.y[1]) and sol.to_dataframe().columns.tolist() == ["x", "x'", "x''"]


# --- tables -----------------------------------------------------------------------------------------------------------


def test_a_frame_has_times_and_names(swing):
    frame = swing.to_dataframe()
    columns = ["x", "y", "x'", "y'", "x''", "y''", "lambda_rod", "drift", "velocity drift"]
    assert frame.columns.tolist() == columns and frame.index.name == "t" and np.array_equal(frame.index, swing.t)
    assert np.array_equal(frame["lambda_rod"], swing.lam[0]) and frame.attrs["method"] == swing.method
    some = swing.to_dataframe(["x", "rod"])
    assert some.columns.tolist() == ["x", "rod"] and swing.to_dataframe("y").shape == (swing.t.size, 1)
    between = swing.to_dataframe(t=[0.25, 0.75])
    assert between["y"].tolist() == swing([0.25, 0.75]).q[1].tolist() and "drift" not in between


def test_a_dataset_has_dimensions(swing):
    swing.attributes = {"units": {"x": "m"}}
    data = swing.to_xarray()
    assert (
        data.q.dims == ("coordinate", "t") and data.lam.sel(constraint="rod").values.tolist() == swing.lam[0].tolist()
    )
    assert np.array_equal(data.a.sel(coordinate="y"), swing.a[1]) and data.attrs["units"] == {"x": "m"}
    assert np.array_equal(swing.to_xarray(t=[0.5]).q.values[:, 0], swing(0.5).q)
    swing.attributes = {}


def test_comma_separated_values_keep_all_digits(circle, tmp_path):
    text = circle.to_csv(tmp_path / "circle.csv")
    assert (tmp_path / "circle.csv").read_text(encoding="utf-8") == text
    assert text.splitlines()[0] == "t,s,c,s',c'"
    numbers = np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1)
    assert np.array_equal(numbers, np.column_stack([circle.t, circle.y.T, circle.yp.T]))


def test_runs_through_modes_have_tables_too(bounce):
    frame = bounce.to_dataframe()
    assert frame["mode"].tolist() == bounce.mode.tolist() and np.array_equal(frame[bounce.names[0]], bounce.y[0])
    name = f"{bounce.names[0]}''"
    assert np.array_equal(bounce[name], bounce.a[0]) and name in frame
    assert np.array_equal(bounce.to_dataframe(t=[0.1])[name], bounce([0.1]).a[0])
    at = bounce.to_xarray()
    assert at.y.shape == bounce.y.shape and at["mode"].values.tolist() == bounce.mode.tolist()
    with pytest.raises(daedal.errors.UnknownNameError):
        bounce["no such thing"]


def test_multipliers_of_one_mode_are_nan_in_others(bounce):
    last = bounce["lambda_floor"]
    assert np.isnan(last[0]) and last[-1] == bounce.lam[0, -1]


def test_frames_say_what_is_missing(circle, monkeypatch):
    for module, ask in (("pandas", circle.to_dataframe), ("xarray", circle.to_xarray)):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(daedal.DaedalError, match=rf"needs the package {module}.*daedal\[data\]") as caught:
            ask()
        assert isinstance(caught.value, ImportError)


def test_a_solution_without_points_is_an_empty_table():
    sol = daedal.solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0.0, 1.0), [1.0], t_eval=[])
    assert sol.to_dataframe().shape == (0, 2) and sol.to_csv() == "t,y[0],y[0]'\n"


# --- events -----------------------------------------------------------------------------------------------------------


def test_events_are_a_table_and_lists_as_scipy_has_them(swing):
    assert [times.size for times in swing.t_events] == [2, 0] and swing.event_names[1] == "never"
    assert swing.t_events[0][0] == swing.events[0].t and np.array_equal(swing.y_events[0][0], swing.events[0].y)
    frame = swing.events.to_dataframe()
    assert frame.columns.tolist() == ["t", "name", "kind", "direction", "terminal", "located", "x", "y", "x'", "y'"]
    assert frame["y"][0] == pytest.approx(-0.5, abs=1e-6)
    assert "direction" in repr(swing.events) and "<table" in swing.events._repr_html_()
    assert daedal.solve(pendulum(), (0.0, 0.1), ([1.0, 0.0], None)).t_events == []


def test_events_of_a_run_through_modes():
    model = daedal.library.bouncing_ball()
    up = daedal.Event(lambda t, q, v: v[0], direction=-1, name="top")
    sol = daedal.solve(model.problem, model.t_span, model.initial, events=[up], **model.options)
    assert sol.event_names == ("top",) and np.array_equal(sol.t_events[0], sol.events.named("top").t)
    frame = sol.events.to_dataframe()
    assert frame["name"].tolist() == [event.name for event in sol.events] and "source" in frame
    assert frame[sol.names[0]].tolist() == [event.y[0] for event in sol.events]


def test_events_of_a_failed_run_are_listed():
    with pytest.raises(daedal.IntegrationError) as caught:
        daedal.solve_dae(lambda t, y, yp: [yp[0] - y[0] ** 2], (0.0, 2.0), [1.0], events=lambda t, y: y[0] - 5.0)
    assert caught.value.solution.t_events[0] == pytest.approx([0.8], abs=1e-3)
