"""Bad input to mechanical and linear constrained systems: refused with a message that names what is wrong.

What was computed before a failure comes back with the error, and exceptions of the user's functions arrive unchanged.
"""

import os
import pickle
import signal
import threading
import traceback

import numba
import numpy as np
import pytest
import scipy.sparse

import daedal
from daedal import InconsistentInitialError, IntegrationError, InvalidProblemError, MechanicalSystem, library
from daedal.mechanics.formulations import GGL
from interrupts import computed_until

GRAVITY = 9.81
START = ([1.0, 0.0], [0.0, 0.0])
FORMS = ["auto", "ggl", "index1", "state_space", "minimal_extension"]
FUNCTIONS = {
    "mass": lambda t, q: np.eye(2),
    "force": lambda t, q, v: [0.0, -GRAVITY],
    "constraint": lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0],
    "constraint_jacobian": lambda t, q: [[2.0 * q[0], 2.0 * q[1]]],
    "constraint_t": lambda t, q: [0.0],
    "acceleration_bias": lambda t, q, v: [-2.0 * (v[0] ** 2 + v[1] ** 2)],
}


def pendulum(**changes):
    given = {
        "mass": 1.0,
        "force": FUNCTIONS["force"],
        "constraint": FUNCTIONS["constraint"],
        "n_q": 2,
        "n_constraints": 1,
        "names": ["x", "y"],
        "constraint_names": ["rod"],
    }
    return MechanicalSystem(**(given | changes))


def solve(system=None, t_span=(0.0, 1.0), initial=START, **options):
    return daedal.solve(pendulum() if system is None else system, t_span, initial, **options)


def refused(message):
    return pytest.raises(InvalidProblemError, match=message)


def inconsistent(message):
    return pytest.raises(InconsistentInitialError, match=message)


@pytest.fixture(scope="module")
def reference():
    """The pendulum at t = 1."""
    return solve(rtol=1e-10, atol=1e-12).q[:, -1]


# --- the system -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_q": 0}, "n_q must be an integer of at least 1, got 0"),
        ({"n_q": 2.0}, "n_q must be an integer"),
        ({"n_q": True}, "n_q must be an integer"),
        ({"n_q": 3}, "names has 2 entries for 3 variables"),
        ({"n_constraints": -1}, "n_constraints must be an integer of at least 0"),
        ({"n_constraints": 0}, "constraint is given, but n_constraints is not"),
        ({"constraint": None}, "n_constraints = 1 is given, but constraint is not"),
        ({"constraint": 5}, "constraint must be a function, got int"),
        ({"force": None}, "force must be a function, got NoneType"),
        ({"force": [0.0, 1.0]}, "force must be a function, got list"),
        ({"mass": None}, r"mass must be a function mass\(t, q\), a matrix, a diagonal or a number, got None"),
        ({"mass": "heavy"}, "mass must be a function"),
        ({"mass": 1j}, "mass must be a function"),
        ({"mass": np.nan}, "mass holds values that are not finite"),
        ({"mass": np.eye(3)}, r"mass has shape \(3, 3\); expected \(2, 2\), \(2,\) or a number"),
        ({"mass": scipy.sparse.eye_array(3)}, r"mass has shape \(3, 3\); expected \(2, 2\)"),
        ({"mass": scipy.sparse.eye_array(2) * np.nan}, "mass holds values that are not finite"),
        ({"names": ["x", "x"]}, "names must be unique"),
        ({"names": ["x", "x'"]}, 'names has "x" and "x\'", which is the name of its velocity'),
        ({"names": 5}, "names must be a sequence of 2 strings"),
        ({"constraint_names": ["a", "b"]}, "constraint_names has 2 entries for 1 constraint"),
        ({"constraint_names": 5}, "constraint_names must be a sequence"),
        ({"force_sparsity": np.eye(3)}, r"force_sparsity has shape \(3, 3\)"),
        ({"contact": lambda t, q, s: s}, "contact is given, but n_s is not"),
        ({"contact_guess": [1.0]}, "contact_guess is given, but contact is not"),
        ({"n_r": 1}, "n_r = 1 is given, but state_rate is not"),
        ({"algebraic": lambda t, q, v, w: w}, "algebraic is given, but n_w is not"),
        ({"velocity_bias": lambda t, q, v: v}, "velocity_bias is given, but velocity_constraint is not"),
        ({"force_uses_multipliers": "yes"}, "force_uses_multipliers must be True or False, got 'yes'"),
    ],
)
def test_arguments_of_a_system(changes, message):
    with refused(message):
        pendulum(**changes)


def test_names_of_constraints_are_unique():
    with refused("constraint_names must be unique"):
        MechanicalSystem(1.0, lambda t, q, v: q, lambda t, q: q[:2], n_q=3, n_constraints=2, constraint_names=["a"] * 2)


def test_the_jacobian_of_a_missing_constraint():
    with refused("constraint_jacobian is given, but constraint is not"):
        MechanicalSystem(1.0, lambda t, q, v: q, n_q=1, constraint_jacobian=lambda t, q: q)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"params": [1.0]}, r"force has the arguments \(t, q, v\), but it is called as force\(t, q, v, p\)"),
        ({"force": lambda t, q, v, p: q}, r"called as force\(t, q, v\); params is not given"),
        ({"force": numba.njit(lambda t, q: q)}, r"force has the arguments \(t, q\)"),
        ({"mass": lambda q: np.eye(2)}, r"called as mass\(t, q\)"),
        ({"constraint_jacobian": lambda t: np.eye(2)}, r"called as constraint_jacobian\(t, q\)"),
        ({"n_r": 1, "state_rate": lambda t, q, v, r: -r}, r"called as force\(t, q, v, r\)"),
        ({"force_uses_multipliers": True}, r"called as force\(t, q, v, lam\)"),
        ({"n_s": 1, "contact": lambda t, q, s: s}, r"called as force\(t, q, v, s\)"),
        ({"params": "long", "force": numba.njit(lambda t, q, v, p: q)}, "need params as an array of floats: got str"),
        ({"params": {"a": 1}, "force": numba.njit(lambda t, q, v, p: q)}, "array of floats: got dict"),
    ],
)
def test_arguments_of_functions(changes, message):
    with refused(message):
        pendulum(**changes)


