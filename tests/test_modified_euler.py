"""Sand's modified implicit Euler method for orders 1 to 4: order 1 in everything on every grid (Theorem 3.3.3)."""

import numpy as np
import pytest

import daedal


def chain(d, times):
    """y^(d) = lam - y, 0 = y - sin t: index d + 1, lam = y^(d) + y."""
    exact = [np.sin, np.cos, lambda t: -np.sin(t), lambda t: -np.cos(t)]
    initial = [[exact[j % 4](times[0])] for j in range(d)]
    run = daedal.studies.modified_euler(lambda t, y, lam: lam - y[0], lambda t, y: y[0] - np.sin(t), times, initial, 1)
    lam = exact[d % 4](times) + np.sin(times)
    return np.max(np.abs(run.lam[0, 1:] - lam[1:]))


def grid(kind, n):
    steps = np.ones(n)
    if kind == "alternating":
        steps[1::2] = 0.2
    elif kind == "blocks":
        steps[(np.arange(n) // 3) % 2 == 1] = 0.25
    elif kind == "random":
        steps = np.exp(np.random.default_rng(3).uniform(-1.4, 1.4, n))
    return np.concatenate([[0.3], 0.3 + np.cumsum(steps) / steps.sum()])


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["constant", "alternating", "blocks", "random"])
def test_multipliers_converge_with_order_one_on_every_grid(d, kind):
    coarse, fine = chain(d, grid(kind, 40)), chain(d, grid(kind, 320))
    assert fine < 0.25 * coarse
    assert coarse < 1.0


def test_tables_of_the_particle_on_a_circle():
    """Wunderlich Table 3.1: |error of lam| on ten steps of very different length."""
    h = 1e-3 * np.array([1, 1, 0.2, 0.04, 0.008, 0.008, 0.016, 0.032, 0.064, 0.064])
    t = 1.0 + np.concatenate([[0.0], np.cumsum(h)])
    initial = [[np.sin(1.0), np.cos(1.0)], [2.0 * np.cos(1.0), -2.0 * np.sin(1.0)]]
    run = daedal.studies.modified_euler(
        lambda t, y, lam: np.array([2.0 * y[0, 1] + lam[0] * y[0, 0], -2.0 * y[0, 0] + lam[0] * y[0, 1]]),
        lambda t, y: y[0] @ y[0] - 1.0,
        t,
        initial,
        1,
    )
    printed = [0.0080, 0.0120, 0.0057, 0.0012, 0.0003, 0.0001, 0.0002, 0.0004, 0.0007, 0.0008]
    assert np.abs(run.lam[0, 1:] + 4.0 * t[1:] ** 2) == pytest.approx(printed, abs=1.2e-4)


def test_constraints_on_derivatives_with_constant_steps():
    """y'' = lam, 0 = y' - cos t: index 2."""
    t = grid("constant", 100)
    run = daedal.studies.modified_euler(
        lambda t, y, lam: lam, lambda t, y: y[1] - np.cos(t), t, [[np.sin(0.3)], [np.cos(0.3)]], 1
    )
    assert np.max(np.abs(run.lam[0, 2:] + np.sin(t[2:]))) < 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": [0.0]}, "at least two strictly monotone times"),
        ({"times": [0.0, 1.0, 0.5]}, "strictly monotone"),
        ({"initial": [0.0, 1.0]}, "shape"),
        ({"f": 3}, "f must be"),
        ({"n_lambda": 0}, "n_lambda"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {
        "f": lambda t, y, lam: lam,
        "g": lambda t, y: y[0] - t,
        "times": [0.0, 0.1],
        "initial": [[0.0], [1.0]],
        "n_lambda": 1,
    } | change
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.studies.modified_euler(**arguments)


def test_unsolvable_steps_are_reported():
    with pytest.raises(daedal.IntegrationError, match=r"t = 0\.1"):
        daedal.studies.modified_euler(
            lambda t, y, lam: 0.0 * y[0], lambda t, y: y[0] - t, [0.0, 0.1], [[0.0], [1.0]], 1
        )
