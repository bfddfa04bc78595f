"""The automatic choice: what a run begins with, and the rules by which it goes on with another method or form."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import daedal
from daedal.analysis import measures
from daedal.analysis.thresholds import PATIENCE, STABILITY_BOUND, STEPS_BEFORE_QUESTION

FIRST = {"auto": ("DOPRI5", "CoordinateProjection"), "never": ("PHEM56", "VelocityConstraints")}
"""What a run begins with where accelerations are straight-line code, and where functions are called."""
SHARP = {**FIRST, "auto": ("DOP853", "CoordinateProjection")}
"""The same at tolerances of 1e-7 and less."""
either = pytest.mark.parametrize("compile", FIRST)

PENDULUM = daedal.library.get("planar_pendulum")
START = ([1.0, 0.0], [0.0, 0.0])


def pendulum_in_liquid(damping):
    """A pendulum in a liquid whose viscosity is ``damping(t)``."""

    def force(t, q, v):
        c = damping(t)
        return np.array([-c * v[0], -1.0 - c * v[1]])

    def constraint(t, q):
        return np.array([0.5 * (q[0] * q[0] + q[1] * q[1] - 1.0)])

    return daedal.MechanicalSystem(1.0, force, constraint, n_q=2, n_constraints=1, names=["x", "y"])


def honey(t_clear):
    """Very viscous until about `t_clear`, and then clear."""
    return pendulum_in_liquid(lambda t: 5e3 * (1.0 - np.tanh(10.0 * (t - t_clear))))


def changes(sol):
    """The times at which the notes say that the method or the form was changed."""
    return [float(note.split("t = ")[1].split()[0]) for note in sol.notes if "t = " in note]


def steps_around(sol, t):
    """The step that ends at a change, and the one that begins there."""
    at = np.abs(sol.t - t).argmin()
    return np.diff(sol.t)[at - 1 : at + 1]


# --- what a run begins with -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, method, formulation",
    [
        ({}, "DOPRI5", "CoordinateProjection"),
        ({"compile": "never"}, "PHEM56", "VelocityConstraints"),
        ({"method": "dassl"}, "DASSL", "GGL"),
        ({"method": "dopri5"}, "DOPRI5", "CoordinateProjection"),
        ({"method": "modified_bdf"}, "ModifiedBDF", "Index3"),
        ({"method": "hem4"}, "HEM4", "VelocityConstraints"),
        ({"formulation": "ggl"}, "DASSL", "GGL"),
        ({"formulation": "projected_invariants"}, "DASSL", "ProjectedInvariants"),
        ({"formulation": "baumgarte"}, "DOPRI5", "Baumgarte"),
        ({"formulation": "projection"}, "DOPRI5", "CoordinateProjection"),
    ],
)
def test_what_is_left_open_is_chosen(given, method, formulation):
    sol = daedal.solve(PENDULUM.problem, (0.0, 0.01), PENDULUM.initial, **given)
    assert (sol.method, sol.formulation) == (method, formulation)


def test_without_constraints_and_for_linear_systems_it_begins_with_dopri5():
    free = daedal.MechanicalSystem(1.0, lambda t, q, v: -q, n_q=1)
    assert daedal.solve(free, (0.0, 0.1), ([1.0], [0.0])).method == "DOPRI5"
    assert daedal.solve(free, (0.0, 0.1), ([1.0], [0.0]), formulation="none").method == "DOPRI5"
    with pytest.raises(daedal.InvalidProblemError, match="for systems without constraints"):
        daedal.solve(PENDULUM.problem, (0.0, 0.1), PENDULUM.initial, formulation="none")
    with pytest.raises(daedal.InvalidProblemError, match="imposes the constraints itself"):
        daedal.solve(PENDULUM.problem, (0.0, 0.1), PENDULUM.initial, formulation="ggl", method="hem4")


# --- stiff ----------------------------------------------------------------------------------------------------------


@either
@pytest.mark.parametrize("damping", [1e2, 1e3, 1e4])
def test_the_explicit_method_is_left_where_stability_limits_its_steps(damping, compile):
    """Not while c h is below the bound, and before many steps are lost at the limit on the negative real axis."""
    method, form = FIRST[compile]
    sol = daedal.solve(pendulum_in_liquid(lambda t: damping), (0.0, 5.0), START, rtol=1e-6, atol=1e-6, compile=compile)
    assert (sol.method, sol.formulation) == (f"{method}, then DASSL", f"{form}, then GGL")
    (t,) = changes(sol)
    last, _ = steps_around(sol, t)
    assert STABILITY_BOUND <= damping * last < 6.0
    assert 15 <= np.sum(sol.t <= t) < 60
    assert np.diff(sol.t).max() > 100.0 / damping


@either
@pytest.mark.parametrize("damping", [0.0, 1.0])
def test_what_is_not_stiff_keeps_the_explicit_method(damping, compile):
    method, _form = FIRST[compile]
    sol = daedal.solve(pendulum_in_liquid(lambda t: damping), (0.0, 20.0), START, rtol=1e-4, atol=1e-4, compile=compile)
    assert sol.method == method and sol.notes == ()


@either
@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-6])
def test_vibrations_that_limit_explicit_steps_are_left_to_collocation(constrained, tolerance, compile):
    """A chain of undamped stiff springs about a known slow path, free, and with two coordinates on a circle."""
    method, _form = FIRST[compile]
    n, stiffness = 6, 1e7
    springs = stiffness * (2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))

    def path(t):
        angle, rates = 0.3 * np.sin(t), np.array([0.3 * np.cos(t), -0.3 * np.sin(t)])
        turning = np.array([np.cos(angle), np.sin(angle)])
        q, v, a = (np.sin(t + np.arange(n) + 0.5 * k * np.pi) for k in range(3))
        if constrained:
            across = np.array([-turning[1], turning[0]])
            q[:2], v[:2], a[:2] = turning, rates[0] * across, rates[1] * across - rates[0] ** 2 * turning
        return q, v, a

    def force(t, q, v):
        at, _, acceleration = path(t)
        return acceleration - springs @ (q - at)

    circle = {"constraint": lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], "n_constraints": 1} if constrained else {}
    system = daedal.MechanicalSystem(1.0, force, n_q=n, **circle)
    sol = daedal.solve(system, (0.0, 3.0), path(0.0)[:2], rtol=tolerance, atol=tolerance, compile=compile)
    assert sol.method == (method if constrained else "DOPRI5") + ", then Collocation"
    assert sol.stats.steps < 500  # an explicit method needs 3 (4 stiffness)^(1/2) / 1
    errors = np.abs(sol.y - np.array([np.concatenate(path(t)[:2]) for t in sol.t]).T)
    # what the explicit method left of vibrations is damped slowly
    assert np.max(errors) < 100.0 * tolerance and np.max(errors[:, sol.t > 1.5]) < 10.0 * tolerance
    whole = daedal.solve(system, (0.0, 3.0), path(0.0)[:2], rtol=tolerance, atol=tolerance, method="collocation")
    assert whole.stats.steps < 100
    assert np.max(np.abs(whole.y - np.array([np.concatenate(path(t)[:2]) for t in whole.t]).T)) < 3.0 * tolerance


def test_advise_recommends_collocation_for_vibrations():
    free = daedal.MechanicalSystem(1.0, lambda t, q, v: np.sin(t) - 1e7 * (q - np.sin(t)), n_q=1)
    advice = daedal.advise(free, (0.0, 3.0), ([0.0], [1.0]), rtol=1e-4, atol=1e-4)
    assert (advice.case, advice.method.name) == (3, "collocation") and "vibrations" in advice.reasons[0]


@either
def test_stiff_at_first_and_then_no_longer(compile):
    method, form = SHARP[compile]
    system = honey(1.0)
    sol = daedal.solve(system, (0.0, 20.0), START, rtol=1e-7, atol=1e-7, compile=compile)
    assert sol.method == f"{method}, then DASSL, then {method}"
    assert sol.formulation == f"{form}, then GGL, then {form}"
    assert [note.split(" from ")[0] for note in sol.notes] == ["Stiff", "No longer stiff"]
    # it was asked after 300 steps of the stiff method, or after 600 more
    stiff, clear = changes(sol)
    taken = np.sum((sol.t > stiff * 1.0001) & (sol.t <= clear * 1.0001))
    # within one or two, since notes round their times
    assert min(abs(taken - STEPS_BEFORE_QUESTION), abs(taken - 3 * STEPS_BEFORE_QUESTION)) <= 2 and clear > 1.0
    other = daedal.solve(system, (0.0, 20.0), START, rtol=1e-9, atol=1e-9, method="dassl")
    np.testing.assert_allclose(sol.y[:, -1], other.y[:, -1], atol=2e-5)
    assert sol.drift["position"] < 1e-13 and np.all(np.diff(sol.t) > 0.0)
    between = sol(np.linspace(0.0, 20.0, 50))
    assert np.max(np.abs(np.sum(between.q**2, axis=0) - 1.0)) < 1e-12


@either
def test_stiff_clear_and_stiff_again(compile):
    """The explicit method that goes on watches for stiffness as the first one did."""
    method, _form = SHARP[compile]

    def damping(t):
        return 5e3 * (2.0 - np.tanh(10.0 * (t - 1.0)) + np.tanh(10.0 * (t - 12.0)))

    sol = daedal.solve(pendulum_in_liquid(damping), (0.0, 20.0), START, rtol=1e-7, atol=1e-7, compile=compile)
    assert sol.method == f"{method}, then DASSL, then {method}, then DASSL"
    assert 11.0 < changes(sol)[-1] < 12.0


@either
def test_max_steps_counts_all_segments(compile):
    method, _form = SHARP[compile]
    with pytest.raises(daedal.IntegrationError) as caught:
        daedal.solve(honey(1e3), (0.0, 1e4), START, rtol=1e-10, atol=1e-10, max_steps=700, compile=compile)
    sol = caught.value.solution
    assert sol.method == f"{method}, then DASSL, then {method}" and sol.stats.steps == 700 and sol.t.size == 701


@either
def test_a_false_alarm_leaves_the_method_and_is_not_raised_again_at_once(monkeypatch, compile):
    """Steps at the limit of stability alone are no proof: where the measures show nothing fast, nothing is changed."""
    method, _form = FIRST[compile]
    measured = []

    def calm(assembly, t, state):
        measured.append(t)
        return replace(measure(assembly, t, state), V_B=0.0, sigF=0.0, omegaF=0.0)

    measure = measures.measure
    monkeypatch.setattr(measures, "measure", calm)
    sol = daedal.solve(pendulum_in_liquid(lambda t: 1e3), (0.0, 4.0), START, rtol=1e-6, atol=1e-6, compile=compile)
    assert sol.method == method and sol.notes == () and sol.success
    between = [np.sum((sol.t > a) & (sol.t <= b)) for a, b in pairwise(measured)]
    assert len(between) >= 3
    assert all(PATIENCE * 2**i <= steps < PATIENCE * 2**i + 50 for i, steps in enumerate(between))
    # and the run has gone on as if nobody had looked
    unwatched = daedal.solve(
        *(pendulum_in_liquid(lambda t: 1e3), (0.0, 4.0), START),
        **{"rtol": 1e-6, "atol": 1e-6, "compile": compile, "method": method.lower(), "norm": "max"},
    )
    np.testing.assert_array_equal(sol.y, unwatched.y)


@either
def test_what_is_raised_while_a_suspicion_is_looked_into_arrives_with_what_was_computed(monkeypatch, compile):
    """Not that of the last two stages, but of the measures, whose differences reach beyond the states of the run."""

    def measure(assembly, t, state):
        raise ZeroDivisionError("beyond")

    monkeypatch.setattr(measures, "measure", measure)
    with pytest.raises(ZeroDivisionError, match="beyond") as caught:
        daedal.solve(pendulum_in_liquid(lambda t: 1e3), (0.0, 4.0), START, rtol=1e-6, atol=1e-6, compile=compile)
    assert caught.value.solution.t.size > 15


@pytest.mark.parametrize("name", ["car_axis", "violin_stick", "four_bar_with_spring", "flexible_slider_crank"])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-7, 1e-9])
def test_vibrations_that_are_followed_are_not_suspected(monkeypatch, name, tolerance):
    """Their frequency times the step stays below the limit; |J d| / |d| would be up to the square of the frequency."""

    def measure(assembly, t, state):
        raise AssertionError(f"a suspicion at t = {t:g}")

    monkeypatch.setattr(measures, "measure", measure)
    model = daedal.library.get(name)
    span = (model.t_span[0], model.t_span[0] + 0.5 * (model.t_span[1] - model.t_span[0]))
    sol = daedal.solve(model.problem, span, model.initial, rtol=tolerance, atol=tolerance)
    assert sol.method == ("DOPRI5" if tolerance > 1e-7 else "DOP853")


@pytest.mark.parametrize("tolerance", [1e-7, 1e-9])
@pytest.mark.parametrize("damping", [1e2, 1e4])
def test_the_method_of_order_8_is_left_where_stability_limits_its_steps(damping, tolerance):
    """Its limit on the negative real axis is 6.4."""
    sol = daedal.solve(pendulum_in_liquid(lambda t: damping), (0.0, 5.0), START, rtol=tolerance, atol=tolerance)
    assert (sol.method, sol.formulation) == ("DOP853, then DASSL", "CoordinateProjection, then GGL")
    (t,) = changes(sol)
    steps = np.diff(sol.t[sol.t <= t])
    explicit = steps[steps > 0.05 * steps.max()]  # DASSL begins with much shorter ones, and the note rounds its time
    assert 2.5 <= damping * np.median(explicit[-5:]) < 7.0 and 15 <= explicit.size < 60


def test_limits_on_the_imaginary_axis_are_those_of_the_stability_functions():
    """|R(i y)| <= 1 up to 0.997 for DOPRI5, whose limit 1.2 costs 3e-4 a step, and up to 5.96 for DOP853."""
    for method, stable in ((daedal.methods.DOPRI5, 0.997), (daedal.methods.DOP853, 5.96)):
        tableau = method.tableau
        a, b = tableau.arrays["a"], np.array(tableau.b)
        powers = [np.ones(b.size)]
        for _ in range(b.size - 1):
            powers.append(a @ powers[-1])
        function = np.polynomial.Polynomial([1.0, *(b @ power for power in powers)])
        assert np.all(np.abs(function(1j * np.linspace(0.0, stable, 2000))) <= 1.0 + 1e-14)
        assert abs(function(1j * (stable + 0.01))) > 1.0
        assert abs(function(1j * tableau.stiffness_check)) < 1.0005


# --- constraint forces that turn quickly ----------------------------------------------------------------------------


@either
@pytest.mark.parametrize("kappa", [0.0, 1.0])
@pytest.mark.parametrize("nu", [100.0, 1000.0])
def test_turning_constraint_forces_are_left_to_projected_invariants(nu, kappa, compile):
    """Case 4 of the decision; V_B grows like nu, and the explicit steps end where h V_B meets the bound."""
    method, form = FIRST[compile]
    model = daedal.library.stability_example3(nu=nu, kappa=kappa)
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-6, atol=1e-6, compile=compile)
    assert sol.method == f"{method}, then DASSL"
    assert sol.formulation == f"{form}, then ProjectedInvariants"
    np.testing.assert_allclose(sol.y[:, -1], math.e, atol=3e-5)
    assert sol.stats.steps < 150


@either
def test_the_stabilised_form_is_left_when_the_constraint_forces_begin_to_turn(compile):
    """A bead with masses (1, 1e-4) on a rod that begins to turn at t = 1, drawn along a known path by a stiff force."""
    method, form = FIRST[compile]
    masses, rate = np.array([1.0, 1e-4]), 1e3

    def path(t):
        angle, speed = 0.5 * (t - 1.0 + np.log(np.cosh(10.0 * (t - 1.0))) / 10.0), 0.5 + 0.5 * np.tanh(10.0 * (t - 1.0))
        along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
        return along, speed * across, 5.0 / np.cosh(10.0 * (t - 1.0)) ** 2 * across - speed**2 * along

    def force(t, q, v):
        _, velocity, acceleration = path(t)
        return masses * (acceleration - rate * (v - velocity))

    def constraint(t, q):
        along = path(t)[0]
        return np.array([along[0] * q[1] - along[1] * q[0]])

    system = daedal.MechanicalSystem(masses, force, constraint, n_q=2, n_constraints=1)
    q0, v0, _ = path(0.0)
    sol = daedal.solve(system, (0.0, 3.0), (q0, v0), rtol=1e-6, atol=1e-6, compile=compile)
    assert sol.method == f"{method}, then DASSL"
    assert sol.formulation == f"{form}, then GGL, then ProjectedInvariants"
    assert "constraint forces rotate rapidly" in sol.notes[-1]
    np.testing.assert_allclose(sol.q, np.transpose([path(t)[0] for t in sol.t]), atol=5e-4)

    def amplification(before, t):
        """|| (I - B (C B)^{-1} C)(t) S(before) || with C across and S along the rod."""
        c, s = np.array([-path(t)[0][1], path(t)[0][0]]), path(before)[0]
        b = c / masses
        return np.linalg.norm(s - b * (c @ s) / (c @ b))

    # after the fifth step in sequence with more than 1.05, and no sooner
    end = np.abs(sol.t - changes(sol)[-1]).argmin()
    found = np.array([amplification(*sol.t[i - 1 : i + 1]) for i in range(end - 5, end + 1)])
    assert found[0] <= 1.05 and np.all(found[1:] > 1.05)


# --- compiled models ------------------------------------------------------------------------------------------------


def test_other_parameters_need_no_new_compilation():
    model, again = (daedal.library.get("particle_on_paraboloid").problem.compiled("numba") for _ in range(2))
    assert again.constraint is model.constraint
