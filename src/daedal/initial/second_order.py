r"""The start of a second-order DAE: the orders of its variables, and values that satisfy hidden constraints as well.

Given x and x' for the variables of order 2 (x for those of order 1), the unknowns u of the start are x'' of order 2, x'
of order 1 and x of order 0. Left null vectors Z of dF/du show the constraints Z^T F = 0, which contain no unknown.
They are followed along x + tau x' + tau^2 x''/2: where they contain no velocity their first derivative must vanish,
and their second one is an equation for x''; where they do, their first derivative is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daedal.errors import InconsistentInitialError, InvalidProblemError, Unevaluable
from daedal.problems import SecondOrderDAE
from daedal.problems.checks import check_vector

_RANK = 1e-8
_ITERATIONS = 10
_PROBE = 2.0**-12


@dataclass
class SecondOrderStart:
    """x, x' and x'' at the start; x'' and the multipliers are guesses if `complete` is False."""

    x: np.ndarray
    xp: np.ndarray
    xpp: np.ndarray
    complete: bool


def split_second_order(problem: SecondOrderDAE, initial) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """x0, x'0 and, if it is given, x''0."""
    if not isinstance(initial, (tuple, list)) or len(initial) not in (2, 3):
        raise InvalidProblemError("initial must be (x0, xp0), or (x0, xp0, xpp0)")
    x0 = check_vector(initial[0], problem.n, "x0")
    xp0 = np.zeros(problem.n) if initial[1] is None else check_vector(initial[1], problem.n, "xp0")
    third = initial[2] if len(initial) == 3 else None
    return x0, xp0, None if third is None else check_vector(third, problem.n, "xpp0")


def detect_order(problem: SecondOrderDAE, t0: float, x0: np.ndarray, xp0: np.ndarray) -> np.ndarray:
    """The highest derivative of each variable that F responds to, at the start and at two points beside it."""
    n = problem.n
    generator = np.random.default_rng(0)
    order = np.zeros(n, dtype=np.int64)
    for shift in (0.0, 1e-2, 1e-1):
        x, xp, xpp = (
            values + shift * np.maximum(1.0, np.abs(values)) * generator.uniform(-1.0, 1.0, n)
            for values in (x0, xp0, np.zeros(n))
        )
        base = _residual(problem, t0, x, xp, xpp)
        if base is None:
            continue
        for i in range(n):
            for level, values in ((2, xpp), (1, xp)):
                if order[i] >= level:
                    break
                kept, values[i] = values[i], values[i] + max(1.0, abs(values[i]))
                changed = _residual(problem, t0, x, xp, xpp)
                values[i] = kept
                if changed is not None and not np.array_equal(changed, base):
                    order[i] = level
    return order


def _residual(problem: SecondOrderDAE, t, x, xp, xpp) -> np.ndarray | None:
    try:
        with np.errstate(all="ignore"):
            values = problem.evaluate(t, x, xp, xpp)
    except Unevaluable:
        return None
    return values if np.all(np.isfinite(values)) else None


class _StartEquations:
    """F and what follows from its constraints, for the unknowns of the start."""

    def __init__(self, problem: SecondOrderDAE, t0: float, x0, xp0, xpp0, length: float):
        assert problem.order is not None
        self.problem, self.t0 = problem, t0
        self.values = [x0.copy(), xp0.copy(), xpp0.copy()]
        self.order = problem.order
        speed = float(np.max(np.abs(xp0[self.order == 2]), initial=0.0))
        size = float(np.max(np.abs(x0[self.order == 2]), initial=0.0))
        self.delta = 1e-3 * min(length, size / speed if speed * size > 0.0 else length)

    def get(self) -> np.ndarray:
        return np.choose(self.order, self.values)

    def put(self, u: np.ndarray):
        for level in range(3):
            chosen = self.order == level
            self.values[level][chosen] = u[chosen]

    def residual(self, tau: float = 0.0) -> np.ndarray:
        """F along the motion that the present values begin; variables of lower order stay, or move with their slope."""
        x, xp, xpp = self.values
        moving, first = self.order == 2, self.order == 1
        shifted = x + tau * np.where(moving | first, xp, 0.0) + 0.5 * tau**2 * np.where(moving, xpp, 0.0)
        return self.problem.evaluate(self.t0 + tau, shifted, xp + tau * np.where(moving, xpp, 0.0), xpp)

    def derivative(self, order: int) -> np.ndarray:
        """The first or second derivative of F along the motion, by central differences with extrapolation."""
        d = self.delta
        far, near = (self.residual(2.0 * d), self.residual(-2.0 * d)), (self.residual(d), self.residual(-d))
        if order == 1:
            return (8.0 * (near[0] - near[1]) - (far[0] - far[1])) / (12.0 * d)
        zero = self.residual()
        return (16.0 * (near[0] + near[1]) - (far[0] + far[1]) - 30.0 * zero) / (12.0 * d * d)

    def matrix(self, function) -> np.ndarray:
        """The derivative of a function with respect to the unknowns."""
        u = self.get()
        columns = []
        for i in range(u.size):
            step = _PROBE * max(1.0, abs(u[i]))
            shifted = u.copy()
            shifted[i] += step
            self.put(shifted)
            high = function()
            shifted[i] -= 2.0 * step
            self.put(shifted)
            columns.append((high - function()) / (2.0 * step))
        self.put(u)
        return np.array(columns).T

    def velocity_matrix(self) -> np.ndarray:
        """dF/dx' for the variables of order 2."""
        xp, columns = self.values[1], []
        for i in np.flatnonzero(self.order == 2):
            kept, step = xp[i], _PROBE * max(1.0, abs(xp[i]))
            xp[i] = kept + step
            high = self.residual()
            xp[i] = kept - step
            columns.append((high - self.residual()) / (2.0 * step))
            xp[i] = kept
        return np.array(columns).T if columns else np.zeros((self.problem.n, 0))


