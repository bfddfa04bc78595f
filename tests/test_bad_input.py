"""Bad input: every mistake gets an error of the right class, and a message that names what is wrong."""

import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import daedal
from daedal import InvalidProblemError

N = 4
RATES = np.arange(1.0, N + 1)


def decay(t, y, yp):
    return yp + y


def decays(t, y, yp):
    return yp + RATES * y


def solve_decay(residual=decay, t_span=(0.0, 1.0), y0=(1.0,), yp0=(-1.0,), **options):
    return daedal.solve_dae(residual, t_span, y0, yp0, **options)


def solve_decays(options=None, **problem):
    return daedal.solve(daedal.ImplicitDAE(decays, N, **problem), (0.0, 1.0), (np.ones(N), -RATES), **(options or {}))


def refused(message):
    return pytest.raises(InvalidProblemError, match=message)


def test_every_error_of_daedal_has_one_base_class():
    errors = [InvalidProblemError, daedal.InconsistentInitialError, daedal.IntegrationError, daedal.Unevaluable]
    assert all(issubclass(error, daedal.DaedalError) for error in errors)
    assert issubclass(InvalidProblemError, ValueError)


# --- the interval and the output times ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("t_span", "message"),
    [
        ((0.0, 0.0), "t_span is empty"),
        ((0.0, math.inf), "t_span must be finite"),
        ((-math.inf, 0.0), "t_span must be finite"),
        ((math.nan, 1.0), "t_span must be finite"),
        ((0.0,), "t_span must be a pair"),
        ((0.0, 1.0, 2.0), "t_span must be a pair"),
        (1.0, "t_span must be a pair"),
        (None, "t_span must be a pair"),
        ((0.0, "late"), "t_span must be a pair"),
        ((0.0, 1j), "t_span must be a pair"),
    ],
)
def test_t_span(t_span, message):
    with refused(message):
        solve_decay(t_span=t_span)


@pytest.mark.parametrize("t_span", [(0.0, 5e-324), (0.0, 1e-310), (1.0, math.nextafter(1.0, 2.0)), (1e300, -1e300)])
def test_extreme_but_valid_t_span_finishes_or_is_told(t_span):
    try:
        sol = solve_decay(lambda t, y, yp: yp, t_span, yp0=[0.0])
    except daedal.DaedalError as error:
        assert str(error)
    else:
        assert sol.t[-1] == t_span[1]
        assert np.all(sol.y == 1.0)


@pytest.mark.parametrize(
    ("t_eval", "message"),
    [
        ([0.5, 2.0], "t_eval must lie within t_span"),
        ([-0.5, 0.5], "t_eval must lie within t_span"),
        ([0.5, 0.5], "t_eval must be strictly monotone"),
        ([0.7, 0.2], "t_eval must be strictly monotone"),
        ([0.5, math.nan], "t_eval .*not finite"),
        ([math.inf], "t_eval .*not finite"),
        (["noon"], "t_eval"),
        ([0.1j], "t_eval"),
        (np.array([0.1 + 1j]), "t_eval"),
        ({}, "t_eval"),
    ],
)
def test_t_eval(t_eval, message):
    with refused(message):
        solve_decay(t_eval=t_eval)


def test_t_eval_of_a_backward_run_must_decrease():
    with refused("t_eval must be strictly monotone in the direction of integration"):
        solve_decay(t_span=(1.0, 0.0), t_eval=[0.2, 0.7])


# --- tolerances and step sizes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rtol", "atol"])
@pytest.mark.parametrize(
    "value", [-1e-6, math.nan, math.inf, None, "small", 1j, [1e-6, 1e-6], [], [[1e-6]], np.array([1e-6 + 1j])]
)
def test_tolerances(name, value):
    with refused(name):
        solve_decay(**{name: value})


@pytest.mark.parametrize("rtol", [0, 0.0, [0.0], 1e-30])
def test_rtol_must_be_positive_and_within_double_precision(rtol):
    with refused("rtol"):
        solve_decay(rtol=rtol)