def test_functions_with_free_arguments_are_taken():
    assert pendulum(force=lambda *arguments: [0.0, -1.0]).n_q == 2
    assert pendulum(force=lambda t, q, v, strength=1.0: [0.0, -strength]).params is None
    assert pendulum(force=lambda *args: [0.0, -1.0], constraint=lambda t, q, p: [q @ q - p], params=1.0).params == 1.0


BAD_VECTORS = [
    (None, "returned None"),
    ([1j, 0.0], "entries of type 'complex128'"),
    ([1.0, 2.0, 3.0], r"shape \(3,\)"),
    ([[1.0, 2.0]], r"shape \(1, 2\)"),
    ("ab", "entries of type '<U2'"),
    (0.0, r"shape \(\)"),
    (object(), "entries of type 'object'"),
]


@pytest.mark.parametrize(("value", "message"), BAD_VECTORS)
@pytest.mark.parametrize("name", ["force", "constraint_t", "acceleration_bias"])
def test_results_that_are_not_vectors(name, value, message):
    with refused(f"{name} returned.*{message.removeprefix('returned ')}"):
        solve(pendulum(**{name: lambda *arguments: value}))


@pytest.mark.parametrize("value", [None, [1.0, 0.0], np.ones((2, 1)), np.eye(3), "a", [[1j, 0.0]], {}])
@pytest.mark.parametrize("name", ["mass", "constraint_jacobian"])
def test_results_that_are_not_matrices(name, value):
    with refused(f"{name} returned"):
        solve(pendulum(**{name: lambda t, q: value}))


@pytest.mark.parametrize("value", [[1.0, 2.0], [1.0, 2.0, 3.0], [[1.0]]])
def test_wrong_number_of_constraints(value):
    with refused(r"constraint returned an array of shape .*; expected \(1,\)"):
        solve(pendulum(constraint=lambda t, q: value))


def test_wrong_number_of_coordinates():
    with refused(r"q has shape \(2,\); expected \(3,\)"):
        solve(pendulum(n_q=3, names=None))
    with refused(r"force returned an array of shape \(2,\); expected \(3,\)"):
        solve(pendulum(n_q=3, names=None), initial=([1.0, 0.0, 0.0], np.zeros(3)))


@pytest.mark.parametrize("value", [[np.nan, 0.0], [np.inf, 0.0]])
def test_forces_that_are_not_finite_at_the_start(value):
    with pytest.raises(daedal.DaedalError, match="t = 0"):
        solve(pendulum(force=lambda t, q, v: value))


@pytest.mark.parametrize("force", [lambda t, q, v: (0, -9.81), lambda t, q, v: np.array([0.0, -9.81], dtype="f4")])
def test_tuples_and_other_floats_are_taken(force, reference):
    assert solve(pendulum(force=force)).q[:, -1] == pytest.approx(reference, abs=2e-5)


def test_integers_are_taken():
    integers = solve(pendulum(force=lambda t, q, v: [0, -10], mass=1), initial=([1, 0], [0, 0]))
    floats = solve(pendulum(force=lambda t, q, v: [0.0, -10.0], mass=1.0), initial=([1.0, 0.0], [0.0, 0.0]))
    np.testing.assert_array_equal(integers.q, floats.q)


# --- functions that change their arguments, or share memory ----------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_functions_that_change_their_arguments_do_no_harm(form, reference):
    def force(t, q, v):
        q[0], v[:] = 99.0, 0.0
        return [0.0, -GRAVITY]

    def constraint(t, q):
        value = [q[0] ** 2 + q[1] ** 2 - 1.0]
        q[:] = 99.0
        return value

    assert solve(pendulum(force=force), formulation=form).q[:, -1] == pytest.approx(reference, abs=1e-4)
    assert solve(pendulum(constraint=constraint), formulation=form).q[:, -1] == pytest.approx(reference, abs=1e-4)


def test_results_in_shared_or_protected_memory(reference):
    shared, fixed = np.zeros(2), np.array([0.0, -GRAVITY])
    fixed.flags.writeable = False

    def force(t, q, v):
        shared[:] = fixed
        return shared

    for function in (force, lambda t, q, v: fixed):
        assert solve(pendulum(force=function)).q[:, -1] == pytest.approx(reference, abs=1e-5)


def test_initial_values_are_not_changed():
    q0, v0 = np.array([1.0, 1e-9]), np.zeros(2)
    q0.flags.writeable = v0.flags.writeable = False
    assert solve(initial=(q0, v0)).success
    assert q0.tolist() == [1.0, 1e-9]


