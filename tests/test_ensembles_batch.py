"""The compiled loop over members: what it takes over from the driver, with the same bits."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import daedal
from ensemble_models import pendulum

COUNT = 12
G = np.linspace(2.0, 20.0, COUNT)
START = [1.0, 0.0], [0.0, 0.0]


def of_driver(problem, span, start, params, **options):
    """Solutions of some members by the driver."""
    return [daedal.solve(problem, span, start, params=p, **options) for p in params]


def rows_of(ensemble, member):
    """The events of one member."""
    table = ensemble.events
    return [
        tuple(table[name][i] for name in ("t", "name", "direction", "terminal"))
        for i in np.flatnonzero(np.asarray(table["member"]) == member)
    ]


def in_rows(solution):
    return [(r.t, r.name, r.direction, r.terminal) for r in solution.events]


def test_events_of_mechanisms_have_the_bits_of_the_driver(handed_back):
    problem = pendulum()
    events = [
        daedal.Event(lambda t, q, v: q[0], name="bottom", terminal=2),
        daedal.Event(lambda t, q, v, p: v[1] - 0.1 * p["g"], name="up"),
    ]
    times = np.linspace(0.0, 2.0, 5)
    options = {"events": events, "t_eval": times}
    ensemble = daedal.solve_many(problem, (0.0, 2.0), START, params={"g": G}, workers=1, chunk_size=5, **options)
    assert sum(handed_back) == 0
    assert set(ensemble.status) == {"finished", "event"}
    for k in (1, 4, COUNT - 1):
        [alone] = of_driver(problem, (0.0, 2.0), START, [{"g": G[k]}], **options)
        assert rows_of(ensemble, k) == in_rows(alone)
        assert_array_equal(ensemble.q[k][:, : alone.t.size], alone.q)
        assert np.isnan(ensemble.q[k][:, alone.t.size :]).all()
        if alone.status == "event":
            last = [record for record in alone.events if record.terminal][-1]
            assert ensemble.t_final[k] == last.t
            assert_array_equal(ensemble.final.y[k], last.y)


def test_velocity_constraints_run_in_the_loop(handed_back):
    """A skate on an inclined plane, which glides along cycloids (Neimark, Fufaev)."""

    def blade(t, q, v, p):
        return [np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]]

    skate = daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, p: [p["g"], 0.0, 0.0],
        n_q=3,
        velocity_constraint=blade,
        n_velocity_constraints=1,
        params={"g": 1.0},
    )
    start = [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]
    ensemble = daedal.solve_many(skate, (0.0, 3.0), start, params={"g": G}, workers=1, chunk_size=5)
    assert sum(handed_back) == 0
    [alone] = of_driver(skate, (0.0, 3.0), start, [{"g": G[4]}])
    assert_array_equal(ensemble.final.q[4], alone.q[:, -1])
    np.testing.assert_allclose(ensemble.final.q[:, 0], 0.5 * G * np.sin(3.0) ** 2, rtol=1e-4)


def test_an_output_by_name_is_that_at_the_event(handed_back):
    bottom = daedal.Event(lambda t, q, v: q[0], terminal=True)
    options = {"params": {"g": G}, "events": bottom, "workers": 1}
    by_name = daedal.solve_many(pendulum(), (0.0, 9.0), START, outputs=["y"], **options)
    whole = daedal.solve_many(pendulum(), (0.0, 9.0), START, **options)
    assert sum(handed_back) == 0 and by_name.failed.size == 0
    assert_array_equal(by_name["y"], whole.final.q[:, 1])
    np.testing.assert_allclose(by_name["y"], -1.0, atol=1e-6)


def test_many_events_of_one_run_are_all_kept(handed_back):
    """More events than the table of the loop holds at once."""
    problem = daedal.ODE(lambda t, y, p: [y[1], -p[0] * y[0]], 2, params=np.array([1.0]))
    rates = np.array([[400.0], [900.0], [1600.0]])
    zero = daedal.Event(lambda t, y: y[0], name="zero")
    ensemble = daedal.solve_many(problem, (0.0, 300.0), [1.0, 0.0], params=rates, events=zero, workers=1, chunk_size=2)
    assert sum(handed_back) == 0
    counts = np.bincount(np.asarray(ensemble.events["member"]), minlength=3)
    assert_array_equal(counts, np.floor(300.0 * np.sqrt(rates[:, 0]) / np.pi + 0.5))


@pytest.mark.parametrize("start", [[1.0, 0.0], np.array([1.0, 0.0]), np.tile([1.0, 0.0], (COUNT, 1))])
def test_plain_equations_run_in_the_loop_however_their_start_is_given(handed_back, start):
    problem = daedal.ODE(lambda t, y, p: [y[1], -p[0] * y[0]], 2, params=np.array([1.0]))
    ensemble = daedal.solve_many(problem, (0.0, 5.0), start, params=G[:, None], workers=1, chunk_size=7)
    assert sum(handed_back) == 0
    for k, alone in zip((3, 8), of_driver(problem, (0.0, 5.0), [1.0, 0.0], G[[3, 8], None])):
        assert_array_equal(ensemble.final.y[k], alone.y[:, -1])


IRREGULAR = {
    "exp": lambda t, y, p: [-p[0] * np.exp(-y[0])],
    "quotient": lambda t, y, p: [-y[0] / p[0] / (1.0 + y[0] ** 2)],
    "root": lambda t, y, p: [-np.sqrt(y[0] / p[0]) - np.log1p(y[0]) * (y[0] + 1.0) ** 1.5],
}


@pytest.mark.parametrize("name", IRREGULAR)
def test_equations_with_derivatives_that_can_be_infinite_run_in_the_loop(handed_back, name):
    problem = daedal.ODE(IRREGULAR[name], 1, params=np.array([1.0]))
    ensemble = daedal.solve_many(problem, (0.0, 0.4), [1.0], params=G[:, None] / 10.0, workers=1, chunk_size=7)
    assert sum(handed_back) == 0
    for k, alone in zip((3, 8), of_driver(problem, (0.0, 0.4), [1.0], G[[3, 8], None] / 10.0)):
        assert_array_equal(ensemble.final.y[k], alone.y[:, -1])


@pytest.mark.parametrize("implicit", [False, True])
def test_a_derivative_that_is_infinite_at_the_start_takes_the_parameters_of_its_member(implicit):
    """y' = p sqrt(y) + 1/10 from 0; the time in terms of u = sqrt(y) is known."""

    def rate(t, y, p):
        return [p[0] * np.sqrt(y[0]) + 0.1]

    def residual(t, y, yp, p):
        return [yp[0] - p[0] * np.sqrt(y[0]) - 0.1]

    problem = (daedal.ImplicitDAE if implicit else daedal.ODE)(
        residual if implicit else rate, 1, params=np.array([1.0])
    )
    start, rates = ([0.0], [0.1]) if implicit else [0.0], np.array([[0.5], [1.0], [2.0]])
    ensemble = daedal.solve_many(problem, (0.0, 1.0), start, params=rates, rtol=1e-7, atol=1e-9)
    u = np.sqrt(ensemble.final.y[:, 0])
    p = rates[:, 0]
    np.testing.assert_allclose(2.0 / p * (u - 0.1 / p * np.log1p(10.0 * p * u)), 1.0, atol=1e-4)


