"""Eight members at once: the bits of single members, whatever stands in the lanes beside them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.ensembles.lane_members import Lanes

MECHANISMS = ("planar_pendulum", "double_pendulum", "crank_slider", "seven_body", "car_axis", "heavy_top", "four_bars")


@pytest.fixture
def counted(monkeypatch):
    """How many members went through lanes, and how many of them were left to the loop over single ones."""
    counts = {"members": 0, "left": 0}
    run = Lanes.run

    def watched(self, stopped):
        run(self, stopped)
        reasons = self.reasons()
        counts["members"] += reasons.size
        counts["left"] += int(np.count_nonzero(reasons == 0))

    monkeypatch.setattr(Lanes, "run", watched)
    return counts


@pytest.fixture
def alone(monkeypatch):
    """`solve_many` with one member after the other."""

    def run(*arguments, **options):
        with monkeypatch.context() as without:
            without.setattr("daedal.ensembles.batch.Batch.lanes", property(lambda self: None, lambda self, _: None))
            return daedal.solve_many(*arguments, **options)

    return run


def pendulums(count, rng=None):
    """The pendulum, and other lengths of time, weights and starts."""
    model = daedal.library.get("planar_pendulum")
    angles = np.linspace(-1.5, 1.5, count) if rng is None else rng.uniform(-1.5, 1.5, count)
    length = model.problem.params[0]
    q = length * np.column_stack([np.cos(angles), np.sin(angles)])
    v = np.column_stack([-np.sin(angles), np.cos(angles)]) * np.linspace(0.0, 3.0, count)[:, None]
    params = np.column_stack([np.full(count, length), np.linspace(1.0, 20.0, count)])
    return model.problem, model.t_span, (q, v), params


@pytest.mark.parametrize("method", ["dopri5", "dop853"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_members_have_the_bits_of_single_runs(name, method, counted):
    model = daedal.library.get(name)
    begin, end = model.t_span
    span, settings_ = (begin, begin + 0.1 * (end - begin)), {"method": method, "rtol": 1e-6, "atol": 1e-7}
    times = np.linspace(*span, 6)
    starts = tuple(np.tile(np.asarray(part, dtype=float), (11, 1)) for part in model.initial[:2])
    found = daedal.solve_many(model.problem, span, starts, t_eval=times, on="threads", workers=1, **settings_)
    assert counted["members"] >= 10  # the first one was run by the driver
    assert counted["left"] == 0
    one = daedal.solve(model.problem, span, model.initial[:2], t_eval=times, **settings_)
    for k in range(11):
        assert found.y[k].tobytes() == one.y.tobytes()


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6), count=st.integers(2, 23), size=st.integers(1, 9), sharp=st.sampled_from([1e-4, 1e-7])
)
def test_neighbours_do_not_matter(seed, count, size, sharp):
    problem, span, starts, params = pendulums(count, np.random.default_rng(seed))
    options = {"rtol": sharp, "atol": sharp, "t_eval": np.linspace(*span, 5), "on": "threads"}
    whole = daedal.solve_many(problem, span, starts, params=params, workers=1, **options)
    pieces = daedal.solve_many(problem, span, starts, params=params, workers=2, chunk_size=size, **options)
    assert whole.y.tobytes() == pieces.y.tobytes()
    k = seed % count
    one = daedal.solve(
        problem.with_params(params[k]), span, (starts[0][k], starts[1][k]), rtol=sharp, atol=sharp, t_eval=whole.t
    )
    assert whole.y[k].tobytes() == one.y.tobytes()


def test_lanes_differ_in_time_steps_and_intervals(alone):
    """Members whose frequencies differ by a factor of twenty are done at different times; the next ones move up."""
    problem, span, starts, params = pendulums(41)
    params[::3, 1] *= 100.0
    options = {"params": params, "rtol": 1e-6, "atol": 1e-6, "on": "threads", "workers": 1}
    lanes, single = daedal.solve_many(problem, span, starts, **options), alone(problem, span, starts, **options)
    assert lanes.failed.size == 0
    assert lanes.final.y.tobytes() == single.final.y.tobytes()


def test_backwards_and_beyond_the_end_of_the_interval(alone):
    problem, (begin, end), starts, params = pendulums(9)
    options = {"params": params, "rtol": 1e-6, "atol": 1e-6, "on": "threads", "workers": 1}
    for span, further in (((end, begin), {}), ((begin, end), {"t_stop": np.inf}), ((begin, end), {"max_step": 0.05})):
        lanes, single = (f(problem, span, starts, **options, **further) for f in (daedal.solve_many, alone))
        assert lanes.final.y.tobytes() == single.final.y.tobytes()


def test_a_member_in_trouble_is_left_and_does_no_harm(counted, alone):
    """A force that is not a number beyond a point: that member fails as it does alone, the others go on."""

    def force(t, q, v, p):
        return [0.0, -p[0] * np.sqrt(p[1] - t)]

    problem = daedal.MechanicalSystem(
        np.eye(2), force, lambda t, q, p: [q @ q - 1.0], n_q=2, n_constraints=1, params=[9.81, 10.0]
    )
    starts, params = ([1.0, 0.0], [0.0, 0.0]), np.column_stack([np.full(9, 9.81), np.full(9, 10.0)])
    params[4, 1] = 0.6  # the root of a negative number from t = 0.6 on
    options = {"params": params, "rtol": 1e-6, "on": "threads", "workers": 1}
    found, single = (f(problem, (0.0, 1.0), starts, **options) for f in (daedal.solve_many, alone))
    assert list(found.failed) == [4] == list(single.failed)
    assert found.messages[4] == single.messages[4]
    assert found.final.y.tobytes() == single.final.y.tobytes()


def test_positions_that_are_singular_are_left_to_single_runs(alone, counted):
    """A rhombus that flattens: lanes see it coming, and what is said is what single runs say."""
    model = daedal.library.get("four_bars")
    options = {"rtol": 1e-6, "atol": 1e-6, "on": "threads", "workers": 1}
    starts = tuple(np.tile(np.asarray(part, dtype=float), (5, 1)) for part in model.initial[:2])
    found, single = (f(model.problem, model.t_span, starts, **options) for f in (daedal.solve_many, alone))
    assert found.messages == single.messages
    assert found.final.y.tobytes() == single.final.y.tobytes()


def test_max_steps_and_limits_of_time_are_those_of_single_runs(alone):
    problem, span, starts, params = pendulums(9)
    options = {"params": params, "rtol": 1e-6, "on": "threads", "workers": 1, "max_steps": 250}
    found, single = (f(problem, span, starts, **options) for f in (daedal.solve_many, alone))
    assert 0 < len(found.failed) < 9
    assert found.messages == single.messages
    timed = daedal.solve_many(
        problem, span, starts, params=params, rtol=1e-6, on="threads", workers=1, member_timeout=60.0
    )
    plain = daedal.solve_many(problem, span, starts, params=params, rtol=1e-6, on="threads", workers=1)
    assert timed.final.y.tobytes() == plain.final.y.tobytes()


def test_a_mechanism_without_constraints(counted):
    problem = daedal.MechanicalSystem(np.eye(1), lambda t, q, v, p: [-p[0] * q[0]], None, n_q=1, params=[4.0])
    params = np.linspace(1.0, 9.0, 11)[:, None]
    found = daedal.solve_many(
        problem, (0.0, 2.0), ([1.0], [0.0]), params=params, rtol=1e-8, atol=1e-10, on="threads", workers=1
    )
    assert counted["left"] == 0
    assert counted["members"] > 0
    frequency = np.sqrt(params[:, 0])
    np.testing.assert_allclose(found.final.y[:, 0], np.cos(2.0 * frequency), atol=1e-6)


class LargeMachine(daedal.MechanicalSystem):
    """A machine whose positions are near zero in units of its length."""

    typical_sizes = np.full(2, 1e5)


def test_projections_end_where_those_of_single_runs_end(counted):
    problem = LargeMachine(
        np.eye(2),
        lambda t, q, v, p: [0.0, -p[0]],
        lambda t, q, p: [q @ q - 1.0],
        n_q=2,
        n_constraints=1,
        params=[9.81],
    )
    params, start = np.linspace(5.0, 10.0, 9)[:, None], ([1.0, 0.0], [0.0, 0.0])
    options = {"rtol": 1e-3, "atol": 1e-3, "method": "dopri5"}
    found = daedal.solve_many(problem, (0.0, 2.0), start, params=params, on="threads", workers=1, **options)
    assert counted["members"] >= 9  # else the first one has differed from the run of the driver
    assert counted["left"] == 0
    for k, row in enumerate(params):
        one = daedal.solve(problem.with_params(row), (0.0, 2.0), start, t_eval=[2.0], **options)
        assert found.final.y[k].tobytes() == one.y[:, -1].tobytes()


def test_an_interrupt_gives_back_what_is_done(monkeypatch):
    """Lanes are stopped between two looks: members under way are not run, those that are done are kept."""
    problem, span, starts, params = pendulums(64)
    from daedal.ensembles import lane_kernel

    real, calls = lane_kernel.run_lanes, []

    def slow(address):
        calls.append(1)
        if len(calls) > 10:
            raise KeyboardInterrupt
        return real(address)

    monkeypatch.setattr(lane_kernel, "run_lanes", slow)
    monkeypatch.setattr("daedal.ensembles.lane_members._TURNS", 40)
    found = daedal.solve_many(problem, span, starts, params=params, rtol=1e-6, on="threads", workers=1, chunk_size=16)
    assert 0 < np.count_nonzero(np.isfinite(found.final.y[:, 0])) < 64


def _lorenz(t, y, p):
    return [p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]]


def _driven(t, y, p):
    return [y[1], -p[0] * y[0] - y[0] ** 3 + np.sin(t)]


@pytest.mark.parametrize("sharp", [1e-4, 1e-8])
@pytest.mark.parametrize(
    ("function", "start", "base", "varied"),
    [(_lorenz, [1.0, 1.0, 20.0], [10.0, 28.0, 8.0 / 3.0], 1), (_driven, [2.0, 0.0], [0.7], 0)],
)
def test_ordinary_differential_equations(function, start, base, varied, sharp, counted):
    problem = daedal.ODE(function, len(start), params=base)
    params = np.tile(base, (13, 1))
    params[:, varied] *= np.linspace(0.5, 1.5, 13)
    times, options = np.linspace(0.0, 2.0, 7), {"rtol": sharp, "atol": sharp}
    found = daedal.solve_many(
        problem, (0.0, 2.0), start, params=params, t_eval=times, on="threads", workers=1, **options
    )
    assert counted["members"] >= 12
    for k, row in enumerate(params):
        one = daedal.solve(problem.with_params(row), (0.0, 2.0), start, t_eval=times, **options)
        assert found.y[k].tobytes() == one.y.tobytes()


def test_signs_that_are_lost_are_left_to_the_driver(alone):
    """x(t) falls below atol and comes out again with the other sign: what the driver does then, it does for members."""
    problem = daedal.ODE(lambda t, y, p: [p[0] * y[0] * (1.0 - 2.0 * t)], 1, params=[-40.0])
    params = np.linspace(-60.0, -20.0, 9)[:, None]
    options = {"params": params, "rtol": 1e-4, "atol": 1e-4, "on": "threads", "workers": 1}
    found, single = (f(problem, (0.0, 1.2), [1.0], **options) for f in (daedal.solve_many, alone))
    assert found.final.y.tobytes() == single.final.y.tobytes()
    assert found.messages == single.messages


def test_weights_that_vanish_are_seen(alone):
    """With atol = 0 nothing can be asked of a coordinate that is exactly 0 behind the first step: the run says so."""
    problem = daedal.MechanicalSystem(
        np.eye(3),
        lambda t, q, v, p: [0.0, -p[0], 0.0],
        lambda t, q, p: [q[0] ** 2 + q[1] ** 2 - 1.0],
        n_q=3,
        n_constraints=1,
        params=[0.01],
    )
    steps = {"rtol": 1e-3, "method": "dopri5", "first_step": 0.25, "max_step": 0.25}
    q, v = np.tile([0.6, -0.8, 0.0], (7, 1)), np.tile([0.008, 0.006, 1.0], (7, 1))
    way = daedal.solve(problem, (0.0, 2.0), (q[0], v[0]), atol=1.0, **steps).q[2, 1]
    q[:, 2] = [-2.0, -3.0, -way, -2.5, -4.0, -way, -5.0]
    found, single = (
        f(problem, (0.0, 1.0), (q, v), atol=0.0, on="threads", workers=1, **steps) for f in (daedal.solve_many, alone)
    )
    assert found.failed.tolist() == [2, 5]
    assert found.messages == single.messages
    assert found.final.y.tobytes() == single.final.y.tobytes()


@pytest.mark.parametrize("sharp", [1e-4, 1e-7])
@pytest.mark.parametrize("name", ["robertson", "hires", "oregonator"])
def test_small_stiff_problems(name, sharp, counted):
    model = daedal.library.get(name)
    begin, end = model.t_span
    span = begin, begin + 0.01 * (end - begin)
    times, options = np.linspace(*span, 5), {"rtol": sharp, "atol": 1e-3 * sharp}
    start = model.initial[0] if isinstance(model.initial, tuple) else model.initial
    factors = np.linspace(0.9, 1.1, 10)[:, None]
    if model.problem.params is None:  # equations that hold from any start
        given, varied = (
            (np.asarray(start) * factors, None),
            [(model.problem, row) for row in np.asarray(start) * factors],
        )
    else:
        given, rows = (start, None), np.asarray(model.problem.params) * factors
        options["params"], varied = rows, [(model.problem.with_params(row), start) for row in rows]
    found = daedal.solve_many(model.problem, span, given, t_eval=times, on="threads", workers=1, **options)
    assert counted["members"] >= 9
    options.pop("params", None)
    for k, (problem, y0) in enumerate(varied):
        one = daedal.solve(problem, span, y0, t_eval=times, **options)
        assert found.y[k].tobytes() == one.y.tobytes()
