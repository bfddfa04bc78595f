"""What a user is told when a run fails: the cause, the names, the remedy (daedal.analysis.diagnosis)."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import j0

import daedal
from daedal.analysis import diagnosis, mechanism_failure
from daedal.analysis.diagnosis import describe_inconsistency, diagnose
from daedal.analysis.wording import Failure
from daedal.kernels.endings import MEANINGS
from differential.families import drawn as problems


@dataclass
class StandIn:
    """As much of a problem as the diagnosis needs."""

    residual: Any
    n: int
    names: Any = None
    params: Any = None
    jacobian: Any = None
    sparsity: Any = None
    bandwidth: Any = None

    def evaluate(self, t, y, yp):
        return np.asarray(self.residual(t, y, yp), dtype=float)


def failure(code, y, yp, *, t=0.5, h=1e-9, rtol=1e-6, atol=1e-9, correction=None, t_span=(0.0, 1.0), **changes):
    """A failure in the middle of a run, at the last good values y, y'."""
    y, yp = np.array(y, dtype=float), np.array(yp, dtype=float)
    correction = np.zeros(y.size) if correction is None else np.array(correction, dtype=float)
    fields = {
        "code": code,
        "t": t,
        "h": h,
        "order": 1,
        "y": y,
        "yp": yp,
        "tried_y": y + h * yp + correction,
        "correction": correction,
        "weights": rtol * np.abs(y) + atol,
        "cj": 1.0 / h if h else 0.0,
        "steps": 40,
        "error_test_failures": 12,
        "newton_failures": 3,
        "attempt_error_failures": 8,
        "attempt_newton_failures": 2,
        "first_step_failures": 0,
        "t_span": t_span,
        "included": np.ones(y.size),
    }
    return Failure(**(fields | changes))


def at_start(code, y, yp, **changes):
    return failure(code, y, yp, t=0.0, steps=0, first_step_failures=9, **changes)


def pendulum(constraint):
    """Cartesian pendulum with gravity along z and one constraint of a chosen level."""

    def residual(t, y, yp):
        x, z, vx, vz, lam = y
        last = {"position": x * x + z * z - 1.0, "velocity": x * vx + z * vz}[constraint]
        return [yp[0] - vx, yp[1] - vz, yp[2] + x * lam, yp[3] + z * lam - 1.0, last]

    return StandIn(residual, 5, names=("x", "z", "vx", "vz", "lam"))


PENDULUM_Y, PENDULUM_YP = [0.6, 0.8, -0.8, 0.6, 1.8], [-0.8, 0.6, -1.08, -0.44, 1.8]


def lines_of(message):
    lines = message.split("\n")
    assert 3 <= len(lines) <= 8
    assert all(line and line == line.strip() for line in lines)
    return lines


# ------------------------------------------------------------------------------------------------------- higher index


def test_index_three_is_told_with_its_constraint_variable_and_ways_out():
    message = diagnose(pendulum("position"), failure(-7, PENDULUM_Y, PENDULUM_YP, correction=[0, 0, 1e-5, 0, 0.3]))
    lines_of(message)
    assert "index 3" in message and "locally" in message
    assert "equation 4 (numbered from 0) does not determine lam" in message
    assert "second time derivative" in message
    assert "daedal.MechanicalSystem" in message
    assert "daedal.SecondOrderDAE(lambda t, x, v, a: residual(t, x, v), 5)" in message
    assert "lam (1.666e+05)" in message, "the variable that changed most, in units of its tolerance"


@pytest.mark.parametrize("tolerance", 10.0 ** np.arange(-10, 0))
@pytest.mark.parametrize("angle", [0.0, 0.4, 1.0, 3.0])
def test_loose_tolerances_do_not_change_the_index(tolerance, angle):
    speed, c, s = 2.0, np.cos(angle), np.sin(angle)
    lam = speed**2 + s
    y, yp = [c, s, -speed * s, speed * c, lam], [-speed * s, speed * c, -c * lam, 1.0 - s * lam, 3.0]
    message = diagnose(pendulum("position"), failure(-7, y, yp, rtol=tolerance, atol=tolerance))
    assert "the problem has index 3" in message
    assert "equation 4 (numbered from 0) does not determine lam" in message


def test_index_two_is_told_to_use_the_error_test_mask():
    message = diagnose(pendulum("velocity"), failure(-6, PENDULUM_Y, PENDULUM_YP))
    lines_of(message)
    assert "index 2" in message
    assert "equation 4 (numbered from 0) does not determine lam; only its first time derivative does" in message
    assert 'error_test="differential"' in message
    assert "SemiExplicitDAE" in message