# --- initial values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (None, r"initial must be a pair \(q0, v0\)"),
        ([1.0, 0.0, 0.0, 0.0], "initial must be a pair"),
        (([1.0, 0.0],), "initial must be a pair"),
        ((None, [0.0, 0.0]), "q is missing"),
        (([np.nan, 0.0], [0.0, 0.0]), "q is not finite: x = nan"),
        (([1.0, 0.0], [0.0, np.inf]), "v is not finite: y' = inf"),
        (([1.0, 0j], [0.0, 0.0]), "q must hold 2 real numbers"),
        (("ab", "cd"), "q must hold 2 real numbers"),
        (([1.0], [0.0, 0.0]), r"q has shape \(1,\); expected \(2,\)"),
        (([1.0, 0.0], [0.0, 0.0, 0.0]), r"v has shape \(3,\); expected \(2,\)"),
        (([1.0, 0.0], [0.0, 0.0], [1.0]), r"r0 has shape \(1,\); expected \(0,\)"),
        (([[1.0, 0.0]], [0.0, 0.0]), r"q has shape \(1, 2\)"),
    ],
)
def test_initial_values(initial, message):
    with refused(message):
        solve(initial=initial)


def test_velocities_may_be_left_out(reference):
    assert solve(initial=([1.0, 0.0], None)).q[:, -1] == pytest.approx(reference, abs=1e-5)


def test_positions_that_violate_a_constraint_are_refused_with_the_nearest_values():
    with inconsistent(r"(?s)at t = 0.*'rod' \(0.25\).*x = 0.894427 \(given 1\).*correct_initial=True") as caught:
        solve(initial=([1.0, 0.5], [0.0, 0.0]))
    assert caught.value.equations == (0,)
    assert caught.value.residual == pytest.approx([0.25])
    assert solve(initial=([1.0, 0.5], [0.0, 0.0]), correct_initial=True).success


def test_velocities_that_violate_a_constraint_are_refused():
    with inconsistent(r"(?s)Velocity constraints.*'rod' \(2\).*x' = 0 \(given 1\)"):
        solve(initial=([1.0, 0.0], [1.0, 0.0]))


def test_redundant_constraints_are_named_and_share_their_multiplier(reference):
    system = pendulum(
        constraint=lambda t, q: [q @ q - 1.0, 2.0 * (q @ q - 1.0), 3.0 * (q @ q - 1.0)],
        n_constraints=3,  # more than coordinates, which is no harm
        constraint_names=["rod", "twin", "third"],
    )
    sol, single = solve(system), solve()
    assert "'twin' = 2 'rod': redundant" in sol.message
    assert sol.q[:, -1] == pytest.approx(reference, abs=1e-5)
    assert sol.lam[1] == pytest.approx(2.0 * sol.lam[0])
    assert sol.reaction[:, -1] == pytest.approx(single.reaction[:, -1], abs=1e-3)


@pytest.mark.parametrize("correct", [False, True])
def test_contradictory_constraints_are_named(correct):
    names = ["short", "long"]
    system = pendulum(constraint=lambda t, q: [q @ q - 1.0, q @ q - 4.0], n_constraints=2, constraint_names=names)
    with inconsistent(r"(?is)constraints are contradictory at t = 0.*'long' = 'short'.*Remedy"):
        solve(system, correct_initial=correct)


def test_more_constraints_than_coordinates_that_contradict_each_other():
    system = pendulum(
        constraint=lambda t, q: [q[0] - 1.0, q[1], q[0] + q[1] - 2.0], n_constraints=3, constraint_names=None
    )
    with inconsistent("constraint 2 = constraint 0 \\+ constraint 1"):
        solve(system)


@pytest.mark.parametrize("mass", [0.0, [1.0, 0.0]])
def test_coordinates_without_mass_are_named(mass):
    with inconsistent(r"mass matrix is singular .* leave free at t = 0: y\. .*Remedy"):
        solve(pendulum(mass=mass))


PENDULUM_WITH_A_SHADOW = MechanicalSystem(
    [1.0, 1.0, 0.0],
    lambda t, q, v: [0.0, -GRAVITY, 0.0],
    lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0, q[2] - q[0]],
    n_q=3,
    n_constraints=2,
)


def test_a_mass_that_is_singular_only_across_the_constraints_is_enough():
    sol = solve(PENDULUM_WITH_A_SHADOW, initial=([1.0, 0.0, 1.0], np.zeros(3)))
    assert sol.q[2] == pytest.approx(sol.q[0], abs=1e-12)


@pytest.mark.parametrize(
    ("formulation", "remedy"),
    [
        ("fuehrer_leimkuhler", "ggl"),
        ("loetstedt", "ggl"),
        (GGL(projection="B"), GGL(projection="CT")),
    ],
)
def test_formulations_that_need_the_inverse_of_the_mass_refuse_a_singular_one_with_another_that_does_not(
    formulation, remedy
):
    start = [1.0, 0.0, 1.0], np.zeros(3)
    with pytest.raises(InvalidProblemError, match=r"mass matrix is singular at t = 0, mainly in q\[2\].* Remedy: .*'"):
        solve(PENDULUM_WITH_A_SHADOW, initial=start, formulation=formulation)
    sol = solve(PENDULUM_WITH_A_SHADOW, initial=start, formulation=remedy)
    assert sol.q[2] == pytest.approx(sol.q[0], abs=1e-9)


def test_a_constraint_that_is_always_satisfied_is_redundant_and_one_that_never_is_refused():
    assert "'rod' = 0: redundant" in solve(pendulum(constraint=lambda t, q: [0.0])).message
    with inconsistent(r"'rod' \(1\)"):
        solve(pendulum(constraint=lambda t, q: [1.0]))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fixed": ["z"]}, InvalidProblemError, "fixed names the unknown variable 'z'"),
        ({"fixed": [7]}, InvalidProblemError, "fixed has the entry 7"),
        ({"fixed": [0.5]}, InvalidProblemError, "fixed has the entry 0.5"),
        ({"fixed": ["x", "y"]}, InconsistentInitialError, r"with fixed x and y, .*'rod' \(0.25\).*fix other"),
        ({"weight": "foo"}, InvalidProblemError, "weight='foo' is unknown"),
        ({"weight": np.eye(3)}, InvalidProblemError, r"weight has shape \(3, 3\); expected \(2, 2\)"),
        ({"weight": -np.eye(2)}, InvalidProblemError, "weight must be positive definite"),
    ],
)
def test_options_of_consistent_initial(options, error, message):
    with pytest.raises(error, match=message):
        daedal.consistent_initial(pendulum(), 0.0, ([1.0, 0.5], [0.0, 0.0]), **options)


