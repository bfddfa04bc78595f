"""Parameters from measurements (daedal.fit): estimates, their errors, what is not determined, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal


def decay(k=1.0):
    return daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": k}, names=["x"])


def reaction():
    """A -> B -> C with a conservation law as an algebraic equation."""

    def residual(t, y, yp, p):
        a, b, c = y
        return [yp[0] + p["k1"] * a, yp[1] - p["k1"] * a + p["k2"] * b, a + b + c - 1.0]

    return daedal.ImplicitDAE(residual, 3, params={"k1": 1.0, "k2": 0.5}, names=["a", "b", "c"])


def closed(t, k1, k2):
    a = np.exp(-k1 * t)
    b = k1 / (k2 - k1) * (np.exp(-k1 * t) - np.exp(-k2 * t))
    return a, b, 1.0 - a - b


TIMES = np.linspace(0.0, 4.0, 17)


def test_exact_data_give_exact_parameters_and_initial_values():
    found = daedal.fit(decay(), {"t": TIMES, "x": 3.0 * np.exp(-0.7 * TIMES)}, ["k", "x(0)"], initial=([2.0], None))
    assert found.success
    assert found.params == pytest.approx({"k": 0.7, "x(0)": 3.0}, rel=1e-6)


def test_missing_values_of_an_algebraic_variable_and_several_species():
    a, b, c = closed(TIMES, 0.8, 0.3)
    a[3], b[::2] = np.nan, np.nan
    data = {"t": TIMES, "a": a, "b": b, "c": [None, *c[1:]]}
    found = daedal.fit(reaction(), data, ["k1", "k2"], initial=([1.0, 0.0, 0.0], None))
    assert found.params == pytest.approx({"k1": 0.8, "k2": 0.3}, rel=1e-6)
    assert found.residuals.size == 16 + 8 + 16


def test_standard_errors_are_those_of_linear_regression():
    """x' = k has the solution x0 + k t: a straight line, whose errors are known in closed form."""
    line = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] - p[0]], 1, params=np.array([0.3]), names=["x"])
    t, rng = np.linspace(0.0, 2.0, 21), np.random.default_rng(7)
    x = 1.0 + 2.0 * t + 0.1 * rng.standard_normal(t.size)
    found = daedal.fit(line, {"t": t, "x": x}, ["p[0]", "x(0)"], initial=([0.0], None))
    design = np.column_stack([t, np.ones_like(t)])
    expected, rest, *_ = np.linalg.lstsq(design, x, rcond=None)
    covariance = np.linalg.inv(design.T @ design) * rest[0] / (t.size - 2)
    assert list(found.params.values()) == pytest.approx(expected.tolist(), rel=1e-6)
    assert found.covariance == pytest.approx(covariance, rel=1e-4)
    given_sigma = daedal.fit(line, {"t": t, "x": x}, ["p[0]", "x(0)"], initial=([0.0], None), sigma=0.1)
    assert given_sigma.covariance == pytest.approx(0.01 * np.linalg.inv(design.T @ design), rel=1e-4)


@pytest.mark.slow
def test_intervals_of_95_percent_cover_the_truth_in_92_to_98_percent_of_500_data_sets():
    t, rng, truth = np.linspace(0.0, 3.0, 25), np.random.default_rng(42), {"k": 0.9, "x(0)": 2.0}
    clean = truth["x(0)"] * np.exp(-truth["k"] * t)
    problem = decay(0.95)
    hits = dict.fromkeys(truth, 0)
    for _ in range(500):
        data = {"t": t, "x": clean + 0.05 * rng.standard_normal(t.size)}
        found = daedal.fit(problem, data, ["k", "x(0)"], initial=([1.9], None))
        for name, (low, high) in found.confidence().items():
            hits[name] += low <= truth[name] <= high
    for count in hits.values():
        assert 0.92 <= count / 500 <= 0.98


def test_several_runs_with_inputs_initial_values_and_unknowns_of_their_own():
    def residual(t, y, yp, p):
        return [yp[0] + p["k"] * y[0] - p["load"]]

    problem = daedal.ImplicitDAE(residual, 1, params={"k": 1.0, "load": 0.0}, names=["x"])

    def x(t, start, load):
        return load / 0.6 + (start - load / 0.6) * np.exp(-0.6 * t)

    runs = [
        daedal.sensitivity.Experiment({"t": TIMES, "x": x(TIMES, 1.0, 0.0)}, initial=([1.0], None), name="free"),
        daedal.sensitivity.Experiment(
            {"t": TIMES, "x": x(TIMES, 2.5, 3.0)},
            initial=([1.0], None),
            params={"load": 3.0},
            unknown=["x(0)"],
            name="loaded",
        ),
    ]
    found = daedal.fit(problem, runs, ["k"])
    assert found.params == pytest.approx({"k": 0.6, "x(0) in loaded": 2.5}, rel=1e-6)
    assert "2 runs" in str(found)