def test_index_two_is_not_blamed_when_its_variables_are_left_out_of_the_error_test():
    included = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    message = diagnose(pendulum("velocity"), failure(-6, PENDULUM_Y, PENDULUM_YP, included=included))
    lines_of(message)
    assert "lam is excluded from the error test" in message
    assert "row_scaling=[0, 0, 0, 0, 1], newton_weights=[0, 0, 0, 0, 1]" in message


def test_other_causes_come_before_an_index_two_that_is_taken_care_of():
    problem = pendulum("velocity")
    smooth = problem.residual
    problem.residual = lambda t, y, yp: np.array(smooth(t, y, yp)) + [0.0, 0.0, 0.0, 0.0 if t < 0.5 else 3.0, 0.0]
    included = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    message = diagnose(problem, failure(-6, PENDULUM_Y, PENDULUM_YP, included=included, t=0.5 - 1e-12, h=1e-13))
    assert "Equation 3 (numbered from 0) jumps by 3 at t = 0.5" in message


@pytest.mark.parametrize("constraint", ["position", "velocity"])
def test_violated_hidden_constraint_is_found_at_the_start(constraint):
    y, yp = np.array(PENDULUM_Y), np.array(PENDULUM_YP)
    if constraint == "position":
        y[2:4] += [0.3, 0.4]  # a velocity along the rod
        yp[:2] = y[2:4]
        expected = 1.0  # d/dt (x^2 + z^2) = 2 (x vx + z vz)
    else:
        yp[2:4] += [0.3, 0.4]  # an acceleration along the rod
        y[4] -= 0.5
        expected = 0.5  # d/dt (x vx + z vz)
    message = diagnose(pendulum(constraint), at_start(-7, y, yp, included=np.array([1.0, 1.0, 1.0, 1.0, 0.0])))
    assert f"violate the hidden constraint: the first time derivative is {expected:.4g}, not 0" in message


def test_consistent_start_is_not_accused_of_violating_a_hidden_constraint():
    message = diagnose(pendulum("position"), at_start(-7, PENDULUM_Y, PENDULUM_YP))
    assert "index 3" in message
    assert "violate" not in message


def test_hidden_constraint_that_depends_on_time_is_differentiated_in_time_too():
    problem = StandIn(lambda t, y, yp: [yp[0] - y[1], y[0] - math.sin(3.0 * t)], 2)
    assert "violate" not in diagnose(problem, at_start(-6, [0.0, 3.0], [3.0, 0.0]))
    assert "first time derivative is -1, not 0" in diagnose(problem, at_start(-6, [0.0, 2.0], [2.0, 0.0]))


@pytest.mark.parametrize("kind", ["implicit", "semi-explicit"])
def test_index_4_that_is_not_reduced_names_why_functions_cannot_be_traced(kind):
    def constraint(t, x):
        return x + 0.0 * j0(x) - math.sin(t)

    problem, initial = (
        (
            daedal.ImplicitDAE(lambda t, y, yp: [*(yp[:3] - y[1:]), constraint(t, y[0])], 4),
            ([0.0, 1.0, 0.0, -1.0], [1.0, 0.0, -1.0, 0.0]),
        )
        if kind == "implicit"
        else (
            daedal.SemiExplicitDAE(lambda t, y, z: [y[1], y[2], z[0]], lambda t, y, z: [constraint(t, y[0])], 3, 1),
            ([0.0, 1.0, 0.0], [-1.0]),
        )
    )
    with pytest.raises(daedal.IntegrationError, match="index 4") as caught:
        daedal.solve(problem, (0.0, 1.0), initial, method="radau")
    assert "but here a function calls j0 on a value" in str(caught.value)


def test_higher_index_names_how_often_to_differentiate():
    def cascade(t, y, yp):
        return [y[0] - math.sin(t), y[1] - yp[0], y[2] - yp[1], y[3] - yp[2]]

    message = diagnose(StandIn(cascade, 4), failure(-9, [0.48, 0.88, -0.48, -0.88], [0.88, -0.48, -0.88, 0.48]))
    assert "index 4" in message
    assert "Equation 0 must be differentiated 3 times" in message
    assert "determine y[3]" in message
    assert "MechanicalSystem" not in message


