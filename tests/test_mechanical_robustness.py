"""Mechanical systems under stress: what was computed is never lost, wrong input is named, nothing hangs."""

import numba
import numpy as np
import pytest

import daedal
from daedal import InconsistentInitialError, IntegrationError, InvalidProblemError, MechanicalSystem, library
from daedal.driver.choice import MethodChoice
from daedal.driver.mechanism import MechanismRunState
from daedal.driver.mechanism_output import PostprocessGuard
from interrupts import computed_until

GRAVITY = 9.81
START = ([1.0, 0.0], [0.0, 0.0])


def pendulum(**changes):
    given = {
        "mass": 1.0,
        "force": lambda t, q, v: [0.0, -GRAVITY],
        "constraint": lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
        "n_q": 2,
        "n_constraints": 1,
        "names": ["x", "y"],
        "constraint_names": ["rod"],
    }
    return MechanicalSystem(**(given | changes))


def skate(**changes):
    """Moves along (1, y): 0 = y x' - y'."""
    given = {
        "mass": 1.0,
        "force": lambda t, q, v: [1.0, 0.0],
        "n_q": 2,
        "velocity_constraint": lambda t, q, v: [v[0] * q[1] - v[1]],
        "n_velocity_constraints": 1,
    }
    return MechanicalSystem(**(given | changes))


def solve(system=None, t_span=(0.0, 1.0), initial=START, **options):
    return daedal.solve(pendulum() if system is None else system, t_span, initial, **options)


def refused(message):
    return pytest.raises(InvalidProblemError, match=message)


def inconsistent(message):
    return pytest.raises(InconsistentInitialError, match=message)


def until(function, error, limit=0.5):
    def wrapped(t, *rest):
        if t > limit:
            raise error
        return function(t, *rest)

    return wrapped


def rod(t, q):
    return [q[0] ** 2 + q[1] ** 2 - 1.0]


def still(t, q):
    return [0.0]


class Boom(Exception):
    pass


@pytest.fixture(scope="module")
def reference():
    """The pendulum at t = 1."""
    return solve(rtol=1e-10, atol=1e-12).q[:, -1]


# --- constraints that return nonsense --------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 0.0, "a", 1j, object(), [1.0, 2.0]])
@pytest.mark.parametrize("form", ["auto", "ggl"])
def test_results_of_constraints_are_checked(value, form):
    with refused("^constraint returned"):
        solve(pendulum(constraint=lambda t, q: value), formulation=form)
    with refused("^velocity_constraint returned"):
        solve(skate(velocity_constraint=lambda t, q, v: value), initial=([1.0, 1.0], [1.0, 1.0]), formulation=form)


def test_results_of_compiled_constraints_are_checked():
    with refused(r"must return a float array of shape \(1,\)"):
        solve(pendulum(constraint=numba.njit(lambda t, q: q[0] ** 2 + q[1] ** 2 - 1.0)))
    with refused(r"constraint returned an array of shape \(2,\); expected \(1,\)"):
        solve(pendulum(constraint=numba.njit(lambda t, q: np.zeros(2))))


# --- constraints that end before the interval does -------------------------------------------------------------------


@pytest.mark.parametrize("form", ["ggl", "index2"])
def test_a_constraint_that_ends_stops_the_run_there_and_is_named(form):
    message = r"(?s)Stopped at t = 0\.5.*beyond t = 0\.5.*constraint raises Unevaluable: no rail.*Remedy"
    with pytest.raises(IntegrationError, match=message) as caught:
        solve(pendulum(constraint=until(rod, daedal.Unevaluable("no rail"))), formulation=form)
    assert caught.value.solution.t[-1] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("form", ["auto", "ggl"])
def test_a_run_may_end_before_the_constraint_does(form):
    event = daedal.Event(lambda t, q, v: t - 0.3, terminal=True)
    for error in (daedal.Unevaluable("late"), Boom("late")):
        sol = solve(pendulum(constraint=until(rod, error)), events=event, formulation=form)
        assert sol.status == "event"
        assert sol.t[-1] == pytest.approx(0.3)


@pytest.mark.parametrize("form", ["ggl", "index2"])
def test_a_constraint_that_becomes_nan(form):
    system = pendulum(constraint=lambda t, q: [q @ q - 1.0 if t < 0.5 else np.nan])
    with pytest.raises(IntegrationError, match="constraint returns NaN or infinity"):
        solve(system, formulation=form)


