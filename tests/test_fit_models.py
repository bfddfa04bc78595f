"""Fits of whole models: a seven-body mechanism, stick-slip, a reaction network, robust and interrupted searches."""

import numpy as np
import pytest

import daedal
from daedal.library import squeezer


def squeezing(torque=0.03, stiffness=4000.0):
    """Andrews' squeezer with the stiffness of its spring as a second parameter."""

    def force(t, q, v, p):
        found = squeezer.squeezer_force(t, q, v, [p["torque"]])
        x = squeezer.SD * np.cos(q[2]) + squeezer.SC * np.sin(q[2]) + squeezer.XB - squeezer.XC
        y = squeezer.SD * np.sin(q[2]) - squeezer.SC * np.cos(q[2]) + squeezer.YB - squeezer.YC
        length = np.sqrt(x * x + y * y)
        turn = x * (squeezer.SC * np.cos(q[2]) - squeezer.SD * np.sin(q[2]))
        turn = turn + y * (squeezer.SD * np.cos(q[2]) + squeezer.SC * np.sin(q[2]))
        push = -(p["stiffness"] - squeezer.C0) * (length - squeezer.L0) * turn / length
        return found + np.array([0.0, 0.0, push, 0.0, 0.0, 0.0, 0.0])

    model = daedal.library.get("seven_body")
    problem = daedal.MechanicalSystem(
        lambda t, q, p: squeezer.squeezer_mass(t, q, [p["torque"]]),
        force,
        lambda t, q, p: squeezer.loops(t, q, [p["torque"]]),
        n_q=7,
        n_constraints=6,
        params={"torque": torque, "stiffness": stiffness},
        names=model.problem.names,
    )
    return problem, model.initial


def test_seven_body_mechanism_from_three_noisy_angles():
    """Torque 0.033 and stiffness 4530, from angles with an error of 0.002 rad."""
    problem, initial = squeezing()
    truth = {"torque": squeezer.TORQUE, "stiffness": squeezer.C0}
    t, rng = np.linspace(0.0, 0.02, 41), np.random.default_rng(3)
    sol = daedal.solve(problem, (0.0, 0.02), initial, params=truth, t_eval=t, rtol=1e-9, atol=1e-11)
    data = {name: sol[name] + 0.002 * rng.standard_normal(t.size) for name in ("beta", "gamma", "Phi")}
    found = daedal.fit(problem, {"t": t, **data}, ["torque", "stiffness"], initial=initial, sigma=0.002)
    assert found.success and 0.7 < found.variance < 1.35
    for name, value in truth.items():
        assert abs(found.params[name] - value) < 4.0 * found.stderr[name] < 0.02 * value


def on_a_belt(mu=0.3):
    block = daedal.MechanicalSystem(
        1.0, lambda t, q, v, p: [-p["k"] * q[0] - 0.05 * v[0]], n_q=1, params={"k": 1.0, "mu": mu}, names=["x"]
    )
    return daedal.hybrid.Friction(
        block, [1.0], lambda s, p: p["mu"], mu_static=lambda p: 1.4 * p["mu"], normal=1.0, speed=0.2
    )


def test_friction_coefficient_from_a_stick_slip_record():
    t, rng = np.linspace(0.0, 12.0, 61), np.random.default_rng(5)
    truth = daedal.solve(on_a_belt(0.4), (0.0, 12.0), ([0.0], [0.2]), t_eval=t, rtol=1e-9, atol=1e-11)
    assert {"stick", "slip-"} <= set(truth.mode)
    data = {"t": t, "x": truth["x"] + 0.005 * rng.standard_normal(t.size)}
    found = daedal.fit(on_a_belt(0.35), data, ["mu"], initial=([0.0], [0.2]), sigma=0.005)
    assert found.success
    assert abs(found.params["mu"] - 0.4) < 4.0 * found.stderr["mu"] < 0.02
    with pytest.raises(daedal.InvalidProblemError, match="models with modes are not estimated"):
        daedal.fit(on_a_belt(), data, ["mu", "x(0)"], initial=([0.0], [0.2]))


def test_rate_constants_of_a_network_with_missing_values():
    """A + B <-> C -> D + B, a catalyst; four rates of which each is measured by something, a third of it missing."""

    def rates(t, y, p):
        forward, back, on = p["k"][0] * y[0] * y[1], p["k"][1] * y[2], p["k"][2] * y[2]
        return [back - forward, back - forward + on, forward - back - on, on - p["loss"] * y[3]]

    network = daedal.ODE(rates, 4, params={"k": [1.0, 1.0, 1.0], "loss": 0.1}, names=["A", "B", "C", "D"])
    truth, start = {"k": [3.0, 0.5, 1.5], "loss": 0.2}, [1.0, 0.4, 0.0, 0.0]
    t, rng = np.linspace(0.0, 6.0, 40), np.random.default_rng(11)
    sol = daedal.solve(network, (0.0, 6.0), start, params=truth, t_eval=t, rtol=1e-9, atol=1e-11)
    data = {name: sol[name] + 0.005 * rng.standard_normal(t.size) for name in ("A", "C", "D")}
    for values in data.values():
        values[rng.random(t.size) < 0.33] = np.nan
    found = daedal.fit(network, {"t": t, **data}, ["k", "loss"], initial=start, log=["k"], sigma=0.005)
    expected = {"k[0]": 3.0, "k[1]": 0.5, "k[2]": 1.5, "loss": 0.2}
    assert list(found.params) == list(expected) and found.success
    for name, value in expected.items():
        assert abs(found.params[name] - value) < 4.0 * found.stderr[name]
    assert 0.6 < found.variance < 1.4


