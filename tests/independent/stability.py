"""Ascher and Petzold's examples by backward Euler in 200 digits, h = 0.01 up to t = 1; the solution is e^t (1, ..., 1).

Every step solves one linear system, whose rows are written down from the paper, formulation by formulation.
"""

from collections.abc import Callable, Iterator

from mpmath import cos, exp, lu_solve, matrix, mp, mpf, sin

DIGITS = 200  # some errors grow to 1e150 beside others of 1e-3
STEPS = 100
with mp.workdps(DIGITS):
    H = mpf(1) / STEPS


class Rows:
    """The linear equations of a step for the unknowns x_0, ..., x_{n-1}."""

    def __init__(self, n: int):
        self.left, self.right, self.count = matrix(n, n), matrix(n, 1), 0

    def add(self, terms: dict[int, mpf], right: mpf) -> None:
        for i, value in terms.items():
            self.left[self.count, i] += value
        self.right[self.count] = right
        self.count += 1

    def solve(self) -> list[mpf]:
        return list(lu_solve(self.left, self.right))


# --- Examples 1 and 2: x' = A x + B y + q, 0 = C x + r --------------------------------------------------------------


def example1(t):
    nu = mpf(1000)
    s, c, e = sin(nu * t), cos(nu * t), exp(t)
    rate = -(nu * (c - s) + s + c) * e
    return -1, (s, c), (s, c), (nu * c, -nu * s), [e * (2 + s / (2 - t)), e * (2 + c / (2 - t))], -(s + c) * e, rate


def example2(t):
    nu, e = mpf(1000), exp(t)
    b, c, slope = ((2 - t) * nu, nu - 1), (t + 2, t * t - 4), (1, 2 * t)
    rate = -(2 * t + 1 + t * t + t - 2) * e
    return 0, b, c, slope, [e * (1 + nu), e * (1 + (nu - 1) / (2 - t))], -(t * t + t - 2) * e, rate


def first_order(example: Callable, method: str, gamma: mpf) -> dict[str, mpf]:
    """Largest error, error of x_1 and drift at t = 1."""
    x = [mpf(1), mpf(1)]
    for n in range(1, STEPS + 1):
        t = n * H
        a, b, c, slope, q, r, rate = example(t)
        cb = c[0] * b[0] + c[1] * b[1]
        f = [b[0] / cb, b[1] / cb]
        cq = c[0] * q[0] + c[1] * q[1]
        rows = Rows(3)
        if method in ("Baumgarte", "direct"):
            for i in range(2):
                rows.add({i: 1 - H * a, 2: -H * b[i]}, x[i] + H * q[i])
            if method == "direct":
                rows.add({0: c[0], 1: c[1]}, -r)
            else:
                rows.add({j: a * c[j] + slope[j] + gamma * c[j] for j in range(2)} | {2: cb}, -(cq + rate + gamma * r))
        else:
            # x' = (H A - F C') x + H q - F r' + C^T mu, with H = I - F C
            for i in range(2):
                terms = {j: (1 if i == j else 0) * (1 - H * a) + H * f[i] * (a * c[j] + slope[j]) for j in range(2)}
                right = x[i] + H * (q[i] - f[i] * cq - f[i] * rate)
                if method == "projected invariants":
                    rows.add(terms | {2: -H * c[i]}, right)
                elif i == 0:
                    rows.add(terms, right)
            rows.add({0: c[0], 1: c[1]}, -r)
            if method == "state space":
                rows.add({2: mpf(1)}, mpf(0))
        x = rows.solve()[:2]
    error = [abs(value - exp(1)) for value in x]
    drift = abs(c[0] * x[0] + c[1] * x[1] + r)
    return {"max_norm": max(error), "error": error[0], "drift": drift}


# --- Example 3 ------------------------------------------------------------------------------------------------------
# Unknowns p1, p2, v1, v2, s, m1, m2; s is lambda less its exact value. With E acting on v2 alone,
# v' = W (v2 - e) + e (1, 1) - B s;  g'' = 0 makes it  v' = K (v2 - e) + e (1, 1),  K = W - F (C W + 2),  F = B/(C B).


class Point:
    """The coefficients at a time."""

    def __init__(self, t, nu, kappa):
        self.t, self.e = t, exp(t)
        self.b = ((4 - t * t) * nu, (nu - 1) * (t + 2))
        self.c = (mpf(1), t - 2)
        self.w = (kappa * (2 * nu - 1), kappa * (nu * nu + (nu - 1) ** 2) / (nu * (2 - t)))
        self.f = (nu, (nu - 1) / (2 - t))
        cw = self.w[0] + (t - 2) * self.w[1]
        self.cw = cw
        self.k = tuple(w - f * (cw + 2) for w, f in zip(self.w, self.f))

    def position(self) -> tuple[dict[int, mpf], mpf]:
        return {0: self.c[0], 1: self.c[1]}, -(1 - self.t) * self.e

    def velocity(self) -> tuple[dict[int, mpf], mpf]:
        return {1: mpf(1), 2: self.c[0], 3: self.c[1]}, self.t * self.e


