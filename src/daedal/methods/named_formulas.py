"""Runge-Kutta and multistep methods by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from math import prod
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.methods.exact_numbers import Quadratic
from daedal.methods.half_explicit.half_explicit_tableaux import HEDOP5, RK4_HALF_EXPLICIT
from daedal.methods.implicit_rk import implicit_families as families
from daedal.methods.multistep.multistep_formula import MultistepFormula, adams_bashforth, adams_moulton, bdf
from daedal.methods.tableau import RungeKuttaTableau

EXPLICIT_EULER = RungeKuttaTableau(((0,),), (1,), name="explicit Euler")
BACKWARD_EULER = RungeKuttaTableau(((1,),), (1,), name="backward Euler")
IMPLICIT_MIDPOINT = RungeKuttaTableau((("1/2",),), (1,), name="implicit midpoint")
EXPLICIT_MIDPOINT = RungeKuttaTableau(((), ("1/2",)), (0, 1), name="explicit midpoint")
TRAPEZOIDAL = RungeKuttaTableau(((), ("1/2", "1/2")), ("1/2", "1/2"), name="trapezoidal rule")
HEUN = RungeKuttaTableau(((), (1,)), ("1/2", "1/2"), name="Heun")
RK4 = RungeKuttaTableau(RK4_HALF_EXPLICIT.a, RK4_HALF_EXPLICIT.b, name="RK4")
DOPRI5 = RungeKuttaTableau(HEDOP5.a, HEDOP5.b, name="DOPRI5")  # the stages of HEDOP5 are those of Dormand and Prince

_ALEXANDER = 1 - Quadratic(0, "1/2", 2)  # gamma = 1 - 1/sqrt 2
_CROUZEIX = Quadratic("1/2", "1/6", 3)  # gamma = (3 + sqrt 3)/6

# R. Alexander, SIAM J. Numer. Anal. 14 (1977): order 2, L-stable, stiffly accurate.
ALEXANDER2 = RungeKuttaTableau(
    ((_ALEXANDER,), (1 - _ALEXANDER, _ALEXANDER)), (1 - _ALEXANDER, _ALEXANDER), name="SDIRK of Alexander, order 2"
)
# r, k_d, k_a and k_I are those of Houbak and Thomsen's method in Table 4.3.1 of Brenan, Campbell and Petzold, who do
# not print the coefficients.
SDIRK2 = RungeKuttaTableau(
    ((_ALEXANDER,), (1 - 2 * _ALEXANDER, _ALEXANDER)), ("1/2", "1/2"), name="SDIRK, order 2, b = (1/2, 1/2)"
)
# M. Crouzeix (1975), S. P. Norsett (1974): Hairer, Norsett and Wanner I, Table II.7.2.
SDIRK3 = RungeKuttaTableau(
    ((_CROUZEIX,), (1 - 2 * _CROUZEIX, _CROUZEIX)), ("1/2", "1/2"), name="SDIRK of Crouzeix, order 3"
)
# Hairer and Wanner II, Table IV.6.5.
_SDIRK4_B = ("25/24", "-49/48", "125/16", "-85/12", "1/4")
SDIRK4 = RungeKuttaTableau(
    (
        ("1/4",),
        ("1/2", "1/4"),
        ("17/50", "-1/25", "1/4"),
        ("371/1360", "-137/2720", "15/544", "1/4"),
        _SDIRK4_B,
    ),
    _SDIRK4_B,
    name="SDIRK of Hairer and Wanner, order 4",
    embedded=("59/48", "-17/96", "225/32", "-85/12", 0),
)
# J. R. Cash, J. ACM 26 (1979); the conditions of order 4, and of order 3 for the embedded method, hold to the 12
# printed digits.
_CASH = 0.435866521508
_CASH_B = (0.896869652944, 0.0182725272734, -0.0845900310706, -0.266418670647, _CASH)
DIRK5 = RungeKuttaTableau(
    (
        (_CASH,),
        (-1.13586652150, _CASH),
        (1.08543330679, -0.721299828287, _CASH),
        (0.416349501547, 0.190984004184, -0.118643265417, _CASH),
        _CASH_B,
    ),
    _CASH_B,
    name="DIRK of Cash, 5 stages, order 4",
    embedded=(0.776691932910, 0.0297472791484, -0.0267440239074, 0.220304811849, 0.0),
)


def extrapolated_euler(sequence: Sequence[int]) -> RungeKuttaTableau:
    r"""Backward Euler with :math:`n_1, n_2, \dots` steps, extrapolated, as one Runge-Kutta method.

    A is block diagonal; the block of :math:`n_j` is a lower triangle of :math:`1/n_j`. The results have the
    Aitken-Neville weights :math:`w_j = \prod_{i\ne j} n_j/(n_j - n_i)` (Brenan, Campbell and Petzold, 4.6).

    Examples
    --------
    >>> [str(x) for x in extrapolated_euler((1, 2, 4)).b]
    ['1/3', '-1', '-1', '2/3', '2/3', '2/3', '2/3']
    """
    numbers = list(sequence)
    if not numbers or len(set(numbers)) < len(numbers) or any(n < 1 for n in numbers):
        raise InvalidProblemError(f"sequence must contain distinct positive numbers of steps, got {sequence!r}")
    a: list[list[Fraction]] = []
    b: list[Fraction] = []
    for n in numbers:
        weight = prod((Fraction(n, n - m) for m in numbers if m != n), start=Fraction(1))
        before = [Fraction(0)] * len(b)
        a += [[*before, *[Fraction(1, n)] * i] for i in range(1, n + 1)]
        b += [weight / n] * n
    text = ", ".join(map(str, numbers))
    return RungeKuttaTableau(a, b, name=f"backward Euler extrapolated from {text} steps")


# --- lookup by name ---------------------------------------------------------------------------------------------------

_ONE: dict[str, Callable[[], Any]] = {
    "explicit_euler": lambda: EXPLICIT_EULER,
    "backward_euler": lambda: BACKWARD_EULER,
    "explicit_midpoint": lambda: EXPLICIT_MIDPOINT,
    "implicit_midpoint": lambda: IMPLICIT_MIDPOINT,
    "midpoint_one_leg": lambda: MultistepFormula((1, -1), ("1/2", "1/2"), one_leg=True, name="midpoint, one-leg"),
    "trapezoidal": lambda: TRAPEZOIDAL,
    "heun": lambda: HEUN,
    "rk4": lambda: RK4,
    "dopri5": lambda: DOPRI5,
    "radau1": lambda: families.radau_iia(1),
    "radau3": lambda: families.radau_iia(2),
    "radau5": lambda: families.radau_iia(3),
    "radau9": lambda: families.radau_iia(5),
    "radau13": lambda: families.radau_iia(7),
    "alexander2": lambda: ALEXANDER2,
    "sdirk2": lambda: SDIRK2,
    "sdirk3": lambda: SDIRK3,
    "sdirk4": lambda: SDIRK4,
    "dirk5": lambda: DIRK5,
    "sirk2": lambda: families.sirk_collocation(2),
    "sirk23": families.sirk23,
    "sirk3": families.sirk3_transformed,
    "sirk3_collocation": lambda: families.sirk_collocation(3),
    "extrapolation_124": lambda: extrapolated_euler((1, 2, 4)),
    "extrapolation_123": lambda: extrapolated_euler((1, 2, 3)),
}
_FAMILIES: dict[str, tuple[Callable[[int], Any], range]] = {
    "gauss": (families.gauss, range(1, 10)),
    "radau_ia": (families.radau_ia, range(1, 9)),
    "radau_iia": (families.radau_iia, range(1, 9)),
    "lobatto_iiia": (families.lobatto_iiia, range(2, 9)),
    "lobatto_iiib": (families.lobatto_iiib, range(2, 9)),
    "lobatto_iiic": (families.lobatto_iiic, range(2, 9)),
    "bdf": (bdf, range(1, 8)),
    "adams_bashforth": (adams_bashforth, range(1, 9)),
    "adams_moulton": (adams_moulton, range(1, 9)),
}
_ALIASES = {"implicit_euler": "backward_euler", "midpoint": "implicit_midpoint", "cash5": "dirk5"}


@cache
def coefficients(name: str) -> RungeKuttaTableau | MultistepFormula:
    """The coefficients of a method, by name.

    Families take a number: the number of stages for ``gauss``, ``radau_ia``, ``radau_iia``, ``lobatto_iiia``,
    ``lobatto_iiib``, ``lobatto_iiic``, and the number of steps for ``bdf``, ``adams_bashforth``, ``adams_moulton``;
    ``radau5``, ``radau9`` and ``radau13`` are named by their order.

    Parameters
    ----------
    name : str
        Such as ``"radau5"``, ``"gauss2"``, ``"lobatto_iiic3"``, ``"sdirk4"``, ``"bdf3"``; case is ignored.

    Returns
    -------
    RungeKuttaTableau or MultistepFormula

    Examples
    --------
    >>> import daedal
    >>> daedal.methods.coefficients("lobatto_iiic3").b
    (Fraction(1, 6), Fraction(2, 3), Fraction(1, 6))
    >>> [str(x) for x in daedal.methods.coefficients("bdf2").rho]
    ['3/2', '-2', '1/2']
    """
    if not isinstance(name, str):
        raise InvalidProblemError(f"the name of a formula must be a string such as 'radau5', got {name!r}")
    key = re.sub(r"[\s-]+", "_", name.strip().lower())
    key = _ALIASES.get(key, key)
    if key in _ONE:
        return _ONE[key]()
    family = key.rstrip("0123456789")
    family, number = family.rstrip("_"), key[len(family) :]
    if family in _FAMILIES:
        make, numbers = _FAMILIES[family]
        if number and int(number) in numbers:
            return make(int(number))
        raise InvalidProblemError(
            f"'{name}': {family} takes a number from {numbers[0]} to {numbers[-1]}, as in '{family}{numbers[1]}'"
        )
    close = difflib.get_close_matches(key, formula_names(), n=1, cutoff=0.6)
    hint = f"did you mean '{close[0]}'? " if close else ""
    listed = ", ".join([*_ONE, *(f"{family}{numbers[0]}..{numbers[-1]}" for family, (_, numbers) in _FAMILIES.items())])
    raise InvalidProblemError(f"unknown method '{name}': no coefficients; {hint}known: {listed}")


def formula_names() -> list[str]:
    """All names accepted by :func:`coefficients`."""
    return [*_ONE, *(f"{family}{k}" for family, (_, numbers) in _FAMILIES.items() for k in numbers)]