def test_held_velocities_that_cannot_be_kept_are_named():
    with inconsistent(r"with fixed x', no velocities satisfy the constraints .*'rod' \(2\)"):
        daedal.consistent_initial(pendulum(), 0.0, ([1.0, 0.0], [1.0, 1.0]), fixed=["x'"])


@pytest.mark.parametrize("q", [[1.0], [np.nan, 0.0], None])
def test_points_to_look_at(q):
    for look in (pendulum().at, pendulum().check):
        with refused("q "):
            look(0.0, q)
    with refused(r"lam has shape \(2,\)"):
        pendulum().at(0.0, [1.0, 0.0], lam=[1.0, 2.0])


# --- solve: names, combinations, steps -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "rk4"}, "RK4 has no error estimate: pass fixed_step"),
        ({"method": "dopri5", "formulation": "ggl"}, "DOPRI5 is explicit and needs a formulation .*index1, baumgarte"),
        ({"method": "rk4", "fixed_step": 0.3}, "fixed_step = 0.3 does not divide"),
        ({"method": "rk4", "fixed_step": -0.1}, "fixed_step must be positive"),
        ({"formulation": "gll"}, "unknown formulation 'gll'; did you mean 'ggl'.*known: auto, index3"),
        ({"formulation": "zzzzz"}, "unknown formulation 'zzzzz'; known: auto, index3"),
        ({"formulation": 5}, r"formulation must be a name or a formulation such as GGL\(\), got 5"),
        ({"formulation": int}, "formulation must be a name"),
        ({"formulation": ("ggl",)}, "formulation must be a name"),
        ({"formulation": "CordinateProjection"}, "did you mean .projection."),
        ({"method": "phem56", "formulation": "ggl"}, "PHEM56 imposes the constraints itself.*omit formulation"),
        ({"method": "rk4", "formulation": "index3", "fixed_step": 0.1}, "RK4 is explicit and needs a formulation"),
        ({"method": "dasl"}, "unknown method 'dasl'; .*dassl"),
        ({"method": None}, "method must be a name or a method object"),
        ({"method": "dassl", "max_order": 9}, "max_order must be 1 to 5"),
        ({"method": "dopri5", "max_order": 2}, "unknown option max_order"),
        ({"foo": 2}, "unknown option foo"),
        ({"rtol": 0.0}, "rtol = 0 is below the resolution of double precision"),
        ({"atol": np.ones(5)}, r"atol has shape \(5,\); expected a number or \(4,\)"),
        ({"max_steps": 0}, "max_steps must be a positive integer"),
        ({"t_eval": [0.0, 2.0]}, "t_eval must lie within t_span"),
        ({"first_step": 5.0}, "first_step = 5 is longer than t_span"),
        ({"t_stop": 0.5}, "t_stop = 0.5 lies before 1"),
    ],
)
def test_options_of_solve(options, message):
    with refused(message):
        solve(**options)


def test_a_formulation_may_be_given_by_its_class(reference):
    sol = solve(formulation=daedal.formulations.GGL)
    assert sol.formulation == "GGL"
    assert sol.q[:, -1] == pytest.approx(reference, abs=1e-4)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (daedal.formulations.Baumgarte(gamma=-1.0), "root with positive real part"),
        (daedal.formulations.Baumgarte(gamma="a"), "gamma must be a number"),
        (daedal.formulations.Baumgarte(gamma=1.0, alpha=2.0), "give one of gamma"),
        (
            daedal.formulations.Baumgarte(coefficients=[1.0, 2.0, 3.0]),
            "coefficients must hold alpha_0 .. alpha_1, got 3",
        ),
        (daedal.formulations.Baumgarte(coefficients=[-1.0, 2.0]), "root with positive real part"),
        (daedal.formulations.Index2(multipliers="foo"), "multipliers must be 'value' or 'derivative', got 'foo'"),
        (daedal.formulations.GGL(projection="X"), "unknown projection 'X'; known: GT"),
        (daedal.formulations.GGL(projection=None), r"projection must be .* or an array \(2, 1\)"),
        (daedal.formulations.GGL(projection=np.eye(2)), r"projection must be .* or an array \(2, 1\)"),
        (daedal.formulations.GGL(projection=lambda t, q: np.eye(2)), r"projection returned an array of shape \(2, 2\)"),
        (daedal.formulations.GGL(projection=lambda t, q: None), "projection returned None"),
        (daedal.formulations.ProjectedInvariants(k=0), "k must be 1 to 2, got 0"),
        (daedal.formulations.ProjectedInvariants(k=3), "k must be 1 to 2, got 3"),
        (daedal.formulations.Overdetermined(resolution="x"), "resolution must be"),
        (daedal.formulations.StateSpace(coordinates="x"), "unknown coordinates 'x'; known: lu, qr, svd"),
        (daedal.formulations.StateSpace(coordinates=np.eye(2)), r"coordinates has shape \(2, 2\); expected \(1, 2\)"),
        (daedal.formulations.StateSpace(restart=0.0), "restart must be"),
        (daedal.formulations.CoordinateProjection(weight="X"), "unknown weight 'X'"),
        (daedal.formulations.CoordinateProjection(weight=np.eye(3)), r"weight has shape \(3, 3\)"),
        (daedal.formulations.CoordinateProjection(levels=3), "levels must be 1 to 2, got 3"),
        (daedal.formulations.Loetstedt(epsilon=0.0), "epsilon must be positive"),
        (daedal.formulations.Knorrenschild(mu=-1.0), "mu must not be negative"),
        (daedal.formulations.EssentialODE(R=np.eye(2)), "R is for linear problems"),
    ],
)
def test_parameters_of_formulations(form, message):
    with refused(message):
        solve(formulation=form)


