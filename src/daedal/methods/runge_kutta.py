r"""Explicit Runge-Kutta methods for the formulations that are ordinary differential equations.

References
----------
E. Hairer, S. P. Norsett, G. Wanner: Solving Ordinary Differential Equations I, 2nd ed., Springer 1993, sections II.1,
II.4 to II.6 and IV.2 of volume II (the stiffness test); J. R. Dormand, P. J. Prince, J. Comp. Appl. Math. 6 (1980).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.base import NORMS, Method
from daedal.methods.run import OneStepRun
from daedal.methods.task import Equations


@dataclass(frozen=True)
class Tableau:
    """Coefficients of an explicit method whose last stage is the slope at the end of the step (FSAL).

    ``inner(theta)`` are the weights of the slopes in y(t_0 + theta h).
    """

    a: Any
    b: Any
    c: Any
    e: Any
    order: int
    inner: Any

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The coefficients as arrays, and the weights at theta = 3/4, 1/2, 1/4."""
        s = len(self.b)
        a = np.zeros((s, s))
        for i, row in enumerate(self.a):
            a[i, : len(row)] = row
        inner = np.array([self.inner(theta) for theta in (0.75, 0.5, 0.25)])
        return {"a": a, "b": np.array(self.b), "c": np.array(self.c), "e": np.array(self.e), "inner": inner}


_DOPRI5_B = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0)
_DOPRI5_D = (
    -12715105075 / 11282082432,
    0.0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)


def _dopri5_inner(theta: float) -> np.ndarray:
    """The continuous extension of order 4 (HNW II.6)."""
    b, d = np.array(_DOPRI5_B), np.array(_DOPRI5_D)
    first, last = np.eye(7)[0], np.eye(7)[6]
    bulge = 2.0 * b - first - last
    return theta * (b + (1.0 - theta) * ((first - b) + theta * (bulge + (1.0 - theta) * d)))


_DOPRI5 = Tableau(
    a=(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        _DOPRI5_B[:6],
    ),
    b=_DOPRI5_B,
    c=(0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    e=(71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
    order=5,
    inner=_dopri5_inner,
)

_RK4_B = (1 / 6, 1 / 3, 1 / 3, 1 / 6, 0.0)


def _rk4_inner(theta: float) -> np.ndarray:
    """Cubic Hermite interpolation."""
    b, first, last = np.array(_RK4_B), np.eye(5)[0], np.eye(5)[4]
    return theta * b + theta * (theta - 1.0) * ((1.0 - 2.0 * theta) * b + (theta - 1.0) * first + theta * last)


_RK4 = Tableau(
    a=((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0), _RK4_B[:4]),
    b=_RK4_B,
    c=(0.0, 1 / 2, 1 / 2, 1.0, 1.0),
    e=(0.0, 0.0, 0.0, 0.0, 0.0),
    order=4,
    inner=_rk4_inner,
)


class _Explicit(Method):
    """An explicit Runge-Kutta method, given by its tableau."""

    needs = ("rate",)
    explicit = True
    tableau: ClassVar[Tableau]
    norm: str = "rms"
    stop_when_stiff: bool | int = False

    def __post_init__(self):
        if self.norm not in NORMS:
            raise InvalidProblemError(f"norm must be one of {', '.join(map(repr, NORMS))}, got {self.norm!r}")

    @property
    def max_order(self) -> int:
        """The order of the method."""
        return self.tableau.order

    def prepare(self, equations: Equations) -> OneStepRun:
        """The tableau as a record, and room for the stages."""
        from daedal.kernels.records import Arena, Record
        from daedal.methods.runge_kutta_step import TABLEAU, runge_kutta_accept, runge_kutta_attempt

        arrays = self.tableau.arrays
        s = arrays["b"].size
        return OneStepRun(
            self,
            equations,
            attempt=runge_kutta_attempt,
            accept=runge_kutta_accept,
            order=self.max_order,
            record=Record(TABLEAU, Arena({"k": (s, equations.n)}), stages=s, maximum_norm=self.norm == "max", **arrays),
            stop_when_stiff=bool(self.stop_when_stiff),
            stiff_count=1 - int(self.stop_when_stiff),
        )


@dataclass(frozen=True)
class DOPRI5(_Explicit):
    """The method of Dormand and Prince: order 5, error estimate of order 4, dense output of order 4.

    For formulations that are ordinary differential equations: index 1, Baumgarte, coordinate projection, state space.

    Parameters
    ----------
    norm : {"rms", "max"}
        Of the error: root mean square, or the largest component.
    stop_when_stiff : bool or int
        End the run where steps seem to be limited by stability; a number is how many suspicious steps it takes.
    """

    norm: str = "rms"
    stop_when_stiff: bool | int = False

    name = "dopri5"
    tableau = _DOPRI5


@dataclass(frozen=True)
class RK4(_Explicit):
    """The classical method of order 4, for constant steps."""

    name = "rk4"
    tableau = _RK4
    controlled = False

    def require_error_estimate(self, fixed_step: float | None) -> None:
        """There is none."""
        if fixed_step is None:
            raise InvalidProblemError("RK4 has no error estimate: give fixed_step, or use DOPRI5")
