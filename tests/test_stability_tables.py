"""What Ascher and Petzold (1991) claim around their Tables 4.1 to 4.8; the tables are in the reproduction book."""

import math

import numpy as np
import pytest

import daedal
from daedal import library
from daedal.formulations import GGL, Baumgarte, CoordinateProjection, Index2, ProjectedInvariants, StateSpace
from daedal.methods import DASSL, RK4
from daedal.studies.reproduce.tables_stability import DIRECTIONS, states

E = math.e
UNIT = DIRECTIONS["unit"]
BLOCKS = [(nu, kappa) for kappa in (0.0, 1.0, 2.0) for nu in (1.0, 100.0, 1000.0)]


def run(model, formulation, h=0.01, method=None):
    """Fixed steps, backward Euler unless `method` is given; values as integrated are in ``sol.raw``."""
    method = DASSL(max_order=1) if method is None else method
    return daedal.solve(
        model.problem, model.t_span, model.initial, formulation=formulation, method=method, fixed_step=h
    )


def largest_error(sol):
    """At t = 1, where all three examples have the solution (e, .., e)."""
    return np.max(np.abs(states(sol)[:, -1] - E))


# --- Examples 1 and 2 ---------------------------------------------------------------------------------------------


def test_the_state_space_form_of_example_1_stays_small_between_the_poles():
    sol = run(library.stability_example1(), StateSpace([[1.0, 0.0]]))
    assert np.max(np.abs(sol.y - np.exp(sol.t))) == pytest.approx(5.7e-4, rel=0.01)


@pytest.mark.parametrize(
    "nu, state_space, direct",
    [(1.0, 6.29e-3, 8.6e-3), (10.0, 1.34e-3, 2.7e-3), (100.0, 1.354e-4, 1.38e-4), (1e3, 1.355e-5, 9.2e73)]
    + [(1e4, 1.355e-6, math.inf), (1e5, 1.355e-7, math.inf)],
)
def test_accuracy_improves_with_nu_where_a_stiff_method_stays_one(nu, state_space, direct):
    model = library.stability_example2(nu)
    assert largest_error(run(model, StateSpace([[1.0, 0.0]]))) == pytest.approx(state_space, rel=4e-3)
    nearly = min(0.12, 0.6 / nu) + 4e-4  # the forms differ by a part that falls with nu; four digits are printed
    assert largest_error(run(model, ProjectedInvariants())) == pytest.approx(state_space, rel=nearly)
    error = largest_error(run(model, Index2()))
    assert error > 1e100 if direct == math.inf else error == pytest.approx(direct, rel=0.01)


@pytest.mark.parametrize(
    "nu, error", [(100.0, 1.4e-4), (190.0, 7.6e-6), (210.0, 6.2e-6), (250.0, 2.7e-5), (300.0, 5.0e-3), (400.0, 3.1e20)]
)
def test_the_direct_form_has_the_limit_of_forward_euler(nu, error):
    model = library.stability_example2(nu)
    assert largest_error(run(model, Index2())) == pytest.approx(error, rel=0.02)
    assert 3e-5 < largest_error(run(model, ProjectedInvariants())) < 1.4e-4


def test_enough_steps_make_the_direct_form_stable():
    model = library.stability_example2()
    errors = [largest_error(run(model, Index2(), 1.0 / steps)) for steps in (400, 500, 1000)]
    assert 1e-4 < errors[0] < 1e-2
    assert errors[1:] == pytest.approx([2.7e-9, 1.36e-6], rel=0.02)


@pytest.mark.parametrize("order, cured", [(2, 8.998e-8), (3, 6.722e-10)])
def test_bdf_of_higher_order_fails_and_is_cured_in_the_same_way(order, cured):
    def direct(t):
        return np.exp(t) * np.array([1.0, 1.0, -1.0 / (2.0 - t)])

    def projected(t):
        return direct(t) * [1.0, 1.0, 0.0]  # mu vanishes

    model = library.stability_example2()
    assert largest_error(run(model, Index2(), method=DASSL(max_order=order, starting_values=direct))) > 1e80
    sol = run(model, ProjectedInvariants(), method=DASSL(max_order=order, starting_values=projected))
    assert largest_error(sol) == pytest.approx(cured, rel=1e-3)


@pytest.mark.parametrize("gamma, error", [(1.0, 2.0e-10), (100.0, 4.0e-9), (270.0, 3.2e-5), (290.0, 6.7e3)])
def test_rk4_limits_the_gamma_of_baumgarte(gamma, error):
    """Its real stability interval is 2.785 long."""
    sol = run(library.stability_example2(nu=1.0), Baumgarte(gamma=gamma), method=RK4())
    assert largest_error(sol) == pytest.approx(error, rel=0.03)


# --- Example 3 ----------------------------------------------------------------------------------------------------


