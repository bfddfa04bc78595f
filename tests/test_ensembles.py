"""Many runs: the same bits whoever computes them, failures that stop nobody, shapes as NumPy broadcasts."""

import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import daedal
from daedal.ensembles import Aggregator, Histogram, Quantiles
from daedal.ensembles.columns import Members
from daedal.ensembles.inputs import read_params, read_starts
from ensemble_models import START, bouncing_ball, decay, moody, pendulum

GRAVITIES = np.linspace(1.0, 10.0, 41)
SPAN = (0.0, 1.0)


@pytest.fixture(scope="module")
def reference():
    """The members one by one, by `solve`."""
    problem = pendulum()
    return np.array([daedal.solve(problem, SPAN, START, params={"g": g}).y[:, -1] for g in GRAVITIES])


# --- the same bits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("chunk_size", [1, 3, 64])
def test_members_have_the_bits_of_single_runs_for_any_workers_and_chunks(reference, workers, chunk_size):
    ensemble = daedal.solve_many(
        pendulum(), SPAN, START, params={"g": GRAVITIES}, workers=workers, chunk_size=chunk_size
    )
    assert ensemble.success and ensemble.failed.size == 0
    assert_array_equal(ensemble.final.y, reference)
    assert_array_equal(ensemble.final.q, reference[:, :2])
    assert_array_equal(ensemble.final.v, reference[:, 2:])


def test_output_times_have_the_bits_of_single_runs():
    times = np.array([0.0, 0.25, 0.7])
    ensemble = daedal.solve_many(pendulum(), SPAN, START, params={"g": GRAVITIES[:5]}, t_eval=times, chunk_size=2)
    assert ensemble.q.shape == ensemble.v.shape == (5, 2, 3)
    for k, g in enumerate(GRAVITIES[:5]):
        sol = daedal.solve(pendulum(), SPAN, START, params={"g": g}, t_eval=[*times, 1.0])
        assert_array_equal(ensemble.y[k], sol.y[:, :3])
        assert_array_equal(ensemble.final.y[k], sol.y[:, 3])


def test_batches_are_used_for_traced_mechanisms_and_hand_back_what_they_cannot_do():
    from daedal.driver.request import checked_settings
    from daedal.ensembles.backends import probe
    from daedal.ensembles.inputs import EnsembleRequest
    from daedal.ensembles.part import FINISHED, Part, layout_of

    problem = pendulum()
    request = EnsembleRequest(problem, checked_settings(), SPAN, layout=layout_of(problem))
    angles = np.array([0.0, 0.3, 0.5])
    q0 = np.column_stack([np.sin(angles), -np.cos(angles)])
    q0[1] *= 1.5  # not on the circle
    members = Members(read_starts(problem, (q0, [0.0, 0.0])), None)
    found = probe(request, next(members.chunks(1)))
    assert found.worker._first is not None and not found.interpreter  # the loop gave the bits of the driver
    part = found.worker(next(members.chunks(3)))
    assert part.fell_back == 1
    assert part.status.tolist() == [FINISHED, 2, FINISHED]
    assert "violate the constraints" in part.messages[1]
    assert isinstance(part, Part)


def robertson():
    """Robertson's reaction with rates that vary, and y' that belongs to them."""
    model = daedal.library.robertson()
    rates = model.problem.params * np.random.default_rng(1).uniform(0.9, 1.1, (30, 3))
    slopes = np.column_stack([-rates[:, 0], rates[:, 0], np.zeros(30)])
    slopes[7, 0] *= 1.5  # not consistent
    return model, (np.array([1.0, 0.0, 0.0]), slopes), rates