# ------------------------------------------------------------------------------------------------- singular matrices


def test_redundant_equations_and_undetermined_variables_are_named():
    def residual(t, y, yp):
        return [yp[0] - y[1], y[0] + y[1] + y[2] - 1.0, 2.0 * (y[0] + y[1] + y[2] - 1.0)]

    message = diagnose(StandIn(residual, 3, names=("a", "b", "c")), failure(-8, [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]))
    lines_of(message)
    assert "singular" in message
    assert "equations 1 and 2 (numbered from 0) repeat or contradict one another" in message
    assert "left undetermined" in message and "c" in message


def test_empty_equation_and_unused_variable_are_named():
    message = diagnose(StandIn(lambda t, y, yp: [yp[0] + y[0], 0.0], 2), failure(-8, [1.0, 1.0], [-1.0, 0.0]))
    assert "equation 1 (numbered from 0) contains no unknown" in message
    assert "y[1] occurs in no equation" in message


# ------------------------------------------------------------------------------------------------- wrong matrices


def stiff_pair(**options):
    return StandIn(lambda t, y, yp: [yp[0] - y[1], 1e3 * (y[1] + y[0] ** 3 - 1.0)], 2, names=("u", "w"), **options)


def test_wrong_jacobian_is_shown_entry_by_entry():
    problem = stiff_pair(jacobian=lambda t, y, yp, cj: [[cj, -1.0], [3e3 * y[0] ** 2, -1e3]])
    message = diagnose(problem, failure(-7, [0.5, 0.875], [0.875, -0.65]))
    lines_of(message)
    assert "jacobian is wrong" in message
    assert "row 1, column 1 (w)" in message
    assert "is -1000; difference quotients give 1000" in message


def test_right_jacobian_is_not_accused():
    problem = stiff_pair(jacobian=lambda t, y, yp, cj: [[cj, -1.0], [3e3 * y[0] ** 2, 1e3]])
    assert "jacobian is wrong" not in diagnose(problem, failure(-7, [0.5, 0.875], [0.875, -0.65]))


def test_incomplete_bandwidth_is_found():
    message = diagnose(stiff_pair(bandwidth=(0, 1)), failure(-7, [0.5, 0.875], [0.875, -0.65]))
    assert "bandwidth is incomplete" in message
    assert "row 1, column 0 (u)" in message


def test_cancellation_in_difference_quotients_is_found_when_newton_failures_dominate():
    # y1 >> y2: the increment of y2 vanishes in the sum (BCP section 5.3.2)
    def residual(t, y, yp):
        return [yp[0], 1e3 * ((y[0] + y[1]) - y[0] - 1e-8)]

    problem = StandIn(residual, 2, names=("big", "small"))
    message = diagnose(
        problem,
        failure(-7, [1e4, 1e-8], [0.0, 0.0], newton_failures=30, error_test_failures=1, weights=np.array([0.1, 1e-14])),
    )
    lines_of(message)
    assert "inaccurate numerical Jacobian" in message
    assert "equation 1 (numbered from 0) with respect to small comes out as 0; " in message
    assert "jacobian=..." in message


def test_newton_failures_that_dominate_are_counted():
    problem = StandIn(lambda t, y, yp: [yp[0] + y[0] ** 3], 1)
    message = diagnose(problem, failure(-7, [1.0], [-1.0], newton_failures=30, error_test_failures=1))
    lines_of(message)
    assert "In 40 steps Newton's iteration failed 30 times, the error test once" in message


# ---------------------------------------------------------------------------------- discontinuities and singularities


def test_jump_in_time_is_located():
    def residual(t, y, yp):
        return [yp[0] - y[1], y[1] - (0.0 if t < 0.25 else 3.0)]

    message = diagnose(StandIn(residual, 2), failure(-6, [0.0, 0.0], [0.0, 0.0], t=0.25 - 1e-12, h=1e-13))
    lines_of(message)
    assert "Equation 1 (numbered from 0) jumps by 3 at t = 0.25" in message
    assert "breakpoints=[0.25]" in message


def test_jump_in_a_variable_is_located():
    problem = StandIn(lambda t, y, yp: [yp[0] + np.sign(y[0])], 1, names=("v",))
    message = diagnose(problem, failure(-7, [3e-10], [0.0], correction=[-1e-9]))
    assert "Equation 0 (numbered from 0) jumps by 2 where v passes 0, at t = 0.5" in message


