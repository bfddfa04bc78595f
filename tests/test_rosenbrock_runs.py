"""Runs of Rosenbrock methods: dense output, events, hard problems, what is refused."""

import numpy as np
import pytest

import daedal
from daedal import library
from daedal.errors import InvalidProblemError
from daedal.methods import Rosenbrock
from daedal.methods.rosenbrock.rosenbrock_tableaux import TABLEAUX
from test_rosenbrock import CIRCLE, INDEX1, ODE, PLAIN

VARIANTS = tuple(TABLEAUX)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("rtol", [1e-3, 1e-6])
def test_dense_output_is_as_accurate_as_the_steps(variant, rtol):
    times = np.linspace(0.0, 2.0, 301)
    sol = daedal.solve(INDEX1, (0.0, 2.0), ([0.0], [1.0]), method=Rosenbrock(variant), rtol=rtol, atol=rtol)
    exact = np.array([np.sin(times), np.exp(-np.sin(times))])
    assert np.max(np.abs(sol(times) - exact)) < 20.0 * rtol
    assert np.max(np.abs(sol(times, derivative=True)[0] - np.cos(times))) < 300.0 * rtol ** (1.0 - 1.0 / 3.0)
    at_times = daedal.solve(
        INDEX1,
        (0.0, 2.0),
        ([0.0], [1.0]),
        method=Rosenbrock(variant),
        rtol=rtol,
        atol=rtol,
        t_eval=times,
        dense_output=False,
    )
    np.testing.assert_allclose(at_times.y, sol(times), rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("options", [{}, PLAIN], ids=["code", "stages"])
@pytest.mark.parametrize("stiffness", [None, 1e3, 1e6])
def test_dense_output_follows_what_algebraic_equations_or_stiffness_determine(stiffness, options):
    """Exact at the ends of steps, where no embedded method sees an error: steps have to be looked at in between."""

    def residual(t, y, yp):
        input = np.cos(3.0 * t) + 0.2 * np.sin(11.0 * t)
        return [y[0] - input if stiffness is None else yp[0] + stiffness * (y[0] - input)]

    problem = daedal.ImplicitDAE(residual, 1)
    times = np.linspace(1.0, 3.0, 397)
    reference = daedal.solve(problem, (0.0, 3.0), ([1.0], None), method=daedal.methods.Radau(stages=7), fixed_step=0.02)
    for rtol in (1e-3, 1e-6):
        sol = daedal.solve(problem, (0.0, 3.0), ([1.0], None), method="rosenbrock", rtol=rtol, atol=rtol, **options)
        assert np.max(np.abs(sol(times) - reference(times))) < 8.0 * rtol


@pytest.mark.parametrize("options", [{}, PLAIN], ids=["code", "stages"])
def test_events_and_break_points(options):
    """A stiff relaxation towards a square wave, whose jumps are known; its crossings of 1/2 are events."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + 50.0 * (y[0] - np.where(np.mod(t, 2.0) < 1.0, 1.0, 0.0))], 1)
    sol = daedal.solve(
        problem,
        (0.0, 4.0),
        ([0.0], None),
        method="rosenbrock",
        rtol=1e-7,
        atol=1e-9,
        breakpoints=[1.0, 2.0, 3.0],
        events=daedal.Event(lambda t, y: y[0] - 0.5, name="half"),
        **options,
    )
    crossings = np.arange(4.0) + np.log(2.0) / 50.0
    np.testing.assert_allclose([event.t for event in sol.events], crossings, atol=1e-6)


@pytest.mark.parametrize("options", [{}, PLAIN], ids=["code", "stages"])
def test_backward_in_time(options):
    sol = daedal.solve(ODE, (2.0, 0.0), ([np.sin(2.0), np.cos(2.0)], None), method="rosenbrock", rtol=1e-8, **options)
    np.testing.assert_allclose(sol.y[:, -1], [0.0, 1.0], atol=1e-6)


def test_an_input_that_jumps_is_diagnosed_and_followed_with_a_break_point():
    """The algebraic variable jumps with it; what is driven by it has a kink and keeps its accuracy."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0] - y[1], y[1] - (1.0 if t < 1.0 else 3.0)], 2)
    start, options = ([0.0, 1.0], [1.0, 0.0]), {"method": "rosenbrock", "rtol": 1e-6, **PLAIN}
    with pytest.raises(daedal.IntegrationError, match=r"jumps by 2 at t = 1\.\nRemedy: .*breakpoints=\[1\.0\]"):
        daedal.solve(problem, (0.0, 2.0), start, **options)
    sol = daedal.solve(problem, (0.0, 2.0), start, breakpoints=[1.0], **options)
    assert sol.y[1, -1] == pytest.approx(3.0, rel=1e-12)
    assert sol.y[0, -1] == pytest.approx(3.0 - (2.0 + np.exp(-1.0)) * np.exp(-1.0), abs=1e-5)


def test_a_start_that_is_off_by_some_tolerances_is_left_behind():
    """Of an algebraic variable, after a long step of a strongly nonlinear problem: the defect does not fall with h."""
    model = library.transistor_amplifier()
    sol = daedal.solve(model.problem, model.t_span, model.initial, method=Rosenbrock("rodas3"), rtol=1e-3, atol=1e-3)
    assert np.max(np.abs(sol.y[:, -1] - model.reference.y)) < 1e-2


def test_robertson_over_eleven_decades():
    """Values at 1e11 from the Test Set for Initial Value Problem Solvers."""
    model = library.robertson(t1=1e11)
    end = np.array([0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050])
    counts = []
    for rtol in (1e-4, 1e-7):
        sol = daedal.solve(model.problem, model.t_span, model.initial, method="rosenbrock", rtol=rtol, atol=1e-6 * rtol)
        assert np.max(np.abs(sol.y[:, -1] / end - 1.0)) < 30.0 * rtol
        counts.append(sol.stats.steps)
    assert counts[0] < 200 and counts[1] < 600


@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
def test_transistor_amplifier(rtol):
    model = library.transistor_amplifier()
    sol = daedal.solve(model.problem, model.t_span, model.initial, method="rosenbrock", rtol=rtol, atol=rtol)
    assert np.max(np.abs(sol.y[:, -1] - model.reference.y)) < 5.0 * rtol


def test_van_der_pol_with_sharp_corners():
    """mu = 1e6 in the scaled form, over a jump; end values of the Test Set at t = 2."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] - ((1.0 - y[0] ** 2) * y[1] - y[0]) / 1e-6], 2)
    sol = daedal.solve(problem, (0.0, 2.0), ([2.0, 0.0], None), method="rosenbrock", rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(sol.y[:, -1], [0.1706167732170483e1, -0.8928097010247975], rtol=1e-5)
    assert sol.stats.steps < 1500


def test_order_reduction_on_stiff_equations():
    """Prothero and Robinson's problem: errors about 2.5e-3 h^3 / k, and none in the limit (HW IV.15)."""
    found = {}
    for stiffness in (1e5, 1e6):
        model = library.prothero_robinson(stiffness=stiffness)
        found[stiffness] = [
            abs(
                daedal.solve(model.problem, (0.0, 2.0), model.initial, method="rosenbrock", fixed_step=h).y[0, -1]
                - np.cos(2.0)
            )
            for h in (0.1, 0.05)
        ]
    assert np.log2(found[1e5][0] / found[1e5][1]) == pytest.approx(3.0, abs=0.15)
    assert found[1e5][0] / found[1e6][0] == pytest.approx(10.0, rel=0.02)
    assert found[1e5][1] == pytest.approx(2.5e-3 * 0.05**3 / 1e5, rel=0.05)


@pytest.fixture
def prepared(monkeypatch):
    """What has been prepared: one entry for each time."""
    counted, original = [], Rosenbrock.prepare
    monkeypatch.setattr(Rosenbrock, "prepare", lambda self, given: counted.append(1) or original(self, given))
    return counted


def test_a_prepared_solver_is_prepared_once_whatever_its_parameters(prepared):
    problem = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p[0] * y[0]], 1, params=[1.0])
    solver = daedal.prepare(problem, method="rosenbrock", rtol=1e-8, atol=1e-10)
    for rate in (1.0, 2.0, 0.5):
        end = solver.solve((0.0, 1.0), ([1.0], [-rate]), params=[rate]).y[0, -1]
        assert end == pytest.approx(np.exp(-rate), rel=1e-6)
    assert len(prepared) == 1


