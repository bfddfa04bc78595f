"""Half-explicit Runge-Kutta methods against figures: errors, evaluations and orders of HEM4 and its relatives.

Sources: Brasey and Hairer, Half-explicit Runge-Kutta methods for differential-algebraic systems of index 2, SIAM J.
Numer. Anal. 30 (1993), sections 4 to 6. The figures were computed independently, the references in quadruple precision
(seven-body mechanism) or by elliptic functions (pendulum).
"""

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ellipj, ellipk

import daedal
from daedal import HEDOP5, HEM3, HEM4, HEM5, PHEM56, HalfExplicit, library
from daedal.methods.half_explicit_tableaux import HEM4 as HEM4_TABLEAU
from daedal.methods.half_explicit_tableaux import RK4_HALF_EXPLICIT

SOURCE_CONTROL = {"controller": "classic", "norm": "max", "projection": "never"}  # section 5 of the source

# --- the pendulum: unit mass, length and gravity, from the horizontal at rest ---------------------------------------


def weight(t, q, v):
    return np.array([0.0, -1.0])


def rod(t, q):
    return np.array([0.5 * (q[0] * q[0] + q[1] * q[1] - 1.0)])


def rod_jacobian(t, q):
    return np.array([[q[0], q[1]]])


def rod_bias(t, q, v):
    return np.array([-(v[0] * v[0] + v[1] * v[1])])


def rod_rate(t, q):
    return np.zeros(1)


@cache
def pendulum():
    return daedal.MechanicalSystem(
        1.0,
        weight,
        rod,
        n_q=2,
        n_constraints=1,
        constraint_jacobian=rod_jacobian,
        constraint_t=rod_rate,
        acceleration_bias=rod_bias,
    ).compiled()


def swing(t):
    """Exact q, v, lambda: sin(theta/2) = k sn(K + t), theta' = 2 k cn(K + t), k^2 = 1/2."""
    sn, cn, dn, _ = ellipj(np.asarray(t, dtype=float) + ellipk(0.5), 0.5)
    k = math.sqrt(0.5)
    x, y, w = 2.0 * k * sn * dn, -(cn**2), 2.0 * k * cn
    return np.array([x, y]), np.array([-w * y, w * x]), w * w - y


def rod_multiplier(q, v):
    """lambda by (3.6) at points that need not be on the constraint."""
    return ((v * v).sum(axis=0) - q[1]) / (q * q).sum(axis=0)


@cache
def pendulum_errors(method, steps):
    """Largest errors over the grid of q, v, lambda by (3.6), and |g|, |G v|."""
    sol = daedal.solve(pendulum(), (0.0, 10.0), ([1.0, 0.0], [0.0, 0.0]), method=method, fixed_step=10.0 / steps)
    q, v = sol.raw.y[:2], sol.raw.y[2:]
    q_exact, v_exact, lam_exact = swing(sol.t)
    assert sol.t.size == steps + 1
    return np.array(
        [
            np.abs(q - q_exact).max(),
            np.abs(v - v_exact).max(),
            np.abs(rod_multiplier(q, v) - lam_exact).max(),
            np.abs((q * q).sum(axis=0) - 1.0).max() / 2.0,
            np.abs((q * v).sum(axis=0)).max(),
        ]
    )


def test_the_exact_pendulum():
    q, v, lam = swing(10.0)
    np.testing.assert_allclose(q, [-0.81158644619130383427, -0.58423235134539570106], rtol=1e-14)
    np.testing.assert_allclose(v, [-0.63152914906501758095, 0.87728879884106932896], rtol=1e-14)
    np.testing.assert_allclose(lam, 1.7526970540361871032, rtol=1e-14)


# N: q, v, lambda by (3.6), |g|
PENDULUM_HEM4 = {
    100: (1.115e-5, 1.552e-5, 1.981e-5, 3.30e-6),
    200: (1.060e-6, 1.480e-6, 2.017e-6, 1.36e-7),
    400: (8.220e-8, 1.151e-7, 1.663e-7, 6.31e-9),
    800: (5.657e-9, 7.933e-9, 1.165e-8, 3.26e-10),
    1600: (3.700e-10, 5.193e-10, 7.669e-10, 1.82e-11),
    3200: (2.365e-11, 3.320e-11, 4.917e-11, 1.08e-12),
}
PENDULUM_HEM3 = {
    100: (6.435e-3, 9.155e-3, 1.371e-2),
    400: (1.001e-4, 1.423e-4, 2.126e-4),
    1600: (1.558e-6, 2.214e-6, 3.308e-6),
}