def test_steep_but_smooth_equations_are_not_called_discontinuous():
    problem = StandIn(lambda t, y, yp: [yp[0] + math.tanh(1e3 * y[0]) + math.sin(1e4 * t)], 1)
    assert "discontinuity" not in diagnose(problem, failure(-7, [1e-4], [-0.5], correction=[-1e-5]))


def test_solution_that_grows_without_bound_is_recognised():
    problem = StandIn(lambda t, y, yp: [yp[0] - y[0] ** 2], 1)
    message = diagnose(problem, failure(-6, [1e9], [1e18], t=1.0, t_span=(0.0, 2.0)))
    lines_of(message)
    assert "singularity" in message and "y[0] = 1e+09" in message


# ------------------------------------------------------------------------------------------------ residuals that fail


def test_equation_that_becomes_nan_at_a_time_is_named():
    def residual(t, y, yp):
        return [yp[0] + y[0], y[1] - (1.0 if t < 0.5 else math.nan)]

    message = diagnose(StandIn(residual, 2), failure(-10, [1.0, 1.0], [-1.0, 0.0], t=0.5 - 1e-12, h=1e-13))
    lines_of(message)
    assert "beyond t = 0.5, equation 1 (numbered from 0) gives NaN or infinity" in message
    assert "t_span" in message


def test_variable_that_leaves_the_domain_is_named():
    problem = StandIn(lambda t, y, yp: [yp[0] + 1.0 + np.sqrt(y[0]), yp[1]], 2, names=("level", "other"))
    message = diagnose(problem, failure(-10, [1e-10, 1.0], [-1.0, 0.0]))
    assert "equation 0 (numbered from 0) gives NaN" in message
    assert "beyond level = " in message
    assert "nonnegative=[0]" in message


def test_words_of_unevaluable_are_passed_on():
    def residual(t, y, yp):
        if y[0] < 0.1:
            raise daedal.Unevaluable("colder than 0.1")
        return [yp[0] + 1.0]

    message = diagnose(StandIn(residual, 1, names=("T",)), failure(-10, [0.1 + 1e-12], [-1.0]))
    assert "beyond T = 0.1, the residual raises Unevaluable: colder than 0.1" in message


@pytest.mark.parametrize("code", [-1, -2, -3, -6, -7, -8, -9, -10, -12, -14])
def test_user_exceptions_stay_inside(code):
    def residual(t, y, yp):
        raise ZeroDivisionError("user")

    message = diagnose(StandIn(residual, 2), failure(code, [1.0, 1.0], [0.0, 0.0]))
    lines_of(message)
    assert MEANINGS.get(code, "the integrator gave up").split("{")[0] in message


@pytest.mark.parametrize("code", [-1, -2, -3, -6, -7, -8, -9, -10, -14])
@pytest.mark.parametrize("broken", [math.nan, math.inf, 0.0])
def test_broken_numbers_do_not_break_the_diagnosis(code, broken):
    full = np.full(2, broken)
    problem = StandIn(lambda t, y, yp: [yp[0] + y[0], y[1] - y[0]], 2)
    changes = {"correction": full, "weights": full, "cj": broken, "h": broken}
    lines_of(diagnose(problem, failure(code, [1.0, 1.0], full, **changes)))