def test_bounds_are_kept_and_log_parameters_stay_positive():
    data = {"t": TIMES, "x": np.exp(-0.7 * TIMES)}
    bounded = daedal.fit(decay(), data, {"k": 1.0}, initial=([1.0], None), bounds={"k": (0.9, None)})
    assert bounded.params["k"] == pytest.approx(0.9, rel=1e-6)
    far = daedal.fit(decay(), data, {"k": 20.0}, initial=([1.0], None), log=["k"])
    assert far.params["k"] == pytest.approx(0.7, rel=1e-5)
    low, high = far.confidence()["k"]
    assert 0.0 < low <= 0.7 + 1e-6 and high >= 0.7 - 1e-6


def test_parameters_without_influence_and_combinations_that_cannot_be_told_apart_are_named():
    def residual(t, y, yp, p):
        return [yp[0] + p["a"] * p["b"] * y[0] + 0.0 * p["idle"]]

    problem = daedal.ImplicitDAE(residual, 1, params={"a": 1.0, "b": 1.0, "idle": 5.0}, names=["x"])
    found = daedal.fit(problem, {"t": TIMES, "x": np.exp(-0.7 * TIMES)}, ["a", "b", "idle"], initial=([1.0], None))
    alone, together = found.undetermined
    assert list(alone) == ["idle"]
    a, b = found.params["a"], found.params["b"]
    assert a * b == pytest.approx(0.7, rel=1e-5)
    assert together["b"] / together["a"] == pytest.approx(-b / a, rel=1e-3)  # a b stays if da / a = -db / b
    assert all(np.isinf(found.stderr[name]) for name in ("a", "b", "idle"))
    assert "has no influence" in str(found) and "the combination" in str(found)


def test_a_run_that_fails_for_some_values_does_not_end_the_fit():
    """x' = x^2 p blows up at 1 / p: from a start whose first long step goes there the search comes back."""
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] - p["p"] * y[0] ** 2], 1, params={"p": 0.05}, names=["x"])
    t = np.linspace(0.0, 1.0, 11)
    found = daedal.fit(problem, {"t": t, "x": 1.0 / (1.0 - 0.95 * t)}, ["p"], initial=([1.0], None))
    assert found.success and found.params["p"] == pytest.approx(0.95, rel=1e-5)


def test_ctrl_c_hands_back_the_best_point(monkeypatch):
    from daedal.sensitivity.fitting.runs import RunsCompared

    computed, calls = RunsCompared._computed, []

    def interrupted(self, x):
        calls.append(x)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return computed(self, x)

    monkeypatch.setattr(RunsCompared, "_computed", interrupted)
    data = {"t": TIMES, "x": 3.0 * np.exp(-0.7 * TIMES)}
    found = daedal.fit(decay(), data, ["k", "x(0)"], initial=([1.0], None))
    assert not found.success and "nterrupted" in found.message
    assert found.cost < 0.5 * float(np.sum((np.exp(-TIMES) - data["x"]) ** 2))


def test_outputs_are_functions_of_the_state_and_of_parameters():
    data = {"t": TIMES, "signal": 2.0 * np.exp(-1.4 * TIMES)}
    problem = daedal.ImplicitDAE(
        lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 1.0, "gain": 1.0}, names=["x"]
    )
    outputs = {"signal": lambda t, y, p: p["gain"] * y[0] ** 2}
    found = daedal.fit(problem, data, ["k", "gain"], initial=([1.0], None), outputs=outputs)
    assert found.params == pytest.approx({"k": 0.7, "gain": 2.0}, rel=1e-5)


def pendulum():
    return daedal.MechanicalSystem(
        mass=1.0,
        force=lambda t, q, v, p: [-p["c"] * v[0], -p["g"] - p["c"] * v[1]],
        constraint=lambda t, q, p: [0.5 * (q[0] ** 2 + q[1] ** 2 - p["length"] ** 2)],
        n_q=2,
        n_constraints=1,
        params={"g": 9.81, "c": 0.1, "length": 1.0},
        names=["x", "y"],
    )


def test_gravity_and_damping_of_a_pendulum_in_cartesian_coordinates():
    t = np.linspace(0.0, 3.0, 31)
    truth = daedal.solve(pendulum(), (0.0, 3.0), ([1.0, 0.0], [0.0, 0.0]), t_eval=t, rtol=1e-10, atol=1e-12)
    found = daedal.fit(pendulum(), {"t": t, "x": truth["x"]}, {"g": 9.0, "c": 0.3}, initial=([1.0, 0.0], [0.0, 0.0]))
    assert found.params == pytest.approx({"g": 9.81, "c": 0.1}, rel=1e-5)