@pytest.mark.parametrize("t_eval", [None, [0.0, 1.0, 1e4]])
def test_stiff_problems_have_the_bits_of_single_runs_in_batches(t_eval):
    model, (y0, slopes), rates = robertson()
    options = {"rtol": 1e-5, "atol": model.options["atol"]}
    ensemble = daedal.solve_many(
        model.problem, model.t_span, (y0, slopes), params=rates, t_eval=t_eval, workers=2, chunk_size=8, **options
    )
    solver = daedal.prepare(model.problem, **options)
    times = [model.t_span[1]] if t_eval is None else [*t_eval, model.t_span[1]]
    assert ensemble.failed.tolist() == [7] and "initial" in ensemble.messages[7]
    for k in np.delete(np.arange(30), 7):
        sol = solver.solve(model.t_span, (y0, slopes[k]), rates[k], t_eval=times)
        assert_array_equal(ensemble.final.y[k], sol.y[:, -1])
        if t_eval is not None:
            assert_array_equal(ensemble.y[k], sol.y[:, :-1])


def test_signs_that_are_lost_are_left_to_the_driver():
    model, (y0, slopes), rates = robertson()
    options = {"rtol": 1e-3, "atol": 1e-6}  # far too coarse for y2
    ensemble = daedal.solve_many(model.problem, model.t_span, (y0, slopes[:6]), params=rates[:6], **options)
    for k in np.setdiff1d(np.arange(6), ensemble.failed):
        sol = daedal.solve(
            model.problem, model.t_span, (y0, slopes[k]), params=rates[k], t_eval=[model.t_span[1]], **options
        )
        assert_array_equal(ensemble.final.y[k], sol.y[:, -1])


def test_reductions_have_the_same_bits_for_any_workers_and_chunks():
    gravities = np.linspace(1.0, 10.0, 2500)
    found = []
    for workers, chunk in ((1, 2500), (2, 333), (7, 64)):
        ensemble = daedal.solve_many(
            pendulum(), SPAN, START, params={"g": gravities}, workers=workers, chunk_size=chunk,
            reduce=["mean", "var", "quantiles", "min", "max"], t_eval=[0.5, 1.0],
        )  # fmt: skip
        found.append(ensemble.reduced)
    for other in found[1:]:
        for name, quantities in found[0].items():
            assert_array_equal(other[name]["y"], quantities["y"])
    whole = daedal.solve_many(pendulum(), SPAN, START, params={"g": gravities}, t_eval=[0.5, 1.0])
    assert_allclose(found[0]["mean"]["y"], whole.y.mean(axis=0), rtol=0, atol=1e-14)
    assert_allclose(found[0]["var"]["y"], whole.y.var(axis=0, ddof=1), rtol=1e-12)
    assert_allclose(found[0]["quantiles"]["y"], np.quantile(whole.y, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0), atol=1e-14)
    assert_array_equal(found[0]["min"]["y"], whole.y.min(axis=0))


def test_threads_of_the_users_need_no_pickling(monkeypatch):
    def refuse(request):
        raise AssertionError("pickled")

    monkeypatch.setattr("daedal.ensembles.executors.packed", refuse)
    lock = threading.Lock()  # cannot be pickled

    def force(t, q, v, p):
        with lock:
            return [-p["g"] * np.sin(q[0])]

    swing = daedal.MechanicalSystem(1.0, force, n_q=1, params={"g": 9.81})
    with ThreadPoolExecutor(2) as pool:
        found = daedal.solve_many(swing, (0.0, 0.5), ([1.0], [0.0]), params={"g": GRAVITIES[:6]}, on=pool, chunk_size=2)
    alone = daedal.solve(swing.with_params({"g": GRAVITIES[4]}), (0.0, 0.5), ([1.0], [0.0]))
    assert found.final.y[4] == pytest.approx(alone.y[:, -1], abs=1e-5)


@pytest.mark.slow
def test_processes_and_executors_give_the_same_bits(reference):
    common = {"params": {"g": GRAVITIES}, "chunk_size": 9}
    for on in ("processes", ThreadPoolExecutor(3)):
        ensemble = daedal.solve_many(pendulum(), SPAN, START, on=on, workers=2, **common)
        assert_array_equal(ensemble.final.y, reference)
    with ProcessPoolExecutor(1) as pool:
        assert_array_equal(daedal.solve_many(pendulum(), SPAN, START, on=pool, **common).final.y, reference)