# --- the output stage ------------------------------------------------------------------------------------------------


def test_an_interrupt_while_the_output_is_projected_is_the_users_and_loses_nothing(reference):
    presses = [KeyboardInterrupt()]

    def interrupted_once(t, q):
        if t >= 0.5 and presses:
            raise presses.pop()
        return still(t, q)

    sol = solve(pendulum(constraint_t=interrupted_once), formulation="index1")
    assert sol.status == "finished"
    with pytest.raises(KeyboardInterrupt):
        sol.q  # noqa: B018
    assert sol.q[:, -1] == pytest.approx(reference, abs=1e-5)
    assert sol.drift["position"] < 1e-12


def test_an_exception_in_the_output_stage_is_a_note(reference):
    sol = solve(pendulum(constraint_t=until(still, Boom("late"))), formulation="index1")
    assert sol.success
    assert sol.message.count("Boom: late") == 1
    assert sol.q[:, -1] == pytest.approx(reference, abs=1e-5)


def test_output_that_could_not_be_projected_is_noted():
    sol = solve(pendulum(constraint_t=until(still, daedal.Unevaluable())), formulation="index1")
    assert "output points, the first at t = 0.5" in sol.message
    assert "could not be projected" in sol.message
    assert np.isfinite(sol.drift["position"])


def test_salvage_takes_one_note_for_each_reason():
    salvage = PostprocessGuard()

    def fail(error):
        raise error

    for error in (Boom("a"), Boom("a"), Boom("b"), KeyboardInterrupt(), KeyboardInterrupt()):
        assert salvage.attempt("trying", lambda error=error: fail(error), 5) == 5
    assert salvage.attempt("trying", lambda: 3) == 3
    assert salvage.interrupted
    assert salvage.notes == [
        "Failed while trying: Boom: a.",
        "Failed while trying: Boom: b.",
        "Interrupted while trying.",
    ]


def broken_restart(monkeypatch, error, after=1):
    restart, count = MechanismRunState._restart, [0]

    def broken(*arguments):
        count[0] += 1
        if count[0] > after:
            raise error
        return restart(*arguments)

    monkeypatch.setattr(MechanismRunState, "_restart", broken)


def test_an_interrupt_between_segments_keeps_what_was_computed(monkeypatch):
    broken_restart(monkeypatch, KeyboardInterrupt())
    sol = computed_until(lambda: solve(t_span=(0.0, 5.0), formulation="state_space"))
    assert sol.status == "interrupted"
    assert 0.1 < sol.t[-1] < 5.0
    assert sol.drift["position"] < 1e-12


def test_an_exception_between_segments_carries_what_was_computed(monkeypatch):
    broken_restart(monkeypatch, Boom("between"))
    with pytest.raises(Boom, match="between") as caught:
        solve(t_span=(0.0, 5.0), formulation="state_space")
    assert 0.1 < caught.value.solution.t[-1] < 5.0


@pytest.mark.parametrize("form", ["auto", "ggl", "state_space"])
def test_exceptions_of_the_user_carry_what_was_computed(form):
    with pytest.raises(Boom, match=r"^late$") as caught:
        solve(pendulum(force=until(lambda t, q, v: [0.0, -GRAVITY], Boom("late"))), formulation=form)
    assert 0.3 < caught.value.solution.t[-1] <= 0.5
    assert caught.value.solution.q.shape[0] == 2


def test_restarts_without_progress_end(monkeypatch):
    monkeypatch.setattr(MethodChoice, "continues", lambda self, segment: True)
    monkeypatch.setattr(MechanismRunState, "_restart", lambda self, segment: self.start)
    following = MechanismRunState.segment

    def standing(self, earlier, progress):
        self.choice.changed = True
        segment = following(self, earlier, progress)
        segment.outcome.t_reached = self.start.t
        return segment

    monkeypatch.setattr(MechanismRunState, "segment", standing)
    with pytest.raises(IntegrationError, match=r"restarted 10 times without progress\. Remedy") as caught:
        solve(formulation="state_space", max_steps=10**6)
    assert caught.value.solution.t.size > 0