@settings(deadline=None, max_examples=100)
@given(
    n=st.integers(1, 4),
    code=st.sampled_from([-1, -6, -7, -8, -9, -10, -14]),
    zeros=st.floats(0.0, 1.0),
    exponent=st.floats(0.0, 150.0),
    steps=st.integers(0, 2),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_pencil_breaks_the_diagnosis(n, code, zeros, exponent, steps, seed):
    rng = np.random.default_rng(seed)
    E, B = (
        rng.normal(size=(2, n, n))
        * (rng.random((2, n, n)) >= zeros)
        * 10.0 ** rng.uniform(-exponent, exponent, (2, n, n))
    )
    y, yp, correction = rng.normal(size=(3, n)) * 10.0 ** rng.uniform(-9.0, 9.0, (3, n))
    problem = StandIn(lambda t, y, yp: E @ yp + B @ y, n)
    lines_of(diagnose(problem, failure(code, y, yp, correction=correction, steps=steps)))


def test_variables_that_are_not_finite_are_named():
    problem = StandIn(lambda t, y, yp: [yp[0] + y[0], y[1] - y[0]], 2)
    message = diagnose(problem, failure(-7, [1.0, 1.0], [-1.0, -1.0], correction=[0.0, math.nan]))
    assert "Not finite in the failed step: y[1]." in message


# ------------------------------------------------------------------------------------ tolerances, limits, large systems


def decay(n=1):
    return StandIn(lambda t, y, yp: yp + y, n)


def test_step_limit_estimates_the_rest():
    message = diagnose(decay(), failure(-1, [0.6], [-0.6], h=1e-2, steps=500))
    lines_of(message)
    assert "the limit of 500 steps was reached" in message
    assert "covered 50 % of the interval from 0 to 1" in message
    assert "about 50 steps more" in message
    assert "max_steps=1000" in message


def test_step_limit_of_a_crawling_run_names_the_cause():
    message = diagnose(pendulum("velocity"), failure(-1, PENDULUM_Y, PENDULUM_YP, h=1e-9, steps=500))
    lines_of(message)
    assert "index 2" in message
    assert "max_steps=" not in message


def test_too_tight_tolerances_name_variable_and_factor():
    message = diagnose(decay(), failure(-2, [5.0], [-5.0], rtol=1e-15, atol=0.0))
    lines_of(message)
    assert "y[0] = 5 with tolerance 5e-15" in message
    assert "multiply rtol and atol by 222" in message


def test_vanishing_weight_names_the_variable():
    problem = StandIn(lambda t, y, yp: [yp[0] - 1.0, yp[1] - y[0]], 2, names=("speed", "way"))
    message = diagnose(problem, at_start(-3, [1.0, 0.0], [1.0, 1.0], weights=np.array([1e-6, 0.0]), component=1))
    lines_of(message)
    assert "atol is zero for way" in message
    assert "atol[1]" in message


def test_krylov_failure_speaks_of_the_preconditioner():
    message = diagnose(decay(600), failure(-14, np.ones(600), -np.ones(600)))
    lines_of(message)
    assert "preconditioner" in message and "GMRES(basis_size=" in message


def test_large_systems_are_not_analysed_and_the_message_says_so():
    message = diagnose(decay(600), failure(-7, np.ones(600), -np.ones(600), newton_failures=0))
    lines_of(message)
    assert "up to 500 unknowns, and this problem has 600" in message


# ------------------------------------------------------------------------------------------------ inconsistent values


def inconsistent(problem, y, yp):
    y, yp = np.array(y, dtype=float), np.array(yp, dtype=float)
    return describe_inconsistency(
        problem, 0.0, y, yp, problem.evaluate(0.0, y, yp), np.zeros(y.size), 1e-6 * np.ones(y.size)
    )


def test_violated_algebraic_equation_names_equation_value_and_change():
    problem = StandIn(lambda t, y, yp: [yp[0] - y[1], y[0] + 2.0 * y[1] - 1.0], 2, names=("u", "z"))
    message, equations = inconsistent(problem, [0.0, 0.7], [0.7, 0.0])
    assert equations == (1,)
    assert "equation 1 (0.4)" in message
    assert "z by -0.2" in message
    assert "u' by -0.2" in message
    assert "correct_initial=True" in message and "consistent_initial" in message


def test_wrong_derivative_is_told_as_a_derivative():
    problem = StandIn(lambda t, y, yp: [yp[0] - y[1], y[0] + y[1] - 1.0], 2)
    message, equations = inconsistent(problem, [0.0, 1.0], [0.7, 0.0])
    assert equations == (0,)
    assert "y[0]' by 0.3" in message


def test_violated_constraint_on_differential_variables_asks_for_other_values():
    message, equations = inconsistent(pendulum("position"), [1.2, 0.0, 0.0, 1.0, 1.0], [0.0, 1.0, -1.2, 1.0, 0.0])
    assert equations == (4,)
    assert "equation 4 (0.44)" in message
    assert "x by -0.1833" in message
    assert "correct_initial=True" not in message
    assert "consistent_initial" in message
    assert "index 3" in message and "time derivatives up to the second of equation 4" in message


def test_violated_equations_come_worst_first():
    problem = StandIn(lambda t, y, yp: [y[0] - 1.0, y[1] - 1.0, y[2] - 1.0, y[3] - 1.0], 4)
    _, equations = inconsistent(problem, [0.9, 1.0, 0.2, 1.5], np.zeros(4))
    assert equations == (2, 3, 0)


def test_equations_in_large_units_are_not_worse_for_that():
    problem = StandIn(lambda t, y, yp: [1e6 * (y[0] - 1.0), y[1] - 1.0], 2)
    _, equations = inconsistent(problem, [1.0 - 1e-3, 0.5], np.zeros(2))
    assert equations[0] == 1


def test_given_correction_is_used_where_the_equations_cannot_be_analysed():
    n = 600
    problem = StandIn(lambda t, y, yp: y - 1.0, n)
    y, correction = np.ones(n), np.zeros(n)
    y[7], correction[7] = 1.25, -0.25
    message, equations = describe_inconsistency(
        problem, 0.0, y, np.zeros(n), problem.evaluate(0.0, y, np.zeros(n)), correction, 1e-6 * np.ones(n)
    )
    assert equations == (7,)
    assert "y[7] by 0.25" in message


# ------------------------------------------------------------------------------------------------- through daedal.solve


def message_of(problem, t_span, initial, error=daedal.IntegrationError, **options):
    with pytest.raises(error) as caught:
        daedal.solve(problem, t_span, initial, **options)
    message = str(caught.value)
    lines_of(message)
    return message


def test_solve_index_three_pendulum():
    model = daedal.library.get("pendulum", form="index3")
    message = message_of(model.problem, model.t_span, model.initial, method="dassl", formulation="none")
    assert "index 3" in message
    assert "equation 4 (numbered from 0) does not determine lambda" in message
    assert "daedal.MechanicalSystem" in message


def test_solve_plain_index_two_trajectory():
    model = daedal.library.get("tppc2")
    message = message_of(model.problem, model.t_span, model.initial, method="dassl", error_test="all", max_steps=2000)
    assert "index 2" in message
    assert "equations 6 and 7 (numbered from 0) do not determine alpha and beta" in message
    assert 'error_test="differential"' in message


def test_solve_cascade_of_differentiators():
    model = daedal.library.get("differentiator_cascade", stages=3)
    assert "index 4" in message_of(model.problem, model.t_span, model.initial, formulation="none")


def test_solve_redundant_constraint():
    def residual(t, y, yp):
        x, z, vx, vz, lam, mu = y
        velocity = x * vx + z * vz
        force = lam + mu
        return [yp[0] - vx, yp[1] - vz, yp[2] + x * force, yp[3] + z * force - 1.0, velocity, 2.0 * velocity]

    problem = daedal.ImplicitDAE(residual, 6, names="x z vx vz lam mu")
    message = message_of(problem, (0.0, 1.0), ([1.0, 0.0, 0.0, 1.0, 1.0, 0.0], [0.0, 1.0, -1.0, 1.0, 0.0, 0.0]))
    assert "equations 4 and 5 (numbered from 0) repeat or contradict one another" in message
    assert "lam and mu are left undetermined" in message


def test_solve_residual_that_becomes_nan():
    def residual(t, y, yp):
        return [yp[0] + y[0], y[1] - (math.cos(t) if t < 0.5 else math.nan)]

    message = message_of(daedal.ImplicitDAE(residual, 2), (0.0, 1.0), ([1.0, 1.0], [-1.0, 0.0]))
    assert "beyond t = 0.5, equation 1 (numbered from 0) gives NaN or infinity" in message


def test_solve_residual_that_leaves_its_domain():
    def residual(t, y, yp):
        if y[0] < 0.1:
            raise daedal.Unevaluable("colder than 0.1")
        return [yp[0] + 1.0, y[1] - y[0]]

    message = message_of(
        daedal.ImplicitDAE(residual, 2, names=["T", "z"]), (0.0, 1.0), ([0.5, 0.5], [-1.0, -1.0]), method="dassl"
    )
    assert "beyond T = 0.1, the residual raises Unevaluable: colder than 0.1" in message


def test_solve_discontinuity():
    def f(t, y, z):
        return [1.0]

    def g(t, y, z):
        return [z[0] ** 3 + z[0] - (0.0 if y[0] < 0.5 else 10.0)]

    problem = daedal.SemiExplicitDAE(f, g, 1, 1)
    message = message_of(problem, (0.0, 1.0), ([0.0], [0.0]), switches="never")
    assert "Equation 1 (numbered from 0) jumps by 10 where y[0] passes 0.5, at t = 0.5" in message


def test_solve_chattering_run_at_its_step_limit():
    def residual(t, y, yp):
        return [yp[0] - y[1], yp[1] + y[0] + 0.5 * np.sign(y[1])]

    problem = daedal.ImplicitDAE(residual, 2, names=["x", "v"])
    message = message_of(problem, (0.0, 10.0), ([1.0, 0.1], [0.1, -1.5]), max_steps=5000, switches="never")
    assert "Equation 1 (numbered from 0) jumps by 1 where v passes 0" in message


def test_solve_inconsistent_start():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] + y[1] - 1.0], 2, names=["u", "z"])
    message = message_of(problem, (0.0, 1.0), ([0.0, 0.7], [0.7, 0.0]), daedal.InconsistentInitialError)
    assert "equation 1 (-0.3)" in message
    assert "z by 0.3" in message
    assert "correct_initial=True" in message


