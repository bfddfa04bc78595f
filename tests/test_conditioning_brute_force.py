"""Amplification factors against brute force: problems are perturbed, solved, and compared.

No perturbation may have a larger effect than the factor allows; the worst one that follows from the transition
matrices must come within a factor of 3 of it. For linear problems the effect of a perturbation is the solution with
nothing else on the right.
"""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import daedal
from daedal import LinearDAE
from daedal.analysis import analyse_conditioning

T = 2.0
SLACK = 1.02  # quadrature of the factors, tolerance of the solutions
ACCURACY = {"rtol": 1e-7, "atol": 1e-9}


def constant_index1():
    A = np.array([[-1.0, 3.0, 0.0], [0.0, -0.5, 2.0], [-1.0, 0.0, -1.0]])
    B = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, -1.0]])
    C = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, -0.5]])
    return (lambda t: A), (lambda t: B), (lambda t: C), (lambda t: np.array([[1.0, 0.3], [-0.2, 0.5]]))


def varying_index1():
    def A(t):
        return np.array([[-0.3, 2.0 + np.sin(3.0 * t)], [-1.0, -0.3]])

    def B(t):
        return np.array([[np.cos(t)], [1.0]])

    def C(t):
        return np.array([[1.0, np.sin(2.0 * t)]])

    return A, B, C, lambda t: np.array([[1.5 + np.cos(2.0 * t)]])


def skew_index2():
    A = np.array([[-0.5, 1.0, 0.0], [-1.0, -0.5, 1.0], [0.5, 0.0, -1.0]])
    B, C = np.array([[1.0], [1.0], [0.0]]), np.array([[1.2, -1.0, 0.4]])
    return (lambda t: A), (lambda t: B), (lambda t: C), (lambda t: np.zeros((1, 1)))


def turning_index2():
    def A(t):
        return np.array([[-0.2, 1.0, 0.0], [-1.0, -0.2, np.sin(t)], [0.3, 0.0, -0.5]])

    def B(t):
        return np.array([[np.cos(t)], [np.sin(t)], [0.3]])

    def C(t):
        return np.array([[np.cos(1.3 * t), np.sin(1.3 * t), 0.5 * np.sin(t)]])

    return A, B, C, lambda t: np.zeros((1, 1))


PROBLEMS = {f.__name__: f() for f in (constant_index1, varying_index1, skew_index2, turning_index2)}
INDEX1, INDEX2 = list(PROBLEMS)[:2], list(PROBLEMS)[2:]


def problem_with(name, p=None, q=None, q_rate=None):
    A, B, C, D = PROBLEMS[name]
    n_x, n_y = B(0.0).shape
    nothing_p, nothing_q = np.zeros(n_x), np.zeros(n_y)
    rates = {"q_derivative": q_rate, "C_derivative": lambda t: rate(C, t), "D_derivative": lambda t: rate(D, t)}
    return LinearDAE(A, B, C, D, p or (lambda t: nothing_p), q or (lambda t: nothing_q), n_x=n_x, n_y=n_y, **rates)


@cache
def found_for(name):
    return analyse_conditioning(problem_with(name), (0.0, T), points=61)


def effect(name, start=None, t_end=T, **perturbation):
    """|x| and |y| over the solution."""
    problem = problem_with(name, **perturbation)
    x0 = np.zeros(problem.n_x) if start is None else start
    options = {"formulation": "stabilised_reduction"} if name in INDEX2 else {}
    sol = daedal.solve(problem, (0.0, t_end), (x0, None), compile="never", max_step=0.1, **options, **ACCURACY)
    assert sol.success, sol.message
    x, y = sol.y[: problem.n_x], sol.y[problem.n_x : problem.n]
    return np.linalg.norm(x, axis=0), np.linalg.norm(y, axis=0)


def smooth(random, size, n):
    """A function of time whose values and whose norm stay below 1: waves with random frequencies and directions."""
    frequencies, directions = random.uniform(0.0, size, 3), random.normal(size=(3, n))
    directions /= 3.0 * np.linalg.norm(directions, axis=1)[:, None]
    phases = random.uniform(0.0, 7.0, 3)

    def value(t):
        return np.sin(frequencies * t + phases) @ directions

    def derivative(t):
        return (frequencies * np.cos(frequencies * t + phases)) @ directions

    return value, derivative


# --- random perturbations stay below the factors ----------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_random_perturbations_stay_below_the_factors(name):
    random = np.random.default_rng(7)
    found = found_for(name)
    n_x, n_y = PROBLEMS[name][1](0.0).shape
    for frequency in (0.5, 4.0):
        p, _ = smooth(random, frequency, n_x)
        x, y = effect(name, p=p)
        assert 0.0 < x.max() <= SLACK * found.factor("x", "p")
        assert 0.0 < y.max() <= SLACK * found.factor("y", "p")
        q, rate = smooth(random, frequency, n_y)
        times = np.linspace(0.0, T, 400)
        largest, fastest = (max(np.linalg.norm(one(t)) for t in times) for one in (q, rate))
        C, B = PROBLEMS[name][2](0.0), PROBLEMS[name][1](0.0)
        on_constraint = -B @ np.linalg.solve(C @ B, q(0.0)) if name in INDEX2 else np.zeros(n_x)
        x, y = effect(name, q=q, q_rate=rate, start=on_constraint)
        rates = found.amplification.get(("y", "q'"), np.zeros(1)).max()
        assert 0.0 < x.max() <= SLACK * largest * found.factor("x", "q")
        assert 0.0 < y.max() <= SLACK * (largest * found.factor("y", "q") + fastest * rates)


