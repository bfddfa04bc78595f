"""Guards of modes: enclosed along steps where they can be traced, evaluated as machine code, held at starts."""

import math
import warnings

import numpy as np
import pytest

import daedal
from daedal.hybrid import HybridProblem, Transition

NEAR, WIDTH = 5.3, 1e-3


def dip(x):
    """Negative within WIDTH of NEAR, and nowhere else."""
    return (x - NEAR) ** 2 - WIDTH**2


def until_dip(problem, guard, initial, **options):
    """The transitions of a run that ends where `guard` becomes negative."""
    modes = HybridProblem({"only": problem}, [Transition("only", None, guard, direction=-1, name="dip")])
    return daedal.solve(modes, (0.0, 10.0), ("only", initial), **options).events


RAIL = daedal.MechanicalSystem(
    1.0, lambda t, q, v: [0.0, 0.0], lambda t, q: [q[1]], n_q=2, n_constraints=1, names=["x", "y"]
)
ALGEBRAIC = daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [z[0] - 1.0], 1, 1)
CASES = {
    "ode": (daedal.ODE(lambda t, y: [1.0], 1), lambda t, y: dip(y[0]), [0.0]),
    "parameters": (
        daedal.ODE(lambda t, y, p: [p["rate"]], 1, params={"rate": 1.0}),
        lambda t, y, p: dip(y[0] * p["rate"]),
        [0.0],
    ),
    "implicit": (
        daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 1.0], 1),
        lambda t, y, yp: dip(y[0] * yp[0]),
        ([0.0], None),
    ),
    "semi-explicit": (ALGEBRAIC, lambda t, y, z: dip(y[0] * z[0]), ([0.0], None)),
    "mechanism": (RAIL, lambda t, q, v: dip(q[0] * v[0]), ([0.0, 0.0], [1.0, 0.0])),
    "time": (daedal.ODE(lambda t, y: [1.0], 1), lambda t, y: dip(t), [0.0]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_pair_of_changes_within_a_step_is_found(case):
    [event] = until_dip(*CASES[case])
    assert event.t == pytest.approx(NEAR - WIDTH, abs=1e-9) and event.located == "enclosed"


@pytest.mark.parametrize("formulation", ["ggl", "index2", "projection"])
def test_guards_of_mechanisms_are_enclosed_whatever_the_formulation(formulation):
    [event] = until_dip(*CASES["mechanism"], formulation=formulation)
    assert event.t == pytest.approx(NEAR - WIDTH, abs=1e-9) and event.located == "enclosed"


def test_events_beside_guards_change_nothing():
    problem, guard, initial = CASES["ode"]
    first, second = until_dip(problem, guard, initial, events=lambda t, y: y[0] - 2.0)
    assert [first.t, second.t] == pytest.approx([2.0, NEAR - WIDTH], abs=1e-9)
    assert first.located == second.located == "enclosed"


def test_guards_of_multipliers_are_sampled():
    [event] = until_dip(RAIL, lambda t, q, v, lam: NEAR - q[0] + lam[0], ([0.0, 0.0], [1.0, 0.0]))
    assert event.located == "sampled" and event.t == pytest.approx(NEAR)


def test_untraceable_guards_are_sampled_beside_others():
    def opaque(t, y):
        return y[0] - float(str(float(y[0])) and 2.0)

    modes = HybridProblem(
        {"only": CASES["ode"][0]},
        [
            Transition("only", None, CASES["ode"][1], direction=-1, name="dip"),
            Transition("only", "only", opaque, direction=1, name="opaque"),
        ],
    )
    first, second = daedal.solve(modes, (0.0, 10.0), ("only", [0.0])).events
    assert (first.name, first.located) == ("opaque", "sampled")
    assert (second.name, second.located) == ("dip", "enclosed") and second.t == pytest.approx(NEAR - WIDTH)


def test_transitions_that_start_a_mode_are_known():
    [event] = until_dip(CASES["ode"][0], lambda t, y: y[0] - 1.0, [0.0])
    assert (event.kind, event.located) == ("immediate", "known")


def test_an_undecidable_guard_is_named_once_in_all_modes():
    def wild(t, y):
        return math.sin(1e6 * t) ** 2 + math.cos(1e6 * t) ** 2 - 1.0 + 1e-9  # 1e-9, which bounds do not see

    one = daedal.ODE(lambda t, y: [1.0], 1)
    modes = HybridProblem(
        {"a": one, "b": one},
        [
            Transition("a", "b", lambda t, y: y[0] - 1.0, direction=1, name="over"),
            Transition("a", None, wild, direction=-1, name="wild"),
            Transition("b", "a", lambda t, y: y[0] - 2.0, direction=1, reset=lambda t, y: [0.0], name="back"),
            Transition("b", None, wild, direction=-1, name="wild"),
        ],
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sol = daedal.solve(modes, (0.0, 7.0), ("a", [0.0]))
    assert sol.events[-1].t == pytest.approx(6.0) and len(caught) == 1
    assert "'wild'" in str(caught[0].message) and caught[0].category is daedal.errors.SwitchWarning


@pytest.mark.parametrize("untraced", [False, True])
def test_many_transitions_have_the_times_of_closed_forms(untraced):
    """A thermostat between 19 and 21 with targets 10 and 30: log(11/9) each; Python and machine code agree."""
    text = str if untraced else (lambda value: "1")
    on = daedal.ODE(lambda t, y: [30.0 - y[0]], 1)
    off = daedal.ODE(lambda t, y: [10.0 - y[0]], 1)
    thermostat = HybridProblem(
        {"on": on, "off": off},
        [
            Transition("on", "off", lambda t, y: y[0] - 21.0 * bool(text(y[0])), direction=1),
            Transition("off", "on", lambda t, y: y[0] - 19.0 * bool(text(y[0])), direction=-1),
        ],
    )
    sol = daedal.solve(thermostat, (0.0, 5.0), ("on", [19.0]), rtol=1e-9, atol=1e-11)
    expected = math.log(11.0 / 9.0) * np.arange(1, len(sol.events) + 1)
    np.testing.assert_allclose(sol.events.t, expected, rtol=1e-7)
    assert len(sol.events) == 24


def test_a_guard_that_leaves_zero_slowly_is_decided():
    """|q|^2 - 1 grows with t^3 from zero: round-off next to the start is no crossing, and no doubt."""
    free = daedal.ODE(lambda t, y: [1.0], 1)
    modes = HybridProblem(
        {"before": free, "after": free},
        [
            Transition("before", "after", lambda t, y: y[0] - 0.3, direction=1, name="in"),
            Transition("after", None, lambda t, y: (y[0] - 0.3) ** 3 * (y[0] - 2.0) * (1.0 + y[0]), 1, name="out"),
        ],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sol = daedal.solve(modes, (0.0, 5.0), ("before", [0.0]))
    assert [event.name for event in sol.events] == ["in", "out"] and sol.events[1].t == pytest.approx(2.0, abs=1e-8)


def test_a_saved_run_keeps_how_its_transitions_were_located(tmp_path):
    problem, guard, initial = CASES["ode"]
    modes = HybridProblem({"only": problem}, [Transition("only", None, guard, direction=-1, name="dip")])
    daedal.solve(modes, (0.0, 10.0), ("only", initial)).save(tmp_path / "run.npz")
    assert [event.located for event in daedal.load(tmp_path / "run.npz").events] == ["enclosed"]
