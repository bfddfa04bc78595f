"""Problems of higher index, reduced by dummy derivatives: solve takes them as they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal import library
from daedal.driver import reduced_plan as driver
from daedal.driver.any_index import UnsettledPlan
from daedal.driver.low_index import has_low_index
from daedal.driver.request import Request, checked_settings
from daedal.driver.solver import make_plan
from daedal.index.reduction.reduced_problem import ReducedProblem
from daedal.index.reduction.selection import SingularBlock, lift
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.system_equations import SystemEquations
from residual_models import as_residual, start_of
from scrambled_problems import scrambled
from soak import index_two
from tiers import sampled

NAMES = ["x", "y", "u", "v", "lam"]
SPEED = 2.5  # at the lowest point: over the top
START = [0.0, -1.0, SPEED, 0.0, 1.0 + SPEED**2]
REDUCED = {"formulation": "dummy_derivatives"}


def pendulum(t, s, sp):
    x, y, u, v, lam = s
    return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + 1.0, x**2 + y**2 - 1.0]


def swing(**options):
    problem = daedal.ImplicitDAE(pendulum, 5, names=NAMES)
    return daedal.solve(problem, (0.0, 10.0), (START, None), **(REDUCED | options))


def mechanism():
    return daedal.MechanicalSystem(
        np.eye(2),
        lambda t, q, v: np.array([0.0, -1.0]),
        lambda t, q: np.array([0.5 * (q[0] ** 2 + q[1] ** 2 - 1.0)]),
        n_q=2,
        n_constraints=1,
        constraint_jacobian=lambda t, q: np.array([[q[0], q[1]]]),
    )


@pytest.fixture(scope="module")
def reference():
    return daedal.solve(mechanism(), (0.0, 10.0), ([0.0, -1.0], [SPEED, 0.0]), rtol=1e-12, atol=1e-12)


def joint(k=2.0, link=1.3, motor=0.7):
    """A flexible joint whose link follows a path: index 5."""

    def residual(t, y, yp):
        q, w, theta, omega, torque = y
        spring = k * (q - theta)
        return [
            *[yp[0] - w, link * yp[1] + np.sin(q) + spring],
            *[yp[2] - omega, motor * yp[3] - spring - torque, q - np.sin(t)],
        ]

    return daedal.ImplicitDAE(residual, 5, names=["q", "w", "theta", "omega", "torque"])


# --- solutions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["radau", "dassl", "rosenbrock"])
@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8])
def test_pendulum_over_the_top(method, tol, reference):
    sol = swing(method=method, rtol=tol, atol=tol)
    x, y, u, v, lam = sol.y
    assert np.abs(x**2 + y**2 - 1.0).max() < 1e-14
    assert np.abs(x * u + y * v).max() < 1e-14
    assert np.abs(lam - (u**2 + v**2 - y)).max() < 1e-13  # the constraint differentiated twice
    np.testing.assert_allclose(sol.yp, [u, v, -lam * x, -lam * y - 1.0, -3.0 * v], atol=1e-12)  # lam' = -3 v
    assert np.abs(sol.y[:2, -1] - reference.q[:, -1]).max() < 300.0 * tol
    assert "index 3" in sol.message and "equation 4 twice" in sol.message
    assert sol.drift["constraint"] < 1e-14 and sol.drift["hidden"] < 1e-14


def test_selections_are_exchanged_on_the_way(monkeypatch, reference):
    seen = []
    select = driver.ReducedRunState._select
    monkeypatch.setattr(
        driver.ReducedRunState, "_select", lambda self, t, u: seen.append(select(self, t, u)) or seen[-1]
    )
    sol = swing(rtol=1e-8, atol=1e-8)
    assert 10 < sum(seen) < 40  # four times in each turn
    assert np.abs(sol.y[:2, -1] - reference.q[:, -1]).max() < 1e-6


@pytest.mark.parametrize(("method", "tol"), [("radau", 1e-4), ("radau", 1e-5), ("dassl", 1e-5)])
def test_without_the_watch_failures_lead_to_other_selections(monkeypatch, reference, method, tol):
    """At sharper tolerances it depends on round-off how close to the singularity of a selection steps lead."""
    monkeypatch.setattr(driver, "LIMIT", np.inf)
    problem = daedal.ImplicitDAE(pendulum, 5, names=NAMES)
    sol = daedal.solve(problem, (0.0, 3.0), (START, None), rtol=tol, atol=tol, method=method, **REDUCED)
    assert np.abs(sol.y[:2, -1] - reference(3.0).q).max() < 0.1  # where the selection is bad, errors are large
    assert sol.drift["constraint"] < 1e-14


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_constant_steps_have_the_order_of_the_method(order):
    """BDF of order k on the reduced problem, which has index 1; lam included."""
    problem, exact = daedal.ImplicitDAE(pendulum, 5), swing(rtol=1e-12, atol=1e-12, method="radau")(0.8)
    errors = []
    for steps in (160, 320):
        sol = daedal.solve(
            problem, (0.0, 0.8), (START, None), method="dassl", fixed_step=0.8 / steps, max_order=order, **REDUCED
        )
        errors.append(np.abs(sol.y[:, -1] - exact))
    np.testing.assert_allclose(np.log2(errors[0] / errors[1]), order, atol=0.35)


@pytest.mark.parametrize("method", ["auto", "dassl"])
def test_flexible_joint_of_index_5(method):
    start = [0.0, 1.0, 0.0, 0.0, 0.0]
    sol = daedal.solve(joint(), (0.0, 3.0), (start, None), method=method, correct_initial=True)
    q = np.sin(sol.t)
    theta = q + (np.sin(q) - 1.3 * q) / 2.0
    np.testing.assert_allclose(sol["q"], q, atol=1e-15)
    np.testing.assert_allclose(sol["theta"], theta, atol=1e-14)
    rate = -q * np.cos(q) - np.cos(sol.t) ** 2 * np.sin(q)  # (sin q)''
    np.testing.assert_allclose(sol["torque"], 0.7 * (-q + (rate + 1.3 * q) / 2.0) - 2.0 * (q - theta), atol=1e-13)
    assert "index 5" in sol.message and "equation 4 (4 times)" in sol.message


def test_reactor_of_index_3():
    """BCP section 1.3: concentration C prescribed, cooling T_C unknown."""
    k1, k2, k3, k4 = 1.0, 2.0, 4.0, 3.0

    def residual(t, s, sp):
        c, temperature, rate, cooling = s
        return [
            sp[0] - k1 * (2.0 - c) + rate,
            sp[1] - k1 * (1.0 - temperature) - k2 * rate + k3 * (temperature - cooling),
            rate - k3 * np.exp(-k4 / temperature) * c,
            c - 1.0 - 0.1 * np.sin(t),
        ]

    problem = daedal.ImplicitDAE(residual, 4, names=["C", "T", "R", "T_C"])
    sol = daedal.solve(problem, (0.0, 5.0), ([1.0, 2.0, 0.9, 1.0], None), correct_initial=True)
    c = 1.0 + 0.1 * np.sin(sol.t)
    rate = k1 * (2.0 - c) - 0.1 * np.cos(sol.t)
    np.testing.assert_allclose(sol["C"], c, rtol=1e-14)
    np.testing.assert_allclose(sol["R"], rate, rtol=1e-13)
    np.testing.assert_allclose(sol["T"], -k4 / np.log(rate / (k3 * c)), rtol=1e-13)
    assert "index 3" in sol.message


def test_loop_of_capacitors_with_a_controlled_source():
    """Two capacitors and a source v(t) in a loop, whose current drives another capacitor: index 2."""

    def residual(t, s, sp):
        v1, v2, current, w = s
        return [sp[0] - current, 2.0 * sp[1] - current + v2, v1 + v2 - np.sin(t), sp[3] + w - 3.0 * current]

    problem = daedal.ImplicitDAE(residual, 4, names=["v1", "v2", "i", "w"])
    sol = daedal.solve(problem, (0.0, 4.0), ([0.0, 0.0, 0.0, 0.0], None), rtol=1e-9, atol=1e-9, **REDUCED)
    # 3 v2' + v2 = cos t, v2(0) = 0
    v2 = (np.cos(sol.t) + 3.0 * np.sin(sol.t) - np.exp(-sol.t / 3.0)) / 10.0
    np.testing.assert_allclose(sol["v2"], v2, atol=1e-7)
    np.testing.assert_allclose(sol["v1"] + sol["v2"], np.sin(sol.t), atol=1e-15)
    assert "index 2" in sol.message and "2 degrees" in sol.message


def test_trajectory_of_index_3():
    model = library.tppc3()
    runs = [daedal.solve(model.problem, model.t_span, model.initial, rtol=rtol, atol=rtol) for rtol in (1e-6, 1e-9)]
    assert "dummy derivatives" in runs[0].message
    np.testing.assert_allclose(runs[0].y[:, -1], runs[1].y[:, -1], rtol=1e-5)


@pytest.mark.parametrize("name", ["seven_body", "car_axis", "crank_slider"])
@pytest.mark.parametrize("tol", [1e-4, 1e-8])
def test_mechanisms_as_residuals(name, tol):
    model = getattr(library, name)()
    system, n = model.problem, model.problem.n_q
    exact = daedal.solve(system, model.t_span, model.initial, rtol=1e-10, atol=1e-10)
    sol = daedal.solve(as_residual(system), model.t_span, start_of(model), rtol=tol, atol=tol, **REDUCED)
    error = np.abs(sol.y[:n, -1] - exact.q[:, -1]) / (1.0 + np.abs(exact.q[:, -1]))
    assert error.max() < 30.0 * tol
    assert sol.drift["constraint"] < 1e-12 and sol.drift["hidden"] < 1e-10


def test_semi_explicit_problem_with_unknown_multipliers(reference):
    problem = daedal.SemiExplicitDAE(
        lambda t, s, z: [s[2], s[3], -z[0] * s[0], -z[0] * s[1] - 1.0],
        lambda t, s, z: [s[0] ** 2 + s[1] ** 2 - 1],
        4,
        1,
    )
    sol = daedal.solve(problem, (0.0, 10.0), (START[:4], None), rtol=1e-8, atol=1e-8, **REDUCED)
    assert np.abs(sol.y[:2, -1] - reference.q[:, -1]).max() < 1e-6
    assert sol.z.shape == (1, sol.t.size)


def test_second_order_problem_is_told_in_x_and_its_derivatives():
    model = library.body_on_circle()
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-9, atol=1e-9, **REDUCED)
    assert isinstance(sol, daedal.SecondOrderSolution)
    np.testing.assert_allclose(sol.x[:2], [np.sin(sol.t), np.cos(sol.t)], atol=1e-8)
    np.testing.assert_allclose(sol.xp[:2], [np.cos(sol.t), -np.sin(sol.t)], atol=1e-8)
    np.testing.assert_allclose(sol.xpp[:2], -sol.x[:2], atol=1e-8)
    assert sol.drift["constraint"] < 1e-14 and sol.drift["hidden"] < 1e-14


def test_second_order_problem_of_index_5_needs_no_word():
    def residual(t, x, v, a):
        q, theta, torque = x
        return [1.3 * a[0] + np.sin(q) + 2.0 * (q - theta), 0.7 * a[1] - 2.0 * (q - theta) - torque, q - np.sin(t)]

    problem = daedal.SecondOrderDAE(residual, 3, names=["q", "theta", "torque"])
    stop = daedal.Event(lambda t, x, xp: xp[0], terminal=True, name="turns")
    sol = daedal.solve(problem, (0.0, 3.0), (np.zeros(3), None), events=stop)
    assert "index 5" in sol.message and abs(sol.t[-1] - np.pi / 2) < 1e-8
    q = np.sin(sol.t)
    np.testing.assert_allclose(sol.x[1], q + (np.sin(q) - 1.3 * q) / 2.0, atol=1e-14)
    with pytest.raises(daedal.InconsistentInitialError, match=r"q from 0\.1 to (0\b|\S+e-1\d)"):
        daedal.solve(problem, (0.0, 3.0), ([0.1, 0.0, 0.0], None))


def test_backwards_in_time():
    forth = swing(rtol=1e-9, atol=1e-9)
    problem = daedal.ImplicitDAE(pendulum, 5, names=NAMES)
    back = daedal.solve(problem, (10.0, 0.0), (forth.y[:, -1], None), rtol=1e-9, atol=1e-9, **REDUCED)
    np.testing.assert_allclose(back.y[:, -1], START, atol=1e-6)


# --- the same in other words ------------------------------------------------------------------------------------------


@settings(max_examples=4, deadline=None)
@given(st.permutations(range(5)), st.permutations(range(5)))
def test_order_of_equations_and_unknowns_does_not_matter(rows, columns):
    place = np.argsort(columns)

    def residual(t, s, sp):
        values = pendulum(t, [s[place[j]] for j in range(5)], [sp[place[j]] for j in range(5)])
        return [values[i] for i in rows]

    problem = daedal.ImplicitDAE(residual, 5)
    start = np.array(START)[columns]
    sol = daedal.solve(problem, (0.0, 2.0), (start, None), rtol=1e-9, atol=1e-9, method="radau", **REDUCED)
    np.testing.assert_allclose(sol.y[place, -1], swing(rtol=1e-9, atol=1e-9, method="radau")(2.0), atol=2e-7)


@pytest.mark.parametrize("length", [1e-9, 1e6])
def test_units_do_not_matter(length):
    """Lengths in other units, in other units for x and y; multipliers follow."""
    unit = np.array([length, 1e3 * length, length, 1e3 * length, 1e5])

    def residual(t, s, sp):
        return 1e-7 * np.array(pendulum(t, np.asarray(s) / unit, np.asarray(sp) / unit))

    problem = daedal.ImplicitDAE(residual, 5, names=NAMES)
    options = {"rtol": 1e-8, "method": "radau"}
    sol = daedal.solve(problem, (0.0, 10.0), (unit * START, None), atol=1e-8 * unit, **options, **REDUCED)
    plain = swing(atol=1e-8, **options)
    np.testing.assert_allclose(sol.y[:, -1] / unit, plain.y[:, -1], atol=1e-6)
    assert abs(sol.stats.steps - plain.stats.steps) < 0.2 * plain.stats.steps


# --- output and events ------------------------------------------------------------------------------------------------


def test_output_and_events_are_in_the_unknowns_of_the_user(reference):
    times = np.linspace(0.0, 10.0, 41)
    crossing = daedal.Event(lambda t, s, sp: s[0], direction=-1, name="x falls through 0")
    sol = swing(rtol=1e-9, atol=1e-9, t_eval=times, events=crossing)
    np.testing.assert_array_equal(sol.t, times)
    assert sol.y.shape == sol.yp.shape == (5, 41)
    assert np.abs(sol.y[0] ** 2 + sol.y[1] ** 2 - 1.0).max() < 1e-14
    np.testing.assert_allclose(sol(times), sol.y, atol=1e-6)
    np.testing.assert_allclose(sol.y[:2], np.array([reference(t).q for t in times]).T, atol=1e-6)
    assert len(sol.events) == 3
    for event in sol.events:
        assert abs(event.y[0]) < 1e-8 and event.y.shape == event.yp.shape == (5,)
        assert abs(event.y[1] - 1.0) < 1e-8  # it passes the top to the left
        np.testing.assert_allclose(event.yp[:2], event.y[2:4], atol=1e-12)


def test_terminal_event_and_monitoring():
    stop = daedal.Event(lambda t, s, sp: s[1], terminal=True, name="level", location="monitoring", delta=1e-6)
    sol = swing(rtol=1e-8, atol=1e-8, events=stop)
    assert sol.status == "event" and abs(sol.y[1, -1]) < 2e-6
    assert sol.dense.interval[1] == sol.t[-1]


def test_prepared_solver_with_other_parameters():
    def residual(t, s, sp, p):
        x, y, u, v, lam = s
        return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + p["g"], x**2 + y**2 - 1.0]

    solver = daedal.prepare(daedal.ImplicitDAE(residual, 5, params={"g": 1.0}), rtol=1e-9, atol=1e-9, **REDUCED)
    for g in (1.0, 2.0, 0.5):
        sol = solver.solve((0.0, 2.0), (START, None), params={"g": g})
        _, y, u, v, lam = sol.y
        np.testing.assert_allclose(0.5 * (u**2 + v**2) + g * y, 0.5 * SPEED**2 - g, atol=1e-6)
        np.testing.assert_allclose(lam, u**2 + v**2 - g * y, atol=1e-13)


def test_functions_that_change_are_seen():
    gravity = [1.0]

    def residual(t, s, sp):
        x, y, u, v, lam = s
        return [sp[0] - u, sp[1] - v, sp[2] + lam * x, sp[3] + lam * y + gravity[0], x**2 + y**2 - 1.0]

    problem = daedal.ImplicitDAE(residual, 5)
    first = daedal.solve(problem, (0.0, 1.0), (START, None), **REDUCED)
    gravity[0] = 3.0
    second = daedal.solve(problem, (0.0, 1.0), (START, None), **REDUCED)
    np.testing.assert_allclose(first.y[4], first.y[2] ** 2 + first.y[3] ** 2 - first.y[1], atol=1e-12)
    np.testing.assert_allclose(second.y[4], second.y[2] ** 2 + second.y[3] ** 2 - 3.0 * second.y[1], atol=1e-12)


# --- initial values ---------------------------------------------------------------------------------------------------


def test_hidden_constraints_of_the_start_are_named():
    problem = daedal.ImplicitDAE(pendulum, 5, names=NAMES)
    with pytest.raises(daedal.InconsistentInitialError) as caught:
        daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0, 0.1, 0.0, 0.0], None), **REDUCED)
    assert "equation 4 differentiated once (0.2)" in str(caught.value)
    assert "u from 0.1 to 0" in str(caught.value)
    assert caught.value.equations[0] == 4
    sol = daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0, 0.1, 0.0, 0.0], None), correct_initial=True, **REDUCED)
    assert abs(sol.y[2, 0]) < 1e-12


def test_multipliers_are_guesses_only_where_derivatives_are_not_given():
    problem = daedal.ImplicitDAE(pendulum, 5, names=NAMES)
    wrong = [1.0, 0.0, 0.0, 0.0, 7.0]
    sol = daedal.solve(problem, (0.0, 1.0), (wrong, None), **REDUCED)
    assert abs(sol["lam"][0]) < 1e-14
    with pytest.raises(daedal.InconsistentInitialError, match="lam from 7 to 0"):
        daedal.solve(problem, (0.0, 1.0), (wrong, [0.0, 0.0, 0.0, -1.0, 0.0]), **REDUCED)


# --- what cannot be solved --------------------------------------------------------------------------------------------


def test_singular_point_is_told_with_what_was_computed():
    """x'' = (1 - t) lam on a path: lam grows without bound towards t = 1, where the index changes."""
    problem = daedal.ImplicitDAE(
        lambda t, s, sp: [sp[0] - s[1], sp[1] - (1.0 - t) * s[2], s[0] - np.exp(t)], 3, names=["x", "v", "lam"]
    )
    with pytest.raises(daedal.IntegrationError) as caught:
        daedal.solve(problem, (0.0, 3.0), ([1.0, 1.0, 1.0], None), method="dassl")
    solution = caught.value.solution
    assert 0.99 < solution.t[-1] < 1.0 and solution.y.shape[0] == 3
    assert "lam" in str(caught.value) and "index 3" in str(caught.value)
    np.testing.assert_allclose(solution["lam"] * (1.0 - solution.t), np.exp(solution.t), rtol=1e-6)


def crossing(t, s, sp):
    """A point on the lines x y = 0, whose gradient vanishes where they cross."""
    x, y, u, v, lam = s
    return [sp[0] - u, sp[1] - v, sp[2] + lam * y, sp[3] + lam * x, x * y]


def test_start_at_a_singular_point():
    problem = daedal.ImplicitDAE(crossing, 5, names=NAMES)
    with pytest.raises(daedal.InvalidProblemError, match=r"singular point: equation 4 .* do not fully determine"):
        daedal.solve(problem, (0.0, 3.0), (np.zeros(5), None), **REDUCED)


def test_a_run_that_comes_to_where_nothing_can_be_selected(monkeypatch):
    select = ReducedProblem.selected

    def selected(self, t, u, scale):
        if t > 1.0:
            raise SingularBlock(self.tied[0])
        return select(self, t, u, scale)

    monkeypatch.setattr(ReducedProblem, "selected", selected)
    with pytest.raises(daedal.IntegrationError) as caught:
        swing(rtol=1e-8, atol=1e-8)
    assert "equation 4 differentiated once (numbered from 0) no longer determine u and v" in str(caught.value)
    assert 1.0 < caught.value.solution.t[-1] < 2.0 and caught.value.solution.y.shape[0] == 5


def test_structurally_singular_problems_name_equations_and_unknowns():
    problem = daedal.ImplicitDAE(
        lambda t, s, sp: [sp[0] - s[1] + s[2], s[0] - 1.0, 2.0 * s[0] - 3.0], 3, names=["x", "v", "lam"]
    )
    with pytest.raises(daedal.InconsistentInitialError, match=r"equations 1 and 2 contain only x"):
        daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0, 0.0], None))
    solver = daedal.prepare(problem)
    errors = []
    for _ in range(3):
        with pytest.raises(daedal.IntegrationError, match=r"equations 1 and 2 contain only x") as caught:
            solver.solve((0.0, 1.0), ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
        errors.append(caught.value)
    assert len({id(error) for error in errors}) == 3 and len({str(error) for error in errors}) == 1
    with pytest.raises(daedal.errors.StructurallySingularError, match=r"equations 1 and 2 contain only x"):
        daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0, 0.0], None), **REDUCED)


def test_functions_that_cannot_be_traced_are_refused_with_the_reason():
    problem = daedal.ImplicitDAE(lambda t, s, sp: [sp[0] - s[1], s[0] - float(str(s[1]))], 2)
    with pytest.raises(daedal.InvalidProblemError, match="differentiating the equations"):
        daedal.solve(problem, (0.0, 1.0), ([1.0, 0.0], None), **REDUCED)


def test_unknown_ways_are_refused():
    problem = daedal.ImplicitDAE(pendulum, 5)
    with pytest.raises(daedal.InvalidProblemError, match="did you mean 'dummy_derivatives'"):
        daedal.reduce_index(problem, by="dummy_derivative")
    with pytest.raises(daedal.InvalidProblemError, match="'dummy_derivatives'"):
        daedal.solve(problem, (0.0, 1.0), (START, None), formulation="dummies")


# --- when -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["robertson", "transistor_amplifier", "van_der_pol", "hessenberg_index2", "linear_index1"]
)
def test_low_index_is_solved_as_it_stands(name):
    model = getattr(library, name)()
    assert make_plan(model.problem, checked_settings()).form is None
    runs = [daedal.solve(model.problem, model.t_span, model.initial, formulation=f) for f in ("auto", "none")]
    np.testing.assert_array_equal(runs[0].y, runs[1].y)


def test_the_glance_at_the_structure():
    def low(residual, n):
        return has_low_index(SystemEquations(daedal.ImplicitDAE(residual, n)).signature(), n)

    assert low(lambda t, y, yp: [yp[0] - y[1], y[0] + y[1]], 2)
    assert not low(lambda t, y, yp: [yp[0] - y[1], y[0] - t], 2)
    assert not low(pendulum, 5)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.randoms(use_true_random=False))
def test_the_glance_agrees_with_the_signature_method(n, random):
    orders = [{j: random.choice([0, 1]) for j in range(n) if random.random() < 0.4} for _ in range(n)]
    try:
        low = int(StructuralSignature.of_orders(orders).c.max()) == 0
    except ValueError:  # structurally singular
        low = False
    assert has_low_index(orders, n) == low


def test_reduced_problem_can_be_solved_by_hand():
    problem = daedal.ImplicitDAE(pendulum, 5, names=NAMES)
    reduced = daedal.reduce_index(problem)
    assert reduced.problem.names == (*NAMES, "u'", "v'") and reduced.index == 3
    u = lift(reduced, 0.0, np.array(START))
    chosen = reduced.selected(0.0, u, np.ones(7))
    start = chosen.start(0.0, u, np.ones(7))
    sol = daedal.solve(chosen.problem, (0.0, 0.5), start, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sol.y[:5, -1], swing(rtol=1e-9, atol=1e-9)(0.5), atol=1e-7)
    assert chosen.amplification(0.0, u, np.ones(7)) <= 1.0 + 1e-12


def test_where_the_structure_misleads_below_index_3_the_strangeness_free_form_is_taken():
    """The structural index is 1, the index 3, and the matrix of the highest derivatives singular everywhere."""
    model = daedal.library.get("cancelling_derivatives")
    sol = daedal.solve(model.problem, model.t_span, model.initial, rtol=1e-8, atol=1e-10)
    assert "strangeness-free" in sol.message
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, rtol=1e-6)


def test_what_no_way_takes_is_refused_and_not_solved_somehow():
    model = daedal.library.get("cancelling_derivatives", form="second-order")
    with pytest.raises(daedal.InvalidProblemError, match="an ImplicitDAE with the velocities as unknowns"):
        daedal.solve(model.problem, model.t_span, model.initial)
    model = daedal.library.unsolvable_pencil()
    with pytest.raises(daedal.IntegrationError, match="do not determine the solution") as caught:
        daedal.solve(model.problem, model.t_span, model.initial)
    assert not caught.value.solution.success and "arbitrary" in caught.value.solution.message


# --- index judged where the solution is -------------------------------------------------------------------------------


def mixed(index, seed):
    """A chain of integrators of this index, from y[0] = sin t, with rows mixed by a matrix that depends on y.

    Off the solution the terms of the mixture hide the constraints, so that the structural index is 1.
    """
    random = np.random.default_rng(seed)
    rotation, mixture = np.linalg.qr(random.normal(size=(index, index)))[0], 0.2 * random.normal(size=(index, index))

    def residual(t, y, yp):
        chain = rotation @ np.array([y[0] - np.sin(t), *(yp[k] - y[k + 1] for k in range(index - 1))])
        return chain + mixture @ (chain * np.cos(y))

    return daedal.ImplicitDAE(residual, index)


def derivatives_of_sine(t, count):
    return np.array([np.sin(t + 0.5 * np.pi * k) for k in range(count)])


@pytest.mark.parametrize(
    ("index", "seed", "guessed"),
    [(2, 0, True), (2, 5, True), (2, 5, False), (3, 1, False), (3, 9, False), (4, 3, False), (4, 9, False)],
)
def test_constraints_hidden_by_terms_that_vanish_on_the_solution_are_found(index, seed, guessed):
    start = derivatives_of_sine(0.0, index + 1)
    initial = (start[:-1] + (0.3 * (np.arange(index) > 0) if guessed else 0.0), None if guessed else start[1:])
    sol = daedal.solve(mixed(index, seed), (0.0, 2.0), initial, correct_initial=guessed, rtol=1e-7, atol=1e-9)
    assert "strangeness-free" in sol.message
    np.testing.assert_allclose(sol.y, derivatives_of_sine(sol.t, index), rtol=0.0, atol=1e-6)


def test_derivatives_that_the_equations_leave_open_do_not_grow_without_bound():
    verdict = index_two.drawn(264).judged(264)
    assert verdict.kind == "right" and verdict.ratio < 1.0


def test_a_run_that_does_not_leave_an_inconsistent_start_says_so():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - np.sqrt(-t)], 1)
    request = Request(problem, checked_settings(), (0.0, 1.0), ([0.0], [0.0]))
    plan = UnsettledPlan(make_plan(problem, request.settings), daedal.InconsistentInitialError("equation 0 (0.8)"))
    with pytest.raises(daedal.InconsistentInitialError, match=r"equation 0 \(0.8\)"):
        plan.solve(request)


@pytest.mark.parametrize("eta", [1.0, -0.6, -1.0, -2.0])
def test_index_2_with_a_turning_nullspace_is_solved_by_default(eta):
    # BCP example 2.4.1 and (3.1.13): the direct way is unstable, or its matrix singular
    problem = daedal.ImplicitDAE(
        lambda t, y, yp: [y[0] + eta * t * y[1] - np.sin(t), yp[0] + eta * t * yp[1] + (1.0 + eta) * y[1]], 2
    )
    sol = daedal.solve(problem, (0.0, 2.0), ([0.0, -1.0], None))
    np.testing.assert_allclose(sol.y[1], -np.cos(sol.t), atol=1e-5)
    np.testing.assert_allclose(sol.y[0], np.sin(sol.t) + eta * sol.t * np.cos(sol.t), atol=1e-5)


MIXED_SEEDS = [(2, seed) for seed in range(300)] + [(index, seed) for index in (3, 4, 5, 6) for seed in range(15)]
QUICK_SEEDS = [(2, 6), (2, 20), (2, 26), (3, 2), (3, 5), (3, 6)]


@pytest.mark.parametrize(("index", "seed"), sampled(MIXED_SEEDS, QUICK_SEEDS))
def test_random_problems_in_fully_implicit_form_are_solved_to_their_tolerance(index, seed):
    """Nullspaces turn with t and y, rows and columns are scaled, equations and unknowns mixed, values guessed."""
    problem = scrambled(seed, index)
    assert problem.error(problem.solve().y) < 300.0, problem.words


@pytest.mark.parametrize("c", [3.2, 4.0, 5.5])
def test_a_solution_is_not_called_arbitrary_for_the_sake_of_a_random_point(c):
    x1 = lambda t: 2.0 + np.sin(t)  # noqa: E731
    y1 = lambda t: 1.0 + np.cos(2.0 * t)  # noqa: E731

    def rate(t, x, y):
        second = -2.0 * c * np.cos(t) / x1(t) ** 3
        return [np.cos(t) + y[0] - y1(t), second + 0.1 * (y[1] - x1(t) ** 2 + y1(t))]

    problem = daedal.SemiExplicitDAE(rate, lambda t, x, y: [y[0] + y[1] - x[0] ** 2, x[1] * (y[0] + y[1]) - c], 2, 2)
    sol = daedal.solve(problem, (0.0, 2.0), ([2.0, c / 4.0], [2.0, 2.0]))
    assert sol.success
    np.testing.assert_allclose(sol.y[:3, -1], [x1(2.0), c / x1(2.0) ** 2, y1(2.0)], rtol=1e-4)


def test_algebraic_values_of_index_2_are_guesses():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] - y[1], y[0] - np.sin(t)], 2)
    sol = daedal.solve(problem, (0.0, 2.0), ([0.0, 0.3], None), rtol=1e-7)
    np.testing.assert_allclose(sol.y[:, 0], [0.0, 1.0], atol=1e-14)
    np.testing.assert_allclose(sol.y, derivatives_of_sine(sol.t, 2), atol=1e-6)


def test_a_formulation_that_was_chosen_is_not_replaced():
    problem = daedal.ImplicitDAE(lambda t, y, yp: [y[0] + t * y[1] - np.sin(t), yp[0] + t * yp[1] + 2.0 * y[1]], 2)
    with pytest.raises(daedal.IntegrationError):
        daedal.solve(problem, (0.0, 2.0), ([0.0, -1.0], None), formulation="none")


def test_other_parameters_are_judged_anew():
    problem = daedal.ImplicitDAE(
        lambda t, y, yp, p: [yp[0] - y[1], y[0] - np.sin(t) + p[0] * (y[1] - np.cos(t))], 2, params=[0.0]
    )
    solver = daedal.prepare(problem)
    for value in (0.0, 1.0, 0.0):
        sol = solver.solve((0.0, 2.0), ([0.0, 0.9 if value == 0.0 else 1.0], None), params=[value])
        np.testing.assert_allclose(sol.y, derivatives_of_sine(sol.t, 2), atol=1e-5)


def test_the_judgement_of_a_start_does_not_depend_on_earlier_runs():
    starts = [([0.0, -1.0], None), ([0.0, 1.0], [0.0, 0.0]), ([0.0, -1.0], None)]

    def problem():
        return daedal.ImplicitDAE(lambda t, y, yp: [y[0] + t * y[1] - np.sin(t), yp[0] + t * yp[1] + 2.0 * y[1]], 2)

    def outcome(model, start):
        try:
            return daedal.solve(model, (0.0, 1.0), start).y.tobytes()
        except daedal.DaedalError as error:
            return str(error)

    shared = problem()
    assert [outcome(shared, start) for start in starts] == [outcome(problem(), start) for start in starts]