@pytest.mark.filterwarnings("error")
def test_a_vanishing_error_weight_names_the_variable():
    with pytest.raises(daedal.IntegrationError, match="level") as caught:
        solve_decay(y0=[0.0], yp0=[0.0], atol=0.0, names=["level"])
    assert "atol" in str(caught.value)
    assert caught.value.solution.t.tolist() == [0.0]


@pytest.mark.parametrize("name", ["first_step", "max_step", "fixed_step"])
@pytest.mark.parametrize("value", [0, -0.1, math.nan, "short", 1j, [0.1]])
def test_step_sizes(name, value):
    with refused(name):
        solve_decay(**{name: value})


def test_first_step_longer_than_the_interval():
    with refused("first_step = 2 is longer than t_span"):
        solve_decay(first_step=2.0)


@pytest.mark.parametrize("value", [0.5, -1.0, math.nan, "late", 1j, [0.1]])
def test_t_stop(value):
    with refused("t_stop"):
        solve_decay(t_stop=value)


def test_fixed_step_must_divide_the_interval():
    with refused("fixed_step = 0.3 does not divide"):
        solve_decay(fixed_step=0.3)


def test_fixed_step_with_events():
    sol = solve_decay(fixed_step=0.1, events=lambda t, y: y[0] - 0.5)
    assert len(sol.events) == 1


@pytest.mark.parametrize("value", ["a", [1.0, 1.0], [[1.0, math.nan]], 3.0, [[1.0]]])
def test_starting_values_of_a_fixed_step_run(value):
    with refused("starting_values"):
        solve_decay(fixed_step=0.1, max_order=2, starting_values=value)


@pytest.mark.parametrize("value", [0, -1, 1.5, "many", True, 1e5])
def test_max_steps(value):
    with refused("max_steps must be a positive integer"):
        solve_decay(max_steps=value)


# --- methods and their options --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["runge", None, 3, daedal.methods.DASSL, ["dassl"]])
def test_unknown_method_names_the_known_ones(method):
    with refused("(?i)method.*dassl"):
        solve_decay(method=method)


def test_unknown_option():
    with refused("unknown option max_ordr.*max_order"):
        solve_decay(max_ordr=3)


def test_options_beside_a_method_object():
    with refused(r"max_order .*DASSL\(\.\.\.\)"):
        solve_decay(method=daedal.methods.DASSL(), max_order=2)


@pytest.mark.parametrize("formulation", ["ggl", 3])
def test_unknown_formulation(formulation):
    with refused("formulation"):
        solve_decay(formulation=formulation)


def test_something_else_than_a_problem():
    with refused("problem must be an ImplicitDAE, a SemiExplicitDAE, a LinearDAE, .* got function"):
        daedal.solve(decay, (0.0, 1.0), ([1.0], [-1.0]))


@pytest.mark.parametrize("value", [0, 7, -1, "5", None, 2.5, True, [1]])
def test_max_order(value):
    with refused("max_order must be 1 to 5"):
        solve_decay(method="dassl", max_order=value)


def test_order_6_needs_a_fixed_step():
    with refused("max_order 6 is only for fixed_step"):
        solve_decay(method="dassl", max_order=6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("error_test", "some"),
        ("error_test", [True, False]),
        ("error_test", [5]),
        ("error_test", ["x"]),
        ("error_test", []),  # nothing would be controlled
        ("nonnegative", [True, False]),
        ("nonnegative", [5]),
        ("nonnegative", None),
        ("variable_index", [1, 1]),
        ("variable_index", [0]),
        ("variable_index", [5]),
        ("newton_weights", [1, 1]),
        ("newton_weights", "heavy"),
        ("row_scaling", [1, 1]),
        ("row_scaling", [math.nan]),
        ("increment", "large"),
        ("norm", 3),
        ("linear_solver", "lapack"),
        ("linear_solver", None),
        ("linear_solver", daedal.linear_solvers.GMRES),
    ],
)
def test_option_of_the_method(name, value):
    with refused(name):
        solve_decay(**{name: value})