# --- inputs -----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.sampled_from([None, 1, 4, 5]), min_size=3, max_size=3),
)
def test_starts_and_parameters_are_broadcast_as_numpy_does(lengths):
    def stack(length, size):
        values = np.arange(float(size)) + 1.0
        return values if length is None else values + np.arange(length)[:, None]

    q0, v0, g = lengths
    shapes = [() if length is None else (length,) for length in lengths]
    problem = pendulum()
    gravity = 9.81 if g is None else 9.0 + np.arange(g)
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(daedal.InvalidProblemError, match="members"):
            Members(read_starts(problem, (stack(q0, 2), stack(v0, 2))), read_params(problem, {"g": gravity}))
        return
    members = Members(read_starts(problem, (stack(q0, 2), stack(v0, 2))), read_params(problem, {"g": gravity}))
    count = expected[0] if expected else 1
    assert members.count == count
    seen = [chunk.member(i) for chunk in members.chunks(2) for i in range(chunk.count)]
    assert len(seen) == count
    for k, ((q, v), params) in enumerate(seen):
        assert_array_equal(q, np.broadcast_to(stack(q0, 2), (count, 2))[k])
        assert_array_equal(v, np.broadcast_to(stack(v0, 2), (count, 2))[k])
        assert params["g"] == np.broadcast_to(gravity, count)[k]


def test_all_forms_of_inputs_give_the_same_runs(reference):
    import pandas

    problem, gravities = pendulum(), GRAVITIES[:6]
    whole = np.tile(np.concatenate(START), (6, 1))
    forms = [
        (START, pandas.DataFrame({"g": gravities})),
        (START, [{"g": g} for g in gravities]),
        (START, ({"g": g} for g in gravities)),
        (whole, {"g": gravities}),
        ([START] * 6, {"g": gravities}),
        ((START for _ in range(6)), {"g": gravities}),
        ({"x": 1.0, "y": 0.0, "x'": 0.0, "y'": 0.0}, {"g": gravities}),
    ]
    for initial, params in forms:
        ensemble = daedal.solve_many(problem, SPAN, initial, params=params, chunk_size=4)
        assert ensemble.members == 6
        assert_array_equal(ensemble.final.y, reference[:6])
    vector = daedal.MechanicalSystem(1.0, lambda t, q, v, p: [-p[1] * q[0]], n_q=1, params=np.array([1.0, 4.0]))
    by_number = daedal.solve_many(vector, SPAN, ([1.0], [0.0]), params={1: [4.0, 9.0]})
    as_rows = daedal.solve_many(vector, SPAN, ([1.0], [0.0]), params=[[1.0, 4.0], [1.0, 9.0]])
    assert_array_equal(by_number.final.q, as_rows.final.q)
    assert_allclose(by_number.final.q[:, 0], np.cos([2.0, 3.0]), atol=1e-5)


@pytest.mark.parametrize(
    ("initial", "params", "words"),
    [
        ((np.zeros((3, 2)), np.zeros((4, 2))), None, r"\(q0\) has 3 members and initial \(v0\) has 4"),
        ((np.zeros((3, 3)), None), None, r"\(q0\) has shape \(3, 3\); the last axis must have length 2"),
        (START, {"k": [1.0]}, "'k' is not among the parameters"),
        (START, {"g": ["a", "b"]}, ""),
        (None, None, "initial is missing"),
        (np.zeros((3, 5)), None, "last axis must have length 4"),
        ({}, None, "empty"),
        (7.0, None, "initial must be"),
        ((["a", "b"], None), None, "real numbers"),
    ],
)
def test_bad_input_is_named(initial, params, words):
    if words == "":
        ensemble = daedal.solve_many(pendulum(), SPAN, initial, params=params)
        assert ensemble.failed.tolist() == [0, 1]
        return
    with pytest.raises(daedal.InvalidProblemError, match=words):
        daedal.solve_many(pendulum(), SPAN, initial, params=params)


