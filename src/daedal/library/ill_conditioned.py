"""Linear DAEs whose constraints barely determine y, or not at all: the examples of Wijckmans' section 6.2.

Small errors in such constraints enter y divided by h in the original form, but not in the stabilised form.
"""

import math
from typing import Any

import numpy as np

import daedal
from daedal.library.registry import Indices, Model, Reference, closed_model, model


@model
def nearly_index2(eps: float = 1e-6) -> Model:
    r"""Example 6.4 of Wijckmans: index 1, but with a small term :math:`\varepsilon y` in the constraint.

    Notes
    -----
    ``model.extra`` has ``exact``, the closed-form solution (x, y) at time t.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.nearly_index2()
    >>> model.reference.y.round(8)
    array([0.9999995, 0.001998 ])
    """
    b = -2.0 * eps**2 / (1.0 + eps**2)
    a = -b / eps

    def exact(t: float) -> np.ndarray:
        # d = x - cos t obeys d' = -d/eps + 2 sin t, d(0) = 1
        d = a * math.sin(t) + b * math.cos(t) + (1.0 - b) * math.exp(-t / eps)
        return np.array([math.cos(t) + d, d / eps])

    return _model(_scalar(eps), exact, index=1, degrees_of_freedom=1)


@model
def linear_index2() -> Model:
    """Example 6.5 of Wijckmans: :func:`nearly_index2` with eps = 0, of index 2, with x = cos t and y = 2 sin t.

    Notes
    -----
    ``model.extra`` has ``exact``, the closed-form solution (x, y) at time t.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.linear_index2()
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, formulation="stabilised_reduction", rtol=1e-8)
    >>> print(f"{sol.y[1, -1]:.5f}")
    1.68294
    """

    def exact(t: float) -> np.ndarray:
        return np.array([math.cos(t), 2.0 * math.sin(t)])

    return _model(_scalar(0.0), exact, index=2, degrees_of_freedom=0)


@model
def ill_conditioned_constraints(eps: float = 1e-6) -> Model:
    r"""Example 6.7 of Wijckmans: two constraints, of which one determines y1 well, and the other barely determines y2.

    Notes
    -----
    ``model.extra`` has ``exact``, the closed-form solution (x, y) at time t. The matrices are consistent with the
    solution printed in the source.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.ill_conditioned_constraints()
    >>> model.initial[1].round(3)
    array([ 2.e+00, -3.e+06])
    """
    k = 1.0 + 1.0 / eps
    b = 2.0 / (1.0 + k * k)
    a = -k * b

    def exact(t: float) -> np.ndarray:
        # d = x1 + q2 obeys d' = -k d - 2 sin t, d(0) = 3, and x2' = -x2 + 2 d, x2(0) = 0
        sine, cosine, decay = math.sin(t), math.cos(t), math.exp(-t)
        layer = (3.0 - b) * math.exp(-k * t)
        d = a * sine + b * cosine + layer
        x1 = d - cosine + sine
        x2 = a * (sine - cosine + decay) + b * (cosine + sine - decay) + 2.0 * (layer - (3.0 - b) * decay) / (1.0 - k)
        return np.array([x1, x2, x1 + x2 - 0.5 * t - sine, -d / eps])

    def p(t):
        return np.array([0.5 * t + math.sin(t), t + 2.0 * math.cos(t)])

    def q(t):
        return np.array([0.5 * t + math.sin(t), math.cos(t) - math.sin(t)])

    def q_derivative(t):
        return np.array([0.5 + math.cos(t), -math.sin(t) - math.cos(t)])

    problem = daedal.LinearDAE(
        [[-2.0, -1.0], [0.0, -3.0]],
        [[1.0, 1.0], [2.0, 0.0]],
        [[-1.0, -1.0], [1.0, 0.0]],
        [[1.0, 0.0], [0.0, eps]],
        p,
        q,
        n_x=2,
        n_y=2,
        q_derivative=q_derivative,
        names=["x1", "x2", "y1", "y2"],
    )
    return _model(problem, exact, index=1, degrees_of_freedom=2)


def _scalar(eps: float) -> daedal.LinearDAE:
    """x' = -y + sin t, 0 = x - eps y - cos t."""

    def sine(t):
        return np.array([math.sin(t)])

    def minus_cosine(t):
        return np.array([-math.cos(t)])

    matrices = [[0.0]], [[-1.0]], [[1.0]], [[0.0 - eps]]
    return daedal.LinearDAE(*matrices, sine, minus_cosine, n_x=1, n_y=1, q_derivative=sine, names=["x", "y"])