def test_a_norm_does_not_go_with_gmres():
    with refused("norm"):
        solve_decay(linear_solver="gmres", norm=lambda v, w: 1.0)


# --- the problem ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, -1, 1.5, "two", True, None])
def test_number_of_unknowns(n):
    with refused("n must be an integer"):
        daedal.ImplicitDAE(decay, n)


@pytest.mark.parametrize("name", ["residual", "jacobian"])
def test_functions_of_an_implicit_problem(name):
    with refused(f"{name} must be a function, got int"):
        daedal.ImplicitDAE(**({"residual": decay, "n": 1} | {name: 3}))


@pytest.mark.parametrize("name", ["f", "g", "jacobian"])
def test_functions_of_a_semi_explicit_problem(name):
    with refused(f"{name} must be a function, got int"):
        daedal.SemiExplicitDAE(**({"f": decay, "g": decay, "n_y": 1, "n_z": 1} | {name: 3}))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b"], "names has 2 entries for 4 variables"),
        (["a", "b", "c", "a"], "names must be unique"),
        ("a b c", "names has 3 entries for 4 variables"),
        (5, "names"),
    ],
)
def test_names(names, message):
    with refused(message):
        daedal.ImplicitDAE(decays, N, names=names)


@pytest.mark.parametrize(
    "algebraic", [True, [True], [7], [-7], ["x"], "x", [0.5], [None], np.zeros((1, N), dtype=bool)]
)
def test_algebraic(algebraic):
    with refused("algebraic"):
        daedal.ImplicitDAE(decays, N, algebraic=algebraic)


@pytest.mark.parametrize("sparsity", ["dense", np.eye(3), [1, 2, 3, 4], 3, np.array([["a"] * N] * N)])
def test_sparsity(sparsity):
    with refused("sparsity"):
        daedal.ImplicitDAE(decays, N, sparsity=sparsity)


@pytest.mark.parametrize("bandwidth", [3, (1,), (1, 2, 3), (N, 0), (0, N), (-1, 0), ("a", 1), (1.5, 0)])
def test_bandwidth(bandwidth):
    with refused("bandwidth"):
        daedal.ImplicitDAE(decays, N, bandwidth=bandwidth)


def test_sparsity_and_bandwidth_together():
    with refused("either sparsity or bandwidth"):
        daedal.ImplicitDAE(decays, N, sparsity=np.eye(N), bandwidth=(0, 0))


# --- initial values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (None, r"initial must be a pair \(y0, yp0\)"),
        (([1.0, 1.0],), r"initial must be a pair \(y0, yp0\)"),
        (([1.0], None), r"y0 has shape \(1,\); expected \(2,\)"),
        (([[1.0, 1.0]], None), r"y0 has shape \(1, 2\); expected \(2,\)"),
        ((1.0, None), r"y0 has shape \(\)"),
        ((None, None), "y0"),
        (([1.0, math.nan], None), "y0 is not finite: v = nan"),
        (([math.inf, 1.0], None), "y0 is not finite: u = inf"),
        (([1.0, 1.0], [0.0]), r"yp0 has shape \(1,\); expected \(2,\)"),
        (([1.0, 1.0], [0.0, math.nan]), "yp0 is not finite: v = nan"),
        (([1.0, 1j], None), "y0"),
        ((np.array([1.0, 1.0 + 1j]), None), "y0"),
        (([1.0, 1.0], np.array([0.0, 1j])), "yp0"),
        (("ab", None), "y0 must hold 2 real numbers"),
        (({}, None), "y0 must hold 2 real numbers"),
    ],
)
def test_initial_values(initial, message):
    problem = daedal.ImplicitDAE(decay, 2, names=["u", "v"])
    with refused(message):
        daedal.solve(problem, (0.0, 1.0), initial)
    with refused(message):
        daedal.consistent_initial(problem, 0.0, initial)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (([1.0, 1.0], None), r"y0 has shape \(2,\); expected \(1,\)"),
        (([1.0], [1.0, 1.0]), r"z0 has shape \(2,\); expected \(1,\)"),
        (([1.0], [math.nan]), "z0 is not finite"),
        ([1.0, 2.0, 3.0], r"initial must be a pair \(y0, z0\)"),
    ],
)
def test_initial_values_of_a_semi_explicit_problem(initial, message):
    problem = daedal.SemiExplicitDAE(lambda t, y, z: -z, lambda t, y, z: z - y, 1, 1)
    with refused(message):
        daedal.solve(problem, (0.0, 1.0), initial)


