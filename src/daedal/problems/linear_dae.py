"""Linear semi-explicit DAEs."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_arguments, check_callable, check_names, check_size, set_checked
from daedal.problems.coefficients import coefficient_at, derivative_at
from daedal.problems.compile import Traceable
from daedal.problems.semi_explicit import SemiExplicitDAE


@dataclass(frozen=True, eq=False, repr=False)
class LinearDAE(Traceable):
    r"""A linear semi-explicit DAE, Wijckmans section 6.2,

    .. math:: x' = A x + B y + p, \qquad 0 = C x + D y + q.

    The index is 1 if D is regular, and 2 if D = 0 and C B is regular. If D is regular but ill-conditioned, the problem
    is close to index 2: errors in the constraint then enter y multiplied by :math:`D^{-1}` or 1/h.
    :class:`StabilisedReduction` avoids this.

    Parameters
    ----------
    A, B, C, D, p, q : callable or array
        Functions of t, or constants, of shapes (n_x, n_x), (n_x, n_y), (n_y, n_x), (n_y, n_y), (n_x,) and (n_y,).
    n_x, n_y : int
        Numbers of x and y.
    C_derivative, D_derivative, q_derivative : callable, optional
        Functions of t, for the differentiated constraint; computed if they are not given.
    names : sequence of str, optional
        Names of x and y.

    Notes
    -----
    Without a formulation the problem is solved directly. The solution holds (x, y), stacked.

    Examples
    --------
    >>> import daedal, numpy as np
    >>> problem = daedal.LinearDAE(
    ...     A=[[0.0]], B=[[-1.0]], C=[[1.0]], D=[[0.0]], p=lambda t: np.sin([t]), q=lambda t: -np.cos([t]), n_x=1, n_y=1
    ... )
    >>> sol = daedal.solve(problem, (0.0, 1.0), ([1.0], None), formulation="stabilised_reduction")
    >>> print(f"{sol.y[1, -1]:.4f} {2.0 * np.sin(1.0):.4f}")
    1.6829 1.6829
    """

    A: Any
    B: Any
    C: Any
    D: Any
    p: Any
    q: Any
    _: KW_ONLY
    n_x: int
    n_y: int
    C_derivative: Callable[..., Any] | None = None
    D_derivative: Callable[..., Any] | None = None
    q_derivative: Callable[..., Any] | None = None
    names: Sequence[str] | None = None
    params = None
    how_to_take_inputs: ClassVar[str] = (
        "its functions take t alone; state it as a SemiExplicitDAE or an ImplicitDAE with inputs"
    )

    def __post_init__(self):
        n_x, n_y = check_size(self.n_x, "n_x"), check_size(self.n_y, "n_y")
        for name in ("C_derivative", "D_derivative", "q_derivative"):
            if getattr(self, name) is not None:
                check_callable(getattr(self, name), name)
                check_arguments(name, getattr(self, name), ("t",), None)
        set_checked(self, n_x=n_x, n_y=n_y, names=check_names(self.names, n_x + n_y))
        for name in ("A", "B", "C", "D", "p", "q"):
            if callable(getattr(self, name)):
                check_arguments(name, getattr(self, name), ("t",), None)
            elif not np.all(np.isfinite(self.coefficient(name, 0.0))):
                raise InvalidProblemError(f"{name} holds values that are not finite")

    @property
    def n(self) -> int:
        """Number of unknowns, n_x + n_y."""
        return self.n_x + self.n_y

    def label(self, i: int) -> str:
        """The name of entry i of (x, y)."""
        if self.names:
            return self.names[i]
        return f"x[{i}]" if i < self.n_x else f"y[{i - self.n_x}]"

    def coefficient(self, name: str, t: float) -> np.ndarray:
        """A, B, C, D, p or q at t."""
        return coefficient_at(name, getattr(self, name), t, self.shapes[name])

    def derivative(self, name: str, t: float) -> np.ndarray:
        """The derivative of C, D or q at t."""
        return derivative_at(name, getattr(self, name), getattr(self, f"{name}_derivative"), t, self.shapes[name])

    def implicit(self):
        """The stacked system F(t, z, z') = 0 in z = (x, y)."""
        return self.semi_explicit().implicit()

    def semi_explicit(self) -> SemiExplicitDAE:
        """The problem itself."""
        shapes, at = self.shapes, self.coefficient
        A, B, C, D, p, q = (getattr(self, name) for name in shapes)

        def f(t, y, z):  # argument names of a semi-explicit problem, used by event functions
            a, b = coefficient_at("A", A, t, shapes["A"]), coefficient_at("B", B, t, shapes["B"])
            return a @ y + b @ z + coefficient_at("p", p, t, shapes["p"])

        def g(t, y, z):
            c, d = coefficient_at("C", C, t, shapes["C"]), coefficient_at("D", D, t, shapes["D"])
            return c @ y + d @ z + coefficient_at("q", q, t, shapes["q"])

        def jacobian(t, z, zp, cj):
            return np.block([[cj * np.eye(self.n_x) - at("A", t), -at("B", t)], [at("C", t), at("D", t)]])

        labels = [self.label(i) for i in range(self.n)]
        return SemiExplicitDAE(f, g, self.n_x, self.n_y, jacobian=jacobian, names=labels)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the coefficients."""
        n_x, n_y = self.n_x, self.n_y
        return {"A": (n_x, n_x), "B": (n_x, n_y), "C": (n_y, n_x), "D": (n_y, n_y), "p": (n_x,), "q": (n_y,)}


def check_wide(problem: LinearDAE, what: str):
    """Raise if there are more constraints than x, since differentiation cannot reduce the index then."""
    if problem.n_y > problem.n_x:
        raise InvalidProblemError(
            f"{what} needs at least as many x as y: n_x = {problem.n_x} is smaller than n_y = {problem.n_y}"
        )