def decay(k=1.0):
    return daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": k}, names=["x"])


TIMES = np.linspace(0.0, 4.0, 17)


def test_a_robust_loss_finds_its_scale_from_the_residuals():
    """Outliers a hundred times as large as the noise, whose size nobody has told."""
    rng = np.random.default_rng(2)
    x = np.exp(-0.7 * TIMES) + 1e-3 * rng.standard_normal(TIMES.size)
    x[[3, 9, 14]] += np.array([0.3, -0.2, 0.25])
    plain, robust = (
        daedal.fit(decay(), {"t": TIMES, "x": x}, ["k"], initial=([1.0], None), loss=loss).params["k"]
        for loss in ("linear", "cauchy")
    )
    assert abs(robust - 0.7) < 2e-3
    assert abs(plain - 0.7) > 5.0 * abs(robust - 0.7)


def test_the_name_of_a_vector_stands_for_its_numbers():
    chain = daedal.ODE(lambda t, y, p: [-p[0] * y[0], p[0] * y[0] - p[1] * y[1]], 2, params=np.array([1.0, 0.5]))
    t = np.linspace(0.0, 3.0, 12)
    sol = daedal.solve(chain, (0.0, 3.0), [1.0, 0.0], params=np.array([0.8, 0.3]), t_eval=t, rtol=1e-9, atol=1e-11)
    data = {"t": t, "y[0]": sol.y[0], "y[1]": sol.y[1]}
    for names in (["p"], {"p": [0.9, 0.4]}, {"p": 0.7}):
        found = daedal.fit(chain, data, names, initial=[1.0, 0.0], bounds={"p": (0.0, 2.0)})
        assert found.params == pytest.approx({"p[0]": 0.8, "p[1]": 0.3}, rel=1e-6)
    with pytest.raises(daedal.InvalidProblemError, match="'p' has 2 numbers, but 3 starting values"):
        daedal.fit(chain, data, {"p": [1.0, 1.0, 1.0]}, initial=[1.0, 0.0])


def test_initial_values_by_name_may_be_estimated():
    data = {"t": TIMES, "x": 3.0 * np.exp(-0.7 * TIMES)}
    found = daedal.fit(decay(), data, ["k", "x(0)"], initial={"x": 2.0})
    assert found.params == pytest.approx({"k": 0.7, "x(0)": 3.0}, rel=1e-6)
    pair = daedal.ODE(lambda t, y, p: [-p["k"] * y[0], -y[1]], 2, params={"k": 1.0}, names=["x", "y"])
    with pytest.raises(daedal.InvalidProblemError, match="initial does not name 'x'"):
        daedal.fit(pair, data, ["k", "x(0)"], initial={"y": 2.0})


def double_pendulum():
    return daedal.MechanicalSystem(
        1.0,
        lambda t, q, v, p: [0.0, -p["g"], 0.0, -p["g"]],
        lambda t, q, p: [q[0] ** 2 + q[1] ** 2 - 1.0, (q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - p["arm"] ** 2],
        n_q=4,
        n_constraints=2,
        params={"g": 9.81, "arm": 1.0},
        names=["xa", "ya", "xb", "yb"],
    )


@pytest.mark.slow
def test_multiple_shooting_of_a_mechanism():
    """A double pendulum that turns over: the sum of squares of whole runs has many minima."""
    problem, t = double_pendulum(), np.linspace(0.0, 4.0, 81)
    initial = ([0.0, 1.0, 1.0, 1.0], [2.0, 0.0, 2.0, 1.0])
    truth = daedal.solve(problem, (0.0, 4.0), initial, t_eval=t, rtol=1e-10, atol=1e-12)
    data = {"t": t, **{name: truth[name] for name in ("xa", "ya", "xb", "yb")}}
    found = daedal.fit(problem, data, {"g": 8.0}, initial=initial, shooting=8, rtol=1e-8, atol=1e-10)
    assert found.params["g"] == pytest.approx(9.81, rel=1e-5)


def test_ctrl_c_while_shooting_keeps_the_best_so_far(monkeypatch):
    from daedal.sensitivity.fitting.runs import ShotPieces

    computed, calls = ShotPieces._computed, []

    def interrupted(self, point):
        calls.append(point)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return computed(self, point)

    monkeypatch.setattr(ShotPieces, "_computed", interrupted)
    data = {"t": TIMES, "x": 3.0 * np.exp(-0.7 * TIMES)}
    found = daedal.fit(decay(2.0), data, ["k", "x(0)"], initial=([1.0], None), shooting=4)
    assert not found.success and "nterrupted" in found.message
    assert abs(found.params["k"] - 0.7) < 0.7  # it began at 2


@pytest.mark.parametrize(("problem", "words"), [(on_a_belt(), "does not support Friction"), ("model", "not str")])
def test_what_cannot_be_fitted_is_said(problem, words):
    with pytest.raises(daedal.InvalidProblemError, match=words):
        daedal.fit(problem, {"t": TIMES, "x": TIMES}, ["mu"], initial=([0.0], [0.2]), shooting=3)
