"""Consistent values of second-order DAEs up to index 3, from F and its derivatives along the motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daedal.errors import InconsistentInitialError, InvalidProblemError, NotFiniteError, Unevaluable
from daedal.initial.variable_kinds import check_order, detect_order
from daedal.problems import SecondOrderDAE
from daedal.problems.checks import check_finite, check_mask, check_tolerances, check_vector
from daedal.problems.second_order_form import SecondOrderForm, natural_form

_PROBE = 2.0**-12
_VISIBLE = 1e-7  # relative change of an equation that a finite difference should cause
_LARGER = 2.0**10
_TRIES = 8
_SPACING = 10.0**0.5
_NOISE = 100.0 * float(np.finfo(float).eps)  # round-off of second differences, relative to the terms of an equation
_LONGEST, _INCREMENTS = (
    3.0,
    14,
)  # longest increment in units of the time scale, and number of increments
# one-sided formulas on 0, d, ..., 5d, since the equations need not be defined before the start
_FIRST = np.array([-137.0 / 60.0, 5.0, -5.0, 10.0 / 3.0, -5.0 / 4.0, 1.0 / 5.0])
_SECOND = np.array([45.0, -154.0, 214.0, -156.0, 61.0, -10.0]) / 12.0


class StartEquations:
    """F for the unknowns u of the start: x'' of order 2, x' of order 1, x of order 0."""

    def __init__(self, problem: SecondOrderDAE, t0: float, x0, xp0, xpp0, length: float):
        assert problem.order is not None
        self.problem, self.t0, self.length = problem, t0, length
        self.values = [x0.copy(), xp0.copy(), xpp0.copy()]
        self.order = problem.order
        self._moves, self._bends = (self.order > 0).astype(float), (self.order == 2).astype(float)
        self.sign = -1.0 if length < 0.0 else 1.0
        self.size_x = np.where(self.order > 0, _sizes(x0, self.order > 0), _sizes(x0, self.order == 0))
        time = self.time_scale()
        self.size_v = np.maximum(np.abs(xp0), self.size_x / time)
        self.delta = self.sign * 1e-3 * time
        self._steps: np.ndarray | None = None

    def sizes_u(self) -> np.ndarray:
        """Sizes of the unknowns."""
        time = self.time_scale()
        sizes = np.choose(self.order, [self.size_x, self.size_x / time, self.size_x / time**2])
        return np.maximum(np.abs(self.get()), sizes)

    def time_scale(self) -> float:
        """The time in which a variable changes by its own size; at most the length of the interval."""
        _, xp, xpp = self.values
        moving, second = self.order > 0, self.order == 2
        with np.errstate(divide="ignore"):
            by_speed = np.min((self.size_x / np.abs(xp))[moving], initial=np.inf)
            by_force = np.sqrt(np.min((self.size_x / np.abs(xpp))[second], initial=np.inf))
        longest = abs(self.length) if np.isfinite(self.length) else max(1.0, abs(self.t0))
        return min(longest, float(by_speed), float(by_force))

    def get(self) -> np.ndarray:
        return np.choose(self.order, self.values)

    def put(self, u: np.ndarray):
        for level in range(3):
            chosen = self.order == level
            self.values[level][chosen] = u[chosen]

    def residual(self, tau: float = 0.0) -> np.ndarray:
        """F along the motion from the current values, with lower-order variables constant or following their slope."""
        x, xp, xpp = self.values
        turn = tau * self._bends * xpp
        return self.problem.sample(self.t0 + tau, x + tau * (self._moves * xp + 0.5 * turn), xp + turn, xpp)

    def derivative(self, order: int) -> np.ndarray:
        """The first or second derivative of F along the motion."""
        exact = self.problem.along(self.t0, *self.values)
        return self._derivatives(self.delta)[order - 1] if exact is None else exact[order - 1]

    def _derivatives(self, d: float) -> tuple[np.ndarray, np.ndarray]:
        samples = np.array([self.residual(i * d) for i in range(6)])
        return _FIRST @ samples / d, _SECOND @ samples / d**2

    def choose_increment(self, rows: np.ndarray) -> float:
        """Choose the increment with the most accurate derivatives of scaled combinations of F; returns the time scale.

        Exact derivatives need no increment.
        """
        time = self.time_scale()
        if self.problem.along(self.t0, *self.values) is not None:
            return time
        longest = _LONGEST * time if np.isinf(self.length) else min(_LONGEST * time, 0.2 * abs(self.length))
        increments = self.sign * longest * _SPACING ** -np.arange(float(_INCREMENTS))
        found: list[tuple[np.ndarray, ...] | None] = []
        for d in increments:
            try:
                found.append(tuple(rows @ values for values in self._derivatives(float(d))))
            except Exception:  # the residual may raise anything away from the start
                found.append(None)
        best = np.inf
        for d, here, next_one in zip(increments[1:], found[1:], found[:-1], strict=True):
            if here is None or next_one is None:
                continue
            first, second = (float(np.max(np.abs(a - b))) for a, b in zip(here, next_one, strict=True))
            disagreement = first * time + second * time**2 + _NOISE * (time / d) ** 2
            if disagreement < best:
                best, self.delta = disagreement, float(d)
        return time

    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """dF/du, and dF/dx and dF/dx' for known values (zero columns elsewhere)."""
        x, xp, _ = self.values
        return (
            self.matrix(self.residual),
            self._partials(x, self.size_x, self.order > 0),
            self._partials(xp, self.size_v, self.order == 2),
        )

    def matrix(self, function) -> np.ndarray:
        """The derivative of a function with respect to the unknowns."""
        if self._steps is None:
            self._steps = self._visible_steps()
        u = self.get()
        steps = np.maximum(self._steps, _PROBE * self.sizes_u())
        columns = [self._quotient(function, u, i, step) for i, step in enumerate(steps)]
        self.put(u)
        return np.array(columns).T

    def _quotient(self, function, u: np.ndarray, i: int, step: float) -> np.ndarray:
        shifted = u.copy()
        shifted[i] += step
        self.put(shifted)
        high = function()
        shifted[i] = u[i] - step
        self.put(shifted)
        return (high - function()) / (2.0 * step)

    def _visible_steps(self) -> np.ndarray:
        """Increments of the unknowns whose effect on F exceeds the rounding errors of other terms."""
        u, base = self.get(), self.residual()
        steps = _PROBE * self.sizes_u()
        for i in range(u.size):
            for attempt in range(_TRIES):
                shifted = u.copy()
                shifted[i] += steps[i] * _LARGER**attempt
                self.put(shifted)
                try:
                    change = np.abs(self.residual() - base)
                except Exception:  # the residual is undefined that far from the start
                    break
                changed = (change > 0.0) & np.isfinite(change)
                if np.any(change[changed] >= _VISIBLE * np.abs(base[changed])):
                    steps[i] *= _LARGER**attempt
                    break
        self.put(u)
        return steps

    def _partials(self, values: np.ndarray, sizes: np.ndarray, which: np.ndarray) -> np.ndarray:
        matrix = np.zeros((self.problem.n, values.size))
        for i in np.flatnonzero(which):
            matrix[:, i] = self._partial(values, int(i), _PROBE * sizes[i])
        return matrix

    def _partial(self, values: np.ndarray, i: int, step: float) -> np.ndarray:
        """dF/dx_i by a central difference, or one-sided or with a smaller step if F is undefined."""
        kept, base = values[i], self.residual()
        for _ in range(_TRIES):
            found = []
            for shift in (step, -step):
                values[i] = kept + shift
                try:
                    change = (self.residual() - base) / shift
                except Exception:  # the residual may raise anything near the start
                    continue
                finally:
                    values[i] = kept
                if np.all(np.isfinite(change)):
                    found.append(change)
            if found:
                return np.mean(found, axis=0)
            step /= _LARGER
        raise ArithmeticError(f"the residual is undefined on both sides of {self.problem.label(i)} = {kept}")