def test_an_exception_in_the_projection_of_a_formulation_arrives():
    with pytest.raises(ZeroDivisionError):
        solve(formulation=daedal.formulations.GGL(projection=lambda t, q: 1 / 0))


def test_advice_and_comparisons_check_their_arguments():
    with inconsistent(r"'rod' \(0.25\)"):
        daedal.advise(pendulum(), (0.0, 1.0), ([1.0, 0.5], [0.0, 0.0]))
    with refused("advise needs a MechanicalSystem or a HessenbergDAE"):
        daedal.advise(5, (0.0, 1.0), START)
    with refused("unknown formulation 'gll'; did you mean 'ggl'"):
        daedal.compare(pendulum(), (0.0, 1.0), START, formulations=["gll"])


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("force", [1e300, np.inf])
def test_forces_that_overflow(force):
    with pytest.raises(daedal.DaedalError, match=r"t = 0.*"):
        solve(pendulum(force=lambda t, q, v: [0.0, -force]))


def test_a_blow_up_is_told_with_what_was_computed():
    def force(t, q, v):
        return np.array([0.0, -GRAVITY]) + 10.0 * v * (v @ v)

    with pytest.raises(IntegrationError, match=r"Stopped at t = 0\.157") as caught:
        solve(pendulum(force=force), initial=([1.0, 0.0], [0.0, 1.0]))
    assert caught.value.solution.t.size > 10


@pytest.mark.parametrize("form", FORMS)
def test_too_many_steps_leave_what_was_computed(form):
    with pytest.raises(IntegrationError, match="limit of 7 steps") as caught:
        solve(formulation=form, max_steps=7)
    sol = caught.value.solution
    assert sol.t.size == 8
    assert sol.lam.shape == (1, 8)
    assert np.isfinite(sol.lam).all()
    again = pickle.loads(pickle.dumps(caught.value))
    assert np.array_equal(again.solution.lam, sol.lam)


# --- exceptions, interrupts and regions that cannot be evaluated -----------------------------------------------------


class Boom(Exception):
    pass


def until(function, error, limit):
    def wrapped(t, q, *rest):
        if t > limit:
            raise error
        return function(t, q, *rest)

    return wrapped


@pytest.mark.parametrize("form", ["auto", "ggl", "index1"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_exceptions_at_the_start_arrive_unchanged(name, form):
    with pytest.raises(Boom, match="boom") as caught:
        solve(pendulum(**{name: until(FUNCTIONS[name], Boom("boom"), -1.0)}), formulation=form)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "wrapped"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["mass", "force", "constraint_jacobian"])
def test_exceptions_in_mid_run_arrive_unchanged(name, form):
    with pytest.raises(Boom) as caught:
        solve(pendulum(**{name: until(FUNCTIONS[name], Boom("boom"), 0.5)}), formulation=form)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "wrapped"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["mass", "force", "constraint_jacobian"])
def test_an_interrupt_carries_what_was_computed(name, form):
    system = pendulum(**{name: until(FUNCTIONS[name], KeyboardInterrupt, 0.5)})
    sol = computed_until(lambda: solve(system, formulation=form))
    assert sol.status == "interrupted"
    assert not sol.success
    assert 0.3 < sol.t[-1] <= 0.5
    assert "Interrupted at t = 0.4" in sol.message


def test_an_interrupt_from_the_keyboard():
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))

    def force(t, q, v):
        if t > 1.0 and timer.ident is None:  # under way, however long compilation took
            timer.start()
        return FUNCTIONS["force"](t, q, v)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    try:
        sol = computed_until(lambda: solve(pendulum(force=force), t_span=(0.0, 1e3), max_steps=10**8))
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert sol.status == "interrupted"
    assert sol.lam.shape == (1, sol.t.size)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["mass", "force"])
def test_regions_that_cannot_be_evaluated_stop_the_run_in_front_of_them(name, form):
    with pytest.raises(IntegrationError, match=r"Stopped at t = 0\.5.*could not be evaluated") as caught:
        solve(pendulum(**{name: until(FUNCTIONS[name], daedal.Unevaluable("too late"), 0.5)}), formulation=form)
    assert caught.value.solution.t[-1] == pytest.approx(0.5, abs=1e-6)
    assert np.isfinite(caught.value.solution.lam).all()


@numba.njit
def late_failure(t, q, v):
    if t > 0.5:
        raise ValueError("too late")
    v[:] = 0.0
    return np.array([0.0, -9.81])


@pytest.mark.parametrize("form", ["auto", "ggl"])
def test_exceptions_of_compiled_functions_arrive(form):
    with pytest.raises(ValueError, match="too late"):
        solve(pendulum(force=late_failure), formulation=form)
    assert solve(pendulum(force=late_failure), t_span=(0.0, 0.4), formulation=form).success


@pytest.mark.parametrize(
    ("force", "message"),
    [
        (numba.njit(lambda t, q, v: None), "must return a float array of shape"),
        (numba.njit(lambda t, q, v: (0.0, 1.0)), "must return a float array of shape"),
        (numba.njit(lambda t, q, v: np.zeros(1)), r"shape \(1,\); expected \(2,\)"),
    ],
)
def test_results_of_compiled_functions(force, message):
    with refused(message):
        solve(pendulum(force=force), compile="never")


