"""What formulations have in common: one trajectory, whatever the form, the units and the numbering.

Sources: Ascher and Petzold, Stability of computational methods for constrained dynamics systems, sections 2 and 3
(drift and its growth); Wijckmans section 6.1 (regularisations).
"""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal import library
from daedal.mechanics.formulations import (
    GGL,
    Baumgarte,
    CoordinateProjection,
    EssentialODE,
    FuehrerLeimkuhler,
    Hanke,
    Index1,
    Index2,
    Index3,
    Knorrenschild,
    Loetstedt,
    MinimalExtension,
    Overdetermined,
    ProjectedInvariants,
    StateSpace,
)
from daedal.methods import DASSL


@pytest.fixture(scope="module")
def pendulum():
    return library.planar_pendulum(compiled=True, t1=5.0)


def run(model, **options):
    return daedal.solve(model.problem, model.t_span, model.initial, **options)


def before(sol):
    """Residuals of the constraints of position and velocity in what was integrated."""
    return sol.drift["position before projection"], sol.drift["velocity before projection"]


# --- one trajectory -------------------------------------------------------------------------------------------

FORMS = {
    "auto": "auto",
    "index2": Index2(),
    "index2-gamma": Index2(gamma=1.0),
    "index2-derivative": Index2(multipliers="derivative"),
    "index1": Index1(),
    "baumgarte": Baumgarte(),
    "baumgarte-6": Baumgarte(alpha=6.0, beta=6.0),
    "ggl": GGL(),
    "ggl-B": GGL("B"),
    "ggl-unit": GGL("unit"),
    "ggl-derivative": GGL(multipliers="derivative"),
    "pi2": ProjectedInvariants(),
    "pi2-B": ProjectedInvariants(projection="B"),
    "pi1": ProjectedInvariants(1),
    "fuehrer-leimkuhler": FuehrerLeimkuhler(),
    "fl-derivative": FuehrerLeimkuhler(multipliers="derivative"),
    "overdetermined": Overdetermined(),
    "minimal-extension": MinimalExtension(),
    "state-space-qr": StateSpace(),
    "state-space-lu": StateSpace("lu"),
    "state-space-svd": StateSpace("svd"),
    "essential": EssentialODE(),
    "projection-M": CoordinateProjection(),
    "projection-I": CoordinateProjection("I"),
    "projection-positions": CoordinateProjection(levels=1),
}


@pytest.mark.parametrize("method", ["auto", "dassl"])
@pytest.mark.parametrize("name", [name for name in FORMS if name != "ggl-unit"])
def test_every_formulation_gives_the_same_trajectory(name, method, pendulum):
    sol = run(pendulum, formulation=FORMS[name], method=method, rtol=1e-7, atol=1e-7)
    exact = np.array([pendulum.extra["exact"](t) for t in sol.t[::10]]).T
    lam = np.array([pendulum.extra["exact_lam"](t) for t in sol.t[::10]]).T
    assert np.max(np.abs(sol.y[:, ::10] - exact)) < 3e-5
    assert np.max(np.abs(sol.lam[:, ::10] - lam)) < 1e-4
    assert max(sol.drift["position"], sol.drift["velocity"]) < 1e-13


def test_index3_gives_the_same_trajectory_less_accurately(pendulum):
    sol = run(pendulum, formulation=Index3(), rtol=1e-7, atol=1e-7)
    assert np.max(np.abs(sol.y[:, -1] - pendulum.extra["exact"](5.0))) < 1e-3


@pytest.mark.parametrize("form", [GGL, Index2, FuehrerLeimkuhler])
def test_multipliers_as_derivatives_give_the_same(form, pendulum):
    """lam = psi' is a change of names: the same backward Euler steps, up to round-off."""
    options = {"method": DASSL(max_order=1), "fixed_step": 0.05}
    value, derivative = (run(pendulum, formulation=form(multipliers=m), **options) for m in ("value", "derivative"))
    np.testing.assert_allclose(derivative.raw.y[:4], value.raw.y[:4], atol=1e-11)


# --- drift ----------------------------------------------------------------------------------------------------