@pytest.mark.parametrize("steps", PENDULUM_HEM4)
def test_pendulum_hem4(steps):
    errors = pendulum_errors(HEM4(projection="never"), steps)
    np.testing.assert_allclose(errors[:4], PENDULUM_HEM4[steps], rtol=0.01)
    assert errors[4] < 5e-16


@pytest.mark.parametrize("steps", PENDULUM_HEM3)
def test_pendulum_order_3(steps):
    errors = pendulum_errors(HEM3(projection="never"), steps)
    np.testing.assert_allclose(errors[:3], PENDULUM_HEM3[steps], rtol=0.01)
    assert errors[4] < 5e-16


@pytest.mark.parametrize(
    ("method", "order"),
    [
        (HEM3(projection="never"), 3),
        (HEM4(projection="never"), 4),
        (HEM4.family("1/5", "3/5", projection="never"), 4),
        (HEM4.family(0.4, 0.2, projection="never"), 4),
        (HEM5(projection="never"), 5),
        (PHEM56(projection="never"), 5),
        (HEDOP5(projection="never"), 5),
        (HalfExplicit(RK4_HALF_EXPLICIT, projection="never"), 3),  # nr. 11 of Table 1 fails: order 4 for ODEs only
    ],
    ids=lambda value: value.tableau.name if isinstance(value, HalfExplicit) else "",
)
def test_orders_on_the_pendulum(method, order):
    coarse, fine = (1600, 3200) if order < 5 else (400, 800)
    observed = np.log2(pendulum_errors(method, coarse) / pendulum_errors(method, fine))
    np.testing.assert_allclose(observed[:3], order, atol=0.12)
    assert observed[3] > order - 0.1  # the drift is no worse than the error


# tol: accepted, rejected, error of q at t = 10
PENDULUM_CONTROL = {1e-2: (34, 7, 1.3e-3), 1e-4: (144, 9, 1.91e-6), 1e-6: (659, 8, 8.83e-9), 1e-8: (3057, 9, 2.59e-11)}


@pytest.mark.parametrize("tol", PENDULUM_CONTROL)
def test_pendulum_with_step_control(tol):
    accepted, rejected, error = PENDULUM_CONTROL[tol]
    sol = daedal.solve(
        pendulum(),
        (0.0, 10.0),
        ([1.0, 0.0], [0.0, 0.0]),
        method=HEM4(**SOURCE_CONTROL),
        rtol=tol,
        atol=tol,
        first_step=0.01,
    )
    assert abs(sol.stats.steps - accepted) <= 1 + accepted // 500
    assert abs(sol.stats.rejected - rejected) <= 1
    assert np.abs(sol.raw.y[:2, -1] - swing(10.0)[0]).max() == pytest.approx(error, rel=0.05)


# --- local errors, from exact data at t = 1 -------------------------------------------------------------------------


def one_step(method, h, **options):
    q, v, _ = swing(1.0)
    return daedal.solve(pendulum(), (1.0, 1.0 + h), (q, v), method=method, **({"fixed_step": h} | options))


def test_local_errors_of_hem4():
    for h, q_error, v_error in ((0.1, 1.22e-7, 3.23e-7), (0.05, 3.33e-9, 9.26e-9), (0.025, 9.71e-11, 2.76e-10)):
        y = one_step(HEM4(projection="never"), h).raw.y[:, -1]
        q, v, _ = swing(1.0 + h)
        assert np.abs(y[:2] - q).max() == pytest.approx(q_error, rel=0.01)
        assert np.abs(y[2:] - v).max() == pytest.approx(v_error, rel=0.01)


def estimate(method, h):
    """The error estimate of a step from t = 1 in the largest component: the tolerance at which it is just accepted."""
    low, high = 1e-13, 1.0
    while high > 1.001 * low:
        tol = math.sqrt(low * high)
        sol = one_step(method, h, fixed_step=None, first_step=(1.0 + h) - 1.0, rtol=1e-14, atol=tol, dense_output=False)
        low, high = (tol, high) if sol.stats.rejected else (low, tol)
    return high


def test_the_estimate_is_the_error_of_the_fifth_stage():
    """|y_1 - Y_5| = 4.83e-4, 6.00e-5, 7.49e-6 in v, the larger part: slope 3."""
    errors = [estimate(HEM4(**SOURCE_CONTROL), h) for h in (0.1, 0.05, 0.025)]
    np.testing.assert_allclose(errors, [4.83e-4, 6.00e-5, 7.49e-6], rtol=0.003)
    np.testing.assert_allclose([np.log2(a / b) for a, b in pairwise(errors)], 3.0, atol=0.02)