def test_slopes_that_are_left_open_are_computed_in_the_loop(handed_back):
    model = daedal.library.robertson()
    rates = np.asarray(model.problem.params) * np.linspace(0.5, 2.0, COUNT)[:, None]
    start, options = (model.initial[0], None), {"rtol": 1e-5, "atol": model.options["atol"]}
    half = daedal.Event(lambda t, y, yp: y[0] - 0.5, name="half")
    ensemble = daedal.solve_many(
        model.problem, model.t_span, start, params=rates, workers=1, chunk_size=7, events=half, **options
    )
    assert sum(handed_back) == 0
    for k, alone in zip((2, 9), of_driver(model.problem, model.t_span, start, rates[[2, 9]], events=half, **options)):
        assert_array_equal(ensemble.final.y[k], alone.y[:, -1])
        assert rows_of(ensemble, k) == in_rows(alone)


REACTOR = (lambda t, y, z, p: [1.0 - y[0] - z[0], 1.0 - y[1] + p[0] * z[0]]), 2
OPEN_Z = {
    "explicit": (*REACTOR, lambda t, y, z, p: [z[0] - y[0] * np.exp(10.0 * (1.0 - p[0] / y[1]))]),
    "implicit": (*REACTOR, lambda t, y, z, p: [z[0] - p[0] * y[0] * np.exp(-0.1 * z[0] - 1.0 / y[1])]),
    "infinite at the guess": (lambda t, y, z, p: [-np.exp(-p[0] / z[0])], 1, lambda t, y, z, p: [z[0] - 1.0 - y[0]]),
}


