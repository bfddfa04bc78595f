"""Linear DAEs in Hessenberg form, of any order."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.problems.checks import check_arguments, check_callable, check_names, check_real, check_size, set_checked
from daedal.problems.coefficients import coefficient_at, derivatives_by_differences
from daedal.problems.compile import Traceable


@dataclass(frozen=True, eq=False, repr=False)
class HessenbergDAE(Traceable):
    r"""A linear Hessenberg DAE of order m, Ascher and Petzold (2.3),

    .. math:: x^{(m)} = \sum_{j=1}^m A_j\, x^{(j-1)} + B y + q, \qquad 0 = C x + r,

    with :math:`C B` regular: index m + 1.

    Parameters
    ----------
    A, B, C, q, r : callable or array
        Functions of t, or constants. `A` gives :math:`A_1, \dots, A_m`, shape (m, n_x, n_x) (or (n_x, n_x) if m = 1);
        `B` is (n_x, n_y), `C` (n_y, n_x), `q` (n_x,), `r` (n_y,).
    n_x, n_y : int
        Numbers of x and y.
    order : int
        The order m.
    C_derivatives, r_derivatives : callable, optional
        ``C_derivatives(t)`` gives :math:`C', \dots, C^{(m)}`, shape (m, n_y, n_x), and ``r_derivatives(t)`` gives
        :math:`r', \dots, r^{(m)}`, shape (m, n_y); computed if not given.
    names : sequence of str, optional
        Names of x.

    Notes
    -----
    All formulations of constrained systems apply. The solution has :math:`z = (x, x', \dots, x^{(m-1)})` in `sol.y`
    and the multiplier in `sol.lam`.

    Examples
    --------
    >>> import daedal, numpy as np
    >>> problem = daedal.HessenbergDAE(
    ...     A=[[0.0, 1.0], [0.0, 0.0]], B=[[0.0], [1.0]], C=[[0.0, 1.0]], q=[0.0, 0.0],
    ...     r=lambda t: np.array([-np.cos(t)]), n_x=2, n_y=1,
    ... )
    >>> sol = daedal.solve(problem, (0.0, 1.0), [0.0, 1.0], formulation="projected_invariants", method="dassl")
    >>> print(f"{sol.y[0, -1]:.4f}")
    0.8415
    """

    A: Any
    B: Any
    C: Any
    q: Any
    r: Any
    _: KW_ONLY
    n_x: int
    n_y: int
    order: int = 1
    C_derivatives: Callable[..., Any] | None = None
    r_derivatives: Callable[..., Any] | None = None
    names: Sequence[str] | None = None
    params = None
    how_to_take_inputs: ClassVar[str] = (
        "its functions take t alone; state it as a SemiExplicitDAE or an ImplicitDAE with inputs"
    )

    def __post_init__(self):
        n_x, n_y, order = (check_size(getattr(self, name), name) for name in ("n_x", "n_y", "order"))
        if n_y > n_x:
            raise InvalidProblemError(f"n_y = {n_y} constraints on n_x = {n_x} unknowns make C B singular")
        for name in ("C_derivatives", "r_derivatives"):
            if getattr(self, name) is not None:
                check_callable(getattr(self, name), name)
                check_arguments(name, getattr(self, name), ("t",), None)
        set_checked(self, n_x=n_x, n_y=n_y, order=order, names=check_names(self.names, n_x))
        for name, shape in self.shapes.items():
            if callable(getattr(self, name)):
                check_arguments(name, getattr(self, name), ("t",), None)
            else:
                _check_constant(name, getattr(self, name), shape)

    @property
    def n(self) -> int:
        """Number of unknowns z."""
        return self.order * self.n_x

    def label(self, i: int) -> str:
        """The name of entry i of z."""
        level, i = divmod(i, self.n_x)
        return (self.names[i] if self.names else f"x[{i}]") + "'" * level

    def constraint_label(self, i: int) -> str:
        """The name of constraint i."""
        return f"constraint {i}"

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the coefficients."""
        m, n_x, n_y = self.order, self.n_x, self.n_y
        return {"A": (m, n_x, n_x), "B": (n_x, n_y), "C": (n_y, n_x), "q": (n_x,), "r": (n_y,)}

    def coefficients(self, t: float) -> np.ndarray:
        """A_1..A_m, B, q, C, ..., C^(m), r, ..., r^(m) at t, row by row, in one vector."""
        m, shapes = self.order, self.shapes
        values = [coefficient_at(name, getattr(self, name), t, shapes[name]) for name in ("A", "B", "q")]
        for name, derivatives in (("C", self.C_derivatives), ("r", self.r_derivatives)):
            function, shape = getattr(self, name), shapes[name]
            values.append(coefficient_at(name, function, t, shape))
            if derivatives is not None:
                values.append(coefficient_at(f"{name}_derivatives", derivatives, t, (m, *shape)))
            else:
                values.append(derivatives_by_differences(partial(_coefficient, name, function, shape), t, m))
        return np.concatenate([np.ravel(value) for value in values])


def _coefficient(name: str, value, shape: tuple[int, ...], t: float) -> np.ndarray:
    return coefficient_at(name, value, t, shape)


def _check_constant(name: str, value, shape: tuple[int, ...]):
    """Check that a constant coefficient has the expected shape and finite real entries."""
    if value is None:
        raise InvalidProblemError(f"{name} must be an array of shape {shape} or a function of t, got None")
    array = check_real(value, name, f"be an array of shape {shape} or a function of t")
    if [k for k in array.shape if k != 1] != [k for k in shape if k != 1]:
        raise InvalidProblemError(f"{name} has shape {array.shape}; expected {shape}")
    if not np.all(np.isfinite(array)):
        raise InvalidProblemError(f"{name} holds values that are not finite")