@pytest.mark.parametrize(
    ("method", "slope"),
    [
        (HEM3(**SOURCE_CONTROL), 2.0),
        (HEM4(**SOURCE_CONTROL), 3.0),
        (HEM4.family("1/5", "3/5", **SOURCE_CONTROL), 3.0),
        (HEM5(**SOURCE_CONTROL), 4.7),  # e1^2/(e1 + e2/100) with e1 = O(h^4), e2 = O(h^3): towards 5
        (PHEM56(**SOURCE_CONTROL), 5.0),
        (HEDOP5(**SOURCE_CONTROL), 5.0),
    ],
    ids=lambda value: value.tableau.name if isinstance(value, HalfExplicit) else "",
)
def test_slopes_of_the_estimates(method, slope):
    coarse, fine = (estimate(method, h) for h in (0.05, 0.025))
    assert np.log2(coarse / fine) == pytest.approx(slope, abs=0.2)


# --- dense output ---------------------------------------------------------------------------------------------------

THETA = np.array([0.25, 0.5, 0.75])


def dense_errors(method, h, projected=False):
    """Errors of q and v at t = 1 + theta h, each the largest component."""
    sol = one_step(method, h)
    t = 1.0 + THETA * h
    y = sol(t).y if projected else daedal.Solution.__call__(sol, t)
    q, v, _ = swing(t)
    return np.array([np.abs(y[:2] - q).max(axis=0), np.abs(y[2:] - v).max(axis=0)])


def test_dense_output_of_hem4_with_six_functions():
    errors = dense_errors(HEM4(projection="never"), 0.0125)
    np.testing.assert_allclose(errors[0], [6.8e-10, 7.8e-10, 3.5e-10], rtol=0.03)
    np.testing.assert_allclose(errors[1], [3.4e-10, 4.4e-10, 4.0e-10], rtol=0.03)


def test_hermite_dense_output():
    """The methods without a dense output of their own: the cubic through both ends."""
    errors = dense_errors(HEM4.family("3/10", "1/5", projection="never"), 0.0125)
    np.testing.assert_allclose(errors[0], [1.9e-10, 3.4e-10, 1.9e-10], rtol=0.05)
    np.testing.assert_allclose(errors[1], [7.1e-10, 1.3e-9, 7.1e-10], rtol=0.05)


@pytest.mark.parametrize("projected", [False, True], ids=["raw", "projected"])
@pytest.mark.parametrize(
    ("kind", "slope", "sizes"),
    [(HEM3, 4, (0.05, 0.025)), (HEM4, 4, (0.025, 0.0125)), (HEM5, 4, (0.05, 0.025)), (HEDOP5, 4, (0.05, 0.025)),
     (PHEM56, 5, (0.1, 0.05))],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)  # fmt: skip
def test_orders_of_dense_output(kind, slope, sizes, projected):
    """Local errors O(h^slope) at every theta."""
    coarse, fine = (dense_errors(kind(projection="never"), h, projected) for h in sizes)
    np.testing.assert_allclose(np.log2(coarse / fine), slope, atol=0.6)  # terms of two orders meet in PHEM56


# --- the seven-body mechanism ---------------------------------------------------------------------------------------

# q, v and lambda at t = 0.025 and 0.03: extrapolation of order 16 in quadruple precision
SQUEEZER = {
    0.025: (
        (12.107149234447658663, -12.257030103575486277, 0.44097335558301191264, 0.19394516605445604406,
         0.49051954468158976184, -0.19394516605445604406, 1.2197667718104292774),
        (587.45978907780287074, -477.55714726426303147, 43.070005700074270956, 85.977841796785756382,
         -9.2594728826717604605, -85.977841796785756382, 32.023027092165277443),
        (48.672045278430511687, 24.945688806611631262, -17.050445160703090554, 13.906307430058651160,
         -26.390216169166391635, -38.458974452261435249),
    ),
    0.03: (
        (15.810771195153707097, -15.756371058411839470, 0.040822240119645804858, -0.53473011634207959377,
         0.52440996587995406937, 0.53473011634207959377, 1.0480807410419378731),
        (1139.9203022591060642, -1424.3792951775400732, 11.032911910618593745, 19.293374105032040832,
         0.57356991482950245382, -19.293374105032040832, 0.32317914924913087499),
        (199.17534810453862819, -29.755309974971763324, 23.066543611622151129, 31.452725275771137075,
         22.642494786394378578, 11.617392352611255907),
    ),
}  # fmt: skip