# --- singular configurations -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crank():
    return library.get("crank_slider", l1=1, l2=1, phi1=1.0, rate=5.0)


@pytest.mark.parametrize(
    ("form", "rtol"),
    [
        ("ggl", 1e-6),
        ("index1", 1e-6),
        ("state_space", 1e-6),
        ("minimal_extension", 1e-6),
        ("projected_invariants", 1e-6),
    ],
)
def test_a_crank_through_its_singular_position(crank, form, rtol):
    message = r"Stopped at t = 0\.13155.*singular configuration, in which the gradient of 'slider' vanishes.*Remedy"
    with pytest.raises(IntegrationError, match=message) as caught:
        daedal.solve(crank.problem, crank.t_span, crank.initial, formulation=form, rtol=rtol)
    sol = caught.value.solution
    assert sol.t[-1] < 0.1316
    assert sol.t.size > 5
    assert np.isfinite(sol.lam).all()
    assert sol.drift["position"] < 1e-10


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_the_steps_of_an_explicit_method_lead_over_the_singular_position_of_a_crank(crank, rtol):
    """With rods of equal length the slider passes the axle: its way is 2 cos(angle), and the energy is kept."""
    sol = daedal.solve(crank.problem, crank.t_span, crank.initial, formulation="projection", rtol=rtol, atol=rtol)
    [note] = [note for note in sol.notes if "passed a singular configuration" in note]
    assert "t = 0.1315" in note and "'slider'" in note and "times later" in note
    angle = sol.q[2]
    np.testing.assert_allclose(sol.q[3], 3.0 * sol.q[0], atol=1e-9)
    np.testing.assert_allclose(sol.q[5], -angle, atol=1e-9)  # the rod does not fold back on the crank


# --- no freedom, no constraints, time, scales ------------------------------------------------------------------------


@pytest.mark.parametrize("form", list(daedal.mechanics.formulations.FORMULATIONS))
def test_every_formulation_takes_a_system_without_constraints(form):
    sol = solve(MechanicalSystem(1.0, lambda t, q, v: -q, n_q=1), initial=(1.0, 0.0), formulation=form)
    assert sol.q[0, -1] == pytest.approx(np.cos(1.0), abs=2e-3)
    assert sol.lam.shape == (0, sol.t.size)
    assert not np.any(sol.reaction)


@pytest.mark.parametrize("form", ["auto", "ggl", "index1", "minimal_extension"])
def test_a_motion_that_is_prescribed_altogether(form):
    system = MechanicalSystem(
        1.0, lambda t, q, v: [0.0], lambda t, q: [q[0] - np.sin(t)], n_q=1, n_constraints=1, constraint_names=["drive"]
    )
    sol = solve(system, initial=([0.0], [1.0]), formulation=form)
    assert sol.q[0, -1] == pytest.approx(np.sin(1.0), abs=1e-10)
    assert sol.lam[0, -1] == pytest.approx(np.sin(1.0), abs=1e-5)


@pytest.mark.parametrize("form", ["state_space", "essential"])
def test_no_degree_of_freedom_leaves_no_state_space(form):
    system = MechanicalSystem(1.0, lambda t, q, v: [0.0], lambda t, q: [q[0] - 1.0], n_q=1, n_constraints=1)
    with refused("leave no degree of freedom"):
        solve(system, initial=([1.0], [0.0]), formulation=form)


@pytest.mark.parametrize("form", ["auto", "ggl", "state_space"])
def test_time_may_run_backward(form, reference):
    sol = solve(t_span=(0.0, -1.0), formulation=form)
    assert sol.t[-1] == -1.0
    assert sol.q[:, -1] == pytest.approx(reference, abs=1e-4)
    assert sol(-0.5).lam.shape == (1,)


@pytest.mark.parametrize("form", ["auto", "ggl"])
@pytest.mark.parametrize("length", [1e-12, 1e-300])
def test_short_intervals(form, length):
    sol = solve(t_span=(0.0, length), formulation=form)
    assert sol.t[-1] == length
    assert sol.v[1, -1] == pytest.approx(-GRAVITY * length, rel=1e-6)


@pytest.mark.parametrize("form", ["auto", "ggl"])
@pytest.mark.parametrize(("size", "factor"), [(1e-9, 1.0), (1e-9, 1e8), (1e9, 1e8), (1e9, 1e-8)])
def test_units_and_factors_of_constraints(form, size, factor, reference):
    system = pendulum(
        force=lambda t, q, v: [0.0, -GRAVITY * size],
        constraint=lambda t, q: [factor * (q[0] ** 2 + q[1] ** 2 - size**2)],
    )
    sol = solve(system, initial=([size, 0.0], [0.0, 0.0]), formulation=form, atol=1e-9 * size)
    assert sol.q[:, -1] / size == pytest.approx(reference, abs=1e-4)
    assert sol.drift["position"] < 1e-14 * factor * size**2


# --- events ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (lambda t, q, v: None, r"events\[0\] must return a number other than NaN.*returned None at t = 0"),
        (lambda t, q, v: np.nan, r"events\[0\].*returned nan at t = 0"),
        (lambda t, q, v: 1j, r"events\[0\].*returned 1j"),
        (lambda t, q, v: np.nan if t > 0.5 else 1.0, r"events\[0\].*returned nan at t = 0\.5"),
        (lambda t: 1.0, r"events\[0\] takes 1 argument;"),
        (5, "events must be a function, an Event or a list"),
    ],
)
def test_events(event, message):
    with refused(message):
        solve(events=event)