def test_wrong_options_are_refused():
    run = lambda **options: daedal.solve_many(pendulum(), SPAN, START, **options)  # noqa: E731
    for options, words in (
        ({"on": "moon"}, "on must be"),
        ({"workers": 0}, "workers"),
        ({"chunk_size": 1.5}, "chunk_size"),
        ({"reduce": "histogram"}, "Histogram"),
        ({"reduce": []}, "reduce"),
        ({"outputs": ["nothing"]}, "no variable 'nothing'"),
        ({"outputs": [1]}, "outputs"),
        ({"member_timeout": -1.0}, "member_timeout"),
        ({"method": "unheard"}, "unheard"),
        ({"params": {"g": 1.0}, "t_eval": [3.0]}, "t_eval"),
    ):
        with pytest.raises(daedal.InvalidProblemError, match=words):
            run(**options)
    free = daedal.MechanicalSystem(1.0, lambda t, q, v: [-1.0], n_q=1)
    with pytest.raises(daedal.InvalidProblemError, match=r"(defined without|has no) parameters"):
        daedal.solve_many(free, SPAN, ([0.0], [0.0]), params=[[1.0]])


# --- outputs, events, modes, other classes ----------------------------------------------------------------------------


def test_outputs_by_name_and_by_function():
    params = {"g": GRAVITIES[:4]}
    named = daedal.solve_many(pendulum(), SPAN, START, params=params, outputs=["y", "x'"], t_eval=[0.5, 1.0])
    states = daedal.solve_many(pendulum(), SPAN, START, params=params, t_eval=[0.5, 1.0])
    assert_array_equal(named["y"], states.q[:, 1])
    assert_array_equal(named.outputs["x'"], states.v[:, 0])
    made = daedal.solve_many(pendulum(), SPAN, START, params=params, outputs=lambda sol: {"lowest": sol.q[1].min()})
    assert made["lowest"].shape == (4,) and np.all(made["lowest"] < -0.4)
    assert "outputs is a Python function" in made.message
    with pytest.raises(KeyError, match="lowest"):
        made["highest"]
    with pytest.raises(daedal.InvalidProblemError, match="t_eval"):
        _ = made.y


def test_events_end_runs_and_make_a_table():
    floor = daedal.Event(lambda t, q, v, p: q[0], terminal=True, name="floor")
    heights = np.array([[1.0], [2.0], [20.0]])
    ensemble = daedal.solve_many(bouncing_ball(), (0.0, 1.5), (heights, [0.0]), events=floor, t_eval=[0.1, 1.4])
    assert ensemble.status.tolist() == ["event", "event", "finished"]
    assert_allclose(ensemble.final.t, [*np.sqrt(2.0 * heights[:2, 0] / 9.81), 1.5], rtol=1e-8)
    assert_allclose(ensemble.final.q[:2, 0], 0.0, atol=1e-9)
    assert np.isnan(ensemble.q[0, 0, 1]) and np.isfinite(ensemble.q[2]).all()
    assert ensemble.events["member"].tolist() == [0, 1] and set(ensemble.events["name"]) == {"floor"}


def test_runs_through_modes_and_problems_that_are_built_anew():
    model = daedal.library.bouncing_ball()
    ensemble = daedal.solve_many(model.problem, model.t_span, model.initial, **model.options)
    sol = daedal.solve(model.problem, model.t_span, model.initial, t_eval=[model.t_span[1]], **model.options)
    assert_array_equal(ensemble.final.y[0], sol.y[:, -1])
    assert ensemble.events["t"].size == len(sol.events) > 1

    def build(restitution):
        made = daedal.library.bouncing_ball(restitution=restitution)
        return made.problem, made.initial

    built = daedal.solve_many(build, model.t_span, None, params={"restitution": [0.5, 0.8]}, **model.options)
    assert built.members == 2 and built.success and "builds its problem" in built.message