@cache
def squeezer():
    return library.seven_body(compiled=True)


def squeezer_errors(sol, t1):
    """Errors at the end: q, v relative to 1 + |v|, lambda by (3.6), and |g|; of what was integrated."""
    q, v, lam = (np.array(values) for values in SQUEEZER[t1])
    y = sol.raw.y[:, -1]
    point = squeezer().problem.at(t1, y[:7], y[7:])
    assert sol.t[-1] == pytest.approx(t1, rel=1e-12)
    return (
        np.abs(y[:7] - q).max(),
        (np.abs(y[7:] - v) / (1.0 + np.abs(v))).max(),
        np.abs(point.multipliers - lam).max(),
        np.abs(point.constraint).max(),
        np.abs(point.velocity).max(),
    )


def solve_squeezer(t1, method, **options):
    return daedal.solve(squeezer().problem, (0.0, t1), squeezer().initial, method=method, **options)


def test_the_squeezer_at_the_start():
    point = squeezer().problem.at(0.0, *squeezer().initial)
    np.testing.assert_allclose(point.acceleration[:2], [14222.4439199541138706, -10666.8329399655854029], rtol=1e-12)
    np.testing.assert_allclose(point.acceleration[2:], 0.0, atol=1e-8)
    np.testing.assert_allclose(point.multipliers[:2], [98.5668703962410896, -6.12268834425566266], rtol=1e-12)
    np.testing.assert_allclose(point.multipliers[2:], 0.0, atol=1e-11)


# tol: accepted, rejected, evaluations, errors of q, v, lambda; |g|; then evaluations and error of q at t = 0.03
WORK = {
    1e-1: (27, 8, 175, 6.08e-2, 1.3e-1, 2.1e0, 5.3e-5, 215, 2.26e-1),
    1e-2: (54, 13, 335, 2.95e-3, 6.6e-3, 8.2e-2, 3.9e-6, 420, 1.00e-2),
    1e-3: (114, 20, 670, 1.50e-4, 3.4e-4, 4.0e-3, 2.0e-7, 850, 5.01e-4),
    1e-4: (246, 34, 1400, 4.72e-6, 1.1e-5, 1.2e-4, 6.1e-9, 1790, 1.55e-5),
    1e-5: (526, 14, 2700, 1.77e-7, 3.9e-7, 4.5e-6, 2.2e-10, 3440, 5.77e-7),
    1e-6: (1138, 7, 5725, 6.86e-9, 1.5e-8, 1.7e-7, 8.8e-12, 7240, 2.18e-8),
    1e-7: (2459, 3, 12310, 2.86e-10, 6.3e-10, 6.7e-9, 4.2e-13, 15550, 8.98e-10),
    1e-8: (5306, 1, 26535, 1.25e-11, 2.8e-11, 2.9e-10, 2.0e-14, 33525, 3.93e-11),
}


@pytest.mark.parametrize("tol", WORK)
def test_work_and_precision_of_hem4(tol):
    accepted, rejected, evaluations, *errors, evaluations_03, error_03 = WORK[tol]
    options = {"rtol": tol, "atol": tol, "first_step": 1e-5, "dense_output": False}
    sol = solve_squeezer(0.025, HEM4(**SOURCE_CONTROL), **options)
    assert sol.stats.steps == pytest.approx(accepted, rel=0.02, abs=1)
    assert abs(sol.stats.rejected - rejected) <= 2
    assert sol.stats.residual_evaluations == 5 * (sol.stats.steps + sol.stats.rejected)
    assert sol.stats.residual_evaluations == pytest.approx(evaluations, rel=0.02, abs=5)
    found = squeezer_errors(sol, 0.025)
    np.testing.assert_allclose(np.log2(np.divide(found[:3], errors[:3])), 0.0, atol=0.3 if tol > 1e-8 else 1.0)
    assert found[3] <= 2.0 * errors[3] + 1e-15
    assert found[4] < 1e-12  # G v, with entries of v up to 600
    sol = solve_squeezer(0.03, HEM4(**SOURCE_CONTROL), **options)
    assert sol.stats.residual_evaluations == pytest.approx(evaluations_03, rel=0.02, abs=5)
    assert abs(np.log2(squeezer_errors(sol, 0.03)[0] / error_03)) < (0.3 if tol > 1e-8 else 1.0)