@pytest.mark.parametrize("name", PROBLEMS)
def test_initial_values(name):
    """Random directions: none has a larger effect than the factor, one comes near it."""
    random = np.random.default_rng(8)
    found = found_for(name)
    B, C = PROBLEMS[name][1](0.0), PROBLEMS[name][2](0.0)
    free = np.eye(len(B)) - (B @ np.linalg.solve(C @ B, C) if name in INDEX2 else 0.0)
    largest_x = largest_y = 0.0
    for _ in range(4):
        start = random.normal(size=len(B))
        start /= np.linalg.norm(start)
        x, y = effect(name, start=free @ start)
        assert x.max() <= SLACK * found.factor("x", "x(0)") and y.max() <= SLACK * found.factor("y", "x(0)")
        largest_x, largest_y = max(largest_x, x.max()), max(largest_y, y.max())
    assert largest_x >= found.factor("x", "x(0)") / 3.0
    assert largest_y >= found.factor("y", "x(0)") / 3.0


# --- the worst ones reach a third of them -----------------------------------------------------------------------------


def rate(f, t, h=1e-5):
    return (f(t + h) - f(t - h)) / (2.0 * h)


def state_and_maps(name):
    """M, R_p, R_q, Y as functions of t: w' = M w + R_p p + R_q q, x = w + ..., y = Y w + ..."""
    A, B, C, D = PROBLEMS[name]
    one = np.eye(len(A(0.0)))
    if name in INDEX1:
        return (
            lambda t: A(t) - B(t) @ np.linalg.solve(D(t), C(t)),
            lambda t: one,
            lambda t: -B(t) @ np.linalg.inv(D(t)),
            lambda t: -np.linalg.solve(D(t), C(t)),
        )

    def F(t):
        return B(t) @ np.linalg.inv(C(t) @ B(t))

    def free(t):
        return one - F(t) @ C(t)

    return (
        lambda t: free(t) @ A(t) + rate(free, t),
        free,
        lambda t: -free(t) @ (A(t) @ F(t) - rate(F, t)),
        lambda t: -np.linalg.solve(C(t) @ B(t), (rate(C, t) + C(t) @ A(t)) @ free(t)),
    )


def worst(name, source, out, t_end):
    """Perturbations of size 1 that push the state at t_end in one direction at all times.

    They follow from the adjoint equation, l' = -M^T l: the effect on d is the integral of |R^T l|. What acts at once
    may point the other way; so in the second one the sign changes shortly before the end.
    """
    M, R_p, R_q, Y = state_and_maps(name)
    R, L = (R_p if source == "p" else R_q), np.eye(len(M(0.0))) if out == "x" else Y(t_end)
    times, best = np.linspace(0.0, t_end, 100), np.zeros((100, 1))
    for direction in np.linalg.svd(L)[0].T:
        adjoint = solve_ivp(
            lambda s, l: -M(s).T @ l, (t_end, 0.0), L.T @ direction, dense_output=True, rtol=1e-5, atol=1e-7
        )
        pushes = np.array([R(t).T @ adjoint.sol(t) for t in times])
        best = max(best, pushes, key=lambda one: np.linalg.norm(one, axis=1).sum())
    sizes = np.linalg.norm(best, axis=1)[:, None]
    smooth = best / np.sqrt(sizes**2 + 1e-2 * sizes.max() ** 2)  # where the direction turns over, too
    turned = np.tanh((0.9 * t_end - times) / (0.03 * t_end))[:, None] * smooth
    return [CubicSpline(times, one) for one in ((smooth, turned) if out == "y" else (smooth,))]


def constants_in(matrix):
    """Perturbations that do not change, in the directions that a matrix amplifies."""
    for direction in np.linalg.svd(matrix)[2]:
        yield CubicSpline([0.0, 1.0], [direction, direction])


