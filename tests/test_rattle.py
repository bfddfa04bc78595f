"""RATTLE and SHAKE: orders, symmetry, what they conserve, long runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daedal
from daedal.methods.symplectic.rattle import ORDERS, composition

GRAVITY = 9.81


def pendulum():
    return daedal.MechanicalSystem(
        mass=1.0,
        force=lambda t, q, v: np.array([0.0, -GRAVITY]),
        constraint=lambda t, q: np.array([q[0] ** 2 + q[1] ** 2 - 1.0]),
        n_q=2,
        n_constraints=1,
    )


def driven_pendulum():
    """The pivot moves: the constraint depends on time."""
    return daedal.MechanicalSystem(
        mass=[2.0, 2.0],
        force=lambda t, q, v: np.array([np.cos(t), -GRAVITY]),
        constraint=lambda t, q: np.array([(q[0] - 0.3 * np.sin(2.0 * t)) ** 2 + q[1] ** 2 - 1.0]),
        n_q=2,
        n_constraints=1,
    )


def _linkage_mass(t, q):
    c = np.cos(q[0] - q[1])
    return np.array([[2.0, c], [c, 1.0]])


def _linkage_force(t, q, v):
    s = np.sin(q[0] - q[1])
    return np.array(
        [-s * v[1] ** 2 - 2.0 * GRAVITY * np.sin(q[0]), s * v[0] ** 2 - GRAVITY * np.sin(q[1])],
    )


def linkage():
    """A double pendulum in angles whose end slides along a line: M depends on q."""
    return daedal.MechanicalSystem(
        mass=_linkage_mass,
        force=_linkage_force,
        constraint=lambda t, q: np.array([np.cos(q[0]) + np.cos(q[1]) - 1.0 - 0.2 * np.sin(q[0])]),
        n_q=2,
        n_constraints=1,
    )


def linkage_energy(sol):
    q, v = sol.q, sol.v
    kinetic = v[0] ** 2 + np.cos(q[0] - q[1]) * v[0] * v[1] + 0.5 * v[1] ** 2
    return kinetic - GRAVITY * (2.0 * np.cos(q[0]) + np.cos(q[1]))


LINKAGE_START = (np.array([0.9, np.arccos(1.0 + 0.2 * np.sin(0.9) - np.cos(0.9))]), np.zeros(2))
PROBLEMS = {
    "pendulum": (pendulum, (np.array([1.0, 0.0]), np.zeros(2))),
    "driven_pendulum": (driven_pendulum, (np.array([0.0, -1.0]), np.array([0.6, 0.0]))),
    "linkage": (linkage, LINKAGE_START),
}
END = 1.6


@pytest.fixture(scope="module")
def references():
    return {
        name: daedal.solve(make(), (0.0, END), start, rtol=1e-13, atol=1e-14, t_eval=[END])
        for name, (make, start) in PROBLEMS.items()
    }


COARSER = {("driven_pendulum", 8): 8}  # finer grids reach round-off


def observed(errors):
    return np.log2(errors[:-1] / errors[1:])


# --- orders -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "steps"), [(2, 80), (4, 40), (6, 20), (8, 16)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_q_v_and_multipliers_have_the_order_of_the_composition(references, name, order, steps):
    (make, start), reference, errors = PROBLEMS[name], references[name], []
    steps = COARSER.get((name, order), steps)
    for n in (steps, 2 * steps):
        sol = daedal.solve(make(), (0.0, END), start, method=daedal.methods.RATTLE(order), fixed_step=END / n)
        errors.append([np.abs(a[:, -1] - b[:, -1]).max() for a, b in zip(_parts(sol), _parts(reference))])
    for found in observed(np.array(errors))[0]:
        assert order - 0.3 < found < order + 0.5


def _parts(sol):
    return sol.q, sol.v, sol.lam


def test_shake_has_order_2(references):
    (make, start), reference = PROBLEMS["driven_pendulum"], references["driven_pendulum"]
    errors = []
    for n in (40, 80, 160):
        sol = daedal.solve(make(), (0.0, END), start, method="shake", fixed_step=END / n)
        errors.append([np.abs(a[:, -1] - b[:, -1]).max() for a, b in zip(_parts(sol), _parts(reference))])
    assert np.all(np.abs(observed(np.array(errors)) - 2.0) < 0.1)


@pytest.mark.parametrize("order", ORDERS)
def test_the_weights_of_compositions(order):
    """Order conditions of symmetric compositions: sums of odd powers (Hairer, Lubich, Wanner V.3)."""
    weights = composition(order)
    np.testing.assert_array_equal(weights, weights[::-1])
    assert weights.sum() == pytest.approx(1.0, abs=1e-14)
    for power in range(3, order, 2):
        assert np.sum(weights**power) == pytest.approx(0.0, abs=1e-13)
    assert abs(np.sum(weights ** (order + 1))) > 1e-5  # and no more


# --- what is conserved ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_steps_are_symmetric_in_time(name, order):
    make, (q0, v0) = PROBLEMS[name]
    there = daedal.solve(make(), (0.0, 3.0), (q0, v0), method="rattle", order=order, fixed_step=0.02)
    back = daedal.solve(
        make(), (3.0, 0.0), (there.q[:, -1], there.v[:, -1]), method="rattle", order=order, fixed_step=0.02
    )
    np.testing.assert_allclose(back.q[:, -1], q0, atol=1e-12)
    np.testing.assert_allclose(back.v[:, -1], v0, atol=1e-11)


@given(st.floats(0.2, 1.4), st.floats(-2.0, 2.0), st.floats(0.02, 0.2))
@settings(max_examples=20, deadline=None)
def test_a_step_preserves_area(angle, speed, h):
    """det d(q_1, p_1)/d(q_0, p_0) = 1 for H = p^2 / (2 m(q)) + U(q)."""
    system = daedal.MechanicalSystem(
        mass=lambda t, q: np.array([[2.0 + np.cos(q[0])]]),
        force=lambda t, q, v: np.array([0.5 * np.sin(q[0]) * v[0] ** 2 - 3.0 * np.sin(q[0])]),
        n_q=1,
    )

    def step(q, p):
        start = ([q], [p / (2.0 + np.cos(q))])
        sol = daedal.solve(system, (0.0, h), start, method="rattle", fixed_step=h)
        return np.array([sol.q[0, -1], sol.v[0, -1] * (2.0 + np.cos(sol.q[0, -1]))])

    p, d = speed * (2.0 + np.cos(angle)), 1e-4
    by_q = (step(angle + d, p) - step(angle - d, p)) / (2.0 * d)
    by_p = (step(angle, p + d) - step(angle, p - d)) / (2.0 * d)
    assert by_q[0] * by_p[1] - by_q[1] * by_p[0] == pytest.approx(1.0, abs=1e-6)


def test_angular_momentum_of_a_free_dumbbell_is_exact():
    """Quadratic invariants of the exact flow: momentum, angular momentum, to round-off."""
    system = daedal.MechanicalSystem(
        mass=[1.0, 1.0, 3.0, 3.0],
        force=lambda t, q, v: -0.7 * np.array([q[0] - q[2], q[1] - q[3], q[2] - q[0], q[3] - q[1]]),
        constraint=lambda t, q: np.array([(q[0] - q[2]) ** 2 + (q[1] - q[3]) ** 2 - 1.0]),
        n_q=4,
        n_constraints=1,
    )
    start = ([1.0, 0.0, 0.0, 0.0], [0.3, 2.0, 0.3, -1.0])
    sol = daedal.solve(system, (0.0, 500.0), start, method="rattle", fixed_step=0.1)
    (x, y, z, w), (a, b, c, d) = sol.q, sol.v
    for invariant in (a + 3.0 * c, b + 3.0 * d, x * b - y * a + 3.0 * (z * d - w * c)):
        assert np.ptp(invariant) < 1e-10  # q itself grows to 150


def test_verlet_without_constraints():
    """Stoermer and Verlet by hand."""
    system = daedal.MechanicalSystem(1.0, lambda t, q, v: np.array([-np.sin(q[0])]), n_q=1)
    sol = daedal.solve(system, (0.0, 2.0), ([1.0], [0.0]), method="rattle", fixed_step=0.1)
    q, v = 1.0, 0.0
    for n in range(20):
        v -= 0.05 * np.sin(q)
        q += 0.1 * v
        v -= 0.05 * np.sin(q)
        assert (sol.q[0, n + 1], sol.v[0, n + 1]) == pytest.approx((q, v), abs=1e-14)


# --- long runs --------------------------------------------------------------------------------------------------------

PERIOD = 7.416298709205487 / np.sqrt(GRAVITY)  # 4 K(1/2) / sqrt(g), released at the height of the pivot


def drift_and_oscillation(t, energy):
    """What the energy drifts by over the run, from a straight line through it, and how far it swings."""
    return abs(np.polyfit(t / t[-1], energy, 1)[0]), np.ptp(energy)


def pendulum_run(periods, steps, samples, **options):
    system, start = PROBLEMS["pendulum"][0](), PROBLEMS["pendulum"][1]
    times = np.linspace(0.0, periods * PERIOD, samples)
    sol = daedal.solve(
        system, (0.0, periods * PERIOD), start, t_eval=times, dense_output=False, max_steps=10**8, **options
    )
    return sol, 0.5 * np.sum(sol.v**2, axis=0) + GRAVITY * sol.q[1]


def test_energy_over_a_hundred_thousand_periods():
    periods, steps = 100_000, 20
    sol, energy = pendulum_run(periods, steps, 1 + 2000 * 20, method="rattle", fixed_step=PERIOD / steps)
    drift, oscillation = drift_and_oscillation(sol.t, energy)
    assert sol.stats.steps == periods * steps and sol.t.size == 40_001  # no more is kept
    assert oscillation < 0.06 * GRAVITY and drift < 0.01 * oscillation
    first, last = energy[:4000], energy[-4000:]
    assert last.max() == pytest.approx(first.max(), abs=0.01 * oscillation)
    assert last.min() == pytest.approx(first.min(), abs=0.01 * oscillation)
    assert sol.drift["position before projection"] < 1e-15 and sol.drift["velocity before projection"] < 1e-14


def test_other_methods_drift():
    """The same energy by methods with error control, whose oscillation is far smaller."""
    for method in ("dopri5", "phem56"):
        sol, energy = pendulum_run(1000, 20, 1001, method=method, rtol=1e-5, atol=1e-7)
        drift, _ = drift_and_oscillation(sol.t, energy)
        assert drift > 0.5 * abs(energy[-1] - energy[0]) > 1e-3


@pytest.mark.parametrize("order", [2, 4])
def test_energy_with_a_mass_that_depends_on_positions(order):
    h, n = 0.02, 100_000 // order
    times = np.linspace(0.0, n * h, 5001)
    sol = daedal.solve(
        linkage(),
        (0.0, n * h),
        LINKAGE_START,
        method="rattle",
        order=order,
        fixed_step=h,
        t_eval=times,
        dense_output=False,
    )
    drift, oscillation = drift_and_oscillation(sol.t, linkage_energy(sol))
    assert oscillation < (1e-2, 1e-5)[order == 4] and drift < 0.03 * oscillation
    assert sol.drift["position before projection"] < 5e-15 and sol.drift["velocity before projection"] < 5e-14


# --- SHAKE ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pendulum", "driven_pendulum"])
def test_shake_is_rattle_without_the_projection_of_velocities(name):
    make, start = PROBLEMS[name]
    shake, rattle = (
        daedal.solve(make(), (0.0, 4.0), start, method=method, fixed_step=0.02) for method in ("shake", "rattle")
    )
    np.testing.assert_allclose(shake.q, rattle.q, atol=1e-11)
    np.testing.assert_allclose(shake.v, rattle.v, atol=1e-11)
    assert shake.drift["velocity before projection"] > 1e3 * rattle.drift["velocity before projection"]
    slopes = (shake.q[:, 2:] - shake.q[:, :-2]) / 0.04
    np.testing.assert_allclose(shake.raw.y[2:, 1:-1], slopes, atol=1e-12)


# --- the rest of the house --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "method", "tolerance"),
    [
        *[("pendulum", method, 1e-12) for method in ("rattle", "shake")],
        *[("driven_pendulum", method, 1e-9) for method in ("rattle", "shake")],
        ("linkage", "rattle", 1e-9),  # its mass depends on q
    ],
)
def test_functions_that_are_called_give_the_same(name, method, tolerance):
    make, start = PROBLEMS[name]
    traced, called = (
        daedal.solve(make(), (0.0, 1.0), start, method=method, fixed_step=0.02, compile=how)
        for how in ("always", "never")
    )
    np.testing.assert_allclose(called.q, traced.q, atol=tolerance)
    np.testing.assert_allclose(called.v, traced.v, atol=10.0 * tolerance)


def test_redundant_constraints():
    system = pendulum()
    twice = daedal.MechanicalSystem(
        mass=1.0,
        force=system.force,
        constraint=lambda t, q: np.array([q[0] ** 2 + q[1] ** 2 - 1.0, 2.0 * (q[0] ** 2 + q[1] ** 2 - 1.0)]),
        n_q=2,
        n_constraints=2,
    )
    start = PROBLEMS["pendulum"][1]
    once, two = (daedal.solve(x, (0.0, 1.0), start, method="rattle", fixed_step=0.02) for x in (system, twice))
    np.testing.assert_allclose(two.q, once.q, atol=1e-11)


def test_events_and_dense_output():
    (make, start), h = PROBLEMS["pendulum"], 0.01
    lowest = daedal.Event(lambda t, q, v: q[0], name="lowest")
    sol = daedal.solve(make(), (0.0, 3.0), start, method="rattle", order=4, fixed_step=h, events=lowest)
    exact = daedal.solve(make(), (0.0, 3.0), start, rtol=1e-12, atol=1e-13, events=lowest)
    assert [e.t for e in sol.events] == pytest.approx([e.t for e in exact.events], abs=1e-7)
    for t in (0.0333, 1.2345, 2.9999):
        np.testing.assert_allclose(sol(t).q, exact(t).q, atol=5e-7)
        np.testing.assert_allclose(sol(t).v, exact(t).v, atol=2e-6)
    stopped = daedal.solve(
        make(), (0.0, 3.0), start, method="shake", fixed_step=h, events=daedal.Event(lowest.function, terminal=True)
    )
    assert stopped.status == "event" and stopped.t[-1] == pytest.approx(exact.events[0].t, abs=1e-3)


def test_output_inside_of_steps_does_not_change_the_run():
    make, start = PROBLEMS["linkage"]
    options = {"method": "rattle", "fixed_step": 0.02}
    every = daedal.solve(make(), (0.0, 2.0), start, **options)
    some = daedal.solve(make(), (0.0, 2.0), start, t_eval=[0.31, 1.234, 2.0], dense_output=False, **options)
    np.testing.assert_array_equal(some.q[:, -1], every.q[:, -1])
    np.testing.assert_allclose(some.q[:, 1], every(1.234).q, atol=1e-13)


@pytest.mark.parametrize("method", ["rattle", "shake"])
def test_the_same_bits_again(method):
    make, start = PROBLEMS["driven_pendulum"]
    solver = daedal.prepare(make(), method=method, fixed_step=0.02)
    first = solver.solve((0.0, 2.0), start)
    solver.solve((0.0, 1.0), (np.array([0.0, 1.0]), start[1]))
    second = solver.solve((0.0, 2.0), start)
    np.testing.assert_array_equal(first.q, second.q)
    np.testing.assert_array_equal(first.v, second.v)


def test_other_parameters():
    system = daedal.MechanicalSystem(
        mass=lambda t, q, p: np.array([[p[0]]]),
        force=lambda t, q, v, p: np.array([-p[1] * q[0]]),
        n_q=1,
        params=[1.0, 4.0],
    )
    solver = daedal.prepare(system, method="rattle", fixed_step=0.01)
    first = solver.solve((0.0, 1.0), ([1.0], [0.0]))
    other = solver.solve((0.0, 1.0), ([1.0], [0.0]), params=[4.0, 1.0])
    assert first.q[0, -1] == pytest.approx(np.cos(2.0), abs=1e-4)
    assert other.q[0, -1] == pytest.approx(np.cos(0.5), abs=1e-4)