def test_solve_start_off_the_constraint():
    model = daedal.library.get("pendulum", form="index2")
    y0, yp0 = (np.array(values) for values in model.initial)
    y0[2] = yp0[0] = 0.3
    with pytest.raises(daedal.InconsistentInitialError) as caught:
        daedal.solve(model.problem, model.t_span, (y0, yp0), formulation="none")
    assert caught.value.equations == (4,)
    assert "equation 4 (0.3)" in str(caught.value)
    assert "must also satisfy the first time derivative of equation 4" in str(caught.value)


def test_solve_too_tight_tolerances():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[0]], 1)
    message = message_of(problem, (0.0, 1.0), ([1.0], [-1.0]), rtol=1e-14, atol=0.0, method="dassl")
    assert "y[0] = 1 with tolerance 1e-14" in message


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_solve_vanishing_weight():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - 1.0, yp[1] - y[0]], 2, names=["speed", "way"])
    message = message_of(problem, (0.0, 1.0), ([0.0, 0.0], [1.0, 0.0]), atol=[1e-9, 0.0])
    assert "atol is zero for way" in message and "atol[1]" in message


def test_solve_step_limit():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], 2)
    message = message_of(problem, (0.0, 100.0), ([1.0, 0.0], [0.0, -1.0]), max_steps=100, method="dassl")
    assert "the limit of 100 steps was reached" in message
    assert "max_steps=10000" in message


