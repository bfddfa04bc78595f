"""``daedal demo``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import daedal
from daedal.cli.accuracy import quality
from daedal.cli.model import find_model
from daedal.cli.output import print_rows, refuse
from daedal.cli.run import solve_model


@dataclass(frozen=True)
class _Stop:
    """A stop of the tour: a problem, how long to follow it, and what to look at."""

    name: str
    shows: str
    t_end: float | None = None


_TOUR = (
    _Stop(
        "robertson",
        "Three species, rate constants that differ by nine orders of magnitude, eleven decades of time. The mass "
        "balance is an algebraic equation.",
    ),
    _Stop(
        "transistor_amplifier",
        "Eight node voltages whose derivatives occur only in five combinations: 0.1 V at 100 Hz is amplified and "
        "distorted, from U1 at the entry to U8 at the exit.",
    ),
    _Stop(
        "pendulum",
        "A point mass on a rod in Cartesian coordinates, with the rod force lambda as unknown. In the stabilised form "
        "of index 2 the length of the rod stays what it is.",
        t_end=20.0,
    ),
    _Stop(
        "crank_slider",
        "Masses, forces and five constraints of index 3, as they are written on paper: positions, velocities and joint "
        "forces come out, the constraints hold to round-off.",
    ),
)


def demo(out: Annotated[Path, typer.Option(help="Folder for the plots.")] = Path("out")) -> None:
    """Solve four problems, compare them with their references and plot them."""
    for stop in (_TOUR[0], _TOUR[-1]):  # so that the times below are not those of loading or compiling
        warm_up = find_model(stop.name, {})
        solve_model(warm_up, None, False, dict(warm_up.options))
    for number, stop in enumerate(_TOUR, 1):
        model = find_model(stop.name, {})
        print(f"{number}. {model.title} (index {model.index})", flush=True)
        solution, failure = solve_model(model, stop.t_end, False, dict(model.options))
        if failure is not None:
            refuse(str(failure))
        rows = [("shows", stop.shows), *_cost(solution), *quality(model, solution)]
        if "constraints" in model.extra:
            length = np.max(np.abs(model.extra["constraints"](solution.y)[0]))
            rows.append(("constraint", f"z1² + z2² = 1 holds to {length:.1e} over the whole run"))
        path = out / f"{stop.name}.png"
        try:
            solution.plot(title=model.title, save=path, pyplot=False, **model.plot)
        except OSError as error:
            refuse(f"cannot write: {error}")
        print_rows([*rows, ("plot", str(path))], wrap=True)
        print()
    print("More: 'daedal list' names all problems, 'daedal run NAME' solves one.")


def _cost(solution: daedal.Solution) -> list[tuple[str, str]]:
    stats = solution.stats
    rows = [("cost", f"{stats.steps} steps, {stats.residual_evaluations} residuals, {solution.cost_in_words}")]
    if solution.history is not None:
        h = np.abs(solution.history.h)
        rows.append(("step size", f"{h.min():.1e} to {h.max():.1e}, order up to {solution.history.order.max()}"))
    return rows