@pytest.mark.slow
def test_multiple_shooting_finds_the_parameters_of_a_chaotic_model():
    def lorenz(t, y, yp, p):
        return [
            yp[0] - p["sigma"] * (y[1] - y[0]),
            yp[1] - y[0] * (p["rho"] - y[2]) + y[1],
            yp[2] - y[0] * y[1] + p["beta"] * y[2],
        ]

    problem = daedal.ImplicitDAE(
        lorenz, 3, params={"sigma": 10.0, "rho": 28.0, "beta": 8.0 / 3.0}, names=["x", "y", "z"]
    )
    t, start = np.linspace(0.0, 6.0, 121), [1.0, 1.0, 20.0]
    truth = daedal.solve(problem, (0.0, 6.0), (start, None), t_eval=t, rtol=1e-10, atol=1e-10)
    data = {"t": t, "x": truth["x"], "y": truth["y"], "z": truth["z"]}
    begin = {"sigma": 7.0, "rho": 20.0, "beta": 4.0}
    whole = daedal.fit(problem, data, begin, initial=(start, None), max_evaluations=60)
    pieces = daedal.fit(problem, data, begin, initial=(start, None), shooting=24)
    assert pieces.params == pytest.approx({"sigma": 10.0, "rho": 28.0, "beta": 8.0 / 3.0}, rel=1e-4)
    assert pieces.cost < 1e-6 * whole.cost  # whole runs end in one of many minima


def test_uncertainty_of_a_solution_is_that_of_the_closed_form():
    sol = daedal.solve(decay(), (0.0, 2.0), ([1.0], None), sensitivities=["k", "x(0)"], rtol=1e-9)
    covariance = np.array([[0.04, 0.01], [0.01, 0.09]])
    band = daedal.sensitivity.uncertainty(sol, covariance, ["k", "x(0)"])
    rows = np.array([-sol.t * np.exp(-sol.t), np.exp(-sol.t)])
    assert band["x"] == pytest.approx(np.sqrt(np.einsum("at,ab,bt->t", rows, covariance, rows)), rel=1e-6, abs=1e-9)
    figure = band.plot("x", pyplot=False)
    assert [axes.get_ylabel() for axes in figure.axes] == ["$x$"] or figure.axes[0].get_ylabel() == "x"


def test_plots_show_all_that_was_measured():
    data = {"t": TIMES, "a": closed(TIMES, 0.8, 0.3)[0], "b": closed(TIMES, 0.8, 0.3)[1]}
    found = daedal.fit(reaction(), data, ["k1", "k2"], initial=([1.0, 0.0, 0.0], None))
    assert len(found.plot(pyplot=False).axes) == 2
    assert len(found.plot_residuals(pyplot=False).axes) == 4


@settings(max_examples=10)
@given(st.permutations(range(17)), st.floats(0.1, 10.0))
def test_order_of_measurements_and_unit_of_time_do_not_matter(order, unit):
    data = {"t": unit * TIMES[list(order)], "x": np.exp(-0.7 * TIMES)[list(order)]}
    found = daedal.fit(decay(1.0 / unit), data, ["k"], initial=([1.0], None))
    assert found.params["k"] * unit == pytest.approx(0.7, rel=1e-5)


GOOD = {"t": TIMES, "x": np.exp(-TIMES)}


@pytest.mark.parametrize(
    ("data", "parameters", "options", "words"),
    [
        (GOOD, ["kk"], {}, "did you mean 'k'"),
        (GOOD, ["y(0)"], {}, "did you mean 'x(0)'"),
        (GOOD, [], {}, "name at least one quantity to estimate"),
        (GOOD, 3, {}, "parameters must be names"),
        ({"t": TIMES, "y": TIMES}, ["k"], {}, "there is no variable or output 'y'"),
        ({"x": TIMES}, ["k"], {}, "no times"),
        ({"t": TIMES}, ["k"], {}, "no measured values"),
        ({"t": TIMES, "x": TIMES[1:]}, ["k"], {}, "has 16 values for 17 times"),
        ({"t": TIMES, "x": np.full(17, np.nan)}, ["k"], {}, "all values are missing"),
        ({"t": TIMES, "x": np.full(17, np.inf)}, ["k"], {}, "infinite"),
        ({"t": TIMES, "x": ["?"] * 17}, ["k"], {}, "not numbers"),
        ([1, 2], ["k"], {}, "must be a mapping or a frame"),
        (GOOD, ["k"], {"t_span": (0.0, 2.0)}, "outside t_span"),
        (GOOD, ["k"], {"sigma": -1.0}, "sigma must be positive"),
        (GOOD, ["k"], {"sigma": {"y": 1.0}}, "sigma has no entry for x"),
        (GOOD, ["k"], {"bounds": {"k": (2.0, 3.0)}}, "outside its bounds"),
        (GOOD, ["k"], {"bounds": {"q": (2.0, 3.0)}}, "there is no parameter"),
        (GOOD, ["k"], {"bounds": {"k": (3.0, 2.0)}}, "must be below the upper"),
        (GOOD, {"k": -1.0}, {"log": ["k"]}, "must be positive for a logarithmic scale"),
        (GOOD, {"k": "fast"}, {}, "must be a number"),
        (GOOD, ["k"], {"initial": None}, "no initial values"),
        ({"t": [0.0, 1.0], "x": [1.0, np.nan]}, ["k", "x(0)"], {}, "cannot be estimated from 1"),
        (GOOD, ["k"], {"shooting": 1}, "at least 2"),
        (GOOD, ["k"], {"loss": "quadratic"}, "unknown loss 'quadratic'"),
        (GOOD, ["k"], {"outputs": {"z": 3.0}}, "must be a function of t and y"),
        (
            daedal.sensitivity.Experiment(GOOD, params={"k": 5.0}),
            ["k"],
            {},
            "is estimated, and cannot be given for one run",
        ),
        (daedal.sensitivity.Experiment(GOOD, unknown=["x(0)", "x(0)"]), ["k"], {}, "contains duplicates"),
    ],
)
def test_bad_input_is_named(data, parameters, options, words):
    with pytest.raises(daedal.InvalidProblemError, match="(?s)" + words.replace("(", r"\(").replace(")", r"\)")):
        daedal.fit(decay(), data, parameters, **{"initial": ([1.0], None), **options})


