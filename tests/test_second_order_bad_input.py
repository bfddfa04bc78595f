"""Bad input and hard cases for second-order DAEs: the right error, the right words, and what was computed so far."""

import math

import numba
import numpy as np
import pytest

import daedal
from daedal import InconsistentInitialError, IntegrationError, InvalidProblemError, SecondOrderDAE
from interrupts import computed_until

DIRECT = ["modified_bdf", "collocation"]
ALL = [*DIRECT, "dassl"]
START = ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])


def pendulum(t, x, xp, xpp):
    return [xpp[0] + 2.0 * x[0] * x[2], xpp[1] + 2.0 * x[1] * x[2] + 9.81, x[0] ** 2 + x[1] ** 2 - 1.0]


def swing(t, x, xp, xpp):
    return xpp + x


PENDULUM = SecondOrderDAE(pendulum, 3, names=["x", "y", "lam"])
SWING = SecondOrderDAE(swing, 1)


def refused(message):
    return pytest.raises(InvalidProblemError, match=message)


def solve_swing(residual=swing, t_span=(0.0, 1.0), initial=((1.0,), (0.0,)), **options):
    return daedal.solve(SecondOrderDAE(residual, 1), t_span, initial, **options)


# --- the problem ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"residual": None}, "residual must be a function"),
        ({"n": 0}, "n must be an integer"),
        ({"n": 2.5}, "n must be an integer"),
        ({"n": True}, "n must be an integer"),
        ({"jacobian": 3}, "jacobian must be a function"),
        ({"order": [1, 2]}, "order must hold 0, 1 or 2"),
        ({"order": [2, 2, 3]}, "order must hold 0, 1 or 2"),
        ({"order": [2, 2, math.nan]}, "order must hold 0, 1 or 2"),
        ({"order": "220"}, "order must hold 0, 1 or 2"),
        ({"names": ["a"]}, "names has 1 entries"),
        ({"names": ["a", "a", "b"]}, "names must be unique"),
        ({"bandwidth": (1,)}, "bandwidth must be a pair"),
        ({"sparsity": np.eye(2)}, "sparsity has shape"),
        ({"sparsity": np.eye(3), "bandwidth": (1, 1)}, "either sparsity or bandwidth"),
    ],
    ids=[f"problem{i}" for i in range(14)],
)
def test_the_problem(options, message):
    with refused(message):
        SecondOrderDAE(**({"residual": pendulum, "n": 3} | options))


@pytest.mark.parametrize("method", ALL)
def test_an_order_that_is_too_low_is_refused(method):
    with refused(r"order\[1\] = 1 is too low: the residual depends on y''.*order=\[2, 2, 0\]"):
        daedal.solve(PENDULUM.with_order([2, 1, 0]), (0.0, 1.0), START, method=method)
    with refused(r"order\[0\] = 0 is too low: the residual depends on x\[0\]'"):
        daedal.solve(
            SecondOrderDAE(lambda t, x, xp, xpp: xp + x, 1, order=[0]), (0.0, 1.0), ([1.0], None), method=method
        )


@pytest.mark.parametrize("method", DIRECT)
def test_an_order_that_is_too_high_does_no_harm(method):
    sol = daedal.solve(PENDULUM.with_order([2, 2, 1]), (0.0, 0.5), START, method=method)
    reference = daedal.solve(PENDULUM, (0.0, 0.5), START, method=method)
    assert np.allclose(sol.x[:2, -1], reference.x[:2, -1], atol=1e-4)


def test_the_companion_form_needs_orders_that_are_not_lower():
    with refused("orders of the variables are not known"):
        PENDULUM.first_order()
    with refused("lower than the orders"):
        PENDULUM.with_order([2, 2, 0]).first_order([1, 2, 0])