def test_a_prepared_solver_is_prepared_once_where_switches_are_followed(prepared):
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + np.where(y[0] > 0.5, 1.0, 2.0) * y[0]], 1)
    solver = daedal.prepare(problem, method="rosenbrock", rtol=1e-8, atol=1e-10)
    for start in (1.0, 0.75, 1.0):
        end = solver.solve((0.0, 1.0), ([start], [-start])).y[0, -1]
        assert end == pytest.approx(0.5 * np.exp(-2.0 * (1.0 - np.log(2.0 * start))), rel=1e-6)
    assert len(prepared) == 1


def test_domains_and_exceptions():
    """A root that must not leave its domain shortens steps; an exception arrives unchanged."""
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + np.sqrt(y[0])], 1)
    sol = daedal.solve(problem, (0.0, 1.9), ([1.0], None), method="rosenbrock", rtol=1e-6, atol=1e-9)
    assert sol.y[0, -1] == pytest.approx(0.0025, rel=1e-3)

    def residual(t, y, yp):
        if t > 1.0:
            raise KeyError("no data")
        return [yp[0] + y[0]]

    with pytest.raises(KeyError, match="no data"):
        daedal.solve(daedal.ImplicitDAE(residual, 1), (0.0, 2.0), ([1.0], [-1.0]), method="rosenbrock")


def test_index_2_is_refused():
    problem = daedal.SemiExplicitDAE(lambda t, y, z: [z[0], y[1]], lambda t, y, z: [y[0] - np.sin(t)], 2, 1)
    for options in ({}, PLAIN):
        with pytest.raises(InvalidProblemError, match=r"the problem has index 2.*z.*use method='radau'"):
            daedal.solve(problem, (0.0, 1.0), ([0.0, 1.0], [1.0]), method="rosenbrock", **options)


def test_mechanisms_are_refused():
    model = library.planar_pendulum()
    with pytest.raises(InvalidProblemError, match="first-order problem of index 0 or 1"):
        daedal.solve(model.problem, (0.0, 1.0), model.initial, method="rosenbrock")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "rodas6"}, "variant must be one of 'rodas3', 'rodas4', 'rodas5p', got 'rodas6'"),
        ({"linear_solver": "gmres"}, "linear_solver of Rosenbrock must be one of .* GMRES requires DASSL"),
        ({"error_test": "filtered"}, "unknown error_test 'filtered'"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(InvalidProblemError, match=message):
        Rosenbrock(**options)


def test_options_go_with_the_name_and_the_title_says_which():
    sol = daedal.solve(ODE, (0.0, 1.0), CIRCLE, method="rosenbrock", variant="rodas4")
    assert set(sol.history.order) == {4} and sol.method == "Rosenbrock (RODAS4), order 4"
    masked = daedal.solve(ODE, (0.0, 5.0), CIRCLE, method="rosenbrock", error_test=[True, False])
    assert masked.success