@pytest.mark.parametrize("form", ["auto", "ggl", "state_space"])
def test_events_see_positions_and_velocities(form):
    def event(t, q, v):
        height = q[1] + 0.5
        q[:] = 99.0  # a copy: harmless
        return height

    sol = solve(events=daedal.Event(event, terminal=True), formulation=form)
    assert sol.status == "event"
    assert sol.events[0].y[1] == pytest.approx(-0.5, abs=1e-6)
    assert sol.t[-1] == sol.events[0].t


@pytest.mark.parametrize("form", ["auto", "ggl", "state_space"])
def test_exceptions_and_interrupts_in_events(form):
    def event(error):
        late = until(lambda t, q, v: 1.0, error, 0.5)
        return lambda t, q, v: late(t, q, v)

    with pytest.raises(Boom):
        solve(events=event(Boom("late")), formulation=form)
    sol = computed_until(lambda: solve(events=event(KeyboardInterrupt), formulation=form))
    assert sol.status == "interrupted"
    assert sol.t[-1] > 0.3


# --- solutions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("t", "message"),
    [
        (2.0, r"t must lie in the integrated interval \[0.0, 1.0\]"),
        (np.nan, "t must lie in the integrated interval"),
        ("a", "t must be a number or a vector"),
        (1j, "t must be a number or a vector"),
        ([[0.1, 0.2]], "t must be a number or a vector"),
    ],
)
def test_times_of_a_solution(t, message):
    with refused(message):
        solve()(t)


def test_asking_a_solution_for_what_it_does_not_have():
    sol = solve(dense_output=False)
    with refused("the solution has no dense output"):
        sol(0.5)
    with pytest.raises(KeyError, match="no variable 'z'; known: x, y, x', y'"):
        sol["z"]
    assert solve()([]).q.shape == (2, 0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("t_span", [(0.0, 1.0), (0.0, -1.0)])
def test_a_stored_solution_gives_the_same_without_its_functions(form, t_span):
    sol = solve(t_span=t_span, formulation=form, t_eval=t_span)
    kept = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(sol))))
    for name in ("t", "q", "v", "a", "lam", "reaction", "yp"):
        assert np.array_equal(getattr(kept, name), getattr(sol, name)), name
    assert repr(kept) == repr(sol)
    times = np.linspace(*t_span, 41)
    here, there = sol(times), kept(times)
    assert there.q == pytest.approx(here.q, abs=1e-5)
    assert there.lam == pytest.approx(here.lam, abs=1e-3)
    assert there.a == pytest.approx(here.a, abs=1e-2)
    assert kept(t_span[1]).lam == pytest.approx(sol.lam[:, -1], abs=1e-9)


def test_the_solution_of_an_integration_that_never_started_can_be_stored():
    with pytest.raises(IntegrationError) as caught:
        solve(pendulum(force=lambda t, q, v: [0.0, -GRAVITY] if t <= 0.0 else [np.nan, np.nan]))
    assert pickle.loads(pickle.dumps(caught.value)).solution.lam.shape == (1, 1)


def test_threads_may_solve_the_same_system():
    system, found = pendulum(), {}

    def work(form):
        found[form] = solve(system, formulation=form).q[:, -1]

    threads = [threading.Thread(target=work, args=(form,)) for form in FORMS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    for form in FORMS:
        assert np.array_equal(found[form], solve(formulation=form).q[:, -1]), form


def test_exceptions_stay_in_their_thread():
    found = {}

    def work(i):
        try:
            found[i] = solve(pendulum(force=until(FUNCTIONS["force"], Boom(i), 0.5 if i == 1 else 9.0))).status
        except Boom as error:
            found[i] = error.args[0]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert found == {0: "finished", 1: 1, 2: "finished"}


def test_a_force_may_solve_another_problem(reference):
    inner = pendulum()

    def force(t, q, v):
        if t == 0.0:
            solve(inner, t_span=(0.0, 0.01))
        return [0.0, -GRAVITY]

    assert solve(pendulum(force=force)).q[:, -1] == pytest.approx(reference, abs=1e-5)


# --- further variables, velocity constraints -------------------------------------------------------------------------


def test_algebraic_variables():
    given = {"n_w": 1, "force": lambda t, q, v, w: [w[0], -GRAVITY]}
    sol = solve(pendulum(algebraic=lambda t, q, v, w: [w[0] - q[0]], **given))
    assert sol.w[0] == pytest.approx(sol.q[0], abs=1e-12)
    with inconsistent("algebraic equations do not determine w at t = 0"):
        solve(pendulum(algebraic=lambda t, q, v, w: [q[0]], **given))
    with refused("algebraic returned None"):
        solve(pendulum(algebraic=lambda t, q, v, w: None, **given))


def test_first_order_states():
    system = pendulum(n_r=1, state_rate=lambda t, q, v, r: -r, force=lambda t, q, v, r: [0.0, -GRAVITY])
    assert solve(system, initial=(*START, [1.0])).r[0, -1] == pytest.approx(np.exp(-1.0), abs=1e-5)
    with refused(r"r0 has shape \(2,\); expected \(1,\)"):
        solve(system, initial=(*START, [1.0, 2.0]))
    with refused(r"atol has shape \(4,\); expected a number or \(5,\)"):
        solve(system, atol=np.full(4, 1e-8))


def test_forces_that_undo_the_reaction():
    def force(t, q, v, lam):
        return [2.0 * q[0] * lam[0], 2.0 * q[1] * lam[0] - GRAVITY]

    with inconsistent("multipliers of 'rod' are not determined at t = 0"):
        solve(pendulum(force=force, force_uses_multipliers=True))


def skate(**changes):
    given = {
        "mass": 1.0,
        "force": lambda t, q, v: np.zeros(3),
        "velocity_constraint": lambda t, q, v: [np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]],
        "n_q": 3,
        "n_velocity_constraints": 1,
        "names": ["x", "y", "angle"],
        "constraint_names": ["edge"],
    }
    return MechanicalSystem(**(given | changes))


