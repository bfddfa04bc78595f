"""Constant steps on the problems of chapters 3 and 4 of Brenan, Campbell and Petzold, in double precision.

Implicit Runge-Kutta methods and BDF are written down from their definitions, with full Newton steps and difference
Jacobians; the pendulum is compared with its angle, integrated by SciPy.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import numpy as np
from scipy.integrate import solve_ivp

# --- methods --------------------------------------------------------------------------------------------------------


def collocation(c):
    """A and b of the collocation method with nodes c."""
    c = np.asarray(c, dtype=float)
    basis = [np.poly1d(np.poly(np.delete(c, j)) / np.prod(c[j] - np.delete(c, j))).integ() for j in range(c.size)]
    return np.array([[p(x) for p in basis] for x in c]), np.array([p(1.0) for p in basis])


def extrapolated_euler(numbers=(1, 2, 4)):
    """Backward Euler with n steps for each n, extrapolated to order len(numbers)."""
    s = sum(numbers)
    a, b, at = np.zeros((s, s)), np.zeros(s), 0
    weights = [
        math.prod(Fraction(n, n - m) for m in numbers if m != n) for n in numbers
    ]  # of 1/n-expansions: T = sum w_n T_n
    for n, weight in zip(numbers, weights):
        a[at : at + n, at : at + n] = np.tril(np.ones((n, n))) / n
        b[at : at + n] = float(weight) / n
        at += n
    return a, b


METHODS = {
    ("Gauss", 2): lambda: collocation([(3 - math.sqrt(3)) / 6, (3 + math.sqrt(3)) / 6]),
    ("Radau IIA", 2): lambda: collocation([1 / 3, 1.0]),
    ("Radau IIA", 3): lambda: collocation([(4 - math.sqrt(6)) / 10, (4 + math.sqrt(6)) / 10, 1.0]),
    ("midpoint", None): lambda: collocation([0.5]),
    ("two-stage SIRK", None): lambda: collocation([3 - 2 * math.sqrt(2), 1.0]),
    ("seven-stage extrapolation", None): extrapolated_euler,
    ("Lobatto IIIC", None): lambda: (
        np.array([[1 / 6, -1 / 3, 1 / 6], [1 / 6, 5 / 12, -1 / 12], [1 / 6, 2 / 3, 1 / 6]]),
        np.array([1 / 6, 2 / 3, 1 / 6]),
    ),
    ("SDIRK4", None): lambda: _stiffly_accurate(
        [
            [1 / 4],
            [1 / 2, 1 / 4],
            [17 / 50, -1 / 25, 1 / 4],
            [371 / 1360, -137 / 2720, 15 / 544, 1 / 4],
            [25 / 24, -49 / 48, 125 / 16, -85 / 12, 1 / 4],
        ]
    ),
}


def _stiffly_accurate(rows):
    a = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        a[i, : len(row)] = row
    return a, a[-1]


def newton(f: Callable, x: np.ndarray) -> np.ndarray:
    for _ in range(12):
        r = f(x)
        steps = 1e-7 * (1.0 + np.abs(x))
        jacobian = np.array([(f(x + d * e) - f(x - d * e)) / (2 * d) for d, e in zip(steps, np.eye(x.size))]).T
        change = np.linalg.solve(jacobian, r)
        x = x - change
        if np.max(np.abs(change)) < 1e-15 * (1.0 + np.max(np.abs(x))):
            break
    return x


def runge_kutta(residual: Callable, y: np.ndarray, slope: np.ndarray, method, steps: int) -> np.ndarray:
    """F(t, y, y') = 0 on [0, 1]; the unknowns are the slopes of the stages, from which all components are advanced."""
    a, b = method
    h, s, n = 1.0 / steps, b.size, y.size
    k = np.tile(slope, (s, 1))
    for i in range(steps):
        times = i * h + h * a.sum(axis=1)

        def equations(flat, y=y, times=times):
            slopes = flat.reshape(s, n)
            stages = y + h * a @ slopes
            return np.concatenate([residual(t, *point) for t, point in zip(times, zip(stages, slopes))])

        k = newton(equations, k.ravel()).reshape(s, n)
        y = y + h * b @ k
    return y


def bdf(residual: Callable, exact: Callable, k: int, steps: int) -> np.ndarray:
    """All points of BDF with k exact starting values on [0, 1]."""
    h = 1.0 / steps
    alpha = _bdf_coefficients(k)
    points = [exact(i * h) for i in range(k)]
    for i in range(k, steps + 1):
        past = sum(alpha[j] * points[-j] for j in range(1, k + 1))
        points.append(newton(lambda y, t=i * h, past=past: residual(t, y, (alpha[0] * y + past) / h), points[-1]))
    return np.array(points)


def _bdf_coefficients(k: int) -> np.ndarray:
    """alpha_j of sum_j alpha_j y_{n-j} = h y'_n: sum_i (1 - E)^i / i."""
    total = np.zeros(k + 1)
    for i in range(1, k + 1):
        total[: i + 1] += np.array([(-1) ** j * math.comb(i, j) for j in range(i + 1)]) / i
    return total


# --- problems -------------------------------------------------------------------------------------------------------


def index1(t, y, yp):
    return np.array([yp[0] - t * yp[1] + y[0] - (1 + t) * y[1], y[1] - math.sin(t)])


def index1_exact(t):
    return np.array([math.exp(-t) + t * math.sin(t), math.sin(t)])


def index2(t, y, yp):
    x1, x2, x3, x4, lam, mu = y
    return np.array(
        [
            yp[0] - x3 + x1 * mu,
            yp[1] - x4 + x2 * mu,
            yp[2] + lam * x1,
            yp[3] + lam * x2 + 1,
            (1 - x1 * x1 - x2 * x2) / 2,
            x1 * x3 + x2 * x4,
        ]
    )


def index3(t, y, yp):
    full = index2(t, np.append(y, 0.0), np.append(yp, 0.0))
    return full[:5]


@cache
def angle():
    options = {"method": "DOP853", "rtol": 2.3e-14, "atol": 1e-16, "dense_output": True, "max_step": 5e-3}
    return solve_ivp(lambda t, y: [y[1], -math.cos(y[0])], (0.0, 1.0), [0.0, 0.0], **options).sol


def pendulum(t):
    a, w = angle()(t)
    s, c = math.sin(a), math.cos(a)
    return np.array([c, s, -s * w, c * w, w * w - s, 0.0])


START = np.array([0.0, 0.0, 0.0, -1.0, 0.0, 0.0])


# --- tables ---------------------------------------------------------------------------------------------------------


def _method(row):
    return METHODS.get((row["method"], row.get("stages")))


def _order(coarse, fine):
    return math.log2(coarse / fine)


def _index1_steps(row):
    if row.get("k"):
        end = lambda n: bdf(index1, index1_exact, row["k"], n)[-1]  # noqa: E731
    elif _method(row):
        end = lambda n: runge_kutta(index1, index1_exact(0.0), np.array([-1.0, 1.0]), _method(row)(), n)  # noqa: E731
    else:
        return {}
    errors = {key: abs(end(int(key[1:]))[0] - index1_exact(1.0)[0]) for key in row["cells"] if key != "order"}
    coarse, fine = [value for value in errors.values() if value > 1e-12][-2:]
    return errors | {"order": _order(coarse, fine)}


def _index2_errors(row, steps):
    if row.get("k"):
        end = bdf(index2, pendulum, row["k"], steps)[-1]
    else:
        end = runge_kutta(index2, pendulum(0.0), START, _method(row)(), steps)
    error = np.abs(end - pendulum(1.0))
    return {"x": error[:4].max(), "lam": error[4], "mu": error[5]}


def _index2_steps(row):
    if not row.get("k") and not _method(row):
        return {}
    coarse, fine = _index2_errors(row, 40), _index2_errors(row, 80)
    return fine | {f"order_{key}": abs(_order(coarse[key], fine[key])) for key in ("x", "lam")}


def _index3_errors(row, steps):
    if row.get("k"):
        end = bdf(index3, lambda t: pendulum(t)[:5], row["k"], steps)[-1]
    elif _method(row):
        end = runge_kutta(index3, pendulum(0.0)[:5], START[:5], _method(row)(), steps)
    else:
        return {}
    error = np.abs(end - pendulum(1.0)[:5])
    return {"position": error[:2].max(), "velocity": error[2:4].max(), "lam": error[4]}


def _bdf_index1(row):
    errors = {}
    for key in row["cells"]:
        steps = int(key[1:])
        points = bdf(index1, index1_exact, row["k"], steps)
        errors[key] = max(np.abs(y - index1_exact(i / steps)).max() for i, y in enumerate(points))
    return errors


def _step_change(row):
    """x3/g'' of x1' = x2, x2' = x3, 0 = x1 - sin t at t = 1: two difference quotients in turn."""
    found = {}
    for key, h in (("h1", 0.1), ("h2", 0.05), ("h3", 0.025), ("h4", 0.0125)):
        before = row["ratio"] * h
        last, previous = (
            (math.sin(1.0) - math.sin(1.0 - h)) / h,
            (math.sin(1.0 - h) - math.sin(1.0 - h - before)) / before,
        )
        found[key] = (last - previous) / h / -math.sin(1.0)
    return found


def _stiff_limit(row):
    def run(eps):
        x, y, points = 1.0, 2.0, []
        for n in range(1, 11):
            h, t = 0.1, 0.1 * n
            # (1 + h) x - h/2 y = x0, -h/10 x + (eps + h) y = eps y0 + h cos t
            x, y = np.linalg.solve([[1 + h, -h / 2], [-h / 10, eps + h]], [x, eps * y + h * math.cos(t)])
            points.append((x, y))
        return np.array(points[5:])

    return {f"e{i}": np.abs(run(10.0**-i) - run(0.0)).max() for i in (2, 3, 4, 5)}


def _wrong_start(row):
    """Two difference quotients of BDF in turn of values of sin, at step 2k + 4 behind k wrong values from t = 0 on."""
    k, h = row["k"], 0.05
    alpha, last = _bdf_coefficients(k), 3 * k + 3
    x1 = np.sin(h * np.arange(last + 1))
    x2 = [sum(alpha[j] * x1[n - j] for j in range(k + 1)) / h for n in range(last - k, last + 1)]
    x3 = sum(alpha[j] * x2[-1 - j] for j in range(k + 1)) / h
    return {"error": abs(x3 + math.sin(h * last))}


RUNS = {
    "wrong-start": _wrong_start,
    "index1-steps": _index1_steps,
    "index2-steps": _index2_steps,
    "index3-steps": lambda row: _index3_errors(row, 80),
    "bdf-index1": _bdf_index1,
    "bdf-index2": lambda row: _index2_errors(row, 160),
    "bdf-index3": lambda row: _index3_errors(row, 160),
    "step-change": _step_change,
    "stiff-limit": _stiff_limit,
}
TABLES = tuple(RUNS)


def values(number: str, table: dict) -> Iterator[dict[str, float]]:
    """The values of the rows of a table, by column."""
    for row in table["rows"]:
        yield RUNS[number](row)
