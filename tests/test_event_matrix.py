"""The same battery of events for every family of methods, against closed forms.

Every family solves a problem whose solution contains (sin t, cos t); events are functions of t, the sine and the
cosine. A new family is one more line in FAMILIES.

What rests on the dense output of a method or on its way of ending a run is tested with all families. Location stands
in one loop for all methods: each of its properties is tested with a quarter of the families, every property and every
value of its parameter with another quarter, so that each meets all forms of problems.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import pytest

import daedal
from daedal import Event

TOLERANCES = {"rtol": 1e-9, "atol": 1e-9}


@dataclass(frozen=True)
class EvaluationConfig:
    """A problem with the solution (sin t, cos t), and how its events find the two in their arguments."""

    problem: object
    initial: object  # at t = 0
    adapt: object  # from f(t, sine, cosine) to an event function


IMPLICIT = EvaluationConfig(
    daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 2),
    ([0.0, 1.0], [1.0, 0.0]),
    lambda f: lambda t, y: f(t, y[0], y[1]),
)
SEMI_EXPLICIT = EvaluationConfig(
    daedal.SemiExplicitDAE(lambda t, y, z: [z[0], -y[0]], lambda t, y, z: [z[0] - y[1]], 2, 1),
    ([0.0, 1.0], [1.0]),
    lambda f: lambda t, y, z: f(t, y[0], z[0]),
)
INDEX2 = EvaluationConfig(
    daedal.SemiExplicitDAE(
        lambda t, y, z: [y[1] + (z[0] - 1.0) * y[0], -y[0] + (z[0] - 1.0) * y[1]], lambda t, y, z: [y @ y - 1.0], 2, 1
    ),
    ([0.0, 1.0], [1.0]),
    lambda f: lambda t, y, z: f(t, y[0], y[1]),
)
MECHANISM = EvaluationConfig(  # a particle that goes round on a circle without a force
    daedal.MechanicalSystem(
        1.0, lambda t, q, v: [0.0, 0.0], constraint=lambda t, q: [q @ q - 1.0], n_q=2, n_constraints=1
    ),
    ([0.0, 1.0], [1.0, 0.0]),
    lambda f: lambda t, q, v: f(t, q[0], v[0]),
)


@dataclass(frozen=True)
class Family:
    setting: EvaluationConfig
    runs: str  # how the name of the method in the solution begins
    options: dict = field(default_factory=dict)
    runs_to_an_event: str = ""  # where that is another method if an event may end the run

    def solve(self, events, t1=10.0, **options):
        """Events are f(t, sine, cosine), or pairs of f and options of Event."""
        given = [event if isinstance(event, tuple) else (event, {}) for event in events]
        adapted = [Event(self.setting.adapt(f), **event_options) for f, event_options in given]
        sol = daedal.solve(
            self.setting.problem,
            (0.0, t1),
            self.setting.initial,
            events=adapted or None,
            **(TOLERANCES | self.options | options),
        )
        formulation = self.options.get("formulation")
        ends = any("terminal" in event_options for _, event_options in given)
        assert sol.method.startswith(self.runs_to_an_event if ends and self.runs_to_an_event else self.runs)
        assert formulation is None or str(sol.formulation) == FORMULATIONS[formulation]
        return sol


FORMULATIONS = {"ggl": "GGL", "projection": "CoordinateProjection", "state_space": "StateSpace"}
FAMILIES = {
    "dassl-implicit": Family(IMPLICIT, "DASSL", {"method": "dassl"}),
    "radau-implicit": Family(IMPLICIT, "Radau", {"method": "radau"}),
    "rosenbrock-implicit": Family(IMPLICIT, "Rosenbrock", {"method": "rosenbrock"}),
    "irk-implicit": Family(
        IMPLICIT, "ImplicitRungeKutta, Gauss", {"method": daedal.methods.ImplicitRungeKutta("gauss3")}
    ),
    "extrapolation-implicit": Family(IMPLICIT, "Extrapolation", {"method": "extrapolation"}),
    "auto-implicit": Family(IMPLICIT, "Radau", runs_to_an_event="DASSL"),
    "dassl-semi_explicit": Family(SEMI_EXPLICIT, "DASSL", {"method": "dassl"}),
    "radau-semi_explicit": Family(SEMI_EXPLICIT, "Radau", {"method": "radau"}),
    "rosenbrock-semi_explicit": Family(SEMI_EXPLICIT, "Rosenbrock", {"method": "rosenbrock"}),
    "irk-semi_explicit": Family(
        SEMI_EXPLICIT,
        "ImplicitRungeKutta, Lobatto IIIC",
        {"method": daedal.methods.ImplicitRungeKutta("lobatto_iiic4")},
    ),
    "extrapolation-semi_explicit": Family(SEMI_EXPLICIT, "Extrapolation", {"method": "extrapolation"}),
    "auto-semi_explicit": Family(SEMI_EXPLICIT, "Radau", runs_to_an_event="DASSL"),
    "dassl-index2": Family(INDEX2, "DASSL", {"method": "dassl"}),
    "radau-index2": Family(INDEX2, "Radau", {"method": "radau"}),
    "irk-index2": Family(
        INDEX2,
        "ImplicitRungeKutta, Gauss",
        {"method": daedal.methods.ImplicitRungeKutta("gauss3", projection="always")},
    ),
    "phem56-index2": Family(INDEX2, "PHEM56", {"method": "phem56"}),
    "hem4-index2": Family(INDEX2, "HEM4", {"method": "hem4", "rtol": 1e-8, "atol": 1e-8}),
    "radau-ggl": Family(MECHANISM, "Radau", {"method": "radau", "formulation": "ggl"}),
    "irk-ggl": Family(MECHANISM, "ImplicitRungeKutta", {"method": "implicit_runge_kutta", "formulation": "ggl"}),
    "mexx-mechanism": Family(MECHANISM, "MEXX", {"method": "mexx"}),
    "dassl-ggl": Family(MECHANISM, "DASSL", {"method": "dassl", "formulation": "ggl"}),
    "phem56-mechanism": Family(MECHANISM, "PHEM56", {"method": "phem56"}),
    "hem4-mechanism": Family(MECHANISM, "HEM4", {"method": "hem4", "rtol": 1e-8, "atol": 1e-8}),
    "dopri5-projection": Family(MECHANISM, "DOPRI5", {"method": "dopri5", "formulation": "projection"}),
    "modified_bdf": Family(MECHANISM, "ModifiedBDF", {"method": "modified_bdf", "rtol": 1e-10, "atol": 1e-10}),
    "collocation": Family(MECHANISM, "Collocation", {"method": "collocation"}),
    "dassl-state_space": Family(MECHANISM, "DASSL", {"method": "dassl", "formulation": "state_space"}),
    "auto-mechanism": Family(MECHANISM, "DOP853"),
}
SHARE = 4  # one family in four for what stands in the loop that all methods share

_turn = itertools.count()


def quarter():
    """Names of a quarter of the families, of the next quarter in each call."""
    return list(FAMILIES)[next(_turn) % SHARE :: SHARE]


every_family = pytest.mark.parametrize("family", FAMILIES, indirect=True)


def some_families():
    return pytest.mark.parametrize("family", quarter(), indirect=True)


def some_families_each(name, values):
    """Every value of a parameter with some families."""
    cases = [(family, value) for value in values for family in quarter()]
    return pytest.mark.parametrize(("family", name), cases, indirect=["family"])


@pytest.fixture
def family(request):
    return FAMILIES[request.param]


def test_the_quarters_have_every_family_and_every_form_of_problem():
    quarters = [quarter() for _ in range(SHARE)]
    assert sorted(name for names in quarters for name in names) == sorted(FAMILIES)
    forms = {id(form) for form in (IMPLICIT, SEMI_EXPLICIT, INDEX2, MECHANISM)}
    for names in quarters:
        assert {id(FAMILIES[name].setting) for name in names} == forms


def times(sol, index=None):
    return np.array([event.t for event in sol.events if index in (None, event.index)])


def crossings(level, t1=10.0):
    """Times in (0, t1) at which the sine equals the level."""
    first = math.asin(level)
    every = [first + 2.0 * math.pi * k for k in range(-3, 4)] + [
        math.pi - first + 2.0 * math.pi * k for k in range(-3, 4)
    ]
    return np.array(sorted(t for t in every if min(t1, 0.0) < t < max(t1, 0.0)))


def assert_close(found, expected, atol=2e-6):
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=atol)


# --- where and which --------------------------------------------------------------------------------------------


@every_family
def test_crossings_are_located(family):
    assert_close(times(family.solve([lambda t, s, c: s - 0.5])), crossings(0.5))


@some_families_each("direction", [1, -1])
def test_direction_selects_the_crossings(family, direction):
    sol = family.solve([(lambda t, s, c: s - 0.5, {"direction": direction})])
    assert_close(times(sol), crossings(0.5)[0 if direction > 0 else 1 :: 2])
    assert {event.direction for event in sol.events} == {direction}


@some_families()
def test_functions_of_time_are_located_to_round_off(family):
    sol = family.solve([lambda t, s, c: math.sin(3.0 * t), lambda t, s, c: math.exp(t) - 2.0])
    assert_close(times(sol, 0), math.pi / 3.0 * np.arange(1, 10), 1e-11)
    assert_close(times(sol, 1), [math.log(2.0)], 1e-11)


@some_families()
def test_functions_with_the_same_root_fire_together_in_the_order_of_the_list(family):
    sol = family.solve(
        [lambda t, s, c: 10.0 * (0.5 - s), lambda t, s, c: c + 0.3, lambda t, s, c: (s - 0.5) * (2.0 + c)], t1=3.0
    )
    together = [event for event in sol.events if event.index != 1]
    assert [event.index for event in together] == [0, 2, 0, 2]
    assert together[0].t == together[1].t and together[2].t == together[3].t
    assert [event.direction for event in together] == [-1, 1, 1, -1]
    assert [event.index for event in sol.events] == [0, 2, 1, 0, 2]


@some_families()
def test_vector_of_functions(family):
    def event(t, s, c):
        return np.array([s, c, s - c])

    sol = family.solve([(event, {"direction": [1, -1, 0], "name": ["up", "down", "both"]})], t1=6.5)
    named = [(record.name, record.t / math.pi) for record in sol.events]
    assert [name for name, _ in named] == ["both", "down", "both", "up"]
    assert_close([t for _, t in named], [0.25, 0.5, 1.25, 2.0])


# --- the start, the end, backwards ------------------------------------------------------------------------------


@some_families()
def test_zero_at_the_start_is_no_event(family):
    assert_close(times(family.solve([lambda t, s, c: s])), math.pi * np.arange(1, 4))


@some_families()
def test_zero_at_the_start_and_a_root_in_the_first_step(family):
    sol = family.solve([lambda t, s, c: t * (t - 1e-7)], t1=1.0)
    assert_close(times(sol), [1e-7], 1e-12)


@some_families()
def test_roots_at_and_near_the_end(family):
    ends = [lambda t, s, c: t - 2.0, lambda t, s, c: t - (2.0 - 1e-9), lambda t, s, c: t - (2.0 + 1e-9)]
    sol = family.solve(ends, t1=2.0)
    assert [event.index for event in sol.events] == [1, 0]
    assert_close(times(sol), [2.0 - 1e-9, 2.0], 1e-12)


@every_family
def test_backwards_in_time(family):
    sol = family.solve([(lambda t, s, c: s - 0.5, {"direction": -1})], t1=-10.0)
    expected = crossings(0.5, -10.0)[::-1]
    falling = expected[np.cos(expected) > 0.0]  # backwards the sine falls where it rises forwards
    assert_close(times(sol), falling)


# --- inside of a step -------------------------------------------------------------------------------------------


@some_families_each("depth", [1e-2, 1e-4, 1e-6])
def test_pair_of_crossings_inside_of_a_step_is_found(family, depth):
    sol = family.solve([lambda t, s, c: math.cos(t) + 1.0 - depth])
    half = math.acos(1.0 - depth)
    expected = [math.pi - half, math.pi + half, 3.0 * math.pi - half, 3.0 * math.pi + half]
    assert_close(times(sol), expected, 1e-8)
    assert [event.direction for event in sol.events] == [-1, 1, -1, 1]


@some_families()
def test_pair_of_crossings_of_a_function_of_the_state_is_found(family):
    sol = family.solve([(lambda t, s, c: s - 1.0 + 1e-4, {"direction": -1})])
    half = math.acos(1.0 - 1e-4)
    assert_close(times(sol), [math.pi / 2.0 + half, 2.5 * math.pi + half], 1e-4)


@some_families()
def test_contact_counts_only_on_demand(family):
    def contact(t, s, c):
        return (t - 2.345) ** 2

    assert not family.solve([contact]).events
    sol = family.solve([(contact, {"touch": True})])
    assert_close(times(sol), [2.345], 1e-4)


@some_families()
def test_jump_of_a_function_is_located(family):
    sol = family.solve([lambda t, s, c: 1.0 if t < 4.0 else -3.0])
    assert_close(times(sol), [4.0], 1e-11)


# --- what happens then ------------------------------------------------------------------------------------------


@every_family
def test_terminal_event_ends_the_run(family):
    sol = family.solve([lambda t, s, c: s - 0.5, (lambda t, s, c: c, {"terminal": True, "name": "stop"})])
    assert sol.status == "event" and sol.success and "stop" in sol.message
    assert_close(times(sol), [math.pi / 6.0, math.pi / 2.0])
    assert sol.t[-1] == sol.events[-1].t
    np.testing.assert_allclose(sol.y[:, -1], sol.events[-1].y, atol=1e-8)
    assert [event.terminal for event in sol.events] == [False, True]


@some_families()
def test_run_ends_at_the_occurrence_asked_for(family):
    sol = family.solve([(lambda t, s, c: s - 0.5, {"terminal": 3})])
    assert_close(times(sol), crossings(0.5)[:3])
    assert sol.status == "event" and sol.t[-1] == sol.events[-1].t
    assert [event.terminal for event in sol.events] == [False, False, True]


@every_family
def test_events_that_only_record_leave_the_steps_alone(family):
    plain = family.solve([])
    watched = family.solve([lambda t, s, c: s, lambda t, s, c: s * c, lambda t, s, c: t - 3.0])
    np.testing.assert_allclose(watched.t, plain.t, rtol=1e-12)  # charts carry round-off from one evaluation to another
    np.testing.assert_allclose(watched.y, plain.y, rtol=1e-12, atol=1e-12)
    assert watched.stats.steps == plain.stats.steps and watched.stats.rejected == plain.stats.rejected


@some_families()
def test_requested_output_and_dense_output_do_not_move_events(family):
    expected = times(family.solve([lambda t, s, c: s - 0.5]))
    for options in ({"t_eval": np.linspace(0.0, 10.0, 41)}, {"dense_output": False}):
        np.testing.assert_array_equal(times(family.solve([lambda t, s, c: s - 0.5], **options)), expected)


@every_family
def test_state_at_an_event_is_that_of_the_solution(family):
    sol = family.solve([lambda t, s, c: s - 0.5])
    for event in sol.events:
        there = sol(event.t)
        np.testing.assert_allclose(event.y, getattr(there, "y", there), atol=1e-7)
        assert event.y[0] == pytest.approx(0.5, abs=1e-7)


@some_families()
def test_output_with_a_terminal_event_ends_there(family):
    sol = family.solve([(lambda t, s, c: s - 0.5, {"terminal": 2})], t_eval=np.arange(0.0, 10.0, 0.5))
    np.testing.assert_array_equal(sol.t[:6], [0.0, 0.5, 1.0, 1.5, 2.0, 2.5])
    assert sol.t[-1] <= crossings(0.5)[1] + 1e-6


# --- other ways to locate ---------------------------------------------------------------------------------------


@some_families_each("location", ["monitoring", "auto"])
def test_monitoring_and_the_automatic_choice_find_the_same_events(family, location):
    sol = family.solve([(lambda t, s, c: s - 0.5, {"location": location, "delta": 1e-6})])
    assert_close(times(sol), crossings(0.5), 5e-6)
    assert [event.direction for event in sol.events] == [1, -1, 1, -1][: len(sol.events)]


@every_family
def test_monitored_events_are_ends_of_steps(family):
    sol = family.solve([(lambda t, s, c: s - 0.5, {"location": "monitoring", "delta": 1e-5})])
    assert len(sol.events) == crossings(0.5).size
    for event in sol.events:
        assert event.t in sol.t
        assert abs(event.y[0] - 0.5) <= 1.01e-5


@pytest.mark.parametrize("method", ["auto", "dop853", "radau", "modified_bdf"])
@pytest.mark.parametrize("at", [0.7, 1.3, 1.0 / 3.0])
def test_a_terminal_event_at_a_break_point_stops_at_that_very_time(method, at):
    problem = daedal.MechanicalSystem(1.0, lambda t, q, v: [-q[0]], n_q=1)
    event = Event(lambda t, q, v: t - at, terminal=True)
    sol = daedal.solve(problem, (0.0, 3.0), ([1.0], [0.0]), breakpoints=[at], events=event, method=method)
    assert sol.t[-1] == at
    assert sol.q[0, -1] == pytest.approx(np.cos(at), abs=1e-4)