def test_other_classes_of_problems():
    rates = np.array([1.0, 2.0, 3.0])
    for on in ("threads",):
        ensemble = daedal.solve_many(decay(), SPAN, ([1.0], None), params=rates, rtol=1e-8, on=on)
        assert_allclose(ensemble.final.y[:, 0], np.exp(-rates), rtol=1e-6)
    semi = daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [z[0] + y[0]], 1, 1)
    found = daedal.solve_many(semi, SPAN, (np.array([[1.0], [2.0]]), None), rtol=1e-8)
    assert_allclose(found.final.y, np.array([[1.0, -1.0], [2.0, -2.0]]) * np.exp(-1.0), rtol=1e-6)
    second = daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[0]], 1)
    found = daedal.solve_many(second, SPAN, (np.array([[1.0], [2.0]]), [0.0]), rtol=1e-8, atol=1e-10)
    assert_allclose(found.final.y[:, 0], np.array([1.0, 2.0]) * np.cos(1.0), rtol=1e-5)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_member_that_raises_or_returns_nan_stops_nobody():
    moods = np.array([[0.0], [1.0], [0.0], [3.0]])
    ensemble = daedal.solve_many(moody(), SPAN, ([1.0], [-1.0]), params=moods)
    assert ensemble.failed.tolist() == [1, 3]
    assert "KeyError: 'bad mood'" in ensemble.messages[1]
    assert ensemble.messages[3]
    assert_allclose(ensemble.final.y[[0, 2], 0], np.exp(-1.0), rtol=1e-5)
    assert np.isnan(ensemble.final.y[[1, 3]]).all()
    assert "Python function" in ensemble.message


@pytest.mark.slow
@pytest.mark.race
def test_a_member_that_hangs_or_kills_its_process_stops_nobody():
    moods = np.array([[0.0], [2.0], [0.0], [4.0], [1.0], [0.0]])
    ensemble = daedal.solve_many(
        moody(), SPAN, ([1.0], [-1.0]), params=moods, on="processes", workers=2, chunk_size=3, member_timeout=1.5
    )
    assert ensemble.status.tolist() == ["finished", "timed out", "finished", "failed", "failed", "finished"]
    assert "member_timeout" in ensemble.messages[1]
    assert "exit code 7" in ensemble.messages[3]
    assert_allclose(ensemble.final.y[[0, 2, 5], 0], np.exp(-1.0), rtol=1e-5)


def test_a_run_that_takes_too_long_is_given_up_in_compiled_code_too():
    steep = daedal.MechanicalSystem(1.0, lambda t, q, v, p: [-p[0] * q[0]], n_q=1, params=np.array([1.0]))
    ensemble = daedal.solve_many(
        steep, (0.0, 1e3), ([1.0], [0.0]), params=[[1.0], [1e8], [2.0]], member_timeout=0.5, method="dopri5"
    )
    assert ensemble.status.tolist() == ["finished", "timed out", "finished"]


def test_failed_members_are_run_again_with_other_options():
    ensemble = daedal.solve_many(pendulum(), SPAN, START, params={"g": [1.0, 9.0, 2.0]}, max_steps=20, rtol=1e-6)
    assert 0 < ensemble.failed.size < 3
    again = ensemble.retry(max_steps=None)
    assert again.success and np.isfinite(again.final.y).all()
    assert_array_equal(again.final.y[0], ensemble.final.y[0])
    assert again.retry() is again
    stream = daedal.solve_many(
        pendulum(), SPAN, START, params=({"g": g} for g in (1.0, 9.0, 2.0)), max_steps=20, rtol=1e-6
    )
    assert_array_equal(stream.retry(max_steps=None).final.y, again.final.y)