@pytest.mark.parametrize("name", OPEN_Z)
def test_algebraic_variables_that_are_left_open_are_computed_in_the_loop(handed_back, name):
    f, n, g = OPEN_Z[name]
    problem = daedal.SemiExplicitDAE(f, g, n, 1, params=np.array([1.0]))
    starts = np.ones((COUNT, n)) + np.linspace(0.0, 0.5, COUNT)[:, None]
    ensemble = daedal.solve_many(problem, (0.0, 1.0), (starts, None), params=G[:, None] / 10, workers=1, chunk_size=7)
    assert sum(handed_back) == 0
    for k in (3, 8):
        alone = daedal.solve(problem, (0.0, 1.0), (starts[k], None), params=G[[k]] / 10)
        assert_array_equal(ensemble.final.y[k], alone.y[:, -1])


def test_algebraic_variables_for_which_the_first_guess_fails_are_left_to_the_driver(handed_back):
    problem = daedal.SemiExplicitDAE(
        lambda t, y, z, p: [-z[0]], lambda t, y, z, p: [np.log(z[0]) - p[0] * y[0]], 1, 1, params=[1.0]
    )
    ensemble = daedal.solve_many(problem, (0.0, 0.1), ([0.1], None), params=G[:, None] / 20.0, workers=1)
    assert sum(handed_back) > 0 and ensemble.success
    alone = daedal.solve(problem, (0.0, 0.1), ([0.1], None), params=G[[5]] / 20.0)
    assert_array_equal(ensemble.final.y[5], alone.y[:, -1])


def test_starts_without_slopes_that_are_inconsistent_fail_as_with_the_driver(handed_back):
    def residual(t, y, yp, p):
        return [yp[0] + p[0] * y[0] - y[1], y[1] - y[0] ** 2]

    problem = daedal.ImplicitDAE(residual, 2, params=np.array([1.0]))
    starts = np.tile([0.5, 0.25], (COUNT, 1))
    starts[7, 1] = 0.3
    ensemble = daedal.solve_many(problem, (0.0, 1.0), (starts, None), params=G[:, None], workers=1, method="rosenbrock")
    assert sum(handed_back) == 1
    assert ensemble.failed.tolist() == [7] and "do not satisfy" in ensemble.messages[7]


def test_a_function_that_raises_for_one_member_does_not_see_the_parameters_of_another(handed_back):
    def residual(t, y, yp, p):
        if p[0] > 15.0:
            raise ValueError("too much")
        return [yp[0] + p[0] * y[0]]

    problem = daedal.ImplicitDAE(residual, 1, params=np.array([1.0]))
    options = {"params": G[:, None], "workers": 1, "method": "rosenbrock"}
    ensemble = daedal.solve_many(problem, (0.0, 1.0), ([1.0], None), **options)
    assert ensemble.failed.tolist() == np.flatnonzero(G > 15.0).tolist()
    assert all("too much" in ensemble.messages[k] for k in ensemble.failed)


def test_events_that_cannot_be_traced_are_left_to_the_driver(handed_back):
    bottom = daedal.Event(lambda t, q, v: q[0] + 0 * hash(q[0]), terminal=True)
    ensemble = daedal.solve_many(pendulum(), (0.0, 2.0), START, params={"g": G[:4]}, events=bottom, workers=1)
    assert handed_back == [1, 1]  # two members are solved before chunks are made
    [alone] = of_driver(pendulum(), (0.0, 2.0), START, [{"g": G[3]}], events=bottom)
    assert ensemble.t_final[3] == alone.events[-1].t


def test_a_zarr_group_holds_the_ensemble_and_is_replaced_as_a_whole(tmp_path):
    zarr = pytest.importorskip("zarr")
    ensemble = daedal.solve_many(pendulum(), (0.0, 1.0), START, params={"g": G}, t_eval=[0.5, 1.0], workers=1)
    for _ in range(2):
        assert ensemble.save(tmp_path / "sweep.zarr") == tmp_path / "sweep.zarr"
    group = zarr.open_group(tmp_path / "sweep.zarr", mode="r")
    for name in ("y", "final"):
        assert_array_equal(group[name][:], ensemble.arrays[name])
    for name in ("t", "t_final", "failed"):
        assert_array_equal(group[name][:], getattr(ensemble, name))
    assert_array_equal(group["parameter/g"][:], G)
    assert group.attrs["names"] == list(ensemble.names)
    assert [group.attrs["status"][code] for code in group["status"][:]] == list(ensemble.status)
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.zarr"]
    assert ensemble.save(tmp_path / "new" / "sweep.zarr").is_dir()
    (tmp_path / "notes.zarr").mkdir()
    with pytest.raises(daedal.InvalidProblemError, match="not a Zarr group"):
        ensemble.save(tmp_path / "notes.zarr")