@pytest.mark.parametrize("out", ["x", "y"])
@pytest.mark.parametrize("source", ["p", "q"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_worst_perturbation_comes_within_a_factor_of_3(name, source, out):
    found = found_for(name)
    allowed, t_end = found.factor(out, source), float(found.t[np.argmax(found.amplification[out, source])])
    A, B, C, D = (one(t_end) for one in PROBLEMS[name])
    CB = np.linalg.inv(C @ B) if name in INDEX2 else None
    at_once = {
        ("x", "p"): np.zeros((1, len(A))),
        ("x", "q"): np.zeros((1, len(D))) if CB is None else B @ CB,
        ("y", "p"): np.zeros((1, len(A))) if CB is None else CB @ C,
        ("y", "q"): np.linalg.inv(D) if CB is None else CB @ C @ A @ B @ CB,
    }[out, source]
    candidates = [*constants_in(at_once)]
    if t_end > 0.0 and not (name in INDEX2 and (out, source) == ("y", "q")):  # where rates of q have a part as well
        candidates += worst(name, source, out, t_end)
    largest = 0.0
    for push in candidates:
        given = {"p": push} if source == "p" else {"q": push, "q_rate": push.derivative()}
        C0, B0 = PROBLEMS[name][2](0.0), PROBLEMS[name][1](0.0)
        follows = source == "q" and name in INDEX2
        start = -B0 @ np.linalg.solve(C0 @ B0, push(0.0)) if follows else np.zeros(len(A))
        x, y = effect(name, start=start, t_end=max(t_end, 0.01), **given)
        effects = x if out == "x" else y
        assert effects.max() <= SLACK * allowed
        largest = max(largest, float(effects.max()))
    assert allowed / 3.0 <= largest


@pytest.mark.parametrize("name", INDEX2)
def test_the_rate_of_a_constraint_reaches_y(name):
    """q of size 1/w that oscillates with the frequency w: its rate counts, not its size."""
    found, w = found_for(name), 40.0
    direction = np.ones(1)

    def q(t):
        return np.sin(w * t) / w * direction

    _, y = effect(name, q=q, q_rate=lambda t: np.cos(w * t) * direction)
    allowed = found.factor("y", "q'") + found.factor("y", "q") / w
    assert allowed / 3.0 <= y.max() <= SLACK * allowed


# --- nearly index 2 ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [1e-3, 1e-5])
def test_nearly_index_2(eps):
    """Slow errors of the constraint reach y by their rate, and jumps multiplied by 1/eps."""
    A, B, C = np.array([[-1.0, 1.0], [0.0, -2.0]]), np.array([[1.0], [0.5]]), np.array([[1.0, 0.2]])
    found = analyse_conditioning(LinearDAE(A, B, C, [[eps]], [0.0, 0.0], [0.0], n_x=2, n_y=1), (0.0, 1.0), points=21)
    w = 20.0
    for q, allowed in (
        (lambda t: np.array([np.sin(w * t) / w]), found["layer_k2_hat"] * (1.0 + np.linalg.norm(C @ A) / w)),
        (lambda t: np.array([1.0]), found.factor("y", "q")),  # a jump at the start, where x is 0
    ):
        problem = LinearDAE(A, B, C, [[eps]], [0.0, 0.0], q, n_x=2, n_y=1)
        sol = daedal.solve(problem, (0.0, 1.0), ([0.0, 0.0], None), compile="never", **ACCURACY)
        y = np.abs(sol.y[2]).max()
        assert allowed / 3.0 <= y <= SLACK * allowed


# --- nonlinear problems -----------------------------------------------------------------------------------------------


def test_nonlinear_index_2_problem_along_its_solution():
    """The pendulum with position and velocity constraints: small perturbations of the start and of the forces."""

    def f(t, y, z, push):
        x1, x2, v1, v2 = y
        lam, mu = z
        return np.array(
            [v1 + x1 * mu + push[0], v2 + x2 * mu + push[1], -x1 * lam + push[2], -x2 * lam + 1.0 + push[3]]
        )

    def g(t, y, z, push):
        x1, x2, v1, v2 = y
        return np.array([x1**2 + x2**2 - 1.0, x1 * v1 + x2 * v2])

    pendulum = daedal.SemiExplicitDAE(f, g, 4, 2, params=np.zeros(4))
    options = {"rtol": 1e-9, "atol": 1e-11}
    end, size = 4.0, 1e-5

    def run(angle, speed, push):
        start = [np.cos(angle), np.sin(angle), -speed * np.sin(angle), speed * np.cos(angle)]
        return daedal.solve(pendulum.with_params(push), (0.0, end), (start, None), **options)

    base = run(0.3, 0.0, np.zeros(4))
    found = analyse_conditioning(pendulum, base)
    assert found.index == 2
    times = np.linspace(0.0, end, 60)
    moved = []
    for change in ((size, 0.0), (0.0, size)):
        other = run(0.3 + change[0], change[1], np.zeros(4))
        moved.append(np.linalg.norm(other(times)[:4] - base(times)[:4], axis=0).max() / size)
    assert found["k1"] / 3.0 <= max(moved) <= SLACK * found["k1"]
    pushed = []
    for push in np.vstack([np.eye(4), -np.eye(4)]):
        other = run(0.3, 0.0, size * push)
        pushed.append(np.linalg.norm(other(times)[:4] - base(times)[:4], axis=0).max() / size)
    assert found["k2"] / 3.0 <= max(pushed) <= SLACK * found["k2"]
