"""Parameters by name for every class of problems, and problems that travel to other processes."""

from collections import namedtuple
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from types import SimpleNamespace

import numpy as np
import pytest

import daedal

cloudpickle = pytest.importorskip("cloudpickle")


@dataclass(frozen=True)
class Rates:
    k: float = 1.0
    unused: float = 0.0


Named = namedtuple("Named", "k unused")


@pytest.mark.parametrize("params", [Rates(), Named(1.0, 0.0), SimpleNamespace(k=1.0, unused=0.0)], ids=["d", "n", "s"])
def test_a_mapping_replaces_attributes(params):
    decay = daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p.k * y[0]], 1, params=params)
    sol = daedal.solve(decay, (0.0, 1.0), [1.0], params={"k": 2}, rtol=1e-8)
    assert sol.y[0, -1] == pytest.approx(np.exp(-2.0), abs=1e-6)
    assert type(decay.with_params({"k": 2}).params) is type(params) and decay.params.k == 1.0
    with pytest.raises(daedal.errors.UnknownNameError, match=r"'kk' is not among.*did you mean 'k'"):
        decay.with_params({"kk": 1.0})


def falling(**more):
    return daedal.MechanicalSystem(1.0, lambda t, q, v, p: [-p["g"]], n_q=1, names=["h"], params={"g": 9.81} | more)


def floor():
    return daedal.hybrid.Contact(lambda t, q: q[0], restitution=0.5, name="floor")


def test_contacts_take_the_parameters_of_their_system():
    problem = daedal.hybrid.UnilateralProblem(falling(), floor())
    for sol in (
        daedal.solve(problem, (0.0, 0.5), ("free", ([1.0], [0.0])), params={"g": 20.0}),
        daedal.solve(problem.with_params({"g": 5.0}).with_params({"g": 20.0}), (0.0, 0.5), ("free", ([1.0], [0.0]))),
    ):
        assert sol.events.t[0] == pytest.approx(np.sqrt(0.1), abs=1e-6) and sol.params == {"g": 20.0}
    assert problem.params == {"g": 9.81}
    with pytest.raises(daedal.errors.UnknownNameError, match="did you mean 'g'"):
        daedal.solve(problem, (0.0, 0.5), ("free", ([1.0], [0.0])), params={"G": 1.0})


def test_modes_take_those_parameters_that_they_have():
    up, down = (
        daedal.ImplicitDAE(lambda t, y, yp, p, name=name: [yp[0] - p[name]], 1, params={name: rate, "level": 1.0})
        for name, rate in (("rise", 1.0), ("fall", -1.0))
    )
    problem = daedal.hybrid.HybridProblem(
        {"up": up, "down": down},
        [daedal.hybrid.Transition("up", "down", lambda t, y, yp, p: y[0] - p["level"], name="full")],
    )
    assert problem.params == {"rise": 1.0, "fall": -1.0, "level": 1.0}
    sol = daedal.solve(problem, (0.0, 1.0), ("up", [0.0]), params={"rise": 4.0, "level": 2.0, "fall": -2.0})
    assert sol.events.t == pytest.approx([0.5], abs=1e-6) and sol.y[0, -1] == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(daedal.errors.UnknownNameError, match="did you mean 'rise'"):
        problem.with_params({"ris": 1.0})


def test_an_impact_as_a_reset_takes_them_too():
    system = falling(height=1.0)
    hit = daedal.hybrid.Impact(system, lambda t, q, p: q[0] - p["height"], restitution=1.0)
    problem = daedal.hybrid.HybridProblem(
        {"flight": system},
        [
            daedal.hybrid.Transition(
                "flight", "flight", lambda t, q, v, p: q[0] - p["height"], -1, reset=hit, name="hit"
            )
        ],
    )
    other = problem.with_params({"height": 2.0})
    assert other.transitions[0].reset.system.params["height"] == 2.0
    sol = daedal.solve(other, (0.0, 0.6), ("flight", ([3.0], [0.0])), rtol=1e-8)
    assert sol.events.t[0] == pytest.approx(np.sqrt(2.0 / 9.81), abs=1e-6) and sol["h"].min() > 1.999


def test_sliding_friction_and_breaking():
    surface = daedal.hybrid.Filippov(
        lambda t, x, p: [-1.0], lambda t, x, p: [1.0], lambda t, x, p: x[0] - p["s"], 1, params={"s": 1.0}
    )
    assert daedal.solve(surface, (0.0, 2.0), [0.0], params={"s": 0.5}).events.t == pytest.approx([0.5], abs=1e-6)
    block = daedal.MechanicalSystem(2.0, lambda t, q, v, p: [p["push"]], n_q=1, names=["x"], params={"push": 0.0})
    rough = daedal.hybrid.Friction(block, [1.0], mu=0.5, normal=2.0 * 9.81)
    sol = daedal.solve(rough, (0.0, 2.0), ([0.0], [3.0]), params={"push": 9.81 / 2.0}, rtol=1e-8)
    assert sol.events[0].t == pytest.approx(3.0 / (0.25 * 9.81), abs=1e-5)


def test_problems_without_parameters_say_so():
    linear = daedal.LinearDAE([[0.0]], [[-1.0]], [[1.0]], [[0.0]], [0.0], [0.0], n_x=1, n_y=1)
    plain = daedal.hybrid.HybridProblem({"only": daedal.ImplicitDAE(lambda t, y, yp: [yp[0]], 1)})
    for problem in (linear, plain):
        with pytest.raises(daedal.InvalidProblemError, match="params"):
            problem.with_params({"k": 1.0})


# --- initial values ---------------------------------------------------------------------------------------------------


def test_the_second_part_of_the_initial_values_may_be_left_out():
    decay = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1)
    semi = daedal.SemiExplicitDAE(lambda t, y, z: [-z[0], -z[0]], lambda t, y, z: [z[0] - y[0]], 2, 1)
    for problem, alone in ((decay, [1.0]), (decay, 1.0), (semi, (1.0, 2.0)), (semi, np.array([1.0, 2.0]))):
        both = daedal.solve(problem, (0.0, 0.5), (alone, None))
        assert np.array_equal(daedal.solve(problem, (0.0, 0.5), alone).y, both.y)
    assert daedal.solve(decay, (0.0, 0.5), (1.0, -1.0)).success  # still a pair
    assert daedal.consistent_initial(semi, 0.0, [1.0, 2.0])[1] == pytest.approx([1.0])
    with pytest.raises(daedal.InvalidProblemError, match="pair"):
        daedal.solve(semi, (0.0, 0.5), [1.0, 2.0, 3.0])


# --- other processes --------------------------------------------------------------------------------------------------


def solved_elsewhere(pickled: bytes) -> bytes:
    import pickle

    problem, initial = pickle.loads(pickled)
    return pickle.dumps(daedal.solve(problem, (0.0, 0.5), initial).y)


def test_problems_of_lambdas_give_the_same_bits_in_another_process():
    problems = [
        (daedal.ImplicitDAE(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], 1, params={"k": 3.0}), [1.0]),
        (daedal.hybrid.UnilateralProblem(falling(), floor()), ("free", ([1.0], [0.0]))),
        (daedal.hybrid.Filippov(lambda t, x: [-1.0], lambda t, x: [1.0], lambda t, x: x[0] - 0.2, 1), [0.0]),
    ]
    import pickle

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(solved_elsewhere, cloudpickle.dumps(pair)) for pair in problems]
        for (problem, initial), future in zip(problems, futures, strict=True):
            there = pickle.loads(future.result(timeout=300))
            assert np.array_equal(there, daedal.solve(problem, (0.0, 0.5), initial).y, equal_nan=True)