# --- the initial values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (None, "initial must be"),
        (([1.0, 0.0, 0.0],), "initial must be"),
        (([1.0, 0.0], [0.0, 0.0]), r"x0 has shape \(2,\); expected \(3,\)"),
        ((None, [0.0, 0.0, 0.0]), "x0 has shape"),
        (("abc", [0.0, 0.0, 0.0]), "x0 must hold 3 real numbers"),
        (([1.0, 0.0, 1j], [0.0, 0.0, 0.0]), "x0 must hold 3 real numbers"),
        (([1.0, 0.0, math.nan], [0.0, 0.0, 0.0]), "x0 is not finite: lam = nan"),
        (([1.0, 0.0, 0.0], [0.0, math.inf, 0.0]), "xp0 is not finite: y = inf"),
        (([1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0]), r"xpp0 has shape \(2,\)"),
    ],
    ids=[f"case{i}" for i in range(9)],
)
def test_the_initial_values(initial, message):
    with refused(message):
        daedal.solve(PENDULUM, (0.0, 1.0), initial)


def test_lists_and_integers_are_welcome():
    floats = daedal.solve(PENDULUM, (0.0, 1.0), ([1.0, 0.0, 0.0], None))
    np.testing.assert_array_equal(daedal.solve(PENDULUM, (0, 1), [[1, 0, 0], None]).x, floats.x)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize(
    ("initial", "message", "equation"),
    [
        (([1.1, 0.0, 0.0], [0.0, 0.0, 0.0]), "initial values at t = 0 violate equation 2 .* residual is 0.21.*x0", 2),
        (
            ([1.0, 0.0, 0.0], [0.5, 0.0, 0.0]),
            "initial velocities .* the derivative of equation 2 .* residual is 1.*xp0",
            2,
        ),
    ],
    ids=["position", "velocity"],
)
def test_inconsistent_values(method, initial, message, equation):
    with pytest.raises(InconsistentInitialError, match=message) as caught:
        daedal.solve(PENDULUM, (0.0, 1.0), initial, method=method)
    assert caught.value.equations == (equation,)


@pytest.mark.parametrize(
    ("x0", "xp0", "named"),
    [
        ([0.6, 0.5, -0.1, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0, 0.0], 0),
        ([0.5, 0.5, 0.1, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0, 0.0], 3),
        ([0.5, 0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0, 0.0], 3),
        ([0.5, 0.5, 0.0, 0.0, 0.0], [1.0, 0.0, 2.0, 0.0, 0.0], 0),
    ],
    ids=["first", "second", "second rate", "first rate"],
)
def test_the_violated_one_of_two_constraints_is_named(x0, xp0, named):
    def two(t, x, xp, xpp):
        first, second = x[0] + x[1] - 1.0, x[0] - x[1] + x[2] - 3.0 * t
        return [first, xpp[0] + x[3] + x[4], xpp[1] + x[3] - x[4], second, xpp[2] + x[4]]

    with pytest.raises(InconsistentInitialError, match=f"equation {named} ") as caught:
        daedal.solve(SecondOrderDAE(two, 5), (0.0, 1.0), (x0, xp0))
    assert caught.value.equations == (named,)


def test_a_velocity_constraint_is_named_as_it_is():
    def rolling(t, x, xp, xpp):
        return [xpp[0] + x[1], xp[0] - 2.0]

    with pytest.raises(
        InconsistentInitialError, match=r"initial velocities at t = 0 violate equation 1 .* residual is 1"
    ):
        daedal.solve(SecondOrderDAE(rolling, 2), (0.0, 1.0), ([0.0, 0.0], [3.0, 0.0]))


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_inconsistent_values_are_noticed_in_any_units(size):
    def scaled(t, x, xp, xpp):
        return [xpp[0] + x[0] * x[2], xpp[1] + x[1] * x[2] + size, x[0] ** 2 + x[1] ** 2 - size**2]

    with pytest.raises(InconsistentInitialError, match="violate equation 2"):
        initial = ([1.01 * size, 0.0, 0.0], [0.0, 0.0, 0.0])
        daedal.solve(SecondOrderDAE(scaled, 3), (0.0, 1.0), initial, atol=1e-9 * size)


def test_an_equation_without_variables_cannot_be_repaired():
    bad = SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[0] + x[1], 1.0], 2)
    for options in ({}, {"correct_initial": True}):
        with pytest.raises(InconsistentInitialError, match=r"equation 1 .*No small change of x0"):
            daedal.solve(bad, (0.0, 1.0), ([1.0, 1.0], [0.0, 0.0]), **options)