@pytest.mark.parametrize("y0", [None, []])
def test_solve_dae_without_initial_values(y0):
    with refused("y0|n must be"):
        daedal.solve_dae(decay, (0.0, 1.0), y0, None)


def test_a_derivative_that_is_missing_and_cannot_be_computed():
    with pytest.raises(daedal.InconsistentInitialError, match="initial derivative could not be computed") as caught:
        solve_decay(lambda t, y, yp: y**2 + 1.0, yp0=None)
    assert caught.value.equations == (0,)
    assert caught.value.residual.tolist() == [2.0]


def test_an_inconsistent_start_names_equation_and_variable():
    with pytest.raises(daedal.InconsistentInitialError, match=r"equation 1 .*\n.*level") as caught:
        daedal.solve_dae(
            lambda t, y, yp: [yp[0] + y[0], y[1] - y[0]], (0.0, 1.0), [1.0, 5.0], [-1.0, -1.0], names=["flow", "level"]
        )
    assert caught.value.equations == (1,)


@pytest.mark.parametrize("fixed", ["everything", [7], [True]])
def test_what_consistent_initial_is_to_keep(fixed):
    with refused("fixed"):
        daedal.consistent_initial(daedal.ImplicitDAE(decay, 2), 0.0, ([1.0, 1.0], None), fixed=fixed)


@pytest.mark.parametrize("name", ["rtol", "atol"])
@pytest.mark.parametrize("value", [-1.0, math.nan, "small", [1e-6, 1e-6], None])
def test_tolerances_of_consistent_initial(name, value):
    with refused(name):
        daedal.consistent_initial(daedal.ImplicitDAE(decay, 1), 0.0, ([1.0], None), **{name: value})


@pytest.mark.parametrize("t0", [math.nan, math.inf, "noon", None, 1j])
def test_time_of_consistent_initial(t0):
    with refused("t0"):
        daedal.consistent_initial(daedal.ImplicitDAE(decay, 1), t0, ([1.0], None))


def test_consistent_initial_of_something_else_than_a_problem():
    with refused("problem must be an ImplicitDAE, a SemiExplicitDAE, .*MechanicalSystem, got function"):
        daedal.consistent_initial(decay, 0.0, ([1.0], None))


def test_a_negative_start_of_a_variable_to_be_kept_nonnegative_is_named():
    with pytest.raises(daedal.DaedalError, match="negative") as caught:
        solve_decay(y0=[-1.0], yp0=[1.0], method="dassl", nonnegative=True, names=["level"])
    assert "level" in str(caught.value)


# --- singular systems -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("yp0", [(-1.0, -1.0), None])
def test_a_singular_iteration_matrix_names_what_is_undetermined(yp0):
    def twice_the_same(t, y, yp):
        return [yp[0] + yp[1] + y[0] + y[1]] * 2

    with pytest.raises(daedal.IntegrationError, match=r"dF/dy \+ cj dF/dy'.* singular") as caught:
        daedal.solve_dae(twice_the_same, (0.0, 1.0), [1.0, 1.0], yp0, names=["left", "right"])
    assert "left and right" in str(caught.value)
    assert caught.value.solution.status == "failed"


@pytest.mark.parametrize("equation", [lambda t, y: t - 1.0, lambda t, y: 0.0 * y[0]])
def test_an_equation_without_an_unknown_is_named(equation):
    with pytest.raises(daedal.DaedalError, match=r"equation 0 contains no unknown; idle occurs in no equation"):
        daedal.solve_dae(lambda t, y, yp: [equation(t, y)], (0.0, 2.0), [1.0], None, names=["idle"])
    with pytest.raises(daedal.errors.StructurallySingularError, match=r"\. Remedy: replace .* by the missing one\.$"):
        daedal.reduce_index(daedal.ImplicitDAE(lambda t, y, yp: [equation(t, y)], 1))


