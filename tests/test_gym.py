"""Environments of Gymnasium: its own checker, episodes, members, what is refused."""

import warnings

import numpy as np
import pytest

import daedal
from oracles import oracle

gymnasium = oracle("gymnasium")


def cart_pole():
    """A pole on a cart, angle from the top."""

    def mass(t, q):
        return [[1.1, 0.05 * np.cos(q[1])], [0.05 * np.cos(q[1]), 0.1 / 3.0]]

    def force(t, q, v, push):
        return [push + 0.05 * np.sin(q[1]) * v[1] ** 2, 0.05 * 9.81 * np.sin(q[1])]

    return daedal.MechanicalSystem(mass, force, n_q=2, names=["cart", "pole"], inputs=["push"])


def somewhere(random):
    return random.uniform(-0.05, 0.05, 2), random.uniform(-0.05, 0.05, 2)


def make(**options):
    given = {
        "dt": 0.02,
        "t_end": 0.5,
        "actions": (-10.0, 10.0),
        "reward": lambda t, y, u: 1.0 - 0.001 * u[0] ** 2,
        "terminated": lambda t, y: abs(y[1]) > 0.2 or abs(y[0]) > 2.4,
    }
    return daedal.gym.Environment(cart_pole(), options.pop("initial", somewhere), **(given | options))


def test_gymnasiums_checker_passes():
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(infinity|precision|symmetric|normalized|render).*")
        check_env(make(), skip_render_check=True)


def test_an_episode_is_a_simulation():
    env = make(t_end=0.1)
    first, _ = env.reset(seed=3)
    again, _ = env.reset(seed=3)
    other, _ = env.reset(seed=4)
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    start = np.asarray(again, dtype=float)
    env.reset(options={"initial": (start[:2], start[2:])})
    sim = daedal.Simulation(cart_pole(), (start[:2], start[2:]))
    for k in range(5):
        y, reward, terminated, truncated, info = env.step(np.array([2.0]))
        assert np.array_equal(y, sim.step_to(info["t"], u=[2.0]).astype(np.float32)) and reward == 0.996
        assert not terminated and truncated == (k == 4)


def test_a_task_ends_by_its_condition_and_by_failure():
    env = make(initial=([0.0, 0.1], [0.0, 0.0]), t_end=None)
    env.reset()
    steps = 0
    while not env.step(np.zeros(1))[2]:
        steps += 1
    assert 5 < steps < 100
    blown = daedal.ODE(lambda t, y, u: [y[0] ** 2 + u], 1, inputs=["u"])
    env = daedal.gym.Environment(blown, [1.0], dt=2.0, actions=(-1, 1), reward=lambda t, y, u: 0.0)
    env.reset()
    _, _, terminated, _, info = env.step(np.zeros(1))
    assert terminated and "Stopped at t = 1" in info["error"]
    assert env.reset()[0] == 1.0


def test_members_take_the_steps_of_single_environments_and_begin_again():
    members = daedal.gym.Environments(3, lambda: make(t_end=0.1))
    observations, _ = members.reset(seed=7)
    single = [make(t_end=0.1) for _ in range(3)]
    assert np.array_equal(observations, [env.reset(seed=7 + i)[0] for i, env in enumerate(single)])
    actions = np.array([[1.0], [-1.0], [0.0]])
    for _ in range(5):
        observations, rewards, _, truncated, infos = members.step(actions)
        results = [env.step(action) for env, action in zip(single, actions, strict=True)]
        assert np.array_equal(observations, [result[0] for result in results])
        assert np.array_equal(rewards, [result[1] for result in results])
    assert truncated.all() and infos["t"] == pytest.approx(0.1)
    observations, rewards, _, truncated, infos = members.step(actions)
    assert not truncated.any() and not rewards.any() and not infos["t"].any()
    assert members.observation_space.contains(observations)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"actions": (1.0, -1.0)}, "low < high"),
        ({"actions": {"pull": (-1.0, 1.0)}}, "no bounds for 'push'"),
        ({"reward": 1.0}, "reward must be a function"),
        ({"dt": 0.0}, "dt must be positive"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(daedal.InvalidProblemError, match=words):
        make(**options)


def test_a_problem_without_inputs_is_refused():
    problem = daedal.ODE(lambda t, y: [-y[0]], 1)
    with pytest.raises(daedal.InvalidProblemError, match="no inputs for the actions"):
        daedal.gym.Environment(problem, [1.0], dt=0.1, actions=(-1, 1), reward=lambda t, y, u: 0.0)
