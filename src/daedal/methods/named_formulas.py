"""Runge-Kutta and multistep methods by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from daedal.errors import InvalidProblemError
from daedal.methods import implicit_families as families
from daedal.methods import printed_tableaux as printed
from daedal.methods.multistep_formula import MultistepFormula, adams_bashforth, adams_moulton, bdf
from daedal.methods.runge_kutta_tableau import RungeKuttaTableau

_ONE: dict[str, Callable[[], Any]] = {
    "explicit_euler": lambda: printed.EXPLICIT_EULER,
    "backward_euler": lambda: printed.BACKWARD_EULER,
    "explicit_midpoint": lambda: printed.EXPLICIT_MIDPOINT,
    "implicit_midpoint": lambda: printed.IMPLICIT_MIDPOINT,
    "midpoint_one_leg": lambda: MultistepFormula((1, -1), ("1/2", "1/2"), one_leg=True, name="midpoint, one-leg"),
    "trapezoidal": lambda: printed.TRAPEZOIDAL,
    "heun": lambda: printed.HEUN,
    "rk4": lambda: printed.RK4,
    "dopri5": lambda: printed.DOPRI5,
    "radau1": lambda: families.radau_iia(1),
    "radau3": lambda: families.radau_iia(2),
    "radau5": lambda: families.radau_iia(3),
    "radau9": lambda: families.radau_iia(5),
    "radau13": lambda: families.radau_iia(7),
    "alexander2": lambda: printed.ALEXANDER2,
    "sdirk2": lambda: printed.SDIRK2,
    "sdirk3": lambda: printed.SDIRK3,
    "sdirk4": lambda: printed.SDIRK4,
    "dirk5": lambda: printed.DIRK5,
    "sirk2": lambda: families.sirk_collocation(2),
    "sirk23": families.sirk23,
    "sirk3": families.sirk3_transformed,
    "sirk3_collocation": lambda: families.sirk_collocation(3),
    "extrapolation_124": lambda: printed.extrapolated_euler((1, 2, 4)),
    "extrapolation_123": lambda: printed.extrapolated_euler((1, 2, 3)),
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
def formula(name: str) -> RungeKuttaTableau | MultistepFormula:
    """The coefficients of a method by its name.

    Families take a number: that of stages for ``gauss``, ``radau_ia``, ``radau_iia``, ``lobatto_iiia``,
    ``lobatto_iiib``, ``lobatto_iiic``, that of steps for ``bdf``, ``adams_bashforth``, ``adams_moulton``; ``radau5``,
    ``radau9`` and ``radau13`` are named after their order.

    Parameters
    ----------
    name : str
        Such as ``"radau5"``, ``"gauss2"``, ``"lobatto_iiic3"``, ``"sdirk4"``, ``"bdf3"``; in any case.

    Returns
    -------
    RungeKuttaTableau or MultistepFormula

    Examples
    --------
    >>> import daedal
    >>> daedal.formula("lobatto_iiic3").b
    (Fraction(1, 6), Fraction(2, 3), Fraction(1, 6))
    >>> [str(x) for x in daedal.formula("bdf2").rho]
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
    raise InvalidProblemError(f"there are no coefficients of a method '{name}'; {hint}known: {listed}")


def formula_names() -> list[str]:
    """All names that :func:`formula` knows."""
    return [*_ONE, *(f"{family}{k}" for family, (_, numbers) in _FAMILIES.items() for k in numbers)]