def test_frames_of_pandas_with_times_as_index_or_column():
    pandas = pytest.importorskip("pandas")
    x = np.exp(-0.7 * TIMES)
    for frame in (pandas.DataFrame({"x": x}, index=TIMES), pandas.DataFrame({"t": TIMES, "x": x})):
        assert daedal.fit(decay(), frame, ["k"], initial=([1.0], None)).params["k"] == pytest.approx(0.7, rel=1e-6)


def test_an_exception_of_the_model_arrives_unchanged():
    def broken(t, y, yp, p):
        raise RuntimeError("no sensor")

    problem = daedal.ImplicitDAE(broken, 1, params={"k": 1.0}, names=["x"])
    with pytest.raises(RuntimeError, match="no sensor"):
        daedal.fit(problem, GOOD, ["k"], initial=([1.0], None))


def test_an_initial_value_whose_part_is_none_is_refused():
    data = {"t": TIMES, "x": np.cos(TIMES)}
    with pytest.raises(daedal.InvalidProblemError, match="its part of initial is None"):
        daedal.fit(pendulum(), data, {"g": 5.0, "y'(0)": 0.3}, initial=([1.0, 0.0], None))


def test_an_estimate_of_zero_is_determined_by_the_data():
    """x'' = -w^2 x from rest: the initial velocity is 0, and known from the data to be so."""
    oscillator = daedal.ImplicitDAE(
        lambda t, y, yp, p: [yp[0] - y[1], yp[1] + p["w"] ** 2 * y[0]], 2, params={"w": 1.3}, names=["x", "v"]
    )
    data = {"t": TIMES, "x": np.cos(1.1 * TIMES)}
    found = daedal.fit(oscillator, data, {"w": 1.0, "v(0)": 0.2}, initial=([1.0, 0.0], None))
    assert found.params == pytest.approx({"w": 1.1, "v(0)": 0.0}, rel=1e-5, abs=1e-6)
    assert not found.undetermined


def test_an_estimate_at_its_bound_is_named():
    data, bounds = {"t": TIMES, "x": np.exp(-0.7 * TIMES)}, {"k": (0.9, 2.0)}
    found = daedal.fit(decay(), data, ["k"], initial=([1.0], None), bounds=bounds)
    assert found.at_bounds == ("k",) and "is at a bound" in str(found)


def test_multipliers_are_told_apart_by_their_names():
    """Two equal pendulums whose multipliers have equal values: only the second one knows of h."""
    twins = daedal.MechanicalSystem(
        mass=1.0,
        force=lambda t, q, v, p: [0.0, -9.81, 0.0, -p["h"]],
        constraint=lambda t, q, p: [0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0), 0.5 * (q[2] ** 2 + q[3] ** 2 - 1.0)],
        n_q=4,
        n_constraints=2,
        params={"h": 9.81},
        names=["xa", "ya", "xb", "yb"],
        constraint_names=["a", "b"],
    )
    start, t = ([1.0, 0.0, 1.0, 0.0], [0.0] * 4), np.linspace(0.0, 1.0, 11)
    truth = daedal.solve(twins, (0.0, 1.0), start, t_eval=t, rtol=1e-9, atol=1e-11)
    found = daedal.fit(twins, {"t": t, "lambda_b": truth["lambda_b"]}, ["h"], initial=start)
    assert np.abs(found.jacobian).max() > 0.1