# --- derivatives that are wrong --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"constraint_jacobian": lambda t, q: [[0.0, -9.0]]},
            r"constraint_jacobian disagrees .* at t = 0: d 'rod' / d y is -9, but should be 0\. .*system\.check",
        ),
        ({"constraint_jacobian": lambda t, q: [[2.0 * q[0], 0.1]]}, "d 'rod' / d y is 0.1, but should be 0"),
        ({"acceleration_bias": lambda t, q, v: [1.0]}, "acceleration_bias disagrees .*the bias of 'rod' at v ="),
        ({"acceleration_bias": lambda t, q, v: [-(v @ v)]}, "acceleration_bias disagrees"),
        ({"constraint_t": lambda t, q: [1.0]}, "constraint_t disagrees .*d 'rod' / d t is 1, but should be 0"),
    ],
)
@pytest.mark.parametrize("correct", [False, True])
def test_wrong_derivatives_are_refused(changes, message, correct):
    with refused(message):
        solve(pendulum(**changes), correct_initial=correct)


def test_wrong_derivatives_of_velocity_constraints_are_refused():
    initial = ([1.0, 1.0], [1.0, 1.0])
    with refused(r"velocity_jacobian disagrees .*d velocity constraint 0 / d v\[1\] is 1, but should be -1"):
        solve(skate(velocity_jacobian=lambda t, q: [[q[1], 1.0]]), initial=initial)
    with refused("velocity_bias disagrees"):
        solve(skate(velocity_bias=lambda t, q, v: [v[0] * v[1]]), initial=initial)
    assert solve(skate(velocity_bias=lambda t, q, v: [-v[0] * v[1]]), initial=initial).success


def test_a_wrong_derivative_of_a_sparse_system_is_refused():
    model = library.chain_of_pendulums(n=5)
    right = model.problem.constraint_jacobian
    wrong = model.problem.replaced(constraint_jacobian=lambda t, q, p: 1.1 * right(t, q, p))
    with refused("constraint_jacobian disagrees"):
        daedal.solve(wrong, (0.0, 0.1), model.initial)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_right_derivatives_are_taken_in_any_unit(size):
    system = pendulum(
        force=lambda t, q, v: [0.0, -GRAVITY * size],
        constraint=lambda t, q: [q @ q - size**2 * (1.0 + 0.1 * np.sin(t)) ** 2],
        constraint_jacobian=lambda t, q: [2.0 * q],
        constraint_t=lambda t, q: [-2.0 * size**2 * (1.0 + 0.1 * np.sin(t)) * 0.1 * np.cos(t)],
        acceleration_bias=lambda t, q, v: [
            -2.0 * (v @ v) + 2.0 * size**2 * ((0.1 * np.cos(t)) ** 2 - (1.0 + 0.1 * np.sin(t)) * 0.1 * np.sin(t)),
        ],
    )
    sol = solve(system, initial=([size, 0.0], [0.1 * size, 0.0]), atol=1e-9 * size)
    np.testing.assert_allclose(np.hypot(*sol.q), size * (1.0 + 0.1 * np.sin(sol.t)), rtol=1e-8)


@pytest.mark.parametrize("noise", [1e-9, 1e-6])
def test_noisy_or_kinked_constraints_are_not_refused_for_it(noise):
    from daedal.initial.given_derivatives import check_given

    random = np.random.default_rng(1)
    system = pendulum(
        constraint=lambda t, q: [q @ q - 1.0 + noise * random.standard_normal()],
        constraint_jacobian=lambda t, q: [2.0 * q],
        constraint_t=still,
        acceleration_bias=lambda t, q, v: [-2.0 * (v @ v)],
    )
    check_given(system, 0.0, np.array([1.0, 0.0]), np.zeros(2))
    kinked = pendulum(constraint=lambda t, q: [abs(q[1])], constraint_jacobian=lambda t, q: [[0.0, 1.0]])
    check_given(kinked, 0.0, np.array([1.0, 0.0]), np.zeros(2))
    if noise < 1e-8:  # an error is seen through it; more noise hides everything
        wrong = system.replaced(constraint_jacobian=lambda t, q: [2.1 * q])
        with refused("constraint_jacobian disagrees"):
            check_given(wrong, 0.0, np.array([1.0, 0.0]), np.zeros(2))


# --- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["auto", "ggl", "index1"])
@pytest.mark.parametrize("t0", [1e6, -1e6, 1e9])
def test_late_times(form, t0, reference):
    sol = solve(t_span=(t0, t0 + 1.0), formulation=form)
    assert sol.q[:, -1] == pytest.approx(reference, abs=1e-4)