def test_index2_drifts_in_position_only(pendulum):
    position, velocity = before(run(pendulum, formulation=Index2(), rtol=1e-5, atol=1e-5))
    assert position > 1e-5
    assert velocity < 1e-5


def test_index1_drifts_in_position_and_velocity(pendulum):
    position, velocity = before(run(pendulum, formulation=Index1(), method="dassl", rtol=1e-5, atol=1e-5))
    assert position > 1e-5
    assert velocity > 1e-5


@pytest.mark.parametrize("name", ["ggl", "ggl-B", "pi2", "fuehrer-leimkuhler", "minimal-extension"])
def test_forms_with_both_levels_keep_them_to_the_accuracy_of_newton(name, pendulum):
    position, velocity = before(run(pendulum, formulation=FORMS[name], rtol=1e-5, atol=1e-5))
    assert position < 1e-5
    assert velocity < 3e-5
    sol = run(pendulum, formulation=FORMS[name], method=DASSL(max_order=1), fixed_step=0.05)
    assert max(before(sol)) < 1e-12


@pytest.mark.parametrize("name", ["state-space-qr", "state-space-lu", "essential", "projection-M", "projection-I"])
def test_state_space_and_projection_do_not_drift(name, pendulum):
    for method in ("dopri5", "dassl"):
        assert max(before(run(pendulum, formulation=FORMS[name], method=method, rtol=1e-5, atol=1e-5))) < 1e-13


def test_one_level_is_projected_and_the_other_drifts(pendulum):
    position, velocity = before(run(pendulum, formulation=CoordinateProjection(levels=1), rtol=1e-5, atol=1e-5))
    assert position < 1e-13
    assert velocity > 1e-6
    position, velocity = before(run(pendulum, formulation=ProjectedInvariants(1), rtol=1e-5, atol=1e-5))
    assert position < 2e-5 < velocity


def test_baumgarte_damps_the_drift(pendulum):
    plain, damped = (
        daedal.solve(
            pendulum.problem, (0.0, 40.0), pendulum.initial, formulation=Baumgarte(gamma=gamma), rtol=1e-6, atol=1e-6
        )
        for gamma in (0.0, 2.0)
    )
    assert before(damped)[0] < 0.05 * before(plain)[0]


@pytest.mark.parametrize("name", ["ggl", "pi2", "fuehrer-leimkuhler"])
def test_extra_multipliers_vanish_with_the_tolerance(name, pendulum):
    """mu = tau = 0 for the exact solution; a step leaves about its local error divided by h."""

    def largest(rtol):
        sol = run(pendulum, formulation=FORMS[name], rtol=rtol, atol=rtol)
        rows = [i for i, label in enumerate(sol.raw.names) if label.startswith("mu")]
        assert rows
        return np.max(np.abs(sol.raw.y[rows]))

    assert largest(1e-8) < 0.02 * largest(1e-5) < 1e-3


PUSHES = {
    "baumgarte-0": (Baumgarte(gamma=0.0), "v", lambda t: t),
    "baumgarte-1": (Baumgarte(gamma=1.0), "v", lambda t: t * math.exp(-t)),
    "baumgarte-position": (Baumgarte(gamma=1.0), "q", lambda t: (1.0 + t) * math.exp(-t)),
    "index1": (Index1(), "v", lambda t: t),
    "index1-position": (Index1(), "q", lambda t: 1.0),
    "index2": (Index2(), "q", lambda t: 1.0),
    "index2-gamma": (Index2(gamma=1.0), "q", lambda t: math.exp(-t)),
}


