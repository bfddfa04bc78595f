"""Formulations: ways to rewrite a constrained system before time discretisation."""

import difflib

from daedal.errors import InvalidProblemError
from daedal.mechanics.formulations.constraint_levels import (
    GGL,
    Baumgarte,
    CoordinateProjection,
    FuehrerLeimkuhler,
    Hanke,
    Index1,
    Index2,
    Index3,
    Knorrenschild,
    Loetstedt,
    Overdetermined,
    ProjectedInvariants,
)
from daedal.mechanics.formulations.formulation import Formulation
from daedal.mechanics.formulations.state_space import EssentialODE, MinimalExtension, StateSpace

FORMULATIONS = {
    form.name: form
    for form in (
        Index3,
        Index2,
        Index1,
        Baumgarte,
        GGL,
        ProjectedInvariants,
        FuehrerLeimkuhler,
        MinimalExtension,
        StateSpace,
        EssentialODE,
        Overdetermined,
        CoordinateProjection,
        Loetstedt,
        Knorrenschild,
        Hanke,
    )
}

__all__ = [
    "FORMULATIONS",
    "GGL",
    "Baumgarte",
    "CoordinateProjection",
    "EssentialODE",
    "Formulation",
    "FuehrerLeimkuhler",
    "Hanke",
    "Index1",
    "Index2",
    "Index3",
    "Knorrenschild",
    "Loetstedt",
    "MinimalExtension",
    "Overdetermined",
    "ProjectedInvariants",
    "StateSpace",
    "named_formulation",
]


def named_formulation(choice):
    """A formulation from its name or class name (as in solutions); a formulation object is returned unchanged."""
    if isinstance(choice, Formulation):
        return choice
    if isinstance(choice, type) and issubclass(choice, Formulation):
        return choice()
    if isinstance(choice, str):
        name = choice.lower().replace("-", "_").replace(" ", "_")
        kind = FORMULATIONS.get(name) or next((k for k in FORMULATIONS.values() if k.__name__ == choice), None)
        if kind is not None:
            return kind()
        close = difflib.get_close_matches(name, FORMULATIONS, n=1, cutoff=0.6)
        hint = f"did you mean '{close[0]}'? " if close else ""
        raise InvalidProblemError(f"unknown formulation '{choice}'; {hint}known: auto, {', '.join(FORMULATIONS)}")
    raise InvalidProblemError(f"formulation must be a name or a formulation such as GGL(), got {choice!r}")