def test_a_variable_that_occurs_nowhere_is_named():
    with pytest.raises(daedal.IntegrationError, match="idle occurs in no equation"):
        daedal.solve_dae(
            lambda t, y, yp: [yp[0] + y[0], y[0] - math.exp(-t)],
            (0.0, 1.0),
            [1.0, 1.0],
            [-1.0, -1.0],
            names=["active", "idle"],
        )


@pytest.mark.parametrize("storage", [{"bandwidth": (1, 1)}, {"sparsity": np.ones((N, N))}, {}])
def test_a_singular_matrix_is_noticed_in_every_storage(storage):
    problem = daedal.ImplicitDAE(lambda t, y, yp: np.full(N, yp[0] + y[0]), N, **storage)
    with pytest.raises(daedal.IntegrationError, match="singular"):
        daedal.solve(problem, (0.0, 1.0), (np.ones(N), -np.ones(N)))


@pytest.mark.parametrize("pattern", [np.zeros((2, 2)), np.eye(2), np.array([[1, 0], [1, 0]])])
def test_an_incomplete_sparsity_is_told(pattern):
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[1], y[1] - y[0]], 2, sparsity=pattern)
    with pytest.raises(daedal.DaedalError, match="sparsity"):
        daedal.solve(problem, (0.0, 1.0), ([1.0, 1.0], [-1.0, -1.0]))


# --- what functions return ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "residual returned None; it must return 2 numbers"),
        (1.0, r"residual returned .*shape \(\); expected \(2,\)"),
        ([1.0], r"residual returned .*shape \(1,\); expected \(2,\)"),
        ([0.0, 0.0, 0.0], r"residual returned .*shape \(3,\); expected \(2,\)"),
        (np.zeros((2, 1)), r"residual returned .*shape \(2, 1\); expected \(2,\)"),
        ([[0.0], [0.0]], r"residual returned .*shape \(2, 1\); expected \(2,\)"),
        ("ab", "residual returned str"),
        (["a", "b"], "residual returned list .*must return 2 real numbers"),
        ([0.0, 1j], "residual returned list .*complex"),
        (np.array([0.0, 1j]), "residual returned ndarray .*complex"),
        ({0: 1.0}, "residual returned dict"),
        (iter([0.0, 0.0]), "residual returned list_iterator"),
        (np.array([None, 0.0]), "residual returned ndarray .*object"),
        ([math.nan, 0.0], "not finite at the initial values.*equation 0 is nan"),
        ([0.0, math.inf], "not finite at the initial values.*equation 1 is inf"),
    ],
)
def test_result_of_the_residual(result, message):
    with refused(message):
        solve_decay(lambda t, y, yp: result, y0=[1.0, 1.0], yp0=[-1.0, -1.0])


@pytest.mark.parametrize(("name", "f", "g"), [("f", None, [0.0]), ("g", [0.0], None), ("f", [0.0, 0.0], [0.0])])
@pytest.mark.parametrize("fixed_step", [None, 0.1])
def test_result_of_the_functions_of_a_semi_explicit_problem(name, f, g, fixed_step):
    problem = daedal.SemiExplicitDAE(lambda t, y, z: f, lambda t, y, z: g, 1, 1)
    with refused(f"^{name} returned"):
        daedal.solve(problem, (0.0, 1.0), ([1.0], [1.0]), fixed_step=fixed_step, method="dassl", max_order=1)


@pytest.mark.parametrize("residual", [lambda t, y: y, lambda t, y, yp, p: y])
def test_a_residual_with_the_wrong_number_of_arguments(residual):
    with pytest.raises((TypeError, InvalidProblemError), match="argument"):
        solve_decay(residual)