def test_velocity_constraints():
    with inconsistent(r"'edge' \(-1\)"):
        solve(skate(), initial=(np.zeros(3), [1.0, 1.0, 1.0]))
    for name, value in [("velocity_jacobian", [1.0]), ("velocity_bias", None), ("velocity_constraint", [1.0, 2.0])]:
        with refused(f"{name} returned"):
            solve(skate(**{name: lambda *arguments, value=value: value}), initial=(np.zeros(3), [1.0, 0.0, 1.0]))


# --- linear problems -------------------------------------------------------------------------------------------------


def hessenberg(**changes):
    given = {
        "A": [[0.0, 1.0], [0.0, 0.0]],
        "B": [[0.0], [1.0]],
        "C": [[0.0, 1.0]],
        "q": [0.0, 0.0],
        "r": lambda t: np.array([-np.cos(t)]),
        "n_x": 2,
        "n_y": 1,
    }
    return daedal.HessenbergDAE(**(given | changes))


@pytest.mark.parametrize("value", [None, "a", 1j, object(), np.ones((3, 3)), np.nan])
@pytest.mark.parametrize("name", ["A", "B", "C", "q", "r"])
def test_constant_coefficients_of_a_hessenberg_dae(name, value):
    with refused(f"{name} (must be an array|has shape|holds values)"):
        hessenberg(**{name: value})


def test_a_transposed_coefficient_is_refused():
    with refused(r"B has shape \(2, 3\); expected \(3, 2\)"):
        daedal.HessenbergDAE(np.eye(3), np.ones((2, 3)), np.ones((2, 3)), np.zeros(3), np.zeros(2), n_x=3, n_y=2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": 0}, "order must be an integer of at least 1"),
        ({"n_y": 3}, "n_y = 3 constraints on n_x = 2 unknowns"),
        ({"names": ["a", "a"]}, "names must be unique"),
        ({"C_derivatives": 5}, "C_derivatives must be a function"),
    ],
)
def test_arguments_of_a_hessenberg_dae(changes, message):
    with refused(message):
        hessenberg(**changes)


def test_hessenberg_initial_values_and_results():
    for initial in (None, [1.0], [np.nan, 1.0], "ab"):
        with refused("initial"):
            daedal.solve(hessenberg(), (0.0, 1.0), initial)
    with inconsistent("violate the constraint"):
        daedal.solve(hessenberg(), (0.0, 1.0), [0.0, 3.0])
    with refused(r"r has shape \(3,\); expected \(1,\)"):
        daedal.solve(hessenberg(r=lambda t: np.ones(3)), (0.0, 1.0), [0.0, 1.0])
    for form in ("loetstedt", "minimal_extension", "fuehrer_leimkuhler"):
        with refused("(defined for|apply to|require) mechanical systems|position constraints"):
            daedal.solve(hessenberg(), (0.0, 1.0), [0.0, 1.0], formulation=form)


def test_hessenberg_exceptions_and_storing():
    late = until(lambda t, _: np.array([-np.cos(t)]), Boom("late"), 0.7)
    with pytest.raises(Boom):
        daedal.solve(hessenberg(r=lambda t: late(t, None)), (0.0, 1.0), [0.0, 1.0])
    late = until(lambda t, _: np.array([-np.cos(t)]), KeyboardInterrupt, 0.7)
    sol = computed_until(lambda: daedal.solve(hessenberg(r=lambda t: late(t, None)), (0.0, 1.0), [0.0, 1.0]))
    assert sol.status == "interrupted"
    sol = daedal.solve(hessenberg(), (0.0, 1.0), [0.0, 1.0])
    kept = pickle.loads(pickle.dumps(sol))
    assert np.array_equal(kept.yp, sol.yp)
    assert np.array_equal(kept.lam, sol.lam)


def linear(**changes):
    given = {
        "A": [[0.0]],
        "B": [[-1.0]],
        "C": [[1.0]],
        "D": [[0.0]],
        "p": lambda t: np.sin([t]),
        "q": lambda t: -np.cos([t]),
        "n_x": 1,
        "n_y": 1,
    }
    return daedal.LinearDAE(**(given | changes))


@pytest.mark.parametrize("name", ["A", "B", "C", "D", "p", "q"])
def test_coefficients_of_a_linear_dae(name):
    with refused(rf"{name} has shape \(3, 3\)"):
        linear(**{name: np.ones((3, 3))})
    with refused(rf"{name} has shape \(2,\)"):
        daedal.solve(linear(**{name: lambda t: np.ones(2)}), (0.0, 1.0), ([1.0], None))


def test_solving_a_linear_dae():
    with refused("initial must be a pair"):
        daedal.solve(linear(), (0.0, 1.0), None)
    with refused("x0 is not finite"):
        daedal.solve(linear(), (0.0, 1.0), ([np.nan], None), formulation="stabilised_reduction")
    with inconsistent("do not satisfy the equations at t = 0"):
        daedal.solve(linear(), (0.0, 1.0), ([3.0], None), formulation="stabilised_reduction")
    for form in ("ggl", 5):
        with refused("unknown formulation .* for a linear DAE"):
            daedal.solve(linear(), (0.0, 1.0), ([1.0], None), formulation=form)
    with refused("C L is singular at t = 0"):
        daedal.solve(linear(C=[[0.0]]), (0.0, 1.0), ([1.0], None), formulation="stabilised_reduction")