def plus(*terms: tuple[mpf, tuple[dict[int, mpf], mpf]]) -> tuple[dict[int, mpf], mpf]:
    """A combination of equations."""
    left: dict[int, mpf] = {}
    for factor, (equation, _) in terms:
        for i, value in equation.items():
            left[i] = left.get(i, mpf(0)) + factor * value
    return left, sum(factor * right for factor, (_, right) in terms)


def second_order(nu: mpf, kappa: mpf, step: Callable) -> list[mpf]:
    """The seven unknowns at t = 1; ``step(rows, point, before, old)`` writes the equations down."""
    x, before = [mpf(1)] * 4, Point(mpf(0), nu, kappa)
    for n in range(1, STEPS + 1):
        point = Point(n * H, nu, kappa)
        rows = Rows(7)
        finish = step(rows, point, before, x)
        solved = rows.solve()
        x = finish(solved) if finish else solved
        before = point
    return x


def _nothing(rows: Rows, *unknowns: int) -> None:
    for i in unknowns:
        rows.add({i: mpf(1)}, mpf(0))


def _kinematics(rows: Rows, old, direction=None) -> None:
    for i in range(2):
        along = {5: -H * direction[i]} if direction else {}
        rows.add({i: mpf(1), 2 + i: -H} | along, old[i])


def _dynamics(rows: Rows, point: Point, old, slopes, with_force: bool, direction=None) -> None:
    for i in range(2):
        terms = {2 + i: mpf(1)}
        terms[3] = terms.get(3, mpf(0)) - H * slopes[i]
        if with_force:
            terms[4] = H * point.b[i]
        if direction:
            terms[6] = -H * direction[i]
        rows.add(terms, old[2 + i] + H * point.e * (1 - slopes[i]))


def _direction(name: str, point: Point):
    return {"B": point.b, "C^T": point.c, "unit": (mpf(0), mpf(1))}[name]


def projected_invariants(name: str, k: int) -> Callable:
    def step(rows, point, before, old):
        d = _direction(name, point)
        _kinematics(rows, old, d)
        _dynamics(rows, point, old, point.k, False, d if k == 2 else None)
        rows.add(*point.position())
        if k == 2:
            rows.add(*point.velocity())
            _nothing(rows, 4)
        else:
            _nothing(rows, 4, 6)

    return step


def stabilised(name: str) -> Callable:
    def step(rows, point, before, old):
        _kinematics(rows, old, _direction(name, point))
        _dynamics(rows, point, old, point.w, True)
        rows.add(*point.position())
        rows.add(*point.velocity())
        _nothing(rows, 6)

    return step


def index3(rows, point, before, old):
    _kinematics(rows, old)
    _dynamics(rows, point, old, point.w, True)
    rows.add(*point.position())
    _nothing(rows, 5, 6)


def index2(gamma: mpf) -> Callable:
    def step(rows, point, before, old):
        _kinematics(rows, old)
        _dynamics(rows, point, old, point.w, True)
        rows.add(*plus((mpf(1), point.velocity()), (gamma, point.position())))
        _nothing(rows, 5, 6)

    return step


def baumgarte(gamma: mpf) -> Callable:
    def step(rows, point, before, old):
        _kinematics(rows, old)
        _dynamics(rows, point, old, point.w, True)
        # g'' = (C W + 2) (v2 - e) - C B s
        acceleration = {3: point.cw + 2, 4: -(4 - point.t**2)}, (point.cw + 2) * point.e
        rows.add(*plus((mpf(1), acceleration), (2 * gamma, point.velocity()), (gamma**2, point.position())))
        _nothing(rows, 5, 6)

    return step


def state_space(first: int) -> Callable:
    def step(rows, point, before, old):
        rows.add({first: mpf(1), 2 + first: -H}, old[first])
        terms = {2 + first: mpf(1)}
        terms[3] = terms.get(3, mpf(0)) - H * point.k[first]
        rows.add(terms, old[2 + first] + H * point.e * (1 - point.k[first]))
        rows.add(*point.position())
        rows.add(*point.velocity())
        _nothing(rows, 4, 5, 6)

    return step