def test_a_residual_that_is_never_evaluable():
    def hopeless(t, y, yp):
        raise daedal.Unevaluable("the moon is not full")

    with refused("initial values.*the moon is not full"):
        solve_decay(hopeless)


def dense_jacobian(t, y, yp, cj):
    return np.diag(cj + RATES)


def banded_jacobian(t, y, yp, cj):
    return np.vstack([np.zeros(N), cj + RATES, np.zeros(N)])


def sparse_jacobian(t, y, yp, cj):
    return scipy.sparse.diags_array(cj + RATES).tocsc()


@pytest.mark.parametrize(
    ("jacobian", "message"),
    [
        (lambda *a: None, "jacobian returned None"),
        (lambda *a: np.zeros((N, N + 1)), r"jacobian returned .*shape \(4, 5\); expected \(4, 4\)"),
        (lambda *a: np.zeros(N * N), r"jacobian returned .*shape \(16,\); expected \(4, 4\)"),
        (banded_jacobian, r"jacobian returned .*shape \(3, 4\); expected \(4, 4\)"),
        (lambda *a: 1.0, r"jacobian returned .*shape \(\)"),
        (lambda *a: "steep", "jacobian returned str"),
        (lambda *a: 1j * np.eye(N), "jacobian returned .*complex"),
    ],
)
def test_result_of_a_dense_jacobian(jacobian, message):
    with refused(message):
        solve_decays(jacobian=jacobian)


@pytest.mark.parametrize(
    ("jacobian", "message"),
    [
        (dense_jacobian, r"jacobian returned .*shape \(4, 4\); expected \(3, 4\)"),
        (lambda *a: banded_jacobian(*a).T, r"jacobian returned .*shape \(4, 3\); expected \(3, 4\)"),
        (lambda *a: None, "jacobian returned None"),
    ],
)
def test_result_of_a_banded_jacobian(jacobian, message):
    with refused(message):
        solve_decays(jacobian=jacobian, bandwidth=(1, 1))


@pytest.mark.parametrize(
    ("jacobian", "message"),
    [
        (dense_jacobian, "jacobian returned ndarray; with sparsity"),
        (lambda *a: np.ones(N - 1), "jacobian returned ndarray; with sparsity"),
        (lambda *a: None, "jacobian returned None"),
        (lambda *a: scipy.sparse.eye_array(3), r"shape \(3, 3\); expected \(4, 4\)"),
        (lambda *a: scipy.sparse.csc_array(np.ones((N, N))), "entry in row 1, column 0, where sparsity has none"),
        (lambda *a: sparse_jacobian(*a) * (1 + 1j), "jacobian .*complex"),
        (lambda *a: (RATES + a[3]) * (1 + 1j), "jacobian .*complex"),
    ],
)
def test_result_of_a_sparse_jacobian(jacobian, message):
    with refused(message):
        solve_decays(jacobian=jacobian, sparsity=scipy.sparse.eye_array(N))


def test_a_jacobian_beside_a_sparsity_without_entries():
    with pytest.raises(daedal.DaedalError, match="sparsity"):
        solve_decays(jacobian=sparse_jacobian, sparsity=np.zeros((N, N)))


def test_stored_zeros_outside_the_sparsity_do_no_harm():
    def jacobian(t, y, yp, cj):
        rows, columns = np.append(np.arange(N), 0), np.append(np.arange(N), 2)
        return scipy.sparse.coo_array((np.append(cj + RATES, 0.0), (rows, columns)), shape=(N, N))

    given = solve_decays(jacobian=jacobian, sparsity=scipy.sparse.eye_array(N))
    assert np.array_equal(given.y, solve_decays(jacobian=sparse_jacobian, sparsity=scipy.sparse.eye_array(N)).y)