def test_solve_wrong_jacobian():
    problem = daedal.ImplicitDAE(
        lambda t, y, yp: [yp[0] - y[1], 1e3 * (y[1] + y[0] ** 3 - 1.0)],
        2,
        jacobian=lambda t, y, yp, cj: np.array([[cj, -1.0], [3e3 * y[0] ** 2, -1e3]]),
    )
    message = message_of(problem, (0.0, 1.0), ([0.0, 1.0], [1.0, 0.0]))
    assert "row 1, column 1 (y[1]), counted from 0, is -1000; difference quotients give 1000" in message


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_solve_solution_that_grows_without_bound():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[0] ** 2], 1)
    message = message_of(problem, (0.0, 2.0), ([1.0], [1.0]))
    assert "singularity" in message and "t = 1" in message


def test_solve_solution_that_ends_at_an_impasse_point():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [y[0] * yp[0] + 1.0], 1)
    message = message_of(problem, (0.0, 2.0), ([1.0], [-1.0]))
    assert "singularity" in message and "t = 0.5" in message


# ------------------------------------------------------------------------------------- the diagnosis may never raise


def flaky(every, sign):
    """F = y' + y and an oscillator, with NaN, infinity or an exception in every so many calls."""
    calls = itertools.count(1)

    def residual(t, y, yp):
        if next(calls) % every == 0:
            if sign == "raises":
                raise daedal.Unevaluable("not now")
            return [{"nan": math.nan, "inf": math.inf}[sign]] * 3
        return [yp[0] + y[0], yp[1] - y[2], yp[2] + 100.0 * y[1]]

    return residual


@pytest.mark.parametrize("every", [2, 3, 5, 7, 11])
@pytest.mark.parametrize("sign", ["nan", "inf", "raises"])
def test_a_residual_that_fails_now_and_then_loses_nothing(every, sign):
    problem = daedal.ImplicitDAE(flaky(every, sign), 3)
    try:
        sol = daedal.solve(problem, (0.0, 2.0), ([1.0, 1.0, 0.0], [-1.0, 0.0, -100.0]), max_steps=3000)
    except daedal.IntegrationError as error:
        sol = error.solution
        assert "is not a function of its arguments" in str(error) or "search for the cause failed" not in str(error)
    np.testing.assert_allclose(sol.y[0], np.exp(-sol.t), atol=1e-4)


