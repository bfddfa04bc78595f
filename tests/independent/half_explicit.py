"""Half-explicit Runge-Kutta steps of Brasey and Hairer (2.1) for the pendulum, in 40 digits.

The pendulum has unit mass, length and gravity and starts from the horizontal at rest; it is compared with elliptic
functions.
"""

from collections.abc import Iterator

from mpmath import ellipfun, ellipk, mp, mpf, sqrt

DIGITS = 40
mp.dps = max(mp.dps, DIGITS)  # for the coefficients
S = sqrt(mpf(6))
HEM3 = ([[], [mpf(1) / 3], [mpf(-1), mpf(2)]], [mpf(0), mpf(3) / 4, mpf(1) / 4])
HEM4 = (
    [
        [],
        [mpf(3) / 10],
        [(1 + S) / 30, (11 - 4 * S) / 30],
        [(-79 - 31 * S) / 150, (-1 - 4 * S) / 30, (24 + 11 * S) / 25],
        [(14 + 5 * S) / 6, (-8 + 7 * S) / 6, (-9 - 7 * S) / 4, (9 - S) / 4],
    ],
    [mpf(0), mpf(0), (16 - S) / 36, (16 + S) / 36, mpf(1) / 9],
)
METHODS = {"hem3": HEM3, "hem4": HEM4}


def swing(t):
    """Exact q, v and lambda: sin(theta/2) = k sn(K + t), k^2 = 1/2."""
    m = mpf(1) / 2
    u = t + ellipk(m)
    sn, cn, dn = (ellipfun(name, u, m=m) for name in ("sn", "cn", "dn"))
    k = sqrt(m)
    x, y, w = 2 * k * sn * dn, -(cn**2), 2 * k * cn
    return [x, y], [-w * y, w * x], w * w - y


class Step:
    """Stages, multipliers and end of a step of the pendulum: Q' = V, V' = (0, -1) - Q lambda, Q V = 0."""

    def __init__(self, method, q, v, h):
        a, b = method
        rows = [*a[1:], b]
        self.v, self.w, self.multipliers = [v], [], []
        places = [q]
        for i, row in enumerate(rows):
            place = [q[j] + h * sum(x * V[j] for x, V in zip(row, self.v)) for j in range(2)]
            free = [v[j] + h * sum(x * W[j] for x, W in zip(row[:-1], self.w)) for j in range(2)]
            free[1] -= h * row[-1]
            old = places[i]
            lam = (place[0] * free[0] + place[1] * free[1]) / (h * row[-1] * (place[0] * old[0] + place[1] * old[1]))
            self.multipliers.append(lam)
            self.w.append([-old[0] * lam, -1 - old[1] * lam])
            places.append(place)
            self.v.append([free[j] - h * row[-1] * old[j] * lam for j in range(2)])
        self.places = places
        self.q, self.end_v = places[-1], self.v[-1]


def largest(x, y):
    return max(abs(a - b) for a, b in zip(x, y))


def _pendulum(row):
    """Largest errors over [0, 10]."""
    n, method = row["steps"], METHODS[row["method"]]
    h = mpf(10) / n
    q, v, lam = swing(mpf(0))
    found = dict.fromkeys(("q", "v", "lam", "g", "L5", "L1"), mpf(0))
    for i in range(1, n + 1):
        step = Step(method, q, v, h)
        found["L1"] = max(found["L1"], abs(step.multipliers[0] - lam))
        q, v = step.q, step.end_v
        exact_q, exact_v, lam = swing(i * h)
        size = q[0] ** 2 + q[1] ** 2
        here = {
            "q": largest(q, exact_q),
            "v": largest(v, exact_v),
            "lam": abs((v[0] ** 2 + v[1] ** 2 - q[1]) / size - lam),
            "g": abs(size - 1) / 2,
            "L5": abs(step.multipliers[-1] - lam),
        }
        for key, value in here.items():
            found[key] = max(found[key], value)
    return found


def _local(row):
    h = mpf(row["h"])
    q, v, _ = swing(mpf(1))
    step = Step(HEM4, q, v, h)
    exact_q, exact_v, _ = swing(1 + h)
    estimate = largest([*step.q, *step.end_v], [*step.places[4], *step.v[4]])
    return {"q": largest(step.q, exact_q), "v": largest(step.end_v, exact_v), "estimate": estimate}


def _weights(output, theta):
    """Dense output by five stages; by six functions; the latter has f(y_1, z_1) as its sixth."""
    third = theta * ((20 * S - 20) * theta**2 + (24 - 39 * S) * theta + 12 + 18 * S) / 36
    fourth = theta * (-(20 * S + 20) * theta**2 + (24 + 39 * S) * theta + 12 - 18 * S) / 36
    if output == "five stages":
        return [0, 0, third, fourth, theta * (10 * theta**2 - 12 * theta + 3) / 9, 0]
    fifth = -theta * (8 * theta**2 - 15 * theta + 6) / 9
    return [0, 0, third, fourth, fifth, theta * (theta - 1) * (2 * theta - 1)]


def _dense(row):
    if row["output"] == "Hermite":
        return {}  # of a member of the family whose coefficients are not written down here
    h = mpf(1) / 80
    q, v, _ = swing(mpf(1))
    step = Step(HEM4, q, v, h)
    end = _acceleration(step.q, step.end_v)
    found = {}
    for i, theta in enumerate((mpf(1) / 4, mpf(1) / 2, mpf(3) / 4)):
        exact_q, exact_v, _ = swing(1 + theta * h)
        weights = _weights(row["output"], theta)
        there = [q[j] + h * sum(x * V[j] for x, V in zip(weights, [*step.v[:5], step.end_v])) for j in range(2)]
        speed = [v[j] + h * sum(x * W[j] for x, W in zip(weights, [*step.w, end])) for j in range(2)]
        found |= {f"q{i}": largest(there, exact_q), f"v{i}": largest(speed, exact_v)}
    return found


def _acceleration(q, v):
    lam = (v[0] ** 2 + v[1] ** 2 - q[1]) / (q[0] ** 2 + q[1] ** 2)
    return [-q[0] * lam, -1 - q[1] * lam]


RUNS = {"pendulum": _pendulum, "local": _local, "dense": _dense}
TABLES = tuple(RUNS)


def values(number: str, table: dict) -> Iterator[dict]:
    """The values of the rows of a table, by column."""
    with mp.workdps(DIGITS):
        for row in table["rows"]:
            yield RUNS[number](row)