def test_the_unstabilised_form_divides_by_round_off_in_step_99():
    """det = [h + h nu (kappa - 1) - (2 - t)]/nu vanishes at t = 0.99 for nu = 100, kappa = 2 (Table 4.7)."""
    try:
        sol = run(library.stability_example3(100.0, 2.0), Index2())
        assert np.max(np.abs(states(sol)[2:, -1] - E)) > 1e12
    except daedal.IntegrationError as failure:
        assert failure.solution.t[-1] == pytest.approx(0.98)
        assert 5.0 < np.max(np.abs(failure.solution.raw.y[:2, -1])) < 70.0


@pytest.mark.parametrize("direction, before", [("GT", 22.0), (UNIT, 1340.0)])
def test_table_4_8_looks_harmless_only_at_the_last_step(direction, before):
    sol = run(library.stability_example3(100.0, 2.0), GGL(direction))
    error = np.max(np.abs(states(sol)[:2] - np.exp(sol.raw.t)), axis=0)
    assert error[-1] < 0.25
    assert error[-2] == pytest.approx(before, rel=0.05)


@pytest.mark.parametrize("nu, kappa", BLOCKS)
def test_projection_with_the_mass_matrix_is_that_of_the_multiplier_direction(nu, kappa):
    """A step of the underlying ODE projected with W = M is backward Euler on projected invariants with D = B."""
    model = library.stability_example3(nu, kappa)
    projected, invariants = run(model, CoordinateProjection("M", 1)), run(model, ProjectedInvariants(1, "B"))
    assert states(projected)[:, -1] == pytest.approx(states(invariants)[:, -1], rel=1e-9 if nu < 1000.0 else 1e-7)


@pytest.mark.parametrize("nu, kappa", BLOCKS)
def test_euclidean_projection_is_that_of_the_constraint_direction(nu, kappa):
    model = library.stability_example3(nu, kappa)
    projected, invariants = run(model, CoordinateProjection("I", 1)), run(model, ProjectedInvariants(1, "CT"))
    assert states(projected) == pytest.approx(states(invariants), rel=1e-9)


@pytest.mark.parametrize("nu, kappa", BLOCKS)
def test_stabilised_index_2_through_b_is_projected_invariants_through_b(nu, kappa):
    """Their right-hand sides differ by a vector in the range of B, which the multipliers absorb."""
    model = library.stability_example3(nu, kappa)
    stabilised, invariants = run(model, GGL("B")), run(model, ProjectedInvariants(2, "B"))
    assert states(stabilised)[:, -1] == pytest.approx(states(invariants)[:, -1], rel=1e-6)


@pytest.mark.parametrize("kappa", [0.0, 1.0, 2.0])
def test_projected_invariants_through_the_constraint_never_explode(kappa):
    for form in (
        ProjectedInvariants(1),
        ProjectedInvariants(2),
        ProjectedInvariants(1, UNIT),
        CoordinateProjection("I", 1),
        CoordinateProjection("I", 2),
        StateSpace([[1.0, 0.0]]),
        StateSpace([[0.0, 1.0]]),
        Baumgarte(gamma=0.0),
    ):
        sol = run(library.stability_example3(1000.0, kappa), form)
        assert np.max(np.abs(states(sol) - np.exp(sol.t))) < 0.025, form


@pytest.mark.parametrize("kappa", [0.0, 1.0, 2.0])
def test_projection_along_the_multiplier_direction_explodes(kappa):
    model = library.stability_example3(1000.0, kappa)
    for form in (ProjectedInvariants(1, "B"), CoordinateProjection("M", 1)):
        assert largest_error(run(model, form)) > 1e70, form


@pytest.mark.parametrize(
    "nu, kappa, error",
    [
        (1.0, 1.0, 5.8e-10),
        (100.0, 0.0, 6.5e-5),
        (100.0, 1.0, 1.4e-5),
        (100.0, 2.0, 4.4e-6),
        (1000.0, 0.0, math.inf),
        (1000.0, 1.0, math.inf),
        (1000.0, 2.0, 4.5e-4),
    ],
)
def test_an_explicit_method_with_baumgarte_serves_where_the_coefficients_are_slow(nu, kappa, error):
    value = largest_error(run(library.stability_example3(nu, kappa), Baumgarte(gamma=1.0), method=RK4()))
    assert value > 1e100 if error == math.inf else value == pytest.approx(error, rel=0.04)


@pytest.mark.parametrize(
    "example, nu, error",
    [(2, 1.0, 2.0e-10), (1, 1.0, 7.5e-11), (1, 1000.0, math.inf), (2, 100.0, 4.5e-6), (2, 1000.0, math.inf)],
)
def test_the_same_on_the_first_order_examples(example, nu, error):
    model = library.get(f"stability_example{example}", nu=nu)
    value = largest_error(run(model, Baumgarte(gamma=1.0), method=RK4()))
    assert value > 1e100 if error == math.inf else value == pytest.approx(error, rel=0.03)


# --- nonlinear systems by backward Euler --------------------------------------------------------------------------