@pytest.mark.parametrize("name", PUSHES)
def test_growth_of_a_push_off_the_constraint(name, pendulum):
    """g(t)/delta after a push of the velocity or position by delta along the normal (section 3 of the paper)."""
    form, kind, law = PUSHES[name]
    initial = (np.array([0.6, -0.8]), np.array([0.4, 0.3]))
    options = {"formulation": form, "fixed_step": 0.001, "dense_output": False}
    plain = daedal.solve(pendulum.problem, (0.0, 1.0), initial, method=DASSL(max_order=1), **options)
    pushed = plain.raw.y[:, :1].copy()
    pushed[(slice(0, 2) if kind == "q" else slice(2, 4)), 0] += 1e-5 * initial[0]
    moved = daedal.solve(
        pendulum.problem, (0.0, 1.0), initial, method=DASSL(max_order=1, starting_values=pushed), **options
    )
    g = [0.5 * (sol.raw.y[0] ** 2 + sol.raw.y[1] ** 2 - 1.0) for sol in (plain, moved)]
    for t in (0.25, 0.5, 1.0):
        i = round(1000 * t)
        assert (g[1][i] - g[0][i]) / 1e-5 == pytest.approx(law(t), rel=3e-3)


# --- regularisations ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("forms", "order"),
    [
        ([Loetstedt(1e-2), Loetstedt(1e-3), Loetstedt(1e-4)], 1.0),
        ([Knorrenschild(0.04, 0.04), Knorrenschild(0.01, 0.01), Knorrenschild(0.0025, 0.0025)], 2.0),
        ([Hanke(0.04, 0.04), Hanke(0.01, 0.01), Hanke(0.0025, 0.0025)], 1.0),
    ],
    ids=["loetstedt", "knorrenschild", "hanke"],
)
def test_regularisations_converge_with_their_parameters(forms, order, pendulum):
    """Errors of the first order in epsilon; of the second for Knorrenschild's form, which keeps q' = v."""
    ratio = forms[0].epsilon / forms[1].epsilon
    exact = pendulum.extra["exact"](5.0)
    errors, offsets = [], []
    for form in forms:
        sol = run(pendulum, formulation=form, rtol=1e-7, atol=1e-8)
        errors.append(np.max(np.abs(sol.y[:, -1] - exact)))
        offsets.append(before(sol)[0])
    for values in (errors, offsets):
        assert values[1] < 2.0 * values[0] / ratio**order and values[2] < 2.0 * values[1] / ratio**order


# --- units, directions, numbering -----------------------------------------------------------------------------


def chain(length=1.0, time=1.0, factors=(1.0, 1.0), angle=0.0, order=(0, 1, 2, 3), rows=(0, 1)):
    """Two masses on rods, with lengths, times, axes, numbering and constraints scaled; Q = A q, T = time t.

    Multipliers become those of the original times length^2/(time^2 factor).
    """
    c, s = math.cos(angle), math.sin(angle)
    turn = np.kron(np.eye(2), np.array([[c, -s], [s, c]]))
    order, rows = list(order), list(rows)
    A = length * turn[order]
    back = np.linalg.inv(A)
    weight = length / time**2 * turn[order] @ np.array([0.0, -9.81, 0.0, -2.0 * 9.81])
    factors = np.array(factors)[rows]

    def force(t, q, v):
        return weight

    def constraint(t, q):
        x = back @ q
        g = np.array([0.5 * (x[0] ** 2 + x[1] ** 2 - 1.0), 0.5 * ((x[2] - x[0]) ** 2 + (x[3] - x[1]) ** 2 - 1.0)])
        return factors * g[rows]

    masses = turn[order] @ np.diag([1.0, 1.0, 2.0, 2.0]) @ turn[order].T
    system = daedal.MechanicalSystem(masses, force, constraint, n_q=4, n_constraints=2)
    q0 = np.array([math.sin(0.7), -math.cos(0.7), math.sin(0.7) + math.sin(1.2), -math.cos(0.7) - math.cos(1.2)])
    return system, A, (A @ q0, np.zeros(4)), factors, rows


def trajectory(form, *, rtol=1e-6, length=1.0, time=1.0, **changes):
    """(q, v) and lam of the chain at eleven times in the original units, axes and numbering; number of steps."""
    system, A, initial, factors, rows = chain(length, time, **changes)
    atol = rtol * np.concatenate([np.full(4, length), np.full(4, length / time)])
    times = time * np.linspace(0.0, 1.0, 11)
    sol = daedal.solve(system, (0.0, time), initial, formulation=form, rtol=rtol, atol=atol, t_eval=times)
    lam = np.empty_like(sol.lam)
    lam[rows] = sol.lam * factors[:, None] * time**2 / length**2
    scale = np.max(np.abs(factors)) * 10.0
    assert sol.drift["position"] < 1e-12 * scale
    assert sol.drift["velocity"] < 1e-12 * scale / time
    return np.vstack([np.linalg.solve(A, sol.q), np.linalg.solve(A, sol.v) * time]), lam, sol.stats.steps


