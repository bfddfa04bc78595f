"""Models with modes that make no sense: refused, with a message that names the cause."""

import numpy as np
import pytest

import daedal

BALL = daedal.MechanicalSystem(1.0, lambda t, q, v: [-9.81], n_q=1)
LINE = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 1.0], 1)
PAIR = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 1.0, yp[1]], 2)


def zero(t, y):
    return y[0] - 1.0


def transition(**changes):
    options = {"source": "a", "target": "a", "guard": zero, "direction": 1} | changes
    return daedal.hybrid.Transition(**options)


def run(transitions, modes=None, initial=("a", [0.0]), **options):
    problem = daedal.hybrid.HybridProblem({"a": LINE} if modes is None else modes, transitions)
    return daedal.solve(problem, (0.0, 3.0), initial, **options)


@pytest.mark.parametrize(
    ("modes", "message"),
    [
        ({}, "modes must be a dict"),
        ([LINE], "modes must be a dict"),
        ({"a": None}, "'a' must be a problem .* got None"),
        ({"a": lambda t, y: y}, "'a' must be a problem .* got function"),
        ({3: LINE}, "name of a mode must be a nonempty string"),
        ({"": LINE}, "name of a mode must be a nonempty string"),
        ({"a": daedal.hybrid.Mode(None)}, "'a' must be a problem"),
    ],
    ids=["empty", "list", "none", "function", "number", "no-name", "empty-mode"],
)
def test_bad_modes(modes, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.hybrid.HybridProblem(modes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "b"}, r"transitions\[0\]: source 'b' is not a mode; the modes are a"),
        ({"source": []}, "source must be the name of a mode"),
        ({"source": None}, "source must be the name of a mode"),
        ({"target": "b", "name": "leap"}, r"transitions\[0\] \('leap'\): target 'b' is not a mode"),
        ({"target": 3}, "target 3 is not a mode"),
        ({"guard": None}, "guard"),
        ({"guard": "xeno"}, "guard must be a function or 'zeno'"),
        ({"reset": 3.0}, "reset"),
        ({"reset": {"b": zero}}, "reset 'b' is not a mode"),
        ({"reset": {"a": 1.0}}, "reset"),
        ({"name": 3}, "name must be a string"),
        ({"project": "yes"}, "project must be True or False"),
        ({"immediate": 1}, "immediate must be True or False"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_transitions(changes, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        daedal.hybrid.HybridProblem({"a": LINE}, [transition(**changes)])


def test_what_is_not_a_list_of_transitions():
    for wrong in (3, "a", [zero]):
        with pytest.raises(daedal.InvalidProblemError, match="transitions"):
            daedal.hybrid.HybridProblem({"a": LINE}, wrong)


def test_names_of_transitions_differ():
    with pytest.raises(daedal.InvalidProblemError, match="'up' is given twice"):
        daedal.hybrid.HybridProblem({"a": LINE}, [transition(name="up"), transition(name="up")])
    unnamed = daedal.hybrid.HybridProblem(
        {"a": LINE}, [transition(), transition(), transition(guard=lambda t, y: y[0])]
    )
    assert [t.name for t in unnamed.transitions] == ["zero", "zero (2)", "a -> a"]


def test_a_mode_has_one_transition_for_accumulation():
    with pytest.raises(daedal.InvalidProblemError, match="several transitions with guard='zeno'"):
        daedal.hybrid.HybridProblem({"a": LINE}, [transition(guard="zeno"), transition(guard="zeno")])


@pytest.mark.parametrize(
    ("guard", "message"),
    [
        (lambda t, y: np.nan, "'bad' must return a number other than NaN"),
        (lambda t, y: [y[0], np.nan], "'bad' must return a number other than NaN"),
        (lambda t, y: "up", "'bad' must return a number"),
        (lambda t, y: [], "'bad' must return a number"),
        (lambda t, y: None, "'bad' must return a number"),
        (lambda t, y: [[1.0], [1.0, 2.0]], "'bad' must return a number"),
        (lambda t, y: 1j * y[0], "'bad' must return a number"),
        (lambda t, y: -np.ones(1 + int(t > 1.0)), "'bad' returned 2 values .* it returned 1"),
        (lambda t, y: np.nan if t > 1.0 else -1.0, "'bad' must return a number other than NaN.* in mode 'a'"),
        (lambda t: t, r"guard of 'bad' takes 1 argument; expected \(t, y\)"),
        (lambda t, y, yp, lam: 1.0, r"guard of 'bad' takes \(t, y, yp, lam\)"),
    ],
    ids="nan nan-entry text empty none ragged complex grows nan-later one-argument four-arguments".split(),
)
def test_bad_guards(guard, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        run([transition(guard=guard, name="bad")])


def test_a_guard_that_cannot_be_evaluated():
    def guard(t, y):
        raise daedal.Unevaluable("out of range")

    with pytest.raises(daedal.InvalidProblemError, match=r"'bad' cannot be evaluated at t = 0: out of range"):
        run([transition(guard=guard, name="bad")])


@pytest.mark.parametrize("direction", [2, "up", [1, 1], None], ids=["two", "text", "too-many", "none"])
def test_bad_directions(direction):
    with pytest.raises(daedal.InvalidProblemError, match="direction of 'bad'"):
        run([transition(direction=direction, name="bad")])


@pytest.mark.parametrize(
    ("reset", "message"),
    [
        (
            lambda t, y: [1.0, 2.0],
            r"reset of 'bad' at t = 1 returned an invalid state: y has shape \(2,\); expected \(1,\)",
        ),
        (lambda t, y: None, "reset of 'bad' .* y"),
        (lambda t, y: [np.nan], "reset of 'bad' .* not finite"),
        (lambda t, y: ([0.0], [1.0, 2.0]), "reset of 'bad' .* yp has shape"),
        (lambda t, y: "back", "reset of 'bad'"),
        (lambda t: [0.0], "reset of 'bad' takes 1 argument"),
    ],
    ids=["too-long", "none", "nan", "slope", "text", "arguments"],
)
def test_bad_resets(reset, message):
    with pytest.raises(daedal.InvalidProblemError, match=message) as caught:
        run([transition(reset=reset, name="bad")])
    assert caught.value.solution.t[-1] == pytest.approx(1.0)


def test_the_reset_of_a_mechanism_returns_a_pair():
    bad = daedal.hybrid.Transition("a", "a", lambda t, q, v: q[0], -1, lambda t, q, v: q, "bad")
    with pytest.raises(daedal.InvalidProblemError, match=r"reset of 'bad' .* expected a pair \(q, v\)"):
        run([bad], {"a": BALL}, ("a", ([1.0], [0.0])))


def test_bad_targets():
    with pytest.raises(daedal.InvalidProblemError, match="target of 'bad' returned 'c' at t = 1, which is not a mode"):
        run([transition(target=lambda t, y: "c", name="bad")])


def test_a_state_that_does_not_tell_that_of_the_next_mode():
    with pytest.raises(daedal.InvalidProblemError, match=r"no reset, and the state of 'a' \(1 variables\).* 'b' \(2"):
        run([transition(target="b")], {"a": LINE, "b": PAIR})
    named = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 1.0], 1, names=["x"])
    other = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 1.0, yp[1]], 2, names=["x", "w"])
    with pytest.raises(daedal.InvalidProblemError, match="'a' lacks variables w of 'b'"):
        run([transition(target="b")], {"a": named, "b": other})
    renamed = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 1.0], 1, names=["angle"])
    with pytest.raises(daedal.InvalidProblemError, match="lacks variables angle"):
        run([transition(target="b")], {"a": named, "b": renamed})