SQUEEZER_HEM4 = {500: 1.46e-7, 1000: 6.53e-9, 2000: 3.27e-10, 4000: 1.79e-11}  # N: error of q


@cache
def squeezer_error(method, steps):
    return squeezer_errors(solve_squeezer(0.025, method, fixed_step=0.025 / steps, dense_output=False), 0.025)


@pytest.mark.parametrize("steps", SQUEEZER_HEM4)
def test_the_squeezer_with_constant_steps(steps):
    rel = 0.02 if steps < 4000 else 0.1
    assert squeezer_error(HEM4(projection="never"), steps)[0] == pytest.approx(SQUEEZER_HEM4[steps], rel=rel)


@pytest.mark.parametrize(("kind", "error"), [(HEM5, 1.4e-10), (PHEM56, 4.5e-11), (HEDOP5, 7.1e-11)])
def test_order_5_on_the_squeezer(kind, error):
    coarse, fine = (squeezer_error(kind(projection="never"), steps) for steps in (500, 1000))
    assert fine[0] == pytest.approx(error, rel=0.05)
    np.testing.assert_allclose(np.log2(np.divide(coarse[:3], fine[:3])), 5.0, atol=0.35)


def test_order_3_and_the_classical_method_on_the_squeezer():
    for method in (HEM3(projection="never"), HalfExplicit(RK4_HALF_EXPLICIT, projection="never")):
        coarse, fine = (squeezer_error(method, steps) for steps in (1000, 2000))
        np.testing.assert_allclose(np.log2(np.divide(coarse[:3], fine[:3])), 3.0, atol=0.2)


@pytest.mark.parametrize("kind", [HEM3, HEM4, HEM5, PHEM56, HEDOP5])
def test_the_velocity_constraints_of_the_squeezer(kind):
    """To round-off at every step, without projection; the velocities are up to 1500."""
    sol = solve_squeezer(0.03, kind(projection="never"), rtol=1e-4, atol=1e-6)
    assert sol.success and sol.drift["velocity before projection"] < 1e-12


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_the_automatic_choice_on_the_squeezer(tol):
    sol = solve_squeezer(0.03, "auto", rtol=tol, atol=tol)
    assert sol.success and sol.method == "PHEM56" and sol.notes == ()
    np.testing.assert_allclose(sol.q[:, -1], SQUEEZER[0.03][0], atol=1000.0 * tol)


# --- a singular mass matrix -----------------------------------------------------------------------------------------


def massless_force(t, q, v):
    return np.array([0.0, -1.0, 0.0])


def crank(t, q):
    return np.array([q[0] - np.sin(q[2]), q[1] + np.cos(q[2])])


@cache
def massless():
    """The pendulum with its angle as a third coordinate that has no mass: only the augmented matrix is regular."""
    return daedal.MechanicalSystem([1.0, 1.0, 0.0], massless_force, crank, n_q=3, n_constraints=2).compiled()


def massless_errors(method, steps):
    """Errors at t = 10 of (x, y), their velocities, and of the multipliers (x, y) lambda."""
    start = ([1.0, 0.0, math.pi / 2.0], [0.0, 0.0, 0.0])
    sol = daedal.solve(massless(), (0.0, 10.0), start, method=method, fixed_step=10.0 / steps)
    (q, v, lam), y = swing(10.0), sol.raw.y[:, -1]
    return np.array([np.abs(y[:2] - q).max(), np.abs(y[3:5] - v).max(), np.abs(sol.lam[:, -1] - q * lam).max()])


def test_singular_mass_matrix():
    expected = {100: 1.22e-5, 200: 7.96e-7, 400: 5.08e-8, 800: 3.21e-9, 1600: 2.02e-10}
    errors = {steps: massless_errors(HEM4(projection="never"), steps) for steps in expected}
    for steps, value in expected.items():
        assert errors[steps][0] == pytest.approx(value, rel=0.01)
    np.testing.assert_allclose(np.log2(errors[800] / errors[1600]), 3.99, atol=0.02)


@pytest.mark.parametrize("kind", [HEM3, HEM5, PHEM56, HEDOP5])
def test_orders_with_a_singular_mass_matrix(kind):
    method = kind(projection="never")
    coarse, fine = (massless_errors(method, steps) for steps in (400, 800))
    observed = np.log2(coarse / fine)
    assert np.all(observed > method.max_order - 0.1)
    assert np.all(observed < method.max_order + (0.1 if kind is not HEDOP5 else 0.9))  # its leading terms nearly cancel