def _model(problem: daedal.LinearDAE, exact, index: int, degrees_of_freedom: int) -> Model:
    """A model on [0, 1e-3], the interval of the source, with `degrees_of_freedom` free initial values."""
    start, t1 = exact(0.0), 1e-3
    return Model(
        problem=problem,
        t_span=(0.0, t1),
        initial=(start[: problem.n_x], start[problem.n_x :]),
        index=index,
        indices=Indices.usual(index, degrees_of_freedom),
        reference=Reference(t1, exact(t1), "closed-form solution", 1e-12),
        options={"rtol": 1e-5, "atol": 1e-6},
        plot={"variables": list(problem.names or ())},
        extra={"exact": exact},
    )


# --- linear DAEs of index 2 that are sensitive to perturbations of their coefficients: Wijckmans, section 5 -----------

# With one constraint on two unknowns there is one mode, x = exp(s t) v with C v = 0. Its growth rate is the nonzero
# eigenvalue of (I - P) A, where P = B (C B)^-1 C is the projector along the constraint: the more oblique P is, the more
# sensitive is the rate to perturbations of the coefficients.


@model
def skew_projector(eps: float = 1e-4, change_in_A: float = 0.0, change_in_B: float = 0.0) -> Model:
    r"""Examples 5.12 and 5.14 of Wijckmans: C B = eps, and the pencil is singular in the limit.

    Notes
    -----
    ``model.extra`` has ``exact(t, derivative)`` and ``growth``, the rate of the only mode.

    Examples
    --------
    >>> import daedal
    >>> print(f"{daedal.library.skew_projector(change_in_A=-1e-3).extra['growth']:.3f}")
    9.500
    """
    A = np.array([[0.5 + change_in_A, 1.0], [1.0, 0.5]])
    return _one_mode(A, np.array([1.0, 1.0 + change_in_B]), np.array([1.0 + eps, -1.0]))


@model
def balanced_modes(lam: float = 100.0, mu: float = -100.0, change_in_C: float = 0.0) -> Model:
    r"""Example 5.15 of Wijckmans: the solution grows with :math:`(\lambda + \mu(1 + \delta_C))/(2 + \delta_C)`.

    Notes
    -----
    ``model.extra`` has ``exact(t, derivative)`` and ``growth``, the rate of the only mode.
    """
    return _one_mode(np.diag([float(lam), float(mu)]), np.array([1.0, 1.0]), np.array([1.0 + change_in_C, 1.0]))


@model
def nearly_index3(eps: float = 1e-4, change_in_C: float = 0.0) -> Model:
    r"""Example 5.16 of Wijckmans, with growth :math:`-(1 + \delta_C + 2\varepsilon)/(2(\varepsilon + \delta_C))`.

    Notes
    -----
    ``model.extra`` has ``exact(t, derivative)`` and ``growth``, the rate of the only mode.
    """
    A = np.array([[0.5, 1.0], [1.0, 0.0]])
    return _one_mode(A, np.array([1.0, 1.0]), np.array([1.0 + eps, -1.0 + change_in_C]))


def _one_mode(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> Model:
    """x' = A x + B y, 0 = C x, from a consistent start, until the solution has changed by a factor e^2."""
    if not abs(C @ B) > 0.0:
        raise daedal.InvalidProblemError("C B = 0: the constraint does not determine y; choose other perturbations")
    along, across = np.array([-C[1], C[0]]), np.array([-B[1], B[0]])  # C along = 0, across B = 0
    growth = float(across @ A @ along / (across @ along))
    y = -(C @ A @ along) / (C @ B)

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        return growth**derivative * math.exp(growth * t) * np.append(along, y)

    zeros: dict[str, Any] = {"p": np.zeros(2), "q": np.zeros(1)}
    names = ["x1", "x2", "y"]
    problem = daedal.LinearDAE(A, B[:, None], C[None, :], np.zeros((1, 1)), **zeros, n_x=2, n_y=1, names=names)
    start = exact(0.0)
    return closed_model(
        problem,
        exact,
        min(2.0 / abs(growth), 2.0) if growth else 2.0,
        accuracy=1e-10,
        initial=(start[:2], start[2:]),
        index=2,
        indices=Indices.usual(2, 1),
        options={"rtol": 1e-6, "atol": 1e-8},
        extra={"growth": growth},
    )