def test_an_interrupt_returns_what_is_done():
    def impatient():
        for k in range(100):
            if k == 30:
                raise KeyboardInterrupt
            yield {"g": 1.0 + k}

    ensemble = daedal.solve_many(pendulum(), SPAN, START, params=impatient(), chunk_size=10, workers=1)
    assert ensemble.members == 21 or ensemble.members == 30
    assert "Interrupted" in ensemble.message and np.isfinite(ensemble.final.y).all()


# --- reductions -------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(-1e12, 1e12).filter(lambda x: x == 0.0 or abs(x) > 1e-12), min_size=1, max_size=300),
    st.floats(0.0, 1.0),
)
def test_quantiles_of_many_members_are_within_their_error(values, level):
    x = np.array(values)
    reduction = Quantiles([level], alpha=1e-2, exact=0)
    parts = [reduction.summary(part) for part in np.array_split(x, 3) if part.size]
    merged = parts[0]
    for other in parts[1:]:
        merged = reduction.merge(merged, other)
    found = float(reduction.result(merged)[0])
    right = np.sort(x)[int(np.floor(level * (x.size - 1)))]
    assert abs(found - right) <= 1e-2 * abs(right) * (1 + 1e-9)


def test_histograms_and_own_reductions():
    class Largest(Aggregator):
        name = "largest"

        def summary(self, values):
            return values.max(axis=0)

        def merge(self, first, second):
            return np.maximum(first, second)

    common = {"params": {"g": np.linspace(1.0, 10.0, 1500)}, "outputs": "y"}
    whole = daedal.solve_many(pendulum(), SPAN, START, **common)["y"]
    ensemble = daedal.solve_many(
        pendulum(), SPAN, START, **common,
        reduce=[Histogram((-1.0, 0.0, 10)), Largest(), (lambda block: block.sum(axis=0), lambda a, b: a + b)],
    )  # fmt: skip
    counts, edges = np.histogram(whole, 10, (-1.0, 0.0))
    assert_array_equal(ensemble.reduced["histogram"]["y"]["counts"], counts)
    assert_array_equal(ensemble.reduced["histogram"]["y"]["edges"], edges)
    assert ensemble.reduced["largest"]["y"] == whole.max()
    assert_allclose(ensemble.reduced["lambda"]["y"], whole.sum(), rtol=1e-12)
    with pytest.raises(daedal.InvalidProblemError, match="reduce"):
        _ = ensemble.final


@pytest.mark.slow
def test_100_000_members_with_a_reduction_take_bounded_memory():
    import tracemalloc

    params = ({"g": 5.0 + k % 7} for k in range(100_000))
    problem = pendulum()
    daedal.solve_many(problem, (0.0, 0.05), START, params={"g": [1.0, 2.0]}, reduce="mean")
    tracemalloc.start()
    ensemble = daedal.solve_many(
        problem, (0.0, 0.05), START, params=np_params(params), reduce=["mean", "var"], chunk_size=1000, rtol=1e-3
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ensemble.members == 100_000 and ensemble.failed.size == 0
    assert peak < 30e6


def np_params(stream):
    """The stream itself: a name for what the test hands over."""
    return stream


# --- checkpoints ------------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_gone_on_with_and_a_changed_request_is_refused(tmp_path, reference):
    folder = tmp_path / "runs"
    first = daedal.solve_many(pendulum(), SPAN, START, params={"g": GRAVITIES}, checkpoint=folder, chunk_size=7)
    assert_array_equal(first.final.y, reference)
    files = sorted(folder.glob("part-*.npz"))
    assert files
    files[-1].unlink()
    files[0].write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="run again"):
        again = daedal.solve_many(pendulum(), SPAN, START, params={"g": GRAVITIES}, checkpoint=folder, chunk_size=5)
    assert_array_equal(again.final.y, reference)
    reduced = daedal.solve_many(pendulum(), SPAN, START, params={"g": GRAVITIES}, checkpoint=folder, reduce="mean")
    assert_allclose(reduced.reduced["mean"]["y"], reference.mean(axis=0), atol=1e-15)
    for other in ({"rtol": 1e-4}, {"t_eval": [0.5]}):
        with pytest.raises(daedal.InvalidProblemError, match="a different request"):
            daedal.solve_many(pendulum(), SPAN, START, params={"g": GRAVITIES}, checkpoint=folder, **other)
    with pytest.raises(daedal.InvalidProblemError, match="a different request"):
        daedal.solve_many(pendulum(), SPAN, START, params={"g": GRAVITIES + 1.0}, checkpoint=folder)