@pytest.mark.parametrize("t_span", [(1e15, 1e15 + 1.0), (-1e15, 1.0 - 1e15), (1e13, 1e13 + 1.0)])
def test_times_that_floats_cannot_resolve_are_refused(t_span):
    with refused(r"t_span .* cannot be resolved: floats near .* apart\. Shift the time"):
        solve(t_span=t_span)


# --- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (daedal.formulations.Baumgarte(gamma=np.nan), "gamma must be finite, got nan"),
        (daedal.formulations.Baumgarte(gamma=np.inf), "gamma must be finite, got inf"),
        (daedal.formulations.Baumgarte(coefficients=[np.nan, 2.0]), "coefficients holds values that are not finite"),
        (daedal.formulations.Index2(gamma=np.nan), "gamma must be finite"),
        (daedal.formulations.Index2(gamma=-5.0), "gamma must not be negative"),
        (daedal.formulations.ProjectedInvariants(k=1.0), "k must be 1 to 2, got 1.0"),
        (daedal.formulations.CoordinateProjection(levels=1.0), "levels must be 1 to 2, got 1.0"),
        (
            daedal.formulations.CoordinateProjection(weight=[["a"]]),
            "weight must be 'M', 'I' or a positive definite matrix",
        ),
        (
            daedal.formulations.CoordinateProjection(weight=None),
            "weight must be 'M', 'I' or a positive definite matrix, got None",
        ),
        (
            daedal.formulations.CoordinateProjection(weight=2.0),
            "weight must be 'M', 'I' or a positive definite matrix, got 2.0",
        ),
        (daedal.formulations.CoordinateProjection(weight=[np.nan, 1.0]), "weight holds values that are not finite"),
        (daedal.formulations.CoordinateProjection(weight=np.zeros((2, 2))), "weight must be positive definite"),
        (daedal.formulations.CoordinateProjection(weight=[[1.0, 2.0], [2.0, 1.0]]), "weight must be positive definite"),
        (daedal.formulations.CoordinateProjection(weight=[[1.0, 0.5], [0.0, 1.0]]), "weight must be symmetric"),
        (daedal.formulations.GGL(projection=[[np.nan], [1.0]]), "projection holds values that are not finite"),
        (daedal.formulations.GGL(projection=[[0.0], [0.0]]), "projection: G D is singular at t = 0"),
        (daedal.formulations.GGL(projection=lambda t, q: [[0.0], [1.0]]), "projection: G D is singular at t = 0"),
        (daedal.formulations.Loetstedt(np.inf), "epsilon must be finite"),
        (daedal.formulations.Hanke(mu=np.nan), "mu must be finite"),
        (daedal.formulations.StateSpace(restart=0.5), "restart must be greater than 1"),
        (None, "formulation=None is for systems without constraints"),
        ("none", "formulation='none' is for systems without constraints"),
    ],
)
def test_parameters_of_formulations(form, message):
    with refused(message):
        solve(formulation=form)


@pytest.mark.parametrize("form", [None, "none"])
def test_a_system_without_constraints_needs_no_formulation(form):
    sol = solve(MechanicalSystem(1.0, lambda t, q, v: -q, n_q=1), initial=(1.0, 0.0), formulation=form)
    assert sol.q[0, -1] == pytest.approx(np.cos(1.0), abs=1e-4)


@pytest.mark.parametrize(("name", "meant"), [("dasl", "dassl"), ("dopri", "dopri5"), ("PHEM", "phem56")])
def test_methods_that_are_misspelt(name, meant):
    with refused(f"unknown method '{name}'; did you mean '{meant}'"):
        solve(method=name)


@pytest.mark.parametrize("method", [daedal.methods.DASSL, daedal.methods.DOPRI5, daedal.methods.PHEM56])
def test_a_method_may_be_given_by_its_class(method, reference):
    assert solve(method=method).q[:, -1] == pytest.approx(reference, abs=1e-4)


def test_flags_are_true_or_false():
    with refused("dense_output must be True or False, got 'no'"):
        solve(dense_output="no")
    with refused("correct_initial must be True or False, got 'yes'"):
        solve(correct_initial="yes")


def test_initial_algebraic_variables_of_a_system_without_any():
    with refused(r"w0 has shape \(1,\); expected \(0,\)"):
        solve(initial=(*START, None, [1.0]))


@pytest.mark.parametrize("method", ["auto", "dopri5", "dassl"])
def test_a_zero_with_zero_tolerance_is_named(method):
    with pytest.raises(IntegrationError, match=r"(?s)atol.*Remedy: make atol.* positive"):
        solve(atol=0.0, method=method)