SCALES = st.sampled_from([1e-4, 1.0, 1e4])


@pytest.mark.parametrize("form", ["auto", "ggl"])
@settings(max_examples=12)
@given(
    length=st.sampled_from([1.0, 1e3, 1e-3]),
    time=st.sampled_from([1.0, 1e3, 1e-3, 1.7]),
    factors=st.tuples(SCALES, SCALES),
)
def test_units_do_not_matter(form, length, time, factors):
    """Scaled tolerances and scaled problem: the same up to the tolerance."""
    base, base_lam, base_steps = trajectory(form)
    y, lam, steps = trajectory(form, length=length, time=time, factors=factors)
    np.testing.assert_allclose(y, base, atol=1e-9 if form == "auto" else 2e-4)
    np.testing.assert_allclose(lam, base_lam, atol=1e-8 if form == "auto" else 2e-3)
    assert steps < 1.5 * base_steps


@pytest.mark.parametrize("form", ["state_space", "essential", StateSpace("lu")])
@pytest.mark.parametrize(("length", "time"), [(1.0, 1e6), (1e4, 1e-5)])
def test_units_do_not_matter_in_local_coordinates(form, length, time):
    """Their tolerances are those of positions or of velocities, not the larger ones of both."""
    base, _, base_steps = trajectory(form)
    y, _, steps = trajectory(form, length=length, time=time)
    np.testing.assert_allclose(y, base, atol=1e-8)
    assert steps == base_steps


@pytest.mark.parametrize("form", ["auto", "ggl"])
@settings(max_examples=12)
@given(
    angle=st.floats(-3.0, 3.0),
    order=st.permutations(range(4)),
    rows=st.permutations(range(2)),
    length=st.sampled_from([1.0, 1e3]),
    factors=st.tuples(SCALES, SCALES),
)
def test_axes_and_numbering_do_not_matter(form, angle, order, rows, length, factors):
    """Rotated axes change the weights of the error test: the same up to the tolerance."""
    base, base_lam, base_steps = trajectory(form)
    y, lam, steps = trajectory(form, angle=angle, order=order, rows=rows, length=length, factors=factors)
    np.testing.assert_allclose(y, base, atol=2e-4)
    np.testing.assert_allclose(lam, base_lam, atol=2e-3)
    assert steps < 1.5 * base_steps


# --- one answer -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["auto", "ggl", "baumgarte", "state_space"])
def test_compiled_and_plain_functions_give_the_same(form, pendulum):
    plain = library.planar_pendulum(t1=5.0)
    options = {"formulation": form, "rtol": 1e-7, "t_eval": np.linspace(0.0, 5.0, 7)}
    np.testing.assert_allclose(run(plain, **options).y, run(pendulum, **options).y, atol=1e-12)


def test_parameters_reach_every_function(pendulum):
    """Gravity from params, with_params and a closure: the same."""
    heavy = library.planar_pendulum(gravity=4.0, t1=2.0)
    options = {"rtol": 1e-8, "t_eval": np.linspace(0.0, 2.0, 5)}
    other = daedal.solve(pendulum.problem.with_params(np.array([1.0, 4.0])), (0.0, 2.0), heavy.initial, **options)
    np.testing.assert_allclose(other.y, run(heavy, **options).y, atol=1e-12)
    np.testing.assert_allclose(other.y[:, -1], heavy.extra["exact"](2.0), atol=1e-5)