@pytest.mark.parametrize("entry", [0.0, math.nan])
@pytest.mark.parametrize("storage", ["dense", "banded", "sparse"])
def test_an_unusable_jacobian_is_blamed(storage, entry):
    function, structure = {
        "dense": (dense_jacobian, {}),
        "banded": (banded_jacobian, {"bandwidth": (1, 1)}),
        "sparse": (sparse_jacobian, {"sparsity": scipy.sparse.eye_array(N)}),
    }[storage]
    with pytest.raises(daedal.IntegrationError, match="jacobian"):
        solve_decays(jacobian=lambda *a: function(*a) * entry, **structure)


# --- linear solvers and preconditioners -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "options", "message"),
    [
        ({}, {"method": "dassl", "linear_solver": "banded"}, "needs bandwidth"),
        ({}, {"method": "dassl", "linear_solver": "sparse"}, "needs sparsity"),
        ({}, {"method": "dassl", "linear_solver": "gmres"}, "needs a preconditioner"),
        (
            {},
            {"method": "dassl", "preconditioner": daedal.linear_solvers.ILUPreconditioner()},
            "preconditioner requires linear_solver='gmres'",
        ),
        (
            {},
            {"method": "dassl", "linear_solver": "gmres", "preconditioner": daedal.linear_solvers.ILUPreconditioner()},
            "needs sparsity",
        ),
        ({}, {"method": "dassl", "linear_solver": "gmres", "preconditioner": 3}, "preconditioner"),
        (
            {},
            {"method": "dassl", "linear_solver": "gmres", "preconditioner": daedal.linear_solvers.ILUPreconditioner},
            "preconditioner",
        ),
        (
            {"bandwidth": (1, 1), "jacobian": banded_jacobian},
            {"method": "dassl", "linear_solver": "dense"},
            "linear_solver='banded'",
        ),
    ],
)
def test_linear_solvers_that_do_not_fit(problem, options, message):
    with refused(message):
        solve_decays(options, **problem)


def test_a_dense_matrix_that_cannot_be_stored_is_refused_with_the_alternatives():
    code = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (20 * 2**30, 20 * 2**30))
import numpy as np
import daedal
n = 100_000
try:
    daedal.solve(daedal.ImplicitDAE(lambda t, y, yp: yp + y, n), (0.0, 1.0), (np.ones(n), -np.ones(n)))
except daedal.InvalidProblemError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert all(word in run.stdout for word in ("bandwidth", "sparsity", "gmres")), run.stderr


@pytest.mark.parametrize(
    "make",
    [
        lambda: daedal.linear_solvers.GMRES(basis_size=0),
        lambda: daedal.linear_solvers.GMRES(basis_size=2.5),
        lambda: daedal.linear_solvers.GMRES(restarts=-1),
        lambda: daedal.linear_solvers.GMRES(tolerance=0.0),
        lambda: daedal.linear_solvers.GMRES(tolerance=math.nan),
        lambda: daedal.linear_solvers.GMRES(orthogonal_to=9),
        lambda: daedal.linear_solvers.Preconditioner(3),
        lambda: daedal.linear_solvers.Preconditioner(lambda data, r: r, setup=3),
        lambda: daedal.linear_solvers.BandedPreconditioner(-1, 0),
        lambda: daedal.linear_solvers.BandedPreconditioner(1.5, 1),
        lambda: daedal.linear_solvers.BandedPreconditioner("wide", 1),
        lambda: daedal.linear_solvers.BandedPreconditioner(1, 1, residual=3),
        lambda: daedal.linear_solvers.BlockDiagonalPreconditioner(0),
        lambda: daedal.linear_solvers.BlockDiagonalPreconditioner(1.5),
    ],
)
def test_options_of_gmres_and_its_preconditioners(make):
    with refused("GMRES|[Pp]reconditioner"):
        made = make()
        if isinstance(made, daedal.linear_solvers.GMRES):
            solve_decays(
                {
                    "method": "dassl",
                    "linear_solver": made,
                    "preconditioner": daedal.linear_solvers.BandedPreconditioner(0, 0),
                }
            )
        else:
            solve_decays({"method": "dassl", "linear_solver": "gmres", "preconditioner": made})


