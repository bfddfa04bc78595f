r"""Contact coordinates: auxiliary coordinates s with 0 = h(t, q, s), which are eliminated first.

.. math::

    0 = g(t, q, s(t, q)), \qquad G = g_q - g_s h_s^{-1} h_q

With s substituted, G is the derivative of the constraint with respect to q. The same code runs in Python for plain
functions and is compiled for compiled ones.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from daedal.errors import InconsistentInitialError
from daedal.kernels.functions import is_compiled, parameter_vector
from daedal.problems import MechanicalSystem
from daedal.problems.compile import last_argument

_MAX_ITERATIONS = 60
_ROUNDOFF = 4.0 * float(np.finfo(float).eps)
_INCREMENT = 6e-6  # relative increment of central differences, the cube root of the unit round-off
# the matrix is reused while steps shrink at least by the first factor and are below the second fraction of s
_FAST, _CLOSE = 0.1, 1e-3
_SHORTEST = 1e-4  # smallest factor by which a Newton step is shortened

# Caches of functions derived from those of a system: compiling them is slow, and they contain no data of a run.
_without: WeakKeyDictionary = WeakKeyDictionary()
_solvers: WeakKeyDictionary = WeakKeyDictionary()


def without_contact(system: MechanicalSystem) -> MechanicalSystem:
    """The system with s = s(t, q) substituted; the system itself if it has no contact coordinates.

    Functions of (t, q, v, ...) receive s after w. `constraint_jacobian`, `constraint_t` and `acceleration_bias` receive
    s as the last argument, and are derivatives of the constraint with s substituted. Results are NaN if h = 0 has no
    solution.
    """
    if not system.n_s:
        return system
    if system not in _without:
        _without[system] = _reduced(system)
    return _without[system]


def contact_coordinates(system: MechanicalSystem, t: float, q) -> np.ndarray:
    """The contact coordinates s at (t, q); raises InconsistentInitialError if Newton's method does not find them."""
    if not system.n_s:
        return np.zeros(0)
    solver, _ = _solver(system)
    last = last_argument(solver, system.params)
    s = np.asarray(solver(float(t), np.asarray(q, dtype=float), *last))
    if not np.all(np.isfinite(s)):
        raise InconsistentInitialError(
            f"no contact coordinates s with contact(t, q, s) = 0 were found at t = {t:g}. "
            "Remedy: give contact_guess, values or a function of (t, q), near the solution."
        )
    return s


def _reduced(system: MechanicalSystem) -> MechanicalSystem:
    solver, compiled = _solver(system)
    place = int(system.n_r > 0) + int(system.n_w > 0)
    changes: dict[str, Any] = {"contact": None, "n_s": 0, "contact_guess": None}
    for name, behind in (
        ("constraint", 0),
        ("constraint_jacobian", 0),
        ("constraint_t", 0),
        ("acceleration_bias", 1),
        ("force", 1 + place),
        ("state_rate", 1 + place),
        ("algebraic", 1 + place),
    ):
        function = getattr(system, name)
        if function is None:
            continue
        if compiled and is_compiled(function):
            import numba

            changes[name] = numba.njit(_inserted(function, solver, behind, system.params is not None))
        else:
            inner = _plain(function, system.params)
            changes[name] = _inserted(inner, _plain(solver, system.params), behind, system.params is not None)
    return system.replaced(**changes)


def _plain(function, params):
    """The function for calls from Python: if it is compiled, its parameters are converted to a vector."""
    if params is None or not is_compiled(function):
        return function
    return lambda *arguments: function(*arguments[:-1], parameter_vector(arguments[-1]))


def _inserted(function, solver, behind: int, has_params: bool):
    """`function` without its argument s, which is computed and inserted after (t, q) and `behind` further arguments."""
    if has_params:

        def insert(t, q, *rest):
            return function(t, q, *rest[:behind], solver(t, q, rest[-1]), *rest[behind:])

    else:

        def insert(t, q, *rest):
            return function(t, q, *rest[:behind], solver(t, q), *rest[behind:])

    return insert


def _solver(system: MechanicalSystem):
    """``s = solver(t, q[, p])`` and whether it is compiled; cached per system."""
    if system not in _solvers:
        _solvers[system] = _make_solver(system)
    return _solvers[system]


def _make_solver(system: MechanicalSystem):
    guess = _guess(system)
    compiled = is_compiled(system.contact) and (guess is None or is_compiled(guess))
    contact, start = system.contact, system.contact_guess
    if compiled:
        import numba

        start = guess or numba.njit(_constant(start, system.n_s))
        return numba.njit(_newton(contact, start, system.n_s, numba.njit(solve_small))), True
    start = _plain(guess, system.params) if guess else _constant(start, system.n_s)
    return _newton(_plain(contact, system.params), start, system.n_s, solve_small), False


