"""Estimated global errors cover the true ones, and are not much larger."""

import numpy as np
import pytest

import daedal
from daedal.analysis import certify

MODELS = [
    *("planar_pendulum", "linear_index1", "hessenberg_index2", "index3_chain", "robertson", "regulator"),
    *("rc_circuit", "van_der_pol", "particle_on_paraboloid", "jay_index2", "relay_control"),
]


@pytest.mark.parametrize("name", MODELS)
def test_estimates_cover_known_errors(name):
    model, rtol = getattr(daedal.library, name)(), 1e-5
    times = np.linspace(model.t_span[0], model.reference.t, 20)
    found = certify(model.problem, (times[0], times[-1]), model.initial, rtol=rtol, atol=1e-3 * rtol, t_eval=times)
    known = np.asarray(model.reference.y)
    names = [*found.errors][: known.size]
    true = np.array([abs(found.solution[name][-1] - value) for name, value in zip(names, known, strict=False)])
    estimated = np.array([found[name][-1] for name in names])
    floor = max(model.reference.accuracy, 1e-12) * np.nanmax(np.abs(known))
    assert np.all((true <= estimated + floor) | np.isnan(true))


def test_errors_over_the_whole_interval():
    problem = daedal.ODE(lambda t, y: [y[1], -y[0]], 2, names="x v")
    found = certify(problem, (0.0, 50.0), [1.0, 0.0], rtol=1e-5)
    error = np.abs(found.solution["x"] - np.cos(found.t))
    assert np.mean(found["x"] >= error) > 0.95 and np.median(found["x"] / np.maximum(error, 1e-16)) < 30.0
    assert found.amplification("x")[-1] > found.amplification("x")[len(found.t) // 10] > 0.0
    assert found.t.size == found.solution.t.size


def test_events_constant_steps_and_backward_runs():
    problem = daedal.ODE(lambda t, y: [y[1], -y[0]], 2, names="x v")
    stopping = daedal.Event(lambda t, y: y[0] + 0.5, terminal=True)
    for options in ({"events": stopping}, {"method": "dopri5", "fixed_step": 0.02}):
        found = certify(problem, (0.0, 2.0), [1.0, 0.0], **options)
        error = np.abs(found.solution["x"][: found.t.size] - np.cos(found.t))
        assert found.t.size > 5 and np.all(found["x"] >= error)
    assert "steps of 0.02" in str(found)
    back = certify(problem, (0.0, -3.0), [1.0, 0.0])
    assert np.all(back["x"] >= np.abs(back.solution["x"] - np.cos(back.t)))


def test_machines_and_circuits():
    from daedal.multibody import Body, Model, Revolute, ground

    rod = Body.rod("rod", mass=1.0, length=1.0)
    machine = Model(Revolute("hinge", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    circuit = daedal.circuits.parse("V1 1 0 1\nR1 1 2 1\nC1 2 0 1")
    for source in (machine, circuit):
        found = certify(source, (0.0, 1.0), None, rtol=1e-5)
        assert found.errors and all(0.0 <= error.max() < 1e-2 for error in found.errors.values())


def test_a_failed_second_run_keeps_the_first(monkeypatch):
    from daedal.analysis import certificate

    problem, runs = daedal.ODE(lambda t, y: [-y[0]], 1), []

    def solve(*arguments, **options):
        runs.append(daedal.solve(*arguments, **options))
        if len(runs) == 2:
            raise daedal.IntegrationError("Stopped", runs[1])
        return runs[0]

    monkeypatch.setattr(certificate, "solve", solve)
    with pytest.raises(daedal.IntegrationError, match="the second run") as caught:
        certify(problem, (0.0, 1.0), [1.0])
    assert caught.value.solution is runs[0]


def test_display_and_mistakes(tmp_path):
    problem = daedal.ODE(lambda t, y: [-y[0]], 1, names=["x"])
    found = certify(problem, (0.0, 1.0), [1.0])
    assert "Estimated global errors up to t = 1" in str(found) and "<table" in found._repr_html_()
    found.plot(save=tmp_path / "errors.png", pyplot=False)
    assert (tmp_path / "errors.png").stat().st_size > 1000
    with pytest.raises(daedal.InvalidProblemError, match="no variable 'q'"):
        found["q"]
    with pytest.raises(daedal.InvalidProblemError, match="no room for a sharper run"):
        certify(problem, (0.0, 1.0), [1.0], rtol=1e-12)
    ball = daedal.library.bouncing_ball()
    with pytest.raises(daedal.InvalidProblemError, match="with modes, which have different variables"):
        certify(ball.problem, (0.0, 1.0), ball.initial)