@pytest.mark.parametrize("form", ["auto", "ggl", "index2", "state_space", "projected_invariants"])
def test_there_and_back(form, pendulum):
    there = run(pendulum, formulation=form, rtol=1e-8, atol=1e-8)
    end = (there.q[:, -1], there.v[:, -1])
    back = daedal.solve(pendulum.problem, (5.0, 0.0), end, formulation=form, rtol=1e-8, atol=1e-8)
    assert back.t[-1] == 0.0
    np.testing.assert_allclose(back.y[:, -1], np.concatenate(pendulum.initial), atol=2e-5)
    middle = back(2.5)
    np.testing.assert_allclose(np.concatenate([middle.q, middle.v]), pendulum.extra["exact"](2.5), atol=2e-5)


@pytest.mark.parametrize(
    "form",
    [Baumgarte(), Baumgarte(alpha=6.0, beta=6.0), Index2(gamma=5.0)],
    ids=["baumgarte-1", "baumgarte-6", "index2"],
)
def test_there_and_back_with_stabilising_parameters(form, pendulum):
    """Damping of the drift must follow the direction of integration: g' + gamma g = 0 grows backwards in time."""
    end = pendulum.extra["exact"](5.0)
    back = daedal.solve(pendulum.problem, (5.0, 0.0), (end[:2], end[2:]), formulation=form, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(back.y[:, -1], np.concatenate(pendulum.initial), atol=1e-4)
    assert max(before(back)) < 1e-4


@pytest.mark.parametrize("form", ["auto", "ggl", "state_space", "projected_invariants", "minimal_extension"])
def test_output_times_and_dense_output_agree(form, pendulum):
    times = np.linspace(0.0, 5.0, 23)
    options = {"formulation": form, "rtol": 1e-7, "atol": 1e-7}
    dense, points = run(pendulum, **options), run(pendulum, **options, t_eval=times)
    state = dense(times)
    tolerance = 1e-12 if form != "state_space" else 1e-6  # its charts are interpolated in other coordinates
    np.testing.assert_allclose(np.vstack([state.q, state.v]), points.y, atol=tolerance)
    np.testing.assert_allclose(state.lam, points.lam, atol=10.0 * tolerance)
    exact = np.array([pendulum.extra["exact"](t) for t in times]).T
    np.testing.assert_allclose(points.y, exact, atol=1e-4)


@pytest.mark.parametrize("form", ["auto", "ggl", "index1", "index2", "state_space"])
def test_dense_output_satisfies_the_constraints(form, pendulum):
    state = run(pendulum, formulation=form, rtol=1e-5, atol=1e-5)(np.linspace(0.0, 5.0, 101))
    assert np.max(np.abs(np.sum(state.q**2, axis=0) - 1.0)) < 1e-12
    assert np.max(np.abs(np.sum(state.q * state.v, axis=0))) < 1e-12
    # the acceleration level, with lam
    residual = np.sum(state.q * state.a, axis=0) + np.sum(state.v**2, axis=0)
    assert np.max(np.abs(residual)) < 1e-12
    np.testing.assert_allclose(state.a[0], -state.q[0] * state.lam[0], atol=1e-12)


def test_a_stored_solution_comes_back(pendulum):
    sol = run(pendulum, rtol=1e-6)
    again = pickle.loads(pickle.dumps(sol))
    for name in ("t", "q", "v", "a", "lam", "y", "yp", "reaction"):
        np.testing.assert_array_equal(getattr(again, name), getattr(sol, name))
    assert (again.formulation, again.method, again.drift, again.message) == (
        sol.formulation,
        sol.method,
        sol.drift,
        sol.message,
    )
    assert repr(again) == repr(sol)


@pytest.mark.parametrize("form", ["auto", "ggl", "baumgarte", "projected_invariants", "state_space", "index1"])
def test_runs_are_deterministic(form, pendulum):
    """Bit by bit, also after other problems and after another formulation of the same system."""
    first = run(pendulum, formulation=form, rtol=1e-6)
    run(library.knife_edge(), formulation="ggl", rtol=1e-4)
    for other in (Baumgarte(gamma=5.0), GGL("B"), StateSpace("lu")):
        run(pendulum, formulation=other, rtol=1e-4)
    second = run(pendulum, formulation=form, rtol=1e-6)
    for name in ("t", "y", "lam"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_array_equal(first.raw.y, second.raw.y)