def test_algebraic_variables_of_a_reset_must_be_consistent():
    tank = daedal.SemiExplicitDAE(lambda t, y, z: [1.0], lambda t, y, z: [z[0] - y[0]], 1, 1, names=["x", "z"])

    def jump(z):
        return daedal.hybrid.Transition("a", "a", lambda t, y, z: y[0] - 1.0, 1, lambda t, y, _: ([0.0], z), "jump")

    with pytest.raises(daedal.IntegrationError, match=r"(?s)'jump' .*violates the equations of mode 'a'.*project=True"):
        run([jump([5.0])], {"a": tank}, ("a", ([0.0], None)))
    for fine in (None, [1e-8]):
        sol = run([jump(fine)], {"a": tank}, ("a", ([0.0], None)))
        assert sol.n_events == 3 if sol.events[-1].t > 2.99 else 2
        assert sol["z"][-1] == pytest.approx(sol["x"][-1], abs=1e-6)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ([0.0], r"initial of a hybrid problem must be \(mode, initial values\)"),
        (([0.0], None), r"must be \(mode, initial values\)"),
        (("b", [0.0]), "'b' is not a mode; the modes are a"),
        (("a", [0.0, 1.0]), r"initial of mode 'a': y has shape \(2,\); expected \(1,\)"),
        (("a", [np.nan]), "not finite"),
    ],
    ids=["vector", "pair", "mode", "shape", "nan"],
)
def test_bad_initial_values(initial, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        run([transition()], initial=initial)


def test_inconsistent_initial_values_are_refused():
    rail = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, 0.0], lambda t, q: [q[1]], n_q=2, n_constraints=1)
    with pytest.raises(daedal.InconsistentInitialError):
        run([], {"a": rail}, ("a", ([0.0, 1.0], [1.0, 0.0])))
    sol = run([], {"a": rail}, ("a", ([0.0, 1.0], [1.0, 0.0])), correct_initial=True)
    assert sol.q[1, -1] == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_events": 0}, "max_events must be a positive integer"),
        ({"max_events": 2.5}, "max_events must be a positive integer"),
        ({"record_events": "no"}, "record_events must be True or False"),
        ({"fixed_step": 0.1}, "fixed_step"),
        ({"events": {"b": zero}}, "events: 'b' is not a mode"),
        ({"events": 3}, "events must be"),
        ({"t_eval": [5.0]}, "t_eval must lie within"),
        ({"rtol": "small"}, "rtol"),
        ({"rtol": -1.0}, "rtol"),
        ({"method": "magic"}, "magic"),
        ({"wavelets": 3}, "wavelets"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_options(options, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        run([transition(reset=lambda t, y: 0.0 * y)], **options)


def test_check_reports_guards_and_unreachable_modes():
    modes = {"a": LINE, "b": LINE, "c": LINE}
    problem = daedal.hybrid.HybridProblem(modes, [transition(target="b", name="go")])
    report = problem.check(0.0, ("a", [3.0]))
    assert report.guards == {"go": 2.0} and report.reachable == ("a", "b")
    assert "would fire immediately" in str(report) and "No transition leads to c" in str(report)
    flat = daedal.hybrid.HybridProblem(modes, [transition(guard=lambda t, y: 0.0, name="flat")])
    with pytest.raises(daedal.InvalidProblemError, match="'flat' is zero wherever it was evaluated"):
        flat.check(0.0, ("a", [3.0]))
    with pytest.raises(daedal.InvalidProblemError, match="initial must be"):
        problem.check(0.0, ("d", [3.0]))


def test_a_guard_that_never_changes_its_sign_does_no_harm():
    sol = run([transition(guard=lambda t, y: -1.0), transition(guard=lambda t, y: 0.0, name="flat")])
    assert sol.status == "finished" and sol.n_events == 0


def test_times_of_dense_output_lie_in_the_interval():
    sol = run([transition(reset=lambda t, y: 0.0 * y - 0.1)])
    with pytest.raises(daedal.InvalidProblemError, match=r"interval \[0.0, 3.0\]"):
        sol(3.5)
    with pytest.raises(daedal.InvalidProblemError, match="number or a vector"):
        sol(np.zeros((2, 2)))
    with pytest.raises(KeyError, match="no variable 'x'"):
        sol["x"]


def test_guards_of_systems_with_further_states_see_positions_and_velocities():
    motor = daedal.MechanicalSystem(
        1.0, lambda t, q, v, r: r, n_q=1, state_rate=lambda t, q, v, r: [1.0], n_r=1, names=["x"]
    )
    with pytest.raises(daedal.InvalidProblemError, match="guard of 'far' takes 'r'"):
        daedal.solve(
            daedal.hybrid.HybridProblem(
                {"a": motor}, [daedal.hybrid.Transition("a", "a", lambda t, q, v, r: r[0] - 1.0, name="far")]
            ),
            (0.0, 1.0),
            ("a", ([0.0], [0.0])),
        )

    def stop(t, q, v, r):
        return q, 0.0 * v, -r

    far = daedal.hybrid.Transition("a", "a", lambda t, q, v: q[0] - 1.0, 1, stop, "far")
    sol = daedal.solve(daedal.hybrid.HybridProblem({"a": motor}, [far]), (0.0, 3.0), ("a", ([0.0], [0.0])), rtol=1e-9)
    when = 6.0 ** (1.0 / 3.0)  # q = t^3/6
    assert sol.events[0].t == pytest.approx(when, abs=1e-7)
    np.testing.assert_allclose(sol.events[0].y_after, [1.0, 0.0, -when], atol=1e-6)
