"""No change of sign hides between two points: short pulses by hidden switches, and double crossings of events."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import daedal

WIDTH, SPAN = 1e-3, 100.0

PULSES = {  # 1 between c - w/2 and c + w/2, else 0
    "chained": lambda x, c, w: 1.0 if c - w / 2 < x < c + w / 2 else 0.0,
    "and": lambda x, c, w: 1.0 if x > c - w / 2 and x < c + w / 2 else 0.0,
    "nested": lambda x, c, w: (1.0 if x < c + w / 2 else 0.0) if x > c - w / 2 else 0.0,
    "not": lambda x, c, w: 0.0 if not (c - w / 2 < x < c + w / 2) else 1.0,
    "truth values": lambda x, c, w: float(x > c - w / 2) * float(x < c + w / 2),
    "abs": lambda x, c, w: 1.0 if abs(x - c) < w / 2 else 0.0,
    "where": lambda x, c, w: np.where(np.abs(x - c) < w / 2, 1.0, 0.0),
    "square": lambda x, c, w: 1.0 if (x - c) ** 2 < w * w / 4 else 0.0,
    "fourth power": lambda x, c, w: 1.0 if (x - c) ** 4 < (w / 2) ** 4 else 0.0,
    "cube": lambda x, c, w: 1.0 if 0 < (x - c + w / 2) ** 3 < w**3 else 0.0,
    "power": lambda x, c, w: 1.0 if abs(x - c) ** 1.5 < (w / 2) ** 1.5 else 0.0,
    "product": lambda x, c, w: 1.0 if (x - c + w / 2) * (x - c - w / 2) < 0 else 0.0,
    "squares": lambda x, c, w: 1.0 if (c - w / 2) ** 2 < x * x < (c + w / 2) ** 2 else 0.0,
    "ratio": lambda x, c, w: 1.0 if x / (c - w / 2) > 1 and x / (c + w / 2) < 1 else 0.0,
    "gaussian": lambda x, c, w: 1.0 if np.exp(-(((x - c) / (w / 2)) ** 2)) > math.exp(-1.0) else 0.0,
    "lorentzian": lambda x, c, w: 1.0 if 1 / (1 + ((x - c) / (w / 2)) ** 2) > 0.5 else 0.0,
    "exp": lambda x, c, w: 1.0 if np.exp((c - w / 2) / 9) < np.exp(x / 9) < np.exp((c + w / 2) / 9) else 0.0,
    "log": lambda x, c, w: 1.0 if np.log((x - c) ** 2 + 1e-9) < np.log(w * w / 4 + 1e-9) else 0.0,
    "sqrt": lambda x, c, w: 1.0 if np.sqrt((x - c) ** 2 + 1e-8) < np.sqrt(w * w / 4 + 1e-8) else 0.0,
    "hypot": lambda x, c, w: 1.0 if np.hypot(x - c, 1e-3) < np.hypot(w / 2, 1e-3) else 0.0,
    "cbrt": lambda x, c, w: 1.0 if np.cbrt(c - w / 2) < np.cbrt(x) < np.cbrt(c + w / 2) else 0.0,
    "cosh": lambda x, c, w: 1.0 if np.cosh(x - c) < np.cosh(w / 2) else 0.0,
    "arctan": lambda x, c, w: 1.0 if abs(np.arctan((x - c) / w)) < np.arctan(0.5) else 0.0,
    "tanh": lambda x, c, w: 1.0 if np.tanh((x - c) / w + 0.5) * np.tanh(0.5 - (x - c) / w) > 0 else 0.0,
    "erf": lambda x, c, w: 1.0 if abs(math.erf((x - c) / w)) < math.erf(0.5) else 0.0,
    "sine": lambda x, c, w: 1.0 if np.sin((x - c) ** 2) < np.sin(w * w / 4) and abs(x - c) < 1 else 0.0,
    "max": lambda x, c, w: 1.0 if max(c - w / 2 - x, x - c - w / 2) < 0 else 0.0,
    "min": lambda x, c, w: 1.0 if min(x - c + w / 2, c + w / 2 - x) > 0 else 0.0,
    "hat": lambda x, c, w: max(0.0, 1 - abs(x - c) / w),
    "clipped": lambda x, c, w: np.clip(1 - abs(x - c) / w, 0, 1),
    "table": lambda x, c, w: np.interp(x, [c - w / 2, c, c + w / 2], [0.0, 2.0, 0.0]),
    "select": lambda x, c, w: np.select([x < c - w / 2, x < c + w / 2], [0.0, 1.0], 0.0),
    "sign": lambda x, c, w: 0.5 * (np.sign(x - c + w / 2) - np.sign(x - c - w / 2)),
    "copysign": lambda x, c, w: 0.5 * (np.copysign(1, x - c + w / 2) - np.copysign(1, x - c - w / 2)),
    "heaviside": lambda x, c, w: np.heaviside(x - c + w / 2, 0.5) - np.heaviside(x - c - w / 2, 0.5),
    "digitize": lambda x, c, w: 1.0 if np.digitize(x, [c - w / 2, c + w / 2]) == 1 else 0.0,
    "look-up": lambda x, c, w: np.array([0.0, 1.0, 0.0])[np.searchsorted([c - w / 2, c + w / 2], x)],
    "remainder": lambda x, c, w: 1.0 if (x - c + w / 2) % 1000 < w else 0.0,
    "floor": lambda x, c, w: 1.0 if np.floor((x - c + 50.0) / 50.0) * (x < c + w) > 0 else 0.0,
    "cosine": lambda x, c, w: 1.0 if np.cos((x - c) / 40.0) > np.cos(w / 80.0) else 0.0,
}
GROUPS = [list(PULSES)[k::8] for k in range(8)]


def placed(names):
    """The pulses of these names, far from each other, and their areas."""
    centres = 4.4321 + np.arange(len(names)) * (SPAN - 10.0) / len(names)
    pulses = [lambda x, f=PULSES[name], c=c: f(x, c, WIDTH) for name, c in zip(names, centres)]
    areas = []
    for pulse, c in zip(pulses, centres):
        fine = np.linspace(c - 2.5 * WIDTH, c + 2.5 * WIDTH, 20001)
        areas.append(float(np.mean([pulse(x) for x in fine]) * 5 * WIDTH))
    return pulses, areas


@pytest.fixture(autouse=True)
def no_switch_is_left_alone():
    with warnings.catch_warnings():
        warnings.simplefilter("error", daedal.errors.SwitchWarning)
        yield


@pytest.mark.parametrize("names", GROUPS, ids=[group[0] for group in GROUPS])
def test_short_pulses_in_time_are_met_however_they_are_written(names):
    pulses, areas = placed(names)
    problem = daedal.ODE(lambda t, y: [pulse(t) for pulse in pulses], len(pulses))
    sol = daedal.solve(problem, (0.0, SPAN), np.zeros(len(pulses)))
    np.testing.assert_allclose(sol.y[:, -1], areas, atol=2e-6)
    assert set(event.located for event in sol.events) == {"known"}


@pytest.mark.parametrize("names", GROUPS, ids=[group[0] for group in GROUPS])
def test_short_pulses_of_the_state_are_met_however_they_are_written(names):
    pulses, areas = placed(names)
    problem = daedal.ODE(lambda t, y: [1.0 + 0.0 * y[0], *[pulse(y[0]) for pulse in pulses]], 1 + len(pulses))
    sol = daedal.solve(problem, (0.0, SPAN), np.zeros(1 + len(pulses)))
    np.testing.assert_allclose(sol.y[1:, -1], areas, atol=2e-6)
    assert set(event.located for event in sol.events) == {"enclosed"}


SIGNALS = {  # a condition on the time alone, the interval, and how often it changes
    "chirp": (lambda t: np.sin(t**2) > 0.999, 10.0, 32),
    "product of sines": (lambda t: np.sin(t) * np.sin(3 * t) > 0.56, 20.0, 26),
    "spike": (lambda t: np.exp(-(((t - 5) / 0.01) ** 2)) > 0.5, 10.0, 2),
    "beat": (lambda t: np.sin(t) + np.sin(1.1 * t) > 1.99, 200.0, 8),
    "steps of a square": (lambda t: np.floor(t * t / 10.0) > 3.5, 10.0, 1),
    "touching": (lambda t: np.sin(t) * np.sin(t) > 1.0, 20.0, 0),
    "nested": (lambda t: np.sin(3.0 * np.sin(t)) > 0.9999, 20.0, 14),
}


@pytest.mark.parametrize("name", SIGNALS)
def test_all_switches_in_time_are_found(name):
    condition, end, count = SIGNALS[name]
    sol = daedal.solve(daedal.ODE(lambda t, y: [1.0 if condition(t) else 0.0], 1), (0.0, end), [0.0])
    fine = np.linspace(0.0, end, 2_000_001)
    on = condition(fine)
    own = [event for event in sol.events if " <" in event.name]
    assert len(own) == count == np.count_nonzero(np.diff(on))
    assert sol.y[0, -1] == pytest.approx(np.mean(on) * end, abs=1e-4)


@pytest.mark.parametrize("span", [(0.0, 10.0), (10.0, 0.0)])
@pytest.mark.parametrize(
    "problem, start",
    [
        (lambda on: daedal.ODE(lambda t, y: [0.1 + 0.0 * y[0], on(y[0])], 2), ([0.0, 0.0], [1.0, 0.0])),
        (
            lambda on: daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 0.1, yp[1] - on(y[0])], 2),
            (([0.0, 0.0], None), ([1.0, 0.0], None)),
        ),
        (
            lambda on: daedal.SemiExplicitDAE(lambda t, y, z: [0.1, on(z[0])], lambda t, y, z: [z[0] - y[0]], 2, 1),
            (([0.0, 0.0], [0.0]), ([1.0, 0.0], [1.0])),
        ),
        (
            lambda on: daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0 * q[0], on(q[0])], n_q=2),
            (([0.0, 0.0], [0.1, 0.0]), ([1.0, 0.0], [0.1, 0.0])),
        ),
    ],
    ids=["ODE", "ImplicitDAE", "SemiExplicitDAE", "MechanicalSystem"],
)
def test_a_window_of_the_state_is_not_stepped_over(problem, start, span):
    sol = daedal.solve(problem(lambda x: 1.0 if abs(x - 0.7) < 1e-4 else 0.0), span, start[int(span[0] > span[1])])
    pulse = sol.v[1, -1] if hasattr(sol, "v") else sol.y[1, -1]
    assert abs(pulse) == pytest.approx(2e-3, rel=1e-4)


@pytest.mark.parametrize("method", ["dassl", "radau", "rosenbrock", "extrapolation", "dopri5", "dop853"])
def test_every_method_meets_double_crossings_of_events(method):
    """A window of width 2e-7 about a height that an oscillator passes in both directions."""
    events = [
        daedal.Event(lambda t, y: abs(y[0] - 0.5) - 1e-7, name="window"),
        daedal.Event(lambda t, y: (t - 2.0) ** 2 - 1e-10, name="instant"),
    ]
    oscillator = daedal.ODE(lambda t, y: [y[1], -y[0]], 2)
    sol = daedal.solve(oscillator, (0.0, 12.0), [1.0, 0.0], events=events, method=method, rtol=1e-5, atol=1e-7)
    window, instant = sol.events.named("window"), sol.events.named("instant")
    assert [event.direction for event in window] == [-1, 1] * 4
    crossings = np.array([np.pi / 3, 5 * np.pi / 3, 7 * np.pi / 3, 11 * np.pi / 3])
    np.testing.assert_allclose(window.t[::2], crossings, atol=2e-3)
    np.testing.assert_allclose(instant.t, [2.0 - 1e-5, 2.0 + 1e-5], atol=1e-12)
    assert {event.located for event in sol.events} == {"enclosed"}


def test_events_of_mechanisms_are_enclosed():
    event = daedal.Event(lambda t, q, v: (q[0] - 0.5) ** 2 - 1e-12, name="window")
    swing = daedal.MechanicalSystem(1.0, lambda t, q, v: [-q[0]], n_q=1)
    sol = daedal.solve(swing, (0.0, 6.0), ([1.0], [0.0]), events=event)
    assert [round(record.t, 3) for record in sol.events] == [1.047, 1.047, 5.236, 5.236]


def test_events_that_cannot_be_traced_are_sampled_and_said_to_be():
    events = [lambda t, y: float(repr(float(y[0]))) - 0.5, daedal.Event(lambda t, y: y[0] - 0.4, inside="ends")]
    sol = daedal.solve(daedal.ODE(lambda t, y: [-y[0]], 1), (0.0, 2.0), [1.0], events=events)
    assert [record.located for record in sol.events] == ["sampled", "sampled"]
    assert "sampled" in str(sol.events)
    never = daedal.solve(
        daedal.ODE(lambda t, y: [-y[0]], 1), (0.0, 2.0), [1.0], events=lambda t, y: y[0] - 0.5, compile="never"
    )
    assert [record.located for record in never.events] == ["sampled"]


def test_an_event_that_reads_something_else_in_the_next_run_is_traced_again():
    level = {"at": 0.5}
    event = daedal.Event(lambda t, y: abs(y[0] - level["at"]) - 1e-6)
    problem = daedal.ODE(lambda t, y: [-1.0 + 0.0 * y[0]], 1)
    for at in (0.5, 0.25, 0.75):
        level["at"] = at
        sol = daedal.solve(problem, (0.0, 1.0), [1.0], events=event)
        np.testing.assert_allclose(sol.events.t, [1.0 - at - 1e-6, 1.0 - at + 1e-6], atol=1e-9)


def test_parameters_of_events_are_those_of_the_run():
    event = daedal.Event(lambda t, y, p: abs(y[0] - p["level"]) - 1e-6)
    problem = daedal.ODE(lambda t, y, p: [-p["rate"] + 0.0 * y[0]], 1, params={"level": 0.5, "rate": 1.0})
    for level in (0.5, 0.25, 0.75):
        params = {"level": level, "rate": 1.0}
        sol = daedal.solve(problem.with_params(params), (0.0, 1.0), [1.0], events=event)
        np.testing.assert_allclose(sol.events.t, [1.0 - level - 1e-6, 1.0 - level + 1e-6], atol=1e-9)


waves = st.lists(
    st.tuples(
        st.floats(0.1, 1.0), st.floats(0.2, 40.0), st.floats(0.0, 6.3), st.sampled_from(["sin", "chirp", "bump"])
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(waves, st.floats(-1.0, 1.0), st.booleans())
def test_events_are_as_many_as_a_dense_reference_counts(parts, level, of_time):
    def signal(x):
        total = -level
        for size, rate, phase, kind in parts:
            if kind == "sin":
                total = total + size * np.sin(rate * x + phase)
            elif kind == "chirp":
                total = total + size * np.cos(0.3 * rate * x * x + phase)
            else:
                total = total + 2.0 * size * np.exp(-((100.0 * (x - phase / 2.0)) ** 2))
        return total

    fine = np.linspace(0.0, 3.0, 400_001)
    values = signal(fine)
    turning = np.flatnonzero((values[1:-1] - values[:-2]) * (values[2:] - values[1:-1]) <= 0.0) + 1
    assume(min(np.abs(values[turning]), default=1.0) > 1e-6 and abs(values[0]) > 1e-3 and abs(values[-1]) > 1e-3)
    expected = fine[:-1][values[1:] * values[:-1] < 0.0]
    event = (lambda t, y: signal(t)) if of_time else (lambda t, y: signal(y[0]))
    sol = daedal.solve(daedal.ODE(lambda t, y: [1.0 + 0.0 * y[0]], 1), (0.0, 3.0), [0.0], events=event)
    assert len(sol.events) == expected.size
    np.testing.assert_allclose(sol.events.t, expected, atol=2e-5)


def test_a_place_that_cannot_be_decided_is_named_once():
    """A function that stays at zero within round-off, so that no piece of a step can be decided."""
    event = daedal.Event(lambda t, y: np.sin(y[0]) ** 2 + np.cos(y[0]) ** 2 - 1.0 + 1e-17 * y[0], name="noise")
    with pytest.warns(
        daedal.errors.SwitchWarning, match="it is undecided whether 'noise' changes sign near t = "
    ) as told:
        daedal.solve(daedal.ODE(lambda t, y: [1.0 + 0.0 * y[0]], 1), (0.0, 3.0), [0.1], events=event)
    assert len([one for one in told if "it is undecided" in str(one.message)]) == 1


@pytest.mark.parametrize("copies", [1, 101], ids=["one slice", "many slices"])
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["forwards", "backwards"])
def test_later_doubts_do_not_change_how_an_event_was_located(copies, sign):
    """Zeros at 0.3 and 2.5; from 1 to 2 no piece of a step can be decided."""

    def signal(t, y):
        noise = np.sin(t) ** 2 + np.cos(t) ** 2 - 1.0
        return np.where(sign * t < 1.0, sign * t - 0.3, np.where(sign * t < 2.0, 1e-17 + noise, 2.5 - sign * t))

    ode = daedal.ODE(lambda t, y: -y, copies)
    with pytest.warns(daedal.errors.SwitchWarning, match="it is undecided"):
        sol = daedal.solve(ode, (0.0, sign * 3.0), np.ones(copies), events=signal, max_step=0.02)
    found = [(round(abs(e.t), 9), e.located) for e in sol.events]
    assert (found[0], found[-1]) == ((0.3, "enclosed"), (2.5, "sampled"))
