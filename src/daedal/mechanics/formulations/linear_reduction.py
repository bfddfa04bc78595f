"""Stabilised index reduction of linear DAEs with a singular or ill-conditioned D."""

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems import ImplicitDAE
from daedal.problems.checks import check_vector
from daedal.problems.coefficients import coefficient_at
from daedal.problems.linear_dae import LinearDAE, check_wide

_SINGULAR = 1e-12


@dataclass(frozen=True)
class StabilisedReduction:
    r"""The constraint of a :class:`LinearDAE` together with its derivative, Wijckmans (6.41) and (6.42):

    .. math::

        x' = A x + B y + L \mu + p, \qquad 0 = C x + D y + q, \qquad
        0 = C (A x + B y + p) + C' x + D y' + D' y + q'.

    Errors in the constraint enter x and y unamplified; only the multiplier :math:`\mu`, which vanishes for the exact
    solution, receives them divided by h. D is not factored: it may be ill-conditioned, singular or zero.

    Parameters
    ----------
    L : matrix or callable, optional
        Direction of the multiplier, (n_x, n_y), with C L regular; :math:`C^T` by default.

    Notes
    -----
    Solutions and tolerance vectors consist of (x, y, mu), stacked.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.ill_conditioned_constraints()
    >>> form = daedal.formulations.StabilisedReduction()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation=form, rtol=1e-6, atol=1e-6)
    >>> print(sol.names, f"{sol.y[3, -1]:.4f}")
    ('x1', 'x2', 'y1', 'y2', 'mu[0]', 'mu[1]') 1.6829
    """

    L: Any = None
    name = "stabilised_reduction"


def is_as_stated(formulation) -> bool:
    """Whether `formulation` selects the original form of a linear problem."""
    return formulation is None or (isinstance(formulation, str) and formulation in ("auto", "none"))


def first_order(problem: LinearDAE, formulation, t0: float, initial):
    """A linear DAE in the given formulation: the problem, its initial values, and suitable DASSL options.

    The multipliers receive errors divided by h: they are excluded from the error test, and their Newton corrections are
    multiplied by h.
    """
    if is_as_stated(formulation):
        return problem.semi_explicit(), initial, {}
    named = isinstance(formulation, str) and formulation.replace("-", "_") == StabilisedReduction.name
    if named or formulation is StabilisedReduction:
        formulation = StabilisedReduction()
    if not isinstance(formulation, StabilisedReduction):
        close = difflib.get_close_matches(str(formulation), [StabilisedReduction.name], n=1, cutoff=0.6)
        hint = f"did you mean '{close[0]}'? " if close else ""
        raise InvalidProblemError(
            f"unknown formulation {formulation!r} for a linear DAE; {hint}known: auto, none, {StabilisedReduction.name}"
        )
    for name in ("A", "B", "C", "D", "p", "q"):
        if not np.all(np.isfinite(problem.coefficient(name, t0))):
            raise InvalidProblemError(f"{name} is not finite at t = {t0:g}")
    options = {"error_test": list(range(problem.n)), "newton_weights": [0.0] * problem.n + [1.0] * problem.n_y}
    return stabilised(problem, formulation.L, t0), stabilised_start(problem, t0, initial), options


def stabilised(problem: LinearDAE, L=None, t0: float = 0.0) -> ImplicitDAE:
    """The stabilised index reduction (6.42) of a linear DAE, in the unknowns (x, y, mu); (6.41) if D = 0.

    The direction `L` of the multiplier is :math:`C^T` by default; C L is checked at t0.
    """
    check_wide(problem, "the stabilised reduction")
    n_x, n_y, at = problem.n_x, problem.n_y, problem.coefficient
    n = n_x + n_y
    direction = _direction(problem, L)
    singular_values = np.linalg.svd(at("C", t0) @ direction(t0), compute_uv=False)
    if singular_values[-1] <= _SINGULAR * max(singular_values[0], 1e-300):
        raise InvalidProblemError(f"C L is singular at t = {t0:g}; choose another L")

    def residual(t, z, zp):
        x, y, mu = z[:n_x], z[n_x:n], z[n:]
        slope = at("A", t) @ x + at("B", t) @ y + at("p", t)
        c, d = at("C", t), at("D", t)
        rate = c @ slope + d @ zp[n_x:n] + problem.derivative("q", t)
        rate += problem.derivative("C", t) @ x + problem.derivative("D", t) @ y
        return np.concatenate([zp[:n_x] - slope - direction(t) @ mu, c @ x + d @ y + at("q", t), rate])

    def jacobian(t, z, zp, cj):
        a, b, c, d = at("A", t), at("B", t), at("C", t), at("D", t)
        none = np.zeros((n_y, n_y))
        rate_x, rate_y = c @ a + problem.derivative("C", t), c @ b + problem.derivative("D", t) + cj * d
        return np.block([[cj * np.eye(n_x) - a, -b, -direction(t)], [c, d, none], [rate_x, rate_y, none]])

    labels = [problem.label(i) for i in range(n)] + [f"mu[{i}]" for i in range(n_y)]
    algebraic = None if callable(problem.D) else [*(n_x + _zero_columns(at("D", t0))), *range(n, n + n_y)]
    return ImplicitDAE(residual, n + n_y, jacobian=jacobian, algebraic=algebraic, names=labels)


def stabilised_start(problem: LinearDAE, t0: float, initial) -> tuple[np.ndarray, np.ndarray]:
    """(x, y, mu) and their derivatives at t0, from (x0, y0) or (x0, None); mu vanishes.

    An unknown y0 is computed from the constraint and, if D does not determine y0, from its derivative.
    """
    n_x, n_y = problem.n_x, problem.n_y
    try:
        x0, y0 = initial
    except (TypeError, ValueError):
        raise InvalidProblemError("initial must be a pair (x0, y0); y0 may be None") from None
    labels = [problem.label(i) for i in range(problem.n)]
    x = check_vector(x0, n_x, "x0", names=labels[:n_x])
    a, b, c, d = (problem.coefficient(name, t0) for name in "ABCD")
    p, q = problem.coefficient("p", t0), problem.coefficient("q", t0)
    c_rate, d_rate, q_rate = (problem.derivative(name, t0) for name in "CDq")
    if y0 is not None:
        y = check_vector(y0, n_y, "y0", names=labels[n_x:])
    elif np.linalg.matrix_rank(d) == n_y:
        y = np.linalg.solve(d, -(c @ x + q))
    else:  # combinations of the differentiated constraints that do not contain D y'
        u, s, _ = np.linalg.svd(d)
        free = u[:, np.sum(s > _SINGULAR * max(s[0], 1e-300)) :].T
        rows = np.vstack([d, free @ (c @ b + d_rate)])
        y = np.linalg.lstsq(rows, -np.concatenate([c @ x + q, free @ (c @ (a @ x + p) + c_rate @ x + q_rate)]))[0]
    slope = a @ x + b @ y + p
    y_rate = np.linalg.lstsq(d, -(c @ slope + c_rate @ x + d_rate @ y + q_rate))[0]
    return np.concatenate([x, y, np.zeros(n_y)]), np.concatenate([slope, y_rate, np.zeros(n_y)])


def _direction(problem: LinearDAE, L):
    if L is None:
        return lambda t: problem.coefficient("C", t).T
    shape = (problem.n_x, problem.n_y)
    if not callable(L):
        constant = coefficient_at("L", L, 0.0, shape)
        return lambda t: constant
    return lambda t: coefficient_at("L", L, t, shape)


def _zero_columns(matrix: np.ndarray) -> np.ndarray:
    return np.flatnonzero(~np.any(matrix != 0.0, axis=0))