def _guess(system: MechanicalSystem):
    return system.contact_guess if callable(system.contact_guess) else None


def _constant(values, n_s: int):
    """A guess that does not depend on (t, q)."""
    from daedal.problems.checks import check_vector

    fixed = np.zeros(n_s) if values is None else check_vector(values, n_s, "contact_guess")

    def start(t, q, *p):
        return fixed

    return start


def _newton(contact, start, n_s: int, solve):
    """Newton's method with differences, damped if h does not decrease; runs in Python and in Numba.

    The matrix is reused while steps shrink fast, so that the last steps cost one call each. Arguments may be complex
    with tiny imaginary parts (complex-step derivatives): convergence is tested for real and imaginary parts separately.
    """

    def solver(t, q, *p):
        first = start(t, q, *p)
        zero = 0.0 * (q[0] + t)
        s, moved = np.empty(n_s, np.asarray(zero).dtype), np.empty(n_s, np.asarray(zero).dtype)
        residual, matrix, factors = np.empty_like(s), np.empty((n_s, n_s), s.dtype), np.empty((n_s, n_s), s.dtype)
        largest, norm = 0.0, 0.0
        for i in range(n_s):
            s[i] = first[i] + zero
            largest = max(largest, abs(s[i]))
        values = contact(t, q, s, *p)
        for i in range(n_s):
            norm += abs(values[i])
        before, kept = np.inf, False
        for _ in range(_MAX_ITERATIONS):
            if not norm < np.inf:
                break
            if norm == 0.0:
                return s
            for i in range(n_s):
                residual[i] = -values[i]
            if not kept:
                for j in range(n_s):
                    delta = _INCREMENT * (max(abs(s[j]), largest) if largest > 0.0 else 1.0)
                    for i in range(n_s):
                        moved[i] = s[i]
                    moved[j] = s[j] + delta
                    above = contact(t, q, moved, *p)
                    moved[j] = s[j] - delta
                    below = contact(t, q, moved, *p)
                    for i in range(n_s):
                        matrix[i, j] = (above[i] - below[i]) / (2.0 * delta)
            for i in range(n_s):
                for j in range(n_s):
                    factors[i, j] = matrix[i, j]
            if not solve(factors, residual):
                break
            change, imaginary, imaginary_size = 0.0, 0.0, 0.0
            for i in range(n_s):
                change = max(change, abs(residual[i].real))
                imaginary = max(imaginary, abs(residual[i].imag))
            if not change < np.inf:
                break
            share, ahead = 1.0, np.inf
            while share > _SHORTEST:
                for i in range(n_s):
                    moved[i] = s[i] + share * residual[i]
                values = contact(t, q, moved, *p)
                ahead = 0.0
                for i in range(n_s):
                    ahead += abs(values[i])
                if ahead < norm or not change > 1e-6 * largest:
                    break
                share = 0.5 * share
            if share <= _SHORTEST:
                break
            norm = ahead
            for i in range(n_s):
                s[i] = moved[i]
                largest = max(largest, abs(s[i]))
                imaginary_size = max(imaginary_size, abs(s[i].imag))
            settled = imaginary <= _ROUNDOFF * imaginary_size or (
                imaginary <= 1e-9 * imaginary_size and change <= _ROUNDOFF * largest
            )
            if settled and (change <= _ROUNDOFF * largest or 0.3 * before <= change <= 1e-9 * largest):
                return s
            kept = share == 1.0 and change <= _FAST * before and change <= _CLOSE * largest
            before = change
        for i in range(n_s):
            s[i] = np.nan
        return s

    return solver


def solve_small(matrix, right):
    """Gaussian elimination with partial pivoting, in place; False if the matrix is singular."""
    n = right.size
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[best, k]):
                best = i
        if not abs(matrix[best, k]) > 0.0:
            return False
        if best != k:
            for j in range(n):
                matrix[k, j], matrix[best, j] = matrix[best, j], matrix[k, j]
            right[k], right[best] = right[best], right[k]
        for i in range(k + 1, n):
            factor = matrix[i, k] / matrix[k, k]
            for j in range(k + 1, n):
                matrix[i, j] -= factor * matrix[k, j]
            right[i] -= factor * right[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            right[k] -= matrix[k, j] * right[j]
        right[k] /= matrix[k, k]
    return True