def test_a_penalty_cannot_serve_friction():
    system = pendulum(force_uses_multipliers=True, force=lambda t, q, v, lam: [0.0, -GRAVITY - 0.1 * lam[0] * v[1]])
    with refused("has no multipliers, but the forces of this system depend on them"):
        solve(system, formulation="loetstedt")


def test_options_of_consistent_initial():
    with refused("weight holds values that are not finite"):
        daedal.consistent_initial(pendulum(), 0.0, START, weight=[np.nan, 1.0])
    with refused("t0 must be a number, got None"):
        daedal.consistent_initial(pendulum(), None, START)


# --- notes -----------------------------------------------------------------------------------------------------------


def test_positions_below_their_tolerance_are_noted(reference):
    size = 1e-9
    system = pendulum(force=lambda t, q, v: [0.0, -GRAVITY * size], constraint=lambda t, q: [q @ q - size**2])
    assert "No position exceeds its atol" in solve(system, initial=([size, 0.0], [0.0, 0.0])).message
    fine = solve(system, initial=([size, 0.0], [0.0, 0.0]), atol=1e-9 * size)
    assert "atol" not in fine.message
    assert fine.q[:, -1] / size == pytest.approx(reference, abs=1e-4)


def test_a_constraint_that_jumps_is_named():
    system = pendulum(constraint=lambda t, q: [q @ q - (1.0 if t < 0.5 else 2.0)])
    with pytest.raises(daedal.IntegrationError, match=r"'rod' changes by -1 after t = 0\.49"):
        solve(system, formulation="index1")
    assert "Before projection" not in solve(formulation="index1").message


@pytest.mark.parametrize("options", [{"formulation": "ggl", "method": "dassl", "max_order": 1}, {"method": "rk4"}])
def test_fixed_steps_do_not_pass_a_singular_position(options):
    crank = library.get("crank_slider", l1=1, l2=1, phi1=1.0, rate=5.0)
    with pytest.raises(IntegrationError, match="singular configuration, in which the gradient of 'slider' vanishes"):
        daedal.solve(crank.problem, (0.0, 0.5), crank.initial, fixed_step=0.005, **options)


# --- points, states, sparse systems ----------------------------------------------------------------------------------


def test_nothing_is_determined_in_a_singular_position():
    point = pendulum().at(0.0, [0.0, 0.0])
    assert np.isnan(point.acceleration).all()
    assert np.isnan(point.multipliers).all()
    assert np.isfinite(pendulum().at(0.0, [1.0, 0.0]).acceleration).all()


def test_a_point_that_cannot_be_evaluated_names_the_function():
    with refused("force returns NaN or infinity at t = 0"):
        pendulum(force=lambda t, q, v: [np.nan, 0.0]).at(0.0, [1.0, 0.0])
    with inconsistent("force returns NaN or infinity at the initial values, t = 0"):
        solve(pendulum(force=lambda t, q, v: [np.nan, 0.0]))
    with inconsistent("mass raises Unevaluable: none here at the initial values"):
        solve(pendulum(mass=until(lambda t, q: np.eye(2), daedal.Unevaluable("none here"), -1.0)))


def test_a_locked_mechanism_is_not_a_contradiction():
    locked = {"constraint": lambda t, q: [q[0] - 1.0, q[1], q[0] + q[1] - 1.0], "constraint_names": None}
    system = pendulum(n_constraints=3, **locked)
    assert solve(system).q[:, -1] == pytest.approx([1.0, 0.0])


def test_states_have_reactions():
    sol = solve()
    assert sol(1.0).reaction == pytest.approx(sol.reaction[:, -1], abs=1e-9)
    assert sol([0.2, 0.4]).reaction.shape == (2, 2)


def test_a_sparse_system_can_be_looked_at_and_made_consistent():
    model = library.chain_of_pendulums(n=3)
    system, (q, v) = model.problem, model.initial
    assert system.check(0.0, q, v).ok
    assert np.isfinite(system.at(0.0, q, v).acceleration).all()
    start = daedal.consistent_initial(system, 0.0, (np.array(q) + 1e-3, v))
    assert np.max(np.abs(system.at(0.0, start.q, start.v).constraint)) < 1e-12
    with refused("fixed is not available for systems with sparse matrices"):
        daedal.consistent_initial(system, 0.0, (q, v), fixed=[0])


