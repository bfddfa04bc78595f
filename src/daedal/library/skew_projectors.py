"""Linear DAEs of index 2 that small changes of their coefficients make another problem: Wijckmans, section 5.

With one constraint on two unknowns there is one mode, x = exp(s t) v with C v = 0. Its growth is the eigenvalue of
(I - P) A that does not vanish, where P = B (C B)^-1 C projects along the constraint: the more skew P is, the more a
change of the coefficients moves it.
"""

import math
from typing import Any

import numpy as np

import daedal
from daedal.library.model import Indices, Model, check_positive, closed_model, model
from daedal.library.sources import WIJCKMANS

_EQUATIONS = r"x' = A x + B y,\qquad 0 = C x,\qquad "


@model(
    title="Skew projector",
    source=WIJCKMANS + ", examples 5.12 and 5.14",
    description="A DAE of index 2 whose constraint is almost orthogonal to the direction in which its multiplier "
    "acts. Changes of the coefficients of the size of eps turn a decaying solution into a growing one.",
    equations=_EQUATIONS
    + r"""A = \begin{pmatrix} \tfrac12 + \delta_A & 1 \\ 1 & \tfrac12 \end{pmatrix},\quad
    B = \binom{1}{1 + \delta_B},\quad C = (1 + \varepsilon,\ -1)""",
)
def skew_projector(eps: float = 1e-4, change_in_A: float = 0.0, change_in_B: float = 0.0) -> Model:
    r"""Examples 5.12 and 5.14 of Wijckmans: C B = eps, and the pencil is singular in the limit.

    Parameters
    ----------
    eps : float
        By how much the constraint differs from one that no multiplier can enforce.
    change_in_A : float
        Added to the first entry of A; the solution then grows with :math:`-(1/2 + \delta_A/\varepsilon)`.
    change_in_B : float
        Added to the second entry of B; the solution then grows with
        :math:`(3\delta_B + \varepsilon + 2\varepsilon\delta_B)/(2(\delta_B - \varepsilon))`.

    Notes
    -----
    ``model.extra`` has ``exact(t, derivative)`` and ``growth``, the rate of the only mode.

    Examples
    --------
    >>> import daedal
    >>> print(f"{daedal.library.skew_projector(change_in_A=-1e-3).extra['growth']:.3f}")
    9.500
    """
    check_positive(eps=eps)
    A = np.array([[0.5 + change_in_A, 1.0], [1.0, 0.5]])
    return _one_mode(A, np.array([1.0, 1.0 + change_in_B]), np.array([1.0 + eps, -1.0]))


@model(
    title="Constraint that mixes two modes",
    source=WIJCKMANS + ", example 5.15",
    description="A decaying and a growing mode of opposite size, held together by a constraint so that nothing grows. "
    "A small error in the constraint no longer balances them.",
    equations=_EQUATIONS
    + r"""A = \begin{pmatrix} \lambda & 0 \\ 0 & \mu \end{pmatrix},\quad B = \binom11,\quad C = (1 + \delta_C,\ 1)""",
)
def balanced_modes(lam: float = 100.0, mu: float = -100.0, change_in_C: float = 0.0) -> Model:
    r"""Example 5.15 of Wijckmans: the solution grows with :math:`(\lambda + \mu(1 + \delta_C))/(2 + \delta_C)`.

    Parameters
    ----------
    lam, mu : float
        The modes without the constraint.
    change_in_C : float
        Added to the first entry of the constraint.

    Notes
    -----
    ``model.extra`` has ``exact(t, derivative)`` and ``growth``, the rate of the only mode.
    """
    return _one_mode(np.diag([float(lam), float(mu)]), np.array([1.0, 1.0]), np.array([1.0 + change_in_C, 1.0]))


@model(
    title="Nearly index 3",
    source=WIJCKMANS + ", example 5.16",
    description="A DAE of index 2 that has index 3 in the limit and is well-conditioned all the way, as long as only "
    "its data change. A change of the constraint makes the fast decay a fast growth.",
    equations=_EQUATIONS
    + r"""A = \begin{pmatrix} \tfrac12 & 1 \\ 1 & 0 \end{pmatrix},\quad B = \binom11,\quad
    C = (1 + \varepsilon,\ -1 + \delta_C)""",
)
def nearly_index3(eps: float = 1e-4, change_in_C: float = 0.0) -> Model:
    r"""Example 5.16 of Wijckmans, with growth :math:`-(1 + \delta_C + 2\varepsilon)/(2(\varepsilon + \delta_C))`.

    Parameters
    ----------
    eps : float
        The distance from index 3; the mode decays with about 1/(2 eps).
    change_in_C : float
        Added to the second entry of the constraint.

    Notes
    -----
    ``model.extra`` has ``exact(t, derivative)`` and ``growth``, the rate of the only mode.
    """
    check_positive(eps=eps)
    A = np.array([[0.5, 1.0], [1.0, 0.0]])
    return _one_mode(A, np.array([1.0, 1.0]), np.array([1.0 + eps, -1.0 + change_in_C]))


def _one_mode(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> Model:
    """x' = A x + B y, 0 = C x, from a start on the constraint, for as long as the solution changes by a factor e^2."""
    if not abs(C @ B) > 0.0:
        raise daedal.InvalidProblemError("C B = 0: the constraint does not determine y; choose other changes")
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
