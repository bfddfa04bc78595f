"""``daedal compare``."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import daedal
from daedal.cli.advise import constrained_model
from daedal.cli.arguments import End, Name, Parameters, Plot, check_ending, check_figure
from daedal.cli.model import span_of
from daedal.cli.output import print_rows, refuse


def compare(
    name: Name,
    formulations: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Formulations; a selection by default.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Methods; dopri5 and dassl by default.")
    ] = None,
    rtol: Annotated[str, typer.Option(metavar="R,...", help="Relative tolerance, or several.")] = "1e-6",
    fixed_step: Annotated[float | None, typer.Option(help="Constant steps of this size instead.")] = None,
    t_end: End = None,
    set_: Parameters = None,
    json: Annotated[Path | None, typer.Option(help="Write the numbers to this file (.json).")] = None,
    plot: Plot = None,
) -> None:
    """Solve a mechanical problem of the library with many formulations and methods; print errors, drift and cost.

    Example: daedal compare planar_pendulum --formulations projection,ggl --rtol 1e-4,1e-6,1e-8 --plot work.png
    """
    check_ending("--json", json, ("json",))
    check_figure(plot)
    model = constrained_model(name, set_)
    span = span_of(model, t_end)
    options: dict[str, Any] = {"rtol": _numbers(rtol, "--rtol"), "fixed_step": fixed_step, "title": model.title}
    for option, text in (("formulations", formulations), ("methods", methods)):
        if text is not None:
            options[option] = [part.strip() for part in text.split(",") if part.strip()]
    try:
        found = daedal.compare(model.problem, span, model.initial, reference=_known_solution(model, span[1]), **options)
    except daedal.DaedalError as error:
        refuse(str(error))
    print(found)
    try:
        if json is not None:
            found.to_json(json)
            print_rows([("numbers", str(json))])
        if plot is not None:
            found.plot(save=plot, pyplot=False)
            print_rows([("plot", str(plot))])
    except OSError as error:
        refuse(f"cannot write: {error}")


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a list of numbers", param_hint=option) from None


def _known_solution(model: daedal.library.Model, t_end: float) -> Any:
    """The closed solution of a model, or the reference at its end; None where there is neither."""
    extra = model.extra
    if "exact" in extra:
        multipliers = extra.get("exact_lam", lambda t: ())
        return lambda t: np.concatenate([extra["exact"](t), multipliers(t)])
    if model.reference is None or model.reference.t != t_end:
        return None
    return daedal.library.Reference(t_end, np.concatenate([model.reference.y, extra.get("lam", ())]), "")