def test_consistent_initial_says_what_it_cannot_do():
    with pytest.raises(InconsistentInitialError, match="equation 2"):
        daedal.consistent_initial(PENDULUM, 0.0, ([0.8, 0.5, 0.0], None), fixed=["x", "y"])
    with pytest.raises(InconsistentInitialError, match="no consistent values"):
        daedal.consistent_initial(PENDULUM, 0.0, ([1.8, 0.5, 0.0], None), fixed=["x"])
    with refused("unknown variable 'q'"):
        daedal.consistent_initial(PENDULUM, 0.0, START, fixed=["q"])
    with refused("t0 must be finite"):
        daedal.consistent_initial(PENDULUM, math.nan, START)


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"atol": [1.0] * 4}, r"atol must be a number, hold 3 values \(for x\) or 5 .*x', y'"),
        ({"rtol": math.nan}, "rtol must be"),
        ({"t_eval": [0.5, 0.1]}, "t_eval must be strictly monotone"),
        ({"t_stop": 0.5}, "t_stop"),
        ({"fixed_step": 0.03}, "fixed_step = 0.03 does not divide"),
        ({"events": 3}, "events must be"),
        ({"events": lambda t, x, xp, xpp: 1.0}, r"takes \(t, x, xp, xpp\); expected"),
        ({"events": lambda t, x: math.nan}, "other than NaN"),
        ({"method": "phem56"}, "PHEM56 cannot solve a SecondOrderDAE; use modified_bdf or collocation, or dassl"),
        ({"method": "dopri5"}, "DOPRI5 cannot solve a SecondOrderDAE"),
        ({"method": "colocation"}, "did you mean 'collocation'"),
        ({"method": 3}, "method must be a name"),
        ({"method": "modified_bdf", "stages": 3}, "unknown option stages"),
        ({"formulation": "ggl"}, "formulation"),
        ({"t_span": (0.0, 1e-200)}, "rescale the time"),
    ],
    ids=[f"option{i}" for i in range(15)],
)
def test_options(options, message):
    with refused(message):
        daedal.solve(PENDULUM, **({"t_span": (0.0, 1.0), "initial": START} | options))


def test_dense_output_that_was_not_kept():
    with refused("the solution has no dense output"):
        solve_swing(dense_output=False).at(0.5)


@pytest.mark.parametrize("method", ALL)
def test_a_zero_weight_is_named(method):
    with pytest.raises(IntegrationError, match=r"x\[0\]'"):
        solve_swing(method=method, atol=0.0)


@pytest.mark.parametrize("method", DIRECT)
@pytest.mark.parametrize("problem", ["implicit", "semi-explicit", "sparse"])
def test_direct_methods_refuse_what_they_cannot_solve(method, problem):
    chain = daedal.library.chain_of_pendulums(4)
    cases = {
        "implicit": (daedal.ImplicitDAE(lambda t, y, yp: yp + y, 1), ([1.0], [-1.0])),
        "semi-explicit": (
            daedal.SemiExplicitDAE(lambda t, y, z: [z[0]], lambda t, y, z: [z[0] + y[0]], 1, 1),
            ([1.0], [-1.0]),
        ),
        "sparse": (chain.problem, chain.initial),
    }
    with refused("method"):
        daedal.solve(cases[problem][0], (0.0, 0.1), cases[problem][1], method=method)


# --- functions that misbehave -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, 2.0], r"residual returned an array of shape \(2,\)"),
        (None, "residual returned None"),
        (3.0, r"residual returned an array of shape \(\)"),
        ([1.0, 2.0, "a"], "residual returned list"),
        ([1.0, 2.0, 1j], "residual returned list"),
        ([[1.0], [2.0], [3.0]], r"residual returned an array of shape \(3, 1\)"),
        ([math.nan, 0.0, 0.0], "residual is not finite at the initial values .*equation 0"),
        ([0.0, math.inf, 0.0], "residual is not finite at the initial values .*equation 1"),
    ],
    ids=["short", "None", "number", "text", "complex", "column", "nan", "inf"],
)
def test_what_a_residual_returns(method, value, message):
    with refused(message):
        daedal.solve(SecondOrderDAE(lambda t, x, xp, xpp: value, 3), (0.0, 1.0), START, method=method)