def projection(weight: str, levels: int) -> Callable:
    """A step of the underlying ODE, then the nearest point on g = 0, and for two levels on g' = 0 as well."""

    def step(rows, point, before, old):
        _kinematics(rows, old)
        _dynamics(rows, point, old, point.k, False)
        _nothing(rows, 4, 5, 6)

        def finish(x):
            norm = point.c[0] ** 2 + point.c[1] ** 2
            d = point.f if weight == "M" else tuple(c / norm for c in point.c)
            for equation, shift in ((point.position(), 0), (point.velocity(), 2))[:levels]:
                left, right = equation
                residual = sum(value * x[i] for i, value in left.items()) - right
                for i in range(2):
                    x[shift + i] -= d[i] * residual
            return x

        return finish

    return step


def essential(nu: mpf) -> Callable:
    """(R p)' = R v + R' p and (R v)' = R v' + R' v, with R = ((1 - nu)/nu, 2 - t) and R' = (0, -1)."""

    def step(rows, point, before, old):
        first, second = (1 - nu) / nu, 2 - point.t
        u = first * old[0] + (2 - before.t) * old[1]
        w = first * old[2] + (2 - before.t) * old[3]
        rows.add({0: first, 1: second + H, 2: -H * first, 3: -H * second}, u)
        k, e = first * point.k[0] + second * point.k[1], point.e
        rows.add({2: first, 3: second - H * (k - 1)}, w + H * e * (first + second - k))
        rows.add(*point.position())
        rows.add(*point.velocity())
        _nothing(rows, 4, 5, 6)

    return step


def formulation(row: dict, nu: mpf) -> Callable:
    """The step of a row of the tables kappa-0, kappa-1 and kappa-2."""
    name = row["formulation"]
    gamma = mpf(row.get("gamma", 0))
    return {
        "projected invariants": lambda: projected_invariants(row["D"], row["k"]),
        "step and projection": lambda: projection(row["W"], row["levels"]),
        "index 3": lambda: index3,
        "index 2": lambda: index2(gamma),
        "Baumgarte": lambda: baumgarte(gamma),
        "state space": lambda: state_space(0 if row["R"][0][0] == 1.0 else 1),
        "essential ODE": lambda: essential(nu),
    }[name]()


def errors(x: list[mpf]) -> dict[str, mpf]:
    error = [abs(value - exp(1)) for value in x[:4]]
    return {"position": max(error[:2]), "velocity": max(error[2:])}


def printed_block(row: dict, kappa: mpf) -> dict[str, mpf]:
    """A row of Tables 4.3 to 4.8."""
    nu = mpf(row["nu"])
    if row["form"] == "index 2":
        x = second_order(nu, kappa, index2(mpf(0)))
        e1, e2 = x[0] - exp(1), x[1] - exp(1)
        return errors(x) | {"drift": abs(e1 - 2 * e2), "true_drift": abs(e1 - e2)}
    if row["form"] == "projected invariants":
        x = second_order(nu, kappa, projected_invariants(row["D"], 1))
        return errors(x) | {"mu": abs(x[5]), "drift": abs(x[2] - x[3] + x[1] - exp(1))}
    x = second_order(nu, kappa, stabilised(row["D"]))
    return errors(x) | {"mu": abs(x[5])}


def values(number: str, table: dict) -> Iterator[dict[str, mpf]]:
    """The values of the rows of a table, by column."""
    with mp.workdps(DIGITS):
        yield from _values(number, table)


def _values(number: str, table: dict) -> Iterator[dict[str, mpf]]:
    for row in table["rows"]:
        if "example" in table and table["example"] < 3:
            example = (example1, example2)[table["example"] - 1]
            found = first_order(example, row["method"], mpf(row.get("gamma", 0)))
            if table["example"] == 1:
                found["error"] = found["max_norm"]
            yield found
        elif number.startswith("kappa"):
            yield _unless_singular(further_formulation, row, mpf(table["kappa"]))
        else:
            yield _unless_singular(printed_block, row, mpf(table["kappa"]))


def further_formulation(row: dict, kappa: mpf) -> dict[str, mpf]:
    """A row of the tables kappa-0, kappa-1 and kappa-2."""
    nu = mpf(row["nu"])
    return errors(second_order(nu, kappa, formulation(row, nu)))


def _unless_singular(compute: Callable, row: dict, kappa: mpf) -> dict[str, mpf]:
    """For kappa = 2 and nu = 100 the matrix of step 99 is singular in some forms."""
    try:
        return compute(row, kappa)
    except ZeroDivisionError:
        return {}


TABLES = ("4.1", "4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "4.8", "kappa-0", "kappa-1", "kappa-2")
