"""The coefficients of a linear multistep or one-leg method, exact where possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.exact_numbers import integral, lagrange, value
from daedal.methods.tableau import Number, as_row


@dataclass(frozen=True, repr=False)
class MultistepFormula:
    r"""Coefficients of a linear multistep method, or of the corresponding one-leg method.

    .. math::

        \frac1h \sum_{j=0}^k \alpha_j y_{n-j} = \sum_{j=0}^k \beta_j f(t_{n-j}, y_{n-j}), \qquad
        \rho(\zeta) = \sum_j \alpha_j \zeta^{k-j}, \quad \sigma(\zeta) = \sum_j \beta_j \zeta^{k-j}

    and as a one-leg method for F(t, y, y') = 0 (Brenan, Campbell and Petzold (3.4.5)):

    .. math::

        F\Bigl(\sum_j \beta_j t_{n-j},\ \sum_j \beta_j y_{n-j},\ \frac1h \sum_j \alpha_j y_{n-j}\Bigr) = 0

    Parameters
    ----------
    rho, sigma : sequence
        The coefficients, that of the new point first, i.e. highest powers first. Integers, fractions, strings such as
        ``"3/2"`` and SymPy numbers stay exact.
    one_leg : bool
        Whether the coefficients define a one-leg method.
    name : str
        Name of the method.

    Examples
    --------
    >>> import daedal
    >>> bdf2 = daedal.methods.MultistepFormula(["3/2", -2, "1/2"], [1, 0, 0], name="BDF2")
    >>> bdf2.k, bdf2.exact
    (2, True)
    """

    rho: Sequence[Number]
    sigma: Sequence[Number]
    one_leg: bool = False
    name: str = "multistep method"

    def __post_init__(self) -> None:
        rho, sigma = (as_row(x, f"{self.name}: {what}") for x, what in ((self.rho, "rho"), (self.sigma, "sigma")))
        if len(rho) != len(sigma) or len(rho) < 2:
            raise InvalidProblemError(
                f"{self.name}: rho and sigma must have the same number of coefficients, two or more; "
                f"got {len(rho)} and {len(sigma)}"
            )
        if not rho[0] or not any(sigma):
            raise InvalidProblemError(f"{self.name}: the first coefficient of rho and one of sigma must not be zero")
        object.__setattr__(self, "rho", rho)
        object.__setattr__(self, "sigma", sigma)

    def __repr__(self) -> str:
        return self.name

    @property
    def k(self) -> int:
        """The number of steps."""
        return len(self.rho) - 1

    @property
    def exact(self) -> bool:
        """Whether every coefficient is an exact number."""
        return not any(isinstance(x, float) for x in (*self.rho, *self.sigma))

    @property
    def explicit(self) -> bool:
        """Whether the new point occurs only on the left."""
        return not self.sigma[0]

    def floats(self) -> dict[str, np.ndarray]:
        """The coefficients as arrays of floats: rho, sigma."""
        return {"rho": np.array(self.rho, dtype=float), "sigma": np.array(self.sigma, dtype=float)}


def bdf(k: int) -> MultistepFormula:
    r"""The backward differentiation formula of k steps, :math:`\rho = \sum_{j=1}^k \nabla^j / j`.

    >>> [str(x) for x in bdf(3).rho]
    ['11/6', '-3', '3/2', '-1/3']
    """
    difference, rho = [Fraction(1)], [Fraction(0)] * (k + 1)
    for j in range(1, k + 1):
        difference = [x - y for x, y in zip([*difference, Fraction(0)], [Fraction(0), *difference])]
        for i, x in enumerate(difference):
            rho[i] += x / j
    return MultistepFormula(tuple(rho), (1, *[0] * k), name=f"BDF{k}")


def _adams(nodes: Sequence[int]) -> list[Any]:
    """Weights of f at t_n + h nodes in the integral over the last step."""
    points = [Fraction(x) for x in nodes]
    integrals = [integral(lagrange(points, j)) for j in range(len(points))]
    return [value(p, Fraction(0)) - value(p, Fraction(-1)) for p in integrals]


def adams_bashforth(k: int) -> MultistepFormula:
    """The explicit Adams formula of k steps, order k.

    >>> [str(x) for x in adams_bashforth(2).sigma]
    ['0', '3/2', '-1/2']
    """
    weights = _adams(range(-1, -k - 1, -1))
    return MultistepFormula((1, -1, *[0] * (k - 1)), (0, *weights), name=f"Adams-Bashforth, order {k}")


def adams_moulton(k: int) -> MultistepFormula:
    """The implicit Adams formula of k steps, order k + 1.

    >>> [str(x) for x in adams_moulton(2).sigma]
    ['5/12', '2/3', '-1/12']
    """
    weights = _adams(range(0, -k - 1, -1))
    return MultistepFormula((1, -1, *[0] * (k - 1)), weights, name=f"Adams-Moulton, order {k + 1}")
