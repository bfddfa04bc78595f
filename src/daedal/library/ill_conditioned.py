"""Linear DAEs whose constraints hardly determine y, or do not: the examples of Wijckmans' section 6.2.

Small errors in such constraints reach y multiplied by 1/h as the problems stand; they do not in the stabilised form.
"""

import math

import numpy as np

import daedal
from daedal.library.model import Indices, Model, Reference, check_positive, model
from daedal.library.sources import WIJCKMANS


@model(
    title="Nearly index 2",
    source=WIJCKMANS + ", example 6.4",
    description="A constraint that hardly depends on the algebraic variable: formally of index 1, it behaves like "
    "index 2 once its initial layer is over.",
    equations=r"x' = -y + \sin t,\qquad 0 = x - \varepsilon y - \cos t",
)
def nearly_index2(eps: float = 1e-6) -> Model:
    r"""Example 6.4 of Wijckmans: index 1, but :math:`\varepsilon y` in the constraint is almost nothing.

    Parameters
    ----------
    eps : float
        Factor of y in the constraint; the solution has a layer of this length at the start.

    Notes
    -----
    ``model.extra`` has ``exact``, the closed solution (x, y) at time t.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.nearly_index2()
    >>> model.reference.y.round(8)
    array([0.9999995, 0.001998 ])
    """
    check_positive(eps=eps)
    b = -2.0 * eps**2 / (1.0 + eps**2)
    a = -b / eps

    def exact(t: float) -> np.ndarray:
        # d = x - cos t obeys d' = -d/eps + 2 sin t, d(0) = 1
        d = a * math.sin(t) + b * math.cos(t) + (1.0 - b) * math.exp(-t / eps)
        return np.array([math.cos(t) + d, d / eps])

    return _model(_scalar(eps), exact, index=1, degrees_of_freedom=1)


@model(
    title="Linear index 2",
    source=WIJCKMANS + ", example 6.5",
    description="The simplest problem on which errors of the constraint reach the algebraic variable divided by the "
    "step size.",
    equations=r"x' = -y + \sin t,\qquad 0 = x - \cos t",
)
def linear_index2() -> Model:
    """Example 6.5 of Wijckmans: the same with eps = 0, of index 2, with the solution x = cos t, y = 2 sin t.

    Notes
    -----
    ``model.extra`` has ``exact``, the closed solution (x, y) at time t.

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


@model(
    title="Ill-conditioned constraints",
    source=WIJCKMANS + ", example 6.7",
    description="Two constraints of formal index 1, one of which is nearly of index 2. The stabilised reduction needs "
    "no factors of D to tell them apart.",
    equations=r"""\begin{aligned} x' &= \begin{pmatrix} -2 & -1 \\ 0 & -3 \end{pmatrix} x +
    \begin{pmatrix} 1 & 1 \\ 2 & 0 \end{pmatrix} y + \binom{\tfrac{t}{2} + \sin t}{t + 2 \cos t} \\
    0 &= \begin{pmatrix} -1 & -1 \\ 1 & 0 \end{pmatrix} x + \begin{pmatrix} 1 & 0 \\ 0 & \varepsilon \end{pmatrix} y +
    \binom{\tfrac{t}{2} + \sin t}{\cos t - \sin t} \end{aligned}""",
)
def ill_conditioned_constraints(eps: float = 1e-6) -> Model:
    r"""Example 6.7 of Wijckmans: two constraints, one that determines its y well and one that hardly does.

    Parameters
    ----------
    eps : float
        Factor of :math:`y_2` in the second constraint, D = diag(1, eps).

    Notes
    -----
    ``model.extra`` has ``exact``, the closed solution (x, y) at time t. The matrices are those that fit the solution
    which the source prints.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.ill_conditioned_constraints()
    >>> model.initial[1].round(3)
    array([ 2.e+00, -3.e+06])
    """
    check_positive(eps=eps)
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
    """A model on [0, 1e-3], the interval of the source, with `degrees_of_freedom` initial values to choose."""
    start, t1 = exact(0.0), 1e-3
    return Model(
        problem=problem,
        t_span=(0.0, t1),
        initial=(start[: problem.n_x], start[problem.n_x :]),
        index=index,
        indices=Indices.usual(index, degrees_of_freedom),
        reference=Reference(t1, exact(t1), "closed solution", 1e-12),
        options={"rtol": 1e-5, "atol": 1e-6},
        plot={"variables": list(problem.names or ())},
        extra={"exact": exact},
    )