def double_pendulum_in_cartesian_coordinates(rates=(0.0, 0.0)):
    """Two unit masses on unit rods, angles 0.7 and 1.2 from the downward vertical, with the given rates."""

    def constraint(t, q):
        return np.array([q[0] ** 2 + q[1] ** 2 - 1.0, (q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 1.0])

    system = daedal.MechanicalSystem(1.0, lambda t, q, v: [0.0, -9.81, 0.0, -9.81], constraint, n_q=4, n_constraints=2)
    first, second = np.array([math.sin(0.7), -math.cos(0.7)]), np.array([math.sin(1.2), -math.cos(1.2)])
    v1, v2 = (rate * np.array([-rod[1], rod[0]]) for rate, rod in zip(rates, (first, second), strict=True))
    return system, (np.concatenate([first, first + second]), np.concatenate([v1, v1 + v2]))


# (q, v) at t = 0.5, from the equations of the angles by Taylor series in 30-digit arithmetic
PENDULUM_AT_HALF = (
    *(0.354951918909609732, -0.934884557184674988, 0.762937195335723263, -1.84787306435193815),
    *(-1.01645963628934477, -0.385923904317735367, -3.71032165266516228, -1.58972442401424892),
)


@pytest.mark.parametrize(
    "form, position, velocity",
    [
        (Baumgarte(gamma=0.0), 2.312e-2, 1.097e-1),
        (Baumgarte(gamma=1.0), 2.122e-2, 9.154e-2),
        (Baumgarte(gamma=10.0), 1.352e-2, 7.094e-2),
        (Index2(), 1.504e-2, 5.558e-2),
        (GGL(), 9.062e-3, 5.493e-2),
        (ProjectedInvariants(2), 9.062e-3, 5.493e-2),
        (ProjectedInvariants(1), 1.096e-2, 9.345e-2),
    ],
)
def test_backward_euler_on_the_double_pendulum(form, position, velocity):
    system, initial = double_pendulum_in_cartesian_coordinates()
    options = {"formulation": form, "method": DASSL(max_order=1)}
    errors = []
    for h in (0.01, 0.005):
        sol = daedal.solve(system, (0.0, 0.5), initial, fixed_step=h, **options)
        errors.append(np.abs(states(sol)[:, -1] - PENDULUM_AT_HALF))
    assert np.max(errors[0][:4]) == pytest.approx(position, rel=5e-4)
    assert np.max(errors[0][4:]) == pytest.approx(velocity, rel=5e-4)
    assert np.max(errors[1]) == pytest.approx(0.5 * np.max(errors[0]), rel=0.12)


# q at t = 2 for rates 3 and 8 at the start, in the same way
TUMBLING_PENDULUM_AT_2 = (0.898260130122753968, 0.439464149427291862, 0.757297744070021974, 1.4294791016973677)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["lu", "qr", "svd"])
@pytest.mark.parametrize("method", ["dopri5", "dassl"])
def test_state_space_restarts_on_the_double_pendulum(coordinates, method):
    """Both rods turn over; a chart serves for about a quarter of a turn."""
    system, initial = double_pendulum_in_cartesian_coordinates((3.0, 8.0))
    options = {"method": method, "rtol": 1e-8, "atol": 1e-8}
    sol = daedal.solve(system, (0.0, 2.0), initial, formulation=StateSpace(coordinates), **options)
    np.testing.assert_allclose(sol.q[:, -1], TUMBLING_PENDULUM_AT_2, atol=1e-5)
    coarse = daedal.solve(
        system, (0.0, 2.0), initial, formulation=StateSpace(coordinates), t_eval=np.linspace(0.0, 2.0, 5), **options
    )
    np.testing.assert_allclose(coarse.q, sol(coarse.t).q, atol=1e-5)


def test_a_chart_that_is_never_left_breaks_down():
    system, initial = double_pendulum_in_cartesian_coordinates((3.0, 8.0))
    with pytest.raises(daedal.IntegrationError) as failure:
        daedal.solve(
            system, (0.0, 2.0), initial, formulation=StateSpace("qr", restart=1e300), method=RK4(), fixed_step=0.01
        )
    assert failure.value.solution.t[-1] < 1.0


@pytest.mark.parametrize("form", [Index2(), GGL(), GGL("B"), ProjectedInvariants(2), ProjectedInvariants(1)])
def test_backward_euler_on_the_knife_edge(form):
    model = library.knife_edge()
    error = np.abs(states(run(model, form))[:, -1] - model.reference.y)
    assert [np.max(error[:3]), np.max(error[3:])] == pytest.approx([1.485e-2, 6.376e-2], rel=5e-4)


@pytest.mark.slow
def test_holonomic_and_nonholonomic_constraints_together():
    """GGL and projected invariants impose the same levels; halving the step halves the error."""
    model = library.knife_edge_on_paraboloid()
    errors = {}
    for h in (0.01, 0.005):
        for form in (GGL(), ProjectedInvariants(2)):
            errors[h, form.name] = np.max(np.abs(states(run(model, form, h))[:, -1] - model.reference.y))
    assert errors[0.01, "ggl"] == pytest.approx(errors[0.01, "projected_invariants"], rel=1e-3)
    assert errors[0.005, "ggl"] == pytest.approx(0.5 * errors[0.01, "ggl"], rel=0.1)