@pytest.mark.parametrize(
    "preconditioner",
    [daedal.linear_solvers.BandedPreconditioner(50, 50), daedal.linear_solvers.BlockDiagonalPreconditioner(9)],
)
def test_a_preconditioner_wider_than_the_matrix_is_the_matrix(preconditioner):
    sol = solve_decays({"method": "dassl", "linear_solver": "gmres", "preconditioner": preconditioner})
    assert np.allclose(sol.y[:, -1], np.exp(-RATES), rtol=1e-4)


def solve_preconditioned(solve, setup=lambda t, y, yp, cj: cj + RATES):
    return solve_decays(
        {
            "method": "dassl",
            "linear_solver": "gmres",
            "preconditioner": daedal.linear_solvers.Preconditioner(solve, setup),
        }
    )


@pytest.mark.parametrize(
    ("solve", "message"),
    [
        (lambda data, r: None, "preconditioner.* returned None"),
        (lambda data, r: r[:2], r"preconditioner.*shape \(2,\)"),
    ],
)
def test_result_of_a_preconditioner(solve, message):
    with refused(message):
        solve_preconditioned(solve)


@pytest.mark.parametrize("factor", [0.0, math.nan, 1e300])
def test_a_useless_preconditioner_fails_the_run_and_is_blamed(factor):
    with pytest.raises(daedal.IntegrationError, match="preconditioner"):
        solve_preconditioned(lambda data, r: factor * r)


# --- events and norms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (3, "events"),
        ("start", r"events\[0\] must be a function or an Event"),
        ([None], r"events\[0\] must be a function or an Event"),
        (lambda: 0.0, r"events\[0\] takes 0 arguments"),
        (lambda t, y: None, r"events\[0\] must return"),
        (lambda t, y: "never", r"events\[0\] must return"),
        (lambda t, y: 1j, r"events\[0\] must return"),
        (lambda t, y: [], r"events\[0\] must return"),
        (lambda t, y: [[1.0]], r"events\[0\] must return"),
        (lambda t, y: math.nan, r"events\[0\]"),
        (daedal.Event(lambda t, y: 1.0, direction=5), "direction"),
        (daedal.Event(lambda t, y: 1.0, direction="up"), "direction"),
        (daedal.Event(lambda t, y: 1.0, terminal=[True, False]), r"events\[0\].terminal"),
        (daedal.Event(lambda t, y: 1.0, name=["a", "b"]), r"events\[0\].name"),
        (daedal.Event(lambda t, y: 1.0, name=5), r"events\[0\].name"),
    ],
)
def test_events(events, message):
    with refused(message):
        solve_decay(events=events)


@pytest.mark.parametrize("value", [None, math.nan, "never", 1j, [1.0, 2.0], []])
def test_an_event_that_goes_wrong_later_is_named(value):
    def crossing(t, y):
        return y[0] - 0.5 if t < 0.3 else value

    with pytest.raises(daedal.DaedalError, match="crossing"):
        solve_decay(events=crossing)


def test_a_vector_of_events_that_becomes_a_number_is_named():
    def crossings(t, y):
        return [y[0] - 0.5, y[0] - 0.6] if t < 0.3 else -1.0

    with pytest.raises(daedal.DaedalError, match="crossings"):
        solve_decay(events=crossings)


def test_an_event_that_cannot_be_evaluated_says_why():
    def crossing(t, y):
        if t > 0.3:
            raise daedal.Unevaluable("the lamp is out")
        return y[0] - 0.5

    with pytest.raises(daedal.DaedalError, match="the lamp is out"):
        solve_decay(events=crossing)


@pytest.mark.parametrize("value", [None, math.nan, -1.0, "long", 1j, [1.0, 2.0]])
@pytest.mark.parametrize("from_call", [0, 40])
def test_a_norm_that_is_no_norm_is_blamed(value, from_call):
    calls = 0

    def norm(v, w):
        nonlocal calls
        calls += 1
        return float(np.sqrt(np.mean((v / w) ** 2))) if calls <= from_call else value

    with pytest.raises(daedal.DaedalError, match=r"\bnorm\b"):
        solve_decay(norm=norm)
