"""F of a second-order DAE and its derivatives along the motion that given values begin."""

import numpy as np

from daedal.problems import SecondOrderDAE

_PROBE = 2.0**-12
_VISIBLE = 1e-7  # relative change of an equation that differences should cause
_LARGER = 2.0**10
_TRIES = 8
_SPACING = 10.0**0.5
_NOISE = 100.0 * float(np.finfo(float).eps)  # of second differences, relative to the terms of an equation
_LONGEST, _INCREMENTS = 3.0, 14  # increments in time that are tried, from the longest down, in units of the time scale
# One-sided formulas on 0, d, ..., 5d: the equations need not be defined on the other side of the start.
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
        """F along the motion that the present values begin; variables of lower order stay, or move with their slope."""
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
        """The increment for which both derivatives of some scaled combinations of F are best known; the time scale.

        Exact derivatives need none.
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
            except Exception:  # away from the start the residual may raise anything
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
        """dF/du, and dF/dx and dF/dx' for what is no unknown (zero columns elsewhere)."""
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
        """Changes of the unknowns that are not lost in the rounding errors of other terms."""
        u, base = self.get(), self.residual()
        steps = _PROBE * self.sizes_u()
        for i in range(u.size):
            for attempt in range(_TRIES):
                shifted = u.copy()
                shifted[i] += steps[i] * _LARGER**attempt
                self.put(shifted)
                try:
                    change = np.abs(self.residual() - base)
                except Exception:  # too large a change
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
        """dF/dx_i by a central difference, or one on one side or with a smaller step where F is not defined."""
        kept, base = values[i], self.residual()
        for _ in range(_TRIES):
            found = []
            for shift in (step, -step):
                values[i] = kept + shift
                try:
                    change = (self.residual() - base) / shift
                except Exception:  # beside the start the residual may raise anything
                    continue
                finally:
                    values[i] = kept
                if np.all(np.isfinite(change)):
                    found.append(change)
            if found:
                return np.mean(found, axis=0)
            step /= _LARGER
        raise ArithmeticError(f"the residual is defined on neither side of {self.problem.label(i)} = {kept}")


def _sizes(values: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Sizes; zeros and tiny values count as a thousandth of the largest of their kind, or as 1 if all are zero."""
    largest = float(np.max(np.abs(values[which]), initial=0.0))
    return np.maximum(np.abs(values), 1e-3 * largest if largest > 0.0 else 1.0)