# --- a constraint that depends on time ------------------------------------------------------------------------------


def moving_rod(t, q):
    return np.array([0.5 * ((q[0] - 0.3 * np.sin(2.0 * t)) ** 2 + q[1] * q[1] - 1.0)])


@cache
def moving():
    """A pendulum whose pivot moves along 0.3 sin 2t."""
    return daedal.MechanicalSystem(1.0, weight, moving_rod, n_q=2, n_constraints=1).compiled()


RHEONOMIC = ([1.24201985, 0.25042393], [-0.47126547, 2.76849193], [8.98757044])


def moving_run(method, **options):
    start = ([math.sin(1.0), -math.cos(1.0)], [0.6, 0.0])
    return daedal.solve(moving(), (0.0, 10.0), start, method=method, **options)


@cache
def moving_reference():
    sol = moving_run(PHEM56(), fixed_step=10.0 / 12800)
    return np.concatenate([sol.q[:, -1], sol.v[:, -1]]), sol.lam[:, -1]


def test_rheonomic_figures():
    y, lam = moving_reference()
    np.testing.assert_allclose(y, np.concatenate(RHEONOMIC[:2]), atol=6e-9)
    np.testing.assert_allclose(lam, RHEONOMIC[2], atol=6e-9)


@pytest.mark.parametrize(
    ("method", "orders", "steps"),
    [
        (HEM3(projection="never"), (3.0, 3.0, 3.0), 1600),
        (HEM4(projection="never"), (4.04, 4.04, 4.00), 1600),
        (HEM4.family("1/5", "3/5", projection="never"), (4.0, 4.0, 4.0), 1600),
        (HEM5(projection="never"), (5.0, 5.0, 5.0), 800),
        (PHEM56(projection="never"), (5.0, 5.0, 5.0), 800),
        (HEDOP5(projection="never"), (5.0, 5.0, 5.0), 800),
        (HalfExplicit(RK4_HALF_EXPLICIT, projection="never"), (3.0, 3.0, 3.0), 1600),
    ],
    ids=lambda value: value.tableau.name if isinstance(value, HalfExplicit) else "",
)
def test_rheonomic_orders(method, orders, steps):
    reference, lam = moving_reference()
    errors = []
    for count in (steps // 2, steps):
        sol = moving_run(method, fixed_step=10.0 / count)
        y = sol.raw.y[:, -1]
        errors.append(
            [np.abs(y - reference)[:2].max(), np.abs(y - reference)[2:].max(), np.abs(sol.lam[:, -1] - lam).max()]
        )
    np.testing.assert_allclose(np.log2(np.divide(*errors)), orders, atol=0.2)


# --- multipliers of the stages --------------------------------------------------------------------------------------


def stage_multipliers(h):
    """Lambda_1, ..., Lambda_5 of a step of HEM4 from t = 1 by (5.5), and lambda at the nodes."""
    floats = HEM4_TABLEAU.floats()
    rows, c = np.vstack([floats["a"], floats["b"]]), np.append(floats["c"], 1.0)
    q0, v0, _ = swing(1.0)
    q, v, rates, result = [q0], [v0], [], []
    for i in range(5):
        q.append(q0 + h * sum(rows[i + 1, j] * v[j] for j in range(i + 1)))
        known = v0 + h * sum((rows[i + 1, j] * rates[j] for j in range(i)), np.zeros(2))
        matrix = np.block([[np.eye(2), q[i][:, None]], [q[i + 1][None, :], np.zeros((1, 1))]])
        solution = np.linalg.solve(matrix, [0.0, -1.0, -(q[i + 1] @ known) / (h * rows[i + 1, i])])
        rates.append(solution[:2])
        result.append(solution[2])
        v.append(known + h * rows[i + 1, i] * rates[i])
    return np.array(result), swing(1.0 + c[:5] * h)[2], np.concatenate([q[-1], v[-1]])


def test_multipliers_of_the_stages():
    """They are not lambda: slopes 1, 1, 2, 2, 2; the compiled step is the one written down here."""
    errors = []
    for h in (0.002, 0.001):
        multipliers, exact, y1 = stage_multipliers(h)
        errors.append(np.abs(multipliers - exact))
        np.testing.assert_allclose(one_step(HEM4(projection="never"), h).raw.y[:, -1], y1, rtol=1e-13)
    np.testing.assert_allclose(np.log2(errors[0] / errors[1]), [1.0, 1.0, 2.0, 2.0, 2.0], atol=0.05)