@pytest.mark.parametrize("method", ALL)
def test_exceptions_of_the_user_arrive_unchanged(method):
    mine = RuntimeError("mine")

    def late(t, x, xp, xpp):
        if t > 0.3:
            raise mine
        return xpp + x

    with pytest.raises(RuntimeError) as caught:
        solve_swing(late, method=method)
    assert caught.value is mine
    with pytest.raises(ZeroDivisionError):
        solve_swing(lambda t, x, xp, xpp: 1 / 0, method=method)
    with pytest.raises(IndexError):
        solve_swing(method=method, events=lambda t, x: 1.0 if t < 0.5 else [][1])


@numba.njit
def compiled_late(t, x, xp, xpp):
    if t > 0.3:
        raise ValueError("compiled")
    return xpp + x


@pytest.mark.parametrize("method", ALL)
def test_exceptions_of_compiled_functions_arrive_unchanged(method):
    with pytest.raises(ValueError, match=r"^compiled$"):
        solve_swing(compiled_late, method=method)


@pytest.mark.parametrize("method", ALL)
def test_an_interrupt_keeps_what_was_computed(method):
    def interrupted(t, x, xp, xpp):
        if t > 0.3:
            raise KeyboardInterrupt
        return xpp + x

    sol = computed_until(lambda: solve_swing(interrupted, method=method))
    assert sol.status == "interrupted"
    assert 0.1 < sol.t[-1] <= 0.3
    assert np.allclose(sol.x[0], np.cos(sol.t), atol=1e-5)


@pytest.mark.parametrize("method", ALL)
def test_a_residual_that_cannot_be_evaluated(method):
    def domain(t, x, xp, xpp):
        if t > 0.3:
            raise daedal.Unevaluable("no data")
        return xpp + x

    with pytest.raises(IntegrationError, match=r"could not be evaluated(.|\n)*beyond t = 0.3.*no data") as caught:
        solve_swing(domain, method=method)
    assert caught.value.solution.t[-1] == pytest.approx(0.3, abs=1e-6)

    def never(t, x, xp, xpp):
        raise daedal.Unevaluable("never")

    with refused("cannot be evaluated at the initial values .*never"):
        solve_swing(never, method=method)


@pytest.mark.parametrize("method", ["modified_bdf", "dassl"])
def test_what_a_jacobian_returns(method):
    for value, message in (
        (np.eye(2), r"jacobian returned an array of shape \(2, 2\)"),
        (None, "jacobian returned None"),
    ):
        problem = SecondOrderDAE(pendulum, 3, jacobian=lambda t, x, xp, xpp, c1, c2, v=value: v)
        with refused(message):
            daedal.solve(problem, (0.0, 1.0), START, method=method)


def test_a_wrong_jacobian_is_suspected():
    wrong = SecondOrderDAE(swing, 1, jacobian=lambda t, x, xp, xpp, c1, c2: [[-1e3 * c2]])
    with pytest.raises(IntegrationError, match=r"jacobian is wrong(.|\n)*dF/dx \+ c1"):
        daedal.solve(wrong, (0.0, 1.0), ([1.0], [0.0]))


# --- equations that do not determine the solution, and hard ones ------------------------------------------------------


def redundant(t, x, xp, xpp):
    constraint, force = x[0] ** 2 + x[1] ** 2 - 1.0, x[2] + x[3]
    return [xpp[0] + 2.0 * x[0] * force, xpp[1] + 2.0 * x[1] * force + 9.81, constraint, 2.0 * constraint]


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize(
    ("residual", "n", "message"),
    [
        (redundant, 4, r"equations 2 and 3 .*repeat or contradict.*x\[2\] and x\[3\]"),
        (lambda t, x, xp, xpp: [xpp[0] + x[0], xpp[0] + x[0]], 2, r"equations 0 and 1 .*x\[1\] occurs in no equation"),
        (lambda t, x, xp, xpp: [xpp[0] + x[0] + x[1], 0.0], 2, "equation 1 .*contains no unknown"),
    ],
    ids=["redundant", "missing", "empty"],
)
def test_singular_systems_are_named(method, residual, n, message):
    initial = (np.eye(n)[0], np.zeros(n))
    with pytest.raises(IntegrationError, match=message):
        daedal.solve(SecondOrderDAE(residual, n), (0.0, 1.0), initial, method=method)