def test_values_that_change_from_call_to_call_are_told():
    problem = daedal.ImplicitDAE(flaky(2, "nan"), 3)
    message = message_of(problem, (0.0, 2.0), ([1.0, 1.0, 0.0], [-1.0, 0.0, -100.0]))
    assert "equations 0, 1 and 2 (numbered from 0) have different values when it is called again" in message


NUMBERS = st.one_of(st.floats(-1e3, 1e3), st.sampled_from([0.0, math.nan, math.inf, -math.inf, 1e-300, 1e300, 5e-324]))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    code=st.sampled_from([-1, -2, -3, -6, -7, -8, -9, -10, -14, 7]),
    y=st.lists(NUMBERS, min_size=3, max_size=3),
    yp=st.lists(NUMBERS, min_size=3, max_size=3),
    h=NUMBERS,
    t=st.sampled_from([0.0, 0.5, 1.0]),
    steps=st.sampled_from([0, 1, 10**6]),
    kind=st.sampled_from(["flaky", "raises", "huge", "jumps", "shape", "text", "zero"]),
    component=st.sampled_from([-1, 0, 2, 7]),
)
@pytest.mark.filterwarnings("ignore")
def test_no_failure_breaks_the_diagnosis(code, y, yp, h, t, steps, kind, component):
    def raises(t, y, yp):
        raise KeyError("mine")

    residual = {
        "flaky": flaky(3, "nan"),
        "raises": raises,
        "huge": lambda t, y, yp: np.exp(1e3 * y) + yp,
        "jumps": lambda t, y, yp: yp + np.sign(y) + (t > 0.5),
        "shape": lambda t, y, yp: np.zeros(2),
        "text": lambda t, y, yp: np.array(["a", "b", "c"]),
        "zero": lambda t, y, yp: np.zeros(3),
    }[kind]
    told = diagnose(StandIn(residual, 3), failure(code, y, yp, h=h, t=t, steps=steps, component=component))
    assert told.startswith("Stopped at t = ")
    assert "search for the cause failed" not in told


@pytest.mark.parametrize("error", [IndexError("broken"), np.linalg.LinAlgError("no convergence")])
def test_a_finder_that_fails_does_not_hide_the_rest(monkeypatch, error):
    def fails(case):
        raise error

    monkeypatch.setattr(diagnosis, "inconstant", fails)
    with pytest.raises(daedal.IntegrationError) as caught:
        daedal.solve(
            daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[0] ** 2], 1), (0.0, 2.0), ([1.0], [1.0]), method="dassl"
        )
    assert "Stopped at t = " in str(caught.value)
    assert f"The search for the cause failed ({type(error).__name__}: {error})" in str(caught.value)
    assert caught.value.solution.t[-1] > 0.99


@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt()])
def test_whatever_happens_to_an_explanation_the_solution_is_kept(monkeypatch, error):
    def fails(*arguments):
        raise error

    for module, name in ((diagnosis, "diagnose"), (mechanism_failure, "explain")):
        monkeypatch.setattr(module, name, fails)
    point = daedal.MechanicalSystem(1.0, lambda t, q, v: [v[0] ** 2], n_q=1)
    implicit = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[0] ** 2], 1)
    for problem, initial in ((implicit, ([1.0], [1.0])), (point, ([0.0], [1.0]))):
        with pytest.raises(daedal.IntegrationError, match="The search for the cause") as caught:
            daedal.solve(problem, (0.0, 2.0), initial)
        assert caught.value.solution.t[-1] > 0.99


def test_a_jacobian_that_the_user_has_not_given_is_not_blamed():
    """A crank-slider in nanoseconds by DASSL, in a formulation of index 2: its matrix is that of the formulation."""
    verdict = problems(2003).judged(2003)
    assert verdict.kind == "right" or "jacobian" not in verdict.words


@pytest.mark.parametrize("method", ["dassl", "radau", "rosenbrock"])
def test_a_fold_is_explained_whatever_stopped_the_run(method):
    """x = z - z^3 / 3 with x' = 1 turns back at z = -1."""
    start = [-0.5 + 0.5**3 / 3.0, -0.5]
    with pytest.raises(daedal.IntegrationError, match=r"(a fold.*y\[1\]|a singularity: y\[1\]) = -1"):
        daedal.solve_dae(
            lambda t, y, yp: [yp[0] + 1.0, y[0] - y[1] + y[1] ** 3 / 3.0], (0.0, 3.0), start, None, method=method
        )