def _sizes(values: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Sizes of values: at least a thousandth of the largest value of their kind; 1 if all are zero."""
    largest = float(np.max(np.abs(values[which]), initial=0.0))
    return np.maximum(np.abs(values), 1e-3 * largest if largest > 0.0 else 1.0)


# --- The start of a second-order DAE: values that satisfy its constraints, including hidden ones ---------------------

# Given x and x' for the variables of order 2 (x for those of order 1), the unknowns u of the start are x'' of order 2,
# x' of order 1 and x of order 0. Left null vectors Z of dF/du give the constraints Z^T F = 0, which contain no unknown.
# They are differentiated along x + tau x' + tau^2 x''/2. If they contain neither x' of order 2 nor x of order 1
# (positions), their first derivative must vanish as well, and their second one is an equation for u; otherwise
# (velocities) the first derivative is.

_RANK = 1e-8
_ITERATIONS = 10
_CORRECTIONS = 30
_CONVERGED = 1e-7
_TOLERATED = 0.33  # weighted size below which a correction is within the error test
_EXACT = 0.5 * float(np.finfo(float).eps)  # violation of a constraint, relative to its terms, up to which it is exact
_NEARLY_EXACT = 1e-13  # the same limit if corrections no longer reduce the violation
_EXACT_RATE = 1e-8  # the same limit for derivatives of constraints, which are finite differences


@dataclass
class SecondOrderStart:
    """x, x' and x'' at the start; x'' and the multipliers are guesses if `complete` is False."""

    x: np.ndarray
    xp: np.ndarray
    xpp: np.ndarray
    complete: bool


def split_second_order(problem: SecondOrderDAE, initial) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """x0, x'0 and, if given, x''0."""
    if not isinstance(initial, (tuple, list)) or len(initial) not in (2, 3):
        raise InvalidProblemError("initial must be (x0, xp0), or (x0, xp0, xpp0)")
    x0 = check_vector(initial[0], problem.n, "x0", names=problem.names)
    xp0 = np.zeros(problem.n) if initial[1] is None else check_vector(initial[1], problem.n, "xp0", names=problem.names)
    third = initial[2] if len(initial) == 3 else None
    return x0, xp0, None if third is None else check_vector(third, problem.n, "xpp0", names=problem.names)


def orders_at_start(problem: SecondOrderDAE, t0: float, x0, xp0) -> tuple[SecondOrderDAE, np.ndarray]:
    """The problem with the orders of its variables, and the orders detected from its residual."""
    try:
        found = detect_order(problem, t0, x0, xp0)
    except Unevaluable as error:
        message = f"residual cannot be evaluated at the initial values (t = {t0:g}): {error}"
        raise NotFiniteError(message.rstrip(": ")) from error
    return problem.with_order(check_order(problem, found)), found


def complete_start(
    problem: SecondOrderDAE, t0: float, x0, xp0, xpp0, length: float, weights, *, correct: bool = False
) -> SecondOrderStart:
    """Complete the initial values.

    x and x' that violate constraints are moved to the nearest consistent values if the change is below the error
    `weights` of x and x' (two vectors, zero for fixed values) or, in the Euclidean norm, if `correct` is set. Otherwise
    an error is raised. `length` is that of the interval, with sign.
    """
    equations = StartEquations(problem, t0, x0, xp0, np.zeros(problem.n) if xpp0 is None else xpp0, length)
    base = equations.residual()
    if not np.all(np.isfinite(base)):
        bad = int(np.flatnonzero(~np.isfinite(base))[0])
        raise NotFiniteError(
            f"residual is not finite at the initial values (t = {t0:g}): equation {bad} is {base[bad]}"
        )
    given = [values.copy() for values in equations.values]
    try:
        with np.errstate(all="ignore"):
            found = _Start(equations, weights, correct).find()
    except InconsistentInitialError:
        raise
    except Exception:  # the residual may raise anything near the start; the run reports it if relevant
        found = False
    if not found:
        if correct:
            raise InconsistentInitialError(f"no consistent values were found near the given ones at t = {t0:g}")
        equations.values = given
    x, xp, xpp = (values.copy() for values in equations.values)
    return SecondOrderStart(x, xp, xpp, complete=found)


def held_values(problem: SecondOrderDAE, fixed) -> tuple[np.ndarray, np.ndarray]:
    """Masks of fixed x and x', from a mask or a list of names or indices."""
    n = problem.n
    both = [problem.label(i) for i in range(n)] + problem.velocity_names(np.arange(n))
    short = np.asarray(fixed).dtype == bool and np.shape(fixed) == (n,)
    given = [] if fixed is None else [*fixed, *np.zeros(n, dtype=bool)] if short else fixed
    held = check_mask(given, 2 * n, "fixed", both)
    return held[:n], held[n:]


def consistent_second_order(problem: SecondOrderDAE, t0: float, initial, fixed, rtol, atol):
    """(x, x', x'') near the given values; see :func:`daedal.consistent_initial`."""
    t0 = check_finite(t0, "t0")
    x0, xp0, xpp0 = split_second_order(problem, initial)
    problem, _ = orders_at_start(problem, t0, x0, xp0)
    form = natural_form(problem)
    rtol, atol = check_tolerances(form.n, *(tolerance_of_y(form, v, n) for v, n in ((rtol, "rtol"), (atol, "atol"))))
    wx, wv = error_weights(form, x0, xp0, rtol, atol)
    held_x, held_v = held_values(problem, fixed)
    wx, wv = np.where(held_x, 0.0, wx), np.where(held_v, 0.0, wv)
    start = complete_start(problem, t0, x0, xp0, xpp0, np.inf, (wx, wv), correct=True)
    return start.x, start.xp, start.xpp


def tolerance_of_y(form: SecondOrderForm, tolerance, name: str):
    """Tolerances of y; tolerances given only for x also apply to the derivatives."""
    values = np.asarray(tolerance)
    n = form.problem.n
    if values.ndim == 1 and values.size == n != form.n:
        return values[np.where(form.source < n, form.source, form.source - n)]
    if values.ndim == 1 and values.size != form.n:
        raise InvalidProblemError(
            f"{name} must be a number, hold {n} values (for x) or {form.n} (for x and the derivatives of variables of "
            f"order 2: {', '.join(form.names[n : n + 4])}), got {values.size}"
        )
    return tolerance


def error_weights(form: SecondOrderForm, x, xp, rtol, atol) -> tuple[np.ndarray, np.ndarray]:
    """rtol |y| + atol for x and x'; zero if x' is not in y."""
    return form.split(rtol * np.abs(np.concatenate([x, xp])[form.source]) + atol)


class _Start:
    """Constraints of the start, the correction of x and x', and Newton's method for the unknowns."""

    def __init__(self, equations: StartEquations, weights, correct: bool):
        self.equations, self.correct = equations, correct
        order = equations.order
        self.wx, self.wv = (np.where(order > 0, weights[0], 0.0), np.where(order == 2, weights[1], 0.0))
        if correct:  # the nearest values in the Euclidean norm
            self.wx, self.wv = (self.wx > 0.0).astype(float), (self.wv > 0.0).astype(float)
        self._analyse()

    def _analyse(self):
        """Determine the constraints on positions and velocities, and their dependence on x and x'."""
        e = self.equations
        du, dx, dv = e.matrices()
        second, first = e.order == 2, e.order == 1
        largest = np.max(np.abs(du) * e.sizes_u(), axis=1)
        rest = np.max(np.abs(np.hstack([dx * e.size_x, dv * e.size_v])), axis=1)
        self.row_scale = 1.0 / np.where(largest > 0.0, largest, np.where(rest > 0.0, rest, 1.0))
        self.rows, null = _range_and_null(self._scaled(du * e.sizes_u()))
        self.dx = null.T @ self._scaled(np.where(second, dx, 0.0))
        lower = null.T @ self._scaled(np.hstack([np.where(first, dx, 0.0), dv]))
        level = lower * np.concatenate([e.size_x, e.size_v])
        size = max(float(np.linalg.norm(level)), float(np.linalg.norm(self.dx * e.size_x)), 1e-300)
        moving, still = _range_and_null(level, threshold=_RANK * size)
        self.positions, self.velocities = null @ still, null @ moving
        self.position_x = still.T @ self.dx
        self.lower = moving.T @ lower

    def _scaled(self, matrix: np.ndarray) -> np.ndarray:
        return (self.row_scale * matrix.T).T

    def find(self) -> bool:
        """Move x and x' onto their constraints, and solve for the unknowns; return whether this succeeded."""
        self._move_positions()
        self._move_velocities()
        return self._solve()

    def _move_positions(self):
        e, x = self.equations, self.equations.values[0]
        before, best, violation = x.copy(), x.copy(), np.inf
        for _ in range(_CORRECTIONS):
            values = self.positions.T @ (self.row_scale * e.residual())
            last, violation = violation, float(np.max(np.abs(values), initial=0.0))
            if violation <= _NEARLY_EXACT and violation >= last:
                x[:] = best
                return
            if violation <= _EXACT:
                return
            best[:] = x
            change = _least(self.position_x, values, self.wx)
            self._refuse(values - self.position_x @ change, change / _nonzero(self.wx), self.positions, 0)
            x -= change
            self._refuse(np.zeros(1), (before - x) / _nonzero(self.wx), self.positions, 0, before)
            self._analyse()
        raise self._not_found()

    def _move_velocities(self):
        e = self.equations
        x, v = e.values[0], e.values[1]
        n = x.size
        matrix = np.vstack([np.hstack([np.zeros_like(self.position_x), self.position_x]), self.lower])
        if not matrix.shape[0]:
            return
        both = np.hstack([self.positions, self.velocities])
        weights = np.concatenate([np.where(e.order == 1, self.wx, 0.0), self.wv])
        before = np.concatenate([x, v])
        time = e.choose_increment(both.T * self.row_scale)
        for _ in range(_CORRECTIONS):
            rates = self.positions.T @ (self.row_scale * e.derivative(1))
            values = np.concatenate([rates, self.velocities.T @ (self.row_scale * e.residual())])
            if np.all(np.abs(rates) * time <= _EXACT_RATE) and np.all(np.abs(values[rates.size :]) <= _NEARLY_EXACT):
                return
            change = _least(matrix, values, weights)
            left = values - matrix @ change
            left[: rates.size] *= time
            self._refuse(left, change / _nonzero(weights), both, 1)
            x -= change[:n]
            v -= change[n:]
            self._refuse(np.zeros(1), (before - np.concatenate([x, v])) / _nonzero(weights), both, 1, before)
        raise self._not_found()

    def _not_found(self) -> InconsistentInitialError:
        return InconsistentInitialError(
            f"no consistent values were found near the given ones at t = {self.equations.t0:g}"
        )

    def _refuse(self, left, weighted, rows, level: int, before=None):
        """Raise an error if values cannot be made consistent, or only by a change larger than the tolerance."""
        e = self.equations
        impossible = bool(np.max(np.abs(left), initial=0.0) > 1e-6)
        moved = weighted[weighted != 0.0]
        large = moved.size > 0 and float(np.sqrt(np.mean(moved**2))) > _TOLERATED
        if not impossible and (self.correct or not large):
            return
        if before is not None:
            e.values[0][:] = before[: e.order.size]
            if level:
                e.values[1][:] = before[e.order.size :]
        plain = e.residual()
        shares = [self.positions @ self.positions.T @ (self.row_scale * plain)]
        if level:
            shares = [self.positions @ self.positions.T @ (self.row_scale * e.derivative(1))]
            shares.append(self.velocities @ self.velocities.T @ (self.row_scale * plain))
        raise _violation(e, shares, self.row_scale, rates=level == 1, hopeless=impossible)

    def _solve(self) -> bool:
        """Newton's method for u."""
        e = self.equations
        rows = (self.rows.T, self.velocities.T, self.positions.T)
        for iteration in range(_ITERATIONS):
            if iteration < 3 and (rows[1].size or rows[2].size):
                e.choose_increment(np.vstack(rows[1:]) * self.row_scale)

            def system() -> np.ndarray:
                parts = [rows[0] @ (self.row_scale * e.residual())]
                if rows[1].size:
                    parts.append(rows[1] @ (self.row_scale * e.derivative(1)))
                if rows[2].size:
                    parts.append(rows[2] @ (self.row_scale * e.derivative(2)))
                return np.concatenate(parts)

            values, matrix = system(), e.matrix(system)
            scale = 1.0 / _nonzero(np.max(np.abs(matrix), axis=1))
            columns = 1.0 / _nonzero(np.max(np.abs(scale[:, None] * matrix), axis=0))
            scaled = scale[:, None] * matrix * columns
            if not np.all(np.isfinite(scaled)) or np.linalg.cond(scaled) > 1e10:
                return False
            correction = np.linalg.solve(scaled, scale * values)
            u = e.get() - columns * correction
            if not np.all(np.isfinite(u)):
                return False
            e.put(u)
            # in units of `columns`, all unknowns have equal influence
            size = max(np.max(np.abs(u) / columns), np.max(np.where(e.order > 0, e.sizes_u(), 0.0) / columns))
            if iteration > 0 and np.max(np.abs(correction)) <= _CONVERGED * size:
                return True
        return False


def _nonzero(values: np.ndarray) -> np.ndarray:
    return np.where(values != 0.0, values, 1.0)


def _least(matrix: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The minimum weighted-norm solution of matrix d = values."""
    scaled = matrix * weights
    sizes = _nonzero(np.max(np.abs(scaled), axis=1, initial=0.0))
    return weights * np.linalg.lstsq(scaled / sizes[:, None], values / sizes, rcond=_RANK)[0]


def _range_and_null(matrix: np.ndarray, threshold: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal bases of the range and of its complement."""
    u, sigma, _ = np.linalg.svd(matrix)
    if threshold is None:
        threshold = _RANK * max(float(np.max(sigma, initial=0.0)), 1e-300)
    rank = int(np.sum(sigma > threshold))
    return u[:, :rank], u[:, rank:]


def _violation(equations: StartEquations, shares, row_scale, *, rates: bool, hopeless: bool):
    """The error that names the violated equation with the largest contribution."""
    kind = int(np.argmax([np.max(np.abs(share)) for share in shares]))
    share = shares[kind]
    number = int(np.argmax(np.abs(share)))
    named = [int(i) for i in np.argsort(-np.abs(share)) if abs(share[i]) > 1e-3 * abs(share[number])]
    what = "the derivative of " if rates and kind == 0 else ""
    argument = "xp0" if rates else "x0"
    message = (
        f"the initial {'velocities' if rates else 'values'} at t = {equations.t0:g} violate {what}equation "
        f"{number} (numbered from 0): its residual is {abs(share[number]) / row_scale[number]:.3g}. "
    )
    if hopeless:
        message += (
            f"No small change of {argument} compensates for it. Remedy: use other initial values, or check the "
            "equations"
        )
    else:
        message += (
            f"Remedy: choose {argument} so that {what}equation {number} holds; correct_initial=True or "
            "daedal.consistent_initial finds the nearest values"
        )
    return InconsistentInitialError(message, equations=named, residual=equations.residual())