def complete_start(
    problem: SecondOrderDAE, t0: float, x0, xp0, xpp0, length: float, *, tolerance: float = 1e-6
) -> SecondOrderStart:
    """The remaining values of the start; refuses x and x' that violate constraints, hidden ones included."""
    equations = _StartEquations(problem, t0, x0, xp0, np.zeros(problem.n) if xpp0 is None else xpp0, length)
    base = equations.residual()
    if not np.all(np.isfinite(base)):
        bad = int(np.flatnonzero(~np.isfinite(base))[0])
        raise InvalidProblemError(
            f"residual is not finite at the initial values (t = {t0:g}): equation {bad} gives {base[bad]}"
        )
    try:
        with np.errstate(all="ignore"):
            found = _solve(equations, tolerance)
    except Unevaluable:
        found = False
    except np.linalg.LinAlgError:
        found = False
    x, xp, xpp = (values.copy() for values in equations.values)
    return SecondOrderStart(x, xp, xpp, complete=found)


def _solve(equations: _StartEquations, tolerance: float) -> bool:
    problem = equations.problem
    matrix = equations.matrix(equations.residual)
    scale = np.max(np.abs(matrix), axis=1)
    null = _left_null(matrix)
    constraints = null.T @ equations.residual()
    _refuse(problem, equations, null, constraints, tolerance, "")
    with_velocity = null.T @ equations.velocity_matrix()
    positions = null @ _left_null(with_velocity)
    velocities = null @ _range(with_velocity)
    if positions.shape[1]:
        rates = positions.T @ equations.derivative(1)
        _refuse(problem, equations, positions, rates, tolerance, "the derivative of ")
    rows = _range(matrix)

    def system() -> np.ndarray:
        parts = [rows.T @ equations.residual()]
        if velocities.shape[1]:
            parts.append(velocities.T @ equations.derivative(1))
        if positions.shape[1]:
            parts.append(positions.T @ equations.derivative(2))
        return np.concatenate(parts)

    size = float(np.max(scale, initial=1.0))
    for _ in range(_ITERATIONS):
        values = system()
        correction = np.linalg.solve(equations.matrix(system), values)
        u = equations.get() - correction
        if not np.all(np.isfinite(u)):
            return False
        equations.put(u)
        if np.max(np.abs(correction)) <= 1e-9 * max(1.0, float(np.max(np.abs(u)))):
            return True
    return bool(np.max(np.abs(system())) <= 1e-6 * size)


def _left_null(matrix: np.ndarray) -> np.ndarray:
    u, sigma, _ = np.linalg.svd(matrix)
    rank = int(np.sum(sigma > _RANK * max(float(sigma[0]) if sigma.size else 0.0, 1e-300)))
    return u[:, rank:]


def _range(matrix: np.ndarray) -> np.ndarray:
    u, sigma, _ = np.linalg.svd(matrix)
    rank = int(np.sum(sigma > _RANK * max(float(sigma[0]) if sigma.size else 0.0, 1e-300)))
    return u[:, :rank]


def _refuse(problem: SecondOrderDAE, equations: _StartEquations, null, values, tolerance: float, what: str):
    """An error if constraints, or their derivatives, are violated."""
    if values.size == 0:
        return
    size = max(1.0, float(np.max(np.abs(np.concatenate(equations.values[:2])))))
    if np.max(np.abs(values)) <= tolerance * size:
        return
    worst = int(np.argmax(np.abs(values)))
    number = int(np.argmax(np.abs(null[:, worst])))
    level = "velocities" if what else "values"
    raise InconsistentInitialError(
        f"the initial {level} at t = {equations.t0:g} violate {what}equation {number}: it is off by "
        f"{np.max(np.abs(values)):.3g}. Remedy: choose {'xp0' if what else 'x0'} so that {what}equation {number} holds",
        equations=[number],
        residual=values,
    )