def test_failures_of_sparse_systems_are_explained():
    model = library.chain_of_pendulums(n=20)
    with pytest.raises(IntegrationError, match=r"the limit of 5 steps was reached.*raise max_steps"):
        daedal.solve(model.problem, (0.0, 1.0), model.initial, max_steps=5)
    system = model.problem.replaced(force=lambda t, q, v, p: np.nan * q)
    with inconsistent("force returns NaN or infinity at the initial values"):
        daedal.solve(system, (0.0, 1.0), model.initial)


def test_factors_of_constraints_do_not_change_the_steps_of_ggl():
    def steps(factor):
        system = pendulum(constraint=lambda t, q: [factor * (q @ q - 1.0)])
        return solve(system, formulation="ggl").stats.steps

    assert abs(steps(1e4) - steps(1.0)) <= 2
    assert abs(steps(1e-4) - steps(1.0)) <= 2


# --- linear problems -------------------------------------------------------------------------------------------------


def hessenberg(**changes):
    given = {"A": np.zeros((1, 2, 2)), "B": [[1.0], [0.0]], "C": [[1.0, 0.0]], "q": [0.0, 0.0], "r": [0.0]}
    return daedal.HessenbergDAE(**(given | {"n_x": 2, "n_y": 1} | changes))


def linear(**changes):
    given = {"A": [[0.0]], "B": [[-1.0]], "C": [[1.0]], "D": [[0.0]], "n_x": 1, "n_y": 1}
    return daedal.LinearDAE(**(given | {"p": lambda t: np.sin([t]), "q": lambda t: -np.cos([t])} | changes))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda t: None, "B returned None; expected an array of shape"),
        (lambda t: "a", "B must hold real numbers"),
        (lambda t: [[1j], [0.0]], "B must hold real numbers"),
        (lambda t: np.ones((2, 2)), r"B has shape \(2, 2\); expected \(2, 1\)"),
    ],
)
def test_coefficients_of_linear_problems(value, message):
    with refused(message):
        daedal.solve(hessenberg(B=value), (0.0, 1.0), [0.0, 0.0])


def test_a_transposed_coefficient_is_refused():
    problem = hessenberg(
        A=np.zeros((1, 3, 3)), B=lambda t: np.ones((2, 3)), C=np.eye(3)[:2], q=np.zeros(3), r=np.zeros(2), n_x=3, n_y=2
    )
    with refused(r"B has shape \(2, 3\); expected \(3, 2\)"):
        problem.coefficients(0.0)


def test_starts_of_linear_problems():
    with inconsistent("r is not finite at t = 0"):
        daedal.solve(hessenberg(r=lambda t: [np.nan]), (0.0, 1.0), [0.0, 0.0])
    with inconsistent("C B is singular at t = 0"):
        daedal.solve(hessenberg(B=[[0.0], [1.0]]), (0.0, 1.0), [0.0, 0.0])
    with refused("initial is missing"):
        daedal.solve(hessenberg(), (0.0, 1.0), None)
    second = hessenberg(A=np.zeros((2, 2, 2)), order=2)
    with inconsistent(r"constraint 0, derivative 1, \(2\).*nearest values .*x\[0\]' = 0 \(given 2\)"):
        daedal.solve(second, (0.0, 1.0), [0.0, 0.0, 2.0, 0.0])


@pytest.mark.parametrize("name", ["A", "B", "C", "D"])
def test_coefficients_that_are_not_finite(name):
    with refused(f"{name} is None"):
        linear(**{name: None})
    with refused(f"{name} holds values that are not finite"):
        linear(**{name: [[np.nan]]})
    with refused(f"{name} is not finite at t = 0"):
        daedal.solve(
            linear(**{name: lambda t: [[np.nan]]}), (0.0, 1.0), ([1.0], None), formulation="stabilised_reduction"
        )


def test_the_formulation_of_a_linear_problem():
    form = daedal.formulations.StabilisedReduction
    assert daedal.solve(linear(), (0.0, 1.0), ([1.0], None), formulation=form).success
    with refused("did you mean 'stabilised_reduction'"):
        daedal.solve(linear(), (0.0, 1.0), ([1.0], None), formulation="stabilized_reduction")


def test_order_conditions_are_at_hand():
    assert daedal.analysis.order_conditions.__name__ == "daedal.analysis.order_conditions"