def test_a_full_disk_ends_the_checkpoints_and_not_the_runs(tmp_path, monkeypatch):
    import daedal.ensembles.checkpoint as module

    write = module._write

    def full(path, data):
        if path.suffix == ".npz":
            raise OSError(28, "No space left on device")
        write(path, data)

    monkeypatch.setattr(module, "_write", full)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        ensemble = daedal.solve_many(pendulum(), SPAN, START, params={"g": GRAVITIES[:5]}, checkpoint=tmp_path / "runs")
    assert ensemble.success and "No space left" in ensemble.message


_KILLED = """
import sys, time
import numpy as np
import daedal
import daedal.ensembles.checkpoint as checkpoint
from ensemble_models import START, pendulum
checkpoint._SECONDS = 0.0
def slow():
    for k in range(41):
        if k > 20:
            print("halfway", flush=True)
            time.sleep(60.0)
        yield {"g": np.linspace(1.0, 10.0, 41)[k]}
daedal.solve_many(pendulum(), (0.0, 1.0), START, params=slow(), checkpoint=sys.argv[1], chunk_size=4, workers=1)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(tmp_path, reference):
    folder = tmp_path / "runs"
    root = Path(__file__).parent
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(folder)], stdout=subprocess.PIPE, cwd=root, text=True
    )
    assert process.stdout.readline().strip() == "halfway"
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = sum(int(file.stem.split("-")[2]) for file in folder.glob("part-*.npz"))
    assert 10 <= kept < 41
    began = time.perf_counter()
    ensemble = daedal.solve_many(
        pendulum(), SPAN, START, params=({"g": g} for g in GRAVITIES), checkpoint=folder, chunk_size=4
    )
    assert_array_equal(ensemble.final.y, reference)
    assert time.perf_counter() - began < 60.0


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_tables_files_and_words(tmp_path):
    import pickle

    ensemble = daedal.solve_many(pendulum(), SPAN, START, params={"g": GRAVITIES[:3]}, t_eval=[0.5, 1.0])
    frame = ensemble.to_dataframe()
    assert list(frame.columns) == ["g", "x", "y", "x'", "y'", "t_final", "status"]
    assert_array_equal(frame["x"], ensemble.final.q[:, 0])
    data = ensemble.to_xarray()
    assert data["y"].shape == (3, 4, 2)
    assert_array_equal(data["y"].sel(variable="x", time=0.5), ensemble["x"][:, 0])
    path = ensemble.save(tmp_path / "runs.npz")
    with np.load(path) as stored:
        assert_array_equal(stored["y"], ensemble.y)
    again = daedal.load(path)
    assert repr(again) == repr(ensemble)
    assert_array_equal(again.final.q, ensemble.final.q)
    assert_array_equal(again.parameters()["g"], GRAVITIES[:3])
    assert "3 finished" in repr(ensemble) and "runs a second" in repr(ensemble)
    assert_array_equal(pickle.loads(pickle.dumps(ensemble)).final.q, ensemble.final.q)


def test_progress_shows_the_rate(capsys):
    daedal.solve_many(pendulum(), SPAN, START, params={"g": GRAVITIES[:3]}, progress=True)
    assert "runs" in capsys.readouterr().err


def test_samples_are_stratified_balanced_and_repeatable():
    from scipy import stats

    points = daedal.ensembles.sample({"a": (2.0, 4.0), "b": stats.norm(1.0, 0.5)}, 64, seed=3)
    assert sorted(((points["a"] - 2.0) * 32.0).astype(int).tolist()) == list(range(64))
    strata = (stats.norm(1.0, 0.5).cdf(points["b"]) * 64.0).astype(int)
    assert sorted(strata.tolist()) == list(range(64))
    assert_array_equal(
        daedal.ensembles.sample({"a": (2.0, 4.0), "b": stats.norm(1.0, 0.5)}, 64, seed=3)["b"], points["b"]
    )
    sobol = daedal.ensembles.sample({"a": (0.0, 1.0), "b": (0.0, 1.0)}, 256, method="sobol", frame=True)
    assert abs(sobol["a"].mean() - 0.5) < 1e-2 and np.sum((sobol["a"] < 0.5) & (sobol["b"] < 0.5)) == 64
    for wrong, words in (
        (lambda: daedal.ensembles.sample({}, 3), "distributions"),
        (lambda: daedal.ensembles.sample({"a": (1.0, 0.0)}, 3), "interval"),
        (lambda: daedal.ensembles.sample({"a": 7}, 3), "'a'"),
        (lambda: daedal.ensembles.sample({"a": (0.0, 1.0)}, 0), "n must"),
        (lambda: daedal.ensembles.sample({"a": (0.0, 1.0)}, 3, method="magic"), "method"),
    ):
        with pytest.raises(daedal.InvalidProblemError, match=words):
            wrong()


def test_plots_show_bands_lines_and_scatter(tmp_path):
    params = daedal.ensembles.sample({"g": (1.0, 10.0)}, 20)
    over_time = daedal.solve_many(pendulum(), SPAN, START, params=params, t_eval=np.linspace(0.0, 1.0, 9))
    bands = over_time.plot(variables=["x", "y"], pyplot=False, save=tmp_path / "bands.png")
    assert (tmp_path / "bands.png").stat().st_size > 1000
    median = bands.axes[0].lines[0].get_ydata()
    assert_allclose(median, np.median(over_time["x"], axis=0))
    lines = over_time.plot("lines", variables=["x"], pyplot=False)
    assert len(lines.axes[0].lines) == 20
    final = daedal.solve_many(pendulum(), SPAN, START, params=params)
    points = final.plot(variables=["x", "y"], pyplot=False).axes[0].collections[0].get_offsets()
    assert_array_equal(np.asarray(points), np.column_stack([params["g"], final.final.q[:, 0]]))
    assert sum(axis.get_visible() for axis in final.plot(pyplot=False).axes) == 4
    with pytest.raises(daedal.InvalidProblemError, match="t_eval"):
        final.plot("bands")
    with pytest.raises(daedal.InvalidProblemError, match="variables"):
        final.plot("scatter", variables=["z"])


def test_sweeps_of_the_library_on_the_command_line(tmp_path, capsys):
    from daedal.cli import main

    file = tmp_path / "sweep.npz"
    arguments = ["sweep", "planar_pendulum", "--set", "gravity=1:9:5", "--set", "mass=2", "--t-end", "1"]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--save", str(file), "--workers", "1"])
    assert ended.value.code == 0
    stored = daedal.load(file)
    assert_array_equal(stored.parameters()["gravity"], np.linspace(1.0, 9.0, 5))
    model = daedal.library.planar_pendulum(gravity=5.0, mass=2.0)
    sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, t_eval=[1.0], **model.options)
    with np.load(file) as arrays:
        assert_array_equal(arrays["final"][2], sol.y[:, -1])
    assert "5 finished" in capsys.readouterr().out
    for wrong in (["--set", "gravity=5"], ["--set", "gravity=1:2:x"], ["--set", "gravity=1:2:0"]):
        with pytest.raises(SystemExit) as ended:
            main(["sweep", "planar_pendulum", *wrong])
        assert ended.value.code == 2
