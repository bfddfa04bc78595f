"""``daedal advise``."""

from typing import Annotated

import typer

import daedal
from daedal.cli.arguments import End, Name, Parameters, assignments
from daedal.cli.model import find_model, span_of
from daedal.cli.output import refuse


def advise(
    name: Name,
    rtol: Annotated[float, typer.Option(help="Relative tolerance of the run that is planned.")] = 1e-6,
    t_end: End = None,
    set_: Parameters = None,
) -> None:
    """Say which formulation and method suit a mechanical problem of the library, and why.

    Example: daedal advise stability_example3 --set nu=1000
    """
    model = constrained_model(name, set_)
    try:
        print(daedal.advise(model.problem, span_of(model, t_end), model.initial, rtol=rtol))
    except daedal.DaedalError as error:
        refuse(str(error))


def constrained_model(name: str, set_: list[str] | None) -> daedal.library.Model:
    """A problem whose formulation is a choice."""
    model = find_model(name, assignments(set_, "--set"))
    kinds = (daedal.MechanicalSystem, daedal.HessenbergDAE)
    if not isinstance(model.problem, kinds):
        others = [other for other in daedal.library.names() if isinstance(find_model(other, {}).problem, kinds)]
        refuse(
            f"'{name}' is solved as it stands, there are no formulations to choose from; "
            f"mechanical problems are {', '.join(others)}"
        )
    return model