@pytest.mark.parametrize("method", ALL)
def test_a_step_limit_hands_back_what_was_computed(method):
    with pytest.raises(IntegrationError, match="limit of 7 steps") as caught:
        solve_swing(method=method, max_steps=7)
    sol = caught.value.solution
    assert sol.x.shape == (1, 8)
    assert not sol.success
    assert np.allclose(sol.x[0], np.cos(sol.t), atol=1e-6)
    assert sol.message == str(caught.value)


@pytest.mark.parametrize("method", DIRECT)
def test_a_blow_up_is_explained(method):
    """x'' = 6 x^2, x(0) = 1, x'(0) = 2: x = 1/(1 - t)^2."""
    with pytest.raises(IntegrationError, match="singularity") as caught:
        solve_swing(lambda t, x, xp, xpp: xpp - 6.0 * x**2, (0.0, 2.0), ([1.0], [2.0]), method=method)
    assert caught.value.solution.t[-1] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("method", DIRECT)
def test_sticking_friction_is_explained(method):
    with pytest.raises(IntegrationError, match="discontinuity"):
        solve_swing(lambda t, x, xp, xpp: xpp + np.sign(xp), (0.0, 4.0), ([1.0], [3.0]), method=method, max_steps=2000)


@pytest.mark.parametrize("method", ALL)
def test_the_stiff_van_der_pol_equation(method):
    sol = solve_swing(
        lambda t, x, xp, xpp: xpp - 1e3 * (1.0 - x**2) * xp + x, (0.0, 2000.0), ([2.0], [0.0]), method=method
    )
    assert sol.x[0, -1] == pytest.approx(1.7062, abs=2e-3)
    assert sol.stats.steps < 4000


@pytest.mark.parametrize("kind", ["gauss", "lobatto"])
def test_methods_that_do_not_damp_multipliers_are_refused(kind):
    with refused(r"Collocation\('radau'\)"):
        daedal.solve(PENDULUM, (0.0, 0.1), START, method=daedal.methods.Collocation(kind))
    assert solve_swing(method=daedal.methods.Collocation(kind)).success


@pytest.mark.parametrize("method", DIRECT)
@pytest.mark.parametrize("formulation", ["auto", "index1", "ggl"])
def test_singular_positions_of_a_mechanism_are_noticed(method, formulation):
    model = daedal.library.crank_slider(l1=1.0, l2=1.0, phi1=math.pi / 4, rate=8.0)
    with pytest.raises(IntegrationError, match=r"t = 0\.120[67]\d*: .*singular configuration.*'slider'") as caught:
        daedal.solve(model.problem, (0.0, 2.0), model.initial, method=method, formulation=formulation)
    assert 0.1 < caught.value.solution.t[-1] < 0.1208


@pytest.mark.parametrize("size", [1e45, 1e100])
@pytest.mark.parametrize("method", ["auto", "modified_bdf", "collocation"])
def test_values_beside_which_a_derivative_is_lost_in_rounding_keep_their_order(size, method):
    problem = daedal.SecondOrderDAE(lambda t, x, xp, xpp: [xpp[0] + x[0]], 1)
    x0, _, xpp0 = daedal.consistent_initial(problem, 0.0, ([size], [0.0]))
    assert x0[0] == size and xpp0[0] == pytest.approx(-size)
    sol = daedal.solve(problem, (0.0, 1.0), ([size], [0.0]), method=method, atol=1e-9 * size)
    assert sol.x[0, -1] / size == pytest.approx(np.cos(1.0), abs=1e-4)
